//! Unpacks ahead of the reader, on a second thread and within a bound on memory. Never: other bytes, another error or an error at another
//! place than without the thread.
//!
//! Captures unpack to hundreds of megabytes, most of them zeros. Zeros at the end of a block are only counted, so that a few blocks are
//! far ahead. Filling the reader's buffer with zeros is also cheaper than moving zeros from one core to another.

use std::io::{self, ErrorKind, Read};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use unwedge_capture::rd::without_zeros;

/// Bytes after which the thread is started: starting it costs more than unpacking a small file.
const START: u64 = 1 << 20;
/// Bytes of a block. Decoders copy their window after each one, so small blocks are slow.
const BLOCK: usize = 256 << 10;
/// Buffers of blocks, which bound how much is unpacked ahead.
const BUFFERS: usize = 16;
/// Blocks that may wait for the reader. Those of zeros have no buffer.
const WAITING: usize = 256;
/// Zeros at the end of a block from which on it is handed over.
const MANY_ZEROS: u64 = 1 << 20;

/// A source that is read ahead once it has turned out to be large.
pub(super) struct ReadAhead {
    state: State,
    /// Bytes of the file that the source has read.
    taken: Arc<AtomicU64>,
    /// The same as of the block that the reader is in. It does not depend on how fast the thread is.
    stored: Arc<AtomicU64>,
}

enum State {
    /// The source, and how many bytes it gives before the thread is started; `None`: never.
    Direct(Box<dyn Read + Send>, Option<u64>),
    Ahead(Unpacker),
    Ended,
}

impl ReadAhead {
    /// Reads `source`, which counts in `taken` the bytes of the file that it reads.
    pub(super) fn new(source: Box<dyn Read + Send>, taken: Arc<AtomicU64>) -> ReadAhead {
        ReadAhead { state: State::Direct(source, Some(START)), taken, stored: Arc::default() }
    }

    /// Bytes of the file that were read for what has been given out.
    pub(super) fn stored(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.stored)
    }

    /// Starts the thread, unless there is only one core.
    fn start(&mut self) {
        let State::Direct(source, _) = std::mem::replace(&mut self.state, State::Ended) else { return };
        let unpacker = match thread::available_parallelism() {
            Ok(cores) if cores.get() > 1 => Unpacker::start(source, Arc::clone(&self.taken)),
            _ => Err(source),
        };
        self.state = match unpacker {
            Ok(unpacker) => State::Ahead(unpacker),
            Err(source) => State::Direct(source, None),
        };
    }
}

impl Read for ReadAhead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        if let State::Direct(_, Some(0)) = self.state {
            self.start();
        }
        match &mut self.state {
            State::Direct(source, left) => {
                let got = source.read(buffer);
                self.stored.store(self.taken.load(Ordering::Relaxed), Ordering::Relaxed);
                let got = got?;
                *left = left.map(|left| left.saturating_sub(got as u64));
                Ok(got)
            }
            State::Ahead(unpacker) => {
                let got = unpacker.read(buffer, &self.stored);
                if matches!(got, Ok(0) | Err(_)) {
                    self.state = State::Ended;
                }
                got
            }
            State::Ended => Ok(0),
        }
    }
}

/// Bytes, and zeros after them.
#[derive(Default)]
struct Block {
    bytes: Vec<u8>,
    /// How many of `bytes` come before the zeros.
    used: usize,
    zeros: u64,
    /// How the source ended after them.
    end: Option<io::Result<()>>,
    /// Bytes of the file that had been read.
    stored: u64,
}

impl Block {
    fn read(source: &mut dyn Read, mut bytes: Vec<u8>) -> Block {
        bytes.resize(BLOCK, 0);
        let (mut filled, mut end) = (0, None);
        while let Some(room) = bytes.get_mut(filled..).filter(|room| !room.is_empty()) {
            match source.read(room) {
                Ok(0) => end = Some(Ok(())),
                Ok(got) => filled += got,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => end = Some(Err(e)),
            }
            if end.is_some() {
                break;
            }
        }
        let used = without_zeros(bytes.get(..filled).unwrap_or_default()).len();
        Block { bytes, used, zeros: (filled - used) as u64, end, stored: 0 }
    }
}

/// A source on a thread of its own. The thread ends with the source, or when this is dropped.
struct Unpacker {
    /// `None` only while this is dropped.
    blocks: Option<Receiver<Block>>,
    /// Buffers to be used again, [`BUFFERS`] of them.
    spare: SyncSender<Vec<u8>>,
    thread: Option<JoinHandle<()>>,
    block: Block,
    /// How many bytes of the block have been given out.
    given: usize,
}

