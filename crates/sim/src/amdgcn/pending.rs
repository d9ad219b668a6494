//! Instructions under way, as a wave keeps them: counters, registers they will write, registers they may still read.

use super::access::{Access, Action, Dst, Form, MemorySpace, Read};
use super::counters::WaitCounter;
use super::lanes::{SHARED_APERTURE, bits};
use std::collections::VecDeque;
use unwedge_isa::amdgcn::Reg;

/// Kinds of accesses that overtake each other: scalar memory even overtakes itself.
pub(super) const UNORDERED: u8 = 0;
/// The kind that vector memory without samplers is in order among.
pub(super) const PLAIN: u8 = 1;
/// The kind that samples are in order among, from gfx10 on.
pub(super) const SAMPLES: u8 = 2;
/// The kind that accesses of LDS are in order among.
pub(super) const LOCAL: u8 = 3;
/// The kind that accesses of GDS are in order among.
pub(super) const GDS: u8 = 4;
/// The kind that what is counted as an export is in order among.
pub(super) const EXPORTS: u8 = 5;
/// The kind that rays are in order among.
pub(super) const RAYS: u8 = 7;
/// How many kinds there are.
const KINDS: usize = 8;

/// The path by which accesses of a wave reach memory in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Path {
    Vector,
    Shared,
    Scalar,
}

#[derive(Debug)]
pub(super) struct PendingAccess {
    pub(super) access: Access,
    pub(super) path: Path,
    /// What was read, once it was.
    pub(super) read: Option<Read>,
    pub(super) done: bool,
    /// Counters it is still under way for.
    pub(super) counters: Vec<CountedAccess>,
    /// Registers that will be written: the first, and how many.
    pub(super) registers: Option<(u16, u16)>,
    /// A counter whose fall says nothing of its result: that of LDS if no lane is there, that of memory if all are.
    pub(super) spare: Option<WaitCounter>,
    /// Registers it may still read, until a counter says otherwise.
    pub(super) locks: Option<Locks>,
    /// It is counted with the one behind it: an instruction with results in two places.
    pub(super) shares: bool,
    /// Something else has written its registers meanwhile, so its result is lost, or came too early.
    pub(super) lost: bool,
}

/// An access as one counter counts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CountedAccess {
    pub(super) counter: WaitCounter,
    /// Which ones write their registers in order among themselves.
    pub(super) kind: u8,
    /// The counter was full, and it was done to make room: it counts no longer, but nobody has waited for it.
    pub(super) full: bool,
    /// Later ones of its order that were counted and are kept no longer.
    pub(super) gone: u32,
    /// The wait that is being done says that it is done.
    pub(super) over: bool,
}

impl CountedAccess {
    /// The kind whose order its counter falls in: one counter orders all vector memory, though each kind of it writes registers
    /// in an order of its own.
    fn order(&self) -> u8 {
        match self.kind {
            SAMPLES | RAYS => PLAIN,
            kind => kind,
        }
    }
}

/// Registers that may still be read, until a counter says otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Locks {
    pub(super) counter: WaitCounter,
    ranges: [(Reg, u8); 4],
}

impl Locks {
    pub(super) fn new(counter: WaitCounter) -> Locks {
        Locks { counter, ranges: [(Reg::NULL, 0); 4] }
    }

    /// Adds registers; there is place for four ranges.
    pub(super) fn add(&mut self, first: Reg, count: u8) {
        if let Some(place) = self.ranges.iter_mut().find(|(_, count)| *count == 0) {
            *place = (first, count);
        }
    }

    fn has(&self, reg: Reg) -> bool {
        self.ranges.iter().any(|(first, count)| (first.0..first.0 + u16::from(*count)).contains(&reg.0))
    }
}

/// What of a wave is under way.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pub(super) entries: VecDeque<PendingAccess>,
}

