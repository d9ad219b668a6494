//! What has been read of one instruction: bits of the word, and claims about bits that no text shows
//! ("this expression is 1"), which [`super::solve`] settles once the text has ended.

use super::grammar::{BitWindow, ExprId, Grammar, ValueTarget};
use super::solve::only_answer;
use std::ops::Range;

/// Claims of one instruction; no template comes near.
const MOST_CLAIMS: usize = 32;

/// Conditions are true or false: any number but zero is true.
const CONDITION: u64 = 1;

/// An expression and what it must come out as, under a mask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Claim {
    pub expr: ExprId,
    pub value: u64,
    pub mask: u64,
}

impl Claim {
    /// Whether it holds for a word.
    #[inline]
    pub fn holds(&self, grammar: &Grammar, word: u64) -> bool {
        let value = grammar.expr(self.expr).eval(word);
        if self.mask == CONDITION {
            u64::from(value != 0) == self.value
        } else {
            value as u64 & self.mask == self.value
        }
    }
}

/// A label that the instruction jumps to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LabelUse {
    pub window: BitWindow,
    start: u32,
    end: u32,
}

impl LabelUse {
    /// That the bytes from `start` to `end` of the text name the label.
    pub fn new(window: BitWindow, start: usize, end: usize) -> LabelUse {
        LabelUse { window, start: start as u32, end: end as u32 }
    }

    /// The bytes of the text.
    pub fn bytes(&self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// The text does not fit.
#[derive(Debug)]
pub(super) struct Misfit;

pub(super) type Fit = Result<(), Misfit>;

/// The facts.
pub(super) struct WordFacts {
    pub word: u64,
    /// Bits of the word that are settled.
    pub known: u64,
    pub label: Option<LabelUse>,
    /// Something was read that contradicts what was read before: another choice may help.
    pub conflict: bool,
    claims: [Claim; MOST_CLAIMS],
    claim_count: usize,
}

/// A state to go back to.
#[derive(Clone, Copy)]
pub(super) struct WordMark {
    word: u64,
    known: u64,
    label: Option<LabelUse>,
    claim_count: usize,
}

impl WordFacts {
    pub fn new() -> WordFacts {
        WordFacts {
            word: 0,
            known: 0,
            label: None,
            conflict: false,
            claims: [Claim { expr: ExprId(0), value: 0, mask: 0 }; MOST_CLAIMS],
            claim_count: 0,
        }
    }

    pub fn reset(&mut self) {
        self.rewind(WordMark { word: 0, known: 0, label: None, claim_count: 0 });
        self.conflict = false;
    }

    /// What the text says about bits that it does not show.
    #[inline]
    pub fn claims(&self) -> &[Claim] {
        self.claims.get(..self.claim_count).unwrap_or_default()
    }

    #[inline]
    pub fn mark(&self) -> WordMark {
        WordMark { word: self.word, known: self.known, label: self.label, claim_count: self.claim_count }
    }

    #[inline]
    pub fn rewind(&mut self, mark: WordMark) {
        (self.word, self.known, self.label) = (mark.word, mark.known, mark.label);
        self.claim_count = mark.claim_count;
    }

    /// Sets bits of the word; those that stand already must agree.
    #[inline]
    pub fn set(&mut self, mask: u64, value: u64) -> Fit {
        if (self.word ^ value) & self.known & mask != 0 {
            self.conflict = true;
            return Err(Misfit);
        }
        self.word |= value & mask;
        self.known |= mask;
        Ok(())
    }

    /// Sets bits, or notes what an expression comes out as.
    #[inline]
    pub fn put(&mut self, grammar: &Grammar, target: ValueTarget, value: u64) -> Fit {
        match target {
            ValueTarget::Bits(window) => self.set(window.mask(), window.place(value)),
            ValueTarget::Derived { expr, bits } => self.derive(grammar, expr, bits, value),
        }
    }

    /// Whether a condition is about settled bits alone.
    #[inline]
    pub fn settles(&self, grammar: &Grammar, condition: ExprId) -> bool {
        grammar.expr(condition).reads & !self.known == 0
    }

    /// Notes that a condition holds, or does not.
    #[inline]
    pub fn condition(&mut self, grammar: &Grammar, (expr, holds): (ExprId, bool)) -> Fit {
        self.claim(grammar, Claim { expr, value: u64::from(holds), mask: CONDITION })
    }

    #[inline]
    fn claim(&mut self, grammar: &Grammar, claim: Claim) -> Fit {
        if self.settles(grammar, claim.expr) {
            if !claim.holds(grammar, self.word) {
                self.conflict = true;
                return Err(Misfit);
            }
            return Ok(());
        }
        let slot = self.claims.get_mut(self.claim_count).ok_or(Misfit)?;
        *slot = claim;
        self.claim_count += 1;
        Ok(())
    }

    /// Notes what an expression comes out as, or sets the bits that it reads where that settles them.
    #[inline(never)]
    fn derive(&mut self, grammar: &Grammar, expr: ExprId, bits: u8, value: u64) -> Fit {
        let mask = BitWindow { low: 0, width: bits }.ones();
        let claim = Claim { expr, value: value & mask, mask };
        let unknown = grammar.expr(expr).reads & !self.known;
        if mask != CONDITION
            && unknown != 0
            && let Some(word) = only_answer(grammar, self.word, unknown, &claim)
        {
            self.word = word;
            self.known |= unknown;
            return Ok(());
        }
        self.claim(grammar, claim)
    }
}
