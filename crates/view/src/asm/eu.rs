//! Code of Intel's EUs as text, and texts as code: whole programs, and lines for another program.

use super::SourceErrors;
use std::fmt::Write as _;
use unwedge_hw::intel::platform::Platform as KnownPlatform;
use unwedge_isa::eu::program::{self, LineWriter};
use unwedge_isa::eu::{Platform, PlatformError};

/// The platform of a name that the EU tables have, of another name of such a platform (`alchemist`), or of a PCI device
/// id (`0x9a49`).
///
/// # Errors
/// When the tables do not have it: with the names that they have.
pub fn platform(name: &str) -> Result<Platform, PlatformError> {
    let error = match Platform::by_name(name) {
        Ok(platform) => return Ok(platform),
        Err(error) => error,
    };
    let id = name.strip_prefix("0x").and_then(|digits| u16::from_str_radix(digits, 16).ok());
    let known = id.map_or_else(|| KnownPlatform::by_name(name), KnownPlatform::by_pci_id);
    let names = known.map_or(&[][..], |known| known.names());
    names.iter().find_map(|name| Platform::by_name(name).ok()).ok_or(error)
}

/// What a text is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EuText {
    /// It is read by people: all instructions as Mesa prints them, bits that this leaves out left out.
    Reading,
    /// The same, with Mesa's columns and lines.
    Mesa,
    /// It assembles to the same bytes.
    Lossless,
}

/// The text of a program, and how many of its parts are not instructions.
#[must_use]
pub fn disassembled(platform: Platform, bytes: &[u8], of: EuText) -> (String, usize) {
    let lost = program::instructions(platform, bytes).filter(|placed| placed.inst.is_none()).count();
    let text = match of {
        EuText::Lossless => program::listing(platform, bytes),
        EuText::Reading | EuText::Mesa => program::disassemble(platform, bytes),
    };
    (text, lost)
}

/// The bytes of a line: in memory order, or dwords with `0x` and all of their digits.
pub(super) fn line_bytes(line: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    read_line(line, &mut bytes).then_some(bytes)
}

/// The same, instead of what `bytes` has; whether the line is one of bytes.
fn read_line(line: &str, bytes: &mut Vec<u8>) -> bool {
    bytes.clear();
    if !line.trim_start().starts_with("0x") {
        return push_digits(line.trim(), bytes);
    }
    let mut words = line.split(|c: char| c.is_whitespace() || c == ',').filter(|word| !word.is_empty());
    words.all(|word| {
        let start = bytes.len();
        let digits = word.strip_prefix("0x").filter(|digits| digits.len() == 8);
        let read = digits.is_some_and(|digits| push_digits(digits, bytes));
        bytes.get_mut(start..).unwrap_or_default().reverse();
        read
    })
}

/// Appends the bytes of hexadecimal digits; false where they are not.
fn push_digits(digits: &str, bytes: &mut Vec<u8>) -> bool {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let value = |digit: u8| char::from(digit).to_digit(16);
    rest.is_empty()
        && pairs.iter().all(|&[high, low]| match (value(high), value(low)) {
            (Some(high), Some(low)) => {
                bytes.push((high << 4 | low) as u8);
                true
            }
            _ => false,
        })
}

/// Lines of hexadecimal bytes, an instruction each, as text, and how many are not instructions. It is one line for each,
/// with single spaces, but for [`EuText::Mesa`], where a message has a second line.
#[must_use]
pub fn lines_disassembled(platform: Platform, lines: &str, of: EuText) -> (String, usize) {
    let (mut text, mut lost) = (String::with_capacity(lines.len().saturating_mul(3)), 0);
    let (mut writer, mut bytes) = (LineWriter::default(), Vec::with_capacity(16));
    for line in lines.lines() {
        let read = read_line(line, &mut bytes);
        let whole =
            program::instructions(platform, &bytes).next().filter(|p| read && p.length == bytes.len());
        let Some(placed) = whole.filter(|placed| matches!(placed.length, 8 | 16)) else {
            text.push_str("error: expected 8 or 16 bytes of an instruction\n");
            lost += 1;
            continue;
        };
        lost += usize::from(placed.inst.is_none());
        let shown = writer.text(&placed, &bytes, of == EuText::Lossless);
        if of == EuText::Mesa {
            text.push_str(shown.trim_end_matches('\n'));
        } else {
            for (index, word) in shown.split_ascii_whitespace().enumerate() {
                if index > 0 {
                    text.push(' ');
                }
                text.push_str(word);
            }
        }
        text.push('\n');
    }
    (text, lost)
}

/// The code of a source.
///
/// # Errors
/// When the source has errors: all of them.
pub fn assembled(platform: Platform, source: &str) -> Result<Vec<u8>, SourceErrors> {
    program::assemble(platform, source).map_err(|errors| {
        let count = errors.len();
        SourceErrors::of(source, errors.into_iter().map(|e| (e.line, e.column, e.error.to_string())), count)
    })
}

/// Lines of text, an instruction each, as lines of hexadecimal bytes, and how many could not be assembled.
#[must_use]
pub fn lines_assembled(platform: Platform, lines: &str) -> (String, usize) {
    let (mut text, mut failed) = (String::new(), 0);
    for line in lines.lines() {
        match program::assemble(platform, line) {
            Ok(bytes) => {
                for byte in bytes {
                    let _ = write!(text, "{byte:02x}");
                }
            }
            Err(errors) => {
                for error in errors.iter().take(1) {
                    let _ = write!(text, "error: {}", error.error);
                }
                failed += 1;
            }
        }
        text.push('\n');
    }
    (text, failed)
}
