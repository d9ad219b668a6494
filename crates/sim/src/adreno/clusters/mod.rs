//! The queues of the clusters, and their register contexts, from the start of work that does not end.
//!
//! While work is done at once, there is nothing to queue. After a piece of work that does not end, everything that the SQE sends goes
//! through here: register writes, events and work, in a queue for each cluster. Facts: freedreno's documentation and register
//! database (the sequence of an event, the contexts, what CP_EVENT_END waits for), and the queues of a recorded hang: which
//! cluster gets which command, that an event is done in a cluster once the next one has started it, that several events have room
//! before GRAS and none after it, and the chunks without writes around CP_WAIT_FOR_IDLE. Never: rendering.

mod commands;
mod pool;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;
use unwedge_hw::Gpu;
use unwedge_hw::adreno::mempool::{POOL, QueuedWrite, clusters};
use unwedge_hw::adreno::snapshot::Snapshot;

use commands::CommandRegisters;
pub(crate) use commands::{EventWrite, SentWork};
pub(crate) use pool::empty_pool;

/// Which register contexts a piece of work uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContextSet {
    /// Those of draws, dispatches and events.
    ThreeD,
    /// Those of the 2D engine.
    TwoD,
}

/// What is in a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Entry {
    /// A register.
    Register(QueuedWrite),
    /// A command, or a register of the CP's pipe.
    Command(QueuedWrite),
    /// Work of this number starts.
    Start(QueuedWrite, usize),
    /// It ends: the context rolls over.
    End(QueuedWrite, usize),
    /// The wait for everything before it.
    Idle(QueuedWrite),
}

impl Entry {
    fn write(self) -> QueuedWrite {
        match self {
            Entry::Register(write)
            | Entry::Command(write)
            | Entry::Start(write, _)
            | Entry::End(write, _)
            | Entry::Idle(write) => write,
        }
    }
}

/// What a cluster takes at once.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    entries: [Option<Entry>; 2],
    /// The cluster goes no further before the wait is over.
    barrier: bool,
}

/// Work, from its start on.
#[derive(Clone, Debug)]
struct QueuedWork {
    set: ContextSet,
    context: u8,
    /// The work before it in the same contexts, if it was sent here, too.
    previous: Option<usize>,
    /// The clusters that it goes through, in order.
    path: &'static [&'static str],
    /// The cluster that it does not leave.
    stuck_in: Option<&'static str>,
}

/// A cluster and its queue.
#[derive(Clone, Debug)]
struct Cluster {
    name: &'static str,
    queue: VecDeque<Chunk>,
    /// A write that waits for another one to share its chunk.
    single: Option<Entry>,
    /// Chunks taken so far.
    taken: u64,
    /// The first so many pieces of work have started here.
    started: usize,
    /// The first so many are done here.
    finished: usize,
    /// The two contexts of draws and events, and the two of blits.
    banks: [[Bank; 2]; 2],
}

/// The registers of a context: what they were when the work got stuck, and what was written since.
#[derive(Clone, Debug, Default)]
struct Bank {
    /// It began as the context of the work before.
    of_before: bool,
    written: BTreeMap<u32, u32>,
}

/// Clusters up to GRAS, before which several events have room.
const ROOMY: [&str; 3] = ["FE", "SP_VS", "PC_VS"];

/// The clusters, from the start of the work that does not end.
#[derive(Clone, Debug)]
pub(crate) struct ClusterQueues {
    clusters: Vec<Cluster>,
    /// Registers of clusters, by number.
    ranges: Vec<(RangeInclusive<u32>, usize)>,
    work: Vec<QueuedWork>,
    commands: CommandRegisters,
    /// The context that the SQE writes to, and the number of the next piece of work, of draws and of blits.
    contexts: [(u8, u8); 2],
}

