//! Floats of 32 and 16 bits.

use super::{Alu, Fibers, Opcode, Round, compare};

const NAN: u32 = 0x7fc0_0000;
const NAN16: u32 = 0x7e00;

/// A denormal made a zero of its sign.
#[inline(always)]
pub fn flush(bits: u32) -> u32 {
    if bits & 0x7f80_0000 == 0 { bits & 0x8000_0000 } else { bits }
}

#[inline(always)]
fn value(bits: u32) -> f32 {
    f32::from_bits(flush(bits))
}

#[inline(always)]
fn result(value: f32) -> u32 {
    if value.is_nan() { NAN } else { flush(value.to_bits()) }
}

/// Clamped to 0 and 1; of NaN 0.
#[inline(always)]
pub fn saturate(bits: u32) -> u32 {
    let value = f32::from_bits(bits);
    // Of a NaN neither holds.
    if value >= 1.0 {
        0x3f80_0000
    } else if value > 0.0 {
        bits
    } else {
        0
    }
}

/// 16 bits as 32, exactly; denormals are zeros.
#[inline(always)]
pub fn widen(bits: u32) -> u32 {
    let (sign, magnitude) = ((bits & 0x8000) << 16, bits & 0x7fff);
    match magnitude {
        0..0x400 => sign,
        0x400..0x7c00 => sign | ((magnitude << 13) + (112 << 23)),
        0x7c00 => sign | 0x7f80_0000,
        _ => NAN,
    }
}

/// 32 bits as 16, to the nearest, without a branch: rows of fibers go through it.
#[inline(always)]
fn narrow_even(bits: u32) -> u32 {
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    let odd = magnitude >> 13 & 1;
    let normal = magnitude.wrapping_sub(112 << 23).wrapping_add(0xfff + odd) >> 13;
    // What rounds to a denormal is zero; just below the least normal number, that number is nearest.
    let small = if magnitude >= 0x387f_e000 { 0x400 } else { 0 };
    let value = if magnitude >= 0x3880_0000 { normal.min(0x7c00) } else { small };
    if magnitude > 0x7f80_0000 { NAN16 } else { sign | value }
}

/// 32 bits as 16. Denormal results are zeros.
#[inline]
pub fn narrow(bits: u32, round: Round) -> u32 {
    let negative = bits >> 31 != 0;
    // Whether what is cut off makes the magnitude greater.
    let away = match round {
        Round::Even => return narrow_even(bits),
        Round::Zero => false,
        Round::Up => !negative,
        Round::Down => negative,
    };
    let (sign, magnitude) = (bits >> 16 & 0x8000, bits & 0x7fff_ffff);
    if magnitude > 0x7f80_0000 {
        return NAN16;
    }
    if magnitude == 0x7f80_0000 {
        return sign | 0x7c00;
    }
    let (whole, rest) = if magnitude >= 0x3880_0000 {
        let rebased = magnitude - (112 << 23);
        (rebased >> 13, rebased & 0x1fff)
    } else {
        let shift = (113 + 13 - (magnitude >> 23)).min(31);
        let significand = if magnitude >> 23 == 0 { 0 } else { magnitude & 0x7f_ffff | 0x80_0000 };
        (significand >> shift, significand & ((1 << shift) - 1))
    };
    let rounded = whole + u32::from(away && rest != 0);
    if rounded >= 0x7c00 {
        return sign | if away { 0x7c00 } else { 0x7bff };
    }
    if rounded < 0x400 { sign } else { sign | rounded }
}

/// The lesser one; of a number and a NaN the number, of zeros the negative one.
#[inline(always)]
fn least(a: u32, b: u32) -> u32 {
    let (x, y) = (value(a), value(b));
    if x.is_nan() && y.is_nan() {
        NAN
    } else if y.is_nan() || x < y || x == y && a >> 31 != 0 {
        flush(a)
    } else {
        flush(b)
    }
}

#[inline(always)]
fn most(a: u32, b: u32) -> u32 {
    let (x, y) = (value(a), value(b));
    if x.is_nan() && y.is_nan() {
        NAN
    } else if y.is_nan() || x > y || x == y && a >> 31 == 0 {
        flush(a)
    } else {
        flush(b)
    }
}

