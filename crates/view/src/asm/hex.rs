//! Code as text in hexadecimal: words as listings print them, the most significant digit first.
//!
//! Never: bytes in memory order, which the line modes of the instruction sets read.

/// The bytes of words of so many digits, with `0x` before each or without, separated by blanks or commas; several words may
/// be written without anything between them. `None`: the source is something else.
pub fn words(source: &[u8], digits: usize) -> Option<Vec<u8>> {
    read(source, digits, false)
}

/// The same, of words that all have `0x`.
pub fn prefixed_words(source: &[u8], digits: usize) -> Option<Vec<u8>> {
    read(source, digits, true)
}

fn read(source: &[u8], digits: usize, prefixed: bool) -> Option<Vec<u8>> {
    let source = std::str::from_utf8(source).ok()?;
    let mut bytes = Vec::new();
    for token in source.split(|c: char| c.is_whitespace() || c == ',').filter(|token| !token.is_empty()) {
        let bare = token.strip_prefix("0x").or_else(|| token.strip_prefix("0X"));
        let token = if prefixed { bare? } else { bare.unwrap_or(token) };
        if token.is_empty() || !token.len().is_multiple_of(digits) {
            return None;
        }
        for word in token.as_bytes().chunks(digits) {
            let word = std::str::from_utf8(word).ok()?;
            // A sign is not a digit.
            let value = word.bytes().all(|c| c.is_ascii_hexdigit()).then(|| u64::from_str_radix(word, 16));
            bytes.extend(value?.ok()?.to_le_bytes().into_iter().take(digits / 2));
        }
    }
    (!bytes.is_empty()).then_some(bytes)
}

/// A word of up to 64 bits: one to sixteen digits, with `0x` before them or without.
pub fn word(line: &str) -> Option<u64> {
    let digits = line.trim_ascii().as_bytes();
    let digits = digits.strip_prefix(b"0x").or_else(|| digits.strip_prefix(b"0X")).unwrap_or(digits);
    if !(1..=16).contains(&digits.len()) {
        return None;
    }
    digits.iter().try_fold(0, |word, &digit| Some(word << 4 | u64::from(char::from(digit).to_digit(16)?)))
}

/// Words of up to 32 bits between blanks, with `0x` before each or without.
///
/// # Errors
/// The number of the first line with something else, counted from 1.
pub fn short_words(text: &str) -> Result<Vec<u32>, usize> {
    let mut words = Vec::new();
    for (line, text) in text.lines().enumerate() {
        for word in text.split_whitespace() {
            let digits = word.strip_prefix("0x").unwrap_or(word);
            words.push(u32::from_str_radix(digits, 16).map_err(|_| line + 1)?);
        }
    }
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_have_all_their_digits() {
        let bytes = [0x78, 0x56, 0x34, 0x12, 0xef, 0xbe, 0xad, 0xde];
        for text in ["12345678 deadbeef", "0x12345678,\n0xDEADBEEF\n", "12345678deadbeef"] {
            assert_eq!(words(text.as_bytes(), 8).as_deref(), Some(&bytes[..]), "{text}");
        }
        assert_eq!(words(b"deadbeef12345678", 16).as_deref(), Some(&bytes[..]));
        for text in ["", "1234567", "0x", "12345678 s_nop", "+1234567", "0x12345678 1"] {
            assert_eq!(words(text.as_bytes(), 8), None, "{text}");
        }
        assert_eq!(prefixed_words(b"12345678", 8), None);
        assert_eq!(prefixed_words(b"0x12345678", 8).as_deref(), Some(&bytes[..4]));
    }
}
