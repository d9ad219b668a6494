//! GPU instruction sets: tables, and the disassemblers and assemblers made from them.
//!
//! Never: a file format, I/O.

pub mod ir2;
