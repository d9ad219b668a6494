//! What AMD GPUs leave when they hang, for commands: amdgpu devcoredumps, RADV reports (folder or text), text of umr.
//!
//! [`Source`] is the bytes, [`Content`] their reading, which `unwedge_view` shows.

use crate::failure::{Failure, MSM};
use crate::input::Input;
use crate::kind::Kind;
use std::io::Write;
use std::path::Path;
use unwedge::base::Diagnostic;
use unwedge::capture::amdgpu::Devcoredump;
use unwedge::capture::radv::RadvReport;
use unwedge::capture::radv::{Member, MemberKind};
use unwedge::capture::umr::UmrText;
use unwedge::hw::Db;
use unwedge::postmortem::Report;
use unwedge_view::Style;
use unwedge_view::amd::{self, Content};
use unwedge_view::info::FileInfo;

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
    /// It is a folder.
    pub folder: bool,
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

    /// Its files, for commands that read dumps of any driver.
    pub fn into_files(self) -> (String, Vec<(String, Input)>) {
        (self.name, self.files)
    }

    /// What is known of it whatever it holds.
    fn file<'a>(&'a self, compression: &'a [&'static str]) -> FileInfo<'a> {
        let (stored, bytes) = self.size();
        FileInfo {
            name: &self.name,
            kind: self.kind.id(),
            described: self.kind.describe(),
            stored,
            bytes,
            compression,
        }
    }

    /// Bytes as stored, and decompressed.
    fn size(&self) -> (u64, u64) {
        let of = |size: fn(&Input) -> u64| self.files.iter().map(|(_, input)| size(input)).sum();
        (of(|input| input.stored), of(|input| input.bytes.len() as u64))
    }

    /// Names of compressions that were undone, of a single file.
    fn compression(&self) -> Vec<&'static str> {
        let one = if self.folder { None } else { self.files.first() };
        one.map_or_else(Vec::new, |(_, input)| input.compression.iter().map(|c| c.name()).collect())
    }

    /// What was lost while reading: by undoing compression, and in the content.
    fn diagnostics(&self, content: &Content<'_>) -> Vec<Diagnostic> {
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

/// `explain`: what hung, where and why.
pub fn explain(source: &Source) -> Result<Report, Failure> {
    let mut report = amd::explain(&source.read()?);
    report.diagnostics.splice(0..0, source.unpacking());
    Ok(report)
}

/// `info`: what is in a source. Returns what was lost. A failed write ends the output; it is for the owner of `out` to
/// remember why.
pub fn info(
    source: &Source,
    db: &Db,
    as_json: bool,
    style: Style,
    out: &mut dyn Write,
) -> Result<Vec<Diagnostic>, Failure> {
    let content = source.read()?;
    let diagnostics = source.diagnostics(&content);
    let compression = source.compression();
    let _ = amd::info(&source.file(&compression), &content, &diagnostics, db, as_json, style, out);
    Ok(diagnostics)
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
    if as_json {
        let unpacking: Vec<Diagnostic> = source.unpacking().collect();
        let compression = source.compression();
        return Ok(amd::decode_json(&source.file(&compression), &content, &unpacking, out));
    }
    let _ = amd::decode_text(&content, style, out);
    Ok(source.diagnostics(&content))
}
