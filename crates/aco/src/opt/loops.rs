//! Loops: where a scalar register still holds the value that lanes saw in a loop.
//!
//! Lanes may leave a loop in different iterations, and a scalar register has only the value of the last one. So selection lets no value leave a loop in
//! scalar registers unless it is the same in all lanes, and no phase of optimization may undo that.

use crate::ir::{Block, Program};
use unwedge_base::entity::Entity;

/// The extent of the innermost loop around each block. The blocks of a loop are consecutive, and a block outside separates one loop from the next.
#[derive(Debug)]
pub(super) struct Loops {
    /// By block: the first block after its loop.
    ends: Vec<usize>,
    /// All blocks are outside of loops.
    empty: bool,
}

impl Loops {
    /// The loops of a program.
    pub fn of(program: &Program) -> Loops {
        let depths: Vec<_> = program.blocks.values().map(|block| block.loop_depth).collect();
        let mut ends = vec![depths.len(); depths.len()];
        // The blocks after the one at hand that begin a smaller depth, the nearest one last.
        let mut shallower: Vec<usize> = Vec::new();
        for block in (0..depths.len()).rev() {
            while shallower.last().is_some_and(|after| depths[*after] >= depths[block]) {
                shallower.pop();
            }
            ends[block] = shallower.last().copied().unwrap_or(depths.len());
            shallower.push(block);
        }
        let empty = depths.iter().all(|depth| *depth == 0);
        Loops { ends, empty }
    }

    /// Whether the program has no loops.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// Whether a block is in all loops that contain another block before it.
    pub fn includes(&self, of: Block, block: Block) -> bool {
        block.index() < self.ends[of.index()]
    }
}
