//! Follows the blocks with the values that are in registers.

use super::distance::{Distances, Loops, NextReads};
use super::edges::EdgeCopy;
use super::slots::SlotCopy;
use super::{Flow, SpillSpace, is_constant, pressure};
use crate::ir::shape::Variants;
use crate::ir::{Block, Bound, Definition, Inst, NewInst, Operand, Program, Pseudo, RegClass, Source, Temp};
use crate::live::Liveness;
use std::collections::{BTreeSet, BinaryHeap};
use unwedge_base::entity::Entity;
use unwedge_base::mix::MixMap;

/// Values that are in registers, with their names there.
#[derive(Debug, Clone, Default)]
pub(super) struct Names {
    /// Pairs of a value and a name, in the order of the values.
    list: Vec<(Temp, Temp)>,
    /// The number of registers of all values.
    dwords: u32,
}

impl Names {
    pub fn get(&self, value: Temp) -> Option<Temp> {
        let at = self.list.binary_search_by_key(&value, |(own, _)| *own).ok()?;
        Some(self.list[at].1)
    }

    pub fn has(&self, value: Temp) -> bool {
        self.get(value).is_some()
    }

    pub fn values(&self) -> impl Iterator<Item = Temp> {
        self.list.iter().map(|(value, _)| *value)
    }

    /// Adds a value of `dwords` registers, or gives it another name.
    pub fn insert(&mut self, value: Temp, name: Temp, dwords: u32) {
        match self.list.binary_search_by_key(&value, |(own, _)| *own) {
            Ok(at) => self.list[at].1 = name,
            Err(at) => {
                self.list.insert(at, (value, name));
                self.dwords += dwords;
            }
        }
    }

    /// Removes a value of `dwords` registers, if it is there.
    pub fn remove(&mut self, value: Temp, dwords: u32) {
        if let Ok(at) = self.list.binary_search_by_key(&value, |(own, _)| *own) {
            self.list.remove(at);
            self.dwords -= dwords;
        }
    }
}

/// A phi that merges the names of a value, made where paths join.
pub(super) struct NameUnion {
    pub block: Block,
    pub value: Temp,
    pub name: Temp,
}

/// An access to the slot of a value.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotAccess {
    pub inst: Inst,
    /// The value, which names the slot until it has a number.
    pub value: Temp,
}

pub(super) struct Spiller<'a> {
    pub program: &'a mut Program,
    pub variants: &'a Variants,
    pub flow: Flow,
    pub limit: u32,
    pub loops: Loops,
    pub distances: Distances,
    pub pressures: Vec<u32>,
    /// Instructions that make constants.
    pub constants: MixMap<Temp, Inst>,
    /// Values that are reloaded somewhere.
    pub spilled: BTreeSet<Temp>,
    /// Phis whose results are in memory from their definition on.
    pub memory_phis: BTreeSet<Temp>,
    /// The same by block, in order.
    pub memory_phis_of: Vec<Vec<(Temp, Inst)>>,
    /// Where paths join: the values that are in registers at the start of the block.
    pub entries: Vec<Vec<Temp>>,
    pub exits: Vec<Names>,
    pub unions: Vec<NameUnion>,
    pub copies: Vec<Vec<EdgeCopy>>,
    pub accesses: Vec<SlotAccess>,
    /// Copies between slots.
    pub moves: Vec<SlotCopy>,
}

/// Scratch memory of the walk, for all blocks.
struct WalkScratch {
    next: NextReads,
    bound: Bound,
    operands: Vec<Operand>,
    definitions: Vec<Definition>,
    /// The values that the current instruction reads, each once, in order.
    read: Vec<Temp>,
    /// Values that may leave their registers, with the positions of their next reads and their registers.
    far: Vec<(u32, u32, Temp)>,
}

