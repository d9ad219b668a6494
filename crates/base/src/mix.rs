//! A fast hash for numbers of entities and small structures, in tables that only this process reads. The seed is drawn once in a process,
//! so that an input cannot choose keys that collide. Never: a hash that is stored, printed, or that decides an order.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, BuildHasherDefault, Hasher, RandomState};
use std::sync::LazyLock;

/// The state before the first number.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0u8));

/// Adds each number by one multiplication to 128 bits, whose halves are combined.
#[derive(Debug, Clone, Copy)]
pub struct MixHasher(u64);

impl Default for MixHasher {
    fn default() -> MixHasher {
        MixHasher(*SEED)
    }
}

impl Hasher for MixHasher {
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(byte.into());
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.write_u64(number.into());
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(number.into());
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9e37_79b9_7f4a_7c15;
        // Without the rotation, a state of zero would be kept by zeros.
        self.0 = (product as u64 ^ (product >> 64) as u64).rotate_left(23) ^ 0x2545_f491_4f6c_dd1d;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A map with the fast hash.
pub type MixMap<K, V> = HashMap<K, V, BuildHasherDefault<MixHasher>>;
/// A set with the fast hash.
pub type MixSet<K> = HashSet<K, BuildHasherDefault<MixHasher>>;

#[cfg(test)]
mod tests {
    use super::*;
    use std::hash::Hash;

    fn hash_of(key: impl Hash) -> u64 {
        let mut hasher = MixHasher::default();
        key.hash(&mut hasher);
        hasher.finish()
    }

    /// A multiplication modulo 2^64 leaves these differences in known bits, where the next number can undo them.
    #[test]
    fn differences_in_high_bits_do_not_cancel() {
        let mut seen = MixSet::default();
        for first in 0..32u64 {
            for second in 0..32u64 {
                assert!(seen.insert(hash_of((first << 59, second))), "{first} {second}");
            }
        }
    }

    #[test]
    fn few_numbers_fill_the_low_bits() {
        let mut buckets = [0u32; 256];
        (0..65_536u32).for_each(|number| buckets[hash_of(number) as usize % 256] += 1);
        let (least, most) = (buckets.iter().min(), buckets.iter().max());
        assert!(least > Some(&150) && most < Some(&400), "{least:?} {most:?}");
    }
}
