//! Intel's EU instruction set, gen8 to Xe3.
//!
//! The facts are in `data/intel/eu`, compiled in by the build script ([`tables`] has the vocabulary). [`Instruction`] is one
//! instruction, its fields by name; [`compaction`] has the forms of 8 bytes, [`disasm`] the text of one instruction as
//! Mesa prints it, [`message`] what descriptors of messages say, [`asm`] reads the text back, [`program`] has whole
//! programs with labels. Never: a file format.

pub mod asm;
pub mod compaction;
pub mod disasm;
mod inst;
mod key;
pub mod message;
mod number;
mod operands;
pub mod program;
pub mod tables;
mod text;

pub use inst::{File, Generation, Instruction, Platform, PlatformError, Swsb};
pub use tables::{Field, Opcode, Type};
