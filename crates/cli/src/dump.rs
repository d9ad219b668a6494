//! Opens captures, dumps of any driver and folders of reports, for every command that takes them: each file is opened,
//! read and sniffed once. Never: what is in them.

use crate::failure::{Failure, MSM};
use crate::thin_archive;
use std::path::{Path, PathBuf};
use unwedge::base::Diagnostic;
use unwedge::capture::radv::MemberKind;
use unwedge::capture::{Dump, DumpPart, FileKind, rd, sniff};
use unwedge::files::{Input, InputStream};
use unwedge::hw::ChipOverride;
use unwedge_view::advice::{instead_of_capture, instead_of_code, instead_of_dump, may_be_dump};
use unwedge_view::diff;
use unwedge_view::info::FileInfo;

/// SPIR-V modules of a report that are read; RADV writes one for each shader of a pipeline.
const MAX_SPIRV: usize = 64;

/// Bytes that tell what a file is.
const HEAD: usize = 16 << 10;

/// A file for commands that take captures and dumps.
pub enum Opened {
    /// A capture, to be read bit by bit.
    Capture(InputStream),
    /// A dump of any driver, or what may be one.
    Dump(DumpFiles),
}

impl Opened {
    /// As a file of code: what it is says whether it can be that. Of a capture no more than `limit` bytes are read.
    ///
    /// # Errors
    /// When it is a folder, cannot be read, or is larger than `limit`.
    pub fn into_code(self, limit: u64) -> Result<CodeFile, Failure> {
        match self {
            Opened::Capture(stream) => {
                Ok(CodeFile { input: Input::of_stream(stream, limit)?, kind: FileKind::RdCapture })
            }
            Opened::Dump(files) => files.into_code().map_err(|folder| folder.not_of_msm()),
        }
    }
}

/// The files of a dump of any driver, or what may be one, in memory.
pub struct DumpFiles {
    /// How messages call it.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
    /// The files of a folder with their names, or the one file.
    files: Vec<(String, Input)>,
}

impl DumpFiles {
    /// A file, which is asked what it is.
    pub fn of(input: Input) -> DumpFiles {
        let kind = sniff(&input.bytes);
        DumpFiles::of_kind(input, kind)
    }

    /// A file of a kind that is known.
    fn of_kind(input: Input, kind: FileKind) -> DumpFiles {
        let name = input.name.clone();
        DumpFiles { files: vec![(name.clone(), input)], name, kind }
    }

    /// The files of a folder: names and contents.
    pub fn of_folder(name: String, files: Vec<(String, Input)>) -> DumpFiles {
        DumpFiles { name, kind: FileKind::Folder, files }
    }

