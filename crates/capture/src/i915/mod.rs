//! i915 error states: `/sys/class/drm/card*/error` and `i915_error_state` of debugfs, as kernels from 2.6.31 on write them.
//!
//! Every line is kept: [`ErrorState::write`] gives the bytes that were read, [`ErrorState::edits`] changes values in
//! them. What is asked for seldom (requests, the context, the hang message) is read from its field when it is.
//!
//! # Folklore
//! - Engines were `render`, `bsd`, `blt`, `vebox` in registers and `render ring` … in front of memory before 4.13,
//!   `rcs0` since; one that user space does not see may have a mark in its name: `rcs'0`.
//! - Memory was rows of `offset :  dword` before 4.10, and the status page, contexts and semaphores rows of four; since
//!   then a line of ascii85 behind `:` (a zlib stream) or `~` (none: kernels without compressed error states).
//! - Batches were called `gtt_offset` and named who submitted them; since 5.6 they are called `batch`.
//! - On gen12 with GuC submission (5.19 on) registers are those the GuC captured: the engine's heading then is
//!   `global --- GuC Error Capture on rcs0 command stream:`, and 64-bit registers come as `_LDW` and `_UDW`. What is global
//!   stands with each engine then, under other names: `GEN12_FAULT_TLB_DATA0` and `…1` for `FAULT_TLB_DATA`; those of
//!   `GEN8_` beside them are of offsets that gen12 gave up.
//! - Before 4.9 more INSTDONE registers of the render engine stood behind the fences, as `INSTDONE_0` to `INSTDONE_3`, with
//!   the indentation that registers of engines have.
//! - Up to 2.6.36 there was one engine, without a heading: its registers follow `EIR`, with PGTBL_ER the first of them, and its
//!   memory has no owner (`--- gtt_offset = 0x…`). 2.6.37 to 3.1 wrote `Render command stream:` and its like, 3.2 to 3.7 a
//!   blank in front of the name. Fences were behind the registers of the last engine.
//! - HEAD and TAIL are there since 3.2, CTL since 3.10, START since 4.1.
//! - The driver that Intel ships for data centre GPUs prints which threads of EUs wait for a debugger (`TD_ATT before (1): …`).
//!   No mainline kernel does.
//! - The second number of `ecode` was the number of one engine, then a mask of engines, and is one of classes.

mod attention;
mod buffers;
mod message;
mod read;

pub use attention::{EuAttention, EuThread};
pub use buffers::{BufferList, ListedBuffer};
pub use message::{ActiveContext, ActiveProcess, HangMessage, RequestLine};

use crate::absence::{SectionAbsence, kernel_version};
use crate::intel::text::{IntelLines, hex_0x, number, split_once};
use crate::intel::{
    AddressSpace, DumpEdits, DumpEngine, IntelRecord, IntelRegister, IntelSectionInfo, KeyValue, MemoryBlock,
    MemoryBlockKind, MemoryImage, RegisterIndex,
};
use std::borrow::Cow;
use std::ops::Range;
use unwedge_base::Diagnostic;
use unwedge_hw::intel::platform::{Platform, Version};
use unwedge_hw::{ChipOverride, OverrideGpu};

/// An i915 error state. Nothing is filled in.
#[derive(Clone, Debug, Default)]
pub struct ErrorState<'a> {
    text: &'a [u8],
    /// What is said of the device and the hang: `Kernel`, `PCI ID`, `Platform`, `Active process (on ring rcs0)` …, and
    /// everything of that kind behind the engines: firmware, device info, parameters.
    pub fields: Vec<KeyValue<'a>>,
    /// Registers of the GT and of the device: EIR, FORCEWAKE, FAULT_TLB_DATA …
    pub registers: Vec<IntelRegister<'a>>,
    /// Fence registers, by number.
    pub fences: Vec<(u16, u64)>,
    /// Engines in the order of the dump.
    pub engines: Vec<DumpEngine<'a>>,
    /// Buffers that were bound, without their contents (before 5.6).
    pub buffers: Vec<ListedBuffer<'a>>,
    /// The lists that they are of, in the order of the dump.
    pub buffer_lists: Vec<BufferList<'a>>,
    /// Registers of the GuC, by offset (6.17 on).
    pub guc_registers: Vec<(u32, u32)>,
    /// Requests that were not done, of all engines (before 5.6).
    pub requests: Vec<(Cow<'a, str>, RequestLine)>,
    /// Captured memory in the order of the dump.
    pub blocks: Vec<MemoryBlock<'a>>,
    /// The stretches of the text.
    pub sections: Vec<IntelSectionInfo<'a>>,
    /// What was malformed or lost.
    pub diagnostics: Vec<Diagnostic>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
}

/// The input is not an i915 error state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an i915 error state: neither an engine nor captured memory was found")]
pub struct NotErrorState;

/// The start of the first line.
const HANG: &[u8] = b"GPU HANG: ecode";

