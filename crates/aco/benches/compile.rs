//! How fast shaders are compiled: the recorded ones of the data. Times are for all of them; the counter gives shaders a second.

use divan::counter::ItemsCount;
use unwedge_aco::{Compiler, Lowered, Options, lower_shader};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::{ShaderFile, spirv};
use unwedge_shader::ir::Shader;
use unwedge_testkit::data;

const GPUS: [&str; 4] = ["tahiti", "vega10", "navi21", "navi31"];

fn main() {
    divan::main();
}

fn modules() -> Vec<Vec<u8>> {
    let files = data::archive("amd/shaders/shaders.tar.gz").into_iter();
    files.filter(|(path, _)| path.ends_with(".spv")).map(|(_, bytes)| bytes).collect()
}

fn load(module: &[u8]) -> Option<Shader> {
    ShaderFile::named("shader.spv", module).ok()?.load(&spirv::Options::default()).ok()
}

fn options(gpu: &str) -> Options {
    Options::new(Gpu::new(gpu).expect("a chip").with_wave64(true))
}

/// From the shader IR to code.
#[divan::bench(args = GPUS, sample_count = 10)]
fn back_end(bencher: divan::Bencher<'_, '_>, gpu: &str) {
    let shaders: Vec<Shader> = modules().iter().filter_map(|module| load(module)).collect();
    let options = options(gpu);
    let count = shaders.len();
    let mut compiler = Compiler::new();
    bencher.counter(ItemsCount::new(count)).with_inputs(|| shaders.clone()).bench_local_values(
        |mut shaders| shaders.iter_mut().filter_map(|shader| compiler.compile(shader, &options).ok()).count(),
    );
}

/// From instruction selection to code.
#[divan::bench(args = GPUS, sample_count = 10)]
fn lowered(bencher: divan::Bencher<'_, '_>, gpu: &str) {
    let mut shaders: Vec<Shader> = modules().iter().filter_map(|module| load(module)).collect();
    let options = options(gpu);
    let lowered: Vec<Lowered<'_>> =
        shaders.iter_mut().filter_map(|shader| lower_shader(shader, &options).ok()).collect();
    let mut compiler = Compiler::new();
    bencher.counter(ItemsCount::new(lowered.len())).bench_local(|| {
        lowered.iter().filter_map(|shader| compiler.compile_lowered(shader, &options).ok()).count()
    });
}

/// From SPIR-V to code.
#[divan::bench(args = GPUS, sample_count = 10)]
fn whole(bencher: divan::Bencher<'_, '_>, gpu: &str) {
    let modules = modules();
    let options = options(gpu);
    let mut compiler = Compiler::new();
    bencher.counter(ItemsCount::new(modules.len())).bench_local(|| {
        let mut compiled = |module: &Vec<u8>| compiler.compile(&mut load(module)?, &options).ok();
        modules.iter().filter_map(&mut compiled).count()
    });
}
