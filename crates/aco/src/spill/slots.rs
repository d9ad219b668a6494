//! Slots of values in memory. Values whose slots are never needed at once share them; a phi shares those of its operands if it can.

use super::SpillSpace;
use super::walk::Spiller;
use crate::ir::{Inst, Operand, Program, Pseudo, Temp};
use crate::live::{self, BitSet, BlockSets, OpenRead};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
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
        let number = |value: &Temp| values.binary_search(value).ok();
        let mut friends: Vec<Vec<usize>> = vec![Vec::new(); values.len()];
        for copy in &self.moves {
            let (Some(from), Some(to)) = (number(&copy.from), number(&copy.to)) else { continue };
            friends[to].push(from);
            friends[from].push(to);
        }
        // By number of the value.
        let mut placed: Vec<Range<u32>> = Vec::with_capacity(values.len());
        let mut end = start;
        for (own, &value) in values.iter().enumerate() {
            let size = self.size(value);
            let mut taken = BitSet::of((end + page + size) as usize + 1);
            for other in conflicts[own].above(0) {
                let slots = placed.get(other as usize).cloned().unwrap_or_default();
                slots.for_each(|slot| taken.insert(slot as usize));
            }
            let free = |slot: u32| {
                let inside = slot / page == (slot + size - 1) / page;
                inside && (slot..slot + size).all(|slot| !taken.has(slot as usize))
            };
            let mut near = friends[own].iter().filter_map(|friend| placed.get(*friend));
            let friend = near.find(|slots| !slots.is_empty() && free(slots.start)).map(|slots| slots.start);
            let slot = friend.or_else(|| (start..=end + page).find(|slot| free(*slot)));
            placed.push(slot.map_or(0..0, |slot| slot..slot + size));
            end = end.max(slot.map_or(0, |slot| slot + size));
        }
        let slots = values.iter().zip(placed).filter(|(_, slots)| !slots.is_empty());
        (slots.map(|(value, slots)| (*value, slots.start)).collect(), end)
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
