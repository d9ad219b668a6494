//! Finds the bits that the text does not show from what it claims about them.
//!
//! Most claims are about a bit or two (precision, nop counts), so unknown bits are tried in order, zeros first.
//! Answers are remembered: the same kinds of operands come again and again. A value that is spread over several fields
//! (offsets) is taken apart bit by bit as soon as it is read.

use super::facts::{Claim, WordFacts};
use super::grammar::Grammar;

/// Unknown bits of a claim that are tried in all combinations.
const MOST_TRIED: u32 = 12;

/// Evaluations that finding an answer may take.
const MOST_EVALUATIONS: u32 = 1 << 14;

/// Remembered answers.
pub(super) struct SolveCache {
    slots: Box<[SolveCacheSlot]>,
}

#[derive(Clone, Copy, Default)]
struct SolveCacheSlot {
    key: u64,
    bits: u64,
}

/// Slots of [`SolveCache`], a power of two.
const SLOTS: usize = 1 << 12;

impl SolveCache {
    pub fn new() -> SolveCache {
        SolveCache { slots: vec![SolveCacheSlot::default(); SLOTS].into_boxed_slice() }
    }
}

/// The word that the facts tell, with `unshown` bits set where nothing says otherwise.
pub(super) fn word(
    grammar: &Grammar,
    memory: &mut SolveCache,
    facts: &WordFacts,
    unshown: u64,
) -> Option<u64> {
    let unshown = unshown & !facts.known;
    let mut solved = |bits| solve(grammar, memory, facts.word | bits, facts.known | bits, facts.claims());
    match solved(unshown) {
        None if unshown != 0 => solved(0),
        found => found,
    }
}

/// The word with every claim met, unknown bits zero where nothing asks for more. `None` if the claims contradict
/// each other.
fn solve(grammar: &Grammar, memory: &mut SolveCache, word: u64, known: u64, claims: &[Claim]) -> Option<u64> {
    let holds = |word: u64| claims.iter().all(|claim| claim.holds(grammar, word));
    if claims.is_empty() {
        return Some(word);
    }
    let reads = claims.iter().fold(0, |all, claim| all | grammar.expr(claim.expr).reads);
    let unknown = reads & !known;
    if unknown.count_ones() <= 1 {
        return [word, word | unknown].into_iter().find(|&word| holds(word));
    }
    let key = key(word & reads & known, known & reads, claims);
    let slot = &mut memory.slots[key as usize & (SLOTS - 1)];
    if slot.key == key && slot.bits & known == 0 && holds(word | slot.bits) {
        return Some(word | slot.bits);
    }
    let mut search = Search { grammar, claims, budget: MOST_EVALUATIONS };
    let all = u32::MAX.checked_shr(32u32.saturating_sub(claims.len() as u32)).unwrap_or(0);
    let solved = search.settle(word, unknown, all)?;
    *slot = SolveCacheSlot { key, bits: solved & !known };
    Some(solved)
}

fn key(word: u64, known: u64, claims: &[Claim]) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut key = ODD;
    let mut mix = |value: u64| key = (key.rotate_left(5) ^ value).wrapping_mul(ODD);
    mix(word);
    mix(known);
    for claim in claims {
        mix(u64::from(claim.expr.0) << 32 ^ claim.value);
    }
    key ^ key >> 29
}

/// Claims about the fewest unknown bits first, each in turn made true by the lowest bits that do it.
struct Search<'a> {
    grammar: &'a Grammar,
    claims: &'a [Claim],
    /// Evaluations left.
    budget: u32,
}

impl Search<'_> {
    /// `open` has a bit for each claim that is not settled yet.
    fn settle(&mut self, word: u64, unknown: u64, mut open: u32) -> Option<u64> {
        let mut next = None;
        let claims = self.claims;
        let asked = open;
        for (i, claim) in claims.iter().enumerate().filter(|(i, _)| asked >> i & 1 == 1) {
            let bits = (self.grammar.expr(claim.expr).reads & unknown).count_ones();
            if bits == 0 {
                if !self.holds(claim, word) {
                    return None;
                }
                open &= !(1 << i);
            } else if next.is_none_or(|(least, _)| bits < least) {
                next = Some((bits, i));
            }
        }
        let Some((count, i)) = next else { return Some(word) };
        let claim = &claims[i];
        let own = self.grammar.expr(claim.expr).reads & unknown;
        let (unknown, open) = (unknown & !own, open & !(1 << i));
        (0..1u64 << count.min(MOST_TRIED)).map(|choice| word | deposit(choice, own)).find_map(|word| {
            if self.budget > 0 && self.holds(claim, word) { self.settle(word, unknown, open) } else { None }
        })
    }

    fn holds(&mut self, claim: &Claim, word: u64) -> bool {
        self.budget = self.budget.saturating_sub(1);
        claim.holds(self.grammar, word)
    }
}

