//! What every operation of the ALU computes, against a second computation: floats as exact numbers, integers in 128 bits, the
//! functions of `efu` from integer arithmetic.

mod ir3_exact;

use ir3_exact::{F32, Format, Number, special};
use std::cmp::Ordering;
use unwedge_isa::ir3::semantics::{Alu, Condition, Round, ValueKind, cat2, cat3, cat4, convert};
use unwedge_isa::ir3::{Opcode, Type};

/// Operations of categories 1 to 4 that are not functions of the values of one fiber: they move whole registers, or ask for masks and
/// varyings.
const NOT_OF_ONE_FIBER: [Opcode; 6] =
    [Opcode::Swz, Opcode::Gat, Opcode::Sct, Opcode::Movmsk, Opcode::BaryF, Opcode::FlatB];
/// What they do is not known, or they write several registers: the interpreter refuses them by name.
const NOT_EMULATED: [Opcode; 5] = [Opcode::Setrm, Opcode::Shb, Opcode::Msad, Opcode::Wmm, Opcode::WmmAccu];

/// Values of special interest, with their negatives, then random ones.
fn samples(half: bool, random: usize, seed: u64) -> Vec<u32> {
    const FULL: [u32; 22] = [
        0,
        1,
        2,
        31,
        32,
        0xff,
        0x7fff,
        0xffff,
        0x1_0000,
        0x00ff_ffff,
        0x007f_ffff,
        0x0080_0000,
        0x3f00_0000,
        0x3f7f_ffff,
        0x3f80_0000,
        0x3fc0_0000,
        0x4049_0fdb,
        0x4b00_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
        0x7fff_ffff,
    ];
    const HALF: [u32; 14] =
        [0, 1, 15, 16, 0xff, 0x3ff, 0x400, 0x3800, 0x3c00, 0x3e00, 0x4248, 0x7bff, 0x7c00, 0x7e00];
    let (special, sign, mask) =
        if half { (&HALF[..], 0x8000, 0xffff) } else { (&FULL[..], 1 << 31, u32::MAX) };
    let mut state = seed ^ 0x9e37_79b9_7f4a_7c15;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 32) as u32
    };
    let mut all: Vec<u32> = special.iter().flat_map(|&bits| [bits, bits | sign]).collect();
    all.extend((0..random).map(|at| match (at % 3, half) {
        // Floats whose exponents are near one another, small numbers, any bits.
        (0, false) => next() & 0x83ff_ffff | 0x3c00_0000,
        (0, true) => next() & 0x8fff | 0x3000,
        (1, _) => next() & 0xff,
        _ => next() & mask,
    }));
    all
}

/// An integer of so many bits, signed or not.
fn integer(bits: u32, width: u32, signed: bool) -> i128 {
    let value = i128::from(bits) & ((1 << width) - 1);
    if signed && value >> (width - 1) != 0 { value - (1 << width) } else { value }
}

fn holds(condition: Condition, order: Option<Ordering>) -> bool {
    match condition {
        Condition::Lt => order == Some(Ordering::Less),
        Condition::Le => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Condition::Gt => order == Some(Ordering::Greater),
        Condition::Ge => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Condition::Eq => order == Some(Ordering::Equal),
        Condition::Ne => order != Some(Ordering::Equal),
    }
}

/// Of two numbers the lesser, or with `greater` the greater one: a number rather than a NaN, -0 below +0.
fn extreme(a: Number, b: Number, greater: bool) -> Number {
    let first = match a.order(&b) {
        None => b == Number::Nan,
        Some(Ordering::Equal) => a.is_negative() != greater,
        Some(order) => (order == Ordering::Greater) == greater,
    };
    if first { a } else { b }
}

/// A float operation: what it gives before the rounding, or bits that pass through.
fn float_result(alu: &Alu, [a, b, c]: [u32; 3]) -> Option<u32> {
    use Opcode::*;
    let format = Format::of(alu.half);
    let [x, y, z] = [a, b, c].map(|bits| format.read(bits));
    let above_half = |half: Option<Ordering>| half == Some(Ordering::Greater);
    let number = match alu.opcode {
        AddF => x.sum(&y),
        MulF => x.product(&y),
        MadF16 | MadF32 => x.product(&y).sum(&z),
        MinF => extreme(x, y, false),
        MaxF => extreme(x, y, true),
        AbsnegF => x,
        SignF => match x.order(&Number::ZERO) {
            Some(Ordering::Less) => Number::integer(-1),
            Some(Ordering::Greater) => Number::integer(1),
            _ => Number::ZERO,
        },
        FloorF => x.integral(|negative, _, half| negative && half.is_some()),
        CeilF => x.integral(|negative, _, half| !negative && half.is_some()),
        TruncF => x.integral(|_, _, _| false),
        RndneF => x.integral(|_, odd, half| above_half(half) || half == Some(Ordering::Equal) && odd),
        RndazF => x.integral(|_, _, half| half >= Some(Ordering::Equal)),
        SelF16 | SelF32 => {
            let not_negative = holds(Condition::Ge, y.order(&Number::ZERO));
            return Some(if not_negative { a } else { c });
        }
        _ => return None,
    };
    Some(format.round(&number, Round::Even))
}

