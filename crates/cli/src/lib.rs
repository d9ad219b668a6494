//! `unwedge`: why did the GPU hang?
//!
//! This crate reads files, talks to the terminal and prints. It never decodes: the library crates do. It is a library
//! so that tests and benchmarks can call what the program calls; [`main`] is the program.

mod args;
pub mod crashdec;
mod database;
mod decode;
mod demo;
pub mod explain;
mod failure;
mod info;
mod input;
mod json;
mod kind;
mod man;
mod output;
mod pager;
mod regs;
mod text;

use args::{Cli, Command, Global};
use clap::Parser;
use failure::{Failure, Outcome, complain};
use input::Input;
use kind::Kind;
use output::Output;
use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use unwedge_capture::devcore::Devcore;

/// The program: reads the process's arguments, runs the command, gives its exit status.
pub fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let result = match drop_in_arguments(&args) {
        Some(rest) => crashdec_drop_in(rest, &Global::of_environment()),
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

/// The arguments for crashdec, when the program's name or its first argument asks for it: they are crashdec's own,
/// `--color` among them.
fn drop_in_arguments(args: &[OsString]) -> Option<&[OsString]> {
    let (program, rest) = args.split_first()?;
    if Path::new(program).file_stem().is_some_and(|name| name == "crashdec") {
        return Some(rest);
    }
    rest.split_first().filter(|(first, _)| *first == "crashdec").map(|(_, rest)| rest)
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Explain(args) => explain(args, global),
        Command::Decode(args) => decode::run(args, global),
        Command::Info(args) => info::run(args, global),
        Command::Regs(args) => regs::run(args, global),
        Command::Demo(args) => demo::run(args, global),
        Command::Crashdec(args) => crashdec_drop_in(&args.args, global),
        Command::Man(args) => man::page(args),
        Command::Completions(args) => man::completions(args),
    }
}

/// Opens a file and checks that it is a msm devcoredump.
fn open_devcore(file: &Path, global: &Global) -> Result<Input, Failure> {
    let input = Input::open(file, global.max_size)?;
    match Kind::sniff(&input.bytes) {
        Kind::MsmDevcore | Kind::Text => Ok(input),
        kind => Err(Failure::wrong_kind(&input, kind)),
    }
}

fn explain(args: &args::Explain, global: &Global) -> Result<Outcome, Failure> {
    let input = open_devcore(&args.file, global)?;
    let db = database::load(global)?;
    let dump =
        Devcore::read(&input.bytes).map_err(|_| Failure::wrong_kind(&input, Kind::sniff(&input.bytes)))?;
    let mut report = unwedge_postmortem::explain_msm(&dump, &db);
    report.diagnostics.splice(0..0, input.diagnostics.iter().cloned());
    if args.file.as_os_str() != "-" {
        explain::name_file(&mut report, &args.file.to_string_lossy());
    }
    let mut out = Output::open(global, false);
    print_report(&report, args.json, &mut out);
    out.finish()?;
    Ok(Outcome::of(&input.name, &report.diagnostics))
}

/// A failed write is remembered by `out`, and reported by its `finish`.
fn print_report(report: &unwedge_postmortem::Report, json: bool, out: &mut Output) {
    let _ = if json {
        explain::json(report, out)
    } else {
        let style = explain::Style { colour: out.look.colour };
        explain::text(report, &style, out)
    };
}

/// Mesa's crashdec: its options, standard input by default, nothing but its text on standard output.
fn crashdec_drop_in(args: &[OsString], global: &Global) -> Result<Outcome, Failure> {
    let mut stderr = io::stderr();
    let arguments = match crashdec::parse_args(args.iter().cloned()) {
        Ok(arguments) => arguments,
        Err(usage) => {
            let complaint = usage.to_string();
            let separator = if complaint.is_empty() { "" } else { "\n" };
            let _ = write!(stderr, "{complaint}{separator}{}", crashdec::USAGE);
            return Ok(Outcome::Misused);
        }
    };
    let input = Input::open(arguments.file.as_deref().unwrap_or(Path::new("-")), global.max_size)?;
    let db = database::load(global)?;
    let mut out = Output::open(global, false);
    let outcome = decode::listing(&input, &arguments.options, &db, &mut out);
    out.finish()?;
    let _ = writeln!(stderr, "crashdec: {}", database::line(db.identity()));
    outcome
}
