//! Conditions over the registers and attributes of a draw:
//! `RB_MRT[0].BUF_INFO.COLOR_FORMAT == FMT6_8_8_8_8_UNORM && GRAS_CL_CNTL.ZERO_GB_SCALE_Z`.
//!
//! Text is parsed once ([`Expr`]), its names are looked up once for each generation ([`Expr::bind`]), and evaluating the
//! result ([`Condition`]) reads registers by offset: no names, no allocation. Logic has three values: what nothing has
//! written is unknown, and so is whatever depends on it. Never: text of results.

mod bind;
mod parse;
mod token;

pub use bind::{Condition, Truth};

/// A condition as text, understood as far as that goes without a GPU.
#[derive(Clone, Debug)]
pub struct Expr {
    text: String,
    nodes: Vec<Node>,
}

impl Expr {
    /// Reads a condition.
    ///
    /// # Errors
    ///
    /// [`ExprError`] with the bytes of the text where a condition stops to parse.
    pub fn parse(text: &str) -> Result<Expr, ExprError> {
        Ok(Expr { nodes: parse::parse(text)?, text: text.to_owned() })
    }

    /// What was read.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A part of a condition, and where it stands in the text.
#[derive(Clone, Copy, Debug)]
struct Node {
    what: ExprNode,
    start: usize,
    end: usize,
}

#[derive(Clone, Copy, Debug)]
enum ExprNode {
    Int(i128),
    Float(f64),
    Name,
    Not(usize),
    Complement(usize),
    Binary(Binary, usize, usize),
}

/// An operator between two operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Binary {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    BitOr,
    BitAnd,
}

impl Binary {
    fn is_comparison(self) -> bool {
        !matches!(self, Binary::Or | Binary::And | Binary::BitOr | Binary::BitAnd)
    }
}

/// A mistake in a condition, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{mistake}")]
pub struct ExprError {
    /// What is wrong.
    pub mistake: Mistake,
    /// First byte of the text that is meant.
    pub start: usize,
    /// One past the last.
    pub end: usize,
}

impl ExprError {
    fn new(mistake: Mistake, start: usize, end: usize) -> ExprError {
        ExprError { mistake, start, end }
    }
}

/// What is wrong with a condition.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// A character that begins nothing.
    #[error("{0:?} means nothing here")]
    Character(char),
    /// `=`
    #[error("= assigns nothing here: compare with ==")]
    Assignment,
    /// Neither decimal, nor hexadecimal, nor a fraction; or more than 64 bits.
    #[error("not a number: write 10, 0xa or 1.5, of at most 64 bits")]
    Number,
    /// `*` or `?`.
    #[error("a condition takes one register, not a pattern: join several with && or ||")]
    Pattern,
    /// Something else stands where a value should.
    #[error("expected a register, a field, a number or (")]
    Operand,
    /// Something else stands where an operator should.
    #[error("expected an operator: == != < <= > >= & | && ||")]
    Operator,
    /// `-` in front of something else.
    #[error("a minus sign is for numbers only")]
    Minus,
    /// `a < b < c`
    #[error("comparisons do not chain: join two with &&")]
    Chained,
    /// `(` without `)`.
    #[error("this ( is never closed")]
    Unclosed,
    /// `)` without `(`.
    #[error("this ) closes nothing")]
    Unopened,
    /// Too many parentheses or prefixes.
    #[error("nested too deeply")]
    TooDeep,
    /// Too many parts.
    #[error("too long")]
    TooLong,
    /// Neither a register nor an attribute.
    #[error("{0}")]
    Unknown(#[from] unwedge_hw::SelectError),
    /// Neither a register nor an attribute, of GPUs other than Adreno.
    #[error("{name}: no such register or field{}", meant(.near))]
    NoRegister {
        /// What was typed.
        name: String,
        /// Registers or fields with such names.
        near: Vec<String>,
    },
    /// Like an attribute of a draw, but none.
    #[error("no attribute of a draw has this name; there are {0}")]
    Attribute(String),
    /// Neither a register nor a value of what stands on the other side.
    #[error("neither a register nor a value of {of}{}", meant(.near))]
    Value {
        /// The enum's name.
        of: String,
        /// Values with such names.
        near: Vec<String>,
    },
    /// A register and a value, or two values, have the name.
    #[error("ambiguous, it may be {0}: use a number")]
    Ambiguous(String),
    /// Bits of a number with a fraction.
    #[error("&, | and ~ take whole numbers, and this has a fraction")]
    Bits,
    /// A yes or no is compared with a number.
    #[error(
        "this is true or false, 1 or 0: it never compares with anything else (mind the parentheses around !)"
    )]
    TruthValue,
}

fn meant(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!("; near it: {}", near.join(", ")) }
}
