//! Memory of a virtual GPU: what was mapped, and what of it is known.
//!
//! Memory is mapped with contents or without: a capture may hold a buffer's address and size only. A [`Load`] tells
//! unknown bytes from bytes that are not mapped. Never: invents the content of either.
//! Workgroups have views of it (`group.rs`).

mod bits;
mod group;
#[cfg(test)]
mod tests;

pub(crate) use group::{GroupAccesses, GroupCache, GroupPath, GroupView};

use crate::rights::{PageRights, RightsTable};
use crate::writes::WriteLog;
use bits::{bits_at, set_all, set_range, within_page};
use group::GroupCacheHandle;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page of a view.
const PAGE: usize = 4096;
/// The same, for caches of groups.
pub(crate) const PAGE_BYTES: usize = PAGE;
/// Its lines.
pub(crate) const PAGE_LINES: usize = PAGE / LINE;
/// Pages that are kept of what was written where nothing is stored.
const MOST_WRITTEN_PAGES: usize = if cfg!(test) { 1 << 9 } else { 1 << 17 };
/// Bytes that are stored at most of those that regions leave out.
const MOST_ADDED: usize = 128 << 20;
/// Bytes by which regions grow.
const GROWTH: u64 = 64 << 10;
/// Bytes of a line, by which reads and writes are compared.
const LINE: usize = 64;

/// Why bytes cannot be mapped somewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// Some are mapped there.
    #[error("memory at {0:#x} is mapped already")]
    Overlap(u64),
    /// They do not end within 64 bits.
    #[error("memory at {0:#x} ends beyond the address space")]
    Beyond(u64),
}

/// What a read of memory finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Load {
    /// The bytes as a number, the first one lowest.
    Known(u64),
    /// All bytes are mapped, and some have no known value.
    Unknown,
    /// Some bytes are not mapped.
    Unmapped,
}

impl Load {
    /// The value, if it is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Load::Known(value) => Some(value),
            Load::Unknown | Load::Unmapped => None,
        }
    }
}

/// Mapped bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    base: u64,
    /// Address of the last byte.
    last: u64,
    /// The content, as far as it is not filler at the end; `None`: unknown, but for what was written since.
    bytes: Option<Vec<u8>>,
    /// What the bytes past those hold.
    filler: u8,
    /// Those bytes are stored when they are written.
    grows: bool,
    /// Bytes that were stored since it was mapped.
    added: usize,
}

impl Region {
    fn new(base: u64, last: u64, bytes: Option<Vec<u8>>) -> Region {
        Region { base, last, bytes, filler: 0, grows: false, added: 0 }
    }

    /// Stores more bytes where it grows, so that so many bytes at an address are stored.
    fn grow(&mut self, address: u64, size: usize) {
        let end = (address - self.base).saturating_add(size as u64).next_multiple_of(GROWTH);
        let end = end.min((self.last - self.base).saturating_add(1));
        if let (true, Some(bytes), Ok(end)) = (self.grows, &mut self.bytes, usize::try_from(end))
            && end > bytes.len()
        {
            bytes.resize(end, self.filler);
        }
    }

    /// So many bytes, if all are stored.
    #[inline]
    fn stored(&self, address: u64, size: usize) -> Option<&[u8]> {
        let from = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.as_ref()?.get(from..from.checked_add(size)?)
    }

    #[inline]
    fn stored_mut(&mut self, address: u64, size: usize) -> Option<&mut [u8]> {
        let from = usize::try_from(address.checked_sub(self.base)?).ok()?;
        self.bytes.as_mut()?.get_mut(from..from.checked_add(size)?)
    }

    /// A byte that is stored.
    fn byte(&self, address: u64) -> Option<u8> {
        let at = usize::try_from(address - self.base).ok()?;
        self.bytes.as_ref()?.get(at).copied()
    }
}

/// Bytes that were written where none are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Patch {
    bytes: Box<[u8; PAGE]>,
    known: Box<[u64; PAGE / 64]>,
}

impl Default for Patch {
    fn default() -> Patch {
        Patch { bytes: Box::new([0; PAGE]), known: Box::new([0; PAGE / 64]) }
    }
}

