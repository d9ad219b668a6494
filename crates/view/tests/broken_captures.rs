//! Broken captures are summed up and listed as far as they go.

use unwedge_capture::rd::{MemoryRange, RdSectionKind, RdWriter};
use unwedge_hw::Db;
use unwedge_testkit::pm4::{indirect_buffer, pkt4, pkt7};
use unwedge_view::rd::{info, list};

/// Two sets of a stream that calls a buffer, which names a third.
fn whole(gpu_id: u32) -> Vec<u8> {
    let mut writer = RdWriter::new(Vec::new());
    writer.section(RdSectionKind::GpuId, &gpu_id.to_le_bytes()).unwrap();
    for set in 0..2_u64 {
        let base = set << 16;
        let called = indirect_buffer(base | 0x1000, 4);
        let inner = [pkt4(0x8c17, &[base as u32 | 0x3000, 0]), pkt7(0x26, &[])].concat();
        for (iova, words) in [(0x1000, inner), (0x2000, called), (0x3000, vec![1]), (0x4000, vec![2])] {
            let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            let range = MemoryRange { iova: base | iova, size: bytes.len() as u32 };
            writer.range(RdSectionKind::GpuAddr, range, true).unwrap();
            writer.section(RdSectionKind::BufferContents, &bytes).unwrap();
        }
        writer
            .range(RdSectionKind::CmdStreamAddr, MemoryRange { iova: base | 0x2000, size: 4 }, true)
            .unwrap();
    }
    writer.into_inner()
}

#[test]
fn what_is_lost_and_listed_is_bounded() {
    let db = Db::builtin();
    let mut seed = 1_u64;
    for gpu_id in [201, 330, 430, 530, 630, 740] {
        let intact = whole(gpu_id);
        for round in 0..200 {
            let mut bytes = intact.clone();
            for _ in 0..1 + round % 4 {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let at = (seed >> 33) as usize % bytes.len();
                bytes[at] ^= 1 << (seed >> 60 & 7);
            }
            if round % 3 == 0 {
                bytes.truncate((seed >> 20) as usize % bytes.len());
            }
            let (_, diagnostics) = info::read(&bytes[..], &db, 1 << 24);
            assert!(diagnostics.len() < 1 << 9);
            let mut text = Vec::new();
            list::list(&bytes[..], round % 2 == 0, 1 << 24, &mut text);
            assert!(text.len() < 1 << 16);
        }
    }
}