    /// Reads the files of a folder that RADV left; of all of them no more than `limit` bytes.
    fn open_folder(folder: &Path, limit: u64) -> Result<DumpFiles, Failure> {
        let name = folder.display().to_string();
        let mut names: Vec<String> = MemberKind::file_names().collect();
        let entries = folder.read_dir().map_err(|e| Failure::Unusable(format!("{name}: {e}")))?;
        let mut modules: Vec<String> = entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| MemberKind::from_name(name) == Some(MemberKind::Spirv))
            .collect();
        modules.sort();
        names.extend(modules.into_iter().take(MAX_SPIRV));
        let mut files = Vec::new();
        let mut left = limit;
        for member in names {
            let path = folder.join(&member);
            if !path.is_file() {
                continue;
            }
            let input = Input::open(&path, left)?;
            left = left.saturating_sub(input.bytes.len() as u64);
            files.push((member, input));
        }
        Ok(DumpFiles::of_folder(name, files))
    }

    /// The files, as readers of dumps take them.
    pub fn parts(&self) -> Vec<DumpPart<'_>> {
        self.files.iter().map(|(name, input)| DumpPart { name, bytes: &input.bytes }).collect()
    }

    /// Reads the dump.
    ///
    /// # Errors
    /// When the files are not a dump of any driver, or nothing of it can be read.
    pub fn read(&self) -> Result<Dump<'_>, Failure> {
        Dump::read_as(self.kind, &self.parts()).map_err(|_| self.not_a_dump())
    }

    /// Reads the dump, which is taken to be of a GPU where one is named.
    ///
    /// # Errors
    /// As [`DumpFiles::read`], and when no GPU of that vendor leaves such a dump.
    pub fn read_as(&self, chip: Option<&ChipOverride>) -> Result<Dump<'_>, Failure> {
        let mut dump = self.read()?;
        if let Some(chip) = chip {
            let wrong = |e| Failure::Usage(format!("{}: --chip {}: {e}", self.name, chip.name));
            dump.take_as(chip.clone()).map_err(wrong)?;
        }
        Ok(dump)
    }

    /// For commands that take something else.
    pub fn not_a_dump(&self) -> Failure {
        match (&self.files[..], self.kind) {
            (_, FileKind::Folder) => Failure::Unusable(format!(
                "{}: a folder, but no hang report of RADV: none of its files (trace.log, pipeline.log, …) says anything",
                self.name
            )),
            (_, FileKind::AmdgpuDevcore | FileKind::RadvReport | FileKind::UmrText) => {
                let what = self.kind.describe();
                Failure::Unusable(format!("{}: looks like {what}, but nothing of it can be read", self.name))
            }
            ([(_, input)], kind) => Failure::no_dump(input, kind),
            (_, kind) => Failure::Unusable(format!("{}: {}", self.name, kind.describe())),
        }
    }

    /// For commands that take dumps of msm only.
    pub fn not_of_msm(&self) -> Failure {
        match &self.files[..] {
            [(_, input)] if self.kind != FileKind::Folder => Failure::wrong_kind(input, self.kind),
            _ => Failure::WrongKind {
                name: self.name.clone(),
                what: "the folder of a hang report of RADV".to_owned(),
                takes: MSM,
                instead: instead_of_dump(FileKind::RadvReport),
            },
        }
    }

    /// The first file: the only one, unless it is a folder.
    pub fn bytes(&self) -> &[u8] {
        self.files.first().map_or(&[], |(_, input)| &input.bytes)
    }

    /// Bytes of all files.
    pub fn size(&self) -> u64 {
        self.files.iter().map(|(_, input)| input.bytes.len() as u64).sum()
    }

    /// What was lost by undoing compression.
    pub fn unpacking(&self) -> Vec<Diagnostic> {
        self.files.iter().flat_map(|(_, input)| input.diagnostics.iter().cloned()).collect()
    }

    /// Names of compressions that were undone, of a single file.
    pub fn compression(&self) -> Vec<&'static str> {
        match &self.files[..] {
            [(_, input)] if self.kind != FileKind::Folder => {
                input.compression.iter().map(|c| c.name()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// What is known of it whatever it holds. `kind` is that of the dump, if one was read.
    pub fn info<'a>(&'a self, kind: FileKind, compression: &'a [&'static str]) -> FileInfo<'a> {
        FileInfo {
            name: &self.name,
            kind: kind.id(),
            described: kind.describe(),
            stored: self.files.iter().map(|(_, input)| input.stored).sum(),
            bytes: self.size(),
            compression,
        }
    }

    /// As a file of code; a folder is none.
    ///
    /// # Errors
    /// The folder.
    pub fn into_code(mut self) -> Result<CodeFile, DumpFiles> {
        match self.files.pop() {
            Some((_, input)) if self.kind != FileKind::Folder => Ok(CodeFile { input, kind: self.kind }),
            last => {
                self.files.extend(last);
                Err(self)
            }
        }
    }

    /// As a side of a comparison, and what to say if it is no dump.
    pub fn into_side(self) -> (diff::Opened<'static>, Failure) {
        let (wrong, diagnostics, kind) = (self.not_a_dump(), self.unpacking(), self.kind);
        let files = self.files.into_iter().map(|(name, input)| (name, input.bytes)).collect();
        (diff::Opened::Files { files, kind, diagnostics }, wrong)
    }
}

/// Whether a file can be read once only: standard input, a pipe, a terminal.
pub fn is_read_once(file: &Path) -> bool {
    file.as_os_str() == "-" || file.metadata().is_ok_and(|meta| !meta.is_file() && !meta.is_dir())
}

/// A file that was opened, of which no more was read than tells what it is; or a folder.
pub struct Source {
    /// What it is.
    pub kind: FileKind,
    from: SourceFrom,
}

enum SourceFrom {
    /// A file, and the folder that it is in.
    File(InputStream, Option<PathBuf>),
    Folder(PathBuf),
}

impl Source {
    /// Opens a file, standard input for `-`, or a folder. That is done once: what is opened may be a pipe.
    ///
    /// # Errors
    /// When the file cannot be opened, or its start cannot be read or unpacked.
    pub fn open(file: &Path) -> Result<Source, Failure> {
        if file.is_dir() {
            return Ok(Source { kind: FileKind::Folder, from: SourceFrom::Folder(file.to_owned()) });
        }
        let mut stream = InputStream::open(file)?;
        let kind = kind_of(&mut stream)?;
        let folder = file.parent().filter(|_| !is_read_once(file)).map(Path::to_owned);
        Ok(Source { kind, from: SourceFrom::File(stream, folder) })
    }

    /// Whether it is a capture.
    pub fn is_capture(&self) -> bool {
        self.kind == FileKind::RdCapture
    }

