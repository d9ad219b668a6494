//! The address space that the GPU sees: what is mapped, what may be written, and the faults of its MMU.
//!
//! Never: an answer for memory that is not there, or not known.

use super::caches::{
    ByteRange, CacheAuditReport, CacheEvent, CachePort, CacheReport, CacheSizes, CacheUnit, CacheWait,
    Caches, NearWriter, WorkPosition,
};
use super::cp::ThreadId;
use super::draw_watch::{DrawWatch, WatchSlot};
use crate::fault::{MemoryAccess, MemoryFault, MemoryFaultCause};
use crate::memory::{Load, MapError, NearRegion, SimMemory, number, put_number};
use crate::rights::PageRights;
use std::ops::Range;
use std::sync::Arc;

/// Where GMEM is among the GPU's addresses, as large as it may be on any GPU.
pub(crate) const GMEM: Range<u64> = 0x10_0000..0x10_0000 + (8 << 20);

/// Which block of the GPU accesses memory, as far as fault reports tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Client {
    /// The command processor.
    Cp,
    /// Shader processors, through the L2 cache.
    Sp,
    /// Texture processors.
    Tp,
    /// The fetch of vertices.
    Vfd,
    /// The fetch of indices and of tessellation levels.
    Pc,
    /// Stream-out.
    Vpc,
    /// The visibility stream compressor.
    Vsc,
    /// The colour cache, behind 2D blits and render targets.
    Ccu,
    /// The cache of depth and stencil.
    CcuDepth,
}

impl Client {
    /// As the kernel prints it after `source=`.
    pub fn name(self) -> &'static str {
        match self {
            Client::Cp => "CP",
            Client::Sp => "SP",
            Client::Tp => "TP",
            Client::Vfd => "VFD",
            Client::Pc => "PC",
            Client::Vpc => "VPC",
            Client::Vsc => "VSC",
            Client::Ccu | Client::CcuDepth => "CCU",
        }
    }
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum GpuFaultKind {
    /// Nothing is mapped there.
    Translation,
    /// Its page does not allow the access.
    Permission,
    /// It is mapped, and what it holds is not known: a capture without the contents of a buffer.
    Unknown,
    /// So much was written where the capture holds nothing that the machine keeps no more of it.
    Exhausted,
}

impl GpuFaultKind {
    /// The MMU of a GPU would report it.
    pub(crate) fn is_of_hardware(self) -> bool {
        matches!(self, GpuFaultKind::Translation | GpuFaultKind::Permission)
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            GpuFaultKind::Translation => "TRANSLATION",
            GpuFaultKind::Permission => "PERMISSION",
            GpuFaultKind::Unknown => "UNKNOWN",
            GpuFaultKind::Exhausted => "EXHAUSTED",
        }
    }
}

/// An access that the GPU's MMU refuses, or that the machine cannot answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("iova={iova:#018x} dir={} type={} source={}", self.direction(), self.kind.name(), client.name())]
pub struct GpuFault {
    /// The address.
    pub iova: u64,
    /// Read or written.
    pub access: MemoryAccess,
    /// What is wrong.
    pub kind: GpuFaultKind,
    /// Who accesses it.
    pub client: Client,
}

impl GpuFault {
    pub(crate) fn direction(&self) -> &'static str {
        match self.access {
            MemoryAccess::Read => "READ",
            MemoryAccess::Write => "WRITE",
        }
    }

    /// The fault of a client for a fault of memory.
    pub(crate) fn of(fault: MemoryFault, client: Client) -> GpuFault {
        let kind = match fault.cause {
            MemoryFaultCause::Unknown => GpuFaultKind::Unknown,
            MemoryFaultCause::Refused => GpuFaultKind::Permission,
            MemoryFaultCause::Unmapped | MemoryFaultCause::Unaligned(_) => GpuFaultKind::Translation,
        };
        GpuFault { iova: fault.address, access: fault.access, kind, client }
    }
}

/// Where the kernel's part of the address space begins, which has a page table of its own (TTBR1).
const KERNEL_PART: u64 = 1 << 48;

