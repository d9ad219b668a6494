//! The address space that the GPU sees: what is mapped, what may be written, and the faults of its MMU.
//!
//! Never: an answer for memory that is not there, or not known.

use super::caches::{CacheEvent, Caches, StaleRead};
use super::cp::ThreadId;
use super::draw_watch::{DrawWatch, WatchSlot};
use crate::fault::{MemoryAccess, MemoryFaultCause};
use crate::memory::{GroupAccesses, GroupView, Load, MapError, NearRegion, SimMemory};
use std::collections::BTreeMap;
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
    pub(crate) fn of(fault: crate::MemoryFault, client: Client) -> GpuFault {
        let kind = match fault.cause {
            MemoryFaultCause::Unknown => GpuFaultKind::Unknown,
            MemoryFaultCause::Unmapped | MemoryFaultCause::Unaligned(_) => GpuFaultKind::Translation,
        };
        GpuFault { iova: fault.address, access: fault.access, kind, client }
    }
}

/// What pages do not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PageRights {
    /// Writes.
    ReadOnly,
    /// Accesses that are not privileged.
    Privileged,
}

/// Where the kernel's part of the address space begins, which has a page table of its own (TTBR1).
const KERNEL_PART: u64 = 1 << 48;

/// Mapped memory with access rights.
#[derive(Debug, Default)]
pub struct AddressSpace {
    /// What is mapped, and what it holds.
    pub memory: SimMemory,
    /// First and last byte of pages that do not allow everything.
    rights: BTreeMap<u64, (u64, PageRights)>,
    /// Accesses are privileged: the CP is in the ring.
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
        if let Some(last) = size.checked_sub(1) {
            self.rights.insert(base, (base + last, PageRights::ReadOnly));
        }
        Ok(())
    }

    /// Lets only privileged accesses of the CP into pages.
    pub(crate) fn make_privileged(&mut self, base: u64, size: u64) {
        if let Some(last) = size.checked_sub(1) {
            self.rights.insert(base, (base.saturating_add(last), PageRights::Privileged));
        }
    }

    /// Takes away what is mapped in a range, whole mappings or parts of them.
    pub fn unmap(&mut self, base: u64, size: u64) {
        self.memory.unmap(base, size);
        let Some(last) = size.checked_sub(1).map(|beyond| base.saturating_add(beyond)) else { return };
        let cut: Vec<(u64, u64, PageRights)> = self
            .rights
            .range(..=last)
            .filter(|&(_, &(end, _))| end >= base)
            .map(|(&first, &(end, rights))| (first, end, rights))
            .collect();
        for (first, end, rights) in cut {
            self.rights.remove(&first);
            if first < base {
                self.rights.insert(first, (base - 1, rights));
            }
            if end > last {
                self.rights.insert(last + 1, (end, rights));
            }
        }
    }

    /// What the page tables say against an access; `None` for memory that allows it, or where nothing is mapped.
    fn refuses(&self, iova: u64, size: u64, access: MemoryAccess) -> Option<GpuFaultKind> {
        if self.rights.is_empty() && !self.other_table {
            return None;
        }
        if self.other_table && iova < KERNEL_PART {
            return Some(GpuFaultKind::Translation);
        }
        let last = iova.saturating_add(size.saturating_sub(1));
        let (_, &(end, rights)) = self.rights.range(..=last).next_back()?;
        let refused = match rights {
            PageRights::ReadOnly => access == MemoryAccess::Write,
            PageRights::Privileged => !self.privileged,
        };
        (end >= iova && refused).then_some(GpuFaultKind::Permission)
    }

    /// Puts caches between the units and memory: a read that misses a flush gets what its unit holds, and is taken down.
    pub fn enable_caches(&mut self) {
        let caches = Arc::new(Caches::new());
        self.memory.set_cache(caches.clone());
        self.caches = Some(caches);
    }

    /// Whether there are caches.
    pub fn has_caches(&self) -> bool {
        self.caches.is_some()
    }

    /// Reads that missed a flush so far, in order, and whether there were more than are kept.
    pub fn stale_reads(&self) -> (Vec<StaleRead>, bool) {
        self.caches.as_ref().map(|caches| caches.stale_reads()).unwrap_or_default()
    }

    /// A submit begins.
    pub(crate) fn begin_submit(&self) {
        self.caches.iter().for_each(|caches| caches.begin_submit());
    }

    /// A packet begins: what is read and written until the next one is of it.
    pub(crate) fn begin_packet(&self, iova: u64, opcode: Option<u8>, thread: ThreadId) {
        if let Some(caches) = &self.caches {
            caches.begin_packet(iova, opcode, thread);
        }
    }

    /// What an event does to the caches.
    pub(crate) fn cache_event(&self, event: CacheEvent) {
        self.caches.iter().for_each(|caches| caches.event(event));
    }

    /// A number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, may not be read, or is not known.
    pub fn read(&self, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        if let Some(kind) = self.refuses(iova, size as u64, MemoryAccess::Read) {
            // What is not mapped has no rights.
            let mapped = self.memory.load(iova, size) != Load::Unmapped;
            let kind = if mapped { kind } else { GpuFaultKind::Translation };
            return Err(GpuFault { iova, access: MemoryAccess::Read, kind, client });
        }
        let value = loaded(self.memory.load(iova, size), iova, client)?;
        Ok(match &self.caches {
            Some(caches) => caches.read(client, iova, size, value),
            None => value,
        })
    }

    /// Writes a number of up to eight bytes.
    ///
    /// # Errors
    ///
    /// [`GpuFault`] where it is not mapped, may only be read, or is one page too many; nothing is written then.
    pub fn write(&mut self, iova: u64, size: usize, value: u64, client: Client) -> Result<(), GpuFault> {
        let fault = |kind| GpuFault { iova, access: MemoryAccess::Write, kind, client };
        if let Some(refused) = self.refuses(iova, size as u64, MemoryAccess::Write) {
            return Err(fault(refused));
        }
        if self.memory.is_full() && self.memory.would_grow(iova, size) {
            return Err(fault(GpuFaultKind::Exhausted));
        }
        if let Some(caches) = &self.caches {
            let old = |iova| self.memory.load(iova, 1).known().map(|byte| byte as u8);
            caches.write(client, iova, size, old);
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
    fn load(&mut self, attachment: usize, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault>;

    /// Writes one; where it is a fault, nothing is written.
    fn store(
        &mut self,
        attachment: usize,
        iova: u64,
        size: usize,
        value: u64,
        client: Client,
    ) -> Result<(), GpuFault>;
}

/// Where an attachment was accessed last: the region, and whether all of it may be written.
#[derive(Clone, Copy, Debug, Default)]
struct NearAccess {
    region: NearRegion,
    /// First and last byte that are known to be in one region without bytes that may only be read.
    writable: Option<(u64, u64)>,
}

/// Where attachments were accessed last. It holds as long as nothing is mapped, unmapped or made read-only.
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
    fn load(&mut self, attachment: usize, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        if self.space.caches.is_some() {
            return self.space.read(iova, size, client);
        }
        let near = &mut self.near.0[attachment % PLACES].region;
        loaded(self.space.memory.load_near(near, iova, size), iova, client)
    }

    #[inline]
    fn store(
        &mut self,
        attachment: usize,
        iova: u64,
        size: usize,
        value: u64,
        client: Client,
    ) -> Result<(), GpuFault> {
        if self.space.caches.is_some() {
            return self.space.write(iova, size, value, client);
        }
        let near = &mut self.near.0[attachment % PLACES];
        let last = iova.saturating_add(size as u64 - 1);
        if near.writable.is_some_and(|(first, end)| first <= iova && last <= end) {
            return match self.space.memory.store_near(near.region, iova, size, value) {
                true => Ok(()),
                false => self.space.write(iova, size, value, client),
            };
        }
        self.space.write(iova, size, value, client)?;
        // What `store_near` finds from now on.
        let _ = self.space.memory.load_near(&mut near.region, iova, size);
        let bounds = self.space.memory.bounds(near.region);
        near.writable = bounds.filter(|(first, last)| {
            let size = (last - first).saturating_add(1);
            self.space.refuses(*first, size, MemoryAccess::Write).is_none()
        });
        Ok(())
    }
}

impl SampleMemory for AddressSpace {
    fn load(&mut self, _: usize, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        self.read(iova, size, client)
    }

    fn store(
        &mut self,
        _: usize,
        iova: u64,
        size: usize,
        value: u64,
        client: Client,
    ) -> Result<(), GpuFault> {
        self.write(iova, size, value, client)
    }
}

/// Samples of an address space that are only read.
pub(crate) struct ReadSamples<'s>(pub(crate) &'s AddressSpace);

