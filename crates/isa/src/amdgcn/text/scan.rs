//! Bytes of a line, read from left to right: names, numbers, expressions.

use super::parse::{ParseError, ParseRule};
use super::{SymbolValue, Symbols};

/// A line and a place in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineScan<'a> {
    text: &'a str,
    at: usize,
}

/// What an expression is worth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct ExprValue {
    /// The number, or its bits as a double if it was written with a point.
    pub(super) value: i64,
    /// Written as floating point.
    pub(super) float: bool,
    /// An address took part.
    pub(super) address: bool,
    /// Written as a literal, by `lit()`.
    pub(super) literal: bool,
}

impl ExprValue {
    /// A whole number.
    pub(super) const fn number(value: i64) -> ExprValue {
        ExprValue { value, float: false, address: false, literal: false }
    }

    /// The offset of an address.
    pub(super) const fn address(value: i64) -> ExprValue {
        ExprValue { value, float: false, address: true, literal: false }
    }
}

/// Whether a byte may be part of a name.
fn is_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' | b'$')
}

/// How deep parentheses may nest.
const DEPTH: u8 = 32;

impl<'a> LineScan<'a> {
    pub(super) fn new(text: &'a str) -> LineScan<'a> {
        LineScan { text, at: 0 }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    pub(super) fn error(&self, at: usize, rule: ParseRule) -> ParseError {
        ParseError { column: self.text.get(..at).map_or(at, |t| t.chars().count()) + 1, operand: None, rule }
    }

    pub(super) fn here(&self, rule: ParseRule) -> ParseError {
        self.error(self.at, rule)
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.as_bytes().get(self.at + ahead).copied().unwrap_or(0)
    }

    /// The next byte; 0 at the end.
    pub(super) fn peek(&self) -> u8 {
        self.byte(0)
    }

    /// The byte after the next.
    pub(super) fn peek_second(&self) -> u8 {
        self.byte(1)
    }

    pub(super) fn space(&mut self) {
        while matches!(self.peek(), b' ' | b'\t') {
            self.at += 1;
        }
    }

    pub(super) fn end(&self) -> bool {
        self.at >= self.text.len()
    }

    /// Takes a byte, and spaces after it, if it is next.
    pub(super) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == byte && !self.end();
        if found {
            self.at += 1;
            self.space();
        }
        found
    }

    pub(super) fn expect(&mut self, byte: u8, rule: ParseRule) -> Result<(), ParseError> {
        if self.eat(byte) { Ok(()) } else { Err(self.here(rule)) }
    }

    /// The name that is next, which may be empty. Spaces after it are not taken.
    pub(super) fn name(&mut self) -> &'a str {
        let start = self.at;
        if !self.peek().is_ascii_digit() {
            let rest = self.text.as_bytes().get(start..).unwrap_or_default();
            self.at += rest.iter().position(|byte| !is_name(*byte)).unwrap_or(rest.len());
        }
        self.text.get(start..self.at).unwrap_or_default()
    }

    /// Up to three decimal digits at a place, and where they end.
    fn index(&self, from: usize) -> Option<(u16, usize)> {
        let digits = self.text.as_bytes().get(from..)?;
        let (mut value, mut at) = (0, 0);
        while let Some(digit @ b'0'..=b'9') = digits.get(at) {
            if at == 3 {
                return None;
            }
            value = value * 10 + u16::from(digit - b'0');
            at += 1;
        }
        (at > 0).then_some((value, from + at))
    }

    /// The letter of a register, its first and its last number, if that is next in the plainest way: `v1`, `s[2:3]`.
    /// Spaces after it are taken; nothing is taken otherwise.
    pub(super) fn plain_register(&mut self) -> Option<(u8, u16, u16)> {
        let letter = self.peek();
        if letter != b'v' && letter != b's' {
            return None;
        }
        let bytes = self.text.as_bytes();
        let (first, last, end) = if self.byte(1) == b'[' {
            let (first, colon) = self.index(self.at + 2)?;
            let (last, bracket) = self.index(colon + 1)?;
            // A number that begins with a zero is octal.
            let octal = |from: usize, end: usize| bytes.get(from) == Some(&b'0') && end > from + 1;
            if bytes.get(colon) != Some(&b':')
                || bytes.get(bracket) != Some(&b']')
                || octal(self.at + 2, colon)
                || octal(colon + 1, bracket)
            {
                return None;
            }
            (first, last, bracket + 1)
        } else {
            let (number, end) = self.index(self.at + 1)?;
            if bytes.get(end).is_some_and(|byte| is_name(*byte)) {
                return None;
            }
            (number, number, end)
        };
        self.at = end;
        self.space();
        Some((letter, first, last))
    }

