//! Order by latency: while an instruction waits for what it reads, others that come later in the block are executed.
//!
//! Takes a part of a block in a valid order, and gives another valid order. If the next instruction would wait, the first of the following ones
//! that does not wait is taken. From gfx10 on, the one with the longest path to the end of the part is taken among those that do not wait, because results of
//! the vector ALU come late there. Memory accesses keep their order, and so do instructions that use `scc`, because there is one. Up to gfx9 those
//! that make or read lane masks keep it, too, because there is one register for short forms. How many more registers are alive at once than
//! before is bounded. Latencies: `data/amd/cost.txt`.

use super::is_movable;
use crate::cost::passes;
use crate::ir::shape::{self, Variants};
use crate::ir::{Inst, Op, Program, Temp};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::cost::{self, UnitCost};
use unwedge_isa::amdgcn::model::{Form, Format, Trait};
use unwedge_isa::amdgcn::waits::{Counter, Event};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// How many instructions are looked at.
const WINDOW: usize = 24;
/// How many of them are looked at if one does not wait, from gfx10 on.
const READY_WINDOW: usize = 8;
/// How much longer the path to the end must be to come before others, in cycles.
const LONGER: u32 = 4;
/// How many more vector and scalar registers may be alive at once than in the order before, and up to how many.
const SLACK: [u32; 2] = [8, 8];
const MOST: [u32; 2] = [40, 48];

/// What instructions use that keep their order, one bit each.
struct Shared;

impl Shared {
    /// `scc`.
    const SCC: u8 = 1;
    /// The register of lane masks for short forms, up to gfx9.
    const MASK: u8 = 2;
    /// Memory.
    const MEMORY: u8 = 4;
}

/// What constrains the order of an instruction.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    /// Its place in the part.
    at: u32,
    /// Bits of [`Shared`].
    shared: u8,
    /// Nothing moves over it.
    fixed: bool,
    fixed_reg: FixedRegUse,
    /// Cycles from its start to the end of what needs its results.
    height: u32,
}

/// How long an instruction takes.
#[derive(Debug, Clone, Copy, Default)]
struct Cycles {
    /// Until results are there.
    latency: u32,
    /// Until the next instruction begins.
    issue: u32,
}

/// How an instruction uses temporaries that must be in one particular register.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum FixedRegUse {
    #[default]
    None,
    /// It reads this one.
    Reads(Temp),
    /// It reads several, or writes one.
    Other,
}

impl FixedRegUse {
    fn of(program: &Program, inst: Inst) -> FixedRegUse {
        if program.definitions(inst).iter().any(|own| own.temp.is_some() && own.reg.is_some()) {
            return FixedRegUse::Other;
        }
        let fixed = program.operands(inst).iter().filter(|own| own.reg.is_some());
        fixed
            .filter_map(|own| own.as_temp())
            .map(FixedRegUse::Reads)
            .fold(FixedRegUse::None, FixedRegUse::with)
    }

    fn with(self, other: FixedRegUse) -> FixedRegUse {
        match (self, other) {
            (own, FixedRegUse::None) => own,
            (FixedRegUse::None, own) => own,
            (own, other) if own == other => own,
            _ => FixedRegUse::Other,
        }
    }

    /// Whether the order of two instructions is kept, because both need the same register.
    fn keeps_order(self, other: FixedRegUse) -> bool {
        self != FixedRegUse::None && other != FixedRegUse::None && self.with(other) == FixedRegUse::Other
    }
}

fn is_vector(format: Format) -> bool {
    use Format::{Vinterp, Vop1, Vop2, Vop3, Vop3p, Vopc, Vopd};
    matches!(format, Vop1 | Vop2 | Vopc | Vop3 | Vop3p | Vopd | Vinterp)
}

/// A part that is being ordered.
#[derive(Clone, Copy)]
struct PartState<'a> {
    program: &'a Program,
    variants: &'a Variants,
    part: &'a [Inst],
    reads: &'a PartReads,
    /// The instructions that have not been placed yet.
    order: &'a [Facts],
    now: u32,
    /// By bank: registers that are alive beyond those before the part, and the most that may be.
    live: [i64; 2],
    most: [i64; 2],
}

/// When a temporary is available whose instruction has not been placed yet.
const PENDING: u32 = u32::MAX;

/// Temporaries that instructions of a part read.
#[derive(Debug, Default)]
struct PartReads {
    temps: Vec<Temp>,
    /// By instruction: its first one, and at the end one past the last of all.
    starts: Vec<usize>,
}

