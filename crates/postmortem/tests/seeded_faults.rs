//! Faults that a seed puts into captures, executed on the virtual Adreno: what `explain` says of the dump that each leaves.
//!
//! The seeds choose the capture, the fault and its place. Own captures are made for the test; recorded ones are those of
//! `UNWEDGE_DATA`. Results are recorded in `docs/seeded-faults.md`.
//! `SEEDED_FAULTS_FROM` takes other seeds, `SEEDED_FAULTS_TABLE` names a file for the table, `SEEDED_FAULTS_DUMPS` a folder for
//! the dumps of faults that are not found.

#[path = "seeded/fault.rs"]
mod fault;
#[path = "seeded/own.rs"]
mod own;
#[path = "seeded/packets.rs"]
mod packets;
#[path = "seeded/set.rs"]
mod set;

use fault::{FaultSeed, ListedSubmit, SeededFault};
use set::{SetCollector, SubmitSet, explained, explained_text};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use unwedge_hw::Db;
use unwedge_postmortem::{FindingKind, Report, Subject};
use unwedge_sim::adreno::RunEnd;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;

/// Faults that each test counts.
const FAULTS: usize = 100;
/// Steps that a submit may take before the kernel gives it up.
const STEPS: u64 = 1 << 20;
/// Places tried for a fault before another submit is taken.
const PLACES: usize = 8;
/// Submits made for a fault that most have no place for.
const SUBMITS: usize = 8;

/// The packets that a report names, the one that matters most first.
fn named(report: &Report) -> Vec<u64> {
    let subject = |at: usize| match report.findings.get(at).map(|finding| &finding.subject) {
        Some(Subject::Packet { iova, .. }) => *iova,
        _ => None,
    };
    let origin = |at: usize| report.findings.get(at)?.args.record("origin")?.number("iova");
    let cause = report.cause.and_then(|cause| subject(cause.finding).or_else(|| origin(cause.finding)));
    let stop = report.hang.as_ref().and_then(|hang| hang.iova);
    let others = (0..report.findings.len()).filter_map(subject);
    let mut out = Vec::new();
    for iova in cause.into_iter().chain(stop).chain(others) {
        if !out.contains(&iova) {
            out.push(iova);
        }
    }
    out
}

/// What became of a fault.
struct Outcome {
    seed: u64,
    fault: FaultSeed,
    submit: String,
    packet: u64,
    /// How many packets the report names before the right one; `None` if it does not name it.
    rank: Option<usize>,
    /// The identifier of the cause.
    cause: Option<&'static str>,
    fits: bool,
    signature: String,
}

impl Outcome {
    fn passes(&self) -> bool {
        self.rank == Some(0) && self.fits
    }

    fn row(&self) -> String {
        let Outcome { seed, fault, submit, packet, rank, cause, fits, .. } = self;
        let rank = rank.map_or_else(|| "not named".to_owned(), |rank| format!("{}", rank + 1));
        let fits = if *fits { "" } else { ", does not fit" };
        format!(
            "| {seed} | {fault:?} | {submit} | {packet:#x} | {rank} | {}{fits} |",
            cause.unwrap_or("none")
        )
    }
}

fn judge(seed: u64, fault: FaultSeed, seeded: &SeededFault, db: &Db) -> Option<Outcome> {
    let (end, dump) = seeded.set.run(db, STEPS);
    // A place where nothing goes wrong is no fault.
    let dump = dump.filter(|_| end != RunEnd::Done)?;
    let report = explained(&dump, db);
    // No fault but this one is in a shader.
    let code = report.findings.iter().find(|finding| finding.kind == FindingKind::CodeFault);
    assert!(fault == FaultSeed::EndlessShader || code.is_none(), "{seed}: {code:#?}");
    let cause = report.cause.map(|cause| report.findings[cause.finding].rule);
    let rank = named(&report).into_iter().position(|iova| iova == seeded.packet);
    let outcome = Outcome {
        seed,
        fault,
        submit: seeded.set.name.clone(),
        packet: seeded.packet,
        rank,
        cause: cause.map(|rule| rule.row().id),
        fits: cause.is_some_and(|rule| fault.fits(rule)),
        signature: report.signature(),
    };
    if let Some(folder) = std::env::var_os("SEEDED_FAULTS_DUMPS").filter(|_| !outcome.passes()) {
        let mut text = Vec::new();
        dump.core.write(&mut text);
        let name = format!("{seed}-{fault:?}.devcore");
        std::fs::write(PathBuf::from(folder).join(name), text).expect("the dump");
    }
    Some(outcome)
}

