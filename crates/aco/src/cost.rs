//! What code costs: estimates of its latency, and of how often a SIMD can finish it.
//!
//! Takes finished code. Facts: `data/amd/cost.txt`. The wave is followed through each block in cycles: when a resource is free, when the registers
//! that an instruction reads are there, when what a wait waits for has ended. A block counts as often as its loops and branches are taken to execute it.
//! Never: caches, other waves, what registers hold.

use crate::finish::Code;
use crate::occupancy;
use crate::waits::events;
use std::collections::VecDeque;
use unwedge_isa::amdgcn::cost::{self, Resource, UnitCost};
use unwedge_isa::amdgcn::model::{Class, Format, Mod, Role, Unit};
use unwedge_isa::amdgcn::waits::{COUNTED, Counter, Event, fields};
use unwedge_isa::amdgcn::{Gfx, Gpu, Inst, Opcode, Operand, Reg, codec};

/// How many loops and branches of the source are around a block.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BlockDepth {
    /// Loops.
    pub loops: u16,
    /// Arms of uniform `if`s.
    pub uniform: u16,
    /// Arms of divergent `if`s.
    pub divergent: u16,
    /// No lane executes the block, only the wave.
    pub empty: bool,
}

impl BlockDepth {
    /// How often the block is assumed to be executed.
    pub fn weight(&self) -> f64 {
        let loops = match self.loops {
            0 => 1.0,
            1 => cost::FIRST_LOOP_WEIGHT,
            more => {
                let inner = cost::INNER_LOOP_WEIGHT.powi(i32::from(more) - 2);
                cost::FIRST_LOOP_WEIGHT * cost::SECOND_LOOP_WEIGHT * inner
            }
        };
        let uniform = cost::UNIFORM_WEIGHT.powi(self.uniform.into());
        let divergent = cost::DIVERGENT_WEIGHT.powi(self.divergent.into());
        loops * uniform * divergent * if self.empty { cost::EMPTY_ARM_WEIGHT } else { 1.0 }
    }
}

/// What code costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CostEstimate {
    /// Cycles from the start of a wave to its end.
    pub latency: u64,
    /// Cycles of a SIMD for 64 lanes, with as many waves as there is room for.
    pub inverse_throughput: u64,
}

/// An instruction of a block, with the block that it branches to.
struct CodeInst {
    inst: Inst,
    target: Option<usize>,
}

/// The instructions of code by block.
fn blocks(code: &Code, gpu: &Gpu) -> Vec<Vec<CodeInst>> {
    let ends = code.starts.iter().skip(1).copied().chain([code.words.len()]);
    let block = |(start, end): (usize, usize)| {
        let mut insts = Vec::new();
        let mut at = start;
        while let Some(sized) =
            code.words.get(at..end.min(code.words.len())).and_then(|words| codec::decode(words, gpu))
        {
            at += usize::from(sized.dwords);
            let label = sized.inst.written().find_map(|(slot, operand)| match operand {
                Operand::Imm(offset) if slot.class == Class::Label => Some(offset),
                _ => None,
            });
            let word = label.and_then(|offset| usize::try_from(at as i64 + i64::from(offset)).ok());
            // Empty blocks begin where the next one does.
            let target = word.and_then(|word| code.starts.iter().rposition(|start| *start == word));
            insts.push(CodeInst { inst: sized.inst, target });
        }
        insts
    };
    code.starts.iter().copied().zip(ends).map(block).collect()
}

