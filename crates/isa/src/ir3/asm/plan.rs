//! The rules of a name as plain steps, for reading instructions as they are printed.
//!
//! Flags that the alternatives of a place begin with are gathered, to be read once for all of them; alternatives that
//! are nothing but others are replaced by them; and what a register is made of is one step. A rule that has something
//! for which there is no step ends the plan: the matcher has all of them.

use super::fast::PaddedLine;
use super::grammar::{
    self, BitWindow, ExprId, ExprStep as Expression, Grammar, TemplateOp, TemplateRule, Texts, UnorderedItem,
    ValueTarget,
};
use super::matcher::is_word;
use crate::table::expr::Binary;
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

/// Flags that one place may have.
pub(super) const MOST_SLOTS: usize = 16;
/// Texts that they may have.
const MOST_MARKS: usize = 64;

/// The rules of one name.
#[derive(Default)]
pub(super) struct Plan {
    pub choice: PlanChoice,
    /// Bits of each way that are set where nothing says otherwise.
    pub unshown: Vec<u64>,
}

/// Ways to go on, after flags that they have in common.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct PlanChoice {
    pub flags: Flags,
    pub ways: Vec<PlanBranch>,
}

/// Texts that may stand before something.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct Flags {
    pub marks: Vec<FlagMark>,
    slots: u8,
    /// Bytes that they start with.
    pub starts: Bytes,
    /// The marks that may stand, by the low bits of the second byte.
    pub seconds: [u64; 32],
}

/// A text that says something about a slot.
#[derive(PartialEq, Eq, Hash)]
pub(super) struct FlagMark {
    pub text: Literal,
    pub slot: u8,
    pub value: u8,
    /// A number and `)` follow: they are the value.
    pub number: bool,
    /// Those of a lower rank do not stand behind it.
    pub rank: u8,
    /// It must be the end of a word.
    pub word: bool,
}

/// One way to go on.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct PlanBranch {
    /// Slots that it knows, and those that it needs.
    pub known: u32,
    pub needed: u32,
    /// Bytes that it can start with, behind the flags.
    pub starts: Bytes,
    /// A later way can start so, too.
    pub contested: bool,
    /// What holds, and what the flags mean.
    pub says: FlagEffect,
    pub body: Arc<PlanBody>,
}

/// What follows the flags.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct PlanBody {
    pub steps: Vec<PlanStep>,
    /// Bits that must be so, or not so, once all has been read.
    pub checks: Vec<BitCheck>,
    pub conditions: Vec<(ExprId, bool)>,
}

/// What plans have in common, so that they fit into the processor's caches.
#[derive(Default)]
pub(super) struct SharedPlans {
    bodies: InternSet<PlanBody>,
    choices: InternSet<PlanChoice>,
}

type InternSet<T> = HashSet<Arc<T>, BuildHasherDefault<Mix>>;

/// A hash of words, of what the table says: nobody can choose them.
#[derive(Default)]
pub(super) struct Mix(u64);

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        for part in bytes.chunks(8) {
            self.write_u64(part.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_u8(&mut self, word: u8) {
        self.write_u64(word.into());
    }

    fn write_u32(&mut self, word: u32) {
        self.write_u64(word.into());
    }

    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

/// The one of a set that equals this.
fn shared<T: Eq + Hash>(set: &mut InternSet<T>, one: T) -> Arc<T> {
    if let Some(known) = set.get(&one) {
        return Arc::clone(known);
    }
    let one = Arc::new(one);
    set.insert(Arc::clone(&one));
    one
}

/// What flags mean, and whatever else is said at once.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct FlagEffect {
    /// Bits that are set, and their value where no flag stands.
    pub mask: u64,
    pub value: u64,
    /// The lowest bit of each slot, where its value is set (exclusive or) into the value; 64 of others.
    pub lows: [u8; MOST_SLOTS],
    /// Slots that say something about other bits.
    pub claims: Vec<Claims>,
}

/// What is said about a target: the value of the slot, exclusive or `flip`.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Claims {
    pub slot: u8,
    pub target: ValueTarget,
    pub flip: u64,
}

/// Bits that have a value, or do not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct BitCheck {
    pub mask: u64,
    pub value: u64,
    pub holds: bool,
}

