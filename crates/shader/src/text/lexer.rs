//! Tokens of the text form.

use super::parse::ParseError;

/// A token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// Letters, digits, `_` and `|`: names, sets of names, numbers.
    Word(String),
    /// `%` and a number.
    Value(u32),
    /// `@` and a number.
    Loc(u32),
    /// Text in quotes.
    Text(String),
    /// One other character; `->` is `>` after a dropped `-`.
    Punct(char),
    /// No more.
    End,
}

pub(super) struct Lexer<'a> {
    rest: &'a str,
    pub(super) line: u32,
    /// Whether the last token is the first one of its line.
    pub(super) starts_line: bool,
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '|'
}

impl<'a> Lexer<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Lexer { rest: text, line: 1, starts_line: true }
    }

    fn take(&mut self, len: usize) -> &'a str {
        let (taken, rest) = self.rest.split_at(len);
        self.rest = rest;
        taken
    }

    fn space(&mut self) {
        while let Some(c) = self.rest.chars().next() {
            if c == '#' {
                self.take(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if c.is_whitespace() || c == '-' {
                self.line += u32::from(c == '\n');
                self.take(c.len_utf8());
            } else {
                break;
            }
        }
    }

    fn word(&mut self) -> &'a str {
        self.take(self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len()))
    }

    fn number(&mut self) -> Result<u32, ParseError> {
        let line = self.line;
        self.word().parse().map_err(|_| ParseError::new(line, "a number is expected"))
    }

    pub(super) fn next(&mut self) -> Result<Token, ParseError> {
        let line = self.line;
        self.space();
        self.starts_line = self.line != line;
        let Some(c) = self.rest.chars().next() else { return Ok(Token::End) };
        if is_word(c) {
            return Ok(Token::Word(self.word().to_owned()));
        }
        self.take(c.len_utf8());
        Ok(match c {
            '%' => Token::Value(self.number()?),
            '@' => Token::Loc(self.number()?),
            '"' => Token::Text(self.text()?),
            other => Token::Punct(other),
        })
    }

    fn text(&mut self) -> Result<String, ParseError> {
        let end = self.rest.find('"').ok_or_else(|| ParseError::new(self.line, "a quote is not closed"))?;
        let raw = self.take(end);
        self.take(1);
        let mut bytes = Vec::new();
        let mut rest = raw.as_bytes();
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte != b'\\' {
                bytes.push(byte);
                continue;
            }
            let digits = rest.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
            let value = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
            bytes.push(
                value.ok_or_else(|| ParseError::new(self.line, "two hexadecimal digits are expected"))?,
            );
            rest = &rest[2..];
        }
        String::from_utf8(bytes).map_err(|_| ParseError::new(self.line, "text is not UTF-8"))
    }
}
