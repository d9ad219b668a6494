//! What a file is, by its content: the library's, under the name that commands call it.

pub use unwedge::capture::FileKind as Kind;

use unwedge::capture::i915::ErrorState;
use unwedge::capture::{sniff, xe};
use unwedge_view::intel::Dump;

/// A dump of i915 or xe, if the bytes are one by their start.
pub fn intel_dump(bytes: &[u8]) -> Option<Dump<'_>> {
    match sniff(bytes) {
        Kind::I915ErrorState => ErrorState::read(bytes).ok().map(Dump::I915),
        Kind::XeDevcore => xe::XeDevcore::read(bytes).ok().map(Dump::Xe),
        _ => None,
    }
}
