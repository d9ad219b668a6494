//! `unwedge crashdec`: an msm devcoredump as text, with the options and the lines of Mesa's crashdec.
//!
//! Walks the dump line by line, shows most lines as they are, and decodes registers, buffers and queues between them;
//! after the registers it shows the command stream around the hang. Never: a verdict, terminals, files. Where crashdec
//! stops or crashes (a malformed line, a device it does not know, the dump's end inside a section) this goes on.
//! The layout of the lines follows what crashdec of Mesa 25.0 prints.

mod hfi;
mod indexed;
mod mempool;
mod packet;
mod prefetch;
mod ring;
mod sections;
#[cfg(test)]
mod tests;
mod walk;

use crate::listing::TextOut;
use std::io::{self, Write};
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::msm::Devcore;
use unwedge_hw::{ChipOverride, Db};
use walk::SectionsWalk;

/// What to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashdecOptions {
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
    /// Show what crashdec leaves out: `registers-hlsq` decoded, rings that CP_RB_BASE does not name; and leave out the
    /// blank dwords in front of a fresh ring's first packet, which it takes for packets before a5xx.
    pub more: bool,
    /// `-l`: dwords in front of the ring's read pointer to start at.
    pub lookback: u32,
}

impl Default for CrashdecOptions {
    fn default() -> CrashdecOptions {
        CrashdecOptions {
            allregs: false,
            color: false,
            markers: false,
            summary: false,
            verbose: false,
            more: false,
            lookback: 12,
        }
    }
}

/// Shows a dump, of which `text` is the bytes, on `out` and what is wrong with it on `err`. Returns whether something of the
/// dump was lost. An `out` that fails ends the listing; it is for its owner to remember why.
pub fn run(
    (text, dump): (&[u8], &Devcore<'_>),
    options: &CrashdecOptions,
    db: &Db,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> bool {
    // What is malformed about the dump is for its reader to say; the listing adds what it could not show.
    let mut said = DumpNotes::default();
    dump.diagnostics.iter().for_each(|diagnostic| said.say(diagnostic.clone()));
    let taken_as = dump.taken_as.as_ref().and_then(ChipOverride::adreno);
    let mut listing = TextOut::new(out, LENGTH + LENGTH_PER_BYTE * text.len() as u64);
    let said = SectionsWalk::new(&mut listing, options, db, taken_as, said).run(text);
    listing.finish();
    // Nobody is left to tell when standard error is gone.
    let _ = said.report(err);
    said.lost
}

/// Longest listing of a dump: so many bytes, and so many more per byte of the dump. Listings of real dumps with all
/// options have some 70 bytes per byte.
pub const LENGTH: u64 = 16 << 20;
/// See [`LENGTH`].
pub const LENGTH_PER_BYTE: u64 = 192;

/// What is wrong with a dump.
#[derive(Debug, Default)]
struct DumpNotes {
    told: Vec<Diagnostic>,
    /// Not told one by one.
    more: u64,
    /// Something of the dump is not shown, or not understood.
    lost: bool,
}

/// Diagnostics told one by one.
const TOLD: usize = 20;

impl DumpNotes {
    fn say(&mut self, diagnostic: Diagnostic) {
        self.lost |= diagnostic.severity == Severity::Loss;
        if self.told.len() < TOLD {
            self.told.push(diagnostic);
        } else {
            self.more += 1;
        }
    }

    fn report(&self, err: &mut dyn Write) -> io::Result<()> {
        for diagnostic in &self.told {
            writeln!(err, "crashdec: {diagnostic}")?;
        }
        match self.more {
            0 => Ok(()),
            more => writeln!(err, "crashdec: … and {more} more"),
        }
    }
}
