//! An input that is read bit by bit: compression is undone on the way, and what comes slowly is handed on as it comes.

use super::ahead::ReadAhead;
use super::{Compression, InputError, MAX_LAYERS, bundle, unpack};
use std::fs::File;
use std::io::{self, BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use unwedge_base::Diagnostic;
use unwedge_view::CaptureStream;

/// Bytes that tell a compression.
const MAGIC: usize = 8;

/// An input, decompressed while it is read. It may be opened on one thread and read on another. A compressed stream that breaks off just ends,
/// with an entry in [`InputStream::diagnostics`]. Large files, but not live input, are unpacked ahead on a thread, which ends when this is dropped.
pub struct InputStream {
    /// How messages call it.
    pub name: String,
    /// It need not be there at once: a pipe, a terminal, a file of the kernel's.
    pub live: bool,
    /// Compression that is undone, outermost first.
    pub compression: Vec<Compression>,
    /// Bytes as stored, as far as the operating system knows; 0 if it does not.
    pub(super) size: u64,
    /// Read ahead, and how much of it has been given out since.
    head: Vec<u8>,
    given: usize,
    source: Box<dyn Read + Send>,
    stored: Arc<AtomicU64>,
    broken: Broken,
}

/// What broke, layer by layer.
type Broken = Arc<Mutex<Vec<Diagnostic>>>;

impl InputStream {
    /// Opens a file, or standard input for `-`.
    ///
    /// # Errors
    ///
    /// [`InputError`] if the file cannot be opened, or its first bytes cannot be read or decompressed.
    pub fn open(path: &Path) -> Result<InputStream, InputError> {
        if path.as_os_str() == "-" {
            let live = !stdin_is_file();
            return InputStream::new(Box::new(io::stdin()), "standard input".to_owned(), live, 0);
        }
        let name = path.display().to_string();
        let failed = |e| InputError::Io(name.clone(), e);
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        // Files of debugfs say that they are empty.
        let live = !meta.is_file() || meta.len() == 0;
        InputStream::new(Box::new(file), name, live, meta.len())
    }

    /// Something that is there at once, under a name.
    ///
    /// # Errors
    ///
    /// [`InputError`] if the first bytes of `source` cannot be read or decompressed.
    pub fn of(source: impl Read + Send + 'static, name: &str) -> Result<InputStream, InputError> {
        InputStream::new(Box::new(source), name.to_owned(), false, 0)
    }

    fn new(
        source: Box<dyn Read + Send>,
        name: String,
        live: bool,
        size: u64,
    ) -> Result<InputStream, InputError> {
        let (stored, broken) = (Arc::default(), Broken::default());
        let source = Box::new(CountingRead { source, stored: Arc::clone(&stored) });
        let mut stream = InputStream {
            name,
            live,
            compression: Vec::new(),
            size,
            head: Vec::new(),
            given: 0,
            source,
            stored,
            broken,
        };
        while stream.compression.len() < MAX_LAYERS {
            // No more than that of what comes slowly, unless it begins like a bundle.
            if bundle::may_be(stream.peek(MAGIC)?) {
                stream.peek(bundle::HEADER)?;
            }
            let Some(compression) = Compression::sniff(&stream.head) else { break };
            let head = Cursor::new(std::mem::take(&mut stream.head));
            let packed = std::mem::replace(&mut stream.source, Box::new(io::empty()));
            let mut unpacked =
                unpack::unpacked(compression, BufReader::with_capacity(64 << 10, head.chain(packed)));
            // Only the outermost: what breaks in it must not be reported before the reader gets there.
            if !live && stream.compression.is_empty() {
                let ahead = ReadAhead::new(unpacked, Arc::clone(&stream.stored));
                stream.stored = ahead.stored();
                unpacked = Box::new(ahead);
            }
            stream.compression.push(compression);
            let layer =
                Layer { unpacked, compression, given: 0, ended: false, broken: stream.broken.clone() };
            stream.source = Box::new(layer);
        }
        Ok(stream)
    }

    /// Reads ahead until so many bytes are there, or all. Returns what is there.
    ///
    /// # Errors
    ///
    /// [`InputError`] if the input fails before it has so many bytes: [`InputError::Corrupt`] if it is
    /// compressed, else [`InputError::Io`].
    pub fn peek(&mut self, bytes: usize) -> Result<&[u8], InputError> {
        let missing = bytes.saturating_sub(self.head.len()) as u64;
        match self.source.by_ref().take(missing).read_to_end(&mut self.head) {
            Ok(_) => Ok(&self.head),
            Err(e) => Err(match self.compression.last() {
                Some(&compression) => InputError::Corrupt(self.name.clone(), compression, e),
                None => InputError::Io(self.name.clone(), e),
            }),
        }
    }

    /// Bytes that were read so far, as stored. Those read ahead do not count.
    pub fn stored(&self) -> u64 {
        self.stored.load(Ordering::Relaxed)
    }

    /// `a gzip of …`, for messages; empty when nothing is undone.
    pub fn wrapping(&self) -> String {
        self.compression.iter().map(|c| format!("{} of ", c.name())).collect()
    }
}

/// Whether standard input is a file, which is there at once. It is not opened again: another name of a pipe is a reader more.
#[cfg(unix)]
fn stdin_is_file() -> bool {
    use std::os::fd::AsFd;
    let own = io::stdin().as_fd().try_clone_to_owned();
    own.and_then(|fd| File::from(fd).metadata()).is_ok_and(|meta| meta.is_file())
}

#[cfg(not(unix))]
fn stdin_is_file() -> bool {
    false
}

/// Counts what is read.
struct CountingRead {
    source: Box<dyn Read + Send>,
    stored: Arc<AtomicU64>,
}

impl Read for CountingRead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let got = self.source.read(buffer)?;
        self.stored.fetch_add(got as u64, Ordering::Relaxed);
        Ok(got)
    }
}

impl CaptureStream for InputStream {
    fn live(&self) -> bool {
        self.live
    }

    fn diagnostics(&self) -> Vec<Diagnostic> {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Read for InputStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.head.get(self.given..) {
            Some(mut ahead) if !ahead.is_empty() => {
                let got = ahead.read(buffer)?;
                self.given += got;
                Ok(got)
            }
            _ => self.source.read(buffer),
        }
    }
}

/// A compression being undone. Breakage is told and ends it; only when nothing came out is it an error.
struct Layer {
    unpacked: Box<dyn Read + Send>,
    compression: Compression,
    given: u64,
    ended: bool,
    broken: Broken,
}

impl Read for Layer {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.ended {
            return Ok(0);
        }
        match self.unpacked.read(buffer) {
            Err(e) if e.kind() == ErrorKind::Interrupted || self.given == 0 => Err(e),
            Err(e) => {
                self.ended = true;
                let broken = unpack::broken(self.compression, self.given, &e);
                self.broken.lock().unwrap_or_else(PoisonError::into_inner).push(broken);
                Ok(0)
            }
            Ok(got) => {
                self.given = self.given.saturating_add(got as u64);
                Ok(got)
            }
        }
    }
}