/// Registers that an access will write: the first, and how many.
pub(super) fn registers(access: &Access) -> Option<(u16, u16)> {
    let count = match access.action {
        Action::Atomic { returns: false, .. } | Action::Store | Action::FromLds(_) => 0,
        _ => access
            .form
            .registers()
            .unwrap_or_else(|| access.pieces.iter().map(|piece| u16::from(piece.bytes.div_ceil(4))).sum()),
    };
    match access.dst {
        Dst::Vgpr(n) if count > 0 => Some((256 + n, count)),
        Dst::Scalar(reg) if count > 0 && reg != Reg::NULL => Some((reg.0, count)),
        _ => None,
    }
}

impl PendingAccess {
    /// Whether it will overwrite a scalar register, or some lanes of a vector register.
    pub(super) fn writes(&self, reg: Reg, lanes: u64) -> bool {
        self.registers.is_some_and(|(first, count)| {
            (first..first + count).contains(&reg.0)
                && (!reg.is_vgpr() || self.access.lanes & lanes != 0)
                && !self.access.form.leaves(usize::from(reg.0 - first))
        })
    }

    /// How it is counted by a counter.
    pub(super) fn counted(&self, counter: WaitCounter) -> Option<&CountedAccess> {
        self.counters.iter().find(|counted| counted.counter == counter)
    }

    /// Whether it fills a place of a counter, and in which order.
    pub(super) fn fills(&self, counter: WaitCounter) -> Option<u8> {
        self.counted(counter).filter(|counted| !counted.full && !self.shares).map(CountedAccess::order)
    }

    /// Whether no counter counts it: only a wait is missing.
    pub(super) fn is_past(&self) -> bool {
        self.counters.iter().all(|counted| counted.full)
    }

    /// Whether everything an earlier one writes or reads is written and read by this one.
    fn covers(&self, earlier: &PendingAccess) -> bool {
        let written = match (earlier.registers, self.registers) {
            (None, _) => true,
            (Some((first, count)), Some((own, own_count))) => {
                let ends_within = first + count <= own + own_count;
                own == first && ends_within || self.access.form == Form::Dwords && own < first && ends_within
            }
            _ => false,
        };
        // Lanes of the earlier one that this one does not load into keep what the earlier one loads.
        let lanes = earlier.registers.is_none() || earlier.access.lanes & !self.access.lanes == 0;
        let same_form = earlier.registers.is_none() || earlier.access.form == self.access.form;
        let same_counters = |a: &CountedAccess| self.counted(a.counter).is_some_and(|b| a.kind == b.kind);
        let read = earlier.locks.is_none() || earlier.locks == self.locks;
        written && lanes && same_form && read && earlier.counters.iter().all(same_counters)
    }
}

impl Pending {
    /// How many accesses are under way.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Counts the last access with the next one, as parts of one instruction.
    pub(super) fn share(&mut self) {
        if let Some(entry) = self.entries.back_mut() {
            entry.shares = true;
        }
    }

    /// Marks what a wait says to be done of a counter; whether there is any.
    pub(super) fn decide(&mut self, counter: WaitCounter, most: u32) -> bool {
        let mut any = false;
        // By order: those that are certainly not done before what comes earlier.
        let mut behind = [0u32; KINDS];
        for entry in self.entries.iter_mut().rev() {
            let shares = entry.shares;
            let Some(counted) = entry.counters.iter_mut().find(|counted| counted.counter == counter) else {
                continue;
            };
            let later = match counted.order() {
                UNORDERED => 1,
                order => {
                    let later = &mut behind[usize::from(order)];
                    *later += u32::from(!shares);
                    later.saturating_add(counted.gone)
                }
            };
            counted.over = later > most;
            any |= counted.over;
        }
        any
    }

    /// Which may be the first that is done of a counter: of each order the oldest, of those without one all.
    pub(super) fn first_done(&self, counter: WaitCounter) -> impl Iterator<Item = usize> {
        let mut seen = [false; KINDS];
        self.entries.iter().enumerate().filter_map(move |(at, entry)| {
            let order = entry.fills(counter)?;
            let before = std::mem::replace(&mut seen[usize::from(order)], true);
            (order == UNORDERED || !before).then_some(at)
        })
    }

