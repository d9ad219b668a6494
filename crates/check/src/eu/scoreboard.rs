//! The software scoreboard of gen12 and later: what is pending, and what an instruction waits for.
//!
//! Two sets are followed over the graph until nothing changes. In-order instructions are pending with the number of
//! instructions of their pipe that were issued since; where paths meet, the smaller number counts. Messages, `dpas`, and
//! `math` before Xe2 are pending with their token, apart for reading their sources and for writing their destination. A
//! member of a set never changes what happens to another, so the order of visits does not matter.
//!
//! From gen12.5 on in-order instructions run in pipes of their own: float, integer, long, and on Xe2 math. A wait without a
//! letter is for the pipe that follows from the types of the sources. Bytes of registers count, not whole registers.
//! Never: says what a program without annotations should have.

use super::access::Touches;
use super::facts::Rule;
use super::operands::Operation;
use super::program::{Block, Program, Step};
use super::{CheckFinding, WaitNeed};
use crate::Level;
use unwedge_isa::eu::tables::TokenMode;
use unwedge_isa::eu::{Field as F, File, Generation, Opcode, Type};

/// In-order instructions that are pending at once in the short pipes and in the long one: later ones find the result there.
const SHORT_DEPTH: u8 = 10;
const LONG_DEPTH: u8 = 14;
/// Members of a set at most; more is not followed.
const MOST_PENDING: usize = 256;
/// The largest distance that an annotation has.
const MOST_DISTANCE: u8 = 7;
/// Visits of a block on average, at most.
const VISITS: usize = 48;

/// A pipe of in-order instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pipe {
    Float,
    Integer,
    Long,
    Math,
}

const PIPES: [Pipe; 4] = [Pipe::Float, Pipe::Integer, Pipe::Long, Pipe::Math];

impl Pipe {
    fn bit(self) -> u8 {
        1 << self as u8
    }

    fn depth(self) -> u8 {
        if self == Self::Long { LONG_DEPTH } else { SHORT_DEPTH }
    }

    fn letter(self) -> &'static str {
        ["F", "I", "L", "M"][self as usize]
    }
}

/// What an instruction waits for, and what it becomes.
#[derive(Debug, Clone, Copy, Default)]
struct Issue {
    /// Distance, 0 for none, and the pipes it counts in.
    distance: u8,
    pipes: u8,
    token: Option<(u8, TokenMode)>,
    /// Tokens of `sync`, a bit each, and whether their writes are waited for.
    synced: Option<(u32, bool)>,
    /// The pipe of an in-order instruction.
    pipe: Option<Pipe>,
    /// Whether it needs a token.
    unordered: bool,
}

/// An in-order instruction that may not be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Ordered {
    step: u32,
    pipe: Pipe,
    /// In-order instructions of its pipe that were issued since, and itself.
    distance: u8,
}

/// An instruction with a token that may not be finished.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Unordered {
    step: u32,
    token: Option<u8>,
    reads: bool,
    writes: bool,
}

/// What may be pending at a place. Both sets are sorted by step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Pending {
    ordered: Vec<Ordered>,
    unordered: Vec<Unordered>,
}

impl Pending {
    /// Adds what is pending on another path. True if something changed.
    fn merge(&mut self, other: &Self) -> bool {
        let mut changed = false;
        for item in &other.ordered {
            match self.ordered.binary_search_by_key(&item.step, |have| have.step) {
                Ok(at) if self.ordered[at].distance > item.distance => {
                    self.ordered[at].distance = item.distance;
                    changed = true;
                }
                Ok(_) => {}
                Err(at) => {
                    self.ordered.insert(at, *item);
                    changed = true;
                }
            }
        }
        for item in &other.unordered {
            match self.unordered.binary_search_by_key(&item.step, |have| have.step) {
                Ok(at) => {
                    let have = &mut self.unordered[at];
                    changed |= (item.reads && !have.reads) || (item.writes && !have.writes);
                    have.reads |= item.reads;
                    have.writes |= item.writes;
                }
                Err(at) => {
                    self.unordered.insert(at, *item);
                    changed = true;
                }
            }
        }
        changed
    }

