//! What AMD GPUs leave when they hang, as `info`, `decode` and `explain` show it: amdgpu devcoredumps, RADV reports, text of
//! umr. Instructions that have no text get one.
//!
//! Never: reads a dump from its bytes.

mod code;
mod info;
mod json;
mod lines;
mod packets;
mod text;

pub use info::info;

use crate::Style;
use crate::info::FileInfo;
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::RadvReport;
use unwedge_capture::umr::UmrText;
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain_amdgpu, explain_radv, explain_umr};

/// A dump, a report or a text.
pub enum Content<'a> {
    /// An amdgpu devcoredump.
    Dump(Box<Devcoredump<'a>>),
    /// A hang report of RADV.
    Report(Box<RadvReport<'a>>),
    /// Text of umr.
    Umr(UmrText<'a>),
}

impl Content<'_> {
    /// What was malformed or lost.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match self {
            Content::Dump(dump) => &dump.diagnostics,
            Content::Report(report) => &report.diagnostics,
            Content::Umr(umr) => &umr.diagnostics,
        }
    }

    /// The GPU, as far as it is named: `gfx1030`, or what RADV calls it.
    pub fn gpu(&self) -> Option<String> {
        match self {
            Content::Dump(dump) => dump.gfx_version().map(|version| version.to_string()),
            Content::Report(report) => {
                let device = report.gpu.iter().find(|entry| entry.name == "Device name")?;
                Some(device.value.clone().into_owned())
            }
            Content::Umr(umr) => umr.registers.iter().find_map(|register| {
                let path = register.path.as_deref()?;
                Some(path.rsplit('.').next().unwrap_or(path).to_owned())
            }),
        }
    }
}

/// What hung, where and why.
pub fn explain(content: &Content<'_>) -> Report {
    let facts = Db::amd();
    match content {
        Content::Dump(dump) => explain_amdgpu(dump, &facts),
        Content::Report(radv) => explain_radv(radv, &facts),
        Content::Umr(umr) => explain_umr(umr, &facts),
    }
}

/// Everything as text.
///
/// # Errors
/// When `out` does not take it.
pub fn decode_text(content: &Content<'_>, style: Style, out: &mut dyn Write) -> io::Result<()> {
    text::decode(content, &Db::amd(), style, out)
}

/// Everything as JSON lines. `unpacking` is what was lost before the content was read. Returns what was lost. A failed write
/// ends the output; it is for the owner of `out` to remember why.
pub fn decode_json(
    file: &FileInfo<'_>,
    content: &Content<'_>,
    unpacking: &[Diagnostic],
    out: &mut dyn Write,
) -> Vec<Diagnostic> {
    let diagnostics = [unpacking, content.diagnostics()].concat();
    json::decode(file, content, diagnostics, &Db::amd(), out)
}
