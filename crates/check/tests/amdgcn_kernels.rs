//! The checker finds no error in kernels that LLVM compiled, and reports waits and NOPs that are removed from them.
//!
//! The kernels are those of the emulator's tests, or those of the file in `UNWEDGE_KERNELS`, made in the same way.

use std::collections::BTreeMap;
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::model::{Gfx, Role};
use unwedge_isa::amdgcn::{Gpu, codec};

const VECTORS: &str = include_str!("../../sim/tests/kernels/vectors.txt");

/// Errors in code: the rule and the place of each.
fn errors(words: &[u32], gpu: &Gpu) -> Vec<(&'static str, u32)> {
    let report = check_words(words, gpu, &CheckOptions::default());
    let sure = report.findings.iter().filter(|found| found.rule.info().level == Certainty::Error);
    sure.map(|found| (found.rule.info().name, found.at)).collect()
}

/// The places of waits and NOPs of one dword.
fn protections(words: &[u32], gpu: &Gpu) -> Vec<usize> {
    let (mut at, mut found) = (0, Vec::new());
    while let Some(decoded) = words.get(at..).and_then(|rest| codec::decode_executed(rest, gpu)) {
        // What fills the code after its end protects nothing.
        if decoded.inst.row().role == Role::End {
            break;
        }
        if matches!(decoded.inst.row().role, Role::Wait | Role::Nop) && decoded.dwords == 1 {
            found.push(at);
        }
        at += usize::from(decoded.dwords);
    }
    found
}

/// Whether there is a branch.
fn branches(words: &[u32], gpu: &Gpu) -> bool {
    let mut at = 0;
    while let Some(decoded) = words.get(at..).and_then(|rest| codec::decode_executed(rest, gpu)) {
        if decoded.inst.row().role.ends_block() && decoded.inst.row().role != Role::End {
            return true;
        }
        at += usize::from(decoded.dwords);
    }
    false
}

#[test]
fn kernels_of_cdna_are_clean_and_each_protection_is_missed() {
    let other =
        std::env::var_os("UNWEDGE_KERNELS").map(|path| std::fs::read_to_string(path).expect("a file"));
    let text = other.as_deref().unwrap_or(VECTORS);
    let (mut dirty, mut kernels) = (Vec::new(), 0);
    let mut removed: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for line in text.lines().filter(|line| line.starts_with("gfx9")) {
        let (head, code) = line.split_once(" : ").expect("code");
        let name = head.split([' ', '+']).next().expect("a GPU");
        let gpu = Gpu::new(name).expect("a GPU");
        if gpu.generation() < Gfx::Gfx908 {
            continue;
        }
        let words: Vec<u32> =
            code.split_whitespace().map(|word| u32::from_str_radix(word, 16).expect("hexadecimal")).collect();
        kernels += 1;
        let found = errors(&words, &gpu);
        if !found.is_empty() {
            dirty.push(format!("{name}: {found:?}"));
            continue;
        }
        // A branch over a dword that is removed would go elsewhere.
        if branches(&words, &gpu) {
            continue;
        }
        let (all, missed) = removed.entry(name).or_default();
        for at in protections(&words, &gpu) {
            let mut less = words.clone();
            less.remove(at);
            *all += 1;
            if errors(&less, &gpu).is_empty() {
                *missed += 1;
            }
        }
    }
    eprintln!("{kernels} kernels of CDNA; protections that were removed, and those not missed: {removed:?}");
    assert!(dirty.is_empty(), "{} kernels: {:#?}", dirty.len(), &dirty[..dirty.len().min(20)]);
    assert!(removed.values().any(|(all, _)| *all > 0), "no protection was removed from {kernels} kernels");
    for (name, (all, missed)) in removed {
        assert!(missed * 50 <= all, "{name}: {missed} of {all} protections were removed and not missed");
    }
}