/// The sum of products of bytes.
fn dot(alu: &Alu, a: u32, b: u32, c: u32) -> u32 {
    let four = alu.opcode == Opcode::Dp4acc;
    let second_signed = four && alu.high;
    let first = if !four && alu.high { 2 } else { 0 };
    let byte = |word: u32, at: u32, signed| integer(word >> (8 * at), 8, signed);
    let count = if four { 4 } else { 2 };
    let products: i128 =
        (first..first + count).map(|at| byte(a, at, alu.mixed) * byte(b, at, second_signed)).sum();
    let signed = alu.mixed || second_signed;
    let sum = integer(c, 32, alu.saturate && signed) + products;
    match (alu.saturate, signed) {
        (false, _) => sum as u32,
        (true, true) => sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32,
        (true, false) => sum.clamp(0, u32::MAX.into()) as u32,
    }
}

/// The count of bits above the highest one that differs from the sign, or -1.
fn leading(value: i128, width: u32) -> i128 {
    let value = if value < 0 { !value } else { value };
    (0..width).rev().find(|bit| value >> bit & 1 != 0).map_or(-1, |bit| i128::from(width - 1 - bit))
}

/// An integer operation: its result, and whether that has 32 bits whatever the sources have.
fn integer_result(alu: &Alu, [a, b, c]: [u32; 3]) -> Option<(i128, bool)> {
    use Opcode::*;
    let n = if alu.half { 16 } else { 32 };
    let u = |bits: u32| integer(bits, n, false);
    let s = |bits: u32| integer(bits, n, true);
    let low = |bits: u32, width: u32, signed| integer(bits, width.min(n), signed);
    let (shift, mask) = (u(b) % i128::from(n), (1i128 << n) - 1);
    let truth = |order, all: bool| match holds(alu.condition, Some(order)) {
        true if all => mask,
        holds => i128::from(holds),
    };
    let sum = |value: i128, least: i128, most: i128| {
        let value = if alu.halving { value.div_euclid(2) } else { value };
        if alu.saturate { value.clamp(least, most) } else { value }
    };
    let (least, most) = (-(1 << (n - 1)), (1 << (n - 1)) - 1);
    let narrow = |value| Some((value, false));
    narrow(match alu.opcode {
        AddU => sum(u(a) + u(b), 0, mask),
        SubU => sum(u(a) - u(b), 0, mask),
        AddS => sum(s(a) + s(b), least, most),
        SubS => sum(s(a) - s(b), least, most),
        CmpsU => truth(u(a).cmp(&u(b)), false),
        CmpsS => truth(s(a).cmp(&s(b)), false),
        CmpvU => truth(u(a).cmp(&u(b)), true),
        CmpvS => truth(s(a).cmp(&s(b)), true),
        MinU => u(a).min(u(b)),
        MaxU => u(a).max(u(b)),
        MinS => s(a).min(s(b)),
        MaxS => s(a).max(s(b)),
        AbsnegS => s(a),
        AndB => u(a) & u(b),
        OrB => u(a) | u(b),
        XorB => u(a) ^ u(b),
        NotB => mask - u(a),
        BfrevB => (0..n).filter(|bit| u(a) >> bit & 1 != 0).map(|bit| 1 << (n - 1 - bit)).sum(),
        ClzB => leading(u(a), n),
        ClzS => leading(s(a), n),
        CbitsB => (0..n).map(|bit| u(a) >> bit & 1).sum(),
        ShlB => u(a) << shift,
        ShrB => u(a) >> shift,
        AshrB => s(a) >> shift,
        GetbitB => u(a) >> (b % 32) & 1,
        MgenB => ((1i128 << (a % 32)) - 1) << (b % 32),
        MulU24 => return Some((low(a, 24, false) * low(b, 24, false), true)),
        MulS24 => return Some((low(a, 24, true) * low(b, 24, true), true)),
        MullU => return Some((low(a, 16, false) * low(b, 16, false), true)),
        MadU16 => u(a) * u(b) + u(c),
        MadS16 => s(a) * s(b) + s(c),
        MadshU16 => ((low(a, 16, false) * low(b, 16, false)) << 16) + u(c),
        MadshM16 => ((low(a, 16, false) * (u(b) >> 16)) << 16) + u(c),
        MadU24 => low(a, 24, false) * low(b, 24, false) + u(c),
        MadS24 => low(a, 24, true) * low(b, 24, true) + u(c),
        SelB16 | SelB32 => {
            if u(b) != 0 {
                u(a)
            } else {
                u(c)
            }
        }
        SelS16 | SelS32 => {
            if s(b) >= 0 {
                s(a)
            } else {
                s(c)
            }
        }
        SadS16 | SadS32 => s(a) + s(b) + s(c),
        Shrm => u(b) >> (u(a) % i128::from(n)) & u(c),
        Shlm => u(b) << (u(a) % i128::from(n)) & u(c),
        Shrg => u(b) >> (u(a) % i128::from(n)) | u(c),
        Shlg => u(b) << (u(a) % i128::from(n)) | u(c),
        Andg => u(a) & u(b) | u(c),
        Dp2acc | Dp4acc => dot(alu, a, b, c).into(),
        _ => return None,
    })
}

