//! Captured memory: blocks of a dump, and the address spaces they make.
//!
//! Never: memory that a dump does not hold.

use super::{BlockText, DumpEngine, engine_id};
use std::borrow::Cow;
use std::collections::BTreeMap;
use unwedge_base::{Buffer, Diagnostic, Memory, Span};
use unwedge_hw::intel::platform::Engine as EngineId;

/// Where an address counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AddressSpace {
    /// The global table, one per device: rings, contexts, status pages.
    Ggtt,
    /// The address space of the context that ran: batches and what they use.
    Ppgtt,
    /// The one table of gen4 to gen6, and of gen7 where contexts have none of their own: rings and batches.
    Shared,
    /// The dump does not say, or the block has no address.
    Unknown,
}

/// What a block of memory is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryBlockKind {
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
pub struct MemoryBlock<'a> {
    /// The engine it belongs to, as written; empty for a block of the device.
    pub owner: Cow<'a, str>,
    /// What it is.
    pub kind: MemoryBlockKind,
    /// How the dump calls it: `ringbuffer`, `HWCTX`.
    pub name: Cow<'a, str>,
    /// GPU address of the first byte.
    pub address: Option<u64>,
    /// The address space that the address counts in.
    pub space: AddressSpace,
    /// Bytes that the dump claims it has.
    pub length: Option<u64>,
    /// Why the kernel could not read it: a negative error number.
    pub error: Option<i64>,
    /// Its contents.
    pub data: Option<BlockText<'a>>,
    /// Where it stands, heading included.
    pub span: Span,
}

impl MemoryBlock<'_> {
    /// The engine it belongs to.
    pub fn engine(&self) -> Option<EngineId> {
        engine_id(&self.owner)
    }

    /// It belongs to an engine; without an owner it belongs to all.
    pub fn is_of(&self, engine: &DumpEngine<'_>) -> bool {
        self.owner.is_empty()
            || self.owner == engine.name
            || self.engine().is_some() && self.engine() == engine.id()
    }

    /// Dwords that were captured of it, where its end was not: the text ends in it, is damaged or larger than `limit` bytes.
    pub fn captured_before_cut(&self, limit: usize) -> Option<u64> {
        let unpacked = self.data.as_ref()?.decode(limit);
        let dwords = unpacked.dwords.len() as u64;
        let short = self.length.is_some_and(|claimed| dwords.saturating_mul(4) < claimed);
        (unpacked.is_cut() || short).then_some(dwords)
    }

    /// Its contents, up to `limit` bytes; `None` when the dump holds none.
    pub fn dwords(&self, limit: usize) -> Option<Vec<u32>> {
        Some(self.data.as_ref()?.decode(limit).dwords)
    }
}

/// Memory of one address space, unpacked.
#[derive(Clone, Debug, Default)]
pub struct MemoryImage {
    /// What is known of it.
    pub memory: Memory,
    /// What could not be unpacked, or not as a whole.
    pub diagnostics: Vec<Diagnostic>,
}

