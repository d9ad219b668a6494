//! What micro engines remember of the packets they read, for dumps without the buffers that these stand in.

use super::case::{AmdCase, Reg};
use super::position::AmdStop;
use super::stream::Walked;
use crate::args::Arg;
use crate::report::{Evidence, Fact, Finding, Subject, Trust};
use crate::rules::Rule;
use std::borrow::Cow;
use unwedge_stream::amd::{AmdPacketHeader, Engine};

/// The FIFOs of headers that dumps list, and whose they are.
const FIFOS: [(&str, &str, Engine); 4] = [
    ("CP_ME_HEADER_DUMP", "ME", Engine::Gfx),
    ("CP_PFP_HEADER_DUMP", "PFP", Engine::Gfx),
    ("CP_MEC_ME1_HEADER_DUMP", "MEC 1", Engine::Compute),
    ("CP_MEC_ME2_HEADER_DUMP", "MEC 2", Engine::Compute),
];

/// Registers of one FIFO that are looked at: kernels list it eight times, for each XCC.
const MOST: usize = 64;
/// Different headers that are evidence.
const SHOWN: usize = 8;

/// The packets that the engines of the ring remember, unless one of them was found in the stream.
pub(super) fn findings(case: &AmdCase<'_>, stop: Option<&AmdStop>, walked: &Walked) -> Vec<Finding> {
    if stop.is_some_and(|stop| stop.pinned) {
        return Vec::new();
    }
    // `comp_1.0.2`, on MI300 `comp_0.1.0.2`: the micro engine is the third from the end.
    let ring = case.hung.as_ref().map_or("", |hung| hung.ring);
    let other = match ring.rsplit(['.', '_']).nth(2) {
        Some("1") => "MEC 2",
        Some("2") => "MEC 1",
        _ => "",
    };
    let own = |fifo: &&(_, &str, Engine)| case.engine() == Some(fifo.2) && fifo.1 != other;
    let remembered = |fifo: &(&str, &'static str, Engine)| remembered(case, walked, fifo.0, fifo.1);
    FIFOS.iter().filter(own).filter_map(remembered).collect()
}

fn remembered(case: &AmdCase<'_>, walked: &Walked, register: &str, engine: &'static str) -> Option<Finding> {
    let mut headers: Vec<u32> =
        case.all(register).take(MOST).map(|reg| reg.value).filter(|&header| header != 0).collect();
    headers.dedup();
    let rule = if headers.len() == 1 { Rule::EngineLastRead } else { Rule::EngineRemembers };
    let trust = if headers.len() == 1 { Trust::Likely } else { Trust::Possible };
    if headers.is_empty() {
        return None;
    }
    let in_dump = walked.packets.iter().any(|packet| headers.contains(&packet.raw));
    let names: Vec<Arg> = headers.iter().map(|&header| name(case, header)).collect();
    let found = Finding::new(rule, trust, Subject::Block(engine.into())).with("packets", names);
    Some(found.with("in_dump", in_dump).seen(evidence(case, register)))
}

/// What a register that remembers packet headers holds, in the order of the dump: each header once for as often as it is listed in a
/// row.
pub(super) fn evidence(case: &AmdCase<'_>, register: &str) -> Vec<Evidence> {
    let regs: Vec<&Reg<'_>> = case.all(register).take(MOST).collect();
    let runs = regs.chunk_by(|a, b| a.value == b.value && a.section == b.section);
    let run = |run: &[&Reg<'_>]| {
        let reg = *run.first()?;
        let packet = packet_name(case, reg.value).map(str::to_owned);
        let register = Cow::Owned(reg.name.to_owned());
        let fact = Fact::PacketHeader { register, header: reg.value, packet, times: run.len() };
        Some(Evidence { span: reg.span, ..super::evidence::evidence(&*reg.section, fact) })
    };
    runs.filter_map(run).take(SHOWN).collect()
}

fn packet_name<'c>(case: &AmdCase<'c>, header: u32) -> Option<&'c str> {
    AmdPacketHeader::decode(header)?.name(case.amd?)
}

/// The packet of a header, or the header itself.
fn name(case: &AmdCase<'_>, header: u32) -> Arg {
    packet_name(case, header).map_or(Arg::Value(header.into()), |name| Arg::name(name.to_owned()))
}
