//! Whether a dword may start a packet.

use unwedge_base::Generation;
use unwedge_stream::adreno::header::AdrenoPacketHeader;

/// A header; before a5xx everything may be one.
pub fn is_header(raw: u32, generation: Generation) -> bool {
    !generation.is_64bit() || AdrenoPacketHeader::decode_parity(raw).is_some()
}