/// Whether the result is a number with sign, which is extended so.
fn is_signed(opcode: Opcode) -> bool {
    use Opcode::*;
    matches!(
        opcode,
        AddS | SubS
            | MinS
            | MaxS
            | AbsnegS
            | MulS24
            | AshrB
            | ClzS
            | ClzB
            | MadS16
            | MadS24
            | SelS16
            | SelS32
            | SadS16
            | SadS32
            | Dp2acc
            | Dp4acc
    )
}

/// What an operation gives in its register.
fn expected(alu: &Alu, sources: [u32; 3]) -> Option<u32> {
    let (from, to) = (Format::of(alu.half), Format::of(alu.to_half));
    if matches!(alu.opcode, Opcode::CmpsF | Opcode::CmpvF) {
        let [x, y, _] = sources.map(|bits| from.read(bits));
        let yes = match (alu.opcode, alu.half || alu.to_half) {
            (Opcode::CmpsF, _) => 1,
            (_, true) => 0xffff,
            (_, false) => u32::MAX,
        };
        return Some(if holds(alu.condition, x.order(&y)) { yes } else { 0 });
    }
    if let Some(bits) = float_result(alu, sources) {
        if alu.half == alu.to_half && !alu.saturate {
            return Some(bits);
        }
        let mut number = from.read(bits);
        if alu.saturate {
            // A NaN is not above 0.
            let above = |bound: i128| number.order(&Number::integer(bound)) == Some(Ordering::Greater);
            number = match (above(1), above(0)) {
                (true, _) => Number::integer(1),
                (_, true) => number,
                _ => Number::ZERO,
            };
        }
        return Some(to.round(&number, Round::Even));
    }
    let (value, wide) = integer_result(alu, sources)?;
    let width = if alu.half && !wide { 16 } else { 32 };
    let result = integer(value as u32, width, is_signed(alu.opcode)) as u32;
    Some(if alu.to_half { result & 0xffff } else { result })
}

/// What this crate's function gives, with modifiers of sources and the size of the result.
fn computed(alu: &Alu, sources: [u32; 3], modifiers: [(bool, bool); 3]) -> Option<u32> {
    let [a, b, c] = [0, 1, 2].map(|at| alu.modify(sources[at], modifiers[at].0, modifiers[at].1));
    let value = match alu.opcode.category() {
        2 => cat2(*alu, [a, b]),
        3 => cat3(*alu, [a, b, c]),
        _ => cat4(*alu, [a]),
    }?;
    Some(if alu.changes_result() { alu.finish(value) } else { value })
}

/// A source with its modifiers.
fn modified(alu: &Alu, bits: u32, (negate, absolute): (bool, bool)) -> u32 {
    let (n, sign) = if alu.half { (16, 0x8000) } else { (32, 1 << 31) };
    let mask = ((1u64 << n) - 1) as u32;
    match alu.sources() {
        ValueKind::Float => (if absolute { bits & !sign } else { bits }) ^ if negate { sign } else { 0 },
        ValueKind::Bits => {
            if negate {
                mask - bits
            } else {
                bits
            }
        }
        ValueKind::Signed | ValueKind::Unsigned => {
            let value = integer(bits, n, true);
            let value = if absolute { value.abs() } else { value };
            (if negate { -value } else { value }) as u32 & mask
        }
    }
}

