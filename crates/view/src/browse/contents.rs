//! The contents of a buffer as lines of a format: each line is made when it is asked for. Never: which format fits.

use super::{CodeSet, Row, RowLook};
use std::fmt::Write as _;
use unwedge_hw::adreno::format::f16_to_f32;

/// Bytes of a line of hexadecimal.
const LINE: u64 = 16;
/// Bytes of a line of text.
const TEXT_LINE: u64 = 64;

/// How contents are shown.
#[derive(Clone, Copy, Debug)]
pub enum BufferFormat {
    /// Bytes, and the characters that they are.
    Bytes,
    /// Dwords.
    Dwords,
    /// Qwords.
    Qwords,
    /// Floats of 32 bits.
    Floats,
    /// Floats of 16 bits.
    Halves,
    /// Text.
    Text,
    /// Instructions.
    Code(CodeSet),
}

impl BufferFormat {
    /// Those that need no GPU.
    pub const PLAIN: [BufferFormat; 6] = [
        BufferFormat::Bytes,
        BufferFormat::Dwords,
        BufferFormat::Qwords,
        BufferFormat::Floats,
        BufferFormat::Halves,
        BufferFormat::Text,
    ];

    /// What it is called.
    pub fn name(&self) -> String {
        match self {
            BufferFormat::Bytes => "bytes".to_owned(),
            BufferFormat::Dwords => "dwords".to_owned(),
            BufferFormat::Qwords => "qwords".to_owned(),
            BufferFormat::Floats => "floats".to_owned(),
            BufferFormat::Halves => "halves".to_owned(),
            BufferFormat::Text => "text".to_owned(),
            BufferFormat::Code(set) => set.name(),
        }
    }

    /// By its name, or that of an instruction set.
    pub fn by_name(name: &str) -> Option<BufferFormat> {
        let plain = BufferFormat::PLAIN.into_iter().find(|format| format.name() == name);
        plain.or_else(|| CodeSet::by_name(name).ok().map(BufferFormat::Code))
    }
}

/// What a file holds of a buffer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BufferContents {
    /// Its address.
    pub iova: u64,
    /// Its bytes that are known.
    pub size: u64,
    /// Its dwords, without zeros at its end.
    pub words: Vec<u32>,
}

impl BufferContents {
    /// Of bytes, at an address.
    pub fn of_bytes(bytes: &[u8], iova: u64) -> BufferContents {
        let (words, rest) = bytes.as_chunks::<4>();
        let mut words: Vec<u32> = words.iter().map(|word| u32::from_le_bytes(*word)).collect();
        if !rest.is_empty() {
            let mut last = [0; 4];
            last.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            words.push(u32::from_le_bytes(last));
        }
        BufferContents { iova, size: bytes.len() as u64, words }
    }

    /// A byte; `None` outside.
    fn byte(&self, at: u64) -> Option<u8> {
        if at >= self.size {
            return None;
        }
        let word = self.words.get(usize::try_from(at / 4).ok()?).copied().unwrap_or(0);
        word.to_le_bytes().get((at % 4) as usize).copied()
    }

    fn number(&self, at: u64, bytes: u64) -> Option<u64> {
        (0..bytes).rev().try_fold(0, |value, i| Some(value << 8 | u64::from(self.byte(at.checked_add(i)?)?)))
    }

    /// Bytes of a line of a format; `None` of one whose lines do not have the same.
    pub fn line_bytes(format: &BufferFormat) -> Option<u64> {
        match format {
            BufferFormat::Text => Some(TEXT_LINE),
            BufferFormat::Code(_) => None,
            _ => Some(LINE),
        }
    }

    /// Lines of a format whose lines all have the same number of bytes.
    pub fn lines(&self, format: &BufferFormat) -> usize {
        let Some(bytes) = BufferContents::line_bytes(format) else { return 0 };
        usize::try_from(self.size.div_ceil(bytes)).unwrap_or(usize::MAX)
    }

