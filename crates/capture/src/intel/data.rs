//! Captured memory as text: ascii85, ascii85 of a zlib stream, or rows of hexadecimal numbers.
//!
//! It is unpacked when somebody asks, and never to more than the caller allows. A dword that the text does not hold as
//! a whole is not there. Facts: `i915_gpu_error.c` (`:` and `~` since Linux 4.10, rows before), `xe_devcoredump.c`.

use super::text::{IntelLines, hex, skip_blanks};
use crate::ascii85;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};
use std::borrow::Cow;
use std::fmt;
use unwedge_base::plural::counted;
use unwedge_base::{Diagnostic, Span};

/// How a text stands for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockEncoding {
    /// Ascii85 of the memory; line ends in it do not count.
    Ascii85,
    /// Ascii85 of a zlib stream (RFC 1950) of the memory, padded to whole dwords.
    Ascii85Zlib,
    /// Lines of `offset :  dword`, or of `[offset] dword dword dword dword`.
    Rows,
}

/// The text of a block of memory.
#[derive(Clone, PartialEq)]
pub struct BlockText<'a> {
    /// How it stands for memory.
    pub encoding: BlockEncoding,
    /// The text, without any mark in front.
    pub text: Cow<'a, [u8]>,
    /// Where it stands in the dump.
    pub span: Span,
}

/// Why unpacking ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpackEnd {
    /// The text had no more.
    Whole,
    /// The caller's limit was reached.
    Limit,
    /// The text ends inside a dword.
    Cut,
    /// A byte that has no place there, so many bytes into the text.
    Invalid(usize),
    /// The zlib stream has no end.
    Unfinished,
    /// The zlib stream is broken.
    Broken,
    /// A row does not follow the one before, so many bytes into the memory.
    Gap(usize),
}

/// Unpacked memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpackedBlock {
    /// From the start of the block on.
    pub dwords: Vec<u32>,
    /// Why there is no more.
    pub end: UnpackEnd,
}

impl UnpackedBlock {
    /// Whether memory is missing at its end, as far as the text tells.
    pub fn is_cut(&self) -> bool {
        match self.end {
            UnpackEnd::Whole => false,
            // Linux 4.10 to 4.18 may have no room for the end of the stream, behind whole pages.
            UnpackEnd::Unfinished => self.dwords.is_empty() || !self.dwords.len().is_multiple_of(1024),
            _ => true,
        }
    }

    /// What to say of a block that was not unpacked as a whole.
    pub fn diagnostic(&self, name: &str, span: Span) -> Option<Diagnostic> {
        let count = self.dwords.len() as u64 * 4;
        let bytes = counted(count, "byte", "bytes");
        let why = match self.end {
            UnpackEnd::Whole => return None,
            UnpackEnd::Limit => format!("the contents of {name} are too large: {bytes} unpacked"),
            UnpackEnd::Cut => format!("the contents of {name} break off after {bytes}"),
            UnpackEnd::Invalid(at) => {
                format!(
                    "the contents of {name} have an invalid character after {}",
                    counted(at as u64, "byte", "bytes")
                )
            }
            // Linux 4.10 to 4.18 may have no room for the end of the stream, behind whole pages.
            UnpackEnd::Unfinished if count > 0 && count.is_multiple_of(4096) => {
                let why =
                    format!("the packed contents of {name} have no end mark; all pages in front are whole");
                return Some(Diagnostic::note(span, why));
            }
            UnpackEnd::Unfinished => format!("the packed contents of {name} break off after {bytes}"),
            UnpackEnd::Broken => format!("the packed contents of {name} are broken after {bytes}"),
            UnpackEnd::Gap(at) => {
                format!("the contents of {name} have a gap after {}", counted(at as u64, "byte", "bytes"))
            }
        };
        Some(Diagnostic::loss(span, why))
    }
}

impl BlockText<'_> {
    /// The memory, up to `limit` bytes.
    pub fn decode(&self, limit: usize) -> UnpackedBlock {
        match self.encoding {
            BlockEncoding::Ascii85 => plain(&self.text, limit / 4),
            BlockEncoding::Ascii85Zlib => packed(&self.text, limit),
            BlockEncoding::Rows => rows(&self.text, limit / 4),
        }
    }

    /// The text for this memory, for a dump made in code.
    pub fn encode(dwords: &[u32], encoding: BlockEncoding) -> BlockText<'static> {
        let text = match encoding {
            BlockEncoding::Ascii85 => ascii85::encode(dwords),
            BlockEncoding::Ascii85Zlib => ascii85::encode(&deflate(dwords)),
            BlockEncoding::Rows => {
                let row = |(i, dword): (usize, &u32)| format!("{:08x} :  {dword:08x}\n", i * 4).into_bytes();
                dwords.iter().enumerate().flat_map(row).collect()
            }
        };
        BlockText { encoding, text: Cow::Owned(text), span: Span::default() }
    }
}

