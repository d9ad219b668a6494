//! Man pages and shell completions, from the argument table.

use crate::args::{Cli, Completions, Man};
use crate::failure::{Failure, Outcome};
use clap::CommandFactory;
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

/// Prints the man page of the program or of one command; on a terminal, through `man` where there is one.
pub fn page(args: &Man) -> Result<Outcome, Failure> {
    let page = render(&args.command)?;
    if io::stdout().is_terminal() && shown_by_man(&page) {
        return Ok(Outcome::Complete);
    }
    write_all(&page)
}

/// Shows a page with the system's `man`; `false` when that is not there, or fails.
fn shown_by_man(page: &[u8]) -> bool {
    let Ok(mut man) = Command::new("man").args(["-l", "-"]).stdin(Stdio::piped()).spawn() else {
        return false;
    };
    if let Some(mut stdin) = man.stdin.take() {
        // A reader who quits early is no failure; whether the page was shown, the exit status says.
        let _ = stdin.write_all(page);
    }
    man.wait().is_ok_and(|status| status.success())
}

/// Prints the help of the program or of one command, as `--help` does.
pub fn help(args: &Man) -> Result<Outcome, Failure> {
    let program = built();
    let mut command = find(&program, &args.command)?.clone();
    Ok(command.print_long_help().map(|()| Outcome::Complete)?)
}

/// Prints completions for a shell.
pub fn completions(args: &Completions) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "unwedge", &mut script);
    write_all(&script)
}

/// The argument table with the names of all commands filled in.
fn built() -> clap::Command {
    let mut program = Cli::command();
    program.build();
    program
}

/// `path` is a command and the command within it, as typed (`ir3 disasm`) or as its page is called (`ir3-disasm`).
fn find<'c>(program: &'c clap::Command, path: &[String]) -> Result<&'c clap::Command, Failure> {
    let mut command = program;
    for name in path {
        let within = command.find_subcommand(name).or_else(|| {
            let (outer, inner) = name.split_once('-')?;
            command.find_subcommand(outer)?.find_subcommand(inner)
        });
        command = within.ok_or_else(|| {
            Failure::Usage(format!("no command is called {}: see `unwedge --help`", path.join(" ")))
        })?;
    }
    Ok(command)
}

fn render(path: &[String]) -> Result<Vec<u8>, Failure> {
    let program = built();
    let command = find(&program, path)?;
    let title = command.get_display_name().unwrap_or("unwedge").to_owned();
    let mut page = Vec::new();
    // No date: the page is reproducible.
    let man = clap_mangen::Man::new(command.clone())
        .date("")
        .source(format!("unwedge {}", env!("CARGO_PKG_VERSION")));
    man.title(title).manual("unwedge manual").render(&mut page)?;
    Ok(page)
}

fn write_all(bytes: &[u8]) -> Result<Outcome, Failure> {
    match io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(Outcome::Complete),
    }
}
