//! Code as text that assembles to the same words: an instruction a line, labels where branches go, `.long` where there is
//! no instruction.

use super::inst::{Inst, Operand};
use super::model::Class;
use super::plain::Plain;
use super::text::{LOWER, Line, UPPER};
use super::{Gpu, codec, tables, text};
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
    options: &Options<'_>,
    out: &mut String,
    mark: &mut dyn FnMut(u64, &mut String),
) -> Counts {
    write_to(code, gpu, options, mark, &mut |part| out.push_str(part))
}

/// A listing of code as [`write()`] makes it, a part at a time: of the whole only two bits a dword are in memory.
pub fn write_to(
    code: &[u8],
    gpu: &Gpu,
    options: &Options<'_>,
    mark: &mut dyn FnMut(u64, &mut String),
    out: &mut dyn FnMut(&str),
) -> Counts {
    let (chunks, tail) = code.as_chunks::<4>();
    let mut ahead = [0u32; AHEAD];
    let mut plain = Plain::new(gpu);
    let mut recent = Recent::new(chunks.len(), gpu);
    let mut held = Held::new(chunks.len(), options);
    let mut counts = Counts::default();
    // Whatever instruction: it is read into.
    let Some(mut inst) = Inst::new(0) else { return counts };
    let mut said = String::new();
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
        mark(here, &mut said);
        if !said.is_empty() {
            held.text.push_str(&said);
            said.clear();
        }
        held.begin(at);
        let start = held.text.len();
        let size = if let Some(size) = plain.write(words, &mut held.text) {
            counts.instructions += 1;
            size.into()
        } else if let Some(size) = other(words, at, gpu, &mut inst, &mut recent, &mut held) {
            counts.instructions += 1;
            size
        } else {
            counts.unknown += 1;
            held.text.push_str("\t.long 0x");
            held.text.digits(words[0].into(), 8, LOWER);
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
#[inline(never)]
fn other(
    words: &[u32],
    at: usize,
    gpu: &Gpu,
    inst: &mut Inst,
    recent: &mut Recent,
    held: &mut Held<'_>,
) -> Option<usize> {
    let place = recent.place(words);
    if let Some(line) = recent.find(place, words) {
        held.text.start_of(&line.text, line.length.into());
        return Some(line.dwords.into());
    }
    let start = held.text.len();
    let own = codec::decode_into(words, gpu, inst).and_then(|n| words.get(..n.into()))?;
    held.text.push(b'\t');
    text::write_line(inst, gpu, &mut held.text);
    match target(inst, at, own.len()) {
        Some(target) => held.branch(start, target),
        // The text of a branch depends on where it is.
        None if inst.written().any(|(slot, _)| slot.class == Class::Label) => {}
        None => {
            let length = held.text.len() - start;
            if let (Some(words), Some(text)) = (words.first_chunk(), held.text.room(start)) {
                recent.put(place, words, own.len(), text, length);
            }
        }
    }
    Some(own.len())
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

/// Instructions that have been written lately, with their text: code repeats itself.
struct Recent {
    /// What shows that an instruction is not there without looking at it: the lines are more than fits into fast caches.
    marks: Vec<u32>,
    lines: Vec<Remembered>,
    /// By the highest bits of a dword: whether an instruction that begins so has a second.
    long: Box<[bool; 512]>,
}

/// The longest text that is remembered.
const TEXT: usize = 50;

/// One of them: no longer than these.
#[derive(Clone, Copy)]
struct Remembered {
    words: [u32; 3],
    dwords: u8,
    length: u8,
    text: [u8; TEXT],
}

impl Recent {
    /// The most that are remembered: half a megabyte.
    const MOST: usize = 1 << 13;

    /// For so many dwords of code.
    fn new(dwords: usize, gpu: &Gpu) -> Recent {
        let none = Remembered { words: [0; 3], dwords: 0, length: 0, text: [0; TEXT] };
        let count = (dwords / 2).next_power_of_two().min(Recent::MOST);
        let (marks, lines) = (vec![0; count], vec![none; count]);
        let mut long = Box::new([false; 512]);
        for (top, long) in (0..).zip(long.iter_mut()) {
            *long = tables::begins_long(top << 23, gpu);
        }
        Recent { marks, lines, long }
    }

    /// Where an instruction has its place, and its mark: told by the dwords that it has, as far as its first shows how many.
    fn place(&self, words: &[u32]) -> (usize, u32) {
        let [first, rest @ ..] = words else { return (0, 0) };
        let long = self.long[(first >> 23) as usize];
        // Sources that say what a second dword is.
        let more = |code: u32| matches!(code & 0xff, 0xe9 | 0xea | 0xf9 | 0xfa | 0xff);
        let second = match rest.first() {
            Some(second) if long || more(*first) || more(*first >> 8) => *second,
            _ => 0,
        };
        let both = u64::from(second) << 32 | u64::from(*first);
        let hash = both.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        ((hash >> 51) as usize & (self.lines.len() - 1), (hash >> 20) as u32 | 1)
    }

    /// The instruction that words begin with, if it is the one at a place.
    fn find(&self, (place, mark): (usize, u32), words: &[u32]) -> Option<&Remembered> {
        if *self.marks.get(place)? != mark {
            return None;
        }
        let line = self.lines.get(place)?;
        // No call for so few.
        let same = |at: usize| at >= line.dwords.into() || words.get(at) == line.words.get(at);
        (same(0) && same(1) && same(2)).then_some(line)
    }

    /// Remembers an instruction of so many of these words, and so much of this text, if there is room for it.
    fn put(
        &mut self,
        (place, mark): (usize, u32),
        words: &[u32; 3],
        dwords: usize,
        text: &[u8; TEXT],
        length: usize,
    ) {
        if dwords > words.len() || length > text.len() {
            return;
        }
        if let (Some(line), Some(place)) = (self.lines.get_mut(place), self.marks.get_mut(place)) {
            *line = Remembered { words: *words, dwords: dwords as u8, length: length as u8, text: *text };
            *place = mark;
        }
    }
}

/// A set of dwords.
struct Set(Vec<u64>);

impl Set {
    /// Of so many dwords, and the end behind them.
    fn new(dwords: usize) -> Set {
        Set(vec![0; dwords / 64 + 1])
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
struct Held<'o> {
    options: &'o Options<'o>,
    text: Line,
    /// Dwords at which lines begin, and where in the text.
    lines: Vec<(usize, usize)>,
    branches: Vec<Branch>,
    /// Dwords at which lines begin.
    starts: Set,
    /// Dwords to which branches go.
    wanted: Set,
    /// From this dword on lines are given out.
    next: usize,
}

impl<'o> Held<'o> {
    fn new(dwords: usize, options: &'o Options<'o>) -> Held<'o> {
        Held {
            options,
            text: Line::with_room(dwords.min(3 * REACH) * BYTES),
            lines: Vec::with_capacity(dwords.min(3 * REACH)),
            branches: Vec::new(),
            starts: Set::new(dwords),
            wanted: Set::new(dwords),
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

fn label(options: &Options<'_>, at: usize, out: &mut String) {
    // Writing to a string does not fail.
    let _ = write!(out, "L{}{at:x}", options.labels);
}

fn comment(words: &[u32], here: u64, start: usize, out: &mut Line) {
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
