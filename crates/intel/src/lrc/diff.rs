//! What differs between two contexts, by register.

use super::commands::{SavedRegister, registers};
use std::collections::BTreeMap;

/// A register that is not the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangedRegister {
    /// Its offset, in the bits that count.
    pub register: u32,
    /// Which one of those with this offset: some are loaded several times.
    pub nth: usize,
    /// In the first image; none where that does not load it.
    pub a: Option<SavedRegister>,
    /// In the second.
    pub b: Option<SavedRegister>,
}

/// The registers that two images load with other values, or that only one of them loads, in the order of the first image and
/// then of the second. `mask`: the bits of offsets that count where these are relative.
pub fn diff(a: &[u32], b: &[u32], mask: u32) -> Vec<ChangedRegister> {
    let (a, b) = (keyed(a, mask), keyed(b, mask));
    let in_b: BTreeMap<(u32, usize), SavedRegister> = b.iter().copied().collect();
    let in_a: BTreeMap<(u32, usize), SavedRegister> = a.iter().copied().collect();
    let of_a = a.iter().map(|&(key, saved)| (key, Some(saved), in_b.get(&key).copied()));
    let of_b =
        b.iter().filter(|(key, _)| !in_a.contains_key(key)).map(|&(key, saved)| (key, None, Some(saved)));
    let differ = of_a.chain(of_b).filter(|(_, a, b)| a.map(|s| s.value) != b.map(|s| s.value));
    differ.map(|((register, nth), a, b)| ChangedRegister { register, nth, a, b }).collect()
}

/// A register's offset in the bits that count, and how many of the same came before it.
type RegisterKey = (u32, usize);

fn keyed(words: &[u32], mask: u32) -> Vec<(RegisterKey, SavedRegister)> {
    let mut seen: BTreeMap<u32, usize> = BTreeMap::new();
    let key = |saved: SavedRegister| {
        let register = if saved.relative { saved.offset & mask } else { saved.offset };
        let nth = seen.entry(register).or_default();
        *nth += 1;
        ((register, *nth - 1), saved)
    };
    registers(words).map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::super::commands::{BATCH_END, LOAD_RELATIVE, load};
    use super::*;

    #[test]
    fn registers_are_compared_by_offset() {
        let a = [0, load(3), 0x2034, 1, 0x2588, 5, 0x2588, 6, BATCH_END];
        let b = [load(3), 0x2588, 5, 0x2588, 7, 0x2030, 2, BATCH_END];
        let changed: Vec<_> = diff(&a, &b, u32::MAX)
            .into_iter()
            .map(|c| (c.register, c.nth, c.a.and_then(|s| s.value), c.b.and_then(|s| s.value)))
            .collect();
        assert_eq!(
            changed,
            [(0x2034, 0, Some(1), None), (0x2588, 1, Some(6), Some(7)), (0x2030, 0, None, Some(2))]
        );
        assert_eq!(diff(&a, &a, u32::MAX), []);
    }

    #[test]
    fn relative_offsets_are_compared_in_the_bits_that_count() {
        let of = |offset| [load(1) | LOAD_RELATIVE, offset, 1, BATCH_END];
        assert_eq!(diff(&of(0x1c_0034), &of(0x1d_0034), 0x3fff), []);
        assert_eq!(diff(&of(0x1c_0034), &of(0x1d_0034), u32::MAX).len(), 2);
    }
}