/// The region that an access found: the next one is often in the same.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NearRegion(usize);

/// Mapped memory: everything else is unmapped.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SimMemory {
    regions: Vec<Region>,
    /// What was written to regions past their stored bytes, by page.
    patches: BTreeMap<u64, Patch>,
    /// Bytes that hold a filler: a bit for each byte, by page.
    undefined: BTreeMap<u64, Box<[u64; PAGE / 64]>>,
    /// Where it was written, while somebody wants to know.
    writes: Option<WriteLog>,
    cache: GroupCacheHandle,
    rights: RightsTable,
}

impl SimMemory {
    /// Memory of which every byte is mapped and none is known.
    pub fn unknown() -> SimMemory {
        let all = Region::new(0, u64::MAX, None);
        SimMemory { regions: vec![all], ..SimMemory::default() }
    }

    /// Maps bytes at an address.
    ///
    /// # Errors
    ///
    /// [`MapError`] where something is mapped already, or where the address space ends.
    pub fn map(&mut self, base: u64, bytes: Vec<u8>) -> Result<(), MapError> {
        self.insert(base, bytes.len() as u64, Some(bytes))
    }

    /// Maps so many bytes whose content is not known.
    ///
    /// # Errors
    ///
    /// As [`SimMemory::map`].
    pub fn map_unknown(&mut self, base: u64, size: u64) -> Result<(), MapError> {
        self.insert(base, size, None)
    }

    /// Maps `size` bytes: the given ones, then zeros.
    ///
    /// # Errors
    ///
    /// As [`SimMemory::map`].
    pub fn map_zero_filled(&mut self, base: u64, size: u64, mut bytes: Vec<u8>) -> Result<(), MapError> {
        bytes.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        self.insert(base, size, Some(bytes))
    }

    /// Maps so many bytes of one value. They are stored when they are written.
    ///
    /// # Errors
    ///
    /// As [`SimMemory::map`].
    pub(crate) fn map_filled(&mut self, base: u64, size: u64, filler: u8) -> Result<(), MapError> {
        self.insert(base, size, Some(Vec::new()))?;
        let number = self.region_number(base);
        if let Some(region) = self.regions.get_mut(number).filter(|region| region.base == base) {
            (region.filler, region.grows) = (filler, true);
        }
        Ok(())
    }

    /// Takes away what is mapped in a range, whole mappings or parts of them, with what was written there.
    pub fn unmap(&mut self, base: u64, size: u64) {
        let Some(beyond) = size.checked_sub(1) else { return };
        let end = base.saturating_add(beyond);
        self.rights.remove(base, end);
        let first = self.regions.partition_point(|region| region.last < base);
        let count = self.regions[first..].partition_point(|region| region.base <= end);
        let mut kept = Vec::new();
        for region in self.regions.drain(first..first + count) {
            let Region { base: start, last, bytes, filler, grows, added } = region;
            if start < base {
                let length = usize::try_from(base - start).unwrap_or(usize::MAX);
                let bytes = bytes.as_ref().map(|bytes| bytes[..bytes.len().min(length)].to_vec());
                kept.push(Region { base: start, last: base - 1, bytes, filler, grows, added });
            }
            if last > end {
                let skipped = usize::try_from(end + 1 - start).unwrap_or(usize::MAX);
                let bytes = bytes.map(|bytes| bytes.get(skipped..).unwrap_or_default().to_vec());
                kept.push(Region { base: end + 1, last, bytes, filler, grows, added });
            }
        }
        self.regions.splice(first..first, kept);
        self.define(base, size);
        let page = PAGE as u64;
        self.patches.retain(|&number, patch| {
            let start = number * page;
            for (n, known) in (0..).zip(patch.known.iter_mut()) {
                let from = start + 64 * n;
                if from > end || from + 63 < base {
                    continue;
                }
                (0..64)
                    .filter(|bit| (base..=end).contains(&(from + bit)))
                    .for_each(|bit| *known &= !(1 << bit));
            }
            patch.known.iter().any(|&known| known != 0)
        });
    }

