//! A dump of any driver: opened once, then explained and decoded.

use crate::compare::{self, DiffQuestion, Differences};
use std::io::{self, Write};
use unwedge_base::Diagnostic;
use unwedge_capture::dump::OtherVendor;
use unwedge_capture::{Dump, DumpPart, FileKind, NotADump};
use unwedge_hw::{ChipOverride, Db};
use unwedge_postmortem::{Report, explain};
use unwedge_view::amd::{self, AmdDump};
use unwedge_view::info::{self, FileContents, FileInfo};
use unwedge_view::intel::{self, IntelDump};
use unwedge_view::query::{Answered, Question};
use unwedge_view::{Style, ViewError, around, crashdec, decode, diff, query, report};

pub use unwedge_view::around::Place;
pub use unwedge_view::query::{Format, QueryOptions, ValueForm};

/// How a dump is shown.
#[derive(Clone, Copy, Debug)]
pub struct ShowOptions {
    /// Whether text may have colours.
    pub style: Style,
    /// Bytes that memory which is packed in a dump may unpack to.
    pub max_size: u64,
}

impl Default for ShowOptions {
    fn default() -> ShowOptions {
        ShowOptions { style: Style { colour: false }, max_size: 1 << 30 }
    }
}

/// A dump that was read.
pub struct Opened<'a> {
    name: &'a str,
    /// The bytes of the first part.
    text: &'a [u8],
    /// Bytes of all parts.
    bytes: u64,
    db: Db,
    dump: Dump<'a>,
}

/// Reads a dump. One part is a file, decompressed; several are the files of a folder that RADV left, by their names. Anything
/// malformed is skipped and reported in [`Opened::diagnostics`].
///
/// ```
/// use unwedge::{FileKind, DumpPart, open};
/// # use unwedge_testkit::amdgpu::{Gfx, RadvBuilder};
/// # let files = RadvBuilder::complete(Gfx::ALL[0]).members();
/// let parts: Vec<DumpPart> = files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
/// let opened = open(&parts)?;
/// assert_eq!(opened.kind(), FileKind::RadvReport);
/// assert!(!opened.explain().findings.is_empty());
/// # Ok::<(), unwedge::NotADump>(())
/// ```
///
/// # Errors
/// [`NotADump`] when it is something else, or nothing of it can be read.
pub fn open<'a>(parts: &[DumpPart<'a>]) -> Result<Opened<'a>, NotADump> {
    let dump = Dump::read(parts)?;
    let (name, text) = parts.first().map_or(("", &[][..]), |part| (part.name, part.bytes));
    let bytes = parts.iter().fold(0u64, |sum, part| sum.saturating_add(part.bytes.len() as u64));
    Ok(Opened { name, text, bytes, db: Db::builtin(), dump })
}

