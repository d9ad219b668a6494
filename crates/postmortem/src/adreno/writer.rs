//! Which packets of a dump write a value to memory: who could still end a wait.
//!
//! Facts: the layouts of the packets that write memory on GPUs with 64-bit addresses. Never: what shaders, blits and
//! resolves write; that is not known without running them.

use unwedge_base::Generation;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoWalker, Exec, Flow, Packet, WalkerOptions,
};

use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::{self, CpStop};
use crate::adreno::trace::packet_name;
use crate::args::{Arg, Args};
use unwedge_hw::Gpu;

/// Which packet writes the awaited memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MemoryWriter {
    packet: String,
    iova: Option<u64>,
    ring: u32,
    order: WriterOrder,
}

/// Where a writer is, seen from the packet that waits. The order is that in which they count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum WriterOrder {
    /// After it in the same stream: it is never reached.
    Later,
    /// In another ring, which may still run.
    OtherRing,
    /// Before it in the same stream.
    Earlier,
}

impl MemoryWriter {
    pub(super) fn order(&self) -> WriterOrder {
        self.order
    }

    /// `packet`, `iova`, `ring`, `order`.
    pub(super) fn args(&self) -> Args {
        let order = match self.order {
            WriterOrder::Later => "later",
            WriterOrder::OtherRing => "other-ring",
            WriterOrder::Earlier => "earlier",
        };
        Args::new()
            .with("packet", Arg::name(self.packet.clone()))
            .with_some("iova", self.iova.map(Arg::Address))
            .with("ring", Arg::Number(u64::from(self.ring)))
            .with("order", Arg::name(order))
    }
}

/// Looks for packets that write an address.
struct WriterFinder<'g> {
    gpu: Gpu<'g>,
    awaited: u64,
    ring: u32,
    /// The packet that waits, in the ring that hangs.
    waits_at: Option<u64>,
    order: WriterOrder,
    found: Vec<MemoryWriter>,
}

impl AdrenoSink for WriterFinder<'_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let AdrenoEvent::Packet(packet) = event else { return Flow::Continue };
        if self.waits_at.is_some() && packet.place.iova == self.waits_at {
            self.order = WriterOrder::Later;
            return Flow::Continue;
        }
        if packet.exec == Exec::NotTaken || self.found.iter().any(|w| w.order == self.order) {
            return Flow::Continue;
        }
        if writes(self.gpu, packet, self.awaited) {
            let (packet, iova) = (packet_name(self.gpu, packet.header), packet.place.iova);
            self.found.push(MemoryWriter { packet, iova, ring: self.ring, order: self.order });
        }
        Flow::Continue
    }
}

/// Whether a packet writes the dword at an address.
fn writes(gpu: Gpu<'_>, packet: &Packet<'_>, awaited: u64) -> bool {
    let payload = packet.payload;
    let starts_at = |i: usize| payload.get64(i).is_some_and(|iova| iova & !3 == awaited);
    let holds = |i: usize, dwords: u64| {
        let from = payload.get64(i).map(|iova| iova & !3);
        from.and_then(|from| awaited.checked_sub(from)).is_some_and(|at| at < dwords.saturating_mul(4))
    };
    match packet.op {
        AdrenoOp::MemWrite => holds(0, (payload.len() as u64).saturating_sub(2)),
        AdrenoOp::EventWrite | AdrenoOp::EventWrite7 => payload.len() >= 4 && holds(1, 2),
        AdrenoOp::RegToMem => holds(1, u64::from(payload.get(0).unwrap_or(0) >> 18 & 0xfff).max(1)),
        _ => match packet_name(gpu, packet.header).as_str() {
            "CP_MEM_TO_MEM" => holds(1, 2),
            "CP_COND_WRITE5" => starts_at(5),
            "CP_WHERE_AM_I" | "CP_RECORD_PFP_TIMESTAMP" => holds(0, 2),
            "CP_MEMCPY" => holds(3, u64::from(payload.get(0).unwrap_or(0))),
            _ => false,
        },
    }
}

/// The packet that writes the memory which the packet at the stop waits for, looked for in all rings and what they call;
/// `Some(None)`: none does. `None` on GPUs with 32-bit addresses, whose packets are not looked at.
pub(super) fn find(case: &AdrenoCase<'_>, stop: &CpStop, awaited: u64) -> Option<Option<MemoryWriter>> {
    if case.gpu.generation() < Generation::A5xx {
        return None;
    }
    let mut found: Vec<MemoryWriter> = Vec::new();
    let budget = unwedge_stream::adreno::budget(&case.memory) / 4;
    for (i, ring) in case.dump.rings.iter().enumerate() {
        let hung = i == stop.ring;
        let order = if hung { WriterOrder::Earlier } else { WriterOrder::OtherRing };
        let waits_at = stop.point.iova.filter(|_| hung);
        let mut finder =
            WriterFinder { gpu: case.gpu, awaited, ring: ring.id, waits_at, order, found: Vec::new() };
        let mut walker = AdrenoWalker::new(case.gpu, &case.memory, WalkerOptions { linear: false, budget });
        if hung {
            let window = hang::walked(case, stop)?;
            walker.walk(window.dwords(), window.iova, &mut finder);
        } else if let Some(contents) = case.memory.dwords(ring.iova) {
            walker.walk(contents, Some(ring.iova), &mut finder);
        }
        found.append(&mut finder.found);
    }
    Some(found.into_iter().min_by_key(MemoryWriter::order))
}
