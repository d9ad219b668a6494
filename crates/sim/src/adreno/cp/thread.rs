//! A thread of the command processor: the streams it is in, and what decides which packets it takes.

use super::super::dispatch::RunningDispatch;
use super::super::draw::BinStreams;
use super::super::groups_state::Groups;
use crate::adreno::CpError;
use unwedge_stream::adreno::mode;

/// A thread of the CP. Before a7xx there is BR alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ThreadId {
    /// Bin render: draws, dispatches.
    Br,
    /// Bin visibility.
    Bv,
}

/// Why a stream is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameKind {
    /// The ring. It does not end: what it holds so far does. Addresses count on past its end.
    Ring {
        /// Bytes.
        size: u64,
    },
    /// A buffer that CP_INDIRECT_BUFFER names.
    Indirect,
    /// A draw-state group.
    Group,
    /// The prefix of a bin.
    Bin,
    /// An entry of a draw table.
    DrawTable,
}

/// A loop over bins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BinLoop {
    pub(crate) body: u64,
    pub(crate) left: u32,
    pub(crate) prefix: u64,
    pub(crate) dwords: u32,
}

/// The entries of a draw table that are left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableLoop {
    pub(crate) left: u32,
    pub(crate) base: u64,
    pub(crate) stride: u32,
    pub(crate) dwords: u32,
}

/// A stream that is being executed.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) kind: FrameKind,
    pub(crate) level: u8,
    pub(crate) base: u64,
    /// Address of the next packet.
    pub(crate) next: u64,
    pub(crate) end: u64,
    /// Dwords of the next packet, which is taken and waits: for a value, or for draw states that come before it.
    pub(crate) held: u64,
    /// Where conditions end, and whether they hold; innermost last.
    conditions: Vec<(u64, bool)>,
    pub(crate) bins: Option<BinLoop>,
    pub(crate) table: Option<TableLoop>,
}

impl Frame {
    pub(crate) fn new(kind: FrameKind, level: u8, iova: u64, dwords: u32) -> Frame {
        let end = iova.saturating_add(4 * u64::from(dwords));
        Frame {
            kind,
            level,
            base: iova,
            next: iova,
            end,
            held: 0,
            conditions: Vec::new(),
            bins: None,
            table: None,
        }
    }

    /// Where in memory an address of the stream is.
    pub(crate) fn place(&self, iova: u64) -> u64 {
        match self.kind {
            FrameKind::Ring { size } => self.base + iova.saturating_sub(self.base) % size.max(1),
            _ => iova,
        }
    }

    fn taken(&mut self) -> bool {
        let next = self.next;
        self.conditions.retain(|&(end, _)| next < end);
        self.conditions.iter().all(|&(_, holds)| holds)
    }

    /// The queue of the ROQ that its dwords come through.
    pub(crate) fn queue(&self) -> Option<usize> {
        match (self.kind, self.level) {
            (FrameKind::Ring { .. }, _) => Some(0),
            (FrameKind::Group, _) => Some(3),
            (_, level @ (1 | 2)) => Some(usize::from(level)),
            _ => None,
        }
    }

    /// Makes the dwords up to an address depend on a condition.
    pub(crate) fn condition(&mut self, dwords: u32, holds: bool) {
        let end = self.next.saturating_add(4 * u64::from(dwords));
        // A condition that holds changes nothing.
        if !holds {
            self.conditions.push((end, false));
        }
    }
}

/// Where a stream that is being executed stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamFrame {
    /// IB level: 0 is the ring.
    pub level: u8,
    /// Where the stream begins.
    pub iova: u64,
    /// The next packet, or the one that waits.
    pub next: u64,
    /// Dwords from there to its end.
    pub left: u64,
}

/// The next packet of a thread.
pub(crate) struct NextPacket {
    /// Its address in the stream.
    pub(crate) iova: u64,
    /// The ring that it is in: base and size.
    pub(crate) ring: Option<(u64, u64)>,
    /// Dwords from there to the end of the stream.
    pub(crate) left: u64,
    pub(crate) taken: bool,
}

impl NextPacket {
    /// Where in memory a dword of the packet is.
    pub(crate) fn dword(&self, at: u64) -> u64 {
        let iova = self.iova.saturating_add(4 * at);
        self.ring.map_or(iova, |(base, size)| base + iova.saturating_sub(base) % size.max(1))
    }
}

/// What the CP fetches at a level, or fetched last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LevelFetch {
    pub(crate) base: u64,
    pub(crate) dwords: u64,
    /// Dwords that the SQE has taken from the level's queue so far, over all buffers.
    pub(crate) taken: u64,
}

/// Queues of the ROQ: the ring, IB1, IB2, draw states.
pub(crate) const QUEUES: usize = 4;

/// How far the SQE is with the packet in work.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PacketInWork {
    /// Address of its header in its stream.
    pub(crate) start: u64,
    /// Streams around it, with its own.
    pub(crate) depth: usize,
    /// Its dwords that were taken from the queue.
    pub(crate) dwords: u64,
}

/// What CP_DRAW_PRED_* packets set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawPredicate {
    pub(crate) global: bool,
    pub(crate) local: bool,
    pub(crate) passes: bool,
}

