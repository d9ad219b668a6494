//! Reads one instruction by one rule of the grammar: in any spelling that is allowed, with every choice that there is,
//! and with a note of what was expected. Texts as they are printed are read faster by [`super::fast`].

use super::facts::{Fit, LabelUse, Misfit, WordFacts, WordMark};
use super::grammar::{BitWindow, Grammar, TemplateOp, TemplateRule, Texts, UnorderedItem, ValueTarget};
use super::number;
/// Choices that are taken back after the text fitted but the claims contradicted each other.
const MOST_CHOICES: usize = 24;

/// What was expected where reading failed furthest.
#[derive(Clone, Debug, Default)]
pub(super) struct Trace {
    pub at: usize,
    pub expected: Vec<String>,
}

impl Trace {
    pub fn note(&mut self, at: usize, what: String) {
        const MOST: usize = 24;
        if at > self.at {
            self.at = at;
            self.expected.clear();
        }
        if at == self.at && !self.expected.contains(&what) && self.expected.len() < MOST {
            self.expected.push(what);
        }
    }
}

/// The state of reading one instruction.
pub(super) struct Matcher<'a> {
    grammar: &'a Grammar,
    text: &'a [u8],
    pos: usize,
    facts: &'a mut WordFacts,
    choices: [TakenAlternative; MOST_CHOICES],
    choice_count: usize,
    scripted: usize,
    trace: Option<&'a mut Trace>,
}

#[derive(Clone, Copy, Default)]
struct TakenAlternative {
    taken: u8,
    of: u8,
}

/// Where to go back to.
#[derive(Clone, Copy)]
struct BacktrackPoint {
    pos: usize,
    facts: WordMark,
    choice_count: usize,
}

