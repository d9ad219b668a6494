//! Numbers in the encodings of texels, to and from `f32`.
//!
//! Rounding is to the nearest, ties to even; values out of range are clamped; NaN becomes 0 where an encoding has none. That is how
//! Vulkan has it, or one of the ways it allows. What Adreno does where there is a choice was not measured.

include!(concat!(env!("OUT_DIR"), "/srgb.rs"));

/// The greatest value of `bits` bits.
fn greatest(bits: u32) -> u32 {
    u32::MAX >> (32 - bits.clamp(1, 32))
}

/// `code / (2^bits - 1)`.
pub(super) fn unorm_to_f32(code: u32, bits: u32) -> f32 {
    if bits <= 24 {
        return code as f32 / greatest(bits) as f32;
    }
    (f64::from(code) / f64::from(greatest(bits))) as f32
}

/// The nearest code of an unsigned normalized number.
pub(super) fn f32_to_unorm(value: f32, bits: u32) -> u32 {
    if value >= 1.0 {
        return greatest(bits);
    }
    // NaN is not greater than 0.
    if value > 0.0 { scaled(value, greatest(bits)) } else { 0 }
}

/// [`f32_to_unorm`] of eight bits, without branches.
#[inline]
#[expect(clippy::manual_clamp, reason = "clamp keeps NaN, which becomes 0 here")]
pub(super) fn f32_to_unorm8(value: f32) -> u8 {
    rounded(without_last_bit(value.max(0.0).min(1.0) * 255.0)) as u8
}

/// `value * factor`, rounded; value is between 0 and 1. The product is one of single precision where the code fits into that; of
/// codes of 16 bits or fewer its last bit does not count, so that a value next to a tie is a tie.
fn scaled(value: f32, factor: u32) -> u32 {
    match factor {
        ..=0xffff => rounded(without_last_bit(value * factor as f32)),
        0x1_0000..=0x3f_ffff => rounded(value * factor as f32),
        0x40_0000..=0xff_ffff => (value * factor as f32).round_ties_even() as u32,
        _ => (f64::from(value) * f64::from(factor)).round_ties_even() as u32,
    }
}

/// A positive number rounded to a mantissa of 22 bits, ties to even.
#[inline]
fn without_last_bit(value: f32) -> f32 {
    let bits = value.to_bits();
    f32::from_bits((bits + (bits >> 1 & 1)) & !1)
}

/// The nearest whole number of one between 0 and 2^22, the even one of two.
#[inline]
fn rounded(value: f32) -> u32 {
    // From here on floats are whole numbers, so that the sum is rounded.
    const WHOLE: f32 = (1 << 23) as f32;
    (value + WHOLE).to_bits() & 0x7f_ffff
}

/// `code / (2^(bits - 1) - 1)`, at least -1. `code` is sign-extended.
pub(super) fn snorm_to_f32(code: i32, bits: u32) -> f32 {
    let most = greatest(bits - 1);
    if bits <= 24 {
        return (code as f32 / most as f32).max(-1.0);
    }
    (f64::from(code) / f64::from(most)).max(-1.0) as f32
}

/// The nearest code of a signed normalized number.
pub(super) fn f32_to_snorm(value: f32, bits: u32) -> i32 {
    let most = greatest(bits - 1);
    let magnitude = f32_to_unorm_of(value.abs(), most);
    if value < 0.0 { -(magnitude as i32) } else { magnitude as i32 }
}

fn f32_to_unorm_of(value: f32, most: u32) -> u32 {
    if value >= 1.0 {
        return most;
    }
    if value > 0.0 { scaled(value, most) } else { 0 }
}

/// The nearest whole number, clamped to `bits` bits.
pub(super) fn f32_to_uint(value: f32, bits: u32) -> u32 {
    (f64::from(value).round_ties_even() as u32).min(greatest(bits))
}

/// The nearest whole number, clamped to `bits` bits with sign.
pub(super) fn f32_to_sint(value: f32, bits: u32) -> i32 {
    clamp_sint(f64::from(value).round_ties_even() as i32, bits)
}

/// A whole number in `bits` bits with sign.
pub(super) fn clamp_sint(value: i32, bits: u32) -> i32 {
    let most = greatest(bits - 1) as i32;
    value.clamp(-most - 1, most)
}

