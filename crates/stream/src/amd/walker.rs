//! The walk itself: packet after packet, into indirect buffers and out again, within bounds.

use super::ops::{self, AmdOp, Effect, IbCall, Skip};
use super::packet::Packet;
use super::{AmdEvent, AmdPacketHeader, AmdSink, AmdState, AmdStream, AmdStreamKind, Engine, header};
use crate::{Exec, Flow, StreamPos, Trouble, TroubleKind, budget};
use unwedge_base::{Dwords, Memory};
use unwedge_hw::amd::Amd;

/// IB levels below the ring that hardware has.
const MAX_LEVEL: u8 = 2;
/// Buffers that may follow each other by chaining, in one stream.
const MAX_CHAIN: u32 = 1 << 16;
/// What looking a buffer up and entering it costs, in dwords.
const STREAM: u64 = 16;

/// Walks streams of one engine, keeping state from one stream to the next.
pub struct AmdWalker<'w> {
    /// Names packets and registers.
    pub amd: Amd<'w>,
    /// Where indirect buffers are looked up.
    pub memory: &'w Memory,
    /// What reads the streams.
    pub engine: Engine,
    /// What the packets so far have done.
    pub state: AmdState,
    /// Dwords to walk before giving up: bounds buffers that call each other.
    pub budget: u64,
    pub(super) ops: [AmdOp; 256],
    spent: u64,
    stopped: bool,
}

/// A stream being walked.
struct AmdFrame<'a> {
    dwords: Dwords<'a>,
    iova: Option<u64>,
    level: u8,
    exec: Exec,
    /// Up to here, packets depend on the condition of an earlier one.
    skip_end: usize,
    skip: Exec,
}

impl AmdFrame<'_> {
    fn place(&self, index: usize) -> StreamPos {
        let offset = (index as u64).saturating_mul(4);
        StreamPos { level: self.level, iova: self.iova.map(|iova| iova.saturating_add(offset)), index }
    }

    fn exec_at(&self, index: usize) -> Exec {
        if index < self.skip_end { self.exec.and(self.skip) } else { self.exec }
    }
}

