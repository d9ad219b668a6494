//! Every row of `rule-vectors.csv.gz`: the rules it breaks are found, and no others. Skipped, said so, without the data folder.

use std::collections::BTreeMap;
use unwedge_check::eu::{Level, Rule, check_instruction};
use unwedge_isa::eu::program::{instructions, raw_bytes};
use unwedge_isa::eu::{Instruction, Platform, disasm};
use unwedge_testkit::data;

fn rows() -> Option<String> {
    data::text("intel/eu/rule-vectors.csv.gz")
}

/// The instruction of a row, also where its opcode is reserved.
fn instruction(platform: Platform, bytes: &[u8]) -> Instruction {
    let placed = instructions(platform, bytes).next().unwrap();
    placed.inst.unwrap_or_else(|| {
        let mut whole = [0; 16];
        whole[..bytes.len()].copy_from_slice(bytes);
        Instruction::decode(platform, whole)
    })
}

#[test]
fn rules_of_every_vector_are_found() {
    let Some(text) = rows() else { return };
    let (mut count, mut accepted, mut exact, mut found, mut quiet) = (0, 0, 0, 0, 0);
    let mut differences: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for line in text.lines().skip(1) {
        let [_, platform, encoding, rules] = line.splitn(4, ',').collect::<Vec<_>>()[..] else {
            panic!("{line}");
        };
        let platform = Platform::by_name(platform).unwrap();
        let inst = instruction(platform, &raw_bytes(encoding).unwrap());
        let mut wanted: Vec<Rule> = rules
            .split_whitespace()
            .map(|name| Rule::named(name).unwrap_or_else(|| panic!("{name}")))
            .collect();
        wanted.sort_unstable();
        let mut got = check_instruction(&inst);
        got.retain(|rule| rule.info().level == Level::Error);
        count += 1;
        exact += usize::from(got == wanted);
        found += usize::from(wanted.iter().all(|rule| got.contains(rule)));
        if wanted.is_empty() {
            accepted += 1;
            quiet += usize::from(got.is_empty());
        }
        let names = |rules: Vec<&Rule>| rules.iter().map(|r| r.info().name).collect::<Vec<_>>().join(" ");
        let missed = names(wanted.iter().filter(|rule| !got.contains(rule)).collect());
        let more = names(got.iter().filter(|rule| !wanted.contains(rule)).collect());
        if !missed.is_empty() || !more.is_empty() {
            let mut text = String::new();
            disasm::push_alone(&mut text, &inst, false);
            let key = format!("{} missed [{missed}] more [{more}]", platform.name());
            differences.entry(key).or_insert((0, format!("{encoding} {text}"))).0 += 1;
        }
    }
    println!(
        "{count} rows: {exact} with exactly their rules, {found} with all of their rules, {quiet} of {accepted} accepted rows silent"
    );
    for (key, (times, example)) in &differences {
        println!("{times:5} {key}: {example}");
    }
    assert!(count > 0);
    assert_eq!((exact, found, quiet), (count, count, accepted));
}
