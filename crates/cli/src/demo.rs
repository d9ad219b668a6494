//! `unwedge demo`: hangs the virtual Adreno, and explains the dump that this leaves as any other.

use crate::args::{self, Global};
use crate::database;
use crate::explain::{print_report, report_options};
use crate::failure::{Failure, Outcome};
use crate::output::Output;
use std::io::Write;
use unwedge::capture::{Dump, DumpPart};
use unwedge::files::InputError;
use unwedge_view::around;

/// What commands in the report call the dump when it is not saved.
const UNSAVED: &str = "demo.devcore";
/// Runs the command.
pub fn run(args: &args::Demo, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let text = unwedge::demo::hung_in_wait(&db);
    if let Some(path) = &args.save {
        std::fs::write(path, &text).map_err(|e| InputError::Io(path.display().to_string(), e))?;
    }
    let dump = Dump::read(&[DumpPart { name: "demo", bytes: &text }])
        .map_err(|_| Failure::Database("the demo's dump does not read back".into()))?;
    let report = around::explained(&dump, &db, global.max_size);
    let file = args.save.as_ref().map(|path| path.to_string_lossy());
    let mut out = Output::open(global, false);
    let options = report_options(out.style, None);
    // What the report advises to run takes a file.
    let advised = if args.json { None } else { Some(UNSAVED) };
    print_report(&report, file.as_deref().or(advised), args.json, options, &mut out);
    if file.is_none() && !args.json {
        // A failed write is remembered, and reported by `finish`.
        let _ = writeln!(out, "\n`unwedge demo --save {UNSAVED}` writes this dump to a file; run it first.");
    }
    out.finish()?;
    Ok(Outcome::of("demo", &report.diagnostics))
}