/// Mapped memory with access rights.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// What is mapped, and what it holds.
    pub memory: SimMemory,
    /// Accesses of the CP are privileged: it is in the ring.
    pub(crate) privileged: bool,
    /// The page table of the process is not in use: nothing but the kernel's part is mapped.
    pub(crate) other_table: bool,
    /// Between units and memory, where they are modelled.
    caches: Option<Arc<Caches>>,
}

impl AddressSpace {
    /// Nothing mapped.
    pub fn new() -> AddressSpace {
        AddressSpace::default()
    }

    /// Maps bytes that the GPU may only read.
    ///
    /// # Errors
    ///
    /// As [`SimMemory::map`].
    pub fn map_read_only(&mut self, base: u64, bytes: Vec<u8>) -> Result<(), MapError> {
        let size = bytes.len() as u64;
        self.memory.map(base, bytes)?;
        self.memory.restrict(base, size, PageRights { read_only: true, privileged: false });
        Ok(())
    }

    /// Takes away what is mapped in a range, whole mappings or parts of them.
    pub fn unmap(&mut self, base: u64, size: u64) {
        self.memory.unmap(base, size);
    }

    /// What the page tables say against an access; `None` for memory that allows it, or where nothing is mapped.
    fn refuses(&self, iova: u64, size: u64, access: MemoryAccess, client: Client) -> Option<GpuFaultKind> {
        if self.other_table && iova < KERNEL_PART {
            return Some(GpuFaultKind::Translation);
        }
        let privileged = self.privileged && client == Client::Cp;
        self.memory.rights().refuses(iova, size, access, privileged).then_some(GpuFaultKind::Permission)
    }

    /// The bytes at an address, if they are stored together, the client may read them, and no cache is between.
    pub(crate) fn stored(&self, iova: u64, size: usize, client: Client) -> Option<&[u8]> {
        let refused = self.refuses(iova, size as u64, MemoryAccess::Read, client).is_some();
        self.memory.get(iova, size).filter(|_| !refused && self.caches.is_none())
    }

    /// The fault of a shader's own access, as a refused one where the page tables refuse it: a workgroup's view of memory has
    /// neither bytes that it may not access nor bytes that are not mapped.
    pub(crate) fn shader_fault(&self, fault: MemoryFault) -> MemoryFault {
        // As many bytes as an access has at most.
        let refused = self.memory.rights().refuses(fault.address, 8, fault.access, false);
        let mapped = || self.memory.load(fault.address, 1) != Load::Unmapped;
        match fault.cause {
            MemoryFaultCause::Unmapped if refused && mapped() => {
                MemoryFault { cause: MemoryFaultCause::Refused, ..fault }
            }
            _ => fault,
        }
    }

    /// Puts caches of these sizes between the units and memory: a read that misses a flush gets what its unit holds, and is
    /// reported.
    pub fn enable_caches(&mut self, sizes: CacheSizes) {
        let caches = Arc::new(Caches::new(sizes));
        self.memory.set_cache(caches.clone());
        self.caches = Some(caches);
    }

    /// Whether there are caches.
    pub fn has_caches(&self) -> bool {
        self.caches.is_some()
    }

    /// What missing events have led to so far.
    pub fn cache_report(&self) -> CacheReport {
        self.caches.as_ref().map(|caches| caches.report()).unwrap_or_default()
    }

    /// Follows, where there are caches, who has written which bytes, and which events have something to do.
    pub fn enable_audit(&self) {
        self.caches.iter().for_each(|caches| caches.enable_audit());
    }

    /// Takes what was followed so far ([`AddressSpace::enable_audit`]).
    pub fn take_audit(&self) -> CacheAuditReport {
        self.caches.as_ref().map(|caches| caches.take_audit()).unwrap_or_default()
    }

    /// The last packet that wrote some bytes.
    pub fn last_writer(&self, range: ByteRange) -> Option<NearWriter> {
        self.caches.as_ref()?.last_writer(range)
    }

    /// Where the packet in work is.
    pub(crate) fn set_position(&self, position: WorkPosition) {
        self.caches.iter().for_each(|caches| caches.set_position(position));
    }

