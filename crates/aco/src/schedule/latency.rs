//! Order by latency: while an instruction waits for what it reads, others that come later in the block are executed.
//!
//! Takes a part of a block in an order that is right, and gives another that is right. Where the next instruction would wait, the first of those that follow
//! is taken that does not. Accesses of memory keep their order, and so do instructions that use `scc`, and those that make or read lane masks, because
//! there is one register for each. How many more registers are alive at once than before is bounded. Latencies: `data/amd/cost.txt`.

use crate::ir::shape::{self, Variants};
use crate::ir::{Inst, Op, Program, Temp};
use crate::opt::is_pure;
use std::collections::VecDeque;
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::cost::{self, UnitCost};
use unwedge_isa::amdgcn::model::{Form, Format, Trait};
use unwedge_isa::amdgcn::waits::{Counter, Event};
use unwedge_isa::amdgcn::{Gfx, Reg};

/// How many instructions are looked at.
const WINDOW: usize = 24;
/// How many more vector and scalar registers may be alive at once than in the order before, and up to how many.
const SLACK: [u32; 2] = [8, 8];
const MOST: [u32; 2] = [40, 48];

/// What the order of an instruction depends on.
#[derive(Debug, Clone, Copy, Default)]
struct Facts {
    scc: bool,
    mask: bool,
    /// A temporary that must be in one register.
    fixed_reg: bool,
    /// Memory, or what has effects that are not known.
    memory: bool,
    /// Nothing moves over it.
    fixed: bool,
    /// Cycles until results are there, and until the next instruction begins.
    latency: u32,
    issue: u32,
}

fn is_vector(format: Format) -> bool {
    use Format::{Vinterp, Vop1, Vop2, Vop3, Vop3p, Vopc, Vopd};
    matches!(format, Vop1 | Vop2 | Vopc | Vop3 | Vop3p | Vopd | Vinterp)
}

/// A part that is being put in order.
#[derive(Clone, Copy)]
struct PartState<'a> {
    program: &'a Program,
    part: &'a [Inst],
    facts: &'a [Facts],
    reads: &'a PartReads,
    /// Places of the instructions that have not come yet.
    order: &'a VecDeque<usize>,
    now: u32,
    /// By bank: registers that are alive beyond those before the part, and the most that may be.
    live: [i64; 2],
    most: [i64; 2],
}

/// When a temporary is there whose instruction has not come yet.
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

    fn of(&self, at: usize) -> &[Temp] {
        &self.temps[self.starts[at]..self.starts[at + 1]]
    }
}

/// Memory of the phase, for all parts of a program.
pub(super) struct LatencyOrder<'a> {
    variants: &'a Variants,
    /// By temporary: how many reads of it are left in the part, whether others read it, and when it is there, or [`PENDING`].
    left: Vec<u32>,
    outside: Vec<bool>,
    ready: Vec<u32>,
    /// How often a temporary is read in the program.
    reads: Vec<u32>,
    part_reads: PartReads,
}

