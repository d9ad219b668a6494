//! Whether a dword may start a packet.

use unwedge_base::Generation;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// A header; before a5xx everything may be one.
pub fn is_header(raw: u32, generation: Generation) -> bool {
    !generation.is_64bit() || has_parity(raw)
}

/// A header of type 4 or 7.
pub fn has_parity(raw: u32) -> bool {
    matches!(raw >> 28, 4 | 7) && AdrenoPacketHeader::decode_lenient(raw).is_some()
}
