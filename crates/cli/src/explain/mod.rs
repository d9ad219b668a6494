//! `unwedge explain`: why it hung, as one screen or JSON; of several dumps as a line each.

mod many;

use crate::args::{self, Global};
use crate::database;
use crate::dump::open_dump;
use crate::failure::{Failure, Outcome, complain};
use crate::output::{Output, columns};
use std::io::Write;
use std::path::{Path, PathBuf};
use unwedge::capture::Dump;
use unwedge::capture::msm::Devcore;
use unwedge::files::Input;
use unwedge::hw::Db;
use unwedge::postmortem::Report;
use unwedge::postmortem::adreno::{firmware_name, has_sqe_pc, locate_sqe};
use unwedge_view::report::{self, ReportOptions};
use unwedge_view::{Style, around, batch};

/// Where distributions keep the firmware.
const FIRMWARE: &str = "/lib/firmware/qcom";

/// Runs the command.
pub fn run(args: &args::Explain, global: &Global) -> Result<Outcome, Failure> {
    let db = database::load(global)?;
    let file = match &args.files[..] {
        [file] if !many::is_batch(&args.files) => file,
        _ => return many::run(args, &db, global),
    };
    let files = open_dump(file, global.max_size)?;
    let dump = files.read_as(args.chip.as_ref())?;
    let mut report = around::explained(&dump, &db, global.max_size);
    match &dump {
        Dump::Msm(dump) => look_up_sqe(dump, args.firmware.as_deref(), &db, global, &mut report)?,
        _ if args.firmware.is_some() => {
            let message = "--firmware is that of an Adreno GPU, and this is not a dump of one";
            return Err(Failure::Usage(message.to_owned()));
        }
        _ => {}
    }
    report.diagnostics.splice(0..0, files.unpacking());
    match &args.html {
        Some(page) => html(page, &report, &dump, file, &db, global)?,
        None => show(&report, file, args, global)?,
    }
    let outcome = Outcome::of(&files.name, &report.diagnostics);
    if report.gpu.family().is_none() && args.chip.is_none() {
        complain!("{}: --chip NAME reads it as a GPU that is known, as in --chip a7xx", files.name);
    }
    Ok(outcome)
}

/// Writes the page of a report.
fn html(
    page: &Path,
    report: &Report,
    dump: &Dump<'_>,
    file: &Path,
    db: &Db,
    global: &Global,
) -> Result<(), Failure> {
    let mut bytes = Vec::new();
    let name = file.to_string_lossy();
    let file = (name != "-").then_some(&*name);
    unwedge_view::html::explain(dump, db, global.max_size, report, file, &mut bytes)?;
    Ok(crate::html::write(page, &bytes)?)
}

fn show(report: &Report, file: &Path, args: &args::Explain, global: &Global) -> Result<(), Failure> {
    let mut out = Output::open(global, false);
    let style = out.style;
    let name = file.to_string_lossy();
    if args.signature {
        // A failed write is remembered by `out`, and reported by its `finish`.
        let _ = batch::signature_line(&name, report, &mut out);
        return Ok(out.finish()?);
    }
    // What advised commands call the dump: its file, unless it came from standard input.
    let file = (name != "-").then_some(&*name);
    let options = ReportOptions { verbose: args.verbose, ..report_options(style, args.width) };
    print_report(report, file, args.json, options, &mut out);
    Ok(out.finish()?)
}

/// A report in so many columns, if that is asked for or known.
pub(crate) fn report_options(style: Style, width: Option<u16>) -> ReportOptions {
    let options = ReportOptions { style, ..ReportOptions::default() };
    ReportOptions { width: columns(width).unwrap_or(options.width), ..options }
}

/// A failed write is remembered by `out`, and reported by its `finish`.
pub(crate) fn print_report(
    report: &Report,
    file: Option<&str>,
    json: bool,
    options: ReportOptions,
    out: &mut dyn Write,
) {
    let _ = if json { report::json(report, file, out) } else { report::text(report, file, options, out) };
}

/// Looks the PC of a dump up in a firmware: in the one given, or in the one the system would load.
fn look_up_sqe(
    dump: &Devcore<'_>,
    firmware: Option<&Path>,
    db: &Db,
    global: &Global,
    report: &mut Report,
) -> Result<(), Failure> {
    if !has_sqe_pc(dump) {
        if firmware.is_some() {
            complain!("the dump has no CP_SQE_STAT: there is no PC to look up in the firmware");
        }
        return Ok(());
    }
    let input = match firmware {
        Some(file) => Input::open(file, global.max_size)?,
        None => match installed(dump).and_then(|file| Input::open(&file, global.max_size).ok()) {
            Some(input) => input,
            None => return Ok(()),
        },
    };
    match locate_sqe(dump, &input.name, &input.bytes, db) {
        Ok(position) => report.sqe = position,
        Err(error) if firmware.is_some() => {
            return Err(Failure::Unusable(format!("{}: {error}", input.name)));
        }
        Err(_) => {}
    }
    Ok(())
}

/// The firmware file of the GPU, where the system has it.
fn installed(dump: &Devcore<'_>) -> Option<PathBuf> {
    let name = firmware_name(dump)?;
    let files = ["", ".zst", ".xz"].iter().map(|suffix| Path::new(FIRMWARE).join(format!("{name}{suffix}")));
    files.into_iter().find(|path| path.is_file())
}
