//! Programs: the templates of a table worked out in advance, so that a word's text is looked up piece by piece.
//!
//! Most of a line depends on few bits at a time: a flag, a register, the form of an operand. The build asks the
//! templates for the text of every value that such bits have and keeps the answers (`build`); the program of an
//! encoding is the list of these look-ups, in order, and this module runs it.
//!
//! Beside the text comes the word's *shape*: the word with the bits that the text tells as they are (a register's
//! number, a flag) replaced by ones that stand for all of their kind. Words of one shape differ only in such bits
//! (`classes`).
//!
//! Never: words of more than 64 bits; words that something rare is odd about, which are left to the templates.

mod build;
mod classes;
mod depends;

pub use build::OwnedPrograms;

use super::print::write_field;
use super::read::{DecodeFault, DecodeFaults};
use super::rows::{Assert, DecodeNode, RowSpan, TextId};
use super::types::{IsaTable, bits, rows};

/// The programs of the words of one root.
#[derive(Clone, Copy, Debug)]
pub struct Programs<'t> {
    /// The first generation of each class of generations, in which all is alike.
    pub(crate) bounds: &'t [u32],
    /// The decode tree of each class.
    pub(crate) trees: &'t [u32],
    pub(crate) nodes: &'t [DecodeNode],
    pub(crate) picks: &'t [u32],
    pub(crate) heads: &'t [ProgramHead],
    pub(crate) programs: &'t [LineProgram],
    pub(crate) steps: &'t [LineStep],
    pub(crate) targets: &'t [u16],
    pub(crate) ways: &'t [ConditionalProgram],
    pub(crate) checks: &'t [WordCheck],
    pub(crate) texts: &'t [PackedText],
}

/// An encoding in a class of generations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ProgramHead {
    pub mask: u64,
    pub value: u64,
    /// Bits that may be anything and mean nothing.
    pub ignored: u64,
    /// Bits that its text does not depend on.
    pub unseen: u64,
    pub owner: TextId,
    pub program: u16,
    /// What makes its bits those of the first encoding that differs in nothing but the name.
    pub rename: u64,
    /// Its name, and the length of that.
    pub name: PackedName,
    pub name_len: u8,
}

/// Steps, and the bits of a word that is sound so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineProgram {
    pub mask: u64,
    pub value: u64,
    /// What may be wrong with one that is not.
    pub checks: RowSpan,
    pub steps: RowSpan,
}

/// Something that may be wrong with a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum WordCheck {
    /// These bits, of what starts at `low`, mean nothing.
    Ignored { owner: TextId, low: u8, bits: u64 },
    /// Bits should be so.
    Bits(Assert),
    /// There is no such operand.
    NoForm { owner: TextId, field: TextId, low: u8, width: u8 },
    /// There is no template.
    NoDisplay(TextId),
}

/// No program: the word is odd.
pub(crate) const ODD_PROGRAM: u16 = u16::MAX;

/// A piece of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LineStep {
    /// The text before what is looked up.
    pub before: PackedText,
    pub what: StepLookup,
    /// The bits that it is looked up by: lowest one, mask after shifting down, place in the index.
    pub runs: [(u8, u16, u8); MAX_RUNS],
    /// Bits of the shape that the text tells, and what stands for them.
    pub deps: u64,
    pub typical: u64,
}

/// What is looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum StepLookup {
    Nothing,
    /// The encoding's name.
    Name,
    /// A text, from this one on, by one run of bits.
    Run(u32),
    /// By more.
    Runs(u32),
    /// A program, from this one on.
    Forms(u32),
    /// The program of the first way whose condition holds.
    Ways {
        at: u32,
        len: u32,
    },
    /// A field that has too many values for a table.
    Field(u32),
}

/// A condition and a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ConditionalProgram {
    pub when: u32,
    pub program: u16,
}

