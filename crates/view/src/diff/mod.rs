//! Which state differs between two draws, two submits or two captures; and what differs between two dumps.
//!
//! Both sides are read at once, each by a thread of its own, submit by submit: memory is bounded by the longest submit.
//! Never: what a difference is; that is `unwedge_stream::compare`'s.

pub(crate) mod registers;
pub(crate) mod show;
mod side;
pub(crate) mod verdict;

pub use verdict::{ExplainedDump, VerdictOptions, verdicts};

use crate::json::Heading;
use crate::plural::counted;
use crate::streams::{Family, RegisterSet, intel_names};
use crate::{CaptureStream, Style, ViewError, device};
use serde::Serialize;
use show::Show;
use side::SideEvent;
use std::io::Write;
use std::sync::mpsc::{Receiver, sync_channel};
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::{Dump, FileKind};
use unwedge_hw::{Db, DbIdentity};
use unwedge_stream::compare::{Comparer, Pairing, Record};

/// Version of the schema of the JSON lines.
const SCHEMA: u32 = 1;

/// What of which input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selector {
    /// What the input is called.
    pub name: String,
    /// Only this submit; of a dump this ring.
    pub submit: Option<u32>,
    /// Only this draw.
    pub draw: Option<u32>,
}

/// How much is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffLevel {
    /// Everything in an input.
    File,
    /// A submit.
    Submit,
    /// A draw.
    Draw,
}

impl Selector {
    /// How much it is.
    pub fn level(&self) -> DiffLevel {
        match (self.submit, self.draw) {
            (_, Some(_)) => DiffLevel::Draw,
            (Some(_), None) => DiffLevel::Submit,
            (None, None) => DiffLevel::File,
        }
    }
}

/// An input that was opened.
pub enum Opened<'d> {
    /// A capture, to be read bit by bit.
    Capture(Box<dyn CaptureStream + 'd>),
    /// A dump of any driver, to be read.
    Files {
        /// Names and contents of its files: one, or those of a folder.
        files: Vec<(String, Vec<u8>)>,
        /// What they are.
        kind: FileKind,
        /// What was lost of it on the way.
        diagnostics: Vec<Diagnostic>,
    },
    /// A dump that is read.
    Dump {
        /// The dump.
        dump: &'d Dump<'d>,
        /// What was lost of it on the way.
        lost: &'d [Diagnostic],
    },
}

/// One of the two that are compared.
pub struct Side<'a, 'd, E> {
    /// What of it.
    pub selector: &'a Selector,
    /// Opens it, on a thread of its own.
    pub open: Box<dyn FnOnce() -> Result<Opened<'d>, E> + Send + 'a>,
}

/// How to compare.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiffOptions {
    /// Take a buffer that runs for each tile once for each mode.
    pub once: bool,
    /// Both sides are of one input: an address means the same place on both.
    pub one_input: bool,
    /// JSON lines instead of text.
    pub json: bool,
    /// How text may style.
    pub style: Style,
}

/// Why a side cannot be read.
#[derive(Debug)]
pub enum SideError<E> {
    /// It cannot be opened.
    Open(E),
    /// It cannot be compared.
    View(ViewError),
}

/// Two sides, compared.
#[derive(Debug)]
pub struct Compared<E> {
    /// Something differs.
    pub differs: bool,
    /// Not all was compared.
    pub cut: bool,
    /// The submit or draw asked for is not on both sides.
    pub absent: bool,
    /// What to say beside the result.
    pub notes: Vec<String>,
    /// What was lost and what is unusual, by side.
    pub sides: [Result<Vec<Diagnostic>, SideError<E>>; 2],
}

