//! AMD code objects: the ELF files that hold shaders and kernels, of every loader (HSA v2 to v6, PAL, Mesa), in and out.
//!
//! Facts: the AMDGPU chapter of LLVM's documentation (`e_flags`, ABI versions, note and symbol types), measured with its
//! assembler. A file whose tables are cut gives the sections and symbols that are whole. Never: what an instruction or a
//! bit of a kernel descriptor means.

mod hsa_v2;
mod line_table;
mod lines;
mod link;
mod load;
pub mod metadata;
mod note;
mod read;
mod shared;
mod write;

pub use line_table::{LineRow, LineSequence};
pub use lines::{SectionLines, SourceLine, SourceLines};
pub use link::LinkError;
pub use load::{
    FunctionStart, LinkedSection, LoadError, LoadedFunction, LoadedKernel, LoadedSection, ProcessorError,
    StartRegisters,
};
pub use read::{processor, read};
pub use shared::{SharedObjectError, write_shared};
pub use write::write;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use unwedge_base::Diagnostic;
use unwedge_isa::amdgcn::Gpu;

/// `e_machine` of AMD GPUs.
const EM_AMDGPU: u16 = 224;
/// Bits of `e_flags` that name the processor.
const MACH_BITS: u32 = 0xff;
/// Bytes of a kernel descriptor of HSA v3 and later.
pub const DESCRIPTOR_SIZE: u64 = 64;
/// Bytes of the header before the code of a HSA v2 kernel, if it does not say.
const KERNEL_CODE_SIZE: u64 = 256;

/// Who loads a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Loader {
    /// ROCm, with the version of its code objects: 2 to 6.
    Hsa(u8),
    /// AMD's platform abstraction library.
    Pal,
    /// Mesa: RADV and radeonsi.
    Mesa,
    /// None that is known: `EI_OSABI` and `EI_ABIVERSION`.
    Other(u8, u8),
}

impl Loader {
    fn of(os_abi: u8, version: u8) -> Loader {
        match (os_abi, version) {
            (64, 0..=4) => Loader::Hsa(version + 2),
            (65, _) => Loader::Pal,
            (66, _) => Loader::Mesa,
            _ => Loader::Other(os_abi, version),
        }
    }

    fn identification(self) -> (u8, u8) {
        match self {
            Loader::Hsa(version) => (64, version.saturating_sub(2)),
            Loader::Pal => (65, 0),
            Loader::Mesa => (66, 0),
            Loader::Other(os_abi, version) => (os_abi, version),
        }
    }

    /// The `e_flags` of code for a processor, in the modes that it needs; 0 for a processor that is not known.
    pub fn flags(self, processor: &str, xnack: Option<bool>, sramecc: Option<bool>) -> u32 {
        let usual = flags_of(processor).unwrap_or(0);
        let on = |mode: Option<bool>, bit: u32| if mode == Some(true) { bit } else { 0 };
        let field = |mode: Option<bool>, shift: u32| match mode {
            Some(on) => (2 + u32::from(on)) << shift,
            None => usual & 3 << shift,
        };
        match self {
            Loader::Hsa(2) => usual & MACH_BITS | on(xnack, 1),
            Loader::Hsa(3) => usual & MACH_BITS | on(xnack, 0x100) | on(sramecc, 0x200),
            _ => usual & MACH_BITS | field(xnack, 8) | field(sramecc, 10),
        }
    }

    /// `hsa-v5`, `pal`, `mesa`, `other`.
    pub fn id(self) -> &'static str {
        match self {
            Loader::Hsa(2) => "hsa-v2",
            Loader::Hsa(3) => "hsa-v3",
            Loader::Hsa(4) => "hsa-v4",
            Loader::Hsa(5) => "hsa-v5",
            Loader::Hsa(_) => "hsa-v6",
            Loader::Pal => "pal",
            Loader::Mesa => "mesa",
            Loader::Other(..) => "other",
        }
    }
}

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElfSectionKind {
    /// Machine code.
    Code,
    /// Bytes that are loaded and only read.
    ReadOnly,
    /// Bytes that are loaded and written.
    Data,
    /// Memory that is loaded and has no bytes in the file.
    Zeros,
    /// Notes: metadata of the loader.
    Note,
    /// Bytes that are not loaded: debug information.
    Unloaded,
    /// Anything else.
    Other,
}

