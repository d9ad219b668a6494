//! The streams of a hang as one list of packets, in the order they are executed.

use super::case::{AmdCase, AmdRing};
use super::cycle::{ChainWatch, IbCycle};
use super::evidence::evidence;
use super::writer::{self, WrittenRange};
use crate::report::{Evidence, Fact};
use unwedge_base::Dwords;
use unwedge_hw::amd::Amd;
use unwedge_stream::amd::{
    AmdEvent, AmdSink, AmdState, AmdStream, AmdWalker, Draw, DrawKind, Engine, Packet, Program, ShaderStage,
    Wait, in_order, reduce,
};
use unwedge_stream::{Flow, StreamPos, TroubleKind};

/// Packets that are kept at most: what a hang is about stands in the newest of them.
const MOST: usize = 1 << 18;

/// A packet of the list.
#[derive(Clone, Debug)]
pub(super) struct SeenPacket {
    pub(super) place: StreamPos,
    pub(super) raw: u32,
    /// Header and payload, in dwords.
    pub(super) len: usize,
    /// Place in the ring of the packet that calls the stream it stands in, in dwords.
    pub(super) ring_at: u64,
    /// The buffer it stands in; `None` for the ring.
    pub(super) buffer: Option<Called>,
    pub(super) name: Option<String>,
    /// It is padding.
    pub(super) filler: bool,
    pub(super) wait: Option<Wait>,
    pub(super) draw: Option<(u32, DrawKind)>,
    /// Shaders that registers point to, for what it starts.
    pub(super) programs: Vec<Program>,
    pub(super) trace: Option<u16>,
    /// Memory that it writes.
    pub(super) writes: Option<WrittenRange>,
    /// The value that it writes, of a packet that ends work with a fence.
    pub(super) fence: Option<u64>,
    /// A buffer that it calls.
    pub(super) calls: Option<Called>,
}

impl SeenPacket {
    /// The section it was read from.
    pub(super) fn section(&self) -> String {
        self.buffer.map_or("ring".to_owned(), |buffer| format!("IB at {:#x}", buffer.iova))
    }

    /// The packet as evidence.
    pub(super) fn evidence(&self) -> Evidence {
        let fact = Fact::Dwords {
            level: Some(self.place.level),
            first: Some(self.place.index as u64),
            count: self.len as u64,
            words: vec![self.raw],
            packet: self.name.clone(),
        };
        Evidence { iova: self.place.iova, ..evidence(self.section(), fact) }
    }
}

/// An indirect buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Called {
    pub(super) iova: u64,
    /// Dwords, as the packet says.
    pub(super) dwords: u32,
    pub(super) level: u8,
    /// The dump holds it.
    pub(super) held: bool,
}

impl Called {
    pub(super) fn contains(self, iova: u64) -> bool {
        (self.iova..self.iova.saturating_add(u64::from(self.dwords) * 4)).contains(&iova)
    }
}

/// What a walk of a ring gave.
#[derive(Default)]
pub(super) struct Walked {
    pub(super) packets: Vec<SeenPacket>,
    /// Dwords that are no packet: where, and how many.
    pub(super) garbage: Vec<(StreamPos, usize)>,
    /// The walk was given up, or packets were left out.
    pub(super) cut: bool,
    /// A chain of buffers that leads back to itself.
    pub(super) cycle: Option<IbCycle>,
}

struct Collect<'d, 'o> {
    amd: Amd<'d>,
    out: &'o mut Walked,
    /// Added to indices of the ring, and the ring's size: the walk starts somewhere in the middle.
    start: u64,
    size: u64,
    ring_at: u64,
    buffers: Vec<Called>,
    chains: ChainWatch,
}

impl Collect<'_, '_> {
    fn in_ring(&self, index: usize) -> u64 {
        let at = self.start.saturating_add(index as u64);
        if self.size == 0 { at } else { at % self.size }
    }

    fn packet(&mut self, packet: &Packet<'_>) {
        if self.out.packets.len() >= MOST {
            self.out.cut = true;
            return;
        }
        let name = packet.name(self.amd);
        if packet.place.level == 0 {
            self.ring_at = self.in_ring(packet.place.index);
        }
        let mut place = packet.place;
        if place.level == 0 {
            place.index = usize::try_from(self.ring_at).unwrap_or(place.index);
        }
        self.out.packets.push(SeenPacket {
            place,
            raw: packet.raw,
            len: packet.dwords.len(),
            ring_at: self.ring_at,
            buffer: self.buffers.last().copied().filter(|_| packet.place.level > 0),
            name: name.map(str::to_owned),
            filler: matches!(name, None | Some("NOP" | "SDMA_NOP" | "SIDMA_NOP")),
            wait: None,
            draw: None,
            programs: Vec::new(),
            trace: None,
            writes: WrittenRange::of(packet, self.amd, name),
            fence: writer::fence_value(packet, self.amd, name),
            calls: None,
        });
    }

