//! Floats of small formats, and numbers as C's `%g` prints them.

use super::text::Text;
use std::io::Write as _;

/// `%g`: six significant digits, without trailing zeros.
pub(super) fn push_g(text: &mut Text, value: f64) {
    const FIXED: std::ops::Range<i32> = -4..6;
    if value.is_sign_negative() {
        text.push_byte(b'-');
    }
    let value = value.abs();
    if value.is_nan() || value.is_infinite() {
        text.push(if value.is_nan() { "nan" } else { "inf" });
        return;
    }
    if value < 100_000.0 && value.trunc() == value {
        text.number(value as u64);
        return;
    }
    if push_short(text, value) {
        return;
    }
    // `d.ddddde-X` in a buffer that holds any exponent.
    let mut buffer = [0; 24];
    let mut rest = &mut buffer[..];
    let _ = write!(rest, "{value:.5e}");
    let left = rest.len();
    let written = std::str::from_utf8(&buffer[..buffer.len() - left]).unwrap_or("0.00000e0");
    let (mantissa, exponent) = written.split_once('e').unwrap_or((written, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut digits = [b'0'; 6];
    for (digit, byte) in digits.iter_mut().zip(mantissa.bytes().filter(u8::is_ascii_digit)) {
        *digit = byte;
    }
    let count = digits.iter().rposition(|&digit| digit != b'0').map_or(1, |last| last + 1);
    if !FIXED.contains(&exponent) {
        push_digits(text, &digits, count, 1);
        text.push(if exponent < 0 { "e-" } else { "e+" });
        if exponent.abs() < 10 {
            text.push_byte(b'0');
        }
        text.number(u64::from(exponent.unsigned_abs()));
    } else if exponent < 0 {
        text.push("0.");
        for _ in exponent..-1 {
            text.push_byte(b'0');
        }
        push_digits(text, &digits, count, count);
    } else {
        push_digits(text, &digits, count, exponent as usize + 1);
    }
}

/// A number that six digits say exactly, the last of them at most the fifth after the point. Such constants are the usual ones.
fn push_short(text: &mut Text, value: f64) -> bool {
    const SCALE: f64 = 100_000.0;
    let mut scaled = value * SCALE;
    // The product is exact where the value has the bits of a float of 32.
    if f64::from(value as f32) != value || scaled.trunc() != scaled || !(10.0..1e10).contains(&scaled) {
        return false;
    }
    let mut places = 5;
    let ten = 10.0;
    while places > 0 && (scaled / ten).trunc() * ten == scaled {
        scaled /= ten;
        places -= 1;
    }
    if scaled >= 1e6 {
        return false;
    }
    let power = 10u64.pow(places);
    let digits = scaled as u64;
    text.number(digits / power);
    text.push_byte(b'.');
    for place in (0..places).rev() {
        text.number(digits / 10u64.pow(place) % 10);
    }
    true
}

/// Digits, with a point after the first `whole`.
fn push_digits(text: &mut Text, digits: &[u8; 6], count: usize, whole: usize) {
    for (index, &digit) in digits.iter().enumerate().take(count.max(whole)) {
        if index == whole {
            text.push_byte(b'.');
        }
        text.push_byte(digit);
    }
}

/// A half float's value.
pub(super) fn half(bits: u16) -> f64 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let fraction = f64::from(bits & 0x3ff);
    match bits >> 10 & 31 {
        0 => sign * fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => sign * f64::INFINITY,
        31 => f64::NAN.copysign(sign),
        exponent => sign * (1024.0 + fraction) * 2f64.powi(i32::from(exponent) - 25),
    }
}

/// The value of one of the four floats of a `VF`: sign, 3 exponent bits, 4 mantissa bits.
pub(super) fn vf(bits: u8) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    if bits & 0x7f == 0 {
        return 0.0 * sign;
    }
    sign * (16.0 + f64::from(bits & 15)) * 2f64.powi(i32::from(bits >> 4 & 7) - 7)
}
