//! The ir3 assembler: text as the disassembler prints it (and as Mesa's assembler reads it) to words.
//!
//! There is no list of instructions here. The table's display templates are turned round into a grammar
//! (`invert`), one instruction is read by it (`matcher`), and the bits that no text shows are found from the
//! table's conditions and derived fields (`solve`). `program` adds lines, labels and `@` directives; `recent`
//! remembers lines. Never: I/O, registers allocated, instructions reordered.

mod directive;
mod error;
mod grammar;
mod invert;
mod matcher;
mod number;
mod program;
mod recent;
mod solve;

pub use directive::Directive;
pub use error::{AsmError, Problem};
pub use program::{Assembler, Program};
