//! Finds the optional phase that breaks a shader, and the change of combining, by compiling with more and more of them.
//!
//! Never: judges code, which the caller does.

use super::{CompileViewError, Options, Passes, PhaseRequest, print_phases};
use std::collections::BTreeSet;
use std::fmt;
use thiserror::Error;
use unwedge_shader::interp::{BindingPoint, Bindings};
use unwedge_shader::ir::{ResourceClass, Shader};

/// Bytes of a buffer that is not bound, unless the shader says that it has more.
const BUFFER: usize = 4096;

/// Whether code does what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CodeVerdict {
    /// It does.
    Good,
    /// It does not.
    Bad,
    /// It cannot be judged.
    Skip,
}

/// Optional phases in their order: the option of `--aco-debug` that leaves them out, and what they are.
const PHASES: [(&str, &str); 8] = [
    ("novn", "value numbering"),
    ("noopt", "combining of instructions"),
    ("nosched", "scheduling"),
    ("noforward", "optimization after allocation"),
    ("noskips", "leaving out branches"),
    ("nosched-vopd", "dual instructions"),
    ("noclauses", "clauses"),
    ("nodelay", "s_delay_alu"),
];
/// Combining among them.
const COMBINING: usize = 1;

/// The options with the first `count` optional phases, and of the last one so many changes.
fn with_phases(passes: Passes, count: usize, combinations: Option<u32>) -> Passes {
    let off = PHASES[count..].iter().try_fold(passes, |passes, (name, _)| passes.with(name));
    Passes { combinations, ..off.unwrap_or(passes) }
}

/// The first number that is bad, between one that is good and one that is bad: a range, if those between cannot be judged.
fn first_bad<E>(
    mut good: u32,
    mut bad: u32,
    test: &mut impl FnMut(u32) -> Result<CodeVerdict, E>,
) -> Result<(u32, u32), E> {
    let mut skipped = BTreeSet::new();
    'next: while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        // The nearest to the middle first, where some cannot be judged.
        let mut numbers: Vec<u32> = (good + 1..bad).filter(|number| !skipped.contains(number)).collect();
        numbers.sort_by_key(|number| number.abs_diff(middle));
        for number in numbers {
            match test(number)? {
                CodeVerdict::Good => good = number,
                CodeVerdict::Bad => bad = number,
                CodeVerdict::Skip => {
                    skipped.insert(number);
                    continue;
                }
            }
            continue 'next;
        }
        break;
    }
    Ok((good + 1, bad))
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BisectResult {
    /// The code is good with all phases.
    Good,
    /// The code with all phases cannot be judged.
    Skip,
    /// The code is bad even without optional phases: one that every program needs breaks it.
    Needed,
    /// The code cannot be judged without optional phases.
    NeededSkip,
    /// The first optional phase with which the code is bad.
    Phase(PhaseFound),
}

/// An optional phase that breaks a shader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhaseFound {
    /// The phases: one, unless those between cannot be judged.
    pub phases: Vec<(&'static str, &'static str)>,
    /// The change of combining, counted from 1: the first, and the last if those between cannot be judged.
    pub combination: Option<(u32, u32)>,
    /// Instructions of the program without that change, and with it.
    pub change: Option<(String, String)>,
}

impl fmt::Display for BisectResult {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BisectResult::Good => writeln!(f, "good with all phases"),
            BisectResult::Skip => writeln!(f, "the code with all phases cannot be judged"),
            BisectResult::Needed => writeln!(
                f,
                "bad without any optional phase; try --aco-debug validateir,validatera and force-waitcnt"
            ),
            BisectResult::NeededSkip => {
                writeln!(f, "the code without optional phases cannot be judged")
            }
            BisectResult::Phase(found) => found.fmt(f),
        }
    }
}

impl fmt::Display for PhaseFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.phases.iter().map(|(_, name)| *name).collect();
        let options: Vec<&str> = self.phases.iter().map(|(option, _)| *option).collect();
        let (names, options) = (names.join(" or "), options.join(","));
        writeln!(f, "first bad phase: {names} (--aco-debug {options} leaves it out)")?;
        match self.combination {
            Some((first, last)) if first == last => {
                writeln!(
                    f,
                    "first bad change of combining: {first} (--max-combinations {} is good)",
                    first - 1
                )?;
            }
            Some((first, last)) => writeln!(f, "first bad change of combining: {first} to {last}")?,
            None => {}
        }
        if let Some((before, after)) = &self.change {
            for (sign, text) in [('-', before), ('+', after)] {
                text.lines().try_for_each(|line| writeln!(f, "{sign} {line}"))?;
            }
        }
        Ok(())
    }
}

