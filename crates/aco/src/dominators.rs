//! Dominators of the linear or the logical flow.
//!
//! Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm"; whether one block dominates another is a comparison of positions in the tree.

use crate::ir::{Block, BlockData, Program};
use unwedge_base::entity::Entity;

/// The dominators of one flow.
#[derive(Debug)]
pub(crate) struct Dominators {
    /// Reachable blocks in reverse postorder.
    order: Vec<Block>,
    /// By block: when a walk of the tree enters and leaves it. Zero if it is not reachable.
    spans: Vec<(u32, u32)>,
}

const UNREACHED: u32 = u32::MAX;

/// One of the flows.
#[derive(Clone, Copy)]
struct Flow {
    preds: fn(&BlockData) -> &[Block],
    succs: fn(&BlockData) -> &[Block],
}

impl Dominators {
    /// The dominators of the linear flow.
    pub(crate) fn linear(program: &Program) -> Dominators {
        Dominators::of(program, Flow { preds: |data| &data.linear_preds, succs: |data| &data.linear_succs })
    }

    /// The dominators of the logical flow.
    pub(crate) fn logical(program: &Program) -> Dominators {
        Dominators::of(program, Flow { preds: |data| &data.logical_preds, succs: |data| &data.logical_succs })
    }

    fn of(program: &Program, flow: Flow) -> Dominators {
        let order = reverse_postorder(program, flow);
        let mut numbers = vec![UNREACHED; program.blocks.len()];
        for (number, block) in (0..).zip(&order) {
            numbers[block.index()] = number;
        }
        let mut parents = vec![UNREACHED; order.len()];
        if let Some(first) = parents.first_mut() {
            *first = 0;
        }
        let mut changed = true;
        while changed {
            changed = false;
            for (number, block) in order.iter().enumerate().skip(1) {
                let mut new = UNREACHED;
                for pred in (flow.preds)(&program.blocks[*block]) {
                    let pred = numbers[pred.index()];
                    if pred == UNREACHED || parents[pred as usize] == UNREACHED {
                        continue;
                    }
                    new = if new == UNREACHED { pred } else { meet(&parents, new, pred) };
                }
                changed |= parents[number] != new;
                parents[number] = new;
            }
        }
        let spans = spans(&order, &parents, program.blocks.len());
        Dominators { order, spans }
    }

    /// Reachable blocks in reverse postorder.
    pub(crate) fn order(&self) -> &[Block] {
        &self.order
    }

    /// Whether every path to a block passes through another one.
    pub(crate) fn dominates(&self, by: Block, block: Block) -> bool {
        let ((enter, leave), (inner, last)) = (self.spans[by.index()], self.spans[block.index()]);
        enter > 0 && inner > 0 && enter <= inner && last <= leave
    }
}

/// When a walk of the tree enters and leaves each block.
fn spans(order: &[Block], parents: &[u32], count: usize) -> Vec<(u32, u32)> {
    // Children come after their parents, so sizes add up from the end, and places are given from the start.
    let mut sizes = vec![1u32; order.len()];
    for number in (1..order.len()).rev() {
        let parent = parents[number] as usize;
        if parent < number {
            sizes[parent] += sizes[number];
        }
    }
    let mut next: Vec<u32> = vec![1; order.len()];
    let mut spans = vec![(0, 0); count];
    for (number, block) in order.iter().enumerate() {
        let enter = match number {
            0 => 1,
            _ => {
                let parent = parents[number] as usize;
                let enter = next[parent];
                next[parent] += sizes[number];
                enter
            }
        };
        next[number] = enter + 1;
        spans[block.index()] = (enter, enter + sizes[number] - 1);
    }
    spans
}

fn meet(parents: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while a > b {
            a = parents[a as usize];
        }
        while b > a {
            b = parents[b as usize];
        }
    }
    a
}

fn reverse_postorder(program: &Program, flow: Flow) -> Vec<Block> {
    let mut order = Vec::new();
    let Some(first) = program.blocks.keys().next() else { return order };
    let mut seen = vec![false; program.blocks.len()];
    let mut stack = vec![(first, 0)];
    seen[first.index()] = true;
    while let Some((block, next)) = stack.last_mut() {
        match (flow.succs)(&program.blocks[*block]).get(*next) {
            Some(succ) => {
                *next += 1;
                if !std::mem::replace(&mut seen[succ.index()], true) {
                    stack.push((*succ, 0));
                }
            }
            None => {
                order.push(*block);
                stack.pop();
            }
        }
    }
    order.reverse();
    order
}
