//! The ir3 assembler: text as the disassembler prints it (and as Mesa's assembler reads it) to words.
//!
//! There is no list of instructions here. The table's display templates are turned round into a grammar (`invert`), by
//! name and when a name is first used (`book`). One instruction is read by it: as it is printed (`plan`,
//! `fast`), or in any other spelling (`matcher`). What was read are bits and claims about others (`facts`): those that no text shows are
//! found from the table's conditions and derived fields (`solve`). `program` adds lines, labels and `@` directives,
//! `recent` remembers lines. Never: I/O, registers allocated, instructions reordered.

mod book;
mod directive;
mod error;
mod facts;
mod fast;
mod grammar;
mod invert;
mod matcher;
mod number;
mod plan;
mod program;
mod recent;
mod solve;

pub use directive::Directive;
pub use error::{AsmError, AsmProblem};
pub use program::{Assembler, Ir3Program};
