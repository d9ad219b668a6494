//! What micro engines remember of the packets they read, for dumps without the buffers that these stand in.

use super::case::{Case, Reg};
use super::position::Stop;
use super::stream::Walked;
use crate::prose::{Evidence, Finding};
use crate::report::{FindingKind, Trust};
use unwedge_stream::amd::{Engine, Header};

/// The FIFOs of headers that dumps list, and whose they are.
const FIFOS: [(&str, &str, Engine); 4] = [
    ("CP_ME_HEADER_DUMP", "the ME", Engine::Gfx),
    ("CP_PFP_HEADER_DUMP", "the PFP", Engine::Gfx),
    ("CP_MEC_ME1_HEADER_DUMP", "MEC 1", Engine::Compute),
    ("CP_MEC_ME2_HEADER_DUMP", "MEC 2", Engine::Compute),
];

/// Registers of one FIFO that are looked at: kernels list it eight times, for each XCC.
const MOST: usize = 64;

/// The packets that the engines of the ring remember, unless one of them was found in the stream.
pub(super) fn findings(case: &Case<'_>, stop: Option<&Stop>, walked: &Walked) -> Vec<Finding> {
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
    let remembered = |fifo: &(&str, &str, Engine)| remembered(case, walked, fifo.0, fifo.1);
    FIFOS.iter().filter(own).filter_map(remembered).collect()
}

fn remembered(case: &Case<'_>, walked: &Walked, register: &str, engine: &str) -> Option<Finding> {
    let mut headers: Vec<u32> =
        case.all(register).take(MOST).map(|reg| reg.value).filter(|&header| header != 0).collect();
    headers.dedup();
    let names: Vec<String> = headers.iter().map(|&header| name(case, header)).collect();
    let (title, why) = match names.as_slice() {
        [] => return None,
        [only] if walked.packets.iter().any(|packet| headers.contains(&packet.raw)) => {
            (format!("{engine} last read {only}"), "which of those that are in the dump, nothing says")
        }
        [only] => (format!("{engine} last read {only}"), "its parameters are not in the dump"),
        list => (
            format!("{engine} remembers {}", list.join(", ")),
            "the newest is at one end of the list: which one, nothing says",
        ),
    };
    let mut evidence: Vec<Evidence> = case.all(register).take(MOST).map(Reg::evidence).collect();
    evidence.dedup();
    evidence.truncate(8);
    Some(Finding {
        kind: FindingKind::Progress,
        trust: if names.len() == 1 { Trust::Likely } else { Trust::Possible },
        title,
        why: why.to_owned(),
        evidence,
    })
}

fn name(case: &Case<'_>, header: u32) -> String {
    let known = match Header::decode(header) {
        Some(Header::Type3 { opcode, .. }) => case.amd.and_then(|amd| amd.packet_name(opcode)),
        _ => None,
    };
    known.map_or_else(|| format!("{header:#010x}"), str::to_owned)
}
