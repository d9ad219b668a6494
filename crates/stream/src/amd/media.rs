//! Packets of engines that are neither command processors nor DMA engines: video engines and the scheduler. They are named and split into
//! their fields; nothing is followed.
//!
//! Facts: `data/amd/additions/media.regs`. Never: which registers of the GPU they write, for they count those of their own block.

use super::{AmdPacketHeader, Engine};
use unwedge_base::Dwords;
use unwedge_hw::Domain;
use unwedge_hw::amd::Amd;

/// The layout of a packet by its first two dwords; its name is that of the packet, but for messages.
pub(super) fn layout<'d>(amd: Amd<'d>, engine: Engine, raw: u32, second: Option<u32>) -> Option<Domain<'d>> {
    match engine {
        Engine::VcnDecode => match raw >> 30 {
            0 if raw != 0 => amd.domain("VCN_PACKET0"),
            2 => amd.domain("VCN_PACKET2"),
            _ => None,
        },
        Engine::Vcn => match message(amd, raw, second) {
            Some(_) => amd.domain("VCN_MESSAGE"),
            None => amd.packet_of("vcn_packet", raw),
        },
        Engine::Jpeg if raw != 0 && raw >> 28 <= 7 => amd.domain("JPEG_PACKET"),
        Engine::Mes if raw & 15 == 1 => amd.packet_of("mes_packet", raw >> 4 & 0xff),
        Engine::Jpeg | Engine::Mes | Engine::Gfx | Engine::Compute | Engine::Sdma => None,
    }
}

/// What a message to the firmware of VCN is, where the first dword may be its size.
fn message<'d>(amd: Amd<'d>, size: u32, second: Option<u32>) -> Option<&'d str> {
    amd.name_in("vcn_message", second.filter(|_| size >= 8 && size.is_multiple_of(4))?)
}

/// The name of a packet.
pub(super) fn name<'d>(amd: Amd<'d>, engine: Engine, raw: u32, second: Option<u32>) -> Option<&'d str> {
    let layout = layout(amd, engine, raw, second)?;
    match engine {
        Engine::Vcn => message(amd, raw, second).or(Some(layout.name())),
        _ => Some(layout.name()),
    }
}

/// The header of a packet and how long it is; `None` when the facts have no such packet: its length is not known then.
pub(super) fn decode(amd: Amd<'_>, engine: Engine, dwords: Dwords<'_>) -> Option<AmdPacketHeader> {
    let raw = dwords.get(0)?;
    let layout = layout(amd, engine, raw, dwords.get(1))?;
    let count = match (engine, layout.name()) {
        (Engine::VcnDecode, "VCN_PACKET0") => (raw >> 16 & 0x3fff) + 1,
        (Engine::Vcn, "VCN_MESSAGE") => raw / 4 - 1,
        (Engine::Mes, _) => (raw >> 12 & 0xff).checked_sub(1)?,
        _ => layout.iter().map(|reg| reg.offset() + reg.width() / 32 - 1).max().unwrap_or(0),
    };
    Some(AmdPacketHeader::Media { op: raw, count })
}
