//! The buffers that the kernel lists as in use, where it lists all of them.
//!
//! i915 before 5.6 lists the buffers of the requests that are not done and those that are pinned, in each address space. A submit
//! names every buffer that its commands use, so memory that is in none of them was freed, or was never named. Later kernels list
//! nothing, and xe has only what the application asked to have captured: nothing follows from what is absent there.

use super::case::{IntelCase, IntelSource, Unit};
use unwedge_capture::intel::MemoryBlockKind;
use unwedge_stream::intel::walk::canonical;

/// Bytes of GPU addresses that buffers in use have.
pub(super) struct BoundBuffers {
    /// Start and end, in order; none overlaps another.
    ranges: Vec<(u64, u64)>,
    /// Buffers in the lists.
    pub(super) count: u64,
}

impl BoundBuffers {
    /// Those of an engine; `None` where the dump does not list all, and where the batch of the engine is not among them: then the lists are
    /// of something else.
    pub(super) fn of(case: &IntelCase<'_, '_>, unit: &Unit<'_, '_>) -> Option<BoundBuffers> {
        let IntelSource::I915(dump) = case.source else { return None };
        if dump.buffer_lists.iter().any(|list| list.held != list.claimed) {
            return None;
        }
        let end = |address: u64, size: u64| address.saturating_add(size);
        let mut ranges: Vec<(u64, u64)> =
            dump.buffers.iter().map(|b| (canonical(b.address), end(canonical(b.address), b.size))).collect();
        ranges.sort_unstable();
        ranges.dedup_by(|next, before| {
            let overlaps = next.0 <= before.1;
            if overlaps {
                before.1 = before.1.max(next.1);
            }
            overlaps
        });
        let bound = BoundBuffers { ranges, count: dump.buffers.len() as u64 };
        let batches = case.blocks_of(unit, MemoryBlockKind::Batch).filter_map(|block| block.address);
        let found = batches.map(|address| bound.has_some(address, 1)).reduce(|all, one| all && one);
        found.unwrap_or(false).then_some(bound)
    }

    /// Whether one of so many bytes at an address is in a buffer.
    pub(super) fn has_some(&self, address: u64, bytes: u64) -> bool {
        let (start, end) = (canonical(address), canonical(address).saturating_add(bytes.max(1)));
        let before_end = self.ranges.partition_point(|range| range.0 < end);
        self.ranges[..before_end].last().is_some_and(|range| range.1 > start)
    }
}
