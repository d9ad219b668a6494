//! Splits a line into tokens.

use super::error::{NirCause, Result};

/// The rest of a line. Spaces between tokens do not matter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub fn new(line: &'a str) -> Cursor<'a> {
        Cursor { rest: line.trim() }
    }

    /// What is left.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    pub fn is_end(&self) -> bool {
        self.rest.is_empty()
    }

    fn advance(&mut self, len: usize) -> &'a str {
        let (token, rest) = self.rest.split_at(len);
        self.rest = rest.trim_start();
        token
    }

    /// Skips a text if it comes next.
    pub fn eat(&mut self, text: &str) -> bool {
        let starts = self.rest.starts_with(text);
        if starts {
            self.advance(text.len());
        }
        starts
    }

    /// Skips a text that must come next.
    pub fn expect(&mut self, text: &'static str) -> Result<()> {
        if self.eat(text) { Ok(()) } else { Err(NirCause::Expected(text)) }
    }

    /// Checks that nothing follows.
    pub fn end(&self) -> Result<()> {
        if self.is_end() { Ok(()) } else { Err(NirCause::Expected("the end of the line")) }
    }

    /// Letters, digits and underscores; empty if there are none.
    pub fn word(&mut self) -> &'a str {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        self.advance(end.unwrap_or(self.rest.len()))
    }

    /// Skips a word if it comes next, and nothing that only starts with it.
    pub fn eat_word(&mut self, word: &str) -> bool {
        let mut ahead = *self;
        let same = ahead.word() == word;
        if same {
            *self = ahead;
        }
        same
    }

    /// A decimal number.
    pub fn number(&mut self, name: &'static str) -> Result<u32> {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        self.advance(end).parse().map_err(|_| NirCause::Expected(name))
    }

    /// `%12`.
    pub fn value(&mut self) -> Result<u32> {
        self.expect("%")?;
        self.number("the number of a value")
    }

    /// `b12`.
    pub fn block(&mut self) -> Result<u32> {
        self.expect("b")?;
        self.number("the number of a block")
    }

    /// The text in a pair of parentheses, if one opens here.
    pub fn group(&mut self) -> Result<Option<&'a str>> {
        if !self.rest.starts_with('(') {
            return Ok(None);
        }
        let mut depth = 0u32;
        for (at, c) in self.rest.char_indices() {
            match c {
                '(' => depth += 1,
                ')' if depth == 1 => return Ok(Some(&self.advance(at + 1)[1..at])),
                ')' => depth -= 1,
                _ => {}
            }
        }
        Err(NirCause::Expected(")"))
    }
}