/// Spills one bank, and returns how many registers the values have that are in memory.
pub(super) fn run(
    program: &mut Program,
    live: &Liveness,
    variants: &Variants,
    flow: Flow,
    limit: u16,
    space: &mut dyn SpillSpace,
) -> u32 {
    let loops = Loops::of(program);
    let distances = Distances::of(program, live, flow, &loops);
    let pressures = pressure::by_block(program, live, flow);
    let constants = constants(program, flow);
    let count = program.blocks.len();
    let mut spiller = Spiller {
        program,
        variants,
        flow,
        limit: limit.into(),
        loops,
        distances,
        pressures,
        constants,
        spilled: BTreeSet::new(),
        memory_phis: BTreeSet::new(),
        memory_phis_of: vec![Vec::new(); count],
        entries: vec![Vec::new(); count],
        exits: vec![Names::default(); count],
        unions: Vec::new(),
        copies: vec![Vec::new(); count],
        accesses: Vec::new(),
        moves: Vec::new(),
    };
    let mut back = Vec::new();
    let mut scratch = WalkScratch {
        next: NextReads::new(spiller.program),
        bound: Bound::default(),
        operands: Vec::new(),
        definitions: Vec::new(),
        read: Vec::new(),
        far: Vec::new(),
    };
    for block in spiller.program.blocks.keys() {
        spiller.block(block, &mut back, &mut scratch);
    }
    for (pred, block) in back {
        spiller.couple(pred, block);
    }
    spiller.repair();
    let stored: Vec<Temp> = spiller.stored().collect();
    spiller.give_slots(space);
    stored.iter().map(|temp| spiller.size(*temp)).sum()
}

fn constants(program: &Program, flow: Flow) -> MixMap<Temp, Inst> {
    let mut constants = MixMap::default();
    for &inst in program.blocks.values().flat_map(|data| &data.insts) {
        if is_constant(program, inst)
            && let [Definition { temp: Some(temp), class, .. }] = program.definitions(inst)
            && flow.has(*class)
        {
            constants.insert(*temp, inst);
        }
    }
    constants
}

pub(super) fn size(class: RegClass) -> u32 {
    class.dwords().into()
}