    /// Ends what is waited for. True if something was pending.
    fn wait(&mut self, issue: &Issue) -> (bool, bool) {
        let before = self.ordered.len();
        if issue.distance != 0 {
            self.ordered.retain(|item| issue.pipes & item.pipe.bit() == 0 || item.distance < issue.distance);
        }
        let in_order = self.ordered.len() != before;
        let mut by_token = false;
        if let Some((token, mode)) = issue.token {
            by_token |= self.end_token(|held| held == token, mode != TokenMode::Src);
        }
        if let Some((tokens, writes)) = issue.synced {
            by_token |= self.end_token(|held| tokens >> (held & 31) & 1 != 0, writes);
        }
        (in_order, by_token)
    }

    fn end_token(&mut self, held: impl Fn(u8) -> bool, writes: bool) -> bool {
        let mut ended = false;
        for item in &mut self.unordered {
            if item.token.is_some_and(&held) {
                ended |= item.reads || (writes && item.writes);
                item.reads = false;
                item.writes &= !writes;
            }
        }
        self.unordered.retain(|item| item.reads || item.writes);
        ended
    }

    /// Begins an instruction.
    fn begin(&mut self, number: u32, step: &Step, issue: &Issue) {
        if issue.unordered {
            let token = issue.token.filter(|(_, mode)| *mode == TokenMode::Set).map(|(token, _)| token);
            // What writes nothing ends as well.
            let item = Unordered { step: number, token, reads: !step.access.reads.is_empty(), writes: true };
            match self.unordered.binary_search_by_key(&number, |have| have.step) {
                Ok(at) => self.unordered[at] = item,
                Err(at) => self.unordered.insert(at, item),
            }
            return;
        }
        let Some(pipe) = issue.pipe else { return };
        self.ordered.retain_mut(|item| {
            item.distance += u8::from(item.pipe == pipe);
            item.distance <= item.pipe.depth() && item.step != number
        });
        let at = self.ordered.partition_point(|have| have.step < number);
        self.ordered.insert(at, Ordered { step: number, pipe, distance: 1 });
    }

    /// Whether it is too much to follow; then it is cut.
    fn cut(&mut self) -> bool {
        let cut = self.ordered.len() > MOST_PENDING || self.unordered.len() > MOST_PENDING;
        self.ordered.truncate(MOST_PENDING);
        self.unordered.truncate(MOST_PENDING);
        cut
    }
}

/// The walk over a program.
pub(super) struct Scoreboard<'a> {
    program: &'a Program,
    issues: Vec<Issue>,
    single_pipe: bool,
}

impl<'a> Scoreboard<'a> {
    pub fn new(program: &'a Program) -> Self {
        let issue = |step: &Step| step.operation.as_ref().filter(|_| step.reached).map(issue_of);
        let issues = program.steps.iter().map(|step| issue(step).unwrap_or_default()).collect();
        let generation = program.steps.iter().find_map(|step| Some(step.operation?.generation));
        Self { program, issues, single_pipe: generation == Some(Generation::Gen12) }
    }

    /// What is missing, wrong or too much. False if not all was followed.
    pub fn check(&self, findings: &mut Vec<CheckFinding>) -> bool {
        let blocks = &self.program.blocks;
        let mut states: Vec<Option<Pending>> = vec![None; blocks.len()];
        let Some(first) = states.first_mut() else { return true };
        *first = Some(Pending::default());
        let (mut work, mut queued) = (std::collections::VecDeque::from([0]), vec![false; blocks.len()]);
        let mut budget = VISITS * self.program.steps.len() + 1024;
        let mut complete = true;
        while let Some(number) = work.pop_front() {
            queued[number] = false;
            let Some(mut state) = states[number].clone() else { continue };
            let block = &blocks[number];
            let cost = block.end - block.first;
            if budget < cost {
                complete = false;
                break;
            }
            budget -= cost;
            complete &= !self.pass(block, &mut state, None);
            for next in block.next.iter().copied() {
                let changed = match &mut states[next] {
                    Some(known) => known.merge(&state),
                    none => {
                        *none = Some(state.clone());
                        true
                    }
                };
                if changed && !std::mem::replace(&mut queued[next], true) {
                    work.push_back(next);
                }
            }
        }
        for (block, state) in blocks.iter().zip(states) {
            if let Some(mut state) = state {
                complete &= !self.pass(block, &mut state, Some(findings));
            }
        }
        complete
    }

