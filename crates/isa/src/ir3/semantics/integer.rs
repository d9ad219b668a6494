//! Integers and bits of 32 and 16 bits.

use super::{Alu, Fibers, Opcode, compare};

#[inline(always)]
fn signed16(bits: u32) -> i32 {
    bits as u16 as i16 as i32
}

#[inline(always)]
fn signed24(bits: u32) -> i32 {
    (bits << 8) as i32 >> 8
}

/// The number of leading zeros, and -1 where all are.
#[inline(always)]
fn leading(bits: u32, width: u32) -> u32 {
    if bits == 0 { u32::MAX } else { bits.leading_zeros() - (32 - width) }
}

pub(super) fn cat2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    match alu.opcode {
        AddU | AddS | SubU | SubS => return Some(sums(alu, fibers)),
        _ if alu.half => return half2(alu, fibers),
        _ => {}
    }
    Some(match alu.opcode {
        CmpsU => compare(alu.condition, fibers, |a| a, 1),
        CmpsS => compare(alu.condition, fibers, |a| a as i32, 1),
        CmpvU => compare(alu.condition, fibers, |a| a, u32::MAX),
        CmpvS => compare(alu.condition, fibers, |a| a as i32, u32::MAX),
        MinU => fibers.run(|[a, b]| a.min(b)),
        MaxU => fibers.run(|[a, b]| a.max(b)),
        MinS => fibers.run(|[a, b]| (a as i32).min(b as i32) as u32),
        MaxS => fibers.run(|[a, b]| (a as i32).max(b as i32) as u32),
        AbsnegS => fibers.run(|[a, _]| a),
        BfrevB => fibers.run(|[a, _]| a.reverse_bits()),
        ClzB => fibers.run(|[a, _]| leading(a, 32)),
        ClzS => fibers.run(|[a, _]| leading(if (a as i32) < 0 { !a } else { a }, 32)),
        ShlB => fibers.run(|[a, b]| a << (b & 31)),
        ShrB => fibers.run(|[a, b]| a >> (b & 31)),
        AshrB => fibers.run(|[a, b]| ((a as i32) >> (b & 31)) as u32),
        _ => return any2(alu, fibers),
    })
}

/// What does not depend on the size of the sources.
fn any2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    let mask = if alu.half { 0xffff } else { u32::MAX };
    Some(match alu.opcode {
        AndB => fibers.run(|[a, b]| a & b),
        OrB => fibers.run(|[a, b]| a | b),
        XorB => fibers.run(|[a, b]| a ^ b),
        NotB => fibers.run(|[a, _]| !a & mask),
        MulU24 => fibers.run(|[a, b]| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
        MullU => fibers.run(|[a, b]| (a & 0xffff).wrapping_mul(b & 0xffff)),
        MulS24 if alu.half => fibers.run(|[a, b]| signed16(a).wrapping_mul(signed16(b)) as u32),
        MulS24 => fibers.run(|[a, b]| signed24(a).wrapping_mul(signed24(b)) as u32),
        GetbitB => fibers.run(|[a, b]| a >> (b & 31) & 1),
        MgenB => fibers.run(|[a, b]| ((1u32 << (a & 31)).wrapping_sub(1) << (b & 31)) & mask),
        CbitsB if alu.half => fibers.run(|[a, _]| (a & 0xffff).count_ones()),
        // Hardware counts 16 bits right; what it does with 32 is not known.
        CbitsB => fibers.run(|[a, _]| a.count_ones()),
        _ => return None,
    })
}

