//! Undoes compression while it is read. Never: more memory than the window of a stream.

use super::Compression;
use super::bundle::BundledDump;
use super::gzip::Gzip;
use lzma_rust2::{Action, Status, XzStream};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
use std::io::{self, BufRead, ErrorKind, Read};
use unwedge_base::Diagnostic;

/// Window or dictionary a compressed stream may ask for.
const MAX_WINDOW: u64 = 128 << 20;

/// What comes out of a compressed stream; of several in a row, one after another.
pub fn unpacked<'s>(compression: Compression, packed: impl BufRead + Send + 's) -> Box<dyn Read + Send + 's> {
    match compression {
        Compression::Gzip => Box::new(Gzip::new(packed)),
        Compression::Zstd => Box::new(Zstd::new(packed)),
        Compression::Xz => {
            let window = u32::try_from(MAX_WINDOW >> 10).unwrap_or(u32::MAX);
            Box::new(Xz { packed, stream: XzStream::new_mem_limit(true, window), failed: None })
        }
        Compression::Bundle => Box::new(BundledDump::new(packed)),
    }
}

/// What to say of a stream that breaks off after so many unpacked bytes.
pub fn broken(compression: Compression, unpacked: u64, error: &io::Error) -> Diagnostic {
    let name = compression.name();
    if compression == Compression::Bundle {
        return Diagnostic::loss(
            None,
            format!("the bundle is broken after {unpacked} bytes of the dump: {error}"),
        );
    }
    Diagnostic::loss(None, format!("the {name} stream is broken after {unpacked} unpacked bytes: {error}"))
}

/// Streams of xz in a row. All that a broken one holds comes out before it fails.
struct Xz<R> {
    packed: R,
    stream: XzStream,
    /// Why it ends, once what was unpacked before has been given out.
    failed: Option<io::Error>,
}

impl<R: BufRead> Read for Xz<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(e) = self.failed.take() {
            return Err(e);
        }
        loop {
            let packed = self.packed.fill_buf()?;
            let over = packed.is_empty();
            let action = if over { Action::Finish } else { Action::Run };
            let before = self.stream.total_out();
            let step = match self.stream.process(packed, buffer, action) {
                Ok(step) => step,
                Err(e) => match (self.stream.total_out() - before) as usize {
                    0 => return Err(e),
                    produced => {
                        self.failed = Some(e);
                        return Ok(produced);
                    }
                },
            };
            self.packed.consume(step.bytes_consumed);
            if step.bytes_produced > 0 || step.status == Status::StreamEnd || buffer.is_empty() {
                return Ok(step.bytes_produced);
            }
            if over {
                return Err(ErrorKind::UnexpectedEof.into());
            }
        }
    }
}

/// Frames of zstd in a row.
struct Zstd<R> {
    packed: R,
    frame: FrameDecoder,
    open: bool,
    /// Why it ends, once all that was unpacked has been given out.
    failed: Option<io::Error>,
}

impl<R: BufRead> Zstd<R> {
    fn new(packed: R) -> Zstd<R> {
        let mut frame = FrameDecoder::new();
        frame.set_max_window_size(MAX_WINDOW);
        Zstd { packed, frame, open: false, failed: None }
    }

    /// Begins the next frame; `false` at the end.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.packed.fill_buf()?.is_empty() {
            let mut magic = [0; 4];
            self.packed.read_exact(&mut magic)?;
            if !matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
                self.frame.init(magic.chain(&mut self.packed)).map_err(io::Error::other)?;
                return Ok(true);
            }
            let mut size = [0; 4];
            self.packed.read_exact(&mut size)?;
            let size = u64::from(u32::from_le_bytes(size));
            if io::copy(&mut self.packed.by_ref().take(size), &mut io::sink())? < size {
                return Err(io::Error::new(ErrorKind::UnexpectedEof, "cut inside a skippable frame"));
            }
        }
        Ok(false)
    }

    /// Unpacks a block more, or closes the frame.
    fn advance(&mut self) -> io::Result<()> {
        if self.frame.is_finished() {
            self.open = false;
            return match (self.frame.get_checksum_from_data(), self.frame.get_calculated_checksum()) {
                (Some(stated), Some(found)) if stated != found => {
                    Err(io::Error::new(ErrorKind::InvalidData, "the checksum does not match"))
                }
                _ => Ok(()),
            };
        }
        let Err(e) = self.frame.decode_blocks(&mut self.packed, BlockDecodingStrategy::UptoBlocks(1)) else {
            return Ok(());
        };
        // The window is given out once the frame is finished: an empty last block finishes it.
        const LAST_BLOCK: [u8; 7] = [1, 0, 0, 0, 0, 0, 0];
        self.failed = Some(io::Error::other(e));
        self.open = self.frame.decode_blocks(&LAST_BLOCK[..], BlockDecodingStrategy::All).is_ok();
        Ok(())
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            if self.open {
                let got = self.frame.read(buffer)?;
                if got > 0 {
                    return Ok(got);
                }
            }
            if let Some(e) = self.failed.take() {
                self.open = false;
                return Err(e);
            }
            if self.open {
                self.advance()?;
            } else if self.next_frame()? {
                self.open = true;
            } else {
                return Ok(0);
            }
        }
    }
}
