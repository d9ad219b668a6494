//! A place for output that only its length counts of.

use std::cell::Cell;
use std::io::{self, Write};
use std::rc::Rc;

/// Counts the bytes written to it and its clones.
#[derive(Clone, Debug, Default)]
pub struct ByteCounter(Rc<Cell<u64>>);

impl ByteCounter {
    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        self.0.get()
    }
}

impl Write for ByteCounter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.set(self.0.get().saturating_add(bytes.len() as u64));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