/// A section.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfSection<'a> {
    /// `.text`.
    pub name: Cow<'a, str>,
    /// What it holds.
    pub kind: ElfSectionKind,
    /// Where it is loaded; 0 in relocatable files.
    pub address: u64,
    /// Its bytes, as far as the file holds them.
    pub bytes: Cow<'a, [u8]>,
    /// What its address is a multiple of.
    pub align: u64,
}

/// What a symbol stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ElfSymbolKind {
    /// Code.
    Function,
    /// Data; a kernel descriptor is one.
    Object,
    /// A kernel of HSA v2, that starts with a header.
    HsaKernel,
    /// A place, a section, a file.
    Other,
}

/// A symbol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ElfSymbol<'a> {
    /// Its name; may be empty.
    pub name: Cow<'a, str>,
    /// What it stands for.
    pub kind: ElfSymbolKind,
    /// Seen by other files.
    pub global: bool,
    /// Its section: an index of [`CodeObject::sections`]; `None` where the file has none.
    pub section: Option<usize>,
    /// Its address, or its offset into its section in relocatable files; the value of a symbol without a section.
    pub value: u64,
    /// Bytes it covers; 0 where the file does not say.
    pub size: u64,
}

impl ElfSymbol<'_> {
    /// Whether it is the symbol of its section.
    pub(crate) fn is_of_section(&self) -> bool {
        self.kind == ElfSymbolKind::Other
            && !self.global
            && self.name.is_empty()
            && self.section.is_some()
            && self.value == 0
    }
}

/// Bytes that depend on where a symbol is once sections have their places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ElfRelocation {
    /// What becomes of them.
    pub kind: RelocationKind,
    /// The section they are in: an index of [`CodeObject::sections`].
    pub section: usize,
    /// Their offset in it.
    pub offset: u64,
    /// The symbol: an index of [`CodeObject::symbols`].
    pub symbol: usize,
    /// What is added.
    pub addend: i64,
}

/// Eight bytes of a linked object that are an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPointer {
    /// The section they are in: an index of [`CodeObject::sections`].
    pub section: usize,
    /// Their offset in it.
    pub offset: u64,
    /// The address, as far as the object is where it was linked for.
    pub address: u64,
}

/// What becomes of relocated bytes, as the ELF file numbers it (LLVM's `AMDGPUUsage`, "Relocation Records").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelocationKind(pub u32);

impl RelocationKind {
    /// Eight bytes: the distance from themselves to the symbol, plus the addend.
    pub const REL64: RelocationKind = RelocationKind(5);
    /// Four bytes: the distance from themselves to the symbol, plus the addend.
    pub const REL32: RelocationKind = RelocationKind(4);
    /// Four bytes: the lower half of such a distance.
    pub const REL32_LO: RelocationKind = RelocationKind(10);
    /// Four bytes: the upper half of such a distance.
    pub const REL32_HI: RelocationKind = RelocationKind(11);
    /// Eight bytes: the address of the symbol, plus the addend.
    pub const ABS64: RelocationKind = RelocationKind(3);
    /// Eight bytes: where the object is loaded, plus the addend.
    pub const RELATIVE64: RelocationKind = RelocationKind(13);

    /// What it fills its four bytes with, that far from the symbol; `None`: it is no distance of four bytes.
    pub fn distance(self, bytes: u64) -> Option<u32> {
        match self {
            Self::REL32 | Self::REL32_LO => Some(bytes as u32),
            Self::REL32_HI => Some((bytes >> 32) as u32),
            _ => None,
        }
    }

    /// Dwords that it is in: two of what is eight bytes.
    pub fn dwords(self) -> usize {
        1 + usize::from([Self::ABS64, Self::REL64, Self::RELATIVE64].contains(&self))
    }

