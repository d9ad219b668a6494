//! Values of options as they are spelled: sizes, ranges, addresses. Never: which option it is.

use std::ops::RangeInclusive;
use std::time::Duration;

/// `4096`, `64K`, `512M`, `4G`: bytes.
///
/// # Errors
/// When it is not such a number, or has more than 64 bits.
pub fn size(text: &str) -> Result<u64, String> {
    let number = text.trim_end_matches(['B', 'b']);
    let shift = match number.as_bytes().last() {
        Some(b'K' | b'k') => 10,
        Some(b'M' | b'm') => 20,
        Some(b'G' | b'g') => 30,
        _ => 0,
    };
    let digits = if shift == 0 { number } else { &number[..number.len() - 1] };
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(1 << shift))
        .ok_or_else(|| "expected a number of bytes such as 512M".to_owned())
}

/// Reads a time: `90s`, `5m`, `12h`, `30d`; a number alone is seconds.
///
/// # Errors
/// When it is something else, zero, or longer than can be counted.
pub fn duration(text: &str) -> Result<Duration, String> {
    let (digits, seconds) = match text.as_bytes().last() {
        Some(b's') => (&text[..text.len() - 1], 1),
        Some(b'm') => (&text[..text.len() - 1], 60),
        Some(b'h') => (&text[..text.len() - 1], 3600),
        Some(b'd') => (&text[..text.len() - 1], 86_400),
        _ => (text, 1),
    };
    let number = digits.parse::<f64>().ok().filter(|number| *number > 0.0);
    let time = number.and_then(|number| Duration::try_from_secs_f64(number * f64::from(seconds)).ok());
    time.filter(|time| !time.is_zero())
        .ok_or_else(|| "expected a time such as 0.5s, 5m, 12h or 30d".to_owned())
}

/// `3`, `3..5`, `3..`, `..5`: numbers, both ends included.
///
/// # Errors
/// When it is neither, or ends before it starts.
pub fn range(text: &str) -> Result<RangeInclusive<u32>, String> {
    let expected = || "expected a number or a range such as 3..5, 3.. or ..5".to_owned();
    let number = |text: &str, none: u32| match text {
        "" => Ok(none),
        _ => text.parse().map_err(|_| expected()),
    };
    let (first, last) = match text.split_once("..") {
        Some((first, last)) => (number(first, 0)?, number(last.trim_start_matches('='), u32::MAX)?),
        None => text.parse().map(|n| (n, n)).map_err(|_| expected())?,
    };
    if first > last {
        Err(format!("the range ends before it starts: {last} is less than {first}"))
    } else {
        Ok(first..=last)
    }
}

/// `0x100020000`: hexadecimal with or without its prefix.
///
/// # Errors
/// When it is not such a number, or has more than 64 bits.
pub fn address(text: &str) -> Result<u64, String> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    u64::from_str_radix(digits, 16).map_err(|_| "expected an address such as 0x100020000".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("64K"), Ok(65536));
        assert_eq!(size("4GB"), Ok(4 << 30));
        for bad in ["", "G", "1T", "-1", "99999999999G"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations() {
        for (text, millis) in
            [("90", 90_000), ("0.5s", 500), ("5m", 300_000), ("2h", 7_200_000), ("1d", 86_400_000)]
        {
            assert_eq!(duration(text), Ok(Duration::from_millis(millis)), "{text}");
        }
        for bad in ["", "s", "0", "-1s", "1w", "inf", "nan", "1e300d"] {
            assert!(duration(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!(range("3"), Ok(3..=3));
        assert_eq!(range("3..5"), Ok(3..=5));
        assert_eq!(range("3.."), Ok(3..=u32::MAX));
        assert_eq!(range("..5"), Ok(0..=5));
        for bad in ["", "a", "5..3", "1-2", "-1"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}
