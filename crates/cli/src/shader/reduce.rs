//! `unwedge shader reduce`: runs a command on each candidate. Never: chooses candidates, which `shader::reduce` does.

use super::{load, write_result};
use crate::args::{Global, ShaderReduce};
use crate::bounded::{CommandEnd, Interrupts, own_group, wait};
use crate::failure::{Failure, Outcome, complain};
use crate::progress::ProgressLine;
use crate::temporary::TemporaryFolder;
use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use unwedge::shader::reduce::{ReduceError, reduce};
use unwedge::shader::text;
use unwedge_view::plural::counted;

/// The argument that the file replaces.
const FILE: &str = "{}";

/// A command that decides whether a shader is interesting.
struct InterestingnessTest {
    program: OsString,
    arguments: Vec<OsString>,
    /// The file that it is given.
    file: PathBuf,
    limit: Duration,
    interrupts: Interrupts,
    _folder: TemporaryFolder,
}

/// Runs the command.
pub(super) fn run(args: &ShaderReduce, global: &Global) -> Result<Outcome, Failure> {
    let (name, shader) = load(&args.input, global)?;
    let test = InterestingnessTest::new(args)?;
    let (mut line, mut tried, mut smallest) = (ProgressLine::default(), 0_usize, shader.instruction_count());
    let result = reduce(&shader, args.tries, |candidate| {
        line.show(|| {
            let smallest = counted(smallest as u64, "instruction", "instructions");
            format!("reducing {name}: {tried} tried, {smallest}")
        });
        let text = text::print(candidate);
        // Errors on the shader itself show that the command does not work at all.
        let interesting = test.is_interesting(&text, tried == 0)?;
        tried += 1;
        if interesting {
            smallest = candidate.instruction_count();
            if args.output.is_some() {
                write_result(args.output.as_deref(), &text, global)?;
            }
        }
        Ok(interesting)
    });
    drop(line);
    let reduction = result.map_err(|e| match e {
        ReduceError::NotInteresting => {
            let program = test.program.to_string_lossy();
            Failure::Unusable(format!(
                "{name}: {program} does not exit with status 0 within --timeout for the shader itself"
            ))
        }
        ReduceError::Predicate(failure) => failure,
    })?;
    if args.output.is_none() {
        write_result(None, &text::print(&reduction.shader), global)?;
    }
    let from = counted(shader.instruction_count() as u64, "instruction", "instructions");
    let tries = counted(reduction.tries as u64, "candidate", "candidates");
    let end = if reduction.limited { ", stopped by --tries" } else { "" };
    complain!("{name}: {from} reduced to {}, {tries} tried{end}", reduction.shader.instruction_count());
    Ok(Outcome::Complete)
}

impl InterestingnessTest {
    fn new(args: &ShaderReduce) -> Result<InterestingnessTest, Failure> {
        let folder = TemporaryFolder::new("reduce").map_err(|(folder, e)| Failure::Write(folder, e))?;
        let file = folder.file("shader.txt");
        let (program, rest) = args
            .command
            .split_first()
            .ok_or_else(|| Failure::Usage("a command is missing after `--`".to_owned()))?;
        let mut arguments: Vec<OsString> = rest.to_vec();
        let mut named = false;
        for argument in arguments.iter_mut().filter(|argument| *argument == FILE) {
            *argument = file.clone().into();
            named = true;
        }
        if !named {
            arguments.push(file.clone().into());
        }
        let limit = Duration::from_secs(args.timeout);
        let interrupts =
            Interrupts::take().map_err(|e| Failure::Unusable(format!("cannot handle signals: {e}")))?;
        let program = program.clone();
        Ok(InterestingnessTest { program, arguments, file, limit, interrupts, _folder: folder })
    }

    /// Whether the command exits with status 0 for a shader. Its standard error is shown if `shown` is set.
    fn is_interesting(&self, text: &str, shown: bool) -> Result<bool, Failure> {
        std::fs::write(&self.file, text).map_err(|e| Failure::Write(self.file.display().to_string(), e))?;
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(if shown { Stdio::inherit() } else { Stdio::null() });
        let started = own_group(&mut command).spawn();
        let failed = |e: io::Error| Failure::Unusable(format!("{}: {e}", self.program.to_string_lossy()));
        let mut child = started.map_err(failed)?;
        match wait(&mut child, self.limit, || self.interrupts.happened()).map_err(failed)? {
            CommandEnd::Exited(status) => Ok(status.success()),
            CommandEnd::TooLong => Ok(false),
            CommandEnd::Interrupted => Err(Failure::Interrupted),
        }
    }
}