impl Opened<'_> {
    /// Its format.
    pub fn kind(&self) -> FileKind {
        self.dump.kind()
    }

    /// What was malformed or lost.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        self.dump.diagnostics()
    }

    /// The dump itself.
    pub fn dump(&self) -> &Dump<'_> {
        &self.dump
    }

    /// What hung, where and why, with the packets around the stop.
    pub fn explain(&self) -> Report {
        around::explained(&self.dump, &self.db, ShowOptions::default().max_size)
    }

    /// What hung, where and why, as text.
    ///
    /// # Errors
    /// When `out` does not take it.
    pub fn explain_text(&self, options: &ShowOptions, out: &mut dyn Write) -> io::Result<()> {
        let set = report::ReportOptions { style: options.style, ..report::ReportOptions::default() };
        report::text(&self.explain(), None, set, out)
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
    pub fn info(&self, as_json: bool, options: &ShowOptions, out: &mut dyn Write) -> io::Result<()> {
        let (file, lost, db) = (self.file(), self.diagnostics(), &self.db);
        if let Some(dump) = AmdDump::of(&self.dump) {
            return amd::info(&file, dump, lost, db, as_json, options.style, out);
        }
        let contents = match &self.dump {
            Dump::Msm(dump) => FileContents::Msm(dump),
            dump => IntelDump::of(dump).map_or(FileContents::Other, FileContents::Intel),
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
    /// # use unwedge::{ShowOptions, DumpPart, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[DumpPart { name: "error", bytes: dump }])?;
    /// let mut text = Vec::new();
    /// opened.decode_text(&ShowOptions::default(), &mut text);
    /// assert!(!text.is_empty());
    /// # Ok::<(), unwedge::NotADump>(())
    /// ```
    pub fn decode_text(&self, options: &ShowOptions, out: &mut dyn Write) -> Vec<Diagnostic> {
        match &self.dump {
            Dump::Msm(dump) => {
                let options = crashdec::CrashdecOptions {
                    color: options.style.colour,
                    more: true,
                    ..Default::default()
                };
                crashdec::run((self.text, dump), &options, &self.db, out, &mut io::sink());
            }
            dump => match (IntelDump::of(dump), AmdDump::of(dump)) {
                (Some(dump), _) => {
                    let options = intel::text::ListingOptions {
                        max_size: options.max_size,
                        style: options.style,
                        all_fields: false,
                    };
                    return intel::text::decode(dump, self.bytes, &[], options, out);
                }
                (None, Some(dump)) => drop(amd::decode_text(dump, options.style, out)),
                (None, None) => {}
            },
        }
        self.diagnostics().to_vec()
    }

    /// Everything as JSON lines. Returns what was lost. A failed write ends the output; it is for the owner of `out` to
    /// remember why.
    pub fn decode_json(&self, options: &ShowOptions, out: &mut dyn Write) -> Vec<Diagnostic> {
        match &self.dump {
            Dump::Msm(dump) => decode::json((dump, self.bytes), &[], &self.db, out),
            dump => match (IntelDump::of(dump), AmdDump::of(dump)) {
                (Some(dump), _) => {
                    intel::json::decode(dump, self.bytes, &[], options.max_size, &self.db, out)
                }
                (None, Some(dump)) => amd::decode_json(&self.file(), dump, &[], out),
                (None, None) => Vec::new(),
            },
        }
    }

    /// The report's signature: equal for hangs of one cause, whatever their addresses and processes.
    pub fn signature(&self) -> String {
        explain(&self.dump, &self.db).signature()
    }

    /// The packets around the place where [`Opened::explain`] says that the engine stopped, as text or JSON lines. Returns
    /// what was lost. A failed write ends the output; it is for the owner of `out` to remember why.
    ///
    /// ```
    /// # use unwedge::{ShowOptions, DumpPart, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[DumpPart { name: "error", bytes: dump }])?;
    /// let mut text = Vec::new();
    /// opened.around_hang(false, &ShowOptions::default(), &mut text)?;
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
        options: &ShowOptions,
        out: &mut dyn Write,
    ) -> Result<Vec<Diagnostic>, ViewError> {
        self.around(Place::Hang, as_json, options, out)
    }

    /// The packets around a place and the state there, as text or JSON lines. Returns what was lost. A failed write ends the
    /// output; it is for the owner of `out` to remember why.
    ///
    /// ```
    /// use unwedge::{ShowOptions, DumpPart, Place, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[DumpPart { name: "error", bytes: dump }])?;
    /// let place = Place::parse("draw 0").expect("a place");
    /// let mut text = Vec::new();
    /// opened.around(place, false, &ShowOptions::default(), &mut text)?;
    /// assert!(String::from_utf8_lossy(&text).lines().any(|line| line.starts_with('>')));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no packet is at the place, or the dump does not hold it.
    pub fn around(
        &self,
        place: Place,
        as_json: bool,
        options: &ShowOptions,
        out: &mut dyn Write,
    ) -> Result<Vec<Diagnostic>, ViewError> {
        let ShowOptions { style, max_size } = *options;
        let options = around::Options { json: as_json, style, max_size, context: None };
        around::dump((&self.dump, self.bytes), &[], place, options, &self.db, out)
    }

    /// Values of registers at each draw of the dump's streams.
    ///
    /// ```
    /// use unwedge::{ShowOptions, DumpPart, QueryOptions, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[DumpPart { name: "error", bytes: dump }])?;
    /// let registers = vec!["3DPRIMITIVE.VertexCountPerInstance".to_owned()];
    /// let question = QueryOptions { registers, ..QueryOptions::default() };
    /// let mut text = Vec::new();
    /// opened.query(&question, &ShowOptions::default(), &mut text)?;
    /// assert!(String::from_utf8_lossy(&text).contains("VertexCountPerInstance"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the GPU is not known or has no such register, the condition makes no sense, or the dump holds no stream.
    pub fn query(
        &self,
        question: &QueryOptions,
        options: &ShowOptions,
        out: &mut dyn Write,
    ) -> Result<Answered, ViewError> {
        query::dump(&Question::new(question)?, &self.dump, &[], &self.db, options.max_size, out)
    }

    /// Compares the state that draws of two dumps of one GPU generation have, or of two places of one dump, as text or JSON
    /// lines.
    ///
    /// ```
    /// use unwedge::{DiffQuestion, ShowOptions, DumpPart, open};
    /// # let dump = unwedge_testkit::amdgpu::texts().into_iter().find(|(name, _)| name == "V10 V7_1").unwrap().1;
    /// let opened = open(&[DumpPart { name: "devcore", bytes: &dump }])?;
    /// let mut text = Vec::new();
    /// let same = opened.diff(&opened, DiffQuestion::default(), &ShowOptions::default(), &mut text)?;
    /// assert!(!same.differs);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When one of them is of a GPU that is not known, or holds no stream; when a submit or draw that is asked for is not on
    /// its side, or the two sides are not asked for alike.
    pub fn diff(
        &self,
        other: &Opened<'_>,
        question: DiffQuestion,
        options: &ShowOptions,
        out: &mut dyn Write,
    ) -> Result<Differences, ViewError> {
        let open_a = || Ok::<_, ViewError>(diff::Opened::Dump { dump: &self.dump, lost: &[] });
        let open_b = || Ok::<_, ViewError>(diff::Opened::Dump { dump: &other.dump, lost: &[] });
        let shown = diff::DiffOptions {
            one_input: std::ptr::eq(self, other),
            once: question.once,
            json: question.json,
            style: options.style,
        };
        let sides: [(&str, compare::Open<'_, '_>); 2] = [(self.name, &open_a), (other.name, &open_b)];
        compare::run(sides, question, shown, &self.db, options.max_size, out)
    }

    /// Compares what is said of two dumps, part by part, then the registers that both hold, as text or JSON lines. Returns
    /// whether something differs: a part, beyond what differs between two runs of one hang, or a register.
    ///
    /// ```
    /// use unwedge::{ShowOptions, DumpPart, open};
    /// # let (_, dump) = &unwedge_testkit::i915::variety()[0];
    /// let opened = open(&[DumpPart { name: "devcore", bytes: dump }])?;
    /// let mut text = Vec::new();
    /// assert!(!opened.diff_verdicts(&opened, false, &ShowOptions::default(), &mut text));
    /// # Ok::<(), unwedge::NotADump>(())
    /// ```
    pub fn diff_verdicts(
        &self,
        other: &Opened<'_>,
        as_json: bool,
        options: &ShowOptions,
        out: &mut dyn Write,
    ) -> bool {
        let (report_a, report_b) = (self.explain(), other.explain());
        let sides = [
            diff::ExplainedDump { name: self.name, dump: &self.dump, report: &report_a },
            diff::ExplainedDump { name: other.name, dump: &other.dump, report: &report_b },
        ];
        let shown = diff::VerdictOptions {
            json: as_json,
            style: options.style,
            max_size: options.max_size,
            ..diff::VerdictOptions::default()
        };
        diff::verdicts(sides, shown, &self.db, out)
    }

    /// Takes the dump to be of a GPU, whatever it says itself, from here on.
    ///
    /// ```
    /// use unwedge::{DumpPart, chip_override, open};
    /// # let dump = unwedge_testkit::devcore::DevcoreBuilder::a7xx().revision(0, [99, 1, 2, 3]).text();
    /// let mut opened = open(&[DumpPart { name: "devcore", bytes: &dump }])?;
    /// opened.take_as(chip_override("a7xx")?)?;
    /// assert_eq!(opened.explain().taken_as.as_deref(), Some("a7xx"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When no GPU of that vendor leaves such a dump.
    pub fn take_as(&mut self, chip: ChipOverride) -> Result<(), OtherVendor> {
        self.dump.take_as(chip)
    }

    fn file(&self) -> FileInfo<'_> {
        FileInfo {
            name: self.name,
            kind: self.kind().id(),
            described: self.kind().describe(),
            stored: self.bytes,
            bytes: self.bytes,
            compression: &[],
        }
    }
}
