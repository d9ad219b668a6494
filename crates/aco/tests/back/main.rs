//! The back half: random programs, executed directly and as code.

mod generate;
mod interpret;
#[path = "../rig/mod.rs"]
mod rig;

use rig::{GPUS, OUTPUT};
use std::collections::HashMap;
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::ir::{Program, RegCounts, text};
use unwedge_aco::{BackPhase, Code, Limits, Options, Spilled, finish, finish_with, valid};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_sim::amdgcn::{Dispatch, Initial, Program as Machine, SimMemory, Timing};
use unwedge_testkit::parallel;

const LANES: u32 = 64;

fn gpus() -> impl Iterator<Item = Gpu> {
    GPUS.iter().flat_map(|name| {
        let gpu = Gpu::new(name).expect("a GPU");
        let waves = if gpu.generation() < Gfx::Gfx10 { vec![true] } else { vec![false, true] };
        waves.into_iter().map(move |wave64| gpu.with_wave64(wave64))
    })
}

/// Compiles a program without some optional phases, which the seed chooses, and with both validators after each phase.
fn compile(program: &Program, limits: &Limits, seed: u64) -> Result<Code, String> {
    let variants = Variants::of(&program.gpu);
    let mut options = Options::new(program.gpu);
    rig::vary(&mut options, seed);
    let mut wrong = None;
    let code = finish_with(&mut program.clone(), limits, options.passes, &mut |phase, program| {
        let mut violations = valid::ir(program, &variants).err().unwrap_or_default();
        if matches!(phase, BackPhase::Allocate | BackPhase::Eliminate) {
            violations.extend(valid::ra(program).err().unwrap_or_default());
        }
        if wrong.is_none() && !violations.is_empty() {
            let list: Vec<String> = violations.iter().take(4).map(|v| v.describe(program)).collect();
            let mut shown = String::new();
            text::print(program, &mut shown);
            wrong = Some(format!("after {}: {list:#?}\n{shown}", phase.name()));
        }
    });
    match wrong {
        Some(wrong) => Err(wrong),
        None => code.map_err(|error| error.to_string()),
    }
}

/// Runs code. By offset: the words that it leaves.
fn execute(code: &Code, gpu: Gpu, scalar: u32, seed: u64) -> Result<HashMap<u32, u32>, String> {
    let mut memory = SimMemory::default();
    memory.map(OUTPUT, vec![0; LANES as usize * 4]).expect("free");
    let descriptor = rig::descriptor(OUTPUT, LANES as usize * 4, gpu.generation());
    let mut scalars: Vec<(u16, u32)> = (0..).zip(descriptor).collect();
    scalars.push((4, scalar));
    scalars.extend((8..).zip(rig::scratch_descriptor(&gpu)));
    scalars.push((12, 0));
    let dispatch = Dispatch {
        size: [LANES, 1, 1],
        scalars,
        vectors: vec![(0, Initial::LocalId(0))],
        timing: Timing::Adversarial { seed },
        scratch: code.scratch_bytes,
        steps: 1_000_000,
        ..Dispatch::default()
    };
    rig::execute(code, gpu, &mut memory, &dispatch)?;
    let words = rig::output(&memory, LANES as usize);
    Ok((0..).step_by(4).zip(words).collect())
}

fn listing(code: &Code, gpu: Gpu) -> String {
    let machine = Machine::new(&code.words, 0, gpu);
    let (mut at, mut out) = (0, String::new());
    while let Some(line) = machine.text(at) {
        out += &format!("{at:#06x} {line}\n");
        at = machine.following(at).expect("a next one");
    }
    out
}

fn checked(code: &Code, gpu: &Gpu) -> Vec<String> {
    let report = check_words(&code.words, gpu, &CheckOptions::default());
    let errors = report.findings.iter().filter(|finding| finding.level == Certainty::Error);
    errors.map(|finding| format!("{:#x}: {}", finding.at, finding.rule.info().name)).collect()
}

fn try_one(gpu: Gpu, seed: u64, width: usize, limits: &Limits) -> Result<Spilled, String> {
    try_program(&generate::program(gpu, seed, width), gpu, seed, limits).map(|code| code.spills)
}

fn try_program(program: &Program, gpu: Gpu, seed: u64, limits: &Limits) -> Result<Code, String> {
    let code = compile(program, limits, seed)?;
    let mut expected = HashMap::new();
    let lanes = gpu.lanes() as usize;
    for first in (0..LANES).step_by(lanes) {
        expected.extend(interpret::run(program, 77, first));
    }
    let fail = |what: String| {
        let mut shown = String::new();
        text::print(program, &mut shown);
        Err(format!("{what}\n{shown}\n{}", listing(&code, gpu)))
    };
    match execute(&code, gpu, 77, seed) {
        Err(fault) => return fail(fault),
        Ok(stored) if stored != expected => {
            let other = (0..LANES * 4).step_by(4).find(|at| stored[at] != expected[at]).expect("one");
            return fail(format!("{:#x} instead of {:#x} at {other}", stored[&other], expected[&other]));
        }
        Ok(_) => {}
    }
    let errors = checked(&code, &gpu);
    if errors.is_empty() { Ok(code) } else { fail(format!("{errors:?}")) }
}

