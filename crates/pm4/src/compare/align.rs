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

/// Pairs draws in order: those that are alike, vertices included, as many as can be; between those, those of one kind
/// and pass.
pub fn align(a: &[Mark], b: &[Mark]) -> Vec<Pairing> {
    let alike = |x: &Mark, y: &Mark| kindred(x, y) && (x.count, x.instances) == (y.count, y.instances);
    let start = a.iter().zip(b).take_while(|(x, y)| alike(x, y)).count();
    let (rest_a, rest_b) = (a.get(start..).unwrap_or_default(), b.get(start..).unwrap_or_default());
    let end = rest_a.iter().rev().zip(rest_b.iter().rev()).take_while(|(x, y)| alike(x, y)).count();
    let middle_a = rest_a.get(..rest_a.len() - end).unwrap_or_default();
    let middle_b = rest_b.get(..rest_b.len() - end).unwrap_or_default();

    let mut out: Vec<Pairing> = (0..start).map(|i| Pairing::Both(i, i)).collect();
    let (mut from_a, mut from_b) = (0, 0);
    for (i, j) in longest(middle_a, middle_b, alike) {
        gap(a, b, start + from_a..start + i, start + from_b..start + j, &mut out);
        out.push(Pairing::Both(start + i, start + j));
        (from_a, from_b) = (i + 1, j + 1);
    }
    let (end_a, end_b) = (start + middle_a.len(), start + middle_b.len());
    gap(a, b, start + from_a..end_a, start + from_b..end_b, &mut out);
    out.extend((0..end).map(|i| Pairing::Both(end_a + i, end_b + i)));
    out
}

fn kindred(x: &Mark, y: &Mark) -> bool {
    (x.kind, x.pass, x.primitive, x.event) == (y.kind, y.pass, y.primitive, y.event)
}

/// Draws without a like: in order, as long as they are of one kind.
fn gap(
    a: &[Mark],
    b: &[Mark],
    mut of_a: std::ops::Range<usize>,
    mut of_b: std::ops::Range<usize>,
    out: &mut Vec<Pairing>,
) {
    while let (Some(x), Some(y)) = (a.get(of_a.start), b.get(of_b.start))
        && !of_a.is_empty()
        && !of_b.is_empty()
        && kindred(x, y)
    {
        out.push(Pairing::Both(of_a.start, of_b.start));
        (of_a.start, of_b.start) = (of_a.start + 1, of_b.start + 1);
    }
    out.extend(of_a.map(Pairing::OnlyA));
    out.extend(of_b.map(Pairing::OnlyB));
}

/// The longest common subsequence.
fn longest(a: &[Mark], b: &[Mark], alike: impl Fn(&Mark, &Mark) -> bool) -> Vec<(usize, usize)> {
    let width = b.len() + 1;
    if a.is_empty() || b.is_empty() || a.len().saturating_mul(width) > MAX_PAIRS {
        return Vec::new();
    }
    // Length of the longest one of what is left from (i, j) on.
    let mut table = vec![0_u32; (a.len() + 1) * width];
    let get = |table: &[u32], i: usize, j: usize| table.get(i * width + j).copied().unwrap_or(0);
    for (i, x) in a.iter().enumerate().rev() {
        for (j, y) in b.iter().enumerate().rev() {
            let best = if alike(x, y) {
                get(&table, i + 1, j + 1) + 1
            } else {
                get(&table, i + 1, j).max(get(&table, i, j + 1))
            };
            if let Some(slot) = table.get_mut(i * width + j) {
                *slot = best;
            }
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while let (Some(x), Some(y)) = (a.get(i), b.get(j)) {
        if alike(x, y) {
            found.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if get(&table, i + 1, j) >= get(&table, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::Pairing::{Both, OnlyA, OnlyB};
    use super::*;
    use crate::DrawKind;

    fn marks(counts: &[u32]) -> Vec<Mark> {
        let mark = |(number, &count): (usize, &u32)| Mark {
            number: number as u32,
            kind: if count >= 100 { DrawKind::Blit } else { DrawKind::Draw },
            pass: None,
            primitive: None,
            event: None,
            count: Some(count),
            instances: None,
            changes: 0..0,
            loads: 0..0,
            code: [None; 6],
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