impl Unpacker {
    /// Starts the thread. Returns the source if that fails.
    fn start(source: Box<dyn Read + Send>, taken: Arc<AtomicU64>) -> Result<Unpacker, Box<dyn Read + Send>> {
        let (sender, blocks) = mpsc::sync_channel(WAITING);
        let (spare, buffers) = mpsc::sync_channel(BUFFERS);
        for _ in 0..BUFFERS {
            let _ = spare.send(Vec::new());
        }
        let source = Arc::new(Mutex::new(Some(source)));
        let of_thread = Arc::clone(&source);
        let run = move || {
            let source = of_thread.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(mut source) = source {
                // When the reader is gone, there is nothing left to do.
                let _ = unpack(&mut *source, &taken, &sender, &buffers);
            }
        };
        match thread::Builder::new().name("unpack".to_owned()).spawn(run) {
            Ok(thread) => {
                let (blocks, thread) = (Some(blocks), Some(thread));
                Ok(Unpacker { blocks, spare, thread, block: Block::default(), given: 0 })
            }
            Err(_) => {
                let source = source.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(source.unwrap_or_else(|| Box::new(io::empty())))
            }
        }
    }

    fn read(&mut self, buffer: &mut [u8], stored: &AtomicU64) -> io::Result<usize> {
        loop {
            let block = &mut self.block;
            let mut bytes = block.bytes.get(self.given..block.used).unwrap_or_default();
            if !bytes.is_empty() {
                let got = bytes.read(buffer)?;
                self.given += got;
                return Ok(got);
            }
            if block.zeros > 0 {
                let got = usize::try_from(block.zeros).map_or(buffer.len(), |zeros| zeros.min(buffer.len()));
                buffer.get_mut(..got).unwrap_or_default().fill(0);
                block.zeros -= got as u64;
                return Ok(got);
            }
            match block.end.take() {
                Some(end) => return end.map(|()| 0),
                None => self.next_block(),
            }
            stored.store(self.block.stored, Ordering::Relaxed);
        }
    }

    /// Waits for the next block. A panic of the thread is resumed here.
    fn next_block(&mut self) {
        let bytes = std::mem::take(&mut self.block.bytes);
        if bytes.capacity() > 0 {
            // The thread may have ended.
            let _ = self.spare.try_send(bytes);
        }
        self.given = 0;
        match self.blocks.as_ref().map(Receiver::recv) {
            Some(Ok(block)) => self.block = block,
            _ => {
                let ended = self.thread.take().map(JoinHandle::join);
                if let Some(Err(panic)) = ended {
                    resume_unwind(panic);
                }
                self.block.end = Some(Ok(()));
            }
        }
    }
}