/// Separate runs of bits a step may look at.
pub(crate) const MAX_RUNS: usize = 4;
/// Bytes of a text.
pub(crate) const MAX_TEXT: usize = 15;
/// A text of a fixed size, which is copied faster than one of any: its bytes, and in the last one its length, with
/// these marks.
pub(crate) type PackedText = [u8; MAX_TEXT + 1];
/// The bits are not of the usual kind and stay as they are in the shape.
pub(crate) const SPECIAL: u8 = 0x10;
/// There is no text.
pub(crate) const ODD: u8 = 0x20;
/// A name, of a fixed size as well.
pub(crate) type PackedName = [u8; 32];
/// Bytes of a line that are collected before they are appended.
const LINE: usize = 256;

/// What became of a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "it is looked at once for each word, and never kept")]
pub enum WriteOutcome<'t> {
    /// Its text is there.
    Text {
        /// The word, with other words' bits where the text tells them.
        shape: u64,
        /// Bits that the text does not depend on; in the shape they are as they are.
        unseen: u64,
        /// What is odd about it.
        faults: DecodeFaults<'t>,
    },
    /// It is odd: nothing is there.
    Odd,
    /// No encoding matches, or two do: nothing is there.
    Unknown,
}

impl LineStep {
    #[inline(always)]
    fn index(&self, word: u64) -> usize {
        let at = |(low, mask, place): (u8, u16, u8)| (word >> (low & 63) & u64::from(mask)) << (place & 63);
        let [a, b, c, d] = self.runs;
        (at(a) | at(b) | at(c) | at(d)) as usize
    }

    #[inline(always)]
    fn only_run(&self, word: u64) -> usize {
        let [(low, mask, _), ..] = self.runs;
        (word >> (low & 63)) as usize & usize::from(mask)
    }
}

impl Programs<'_> {
    /// Appends the text of a word of `table`, which the programs were made of, without its faults.
    #[inline]
    pub fn write<'t>(
        &self,
        table: &'t IsaTable<'t>,
        word: u64,
        generation: u32,
        out: &mut Vec<u8>,
    ) -> WriteOutcome<'t> {
        let Some(head) = self.find(word, generation) else { return WriteOutcome::Unknown };
        let start = out.len();
        let mut run = ProgramRun {
            programs: self,
            table,
            head,
            word,
            generation,
            shape: word ^ head.rename,
            faults: DecodeFaults::default(),
            line: [0; LINE],
            out,
        };
        if word & head.ignored != 0 {
            let check = WordCheck::Ignored { owner: head.owner, low: 0, bits: head.ignored };
            run.faults.extend(check.fault(table, word));
        }
        match run.program(head.program, 0) {
            Some(end) => {
                run.flush(end);
                WriteOutcome::Text { shape: run.shape, unseen: head.unseen, faults: run.faults }
            }
            None => {
                out.truncate(start);
                WriteOutcome::Odd
            }
        }
    }

    #[inline]
    fn find(&self, word: u64, generation: u32) -> Option<&ProgramHead> {
        let class = self.bounds.iter().rposition(|&first| first <= generation)?;
        let mut node = self.nodes.get(*self.trees.get(class)? as usize)?;
        while let DecodeNode::Switch { low, bits, first } = *node {
            let value = word >> (low & 63) & ((1 << (bits & 63)) - 1);
            node = self.nodes.get(first as usize + value as usize)?;
        }
        let DecodeNode::Leaves { at, len } = *node else { return None };
        let matching =
            |&pick: &u32| self.heads.get(pick as usize).filter(|head| word & head.mask == head.value);
        let mut found = rows(self.picks, RowSpan { at, len }).iter().filter_map(matching);
        let head = found.next();
        if found.next().is_none() { head } else { None }
    }
}

struct ProgramRun<'p, 't> {
    programs: &'p Programs<'p>,
    table: &'t IsaTable<'t>,
    head: &'p ProgramHead,
    word: u64,
    generation: u32,
    shape: u64,
    faults: DecodeFaults<'t>,
    /// What is not appended yet.
    line: [u8; LINE],
    out: &'p mut Vec<u8>,
}