/// -1, 0 or 1; of zeros and NaN +0.
#[inline(always)]
fn sign(x: f32) -> f32 {
    f32::from(i8::from(x > 0.0) - i8::from(x < 0.0))
}

/// To the nearest; away from zero in the middle.
fn away(x: f32) -> f32 {
    x.round()
}

/// `a · b + c`, rounded once: the sum in 64 bits is made odd where it is not exact, so that rounding it again is right.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f64 {
    let (product, addend) = (f64::from(a) * f64::from(b), f64::from(c));
    let sum = product + addend;
    let back = sum - product;
    let error = (product - (sum - back)) + (addend - back);
    let bits = sum.to_bits();
    // Of infinities and NaN the error is not a number.
    if error == 0.0 || error.is_nan() || bits & 1 != 0 {
        return sum;
    }
    // One step towards the exact sum ends in an odd one.
    let away = (error > 0.0) == (sum > 0.0);
    f64::from_bits(if away { bits + 1 } else { bits - 1 })
}

/// The sum of a product, of 32 bits.
#[inline(always)]
pub fn mad(a: u32, b: u32, c: u32) -> u32 {
    result(fused(value(a), value(b), value(c)) as f32)
}

/// 64 bits as 16, rounded once, if the number is not exact only in the last bit.
fn narrow_odd(sum: f64) -> u32 {
    // The same once more in 32 bits: sticky below what is kept.
    let near = sum as f32;
    let exact = f64::from(near) == sum || sum.is_nan();
    if exact {
        return narrow(near.to_bits(), Round::Even);
    }
    let bits = near.to_bits();
    let towards_zero = if f64::from(near).abs() > sum.abs() { bits - 1 } else { bits };
    narrow(towards_zero | 1, Round::Even)
}

pub(super) fn cat2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    if alu.half {
        return half2(alu, fibers);
    }
    Some(match alu.opcode {
        AddF => fibers.run(|[a, b]| result(value(a) + value(b))),
        MulF => fibers.run(|[a, b]| result(value(a) * value(b))),
        MinF => fibers.run(|[a, b]| least(a, b)),
        MaxF => fibers.run(|[a, b]| most(a, b)),
        SignF => fibers.run(|[a, _]| sign(value(a)).to_bits()),
        CmpsF => compare(alu.condition, fibers, value, 1),
        CmpvF => compare(alu.condition, fibers, value, u32::MAX),
        AbsnegF => fibers.run(|[a, _]| flush(a)),
        FloorF => fibers.run(|[a, _]| result(value(a).floor())),
        CeilF => fibers.run(|[a, _]| result(value(a).ceil())),
        RndneF => fibers.run(|[a, _]| result(value(a).round_ties_even())),
        RndazF => fibers.run(|[a, _]| result(away(value(a)))),
        TruncF => fibers.run(|[a, _]| result(value(a).trunc())),
        _ => return None,
    })
}

/// Sums and products of 16 bits are exact enough in 32 to be rounded again.
fn half2<F: Fibers<2>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    let value = |bits: u32| f32::from_bits(widen(bits));
    let result = |value: f32| narrow(value.to_bits(), Round::Even);
    Some(match alu.opcode {
        AddF => fibers.run(|[a, b]| result(value(a) + value(b))),
        MulF => fibers.run(|[a, b]| result(value(a) * value(b))),
        MinF => fibers.run(|[a, b]| narrow(least(widen(a), widen(b)), Round::Even)),
        MaxF => fibers.run(|[a, b]| narrow(most(widen(a), widen(b)), Round::Even)),
        SignF => fibers.run(|[a, _]| result(sign(value(a)))),
        CmpsF => compare(alu.condition, fibers, value, 1),
        CmpvF => compare(alu.condition, fibers, value, 0xffff),
        AbsnegF => fibers.run(|[a, _]| result(value(a))),
        FloorF => fibers.run(|[a, _]| result(value(a).floor())),
        CeilF => fibers.run(|[a, _]| result(value(a).ceil())),
        RndneF => fibers.run(|[a, _]| result(value(a).round_ties_even())),
        RndazF => fibers.run(|[a, _]| result(away(value(a)))),
        TruncF => fibers.run(|[a, _]| result(value(a).trunc())),
        _ => return None,
    })
}

