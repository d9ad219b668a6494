//! The streams of a set's submits: which stretches of memory hold packets, and what the walk knew at each packet.
//!
//! Walks are linear, as those of listing tools, so that draws have the numbers that listings give them. Never: changing anything.

use super::StreamEditor;
use std::collections::BTreeMap;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::payload::IndirectBuffer;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, Flow};

/// Dwords that the streams of a set may have in all.
const STREAM_DWORDS: u64 = 1 << 26;

/// A stretch of memory that is walked as a stream. Two of the same address and size are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// Address of the first dword.
    pub iova: u64,
    /// Dwords, as the packet says that calls it.
    pub dwords: u64,
    /// Why it is walked; of several reasons the first.
    pub kind: AdrenoStreamKind,
    /// IB level: 0 for what the capture submits.
    pub level: u8,
}

/// What the walk knew at a packet.
#[derive(Clone, Debug, Default)]
pub(super) struct PacketRecord {
    /// The submit that the first visit belongs to, as the capture counts.
    pub(super) submit: u32,
    /// Works before the first visit.
    pub(super) draws_before: u32,
    /// Numbers of the works that it starts.
    pub(super) works: Vec<u32>,
    /// Render modes in which it is executed.
    pub(super) modes: u8,
    /// The last CP_SET_MARKER or CP_SET_RENDER_MODE at the first visit.
    pub(super) marker: Option<u32>,
    pub(super) visits: u32,
}

/// The streams of a set.
#[derive(Debug, Default)]
pub(super) struct SetStreams {
    pub(super) ranges: Vec<StreamRange>,
    by_key: BTreeMap<(u64, u64), usize>,
    pub(super) packets: BTreeMap<u64, PacketRecord>,
    /// Number of the submit in the capture, address and dwords, of each that can be walked.
    pub(super) submits: Vec<WalkedSubmit>,
    dwords: u64,
    /// There was more than is held.
    pub(super) full: bool,
}

/// A submit whose stream is in the capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WalkedSubmit {
    /// Which one of the capture, from 0.
    pub number: u32,
    /// Which one of its set, from 0.
    pub in_set: usize,
    /// Address of its stream.
    pub iova: u64,
    /// Dwords of it.
    pub dwords: u32,
}

impl SetStreams {
    pub(super) fn find(&self, iova: u64, dwords: u64) -> Option<usize> {
        self.by_key.get(&(iova, dwords)).copied()
    }

    fn add(&mut self, range: StreamRange, present: usize) -> Option<usize> {
        if let Some(known) = self.find(range.iova, range.dwords) {
            return Some(known);
        }
        self.dwords = self.dwords.saturating_add(present as u64);
        if self.dwords > STREAM_DWORDS {
            self.full = true;
            return None;
        }
        let index = self.ranges.len();
        self.by_key.insert((range.iova, range.dwords), index);
        self.ranges.push(range);
        Some(index)
    }
}

/// Watches the walk of a submit.
pub(super) struct StreamCollector<'c, 'd> {
    pub(super) streams: &'c mut SetStreams,
    pub(super) editor: &'c mut dyn StreamEditor,
    pub(super) submit: u32,
    gpu: Gpu<'d>,
    /// The streams that the walk is in, outermost first; `None` for those that are not rewritten: packets inside a payload, and
    /// streams beyond the most that are held.
    stack: Vec<Option<usize>>,
    /// A chain was the last packet: where it leads.
    chain: Option<(u64, u64)>,
}

impl<'c, 'd> StreamCollector<'c, 'd> {
    /// In the stream of a submit.
    pub(super) fn new(
        streams: &'c mut SetStreams,
        editor: &'c mut dyn StreamEditor,
        gpu: Gpu<'d>,
        submit: WalkedSubmit,
        present: usize,
    ) -> StreamCollector<'c, 'd> {
        let WalkedSubmit { number, iova, dwords, .. } = submit;
        let kind = AdrenoStreamKind::Indirect;
        let first = streams.add(StreamRange { iova, dwords: dwords.into(), kind, level: 0 }, present);
        streams.submits.push(submit);
        StreamCollector { streams, editor, submit: number, gpu, stack: vec![first], chain: None }
    }

    fn packet(&mut self, state: &AdrenoState, iova: u64, op: AdrenoOp, words: unwedge_base::Dwords<'_>) {
        if let Some((target, dwords)) = self.chain.take()
            && target == iova
        {
            let (kind, level) = (AdrenoStreamKind::Indirect, state.level);
            let present = usize::try_from(dwords).unwrap_or(usize::MAX).min(1 << 20);
            let range = StreamRange { iova, dwords, kind, level };
            let chained = self.streams.add(range, present);
            if let Some(top) = self.stack.last_mut() {
                *top = chained;
            }
        }
        if op == AdrenoOp::IndirectBufferChain {
            let target = IndirectBuffer::parse(words.skip(1), self.gpu.generation());
            self.chain = target.map(|target| (target.iova, target.size.into()));
        }
        if self.stack.last().copied().flatten().is_none() {
            return;
        }
        let submit = self.submit;
        let record = self.streams.packets.entry(iova).or_insert_with(|| PacketRecord {
            submit,
            draws_before: state.draws,
            marker: state.marker,
            ..PacketRecord::default()
        });
        record.visits = record.visits.saturating_add(1);
        record.modes |= state.modes();
    }
}

impl AdrenoSink for StreamCollector<'_, '_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::Enter(stream) => {
                let range = stream.iova.map(|iova| {
                    let (kind, level) = (stream.kind, stream.level);
                    StreamRange { iova, dwords: stream.claimed, kind, level }
                });
                let own = range.filter(|range| range.kind != AdrenoStreamKind::Embedded);
                let entered = own.and_then(|range| self.streams.add(range, stream.dwords.len()));
                self.stack.push(entered);
            }
            AdrenoEvent::Leave(_) => {
                self.stack.pop();
                self.chain = None;
            }
            AdrenoEvent::Packet(packet) => {
                if let Some(iova) = packet.place.iova {
                    self.packet(state, iova, packet.op, packet.dwords);
                }
            }
            AdrenoEvent::Draw(draw) => {
                if let Some(iova) = draw.packet.place.iova
                    && let Some(record) = self.streams.packets.get_mut(&iova)
                {
                    record.works.push(draw.number);
                }
            }
            _ => {}
        }
        self.editor.watch(self.gpu, self.submit, state, event);
        Flow::Continue
    }
}
