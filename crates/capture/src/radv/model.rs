//! A hang report as a whole.

use super::members::{MemberInfo, MemberKind, ReportMember};
use super::read;
use crate::absence::{AbsentSection, DumpSectionId, SectionAbsence};
use crate::amd::DwordContents;
use crate::umr::{PrintedRegister, UmrText, UmrVgpr, UmrWave, UmrWaveLocation};
use std::borrow::Cow;
use unwedge_base::{Diagnostic, Span};
use unwedge_hw::ChipOverride;

/// What Mesa calls a generation, in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RadvGfxLevel {
    /// Major and minor: `10.3`.
    Version(u8, u8),
    /// The number of Mesa's enum.
    Number(usize),
}

/// The trimmed value of an entry.
fn named<'s>(entries: &'s [NamedValue<'_>], name: &str) -> Option<&'s str> {
    entries.iter().find(|entry| entry.name.trim() == name).map(|entry| entry.value.trim())
}

/// A hang report. Absent files are `None` or empty; nothing is filled in. Spans are within the file they come from, or
/// within the text when the report is one text.
#[derive(Clone, Debug, Default)]
pub struct RadvReport<'a> {
    /// Every file there is, in the order given.
    pub members: Vec<MemberInfo<'a>>,
    /// `trace.log`
    pub trace: Option<TraceLog<'a>>,
    /// `pipeline.log` and `shader_dump.log`
    pub pipeline: Option<PipelineState<'a>>,
    /// `umr_waves.log`
    pub umr_waves: Option<UmrText<'a>>,
    /// `umr_ring.log`
    pub umr_ring: Option<UmrText<'a>>,
    /// `registers.log`
    pub registers: Vec<PrintedRegister<'a>>,
    /// `bo_ranges.log`: buffers that existed when the report was made.
    pub bo_ranges: Vec<BoRange>,
    /// `bo_history.log`: what happened to buffers, in order of time.
    pub bo_history: Vec<BoEvent>,
    /// `addr_binding_report.log`
    pub bindings: Vec<AddressBinding<'a>>,
    /// `vm_fault.log`; absent or empty when RADV was told of no fault.
    pub vm_fault: Option<VmFault<'a>>,
    /// `app_info.log`
    pub app: Vec<NamedValue<'a>>,
    /// `gpu_info.log`
    pub gpu: Vec<NamedValue<'a>>,
    /// `dmesg.log`, as written.
    pub dmesg: Option<Cow<'a, str>>,
    /// What amdgpu said in `dmesg.log`.
    pub kernel: Vec<KernelEvent<'a>>,
    /// `trap_handler.log`
    pub trap: Option<TrapReport<'a>>,
    /// What was malformed or lost; messages name the file.
    pub diagnostics: Vec<Diagnostic>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
}

/// `trace.log`.
#[derive(Clone, Debug, Default)]
pub struct TraceLog<'a> {
    /// `TraceLog ID:`, the last trace point that the CP reached in the primary command buffer.
    pub id: Option<u32>,
    /// Command streams, in the order of the text; nested ones follow the stream that calls them.
    pub streams: Vec<TraceStream<'a>>,
}

/// A command stream as Mesa decoded it.
#[derive(Clone, Debug, Default)]
pub struct TraceStream<'a> {
    /// `main IB`, `Preamble IB`, `nested`.
    pub name: Cow<'a, str>,
    /// `GFX`, `COMPUTE`, where the text says it.
    pub ip: Option<Cow<'a, str>>,
    /// 0 for an IB that the kernel was given, 1 for one that it calls.
    pub depth: u32,
    /// The dwords, by their place in the stream. Mesa before 21 does not print them.
    pub contents: DwordContents,
    /// Packets.
    pub packets: Vec<TracePacket<'a>>,
    /// Its last line was not found.
    pub cut: bool,
    /// Where it stands in the text.
    pub span: Span,
}

/// A packet as Mesa decoded it.
#[derive(Clone, Debug, Default)]
pub struct TracePacket<'a> {
    /// `DRAW_INDEX_AUTO`
    pub name: Cow<'a, str>,
    /// Place of its header in the stream, in dwords; `None` where the text has no dwords.
    pub dword: Option<u64>,
    /// The trace point it is.
    pub trace_point: Option<TracePoint>,
    /// Addresses that Mesa says are not backed by a buffer.
    pub bad_addresses: Vec<InvalidAddress<'a>>,
    /// Its lines, from the name on, colours included.
    pub span: Span,
}

