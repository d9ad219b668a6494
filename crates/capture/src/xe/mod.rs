//! xe devcoredumps: `/sys/class/devcoredump/devcd*/data` of the xe driver, as kernels from 6.8 on write them.
//!
//! Every line is kept: [`XeDevcore::write`] gives the bytes that were read, [`XeDevcore::edits`] changes values in them.
//!
//! # Folklore
//! - Up to 6.11 the queue stands below `GuC CT`, without a heading of its own: queues are known by `GuC ID:`.
//! - `Log data` and `CTB data` (6.13) became `[LOG].data` and `[CTB].data` (6.14). In 6.13 their ascii85 is broken into
//!   lines of some 800 characters, and a chunk of the log may start on a line of its own.
//! - The name of a queue is its class and its GuC ID: `rcs8` is no engine.
//! - `RING_START` is printed with 8 or 16 digits; `RING_START_UDW` comes beside it in between.
//! - Registers captured by the GuC (6.13 on) stand behind `Capture_source: GuC`.
//! - `[0].error: -19` in the VM state is about the whole: nothing was captured.

mod queue;
mod read;

pub use queue::XeHungJob;

use crate::absence::SectionAbsence;
use crate::intel::text::{IntelLines, number};
use crate::intel::{
    DumpEdits, DumpEngine, IntelRecord, IntelSectionInfo, KeyValue, MemoryBlock, MemoryImage,
};
use unwedge_base::{Diagnostic, Span};
use unwedge_hw::ChipOverride;

/// A devcoredump of xe. Nothing is filled in.
#[derive(Clone, Debug, Default)]
pub struct XeDevcore<'a> {
    text: &'a [u8],
    /// What is said of the device and the hang: `Reason`, `kernel`, `Process`, `PCI ID` …
    pub fields: Vec<KeyValue<'a>>,
    /// The GTs of the device.
    pub gts: Vec<XeGt<'a>>,
    /// The GT that the dump is about.
    pub gt: Option<u32>,
    /// What is said of the GuC: its log and its command transport.
    pub guc: Vec<KeyValue<'a>>,
    /// The queues that hang.
    pub queues: Vec<XeQueue<'a>>,
    /// Where the batch buffers of the job start, one per context of its queue.
    pub batches: Vec<u64>,
    /// Engines that the queue may run on.
    pub engines: Vec<DumpEngine<'a>>,
    /// Captured memory in the order of the dump.
    pub blocks: Vec<MemoryBlock<'a>>,
    /// What is said of the address space as a whole.
    pub vm: Vec<KeyValue<'a>>,
    /// The stretches of the text.
    pub sections: Vec<IntelSectionInfo<'a>>,
    /// What was malformed or lost.
    pub diagnostics: Vec<Diagnostic>,
    /// The GPU that it is taken to be of, whatever it says itself. No reader sets it.
    pub taken_as: Option<ChipOverride>,
}

/// A GT of the device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XeGt<'a> {
    /// `GT id`
    pub id: u32,
    /// `Tile`, `Type`, `IP ver`, `CS reference clock`.
    pub fields: Vec<KeyValue<'a>>,
}

/// A queue, and the contexts it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XeQueue<'a> {
    /// `GuC ID`
    pub guc_id: Option<u32>,
    /// `Name`, `Class`, `Timeout`, `Schedule State`, `Flags` …
    pub fields: Vec<KeyValue<'a>>,
    /// One for each of its width.
    pub contexts: Vec<XeContext<'a>>,
    /// What is said of each job that was not done: `seqno=5, fence=0, finished=0`.
    pub jobs: Vec<KeyValue<'a>>,
    /// Where it stands.
    pub span: Span,
}

/// A logical ring context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XeContext<'a> {
    /// The low half of its descriptor: where its image starts in the device's table.
    pub descriptor: Option<u64>,
    /// `LRC Head`, `LRC Tail`, `Seqno`, `Timestamp` …
    pub fields: Vec<KeyValue<'a>>,
}

