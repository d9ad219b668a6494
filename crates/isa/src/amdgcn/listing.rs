//! Code as text that assembles to the same words: an instruction a line, labels where branches go, `.long` where there is
//! no instruction, or one with a literal that assemblers would make an inline constant. Bits that mean nothing are at the end
//! of the line if an assembler would not make them: `unused:[0x0,0x2000000]`.

use super::inst::{Inst, Operand};
use super::model::Class;
use super::plain::PlainPlans;
use super::text::{LOWER, LineBuf, UPPER};
use super::{Gpu, codec, text};
use std::fmt::Write;

/// How a listing looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AmdListingOptions<'a> {
    /// Address and words behind each line, as a comment.
    pub words: bool,
    /// Address of the first byte.
    pub address: u64,
    /// What the names of labels start with behind their `L`: several listings in one file must differ in it.
    pub labels: &'a str,
}

/// What [`write()`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListingCounts {
    /// Instructions.
    pub instructions: usize,
    /// Dwords that are no instruction.
    pub unknown: usize,
}

/// Columns before the comment of a line.
const COMMENT_COLUMN: usize = 60;

/// How far a branch goes at most, in dwords, and as many as an instruction has.
const REACH: usize = (1 << 15) + AHEAD;
/// As many bytes of text as a dword has, about.
const BYTES: usize = 32;
/// No instruction has more dwords.
const AHEAD: usize = 8;

/// Appends a listing of code. `mark` may say something about an address, before its line.
pub fn write(
    code: &[u8],
    gpu: &Gpu,
    options: &AmdListingOptions<'_>,
    out: &mut String,
    mark: &mut dyn FnMut(u64, &mut String),
) -> ListingCounts {
    write_to(code, gpu, options, mark, &mut |part| out.push_str(part))
}

/// A listing of code as [`write()`] makes it, a part at a time: of the whole only two bits a dword are in memory.
pub fn write_to(
    code: &[u8],
    gpu: &Gpu,
    options: &AmdListingOptions<'_>,
    mark: &mut dyn FnMut(u64, &mut String),
    out: &mut dyn FnMut(&str),
) -> ListingCounts {
    let (chunks, tail) = code.as_chunks::<4>();
    let mut ahead = [0u32; AHEAD];
    let mut plain = PlainPlans::new(gpu);
    let mut held = PendingLines::new(chunks.len(), options);
    let mut counts = ListingCounts::default();
    // Whatever instruction: it is read into.
    let Some(mut inst) = Inst::new(0) else { return counts };
    let mut marks = String::new();
    let mut at = 0;
    while let Some(rest) = chunks.get(at..).filter(|rest| !rest.is_empty()) {
        let words = match rest.first_chunk::<AHEAD>() {
            Some(all) => {
                ahead = all.map(u32::from_le_bytes);
                &ahead[..]
            }
            None => {
                for (place, bytes) in ahead.iter_mut().zip(rest) {
                    *place = u32::from_le_bytes(*bytes);
                }
                &ahead[..rest.len()]
            }
        };
        let here = options.address.wrapping_add(4 * at as u64);
        mark(here, &mut marks);
        if !marks.is_empty() {
            held.text.push_str(&marks);
            marks.clear();
        }
        held.begin(at);
        let start = held.text.len();
        let size = if let Some(size) = plain.write(words, &mut held.text) {
            counts.instructions += 1;
            size.into()
        } else if let Some(size) = other(words, at, gpu, &mut inst, &mut held) {
            counts.instructions += 1;
            size
        } else {
            counts.unknown += 1;
            held.text.push(b'\t');
            longs(&words[..1], &mut held.text);
            1
        };
        if options.words {
            comment(&words[..size], here, start, &mut held.text);
        }
        held.text.push(b'\n');
        at += size;
        held.give(at, out);
    }
    held.begin(at);
    if !tail.is_empty() {
        counts.unknown += 1;
        for (i, byte) in tail.iter().enumerate() {
            held.text.push_str(if i == 0 { "\t.byte 0x" } else { ", 0x" });
            held.text.digits((*byte).into(), 2, LOWER);
        }
        held.text.push(b'\n');
    }
    held.flush(usize::MAX, out);
    counts
}

/// Appends the line of an instruction that is not plain, and says how many dwords it has.
fn other(words: &[u32], at: usize, gpu: &Gpu, inst: &mut Inst, held: &mut PendingLines<'_>) -> Option<usize> {
    let start = held.text.len();
    let dwords = codec::decode_executed_into(words, gpu, inst)?.into();
    held.text.push(b'\t');
    let literal = |(slot, operand)| matches!(operand, Operand::Literal(value) if !text::is_literal(inst.opcode(), slot, value, gpu));
    // In LLVM 23's text they are `lit(…)`.
    if !gpu.llvm23() && inst.written().any(literal) {
        longs(words.get(..dwords)?, &mut held.text);
        held.text.push_str(" // ");
    }
    text::write_line(inst, gpu, &mut held.text);
    if inst.has_unused_bits() {
        held.text.push_str(" // bits that mean nothing are set");
        return Some(dwords);
    }
    if let Some(target) = target(inst, at, dwords) {
        held.branch(start, target);
    }
    Some(dwords)
}