/// The sizes of sources that an operation of categories 2 and 3 takes.
fn sizes(opcode: Opcode) -> &'static [bool] {
    use Opcode::*;
    match opcode {
        MadU16 | MadS16 | MadF16 | SelB16 | SelS16 | SelF16 | SadS16 => &[true],
        MadshU16 | MadshM16 | MadU24 | MadS24 | MadF32 | SelB32 | SelS32 | SelF32 | SadS32 | Dp2acc
        | Dp4acc => &[false],
        _ => &[false, true],
    }
}

/// Every form of an operation: sizes, `(sat)`, halves, conditions.
fn forms(opcode: Opcode) -> Vec<Alu> {
    use Condition::*;
    use Opcode::*;
    let conditions: &[Condition] = match opcode {
        CmpsF | CmpvF | CmpsU | CmpvU | CmpsS | CmpvS => &[Lt, Le, Gt, Ge, Eq, Ne],
        _ => &[Lt],
    };
    let sums = matches!(opcode, AddU | AddS | SubU | SubS);
    let dots = matches!(opcode, Dp2acc | Dp4acc);
    let clamps = matches!(opcode, AddF | MinF | MaxF | MulF | AbsnegF | MadF16 | MadF32);
    let flags = |there: bool| if there { &[false, true][..] } else { &[false][..] };
    let mut all = Vec::new();
    for &half in sizes(opcode) {
        for to_half in [false, true] {
            for &saturate in flags(sums || dots || clamps) {
                for &halving in flags(matches!(opcode, AddU | AddS) && !saturate) {
                    for &mixed in flags(dots) {
                        for &high in flags(dots) {
                            all.extend(conditions.iter().map(|&condition| Alu {
                                opcode,
                                half,
                                to_half,
                                saturate,
                                halving,
                                condition,
                                mixed,
                                high,
                            }));
                        }
                    }
                }
            }
        }
    }
    all
}

/// The modifiers that sources of an operation may have.
fn modifiers(opcode: Opcode, alu: &Alu) -> &'static [(bool, bool)] {
    use Opcode::*;
    const NEGATED: [(bool, bool); 2] = [(false, false), (true, false)];
    match (opcode, alu.sources()) {
        (MadF16 | MadF32 | SelF16 | SelF32, _) => &NEGATED,
        (AbsnegS, _) | (_, ValueKind::Float) => &[(false, false), (true, false), (false, true), (true, true)],
        (_, ValueKind::Bits) if opcode.category() == 2 => &NEGATED,
        _ => &[(false, false)],
    }
}

/// Compares one form of an operation over many values.
fn check(alu: &Alu) {
    let values = samples(alu.half, 90, alu.opcode as u64);
    let choices = modifiers(alu.opcode, alu);
    let count = values.len();
    for (at, &a) in values.iter().enumerate() {
        // Each value meets every special one, and some of the others.
        for (to, &b) in values.iter().enumerate().filter(|(to, _)| to % 3 == at % 3 || *to < 8) {
            let c = values[(at * 7 + to * 13) % count];
            let of = [0, 1, 2].map(|n| choices[(at + to * (n + 1)) % choices.len()]);
            let sources = [a, b, c];
            let theirs = expected(alu, [0, 1, 2].map(|n| modified(alu, sources[n], of[n])));
            let ours = computed(alu, sources, of);
            let nan = Format::of(alu.half);
            // Which NaN passes through is not promised.
            let both_nan = alu.opcode == Opcode::AbsnegF && nan.is_nan(a) && alu.half == alu.to_half;
            assert!(
                ours == theirs || both_nan,
                "{alu:?} {sources:x?} {of:?}: {ours:x?}, exactly {theirs:x?}"
            );
        }
    }
}

#[test]
fn every_operation_of_the_alu_is_compared() {
    let mut compared = 0;
    for &opcode in Opcode::ALL.iter().filter(|opcode| matches!(opcode.category(), 2 | 3)) {
        if NOT_OF_ONE_FIBER.contains(&opcode) {
            continue;
        }
        for alu in forms(opcode) {
            if NOT_EMULATED.contains(&opcode) {
                assert_eq!(computed(&alu, [1; 3], Default::default()), None, "{opcode}");
                continue;
            }
            assert!(expected(&alu, [0; 3]).is_some(), "{opcode} is not computed a second time");
            check(&alu);
        }
        compared += 1;
    }
    assert!(compared > 60, "{compared}");
    // What is left of the four categories: moves, and functions that have tests of their own.
    for &opcode in Opcode::ALL {
        match opcode.category() {
            1 => assert!(opcode == Opcode::Mov || NOT_OF_ONE_FIBER.contains(&opcode), "{opcode}"),
            4 => assert!(special::bounds(opcode, false, 0).is_some(), "{opcode}"),
            _ => {}
        }
    }
}

