//! Waits and `s_nop` that are taken out of kernels of CDNA are missed: the checker finds nothing in the kernels as LLVM compiled them,
//! and something where one is gone.
//!
//! Not counted are those that the checker calls unnecessary in the whole kernel, `s_nop` before loops that are aligned, and waits for
//! LDS alone in a workgroup of one wave without which no unfavourable timing changes a result: LDS does the accesses of a wave in order.

mod compiled;

use compiled::Kernel;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::waits::{Counter, fields};
use unwedge_isa::amdgcn::{Gfx, Opcode, codec};
use unwedge_sim::amdgcn::Timing;
use unwedge_testkit::protections::{LINE_GFX950, is_padding, protections, without};

/// Seeds of timings under which a wait that protects nothing leaves all results as they are.
const TIMINGS: u64 = 8;

/// What is found in code at a level or above: the rule and the place of each.
fn findings(words: &[u32], kernel: &Kernel, level: Certainty) -> BTreeSet<(&'static str, u32)> {
    let report = check_words(words, &kernel.gpu, &CheckOptions::default());
    let sure = report.findings.iter().filter(|found| found.rule.info().level <= level);
    sure.map(|found| (found.rule.info().name, found.at)).collect()
}

/// Where a kernel ends: what fills the code after it protects nothing.
fn last_end(kernel: &Kernel) -> usize {
    let (mut at, mut end) = (0, 0);
    while let Some(decoded) = kernel.code.get(at..).and_then(|rest| codec::decode(rest, &kernel.gpu)) {
        if decoded.inst.row().role == Role::End {
            end = at;
        }
        at += usize::from(decoded.dwords);
    }
    end
}

/// Whether a wait is for LDS (and scalar memory) alone.
fn is_for_lds(opcode: Opcode, word: u32, gfx: Gfx) -> bool {
    let asks = |counter: &Counter| {
        fields(opcode, gfx).any(|wait| {
            let value = wait.field.get(word as u16);
            wait.counter == *counter && value < wait.field.most()
        })
    };
    asks(&Counter::Local) && !asks(&Counter::Memory) && !asks(&Counter::Exp)
}

/// Whether a kernel gives the same without a protection, whatever the timing is.
fn is_the_same(words: &[u32], kernel: &Kernel) -> bool {
    let program = kernel.program(words);
    (0..TIMINGS).all(|seed| {
        let (outcome, differ) = kernel.run(&program, Timing::Adversarial { seed }, None);
        outcome.faults.is_empty() && differ.is_empty()
    })
}

/// What became of the protections of one GPU.
#[derive(Debug, Default)]
struct Removed {
    all: usize,
    found: usize,
    spare: usize,
    /// `s_nop` by which a loop begins where LLVM 23 wants it on gfx950.
    aligning: usize,
    /// Waits for LDS that keep an order which LDS keeps itself.
    order: usize,
    missed: usize,
}

#[test]
fn kernels_of_cdna_are_clean_and_each_protection_is_missed() {
    let (text, _) = compiled::lines();
    let (mut dirty, mut kernels, mut missed) = (Vec::new(), 0, Vec::new());
    let mut removed: BTreeMap<String, Removed> = BTreeMap::new();
    compiled::each(&text, |kernel| {
        let generation = kernel.gpu.generation();
        if !kernel.gpu.has_agprs() {
            return;
        }
        kernels += 1;
        let (name, source) = (&kernel.name, &kernel.source);
        let errors = findings(&kernel.code, kernel, Certainty::Error);
        if !errors.is_empty() {
            dirty.push(format!("{name} {source}: {errors:?}"));
            return;
        }
        let whole = findings(&kernel.code, kernel, Certainty::Note);
        let count = removed.entry(name.clone()).or_default();
        let end = last_end(kernel);
        for (opcode, at) in protections(&kernel.code, &kernel.gpu).into_iter().filter(|(_, at)| *at < end) {
            count.all += 1;
            let place = 4 * at as u32;
            if ["spare_wait", "spare_nop"].iter().any(|rule| whole.contains(&(*rule, place))) {
                count.spare += 1;
                continue;
            }
            let less = without(&kernel.code, &kernel.gpu, at);
            let moved = |at: u32| if at > place { at - 4 } else { at };
            let before: BTreeSet<(&str, u32)> = whole.iter().map(|(rule, at)| (*rule, moved(*at))).collect();
            let new = findings(&less, kernel, Certainty::Doubt);
            let is_missed = new.iter().any(|found| !before.contains(found));
            if is_missed {
                count.found += 1;
            } else if opcode == Opcode::s_nop && is_padding(&kernel.code, &kernel.gpu, at, LINE_GFX950) {
                count.aligning += 1;
            } else if kernel.is_one_wave()
                && is_for_lds(opcode, kernel.code[at], generation)
                && is_the_same(&less, kernel)
            {
                count.order += 1;
            } else {
                count.missed += 1;
                let text = |at: usize| {
                    let decoded = codec::decode(kernel.code.get(at..).unwrap_or_default(), &kernel.gpu);
                    decoded.map_or("", |decoded| decoded.inst.row().name)
                };
                missed.push(format!("{name} {source} at {place:#x}: {}, then {}", text(at), text(at + 1)));
            }
        }
    });
    eprintln!("{kernels} kernels of CDNA; protections that were removed: {removed:#?}");
    missed.iter().take(40).for_each(|line| eprintln!("missed: {line}"));
    assert!(dirty.is_empty(), "{} kernels: {:#?}", dirty.len(), &dirty[..dirty.len().min(20)]);
    assert!(
        removed.values().any(|count| count.found > 0),
        "no protection was removed from {kernels} kernels"
    );
    for (name, count) in removed {
        assert!(count.missed * 50 <= count.found + count.missed, "{name}: {count:?}");
    }
}
