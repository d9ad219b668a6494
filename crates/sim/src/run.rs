//! Groups of threads that run over one memory: one after the other, or at once with the same result.
//!
//! Each group runs on a [`GroupView`]; what it wrote is committed in the order of their numbers. A group that ran at once with
//! others and read what an earlier one wrote is run again. It knows no machine: what a group is, its caller says.

use crate::memory::{GroupAccesses, GroupView, SimMemory};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// When memory is accessed and results are there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Timing {
    /// At once: what is missing in the program does not show.
    Plain,
    /// As late, and in as bad an order, as hardware may; what the program must not rely on is reported.
    Adversarial {
        /// Chooses among what is possible.
        seed: u64,
    },
}

/// Groups that are run at once before their results are committed.
const AHEAD: usize = 64;

/// What a group did, before it is committed.
pub(crate) struct GroupRun<R> {
    pub(crate) written: GroupAccesses,
    /// Whether it ran to its end: if not, no other one runs after it.
    pub(crate) complete: bool,
    pub(crate) result: R,
}

/// Runs groups one after the other and hands on their results; how many ran to their end.
pub(crate) fn one_by_one<R>(
    memory: &mut SimMemory,
    count: u32,
    mut run: impl FnMut(GroupView<'_>, u32) -> GroupRun<R>,
    mut take: impl FnMut(R),
) -> u32 {
    for number in 0..count {
        let group = run(GroupView::new(memory), number);
        memory.commit(&group.written, &mut HashMap::new());
        take(group.result);
        if !group.complete {
            return number;
        }
    }
    count
}

/// Whether a group runs ahead of others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Earlier groups may still run: what it does may turn out not to hold.
    Ahead,
    /// All earlier groups have been taken.
    InOrder,
}

/// The same on so many threads of the host. The result is that of [`one_by_one`]. A group whose result does not hold
/// when its turn comes is run again.
pub(crate) fn at_once<R: Send>(
    memory: &mut SimMemory,
    count: u32,
    threads: usize,
    run: impl Fn(GroupView<'_>, u32, Turn) -> GroupRun<R> + Sync,
    mut holds: impl FnMut(&R) -> bool,
    mut take: impl FnMut(R),
) -> u32 {
    let mut next = 0;
    while next < count {
        let batch = AHEAD.min((count - next) as usize);
        let results = ahead(memory, next, batch, threads, &run);
        let mut lines = HashMap::new();
        for (number, early) in (next..).zip(results) {
            // Nor does it hold where it read what an earlier one wrote.
            let group = match !early.written.read_any_of(&lines) && holds(&early.result) {
                true => early,
                false => run(GroupView::new(memory), number, Turn::InOrder),
            };
            memory.commit(&group.written, &mut lines);
            take(group.result);
            if !group.complete {
                return number;
            }
        }
        next += batch as u32;
    }
    count
}

/// Runs groups at once, each on memory as it is now.
fn ahead<R: Send>(
    memory: &SimMemory,
    first: u32,
    count: usize,
    threads: usize,
    run: &(impl Fn(GroupView<'_>, u32, Turn) -> GroupRun<R> + Sync),
) -> Vec<GroupRun<R>> {
    map_at_once(count, threads, |at| run(GroupView::new(memory), first + at as u32, Turn::Ahead))
}

/// What a function makes of each number below a count, on so many threads of the process's pool. A caller of the pool itself begins
/// at once, and waits for no thread that has not begun; see [`in_pool`].
pub(crate) fn map_at_once<R: Send>(count: usize, threads: usize, make: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let threads = threads.min(count);
    if threads <= 1 {
        return (0..count).map(make).collect();
    }
    let (next, made) = (AtomicUsize::new(0), Mutex::new(Vec::with_capacity(threads)));
    let work = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= count {
                break;
            }
            own.push((at, make(at)));
        }
        made.lock().unwrap_or_else(PoisonError::into_inner).append(&mut own);
    };
    on_threads(threads, &work);
    let mut all = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    all.sort_unstable_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, made)| made).collect()
}

/// Does the same work on so many threads at most: a thread that comes when all is done finds nothing to do.
fn on_threads(threads: usize, work: &(impl Fn() + Sync)) {
    if threads <= 1 {
        work();
    } else {
        rayon_core::join(work, || on_threads(threads - 1, work));
    }
}

/// Whether the caller is a thread of the process's pool.
pub(crate) fn is_in_pool() -> bool {
    rayon_core::current_thread_index().is_some()
}

/// Does something on a thread of the process's pool, while the caller waits. Work that is shared out there costs little more than
/// on one thread: what no other thread has taken, the thread that shared it out does itself.
pub(crate) fn in_pool<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    rayon_core::scope(|_| work())
}
