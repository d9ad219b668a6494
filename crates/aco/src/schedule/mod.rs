//! Scheduling: takes a program that is [`Progress::Selected`](crate::ir::Progress::Selected); leaves it `Selected`, with loads early and exports late, so that what does not need them hides their latency.
//!
//! A block is taken in parts, between which nothing moves: at barriers, and where registers are written that are not temporaries. Loads of a part,
//! and what computes their addresses, come first: scalar loads, then loads that need their results, and so on. A load does not pass a store to
//! the same kind of memory. How much is loaded early is bounded, because it takes registers. Exports come last, because a register that an export
//! reads cannot be written before the export has read it. Never: looks at what other blocks do.

mod latency;

use crate::ir::shape::Variants;
use crate::ir::{Block, Inst, Op, Payload, Program, Temp};
use crate::opt::is_pure;
use latency::{LatencyMemory, LatencyOrder};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::Reg;
use unwedge_isa::amdgcn::model::{Format, Role, Trait};
use unwedge_shader::ir::{Access, MemoryKinds};

/// How many vector registers early loads of a part write at most.
const VECTOR_BUDGET: u32 = 16;
/// How many scalar registers early loads of a part write at most.
const SCALAR_BUDGET: u32 = 32;
/// The most instructions that compute the address of an early load.
const ADDRESS_LENGTH: usize = 8;
/// How many registers late exports of a part read at most.
const EXPORT_BUDGET: u32 = 32;

/// Memory of the phase, kept for the next program.
#[derive(Debug, Default)]
pub(crate) struct ScheduleMemory {
    latency: LatencyMemory,
    loads: LoadOrder,
    /// A part with its exports last, and these exports.
    late: Vec<Inst>,
    exports: Vec<Inst>,
    out: Vec<Inst>,
}

/// Moves loads up.
pub(crate) fn schedule(program: &mut Program, variants: &Variants, memory: &mut ScheduleMemory) {
    let ScheduleMemory { latency, loads, late, exports, out } = memory;
    let mut order = LatencyOrder::new(program, variants, latency);
    loads.places.clear();
    loads.places.resize(program.temp_count(), None);
    for number in 0..program.blocks.len() {
        let block = Block::new(number);
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        out.reserve(insts.len());
        for part in insts.chunk_by(|a, b| !is_border(program, *a) && !is_border(program, *b)) {
            let start = out.len();
            exports_last(program, part, late, exports);
            loads.arrange(program, late, out);
            order.arrange(program, &mut out[start..]);
        }
        insts.clear();
        program.blocks[block].insts = std::mem::replace(out, insts);
    }
}

/// Whether an instruction only computes its results, from registers that nothing in its part writes.
fn is_movable(program: &Program, inst: Inst) -> bool {
    let interpolates =
        |op| matches!(op, Op::Hw(opcode) if matches!(opcode.row().role, Role::Interp | Role::Parameter));
    is_pure(program, inst) || interpolates(program.op(inst))
}

/// Copies a part of a block with its exports after what only computes and loads.
fn exports_last(program: &Program, part: &[Inst], out: &mut Vec<Inst>, exports: &mut Vec<Inst>) {
    out.clear();
    let mut registers = 0;
    for &inst in part {
        if matches!(program.op(inst), Op::Hw(opcode) if opcode.row().role == Role::Export) {
            let reads = program.operands(inst).iter().filter(|operand| operand.as_temp().is_some());
            registers += reads.map(|operand| u32::from(operand.class.dwords())).sum::<u32>();
            exports.push(inst);
            if registers <= EXPORT_BUDGET {
                continue;
            }
        } else if is_movable(program, inst) || matches!(memory_use(program, inst), MemoryUse::Load(_)) {
            out.push(inst);
            continue;
        } else {
            exports.push(inst);
        }
        out.append(exports);
        registers = 0;
    }
    out.append(exports);
}

/// Whether nothing moves over an instruction.
fn is_border(program: &Program, inst: Inst) -> bool {
    let writes_fixed = program.definitions(inst).iter().any(|definition| {
        definition.temp.is_none() && definition.reg.is_some_and(|reg| reg.reg() != Reg::SCC)
    });
    let pseudo = matches!(program.op(inst), Op::Pseudo(_)) && !is_pure(program, inst);
    writes_fixed || pseudo || program.op(inst).is_phi()
}

/// How an instruction accesses memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MemoryUse {
    None,
    /// It loads what a store to these kinds may change.
    Load(MemoryKinds),
    /// It changes these kinds, or must stay where it is among them.
    Store(MemoryKinds),
}

fn memory_use(program: &Program, inst: Inst) -> MemoryUse {
    let Op::Hw(opcode) = program.op(inst) else { return MemoryUse::None };
    let row = opcode.row();
    if !row.format.is_memory() {
        return MemoryUse::None;
    }
    match program.payload(inst) {
        Payload::Memory(memory) => {
            let ordered = Access::VOLATILE.or(Access::COHERENT).or(Access::ATOMIC);
            let loads = row.format == Format::Smem || row.traits.has(Trait::Load);
            let plain = !row.traits.has(Trait::Store) && !row.traits.has(Trait::Atomic);
            let reads = !program.definitions(inst).is_empty() && plain && (loads || row.format == Format::Ds);
            if reads && !memory.access.any(ordered) {
                MemoryUse::Load(memory.kinds)
            } else {
                MemoryUse::Store(memory.kinds)
            }
        }
        _ => MemoryUse::None,
    }
}