/// Appends dwords as such.
fn longs(words: &[u32], out: &mut LineBuf) {
    for (at, word) in words.iter().enumerate() {
        out.push_str(if at == 0 { ".long 0x" } else { ", 0x" });
        out.digits((*word).into(), 8, LOWER);
    }
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

/// A set of dwords.
struct DwordSet(Vec<u64>);

impl DwordSet {
    /// Of so many dwords, and the end behind them.
    fn new(dwords: usize) -> DwordSet {
        DwordSet(vec![0; dwords / 64 + 1])
    }

    fn insert(&mut self, at: usize) {
        if let Some(bits) = self.0.get_mut(at / 64) {
            *bits |= 1 << (at % 64);
        }
    }

    fn has(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 != 0)
    }
}

/// A branch in the text that is held.
struct Branch {
    /// Where its line, its operand and its text begin and end.
    line: usize,
    operand: usize,
    end: usize,
    target: usize,
}

/// Lines that are kept until it is known which of them need a label.
struct PendingLines<'o> {
    options: &'o AmdListingOptions<'o>,
    text: LineBuf,
    /// Dwords at which lines begin, and where in the text.
    lines: Vec<(usize, usize)>,
    branches: Vec<Branch>,
    /// Dwords at which lines begin.
    starts: DwordSet,
    /// Dwords to which branches go.
    wanted: DwordSet,
    /// From this dword on lines are given out.
    next: usize,
}

impl<'o> PendingLines<'o> {
    fn new(dwords: usize, options: &'o AmdListingOptions<'o>) -> PendingLines<'o> {
        PendingLines {
            options,
            text: LineBuf::with_room(dwords.min(3 * REACH) * BYTES),
            lines: Vec::with_capacity(dwords.min(3 * REACH)),
            branches: Vec::new(),
            starts: DwordSet::new(dwords),
            wanted: DwordSet::new(dwords),
            next: 2 * REACH,
        }
    }

    /// A line begins.
    fn begin(&mut self, at: usize) {
        self.starts.insert(at);
        self.lines.push((at, self.text.len()));
    }

    /// The text that ends here is a branch.
    fn branch(&mut self, line: usize, target: usize) {
        let end = self.text.len();
        let operand = self.text.since(line).iter().rposition(|b| *b == b' ').map_or(end, |at| line + at + 1);
        self.wanted.insert(target);
        self.branches.push(Branch { line, operand, end, target });
    }

    /// Gives out the lines that no branch behind a dword can reach, if those are many.
    fn give(&mut self, at: usize, out: &mut dyn FnMut(&str)) {
        if at >= self.next {
            self.flush(at - REACH, out);
            self.next = at + REACH;
        }
    }

    /// Gives out the lines before a dword, with labels.
    fn flush(&mut self, before: usize, out: &mut dyn FnMut(&str)) {
        let count = self.lines.partition_point(|(at, _)| *at < before);
        let end = self.lines.get(count).map_or(self.text.len(), |(_, text)| *text);
        let mut done = 0;
        let mut name = String::new();
        let mut branches = self.branches.iter().take_while(|branch| branch.end <= end).peekable();
        let mut resolved = 0;
        for &(at, text) in self.lines.iter().take(count).filter(|(at, _)| self.wanted.has(*at)) {
            while let Some(branch) = branches.next_if(|branch| branch.end <= text) {
                resolved += 1;
                self.resolve(branch, &mut done, &mut name, out);
            }
            out(self.text.text(done, text));
            done = text;
            name.clear();
            label(self.options, at, &mut name);
            name.push_str(":\n");
            out(&name);
        }
        for branch in branches {
            resolved += 1;
            self.resolve(branch, &mut done, &mut name, out);
        }
        out(self.text.text(done, end));
        self.text.forget(end);
        self.lines.drain(..count);
        self.branches.drain(..resolved);
        self.lines.iter_mut().for_each(|(_, text)| *text -= end);
        for branch in &mut self.branches {
            branch.line -= end;
            branch.operand -= end;
            branch.end -= end;
        }
    }

    /// Gives out the text up to the end of a branch, with the label of its target if a line begins there.
    fn resolve(&self, branch: &Branch, done: &mut usize, name: &mut String, out: &mut dyn FnMut(&str)) {
        if !self.starts.has(branch.target) {
            return;
        }
        out(self.text.text(*done, branch.operand));
        name.clear();
        label(self.options, branch.target, name);
        *done = branch.end;
        if self.options.words {
            // The comment stays in its column.
            let column = |length: usize| COMMENT_COLUMN.saturating_sub(length);
            let pad = column(branch.operand - branch.line + name.len());
            name.extend(std::iter::repeat_n(' ', pad));
            *done += column(branch.end - branch.line);
        }
        out(name);
    }
}

fn label(options: &AmdListingOptions<'_>, at: usize, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "L{}{at:x}", options.labels);
}

fn comment(words: &[u32], here: u64, start: usize, out: &mut LineBuf) {
    out.spaces(COMMENT_COLUMN.saturating_sub(out.len() - start));
    out.push_str(" // ");
    let count = (64 - here.leading_zeros()).div_ceil(4).max(12);
    out.digits(here, count as usize, UPPER);
    out.push(b':');
    for word in words {
        out.push(b' ');
        out.digits((*word).into(), 8, UPPER);
    }
}
