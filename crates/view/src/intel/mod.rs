//! Error states of i915 and devcoredumps of xe, as `info` and `decode` show them.
//!
//! Never: reads a dump from its bytes.

pub(crate) mod commands;
pub mod info;
pub mod json;
pub(crate) mod references;
pub(crate) mod streams;
pub mod text;
pub mod values;

use serde::Serialize;
use unwedge_base::Diagnostic;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{
    AddressSpace, DumpEngine, IntelSectionInfo, KeyValue, MemoryBlock, MemoryBlockKind, UnpackedBlock,
    engine_id,
};
use unwedge_capture::{Dump, xe};
use unwedge_postmortem::intel::IntelDevice;

/// Bytes of memory that a block is unpacked to at most: so many, and so many more for each byte of its text.
const UNPACKED: u64 = 64 << 20;
/// See [`UNPACKED`].
const UNPACKED_PER_BYTE: u64 = 16;

/// Of what may be held at most, the share that memory unpacked for streams has.
const MEMORY_SHARE: u64 = 8;

/// A dump of either driver.
#[derive(Clone, Copy)]
pub enum IntelDump<'d, 'a> {
    /// An error state.
    I915(&'d ErrorState<'a>),
    /// A devcoredump.
    Xe(&'d xe::XeDevcore<'a>),
}

impl<'d, 'a> IntelDump<'d, 'a> {
    /// A dump of a driver for Intel GPUs.
    pub fn of(dump: &'d Dump<'a>) -> Option<IntelDump<'d, 'a>> {
        match dump {
            Dump::I915(state) => Some(IntelDump::I915(state)),
            Dump::Xe(dump) => Some(IntelDump::Xe(dump)),
            Dump::Msm(_) | Dump::Amdgpu(_) | Dump::Radv(_) | Dump::Umr(_) => None,
        }
    }

    /// The kind of file it is, for JSON.
    fn kind_id(&self) -> &'static str {
        match self {
            IntelDump::I915(_) => "i915-error-state",
            IntelDump::Xe(_) => "xe-devcoredump",
        }
    }

    /// Bytes of its text.
    pub fn bytes(&self) -> usize {
        match self {
            IntelDump::I915(state) => state.text().len(),
            IntelDump::Xe(dump) => dump.text().len(),
        }
    }

    /// What is said of the device and the hang.
    pub fn fields(self) -> &'d [KeyValue<'a>] {
        match self {
            IntelDump::I915(state) => &state.fields,
            IntelDump::Xe(dump) => &dump.fields,
        }
    }

    /// The value of one of them.
    pub fn field(self, key: &str) -> Option<&'d str> {
        self.fields().iter().find(|f| f.key == key).map(|f| f.value.as_ref())
    }

    /// Engines in the order of the dump.
    pub fn engines(self) -> &'d [DumpEngine<'a>] {
        match self {
            IntelDump::I915(state) => &state.engines,
            IntelDump::Xe(dump) => &dump.engines,
        }
    }

    /// Captured memory in the order of the dump.
    pub fn blocks(self) -> &'d [MemoryBlock<'a>] {
        match self {
            IntelDump::I915(state) => &state.blocks,
            IntelDump::Xe(dump) => &dump.blocks,
        }
    }

    /// The stretches of the text.
    pub fn sections(self) -> &'d [IntelSectionInfo<'a>] {
        match self {
            IntelDump::I915(state) => &state.sections,
            IntelDump::Xe(dump) => &dump.sections,
        }
    }

    /// What was malformed or lost.
    pub fn diagnostics(self) -> &'d [Diagnostic] {
        match self {
            IntelDump::I915(state) => &state.diagnostics,
            IntelDump::Xe(dump) => &dump.diagnostics,
        }
    }

    /// Which device it is of.
    pub fn graphics(self) -> IntelDevice {
        match self {
            IntelDump::I915(state) => IntelDevice::of_i915(state),
            IntelDump::Xe(dump) => IntelDevice::of_xe(dump),
        }
    }

    /// The PCI id of the device, and its revision.
    fn pci(self) -> (Option<u16>, Option<u8>) {
        match self {
            IntelDump::I915(state) => (state.pci_id(), state.pci_revision()),
            IntelDump::Xe(dump) => (dump.pci_id(), dump.pci_revision()),
        }
    }

    /// `TIGERLAKE, PCI 8086:9a49, revision 0x01`; what of it is said, or follows from the id.
    fn device(self) -> Option<String> {
        let (id, revision) = self.pci();
        let version = match self {
            IntelDump::I915(state) => state.field("Platform").map(str::to_owned).or_else(|| {
                let platform = state.platform()?;
                Some(format!("{}, graphics {}", platform.name(), platform.version()))
            }),
            IntelDump::Xe(_) => self.graphics().version.map(|version| format!("graphics {version}")),
        };
        let id = id.map(|id| format!("PCI 8086:{id:04x}"));
        let revision = revision.map(|r| format!("revision 0x{r:02x}"));
        let parts: Vec<_> = [version, id, revision].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }

    /// Who is said to be guilty, or to have been on the GPU.
    fn process(self) -> Option<(&'d str, Option<i64>)> {
        match self {
            IntelDump::I915(state) => {
                let hang = state.field("GPU HANG").and(state.hang());
                let named = hang.and_then(|hang| Some((hang.process?, hang.pid)));
                named.or_else(|| state.processes().next().map(|p| (p.name, Some(p.pid))))
            }
            IntelDump::Xe(dump) => dump.process(),
        }
    }

    /// When the dump was taken, as written.
    fn time(self) -> Option<&'d str> {
        self.field("Time").or_else(|| self.field("Snapshot time"))
    }

    /// The kernel's release.
    fn kernel(self) -> Option<&'d str> {
        self.field("Kernel").or_else(|| self.field("kernel"))
    }

    /// What the kernel says of the hang.
    fn reason(self) -> Option<&'d str> {
        self.field("GPU HANG").or_else(|| self.field("Reason"))
    }

    /// Whether an engine is said to hang.
    fn hung(self, engine: &DumpEngine<'_>) -> Option<bool> {
        match self {
            IntelDump::I915(state) => state.hung(engine),
            IntelDump::Xe(_) => None,
        }
    }
}

