//! Which packet gave the CP an address where it faulted: the one at the stop, or the CP_SET_DRAW_STATE that set the group that
//! the CP was about to execute.
//!
//! Never: addresses that shaders, blits and draws compute.

use unwedge_base::Dwords;
use unwedge_stream::adreno::payload::{GroupEntry, IndirectBuffer};
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoWalker, Exec, Flow, GroupState, WalkerOptions,
};

use crate::adreno::case::AdrenoCase;
use crate::adreno::hang::{self, CpStop};
use crate::adreno::trace::{TracedPacket, packet_name};
use crate::args::{Arg, Args};
use unwedge_base::Generation;
use unwedge_hw::Gpu;

/// Bytes that a packet other than a call may reach from the address that it holds.
const REACH: u64 = 0x4000;

fn group_holds(set: GroupState, iova: u64) -> bool {
    iova.checked_sub(set.iova).is_some_and(|at| at < u64::from(set.count) * 4)
}

fn entry_holds(entry: GroupEntry, iova: u64) -> bool {
    match entry {
        GroupEntry::Set(_, set) | GroupEntry::LoadNow(_, set) => group_holds(set, iova),
        GroupEntry::DisableAll | GroupEntry::Disable(_) => false,
    }
}

/// Looks for the last CP_SET_DRAW_STATE before the stop with a group at an address.
struct GroupFinder<'g> {
    gpu: Gpu<'g>,
    iova: u64,
    stop: Option<u64>,
    passed: bool,
    found: Option<Args>,
}

impl AdrenoSink for GroupFinder<'_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let AdrenoEvent::Packet(packet) = event else { return Flow::Continue };
        self.passed |= self.stop.is_some() && packet.place.iova == self.stop;
        if self.passed || packet.op != AdrenoOp::SetDrawState || packet.exec == Exec::NotTaken {
            return Flow::Continue;
        }
        let generation = self.gpu.generation();
        let entries = (0..packet.payload.len()).step_by(GroupEntry::dwords(generation));
        let holds = |at| entry_holds(GroupEntry::parse(packet.payload.skip(at), generation), self.iova);
        if entries.into_iter().any(holds) {
            let name = packet_name(self.gpu, packet.header);
            self.found = Some(origin(&name, packet.place.iova, "draw-state"));
        }
        Flow::Continue
    }
}

fn origin(packet: &str, iova: Option<u64>, gives: &'static str) -> Args {
    Args::new()
        .with("packet", Arg::name(packet.to_owned()))
        .with_some("iova", iova.map(Arg::Address))
        .with("gives", Arg::name(gives))
}

/// What the packet at the stop holds of an address: `stream`, `draw-state` or `access`.
fn held(packet: &TracedPacket, iova: u64, generation: Generation) -> Option<&'static str> {
    let payload = Dwords::new(&packet.payload, packet.payload.len());
    let from = |at: usize| payload.get64(at).and_then(|address| iova.checked_sub(address & !3));
    match packet.op {
        AdrenoOp::None | AdrenoOp::Nop => None,
        AdrenoOp::IndirectBuffer | AdrenoOp::IndirectBufferPfd | AdrenoOp::IndirectBufferChain => {
            let bytes = u64::from(IndirectBuffer::parse(payload, generation)?.dwords()) * 4;
            from(0).filter(|&at| at < bytes).map(|_| "stream")
        }
        AdrenoOp::SetDrawState => {
            let entries = (0..payload.len()).step_by(GroupEntry::dwords(generation));
            let mut entries = entries.map(|at| GroupEntry::parse(payload.skip(at), generation));
            entries.any(|entry| entry_holds(entry, iova)).then_some("draw-state")
        }
        _ => (0..payload.len()).any(|at| from(at).is_some_and(|at| at < REACH)).then_some("access"),
    }
}

/// The packet that gave the CP an address: `packet`, `iova`, and `gives`: `stream`, `draw-state` or `access`.
pub(super) fn find(case: &AdrenoCase<'_>, stop: &CpStop, iova: u64) -> Option<Args> {
    let generation = case.gpu.generation();
    let packet = stop.scene.packet.as_ref().filter(|_| stop.reached && generation >= Generation::A5xx)?;
    if let Some(gives) = held(packet, iova, generation) {
        return Some(origin(&packet.name, packet.iova, gives));
    }
    if !packet.op.loads_groups() {
        return None;
    }
    let window = hang::walked(case, stop)?;
    let options = WalkerOptions { linear: false, budget: unwedge_stream::adreno::budget(&case.memory) / 4 };
    let mut finder = GroupFinder { gpu: case.gpu, iova, stop: stop.point.iova, passed: false, found: None };
    AdrenoWalker::new(case.gpu, &case.memory, options).walk(window.dwords(), window.iova, &mut finder);
    finder.found
}
