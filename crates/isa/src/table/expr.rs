//! Expressions of a description: C's integer operators over fields, parsed to a tree.
//!
//! Values are 64-bit and signed; fields enter without sign extension.

use thiserror::Error;

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A constant.
    Number(i64),
    /// A field of the bitset, or a value handed into it.
    Field(String),
    /// The generation being decoded.
    Generation,
    /// `!` of it.
    Not(Box<Expr>),
    /// Two operands.
    Binary(Binary, Box<Expr>, Box<Expr>),
}

/// An operator with two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Binary {
    /// `||`
    Or,
    /// `&&`
    And,
    /// `|`
    BitOr,
    /// `&`
    BitAnd,
    /// `==`
    Eq,
    /// `!=`
    Ne,
    /// `<=`
    Le,
    /// `>=`
    Ge,
    /// `<`
    Lt,
    /// `>`
    Gt,
    /// `<<`
    Shl,
    /// `>>`
    Shr,
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
}

/// Spelling, operator and binding strength, longer spellings first.
const OPERATORS: [(&str, Binary, u8); 15] = [
    ("||", Binary::Or, 1),
    ("&&", Binary::And, 2),
    ("==", Binary::Eq, 5),
    ("!=", Binary::Ne, 5),
    ("<=", Binary::Le, 6),
    (">=", Binary::Ge, 6),
    ("<<", Binary::Shl, 7),
    (">>", Binary::Shr, 7),
    ("|", Binary::BitOr, 3),
    ("&", Binary::BitAnd, 4),
    ("<", Binary::Lt, 6),
    (">", Binary::Gt, 6),
    ("+", Binary::Add, 8),
    ("-", Binary::Sub, 8),
    ("*", Binary::Mul, 9),
];

const MAX_DEPTH: u32 = 64;

/// What does not parse: the source from there on.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("not an expression: {0}")]
pub struct ExprError(pub String);

/// Parses a whole source.
///
/// # Errors
///
/// [`ExprError`] with the rest of the source from the first token that does not parse; also where parentheses
/// nest too deeply.
pub fn parse(source: &str) -> Result<Expr, ExprError> {
    let mut parser = Parser { rest: source.trim_start(), depth: 0 };
    let expr = parser.binary(0)?;
    if parser.rest.is_empty() { Ok(expr) } else { parser.fail() }
}

struct Parser<'a> {
    rest: &'a str,
    depth: u32,
}

impl Parser<'_> {
    fn fail<T>(&self) -> Result<T, ExprError> {
        Err(ExprError(self.rest.to_owned()))
    }

    fn accept(&mut self, token: &str) -> bool {
        let rest = self.rest.strip_prefix(token);
        self.rest = rest.map_or(self.rest, str::trim_start);
        rest.is_some()
    }

    fn binary(&mut self, min: u8) -> Result<Expr, ExprError> {
        let mut left = self.unary()?;
        while let Some((token, op, strength)) =
            OPERATORS.iter().find(|(token, ..)| self.rest.starts_with(token)).filter(|o| o.2 > min)
        {
            self.accept(token);
            let right = self.binary(*strength)?;
            left = Expr::Binary(*op, Box::new(left), Box::new(right));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expr, ExprError> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return self.fail();
        }
        let expr = if self.accept("!") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.accept("(") {
            let inner = self.binary(0)?;
            if !self.accept(")") {
                return self.fail();
            }
            inner
        } else if self.accept("{") {
            let (name, rest) = self.rest.split_once('}').ok_or(ExprError(self.rest.to_owned()))?;
            let name = name.to_owned();
            self.rest = rest.trim_start();
            Expr::Field(name)
        } else if self.accept("GEN") {
            Expr::Generation
        } else {
            let len = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(len);
            let value = match digits.strip_prefix("0x") {
                Some(hex) => i64::from_str_radix(hex, 16),
                None => digits.parse(),
            };
            let Ok(value) = value else { return self.fail() };
            self.rest = rest.trim_start();
            Expr::Number(value)
        };
        self.depth -= 1;
        Ok(expr)
    }
}
