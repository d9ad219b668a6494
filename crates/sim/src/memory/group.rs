//! A workgroup's view of memory.
//!
//! Pages that a workgroup touches are copied into its [`GroupView`], and what it wrote is put back after it has ended. So workgroups
//! can run at once, with the result of running one after another: one that read what an earlier one wrote is run again. Where
//! the machine has caches, a [`GroupCache`] stands between memory and the view. Never: which workgroup runs when.

use super::bits::{all_set, next_bit, set_all, set_range};
use super::{LINE, Load, MOST_WRITTEN_PAGES, PAGE, PAGE_BYTES, PAGE_LINES, SimMemory};
use crate::fault::MemoryAccess;
use std::collections::HashMap;
use std::sync::Arc;

const _: () = assert!(LINE == 64 && PAGE == 64 * LINE);
/// How a workgroup reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupPath {
    /// As most reads.
    Shader,
    /// Constants and descriptors.
    Constants,
}

/// A cache that workgroups see memory through.
pub(crate) trait GroupCache: std::fmt::Debug + Send + Sync {
    /// Puts what the cache holds of a page over what memory holds. Bytes that are not known through it, by line.
    fn fetch(&self, page: u64, bytes: &mut [u8; PAGE_BYTES]) -> Option<Box<[u64; PAGE_LINES]>>;

    /// Whether constants have a cache of their own.
    fn has_constants(&self) -> bool;

    /// A byte through the cache of constants, where other reads get this.
    fn constant(&self, address: u64, byte: Option<u8>) -> Option<u8>;

    /// A group has read bytes of a line, by bit.
    fn read_line(&self, path: GroupPath, line: u64, mask: u64);

    /// A group writes bytes of a line, by bit, where memory has others.
    fn write_line(&self, line: u64, mask: u64, old: &dyn Fn(u64) -> Option<u8>);
}

/// The cache of a memory. What it holds is not part of what memory is.
#[derive(Debug, Clone, Default)]
pub(super) struct GroupCacheHandle(pub(super) Option<Arc<dyn GroupCache>>);

impl PartialEq for GroupCacheHandle {
    fn eq(&self, _: &GroupCacheHandle) -> bool {
        true
    }
}

impl Eq for GroupCacheHandle {}
/// Which bytes of a page are mapped, and which are known: a word per line.
#[derive(Debug)]
struct Partial {
    mapped: [u64; PAGE / 64],
    known: [u64; PAGE / 64],
    /// Something in it does not allow every access.
    restricted: bool,
}

impl SimMemory {
    /// Puts what a workgroup wrote into memory, and says which lines that were.
    pub(crate) fn commit(&mut self, written: &GroupAccesses, lines: &mut HashMap<u64, u64>) {
        if let GroupCacheHandle(Some(cache)) = &self.cache {
            written.show(cache.as_ref(), |address| self.byte(address).known().map(|byte| byte as u8));
        }
        for (number, page) in &written.pages {
            let marks = lines.entry(*number).or_default();
            for (word, bits) in page.written.iter().enumerate() {
                *marks |= u64::from(*bits != 0) << word;
                let mut at = 0;
                while let Some(from) = next_bit(*bits, at) {
                    let count = (!(*bits >> from)).trailing_zeros();
                    let first = word * 64 + from as usize;
                    let address = number * PAGE as u64 + first as u64;
                    self.put_all(address, &page.bytes[first..first + count as usize]);
                    at = from + count;
                }
            }
        }
    }
}

#[derive(Debug)]
struct Page {
    bytes: Box<[u8; PAGE]>,
    /// `None`: all bytes are mapped and known, and allow every access.
    partial: Option<Box<Partial>>,
    /// Which bytes were written: a word per line.
    written: [u64; PAGE / 64],
    /// Which lines were read.
    read: u64,
    /// Which bytes were read before they were written, where there is a cache.
    cached: Option<Box<CachedReads>>,
}

/// Bytes of a page that were read: a word per line.
#[derive(Debug)]
struct CachedReads {
    shader: [u64; PAGE / 64],
    constants: [u64; PAGE / 64],
}