/// A trace point: a NOP whose number the CP writes to memory once it has come that far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TracePoint {
    /// Number.
    pub id: u32,
    /// How Mesa compared it with the number in memory.
    pub reached: TraceProgress,
}

/// Whether the CP came as far as a trace point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceProgress {
    /// Yes.
    Yes,
    /// Yes, and none behind it.
    Last,
    /// No.
    No,
    /// The text does not say.
    Unknown,
}

/// `ADDR <- 0x8001000 invalid`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InvalidAddress<'a> {
    /// Name of the value.
    pub name: Cow<'a, str>,
    /// Address.
    pub address: u64,
    /// `invalid`, `out of bounds`, `used after free`.
    pub problem: Cow<'a, str>,
}

/// `pipeline.log`: the state of the queue that hung.
#[derive(Clone, Debug, Default)]
pub struct PipelineState<'a> {
    /// `GFX`, `COMPUTE`.
    pub ip: Option<Cow<'a, str>>,
    /// `Pipeline hash:`, hexadecimal as written.
    pub hash: Option<Cow<'a, str>>,
    /// Shaders.
    pub shaders: Vec<RadvShader<'a>>,
    /// `The number of active waves`
    pub active_waves: Option<u32>,
    /// Waves that execute code which belongs to no shader above.
    pub strangers: Vec<AnnotatedWave>,
    /// `VkDispatchIndirectCommand`
    pub indirect_dispatch: Option<[u32; 3]>,
    /// Vertex buffers.
    pub vertex_buffers: Vec<VertexBuffer>,
    /// Descriptors of bound sets.
    pub descriptors: Vec<RadvDescriptor<'a>>,
}

/// A shader.
#[derive(Clone, Debug, Default)]
pub struct RadvShader<'a> {
    /// `Fragment RadvShader`, as written.
    pub name: Cow<'a, str>,
    /// SHA-1 of its SPIR-V: the name of a file.
    pub spirv: Option<Cow<'a, str>>,
    /// The disassembly.
    pub code: Vec<ShaderInstruction<'a>>,
    /// Waves that execute it; the text has them only where some do, and then addresses of instructions, too.
    pub waves: Vec<AnnotatedWave>,
    /// Where it stands in the text.
    pub span: Span,
}

impl RadvShader<'_> {
    /// Address of its first byte, where the text says it.
    pub fn address(&self) -> Option<u64> {
        self.code.iter().find_map(|i| i.pc?.checked_sub(i.offset))
    }

    /// Bytes of the code that is listed.
    pub fn size(&self) -> u64 {
        self.code.last().map_or(0, |i| i.offset.saturating_add(i.words.len() as u64 * 4))
    }

    /// Place in `code` of the instruction at this address.
    pub fn at(&self, pc: u64) -> Option<usize> {
        let offset = pc.checked_sub(self.address()?)?;
        self.code.binary_search_by_key(&offset, |i| i.offset).ok()
    }
}

/// An instruction of a disassembly: `\tv_mov_b32 v0, 0   ; 7e000280`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShaderInstruction<'a> {
    /// The text in front of the words.
    pub text: Cow<'a, str>,
    /// Its dwords; an instruction that the hardware has has at most five.
    pub words: Vec<u32>,
    /// Bytes from the start of the shader.
    pub offset: u64,
    /// Its address, where the text has it.
    pub pc: Option<u64>,
}

/// A wave below an instruction: `^ SE0 SH0 CU1 SIMD0 WAVE2  EXEC=…  INST32=…`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AnnotatedWave {
    /// Where it runs.
    pub place: UmrWaveLocation,
    /// Program counter.
    pub pc: Option<u64>,
    /// Lanes that execute.
    pub exec: Option<u64>,
    /// The instruction's dwords as the wave holds them.
    pub inst: [Option<u32>; 2],
}

/// `VBO#0:`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VertexBuffer {
    /// Number.
    pub number: u32,
    /// GPU address.
    pub iova: Option<u64>,
    /// Bytes.
    pub stride: Option<u32>,
    /// Records, or bytes.
    pub records: Option<u32>,
}