    fn insert(&mut self, base: u64, size: u64, bytes: Option<Vec<u8>>) -> Result<(), MapError> {
        base.checked_add(size).ok_or(MapError::Beyond(base))?;
        let Some(beyond) = size.checked_sub(1) else { return Ok(()) };
        let last = base + beyond;
        let at = self.regions.partition_point(|region| region.base < base);
        let before = at.checked_sub(1).and_then(|at| self.regions.get(at));
        if before.is_some_and(|region| region.last >= base)
            || self.regions.get(at).is_some_and(|region| region.base <= last)
        {
            return Err(MapError::Overlap(base));
        }
        self.regions.insert(at, Region::new(base, last, bytes));
        Ok(())
    }

    /// The bytes at an address, if they were all mapped together with their content.
    pub fn get(&self, address: u64, size: usize) -> Option<&[u8]> {
        let region = self.region(address)?;
        let from = usize::try_from(address - region.base).ok()?;
        region.bytes.as_ref()?.get(from..from.checked_add(size)?)
    }

    /// The bytes from an address on that are stored together; none where its content is not stored.
    pub fn stored_at(&self, address: u64) -> &[u8] {
        let region = self.region(address);
        let from = region.and_then(|region| usize::try_from(address - region.base).ok());
        let bytes = region.and_then(|region| region.bytes.as_deref());
        bytes.zip(from).and_then(|(bytes, from)| bytes.get(from..)).unwrap_or_default()
    }

    /// The bytes at an address, if all of them are mapped and known.
    pub fn read_known(&self, address: u64, size: u64) -> Option<Vec<u8>> {
        // Nothing is taken for bytes that are not there.
        let mut bytes = Vec::new();
        for n in 0..size {
            match self.byte(address.checked_add(n)?) {
                Load::Known(byte) => bytes.push(byte as u8),
                Load::Unknown | Load::Unmapped => return None,
            }
        }
        Some(bytes)
    }

    /// So many bytes from an address on; `None` where they are not mapped or not known.
    pub(crate) fn known_bytes(&self, first: u64, size: usize) -> Vec<Option<u8>> {
        let mut all = vec![None; size];
        let Some(last) = (size as u64).checked_sub(1).map(|beyond| first.saturating_add(beyond)) else {
            return all;
        };
        let place = |address: u64| (address - first) as usize;
        let number = self.regions.partition_point(|region| region.last < first);
        for region in self.regions[number..].iter().take_while(|region| region.base <= last) {
            let (from, to) = (region.base.max(first), region.last.min(last));
            let mut unstored = from;
            if let Some(bytes) = &region.bytes {
                all[place(from)..=place(to)].fill(Some(region.filler));
                let skipped = usize::try_from(from - region.base).unwrap_or(usize::MAX);
                let stored = bytes.get(skipped..).unwrap_or_default();
                let stored = &stored[..stored.len().min(place(to) + 1 - place(from))];
                all[place(from)..].iter_mut().zip(stored).for_each(|(to, byte)| *to = Some(*byte));
                unstored = from.saturating_add(stored.len() as u64);
            }
            if unstored > to {
                continue;
            }
            for (number, patch) in self.patches.range(unstored / PAGE as u64..=to / PAGE as u64) {
                let (at, end) = within_page(*number, unstored, to);
                for at in (at..end).filter(|at| patch.known[at / 64] >> (at % 64) & 1 != 0) {
                    all[place(number * PAGE as u64 + at as u64)] = Some(patch.bytes[at]);
                }
            }
        }
        all
    }

    /// Up to eight bytes at an address.
    pub fn load(&self, address: u64, size: usize) -> Load {
        if let Some(bytes) = self.get(address, size.min(8)) {
            return Load::Known(number(bytes));
        }
        if let Some(load) = self.load_past_stored(address, size) {
            return load;
        }
        let mut found = Load::Known(0);
        for n in 0..size as u64 {
            let Some(address) = address.checked_add(n) else { return Load::Unmapped };
            match (self.byte(address), found) {
                (Load::Unmapped, _) => return Load::Unmapped,
                (Load::Known(byte), Load::Known(value)) => found = Load::Known(value | byte << (8 * n)),
                _ => found = Load::Unknown,
            }
        }
        found
    }