fn half2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    Some(match alu.opcode {
        CmpsU => compare(alu.condition, fibers, |a| a & 0xffff, 1),
        CmpsS => compare(alu.condition, fibers, signed16, 1),
        CmpvU => compare(alu.condition, fibers, |a| a & 0xffff, 0xffff),
        CmpvS => compare(alu.condition, fibers, signed16, 0xffff),
        MinU => fibers.run(|[a, b]| (a & 0xffff).min(b & 0xffff)),
        MaxU => fibers.run(|[a, b]| (a & 0xffff).max(b & 0xffff)),
        MinS => fibers.run(|[a, b]| signed16(a).min(signed16(b)) as u32 & 0xffff),
        MaxS => fibers.run(|[a, b]| signed16(a).max(signed16(b)) as u32 & 0xffff),
        AbsnegS => fibers.run(|[a, _]| a & 0xffff),
        BfrevB => fibers.run(|[a, _]| (a & 0xffff).reverse_bits() >> 16),
        ClzB => fibers.run(|[a, _]| leading(a & 0xffff, 16) & 0xffff),
        ClzS => fibers.run(|[a, _]| {
            let a = signed16(a);
            leading((if a < 0 { !a } else { a }) as u32 & 0xffff, 16) & 0xffff
        }),
        ShlB => fibers.run(|[a, b]| a << (b & 15) & 0xffff),
        ShrB => fibers.run(|[a, b]| (a & 0xffff) >> (b & 15)),
        AshrB => fibers.run(|[a, b]| (signed16(a) >> (b & 15)) as u32 & 0xffff),
        _ => return any2(alu, fibers),
    })
}

/// Sums and differences: modulo, saturated or halved.
fn sums<F: Fibers<2>>(alu: Alu, fibers: F) -> F::Out {
    use Opcode::*;
    let Alu { opcode, half, saturate, halving, .. } = alu;
    let minus = matches!(opcode, SubU | SubS);
    if !saturate && !halving {
        return match (minus, half) {
            (false, false) => fibers.run(|[a, b]| a.wrapping_add(b)),
            (true, false) => fibers.run(|[a, b]| a.wrapping_sub(b)),
            (false, true) => fibers.run(|[a, b]| a.wrapping_add(b) & 0xffff),
            (true, true) => fibers.run(|[a, b]| a.wrapping_sub(b) & 0xffff),
        };
    }
    let signed = matches!(opcode, AddS | SubS);
    let (least, most) = match (signed, half) {
        (false, false) => (0, i64::from(u32::MAX)),
        (false, true) => (0, 0xffff),
        (true, false) => (i64::from(i32::MIN), i64::from(i32::MAX)),
        (true, true) => (-0x8000, 0x7fff),
    };
    let value = move |bits: u32| match (signed, half) {
        (false, false) => i64::from(bits),
        (false, true) => i64::from(bits & 0xffff),
        (true, false) => i64::from(bits as i32),
        (true, true) => i64::from(signed16(bits)),
    };
    let mask = if half { 0xffff } else { u32::MAX };
    fibers.run(|[a, b]| {
        let sum = if minus { value(a) - value(b) } else { value(a) + value(b) };
        let sum = if halving { sum >> 1 } else { sum };
        let sum = if saturate { sum.clamp(least, most) } else { sum };
        sum as u32 & mask
    })
}

pub(super) fn cat3<F: Fibers<3>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    let bits = if alu.half { 15 } else { 31 };
    let mask = if alu.half { 0xffff } else { u32::MAX };
    Some(match alu.opcode {
        MadU16 => {
            fibers.run(|[a, b, c]| (a & 0xffff).wrapping_mul(b & 0xffff).wrapping_add(c & 0xffff) & 0xffff)
        }
        MadS16 => fibers
            .run(|[a, b, c]| signed16(a).wrapping_mul(signed16(b)).wrapping_add(signed16(c)) as u32 & 0xffff),
        MadshU16 => fibers.run(|[a, b, c]| ((a & 0xffff).wrapping_mul(b & 0xffff) << 16).wrapping_add(c)),
        MadshM16 => fibers.run(|[a, b, c]| ((a & 0xffff).wrapping_mul(b >> 16) << 16).wrapping_add(c)),
        MadU24 => fibers.run(|[a, b, c]| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)),
        MadS24 => fibers.run(|[a, b, c]| (signed24(a).wrapping_mul(signed24(b)) as u32).wrapping_add(c)),
        SelB16 => fibers.run(|[a, b, c]| if b & 0xffff != 0 { a } else { c }),
        SelB32 => fibers.run(|[a, b, c]| if b != 0 { a } else { c }),
        SelS16 => fibers.run(|[a, b, c]| if signed16(b) >= 0 { a } else { c }),
        SelS32 => fibers.run(|[a, b, c]| if b as i32 >= 0 { a } else { c }),
        SadS16 => fibers.run(|[a, b, c]| a.wrapping_add(b).wrapping_add(c) & 0xffff),
        SadS32 => fibers.run(|[a, b, c]| a.wrapping_add(b).wrapping_add(c)),
        Shrm => fibers.run(|[a, b, c]| (b & mask) >> (a & bits) & c),
        Shlm => fibers.run(|[a, b, c]| b << (a & bits) & mask & c),
        Shrg => fibers.run(|[a, b, c]| (b & mask) >> (a & bits) | c),
        Shlg => fibers.run(|[a, b, c]| b << (a & bits) & mask | c),
        Andg => fibers.run(|[a, b, c]| b & a | c),
        Dp2acc => {
            let shift = if alu.high { 16 } else { 0 };
            fibers.run(|[a, b, c]| dot(alu, a >> shift, b >> shift, c, 2, false))
        }
        Dp4acc => fibers.run(|[a, b, c]| dot(alu, a, b, c, 4, alu.high)),
        _ => return None,
    })
}

