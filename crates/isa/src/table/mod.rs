//! Instruction tables: decode, read, print and encode words from one declarative description.
//!
//! A description (`data/*/isa/*.isa`, format in [`text`]) gives bitsets with fixed, don't-care and field bits,
//! inheritance, overrides by condition, derived fields and display templates. The build flattens it: for every root a
//! decode tree, for every encoding its templates, with each field resolved to bits of the word or to a small expression
//! over them.
//!
//! Never: syntax that one instruction set alone has (that is its printer's and its assembler's), I/O, allocation while
//! decoding. The shape of the descriptions follows the isaspec files of Mesa, which the Adreno facts come from.

mod compile;
mod encode;
pub mod expr;
pub mod generate;
pub mod model;
mod owned;
mod print;
pub mod program;
mod read;
pub(crate) mod rows;
pub mod text;
mod tree;
mod types;

pub use compile::CompileError;
pub use encode::FieldEncodeError;
pub use owned::OwnedTable;
pub use print::{Printer, print};
pub use read::{DecodeFault, DecodeFaults, DecodedWord, DisplayPart};
pub(crate) use types::binary;
pub use types::{FieldKind, IsaTable, Leaf, Root};