/// The one way of making a claim true, where that is easy to see; `None` where it is not, or there are several.
pub(super) fn only_answer(grammar: &Grammar, word: u64, unknown: u64, claim: &Claim) -> Option<u64> {
    const FEW: u32 = 3;
    if unknown.count_ones() > FEW {
        return take_apart(grammar, word, unknown, claim);
    }
    let mut answers = (0..1u64 << unknown.count_ones())
        .map(|choice| word | deposit(choice, unknown))
        .filter(|&word| claim.holds(grammar, word));
    let answer = answers.next()?;
    answers.next().is_none().then_some(answer)
}

/// Solves a claim whose expression only moves bits about, so that there is one solution: each unknown bit is set if
/// what it changes is wanted, and no two change the same. `None` for any other expression.
fn take_apart(grammar: &Grammar, word: u64, unknown: u64, claim: &Claim) -> Option<u64> {
    let expr = grammar.expr(claim.expr);
    let base = expr.eval(word) as u64;
    let wanted = (base ^ claim.value) & claim.mask;
    let mut solved = word;
    let mut changed = 0;
    for bit in bits(unknown) {
        let effect = (expr.eval(word | bit) as u64 ^ base) & claim.mask;
        if effect == 0 || effect & changed != 0 {
            return None;
        }
        changed |= effect;
        if effect & wanted == effect {
            solved |= bit;
        }
    }
    claim.holds(grammar, solved).then_some(solved)
}

/// The set bits of a mask, lowest first.
fn bits(mut mask: u64) -> impl Iterator<Item = u64> {
    std::iter::from_fn(move || {
        let lowest = mask & mask.wrapping_neg();
        mask ^= lowest;
        (lowest != 0).then_some(lowest)
    })
}

/// The low bits of `value` spread over the set bits of `mask`.
fn deposit(value: u64, mask: u64) -> u64 {
    bits(mask).enumerate().filter(|&(i, _)| value >> i & 1 == 1).fold(0, |all, (_, bit)| all | bit)
}

#[cfg(test)]
mod tests {
    use super::super::grammar::{BitWindow, Expr, ExprId, ExprStep};
    use super::*;
    use crate::table::expr::Binary;

    fn bits_of(low: u8, width: u8) -> ExprStep {
        ExprStep::Bits(BitWindow { low, width })
    }

    fn grammar(exprs: &[&[ExprStep]]) -> Grammar {
        Grammar { exprs: exprs.iter().map(|steps| Expr::new(steps.to_vec())).collect(), ..Grammar::default() }
    }

    fn claim(expr: u32, value: u64, mask: u64) -> Claim {
        Claim { expr: ExprId(expr), value, mask }
    }

    /// Half-precision source and destination: "not full", and "full equals converted".
    #[test]
    fn sizes_follow_from_each_other() {
        let full = bits_of(52, 1);
        let converted = bits_of(46, 1);
        let grammar = grammar(&[&[full, ExprStep::Not], &[full, converted, ExprStep::Binary(Binary::Eq)]]);
        let mut memory = SolveCache::new();
        let mut solved = |source_half, dest_half| {
            solve(&grammar, &mut memory, 0, 0, &[claim(0, source_half, 1), claim(1, dest_half, 1)])
        };
        for _ in 0..2 {
            assert_eq!(solved(0, 0), Some(1 << 52));
            assert_eq!(solved(1, 1), Some(0));
            assert_eq!(solved(1, 0), Some(1 << 46));
            assert_eq!(solved(0, 1), Some(1 << 52 | 1 << 46));
        }
    }

    #[test]
    fn contradictions_have_no_answer() {
        let full = bits_of(52, 1);
        let grammar = grammar(&[&[full]]);
        assert_eq!(solve(&grammar, &mut SolveCache::new(), 0, 0, &[claim(0, 0, 1), claim(0, 1, 1)]), None);
    }

    #[test]
    fn split_offsets_are_taken_apart() {
        let grammar = grammar(&[&[
            bits_of(9, 5),
            ExprStep::Const(8),
            ExprStep::Binary(Binary::Shl),
            bits_of(32, 8),
            ExprStep::Binary(Binary::BitOr),
        ]]);
        for offset in -4096i64..4096 {
            let claim = claim(0, offset as u64 & 0x1fff, 0x1fff);
            let word = take_apart(&grammar, 0, 0xff << 32 | 0x1f << 9, &claim);
            let placed = (offset as u64 & 0xff) << 32 | (offset as u64 >> 8 & 0x1f) << 9;
            assert_eq!(word, Some(placed), "{offset}");
        }
    }
}