impl ProgramRun<'_, '_> {
    /// Adds to the line, of which there are `end` bytes; gives how many there are then. `None`: the word is odd, or its
    /// line too long.
    fn program(&mut self, program: u16, mut end: usize) -> Option<usize> {
        let programs = self.programs;
        let program = programs.programs.get(usize::from(program))?;
        if self.word & program.mask != program.value {
            self.check(program.checks);
        }
        for step in rows(programs.steps, program.steps) {
            end = self.append(&step.before, step.before[MAX_TEXT], end)?;
            end = match step.what {
                StepLookup::Nothing => end,
                StepLookup::Name => self.append(&self.head.name, self.head.name_len, end)?,
                StepLookup::Run(first) => self.text(step, first as usize + step.only_run(self.word), end)?,
                StepLookup::Runs(first) => self.text(step, first as usize + step.index(self.word), end)?,
                StepLookup::Forms(first) => {
                    self.program(*programs.targets.get(first as usize + step.index(self.word))?, end)?
                }
                StepLookup::Ways { at, len } => {
                    let holds = |way: &&ConditionalProgram| {
                        self.table.holds(way.when, self.word.into(), self.generation, &mut |_, _, _| 0)
                    };
                    let way = rows(programs.ways, RowSpan { at, len }).iter().find(holds)?;
                    self.program(way.program, end)?
                }
                StepLookup::Field(field) => {
                    self.flush(end);
                    self.field(step, field)?;
                    0
                }
            };
        }
        Some(end)
    }

    #[inline(always)]
    fn append<const N: usize>(&mut self, text: &[u8; N], len: u8, end: usize) -> Option<usize> {
        self.line.get_mut(end..)?.first_chunk_mut()?.clone_from(text);
        Some(end + usize::from(len) % N)
    }

    #[inline(always)]
    fn text(&mut self, step: &LineStep, at: usize, end: usize) -> Option<usize> {
        let text = self.programs.texts.get(at)?;
        let mark = text[MAX_TEXT];
        if mark & ODD != 0 {
            return None;
        }
        if mark & SPECIAL == 0 {
            self.shape = self.shape & !step.deps | step.typical;
        }
        self.append(text, mark, end)
    }

    fn flush(&mut self, end: usize) {
        self.out.extend_from_slice(self.line.get(..end).unwrap_or_default());
    }

    fn field(&mut self, step: &LineStep, field: u32) -> Option<()> {
        let field = self.table.fields.get(field as usize)?;
        let value = self.table.value(field, self.word.into(), self.generation, &mut |_, _, _| 0);
        write_field(value, field.width.into(), self.table.kind(field.ty, value)?, self.out);
        self.shape = self.shape & !step.deps | step.typical;
        Some(())
    }

    /// Takes note of what is wrong.
    #[cold]
    fn check(&mut self, checks: RowSpan) {
        for check in rows(self.programs.checks, checks) {
            self.faults.extend(check.fault(self.table, self.word));
        }
    }
}

impl WordCheck {
    fn fault<'t>(&self, table: &IsaTable<'t>, word: u64) -> Option<DecodeFault<'t>> {
        match *self {
            WordCheck::Ignored { owner, low, bits } => {
                let bits = word >> (low & 63) & bits;
                (bits != 0).then(|| DecodeFault::Ignored { owner: table.text(owner), bits: bits.into() })
            }
            WordCheck::Bits(assert) => assert.fault(table, word.into()),
            WordCheck::NoForm { owner, field, low, width } => {
                let bits = bits(word.into(), low, width).into();
                Some(DecodeFault::NoForm { owner: table.text(owner), field: table.text(field), bits })
            }
            WordCheck::NoDisplay(owner) => Some(DecodeFault::NoDisplay(table.text(owner))),
        }
    }
}
