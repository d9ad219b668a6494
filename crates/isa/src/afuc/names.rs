//! What the assembly language needs to know of the hardware by name, as a trait: this crate holds no register database.
//!
//! Whoever has one implements it; `()` knows no names, everything then prints as numbers.

use super::Firmware;
use std::borrow::Cow;

/// An address space of registers the SQE reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SqeSpace {
    /// The GPU's own registers, by dword offset.
    Gpu,
    /// The CP's control registers, reached with `cread` and `cwrite`.
    Control,
    /// Pipe registers, written through the high byte of `$addr`.
    Pipe,
    /// The SQE's own state, reached with `sread` and `swrite` (a6xx on).
    Sqe,
}

/// Names of registers and packets.
pub trait AfucNames {
    /// Name of the register whose dword is at `offset`: `IB1_BASE`, `IB1_BASE+0x1`, `CP_SCRATCH[0].REG`.
    fn register(&self, firmware: Firmware, space: SqeSpace, offset: u32) -> Option<Cow<'_, str>>;

    /// Dword offset of a register by its full name.
    fn offset(&self, firmware: Firmware, space: SqeSpace, name: &str) -> Option<u32>;

    /// Whether a pipe register takes no payload, so that writing its address to `$addr` already triggers it.
    fn pipe_is_void(&self, firmware: Firmware, offset: u32) -> bool;

    /// Name of a packet of this GPU by its opcode, below 0x80.
    fn packet(&self, firmware: Firmware, opcode: u8) -> Option<Cow<'_, str>>;

    /// Opcode of a packet by name; names of any generation count.
    fn opcode(&self, name: &str) -> Option<u8>;
}

impl AfucNames for () {
    fn register(&self, _: Firmware, _: SqeSpace, _: u32) -> Option<Cow<'_, str>> {
        None
    }

    fn offset(&self, _: Firmware, _: SqeSpace, _: &str) -> Option<u32> {
        None
    }

    fn pipe_is_void(&self, _: Firmware, _: u32) -> bool {
        false
    }

    fn packet(&self, _: Firmware, _: u8) -> Option<Cow<'_, str>> {
        None
    }

    fn opcode(&self, _: &str) -> Option<u8> {
        None
    }
}
