//! What is in a capture: a summary of it, and the list of its sections.

pub mod info;
pub mod list;

use crate::plural::counted;
use unwedge_stream::cut::Tally;

/// `2 submits with 31 buffers, 4096 bytes`.
pub fn tallied(tally: Tally) -> String {
    format!(
        "{} with {}, {}",
        counted(tally.submits.into(), "submit", "submits"),
        counted(tally.buffers, "buffer", "buffers"),
        counted(tally.bytes, "byte", "bytes")
    )
}
