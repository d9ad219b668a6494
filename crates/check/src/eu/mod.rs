//! Checks code of Intel's EUs, gen8 to Xe2, whoever compiled it.
//!
//! [`check_instruction`] holds one instruction to the restrictions of its generation. [`check`] reads a program as a graph,
//! does that for all that is reached, and follows over the graph what the scoreboard has pending and what has been written.
//! Paths are not pruned by conditions. Rules are in [`facts`]. Never: runs code, rewrites it, guesses what registers hold.

mod access;
pub mod facts;
mod finding;
mod inputs;
mod messages;
mod operands;
mod program;
mod restrictions;
mod scoreboard;

pub use crate::Level;
pub use facts::Rule;
pub use finding::{CheckFinding, CheckReport, WaitNeed};

use program::Program;
use unwedge_isa::eu::{Instruction, Platform};

/// What is known of code beyond its bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// It is a whole program, also where no message ends the thread. Otherwise such code is taken for a part of one, and
    /// what depends on the rest is a note.
    pub whole: bool,
    /// General registers that the thread starts with, from g0 on; `None` where that is not known.
    pub inputs: Option<u16>,
}

/// The restrictions that one instruction breaks, in the order of the table. None are known of Xe3.
#[must_use]
pub fn check_instruction(inst: &Instruction) -> Vec<Rule> {
    let mut broken = restrictions::check(inst);
    broken.retain(|rule| rule.info().holds(inst.platform));
    broken
}

/// Checks a program that starts at the first byte.
#[must_use]
pub fn check(platform: Platform, bytes: &[u8], options: CheckOptions) -> CheckReport {
    let program = Program::read(platform, bytes);
    let whole = options.whole || program.ends;
    let mut findings = Vec::new();
    for step in program.steps.iter().filter(|step| step.reached) {
        let Some(operation) = &step.operation else { continue };
        let broken = check_instruction(&operation.inst);
        findings.extend(broken.into_iter().map(|rule| CheckFinding::at(rule, step.offset)));
    }
    let mut over_paths = Vec::new();
    shape(&program, whole, &mut over_paths);
    let complete = scoreboard::Scoreboard::new(&program).check(&mut over_paths);
    if whole {
        inputs::check(&program, options.inputs, &mut over_paths);
    } else {
        // What goes before and after is not known.
        over_paths.retain(|f| f.rule != Rule::RedundantWait);
        for finding in &mut over_paths {
            if finding.rule != Rule::NotInstruction {
                finding.level = Level::Note;
            }
        }
    }
    findings.append(&mut over_paths);
    findings.sort_by_key(|f| (f.at, f.rule, f.first));
    findings.dedup_by(|a, b| (a.at, a.rule, a.first) == (b.at, b.rule, b.first));
    let instructions = program.steps.iter().filter(|step| step.reached && step.operation.is_some()).count();
    CheckReport { findings, instructions, complete, whole }
}

/// What is wrong with branches, ends and lengths.
fn shape(program: &Program, whole: bool, findings: &mut Vec<CheckFinding>) {
    let problems = program.problems.iter().filter(|(rule, _)| whole || *rule != Rule::RunsOff);
    findings.extend(problems.map(|(rule, place)| CheckFinding::at(*rule, *place)));
    findings.extend(program.endless().into_iter().map(|place| CheckFinding::at(Rule::Endless, place)));
    if !whole && !program.steps.is_empty() {
        findings.push(CheckFinding::at(Rule::NoEnd, program.length));
    }
    let mut reached = true;
    for step in &program.steps {
        // Nothing but zeros and the like follows a program's end: one note for a run of them.
        if reached && !step.reached {
            findings.push(CheckFinding::at(Rule::NotReached, step.offset));
        }
        reached = step.reached;
        if step.access.beyond {
            findings.push(CheckFinding::at(Rule::MessageLength, step.offset));
        }
        if step.reached && step.operation.as_ref().is_some_and(messages::differ_in_length) {
            findings.push(CheckFinding::at(Rule::MessageSize, step.offset));
        }
    }
}
