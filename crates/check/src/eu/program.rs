//! A program as a graph: what is reached from its start, blocks, and where each goes on.
//!
//! Branches are taken as the hardware takes them: both ways of an `if`, also where all channels agree. Targets are bytes from
//! the start of the branch. Never: says what is wrong with registers.

use super::access::{self, Access};
use super::facts::Rule;
use super::operands::Operation;
use unwedge_isa::eu::program::{Placed, instructions};
use unwedge_isa::eu::{Field as F, File, Opcode, Platform};

/// An instruction of the program.
#[derive(Debug)]
pub(super) struct Step {
    /// In bytes from the start.
    pub offset: usize,
    /// `None` where the bytes are not an instruction.
    pub operation: Option<Operation>,
    /// What it touches; empty where it is not reached.
    pub access: Access,
    pub reached: bool,
}

impl Step {
    /// The message that ends the thread.
    pub fn ends_thread(&self) -> bool {
        self.operation.is_some_and(|op| op.is_send() && op.inst.flag(F::SendEndOfThread))
    }
}

/// Instructions that follow each other.
#[derive(Debug)]
pub(super) struct Block {
    /// Positions of steps.
    pub first: usize,
    pub end: usize,
    /// Blocks it goes on in.
    pub next: Vec<usize>,
    /// It ends the thread, or goes where it is not known.
    pub leaves: bool,
    /// It goes on after the last byte.
    pub runs_off: bool,
}

/// Something wrong with the shape, and the place.
pub(super) type ShapeProblem = (Rule, usize);

#[derive(Debug, Default)]
pub(super) struct Program {
    pub steps: Vec<Step>,
    pub blocks: Vec<Block>,
    pub problems: Vec<ShapeProblem>,
    /// Some path ends the thread.
    pub ends: bool,
    /// Bytes in all.
    pub length: usize,
}

/// Where control goes from an instruction.
#[derive(Debug, Default)]
struct Exits {
    falls: bool,
    /// Places in bytes.
    targets: Vec<i64>,
    leaves: bool,
}

impl Program {
    /// Reads what is reached from the first byte.
    pub fn read(platform: Platform, bytes: &[u8]) -> Self {
        let placed: Vec<Placed> = instructions(platform, bytes).collect();
        let steps = placed.iter().map(|placed| Step {
            offset: placed.offset,
            operation: placed.inst.and_then(|inst| Operation::read(&inst)),
            access: Access::default(),
            reached: false,
        });
        let mut program = Self { steps: steps.collect(), length: bytes.len(), ..Self::default() };
        let mut edges: Vec<Vec<usize>> = vec![Vec::new(); placed.len()];
        let mut open: Vec<(bool, bool)> = vec![(false, false); placed.len()];
        let mut leaders = vec![false; placed.len()];
        let mut work = Vec::new();
        if let Some(first) = leaders.first_mut() {
            *first = true;
            work.push(0);
        }
        while let Some(at) = work.pop() {
            if std::mem::replace(&mut program.steps[at].reached, true) {
                continue;
            }
            program.visit(at, &placed[at], &mut edges[at], &mut open[at]);
            let branches = edges[at].iter().any(|next| *next != at + 1) || edges[at].len() != 1;
            for next in edges[at].iter().copied() {
                leaders[next] |= branches;
                work.push(next);
            }
            if let Some(next) = leaders.get_mut(at + 1) {
                *next |= branches;
            }
        }
        program.make_blocks(&edges, &open, &leaders);
        program.problems.sort_unstable_by_key(|(rule, place)| (*place, *rule));
        program.problems.dedup();
        program
    }

    /// Finds where an instruction leads to. `open`: it leaves, it runs off the end.
    fn visit(&mut self, at: usize, placed: &Placed, edges: &mut Vec<usize>, open: &mut (bool, bool)) {
        let Some(operation) = self.steps[at].operation else {
            self.problems.push((Rule::NotInstruction, placed.offset));
            open.0 = true;
            return;
        };
        self.steps[at].access = access::of(&operation);
        let ends = self.steps[at].ends_thread();
        self.ends |= ends;
        let exits = exits(&operation, placed, ends);
        open.0 = exits.leaves;
        if exits.falls {
            if at + 1 < self.steps.len() {
                edges.push(at + 1);
            } else {
                open.1 = true;
                self.problems.push((Rule::RunsOff, placed.offset));
            }
        }
        for target in exits.targets {
            let place = usize::try_from(target).ok().filter(|place| *place <= self.length);
            let Some(place) = place else {
                self.problems.push((Rule::JumpOutside, placed.offset));
                open.0 = true;
                continue;
            };
            match self.steps.binary_search_by_key(&place, |step| step.offset) {
                Ok(next) => edges.push(next),
                Err(_) if place == self.length => {
                    open.1 = true;
                    self.problems.push((Rule::RunsOff, placed.offset));
                }
                Err(_) => {
                    self.problems.push((Rule::JumpMiddle, placed.offset));
                    open.0 = true;
                }
            }
        }
        edges.sort_unstable();
        edges.dedup();
    }

