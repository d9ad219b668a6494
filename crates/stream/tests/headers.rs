//! The library's packet headers against those of the test kit, which composes them by itself.

use unwedge_base::Generation;
use unwedge_stream::adreno::header::AdrenoPacketHeader;
use unwedge_testkit::pm4::{pkt0, pkt2, pkt3, pkt4, pkt7};

/// Payloads of every size that some bit of a count starts at.
fn counts(most: u32) -> impl Iterator<Item = u32> {
    (0..15).flat_map(|bit| [(1u32 << bit) - 1, 1 << bit]).filter(move |&count| count <= most)
}

#[test]
fn registers_of_a5xx_on() {
    for reg in (0..1 << 18).step_by(61) {
        for count in counts(0x7f) {
            let header = AdrenoPacketHeader::Registers { reg, count };
            let packet = pkt4(reg, &vec![0; count as usize]);
            assert_eq!(header.encode(Generation::A6xx), Some(packet[0]), "{header:?}");
            assert_eq!(AdrenoPacketHeader::decode(packet[0], Generation::A6xx), Some(header));
        }
    }
}

#[test]
fn operations_of_a5xx_on() {
    for opcode in 0..0x80 {
        for count in counts(0x3fff) {
            let header = AdrenoPacketHeader::Operation { opcode, count };
            let packet = pkt7(opcode.into(), &vec![0; count as usize]);
            assert_eq!(header.encode(Generation::A7xx), Some(packet[0]), "{header:?}");
            assert_eq!(AdrenoPacketHeader::decode(packet[0], Generation::A7xx), Some(header));
        }
    }
}

#[test]
fn packets_of_old_generations() {
    for count in counts(0x4000).filter(|&count| count > 0) {
        let payload = vec![0; count as usize];
        for reg in (0..1 << 15).step_by(61) {
            let header = AdrenoPacketHeader::Registers { reg, count };
            assert_eq!(header.encode(Generation::A3xx), Some(pkt0(reg, &payload)[0]), "{header:?}");
        }
        for opcode in 0..0x80 {
            let header = AdrenoPacketHeader::Operation { opcode, count };
            assert_eq!(header.encode(Generation::A2xx), Some(pkt3(opcode.into(), &payload)[0]), "{header:?}");
        }
    }
    assert_eq!(AdrenoPacketHeader::Padding.encode(Generation::A4xx), Some(pkt2()[0]));
}
