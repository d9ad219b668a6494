//! A grid of workgroups, any of which may wait for others, or for another thread of the command processor.
//!
//! Workgroups run one after the other. One that polls memory, or takes very long, is set aside, and goes on after those that
//! follow it; hardware runs many at once. When all that are left poll memory that none of them changes, the grid waits. Never: what
//! else may change memory, which the caller knows.

use super::dispatch::{Dispatch, Options};
use super::fault::Fault;
use super::group::{Machine, ParkedGroup};
use super::program::ShaderProgram;
use super::run::{Groups, Stats};
use super::tap::FiberTap;
use crate::memory::SimMemory;
use std::sync::Mutex;

/// Workgroups that are set aside at once: no other one begins before one of them has ended.
const MOST_PARKED: usize = 64;

/// How far a grid has run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum GridEnd {
    /// All workgroups have ended.
    Done,
    /// All that are left poll memory; the fault that ends them if nothing else changes it.
    Polls(Fault),
}

/// A grid that is being run.
#[derive(Debug)]
pub(crate) struct Grid {
    /// The constant file as the preamble left it.
    constants: Option<Vec<u32>>,
    /// The first workgroup that has not begun.
    next: u32,
    count: u32,
    parked: Vec<ParkedGroup>,
}

impl Grid {
    /// A grid that has not begun.
    pub(crate) fn new(dispatch: &Dispatch) -> Grid {
        let count = dispatch.groups.iter().try_fold(1u32, |all, n| all.checked_mul(*n)).unwrap_or(u32::MAX);
        Grid { constants: None, next: 0, count, parked: Vec::new() }
    }

    /// Runs the grid as far as it goes, with a fiber of one workgroup logged: the number of the group, and the tap. Returns what was
    /// executed in this call.
    ///
    /// # Errors
    ///
    /// The first [`Fault`]. What was executed before it is in memory.
    pub(crate) fn run(
        &mut self,
        program: &ShaderProgram,
        dispatch: &Dispatch,
        memory: &mut SimMemory,
        options: &Options,
        tap: Option<&(u32, FiberTap)>,
    ) -> Result<(GridEnd, Stats), Fault> {
        // A group that is logged runs once.
        let options = &Options { threads: if tap.is_some() { 1 } else { options.threads }, ..*options };
        let mut groups = Groups::new(program, dispatch, options);
        let constants = match self.constants.take() {
            Some(constants) => constants,
            None if self.count > 0 => groups.preamble(memory),
            None => Vec::new(),
        };
        let mut ended = 0;
        let polls = loop {
            let mut moves = self.resume(&mut groups, memory, &constants, &mut ended);
            let room = MOST_PARKED.saturating_sub(self.parked.len()) as u32;
            let end = self.count.min(self.next.saturating_add(room));
            if self.next < end && !groups.has_fault() {
                let begin = |machine: &mut Machine<'_>, number: u32| {
                    if let Some((_, tap)) = tap.filter(|(group, _)| *group == number) {
                        machine.log_fibers(std::slice::from_ref(tap), dispatch.lanes());
                    }
                    machine.run(number)
                };
                let parked = &mut self.parked;
                groups.run(memory, self.next..end, &constants, begin, |group| match group {
                    Some(group) => parked.push(group),
                    None => ended += 1,
                });
                (self.next, moves) = (end, true);
            }
            if groups.has_fault() || self.parked.is_empty() && self.next == self.count {
                break None;
            }
            if !moves {
                break self.parked.first().map(|group| group.fault.clone());
            }
        };
        self.constants = Some(constants);
        let stats = Stats { groups: ended, ..groups.end()? };
        Ok((polls.map_or(GridEnd::Done, GridEnd::Polls), stats))
    }

    /// Lets each workgroup that was set aside go on. Whether any did more than poll.
    fn resume(
        &mut self,
        groups: &mut Groups<'_>,
        memory: &mut SimMemory,
        constants: &[u32],
        ended: &mut u32,
    ) -> bool {
        let mut moves = false;
        for group in std::mem::take(&mut self.parked) {
            let number = group.number;
            // One workgroup runs, and takes it.
            let given = Mutex::new(Some(group));
            let resume = |machine: &mut Machine<'_>, _: u32| {
                let group = given.lock().ok().and_then(|mut given| given.take());
                group.map_or(Ok(None), |group| machine.resume(group))
            };
            let parked = &mut self.parked;
            groups.run(memory, number..number + 1, constants, resume, |group| match group {
                Some(group) => {
                    moves |= group.moved;
                    parked.push(group);
                }
                None => {
                    moves = true;
                    *ended += 1;
                }
            });
        }
        moves
    }
}