    /// The CPU writes; with `all` zeros, too.
    pub(crate) fn cpu_writes(&self, first: u64, bytes: &[u8], all: bool) {
        self.caches.iter().for_each(|caches| caches.cpu_writes(first, bytes, all));
    }

    /// A buffer is mapped at these addresses.
    pub(crate) fn map_origins(&self, first: u64, size: u64) {
        self.caches.iter().for_each(|caches| caches.map_origins(first, size));
    }

    /// What was written at these addresses is gone.
    pub(crate) fn forget_origins(&self, first: u64, size: u64) {
        self.caches.iter().for_each(|caches| caches.forget_origins(first, size));
    }

    /// Whether a cache holds what memory does not.
    pub(crate) fn has_unwritten(&self, unit: CacheUnit) -> bool {
        self.caches.as_ref().is_some_and(|caches| caches.has_unwritten(unit))
    }

    /// A submit begins.
    pub(crate) fn begin_submit(&self) {
        self.caches.iter().for_each(|caches| caches.begin_submit());
    }

    /// A submit ends: the kernel empties the caches.
    pub(crate) fn end_submit(&mut self) {
        self.write_back(|caches, current| caches.end_submit(current));
    }

    /// Writes caches back. Where that undoes newer writes, memory holds the older bytes from now on.
    fn write_back(&mut self, act: impl Fn(&Caches, &dyn Fn(u64) -> Option<u8>) -> Vec<(u64, u8)>) {
        let Some(caches) = &self.caches else { return };
        let memory = &self.memory;
        let current = |iova| memory.load(iova, 1).known().map(|byte| byte as u8);
        for (iova, byte) in act(caches, &current) {
            self.memory.store(iova, 1, byte.into());
        }
    }

    /// A packet begins: what is read and written until the next one is of it.
    pub(crate) fn begin_packet(&self, iova: u64, opcode: Option<u8>, thread: ThreadId) {
        if let Some(caches) = &self.caches {
            caches.begin_packet(iova, opcode, thread);
        }
    }

    /// The packet polls memory.
    pub(crate) fn begin_poll(&self) {
        self.caches.iter().for_each(|caches| caches.begin_poll());
    }

    /// Writes are waited for.
    pub(crate) fn wait(&self, wait: CacheWait) {
        self.caches.iter().for_each(|caches| caches.wait(wait));
    }

    /// Lines of caches that events and waits have gone over since this was asked.
    pub(crate) fn take_walked_lines(&self) -> u64 {
        self.caches.as_ref().map_or(0, |caches| caches.take_walked())
    }

    /// What an event does to the caches.
    pub(crate) fn cache_event(&mut self, event: CacheEvent) {
        self.write_back(|caches, current| caches.event(event, current));
    }

    /// A number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, may not be read, or is not known.
    pub fn read(&self, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        self.read_through(iova, size, client.into())
    }

    /// [`AddressSpace::read`] through a port of its client's cache.
    pub(crate) fn read_through(&self, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault> {
        let client = port.client;
        if let Some(kind) = self.refuses(iova, size as u64, MemoryAccess::Read, client) {
            // What is not mapped has no rights.
            let mapped = self.memory.load(iova, size) != Load::Unmapped;
            let kind = if mapped { kind } else { GpuFaultKind::Translation };
            return Err(GpuFault { iova, access: MemoryAccess::Read, kind, client });
        }
        let value = loaded(self.memory.load(iova, size), iova, client)?;
        let Some(caches) = &self.caches else { return Ok(value) };
        let unknown = GpuFault { iova, access: MemoryAccess::Read, kind: GpuFaultKind::Unknown, client };
        caches.read(port, iova, size, value).ok_or(unknown)
    }

    /// Writes a number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, may only be read, or is one page too many; nothing is written then.
    pub fn write(&mut self, iova: u64, size: usize, value: u64, client: Client) -> Result<(), GpuFault> {
        self.write_through(iova, size, value, client.into())
    }

    /// [`AddressSpace::write`] through a port of its client's cache.
    pub(crate) fn write_through(
        &mut self,
        iova: u64,
        size: usize,
        value: u64,
        port: CachePort,
    ) -> Result<(), GpuFault> {
        let client = port.client;
        let fault = |kind| GpuFault { iova, access: MemoryAccess::Write, kind, client };
        if let Some(refused) = self.refuses(iova, size as u64, MemoryAccess::Write, client) {
            return Err(fault(refused));
        }
        if self.memory.is_full() && self.memory.would_grow(iova, size) {
            return Err(fault(GpuFaultKind::Exhausted));
        }
        if let Some(caches) = &self.caches {
            let old = |iova| self.memory.load(iova, 1).known().map(|byte| byte as u8);
            caches.write(port, iova, size, &old);
        }
        if self.memory.store(iova, size, value) { Ok(()) } else { Err(fault(GpuFaultKind::Translation)) }
    }
}

/// Places that accesses are near to: render targets, depth, stencil.
const PLACES: usize = 10;

/// Memory that samples of attachments are read from and written to. Each attachment has a number of its own.
pub(crate) trait SampleMemory {
    /// Who watches what becomes of samples.
    fn watch(&mut self) -> Option<&mut dyn DrawWatch> {
        None
    }

