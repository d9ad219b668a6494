//! `unwedge`: why did the GPU hang?
//!
//! This crate reads files, talks to the terminal and prints. It never decodes: the library crates do. It is a library
//! so that tests and benchmarks can call what the program calls; [`main`] is the program.

mod afuc_names;
mod amd;
mod args;
pub mod capture;
pub mod cffdump;
pub mod crashdec;
mod database;
mod decode;
mod demo;
mod diff;
pub mod failure;
mod getopt;
mod info;
pub mod input;
mod isa;
mod kind;
mod lrc;
mod man;
mod microcode;
pub mod output;
mod packed;
mod pager;
mod progress;
mod query;
pub mod rd;
mod regs;
pub mod view;

use args::{Cli, Command, Global};
use clap::Parser;
use failure::{Failure, Outcome, complain};
use input::Input;
use kind::Kind;

use output::Output;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use unwedge::capture::msm::Devcore;
use unwedge::hw::Db;
use unwedge::postmortem::Report;
use unwedge_view::Style;
use unwedge_view::intel::Dump;
use unwedge_view::report as view_report;

/// The program: reads the process's arguments, runs the command, gives its exit status.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let result = match drop_in(&args) {
        Some((run, rest)) => run(rest, &Global::of_environment()),
        None => match Cli::try_parse_from(args::join_colour(args)) {
            Ok(cli) => run(&cli),
            Err(e) => {
                // Help and version go to standard output; a reader that goes away is no error.
                let _ = e.print();
                return ExitCode::from(if e.use_stderr() { failure::USAGE } else { 0 });
            }
        },
    };
    match result {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            complain!("{failure}");
            failure.code()
        }
    }
}

/// A tool of Mesa's that the program stands in for.
type DropIn = fn(&[OsString], &Global) -> Result<Outcome, Failure>;

const DROP_INS: [(&str, DropIn); 4] = [
    ("cffdump", cffdump::run),
    ("crashdec", crashdec::run),
    ("afuc-disasm", isa::afuc::disasm_drop_in),
    ("afuc-asm", isa::afuc::asm_drop_in),
];

/// The drop-in that the program's name or its first argument asks for, and its arguments: they are its own, `--color`
/// among them.
fn drop_in(args: &[OsString]) -> Option<(DropIn, &[OsString])> {
    let (program, rest) = args.split_first()?;
    let named = |name: &OsStr| DROP_INS.iter().find(|(tool, _)| name == *tool).map(|(_, run)| *run);
    if let Some(run) = Path::new(program).file_stem().and_then(named) {
        return Some((run, rest));
    }
    let (first, rest) = rest.split_first()?;
    Some((named(first)?, rest))
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Explain(args) => explain(args, global),
        Command::Decode(args) => decode::run(args, global),
        Command::Info(args) => info::run(args, global),
        Command::Rd(args) => rd::run(&args.command, global),
        Command::Query(args) => query::run(args, global),
        Command::Diff(args) => diff::run(args, global),
        Command::Regs(args) => regs::run(args, global),
        Command::Lrc(args) => lrc::run(&args.command, global),
        Command::Demo(args) => demo::run(args, global),
        Command::Amd(args) => isa::amd::run(&args.command, global),
        Command::Ir3(args) => isa::ir3::run(&args.command, global),
        Command::Ir2(args) => isa::ir2::run(&args.command, global),
        Command::Afuc(args) => isa::afuc::run(&args.command, global),
        Command::AfucDisasm(args) => isa::afuc::disasm_drop_in(&args.args, global),
        Command::AfucAsm(args) => isa::afuc::asm_drop_in(&args.args, global),
        Command::Crashdec(args) => crashdec::run(&args.args, global),
        Command::Cffdump(args) => cffdump::run(&args.args, global),
        Command::Man(args) => man::page(args),
        Command::Completions(args) => man::completions(args),
    }
}

fn explain(args: &args::Explain, global: &Global) -> Result<Outcome, Failure> {
    if args.file.is_dir() {
        return explain_amd(&amd::Source::open_folder(&args.file, global.max_size)?, args, global);
    }
    let input = Input::open(&args.file, global.max_size)?;
    let kind = unwedge::capture::sniff(&input.bytes);
    if amd::reads(kind) {
        return explain_amd(&amd::Source::of(input, kind), args, global);
    }
    let db = database::load(global)?;
    let mut report = report_of(&input, &db)?;
    report.diagnostics.splice(0..0, input.diagnostics.iter().cloned());
    let mut out = Output::open(global, false);
    let style = out.style;
    let sqe = match Devcore::read(&input.bytes) {
        Ok(dump) => microcode::look_up(&dump, args.firmware.as_deref(), &db, global)?,
        Err(_) if args.firmware.is_some() => {
            let message = "--firmware is that of an Adreno GPU, and this is no dump of one";
            return Err(Failure::Usage(message.to_owned()));
        }
        Err(_) => None,
    };
    print_report(&report, name_of(&args.file).as_deref(), sqe.as_ref(), args.json, style, &mut out);
    out.finish()?;
    Ok(Outcome::of(&input.name, &report.diagnostics))
}

/// The post-mortem of any dump.
///
/// # Errors
/// When it is a file of another kind.
pub(crate) fn report_of(input: &Input, db: &Db) -> Result<Report, Failure> {
    let kind = unwedge::capture::sniff(&input.bytes);
    let wrong = || Failure::no_dump(input, kind);
    match kind {
        Kind::MsmDevcore | Kind::Text => {
            let dump = Devcore::read(&input.bytes).map_err(|_| wrong())?;
            Ok(unwedge::postmortem::explain_msm(&dump, db))
        }
        _ => match kind::intel_dump(&input.bytes) {
            Some(Dump::I915(state)) => Ok(unwedge::postmortem::explain_i915(&state)),
            Some(Dump::Xe(dump)) => Ok(unwedge::postmortem::explain_xe(&dump)),
            None => Err(wrong()),
        },
    }
}

fn explain_amd(source: &amd::Source, args: &args::Explain, global: &Global) -> Result<Outcome, Failure> {
    let report = amd::explain(source)?;
    let mut out = Output::open(global, false);
    let style = out.style;
    print_report(&report, name_of(&args.file).as_deref(), None, args.json, style, &mut out);
    out.finish()?;
    Ok(Outcome::of(&source.name, &report.diagnostics))
}

/// What advised commands call the dump: its file, unless it came from standard input.
fn name_of(file: &Path) -> Option<String> {
    (file.as_os_str() != "-").then(|| file.to_string_lossy().into_owned())
}

/// A failed write is remembered by `out`, and reported by its `finish`.
fn print_report(
    report: &Report,
    file: Option<&str>,
    sqe: Option<&microcode::Microcode>,
    json: bool,
    style: Style,
    out: &mut dyn Write,
) {
    let _ = if json {
        view_report::json(report, file, sqe, out)
    } else {
        view_report::text(report, file, style, out).and_then(|()| sqe.map_or(Ok(()), |sqe| sqe.text(out)))
    };
}
