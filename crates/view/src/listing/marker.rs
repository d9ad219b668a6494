//! The mark at the place where the command processor stopped.
//!
//! A dump says for each IB level which buffer was being read and how many dwords of it were left. The same buffer may
//! run many times, so a deeper level counts only after the mark of the level above was passed.

use super::TextOut;

/// Where the command processor was at one IB level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkTarget {
    /// Address of the buffer; 0 when unknown.
    pub base: u64,
    /// Dwords not read yet.
    pub rem: u32,
    /// The buffer was found among those the level above calls, so its level is known to be the one that stopped.
    pub found: bool,
}

/// IB levels with a target: the ring, IB1, IB2, IB3.
pub const TARGETS: usize = 4;

/// Follows the listing through the levels and says when it has come to the place.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marker {
    targets: [MarkTarget; TARGETS],
    levels: [MarkLevel; TARGETS],
    at: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct MarkLevel {
    base: u64,
    dwords: u64,
    /// The mark was set at this level. Stays so.
    passed: bool,
    /// The place was passed, but a deeper level has a better one.
    seen: bool,
}

impl Marker {
    /// A mark for these places.
    pub fn new(targets: [MarkTarget; TARGETS]) -> Marker {
        Marker { targets, ..Marker::default() }
    }

    /// The current IB level.
    pub fn level(&self) -> usize {
        self.at
    }

    /// One level deeper.
    pub fn descend(&mut self) {
        self.at = self.at.saturating_add(1);
    }

    /// One level up.
    pub fn ascend(&mut self) {
        self.at = self.at.saturating_sub(1);
    }

    /// A buffer begins at the current level.
    pub fn stream(&mut self, base: u64, dwords: u64) {
        if let Some(level) = self.levels.get_mut(self.at) {
            (level.base, level.dwords) = (base, dwords);
        }
    }

    /// Dwords at `iova` are about to be shown. Prints the mark when they are the place; returns whether to highlight.
    pub fn reached(&mut self, iova: u64, dwords: u64, text: &mut TextOut<'_>, color: bool) -> bool {
        self.passes(iova.wrapping_add(dwords.wrapping_mul(4)).wrapping_sub(1), text, color)
    }

    /// The listing has come to `iova`, where nothing is shown.
    pub fn passes(&mut self, iova: u64, text: &mut TextOut<'_>, color: bool) -> bool {
        let (Some(target), Some(level)) = (self.targets.get(self.at), self.levels.get(self.at)) else {
            return false;
        };
        if target.base == 0 || level.seen {
            return false;
        }
        if let Some(above) = self.at.checked_sub(1)
            && self.targets[above].base != 0
            && !(self.levels[above].passed || self.levels[above].seen)
        {
            return false;
        }
        if level.passed {
            return color;
        }
        if target.base != level.base {
            return false;
        }
        // The size and the rest are 32-bit numbers of the dump: more left than there is puts the start after the end.
        let done = (level.dwords as u32).wrapping_sub(target.rem);
        let start = level.base.wrapping_add(u64::from(done.wrapping_mul(4)));
        let end = level.base.wrapping_add(u64::from((level.dwords as u32).wrapping_mul(4)));
        if !(start..=end).contains(&iova) {
            return false;
        }
        let deeper = self.at < 2 && self.targets[self.at + 1].found;
        let level = &mut self.levels[self.at];
        if deeper {
            level.seen = true;
            return false;
        }
        level.passed = true;
        text.str("ESTIMATED CRASH LOCATION!").end();
        color
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marks(marker: &mut Marker, iova: u64, dwords: u64) -> bool {
        let mut out = Vec::new();
        let mut text = TextOut::new(&mut out, u64::MAX);
        marker.reached(iova, dwords, &mut text, false);
        text.finish();
        !out.is_empty()
    }

    fn ib1(rem: u32) -> Marker {
        let target = MarkTarget { base: 0x1000, rem, found: true };
        let mut marker =
            Marker::new([MarkTarget::default(), target, MarkTarget::default(), MarkTarget::default()]);
        marker.descend();
        marker.stream(0x1000, 12);
        marker
    }

    #[test]
    fn the_first_packet_that_ends_in_the_rest_is_marked_once() {
        let mut marker = ib1(5);
        assert!(!marks(&mut marker, 0x1000, 2));
        assert!(!marks(&mut marker, 0x1018, 1), "ends where the rest begins");
        assert!(marks(&mut marker, 0x101c, 1));
        assert!(!marks(&mut marker, 0x1020, 1));
    }

    #[test]
    fn another_buffer_is_not_marked() {
        let mut marker = ib1(5);
        marker.stream(0x2000, 12);
        assert!(!marks(&mut marker, 0x101c, 1));
    }

    #[test]
    fn a_deeper_place_takes_the_mark() {
        let at = |base, rem| MarkTarget { base, rem, found: true };
        let mut marker =
            Marker::new([MarkTarget::default(), at(0x1000, 12), at(0x3000, 2), MarkTarget::default()]);
        marker.descend();
        marker.descend();
        marker.stream(0x3000, 4);
        assert!(!marks(&mut marker, 0x3008, 2), "the level above has not come to its place yet");
        marker.ascend();
        marker.stream(0x1000, 12);
        assert!(!marks(&mut marker, 0x1000, 4));
        marker.descend();
        marker.stream(0x3000, 4);
        assert!(marks(&mut marker, 0x3008, 2));
    }
}
