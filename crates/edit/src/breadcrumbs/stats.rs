//! What a listener knows of the breadcrumbs that it has received, in bounded memory, whatever comes.
//!
//! Breadcrumbs of one pass count up by one. The GPU writes no number twice in a row, so that one which comes twice in a row was doubled
//! on the way. One that fills a gap is late. One that is smaller than the last and fills none begins another pass over the same
//! stream; if the pass before goes on after it, or after several such in a row, they were doubled and late.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Breadcrumbs whose hits are counted.
const COUNTED: usize = 1 << 16;
/// Gaps that are remembered.
const GAPS: usize = 1 << 12;
/// Numbers that may have been doubled and late before the pass goes on.
const AGAIN: usize = 8;
/// By how many numbers a doubled one is late.
const NEAR: u32 = 8;
/// The rate is that of this time.
const WINDOW: Duration = Duration::from_secs(1);

/// How a breadcrumb fits to those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Receipt {
    /// The first one.
    First,
    /// One more than the last.
    Next,
    /// So many numbers before it have not come.
    Jump(u32),
    /// One of those that had not come.
    Late,
    /// The same as the last one, or doubled and late.
    Doubled,
    /// Smaller than the last: the stream is executed again.
    Again,
}

/// Numbers that have not come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    /// The first.
    pub first: u32,
    /// The last.
    pub last: u32,
}

/// A pass that may go on.
#[derive(Clone, Debug)]
struct LeftPass {
    /// Its last breadcrumb.
    position: u32,
    /// The numbers that came since: each began another pass, or was doubled and late.
    again: Vec<u32>,
}

/// What was received.
#[derive(Clone, Debug, Default)]
pub struct BreadcrumbStats {
    last: Option<u32>,
    /// Where the pass was that another has begun after, while it may go on.
    left: Option<LeftPass>,
    hits: HashMap<u32, u64>,
    gaps: BTreeMap<u32, u32>,
    window: Option<(Duration, u64, u64)>,
    /// Breadcrumbs, doubled ones left out.
    pub received: u64,
    /// Datagrams of another size.
    pub malformed: u64,
    /// Datagrams that were doubled on the way.
    pub doubled: u64,
    /// Breadcrumbs that came after later ones.
    pub late: u64,
    /// Times that a stream was begun again.
    pub passes: u64,
    /// Breadcrumbs beyond those whose hits are counted.
    pub not_counted: u64,
    /// Gaps beyond those that are remembered.
    pub more_gaps: u64,
}

impl BreadcrumbStats {
    /// Takes a breadcrumb, at a time since the listener began.
    pub fn take(&mut self, breadcrumb: u32, now: Duration) -> Receipt {
        let receipt = self.place(breadcrumb);
        if receipt == Receipt::Doubled {
            self.doubled += 1;
            return receipt;
        }
        self.received += 1;
        self.count(breadcrumb);
        self.tick(now, 1);
        receipt
    }

    /// Takes down a datagram of another size.
    pub fn malformed(&mut self) {
        self.malformed += 1;
    }

    fn place(&mut self, breadcrumb: u32) -> Receipt {
        let Some(last) = self.last else {
            self.last = Some(breadcrumb);
            return Receipt::First;
        };
        if breadcrumb == last {
            return Receipt::Doubled;
        }
        if self.fill(breadcrumb) {
            self.late += 1;
            return Receipt::Late;
        }
        let (mut last, left) = (last, self.left.take());
        if let Some(left) = left {
            let next = last.checked_add(1) == Some(breadcrumb);
            // The last one of the pass before, doubled, too. One far from what seemed to begin a pass is more likely of that pass.
            let repeated = breadcrumb == left.position && breadcrumb.abs_diff(last) <= NEAR;
            if !next && (breadcrumb > left.position || repeated) {
                // The pass before goes on: what seemed to begin others was doubled.
                self.take_back(&left.again);
                last = left.position;
                if repeated {
                    self.last = Some(last);
                    return Receipt::Doubled;
                }
            } else if breadcrumb < last && left.again.len() < AGAIN {
                self.left = Some(left);
            }
        }
        self.last = Some(breadcrumb);
        if breadcrumb < last {
            let left = self.left.get_or_insert_with(|| LeftPass { position: last, again: Vec::new() });
            left.again.push(breadcrumb);
            self.passes += 1;
            return Receipt::Again;
        }
        let missing = breadcrumb - last - 1;
        if missing == 0 {
            return Receipt::Next;
        }
        if self.gaps.len() < GAPS {
            self.gaps.insert(last + 1, breadcrumb - 1);
        } else {
            self.more_gaps += 1;
        }
        Receipt::Jump(missing)
    }

