//! FNV-1a with 64 bits: the hash by which contents are found again, also in another run. Never: proof that two contents are equal,
//! or protection against somebody who wants them to seem so.

/// A hash that is being made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Fnv1a {
        Fnv1a(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> u64 {
        let mut hash = Fnv1a::default();
        hash.add(bytes);
        hash.value()
    }

    /// Adds bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.add_unit(byte.into());
        }
    }

    /// Adds a number in one step, as if it were a byte: faster than its bytes, and another hash than theirs.
    pub fn add_unit(&mut self, unit: u64) {
        self.0 = (self.0 ^ unit).wrapping_mul(0x0000_0100_0000_01b3);
    }

    /// The hash of everything so far.
    pub fn value(self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vectors of the draft of the IETF (draft-eastlake-fnv, section 7).
    #[test]
    fn vectors() {
        assert_eq!(Fnv1a::of(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(Fnv1a::of(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(Fnv1a::of(b"foobar"), 0x8594_4171_f739_67e8);
    }
}
