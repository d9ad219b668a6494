//! Which bytes of memory were written since somebody asked. Never: what they held.

use std::collections::BTreeMap;

/// Ranges that are kept apart. One more, and the nearest before it grows to hold it; where there is none before it, the first.
const RANGES: usize = 1 << 12;

/// Ranges of bytes that were written, by address. Ranges that touch are one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WriteLog {
    /// First byte and last byte.
    ranges: BTreeMap<u64, u64>,
    /// Some ranges hold bytes that were not written: there were too many of them.
    widened: bool,
}

impl WriteLog {
    /// Address and size of each range.
    pub fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(&first, &last)| (first, (last - first).saturating_add(1)))
    }

    /// Whether some of the ranges hold bytes between those that were written.
    pub fn is_widened(&self) -> bool {
        self.widened
    }

    /// Takes down that so many bytes were written.
    pub(crate) fn add(&mut self, address: u64, size: u64) {
        let Some(beyond) = size.checked_sub(1) else { return };
        let (mut first, mut last) = (address, address.saturating_add(beyond));
        if let Some((&start, &end)) = self.ranges.range(..=first).next_back() {
            let full = self.ranges.len() >= RANGES;
            self.widened |= full && end.saturating_add(1) < first;
            if full || end.saturating_add(1) >= first {
                (first, last) = (start, last.max(end));
            }
        } else if self.ranges.len() >= RANGES
            && let Some((&start, &end)) = self.ranges.first_key_value()
        {
            self.widened |= last.saturating_add(1) < start;
            last = last.max(end);
        }
        while let Some((&start, &end)) = self.ranges.range(first..=last.saturating_add(1)).next() {
            self.ranges.remove(&start);
            last = last.max(end);
        }
        self.ranges.insert(first, last);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_that_touch_are_one() {
        let mut log = WriteLog::default();
        for (address, size) in [(0x10, 4), (0x18, 4), (0x40, 1), (0x14, 4), (0x12, 2), (u64::MAX, 1), (8, 0)]
        {
            log.add(address, size);
        }
        assert_eq!(log.ranges().collect::<Vec<_>>(), [(0x10, 12), (0x40, 1), (u64::MAX, 1)]);
        assert!(!log.is_widened());
    }

    #[test]
    fn many_ranges_take_bounded_memory() {
        let mut log = WriteLog::default();
        (0..3 * RANGES as u64).for_each(|n| log.add(0x1000 + 8 * n, 4));
        assert!(log.ranges.len() <= RANGES && log.is_widened());
        let last = log.ranges().last().unwrap();
        assert_eq!(last.0 + last.1, 0x1000 + 8 * (3 * RANGES as u64 - 1) + 4, "none is lost");
        let mut log = WriteLog::default();
        (0..3 * RANGES as u64).rev().for_each(|n| log.add(0x1000 + 8 * n, 4));
        assert!(log.ranges.len() <= RANGES && log.is_widened());
        assert_eq!(log.ranges().next().map(|(first, _)| first), Some(0x1000), "none is lost");
    }
}