/// `c` and the products of so many bytes.
fn dot(alu: Alu, a: u32, b: u32, c: u32, bytes: usize, second_signed: bool) -> u32 {
    let byte = |word: u32, at: usize, signed: bool| {
        let byte = word.to_le_bytes()[at % 4];
        if signed { i64::from(byte as i8) } else { i64::from(byte) }
    };
    let products: i64 = (0..bytes).map(|at| byte(a, at, alu.mixed) * byte(b, at, second_signed)).sum();
    if alu.saturate && (alu.mixed || second_signed) {
        let sum = i64::from(c as i32) + products;
        return sum.clamp(i32::MIN.into(), i32::MAX.into()) as u32;
    }
    let sum = i64::from(c) + products;
    if alu.saturate { sum.clamp(0, u32::MAX.into()) as u32 } else { sum as u32 }
}

#[cfg(test)]
mod tests {
    use super::super::{Condition, cat2, cat3};
    use super::*;

    fn alu(opcode: Opcode, half: bool) -> Alu {
        Alu {
            opcode,
            half,
            to_half: half,
            saturate: false,
            halving: false,
            condition: Condition::Lt,
            mixed: false,
            high: false,
        }
    }

    /// As compilers make a product of 32 bits of them.
    #[test]
    fn three_parts_make_a_product() {
        for (a, b) in [(0xdead_beef, 0x1234_5678), (u32::MAX, u32::MAX), (0x1_0000, 0x1_0001)] {
            let low = cat2(alu(Opcode::MullU, false), [a, b]).unwrap();
            let mid = cat3(alu(Opcode::MadshM16, false), [a, b, low]).unwrap();
            let all = cat3(alu(Opcode::MadshM16, false), [b, a, mid]).unwrap();
            assert_eq!(all, a.wrapping_mul(b));
        }
    }

    #[test]
    fn counts_of_nothing_are_minus_one() {
        assert_eq!(cat2(alu(Opcode::ClzB, false), [0, 0]), Some(u32::MAX));
        assert_eq!(cat2(alu(Opcode::ClzB, false), [1, 0]), Some(31));
        assert_eq!(cat2(alu(Opcode::ClzS, false), [u32::MAX, 0]), Some(u32::MAX));
        assert_eq!(cat2(alu(Opcode::ClzB, true), [1, 0]), Some(15));
    }

    #[test]
    fn sums_saturate_and_halve() {
        let sat = |opcode, half| Alu { saturate: true, ..alu(opcode, half) };
        assert_eq!(cat2(sat(Opcode::AddU, false), [u32::MAX, 2]), Some(u32::MAX));
        assert_eq!(cat2(sat(Opcode::SubU, false), [1, 2]), Some(0));
        assert_eq!(cat2(sat(Opcode::AddS, true), [0x7fff, 1]), Some(0x7fff));
        assert_eq!(cat2(sat(Opcode::SubS, false), [1 << 31, 1]), Some(1 << 31));
        let half = Alu { halving: true, ..alu(Opcode::AddU, false) };
        assert_eq!(cat2(half, [u32::MAX, 1]), Some(1 << 31));
    }
}
