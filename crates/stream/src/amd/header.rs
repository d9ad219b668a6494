//! Packet headers: decoding, encoding, and telling a header from noise.
//!
//! Facts: the packet macros of amdgpu and of Mesa's `sid.h`.

use super::{Engine, media};
use unwedge_base::Dwords;
use unwedge_hw::amd::{Amd, Gfx};

/// A packet header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AmdPacketHeader {
    /// `count` dwords to registers from `reg` on.
    Type0 {
        /// First register, in dwords.
        reg: u32,
        /// Payload dwords.
        count: u32,
    },
    /// One dword of padding.
    Type2,
    /// An operation.
    Type3 {
        /// What to do.
        opcode: u8,
        /// Payload dwords.
        count: u32,
        /// It is skipped while predication says so.
        predicate: bool,
        /// It is for compute.
        compute: bool,
    },
    /// A packet of a DMA engine.
    Dma {
        /// Operation; on gfx6 the command.
        op: u8,
        /// Its variant; on gfx6 the sub-command.
        sub: u8,
        /// Payload dwords.
        count: u32,
    },
    /// A packet of a video engine or of the scheduler.
    Media {
        /// Its first dword.
        op: u32,
        /// Payload dwords.
        count: u32,
    },
}

/// The opcode of NOP, which can be one dword long.
const NOP: u32 = 0x10;
const NOP_PAD: u32 = 3 << 30 | 0x3fff << 16 | NOP << 8;
const TYPE2: u32 = 2 << 30;
/// Bits of a type 3 header that no generation uses.
const RESERVED: u32 = 0xf8;

impl AmdPacketHeader {
    /// Reads a PM4 header; `None` when no command processor takes it for one.
    pub fn decode(raw: u32) -> Option<AmdPacketHeader> {
        let count = (raw >> 16 & 0x3fff) + 1;
        match raw >> 30 {
            0 if raw != 0 => Some(AmdPacketHeader::Type0 { reg: raw & 0xffff, count }),
            2 if raw == TYPE2 => Some(AmdPacketHeader::Type2),
            3 if raw & RESERVED == 0 => Some(AmdPacketHeader::Type3 {
                opcode: (raw >> 8) as u8,
                count: if raw & !7 == NOP_PAD { 0 } else { count },
                predicate: raw & 1 != 0,
                compute: raw & 2 != 0,
            }),
            _ => None,
        }
    }

    /// The name of the packet; of one of a DMA engine its layout says it.
    pub fn name(self, amd: Amd<'_>) -> Option<&str> {
        match self {
            AmdPacketHeader::Type3 { opcode, .. } => amd.packet_name(opcode),
            AmdPacketHeader::Type0 { .. }
            | AmdPacketHeader::Type2
            | AmdPacketHeader::Dma { .. }
            | AmdPacketHeader::Media { .. } => None,
        }
    }

    /// Reads the header of a DMA packet and how long it is, by what follows it; `None` when the facts have no such
    /// packet: its length is not known then.
    pub fn decode_dma(amd: Amd<'_>, dwords: Dwords<'_>) -> Option<AmdPacketHeader> {
        let raw = dwords.get(0)?;
        let layout = amd.sdma_packet(raw)?;
        let fixed = layout.iter().map(|reg| reg.offset()).max().unwrap_or(0);
        let old = amd.gfx() == Gfx::Gfx6;
        let data = match layout.name() {
            "SDMA_NOP" => raw >> 16 & 0x3fff,
            "SDMA_WRITE_LINEAR" => {
                let count = dwords.get(fixed as usize).unwrap_or(0) & 0xf_ffff;
                if amd.gfx() >= Gfx::Gfx9 { count.saturating_add(1) } else { count }
            }
            "SIDMA_WRITE" => raw & 0xf_ffff,
            "SDMA_COPY_TILED_SUB_WINDOW" | "SDMA_COPY_T2T_SUB_WINDOW" if raw & 1 << 19 != 0 => 3,
            _ => 0,
        };
        let (op, sub) =
            if old { ((raw >> 28) as u8, (raw >> 20) as u8) } else { (raw as u8, (raw >> 8) as u8) };
        Some(AmdPacketHeader::Dma { op, sub, count: fixed.saturating_add(data) })
    }

    /// Reads the header at the start of `dwords` as `engine` does.
    pub fn decode_for(amd: Amd<'_>, engine: Engine, dwords: Dwords<'_>) -> Option<AmdPacketHeader> {
        match engine {
            Engine::Sdma => AmdPacketHeader::decode_dma(amd, dwords),
            Engine::Gfx | Engine::Compute => AmdPacketHeader::decode(dwords.get(0)?),
            Engine::Vcn | Engine::VcnDecode | Engine::Jpeg | Engine::Mes => {
                media::decode(amd, engine, dwords)
            }
        }
    }

    /// The header dword; `None` when a number does not fit, and for DMA packets, whose headers hold more.
    pub fn encode(self) -> Option<u32> {
        match self {
            AmdPacketHeader::Type0 { reg, count } => {
                (reg <= 0xffff && (1..=0x4000).contains(&count)).then(|| (count - 1) << 16 | reg)
            }
            AmdPacketHeader::Type2 => Some(TYPE2),
            AmdPacketHeader::Type3 { opcode, count: 0, .. } => (u32::from(opcode) == NOP).then_some(NOP_PAD),
            AmdPacketHeader::Type3 { opcode, count, predicate, compute } => (count <= 0x3fff).then(|| {
                let flags = u32::from(predicate) | u32::from(compute) << 1;
                3 << 30 | (count - 1) << 16 | u32::from(opcode) << 8 | flags
            }),
            AmdPacketHeader::Dma { .. } | AmdPacketHeader::Media { .. } => None,
        }
    }

    /// Dwords after the header.
    pub fn count(self) -> u32 {
        match self {
            AmdPacketHeader::Type0 { count, .. }
            | AmdPacketHeader::Type3 { count, .. }
            | AmdPacketHeader::Dma { count, .. }
            | AmdPacketHeader::Media { count, .. } => count,
            AmdPacketHeader::Type2 => 0,
        }
    }
}

/// After garbage: whether a packet may start here. Known opcodes only, and all of the packet is there; type 0 is rare,
/// and what looks like it is most often data.
pub(super) fn plausible(amd: Amd<'_>, engine: Engine, dwords: Dwords<'_>) -> bool {
    let Some(header) = AmdPacketHeader::decode_for(amd, engine, dwords) else { return false };
    let there = dwords.len() as u64 > u64::from(header.count());
    let known = match header {
        AmdPacketHeader::Type3 { opcode, .. } => amd.packet_name(opcode).is_some(),
        AmdPacketHeader::Type0 { .. } => false,
        // A header of zeros is a NOP to the engine; as a place to go on from it is as good as any other data.
        AmdPacketHeader::Dma { op, .. } => amd.gfx() == Gfx::Gfx6 || op != 0,
        // A header of zeros is padding.
        AmdPacketHeader::Media { op, .. } => op != 0,
        AmdPacketHeader::Type2 => true,
    };
    there && known
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_testkit::pm4::pkt3;

    #[test]
    fn headers_are_those_that_the_test_kit_composes() {
        for count in [1u32, 2, 3, 0x7f, 0x80, 0x3ffe, 0x3fff] {
            let payload = vec![0; count as usize];
            for opcode in 0..=255u8 {
                let header = AmdPacketHeader::Type3 { opcode, count, predicate: false, compute: false };
                assert_eq!(header.encode(), Some(pkt3(opcode.into(), &payload)[0]), "{header:?}");
            }
        }
    }
}