    /// The same within a page, past the stored bytes of one region; `None` for any other place.
    fn load_past_stored(&self, address: u64, size: usize) -> Option<Load> {
        let region = self.region(address)?;
        let at = past_stored(region, address, size)?;
        let wanted = (1 << size) - 1;
        let patch = self.patches.get(&(address / PAGE as u64));
        let known = patch.map_or(0, |patch| bits_at(&patch.known, at) & wanted);
        if known != wanted && region.bytes.is_none() {
            return Some(Load::Unknown);
        }
        let bytes = patch.map_or(&[][..], |patch| &patch.bytes[at..at + size]);
        let byte = |n: usize| if known >> n & 1 != 0 { bytes[n] } else { region.filler };
        Some(Load::Known((0..size).rev().fold(0, |value, n| value << 8 | u64::from(byte(n)))))
    }

    /// [`SimMemory::load`] with a region that an earlier access found, which is tried first.
    pub(crate) fn load_near(&self, near: &mut NearRegion, address: u64, size: usize) -> Load {
        match self.regions.get(near.0).and_then(|region| region.stored(address, size)) {
            Some(bytes) => Load::Known(number(bytes)),
            None => {
                near.0 = self.region_number(address);
                self.load(address, size)
            }
        }
    }

    /// [`SimMemory::store`] where the bytes are stored in the region that an earlier access found, and no write is tracked; else
    /// false, and nothing is done.
    pub(crate) fn store_near(&mut self, near: NearRegion, address: u64, size: usize, value: u64) -> bool {
        if self.writes.is_some() || !self.undefined.is_empty() {
            return false;
        }
        let place = self.regions.get_mut(near.0).and_then(|region| region.stored_mut(address, size));
        place.map(|place| put_number(place, value)).is_some()
    }

    /// First and last byte of the region that an access found.
    pub(crate) fn bounds(&self, near: NearRegion) -> Option<(u64, u64)> {
        self.regions.get(near.0).map(|region| (region.base, region.last))
    }

    /// The number of the region that an address is in, if it is in one.
    fn region_number(&self, address: u64) -> usize {
        self.regions.partition_point(|region| region.base <= address).saturating_sub(1)
    }

    /// Restricts what may be done to so many bytes. Workgroups are held to it here, other units by [`SimMemory::rights`].
    pub(crate) fn restrict(&mut self, base: u64, size: u64, rights: PageRights) {
        if let Some(beyond) = size.checked_sub(1) {
            self.rights.add(base, base.saturating_add(beyond), rights);
        }
    }

    /// What pages do not allow.
    pub(crate) fn rights(&self) -> &RightsTable {
        &self.rights
    }

    /// Workgroups see it through a cache from here on.
    pub(crate) fn set_cache(&mut self, cache: Arc<dyn GroupCache>) {
        self.cache = GroupCacheHandle(Some(cache));
    }

    /// Takes down what is written from here on.
    pub fn log_writes(&mut self) {
        self.writes = Some(WriteLog::default());
    }

    /// What was written since [`SimMemory::log_writes`]; it is not taken down any longer.
    pub fn take_writes(&mut self) -> WriteLog {
        self.writes.take().unwrap_or_default()
    }

    /// Writes up to eight bytes; false: not all are mapped, and none was written.
    pub fn store(&mut self, address: u64, size: usize, value: u64) -> bool {
        let stored = self.store_unlogged(address, size, value);
        self.define(address, size.min(8) as u64);
        if let Some(writes) = self.writes.as_mut().filter(|_| stored) {
            writes.add(address, size.min(8) as u64);
        }
        stored
    }