    /// `R_AMDGPU_REL64`; `None` for a number that has no name.
    pub fn name(self) -> Option<&'static str> {
        const NAMES: [&str; 15] = [
            "R_AMDGPU_NONE",
            "R_AMDGPU_ABS32_LO",
            "R_AMDGPU_ABS32_HI",
            "R_AMDGPU_ABS64",
            "R_AMDGPU_REL32",
            "R_AMDGPU_REL64",
            "R_AMDGPU_ABS32",
            "R_AMDGPU_GOTPCREL",
            "R_AMDGPU_GOTPCREL32_LO",
            "R_AMDGPU_GOTPCREL32_HI",
            "R_AMDGPU_REL32_LO",
            "R_AMDGPU_REL32_HI",
            "",
            "R_AMDGPU_RELATIVE64",
            "R_AMDGPU_REL16",
        ];
        NAMES.get(self.0 as usize).copied().filter(|name| !name.is_empty())
    }
}

/// A code object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodeObject<'a> {
    /// Who loads it.
    pub loader: Loader,
    /// `e_flags`: the processor and what it was built for.
    pub flags: u32,
    /// Its sections, without the null section.
    pub sections: Vec<ElfSection<'a>>,
    /// Its symbols, without the null symbol.
    pub symbols: Vec<ElfSymbol<'a>>,
    /// What is not known before sections have their places.
    pub relocations: Vec<ElfRelocation>,
    /// Of a linked object, what is not known before it is loaded.
    pub pointers: Vec<AddressPointer>,
    /// What was cut or malformed.
    pub diagnostics: Vec<Diagnostic>,
}

/// Machine code in a code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CodeFunction<'c> {
    /// Its symbol's name; empty for code that no symbol covers.
    pub name: &'c str,
    /// Whether a kernel descriptor or header says that it is started from outside.
    pub kernel: bool,
    /// Index of its section.
    pub section: usize,
    /// Address of its first byte.
    pub address: u64,
    /// Its bytes.
    pub code: &'c [u8],
    /// What is before them and belongs to it: the header of a kernel of HSA v2.
    pub header: &'c [u8],
}

/// The processor that flags of a header name.
fn processor_of_flags(flags: u32) -> Option<&'static str> {
    let mach = flags & MACH_BITS;
    PROCESSORS.iter().find(|p| p.mach == mach).map(|p| p.name)
}

/// Whether a processor that an object names is not that of a GPU. A generic processor is that of every GPU of its family; one that
/// is not known may be any.
pub fn is_other_processor(own: &str, gpu: &Gpu) -> bool {
    match own.strip_suffix("-generic") {
        Some(family) => !gpu.name().starts_with(&family.replace('-', "")),
        None => Gpu::new(own).is_ok_and(|own| own.name() != gpu.name()),
    }
}

