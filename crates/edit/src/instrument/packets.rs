//! Packets that instrumentation inserts, composed from the names of the register database.

use unwedge_base::Generation;
use unwedge_hw::Gpu;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// Register writes that one packet can hold.
const MAX_RUN: usize = 0x7f;

/// A packet by its name; `None` on a generation that does not have it.
pub(crate) fn operation(gpu: Gpu<'_>, name: &str, payload: &[u32]) -> Option<Vec<u32>> {
    let opcode = gpu.packet_opcode(name)?;
    let count = u32::try_from(payload.len()).ok()?;
    let header = AdrenoPacketHeader::Operation { opcode, count }.encode(gpu.generation())?;
    Some([&[header], payload].concat())
}

/// CP_WAIT_FOR_IDLE.
pub(super) fn wait_for_idle(gpu: Gpu<'_>) -> Option<Vec<u32>> {
    let payload: &[u32] = if gpu.generation().is_64bit() { &[] } else { &[0] };
    operation(gpu, "CP_WAIT_FOR_IDLE", payload)
}

/// Writes one value to registers, in as few packets as there can be. `regs` are sorted.
pub(super) fn fill_registers(generation: Generation, regs: &[u32], value: u32) -> Vec<u32> {
    let mut out = Vec::new();
    for run in regs.chunk_by(|a, b| a + 1 == *b) {
        for part in run.chunks(MAX_RUN) {
            let (Some(&reg), Ok(count)) = (part.first(), u32::try_from(part.len())) else { continue };
            if let Some(header) = (AdrenoPacketHeader::Registers { reg, count }).encode(generation) {
                out.push(header);
                out.resize(out.len() + part.len(), value);
            }
        }
    }
    out
}

/// An event by its name; `None` on a generation that does not have it. Events of an a6xx that are time stamps write 0 to `stamp`.
fn event(gpu: Gpu<'_>, name: &str, stamp: u64) -> Option<Vec<u32>> {
    let number = u32::try_from(gpu.enumeration("vgt_event_type")?.value_of(name)?).ok()?;
    if let Some(packet) = operation(gpu, "CP_EVENT_WRITE7", &[number]) {
        return Some(packet);
    }
    let stamped = [number, stamp as u32, (stamp >> 32) as u32, 0];
    operation(gpu, "CP_EVENT_WRITE", if name.ends_with("_TS") { &stamped } else { &stamped[..1] })
}

/// Everything that is written back, then everything that is dropped.
///
/// Facts: what Turnip does with TU_DEBUG=flushall (`tu_emit_cache_flush`): CCU of colour and depth, then UCHE; after it waits for writes of
/// the CP, for the GPU, and for the ME.
const FLUSH_A6XX: [&str; 6] = [
    "PC_CCU_FLUSH_COLOR_TS",
    "PC_CCU_FLUSH_DEPTH_TS",
    "CACHE_FLUSH_TS",
    "PC_CCU_INVALIDATE_COLOR",
    "PC_CCU_INVALIDATE_DEPTH",
    "CACHE_INVALIDATE",
];
const FLUSH_A7XX: [&str; 6] = [
    "CCU_CLEAN_COLOR",
    "CCU_CLEAN_DEPTH",
    "CACHE_CLEAN",
    "CCU_INVALIDATE_COLOR",
    "CCU_INVALIDATE_DEPTH",
    "CACHE_INVALIDATE7",
];
const WAITS: [&str; 3] = ["CP_WAIT_MEM_WRITES", "CP_WAIT_FOR_IDLE", "CP_WAIT_FOR_ME"];

/// All caches written back and dropped, and waited for; `None` on a generation of which the events are not known.
pub(super) fn flush(gpu: Gpu<'_>, stamp: u64) -> Option<Vec<u32>> {
    let events = match gpu.generation() {
        Generation::A6xx => &FLUSH_A6XX,
        Generation::A7xx => &FLUSH_A7XX,
        _ => return None,
    };
    let events = events.iter().map(|name| event(gpu, name, stamp));
    let waits = WAITS.iter().map(|name| operation(gpu, name, &[]));
    events.chain(waits).collect::<Option<Vec<_>>>().map(|packets| packets.concat())
}

/// Dwords copied by the CP; `None` on a generation that cannot.
pub(super) fn copy(gpu: Gpu<'_>, from: u64, to: u64, dwords: u32) -> Option<Vec<u32>> {
    let halves = |iova: u64| [iova as u32, (iova >> 32) as u32];
    let payload = [&[dwords][..], &halves(from), &halves(to)].concat();
    operation(gpu, "CP_MEMCPY", &payload)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_hw::Db;
    use unwedge_testkit::pm4::{pkt4, pkt7};

    #[test]
    fn registers_in_a_row_share_a_packet() {
        let regs: Vec<u32> = (0x8000..0x8003).chain([0x8100]).chain(0x9000..0x9090).collect();
        let filled = fill_registers(Generation::A6xx, &regs, 7);
        let packets =
            [pkt4(0x8000, &[7; 3]), pkt4(0x8100, &[7]), pkt4(0x9000, &[7; 127]), pkt4(0x907f, &[7; 17])];
        assert_eq!(filled, packets.concat());
    }

    #[test]
    fn every_event_of_a_flush_exists() {
        let db = Db::builtin();
        let a6xx = flush(db.gpu(Generation::A6xx), 0x1_0000_0040).expect("events");
        assert_eq!(a6xx[..5], pkt7(0x46, &[0x1d, 0x40, 1, 0])[..]);
        assert!(a6xx.ends_with(&[pkt7(0x12, &[]), pkt7(0x26, &[]), pkt7(0x13, &[])].concat()));
        assert_eq!(a6xx.len(), 3 * 5 + 3 * 2 + 3);
        assert_eq!(flush(db.gpu(Generation::A7xx), 0).expect("events").len(), 6 * 2 + 3);
        assert_eq!(flush(db.gpu(Generation::A4xx), 0), None);
    }
}
