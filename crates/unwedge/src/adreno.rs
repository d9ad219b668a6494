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

use crate::ShowOptions;
use crate::compare::{self, DiffQuestion, Differences};
use std::io::{Read, Write};
use unwedge_base::Diagnostic;
use unwedge_hw::Db;
pub use unwedge_isa::{afuc, ir2, ir3};
pub use unwedge_view::cffdump::CffdumpOptions as ListingOptions;
use unwedge_view::cffdump::Listing;
use unwedge_view::query::{self, Answered, QueryOptions, Question};
use unwedge_view::{CaptureStream, ViewError, decode, diff};

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

/// Everything in a capture as JSON lines, while it is read. No more than about `max_alive` bytes of its buffers are held.
/// Returns what was lost. A failed write ends the output; it is for the owner of `out` to remember why.
///
/// ```
/// # let capture = unwedge_testkit::captures::variety().remove(0);
/// let mut lines = Vec::new();
/// unwedge::adreno::decode_json(&mut &capture[..], 1 << 30, &mut lines);
/// assert!(lines.starts_with(b"{"));
/// ```
pub fn decode_json(capture: &mut dyn CaptureStream, max_alive: u64, out: &mut dyn Write) -> Vec<Diagnostic> {
    decode::capture(capture, &Db::builtin(), max_alive, out)
}

/// A capture that is compared.
#[derive(Clone, Copy)]
pub struct ComparedCapture<'a, 'c> {
    /// What it is called.
    pub name: &'a str,
    /// Opens it from its beginning: both sides are read at once, each on a thread of its own, and nothing is held but the
    /// submit that is compared.
    pub open: &'a (dyn Fn() -> Box<dyn CaptureStream + 'c> + Sync + 'a),
}

/// Compares the state that draws of two captures have, or, without `b`, of two places of one capture, as text or JSON lines.
///
/// ```
/// use unwedge::adreno::{ComparedCapture, diff};
/// use unwedge::{DiffPlace, DiffQuestion, ShowOptions};
/// # let bytes = unwedge_testkit::captures::variety().remove(4);
/// let open = || -> Box<dyn unwedge::CaptureStream + '_> { Box::new(&bytes[..]) };
/// let capture = ComparedCapture { name: "capture.rd", open: &open };
/// let [a, b] = [0, 1].map(|submit| DiffPlace { submit: Some(submit), draw: None });
/// let question = DiffQuestion { a, b, ..DiffQuestion::default() };
/// let mut text = Vec::new();
/// assert!(diff(capture, None, question, &ShowOptions::default(), &mut text)?.differs);
/// # Ok::<(), unwedge::ViewError>(())
/// ```
///
/// # Errors
/// When a submit or draw that is asked for is not on its side, or the two sides are not asked for alike.
pub fn diff<'a, 'c>(
    a: ComparedCapture<'a, 'c>,
    b: Option<ComparedCapture<'a, 'c>>,
    question: DiffQuestion,
    options: &ShowOptions,
    out: &mut dyn Write,
) -> Result<Differences, ViewError> {
    let one_input = b.is_none();
    let b = b.unwrap_or(a);
    let open_a = || Ok(diff::Opened::Capture((a.open)()));
    let open_b = || Ok(diff::Opened::Capture((b.open)()));
    let shown =
        diff::DiffOptions { one_input, once: question.once, json: question.json, style: options.style };
    let sides: [(&str, compare::Open<'_, '_>); 2] = [(a.name, &open_a), (b.name, &open_b)];
    compare::run(sides, question, shown, &Db::builtin(), options.max_size, out)
}
