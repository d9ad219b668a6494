//! Random shaders of arithmetic on vectors of 16 bits: what the compiled code leaves in memory on the emulator is what the interpreter of the shader IR leaves, on all
//! GPUs that have such arithmetic.
//!
//! `UNWEDGE_SEEDS=N` tries seeds up to N. `UNWEDGE_FIGURES=1` prints how many instructions the shaders have on each GPU.

mod rig;

use rig::recorded::{MEASURES, assembly, measures};
use rig::{OUTPUT, TABLE};
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, Passes, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::Shader;
use unwedge_shader::text::print;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::halves::{difference, input, random};
use unwedge_testkit::shaders::lanes::{GROUPS, INVOCATIONS, OUTPUT_BYTES, interpreted};

/// The GPUs with floats of 16 bits, in both sizes of the wave.
fn gpus() -> Vec<Gpu> {
    let known = rig::GPUS.iter().map(|name| Gpu::new(name).expect("a GPU"));
    let with_halves = known.filter(|gpu| gpu.generation() >= Gfx::Gfx8);
    with_halves
        .flat_map(|gpu| [gpu.with_wave64(true), gpu.with_wave64(gpu.generation() < Gfx::Gfx10)])
        .collect()
}

fn compiled(shader: &Shader, gpu: Gpu) -> Result<Compiled, String> {
    let passes = Passes { validate_ir: true, validate_registers: true, ..Passes::default() };
    let options = Options { passes, ..Options::new(gpu) };
    compile(&mut shader.clone(), &options).map_err(|error| error.to_string())
}

/// What the compiled shader leaves, or what is wrong with it.
fn executed(compiled: &Compiled, input: &[u8], gpu: Gpu, seed: u64) -> Result<Vec<u8>, String> {
    let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
    let dispatch = Dispatch {
        groups: [GROUPS, 1, 1],
        size: [INVOCATIONS, 1, 1],
        timing: Timing::Adversarial { seed },
        ..rig::dispatch(compiled, &gpu, set)
    };
    let mut memory = rig::memory(&Options::new(gpu), input.to_vec(), OUTPUT_BYTES);
    rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
    Ok(memory.get(OUTPUT, OUTPUT_BYTES).expect("mapped").to_vec())
}

fn check(shader: &Shader, input: &[u8], gpu: Gpu, seed: u64) -> Result<(), String> {
    let expected = interpreted(shader, input, gpu.wave64())?;
    let compiled = compiled(shader, gpu)?;
    let found = executed(&compiled, input, gpu, seed)?;
    match difference(&found, &expected) {
        Some(at) => Err(format!("half {at} differs\n{}\n{}", print(shader), assembly(&compiled, &gpu))),
        None => Ok(()),
    }
}

#[test]
fn random_halves_do_what_the_interpreter_does() {
    let gpus = gpus();
    let seeds = rig::seed_count(12);
    let mut failures = Vec::new();
    for seed in 0..seeds {
        let mut rng = Rng::new(seed);
        let shader = random(&mut rng);
        validate(&shader).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&shader)));
        let input = input(&mut rng);
        for &gpu in &gpus {
            if let Err(why) = check(&shader, &input, gpu, seed) {
                let wave = if gpu.wave64() { 64 } else { 32 };
                failures.push(format!("seed {seed} {} wave{wave}: {why}", gpu.name()));
            }
        }
    }
    let count = failures.len();
    failures.truncate(3);
    assert!(failures.is_empty(), "{count} fail:\n{}", failures.join("\n"));
}

#[test]
fn figures() {
    if std::env::var_os("UNWEDGE_FIGURES").is_none() {
        return;
    }
    for gpu in gpus().into_iter().filter(|gpu| gpu.wave64()) {
        let mut sums = [0.0; MEASURES.len()];
        for seed in 0..200 {
            let compiled = compiled(&random(&mut Rng::new(seed)), gpu).expect("code");
            let own = measures(&compiled, &gpu, Some(INVOCATIONS));
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        println!("{}: {MEASURES:?} {sums:?}", gpu.name());
    }
}
