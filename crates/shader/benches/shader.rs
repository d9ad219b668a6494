//! Speed of reading shaders and of the standard passes, and what they allocate, over the compute shaders of the data folder: all of
//! them, and the one that takes the median time. Reader and shader are reused, as a compiler does.

use divan::AllocProfiler;
use divan::counter::ItemsCount;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use unwedge_shader::front::nir;
use unwedge_shader::front::spirv::{self, Reader};
use unwedge_shader::ir::Shader;
use unwedge_shader::passes::standard;
use unwedge_testkit::data;

#[global_allocator]
static ALLOCATOR: AllocProfiler = AllocProfiler::system();

fn main() {
    divan::main();
}

/// The reader and the shader that are reused.
#[derive(Default)]
struct Scratch {
    reader: Reader,
    shader: Shader,
}

/// The chip whose texts are read.
const CHIP: &str = "navi31";

type Step = fn(&mut Scratch, &Input);

enum Input {
    Spirv(Vec<u32>),
    Nir(String, nir::Options),
}

fn read(scratch: &mut Scratch, input: &Input) {
    match input {
        Input::Spirv(words) => {
            let result = scratch.reader.read(words, &spirv::Options::default(), &mut scratch.shader);
            result.expect("a module that is supported");
        }
        Input::Nir(text, options) => {
            nir::read(text, options, &mut scratch.shader).expect("a text that is supported");
        }
    }
}

fn read_and_pass(scratch: &mut Scratch, input: &Input) {
    read(scratch, input);
    standard(&mut scratch.shader);
}

fn modules() -> Vec<Input> {
    let files = data::archive("amd/shaders/shaders.tar.gz").into_iter();
    files
        .filter(|(name, _)| name.ends_with(".spv"))
        .map(|(_, bytes)| Input::Spirv(spirv::words(&bytes).expect("a module")))
        .collect()
}

/// The texts of one chip, with the meaning of their arguments.
fn texts() -> Vec<Input> {
    let Some(binaries) = data::text("amd/shaders/aco_binaries.csv.gz") else { return Vec::new() };
    let mut lines = binaries.lines().map(data::cells);
    let header = lines.next().unwrap_or_default();
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [name, family, args] = ["shader", "family", "args"].map(column);
    let mut registers = BTreeMap::new();
    for cells in lines.filter(|cells| cells[family] == CHIP) {
        registers.insert(cells[name].clone(), cells[args].clone());
    }
    let mut texts = Vec::new();
    for (path, bytes) in data::archive(&format!("amd/shaders/mesa_ir_{CHIP}.tar.gz")) {
        let stem = path.rsplit('/').next().and_then(|file| file.strip_suffix(".nir"));
        let Some(registers) = stem.and_then(|stem| registers.get(stem)) else { continue };
        let arguments = nir::Arguments::parse(registers).expect("registers of arguments");
        let options = nir::Options { arguments, file: String::new() };
        texts.push(Input::Nir(String::from_utf8(bytes).expect("a text"), options));
    }
    texts
}

/// The input whose time is the median. The time of an input is the best of a few runs.
fn median(inputs: Vec<Input>, step: Step) -> Option<Input> {
    let mut scratch = Scratch::default();
    let mut timed: Vec<(Duration, Input)> = Vec::new();
    for input in inputs {
        let times = (0..9).map(|_| {
            let start = Instant::now();
            step(&mut scratch, &input);
            start.elapsed()
        });
        timed.push((times.min().unwrap_or_default(), input));
    }
    timed.sort_by_key(|(time, _)| *time);
    let middle = timed.len() / 2;
    timed.into_iter().nth(middle).map(|(_, input)| input)
}

fn bench_median(bencher: divan::Bencher<'_, '_>, inputs: Vec<Input>, step: Step) {
    let Some(input) = median(inputs, step) else { return };
    let mut scratch = Scratch::default();
    bencher.bench_local(|| step(&mut scratch, &input));
}

fn bench_all(bencher: divan::Bencher<'_, '_>, inputs: &[Input], step: Step) {
    if inputs.is_empty() {
        return;
    }
    let mut scratch = Scratch::default();
    let bencher = bencher.counter(ItemsCount::new(inputs.len()));
    bencher.bench_local(|| inputs.iter().for_each(|input| step(&mut scratch, input)));
}

#[divan::bench]
fn median_spirv_read(bencher: divan::Bencher<'_, '_>) {
    bench_median(bencher, modules(), read);
}

#[divan::bench]
fn median_spirv_read_and_passes(bencher: divan::Bencher<'_, '_>) {
    bench_median(bencher, modules(), read_and_pass);
}

#[divan::bench]
fn median_nir_read(bencher: divan::Bencher<'_, '_>) {
    bench_median(bencher, texts(), read);
}

#[divan::bench]
fn median_nir_read_and_passes(bencher: divan::Bencher<'_, '_>) {
    bench_median(bencher, texts(), read_and_pass);
}

#[divan::bench]
fn all_spirv_read_and_passes(bencher: divan::Bencher<'_, '_>) {
    bench_all(bencher, &modules(), read_and_pass);
}

#[divan::bench]
fn all_nir_read_and_passes(bencher: divan::Bencher<'_, '_>) {
    bench_all(bencher, &texts(), read_and_pass);
}