impl Page {
    fn new(memory: &SimMemory, number: u64) -> Option<Page> {
        let mut page = Page::stored(memory, number)?;
        if let GroupCacheHandle(Some(cache)) = &memory.cache {
            if let Some(unknown) = cache.fetch(number, &mut page.bytes) {
                let all = [u64::MAX; PAGE / 64];
                let partial = page
                    .partial
                    .get_or_insert_with(|| Box::new(Partial { mapped: all, known: all, restricted: false }));
                partial.known.iter_mut().zip(unknown.iter()).for_each(|(known, unknown)| *known &= !unknown);
            }
            let none = [0; PAGE / 64];
            page.cached = Some(Box::new(CachedReads { shader: none, constants: none }));
        }
        Some(page)
    }

    fn stored(memory: &SimMemory, number: u64) -> Option<Page> {
        let start = number.checked_mul(PAGE as u64)?;
        let mut page = Page {
            bytes: Box::new([0; PAGE]),
            partial: None,
            written: [0; PAGE / 64],
            read: 0,
            cached: None,
        };
        let last = start + (PAGE as u64 - 1);
        let restricted = memory.rights.has_any(start, last);
        if let Some(whole) = memory.get(start, PAGE).filter(|_| !restricted) {
            page.bytes.copy_from_slice(whole);
            return Some(page);
        }
        let mut partial = Box::new(Partial { mapped: [0; PAGE / 64], known: [0; PAGE / 64], restricted });
        let mut some = false;
        let first = memory.regions.partition_point(|region| region.last < start);
        let patch = memory.patches.get(&number);
        for region in memory.regions[first..].iter().take_while(|region| region.base <= last) {
            let (from, to) = (region.base.max(start), region.last.min(last));
            let (at, end) = ((from - start) as usize, (to - start) as usize + 1);
            set_range(&mut partial.mapped, at, end);
            some = true;
            let skipped = usize::try_from(from - region.base).unwrap_or(usize::MAX);
            let stored =
                region.bytes.as_ref().map_or(&[][..], |bytes| bytes.get(skipped..).unwrap_or_default());
            let stored = &stored[..stored.len().min(end - at)];
            page.bytes[at..at + stored.len()].copy_from_slice(stored);
            page.bytes[at + stored.len()..end].fill(region.filler);
            if region.bytes.is_some() {
                set_range(&mut partial.known, at, end);
            }
            let Some(patch) = patch else { continue };
            for at in (at + stored.len()..end).filter(|at| patch.known[at / 64] >> (at % 64) & 1 != 0) {
                page.bytes[at] = patch.bytes[at];
                partial.known[at / 64] |= 1 << (at % 64);
            }
        }
        let whole = partial.known.iter().all(|bits| *bits == u64::MAX);
        page.partial = (!whole || restricted).then_some(partial);
        some.then_some(page)
    }

    /// What a read finds instead of a value, if it finds none. The cache sees it, unless the bytes may not be read.
    fn refuse(&mut self, memory: &SimMemory, address: u64, size: usize) -> Option<Load> {
        if !self.allows(memory, address, size, MemoryAccess::Read) {
            return Some(Load::Unmapped);
        }
        let at = address as usize % PAGE;
        if let Some(read) = &mut self.cached {
            (at..at + size)
                .filter(|at| self.written[at / 64] >> (at % 64) & 1 == 0)
                .for_each(|at| read.shader[at / 64] |= 1 << (at % 64));
        }
        self.partial
            .as_ref()
            .is_some_and(|partial| !all_set(&partial.known, at, size))
            .then_some(Load::Unknown)
    }

    /// Whether bytes of it are mapped, and may be accessed; the address is that of the first one.
    fn allows(&self, memory: &SimMemory, address: u64, size: usize, access: MemoryAccess) -> bool {
        self.partial.as_ref().is_none_or(|partial| {
            all_set(&partial.mapped, address as usize % PAGE, size)
                && !(partial.restricted && memory.rights.refuses(address, size as u64, access, false))
        })
    }
}

