//! Captures of Adreno GPUs, and their instruction sets: shaders of a3xx and later ([`ir3`]), of a2xx ([`ir2`]), and the
//! command processor's firmware ([`afuc`]).
//!
//! ```
//! use unwedge::adreno::{ir2, ir3};
//! let word = ir3::asm::Assembler::new(630).instruction("add.f r0.x, r0.y, r0.z")?;
//! let mut text = Vec::new();
//! ir3::write(word, 630, &mut text);
//! assert_eq!(text, b"add.f r0.x, r0.y, r0.z");
//! let words = ir2::assemble("ALLOC PARAM/PIXEL SIZE(0)\nEXEC_END\nALU: MAXv export0 = C0, C0\nNOP").unwrap();
//! assert!(!words.is_empty());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::io::{Read, Write};
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
pub use unwedge_isa::{afuc, ir2, ir3};
pub use unwedge_view::cffdump::CffdumpOptions as ListingOptions;
use unwedge_view::cffdump::Listing;
use unwedge_view::query::{self, Answered, QueryOptions, Question};
use unwedge_view::{CaptureStream, ViewError};

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

/// Values of registers at each draw of a capture, while it is read. No more than about `max_alive` bytes of its buffers are
/// held. A failed write ends the output; it is for the owner of `out` to remember why.
///
/// ```
/// use unwedge::{QueryOptions, adreno};
/// # let capture = unwedge_testkit::captures::variety().remove(0);
/// let mut rows = Vec::new();
/// adreno::query(&QueryOptions::default(), &mut &capture[..], 1 << 30, &mut rows)?;
/// assert!(!rows.is_empty());
/// # Ok::<(), unwedge::ViewError>(())
/// ```
///
/// # Errors
/// When the first GPU of the capture has no such register, or the condition makes no sense.
pub fn query(
    question: &QueryOptions,
    capture: &mut dyn CaptureStream,
    max_alive: u64,
    out: &mut dyn Write,
) -> Result<Answered, ViewError> {
    query::capture(&Question::new(question)?, capture, &Db::builtin(), max_alive, out)
}