    fn store_unlogged(&mut self, address: u64, size: usize, value: u64) -> bool {
        let at = self.regions.partition_point(|region| region.base <= address);
        if let Some(region) = at.checked_sub(1).and_then(|at| self.regions.get_mut(at))
            && let Ok(from) = usize::try_from(address - region.base)
            && let Some(place) = region.bytes.as_mut().and_then(|bytes| bytes.get_mut(from..))
            && let Some(place) = place.get_mut(..size.min(8))
        {
            put_number(place, value);
            return true;
        }
        if self.grow(address, size.min(8)) {
            return self.store_unlogged(address, size, value);
        }
        if let Some(at) = self.region(address).and_then(|region| past_stored(region, address, size)) {
            let patch = self.patches.entry(address / PAGE as u64).or_default();
            put_number(&mut patch.bytes[at..at + size], value);
            set_all(&mut patch.known, at, size);
            return true;
        }
        let mapped = |n: u64| address.checked_add(n).is_some_and(|at| self.region(at).is_some());
        if !(0..size as u64).all(mapped) {
            return false;
        }
        (0..size as u64).for_each(|n| self.put(address + n, (value >> (8 * n)) as u8));
        true
    }

    /// Stores more bytes of a region that grows, so that so many at an address are stored; false where nothing changes.
    fn grow(&mut self, address: u64, size: usize) -> bool {
        let number = self.region_number(address);
        let Some(region) = self.regions.get_mut(number).filter(|region| region.grows) else { return false };
        if address < region.base || address > region.last {
            return false;
        }
        let stored = region.bytes.as_ref().map(Vec::len);
        region.grow(address, size);
        region.bytes.as_ref().map(Vec::len) != stored
    }

    /// How many pages hold bytes that were written where none are stored.
    pub fn written_pages(&self) -> usize {
        self.patches.len()
    }

    /// Whether there are as many of them as a machine keeps.
    pub(crate) fn is_full(&self) -> bool {
        self.written_pages() >= MOST_WRITTEN_PAGES
    }

    /// Whether a store of up to eight bytes makes them more.
    pub(crate) fn would_grow(&self, address: u64, size: usize) -> bool {
        let last = address.saturating_add(size.saturating_sub(1) as u64);
        let grows = [address, last].into_iter().all(|at| self.region(at).is_some_and(|region| region.grows));
        let is_stored = grows || self.get(address, size).is_some();
        !is_stored
            && [address, last].into_iter().any(|at| self.region(at).is_some() && !self.is_written_page(at))
    }

    /// The addresses of those of [`SimMemory::written_pages`] that reach into a range, by its first and its last byte.
    pub fn written_between(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        let page = PAGE as u64;
        let numbers = first / page..=(last / page).max(first / page);
        self.patches.range(numbers).map(move |(number, _)| number * page)
    }

    /// The bytes of some ranges, by first and end address: all of them, apart from each other, or `None` where some are not stored, or reads
    /// and writes do more than that. The ranges are in order, and no two of them overlap.
    pub(crate) fn stored_parts(&mut self, ranges: &[(u64, u64)]) -> Option<Vec<&mut [u8]>> {
        if self.writes.is_some() || !self.undefined.is_empty() || self.cache.0.is_some() {
            return None;
        }
        let mut parts = Vec::with_capacity(ranges.len());
        let mut ranges = ranges.iter().copied().peekable();
        for region in &mut self.regions {
            let (mut at, Some(bytes)) = (region.base, &mut region.bytes) else { continue };
            let mut rest = &mut bytes[..];
            while let Some(&(first, end)) = ranges.peek()
                && let Some(skipped) = first.checked_sub(at).and_then(|skipped| usize::try_from(skipped).ok())
                && let Some(size) = end.checked_sub(first).and_then(|size| usize::try_from(size).ok())
                && let Some((_, after)) = std::mem::take(&mut rest).split_at_mut_checked(skipped)
                && let Some((part, after)) = after.split_at_mut_checked(size)
            {
                parts.push(part);
                (rest, at) = (after, end);
                ranges.next();
            }
        }
        ranges.next().is_none().then_some(parts)
    }

