//! Every rule on ir3 code with the programs of its page: bad ones break it, good ones do not.

use unwedge_check::ir3::facts::RULES;
use unwedge_check::ir3::{CheckOptions, CheckReport, Level, Register, Rule, check};
use unwedge_isa::ir3::asm::Assembler;

const PAGE: &str = include_str!("../../../docs/ir3-check.md");

/// A program of the page.
struct Case {
    rule: Rule,
    bad: bool,
    gpu_id: u32,
    options: CheckOptions,
    source: String,
}

fn assemble(source: &str, gpu_id: u32) -> Vec<u64> {
    let mut assembler = Assembler::new(gpu_id);
    let mut word = |line: &str| match u64::from_str_radix(line, 16) {
        Ok(word) if line.len() == 16 => word,
        _ => assembler.instruction(line).unwrap_or_else(|why| panic!("a{gpu_id} {line}: {why}")),
    };
    source.lines().map(&mut word).collect()
}

/// The programs under the headings of rules.
fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let rules = PAGE.split("\n### `").skip(1);
    for section in rules {
        let (name, body) = section.split_once('`').expect("a name");
        let rule = Rule::named(name).unwrap_or_else(|| panic!("{name} is not a rule"));
        for block in body.split("```ir3 ").skip(1) {
            let (info, rest) = block.split_once('\n').expect("a line");
            let source = rest.split_once("\n```").expect("an end").0.to_owned();
            let mut words = info.split(' ');
            let bad = words.next() == Some("bad");
            let mut options = CheckOptions::default();
            let mut gpus = Vec::new();
            for word in words {
                match word.split_once('=') {
                    Some(("constlen", count)) => options.constants = count.parse().ok(),
                    Some(("inputs", "r0.x")) => options.inputs = Some(vec![Register::Full(0)]),
                    Some(other) => panic!("{other:?}"),
                    None => gpus.push(word.parse().expect("a GPU")),
                }
            }
            let case = |gpu_id| Case { rule, bad, gpu_id, options: options.clone(), source: source.clone() };
            cases.extend(gpus.into_iter().map(case));
        }
    }
    cases
}

fn report(case: &Case) -> CheckReport {
    check(&assemble(&case.source, case.gpu_id), case.gpu_id, &case.options)
}

#[test]
fn bad_programs_break_their_rule_and_good_ones_none() {
    for case in cases() {
        let report = report(&case);
        let about =
            format!("a{} {}: {}\n{:?}", case.gpu_id, case.rule.info().name, case.source, report.findings);
        assert!(report.complete, "{about}");
        let broken = report.findings.iter().any(|f| f.rule == case.rule);
        assert_eq!(broken, case.bad, "{about}");
        if case.bad {
            let others = report.of_level(Level::Error).filter(|f| f.rule != case.rule);
            assert_eq!(others.count(), 0, "{about}");
        } else {
            assert_eq!(report.of_level(Level::Warning).count(), 0, "{about}");
        }
    }
}

#[test]
fn every_rule_has_both_kinds_of_programs() {
    let cases = cases();
    for info in &RULES {
        assert_eq!(Rule::named(info.name), Some(info.rule));
        assert_eq!(info.rule.info().name, info.name);
        for bad in [false, true] {
            let has = cases.iter().any(|case| case.rule == info.rule && case.bad == bad);
            assert!(has, "{}: no program that is {}", info.name, if bad { "bad" } else { "good" });
        }
    }
}

/// What is pending on one path is pending where paths meet, and around a loop.
#[test]
fn paths_meet() {
    let source =
        "cmps.u.lt p0.x, r0.x, 4\n(rpt5)nop\nbr p0.x, #2\nrcp r1.x, r0.x\n(jp)add.f r2.x, r1.x, r1.x\nend";
    let findings = check(&assemble(source, 630), 630, &CheckOptions::default()).findings;
    assert_eq!(
        findings.iter().map(|f| (f.rule, f.at, f.first)).collect::<Vec<_>>(),
        [(Rule::SsRead, 4, Some(3))]
    );
    let source =
        "(jp)add.f r2.x, r1.x, c0.x\ncmps.u.lt p0.x, r0.x, 4\nrcp r1.x, r0.x\n(rpt5)nop\nbr p0.x, #-4\nend";
    let findings = check(&assemble(source, 630), 630, &CheckOptions::default()).findings;
    let found: Vec<_> =
        findings.iter().filter(|f| f.level == Level::Error).map(|f| (f.rule, f.at, f.first)).collect();
    // Once it is reported it counts as waited for: the next round writes nothing too early.
    assert_eq!(found, [(Rule::SsRead, 0, Some(2))]);
}

/// The fibers of one side of a predication do not execute the other.
#[test]
fn sides_of_a_predication_do_not_see_each_other() {
    let side =
        "cmps.u.lt p0.x, r0.x, 4\n(rpt5)nop\npredt\nadd.u r1.x, r0.x, 1\npredf\nadd.u r2.x, r1.x, 1\nprede";
    let good = check(&assemble(&format!("{side}\n(rpt5)nop\nend"), 630), 630, &CheckOptions::default());
    assert_eq!(good.of_level(Level::Warning).count(), 0, "{:?}", good.findings);
    let bad =
        check(&assemble(&format!("{side}\nadd.u r3.x, r1.x, 1\nend"), 630), 630, &CheckOptions::default());
    let found: Vec<_> = bad.of_level(Level::Error).map(|f| (f.rule, f.at, f.first)).collect();
    assert_eq!(found, [(Rule::Delay, 7, Some(3))]);
}

/// Any words are checked to an end.
#[test]
fn any_words_are_checked() {
    let mut state = 0x1234_5678_9abc_def0u64;
    let mut random = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state ^ state >> 29
    };
    for gpu_id in [330, 430, 540, 630, 650, 740] {
        for _ in 0..300 {
            let words: Vec<u64> = (0..60).map(|_| random()).collect();
            let report = check(&words, gpu_id, &CheckOptions::default());
            assert!(report.findings.iter().all(|f| (f.at as usize) < words.len()), "{report:?}");
        }
    }
    assert_eq!(
        check(&[], 630, &CheckOptions::default()),
        CheckReport { complete: true, ..CheckReport::default() }
    );
}
