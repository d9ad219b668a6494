//! What `bundle` packs: dumps and captures without private data, and their verdicts.
//!
//! Verdict, page and packets are made from the dump that goes into the bundle, so that they hold nothing that it does not. Never:
//! the archive, files, a decision of the user's.

mod list;
mod needed;

use crate::report::{self, ReportOptions};
use crate::{ViewError, around, html, rd};
use std::io::{self, Read};
use unwedge_base::Diagnostic;
use unwedge_capture::private::{PrivateDump, Pseudonyms, joined, rewrite_capture, rewrite_log};
use unwedge_capture::rd::RdWriteError;
use unwedge_capture::{Dump, DumpPart, FileKind};
use unwedge_hw::Db;
use unwedge_stream::cut::{Choice, Cutter, OneCapture};

/// The folder that everything in a bundle is in. Readers know a bundle by it.
pub const FOLDER: &str = "unwedge-bundle/";
/// The names that the dump or capture of a bundle may have.
pub const DUMP_NAMES: [&str; 5] = ["dump.devcore", "error.txt", "radv-report.txt", "umr.txt", "capture.rd"];

/// What is not taken out.
#[derive(Clone, Copy, Debug, Default)]
pub struct BundleOptions {
    /// Names of processes, users and machines stay.
    pub keep_names: bool,
    /// Contents of all buffers stay.
    pub keep_buffers: bool,
    /// Memory is unpacked in proportion to this.
    pub max_size: u64,
}

/// Why something cannot go into a bundle.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// It is not a dump.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The rewritten dump has another verdict.
    #[error("without private names the verdict would be {new} instead of {old}; --keep-all leaves them in")]
    OtherVerdict {
        /// The signature of the dump.
        old: String,
        /// The signature without private data.
        new: String,
    },
    /// A capture cannot be rewritten.
    #[error(transparent)]
    Capture(#[from] RdWriteError),
    /// A part could not be written to memory.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A file of a bundle.
#[derive(Clone, Debug)]
pub struct BundleFile {
    /// Its name, with its folder.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
    /// What it is.
    about: &'static str,
}

/// A dump or capture of a bundle.
#[derive(Clone, Debug)]
struct BundledDump {
    kind: FileKind,
    signature: Option<String>,
    database: String,
    contents: ContentsTally,
    files: Vec<BundleFile>,
}

/// Contents of buffers, and how many of them were taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ContentsTally {
    kept: usize,
    kept_bytes: u64,
    cut: usize,
    cut_bytes: u64,
    modules: usize,
    /// The search for what the verdict needs ended before all was tried.
    unfinished: bool,
}

/// A bundle being put together.
#[derive(Debug)]
pub struct Bundle<'d> {
    db: &'d Db,
    options: BundleOptions,
    names: Pseudonyms,
    dumps: Vec<BundledDump>,
    logs: Vec<BundleFile>,
    /// Names that are still in a file, and in which.
    left: Vec<(String, String)>,
}