    /// Whether one of so many bytes is undefined, where that is tracked.
    fn is_undefined(&self, _iova: u64, _size: usize) -> bool {
        false
    }

    /// A number of up to eight bytes.
    fn load(&mut self, attachment: usize, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault>;

    /// Writes one; where it is a fault, nothing is written.
    fn store(
        &mut self,
        attachment: usize,
        iova: u64,
        size: usize,
        value: u64,
        port: CachePort,
    ) -> Result<(), GpuFault>;
}

/// Where an attachment was accessed last: the region, and whether all of it may be accessed.
#[derive(Clone, Copy, Debug, Default)]
struct NearAccess {
    region: NearRegion,
    /// First and last byte that are known to be in one region in which everything may be read.
    readable: Option<(u64, u64)>,
    /// The same of what may be written.
    writable: Option<(u64, u64)>,
}

/// Whether an access is in a range.
fn is_within(range: Option<(u64, u64)>, iova: u64, size: usize) -> bool {
    let last = iova.saturating_add(size as u64 - 1);
    range.is_some_and(|(first, end)| first <= iova && last <= end)
}

/// Where attachments were accessed last. It holds as long as nothing is mapped, unmapped or restricted.
#[derive(Clone, Debug, Default)]
pub(crate) struct NearSamples([NearAccess; PLACES]);

/// Samples in the address space itself.
pub(crate) struct DirectSamples<'s> {
    space: &'s mut AddressSpace,
    near: &'s mut NearSamples,
    watch: &'s mut WatchSlot,
}

impl<'s> DirectSamples<'s> {
    pub(crate) fn new(
        space: &'s mut AddressSpace,
        near: &'s mut NearSamples,
        watch: &'s mut WatchSlot,
    ) -> DirectSamples<'s> {
        DirectSamples { space, near, watch }
    }
}

impl SampleMemory for DirectSamples<'_> {
    #[inline]
    fn watch(&mut self) -> Option<&mut dyn DrawWatch> {
        self.watch.get()
    }

    fn is_undefined(&self, iova: u64, size: usize) -> bool {
        self.space.memory.is_undefined(iova, size)
    }

    #[inline]
    fn load(&mut self, attachment: usize, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault> {
        if self.space.caches.is_some() {
            return self.space.read_through(iova, size, port);
        }
        let near = &mut self.near.0[attachment % PLACES];
        if is_within(near.readable, iova, size) {
            return loaded(self.space.memory.load_near(&mut near.region, iova, size), iova, port.client);
        }
        let value = self.space.read_through(iova, size, port)?;
        near.readable = self.space.near_range(&mut near.region, iova, size, MemoryAccess::Read, port.client);
        Ok(value)
    }

    #[inline]
    fn store(
        &mut self,
        attachment: usize,
        iova: u64,
        size: usize,
        value: u64,
        port: CachePort,
    ) -> Result<(), GpuFault> {
        if self.space.caches.is_some() {
            return self.space.write_through(iova, size, value, port);
        }
        let near = &mut self.near.0[attachment % PLACES];
        if is_within(near.writable, iova, size) {
            return match self.space.memory.store_near(near.region, iova, size, value) {
                true => Ok(()),
                false => self.space.write_through(iova, size, value, port),
            };
        }
        self.space.write_through(iova, size, value, port)?;
        // What `store_near` finds from now on.
        near.writable = self.space.near_range(&mut near.region, iova, size, MemoryAccess::Write, port.client);
        Ok(())
    }
}

