//! Slots of values in memory. Values whose slots are never needed at once share them; a phi shares those of its operands if it can.

use super::SpillSpace;
use super::walk::Spiller;
use crate::ir::{Block, Inst, Operand, Program, Pseudo, Temp};
use std::collections::{BTreeSet, HashMap, HashSet};
use unwedge_base::entity::Entity;

/// The first slot of each value.
type Slots = HashMap<Temp, u32>;

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
        let accesses: HashMap<Inst, Temp> =
            self.accesses.iter().map(|access| (access.inst, access.value)).collect();
        let conflicts = self.conflicts(&accesses);
        let (slots, end) = self.place(&conflicts, space.start(), space.page(self.program));
        let same = |copy: &&SlotCopy| slots.get(&copy.from) == slots.get(&copy.to);
        let needless: HashSet<Inst> =
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

    /// By value: those whose slots are needed at a time when its slot is written.
    fn conflicts(&self, accesses: &HashMap<Inst, Temp>) -> HashMap<Temp, BTreeSet<Temp>> {
        let count = self.program.blocks.len();
        let mut starts: Vec<BTreeSet<Temp>> = vec![BTreeSet::new(); count];
        let mut conflicts: HashMap<Temp, BTreeSet<Temp>> = HashMap::new();
        let mut changed = true;
        while changed {
            changed = false;
            for block in self.program.blocks.keys().collect::<Vec<_>>().into_iter().rev() {
                let alive = self.follow(block, &starts, accesses, &mut |_, _| {});
                if alive != starts[block.index()] {
                    starts[block.index()] = alive;
                    changed = true;
                }
            }
        }
        for block in self.program.blocks.keys() {
            self.follow(block, &starts, accesses, &mut |written, alive| {
                for other in alive.iter().copied().filter(|other| *other != written) {
                    conflicts.entry(written).or_default().insert(other);
                    conflicts.entry(other).or_default().insert(written);
                }
            });
        }
        conflicts
    }

    /// Values whose slots are needed at the start of a block. `write` gets each value that is stored, and those needed after it.
    fn follow(
        &self,
        block: Block,
        starts: &[BTreeSet<Temp>],
        accesses: &HashMap<Inst, Temp>,
        write: &mut dyn FnMut(Temp, &BTreeSet<Temp>),
    ) -> BTreeSet<Temp> {
        let mut alive = BTreeSet::new();
        for succ in self.flow.succs(self.program, block) {
            alive.extend(starts[succ.index()].iter().copied());
        }
        for &inst in self.program.blocks[block].insts.iter().rev() {
            let Some(&value) = accesses.get(&inst) else { continue };
            if is_store(self.program, inst) {
                write(value, &alive);
                alive.remove(&value);
            } else {
                alive.insert(value);
            }
        }
        alive
    }

    /// The slots, and one past the last.
    fn place(&self, conflicts: &HashMap<Temp, BTreeSet<Temp>>, start: u32, page: u32) -> (Slots, u32) {
        let mut slots = Slots::new();
        let mut end = start;
        let values: BTreeSet<Temp> = self.accesses.iter().map(|access| access.value).collect();
        for value in values {
            let size = self.size(value);
            let others = conflicts.get(&value);
            let free = |slot: u32| {
                let inside = slot / page == (slot + size - 1) / page;
                let taken = others.into_iter().flatten().any(|other| {
                    let own = slots.get(other).map(|first| (*first, self.size(*other)));
                    own.is_some_and(|(first, count)| first < slot + size && slot < first + count)
                });
                inside && !taken
            };
            let friends = self.moves.iter().filter_map(|copy| match value {
                value if value == copy.to => slots.get(&copy.from),
                value if value == copy.from => slots.get(&copy.to),
                _ => None,
            });
            let friend = friends.copied().find(|slot| free(*slot));
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
