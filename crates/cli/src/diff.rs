//! `unwedge diff`: which state differs between two draws, two submits or two captures; of two dumps, the verdicts.

use crate::args::{self, Global};
use crate::database;
use crate::dump::{self, DumpFiles, Opened, Source};
use crate::failure::{Failure, Outcome, complain};
use crate::output::{Output, columns};
use crate::pictures;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use unwedge::base::{Diagnostic, Severity};
use unwedge::capture::Dump;
use unwedge::hw::Db;
use unwedge::postmortem::explain;
use unwedge_view::ViewError;
use unwedge_view::diff::{
    self, Compared, DiffLevel, DiffOptions, ExplainedDump, Selector, Side, SideError, VerdictOptions,
};

/// A side as an argument names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SideArg {
    /// The file.
    pub file: PathBuf,
    /// Only this submit; of a dump this ring.
    pub submit: Option<u32>,
    /// Only this draw.
    pub draw: Option<u32>,
}

impl SideArg {
    /// `FILE`, `FILE:SUBMIT`, `FILE:SUBMIT.DRAW`, `FILE:.DRAW`; what begins with the colon is of `first`'s file. A file
    /// that is called so is meant before all else.
    pub fn parse(text: &OsStr, first: Option<&Path>) -> SideArg {
        let whole = SideArg { file: PathBuf::from(text), submit: None, draw: None };
        if Path::new(text).exists() {
            return whole;
        }
        let Some((file, place)) = text.to_str().and_then(|text| text.rsplit_once(':')) else { return whole };
        let number = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        let (submit, draw) = match place.split_once('.') {
            Some((submit, draw)) => (number(submit), draw.parse().ok().map(Some)),
            None => (place.parse().ok().map(Some), Some(None)),
        };
        let file = match (file, first) {
            ("", Some(first)) => first.to_path_buf(),
            _ => PathBuf::from(file),
        };
        match (submit, draw) {
            (Some(submit), Some(draw)) => SideArg { file, submit, draw },
            _ => whole,
        }
    }

    /// What of the file is compared.
    pub fn selector(&self) -> Selector {
        Selector { name: self.file.display().to_string(), submit: self.submit, draw: self.draw }
    }
}

/// Runs the command.
pub fn run(args: &args::Diff, global: &Global) -> Result<Outcome, Failure> {
    if args.images {
        return pictures::diff(args, global);
    }
    let mut a = SideArg::parse(&args.a, None);
    let mut b = SideArg::parse(&args.b, Some(&a.file));
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
    let (of_a, of_b) = (a.selector(), b.selector());
    if of_a.level() != of_b.level() {
        let message = "one side is a draw, a submit or a file, and the other is not: select the same of both";
        return Err(Failure::Usage(message.to_owned()));
    }
    let one_input = a.file == b.file;
    if one_input && a.file.as_os_str() == "-" {
        return Err(Failure::Usage("standard input can be one side only".to_owned()));
    }
    if one_input && dump::is_read_once(&a.file) {
        let message = format!("{}: can be read once, so it can be one side only", a.file.display());
        return Err(Failure::Usage(message));
    }
    let db = database::load(global)?;
    let (source_a, source_b) = match (Source::open(&a.file), Source::open(&b.file)) {
        (Ok(source_a), Ok(source_b)) => (source_a, source_b),
        (Err(e), Err(other)) => {
            complain!("{other}");
            return Err(e);
        }
        (Err(e), Ok(_)) | (Ok(_), Err(e)) => return Err(e),
    };
    let dumps = !source_a.is_capture() && !source_b.is_capture();
    if of_a.level() == DiffLevel::File && !args.draws && !args.once && dumps {
        return verdicts([source_a, source_b], args, &db, global);
    }
    let mut out = open(args, global);
    let options = DiffOptions { once: args.once, one_input, json: args.json, style: out.style };
    let load = |source: Source, wrong: &OnceLock<Failure>| {
        Ok(match source.load(global.max_size)? {
            Opened::Capture(stream) => diff::Opened::Capture(Box::new(stream)),
            Opened::Dump(files) => {
                let (side, failure) = files.into_side();
                wrong.get_or_init(|| failure);
                side
            }
        })
    };
    // What is said of a dump of another kind, which only its reader finds out.
    let (wrong_a, wrong_b) = (OnceLock::new(), OnceLock::new());
    let sides = [
        Side { selector: &of_a, open: Box::new(|| load(source_a, &wrong_a)) },
        Side { selector: &of_b, open: Box::new(|| load(source_b, &wrong_b)) },
    ];
    let compared = diff::compare(sides, options, &db, global.max_size, &mut out);
    out.finish()?;
    let Compared { differs, cut, absent, notes, sides: [read_a, read_b] } = compared;
    for note in notes {
        complain!("{note}");
    }
    let failure_a = |e| failure(&of_a.name, e, wrong_a.into_inner());
    let failure_b = |e| failure(&of_b.name, e, wrong_b.into_inner());
    let sides = match (read_a, read_b) {
        (Ok(lost_a), Ok(lost_b)) => [(&of_a.name, lost_a), (&of_b.name, lost_b)],
        (Err(e), Err(other)) => {
            complain!("{}", failure_b(other));
            return Err(failure_a(e));
        }
        (Err(e), Ok(diagnostics)) => {
            tell(&of_b.name, &diagnostics);
            return Err(failure_a(e));
        }
        (Ok(diagnostics), Err(e)) => {
            tell(&of_a.name, &diagnostics);
            return Err(failure_b(e));
        }
    };
    if absent {
        return Err(Failure::NotFound("nothing to compare".to_owned()));
    }
    let lost = sides.into_iter().fold(cut, |lost, (name, diagnostics)| tell(name, &diagnostics) | lost);
    Ok(match (lost, differs && args.exit_code) {
        (true, _) => Outcome::Lost,
        (false, true) => Outcome::Found,
        (false, false) => Outcome::Complete,
    })
}