/// `(set=0 binding=1 offset=0x20) Buffer:`.
#[derive(Clone, Debug, Default)]
pub struct RadvDescriptor<'a> {
    /// Set.
    pub set: u32,
    /// Binding.
    pub binding: u32,
    /// Bytes into the set.
    pub offset: u32,
    /// `Buffer`, `Image`, `Sampler state`; absent for kinds that RADV does not print.
    pub kind: Option<Cow<'a, str>>,
    /// Its dwords, as registers with fields.
    pub words: Vec<PrintedRegister<'a>>,
}

/// `  VA=0000800100000000-0000800100001000, handle=4`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoRange {
    /// First byte.
    pub iova: u64,
    /// One past the last byte.
    pub end: u64,
    /// Kernel's handle.
    pub handle: Option<u32>,
}

/// `timestamp=…, VA=…-…, destroyed=0, is_virtual=0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoEvent {
    /// Nanoseconds.
    pub timestamp: u64,
    /// First byte.
    pub iova: u64,
    /// One past the last byte.
    pub end: u64,
    /// What happened.
    pub action: BoAction,
    /// A range without memory of its own (sparse).
    pub is_virtual: bool,
}

/// What happened to a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoAction {
    /// It was made.
    Created,
    /// It was destroyed.
    Destroyed,
    /// A sparse range was mapped to this address; 0 unmaps it.
    Mapped(u64),
}

/// A line of `addr_binding_report.log`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressBinding<'a> {
    /// Nanoseconds.
    pub timestamp: u64,
    /// First byte.
    pub iova: u64,
    /// One past the last byte.
    pub end: u64,
    /// Bound, or unbound.
    pub bound: bool,
    /// `VK_OBJECT_TYPE_IMAGE`
    pub object_type: Cow<'a, str>,
    /// Vulkan handle.
    pub object: u64,
}

/// `vm_fault.log`.
#[derive(Clone, Debug, Default)]
pub struct VmFault<'a> {
    /// Address of the page.
    pub address: Option<u64>,
    /// Name of the status register, which tells the generation.
    pub status_name: Option<Cow<'a, str>>,
    /// The protection fault status register.
    pub status: Option<u32>,
    /// Its fields as Mesa decoded them.
    pub fields: Vec<NamedValue<'a>>,
    /// Bindings that held the address, as RADV looked them up.
    pub bindings: Vec<AddressBinding<'a>>,
    /// RADV says that the address belonged to memory that was freed.
    pub use_after_free: bool,
    /// RADV says that nothing was ever bound there.
    pub not_found: bool,
    /// Where it stands in the text.
    pub span: Span,
}

/// A name and a value as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedValue<'a> {
    /// Name.
    pub name: Cow<'a, str>,
    /// Value.
    pub value: Cow<'a, str>,
}

/// What amdgpu said in the kernel's log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KernelEvent<'a> {
    /// `ring gfx_0.0.0 timeout, signaled seq=…, emitted seq=…`
    Timeout {
        /// Ring.
        ring: Cow<'a, str>,
        /// Newest fence that was signaled.
        signaled: Option<u64>,
        /// Newest fence that was submitted.
        emitted: Option<u64>,
    },
    /// `[gfxhub] page fault …` and the lines below it.
    Fault {
        /// `gfxhub`, `mmhub`.
        hub: Cow<'a, str>,
        /// Address space.
        vmid: Option<u32>,
        /// Page.
        address: Option<u64>,
        /// Protection fault status register.
        status: Option<u32>,
        /// The process, as written.
        process: Option<Cow<'a, str>>,
    },
}

/// `trap_handler.log`.
#[derive(Clone, Debug, Default)]
pub struct TrapReport<'a> {
    /// Hardware registers of the wave.
    pub registers: Vec<PrintedRegister<'a>>,
    /// `m0`
    pub m0: Option<u32>,
    /// Lanes that execute.
    pub exec: Option<u64>,
    /// Scalar registers, by number.
    pub sgprs: DwordContents,
    /// Vector registers.
    pub vgprs: Vec<UmrVgpr>,
    /// LDS, by dword.
    pub lds: DwordContents,
    /// PC of the instruction.
    pub pc: Option<u64>,
    /// Trap.
    pub trap_id: Option<u32>,
    /// The shader, where RADV knew it.
    pub shader: Option<RadvShader<'a>>,
}

/// The input is not a hang report of RADV.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a hang report of RADV: none of its files was found")]
pub struct NotRadvReport;

