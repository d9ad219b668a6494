//! Groups of waves over memory: a grid of workgroups, or the batches of a stage of draws.

use super::dispatch::{Dispatch, Options};
use super::fault::{Fault, FaultKind};
use super::grid::{Grid, GridEnd};
use super::group::{MOST_PAGES_AHEAD, Machine};
use super::program::ShaderProgram;
use crate::memory::{GroupView, SimMemory};
use crate::run::{GroupRun, Turn, at_once, one_by_one};
use std::borrow::Cow;
use std::ops::Range;
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

/// What came of a group.
struct GroupOutcome<R> {
    steps: u64,
    lane_steps: u64,
    result: Result<R, Fault>,
}

fn outcome<R>(machine: Machine<'_>, result: Result<R, Fault>) -> GroupRun<GroupOutcome<R>> {
    let complete = result.is_ok();
    let result = GroupOutcome { steps: machine.steps, lane_steps: machine.lane_steps, result };
    GroupRun { written: machine.view.written(), complete, result }
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
    fn hold<R>(&self, group: &GroupOutcome<R>) -> bool {
        let limits = [FaultKind::Steps, FaultKind::TooManyPages];
        let stopped = group.result.as_ref().is_err_and(|fault| limits.contains(&fault.kind));
        !stopped && group.steps <= self.left(Turn::InOrder)
    }
}

/// Groups of one program, and what came of them so far.
pub(super) struct Groups<'r> {
    program: &'r ShaderProgram,
    dispatch: &'r Dispatch,
    options: &'r Options,
    steps: Steps,
    stats: Stats,
    fault: Option<Fault>,
}

impl<'r> Groups<'r> {
    pub(super) fn new(
        program: &'r ShaderProgram,
        dispatch: &'r Dispatch,
        options: &'r Options,
    ) -> Groups<'r> {
        let steps = Steps { limit: options.steps, taken: AtomicU64::new(0), executed: AtomicU64::new(0) };
        Groups { program, dispatch, options, steps, stats: Stats::default(), fault: None }
    }

    /// Runs the part of the program that runs once: the constants it leaves.
    pub(super) fn preamble(&mut self, memory: &mut SimMemory) -> Vec<u32> {
        let mut constants = self.dispatch.state.constants.clone();
        constants.resize(CONSTANTS, 0);
        if !self.program.has_preamble() {
            return constants;
        }
        let mut written = Vec::new();
        let Groups { program, dispatch, options, steps, stats, fault } = self;
        let run = |view: GroupView<'_>, number: u32| {
            let options = Options { steps: steps.left(Turn::InOrder), ..**options };
            let machine = Machine::new(program, dispatch, &options, view, Cow::Borrowed(&constants), number);
            let (done, machine) = machine.preamble();
            outcome(machine, done)
        };
        one_by_one(memory, 1, run, |group| written = take(group, steps, stats, fault).unwrap_or_default());
        written
    }

    /// Runs groups, and hands on in order what came of those that ran to their end.
    pub(super) fn run<R: Send>(
        &mut self,
        memory: &mut SimMemory,
        numbers: Range<u32>,
        constants: &[u32],
        work: impl Fn(&mut Machine<'_>, u32) -> Result<R, Fault> + Sync,
        mut done: impl FnMut(R),
    ) {
        if self.fault.is_some() {
            return;
        }
        let Groups { program, dispatch, options, steps, stats, fault } = self;
        let Range { start, end } = numbers;
        let count = end.saturating_sub(start);
        let run = |view: GroupView<'_>, number: u32, turn: Turn| {
            let number = start + number;
            let options = Options { steps: steps.left(turn), ..**options };
            let machine = Machine::new(program, dispatch, &options, view, Cow::Borrowed(constants), number);
            let mut machine = match turn {
                Turn::Ahead => machine.with_pages(MOST_PAGES_AHEAD),
                Turn::InOrder => machine,
            };
            let result = work(&mut machine, number);
            steps.executed.fetch_add(machine.steps, Ordering::Relaxed);
            outcome(machine, result)
        };
        let threads = options.threads.clamp(1, 256);
        let mut take = |group| {
            if let Some(result) = take(group, steps, stats, fault) {
                done(result);
            }
        };
        let groups = if threads > 1 && count > 1 {
            at_once(memory, count, threads, run, |group| steps.hold(group), take)
        } else {
            let in_order = |view: GroupView<'_>, number: u32| run(view, number, Turn::InOrder);
            one_by_one(memory, count, in_order, &mut take)
        };
        self.stats.groups += groups;
    }

    /// Whether a group met a fault.
    pub(super) fn has_fault(&self) -> bool {
        self.fault.is_some()
    }

    /// What was executed, or the first fault.
    pub(super) fn end(self) -> Result<Stats, Fault> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(self.stats),
        }
    }
}

fn take<R>(group: GroupOutcome<R>, steps: &Steps, stats: &mut Stats, fault: &mut Option<Fault>) -> Option<R> {
    steps.taken.fetch_add(group.steps, Ordering::Relaxed);
    stats.steps += group.steps;
    stats.lane_steps += group.lane_steps;
    match group.result {
        Ok(result) => Some(result),
        Err(met) => {
            fault.get_or_insert(met);
            None
        }
    }
}

/// Runs a grid: the preamble once, then workgroup after workgroup, in order. One that polls memory goes on after others.
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
    let mut grid = Grid::new(dispatch);
    let (end, stats) = grid.run(program, dispatch, memory, options, None)?;
    match end {
        GridEnd::Done => Ok(stats),
        GridEnd::Polls(fault) => Err(fault),
    }
}