/// The input is not a devcoredump of xe.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a xe devcoredump: none of its headings was found")]
pub struct NotXeDevcore;

/// Bytes of a file that are looked at to tell its kind.
const SNIFFED: usize = 16 << 10;

/// Whether the start of a file looks like a devcoredump of xe: it has one of its headings.
pub fn sniff(start: &[u8]) -> bool {
    let headings = ["Xe Device Coredump", "GuC Log", "GuC CT", "Contexts", "HW Engines", "VM state"];
    IntelLines::new(start.get(..SNIFFED).unwrap_or(start)).any(|line| {
        let name = line.text.strip_prefix(b"**** ").and_then(|text| text.strip_suffix(b" ****"));
        name.is_some_and(|name| headings.iter().any(|heading| heading.as_bytes() == name))
    })
}

impl<'a> XeDevcore<'a> {
    /// Reads a dump. Anything malformed is skipped and reported in `diagnostics`.
    ///
    /// # Errors
    ///
    /// [`NotXeDevcore`] if the text has none of the headings of a xe devcoredump.
    pub fn read(text: &'a [u8]) -> Result<XeDevcore<'a>, NotXeDevcore> {
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

    /// The value of a field of the device, as written.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// The PCI id of the device.
    pub fn pci_id(&self) -> Option<u16> {
        u16::try_from(number(self.field("PCI ID")?.as_bytes())?).ok()
    }

    /// The PCI revision of the device.
    pub fn pci_revision(&self) -> Option<u8> {
        u8::try_from(number(self.field("PCI revision")?.as_bytes())?).ok()
    }

    /// Who was on the GPU: name and, from 6.13 on, process id. `no process` is nobody.
    pub fn process(&self) -> Option<(&str, Option<i64>)> {
        let process = self.field("Process")?;
        let pid = |text: &str| text.strip_suffix(']')?.parse().ok();
        match process.rsplit_once(" [").map(|(name, text)| (name, pid(text))) {
            Some((name, Some(pid))) => Some((name, Some(pid))),
            _ => Some((process, None)),
        }
    }

    /// Whether the text ends before its end: within a line, before any engine, or after the heading of memory.
    pub fn is_cut(&self) -> bool {
        let headless = self.blocks.last().is_some_and(|block| block.data.is_none() && block.error.is_none());
        !self.text.ends_with(b"\n") || self.engines.is_empty() || headless
    }

    /// Why something is not recorded.
    pub fn absence(&self, record: IntelRecord) -> SectionAbsence {
        let passed = match record {
            // Contexts come before engines, and memory comes last.
            IntelRecord::ContextImage => !self.engines.is_empty(),
            IntelRecord::PageFault | IntelRecord::Commands => false,
        };
        record.facts().xe.absence(self.field("kernel"), self.is_cut() && !passed)
    }

    /// The GT that the dump is about.
    pub fn this_gt(&self) -> Option<&XeGt<'a>> {
        self.gts.iter().find(|gt| Some(gt.id) == self.gt)
    }

    /// Memory in the device's table: contexts and their status pages. Unpacks up to `limit` bytes.
    pub fn ggtt(&self, limit: usize) -> MemoryImage {
        MemoryImage::ggtt(&self.blocks, limit)
    }

    /// Memory of the address space of the queue that hangs. Unpacks up to `limit` bytes.
    pub fn ppgtt(&self, limit: usize) -> MemoryImage {
        MemoryImage::ppgtt(&self.blocks, &DumpEngine::default(), limit)
    }
}

impl XeGt<'_> {
    /// The value of a field.
    pub fn field(&self, key: &str) -> Option<&str> {
        self.fields.iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// The version of its hardware: architecture, release, revision.
    pub fn ip_version(&self) -> Option<(u32, u32, u32)> {
        let mut parts = self.field("IP ver")?.split('.').map(|part| part.parse().ok());
        Some((parts.next()??, parts.next()??, parts.next().flatten().unwrap_or(0)))
    }
}
