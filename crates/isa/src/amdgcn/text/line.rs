//! Text being made: bytes with room behind them, so that a short piece is one copy of fixed size.

/// Text that grows at its end. All of it is ASCII.
pub(in crate::amdgcn) struct LineBuf {
    /// The text and the room behind it.
    bytes: Vec<u8>,
    /// Where the text ends.
    end: usize,
}

/// At least so much room is made at once.
const ROOM: usize = 1024;

/// Numbers below 1000 in decimal: the digits, and how many they are.
static NUMBERS: [[u8; 4]; 1000] = {
    let mut numbers = [[0; 4]; 1000];
    let mut n = 0;
    while n < numbers.len() {
        let digits = [b'0' + (n / 100) as u8, b'0' + (n / 10 % 10) as u8, b'0' + (n % 10) as u8];
        numbers[n] = match n {
            0..10 => [digits[2], 0, 0, 1],
            10..100 => [digits[1], digits[2], 0, 2],
            _ => [digits[0], digits[1], digits[2], 3],
        };
        n += 1;
    }
    numbers
};

impl LineBuf {
    pub(in crate::amdgcn) const fn new() -> LineBuf {
        LineBuf { bytes: Vec::new(), end: 0 }
    }

    /// With room for so many bytes.
    pub(in crate::amdgcn) fn with_room(bytes: usize) -> LineBuf {
        LineBuf { bytes: vec![0; bytes], end: 0 }
    }

    /// How many bytes the text has.
    pub(in crate::amdgcn) fn len(&self) -> usize {
        self.end
    }

    /// The text from one place to another.
    pub(in crate::amdgcn) fn text(&self, from: usize, to: usize) -> &str {
        self.bytes.get(from..to.min(self.end)).and_then(|b| std::str::from_utf8(b).ok()).unwrap_or_default()
    }

    /// As many bytes from a place on, of the text and what is behind it.
    pub(in crate::amdgcn) fn room<const N: usize>(&self, from: usize) -> Option<&[u8; N]> {
        self.bytes.get(from..)?.first_chunk()
    }

    /// The bytes from a place on.
    pub(in crate::amdgcn) fn since(&self, from: usize) -> &[u8] {
        self.bytes.get(from..self.end).unwrap_or_default()
    }

    /// Room behind the text, into which text may be written: [`LineBuf::end_at`] makes it the line's.
    #[inline(always)]
    pub(in crate::amdgcn) fn room_for<const N: usize>(&mut self) -> Option<&mut [u8; N]> {
        const { assert!(N <= ROOM) };
        if self.bytes.len() < self.end + N {
            self.grow(N);
        }
        self.bytes.get_mut(self.end..)?.first_chunk_mut()
    }

    /// The text ends there, in the room behind where it ended.
    pub(in crate::amdgcn) fn end_at(&mut self, end: usize) {
        self.end = end.min(self.bytes.len());
    }

    /// Takes the text from a place on away.
    pub(in crate::amdgcn) fn cut(&mut self, from: usize) {
        self.end = self.end.min(from);
    }

    /// Takes the text before a place away.
    pub(in crate::amdgcn) fn forget(&mut self, before: usize) {
        self.bytes.copy_within(before.min(self.end)..self.end, 0);
        self.end -= before.min(self.end);
    }

    /// Appends the beginning of a piece: so many of its bytes, at most all.
    #[inline(always)]
    pub(in crate::amdgcn) fn start_of<const N: usize>(&mut self, piece: &[u8; N], length: usize) {
        if self.bytes.len() < self.end + N {
            self.grow(N);
        }
        if let Some(place) = self.bytes.get_mut(self.end..).and_then(|rest| rest.first_chunk_mut()) {
            *place = *piece;
            self.end += length.min(N);
        }
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self, least: usize) {
        self.bytes.resize(self.bytes.len() * 2 + least + ROOM, 0);
    }

    /// Appends a character.
    #[inline(always)]
    pub(in crate::amdgcn) fn push(&mut self, byte: u8) {
        self.start_of(&[byte], 1);
    }

    /// Appends a text.
    #[inline(always)]
    pub(in crate::amdgcn) fn push_str(&mut self, text: &str) {
        if self.bytes.len() < self.end + text.len() {
            self.grow(text.len());
        }
        if let Some(place) = self.bytes.get_mut(self.end..self.end + text.len()) {
            place.copy_from_slice(text.as_bytes());
            self.end += text.len();
        }
    }

