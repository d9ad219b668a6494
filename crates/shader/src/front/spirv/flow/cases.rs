//! Switches of many cases: which of their targets need no `block` around the whole switch.
//!
//! A target that only its switch leads to is nested where the switch jumps to it. Targets that fall through to each other are written one
//! after another, in chains. So the depth of regions does not grow with the number of cases. Nothing here reads literals or writes code.

use super::Plan;

/// The most targets of a switch that are tested one after another. More are found by a tree of comparisons.
const MAX_TESTS: usize = 16;

impl Plan {
    /// Takes targets of switches that have many out of the placed blocks, and puts them into chains. `merges` are the declared merge
    /// blocks.
    pub(super) fn cases(&mut self, merges: &[Option<usize>], predecessors: &[Vec<usize>]) {
        let mut is_merge = vec![false; self.blocks.len()];
        for &merge in merges.iter().flatten() {
            is_merge[merge] = true;
        }
        for at in 0..self.blocks.len() {
            let block = &self.blocks[at];
            if !block.switches || block.placed.len() <= MAX_TESTS {
                continue;
            }
            let mut targets: Vec<usize> = block.successors.clone();
            targets.sort_unstable();
            targets.dedup();
            targets.retain(|&to| block.placed.binary_search(&to).is_ok() && !is_merge[to]);
            if targets.len() > MAX_TESTS {
                self.chain(at, targets, predecessors);
            }
        }
    }

    fn chain(&mut self, at: usize, mut targets: Vec<usize>, predecessors: &[Vec<usize>]) {
        // None of the targets dominates another one.
        targets.sort_unstable_by_key(|&to| self.blocks[to].dominated.start);
        let mut nexts = vec![None; targets.len()];
        let mut previous = vec![None; targets.len()];
        let mut fits = vec![true; targets.len()];
        for (number, &to) in targets.iter().enumerate() {
            for &from in predecessors[to].iter().filter(|&&from| from != at) {
                let position = self.blocks[from].dominated.start;
                let other = targets.partition_point(|&other| self.blocks[other].dominated.start <= position);
                match other.checked_sub(1).filter(|&other| self.dominates(targets[other], from)) {
                    Some(other) if other == number => {}
                    Some(other) if targets[other] < to && previous[number].is_none_or(|p| p == other) => {
                        previous[number] = Some(other);
                    }
                    _ => fits[number] = false,
                }
            }
        }
        // In the order of blocks, in which those that fall through come before those that they lead to.
        let mut order: Vec<usize> = (0..targets.len()).collect();
        order.sort_unstable_by_key(|&number| targets[number]);
        // What does not fit stays in a block of its own, and so does what it leads to, and the second one that another leads to.
        for &number in &order {
            let Some(other) = previous[number] else { continue };
            fits[number] &= fits[other] && nexts[other].is_none();
            if fits[number] {
                nexts[other] = Some(number);
            }
        }
        let default = self.blocks[at].successors[0];
        let mut chains = Vec::new();
        let mut is_chained = vec![false; targets.len()];
        for first in order {
            if !fits[first] || is_chained[first] {
                continue;
            }
            let links = std::iter::successors(Some(first), |&number| nexts[number]);
            let chain: Vec<usize> = links.collect();
            // The default is where any number of comparisons lead to.
            if chain.len() == 1 && targets[first] == default {
                continue;
            }
            for &number in &chain {
                is_chained[number] = true;
                self.blocks[targets[number]].is_placed = number != first;
            }
            chains.push(chain.into_iter().map(|number| targets[number]).collect());
        }
        let mut chained: Vec<usize> = chains.iter().flatten().copied().collect();
        chained.sort_unstable();
        let block = &mut self.blocks[at];
        block.placed.retain(|to| chained.binary_search(to).is_err());
        block.chains = chains;
    }
}
