//! Rings: pointers that wrap, and contents in the order they were written.

/// A pointer reduced to the ring: a dword index below `size`. Pointers of 64 bits count all dwords ever written.
pub fn reduce(pointer: u64, mask: Option<u32>, size: u64) -> Option<u64> {
    let masked = match mask {
        Some(mask) => pointer & u64::from(mask),
        None if size.is_power_of_two() => pointer & (size - 1),
        None => pointer,
    };
    (masked < size).then_some(masked)
}

/// The dwords of a ring from the oldest to the newest, with the index in the ring at which they start. `wptr` is where
/// the next dword goes: the oldest one is there.
pub fn in_order(dwords: &[u32], wptr: u64) -> (Vec<u32>, u64) {
    let at = usize::try_from(wptr).unwrap_or(usize::MAX).min(dwords.len());
    let (newer, older) = dwords.split_at(at);
    ([older, newer].concat(), if older.is_empty() { 0 } else { wptr })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_wrap() {
        assert_eq!(reduce(0x1_0003, Some(0xff), 256), Some(3));
        assert_eq!(reduce(0x1_0003, None, 256), Some(3));
        assert_eq!(reduce(300, None, 100), None, "nothing says where it wraps");
        assert_eq!(reduce(300, Some(0xfff), 256), None, "the mask is of a larger ring");
        assert_eq!(reduce(0, None, 0), None);
    }

    #[test]
    fn the_oldest_dword_is_where_the_next_one_goes() {
        assert_eq!(in_order(&[1, 2, 3, 4], 1), (vec![2, 3, 4, 1], 1));
        assert_eq!(in_order(&[1, 2], 0), (vec![1, 2], 0));
        assert_eq!(in_order(&[1, 2], 2), (vec![1, 2], 0));
        assert_eq!(in_order(&[], 9), (vec![], 0));
    }
}
