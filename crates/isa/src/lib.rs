//! GPU instruction sets.
//!
//! Empty so far: the tables of afuc, ir2, ir3 and amdgcn, and the disassemblers and assemblers made from them, belong
//! here. Never: a file format, I/O.
