//! `cargo xtask shaders SUBJECT [N] [--seed S] [FILE…]`: checks N random or broken shaders. SUBJECT is `passes` (results before and
//! after every pass), `forms` (as text and as SPIR-V), or what is broken: `spirv`, `nir` or `text`, of random shaders and of every FILE.
//!
//! Panics, what does not hold, and inputs that take too much time or memory are printed with their seed, and make it fail.

use crate::mutate::HEAP;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use unwedge_testkit::shaders::campaign::{Campaign, Subject};
use unwedge_testkit::shaders::checks::Outcome;

const DEFAULT: u64 = 100_000;
/// No input takes longer.
const SLOW: Duration = Duration::from_secs(5);
/// Bytes of the heap that no input takes more of: a run has a limit of its own.
const HEAP_LIMIT: usize = 256 << 20;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let names = || Subject::ALL.map(Subject::name).join(", ");
    let subject = args.first().and_then(|name| Subject::ALL.into_iter().find(|s| s.name() == name));
    let subject = subject.ok_or_else(|| format!("shaders takes one of {}", names()))?;
    let (mut count, mut first, mut files) = (DEFAULT, 1, Vec::new());
    let mut rest = args[1..].iter();
    while let Some(arg) = rest.next() {
        match (arg.as_str(), arg.parse()) {
            ("--seed", _) => {
                first = rest.next().and_then(|v| v.parse().ok()).ok_or("--seed takes a number")?;
            }
            (_, Ok(number)) => count = number,
            (path, _) => files.push(std::fs::read(path).map_err(|e| format!("{path}: {e}"))?),
        }
    }
    let mut campaign = Campaign::new(subject, files, None);
    let (mut valid, mut failures) = (0_u64, 0_u64);
    let (mut slowest, mut largest) = ((Duration::ZERO, 0), (0, 0));
    for seed in first..first.saturating_add(count) {
        HEAP.reset_peak_usage();
        let (start, before) = (Instant::now(), HEAP.current_usage());
        let result = catch_unwind(AssertUnwindSafe(|| campaign.check(seed)));
        let time = start.elapsed();
        let heap = HEAP.peak_usage().saturating_sub(before);
        slowest = slowest.max((time, seed));
        largest = largest.max((heap, seed));
        let failure = match result {
            Ok(Ok(outcome)) => {
                valid += u64::from(outcome == Outcome::Valid);
                if time > SLOW {
                    format!("takes {time:?}")
                } else if heap > HEAP_LIMIT {
                    format!("takes {heap} bytes")
                } else {
                    continue;
                }
            }
            Ok(Err(e)) => e,
            Err(_) => "panics".to_owned(),
        };
        println!("seed {seed}: {failure}");
        failures += 1;
    }
    println!(
        "{}: {count} inputs, {valid} valid or compared, {failures} failures; slowest {:?} (seed {}), most memory {} bytes (seed {})",
        subject.name(),
        slowest.0,
        slowest.1,
        largest.0,
        largest.1
    );
    if failures == 0 { Ok(()) } else { Err(format!("{failures} of {count} fail")) }
}
