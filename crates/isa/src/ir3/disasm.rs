//! Text of ir3 instructions and shaders, equal to what Mesa's disassembler prints.
//!
//! Never: operand syntax of its own; that is in the table's templates.

use crate::table::program::WriteOutcome;
use crate::table::{DecodeFaults, DecodedWord, DisplayPart, FieldKind, Printer, print};
use crate::tables::{IR3, IR3_INSTRUCTION, IR3_PROGRAMS};
use std::io::Write;

/// Words in a row that are no instructions, or odd ones, after which a listing gives up.
const MAX_FAULTY: u32 = 5;
/// So many `nop`s after an `end` are the end of the shader: some shaders go on after an `end`.
const NOPS_AFTER_END: u32 = 4;

/// How a shader is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ir3ListingOptions {
    /// The GPU: 630, 730.
    pub gpu_id: u32,
    /// Each line opens with `:category:index:cycle[high word_low word] `.
    pub raw: bool,
    /// Tabs before each line's raw words.
    pub level: usize,
}

/// The instruction a word is on a GPU.
pub fn decode(word: u64, gpu_id: u32) -> Option<DecodedWord<'static>> {
    IR3.decode(IR3_INSTRUCTION, word.into(), gpu_id)
}

/// Appends the text of one instruction, branches as distances, without end of line. What is odd about it follows after
/// `\t; `, except bits that mean nothing: hardware ignores them, and compilers set some. A word that is no instruction
/// of this GPU is `raw 0x…`, 16 digits.
pub fn write(word: u64, gpu_id: u32, out: &mut Vec<u8>) {
    match IR3_PROGRAMS.write(IR3, word, gpu_id, out) {
        WriteOutcome::Text { faults, .. } => {
            if !faults.is_empty() {
                faults.without_ignored().write(u64::BITS, out);
            }
        }
        WriteOutcome::Odd => write_templates(word, gpu_id, out),
        WriteOutcome::Unknown => write_raw(word, out),
    }
}

/// The same, straight from the templates: any word.
pub(super) fn write_templates(word: u64, gpu_id: u32, out: &mut Vec<u8>) {
    match decode(word, gpu_id) {
        Some(decoded) => print(&decoded, &mut (), out).without_ignored().write(u64::BITS, out),
        None => write_raw(word, out),
    }
}

pub(super) fn write_raw(word: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"raw 0x");
    let digit = |place: u32| b"0123456789ABCDEF"[(word >> (4 * place) & 15) as usize];
    out.extend((0..16).rev().map(digit));
}

/// Appends the listing of a shader, one instruction a line, with labels, as the tools that print whole shaders have it.
/// It ends after `chsh`, four `nop`s after an `end`, six words in a row that are no sound instructions, or the words.
/// Returns how many words were listed.
pub fn disassemble(words: &[u64], listing: &Ir3ListingOptions, out: &mut Vec<u8>) -> usize {
    let (branches, calls) = targets(words, listing.gpu_id);
    let is_target = |set: &[usize], index| set.binary_search(&index).is_ok();
    let mut shader = Ir3Lister { count: words.len(), ..Ir3Lister::default() };
    let mut faulty = 0;
    let mut pending = DecodeFaults::default();
    for (index, &word) in words.iter().enumerate() {
        if faulty > MAX_FAULTY {
            return index;
        }
        shader.index = index;
        if is_target(&calls, index) {
            if index != 0 {
                prefix(word, &shader, listing, out);
                out.push(b'\n');
            }
            prefix(word, &shader, listing, out);
            let _ = writeln!(out, "fxn{index}:");
        }
        if is_target(&branches, index) {
            prefix(word, &shader, listing, out);
            let _ = writeln!(out, "l{index}:");
        }
        prefix(word, &shader, listing, out);
        let Some(decoded) = decode(word, listing.gpu_id) else {
            let _ = writeln!(out, "no match: {word:016x}");
            // Mesa says so after the next instruction.
            IR3.conflict(IR3_INSTRUCTION, word.into(), listing.gpu_id)
                .into_iter()
                .for_each(|f| pending.push(f));
            faulty += 1;
            continue;
        };
        let mut faults = std::mem::take(&mut pending);
        print(&decoded, &mut shader, out).iter().for_each(|fault| faults.push(fault));
        faults.write(64, out);
        faulty = if faults.is_empty() { 0 } else { faulty + 1 };
        out.push(b'\n');
        if shader.stop {
            return index + 1;
        }
    }
    words.len()
}

