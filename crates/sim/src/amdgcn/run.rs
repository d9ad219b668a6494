//! A grid of workgroups over memory.

use super::common::OrderedState;
use super::dispatch::Dispatch;
use super::fault::SimFault;
use super::group::Workgroup;
use super::message::WaveMessage;
use super::program::Program;
use super::watch::{Trace, Watch};
use crate::memory::{GroupView, SimMemory};
use crate::run::{GroupRun, at_once, one_by_one};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What went wrong, workgroup by workgroup. The first workgroup that could not go on is the last one that ran.
    pub faults: Vec<SimFault>,
    /// Instructions executed.
    pub steps: u64,
    /// Lanes that were enabled in the vector instructions among them, in all.
    pub lane_steps: u64,
    /// Workgroups that ran to their end.
    pub groups: u32,
    /// Exports and messages, workgroup by workgroup; of many the first ones.
    pub messages: Vec<WaveMessage>,
    /// The turn and the streamout registers after the last workgroup.
    pub ordered: OrderedState,
}

/// What came of a workgroup.
struct GroupOutcome {
    faults: Vec<SimFault>,
    messages: Vec<WaveMessage>,
    steps: u64,
    lane_steps: u64,
    ordered: OrderedState,
}

/// Exports and messages that are kept.
const MESSAGES: usize = 1 << 16;

fn one(
    program: &Program,
    view: GroupView<'_>,
    dispatch: &Dispatch,
    number: u32,
    watch: &mut Watch<'_>,
) -> GroupRun<GroupOutcome> {
    let [x, y, _] = dispatch.groups;
    let id = [number % x, number / x % y, number / x / y];
    let mut group = Workgroup::new(program, dispatch, view, number);
    group.run(dispatch, id, watch);
    let complete = !group.machine.stopped;
    let result = GroupOutcome {
        faults: std::mem::take(&mut group.machine.faults),
        messages: std::mem::take(&mut group.machine.messages),
        steps: group.steps,
        lane_steps: group.lane_steps,
        ordered: group.machine.common.ordered,
    };
    GroupRun { written: group.machine.view.written(), complete, result }
}

/// Runs a grid: the result is that of one workgroup after the other, in order. Every executed instruction is told to
/// `trace`, if there is one; then nothing runs at once.
pub fn run(
    program: &Program,
    memory: &mut SimMemory,
    dispatch: &Dispatch,
    trace: Option<&mut dyn FnMut(&Trace)>,
) -> Outcome {
    match trace {
        Some(tell) => watch(program, memory, dispatch, Watch::Trace(tell)),
        None => watch(program, memory, dispatch, Watch::Nobody),
    }
}

/// Runs a grid while somebody looks.
pub fn watch(
    program: &Program,
    memory: &mut SimMemory,
    dispatch: &Dispatch,
    mut watch: Watch<'_>,
) -> Outcome {
    let count = dispatch.groups.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
    let mut outcome = Outcome::default();
    let take = |group: GroupOutcome| {
        outcome.faults.extend(group.faults);
        let room = MESSAGES.saturating_sub(outcome.messages.len());
        outcome.messages.extend(group.messages.into_iter().take(room));
        outcome.steps += group.steps;
        outcome.lane_steps += group.lane_steps;
        outcome.ordered = group.ordered;
    };
    let threads = dispatch.threads.clamp(1, 256);
    let groups = if threads > 1 && matches!(watch, Watch::Nobody) {
        let run = |view: GroupView<'_>, number, _| one(program, view, dispatch, number, &mut Watch::Nobody);
        at_once(memory, count, threads, run, |_| true, take)
    } else {
        one_by_one(memory, count, |view, number| one(program, view, dispatch, number, &mut watch), take)
    };
    outcome.groups = groups;
    outcome
}
