//! Missing and redundant flags and nops, over the graph.
//!
//! What is pending is followed until nothing changes; then each block is gone through once more for findings. After a finding what is
//! missing counts as there, so that it is reported once.

use super::CheckFinding;
use super::access::Touch;
use super::facts::{GpuFacts, ResultSync, Rule};
use super::finding::{Register, WaitNeed};
use super::nops::NopUse;
use super::pending::{AluResult, By, Entry, NOBODY, Pending};
use super::program::{FlowBlock, FlowStep, LateRead, ShaderFlow};
use std::collections::VecDeque;
use unwedge_isa::ir3::Opcode;

/// Visits of a block on average, at most.
const VISITS: usize = 64;
/// Entries of all blocks, at most.
const MOST_ENTRIES: usize = 1 << 20;

pub(super) struct SyncCheck<'p> {
    program: &'p ShaderFlow,
    facts: GpuFacts,
}

/// What was found in a block, and its nops.
struct Findings {
    list: Vec<CheckFinding>,
    nops: NopUse,
}

impl Findings {
    /// Adds one, unless the block has one of the same rule about the same instruction.
    fn add(&mut self, finding: CheckFinding) {
        let same = |f: &CheckFinding| f.rule == finding.rule && f.first == finding.first && f.first.is_some();
        if !self.list.iter().any(same) {
            self.list.push(finding);
        }
    }
}

fn found(rule: Rule, at: usize, by: By, register: Option<Register>, need: WaitNeed) -> CheckFinding {
    CheckFinding { first: Some(by), register, need: Some(need), ..CheckFinding::at(rule, at) }
}