impl<'a> LatencyOrder<'a> {
    pub fn new(program: &Program, variants: &'a Variants) -> LatencyOrder<'a> {
        let count = program.temp_count();
        let mut reads = vec![0; count];
        for data in program.blocks.values() {
            for &inst in &data.insts {
                for temp in program.operands(inst).iter().filter_map(|operand| operand.as_temp()) {
                    reads[temp.index()] += 1;
                }
            }
        }
        LatencyOrder {
            variants,
            left: vec![0; count],
            outside: vec![false; count],
            ready: vec![0; count],
            reads,
            part_reads: PartReads::default(),
        }
    }

    /// Puts a part in order.
    pub fn arrange(&mut self, program: &Program, part: &mut [Inst]) {
        if part.len() < 3 {
            return;
        }
        let facts: Vec<Facts> = part.iter().map(|inst| self.facts(program, *inst)).collect();
        let mut reads = std::mem::take(&mut self.part_reads);
        reads.set(program, part);
        let most = self.begin(program, part, &reads);
        let mut order: VecDeque<usize> = (0..part.len()).collect();
        let mut made = Vec::with_capacity(part.len());
        let mut live = [0i64; 2];
        let mut now = 0;
        while !order.is_empty() {
            let state =
                PartState { program, part, facts: &facts, reads: &reads, order: &order, now, live, most };
            let chosen = self.choose(&state);
            let Some(at) = order.remove(chosen) else { break };
            let inst = part[at];
            now = now.max(self.available(reads.of(at)));
            self.account(program, inst, &mut live);
            for definition in program.definitions(inst) {
                if let Some(temp) = definition.temp {
                    self.ready[temp.index()] = now + facts[at].latency;
                }
            }
            now += facts[at].issue;
            made.push(inst);
        }
        part.copy_from_slice(&made);
        for temp in part.iter().flat_map(|inst| program.definitions(*inst)).filter_map(|d| d.temp) {
            self.ready[temp.index()] = 0;
        }
        self.part_reads = reads;
    }

    fn facts(&self, program: &Program, inst: Inst) -> Facts {
        let mut facts = Facts { issue: 1, ..Facts::default() };
        facts.fixed_reg =
            program.operands(inst).iter().any(|own| own.as_temp().is_some() && own.reg.is_some())
                || program.definitions(inst).iter().any(|own| own.temp.is_some() && own.reg.is_some());
        let Op::Hw(opcode) = program.op(inst) else {
            facts.fixed = !is_pure(program, inst);
            return facts;
        };
        let gpu = &program.gpu;
        let row = opcode.row();
        let vector = is_vector(row.format);
        if let Some(variant) = self.variants.widest(opcode) {
            facts.scc = variant.slots.iter().any(|slot| slot.reg == Reg::SCC.0);
            if vector {
                let named = |temp: Option<Temp>| temp.is_some_and(|temp| self.reads[temp.index()] > 0);
                let writes = program.definitions(inst).iter().zip(shape::definitions(variant));
                let mut reads = program.operands(inst).iter();
                let masks = row.traits.has(Trait::ReadsMask) || row.traits.has(Trait::DivFmas);
                facts.mask = writes.filter(|(own, _)| !own.class.is_vgpr()).any(|(own, _)| named(own.temp))
                    || masks && reads.any(|own| !own.class.is_vgpr() && own.as_temp().is_some());
            }
        }
        facts.memory = row.format.is_memory();
        facts.fixed = !facts.memory && !is_pure(program, inst);
        let unit = UnitCost::on(row.unit, gpu);
        let rdna = gpu.generation() >= Gfx::Gfx10;
        let passes =
            if vector && gpu.wave64() && !cost::issues_both_halves(opcode, gpu.generation()) { 2 } else { 1 };
        facts.issue = if rdna { passes } else { unit.latency.into() };
        facts.latency = if rdna { u32::from(unit.latency) + passes - 1 } else { unit.latency.into() };
        facts.latency += match row.format {
            Format::Smem if program.operands(inst).first().is_some_and(|base| base.class.dwords() == 2) => {
                cost::NEAR_SMEM_LATENCY as u32
            }
            Format::Smem => cost::late(Event::Smem, Counter::Local).into(),
            Format::Ds => cost::late(Event::Lds, Counter::Local).into(),
            format if format.is_memory() => cost::late(Event::Load, Counter::Memory).into(),
            _ => 0,
        };
        facts
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

    /// When all of these are there.
    fn available(&self, temps: &[Temp]) -> u32 {
        temps.iter().fold(0, |latest, temp| latest.max(self.ready[temp.index()]))
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
    fn choose(&self, state: &PartState<'_>) -> usize {
        let PartState { program, part, facts, reads, order, now, live, most } = *state;
        let mut passed = Facts::default();
        let (mut best, mut least) = (0, u32::MAX);
        for (place, &at) in order.iter().take(WINDOW).enumerate() {
            let own = facts[at];
            let inst = part[at];
            let available = self.available(reads.of(at));
            let kept = own.fixed && place > 0
                || own.scc && passed.scc
                || own.mask && passed.mask
                || own.fixed_reg && passed.fixed_reg
                || own.memory && passed.memory
                || available == PENDING;
            if !kept {
                let wait = available.saturating_sub(now);
                let fits = || {
                    let change = self.change(program, inst);
                    (0..2).all(|bank| change[bank] <= 0 || live[bank] + change[bank] <= most[bank])
                };
                if wait < least && (place == 0 || fits() && !self.overwrites(state, place, inst)) {
                    (best, least) = (place, wait);
                    if wait == 0 {
                        break;
                    }
                }
            }
            if own.fixed {
                break;
            }
            passed.scc |= own.scc;
            passed.mask |= own.mask;
            passed.fixed_reg |= own.fixed_reg;
            passed.memory |= own.memory;
        }
        best
    }

    /// Whether an instruction writes its result over an operand that an earlier one, which has not come yet, reads.
    fn overwrites(&self, state: &PartState<'_>, place: usize, inst: Inst) -> bool {
        let program = state.program;
        let Op::Hw(opcode) = program.op(inst) else { return false };
        let tied = |form| {
            self.variants.variant(opcode, form).is_some_and(|variant| {
                variant.slots.iter().any(|slot| slot.access.reads() && slot.access.writes())
            })
        };
        if ![Form::Native, Form::E32, Form::E64].into_iter().any(tied) {
            return false;
        }
        let own = || program.operands(inst).iter().filter_map(|operand| operand.as_temp());
        state.order.iter().take(place).any(|at| {
            let mut read = program.operands(state.part[*at]).iter().filter_map(|operand| operand.as_temp());
            read.any(|temp| own().any(|own| own == temp))
        })
    }
}