/// Compares two sides. A failed write is for the owner of `out` to remember. Half of a comparison is none: where a side
/// cannot be read, or lacks what was asked for, the output has no end.
pub fn compare<'s, 'd, E: Send>(
    [a, b]: [Side<'s, 'd, E>; 2],
    options: DiffOptions,
    db: &Db,
    max_alive: u64,
    out: &mut dyn Write,
) -> Compared<E> {
    let (comparison, sides) = std::thread::scope(|scope| {
        let start = |side: Side<'s, 'd, E>| {
            let Side { selector, open } = side;
            let selector = selector.clone();
            // Nothing waits in between: each side has the submit it reads and the one that is compared.
            let (sender, receiver) = sync_channel(0);
            let read = move || {
                let opened = open().map_err(SideError::Open)?;
                side::read(opened, &selector, options.once, db, max_alive, sender).map_err(SideError::View)
            };
            (scope.spawn(read), receiver)
        };
        let (selector_a, selector_b) = (a.selector, b.selector);
        let ((read_a, from_a), (read_b, from_b)) = (start(a), start(b));
        let (differs, cut, absent, notes) = (false, false, false, Vec::new());
        let tables = db.identity().clone();
        let mut comparison = Comparison {
            options,
            a: selector_a,
            b: selector_b,
            db,
            tables,
            differs,
            cut,
            absent,
            notes,
            out,
        };
        comparison.run(Records::new(from_a), Records::new(from_b));
        let end = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (comparison, [end(read_a), end(read_b)])
    });
    if let ([Ok(of_a), Ok(of_b)], false) = (&sides, comparison.absent) {
        let lost = |d: &Diagnostic| d.severity == Severity::Loss;
        let lost = comparison.cut || of_a.iter().chain(of_b).any(lost);
        if options.json {
            line(&DiffEnd { ty: "end", differs: comparison.differs, lost }, comparison.out);
        } else {
            let _ = writeln!(comparison.out, "{}", device::database_line(&comparison.tables));
        }
    }
    let Comparison { differs, cut, absent, notes, .. } = comparison;
    Compared { differs, cut, absent, notes, sides }
}

/// The records of a side, one after another.
struct Records {
    from: Receiver<SideEvent>,
    family: Option<Family>,
    submits: u32,
}

impl Records {
    fn new(from: Receiver<SideEvent>) -> Records {
        Records { from, family: None, submits: 0 }
    }

    /// The next submit; `None` at the end.
    fn next(&mut self) -> Option<Box<Record>> {
        loop {
            match self.from.recv().ok()? {
                SideEvent::Gpu(family) => self.family = Some(family),
                SideEvent::Submit(record) => {
                    self.submits = self.submits.saturating_add(1);
                    return Some(record);
                }
            }
        }
    }
}

struct Comparison<'a> {
    options: DiffOptions,
    a: &'a Selector,
    b: &'a Selector,
    db: &'a Db,
    /// What names registers.
    tables: DbIdentity,
    differs: bool,
    cut: bool,
    absent: bool,
    notes: Vec<String>,
    out: &'a mut dyn Write,
}

