//! Reports read as kernel developers write: no text of any dump has a pattern that has gone wrong before.
//!
//! Goes through every dump of the test kit, and those of `UNWEDGE_DATA` where that is there.

use unwedge_base::Generation;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_postmortem::explain;
use unwedge_testkit::data;
use unwedge_testkit::hangs::{HangDump, HangRun, hangs};
use unwedge_testkit::{amdgpu, devcore, i915, i915_old, xe};
use unwedge_view::report::ReportOptions;

/// Phrases that are wrong wherever they stand.
const PHRASES: &[&str] = &[
    "a msm",
    "a rd ",
    "an xe",
    "a i915",
    "a amdgpu",
    "a IB",
    "a IOMMU",
    "a error",
    "a umr",
    "an RADV",
    "is no packet",
    "is no instruction",
    "is no command",
    "behind it",
    "behind them",
    "in front of",
    "does not get on",
    "stands at",
    "stand at",
    "the streamer",
    "guilty 1 times",
    "was held to be",
    "was given",
    "what stands there",
    "made anew",
    "is undone",
    "mistake",
    "made it so",
    "is around it",
    "nothing says",
    "made to be",
    "is told",
    "are told",
    "is said",
    "comes past",
    "came past",
    "..",
    ": : ",
    ", ,",
    "; ;",
    " ,",
    " ;",
    "()",
    "  .",
    "unknown unknown",
];

/// Words that end in s and are no plural.
const SINGULAR: &[&str] =
    &["address", "access", "bus", "process", "status", "class", "pass", "bits", "has", "is", "was", "does"];

/// What is wrong in a text: the pattern, and the line.
fn faults(text: &str) -> Vec<String> {
    let mut out = Vec::new();
    for line in text.lines() {
        // Names that a dump holds, and commands, are not ours.
        for phrase in PHRASES.iter().filter(|phrase| contains(line, phrase)) {
            out.push(format!("{phrase:?}: {line}"));
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        for pair in words.windows(2) {
            let noun = pair[1].trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
            let plural =
                noun.len() > 2 && noun.ends_with('s') && noun.chars().all(|c| c.is_ascii_lowercase());
            if pair[0] == "1" && plural && !SINGULAR.contains(&noun) {
                out.push(format!("1 {noun}: {line}"));
            }
            let singular =
                ["draw", "dispatch", "dword", "byte", "submit", "wave", "job", "buffer", "packet", "fence"];
            let number = pair[0].chars().all(|c| c.is_ascii_digit()) && pair[0] != "1";
            // `draw 3 draw` does not occur; `of 2 draw` would.
            if number && singular.contains(&noun) {
                out.push(format!("{} {noun}: {line}", pair[0]));
            }
        }
    }
    out
}

/// Whether a line has a phrase that no word goes on before.
fn contains(line: &str, phrase: &str) -> bool {
    let starts = |at: usize| !line[..at].ends_with(|c: char| c.is_ascii_alphanumeric());
    let word = phrase.starts_with(|c: char| c.is_ascii_alphanumeric());
    line.match_indices(phrase).any(|(at, _)| !word || starts(at))
}

/// The text of a report, in every way that it can be shown.
fn texts(parts: &[(String, Vec<u8>)], db: &Db) -> Vec<String> {
    let parts: Vec<DumpPart<'_>> = parts.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    let Ok(dump) = Dump::read(&parts) else { return Vec::new() };
    let report = explain(&dump, db);
    // Lines are not broken, so that phrases are whole.
    let options =
        [false, true].map(|verbose| ReportOptions { verbose, width: 4096, ..ReportOptions::default() });
    let render = |options: ReportOptions| {
        let mut out = Vec::new();
        unwedge_view::report::text(&report, None, options, &mut out).expect("memory takes it");
        String::from_utf8(out).expect("text")
    };
    options.into_iter().map(render).collect()
}

#[test]
fn no_report_has_a_pattern_that_has_gone_wrong_before() {
    let one = |(name, bytes): (String, Vec<u8>)| HangDump { name, files: vec![("dump".to_owned(), bytes)] };
    let mut dumps: Vec<HangDump> = Vec::new();
    for run in HangRun::BOTH {
        dumps.extend(hangs(run));
    }
    dumps.extend(
        devcore::variety()
            .into_iter()
            .chain(i915::variety())
            .chain(i915_old::variety())
            .chain(xe::variety())
            .map(one),
    );
    dumps.extend(amdgpu::texts().into_iter().map(one));
    for generation in Generation::ALL {
        dumps.push(one((generation.name().to_owned(), devcore::DevcoreBuilder::complete(generation).text())));
    }
    for gfx in amdgpu::Gfx::ALL {
        let files = amdgpu::RadvBuilder::complete(gfx).members();
        dumps.push(HangDump { name: format!("radv {gfx:?}"), files });
    }
    for path in data::files("adreno/devcoredump", ".devcore.gz") {
        dumps.push(one((path.display().to_string(), data::read(&path))));
    }
    let db = Db::builtin();
    let mut wrong: Vec<String> = Vec::new();
    let mut seen = 0;
    for HangDump { name, files } in dumps {
        for text in texts(&files, &db) {
            seen += 1;
            for fault in faults(&text) {
                let fault = format!("{name}: {fault}");
                let pattern = |text: &str| text.split_once(": ").map(|(_, rest)| rest.to_owned());
                if !wrong.iter().any(|known| pattern(known) == pattern(&fault)) {
                    wrong.push(fault);
                }
            }
        }
    }
    assert!(seen > 300, "dumps were read: {seen}");
    assert!(wrong.is_empty(), "{} patterns\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_patterns_find_what_they_are_for() {
    for wrong in [
        "1 draws left",
        "the CP stands at it",
        "a msm dump",
        "there are 1 dwords",
        "2 submit pending",
        "0xdeadd00d is no packet",
    ] {
        assert!(!faults(wrong).is_empty(), "{wrong}");
    }
    for right in
        ["1 draw left", "2 draws left", "process 1 is gone", "1 address", "a RADV report", "trace 12…14"]
    {
        assert_eq!(faults(right), [""; 0], "{right}");
    }
}
