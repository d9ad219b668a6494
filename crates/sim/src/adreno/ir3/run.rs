//! A grid of workgroups over memory.

use super::dispatch::{Dispatch, Options};
use super::fault::Fault;
use super::group::Machine;
use super::program::ShaderProgram;
use crate::memory::{GroupView, SimMemory};
use crate::run::{GroupRun, at_once, one_by_one};
use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// What came of all workgroups so far.
#[derive(Default)]
struct Total {
    stats: Stats,
    fault: Option<Fault>,
}

impl Total {
    fn take(&mut self, group: GroupOutcome) {
        self.stats.steps += group.steps;
        self.stats.lane_steps += group.lane_steps;
        self.fault = self.fault.take().or(group.fault);
    }
}

/// Runs a grid: the preamble once, then workgroup after workgroup, in order.
///
/// # Errors
///
/// The first [`Fault`]. What was executed before it is in memory.
pub fn run(
    program: &ShaderProgram,
    dispatch: &Dispatch,
    memory: &mut SimMemory,
    options: &Options,
) -> Result<Stats, Fault> {
    let mut constants = dispatch.state.constants.clone();
    constants.resize(CONSTANTS, 0);
    let mut total = Total::default();
    let count = dispatch.groups.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
    // What all groups have executed so far.
    let used = AtomicU64::new(0);
    let left = || Options { steps: options.steps.saturating_sub(used.load(Ordering::Relaxed)), ..*options };
    if program.has_preamble() && count > 0 {
        let mut written = Vec::new();
        let run = |view: GroupView<'_>, number: u32| {
            let machine = Machine::new(program, dispatch, &left(), view, Cow::Borrowed(&constants), number);
            let (done, machine) = machine.preamble();
            used.fetch_add(machine.steps, Ordering::Relaxed);
            let fault = done.map(|constants| written = constants).err();
            outcome(machine, fault)
        };
        one_by_one(memory, 1, run, |group| total.take(group));
        constants = written;
    }
    if total.fault.is_none() {
        let run = |view: GroupView<'_>, number: u32| {
            let mut machine =
                Machine::new(program, dispatch, &left(), view, Cow::Borrowed(&constants), number);
            let fault = machine.run().err();
            used.fetch_add(machine.steps, Ordering::Relaxed);
            outcome(machine, fault)
        };
        let threads = options.threads.clamp(1, 256);
        let groups = if threads > 1 {
            at_once(memory, count, threads, run, |group| total.take(group))
        } else {
            one_by_one(memory, count, run, |group| total.take(group))
        };
        total.stats.groups = groups;
    }
    match total.fault {
        Some(fault) => Err(fault),
        None => Ok(total.stats),
    }
}
