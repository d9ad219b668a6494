//! Reads instructions as they are printed, quickly: by the [`Plan`] of their name, over a padded line.
//!
//! It makes the matcher's first choice at every place, in the matcher's order, and collects the same facts. Whatever is
//! spelled otherwise, or contradicts itself where there are other choices, is none of its business: it says so, and
//! [`super::matcher`] reads the text from the start. It never tells what is wrong.

use super::facts::{Fit, LabelUse, Misfit, WordFacts};
use super::grammar::{BitWindow, Grammar, ValueTarget};
use super::matcher::is_word;
use super::number;
use super::plan::{Claims, FlagEffect, FlagMark, Flags, MOST_SLOTS, Plan, PlanBranch, PlanChoice, PlanStep};
use std::ops::Range;

/// Bytes of the longest line that is read here.
const LONGEST: usize = 160;
/// What a hexadecimal number starts with, as two bytes of a word.
const ZERO_X: u16 = u16::from_le_bytes(*b"0x");
const ZERO_X_CAPITAL: u16 = u16::from_le_bytes(*b"0X");

/// A line, with zeros behind it.
pub(super) struct PaddedLine {
    bytes: [u8; LONGEST + 8],
    length: usize,
}

impl PaddedLine {
    pub fn new() -> PaddedLine {
        PaddedLine { bytes: [0; LONGEST + 8], length: 0 }
    }

    /// Takes a text; false if it is too long.
    pub fn take(&mut self, text: &[u8]) -> bool {
        let Some(room) = self.bytes.get_mut(..text.len() + 8).filter(|_| text.len() <= LONGEST) else {
            return false;
        };
        let (copy, zeros) = room.split_at_mut(text.len());
        copy.copy_from_slice(text);
        zeros.fill(0);
        self.length = text.len();
        true
    }

    /// Eight bytes.
    #[inline]
    pub fn head(&self, at: usize) -> u64 {
        self.bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |bytes| u64::from_le_bytes(*bytes))
    }

    #[inline]
    pub fn byte(&self, at: usize) -> u8 {
        self.bytes.get(at).copied().unwrap_or(0)
    }

    /// What is left of the text.
    pub fn rest(&self, at: usize) -> &[u8] {
        self.bytes.get(at..self.length).unwrap_or_default()
    }
}

/// The flags that stand at a place. The value of a slot that is not there is zero.
#[derive(Clone, Copy, Default)]
struct FlagsRead {
    slots: u32,
    values: [u8; MOST_SLOTS],
}

impl FlagsRead {
    #[inline]
    fn fit(&self, way: &PlanBranch) -> bool {
        self.slots & !way.known == 0 && way.needed & !self.slots == 0
    }

    #[inline]
    fn value(&self, slot: u8) -> u64 {
        u64::from(self.values.get(usize::from(slot)).copied().unwrap_or(0))
    }
}

/// Reads a line whose name is at `name`. What is found are the facts, and the bits that are set where they do not say
/// otherwise. `None`: ask the matcher.
pub(super) fn read(
    plan: &Plan,
    grammar: &Grammar,
    line: &PaddedLine,
    name: Range<usize>,
    facts: &mut WordFacts,
) -> Option<u64> {
    let mut reader = PlanReader { grammar, line, at: 0, contested: false, facts };
    let seen = reader.flags(&plan.choice.flags, true)?;
    if reader.at != name.start {
        return None;
    }
    for (way, unshown) in plan.choice.ways.iter().zip(&plan.unshown) {
        if !seen.fit(way) {
            continue;
        }
        reader.facts.reset();
        reader.at = name.end;
        reader.contested = false;
        let fits = reader.way(way, &seen).is_ok();
        if fits && reader.at == line.length {
            return Some(*unshown);
        }
        if (fits || reader.facts.conflict) && reader.contested {
            return None;
        }
    }
    None
}

struct PlanReader<'a> {
    grammar: &'a Grammar,
    line: &'a PaddedLine,
    at: usize,
    /// Something was read in one of several ways that it may be read.
    contested: bool,
    facts: &'a mut WordFacts,
}

