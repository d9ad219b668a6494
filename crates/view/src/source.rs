//! A capture that is shown as it is read. Never: where it comes from.

use std::io::{Cursor, Read};
use unwedge_base::Diagnostic;

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
