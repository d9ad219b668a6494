//! A grid of workgroups over memory.

use super::dispatch::{Dispatch, Options};
use super::fault::Fault;
use super::group::Machine;
use super::program::Program;
use crate::memory::{GroupView, SimMemory};
use crate::run::{GroupRun, at_once, one_by_one};
use std::borrow::Cow;

/// Components of the constant file.
const CONSTANTS: usize = 512 * 4;

/// What was executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    /// Instructions of waves.
    pub steps: u64,
    /// Fibers that executed in them, once for each repetition.
    pub lane_steps: u64,
    /// Workgroups that ran to their end.
    pub groups: u32,
}

/// What came of a workgroup.
struct GroupOutcome {
    steps: u64,
    lane_steps: u64,
    fault: Option<Fault>,
}

fn outcome(machine: Machine<'_>, fault: Option<Fault>) -> GroupRun<GroupOutcome> {
    let complete = fault.is_none();
    let result = GroupOutcome { steps: machine.steps, lane_steps: machine.lane_steps, fault };
    GroupRun { written: machine.view.written(), complete, result }
}

/// Runs a grid: the preamble once, then workgroup after workgroup, in order.
///
/// # Errors
///
/// The first [`Fault`]. What was executed before it is in memory.
pub fn run(
    program: &Program,
    dispatch: &Dispatch,
    memory: &mut SimMemory,
    options: &Options,
) -> Result<Stats, Fault> {
    let mut constants = dispatch.state.constants.clone();
    constants.resize(CONSTANTS, 0);
    let mut stats = Stats::default();
    let mut fault = None;
    let mut take = |group: GroupOutcome| {
        stats.steps += group.steps;
        stats.lane_steps += group.lane_steps;
        fault = fault.take().or(group.fault);
    };
    let count = dispatch.groups.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
    if program.has_preamble() && count > 0 {
        let mut written = Vec::new();
        let run = |view: GroupView<'_>, number: u32| {
            let machine = Machine::new(program, dispatch, options, view, Cow::Borrowed(&constants), number);
            match machine.preamble() {
                (Ok(constants), machine) => {
                    written = constants;
                    outcome(machine, None)
                }
                (Err(fault), machine) => outcome(machine, Some(fault)),
            }
        };
        one_by_one(memory, 1, run, &mut take);
        constants = written;
    }
    if fault.is_none() {
        let mut take = |group: GroupOutcome| {
            stats.steps += group.steps;
            stats.lane_steps += group.lane_steps;
            fault = fault.take().or(group.fault);
        };
        let left = options.steps;
        let run = |view: GroupView<'_>, number: u32| {
            let options = Options { steps: left, ..*options };
            let mut machine =
                Machine::new(program, dispatch, &options, view, Cow::Borrowed(&constants), number);
            let fault = machine.run().err();
            outcome(machine, fault)
        };
        let threads = options.threads.clamp(1, 256);
        stats.groups = if threads > 1 {
            at_once(memory, count, threads, run, &mut take)
        } else {
            one_by_one(memory, count, run, &mut take)
        };
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(stats),
    }
}
