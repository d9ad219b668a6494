//! Reads a capture and remembers its end, so that what is after the last section can be copied.

use std::io::{self, Read, Write};

/// Bytes that are remembered: more than a reader of captures reads ahead.
const KEPT: usize = 1 << 20;

/// A source, and the last bytes that were read of it.
pub(super) struct TailReader<R> {
    source: R,
    /// Bytes read before those that are remembered.
    before: u64,
    last: Vec<u8>,
}

impl<R: Read> TailReader<R> {
    pub(super) fn new(source: R) -> TailReader<R> {
        TailReader { source, before: 0, last: Vec::new() }
    }

    /// Copies everything from a position on. What is not remembered is padding between sections: nothing else is passed over
    /// without a section.
    pub(super) fn copy_from(&mut self, position: u64, out: &mut dyn Write) -> io::Result<u64> {
        let missing = self.before.saturating_sub(position);
        super::sections::write_filler(missing, out)?;
        let from = usize::try_from(position.saturating_sub(self.before)).unwrap_or(usize::MAX);
        let mut copied = missing;
        let kept = self.last.get(from..).unwrap_or_default();
        out.write_all(kept)?;
        copied += kept.len() as u64;
        // The reader of the sections has reported an input that fails.
        let mut piece = vec![0; 1 << 16];
        loop {
            match self.source.read(&mut piece) {
                Ok(0) => return Ok(copied),
                Ok(got) => {
                    out.write_all(piece.get(..got).unwrap_or_default())?;
                    copied += got as u64;
                }
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return Ok(copied),
            }
        }
    }
}

impl<R: Read> Read for TailReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        if self.last.len() + got > 2 * KEPT {
            let gone = self.last.len().saturating_sub(KEPT);
            self.last.drain(..gone);
            self.before = self.before.saturating_add(gone as u64);
        }
        self.last.extend_from_slice(buffer.get(..got).unwrap_or_default());
        Ok(got)
    }
}
