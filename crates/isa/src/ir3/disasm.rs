//! Text of ir3 instructions and shaders, equal to what Mesa's disassembler prints.
//!
//! Never: operand syntax of its own; that is in the table's templates.

use crate::table::program::WriteOutcome;
use crate::table::{DecodeFaults, DecodedWord, DisplayPart, FieldKind, Printer, print};
use crate::tables::{IR3, IR3_INSTRUCTION, IR3_PROGRAMS};
use std::io::Write;
use unwedge_base::Dwords;

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

/// The listing of a shader, made instruction by instruction: code may be much longer than anybody wants its text to be
/// in memory.
///
/// One instruction a line, with labels, as the tools that print whole shaders have it. It ends after `chsh`, four `nop`s
/// after an `end`, six words in a row that are not valid instructions, or the words.
pub struct Ir3Listing<'a> {
    code: Dwords<'a>,
    options: Ir3ListingOptions,
    /// Where labels stand, sorted.
    branches: Vec<usize>,
    calls: Vec<usize>,
    lister: Ir3Lister,
    listed: usize,
    /// So many words before this one are not valid instructions.
    faulty: u32,
    /// Faults of words that are no instructions, for the next line.
    pending: DecodeFaults<'static>,
}

impl<'a> Ir3Listing<'a> {
    /// Reads the code once, for the branches in it.
    pub fn new(code: Dwords<'a>, options: Ir3ListingOptions) -> Ir3Listing<'a> {
        let lister = Ir3Lister { count: code.len() / 2, ..Ir3Lister::default() };
        let (branches, calls) = targets(code, options.gpu_id);
        let pending = DecodeFaults::default();
        Ir3Listing { code, options, branches, calls, lister, listed: 0, faulty: 0, pending }
    }

    /// Words listed so far.
    pub fn listed(&self) -> usize {
        self.listed
    }

    /// Appends the next instruction, after its labels; `false` when there is none.
    pub fn instruction(&mut self, out: &mut Vec<u8>) -> bool {
        if self.lister.stop || self.faulty > MAX_FAULTY {
            return false;
        }
        let Some(word) = self.code.get64(2 * self.listed) else { return false };
        let index = self.listed;
        self.lister.index = index;
        self.listed += 1;
        self.labels(word, index, out);
        self.prefix(word, out);
        let Some(decoded) = decode(word, self.options.gpu_id) else {
            let _ = writeln!(out, "no match: {word:016x}");
            // Mesa says so after the next instruction.
            IR3.conflict(IR3_INSTRUCTION, word.into(), self.options.gpu_id)
                .into_iter()
                .for_each(|f| self.pending.push(f));
            self.faulty += 1;
            return true;
        };
        let mut faults = std::mem::take(&mut self.pending);
        print(&decoded, &mut self.lister, out).iter().for_each(|fault| faults.push(fault));
        faults.write(64, out);
        self.faulty = if faults.is_empty() { 0 } else { self.faulty + 1 };
        out.push(b'\n');
        true
    }

    fn labels(&self, word: u64, index: usize, out: &mut Vec<u8>) {
        if self.calls.binary_search(&index).is_ok() {
            if index != 0 {
                self.prefix(word, out);
                out.push(b'\n');
            }
            self.prefix(word, out);
            let _ = writeln!(out, "fxn{index}:");
        }
        if self.branches.binary_search(&index).is_ok() {
            self.prefix(word, out);
            let _ = writeln!(out, "l{index}:");
        }
    }

    fn prefix(&self, word: u64, out: &mut Vec<u8>) {
        if !self.options.raw {
            return;
        }
        match self.options.level {
            level @ 0..10 => out.extend(std::iter::repeat_n(b'\t', level)),
            _ => out.push(b'x'),
        }
        let (category, index, high, low) = (word >> 61, self.lister.index, word >> 32, word as u32);
        let cycle = self.lister.cycles.saturating_add(index as u64);
        let _ = write!(out, ":{category}:{index:04}:{cycle:04}[{high:08x}x_{low:08x}x] ");
    }
}

/// The instructions that branches and calls of the shader go to, sorted.
fn targets(code: Dwords<'_>, gpu_id: u32) -> (Vec<usize>, Vec<usize>) {
    let (mut branches, mut calls) = (Vec::new(), Vec::new());
    let count = code.len() / 2;
    for (index, word) in code.iter64().take(code.stored().len().div_ceil(2)).enumerate() {
        // Only flow control has branches, and most of a shader is not that. Zero is `nop`: the rest of many a buffer.
        if word >> 61 != 0 || word == 0 {
            continue;
        }
        let Some(decoded) = decode(word, gpu_id) else { continue };
        decoded.walk(&mut |part| {
            if let Some((target, call)) = target(&part, index, count) {
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
