//! Accesses to memory as data: which memory, what is done, where values come from and go to. It accesses nothing.

use super::texel::{Halves, Texel};
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::{Direction, Element};
use unwedge_isa::amdgcn::semantics::atomic::{Atomic, AtomicWidth as Width};
use unwedge_isa::amdgcn::semantics::{LANES, Lanes};

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MemorySpace {
    Global,
    /// Global, LDS or scratch, by the address.
    Flat,
    Lds,
    Gds,
    Scratch,
}

/// One value of each lane.
#[derive(Debug, Clone, Copy)]
pub(super) struct LaneValue {
    /// Whether it is relative to the second address.
    pub(super) second: bool,
    /// Bytes after the address.
    pub(super) offset: u32,
    pub(super) bytes: u8,
    /// Lanes for which it is within bounds: others read zero and write nothing.
    pub(super) valid: u64,
}

/// What is done.
#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Load,
    Store,
    /// Stores what LDS holds from an address on, four bytes for each lane.
    FromLds(u32),
    /// The operation, its width, whether the old value is returned, whether a value to compare follows the data.
    Atomic {
        atomic: Atomic,
        width: Width,
        returns: bool,
        compares: bool,
    },
}

/// How loaded values are put into registers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    Dwords,
    /// Extended from so many bytes.
    Extended {
        bytes: u8,
        signed: bool,
    },
    /// Into half of a register, the other half kept.
    Half {
        bytes: u8,
        signed: bool,
        high: bool,
    },
    /// By a format.
    Texel(Texel),
    /// Only into registers whose bit is set.
    Block(u32),
    /// Halves of registers, or bytes, exchanged among lanes: those of one lane go to one place of eight.
    Turned {
        halves: bool,
    },
    /// Elements of so many bits: those of 16 lanes are the rows of 16 of a matrix, of which each lane gets a column.
    Columns {
        bits: u8,
    },
}

impl Form {
    /// How many registers are written, where that does not follow from what is read.
    pub(super) fn registers(&self) -> Option<u16> {
        match self {
            Form::Texel(texel) => Some(texel.registers().into()),
            _ => None,
        }
    }

    /// Whether one of the registers is left as it was.
    pub(super) fn leaves(&self, number: usize) -> bool {
        matches!(self, Form::Block(mask) if mask >> (number & 31) & 1 == 0)
    }

    /// Which half of a register is written, if the other is kept.
    pub(super) fn half(&self) -> Option<bool> {
        match self {
            Form::Half { high, .. } => Some(*high),
            Form::Texel(texel) if texel.halves == Halves::High => Some(true),
            _ => None,
        }
    }
}

/// Where loaded values go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dst {
    None,
    /// As [`super::operand::From::Vgpr`].
    Vgpr(u16),
    Scalar(Reg),
    /// LDS at an address, four bytes for each lane.
    Lds(u32),
}

/// An access of a wave.
#[derive(Debug, Clone)]
pub(super) struct Access {
    /// Offset of the instruction.
    pub(super) at: u32,
    pub(super) space: MemorySpace,
    pub(super) action: Action,
    pub(super) form: Form,
    pub(super) dst: Dst,
    pub(super) lanes: u64,
    pub(super) address: [u64; LANES],
    pub(super) second: Option<Box<[u64; LANES]>>,
    pub(super) pieces: Vec<LaneValue>,
    /// Dwords to be stored, in the order of pieces, then those to compare with.
    pub(super) data: Vec<Lanes>,
    /// What is unknown of them.
    pub(super) unknown: Vec<Lanes>,
}

impl Access {
    /// One whose values are there already, for so many registers.
    pub(super) fn made(at: u32, space: MemorySpace, dst: Dst, lanes: u64, registers: usize) -> Access {
        let piece = |n: usize| LaneValue { second: false, offset: 4 * n as u32, bytes: 4, valid: u64::MAX };
        Access {
            at,
            space,
            action: Action::Load,
            form: Form::Dwords,
            dst,
            lanes,
            address: [0; LANES],
            second: None,
            pieces: (0..registers).map(piece).collect(),
            data: Vec::new(),
            unknown: Vec::new(),
        }
    }
}

/// What was read, and what of it is not known.
#[derive(Debug, Clone, Default)]
pub(super) struct Read {
    pub(super) values: Vec<Lanes>,
    pub(super) unknown: Vec<Lanes>,
}

/// A value as it is loaded or stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AccessShape {
    pub(super) form: Form,
    /// Bytes of memory.
    pub(super) bytes: u8,
}

impl From<Element> for AccessShape {
    fn from(element: Element) -> AccessShape {
        let (bytes, signed) = (element.bytes(), element.is_signed());
        let form = match element.high_half() {
            Some(high) => Form::Half { bytes, signed, high },
            None if bytes < 4 => Form::Extended { bytes, signed },
            None => Form::Dwords,
        };
        AccessShape { form, bytes }
    }
}

impl From<Direction> for Action {
    fn from(direction: Direction) -> Action {
        match direction {
            Direction::Load => Action::Load,
            Direction::Store => Action::Store,
        }
    }
}

impl AccessShape {
    /// How many registers it loads or stores.
    pub(super) fn dwords(&self) -> u8 {
        self.bytes.div_ceil(4)
    }

    /// Its pieces, valid for these lanes.
    pub(super) fn pieces(&self, valid: u64) -> Vec<LaneValue> {
        (0..u32::from(self.dwords()))
            .map(|n| LaneValue { second: false, offset: 4 * n, bytes: self.bytes.min(4), valid })
            .collect()
    }

    /// The value that is stored of a register.
    pub(super) fn stored(&self, value: u32) -> u32 {
        match self.form {
            Form::Half { high: true, .. } => value >> 16,
            _ => value,
        }
    }
}

impl Texel {
    /// The bytes of memory it is, for lanes that are within bounds.
    pub(super) fn pieces(&self, valid: u64) -> Vec<LaneValue> {
        let bytes = self.format.bytes();
        (0..bytes.div_ceil(4))
            .map(|n| LaneValue { second: false, offset: 4 * u32::from(n), bytes: bytes.min(4), valid })
            .collect()
    }
}
