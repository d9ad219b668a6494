//! Numbers of 8 bits: FP8 with 4 bits of exponent and no infinity, BF8 with 5. Rounded to the nearest even in every mode.
//!
//! What a conversion makes of NaN, and how it adds random bits to denormals, are facts of a public emulator that was compared
//! with gfx1201.

use super::Mode;
use super::soft::{self, Env, Finite, Round, SoftNumber};

/// An 8-bit format.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Small {
    fraction: u32,
    bias: i32,
    /// The greatest finite number.
    greatest: u32,
    /// Whether there is an infinity above it.
    infinite: bool,
}

/// `s.eeee.mmm`: all ones is the NaN.
pub(super) const FP8: Small = Small { fraction: 3, bias: 7, greatest: 0x7e, infinite: false };
/// `s.eeeee.mm`: as the 16-bit format.
pub(super) const BF8: Small = Small { fraction: 2, bias: 15, greatest: 0x7b, infinite: true };

/// The low byte as 32 bits.
pub(super) fn to_f32(small: Small, byte: u32) -> u32 {
    let (negative, magnitude) = (byte & 0x80 != 0, byte & 0x7f);
    let sign = u32::from(negative) << 31;
    if magnitude > small.greatest {
        let infinite = small.infinite && magnitude == small.greatest + 1;
        return sign | if infinite { soft::F32.infinity() } else { soft::F32.nan() } as u32;
    }
    let (biased, fraction) = (magnitude >> small.fraction, magnitude & ((1 << small.fraction) - 1));
    let significand = fraction | u32::from(biased != 0) << small.fraction;
    let exponent = biased.max(1) as i32 - small.bias - small.fraction as i32;
    let value = Finite { negative, exponent, significand: significand.into() };
    soft::F32.round(value, Env::IEEE) as u32
}

/// The low two bytes.
pub(super) fn pair_to_f32(small: Small, bytes: u32) -> u64 {
    u64::from(to_f32(small, bytes & 0xff)) | u64::from(to_f32(small, bytes >> 8 & 0xff)) << 32
}

/// Rounds a number; what is too great becomes infinity or, without one, NaN, or the greatest number if the mode says so.
fn round(m: &Mode, small: Small, number: SoftNumber) -> u32 {
    match number {
        // Whatever its sign.
        SoftNumber::Nan(_) => 0xff - u32::from(small.infinite),
        SoftNumber::Infinite(negative) => u32::from(negative) << 7 | (small.greatest + 1),
        SoftNumber::Finite(value) => {
            let most = small.greatest + u32::from(!m.saturate_16);
            u32::from(value.negative) << 7 | magnitude(small, value).min(most)
        }
    }
}

/// The bits of a number, to the nearest even, as if exponents had no end.
fn magnitude(small: Small, value: Finite) -> u32 {
    if value.significand == 0 {
        return 0;
    }
    let least = 1 - small.bias;
    let (unit, kept) = value.rounded(least, small.fraction, Round::NearestEven);
    let biased = (unit + small.fraction as i32 - least) as u32;
    (biased.min(0x100) << small.fraction) + kept as u32
}

fn of_f32(m: &Mode, small: Small, bits: u32) -> u32 {
    round(m, small, soft::F32.unpack(bits.into(), false))
}

/// Two numbers in the low two bytes.
pub(super) fn pair(m: &Mode, small: Small, a: u32, b: u32) -> u32 {
    of_f32(m, small, a) | of_f32(m, small, b) << 8
}

/// One number, rounded up as often as the bits that are cut are greater than random ones. Of what is less than the least normal
/// number the bits that the random ones have no place for are lost before.
pub(super) fn stochastic(m: &Mode, small: Small, a: u32, random: u32) -> u32 {
    match soft::F32.unpack(a.into(), false) {
        SoftNumber::Finite(value) if value.significand != 0 => {
            let cut = 23 - small.fraction;
            let least = 1 - small.bias - 23;
            let lost = (least - value.exponent).max(0) as u32;
            let added = value.significand.unbounded_shr(lost) + u128::from(random >> (32 - cut));
            let kept =
                Finite { significand: added >> cut << cut, exponent: value.exponent.max(least), ..value };
            round(m, small, SoftNumber::Finite(kept))
        }
        other => round(m, small, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;

    #[test]
    fn every_byte_and_back() {
        for small in [FP8, BF8] {
            for byte in 0..=0xffu32 {
                let wide = to_f32(small, byte);
                let nan = f32::from_bits(wide).is_nan();
                let again = of_f32(&Mode::graphics(Gfx::Gfx12), small, wide);
                assert!(
                    again == byte || nan && to_f32(small, again) & 0x7fc0_0000 == 0x7fc0_0000,
                    "{byte:#x}"
                );
            }
        }
        assert_eq!(to_f32(FP8, 0x7e), 448f32.to_bits());
        let m = Mode::graphics(Gfx::Gfx12);
        let most = Mode { saturate_16: true, ..m };
        for (small, value, over, greatest) in [
            (FP8, 463.9f32, 0x7e, 0x7e),
            (FP8, 464.0, 0x7e, 0x7e),
            (FP8, 464.1, 0x7f, 0x7e),
            (FP8, 1e9, 0x7f, 0x7e),
            (FP8, f32::INFINITY, 0x7f, 0x7f),
            (BF8, 57344.0, 0x7b, 0x7b),
            (BF8, 61440.0, 0x7c, 0x7b),
            (BF8, 1e30, 0x7c, 0x7b),
            (BF8, f32::INFINITY, 0x7c, 0x7c),
            (FP8, f32::NAN, 0xff, 0xff),
            (BF8, f32::NAN, 0xfe, 0xfe),
        ] {
            let negative = if value.is_nan() { 0 } else { 0x80 };
            for (mode, expected) in [(&m, over), (&most, greatest)] {
                let both = pair(mode, small, value.to_bits(), (-value).to_bits());
                assert_eq!(both, expected | (expected | negative) << 8, "{value}");
            }
        }
        assert_eq!(stochastic(&m, FP8, 449f32.to_bits(), u32::MAX), 0x7f);
        assert_eq!(stochastic(&most, FP8, 449f32.to_bits(), u32::MAX), 0x7e);
        // Half the least denormal: up if the first random bit is set.
        let half = 2f32.powi(-10).to_bits();
        assert_eq!([0x7fff_ffff, 0x8000_0000].map(|random| stochastic(&m, FP8, half, random)), [0, 1]);
    }
}
