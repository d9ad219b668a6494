//! Opens captures, dumps and folders for the commands that take several kinds of them. Never: what is in them.

use crate::amd;
use crate::failure::Failure;
use crate::input::{Input, Stream};
use crate::kind::Kind;
use std::path::Path;
use unwedge::capture::rd;
use unwedge_view::CaptureStream;

/// Opens a file, or standard input for `-`, that must be a capture.
///
/// # Errors
///
/// [`Failure`] if the file cannot be read, or is not a capture.
pub fn open(file: &Path) -> Result<Stream, Failure> {
    check(Stream::open(file)?)
}

/// The same stream, which must be a capture.
///
/// # Errors
///
/// [`Failure`] if the stream cannot be read, or is not a capture; it names what the input looks like.
pub fn check(mut stream: Stream) -> Result<Stream, Failure> {
    if is_capture(&mut stream)? {
        return Ok(stream);
    }
    let what = unwedge::capture::sniff(stream.peek(0)?).describe();
    let message = format!("{}: not a rd capture: looks like {}{what}", stream.name, stream.wrapping());
    Err(Failure::Unusable(message))
}

/// A file for commands that take captures and dumps.
pub enum Opened {
    /// A capture, to be read bit by bit.
    Capture(Stream),
    /// A devcoredump of msm, or text that may be one.
    Dump(Input),
}

/// A file for commands that take those and what AMD GPUs leave.
pub enum Any {
    /// A capture or a dump.
    Adreno(Opened),
    /// What an AMD GPU left.
    Amd(amd::Source),
}

/// Opens a capture or a dump; of a dump no more than `limit` bytes.
///
/// # Errors
///
/// [`Failure`] if the file cannot be read, is over `limit`, or is not a capture or dump of Adreno.
pub fn open_any(file: &Path, limit: u64) -> Result<Opened, Failure> {
    match open_all(file, limit)? {
        Any::Adreno(opened) => Ok(opened),
        Any::Amd(source) => Err(source.wrong_kind()),
    }
}

/// Opens a capture, a dump or a folder; of the last two no more than `limit` bytes.
///
/// # Errors
///
/// [`Failure`] if the file or folder cannot be read or is over `limit`.
pub fn open_all(file: &Path, limit: u64) -> Result<Any, Failure> {
    if file.is_dir() {
        return amd::Source::open_folder(file, limit).map(Any::Amd);
    }
    let mut stream = Stream::open(file)?;
    if is_capture(&mut stream)? {
        return Ok(Any::Adreno(Opened::Capture(stream)));
    }
    let name = stream.name.clone();
    let mut input = Input::read(&mut stream, name, 0, limit)?;
    input.compression.splice(0..0, stream.compression.iter().copied());
    input.diagnostics.splice(0..0, stream.diagnostics());
    match unwedge::capture::sniff(&input.bytes) {
        Kind::MsmDevcore | Kind::I915ErrorState | Kind::XeDevcore | Kind::Text => {
            Ok(Any::Adreno(Opened::Dump(input)))
        }
        kind if amd::reads(kind) => Ok(Any::Amd(amd::Source::of(input, kind))),
        kind => Err(Failure::no_dump(&input, kind)),
    }
}

fn is_capture(stream: &mut Stream) -> Result<bool, Failure> {
    // A pipe may deliver slowly: a few bytes tell a capture, other kinds of file may take all of these.
    for bytes in [8, 64, 1 << 10, 16 << 10] {
        if rd::sniff(stream.peek(bytes)?) {
            return Ok(true);
        }
    }
    Ok(false)
}