/// A thread.
#[derive(Debug)]
pub(crate) struct CpThread {
    pub(crate) id: ThreadId,
    pub(crate) frames: Vec<Frame>,
    /// CP_THREAD_CONTROL has chosen it.
    pub(crate) selected: bool,
    pub(crate) predicates: u32,
    pub(crate) draw_predicate: DrawPredicate,
    pub(crate) marker: Option<u32>,
    /// Bits of [`mode`].
    pub(crate) modes: u8,
    pub(crate) groups: Groups,
    /// CP_THREAD_CONTROL has chosen no other thread.
    pub(crate) alone: bool,
    /// Visibility streams of the bin that is rendered.
    pub(crate) bin: Option<BinStreams>,
    /// CP_SET_VISIBILITY_OVERRIDE: they are not obeyed.
    pub(crate) shows_all: bool,
    /// Addresses of visibility streams that CP_SET_PSEUDO_REG gave.
    pub(crate) stream_addresses: [Option<u64>; 3],
    /// How often it has come to a place where threads meet.
    pub(crate) met: u64,
    /// It stands at one.
    pub(crate) meets: bool,
    /// The header of the packet in work, register writes too.
    pub(crate) header: u32,
    /// Headers of the operation in work and of those before it.
    pub(crate) headers: [u32; 3],
    /// The error that ended it.
    pub(crate) halted: Option<CpError>,
    pub(crate) work: PacketInWork,
    pub(crate) fetches: [LevelFetch; QUEUES],
    /// How often its register contexts rolled over: those of draws and events, and those of blits.
    pub(crate) rollovers: [u64; 2],
    /// The dispatch of the packet that waits: its shaders poll memory that another thread may write.
    pub(crate) dispatch: Option<Box<RunningDispatch>>,
}

impl CpThread {
    pub(crate) fn new(id: ThreadId) -> CpThread {
        CpThread {
            id,
            frames: Vec::new(),
            selected: true,
            predicates: 0,
            draw_predicate: DrawPredicate { global: false, local: true, passes: true },
            marker: None,
            modes: mode::ALL,
            groups: Groups::default(),
            alone: false,
            bin: None,
            shows_all: false,
            stream_addresses: [None; 3],
            met: 0,
            meets: false,
            header: 0,
            headers: [0; 3],
            halted: None,
            work: PacketInWork::default(),
            fetches: [LevelFetch::default(); QUEUES],
            rollovers: [0; 2],
            dispatch: None,
        }
    }

    /// The next packet; streams that have ended are left.
    pub(crate) fn next_packet(&mut self) -> Option<NextPacket> {
        let selected = self.selected;
        loop {
            let frame = self.frames.last_mut()?;
            if frame.next < frame.end {
                let left = (frame.end - frame.next) / 4;
                let iova = frame.next;
                let taken = frame.taken() && selected;
                let ring = match frame.kind {
                    FrameKind::Ring { size } => Some((frame.base, size)),
                    _ => None,
                };
                return Some(NextPacket { iova, ring, left, taken });
            }
            if let FrameKind::Ring { .. } = frame.kind {
                return None;
            }
            match frame.table.filter(|table| table.left > 0) {
                Some(TableLoop { left, base, stride, dwords }) => {
                    let base = base.saturating_add(4 * u64::from(stride));
                    *frame = Frame::new(frame.kind, frame.level, base, dwords);
                    frame.table = Some(TableLoop { left: left - 1, base, stride, dwords });
                }
                None => {
                    self.frames.pop();
                }
            }
        }
    }

    /// Goes so many dwords on.
    pub(crate) fn advance(&mut self, dwords: u64) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = frame.next.saturating_add(4 * dwords);
            if let Some(queue) = frame.queue() {
                self.fetches[queue].taken += dwords;
            }
        }
    }

    /// Enters a stream.
    pub(crate) fn enter(&mut self, frame: Frame) {
        if let Some(queue) = frame.queue() {
            let fetch = &mut self.fetches[queue];
            (fetch.base, fetch.dwords) = (frame.base, (frame.end - frame.base) / 4);
        }
        self.frames.push(frame);
    }

    /// So many dwords of a packet are taken from its queue.
    pub(crate) fn work_on(&mut self, at: &NextPacket, dwords: u64) {
        self.work = PacketInWork { start: at.iova, depth: self.frames.len(), dwords };
    }

    /// Remembers the header of an operation that is taken. A packet that is tried again is the same.
    pub(crate) fn remember(&mut self, header: u32, start: u64) {
        let depth = self.frames.len();
        let again = self.work.start == start && self.work.depth == depth && self.headers[0] == header;
        if !again {
            let [last, before, _] = self.headers;
            self.headers = [header, last, before];
        }
    }

    /// The packet that was advanced over, of so many dwords, is the next one again; its dwords stay taken.
    pub(crate) fn hold(&mut self, dwords: u64) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = frame.next.saturating_sub(4 * dwords);
            frame.held = dwords;
        }
    }

    /// A packet that was held is gone through again.
    pub(crate) fn resume(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            let held = std::mem::take(&mut frame.held);
            if let Some(queue) = frame.queue() {
                let taken = &mut self.fetches[queue].taken;
                *taken = taken.saturating_sub(held);
            }
        }
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = StreamFrame> {
        self.frames.iter().map(|frame| StreamFrame {
            level: frame.level,
            iova: frame.base,
            next: frame.place(frame.next),
            left: frame.end.saturating_sub(frame.next) / 4,
        })
    }
}
