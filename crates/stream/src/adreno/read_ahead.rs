//! Where the SQE is when the ROQ has read ahead of it.
//!
//! CP_IBn_BASE and CP_IBn_REM_SIZE say what the ROQ fetches. It fetches through buffers that are called one after the
//! other, so that the SQE may still be in a buffer called before: the one that holds the dword which lies as far back as
//! dwords are left, counted over the buffers in between. Facts: freedreno's documentation and crash decoder. Never:
//! which calls a stream makes.

/// Buffers that the ROQ fetches ahead at one level: the current one and three more.
pub const READ_AHEAD: usize = 4;

/// Dwords in the queue of a level that the SQE has not taken, by the field REM of CP_ROQ_AVAIL_IBn, which counts the dword in
/// work too.
pub fn fetched(rem: u32) -> u32 {
    rem.saturating_sub(1)
}

/// Goes back over buffers by the dwords that are left of them, from the buffer being fetched to those called before it.
/// Returns how many buffers before the first of `sizes` the SQE is in, and how many dwords of that one are left; `None` if
/// more is left than the buffers have.
pub fn count_back(sizes: impl IntoIterator<Item = u64>, left: u64) -> Option<(usize, u64)> {
    let mut left = left;
    for (back, size) in sizes.into_iter().enumerate() {
        // Nothing of a buffer is consumed that has no more dwords than are left.
        if left < size {
            return Some((back, left));
        }
        left -= size;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_may_reach_back_into_buffers_called_before() {
        let sizes = [20, 10, 100];
        for (left, expected) in [(5, (0, 5)), (20, (1, 0)), (25, (1, 5)), (31, (2, 1))] {
            assert_eq!(count_back(sizes, left), Some(expected));
        }
        assert_eq!(count_back(sizes, 130), None, "more is left than was called");
        assert_eq!(count_back([0, 7], 0), Some((1, 0)), "an empty buffer holds no dword");
        assert_eq!((fetched(0), fetched(9)), (0, 8));
    }
}
