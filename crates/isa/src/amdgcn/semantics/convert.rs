//! Conversions between integers and floating point, and between widths.

use super::Mode;
use super::float::Width;
use super::soft::{self, Env, Round, SoftNumber};

/// An integer in a width.
pub(super) fn from_integer(width: &Width, m: &Mode, value: i128) -> u64 {
    width.format.round(soft::integer(value), width.env(m))
}

/// How a number is made an integer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Whole {
    Truncate,
    Floor,
    /// The nearest, halves up.
    HalfUp,
}

/// A number as an integer between two bounds; NaN is zero.
pub(super) fn to_integer(width: &Width, m: &Mode, bits: u64, whole: Whole, least: i64, most: i64) -> i64 {
    match width.format.unpack(bits, width.env(m).flush_in) {
        SoftNumber::Nan(_) => 0,
        SoftNumber::Infinite(true) => least,
        SoftNumber::Infinite(false) => most,
        SoftNumber::Finite(_) => {
            // Every format's numbers are exact in 64 bits.
            let value = width.value(width.input(m, bits));
            let value = match whole {
                Whole::Truncate => value.trunc(),
                Whole::Floor => value.floor(),
                Whole::HalfUp => (value + 0.5).floor(),
            };
            (value as i64).clamp(least, most)
        }
    }
}

/// `f32` to `u32`, towards zero.
#[inline(always)]
pub(super) fn u32_of_f32(bits: u32) -> u32 {
    // The host's conversion truncates, stays within bounds, and makes NaN zero.
    f32::from_bits(bits) as u32
}

/// `f32` to `i32`, towards zero.
#[inline(always)]
pub(super) fn i32_of_f32(bits: u32) -> i32 {
    f32::from_bits(bits) as i32
}

/// An unsigned integer as `f32`.
#[inline(always)]
pub(super) fn f32_of_u32(m: &Mode, value: u32) -> u32 {
    match m.round_32 {
        Round::NearestEven => (value as f32).to_bits(),
        _ => from_integer(&Width::F32, m, value.into()) as u32,
    }
}

/// A signed integer as `f32`.
#[inline(always)]
pub(super) fn f32_of_i32(m: &Mode, value: i32) -> u32 {
    match m.round_32 {
        Round::NearestEven => (value as f32).to_bits(),
        _ => from_integer(&Width::F32, m, value.into()) as u32,
    }
}

/// One width to another; the mode of the narrower one decides.
pub(super) fn width(from: &Width, to: &Width, m: &Mode, bits: u64) -> u64 {
    let env = Env { flush_in: from.env(m).flush_in, ..to.env(m) };
    soft::convert(from.format, to.format, bits, env)
}

/// `f32` to `f16` towards zero, as the packing conversions do, denormals kept.
pub(super) fn f16_towards_zero(bits: u32) -> u32 {
    soft::convert(soft::F32, soft::F16, bits.into(), Env { round: Round::Zero, ..Env::IEEE }) as u32
}

/// A number of -1 to 1 as a fraction of `most`.
pub(super) fn normalized(width: &Width, m: &Mode, bits: u64, least: f64, most: i64) -> u32 {
    let bits = width.input(m, bits);
    if width.format.is_nan(bits) {
        return 0;
    }
    (width.value(bits).clamp(least, 1.0) * most as f64).round_ties_even() as i64 as u32 & 0xffff
}

/// A number to the integral number that `to` gives.
pub(super) fn integral(width: &Width, m: &Mode, bits: u64, to: fn(f64) -> f64) -> u64 {
    let format = width.format;
    let bits = width.input(m, bits);
    if format.is_nan(bits) {
        return bits | format.quiet();
    }
    if bits & !format.sign() == format.infinity() {
        return bits;
    }
    // What is integral, or zero, is exact in every format.
    let value = width.value(bits);
    let sign = if to(value).is_sign_negative() { format.sign() } else { 0 };
    width.of(m, to(value)) & !format.sign() | sign
}

/// As [`integral`] in 32 bits.
#[inline(always)]
pub(super) fn integral_f32(m: &Mode, bits: u32, to: fn(f32) -> f32) -> u32 {
    let bits = if !m.denorm_in_32 && bits & 0x7f80_0000 == 0 { bits & 1 << 31 } else { bits };
    if bits & 0x7fff_ffff > 0x7f80_0000 { bits | 1 << 22 } else { to(f32::from_bits(bits)).to_bits() }
}

