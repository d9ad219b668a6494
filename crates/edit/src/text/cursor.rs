//! A line being read.

use super::error::TextProblem;
use super::expr::Term;

/// An error at a byte of the line.
pub(super) type Failure = (usize, TextProblem);

/// Where the reading of a line is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'t> {
    line: &'t str,
    at: usize,
}

/// A character of names of registers, fields and labels.
pub(super) fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '[' | ']')
}

/// A name can be written as one.
pub(super) fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| is_name(c) || c == '+')
}

/// `expected …`
pub(super) fn expected(what: impl Into<String>) -> TextProblem {
    TextProblem::Expected(what.into())
}

impl<'t> Cursor<'t> {
    /// At the beginning of a line, whose comment does not count.
    pub(super) fn new(line: &'t str) -> Cursor<'t> {
        let mut cursor = Cursor { line: without_comment(line), at: 0 };
        cursor.blanks();
        cursor
    }

    fn rest(&self) -> &'t str {
        self.line.get(self.at..).unwrap_or_default()
    }

    fn blanks(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start().len();
    }

    /// The byte that it is at.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Nothing is left.
    pub(super) fn is_end(&self) -> bool {
        self.rest().is_empty()
    }

    /// An error here.
    pub(super) fn fail<T>(&self, problem: TextProblem) -> Result<T, Failure> {
        Err((self.at, problem))
    }

    /// Nothing may be left.
    pub(super) fn end(&self) -> Result<(), Failure> {
        if self.is_end() { Ok(()) } else { self.fail(expected("the end of the line")) }
    }

    /// The next character.
    pub(super) fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    /// Takes a symbol, if it comes next.
    pub(super) fn take(&mut self, symbol: &str) -> bool {
        let taken = self.rest().starts_with(symbol);
        if taken {
            self.at += symbol.len();
            self.blanks();
        }
        taken
    }

    /// Takes a word, if it comes next.
    pub(super) fn take_word(&mut self, word: &str) -> bool {
        let mut after = *self;
        let taken = after.take_name() == Some(word);
        if taken {
            *self = after;
        }
        taken
    }

    /// Takes a symbol that has to come next.
    pub(super) fn expect(&mut self, symbol: &str) -> Result<(), Failure> {
        if self.take(symbol) { Ok(()) } else { self.fail(expected(format!("`{symbol}`"))) }
    }

