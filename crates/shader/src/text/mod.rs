//! The text form: printed, parsed, and the same again when it is printed a second time.
//!
//! One instruction a line: results with their types, the operation (with `!` if it is exact, `+` if it is an `if` whose first arm is nearly always taken), its payload in angle brackets, its
//! operands, its source position. Values, labels and regions are numbered in the order of the text. `docs/shader-ir.md` has the grammar.

mod lexer;
mod parse;
mod print;

pub use parse::{ParseError, parse};
pub use print::{Listing, print};
