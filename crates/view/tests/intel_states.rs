//! What `decode` shows of the states of Intel dumps, against what Mesa's `aubinator_error_decode` prints of the same dump:
//! every `STEM.aubinator.txt` beside a `STEM.i915`, compared field by field and not by layout.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use unwedge_capture::Dump;
use unwedge_capture::i915::ErrorState;
use unwedge_testkit::data;
use unwedge_testkit::i915;
use unwedge_testkit::intel::TestDevice;
use unwedge_testkit::intel_states::{StateAddresses, TestStage, WorkStates};
use unwedge_view::Style;
use unwedge_view::intel::IntelDump;
use unwedge_view::intel::text::{self, ListingOptions};

/// Something that a listing says: at which command or state, its name, and its value as words.
type Fact = (u64, String, String);

/// A value in one form: numbers of any base as decimal, words separated by one space.
fn normal(value: &str) -> String {
    let word = |word: &str| {
        let number = word.strip_prefix("0x").and_then(|digits| u64::from_str_radix(digits, 16).ok());
        number.map_or_else(|| word.to_owned(), |number| number.to_string())
    };
    value.split_whitespace().map(word).collect::<Vec<_>>().join(" ")
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// What Mesa prints: fields of commands and states, by the address of the first dword, and the lines of kernels.
fn of_mesa(text: &str) -> (Vec<Fact>, Vec<String>) {
    let (mut facts, mut code) = (Vec::new(), Vec::new());
    let (mut at, mut in_code) = (0, false);
    for line in text.lines() {
        let dword = line.split_once(':').and_then(|(start, _)| hex(start.trim_end_matches(" (ACTHD)")));
        if let Some(address) = dword {
            in_code = false;
            if line.ends_with(": Dword 0") {
                at = address;
            }
        } else if let Some(name) = line.strip_prefix("Referenced ") {
            in_code = true;
            code.push(name.trim_end_matches(':').to_owned());
        } else if in_code {
            in_code = !line.trim().is_empty();
            code.extend(in_code.then(|| words(line)));
        } else if let Some((name, value)) = line.trim().split_once(": ") {
            facts.push((at, name.to_owned(), normal(value)));
        }
    }
    (facts, code)
}

fn words(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What the listing shows: its fields in the same way, and all its lines.
fn of_listing(text: &str) -> (BTreeSet<Fact>, Vec<String>) {
    let mut facts = BTreeSet::new();
    let mut at = 0;
    for line in text.lines().map(str::trim) {
        let dword = line.split_once(": ").and_then(|(start, rest)| Some((hex(start)?, rest)));
        let state = line.split_once(" at 0x").filter(|_| !line.ends_with("shown above"));
        let state = state.and_then(|(_, rest)| hex(&format!("0x{}", rest.split(' ').next()?)));
        if let Some((address, rest)) = dword {
            // The header's line has the command's name.
            if rest.contains(' ') && rest.split(' ').nth(1).is_some_and(|word| !is_dword(word)) {
                at = address;
            }
        } else if let Some(address) = state.filter(|_| line.contains("_STATE") || line.contains("_DATA")) {
            at = address;
        } else if let Some((name, value)) = line.split_once(": ") {
            facts.insert((at, name.to_owned(), normal(value)));
        }
    }
    (facts, text.lines().map(words).collect())
}

fn is_dword(word: &str) -> bool {
    word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn pairs() -> Vec<(PathBuf, PathBuf)> {
    fn visit(folder: &Path, found: &mut Vec<(PathBuf, PathBuf)>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
            } else if let Some(stem) = path.to_str().and_then(|name| name.strip_suffix(".aubinator.txt")) {
                let dump = PathBuf::from(format!("{stem}.i915"));
                if dump.is_file() {
                    found.push((dump, path));
                }
            }
        }
    }
    let mut found = Vec::new();
    visit(&data::root().join("intel"), &mut found);
    found.sort();
    found
}

fn listing(bytes: &[u8]) -> String {
    let state = ErrorState::read(bytes).expect("an error state");
    let dump = Dump::I915(Box::new(state));
    let mut out = Vec::new();
    let options = ListingOptions { max_size: 1 << 30, style: Style::default(), all_fields: true };
    let dump = IntelDump::of(&dump).expect("a dump of i915");
    text::decode(dump, bytes.len() as u64, &[], options, &mut out);
    String::from_utf8(out).expect("text")
}

#[test]
fn what_mesa_shows_is_shown() {
    let pairs = pairs();
    if pairs.is_empty() {
        println!("skipped: no dumps with Mesa's listing under UNWEDGE_DATA");
        return;
    }
    for (dump, mesa) in pairs {
        let listed = listing(&std::fs::read(&dump).expect("the dump"));
        let (facts, code) = of_mesa(&std::fs::read_to_string(&mesa).expect("Mesa's listing"));
        let (shown, lines) = of_listing(&listed);
        assert!(!facts.is_empty() && !code.is_empty(), "{}", mesa.display());
        let mut missing = Vec::new();
        for fact in facts {
            let (at, name, value) = &fact;
            let found = if name.starts_with("pointer ") {
                // Mesa has no address for a table; here surfaces stand between its entries.
                shown.iter().any(|(_, n, v)| n == name && v == value)
            } else if name.starts_with("descriptor ") {
                // Mesa prints the offset of a descriptor, and here is its address.
                let of =
                    |line: &String| line.split(' ').nth(2).is_some_and(|at| at.ends_with(value.as_str()));
                lines.iter().any(|line| line.starts_with("INTERFACE_DESCRIPTOR_DATA at ") && of(line))
            } else {
                shown.contains(&fact)
            };
            if !found {
                missing.push(format!("{at:#x} {name}: {value}"));
            }
        }
        for line in code {
            if !lines.iter().any(|shown| shown.starts_with(&line)) {
                missing.push(line);
            }
        }
        assert!(missing.is_empty(), "{}: not shown:\n{}\n{listed}", dump.display(), missing.join("\n"));
        // Mesa reads states and kernels that the dump holds, and no more; the memory of surfaces it does not look at.
        let absent = listed.lines().filter(|line| line.contains("not in the dump"));
        let absent: Vec<&str> = absent.filter(|line| !line.contains("surface memory at")).collect();
        assert!(absent.is_empty(), "{}", absent.join("\n"));
    }
}

/// Samplers and constants of every stage of every platform, in dumps that the kit makes.
#[test]
fn samplers_and_constants_are_shown() {
    let (mut samplers, mut constants) = (0, 0);
    for device in TestDevice::ALL {
        for stage in TestStage::ALL.into_iter().filter(|stage| stage.is_of(device)) {
            let work = WorkStates::new(device, stage, 0x20_0000_0000, 0x1000);
            let text = i915::ErrorStateBuilder::new(device).engine(work.engine(0x10_0010_0000)).text();
            let listed = listing(&text);
            let name = format!("{} {stage:?}", device.name);
            // Mesh pipelines have no commands for either.
            if matches!(stage, TestStage::Task | TestStage::Mesh) {
                continue;
            }
            let at = |offset: u64| format!("at 0x{:012x}", work.at.dynamic + offset);
            let of =
                |what: &str, at: &str| listed.lines().any(|line| line.contains(what) && line.contains(at));
            assert!(of("SAMPLER_STATE", &at(StateAddresses::SAMPLER)), "{name}:\n{listed}");
            samplers += 1;
            let known = ["constant", "CURBE", "indirect data"];
            let shown = known.iter().any(|what| of(what, &at(StateAddresses::CONSTANTS)));
            assert!(shown, "{name}: no constants\n{listed}");
            constants += 1;
            assert!(
                listed.contains("Surface Format: RAW (511)") || listed.contains("RAW"),
                "{name}:\n{listed}"
            );
        }
    }
    assert!(samplers > 30 && constants > 30, "{samplers} {constants}");
}
