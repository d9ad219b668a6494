//! GPU instruction sets.
//!
//! [`afuc`]: the microcode of the command processor. Never: a file format, I/O.

pub mod afuc;
