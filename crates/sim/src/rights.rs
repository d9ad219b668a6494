//! What pages of memory do not allow: writes, or accesses that are not privileged.
//!
//! Never: which pages are mapped.

use crate::fault::MemoryAccess;
use std::collections::BTreeMap;

/// What a page does not allow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct PageRights {
    /// Writes.
    pub(crate) read_only: bool,
    /// Accesses that are not privileged.
    pub(crate) privileged: bool,
}

impl PageRights {
    fn refuses(self, access: MemoryAccess, privileged: bool) -> bool {
        self.read_only && access == MemoryAccess::Write || self.privileged && !privileged
    }
}

/// Ranges of pages that do not allow every access, by their first byte, with their last one. They do not overlap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RightsTable(BTreeMap<u64, (u64, PageRights)>);

impl RightsTable {
    /// Restricts a range, in place of what it had.
    pub(crate) fn add(&mut self, first: u64, last: u64, rights: PageRights) {
        self.remove(first, last);
        if rights != PageRights::default() {
            self.0.insert(first, (last, rights));
        }
    }

    /// Takes the restrictions of a range away.
    pub(crate) fn remove(&mut self, first: u64, last: u64) {
        let cut: Vec<(u64, u64, PageRights)> = self.within(first, last).collect();
        for (start, end, rights) in cut {
            self.0.remove(&start);
            if start < first {
                self.0.insert(start, (first - 1, rights));
            }
            if end > last {
                self.0.insert(last + 1, (end, rights));
            }
        }
    }

    /// Whether anything in a range is restricted.
    pub(crate) fn has_any(&self, first: u64, last: u64) -> bool {
        self.within(first, last).next().is_some()
    }

    /// Whether an access to so many bytes is refused.
    #[inline]
    pub(crate) fn refuses(&self, address: u64, size: u64, access: MemoryAccess, privileged: bool) -> bool {
        if self.0.is_empty() {
            return false;
        }
        let last = address.saturating_add(size.saturating_sub(1));
        self.within(address, last).any(|(.., rights)| rights.refuses(access, privileged))
    }

    /// The entries that overlap a range, the last one first.
    fn within(&self, first: u64, last: u64) -> impl Iterator<Item = (u64, u64, PageRights)> {
        let before = self.0.range(..=last).rev().map(|(&start, &(end, rights))| (start, end, rights));
        before.take_while(move |&(_, end, _)| end >= first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_cut_and_replaced() {
        let (read, write) = (MemoryAccess::Read, MemoryAccess::Write);
        let read_only = PageRights { read_only: true, privileged: false };
        let mut table = RightsTable::default();
        table.add(0x1000, 0x4fff, read_only);
        table.add(0x2000, 0x2fff, PageRights { read_only: false, privileged: true });
        assert!(table.refuses(0x1ffc, 4, write, false) && !table.refuses(0x1ffc, 4, read, false));
        assert!(table.refuses(0x1ffe, 4, read, false), "half of it is privileged");
        assert!(!table.refuses(0x2000, 4, write, true) && table.refuses(0x3000, 4, write, true));
        table.remove(0x2800, 0x3fff);
        assert!(table.refuses(0x27ff, 1, read, false) && !table.refuses(0x2800, 8, write, false));
        assert!(table.refuses(0x3ffe, 4, write, false) && !table.has_any(0x2800, 0x3fff));
        table.add(0, u64::MAX, PageRights::default());
        assert_eq!(table, RightsTable::default());
    }
}
