//! Numbers of 8 bits and less: as wider numbers, and what wider numbers are rounded to. Also those of 16 bits that singles are
//! rounded to by random bits.
//!
//! Rounded to the nearest even in every mode, or with random bits. FP8 and BF8 of gfx94x have no negative zero: those of later
//! GPUs are the formats of the Open Compute Project. Facts: AMD's CDNA 3 and CDNA 4 manuals; AMD's HIP headers, whose
//! functions for the host define what becomes of NaNs, of a scale that is NaN, and of random bits below the least normal number.
//! On gfx12 a NaN has its sign set whatever the source's, as a public emulator has it that was compared with gfx1201.
//! `v_cvt_sr_f16_f32` and `v_cvt_sr_bf16_f32` add the upper 13 and 16 of the random bits, as rocjitsu has it, an emulator of AMD's;
//! its NaNs are all ones. AMD's manual does not say which bits count.
//! The payload of NaNs that wider formats get is not documented: they are quiet.

use super::Mode;
use super::mfma::{Factor, NumberClass, Special};
use super::soft::{self, Env, Finite, Round, SoftFormat, SoftNumber};
use crate::amdgcn::model::Gfx;

/// A power of two; `None`: the scale is a NaN.
pub type Scale = Option<i32>;

/// FP8 of the mode's GPU.
pub(super) fn fp8(m: &Mode) -> Factor {
    if m.generation <= Gfx::Gfx940 { Factor::Fp8Fnuz } else { Factor::Fp8 }
}

/// BF8 of the mode's GPU.
pub(super) fn bf8(m: &Mode) -> Factor {
    if m.generation <= Gfx::Gfx940 { Factor::Bf8Fnuz } else { Factor::Bf8 }
}

/// A number in a wider format, times a scale. What is too great is infinite.
pub fn widen(from: Factor, bits: u64, to: SoftFormat, scale: Scale) -> u64 {
    let number = from.unpack(bits);
    let sign = if number.negative { to.sign() } else { 0 };
    match (number.class, scale) {
        (NumberClass::Nan, _) | (_, None) => sign | to.nan(),
        (NumberClass::Infinite, _) => sign | to.infinity(),
        (NumberClass::Finite, Some(power)) => {
            let value = number.finite();
            to.round(Finite { exponent: value.exponent + power, ..value }, Env::IEEE)
        }
    }
}

/// The low bits as 32 bits.
pub(super) fn to_f32(from: Factor, bits: u32) -> u32 {
    widen(from, bits.into(), soft::F32, Some(0)) as u32
}

/// The low two bytes.
pub(super) fn pair_to_f32(from: Factor, bytes: u32) -> u64 {
    u64::from(to_f32(from, bytes & 0xff)) | u64::from(to_f32(from, bytes >> 8 & 0xff)) << 32
}

/// The bits of a NaN.
fn nan(m: &Mode, to: Factor, negative: bool) -> u32 {
    let fields = to.fields();
    let sign = 1 << (fields.exponent + fields.fraction);
    let negative = negative || m.generation >= Gfx::Gfx12;
    let signed = |magnitude: u32| magnitude | if negative { sign } else { 0 };
    match fields.special {
        Special::NegativeZero => sign,
        Special::Ieee if fields.fraction > 2 => signed(sign - 1),
        Special::Ieee => signed(sign - 2),
        Special::OneNan => signed(sign - 1),
        // These formats do not have a NaN: the greatest number.
        Special::Finite => (sign - 1) | if negative { sign } else { 0 },
    }
}

/// The greatest finite magnitude, and what is over it.
fn bounds(to: Factor) -> (u32, u32) {
    let fields = to.fields();
    let sign = 1 << (fields.exponent + fields.fraction);
    let infinity = ((1 << fields.exponent) - 1) << fields.fraction;
    match fields.special {
        Special::Ieee => (infinity - 1, infinity),
        Special::OneNan => (sign - 2, sign - 1),
        Special::NegativeZero => (sign - 1, sign),
        Special::Finite => (sign - 1, sign - 1),
    }
}

