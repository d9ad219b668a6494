//! Numbers with their nouns: the one place that knows English grammar.

use std::fmt;

/// A number and what it counts: `1 draw`, `2 draws`.
#[derive(Clone, Copy, Debug)]
pub struct Counted<'a> {
    count: u64,
    one: &'a str,
    several: &'a str,
}

/// `count` things: `one` is what stands after 1, `several` after every other number.
pub fn counted<'a>(count: u64, one: &'a str, several: &'a str) -> Counted<'a> {
    Counted { count, one, several }
}

impl fmt::Display for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let noun = if self.count == 1 { self.one } else { self.several };
        write!(f, "{} {noun}", self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_everything_else_plural() {
        let text = |count| counted(count, "draw", "draws").to_string();
        assert_eq!([0, 1, 2, 11].map(text), ["0 draws", "1 draw", "2 draws", "11 draws"]);
    }
}