    /// Drops an access that no counter counts, if nothing is to become of it any more, or a later one has all its
    /// registers. Else it drops an earlier one that it has all the registers of.
    pub(super) fn forget(&mut self, at: usize) {
        let Some(entry) = self.entries.get(at) else { return };
        let nothing_left = entry.registers.is_none() && entry.locks.is_none();
        let mut later = self.entries.iter().skip(at + 1);
        let found = if nothing_left || later.any(|later| later.is_past() && later.covers(entry)) {
            Some(at)
        } else {
            self.entries.iter().take(at).position(|earlier| earlier.is_past() && entry.covers(earlier))
        };
        let Some(gone) = found.and_then(|at| self.entries.remove(at).map(|entry| (at, entry))) else {
            return;
        };
        let (at, entry) = gone;
        for counted in entry.counters.iter().filter(|_| !entry.shares) {
            for earlier in self.entries.range_mut(..at) {
                let same =
                    |c: &&mut CountedAccess| c.counter == counted.counter && c.order() == counted.order();
                earlier.counters.iter_mut().filter(same).for_each(|c| c.gone = c.gone.saturating_add(1));
            }
        }
    }

    /// Whether a load under way will overwrite a scalar register, or some lanes of a vector register.
    pub(super) fn writes(&self, reg: Reg, lanes: u64) -> bool {
        self.entries.iter().any(|entry| entry.writes(reg, lanes))
    }

    /// A scalar register, or some lanes of a vector register, are written: the loads under way that will overwrite them are lost. Returns where the first of them is.
    pub(super) fn overwrite(&mut self, reg: Reg, lanes: u64) -> Option<u32> {
        let mut first = None;
        for entry in self.entries.iter_mut().filter(|entry| entry.writes(reg, lanes)) {
            entry.lost = true;
            first = first.or(Some(entry.access.at));
        }
        first
    }

    /// Whether every load under way that will overwrite lanes of a vector register is certain to do so before a new one does: what
    /// is counted as one kind is done in order.
    pub(super) fn writes_before(&self, new: &PendingAccess, reg: Reg, lanes: u64) -> bool {
        let of_it = |entry: &&PendingAccess| {
            entry.access.lanes & lanes != 0
                && entry.registers.is_some_and(|(first, count)| (first..first + count).contains(&reg.0))
        };
        let in_order = |entry: &PendingAccess| {
            let same = |a: &CountedAccess| {
                a.kind != UNORDERED && new.counted(a.counter).is_some_and(|b| a.kind == b.kind)
            };
            entry.access.form.half().is_none() && entry.counters.iter().all(same)
        };
        let mut earlier = self.entries.iter().filter(of_it).peekable();
        new.access.form.half().is_none() && earlier.peek().is_some() && earlier.all(in_order)
    }

    /// The instruction under way that may still read a register.
    pub(super) fn locked(&self, reg: Reg) -> Option<(u32, WaitCounter)> {
        self.entries.iter().find_map(|entry| {
            let locks = entry.locks?;
            locks.has(reg).then_some((entry.access.at, locks.counter))
        })
    }
}

/// The counter of a flat access that its result does not depend on.
pub(super) fn spare(access: &Access, counters: &[(WaitCounter, u8)]) -> Option<WaitCounter> {
    if access.space != MemorySpace::Flat {
        return None;
    }
    let local = |lane: &usize| access.address[*lane] >> 32 == SHARED_APERTURE >> 32;
    let (some, all) =
        (bits(access.lanes).any(|lane| local(&lane)), bits(access.lanes).all(|lane| local(&lane)));
    let of_lds = |counter: WaitCounter| matches!(counter, WaitCounter::Lgkm | WaitCounter::Ds);
    let mut names = counters.iter().map(|(counter, _)| *counter);
    match (some, all) {
        (false, _) => names.find(|counter| of_lds(*counter)),
        (_, true) => names.find(|counter| !of_lds(*counter)),
        _ => None,
    }
}
