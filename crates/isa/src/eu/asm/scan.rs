//! What a text is made of: white space and comments, words, numbers, names of a table.

use super::super::key;
use super::super::tables::{TYPE_KEYS, TYPES, Type};
use super::{AsmError, Parser};

impl<'a> Parser<'a> {
    /// Skips white space and comments.
    #[inline]
    pub(super) fn space(&mut self) {
        loop {
            self.take(|c| c.is_ascii_whitespace());
            if !self.rest.starts_with("/*") {
                return;
            }
            match self.rest.split_once("*/") {
                Some((_, rest)) => self.rest = rest,
                None => return,
            }
        }
    }

    #[cold]
    pub(super) fn error<T>(&self, what: &'static str) -> Result<T, AsmError> {
        Err(AsmError::Expected(what, self.rest.chars().take(24).collect()))
    }

    #[inline]
    pub(super) fn eat(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    #[inline]
    pub(super) fn expect(&mut self, text: &'static str) -> Result<(), AsmError> {
        if self.eat(text) { Ok(()) } else { self.error(text) }
    }

    /// The longest prefix of characters.
    #[inline]
    pub(super) fn take(&mut self, of: impl Fn(u8) -> bool) -> &'a str {
        let end = self.rest.bytes().position(|c| !of(c)).unwrap_or(self.rest.len());
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }

    #[inline]
    pub(super) fn word(&mut self) -> &'a str {
        self.take(|c| c.is_ascii_alphanumeric() || c == b'_')
    }

    #[inline]
    pub(super) fn number(&mut self) -> Result<u64, AsmError> {
        // No number of this many digits overflows.
        const SAFE: usize = 19;
        let digits = self.take(|c| c.is_ascii_digit());
        if digits.is_empty() || digits.len() > SAFE {
            return self.long_number(digits);
        }
        Ok(digits.bytes().fold(0, |value, digit| value * 10 + u64::from(digit - b'0')))
    }

    #[cold]
    fn long_number(&self, digits: &str) -> Result<u64, AsmError> {
        match digits.parse() {
            Ok(number) => Ok(number),
            Err(_) => self.error("a number"),
        }
    }

    pub(super) fn hex(&mut self) -> Result<u64, AsmError> {
        self.expect("0x")?;
        let digits = self.take(|c| c.is_ascii_digit() || (b'a'..=b'f').contains(&c));
        match u64::from_str_radix(digits, 16) {
            Ok(number) => Ok(number),
            Err(_) => self.error("a hexadecimal number"),
        }
    }

    pub(super) fn operand_type(&mut self) -> Result<Type, AsmError> {
        let letters = self.take(|c| c.is_ascii_uppercase());
        let key = key::packed(letters.as_bytes());
        match TYPE_KEYS.iter().position(|&name| Some(name) == key).and_then(|index| TYPES.get(index)) {
            Some(row) => Ok(row.0),
            None => self.error("a type"),
        }
    }

    /// The code of a name in a table.
    pub(super) fn code(table: &[&str], what: &'static str, name: &str) -> Result<u64, AsmError> {
        match table.iter().position(|entry| !name.is_empty() && *entry == name) {
            Some(code) => Ok(code as u64),
            None => Err(AsmError::Unsupported(what, name.to_owned())),
        }
    }
}
