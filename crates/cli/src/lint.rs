//! `unwedge lint`: findings in a capture. Never: more than one file.

use crate::args::{Global, Lint};
use crate::database;
use crate::dump;
use crate::failure::{Failure, Outcome, complain};
use crate::html;
use crate::output::Output;
use crate::progress::Progress;
use unwedge::check::ir3::Level;
use unwedge::postmortem::lint::{LintOptions, lint};
use unwedge::stream::play::SubmitChoice;
use unwedge_view::CaptureStream;
use unwedge_view::lint::{Linted, lint_rules};
use unwedge_view::replay::ReplayOptions;

/// Runs the command.
pub fn run(args: &Lint, global: &Global) -> Result<Outcome, Failure> {
    let Some(file) = args.file.as_ref().filter(|_| !args.rules) else {
        let mut out = Output::open(global, true);
        // A failed write is remembered, and reported by `finish`.
        let _ = lint_rules(&mut out);
        out.finish()?;
        return Ok(Outcome::Complete);
    };
    let number = |n: u32| i32::try_from(n).unwrap_or(i32::MAX);
    let last = args.last.unwrap_or(u32::MAX);
    if args.first > last {
        return Err(Failure::Usage(format!("--first {} is after --last {last}", args.first)));
    }
    let db = database::load(global)?;
    let stream = dump::open_capture(file)?;
    let name = stream.name.clone();
    let progress = Progress::new(stream, format!("linting {name}"));
    let machine = args.json || args.sarif;
    let mut source = if machine { progress.silent() } else { progress };
    let mut options = LintOptions::new(args.max_steps.unwrap_or(ReplayOptions::MAX_STEPS));
    let submits = number(args.first)..=number(last);
    options.choice = SubmitChoice { submits, exe: args.exe.clone(), compositors: true, one_gpu: false };
    let (report, mut diagnostics) = lint(&mut source, &options, &db, global.max_size);
    diagnostics.splice(0..0, source.source().diagnostics());
    if report.counts.submits == 0 && diagnostics.is_empty() {
        return Err(Failure::NotFound(format!("{name}: no submit was executed")));
    }
    let shown = if args.all { Level::Note } else { args.deny.max(Level::Warning) };
    let linted = Linted { name: &name, report: &report, shown, all: args.all };
    if let Some(file) = &args.html {
        let mut page = Vec::new();
        linted.html(db.identity(), &mut page)?;
        html::write(file, &page)?;
    } else {
        let mut out = Output::open(global, !machine);
        let style = out.style;
        // As above.
        let _ = match (args.json, args.sarif) {
            (true, _) => linted.json(db.identity(), &mut out),
            (_, true) => linted.sarif(&mut out),
            _ => linted.text(style, &mut out),
        };
        out.finish()?;
    }
    if report.more {
        complain!("{name}: there were more findings than are kept");
    }
    let outcome = Outcome::of(&name, &diagnostics);
    if outcome == Outcome::Complete && report.of_level(args.deny).next().is_some() {
        return Ok(Outcome::Found);
    }
    Ok(outcome)
}