/// Where the differences go.
fn open(args: &args::Diff, global: &Global) -> Output {
    let [a, b] = [&args.a, &args.b].map(|side| side.to_string_lossy());
    Output::open_page(global, !args.json, args.html.as_deref(), || format!("Differences of {a} and {b}"))
}

/// Compares two dumps by what is said of them.
fn verdicts([a, b]: [Source; 2], args: &args::Diff, db: &Db, global: &Global) -> Result<Outcome, Failure> {
    let (files_a, files_b) = (a.read(global.max_size)?, b.read(global.max_size)?);
    let (dump_a, dump_b) = (files_a.read()?, files_b.read()?);
    let report = |dump: &Dump<'_>, files: &DumpFiles| {
        let mut report = explain(dump, db);
        report.diagnostics.splice(0..0, files.unpacking());
        report
    };
    let (report_a, report_b) = (report(&dump_a, &files_a), report(&dump_b, &files_b));
    let mut out = open(args, global);
    let options = VerdictOptions {
        json: args.json,
        verbose: args.verbose,
        style: out.style,
        width: columns(args.width),
        max_size: global.max_size,
    };
    let sides = [
        ExplainedDump { name: &files_a.name, dump: &dump_a, report: &report_a },
        ExplainedDump { name: &files_b.name, dump: &dump_b, report: &report_b },
    ];
    let differs = diff::verdicts(sides, options, db, &mut out);
    out.finish()?;
    let lost = tell(&files_a.name, &report_a.diagnostics) | tell(&files_b.name, &report_b.diagnostics);
    Ok(match (lost, differs && args.exit_code) {
        (true, _) => Outcome::Lost,
        (false, true) => Outcome::Found,
        (false, false) => Outcome::Complete,
    })
}

/// The differences of two files as plain text: of dumps those of the verdicts.
pub(crate) fn text(a: &Path, b: &Path, db: &Db, global: &Global) -> Result<String, Failure> {
    let (source_a, source_b) = (Source::open(a)?, Source::open(b)?);
    let mut out = Vec::new();
    if source_a.is_capture() || source_b.is_capture() {
        let [of_a, of_b] = [a, b].map(|file| SideArg::parse(file.as_os_str(), None).selector());
        let load = |source: Source| {
            Ok::<_, Failure>(match source.load(global.max_size)? {
                Opened::Capture(stream) => diff::Opened::Capture(Box::new(stream)),
                Opened::Dump(files) => files.into_side().0,
            })
        };
        let sides = [
            Side { selector: &of_a, open: Box::new(|| load(source_a)) },
            Side { selector: &of_b, open: Box::new(|| load(source_b)) },
        ];
        let options = DiffOptions { one_input: a == b, ..DiffOptions::default() };
        let compared = diff::compare(sides, options, db, global.max_size, &mut out);
        let [read_a, read_b] = compared.sides;
        read_a.map_err(|e| failure(&of_a.name, e, None))?;
        read_b.map_err(|e| failure(&of_b.name, e, None))?;
    } else {
        let (files_a, files_b) = (source_a.read(global.max_size)?, source_b.read(global.max_size)?);
        let (dump_a, dump_b) = (files_a.read()?, files_b.read()?);
        let (report_a, report_b) = (explain(&dump_a, db), explain(&dump_b, db));
        let options =
            VerdictOptions { verbose: true, max_size: global.max_size, ..VerdictOptions::default() };
        let sides = [
            ExplainedDump { name: &files_a.name, dump: &dump_a, report: &report_a },
            ExplainedDump { name: &files_b.name, dump: &dump_b, report: &report_b },
        ];
        diff::verdicts(sides, options, db, &mut out);
    }
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Why a side cannot be compared; `wrong` is what to say of one that is of another kind.
fn failure(name: &str, error: SideError<Failure>, wrong: Option<Failure>) -> Failure {
    match (error, wrong) {
        (SideError::Open(failure), _) => failure,
        (SideError::View(ViewError::NotADump(_)), Some(wrong)) => wrong,
        (SideError::View(e @ ViewError::UnknownGpu), _) => {
            Failure::Unusable(format!("{name}: {e}: it cannot be compared"))
        }
        (SideError::View(e), _) => Failure::Unusable(format!("{name}: {e}")),
    }
}

/// Says what was lost, and what is unusual.
fn tell(name: &str, diagnostics: &[Diagnostic]) -> bool {
    for note in diagnostics.iter().filter(|d| d.severity == Severity::Note) {
        complain!("{name}: {note}");
    }
    Outcome::of(name, diagnostics) == Outcome::Lost
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors() {
        let parse = |text: &str| {
            let s = SideArg::parse(OsStr::new(text), Some(Path::new("first.rd")));
            (s.file.to_string_lossy().into_owned(), s.submit, s.draw)
        };
        let check = |text: &str, file: &str, submit, draw| {
            assert_eq!(parse(text), (file.to_owned(), submit, draw), "{text}");
        };
        check("a.rd", "a.rd", None, None);
        check("a.rd:3", "a.rd", Some(3), None);
        check("a.rd:3.12", "a.rd", Some(3), Some(12));
        check("a.rd:.12", "a.rd", None, Some(12));
        check(":3", "first.rd", Some(3), None);
        check(":.12", "first.rd", None, Some(12));
        check("-:3", "-", Some(3), None);
        check("c:/a.rd", "c:/a.rd", None, None);
        check("a:b.rd", "a:b.rd", None, None);
        check("a.rd:3.", "a.rd:3.", None, None);
    }
}