    /// Counts numbers as doubled that were counted as the beginnings of passes.
    fn take_back(&mut self, again: &[u32]) {
        let count = again.len() as u64;
        self.passes = self.passes.saturating_sub(count);
        self.received = self.received.saturating_sub(count);
        self.doubled += count;
        for number in again {
            if let Some(hits) = self.hits.get_mut(number) {
                *hits = hits.saturating_sub(1);
            }
        }
    }

    /// Takes a number out of the gap that it is in.
    fn fill(&mut self, breadcrumb: u32) -> bool {
        let gap = self.gaps.range(..=breadcrumb).next_back().map(|(first, last)| (*first, *last));
        let Some((first, last)) = gap.filter(|(_, last)| *last >= breadcrumb) else { return false };
        self.gaps.remove(&first);
        if first < breadcrumb {
            self.gaps.insert(first, breadcrumb - 1);
        }
        if breadcrumb < last {
            if self.gaps.len() < GAPS {
                self.gaps.insert(breadcrumb + 1, last);
            } else {
                self.more_gaps += 1;
            }
        }
        true
    }

    fn count(&mut self, breadcrumb: u32) {
        if self.hits.len() < COUNTED || self.hits.contains_key(&breadcrumb) {
            *self.hits.entry(breadcrumb).or_default() += 1;
        } else {
            self.not_counted += 1;
        }
    }

    /// Counts breadcrumbs in windows of time; of each the count of the one before is kept.
    fn tick(&mut self, now: Duration, count: u64) {
        self.window = Some(match self.window {
            Some((start, so_far, before)) if now < start + WINDOW => (start, so_far + count, before),
            Some((start, so_far, _)) if now < start + 2 * WINDOW => (start + WINDOW, count, so_far),
            _ => (now, count, 0),
        });
    }

    /// Where the GPU is: the last breadcrumb in the order of execution.
    pub fn position(&self) -> Option<u32> {
        self.last
    }

    /// How often a breadcrumb came.
    pub fn hits(&self, breadcrumb: u32) -> u64 {
        self.hits.get(&breadcrumb).copied().unwrap_or(0)
    }

    /// Breadcrumbs that came in the last whole second.
    pub fn rate(&self, now: Duration) -> u64 {
        match self.window {
            Some((start, _, before)) if now < start + WINDOW => before,
            Some((start, so_far, _)) if now < start + 2 * WINDOW => so_far,
            _ => 0,
        }
    }

    /// The numbers that have not come.
    pub fn gaps(&self) -> impl Iterator<Item = Gap> {
        self.gaps.iter().map(|(first, last)| Gap { first: *first, last: *last })
    }

    /// How many numbers have not come, of the gaps that are remembered.
    pub fn missing(&self) -> u64 {
        self.gaps().map(|gap| u64::from(gap.last - gap.first) + 1).sum()
    }

