//! A dump as a whole.
//!
//! Two dumps are equal when they say the same: where in the text it stood, how it was laid out and what was reported
//! about it do not count. Facts: the show functions of Linux 4.19 to 6.17, named in [`super::lines`].

use super::layout::{MsmLayout, MsmSectionInfo};
use super::lines::TopKey;
use super::sections::MsmSection;
use super::{read, render};
use crate::absence::{AbsentSection, DumpSectionId, SectionAbsence};
use crate::ascii85;
use std::borrow::Cow;
use std::fmt;
use unwedge_base::{Buffer, ChipId, Diagnostic, Generation, Memory, Span};
use unwedge_hw::ChipOverride;

/// An msm devcoredump. Absent sections are `None` or empty; nothing is filled in.
#[derive(Clone, Debug, Default)]
pub struct Devcore<'a> {
    /// `kernel:`
    pub kernel: Option<Cow<'a, str>>,
    /// `module:`
    pub module: Option<Cow<'a, str>>,
    /// `time:`, seconds.microseconds as written.
    pub time: Option<Cow<'a, str>>,
    /// `comm:`
    pub comm: Option<Cow<'a, str>>,
    /// `cmdline:`
    pub cmdline: Option<Cow<'a, str>>,
    /// `gpu-initialized:`; 0 says that registers were not read.
    pub gpu_initialized: Option<u32>,
    /// `revision:`
    pub revision: Option<Revision>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
    /// `rbbm-status:`
    pub rbbm_status: Option<u32>,
    /// `fault-info:`
    pub fault: Option<Fault<'a>>,
    /// `ringbuffer:`
    pub rings: Vec<Ring<'a>>,
    /// `bos:` (`bo:` in the format document)
    pub bos: Vec<Bo<'a>>,
    /// `pgtable-fault-info:`: what the page tables said about the faulting address.
    pub page_tables: Option<PageTables<'a>>,
    /// `vm-log:`, one entry per map or unmap, as written: `map:3: 0x0000000100000000-0x0000000100001000`.
    pub vm_log: Vec<Cow<'a, str>>,
    /// `gmu-log:`
    pub gmu_log: Option<GmuBuffer<'a>>,
    /// `gmu-hfi:`
    pub gmu_hfi: Option<GmuBuffer<'a>>,
    /// `gmu-debug:`
    pub gmu_debug: Option<GmuBuffer<'a>>,
    /// `registers:`, in the order of the dump.
    pub registers: Vec<RegisterValue>,
    /// `registers-gmu:`
    pub registers_gmu: Vec<RegisterValue>,
    /// `registers-hlsq:` (a5xx)
    pub registers_hlsq: Vec<RegisterValue>,
    /// `indexed-registers:`
    pub indexed: Vec<Indexed<'a>>,
    /// `shader-blocks:`
    pub shader_blocks: Vec<ShaderBlock<'a>>,
    /// `clusters:`
    pub clusters: Vec<Cluster<'a>>,
    /// `debugbus:`
    pub debugbus: Vec<DebugBus<'a>>,
    /// What was malformed or lost.
    pub diagnostics: Vec<Diagnostic>,
    /// How the text it was read from deviates from what this crate would write by itself.
    pub layout: MsmLayout<'a>,
}

/// `revision: 630 (6.3.0.2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision {
    /// The number in front, 630; 0 on newer chips.
    pub gpu_id: u32,
    /// The four numbers in parentheses.
    pub chip_id: ChipId,
}

/// `fault-info:`: the IOMMU fault that triggered the dump.
#[derive(Clone, Debug, Default)]
pub struct Fault<'a> {
    /// Faulting address.
    pub iova: Option<u64>,
    /// `ttbr0`
    pub ttbr0: Option<u64>,
    /// `dir`: READ or WRITE.
    pub dir: Option<Cow<'a, str>>,
    /// `type`: TRANSLATION, PERMISSION …
    pub kind: Option<Cow<'a, str>>,
    /// `source`: the block that faulted, `TP|VFD`.
    pub source: Option<Cow<'a, str>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// `pgtable-fault-info:`, of kernels from 6.14 on.
#[derive(Clone, Debug, Default)]
pub struct PageTables<'a> {
    /// `ttbr0` of the address space that the kernel thinks was current.
    pub ttbr0: Option<u64>,
    /// `asid`
    pub asid: Option<u32>,
    /// `ptes`: the entries met on the way down to the faulting address, 0 from the first absent one on.
    pub ptes: Option<[u64; 4]>,
    /// Lines of this section that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// Lines of an entry whose key is not known: without their end of line, in the order of the dump.
pub type Extra<'a> = Vec<Cow<'a, [u8]>>;

