//! Progress of long work, on standard error and only on a terminal. Never: a line that stays.

use std::io::{self, IsTerminal, Read, Write};
use std::time::{Duration, Instant};

/// Nothing is shown of work shorter than this.
const PATIENCE: Duration = Duration::from_millis(500);
/// Between one line and the next.
const PACE: Duration = Duration::from_millis(100);

/// A source whose reading is shown.
pub struct Progress<R> {
    source: R,
    /// What is being done: `reading x.rd`.
    what: String,
    done: u64,
    /// When the next line is due; `None` where nobody watches.
    due: Option<Instant>,
    shown: bool,
}

impl<R> Progress<R> {
    /// Shows how much of `source` has been read.
    pub fn new(source: R, what: String) -> Progress<R> {
        let due = io::stderr().is_terminal().then(|| Instant::now() + PATIENCE);
        Progress { source, what, done: 0, due, shown: false }
    }

    /// The source itself.
    pub fn source(&self) -> &R {
        &self.source
    }

    fn show(&mut self) {
        let now = Instant::now();
        if self.due.is_some_and(|due| now >= due) {
            self.due = Some(now + PACE);
            self.shown = true;
            let megabytes = self.done as f64 / f64::from(1 << 20);
            let _ = write!(io::stderr(), "\r\x1b[K{}: {megabytes:.1} MiB", self.what);
        }
    }
}

impl<R: Read> Read for Progress<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.done = self.done.saturating_add(got as u64);
        self.show();
        Ok(got)
    }
}

impl<R> Drop for Progress<R> {
    fn drop(&mut self) {
        if self.shown {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}