/// What a dump says of the hang in its first lines, as JSON.
#[derive(Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct Origin<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    process: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
}

impl<'a> Origin<'a> {
    fn of(dump: IntelDump<'a, '_>) -> Origin<'a> {
        let process = dump.process();
        Origin {
            kernel: dump.kernel(),
            time: dump.time(),
            process: process.map(|p| p.0),
            pid: process.and_then(|p| p.1),
            reason: dump.reason(),
        }
    }
}

/// How an engine is called: its number among those of its class, or as written.
pub(crate) fn engine_name(name: &str) -> String {
    engine_id(name).map_or_else(|| name.to_owned(), |id| id.to_string())
}

/// What is unpacked of the blocks of a dump, one after the other.
struct Unpacking {
    max_size: usize,
    /// Bytes that all blocks together may still be unpacked to.
    left: usize,
}

impl Unpacking {
    fn of(dump: IntelDump<'_, '_>, max_size: u64) -> Unpacking {
        let all = 2 * UNPACKED + 4 * UNPACKED_PER_BYTE.saturating_mul(dump.bytes() as u64);
        let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
        Unpacking { max_size: size(max_size), left: size(all) }
    }

    /// The contents of a block; `None` when the dump holds none.
    fn contents(&mut self, block: &MemoryBlock<'_>) -> Option<UnpackedBlock> {
        let data = block.data.as_ref()?;
        let most = UNPACKED.saturating_add(UNPACKED_PER_BYTE.saturating_mul(data.text.len() as u64));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let decoded = data.decode(most.min(self.max_size).min(self.left));
        self.left = self.left.saturating_sub(4 * decoded.dwords.len());
        Some(decoded)
    }
}

/// To how many bytes the memory that streams lead to is unpacked, of a dump of so many.
pub fn memory_limit(bytes: usize, max_size: u64) -> usize {
    let most = UNPACKED.saturating_add(UNPACKED_PER_BYTE.saturating_mul(bytes as u64) / 2);
    usize::try_from(most.min(max_size / MEMORY_SHARE)).unwrap_or(usize::MAX)
}

/// For JSON and people: stable, lower case.
fn kind_name(kind: MemoryBlockKind) -> &'static str {
    match kind {
        MemoryBlockKind::Ring => "ring",
        MemoryBlockKind::Batch => "batch",
        MemoryBlockKind::HwContext => "context",
        MemoryBlockKind::StatusPage => "status-page",
        MemoryBlockKind::WaContext => "wa-context",
        MemoryBlockKind::WaBatch => "wa-batch",
        MemoryBlockKind::User => "user",
        MemoryBlockKind::NullContext => "default-context",
        MemoryBlockKind::Semaphores => "semaphores",
        MemoryBlockKind::GucLog => "guc-log",
        MemoryBlockKind::GucCtb => "guc-ctb",
        MemoryBlockKind::Vm => "buffer",
        MemoryBlockKind::Other => "other",
    }
}

fn space_name(space: AddressSpace) -> Option<&'static str> {
    match space {
        AddressSpace::Ggtt | AddressSpace::Shared => Some("ggtt"),
        AddressSpace::Ppgtt => Some("ppgtt"),
        AddressSpace::Unknown => None,
    }
}
