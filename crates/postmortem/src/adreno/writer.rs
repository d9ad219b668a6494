//! Which packets of a dump write a value to memory: who could still end a wait.
//!
//! Facts: the layouts of the packets that write memory on GPUs with 64-bit addresses. Never: what shaders, blits and
//! resolves write; that is not known without running them.

use unwedge_base::Generation;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoWalker, Exec, Flow, Packet, Wait, WalkerOptions,
};

use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::{self, CpStop};
use crate::adreno::trace::packet_name;
use crate::args::{Arg, Args};
use crate::awaited::{AwaitedWrite, WaitEnd, WriterOrder};
use unwedge_hw::Gpu;

/// Writes that are kept of a ring: the newest before the wait, and so many after it.
const MOST: usize = 64;

/// Looks for packets that write an address.
struct WriterFinder<'g, 'w> {
    gpu: Gpu<'g>,
    /// What is waited for; `None` where any write counts.
    wait: Option<&'w Wait>,
    awaited: u64,
    ring: u32,
    /// The packet that waits, in the ring that hangs.
    waits_at: Option<u64>,
    order: WriterOrder,
    found: Vec<AwaitedWrite>,
}

impl AdrenoSink for WriterFinder<'_, '_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let AdrenoEvent::Packet(packet) = event else { return Flow::Continue };
        if self.waits_at.is_some() && packet.place.iova == self.waits_at {
            self.order = WriterOrder::Later;
            return Flow::Continue;
        }
        if packet.exec == Exec::NotTaken || self.found.len() >= MOST && self.order != WriterOrder::Earlier {
            return Flow::Continue;
        }
        if let Some(value) = written(self.gpu, packet, self.awaited) {
            if self.order == WriterOrder::Earlier {
                // Only the newest counts.
                self.found.clear();
            }
            let order = match self.order {
                WriterOrder::Later => "later",
                WriterOrder::Elsewhere => "other-ring",
                WriterOrder::Earlier => "earlier",
            };
            let args = Args::new()
                .with("packet", Arg::name(packet_name(self.gpu, packet.header)))
                .with_some("iova", packet.place.iova.map(Arg::Address))
                .with("ring", Arg::Number(u64::from(self.ring)))
                .with("order", Arg::name(order));
            self.found.push(AwaitedWrite {
                order: self.order,
                args,
                value: value.map(u64::from),
                ends: self.wait.zip(value).map(|(wait, value)| wait.accepts(value)),
            });
        }
        Flow::Continue
    }
}

/// What a packet writes to the dword at an address: `None` where it does not write it, `Some(None)` where the packet does
/// not hold the value.
fn written(gpu: Gpu<'_>, packet: &Packet<'_>, awaited: u64) -> Option<Option<u32>> {
    let payload = packet.payload;
    let at = |i: usize| payload.get64(i).and_then(|iova| awaited.checked_sub(iova & !3));
    let holds = |i: usize, dwords: u64| at(i).filter(|&at| at < dwords.saturating_mul(4));
    let dword = |from: usize, at: u64| payload.get(from.checked_add(usize::try_from(at / 4).ok()?)?);
    let unknown = |written: Option<u64>| written.map(|_| None);
    match packet.op {
        AdrenoOp::MemWrite => holds(0, (payload.len() as u64).saturating_sub(2)).map(|at| dword(2, at)),
        AdrenoOp::EventWrite | AdrenoOp::EventWrite7 if payload.len() >= 4 => {
            let at = holds(1, 2)?;
            Some(if event_has_value(gpu, packet) { dword(3, at) } else { None })
        }
        AdrenoOp::RegToMem => unknown(holds(1, u64::from(payload.get(0).unwrap_or(0) >> 18 & 0xfff).max(1))),
        _ => match packet_name(gpu, packet.header).as_str() {
            "CP_MEM_TO_MEM" => unknown(holds(1, 2)),
            "CP_COND_WRITE5" => holds(5, 1).map(|_| payload.get(7)),
            "CP_WHERE_AM_I" | "CP_RECORD_PFP_TIMESTAMP" => unknown(holds(0, 2)),
            "CP_MEMCPY" => unknown(holds(3, u64::from(payload.get(0).unwrap_or(0)))),
            _ => None,
        },
    }
}

/// Whether an event writes what its packet holds, and not a counter or a clock.
fn event_has_value(gpu: Gpu<'_>, packet: &Packet<'_>) -> bool {
    let first = packet.payload.get(0).unwrap_or(0);
    if packet.op == AdrenoOp::EventWrite7 {
        // EV_WRITE_USER_32B and EV_WRITE_USER_64B, to memory.
        return first >> 20 & 7 <= 1 && first >> 24 & 1 == 0;
    }
    let event = gpu.enumeration("vgt_event_type").and_then(|e| e.name_of(u64::from(first & 0xff)));
    // Bit 30 asks for the counter of the clock.
    first >> 30 & 1 == 0 && event.is_some_and(|name| name.ends_with("_TS"))
}

/// The packets that write an address, which the packet at the stop may wait for, looked for in all rings and what they
/// call. `None` on GPUs with 32-bit addresses, whose packets are not looked at.
pub(super) fn find(
    case: &AdrenoCase<'_>,
    stop: &CpStop,
    wait: Option<&Wait>,
    awaited: u64,
) -> Option<WaitEnd> {
    if case.gpu.generation() < Generation::A5xx {
        return None;
    }
    let mut found: Vec<AwaitedWrite> = Vec::new();
    let budget = unwedge_stream::adreno::budget(&case.memory) / 4;
    for (i, ring) in case.dump.rings.iter().enumerate() {
        let hung = i == stop.ring;
        let order = if hung { WriterOrder::Earlier } else { WriterOrder::Elsewhere };
        let waits_at = stop.point.iova.filter(|_| hung);
        let (gpu, ring_id) = (case.gpu, ring.id);
        let mut finder =
            WriterFinder { gpu, wait, awaited, ring: ring_id, waits_at, order, found: Vec::new() };
        let mut walker = AdrenoWalker::new(case.gpu, &case.memory, WalkerOptions { linear: false, budget });
        if hung {
            let window = hang::walked(case, stop)?;
            walker.walk(window.dwords(), window.iova, &mut finder);
        } else if let Some(contents) = case.memory.dwords(ring.iova) {
            walker.walk(contents, Some(ring.iova), &mut finder);
        }
        found.append(&mut finder.found);
    }
    Some(WaitEnd::of(&found))
}
