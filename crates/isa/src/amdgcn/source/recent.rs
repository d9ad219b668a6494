//! Lines that were read lately: what compilers write repeats itself.
//!
//! Never decides what a line means: it only finds an earlier one of the same text.

/// How many lines are remembered, a power of two: one for each value of some bits of a hash.
const SLOTS: usize = 8192;

/// Texts of lines with their numbers.
#[derive(Debug, Default)]
pub(super) struct RecentLines {
    slots: Vec<(String, usize)>,
}

/// Which slot a text has.
fn slot(text: &str) -> usize {
    let mix = |hash: u64, bytes: &[u8]| {
        let word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95)
    };
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    let hash = words.iter().fold(text.len() as u64, |hash, word| mix(hash, word));
    (mix(hash, rest) >> 40) as usize % SLOTS
}

impl RecentLines {
    /// The number of a line of this text.
    pub(super) fn find(&self, text: &str) -> Option<usize> {
        let (known, line) = self.slots.get(slot(text))?;
        (*line != 0 && known == text).then_some(*line)
    }

    /// Remembers a line, in place of another one.
    pub(super) fn keep(&mut self, text: &str, line: usize) {
        if self.slots.is_empty() {
            self.slots.resize_with(SLOTS, Default::default);
        }
        if let Some((known, number)) = self.slots.get_mut(slot(text)) {
            known.clear();
            known.push_str(text);
            *number = line;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_text_alone_is_found() {
        let mut recent = RecentLines::default();
        assert_eq!(recent.find("s_endpgm"), None);
        recent.keep("s_endpgm", 7);
        recent.keep("s_nop 0", 8);
        assert_eq!((recent.find("s_endpgm"), recent.find("s_nop 0")), (Some(7), Some(8)));
        for other in ["", "s_endpgm ", "s_nop 1", "s_endpgn"] {
            assert_eq!(recent.find(other), None, "{other}");
        }
        // One of two that share a slot is forgotten.
        for number in 0..3 * SLOTS {
            let text = format!("v_mov_b32 v0, {number}");
            recent.keep(&text, number + 1);
            assert_eq!(recent.find(&text), Some(number + 1));
        }
    }
}
