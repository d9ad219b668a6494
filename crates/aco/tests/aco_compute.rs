//! Compute shaders from SPIR-V to results: compiled for each generation, executed on the emulator, compared with recorded results.

mod rig;

use rig::GPUS;
use rig::recorded::{Problem, Results, expected, judge};
use std::collections::BTreeMap;
use unwedge_aco::{Compiler, Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::ShaderFile;
use unwedge_shader::front::spirv;
use unwedge_testkit::data;
use unwedge_testkit::parallel;

/// Compiles a shader for a GPU, and runs it.
fn attempt(module: &[u8], options: &Options, expected: &Results) -> Result<(), Problem> {
    let file = ShaderFile::named("shader.spv", module).map_err(|error| ("load", error.to_string()))?;
    let load = |error: unwedge_shader::front::LoadError| ("load", error.to_string());
    let mut shader = file.load(&spirv::Options::default()).map_err(load)?;
    let compiled = compile(&mut shader, options).map_err(|error| ("compile", error.to_string()))?;
    judge(&compiled, options, expected)
}

/// Runs shaders on GPUs, with so many vector registers if that is given: one of `every` on one GPU, in turn, unless all are wanted.
fn try_all(vgprs: Option<u16>, every: usize) {
    let Some(expected) = expected() else {
        eprintln!("no results under {}", data::root().display());
        return;
    };
    let modules: BTreeMap<String, Vec<u8>> = data::archive("amd/shaders/shaders.tar.gz")
        .into_iter()
        .filter_map(|(name, bytes)| Some((name.rsplit('/').next()?.strip_suffix(".spv")?.to_owned(), bytes)))
        .collect();
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let mut jobs = Vec::new();
    for (number, (name, results)) in expected.iter().enumerate() {
        let module = modules.get(name).unwrap_or_else(|| panic!("{name} is not in the archive"));
        for (at, gpu) in GPUS.iter().enumerate() {
            for wave64 in [true, false] {
                let own = Gpu::new(gpu).expect("a GPU").with_wave64(wave64);
                let turn = number % every == 0 && number / every % GPUS.len() == at;
                if own.wave64() == wave64 && (all || turn) {
                    jobs.push((name, module, results, own));
                }
            }
        }
    }
    assert!(!jobs.is_empty(), "a shader runs");
    let results = parallel::map(&jobs, |(name, module, results, gpu)| {
        let mut options = Options::new(*gpu);
        options.limits.registers.vgprs = vgprs.unwrap_or(options.limits.registers.vgprs);
        let (step, what) = attempt(module, &options, results).err()?;
        let wave = gpu.lanes();
        Some((format!("{name} {} wave{wave}", gpu.name()), step, what))
    });
    let failures: Vec<_> = results.into_iter().flatten().collect();
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    failures.iter().for_each(|(_, step, _)| *reasons.entry(step).or_default() += 1);
    eprintln!("{} shaders on GPUs, {} failures: {reasons:?}", jobs.len(), failures.len());
    let shown: Vec<_> = failures.iter().take(40).collect();
    assert!(failures.is_empty(), "{shown:#?}");
}

#[test]
fn shaders_give_the_recorded_results() {
    try_all(None, 8);
}

#[test]
fn shaders_give_the_recorded_results_with_few_registers() {
    [24, 48, 64].into_iter().for_each(|vgprs| try_all(Some(vgprs), 24));
}

/// With few vector registers, values are spilled in between.
#[test]
fn a_compiler_that_was_used_before_makes_the_same_code() {
    let modules = data::archive("amd/shaders/shaders.tar.gz").into_iter();
    let modules: Vec<_> = modules.filter(|(name, _)| name.ends_with(".spv")).collect();
    if modules.is_empty() {
        eprintln!("no shaders under {}", data::root().display());
    }
    let every = if std::env::var_os("UNWEDGE_ALL").is_some() { 1 } else { 9 };
    let mut compiler = Compiler::new();
    let (mut compiled, mut spilled) = (0, 0);
    for (name, module) in modules.iter().step_by(every) {
        let file = ShaderFile::named(name, module).expect("a module");
        for (gpu, vgprs) in [("tahiti", 256), ("navi31", 16), ("vega10", 256)] {
            let gpu = Gpu::new(gpu).expect("a GPU");
            let mut options = Options::new(gpu);
            options.limits = options.limits.within(&gpu, None, Some(vgprs), None);
            let load = || file.load(&spirv::Options::default()).expect("a shader");
            let once = compile(&mut load(), &options);
            compiled += usize::from(once.is_ok());
            spilled += usize::from(once.as_ref().is_ok_and(|once| once.code.spills.vgprs > 0));
            assert_eq!(compiler.compile(&mut load(), &options), once, "{name}, {}", gpu.name());
        }
    }
    assert!(modules.is_empty() || compiled > 0 && spilled > 0, "{compiled} compiled, {spilled} spill");
}
