//! Code as a graph of blocks.
//!
//! Both ways of a branch are taken. Where fibers part, the others go on later where the first ones left: registers that the
//! wave shares follow those edges too.

use super::CheckFinding;
use super::access::RegisterAccess;
use super::facts::{GpuFacts, ResultSync, Rule, cycles};
use std::collections::BTreeMap;
use unwedge_isa::ir3::{Attributes, Instruction, Opcode, Operand};

/// An instruction, with what the rules need of it.
#[derive(Debug, Clone)]
pub(super) struct FlowStep {
    pub instruction: Instruction,
    pub access: RegisterAccess,
    pub sync: ResultSync,
    /// The scalar unit executes it.
    pub scalar: bool,
    pub cycles: u8,
}

/// Instructions without a branch between them.
#[derive(Debug, Clone, Default)]
pub(super) struct FlowBlock {
    pub first: usize,
    /// One past the last.
    pub end: usize,
    pub next: Vec<usize>,
    /// Where the wave goes on with other fibers.
    pub physical: Option<usize>,
}

/// A program.
#[derive(Debug)]
pub(super) struct ShaderFlow {
    /// By instruction; `None` where it is not one, or is not reached.
    pub steps: Vec<Option<FlowStep>>,
    pub blocks: Vec<FlowBlock>,
    pub problems: Vec<CheckFinding>,
    /// Words that are not reached, before a word that is.
    pub unreached: Vec<usize>,
}

/// Which instructions begin the other side of a predication, and which end it.
#[derive(Debug, Default)]
struct Predication {
    /// By the instruction that begins it: where the other side begins, or where it ends.
    sides: BTreeMap<usize, usize>,
    /// By the last instruction of the first side, where it ends.
    ends: BTreeMap<usize, usize>,
}

impl Predication {
    /// Fibers of one side do not execute the other: neither sees what the other has pending.
    fn find(steps: &[Option<FlowStep>]) -> Predication {
        let mut found = Predication::default();
        let (mut begin, mut other) = (None, None);
        for (at, step) in steps.iter().enumerate() {
            let Some(step) = step else { continue };
            match (step.instruction.opcode, begin) {
                (Opcode::Predt | Opcode::Predf, None) => begin = Some(at),
                (Opcode::Predt | Opcode::Predf, Some(_)) => other = Some(at),
                (Opcode::Prede, Some(first)) => {
                    found.sides.insert(first, other.unwrap_or(at));
                    if let Some(other) = other {
                        found.ends.insert(other - 1, at);
                    }
                    (begin, other) = (None, None);
                }
                _ if step.instruction.opcode.category() == 0 && step.instruction.opcode != Opcode::Nop => {
                    (begin, other) = (None, None);
                }
                _ => {}
            }
        }
        found
    }
}

/// Where control goes from an instruction.
struct Exits {
    next: bool,
    target: Option<Option<usize>>,
}

fn exits(instruction: &Instruction, at: usize) -> Exits {
    use Opcode::{Chsh, End, Jump, Ret, Shpe};
    let target = match instruction.attributes {
        Attributes::Flow { target: Some(_), .. } => Some(instruction.target(at)),
        _ => None,
    };
    Exits { next: !matches!(instruction.opcode, End | Chsh | Ret | Shpe | Jump), target }
}