impl fmt::Debug for BlockText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let start = String::from_utf8_lossy(self.text.get(..20).unwrap_or(&self.text));
        write!(f, "Data({:?}, {start:?}, {} bytes at {})", self.encoding, self.text.len(), self.span.start)
    }
}

/// The text in one piece: what a line end, or a blank, stands between belongs together.
fn joined(text: &[u8]) -> Cow<'_, [u8]> {
    let space = |c: &u8| matches!(c, b'\n' | b'\r' | b' ' | b'\t');
    match text.iter().any(space) {
        true => Cow::Owned(text.iter().copied().filter(|c| !space(c)).collect()),
        false => Cow::Borrowed(text),
    }
}

fn plain(text: &[u8], most: usize) -> UnpackedBlock {
    let text = joined(text);
    let mut decoded = ascii85::decode_up_to(&text, most);
    if decoded.partial {
        decoded.dwords.pop();
    }
    let end = if decoded.partial && decoded.consumed == text.len() {
        UnpackEnd::Cut
    } else if decoded.consumed == text.len() {
        UnpackEnd::Whole
    } else if decoded.dwords.len() == most {
        UnpackEnd::Limit
    } else {
        UnpackEnd::Invalid(decoded.consumed)
    };
    UnpackedBlock { dwords: decoded.dwords, end }
}

fn packed(text: &[u8], limit: usize) -> UnpackedBlock {
    const STEP: usize = 4096;
    let text = joined(text);
    let mut rest: &[u8] = &text;
    let mut inflate = Decompress::new(true);
    let mut dwords = Vec::new();
    let mut out = vec![0; 4 * STEP];
    // Bytes at the start of `out` that make no dword yet.
    let mut kept = 0;
    let end = 'text: loop {
        let piece = ascii85::decode_up_to(rest, STEP);
        let whole = piece.dwords.len() - usize::from(piece.partial);
        let bytes: Vec<u8> = piece.dwords.iter().take(whole).flat_map(|d| d.to_le_bytes()).collect();
        let mut input: &[u8] = &bytes;
        loop {
            let (taken, made) = (inflate.total_in(), inflate.total_out());
            let room = out.get_mut(kept..).unwrap_or_default();
            let status = inflate.decompress(input, room, FlushDecompress::None);
            input = input.get((inflate.total_in() - taken) as usize..).unwrap_or_default();
            let filled = kept + (inflate.total_out() - made) as usize;
            let words = out.get(..filled).unwrap_or_default().chunks_exact(4);
            kept = words.remainder().len();
            let allowed = (limit / 4).saturating_sub(dwords.len());
            let more = words.len() > allowed;
            dwords.extend(words.take(allowed).map(|w| w.iter().rev().fold(0, |d, &b| d << 8 | u32::from(b))));
            out.copy_within(filled - kept..filled, 0);
            match status {
                _ if more => break 'text UnpackEnd::Limit,
                Ok(Status::StreamEnd) => {
                    break 'text if kept == 0 { UnpackEnd::Whole } else { UnpackEnd::Cut };
                }
                Err(_) => break 'text UnpackEnd::Broken,
                // Output first: the stream may hold back more than fits.
                Ok(_) if filled == out.len() => {}
                Ok(_) if input.is_empty() => break,
                Ok(_) if inflate.total_in() == taken && inflate.total_out() == made => {
                    break 'text UnpackEnd::Broken;
                }
                Ok(_) => {}
            }
        }
        rest = rest.get(piece.consumed..).unwrap_or_default();
        if whole < STEP {
            let strange = !rest.is_empty();
            break if strange { UnpackEnd::Invalid(text.len() - rest.len()) } else { UnpackEnd::Unfinished };
        }
    };
    UnpackedBlock { dwords, end }
}

fn deflate(dwords: &[u32]) -> Vec<u32> {
    let bytes: Vec<u8> = dwords.iter().flat_map(|d| d.to_le_bytes()).collect();
    let mut deflate = Compress::new(Compression::default(), true);
    let mut out: Vec<u8> = Vec::new();
    loop {
        out.reserve(bytes.len() / 4 + 4096);
        let input = bytes.get(deflate.total_in() as usize..).unwrap_or_default();
        match deflate.compress_vec(input, &mut out, FlushCompress::Finish) {
            Ok(Status::Ok | Status::BufError) => {}
            Ok(Status::StreamEnd) | Err(_) => break,
        }
    }
    out.chunks(4).map(|c| c.iter().rev().fold(0, |d, &b| d << 8 | u32::from(b))).collect()
}

/// Whether a line is a row of numbers.
pub(crate) fn is_row(line: &[u8]) -> bool {
    matches!(line.first(), Some(b'[' | b'0'..=b'9' | b'a'..=b'f')) && row(line).is_some()
}

/// The offset of a row, and its dwords.
fn row(line: &[u8]) -> Option<(u64, &[u8])> {
    if let Some(rest) = line.strip_prefix(b"[") {
        let (offset, rest) = hex(rest)?;
        return Some((offset, rest.strip_prefix(b"] ")?));
    }
    let (offset, rest) = hex(line)?;
    Some((offset, rest.strip_prefix(b" : ")?))
}

