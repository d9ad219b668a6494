//! Short names as numbers, and the hash that finds them in a table. The build script makes the table with the same hash.

/// The bytes of a name of up to 8 as a number.
pub fn packed(name: &[u8]) -> Option<u64> {
    let mut bytes = [0; 8];
    bytes.get_mut(..name.len())?.copy_from_slice(name);
    Some(u64::from_le_bytes(bytes))
}

/// The slot of a key, of 256.
pub fn slot(key: u64, multiplier: u64) -> usize {
    (key.wrapping_mul(multiplier) >> 56) as usize
}
