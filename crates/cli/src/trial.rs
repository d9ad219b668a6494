//! Commands that judge a file: `shader reduce`, `bisect` and `reduce` run one for each candidate.
//!
//! Never: what an exit status means.

use crate::bounded::{CommandEnd, Interrupts, own_group, wait};
use crate::failure::Failure;
use crate::temporary::TemporaryFolder;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The argument that the file replaces.
const FILE: &str = "{}";

/// A command that is run for each of many files, which have one name.
pub struct TrialCommand {
    program: OsString,
    arguments: Vec<OsString>,
    /// The file that it is given.
    file: PathBuf,
    limit: Duration,
    interrupts: Interrupts,
    _folder: TemporaryFolder,
}

impl TrialCommand {
    /// The command, and the name of the file that it is given: in the place of `{}`, or after all arguments.
    ///
    /// # Errors
    /// No command, no folder for the file, or signals that cannot be handled.
    pub fn new(command: &[OsString], name: &str, limit: Duration) -> Result<TrialCommand, Failure> {
        let folder = TemporaryFolder::new("trial").map_err(|(folder, e)| Failure::Write(folder, e))?;
        let file = folder.file(name);
        let (program, rest) = command
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
        let interrupts =
            Interrupts::take().map_err(|e| Failure::Unusable(format!("cannot handle signals: {e}")))?;
        Ok(TrialCommand { program: program.clone(), arguments, file, limit, interrupts, _folder: folder })
    }

    /// What it is called.
    pub fn name(&self) -> String {
        self.program.to_string_lossy().into_owned()
    }

    /// The file that it is given.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Runs it for what the file holds. Its standard error is shown if `shown` is set.
    ///
    /// # Errors
    /// The command cannot be started, or the user has interrupted it.
    pub fn run(&self, shown: bool) -> Result<CommandEnd, Failure> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null()).stdout(Stdio::null());
        command.stderr(if shown { Stdio::inherit() } else { Stdio::null() });
        let started = own_group(&mut command).spawn();
        let failed = |e: io::Error| Failure::Unusable(format!("{}: {e}", self.name()));
        let mut child = started.map_err(failed)?;
        match wait(&mut child, self.limit, || self.interrupts.happened()).map_err(failed)? {
            CommandEnd::Interrupted => Err(Failure::Interrupted),
            end => Ok(end),
        }
    }
}
