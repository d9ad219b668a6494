//! GPU memory as a dump or capture holds it: buffers at GPU addresses, some with contents, some without.

use crate::Dwords;

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
}

impl Memory {
    /// Adds a buffer. Where buffers overlap, the one that starts nearest below an address answers for it.
    pub fn add(&mut self, buffer: Buffer) {
        let at = self.buffers.partition_point(|b| b.iova < buffer.iova);
        self.buffers.insert(at, buffer);
    }

    /// All buffers, sorted by address.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The buffer that holds this address; one with contents is preferred.
    pub fn find(&self, iova: u64) -> Option<&Buffer> {
        let upto = self.buffers.partition_point(|b| b.iova <= iova);
        let mut without_contents = None;
        for b in self.buffers[..upto].iter().rev() {
            if b.contains(iova) {
                if b.contents.is_some() {
                    return Some(b);
                }
                without_contents.get_or_insert(b);
            }
        }
        without_contents
    }

    /// The nearest buffers that end at or below `iova`, and that start above it.
    pub fn neighbours(&self, iova: u64) -> (Option<&Buffer>, Option<&Buffer>) {
        let below = self.buffers.iter().filter(|b| b.end() <= iova).max_by_key(|b| b.end());
        let above = self.buffers.iter().find(|b| b.iova > iova);
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
        let (below, above) = m.neighbours(0x1800);
        assert_eq!((below.unwrap().iova, above.unwrap().iova), (0x1000, 0x2000));
    }
}
