//! Words of a condition.

use super::{ExprError, Mistake};

/// A word and where it stands, in bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) what: Word,
    pub(super) start: usize,
    pub(super) end: usize,
}

/// A word.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Word {
    /// A whole number.
    Int(u64),
    /// A number with a fraction.
    Float(f64),
    /// The name of a register, a field, a value, an attribute of a draw; `@0x8872` is the register there.
    Name,
    /// An operator or a parenthesis.
    Sign(&'static str),
    /// Nothing is left.
    End,
}

/// Longer ones first.
const SIGNS: [&str; 15] = ["&&", "||", "==", "!=", "<=", ">=", "<", ">", "&", "|", "~", "!", "(", ")", "-"];

/// Takes words off a text.
pub(super) struct Tokens<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str) -> Tokens<'t> {
        Tokens { text, at: 0 }
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn next(&mut self) -> Result<Token, ExprError> {
        self.at = self.text.len() - self.rest().trim_start().len();
        let (start, rest) = (self.at, self.rest());
        let Some(first) = rest.chars().next() else {
            return Ok(Token { what: Word::End, start, end: start });
        };
        let (what, len) = if first.is_ascii_digit() {
            let len = number_len(rest);
            let text = rest.get(..len).unwrap_or_default();
            (number(text).ok_or(ExprError::new(Mistake::Number, start, start + len))?, len)
        } else if first.is_ascii_alphabetic() || first == '_' || first == '@' {
            (Word::Name, name_len(rest))
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            (Word::Sign(sign), sign.len())
        } else {
            let mistake = if matches!(first, '*' | '?') {
                Mistake::Pattern
            } else if first == '=' {
                Mistake::Assignment
            } else {
                Mistake::Character(first)
            };
            return Err(ExprError::new(mistake, start, start + first.len_utf8()));
        };
        self.at += len;
        Ok(Token { what, start, end: self.at })
    }
}

/// Bytes of a number: digits, letters, a point, and the sign of an exponent.
fn number_len(text: &str) -> usize {
    let hex = text.starts_with("0x") || text.starts_with("0X");
    let mut before = b' ';
    text.bytes()
        .take_while(|&c| {
            let exponent = !hex && matches!(before, b'e' | b'E') && matches!(c, b'+' | b'-');
            before = c;
            c.is_ascii_alphanumeric() || c == b'.' || c == b'_' || exponent
        })
        .count()
}

fn number(text: &str) -> Option<Word> {
    let digits = text.replace('_', "");
    if let Some(hex) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        return u64::from_str_radix(hex, 16).ok().map(Word::Int);
    }
    match digits.parse() {
        Ok(whole) => Some(Word::Int(whole)),
        Err(_) if digits.contains(['.', 'e', 'E']) => {
            digits.parse().ok().filter(|f: &f64| f.is_finite()).map(Word::Float)
        }
        Err(_) => None,
    }
}

/// Bytes of a name, as registers have them: `RB_MRT[0x1].BUF_INFO.COLOR_FORMAT`, `RBBM_PERFCTR_CP[0]+0x1`.
fn name_len(text: &str) -> usize {
    let mut before = ' ';
    let mut inside = false;
    let len = |c: char| c.len_utf8();
    let mut total = 0;
    for c in text.chars() {
        let part = match c {
            '[' => {
                inside = true;
                true
            }
            ']' => std::mem::replace(&mut inside, false),
            '+' => before == ']' || before.is_ascii_alphanumeric(),
            // Inside of brackets a pattern is told as such, not as a stray sign.
            '*' | '?' => inside,
            _ => c.is_ascii_alphanumeric() || matches!(c, '_' | '.') || (c == '@' && total == 0),
        };
        if !part {
            break;
        }
        total += len(c);
        before = c;
    }
    total
}
