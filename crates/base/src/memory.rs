//! GPU memory as a dump or capture holds it: buffers at GPU addresses, some with contents, some without.

use crate::Dwords;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// One buffer object.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Buffer {
    /// GPU address of the first byte.
    pub iova: u64,
    /// Allocated size in bytes.
    pub size: u64,
    /// Contents from the start, or `None` when the dump holds none. Zeros at the end may be left out: bytes between
    /// the stored dwords and `size` are then known to be zero.
    pub contents: Option<Vec<u32>>,
    /// The name the driver gave it, if any.
    pub name: String,
}

impl Buffer {
    /// One past the last byte's address.
    pub fn end(&self) -> u64 {
        self.iova.saturating_add(self.size)
    }

    /// The address lies inside the allocation.
    pub fn contains(&self, iova: u64) -> bool {
        self.iova <= iova && iova < self.end()
    }

    /// The contents from `iova` to the end of the allocation; `None` where they are not known.
    pub fn dwords_at(&self, iova: u64) -> Option<Dwords<'_>> {
        if !self.contains(iova) {
            return None;
        }
        let contents = self.contents.as_deref()?;
        let whole = Dwords::new(contents, (self.size / 4) as usize);
        Some(whole.skip(((iova - self.iova) / 4) as usize))
    }
}

/// All buffers of a dump. Memory outside them, and buffers without contents, are unknown: never zero.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Sorted by address; a buffer added later at the same address comes first.
    buffers: Vec<Buffer>,
    /// Made when an address is first looked up.
    index: OnceLock<Vec<AddressStretch>>,
}

/// From an address on, up to the next stretch, one buffer answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct AddressStretch {
    start: u64,
    buffer: Option<usize>,
}

impl Memory {
    /// Adds a buffer. Where buffers overlap, the one that starts nearest below an address answers for it. To add many
    /// buffers in no order, extend with them all at once.
    pub fn add(&mut self, buffer: Buffer) {
        let at = self.buffers.partition_point(|b| b.iova < buffer.iova);
        self.buffers.insert(at, buffer);
        self.index = OnceLock::new();
    }

    /// All buffers, sorted by address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffers, sorted by address.
    pub fn into_buffers(self) -> Vec<Buffer> {
        self.buffers
    }

    /// Dwords held, over all buffers: what a dump or capture really contains, whatever it claims.
    pub fn stored(&self) -> u64 {
        self.buffers.iter().filter_map(|b| b.contents.as_ref()).map(|c| c.len() as u64).sum()
    }

    /// The buffer that holds this address; one with contents is preferred.
    pub fn find(&self, iova: u64) -> Option<&Buffer> {
        let index = self.index.get_or_init(|| stretches(&self.buffers));
        let after = index.partition_point(|s| s.start <= iova);
        self.buffers.get(index.get(after.checked_sub(1)?)?.buffer?)
    }

    /// The nearest buffers that end at or below `iova`, and that start above it.
    pub fn neighbours(&self, iova: u64) -> (Option<&Buffer>, Option<&Buffer>) {
        let below = self.buffers.iter().filter(|b| b.end() <= iova).max_by_key(|b| b.end());
        let above = self.buffers.get(self.buffers.partition_point(|b| b.iova <= iova));
        (below, above)
    }

    /// Known contents from `iova` to the end of its buffer.
    pub fn dwords(&self, iova: u64) -> Option<Dwords<'_>> {
        self.find(iova)?.dwords_at(iova)
    }

    /// The dword at `iova`, if it is known.
    pub fn read(&self, iova: u64) -> Option<u32> {
        self.dwords(iova)?.get(0)
    }
}

impl Extend<Buffer> for Memory {
    fn extend<I: IntoIterator<Item = Buffer>>(&mut self, buffers: I) {
        let mut all: Vec<Buffer> = buffers.into_iter().collect();
        all.reverse();
        all.append(&mut self.buffers);
        all.sort_by_key(|b| b.iova);
        *self = Memory { buffers: all, index: OnceLock::new() };
    }
}

