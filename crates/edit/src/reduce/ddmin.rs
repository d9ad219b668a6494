//! Taking away parts in ever smaller chunks, as long as what is left is of interest.

/// What became of a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Attempt {
    /// It is of interest, and what is tried next has no more parts than it.
    Taken,
    /// It is not.
    Refused,
    /// Nothing more is to be tried.
    Stop,
}

/// Finds few of `count` parts, none of which can be taken away alone. `attempt` is given the parts that are left.
pub(super) fn minimize(count: usize, attempt: &mut dyn FnMut(&[usize]) -> Attempt) -> Vec<usize> {
    let mut left: Vec<usize> = (0..count).collect();
    let mut chunk = count;
    while chunk > 0 && !left.is_empty() {
        let mut taken = false;
        // From the end: what comes after a fault is not needed, and goes in few attempts.
        let mut end = left.len();
        while end > 0 {
            let start = end.saturating_sub(chunk);
            let rest: Vec<usize> = left
                .iter()
                .enumerate()
                .filter(|(at, _)| !(start..end).contains(at))
                .map(|(_, part)| *part)
                .collect();
            match attempt(&rest) {
                Attempt::Taken => {
                    left = rest;
                    taken = true;
                }
                Attempt::Refused => {}
                Attempt::Stop => return left,
            }
            end = start;
        }
        chunk = match chunk {
            // Taking away one part may have made another one superfluous.
            1 if taken => 1,
            _ => chunk.min(left.len().max(1)) / 2,
        };
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    fn needed(count: usize, needed: &[usize]) -> (Vec<usize>, usize) {
        let mut attempts = 0;
        let left = minimize(count, &mut |keep| {
            attempts += 1;
            if needed.iter().all(|part| keep.contains(part)) { Attempt::Taken } else { Attempt::Refused }
        });
        (left, attempts)
    }

    #[test]
    fn only_what_is_needed_is_left() {
        for parts in [&[][..], &[0], &[999], &[17, 18, 500], &[0, 333, 666, 999]] {
            let (left, attempts) = needed(1000, parts);
            assert_eq!(left, parts);
            assert!(attempts < 40 + 30 * parts.len(), "{attempts} for {parts:?}");
        }
        assert_eq!(needed(0, &[]).0, Vec::<usize>::new());
        assert_eq!(needed(1, &[0]).0, [0]);
    }

    #[test]
    fn parts_that_need_one_another_go_one_after_another() {
        // Each part needs the one before it to be there.
        let left = minimize(6, &mut |keep| {
            let chained = keep.iter().all(|part| *part == 0 || keep.contains(&(part - 1)));
            if chained { Attempt::Taken } else { Attempt::Refused }
        });
        assert_eq!(left, Vec::<usize>::new());
    }

    #[test]
    fn a_stop_keeps_what_was_found() {
        let mut attempts = 0;
        let left = minimize(64, &mut |keep| {
            attempts += 1;
            match attempts {
                1..=4 if keep.contains(&3) => Attempt::Taken,
                1..=4 => Attempt::Refused,
                _ => Attempt::Stop,
            }
        });
        assert!(left.contains(&3) && left.len() < 64);
    }
}
