//! The instructions of `data/intel/eu` in the folder of test data.

use std::collections::BTreeMap;
use unwedge_isa::eu::{Instruction, Platform, asm, compaction, disasm, program};
use unwedge_testkit::data;

/// A file of the test data, `None` when the data is not there.
fn data(name: &str) -> Option<String> {
    data::text(&format!("intel/eu/{name}"))
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
}

/// The text of an encoding, alone.
fn text(platform: Platform, encoding: &[u8]) -> String {
    let mut out = String::new();
    if let Ok(full) = <[u8; 16]>::try_from(encoding) {
        disasm::push_alone(&mut out, &Instruction::decode(platform, full), false);
    } else {
        let compact = u64::from_le_bytes(encoding.try_into().unwrap());
        match compaction::expand(platform, compact) {
            Some(inst) => disasm::push_alone(&mut out, &inst, true),
            None => out.push_str("not expanded"),
        }
    }
    out
}

/// Counts by platform, and the first failures.
#[derive(Default)]
struct Tally {
    rows: BTreeMap<String, (usize, usize)>,
    failures: Vec<String>,
}

impl Tally {
    fn add(&mut self, platform: &str, good: bool, failure: impl FnOnce() -> String) {
        let row = self.rows.entry(platform.to_owned()).or_default();
        row.1 += 1;
        if good {
            row.0 += 1;
        } else {
            self.failures.push(failure());
        }
    }

    fn finish(self, what: &str) {
        println!("{what}: {:?}", self.rows);
        assert!(self.failures.is_empty(), "{what}: {} fail\n{}", self.failures.len(), sample(&self.failures));
    }
}

/// Forty of many, from all over.
fn sample(failures: &[String]) -> String {
    failures.iter().step_by(failures.len() / 40 + 1).map(|f| format!("{f}\n")).collect()
}

#[test]
fn texts_of_single_instructions() {
    let Some(source) = data("vectors.csv.gz") else { return };
    let mut tally = Tally::default();
    for line in source.lines().skip(1) {
        let row = data::cells(line);
        let platform = Platform::by_name(&row[1]).unwrap();
        let got = text(platform, &bytes(&row[2])).split_whitespace().collect::<Vec<_>>().join(" ");
        tally.add(&row[1], got == row[3], || {
            format!("{} {}\n  want {}\n  got  {got}", row[1], row[2], row[3])
        });
    }
    tally.finish("texts");
}

#[test]
fn exact_layout() {
    let Some(source) = data("layout.csv.gz") else { return };
    let mut left_over = 0;
    let mut tally = Tally::default();
    for line in source.lines().skip(1) {
        let row = data::cells(line);
        let platform = Platform::by_name(&row[1]).unwrap();
        let mut got = text(platform, &bytes(&row[2])).replace('\n', "\\n") + "\\n";
        // Mesa's column count of some rows was left over from the row before, so that nothing is aligned in their first line.
        if got != row[3] && !row[3].split("\\n").next().unwrap().contains("  ") {
            if let Some((first, rest)) = got.split_once("\\n") {
                got = first.split_whitespace().collect::<Vec<_>>().join(" ") + "\\n" + rest;
            }
            left_over += 1;
        }
        tally.add(&row[1], got == row[3], || {
            format!("{} {}\n  want {}\n  got  {got}", row[1], row[2], row[3])
        });
    }
    println!("rows without columns: {left_over}");
    tally.finish("layout");
}

#[test]
fn compacted_forms_expand_and_compact_again() {
    let Some(source) = data("vectors.csv.gz") else { return };
    let mut tally = Tally::default();
    for line in source.lines().skip(1) {
        let row = data::cells(line);
        let Ok(encoding) = <[u8; 8]>::try_from(bytes(&row[2])) else { continue };
        let platform = Platform::by_name(&row[1]).unwrap();
        let compact = u64::from_le_bytes(encoding);
        // Entries that stand in a table twice are compacted to the first of them.
        let inst = compaction::expand(platform, compact);
        let again = inst.and_then(|inst| compaction::compact(&inst));
        let good = again.is_some_and(|again| {
            if row[4] == "yes" { again == compact } else { compaction::expand(platform, again) == inst }
        });
        tally.add(&row[1], good, || format!("{} {} {again:x?} {}", row[1], row[2], row[3]));
    }
    tally.finish("compaction");
}

#[test]
fn bytes_of_texts() {
    let Some(source) = data("vectors.csv.gz") else { return };
    let mut tally = Tally::default();
    for line in source.lines().skip(1) {
        let row = data::cells(line);
        if row[4] != "yes" {
            continue;
        }
        let platform = Platform::by_name(&row[1]).unwrap();
        let mut out = Vec::new();
        let result = asm::assemble(platform, &row[3]).and_then(|a| a.push_bytes(&mut out));
        let good = result.is_ok() && out == bytes(&row[2]);
        tally.add(&row[1], good, || {
            let got: String = out.iter().map(|b| format!("{b:02x}")).collect();
            format!("{} {}\n  {}\n  {} {got} {result:?}", row[1], row[3], "want", row[2])
        });
    }
    tally.finish("bytes");
}

/// `\n`, `\t` and `\\` of a CSV field.
fn unescape(text: &str) -> String {
    text.replace("\\\\", "\u{1}").replace("\\n", "\n").replace("\\t", "\t").replace('\u{1}', "\\")
}

#[test]
fn programs_both_ways() {
    let Some(source) = data("programs.csv.gz") else { return };
    let mut tally = Tally::default();
    for line in source.lines().skip(1) {
        let row = data::cells(line);
        let (platform, bytes, text) =
            (Platform::by_name(&row[1]).unwrap(), bytes(&row[3]), unescape(&row[4]));
        if row[5] == "yes" {
            let got = program::assemble(platform, &text);
            tally.add(&format!("{} bytes", row[1]), got.as_ref() == Ok(&bytes), || {
                let differing = got.as_ref().ok().and_then(|got| {
                    let at = got.iter().zip(&bytes).position(|(a, b)| a != b)? / 8 * 8;
                    let window = |bytes: &[u8]| {
                        bytes.iter().skip(at).take(16).map(|b| format!("{b:02x}")).collect::<String>()
                    };
                    Some(format!("at {at:#x} {} {}", window(&bytes), window(got)))
                });
                format!("{} {} {differing:?} {:?}", row[1], row[2], got.err())
            });
        }
        if !row[2].starts_with("asm-test") {
            let got = program::disassemble(platform, &bytes);
            tally.add(&format!("{} text", row[1]), got == text, || {
                let (want, got) = text.lines().zip(got.lines()).find(|(a, b)| a != b).unwrap_or(("", ""));
                format!("{} {}\n  want {want}\n  got  {got}", row[1], row[2])
            });
        }
        let listing = program::listing(platform, &bytes);
        let again = program::assemble(platform, &listing);
        tally.add(&format!("{} listing", row[1]), again.as_ref() == Ok(&bytes), || {
            format!("{} {} {:?}", row[1], row[2], again.err())
        });
    }
    tally.finish("programs");
}