    /// Appends a text of which nothing is known but that it is short: without a call, by its halves, which overlap.
    #[inline]
    pub(in crate::amdgcn) fn push_name(&mut self, text: &str) {
        let from = text.as_bytes();
        if self.bytes.len() < self.end + from.len() {
            self.grow(from.len());
        }
        let Some(place) = self.bytes.get_mut(self.end..self.end + from.len()) else { return };
        if !(from.len() <= 32 && halves::<16>(place, from) || from.len() <= 16 && halves::<8>(place, from)) {
            place.copy_from_slice(from);
        }
        self.end += from.len();
    }

    /// Appends so many spaces.
    pub(in crate::amdgcn) fn spaces(&mut self, count: usize) {
        for _ in 0..count {
            self.push(b' ');
        }
    }

    /// Appends a number in decimal.
    #[inline]
    pub(in crate::amdgcn) fn decimal(&mut self, value: i64) {
        match usize::try_from(value).ok().and_then(|value| NUMBERS.get(value)) {
            Some(number) => self.start_of(number, number[3].into()),
            None => self.long_decimal(value),
        }
    }

    fn long_decimal(&mut self, value: i64) {
        let mut digits = [0u8; 20];
        let mut at = digits.len();
        let mut rest = value.unsigned_abs();
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        if value < 0 {
            self.push(b'-');
        }
        for digit in &digits[at..] {
            self.push(*digit);
        }
    }

    /// Appends the lowest digits of a number in hexadecimal, in the digits that are given.
    #[inline]
    pub(in crate::amdgcn) fn digits(&mut self, value: u64, count: usize, all: &[u8; 16]) {
        let mut text = [0; 16];
        for (n, digit) in text.iter_mut().take(count).enumerate() {
            *digit = all[(value >> (4 * (count - 1 - n))) as usize & 15];
        }
        self.start_of(&text, count);
    }

    /// Appends a number in hexadecimal with `0x`.
    #[inline]
    pub(in crate::amdgcn) fn hex(&mut self, value: u64) {
        if let Ok(value) = u32::try_from(value) {
            let (digits, count) = hexadecimal(value);
            self.start_of(b"0x", 2);
            return self.start_of(&digits, count);
        }
        let count = (64 - (value | 1).leading_zeros()).div_ceil(4) as usize;
        self.push_str("0x");
        self.digits(value, count, LOWER);
    }
}

/// The digits of a number in hexadecimal, and how many they are.
#[inline(always)]
pub(in crate::amdgcn) fn hexadecimal(value: u32) -> ([u8; 8], usize) {
    let count = (32 - (value | 1).leading_zeros()).div_ceil(4);
    // A byte for each digit, the first lowest.
    let spread = |value: u64, by: u32, mask: u64| (value | value << by) & mask;
    let turned = u64::from((value << (32 - 4 * count)).swap_bytes());
    let nibbles = spread(turned, 16, 0x0000_ffff_0000_ffff);
    let nibbles = spread(nibbles, 8, 0x00ff_00ff_00ff_00ff);
    let nibbles = (nibbles >> 4 | nibbles << 8) & 0x0f0f_0f0f_0f0f_0f0f;
    // What carries from 6 more is a letter.
    let letters = (nibbles + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let digits = nibbles + 0x3030_3030_3030_3030 + letters * u64::from(b'a' - b'0' - 10);
    (digits.to_le_bytes(), count as usize)
}

/// Copies the first and the last bytes, if there are so many.
#[inline(always)]
fn halves<const N: usize>(to: &mut [u8], from: &[u8]) -> bool {
    let (Some(first), Some(last)) = (from.first_chunk::<N>(), from.last_chunk::<N>()) else { return false };
    if let Some(place) = to.first_chunk_mut::<N>() {
        *place = *first;
    }
    if let Some(place) = to.last_chunk_mut::<N>() {
        *place = *last;
    }
    true
}

/// Digits of numbers.
pub(in crate::amdgcn) const LOWER: &[u8; 16] = b"0123456789abcdef";
/// Digits of addresses and words in comments.
pub(in crate::amdgcn) const UPPER: &[u8; 16] = b"0123456789ABCDEF";