/// What is above the integral number below; always below 1.
pub(super) fn fract(width: &Width, m: &Mode, bits: u64) -> u64 {
    let format = width.format;
    let bits = width.input(m, bits);
    if format.is_nan(bits) {
        return bits | format.quiet();
    }
    if bits & !format.sign() == format.infinity() {
        return format.nan();
    }
    let floor = integral(width, m, bits, f64::floor);
    let rest = width.add(
        &Mode { round_32: Round::NearestEven, round_16_64: Round::NearestEven, ..*m },
        bits,
        width.neg(floor),
    );
    // A small negative number would be rounded to 1.
    if rest >= width.one() && rest & format.sign() == 0 { width.one() - 1 } else { rest }
}

/// The exponent that leaves a mantissa of 0.5 to 1; 0 of zero, infinities and NaNs.
pub(super) fn frexp_exponent(width: &Width, m: &Mode, bits: u64) -> i32 {
    match width.format.unpack(bits, width.env(m).flush_in) {
        SoftNumber::Finite(value) if value.significand != 0 => {
            value.exponent + 128 - value.significand.leading_zeros() as i32
        }
        _ => 0,
    }
}

/// The mantissa of 0.5 to 1.
pub(super) fn frexp_mantissa(width: &Width, m: &Mode, bits: u64) -> u64 {
    let format = width.format;
    match format.unpack(bits, width.env(m).flush_in) {
        SoftNumber::Nan(bits) => bits,
        SoftNumber::Infinite(_) => bits,
        SoftNumber::Finite(value) if value.significand == 0 => bits & format.sign(),
        SoftNumber::Finite(mut value) => {
            value.exponent = value.significand.leading_zeros() as i32 - 128;
            format.round(value, Env::IEEE)
        }
    }
}

/// `a · 2^b`.
pub(super) fn ldexp(width: &Width, m: &Mode, a: u64, b: i32) -> u64 {
    let env = width.env(m);
    match width.format.unpack(a, env.flush_in) {
        SoftNumber::Finite(mut value) if value.significand != 0 => {
            value.exponent += b.clamp(-5000, 5000);
            width.format.round(value, env)
        }
        other => width.format.pack(other, env),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;

    #[test]
    fn halves_and_back() {
        let m = Mode::from_bits(0xf0, Gfx::Gfx10);
        for bits in 0..=0xffffu64 {
            let wide = width(&Width::F16, &Width::F32, &m, bits);
            let again = width(&Width::F32, &Width::F16, &m, wide);
            let expected = if soft::F16.is_nan(bits) { bits | 0x200 } else { bits };
            assert_eq!(again, expected, "{bits:#x}");
        }
        // A half above the greatest rounds to infinity, towards zero it does not.
        assert_eq!(width(&Width::F32, &Width::F16, &m, 65520f32.to_bits().into()), 0x7c00);
        assert_eq!(f16_towards_zero(65535f32.to_bits()), 0x7bff);
    }

    #[test]
    fn integers() {
        let m = Mode::from_bits(0xf0, Gfx::Gfx10);
        assert_eq!(u32_of_f32((-1f32).to_bits()), 0);
        assert_eq!(u32_of_f32(5e9f32.to_bits()), u32::MAX);
        assert_eq!(u32_of_f32(f32::NAN.to_bits()), 0);
        assert_eq!(i32_of_f32((-5e9f32).to_bits()), i32::MIN);
        let of = |value: f32, whole| to_integer(&Width::F32, &m, value.to_bits().into(), whole, -100, 100);
        assert_eq!(of(-1.5, Whole::Floor), -2);
        assert_eq!(of(-1.5, Whole::HalfUp), -1);
        assert_eq!(of(1e9, Whole::Truncate), 100);
    }

    #[test]
    fn parts_of_a_number() {
        let m = Mode::from_bits(0xf0, Gfx::Gfx10);
        let bits = |value: f32| u64::from(value.to_bits());
        assert_eq!(frexp_exponent(&Width::F32, &m, bits(8.0)), 4);
        assert_eq!(frexp_mantissa(&Width::F32, &m, bits(-8.0)), bits(-0.5));
        assert_eq!(frexp_exponent(&Width::F32, &m, 1), -148);
        assert_eq!(ldexp(&Width::F32, &m, bits(0.5), 4), bits(8.0));
        assert_eq!(ldexp(&Width::F32, &m, bits(1.0), -149), 1);
        assert_eq!(fract(&Width::F32, &m, bits(-0.25)), bits(0.75));
        assert_eq!(fract(&Width::F32, &m, bits(-1e-30)), 0x3f7f_ffff);
        assert_eq!(integral(&Width::F16, &m, 0xb800, f64::ceil), 0x8000);
    }
}
