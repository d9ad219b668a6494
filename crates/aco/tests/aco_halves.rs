//! Random shaders of arithmetic on vectors of 16 bits: what the compiled code leaves in memory on the emulator is what the interpreter of the shader IR leaves, on all
//! GPUs that have such arithmetic.
//!
//! `UNWEDGE_SEEDS=N` tries seeds up to N. `UNWEDGE_FIGURES=1` prints how many instructions the shaders have on each GPU.

mod rig;

use rig::recorded::{MEASURES, assembly, measures};
use rig::{OUTPUT, TABLE, buffer_shader};
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::Shader;
use unwedge_shader::text::{parse, print};
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

/// Compiled with other options for other seeds, if there is a seed.
fn compiled(shader: &Shader, gpu: Gpu, seed: Option<u64>) -> Result<Compiled, String> {
    let mut options = Options::new(gpu);
    if let Some(seed) = seed {
        rig::vary(&mut options, seed);
    }
    (options.passes.validate_ir, options.passes.validate_registers) = (true, true);
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
    let compiled = compiled(shader, gpu, Some(seed))?;
    let found = executed(&compiled, input, gpu, seed)?;
    match difference(&found, &expected) {
        Some(at) => Err(format!("half {at} differs\n{}\n{}", print(shader), assembly(&compiled, &gpu))),
        None => Ok(()),
    }
}

/// A seed whose shader reads an upper half in `v_minmax_f16`, which has one form only, and names halves in it.
const SINGLE_FORM: u64 = 12_001_164;

#[test]
fn random_halves_do_what_the_interpreter_does() {
    let gpus = gpus();
    let mut failures = Vec::new();
    for seed in rig::seeds(12).chain([SINGLE_FORM]) {
        let mut rng = Rng::new(seed);
        let shader = random(&mut rng);
        validate(&shader).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&shader)));
        let input = input(&mut rng);
        for &gpu in &gpus {
            if let Err(why) = check(&shader, &input, gpu, seed) {
                let wave = gpu.lanes();
                failures.push(format!("seed {seed} {} wave{wave}: {why}", gpu.name()));
            }
        }
    }
    let count = failures.len();
    failures.truncate(3);
    assert!(failures.is_empty(), "{count} fail:\n{}", failures.join("\n"));
}

/// A shader that loads `x` and `y` of four lanes (`%15`, `%16`), and stores `%20`, also of four.
fn vector_shader(body: &str) -> Shader {
    let loaded = "  %0: b32 = const<0x0>\n  %1: b32 = const<0x8>\n  %2: b32 = const<0x10>\n  %10: handle = descriptor<r0> %0\n  \
        %11: handle = descriptor<r1> %0\n  %12: b32x3 = sysval<local_invocation_id>\n  %13: b32 = extract<0> %12\n  \
        %14: b32 = imul %13, %2\n  %17: b32 = iadd %14, %1\n  \
        %15: b16x4 = load<storage align 8 access readonly|restrict> %10, %14\n  \
        %16: b16x4 = load<storage align 8 access readonly|restrict> %10, %17\n";
    let text = format!("{loaded}{body}  store<storage align 8> %20, %11, %14\n");
    let mut shader = Shader::default();
    parse(&buffer_shader(64, 0, &text), &mut shader).expect("the text of a shader");
    validate(&shader).expect("a valid shader");
    shader
}

/// Checks which vector instructions of arithmetic the code of a shader has.
#[track_caller]
fn check_code(name: &str, contract: bool, body: &str, wanted: &[&str]) {
    let gpu = Gpu::new(name).expect("a GPU");
    let options = Options { contract, ..Options::new(gpu) };
    let compiled = compile(&mut vector_shader(body), &options).expect("code");
    let listing = assembly(&compiled, &gpu);
    let arithmetic: Vec<&str> = listing
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with("v_") && !line.contains("_b32") && !line.contains("_u32"))
        .collect();
    let same = arithmetic.len() == wanted.len()
        && wanted
            .iter()
            .all(|wanted| arithmetic.iter().any(|line| wanted.split(' ').all(|word| line.contains(word))));
    assert!(same, "{name}: not {wanted:?}:\n{listing}");
}

#[test]
fn vectors_are_computed_in_pairs() {
    const SUM: &str = "  %18: b16x4 = fmul %15, %16\n  %20: b16x4 = fadd %18, %15\n";
    const INTEGERS: &str = "  %18: b16x4 = imul %15, %16\n  %20: b16x4 = iadd %18, %15\n";
    const REVERSED: &str = "  %3: b16 = extract<3> %16\n  %4: b16 = extract<2> %16\n  %5: b16 = extract<1> %16\n  \
        %6: b16 = extract<0> %16\n  %18: b16x4 = vec %3, %4, %5, %6\n  %19: b16x4 = fneg %18\n  %20: b16x4 = fmax %15, %19\n";
    const CONSTANTS: &str = "  %3: b16 = const<0x3800>\n  %4: b16x4 = vec %3, %3, %3, %3\n  %5: b16 = const<0xfff0>\n  \
        %6: b16x4 = vec %5, %5, %5, %5\n  %18: b16x4 = fmul %15, %4\n  %20: b16x4 = umin %18, %6\n";
    for name in ["gfx900", "gfx1030", "gfx1100", "gfx1200"] {
        check_code(name, true, SUM, &["v_pk_fma_f16"; 2]);
        check_code(name, false, SUM, &["v_pk_mul_f16", "v_pk_mul_f16", "v_pk_add_f16", "v_pk_add_f16"]);
        check_code(name, false, INTEGERS, &["v_pk_mad_u16"; 2]);
        let max = if name == "gfx1200" { "v_pk_max_num_f16" } else { "v_pk_max_f16" };
        let wanted = format!("{max} op_sel:[0,1] op_sel_hi:[1,0] neg_lo:[0,1] neg_hi:[0,1]");
        check_code(name, false, REVERSED, &[&wanted, &wanted]);
        let constants = ["v_pk_mul_f16 0.5 op_sel_hi:[1,0]", "v_pk_min_u16 -16 op_sel_hi:[1,0]"];
        check_code(name, false, CONSTANTS, &[constants[0], constants[0], constants[1], constants[1]]);
    }
}

/// Sums over random shaders.
#[test]
fn figures() {
    if std::env::var_os("UNWEDGE_FIGURES").is_none() {
        return;
    }
    for gpu in gpus().into_iter().filter(|gpu| gpu.wave64()) {
        let mut sums = [0.0; MEASURES.len()];
        for seed in 0..200 {
            let compiled = compiled(&random(&mut Rng::new(seed)), gpu, None).expect("code");
            let own = measures(&compiled, &gpu, Some(INVOCATIONS));
            sums.iter_mut().zip(own).for_each(|(sum, own)| *sum += own);
        }
        println!("{}: {MEASURES:?} {sums:?}", gpu.name());
    }
}
