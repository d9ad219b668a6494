//! Lines of JSON, one at a time: a thread writes them, and waits while nobody reads.

use pyo3::prelude::*;
use std::io::{self, Write};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Blocks that may wait for the reader.
const WAITING: usize = 16;

/// An iterator over lines.
#[pyclass(frozen)]
pub struct Events(Mutex<Reader>);

struct Reader {
    blocks: Receiver<Vec<u8>>,
    block: Vec<u8>,
    at: usize,
}

/// Hands on what is written. Writing fails when the reader is gone, which ends the writer.
struct Sender(SyncSender<Vec<u8>>);

impl Write for Sender {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.send(bytes.to_vec()).map_err(|_| io::ErrorKind::BrokenPipe)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Events {
    /// Starts a writer.
    pub fn start(write: impl FnOnce(&mut dyn Write) + Send + 'static) -> Events {
        let (sender, blocks) = sync_channel(WAITING);
        thread::spawn(move || write(&mut Sender(sender)));
        Events(Mutex::new(Reader { blocks, block: Vec::new(), at: 0 }))
    }
}

impl Reader {
    fn line(&mut self) -> Option<String> {
        let mut line = Vec::new();
        loop {
            let rest = self.block.get(self.at..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|&c| c == b'\n') {
                line.extend_from_slice(&rest[..end]);
                self.at += end + 1;
                return Some(String::from_utf8_lossy(&line).into_owned());
            }
            line.extend_from_slice(rest);
            match self.blocks.recv() {
                Ok(block) => (self.block, self.at) = (block, 0),
                Err(_) => {
                    (self.block, self.at) = (Vec::new(), 0);
                    return (!line.is_empty()).then(|| String::from_utf8_lossy(&line).into_owned());
                }
            }
        }
    }
}

#[pymethods]
impl Events {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<String> {
        py.detach(|| self.0.lock().ok()?.line())
    }
}
