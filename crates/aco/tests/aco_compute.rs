//! Compute shaders from SPIR-V to results: compiled for each generation, executed on the emulator, compared with recorded results.

mod rig;

use rig::{GPUS, TABLE};
use std::collections::BTreeMap;
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::ShaderFile;
use unwedge_shader::front::spirv;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::data;
use unwedge_testkit::pack::bytes;

/// Whether a compiled shader gives these words, in plain and in adversarial timing; or what goes wrong.
fn execute(compiled: &Compiled, options: &Options, constant: u32, expected: &[u32]) -> Result<(), String> {
    let scalar = |argument: Argument| match argument {
        Argument::DescriptorSet(_) => Some(TABLE as u32),
        Argument::PushConstant(_) => Some(constant),
        _ => None,
    };
    for timing in [Timing::Plain, Timing::Adversarial { seed: u64::from(constant) }] {
        let name = if timing == Timing::Plain { "plain" } else { "adversarial" };
        let mut memory = rig::memory(options, bytes(&data::compute_input()), expected.len() * 4);
        let dispatch =
            Dispatch { groups: [4, 1, 1], timing, ..rig::dispatch(compiled, &options.gpu, scalar) };
        rig::execute(&compiled.code, options.gpu, &mut memory, &dispatch)
            .map_err(|fault| format!("{name}: {fault}"))?;
        let words = rig::output(&memory, expected.len());
        if let Some(at) = (0..expected.len()).find(|at| words[*at] != expected[*at]) {
            return Err(format!("{name}: word {at} is {:#x}, not {:#x}", words[at], expected[at]));
        }
    }
    Ok(())
}

fn dwords(hex: &str) -> Vec<u32> {
    let word = |at: usize| u32::from_str_radix(&hex[at * 8..at * 8 + 8], 16).expect("hexadecimal");
    (0..hex.len() / 8).map(word).collect()
}

/// By push constant: the words that the output holds.
type Results = Vec<(u32, Vec<u32>)>;

/// Results by shader.
fn expected() -> Option<BTreeMap<String, Results>> {
    let text = data::text("adreno/compute/expected.csv.gz")?;
    let mut lines = text.lines();
    let header = data::cells(lines.next().unwrap_or_default());
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, push, words] = ["shader", "push_constant", "dst_words_hex"].map(column);
    let mut expected: BTreeMap<String, Results> = BTreeMap::new();
    for cells in lines.map(data::cells) {
        let push = cells[push].parse().expect("a push constant");
        expected.entry(cells[name].clone()).or_default().push((push, dwords(&cells[words])));
    }
    Some(expected)
}

/// A shader for a GPU; what goes wrong, with the step in which it does.
fn attempt(
    module: &[u8],
    options: &Options,
    expected: &[(u32, Vec<u32>)],
) -> Result<(), (&'static str, String)> {
    let file = ShaderFile::named("shader.spv", module).map_err(|error| ("load", error.to_string()))?;
    let load = |error: unwedge_shader::front::LoadError| ("load", error.to_string());
    let mut shader = file.load(&spirv::Options::default()).map_err(load)?;
    let compiled = compile(&mut shader, options).map_err(|error| ("compile", error.to_string()))?;
    let report = check_words(&compiled.code.words, &options.gpu, &CheckOptions::default());
    for (constant, words) in expected {
        execute(&compiled, options, *constant, words).map_err(|what| ("run", what))?;
    }
    match report.findings.iter().find(|finding| finding.level != Certainty::Speed) {
        Some(finding) => Err(("check", format!("{finding:?}"))),
        None if report.complete => Ok(()),
        None => Err(("check", "the check is not complete".to_owned())),
    }
}

#[test]
fn shaders_give_the_recorded_results() {
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
                // Every eighth shader on one GPU, in turn, unless all are wanted.
                let turn = number % 8 == 0 && number / 8 % GPUS.len() == at;
                if own.wave64() == wave64 && (all || turn) {
                    jobs.push((name, module, results, own));
                }
            }
        }
    }
    assert!(!jobs.is_empty(), "a shader runs");
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get());
    let jobs = &jobs;
    let failures: Vec<(String, &'static str, String)> = std::thread::scope(|scope| {
        let run_part = |own: usize| {
            move || {
                let mut failures = Vec::new();
                for (name, module, results, gpu) in jobs.iter().skip(own).step_by(threads) {
                    if let Err((step, what)) = attempt(module, &Options::new(*gpu), results) {
                        let wave = if gpu.wave64() { 64 } else { 32 };
                        failures.push((format!("{name} {} wave{wave}", gpu.name()), step, what));
                    }
                }
                failures
            }
        };
        let parts: Vec<_> = (0..threads).map(|own| scope.spawn(run_part(own))).collect();
        parts.into_iter().flat_map(|part| part.join().expect("no panic")).collect()
    });
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    failures.iter().for_each(|(_, step, _)| *reasons.entry(step).or_default() += 1);
    eprintln!("{} shaders on GPUs, {} failures: {reasons:?}", jobs.len(), failures.len());
    let shown: Vec<_> = failures.iter().take(40).collect();
    assert!(failures.is_empty(), "{shown:#?}");
}