/// Ascii85 contents of a section entry. Decoding is put off until somebody asks.
#[derive(Clone, Default)]
pub struct Blob<'a> {
    /// The encoded text, leading blanks removed.
    pub encoded: Cow<'a, [u8]>,
    /// Where it stands in the dump.
    pub span: Span,
    /// The dump ends in it, or right after it without the end of the line: more may have followed.
    pub cut: bool,
}

impl Blob<'_> {
    /// The dwords that are known to be right, and whether that is all of them. A text that is cut, or that a character
    /// outside the alphabet ends, says nothing of the dwords after that; a last group of fewer than five characters is
    /// not a dword.
    pub fn decode_known(&self) -> (Vec<u32>, bool) {
        let mut data = ascii85::decode(&self.encoded);
        if data.partial {
            data.dwords.pop();
        }
        let complete = !self.cut && !data.partial && data.consumed == self.encoded.len();
        (data.dwords, complete)
    }

    /// The dwords. Characters outside the alphabet end the text; see [`crate::ascii85`].
    pub fn decode(&self) -> Vec<u32> {
        ascii85::decode(&self.encoded).dwords
    }

    /// The number of dwords, found without decoding; an upper bound where the text is malformed.
    pub fn len(&self) -> usize {
        ascii85::decoded_len(&self.encoded)
    }

    /// No dword at all.
    pub fn is_empty(&self) -> bool {
        self.encoded.is_empty()
    }

    /// Contents for a dump built in code. Zeros at the end are left out, as kernels do.
    pub fn encode(dwords: &[u32]) -> Blob<'static> {
        let used = dwords.iter().rposition(|&d| d != 0).map_or(0, |last| last + 1);
        Blob { encoded: Cow::Owned(ascii85::encode(&dwords[..used])), ..Blob::default() }
    }
}

impl fmt::Debug for Blob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = String::from_utf8_lossy(&self.encoded[..self.encoded.len().min(20)]);
        write!(f, "Blob({start:?} of {} bytes at {})", self.encoded.len(), self.span.start)
    }
}

/// A ring.
#[derive(Clone, Debug, Default)]
pub struct Ring<'a> {
    /// Ring number.
    pub id: u32,
    /// GPU address.
    pub iova: u64,
    /// `last-fence`: newest fence submitted.
    pub last_fence: Option<u32>,
    /// `retired-fence`: newest fence completed.
    pub retired_fence: Option<u32>,
    /// Read pointer, in dwords.
    pub rptr: Option<u32>,
    /// Write pointer, in dwords.
    pub wptr: Option<u32>,
    /// Bytes.
    pub size: Option<u32>,
    /// Contents; zeros at the end are left out.
    pub data: Option<Blob<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// A buffer object.
#[derive(Clone, Debug, Default)]
pub struct Bo<'a> {
    /// GPU address.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
    /// `flags:`, MSM_BO_* bits.
    pub flags: Option<u32>,
    /// `name:`, blanks at the end removed.
    pub name: Option<Cow<'a, str>>,
    /// Contents; zeros at the end are left out. `None`: not captured, or all zero.
    pub data: Option<Blob<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// A buffer of the GMU.
#[derive(Clone, Debug, Default)]
pub struct GmuBuffer<'a> {
    /// Address in the GMU's space.
    pub iova: u64,
    /// Bytes.
    pub size: u64,
    /// `queue-history[N]:` of gmu-hfi: where the last eight messages of each queue start, -1 for none.
    pub history: Vec<[i32; 8]>,
    /// Contents.
    pub data: Option<Blob<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// One `{ offset: …, value: … }`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegisterValue {
    /// Offset in dwords (the dump has bytes).
    pub reg: u32,
    /// Value.
    pub value: u32,
}

/// A block of indexed registers: a debug FIFO read out.
#[derive(Clone, Debug, Default)]
pub struct Indexed<'a> {
    /// `regs-name` as written.
    pub name: Cow<'a, str>,
    /// `dwords`
    pub dwords: u32,
    /// Contents.
    pub data: Option<Blob<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

impl Indexed<'_> {
    /// The name newer kernels use, whatever this one wrote: misspelt names are corrected, `_DATA` and `_ADDR` at the end are
    /// dropped.
    pub fn canonical_name(&self) -> Cow<'_, str> {
        let name = self.name.as_ref();
        let corrected = corrected_name(name);
        if corrected != name {
            return Cow::Borrowed(corrected);
        }
        let name = name.strip_suffix("_DATA").or_else(|| name.strip_suffix("_ADDR")).unwrap_or(name);
        Cow::Borrowed(name)
    }
}

/// The name of a block of indexed registers where kernels misspelt it, else the name as it is.
pub fn corrected_name(written: &str) -> &str {
    match written {
        "CP_MEMPOOOL" => "CP_MEMPOOL",
        "CP_SEQ_STAT" => "CP_SQE_STAT",
        other => other,
    }
}

