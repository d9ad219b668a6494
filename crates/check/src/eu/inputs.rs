//! Registers that are read and that nothing has written on any path.
//!
//! A thread starts with registers that hold its payload. Never: says how many it should have.

use super::CheckFinding;
use super::access::{ADDRESS, RegisterSet};
use super::facts::Rule;
use super::program::Program;

/// As many registers as a payload and pushed constants are taken to have where that is not known.
const LIKELY_INPUTS: u16 = 64;

fn join(into: &mut RegisterSet, from: &RegisterSet) -> bool {
    let before = *into;
    into.iter_mut().zip(from).for_each(|(a, b)| *a |= b);
    *into != before
}

/// Follows what may have been written until nothing changes: each block is visited at most once for each register.
pub(super) fn check(program: &Program, inputs: Option<u16>, findings: &mut Vec<CheckFinding>) {
    // Indirect writes go where it is not known.
    let indirect = |step: &super::program::Step| {
        step.operation.is_some_and(|op| op.destination.is_some_and(|d| d.indirect))
    };
    if program.steps.iter().any(|step| step.reached && indirect(step)) {
        return;
    }
    let mut written: Vec<Option<RegisterSet>> = vec![None; program.blocks.len()];
    let Some(first) = written.first_mut() else { return };
    *first = Some(RegisterSet::default());
    let mut work = vec![0];
    while let Some(number) = work.pop() {
        let Some(mut set) = written[number] else { continue };
        let block = &program.blocks[number];
        for step in &program.steps[block.first..block.end] {
            join(&mut set, &step.access.writes.set);
        }
        for next in block.next.iter().copied() {
            let changed = match &mut written[next] {
                Some(known) => join(known, &set),
                none => {
                    *none = Some(set);
                    true
                }
            };
            if changed {
                work.push(next);
            }
        }
    }
    let inputs = inputs.unwrap_or(LIKELY_INPUTS);
    for (block, set) in program.blocks.iter().zip(written) {
        let Some(mut set) = set else { continue };
        for step in &program.steps[block.first..block.end] {
            let read = &step.access.reads.set;
            let absent = |register: &u16| {
                let (word, bit) = (usize::from(register / 64), register % 64);
                (read[word] & !set[word]) >> bit & 1 != 0
            };
            let mut registers = (inputs..ADDRESS).filter(absent);
            if let Some(first) = registers.next() {
                let count = 1 + registers.zip(first + 1..).take_while(|(have, want)| have == want).count();
                let registers = Some((first, count as u16));
                findings.push(CheckFinding { registers, ..CheckFinding::at(Rule::NotWritten, step.offset) });
            }
            join(&mut set, &step.access.writes.set);
        }
    }
}