impl<'a> RadvReport<'a> {
    /// Reads the files of a folder. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotRadvReport`] if no file has the name and the contents of a file of a hang report.
    pub fn read(members: &[ReportMember<'a>]) -> Result<RadvReport<'a>, NotRadvReport> {
        read::read(members)
    }

    /// Reads a report that is one text: what `VK_EXT_device_fault` hands out, or what RADV of old wrote to standard
    /// error.
    ///
    /// # Errors
    ///
    /// [`NotRadvReport`] if the text has no heading of a report and nothing in it reads as one.
    pub fn read_text(text: &'a [u8]) -> Result<RadvReport<'a>, NotRadvReport> {
        read::read_text(text, false)
    }

    /// The same of a text whose start says that it is a report: one that breaks off after that is a report, too.
    ///
    /// # Errors
    /// None: the text is known to be a report.
    pub(crate) fn read_known_text(text: &'a [u8]) -> Result<RadvReport<'a>, NotRadvReport> {
        read::read_text(text, true)
    }

    /// Whether there is nothing in it that explains anything.
    pub fn says_nothing(&self) -> bool {
        let umr = [&self.umr_waves, &self.umr_ring].into_iter().flatten();
        self.trace.as_ref().is_none_or(|trace| trace.id.is_none() && trace.streams.is_empty())
            && self.pipeline.as_ref().is_none_or(|state| state.shaders.is_empty() && state.ip.is_none())
            && umr.into_iter().all(|umr| umr.waves.is_empty() && umr.rings.is_empty() && !umr.no_waves)
            && self.registers.is_empty()
            && self.bo_ranges.is_empty()
            && self.bo_history.is_empty()
            && self.bindings.is_empty()
            && self.vm_fault.is_none()
            && self.app.is_empty()
            && self.gpu.is_empty()
            && self.kernel.is_empty()
            && self.trap.is_none()
    }

    /// The files that it lacks, with their names. A text that does not say what its parts are lacks none.
    pub fn absent(&self) -> impl Iterator<Item = (AbsentSection, String)> {
        let there = |kind| self.members.iter().any(|member| member.kind == Some(kind) && member.size > 0);
        let one_text = there(MemberKind::Everything);
        let missing = MemberKind::expected().filter(move |(kind, _)| !one_text && !there(*kind));
        missing.map(|(kind, name)| {
            let section = DumpSectionId::Radv(kind);
            (AbsentSection { section, why: SectionAbsence::NothingRecorded }, name)
        })
    }

    /// A line of `app_info.log`.
    pub fn app_entry(&self, name: &str) -> Option<&str> {
        named(&self.app, name)
    }

    /// A line of `gpu_info.log`.
    pub fn gpu_entry(&self, name: &str) -> Option<&str> {
        named(&self.gpu, name)
    }

    /// The version of Mesa, which moved from one file to the other.
    pub fn mesa_version(&self) -> Option<&str> {
        let entries = [self.gpu_entry("Mesa version"), self.app_entry("Mesa version")];
        entries.into_iter().flatten().find(|version| !version.is_empty())
    }

    /// Names of the GPU, by which a chip may be found.
    pub fn gpu_names(&self) -> impl Iterator<Item = &str> {
        let names = self.gpu.iter().filter(|entry| ["Device name", "name"].contains(&entry.name.trim()));
        names.map(|entry| entry.value.as_ref())
    }

    /// What Mesa calls the generation.
    pub fn gfx_level(&self) -> Option<RadvGfxLevel> {
        let is_level = |entry: &&NamedValue<'_>| ["gfx_level", "chip_class"].contains(&entry.name.trim());
        let level = self.gpu.iter().find(is_level)?.value.trim();
        Some(match level.split_once('.') {
            Some((major, minor)) => RadvGfxLevel::Version(major.parse().ok()?, minor.parse().ok()?),
            None => RadvGfxLevel::Number(level.parse().ok()?),
        })
    }

    /// Whether an option of RADV_DEBUG was set; options that the report does not list are taken as not set.
    pub fn has_debug_option(&self, option: &str) -> bool {
        let options = self.app.iter().find(|entry| entry.name.contains("debug options"));
        options.is_some_and(|entry| entry.value.contains(option))
    }

    /// Waves, as `umr_waves.log` has them.
    pub fn waves(&self) -> &[UmrWave<'a>] {
        self.umr_waves.as_ref().map_or(&[], |umr| &umr.waves)
    }
}
