//! The writer every listing goes through: one buffer, handed on in large pieces, and number formatting without the
//! formatting machinery. Never: what the text means.

use super::disasm::{Listings, TEXT_PER_DWORD};
use std::io::Write;

/// Bytes collected before they are handed on.
const PIECE: usize = 64 << 10;

/// Buffered text.
pub struct TextOut<'o> {
    buffer: Vec<u8>,
    out: &'o mut dyn Write,
    /// Bytes that may still be handed on.
    left: u64,
    end: Option<TextEnd>,
    /// Text from here on in the buffer is not for showing.
    muted: Option<usize>,
    /// Dwords of code that may still be shown.
    pub(super) code_budget: u64,
    /// Code that has been shown.
    pub(super) listings: Listings,
}

/// Why text is not written any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextEnd {
    /// The receiver does not take it.
    Refused,
    /// There is more of it than allowed.
    TooLong,
}

impl<'o> TextOut<'o> {
    /// Text that goes to `out`, at most about `limit` bytes of it: a few lines of a hostile dump may stand for more
    /// than anybody can read.
    pub fn new(out: &'o mut dyn Write, limit: u64) -> TextOut<'o> {
        TextOut {
            buffer: Vec::with_capacity(PIECE + (PIECE >> 2)),
            out,
            left: limit,
            end: None,
            muted: None,
            code_budget: limit / TEXT_PER_DWORD,
            listings: Listings::default(),
        }
    }

    /// Counts so many bytes of work as if they were text.
    pub fn charge(&mut self, bytes: u64) {
        self.left = self.left.saturating_sub(bytes);
    }

    /// Allows so many bytes more.
    pub fn allow(&mut self, bytes: u64) {
        self.left = self.left.saturating_add(bytes);
        self.code_budget = self.code_budget.saturating_add(bytes / TEXT_PER_DWORD);
    }

    /// The collected bytes, for writers that append by themselves.
    pub fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.buffer
    }

    /// From here on, text is thrown away (or again kept). Returns whether it was before.
    pub fn mute(&mut self, mute: bool) -> bool {
        let before = self.muted.is_some();
        match (mute, self.muted) {
            (true, None) => self.muted = Some(self.buffer.len()),
            (false, Some(from)) => {
                self.buffer.truncate(from);
                self.muted = None;
            }
            _ => {}
        }
        before
    }

    /// Text is thrown away at the moment.
    pub fn is_muted(&self) -> bool {
        self.muted.is_some()
    }

    /// Appends text.
    pub fn str(&mut self, s: &str) -> &mut Self {
        self.buffer.extend_from_slice(s.as_bytes());
        self
    }

    /// Appends bytes as they are.
    pub fn bytes(&mut self, b: &[u8]) -> &mut Self {
        self.buffer.extend_from_slice(b);
        self.hand_on(PIECE);
        self
    }

    /// Appends a part of a line as it is.
    pub fn append(&mut self, part: &[u8]) {
        self.buffer.extend_from_slice(part);
    }

    /// Appends one byte.
    pub fn byte(&mut self, b: u8) -> &mut Self {
        self.buffer.push(b);
        self
    }

    /// Ends the line.
    pub fn end(&mut self) {
        self.buffer.push(b'\n');
        self.hand_on(PIECE);
    }

    /// Appends `n` tabs.
    pub fn tabs(&mut self, n: usize) -> &mut Self {
        const TABS: &[u8; 16] = &[b'\t'; 16];
        match TABS.get(..n) {
            Some(tabs) => self.buffer.extend_from_slice(tabs),
            None => self.buffer.resize(self.buffer.len() + n, b'\t'),
        }
        self
    }

    /// The indentation of a nesting level: one tab more than the level; from level 9 on the tools print an `x`.
    pub fn level(&mut self, level: usize) -> &mut Self {
        match level {
            0..=8 => self.tabs(level + 1),
            _ => self.byte(b'x'),
        }
    }

    /// Lower-case hex without a prefix, at least `width` digits.
    pub fn hex(&mut self, value: u64, width: usize) -> &mut Self {
        let digits = (64 - value.leading_zeros() as usize).div_ceil(4).max(width).max(1);
        if digits == 8 {
            self.buffer.extend_from_slice(&hex8(value as u32));
            return self;
        }
        let mut all = [0; 16];
        let (high, low) = all.split_at_mut(8);
        high.copy_from_slice(&hex8((value >> 32) as u32));
        low.copy_from_slice(&hex8(value as u32));
        match all.get(16_usize.wrapping_sub(digits)..) {
            Some(shown) => self.buffer.extend_from_slice(shown),
            None => {
                self.buffer.resize(self.buffer.len() + digits - 16, b'0');
                self.buffer.extend_from_slice(&all);
            }
        }
        self
    }

    /// An unsigned number.
    pub fn dec(&mut self, value: u64) -> &mut Self {
        if value < 10 {
            return self.byte(b'0' + value as u8);
        }
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = value;
        while rest >= 10 {
            let pair = PAIRS[(rest % 100) as usize];
            rest /= 100;
            at -= 2;
            digits[at..at + 2].copy_from_slice(&pair);
        }
        if rest != 0 {
            at -= 1;
            digits[at] = b'0' + rest as u8;
        }
        self.buffer.extend_from_slice(&digits[at..]);
        self
    }