    fn take_while(&mut self, of: impl Fn(char) -> bool) -> &'t str {
        let rest = self.rest();
        let length = rest.find(|c| !of(c)).unwrap_or(rest.len());
        let word = rest.get(..length).unwrap_or_default();
        self.at += length;
        self.blanks();
        word
    }

    /// A name, if one comes next.
    pub(super) fn take_name(&mut self) -> Option<&'t str> {
        Some(self.take_while(is_name)).filter(|name| !name.is_empty())
    }

    /// The name of a register or operand, which may end in `+0x1`.
    pub(super) fn take_register(&mut self) -> Option<&'t str> {
        Some(self.take_while(|c| is_name(c) || c == '+')).filter(|name| !name.is_empty())
    }

    /// A label.
    pub(super) fn label(&mut self) -> Result<&'t str, Failure> {
        let start = *self;
        match self.take_name() {
            Some(name) if !name.starts_with(|c: char| c.is_ascii_digit()) => Ok(name),
            _ => start.fail(expected("a label")),
        }
    }

    /// A number, if one comes next: `0x1f` or `31`.
    pub(super) fn take_number(&mut self) -> Option<u64> {
        let mut after = *self;
        let word = after.take_while(|c| c.is_ascii_alphanumeric());
        let number = match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok()?,
            None => word.parse().ok()?,
        };
        *self = after;
        Some(number)
    }

    /// A number.
    pub(super) fn number(&mut self) -> Result<u64, Failure> {
        match self.take_number() {
            Some(number) => Ok(number),
            None => self.fail(expected("a number")),
        }
    }

    /// A number of 32 bits.
    pub(super) fn number32(&mut self) -> Result<u32, Failure> {
        let start = *self;
        let number = self.number()?;
        u32::try_from(number).or_else(|_| start.fail(TextProblem::DoesNotFit(number, "a dword".to_owned())))
    }

    /// A number with a sign or a fraction, as its text.
    pub(super) fn take_decimal(&mut self) -> Option<&'t str> {
        let mut after = *self;
        let word = after.take_while(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
        let fits = word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        if fits {
            *self = after;
        }
        fits.then_some(word)
    }

    /// A number that depends on labels, if one comes next.
    pub(super) fn take_term(&mut self) -> Result<Option<Term>, Failure> {
        if self.peek() == Some('&') {
            let (label, offset) = self.address()?;
            return Ok(Some(Term::Address(label, offset)));
        }
        let mut after = *self;
        let Some(function) = after.take_name() else { return Ok(None) };
        if !after.take("(") {
            return Ok(None);
        }
        let term = match function {
            "lo" | "hi" => {
                let (label, offset) = after.address()?;
                if function == "lo" { Term::Low(label, offset) } else { Term::High(label, offset) }
            }
            "size" => Term::Size(after.label()?.to_owned()),
            "units" => Term::Units(after.label()?.to_owned()),
            "until" => Term::Until(after.label()?.to_owned()),
            _ => return Ok(None),
        };
        after.expect(")")?;
        *self = after;
        Ok(Some(term))
    }

    fn address(&mut self) -> Result<(String, u64), Failure> {
        self.expect("&")?;
        let label = self.label()?.to_owned();
        let offset = if self.take("+") { self.number()? } else { 0 };
        Ok((label, offset))
    }

    /// A string in quotes: `\0`, `\n`, `\"`, `\\` and `\x1f` are single bytes.
    pub(super) fn string(&mut self) -> Result<Vec<u8>, Failure> {
        self.expect_quote()?;
        let mut bytes = Vec::new();
        let mut characters = self.rest().char_indices();
        while let Some((at, c)) = characters.next() {
            match c {
                '"' => {
                    self.at += at + 1;
                    self.blanks();
                    return Ok(bytes);
                }
                '\\' => match characters.next().map(|(_, c)| c) {
                    Some('0') => bytes.push(0),
                    Some('n') => bytes.push(b'\n'),
                    Some('"') => bytes.push(b'"'),
                    Some('\\') => bytes.push(b'\\'),
                    Some('x') => {
                        let mut digit = || characters.next().and_then(|(_, c)| c.to_digit(16));
                        let byte = digit().zip(digit()).map(|(high, low)| (high << 4 | low) as u8);
                        let Some(byte) = byte else {
                            return Err((self.at + at, expected("two hexadecimal digits after `\\x`")));
                        };
                        bytes.push(byte);
                    }
                    _ => return Err((self.at + at, expected("one of `\\0`, `\\n`, `\\\"`, `\\\\`, `\\x`"))),
                },
                c => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        Err((self.line.len(), expected("`\"`")))
    }

    /// Blanks after an opening quote are part of the string.
    fn expect_quote(&mut self) -> Result<(), Failure> {
        if self.peek() != Some('"') {
            return self.fail(expected("a string in quotes"));
        }
        self.at += 1;
        Ok(())
    }
}

/// A line up to its `;`, unless that is in quotes.
fn without_comment(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    for (at, c) in line.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            ';' if !quoted => return line.get(..at).unwrap_or(line).trim_end(),
            _ => {}
        }
    }
    line.trim_end()
}

/// A string as [`Cursor::string`] reads it.
pub(super) fn quoted(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            0 => text.push_str("\\0"),
            b'\n' => text.push_str("\\n"),
            b'"' => text.push_str("\\\""),
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(char::from(byte)),
            byte => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}
