//! Sets of bytes of a page: a bit for each byte, a word for each line.

use super::PAGE;

/// Which bytes of a page are in a range of addresses: the first, and the one after the last.
pub(super) fn within_page(number: u64, first: u64, last: u64) -> (usize, usize) {
    let start = number * PAGE as u64;
    let from = first.saturating_sub(start) as usize;
    let to = (last - start).min(PAGE as u64 - 1) as usize;
    (from, to + 1)
}

/// The first bit that is set, from a bit on.
pub(super) fn next_bit(bits: u64, from: u32) -> Option<u32> {
    let rest = bits.checked_shr(from).filter(|rest| *rest != 0)?;
    Some(from + rest.trailing_zeros())
}

/// Up to eight bits from one on, the lowest first.
pub(super) fn bits_at(bits: &[u64; PAGE / 64], at: usize) -> u64 {
    let next = bits.get(at / 64 + 1).copied().unwrap_or(0);
    let both = u128::from(bits[at / 64]) | u128::from(next) << 64;
    (both >> (at % 64)) as u64
}

/// Whether the bits of so many bytes are set.
pub(super) fn all_set(bits: &[u64; PAGE / 64], at: usize, size: usize) -> bool {
    (at..at + size).all(|at| bits[at / 64] >> (at % 64) & 1 != 0)
}

/// Sets the bits from one up to another.
pub(super) fn set_range(bits: &mut [u64; PAGE / 64], at: usize, end: usize) {
    for (word, bits) in bits.iter_mut().enumerate().take(end.div_ceil(64)).skip(at / 64) {
        let (from, to) = (at.saturating_sub(64 * word), (end - 64 * word).min(64));
        *bits |= u64::MAX >> (64 - (to - from)) << from;
    }
}

/// Sets the bits of up to eight bytes.
pub(super) fn set_all(bits: &mut [u64; PAGE / 64], at: usize, size: usize) {
    let mask = (1 << size) - 1;
    bits[at / 64] |= mask << (at % 64);
    if at % 64 + size > 64 {
        bits[at / 64 + 1] |= mask >> (64 - at % 64);
    }
}