#[test]
fn special_functions_are_rounded_once() {
    for &opcode in Opcode::ALL.iter().filter(|opcode| opcode.category() == 4) {
        for half in [false, true] {
            let (mut certain, mut all) = (0, 0);
            for bits in samples(half, 3_000, opcode as u64) {
                let Some([least, most]) = special::bounds(opcode, half, bits) else { continue };
                let alu = Alu { half, to_half: half, ..forms(Opcode::AddF)[0] };
                let alu = Alu { opcode, ..alu };
                let ours = computed(&alu, [bits, 0, 0], Default::default()).expect("a function");
                let format = Format::of(half);
                let rank = |bits| format.rank(bits);
                let is_between = (rank(least)..=rank(most)).contains(&rank(ours));
                assert!(is_between, "{opcode} of {bits:x}: {ours:x}, exactly {least:x} to {most:x}");
                assert!(!format.is_nan(ours) || ours == format.nan(), "{opcode} of {bits:x}: {ours:x}");
                (certain, all) = (certain + usize::from(least == most), all + 1);
            }
            assert!(certain * 100 > all * 95 && all > 500, "{opcode}: {certain} of {all} are certain");
        }
    }
}

/// What a conversion gives.
fn converted(from: Type, to: Type, round: Round, bits: u32) -> u32 {
    let mask = if to.is_half() { 0xffff } else { u32::MAX };
    let format = |ty: Type| Format::of(ty == Type::F16);
    // Bytes are signed, whatever they are called.
    let signed = |ty: Type| ty.is_signed() || ty.bits() == 8;
    match (from.is_float(), to.is_float()) {
        _ if from == to => bits & mask,
        (true, true) => {
            let round = if to == Type::F16 { round } else { Round::Even };
            format(to).round(&format(from).read(bits), round)
        }
        (true, false) => {
            let n = to.bits();
            let (least, most) =
                if to.is_signed() { (-(1 << (n - 1)), (1 << (n - 1)) - 1) } else { (0, (1 << n) - 1) };
            format(from).read(bits).to_integer(least, most) as u32 & mask
        }
        (false, true) => {
            let number = Number::integer(integer(bits, from.bits(), signed(from)));
            format(to).round(&number, Round::Even)
        }
        (false, false) if from.bits() == to.bits() => bits & mask,
        (false, false) => integer(bits, from.bits(), signed(from)) as u32 & mask,
    }
}

#[test]
fn every_conversion_is_compared() {
    use Type::*;
    let types = [F16, F32, U16, U32, S16, S32, U8, U8x32];
    for from in types {
        for to in types {
            for round in [Round::Zero, Round::Even, Round::Up, Round::Down] {
                for bits in samples(from.is_half(), 600, to.bits().into()) {
                    let ours = convert::cat1(from, to, round, [bits]);
                    let theirs = converted(from, to, round, bits);
                    assert_eq!(ours, theirs, "{from:?} {to:?} {round:?} of {bits:x}");
                }
            }
        }
    }
}

/// The exact numbers themselves, against the host.
#[test]
fn exact_numbers_are_those_of_the_host() {
    for a in samples(false, 300, 1) {
        for b in samples(false, 30, 2) {
            let flush = |bits: u32| if bits & 0x7f80_0000 == 0 { bits & 1 << 31 } else { bits };
            let host = |value: f32| if value.is_nan() { 0x7fc0_0000 } else { flush(value.to_bits()) };
            let [x, y] = [a, b].map(|bits| f32::from_bits(flush(bits)));
            let [p, q] = [a, b].map(|bits| F32.read(bits));
            assert_eq!(F32.round(&p.sum(&q), Round::Even), host(x + y), "{a:x} + {b:x}");
            assert_eq!(F32.round(&p.product(&q), Round::Even), host(x * y), "{a:x} · {b:x}");
            assert_eq!(F32.round(&p.product(&q).sum(&p), Round::Even), host(x.mul_add(y, x)), "{a:x} {b:x}");
            assert_eq!(p.order(&q), x.partial_cmp(&y), "{a:x} {b:x}");
        }
    }
}