impl<'a> CodeObject<'a> {
    /// The processor: `gfx1030`.
    pub fn processor(&self) -> Option<&'static str> {
        processor_of_flags(self.flags).or_else(|| self.processor_of_notes())
    }

    /// Whether the code needs XNACK, the retry of page faults, on or off; `None` where either works, or its processor has
    /// no choice.
    pub fn xnack(&self) -> Option<bool> {
        match self.loader {
            Loader::Hsa(2) => (self.flags & 1 != 0).then_some(true),
            Loader::Hsa(3) => (self.flags & 0x100 != 0).then_some(true),
            _ => mode_of(self.flags >> 8),
        }
    }

    /// Whether the code needs ECC of registers on or off, as [`CodeObject::xnack`].
    pub fn sramecc(&self) -> Option<bool> {
        match self.loader {
            Loader::Hsa(2) => None,
            Loader::Hsa(3) => (self.flags & 0x200 != 0).then_some(true),
            _ => mode_of(self.flags >> 10),
        }
    }

    /// Code, in the order of sections and addresses: the functions that symbols name, and what is left between them.
    pub fn functions(&self) -> Vec<CodeFunction<'_>> {
        // A file may have many sections, symbols and descriptors: they are ordered once for all.
        let described = self.descriptors();
        let mut symbols: Vec<&ElfSymbol<'a>> = self.symbols.iter().collect();
        symbols.sort_by_key(|symbol| symbol.section);
        let mut all = Vec::new();
        for (index, section) in self.sections.iter().enumerate() {
            if section.kind == ElfSectionKind::Code && !section.bytes.is_empty() {
                let first = symbols.partition_point(|symbol| symbol.section < Some(index));
                let end = symbols.partition_point(|symbol| symbol.section <= Some(index));
                self.functions_of(index, section, &symbols[first..end], &described, &mut all);
            }
        }
        all
    }

    fn functions_of<'c>(
        &'c self,
        index: usize,
        section: &'c ElfSection<'a>,
        symbols: &[&'c ElfSymbol<'a>],
        described: &HashMap<&str, &[u8]>,
        all: &mut Vec<CodeFunction<'c>>,
    ) {
        let end = section.bytes.len();
        let mut ranges: Vec<FunctionRange<'_>> = Vec::new();
        for &symbol in symbols {
            let Some(at) = self.offset(section, symbol.value) else { continue };
            let (code, kernel) = match symbol.kind {
                ElfSymbolKind::Function => (at, described.contains_key(&*symbol.name)),
                ElfSymbolKind::HsaKernel => (at.saturating_add(entry_of(&section.bytes, at)), true),
                ElfSymbolKind::Object | ElfSymbolKind::Other => continue,
            };
            let claimed = usize::try_from(symbol.size).ok().filter(|&size| size > 0);
            let stop = claimed.and_then(|size| at.checked_add(size)).map_or(end, |stop| stop.min(end));
            if code < end {
                ranges.push(FunctionRange { first: at, code, stop, name: &symbol.name, kernel });
            }
        }
        // Of symbols at one address the one with a header is the kernel.
        ranges.sort_by_key(|range| (range.first, range.first == range.code, range.name.is_empty()));
        ranges.dedup_by_key(|range| range.first);
        let mut after = 0;
        for (i, range) in ranges.iter().enumerate() {
            if after < range.first {
                all.push(self.unnamed(index, section, after..range.first));
            }
            let next = ranges.get(i + 1).map_or(end, |next| next.first);
            let stop = if range.stop > range.code { range.stop.min(next) } else { next };
            let code = range.code.min(stop);
            let header = section.bytes.get(range.first..code).unwrap_or_default();
            let unnamed = self.unnamed(index, section, code..stop);
            all.push(CodeFunction { name: range.name, kernel: range.kernel, header, ..unnamed });
            after = stop;
        }
        if after < end {
            all.push(self.unnamed(index, section, after..end));
        }
    }

    /// Code that no symbol covers.
    fn unnamed<'c>(
        &'c self,
        index: usize,
        section: &'c ElfSection<'a>,
        range: Range<usize>,
    ) -> CodeFunction<'c> {
        CodeFunction {
            name: "",
            kernel: false,
            section: index,
            address: section.address.wrapping_add(range.start as u64),
            code: section.bytes.get(range).unwrap_or_default(),
            header: &[],
        }
    }

    fn offset(&self, section: &ElfSection<'a>, value: u64) -> Option<usize> {
        let at = value.checked_sub(section.address)?;
        usize::try_from(at).ok().filter(|&at| at < section.bytes.len())
    }

    /// The kernel descriptors by function: 64 bytes each, of which `isa` knows the bits.
    pub fn descriptors(&self) -> HashMap<&str, &[u8]> {
        let mut all = HashMap::new();
        for symbol in &self.symbols {
            if let Some(function) = symbol.name.strip_suffix(".kd")
                && let Some(bytes) = self.descriptor_at(symbol)
            {
                all.entry(function).or_insert(bytes);
            }
        }
        all
    }

    /// The kernel descriptor that a symbol names.
    fn descriptor_at(&self, symbol: &ElfSymbol<'_>) -> Option<&[u8]> {
        let section = self.sections.get(symbol.section?)?;
        let at = self.offset(section, symbol.value)?;
        section.bytes.get(at..at.checked_add(DESCRIPTOR_SIZE as usize)?)
    }
}

/// A mode in the low two bits of a field of `e_flags`, from HSA v4 on.
fn mode_of(field: u32) -> Option<bool> {
    match field & 3 {
        2 => Some(false),
        3 => Some(true),
        _ => None,
    }
}

/// Where a function is in its section.
struct FunctionRange<'c> {
    /// Its first byte: that of its header, if it has one.
    first: usize,
    /// The first byte of its code.
    code: usize,
    /// The end of its code.
    stop: usize,
    name: &'c str,
    kernel: bool,
}

