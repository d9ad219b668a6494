//! Follows files in files, and unpacks what is compressed.

use super::format::{BundleCompression, BundleFormat, BundlePart};
use super::{Bundle, BundleContents, BundleEntry};
use flate2::read::ZlibDecoder;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};
use std::borrow::Cow;
use std::io::Read;
use std::ops::Range;
use unwedge_base::{Diagnostic, Span};

/// How deep files are in each other: an archive of programs with compressed bundles of archives has five.
const MAX_DEPTH: usize = 8;
/// Files that are looked into or listed.
const MAX_FILES: usize = 1 << 16;
/// Window that a compressed stream may ask for.
const MAX_WINDOW: u64 = 128 << 20;
/// Diagnostics that are kept.
const MAX_DIAGNOSTICS: usize = 100;

/// A file that is still to be looked at.
struct OpenFile {
    buffer: usize,
    range: Range<usize>,
    path: Vec<String>,
    depth: usize,
    compressed: bool,
}

pub(super) fn read(file: &[u8], limit: u64) -> Option<Bundle<'_>> {
    let format = BundleFormat::of(file)?;
    let mut walk = Walk {
        bundle: Bundle { buffers: vec![Cow::Borrowed(file)], entries: Vec::new(), diagnostics: Vec::new() },
        open: Vec::new(),
        left: limit,
        files: MAX_FILES,
    };
    let outer = OpenFile { buffer: 0, range: 0..file.len(), path: Vec::new(), depth: 0, compressed: false };
    walk.enter(format, &outer);
    while let Some(next) = walk.open.pop() {
        walk.look(next);
    }
    // A program without such sections is not a bundle.
    let host = |format| matches!(format, BundleFormat::HostElf | BundleFormat::HostCoff);
    let empty = host(format) && walk.bundle.entries.is_empty();
    (!empty || !walk.bundle.diagnostics.is_empty()).then_some(walk.bundle)
}

struct Walk<'a> {
    bundle: Bundle<'a>,
    /// A stack: the last one is the next.
    open: Vec<OpenFile>,
    /// Bytes that may still be unpacked.
    left: u64,
    files: usize,
}

impl Walk<'_> {
    fn bytes(&self, file: &OpenFile) -> &[u8] {
        let buffer = self.bundle.buffers.get(file.buffer);
        buffer.and_then(|buffer| buffer.get(file.range.clone())).unwrap_or_default()
    }

    /// Notes where in the file something was lost, as far as that is known: what was unpacked has no place in it.
    fn lose(&mut self, file: &OpenFile, mut diagnostic: Diagnostic) {
        diagnostic.span = diagnostic.span.filter(|_| file.buffer == 0).map(|span| {
            let start = file.range.start as u64;
            Span { start: span.start + start, end: span.end + start }
        });
        if !file.path.is_empty() {
            diagnostic.message = format!("{}: {}", file.path.join(" > "), diagnostic.message);
        }
        if self.bundle.diagnostics.len() < MAX_DIAGNOSTICS {
            self.bundle.diagnostics.push(diagnostic);
        }
    }

    /// A file of any format.
    fn look(&mut self, file: OpenFile) {
        let bytes = self.bytes(&file);
        match BundleFormat::of(bytes) {
            Some(_) if file.depth >= MAX_DEPTH => {
                let message = format!("files more than {MAX_DEPTH} deep in each other are not looked into");
                self.lose(&file, Diagnostic::loss(None, message));
            }
            Some(format) => self.enter(format, &file),
            None => {
                let contents = BundleContents::of(bytes);
                let OpenFile { path, compressed, buffer, range, .. } = file;
                self.bundle.entries.push(BundleEntry { path, contents, compressed, place: (buffer, range) });
            }
        }
    }

    /// The parts of a file, to be looked at before anything else.
    fn enter(&mut self, format: BundleFormat, file: &OpenFile) {
        let found = format.parts(self.bytes(file));
        for diagnostic in found.diagnostics {
            self.lose(file, diagnostic);
        }
        let host = matches!(format, BundleFormat::HostElf | BundleFormat::HostCoff);
        if host && found.parts.is_empty() && file.depth > 0 {
            let (path, contents) = (file.path.clone(), BundleContents::Host);
            let place = (file.buffer, file.range.clone());
            self.bundle.entries.push(BundleEntry { path, contents, compressed: file.compressed, place });
        }
        if found.parts.len() > self.files {
            self.lose(file, Diagnostic::loss(None, format!("more than {MAX_FILES} files in one")));
        }
        let mut inner = Vec::new();
        for part in found.parts.into_iter().take(self.files) {
            inner.extend(self.inner(file, part));
        }
        self.files -= inner.len();
        self.open.extend(inner.into_iter().rev());
    }

    fn inner(&mut self, file: &OpenFile, part: BundlePart) -> Option<OpenFile> {
        let mut path = file.path.clone();
        if !part.name.is_empty() {
            path.push(part.name);
        }
        let (depth, start) = (file.depth + 1, file.range.start);
        let range = start + part.range.start..start + part.range.end;
        let Some((method, claimed)) = part.compression else {
            return Some(OpenFile { buffer: file.buffer, range, path, depth, compressed: file.compressed });
        };
        let packed = self.bundle.buffers.get(file.buffer).and_then(|buffer| buffer.get(range.clone()))?;
        let (bytes, failed) = unpack(method, packed, self.left);
        self.left -= bytes.len() as u64;
        let size = bytes.len() as u64;
        if let Some(failed) = failed {
            let message = format!("a compressed bundle is broken after {size} unpacked bytes: {failed}");
            self.lose(file, Diagnostic::loss(None, message));
        } else if size != claimed {
            let message =
                format!("a compressed bundle unpacks to {size} bytes, and its header says {claimed}");
            self.lose(file, Diagnostic::loss(None, message));
        }
        let (buffer, range) = (self.bundle.buffers.len(), 0..bytes.len());
        self.bundle.buffers.push(Cow::Owned(bytes));
        Some(OpenFile { buffer, range, path, depth, compressed: true })
    }
}

/// The first `left` bytes of a compressed stream, and the error if those are not all.
fn unpack(method: BundleCompression, packed: &[u8], left: u64) -> (Vec<u8>, Option<String>) {
    let mut bytes = Vec::new();
    let result = match method {
        BundleCompression::Zlib => {
            ZlibDecoder::new(packed).take(left.saturating_add(1)).read_to_end(&mut bytes)
        }
        BundleCompression::Zstd => {
            let mut frame = FrameDecoder::new();
            frame.set_max_window_size(MAX_WINDOW);
            match StreamingDecoder::new_with_decoder(packed, frame) {
                Ok(stream) => stream.take(left.saturating_add(1)).read_to_end(&mut bytes),
                Err(wrong) => return (bytes, Some(wrong.to_string())),
            }
        }
    };
    if bytes.len() as u64 > left {
        bytes.truncate(usize::try_from(left).unwrap_or(usize::MAX));
        return (bytes, Some(format!("it unpacks to more than the {left} bytes that are left of the limit")));
    }
    (bytes, result.err().map(|wrong| wrong.to_string()))
}