fn prefix(word: u64, shader: &Ir3Lister, listing: &Ir3ListingOptions, out: &mut Vec<u8>) {
    if !listing.raw {
        return;
    }
    match listing.level {
        level @ 0..10 => out.extend(std::iter::repeat_n(b'\t', level)),
        _ => out.push(b'x'),
    }
    let (category, index, high, low) = (word >> 61, shader.index, word >> 32, word as u32);
    let cycle = shader.cycles.saturating_add(index as u64);
    let _ = write!(out, ":{category}:{index:04}:{cycle:04}[{high:08x}x_{low:08x}x] ");
}

/// The instructions that branches and calls of the shader go to, sorted.
fn targets(words: &[u64], gpu_id: u32) -> (Vec<usize>, Vec<usize>) {
    let (mut branches, mut calls) = (Vec::new(), Vec::new());
    for (index, &word) in words.iter().enumerate() {
        // Only flow control has branches, and most of a shader is not that. Zero is `nop`: the rest of many a buffer.
        if word >> 61 != 0 || word == 0 {
            continue;
        }
        let Some(decoded) = decode(word, gpu_id) else { continue };
        decoded.walk(&mut |part| {
            if let Some((target, call)) = target(&part, index, words.len()) {
                if call { &mut calls } else { &mut branches }.push(target);
            }
        });
    }
    for set in [&mut branches, &mut calls] {
        set.sort_unstable();
        set.dedup();
    }
    (branches, calls)
}

/// Where a branch goes, when that is in the shader, and whether it is a call.
fn target(part: &DisplayPart<'_>, index: usize, count: usize) -> Option<(usize, bool)> {
    let DisplayPart::Field { value, kind, .. } = part else { return None };
    let (target, call) = match kind {
        FieldKind::Branch { call } => (i64::from(*value as u32 as i32) + index as i64, *call),
        FieldKind::AbsBranch { call } => (i64::from(*value as u32), *call),
        _ => return None,
    };
    usize::try_from(target).ok().filter(|&target| target < count).map(|target| (target, call))
}

/// What listing a shader keeps track of.
#[derive(Debug, Default)]
struct Ir3Lister {
    count: usize,
    index: usize,
    /// Cycles that repeats and nop flags add so far.
    cycles: u64,
    ended: bool,
    /// `nop`s after the end without another instruction between.
    nops: u32,
    stop: bool,
}

impl<'t> Printer<'t> for Ir3Lister {
    const TEXT_ONLY: bool = true;

    #[inline]
    fn part(&mut self, part: &DisplayPart<'t>, out: &mut Vec<u8>) -> bool {
        match *part {
            DisplayPart::Name(name) => self.name(name),
            DisplayPart::Field { name: "REPEAT" | "NOP", value, .. } => self.cycles += value,
            DisplayPart::Field { kind: FieldKind::Branch { .. } | FieldKind::AbsBranch { .. }, .. } => {
                if let Some((target, call)) = target(part, self.index, self.count) {
                    let _ = write!(out, "{}{target}", if call { "fxn" } else { "l" });
                    return true;
                }
            }
            _ => {}
        }
        false
    }
}

impl Ir3Lister {
    fn name(&mut self, name: &str) {
        match name {
            "nop" => {
                if self.ended {
                    self.nops += 1;
                    self.stop |= self.nops >= NOPS_AFTER_END;
                }
                return;
            }
            "end" => self.ended = true,
            "chsh" => self.stop = true,
            _ => {}
        }
        self.nops = 0;
    }
}
