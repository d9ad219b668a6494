//! A dump as a whole.

use std::borrow::Cow;
use unwedge_base::{Buffer, ChipId, Diagnostic, Memory, Span};

/// A msm devcoredump. Absent sections are `None` or empty; nothing is filled in.
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
    /// `rbbm-status:`
    pub rbbm_status: Option<u32>,
    /// `fault-info:`
    pub fault: Option<Fault<'a>>,
    /// `ringbuffer:`
    pub rings: Vec<Ring<'a>>,
    /// `bos:` (`bo:` in the format document)
    pub bos: Vec<Bo<'a>>,
    /// `vm-log:`, one entry per map or unmap, as written.
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
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Where it stands in the dump.
    pub span: Span,
}

/// Ascii85 contents of a section entry. Decoding is put off until somebody asks.
#[derive(Clone, Debug, Default)]
pub struct Blob<'a> {
    /// The encoded text, leading blanks removed.
    pub encoded: Cow<'a, [u8]>,
    /// Where it stands in the dump.
    pub span: Span,
}

impl Blob<'_> {
    /// The dwords. Characters outside the alphabet end the text; see [`crate::ascii85`].
    pub fn decode(&self) -> Vec<u32> {
        unimplemented!()
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
    /// Where it stands in the dump.
    pub span: Span,
}

impl Indexed<'_> {
    /// The name newer kernels use, whatever this one wrote: `CP_MEMPOOOL` is CP_MEMPOOL, `CP_SEQ_STAT` is
    /// CP_SQE_STAT, `_DATA` and `_ADDR` at the end are dropped.
    pub fn canonical_name(&self) -> Cow<'_, str> {
        unimplemented!()
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
    /// Where it stands in the dump.
    pub span: Span,
}

/// The input is not a msm devcoredump.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a msm devcoredump: none of its section headings was found")]
pub struct NotDevcore;

impl<'a> Devcore<'a> {
    /// Reads a dump. Anything malformed is skipped and reported in `diagnostics`.
    pub fn read(_text: &'a [u8]) -> Result<Devcore<'a>, NotDevcore> {
        unimplemented!()
    }

    /// Writes the dump. What was read from a kernel's dump is written as that kernel wrote it.
    pub fn write(&self, _out: &mut Vec<u8>) {
        unimplemented!()
    }

    /// The value of a register of `registers:`.
    pub fn register(&self, reg: u32) -> Option<u32> {
        self.registers.iter().find(|r| r.reg == reg).map(|r| r.value)
    }

    /// Rings and buffers as memory.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::default();
        for bo in &self.bos {
            memory.add(Buffer {
                iova: bo.iova,
                size: bo.size,
                contents: bo.data.as_ref().map(Blob::decode),
                name: bo.name.as_deref().unwrap_or_default().to_owned(),
            });
        }
        for ring in &self.rings {
            memory.add(Buffer {
                iova: ring.iova,
                size: u64::from(ring.size.unwrap_or(0)),
                contents: ring.data.as_ref().map(Blob::decode),
                name: format!("ring {}", ring.id),
            });
        }
        memory
    }
}
