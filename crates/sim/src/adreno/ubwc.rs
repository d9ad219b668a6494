//! UBWC: the flag bytes of compressed surfaces, one for each block of texels.
//!
//! The codes of hardware and the order of flags in their buffer are not public. Here flags lie row by row, and there are
//! three codes: a block that was never written since the flags were zeroed, one whose texels are stored as they are, and
//! one that a clear left: its first texel has the value of all of them, the others are stale. Other codes are of something
//! that this machine did not write: what such a block holds is not known.
//!
//! Never: which registers name a flag buffer; compression of anything but clears.

use super::machine::AdrenoMachine;

/// What a flag byte says of its block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockFlag {
    /// Zeroed flags: the texels are read as they are stored.
    Initial,
    /// All texels are stored.
    Stored,
    /// The first texel has the value of all.
    Cleared,
    /// Not a code of this machine.
    Foreign,
}

impl BlockFlag {
    pub(crate) fn of_code(code: u8) -> BlockFlag {
        match code {
            0 => BlockFlag::Initial,
            1 => BlockFlag::Stored,
            2 => BlockFlag::Cleared,
            _ => BlockFlag::Foreign,
        }
    }

    pub(crate) fn code(self) -> u8 {
        match self {
            BlockFlag::Initial => 0,
            BlockFlag::Stored => 1,
            BlockFlag::Cleared => 2,
            BlockFlag::Foreign => u8::MAX,
        }
    }
}

/// The flags of a level of a surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlagPlane {
    /// Of the flag of the first block.
    pub(crate) base: u64,
    /// Bytes from a row of flags to the next.
    pub(crate) pitch: u64,
    /// Bytes from a layer to the next.
    pub(crate) layer_stride: u64,
    /// Texels of a block across and down.
    pub(crate) block: (u32, u32),
}

impl FlagPlane {
    /// Where the flag of a texel is: column, row and layer.
    pub(crate) fn address(&self, [x, y, layer]: [u32; 3]) -> u64 {
        let (width, height) = self.block;
        let row = u64::from(y / height.max(1)).wrapping_mul(self.pitch);
        let layer = u64::from(layer).wrapping_mul(self.layer_stride);
        self.base.wrapping_add(layer).wrapping_add(row).wrapping_add(u64::from(x / width.max(1)))
    }

    /// The first texel of the block of a texel.
    pub(crate) fn first(&self, [x, y]: [u32; 2]) -> [u32; 2] {
        let (width, height) = self.block;
        [x - x % width.max(1), y - y % height.max(1)]
    }
}

impl AdrenoMachine<'_> {
    /// Where the value of a texel is stored by its block's flag of UBWC: of a cleared block, in its first texel. `None` where
    /// the flag is not known.
    pub fn stored_texel(&self, flag: u64, block: (u32, u32), (x, y): (u32, u32)) -> Option<(u32, u32)> {
        let code = self.space.memory.load(flag, 1).known()? as u8;
        let plane = FlagPlane { base: 0, pitch: 0, layer_stride: 0, block };
        match BlockFlag::of_code(code) {
            BlockFlag::Initial | BlockFlag::Stored => Some((x, y)),
            BlockFlag::Cleared => Some(plane.first([x, y]).into()),
            BlockFlag::Foreign => None,
        }
    }
}
