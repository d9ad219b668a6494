//! Sums of products and of differences of the bytes and halves of words, and sums that saturate.

use crate::ir::{Base, Builder, Op, Type, Value};

/// A sum of products: bits of the parts, and whether those of the first and of the second operand are signed.
struct Dot {
    bits: u32,
    signed: [bool; 2],
}

const DOTS: &[(&str, Dot)] = &[
    ("udot_4x8_uadd", Dot { bits: 8, signed: [false, false] }),
    ("sdot_4x8_iadd", Dot { bits: 8, signed: [true, true] }),
    ("sudot_4x8_iadd", Dot { bits: 8, signed: [true, false] }),
    ("udot_2x16_uadd", Dot { bits: 16, signed: [false, false] }),
    ("sdot_2x16_iadd", Dot { bits: 16, signed: [true, true] }),
];

/// An operation on the parts of words; `None` if it is another one.
pub(super) fn parts(b: &mut Builder<'_>, name: &str, args: &[Value]) -> Option<Value> {
    let words = args.iter().all(|arg| b.func.ty(*arg) == Type::B32);
    let (dot_name, saturates) = match name.strip_suffix("_sat") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let dot = DOTS.iter().find(|(own, _)| *own == dot_name);
    match (name, args) {
        (_, &[x, y, sum]) if words && dot.is_some() => {
            dot.map(|(_, dot)| products(b, dot, [x, y], sum, saturates))
        }
        ("msad_4x8", &[reference, other, sum]) if words => Some(masked_differences(b, reference, other, sum)),
        ("mqsad_4x8", &[reference, bytes, sums]) => quad_differences(b, reference, bytes, sums),
        ("iadd_sat" | "isub_sat", &[x, y]) => Some(saturating(b, name == "isub_sat", x, y)),
        _ => None,
    }
}

/// Bits of a word from a multiple of their number on.
fn part(b: &mut Builder<'_>, word: Value, at: u32, bits: u32, signed: bool) -> Value {
    let op = if signed { Op::IBitfieldExtract } else { Op::UBitfieldExtract };
    let (first, count) = (b.u32(at * bits), b.u32(bits));
    b.alu(op, &[word, first, count])
}

fn products(b: &mut Builder<'_>, dot: &Dot, words: [Value; 2], sum: Value, saturates: bool) -> Value {
    let Dot { bits, signed } = *dot;
    let mut all = Vec::new();
    for at in 0..32 / bits {
        let factors = [0, 1].map(|side| part(b, words[side], at, bits, signed[side]));
        all.push(b.alu(Op::IMul, &factors));
    }
    let signed = signed.contains(&true);
    if saturates && bits == 16 {
        // The products alone may be past the range.
        let widen = if signed { Op::I2I } else { Op::U2U };
        let wide: Vec<Value> = all.iter().map(|product| b.convert(widen, Base::B64, *product)).collect();
        let mut total = b.convert(widen, Base::B64, sum);
        for product in wide {
            total = b.alu(Op::IAdd, &[total, product]);
        }
        let (least, most) = (b.constant(Base::B64, i64::from(i32::MIN) as u64), i32::MAX as u64);
        total = if signed {
            let most = b.constant(Base::B64, most);
            let raised = b.alu(Op::IMax, &[total, least]);
            b.alu(Op::IMin, &[raised, most])
        } else {
            let most = b.constant(Base::B64, u32::MAX.into());
            b.alu(Op::UMin, &[total, most])
        };
        return b.convert(Op::U2U, Base::B32, total);
    }
    let products = all.into_iter().reduce(|a, product| b.alu(Op::IAdd, &[a, product])).unwrap_or(sum);
    match (saturates, signed) {
        (false, _) => b.alu(Op::IAdd, &[products, sum]),
        (true, true) => saturating(b, false, products, sum),
        (true, false) => {
            let total = b.alu(Op::IAdd, &[products, sum]);
            let wraps = b.alu(Op::ULt, &[total, sum]);
            let most = b.u32(u32::MAX);
            b.alu(Op::Select, &[wraps, most, total])
        }
    }
}

/// A signed sum or difference at the end of the range that it is past.
fn saturating(b: &mut Builder<'_>, subtracts: bool, x: Value, y: Value) -> Value {
    let ty = b.func.ty(x);
    let result = b.alu(if subtracts { Op::ISub } else { Op::IAdd }, &[x, y]);
    // It is past an end if its sign differs from that of `x`, and `y` was added in that direction.
    let changed = b.alu(Op::IXor, &[x, result]);
    let toward = b.alu(Op::IXor, &[if subtracts { x } else { result }, y]);
    let wraps = b.alu(Op::IAnd, &[changed, toward]);
    let zero = b.splat_constant(ty, 0);
    let wraps = b.alu(Op::ILt, &[wraps, zero]);
    let last_bit = b.splat_constant(ty.with_base(Base::B32), u64::from(ty.base.bits().max(1) - 1));
    let sign = b.alu(Op::IShr, &[x, last_bit]);
    let most = b.splat_constant(ty, ty.base.mask() >> 1);
    let end = b.alu(Op::IXor, &[sign, most]);
    b.alu(Op::Select, &[wraps, end, result])
}

/// A sum, and the differences of bytes where the reference is not zero.
fn masked_differences(b: &mut Builder<'_>, reference: Value, other: Value, sum: Value) -> Value {
    let zero = b.u32(0);
    let mut total = sum;
    for at in 0..4 {
        let (x, y) = (part(b, reference, at, 8, false), part(b, other, at, 8, false));
        let (more, less) = (b.alu(Op::UMax, &[x, y]), b.alu(Op::UMin, &[x, y]));
        let difference = b.alu(Op::ISub, &[more, less]);
        let counts = b.alu(Op::INe, &[x, zero]);
        let difference = b.alu(Op::Select, &[counts, difference, zero]);
        total = b.alu(Op::IAdd, &[total, difference]);
    }
    total
}

/// Four of these, each from one byte of two words further on.
fn quad_differences(b: &mut Builder<'_>, reference: Value, bytes: Value, sums: Value) -> Option<Value> {
    let shape = |lanes| Type { base: Base::B32, lanes };
    if [reference, bytes, sums].map(|arg| b.func.ty(arg)) != [shape(1), shape(2), shape(4)] {
        return None;
    }
    let mut lanes = Vec::new();
    for at in 0..4u8 {
        let [low, high] = [0, 1].map(|word| b.extract(bytes, word));
        let window = if at == 0 { low } else { funnel(b, high, low, u32::from(at) * 8) };
        let sum = b.extract(sums, at);
        lanes.push(masked_differences(b, reference, window, sum));
    }
    Some(b.vec(&lanes))
}

/// The lower word of two words that are shifted right by 1 to 31 bits.
fn funnel(b: &mut Builder<'_>, high: Value, low: Value, bits: u32) -> Value {
    let (right, left) = (b.u32(bits), b.u32(32 - bits));
    let low = b.alu(Op::UShr, &[low, right]);
    let high = b.alu(Op::IShl, &[high, left]);
    b.alu(Op::IOr, &[high, low])
}