impl ClusterQueues {
    /// Queues that are empty but for the work that is stuck: its commands are taken. `rollovers` counts the contexts of
    /// draws and of blits used before it.
    pub(crate) fn new(
        gpu: Gpu<'_>,
        by_pipe: bool,
        snapshot: &Snapshot,
        rollovers: [u64; 2],
        stuck: (SentWork, &'static str),
    ) -> ClusterQueues {
        let names = clusters(gpu.generation());
        let ranges =
            snapshot.clusters.iter().filter(|list| list.pipe.is_none_or(|pipe| pipe.ends_with("_BR")));
        let ranges = ranges.flat_map(|list| {
            let (_, name) = list.name.split_once("CLUSTER_").unwrap_or(("", list.name));
            let number = names.iter().position(|&known| known == name);
            number.into_iter().flat_map(|number| list.ranges.iter().map(move |range| (range.clone(), number)))
        });
        let mut ranges: Vec<(RangeInclusive<u32>, usize)> = ranges.collect();
        ranges.sort_by_key(|(range, number)| (*range.start(), *range.end(), *number));
        ranges.dedup();
        let contexts = rollovers.map(|count| ((count & 1) as u8, count as u8));
        let cluster = |&name: &&'static str| Cluster {
            name,
            queue: VecDeque::new(),
            single: None,
            taken: 0,
            started: 0,
            finished: 0,
            banks: contexts
                .map(|(context, _)| [0, 1].map(|of| Bank { of_before: of != context, ..Bank::default() })),
        };
        let mut queues = ClusterQueues {
            clusters: names.iter().map(cluster).collect(),
            ranges,
            work: Vec::new(),
            commands: CommandRegisters::new(gpu, by_pipe),
            contexts,
        };
        let (sent, stuck_in) = stuck;
        queues.send(sent);
        if let Some(work) = queues.work.first_mut() {
            work.stuck_in = Some(stuck_in);
        }
        queues.advance();
        queues
    }

    /// Takes a write to a register of a cluster; false: no cluster has this register.
    pub(crate) fn write(&mut self, reg: u32, value: u32) -> bool {
        let two_d = self.commands.is_two_d(reg);
        let (context, _) = self.contexts[usize::from(two_d)];
        let write = QueuedWrite { reg, value, context, pipe: false };
        let mut last = None;
        let mut any = false;
        for at in 0..self.ranges.len() {
            let (range, number) = &self.ranges[at];
            if range.contains(&reg) && last != Some(*number) {
                last = Some(*number);
                any = true;
                let number = *number;
                self.push(number, Entry::Register(write));
            }
        }
        any
    }

    /// Everything that was sent is taken.
    pub(crate) fn is_drained(&self) -> bool {
        self.clusters.iter().all(|cluster| cluster.queue.is_empty() && cluster.single.is_none())
    }

    /// Whether a packet of so many dwords has room in the pool.
    pub(crate) fn has_room(&self, dwords: u64) -> bool {
        // A register may be one of two clusters, and what is written for an event takes up to four chunks in each.
        let most = dwords + 5 * self.clusters.len() as u64;
        let used: u64 = self.clusters.iter().map(Cluster::blocks).sum();
        let needed = most / u64::from(POOL.chunks) + self.clusters.len() as u64;
        used + needed <= u64::from(POOL.blocks)
    }

    fn number(&self, name: &str) -> Option<usize> {
        self.clusters.iter().position(|cluster| cluster.name == name)
    }

    /// Puts an entry into a queue, two to a chunk; those that start and end work have chunks of their own.
    fn push(&mut self, number: usize, entry: Entry) {
        let Some(cluster) = self.clusters.get_mut(number) else { return };
        let alone = matches!(entry, Entry::Start(..) | Entry::End(..));
        if alone {
            cluster.flush();
            cluster.queue.push_back(Chunk { entries: [None, Some(entry)], barrier: false });
            return;
        }
        match cluster.single.take() {
            Some(first) => {
                cluster.queue.push_back(Chunk { entries: [Some(first), Some(entry)], barrier: false });
            }
            None => cluster.single = Some(entry),
        }
    }

    fn push_to(&mut self, name: &str, entry: Entry) {
        if let Some(number) = self.number(name) {
            self.push(number, entry);
        }
    }

    /// Lets every cluster take what it can.
    pub(crate) fn advance(&mut self) {
        self.clusters.iter_mut().for_each(Cluster::flush);
        loop {
            let mut moves = false;
            for number in 0..self.clusters.len() {
                moves |= self.take(number);
                moves |= self.finish(number);
            }
            if !moves {
                return;
            }
        }
    }