impl<'a> Matcher<'a> {
    /// Reads `text`, which has no comment any more; `trace` is told what was expected.
    pub fn new(
        grammar: &'a Grammar,
        text: &'a [u8],
        facts: &'a mut WordFacts,
        trace: Option<&'a mut Trace>,
    ) -> Matcher<'a> {
        let choices = [TakenAlternative::default(); MOST_CHOICES];
        Matcher { grammar, text, pos: 0, facts, choices, choice_count: 0, scripted: 0, trace }
    }

    /// What has been read.
    pub fn facts(&self) -> &WordFacts {
        self.facts
    }

    /// Reads the text by `rule`, following the choices made before. Whether it read all of it.
    pub fn read(&mut self, rule: &TemplateRule) -> Result<bool, Misfit> {
        self.reset();
        self.rule(rule)?;
        self.skip_blanks();
        let complete = self.pos == self.text.len();
        if !complete {
            self.note(self.pos, || "the end of the instruction".to_string());
        }
        Ok(complete)
    }

    /// Takes the last choice back that has another way. False if there is none.
    pub fn other_choice(&mut self) -> bool {
        while let Some(last) = self.choice_count.checked_sub(1) {
            let choice = &mut self.choices[last];
            if choice.taken + 1 < choice.of {
                choice.taken += 1;
                self.scripted = self.choice_count;
                return true;
            }
            self.choice_count = last;
        }
        false
    }

    /// Forgets the choices, for another rule.
    pub fn start_over(&mut self) {
        self.scripted = 0;
        self.choice_count = 0;
    }

    /// Notes that the text fits but says contradicting things.
    pub fn contradiction(&mut self) {
        let at = self.text.len();
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.note(at, "operands that agree in size and modifiers with each other".to_string());
        }
    }

    fn reset(&mut self) {
        self.pos = 0;
        self.choice_count = 0;
        self.facts.reset();
    }

    fn place(&self) -> BacktrackPoint {
        BacktrackPoint { pos: self.pos, facts: self.facts.mark(), choice_count: self.choice_count }
    }

    fn rewind(&mut self, place: BacktrackPoint) {
        self.pos = place.pos;
        self.choice_count = place.choice_count;
        self.facts.rewind(place.facts);
    }

    fn miss(&mut self, what: impl FnOnce() -> String) -> Fit {
        self.note(self.pos, what);
        Err(Misfit)
    }

    fn note(&mut self, at: usize, what: impl FnOnce() -> String) {
        if let Some(trace) = self.trace.as_deref_mut() {
            trace.note(at, what());
        }
    }

    fn rest(&self) -> &'a [u8] {
        &self.text[self.pos..]
    }

    fn next(&self) -> u8 {
        self.text.get(self.pos).copied().unwrap_or(0)
    }

    /// The next byte that is no blank.
    fn upcoming(&self) -> u8 {
        self.rest().iter().copied().find(|b| !matches!(b, b' ' | b'\t')).unwrap_or(0)
    }

    fn previous(&self) -> u8 {
        self.pos.checked_sub(1).and_then(|at| self.text.get(at)).copied().unwrap_or(b' ')
    }

    fn skip_blanks(&mut self) {
        while matches!(self.next(), b' ' | b'\t') {
            self.pos += 1;
        }
    }

    /// Blanks may stand before what comes next, unless they would cut a word.
    fn skip_between(&mut self, upcoming: u8) {
        if matches!(self.next(), b' ' | b'\t')
            && (matches!(upcoming, b',' | b')' | b']' | b'+' | b'<' | b'>')
                || !(is_word(self.previous()) || matches!(self.previous(), b'.' | b'#' | b'-')))
        {
            self.skip_blanks();
        }
    }

    fn rule(&mut self, rule: &TemplateRule) -> Fit {
        self.facts.set(rule.fixed, rule.value)?;
        // A condition on what the template is yet to read is met or not met afterwards.
        let known = self.facts.known;
        let early = |expr| self.grammar.expr(expr).reads & !known == 0;
        for &condition in rule.conditions.iter().filter(|&&(expr, _)| early(expr)) {
            self.facts.condition(self.grammar, condition)?;
        }
        self.ops(&rule.ops)?;
        for &condition in rule.conditions.iter().filter(|&&(expr, _)| !early(expr)) {
            self.facts.condition(self.grammar, condition)?;
        }
        Ok(())
    }

    fn ops(&mut self, ops: &[TemplateOp]) -> Fit {
        ops.iter().try_for_each(|op| self.op(op))
    }

    fn put(&mut self, target: ValueTarget, value: u64) -> Fit {
        self.facts.put(self.grammar, target, value)
    }

    /// Sets what the text at `start` says; that it cannot be is told of there.
    fn put_read(&mut self, target: ValueTarget, value: u64, start: usize) -> Fit {
        self.put(target, value).inspect_err(|_| {
            self.note(start, || "a value that the rest of the instruction allows".to_string());
        })
    }

    fn op(&mut self, op: &TemplateOp) -> Fit {
        match op {
            TemplateOp::Text(text) => self.text(text),
            TemplateOp::Name(name) => {
                self.text(name)?;
                if is_word(self.next()) { self.miss(|| "the end of the name".to_string()) } else { Ok(()) }
            }
            TemplateOp::Flag { text, target, inverted } => {
                let present = self.flag(text);
                self.put(*target, u64::from(present != *inverted))
            }
            TemplateOp::Unsigned(target) => {
                self.skip_between(0);
                let start = self.pos;
                let Some((value, used)) = number::integer(self.rest()) else {
                    return self.miss(|| "a number".to_string());
                };
                self.limit(value, target.width())?;
                self.pos += used;
                self.put_read(*target, value, start)
            }
            TemplateOp::Hex(target) => {
                let start = self.pos;
                let Some((value, used)) = number::hexadecimal(self.rest()) else {
                    return self.miss(|| "hexadecimal digits".to_string());
                };
                self.limit(value, target.width())?;
                self.pos += used;
                self.put_read(*target, value, start)
            }
            TemplateOp::Signed(target) => {
                self.skip_between(0);
                let start = self.pos;
                let (negative, value, used) = self.signed()?;
                self.put_signed(*target, negative, value, used, start)
            }
            TemplateOp::Float(window) => {
                self.skip_between(0);
                let start = self.pos;
                let Some((value, used)) = number::float(self.rest()) else {
                    return self.miss(|| "a float".to_string());
                };
                self.pos += used;
                let bits = number::float_bits(value, window.width);
                self.put_read(ValueTarget::Bits(*window), bits, start)
            }
            TemplateOp::Offset { target, signed, required } => self.offset(*target, *signed, *required),
            TemplateOp::Branch(window) => self.branch(*window),
            TemplateOp::Enum { of, target } => {
                let grammar = self.grammar;
                self.enumerated(grammar.texts(*of), *target)
            }
            TemplateOp::Any(rules) => self.any(rules),
            TemplateOp::Unordered(items) => self.unordered(items),
        }
    }

    fn text(&mut self, text: &[u8]) -> Fit {
        if let Some(&first) = text.first() {
            self.skip_between(first);
        }
        let start = self.pos;
        let mut at = self.pos;
        for (i, &byte) in text.iter().enumerate() {
            if byte == b' ' {
                let before = at;
                while matches!(self.text.get(at), Some(b' ' | b'\t')) {
                    at += 1;
                }
                let cuts_word = || {
                    let left = before.checked_sub(1).and_then(|b| self.text.get(b)).copied().unwrap_or(0);
                    is_word(left) && self.text.get(at).is_some_and(|&right| is_word(right))
                };
                if at == before && cuts_word() {
                    self.pos = at;
                    return self.miss(|| "a blank".to_string());
                }
            } else if self.text.get(at) == Some(&byte) {
                at += 1;
            } else {
                // A text like `)` or ` r` is told of as a whole, one that began to fit where it stopped.
                self.pos = if i == 0 { start } else { at };
                return self.miss(|| quoted(&text[i..]));
            }
        }
        self.pos = at;
        Ok(())
    }

    fn flag(&mut self, text: &[u8]) -> bool {
        let Some(&first) = text.first() else { return false };
        let start = self.pos;
        self.skip_between(first);
        if self.next() != first {
            self.pos = start;
            return false;
        }
        // A modifier ends where its word ends: `.s` is not the start of `.s2en`.
        if begins(self.rest(), text)
            && (first != b'.' || !self.text.get(self.pos + text.len()).is_some_and(|&b| is_word(b)))
        {
            self.pos += text.len();
            return true;
        }
        self.pos = start;
        false
    }

    fn limit(&mut self, value: u64, width: u8) -> Fit {
        let most = BitWindow { low: 0, width }.ones();
        if value <= most { Ok(()) } else { self.miss(|| format!("a number of at most {most}")) }
    }

    /// Sign, magnitude and length of the number here.
    fn signed(&mut self) -> Result<(bool, u64, usize), Misfit> {
        let negative = self.next() == b'-';
        let digits = &self.text[(self.pos + usize::from(negative)).min(self.text.len())..];
        match number::integer(digits) {
            Some((value, used)) => Ok((negative, value, used + usize::from(negative))),
            None => {
                self.note(self.pos, || "a number".to_string());
                Err(Misfit)
            }
        }
    }

    fn put_signed(
        &mut self,
        target: ValueTarget,
        negative: bool,
        value: u64,
        used: usize,
        start: usize,
    ) -> Fit {
        match target.signed(negative, value) {
            Ok(bits) => {
                self.pos += used;
                self.put_read(target, bits, start)
            }
            Err((least, most)) => self.miss(|| format!("a number from -{least} to {most}")),
        }
    }

    fn offset(&mut self, target: ValueTarget, signed: bool, required: bool) -> Fit {
        let mark = self.pos;
        self.skip_blanks();
        let sign = self.next();
        if sign != b'+' && !(sign == b'-' && signed) {
            self.note(self.pos, || "`+`".to_string());
            self.pos = mark;
            return if required { Err(Misfit) } else { self.put(target, 0) };
        }
        self.pos += 1;
        self.skip_blanks();
        let start = self.pos;
        let (minus, value, used) = self.signed()?;
        if !signed {
            if minus {
                return self.miss(|| "a number without a sign".to_string());
            }
            self.limit(value, target.width())?;
            self.pos += used;
            return self.put_read(target, value, start);
        }
        self.put_signed(target, minus != (sign == b'-'), value, used, start)
    }

    fn branch(&mut self, window: BitWindow) -> Fit {
        let start = self.pos;
        if self.next() == b'-' || self.next().is_ascii_digit() {
            let (negative, value, used) = self.signed()?;
            return self.put_signed(ValueTarget::Bits(window), negative, value, used, start);
        }
        let length = self.rest().iter().take_while(|&&b| is_word(b)).count();
        if length == 0 {
            return self.miss(|| "a distance or a label".to_string());
        }
        self.pos += length;
        self.facts.label = Some(LabelUse::new(window, start, self.pos));
        self.facts.set(window.mask(), 0)
    }

    fn enumerated(&mut self, texts: &Texts, target: ValueTarget) -> Fit {
        let start = self.pos;
        self.skip_between(texts.texts.first().and_then(|(text, _)| text.first()).copied().unwrap_or(0));
        let rest = self.rest();
        for (text, value) in &texts.texts {
            if text.is_empty() {
                self.pos = start;
                return self.put(target, *value);
            }
            if begins(rest, text) {
                let read_at = self.pos;
                self.pos += text.len();
                return self.put_read(target, *value, read_at);
            }
        }
        let Some((value, used)) = number::decimal(rest) else {
            return self.miss(|| {
                let texts: Vec<_> = texts.texts.iter().map(|(text, _)| quoted(text)).collect();
                format!("one of {}", texts.join(" "))
            });
        };
        self.limit(value, target.width())?;
        let read_at = self.pos;
        self.pos += used;
        self.put_read(target, value, read_at)
    }

    fn any(&mut self, rules: &[TemplateRule]) -> Fit {
        let at = self.choice_count;
        let first = if at < self.scripted { usize::from(self.choices[at].taken) } else { 0 };
        let mark = self.place();
        let next = self.upcoming();
        let traced = self.trace.is_some();
        let fits = |rule: &TemplateRule| traced || rule.may_start(next);
        // Where something stands, that nothing stands there is no other choice.
        let mut last = None;
        for (i, rule) in rules.iter().enumerate().skip(first) {
            if !fits(rule) {
                continue;
            }
            if at < MOST_CHOICES {
                let last = *last.get_or_insert_with(|| {
                    rules.iter().rposition(|rule| !rule.ops.is_empty() && fits(rule)).unwrap_or(0)
                });
                let small = |index| u8::try_from(index).unwrap_or(u8::MAX);
                self.choices[at] =
                    TakenAlternative { taken: small(i), of: small(last.max(i)).saturating_add(1) };
                self.choice_count = at + 1;
            }
            if self.rule(rule).is_ok() {
                return Ok(());
            }
            self.rewind(mark);
            // What the script said about later choices went with the way it chose here.
            self.scripted = self.scripted.min(at);
        }
        Err(Misfit)
    }

    fn unordered(&mut self, items: &[UnorderedItem]) -> Fit {
        let mut read = 0u64;
        loop {
            let before = read;
            if !matches!(self.upcoming(), b'(' | b'.') {
                break;
            }
            for (i, item) in items.iter().enumerate().take(64) {
                if read >> i & 1 == 1 {
                    continue;
                }
                let present = match (&*item.ops, item.required) {
                    ([TemplateOp::Flag { text, target, inverted }], false) => {
                        let present = self.flag(text);
                        if present {
                            self.put(*target, u64::from(!*inverted))?;
                        }
                        present
                    }
                    ([TemplateOp::Enum { of, target }], false) => {
                        let grammar = self.grammar;
                        let found =
                            grammar.texts(*of).texts.iter().find(|(t, _)| !t.is_empty() && self.flag(t));
                        if let Some((_, value)) = found {
                            self.put(*target, *value)?;
                        }
                        found.is_some()
                    }
                    (ops, _) => {
                        let mark = self.place();
                        let fits = self.ops(ops).is_ok();
                        if !fits {
                            self.rewind(mark);
                        }
                        fits
                    }
                };
                read |= u64::from(present) << i;
            }
            if read == before {
                break;
            }
        }
        for (i, item) in items.iter().enumerate().take(64) {
            if read >> i & 1 == 1 {
                continue;
            }
            match (&*item.ops, item.required) {
                ([TemplateOp::Flag { target, inverted, .. }], false) => {
                    self.put(*target, u64::from(*inverted))?
                }
                ([TemplateOp::Enum { target, .. }], false) => self.put(*target, 0)?,
                _ => return Err(Misfit),
            }
        }
        Ok(())
    }
}

/// Whether a text begins so; faster than the general comparison for texts of a few bytes.
#[inline]
fn begins(text: &[u8], start: &[u8]) -> bool {
    text.len() >= start.len() && text.iter().zip(start).all(|(a, b)| a == b)
}

fn quoted(text: &[u8]) -> String {
    format!("`{}`", String::from_utf8_lossy(text).trim())
}

/// Whether a byte is one of a word: a letter, a digit or `_`.
#[inline]
pub(super) fn is_word(byte: u8) -> bool {
    const WORD: [bool; 256] = {
        let mut word = [false; 256];
        let mut byte = 0;
        while byte < 256 {
            word[byte] = (byte as u8).is_ascii_alphanumeric() || byte == b'_' as usize;
            byte += 1;
        }
        word
    };
    WORD[usize::from(byte)]
}