/// What is read next.
#[derive(PartialEq, Eq, Hash)]
pub(super) enum PlanStep {
    /// A text and, if so, blanks.
    Text(Literal, bool),
    /// Any number of blanks, but one where they part words.
    Blanks,
    Flags(Box<(Flags, FlagEffect)>),
    /// A text, a number of at most so much, a dot and a letter: `r0.x`. The letters' values are by their low bits, 255 of
    /// others. Where the bits are: all, the lowest of the number, and of the letter.
    Component {
        text: Literal,
        letters: [u8; 32],
        mask: u64,
        most: u64,
        number: u8,
        letter: u8,
    },
    Unsigned(ValueTarget),
    Signed(ValueTarget),
    Hex(ValueTarget),
    Float(BitWindow),
    Offset {
        target: ValueTarget,
        signed: bool,
        required: bool,
    },
    Branch(BitWindow),
    Enum {
        texts: Vec<(Literal, u64)>,
        target: ValueTarget,
    },
    Any(Arc<PlanChoice>),
}

/// A text to compare with.
#[derive(Default, PartialEq, Eq, Hash)]
pub(super) struct Literal {
    /// The first eight bytes, and which of them there are.
    head: u64,
    mask: u64,
    tail: Box<[u8]>,
    pub length: usize,
}

impl Literal {
    fn new(text: &[u8]) -> Literal {
        let (head, tail) = text.split_at(text.len().min(8));
        let value = |of: &dyn Fn(u8) -> u8| head.iter().rev().fold(0, |all, &b| all << 8 | u64::from(of(b)));
        Literal { head: value(&|b| b), mask: value(&|_| 0xff), tail: tail.into(), length: text.len() }
    }

    /// Whether its first eight bytes are those of `head`.
    #[inline]
    pub fn heads(&self, head: u64) -> bool {
        (head ^ self.head) & self.mask == 0
    }

    /// Whether it stands in a line, where `head` is.
    #[inline]
    pub fn stands(&self, line: &PaddedLine, at: usize, head: u64) -> bool {
        self.heads(head) && (self.tail.is_empty() || line.rest(at + 8).starts_with(&self.tail))
    }

    /// Whether its end is one of a word, if it is short.
    fn is_word_at_end(&self) -> bool {
        self.length > 8 || is_word(self.head.to_le_bytes()[self.length.saturating_sub(1) & 7])
    }

    fn same(&self, other: &Literal) -> bool {
        (self.head, self.length, &self.tail) == (other.head, other.length, &other.tail)
    }
}

/// A set of bytes.
#[derive(Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(super) struct Bytes([u64; 4]);

impl Bytes {
    const ALL: Bytes = Bytes([u64::MAX; 4]);

    /// The bytes that operations start with.
    fn starts(ops: &[TemplateOp], enums: &[Texts]) -> Bytes {
        match grammar::starts(ops, enums) {
            u128::MAX => Bytes::ALL,
            ascii => Bytes([ascii as u64, (ascii >> 64) as u64, 0, 0]),
        }
    }

    #[inline]
    pub fn has(&self, byte: u8) -> bool {
        self.0[usize::from(byte >> 6)] >> (byte & 63) & 1 == 1
    }

    fn add(&mut self, byte: u8) {
        self.0[usize::from(byte >> 6)] |= 1 << (byte & 63);
    }