/// The bits of a magnitude, to the nearest even, as if exponents had no end.
fn magnitude(to: Factor, value: Finite) -> u32 {
    if value.significand == 0 {
        return 0;
    }
    let fields = to.fields();
    let least = 1 - fields.bias;
    let (unit, kept) = value.rounded(least, fields.fraction, Round::NearestEven);
    let biased = (unit + fields.fraction as i32 - least) as u32;
    (biased.min(0x100) << fields.fraction) + kept as u32
}

/// Moves the first bit of a significand to where that of a normal number is.
fn normalized(from: SoftFormat, value: Finite) -> Finite {
    let up = (from.fraction + 1).saturating_sub(128 - value.significand.leading_zeros());
    Finite { significand: value.significand << up, exponent: value.exponent - up as i32, ..value }
}

/// Adds random bits to the bits that do not fit, and cuts those off. Of a number below the least normal one, bits below the random
/// ones are lost before.
fn randomized(from: SoftFormat, to: Factor, value: Finite, random: u32) -> Finite {
    let fields = to.fields();
    let cut = from.fraction - fields.fraction;
    let least = 1 - fields.bias - from.fraction as i32;
    let lost = (least - value.exponent).max(0) as u32;
    let added = value.significand.unbounded_shr(lost) + u128::from(random >> (32 - cut));
    Finite { significand: added >> cut << cut, exponent: value.exponent.max(least), ..value }
}

/// Rounds a number of 16 or 32 bits, divided by a scale: to the nearest even, or by random bits, which are added to what is cut
/// off. What is too great becomes infinity or, without one, NaN, or the greatest number if the mode says
/// so or there is nothing else.
pub fn narrow(m: &Mode, from: SoftFormat, bits: u64, to: Factor, scale: Scale, random: Option<u32>) -> u32 {
    let negative = bits & from.sign() != 0;
    let (greatest, over) = bounds(to);
    let signed = |magnitude: u32| {
        let fields = to.fields();
        let sign = 1 << (fields.exponent + fields.fraction);
        // Without a negative zero its bits are the NaN.
        let plain = fields.special == Special::NegativeZero && magnitude & (sign - 1) == 0;
        if negative && !plain { magnitude | sign } else { magnitude }
    };
    match (from.unpack(bits, false), scale) {
        (SoftNumber::Nan(_), _) | (_, None) => nan(m, to, negative),
        // The formats of gfx94x clamp infinities as well.
        (SoftNumber::Infinite(_), _) if to.fields().special == Special::NegativeZero && m.saturate_16 => {
            signed(greatest)
        }
        (SoftNumber::Infinite(_), _) => signed(over),
        (SoftNumber::Finite(value), Some(_)) if value.significand == 0 => signed(0),
        (SoftNumber::Finite(value), Some(power)) => {
            let mut value = value;
            if power != 0 {
                value = normalized(from, value);
                value.exponent -= power;
            }
            if let Some(random) = random {
                value = randomized(from, to, value, random);
            }
            let most = if m.saturate_16 { greatest } else { over };
            signed(magnitude(to, value).min(most))
        }
    }
}

fn of_f32(m: &Mode, to: Factor, bits: u32) -> u32 {
    narrow(m, soft::F32, bits.into(), to, Some(0), None)
}

/// Two numbers in the low two bytes.
pub(super) fn pair(m: &Mode, to: Factor, a: u32, b: u32) -> u32 {
    of_f32(m, to, a) | of_f32(m, to, b) << 8
}

