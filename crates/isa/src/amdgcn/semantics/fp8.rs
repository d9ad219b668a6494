//! Numbers of 8 bits: FP8 with 4 bits of exponent and no infinity, BF8 with 5. Rounded to the nearest even in every mode.

use super::soft::{self, Env, Finite, Number, Round};

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

/// Rounds a number; what is too great is the greatest if it was finite.
fn round(small: Small, number: Number) -> u32 {
    match number {
        Number::Nan(_) => 0x7f,
        Number::Infinite(negative) => {
            u32::from(negative) << 7 | if small.infinite { small.greatest + 1 } else { 0x7f }
        }
        Number::Finite(value) => {
            let magnitude = magnitude(small, value);
            u32::from(value.negative) << 7 | magnitude.min(small.greatest)
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

fn of_f32(small: Small, bits: u32) -> u32 {
    round(small, soft::F32.unpack(bits.into(), false))
}

/// Two numbers in the low two bytes.
pub(super) fn pair(small: Small, a: u32, b: u32) -> u32 {
    of_f32(small, a) | of_f32(small, b) << 8
}

/// One number, rounded up as often as the bits that are cut are greater than random ones.
pub(super) fn stochastic(small: Small, a: u32, random: u32) -> u32 {
    match soft::F32.unpack(a.into(), false) {
        Number::Finite(value) if value.significand != 0 => {
            let cut = 23 - small.fraction;
            let added = value.significand + u128::from(random >> (32 - cut));
            let kept = Finite { significand: added >> cut << cut, ..value };
            round(small, Number::Finite(kept))
        }
        other => round(small, other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_and_back() {
        for small in [FP8, BF8] {
            for byte in 0..=0xffu32 {
                let wide = to_f32(small, byte);
                let nan = f32::from_bits(wide).is_nan();
                let again = of_f32(small, wide);
                assert!(
                    again == byte || nan && to_f32(small, again) & 0x7fc0_0000 == 0x7fc0_0000,
                    "{byte:#x}"
                );
            }
        }
        assert_eq!(to_f32(FP8, 0x7e), 448f32.to_bits());
        assert_eq!(of_f32(FP8, 1e9f32.to_bits()), 0x7e);
        assert_eq!(of_f32(BF8, 57344f32.to_bits()), 0x7b);
    }
}
