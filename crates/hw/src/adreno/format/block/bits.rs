//! Bits of a block of 128, from the lowest up.

pub(super) struct Bits {
    rest: u128,
}

impl Bits {
    pub(super) fn new(bytes: [u8; 16]) -> Bits {
        Bits { rest: u128::from_le_bytes(bytes) }
    }

    /// The next `count` bits, up to 32; zeros after the last.
    pub(super) fn take(&mut self, count: u32) -> u32 {
        let value = (self.rest & ((1 << count) - 1)) as u32;
        self.rest >>= count;
        value
    }
}

/// `a` to `b` in 64 steps, rounded.
pub(super) fn interpolate(a: i32, b: i32, weight: i32) -> i32 {
    (a * (64 - weight) + b * weight + 32) >> 6
}

/// Weights of indices of two, three and four bits.
pub(super) fn weight(bits: u32, index: u32) -> i32 {
    const TWO: [i32; 4] = [0, 21, 43, 64];
    const THREE: [i32; 8] = [0, 9, 18, 27, 37, 46, 55, 64];
    const FOUR: [i32; 16] = [0, 4, 9, 13, 17, 21, 26, 30, 34, 38, 43, 47, 51, 55, 60, 64];
    match bits {
        2 => TWO[index as usize & 3],
        3 => THREE[index as usize & 7],
        _ => FOUR[index as usize & 15],
    }
}
