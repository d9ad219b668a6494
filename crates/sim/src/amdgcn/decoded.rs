//! An instruction as every unit sees it: decoded once, with what is known of it before it is executed.

use super::counters::{self, WaitCounter};
use unwedge_isa::amdgcn::effects::{self, Effects};
use unwedge_isa::amdgcn::{Gpu, Inst};

/// One instruction at its place in the code.
#[derive(Debug)]
pub(super) struct DecodedInst {
    pub(super) inst: Inst,
    /// Its offset in bytes.
    pub(super) at: u32,
    /// The offset of the one that follows.
    pub(super) next: u32,
    /// What it waits for: at most so many under way of each counter.
    pub(super) waits: Vec<(WaitCounter, u32)>,
    /// Registers it reads and writes.
    pub(super) effects: Effects,
}

impl DecodedInst {
    /// An instruction between two offsets in bytes.
    pub(super) fn new(inst: Inst, at: u32, next: u32, gpu: &Gpu) -> DecodedInst {
        DecodedInst {
            inst,
            at,
            next,
            waits: counters::waits(&inst, gpu.generation()),
            effects: effects::of(&inst, gpu),
        }
    }
}
