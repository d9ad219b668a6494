//! The cases of `data/intel/eu/cases.txt`: for each restriction an instruction that breaks it and one that does not.

use std::collections::BTreeSet;
use unwedge_check::eu::facts::RULES;
use unwedge_check::eu::{Rule, check_instruction};
use unwedge_isa::eu::program::raw_bytes;
use unwedge_isa::eu::{Instruction, Platform};

const CASES: &str = include_str!("../data/intel/eu/cases.txt");

fn named(name: &str) -> Rule {
    Rule::named(name).unwrap_or_else(|| panic!("there is no rule {name}"))
}

fn broken(platform: Platform, digits: &str) -> Vec<Rule> {
    let bytes = raw_bytes(digits).unwrap_or_else(|| panic!("{digits}"));
    check_instruction(&Instruction::decode(platform, bytes.try_into().unwrap()))
}

#[test]
fn every_restriction_has_a_bad_and_a_good_instruction() {
    let mut seen = BTreeSet::new();
    let lines: Vec<&str> = CASES.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    for case in lines.chunks(3) {
        let [head, good, bad] = case else { panic!("{case:?} is not a case") };
        let mut words = head.split_whitespace();
        let rule = named(words.next().unwrap());
        let platform = Platform::by_name(words.next().unwrap()).unwrap();
        let mut expected: Vec<Rule> = words.map(named).chain([rule]).collect();
        expected.sort_unstable();
        let digits = |line: &str, kind: &str| {
            let mut words = line.split_whitespace();
            assert_eq!(words.next(), Some(kind), "{line}");
            words.next().unwrap().to_owned()
        };
        assert_eq!(broken(platform, &digits(good, "good")), [], "{head}");
        assert_eq!(broken(platform, &digits(bad, "bad")), expected, "{head}");
        assert!(seen.insert(rule), "{head}: twice");
    }
    // One bit says whether the operands are floats, so that they cannot be mixed.
    let possible = |rule: Rule| rule != Rule::CselMix;
    for info in RULES.iter().filter(|info| info.rule < Rule::NotInstruction && possible(info.rule)) {
        assert!(seen.contains(&info.rule), "{} has no case", info.name);
    }
}

#[test]
fn rules_hold_for_the_generations_of_their_cases() {
    for line in CASES.lines().filter(|line| !line.starts_with(['#', ' ']) && !line.is_empty()) {
        let mut words = line.split_whitespace();
        let rule = named(words.next().unwrap());
        let platform = Platform::by_name(words.next().unwrap()).unwrap();
        assert!(rule.info().holds(platform), "{line}");
    }
}
