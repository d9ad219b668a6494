//! Opens captures, dumps of any driver and folders of reports, for every command that takes them: each file is opened,
//! read and sniffed once. Never: what is in them.

use crate::failure::{Failure, MSM, instead};
use crate::input::{Input, InputStream};
use std::path::Path;
use unwedge::base::Diagnostic;
use unwedge::capture::radv::MemberKind;
use unwedge::capture::{Dump, DumpPart, FileKind, rd, sniff};
use unwedge::hw::ChipOverride;
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
    /// A file.
    pub fn of(input: Input) -> DumpFiles {
        let (name, kind) = (input.name.clone(), sniff(&input.bytes));
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

    /// Reads the dump.
    ///
    /// # Errors
    /// When the files are not a dump of any driver, or nothing of it can be read.
    pub fn read(&self) -> Result<Dump<'_>, Failure> {
        let parts: Vec<DumpPart<'_>> =
            self.files.iter().map(|(name, input)| DumpPart { name, bytes: &input.bytes }).collect();
        Dump::read_as(self.kind, &parts).map_err(|_| self.not_a_dump())
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
                instead: instead(FileKind::RadvReport),
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

    /// As a side of a comparison, and what to say if it is no dump.
    pub fn into_side(self) -> (diff::Opened<'static>, Failure) {
        let (wrong, diagnostics, kind) = (self.not_a_dump(), self.unpacking(), self.kind);
        let files = self.files.into_iter().map(|(name, input)| (name, input.bytes)).collect();
        (diff::Opened::Files { files, kind, diagnostics }, wrong)
    }
}

/// Opens a capture, a dump or a folder, whatever its kind; of the last two no more than `limit` bytes.
///
/// # Errors
/// When the file cannot be opened, unpacked or is larger than `limit`.
pub fn open(file: &Path, limit: u64) -> Result<Opened, Failure> {
    if file.is_dir() {
        return DumpFiles::open_folder(file, limit).map(Opened::Dump);
    }
    let mut stream = InputStream::open(file)?;
    if is_capture(&mut stream)? {
        return Ok(Opened::Capture(stream));
    }
    Ok(Opened::Dump(DumpFiles::of(Input::of_stream(stream, limit)?)))
}

/// Opens what was found in a folder; `None` for what is not a dump by its first bytes. Text may be a dump whose start is
/// damaged.
///
/// # Errors
/// As [`open`].
pub fn open_found(file: &Path, limit: u64) -> Result<Option<DumpFiles>, Failure> {
    let mut stream = InputStream::open(file)?;
    let may_be_dump = match sniff(stream.peek(HEAD)?) {
        FileKind::MsmDevcore
        | FileKind::I915ErrorState
        | FileKind::XeDevcore
        | FileKind::AmdgpuDevcore
        | FileKind::RadvReport
        | FileKind::UmrText
        | FileKind::Text => true,
        FileKind::RdCapture
        | FileKind::NoErrorState
        | FileKind::Elf
        | FileKind::Folder
        | FileKind::Empty
        | FileKind::ToolText
        | FileKind::Binary => false,
    };
    if !may_be_dump {
        return Ok(None);
    }
    Ok(Some(DumpFiles::of(Input::of_stream(stream, limit)?)))
}

/// Code of an AMD GPU, or a dump of one.
pub enum AmdFile {
    /// A file that is not a dump of an AMD GPU.
    Code(Input),
    /// A dump or a folder.
    Dump(DumpFiles),
}

/// Opens code of an AMD GPU, or a dump or folder that may hold such code.
///
/// # Errors
/// When the file cannot be opened, unpacked or is larger than `limit`.
pub fn open_amd(file: &Path, limit: u64) -> Result<AmdFile, Failure> {
    if file.is_dir() {
        return DumpFiles::open_folder(file, limit).map(AmdFile::Dump);
    }
    let input = Input::open(file, limit)?;
    Ok(match sniff(&input.bytes) {
        FileKind::AmdgpuDevcore | FileKind::RadvReport | FileKind::UmrText => {
            AmdFile::Dump(DumpFiles::of(input))
        }
        _ => AmdFile::Code(input),
    })
}

/// Opens a dump or a folder, for commands that take no captures.
///
/// # Errors
/// As [`open`].
pub fn open_dump(file: &Path, limit: u64) -> Result<DumpFiles, Failure> {
    if file.is_dir() {
        return DumpFiles::open_folder(file, limit);
    }
    Ok(DumpFiles::of(Input::open(file, limit)?))
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
    if is_capture(&mut stream)? {
        return Ok(stream);
    }
    let what = sniff(stream.peek(0)?).describe();
    let message = format!("{}: not an rd capture: looks like {}{what}", stream.name, stream.wrapping());
    Err(Failure::Unusable(message))
}

/// Whether a stream is a capture; looks at its start only.
///
/// # Errors
/// When it cannot be read or unpacked.
pub fn is_capture(stream: &mut InputStream) -> Result<bool, Failure> {
    // A pipe may deliver slowly: a few bytes tell a capture, other kinds of file may take all of these.
    for bytes in [8, 64, 1 << 10, 16 << 10] {
        if rd::sniff(stream.peek(bytes)?) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Refuses what is known not to be bare code, which would be disassembled as words without meaning.
pub(crate) fn refuse_dump(input: &Input, verb: &str) -> Result<(), Failure> {
    let kind = sniff(&input.bytes);
    let advice = match kind {
        FileKind::Elf | FileKind::Empty | FileKind::Text | FileKind::Binary | FileKind::Folder => {
            return Ok(());
        }
        FileKind::MsmDevcore => "`unwedge ir3 disasm` lists its shaders, and --shader-at ADDRESS takes one",
        FileKind::RdCapture => "`unwedge ir3 disasm --shader-at ADDRESS` takes a shader of it",
        FileKind::ToolText => "give the dump or capture that it was made from",
        _ => "`unwedge decode` shows what is in it",
    };
    let what = kind.describe();
    Err(Failure::Unusable(format!("{}: {what}, and {verb} takes code; {advice}", input.name)))
}
