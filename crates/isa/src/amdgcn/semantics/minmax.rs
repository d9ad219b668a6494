//! Minimum, maximum and median of floating-point numbers.
//!
//! The old instructions prefer numbers to NaNs, those of gfx12 named `minimum` and `maximum` give NaN. Positive zero is more
//! than negative zero.

use super::Mode;
use super::float::{Width, compared_f32, compares_flushed};

/// Bits in an order that is the numbers'.
fn key(width: &Width, bits: u64) -> i64 {
    let up = 64 - width.format.bits();
    let bits = (bits << up) as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The source of a comparison that is chosen: `greater` asks for the greater one.
fn choose(width: &Width, a: u64, b: u64, greater: bool) -> u64 {
    if (key(width, a) >= key(width, b)) == greater { a } else { b }
}

/// The minimum or maximum that prefers numbers.
pub(super) fn number(width: &Width, m: &Mode, a: u64, b: u64, greater: bool) -> u64 {
    let format = width.format;
    let source = |bits: u64| if compares_flushed(m) { width.input(m, bits) } else { bits };
    let (a, b) = (source(a), source(b));
    match (format.is_nan(a), format.is_nan(b)) {
        (true, _) if m.ieee && format.is_signalling(a) => a | format.quiet(),
        (_, true) if m.ieee && format.is_signalling(b) => b | format.quiet(),
        (false, false) => choose(width, a, b, greater),
        (true, true) => a | format.quiet(),
        (true, false) => b,
        (false, true) => a,
    }
}

/// As [`number`] in 32 bits.
#[inline(always)]
pub(super) fn number_f32(m: &Mode, a: u32, b: u32, greater: bool) -> u32 {
    if m.ieee {
        return number(&Width::F32, m, a.into(), b.into(), greater) as u32;
    }
    let (a, b) = (compared_f32(m, a), compared_f32(m, b));
    let nan = |bits: u32| bits & 0x7fff_ffff > 0x7f80_0000;
    let order = |bits: u32| bits as i32 ^ ((bits as i32 >> 31) as u32 >> 1) as i32;
    let a = if nan(a) { a | 1 << 22 } else { a };
    if nan(b) || !nan(a) && (order(a) >= order(b)) == greater { a } else { b }
}

/// The minimum or maximum that is NaN if a source is.
pub(super) fn propagating(width: &Width, m: &Mode, a: u64, b: u64, greater: bool) -> u64 {
    let (a, b) = (width.input(m, a), width.input(m, b));
    let format = width.format;
    if format.is_nan(a) {
        a | format.quiet()
    } else if format.is_nan(b) {
        b | format.quiet()
    } else {
        choose(width, a, b, greater)
    }
}

/// The minimum or maximum of the old `legacy` instructions: the second source if the comparison fails.
pub(super) fn legacy_f32(a: u32, b: u32, greater: bool) -> u32 {
    let (x, y) = (f32::from_bits(a), f32::from_bits(b));
    if if greater { x >= y } else { x < y } { a } else { b }
}

/// The median: with a NaN, the minimum of the three. It is the maximum of the two that are left without the first that equals
/// the maximum of all, and zeros are equal: of -∞, -0 and +0 it is +0.
pub(super) fn median(width: &Width, m: &Mode, a: u64, b: u64, c: u64) -> u64 {
    let format = width.format;
    if format.is_nan(a) || format.is_nan(b) || format.is_nan(c) {
        return number(width, m, number(width, m, a, b, false), c, false);
    }
    let most = number(width, m, number(width, m, a, b, true), c, true);
    let same = |bits: u64| {
        let bits = number(width, m, bits, bits, true);
        bits == most || (bits | most) & !format.sign() == 0
    };
    if same(a) {
        number(width, m, b, c, true)
    } else if same(b) {
        number(width, m, a, c, true)
    } else {
        number(width, m, a, b, true)
    }
}

/// As [`median`] in 32 bits.
#[inline(always)]
pub(super) fn median_f32(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    let nan = |bits: u32| bits & 0x7fff_ffff > 0x7f80_0000;
    if m.ieee || nan(a) || nan(b) || nan(c) {
        return median(&Width::F32, m, a.into(), b.into(), c.into()) as u32;
    }
    let least = number_f32(m, a, b, false);
    let most = number_f32(m, a, b, true);
    if number_f32(m, most, c, true) << 1 == 0 {
        return median(&Width::F32, m, a.into(), b.into(), c.into()) as u32;
    }
    number_f32(m, least, number_f32(m, most, c, false), true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;

    const NAN: u32 = 0x7fc0_0000;

    #[test]
    fn numbers_are_preferred() {
        let m = Mode::graphics(Gfx::Gfx10);
        let one = 1f32.to_bits();
        assert_eq!(number_f32(&m, NAN, one, true), one);
        assert_eq!(number_f32(&m, one, NAN, false), one);
        assert_eq!(number_f32(&m, 1 << 31, 0, true), 0);
        assert_eq!(number_f32(&m, 0, 1 << 31, false), 1 << 31);
        assert_eq!(propagating(&Width::F32, &m, one.into(), NAN.into(), true), NAN.into());
        // In IEEE mode a signalling NaN wins, made quiet.
        assert_eq!(median_f32(&m, 0xff80_0000, 1 << 31, 0), 0);
        let ieee = Mode { ieee: true, ..m };
        assert_eq!(number_f32(&ieee, 0x7f80_0001, one, true), 0x7fc0_0001);
    }

    #[test]
    fn both_ways_agree() {
        let mut s = 1u32;
        for bits in [0xf0u32, 0] {
            let m = Mode::from_bits(bits, Gfx::Gfx10);
            for _ in 0..100_000 {
                let mut next = || {
                    s = s.wrapping_mul(1664525).wrapping_add(1013904223);
                    let wide = s ^ s >> 13;
                    [wide, wide & 0xff80_0003, wide & 0x8000_0003, wide | 0x7f80_0000][(s >> 30) as usize]
                };
                let (a, b, c) = (next(), next(), next());
                for greater in [false, true] {
                    let wide = number(&Width::F32, &m, a.into(), b.into(), greater) as u32;
                    assert_eq!(number_f32(&m, a, b, greater), wide, "{a:#x} {b:#x}");
                }
                let wide = median(&Width::F32, &m, a.into(), b.into(), c.into()) as u32;
                assert_eq!(median_f32(&m, a, b, c), wide, "{a:#x} {b:#x} {c:#x}");
            }
        }
    }
}
