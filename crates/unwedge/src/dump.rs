//! A dump of any driver: opened once, then explained and decoded.

use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::{Dump, FileKind, NotADump, Part, msm};
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain_i915, explain_msm, explain_xe};
use unwedge_view::info::{FileContents, FileInfo};
use unwedge_view::query::{Answered, Question};
use unwedge_view::streams::DumpRef;
use unwedge_view::{
    Source, Style, ViewError, amd, around, crashdec, decode, diff, info, intel, query, report,
};

pub use unwedge_view::query::{Format, Options as QueryOptions, ValueForm};

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

    /// The report's signature: equal for hangs of one cause, whatever their addresses and processes.
    pub fn signature(&self) -> String {
        self.explain().signature()
    }

    /// The packets around the place where [`Opened::explain`] says that the engine stopped, as text or JSON lines. Returns
    /// what was lost. A failed write ends the output; it is for the owner of `out` to remember why.
    ///
    /// ```
    /// # use unwedge::{Options, Part, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[Part { name: "error", bytes: dump }])?;
    /// let mut text = Vec::new();
    /// opened.around_hang(false, &Options::default(), &mut text)?;
    /// // `>` marks the packet in which the engine stopped.
    /// assert!(String::from_utf8_lossy(&text).lines().any(|line| line.starts_with('>')));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the dump does not say where the engine stopped, or does not hold the stream.
    pub fn around_hang(
        &self,
        as_json: bool,
        options: &Options,
        out: &mut dyn Write,
    ) -> Result<Vec<Diagnostic>, ViewError> {
        let options = around::Options { json: as_json, style: options.style, max_size: options.max_size };
        around::hang(self.dump(), self.bytes, &[], options, &self.db, out)
    }

    /// Values of registers at each draw of the dump's streams.
    ///
    /// ```
    /// use unwedge::{Options, Part, QueryOptions, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[Part { name: "error", bytes: dump }])?;
    /// let registers = vec!["3DPRIMITIVE.VertexCountPerInstance".to_owned()];
    /// let question = QueryOptions { registers, ..QueryOptions::default() };
    /// let mut text = Vec::new();
    /// opened.query(&question, &Options::default(), &mut text)?;
    /// assert!(String::from_utf8_lossy(&text).contains("VertexCountPerInstance"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the GPU is not known or has no such register, the condition makes no sense, or the dump holds no stream.
    pub fn query(
        &self,
        question: &QueryOptions,
        options: &Options,
        out: &mut dyn Write,
    ) -> Result<Answered, ViewError> {
        query::dump(&Question::new(question)?, self.dump(), &[], &self.db, options.max_size, out)
    }

    /// Compares the state that draws of two dumps of one GPU generation have, as text or JSON lines. Returns whether
    /// something differs.
    ///
    /// ```
    /// use unwedge::{Options, Part, open};
    /// # let dump = unwedge_testkit::amdgpu::texts().into_iter().find(|(name, _)| name == "V10 V6_19").unwrap().1;
    /// let opened = open(&[Part { name: "devcore", bytes: &dump }])?;
    /// let mut text = Vec::new();
    /// assert!(!opened.diff(&opened, false, &Options::default(), &mut text)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When one of them is of a GPU that is not known, or holds no stream.
    pub fn diff(
        &self,
        other: &Opened<'_>,
        as_json: bool,
        options: &Options,
        out: &mut dyn Write,
    ) -> Result<bool, ViewError> {
        let selector =
            |opened: &Opened<'_>| diff::Selector { name: opened.name.to_owned(), submit: None, draw: None };
        let selectors = [selector(self), selector(other)];
        let open_a = || Ok::<_, ViewError>(diff::Opened::Dump { dump: self.dump(), lost: &[] });
        let open_b = || Ok::<_, ViewError>(diff::Opened::Dump { dump: other.dump(), lost: &[] });
        let sides = [
            diff::Side { selector: &selectors[0], open: &open_a },
            diff::Side { selector: &selectors[1], open: &open_b },
        ];
        let shown = diff::Options { once: false, json: as_json, style: options.style };
        let compared = diff::compare(sides, shown, &self.db, options.max_size, out);
        for side in compared.sides {
            side.map_err(|e| match e {
                diff::SideError::Open(e) | diff::SideError::View(e) => e,
            })?;
        }
        Ok(compared.differs)
    }

    fn dump(&self) -> DumpRef<'_, '_> {
        match &self.model {
            Model::Msm { dump, .. } => DumpRef::Msm(dump),
            Model::Intel(intel::Dump::I915(state)) => DumpRef::I915(state),
            Model::Intel(intel::Dump::Xe(dump)) => DumpRef::Xe(dump),
            Model::Amd(amd::Content::Dump(dump)) => DumpRef::Amdgpu(dump),
            Model::Amd(amd::Content::Report(report)) => DumpRef::Radv(report),
            Model::Amd(amd::Content::Umr(text)) => DumpRef::Umr(text),
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