    /// `1b` and `1f`: the nearest label `1` before and after.
    fn numbered_label(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?;
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let mut behind = rest.bytes().skip(digits);
        let label = matches!(behind.next(), Some(b'b' | b'f'));
        if !label || behind.next().is_some_and(|b| b.is_ascii_alphanumeric() || b == b'_') {
            return None;
        }
        let name = rest.get(..digits + 1)?;
        self.at += name.len();
        self.space();
        Some(name)
    }

    /// Letters, digits and underscores, which may begin with a digit. Spaces after them are taken.
    pub(super) fn word(&mut self) -> &'a str {
        let start = self.at;
        while self.peek().is_ascii_alphanumeric() || self.peek() == b'_' {
            self.at += 1;
        }
        let word = self.text.get(start..self.at).unwrap_or_default();
        self.space();
        word
    }

    /// What stands in double quotes, if they are next. Spaces after it are taken.
    pub(super) fn quoted(&mut self) -> Option<&'a str> {
        let rest = self.text.get(self.at..)?.strip_prefix('"')?;
        let (inner, _) = rest.split_once('"')?;
        self.at += inner.len() + 2;
        self.space();
        Some(inner)
    }

    /// A number without a sign.
    pub(super) fn number(&mut self) -> Result<ExprValue, ParseError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        // Nearly all are small and decimal.
        if let Some((value, end)) =
            self.index(start).filter(|(_, end)| self.peek() != b'0' || *end == start + 1)
            && !bytes.get(end).is_some_and(|byte| is_name(*byte))
        {
            self.at = end;
            self.space();
            return Ok(ExprValue::number(value.into()));
        }
        let (radix, digits) = match (self.peek(), self.byte(1)) {
            (b'0', b'x' | b'X') => (16, start + 2),
            (b'0', b'b' | b'B') => (2, start + 2),
            _ => (10, start),
        };
        self.at = digits;
        let mut value = 0u64;
        let mut fits = true;
        while let Some(digit) = char::from(self.peek()).to_digit(radix) {
            let next = value.checked_mul(radix.into()).and_then(|v| v.checked_add(digit.into()));
            fits &= next.is_some();
            value = next.unwrap_or(value);
            self.at += 1;
        }
        let point = self.peek() == b'.' && self.byte(1).is_ascii_digit() && radix == 10;
        if self.at == digits && !point {
            return Err(self.error(start, ParseRule::Number));
        }
        let point = self.peek() == b'.' || (matches!(self.peek(), b'e' | b'E') && radix == 10);
        if radix == 10 && point {
            self.at += usize::from(self.peek() == b'.');
            while self.peek().is_ascii_digit() {
                self.at += 1;
            }
            if matches!(self.peek(), b'e' | b'E') {
                self.at += 1;
                self.at += usize::from(matches!(self.peek(), b'+' | b'-'));
                while self.peek().is_ascii_digit() {
                    self.at += 1;
                }
            }
            let text = self.text.get(start..self.at).unwrap_or_default();
            let float: f64 = text.parse().map_err(|_| self.error(start, ParseRule::Number))?;
            self.space();
            return Ok(ExprValue {
                value: float.to_bits() as i64,
                float: true,
                address: false,
                literal: false,
            });
        }
        if radix == 10 && self.at - start > 1 && bytes.get(start) == Some(&b'0') {
            let text = self.text.get(start..self.at).unwrap_or_default();
            value = u64::from_str_radix(text, 8).map_err(|_| self.error(start, ParseRule::Number))?;
        }
        if !fits || matches!(self.peek(), b'a'..=b'z' | b'A'..=b'Z' | b'_') {
            return Err(self.error(start, ParseRule::Number));
        }
        self.space();
        Ok(ExprValue::number(value as i64))
    }

    /// An expression: numbers, symbols, operators with C's precedence.
    pub(super) fn expression(&mut self, symbols: &dyn Symbols) -> Result<ExprValue, ParseError> {
        let first = self.primary(symbols, DEPTH)?;
        self.binary(first, 0, symbols, DEPTH)
    }

    /// A number, a symbol or an expression in parentheses, with signs before it.
    pub(super) fn primary(&mut self, symbols: &dyn Symbols, depth: u8) -> Result<ExprValue, ParseError> {
        let start = self.at;
        let inner = depth.checked_sub(1).ok_or_else(|| self.here(ParseRule::Nesting))?;
        match self.peek() {
            b'-' => {
                self.eat(b'-');
                let of = self.primary(symbols, inner)?;
                let value = if of.float {
                    (-f64::from_bits(of.value as u64)).to_bits() as i64
                } else {
                    of.value.wrapping_neg()
                };
                Ok(ExprValue { value, ..of })
            }
            b'+' => {
                self.eat(b'+');
                self.primary(symbols, inner)
            }
            b'~' => {
                self.eat(b'~');
                let of = self.primary(symbols, inner)?;
                if of.float {
                    Err(self.error(start, ParseRule::Number))
                } else {
                    Ok(ExprValue { value: !of.value, ..of })
                }
            }
            b'!' => {
                self.eat(b'!');
                let of = self.primary(symbols, inner)?;
                if of.float {
                    Err(self.error(start, ParseRule::Number))
                } else {
                    Ok(ExprValue { value: i64::from(of.value == 0), ..of })
                }
            }
            b'(' => {
                self.eat(b'(');
                let first = self.primary(symbols, inner)?;
                let value = self.binary(first, 0, symbols, inner)?;
                self.expect(b')', ParseRule::Parenthesis)?;
                Ok(value)
            }
            b'0'..=b'9' => match self.numbered_label() {
                Some(name) => match symbols.symbol(name) {
                    Some(SymbolValue::Absolute(value)) => Ok(ExprValue::number(value)),
                    Some(SymbolValue::Address(value)) => Ok(ExprValue::address(value)),
                    None => Err(self.error(start, ParseRule::Symbol)),
                },
                None => self.number(),
            },
            b'.' if self.byte(1).is_ascii_digit() => self.number(),
            _ => {
                let name = self.name();
                if name.is_empty() {
                    return Err(self.error(start, ParseRule::Operand));
                }
                self.space();
                if name == "." {
                    return Ok(ExprValue::address(symbols.here()));
                }
                match symbols.symbol(name) {
                    Some(SymbolValue::Absolute(value)) => Ok(ExprValue::number(value)),
                    Some(SymbolValue::Address(value)) => Ok(ExprValue::address(value)),
                    None => Err(self.error(start, ParseRule::Symbol)),
                }
            }
        }
    }

    /// The operator that is next, its length and how strongly it binds.
    fn operator(&self) -> Option<(u8, usize, u8)> {
        Some(match (self.peek(), self.byte(1)) {
            (b'|', b'|') => (b'O', 2, 1),
            (b'&', b'&') => (b'A', 2, 2),
            (b'=', b'=') => (b'=', 2, 3),
            (b'!', b'=') => (b'n', 2, 3),
            (b'<', b'>') => (b'n', 2, 3),
            (b'<', b'=') => (b'l', 2, 3),
            (b'>', b'=') => (b'g', 2, 3),
            (b'<', b'<') => (b'L', 2, 6),
            (b'>', b'>') => (b'R', 2, 6),
            (b'<', _) => (b'<', 1, 3),
            (b'>', _) => (b'>', 1, 3),
            (b'+', _) => (b'+', 1, 4),
            (b'-', _) => (b'-', 1, 4),
            (b'|', _) => (b'|', 1, 5),
            (b'^', _) => (b'^', 1, 5),
            (b'&', _) => (b'&', 1, 5),
            (b'*', _) => (b'*', 1, 6),
            (b'/', _) => (b'/', 1, 6),
            (b'%', _) => (b'%', 1, 6),
            _ => return None,
        })
    }

    fn binary(
        &mut self,
        mut left: ExprValue,
        least: u8,
        symbols: &dyn Symbols,
        depth: u8,
    ) -> Result<ExprValue, ParseError> {
        let inner = depth.checked_sub(1).ok_or_else(|| self.here(ParseRule::Nesting))?;
        while let Some((operator, length, strength)) = self.operator().filter(|(.., s)| *s > least) {
            let start = self.at;
            self.at += length;
            self.space();
            let right = self.primary(symbols, inner)?;
            let right = self.binary(right, strength, symbols, inner)?;
            if left.float || right.float {
                return Err(self.error(start, ParseRule::Number));
            }
            let truth = |yes: bool| if yes { -1 } else { 0 };
            let (a, b) = (left.value, right.value);
            let value = match operator {
                b'+' => a.wrapping_add(b),
                b'-' => a.wrapping_sub(b),
                b'*' => a.wrapping_mul(b),
                b'/' | b'%' if b == 0 => return Err(self.error(start, ParseRule::Division)),
                b'/' => a.wrapping_div(b),
                b'%' => a.wrapping_rem(b),
                b'&' => a & b,
                b'|' => a | b,
                b'^' => a ^ b,
                b'L' => u32::try_from(b).ok().and_then(|b| a.checked_shl(b)).unwrap_or(0),
                b'R' => u32::try_from(b).ok().and_then(|b| (a as u64).checked_shr(b)).unwrap_or(0) as i64,
                b'O' => i64::from(a != 0 || b != 0),
                b'A' => i64::from(a != 0 && b != 0),
                b'=' => truth(a == b),
                b'n' => truth(a != b),
                b'l' => truth(a <= b),
                b'g' => truth(a >= b),
                b'<' => truth(a < b),
                _ => truth(a > b),
            };
            // The distance of two addresses is a number.
            let address =
                if operator == b'-' { left.address != right.address } else { left.address || right.address };
            left = ExprValue { value, float: false, address, literal: false };
        }
        Ok(left)
    }
}