    /// A capture as it is, and the whole of anything else; of that no more than `limit` bytes.
    ///
    /// # Errors
    /// When it cannot be read or unpacked, or is larger than `limit`.
    pub fn load(self, limit: u64) -> Result<Opened, Failure> {
        match self.from {
            SourceFrom::File(stream, _) if self.kind == FileKind::RdCapture => Ok(Opened::Capture(stream)),
            from => Source { kind: self.kind, from }.read(limit).map(Opened::Dump),
        }
    }

    /// The whole of it, whatever it is; no more than `limit` bytes.
    ///
    /// # Errors
    /// As [`Source::load`].
    pub fn read(self, limit: u64) -> Result<DumpFiles, Failure> {
        match self.from {
            SourceFrom::Folder(folder) => DumpFiles::open_folder(&folder, limit),
            SourceFrom::File(stream, folder) => {
                let input = Input::of_stream(stream, limit)?;
                let input = match folder {
                    Some(folder) => thin_archive::filled(input, &folder, limit),
                    None => input,
                };
                Ok(DumpFiles::of_kind(input, self.kind))
            }
        }
    }
}

/// Opens a capture, a dump or a folder, whatever its kind; of the last two no more than `limit` bytes.
///
/// # Errors
/// When the file cannot be opened, unpacked or is larger than `limit`.
pub fn open(file: &Path, limit: u64) -> Result<Opened, Failure> {
    Source::open(file)?.load(limit)
}

/// Opens what was found in a folder; `None` for what is not a dump by its first bytes.
///
/// # Errors
/// As [`open`].
pub fn open_found(file: &Path, limit: u64) -> Result<Option<DumpFiles>, Failure> {
    let source = Source::open(file)?;
    may_be_dump(source.kind).then(|| source.read(limit)).transpose()
}

/// Code, and what kind of file it is in.
pub struct CodeFile {
    /// The file.
    pub input: Input,
    /// What it is.
    pub kind: FileKind,
}

/// Code of an AMD GPU, or a dump of one.
pub enum AmdFile {
    /// A file that is not a dump of an AMD GPU.
    Code(CodeFile),
    /// A dump or a folder.
    Dump(DumpFiles),
}

/// Opens code of an AMD GPU, or a dump or folder that may hold such code.
///
/// # Errors
/// When the file cannot be opened, unpacked or is larger than `limit`.
pub fn open_amd(file: &Path, limit: u64) -> Result<AmdFile, Failure> {
    let files = open_dump(file, limit)?;
    Ok(match files.kind {
        FileKind::AmdgpuDevcore | FileKind::RadvReport | FileKind::UmrText | FileKind::Folder => {
            AmdFile::Dump(files)
        }
        _ => files.into_code().map_or_else(AmdFile::Dump, AmdFile::Code),
    })
}

/// Opens a dump or a folder, for commands that take no captures.
///
/// # Errors
/// As [`open`].
pub fn open_dump(file: &Path, limit: u64) -> Result<DumpFiles, Failure> {
    Source::open(file)?.read(limit)
}

/// Opens a file, or standard input for `-`, that must be a capture.
///
/// # Errors
/// When the file cannot be opened or unpacked, or is not a capture.
pub fn open_capture(file: &Path) -> Result<InputStream, Failure> {
    check_capture(InputStream::open(file)?)
}

/// The same stream, which must be a capture.
///
/// # Errors
/// When the stream cannot be read or unpacked, or is not a capture.
pub fn check_capture(mut stream: InputStream) -> Result<InputStream, Failure> {
    match kind_of(&mut stream)? {
        FileKind::RdCapture => Ok(stream),
        kind => {
            let (name, wrapping, what) = (&stream.name, stream.wrapping(), kind.describe());
            let (article, instead) = (if wrapping.is_empty() { "" } else { "a " }, instead_of_capture(kind));
            let message =
                format!("{name}: not an rd capture: looks like {article}{wrapping}{what}; {instead}");
            Err(Failure::Unusable(message))
        }
    }
}

/// What a file is, by its first bytes.
pub fn kind_of_head(head: &[u8]) -> FileKind {
    sniff(head)
}

/// What a stream is, by its start only.
fn kind_of(stream: &mut InputStream) -> Result<FileKind, Failure> {
    // A pipe may deliver slowly: a few bytes tell a capture, other kinds of file may take all of these.
    for bytes in [8, 64, 1 << 10, HEAD] {
        if rd::sniff(stream.peek(bytes)?) {
            return Ok(FileKind::RdCapture);
        }
    }
    Ok(sniff(stream.peek(HEAD)?))
}

/// Refuses what is known not to be bare code, which would be disassembled as words without meaning.
pub(crate) fn refuse_dump(file: &CodeFile, verb: &str) -> Result<(), Failure> {
    let Some(advice) = instead_of_code(file.kind) else { return Ok(()) };
    let what = file.kind.describe();
    Err(Failure::Unusable(format!("{}: {what}, and {verb} takes code; {advice}", file.input.name)))
}
