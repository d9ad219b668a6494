//! Memory of a virtual GPU: what was mapped, and a workgroup's view of it.
//!
//! A workgroup works on a [`View`]: pages it touches are copied, and what it wrote is put back when it has ended. So
//! workgroups can run at once, with the result of running one after another: one that read what an earlier one wrote
//! is run again.

use std::collections::HashMap;

/// Bytes of a page of a view.
const PAGE: usize = 4096;
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

#[derive(Debug, Clone, PartialEq, Eq)]
struct Region {
    base: u64,
    bytes: Vec<u8>,
}

/// Mapped memory: all else is not there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    regions: Vec<Region>,
}

impl Memory {
    /// Maps bytes at an address.
    pub fn map(&mut self, base: u64, bytes: Vec<u8>) -> Result<(), MapError> {
        let end = base.checked_add(bytes.len() as u64).ok_or(MapError::Beyond(base))?;
        let at = self.regions.partition_point(|region| region.base < base);
        let before = at.checked_sub(1).and_then(|at| self.regions.get(at));
        if before.is_some_and(|region| region.base + region.bytes.len() as u64 > base)
            || self.regions.get(at).is_some_and(|region| region.base < end)
        {
            return Err(MapError::Overlap(base));
        }
        self.regions.insert(at, Region { base, bytes });
        Ok(())
    }

    /// The bytes at an address, if they are all mapped together.
    pub fn get(&self, address: u64, size: usize) -> Option<&[u8]> {
        let region = self.region(address)?;
        let from = usize::try_from(address - region.base).ok()?;
        region.bytes.get(from..from.checked_add(size)?)
    }

    fn region(&self, address: u64) -> Option<&Region> {
        let at = self.regions.partition_point(|region| region.base <= address);
        self.regions.get(at.checked_sub(1)?)
    }

    /// Overwrites what is mapped of these bytes.
    fn put(&mut self, address: u64, byte: u8) {
        let at = self.regions.partition_point(|region| region.base <= address);
        let Some(region) = at.checked_sub(1).and_then(|at| self.regions.get_mut(at)) else { return };
        if let Some(place) = region.bytes.get_mut((address - region.base) as usize) {
            *place = byte;
        }
    }

    /// Puts what a workgroup wrote into memory, and says which lines that were.
    pub(super) fn commit(&mut self, written: &Written, lines: &mut HashMap<u64, u64>) {
        for (number, page) in &written.pages {
            let marks = lines.entry(*number).or_default();
            for (word, bits) in page.written.iter().enumerate() {
                let mut bits = *bits;
                *marks |= u64::from(bits != 0) << word;
                while bits != 0 {
                    let at = word * 64 + bits.trailing_zeros() as usize;
                    self.put(number * PAGE as u64 + at as u64, page.bytes[at]);
                    bits &= bits - 1;
                }
            }
        }
    }
}

const _: () = assert!(LINE == 64 && PAGE == 64 * LINE);

#[derive(Debug)]
struct Page {
    bytes: Box<[u8; PAGE]>,
    /// Which bytes are mapped; all, if there is none.
    mapped: Option<Box<[u64; PAGE / 64]>>,
    /// Which bytes were written: a word per line.
    written: [u64; PAGE / 64],
    /// Which lines were read.
    read: u64,
}

impl Page {
    fn new(memory: &Memory, number: u64) -> Option<Page> {
        let start = number.checked_mul(PAGE as u64)?;
        let mut page = Page { bytes: Box::new([0; PAGE]), mapped: None, written: [0; PAGE / 64], read: 0 };
        if let Some(whole) = memory.get(start, PAGE) {
            page.bytes.copy_from_slice(whole);
            return Some(page);
        }
        let mut mapped = Box::new([0u64; PAGE / 64]);
        let mut some = false;
        let end = start.saturating_add(PAGE as u64);
        for region in &memory.regions {
            let from = region.base.max(start);
            let to = (region.base + region.bytes.len() as u64).min(end);
            for address in from..to.max(from) {
                let at = (address - start) as usize;
                page.bytes[at] = region.bytes[(address - region.base) as usize];
                mapped[at / 64] |= 1 << (at % 64);
                some = true;
            }
        }
        page.mapped = Some(mapped);
        some.then_some(page)
    }

    fn is_mapped(&self, at: usize, size: usize) -> bool {
        match &self.mapped {
            None => true,
            Some(mapped) => (at..at + size).all(|at| mapped[at / 64] >> (at % 64) & 1 != 0),
        }
    }
}