    fn meets(&self, other: &Bytes) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

impl Plan {
    /// The steps of rules, as far as there are steps for what they do.
    pub fn new(grammar: &Grammar, common: &mut SharedPlans, rules: &[TemplateRule]) -> Plan {
        let mut plan = Plan::default();
        for rule in rules {
            let Some(at) = rule.ops.iter().position(|op| matches!(op, TemplateOp::Name(_))) else { break };
            let (before, behind) = (&rule.ops[..at], &rule.ops[at + 1..]);
            let way = PlanBranch::new(rule).leading(grammar, &mut plan.choice.flags, before);
            let Some((way, body)) = way.and_then(|way| way.going_on(grammar, common, rule, behind)) else {
                break;
            };
            plan.choice.ways.push(PlanBranch { body: shared(&mut common.bodies, body), ..way });
            plan.unshown.push(rule.unshown);
        }
        plan
    }
}

impl Flags {
    /// The slot of a text or an enum; a new one gets the texts.
    fn slot(&mut self, texts: &[(&[u8], u64)], number: bool, rank: usize) -> Option<u8> {
        let rank = u8::try_from(rank).ok()?;
        let first = texts.first().map_or(&b""[..], |(text, _)| text);
        let first = Literal::new(first);
        if let Some(mark) = self.marks.iter().find(|mark| first.same(&mark.text) && mark.number == number) {
            let slot = mark.slot;
            let same = self.marks.iter_mut().filter(|mark| mark.slot == slot);
            same.for_each(|mark| mark.rank = mark.rank.max(rank));
            return Some(slot);
        }
        let slot = self.slots;
        self.slots += 1;
        for &(text, value) in texts {
            let Some(&start) = text.first() else { continue };
            self.starts.add(start);
            for (second, marks) in self.seconds.iter_mut().enumerate() {
                if text.get(1).is_none_or(|&b| usize::from(b & 31) == second) {
                    *marks |= 1u64.checked_shl(self.marks.len() as u32).unwrap_or(0);
                }
            }
            let value = u8::try_from(value).ok()?;
            self.marks.push(FlagMark {
                text: Literal::new(text),
                slot,
                value,
                number,
                rank,
                word: start == b'.',
            });
        }
        (usize::from(slot) < MOST_SLOTS && self.marks.len() <= MOST_MARKS).then_some(slot)
    }
}

/// How many operations at the front are flags.
fn leading(grammar: &Grammar, ops: &[TemplateOp]) -> usize {
    let is_flag = |op: &&TemplateOp| match op {
        TemplateOp::Flag { .. } | TemplateOp::Unordered(_) => true,
        TemplateOp::Enum { of, .. } => grammar.texts(*of).is_modifier(),
        _ => false,
    };
    ops.iter().take_while(is_flag).count()
}

impl PlanChoice {
    fn new(grammar: &Grammar, common: &mut SharedPlans, rules: &[TemplateRule]) -> Option<PlanChoice> {
        let is_half = |op: &TemplateOp| matches!(op, TemplateOp::Flag { text, .. } if **text == *b"h");
        let halves = rules.iter().any(|rule| rule.ops.iter().any(is_half));
        let mut choice = PlanChoice::default();
        for rule in rules {
            let count = leading(grammar, &rule.ops);
            let (before, behind) = rule.ops.split_at(count);
            let mut way = PlanBranch::new(rule).leading(grammar, &mut choice.flags, before)?;
            // What others have as a flag may be text here: `h(` of an immediate.
            let mut rest = behind.to_vec();
            if let Some(TemplateOp::Text(text)) = rest.first_mut()
                && halves
                && let Some(behind) = text.strip_prefix(b"h")
                && !behind.first().is_some_and(|&b| is_word(b))
            {
                *text = behind.into();
                let slot = choice.flags.slot(&[(b"h", 1)], false, count)?;
                way.known |= 1 << slot;
                way.needed |= 1 << slot;
            }
            let (way, body) = way.going_on(grammar, common, rule, &rest)?;
            choice.ways.extend(way.unfolded(common, body));
        }
        for at in 1..choice.ways.len() {
            let (before, behind) = choice.ways.split_at_mut(at);
            if let (Some(way), false) = (before.last_mut(), behind.is_empty()) {
                way.contested = behind.iter().any(|later| way.meets(later));
            }
        }
        Some(choice)
    }
}

impl Default for FlagEffect {
    fn default() -> FlagEffect {
        FlagEffect { mask: 0, value: 0, lows: [64; MOST_SLOTS], claims: Vec::new() }
    }
}

impl FlagEffect {
    /// That a slot's value, exclusive or `flip`, goes to a target; `fits` if the value cannot be too large.
    fn add(&mut self, slot: u8, target: ValueTarget, flip: u64, fits: bool) {
        match (target, self.lows.get_mut(usize::from(slot))) {
            (ValueTarget::Bits(window), Some(low)) if fits && window.mask() & self.mask == 0 => {
                self.mask |= window.mask();
                self.value |= window.place(flip);
                *low = window.low;
            }
            _ => self.claims.push(Claims { slot, target, flip }),
        }
    }
}

impl PlanBranch {
    fn new(rule: &TemplateRule) -> PlanBranch {
        let says = FlagEffect { mask: rule.fixed, value: rule.value & rule.fixed, ..FlagEffect::default() };
        PlanBranch { says, ..PlanBranch::default() }
    }