impl ShaderFlow {
    pub(super) fn read(words: &[u64], gpu_id: u32, facts: &GpuFacts) -> ShaderFlow {
        let mut program = ShaderFlow {
            steps: vec![None; words.len()],
            blocks: Vec::new(),
            problems: Vec::new(),
            unreached: Vec::new(),
        };
        let mut starts = vec![false; words.len() + 1];
        let mut seen = vec![false; words.len()];
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            if seen.get(at).is_none_or(|seen| *seen) {
                continue;
            }
            seen[at] = true;
            let Some(instruction) = Instruction::decode(words[at], gpu_id) else {
                program.problems.push(CheckFinding::at(Rule::NotInstruction, at));
                continue;
            };
            let exits = exits(&instruction, at);
            program.steps[at] = Some(FlowStep::new(instruction, facts));
            if let Some(target) = exits.target {
                starts[at + 1] = true;
                match target.filter(|target| *target < words.len()) {
                    Some(target) => {
                        starts[target] = true;
                        work.push(target);
                    }
                    None => program.problems.push(CheckFinding::at(Rule::BranchOutside, at)),
                }
            }
            starts[at + 1] |= !exits.next;
            if exits.next {
                if at + 1 == words.len() {
                    program.problems.push(CheckFinding::at(Rule::RunsOff, at));
                }
                work.push(at + 1);
            }
        }
        program.find_unreached(&seen);
        let predication = Predication::find(&program.steps);
        for (&from, &to) in predication.sides.iter().chain(&predication.ends) {
            (starts[from + 1], starts[to]) = (true, true);
        }
        program.make_blocks(&starts, &predication);
        program.replace_aliases(facts);
        program
    }

    fn find_unreached(&mut self, seen: &[bool]) {
        // What follows the end is padding.
        let last = seen.iter().rposition(|seen| *seen).unwrap_or(0);
        let gap = |at: &usize| !seen[*at] && (*at == 0 || seen[*at - 1]);
        self.unreached = (0..last).filter(gap).collect();
    }

    fn make_blocks(&mut self, starts: &[bool], predication: &Predication) {
        let mut of_start = BTreeMap::new();
        for (at, step) in self.steps.iter().enumerate() {
            let continues = at > 0 && !starts[at] && self.steps[at - 1].is_some();
            match (step, self.blocks.last_mut()) {
                (None, _) => {}
                (Some(_), Some(block)) if continues => block.end = at + 1,
                (Some(_), _) => {
                    of_start.insert(at, self.blocks.len());
                    self.blocks.push(FlowBlock { first: at, end: at + 1, ..FlowBlock::default() });
                }
            }
        }
        for block in &mut self.blocks {
            let Some(step) = &self.steps[block.end - 1] else { continue };
            let exits = exits(&step.instruction, block.end - 1);
            let following = of_start.get(&block.end).copied();
            let last = block.end - 1;
            if exits.next && !predication.ends.contains_key(&last) {
                block.next.extend(following);
            } else {
                block.physical = following;
            }
            let side = predication.sides.get(&last).or(predication.ends.get(&last)).copied();
            let target = exits.target.flatten().or(side);
            block.next.extend(target.and_then(|target| of_start.get(&target)));
        }
    }

    /// Texture instructions read what the aliases before them name.
    fn replace_aliases(&mut self, facts: &GpuFacts) {
        for block in &self.blocks {
            let mut aliases: Vec<(Operand, Operand)> = Vec::new();
            for step in self.steps[block.first..block.end].iter_mut().flatten() {
                let Instruction { opcode, attributes, .. } = step.instruction;
                if opcode == Opcode::Alias {
                    let (dst, src) = (step.instruction.dsts.get(0), step.instruction.srcs.get(0));
                    step.access = RegisterAccess::default();
                    if let Attributes::Alias { scope: 0, .. } = attributes {
                        aliases.extend(dst.zip(src));
                    }
                } else if opcode.category() == 5 {
                    step.access.replace(&aliases, facts);
                    aliases.clear();
                }
            }
        }
    }
}

impl FlowStep {
    fn new(instruction: Instruction, facts: &GpuFacts) -> FlowStep {
        let shared = instruction.dsts.get(0).is_some_and(|dst| dst.is_shared());
        let uniform = instruction.srcs.iter().all(|src| src.is_uniform());
        let scalar = facts.scalar_alu
            && shared
            && uniform
            && matches!(instruction.opcode.category(), 1..=3)
            && instruction.opcode != Opcode::Movmsk;
        FlowStep {
            access: RegisterAccess::new(&instruction, facts),
            sync: ResultSync::of(&instruction, scalar),
            scalar,
            cycles: cycles(&instruction, scalar),
            instruction,
        }
    }

    /// Whether it reads its sources at any time until a flag waits for that, and which flag: only `(ss)`, or either.
    pub(super) fn reads_late(&self) -> Option<LateRead> {
        let opcode = self.instruction.opcode;
        let name = opcode.name();
        match opcode.category() {
            4 => Some(LateRead::UntilSs),
            5 if opcode == Opcode::Tcinv => None,
            5 => Some(LateRead::UntilEither),
            6 if self.sync == ResultSync::Ss || name.starts_with("st") => Some(LateRead::UntilSs),
            6 => Some(LateRead::UntilEither),
            _ => None,
        }
    }

    /// Constants that it writes, and the flag for their readers: `(ss)`, or `(sy)`.
    pub(super) fn writes_constants(&self) -> Option<ResultSync> {
        match self.instruction.opcode {
            Opcode::Stc | Opcode::Stsc => Some(ResultSync::Ss),
            Opcode::LdcK | Opcode::LdgK => Some(ResultSync::Sy),
            _ => None,
        }
    }

    /// Whether the instruction after it must have waited for everything.
    pub(super) fn is_barrier(&self) -> bool {
        self.instruction.opcode.category() == 7 && self.instruction.opcode != Opcode::Alias
    }
}

/// Until when the sources of an instruction may be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateRead {
    UntilSs,
    UntilEither,
}