impl PlanReader<'_> {
    /// The flags that stand here; `None` where a number is not one.
    #[inline]
    fn flags(&mut self, flags: &Flags, blanks: bool) -> Option<FlagsRead> {
        let mut seen = FlagsRead::default();
        let mut rank = 0;
        loop {
            if blanks {
                self.blanks();
            }
            let head = self.line.head(self.at);
            if !flags.starts.has(head as u8) {
                return Some(seen);
            }
            let mut may = flags.seconds[usize::from((head >> 8) as u8 & 31)];
            let mark = loop {
                let Some(mark) = flags.marks.get(may.trailing_zeros() as usize) else { return Some(seen) };
                if mark.text.heads(head)
                    && self.stands(mark, head)
                    && mark.rank >= rank
                    && seen.slots >> mark.slot & 1 == 0
                {
                    break mark;
                }
                may &= may - 1;
            };
            self.at += mark.text.length;
            let mut value = mark.value;
            if mark.number {
                value = u8::try_from(self.number().ok()?).ok()?;
                if self.line.byte(self.at) != b')' {
                    return None;
                }
                self.at += 1;
            }
            seen.slots |= 1 << mark.slot;
            if let Some(place) = seen.values.get_mut(usize::from(mark.slot)) {
                *place = value;
            }
            rank = mark.rank;
        }
    }

    #[inline]
    fn stands(&self, mark: &FlagMark, head: u64) -> bool {
        mark.text.stands(self.line, self.at, head)
            && !(mark.word && is_word(self.line.byte(self.at + mark.text.length)))
    }

    #[inline]
    fn says(&mut self, says: &FlagEffect, seen: &FlagsRead) -> Fit {
        let mut value = says.value;
        let mut slots = seen.slots;
        while slots != 0 {
            let slot = slots.trailing_zeros();
            slots &= slots - 1;
            let low = says.lows.get(slot as usize).copied().unwrap_or(64);
            value ^= seen.value(slot as u8).checked_shl(low.into()).unwrap_or(0);
        }
        self.facts.set(says.mask, value)?;
        if says.claims.is_empty() { Ok(()) } else { self.claims(&says.claims, seen) }
    }

    /// Flags that stand there speak before those that do not.
    fn claims(&mut self, claims: &[Claims], seen: &FlagsRead) -> Fit {
        for present in [1, 0] {
            for of in claims.iter().filter(|of| seen.slots >> of.slot & 1 == present) {
                let value = seen.value(of.slot) ^ of.flip;
                match of.target {
                    ValueTarget::Derived { expr, bits: 1 } if value <= 1 => {
                        self.facts.condition(self.grammar, (expr, value == 1))?;
                    }
                    target => self.unsigned(target, value)?,
                }
            }
        }
        Ok(())
    }

    fn choice(&mut self, choice: &PlanChoice) -> Fit {
        let seen = match choice.flags.marks.is_empty() {
            true => FlagsRead::default(),
            false => self.flags(&choice.flags, false).ok_or(Misfit)?,
        };
        let (at, contested, mark) = (self.at, self.contested, self.facts.mark());
        let next = self.line.byte(at);
        let can = |way: &PlanBranch| seen.fit(way) && (way.starts.has(next) || next == b' ');
        for (i, way) in choice.ways.iter().enumerate() {
            if !can(way) {
                continue;
            }
            if self.way(way, &seen).is_ok() {
                self.contested |=
                    way.contested && choice.ways[i + 1..].iter().any(|way| can(way) && self.may_be(way, at));
                return Ok(());
            }
            (self.at, self.contested) = (at, contested);
            self.facts.rewind(mark);
        }
        Err(Misfit)
    }

    /// Whether the text at a place may be what a way begins with.
    fn may_be(&self, way: &PlanBranch, at: usize) -> bool {
        let head = self.line.head(at);
        match way.body.steps.first() {
            Some(PlanStep::Text(text, _)) => text.heads(head),
            Some(PlanStep::Component { text, .. }) => {
                text.heads(head) && self.line.byte(at + text.length).is_ascii_digit()
            }
            Some(PlanStep::Any(choice)) if choice.flags.marks.is_empty() => {
                choice.ways.iter().any(|way| self.may_be(way, at))
            }
            first => first.is_some(),
        }
    }

    fn way(&mut self, way: &PlanBranch, seen: &FlagsRead) -> Fit {
        self.says(&way.says, seen)?;
        let body = &*way.body;
        for step in &body.steps {
            self.step(step)?;
        }
        for check in &body.checks {
            if ((self.facts.word ^ check.value) & check.mask == 0) != check.holds {
                self.facts.conflict = true;
                return Err(Misfit);
            }
        }
        body.conditions.iter().try_for_each(|&condition| self.facts.condition(self.grammar, condition))
    }

    #[inline]
    fn put(&mut self, target: ValueTarget, value: u64) -> Fit {
        self.facts.put(self.grammar, target, value)
    }

    #[inline]
    fn blanks(&mut self) {
        while matches!(self.line.byte(self.at), b' ' | b'\t') {
            self.at += 1;
        }
    }

    fn step(&mut self, step: &PlanStep) -> Fit {
        match step {
            PlanStep::Text(text, blanks) => {
                if !text.stands(self.line, self.at, self.line.head(self.at)) {
                    return Err(Misfit);
                }
                self.at += text.length;
                if *blanks {
                    self.blanks();
                }
                Ok(())
            }
            PlanStep::Component { text, letters, mask, most, number, letter } => {
                if !text.stands(self.line, self.at, self.line.head(self.at)) {
                    return Err(Misfit);
                }
                self.at += text.length;
                let index = self.number()?;
                let read = self.line.byte(self.at + 1);
                let value = letters[usize::from(read & 31)];
                let spelled = read.is_ascii_lowercase() && value != 255 && self.line.byte(self.at) == b'.';
                if !spelled || index > *most {
                    return Err(Misfit);
                }
                self.at += 2;
                self.facts.set(*mask, index << (number & 63) | u64::from(value) << (letter & 63))
            }
            PlanStep::Blanks => {
                let before = self.at;
                self.blanks();
                let parts_words = || self.at > 0 && is_word(self.line.byte(self.at - 1));
                if self.at == before && parts_words() { Err(Misfit) } else { Ok(()) }
            }
            PlanStep::Flags(both) => {
                let (flags, says) = &**both;
                let seen = self.flags(flags, false).ok_or(Misfit)?;
                self.says(says, &seen)
            }
            PlanStep::Unsigned(target) => {
                let value = self.number()?;
                self.unsigned(*target, value)
            }
            PlanStep::Signed(target) => {
                let (negative, value) = self.signed()?;
                self.put(*target, target.signed(negative, value).map_err(|_| Misfit)?)
            }
            PlanStep::Hex(target) => {
                let (value, used) = number::hexadecimal(self.line.rest(self.at)).ok_or(Misfit)?;
                self.at += used;
                self.unsigned(*target, value)
            }
            PlanStep::Float(window) => {
                let (value, used) = number::float(self.line.rest(self.at)).ok_or(Misfit)?;
                self.at += used;
                self.put(ValueTarget::Bits(*window), number::float_bits(value, window.width))
            }
            PlanStep::Offset { target, signed, required } => self.offset(*target, *signed, *required),
            PlanStep::Branch(window) => self.branch(*window),
            PlanStep::Enum { texts, target } => {
                let head = self.line.head(self.at);
                for (text, value) in texts {
                    if text.stands(self.line, self.at, head) {
                        self.at += text.length;
                        return self.put(*target, *value);
                    }
                }
                if !self.line.byte(self.at).is_ascii_digit() {
                    return Err(Misfit);
                }
                let (value, used) = number::decimal(self.line.rest(self.at)).ok_or(Misfit)?;
                self.at += used;
                self.unsigned(*target, value)
            }
            PlanStep::Any(choice) => self.choice(choice),
        }
    }

    /// Decimal, or hexadecimal after `0x`.
    #[inline]
    fn number(&mut self) -> Result<u64, Misfit> {
        // The bytes that are no digits have their highest bit set.
        const ONES: u64 = u64::MAX / 255;
        let head = self.line.head(self.at);
        let digits = head ^ (ONES * u64::from(b'0'));
        let others = (digits.wrapping_add(ONES * (0x7f - 9)) | digits) & ONES << 7;
        let count = others.trailing_zeros() / 8;
        if !(1..8).contains(&count) || matches!(head as u16, ZERO_X | ZERO_X_CAPITAL) {
            let (value, used) = number::integer(self.line.rest(self.at)).ok_or(Misfit)?;
            self.at += used;
            return Ok(value);
        }
        self.at += count as usize;
        // Pairs of digits, pairs of pairs, and the two of those; the first digit in the lowest byte.
        let digits = digits << (64 - 8 * count);
        let pairs = digits.wrapping_mul(10).wrapping_add(digits >> 8);
        const EVERY_OTHER: u64 = 0x0000_00ff_0000_00ff;
        let high = (pairs & EVERY_OTHER).wrapping_mul(100 + (1_000_000 << 32));
        let low = (pairs >> 16 & EVERY_OTHER).wrapping_mul(1 + (10_000 << 32));
        Ok(high.wrapping_add(low) >> 32)
    }

    #[inline]
    fn unsigned(&mut self, target: ValueTarget, value: u64) -> Fit {
        if value > (BitWindow { low: 0, width: target.width() }).ones() {
            Err(Misfit)
        } else {
            self.put(target, value)
        }
    }

    #[inline]
    fn signed(&mut self) -> Result<(bool, u64), Misfit> {
        let negative = self.line.byte(self.at) == b'-';
        self.at += usize::from(negative);
        Ok((negative, self.number()?))
    }

    fn offset(&mut self, target: ValueTarget, signed: bool, required: bool) -> Fit {
        let before = self.at;
        self.blanks();
        let sign = self.line.byte(self.at);
        if sign != b'+' && !(sign == b'-' && signed) {
            self.at = before;
            return if required { Err(Misfit) } else { self.put(target, 0) };
        }
        self.at += 1;
        self.blanks();
        let (minus, value) = self.signed()?;
        if signed {
            return self.put(target, target.signed(minus != (sign == b'-'), value).map_err(|_| Misfit)?);
        }
        if minus { Err(Misfit) } else { self.unsigned(target, value) }
    }

    fn branch(&mut self, window: BitWindow) -> Fit {
        let next = self.line.byte(self.at);
        if next == b'-' || next.is_ascii_digit() {
            let target = ValueTarget::Bits(window);
            let (negative, value) = self.signed()?;
            return self.put(target, target.signed(negative, value).map_err(|_| Misfit)?);
        }
        let start = self.at;
        while is_word(self.line.byte(self.at)) {
            self.at += 1;
        }
        if self.at == start {
            return Err(Misfit);
        }
        self.facts.label = Some(LabelUse::new(window, start, self.at));
        self.facts.set(window.mask(), 0)
    }
}
