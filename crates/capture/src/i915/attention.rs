//! Which threads of EUs waited for a debugger: `TD_ATT before (2): 00000101 …`.
//!
//! Facts: `i915_gpu_error.c` and `intel_gt_debug.c` of Intel's i915 for data centre GPUs (intel-gpu-i915-backports). For each
//! subslice (from gen12.5 on: DSS), in order, it prints both rows of TD_ATT: 4 EUs of 8 threads each. Two EUs that work in lockstep
//! count as one. A subslice that is fused off reads as zero.

use crate::intel::text::decimal;

/// Rows of TD_ATT of a subslice.
const ROWS: usize = 2;
/// EUs of a row.
const EUS: u32 = 4;
/// Threads of an EU.
const THREADS: u32 = 8;

/// The attention bits of all EUs at one time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EuAttention {
    /// When: `before` and `after` the driver halted all threads, `resolved` after a page fault was.
    pub when: String,
    /// Threads that the driver counted.
    pub count: u64,
    /// Rows of TD_ATT, as printed.
    pub rows: Vec<u32>,
    /// Microseconds after the threads were halted.
    pub after_us: Option<i64>,
}

/// A thread of an EU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EuThread {
    /// The subslice or DSS, counted over all slices.
    pub subslice: u32,
    /// The EU, or pair of EUs, in it.
    pub eu: u32,
    /// The thread of the EU.
    pub thread: u32,
}

impl EuAttention {
    pub(super) fn parse(key: &str, value: &str) -> Option<EuAttention> {
        let (when, count) = key.strip_prefix("TD_ATT ")?.split_once(" (")?;
        let (count, _) = decimal(count.strip_suffix(')')?.as_bytes())?;
        let mut words = value.split_whitespace().peekable();
        let mut rows = Vec::new();
        while let Some(row) = words.peek().filter(|word| word.len() == 8) {
            rows.push(u32::from_str_radix(row, 16).ok()?);
            words.next();
        }
        let after = words.next().and_then(|word| word.strip_suffix("us")?.parse().ok());
        Some(EuAttention { when: when.to_owned(), count: u64::try_from(count).ok()?, rows, after_us: after })
    }

    /// The threads whose bits are set.
    pub fn threads(&self) -> impl Iterator<Item = EuThread> {
        self.rows.iter().enumerate().flat_map(|(i, &row)| {
            let set = (0..u32::BITS).filter(move |bit| row >> bit & 1 != 0);
            let (subslice, first) = ((i / ROWS) as u32, (i % ROWS) as u32 * EUS);
            set.map(move |bit| EuThread { subslice, eu: first + bit / THREADS, thread: bit % THREADS })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_threads() {
        let read =
            EuAttention::parse("TD_ATT after (3)", "00000000 00000000 80000001 00000100 250us after FEH");
        let read = read.unwrap();
        assert_eq!((read.when.as_str(), read.count, read.after_us), ("after", 3, Some(250)));
        let threads: Vec<_> = read.threads().map(|t| (t.subslice, t.eu, t.thread)).collect();
        assert_eq!(threads, [(1, 0, 0), (1, 3, 7), (1, 5, 0)]);
        assert_eq!(EuAttention::parse("TD_ATT before (0)", "").unwrap().rows, []);
        for (key, value) in
            [("TD_ATT", "00000000"), ("TD_ATT x", ""), ("TD_CTL", "0"), ("TD_ATT x (1)", "zzzzzzzz")]
        {
            assert_eq!(EuAttention::parse(key, value), None, "{key}");
        }
    }
}
