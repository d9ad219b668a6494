//! A dump of any driver: opened once, then explained and decoded.

use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::{Dump, FileKind, NotADump, Part, msm};
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain_i915, explain_msm, explain_xe};
use unwedge_view::info::{FileContents, FileInfo};
use unwedge_view::{Source, Style, amd, crashdec, decode, info, intel, report};

/// How a dump is shown.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether text may have colours.
    pub style: Style,
    /// Bytes that memory which is packed in a dump may unpack to.
    pub max_size: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options { style: Style { colour: false }, max_size: 1 << 30 }
    }
}

/// A dump that was read.
pub struct Opened<'a> {
    name: &'a str,
    kind: FileKind,
    bytes: u64,
    db: Db,
    model: Model<'a>,
}

/// What is in a dump, by the view that shows it.
enum Model<'a> {
    Msm { dump: Box<msm::Devcore<'a>>, text: &'a [u8] },
    Intel(intel::Dump<'a>),
    Amd(amd::Content<'a>),
}

/// Reads a dump. One part is a file, decompressed; several are the files of a folder that RADV left, by their names. Anything
/// malformed is skipped and reported in [`Opened::diagnostics`].
///
/// ```
/// use unwedge::{FileKind, Part, open};
/// # use unwedge_testkit::amdgpu::{Gfx, RadvBuilder};
/// # let files = RadvBuilder::complete(Gfx::ALL[0]).members();
/// let parts: Vec<Part> = files.iter().map(|(name, bytes)| Part { name, bytes }).collect();
/// let opened = open(&parts)?;
/// assert_eq!(opened.kind(), FileKind::RadvReport);
/// assert!(!opened.explain().findings.is_empty());
/// # Ok::<(), unwedge::NotADump>(())
/// ```
///
/// # Errors
/// [`NotADump`] when it is something else, or nothing of it can be read.
pub fn open<'a>(parts: &[Part<'a>]) -> Result<Opened<'a>, NotADump> {
    let dump = Dump::read(parts)?;
    let (kind, first) = (dump.kind(), parts.first());
    let text = first.map_or(&[][..], |part| part.bytes);
    let model = match dump {
        Dump::Msm(dump) => Model::Msm { dump, text },
        Dump::I915(state) => Model::Intel(intel::Dump::I915(*state)),
        Dump::Xe(dump) => Model::Intel(intel::Dump::Xe(*dump)),
        Dump::Amdgpu(dump) => Model::Amd(amd::Content::Dump(dump)),
        Dump::Radv(report) => Model::Amd(amd::Content::Report(report)),
        Dump::Umr(text) => Model::Amd(amd::Content::Umr(*text)),
    };
    let bytes = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes.len() as u64));
    Ok(Opened { name: first.map_or("", |part| part.name), kind, bytes, db: Db::builtin(), model })
}

impl Opened<'_> {
    /// Its format.
    pub fn kind(&self) -> FileKind {
        self.kind
    }

    /// What was malformed or lost.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        match &self.model {
            Model::Msm { dump, .. } => &dump.diagnostics,
            Model::Intel(dump) => dump.diagnostics(),
            Model::Amd(content) => content.diagnostics(),
        }
    }

    /// What hung, where and why.
    pub fn explain(&self) -> Report {
        match &self.model {
            Model::Msm { dump, .. } => explain_msm(dump, &self.db),
            Model::Intel(intel::Dump::I915(state)) => explain_i915(state),
            Model::Intel(intel::Dump::Xe(dump)) => explain_xe(dump),
            Model::Amd(content) => amd::explain(content),
        }
    }

    /// What hung, where and why, as text.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn explain_text(&self, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        report::text(&self.explain(), None, options.style, out)
    }

    /// What hung, where and why, as JSON.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn explain_json(&self, out: &mut dyn Write) -> io::Result<()> {
        report::json(&self.explain(), None, out)
    }

    /// What is in it and what is not, as text or JSON.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn info(&self, as_json: bool, options: &Options, out: &mut dyn Write) -> io::Result<()> {
        let (file, lost, db) = (self.file(), self.diagnostics(), &self.db);
        let contents = match &self.model {
            Model::Msm { dump, .. } => FileContents::Msm(dump),
            Model::Intel(dump) => FileContents::Intel(dump),
            Model::Amd(content) => {
                return amd::info(&file, content, lost, db, as_json, options.style, out);
            }
        };
        match as_json {
            true => info::json(&file, contents, lost, db, out),
            false => info::text(&file, contents, lost, db, options.style, out),
        }
    }

    /// Everything as text. Returns what was lost. A failed write ends the output; it is for the owner of `out` to remember
    /// why.
    ///
    /// ```
    /// # use unwedge::{Options, Part, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[Part { name: "error", bytes: dump }])?;
    /// let mut text = Vec::new();
    /// opened.decode_text(&Options::default(), &mut text);
    /// assert!(!text.is_empty());
    /// # Ok::<(), unwedge::NotADump>(())
    /// ```
    pub fn decode_text(&self, options: &Options, out: &mut dyn Write) -> Vec<Diagnostic> {
        match &self.model {
            Model::Msm { text, .. } => {
                let options =
                    crashdec::Options { color: options.style.colour, more: true, ..Default::default() };
                // It was read before, so it is one.
                let _ = crashdec::run(text, &options, &self.db, out, &mut io::sink());
                self.diagnostics().to_vec()
            }
            Model::Intel(dump) => {
                intel::text::decode(dump, self.bytes, &[], options.max_size, options.style, out)
            }
            Model::Amd(content) => {
                let _ = amd::decode_text(content, options.style, out);
                self.diagnostics().to_vec()
            }
        }
    }

    /// Everything as JSON lines. Returns what was lost. A failed write ends the output; it is for the owner of `out` to
    /// remember why.
    pub fn decode_json(&self, options: &Options, out: &mut dyn Write) -> Vec<Diagnostic> {
        match &self.model {
            // It was read before, so it is one.
            Model::Msm { text, .. } => decode::json(Source::of(text), &self.db, out).unwrap_or_default(),
            Model::Intel(dump) => intel::json::decode(dump, self.bytes, &[], options.max_size, &self.db, out),
            Model::Amd(content) => amd::decode_json(&self.file(), content, &[], out),
        }
    }

    fn file(&self) -> FileInfo<'_> {
        FileInfo {
            name: self.name,
            kind: self.kind.id(),
            described: self.kind.describe(),
            stored: self.bytes,
            bytes: self.bytes,
            compression: &[],
        }
    }
}
