//! Follows the blocks with the values that are in registers.

use super::distance::{BlockUses, Distances, Loops};
use super::edges::EdgeCopy;
use super::slots::SlotCopy;
use super::{Flow, SpillSpace, is_constant, pressure};
use crate::ir::shape::Variants;
use crate::ir::{Block, Bound, Definition, Inst, NewInst, Operand, Program, Pseudo, RegClass, Source, Temp};
use crate::live::Liveness;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_base::entity::Entity;
use unwedge_base::mix::MixMap;

/// Values that are in registers, with their names there.
pub(super) type Names = BTreeMap<Temp, Temp>;

/// A phi that unites the names of a value, made where paths join.
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
    pub live: &'a Liveness,
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
    /// Phis whose results are in memory from the start.
    pub memory_phis: BTreeSet<Temp>,
    /// The same by block, in order.
    pub memory_phis_of: Vec<Vec<(Temp, Inst)>>,
    pub entries: Vec<Names>,
    pub exits: Vec<Names>,
    pub unions: Vec<NameUnion>,
    pub copies: Vec<Vec<EdgeCopy>>,
    pub accesses: Vec<SlotAccess>,
    /// Copies between slots.
    pub moves: Vec<SlotCopy>,
}

/// Spills one bank, and returns how many registers the values have that are in memory.
pub(super) fn run(
    program: &mut Program,
    live: &Liveness,
    variants: &Variants,
    flow: Flow,
    limit: u16,
    space: &mut dyn SpillSpace,
) -> u16 {
    let loops = Loops::of(program);
    let distances = Distances::of(program, flow, &loops);
    let pressures = pressure::by_block(program, live, flow);
    let constants = constants(program, flow);
    let count = program.blocks.len();
    let mut spiller = Spiller {
        program,
        live,
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
        entries: vec![Names::new(); count],
        exits: vec![Names::new(); count],
        unions: Vec::new(),
        copies: vec![Vec::new(); count],
        accesses: Vec::new(),
        moves: Vec::new(),
    };
    let mut back = Vec::new();
    for block in spiller.program.blocks.keys() {
        spiller.block(block, &mut back);
    }
    for (pred, block) in back {
        spiller.couple(pred, block);
    }
    spiller.repair();
    let stored: Vec<Temp> = spiller.stored().collect();
    spiller.give_slots(space);
    let dwords = stored.iter().map(|temp| u16::from(spiller.program.class(*temp).dwords()));
    dwords.fold(0, u16::saturating_add)
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

    fn total(&self, names: &Names) -> u32 {
        names.keys().map(|temp| self.size(*temp)).sum()
    }

    /// Values that have a slot.
    pub fn stored(&self) -> impl Iterator<Item = Temp> {
        let phis = self.memory_phis.iter().copied();
        let others = self.spilled.iter().copied();
        phis.chain(
            others.filter(|temp| !self.constants.contains_key(temp) && !self.memory_phis.contains(temp)),
        )
    }

    fn block(&mut self, block: Block, back: &mut Vec<(Block, Block)>) {
        let uses = BlockUses::of(self.program, block, self.flow);
        let mut names = self.enter(block, back);
        let insts = std::mem::take(&mut self.program.blocks[block].insts);
        let mut out = Vec::with_capacity(insts.len());
        for (at, inst) in insts.into_iter().enumerate() {
            if self.program.op(inst).is_phi() {
                let definition = self.program.definitions(inst)[0];
                let gone = definition.temp.is_some_and(|temp| {
                    self.flow.has(definition.class) && (definition.kill || self.memory_phis.contains(&temp))
                });
                if !gone {
                    out.push(inst);
                }
            } else {
                self.instruction(block, at, inst, &uses, &mut names, &mut out);
            }
        }
        self.program.blocks[block].insts = out;
        self.exits[block.index()] = names;
    }

    fn instruction(
        &mut self,
        block: Block,
        at: usize,
        inst: Inst,
        uses: &BlockUses,
        names: &mut Names,
        out: &mut Vec<Inst>,
    ) {
        let flow = self.flow;
        let operands = self.program.operands(inst).to_vec();
        let definitions = self.program.definitions(inst).to_vec();
        let own = |operand: &Operand| operand.as_temp().filter(|_| flow.has(operand.class));
        let read: BTreeSet<Temp> = operands.iter().filter_map(own).collect();
        let copied = self.copied(inst, &operands);
        // Before it: all that is alive, what it reads, and copies of what it overwrites.
        let missing: Vec<Temp> = read.iter().copied().filter(|temp| !names.contains_key(temp)).collect();
        let needed = missing.iter().map(|temp| self.size(*temp)).sum::<u32>() + copied;
        self.evict(block, at, uses, names, needed, |temp| read.contains(&temp));
        for temp in missing {
            let (name, reload) = self.reload(temp);
            out.push(reload);
            names.insert(temp, name);
        }
        for operand in self.program.operands_mut(inst) {
            if let Some(name) = own(operand).and_then(|temp| names.get(&temp)) {
                operand.source = Source::Temp(*name);
            }
        }
        // When it writes: what lives on, what is read late, and what is written.
        let mut late = 0;
        for operand in operands.iter().filter(|operand| operand.first_kill) {
            if let Some(temp) = own(operand) {
                names.remove(&temp);
                if operand.late_kill || self.reads_late(inst) {
                    late += size(operand.class);
                }
            }
        }
        let written: u32 =
            definitions.iter().filter(|definition| flow.has(definition.class)).map(|d| size(d.class)).sum();
        self.evict(block, at + 1, uses, names, written + late, |_| false);
        for definition in
            definitions.iter().filter(|definition| flow.has(definition.class) && !definition.kill)
        {
            if let Some(temp) = definition.temp {
                names.insert(temp, temp);
            }
        }
        out.push(inst);
    }

    /// Registers for copies of operands that the instruction overwrites though they live on.
    fn copied(&self, inst: Inst, operands: &[Operand]) -> u32 {
        let bound = Bound::of(self.program, self.variants, inst);
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

    /// Makes room for so many registers, by dropping the values that are used last.
    fn evict(
        &mut self,
        block: Block,
        at: usize,
        uses: &BlockUses,
        names: &mut Names,
        needed: u32,
        stays: impl Fn(Temp) -> bool,
    ) {
        let mut total = self.total(names) + needed;
        if total <= self.limit {
            return;
        }
        let mut order: Vec<(u32, u32, Temp)> = names
            .keys()
            .filter(|temp| !stays(**temp))
            .map(|temp| (self.distances.from(block, uses, *temp, at), self.size(*temp), *temp))
            .collect();
        order.sort_unstable();
        while total > self.limit
            && let Some((_, size, temp)) = order.pop()
        {
            names.remove(&temp);
            self.spilled.insert(temp);
            total -= size;
        }
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
