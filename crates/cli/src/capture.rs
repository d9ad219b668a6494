//! Opens captures, dumps and folders for the commands that take several kinds of them. Never: what is in them.

use crate::amd;
use crate::failure::Failure;
use crate::input::{Input, Stream};
use crate::kind::Kind;
use std::path::Path;
use unwedge::base::Diagnostic;
use unwedge::capture::{Dump, Part, rd, sniff};
use unwedge_view::{CaptureStream, diff};

/// Opens a file, or standard input for `-`, that must be a capture.
pub fn open(file: &Path) -> Result<Stream, Failure> {
    check(Stream::open(file)?)
}

/// The same stream, which must be a capture.
pub fn check(mut stream: Stream) -> Result<Stream, Failure> {
    if is_capture(&mut stream)? {
        return Ok(stream);
    }
    let what = sniff(stream.peek(0)?).describe();
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

/// A file for commands over command streams.
pub enum Streamed {
    /// A capture, to be read bit by bit.
    Capture(Stream),
    /// A dump of any driver.
    Dump(DumpFiles),
}

/// The files of a dump of any driver, or what may be one.
pub struct DumpFiles {
    /// How messages call it.
    pub name: String,
    /// Names and contents.
    pub files: Vec<(String, Vec<u8>)>,
    /// They are the files of a folder.
    pub folder: bool,
    /// What was lost by undoing compression.
    pub diagnostics: Vec<Diagnostic>,
    /// What to say if it is none.
    wrong: Failure,
}

impl DumpFiles {
    fn of(opened: Any) -> Result<DumpFiles, Stream> {
        let folder = matches!(&opened, Any::Amd(source) if source.folder);
        let (name, inputs) = match opened {
            Any::Adreno(Opened::Capture(stream)) => return Err(stream),
            Any::Adreno(Opened::Dump(input)) => (input.name.clone(), vec![(input.name.clone(), input)]),
            Any::Amd(source) => source.into_files(),
        };
        let wrong = match inputs.as_slice() {
            [(_, input)] => Failure::no_dump(input, sniff(&input.bytes)),
            _ => Failure::Unusable(format!("{name}: nothing of it can be read")),
        };
        let mut diagnostics = Vec::new();
        let unpacked = |(name, input): (String, Input)| {
            diagnostics.extend(input.diagnostics);
            (name, input.bytes)
        };
        let files = inputs.into_iter().map(unpacked).collect();
        Ok(DumpFiles { name, files, folder, diagnostics, wrong })
    }

    /// Reads the dump, and does something with it.
    pub fn with<T>(
        self,
        act: impl FnOnce(&DumpFiles, &Dump<'_>) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let parts: Vec<Part<'_>> = self.files.iter().map(|(name, bytes)| Part { name, bytes }).collect();
        let read = if self.folder { Dump::read_folder(&parts) } else { Dump::read(&parts) };
        match read {
            Ok(dump) => act(&self, &dump),
            Err(_) => Err(self.wrong),
        }
    }

    /// As a side of a comparison, and what to say if it is no dump.
    pub fn into_side(self) -> (diff::Opened<'static>, Failure) {
        let DumpFiles { files, folder, diagnostics, wrong, .. } = self;
        (diff::Opened::Files { files, folder, diagnostics }, wrong)
    }
}

/// Opens a capture, a dump of any driver or a folder.
pub fn open_streams(file: &Path, limit: u64) -> Result<Streamed, Failure> {
    Ok(match DumpFiles::of(open_all(file, limit)?) {
        Ok(files) => Streamed::Dump(files),
        Err(stream) => Streamed::Capture(stream),
    })
}

/// Opens a capture or a dump; of a dump no more than `limit` bytes.
pub fn open_any(file: &Path, limit: u64) -> Result<Opened, Failure> {
    match open_all(file, limit)? {
        Any::Adreno(opened) => Ok(opened),
        Any::Amd(source) => Err(source.wrong_kind()),
    }
}

/// Opens a capture, a dump or a folder; of the last two no more than `limit` bytes.
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
    match sniff(&input.bytes) {
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
