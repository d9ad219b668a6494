//! Instruction tables: decode, read, print and encode words from one declarative description.
//!
//! A description (`data/*/isa/*.isa`) gives bitsets with fixed, don't-care and field bits, inheritance, overrides by
//! condition, derived fields and display templates. The build flattens it: for every root a decode tree, for every leaf
//! its templates, with each field resolved to bits of the instruction word or to a small expression over them.
//!
//! Never: syntax that one instruction set alone has (that is its printer's and its assembler's), I/O, allocation while
//! decoding. The shape of the descriptions follows the isaspec files of Mesa, which the Adreno facts come from.

mod read;
mod types;

pub use read::{Decoded, Part};
pub use types::{EncodeError, Kind, Leaf, Root, Table};
