//! The words of lines that were assembled lately: shaders repeat themselves, in `nop`s, waits and address arithmetic.
//!
//! A direct-mapped table, of fixed size: a new line takes the place of the one that was there. It holds whole texts, so
//! an answer is never another line's.

/// Slots, a power of two; each is a cache line.
const SLOTS: usize = 1 << 13;
/// Words of a slot that hold the text, with its length in the last byte.
const TEXT: usize = 7;
/// Bytes of the longest text that is kept.
const LONGEST: usize = TEXT * 8 - 1;

/// What identifies a text.
#[derive(Clone, Copy)]
pub(super) struct TextKey {
    text: [u64; TEXT],
    slot: usize,
}

/// The table.
pub(super) struct RecentTexts {
    /// Text and word. A slot of zeros is empty: no text has the length 0.
    slots: Box<[[u64; TEXT + 1]]>,
}

impl RecentTexts {
    pub fn new() -> RecentTexts {
        RecentTexts { slots: vec![[0; TEXT + 1]; SLOTS].into_boxed_slice() }
    }

    /// The word of a text, if it is still here.
    #[inline]
    pub fn find(&self, key: &TextKey) -> Option<u64> {
        let [text @ .., word] = &self.slots[key.slot];
        // Without a branch per word.
        let differing = text.iter().zip(&key.text).fold(0, |all, (a, b)| all | (a ^ b));
        (differing == 0).then_some(*word)
    }

    /// Keeps the word of a text.
    pub fn keep(&mut self, key: &TextKey, word: u64) {
        let slot = &mut self.slots[key.slot];
        slot[..TEXT].copy_from_slice(&key.text);
        slot[TEXT] = word;
    }
}

impl TextKey {
    /// The key of a text; none for an empty one, and for one that is too long to be kept.
    #[inline]
    pub fn of(text: &[u8]) -> Option<TextKey> {
        if text.is_empty() || text.len() > LONGEST {
            return None;
        }
        const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
        let mut words = [0; TEXT];
        let (whole, rest) = text.as_chunks::<8>();
        for (word, &bytes) in words.iter_mut().zip(whole) {
            *word = u64::from_le_bytes(bytes);
        }
        if let Some(word) = words.get_mut(whole.len()) {
            *word = rest.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        words[TEXT - 1] |= (text.len() as u64) << 56;
        let hash = words.iter().fold(0u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(ODD));
        Some(TextKey { text: words, slot: (hash >> 40) as usize & (SLOTS - 1) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_until_another_takes_its_slot() {
        let mut recent = RecentTexts::new();
        let key = TextKey::of(b"nop").unwrap();
        assert_eq!(recent.find(&key), None);
        recent.keep(&key, 5);
        assert_eq!(recent.find(&key), Some(5));
        let other = TextKey { text: TextKey::of(b"end").unwrap().text, slot: key.slot };
        assert_eq!(recent.find(&other), None);
        recent.keep(&other, 6);
        assert_eq!((recent.find(&key), recent.find(&other)), (None, Some(6)));
    }

    #[test]
    fn texts_that_differ_have_different_keys() {
        let longest = [b'x'; LONGEST];
        let texts: [&[u8]; 6] = [b"nop", b"nop\0", b"no", b"12345678", b"12345678\0", &longest];
        for (i, a) in texts.iter().enumerate() {
            for b in &texts[..i] {
                assert_ne!(TextKey::of(a).unwrap().text, TextKey::of(b).unwrap().text);
            }
        }
        assert!(TextKey::of(b"").is_none());
        assert!(TextKey::of(&[b'x'; LONGEST + 1]).is_none());
    }
}
