//! The values of a subgroup: bits of every slot and invocation, and which of them are poison.

/// Invocations of a subgroup, one bit each.
pub(super) type Mask = u128;

/// The most invocations of a subgroup.
pub(super) const MAX_WIDTH: usize = 128;

/// The invocations of a mask, lowest first.
pub(super) fn invocations(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lowest = (mask != 0).then(|| mask.trailing_zeros() as usize)?;
        mask &= mask - 1;
        Some(lowest)
    })
}

/// The first invocations.
pub(super) fn first(count: usize) -> Mask {
    if count >= MAX_WIDTH { Mask::MAX } else { (1 << count) - 1 }
}

/// The values of a subgroup.
#[derive(Debug)]
pub(super) struct Registers {
    width: usize,
    bits: Vec<u64>,
    poison: Vec<Mask>,
}

impl Registers {
    /// Everything is poison.
    pub fn new(slots: usize, width: usize) -> Registers {
        Registers { width, bits: vec![0; slots * width], poison: vec![Mask::MAX; slots] }
    }

    /// Bytes that registers take.
    pub fn bytes(slots: usize, width: usize) -> u64 {
        slots as u64 * (width as u64 * 8 + 16)
    }

    /// Bits of a slot in an invocation.
    pub fn bits(&self, slot: usize, invocation: usize) -> u64 {
        self.bits[slot * self.width + invocation]
    }

    /// Invocations in which a slot is poison.
    pub fn poison(&self, slot: usize) -> Mask {
        self.poison[slot]
    }

    /// Whether a slot is poison in an invocation.
    pub fn is_poison(&self, slot: usize, invocation: usize) -> bool {
        self.poison[slot] >> invocation & 1 != 0
    }

    /// The bits, if they are not poison.
    pub fn defined(&self, slot: usize, invocation: usize) -> Option<u64> {
        (!self.is_poison(slot, invocation)).then(|| self.bits(slot, invocation))
    }

    /// Sets a slot in an invocation.
    pub fn set(&mut self, slot: usize, invocation: usize, bits: u64, poison: bool) {
        self.bits[slot * self.width + invocation] = bits;
        let bit = 1 << invocation;
        self.poison[slot] = self.poison[slot] & !bit | if poison { bit } else { 0 };
    }

    /// Makes slots poison in invocations, whose bits become zero.
    pub fn make_poison(&mut self, slots: std::ops::Range<usize>, mask: Mask) {
        for slot in slots {
            self.poison[slot] |= mask;
            for invocation in invocations(mask) {
                self.bits[slot * self.width + invocation] = 0;
            }
        }
    }
}