/// Estimates what code costs. A workgroup has `invocations`; if this is `None`, its waves are full.
pub fn estimate(code: &Code, gpu: &Gpu, invocations: Option<u32>) -> CostEstimate {
    let blocks = blocks(code, gpu);
    let mut ends: Vec<BlockCycles> = Vec::with_capacity(blocks.len());
    let mut preds: Vec<Vec<usize>> = vec![Vec::new(); blocks.len() + 1];
    for (number, block) in blocks.iter().enumerate() {
        for inst in block {
            if let Some(target) = inst.target {
                preds[target].push(number);
            }
        }
        let leaves = |inst: &CodeInst| matches!(inst.inst.row().role, Role::Branch | Role::End);
        if !block.last().is_some_and(leaves) {
            preds[number + 1].push(number);
        }
    }
    let mut latency = 0.0;
    let mut used = [0.0; Resource::ALL.len()];
    for (number, block) in blocks.iter().enumerate() {
        let mut cycles = BlockCycles::default();
        for pred in preds[number].iter().filter(|pred| **pred < number) {
            cycles.join(&ends[*pred]);
        }
        for inst in block {
            cycles.add(&inst.inst, gpu);
        }
        let weight = code.depths.get(number).map_or(1.0, BlockDepth::weight);
        latency += f64::from(cycles.now) * weight;
        for (sum, own) in used.iter_mut().zip(cycles.used) {
            *sum += f64::from(own) * weight;
        }
        ends.push(cycles);
    }
    let waves = f64::from(occupancy::waves(gpu, code.registers));
    let parallel =
        used.iter().filter(|cycles| **cycles > 0.0).fold(waves, |least, cycles| least.min(latency / cycles));
    let lanes = gpu.lanes();
    let full =
        invocations.map_or(1.0, |count| f64::from(count) / f64::from(count.max(1).next_multiple_of(lanes)));
    let rate = parallel / latency.max(1.0) * (f64::from(lanes) / 64.0) * full;
    CostEstimate { latency: latency.round() as u64, inverse_throughput: (1.0 / rate).round() as u64 }
}

/// The wave in a block.
#[derive(Clone)]
struct BlockCycles {
    /// Cycles since the block began.
    now: i32,
    /// By resource: when it is free, and for how long it was used.
    free: [i32; Resource::ALL.len()],
    used: [u32; Resource::ALL.len()],
    /// By register: when it can be read.
    ready: Box<[i32; Reg::COUNT as usize]>,
    /// By counter: when what counts in it ends, oldest first.
    pending: [VecDeque<i32>; Counter::COUNT],
}

impl Default for BlockCycles {
    fn default() -> BlockCycles {
        BlockCycles {
            now: 0,
            free: Default::default(),
            used: Default::default(),
            ready: Box::new([0; Reg::COUNT as usize]),
            pending: Default::default(),
        }
    }
}

/// By counter: the number that an instruction waits for.
type Waited = [Option<u16>; Counter::COUNT];

/// By counter: cycles until what an instruction begins has ended; 0 if it begins nothing that the counter counts.
fn begun(inst: &Inst, gpu: &Gpu) -> [u16; Counter::COUNT] {
    let mut ends = [0; Counter::COUNT];
    let generation = gpu.generation();
    for (event, _) in events(inst, gpu) {
        for counted in COUNTED.iter().filter(|counted| counted.event == event && counted.holds(generation)) {
            let mut cycles = cost::late(event, counted.counter);
            if event == Event::Smem {
                cycles = scalar_load(inst, cycles);
            }
            let place = &mut ends[counted.counter as usize];
            *place = cycles.max(*place);
        }
    }
    ends
}

/// Cycles of a scalar load. Stores, and loads of buffers at an unknown offset, are not near.
fn scalar_load(inst: &Inst, far: u16) -> u16 {
    let (mut wide_base, mut constant, mut addressed, mut writes) = (false, true, false, false);
    for (slot, operand) in inst.written() {
        match (slot.class, operand) {
            (Class::SregPair, _) if slot.access.reads() => (wide_base, addressed) = (true, true),
            (Class::SregQuad, _) if slot.access.reads() => addressed = true,
            (_, Operand::Reg { reg, .. }) if slot.access.reads() && reg != Reg::NULL => constant = false,
            _ => {}
        }
        writes |= slot.access.writes();
    }
    match () {
        () if !addressed => cost::CLOCK_LATENCY as u16,
        () if writes && (wide_base || constant) => cost::NEAR_SMEM_LATENCY as u16,
        () => far,
    }
}

impl BlockCycles {
    /// The wave may come from another block, which is at its end.
    fn join(&mut self, pred: &BlockCycles) {
        for (own, other) in self.free.iter_mut().zip(pred.free) {
            *own = (*own).max(other - pred.now);
        }
        for (own, other) in self.ready.iter_mut().zip(pred.ready.iter()) {
            *own = (*own).max(other - pred.now);
        }
        for (own, other) in self.pending.iter_mut().zip(&pred.pending) {
            for (own, other) in own.iter_mut().rev().zip(other.iter().rev()) {
                *own = (*own).max(other - pred.now);
            }
            for other in other.iter().rev().skip(own.len()) {
                own.push_front(other - pred.now);
            }
        }
    }

