//! Which kept dumps make room: the oldest first, each with its reports, and never the newest.

use crate::name::{DumpStem, KeptName};
use std::collections::BTreeMap;
use std::time::Duration;

/// What a folder of kept dumps may grow to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Budget {
    /// Bytes of all files.
    pub max_total: Option<u64>,
    /// Age of a dump.
    pub max_age: Option<Duration>,
}

/// A kept dump with its reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDump {
    /// Its time and hash.
    pub stem: DumpStem,
    /// Bytes of its files.
    pub bytes: u64,
    /// Their names.
    pub files: Vec<String>,
}

impl KeptDump {
    /// The dumps of a folder with these files, the oldest first. Files of others are left out.
    pub fn list(files: impl IntoIterator<Item = (String, u64)>) -> Vec<KeptDump> {
        let mut dumps: BTreeMap<DumpStem, KeptDump> = BTreeMap::new();
        for (name, bytes) in files {
            let Some(KeptName { stem, .. }) = KeptName::parse(&name) else { continue };
            let none = || KeptDump { stem, bytes: 0, files: Vec::new() };
            let dump = dumps.entry(stem).or_insert_with(none);
            dump.bytes = dump.bytes.saturating_add(bytes);
            dump.files.push(name);
        }
        dumps.into_values().collect()
    }
}

impl Budget {
    /// The dumps to delete, of those in a folder, the oldest first. `now` is in milliseconds since 1970.
    pub fn victims<'d>(&self, dumps: &'d [KeptDump], now: u64) -> &'d [KeptDump] {
        let Some((_, candidates)) = dumps.split_last() else { return &[] };
        let mut total = dumps.iter().fold(0_u64, |sum, dump| sum.saturating_add(dump.bytes));
        let too_old = |dump: &KeptDump| {
            let age = Duration::from_millis(now.saturating_sub(dump.stem.millis));
            self.max_age.is_some_and(|most| age > most)
        };
        let mut count = 0;
        for dump in candidates {
            if !too_old(dump) && self.max_total.is_none_or(|most| total <= most) {
                break;
            }
            total = total.saturating_sub(dump.bytes);
            count += 1;
        }
        &candidates[..count]
    }

    /// The dump to delete when the disk is full: the oldest but the only one, where a size was given.
    pub fn victim_of_full_disk<'d>(&self, dumps: &'d [KeptDump]) -> Option<&'d KeptDump> {
        self.max_total?;
        dumps.split_last()?.1.first()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dumps of 100 bytes with a report of 10, one each second.
    fn dumps(count: u64) -> Vec<KeptDump> {
        let files = (0..count).flat_map(|n| {
            let stem = DumpStem { millis: 1000 * n, hash: n };
            let [dump, text, _] = stem.explained("s", ".gz");
            [(dump, 100), (text, 10)]
        });
        KeptDump::list(files.chain([("notes.txt".to_owned(), 1 << 40)]))
    }

    fn victims(budget: Budget, count: u64, now: u64) -> Vec<u64> {
        let dumps = dumps(count);
        budget.victims(&dumps, now).iter().map(|dump| dump.stem.hash).collect()
    }

    #[test]
    fn the_oldest_go_until_the_rest_fits() {
        let budget = |max_total| Budget { max_total: Some(max_total), max_age: None };
        assert_eq!(victims(budget(440), 4, 0), []);
        assert_eq!(victims(budget(439), 4, 0), [0]);
        assert_eq!(victims(budget(220), 4, 0), [0, 1]);
        assert_eq!(victims(budget(0), 4, 0), [0, 1, 2], "never the newest");
        assert_eq!(victims(budget(0), 1, 0), []);
        assert_eq!(victims(Budget::default(), 4, u64::MAX), [], "without a budget nothing is deleted");
    }

    #[test]
    fn what_is_too_old_goes_but_for_the_newest() {
        let budget = Budget { max_total: None, max_age: Some(Duration::from_secs(2)) };
        assert_eq!(victims(budget, 4, 3000), [0]);
        assert_eq!(victims(budget, 4, 1_000_000), [0, 1, 2]);
        // A clock that was set back makes nothing old.
        assert_eq!(victims(budget, 4, 0), []);
    }

    #[test]
    fn a_full_disk_costs_old_dumps_only_where_a_size_was_given() {
        let dumps = dumps(2);
        let budget = Budget { max_total: Some(1 << 40), max_age: None };
        assert_eq!(budget.victim_of_full_disk(&dumps).map(|dump| dump.stem.hash), Some(0));
        assert_eq!(budget.victim_of_full_disk(&dumps[1..]), None);
        assert_eq!(Budget::default().victim_of_full_disk(&dumps), None);
    }
}
