//! The hash by which the contents of dumps are found again: FNV-1a with 64 bits. Never: proof that two dumps are equal, for which
//! their bytes are compared.

/// A hash that is being made.
#[derive(Clone, Copy, Debug)]
pub struct ContentHash(u64);

impl Default for ContentHash {
    fn default() -> ContentHash {
        ContentHash(0xcbf2_9ce4_8422_2325)
    }
}

impl ContentHash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = ContentHash::default();
        hash.add(bytes);
        hash.value()
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }

    /// The hash of all bytes so far.
    pub fn value(self) -> u64 {
        self.0
    }
}
