//! Finished shaders of a compiler that is right: the checker is silent, and sees what is taken out of them.

mod data;

use data::{Binary, Counts, binaries, bytes, shown};
use unwedge_check::amdgcn::{Certainty, CheckOptions, CheckReport, ProgramEntry, check};
use unwedge_testkit::protections::{LINE, is_padding, protections, weaker, without};

fn report(words: &[u32], binary: &Binary) -> CheckReport {
    let entries = vec![ProgramEntry { at: 0, preset: Some(binary.preset), called: false }];
    check(&bytes(words), &binary.gpu, &CheckOptions { entries, ..CheckOptions::default() })
}

#[test]
fn silent() {
    let mut told = Counts::default();
    let (mut faults, mut examples) = (0, 0);
    let all = binaries();
    for binary in &all {
        let report = report(&binary.words, binary);
        assert!(report.complete, "{}", binary.name);
        for finding in &report.findings {
            let level = format!("{:?}", finding.level);
            told.add(format!("{level} {} {:?}", finding.rule.info().name, binary.gpu.generation()));
            if finding.level == Certainty::Error {
                faults += 1;
                examples += 1;
                if examples <= shown() {
                    println!("{}: {finding:?}", binary.name);
                }
            }
        }
    }
    println!("{} shaders, {faults} faults", all.len());
    told.show("told");
    assert_eq!(faults, 0);
}

#[test]
fn taken_out() {
    let mut counts = Counts::default();
    let (mut needed, mut seen, mut there, mut examples) = (0, 0, 0, 0);
    for binary in binaries() {
        let whole = report(&binary.words, &binary);
        let spare: Vec<u32> =
            whole.findings.iter().filter(|f| f.level == Certainty::Speed).map(|f| f.at).collect();
        for (opcode, at) in protections(&binary.words, &binary.gpu) {
            let name = opcode.name();
            let generation = binary.gpu.generation();
            if name == "s_nop" && is_padding(&binary.words, &binary.gpu, at, LINE) {
                counts.add(format!("{name} {generation:?}: before a loop that is aligned"));
                continue;
            }
            if spare.contains(&(4 * at as u32)) {
                counts.add(format!("{name} {generation:?}: told to be spare"));
                continue;
            }
            needed += 1;
            let report = report(&without(&binary.words, &binary.gpu, at), &binary);
            let place = 4 * at as u32;
            if report.findings.iter().any(|f| f.level == Certainty::Error) {
                seen += 1;
                let here = report
                    .faults()
                    .any(|f| f.at == place || f.path.iter().any(|p| *p <= place) && f.at >= place);
                there += usize::from(here);
                counts.add(format!("{name} {generation:?}: seen{}", if here { "" } else { " elsewhere" }));
            } else {
                counts.add(format!("{name} {generation:?}: not seen"));
                examples += 1;
                if examples <= shown() {
                    println!("{}: nothing without {name} at {place:#x}", binary.name);
                }
            }
        }
    }
    counts.show("taken out");
    println!("{needed} taken out, {seen} seen, {there} at their place");
    assert!(there * 1000 >= needed * 998);
}

#[test]
fn weakened() {
    let mut counts = Counts::default();
    let (mut needed, mut there, mut examples) = (0, 0, 0);
    for mut binary in binaries() {
        let whole = report(&binary.words, &binary);
        for (opcode, at) in protections(&binary.words, &binary.gpu) {
            let name = opcode.name();
            for weaker in weaker(&binary.words, &binary.gpu, opcode, at) {
                let place = 4 * at as u32;
                let generation = binary.gpu.generation();
                let mut add = |how: &str| counts.add(format!("{name} {} {generation:?}: {how}", weaker.what));
                let spare =
                    |f: &&unwedge_check::amdgcn::CheckFinding| f.level == Certainty::Speed && f.at == place;
                if whole.findings.iter().any(|f| spare(&f)) {
                    add("told to be spare");
                    continue;
                }
                needed += 1;
                let was = std::mem::replace(&mut binary.words[at], weaker.word);
                let report = report(&binary.words, &binary);
                binary.words[at] = was;
                let here = report.faults().filter(|f| f.level == Certainty::Error).any(|f| {
                    let about = f.need.is_none_or(|need| weaker.counter.is_none_or(|c| c == need.counter));
                    about && f.at >= place && (f.at == place || f.path.iter().any(|p| *p <= place))
                });
                there += usize::from(here);
                add(if here { "seen" } else { "not seen" });
                if !here {
                    examples += 1;
                    if examples <= shown() {
                        println!("{}: nothing with {name} {} at {place:#x}", binary.name, weaker.what);
                    }
                }
            }
        }
    }
    counts.show("weakened");
    println!("{needed} weakened, {there} seen at their place");
    assert!(there * 1000 >= needed * 998);
}
