//! A thread of the command processor: the streams it is in, and what decides which packets it takes.

use super::super::groups_state::Groups;
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
    /// The ring, or a buffer that CP_INDIRECT_BUFFER names.
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
    /// Where conditions end, and whether they hold; innermost last.
    conditions: Vec<(u64, bool)>,
    pub(crate) bins: Option<BinLoop>,
    pub(crate) table: Option<TableLoop>,
}

impl Frame {
    pub(crate) fn new(kind: FrameKind, level: u8, iova: u64, dwords: u32) -> Frame {
        let end = iova.saturating_add(4 * u64::from(dwords));
        Frame { kind, level, base: iova, next: iova, end, conditions: Vec::new(), bins: None, table: None }
    }

    fn taken(&mut self) -> bool {
        let next = self.next;
        self.conditions.retain(|&(end, _)| next < end);
        self.conditions.iter().all(|&(_, holds)| holds)
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
    pub(crate) iova: u64,
    /// Dwords from there to the end of the stream.
    pub(crate) left: u64,
    pub(crate) taken: bool,
}

/// What CP_DRAW_PRED_* packets set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DrawPredicate {
    pub(crate) global: bool,
    pub(crate) local: bool,
    pub(crate) passes: bool,
}

/// A thread.
#[derive(Clone, Debug)]
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
    /// How often it has come to a place where threads meet.
    pub(crate) met: u64,
    /// It stands at one.
    pub(crate) meets: bool,
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
            met: 0,
            meets: false,
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
                return Some(NextPacket { iova, left, taken });
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
        }
    }

    /// The packet at an address of the innermost stream is the next one again.
    pub(crate) fn return_to(&mut self, iova: u64) {
        if let Some(frame) = self.frames.last_mut() {
            frame.next = iova;
        }
    }

    pub(crate) fn positions(&self) -> impl Iterator<Item = StreamFrame> {
        self.frames.iter().map(|frame| StreamFrame {
            level: frame.level,
            iova: frame.base,
            next: frame.next,
            left: frame.end.saturating_sub(frame.next) / 4,
        })
    }
}
