//! Reachability and dominance, by sets of blocks: slow and simple, and used by the validators alone.

use crate::ir::{Block, BlockData, Program};
use unwedge_base::entity::Entity;

/// For each block the blocks that are on every path to it, itself included; `None` if the block is unreachable.
pub struct Dominators(Vec<Option<Vec<bool>>>);

impl Dominators {
    /// The dominators in the flow whose predecessors `preds` gives.
    pub fn of(program: &Program, preds: impl Fn(&BlockData) -> &[Block]) -> Dominators {
        let count = program.blocks.len();
        let mut sets: Vec<Option<Vec<bool>>> = vec![None; count];
        let mut changed = true;
        while changed {
            changed = false;
            for (block, data) in program.blocks.iter() {
                let number = block.index();
                let mut new: Option<Vec<bool>> = (number == 0).then(|| vec![false; count]);
                for pred in preds(data) {
                    let Some(Some(of_pred)) = sets.get(pred.index()) else { continue };
                    new = Some(match new {
                        None => of_pred.clone(),
                        Some(set) => set.iter().zip(of_pred).map(|(a, b)| *a && *b).collect(),
                    });
                }
                if let Some(set) = &mut new {
                    set[number] = true;
                }
                if sets[number] != new {
                    sets[number] = new;
                    changed = true;
                }
            }
        }
        Dominators(sets)
    }

    /// Whether a path leads to a block.
    pub fn reaches(&self, block: Block) -> bool {
        matches!(self.0.get(block.index()), Some(Some(_)))
    }

    /// Whether every path to `to` passes through `by`; true for an unreachable block.
    pub fn dominates(&self, by: Block, to: Block) -> bool {
        match self.0.get(to.index()) {
            Some(Some(set)) => set.get(by.index()).copied().unwrap_or(false),
            _ => true,
        }
    }
}
