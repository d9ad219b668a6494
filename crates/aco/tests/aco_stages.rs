//! The measure of graphics stages: what this compiler makes of the vertex and fragment shaders of the conformance suite, beside what Mesa's RADV made of them with ACO.
//!
//! Modules are compiled from SPIR-V, each alone: RADV links the stages of a pipeline first, and knows the formats of vertices and attachments, which are not
//! recorded. Colours are exported as floats of 16 bits, as most of its pipelines do. Ratios are geometric means by stage and chip. Without `UNWEDGE_ALL`, some
//! modules are taken. Nothing is required of the ratios yet.

mod rig;

use rig::recorded::{columns, in_parallel};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::graphics::TargetFormat;
use unwedge_aco::occupancy::allocated_vgprs;
use unwedge_aco::{Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_testkit::data;

const MEASURES: [&str; 3] = ["instructions", "code_size", "vgprs"];
/// Of how many modules one is taken without `UNWEDGE_ALL`.
const SAMPLE: usize = 29;

/// A module, and what was made of it.
struct Job<'a> {
    stage: Stage,
    entry: String,
    module: &'a [u8],
    /// By chip: the size of a wave, and the measures.
    chips: BTreeMap<String, (bool, [f64; MEASURES.len()])>,
}

/// The ratios of a module on a chip, or why there are none.
fn measure(
    job: &Job,
    chip: &str,
    wave64: bool,
    baseline: &[f64; MEASURES.len()],
) -> Result<[f64; MEASURES.len()], String> {
    let gpu = Gpu::new(chip).map_err(|error| error.to_string())?.with_wave64(wave64);
    let mut shader = Shader::default();
    let read =
        ReadOptions { entry: Some(job.entry.clone()), stage: Some(job.stage), ..ReadOptions::default() };
    let words = words(job.module).map_err(|error| error.to_string())?;
    Reader::default().read(&words, &read, &mut shader).map_err(|error| error.to_string())?;
    let mut options = Options::new(gpu);
    options.graphics.targets.fill(TargetFormat::Fp16);
    let compiled = compile(&mut shader, &options).map_err(|error| error.to_string())?;
    let code = &compiled.code;
    let vgprs = allocated_vgprs(&gpu, code.registers);
    let own = [code.instructions, code.words.len() * 4, usize::from(vgprs)];
    Ok(std::array::from_fn(|at| own[at] as f64 / baseline[at].max(1.0)))
}

#[test]
fn stages_are_compared_with_those_of_radv() {
    let Some(rows) = data::text("amd/cts/baseline.csv.gz") else {
        eprintln!("no baseline under {}", data::root().display());
        return;
    };
    let mut modules: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for archive in ["cts-amber/spirv.tar.gz", "amd/cts/spirv.tar.gz"] {
        for (name, bytes) in data::archive(archive) {
            let file = name.rsplit('/').next().unwrap_or_default();
            modules.insert(file.trim_end_matches(".spv").to_owned(), bytes);
        }
    }
    let names = [
        "chip",
        "sw_stage",
        "wave_size",
        "module",
        "spirv_fnv64",
        "entry",
        "specialized",
        MEASURES[0],
        MEASURES[1],
        MEASURES[2],
    ];
    let mut jobs: BTreeMap<(String, String, String), Job> = BTreeMap::new();
    for [chip, stage, wave, module, hash, entry, specialized, a, b, c] in columns(&rows, names) {
        let stage_of = match &stage[..] {
            "vertex" => Stage::Vertex,
            "fragment" => Stage::Fragment,
            _ => continue,
        };
        let name = if module.is_empty() { hash } else { module.trim_end_matches(".spv").to_owned() };
        let Some(bytes) = modules.get(&name).filter(|_| specialized == "0") else { continue };
        let job = jobs.entry((stage, name, entry.clone())).or_insert_with(|| Job {
            stage: stage_of,
            entry,
            module: bytes,
            chips: BTreeMap::new(),
        });
        let measures = [a, b, c].map(|cell| cell.parse().expect("a number"));
        job.chips.entry(chip).or_insert((wave == "64", measures));
    }
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let jobs: Vec<Job> = jobs
        .into_values()
        .enumerate()
        .filter(|(number, _)| all || number % SAMPLE == 0)
        .map(|(_, job)| job)
        .collect();
    assert!(!jobs.is_empty(), "a module is measured");
    let measured = in_parallel(&jobs, |job| {
        let chips = job.chips.iter();
        chips
            .map(|(chip, (wave64, baseline))| {
                (job.stage, chip.clone(), measure(job, chip, *wave64, baseline))
            })
            .collect::<Vec<_>>()
    });
    let mut logs: BTreeMap<(&str, String), (usize, [f64; MEASURES.len()])> = BTreeMap::new();
    let mut refused: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut reasons = BTreeSet::new();
    for (stage, chip, result) in measured.into_iter().flatten() {
        match result {
            Ok(ratios) => {
                let (count, sums) = logs.entry((stage.name(), chip)).or_default();
                *count += 1;
                sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
            }
            Err(what) => {
                *refused.entry((stage.name(), chip)).or_default() += 1;
                reasons.insert(what);
            }
        }
    }
    println!(
        "{:10} {:10} {:>8} {:>8} {}",
        "stage",
        "chip",
        "modules",
        "refused",
        MEASURES.map(|name| format!("{name:>13}")).concat()
    );
    for ((stage, chip), (count, sums)) in &logs {
        let means = sums.map(|sum| format!("{:>13.3}", (sum / *count as f64).exp())).concat();
        let refused = refused.get(&(*stage, chip.clone())).copied().unwrap_or_default();
        println!("{stage:10} {chip:10} {count:>8} {refused:>8} {means}");
    }
    println!("reasons: {reasons:#?}");
    assert!(!logs.is_empty(), "something is compiled");
}