/// A whole number in `bits` bits.
pub(super) fn clamp_uint(value: u32, bits: u32) -> u32 {
    value.min(greatest(bits))
}

/// The number of an unsigned float with 5 bits of exponent and `mantissa` bits below: 10 in half floats, 6 and 5 in R11G11B10.
pub(super) fn small_to_f32(code: u32, mantissa: u32) -> f32 {
    let fraction = code & greatest(mantissa);
    match code >> mantissa & 31 {
        0 => fraction as f32 / (1u32 << (14 + mantissa)) as f32,
        31 => f32::from_bits(0x7f80_0000 | fraction << (23 - mantissa)),
        exponent => f32::from_bits((exponent + 112) << 23 | fraction << (23 - mantissa)),
    }
}

/// The nearest unsigned float with 5 bits of exponent, sign ignored. Finite values beyond the greatest become `beyond`.
fn f32_to_small(value: f32, mantissa: u32, beyond: u32) -> u32 {
    let bits = value.to_bits() & 0x7fff_ffff;
    let infinity = 31 << mantissa;
    if bits >= 0x7f80_0000 {
        // A NaN stays one when its low bits are lost.
        let fraction = bits & 0x7f_ffff;
        let kept = fraction >> (23 - mantissa);
        return infinity | if fraction != 0 && kept == 0 { 1 << (mantissa - 1) } else { kept };
    }
    let exponent = (bits >> 23) as i32 - 112;
    let digits = bits & 0x7f_ffff | 0x80_0000;
    let shift = 23 - mantissa + (1 - exponent).max(0) as u32;
    if shift > 25 {
        return 0;
    }
    let whole = digits >> shift;
    let rest = digits & greatest(shift);
    let half = 1 << (shift - 1);
    let rounded = whole + u32::from(rest > half || (rest == half && whole & 1 == 1));
    // The leading digit of normal numbers adds 1 to the exponent.
    let code = rounded + ((exponent - 1).max(0) as u32).min(31) * (1 << mantissa);
    if code >= infinity { beyond } else { code }
}

/// The number of a half float.
pub fn f16_to_f32(code: u16) -> f32 {
    let magnitude = small_to_f32(u32::from(code) & 0x7fff, 10);
    f32::from_bits(magnitude.to_bits() | (u32::from(code) & 0x8000) << 16)
}

/// The nearest half float; infinity beyond the greatest.
pub fn f32_to_f16(value: f32) -> u16 {
    let sign = value.to_bits() >> 16 & 0x8000;
    (sign | f32_to_small(value, 10, 0x7c00)) as u16
}

/// The nearest unsigned float of 11 or 10 bits. Negative numbers become 0, finite ones beyond the greatest become that.
pub(super) fn f32_to_unsigned_small(value: f32, mantissa: u32) -> u32 {
    if value.is_nan() {
        return 31 << mantissa | 1 << (mantissa - 1);
    }
    if value > 0.0 { f32_to_small(value, mantissa, (31 << mantissa) - 1) } else { 0 }
}

/// Red, green and blue of a texel with one exponent.
pub(super) fn rgb9e5_to_f32(code: u32) -> [f32; 3] {
    // The exponent is at most 31: 511 * 2^7.
    let scale = f32::from_bits(((code >> 27) + 127 - 24) << 23);
    [code, code >> 9, code >> 18].map(|mantissa| (mantissa & 0x1ff) as f32 * scale)
}

/// The texel with one exponent of red, green and blue, as the OpenGL extension for it defines: halves are rounded up.
pub(super) fn f32_to_rgb9e5(rgb: [f32; 3]) -> u32 {
    const GREATEST: f32 = 65408.0;
    let rgb = rgb.map(|value| if value > 0.0 { value.min(GREATEST) } else { 0.0 });
    let most = rgb[0].max(rgb[1]).max(rgb[2]);
    // floor(log2(most)) + 1 + 15; that of denormals is below the least exponent anyway.
    let mut exponent = ((most.to_bits() >> 23) as i32 - 127).max(-16) + 16;
    let mantissa =
        |value: f32, exponent: i32| (f64::from(value) * 2f64.powi(24 - exponent) + 0.5).floor() as u32;
    if mantissa(most, exponent) == 512 {
        exponent += 1;
    }
    let [r, g, b] = rgb.map(|value| mantissa(value, exponent));
    (exponent as u32) << 27 | b << 18 | g << 9 | r
}