/// One number, with random bits.
pub(super) fn stochastic(m: &Mode, to: Factor, a: u32, random: u32) -> u32 {
    narrow(m, soft::F32, a.into(), to, Some(0), Some(random))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EIGHT: [Factor; 4] = [Factor::Fp8, Factor::Bf8, Factor::Fp8Fnuz, Factor::Bf8Fnuz];

    #[test]
    fn every_byte_and_back() {
        for factor in EIGHT {
            for byte in 0..=0xffu32 {
                let wide = to_f32(factor, byte);
                let nan = f32::from_bits(wide).is_nan();
                let again = of_f32(&Mode::graphics(Gfx::Gfx12), factor, wide);
                assert!(
                    again == byte || nan && to_f32(factor, again) & 0x7fc0_0000 == 0x7fc0_0000,
                    "{factor:?} {byte:#x}"
                );
            }
        }
        for factor in [Factor::Fp6, Factor::Bf6, Factor::Fp4] {
            for bits in 0..1u32 << factor.bits() {
                for (format, scale) in [(soft::F32, 5), (soft::F16, -3), (soft::BF16, -40)] {
                    let wide = widen(factor, bits.into(), format, Some(scale));
                    let m = Mode::graphics(Gfx::Gfx950);
                    let again = narrow(&m, format, wide, factor, Some(scale), None);
                    assert_eq!(again, bits, "{factor:?}");
                    // What is exact is not changed by random bits.
                    assert_eq!(narrow(&m, format, wide, factor, Some(scale), Some(u32::MAX)), bits);
                }
            }
        }
    }

    #[test]
    fn numbers_that_are_too_great() {
        let m = Mode::graphics(Gfx::Gfx12);
        let most = Mode { saturate_16: true, ..m };
        for (factor, value, over, greatest) in [
            (Factor::Fp8, 463.9f32, 0x7e, 0x7e),
            (Factor::Fp8, 464.0, 0x7e, 0x7e),
            (Factor::Fp8, 464.1, 0x7f, 0x7e),
            (Factor::Fp8, 1e9, 0x7f, 0x7e),
            (Factor::Fp8, f32::INFINITY, 0x7f, 0x7f),
            (Factor::Bf8, 57344.0, 0x7b, 0x7b),
            (Factor::Bf8, 61440.0, 0x7c, 0x7b),
            (Factor::Bf8, 1e30, 0x7c, 0x7b),
            (Factor::Bf8, f32::INFINITY, 0x7c, 0x7c),
            (Factor::Fp8, f32::NAN, 0xff, 0xff),
            (Factor::Bf8, f32::NAN, 0xfe, 0xfe),
            (Factor::Fp8Fnuz, 247.9, 0x7f, 0x7f),
            (Factor::Fp8Fnuz, 248.0, 0x80, 0x7f),
            (Factor::Fp8Fnuz, f32::INFINITY, 0x80, 0x7f),
            (Factor::Fp8Fnuz, f32::NAN, 0x80, 0x80),
            (Factor::Bf8Fnuz, 57344.0, 0x7f, 0x7f),
            (Factor::Bf8Fnuz, 61440.0, 0x80, 0x7f),
            (Factor::Bf8Fnuz, f32::NAN, 0x80, 0x80),
        ] {
            for (mode, expected) in [(&m, over), (&most, greatest)] {
                let negative = if value.is_nan() { 0 } else { 0x80 };
                let both = pair(mode, factor, value.to_bits(), (-value).to_bits());
                assert_eq!(both, expected | (expected | negative) << 8, "{factor:?} {value}");
            }
        }
        assert_eq!(stochastic(&m, Factor::Fp8, 449f32.to_bits(), u32::MAX), 0x7f);
        assert_eq!(stochastic(&most, Factor::Fp8, 449f32.to_bits(), u32::MAX), 0x7e);
        // Half the least denormal: up if the first random bit is set.
        let half = 2f32.powi(-10).to_bits();
        assert_eq!(
            [0x7fff_ffff, 0x8000_0000].map(|random| stochastic(&m, Factor::Fp8, half, random)),
            [0, 1]
        );
        // Without negative zeros small negative numbers become the other zero.
        assert_eq!(of_f32(&m, Factor::Fp8Fnuz, (-1e-9f32).to_bits()), 0);
        assert_eq!(of_f32(&m, Factor::Fp8, (-1e-9f32).to_bits()), 0x80);
        // Formats without infinity and NaN have their greatest number.
        let m = Mode::graphics(Gfx::Gfx950);
        let of = |value: f32, scale| narrow(&m, soft::F32, value.to_bits().into(), Factor::Fp4, scale, None);
        assert_eq!(
            [of(1e9, Some(0)), of(-1e9, Some(0)), of(f32::NAN, Some(0)), of(-1.0, None)],
            [7, 15, 7, 15]
        );
        assert_eq!([of(24.0, Some(2)), of(-0.75, Some(-2))], [7, 13]);
    }
}
