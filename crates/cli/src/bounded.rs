//! Commands that run for a bounded time, and interrupts by the user.

use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use std::{io, thread};

/// The longest time between two looks at a command that runs.
const POLL: Duration = Duration::from_millis(20);

/// Interrupts by the user. The first one kills the running command, which has a process group of its own and so does not receive the
/// interrupt of the program.
pub struct Interrupts(Arc<AtomicBool>);

impl Interrupts {
    /// Takes the first interrupt; a second one ends the program.
    ///
    /// # Errors
    /// When signals cannot be handled.
    pub fn take() -> io::Result<Interrupts> {
        let happened = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            signal_hook::flag::register_conditional_default(signal, happened.clone())?;
            signal_hook::flag::register(signal, happened.clone())?;
        }
        Ok(Interrupts(happened))
    }

    /// Whether there was one.
    pub fn happened(&self) -> bool {
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
pub enum CommandEnd {
    /// It ended by itself.
    Exited(ExitStatus),
    /// It ran longer than the limit and was killed.
    TooLong,
    /// It was killed because of an interrupt.
    Interrupted,
}

/// Waits for a command to end. It is killed after `limit`, or when it is interrupted.
///
/// # Errors
/// When its state cannot be asked for.
pub fn wait(child: &mut Child, limit: Duration, interrupted: impl Fn() -> bool) -> io::Result<CommandEnd> {
    let start = Instant::now();
    let mut pause = Duration::from_micros(200);
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(CommandEnd::Exited(status));
        }
        let interrupted = interrupted();
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
pub fn own_group(command: &mut Command) -> &mut Command {
    use std::os::unix::process::CommandExt;
    command.process_group(0)
}

/// Without process groups only the command itself is killed.
#[cfg(not(unix))]
pub fn own_group(command: &mut Command) -> &mut Command {
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
