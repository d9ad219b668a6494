//! Makes variables SSA along the linear flow: lane masks that change from block to block, and uniform values that are read where the wave may come
//! without passing their definition.
//!
//! Braun et al., "Simple and Efficient Construction of Static Single Assignment Form": a variable is looked up in the block, then in its predecessors,
//! with a phi where a block has several.

use crate::ir::{Block, Definition, NewInst, Operand, Program, Pseudo, RegClass, Temp};
use std::collections::HashMap;
use unwedge_base::entity::Entity;

/// A variable of one class, with what blocks leave in it.
#[derive(Debug)]
pub(crate) struct LinearVar {
    class: RegClass,
    ends: HashMap<Block, Operand>,
    starts: HashMap<Block, Operand>,
}

impl LinearVar {
    /// A variable that holds anything where nothing is written.
    pub(crate) fn new(class: RegClass) -> LinearVar {
        LinearVar { class, ends: HashMap::new(), starts: HashMap::new() }
    }

    /// A block leaves a value. Everything is written before anything is read.
    pub(crate) fn write(&mut self, block: Block, value: Operand) {
        self.ends.insert(block, value);
    }

    /// What a block leaves.
    pub(crate) fn at_end(&mut self, program: &mut Program, block: Block) -> Operand {
        match self.ends.get(&block) {
            Some(value) => *value,
            None => self.at_start(program, block),
        }
    }

    /// What a block finds. Blocks are followed in a loop, not by recursion: there may be many.
    pub(crate) fn at_start(&mut self, program: &mut Program, block: Block) -> Operand {
        let mut open = Vec::new();
        let value = self.look_up(program, block, &mut open);
        while let Some((block, temp)) = open.pop() {
            let preds = program.blocks[block].linear_preds.clone();
            let mut operands = Vec::with_capacity(preds.len());
            for pred in preds {
                let operand = match self.ends.get(&pred) {
                    Some(value) => *value,
                    None => self.look_up(program, pred, &mut open),
                };
                operands.push(operand);
            }
            let definitions = [Definition::temp(temp, self.class)];
            program.insert(block, 0, &NewInst::pseudo(Pseudo::LinearPhi, &definitions, &operands));
        }
        value
    }

    /// The value at the start of a block. `open` gets the blocks that need a phi, with its result.
    fn look_up(&mut self, program: &mut Program, block: Block, open: &mut Vec<(Block, Temp)>) -> Operand {
        let mut passed = Vec::new();
        let mut at = block;
        let value = loop {
            if let Some(value) = self.starts.get(&at) {
                break *value;
            }
            passed.push(at);
            match program.blocks[at].linear_preds[..] {
                [] => break Operand::undef(self.class),
                [pred] => match self.ends.get(&pred) {
                    Some(value) => break *value,
                    None => at = pred,
                },
                _ => {
                    let temp = program.make_temp(self.class);
                    let value = Operand::temp(temp, self.class);
                    self.starts.insert(at, value);
                    open.push((at, temp));
                    break value;
                }
            }
        };
        for block in passed {
            self.starts.insert(block, value);
        }
        value
    }
}

/// Dominators of the linear flow.
#[derive(Debug)]
pub(crate) struct LinearDominators {
    /// For each block the number in reverse postorder of its immediate dominator, by its own number.
    parents: Vec<u32>,
    numbers: Vec<u32>,
}

const UNREACHED: u32 = u32::MAX;

impl LinearDominators {
    /// Those of a program (Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm").
    pub(crate) fn of(program: &Program) -> LinearDominators {
        let count = program.blocks.len();
        let mut numbers = vec![UNREACHED; count];
        let mut order = postorder(program);
        order.reverse();
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
                for pred in &program.blocks[*block].linear_preds {
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
        LinearDominators { parents, numbers }
    }

    /// Whether every path of the wave to a block passes another.
    pub(crate) fn dominates(&self, by: Block, block: Block) -> bool {
        let (by, mut at) = (self.numbers[by.index()], self.numbers[block.index()]);
        if by == UNREACHED || at == UNREACHED {
            return false;
        }
        while at > by {
            at = self.parents[at as usize];
        }
        at == by
    }
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

fn postorder(program: &Program) -> Vec<Block> {
    let mut order = Vec::new();
    let Some(first) = program.blocks.keys().next() else { return order };
    let mut seen = vec![false; program.blocks.len()];
    let mut stack = vec![(first, 0)];
    seen[first.index()] = true;
    while let Some((block, next)) = stack.last_mut() {
        match program.blocks[*block].linear_succs.get(*next) {
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
    order
}
