//! Man pages and shell completions, from the argument table.

use crate::args::{Cli, Completions, Man};
use crate::failure::{Failure, Outcome};
use clap::CommandFactory;
use std::io::{self, Write};

/// Prints the man page of the program or of one command.
pub fn page(args: &Man) -> Result<Outcome, Failure> {
    write_all(&render(&args.command)?)
}

/// Prints completions for a shell.
pub fn completions(args: &Completions) -> Result<Outcome, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "unwedge", &mut script);
    write_all(&script)
}

/// `path` is a command and the command within it, as typed (`ir3 disasm`) or as its page is called (`ir3-disasm`).
fn render(path: &[String]) -> Result<Vec<u8>, Failure> {
    let mut program = Cli::command();
    program.build();
    let mut command = &program;
    for name in path {
        let within = command.find_subcommand(name).or_else(|| {
            let (outer, inner) = name.split_once('-')?;
            command.find_subcommand(outer)?.find_subcommand(inner)
        });
        command = within.ok_or_else(|| {
            Failure::Usage(format!("no command is called {}: see `unwedge --help`", path.join(" ")))
        })?;
    }
    let mut page = Vec::new();
    // No date: the page is reproducible.
    clap_mangen::Man::new(command.clone()).date("").manual("unwedge manual").render(&mut page)?;
    Ok(page)
}

fn write_all(bytes: &[u8]) -> Result<Outcome, Failure> {
    match io::stdout().lock().write_all(bytes) {
        Err(e) if e.kind() != io::ErrorKind::BrokenPipe => Err(e.into()),
        _ => Ok(Outcome::Complete),
    }
}