/// Tries random programs on every generation, with the limits that `limits` gives for a seed. Returns the most that one spilled.
fn try_all(limits: impl Fn(&Gpu, u64) -> Limits) -> Spilled {
    let mut spills = Spilled::default();
    for gpu in gpus() {
        let mut failures = 0;
        for seed in rig::seeds(4) {
            let width = [3, 8, 20][seed as usize % 3];
            let tried = try_one(gpu, seed, width, &limits(&gpu, seed));
            let own = tried.as_ref().copied().unwrap_or_default();
            spills.sgprs = spills.sgprs.max(own.sgprs);
            spills.vgprs = spills.vgprs.max(own.vgprs);
            if let Err(error) = tried {
                failures += 1;
                if failures == 1 {
                    let folder = std::env::var("UNWEDGE_FAILURES");
                    if let Ok(folder) = folder {
                        let path = format!("{folder}/{}-{}-{seed}.txt", gpu.name(), gpu.wave64());
                        std::fs::write(path, &error).expect("written");
                    }
                }
                eprintln!(
                    "{} wave64 {} seed {seed}: {}",
                    gpu.name(),
                    gpu.wave64(),
                    error.lines().take(3).collect::<Vec<_>>().join(" ")
                );
            }
        }
        assert!(failures == 0 || std::env::var("UNWEDGE_KEEP_GOING").is_ok(), "{}: {failures}", gpu.name());
    }
    spills
}

/// Random programs give what their SSA form says, on every generation, and the checker finds nothing.
#[test]
fn random_programs() {
    assert_eq!(try_all(|gpu, _| Limits::of(gpu)), Spilled::default());
}

/// The same with so few registers that values are spilled.
#[test]
fn random_programs_with_few_registers() {
    const FEW: [(u16, u16); 5] = [(24, 16), (32, 12), (100, 9), (24, 48), (40, 24)];
    let spills = try_all(|_, seed| {
        let (sgprs, vgprs) = FEW[seed as usize % FEW.len()];
        Limits { registers: RegCounts { sgprs, vgprs } }
    });
    assert!(spills.sgprs > 0 && spills.vgprs > 0, "values of both banks are spilled: {spills:?}");
}

/// Thousands of values in memory change their slots on one edge.
#[test]
fn many_slots_are_permuted() {
    const VALUES: usize = 4000;
    let limits = Limits { registers: RegCounts { sgprs: 40, vgprs: 24 } };
    parallel::map(&["gfx900", "gfx1030", "gfx1100"], |name| {
        let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
        let program = generate::permutation(gpu, 7, VALUES);
        let code =
            try_program(&program, gpu, 7, &limits).map_err(|error| error.lines().next().map(str::to_owned));
        let spilled = code.expect("the same results").spills.vgprs;
        assert!(spilled > 2 * VALUES as u32 - 100, "{name}: {spilled}");
    });
}

/// A scalar vector is made in the registers of its parts, in another order, where no register is free and `scc` is in use.
#[test]
fn vectors_exchange_scalars_of_their_parts() {
    let limits = Limits { registers: RegCounts { sgprs: 24, vgprs: 16 } };
    for name in ["gfx600", "gfx1150", "gfx1200"] {
        let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
        assert_eq!(try_one(gpu, 645, 3, &limits).err(), None, "{name}");
    }
}

/// Branches over more code than their offset counts.
#[test]
fn branches_are_long() {
    const PADDING: usize = 17_000;
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    for name in ["gfx1010", "gfx900"].into_iter().take(if all { 2 } else { 1 }) {
        let gpu = Gpu::new(name).expect("a GPU");
        // The smallest program with flow.
        let blocks = |seed: &u64| generate::program(gpu, *seed, 3).blocks.len();
        let seed = (0..60).filter(|seed| blocks(seed) > 4).min_by_key(blocks).expect("one");
        let program = generate::padded(gpu, seed, 3, PADDING);
        let code = finish(&mut program.clone(), &Limits::of(&gpu)).expect("compiled");
        assert!(code.words.len() > 1 << 16, "{name}: {} words", code.words.len());
        let mut expected = HashMap::new();
        let lanes = gpu.lanes() as usize;
        for first in (0..LANES).step_by(lanes) {
            expected.extend(interpret::run(&program, 77, first));
        }
        assert_eq!(execute(&code, gpu, 77, seed), Ok(expected), "{name}");
    }
}
