//! Numbers of assembly text: integers in decimal and hexadecimal, and floats of 16 and 32 bits.

/// Digits read off the front of a text: the value and their count. `None` if there are none, or too many for 64 bits.
pub(super) fn decimal(text: &[u8]) -> Option<(u64, usize)> {
    digits(text, 10)
}

/// Hexadecimal digits, without `0x`.
pub(super) fn hexadecimal(text: &[u8]) -> Option<(u64, usize)> {
    digits(text, 16)
}

/// Decimal, or hexadecimal after `0x`.
pub(super) fn integer(text: &[u8]) -> Option<(u64, usize)> {
    match text {
        [b'0', b'x' | b'X', rest @ ..] => hexadecimal(rest).map(|(value, used)| (value, used + 2)),
        _ => decimal(text),
    }
}

fn digits(text: &[u8], base: u32) -> Option<(u64, usize)> {
    let mut value = 0u64;
    let mut used = 0;
    for &byte in text {
        let Some(digit) = char::from(byte).to_digit(base) else { break };
        value = value.checked_mul(u64::from(base))?.checked_add(u64::from(digit))?;
        used += 1;
    }
    (used > 0).then_some((value, used))
}

/// Longest float text: `%f` of the largest 32-bit float has 47 bytes.
const LONGEST: usize = 64;

/// A float: digits with or without a fraction and an exponent, `nan`, `inf`, each with or without `-`.
pub(super) fn float(text: &[u8]) -> Option<(f64, usize)> {
    let negative = text.first() == Some(&b'-');
    let body = &text[usize::from(negative)..];
    let signed = |value: f64| if negative { -value } else { value };
    for (word, value) in [(&b"nan"[..], f64::NAN), (b"inf", f64::INFINITY)] {
        if body.starts_with(word) {
            return Some((signed(value), usize::from(negative) + word.len()));
        }
    }
    if !body.first()?.is_ascii_digit() {
        return None;
    }
    let mut used = 0;
    for (i, &byte) in body.iter().enumerate().take(LONGEST) {
        let after_exponent = i > 0 && matches!(body[i - 1], b'e' | b'E');
        match byte {
            b'0'..=b'9' | b'.' | b'e' | b'E' => {}
            b'+' | b'-' if after_exponent => {}
            _ => break,
        }
        used = i + 1;
    }
    let value: f64 = std::str::from_utf8(&body[..used]).ok()?.parse().ok()?;
    Some((signed(value), usize::from(negative) + used))
}

/// The bits of a float of 16 or 32 bits.
pub(super) fn float_bits(value: f64, width: u8) -> u64 {
    if width == 16 { half(value) } else { single(value) }
}

/// The bits of a 32-bit float; not-a-number is the quiet one.
pub(super) fn single(value: f64) -> u64 {
    if value.is_nan() {
        return 0x7fc0_0000 | u64::from(value.is_sign_negative()) << 31;
    }
    u64::from((value as f32).to_bits())
}

/// The bits of a 16-bit float, rounded to nearest, ties to even.
fn half(value: f64) -> u64 {
    let sign = u64::from(value.is_sign_negative()) << 15;
    if value.is_nan() {
        return sign | 0x7e00;
    }
    let magnitude = value.abs();
    // Halfway between the largest half float and the power of two above it.
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = ((magnitude.to_bits() >> 52) as i64 - 1023).clamp(-14, 15);
    let unit = f64::from_bits(((exponent - 10 + 1023) as u64) << 52);
    let steps = (magnitude / unit).round_ties_even() as u64;
    // Rounding up to 2048 steps carries into the exponent by itself.
    sign | ((((exponent + 14) as u64) << 10) + steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer(b"255, 1"), Some((255, 3)));
        assert_eq!(integer(b"0xff]"), Some((255, 4)));
        assert_eq!(integer(b"0x"), None);
        assert_eq!(integer(b"r0.x"), None);
        assert_eq!(integer(b"18446744073709551616"), None);
    }

    #[test]
    fn floats() {
        assert_eq!(float(b"0.625000)"), Some((0.625, 8)));
        assert_eq!(float(b"-1.5, "), Some((-1.5, 4)));
        assert_eq!(float(b"2)"), Some((2.0, 1)));
        assert_eq!(float(b"1e-3)"), Some((0.001, 4)));
        assert_eq!(float(b"1/pi)"), Some((1.0, 1)));
        assert_eq!(float(b"e)"), None);
        assert_eq!(float(b"1..2"), None);
        assert!(float(b"-nan)").is_some_and(|(v, used)| v.is_nan() && used == 4));
    }

    #[test]
    fn singles_and_halves() {
        assert_eq!(single(-1.456_763), 0xbfba_7736);
        assert_eq!(single(f64::NAN), 0x7fc0_0000);
        for (value, bits) in [
            (0.0, 0),
            (-0.0, 0x8000),
            (0.5, 0x3800),
            (0.625, 0x3900),
            (1.0, 0x3c00),
            (65504.0, 0x7bff),
            (65520.0, 0x7c00),
            (2f64.powi(-24), 1),
            (2f64.powi(-14), 0x400),
            (1.0 + 2f64.powi(-11), 0x3c00),
            (1.0 + 3.0 * 2f64.powi(-11), 0x3c02),
            (2047.9, 0x6800),
        ] {
            assert_eq!(half(value), bits, "{value}");
        }
    }
}