impl MemoryImage {
    /// The memory of the device's table.
    pub(crate) fn ggtt(blocks: &[MemoryBlock<'_>], limit: usize) -> MemoryImage {
        let mut lazy = LazyImage::ggtt(blocks, limit);
        lazy.want_all();
        MemoryImage { memory: lazy.memory, diagnostics: lazy.diagnostics }
    }

    /// The memory of the context that ran on an engine; blocks without an owner belong to all.
    pub(crate) fn ppgtt(blocks: &[MemoryBlock<'_>], engine: &DumpEngine<'_>, limit: usize) -> MemoryImage {
        let mut lazy = LazyImage::ppgtt(blocks, engine, limit);
        lazy.want_all();
        MemoryImage { memory: lazy.memory, diagnostics: lazy.diagnostics }
    }
}

/// Memory of one address space, unpacked block by block as it is asked for: most of a large dump is buffers that no command
/// leads to.
#[derive(Clone, Debug)]
pub struct LazyImage<'d, 'a> {
    /// Those not unpacked yet, by address.
    packed: BTreeMap<u64, Vec<&'d MemoryBlock<'a>>>,
    memory: Memory,
    left: usize,
    diagnostics: Vec<Diagnostic>,
}

impl<'d, 'a> LazyImage<'d, 'a> {
    /// The device's table. Unpacks up to `limit` bytes over all of it.
    pub fn ggtt(blocks: &'d [MemoryBlock<'a>], limit: usize) -> LazyImage<'d, 'a> {
        LazyImage::of(
            blocks.iter().filter(|b| matches!(b.space, AddressSpace::Ggtt | AddressSpace::Shared)),
            limit,
        )
    }

    /// The address space of the context that ran on an engine; blocks without an owner belong to all.
    pub fn ppgtt(blocks: &'d [MemoryBlock<'a>], engine: &DumpEngine<'_>, limit: usize) -> LazyImage<'d, 'a> {
        let seen = |b: &&MemoryBlock<'_>| match b.space {
            AddressSpace::Ppgtt => b.is_of(engine),
            AddressSpace::Shared => true,
            AddressSpace::Ggtt | AddressSpace::Unknown => false,
        };
        LazyImage::of(blocks.iter().filter(seen), limit)
    }

    fn of(blocks: impl Iterator<Item = &'d MemoryBlock<'a>>, limit: usize) -> LazyImage<'d, 'a> {
        let mut lazy = LazyImage {
            packed: BTreeMap::new(),
            memory: Memory::default(),
            left: limit,
            diagnostics: Vec::new(),
        };
        let mut at_once = Vec::new();
        for block in blocks {
            let Some(address) = block.address else { continue };
            match block.kind {
                MemoryBlockKind::User
                | MemoryBlockKind::Vm
                | MemoryBlockKind::GucLog
                | MemoryBlockKind::Other
                    if block.data.is_some() =>
                {
                    lazy.packed.entry(address).or_default().push(block);
                }
                _ => at_once.extend(lazy.unpack(block)),
            }
        }
        lazy.memory.extend(at_once);
        lazy
    }

    fn unpack(&mut self, block: &MemoryBlock<'_>) -> Option<Buffer> {
        let iova = block.address?;
        let contents = block.data.as_ref().map(|data| data.decode(self.left));
        if let Some(decoded) = &contents {
            self.left = self.left.saturating_sub(decoded.dwords.len().saturating_mul(4));
            self.diagnostics.extend(decoded.diagnostic(&block.name, block.span));
        }
        let contents = contents.map(|d| d.dwords);
        // What is claimed beyond the contents is not known to be zero.
        let held = contents.as_ref().map(|c| c.len() as u64 * 4);
        Some(Buffer {
            iova,
            size: held.or(block.length).unwrap_or(0),
            contents,
            name: block.name.clone().into_owned(),
        })
    }

    /// Unpacks what may be at an address: the buffer that starts nearest below it. False where there is no more.
    pub fn want(&mut self, address: u64) -> bool {
        let nearest = self.packed.range(..=address).next_back().map(|(&start, _)| start);
        // What is unpacked and starts nearer answers for the address.
        let nearer = |start: u64| {
            let buffers = self.memory.buffers();
            let after = buffers.partition_point(|b| b.iova <= address);
            after
                .checked_sub(1)
                .and_then(|i| buffers.get(i))
                .is_some_and(|b| b.iova > start && b.contains(address))
        };
        let Some(start) = nearest.filter(|&start| !nearer(start)) else { return false };
        self.unpack_at(start);
        true
    }

    /// Unpacks the first buffer that starts after an address, if it starts within so many bytes. False where there is none.
    pub fn want_after(&mut self, address: u64, within: u64) -> bool {
        let Some(first) = address.checked_add(1) else { return false };
        let mut after = self.packed.range(first..=address.saturating_add(within));
        let Some(start) = after.next().map(|(&start, _)| start) else { return false };
        self.unpack_at(start);
        true
    }

    fn unpack_at(&mut self, start: u64) {
        let blocks = self.packed.remove(&start).unwrap_or_default();
        let buffers: Vec<Buffer> = blocks.into_iter().filter_map(|block| self.unpack(block)).collect();
        self.memory.extend(buffers);
    }

    /// Unpacks everything. False where there is no more.
    pub fn want_all(&mut self) -> bool {
        let packed = std::mem::take(&mut self.packed);
        let more = !packed.is_empty();
        let buffers: Vec<Buffer> =
            packed.into_values().flatten().filter_map(|block| self.unpack(block)).collect();
        self.memory.extend(buffers);
        more
    }

    /// What is unpacked.
    pub fn memory(&self) -> &Memory {
        &self.memory
    }

    /// What could not be unpacked, or not as a whole.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }
}
