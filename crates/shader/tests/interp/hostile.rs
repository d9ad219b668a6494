//! Broken modules that still validate: they run to their end or to an error, within their limits, and without a panic.

use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, InvocationInput, Limits, NoImages, Options, run_compute, run_stage,
};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;

#[test]
fn broken_modules_that_validate_run_within_their_limits() {
    let archives = ["amd/shaders/shaders.tar.gz", "cts-amber/spirv.tar.gz"];
    let modules: Vec<Vec<u32>> = archives
        .iter()
        .flat_map(|name| data::archive(name))
        .filter(|(name, _)| name.ends_with(".spv"))
        .filter_map(|(_, bytes)| words(&bytes).ok())
        .collect();
    if modules.is_empty() {
        return;
    }
    let (mut reader, mut shader) = (Reader::default(), Shader::default());
    let mut rng = Rng::new(18);
    let read = ReadOptions { max_insts: 1 << 14, ..ReadOptions::default() };
    let limits = Limits { steps: 2_000, memory: 1 << 22 };
    let options = Options { subgroup_size: 16, limits, ..Options::default() };
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 100_000 } else { 1_500 };
    let mut ran = 0;
    for _ in 0..rounds {
        let mut words = modules[rng.below(modules.len())].clone();
        for _ in 0..rng.below(3) {
            let at = 5 + rng.below(words.len() - 5);
            words[at] = match rng.below(3) {
                0 => words[at] ^ 1 << rng.below(32),
                1 => words[5 + rng.below(words.len() - 5)],
                _ => words[at].wrapping_add(1),
            };
        }
        if reader.read(&words, &read, &mut shader).is_err() || validate(&shader).is_err() {
            continue;
        }
        ran += 1;
        let mut bindings = Bindings { push: vec![3; 16], ..Bindings::default() };
        for binding in 0..3 {
            bindings.bind(BindingPoint { set: 0, binding, index: 0 }, vec![7; 256]);
        }
        if shader.info.stage == Stage::Compute {
            let dispatch = Dispatch::new([2, 1, 1]);
            let _ = run_compute(&shader, dispatch, &mut bindings, &mut NoImages, &options);
        } else {
            let quad = vec![InvocationInput::default(); 4];
            let _ = run_stage(&shader, quad, &mut bindings, &mut NoImages, &options);
        }
    }
    println!("{ran} of {rounds} run");
    assert!(ran > 0, "nothing runs");
}
