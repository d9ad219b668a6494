//! `unwedge shader reduce`: runs a command on each candidate. Never: chooses candidates, which `shader::reduce` does.

use super::{load, write_result};
use crate::args::{Global, ShaderReduce};
use crate::failure::{Failure, Outcome, complain};
use crate::progress::ProgressLine;
use crate::temporary::TemporaryFolder;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};
use unwedge::shader::reduce::{ReduceError, reduce};
use unwedge::shader::text;
use unwedge_view::plural::counted;

/// The longest time between two looks at a command that runs.
const POLL: Duration = Duration::from_millis(20);
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

/// Interrupts by the user. The first one kills the running command, which has a process group of its own and so does not receive the
/// interrupt of the program.
struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Takes the first interrupt; a second one ends the program.
    fn take() -> io::Result<Interrupts> {
        let happened = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, happened.clone())?;
            signal_hook::flag::register(signal, happened.clone())?;
        }
        Ok(Interrupts(happened))
    }

    fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for Interrupts {
    /// From now on an interrupt ends the program.
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// How a command ended.
enum CommandEnd {
    Exited(ExitStatus),
    /// It ran longer than the limit and was killed.
    TooLong,
    /// It was killed because of an interrupt.
    Interrupted,
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
        match wait(&mut child, self.limit, &self.interrupts).map_err(failed)? {
            CommandEnd::Exited(status) => Ok(status.success()),
            CommandEnd::TooLong => Ok(false),
            CommandEnd::Interrupted => Err(Failure::Interrupted),
        }
    }
}

/// Waits for a command to end.
fn wait(child: &mut Child, limit: Duration, interrupts: &Interrupts) -> io::Result<CommandEnd> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(CommandEnd::Exited(status));
        }
        let interrupted = interrupts.happened();
        if interrupted || start.elapsed() >= limit {
            kill(child);
            child.wait()?;
            return Ok(if interrupted { CommandEnd::Interrupted } else { CommandEnd::TooLong });
        }
        thread::sleep(pause);
        pause = (pause * 2).min(POLL);
    }
}

/// Puts a command into a process group of its own, so that it is killed with what it starts.
#[cfg(unix)]
fn own_group(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.process_group(0)
}

/// Without process groups only the command itself is killed.
#[cfg(not(unix))]
fn own_group(command: &mut Command) -> &mut Command {
    command
}

/// Kills a command, and its process group where there are such groups.
fn kill(child: &mut Child) {
    #[cfg(unix)]
    let _ = rustix::process::kill_process_group(
        rustix::process::Pid::from_child(child),
        rustix::process::Signal::KILL,
    );
    // It may have ended by itself.
    let _ = child.kill();
}
