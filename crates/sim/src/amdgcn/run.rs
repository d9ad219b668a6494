//! A grid of workgroups over memory.

use super::dispatch::Dispatch;
use super::fault::Fault;
use super::group::Group;
use super::message::WaveMessage;
use super::program::Program;
use super::watch::{Trace, Watch};
use crate::memory::{Memory, View, Written};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// What went wrong, workgroup by workgroup. The first workgroup that could not go on is the last one that ran.
    pub faults: Vec<Fault>,
    /// Instructions executed.
    pub steps: u64,
    /// Lanes that were enabled in the vector instructions among them, in all.
    pub lane_steps: u64,
    /// Workgroups that ran to their end.
    pub groups: u32,
    /// Exports and messages, workgroup by workgroup; of many the first ones.
    pub messages: Vec<WaveMessage>,
}

/// A workgroup's result, before it is committed.
struct Finished {
    written: Written,
    faults: Vec<Fault>,
    messages: Vec<WaveMessage>,
    steps: u64,
    lane_steps: u64,
    complete: bool,
}

/// Exports and messages that are kept.
const MESSAGES: usize = 1 << 16;

/// Workgroups that are run at once before their results are committed.
const AHEAD: usize = 64;

fn one(
    program: &Program,
    memory: &Memory,
    dispatch: &Dispatch,
    number: u32,
    watch: &mut Watch<'_>,
) -> Finished {
    let [x, y, _] = dispatch.groups;
    let id = [number % x, number / x % y, number / x / y];
    let mut group = Group::new(program, dispatch, View::new(memory), number);
    group.run(dispatch, id, watch);
    let complete = !group.machine.stopped;
    Finished {
        faults: std::mem::take(&mut group.machine.faults),
        messages: std::mem::take(&mut group.machine.messages),
        steps: group.steps,
        lane_steps: group.lane_steps,
        complete,
        written: group.machine.view.written(),
    }
}

/// Runs a grid: the result is that of one workgroup after the other, in order. Every executed instruction is told to
/// `trace`, if there is one; then nothing runs at once.
pub fn run(
    program: &Program,
    memory: &mut Memory,
    dispatch: &Dispatch,
    trace: Option<&mut dyn FnMut(&Trace)>,
) -> Outcome {
    match trace {
        Some(tell) => watch(program, memory, dispatch, Watch::Trace(tell)),
        None => watch(program, memory, dispatch, Watch::Nobody),
    }
}

/// Runs a grid while somebody looks.
pub fn watch(program: &Program, memory: &mut Memory, dispatch: &Dispatch, mut watch: Watch<'_>) -> Outcome {
    let count = dispatch.groups.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
    let mut outcome = Outcome::default();
    let alone = !matches!(watch, Watch::Nobody);
    let threads = if alone { 1 } else { dispatch.threads.clamp(1, 256) };
    let mut next = 0;
    while next < count {
        let batch = if threads == 1 { 1 } else { AHEAD.min((count - next) as usize) };
        let mut results: Vec<Option<Finished>> = Vec::new();
        if threads > 1 {
            results = ahead(program, memory, dispatch, next, batch, threads);
        }
        let mut lines = HashMap::new();
        for at in 0..batch {
            let number = next + at as u32;
            let early = results.get_mut(at).and_then(Option::take);
            // What it read was changed by an earlier one: what it did does not hold.
            let finished = match early.filter(|finished| !finished.written.read_any_of(&lines)) {
                Some(finished) => finished,
                None => one(program, memory, dispatch, number, &mut watch),
            };
            memory.commit(&finished.written, &mut lines);
            outcome.faults.extend(finished.faults);
            let room = MESSAGES.saturating_sub(outcome.messages.len());
            outcome.messages.extend(finished.messages.into_iter().take(room));
            outcome.steps += finished.steps;
            outcome.lane_steps += finished.lane_steps;
            if !finished.complete {
                return outcome;
            }
            outcome.groups += 1;
        }
        next += batch as u32;
    }
    outcome
}

/// Runs workgroups at once, each on memory as it is now.
fn ahead(
    program: &Program,
    memory: &Memory,
    dispatch: &Dispatch,
    first: u32,
    count: usize,
    threads: usize,
) -> Vec<Option<Finished>> {
    let results: Vec<Mutex<Option<Finished>>> = (0..count).map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(place) = results.get(at) else { return };
                    let finished = one(program, memory, dispatch, first + at as u32, &mut Watch::Nobody);
                    *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(finished);
                }
            });
        }
    });
    results.into_iter().map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}
