//! Where the BV thread of a7xx stopped, and whether it waits for a value that is not there.
//!
//! Dumps have no registers of what BV fetches: drivers do not know their names. CP_BV_SQE_STAT remembers the headers that its SQE has
//! taken, and the stretch of the ring that was walked for BR is looked through for packets that fit. Facts: as for BR; CP_THREAD_CONTROL says which
//! threads take the packets after it. Never: BR's position.

use unwedge_base::Generation;
use unwedge_stream::WaitOperand;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_stream::adreno::{
    AdrenoEvent, AdrenoOp, AdrenoSink, AdrenoState, AdrenoWalker, Flow, Packet, Wait, WalkerOptions,
};

use crate::adreno::case::{AdrenoCase, register, seen};
use crate::adreno::corrupt::section_of;
use crate::adreno::hang::{self, CpStop};
use crate::adreno::sqe::SqeStat;
use crate::adreno::trace::packet_name;
use crate::adreno::wait;
use crate::args::{Arg, Args};
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;

/// Packets that fit which are remembered.
const MOST: usize = 64;
/// The bits of CP_THREAD_CONTROL that choose threads, and the one of BV among them.
const THREADS: u32 = 3;
const BV: u32 = 2;

/// A packet that BV may be in.
struct BvPacket {
    name: String,
    iova: Option<u64>,
    op: AdrenoOp,
    payload: Vec<u32>,
    /// Headers before it that are those that its SQE took before, in their order.
    agree: usize,
}

/// Looks for packets that BV takes and that have the header which its SQE is at.
struct BvFinder<'f> {
    case: &'f AdrenoCase<'f>,
    stat: &'f SqeStat,
    /// BV takes packets.
    selected: bool,
    /// Headers that it has taken, the newest first.
    before: Vec<u32>,
    found: Vec<BvPacket>,
}

impl BvFinder<'_> {
    fn take(&mut self, packet: &Packet<'_>) {
        if packet.raw == self.stat.header() && self.found.len() < MOST {
            let pairs = self.stat.previous.iter().zip(&self.before);
            self.found.push(BvPacket {
                name: packet_name(self.case.gpu, packet.header),
                iova: packet.place.iova,
                op: packet.op,
                payload: packet.payload.take(16).iter().collect(),
                agree: pairs.take_while(|(taken, before)| taken == before).count(),
            });
        }
        self.before.insert(0, packet.raw);
        self.before.truncate(self.stat.previous.len());
    }
}

impl AdrenoSink for BvFinder<'_> {
    fn event(&mut self, _state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        let AdrenoEvent::Packet(packet) = event else { return Flow::Continue };
        // The SQE remembers operations.
        let operation = matches!(packet.header, AdrenoPacketHeader::Operation { .. });
        if operation && self.selected {
            self.take(packet);
        }
        if packet.op == AdrenoOp::ThreadControl {
            self.selected = packet.payload.get(0).is_none_or(|word| word & THREADS & BV != 0);
        }
        Flow::Continue
    }
}

/// The wait for a value in memory or a register that BV is in, where the dump does not have that value.
pub(super) fn finding(case: &AdrenoCase<'_>, stop: &CpStop) -> Option<Finding> {
    if case.gpu.generation() < Generation::A7xx {
        return None;
    }
    let (words, source) = case.indexed("CP_BV_SQE_STAT")?;
    let stat = SqeStat::parse(&words).filter(|stat| stat.confirmed)?;
    let window = hang::walked(case, stop)?;
    let options = WalkerOptions { linear: false, budget: unwedge_stream::adreno::budget(&case.memory) / 4 };
    let mut finder = BvFinder { case, stat: &stat, selected: true, before: Vec::new(), found: Vec::new() };
    AdrenoWalker::new(case.gpu, &case.memory, options).walk(window.dwords(), window.iova, &mut finder);
    let best = finder.found.iter().map(|packet| packet.agree).max()?;
    let fitting = finder.found.iter().filter(|packet| packet.agree == best);
    let unmet = |packet: &&BvPacket| {
        let wait = Wait::parse(packet.op, &packet.payload, case.gpu.generation())?;
        let now = wait::now(&wait, case);
        (!now.is_some_and(|now| wait.accepts(now))).then_some((wait, now))
    };
    let mut waits = fitting.clone().filter_map(|packet| Some((packet, unmet(&packet)?)));
    let (packet, (wait, now)) = waits.next()?;
    // Both threads take most packets: where BR is in this one, it is the wait of BR.
    if packet.iova.is_some() && packet.iova == stop.point.iova {
        return None;
    }
    let alone = waits.next().is_none() && best == stat.previous.len();
    let trust = if alone { Trust::Likely } else { Trust::Possible };
    let wanted = wait::args(&wait, case);
    let awaited = now.map(|now| match wait.operand {
        WaitOperand::Memory(iova) => {
            let fact = Fact::Dwords { level: None, first: None, count: 1, words: vec![now], packet: None };
            Evidence { iova: Some(iova), ..seen(section_of(case, Some(iova)), fact) }
        }
        _ => seen("registers", register(wanted.text("register").unwrap_or_default(), u64::from(now))),
    });
    let own = Args::new()
        .with("packet", Arg::name(packet.name.clone()))
        .with("waits_for", Arg::Record(wanted.clone()));
    let own = Evidence { iova: packet.iova, ..seen(section_of(case, packet.iova), Fact::Record(own)) };
    let subject = Subject::Packet { name: Some(packet.name.clone()), iova: packet.iova };
    let header = register("$01", u64::from(stat.header()));
    Some(
        Finding::new(Rule::BvWaitsForValue, trust, subject)
            .with("packet", Arg::name(packet.name.clone()))
            .with("waits_for", Arg::Record(wanted))
            .with_some("iova", packet.iova.map(Arg::Address))
            .with_some("value", now.map(|now| Arg::Value(u64::from(now))))
            .with("places", Arg::Number(fitting.count() as u64))
            .seen([own, Evidence { fact: header, ..source }])
            .seen(awaited),
    )
}