    /// Stores the bytes of a range that its region leaves out because they are zero or were written since, if they are not more than so
    /// many; false: they are not stored. What is read stays the same.
    pub(crate) fn store_range(&mut self, first: u64, end: u64, most: usize) -> bool {
        let number = self.region_number(first);
        let kept: usize = self.regions.iter().map(|region| region.added).sum();
        let Some(region) = self.regions.get_mut(number) else { return false };
        let last = end.saturating_sub(1);
        if first < region.base || last > region.last {
            return false;
        }
        let (Some(bytes), Ok(size)) = (&mut region.bytes, usize::try_from(end - region.base)) else {
            return false;
        };
        let old = bytes.len();
        let added = size.saturating_sub(old);
        if added == 0 {
            return true;
        }
        if added > most || kept.saturating_add(added) > MOST_ADDED {
            return false;
        }
        bytes.resize(size, region.filler);
        region.added += added;
        let (base, from) = (region.base, region.base + old as u64);
        let pages = from / PAGE as u64..=last / PAGE as u64;
        let written: Vec<u64> = self.patches.range(pages).map(|(number, _)| *number).collect();
        for number in written {
            let Some(patch) = self.patches.get_mut(&number) else { continue };
            let (at, until) = within_page(number, from, last);
            for at in (at..until).filter(|at| patch.known[at / 64] >> (at % 64) & 1 != 0) {
                bytes[(number * PAGE as u64 + at as u64 - base) as usize] = patch.bytes[at];
            }
            (at..until).for_each(|at| patch.known[at / 64] &= !(1 << (at % 64)));
            if patch.known.iter().all(|known| *known == 0) {
                self.patches.remove(&number);
            }
        }
        true
    }

    /// Whether the page at an address is one of [`SimMemory::written_pages`].
    pub fn is_written_page(&self, address: u64) -> bool {
        self.patches.contains_key(&(address / PAGE as u64))
    }

    fn byte(&self, address: u64) -> Load {
        let Some(region) = self.region(address) else { return Load::Unmapped };
        if let Some(byte) = region.byte(address) {
            return Load::Known(byte.into());
        }
        let at = address as usize % PAGE;
        match self.patches.get(&(address / PAGE as u64)) {
            Some(patch) if patch.known[at / 64] >> (at % 64) & 1 != 0 => Load::Known(patch.bytes[at].into()),
            _ if region.bytes.is_some() => Load::Known(region.filler.into()),
            _ => Load::Unknown,
        }
    }

    fn region(&self, address: u64) -> Option<&Region> {
        let at = self.regions.partition_point(|region| region.base <= address);
        self.regions.get(at.checked_sub(1)?).filter(|region| address <= region.last)
    }

    /// Overwrites a byte, if it is mapped.
    fn put(&mut self, address: u64, byte: u8) {
        self.grow(address, 1);
        let at = self.regions.partition_point(|region| region.base <= address);
        let Some(region) = at.checked_sub(1).and_then(|at| self.regions.get_mut(at)) else { return };
        if address > region.last {
            return;
        }
        let at = usize::try_from(address - region.base).ok();
        let stored = region.bytes.as_mut().zip(at).and_then(|(bytes, at)| bytes.get_mut(at));
        if let Some(place) = stored {
            *place = byte;
            return;
        }
        let patch = self.patches.entry(address / PAGE as u64).or_default();
        let at = address as usize % PAGE;
        patch.bytes[at] = byte;
        patch.known[at / 64] |= 1 << (at % 64);
    }

    /// Overwrites bytes of a page, where they are mapped.
    fn put_all(&mut self, address: u64, bytes: &[u8]) {
        self.grow(address, bytes.len());
        let number = self.region_number(address);
        match self.regions.get_mut(number).and_then(|region| region.stored_mut(address, bytes.len())) {
            Some(place) => place.copy_from_slice(bytes),
            None => (address..).zip(bytes).for_each(|(address, byte)| self.put(address, *byte)),
        }
        self.define(address, bytes.len() as u64);
        if let Some(writes) = &mut self.writes {
            writes.add(address, bytes.len() as u64);
        }
    }

