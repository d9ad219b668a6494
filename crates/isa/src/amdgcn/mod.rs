//! AMD's instruction set, GCN, CDNA and RDNA from gfx6 to gfx12.
//!
//! One row per instruction for all generations stands in `data/amd`, compiled in by the build script ([`model`] is its
//! vocabulary, [`tables`] looks it up). [`Inst`] is one instruction; [`codec`] has its words, [`text`] its text in LLVM's
//! syntax. [`source`] reads files of assembly, with labels and directives, [`listing`] writes code with labels at
//! its branches' targets. [`descriptor`] has the bits that say how a kernel starts, [`entry`] what its registers hold then. Never: a file format.

pub mod codec;
pub mod cost;
pub mod descriptor;
pub mod effects;
pub mod entry;
mod gpu;
mod inst;
pub mod kernel_code;
pub mod listing;
mod mem;
pub mod model;
pub mod opcode;
mod plain;
pub mod regs;
pub mod rules;
pub mod semantics;
pub mod source;
pub mod tables;
pub mod texel;
pub mod text;
pub mod waits;

pub use gpu::{Gpu, GpuError, nop_states};
pub use inst::{Inst, Mods, OPERANDS, Operand, RegHalf, UnusedBits, dwords};
pub use model::Gfx;
pub use opcode::{Opcode, Operation};
pub use regs::Reg;
