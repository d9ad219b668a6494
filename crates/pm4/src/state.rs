//! What the packets so far have done: registers, draw-state groups, modes.

use crate::GroupState;

/// Registers of the GPU space, with what was written and when. Unwritten registers are unknown.
#[derive(Clone, Debug, Default)]
pub struct Registers {}

impl Registers {
    /// The value last written, if any packet wrote the register.
    pub fn get(&self, _reg: u32) -> Option<u32> {
        unimplemented!()
    }
    /// The value last written, 0 when none was: for listings that print it so.
    pub fn raw(&self, _reg: u32) -> u32 {
        unimplemented!()
    }
    /// Written since the last draw.
    pub fn rewritten(&self, _reg: u32) -> bool {
        unimplemented!()
    }
    /// Registers written since the last draw, by offset.
    pub fn iter_rewritten(&self) -> impl Iterator<Item = u32> {
        std::iter::empty()
    }
    /// Every register written so far, by offset.
    pub fn iter_written(&self) -> impl Iterator<Item = u32> {
        std::iter::empty()
    }
}

/// The bin drawn, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Bin {
    /// Left.
    pub x1: u32,
    /// Top.
    pub y1: u32,
    /// Right, inclusive.
    pub x2: u32,
    /// Bottom, inclusive.
    pub y2: u32,
}

/// A command thread of a7xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Thread {
    Br,
    Bv,
    Both,
}

/// Render modes that draw-state groups are enabled for: bits of their enable mask.
pub mod mode {
    /// Binning pass.
    pub const BINNING: u8 = 1;
    /// Rendering to GMEM.
    pub const GMEM: u8 = 2;
    /// Rendering to system memory.
    pub const SYSMEM: u8 = 4;
    /// Not known yet: all.
    pub const ALL: u8 = 7;
}

/// Everything packets change.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Registers.
    pub regs: Registers,
    /// Draw-state groups waiting for the next draw.
    pub groups: [GroupState; 32],
    /// Modes the current pass counts as; see [`mode`]. 0 stands for all.
    pub enable_mask: u8,
    /// The last marker set by CP_SET_MARKER (a6xx on) or mode by CP_SET_RENDER_MODE (a5xx).
    pub marker: Option<u32>,
    /// The last thread chosen by CP_THREAD_CONTROL.
    pub thread: Option<Thread>,
    /// CP_SKIP_IB2_ENABLE_GLOBAL.
    pub skip_ib2_global: u32,
    /// CP_SKIP_IB2_ENABLE_LOCAL.
    pub skip_ib2_local: u32,
    /// The bin set by CP_SET_BIN.
    pub bin: Bin,
    /// Draws, dispatches, blits and working events so far.
    pub draws: u32,
    /// Current IB level.
    pub level: u8,
}
