//! Waits: what is pending in the counters, and which instruction uses registers before it waited for them.
//!
//! A thing pending has an age: how many events of its order have begun since. Counters fall as events end; a wait for `n` is
//! enough if `n` is not above the age, because events of one order end one after the other: were the thing still pending, more than
//! `n` would be. What ends in no order needs a wait for 0.
//!
//! Facts: `data/amd/check/waits.txt`.

use super::facts::{COUNTERS, COUNTS, Counter, Counts, Event, SLOTS};
use super::op::{Class, Op, Regs, What, flag};
use super::program::covers;
use super::state::{EMPTY, List, Pending, Set, add, meet};
use unwedge_isa::amdgcn::model::Field;
use unwedge_isa::amdgcn::{Gen, Gpu, Reg};

/// Bits of [`Pending::extra`]: registers are read late, not written; `exec` is, `m0` is; it is a store of scalar memory; it counts
/// twice, and the other counter has been waited for.
pub(super) const LOCK: u8 = 1;
pub(super) const EXEC: u8 = 2;
pub(super) const SMEM_STORE: u8 = 4;
pub(super) const M0: u8 = 8;
pub(super) const HALF: u8 = 16;

/// No wait.
pub(super) const NO: u8 = u8::MAX;

/// The numbers a wait says, by counter.
pub(super) type Said = [u8; SLOTS];

/// What an instruction must wait for: the number, and the pending thing that needs it.
pub(super) type Needs = [Option<(u8, Pending)>; SLOTS];

/// The counters of one generation.
pub(super) struct Waits {
    generation: Gen,
    counters: Vec<&'static Counter>,
    /// By event: up to two of [`COUNTS`].
    counts: Vec<(Event, u8)>,
    /// The largest number of each counter.
    most: [u8; SLOTS],
}

impl Waits {
    pub fn new(gpu: &Gpu) -> Waits {
        let generation = gpu.generation();
        let on = |gens: u16| gens >> generation as u16 & 1 != 0;
        let counters: Vec<&Counter> = COUNTERS.iter().filter(|c| on(c.gens)).collect();
        let mut most = [0; SLOTS];
        for counter in &counters {
            most[usize::from(counter.slot)] = (1u8 << counter.bits.len()) - 1;
        }
        let counts =
            COUNTS.iter().enumerate().filter(|(_, c)| on(c.gens)).map(|(n, c)| (c.event, n as u8)).collect();
        Waits { generation, counters, counts, most }
    }