    /// Takes what stands at the front: flags.
    fn leading(mut self, grammar: &Grammar, flags: &mut Flags, ops: &[TemplateOp]) -> Option<PlanBranch> {
        for (rank, op) in ops.iter().enumerate() {
            let TemplateOp::Unordered(items) = op else {
                self.flag(grammar, flags, op, rank)?;
                continue;
            };
            for UnorderedItem { ops, required } in items {
                match (&**ops, required) {
                    ([op], false) => self.flag(grammar, flags, op, rank)?,
                    (
                        [TemplateOp::Text(open), TemplateOp::Unsigned(target), TemplateOp::Text(close)],
                        true,
                    ) if **close == *b")" => {
                        let slot = flags.slot(&[(open, 0)], true, rank)?;
                        self.known |= 1 << slot;
                        self.needed |= 1 << slot;
                        self.says.add(slot, *target, 0, false);
                    }
                    _ => return None,
                }
            }
        }
        Some(self)
    }

    fn flag(&mut self, grammar: &Grammar, flags: &mut Flags, op: &TemplateOp, rank: usize) -> Option<()> {
        let (slot, target, flip, most) = match op {
            TemplateOp::Flag { text, target, inverted } => {
                (flags.slot(&[(text, 1)], false, rank)?, *target, u64::from(*inverted), 1)
            }
            TemplateOp::Enum { of, target } => {
                let texts = &grammar.texts(*of).texts;
                let most = texts.iter().map(|&(_, value)| value).max().unwrap_or(0);
                let texts: Vec<_> = texts.iter().map(|(text, value)| (&**text, *value)).collect();
                (flags.slot(&texts, false, rank)?, *target, 0, most)
            }
            _ => return None,
        };
        self.known |= 1 << slot;
        self.says.add(slot, target, flip, most <= BitWindow { low: 0, width: target.width() }.ones());
        Some(())
    }

    /// Whether another way that says something can start as this does.
    fn meets(&self, other: &PlanBranch) -> bool {
        let apart = match (self.body.steps.first(), other.body.steps.first()) {
            // A digit stands behind the text of a register.
            (Some(PlanStep::Component { text: a, .. }), Some(PlanStep::Text(b, _))) => {
                a.length < b.length.min(8) && !((b.head >> (8 * a.length)) as u8).is_ascii_digit()
            }
            (_, None) => true,
            _ => false,
        };
        !apart && self.starts.meets(&other.starts)
    }

    /// With what follows the flags.
    fn going_on(
        mut self,
        grammar: &Grammar,
        common: &mut SharedPlans,
        rule: &TemplateRule,
        ops: &[TemplateOp],
    ) -> Option<(PlanBranch, PlanBody)> {
        self.starts = Bytes::starts(ops, &grammar.enums);
        let mut body = PlanBody::default();
        let mut rest = ops;
        while !rest.is_empty() {
            let (taken, steps) = steps(grammar, common, rest)?;
            body.steps.extend(steps);
            rest = &rest[taken..];
        }
        let settled = body.steps.iter().fold(self.says.mask, |bits, step| bits | step.sets());
        for &(expr, holds) in &rule.conditions {
            match grammar.expr(expr).steps[..] {
                [Expression::Compare { window, op: op @ (Binary::Eq | Binary::Ne), with }]
                    if window.mask() & !settled == 0
                        && u64::try_from(with).is_ok_and(|with| with <= window.ones()) =>
                {
                    let holds = holds == (op == Binary::Eq);
                    body.checks.push(BitCheck {
                        mask: window.mask(),
                        value: window.place(with as u64),
                        holds,
                    });
                }
                _ => body.conditions.push((expr, holds)),
            }
        }
        Some((self, body))
    }