    fn enter(&mut self, stream: &AmdStream<'_>, held: bool) -> Called {
        let called = Called { iova: stream.iova, dwords: stream.claimed, level: stream.level, held };
        if let Some(last) = self.out.packets.last_mut() {
            last.calls = Some(called);
        }
        called
    }
}

impl AmdSink for Collect<'_, '_> {
    fn event(&mut self, state: &AmdState, event: &AmdEvent<'_>) -> Flow {
        match event {
            AmdEvent::Packet(packet) => self.packet(packet),
            AmdEvent::Enter(stream) => {
                let called = self.enter(stream, true);
                if let Some(cycle) = self.chains.enter(stream, called, self.out.packets.last()) {
                    self.out.cycle.get_or_insert(cycle);
                    return Flow::Skip;
                }
                self.buffers.push(called);
            }
            AmdEvent::Leave(stream) => {
                self.chains.leave(stream);
                self.buffers.pop();
            }
            AmdEvent::Missing(stream) => drop(self.enter(stream, false)),
            AmdEvent::Draw(Draw { number, kind, .. }) => {
                if let Some(last) = self.out.packets.last_mut() {
                    let compute = matches!(kind, DrawKind::Dispatch | DrawKind::Task);
                    let own = |program: &Program| (program.stage == ShaderStage::Compute) == compute;
                    last.draw = Some((*number, *kind));
                    last.programs = state.programs(self.amd).filter(own).collect();
                }
            }
            AmdEvent::Wait(_, wait) => {
                if let Some(last) = self.out.packets.last_mut() {
                    last.wait = Some(*wait);
                }
            }
            AmdEvent::TracePoint(_, number) => {
                if let Some(last) = self.out.packets.last_mut() {
                    last.trace = Some(*number);
                }
            }
            AmdEvent::Trouble(trouble) => match trouble.kind {
                TroubleKind::BadHeader { skipped, .. } => self.out.garbage.push((trouble.place, skipped)),
                TroubleKind::BudgetSpent => self.out.cut = true,
                _ => {}
            },
            AmdEvent::RegWrite(_) => {}
        }
        Flow::Continue
    }
}

/// Dwords that a walk may take: each that there is some times over, for buffers that are called again.
fn budget(case: &AmdCase<'_>, ring: usize) -> u64 {
    case.memory.stored().saturating_add(ring as u64).saturating_mul(16).saturating_add(1 << 16)
}

impl Walked {
    /// Walks a ring from the oldest to the newest dword.
    pub(super) fn ring(case: &AmdCase<'_>, ring: &AmdRing<'_>, engine: Engine) -> Walked {
        let mut out = Walked::default();
        let Some(amd) = case.amd else { return out };
        let mut walker = AmdWalker::new(amd, engine, &case.memory);
        walker.budget = budget(case, ring.contents.len());
        let size = ring.contents.end();
        let start = ring.wptr.and_then(|wptr| reduce(wptr, ring.mask, size));
        match (ring.whole(), start) {
            (Some(dwords), Some(start)) if !dwords.is_empty() => {
                let (dwords, start) = in_order(dwords, start);
                out.walk(&mut walker, amd, &dwords, start, size);
            }
            _ => {
                for (offset, dwords) in ring.contents.runs() {
                    out.walk(&mut walker, amd, dwords, offset, 0);
                }
            }
        }
        out
    }

    fn walk(&mut self, walker: &mut AmdWalker<'_>, amd: Amd<'_>, dwords: &[u32], start: u64, size: u64) {
        let mut sink = Collect {
            amd,
            out: self,
            start,
            size,
            ring_at: start,
            buffers: Vec::new(),
            chains: ChainWatch::default(),
        };
        walker.walk(Dwords::from(dwords), None, &mut sink);
    }

    /// Walks buffers that no ring in the dump calls, one by one.
    pub(super) fn buffers(case: &AmdCase<'_>, engine: Engine) -> Walked {
        let mut out = Walked::default();
        let Some(amd) = case.amd else { return out };
        let mut walker = AmdWalker::new(amd, engine, &case.memory);
        walker.budget = budget(case, 0);
        for buffer in case.memory.buffers() {
            let Some(dwords) = buffer.dwords_at(buffer.iova) else { continue };
            let called = Called { iova: buffer.iova, dwords: dwords.len() as u32, level: 1, held: true };
            let mut sink = Collect {
                amd,
                out: &mut out,
                start: 0,
                size: 0,
                ring_at: 0,
                buffers: vec![called],
                chains: ChainWatch::inside(called),
            };
            walker.walk_at(1, dwords, Some(buffer.iova), &mut sink);
        }
        out
    }
}