    fn make_blocks(&mut self, edges: &[Vec<usize>], open: &[(bool, bool)], leaders: &[bool]) {
        let mut block_of = vec![usize::MAX; self.steps.len()];
        let mut ends: Vec<usize> = Vec::new();
        for at in 0..self.steps.len() {
            if !self.steps[at].reached {
                continue;
            }
            let follows = at > 0 && self.steps[at - 1].reached && !leaders[at];
            if !follows {
                let block = Block { first: at, end: at, next: Vec::new(), leaves: false, runs_off: false };
                self.blocks.push(block);
                ends.push(at);
            }
            if let (Some(block), Some(end)) = (self.blocks.last_mut(), ends.last_mut()) {
                block.end = at + 1;
                (block.leaves, block.runs_off) = open[at];
                *end = at;
            }
            block_of[at] = self.blocks.len() - 1;
        }
        for (block, end) in self.blocks.iter_mut().zip(ends) {
            block.next = edges[end].iter().map(|next| block_of[*next]).filter(|b| *b != usize::MAX).collect();
        }
    }

    /// The first instruction of each block from which the thread cannot end.
    pub fn endless(&self) -> Vec<usize> {
        let mut before: Vec<Vec<usize>> = vec![Vec::new(); self.blocks.len()];
        let mut work = Vec::new();
        let mut can_end = vec![false; self.blocks.len()];
        for (number, block) in self.blocks.iter().enumerate() {
            for next in &block.next {
                before[*next].push(number);
            }
            if block.leaves || block.runs_off {
                can_end[number] = true;
                work.push(number);
            }
        }
        while let Some(number) = work.pop() {
            for previous in before[number].iter().copied() {
                if !std::mem::replace(&mut can_end[previous], true) {
                    work.push(previous);
                }
            }
        }
        // One place for each part of the program: where it is entered.
        let entered = |number: usize| number == 0 || before[number].iter().any(|previous| can_end[*previous]);
        (0..self.blocks.len())
            .filter(|number| !can_end[*number] && entered(*number))
            .map(|number| self.steps[self.blocks[number].first].offset)
            .collect()
    }
}

/// The place a signed field leads to.
fn place(placed: &Placed, op: &Operation, field: F) -> i64 {
    placed.offset as i64 + i64::from(op.inst.get(field) as u32 as i32)
}

fn exits(op: &Operation, placed: &Placed, ends: bool) -> Exits {
    let jip = || place(placed, op, F::BranchJIP);
    let uip = || place(placed, op, F::BranchUIP);
    let falls = |targets: Vec<i64>| Exits { falls: true, targets, leaves: false };
    match op.opcode {
        _ if ends => Exits { leaves: true, ..Exits::default() },
        Opcode::If | Opcode::Else | Opcode::While => falls(vec![jip()]),
        Opcode::Break | Opcode::Cont | Opcode::Halt | Opcode::Goto => {
            if op.predicated {
                falls(vec![uip()])
            } else {
                // The channels that are left go on at JIP.
                Exits { targets: vec![jip(), uip()], ..Exits::default() }
            }
        }
        Opcode::Jmpi => {
            let next = placed.offset as i64 + placed.length as i64;
            let target = next + i64::from(op.inst.get(F::BranchJmpiOffset) as u32 as i32);
            let known = op.inst.file(F::Src1RegisterFile) == File::Immediate
                || op.inst.file(F::Src0RegisterFile) == File::Immediate;
            let targets = if known { vec![target] } else { Vec::new() };
            Exits { falls: op.predicated, targets, leaves: !known }
        }
        // Where these lead to may be in a register.
        Opcode::Brd | Opcode::Brc | Opcode::Call | Opcode::Calla => {
            Exits { falls: true, targets: Vec::new(), leaves: true }
        }
        Opcode::Ret => Exits { falls: op.predicated, targets: Vec::new(), leaves: true },
        Opcode::Illegal => Exits { leaves: true, ..Exits::default() },
        _ => falls(Vec::new()),
    }
}
