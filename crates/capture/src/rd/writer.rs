//! Writes the sections of a capture. Never: what they mean.

use super::{MAX_PAYLOAD, MemoryRange, RdSectionKind};
use std::io::{self, Write};

/// Writes sections.
#[derive(Clone, Debug)]
pub struct RdWriter<W> {
    out: W,
}

/// Why a section is not written.
#[derive(Debug, thiserror::Error)]
pub enum RdWriteError {
    /// A payload that is too long for a section.
    #[error("a section cannot hold {0} bytes")]
    TooLong(usize),
    /// The receiver does not take it.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl<W: Write> RdWriter<W> {
    /// A capture without sections.
    pub fn new(out: W) -> RdWriter<W> {
        RdWriter { out }
    }

    /// Writes a section.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::TooLong`] for a payload of 2 GiB or more, of which nothing is written;
    /// [`RdWriteError::Io`] if the output fails.
    pub fn section(&mut self, kind: RdSectionKind, payload: &[u8]) -> Result<(), RdWriteError> {
        let size = u32::try_from(payload.len()).ok().filter(|&s| s <= MAX_PAYLOAD);
        let size = size.ok_or(RdWriteError::TooLong(payload.len()))?;
        self.out.write_all(&kind.number().to_le_bytes())?;
        self.out.write_all(&size.to_le_bytes())?;
        Ok(self.out.write_all(payload)?)
    }

    /// Writes a section with an address and a size, in the form of 64-bit addresses if `wide`.
    ///
    /// # Errors
    ///
    /// [`RdWriteError::Io`] if the output fails.
    pub fn range(&mut self, kind: RdSectionKind, range: MemoryRange, wide: bool) -> Result<(), RdWriteError> {
        let MemoryRange { iova, size } = range;
        let mut payload = [0; 12];
        for (bytes, word) in payload.chunks_exact_mut(4).zip([iova as u32, size, (iova >> 32) as u32]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        self.section(kind, if wide { &payload } else { &payload[..8] })
    }

    /// Where the capture was written.
    pub fn into_inner(self) -> W {
        self.out
    }
}
