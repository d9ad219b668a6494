//! GPU instruction sets: tables that are compiled in, and the disassemblers and assemblers made from them.
//!
//! Never: a file format, I/O.

pub mod afuc;
pub mod amdgcn;
pub mod eu;
pub mod ir2;
pub mod ir3;
mod source_position;
pub mod table;
pub mod tables;

pub use source_position::SourcePosition;
