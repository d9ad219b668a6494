//! What AMD GPUs leave when they hang, as `info`, `decode` and `explain` show it: amdgpu devcoredumps, RADV reports, text of
//! umr. Instructions that have no text get one.
//!
//! Never: reads a dump from its bytes.

mod code;
mod dwords;
mod identity;
pub(crate) mod info;
pub(crate) mod json;
pub(crate) mod lines;
mod packets;
mod registers;
mod text;

pub use identity::AmdGpuFields;
pub use info::info;

use crate::Style;
use crate::info::FileInfo;
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::RadvReport;
use unwedge_capture::umr::UmrText;
use unwedge_capture::{Dump, FileKind};
use unwedge_hw::Db;
use unwedge_postmortem::GpuIdentity;
use unwedge_postmortem::amd::{identity_of_dump, identity_of_radv, identity_of_umr};

/// What an AMD GPU left: a dump, a report or a text.
#[derive(Clone, Copy)]
pub enum AmdDump<'d, 'a> {
    /// An amdgpu devcoredump.
    Dump(&'d Devcoredump<'a>),
    /// A hang report of RADV.
    Report(&'d RadvReport<'a>),
    /// Text of umr.
    Umr(&'d UmrText<'a>),
}

impl<'d, 'a> AmdDump<'d, 'a> {
    /// A dump of what an AMD GPU left.
    pub fn of(dump: &'d Dump<'a>) -> Option<AmdDump<'d, 'a>> {
        match dump {
            Dump::Amdgpu(dump) => Some(AmdDump::Dump(dump)),
            Dump::Radv(report) => Some(AmdDump::Report(report)),
            Dump::Umr(text) => Some(AmdDump::Umr(text)),
            Dump::Msm(_) | Dump::I915(_) | Dump::Xe(_) => None,
        }
    }

    /// What kind of file it is.
    pub fn kind(self) -> FileKind {
        match self {
            AmdDump::Dump(_) => FileKind::AmdgpuDevcore,
            AmdDump::Report(_) => FileKind::RadvReport,
            AmdDump::Umr(_) => FileKind::UmrText,
        }
    }

    /// What was malformed or lost.
    pub fn diagnostics(self) -> &'d [Diagnostic] {
        match self {
            AmdDump::Dump(dump) => &dump.diagnostics,
            AmdDump::Report(report) => &report.diagnostics,
            AmdDump::Umr(umr) => &umr.diagnostics,
        }
    }

    /// Which GPU it is of. `db` is that of [`Db::amd`].
    pub fn identity(self, db: &Db) -> GpuIdentity {
        match self {
            AmdDump::Dump(dump) => identity_of_dump(dump, db),
            AmdDump::Report(report) => identity_of_radv(report, db),
            AmdDump::Umr(umr) => identity_of_umr(umr, db),
        }
    }
}

/// Everything as text.
///
/// # Errors
/// When `out` does not take it.
pub fn decode_text(content: AmdDump<'_, '_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    text::decode(content, &Db::amd(), style, out)
}

/// Everything as JSON lines. `unpacking` is what was lost before the content was read. Returns what was lost. A failed write
/// ends the output; it is for the owner of `out` to remember why.
pub fn decode_json(
    file: &FileInfo<'_>,
    content: AmdDump<'_, '_>,
    unpacking: &[Diagnostic],
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let diagnostics = [unpacking, content.diagnostics()].concat();
    json::decode(file, content, diagnostics, &Db::amd(), out)
}
