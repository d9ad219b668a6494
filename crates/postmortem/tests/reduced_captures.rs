//! Faults that a seed puts into submits, reduced on the virtual Adreno: what is left shows the same fault.
//!
//! `REDUCED_FAULTS` says how many, `REDUCED_FAULTS_FROM` from which seed on; the table of them is in `docs/instrument.md`.

#[path = "seeded/fault.rs"]
mod fault;
#[path = "seeded/own.rs"]
mod own;
#[path = "seeded/packets.rs"]
mod packets;
#[path = "edited/replay.rs"]
mod replay;
#[path = "seeded/set.rs"]
mod set;

use fault::{FaultSeed, ListedSubmit};
use replay::Replayed;
use set::{SubmitSet, explained};
use std::convert::Infallible;
use std::path::PathBuf;
use unwedge_capture::rd::RdSectionKind;
use unwedge_edit::reduce::reduce;
use unwedge_hw::Db;
use unwedge_sim::adreno::{Loading, RunEnd};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::rd::CaptureBuilder;
use unwedge_testkit::{data, parallel};

/// Faults that are reduced, of own submits; all with `UNWEDGE_ALL=1`.
const FAULTS: usize = 5;
const ALL_FAULTS: usize = 50;
/// Steps that a submit may take before the kernel gives it up. Own submits take some hundred; each try of an endless one takes all.
const STEPS: u64 = 1 << 13;
const PLACES: usize = 8;
const SUBMITS: usize = 8;

/// The submit as a capture.
fn capture(set: &SubmitSet, db: &Db) -> Vec<u8> {
    let chip = set.adreno(db).device.expect("a device").chip_id().0.to_le_bytes();
    let mut capture = CaptureBuilder::new(0, "seeded\0").section(RdSectionKind::ChipId, &chip);
    for buffer in &set.buffers {
        let size = u32::try_from(buffer.size).expect("a size");
        capture = match &buffer.contents {
            Some(words) => {
                let mut words = words.clone();
                words.resize((size / 4) as usize, 0);
                capture.claim(buffer.iova, size, &words)
            }
            None => capture.name(buffer.iova, size),
        };
    }
    set.streams.iter().fold(capture, |capture, &(iova, dwords)| capture.submit(iova, dwords)).bytes()
}

/// What the post-mortem calls the hang of a capture; `None` if it does not hang.
fn signature(bytes: &[u8], db: &Db) -> Option<String> {
    let replayed = Replayed::new(bytes, Loading::Snapshot, STEPS, db);
    let stopped = replayed.ends.iter().any(|end| *end != RunEnd::Done);
    replayed.dump.filter(|_| stopped).map(|dump| explained(&dump, db).signature())
}

/// A fault in a submit, as a capture.
fn seeded(
    seed: u64,
    db: &Db,
    mut submit: impl FnMut(FaultSeed, &mut Rng) -> Option<ListedSubmit>,
) -> Option<(FaultSeed, Vec<u8>, String)> {
    let mut rng = Rng::new(seed);
    let fault = FaultSeed::ALL[seed as usize % FaultSeed::ALL.len()];
    let submit = submit(fault, &mut rng)?;
    for _ in 0..PLACES {
        let Some(seeded) = submit.seed(fault, &mut rng, db) else { continue };
        let bytes = capture(&seeded.set, db);
        if let Some(signature) = signature(&bytes, db) {
            return Some((fault, bytes, signature));
        }
    }
    None
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|count| count.parse().ok()).unwrap_or(otherwise)
}

fn faults() -> usize {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    number("REDUCED_FAULTS", if all { ALL_FAULTS } else { FAULTS })
}

/// Reduces faults, and holds the results to the verdicts of the originals.
fn check(count: usize, db: &Db, seed: impl Fn(u64) -> Option<(FaultSeed, Vec<u8>, String)>) {
    let from = number("REDUCED_FAULTS_FROM", 0) as u64;
    let seeds = from..from + 40 * count as u64;
    let faults: Vec<_> = seeds.filter_map(|number| Some((number, seed(number)?))).take(count).collect();
    let wrong = parallel::map(&faults, |(number, (fault, bytes, verdict))| {
        let same =
            |candidate: &[u8]| Ok::<bool, Infallible>(signature(candidate, db).as_ref() == Some(verdict));
        let reduction = reduce(bytes, db, usize::MAX, same).expect("the capture shows the fault");
        let (to, tries) = (reduction.capture.len(), reduction.tries);
        let percent = 100.0 * to as f64 / bytes.len() as f64;
        println!("| {number} | {fault:?} | {} | {to} | {percent:.2} % | {tries} |", bytes.len());
        let is_wrong = signature(&reduction.capture, db).as_ref() != Some(verdict) || percent >= 5.0;
        is_wrong.then(|| format!("{number} {fault:?}: {} to {to}, {percent:.2} %", bytes.len()))
    });
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(faults.len(), count);
}

#[test]
fn seeded_faults_are_reduced_to_what_shows_them() {
    let db = Db::builtin();
    check(faults(), &db, |seed| {
        seeded(seed, &db, |fault, rng| {
            let submits = (0..SUBMITS).map(|_| ListedSubmit::new(own::submit(rng.next_u64(), &db), &db));
            submits.into_iter().find(|submit| submit.has_place(fault))
        })
    });
}

#[test]
fn faults_in_recorded_submits_are_reduced() {
    let db = Db::builtin();
    let mut files: Vec<PathBuf> = data::files("adreno/graphics/captures", ".rd.gz");
    files.extend(data::files("adreno/renders", ".rd.gz"));
    if files.is_empty() {
        return;
    }
    check(faults().div_ceil(10), &db, |seed| {
        seeded(seed, &db, |fault, rng| {
            let file = rng.pick(&files)?;
            let name = file.file_name()?.to_string_lossy().into_owned();
            let sets = set::SetCollector::collect(&name, &data::read(file), &db);
            let listed = sets.into_iter().map(|set| ListedSubmit::new(set, &db));
            listed.into_iter().find(|submit| submit.has_place(fault))
        })
    });
}
