//! The lines and words of the project's own table formats: nesting by indentation, `key=value`, `"…"` around what has
//! spaces, `#` before comments.
//!
//! Never: I/O, knowing what a word means.

use thiserror::Error;

/// Where and why a file of facts does not read.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{file}:{line}:{column}: expected {expected}")]
pub struct FactsTextError {
    /// Name of the file.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Column in bytes, from 1.
    pub column: usize,
    /// What should have stood there.
    pub expected: String,
}

const MAX_DEPTH: usize = 16;
/// Spaces per level of nesting.
pub const STEP: usize = 2;

#[derive(Debug)]
pub(crate) struct OutlineToken {
    pub(crate) column: usize,
    pub(crate) text: String,
    /// Length of the part before the first unquoted `=`.
    pub(crate) key: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct OutlineLine {
    pub(crate) number: usize,
    pub(crate) tokens: Vec<OutlineToken>,
    pub(crate) inner: Vec<OutlineLine>,
}

pub(crate) struct OutlineReader<'a> {
    pub(crate) file: &'a str,
}

pub(crate) type Result<T> = std::result::Result<T, FactsTextError>;

impl<'a> OutlineReader<'a> {
    pub(crate) fn error<T>(&self, line: usize, column: usize, expected: impl Into<String>) -> Result<T> {
        Err(FactsTextError { file: self.file.to_string(), line, column, expected: expected.into() })
    }

    pub(crate) fn outline(&self, text: &str) -> Result<Vec<OutlineLine>> {
        let mut open: Vec<OutlineLine> = Vec::new();
        let mut top = Vec::new();
        for (i, raw) in text.lines().enumerate() {
            let number = i + 1;
            let body = raw.trim_start_matches(' ');
            let indent = raw.len() - body.len();
            let tokens = self.tokens(number, indent, body)?;
            if tokens.is_empty() {
                continue;
            }
            let depth = indent / STEP;
            if indent % STEP != 0 || depth > open.len() {
                return self.error(
                    number,
                    indent + 1,
                    format!("at most {} spaces before it", open.len() * STEP),
                );
            }
            if depth >= MAX_DEPTH {
                return self.error(number, indent + 1, "shallower nesting");
            }
            close(&mut open, &mut top, depth);
            open.push(OutlineLine { number, tokens, inner: Vec::new() });
        }
        close(&mut open, &mut top, 0);
        Ok(top)
    }

    pub(crate) fn tokens(&self, number: usize, indent: usize, body: &str) -> Result<Vec<OutlineToken>> {
        let mut tokens = Vec::new();
        let mut chars = body.char_indices().peekable();
        while let Some(&(start, c)) = chars.peek() {
            if c.is_whitespace() {
                chars.next();
                continue;
            }
            if c == '#' {
                break;
            }
            let mut token = OutlineToken { column: indent + start + 1, text: String::new(), key: None };
            while let Some(&(_, c)) = chars.peek() {
                if c.is_whitespace() {
                    break;
                }
                chars.next();
                if c == '=' && token.key.is_none() {
                    token.key = Some(token.text.len());
                }
                if c != '"' {
                    token.text.push(c);
                    continue;
                }
                loop {
                    match chars.next() {
                        Some((_, '"')) => break,
                        Some((_, '\\')) => token.text.extend(chars.next().map(|(_, c)| c)),
                        Some((_, c)) => token.text.push(c),
                        None => return self.error(number, indent + body.len() + 1, "a closing quote"),
                    }
                }
            }
            tokens.push(token);
        }
        Ok(tokens)
    }