/// Puts so many faults into submits that a function gives for a kind, kind after kind.
fn run(db: &Db, submit: impl Fn(FaultSeed, &mut Rng) -> Option<ListedSubmit> + Sync) -> Vec<Outcome> {
    let from = std::env::var("SEEDED_FAULTS_FROM").ok().and_then(|from| from.parse().ok()).unwrap_or(0);
    let seeds: Vec<u64> = (from..from + 40 * FAULTS as u64).collect();
    let mut outcomes = Vec::new();
    for seeds in seeds.chunks(FAULTS / 4) {
        outcomes.extend(parallel::map(seeds, |&seed| one(seed, db, &submit)).into_iter().flatten());
        if outcomes.len() >= FAULTS {
            break;
        }
    }
    outcomes.truncate(FAULTS);
    outcomes
}

/// The fault of a seed, in the first place where something goes wrong for it.
fn one(seed: u64, db: &Db, submit: impl Fn(FaultSeed, &mut Rng) -> Option<ListedSubmit>) -> Option<Outcome> {
    let mut rng = Rng::new(seed);
    let fault = FaultSeed::ALL[seed as usize % FaultSeed::ALL.len()];
    let submit = submit(fault, &mut rng)?;
    (0..PLACES).find_map(|_| judge(seed, fault, &submit.seed(fault, &mut rng, db)?, db))
}

fn check(outcomes: &[Outcome]) {
    let mut table = String::new();
    for outcome in outcomes {
        let _ = writeln!(table, "{}", outcome.row());
    }
    let mut kinds: BTreeMap<FaultSeed, [usize; 2]> = BTreeMap::new();
    for outcome in outcomes {
        let [passed, all] = kinds.entry(outcome.fault).or_default();
        *passed += usize::from(outcome.passes());
        *all += 1;
    }
    let failed: Vec<String> = outcomes.iter().filter(|o| !o.passes()).map(Outcome::row).collect();
    eprintln!("{kinds:#?}\n{}", failed.join("\n"));
    if let Some(to) = std::env::var_os("SEEDED_FAULTS_TABLE") {
        std::fs::write(to, table).expect("the table");
    }
    assert_eq!(outcomes.len(), FAULTS, "as many faults as are counted");
    let first = outcomes.iter().filter(|o| o.rank == Some(0)).count();
    let among_three = outcomes.iter().filter(|o| o.rank.is_some_and(|rank| rank < 3)).count();
    let passed = outcomes.iter().filter(|o| o.passes()).count();
    eprintln!("{passed} pass; {first} named first, {among_three} among three");
    assert!(first >= 95 && passed >= 95, "{first} named first, {passed} with a cause that fits");
    assert_eq!(among_three, FAULTS, "named among the first three");
}

#[test]
fn faults_in_own_submits_are_found_and_have_signatures() {
    let db = Db::builtin();
    let seeds: Vec<u64> = (0..40).collect();
    parallel::map(&seeds, |&seed| {
        let set = own::submit(seed, &db);
        assert_eq!(set.run(&db, STEPS).0, RunEnd::Done, "{}: without a fault it ends", set.name);
    });
    let outcomes = run(&db, |fault, rng| {
        let submits = (0..SUBMITS).map(|_| ListedSubmit::new(own::submit(rng.next_u64(), &db), &db));
        submits.into_iter().find(|submit| submit.has_place(fault))
    });
    check(&outcomes);
    check_signatures(&outcomes, &db);
}

/// The hang of a seed, in a dump with other addresses, another process and another time.
fn elsewhere(seed: u64, fault: FaultSeed, db: &Db) -> Option<Report> {
    const MOVED: u64 = 0x3_4560_0000;
    let mut rng = Rng::new(seed);
    let mut submits = (0..SUBMITS).map(|_| ListedSubmit::new(own::submit_at(rng.next_u64(), MOVED, db), db));
    let submit = submits.find(|submit| submit.has_place(fault))?;
    for _ in 0..PLACES {
        let Some(seeded) = submit.seed(fault, &mut rng, db) else { continue };
        let (end, dump) = seeded.set.run_as("another", db, STEPS);
        let Some(dump) = dump.filter(|_| end != RunEnd::Done) else { continue };
        let mut text = Vec::new();
        dump.core.write(&mut text);
        let text = String::from_utf8(text).expect("a dump is text");
        let later = text.replacen("time: 0.000000000", "time: 1700000123.456789012", 1);
        assert_ne!(later, text, "the dump has a time");
        return Some(explained_text(later.as_bytes(), db));
    }
    None
}

