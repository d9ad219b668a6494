//! Numbers of submits or frames as people write them: `3`, `3..7`, `..2,9..`; the last of a range is part of it.

use thiserror::Error;

/// Why a text is not numbers and ranges.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NumbersError {
    /// A part is neither a number nor a range.
    #[error("expected numbers like 3, 3..7 or 3..7,9.., not `{0}`")]
    Malformed(String),
    /// The last number of a range is smaller than its first.
    #[error("`{0}` is empty: the last number is part of a range")]
    EmptyRange(String),
}

/// Some numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers(Vec<(u32, u32)>);

impl Numbers {
    /// Reads numbers and ranges between commas.
    ///
    /// # Errors
    /// A part that is neither, or an empty range.
    pub fn parse(text: &str) -> Result<Numbers, NumbersError> {
        let ranges: Result<Vec<_>, NumbersError> = text.split(',').map(|part| range(part.trim())).collect();
        Ok(Numbers(ranges?))
    }

    /// This number is one of them.
    pub fn contain(&self, number: u32) -> bool {
        self.0.iter().any(|&(first, last)| (first..=last).contains(&number))
    }

    /// All of them are smaller.
    pub fn end_before(&self, number: u32) -> bool {
        self.0.iter().all(|&(_, last)| last < number)
    }
}

fn range(part: &str) -> Result<(u32, u32), NumbersError> {
    let bad = || NumbersError::Malformed(part.to_owned());
    let number = |text: &str| text.parse::<u32>().map_err(|_| bad());
    let (first, last) = match part.split_once("..").or(part.split_once('-')) {
        None => return number(part).map(|one| (one, one)),
        Some(("", "")) => return Err(bad()),
        Some((first, last)) => (
            if first.is_empty() { 0 } else { number(first)? },
            if last.is_empty() { u32::MAX } else { number(last.trim_start_matches('='))? },
        ),
    };
    if first > last { Err(NumbersError::EmptyRange(part.to_owned())) } else { Ok((first, last)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings() {
        let numbers = |text: &str| Numbers::parse(text).map(|n| n.0);
        assert_eq!(numbers("3"), Ok(vec![(3, 3)]));
        assert_eq!(numbers("3..7, 9.."), Ok(vec![(3, 7), (9, u32::MAX)]));
        assert_eq!(numbers("..=2,4-5"), Ok(vec![(0, 2), (4, 5)]));
        for bad in ["", "x", "1,", "..", "-", "3..x", "4..3", "-1..2", "4294967296"] {
            assert!(numbers(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_in_a_range() {
        let numbers = Numbers::parse("3..4,9").unwrap();
        assert_eq!((0..12).filter(|&n| numbers.contain(n)).collect::<Vec<_>>(), [3, 4, 9]);
        assert_eq!((0..12).find(|&n| numbers.end_before(n)), Some(10));
    }
}