impl AddressSpace {
    /// The region of an access, if all of it allows such an access.
    fn near_range(
        &self,
        near: &mut NearRegion,
        iova: u64,
        size: usize,
        access: MemoryAccess,
        client: Client,
    ) -> Option<(u64, u64)> {
        let _ = self.memory.load_near(near, iova, size);
        self.memory.bounds(*near).filter(|(first, last)| {
            self.refuses(*first, (last - first).saturating_add(1), access, client).is_none()
        })
    }
}

impl SampleMemory for AddressSpace {
    fn load(&mut self, _: usize, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault> {
        self.read_through(iova, size, port)
    }

    fn store(
        &mut self,
        _: usize,
        iova: u64,
        size: usize,
        value: u64,
        port: CachePort,
    ) -> Result<(), GpuFault> {
        self.write_through(iova, size, value, port)
    }
}

/// Samples of an address space that are only read.
pub(crate) struct ReadSamples<'s>(pub(crate) &'s AddressSpace);

impl SampleMemory for ReadSamples<'_> {
    fn load(&mut self, _: usize, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault> {
        self.0.read_through(iova, size, port)
    }

    fn store(&mut self, _: usize, iova: u64, _: usize, _: u64, port: CachePort) -> Result<(), GpuFault> {
        Err(GpuFault {
            iova,
            access: MemoryAccess::Write,
            kind: GpuFaultKind::Permission,
            client: port.client,
        })
    }
}

/// Bytes of an attachment, or its flags of UBWC, in some rows of pixels: the first address, and the one after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BandRange {
    /// Number of the attachment.
    pub(crate) attachment: usize,
    pub(crate) first: u64,
    pub(crate) end: u64,
    pub(crate) client: Client,
}

/// Stored bytes from an address on.
#[derive(Debug, Default)]
struct BandBytes<'b> {
    first: u64,
    bytes: &'b mut [u8],
}

impl BandBytes<'_> {
    #[inline]
    fn get(&mut self, iova: u64, size: usize) -> Option<&mut [u8]> {
        let from = iova.checked_sub(self.first)? as usize;
        self.bytes.get_mut(from..from.checked_add(size)?)
    }
}

/// Samples of some rows of pixels: of each attachment the bytes of these rows, and their flags. Others may have the samples of other rows at
/// the same time.
#[derive(Debug, Default)]
pub(crate) struct BandSamples<'b>([[BandBytes<'b>; 2]; PLACES]);

impl BandSamples<'_> {
    fn at(&mut self, attachment: usize, iova: u64, size: usize) -> Option<&mut [u8]> {
        let [texels, flags] = &mut self.0[attachment % PLACES];
        texels.get(iova, size).or_else(|| flags.get(iova, size))
    }
}

impl SampleMemory for BandSamples<'_> {
    #[inline]
    fn load(&mut self, attachment: usize, iova: u64, size: usize, port: CachePort) -> Result<u64, GpuFault> {
        let bytes = self.at(attachment, iova, size).map(|bytes| number(bytes));
        loaded(bytes.map_or(Load::Unmapped, Load::Known), iova, port.client)
    }

    #[inline]
    fn store(
        &mut self,
        attachment: usize,
        iova: u64,
        size: usize,
        value: u64,
        port: CachePort,
    ) -> Result<(), GpuFault> {
        let (access, kind) = (MemoryAccess::Write, GpuFaultKind::Translation);
        let fault = GpuFault { iova, access, kind, client: port.client };
        put_number(self.at(attachment, iova, size).ok_or(fault)?, value);
        Ok(())
    }
}

impl AddressSpace {
    /// Stores the bytes of ranges that are left out because they are zero, if they are not more than so many; false: some are not stored.
    pub(crate) fn store_ranges(&mut self, ranges: &[BandRange], most: usize) -> bool {
        // The last range of a region may be the only one that is not stored.
        ranges.iter().rev().all(|range| self.memory.store_range(range.first, range.end, most))
    }