/// Finds the phase. `test` compiles with options and judges the code; it also says how many changes combining made.
///
/// # Errors
///
/// Those of `test`.
pub fn bisect<E>(
    shader: &Shader,
    options: &Options,
    test: &mut impl FnMut(&Options) -> Result<(CodeVerdict, u32), E>,
) -> Result<BisectResult, E> {
    let with = |count: usize, combinations: Option<u32>| Options {
        passes: with_phases(options.passes, count, combinations.or(options.passes.combinations)),
        ..options.clone()
    };
    match test(&with(PHASES.len(), None))?.0 {
        CodeVerdict::Good => return Ok(BisectResult::Good),
        CodeVerdict::Skip => return Ok(BisectResult::Skip),
        CodeVerdict::Bad => {}
    }
    match test(&with(0, None))?.0 {
        CodeVerdict::Good => {}
        CodeVerdict::Bad => return Ok(BisectResult::Needed),
        CodeVerdict::Skip => return Ok(BisectResult::NeededSkip),
    }
    let mut of_phases = |count: u32| Ok(test(&with(count as usize, None))?.0);
    let (first, last) = first_bad(0, PHASES.len() as u32, &mut of_phases)?;
    let phases = PHASES[first as usize - 1..last as usize].to_vec();
    let mut found = PhaseFound { phases, combination: None, change: None };
    if first == last && first as usize == COMBINING + 1 {
        let all = test(&with(COMBINING + 1, None))?.1;
        // Numbering runs again after combining; with no change it should find nothing.
        let mut of_changes = |limit: u32| Ok(test(&with(COMBINING + 1, Some(limit)))?.0);
        if all > 0 && of_changes(0)? == CodeVerdict::Good {
            let (first, last) = first_bad(0, all, &mut of_changes)?;
            found.combination = Some((first, last));
            found.change =
                change(shader, &with(COMBINING + 1, Some(first - 1)), &with(COMBINING + 1, Some(last)));
        }
    }
    Ok(BisectResult::Phase(found))
}

/// The lines in which the program after optimization differs.
fn change(shader: &Shader, before: &Options, after: &Options) -> Option<(String, String)> {
    let request = PhaseRequest { after: vec!["opt".to_owned()], changed: false };
    let text = |options: &Options| -> Result<String, CompileViewError> {
        print_phases(&mut shader.clone(), options, &request)
    };
    let (before, after) = (text(before).ok()?, text(after).ok()?);
    let (before, after): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = before.iter().zip(&after).take_while(|(a, b)| a == b).count();
    let (before, after) = (&before[same..], &after[same..]);
    let same = before.iter().rev().zip(after.iter().rev()).take_while(|(a, b)| a == b).count();
    let lines = |list: &[&str]| list[..list.len() - same].join("\n");
    Some((lines(before), lines(after)))
}

/// Buffers of a shader are too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("buffers that are not given need more than {0} bytes")]
pub struct FillError(u64);

/// Gives buffers and push constants that are not bound some content.
///
/// # Errors
///
/// If that has more than `limit` bytes.
pub fn fill(shader: &Shader, bindings: &mut Bindings, limit: u64) -> Result<(), FillError> {
    let mut left = limit;
    let mut word = 0x1234_5678u32;
    let mut words = |bytes: usize| -> Result<Vec<u8>, FillError> {
        left = left.checked_sub(bytes.next_multiple_of(4) as u64).ok_or(FillError(limit))?;
        let next = |_| {
            word = word.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            // Small numbers as well: many shaders index by what they read.
            if word >> 31 == 0 { word >> 24 } else { word }.to_le_bytes()
        };
        Ok((0..bytes.div_ceil(4)).flat_map(next).collect())
    };
    for resource in shader.resources.values() {
        let buffer = matches!(resource.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer);
        for index in 0..resource.count.max(1).min(if buffer { 64 } else { 0 }) {
            let point = BindingPoint { set: resource.set, binding: resource.binding, index };
            if !bindings.buffers.contains_key(&point) {
                let bytes = words(BUFFER.max(resource.size as usize))?;
                bindings.bind(point, bytes);
            }
        }
    }
    let given = bindings.push.len();
    let wanted = shader.info.push_size as usize;
    if given < wanted {
        bindings.push.extend(words(wanted - given)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn optional_phases_have_options_that_leave_them_out() {
        let without = with_phases(Passes::default(), 0, None);
        for (name, _) in PHASES {
            assert_eq!(without.with(name), Some(without), "{name}");
            assert_ne!(Passes::default().with(name), Some(Passes::default()), "{name}");
        }
    }

    #[test]
    fn the_first_bad_number_is_found_between_those_that_cannot_be_judged() {
        for bad in 1..=40u32 {
            for (skip, expected) in [(0..0, (bad, bad)), (bad..bad + 1, (bad, (bad + 1).min(40)))] {
                let judge = |number: u32| match number {
                    _ if skip.contains(&number) => CodeVerdict::Skip,
                    _ if number >= bad => CodeVerdict::Bad,
                    _ => CodeVerdict::Good,
                };
                let mut asked = Vec::new();
                let found = first_bad(0, 40, &mut |number| {
                    asked.push(number);
                    Ok::<_, ()>(judge(number))
                });
                assert_eq!(found, Ok(expected), "{bad} {skip:?}");
                let mut once = asked.clone();
                once.sort_unstable();
                once.dedup();
                assert_eq!(once.len(), asked.len(), "each number is tested once: {asked:?}");
            }
        }
    }
}