/// From this kernel on contexts of gen7 may have tables of their own.
const OWN_TABLES: (u32, u32) = (4, 20);

/// Bytes of a file that are looked at to tell its kind.
const SNIFFED: usize = 16 << 10;

/// Whether the start of a file looks like an i915 error state: it says what hangs, or has the heading of an engine or
/// of captured memory.
pub fn sniff(start: &[u8]) -> bool {
    let mut device = false;
    IntelLines::new(start.get(..SNIFFED).unwrap_or(start)).any(|line| {
        let text = line.text;
        device |= text.starts_with(b"PCI ID: 0x")
            || text.starts_with(b"Reset count: ")
            || text.starts_with(b"Time: ") && text.ends_with(b" us");
        let memory =
            || split_once(text, b"--- ").is_some_and(|(_, name)| split_once(name, b" = 0x").is_some());
        text.starts_with(HANG)
            || text.ends_with(b" command stream:")
            || device && text.starts_with(b"EIR: 0x")
            || !matches!(text, [b':' | b'~', ..]) && memory()
    })
}

impl<'a> ErrorState<'a> {
    /// Reads an error state. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotErrorState`] if the text has neither a `GPU HANG` line nor an engine nor a block of memory.
    pub fn read(text: &'a [u8]) -> Result<ErrorState<'a>, NotErrorState> {
        read::read(text)
    }

    /// The text it was read from.
    pub fn text(&self) -> &'a [u8] {
        self.text
    }

