//! Captured memory: blocks of a dump, and the address spaces they make.
//!
//! Never: memory that a dump does not hold.

use super::{Data, Engine, EngineId};
use std::borrow::Cow;
use unwedge_base::{Buffer, Diagnostic, Memory, Span};

/// Where an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// The global table, one per device: rings, contexts, status pages.
    Ggtt,
    /// The address space of the context that ran: batches and what they use.
    Ppgtt,
    /// The dump does not say, or the block has no address.
    Unknown,
}

/// What a block of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockKind {
    /// The ring.
    Ring,
    /// The batch buffer that was being executed.
    Batch,
    /// The image of the logical context: the status page of the process and the register state behind it.
    HwContext,
    /// The status page, global or of the process.
    StatusPage,
    /// The indirect context and per-context workaround batches.
    WaContext,
    /// The scratch batch of old workarounds.
    WaBatch,
    /// A buffer that the application asked to have captured.
    User,
    /// The default context image of the engine.
    NullContext,
    /// The semaphore page of old kernels.
    Semaphores,
    /// The log of the GuC.
    GucLog,
    /// Command transport buffers between the driver and the GuC.
    GucCtb,
    /// A buffer of the address space: what xe dumps below `VM state`.
    Vm,
    /// A name that is not known.
    Other,
}

/// A block of captured memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Block<'a> {
    /// The engine it belongs to, as written; empty for a block of the device.
    pub owner: Cow<'a, str>,
    /// What it is.
    pub kind: BlockKind,
    /// How the dump calls it: `ringbuffer`, `HWCTX`.
    pub name: Cow<'a, str>,
    /// GPU address of the first byte.
    pub address: Option<u64>,
    /// The address space that the address counts in.
    pub space: Space,
    /// Bytes that the dump claims it has.
    pub length: Option<u64>,
    /// Why the kernel could not read it: a negative error number.
    pub error: Option<i64>,
    /// Its contents.
    pub data: Option<Data<'a>>,
    /// Where it stands, heading included.
    pub span: Span,
}

impl Block<'_> {
    /// The engine it belongs to.
    pub fn engine(&self) -> Option<EngineId> {
        EngineId::parse(&self.owner)
    }

    /// Its contents, up to `limit` bytes; `None` when the dump holds none.
    pub fn dwords(&self, limit: usize) -> Option<Vec<u32>> {
        Some(self.data.as_ref()?.decode(limit).dwords)
    }
}

/// Memory of one address space, unpacked.
#[derive(Clone, Debug, Default)]
pub struct Image {
    /// What is known of it.
    pub memory: Memory,
    /// What could not be unpacked, or not as a whole.
    pub diagnostics: Vec<Diagnostic>,
}

impl Image {
    /// The memory of the device's table.
    pub(crate) fn ggtt(blocks: &[Block<'_>], limit: usize) -> Image {
        Image::of(blocks.iter().filter(|b| b.space == Space::Ggtt), limit)
    }

    /// The memory of the context that ran on an engine; blocks without an owner belong to all.
    pub(crate) fn ppgtt(blocks: &[Block<'_>], engine: &Engine<'_>, limit: usize) -> Image {
        let mine = |b: &&Block<'_>| {
            b.owner.is_empty() || b.owner == engine.name || b.engine().is_some() && b.engine() == engine.id()
        };
        Image::of(blocks.iter().filter(|b| b.space == Space::Ppgtt).filter(mine), limit)
    }

    /// Unpacks blocks until `limit` bytes are reached over all of them.
    fn of<'b, 'a: 'b>(blocks: impl Iterator<Item = &'b Block<'a>>, limit: usize) -> Image {
        let mut left = limit;
        let mut diagnostics = Vec::new();
        let mut buffers = Vec::new();
        for block in blocks {
            let Some(iova) = block.address else { continue };
            let contents = block.data.as_ref().map(|data| data.decode(left));
            if let Some(decoded) = &contents {
                left = left.saturating_sub(decoded.dwords.len().saturating_mul(4));
                diagnostics.extend(decoded.diagnostic(&block.name, block.span));
            }
            let contents = contents.map(|d| d.dwords);
            // What is claimed beyond the contents is not known to be zero.
            let held = contents.as_ref().map(|c| c.len() as u64 * 4);
            let size = held.or(block.length).unwrap_or(0);
            buffers.push(Buffer { iova, size, contents, name: block.name.clone().into_owned() });
        }
        Image { memory: buffers.into_iter().collect(), diagnostics }
    }
}