    /// Goes through a block. True if something was cut.
    fn pass(&self, block: &Block, state: &mut Pending, mut findings: Option<&mut Vec<CheckFinding>>) -> bool {
        let mut cut = state.cut();
        for number in block.first..block.end {
            let (step, issue) = (&self.program.steps[number], &self.issues[number]);
            let sets = issue.unordered && issue.token.is_some_and(|(_, mode)| mode == TokenMode::Set);
            let (in_order, by_token) = state.wait(issue);
            let spare = (issue.distance != 0 && !in_order)
                || (issue.token.is_some() && !sets && !by_token)
                || (issue.synced.is_some() && !by_token);
            if spare && let Some(findings) = findings.as_deref_mut() {
                findings.push(CheckFinding::at(Rule::RedundantWait, step.offset));
            }
            self.hazards(step, issue, state, findings.as_deref_mut());
            state.begin(number as u32, step, issue);
            cut |= state.cut();
        }
        cut
    }

    /// What an instruction touches too early. Each is said once: from there on it counts as waited for.
    fn hazards(
        &self,
        step: &Step,
        issue: &Issue,
        state: &mut Pending,
        mut findings: Option<&mut Vec<CheckFinding>>,
    ) {
        let access = &step.access;
        if access.reads.is_empty() && access.writes.is_empty() {
            return;
        }
        let mut tell = |finding: CheckFinding| {
            if let Some(findings) = findings.as_deref_mut() {
                findings.push(CheckFinding { at: step.offset as u32, ..finding });
            }
        };
        state.ordered.retain(|item| {
            let first = &self.program.steps[item.step as usize];
            let Some((rule, level, registers)) = self.ordered_hazard(step, issue, item, first) else {
                return true;
            };
            let pipe = if self.single_pipe { "" } else { item.pipe.letter() };
            let need = WaitNeed::Distance(pipe, item.distance.min(MOST_DISTANCE));
            tell(CheckFinding { level, ..found(rule, first, registers, Some(need)) });
            false
        });
        for item in &mut state.unordered {
            let first = &self.program.steps[item.step as usize];
            let Some((rule, registers)) = unordered_hazard(step, item, first) else { continue };
            match item.token {
                None => tell(found(Rule::TokenMissing, first, registers, None)),
                Some(token) => {
                    let need = WaitNeed::Token(token, rule == Rule::TokenSource);
                    tell(found(rule, first, registers, Some(need)));
                }
            }
            item.reads = false;
            item.writes &= rule == Rule::TokenSource;
        }
        state.unordered.retain(|item| item.reads || item.writes);
    }

    fn ordered_hazard(
        &self,
        step: &Step,
        issue: &Issue,
        item: &Ordered,
        first: &Step,
    ) -> Option<(Rule, Level, (u16, u16))> {
        let (now, then) = (&step.access, &first.access);
        let of = |rule: Rule, registers| Some((rule, rule.info().level, registers));
        if let Some(registers) = now.reads.shared(&then.writes) {
            return of(Rule::DistanceRead, registers);
        }
        let same_pipe = issue.pipe == Some(item.pipe);
        if let Some(registers) = now.writes.shared(&then.writes) {
            let rule = if same_pipe { Rule::DistanceWrite } else { Rule::DistanceOverwrite };
            return of(rule, registers);
        }
        if same_pipe {
            return None;
        }
        let registers = now.writes.shared(&then.reads)?;
        // A message answers long after the sources were read.
        let level = if issue.unordered { Level::Warning } else { Level::Error };
        Some((Rule::DistanceSource, level, registers))
    }
}

fn found(rule: Rule, first: &Step, registers: (u16, u16), need: Option<WaitNeed>) -> CheckFinding {
    let first = Some(first.offset as u32);
    CheckFinding { first, registers: Some(registers), need, ..CheckFinding::at(rule, 0) }
}