    /// The samples of bands of rows, apart from each other; `None` where some of their bytes are not stored and are more than so many, may not be
    /// accessed, belong to two of them, or are seen through a cache. A band has no more than two ranges of an attachment.
    pub(crate) fn bands(&mut self, bands: &[Vec<BandRange>], most: usize) -> Option<Vec<BandSamples<'_>>> {
        let mut all: Vec<(usize, BandRange)> =
            bands.iter().enumerate().flat_map(|(at, ranges)| ranges.iter().map(move |r| (at, *r))).collect();
        all.sort_unstable_by_key(|(_, range)| range.first);
        let apart = all.is_sorted_by(|(_, a), (_, b)| a.end <= b.first);
        let allowed = |range: &BandRange| {
            let size = range.end.saturating_sub(range.first);
            [MemoryAccess::Read, MemoryAccess::Write]
                .into_iter()
                .all(|access| self.refuses(range.first, size, access, range.client).is_none())
        };
        if !apart || self.has_caches() || !all.iter().all(|(_, range)| allowed(range)) {
            return None;
        }
        let ranges: Vec<BandRange> = all.iter().map(|(_, range)| *range).collect();
        if !self.store_ranges(&ranges, most) {
            return None;
        }
        let ranges: Vec<(u64, u64)> = all.iter().map(|(_, range)| (range.first, range.end)).collect();
        let parts = self.memory.stored_parts(&ranges)?;
        let mut samples: Vec<BandSamples<'_>> = bands.iter().map(|_| BandSamples::default()).collect();
        for ((at, range), bytes) in all.iter().zip(parts) {
            let places = &mut samples[*at].0[range.attachment % PLACES];
            let place = places.iter_mut().find(|place| place.bytes.is_empty())?;
            *place = BandBytes { first: range.first, bytes };
        }
        Some(samples)
    }
}

