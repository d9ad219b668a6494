//! Values of options as they are spelled: sizes, ranges, addresses. Never: which option it is.

use std::ops::RangeInclusive;

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