impl Comparison<'_> {
    fn run(&mut self, mut a: Records, mut b: Records) {
        let level = self.a.level();
        let (mut of_a, mut of_b) = (a.next(), b.next());
        match a.family {
            Some(Family::Amd(_)) => self.tables = Db::amd().identity().clone(),
            Some(Family::Intel(_)) => self.tables = unwedge_hw::intel::identity(),
            Some(Family::Adreno(_)) | None => {}
        }
        self.head(&a, &b);
        let facts = Db::amd();
        // What a side is of may change from submit to submit on Adreno only: of others there is one set of names.
        let names = match a.family {
            Some(Family::Intel(version)) => Some(intel_names(version)),
            _ => None,
        };
        let mut comparer: Option<(Family, Comparer<'_>)> = None;
        let mut equal = 0_u32;
        while let (Some(x), Some(y)) = (&of_a, &of_b) {
            let (Some(family), Some(other)) = (a.family, b.family) else { break };
            if family != other {
                self.differs = true;
                self.say(&refused(family, other));
                break;
            }
            let registers = match (family, &names) {
                (Family::Adreno(generation), _) => RegisterSet::Adreno(self.db.gpu(generation)),
                (Family::Amd(gfx), _) => RegisterSet::Amd(facts.amd_gpu(gfx)),
                (Family::Intel(_), Some(names)) => RegisterSet::Intel(names),
                (Family::Intel(_), None) => break,
            };
            let comparer = match &mut comparer {
                Some((of, comparer)) if *of == family => comparer,
                slot => &mut slot.insert((family, Comparer::new(registers, !self.options.one_input))).1,
            };
            let comparison = match level {
                DiffLevel::Draw => comparer.compare_paired(x, y, vec![Pairing::Both(0, 0)]),
                _ => comparer.compare(x, y),
            };
            let differs = show::differs(x, y, &comparison, level);
            self.differs |= differs;
            let show = Show { registers, style: self.options.style };
            if self.options.json {
                line(&show.json(x, y, &comparison, level), self.out);
            } else if level != DiffLevel::File {
                show.text(x, y, &comparison, level, self.out);
            } else if differs {
                show.line(x, y, &comparison, self.out);
            } else {
                equal = equal.saturating_add(1);
            }
            for (side, record) in [("A", x), ("B", y)] {
                if record.cut {
                    self.cut = true;
                    let submit = record.submit;
                    self.notes.push(format!(
                        "{side}, submit {submit}: too many draws, writes or shaders: not all are compared"
                    ));
                }
            }
            if level != DiffLevel::File {
                return;
            }
            (of_a, of_b) = (a.next(), b.next());
        }
        if level != DiffLevel::File && self.differs {
            return;
        }
        self.end(a, b, (of_a.is_some(), of_b.is_some()), equal);
    }

    /// What there is besides pairs.
    fn end(&mut self, mut a: Records, mut b: Records, left: (bool, bool), equal: u32) {
        if self.a.level() != DiffLevel::File {
            // A side that could not be read says why itself.
            for (selector, there) in [(self.a, left.0), (self.b, left.1)] {
                if !there {
                    self.notes.push(format!("{}: no {}", selector.name, wanted(selector)));
                }
            }
            self.absent = true;
            return;
        }
        if !self.options.json && equal > 0 {
            let _ = writeln!(self.out, "{} not differ", counted(equal as u64, "submit does", "submits do"));
        }
        if left.0 != left.1 || left == (true, true) {
            while a.next().is_some() {}
            while b.next().is_some() {}
        }
        if a.submits != b.submits {
            self.differs = true;
            self.say(&format!("submits: {} | {}", a.submits, b.submits));
        }
    }

    fn say(&mut self, message: &str) {
        if self.options.json {
            line(&Note { ty: "note", message }, self.out);
        } else {
            let _ = writeln!(self.out, "{message}");
        }
    }

    fn head(&mut self, a: &Records, b: &Records) {
        let side = |selector: &Selector, side: &Records| SideLine {
            file: selector.name.clone(),
            submit: selector.submit,
            draw: selector.draw,
            generation: side.family.map(Family::name),
        };
        let (a, b) = (side(self.a, a), side(self.b, b));
        if self.options.json {
            let heading = Heading::of_lines("unwedge.diff", SCHEMA, &self.tables);
            return line(&DiffHeader { heading, a, b }, self.out);
        }
        for (name, side) in [("A", a), ("B", b)] {
            let what = match (side.submit, side.draw) {
                (Some(submit), Some(draw)) => format!(", submit {submit}, draw {draw}"),
                (None, Some(draw)) => format!(", draw {draw}"),
                (Some(submit), None) => format!(", submit {submit}"),
                (None, None) => String::new(),
            };
            let gpu = side.generation.as_ref().map(|g| format!(" ({g})")).unwrap_or_default();
            let _ = writeln!(self.out, "{name}: {}{what}{gpu}", side.file);
        }
    }
}

/// Why registers of two GPUs are not compared.
fn refused(a: Family, b: Family) -> String {
    let of = if a.vendor() == b.vendor() { "generations" } else { "vendors" };
    let name = |family: Family| match family {
        Family::Adreno(_) if of == "generations" => family.name(),
        _ => format!("{} {}", family.vendor(), family.name()),
    };
    format!("{} | {}: registers of other {of} are not compared", name(a), name(b))
}

fn wanted(selector: &Selector) -> String {
    match (selector.submit, selector.draw) {
        (Some(submit), Some(draw)) => format!("draw {draw} in submit {submit}"),
        (None, Some(draw)) => format!("draw {draw}"),
        (Some(submit), None) => format!("submit {submit}"),
        (None, None) => "submit".to_owned(),
    }
}

/// A failed write is remembered by `out`, and reported by its `finish`.
fn line<T: Serialize>(record: &T, out: &mut dyn Write) {
    if serde_json::to_writer(&mut *out, record).is_ok() {
        let _ = out.write_all(b"\n");
    }
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiffHeader<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    a: SideLine,
    b: SideLine,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct SideLine {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draw: Option<u32>,
    generation: Option<String>,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Note<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct DiffEnd {
    #[serde(rename = "type")]
    ty: &'static str,
    differs: bool,
    lost: bool,
}

crate::schema::shapes!(lines: DiffHeader<'_>, Note<'_>, DiffEnd, SideLine);
