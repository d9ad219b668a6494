//! The events that are pending at a point of the code.

use super::WaitNumbers;
use unwedge_isa::amdgcn::effects::Regs;
use unwedge_isa::amdgcn::model::{Field, Format, Mod, Role, Trait};
use unwedge_isa::amdgcn::waits::{COUNTED, Counter, CounterUse, Event};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Operand, Reg};

/// How an event accesses registers late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Late {
    /// Nothing.
    Nothing,
    /// Writes its results.
    Writes,
    /// Reads the data that it stores.
    ReadsData,
    /// Reads its vector registers and `exec`.
    ReadsAll,
}

/// An event that may not have ended.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PendingEvent {
    /// Its row of [`COUNTED`].
    row: u8,
    /// How many events of its order have begun since.
    age: u16,
    late: Late,
    /// Registers that it reads or writes late.
    regs: Regs,
}

/// The row of an event in [`COUNTED`], and the number of later events of its order.
type EventAge = (u8, u16);

/// Events that may not have ended, each combination of row, age and lateness once.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct PendingSet {
    late: Vec<PendingEvent>,
    /// Events that do nothing late. Many stores may be pending, so these are small.
    silent: Vec<EventAge>,
}

fn counted(row: u8) -> &'static CounterUse {
    &COUNTED[usize::from(row)]
}

/// Events that an instruction begins.
pub(crate) fn events(inst: &Inst, gpu: &Gpu) -> impl Iterator<Item = (Event, Late)> + Clone + use<> {
    begun(inst, gpu).into_iter().flatten()
}

/// An instruction begins two events at most.
fn begun(inst: &Inst, gpu: &Gpu) -> [Option<(Event, Late)>; 2] {
    let row = inst.row();
    let one = |event, late| [Some((event, late)), None];
    let counts = row.format.is_memory()
        || matches!(row.format, Format::Exp | Format::Ldsdir)
        || matches!(row.role, Role::Message | Role::MessageRtn);
    if !counts {
        return [None, None];
    }
    let has = |id| row.traits.has(id);
    let returns = inst.returns(gpu);
    let stores = has(Trait::Store) || has(Trait::Atomic) && !returns;
    match row.format {
        Format::Smem => one(Event::Smem, Late::Writes),
        Format::Ds if inst.mods.has(Mod::Gds) || has(Trait::GdsAlways) => {
            [Some((Event::Gds, Late::Writes)), Some((Event::GdsLock, Late::ReadsAll))]
        }
        Format::Ds => one(Event::Lds, Late::Writes),
        Format::Exp => one(export(inst), Late::ReadsAll),
        Format::Ldsdir => one(Event::Ldsdir, Late::Writes),
        // Instructions that only control caches do not count.
        _ if row.format.is_memory() && row.role == Role::Cache => [None, None],
        Format::Flat if stores => one(Event::FlatStore, Late::Nothing),
        Format::Flat => one(Event::FlatLoad, Late::Writes),
        _ if row.format.is_memory() => {
            let sampled = inst.variant().slots.iter().any(|slot| slot.field == Field::Ssamp)
                || has(Trait::Msaa) && gpu.generation() == Gfx::Gfx12;
            let main = match () {
                () if stores => (Event::Store, Late::Nothing),
                () if has(Trait::Bvh) || has(Trait::Bvh64) => (Event::Bvh, Late::Writes),
                () if sampled => (Event::Sample, Late::Writes),
                () => (Event::Load, Late::Writes),
            };
            let locks = has(Trait::Store) || has(Trait::Atomic);
            [Some(main), locks.then_some((Event::StoreLock, Late::ReadsData))]
        }
        _ => one(Event::Message, Late::Writes),
    }
}

/// Targets of exports: render targets and depth, positions, parameters.
fn export(inst: &Inst) -> Event {
    match inst.operands[0] {
        Operand::Imm(12..=20) => Event::ExportPos,
        Operand::Imm(32..=63) => Event::ExportPar,
        _ => Event::ExportMrt,
    }
}

/// Registers that an instruction reads, and those that it writes.
fn touched(inst: &Inst, gpu: &Gpu) -> (Regs, Regs) {
    let (mut reads, mut writes) = (Regs::default(), Regs::default());
    inst.touches(gpu, &mut |touch| {
        if touch.access.reads() {
            reads.insert(touch.reg, touch.dwords);
        }
        if touch.access.writes() {
            writes.insert(touch.reg, touch.dwords);
        }
    });
    (reads, writes)
}

/// Whether an instruction stores or exports, and writes no register.
pub(super) fn only_stores(inst: &Inst, gpu: &Gpu) -> bool {
    let format = inst.row().format;
    (format.is_memory() || format == Format::Exp) && touched(inst, gpu).1.is_empty()
}

/// Whether a later event of the same kind writes its results after it.
fn in_order(counted: &CounterUse, generation: Gfx) -> bool {
    counted.order != 0
        && match counted.event {
            Event::Lds => true,
            Event::Ldsdir => false,
            _ => generation < Gfx::Gfx12,
        }
}

