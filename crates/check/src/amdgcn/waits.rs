//! Waits: what is pending in the counters, and which instruction uses registers before it waited for them.
//!
//! A thing pending has an age: how many events of its order have begun since. Counters fall as events end; a wait for `n` is
//! enough if `n` is not above the age, because events of one order end one after the other: were the thing still pending, more than
//! `n` would be. What ends in no order needs a wait for 0.
//!
//! FLAT instructions end in the order of vector memory unless they access LDS, which cannot be seen in the code. After a wait that
//! is enough only if they do not, what is pending is marked [`HALF`].
//!
//! Facts: `data/amd/waits.txt`.

use super::op::{ProgramOp, TouchedRegs, UnitClass, flag};
use super::program::covers;
use super::state::{EMPTY, PendingEvent, PendingList, RegSet, add, meet};
use unwedge_isa::amdgcn::model::{Field, Role};
use unwedge_isa::amdgcn::waits::{COUNTED, Counter, CounterUse, Event, fields};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg};

/// Bits of [`PendingEvent::extra`]: registers are read late, not written; `exec` is read late; it is a store of scalar memory; `m0`
/// is read late.
pub(super) const LOCK: u8 = 1;
pub(super) const EXEC: u8 = 2;
pub(super) const SMEM_STORE: u8 = 4;
pub(super) const M0: u8 = 8;
/// The same: a wait was enough for it only if no FLAT instruction accesses LDS.
pub(super) const HALF: u8 = 128;
/// The same: what uses it is a load into one half of a register, which keeps the other.
pub(super) const TIED: u8 = 16;

/// No wait.
pub(super) const NO: u8 = u8::MAX;

/// How many counters there are.
pub(super) const SLOTS: usize = Counter::COUNT;

/// The numbers a wait has, by counter.
pub(super) type WaitValues = [u8; SLOTS];

/// What an instruction must wait for: the number, and the pending thing that needs it.
pub(super) type Needs = [Option<(u8, PendingEvent)>; SLOTS];

/// The counters of one generation.
pub(super) struct Waits {
    generation: Gfx,
    names: [&'static str; SLOTS],
    /// By event: up to two of [`COUNTED`].
    counted: Vec<(Event, u8)>,
    /// The largest number of each counter.
    most: [u8; SLOTS],
}

impl Waits {
    pub fn new(gpu: &Gpu) -> Waits {
        let generation = gpu.generation();
        let (mut names, mut most) = ([""; SLOTS], [0; SLOTS]);
        for counter in Counter::of(generation) {
            names[counter as usize] = counter.name_in(generation).unwrap_or_default();
            most[counter as usize] = counter.most(generation) as u8;
        }
        let of = |counted: &(usize, &CounterUse)| counted.1.holds(generation);
        let counted = COUNTED.iter().enumerate().filter(of).map(|(n, c)| (c.event, n as u8)).collect();
        Waits { generation, names, counted, most }
    }

    /// The name of a counter.
    pub fn name(&self, slot: usize) -> &'static str {
        self.names.get(slot).copied().unwrap_or_default()
    }

    /// What a wait says; `None`: it is none.
    #[inline]
    pub fn wait_values(&self, op: &ProgramOp) -> Option<WaitValues> {
        let mut wait_values = [NO; SLOTS];
        match op.role {
            Role::Wait => {
                for wait in fields(op.opcode, self.generation) {
                    wait_values[wait.counter as usize] = wait.field.get(op.imm as u16).min(255) as u8;
                }
                // The SOPK forms add a scalar register, which is null in what is understood.
                Some(wait_values)
            }
            Role::WaitIdle => Some([0; SLOTS]),
            _ if op.has(flag::VINTERP) => {
                wait_values[Counter::Exp as usize] = if op.wait == 7 { NO } else { op.wait };
                Some(wait_values)
            }
            _ => None,
        }
    }

    /// Whether a wait says anything, the largest number being nothing.
    pub fn asks(&self, slot: usize, value: u8) -> bool {
        value < self.most[slot]
    }

