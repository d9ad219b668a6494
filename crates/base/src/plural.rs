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

/// `1st`, `2nd`, `11th`.
pub fn ordinal(number: u64) -> String {
    let suffix = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_everything_else_plural() {
        let text = |count| counted(count, "draw", "draws").to_string();
        assert_eq!([0, 1, 2, 11].map(text), ["0 draws", "1 draw", "2 draws", "11 draws"]);
    }

    #[test]
    fn ordinals() {
        let expected = ["0th", "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "112th"];
        assert_eq!([0, 1, 2, 3, 4, 11, 12, 13, 21, 112].map(ordinal), expected);
    }
}
