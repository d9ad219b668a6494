//! Text being built: short pieces, numbers and columns, appended to a buffer that instructions share.
//!
//! Pieces of a few bytes are copied whole and cut to their length, which costs less than a copy of a length that is not
//! known when this is compiled, and than a branch on the length, which cannot be predicted. Never: what a piece means.

/// A text of at most `N` characters with bytes after it that are not part of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Short<const N: usize> {
    bytes: [u8; N],
    length: u8,
}

impl<const N: usize> Short<N> {
    pub const EMPTY: Self = Self { bytes: [b' '; N], length: 0 };

    /// The text and a character; without it where there is no room.
    pub const fn then(mut self, byte: u8) -> Self {
        if (self.length as usize) < N {
            self.bytes[self.length as usize] = byte;
            self.length += 1;
        }
        self
    }

    /// The text and a number below 1,000 in decimal digits.
    pub const fn then_number(self, value: u64) -> Self {
        let mut text = self;
        if value >= 100 {
            text = text.then(b'0' + (value / 100) as u8);
        }
        if value >= 10 {
            text = text.then(b'0' + (value / 10 % 10) as u8);
        }
        text.then(b'0' + (value % 10) as u8)
    }
}

/// The decimal digits of numbers.
static NUMBERS: [Short<3>; 1000] = {
    let mut numbers = [Short::EMPTY; 1000];
    let mut value = 0;
    while value < numbers.len() {
        numbers[value] = Short::EMPTY.then_number(value as u64);
        value += 1;
    }
    numbers
};

/// Text of ASCII characters, appended to a buffer.
pub(super) struct Text<'a> {
    out: &'a mut Vec<u8>,
    /// Length of `out` that is column 0: Mesa's count of columns leaves some parts out.
    start: usize,
}

impl<'a> Text<'a> {
    /// Appends to a buffer, whose end is column 0.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        let start = out.len();
        Self { out, start }
    }

    #[inline]
    pub fn push(&mut self, text: &str) {
        self.out.extend_from_slice(text.as_bytes());
    }

    #[inline]
    pub fn push_byte(&mut self, byte: u8) {
        self.out.push(byte);
    }

    /// A name from a table, which is short in most cases.
    #[inline]
    pub fn name(&mut self, name: &str) {
        match *name.as_bytes() {
            [a] => self.out.push(a),
            [a, b] => self.out.extend_from_slice(&[a, b]),
            [a, b, c] => self.out.extend_from_slice(&[a, b, c]),
            [a, b, c, d] => self.out.extend_from_slice(&[a, b, c, d]),
            ref long => self.out.extend_from_slice(long),
        }
    }

    /// At least one space, up to a column.
    #[inline]
    pub fn pad(&mut self, column: usize) {
        const SPACES: [u8; 64] = [b' '; 64];
        let at = self.out.len().saturating_sub(self.start);
        let count = column.saturating_sub(at).clamp(1, SPACES.len());
        let end = self.out.len() + count;
        self.out.extend_from_slice(&SPACES);
        self.out.truncate(end);
    }

    /// What follows is not counted for the column when [`Self::uncount`] gets the result.
    pub fn mark(&self) -> usize {
        self.out.len()
    }

    /// Leaves what was written since a mark out of the column.
    pub fn uncount(&mut self, mark: usize) {
        self.start += self.out.len().saturating_sub(mark);
    }

    /// A new line, whose start is column 0.
    pub fn line(&mut self) {
        self.out.push(b'\n');
        self.start = self.out.len();
    }

    /// A number in decimal digits.
    #[inline]
    pub fn number(&mut self, value: u64) {
        match usize::try_from(value).ok().and_then(|value| NUMBERS.get(value)) {
            Some(short) => self.short(short),
            None => self.long_number(value),
        }
    }

    /// A text of a few characters.
    #[inline]
    pub fn short<const N: usize>(&mut self, text: &Short<N>) {
        let end = self.out.len() + usize::from(text.length);
        self.out.extend_from_slice(&text.bytes);
        self.out.truncate(end);
    }

    fn long_number(&mut self, mut rest: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        while rest != 0 {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        self.out.extend_from_slice(&digits[at..]);
    }

    /// A text and a number.
    pub fn with(&mut self, text: &str, value: impl Into<u64>) {
        self.push(text);
        self.number(value.into());
    }

    /// A number with its sign, when that is negative.
    pub fn signed(&mut self, value: i64) {
        if value < 0 {
            self.out.push(b'-');
        }
        self.number(value.unsigned_abs());
    }

    /// A number after `0x`, in at least `width` digits.
    pub fn hex(&mut self, value: u64, width: usize) {
        self.out.extend_from_slice(b"0x");
        self.hex_digits(value, width);
    }

    /// A number in hexadecimal digits, at least `width`.
    #[inline]
    pub fn hex_digits(&mut self, value: u64, width: usize) {
        let count = (64 - value.leading_zeros() as usize).div_ceil(4).max(width).clamp(1, 16);
        let digits = (value << (64 - 4 * count)).to_be_bytes().map(|byte| [byte >> 4, byte & 15]);
        let mut text = [0; 16];
        for (to, &digit) in text.iter_mut().zip(digits.as_flattened()) {
            *to = digit + if digit < 10 { b'0' } else { b'a' - 10 };
        }
        let end = self.out.len() + count;
        self.out.extend_from_slice(&text);
        self.out.truncate(end);
    }
}

/// What was written as a string. All pieces are ASCII.
pub(super) fn string(text: Vec<u8>) -> String {
    String::from_utf8(text).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}
