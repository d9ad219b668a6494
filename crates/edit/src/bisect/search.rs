//! The search for the first bad prefix, and its record as text.
//!
//! A trial of `k` keeps the first `k` of all items. Bad with all and good with none, there is an item whose presence makes the difference.

use std::collections::BTreeMap;
use std::fmt::Write;

/// How a trial ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialVerdict {
    /// The fault does not show.
    Good,
    /// It shows.
    Bad,
    /// The trial could not be judged.
    Skip,
}

impl TrialVerdict {
    const ALL: [TrialVerdict; 3] = [TrialVerdict::Good, TrialVerdict::Bad, TrialVerdict::Skip];

    /// What the exit status of a command means, as for `git bisect run`; `None` for one that ends the search.
    pub fn of_status(status: i32) -> Option<TrialVerdict> {
        match status {
            0 => Some(TrialVerdict::Good),
            125 => Some(TrialVerdict::Skip),
            1..=127 => Some(TrialVerdict::Bad),
            _ => None,
        }
    }

    /// `good`
    pub fn name(self) -> &'static str {
        match self {
            TrialVerdict::Good => "good",
            TrialVerdict::Bad => "bad",
            TrialVerdict::Skip => "skip",
        }
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectStep {
    /// Try with the first so many items.
    Try(usize),
    /// The search is over.
    End(BisectEnd),
}

/// How a search ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BisectEnd {
    /// With this item it is bad, with those before it alone it is good.
    Culprit(usize),
    /// It is one of these, the last included: what is between could not be tried.
    Among(usize, usize),
    /// It is not bad with all items.
    NeverBad,
    /// It is bad without any item.
    AlwaysBad,
    /// All items, or none, could not be tried.
    Untestable,
}

/// What is known of a search.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BisectSearch {
    subject: String,
    fingerprint: u64,
    total: usize,
    known: BTreeMap<usize, TrialVerdict>,
}

/// Why a record is not taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It is something else.
    #[error("line {0} is not of the record of a search")]
    Malformed(usize),
    /// It is of another capture or question.
    #[error("the record is of another capture or another search; remove it to start over")]
    Other,
}

const HEAD: &str = "unwedge bisect 1";

impl BisectSearch {
    /// Nothing is known yet. `subject` says what is searched, on one line; `fingerprint` tells captures apart.
    pub fn new(subject: &str, fingerprint: u64, total: usize) -> BisectSearch {
        let subject = subject.replace(['\n', '\r'], " ");
        BisectSearch { subject, fingerprint, total, known: BTreeMap::new() }
    }

    /// Takes up a search where a record ends.
    ///
    /// # Errors
    /// The text is not a record, or not of this search.
    pub fn resume(self, record: &str) -> Result<BisectSearch, RecordError> {
        let head = self.head();
        let mut lines = record.lines().enumerate();
        for expected in head.lines() {
            match lines.next() {
                Some((0, line)) if line != HEAD => return Err(RecordError::Malformed(1)),
                Some((_, line)) if line == expected => {}
                _ => return Err(RecordError::Other),
            }
        }
        let mut known = BTreeMap::new();
        for (index, line) in lines {
            let malformed = RecordError::Malformed(index + 1);
            let (count, verdict) = line.split_once(' ').ok_or(malformed.clone())?;
            let count: usize = count.parse().map_err(|_| malformed.clone())?;
            let verdict =
                TrialVerdict::ALL.into_iter().find(|v| v.name() == verdict).ok_or(malformed.clone())?;
            if count > self.total {
                return Err(malformed);
            }
            known.insert(count, verdict);
        }
        Ok(BisectSearch { known, ..self })
    }

    fn head(&self) -> String {
        format!("{HEAD}\nsubject {}\ncapture {:016x}\nitems {}\n", self.subject, self.fingerprint, self.total)
    }

    /// All that is known, as text for [`BisectSearch::resume`].
    pub fn record(&self) -> String {
        let mut text = self.head();
        for (count, verdict) in &self.known {
            let _ = writeln!(text, "{count} {}", verdict.name());
        }
        text
    }

    /// The items that are searched.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Trials that were made.
    pub fn trials(&self) -> usize {
        self.known.len()
    }

    /// A trial has ended.
    pub fn learn(&mut self, count: usize, verdict: TrialVerdict) {
        self.known.insert(count, verdict);
    }

    /// Items that the culprit may still be among.
    pub fn left(&self) -> usize {
        let (good, bad) = self.bounds();
        bad.saturating_sub(good)
    }