fn unordered_hazard(step: &Step, item: &Unordered, first: &Step) -> Option<(Rule, (u16, u16))> {
    let (now, then) = (&step.access, &first.access);
    let shared = |a: &Touches, b: &Touches, rule| a.shared(b).map(|registers| (rule, registers));
    if item.writes {
        let read = shared(&now.reads, &then.writes, Rule::TokenRead);
        if let Some(hazard) = read.or_else(|| shared(&now.writes, &then.writes, Rule::TokenOverwrite)) {
            return Some(hazard);
        }
    }
    if item.reads { shared(&now.writes, &then.reads, Rule::TokenSource) } else { None }
}

/// Types that it computes with, in sources and destination.
fn kinds(op: &Operation) -> impl Iterator<Item = Type> {
    op.destination.iter().chain(op.sources()).filter_map(|operand| operand.kind)
}

/// Whether it ends out of order, and so needs a token.
fn is_unordered(op: &Operation) -> bool {
    op.is_send()
        || op.opcode == Opcode::Dpas
        || (op.opcode == Opcode::Math && op.generation < Generation::Xe2)
        || (op.inst.platform.row().math_doubles && kinds(op).any(|kind| kind == Type::DF))
}

/// The pipe that an in-order instruction runs in.
fn pipe_of(op: &Operation) -> Pipe {
    if op.generation < Generation::Gen125 {
        return Pipe::Float;
    }
    if op.opcode == Opcode::Math {
        return Pipe::Math;
    }
    let Some(destination) = &op.destination else { return Pipe::Integer };
    let wide = if op.generation >= Generation::Xe2 {
        destination.bytes() == 8 && destination.is_float()
    } else {
        let factors = match op.opcode {
            Opcode::Mul => Some((0, 1)),
            Opcode::Mad => Some((1, 2)),
            _ => None,
        };
        let dwords = factors.is_some_and(|(a, b)| {
            let dword = |index: usize| op.source(index).is_integer() && op.source(index).bytes() >= 4;
            dword(a) && dword(b)
        });
        kinds(op).any(|kind| kind.bytes() == 8) || dwords
    };
    if wide {
        Pipe::Long
    } else if destination.is_float() {
        Pipe::Float
    } else {
        Pipe::Integer
    }
}

const ALL_PIPES: u8 = 0xf;

/// The pipes that a wait counts in.
fn waited_pipes(op: &Operation, letter: &str) -> u8 {
    if op.generation < Generation::Gen125 {
        return Pipe::Float.bit();
    }
    if let Some(pipe) = PIPES.iter().find(|pipe| pipe.letter() == letter) {
        return pipe.bit();
    }
    let inferred =
        letter.is_empty() && !op.is_send() && op.opcode != Opcode::Sync && !op.sources().is_empty();
    if !inferred {
        return ALL_PIPES;
    }
    let wide = op.sources().iter().any(|source| source.bytes() == 8);
    if wide {
        let has_pipe = !op.inst.platform.row().math_doubles;
        return if has_pipe { Pipe::Long.bit() } else { ALL_PIPES };
    }
    if op.sources().iter().any(|source| !source.is_float()) { Pipe::Integer.bit() } else { Pipe::Float.bit() }
}

fn issue_of(op: &Operation) -> Issue {
    const ALL_READ: u64 = 2;
    const ALL_WRITTEN: u64 = 3;
    if op.generation < Generation::Gen12 {
        return Issue::default();
    }
    let mut issue = Issue { unordered: is_unordered(op), ..Issue::default() };
    if let Some(swsb) = op.inst.swsb() {
        issue.distance = swsb.distance;
        issue.pipes = waited_pipes(op, swsb.pipe);
        issue.token = swsb.token;
    }
    if op.opcode == Opcode::Sync {
        let function = op.inst.get(F::ConditionModifier);
        if matches!(function, ALL_READ | ALL_WRITTEN) {
            let source = op.source(0);
            let tokens = match source.file {
                File::Immediate => op.inst.get(F::DwordImmediate) as u32,
                _ => u32::MAX,
            };
            issue.synced = Some((tokens, function == ALL_WRITTEN));
        }
    } else if !issue.unordered {
        issue.pipe = Some(pipe_of(op));
    }
    issue
}
