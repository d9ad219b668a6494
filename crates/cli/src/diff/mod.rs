//! `unwedge diff`: which state differs between two draws, two submits or two captures.
//!
//! Both sides are read at once, each by a thread of its own, submit by submit: memory is bounded by the longest submit.
//! Never: what a difference is; that is `unwedge_stream::compare`'s.

mod show;
mod side;

use crate::args::{self, Global};
use crate::capture::{self, Opened};
use crate::database;
use crate::failure::{Failure, Outcome, complain};
use crate::output::Output;
use serde::Serialize;
use show::Show;
pub use side::Selector;
use side::{Level, Told};
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::{Receiver, sync_channel};
use unwedge_base::{Diagnostic, Generation, Severity};
use unwedge_hw::Db;
use unwedge_stream::compare::{Comparer, Pairing, Record};
use unwedge_view::Style;
use unwedge_view::json::Heading;

/// Version of the schema of the JSON lines.
const SCHEMA: u32 = 1;

/// Runs the command.
pub fn run(args: &args::Diff, global: &Global) -> Result<Outcome, Failure> {
    let mut a = Selector::parse(&args.a, None);
    let mut b = Selector::parse(&args.b, Some(&a.file));
    for side in [&mut a, &mut b] {
        for (option, slot, value) in
            [("--submit", &mut side.submit, args.submit), ("--draw", &mut side.draw, args.draw)]
        {
            if value.is_some() && slot.is_some() {
                return Err(Failure::Usage(format!("{option}: {} says it already", side.file.display())));
            }
            *slot = slot.or(value);
        }
    }
    if a.level() != b.level() {
        let message = "one side is a draw, a submit or a file, and the other is not: select the same of both";
        return Err(Failure::Usage(message.to_owned()));
    }
    if a.file == b.file && a.file.as_os_str() == "-" {
        return Err(Failure::Usage("standard input can be one side only".to_owned()));
    }
    let db = database::load(global)?;
    let mut out = Output::open(global, !args.json);
    let style = out.style;
    let open = |file: &Path| capture::open_any(file, global.max_size);
    let between = between(args, [&a, &b], &open, &db, global.max_size, style, &mut out);
    out.finish()?;
    let Between { differs, cut, told } = between?;
    let lost = told.into_iter().fold(cut, |lost, (name, diagnostics)| tell(&name, &diagnostics) | lost);
    Ok(match (lost, differs && args.exit_code) {
        (true, _) => Outcome::Lost,
        (false, true) => Outcome::Found,
        (false, false) => Outcome::Complete,
    })
}

/// Two sides, compared.
pub struct Between {
    differs: bool,
    /// Not all was compared.
    cut: bool,
    /// What was lost and what is unusual, by file.
    told: [(String, Vec<Diagnostic>); 2],
}

/// Opens a file by its name, on a thread of its own.
pub type Open<'a> = dyn Fn(&Path) -> Result<Opened, Failure> + Sync + 'a;

/// Compares two sides. A failed write is remembered by `out`, and reported by its owner.
pub fn between(
    args: &args::Diff,
    [a, b]: [&Selector; 2],
    open: &Open<'_>,
    db: &Db,
    max_alive: u64,
    style: Style,
    out: &mut dyn Write,
) -> Result<Between, Failure> {
    let (result, told) = std::thread::scope(|scope| {
        let start = |selector: &Selector| {
            let selector = selector.clone();
            // Nothing waits in between: each side has the submit it reads and the one that is compared.
            let (sender, receiver) = sync_channel(0);
            let read = move || {
                let opened = open(&selector.file)?;
                side::read(opened, &selector, args.once, db, max_alive, sender)
            };
            (scope.spawn(read), receiver)
        };
        let ((read_a, from_a), (read_b, from_b)) = (start(a), start(b));
        let mut compared = Compared { args, a, b, db, differs: false, cut: false, style, out };
        let result = compared.run(Side::new(from_a), Side::new(from_b));
        let found = (compared.differs, compared.cut);
        // Half of a comparison is none.
        let end = |handle: std::thread::ScopedJoinHandle<'_, _>| {
            handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        (result.map(|()| found), [(a, end(read_a)), (b, end(read_b))])
    });
    let name = |selector: &Selector| selector.file.display().to_string();
    let told = match told {
        [(a, Ok(of_a)), (b, Ok(of_b))] => [(name(a), of_a), (name(b), of_b)],
        [(_, Err(e)), (_, Err(other))] => {
            complain!("{other}");
            return Err(e);
        }
        [(_, Err(e)), (selector, Ok(diagnostics))] | [(selector, Ok(diagnostics)), (_, Err(e))] => {
            tell(&name(selector), &diagnostics);
            return Err(e);
        }
    };
    let (differs, cut) = result?;
    let lost = cut || told.iter().flat_map(|(_, told)| told).any(|d| d.severity == Severity::Loss);
    if args.json {
        line(&End { ty: "end", differs, lost }, out);
    } else {
        let _ = writeln!(out, "{}", unwedge_view::device::database_line(db.identity()));
    }
    Ok(Between { differs, cut, told })
}

/// Says what was lost, and what is unusual.
fn tell(name: &str, diagnostics: &[Diagnostic]) -> bool {
    for note in diagnostics.iter().filter(|d| d.severity == Severity::Note) {
        complain!("{name}: {note}");
    }
    Outcome::of(name, diagnostics) == Outcome::Lost
}

