//! Streams that lead back to themselves: a chain of indirect buffers that never ends, a buffer that calls itself.
//!
//! Facts: CP_INDIRECT_BUFFER_CHAIN goes on elsewhere and does not come back; CP_INDIRECT_BUFFER comes back when the buffer
//! that it calls ends.

use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoStreamKind, AdrenoWalker, Exec, Flow, WalkerOptions,
};

use crate::adreno::case::{AdrenoCase, seen};
use crate::adreno::corrupt::section_of;
use crate::adreno::hang::{self, CpStop};
use crate::adreno::trace::packet_name;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use unwedge_hw::Gpu;

/// Streams of one chain that are remembered.
const MAX_CHAIN: usize = 1 << 12;

/// A stretch of memory that is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct StreamRange {
    iova: u64,
    dwords: u64,
}

impl StreamRange {
    fn holds(self, iova: u64) -> bool {
        iova.checked_sub(self.iova).is_some_and(|at| at < self.dwords.saturating_mul(4))
    }
}

/// A packet that leads back.
#[derive(Clone, Debug)]
struct Cycle {
    packet: String,
    /// Where the packet is.
    from: Option<u64>,
    /// Where it goes to.
    target: u64,
    chained: bool,
    exec: Exec,
    /// The streams that are executed over and over.
    streams: Vec<StreamRange>,
}

/// The streams around the current packet, the innermost last; each with those it was chained from.
struct CycleFinder<'g> {
    gpu: Gpu<'g>,
    stack: Vec<Vec<StreamRange>>,
    /// What the last stream was chained from, until the one it is chained to is entered.
    chain: Option<Vec<StreamRange>>,
    /// The packet that would call or chain: its name, address, and whether it chains.
    packet: Option<(String, Option<u64>, bool)>,
    found: Option<Cycle>,
}

impl AdrenoSink for CycleFinder<'_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if self.found.is_some() {
            return Flow::Skip;
        }
        match event {
            AdrenoEvent::Packet(packet) => {
                let chains = packet.op == AdrenoOp::IndirectBufferChain;
                let calls = matches!(
                    packet.op,
                    AdrenoOp::IndirectBuffer | AdrenoOp::IndirectBufferPfd | AdrenoOp::CondIndirectBufferPfe
                );
                if chains || calls {
                    self.packet = Some((packet_name(self.gpu, packet.header), packet.place.iova, chains));
                }
            }
            AdrenoEvent::Enter(stream) => {
                let iova = stream.iova.unwrap_or(0);
                let range = StreamRange { iova, dwords: stream.dwords.len() as u64 };
                let mut chain = self.chain.take().unwrap_or_default();
                if stream.kind == AdrenoStreamKind::Indirect && stream.exec != Exec::NotTaken {
                    let around = self.stack.iter().flatten().chain(&chain);
                    let streams: Vec<StreamRange> = around.copied().skip_while(|s| !s.holds(iova)).collect();
                    if !streams.is_empty() {
                        let (packet, from, chained) = self.packet.clone().unwrap_or_default();
                        self.found =
                            Some(Cycle { packet, from, target: iova, chained, exec: stream.exec, streams });
                        return Flow::Skip;
                    }
                    if chain.len() < MAX_CHAIN {
                        chain.push(range);
                    }
                }
                self.stack.push(chain);
            }
            AdrenoEvent::Leave(_) => {
                let left = self.stack.pop();
                let chains = self.packet.as_ref().is_some_and(|(_, from, chains)| {
                    let inside = |range: &StreamRange| from.is_some_and(|from| range.holds(from));
                    *chains && left.as_ref().and_then(|left| left.last()).is_some_and(inside)
                });
                self.chain = left.filter(|_| chains);
            }
            _ => {}
        }
        Flow::Continue
    }
}

/// A stream that leads back to itself, where the CP is in it.
pub(super) fn finding(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<Finding> {
    let window = hang::walked(case, stop)?;
    let options = WalkerOptions { linear: false, budget: unwedge_stream::adreno::budget(&case.memory) / 4 };
    let mut finder = CycleFinder { gpu: case.gpu, stack: Vec::new(), chain: None, packet: None, found: None };
    AdrenoWalker::new(case.gpu, &case.memory, options).walk(window.dwords(), window.iova, &mut finder);
    let cycle = finder.found?;
    let inside = |base: u64| cycle.streams.iter().any(|stream| stream.holds(base));
    if !stop.point.levels.iter().any(|level| level.level > 0 && inside(level.base)) {
        return None;
    }
    let trust = match cycle.exec {
        Exec::Always => Trust::Likely,
        _ => Trust::Possible,
    };
    let args = Args::new().with("target", Arg::Address(cycle.target));
    let evidence = Evidence {
        iova: cycle.from,
        ..seen(
            section_of(case, cycle.from),
            Fact::Record(args.with("packet", Arg::name(cycle.packet.clone()))),
        )
    };
    let subject = Subject::Packet { name: Some(cycle.packet.clone()), iova: cycle.from };
    Some(
        Finding::new(Rule::StreamLoops, trust, subject)
            .with("packet", Arg::name(cycle.packet))
            .with_some("from", cycle.from.map(Arg::Address))
            .with("target", Arg::Address(cycle.target))
            .with("chained", cycle.chained)
            .with("buffers", Arg::Number(cycle.streams.len() as u64))
            .seen([evidence]),
    )
}