/// The same hang has the same signature whatever its addresses, process and time; most different hangs have different ones.
fn check_signatures(outcomes: &[Outcome], db: &Db) {
    parallel::map(outcomes, |outcome| {
        let other = elsewhere(outcome.seed, outcome.fault, db).expect("the same seed makes the same fault");
        assert_eq!(outcome.signature, other.signature(), "{}", outcome.row());
    });
    let pairs = || outcomes.iter().enumerate().flat_map(|(i, a)| outcomes[..i].iter().map(move |b| (a, b)));
    let same: Vec<_> = pairs().filter(|(a, b)| a.signature == b.signature).collect();
    let all = pairs().count();
    let mixed: Vec<String> = same
        .iter()
        .filter(|(a, b)| a.fault != b.fault)
        .map(|(a, b)| format!("{:?} and {:?}: {}", a.fault, b.fault, a.signature))
        .collect();
    eprintln!("{} of {all} pairs have one signature; of two kinds: {mixed:#?}", same.len());
    // Two faults of one kind may be one hang; of two kinds they seldom are.
    assert!(same.len() * 20 <= all && mixed.len() * 50 <= all, "{} of {all} pairs: {mixed:#?}", same.len());
}

fn data() -> PathBuf {
    unwedge_testkit::data::root().join("adreno")
}

/// Recorded captures of the folders whose submits the machine executes.
fn recorded() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for folder in ["compute", "renders", "graphics/captures", "captures"] {
        let Ok(entries) = std::fs::read_dir(data().join(folder)) else { continue };
        let captures = entries.flatten().map(|entry| entry.path());
        files.extend(captures.filter(|path| path.to_string_lossy().ends_with(".rd.gz")));
    }
    files.sort();
    files
}

/// Sets of recorded captures, collected when they are asked for.
struct RecordedSets<'d> {
    db: &'d Db,
    files: Vec<PathBuf>,
    /// Sets that the machine executes to their end.
    usable: Mutex<BTreeMap<PathBuf, Arc<Vec<SubmitSet>>>>,
    /// The files with a place for a kind of fault that most have no place for.
    with_place: BTreeMap<FaultSeed, Vec<PathBuf>>,
}

impl RecordedSets<'_> {
    fn collect(&self, file: &Path) -> Vec<SubmitSet> {
        let bytes = unwedge_testkit::data::read(file);
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut sets = SetCollector::collect(&name, &bytes, self.db);
        sets.retain(|set| {
            let gpu = self.db.identify_name(&set.gpu);
            gpu.is_some_and(|gpu| gpu.generation >= unwedge_base::Generation::A6xx)
        });
        sets
    }

    /// The files of each kind of fault that most files have no place for.
    fn survey(&self) -> BTreeMap<FaultSeed, Vec<PathBuf>> {
        const RARE: [FaultSeed; 4] = [
            FaultSeed::EndlessShader,
            FaultSeed::NullDescriptor,
            FaultSeed::MissingFence,
            FaultSeed::EndlessBvWait,
        ];
        let places = parallel::map(&self.files, |file| {
            let sets = self.collect(file).into_iter();
            let listed: Vec<ListedSubmit> = sets.map(|set| ListedSubmit::new(set, self.db)).collect();
            RARE.map(|fault| listed.iter().any(|submit| submit.has_place(fault)))
        });
        let files = |at: usize| {
            let own = self.files.iter().zip(&places).filter(move |(_, places)| places[at]);
            own.map(|(file, _)| file.clone()).collect()
        };
        RARE.iter().enumerate().map(|(at, fault)| (*fault, files(at))).collect()
    }

    /// The sets of a file that the machine executes to their end.
    fn usable(&self, file: &Path) -> Arc<Vec<SubmitSet>> {
        let known = self.usable.lock().expect("no panic before").get(file).cloned();
        known.unwrap_or_else(|| {
            let mut sets = self.collect(file);
            sets.retain(|set| set.run(self.db, STEPS).0 == RunEnd::Done);
            let mut usable = self.usable.lock().expect("no panic before");
            Arc::clone(usable.entry(file.to_owned()).or_insert_with(|| Arc::new(sets)))
        })
    }

    fn pick(&self, fault: FaultSeed, rng: &mut Rng) -> Option<ListedSubmit> {
        let file = rng.pick(self.with_place.get(&fault).unwrap_or(&self.files))?;
        let sets = self.usable(file);
        let listed = sets.iter().map(|set| ListedSubmit::new(set.clone(), self.db));
        let mut fitting: Vec<ListedSubmit> = listed.filter(|submit| submit.has_place(fault)).collect();
        let at = rng.below(fitting.len().max(1));
        (at < fitting.len()).then(|| fitting.swap_remove(at))
    }
}

#[test]
fn faults_in_recorded_submits_are_found() {
    let db = Db::builtin();
    let files = recorded();
    if files.is_empty() {
        eprintln!("skipped: no recorded captures in {}", data().display());
        return;
    }
    let mut sets = RecordedSets { db: &db, files, usable: Mutex::default(), with_place: BTreeMap::new() };
    sets.with_place = sets.survey();
    check(&run(&db, |fault, rng| sets.pick(fault, rng)));
}