impl Drop for Unpacker {
    fn drop(&mut self) {
        // The thread waits for one of these.
        self.blocks = None;
        self.spare = mpsc::sync_channel(0).0;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Hands over block after block, to the end of the source; `None` if nobody reads them any more.
fn unpack(
    source: &mut dyn Read,
    taken: &AtomicU64,
    blocks: &SyncSender<Block>,
    buffers: &Receiver<Vec<u8>>,
) -> Option<()> {
    // Zeros after it are still counted.
    let mut last = Block::default();
    let mut buffer = buffers.recv().ok()?;
    loop {
        let mut block = Block::read(source, buffer);
        block.stored = taken.load(Ordering::Relaxed);
        if block.used == 0 {
            buffer = std::mem::take(&mut block.bytes);
            last.zeros += block.zeros;
            (last.end, last.stored) = (block.end, block.stored);
        } else {
            if last.used > 0 || last.zeros > 0 {
                blocks.send(last).ok()?;
            }
            last = block;
            buffer = buffers.recv().ok()?;
        }
        if last.end.is_some() {
            return blocks.send(last).ok();
        }
        if last.zeros == 0 || last.zeros >= MANY_ZEROS {
            blocks.send(std::mem::take(&mut last)).ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Input, InputStream};
    use super::*;
    use std::io::Cursor;
    use unwedge_testkit::pack;

    const LIMIT: u64 = 1 << 30;

    /// Noise and zeros in turn, of lengths around those of blocks.
    fn contents() -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut noise = (0_u32..).flat_map(|n| (n.wrapping_mul(0x9e37_79b9) | 0x0101_0101).to_le_bytes());
        let (start, many) = (START as usize, MANY_ZEROS as usize);
        for (used, zeros) in [
            (start - BLOCK, BLOCK - 5),
            (2 * BLOCK + 5, 1),
            (1, 3 * BLOCK),
            (BLOCK, 0),
            (BLOCK / 2, BLOCK / 2 + many),
            (7, 2 * many + BLOCK),
            (BUFFERS * BLOCK, 9),
        ] {
            bytes.extend(noise.by_ref().take(used));
            bytes.resize(bytes.len() + zeros, 0);
        }
        bytes
    }

    /// A source on a thread, even if it is small.
    fn ahead(source: impl Read + Send + 'static) -> ReadAhead {
        let unpacker = Unpacker::start(Box::new(source), Arc::default()).ok().expect("a thread");
        ReadAhead { state: State::Ahead(unpacker), taken: Arc::default(), stored: Arc::default() }
    }

    #[test]
    fn bytes_are_those_of_the_source_in_pieces_of_any_size() {
        let contents = contents();
        for piece in [1000, BLOCK, 3 * BLOCK + 1] {
            let mut reader = ahead(Cursor::new(contents.clone()));
            let (mut bytes, mut buffer) = (Vec::new(), vec![1; piece]);
            loop {
                match reader.read(&mut buffer).unwrap() {
                    0 => break,
                    got => bytes.extend_from_slice(&buffer[..got]),
                }
            }
            assert!(bytes == contents, "pieces of {piece} bytes");
            assert_eq!(reader.read(&mut buffer).unwrap(), 0);
        }
    }

    /// [`Input::read`] does not use the thread.
    #[test]
    fn broken_streams_end_as_without_the_thread() {
        let contents = contents();
        for pack in pack::ALL {
            let packed = pack(&contents);
            let mut corrupt = packed.clone();
            corrupt[packed.len() / 2] ^= 0x10;
            let mut checksum = packed.clone();
            checksum[packed.len() - 6] ^= 1;
            let cuts = [3, 5, 7].map(|eighths| packed[..packed.len() * eighths / 8].to_vec());
            for (case, bytes) in [packed, corrupt, checksum].into_iter().chain(cuts).enumerate() {
                let expected = Input::read(&bytes[..], "packed".to_owned(), 0, LIMIT).unwrap();
                let stream = InputStream::of(Cursor::new(bytes), "packed").unwrap();
                let read = Input::of_stream(stream, LIMIT).unwrap();
                let lengths = (read.bytes.len(), expected.bytes.len());
                assert!(read.bytes == expected.bytes, "case {case} of {:?}: {lengths:?}", read.compression);
                assert_eq!(read.diagnostics, expected.diagnostics);
                assert_eq!(read.compression, expected.compression);
            }
        }
    }

    /// Bytes of the file that count as read do not depend on how far the thread is.
    #[test]
    fn a_slow_reader_has_read_as_much_as_a_fast_one() {
        let read = |slow: bool| {
            let mut stream = InputStream::of(Cursor::new(pack::gzip(&contents())), "packed").unwrap();
            let mut buffer = vec![0; 100_000];
            std::iter::from_fn(|| {
                if slow {
                    thread::sleep(std::time::Duration::from_millis(1));
                }
                let got = stream.read(&mut buffer).unwrap();
                (got > 0).then(|| (got, stream.stored()))
            })
            .collect::<Vec<_>>()
        };
        assert_eq!(read(false), read(true));
    }

    /// Gives one byte over and over, and counts how many.
    struct Endless(u8, Arc<AtomicU64>);

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            buffer.fill(self.0);
            self.1.fetch_add(buffer.len() as u64, Ordering::Relaxed);
            Ok(buffer.len())
        }
    }

    #[test]
    fn the_thread_is_bounded_and_ends_with_its_reader() {
        let blocks_ahead = [(0, WAITING as u64 * MANY_ZEROS), (1, BUFFERS as u64 * BLOCK as u64)];
        for (byte, most) in blocks_ahead {
            let given = Arc::new(AtomicU64::new(0));
            let mut reader = ahead(Endless(byte, Arc::clone(&given)));
            let mut buffer = [9; 100];
            assert_eq!(reader.read(&mut buffer).unwrap(), 100);
            assert_eq!(buffer, [byte; 100]);
            // Until it has stopped.
            let mut before = 0;
            while std::mem::replace(&mut before, given.load(Ordering::Relaxed)) < before || before < most / 2
            {
                thread::sleep(std::time::Duration::from_millis(20));
            }
            assert!(before <= most + 2 * (MANY_ZEROS + BLOCK as u64), "{before} bytes of {byte} ahead");
            drop(reader);
            assert_eq!(Arc::strong_count(&given), 1, "the thread has ended");
        }
    }

    #[test]
    fn a_panic_of_the_source_is_one_of_the_reader() {
        struct Panics;
        impl Read for Panics {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                resume_unwind(Box::new("the source"))
            }
        }
        let mut reader = ahead(Panics);
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| reader.read(&mut [0; 9])));
        assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"the source"));
    }

    #[test]
    fn a_small_source_is_read_without_a_thread() {
        struct SameThread(thread::ThreadId, usize);
        impl Read for SameThread {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                assert_eq!(thread::current().id(), self.0);
                let got = buffer.len().min(self.1);
                self.1 -= got;
                Ok(got)
            }
        }
        let source = SameThread(thread::current().id(), START as usize - 1);
        let mut reader = ReadAhead::new(Box::new(source), Arc::default());
        assert_eq!(io::copy(&mut reader, &mut io::sink()).unwrap(), START - 1);
    }
}
