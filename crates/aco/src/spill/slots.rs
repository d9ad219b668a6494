//! Slots of values in memory. Values whose slots are never needed at once share them; a phi shares those of its operands if it can.

use super::SpillSpace;
use super::walk::Spiller;
use crate::ir::{Inst, Operand, Program, Pseudo, Temp};
use crate::live::{self, BitSet, BlockSets, OpenRead};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
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

    /// By value: the values with lower numbers that cannot share its slot, because one is needed when the other is written. Values are numbered in their order.
    fn conflicts(&self, values: &[Temp], accesses: &MixMap<Inst, Temp>) -> Vec<NumberSet> {
        let numbers: MixMap<Inst, u32> = accesses
            .iter()
            .filter_map(|(inst, value)| Some((*inst, values.binary_search(value).ok()? as u32)))
            .collect();
        let ends = self.needed_at_ends(values, &numbers);
        let mut conflicts = vec![NumberSet::default(); values.len()];
        for (block, data) in self.program.blocks.iter() {
            let mut needed = NumberSet::default();
            ends.at(block).iter().for_each(|number| needed.insert(*number));
            for inst in data.insts.iter().rev() {
                let Some(&value) = numbers.get(inst) else { continue };
                if is_store(self.program, *inst) {
                    needed.remove(value);
                    conflicts[value as usize].add_below(&needed, value);
                    needed.above(value).for_each(|other| conflicts[other as usize].insert(value));
                } else {
                    needed.insert(value);
                }
            }
        }
        conflicts
    }

    /// Values whose slots are needed at the ends of blocks.
    fn needed_at_ends(&self, values: &[Temp], numbers: &MixMap<Inst, u32>) -> BlockSets {
        let (mut reads, mut written) = (Vec::new(), Vec::new());
        // By value: the last block seen so far that stores it.
        let mut last = vec![None; values.len()];
        for (block, data) in self.program.blocks.iter() {
            for inst in &data.insts {
                let Some(&number) = numbers.get(inst) else { continue };
                let stored = &mut last[number as usize];
                if *stored == Some(block) {
                    continue;
                }
                if is_store(self.program, *inst) {
                    *stored = Some(block);
                    written.push((number, block));
                } else {
                    reads.push(OpenRead { number, block, at_end: false });
                }
            }
        }
        let [_, ends] = live::between(self.program, reads, written, |_| self.flow.scalar);
        ends
    }

    /// The slots, and one past the last.
    fn place(&self, values: &[Temp], conflicts: &[NumberSet], start: u32, page: u32) -> (Slots, u32) {
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
            for other in others.above(0).map(|number| values[number as usize]) {
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

/// A set of numbers, most of which are near each other.
#[derive(Debug, Clone, Default)]
struct NumberSet {
    /// Words that are not zero, by their indices.
    words: BTreeMap<u32, u64>,
}

impl NumberSet {
    fn insert(&mut self, number: u32) {
        *self.words.entry(number / 64).or_default() |= 1 << (number % 64);
    }

    fn remove(&mut self, number: u32) {
        if let Entry::Occupied(mut word) = self.words.entry(number / 64) {
            *word.get_mut() &= !(1 << (number % 64));
            if *word.get() == 0 {
                word.remove();
            }
        }
    }

    /// Adds the numbers of another set that are below a limit.
    fn add_below(&mut self, other: &NumberSet, limit: u32) {
        for (&place, &bits) in other.words.range(..limit / 64) {
            *self.words.entry(place).or_default() |= bits;
        }
        let below = (1 << (limit % 64)) - 1;
        if let Some(bits) = other.words.get(&(limit / 64)).map(|bits| bits & below).filter(|bits| *bits != 0)
        {
            *self.words.entry(limit / 64).or_default() |= bits;
        }
    }

    /// The numbers from one on, in order.
    fn above(&self, first: u32) -> impl Iterator<Item = u32> {
        let words = self.words.range(first / 64..);
        let numbers = words.flat_map(|(place, bits)| {
            let mut rest = *bits;
            std::iter::from_fn(move || {
                let bit = (rest != 0).then(|| rest.trailing_zeros())?;
                rest &= rest - 1;
                Some(place * 64 + bit)
            })
        });
        numbers.skip_while(move |number| *number < first)
    }
}

fn is_store(program: &Program, inst: Inst) -> bool {
    program.op(inst).is(Pseudo::Spill)
}