/// What a workgroup read and wrote.
#[derive(Debug, Default)]
pub(super) struct Written {
    pages: HashMap<u64, Page>,
}

impl Written {
    /// Whether it read a line that others have written.
    pub(super) fn read_any_of(&self, lines: &HashMap<u64, u64>) -> bool {
        self.pages.iter().any(|(number, page)| lines.get(number).is_some_and(|marks| marks & page.read != 0))
    }
}

/// A workgroup's view of memory.
#[derive(Debug)]
pub(super) struct View<'m> {
    memory: &'m Memory,
    pages: Vec<(u64, Page)>,
    index: HashMap<u64, usize>,
    last: usize,
}

impl<'m> View<'m> {
    pub(super) fn new(memory: &'m Memory) -> View<'m> {
        View { memory, pages: Vec::new(), index: HashMap::new(), last: 0 }
    }

    pub(super) fn written(self) -> Written {
        Written { pages: self.pages.into_iter().collect() }
    }

    #[inline]
    fn page(&mut self, number: u64) -> Option<&mut Page> {
        if self.pages.get(self.last).is_none_or(|(last, _)| *last != number) {
            self.last = match self.index.get(&number) {
                Some(at) => *at,
                None => {
                    self.pages.push((number, Page::new(self.memory, number)?));
                    self.index.insert(number, self.pages.len() - 1);
                    self.pages.len() - 1
                }
            };
        }
        self.pages.get_mut(self.last).map(|(_, page)| page)
    }

    /// Up to eight bytes as a number; `None`: not all are mapped.
    #[inline]
    pub(super) fn read(&mut self, address: u64, size: usize) -> Option<u64> {
        let at = address as usize % PAGE;
        if at + size > PAGE {
            return (0..size as u64)
                .try_fold(0u64, |value, n| Some(value | self.read(address.checked_add(n)?, 1)? << (8 * n)));
        }
        let page = self.page(address / PAGE as u64)?;
        if page.mapped.is_some() && !page.is_mapped(at, size) {
            return None;
        }
        page.read |= 1 << (at / LINE) | 1 << ((at + size - 1) / LINE);
        if size == 4 {
            let bytes: [u8; 4] = page.bytes[at..at + 4].try_into().ok()?;
            return Some(u32::from_le_bytes(bytes).into());
        }
        Some(page.bytes[at..at + size].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte)))
    }

    /// Writes up to eight bytes; false: not all are mapped, and none was written.
    #[inline]
    pub(super) fn write(&mut self, address: u64, size: usize, value: u64) -> bool {
        let at = address as usize % PAGE;
        if at + size > PAGE {
            let ends = address.checked_add(size as u64 - 1);
            let mapped = (0..size as u64).all(|n| {
                address.checked_add(n).is_some_and(|a| {
                    self.page(a / PAGE as u64).is_some_and(|page| page.is_mapped(a as usize % PAGE, 1))
                })
            });
            return ends.is_some()
                && mapped
                && (0..size as u64).all(|n| self.write(address + n, 1, value >> (8 * n)));
        }
        let Some(page) = self.page(address / PAGE as u64) else { return false };
        if page.mapped.is_some() && !page.is_mapped(at, size) {
            return false;
        }
        for n in 0..size {
            page.bytes[at + n] = (value >> (8 * n)) as u8;
            page.written[(at + n) / 64] |= 1 << ((at + n) % 64);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_mapped_is_not_there() {
        let mut memory = Memory::default();
        memory.map(0x1ffe, vec![1, 2, 3, 4]).unwrap();
        assert_eq!(memory.map(0x2001, vec![0]), Err(MapError::Overlap(0x2001)));
        assert_eq!(memory.map(u64::MAX, vec![0, 0]), Err(MapError::Beyond(u64::MAX)));
        let mut view = View::new(&memory);
        assert_eq!(view.read(0x1ffe, 4), Some(0x0403_0201));
        assert_eq!(view.read(0x1ffd, 2), None);
        assert!(!view.write(0x2001, 2, 0));
        assert!(view.write(0x1fff, 2, 0xbbaa));
        let written = view.written();
        let mut lines = HashMap::new();
        memory.commit(&written, &mut lines);
        assert_eq!(memory.get(0x1ffe, 4), Some(&[1, 0xaa, 0xbb, 4][..]));
        assert!(written.read_any_of(&lines));
    }
}