impl<'d> Bundle<'d> {
    /// An empty one.
    pub fn new(db: &'d Db, options: BundleOptions) -> Bundle<'d> {
        let names = Pseudonyms::default();
        Bundle { db, options, names, dumps: Vec::new(), logs: Vec::new(), left: Vec::new() }
    }

    /// Adds a dump: a file, or the files of a folder that RADV left. Returns what was lost of it.
    ///
    /// # Errors
    /// When it is not a dump, or would have another verdict without private data.
    pub fn dump(&mut self, kind: FileKind, parts: &[DumpPart<'_>]) -> Result<Vec<Diagnostic>, BundleError> {
        let original = Dump::read_as(kind, parts).map_err(ViewError::from)?;
        let signature = around::explained(&original, self.db, self.options.max_size).signature();
        let diagnostics = original.diagnostics().to_vec();
        let (text, modules) = match (kind, parts) {
            (FileKind::Folder, files) => joined(files),
            (_, [file, ..]) => (file.bytes.to_vec(), 0),
            (_, []) => (Vec::new(), 0),
        };
        drop(original);
        let kind = if kind == FileKind::Folder { FileKind::RadvReport } else { kind };
        let (named, kind) = self.renamed(kind, &text, &signature)?;
        let (bytes, mut contents) = self.reduced(kind, named)?;
        contents.modules = modules;
        let files = self.shown(kind, bytes)?;
        self.dumps.push(BundledDump {
            kind,
            signature: Some(signature),
            database: self.database(kind),
            contents,
            files,
        });
        Ok(diagnostics)
    }

    /// Pseudonyms in the place of names: everywhere, or in the fields for them only if the verdict would be another.
    fn renamed(
        &mut self,
        kind: FileKind,
        text: &[u8],
        old: &str,
    ) -> Result<(Vec<u8>, FileKind), BundleError> {
        let dump = Dump::read_file(kind, text).map_err(ViewError::from)?;
        let kind = dump.kind();
        let private = PrivateDump::new(&dump, text);
        let mut new = "none".to_owned();
        for fields_only in [false, true] {
            let mut names = self.names.clone();
            names.in_fields_only(fields_only);
            let bytes = private.rewrite((!self.options.keep_names).then_some(&mut names), &|_| false);
            names.in_fields_only(false);
            // What begins with the name of a process may look like something else without it.
            if let Ok(read) = Dump::read_file(kind, &bytes) {
                new = around::explained(&read, self.db, self.options.max_size).signature();
                if new == old {
                    self.names = names;
                    return Ok((bytes, kind));
                }
            }
        }
        Err(BundleError::OtherVerdict { old: old.to_owned(), new })
    }

    /// Without contents of buffers that the verdict and the packets around the stop do not need.
    fn reduced(&self, kind: FileKind, text: Vec<u8>) -> Result<(Vec<u8>, ContentsTally), BundleError> {
        let dump = Dump::read_file(kind, &text).map_err(ViewError::from)?;
        let private = PrivateDump::new(&dump, &text);
        let of_all = ContentsTally {
            kept: private.contents.len(),
            kept_bytes: (0..private.contents.len()).map(|number| private.bytes(number)).sum(),
            ..ContentsTally::default()
        };
        if self.options.keep_buffers || private.contents.is_empty() {
            return Ok((text, of_all));
        }
        let search = needed::search(&private, kind, self.db, self.options.max_size);
        let bytes = private.rewrite(None, &|number| search.cut.get(number).copied().unwrap_or(false));
        let cut = || search.cut.iter().enumerate().filter(|(_, cut)| **cut).map(|(number, _)| number);
        let cut_bytes = cut().map(|number| private.bytes(number)).sum();
        let tally = ContentsTally {
            kept: of_all.kept - cut().count(),
            kept_bytes: of_all.kept_bytes - cut_bytes,
            cut: cut().count(),
            cut_bytes,
            unfinished: search.unfinished,
            modules: 0,
        };
        Ok((bytes, tally))
    }

    /// The dump and its verdict.
    fn shown(&self, kind: FileKind, bytes: Vec<u8>) -> Result<Vec<BundleFile>, BundleError> {
        let name = match kind {
            FileKind::I915ErrorState => DUMP_NAMES[1],
            FileKind::RadvReport => DUMP_NAMES[2],
            FileKind::UmrText => DUMP_NAMES[3],
            _ => DUMP_NAMES[0],
        };
        let dump = Dump::read_file(kind, &bytes).map_err(ViewError::from)?;
        let report = around::explained(&dump, self.db, self.options.max_size);
        let mut text = Vec::new();
        report::text(
            &report,
            Some(name),
            ReportOptions { verbose: true, ..ReportOptions::default() },
            &mut text,
        )?;
        let mut json = Vec::new();
        report::json(&report, Some(name), &mut json)?;
        let mut page = Vec::new();
        html::explain(&dump, self.db, self.options.max_size, &report, Some(name), &mut page)?;
        let packets = packets(&dump, bytes.len() as u64, self.db, self.options.max_size);
        drop(dump);
        let file = |name: &str, bytes, about| BundleFile { name: name.to_owned(), bytes, about };
        let mut files = vec![
            file(name, bytes, "the dump, for unwedge and other tools"),
            file("verdict.txt", text, "why it hung, with all evidence"),
            file("verdict.json", json, "the same for programs: docs/json-schema.md"),
            file("verdict.html", page, "the same as a page"),
        ];
        if let Some(packets) = packets {
            files.push(file("around.txt", packets, "the packets around the stop, and the state there"));
        }
        Ok(files)
    }

    /// Adds a capture, which must be read whole: its submits, and the buffers that they need. Returns what was lost of it.
    ///
    /// # Errors
    /// When it cannot be rewritten.
    pub fn capture(&mut self, capture: impl Read) -> Result<Vec<Diagnostic>, BundleError> {
        let limit = self.options.max_size;
        let (mut cut, mut diagnostics) = (Vec::new(), Vec::new());
        let choice =
            Choice { submits: None, frames: None, frame_end: None, all_buffers: self.options.keep_buffers };
        let mut cutter = Cutter::new(choice, OneCapture::new(&mut cut), limit);
        diagnostics.extend(cutter.play(capture, self.db));
        let (seen, kept) = cutter.end().1?;
        let contents = ContentsTally {
            kept: usize::try_from(kept.buffers).unwrap_or(usize::MAX),
            kept_bytes: kept.bytes,
            cut: usize::try_from(seen.buffers.saturating_sub(kept.buffers)).unwrap_or(usize::MAX),
            cut_bytes: seen.bytes.saturating_sub(kept.bytes),
            ..ContentsTally::default()
        };
        let mut bytes = cut;
        if !self.options.keep_names {
            let whole = std::mem::take(&mut bytes);
            diagnostics.extend(rewrite_capture(&whole[..], limit, &mut self.names, &mut bytes)?);
        }
        let (info, _) = rd::info::read(&bytes[..], self.db, limit);
        let mut text = Vec::new();
        let shown = rd::info::CaptureFile { name: DUMP_NAMES[4], compression: Vec::new(), capture: &info };
        shown.text(crate::Style::default(), &mut text)?;
        let file = |name: &str, bytes, about| BundleFile { name: name.to_owned(), bytes, about };
        self.dumps.push(BundledDump {
            kind: FileKind::RdCapture,
            signature: None,
            database: self.db.identity().to_string(),
            contents,
            files: vec![
                file(DUMP_NAMES[4], bytes, "the capture, for unwedge and other tools"),
                file("info.txt", text, "what is in it"),
            ],
        });
        Ok(diagnostics)
    }

    /// Adds a kernel log.
    pub fn log(&mut self, text: &[u8]) {
        let mut bytes = Vec::new();
        if self.options.keep_names {
            bytes.extend_from_slice(text);
        } else {
            rewrite_log(text, &mut self.names, &mut bytes);
        }
        let number = if self.logs.is_empty() { String::new() } else { format!("-{}", self.logs.len() + 1) };
        self.logs.push(BundleFile { name: format!("kernel{number}.log"), bytes, about: "the kernel log" });
    }

    fn database(&self, kind: FileKind) -> String {
        match kind {
            FileKind::MsmDevcore => self.db.identity().to_string(),
            FileKind::I915ErrorState | FileKind::XeDevcore => unwedge_hw::intel::identity().to_string(),
            _ => Db::amd().identity().to_string(),
        }
    }

    /// Looks for names that are left, and gives the files in the order in which they are packed: the first is a dump. `version` is
    /// that of the program.
    pub fn finish(&mut self, version: &str) -> Vec<BundleFile> {
        let mut files = Vec::new();
        let count = self.dumps.len();
        for (number, dump) in self.dumps.iter().enumerate() {
            let folder = if count > 1 { format!("{}-of-{count}/", number + 1) } else { String::new() };
            files.extend(dump.files.iter().map(|file| {
                let name = format!("{FOLDER}{folder}{}", file.name);
                BundleFile { name, ..file.clone() }
            }));
        }
        files.extend(self.logs.iter().map(|file| {
            let name = format!("{FOLDER}{}", file.name);
            BundleFile { name, ..file.clone() }
        }));
        self.left = if self.options.keep_names { Vec::new() } else { list::left(&self.names, &files) };
        let readme = list::readme(self, &files, version).into_bytes();
        files.push(BundleFile {
            name: format!("{FOLDER}README.txt"),
            bytes: readme,
            about: "what is in here",
        });
        files
    }
}

/// The packets around the stop of a dump; `None` if it does not say where that is.
fn packets(dump: &Dump<'_>, bytes: u64, db: &Db, max_size: u64) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    let options = around::Options { max_size, ..around::Options::default() };
    around::hang(dump, bytes, &[], options, db, &mut text).ok()?;
    Some(text)
}

/// What the contents of a dump must not change: its verdict as text, and the packets around the stop.
fn verdict(dump: &Dump<'_>, db: &Db, max_size: u64) -> Option<Vec<u8>> {
    let report = around::explained(dump, db, max_size);
    let mut text = report.signature().into_bytes();
    report::text(&report, None, ReportOptions::default(), &mut text).ok()?;
    text.extend(packets(dump, 0, db, max_size).unwrap_or_default());
    Some(text)
}
