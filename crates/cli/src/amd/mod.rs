//! What AMD GPUs leave when they hang, for commands: amdgpu devcoredumps, RADV reports (folder or text), text of umr.
//!
//! [`Source`] is the bytes, [`Content`] their reading; `info` and `decode` show it, `explain` says what hung. Instructions
//! that have no text get one.

mod code;
mod info;
mod json;
mod packets;
mod record;
mod text;

pub use info::info;

use crate::failure::{Failure, MSM};
use crate::input::Input;
use crate::kind::Kind;
use code::Code;
use std::io::Write;
use std::path::Path;
use unwedge_base::Diagnostic;
use unwedge_capture::amdgpu::radv::{Member, MemberKind};
use unwedge_capture::amdgpu::{Devcoredump, RadvReport, UmrText};
use unwedge_hw::Db;
use unwedge_postmortem::amd::Options;
use unwedge_postmortem::{Report, explain_amdgpu, explain_radv, explain_umr};
use unwedge_view::Style;

/// SPIR-V modules of a report that are read; RADV writes one for each shader of a pipeline.
const MAX_SPIRV: usize = 64;

/// Whether files of this kind are read here.
pub fn reads(kind: Kind) -> bool {
    matches!(kind, Kind::AmdgpuDevcore | Kind::RadvReport | Kind::UmrText)
}

/// A file, or the files of a folder.
pub struct Source {
    /// How messages call it.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// The files of a folder with their names, or the one file.
    files: Vec<(String, Input)>,
    folder: bool,
}

/// What a source says.
pub enum Content<'a> {
    /// An amdgpu devcoredump.
    Dump(Box<Devcoredump<'a>>),
    /// A hang report of RADV.
    Report(Box<RadvReport<'a>>),
    /// Text of umr.
    Umr(UmrText<'a>),
}

impl Source {
    /// A file of a kind that is read here.
    pub fn of(input: Input, kind: Kind) -> Source {
        Source { name: input.name.clone(), kind, files: vec![(input.name.clone(), input)], folder: false }
    }

    /// The files of a folder that RADV left: names and contents.
    pub fn of_folder(name: String, files: Vec<(String, Input)>) -> Source {
        Source { name, kind: Kind::RadvReport, files, folder: true }
    }

    /// Reads the files of a folder that RADV left; of all of them no more than `limit` bytes.
    pub fn open_folder(folder: &Path, limit: u64) -> Result<Source, Failure> {
        let name = folder.display().to_string();
        let mut names: Vec<String> = MemberKind::file_names().collect();
        let entries = folder.read_dir().map_err(|e| Failure::Unusable(format!("{name}: {e}")))?;
        let mut modules: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| MemberKind::from_name(name) == Some(MemberKind::Spirv))
            .collect();
        modules.sort();
        names.extend(modules.into_iter().take(MAX_SPIRV));
        let mut files = Vec::new();
        let mut left = limit;
        for member in names {
            let path = folder.join(&member);
            if !path.is_file() {
                continue;
            }
            let input = Input::open(&path, left)?;
            left = left.saturating_sub(input.bytes.len() as u64);
            files.push((member, input));
        }
        let source = Source::of_folder(name, files);
        source.read()?;
        Ok(source)
    }

    /// Reads it.
    pub fn read(&self) -> Result<Content<'_>, Failure> {
        let bytes = self.files.first().map_or(&[][..], |(_, input)| &input.bytes);
        let report = |report| Content::Report(Box::new(report));
        let content = match self.kind {
            Kind::AmdgpuDevcore => Devcoredump::read(bytes).ok().map(|dump| Content::Dump(Box::new(dump))),
            Kind::UmrText => UmrText::read(bytes).ok().map(Content::Umr),
            _ if self.folder => {
                let members: Vec<Member<'_>> = self
                    .files
                    .iter()
                    .map(|(name, input)| Member { name, bytes: &input.bytes, offset: 0 })
                    .collect();
                RadvReport::read(&members).ok().map(report)
            }
            _ => RadvReport::read_text(bytes).ok().map(report),
        };
        content.ok_or_else(|| {
            Failure::Unusable(match (self.folder, self.kind) {
                (true, _) => format!(
                    "{}: a folder, but no hang report of RADV: none of its files (trace.log, pipeline.log, …) says \
                     anything",
                    self.name
                ),
                (false, kind) => {
                    format!("{}: looks like {}, but nothing of it can be read", self.name, kind.describe())
                }
            })
        })
    }

    /// Bytes as stored, and decompressed.
    pub fn size(&self) -> (u64, u64) {
        let of = |size: fn(&Input) -> u64| self.files.iter().map(|(_, input)| size(input)).sum();
        (of(|input| input.stored), of(|input| input.bytes.len() as u64))
    }

    /// Names of compressions that were undone, of a single file.
    pub fn compression(&self) -> Vec<&'static str> {
        let one = if self.folder { None } else { self.files.first() };
        one.map_or_else(Vec::new, |(_, input)| input.compression.iter().map(|c| c.name()).collect())
    }

    /// What was lost while reading: by undoing compression, and in the content.
    pub fn diagnostics(&self, content: &Content<'_>) -> Vec<Diagnostic> {
        self.unpacking().chain(content.diagnostics().iter().cloned()).collect()
    }

    fn unpacking(&self) -> impl Iterator<Item = Diagnostic> + '_ {
        self.files.iter().flat_map(|(_, input)| input.diagnostics.iter().cloned())
    }

    /// For commands that take something else.
    pub fn wrong_kind(&self) -> Failure {
        let what = if self.folder { "the folder of a hang report of RADV" } else { self.kind.describe() };
        Failure::WrongKind { name: self.name.clone(), what: what.to_owned(), takes: MSM }
    }
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

/// `explain`: what hung, where and why.
pub fn explain(source: &Source) -> Result<Report, Failure> {
    let content = source.read()?;
    let facts = Db::amd();
    let code = Code::of(&content);
    let options = Options { disassembler: Some(&code), checker: Some(&code) };
    let mut report = match &content {
        Content::Dump(dump) => explain_amdgpu(dump, &facts, options),
        Content::Report(radv) => explain_radv(radv, &facts, options),
        Content::Umr(umr) => explain_umr(umr, &facts, options),
    };
    report.diagnostics.splice(0..0, source.unpacking());
    Ok(report)
}

/// `decode`: everything, as JSON lines or text. Returns what was lost. A failed write ends the output; it is for the
/// owner of `out` to remember why.
pub fn decode(
    source: &Source,
    as_json: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let content = source.read()?;
    let diagnostics = source.diagnostics(&content);
    let facts = Db::amd();
    if as_json {
        Ok(json::decode(source, &content, diagnostics, &facts, out))
    } else {
        let _ = text::decode(&content, &facts, style, out);
        Ok(diagnostics)
    }
}
