//! Instructions as words, and words as instructions.
//!
//! Both directions read the same table: a variant's slots and modifiers name fields, the generation's layout says where
//! those are. Words that no row has are no instruction; there is no second reading.

mod decode;
mod encode;
mod mem;

pub use decode::{SizedInst, decode, decode_executed, decode_executed_into, decode_into, half_bit, readings};
pub(super) use decode::{empty_sources, has_short_literal, name_halves, small_dwords, source_of};
pub use encode::{InstEncodeError, encode};

/// `s_nop 0`, on every GPU: what code is filled up with.
pub const NOP: u32 = 0xbf80_0000;

/// The words of one instruction: up to six dwords.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct InstWords {
    words: [u32; 6],
    count: u8,
}

impl InstWords {
    /// The dwords.
    pub fn as_slice(&self) -> &[u32] {
        self.words.get(..usize::from(self.count)).unwrap_or_default()
    }

    /// How many bytes they are.
    pub fn len(&self) -> usize {
        usize::from(self.count) * 4
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Appends them as bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        for word in self.as_slice() {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }

    /// Flips bits of each dword that is there.
    pub(super) fn flip(&mut self, bits: &[u32]) {
        for (word, bits) in self.words.iter_mut().take(self.count.into()).zip(bits) {
            *word ^= bits;
        }
    }

    pub(super) fn push(&mut self, word: u32) {
        if let Some(place) = self.words.get_mut(usize::from(self.count)) {
            *place = word;
            self.count += 1;
        }
    }
}
