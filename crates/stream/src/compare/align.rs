//! Which draw of one submit is which of the other.

use super::Mark;

/// A draw of both, or of one only; indices into their draws.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// The same draw.
    Both(usize, usize),
    /// The other has nothing like it.
    OnlyA(usize),
    /// The other has nothing like it.
    OnlyB(usize),
}

/// Pairs of draws that are compared, at most; beyond that draws go by their order.
const MAX_PAIRS: usize = 1 << 22;

/// Pairs draws in order: those that are alike, pass and vertices included, as many as can be; between those, those of
/// one kind.
pub fn align(a: &[Mark], b: &[Mark]) -> Vec<Pairing> {
    let mut out = Vec::with_capacity(a.len().max(b.len()));
    between(DrawRun { draws: a, from: 0 }, DrawRun { draws: b, from: 0 }, &[alike, kindred], &mut out);
    out
}

fn alike(x: &Mark, y: &Mark) -> bool {
    kindred(x, y) && (x.pass, x.count, x.instances) == (y.pass, y.count, y.instances)
}

fn kindred(x: &Mark, y: &Mark) -> bool {
    (x.kind, x.primitive, x.event) == (y.kind, y.primitive, y.event)
}

/// Draws in a row, and the index of the first of them.
#[derive(Clone, Copy)]
struct DrawRun<'m> {
    draws: &'m [Mark],
    from: usize,
}

impl DrawRun<'_> {
    fn cut(self, from: usize, to: usize) -> Self {
        DrawRun { draws: self.draws.get(from..to).unwrap_or_default(), from: self.from + from }
    }
}

/// Pairs draws by the first measure; what is left between them by the next ones.
fn between(a: DrawRun<'_>, b: DrawRun<'_>, measures: &[fn(&Mark, &Mark) -> bool], out: &mut Vec<Pairing>) {
    let Some((&same, weaker)) = measures.split_first() else {
        out.extend((0..a.draws.len()).map(|i| Pairing::OnlyA(a.from + i)));
        out.extend((0..b.draws.len()).map(|j| Pairing::OnlyB(b.from + j)));
        return;
    };
    let start = a.draws.iter().zip(b.draws).take_while(|(x, y)| same(x, y)).count();
    let (rest_a, rest_b) = (a.cut(start, a.draws.len()), b.cut(start, b.draws.len()));
    let end =
        rest_a.draws.iter().rev().zip(rest_b.draws.iter().rev()).take_while(|(x, y)| same(x, y)).count();
    let middle_a = rest_a.cut(0, rest_a.draws.len() - end);
    let middle_b = rest_b.cut(0, rest_b.draws.len() - end);

    out.extend((0..start).map(|i| Pairing::Both(a.from + i, b.from + i)));
    let (mut from_a, mut from_b) = (0, 0);
    for (i, j) in longest(middle_a.draws, middle_b.draws, same) {
        between(middle_a.cut(from_a, i), middle_b.cut(from_b, j), weaker, out);
        out.push(Pairing::Both(middle_a.from + i, middle_b.from + j));
        (from_a, from_b) = (i + 1, j + 1);
    }
    let (end_a, end_b) = (middle_a.draws.len(), middle_b.draws.len());
    between(middle_a.cut(from_a, end_a), middle_b.cut(from_b, end_b), weaker, out);
    out.extend((0..end).map(|i| Pairing::Both(middle_a.from + end_a + i, middle_b.from + end_b + i)));
}

/// The longest common subsequence.
fn longest(a: &[Mark], b: &[Mark], alike: impl Fn(&Mark, &Mark) -> bool) -> Vec<(usize, usize)> {
    let width = b.len();
    if a.is_empty() || b.is_empty() || a.len().saturating_mul(width) > MAX_PAIRS {
        return Vec::new();
    }
    // From (i, j) on: leaving out the draw of `a` is at least as good as leaving out that of `b`.
    let mut leave_a = Bits(vec![0; (a.len() * width).div_ceil(64)]);
    // Length of the longest one of what is left from (i, j) on, of this row and the one below.
    let mut below = vec![0_u32; width + 1];
    let mut row = below.clone();
    let get = |row: &[u32], j: usize| row.get(j).copied().unwrap_or(0);
    for (i, x) in a.iter().enumerate().rev() {
        for (j, y) in b.iter().enumerate().rev() {
            let (without_x, without_y) = (get(&below, j), get(&row, j + 1));
            if without_x >= without_y {
                leave_a.set(i * width + j);
            }
            let best = if alike(x, y) { get(&below, j + 1) + 1 } else { without_x.max(without_y) };
            if let Some(slot) = row.get_mut(j) {
                *slot = best;
            }
        }
        std::mem::swap(&mut row, &mut below);
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if alike(x, y) {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if leave_a.get(i * width + j) {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

/// A set of numbers.
struct Bits(Vec<u64>);

impl Bits {
    fn set(&mut self, at: usize) {
        if let Some(word) = self.0.get_mut(at / 64) {
            *word |= 1 << (at % 64);
        }
    }

    fn get(&self, at: usize) -> bool {
        self.0.get(at / 64).is_some_and(|word| word >> (at % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::Pairing::{Both, OnlyA, OnlyB};
    use super::*;
    use crate::WorkKind;

    fn marks(counts: &[u32]) -> Vec<Mark> {
        let mark = |(number, &count): (usize, &u32)| Mark {
            number: number as u32,
            kind: if count >= 100 { WorkKind::Blit } else { WorkKind::Draw },
            pass: None,
            primitive: None,
            event: None,
            count: Some(count),
            instances: None,
            changes: 0..0,
            loads: 0..0,
            shaders: 0,
        };
        counts.iter().enumerate().map(mark).collect()
    }

    #[test]
    fn draws_that_came_in_between_are_found() {
        let check = |a: &[u32], b: &[u32], expected: &[Pairing]| {
            assert_eq!(align(&marks(a), &marks(b)), expected, "{a:?} {b:?}");
        };
        check(&[3, 6], &[3, 6], &[Both(0, 0), Both(1, 1)]);
        check(&[3, 6, 9], &[3, 9], &[Both(0, 0), OnlyA(1), Both(2, 1)]);
        check(&[3, 9], &[3, 100, 9], &[Both(0, 0), OnlyB(1), Both(1, 2)]);
        check(&[3, 6, 9], &[3, 7, 9], &[Both(0, 0), Both(1, 1), Both(2, 2)]);
        check(&[3, 6, 9], &[3, 100, 9], &[Both(0, 0), OnlyA(1), OnlyB(1), Both(2, 2)]);
        check(
            &[1, 2, 3, 4, 5],
            &[1, 3, 9, 4, 6, 5],
            &[Both(0, 0), OnlyA(1), Both(2, 1), OnlyB(2), Both(3, 3), OnlyB(4), Both(4, 5)],
        );
        check(&[], &[3], &[OnlyB(0)]);
    }
}