impl PendingSet {
    /// What an instruction must wait for.
    pub fn needs(&self, inst: &Inst, gpu: &Gpu) -> WaitNumbers {
        let mut numbers: WaitNumbers = [None; Counter::COUNT];
        if self.late.is_empty() {
            return numbers;
        }
        let (reads, writes) = touched(inst, gpu);
        let own = events(inst, gpu);
        for pending in &self.late {
            let counted = counted(pending.row);
            let meets = |regs: &Regs| !pending.regs.both(regs).is_empty();
            let needed = match pending.late {
                Late::Nothing => false,
                Late::Writes => {
                    let ordered = in_order(counted, gpu.generation())
                        && own.clone().any(|(event, _)| event == counted.event);
                    meets(&reads) || meets(&writes) && !ordered
                }
                Late::ReadsData => meets(&writes),
                Late::ReadsAll => meets(&writes),
            };
            if needed {
                let number = if counted.order == 0 { 0 } else { pending.age };
                let place = &mut numbers[counted.counter as usize];
                *place = Some(place.map_or(number, |other| other.min(number)));
            }
        }
        numbers
    }

    /// Ends the events that a wait ends, and returns whether it ended any.
    pub fn wait(&mut self, counter: Counter, number: u16) -> bool {
        let before = self.late.len() + self.silent.len();
        let stays = |row: u8, age: u16| {
            let counted = counted(row);
            counted.counter != counter || (if counted.order == 0 { 0 } else { age }) < number
        };
        self.late.retain(|pending| stays(pending.row, pending.age));
        self.silent.retain(|(row, age)| stays(*row, *age));
        self.late.len() + self.silent.len() != before
    }

    /// Begins the events of an instruction.
    pub fn begin(&mut self, inst: &Inst, gpu: &Gpu) {
        let mut events = events(inst, gpu).peekable();
        if events.peek().is_none() {
            return;
        }
        let generation = gpu.generation();
        let (_, writes) = touched(inst, gpu);
        for (event, late) in events {
            for (row, counted) in (0u8..).zip(COUNTED) {
                if counted.event != event || !counted.holds(generation) {
                    continue;
                }
                if counted.order != 0 {
                    self.pass(counted, counted.counter.most(generation));
                }
                let regs = match late {
                    Late::Nothing => Regs::default(),
                    Late::Writes => writes,
                    Late::ReadsData => vector_reads(inst, gpu, true),
                    Late::ReadsAll => {
                        let mut regs = vector_reads(inst, gpu, false);
                        regs.insert(Reg::EXEC, 2);
                        if event == Event::GdsLock {
                            regs.insert(Reg::M0, 1);
                        }
                        regs
                    }
                };
                self.add(PendingEvent { row, age: 0, late, regs });
            }
        }
    }

    /// Another event of an order has begun. Events of the greatest age that can be counted are merged.
    fn pass(&mut self, order: &CounterUse, most: u16) {
        let same = |row: u8| (counted(row).counter, counted(row).order) == (order.counter, order.order);
        let mut oldest = false;
        for pending in self.late.iter_mut().filter(|pending| same(pending.row) && pending.age < most) {
            pending.age += 1;
            oldest |= pending.age == most;
        }
        for (_, age) in self.silent.iter_mut().filter(|(row, age)| same(*row) && *age < most) {
            *age += 1;
            oldest |= *age == most;
        }
        if !oldest {
            return;
        }
        self.silent.sort_unstable();
        self.silent.dedup();
        for at in (0..self.late.len()).rev() {
            if self.late[at].age == most {
                let old = self.late.swap_remove(at);
                self.add(old);
            }
        }
    }

    /// Adds an event, merged with one of the same row and age if there is one; returns whether that changed anything.
    fn add(&mut self, new: PendingEvent) -> bool {
        if new.late == Late::Nothing {
            return self.add_silent((new.row, new.age));
        }
        let like = |old: &&mut PendingEvent| (old.row, old.late, old.age) == (new.row, new.late, new.age);
        match self.late.iter_mut().find(like) {
            Some(old) => {
                let regs = old.regs.either(&new.regs);
                let changed = regs != old.regs;
                old.regs = regs;
                changed
            }
            None => {
                self.late.push(new);
                true
            }
        }
    }

    fn add_silent(&mut self, new: EventAge) -> bool {
        let missing = !self.silent.contains(&new);
        if missing {
            self.silent.push(new);
        }
        missing
    }

    /// Adds what is pending on another path, and returns whether that changed anything.
    pub fn join(&mut self, other: &PendingSet) -> bool {
        let mut changed = false;
        for new in &other.late {
            changed |= self.add(new.clone());
        }
        for new in &other.silent {
            changed |= self.add_silent(*new);
        }
        changed
    }
}

/// Vector registers that an instruction reads; `data`: only what it stores.
fn vector_reads(inst: &Inst, gpu: &Gpu, data: bool) -> Regs {
    let mut regs = Regs::default();
    inst.touches(gpu, &mut |touch| {
        let wanted = !data || matches!(touch.field, Field::Vdata | Field::Data);
        if touch.access.reads() && touch.reg.is_vgpr() && wanted {
            regs.insert(touch.reg, touch.dwords);
        }
    });
    regs
}