/// What a workgroup read and wrote.
#[derive(Debug, Default)]
pub(crate) struct GroupAccesses {
    pages: HashMap<u64, Page>,
}

impl GroupAccesses {
    /// Whether it read a line that others have written.
    pub(crate) fn read_any_of(&self, lines: &HashMap<u64, u64>) -> bool {
        self.pages.iter().any(|(number, page)| lines.get(number).is_some_and(|marks| marks & page.read != 0))
    }

    /// Shows a cache what was read and written, page by page.
    fn show(&self, cache: &dyn GroupCache, old: impl Fn(u64) -> Option<u8>) {
        let mut pages: Vec<(&u64, &Page)> = self.pages.iter().collect();
        pages.sort_unstable_by_key(|(number, _)| **number);
        for (number, page) in pages {
            let line = |n: u64| number * PAGE as u64 + n * LINE as u64;
            if let Some(read) = &page.cached {
                for (path, masks) in
                    [(GroupPath::Shader, &read.shader), (GroupPath::Constants, &read.constants)]
                {
                    for (n, mask) in (0..).zip(masks).filter(|(_, mask)| **mask != 0) {
                        cache.read_line(path, line(n), *mask);
                    }
                }
            }
            for (n, mask) in (0..).zip(page.written).filter(|(_, mask)| *mask != 0) {
                cache.write_line(line(n), mask, &old);
            }
        }
    }
}

/// A workgroup's view of memory.
#[derive(Debug)]
pub(crate) struct GroupView<'m> {
    memory: &'m SimMemory,
    pages: Vec<(u64, Page)>,
    index: HashMap<u64, usize>,
    last: usize,
    changes: u64,
    /// Writes that leave memory as it is do not count as changes.
    compares: bool,
}

impl<'m> GroupView<'m> {
    pub(crate) fn new(memory: &'m SimMemory) -> GroupView<'m> {
        GroupView { memory, pages: Vec::new(), index: HashMap::new(), last: 0, changes: 0, compares: false }
    }

    pub(crate) fn written(self) -> GroupAccesses {
        GroupAccesses { pages: self.pages.into_iter().collect() }
    }

    #[inline(always)]
    fn page(&mut self, number: u64) -> Option<&mut Page> {
        if self.pages.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = self.find(number)?;
        }
        self.pages.get_mut(self.last).map(|(_, page)| page)
    }

    /// Where a page is among those that were touched; it is copied when it is not there yet.
    fn find(&mut self, number: u64) -> Option<usize> {
        if let Some(at) = self.index.get(&number) {
            return Some(*at);
        }
        self.pages.push((number, Page::new(self.memory, number)?));
        self.index.insert(number, self.pages.len() - 1);
        Some(self.pages.len() - 1)
    }

    /// Whether it has touched more than so many pages, or memory has been written where it stores nothing in more pages
    /// than a machine keeps.
    pub(crate) fn is_full(&self, pages: usize) -> bool {
        self.pages.len() > pages || self.memory.written_pages() > MOST_WRITTEN_PAGES
    }