impl PartReads {
    fn set(&mut self, program: &Program, part: &[Inst]) {
        self.temps.clear();
        self.starts.clear();
        self.starts.push(0);
        for &inst in part {
            self.temps.extend(program.operands(inst).iter().filter_map(|operand| operand.as_temp()));
            self.starts.push(self.temps.len());
        }
    }
}

/// When the operands of an instruction are there.
#[derive(Debug, Clone, Copy)]
struct Arrival {
    /// The first of the [`PartReads`] that has not been looked at.
    next: usize,
    /// When those before it are there.
    latest: u32,
}

/// Orders parts of a program.
pub(super) struct LatencyOrder<'a> {
    variants: &'a Variants,
    memory: &'a mut LatencyMemory,
}

/// Memory of the phase.
#[derive(Debug, Default)]
pub(super) struct LatencyMemory {
    temps: TempFacts,
    part: PartMemory,
}

/// What is known of temporaries.
#[derive(Debug, Default)]
struct TempFacts {
    /// By temporary: how many reads of it are left in the part, whether others read it, and when it is there, or [`PENDING`].
    left: Vec<u32>,
    outside: Vec<bool>,
    ready: Vec<u32>,
    /// By temporary: the greatest height of what reads it in the part.
    heights: Vec<u32>,
    /// How often a temporary is read in the program.
    reads: Vec<u32>,
}

/// Scratch memory for one part.
#[derive(Debug, Default)]
struct PartMemory {
    reads: PartReads,
    cycles: Vec<Cycles>,
    order: Vec<Facts>,
    arrivals: Vec<Arrival>,
    made: Vec<Inst>,
}

/// Makes a list of as many equal items.
fn refill<T: Clone>(list: &mut Vec<T>, count: usize, item: T) {
    list.clear();
    list.resize(count, item);
}

impl<'a> LatencyOrder<'a> {
    pub fn new(program: &Program, variants: &'a Variants, memory: &'a mut LatencyMemory) -> LatencyOrder<'a> {
        memory.temps.reset(program);
        LatencyOrder { variants, memory }
    }

    /// Orders a part.
    pub fn arrange(&mut self, program: &Program, part: &mut [Inst]) {
        if part.len() < 3 {
            return;
        }
        let LatencyOrder { variants, memory: LatencyMemory { temps, part: memory } } = self;
        let PartMemory { reads, cycles, order, arrivals, made } = memory;
        cycles.clear();
        order.clear();
        for (at, inst) in (0..).zip(part.iter()) {
            let (facts, own) = temps.facts(program, variants, *inst);
            order.push(Facts { at, ..facts });
            cycles.push(own);
        }
        reads.set(program, part);
        let most = temps.begin(program, part, reads);
        temps.heights(program, part, cycles, order);
        arrivals.clear();
        arrivals.extend(reads.starts.iter().map(|start| Arrival { next: *start, latest: 0 }));
        made.clear();
        let mut live = [0i64; 2];
        let mut now = 0;
        for placed in 0..part.len() {
            let state =
                PartState { program, variants, part, reads, order: &order[placed..], now, live, most };
            let chosen = temps.choose(&state, arrivals);
            let at = order[placed + chosen].at as usize;
            order.copy_within(placed..placed + chosen, placed + 1);
            let inst = part[at];
            now = now.max(temps.available(reads, at, &mut arrivals[at]));
            temps.account(program, inst, &mut live);
            for definition in program.definitions(inst) {
                if let Some(temp) = definition.temp {
                    temps.ready[temp.index()] = now + cycles[at].latency;
                }
            }
            now += cycles[at].issue;
            made.push(inst);
        }
        part.copy_from_slice(made);
        for temp in part.iter().flat_map(|inst| program.definitions(*inst)).filter_map(|d| d.temp) {
            temps.ready[temp.index()] = 0;
        }
    }
}

impl TempFacts {
    fn reset(&mut self, program: &Program) {
        let count = program.temp_count();
        refill(&mut self.left, count, 0);
        refill(&mut self.outside, count, false);
        refill(&mut self.ready, count, 0);
        refill(&mut self.heights, count, 0);
        refill(&mut self.reads, count, 0);
        for data in program.blocks.values() {
            for &inst in &data.insts {
                for temp in program.operands(inst).iter().filter_map(|operand| operand.as_temp()) {
                    self.reads[temp.index()] += 1;
                }
            }
        }
    }

