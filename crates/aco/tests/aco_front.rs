//! The front half on the shaders of the data: every phase leaves a valid program.

mod rig;

use rig::GPUS;
use std::collections::BTreeMap;
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::ir::{Progress, text};
use unwedge_aco::{FRONT_PHASES, Options, UNREPAIRED_PHASES, front, valid};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::ShaderFile;
use unwedge_shader::front::spirv;
use unwedge_testkit::data;

/// Every how many shaders one is taken.
fn stride() -> usize {
    if std::env::var_os("UNWEDGE_ALL").is_some() { 1 } else { 24 }
}

#[test]
fn programs_are_valid_after_every_phase() {
    let shaders: Vec<_> = data::archive("amd/shaders/shaders.tar.gz")
        .into_iter()
        .filter(|(name, _)| name.ends_with(".spv"))
        .collect();
    if shaders.is_empty() {
        eprintln!("no shaders under {}", data::root().display());
        return;
    }
    let mut reasons: BTreeMap<String, usize> = BTreeMap::new();
    let mut first = None;
    for (name, bytes) in shaders.iter().step_by(stride()) {
        let file = ShaderFile::named(name, bytes).expect("a module");
        let shader = file.load(&spirv::Options::default()).expect("a shader");
        for gpu in GPUS {
            let gpu = Gpu::new(gpu).expect("a GPU");
            for wave64 in [true, false] {
                let gpu = gpu.with_wave64(wave64);
                let variants = Variants::of(&gpu);
                let mut shader = shader.clone();
                let mut failed = None;
                let mut watch = |phase: &'static str, program: &unwedge_aco::ir::Program| {
                    if failed.is_some() || FRONT_PHASES[..UNREPAIRED_PHASES].contains(&phase) {
                        return;
                    }
                    if let Err(violations) = valid::ir(program, &variants) {
                        let message = violations[0].describe(program);
                        let mut printed = String::new();
                        text::print(program, &mut printed);
                        failed = Some((format!("{phase}: {}", violations[0].message), message, printed));
                    }
                };
                match front(&mut shader, &Options::new(gpu), &mut watch) {
                    Ok(masked) => assert_eq!(masked.program.progress, Progress::Masked),
                    Err(error) => failed = Some((error.to_string(), String::new(), String::new())),
                }
                if let Some((reason, message, printed)) = failed {
                    *reasons.entry(reason).or_default() += 1;
                    first.get_or_insert_with(|| format!("{name} {}: {message}\n{printed}", gpu.name()));
                }
            }
        }
    }
    assert!(reasons.is_empty(), "{reasons:#?}\n{}", first.unwrap_or_default());
}

/// Every compute shader of the conformance suite gives a valid program, or an error that names what is missing.
#[test]
fn modules_of_the_suite_are_valid_or_refused_by_name() {
    let gpu = Gpu::new("gfx1030").expect("a GPU");
    let variants = Variants::of(&gpu);
    let (mut reasons, mut compiled) = (BTreeMap::<String, usize>::new(), 0);
    let modules: Vec<_> = data::archive("cts-amber/spirv.tar.gz");
    for (name, bytes) in modules.iter().filter(|(name, _)| name.ends_with(".spv")).step_by(stride() / 3 + 1) {
        let Ok(file) = ShaderFile::named(name, bytes) else { continue };
        let Ok(mut shader) = file.load(&spirv::Options::default()) else { continue };
        if shader.info.stage != unwedge_shader::ir::Stage::Compute {
            continue;
        }
        let mut watch = |phase: &'static str, program: &unwedge_aco::ir::Program| {
            if FRONT_PHASES[..UNREPAIRED_PHASES].contains(&phase) {
                return;
            }
            if let Err(violations) = valid::ir(program, &variants) {
                panic!("{name} after {phase}: {}", violations[0].describe(program));
            }
        };
        match front(&mut shader, &Options::new(gpu), &mut watch) {
            Ok(_) => compiled += 1,
            Err(error) => *reasons.entry(error.to_string()).or_default() += 1,
        }
    }
    eprintln!("{compiled} compute shaders are selected; refused are {reasons:#?}");
    assert!(compiled > 0 || modules.is_empty(), "a shader is selected");
}
