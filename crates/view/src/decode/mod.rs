//! Everything in an msm devcoredump or a capture as JSON lines. The text of all of a dump is [`crate::crashdec`]'s, that of
//! a capture [`crate::cffdump`]'s, the packets around a place are [`crate::around`]'s.
//!
//! Never: a verdict.

pub(crate) mod captures;
pub(crate) mod sections;
pub(crate) mod stream;

pub use captures::{LENGTH_PER_BYTE as LENGTH_PER_BYTE_OF_CAPTURE, capture};
pub(crate) use sections::header;
pub(crate) use stream::{JsonSink, MAX_RINGS, Stretch, stretches, trouble_text};

use crate::device;
use crate::lines::{Lines, end};
use std::io::Write;
use unwedge_base::Diagnostic;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::adreno::AdrenoCase;

/// Everything in a dump of so many bytes as JSON lines. `lost` is what was lost of it before it got here. Returns what was
/// lost. A failed write is for the owner of `out` to remember.
pub fn json(
    (dump, bytes): (&Devcore<'_>, u64),
    lost: &[Diagnostic],
    db: &Db,
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let mut lines = Lines::new(bytes, out);
    let mut diagnostics = [lost, &dump.diagnostics].concat();
    sections::write(dump, db, &mut lines);
    match device::gpu(dump, db) {
        Some(gpu) => diagnostics.extend(stream::write(&AdrenoCase::new(dump, gpu), &mut lines)),
        None => {
            let message = "the GPU is not known: registers and command streams are not decoded";
            diagnostics.push(Diagnostic::loss(None, message));
        }
    }
    if lines.too_long() {
        diagnostics.push(Diagnostic::loss(None, "the output is too long: the rest is not shown"));
    }
    end(&diagnostics, &mut lines);
    lines.hand_on();
    diagnostics
}
