//! The operations of ir3, from the table that prints them.
//!
//! Encodings of one operation (`mov` of an immediate, of a register) are one [`Opcode`]; so are those of several
//! generations.

use crate::table::Leaf;
use std::fmt;

#[allow(missing_docs, reason = "the names are the mnemonics")]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/ir3_opcodes.rs"));

    /// The operation that an encoding is of.
    pub(super) fn of_leaf(leaf: u32) -> Option<Opcode> {
        OF_LEAF.get(leaf.checked_sub(FIRST_LEAF)? as usize).copied()
    }

    /// Name and category of an operation.
    pub(super) fn row(opcode: Opcode) -> (&'static str, u8) {
        NAMES.get(opcode as usize).copied().unwrap_or_default()
    }
}

pub use generated::Opcode;

impl Opcode {
    /// The operation of an encoding of the table.
    pub(super) fn of(leaf: Leaf) -> Option<Opcode> {
        generated::of_leaf(leaf.index())
    }

    /// Its name in the description: `mad.f32`.
    pub fn name(self) -> &'static str {
        generated::row(self).0
    }

    /// Its category, 0 to 7.
    pub fn category(self) -> u8 {
        generated::row(self).1
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