    /// A cluster takes chunks up to one that it has to wait at.
    fn take(&mut self, number: usize) -> bool {
        let mut moves = false;
        while let Some(chunk) = self.clusters[number].queue.front().copied() {
            let waits = chunk.entries.iter().flatten().any(|&entry| self.waits(number, entry));
            if waits || chunk.barrier {
                break;
            }
            let cluster = &mut self.clusters[number];
            cluster.queue.pop_front();
            cluster.taken += 1;
            for entry in chunk.entries.into_iter().flatten() {
                let two_d = self.commands.is_two_d(entry.write().reg);
                cluster.apply(entry, &self.work, two_d);
            }
            moves = true;
        }
        moves
    }

    /// Whether a cluster cannot take an entry now.
    fn waits(&self, number: usize, entry: Entry) -> bool {
        match entry {
            // The next context is that of the work before.
            Entry::End(_, work) => {
                let previous = self.work.get(work).and_then(|work| work.previous);
                previous.is_some_and(|previous| self.clusters[number].finished <= previous)
            }
            // The first piece of work does not end.
            Entry::Idle(_) => !self.work.is_empty(),
            _ => false,
        }
    }

    /// Counts the work that is done in a cluster: in order, and only where the next cluster has it.
    fn finish(&mut self, number: usize) -> bool {
        let mut moves = false;
        while self.ends(number, self.clusters[number].finished) {
            self.clusters[number].finished += 1;
            moves = true;
        }
        moves
    }

    fn ends(&self, number: usize, at: usize) -> bool {
        let Some(work) = self.work.get(at) else { return false };
        let cluster = &self.clusters[number];
        if cluster.started <= at {
            return false;
        }
        let path: Vec<&str> = work.path.iter().copied().filter(|name| self.number(name).is_some()).collect();
        let Some(place) = path.iter().position(|&name| name == cluster.name) else { return true };
        if let Some(stuck) = work.stuck_in.and_then(|name| path.iter().position(|&of| of == name)) {
            return place < stuck;
        }
        let cluster_of = |place: usize| path.get(place).and_then(|name| self.number(name));
        let before = place.checked_sub(1).and_then(cluster_of);
        if before.is_some_and(|before| self.clusters[before].finished <= at) {
            return false;
        }
        match cluster_of(place + 1) {
            Some(_) if ROOMY.contains(&cluster.name) => true,
            Some(next) => self.clusters[next].started > at && self.clusters[next].finished >= at,
            None => true,
        }
    }

    /// A register of a cluster in a context: whether the context began as the one of the work before the one that is
    /// stuck, and what was written to it since.
    pub(crate) fn register(&self, cluster: &str, context: u8, reg: u32) -> Option<(bool, Option<u32>)> {
        let cluster = self.clusters.iter().find(|of| of.name == cluster)?;
        let set = usize::from(self.commands.is_two_d(reg));
        let bank = &cluster.banks[set][usize::from(context & 1)];
        Some((bank.of_before, bank.written.get(&reg).copied()))
    }

    /// Whether a cluster has work that is not done, or something to take.
    pub(crate) fn is_busy(&self, name: &str) -> bool {
        self.clusters
            .iter()
            .find(|of| of.name == name)
            .is_some_and(|cluster| cluster.finished < cluster.started || !cluster.queue.is_empty())
    }
}

impl Cluster {
    fn flush(&mut self) {
        if let Some(single) = self.single.take() {
            self.queue.push_back(Chunk { entries: [None, Some(single)], barrier: false });
        }
    }

    /// Blocks of the pool that its queue takes.
    fn blocks(&self) -> u64 {
        let chunks = u64::from(POOL.chunks);
        let queued = self.queue.len() as u64 + u64::from(self.single.is_some());
        (self.taken % chunks + queued) / chunks + 1
    }

    fn apply(&mut self, entry: Entry, work: &[QueuedWork], two_d: bool) {
        match entry {
            Entry::Register(write) => {
                let bank = &mut self.banks[usize::from(two_d)][usize::from(write.context & 1)];
                bank.written.insert(write.reg, write.value);
            }
            Entry::Start(_, at) => self.started = at + 1,
            Entry::End(_, at) => {
                let Some(work) = work.get(at) else { return };
                let set = usize::from(work.set == ContextSet::TwoD);
                let now = usize::from(work.context & 1);
                self.banks[set][now ^ 1] = self.banks[set][now].clone();
            }
            Entry::Command(_) | Entry::Idle(_) => {}
        }
    }
}