    /// Breadcrumbs whose hits are counted.
    pub fn counted(&self) -> usize {
        self.hits.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receive(breadcrumbs: &[u32]) -> (BreadcrumbStats, Vec<Receipt>) {
        let mut stats = BreadcrumbStats::default();
        let receipts = breadcrumbs.iter().map(|n| stats.take(*n, Duration::ZERO)).collect();
        (stats, receipts)
    }

    #[test]
    fn breadcrumbs_in_order_with_two_passes() {
        use Receipt::{Again, First, Next};
        let (stats, receipts) = receive(&[1, 2, 3, 1, 2, 3, 4]);
        assert_eq!(receipts, [First, Next, Next, Again, Next, Next, Next]);
        assert_eq!((stats.position(), stats.hits(3), stats.passes, stats.missing()), (Some(4), 2, 1, 0));
    }

    #[test]
    fn lost_doubled_and_late_breadcrumbs_are_told_apart() {
        use Receipt::{Again, Doubled, First, Jump, Late, Next};
        let (stats, receipts) = receive(&[10, 11, 11, 15, 13, 14, 16, 12, 17, 20]);
        assert_eq!(receipts, [First, Next, Doubled, Jump(3), Late, Late, Next, Late, Next, Jump(2)]);
        assert_eq!(stats.gaps().collect::<Vec<_>>(), [Gap { first: 18, last: 19 }]);
        assert_eq!((stats.received, stats.doubled, stats.late), (9, 1, 3));
        // 21 comes again after 23: no other pass.
        let (stats, receipts) = receive(&[20, 21, 22, 23, 21, 24, 25]);
        assert_eq!(receipts, [First, Next, Next, Next, Again, Next, Next]);
        assert_eq!((stats.passes, stats.doubled, stats.hits(21), stats.received), (0, 1, 1, 6));
        // Two of them in a row; 22 is lost.
        let (stats, receipts) = receive(&[20, 21, 23, 21, 20, 24, 25]);
        assert_eq!(receipts, [First, Next, Jump(1), Again, Again, Next, Next]);
        assert_eq!(stats.gaps().collect::<Vec<_>>(), [Gap { first: 22, last: 22 }]);
        assert_eq!((stats.passes, stats.doubled, stats.received), (0, 2, 5));
        // One that comes again, and then the last one, too.
        let (stats, receipts) = receive(&[20, 21, 22, 23, 21, 23, 24]);
        assert_eq!(receipts, [First, Next, Next, Next, Again, Doubled, Next]);
        assert_eq!((stats.passes, stats.doubled, stats.received, stats.missing()), (0, 2, 5, 0));
    }

    #[test]
    fn the_position_is_right_whatever_the_network_does() {
        let mut seed = 7_u64;
        let mut random = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % below
        };
        for _ in 0..200 {
            let (mut wire, mut lost): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
            for n in 1..=300 {
                match random(10) {
                    // The first and the last arrive.
                    0 if n != 1 && n != 300 => lost.push(n),
                    1 => wire.extend([n, n]),
                    _ => wire.push(n),
                }
            }
            for _ in 0..20 {
                let at = 1 + random(wire.len() as u64 - 6) as usize;
                // Neighbours that are equal were doubled: they stay together.
                wire.swap(at, at + 1);
            }
            let (stats, _) = receive(&wire);
            assert_eq!(stats.position(), Some(300), "{wire:?}");
            let missing: Vec<u32> = stats.gaps().flat_map(|gap| gap.first..=gap.last).collect();
            assert!(missing.iter().all(|n| lost.contains(n)), "{missing:?} {lost:?}");
            assert!(lost.iter().all(|n| missing.contains(n)), "{missing:?} {lost:?} {wire:?}");
        }
    }

    #[test]
    fn a_flood_of_any_numbers_does_not_grow() {
        let mut stats = BreadcrumbStats::default();
        for n in 0..400_000_u32 {
            stats.take(n.wrapping_mul(2_654_435_761), Duration::from_micros(n.into()));
        }
        assert!(stats.counted() <= COUNTED && stats.gaps().count() <= GAPS + 1);
        assert!(stats.not_counted > 0 && stats.missing() > 0);
        for edge in [0, u32::MAX, 0, 1, u32::MAX, u32::MAX - 1] {
            stats.take(edge, Duration::MAX / 4);
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_second() {
        let mut stats = BreadcrumbStats::default();
        for n in 0..100 {
            stats.take(n, Duration::from_millis(20 * u64::from(n)));
        }
        assert_eq!(stats.rate(Duration::from_millis(1990)), 50);
        assert_eq!(stats.rate(Duration::from_millis(2500)), 50);
        assert_eq!(stats.rate(Duration::from_secs(10)), 0);
    }
}