    pub(crate) fn words(&'a self, line: &'a OutlineLine) -> Result<OutlineWords<'a>> {
        Ok(OutlineWords { reader: self, line, next: 0 })
    }

    pub(crate) fn number(&self, line: &OutlineLine, column: usize, text: &str) -> Result<u64> {
        match number(text) {
            Some(n) => Ok(n),
            None => self.error(line.number, column, "a number"),
        }
    }

    pub(crate) fn small(&self, line: &OutlineLine, column: usize, text: &str) -> Result<u32> {
        match number(text).and_then(|n| u32::try_from(n).ok()) {
            Some(n) => Ok(n),
            None => self.error(line.number, column, "a number of at most 32 bits"),
        }
    }

    pub(crate) fn flag(&self, line: &OutlineLine, column: usize, text: &str) -> Result<bool> {
        match text {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => self.error(line.number, column, "yes or no"),
        }
    }

    pub(crate) fn leaf(&self, line: &OutlineLine) -> Result<()> {
        match line.inner.first() {
            Some(inner) => self.error(inner.number, inner.column(), "nothing inside this line"),
            None => Ok(()),
        }
    }

    pub(crate) fn unknown<T>(&self, line: &OutlineLine, column: usize, known: &str) -> Result<T> {
        self.error(line.number, column, format!("one of {known}"))
    }
}

impl OutlineLine {
    pub(crate) fn column(&self) -> usize {
        self.tokens.first().map_or(1, |t| t.column)
    }
}

pub(crate) struct OutlineWords<'a> {
    pub(crate) reader: &'a OutlineReader<'a>,
    pub(crate) line: &'a OutlineLine,
    pub(crate) next: usize,
}

impl<'a> OutlineWords<'a> {
    pub(crate) fn peek(&self) -> Option<&'a OutlineToken> {
        self.line.tokens.get(self.next)
    }

    pub(crate) fn missing<T>(&self, expected: &str) -> Result<T> {
        let end = self.line.tokens.last().map_or(1, |t| t.column + t.text.len() + 1);
        let column = self.peek().map_or(end, |t| t.column);
        self.reader.error(self.line.number, column, expected)
    }

    pub(crate) fn word(&mut self, expected: &str) -> Result<(&'a str, usize)> {
        match self.peek() {
            Some(token) if token.key.is_none() => {
                self.next += 1;
                Ok((&token.text, token.column))
            }
            _ => self.missing(expected),
        }
    }

    pub(crate) fn keyword(&mut self, word: &str) -> Result<()> {
        match self.peek() {
            Some(token) if token.text == word => {
                self.next += 1;
                Ok(())
            }
            _ => self.missing(word),
        }
    }

    pub(crate) fn equals(&mut self) -> Result<()> {
        self.keyword("=")
    }

    pub(crate) fn name(&mut self) -> Result<String> {
        Ok(self.word("a name")?.0.to_string())
    }

    /// The next word, unless it is a `key=value`.
    pub(crate) fn bare_word(&mut self) -> Option<String> {
        let token = self.peek().filter(|t| t.key.is_none())?;
        self.next += 1;
        Some(token.text.clone())
    }

    pub(crate) fn attribute(&mut self) -> Result<Option<(&'a str, &'a str, usize)>> {
        let Some(token) = self.peek() else { return Ok(None) };
        match token.key.and_then(|n| Some((token.text.get(..n)?, token.text.get(n + 1..)?))) {
            Some((key, value)) => {
                self.next += 1;
                Ok(Some((key, value, token.column)))
            }
            None => self.missing("key=value"),
        }
    }

    pub(crate) fn end(&mut self) -> Result<()> {
        if self.peek().is_some() { self.missing("the end of the line") } else { Ok(()) }
    }
}

fn close(open: &mut Vec<OutlineLine>, top: &mut Vec<OutlineLine>, depth: usize) {
    while open.len() > depth {
        if let Some(line) = open.pop() {
            open.last_mut().map_or(&mut *top, |parent| &mut parent.inner).push(line);
        }
    }
}

/// Decimal, or hexadecimal after `0x`.
pub(crate) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) if !hex.starts_with('+') => u64::from_str_radix(hex, 16).ok(),
        Some(_) => None,
        None if text.starts_with('+') => None,
        None => text.parse().ok(),
    }
}
