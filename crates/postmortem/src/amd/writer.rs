//! Which packets of a dump write memory: who could still end a wait, and who wrote an address that faults.
//!
//! Facts: the layouts of the packets that write memory themselves. Never: what shaders and attachments write; that is not
//! known without running them.

use super::case::{AmdCase, engine_of};
use super::stream::{SeenPacket, Walked};
use unwedge_hw::amd::Amd;
use unwedge_stream::amd::Packet;

/// Memory that a packet writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenRange {
    pub(super) iova: u64,
    pub(super) bytes: u64,
    /// Its first dwords, where the packet holds what it writes.
    first: [Option<u32>; 2],
}

impl WrittenRange {
    /// The range of a packet; `None` for those that write none, or that the facts have no layout of.
    pub(super) fn of(packet: &Packet<'_>, amd: Amd<'_>, name: Option<&str>) -> Option<WrittenRange> {
        let get = |field| packet.get(amd, field);
        let payload = packet.payload.len() as u64;
        let name = name?;
        let (iova, bytes) = match name {
            "RELEASE_MEM" | "ATOMIC_MEM" | "EVENT_WRITE_ZPASS" => (get("ADDR")?, 8),
            "SDMA_FENCE" => (get("ADDR")?, 4),
            "EVENT_WRITE_EOP" | "EVENT_WRITE_EOS" | "SIDMA_FENCE" => {
                (packet.split_address(amd, "ADDR_LO", "ADDR_HI")?, 8)
            }
            "WRITE_DATA" if [1, 2, 5].contains(&get("DST_SEL")?) => {
                let dwords = if get("WR_ONE_ADDR") == Some(1) { 1 } else { payload.saturating_sub(3) };
                (get("DST_ADDR")?, dwords.saturating_mul(4))
            }
            "COPY_DATA" if [1, 2, 5].contains(&get("DST_SEL")?) => {
                (get("DST")?, if get("COUNT_SEL") == Some(1) { 8 } else { 4 })
            }
            "DMA_DATA" if [0, 3].contains(&get("DST_SEL")?) && get("DAS") != Some(1) => {
                (get("DST")?, get("BYTE_COUNT")?)
            }
            "CP_DMA" if get("DST_SEL")? == 0 && get("DAS") != Some(1) => {
                (packet.split_address(amd, "DST_ADDR_LO", "DST_ADDR_HI")?, get("BYTE_COUNT")?)
            }
            "SDMA_WRITE_LINEAR" => (get("DST_ADDR")?, payload.saturating_sub(3).saturating_mul(4)),
            // Whether it counts one less than the bytes depends on the generation.
            "SDMA_COPY_LINEAR" => (get("DST_ADDR")?, get("COUNT")?.saturating_add(1)),
            _ => return None,
        };
        Some(WrittenRange { iova: iova & !3, bytes, first: first_dwords(packet, amd, name) })
    }

    /// What it writes to the dword at an address, where the packet holds that.
    pub(super) fn dword(self, iova: u64) -> Option<u32> {
        let at = (iova & !3).checked_sub(self.iova)? / 4;
        self.first.get(usize::try_from(at).ok()?).copied().flatten()
    }

    /// Whether it writes the dword at an address.
    pub(super) fn holds(self, iova: u64) -> bool {
        (iova & !3).checked_sub(self.iova).is_some_and(|at| at < self.bytes)
    }
}

/// The first dwords that a packet writes: those that it holds.
fn first_dwords(packet: &Packet<'_>, amd: Amd<'_>, name: &str) -> [Option<u32>; 2] {
    let get = |field| packet.get(amd, field);
    let low = |value: Option<u64>| value.map(|value| value as u32);
    let both = |value: Option<u64>| [low(value), low(value.map(|value| value >> 32))];
    let payload = |i: usize| packet.payload.get(i);
    match name {
        "RELEASE_MEM" | "EVENT_WRITE_EOP" => match get("DATA_SEL") {
            Some(1) => [low(get("DATA")), None],
            Some(2) => both(get("DATA")),
            _ => [None; 2],
        },
        "SDMA_FENCE" | "SIDMA_FENCE" => [low(get("DATA")), None],
        "COPY_DATA" if get("SRC_SEL") == Some(5) => both(get("SRC")),
        // With one address for all, the last dword stays.
        "WRITE_DATA" if get("WR_ONE_ADDR") == Some(1) => {
            [packet.payload.len().checked_sub(1).filter(|&last| last >= 3).and_then(payload), None]
        }
        "WRITE_DATA" | "SDMA_WRITE_LINEAR" => [payload(3), payload(4)],
        _ => [None; 2],
    }
}

/// The value that a packet writes when the work before it has ended.
pub(super) fn fence_value(packet: &Packet<'_>, amd: Amd<'_>, name: Option<&str>) -> Option<u64> {
    match name? {
        "RELEASE_MEM" | "EVENT_WRITE_EOP" | "SDMA_FENCE" | "SIDMA_FENCE" => packet.get(amd, "DATA"),
        _ => None,
    }
}

/// The packets in other rings than the one that hangs which write an address: the ring, and the packet.
pub(super) fn in_other_rings(case: &AmdCase<'_>, iova: u64) -> Vec<(String, SeenPacket)> {
    let hung = case.hung_ring().map(|ring| ring.name);
    let others = case.rings.iter().filter(|ring| Some(ring.name) != hung);
    let walks = others.filter_map(|ring| Some((ring, Walked::ring(case, ring, engine_of(ring.name)?))));
    let found = walks.flat_map(|(ring, walked)| {
        let writes = |packet: &SeenPacket| packet.writes.is_some_and(|range| range.holds(iova));
        let newest = walked.packets.into_iter().rev().filter(writes).take(MOST);
        newest.map(|packet| (ring.name.to_owned(), packet)).collect::<Vec<_>>()
    });
    found.collect()
}

/// Packets of another ring that are kept.
const MOST: usize = 64;
