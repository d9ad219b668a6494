//! Files in: reads FILE or standard input and undoes compression, within a bound on memory.
//!
//! [`Input`] is a whole file, [`InputStream`] one that is read bit by bit. What a file is follows from its content. A compressed stream that breaks off is not an error: what came out before
//! is kept, with a diagnostic. A bundle is read as the dump in it. Formats: RFC 1952 (gzip, several members), RFC 8878 (zstd,
//! several frames), the .xz file format, ustar.

mod ahead;
mod bundle;
mod gzip;
mod stream;
mod unpack;

pub use stream::InputStream;

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use unwedge_base::Diagnostic;
use unwedge_view::CaptureStream;

/// How many times compression is undone: a gzip of an xz happens, more is an attack.
const MAX_LAYERS: usize = 4;

/// An input, decompressed.
#[derive(Debug)]
pub struct Input {
    /// How messages call it.
    pub name: String,
    /// The contents.
    pub bytes: Vec<u8>,
    /// Bytes as stored.
    pub stored: u64,
    /// Compression that was undone, outermost first.
    pub compression: Vec<Compression>,
    /// What was lost on the way.
    pub diagnostics: Vec<Diagnostic>,
}

/// A compression format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// RFC 1952.
    Gzip,
    /// RFC 8878.
    Zstd,
    /// The .xz format.
    Xz,
    /// An archive that `unwedge bundle` wrote: the dump or capture in it.
    Bundle,
}

impl Compression {
    /// By the magic bytes.
    pub fn sniff(head: &[u8]) -> Option<Compression> {
        match head {
            [0x1f, 0x8b, 0x08, ..] => Some(Compression::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Some(Compression::Zstd),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Some(Compression::Xz),
            head if bundle::sniff(head) => Some(Compression::Bundle),
            _ => None,
        }
    }

    /// `gzip`, `zstd`, `xz`, `bundle`.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
            Compression::Xz => "xz",
            Compression::Bundle => "bundle",
        }
    }
}

/// Why an input cannot be used.
#[derive(Debug)]
pub enum InputError {
    /// The operating system says no.
    Io(String, io::Error),
    /// More than `--max-size`.
    TooLarge {
        /// The input.
        name: String,
        /// The limit in bytes.
        limit: u64,
        /// The limit was hit while undoing this.
        compression: Option<Compression>,
    },
    /// Compressed, but not one byte comes out.
    Corrupt(String, Compression, io::Error),
}

impl fmt::Display for InputError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InputError::Io(name, e) => write!(f, "{name}: {e}"),
            InputError::TooLarge { name, limit, compression: None } => {
                write!(f, "{name}: larger than {limit} bytes; raise --max-size to read it")
            }
            InputError::TooLarge { name, limit, compression: Some(c) } => write!(
                f,
                "{name}: the {} stream unpacks to more than {limit} bytes; raise --max-size if that is real",
                c.name()
            ),
            InputError::Corrupt(name, Compression::Bundle, e) => write!(f, "{name}: a bundle, but {e}"),
            InputError::Corrupt(name, c, e) => {
                write!(f, "{name}: starts like {} but does not unpack: {e}", c.name())
            }
        }
    }
}

impl Input {
    /// Reads a file, or standard input for `-`. `limit` bounds the bytes, compressed and not.
    ///
    /// # Errors
    ///
    /// [`InputError`] if the file cannot be opened or read, cannot be decompressed, or is over `limit`.
    pub fn open(path: &Path, limit: u64) -> Result<Input, InputError> {
        if path.as_os_str() == "-" {
            return Input::read(io::stdin().lock(), "standard input".to_owned(), 0, limit);
        }
        let name = path.display().to_string();
        let failed = |e| InputError::Io(name.clone(), e);
        let file = File::open(path).map_err(failed)?;
        let meta = file.metadata().map_err(failed)?;
        // A devcoredump node of sysfs says 0.
        Input::read(file, name, meta.len(), limit)
    }

    /// Reads a stream. `expected` is its size as far as the operating system knows it.
    ///
    /// # Errors
    ///
    /// [`InputError`] if `source` fails, cannot be decompressed, or is over `limit`.
    pub fn read(source: impl Read, name: String, expected: u64, limit: u64) -> Result<Input, InputError> {
        let mut stored = Vec::new();
        let expected = usize::try_from(expected.min(limit)).unwrap_or(0);
        if stored.try_reserve_exact(expected.saturating_add(1)).is_err() {
            return Err(InputError::Io(name, io::Error::from(io::ErrorKind::OutOfMemory)));
        }
        match read_bounded(source, &mut stored, limit) {
            Ok(true) => {}
            Ok(false) => return Err(InputError::TooLarge { name, limit, compression: None }),
            Err(e) => return Err(InputError::Io(name, e)),
        }
        let mut input = Input {
            name,
            stored: stored.len() as u64,
            bytes: stored,
            compression: Vec::new(),
            diagnostics: Vec::new(),
        };
        while input.compression.len() < MAX_LAYERS {
            let Some(compression) = Compression::sniff(&input.bytes) else { break };
            input.unpack(compression, limit)?;
        }
        Ok(input)
    }

