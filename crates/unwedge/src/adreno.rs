//! Captures of Adreno GPUs. Its instruction sets are [`crate::isa::afuc`], [`crate::isa::ir2`] and [`crate::isa::ir3`].

use std::io::{Read, Write};
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
use unwedge_view::cffdump::Listing;
pub use unwedge_view::cffdump::Options as ListingOptions;

/// Lists a capture as cffdump does, under a name, while it is read. No more than about `max_alive` bytes of its buffers are
/// held. Returns what was lost and left out. A failed write ends the output; it is for the owner of `out` to remember why.
///
/// ```
/// use unwedge::adreno::{ListingOptions, list};
/// # let capture = unwedge_testkit::captures::variety().remove(0);
/// let mut text = Vec::new();
/// list("capture.rd", &capture[..], ListingOptions::default(), 1 << 30, &mut text);
/// assert!(!text.is_empty());
/// ```
pub fn list(
    name: &str,
    capture: impl Read,
    options: ListingOptions,
    max_alive: u64,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let db = Db::builtin();
    Listing::new(options, false, &db, max_alive).run(name, capture, false, out)
}
