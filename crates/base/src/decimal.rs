//! Numbers as decimal text, where the formatting machinery would be most of the work.

use std::io::Write;

/// Decimals printed.
const PLACES: usize = 6;
const SCALE: f64 = 1e6;
/// Bits at the end of a double's fraction that must be zero for its product with [`SCALE`] (14 significant bits) to be
/// exact.
const SPARE: u32 = 14;
/// Products below this are whole numbers exactly.
const EXACT: f64 = (1_u64 << 53) as f64;

/// Appends a number as C's `%f` does: six decimals, ties to even, `inf`, and `nan` with the sign of its bits.
pub fn push_f64(out: &mut Vec<u8>, value: f64) {
    if value.is_nan() {
        return out.extend_from_slice(if value.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    let scaled = value.abs() * SCALE;
    if value.to_bits().trailing_zeros() < SPARE || scaled >= EXACT {
        // Writing to a vector cannot fail.
        let _ = write!(out, "{value:.PLACES$}");
        return;
    }
    let mut rest = scaled.round_ties_even() as u64;
    let mut digits = [0; 20];
    let mut at = digits.len();
    while at > digits.len() - PLACES - 1 || rest != 0 {
        if at == digits.len() - PLACES {
            at -= 1;
            digits[at] = b'.';
        }
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    if value.is_sign_negative() {
        at -= 1;
        digits[at] = b'-';
    }
    out.extend_from_slice(&digits[at..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: f64) -> String {
        let mut out = Vec::new();
        push_f64(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn as_the_formatting_machinery_has_it() {
        let mut bits: u32 = 1;
        for _ in 0..200_000 {
            bits = bits.wrapping_mul(0x9e37_79b1).wrapping_add(0x1234_5679);
            let single = f32::from_bits(bits);
            if single.is_nan() {
                continue;
            }
            for value in [f64::from(single), f64::from((bits >> 8) as f32 / 4096.0), f64::from(bits) / 3.0] {
                assert_eq!(text(value), format!("{value:.6}"), "{value:e}");
            }
        }
    }

    #[test]
    fn edges() {
        for (value, expected) in [
            (0.0, "0.000000"),
            (-0.0, "-0.000000"),
            (1.0, "1.000000"),
            (-20000.5, "-20000.500000"),
            (0.0078125, "0.007812"),
            (0.0234375, "0.023438"),
            (9.5e-7, "0.000001"),
            (9_007_199_254.0, "9007199254.000000"),
            (1e20, "100000000000000000000.000000"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
            (-f64::NAN, "-nan"),
        ] {
            assert_eq!(text(value), expected);
        }
    }
}
