//! The memory the emulated processor sees: dwords somebody wrote, at any 64-bit address.
//!
//! Never invents contents: what nobody wrote is unknown.

use super::log::Fault;
use std::collections::BTreeMap;

const PAGE_WORDS: usize = 1024;
/// Pages kept at most: 64 MiB.
const MAX_PAGES: usize = 1 << 14;

#[derive(Clone, Debug)]
struct Page {
    words: Box<[u32; PAGE_WORDS]>,
    known: Box<[u64; PAGE_WORDS / 64]>,
}

/// Sparse memory.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    pages: BTreeMap<u64, Page>,
}

fn locate(address: u64) -> Result<(u64, usize), Fault> {
    if !address.is_multiple_of(4) {
        return Err(Fault::Unaligned(address));
    }
    let word = address / 4;
    let index = usize::try_from(word % PAGE_WORDS as u64).unwrap_or(0);
    Ok((word / PAGE_WORDS as u64, index))
}

impl Memory {
    /// The dword at an address; `None` when nobody has written it.
    pub fn read(&self, address: u64) -> Result<Option<u32>, Fault> {
        let (page, index) = locate(address)?;
        let Some(page) = self.pages.get(&page) else { return Ok(None) };
        let known = page.known.get(index / 64).is_some_and(|bits| bits >> (index % 64) & 1 == 1);
        Ok(page.words.get(index).copied().filter(|_| known))
    }

    /// Writes a dword.
    pub fn write(&mut self, address: u64, value: u32) -> Result<(), Fault> {
        let (number, index) = locate(address)?;
        if !self.pages.contains_key(&number) && self.pages.len() >= MAX_PAGES {
            return Err(Fault::MemoryFull((MAX_PAGES * PAGE_WORDS * 4) as u64));
        }
        let page = self.pages.entry(number).or_insert_with(|| Page {
            words: Box::new([0; PAGE_WORDS]),
            known: Box::new([0; PAGE_WORDS / 64]),
        });
        if let (Some(word), Some(bits)) = (page.words.get_mut(index), page.known.get_mut(index / 64)) {
            *word = value;
            *bits |= 1 << (index % 64);
        }
        Ok(())
    }
}
