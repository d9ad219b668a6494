//! Binary results out: to a file, compressed or not, or to standard output.
//!
//! A file comes into being whole: it is written under another name beside its place and moved there at the end. Never:
//! over an input, and never onto a terminal.

use crate::args::Packing;
use crate::failure::Failure;
use flate2::write::GzEncoder;
use lzma_rust2::{XzOptions, XzWriter};
use ruzstd::encoding::{CompressionLevel, compress_to_vec};
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

/// Bytes of a zstd frame. The encoder takes them all at once; a frame is a stream of its own.
const FRAME: usize = 4 << 20;
/// xz's preset.
const XZ_PRESET: u32 = 3;

/// A binary result being written. Dropped without [`commit`](Packed::commit), it leaves nothing behind.
pub struct Packed {
    name: String,
    encoder: Encoder,
    draft: Option<Draft>,
}

/// A file that is not in its place yet.
struct Draft {
    path: PathBuf,
    place: PathBuf,
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

type Raw = BufWriter<Box<dyn Write>>;

enum Encoder {
    Plain(Raw),
    Gzip(GzEncoder<Raw>),
    Zstd(Raw, Vec<u8>),
    Xz(Box<XzWriter<Raw>>),
}

impl Packed {
    /// Starts a result at `path`; `-` or none is standard output. Without `packing` the end of the name tells it.
    /// `inputs` are what it is made from.
    ///
    /// # Errors
    /// When it would go to a terminal or over an input, or the file cannot be created.
    pub fn create(
        path: Option<&Path>,
        packing: Option<Packing>,
        inputs: &[&Path],
    ) -> Result<Packed, Failure> {
        let path = path.filter(|path| path.as_os_str() != "-");
        let packing = packing.or(path.and_then(by_name)).unwrap_or(Packing::None);
        let Some(path) = path else {
            if io::stdout().is_terminal() {
                let message = "the result is binary, and standard output is a terminal: name a file with -o";
                return Err(Failure::Usage(message.to_owned()));
            }
            return Packed::new("standard output".to_owned(), Box::new(io::stdout().lock()), None, packing);
        };
        let name = path.display().to_string();
        // A link stays one: what it points to is replaced.
        let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == place)) {
            return Err(Failure::Usage(format!("{name}: is an input too, and would be lost")));
        }
        let failed = |e| Failure::Write(name.clone(), e);
        // Devices and pipes are written to, not replaced.
        if fs::metadata(&place).is_ok_and(|meta| !meta.is_file()) {
            let file = OpenOptions::new().write(true).open(&place).map_err(failed)?;
            return Packed::new(name, Box::new(file), None, packing);
        }
        let (file, draft) = Draft::create(&place).map_err(failed)?;
        Packed::new(name, Box::new(file), Some(draft), packing)
    }

    /// A result that goes to `raw`, and is called so in messages.
    ///
    /// # Errors
    /// When the compression cannot start.
    pub fn over(name: &str, raw: Box<dyn Write>, packing: Packing) -> Result<Packed, Failure> {
        Packed::new(name.to_owned(), raw, None, packing)
    }

    fn new(
        name: String,
        raw: Box<dyn Write>,
        draft: Option<Draft>,
        packing: Packing,
    ) -> Result<Packed, Failure> {
        let raw = BufWriter::new(raw);
        let encoder = match packing {
            Packing::None => Encoder::Plain(raw),
            Packing::Gzip => Encoder::Gzip(GzEncoder::new(raw, flate2::Compression::default())),
            Packing::Zstd => Encoder::Zstd(raw, Vec::new()),
            Packing::Xz => {
                let xz = XzWriter::new(raw, XzOptions::with_preset(XZ_PRESET));
                Encoder::Xz(Box::new(xz.map_err(|e| Failure::Write(name.clone(), e))?))
            }
        };
        Ok(Packed { name, encoder, draft })
    }

    /// Ends the result and puts it in its place.
    ///
    /// # Errors
    /// When the last of it cannot be written, or the file cannot be moved to its place.
    pub fn commit(self) -> Result<(), Failure> {
        let Packed { name, encoder, draft } = self;
        let failed = |e| Failure::Write(name.clone(), e);
        let mut raw = encoder.finish().map_err(failed)?;
        raw.flush().map_err(failed)?;
        drop(raw);
        match draft {
            Some(draft) => fs::rename(&draft.path, &draft.place).map_err(failed),
            None => Ok(()),
        }
    }
}

impl Draft {
    /// A new file beside its place.
    fn create(place: &Path) -> io::Result<(File, Draft)> {
        let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let mut attempt = 0_u32;
        loop {
            let mut draft = OsString::from(".");
            draft.push(name);
            draft.push(format!(".{}-{attempt}.part", std::process::id()));
            let path = place.with_file_name(draft);
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => return Ok((file, Draft { path, place: place.to_owned() })),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < 100 => attempt += 1,
                Err(e) => return Err(e),
            }
        }
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Encoder::Plain(raw) => raw.write(bytes),
            Encoder::Gzip(gzip) => gzip.write(bytes),
            Encoder::Xz(xz) => xz.write(bytes),
            Encoder::Zstd(raw, frame) => {
                let room = FRAME.saturating_sub(frame.len()).min(bytes.len());
                let (now, _) = bytes.split_at(room);
                frame.extend_from_slice(now);
                if frame.len() >= FRAME {
                    compress(frame, raw)?;
                }
                Ok(room)
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.encoder {
            Encoder::Plain(raw) => raw.flush(),
            Encoder::Gzip(gzip) => gzip.flush(),
            Encoder::Xz(xz) => xz.flush(),
            Encoder::Zstd(raw, frame) => {
                compress(frame, raw)?;
                raw.flush()
            }
        }
    }
}

impl Encoder {
    fn finish(self) -> io::Result<Raw> {
        match self {
            Encoder::Plain(raw) => Ok(raw),
            Encoder::Gzip(gzip) => gzip.finish(),
            Encoder::Xz(xz) => xz.finish(),
            Encoder::Zstd(mut raw, mut frame) => {
                compress(&mut frame, &mut raw)?;
                Ok(raw)
            }
        }
    }
}

fn compress(frame: &mut Vec<u8>, raw: &mut Raw) -> io::Result<()> {
    if !frame.is_empty() {
        raw.write_all(&compress_to_vec(&frame[..], CompressionLevel::Fastest))?;
        frame.clear();
    }
    Ok(())
}

/// The compression that the end of a name stands for.
fn by_name(path: &Path) -> Option<Packing> {
    match path.extension()?.to_str()? {
        "gz" => Some(Packing::Gzip),
        "zst" => Some(Packing::Zstd),
        "xz" => Some(Packing::Xz),
        _ => None,
    }
}