    /// A wait is over.
    pub fn wait(&self, list: &mut PendingList, wait_values: &WaitValues) {
        let value = |p: &PendingEvent| wait_values[COUNTED[usize::from(p.kind)].counter as usize];
        let is_flat = |p: &PendingEvent| COUNTED[usize::from(p.kind)].event == Event::FlatLoad;
        let over = |p: &PendingEvent| {
            let unordered = COUNTED[usize::from(p.kind)].order == 0;
            value(p) != NO && value(p) <= if unordered { 0 } else { p.age }
        };
        // Over if no FLAT instruction accesses LDS.
        let likely = |p: &PendingEvent| value(p) != NO && value(p) <= p.age.saturating_add(p.flats);
        let half: Vec<u32> = list.all.iter().filter(|p| is_flat(p) && likely(p)).map(|p| p.op).collect();
        list.forget(over);
        for p in &mut list.all {
            if likely(p) && is_memory(p) || is_flat(p) && half.contains(&p.op) {
                p.extra |= HALF;
            }
        }
    }

    /// What an instruction must wait for, that has not been.
    /// `no_lane`: it is known that the instruction touches no vector register, as no lane is enabled.
    pub fn needs(
        &self,
        list: &PendingList,
        op: &ProgramOp,
        regs: &[TouchedRegs],
        no_lane: bool,
    ) -> Option<Box<Needs>> {
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
            let counts = &COUNTED[usize::from(p.kind)];
            let lock = p.extra & LOCK != 0;
            let writes_m0 = || regs.iter().any(|r| r.writes && covers(*r, Reg::M0));
            let used = |r: &&TouchedRegs| {
                r.is_vgpr() == p.vector
                    && !(no_lane && p.vector)
                    && (r.writes || !lock)
                    && touches(&p.regs, **r)
                    && (lock || r.reads || !self.in_order(counts, op))
            };
            let uses = p.extra & EXEC != 0 && op.has(flag::WRITES_EXEC)
                || p.extra & M0 != 0 && writes_m0()
                || p.regs != EMPTY && regs.iter().any(|r| used(&r));
            if uses {
                let tied = p.extra & (EXEC | M0) == 0 && regs.iter().filter(used).all(|r| r.tied);
                let p = &PendingEvent { extra: p.extra | if tied { TIED } else { 0 }, ..*p };
                let need = &mut needs.get_or_insert_default()[counts.counter as usize];
                // What is half waited for is of least weight.
                let weight = |p: &PendingEvent| (p.extra & (HALF | TIED), p.age);
                if need.is_none_or(|(_, other)| weight(p) < weight(&other)) {
                    *need = Some((p.age, *p));
                }
            }
        }
        needs
    }

    /// Whether an instruction writes its registers behind what has begun before: only what is of the same kind does, though
    /// counters fall in one order.
    fn in_order(&self, counts: &CounterUse, op: &ProgramOp) -> bool {
        // Nothing says that loads of gfx12 write registers in order, nor lds_direct and its like.
        let relied = match counts.event {
            Event::Ldsdir => false,
            Event::Lds => true,
            _ => self.generation < Gfx::Gfx12,
        };
        relied && counts.order != 0 && self.events(op).any(|(event, _)| event == counts.event)
    }

    /// What begins with an instruction.
    pub fn begin(&self, list: &mut PendingList, number: u32, op: &ProgramOp, regs: &[TouchedRegs]) {
        let message = matches!(op.role, Role::Message | Role::MessageRtn);
        if matches!(op.class, UnitClass::Valu | UnitClass::Salu | UnitClass::Sopp | UnitClass::Vintrp)
            && !message
        {
            return;
        }
        for (event, late) in self.events(op) {
            for &(_, kind) in self.counted.iter().filter(|(e, _)| *e == event) {
                let counts = &COUNTED[usize::from(kind)];
                self.begin_flat(list, counts);
                if counts.order != 0 {
                    let most = self.most[counts.counter as usize];
                    for p in &mut list.all {
                        let other = &COUNTED[usize::from(p.kind)];
                        if (other.counter, other.order) == (counts.counter, counts.order) {
                            p.age = (p.age + 1).min(most);
                        }
                    }
                }
                let mut new =
                    PendingEvent { kind, age: 0, extra: 0, flats: 0, vector: true, op: number, regs: EMPTY };
                match late {
                    HeldRegs::Nothing => {}
                    HeldRegs::Written => {
                        for r in regs.iter().filter(|r| r.writes) {
                            new.vector = r.is_vgpr();
                            add_regs(&mut new.regs, *r);
                        }
                    }
                    HeldRegs::Data | HeldRegs::Read => {
                        new.extra = LOCK | if late == HeldRegs::Read { EXEC } else { 0 };
                        for r in regs.iter().filter(|r| {
                            r.reads
                                && r.is_vgpr()
                                && (late == HeldRegs::Read || matches!(r.field, Field::Vdata | Field::Data))
                        }) {
                            add_regs(&mut new.regs, *r);
                        }
                    }
                }
                if event == Event::GdsLock {
                    new.extra |= M0;
                }
                if op.class == UnitClass::Smem && op.has(flag::STORE | flag::ATOMIC) {
                    new.extra |= SMEM_STORE;
                }
                list.push(new);
            }
        }
    }

    /// Counts FLAT instructions in what was pending before them, and other vector memory instructions in FLAT ones that are pending.
    fn begin_flat(&self, list: &mut PendingList, counts: &CounterUse) {
        if counts.counter != Counter::Memory {
            return;
        }
        for p in list.all.iter_mut().filter(|p| is_memory(p)) {
            let other = &COUNTED[usize::from(p.kind)];
            let same = other.order != 0 && other.order == counts.order;
            if !same && (is_flat_event(counts.event) || is_flat_event(other.event)) {
                p.flats = p.flats.saturating_add(1);
            }
        }
    }

    /// What begins with an instruction: events, and which registers they hold.
    fn events(&self, op: &ProgramOp) -> impl Iterator<Item = (Event, HeldRegs)> {
        let store = op.has(flag::STORE) || op.has(flag::ATOMIC) && !op.has(flag::RETURNS);
        let (first, second) = match op.class {
            UnitClass::Smem => (Some((Event::Smem, HeldRegs::Written)), None),
            UnitClass::Ds if op.has(flag::GDS) => {
                (Some((Event::Gds, HeldRegs::Written)), Some((Event::GdsLock, HeldRegs::Read)))
            }
            UnitClass::Ds => (Some((Event::Lds, HeldRegs::Written)), None),
            UnitClass::Exp => (Some((export(op.wait), HeldRegs::Read)), None),
            UnitClass::LdsDir => (Some((Event::Ldsdir, HeldRegs::Written)), None),
            UnitClass::Flat if store => (Some((Event::FlatStore, HeldRegs::Nothing)), None),
            UnitClass::Flat => (Some((Event::FlatLoad, HeldRegs::Written)), None),
            UnitClass::Buffer | UnitClass::Image | UnitClass::Global | UnitClass::Scratch => {
                let data = op.has(flag::STORE | flag::ATOMIC).then_some((Event::StoreLock, HeldRegs::Data));
                let sample = op.has(flag::SAMPLE) || op.has(flag::MSAA) && self.generation == Gfx::Gfx12;
                let main = match () {
                    () if store => (Event::Store, HeldRegs::Nothing),
                    () if op.has(flag::BVH) => (Event::Bvh, HeldRegs::Written),
                    () if sample => (Event::Sample, HeldRegs::Written),
                    () => (Event::Load, HeldRegs::Written),
                };
                (Some(main), data)
            }
            _ => match op.role {
                Role::Message => (Some((Event::Message, HeldRegs::Nothing)), None),
                Role::MessageRtn => (Some((Event::Message, HeldRegs::Written)), None),
                _ => (None, None),
            },
        };
        first.into_iter().chain(second)
    }
}

/// Whether something pending is counted with vector memory.
fn is_memory(p: &PendingEvent) -> bool {
    COUNTED[usize::from(p.kind)].counter == Counter::Memory
}

fn is_flat_event(event: Event) -> bool {
    matches!(event, Event::FlatLoad | Event::FlatStore)
}

/// Which registers an event holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HeldRegs {
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
pub(super) fn add_regs(set: &mut RegSet, regs: TouchedRegs) {
    let base = if regs.is_vgpr() { Reg::VGPR0.0 } else { 0 };
    add(set, regs.reg - base, regs.dwords);
}

/// Whether a set of the same file has one of some registers.
pub(super) fn touches(set: &RegSet, regs: TouchedRegs) -> bool {
    let base = if regs.is_vgpr() { Reg::VGPR0.0 } else { 0 };
    let first = regs.reg - base;
    let (word, bit) = (usize::from(first / 64), u32::from(first % 64));
    let mask = if regs.dwords >= 64 { u128::from(u64::MAX) } else { (1u128 << regs.dwords) - 1 } << bit;
    set.get(word).is_some_and(|w| w & mask as u64 != 0)
        || mask >> 64 != 0 && set.get(word + 1).is_some_and(|w| w & (mask >> 64) as u64 != 0)
}
