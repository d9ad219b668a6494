//! The piece of work that does not end, though the CP is past it: the queues of clusters name the state that they wait for, and the
//! stream the packets that were sent since.
//!
//! Every draw, dispatch and event has a state number and one of two register contexts; so have blits, with numbers and contexts
//! of their own. CP_EVENT_END waits until the work before it has left the next context. Facts: freedreno's documentation and
//! register database. The commands that are queued are compared with the packets: where they are not the same, the queues
//! say nothing of the stream. Never: work that is known to be over.

use crate::adreno::busy::idle_behind_cp;
use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::CpStop;
use crate::adreno::mempool::{Mempool, Queue};
use crate::adreno::trace::{SentCommand, SentPacket, TracedWork};
use crate::args::{Arg, Args};
use crate::report::Trust;

/// What CP_WAIT_FOR_IDLE writes.
const IDLE: [&str; 2] = ["RBBM_WAIT_FOR_GPU_IDLE_CMD", "WAIT_FOR_IDLE"];
/// State numbers.
const STATES: u32 = 0x100;

/// Work that does not end.
pub(super) struct Unfinished<'s> {
    pub(super) work: &'s TracedWork,
    /// The queues name it.
    pub(super) named: bool,
}

impl Unfinished<'_> {
    pub(super) fn trust(&self) -> Trust {
        if self.named { Trust::Likely } else { Trust::Possible }
    }

    /// Its packet, for findings that it is the origin of.
    pub(super) fn origin(&self) -> Args {
        Args::new()
            .with("packet", Arg::name(self.work.packet.clone()))
            .with_some("iova", self.work.iova.map(Arg::Address))
            .with("gives", Arg::name("work"))
            .with("number", Arg::Number(u64::from(self.work.number)))
    }
}

/// What the queues tell of the work that was sent.
struct QueuedStates {
    /// Commands of draws, dispatches and events that are queued, the newest first.
    commands: Vec<SentCommand>,
    /// How many pieces of work the oldest one waited for is before the newest.
    behind: Option<u32>,
    /// The same of blits.
    blits_behind: Option<u32>,
}

/// The states of the ends and starts of a queue, oldest first: whether it is an end, and its number.
fn states(queue: &Queue, case: &AdrenoCase<'_>, start: &str, end: &str) -> Vec<(bool, u32)> {
    let state = |write: &unwedge_hw::adreno::mempool::QueuedWrite| {
        let name = write.name(case.gpu);
        (name == end || name == start).then_some((name == end, write.value % STATES))
    };
    queue.writes.iter().filter_map(state).collect()
}

/// How many pieces of work the newest one is after the one that the head of a queue waits for. The head is an end, or CP_WAIT_FOR_IDLE,
/// which waits for all work before it.
fn behind(pool: &Mempool, case: &AdrenoCase<'_>, start: &str, end: &str) -> Option<u32> {
    let behind = |queue: &Queue| {
        let first = queue.writes.first()?.name(case.gpu);
        let idle = IDLE.contains(&first.as_str());
        let states = states(queue, case, start, end);
        let (Some(&(_, oldest)), Some(&(_, newest))) = (states.first(), states.last()) else {
            return idle.then_some(0);
        };
        (first == end || idle).then(|| (newest + STATES + 1 - oldest) % STATES)
    };
    pool.queues.iter().filter_map(behind).max()
}

fn queued_states(pool: &Mempool, case: &AdrenoCase<'_>) -> QueuedStates {
    let command = |write: &unwedge_hw::adreno::mempool::QueuedWrite| {
        const CONTEXT_DONE: u32 = 5;
        Some(match write.name(case.gpu).as_str() {
            "HLSQ_DRAW_CMD" => SentCommand::Draw,
            "HLSQ_DISPATCH_CMD" => SentCommand::Dispatch,
            "HLSQ_EVENT_CMD" => match write.value & 0x7f {
                CONTEXT_DONE => return None,
                event => SentCommand::Event(event),
            },
            _ => return None,
        })
    };
    let shaders = pool.queue("SP_PS");
    QueuedStates {
        commands: shaders.iter().flat_map(|queue| queue.writes.iter().rev().filter_map(command)).collect(),
        behind: behind(pool, case, "CP_EVENT_START", "CP_EVENT_END"),
        blits_behind: behind(pool, case, "CP_2D_EVENT_START", "CP_2D_EVENT_END"),
    }
}

/// Whether the stretch that was walked up to a stop holds the packets that the queues name.
pub(super) fn is_walked(case: &AdrenoCase<'_>, stop: &CpStop, pool: Option<&Mempool>) -> bool {
    let Some(queued) = pool.map(|pool| queued_states(pool, case)) else { return true };
    let count = |blits: bool| {
        let sent = stop.scene.sent.iter();
        sent.filter(|packet| (packet.command == SentCommand::Blit) == blits).count()
    };
    let walked = |behind: Option<u32>, sent: usize| behind.is_none_or(|behind| sent > behind as usize);
    walked(queued.behind, count(false))
        && walked(queued.blits_behind.filter(|&behind| behind > 0), count(true))
}

/// The work that does not end, if the blocks downstream of the CP are busy.
pub(super) fn find<'s>(
    case: &AdrenoCase<'_>,
    stop: &'s CpStop,
    pool: Option<&Mempool>,
) -> Option<Unfinished<'s>> {
    if idle_behind_cp(case) != Some(false) || !stop.reached {
        return None;
    }
    let queued = queued_states(pool?, case);
    // What the packet at the stop sends is sent where the CP is done with it.
    let own = stop.scene.own_sent.iter().filter(|_| stop.read_to_end);
    let with_own: Vec<&SentPacket> = own.chain(stop.scene.sent.iter().rev()).collect();
    let without: Vec<&SentPacket> = stop.scene.sent.iter().rev().collect();
    let sent = [with_own, without].into_iter().find(|sent| {
        let mut sent = sent.iter().filter(|packet| packet.command != SentCommand::Blit);
        queued.commands.iter().all(|command| sent.next().is_some_and(|packet| packet.command == *command))
    })?;
    let nth = |blits: bool, behind: Option<u32>| {
        let of = |packet: &&SentPacket| (packet.command == SentCommand::Blit) == blits;
        let mut places = sent.iter().enumerate().filter(|(_, packet)| of(packet)).map(|(at, _)| at);
        places.nth(behind? as usize)
    };
    let named = [nth(false, queued.behind), nth(true, queued.blits_behind)];
    let is_work = |at: &usize| sent.get(*at).is_some_and(|packet| packet.work.is_some());
    let oldest = named.into_iter().flatten().filter(is_work).max();
    // An event that is waited for waits itself for the work before it.
    let from = oldest.or(named.into_iter().flatten().max());
    let number = sent.iter().skip(from.unwrap_or(0)).find_map(|packet| packet.work)?;
    let work = stop.scene.own_work.iter().chain(&stop.scene.work).find(|work| work.number == number)?;
    Some(Unfinished { work, named: from.is_some() })
}
