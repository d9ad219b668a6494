//! afuc: the microcode of the command processor since a5xx (PFP and ME; SQE; SQE, BV and LPAC).
//!
//! The instruction table ([`crate::tables::AFUC`]) gives encodings and texts; disassembler and assembler read it through
//! [`insn`]. What the instructions do is the emulator's matter, in the crate `sim`. Never: I/O, register names of its own
//! (they come through [`AfucNames`]). Facts: Mesa 25.0, its
//! description of the encodings and its notes on the instruction set.

pub mod asm;
mod db_names;
pub mod disasm;
mod firmware;
pub mod insn;
mod names;
pub mod text;
pub mod wait;

pub use asm::assemble;
pub use db_names::DbNames;
pub use disasm::disassemble;
pub use firmware::{Firmware, FirmwareBlob, Processor, TABLE_LEN};
pub use names::{AfucNames, SqeSpace};
