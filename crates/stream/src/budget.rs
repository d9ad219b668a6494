//! How much of a stream a walk may visit.

use unwedge_base::Memory;

/// More of them, for each dword that the memory holds. A frame is walked once for each of its bins, of which there may
/// be some dozens.
const BUDGET_PER_DWORD: u64 = 64;
/// Dwords that a walk over small memory may take: a full ring, and its buffers for each of many bins.
pub(crate) const BUDGET: u64 = 1 << 20;

/// Dwords after which to give up, for what this memory holds: buffers that call each other make a few of them walk
/// forever. A nested stream and a draw count as some dwords more than they have.
pub fn budget(memory: &Memory) -> u64 {
    memory.stored().saturating_mul(BUDGET_PER_DWORD).saturating_add(BUDGET)
}
