//! Files that hold code objects of several GPUs: bundles of clang's offload bundler, plain and compressed, LLVM's offload
//! binaries, the sections of programs of Linux and Windows that hold them, and archives; one in another.
//!
//! Facts: clang's "Offload Bundler" document, LLVM's `OffloadBinary` format, the ELF sections that HIP programs have, the ar
//! format of GNU, BSD and Microsoft. A file that is cut gives the objects that are there. Never: what is in a code object.

mod coff;
mod format;
mod walk;

use crate::elf;
use std::borrow::Cow;
use std::ops::Range;
use unwedge_base::Diagnostic;

/// A file that holds other files.
#[derive(Clone, Debug)]
pub struct Bundle<'a> {
    /// The file, and what was unpacked of it.
    buffers: Vec<Cow<'a, [u8]>>,
    /// What it holds, from the start to the end; empty entries are left out.
    pub entries: Vec<BundleEntry>,
    /// What was cut, malformed or not unpacked.
    pub diagnostics: Vec<Diagnostic>,
}

/// A file in a [`Bundle`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundleEntry {
    /// Names of what it is in, from the outside: a member of an archive, a section, the id of an entry of a bundle.
    pub path: Vec<String>,
    /// What it holds.
    pub contents: BundleContents,
    /// Whether it was compressed.
    pub compressed: bool,
    /// Which of the buffers has it, and where.
    place: (usize, Range<usize>),
}

/// What an entry holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BundleContents {
    /// A code object of an AMD GPU; its processor if that is known.
    CodeObject(Option<&'static str>),
    /// Bitcode of LLVM.
    Bitcode,
    /// A SPIR-V module.
    Spirv,
    /// A program or object of a host.
    Host,
    /// Anything else.
    Other,
}

impl BundleContents {
    fn of(bytes: &[u8]) -> BundleContents {
        match bytes {
            [b'B', b'C', 0xc0, 0xde, ..] | [0xde, 0xc0, 0x17, 0x0b, ..] => BundleContents::Bitcode,
            [0x03, 0x02, 0x23, 0x07, ..] => BundleContents::Spirv,
            [0x7f, b'E', b'L', b'F', ..] => match elf::processor(bytes) {
                Ok(processor) => BundleContents::CodeObject(processor),
                Err(_) => BundleContents::Host,
            },
            _ => BundleContents::Other,
        }
    }

    /// `code-object`, `bitcode`, `spirv`, `host`, `other`.
    pub fn id(self) -> &'static str {
        match self {
            BundleContents::CodeObject(_) => "code-object",
            BundleContents::Bitcode => "bitcode",
            BundleContents::Spirv => "spirv",
            BundleContents::Host => "host",
            BundleContents::Other => "other",
        }
    }
}

impl<'a> Bundle<'a> {
    /// Reads a file; `None` if it holds no others. Of what is compressed no more than `limit` bytes are unpacked.
    pub fn read(file: &'a [u8], limit: u64) -> Option<Bundle<'a>> {
        walk::read(file, limit)
    }

    /// The bytes of an entry.
    pub fn bytes(&self, entry: &BundleEntry) -> &[u8] {
        let (buffer, range) = &entry.place;
        self.buffers.get(*buffer).and_then(|buffer| buffer.get(range.clone())).unwrap_or_default()
    }

    /// The code objects, in their order.
    pub fn code_objects(&self) -> impl Iterator<Item = &BundleEntry> {
        self.entries.iter().filter(|entry| matches!(entry.contents, BundleContents::CodeObject(_)))
    }
}

impl BundleEntry {
    /// Its path as one text: `lib.a(add.o)`'s parts, with ` > ` between them.
    pub fn name(&self) -> String {
        self.path.join(" > ")
    }

    /// The processor, by the object itself, or by the id that its bundle gives it.
    pub fn processor(&self) -> Option<&str> {
        match self.contents {
            BundleContents::CodeObject(Some(own)) => Some(own),
            _ => self.target()?.split(':').next(),
        }
    }

    /// The target by the id that its bundle gives it: `gfx90a:sramecc+:xnack-`.
    pub fn target(&self) -> Option<&str> {
        let id = self.path.last()?;
        id.get(id.rfind("-gfx")? + 1..)
    }
}

/// A file that a thin archive names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThinMember {
    /// Its name, as it is shown to people.
    pub name: String,
    /// Whether that is the name in the archive: not cut, and no character replaced.
    pub whole: bool,
}

/// The files that a thin archive names, in its order; `None` if a file is not one. They are not in it, but beside it.
pub fn thin_members(file: &[u8]) -> Option<Vec<ThinMember>> {
    format::thin_members(file)
}

/// An archive that holds files itself, by name and contents.
pub fn archive(members: &[(String, Vec<u8>)]) -> Vec<u8> {
    format::archive(members)
}

/// Whether the start of a file is that of a bundle, an offload binary or an archive, or of an object or program of Windows, which may
/// hold some.
pub fn sniff(start: &[u8]) -> bool {
    format::BundleFormat::of(start).is_some_and(|format| format != format::BundleFormat::HostElf)
}