/// Memory of the order of loads, for all parts of a program.
#[derive(Debug, Default)]
struct LoadOrder {
    /// By temporary: the place in the part of the instruction that defines it.
    places: Vec<Option<u32>>,
    /// What computes the address of a load.
    sources: Vec<usize>,
    /// By instruction: in which row of loads it comes, and whether it is one of them.
    levels: Vec<Option<(u32, bool)>>,
    /// By instruction: the loads that it needs one after the other, if it can come early.
    depths: Vec<Option<u32>>,
    open: Vec<usize>,
}

impl LoadOrder {
    fn place(&self, temp: Temp) -> Option<usize> {
        self.places[temp.index()].map(|place| place as usize)
    }

    /// Orders a part of a block.
    fn arrange(&mut self, program: &Program, part: &[Inst], out: &mut Vec<Inst>) {
        if !part.iter().any(|inst| matches!(memory_use(program, *inst), MemoryUse::Load(_))) {
            out.extend_from_slice(part);
            return;
        }
        self.order_loads(program, part, out);
        for temp in part.iter().flat_map(|inst| program.definitions(*inst)).filter_map(|own| own.temp) {
            self.places[temp.index()] = None;
        }
    }

    fn order_loads(&mut self, program: &Program, part: &[Inst], out: &mut Vec<Inst>) {
        let (mut levels, mut depths) = (std::mem::take(&mut self.levels), std::mem::take(&mut self.depths));
        levels.clear();
        levels.resize(part.len(), None);
        depths.clear();
        let mut stored = MemoryKinds::NONE;
        let (mut vectors, mut scalars) = (0, 0);
        for (at, &inst) in part.iter().enumerate() {
            let operands = program.operands(inst).iter().filter_map(|operand| self.place(operand.as_temp()?));
            let needed = operands.map(|source| depths[source]).try_fold(0, |most, depth| {
                let depth: u32 = depth?;
                Some(most.max(depth))
            });
            let memory = memory_use(program, inst);
            let depth = match memory {
                MemoryUse::None => needed.filter(|_| is_movable(program, inst)),
                MemoryUse::Load(kinds) if !overlap(kinds, stored) => {
                    let few = needed.is_some_and(|depth| self.address(program, part, &levels, at, depth));
                    let size = |vector| {
                        let written =
                            program.definitions(inst).iter().filter(|d| d.class.is_vgpr() == vector);
                        written.map(|d| u32::from(d.class.dwords())).sum::<u32>()
                    };
                    let fits =
                        vectors + size(true) <= VECTOR_BUDGET && scalars + size(false) <= SCALAR_BUDGET;
                    if let (Some(depth), true, true) = (needed, few, fits) {
                        vectors += size(true);
                        scalars += size(false);
                        for source in &self.sources {
                            levels[*source] = Some((depth, false));
                        }
                        levels[at] = Some((depth, true));
                        Some(depth + 1)
                    } else {
                        None
                    }
                }
                MemoryUse::Load(_) => None,
                MemoryUse::Store(kinds) => {
                    stored = stored.or(kinds);
                    None
                }
            };
            depths.push(depth);
            for temp in program.definitions(inst).iter().filter_map(|definition| definition.temp) {
                self.places[temp.index()] = Some(at as u32);
            }
        }
        let deepest = levels.iter().flatten().map(|(depth, _)| *depth).max();
        for depth in 0..=deepest.unwrap_or(0) {
            for is_load in [false, true] {
                let own = levels.iter().zip(part).filter(|(level, _)| **level == Some((depth, is_load)));
                out.extend(own.map(|(_, inst)| *inst));
            }
        }
        out.extend(levels.iter().zip(part).filter(|(level, _)| level.is_none()).map(|(_, inst)| *inst));
        (self.levels, self.depths) = (levels, depths);
    }

    /// Finds the instructions of the part that compute the address of a load of a depth and do not come before it yet. Whether they are few.
    fn address(
        &mut self,
        program: &Program,
        part: &[Inst],
        levels: &[Option<(u32, bool)>],
        at: usize,
        depth: u32,
    ) -> bool {
        self.sources.clear();
        self.open.clear();
        self.open.push(at);
        while let Some(next) = self.open.pop() {
            for temp in program.operands(part[next]).iter().filter_map(|operand| operand.as_temp()) {
                let Some(source) = self.place(temp) else { continue };
                if levels[source].is_some_and(|(own, _)| own <= depth) || self.sources.contains(&source) {
                    continue;
                }
                self.sources.push(source);
                if self.sources.len() > ADDRESS_LENGTH {
                    return false;
                }
                self.open.push(source);
            }
        }
        true
    }
}

fn overlap(a: MemoryKinds, b: MemoryKinds) -> bool {
    a.any(b)
}
