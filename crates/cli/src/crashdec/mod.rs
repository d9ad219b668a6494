//! `unwedge crashdec`: a msm devcoredump as text, with the options and the lines of Mesa's crashdec.
//!
//! Walks the dump line by line, shows most lines as they are, and decodes registers, buffers and queues between them;
//! after the registers it shows the command stream around the hang. Never: a verdict, terminals, files. Where crashdec
//! stops or crashes (a malformed line, a device it does not know, the dump's end inside a section) this goes on.
//! The layout of the lines follows what crashdec of Mesa 25.0 prints.

mod args;
mod hfi;
mod indexed;
mod mempool;
mod prefetch;
mod ring;
mod sections;

pub use args::{Arguments, USAGE, parse_args};

use crate::text::Text;
use sections::Walk;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::devcore::{self, NotDevcore};
use unwedge_hw::Db;

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// `-a`: all registers at each draw, not only those written since the draw before.
    pub allregs: bool,
    /// `-c`: colours.
    pub color: bool,
    /// `-m`: the payload of CP_NOP as text.
    pub markers: bool,
    /// `-s`: registers at draws only, no single register writes.
    pub summary: bool,
    /// `-v`: contents of less interesting buffers, and the whole ring.
    pub verbose: bool,
    /// `-l`: dwords in front of the ring's read pointer to start at.
    pub lookback: u32,
}

impl Default for Options {
    fn default() -> Options {
        Options { allregs: false, color: false, markers: false, summary: false, verbose: false, lookback: 12 }
    }
}

/// Why nothing, or not everything, was shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nothing of the input looks like a dump.
    #[error(transparent)]
    NotDevcore(#[from] NotDevcore),
    /// The output could not be written.
    #[error("cannot write the output: {0}")]
    Write(#[from] io::Error),
}

/// Shows `dump` on `out` and what is wrong with it on `err`. Returns whether something was lost.
pub fn run(
    dump: &[u8],
    options: &Options,
    db: &Db,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<bool, Error> {
    if !devcore::is_devcore(dump) {
        return Err(NotDevcore.into());
    }
    let mut text = Text::new(out);
    let diagnostics = Walk::new(&mut text, options, db).run(dump);
    text.finish()?;
    let lost = diagnostics.iter().any(|d| d.severity == Severity::Loss);
    report(&diagnostics, err)?;
    Ok(lost)
}

/// Diagnostics told one by one; the rest is counted.
const TOLD: usize = 20;

fn report(diagnostics: &[Diagnostic], err: &mut dyn Write) -> io::Result<()> {
    for diagnostic in diagnostics.iter().take(TOLD) {
        writeln!(err, "crashdec: {diagnostic}")?;
    }
    match diagnostics.len().saturating_sub(TOLD) {
        0 => Ok(()),
        more => writeln!(err, "crashdec: … and {more} more"),
    }
}