    /// The most items that are good, and the fewest that are bad.
    fn bounds(&self) -> (usize, usize) {
        let with = |verdict| self.known.iter().filter(move |(_, v)| **v == verdict).map(|(count, _)| *count);
        let bad = with(TrialVerdict::Bad).min().unwrap_or(self.total);
        let good = with(TrialVerdict::Good).filter(|count| *count < bad).max().unwrap_or(0);
        (good, bad)
    }

    /// What to do next.
    pub fn next(&self) -> BisectStep {
        match self.known.get(&self.total) {
            None => return BisectStep::Try(self.total),
            Some(TrialVerdict::Good) => return BisectStep::End(BisectEnd::NeverBad),
            Some(TrialVerdict::Skip) => return BisectStep::End(BisectEnd::Untestable),
            Some(TrialVerdict::Bad) => {}
        }
        match self.known.get(&0) {
            None => return BisectStep::Try(0),
            Some(TrialVerdict::Bad) => return BisectStep::End(BisectEnd::AlwaysBad),
            Some(TrialVerdict::Skip) => return BisectStep::End(BisectEnd::Untestable),
            Some(TrialVerdict::Good) => {}
        }
        let (good, bad) = self.bounds();
        if bad - good <= 1 {
            return BisectStep::End(BisectEnd::Culprit(good));
        }
        let middle = good + (bad - good) / 2;
        let open = (good + 1..bad).filter(|count| !self.known.contains_key(count));
        match open.min_by_key(|count| count.abs_diff(middle)) {
            Some(count) => BisectStep::Try(count),
            None => BisectStep::End(BisectEnd::Among(good, bad - 1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(total: usize, mut verdict: impl FnMut(usize) -> TrialVerdict) -> (BisectEnd, usize) {
        let mut search = BisectSearch::new("draws", 7, total);
        loop {
            match search.next() {
                BisectStep::Try(count) => {
                    search.learn(count, verdict(count));
                    // As if killed after every trial.
                    let record = search.record();
                    search = BisectSearch::new("draws", 7, total).resume(&record).expect("its own record");
                }
                BisectStep::End(end) => return (end, search.trials()),
            }
        }
    }

    #[test]
    fn every_culprit_of_a_thousand_takes_twelve_trials_at_most() {
        for culprit in 0..1000 {
            let bad = |count| if count > culprit { TrialVerdict::Bad } else { TrialVerdict::Good };
            let (end, trials) = search(1000, bad);
            assert_eq!(end, BisectEnd::Culprit(culprit));
            assert!(trials <= 12, "{trials}");
        }
    }

    #[test]
    fn what_cannot_be_tried_leaves_a_range() {
        let verdict = |count| match count {
            40..=45 => TrialVerdict::Skip,
            46.. => TrialVerdict::Bad,
            _ => TrialVerdict::Good,
        };
        assert_eq!(search(100, verdict).0, BisectEnd::Among(39, 45));
        assert_eq!(search(100, |_| TrialVerdict::Good).0, BisectEnd::NeverBad);
        assert_eq!(search(100, |_| TrialVerdict::Bad).0, BisectEnd::AlwaysBad);
        assert_eq!(search(100, |_| TrialVerdict::Skip).0, BisectEnd::Untestable);
        assert_eq!(search(0, |_| TrialVerdict::Bad).0, BisectEnd::AlwaysBad);
    }

    #[test]
    fn records_of_other_searches_and_other_texts_are_refused() {
        let fresh = || BisectSearch::new("draws", 7, 10);
        let record = fresh().record();
        assert!(fresh().resume(&record).is_ok());
        for other in [BisectSearch::new("packets", 7, 10), BisectSearch::new("draws", 8, 10)] {
            assert_eq!(other.resume(&record), Err(RecordError::Other));
        }
        assert_eq!(fresh().resume("x"), Err(RecordError::Malformed(1)));
        for line in ["3", "x good", "3 maybe", "11 bad", "-1 good", ""] {
            assert_eq!(
                fresh().resume(&format!("{record}{line}\n")),
                Err(RecordError::Malformed(5)),
                "{line}"
            );
        }
    }

    #[test]
    fn exit_statuses_mean_what_git_bisect_run_takes_them_for() {
        let statuses = [0, 1, 124, 125, 126, 127, 128, 255];
        let names = statuses.map(|status| TrialVerdict::of_status(status).map_or("end", TrialVerdict::name));
        assert_eq!(names, ["good", "bad", "bad", "skip", "bad", "bad", "end", "end"]);
    }
}
