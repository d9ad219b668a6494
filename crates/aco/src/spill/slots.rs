//! Slots of values in memory. Values whose slots are never needed at once share them; a phi shares those of its operands if it can.

use super::SpillSpace;
use super::walk::Spiller;
use crate::ir::{Block, Inst, Operand, Program, Pseudo, Temp};
use crate::live::BitSet;
use std::collections::BTreeSet;
use unwedge_base::entity::Entity;
use unwedge_base::mix::{MixMap, MixSet};

/// The first slot of each value.
type Slots = MixMap<Temp, u32>;

/// A copy from one slot to another on an edge.
#[derive(Debug, Clone, Copy)]
pub(super) struct SlotCopy {
    pub reload: Inst,
    pub store: Inst,
    pub from: Temp,
    pub to: Temp,
}

impl Spiller<'_> {
    /// Gives slots to all values in memory, and completes their accesses.
    pub fn give_slots(&mut self, space: &mut dyn SpillSpace) {
        let accesses: MixMap<Inst, Temp> =
            self.accesses.iter().map(|access| (access.inst, access.value)).collect();
        let values: BTreeSet<Temp> = accesses.values().copied().collect();
        let values: Vec<Temp> = values.into_iter().collect();
        let conflicts = self.conflicts(&values, &accesses);
        let (slots, end) = self.place(&values, &conflicts, space.start(), space.page(self.program));
        let same = |copy: &&SlotCopy| slots.get(&copy.from) == slots.get(&copy.to);
        let needless: MixSet<Inst> =
            self.moves.iter().filter(same).flat_map(|copy| [copy.reload, copy.store]).collect();
        for data in self.program.blocks.values_mut() {
            data.insts.retain(|inst| !needless.contains(inst));
        }
        for (inst, value) in self.accesses.iter().map(|access| (access.inst, access.value)) {
            let Some(&slot) = slots.get(&value) else { continue };
            let (named, rest) = space.operands(self.program, slot);
            let value: Vec<Operand> = self.program.operands(inst).iter().skip(1).copied().collect();
            let operands: Vec<Operand> = [Operand::c32(named)].into_iter().chain(value).chain(rest).collect();
            self.program.set_operands(inst, &operands);
        }
        space.close(self.program, end);
    }

    /// By value: those whose slots are needed at a time when its slot is written. Values are numbered in their order.
    fn conflicts(&self, values: &[Temp], accesses: &MixMap<Inst, Temp>) -> Vec<BitSet> {
        let count = self.program.blocks.len();
        let number = |value: Temp| values.binary_search(&value).ok();
        let numbers: MixMap<Inst, usize> =
            accesses.iter().filter_map(|(inst, value)| Some((*inst, number(*value)?))).collect();
        let mut starts: Vec<BitSet> = vec![BitSet::of(values.len()); count];
        let mut changed = true;
        while changed {
            changed = false;
            for block in self.program.blocks.keys().rev() {
                let alive = self.follow(block, &starts, &numbers, values.len(), &mut |_, _| {});
                if alive != starts[block.index()] {
                    starts[block.index()] = alive;
                    changed = true;
                }
            }
        }
        let mut conflicts: Vec<BitSet> = vec![BitSet::of(values.len()); values.len()];
        for block in self.program.blocks.keys() {
            self.follow(block, &starts, &numbers, values.len(), &mut |written, alive| {
                conflicts[written].unite(alive);
            });
        }
        for written in 0..values.len() {
            let others: Vec<usize> = conflicts[written].iter().collect();
            others.into_iter().for_each(|other| conflicts[other].insert(written));
        }
        conflicts
    }

    /// Values whose slots are needed at the start of a block. `write` gets each value that is stored, and those needed after it.
    fn follow(
        &self,
        block: Block,
        starts: &[BitSet],
        numbers: &MixMap<Inst, usize>,
        count: usize,
        write: &mut dyn FnMut(usize, &BitSet),
    ) -> BitSet {
        let mut alive = BitSet::of(count);
        for succ in self.flow.succs(self.program, block) {
            alive.unite(&starts[succ.index()]);
        }
        for &inst in self.program.blocks[block].insts.iter().rev() {
            let Some(&value) = numbers.get(&inst) else { continue };
            if is_store(self.program, inst) {
                write(value, &alive);
                alive.remove(value);
            } else {
                alive.insert(value);
            }
        }
        alive
    }

    /// The slots, and one past the last.
    fn place(&self, values: &[Temp], conflicts: &[BitSet], start: u32, page: u32) -> (Slots, u32) {
        let mut slots = Slots::default();
        let mut friends: MixMap<Temp, Vec<Temp>> = MixMap::default();
        for copy in &self.moves {
            friends.entry(copy.to).or_default().push(copy.from);
            friends.entry(copy.from).or_default().push(copy.to);
        }
        let mut end = start;
        for (&value, others) in values.iter().zip(conflicts) {
            let size = self.size(value);
            let mut taken = BitSet::of((end + page + size) as usize + 1);
            for other in others.iter().map(|number| values[number]).filter(|other| *other != value) {
                if let Some(&first) = slots.get(&other) {
                    (first..first + self.size(other)).for_each(|slot| taken.insert(slot as usize));
                }
            }
            let free = |slot: u32| {
                let inside = slot / page == (slot + size - 1) / page;
                inside && (slot..slot + size).all(|slot| !taken.has(slot as usize))
            };
            let friend = friends.get(&value).into_iter().flatten().filter_map(|friend| slots.get(friend));
            let friend = friend.copied().find(|slot| free(*slot));
            let Some(slot) = friend.or_else(|| (start..=end + page).find(|slot| free(*slot))) else {
                continue;
            };
            slots.insert(value, slot);
            end = end.max(slot + size);
        }
        (slots, end)
    }
}

fn is_store(program: &Program, inst: Inst) -> bool {
    program.op(inst).is(Pseudo::Spill)
}