/// The linear value of a code of 8 bits on the sRGB curve.
pub fn srgb8_to_linear(code: u8) -> f32 {
    f32::from_bits(TO_LINEAR[usize::from(code)])
}

/// The code of 8 bits on the sRGB curve that is nearest to a linear value.
pub fn linear_to_srgb8(value: f32) -> u8 {
    // Bits of positive floats are in their order; NaN is not greater than 0.
    if value > 0.0 { STEPS.partition_point(|&step| step <= value.to_bits()) as u8 } else { 0 }
}

/// The linear value of any number from 0 to 1 on the sRGB curve.
pub(super) fn srgb_to_linear(value: f32) -> f32 {
    let s = f64::from(value);
    let linear = if s <= 0.04045 { s / 12.92 } else { ((s + 0.055) / 1.055).powf(2.4) };
    linear as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_without_branches_are_those_with_them() {
        let halves = (0..=510).map(|n| n as f32 / 510.0);
        let near = halves
            .flat_map(|value| [-1, 0, 1].map(|by| f32::from_bits((value.to_bits() as i32 + by) as u32)));
        let odd = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, -1.0, 1e-40, 2.0, 3e38];
        for value in near.chain(odd) {
            assert_eq!(u32::from(f32_to_unorm8(value)), f32_to_unorm(value, 8), "{value}");
        }
        for factor in [0x1_ffff, 0x3f_ffff] {
            for n in 0..4096 {
                let value = n as f32 / 4096.0;
                assert_eq!(scaled(value, factor), (value * factor as f32).round_ties_even() as u32);
            }
        }
    }

    #[test]
    fn every_half_float_survives() {
        for code in 0..=u16::MAX {
            let value = f16_to_f32(code);
            let (exponent, fraction) = (code >> 10 & 31, code & 0x3ff);
            let exact = match (exponent, fraction) {
                (31, 0) => f64::INFINITY,
                (31, _) => f64::NAN,
                (0, _) => f64::from(fraction) * 2f64.powi(-24),
                _ => (1.0 + f64::from(fraction) / 1024.0) * 2f64.powi(i32::from(exponent) - 15),
            };
            let exact = if code >> 15 == 1 { -exact } else { exact };
            assert!(f64::from(value) == exact || exact.is_nan() && value.is_nan(), "{code:#x}");
            assert_eq!(f32_to_f16(value), code);
        }
    }

    /// Of any float the nearest half, found by comparing distances.
    #[test]
    fn halves_are_the_nearest() {
        let halves: Vec<f64> = (0..0x7c00u16).map(|code| f64::from(f16_to_f32(code))).collect();
        let mut seed = 1u32;
        for _ in 0..20_000 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Exponents around those of halves.
            let value = f32::from_bits((seed >> 9) | (98 + seed % 46) << 23);
            let code = usize::from(f32_to_f16(value));
            if f64::from(value) >= 65520.0 {
                assert_eq!(code, 0x7c00, "{value}");
                continue;
            }
            let distance =
                |code: usize| (halves.get(code).copied().unwrap_or(65536.0) - f64::from(value)).abs();
            let best =
                [code.saturating_sub(1), code, code + 1].map(distance).into_iter().fold(f64::MAX, f64::min);
            assert_eq!(distance(code), best, "{value}");
            if code > 0 && (distance(code) == distance(code - 1) || distance(code) == distance(code + 1)) {
                assert_eq!(code % 2, 0, "{value}");
            }
        }
    }

    #[test]
    fn unsigned_small_floats_survive_and_clamp() {
        for mantissa in [5, 6] {
            for code in 0..32 << mantissa {
                let value = small_to_f32(code, mantissa);
                let back = f32_to_unsigned_small(value, mantissa);
                assert!(back == code || value.is_nan() && back >> mantissa == 31, "{code:#x}");
            }
            let greatest = (31 << mantissa) - 1;
            assert_eq!(f32_to_unsigned_small(1e30, mantissa), greatest);
            assert_eq!(f32_to_unsigned_small(f32::INFINITY, mantissa), greatest + 1);
            assert_eq!(f32_to_unsigned_small(-1.0, mantissa), 0);
        }
        assert_eq!(small_to_f32((31 << 6) - 1, 6), 65024.0);
        assert_eq!(small_to_f32((31 << 5) - 1, 5), 64512.0);
    }

    #[test]
    fn normalized_numbers_of_up_to_16_bits_survive() {
        for bits in 1..=16 {
            for code in 0..=greatest(bits) {
                let value = unorm_to_f32(code, bits);
                assert_eq!(f64::from(value), f64::from((f64::from(code) / f64::from(greatest(bits))) as f32));
                assert_eq!(f32_to_unorm(value, bits), code);
            }
        }
        for bits in 2..=16 {
            let most = greatest(bits - 1) as i32;
            for code in -most..=most {
                assert_eq!(f32_to_snorm(snorm_to_f32(code, bits), bits), code);
            }
            assert_eq!(snorm_to_f32(-most - 1, bits), -1.0);
        }
    }

    /// Against the same in floats of twice the width, whose products are exact: what the product of single precision and its
    /// last bit lost is all that may be between them.
    #[test]
    fn rounding_is_to_the_nearest() {
        let mut seed = 7u32;
        for round in 0..200_000u32 {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits((seed >> 9) | (96 + round % 31) << 23);
            for bits in [1, 2, 5, 8, 10, 16, 24] {
                let exact = (f64::from(value) * f64::from(greatest(bits))).min(f64::from(greatest(bits)));
                let lost = exact * 2f64.powi(if bits <= 16 { -22 } else { -24 });
                let apart = (f64::from(f32_to_unorm(value, bits)) - exact).abs();
                assert!(apart <= 0.5 + lost, "{value} {bits}: {apart}");
            }
        }
        // So near to halfway that single precision does not tell.
        assert_eq!((f32_to_unorm(0.3, 8), f32_to_unorm(0.1, 8)), (76, 26));
        // As a division and as the product with a reciprocal.
        assert_eq!((f32_to_unorm(5.0 / 6.0, 8), f32_to_unorm(5.0 * (1.0 / 6.0), 8)), (212, 212));
        // 0.5 * 255 and 0.5 * 1 are halfway.
        assert_eq!((f32_to_unorm(0.5, 8), f32_to_unorm(0.5, 1)), (128, 0));
        assert_eq!((f32_to_unorm(f32::NAN, 8), f32_to_snorm(f32::NAN, 8)), (0, 0));
        assert_eq!((f32_to_unorm(f32::INFINITY, 32), f32_to_snorm(-9.0, 8)), (u32::MAX, -127));
        assert_eq!(f32_to_unorm(f32::from_bits(1), 32), 0);
    }

    #[test]
    fn the_srgb_curve() {
        for code in 0..=255 {
            assert_eq!(linear_to_srgb8(srgb8_to_linear(code)), code);
        }
        assert_eq!((srgb8_to_linear(0), srgb8_to_linear(255)), (0.0, 1.0));
        assert_eq!([f32::NAN, -1.0, 2.0, f32::INFINITY].map(linear_to_srgb8), [0, 0, 255, 255]);
        // Against the formula of the other direction.
        for step in 0..100_000u32 {
            let value = step as f32 / 100_000.0;
            let l = f64::from(value);
            let s = if l <= 0.003_130_8 { l * 12.92 } else { 1.055 * l.powf(1.0 / 2.4) - 0.055 };
            let exact = s * 255.0;
            let code = f64::from(linear_to_srgb8(value));
            assert!((code - exact).abs() <= 0.501, "{value}: {code}, not {exact}");
        }
    }

    #[test]
    fn shared_exponents() {
        for code in [0, 0x1ff, 0x8040_2010, 0xffff_ffff, 0x7ac3_5a9f] {
            let rgb = rgb9e5_to_f32(code);
            assert_eq!(rgb9e5_to_f32(f32_to_rgb9e5(rgb)), rgb, "{code:#x}");
        }
        assert_eq!(rgb9e5_to_f32(0xffff_ffff), [65408.0; 3]);
        assert_eq!(f32_to_rgb9e5([1e9, f32::NAN, -1.0]), 31 << 27 | 0x1ff);
        // 511.5 / 512 rounds up to the next exponent.
        assert_eq!(rgb9e5_to_f32(f32_to_rgb9e5([0.9995, 0.0, 0.0])), [1.0, 0.0, 0.0]);
    }
}
