//! What the packets so far have done: registers, draw-state groups, modes, predicates.
//!
//! Never: reading packets. What no packet wrote is unknown, not zero.

use crate::Registers;
use crate::adreno::GroupState;
use unwedge_base::Generation;
use unwedge_hw::Gpu;

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

/// Where the bin drawn is told: by the window scissor from a5xx on, by CP_SET_BIN before.
#[derive(Clone, Copy, Debug)]
pub struct BinPlace {
    /// Its corners' registers.
    scissor: Option<[u32; 2]>,
}

impl BinPlace {
    /// Of a GPU.
    pub fn new(gpu: Gpu<'_>) -> BinPlace {
        let corner = |name| gpu.reg_offset(name);
        let scissor = [corner("GRAS_SC_WINDOW_SCISSOR_TL"), corner("GRAS_SC_WINDOW_SCISSOR_BR")];
        let [Some(first), Some(last)] = scissor else { return BinPlace { scissor: None } };
        BinPlace { scissor: (gpu.generation() >= Generation::A5xx).then_some([first, last]) }
    }

    /// The bin, if anything has said which.
    pub fn bin(self, state: &AdrenoState) -> Option<Bin> {
        let Some(corners) = self.scissor else { return state.bin };
        let regs = state.current_regs();
        let [first, last] = corners.map(|reg| regs.get(reg));
        let (first, last) = (first?, last?);
        Some(Bin { x1: first & 0xffff, y1: first >> 16, x2: last & 0xffff, y2: last >> 16 })
    }
}

/// A command thread of a7xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum Thread {
    Br,
    Bv,
    Both,
}

/// Sets of command threads, as bits.
pub(crate) mod threads {
    pub(crate) const BR: u8 = 1;
    pub(crate) const BV: u8 = 2;
    pub(crate) const ALL: u8 = 3;
}

impl Thread {
    /// The threads that this names.
    pub(crate) fn set(self) -> u8 {
        match self {
            Thread::Br => threads::BR,
            Thread::Bv => threads::BV,
            Thread::Both => threads::ALL,
        }
    }
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

/// What CP_DRAW_PRED_* packets set up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct DrawPredicate {
    /// CP_DRAW_PRED_ENABLE_GLOBAL.
    pub global: bool,
    /// CP_DRAW_PRED_ENABLE_LOCAL.
    pub local: bool,
    /// Whether the predicate holds, if that is known.
    pub passes: Option<bool>,
}

/// Everything packets change.
#[derive(Clone, Debug, Default)]
pub struct AdrenoState {
    /// Registers; on a7xx those of BR, once the threads have gone separate ways.
    pub regs: Registers,
    /// Registers of BV, once a CP_THREAD_CONTROL has separated the threads (never when walking linearly).
    bv: Option<Box<Registers>>,
    /// Draw-state groups waiting for the next draw.
    pub groups: [GroupState; 32],
    /// Modes the current pass counts as; see [`mode`]. 0 stands for all.
    pub enable_mask: u8,
    /// The last marker set by CP_SET_MARKER (a6xx on) or mode by CP_SET_RENDER_MODE (a5xx).
    pub marker: Option<u32>,
    /// The last payload of CP_SET_MODE (a6xx on).
    pub set_mode: u32,
    /// The last thread chosen by CP_THREAD_CONTROL.
    pub thread: Option<Thread>,
    /// CP_SKIP_IB2_ENABLE_GLOBAL.
    pub skip_ib2_global: u32,
    /// CP_SKIP_IB2_ENABLE_LOCAL.
    pub skip_ib2_local: u32,
    /// Predication of draws.
    pub draw_predicate: DrawPredicate,
    /// Results of CP_REG_TEST by predicate bit.
    pub(crate) predicates: [Option<bool>; 32],
    /// The CP's scratch memory that CP_SCRATCH_WRITE and its relatives use.
    pub(crate) scratch: [Option<u32>; 8],
    /// The bin set by CP_SET_BIN, once one has been.
    pub bin: Option<Bin>,
    /// Draws, dispatches, blits and working events so far.
    pub draws: u32,
    /// Current IB level.
    pub level: u8,
}

impl AdrenoState {
    /// Nothing done yet; `registers` is the size of the register space in dwords.
    pub(crate) fn new(registers: usize) -> AdrenoState {
        AdrenoState { regs: Registers::new(registers), ..AdrenoState::default() }
    }

    /// The registers as a thread sees them. BR's stand for both.
    pub fn regs_for(&self, thread: Thread) -> &Registers {
        match (thread, &self.bv) {
            (Thread::Bv, Some(bv)) => bv,
            _ => &self.regs,
        }
    }

    /// The registers of the thread that executes now.
    pub fn current_regs(&self) -> &Registers {
        self.regs_for(self.thread.unwrap_or(Thread::Both))
    }

    /// Modes the current pass counts as: bits of [`mode`], never 0.
    pub fn modes(&self) -> u8 {
        if self.enable_mask == 0 { mode::ALL } else { self.enable_mask }
    }

    /// The threads that execute now.
    pub(crate) fn threads(&self) -> u8 {
        self.thread.map_or(threads::ALL, Thread::set)
    }

    /// Gives BV registers of its own from here on.
    pub(crate) fn separate_threads(&mut self) {
        if self.bv.is_none() {
            self.bv = Some(Box::new(self.regs.clone()));
        }
    }

    /// Changes the registers that these threads see.
    #[inline]
    pub(crate) fn with_regs(&mut self, threads: u8, mut change: impl FnMut(&mut Registers)) {
        match &mut self.bv {
            None => change(&mut self.regs),
            Some(bv) => {
                if threads & threads::BR != 0 {
                    change(&mut self.regs);
                }
                if threads & threads::BV != 0 {
                    change(bv);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unwritten_is_unknown_and_a_draw_starts_a_new_count() {
        let mut r = Registers::new(0x8000);
        assert_eq!((r.get(5), r.raw(5)), (None, 0));
        for reg in [0x7fff, 5, 64, 4096, 4095] {
            r.set(reg, reg + 1);
        }
        r.set(0x8000, 1);
        assert_eq!(r.iter_rewritten().collect::<Vec<_>>(), [5, 64, 4095, 4096, 0x7fff]);
        assert_eq!((r.get(64), r.previous(64), r.get(0x8000)), (Some(65), 0, None));
        r.mark_draw();
        assert_eq!(r.iter_rewritten().count(), 0);
        assert_eq!(r.iter_written().count(), 5);
        r.set(64, 7);
        assert_eq!((r.raw(64), r.previous(64), r.rewritten(64), r.rewritten(5)), (7, 65, true, false));
        r.forget(64);
        assert_eq!((r.get(64), r.rewritten(64)), (None, false));
        r.reset();
        assert_eq!((r.iter_written().count(), r.previous(5), r.raw(5)), (0, 0, 6));
    }

    #[test]
    fn separated_threads_keep_their_own_values() {
        let mut s = AdrenoState::default();
        s.with_regs(threads::ALL, |r| r.set(1, 10));
        s.separate_threads();
        s.with_regs(threads::BV, |r| r.set(1, 20));
        s.with_regs(threads::BR, |r| r.set(2, 30));
        s.with_regs(threads::ALL, |r| r.set(3, 40));
        let see = |t| [1, 2, 3].map(|reg| s.regs_for(t).get(reg));
        assert_eq!(see(Thread::Br), [Some(10), Some(30), Some(40)]);
        assert_eq!(see(Thread::Bv), [Some(20), None, Some(40)]);
    }
}