    /// The ways of which this is only the sum, if so; or this one.
    fn unfolded(self, common: &mut SharedPlans, body: PlanBody) -> Vec<PlanBranch> {
        let plain = |way: &PlanBranch| {
            let says = &way.says;
            way.known == 0 && says.claims.is_empty() && says.mask & self.says.mask == 0
        };
        match &body.steps[..] {
            [PlanStep::Any(choice)]
                if body.checks.is_empty()
                    && body.conditions.is_empty()
                    && choice.flags.marks.is_empty()
                    && choice.ways.iter().all(plain) =>
            {
                let outer = |way: &PlanBranch| {
                    let mut says = self.says.clone();
                    says.mask |= way.says.mask;
                    says.value |= way.says.value;
                    PlanBranch { says, starts: way.starts, body: Arc::clone(&way.body), ..self }
                };
                choice.ways.iter().map(outer).collect()
            }
            _ => vec![PlanBranch { body: shared(&mut common.bodies, body), ..self }],
        }
    }
}

/// The steps for the first operations, and how many operations they are for. `None` if there are none.
fn steps(grammar: &Grammar, common: &mut SharedPlans, ops: &[TemplateOp]) -> Option<(usize, Vec<PlanStep>)> {
    let flags = leading(grammar, ops);
    if flags > 0 {
        let mut marks = Flags::default();
        let way = PlanBranch::default().leading(grammar, &mut marks, &ops[..flags])?;
        return Some((flags, vec![PlanStep::Flags(Box::new((marks, way.says)))]));
    }
    let texts = |of| grammar.texts(of).texts.iter();
    if let [
        TemplateOp::Text(text),
        TemplateOp::Unsigned(ValueTarget::Bits(number)),
        TemplateOp::Text(dot),
        TemplateOp::Enum { of, target: ValueTarget::Bits(letter) },
        ..,
    ] = ops
        && !text.contains(&b' ')
        && **dot == *b"."
        && texts(*of).all(|(text, _)| matches!(**text, [b'a'..=b'z']))
        && texts(*of).count() as u64 > letter.ones()
    {
        let mut letters = [255; 32];
        for (text, value) in texts(*of) {
            letters[usize::from(*text.first()? & 31)] = u8::try_from(*value).ok()?;
        }
        let text = Literal::new(text);
        let mask = number.mask() | letter.mask();
        let (most, number, letter) = (number.ones(), number.low, letter.low);
        return Some((4, vec![PlanStep::Component { text, letters, mask, most, number, letter }]));
    }
    let step = match ops.first()? {
        TemplateOp::Text(text) => return Some((1, text_steps(text))),
        TemplateOp::Unsigned(target) => PlanStep::Unsigned(*target),
        TemplateOp::Signed(target) => PlanStep::Signed(*target),
        TemplateOp::Hex(target) => PlanStep::Hex(*target),
        TemplateOp::Float(window) => PlanStep::Float(*window),
        TemplateOp::Offset { target, signed, required } => {
            PlanStep::Offset { target: *target, signed: *signed, required: *required }
        }
        TemplateOp::Branch(window) => PlanStep::Branch(*window),
        TemplateOp::Enum { of, target } => {
            let texts = texts(*of).map(|(text, value)| (Literal::new(text), *value)).collect();
            PlanStep::Enum { texts, target: *target }
        }
        TemplateOp::Any(rules) => {
            let choice = PlanChoice::new(grammar, common, rules)?;
            PlanStep::Any(shared(&mut common.choices, choice))
        }
        TemplateOp::Name(_) | TemplateOp::Flag { .. } | TemplateOp::Unordered(_) => return None,
    };
    Some((1, vec![step]))
}

/// A text's words and the blanks between them.
fn text_steps(text: &[u8]) -> Vec<PlanStep> {
    let mut steps = Vec::new();
    for part in text.chunk_by(|&a, &b| (a == b' ') == (b == b' ')) {
        match (part, steps.last_mut()) {
            ([b' ', ..], Some(PlanStep::Text(text, blanks))) if !text.is_word_at_end() => *blanks = true,
            ([b' ', ..], _) => steps.push(PlanStep::Blanks),
            _ => steps.push(PlanStep::Text(Literal::new(part), false)),
        }
    }
    steps
}

impl PlanStep {
    /// Bits that it sets whenever it is taken.
    fn sets(&self) -> u64 {
        match self {
            PlanStep::Component { mask, .. } => *mask,
            PlanStep::Float(window) | PlanStep::Branch(window) => window.mask(),
            PlanStep::Flags(both) => both.1.mask,
            PlanStep::Unsigned(target)
            | PlanStep::Signed(target)
            | PlanStep::Hex(target)
            | PlanStep::Offset { target, .. }
            | PlanStep::Enum { target, .. } => match target {
                ValueTarget::Bits(window) => window.mask(),
                ValueTarget::Derived { .. } => 0,
            },
            PlanStep::Text(..) | PlanStep::Blanks | PlanStep::Any(_) => 0,
        }
    }
}