impl<'p> SyncCheck<'p> {
    pub(super) fn new(program: &'p ShaderFlow, facts: GpuFacts) -> SyncCheck<'p> {
        SyncCheck { program, facts }
    }

    /// What is missing or too much. False if not all was followed.
    pub(super) fn check(&self, findings: &mut Vec<CheckFinding>) -> bool {
        let blocks = &self.program.blocks;
        let mut entries: Vec<Option<Entry>> = vec![None; blocks.len()];
        let Some(first) = entries.first_mut() else { return true };
        *first = Some(Entry::start());
        let (mut work, mut queued) = (VecDeque::from([0]), vec![false; blocks.len()]);
        let mut budget = VISITS * self.program.steps.len() + 1024;
        let (mut complete, mut stored) = (true, 0);
        while let Some(number) = work.pop_front() {
            queued[number] = false;
            let Some(entry) = &entries[number] else { continue };
            let mut state = Pending::of(entry);
            let block = &blocks[number];
            let cost = block.end - block.first;
            if budget < cost || stored > MOST_ENTRIES {
                complete = false;
                break;
            }
            budget -= cost;
            self.pass(block, &mut state, None);
            let physical = block.physical.iter().map(|&next| (next, false));
            for (next, everything) in block.next.iter().map(|&next| (next, true)).chain(physical) {
                let is_new = entries[next].is_none();
                // Where only other fibers go on, nothing is known unless a path leads there.
                let known = entries[next].get_or_insert_with(Entry::empty);
                let before = known.len();
                let changed = known.join(&state, everything) || is_new;
                stored += known.len() - before;
                if changed && !std::mem::replace(&mut queued[next], true) {
                    work.push_back(next);
                }
            }
        }
        for (block, entry) in blocks.iter().zip(entries) {
            let Some(entry) = entry else { continue };
            let mut of_block = Findings { list: Vec::new(), nops: NopUse::default() };
            let mut state = Pending::of(&entry);
            self.pass(block, &mut state, Some(&mut of_block));
            findings.append(&mut of_block.list);
            if complete {
                of_block.nops.report(&state, block, self.program, findings);
            }
        }
        if !complete {
            findings.retain(|f| !matches!(f.rule, Rule::RedundantSs | Rule::RedundantSy));
        }
        complete
    }

    fn pass(&self, block: &FlowBlock, state: &mut Pending, mut findings: Option<&mut Findings>) {
        for at in block.first..block.end {
            let Some(step) = &self.program.steps[at] else { continue };
            let flags = step.instruction.flags;
            let spare_ss = flags.ss && !state.wait_ss();
            let spare_sy = flags.sy && !state.wait_sy();
            if let Some(findings) = findings.as_deref_mut() {
                findings.nops.begin(at, step);
                // Where a preamble ends both flags are the rule.
                let ends = matches!(step.instruction.opcode, Opcode::Shpe | Opcode::End);
                if spare_ss && !ends {
                    findings.list.push(CheckFinding::at(Rule::RedundantSs, at));
                }
                if spare_sy && !ends {
                    findings.list.push(CheckFinding::at(Rule::RedundantSy, at));
                }
            }
            self.common(at, step, state, findings.as_deref_mut());
            for touch in &step.access.reads {
                self.read(at, step, touch, state, findings.as_deref_mut());
            }
            for touch in &step.access.writes {
                self.write(at, step, touch, state, findings.as_deref_mut());
            }
            self.begin(at as By, step, state);
        }
    }

    /// Constants and barriers.
    fn common(&self, at: usize, step: &FlowStep, state: &mut Pending, findings: Option<&mut Findings>) {
        let opcode = step.instruction.opcode;
        let common = &mut state.common;
        let mut missing = Vec::new();
        let mut wait = |rule, by: &mut By, need| {
            let by = std::mem::replace(by, NOBODY);
            if by != NOBODY {
                missing.push(found(rule, at, by, None, need));
            }
        };
        let rule = match opcode {
            Opcode::Shpe => Some(Rule::PreambleEnd),
            _ if step.access.reads_constants => Some(Rule::ConstantRead),
            _ => None,
        };
        if let Some(rule) = rule {
            wait(rule, &mut common.constants_ss, WaitNeed::Ss);
            wait(rule, &mut common.constants_sy, WaitNeed::Sy);
        }
        if !matches!(opcode, Opcode::Nop | Opcode::End) && opcode.category() < 5 {
            wait(Rule::Barrier, &mut common.barrier, WaitNeed::SsOrSy);
        }
        if let Some(findings) = findings {
            missing.into_iter().for_each(|finding| findings.add(finding));
        }
    }

    fn read(
        &self,
        at: usize,
        step: &FlowStep,
        touch: &Touch,
        state: &mut Pending,
        mut findings: Option<&mut Findings>,
    ) {
        let cell = state.cell(touch.cell);
        let mut missing = Vec::new();
        let mut say = |rule, by, need| {
            if by != NOBODY {
                missing.push(found(rule, at, by, Some(touch.register), need));
            }
        };
        say(Rule::SsRead, cell.ss, WaitNeed::Ss);
        say(Rule::SyRead, cell.sy, WaitNeed::Sy);
        for (half, by) in [false, true].into_iter().zip(cell.scalar) {
            if !step.scalar || half != touch.half {
                say(Rule::SsRead, by, WaitNeed::Ss);
            }
        }
        for (half, result) in [false, true].into_iter().zip(&cell.alu) {
            if result.by == NOBODY {
                continue;
            }
            let ready = self.ready(step, touch, half, result);
            if let Some(findings) = findings.as_deref_mut() {
                findings.nops.read(result.by, ready);
            }
            if ready > 0 {
                say(Rule::Delay, result.by, WaitNeed::Nops(ready as u8));
            }
        }
        if !missing.is_empty() {
            state.change(touch.cell, |cell| {
                if missing.iter().any(|f| f.need == Some(WaitNeed::Ss)) {
                    cell.wait_ss();
                }
                if missing.iter().any(|f| f.need == Some(WaitNeed::Sy)) {
                    cell.wait_sy();
                }
                if missing.iter().any(|f| f.rule == Rule::Delay) {
                    cell.forget_delay();
                }
            });
        }
        if let Some(findings) = findings {
            missing.into_iter().for_each(|finding| findings.add(finding));
        }
    }

    /// Cycles until a source can be read, from now; not positive: it can.
    fn ready(&self, step: &FlowStep, touch: &Touch, half: bool, result: &AluResult) -> i8 {
        let alu = matches!(step.instruction.opcode.category(), 1..=3) && !step.scalar;
        if half != touch.half {
            return result.end.saturating_add(self.facts.other_delay as i8);
        }
        let delay = if alu && !matches!(touch.register, Register::Address(_) | Register::Predicate(_)) {
            self.facts.alu_delay - touch.late
        } else {
            self.facts.other_delay
        };
        result.after.saturating_add(delay as i8).saturating_sub(touch.time as i8)
    }

    fn write(
        &self,
        at: usize,
        step: &FlowStep,
        touch: &Touch,
        state: &mut Pending,
        findings: Option<&mut Findings>,
    ) {
        let cell = state.cell(touch.cell);
        let mut missing = Vec::new();
        let mut say = |rule, by, need| {
            if by != NOBODY {
                missing.push(found(rule, at, by, Some(touch.register), need));
            }
        };
        say(Rule::SsOverwrite, cell.ss, WaitNeed::Ss);
        // Loads and texture fetches of a wave write in order among themselves.
        if step.sync != ResultSync::Sy {
            say(Rule::SyOverwrite, cell.sy, WaitNeed::Sy);
        }
        say(Rule::SourceOverwrite, cell.read_until_ss, WaitNeed::Ss);
        if cell.sy == NOBODY {
            say(Rule::SourceOverwrite, cell.read_until_either, WaitNeed::SsOrSy);
        }
        if !step.scalar {
            say(Rule::SourceOverwrite, cell.read_by_scalar, WaitNeed::Ss);
        }
        if let Some(findings) = findings {
            missing.into_iter().for_each(|finding| findings.add(finding));
        }
    }

    /// What becomes pending.
    fn begin(&self, at: By, step: &FlowStep, state: &mut Pending) {
        if let Some(until) = step.reads_late() {
            for touch in &step.access.reads {
                state.change(touch.cell, |cell| match until {
                    LateRead::UntilSs => cell.read_until_ss = cell.read_until_ss.min(at),
                    LateRead::UntilEither => cell.read_until_either = cell.read_until_either.min(at),
                });
            }
        } else if step.scalar {
            for touch in &step.access.reads {
                state.change(touch.cell, |cell| cell.read_by_scalar = cell.read_by_scalar.min(at));
            }
        }
        // In an early preamble `a1.x` comes from the scalar unit; the flag on its source says so.
        let early_address =
            step.instruction.is_mova() && step.instruction.srcs.iter().any(|source| source.step);
        for touch in &step.access.writes {
            let end = (step.instruction.repeat + 1).max(touch.time + 1) as i8;
            let result = AluResult { after: touch.time as i8 + 1, end, by: at };
            state.change(touch.cell, |cell| {
                let reads = *cell;
                *cell = super::pending::IDLE;
                match step.sync {
                    _ if early_address => cell.ss = at,
                    ResultSync::Delay => cell.alu[usize::from(touch.half)] = result,
                    ResultSync::Ss => cell.ss = at,
                    ResultSync::Sy => cell.sy = at,
                    ResultSync::Scalar => cell.scalar[usize::from(touch.half)] = at,
                }
                // Of its own sources.
                if step.reads_late().is_some() && step.access.reads.iter().any(|read| read.cell == touch.cell)
                {
                    cell.read_until_ss = reads.read_until_ss;
                    cell.read_until_either = reads.read_until_either;
                }
            });
        }
        match step.writes_constants() {
            Some(ResultSync::Ss) => state.common.constants_ss = state.common.constants_ss.min(at),
            Some(_) => state.common.constants_sy = state.common.constants_sy.min(at),
            None => {}
        }
        if step.is_barrier() {
            state.common.barrier = state.common.barrier.min(at);
            state.common.other_ss = true;
            state.common.other_sy = true;
        }
        let opcode = step.instruction.opcode;
        let unseen = matches!(opcode, Opcode::Predt | Opcode::Predf | Opcode::ResinfoB | Opcode::Resinfo)
            || matches!(opcode.category(), 1..=3) && step.sync == ResultSync::Ss;
        state.common.other_ss |= unseen;
        state.pass(step.cycles);
    }
}
