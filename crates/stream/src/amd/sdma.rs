//! Calls in the streams of DMA engines.

use super::packet::Packet;
use unwedge_hw::amd::{Amd, Gfx};

/// Address and dwords of the buffer that a packet calls.
pub(super) fn call(packet: &Packet<'_>, amd: Amd<'_>) -> Option<(u64, u32)> {
    let size = packet.get32(amd, "IB_SIZE")?;
    let iova = match amd.gfx() {
        Gfx::Gfx6 => packet.split_address(amd, "IB_BASE_LO", "IB_BASE_HI")?,
        _ => packet.get(amd, "IB_BASE")?,
    };
    Some((iova & !3, size))
}
