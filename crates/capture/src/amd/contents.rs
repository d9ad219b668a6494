//! Dwords of a buffer, as far as a dump holds them.

/// Dwords at offsets. What is not there is not known; nothing is filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DwordContents {
    dwords: Vec<u32>,
    runs: Vec<DwordRun>,
}

/// Dwords that follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct DwordRun {
    /// Of its first dword, in dwords.
    offset: u64,
    /// Place of that dword in `dwords`.
    first: usize,
}

impl DwordContents {
    /// Nothing known.
    pub fn new() -> DwordContents {
        DwordContents::default()
    }

    /// All of these, from offset 0 on.
    pub fn from_dwords(dwords: Vec<u32>) -> DwordContents {
        let runs = if dwords.is_empty() { Vec::new() } else { vec![DwordRun { offset: 0, first: 0 }] };
        DwordContents { dwords, runs }
    }

    /// Offsets (in dwords) and dwords in any order. Of several for one offset the first counts.
    pub fn from_pairs(mut pairs: Vec<(u64, u32)>) -> DwordContents {
        pairs.sort_by_key(|&(offset, _)| offset);
        let mut contents = DwordContents::new();
        for (offset, value) in pairs {
            contents.push(offset, value);
        }
        contents
    }

    /// Adds a dword behind all that are there. Says whether it is: offsets that do not grow are refused.
    pub fn push(&mut self, offset: u64, value: u32) -> bool {
        let end = self.end();
        if offset < end {
            return false;
        }
        if offset > end || self.runs.is_empty() {
            self.runs.push(DwordRun { offset, first: self.dwords.len() });
        }
        self.dwords.push(value);
        true
    }

    /// One past the last dword that is there, in dwords.
    pub fn end(&self) -> u64 {
        self.runs.last().map_or(0, |run| run.offset.saturating_add((self.dwords.len() - run.first) as u64))
    }

    /// How many dwords are there.
    pub fn len(&self) -> usize {
        self.dwords.len()
    }

    /// No dword at all.
    pub fn is_empty(&self) -> bool {
        self.dwords.is_empty()
    }

    /// The dword at this offset (in dwords).
    pub fn get(&self, offset: u64) -> Option<u32> {
        self.from(offset).first().copied()
    }

    /// The dwords from this offset (in dwords) up to the first that is not known.
    pub fn from(&self, offset: u64) -> &[u32] {
        let Some(at) = self.runs.partition_point(|run| run.offset <= offset).checked_sub(1) else {
            return &[];
        };
        let end = self.runs.get(at + 1).map_or(self.dwords.len(), |next| next.first);
        let run = self.runs.get(at).and_then(|run| {
            let skip = usize::try_from(offset - run.offset).ok()?;
            self.dwords.get(run.first.checked_add(skip)?..end)
        });
        run.unwrap_or_default()
    }

    /// The offset (in dwords) of the first dword at or after this one that is there.
    pub fn next_from(&self, offset: u64) -> Option<u64> {
        if !self.from(offset).is_empty() {
            return Some(offset);
        }
        let next = self.runs.partition_point(|run| run.offset <= offset);
        self.runs.get(next).map(|run| run.offset)
    }

    /// Stretches without a gap: offset in dwords, and the dwords.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &[u32])> {
        self.runs.iter().map(|run| (run.offset, self.from(run.offset)))
    }

    /// All dwords when nothing is missing from offset 0 on.
    pub fn whole(&self) -> Option<&[u32]> {
        match self.runs.as_slice() {
            [] => Some(&[]),
            [run] if run.offset == 0 => Some(&self.dwords),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_stay_unknown() {
        let mut contents = DwordContents::new();
        for (offset, value) in [(2, 20), (3, 30), (7, 70)] {
            assert!(contents.push(offset, value));
        }
        assert!(!contents.push(7, 71), "the first one counts");
        assert!(!contents.push(0, 1));
        assert_eq!(contents.get(2), Some(20));
        assert_eq!(contents.from(3), [30]);
        assert_eq!(contents.get(4), None);
        assert_eq!(contents.get(1), None);
        assert_eq!(contents.get(8), None);
        assert_eq!(contents.get(u64::MAX), None);
        assert_eq!(
            [0, 3, 4, 7, 8].map(|at| contents.next_from(at)),
            [Some(2), Some(3), Some(7), Some(7), None]
        );
        assert_eq!(contents.runs().collect::<Vec<_>>(), [(2, &[20, 30][..]), (7, &[70])]);
        assert_eq!((contents.len(), contents.end(), contents.whole()), (3, 8, None));
    }

    #[test]
    fn without_gaps() {
        let contents = DwordContents::from_dwords(vec![1, 2, 3]);
        let mut pushed = DwordContents::new();
        assert!([1, 2, 3].into_iter().zip(0..).all(|(value, at)| pushed.push(at, value)));
        assert_eq!(contents, pushed);
        assert_eq!(contents.whole(), Some(&[1, 2, 3][..]));
        assert_eq!(contents.from(1), [2, 3]);
        assert_eq!(DwordContents::new().whole(), Some(&[][..]));
    }

    #[test]
    fn in_any_order() {
        let contents = DwordContents::from_pairs(vec![(6, 60), (7, 70), (0, 1), (1, 10), (6, 61)]);
        assert_eq!(contents.runs().collect::<Vec<_>>(), [(0, &[1, 10][..]), (6, &[60, 70])]);
    }

    #[test]
    fn the_last_offset_there_is() {
        let mut contents = DwordContents::new();
        assert!(contents.push(u64::MAX, 1));
        assert!(!contents.push(0, 2));
        assert_eq!(contents.end(), u64::MAX);
        assert_eq!(contents.get(u64::MAX), Some(1));
    }
}