pub(super) fn cat3<F: Fibers<3>>(alu: Alu, fibers: F) -> Option<F::Out> {
    use Opcode::*;
    let half = |bits: u32| f32::from_bits(widen(bits));
    Some(match alu.opcode {
        MadF32 => fibers.run(|[a, b, c]| mad(a, b, c)),
        MadF16 => fibers.run(|[a, b, c]| narrow_odd(fused(half(a), half(b), half(c)))),
        SelF32 => fibers.run(|[a, b, c]| if value(b) >= 0.0 { a } else { c }),
        SelF16 => fibers.run(|[a, b, c]| if half(b) >= 0.0 { a } else { c }),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::semantics::soft::{Env, F16, F32, convert};

    fn samples() -> Vec<u32> {
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut all =
            vec![0, 1, 0x8000_0000, 0x7f80_0000, 0x7fc0_0000, 0x0080_0000, 0x007f_ffff, 0x3f80_0000];
        for at in 0..600 {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let bits = (state >> 32) as u32;
            all.push(if at % 2 == 0 { bits } else { bits & 0x81ff_ffff | 0x3e00_0000 });
        }
        all
    }

    const FLUSH: Env = Env { flush_in: true, flush_out: true, ..Env::IEEE };

    fn same(ours: u32, soft: u64) -> bool {
        F32.is_nan(soft) && ours == NAN || u64::from(ours) == soft
    }

    /// The fast functions against floating point on integers, another implementation.
    #[test]
    fn arithmetic_is_that_of_integers() {
        let all = samples();
        for (at, &a) in all.iter().enumerate() {
            for &b in &all {
                let c = all[(at * 31 + b as usize) % all.len()];
                let [x, y, z] = [a, b, c].map(u64::from);
                assert!(same(result(value(a) + value(b)), F32.add(x, y, FLUSH)), "{a:x} + {b:x}");
                assert!(same(result(value(a) * value(b)), F32.mul(x, y, FLUSH)), "{a:x} * {b:x}");
                assert!(same(mad(a, b, c), F32.fma(x, y, z, FLUSH)), "{a:x} * {b:x} + {c:x}");
            }
        }
    }

    #[test]
    fn halves_are_those_of_integers() {
        let all: Vec<u32> = samples().iter().map(|bits| bits >> 16 ^ bits & 0xffff).collect();
        let half = |bits: u32| f32::from_bits(widen(bits));
        let same = |ours: u32, soft: u64| F16.is_nan(soft) && ours == NAN16 || u64::from(ours) == soft;
        for (at, &a) in all.iter().enumerate() {
            for &b in &all {
                let c = all[(at * 31 + b as usize) % all.len()];
                let [x, y, z] = [a, b, c].map(u64::from);
                let sum = narrow((half(a) + half(b)).to_bits(), Round::Even);
                assert!(same(sum, F16.add(x, y, FLUSH)), "{a:x} + {b:x}");
                let product = narrow((half(a) * half(b)).to_bits(), Round::Even);
                assert!(same(product, F16.mul(x, y, FLUSH)), "{a:x} * {b:x}");
                let fma = narrow_odd(fused(half(a), half(b), half(c)));
                assert!(same(fma, F16.fma(x, y, z, FLUSH)), "{a:x} * {b:x} + {c:x}");
            }
        }
        use crate::amdgcn::semantics::soft;
        // Around every number of 16 bits and the middle between two, too.
        let around = (0..0x8000u32).flat_map(|half| {
            let exact = (half << 13).wrapping_add(112 << 23);
            [exact, exact | 0x1000].into_iter().flat_map(|bits| [bits - 1, bits, bits + 1])
        });
        let all = samples().into_iter().chain(around.flat_map(|bits| [bits, bits | 1 << 31]));
        for bits in all {
            for (round, soft) in [
                (Round::Even, soft::Round::NearestEven),
                (Round::Zero, soft::Round::Zero),
                (Round::Up, soft::Round::Up),
                (Round::Down, soft::Round::Down),
            ] {
                let expected = convert(F32, F16, bits.into(), Env { round: soft, ..FLUSH });
                assert!(same(narrow(bits, round), expected), "{bits:x} {round:?}");
            }
        }
    }
}
