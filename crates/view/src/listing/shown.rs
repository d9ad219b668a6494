//! Which indirect buffers have been shown in which modes, for listings that show each only once.

use std::collections::HashMap;

/// Places remembered per buffer. cffdump forgets all of a buffer's when there is one more, and listings are to be like
/// its.
const PLACES: usize = 255;

/// What has been shown.
#[derive(Debug, Default)]
pub struct ShownTexts {
    /// By address of a buffer object: offsets inside it, and the modes in which what begins there has been shown.
    buffers: HashMap<u64, Vec<(u64, u8)>>,
}

impl ShownTexts {
    /// What lies at this offset of a buffer is about to be shown in these modes. Returns whether it has been in all of
    /// them.
    pub fn again(&mut self, buffer: u64, offset: u64, modes: u8) -> bool {
        let places = self.buffers.entry(buffer).or_default();
        if let Some((_, shown)) = places.iter_mut().find(|(at, _)| *at == offset) {
            let again = *shown & modes == modes;
            *shown |= modes;
            return again;
        }
        if places.len() == PLACES {
            places.clear();
        }
        places.push((offset, modes));
        false
    }

    /// Other buffers may now lie where those were.
    pub fn clear(&mut self) {
        self.buffers.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mode_counts_for_itself() {
        let mut shown = ShownTexts::default();
        assert!(!shown.again(0x1000, 8, 1));
        assert!(shown.again(0x1000, 8, 1));
        assert!(!shown.again(0x1000, 8, 3), "2 is new");
        assert!(shown.again(0x1000, 8, 2));
        assert!(!shown.again(0x2000, 8, 1) && !shown.again(0x1000, 0, 1));
        shown.clear();
        assert!(!shown.again(0x1000, 8, 1));
    }

    #[test]
    fn a_buffer_with_too_many_places_is_forgotten() {
        let mut shown = ShownTexts::default();
        for offset in 0..PLACES as u64 {
            assert!(!shown.again(0, offset, 7));
        }
        assert!(shown.again(0, 0, 7));
        assert!(!shown.again(0, PLACES as u64, 7));
        assert!(shown.again(0, PLACES as u64, 7));
        assert!(!shown.again(0, 0, 7), "forgotten with the others");
    }
}
