//! What is shown: a dump in memory, or a capture that is read as it comes. Never: where they come from.

use std::io::{Cursor, Read};
use unwedge_base::Diagnostic;

/// A dump in memory.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Its contents, decompressed.
    pub bytes: &'a [u8],
    /// What was lost before it got here.
    pub diagnostics: &'a [Diagnostic],
}

impl<'a> Source<'a> {
    /// A dump of which nothing was lost on the way.
    pub fn of(bytes: &'a [u8]) -> Source<'a> {
        Source { bytes, diagnostics: &[] }
    }
}

/// A capture that is read bit by bit.
pub trait CaptureStream: Read {
    /// It need not be there at once: what is shown is handed on after each submit.
    fn live(&self) -> bool {
        false
    }

    /// What was lost so far before it got here.
    fn diagnostics(&self) -> Vec<Diagnostic> {
        Vec::new()
    }
}

impl<T: AsRef<[u8]>> CaptureStream for Cursor<T> {}

impl CaptureStream for &[u8] {}