impl FromIterator<Buffer> for Memory {
    fn from_iter<I: IntoIterator<Item = Buffer>>(buffers: I) -> Memory {
        let mut memory = Memory::default();
        memory.extend(buffers);
        memory
    }
}

/// Walks the starts and ends of all buffers in order, with the buffers that hold the current address at hand.
fn stretches(buffers: &[Buffer]) -> Vec<AddressStretch> {
    let mut edges: Vec<(u64, bool, usize)> = Vec::with_capacity(buffers.len() * 2);
    for (i, b) in buffers.iter().enumerate().filter(|(_, b)| b.iova < b.end()) {
        edges.push((b.iova, true, i));
        edges.push((b.end(), false, i));
    }
    edges.sort_unstable();
    let mut known = BTreeSet::new();
    let mut unknown = BTreeSet::new();
    let mut stretches: Vec<AddressStretch> = Vec::new();
    for edges in edges.chunk_by(|a, b| a.0 == b.0) {
        for &(_, starts, i) in edges {
            let holders = if buffers[i].contents.is_some() { &mut known } else { &mut unknown };
            if starts {
                holders.insert(i);
            } else {
                holders.remove(&i);
            }
        }
        let buffer = known.last().or(unknown.last()).copied();
        if stretches.last().is_none_or(|s| s.buffer != buffer) {
            stretches.push(AddressStretch { start: edges[0].0, buffer });
        }
    }
    stretches
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absent_memory_is_unknown() {
        let mut m = Memory::default();
        m.add(Buffer { iova: 0x2000, size: 16, contents: None, name: String::new() });
        m.add(Buffer { iova: 0x1000, size: 16, contents: Some(vec![7, 8]), name: "a".into() });
        assert_eq!(m.read(0x1004), Some(8));
        assert_eq!(m.read(0x1008), Some(0), "zeros at the end are left out of dumps");
        assert_eq!(m.read(0x1010), None);
        assert_eq!(m.read(0x2000), None);
        assert_eq!(m.find(0x2008).map(|b| b.iova), Some(0x2000));
        assert_eq!(m.stored(), 2);
        let (below, above) = m.neighbours(0x1800);
        assert_eq!((below.unwrap().iova, above.unwrap().iova), (0x1000, 0x2000));
    }

    #[test]
    fn where_buffers_overlap_the_nearest_with_contents_answers() {
        let buffer = |iova, size, contents: Option<u32>| Buffer {
            iova,
            size,
            contents: contents.map(|c| vec![c; 64]),
            name: String::new(),
        };
        let m: Memory = [
            buffer(0x1010, 0x10, Some(2)),
            buffer(0x1000, 0x100, Some(1)),
            buffer(0x1018, 0x10, None),
            buffer(0x3000, 0, Some(3)),
            buffer(u64::MAX - 3, 64, Some(4)),
        ]
        .into_iter()
        .collect();
        assert_eq!([0x1000, 0x1010, 0x1018, 0x1020, 0x10fc].map(|a| m.read(a)), [1, 2, 2, 1, 1].map(Some));
        assert_eq!([0xfff, 0x1100, 0x3000].map(|a| m.read(a)), [None; 3]);
        assert_eq!(m.find(u64::MAX - 1).map(|b| b.iova), Some(u64::MAX - 3));
    }

    #[test]
    fn many_overlapping_buffers_take_no_time() {
        let mut m: Memory =
            (0..50_000).map(|i| Buffer { iova: i, size: 1 << 40, ..Buffer::default() }).collect();
        m.extend([Buffer { iova: 9, size: 4, contents: Some(vec![7]), ..Buffer::default() }]);
        for i in 0..50_000 {
            assert!(m.find(1 << 20 | i).is_some());
        }
        assert_eq!(m.read(9), Some(7));
    }
}
