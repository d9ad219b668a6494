//! `unwedge`: why did the GPU hang?
//!
//! This crate reads files, talks to the terminal and prints. It never decodes: the library crates do.

mod args;
mod crashdec;
mod database;
mod decode;
mod demo;
mod explain;
mod failure;
mod info;
mod input;
mod json;
mod kind;
mod man;
mod output;
mod pager;
mod regs;

use args::{Cli, Command, Global};
use clap::Parser;
use failure::{Failure, Outcome, complain};
use input::Input;
use kind::Kind;
use output::Output;
use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;
use unwedge_capture::devcore::Devcore;

fn main() -> ExitCode {
    let mut args: Vec<OsString> = args::join_colour(std::env::args_os());
    if let Some(command) = drop_in(args.first()) {
        args.insert(1, command.into());
    }
    let cli = match Cli::try_parse_from(args) {
        Ok(cli) => cli,
        Err(e) => {
            // Help and version go to standard output; a reader that goes away is no error.
            let _ = e.print();
            return ExitCode::from(if e.use_stderr() { failure::USAGE } else { 0 });
        }
    };
    match run(&cli) {
        Ok(outcome) => outcome.into(),
        Err(failure) => {
            complain!("{failure}");
            failure.code()
        }
    }
}

/// The command that the name of the program stands for.
fn drop_in(program: Option<&OsString>) -> Option<&'static str> {
    let name = Path::new(program?).file_stem()?;
    (name == "crashdec").then_some("crashdec")
}

fn run(cli: &Cli) -> Result<Outcome, Failure> {
    let global = &cli.global;
    match &cli.command {
        Command::Explain(args) => explain(args, global),
        Command::Decode(args) => decode::run(args, global),
        Command::Info(args) => info::run(args, global),
        Command::Regs(args) => regs::run(args, global),
        Command::Demo(args) => demo::run(args, global),
        Command::Crashdec(args) => crashdec_drop_in(args, global),
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
    let dump = Devcore::read(&input.bytes).map_err(|_| Failure::wrong_kind(&input, Kind::sniff(&input.bytes)))?;
    let mut report = unwedge_postmortem::explain_msm(&dump, &db);
    report.diagnostics.splice(0..0, input.diagnostics.iter().cloned());
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
fn crashdec_drop_in(_args: &args::Crashdec, _global: &Global) -> Result<Outcome, Failure> {
    Ok(Outcome::Complete)
}