    /// What an instruction waits for: what it says, or that there is room in a counter for it.
    fn waited(inst: &Inst, begun: &[u16; Counter::COUNT], generation: Gfx) -> Waited {
        let mut waited: Waited = [None; Counter::COUNT];
        if inst.row().role == Role::End {
            return [Some(0); Counter::COUNT];
        }
        if inst.row().role == Role::Wait {
            let immediate = inst.written().find_map(|(_, operand)| match operand {
                Operand::Imm(value) => Some(value as u16),
                _ => None,
            });
            for wait in fields(inst.opcode(), generation) {
                let number = wait.field.get(immediate.unwrap_or_default());
                if number < wait.field.most() {
                    waited[wait.counter as usize] = Some(number);
                }
            }
            return waited;
        }
        for (counter, cycles) in Counter::ALL.iter().zip(begun) {
            if *cycles > 0 {
                waited[*counter as usize] = Some(counter.most(generation) - 1);
            }
        }
        waited
    }

    /// When an instruction can begin, by what it waits for and reads.
    fn available(&self, inst: &Inst, gpu: &Gpu, waited: &Waited) -> i32 {
        let mut at = self.now;
        for (pending, number) in self.pending.iter().zip(waited) {
            let Some(number) = number else { continue };
            let over = pending.len().saturating_sub(usize::from(*number));
            at = pending.iter().take(over).fold(at, |at, end| at.max(*end));
        }
        let old = gpu.generation() < Gfx::Gfx10;
        if inst.row().role == Role::End {
            at = self.ready.iter().fold(at, |at, ready| at.max(*ready));
        } else if !old {
            inst.touches(gpu, &mut |touch| {
                if touch.access.reads() {
                    let first = usize::from(touch.reg.0);
                    for ready in self.ready.iter().skip(first).take(touch.dwords.into()) {
                        at = at.max(*ready);
                    }
                }
            });
        }
        // A SIMD of GCN is at a wave every fourth cycle.
        if old { (at + 3) & !3 } else { at }
    }

    fn add(&mut self, inst: &Inst, gpu: &Gpu) {
        let row = inst.row();
        let unit = UnitCost::on(row.unit, gpu);
        let begun = begun(inst, gpu);
        let generation = gpu.generation();
        let waited = BlockCycles::waited(inst, &begun, generation);
        self.now = self.available(inst, gpu, &waited);
        let gds = row.format == Format::Ds && inst.mods.has(Mod::Gds);
        let uses = || {
            let of =
                move |resource| if gds && resource == Resource::Lds { Resource::Export } else { resource };
            unit.uses.iter().map(move |(resource, cycles)| (of(*resource) as usize, *cycles))
        };
        let mut start = self.now;
        for _ in 0..passes(inst.opcode(), gpu) {
            self.now = uses().fold(self.now, |now, (resource, _)| now.max(self.free[resource]));
            start = self.now;
            for (resource, cycles) in uses() {
                self.free[resource] = start + i32::from(cycles);
                self.used[resource] += u32::from(cycles);
            }
            self.now += if generation >= Gfx::Gfx10 { 1 } else { i32::from(unit.latency) };
        }
        for (pending, number) in self.pending.iter_mut().zip(waited) {
            if let Some(number) = number {
                while pending.len() > usize::from(number) {
                    pending.pop_front();
                }
            }
        }
        for (pending, cycles) in self.pending.iter_mut().zip(begun) {
            if cycles > 0 {
                pending.push_back(self.now + i32::from(cycles));
            }
        }
        // Results of memory are waited for by counters.
        let ready = start + i32::from(unit.latency);
        inst.touches(gpu, &mut |touch| {
            if touch.access.writes() {
                let first = usize::from(touch.reg.0);
                for own in self.ready.iter_mut().skip(first).take(touch.dwords.into()) {
                    *own = (*own).max(ready);
                }
            }
        });
    }
}

/// How many times an instruction goes through its unit: twice for the halves of a wave of 64 lanes on units for 32.
pub(crate) fn passes(opcode: Opcode, gpu: &Gpu) -> u8 {
    use Unit::{Barrier, Branch, Other, Salu, SendMsg, Sfpu, Smem, Waitcnt};
    let scalar = [Salu, Sfpu, Branch, Barrier, Waitcnt, SendMsg, Smem, Other];
    let vector = !scalar.contains(&opcode.row().unit);
    let halves = vector && gpu.wave64() && !cost::issues_both_halves(opcode, gpu.generation());
    1 + u8::from(halves)
}