/// A shader block: memory inside the shader processors.
#[derive(Clone, Debug, Default)]
pub struct ShaderBlock<'a> {
    /// `type`, `A6XX_SP_INST_DATA`.
    pub ty: Cow<'a, str>,
    /// `location:` (a7xx).
    pub location: Option<u32>,
    /// `pipe:` (a7xx).
    pub pipe: Option<Cow<'a, str>>,
    /// One per bank (per SP and USPTP on a7xx).
    pub banks: Vec<ShaderBank<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// One instance of a shader block.
#[derive(Clone, Debug, Default)]
pub struct ShaderBank<'a> {
    /// `bank:` (a6xx) or `sp:` (a7xx).
    pub index: u32,
    /// `usptp:` (a7xx).
    pub usptp: Option<u32>,
    /// `ctx:` (a8xx, in place of `usptp`).
    pub context: Option<u32>,
    /// `size`, in dwords.
    pub size: u32,
    /// Contents.
    pub data: Option<Blob<'a>>,
}

/// Registers of one cluster in one context.
#[derive(Clone, Debug, Default)]
pub struct Cluster<'a> {
    /// `cluster-name`
    pub name: Cow<'a, str>,
    /// `pipe:` (a7xx).
    pub pipe: Option<Cow<'a, str>>,
    /// `location:` (a7xx).
    pub location: Option<u32>,
    /// `context:`
    pub context: Option<u32>,
    /// Registers.
    pub registers: Vec<RegisterValue>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// A debug bus block.
#[derive(Clone, Debug, Default)]
pub struct DebugBus<'a> {
    /// `debugbus-block`
    pub name: Cow<'a, str>,
    /// `count`, in dwords.
    pub count: u32,
    /// Contents.
    pub data: Option<Blob<'a>>,
    /// Lines of this entry that nobody knows.
    pub extra: Extra<'a>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// The input is not an msm devcoredump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an msm devcoredump: none of its section headings was found")]
pub struct NotDevcore;

impl<'a> Devcore<'a> {
    /// Reads a dump. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotDevcore`] if no line has a key of an msm devcoredump.
    pub fn read(text: &'a [u8]) -> Result<Devcore<'a>, NotDevcore> {
        read::read(text)
    }

    /// Writes the dump. What was read from a kernel's dump, and not changed since, is written as that kernel wrote it.
    /// Strings end at their line: line ends inside of them become blanks.
    pub fn write(&self, out: &mut Vec<u8>) {
        render::write(self, out);
    }

    /// The numbers that say which GPU it is of: those it is taken to be of, else its own.
    pub fn identity(&self) -> Option<(u32, ChipId)> {
        let taken_as = self.taken_as.as_ref().and_then(ChipOverride::adreno);
        taken_as.or_else(|| self.revision.map(|revision| (revision.gpu_id, revision.chip_id)))
    }

    /// The sections of the text that was read, in its order, those nobody knows too. Empty for a dump built in code.
    pub fn sections(&self) -> &[MsmSectionInfo<'a>] {
        self.layout.sections()
    }

    /// Whether a key outside of sections has a value.
    pub fn has(&self, key: TopKey) -> bool {
        match key {
            TopKey::Kernel => self.kernel.is_some(),
            TopKey::Module => self.module.is_some(),
            TopKey::Time => self.time.is_some(),
            TopKey::Comm => self.comm.is_some(),
            TopKey::Cmdline => self.cmdline.is_some(),
            TopKey::GpuInitialized => self.gpu_initialized.is_some(),
            TopKey::Revision => self.revision.is_some(),
            TopKey::RbbmStatus => self.rbbm_status.is_some(),
        }
    }

    /// The number of entries of a section.
    pub fn entries(&self, section: MsmSection) -> usize {
        match section {
            MsmSection::FaultInfo => usize::from(self.fault.is_some()),
            MsmSection::PageTables => usize::from(self.page_tables.is_some()),
            MsmSection::VmLog => self.vm_log.len(),
            MsmSection::Ringbuffer => self.rings.len(),
            MsmSection::Bos => self.bos.len(),
            MsmSection::GmuLog => usize::from(self.gmu_log.is_some()),
            MsmSection::GmuHfi => usize::from(self.gmu_hfi.is_some()),
            MsmSection::GmuDebug => usize::from(self.gmu_debug.is_some()),
            MsmSection::Registers => self.registers.len(),
            MsmSection::RegistersHlsq => self.registers_hlsq.len(),
            MsmSection::RegistersGmu => self.registers_gmu.len(),
            MsmSection::IndexedRegisters => self.indexed.len(),
            MsmSection::ShaderBlocks => self.shader_blocks.len(),
            MsmSection::Clusters => self.clusters.len(),
            MsmSection::Debugbus => self.debugbus.len(),
        }
    }

    /// The sections that the text lacks although kernels write them for this generation.
    pub fn absent(&self, generation: Option<Generation>) -> impl Iterator<Item = MsmSection> + '_ {
        let there = |section| self.sections().iter().any(|info| info.section == Some(section));
        MsmSection::ALL.into_iter().filter(move |&s| !there(s) && s.is_written_for(generation))
    }

