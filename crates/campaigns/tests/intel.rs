//! Error states of i915 and dumps of xe, cut and broken: what they hold is said, and costs no more than what they are.

use std::time::{Duration, Instant};
use unwedge::files::Input;
use unwedge::hw::Db;
use unwedge_campaigns::{View, show};
use unwedge_cli::dump::DumpFiles;
use unwedge_testkit::count::ByteCounter;
use unwedge_testkit::intel::{cut_in_lines, dump_of_every_platform, repetitive};
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::{i915, intel_old_states, xe};

/// Above what a slow machine under load takes without optimization, below what a hang takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// What `decode --json` and `explain --json` say of a dump.
fn told(dump: &[u8], db: &Db) -> [Vec<u8>; 2] {
    let input = Input::read(dump, "dump".to_owned(), dump.len() as u64, 1 << 30).expect("bytes in memory");
    let input = DumpFiles::of(input);
    [View::Intel { json: true }, View::Explain { json: true }].map(|view| {
        let mut out = Vec::new();
        show(view, &input, db, &mut out).expect("a dump");
        out
    })
}

#[test]
fn every_platform_s_dump_cut_in_any_line_says_what_is_there_and_that_it_is_cut() {
    /// Every so many lines of a dump, others of the next one: all of them take minutes.
    const STEP: usize = 101;
    let db = Db::builtin();
    for (i, (platform, dump)) in dump_of_every_platform().enumerate() {
        let cuts = cut_in_lines(&dump);
        for (line, cut) in cuts.into_iter().enumerate().skip(17 * i % STEP).step_by(STEP) {
            let what = format!("{platform}, cut {line}");
            let [decoded, explained] = told(cut, &db);
            let last = decoded.trim_ascii_end().split(|&c| c == b'\n').next_back().unwrap();
            let end: serde_json::Value = serde_json::from_slice(last).unwrap();
            assert_eq!((&end["type"], &end["lost"]), (&"end".into(), &true.into()), "{what}");
            let report: serde_json::Value = serde_json::from_slice(&explained).unwrap();
            let losses = report["diagnostics"].as_array().unwrap();
            assert!(losses.iter().any(|d| d["severity"] == "loss"), "{what}: {report}");
            assert!(report["gpu"].as_str().unwrap().starts_with("Intel"), "{what}");
        }
    }
}

/// Shows an input; what it prints and how long it takes are bounded.
fn bounded(text: &[u8], what: &str, db: &Db) {
    let input = Input::read(text, "dump".to_owned(), text.len() as u64, 1 << 30).expect("bytes in memory");
    let input = DumpFiles::of(input);
    for view in View::OF_INTEL {
        let started = Instant::now();
        let counter = ByteCounter::default();
        // An input that cannot be used is said to be so.
        let _ = show(view, &input, db, &mut counter.clone());
        assert!(
            counter.bytes() <= view.limit(text.len() as u64),
            "{what}, {view:?}: {} bytes",
            counter.bytes()
        );
        assert!(started.elapsed() < PATIENCE, "{what}, {view:?} took {:?}", started.elapsed());
    }
}

#[test]
fn broken_dumps() {
    let db = Db::builtin();
    for (i, (name, text)) in i915::variety().into_iter().chain(xe::variety()).enumerate() {
        bounded(&mutate(&text, i as u64), &name, &db);
    }
}

/// The dumps of gen4 to gen7.5, each with its states: pointers, tables and lengths that say anything.
#[test]
fn broken_states_of_old_generations() {
    /// How often each dump is broken in another way.
    const TIMES: u64 = 12;
    let db = Db::builtin();
    for (i, (name, text)) in intel_old_states::variety().into_iter().enumerate() {
        for time in 0..TIMES {
            bounded(&mutate(&text, i as u64 * TIMES + time), &format!("{name} {time}"), &db);
        }
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let db = Db::builtin();
    for (i, text) in repetitive(30_000).iter().enumerate() {
        bounded(text, &format!("repetition {i}"), &db);
    }
}