/// What a side has told so far.
struct Side {
    from: Receiver<Told>,
    generation: Option<Generation>,
    submits: u32,
}

impl Side {
    fn new(from: Receiver<Told>) -> Side {
        Side { from, generation: None, submits: 0 }
    }

    /// The next submit; `None` at the end.
    fn next(&mut self) -> Option<Box<Record>> {
        loop {
            match self.from.recv().ok()? {
                Told::Gpu(generation) => self.generation = Some(generation),
                Told::Submit(record) => {
                    self.submits = self.submits.saturating_add(1);
                    return Some(record);
                }
            }
        }
    }
}

struct Compared<'a> {
    args: &'a args::Diff,
    a: &'a Selector,
    b: &'a Selector,
    db: &'a Db,
    differs: bool,
    cut: bool,
    style: Style,
    out: &'a mut dyn Write,
}

impl Compared<'_> {
    fn run(&mut self, mut a: Side, mut b: Side) -> Result<(), Failure> {
        let level = self.a.level();
        let (mut of_a, mut of_b) = (a.next(), b.next());
        self.head(&a, &b);
        let mut comparer: Option<(Generation, Comparer<'_>)> = None;
        let mut equal = 0_u32;
        while let (Some(x), Some(y)) = (&of_a, &of_b) {
            let (Some(generation), Some(other)) = (a.generation, b.generation) else { break };
            if generation != other {
                self.differs = true;
                let message =
                    format!("{generation} | {other}: registers of other generations are not compared");
                self.say(&message);
                break;
            }
            let gpu = self.db.gpu(generation);
            let comparer = match &mut comparer {
                Some((of, comparer)) if *of == generation => comparer,
                slot => &mut slot.insert((generation, Comparer::new(gpu, self.a.file != self.b.file))).1,
            };
            let comparison = match level {
                Level::Draw => comparer.compare_paired(x, y, vec![Pairing::Both(0, 0)]),
                _ => comparer.compare(x, y),
            };
            let differs = show::differs(x, y, &comparison, level);
            self.differs |= differs;
            let show = Show { gpu, style: self.style };
            if self.args.json {
                line(&show.json(x, y, &comparison, level), self.out);
            } else if level != Level::File {
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
                    complain!(
                        "{side}, submit {submit}: too many draws, writes or shaders: not all are compared"
                    );
                }
            }
            if level != Level::File {
                return Ok(());
            }
            (of_a, of_b) = (a.next(), b.next());
        }
        if level != Level::File && self.differs {
            return Ok(());
        }
        self.end(a, b, (of_a.is_some(), of_b.is_some()), equal)
    }

    /// What there is besides pairs.
    fn end(&mut self, mut a: Side, mut b: Side, left: (bool, bool), equal: u32) -> Result<(), Failure> {
        if self.a.level() != Level::File {
            // A side that could not be read says why itself.
            for (selector, there) in [(self.a, left.0), (self.b, left.1)] {
                if !there {
                    complain!("{}: no {}", selector.file.display(), wanted(selector));
                }
            }
            return Err(Failure::NotFound("nothing to compare".to_owned()));
        }
        if !self.args.json && equal > 0 {
            let _ = writeln!(self.out, "{equal} submits do not differ");
        }
        if left.0 != left.1 || left == (true, true) {
            while a.next().is_some() {}
            while b.next().is_some() {}
        }
        if a.submits != b.submits {
            self.differs = true;
            self.say(&format!("submits: {} | {}", a.submits, b.submits));
        }
        Ok(())
    }

    fn say(&mut self, message: &str) {
        if self.args.json {
            line(&Note { ty: "note", message }, self.out);
        } else {
            let _ = writeln!(self.out, "{message}");
        }
    }

    fn head(&mut self, a: &Side, b: &Side) {
        let side = |selector: &Selector, side: &Side| SideLine {
            file: selector.file.display().to_string(),
            submit: selector.submit,
            draw: selector.draw,
            generation: side.generation.map(Generation::name),
        };
        let (a, b) = (side(self.a, a), side(self.b, b));
        if self.args.json {
            let heading = Heading::of_lines("unwedge.diff", SCHEMA, self.db.identity());
            return line(&Header { heading, a, b }, self.out);
        }
        for (name, side) in [("A", a), ("B", b)] {
            let what = match (side.submit, side.draw) {
                (Some(submit), Some(draw)) => format!(", submit {submit}, draw {draw}"),
                (None, Some(draw)) => format!(", draw {draw}"),
                (Some(submit), None) => format!(", submit {submit}"),
                (None, None) => String::new(),
            };
            let gpu = side.generation.map(|g| format!(" ({g})")).unwrap_or_default();
            let _ = writeln!(self.out, "{name}: {}{what}{gpu}", side.file);
        }
    }
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
fn line(record: &impl Serialize, out: &mut dyn Write) {
    if serde_json::to_writer(&mut *out, record).is_ok() {
        let _ = out.write_all(b"\n");
    }
}

#[derive(Serialize)]
struct Header<'a> {
    #[serde(flatten)]
    heading: Heading<'a>,
    a: SideLine,
    b: SideLine,
}

#[derive(Serialize)]
struct SideLine {
    file: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    submit: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    draw: Option<u32>,
    generation: Option<&'static str>,
}

#[derive(Serialize)]
struct Note<'a> {
    #[serde(rename = "type")]
    ty: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct End {
    #[serde(rename = "type")]
    ty: &'static str,
    differs: bool,
    lost: bool,
}