impl<'w> AmdWalker<'w> {
    /// A walker with nothing written yet.
    pub fn new(amd: Amd<'w>, engine: Engine, memory: &'w Memory) -> AmdWalker<'w> {
        AmdWalker {
            amd,
            memory,
            engine,
            state: AmdState::default(),
            budget: budget(memory),
            ops: ops::table(amd),
            spent: 0,
            stopped: false,
        }
    }

    /// Walks a ring, or a copy of one. `iova` is where its first dword lies, if that is known.
    pub fn walk(&mut self, dwords: Dwords<'_>, iova: Option<u64>, sink: &mut dyn AmdSink) {
        self.walk_at(0, dwords, iova, sink);
    }

    /// Walks a buffer that is called at this IB level. There is no [`AmdEvent::Enter`] for it.
    pub fn walk_at(&mut self, level: u8, dwords: Dwords<'_>, iova: Option<u64>, sink: &mut dyn AmdSink) {
        let frame = AmdFrame { dwords, iova, level, exec: Exec::Always, skip_end: 0, skip: Exec::Always };
        self.run(frame, sink);
        self.state.level = 0;
    }

    /// Walks a stream, and those that chaining puts in its place.
    fn run(&mut self, frame: AmdFrame<'_>, sink: &mut dyn AmdSink) {
        let mut chained = self.packets(frame, sink);
        for _ in 0..MAX_CHAIN {
            let Some(stream) = chained.take() else { break };
            if sink.event(&self.state, &AmdEvent::Enter(stream)) == Flow::Skip {
                break;
            }
            chained = self.packets(frame_of(&stream), sink);
            sink.event(&self.state, &AmdEvent::Leave(stream));
        }
    }

    /// Walks the packets of a stream; returns the buffer that takes its place.
    fn packets(&mut self, mut frame: AmdFrame<'_>, sink: &mut dyn AmdSink) -> Option<AmdStream<'w>> {
        let mut at = 0;
        while at < frame.dwords.len() && !self.stopped {
            self.state.level = frame.level;
            let place = frame.place(at);
            let rest = frame.dwords.skip(at);
            let raw = rest.get(0).unwrap_or(0);
            let Some(header) = AmdPacketHeader::decode_for(self.amd, self.engine, rest) else {
                at = self.resynchronize(&frame, at, raw, sink);
                continue;
            };
            let claimed = header.count() as usize;
            let payload = rest.skip(1).take(claimed);
            if !self.spend(payload.len() as u64 + 1, place, sink) {
                break;
            }
            let mut exec = frame.exec_at(at);
            if AmdWalker::predicated(&header, self.engine) {
                exec = exec.and(Exec::Unknown);
            }
            let dwords = rest.take(payload.len().saturating_add(1));
            let packet = Packet { place, raw, header, engine: self.engine, payload, dwords, exec };
            sink.event(&self.state, &AmdEvent::Packet(packet));
            let next = at.saturating_add(claimed).saturating_add(1);
            if payload.len() < claimed {
                let (claimed, present) = (header.count(), payload.len() as u32);
                self.trouble(place, TroubleKind::CutPacket { claimed, present }, sink);
            }
            match self.execute(&packet, sink) {
                Effect::None => {}
                Effect::Skip(Skip { dwords, exec }) => {
                    frame.skip_end = next.saturating_add(dwords);
                    frame.skip = exec;
                }
                Effect::Call(call) => {
                    if let Some(stream) = self.call(&call, &packet, sink) {
                        return Some(stream);
                    }
                    self.state.level = frame.level;
                }
            }
            at = next;
        }
        None
    }

    /// Goes into a buffer, or returns it when the stream ends with it.
    fn call(&mut self, call: &IbCall, packet: &Packet<'_>, sink: &mut dyn AmdSink) -> Option<AmdStream<'w>> {
        let place = packet.place;
        if packet.exec == Exec::NotTaken || !self.spend(STREAM, place, sink) {
            return None;
        }
        let level = match call.kind {
            AmdStreamKind::Chain => place.level,
            AmdStreamKind::Call | AmdStreamKind::Constant => place.level.saturating_add(1),
        };
        if level > MAX_LEVEL {
            self.trouble(place, TroubleKind::TooDeep, sink);
            return None;
        }
        let claimed = call.size as usize;
        let held = self.memory.dwords(call.iova).filter(|_| claimed != 0);
        let dwords = held.unwrap_or_default().take(claimed);
        let stream = AmdStream {
            kind: call.kind,
            level,
            iova: call.iova,
            claimed: call.size,
            dwords,
            exec: packet.exec,
        };
        if held.is_none() {
            if claimed != 0 {
                sink.event(&self.state, &AmdEvent::Missing(stream));
            }
            return None;
        }
        if dwords.len() < claimed {
            let (claimed, present) = (claimed as u64, dwords.len() as u64);
            self.trouble(place, TroubleKind::CutStream { claimed, present }, sink);
        }
        if call.kind == AmdStreamKind::Chain {
            return Some(stream);
        }
        if sink.event(&self.state, &AmdEvent::Enter(stream)) == Flow::Continue {
            self.run(frame_of(&stream), sink);
            sink.event(&self.state, &AmdEvent::Leave(stream));
        }
        None
    }

    /// Finds the next plausible packet behind garbage.
    fn resynchronize(&mut self, frame: &AmdFrame<'_>, at: usize, raw: u32, sink: &mut dyn AmdSink) -> usize {
        let end = frame.dwords.len();
        let mut next = at.saturating_add(1);
        while next < end && !header::plausible(self.amd, self.engine, frame.dwords.skip(next)) {
            next += 1;
        }
        let skipped = next - at;
        let place = frame.place(at);
        self.spend(skipped as u64, place, sink);
        self.trouble(place, TroubleKind::BadHeader { raw, skipped, resynced: next < end }, sink);
        next
    }

    fn trouble(&self, place: StreamPos, kind: TroubleKind, sink: &mut dyn AmdSink) {
        sink.event(&self.state, &AmdEvent::Trouble(Trouble { place, kind }));
    }

    fn spend(&mut self, dwords: u64, place: StreamPos, sink: &mut dyn AmdSink) -> bool {
        self.spent = self.spent.saturating_add(dwords);
        if self.spent > self.budget && !self.stopped {
            self.stopped = true;
            self.trouble(place, TroubleKind::BudgetSpent, sink);
        }
        !self.stopped
    }
}

fn frame_of<'a>(stream: &AmdStream<'a>) -> AmdFrame<'a> {
    AmdFrame {
        dwords: stream.dwords,
        iova: Some(stream.iova),
        level: stream.level,
        exec: stream.exec,
        skip_end: 0,
        skip: Exec::Always,
    }
}
