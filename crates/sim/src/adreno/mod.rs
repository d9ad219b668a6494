//! A virtual Adreno: the machine that executes command streams, and the processors inside it.
//!
//! [`AdrenoMachine`] is a GPU of a6xx or a7xx: an address space, registers, a command processor with its threads,
//! compute, draws and the 2D engine. It executes what the CPU submits to its end, to a fault or to a hang; what it leaves
//! out, a [`Note`] tells. What a flush would make visible always is, unless the address space has caches
//! ([`AddressSpace::enable_caches`]).
//!
//! [`sqe`] is the processor inside the CP that runs its firmware.

mod audit;
mod blit2d;
mod caches;
mod clusters;
mod cp;
mod cpu_thread;
mod dispatch;
mod draw;
mod draw_watch;
mod fiber_trace;
mod groups_state;
pub mod ir3;
mod kernel;
mod machine;
mod replay;
mod space;
pub mod sqe;
mod state;
mod surface;
mod texture;
mod ubwc;
mod watch;

pub use audit::{
    AuditPacket, AuditedCode, CcuChange, RegisterAuditReport, RegisterWrites, UnsetRegister, WaitUse,
};
pub use caches::{ByteRange, CacheAuditReport, CacheEventUse, NearWriter, UnwrittenRead, WorkPosition};
pub use caches::{CacheReport, CacheSizes, CacheUnit, CacheWait, CachedPacket, CcuTag, LostWrite, StaleRead};
pub use cp::{CpStop, StreamFrame, ThreadId};
pub use cpu_thread::{CpuThread, Handshake, SharedCpuThread};
pub use dispatch::DispatchStop;
pub use draw::{LrzFindings, LrzMiss, TargetImage, TargetName, TargetValue};
pub use draw_watch::{
    ColourWrite, DepthStencilWrite, DrawWatch, FragmentEvent, FragmentId, FragmentOutputs, SampleTest,
    WatchedBlit, WatchedResolve, WatchedWork, WindowPixel,
};
pub use fiber_trace::{FiberTrace, FiberWanted};
pub use kernel::{FaultReport, HangDump, HungSubmit};
pub use machine::{AdrenoMachine, Note, RunEnd};
pub use replay::{BufferChange, Loading, Replay, SnapshotChange};
pub use space::{AddressSpace, Client, GpuFault, GpuFaultKind};
pub use state::{CONSTANTS, DescriptorTable, LoadedState, StageState};
pub use watch::{Onward, PacketChanges, PacketOutcome, PacketWatch, WatchedPacket};

/// Something in a stream that the CP cannot execute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{kind} (packet at {iova:#x})")]
pub struct CpError {
    /// Address of the packet.
    pub iova: u64,
    /// What is wrong with it.
    pub kind: CpErrorKind,
}

/// What is wrong with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CpErrorKind {
    /// A dword that is no packet header.
    #[error("opcode error: {raw:#010x} is not a packet header")]
    BadHeader {
        /// The dword.
        raw: u32,
    },
    /// An operation that the generation does not have.
    #[error("opcode error: this GPU has no packet with opcode {opcode:#04x}")]
    Opcode {
        /// Its number.
        opcode: u8,
    },
    /// A packet that is longer than its stream.
    #[error("packet {raw:#010x} is longer than the {left} dwords that its stream has left")]
    CutPacket {
        /// The header.
        raw: u32,
        /// Dwords from the header to the end of the stream.
        left: u64,
    },
    /// A packet with too few dwords for what it does.
    #[error("the packet with opcode {opcode:#04x} has too few dwords")]
    ShortPacket {
        /// Its operation.
        opcode: u8,
    },
    /// A register that the driver protects from streams of processes.
    #[error("CP | protected mode error | {} | addr={reg:#010x} | status={:#010x}", direction(*read), CpErrorKind::protect_status(*reg, *read))]
    Protected {
        /// The register.
        reg: u32,
        /// It was read.
        read: bool,
    },
    /// Streams inside more streams than the CP has levels.
    #[error("buffers are nested too deeply")]
    TooDeep,
    /// CP_SET_DRAW_STATE inside a draw-state group.
    #[error("a draw-state group sets draw states")]
    NestedGroups,
    /// A scratch register beyond the last one.
    #[error("there is no scratch register {index}")]
    NoScratch {
        /// Its number.
        index: u32,
    },
    /// State from a UBO that no packet has loaded.
    #[error("state is loaded from UBO {index}, which is not set")]
    NoUbo {
        /// Its number.
        index: u32,
    },
}

fn direction(read: bool) -> &'static str {
    if read { "READ" } else { "WRITE" }
}

impl CpErrorKind {
    /// CP_PROTECT_STATUS after an access that was refused.
    pub(crate) fn protect_status(reg: u32, read: bool) -> u32 {
        reg & 0x3_ffff | u32::from(read) << 20
    }
}
