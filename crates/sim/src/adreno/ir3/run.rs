//! A grid of workgroups over memory.

use super::dispatch::{Dispatch, Options};
use super::fault::{Fault, FaultKind};
use super::group::{MOST_PAGES_AHEAD, Machine};
use super::program::ShaderProgram;
use crate::memory::{GroupView, SimMemory};
use crate::run::{GroupRun, Turn, at_once, one_by_one};
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

/// How many instructions all groups may execute, and how many they have.
struct Steps {
    limit: u64,
    /// Those of the groups that were taken.
    taken: AtomicU64,
    /// Those of groups that ran ahead, too.
    executed: AtomicU64,
}

impl Steps {
    /// What a group may execute now. Ahead of others it is a guess: less than that when others go on without end.
    fn left(&self, turn: Turn) -> u64 {
        let used = match turn {
            Turn::Ahead => &self.executed,
            Turn::InOrder => &self.taken,
        };
        self.limit.saturating_sub(used.load(Ordering::Relaxed))
    }

    /// Whether a group that ran ahead did what it would have done in order.
    fn hold(&self, group: &GroupOutcome) -> bool {
        let limits = [FaultKind::Steps, FaultKind::TooManyPages];
        let stopped = group.fault.as_ref().is_some_and(|fault| limits.contains(&fault.kind));
        !stopped && group.steps <= self.left(Turn::InOrder)
    }
}

impl Total {
    fn take(&mut self, group: GroupOutcome, steps: &Steps) {
        steps.taken.fetch_add(group.steps, Ordering::Relaxed);
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
    let steps = Steps { limit: options.steps, taken: AtomicU64::new(0), executed: AtomicU64::new(0) };
    if program.has_preamble() && count > 0 {
        let mut written = Vec::new();
        let run = |view: GroupView<'_>, number: u32| {
            let options = Options { steps: steps.left(Turn::InOrder), ..*options };
            let machine = Machine::new(program, dispatch, &options, view, Cow::Borrowed(&constants), number);
            let (done, machine) = machine.preamble();
            let fault = done.map(|constants| written = constants).err();
            outcome(machine, fault)
        };
        one_by_one(memory, 1, run, |group| total.take(group, &steps));
        constants = written;
    }
    if total.fault.is_none() {
        let run = |view: GroupView<'_>, number: u32, turn: Turn| {
            let options = Options { steps: steps.left(turn), ..*options };
            let machine = Machine::new(program, dispatch, &options, view, Cow::Borrowed(&constants), number);
            let mut machine = match turn {
                Turn::Ahead => machine.with_pages(MOST_PAGES_AHEAD),
                Turn::InOrder => machine,
            };
            let fault = machine.run().err();
            steps.executed.fetch_add(machine.steps, Ordering::Relaxed);
            outcome(machine, fault)
        };
        let threads = options.threads.clamp(1, 256);
        let groups = if threads > 1 && count > 1 {
            let holds = |group: &GroupOutcome| steps.hold(group);
            at_once(memory, count, threads, run, holds, |group| total.take(group, &steps))
        } else {
            let in_order = |view: GroupView<'_>, number: u32| run(view, number, Turn::InOrder);
            one_by_one(memory, count, in_order, |group| total.take(group, &steps))
        };
        total.stats.groups = groups;
    }
    match total.fault {
        Some(fault) => Err(fault),
        None => Ok(total.stats),
    }
}
