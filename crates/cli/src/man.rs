//! Man pages, help and shell completions on standard output. Never: makes them, which `args::pages` does.

use crate::args::pages::{built, completion_script, find, render};
use crate::args::{Completions, Man};
use crate::failure::{Failure, Outcome};
use std::io::{self, IsTerminal, Write};
use std::process::{Command, Stdio};

/// Prints the man page of the program or of one command; on a terminal, through `man` where there is one.
pub(crate) fn page(args: &Man) -> Result<Outcome, Failure> {
    let program = built();
    let page = render(named(&program, args)?)?;
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
pub(crate) fn help(args: &Man) -> Result<Outcome, Failure> {
    let program = built();
    let mut command = named(&program, args)?.clone();
    Ok(command.print_long_help().map(|()| Outcome::Complete)?)
}

/// The command that is asked for.
fn named<'c>(program: &'c clap::Command, args: &Man) -> Result<&'c clap::Command, Failure> {
    find(program, &args.command).ok_or_else(|| {
        Failure::Usage(format!("no command is called {}: see `unwedge --help`", args.command.join(" ")))
    })
}

/// Prints completions for a shell.
pub(crate) fn completions(args: &Completions) -> Result<Outcome, Failure> {
    write_all(&completion_script(args.shell))
}

fn write_all(bytes: &[u8]) -> Result<Outcome, Failure> {
    match io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(Outcome::Complete),
    }
}