    /// Why a section has no entries; `None` where it has some.
    pub fn absence(&self, section: MsmSection) -> Option<SectionAbsence> {
        if self.entries(section) > 0 {
            return None;
        }
        let facts = section.facts();
        let headings = || self.sections().iter().filter_map(|info| info.section);
        let passed = headings().any(|other| other.follows(section))
            || facts.before_status && self.rbbm_status.is_some();
        let ends_in_it = headings().next_back() == Some(section);
        if self.layout.is_cut() && (ends_in_it || !passed) {
            return Some(SectionAbsence::DumpCut);
        }
        Some(SectionAbsence::by_kernel(facts.since, self.kernel.as_deref()))
    }

    /// A section that has nothing, with the reason.
    pub fn absent_section(&self, section: MsmSection) -> AbsentSection {
        let why = self.absence(section).unwrap_or(SectionAbsence::NothingRecorded);
        AbsentSection { section: DumpSectionId::Msm(section), why }
    }

    /// The value of a register of `registers:`.
    pub fn register(&self, reg: u32) -> Option<u32> {
        self.registers.iter().find(|r| r.reg == reg).map(|r| r.value)
    }

    /// Rings and buffers as memory. Where there is more data than the size claims, the data counts. What follows the known
    /// dwords of contents that are not complete is unknown; only complete ones end in the zeros that kernels leave out.
    pub fn memory(&self) -> Memory {
        let bos = self.bos.iter().map(|bo| {
            let name = bo.name.as_deref().unwrap_or_default().to_owned();
            captured(bo.iova, bo.size, bo.data.as_ref(), name)
        });
        let rings = self.rings.iter().map(|ring| {
            let size = ring.size.unwrap_or(0).into();
            captured(ring.iova, size, ring.data.as_ref(), format!("ring {}", ring.id))
        });
        bos.chain(rings).flatten().collect()
    }
}

/// A buffer, in two parts where its contents are not complete: what is known, and the rest without contents.
fn captured(
    iova: u64,
    size: u64,
    data: Option<&Blob<'_>>,
    name: String,
) -> impl Iterator<Item = Buffer> + use<> {
    let Some((contents, complete)) = data.map(Blob::decode_known) else {
        return [Some(Buffer { iova, size, contents: None, name }), None].into_iter().flatten();
    };
    let known = contents.len() as u64 * 4;
    if complete {
        let buffer = Buffer { iova, size: size.max(known), contents: Some(contents), name };
        return [Some(buffer), None].into_iter().flatten();
    }
    let rest = size.checked_sub(known).filter(|&size| size > 0).zip(iova.checked_add(known));
    let rest = rest.map(|(size, iova)| Buffer { iova, size, contents: None, name: name.clone() });
    [Some(Buffer { iova, size: known, contents: Some(contents), name }), rest].into_iter().flatten()
}

/// Equality of what is said, not of where it stands. Taking the struct apart keeps a new field from being forgotten.
macro_rules! equal_but_for_place {
    ($($ty:ident { $($field:ident),* }, $($skipped:ident),*;)*) => {$(
        impl PartialEq for $ty<'_> {
            fn eq(&self, other: &Self) -> bool {
                let $ty { $($field,)* $($skipped: _,)* } = self;
                $(*$field == other.$field)&&*
            }
        }
    )*};
}

equal_but_for_place! {
    Fault { iova, ttbr0, dir, kind, source, extra }, span;
    PageTables { ttbr0, asid, ptes, extra }, span;
    Blob { encoded }, span, cut;
    Ring { id, iova, last_fence, retired_fence, rptr, wptr, size, data, extra }, span;
    Bo { iova, size, flags, name, data, extra }, span;
    GmuBuffer { iova, size, history, data, extra }, span;
    Indexed { name, dwords, data, extra }, span;
    ShaderBlock { ty, location, pipe, banks, extra }, span;
    ShaderBank { index, usptp, context, size, data },;
    Cluster { name, pipe, location, context, registers }, span;
    DebugBus { name, count, data, extra }, span;
    Devcore {
        kernel, module, time, comm, cmdline, gpu_initialized, revision, rbbm_status, fault, page_tables, rings, bos,
        vm_log, gmu_log, gmu_hfi, gmu_debug, registers, registers_gmu, registers_hlsq, indexed, shader_blocks,
        clusters, debugbus
    }, diagnostics, layout, taken_as;
}