impl Spiller<'_> {
    pub fn size(&self, temp: Temp) -> u32 {
        size(self.program.class(temp))
    }

    /// Values that have a slot.
    pub fn stored(&self) -> impl Iterator<Item = Temp> {
        let phis = self.memory_phis.iter().copied();
        let others = self.spilled.iter().copied();
        phis.chain(
            others.filter(|temp| !self.constants.contains_key(temp) && !self.memory_phis.contains(temp)),
        )
    }

    fn block(&mut self, block: Block, back: &mut Vec<(Block, Block)>, scratch: &mut WalkScratch) {
        scratch.next.begin(self.program, &self.distances, self.flow, &self.loops, block);
        let mut names = self.enter(block, back);
        let insts = std::mem::take(&mut self.program.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for inst in insts {
            if self.program.op(inst).is_phi() {
                let definition = self.program.definitions(inst)[0];
                let gone = definition.temp.is_some_and(|temp| {
                    self.flow.has(definition.class) && (definition.kill || self.memory_phis.contains(&temp))
                });
                if !gone {
                    out.push(inst);
                }
            } else {
                self.instruction(inst, &mut names, scratch, &mut out);
            }
        }
        self.program.blocks[block].insts = out;
        self.exits[block.index()] = names;
    }

    fn instruction(&mut self, inst: Inst, names: &mut Names, scratch: &mut WalkScratch, out: &mut Vec<Inst>) {
        let flow = self.flow;
        let WalkScratch { next, bound, operands, definitions, read, far } = scratch;
        operands.clear();
        operands.extend_from_slice(self.program.operands(inst));
        definitions.clear();
        definitions.extend_from_slice(self.program.definitions(inst));
        read.clear();
        read.extend(flow.reads(self.program, inst));
        read.sort_unstable();
        read.dedup();
        let own = |operand: &Operand| operand.as_temp().filter(|_| flow.has(operand.class));
        bound.set(self.program, self.variants, inst);
        let copied = self.copied(bound, operands);
        // Before it: all that is alive, what it reads, and copies of what it overwrites.
        let missing = || read.iter().copied().filter(|temp| !names.has(*temp));
        let needed = missing().map(|temp| self.size(temp)).sum::<u32>() + copied;
        self.evict(next, names, needed, read, far);
        for &temp in &*read {
            if names.has(temp) {
                continue;
            }
            let (name, reload) = self.reload(temp);
            out.push(reload);
            names.insert(temp, name, self.size(temp));
        }
        for operand in self.program.operands_mut(inst) {
            if let Some(name) = own(operand).and_then(|temp| names.get(temp)) {
                operand.source = Source::Temp(name);
            }
        }
        // When it writes: what lives on, what is read late, and what is written.
        let mut late = 0;
        for operand in operands.iter() {
            let Some(temp) = own(operand) else { continue };
            next.pass(temp);
            if operand.first_kill {
                names.remove(temp, self.size(temp));
                if operand.late_kill || self.reads_late(inst) {
                    late += size(operand.class);
                }
            }
        }
        let written = || definitions.iter().filter(|definition| flow.has(definition.class));
        let room = written().map(|definition| size(definition.class)).sum::<u32>() + late;
        self.evict(next, names, room, &[], far);
        for definition in written().filter(|definition| !definition.kill) {
            if let Some(temp) = definition.temp {
                names.insert(temp, temp, self.size(temp));
            }
        }
        out.push(inst);
    }

    /// Registers for copies of operands that the instruction overwrites though they live on.
    fn copied(&self, bound: &Bound, operands: &[Operand]) -> u32 {
        let tied = bound.tied.iter().filter_map(|(_, at)| operands.get(*at));
        let copied = tied.filter(|operand| match operand.source {
            Source::Temp(_) => !operand.kill || operand.late_kill,
            Source::Const(_) => true,
            Source::Undef | Source::Fixed => false,
        });
        copied
            .filter(|operand| self.flow.scalar == operand.class.is_sgpr())
            .map(|operand| size(operand.class))
            .sum()
    }

    /// Whether results do not share registers with operands.
    fn reads_late(&self, inst: Inst) -> bool {
        let op = self.program.op(inst);
        let packs =
            [Pseudo::CreateVector, Pseudo::SplitVector, Pseudo::ExtractVector].into_iter().any(|p| op.is(p));
        let narrow = |class: RegClass| class.is_subdword();
        packs
            && (self.program.operands(inst).iter().any(|operand| narrow(operand.class))
                || self.program.definitions(inst).iter().any(|definition| narrow(definition.class)))
    }

    /// Makes room for registers by dropping the values that are used last, except those that have to stay, which are in order.
    fn evict(
        &mut self,
        next: &NextReads,
        names: &mut Names,
        needed: u32,
        stays: &[Temp],
        far: &mut Vec<(u32, u32, Temp)>,
    ) {
        if names.dwords + needed <= self.limit {
            return;
        }
        far.clear();
        let values = names.values().filter(|value| stays.binary_search(value).is_err());
        far.extend(values.map(|value| (next.of(value), self.size(value), value)));
        let mut farthest = BinaryHeap::from(std::mem::take(far));
        while names.dwords + needed > self.limit
            && let Some((_, size, value)) = farthest.pop()
        {
            names.remove(value, size);
            self.spilled.insert(value);
        }
        *far = farthest.into_vec();
    }

    /// An instruction that makes a new name for a value that is not in a register.
    pub fn reload(&mut self, value: Temp) -> (Temp, Inst) {
        let class = self.program.class(value);
        let name = self.program.make_temp(class);
        let definition = [Definition::temp(name, class)];
        if let Some(&constant) = self.constants.get(&value) {
            let operands = self.program.operands(constant).to_vec();
            let op = self.program.op(constant);
            let new = NewInst { op, ..NewInst::pseudo(Pseudo::Reload, &definition, &operands) };
            return (name, self.program.make_inst(&new));
        }
        self.spilled.insert(value);
        let slot = [Operand::c32(0)];
        let inst = self.program.make_inst(&NewInst::pseudo(Pseudo::Reload, &definition, &slot));
        self.accesses.push(SlotAccess { inst, value });
        (name, inst)
    }

    /// An instruction that stores a value to its slot, or to that of a phi.
    pub fn store(&mut self, value: Temp, from: Operand) -> Inst {
        let inst = self.program.make_inst(&NewInst::pseudo(Pseudo::Spill, &[], &[Operand::c32(0), from]));
        self.accesses.push(SlotAccess { inst, value });
        inst
    }
}
