//! Cuts a line of assembly into tokens.
//!
//! Never decides what a token is good for. Columns count bytes from 1.

use super::super::text::{self, DESTINATIONS, SOURCES};
use super::error::{AfucError, AfucProblem};

/// One token and where it starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token<'s> {
    pub kind: TokenKind<'s>,
    pub column: usize,
    pub text: &'s str,
}

/// What a token is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenKind<'s> {
    /// `add`, a label's name.
    Word(&'s str),
    /// `$02`, `$data`.
    Register(u32),
    /// `12`, `0x1f`.
    Number(u32),
    /// `b3`.
    Bit(u32),
    /// `@IB1_BASE`.
    Control(&'s str),
    /// `%SP`.
    Sqe(&'s str),
    /// `#label`.
    Label(&'s str),
    /// `[0123abcd]`.
    Literal(u32),
    /// `(rep)`, `(xmov2)`.
    Modifier(&'s str),
    /// `.align`.
    Directive(&'s str),
    /// `,`, `[`, `]`, `+`, `!`, `:`, `<<`.
    Mark(&'static str),
}

const MARKS: [&str; 7] = ["<<", ",", "[", "]", "+", "!", ":"];

/// The tokens of a line, up to its comment. What is no token is an error; the tokens before it are lost with the line.
pub fn tokens(line: &str, number: usize) -> Result<Vec<Token<'_>>, AfucError> {
    let mut found = Vec::new();
    let mut rest = line;
    loop {
        rest = rest.trim_start();
        let column = line.len() - rest.len() + 1;
        if rest.is_empty() || rest.starts_with(';') {
            return Ok(found);
        }
        let (kind, len) = token(rest).map_err(|problem| AfucError::at(number, column, problem))?;
        let (text, after) = rest.split_at(len);
        found.push(Token { kind, column, text });
        rest = after;
    }
}

/// The token a text starts with, and its length.
fn token(text: &str) -> Result<(TokenKind<'_>, usize), AfucProblem> {
    if let Some(digits) = text.strip_prefix('[') {
        let len = span(digits, |c| c.is_ascii_hexdigit());
        if len > 0 && digits.get(len..).is_some_and(|after| after.starts_with(']')) {
            let value = u32::from_str_radix(&digits[..len], 16)
                .map_err(|_| AfucProblem::TooLarge(format!("[{}]", &digits[..len])))?;
            return Ok((TokenKind::Literal(value), len + 2));
        }
    }
    if let Some(&mark) = MARKS.iter().find(|&&mark| text.starts_with(mark)) {
        return Ok((TokenKind::Mark(mark), mark.len()));
    }
    let Some(first) = text.chars().next() else { return Err(AfucProblem::Unreadable(String::new())) };
    let tail = text.get(first.len_utf8()..).unwrap_or_default();
    let name = &tail[..span(tail, is_name)];
    let sigil = |kind| match name {
        "" => Err(AfucProblem::Unreadable(first.to_string())),
        _ => Ok((kind, name.len() + 1)),
    };
    match first {
        '$' => match register(name) {
            Some(register) => Ok((TokenKind::Register(register), name.len() + 1)),
            None => Err(AfucProblem::NoRegister(format!("${name}"))),
        },
        '@' => sigil(TokenKind::Control(name)),
        '%' => sigil(TokenKind::Sqe(name)),
        '#' => sigil(TokenKind::Label(name)),
        '.' => sigil(TokenKind::Directive(name)),
        '(' => match tail.get(name.len()..) {
            Some(after) if after.starts_with(')') => Ok((TokenKind::Modifier(name), name.len() + 2)),
            _ => Err(AfucProblem::Unreadable("(".to_string())),
        },
        '0'..='9' => number(text),
        'a'..='z' | 'A'..='Z' | '_' => {
            let word = &text[..span(text, is_name)];
            let digits = word.strip_prefix('b').filter(|d| !d.is_empty());
            match digits.filter(|d| d.bytes().all(|c| c.is_ascii_digit())).map(str::parse) {
                Some(Ok(bit)) => Ok((TokenKind::Bit(bit), word.len())),
                Some(Err(_)) => Err(AfucProblem::TooLarge(word.to_string())),
                None => Ok((TokenKind::Word(word), word.len())),
            }
        }
        _ => Err(AfucProblem::Unreadable(first.to_string())),
    }
}

fn span(text: &str, wanted: impl Fn(char) -> bool) -> usize {
    text.find(|c| !wanted(c)).unwrap_or(text.len())
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn number(text: &str) -> Result<(TokenKind<'_>, usize), AfucProblem> {
    let word = &text[..span(text, is_name)];
    let parsed = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => word.parse::<u64>().ok(),
    };
    let digits_only = word.trim_start_matches("0x").bytes().all(|c| c.is_ascii_hexdigit());
    match parsed {
        Some(value) => match u32::try_from(value) {
            Ok(value) => Ok((TokenKind::Number(value), word.len())),
            Err(_) => Err(AfucProblem::TooLarge(word.to_string())),
        },
        None if digits_only && word.len() > 16 => Err(AfucProblem::TooLarge(word.to_string())),
        None => Err(AfucProblem::Unreadable(word.to_string())),
    }
}

/// The number of a register by its name without the `$`.
pub fn register(name: &str) -> Option<u32> {
    let special = |names: &[&str; 4]| {
        let index = names.iter().position(|special| special.get(1..) == Some(name))?;
        Some(text::REM + u32::try_from(index).ok()?)
    };
    match name {
        "sp" => Some(text::SP),
        "lr" => Some(text::LR),
        _ => special(&SOURCES).or_else(|| special(&DESTINATIONS)).or_else(|| {
            let number = u32::from_str_radix(name, 16).ok()?;
            (number <= text::DATA && name.len() <= 2).then_some(number)
        }),
    }
}
