//! Which of the pending submits the CP was in: the kernel ends each in the ring with an event that writes its fence.
//!
//! Facts: `a*xx_submit` of the msm driver: CP_EVENT_WRITE with the address of the fence and its value. Never: a fence that the
//! kernel does not count as pending.

use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoWalker, Flow, WalkerOptions,
};

use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::{self, CpStop};

/// Looks for the first event that writes a pending fence.
struct FenceFinder {
    retired: u32,
    open: u32,
    found: Option<u32>,
}

impl AdrenoSink for FenceFinder {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        if let AdrenoEvent::Packet(packet) = event
            && self.found.is_none()
            && matches!(packet.op, AdrenoOp::EventWrite | AdrenoOp::EventWrite7)
        {
            // Event, address of one or two dwords, value; a packet of one dword writes nothing.
            let payload = packet.payload;
            let value = (payload.len() >= 3).then(|| payload.get(payload.len() - 1)).flatten();
            self.found = value.filter(|value| (1..=self.open).contains(&value.wrapping_sub(self.retired)));
        }
        // What the kernel writes is in the ring itself.
        if matches!(event, AdrenoEvent::Enter(_)) { Flow::Skip } else { Flow::Continue }
    }
}

/// The fence of the submit that the CP was in, and its place among those pending, counted from 1. `None` where the ring does not
/// tell.
pub(super) fn hung(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<(u32, u32)> {
    let ring = case.dump.rings.get(stop.ring)?;
    let (last, retired) = (ring.last_fence?, ring.retired_fence?);
    let open = last.wrapping_sub(retired);
    let level = stop.point.levels.first().filter(|level| level.level == 0)?;
    let window = hang::part_of_ring(case, stop.ring, level.range.0, u64::from(ring.wptr?))?;
    let mut finder = FenceFinder { retired, open, found: None };
    let options = WalkerOptions { linear: false, budget: unwedge_stream::adreno::budget(&case.memory) / 4 };
    AdrenoWalker::new(case.gpu, &case.memory, options).walk(window.dwords(), window.iova, &mut finder);
    let fence = finder.found?;
    Some((fence, fence.wrapping_sub(retired)))
}
