//! A run of 32-bit words whose tail of zeros need not be stored.

/// A read-only run of dwords. Dumps leave out the zeros at the end of a buffer; here they are counted, not stored,
/// so a claimed size never sizes an allocation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Dwords<'a> {
    stored: &'a [u32],
    len: usize,
}

impl<'a> Dwords<'a> {
    /// `stored`, followed by zeros up to `len` dwords. A `len` below the stored length cuts.
    pub fn new(stored: &'a [u32], len: usize) -> Dwords<'a> {
        Dwords { stored: &stored[..stored.len().min(len)], len }
    }

    /// Length in dwords, zeros at the end included.
    pub fn len(self) -> usize {
        self.len
    }

    /// No dword at all.
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// The dwords in front of the implied zeros.
    pub fn stored(self) -> &'a [u32] {
        self.stored
    }

    /// The dword at `i`, or `None` past the end.
    pub fn get(self, i: usize) -> Option<u32> {
        (i < self.len).then(|| self.stored.get(i).copied().unwrap_or(0))
    }

    /// The 64-bit value whose low dword is at `i`.
    pub fn get64(self, i: usize) -> Option<u64> {
        Some(u64::from(self.get(i)?) | u64::from(self.get(i + 1)?) << 32)
    }

    /// The dwords from `start` on; empty when `start` is past the end.
    pub fn skip(self, start: usize) -> Dwords<'a> {
        Dwords { stored: self.stored.get(start..).unwrap_or(&[]), len: self.len.saturating_sub(start) }
    }

    /// At most the first `n` dwords.
    pub fn take(self, n: usize) -> Dwords<'a> {
        Dwords::new(self.stored, self.len.min(n))
    }

    /// Every dword in order, implied zeros included.
    pub fn iter(self) -> impl Iterator<Item = u32> + 'a {
        self.stored.iter().copied().chain(std::iter::repeat_n(0, self.len - self.stored.len()))
    }

    /// Every two dwords as one value, the low one first, implied zeros included; a last dword without another is left
    /// out.
    pub fn iter64(self) -> impl Iterator<Item = u64> + 'a {
        let (pairs, rest) = self.stored.as_chunks::<2>();
        let pairs = pairs.iter().map(|&[low, high]| u64::from(low) | u64::from(high) << 32);
        let last = rest.first().map(|&low| u64::from(low));
        pairs.chain(last).chain(std::iter::repeat(0)).take(self.len / 2)
    }
}

impl<'a> From<&'a [u32]> for Dwords<'a> {
    fn from(stored: &'a [u32]) -> Dwords<'a> {
        Dwords { stored, len: stored.len() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_at_the_end_are_implied() {
        let d = Dwords::new(&[1, 2], 4);
        assert_eq!(d.iter().collect::<Vec<_>>(), [1, 2, 0, 0]);
        assert_eq!((d.get(1), d.get(3), d.get(4)), (Some(2), Some(0), None));
        assert_eq!(d.get64(1), Some(2));
        assert_eq!(d.iter64().collect::<Vec<_>>(), [1 | 2 << 32, 0]);
        for (len, words) in [(5, vec![1 | 2 << 32, 3]), (3, vec![1 | 2 << 32]), (1, vec![])] {
            assert_eq!(Dwords::new(&[1, 2, 3], len).iter64().collect::<Vec<_>>(), words);
        }
        assert_eq!(d.skip(3).len(), 1);
        assert_eq!(d.skip(9).len(), 0);
        assert_eq!(d.take(1).iter().collect::<Vec<_>>(), [1]);
        assert_eq!(Dwords::new(&[1, 2], 1).stored(), [1]);
    }
}
