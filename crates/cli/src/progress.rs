//! Progress of long work, on standard error and only on a terminal. Never: a line that stays.

use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

/// Nothing is shown of work shorter than this.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between one line and the next.
const PACE: Duration = Duration::from_millis(100);
/// The longest line.
const COLUMNS: usize = 78;

/// A line that is overwritten while work goes on.
pub struct ProgressLine {
    /// When it is due; `None` where nobody watches.
    due: Option<Instant>,
    shown: bool,
}

impl Default for ProgressLine {
    /// A line that is not shown yet.
    fn default() -> ProgressLine {
        ProgressLine { due: io::stderr().is_terminal().then(|| Instant::now() + PATIENCE), shown: false }
    }
}

impl ProgressLine {
    /// Shows how far the work is, unless that was done a moment ago.
    pub fn show(&mut self, line: impl FnOnce() -> String) {
        let now = Instant::now();
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(now + PACE);
            self.shown = true;
            let line: String = line().chars().filter(|c| !c.is_control()).take(COLUMNS).collect();
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

/// A source whose reading is shown.
pub struct Progress<R> {
    source: R,
    /// What is being done: `reading x.rd`.
    what: String,
    done: u64,
    line: ProgressLine,
}

impl<R> Progress<R> {
    /// Shows how much of `source` has been read.
    pub fn new(source: R, what: String) -> Progress<R> {
        Progress { source, what, done: 0, line: ProgressLine::default() }
    }

    /// Shows nothing, where something else is on the terminal.
    pub fn silent(mut self) -> Progress<R> {
        self.line.due = None;
        self
    }

    /// The source itself.
    pub fn source(&self) -> &R {
        &self.source
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.done = self.done.saturating_add(got as u64);
        let megabytes = self.done as f64 / f64::from(1 << 20);
        self.line.show(|| format!("{}: {megabytes:.1} MiB", self.what));
        Ok(got)
    }
}