    /// A line of such a format.
    pub fn line(&self, format: &BufferFormat, line: usize) -> String {
        let bytes = BufferContents::line_bytes(format).unwrap_or(LINE);
        let at = bytes.saturating_mul(line as u64);
        let mut text = format!("{:#014x} ", self.iova.saturating_add(at));
        match format {
            BufferFormat::Bytes => {
                for i in 0..bytes {
                    match self.byte(at + i) {
                        Some(byte) => drop(write!(text, " {byte:02x}")),
                        None => text.push_str("   "),
                    }
                }
                text.push_str("  ");
                text.extend((0..bytes).filter_map(|i| self.byte(at + i)).map(printable));
            }
            BufferFormat::Dwords => self.numbers(&mut text, at, 4, |value| format!("{value:08x}")),
            BufferFormat::Qwords => self.numbers(&mut text, at, 8, |value| format!("{value:016x}")),
            BufferFormat::Floats => {
                let float = |value| format!("{:>13}", short(f64::from(f32::from_bits(value as u32))));
                self.numbers(&mut text, at, 4, float);
            }
            BufferFormat::Halves => self.numbers(&mut text, at, 2, |value| {
                format!("{:>8}", short(f64::from(f16_to_f32(value as u16))))
            }),
            BufferFormat::Text => {
                text.push(' ');
                text.extend((0..bytes).filter_map(|i| self.byte(at + i)).map(printable));
            }
            BufferFormat::Code(_) => {}
        }
        text.truncate(text.trim_end().len());
        text
    }

    fn numbers(&self, text: &mut String, at: u64, bytes: u64, show: impl Fn(u64) -> String) {
        for i in 0..LINE / bytes {
            if let Some(value) = self.number(at + i * bytes, bytes) {
                let _ = write!(text, " {}", show(value));
            }
        }
    }

    /// The code from a byte on.
    pub fn code(&self, set: &CodeSet, from: u64) -> Vec<Row> {
        let first = usize::try_from(from / 4).unwrap_or(usize::MAX);
        let known = usize::try_from(self.size / 4).unwrap_or(usize::MAX);
        if first >= known {
            return vec![Row::of("nothing is known there", RowLook::Dim)];
        }
        let most = super::code::CODE_BYTES / 4;
        let mut words: Vec<u32> =
            self.words.get(first..).unwrap_or_default().iter().take(most).copied().collect();
        // Zeros at the end are not stored; four of them complete the last instruction.
        let zeros = (known - first).min(words.len().saturating_add(4)).min(most);
        words.resize(zeros.max(words.len()), 0);
        set.rows(&words, self.iova.saturating_add(4 * first as u64))
    }
}

fn printable(byte: u8) -> char {
    match byte {
        0x20..=0x7e => char::from(byte),
        _ => '.',
    }
}

/// A number in few columns.
fn short(value: f64) -> String {
    let magnitude = value.abs();
    if value == 0.0 || (1e-4..1e7).contains(&magnitude) || !value.is_finite() {
        let text = format!("{value:.5}");
        return text.trim_end_matches('0').trim_end_matches('.').to_owned();
    }
    format!("{value:.4e}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_where_the_buffer_ends() {
        let contents = BufferContents::of_bytes(b"Hello, GPU, and more", 0x1000);
        assert_eq!(contents.lines(&BufferFormat::Bytes), 2);
        assert_eq!(
            contents.line(&BufferFormat::Bytes, 0),
            "0x000000001000  48 65 6c 6c 6f 2c 20 47 50 55 2c 20 61 6e 64 20  Hello, GPU, and"
        );
        assert_eq!(contents.line(&BufferFormat::Dwords, 1), "0x000000001010  65726f6d");
        assert_eq!(contents.line(&BufferFormat::Text, 0), "0x000000001000  Hello, GPU, and more");
        assert_eq!(contents.line(&BufferFormat::Dwords, 2), "0x000000001020");
    }

    #[test]
    fn zeros_at_the_end_are_known() {
        let contents = BufferContents { iova: 0, size: 32, words: vec![0x3f80_0000] };
        assert_eq!(contents.lines(&BufferFormat::Floats), 2);
        assert_eq!(
            contents.line(&BufferFormat::Dwords, 1),
            "0x000000000010  00000000 00000000 00000000 00000000"
        );
        assert!(contents.line(&BufferFormat::Floats, 0).contains(" 1 "));
    }

    #[test]
    fn halves() {
        let contents =
            BufferContents { iova: 0, size: 12, words: vec![0xc000_3c00, 0x7bff_0001, 0xfc00_7c01] };
        let line = contents.line(&BufferFormat::Halves, 0);
        let values: Vec<&str> = line.split_whitespace().skip(1).collect();
        assert_eq!(values, ["1", "-2", "5.9605e-8", "65504", "NaN", "-inf"]);
    }

    #[test]
    fn every_format_has_its_name() {
        for format in BufferFormat::PLAIN {
            let found = BufferFormat::by_name(&format.name()).map(|found| found.name());
            assert_eq!(found, Some(format.name()));
        }
        for name in ["ir3 a6xx", "gfx1030", "tgl", "afuc a6xx"] {
            assert!(BufferFormat::by_name(name).is_some(), "{name}");
        }
        assert!(BufferFormat::by_name("nonsense").is_none());
    }
}