/// Where the code of a HSA v2 kernel starts after its header.
fn entry_of(section: &[u8], at: usize) -> usize {
    let entry = section.get(at..).and_then(|bytes| bytes.get(16..24)).and_then(|b| b.try_into().ok());
    let entry = entry.map(u64::from_le_bytes).filter(|&entry| entry >= KERNEL_CODE_SIZE);
    entry.and_then(|entry| usize::try_from(entry).ok()).unwrap_or(KERNEL_CODE_SIZE as usize)
}

/// A processor, as `e_flags` name it.
struct ElfProcessor {
    mach: u32,
    name: &'static str,
    /// Whether its code may be built with or without retry of page faults, and with or without ECC of registers: code
    /// that runs either way says so in `e_flags`.
    xnack: bool,
    sramecc: bool,
}

/// The `e_flags` of code for a processor that runs with whatever it supports: `None` for one that is not known.
pub fn flags_of(processor: &str) -> Option<u32> {
    let found = PROCESSORS.iter().find(|p| p.name == processor)?;
    Some(found.mach | if found.xnack { 0x100 } else { 0 } | if found.sramecc { 0x400 } else { 0 })
}

const fn plain(mach: u32, name: &'static str) -> ElfProcessor {
    ElfProcessor { mach, name, xnack: false, sramecc: false }
}

const fn xnack(mach: u32, name: &'static str) -> ElfProcessor {
    ElfProcessor { mach, name, xnack: true, sramecc: false }
}

const fn sramecc(mach: u32, name: &'static str) -> ElfProcessor {
    ElfProcessor { mach, name, xnack: true, sramecc: true }
}

static PROCESSORS: [ElfProcessor; 53] = [
    plain(0x20, "gfx600"),
    plain(0x21, "gfx601"),
    plain(0x3a, "gfx602"),
    plain(0x22, "gfx700"),
    plain(0x23, "gfx701"),
    plain(0x24, "gfx702"),
    plain(0x25, "gfx703"),
    plain(0x26, "gfx704"),
    plain(0x3b, "gfx705"),
    xnack(0x28, "gfx801"),
    plain(0x29, "gfx802"),
    plain(0x2a, "gfx803"),
    plain(0x3c, "gfx805"),
    xnack(0x2b, "gfx810"),
    xnack(0x2c, "gfx900"),
    xnack(0x2d, "gfx902"),
    xnack(0x2e, "gfx904"),
    sramecc(0x2f, "gfx906"),
    sramecc(0x30, "gfx908"),
    xnack(0x31, "gfx909"),
    sramecc(0x3f, "gfx90a"),
    xnack(0x32, "gfx90c"),
    sramecc(0x40, "gfx940"),
    sramecc(0x4b, "gfx941"),
    sramecc(0x4c, "gfx942"),
    sramecc(0x4f, "gfx950"),
    xnack(0x33, "gfx1010"),
    xnack(0x34, "gfx1011"),
    xnack(0x35, "gfx1012"),
    xnack(0x42, "gfx1013"),
    plain(0x36, "gfx1030"),
    plain(0x37, "gfx1031"),
    plain(0x38, "gfx1032"),
    plain(0x39, "gfx1033"),
    plain(0x3e, "gfx1034"),
    plain(0x3d, "gfx1035"),
    plain(0x45, "gfx1036"),
    plain(0x41, "gfx1100"),
    plain(0x46, "gfx1101"),
    plain(0x47, "gfx1102"),
    plain(0x44, "gfx1103"),
    plain(0x43, "gfx1150"),
    plain(0x4a, "gfx1151"),
    plain(0x55, "gfx1152"),
    plain(0x58, "gfx1153"),
    plain(0x48, "gfx1200"),
    plain(0x4e, "gfx1201"),
    xnack(0x51, "gfx9-generic"),
    xnack(0x52, "gfx10-1-generic"),
    plain(0x53, "gfx10-3-generic"),
    plain(0x54, "gfx11-generic"),
    sramecc(0x5f, "gfx9-4-generic"),
    plain(0x59, "gfx12-generic"),
];

/// Not an AMD code object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotCodeObject {
    /// No ELF file at all.
    #[error("not a 64-bit little-endian ELF file")]
    NotElf,
    /// An ELF file of another machine.
    #[error("an ELF file of machine {0}, not of an AMD GPU (224)")]
    OtherMachine(u16),
}
