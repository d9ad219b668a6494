//! Code as text that assembles to the same words: an instruction a line, labels where branches go, `.long` where there is
//! no instruction.

use super::faithful::Faithful;
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

/// How far a branch goes at most, in dwords, and as many as an instruction has.
const REACH: usize = (1 << 15) + AHEAD;
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
    let mut faithful = Faithful::new(gpu, chunks.len());
    let mut recent = Recent::new(chunks.len());
    let mut held = Held::new(chunks.len(), options);
    let mut counts = Counts::default();
    // Whatever instruction: it is read into.
    let Some(mut inst) = Inst::new(0) else { return counts };
    let mut at = 0;
    while let Some(rest) = chunks.get(at..).filter(|rest| !rest.is_empty()) {
        for (place, bytes) in ahead.iter_mut().zip(rest) {
            *place = u32::from_le_bytes(*bytes);
        }
        let words = &ahead[..rest.len().min(AHEAD)];
        let here = options.address.wrapping_add(4 * at as u64);
        mark(here, &mut held.text);
        held.begin(at);
        let start = held.text.len();
        held.text.push('\t');
        if let Some((dwords, line)) = recent.find(words) {
            held.text.push_str(line);
            counts.instructions += 1;
            at += end(&mut held, &words[..dwords], here, start, options);
            held.give(at, out);
            continue;
        }
        let dwords = codec::decode_into(words, gpu, &mut inst);
        let own = dwords.and_then(|dwords| words.get(..usize::from(dwords)));
        let size = match own {
            Some(own) if says_all(&mut faithful, &inst, own, gpu, &mut held.text) => {
                counts.instructions += 1;
                match target(&inst, at, own.len()) {
                    Some(target) => held.branch(start, target),
                    // The text of a branch depends on where it is.
                    None if inst.written().any(|(slot, _)| slot.class == Class::Label) => {}
                    None => recent.put(own, held.text.get(start + 1..).unwrap_or_default()),
                }
                own.len()
            }
            _ => {
                counts.unknown += 1;
                held.text.push_str(".long ");
                hexadecimal(words[0], &mut held.text);
                1
            }
        };
        at += end(&mut held, &words[..size], here, start, options);
        held.give(at, out);
    }
    held.begin(at);
    if !tail.is_empty() {
        counts.unknown += 1;
        for (i, byte) in tail.iter().enumerate() {
            held.text.push_str(if i == 0 { "\t.byte " } else { ", " });
            // Writing to a string does not fail.
            let _ = write!(held.text, "0x{byte:02x}");
        }
        held.text.push('\n');
    }
    held.flush(usize::MAX, out);
    counts
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

/// Appends the text of an instruction, if it assembles to the words it was read from.
fn says_all(faithful: &mut Faithful<'_>, inst: &Inst, words: &[u32], gpu: &Gpu, out: &mut String) -> bool {
    let start = out.len();
    text::write(inst, gpu, out);
    let same = faithful.says_all(inst, words, out.get(start..).unwrap_or_default());
    if !same {
        out.truncate(start);
    }
    same
}

/// Ends a line; returns of how many dwords it is.
fn end(held: &mut Held<'_>, words: &[u32], here: u64, start: usize, options: &Options<'_>) -> usize {
    if options.words {
        comment(words, here, start, &mut held.text);
    }
    held.text.push('\n');
    words.len()
}

/// Instructions that have been written lately, with their text: code repeats itself.
struct Recent(Vec<Line>);

/// One of them: no longer than these.
#[derive(Clone, Copy)]
struct Line {
    words: [u32; 3],
    dwords: u8,
    length: u8,
    text: [u8; 46],
}

impl Recent {
    /// The most that are remembered.
    const MOST: usize = 2048;

    /// For so many dwords of code.
    fn new(dwords: usize) -> Recent {
        let none = Line { words: [0; 3], dwords: 0, length: 0, text: [0; 46] };
        Recent(vec![none; (dwords / 4).next_power_of_two().min(Recent::MOST)])
    }

    /// Where an instruction has its place; `second`: 0 of those of one dword.
    fn place(&self, first: u32, second: u32) -> usize {
        let both = u64::from(second) << 32 | u64::from(first);
        (both.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as usize & (self.0.len() - 1)
    }

    /// The instruction that words begin with: its dwords, and its text.
    fn find(&self, words: &[u32]) -> Option<(usize, &str)> {
        let [first, rest @ ..] = words else { return None };
        let is = |place: usize| {
            self.0.get(place).filter(|line| {
                // No call for so few.
                let same = |at: usize| at >= line.dwords.into() || words.get(at) == line.words.get(at);
                line.dwords != 0 && same(0) && same(1) && same(2)
            })
        };
        let second = || is(self.place(*first, *rest.first()?));
        let line = is(self.place(*first, 0)).or_else(second)?;
        let text = line.text.get(..usize::from(line.length))?;
        Some((line.dwords.into(), std::str::from_utf8(text).ok()?))
    }

    fn put(&mut self, own: &[u32], text: &str) {
        let [first, rest @ ..] = own else { return };
        let place = self.place(*first, rest.first().copied().unwrap_or(0));
        let Some(line) = self.0.get_mut(place) else { return };
        let (Some(words), Some(bytes)) = (line.words.get_mut(..own.len()), line.text.get_mut(..text.len()))
        else {
            return;
        };
        words.copy_from_slice(own);
        bytes.copy_from_slice(text.as_bytes());
        (line.dwords, line.length) = (own.len() as u8, text.len() as u8);
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
    text: String,
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
            text: String::new(),
            lines: Vec::new(),
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
        let operand = self.text.get(line..).and_then(|text| text.rfind(' ')).map_or(end, |at| line + at + 1);
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
            out(self.text.get(done..text).unwrap_or_default());
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
        out(self.text.get(done..end).unwrap_or_default());
        self.text.drain(..end);
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
        out(self.text.get(*done..branch.operand).unwrap_or_default());
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
