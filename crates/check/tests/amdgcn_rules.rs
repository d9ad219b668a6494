//! Each rule on each generation: code that breaks it, and code that does not.

mod data;

use data::assemble;
use std::collections::BTreeSet;
use unwedge_check::amdgcn::facts::{RULES, RuleInfo};
use unwedge_check::amdgcn::{CheckOptions, EntryPreset, ProgramEntry, check};
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_isa::amdgcn::{Gpu, codec};

/// A part of a case: its lines, and the one at which the rule shows.
fn part(lines: &[&str]) -> (Vec<String>, Option<usize>) {
    let at = lines.iter().position(|line| line.starts_with('>'));
    let lines = lines.iter().map(|line| line.trim_start_matches('>').trim().to_owned());
    (lines.filter(|line| !line.is_empty()).collect(), at)
}

/// Whether a rule shows in code, and where, in bytes.
fn shows(lines: &[String], gpu: &Gpu, options: &CheckOptions, rule: &str) -> (Vec<u32>, Vec<u32>) {
    let (code, mut starts) = assemble(lines, gpu).unwrap_or_else(|e| panic!("{rule} {}: {e}", gpu.name()));
    starts.push(code.len() as u32);
    let report = check(&code, gpu, options);
    assert!(report.complete);
    let of = report.findings.iter().filter(|f| f.rule.info().name == rule);
    (of.map(|f| f.at).collect(), starts)
}

#[test]
fn each_rule_has_code_that_breaks_it_and_code_that_does_not() {
    let source = include_str!("../../../data/amd/check/cases/rules.txt");
    let mut seen: BTreeSet<(&str, Gfx)> = BTreeSet::new();
    let mut kept: BTreeSet<(&str, Gfx)> = BTreeSet::new();
    let mut wrong = Vec::new();
    for case in source.split("\n== ").skip(1) {
        let lines: Vec<&str> = case.lines().filter(|line| !line.trim().is_empty()).collect();
        let mut head = lines[0].split_whitespace();
        let rule = head.next().unwrap();
        let (mut options, mut gpus) = (CheckOptions::default(), Vec::new());
        let mut preset = EntryPreset { sgprs: 0, vgprs: 0 };
        for word in head {
            match (word, word.split_once('=')) {
                ("continues", _) => options.continues = true,
                ("exports", _) => options.exports = true,
                (_, Some(("sgprs", n))) => preset.sgprs = n.parse().unwrap(),
                (_, Some((_, n))) => preset.vgprs = n.parse().unwrap(),
                _ => {
                    let (name, features) = word.split_once('+').unwrap_or((word, ""));
                    gpus.push(Gpu::new(name).unwrap().with_features(features).unwrap());
                }
            }
        }
        options.entries.push(ProgramEntry {
            at: 0,
            preset: (preset.sgprs > 0).then_some(preset),
            called: false,
        });
        let middle = lines.iter().position(|line| *line == "--").unwrap();
        let ((bad, at), (good, _)) = (part(&lines[1..middle]), part(&lines[middle + 1..]));
        let at = at.unwrap();
        for gpu in gpus {
            let info: &RuleInfo = RULES.iter().find(|info| info.name == rule).unwrap();
            assert!(info.holds(gpu.generation()), "{rule} does not hold for {}", gpu.name());
            seen.insert((info.name, gpu.generation()));
            let (found, starts) = shows(&bad, &gpu, &options, rule);
            // Words inside a literal are no line.
            if !found.contains(&starts[at.min(starts.len() - 1)])
                && (rule != "into_middle" || found.is_empty())
            {
                wrong.push(format!("{rule} on {}: not at line {at} but at {found:?}", gpu.name()));
            }
            // What the older GPUs do not have cannot stand in the good code of all: then another case has some for them.
            let there = good.iter().all(|line| assemble(std::slice::from_ref(line), &gpu).is_ok());
            if there {
                kept.insert((info.name, gpu.generation()));
            }
            if there && !shows(&good, &gpu, &options, rule).0.is_empty() {
                wrong.push(format!("{rule} on {}: in code that does not break it", gpu.name()));
            }
        }
    }
    for info in &RULES {
        for generation in Gfx::ALL.iter().filter(|g| info.holds(**g)) {
            let which = (info.name, *generation);
            for (cases, what) in [(&seen, "breaks it"), (&kept, "does not break it")] {
                if !cases.contains(&which) {
                    wrong.push(format!("{}: no code that {what} on gfx{}", info.name, generation.name()));
                }
            }
        }
    }
    println!("{} rules, {} with a generation each", RULES.len(), seen.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Any bytes are checked to their end.
#[test]
fn any_bytes() {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    for (name, _) in Gpu::names() {
        let gpu = Gpu::new(name).unwrap();
        // Words that are instructions by chance, with branches everywhere.
        let mut words: Vec<u32> = Vec::new();
        while words.len() < 4000 {
            let word = match next() % 6 {
                0 => 0xbf82_0000 | (next() % 4000),
                1 => 0xbf84_0000 | (next() % 4000).wrapping_sub(2000) & 0xffff,
                2 => 0xbf8c_0000 | next() & 0xffff,
                _ => next(),
            };
            if codec::decode(&[word, next(), next(), 0], &gpu).is_some() || next() % 8 == 0 {
                words.push(word);
            }
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        let options = CheckOptions { continues: true, exports: true, ..CheckOptions::default() };
        check(&bytes, &gpu, &options);
        let entries = [4, 8000, u32::MAX].map(|at| ProgramEntry {
            at,
            preset: Some(EntryPreset { sgprs: 1, vgprs: 1 }),
            called: false,
        });
        check(&bytes[..4001], &gpu, &CheckOptions { entries: entries.to_vec(), ..options });
    }
}

/// Code that has as many ways through it as branches can make is bounded.
#[test]
fn branches_to_everywhere() {
    let gpu = Gpu::new("gfx900").unwrap();
    let mut words = Vec::new();
    for i in 0..3000u32 {
        // A load into another register, and a branch somewhere.
        words.extend([0xdc50_8000, (i & 0xff) << 24 | 0x007f_0000]);
        words.push(0xbf84_0000 | i.wrapping_mul(2_654_435_761) >> 20 & 0xfff);
    }
    words.push(0xbf81_0000);
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    let started = std::time::Instant::now();
    let report = check(&bytes, &gpu, &CheckOptions::default());
    println!(
        "{} instructions, {} findings, {:?}",
        report.instructions,
        report.findings.len(),
        started.elapsed()
    );
}

/// LLVM writes the sign of a literal of 16 bits into its upper half, which hardware does not read.
#[test]
fn literals_of_16_bits_may_have_an_upper_half() {
    // v_add_nc_u16 v19, v18, 0xff01; s_endpgm
    let words = [0xd703_0013, 0x0001_ff12, 0xffff_ff01, 0xbf81_0000];
    let bytes: Vec<u8> = words.iter().flat_map(|w: &u32| w.to_le_bytes()).collect();
    let report = check(&bytes, &Gpu::new("gfx1030").unwrap(), &CheckOptions::default());
    assert_eq!(report.instructions, 2);
    assert!(report.findings.is_empty(), "{:?}", report.findings);
}
