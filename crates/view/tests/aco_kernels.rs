//! Recorded compute shaders as HSA kernels: the code object is loaded as by a runtime, and has the recorded results, like the code for a driver.

use std::collections::BTreeMap;
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::ShaderFile;
use unwedge_shader::front::spirv;
use unwedge_shader::interp::{BindingPoint, Bindings};
use unwedge_testkit::data;
use unwedge_view::aco::{CallingConvention, CompileView, EmulationRequest, EmulationView, Options};
use unwedge_view::shader::Workgroups;

/// One GPU of each generation that HSA supports.
const GPUS: [&str; 8] = ["gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];
const INPUT: BindingPoint = BindingPoint { set: 0, binding: 0, index: 0 };
const OUTPUT: BindingPoint = BindingPoint { set: 0, binding: 1, index: 0 };

/// By shader: a push constant, and the bytes of the output.
fn expected() -> BTreeMap<String, Vec<(u32, Vec<u8>)>> {
    let mut expected: BTreeMap<String, Vec<(u32, Vec<u8>)>> = BTreeMap::new();
    let Some(text) = data::text("adreno/compute/expected.csv.gz") else { return expected };
    let mut rows = text.lines().map(data::cells);
    let header = rows.next().expect("a header");
    let column = |name: &str| header.iter().position(|cell| cell == name).expect("a column");
    let [shader, push, words] = ["shader", "push_constant", "dst_words_hex"].map(column);
    for row in rows {
        let word = |digits: &[u8]| {
            let digits = std::str::from_utf8(digits).expect("hexadecimal");
            u32::from_str_radix(digits, 16).expect("hexadecimal").to_le_bytes()
        };
        let bytes = row[words].as_bytes().chunks(8).flat_map(word).collect();
        let own = expected.entry(row[shader].clone()).or_default();
        own.push((row[push].parse().expect("a push constant"), bytes));
    }
    expected
}

/// Runs a shader as an HSA kernel and as a driver would. The error says what is wrong.
fn attempt(module: &[u8], options: &Options, results: &[(u32, Vec<u8>)]) -> Result<(), String> {
    let file = ShaderFile::named("shader.spv", module).map_err(|error| error.to_string())?;
    let shader = file.load(&spirv::Options::default()).map_err(|error| error.to_string())?;
    let view = CompileView::of(&mut shader.clone(), options).map_err(|error| error.to_string())?;
    for (number, (push, words)) in results.iter().enumerate() {
        let mut bindings = Bindings::default();
        bindings.bind(INPUT, data::compute_input().iter().flat_map(|word| word.to_le_bytes()).collect());
        let output = bindings.bind(OUTPUT, vec![0; words.len()]);
        bindings.push = push.to_le_bytes().to_vec();
        let request = EmulationRequest {
            workgroups: Workgroups([4, 1, 1]),
            steps: 10_000_000,
            seed: (number % 2 == 1).then_some(number as u64),
            threads: 1,
            compare: false,
            outputs: &[],
        };
        let ran = EmulationView::of(&shader, &view, options, &mut bindings, &request);
        let ran = ran.map_err(|error| error.to_string())?;
        if !ran.is_good() || bindings.memory[output] != *words {
            let mut text = Vec::new();
            ran.text(&mut text).expect("memory takes it");
            return Err(format!("push constant {push}: {}", String::from_utf8_lossy(&text)));
        }
    }
    Ok(())
}

/// Runs one of `every` shaders, on the GPUs in rotation, with at most `vgprs` vector registers if that is given. With `UNWEDGE_ALL`, runs all shaders on all GPUs.
fn try_all(vgprs: Option<u16>, every: usize) {
    let expected = expected();
    let modules = data::archive("amd/shaders/shaders.tar.gz")
        .into_iter()
        .filter_map(|(name, bytes)| Some((name.rsplit('/').next()?.strip_suffix(".spv")?.to_owned(), bytes)));
    let modules: BTreeMap<String, Vec<u8>> = modules.collect();
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let (mut ran, mut failures) = (0, Vec::new());
    for (number, (name, results)) in expected.iter().enumerate() {
        let module = modules.get(name).unwrap_or_else(|| panic!("{name} is not in the archive"));
        for (at, gpu) in GPUS.iter().enumerate() {
            let turn = number % every == 0 && number / every % GPUS.len() == at;
            for wave64 in [true, false].into_iter().filter(|_| all || turn) {
                let gpu = Gpu::new(gpu).expect("a GPU").with_wave64(wave64);
                if gpu.wave64() != wave64 {
                    continue;
                }
                let mut options = Options { convention: CallingConvention::Hsa, ..Options::new(gpu) };
                options.limits = options.limits.within(&gpu, None, vgprs, None);
                ran += 1;
                if let Err(why) = attempt(module, &options, results) {
                    failures.push(format!("{name} {} wave64 {wave64}: {why}", gpu.name()));
                }
            }
        }
    }
    assert!(expected.is_empty() || ran > 0, "a kernel runs");
    println!("{ran} kernels, {} failures", failures.len());
    assert!(failures.is_empty(), "{:#?}", &failures[..failures.len().min(20)]);
}

#[test]
fn kernels_give_the_recorded_results() {
    try_all(None, 8);
}

/// Values are spilled to the scratch memory that the descriptor of the kernel asks for.
#[test]
fn kernels_give_the_recorded_results_with_few_registers() {
    try_all(Some(24), 24);
}
