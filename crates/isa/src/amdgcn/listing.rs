//! Code as text that assembles to the same words: an instruction a line, labels where branches go, `.long` where there is
//! no instruction.

use super::codec::Decoded;
use super::inst::{Inst, Operand};
use super::model::Class;
use super::{Gpu, codec, text};
use std::fmt::Write;

/// How a listing looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options<'a> {
    /// Address and words behind each line, as a comment.
    pub words: bool,
    /// Address of the first byte.
    pub address: u64,
    /// What the names of labels start with behind their `L`: several listings in one file must differ in it.
    pub labels: &'a str,
}

/// What [`write()`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Instructions.
    pub instructions: usize,
    /// Dwords that are no instruction.
    pub unknown: usize,
}

/// Columns before the comment of a line.
const COMMENT_COLUMN: usize = 60;

/// Appends a listing of code. `mark` may say something about an address, before its line.
pub fn write(
    code: &[u8],
    gpu: &Gpu,
    options: &Options<'_>,
    out: &mut String,
    mark: &mut dyn FnMut(u64, &mut String),
) -> Counts {
    let (chunks, tail) = code.as_chunks::<4>();
    let words: Vec<u32> = chunks.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let targets = targets(&words, gpu);
    let mut counts = Counts::default();
    let (mut at, mut next_target) = (0, 0);
    while at < words.len() {
        let here = options.address.wrapping_add(4 * at as u64);
        mark(here, out);
        if targets.get(next_target) == Some(&at) {
            next_target += 1;
            label(options, at, out);
            out.push_str(":\n");
        }
        let start = out.len();
        out.push('\t');
        let rest = &words[at..];
        let size = match codec::decode(rest, gpu) {
            Some(Decoded { inst, dwords }) if says_all(&inst, rest, dwords, gpu, out) => {
                counts.instructions += 1;
                let size = usize::from(dwords);
                if let Some(target) = target(&inst, at, size).filter(|t| targets.binary_search(t).is_ok()) {
                    let operand = out[start..].rfind(' ').map_or(out.len(), |space| start + space + 1);
                    out.truncate(operand);
                    label(options, target, out);
                }
                size
            }
            // A literal where an inline constant would do (relocations leave 0 there) has no text of its own.
            Some(Decoded { inst, dwords }) if usize::from(dwords) <= rest.len() => {
                counts.instructions += 1;
                out.push_str(".long ");
                for (i, &word) in rest[..usize::from(dwords)].iter().enumerate() {
                    out.push_str(if i == 0 { "" } else { ", " });
                    hexadecimal(word, out);
                }
                out.push_str(" // ");
                text::write(&inst, gpu, out);
                usize::from(dwords)
            }
            _ => {
                counts.unknown += 1;
                out.push_str(".long ");
                hexadecimal(rest[0], out);
                1
            }
        };
        if options.words {
            comment(&rest[..size.min(rest.len())], here, start, out);
        }
        out.push('\n');
        at += size;
    }
    if targets.get(next_target) == Some(&words.len()) {
        label(options, words.len(), out);
        out.push_str(":\n");
    }
    if !tail.is_empty() {
        counts.unknown += 1;
        for (i, byte) in tail.iter().enumerate() {
            out.push_str(if i == 0 { "\t.byte " } else { ", " });
            // Writing to a string does not fail.
            let _ = write!(out, "0x{byte:02x}");
        }
        out.push('\n');
    }
    counts
}

/// Appends the text of an instruction, if it assembles to the words it was read from.
fn says_all(inst: &Inst, words: &[u32], dwords: u8, gpu: &Gpu, out: &mut String) -> bool {
    let start = out.len();
    text::write(inst, gpu, out);
    let again =
        text::parse_line(&out[start..], gpu, &()).ok().and_then(|inst| codec::encode(&inst, gpu).ok());
    let same = again.is_some_and(|again| words.get(..usize::from(dwords)) == Some(again.as_slice()));
    if !same {
        out.truncate(start);
    }
    same
}

/// Dwords at which instructions start to which branches go, in order; the end of the code counts as one.
fn targets(words: &[u32], gpu: &Gpu) -> Vec<usize> {
    let mut starts = vec![0u64; words.len() / 64 + 1];
    let (mut wanted, mut at) = (Vec::new(), 0);
    while at < words.len() {
        starts[at / 64] |= 1 << (at % 64);
        at += match codec::decode(&words[at..], gpu) {
            Some(Decoded { inst, dwords }) => {
                let size = usize::from(dwords);
                wanted.extend(target(&inst, at, size));
                size
            }
            None => 1,
        };
    }
    if at == words.len() {
        starts[at / 64] |= 1 << (at % 64);
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|&t| starts.get(t / 64).is_some_and(|bits| bits >> (t % 64) & 1 != 0));
    wanted
}

/// The dword to which a branch goes that is at a dword and so many long.
pub fn target(inst: &Inst, at: usize, dwords: usize) -> Option<usize> {
    inst.written().find_map(|(slot, operand)| match (slot.class, operand) {
        (Class::Label, Operand::Imm(distance)) => {
            (at + dwords).checked_add_signed(isize::from(distance as i16))
        }
        _ => None,
    })
}

fn label(options: &Options<'_>, at: usize, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "L{}{at:x}", options.labels);
}

fn hexadecimal(word: u32, out: &mut String) {
    let _ = write!(out, "0x{word:08x}");
}

fn comment(words: &[u32], here: u64, start: usize, out: &mut String) {
    let length = out.len() - start;
    for _ in length..COMMENT_COLUMN {
        out.push(' ');
    }
    let _ = write!(out, " // {here:012X}:");
    for word in words {
        let _ = write!(out, " {word:08X}");
    }
}