fn loaded(load: Load, iova: u64, client: Client) -> Result<u64, GpuFault> {
    let kind = match load {
        Load::Known(value) => return Ok(value),
        Load::Unknown => GpuFaultKind::Unknown,
        Load::Unmapped => GpuFaultKind::Translation,
    };
    Err(GpuFault { iova, access: MemoryAccess::Read, kind, client })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A capture may say that a buffer is as large as it likes: what is written to it is bounded.
    #[test]
    fn what_is_written_where_nothing_is_stored_is_bounded() {
        const BASE: u64 = 1 << 40;
        let mut space = AddressSpace::new();
        space.memory.map_unknown(BASE, 1 << 40).unwrap();
        space.memory.map(0x1000, vec![0; 0x1000]).unwrap();
        let written = (0..1 << 20)
            .map(|page| space.write(BASE + 4096 * page, 4, 1, Client::Ccu))
            .take_while(Result::is_ok)
            .count();
        assert!(written < 1 << 18, "{written}");
        let fault = space.write(BASE + 4096 * written as u64 - 4, 8, 1, Client::Ccu).unwrap_err();
        assert_eq!(fault.kind, GpuFaultKind::Exhausted);
        assert!(!fault.kind.is_of_hardware());
        // What there is already can be written on.
        assert_eq!(space.write(BASE + 8, 8, 2, Client::Ccu), Ok(()));
        assert_eq!(space.write(0x1ff8, 8, 2, Client::Cp), Ok(()));
        assert_eq!(space.memory.written_pages(), written);
    }

    /// Bands are given out where each has bytes of its own that may be read and written; a band has no others.
    #[test]
    fn bands_have_bytes_of_their_own() {
        let range = |attachment, first, end| BandRange { attachment, first, end, client: Client::Ccu };
        let mut space = AddressSpace::new();
        space.memory.map_zero_filled(0x1000, 0x4000, vec![7; 0x800]).unwrap();
        space.map_read_only(0x8000, vec![0; 0x1000]).unwrap();
        let mut apart = |bands: &[Vec<BandRange>], most| space.bands(bands, most).is_some();
        let two = [vec![range(0, 0x1000, 0x1400)], vec![range(0, 0x1400, 0x1800)]];
        assert!(apart(&two, 0));
        assert!(!apart(&[vec![range(0, 0x1000, 0x1401)], two[1].clone()], 0), "they overlap");
        assert!(!apart(&[vec![range(0, 0x1000, 0x1400), range(1, 0x1200, 0x1600)]], 0), "two images overlap");
        assert!(!apart(&[vec![range(0, 0x1000, 0x2000)]], 0x7ff), "too much is left out");
        assert!(!apart(&[vec![range(0, 0x4000, 0x6000)]], 1 << 20), "not all is mapped");
        assert!(!apart(&[vec![range(0, 0x8000, 0x8400)]], 0), "it is read-only");
        let three = [range(0, 0x1000, 0x1100), range(0, 0x1100, 0x1200), range(0, 0x1200, 0x1300)];
        assert!(!apart(&[three.to_vec()], 0), "an image has its samples and their flags");
        let port = CachePort::from(Client::Ccu);
        let bands =
            [vec![range(0, 0x1000, 0x1400), range(2, 0x1800, 0x1900)], vec![range(0, 0x1400, 0x1800)]];
        let mut samples = space.bands(&bands, 0x100).unwrap();
        assert_eq!(samples[1].store(0, 0x1400, 4, 0x4433_2211, port), Ok(()));
        assert_eq!(samples[0].load(0, 0x13fc, 4, port), Ok(0x0707_0707));
        assert_eq!(samples[0].load(2, 0x18fc, 4, port), Ok(0));
        let beyond = samples[0].load(0, 0x13fe, 4, port).unwrap_err();
        assert_eq!((beyond.kind, beyond.iova), (GpuFaultKind::Translation, 0x13fe));
        assert!(
            samples[0].store(0, 0x1400, 4, 0, port).is_err() && samples[1].load(2, 0x1800, 4, port).is_err()
        );
        assert_eq!(space.read(0x1400, 4, Client::Cp), Ok(0x4433_2211));
    }

    #[test]
    fn rights_follow_what_is_mapped() {
        let mut space = AddressSpace::new();
        space.map_read_only(0x1000, vec![1; 0x3000]).unwrap();
        space.memory.map_unknown(0x8000, 0x1000).unwrap();
        let kind = |r: Result<(), GpuFault>| r.map_err(|fault| fault.kind);
        assert_eq!(space.read(0x1ffe, 4, Client::Cp), Ok(0x0101_0101));
        assert_eq!(kind(space.write(0x3fff, 1, 0, Client::Cp)), Err(GpuFaultKind::Permission));
        assert_eq!(kind(space.write(0x4000, 4, 0, Client::Cp)), Err(GpuFaultKind::Translation));
        assert_eq!(kind(space.read(0x8000, 4, Client::Sp).map(drop)), Err(GpuFaultKind::Unknown));
        space.unmap(0x2000, 0x1000);
        assert_eq!(kind(space.read(0x2000, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Translation));
        assert_eq!(kind(space.write(0x3000, 4, 0, Client::Cp)), Err(GpuFaultKind::Permission));
        space.memory.map(0x2000, vec![0; 0x1000]).unwrap();
        assert_eq!(kind(space.write(0x2ffc, 4, 7, Client::Cp)), Ok(()));
        space.memory.restrict(0x2000, 0x1000, PageRights { read_only: false, privileged: true });
        assert_eq!(kind(space.read(0x2ffc, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Permission));
        space.privileged = true;
        assert_eq!(kind(space.write(0x2ffc, 4, 7, Client::Cp)), Ok(()));
        // Other units never are.
        assert_eq!(kind(space.write(0x2ffc, 4, 7, Client::Ccu)), Err(GpuFaultKind::Permission));
        assert_eq!(space.stored(0x2ffc, 4, Client::Vfd), None);
        (space.privileged, space.other_table) = (false, true);
        assert_eq!(kind(space.read(0x1000, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Translation));
        space.other_table = false;
        let fault = space.write(0x5000, 4, 0, Client::Ccu).unwrap_err();
        assert_eq!(fault.to_string(), "iova=0x0000000000005000 dir=WRITE type=TRANSLATION source=CCU");
    }
}
