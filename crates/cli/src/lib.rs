//! `unwedge`: why did the GPU hang?
//!
//! This crate reads files, talks to the terminal and prints. It never decodes: the library crates do. It is a library
//! so that tests and benchmarks can call what the program calls; [`main`] is the program.

mod aco;
mod bounded;
mod breadcrumbs;
pub mod bundle;
pub mod cffdump;
pub mod crashdec;
mod database;
mod decode;
mod demo;
mod diff;
pub mod dump;
pub mod edit;
mod explain;
pub mod failure;
mod generator;
mod getopt;
mod html;
pub mod info;
pub mod isa;
mod layout;
mod lint;
mod lrc;
pub mod man;
pub mod output;
pub mod packed;
mod pager;
mod pictures;
pub mod progress;
pub mod query;
pub mod rd;
mod rdtext;
mod regs;
mod replay;
mod schema;
mod shader;
mod temporary;
mod thin_archive;
mod trial;
mod tui;
#[cfg(unix)]
mod watch;

pub use unwedge_args as args;

use args::{Cli, Command, Global};
use failure::{Failure, Outcome, complain};

use unwedge::shader::front::NAGA_THREAD;

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

/// The program: reads the process's arguments, runs the command, gives its exit status.
pub fn main() -> ExitCode {
    ignore_panics_of_naga();
    let args: Vec<OsString> = std::env::args_os().collect();
    let result = match drop_in(&args) {
        Some((run, rest)) => run(rest, &Global::of_environment()),
        None => match args::parse(args) {
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

/// A panic of naga is an error of its input, which the command reports by itself.
fn ignore_panics_of_naga() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if std::thread::current().name() != Some(NAGA_THREAD) {
            report(panic);
        }
    }));
}

/// A tool of Mesa's that the program stands in for.
type DropIn = fn(&[OsString], &Global) -> Result<Outcome, Failure>;

const DROP_INS: [(&str, DropIn); 5] = [
    ("cffdump", cffdump::run),
    ("crashdec", crashdec::run),
    ("afuc-disasm", isa::afuc::disasm_drop_in),
    ("afuc-asm", isa::afuc::asm_drop_in),
    ("rddecompiler", rdtext::drop_in),
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
        Command::Explain(args) => explain::run(args, global),
        Command::Decode(args) => decode::run(args, global),
        Command::Info(args) => info::run(args, global),
        #[cfg(unix)]
        Command::Watch(args) => watch::run(args, global),
        #[cfg(not(unix))]
        Command::Watch(_) => {
            Err(Failure::Unusable("watch is for systems with the kernel's dumps: Linux".to_owned()))
        }
        Command::Bundle(args) => bundle::run(args, global),
        Command::Tui(args) => tui::run(args, global),
        Command::Rd(args) => rd::run(&args.command, global),
        Command::Replay(args) => replay::run(args, global),
        Command::Rddecompile(args) => rdtext::decompile(args, global),
        Command::Rdcompile(args) => rdtext::compile(args, global),
        Command::Edit(args) => edit::run(args, global),
        Command::Bisect(args) => edit::bisect::run(args, global),
        Command::Reduce(args) => edit::reduce::run(args, global),
        Command::Breadcrumbs(args) => breadcrumbs::run(&args.command, global),
        Command::Lint(args) => lint::run(args, global),
        Command::Query(args) => query::run(args, global),
        Command::Diff(args) => diff::run(args, global),
        Command::Regs(args) => regs::run(args, global),
        Command::Layout(args) => layout::run(args, global),
        Command::Lrc(args) => lrc::run(&args.command, global),
        Command::Demo(args) => demo::run(args, global),
        Command::Amd(args) => isa::amd::run(&args.command, global),
        Command::Shader(args) => shader::run(&args.command, global),
        Command::Aco(args) => aco::run(&args.command, global),
        Command::Ir3(args) => isa::ir3::run(&args.command, global),
        Command::Ir2(args) => isa::ir2::run(&args.command, global),
        Command::Eu(args) => isa::eu::run(&args.command, global),
        Command::Afuc(args) => isa::afuc::run(&args.command, global),
        Command::AfucDisasm(args) => isa::afuc::disasm_drop_in(&args.args, global),
        Command::AfucAsm(args) => isa::afuc::asm_drop_in(&args.args, global),
        Command::Crashdec(args) => crashdec::run(&args.args, global),
        Command::Cffdump(args) => cffdump::run(&args.args, global),
        Command::Rddecompiler(args) => rdtext::drop_in(&args.args, global),
        Command::Schema(args) => schema::run(args, global),
        Command::Man(args) => man::page(args),
        Command::Help(args) => man::help(args),
        Command::Completions(args) => man::completions(args),
    }
}
