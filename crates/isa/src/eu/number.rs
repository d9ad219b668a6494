//! Floats of small formats, and numbers as C's `%g` prints them.

/// `%g`: six significant digits, without trailing zeros.
pub fn push_g(out: &mut String, value: f64) {
    use std::fmt::Write as _;
    if value.is_nan() || value.is_infinite() {
        if value.is_sign_negative() {
            out.push('-');
        }
        out.push_str(if value.is_nan() { "nan" } else { "inf" });
        return;
    }
    if value == 0.0 {
        out.push_str(if value.is_sign_negative() { "-0" } else { "0" });
        return;
    }
    if value.abs() < 100_000.0 && value.trunc() == value {
        let _ = write!(out, "{}", value as i32);
        return;
    }
    let scientific = format!("{value:.5e}");
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        let digits = usize::try_from(5 - exponent).unwrap_or(0);
        let fixed = format!("{value:.digits$}");
        out.push_str(trimmed(&fixed));
    } else {
        out.push_str(trimmed(mantissa));
        let sign = if exponent < 0 { '-' } else { '+' };
        let _ = write!(out, "e{sign}{:02}", exponent.abs());
    }
}

/// Without zeros at the end of the fraction.
fn trimmed(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// A half float's value.
pub fn half(bits: u16) -> f64 {
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
pub fn vf(bits: u8) -> f64 {
    let sign = if bits & 0x80 == 0 { 1.0 } else { -1.0 };
    if bits & 0x7f == 0 {
        return 0.0 * sign;
    }
    sign * (16.0 + f64::from(bits & 15)) * 2f64.powi(i32::from(bits >> 4 & 7) - 7)
}
