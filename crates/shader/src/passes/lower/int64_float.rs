//! Conversions between floats and integers of 64 bits, as conversions of words. Results are rounded once.

use super::int64::{Pair, Words};
use crate::ir::{Base, Op, Value};

/// The bits of the floats 2^32 and 2^-32.
fn word_scales(base: Base) -> (u64, u64) {
    match base {
        Base::B64 => (0x41f0_0000_0000_0000, 0x3df0_0000_0000_0000),
        _ => (0x4f80_0000, 0x2f80_0000),
    }
}

/// An integer as a float.
pub(super) fn to_float(w: &mut Words, op: Op, integer: Pair, base: Base) -> Value {
    w.b.exact = true;
    let signed = op == Op::I2F;
    let negative = w.is_negative(integer);
    let magnitude = if signed {
        let opposite = w.neg(integer);
        w.select(negative, opposite, integer)
    } else {
        integer
    };
    // An integer large enough to be rounded to a 32-bit float is infinite as a 16-bit float.
    let wide = if base == Base::B16 { Base::B32 } else { base };
    let mut float = match wide {
        Base::B64 => {
            let hi = w.b.convert(Op::U2F, wide, magnitude.hi);
            let lo = w.b.convert(Op::U2F, wide, magnitude.lo);
            let scale = w.b.constant(wide, word_scales(wide).0);
            // Only the sum is rounded.
            let hi = w.op(Op::FMul, &[hi, scale]);
            w.op(Op::FAdd, &[hi, lo])
        }
        _ => to_single(w, magnitude),
    };
    if wide != base {
        float = w.b.convert(Op::F2F, base, float);
    }
    if signed {
        let opposite = w.op(Op::FNeg, &[float]);
        float = w.op(Op::Select, &[negative, opposite, float]);
    }
    float
}

/// The 32-bit float nearest to an unsigned integer.
fn to_single(w: &mut Words, integer: Pair) -> Value {
    let (zero, one, last) = (w.word(0), w.word(1), w.word(31));
    let top = w.op(Op::FindUMsb, &[integer.hi]);
    let shift = w.op(Op::ISub, &[last, top]);
    // The 32 bits from the highest set bit on. The lowest of them is also a sticky bit for the bits after them, which is enough for correct rounding.
    let upper = w.op(Op::IShl, &[integer.hi, shift]);
    // A shift right by 32 - shift, which may be 32, in two steps.
    let half = w.op(Op::UShr, &[integer.lo, one]);
    let carried = w.op(Op::UShr, &[half, top]);
    let upper = w.op(Op::IOr, &[upper, carried]);
    let rest = w.op(Op::IShl, &[integer.lo, shift]);
    let inexact = w.op(Op::INe, &[rest, zero]);
    let sticky = w.op(Op::Select, &[inexact, one, zero]);
    let upper = w.op(Op::IOr, &[upper, sticky]);
    // 2 to the power of 32 - shift.
    let (bias, fraction) = (w.word(127 + 32), w.word(23));
    let exponent = w.op(Op::ISub, &[bias, shift]);
    let scale = w.op(Op::IShl, &[exponent, fraction]);
    let small = w.op(Op::IEq, &[integer.hi, zero]);
    let unit = w.b.constant(Base::B32, 0x3f80_0000);
    let word = w.op(Op::Select, &[small, integer.lo, upper]);
    let scale = w.op(Op::Select, &[small, unit, scale]);
    let float = w.b.convert(Op::U2F, Base::B32, word);
    w.op(Op::FMul, &[float, scale])
}

/// A float as an integer, toward zero.
pub(super) fn from_float(w: &mut Words, op: Op, float: Value) -> Pair {
    w.b.exact = true;
    let mut float = float;
    let mut base = w.b.func.ty(float).base;
    if base == Base::B16 {
        base = Base::B32;
        float = w.b.convert(Op::F2F, base, float);
    }
    let signed = op == Op::F2I;
    let magnitude = if signed { w.op(Op::FAbs, &[float]) } else { float };
    let (scale, inverse) = word_scales(base);
    let (scale, inverse) = (w.b.constant(base, scale), w.b.constant(base, inverse));
    let words = w.op(Op::FMul, &[magnitude, inverse]);
    let hi = w.b.convert(Op::F2U, Base::B32, words);
    let upper = w.b.convert(Op::U2F, base, hi);
    let upper = w.op(Op::FMul, &[upper, scale]);
    let lower = w.op(Op::FSub, &[magnitude, upper]);
    let lo = w.b.convert(Op::F2U, Base::B32, lower);
    let integer = Pair { lo, hi };
    if !signed {
        return integer;
    }
    let zero = w.b.constant(base, 0);
    let negative = w.op(Op::FLt, &[float, zero]);
    let opposite = w.neg(integer);
    w.select(negative, opposite, integer)
}