    /// A signed number.
    pub fn int(&mut self, value: i64) -> &mut Self {
        if value < 0 {
            self.byte(b'-');
        }
        self.dec(value.unsigned_abs())
    }

    /// A 32-bit word read as a float, six decimals, at least eight characters.
    pub fn float(&mut self, bits: u32) -> &mut Self {
        let start = self.buffer.len();
        unwedge_base::decimal::push_f64(&mut self.buffer, f32::from_bits(bits).into());
        for _ in self.buffer.len() - start..8 {
            self.buffer.insert(start, b' ');
        }
        self
    }

    /// Hands everything on.
    pub fn finish(&mut self) {
        self.hand_on(1);
        if self.out.flush().is_err() {
            self.end = Some(TextEnd::Refused);
        }
    }

    /// Hands what is collected on, without waiting for it to arrive: somebody else writes next.
    pub fn hand_on_all(&mut self) {
        self.hand_on(1);
    }

    /// Whether writing more is pointless, and why.
    pub fn ended(&self) -> Option<TextEnd> {
        self.end
    }

    fn hand_on(&mut self, from: usize) {
        if self.buffer.len() >= from {
            if let Some(kept) = &mut self.muted {
                self.buffer.truncate(std::mem::take(kept));
            }
            if self.end.is_none() {
                match self.left.checked_sub(self.buffer.len() as u64) {
                    None => self.end = Some(TextEnd::TooLong),
                    Some(left) => self.left = left,
                }
                if self.out.write_all(&self.buffer).is_err() {
                    self.end = Some(TextEnd::Refused);
                }
            }
            self.buffer.clear();
        }
    }
}

/// The digits of the numbers below 100.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut i = 0;
    while i < 100 {
        pairs[i] = [b'0' + i as u8 / 10, b'0' + i as u8 % 10];
        i += 1;
    }
    pairs
};

/// The eight digits of a word, all at once: a nibble in each byte of a larger word.
pub(super) fn hex8(value: u32) -> [u8; 8] {
    let spread = u64::from(value);
    let spread = (spread | spread << 16) & 0x0000_ffff_0000_ffff;
    let spread = (spread | spread << 8) & 0x00ff_00ff_00ff_00ff;
    let nibbles = (spread | spread << 4) & 0x0f0f_0f0f_0f0f_0f0f;
    // 1 in the bytes of nibbles above 9, for which letters follow the digits after a gap of 39.
    let letters = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    (nibbles + 0x3030_3030_3030_3030 + letters * 39).to_be_bytes()
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// What was written, as text.
    pub fn written(write: impl FnOnce(&mut TextOut<'_>)) -> String {
        let mut out = Vec::new();
        let mut text = TextOut::new(&mut out, u64::MAX);
        write(&mut text);
        text.finish();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn numbers() {
        assert_eq!(
            written(|t| {
                t.hex(0, 1).byte(b' ').hex(0x1f, 4).byte(b' ').hex(0x1_0000_0000, 8);
            }),
            "0 001f 100000000"
        );
        assert_eq!(
            written(|t| {
                t.hex(0xdead, 16).byte(b' ').hex(0xdeadd00d, 8);
            }),
            "000000000000dead deadd00d"
        );
        for shift in 0..64 {
            let value = 0xfedc_ba98_7654_3210_u64 >> shift;
            for width in [1, 8, 13, 16, 20] {
                assert_eq!(written(|t| _ = t.hex(value, width)), format!("{value:0width$x}"));
            }
            assert_eq!(written(|t| _ = t.dec(value)), value.to_string());
        }
        assert_eq!(
            written(|t| {
                t.dec(0).byte(b' ').dec(u64::MAX).byte(b' ').int(-7);
            }),
            "0 18446744073709551615 -7"
        );
    }

    #[test]
    fn floats_are_at_least_eight_wide() {
        assert_eq!(
            written(|t| {
                t.float(1.0_f32.to_bits()).byte(b'|').float((-20000.5_f32).to_bits());
            }),
            "1.000000|-20000.500000"
        );
        assert_eq!(
            written(|t| {
                t.float(f32::INFINITY.to_bits()).byte(b'|').float(0xffc0_0000);
            }),
            "     inf|    -nan"
        );
    }

    #[test]
    fn muted_text_is_thrown_away() {
        let shown = written(|t| {
            t.str("a").mute(true);
            for _ in 0..PIECE {
                t.str("b").end();
            }
            t.mute(false);
            t.str("c").mute(true);
            t.str("d");
        });
        assert_eq!(shown, "ac");
    }

    #[test]
    fn a_limit_ends_the_text() {
        let mut out = Vec::new();
        let mut text = TextOut::new(&mut out, 3 * PIECE as u64);
        while text.ended().is_none() {
            text.str("line").end();
        }
        assert_eq!(text.ended(), Some(TextEnd::TooLong));
        let before = out.len();
        assert!((3 * PIECE..=5 * PIECE).contains(&before));
    }

    #[test]
    fn levels_end_in_an_x() {
        assert_eq!(
            written(|t| {
                t.level(1).level(9);
            }),
            "\t\tx"
        );
    }
}