    /// Marks bytes as undefined: what they hold is a filler, until they are written. Reads give the filler.
    pub(crate) fn set_undefined(&mut self, address: u64, size: u64) {
        let Some(beyond) = size.checked_sub(1) else { return };
        let last = address.saturating_add(beyond);
        for number in address / PAGE as u64..=last / PAGE as u64 {
            let bits = self.undefined.entry(number).or_insert_with(|| Box::new([0; PAGE / 64]));
            let (at, end) = within_page(number, address, last);
            set_range(bits, at, end);
        }
    }

    /// Whether one of so many bytes is undefined.
    pub fn is_undefined(&self, address: u64, size: usize) -> bool {
        let Some(beyond) = (size as u64).checked_sub(1) else { return false };
        let last = address.saturating_add(beyond);
        self.undefined.range(address / PAGE as u64..=last / PAGE as u64).any(|(number, bits)| {
            let (at, end) = within_page(*number, address, last);
            (at..end).any(|at| bits[at / 64] >> (at % 64) & 1 != 0)
        })
    }

    /// Bytes were written, or are not mapped any longer.
    #[inline]
    fn define(&mut self, address: u64, size: u64) {
        if !self.undefined.is_empty() {
            self.define_tracked(address, size);
        }
    }

    fn define_tracked(&mut self, address: u64, size: u64) {
        let Some(beyond) = size.checked_sub(1) else { return };
        let last = address.saturating_add(beyond);
        let mut defined = Vec::new();
        for (number, bits) in self.undefined.range_mut(address / PAGE as u64..=last / PAGE as u64) {
            let (at, end) = within_page(*number, address, last);
            (at..end).for_each(|at| bits[at / 64] &= !(1 << (at % 64)));
            if bits.iter().all(|bits| *bits == 0) {
                defined.push(*number);
            }
        }
        for number in defined {
            self.undefined.remove(&number);
        }
    }
}

/// Where in its page an access is that lies in one page and in one region, all of it past the region's stored bytes.
fn past_stored(region: &Region, address: u64, size: usize) -> Option<usize> {
    let last = address.checked_add(size.checked_sub(1)? as u64)?;
    let stored = region.bytes.as_ref().map_or(0, Vec::len) as u64;
    let at = address as usize % PAGE;
    (size <= 8 && at + size <= PAGE && last <= region.last && address - region.base >= stored).then_some(at)
}

/// Stores the low bytes of a number.
#[inline]
pub(crate) fn put_number(place: &mut [u8], value: u64) {
    let bytes = value.to_le_bytes();
    match *place {
        // The size of most accesses.
        [_, _, _, _] => place.copy_from_slice(&bytes[..4]),
        _ => place.iter_mut().zip(bytes).for_each(|(place, byte)| *place = byte),
    }
}

/// Bytes as a number, the first one lowest.
pub(crate) fn number(bytes: &[u8]) -> u64 {
    // The sizes of most accesses, without a loop.
    match *bytes {
        [a] => a.into(),
        [a, b] => u16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => u32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => u64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)),
    }
}

impl From<&unwedge_base::Memory> for SimMemory {
    /// Memory of a dump or capture. Where buffers overlap, an address belongs to the one that [`unwedge_base::Memory`]
    /// answers with; a buffer that ends past the address space is cut there.
    fn from(held: &unwedge_base::Memory) -> SimMemory {
        let mut edges: Vec<u64> =
            held.buffers().iter().flat_map(|buffer| [buffer.iova, buffer.end()]).collect();
        edges.sort_unstable();
        edges.dedup();
        let mut memory = SimMemory::default();
        for edge in edges.windows(2) {
            let (base, end) = (edge[0], edge[1]);
            let Some(buffer) = held.find(base) else { continue };
            let from = usize::try_from((base - buffer.iova) / 4).unwrap_or(usize::MAX);
            let bytes = buffer.contents.as_ref().map(|words| {
                let skipped = ((base - buffer.iova) % 4) as usize;
                let stored = words.get(from..).unwrap_or_default().iter().flat_map(|word| word.to_le_bytes());
                let most = usize::try_from(end - base).unwrap_or(usize::MAX);
                stored.skip(skipped).take(most).collect()
            });
            memory.regions.push(Region::new(base, end - 1, bytes));
        }
        memory
    }
}