    /// The name of a counter.
    pub fn name(&self, slot: usize) -> &'static str {
        self.counters.iter().find(|c| usize::from(c.slot) == slot).map_or("", |c| c.name)
    }

    /// What a wait says; `None`: it is none.
    #[inline]
    pub fn said(&self, op: &Op) -> Option<Said> {
        let mut said = [NO; SLOTS];
        match op.what {
            What::Wait => {
                let name = op.name();
                for counter in self.counters.iter().filter(|c| c.instruction == name) {
                    let immediate = op.imm as u16;
                    // A field of the immediate that is not in its bits is all that is said.
                    let value = match name {
                        "s_waitcnt" | "s_wait_loadcnt_dscnt" | "s_wait_storecnt_dscnt" => counter
                            .bits
                            .iter()
                            .enumerate()
                            .fold(0, |value, (to, from)| value | (immediate >> from & 1) << to),
                        _ => immediate,
                    };
                    said[usize::from(counter.slot)] = value.min(255) as u8;
                }
                // The SOPK forms add a scalar register, which is null in what is understood.
                Some(said)
            }
            What::WaitIdle => Some([0; SLOTS]),
            _ if op.has(flag::VINTERP) => {
                said[1] = if op.wait == 7 { NO } else { op.wait };
                Some(said)
            }
            _ => None,
        }
    }

    /// Whether a wait says anything, the largest number being nothing.
    pub fn asks(&self, slot: usize, value: u8) -> bool {
        value < self.most[slot]
    }

    /// A wait is over.
    pub fn wait(&self, list: &mut List, said: &Said) {
        let over = |p: &Pending| {
            let slot = COUNTS[usize::from(p.kind)].slot;
            let value = said[usize::from(slot)];
            value != NO && (value <= p.age)
        };
        let is_flat = |p: &Pending| COUNTS[usize::from(p.kind)].event == Event::FlatLoad;
        let half: Vec<u32> = list.all.iter().filter(|p| is_flat(p) && over(p)).map(|p| p.op).collect();
        list.forget(over);
        if !half.is_empty() {
            for p in list.all.iter_mut().filter(|p| is_flat(p) && half.contains(&p.op)) {
                p.extra |= HALF;
            }
        }
    }

    /// What an instruction must wait for, that has not been.
    /// `no_lane`: it is known that the instruction touches no vector register, as no lane is enabled.
    pub fn needs(&self, list: &List, op: &Op, regs: &[Regs], no_lane: bool) -> Option<Box<Needs>> {
        let mut needs: Option<Box<Needs>> = None;
        if list.all.is_empty() {
            return needs;
        }
        let mut touched = [EMPTY; 2];
        for r in regs {
            add_regs(&mut touched[usize::from(r.is_vgpr())], *r);
        }
        for p in &list.all {
            if p.extra & (EXEC | M0) == 0 && !meet(&p.regs, &touched[usize::from(p.vector)]) {
                continue;
            }
            let counts = &COUNTS[usize::from(p.kind)];
            let lock = p.extra & LOCK != 0;
            let writes_m0 = || regs.iter().any(|r| r.writes && covers(*r, Reg::M0));
            let uses = p.extra & EXEC != 0 && op.has(flag::WRITES_EXEC)
                || p.extra & M0 != 0 && writes_m0()
                || p.regs != EMPTY
                    && regs.iter().any(|r| {
                        r.is_vgpr() == p.vector
                            && !(no_lane && p.vector)
                            && (r.writes || !lock)
                            && touches(&p.regs, *r)
                            && (lock || r.reads || !self.in_order(counts, op))
                    });
            if uses {
                let need = &mut needs.get_or_insert_default()[usize::from(counts.slot)];
                // What is half waited for is of least weight.
                let weight = |p: &Pending| (p.extra & HALF, p.age);
                if need.is_none_or(|(_, other)| weight(p) < weight(&other)) {
                    *need = Some((p.age, *p));
                }
            }
        }
        needs
    }

    /// Whether an instruction writes its registers behind what has begun before: only what is of the same kind does, though
    /// counters fall in one order.
    fn in_order(&self, counts: &Counts, op: &Op) -> bool {
        // Nothing says that loads of gfx12 write registers in order, nor lds_direct and its like.
        let relied = match counts.event {
            Event::Ldsdir => false,
            Event::Lds => true,
            _ => self.generation < Gen::Gfx12,
        };
        relied && counts.order != 0 && self.events(op).any(|(event, _)| event == counts.event)
    }

    /// What begins with an instruction.
    pub fn begin(&self, list: &mut List, number: u32, op: &Op, regs: &[Regs]) {
        let message = matches!(op.what, What::SendMsg | What::SendMsgRtn);
        if matches!(op.class, Class::Valu | Class::Salu | Class::Sopp | Class::Vintrp) && !message {
            return;
        }
        for (event, late) in self.events(op) {
            for &(_, kind) in self.counts.iter().filter(|(e, _)| *e == event) {
                let counts = &COUNTS[usize::from(kind)];
                if counts.order != 0 {
                    let most = self.most[usize::from(counts.slot)];
                    for p in &mut list.all {
                        let other = &COUNTS[usize::from(p.kind)];
                        if (other.slot, other.order) == (counts.slot, counts.order) {
                            p.age = (p.age + 1).min(most);
                        }
                    }
                }
                let mut new = Pending { kind, age: 0, extra: 0, vector: true, op: number, regs: EMPTY };
                match late {
                    Late::Nothing => {}
                    Late::Written => {
                        for r in regs.iter().filter(|r| r.writes) {
                            new.vector = r.is_vgpr();
                            add_regs(&mut new.regs, *r);
                        }
                    }
                    Late::Data | Late::Read => {
                        new.extra = LOCK | if late == Late::Read { EXEC } else { 0 };
                        for r in regs.iter().filter(|r| {
                            r.reads
                                && r.is_vgpr()
                                && (late == Late::Read || matches!(r.field, Field::Vdata | Field::Data))
                        }) {
                            add_regs(&mut new.regs, *r);
                        }
                    }
                }
                if event == Event::GdsLock {
                    new.extra |= M0;
                }
                if op.class == Class::Smem && op.has(flag::STORE | flag::ATOMIC) {
                    new.extra |= SMEM_STORE;
                }
                list.push(new);
            }
        }
    }

    /// What begins with an instruction: events, and which registers they hold.
    fn events(&self, op: &Op) -> impl Iterator<Item = (Event, Late)> {
        let store = op.has(flag::STORE) || op.has(flag::ATOMIC) && !op.has(flag::RETURNS);
        let (first, second) = match op.class {
            Class::Smem => (Some((Event::Smem, Late::Written)), None),
            Class::Ds if op.has(flag::GDS) => {
                (Some((Event::Gds, Late::Written)), Some((Event::GdsLock, Late::Read)))
            }
            Class::Ds => (Some((Event::Lds, Late::Written)), None),
            Class::Exp => (Some((export(op.wait), Late::Read)), None),
            Class::LdsDir => (Some((Event::Ldsdir, Late::Written)), None),
            Class::Flat if store => (Some((Event::FlatStore, Late::Nothing)), None),
            Class::Flat => (Some((Event::FlatLoad, Late::Written)), None),
            Class::Buffer | Class::Image | Class::Global | Class::Scratch => {
                let data = op.has(flag::STORE | flag::ATOMIC).then_some((Event::StoreLock, Late::Data));
                let sample = op.has(flag::SAMPLE) || op.has(flag::MSAA) && self.generation == Gen::Gfx12;
                let main = match () {
                    () if store => (Event::Store, Late::Nothing),
                    () if op.has(flag::BVH) => (Event::Bvh, Late::Written),
                    () if sample => (Event::Sample, Late::Written),
                    () => (Event::Load, Late::Written),
                };
                (Some(main), data)
            }
            _ => match op.what {
                What::SendMsg => (Some((Event::Message, Late::Nothing)), None),
                What::SendMsgRtn => (Some((Event::Message, Late::Written)), None),
                _ => (None, None),
            },
        };
        first.into_iter().chain(second)
    }
}