    /// Reads the rest of a stream, whose compression is undone on the way. `limit` bounds what comes out.
    ///
    /// # Errors
    /// When it cannot be read or unpacked, or more than `limit` comes out.
    pub fn of_stream(mut stream: InputStream, limit: u64) -> Result<Input, InputError> {
        let name = stream.name.clone();
        let expected = if stream.compression.is_empty() { stream.size } else { 0 };
        let read = Input::read(&mut stream, name, expected, limit);
        let mut input = read.map_err(|error| match error {
            InputError::TooLarge { name, limit, compression: None } => {
                InputError::TooLarge { name, limit, compression: stream.compression.last().copied() }
            }
            error => error,
        })?;
        input.stored = stream.stored();
        input.compression.splice(0..0, stream.compression.iter().copied());
        input.diagnostics.splice(0..0, stream.diagnostics());
        Ok(input)
    }

    fn unpack(&mut self, compression: Compression, limit: u64) -> Result<(), InputError> {
        let mut out = Vec::new();
        let packed = self.bytes.as_slice();
        let outcome = read_bounded(unpack::unpacked(compression, packed), &mut out, limit);
        match outcome {
            Ok(true) => {}
            Ok(false) => {
                let name = std::mem::take(&mut self.name);
                return Err(InputError::TooLarge { name, limit, compression: Some(compression) });
            }
            Err(e) if out.is_empty() => {
                return Err(InputError::Corrupt(std::mem::take(&mut self.name), compression, e));
            }
            Err(e) => self.diagnostics.push(unpack::broken(compression, out.len() as u64, &e)),
        }
        self.bytes = out;
        self.compression.push(compression);
        Ok(())
    }

    /// `a gzip of …`, for messages; empty when nothing was undone.
    pub fn wrapping(&self) -> String {
        self.compression.iter().map(|c| format!("{} of ", c.name())).collect()
    }
}

/// Appends everything to `out`; `Ok(false)` when there is more than `limit`. After an error `out` holds what came
/// before it.
fn read_bounded(source: impl Read, out: &mut Vec<u8>, limit: u64) -> io::Result<bool> {
    let room = limit.saturating_sub(out.len() as u64);
    let got = source.take(room.saturating_add(1)).read_to_end(out)?;
    Ok(got as u64 <= room)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unwedge_testkit::pack::{self, gzip, xz, zstd};

    const TEXT: &[u8] = b"---\nkernel: 6.6\nmodule: msm\n";

    fn read(bytes: &[u8], limit: u64) -> Result<Input, InputError> {
        Input::read(bytes, "x".into(), 0, limit)
    }

    #[test]
    fn compression_is_undone_by_content() {
        for (packed, layers) in [
            (TEXT.to_vec(), vec![]),
            (gzip(TEXT), vec![Compression::Gzip]),
            (zstd(TEXT), vec![Compression::Zstd]),
            (xz(TEXT), vec![Compression::Xz]),
            (xz(&gzip(TEXT)), vec![Compression::Xz, Compression::Gzip]),
        ] {
            let input = read(&packed, 1 << 20).unwrap();
            assert_eq!(input.bytes, TEXT);
            assert_eq!(input.compression, layers);
            assert_eq!(input.stored, packed.len() as u64);
            assert!(input.diagnostics.is_empty());
        }
    }

    #[test]
    fn several_members_make_one_input() {
        for pack in pack::ALL {
            let (a, b) = TEXT.split_at(10);
            let input = read(&[pack(a), pack(b)].concat(), 1 << 20).unwrap();
            assert_eq!(input.bytes, TEXT);
        }
    }

    #[test]
    fn a_bomb_is_refused_at_the_limit() {
        let zeros = vec![0; 1 << 20];
        for pack in pack::ALL {
            let packed = pack(&zeros);
            assert!(packed.len() < 1 << 16);
            let error = read(&packed, 1 << 16).unwrap_err();
            assert!(matches!(error, InputError::TooLarge { compression: Some(_), .. }), "{error}");
            assert_eq!(read(&packed, 1 << 20).unwrap().bytes.len(), 1 << 20, "the limit itself is allowed");
        }
        assert!(matches!(read(&zeros, 100), Err(InputError::TooLarge { compression: None, .. })));
    }

    #[test]
    fn a_cut_stream_keeps_what_came_out() {
        let noise: Vec<u8> =
            (0..1u32 << 16).flat_map(|i| i.wrapping_mul(0x9e37_79b9).to_le_bytes()).collect();
        for pack in pack::ALL {
            let packed = pack(&noise);
            let input = read(&packed[..packed.len() * 3 / 4], 1 << 20).unwrap();
            assert!(noise.starts_with(&input.bytes) && !input.bytes.is_empty());
            assert_eq!(input.diagnostics.len(), 1);
        }
    }

    #[test]
    fn nothing_but_a_magic_number() {
        for head in [&[0x1f, 0x8b, 8][..], &[0x28, 0xb5, 0x2f, 0xfd], b"\xfd7zXZ\0"] {
            assert!(matches!(read(head, 100), Err(InputError::Corrupt(..))));
        }
    }
}