    /// The heights of a part.
    fn heights(&mut self, program: &Program, part: &[Inst], cycles: &[Cycles], facts: &mut [Facts]) {
        for (at, &inst) in part.iter().enumerate().rev() {
            let written = program.definitions(inst).iter().filter_map(|definition| definition.temp);
            let next = written.map(|temp| std::mem::take(&mut self.heights[temp.index()])).max();
            let height = cycles[at].latency + next.unwrap_or_default();
            facts[at].height = height;
            for temp in program.operands(inst).iter().filter_map(|operand| operand.as_temp()) {
                let place = &mut self.heights[temp.index()];
                *place = height.max(*place);
            }
        }
        for temp in part.iter().flat_map(|inst| program.operands(*inst)).filter_map(|own| own.as_temp()) {
            self.heights[temp.index()] = 0;
        }
    }

    fn facts(&self, program: &Program, variants: &Variants, inst: Inst) -> (Facts, Cycles) {
        let mut facts = Facts { fixed_reg: FixedRegUse::of(program, inst), ..Facts::default() };
        let Op::Hw(opcode) = program.op(inst) else {
            facts.fixed = !is_movable(program, inst);
            return (facts, Cycles { latency: 0, issue: 1 });
        };
        let gpu = &program.gpu;
        let row = opcode.row();
        let rdna = gpu.generation() >= Gfx::Gfx10;
        if let Some(variant) = variants.widest(opcode) {
            if variant.slots.iter().any(|slot| slot.reg == Reg::SCC.0) {
                facts.shared |= Shared::SCC;
            }
            if !rdna && is_vector(row.format) {
                let named = |temp: Option<Temp>| temp.is_some_and(|temp| self.reads[temp.index()] > 0);
                let writes = program.definitions(inst).iter().zip(shape::definitions(variant));
                let mut reads = program.operands(inst).iter();
                let masks = row.traits.has(Trait::ReadsMask) || row.traits.has(Trait::DivFmas);
                if writes.filter(|(own, _)| !own.class.is_vgpr()).any(|(own, _)| named(own.temp))
                    || masks && reads.any(|own| !own.class.is_vgpr() && own.as_temp().is_some())
                {
                    facts.shared |= Shared::MASK;
                }
            }
        }
        if row.format.is_memory() {
            facts.shared |= Shared::MEMORY;
        }
        facts.fixed = !row.format.is_memory() && !is_movable(program, inst);
        let unit = UnitCost::on(row.unit, gpu);
        let passes = u32::from(passes(opcode, gpu));
        let issue = if rdna { passes } else { unit.latency.into() };
        let mut latency = if rdna { u32::from(unit.latency) + passes - 1 } else { unit.latency.into() };
        latency += match row.format {
            Format::Smem if program.operands(inst).first().is_some_and(|base| base.class.dwords() == 2) => {
                cost::NEAR_SMEM_LATENCY as u32
            }
            Format::Smem => cost::late(Event::Smem, Counter::Local).into(),
            Format::Ds => cost::late(Event::Lds, Counter::Local).into(),
            Format::Ldsdir => cost::late(Event::Ldsdir, Counter::Exp).into(),
            format if format.is_memory() => cost::late(Event::Load, Counter::Memory).into(),
            _ => 0,
        };
        (facts, Cycles { latency, issue })
    }

    /// Counts reads, and returns the most registers that may be alive at once.
    fn begin(&mut self, program: &Program, part: &[Inst], reads: &PartReads) -> [i64; 2] {
        for temp in &reads.temps {
            self.left[temp.index()] = 0;
        }
        for &inst in part {
            for temp in program.definitions(inst).iter().filter_map(|definition| definition.temp) {
                self.left[temp.index()] = 0;
                self.ready[temp.index()] = PENDING;
            }
        }
        for temp in &reads.temps {
            self.left[temp.index()] += 1;
        }
        // Reads of other blocks, and phis, are not among those of the part.
        let defined = part.iter().flat_map(|inst| program.definitions(*inst)).filter_map(|own| own.temp);
        for temp in reads.temps.iter().copied().chain(defined) {
            self.outside[temp.index()] = self.reads[temp.index()] > self.left[temp.index()];
        }
        let (mut live, mut peak) = ([0i64; 2], [0i64; 2]);
        for &inst in part {
            self.account(program, inst, &mut live);
            peak = [peak[0].max(live[0]), peak[1].max(live[1])];
        }
        // All reads were counted down to none.
        for temp in &reads.temps {
            self.left[temp.index()] += 1;
        }
        std::array::from_fn(|bank| {
            peak[bank].max((peak[bank] + i64::from(SLACK[bank])).min(MOST[bank].into()))
        })
    }