fn rows(text: &[u8], most: usize) -> UnpackedBlock {
    let mut dwords = Vec::new();
    for line in IntelLines::new(text) {
        let at = dwords.len() * 4;
        let Some((offset, mut rest)) = row(line.text) else {
            return UnpackedBlock { dwords, end: UnpackEnd::Invalid(line.span.start as usize) };
        };
        if offset != at as u64 {
            return UnpackedBlock { dwords, end: UnpackEnd::Gap(at) };
        }
        loop {
            rest = skip_blanks(rest);
            if rest.is_empty() {
                break;
            }
            let digits = rest.iter().take_while(|c| c.is_ascii_hexdigit()).count();
            let end = match hex(rest) {
                Some((dword, behind)) if digits == 8 && dwords.len() < most => {
                    dwords.push(dword as u32);
                    rest = behind;
                    continue;
                }
                Some(_) if digits == 8 => UnpackEnd::Limit,
                // A row that the end of the dump cuts.
                _ if rest.len() < 8 && line.span.end == text.len() as u64 => UnpackEnd::Cut,
                _ => UnpackEnd::Invalid(line.span.end as usize - rest.len()),
            };
            return UnpackedBlock { dwords, end };
        }
    }
    UnpackedBlock { dwords, end: UnpackEnd::Whole }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [BlockEncoding; 3] = [BlockEncoding::Ascii85, BlockEncoding::Ascii85Zlib, BlockEncoding::Rows];

    fn memory(len: u32) -> Vec<u32> {
        (0..len).map(|i| if i % 7 < 3 { 0 } else { i.wrapping_mul(0x9e37_79b9) }).collect()
    }

    #[test]
    fn what_is_encoded_decodes_to_the_same() {
        for encoding in ALL {
            for len in [0, 1, 3, 1024, 20_000] {
                let data = BlockText::encode(&memory(len), encoding);
                let decoded = data.decode(usize::MAX);
                assert_eq!(decoded.end, UnpackEnd::Whole, "{encoding:?} of {len}");
                assert_eq!(decoded.dwords, memory(len), "{encoding:?} of {len}");
            }
        }
    }

    #[test]
    fn a_limit_is_kept() {
        for encoding in ALL {
            let data = BlockText::encode(&memory(20_000), encoding);
            for limit in [0, 3, 4, 4096, 79_996] {
                let decoded = data.decode(limit);
                assert_eq!(
                    (decoded.dwords.len(), decoded.end),
                    (limit / 4, UnpackEnd::Limit),
                    "{encoding:?} to {limit}"
                );
            }
            assert_eq!(data.decode(80_000).end, UnpackEnd::Whole, "{encoding:?}");
        }
    }

    #[test]
    fn zeros_do_not_grow_without_bound() {
        let bomb = BlockText::encode(&vec![0; 4 << 20], BlockEncoding::Ascii85Zlib);
        assert!(bomb.text.len() < 64 << 10);
        assert_eq!(bomb.decode(1 << 20).dwords.len(), 1 << 18);
    }

    #[test]
    fn what_is_cut_gives_what_was_there() {
        for encoding in ALL {
            let mut data = BlockText::encode(&memory(3000), encoding);
            let text = data.text.to_mut();
            text.truncate(text.len() - 3);
            let decoded = data.decode(usize::MAX);
            assert_ne!(decoded.end, UnpackEnd::Whole, "{encoding:?}");
            assert!(decoded.dwords.len() <= 3000, "{encoding:?}");
            assert_eq!(decoded.dwords, memory(3000)[..decoded.dwords.len()], "{encoding:?}");
            assert!(decoded.diagnostic("x", Span::default()).is_some());
        }
    }

    #[test]
    fn lines_in_between_do_not_count() {
        let mut data = BlockText::encode(&memory(200), BlockEncoding::Ascii85);
        let split: Vec<u8> = data.text.chunks(11).flat_map(|c| [c, b"\r\n"].concat()).collect();
        data.text = Cow::Owned(split);
        assert_eq!(data.decode(usize::MAX), UnpackedBlock { dwords: memory(200), end: UnpackEnd::Whole });
    }

    #[test]
    fn rows_of_four_and_gaps() {
        let data = |text: &'static str| BlockText {
            encoding: BlockEncoding::Rows,
            text: Cow::Borrowed(text.as_bytes()),
            span: Span::default(),
        };
        let four =
            data("[0000] 00000001 00000002 00000003 00000004\n[0010] 00000005 00000006 00000007 00000008\n");
        assert_eq!(four.decode(64).dwords, [1, 2, 3, 4, 5, 6, 7, 8]);
        let gap = data("00000000 :  00000001\n00000008 :  00000002\n");
        assert_eq!(gap.decode(64), UnpackedBlock { dwords: vec![1], end: UnpackEnd::Gap(4) });
    }
}