/// Which registers an event holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Late {
    Nothing,
    Written,
    /// The data of a store, read.
    Data,
    /// All vector registers that are read, and `exec`.
    Read,
}

fn export(target: u8) -> Event {
    match target {
        12..=20 => Event::ExportPos,
        32..=63 => Event::ExportPar,
        _ => Event::ExportMrt,
    }
}

/// Adds registers to a set of their file.
pub(super) fn add_regs(set: &mut Set, regs: Regs) {
    let base = if regs.is_vgpr() { Reg::VGPR0.0 } else { 0 };
    add(set, regs.reg - base, regs.dwords);
}

/// Whether a set of the same file has one of some registers.
pub(super) fn touches(set: &Set, regs: Regs) -> bool {
    let base = if regs.is_vgpr() { Reg::VGPR0.0 } else { 0 };
    let first = regs.reg - base;
    let (word, bit) = (usize::from(first / 64), u32::from(first % 64));
    let mask = if regs.dwords >= 64 { u128::from(u64::MAX) } else { (1u128 << regs.dwords) - 1 } << bit;
    set.get(word).is_some_and(|w| w & mask as u64 != 0)
        || mask >> 64 != 0 && set.get(word + 1).is_some_and(|w| w & (mask >> 64) as u64 != 0)
}
