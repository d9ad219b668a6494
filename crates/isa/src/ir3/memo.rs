//! The lines that words came to lately: shaders repeat themselves, and so do the shaders of a program.
//!
//! Never: more memory than its fixed size, about 7 MB, of which only what is used is touched.

/// So many bits select the pair of slots a word may have.
const PAIR_BITS: u32 = 15;
/// Longer lines are not remembered.
const MAX_LINE: usize = 103;
/// The word, the length of its line (0: free), the line.
type Slot = [u8; 8 + 1 + MAX_LINE];

/// Texts of words, for one purpose: one GPU and one way of writing. A new word takes the slot of the older of its pair.
#[derive(Clone, Debug)]
pub struct Memo {
    pairs: Vec<[Slot; 2]>,
}

impl Default for Memo {
    fn default() -> Memo {
        Memo { pairs: vec![[[0; size_of::<Slot>()]; 2]; 1 << PAIR_BITS] }
    }
}

impl Memo {
    /// Appends the text of `word`: what `write` appended when it was last asked, else what it appends now. `write` has
    /// to append the same for the same word, always.
    #[inline]
    pub fn append(&mut self, word: u64, out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        let at = (word.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - PAIR_BITS)) as usize;
        let Some(pair) = self.pairs.get_mut(at) else { return write(out) };
        if let Some(known) = pair.iter().find_map(|slot| line(slot, word)) {
            return out.extend_from_slice(known);
        }
        let start = out.len();
        write(out);
        let new = out.get(start..).unwrap_or_default();
        if new.len() <= MAX_LINE {
            pair.swap(0, 1);
            let bytes = word.to_le_bytes().into_iter().chain([new.len() as u8]).chain(new.iter().copied());
            pair[0].iter_mut().zip(bytes).for_each(|(to, byte)| *to = byte);
        }
    }
}

/// The line of a slot, when it is the word's.
#[inline]
fn line(slot: &Slot, word: u64) -> Option<&[u8]> {
    let (owner, rest) = slot.split_first_chunk()?;
    let (&length, text) = rest.split_first()?;
    if u64::from_le_bytes(*owner) != word || length == 0 {
        return None;
    }
    text.get(..usize::from(length))
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE, Memo, PAIR_BITS};

    fn append(memo: &mut Memo, word: u64, text: &[u8]) -> Vec<u8> {
        let mut out = b"before ".to_vec();
        memo.append(word, &mut out, |out| out.extend_from_slice(text));
        out
    }

    #[test]
    fn a_word_is_written_once() {
        let mut memo = Memo::default();
        assert_eq!(append(&mut memo, 7, b"seven"), b"before seven");
        assert_eq!(append(&mut memo, 7, b"not asked"), b"before seven");
        assert_eq!(append(&mut memo, 0, b"zero"), b"before zero");
    }

    #[test]
    fn more_words_than_slots_take_them_from_each_other() {
        let mut memo = Memo::default();
        for _ in 0..2 {
            for word in 0..5u64 << PAIR_BITS {
                let text = format!("{word:x}");
                assert_eq!(append(&mut memo, word, text.as_bytes())[7..], *text.as_bytes());
            }
        }
    }

    #[test]
    fn what_is_long_or_nothing_is_asked_for_again() {
        let mut memo = Memo::default();
        let long = [b'x'; MAX_LINE + 1];
        for text in [&long[..], b"", b"short"] {
            assert_eq!(append(&mut memo, 1, text)[7..], *text);
        }
    }
}