impl SampleMemory for ReadSamples<'_> {
    fn load(&mut self, _: usize, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        self.0.read(iova, size, client)
    }

    fn store(&mut self, _: usize, iova: u64, _: usize, _: u64, client: Client) -> Result<(), GpuFault> {
        Err(GpuFault { iova, access: MemoryAccess::Write, kind: GpuFaultKind::Permission, client })
    }
}

/// Samples in a view of the address space: what is written is kept apart.
pub(crate) struct ApartSamples<'s> {
    space: &'s AddressSpace,
    view: GroupView<'s>,
}

impl<'s> ApartSamples<'s> {
    pub(crate) fn new(space: &'s AddressSpace) -> ApartSamples<'s> {
        ApartSamples { space, view: GroupView::new(&space.memory) }
    }

    /// Whether more pages than so many were touched.
    pub(crate) fn is_full(&self, pages: usize) -> bool {
        self.view.is_full(pages)
    }

    /// What was read and written.
    pub(crate) fn accesses(self) -> GroupAccesses {
        self.view.written()
    }
}

impl SampleMemory for ApartSamples<'_> {
    fn load(&mut self, _: usize, iova: u64, size: usize, client: Client) -> Result<u64, GpuFault> {
        loaded(self.view.read(iova, size), iova, client)
    }

    fn store(
        &mut self,
        _: usize,
        iova: u64,
        size: usize,
        value: u64,
        client: Client,
    ) -> Result<(), GpuFault> {
        let fault = |kind| GpuFault { iova, access: MemoryAccess::Write, kind, client };
        if let Some(refused) = self.space.refuses(iova, size as u64, MemoryAccess::Write) {
            return Err(fault(refused));
        }
        if self.view.write(iova, size, value) { Ok(()) } else { Err(fault(GpuFaultKind::Translation)) }
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
        space.make_privileged(0x2000, 0x1000);
        assert_eq!(kind(space.read(0x2ffc, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Permission));
        space.privileged = true;
        assert_eq!(kind(space.write(0x2ffc, 4, 7, Client::Cp)), Ok(()));
        (space.privileged, space.other_table) = (false, true);
        assert_eq!(kind(space.read(0x1000, 4, Client::Cp).map(drop)), Err(GpuFaultKind::Translation));
        space.other_table = false;
        let fault = space.write(0x5000, 4, 0, Client::Ccu).unwrap_err();
        assert_eq!(fault.to_string(), "iova=0x0000000000005000 dir=WRITE type=TRANSLATION source=CCU");
    }
}