    /// Registers that are alive after an instruction, beyond those before the part.
    fn account(&mut self, program: &Program, inst: Inst, live: &mut [i64; 2]) {
        for operand in program.operands(inst) {
            let Some(temp) = operand.as_temp() else { continue };
            let left = &mut self.left[temp.index()];
            *left = left.saturating_sub(1);
            if *left == 0 && !self.outside[temp.index()] {
                live[usize::from(!operand.class.is_vgpr())] -= i64::from(operand.class.dwords());
            }
        }
        for definition in program.definitions(inst) {
            let Some(temp) = definition.temp else { continue };
            if self.left[temp.index()] > 0 || self.outside[temp.index()] {
                live[usize::from(!definition.class.is_vgpr())] += i64::from(definition.class.dwords());
            }
        }
    }

    /// When all operands of an instruction are available. What is available stays so, so reads are looked at once.
    fn available(&self, reads: &PartReads, at: usize, arrival: &mut Arrival) -> u32 {
        let rest = &reads.temps[arrival.next..reads.starts[at + 1]];
        for temp in rest {
            let ready = self.ready[temp.index()];
            if ready == PENDING {
                return PENDING;
            }
            arrival.latest = arrival.latest.max(ready);
            arrival.next += 1;
        }
        arrival.latest
    }

    /// How the registers that are alive change with an instruction.
    fn change(&self, program: &Program, inst: Inst) -> [i64; 2] {
        let mut change = [0i64; 2];
        let operands = program.operands(inst);
        for (at, operand) in operands.iter().enumerate() {
            let Some(temp) = operand.as_temp() else { continue };
            let again = |other: &&crate::ir::Operand| other.as_temp() == Some(temp);
            let first = !operands[..at].iter().any(|other| other.as_temp() == Some(temp));
            let count = operands.iter().filter(again).count() as u32;
            if first && self.left[temp.index()] == count && !self.outside[temp.index()] {
                change[usize::from(!operand.class.is_vgpr())] -= i64::from(operand.class.dwords());
            }
        }
        for definition in program.definitions(inst) {
            let Some(temp) = definition.temp else { continue };
            if self.left[temp.index()] > 0 || self.outside[temp.index()] {
                change[usize::from(!definition.class.is_vgpr())] += i64::from(definition.class.dwords());
            }
        }
        change
    }

    /// The place in the order of the next instruction.
    fn choose(&self, state: &PartState<'_>, arrivals: &mut [Arrival]) -> usize {
        let PartState { program, part, reads, order, now, live, most, .. } = *state;
        let late_results = program.gpu.generation() >= Gfx::Gfx10;
        let ready_window = if late_results { READY_WINDOW } else { 1 };
        let (mut shared, mut fixed_reg) = (0, FixedRegUse::None);
        let (mut best, mut least, mut tallest) = (0, u32::MAX, 0);
        for (place, own) in order[..order.len().min(WINDOW)].iter().enumerate() {
            if least == 0 && place >= ready_window || own.fixed && place > 0 {
                break;
            }
            let at = own.at as usize;
            let kept = own.shared & shared != 0
                || own.fixed_reg.keeps_order(fixed_reg)
                || least == 0 && own.height <= tallest + LONGER;
            let available = if kept { PENDING } else { self.available(reads, at, &mut arrivals[at]) };
            if available != PENDING {
                let wait = available.saturating_sub(now);
                let fits = || {
                    let change = self.change(program, part[at]);
                    (0..2).all(|bank| change[bank] <= 0 || live[bank] + change[bank] <= most[bank])
                };
                let taller = wait == least && own.height > tallest + LONGER;
                if (wait < least || taller) && (place == 0 || fits() && !overwrites(state, place, part[at])) {
                    (best, least, tallest) = (place, wait, own.height);
                }
            }
            if own.fixed {
                break;
            }
            shared |= own.shared;
            fixed_reg = fixed_reg.with(own.fixed_reg);
        }
        best
    }
}

/// Whether an instruction writes its result over an operand that an earlier one, which has not been placed yet, reads.
fn overwrites(state: &PartState<'_>, place: usize, inst: Inst) -> bool {
    let PartState { program, variants, .. } = *state;
    let Op::Hw(opcode) = program.op(inst) else { return false };
    let encoded = || {
        let forms = [Form::Native, Form::E32, Form::E64];
        forms.into_iter().filter_map(|form| variants.variant(opcode, form))
    };
    let tied = || {
        encoded().flat_map(|variant| {
            let slots = shape::operands(variant).zip(program.operands(inst));
            slots.filter(|(slot, _)| slot.access.writes()).filter_map(|(_, operand)| operand.as_temp())
        })
    };
    if tied().next().is_none() {
        return false;
    }
    state.order.iter().take(place).any(|earlier| {
        let mut read =
            program.operands(state.part[earlier.at as usize]).iter().filter_map(|operand| operand.as_temp());
        read.any(|temp| tied().any(|own| own == temp))
    })
}