    /// Appends the text it was read from.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.text);
    }

    /// Changes to the text.
    pub fn edits(&self) -> DumpEdits<'a> {
        DumpEdits::new(self.text)
    }

    /// The value of a field, as written.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// The value of a register of the GT.
    pub fn register(&self, name: &str) -> Option<u64> {
        self.registers.iter().find(|r| r.name == name).map(|r| r.value)
    }

    /// The value of a register of the GT that there are several of: `GTIER[0]`, `SFC_DONE[1]`.
    pub fn indexed(&self, name: &str, index: u16) -> Option<u64> {
        self.registers
            .iter()
            .find(|r| r.name == name && r.index == RegisterIndex::One(index))
            .map(|r| r.value)
    }

    /// The PCI id of the device.
    pub fn pci_id(&self) -> Option<u16> {
        u16::try_from(number(self.field("PCI ID")?.as_bytes())?).ok()
    }

    /// The PCI revision of the device.
    pub fn pci_revision(&self) -> Option<u8> {
        u8::try_from(number(self.field("PCI Revision")?.as_bytes())?).ok()
    }

    /// The platform: by the PCI id, or by its name.
    pub fn platform(&self) -> Option<&'static Platform> {
        if let Some(OverrideGpu::Intel { platform, .. }) = self.taken_as.as_ref().map(|chip| &chip.gpu) {
            return *platform;
        }
        let by_name = || {
            let name = self.field("Platform").or_else(|| self.field("platform"))?;
            Platform::by_name(&name.trim().replace('_', "-"))
        };
        self.pci_id().and_then(Platform::by_pci_id).or_else(by_name)
    }

    /// The version of its graphics: that of the platform, or what the dump says. `None` before gen4, of which nothing is known.
    pub fn version(&self) -> Option<Version> {
        if let Some(OverrideGpu::Intel { version, .. }) = self.taken_as.as_ref().map(|chip| &chip.gpu) {
            return Some(*version);
        }
        let written = || {
            let text = self.field("graphics version").or_else(|| self.field("gen"))?.trim();
            text.parse().ok()
        };
        let by_code = || Some(Version::new(u8::try_from(self.hang()?.generation?).ok()?, 0));
        let version = self.platform().map(Platform::version).or_else(written).or_else(by_code);
        version.filter(|version| version.major >= 4)
    }

    /// Says of each block in which address space it is.
    pub(crate) fn assign_spaces(&mut self) {
        let kernel = self.field("Kernel").and_then(kernel_version);
        let shared = self.version().is_some_and(|version| {
            version.major < 7 || version.major == 7 && kernel.is_none_or(|kernel| kernel < OWN_TABLES)
        });
        for block in &mut self.blocks {
            block.space = match block.kind {
                MemoryBlockKind::Other => AddressSpace::Unknown,
                _ if shared => AddressSpace::Shared,
                MemoryBlockKind::Batch | MemoryBlockKind::User => AddressSpace::Ppgtt,
                _ => AddressSpace::Ggtt,
            };
        }
    }

    /// Which threads of EUs waited for a debugger, one entry for each time the driver looked.
    pub fn attentions(&self) -> impl Iterator<Item = EuAttention> {
        self.fields.iter().filter_map(|f| EuAttention::parse(&f.key, &f.value))
    }

    /// What the kernel says of the hang in its first line.
    pub fn hang(&self) -> Option<HangMessage<'_>> {
        HangMessage::parse(self.field("GPU HANG")?)
    }

    /// The processes whose work was on the engines.
    pub fn processes(&self) -> impl Iterator<Item = ActiveProcess<'_>> {
        self.fields.iter().filter_map(|f| ActiveProcess::parse(&f.key, &f.value))
    }

    /// The page fault that registers of the device or, where the GuC captured them, of an engine recorded: FAULT_TLB_DATA0
    /// and 1.
    pub fn fault_tlb_data(registers: &[IntelRegister<'_>]) -> Option<(u32, u32)> {
        let value = |name: &str| registers.iter().find(|r| r.name == name).map(|r| r.value as u32);
        let both =
            registers.iter().find(|r| r.name == "FAULT_TLB_DATA").and_then(ErrorState::fault_tlb_data_of);
        // Where the GuC captures both, those of gen12 are the ones that there are.
        let captured = || value("GEN12_FAULT_TLB_DATA0").zip(value("GEN12_FAULT_TLB_DATA1"));
        let older = || value("GEN8_FAULT_TLB_DATA0").zip(value("GEN8_FAULT_TLB_DATA1"));
        both.or_else(captured).or_else(older)
    }

    /// Both halves of FAULT_TLB_DATA: DATA1 is its value, DATA0 follows it.
    pub fn fault_tlb_data_of(register: &IntelRegister<'_>) -> Option<(u32, u32)> {
        let (data0, _) = hex_0x(register.more)?;
        Some((data0 as u32, register.value as u32))
    }

    /// Where the batch buffer of an engine starts and ends.
    pub fn batch(&self, engine: &DumpEngine<'_>) -> Option<Range<u64>> {
        message::range(engine.field("batch")?)
    }

    /// Whether the kernel holds this engine to be hung; `None` where it does not say.
    pub fn hung(&self, engine: &DumpEngine<'_>) -> Option<bool> {
        match (engine.field("hung"), engine.field("hangcheck action"), engine.field("hangcheck")) {
            (Some(hung), _, _) => Some(hung != "0"),
            (_, Some(action), _) => Some(action == "dead" || action == "hung"),
            (_, _, Some(hangcheck)) => Some(hangcheck.starts_with("hung")),
            _ => None,
        }
    }

    /// The context that was on an engine.
    pub fn context<'e>(&self, engine: &'e DumpEngine<'_>) -> Option<ActiveContext<'e>> {
        ActiveContext::parse(engine.field("Active context")?)
    }

    /// Whether the text ends before its end: within a line, before any engine, or after the heading of memory.
    pub fn is_cut(&self) -> bool {
        let headless = self.blocks.last().is_some_and(|block| block.data.is_none());
        !self.text.ends_with(b"\n") || self.engines.is_empty() || headless
    }

    /// Why something is not recorded of an engine, or of the device.
    pub fn absence(&self, engine: Option<&DumpEngine<'_>>, record: IntelRecord) -> SectionAbsence {
        let passed = match (record, engine) {
            // Kernels write these registers before memory, and those of the device before the engines.
            (IntelRecord::PageFault, None) => !self.engines.is_empty(),
            (IntelRecord::PageFault, Some(_)) => !self.blocks.is_empty(),
            (IntelRecord::ContextImage | IntelRecord::Commands, None) => false,
            (IntelRecord::ContextImage | IntelRecord::Commands, Some(engine)) => self.is_past(engine),
        };
        let release = self.field("Kernel");
        record.facts().i915.absence(release, self.is_cut() && !passed)
    }

    /// Whether the text goes on after the memory of an engine with that of another.
    fn is_past(&self, engine: &DumpEngine<'_>) -> bool {
        let id = engine.id();
        let own = self.blocks.iter().filter(|block| block.engine() == id);
        let end = own.map(|block| block.span.end).fold(engine.span.end, u64::max);
        let other = |block: &MemoryBlock<'_>| block.engine() != id && block.span.start >= end;
        // Memory comes below its engine since 5.6, and before that after all engines.
        let below = self.field("Kernel").and_then(kernel_version).is_some_and(|kernel| kernel >= (5, 6));
        self.blocks.iter().any(other) || below && self.engines.iter().any(|other| other.span.start >= end)
    }

    /// The requests that were handed to an engine: its execlist ports.
    pub fn ports<'e>(&self, engine: &'e DumpEngine<'_>) -> impl Iterator<Item = RequestLine> + 'e {
        engine
            .fields
            .iter()
            .filter(|f| f.key.starts_with("ELSP["))
            .filter_map(|f| RequestLine::parse(&f.value))
    }

    /// Memory in the device's table: rings, contexts, status pages. Unpacks up to `limit` bytes.
    pub fn ggtt(&self, limit: usize) -> MemoryImage {
        MemoryImage::ggtt(&self.blocks, limit)
    }

    /// Memory of the context that was on an engine: its batch and what the application had captured. Unpacks up to
    /// `limit` bytes.
    pub fn ppgtt(&self, engine: &DumpEngine<'_>, limit: usize) -> MemoryImage {
        MemoryImage::ppgtt(&self.blocks, engine, limit)
    }
}