    /// Up to eight bytes. Those that may not be read are as if they were not mapped.
    #[inline]
    pub(crate) fn read(&mut self, address: u64, size: usize) -> Load {
        let at = address as usize % PAGE;
        if at + size > PAGE {
            return self.read_across(address, size);
        }
        let memory = self.memory;
        let Some(page) = self.page(address / PAGE as u64) else { return Load::Unmapped };
        if (page.partial.is_some() || page.cached.is_some())
            && let Some(load) = page.refuse(memory, address, size)
        {
            return load;
        }
        page.read |= 1 << (at / LINE) | 1 << ((at + size - 1) / LINE);
        if size == 4
            && let Some(bytes) = page.bytes[at..].first_chunk::<4>()
        {
            return Load::Known(u32::from_le_bytes(*bytes).into());
        }
        let bytes = page.bytes[at..at + size].iter().rev();
        Load::Known(bytes.fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Up to eight bytes of constants or descriptors, which may have a cache of their own.
    pub(crate) fn read_constants(&mut self, address: u64, size: usize) -> Load {
        let memory = self.memory;
        let cache = &memory.cache.0;
        let Some(cache) = cache.as_ref().filter(|cache| cache.has_constants()) else {
            return self.read(address, size);
        };
        let mut found = Load::Known(0);
        for n in 0..size as u64 {
            let byte = address.checked_add(n).map_or(Load::Unmapped, |address| {
                let at = address as usize % PAGE;
                let Some(page) = self.page(address / PAGE as u64) else { return Load::Unmapped };
                if !page.allows(memory, address, 1, MemoryAccess::Read) {
                    return Load::Unmapped;
                }
                page.read |= 1 << (at / LINE);
                let known = page.partial.as_ref().is_none_or(|partial| all_set(&partial.known, at, 1));
                let byte = known.then(|| page.bytes[at]);
                let byte = match &mut page.cached {
                    Some(read) if page.written[at / 64] >> (at % 64) & 1 == 0 => {
                        read.constants[at / 64] |= 1 << (at % 64);
                        cache.constant(address, byte)
                    }
                    _ => byte,
                };
                byte.map_or(Load::Unknown, |byte| Load::Known(byte.into()))
            });
            match (byte, found) {
                (Load::Unmapped, _) => return Load::Unmapped,
                (Load::Known(byte), Load::Known(value)) => found = Load::Known(value | byte << (8 * n)),
                _ => found = Load::Unknown,
            }
        }
        found
    }

    /// A read that crosses the end of a page.
    fn read_across(&mut self, address: u64, size: usize) -> Load {
        let mut found = Load::Known(0);
        for n in 0..size as u64 {
            let byte = address.checked_add(n).map_or(Load::Unmapped, |address| self.read(address, 1));
            match (byte, found) {
                (Load::Unmapped, _) => return Load::Unmapped,
                (Load::Known(byte), Load::Known(value)) => found = Load::Known(value | byte << (8 * n)),
                _ => found = Load::Unknown,
            }
        }
        found
    }

    /// Writes up to eight bytes; false: not all are mapped and may be written, and none was written.
    #[inline]
    pub(crate) fn write(&mut self, address: u64, size: usize, value: u64) -> bool {
        let at = address as usize % PAGE;
        let (memory, compares) = (self.memory, self.compares);
        if at + size > PAGE {
            let ends = address.checked_add(size as u64 - 1);
            let mapped = (0..size as u64).all(|n| {
                address.checked_add(n).is_some_and(|a| {
                    let page = self.page(a / PAGE as u64);
                    page.is_some_and(|page| page.allows(memory, a, 1, MemoryAccess::Write))
                })
            });
            return ends.is_some()
                && mapped
                && (0..size as u64).all(|n| self.write(address + n, 1, value >> (8 * n)));
        }
        let Some(page) = self.page(address / PAGE as u64) else { return false };
        if !page.allows(memory, address, size, MemoryAccess::Write) {
            return false;
        }
        let bytes = value.to_le_bytes();
        let mut changes = true;
        match page.bytes[at..].first_chunk_mut::<4>() {
            Some(stored) if size == 4 => {
                let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
                if compares {
                    changes = *stored != bytes;
                }
                *stored = bytes;
            }
            _ => {
                let place = &mut page.bytes[at..at + size];
                if compares {
                    changes = *place != bytes[..size];
                }
                place.copy_from_slice(&bytes[..size]);
            }
        }
        set_all(&mut page.written, at, size);
        if let Some(partial) = &mut page.partial {
            changes |= compares && !all_set(&partial.known, at, size);
            set_all(&mut partial.known, at, size);
        }
        self.changes += u64::from(changes);
        true
    }

    /// From here on a write counts as a change only where it changes something. Comparing takes time, so it is left to those that need it.
    pub(crate) fn compare_writes(&mut self) {
        self.compares = true;
    }

    /// Whether writes are compared with what they replace.
    pub(crate) fn compares_writes(&self) -> bool {
        self.compares
    }

    /// Writes so far; since [`GroupView::compare_writes`] those that changed what it holds.
    pub(crate) fn changes(&self) -> u64 {
        self.changes
    }
}
