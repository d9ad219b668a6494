//! Names that look like a mistyped one.
//!
//! For messages only: every name is looked at. Never: deciding what a name means.

/// Suggestions of one message.
const MOST: usize = 3;
/// Longer words are not compared letter by letter.
const LONGEST: usize = 128;

/// The names that `wanted` was probably meant to be, the likeliest first: the same in another case, with another index,
/// holding it as a part, or a few letters away.
pub fn near<'n>(names: impl IntoIterator<Item = &'n str>, wanted: &str) -> Vec<&'n str> {
    let wanted = wanted.to_ascii_uppercase();
    let (bare, limit) = (without_index(&wanted), 1 + wanted.len() / 5);
    let mut found: Vec<(usize, usize, &str)> = Vec::new();
    for name in names {
        let upper = name.to_ascii_uppercase();
        let distance = if upper == wanted {
            0
        } else if without_index(&upper) == bare {
            1
        } else if wanted.len() >= 3 && upper.contains(&wanted) {
            2
        } else {
            match distance(upper.as_bytes(), wanted.as_bytes(), limit) {
                Some(distance) => 2 + distance,
                None => continue,
            }
        };
        found.push((distance, name.len(), name));
    }
    found.sort_unstable();
    found.dedup();
    // An array has one name here, that of its first element.
    found.dedup_by(|a, b| without_index(a.2) == without_index(b.2));
    found.into_iter().take(MOST).map(|(_, _, name)| name).collect()
}

/// `RB_MRT[0x1].CONTROL` → `RB_MRT.CONTROL`
fn without_index(name: &str) -> String {
    let mut inside = false;
    name.chars()
        .filter(|&c| {
            inside = (inside || c == '[') && c != ']';
            !inside && c != ']'
        })
        .collect()
}

/// Letters to insert, leave out, change or swap with the next one; `None` above `limit`.
fn distance(a: &[u8], b: &[u8], limit: usize) -> Option<usize> {
    if a.len().abs_diff(b.len()) > limit || a.len().max(b.len()) > LONGEST {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, &y) in b.iter().enumerate() {
            let get = |row: &[usize], at: usize| row.get(at).copied().unwrap_or(usize::MAX / 2);
            let changed = get(&last, j) + usize::from(x != y);
            let mut best = changed.min(get(&last, j + 1) + 1).min(get(&row, j) + 1);
            let swapped = j > 0 && i > 0 && a.get(i - 1) == Some(&y) && b.get(j - 1) == Some(&x);
            if swapped {
                best = best.min(get(&before, j - 1) + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last.last().copied().filter(|&d| d <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_meant_comes_first() {
        let names = ["RB_MRT[0].CONTROL", "RB_MRT[0x1].CONTROL", "RB_DEPTH_CNTL", "RB_STENCIL_CNTL", "X"];
        let check = |wanted: &str, expected: &[&str]| assert_eq!(near(names, wanted), expected, "{wanted}");
        check("rb_depth_cntl", &["RB_DEPTH_CNTL"]);
        check("RB_MRT.CONTROL", &["RB_MRT[0].CONTROL"]);
        check("RB_DEPHT_CNTL", &["RB_DEPTH_CNTL"]);
        check("STENCIL", &["RB_STENCIL_CNTL"]);
        check("VPC_SOMETHING_ELSE", &[]);
        check("", &["X"]);
    }
}
