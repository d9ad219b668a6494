//! Comparison of graphics stages: the code of this compiler for the graphics shaders of the conformance suite, and the code that Mesa's RADV generated for them with ACO.
//!
//! Modules are compiled from SPIR-V, each alone, or two where the GPU merges their stages: RADV links the stages of a pipeline first, and knows the formats of vertices and attachments, which are not
//! recorded. Colours are exported as floats of 16 bits, as most of its pipelines do. Ratios are geometric means by stage and chip. Without `UNWEDGE_ALL`, some
//! modules are taken of the stages that have many. Nothing is required of the ratios yet.

mod rig;

use rig::recorded::columns;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::graphics::TargetFormat;
use unwedge_aco::occupancy::allocated_vgprs;
use unwedge_aco::stages::PipelineShape;
use unwedge_aco::{Options, compile, compile_merged};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::spirv::{Options as ReadOptions, Reader, words};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_testkit::data;
use unwedge_testkit::parallel;

const MEASURES: [&str; 3] = ["instructions", "code_size", "vgprs"];
/// Without `UNWEDGE_ALL`, one of this many vertex or fragment shaders is taken.
const SAMPLE: usize = 29;

/// A shader: its stage, entry point and module.
type Source<'a> = (Stage, String, &'a [u8]);

/// One shader, or two that are merged, and what was made of them.
struct Job<'a> {
    /// The hardware stage and the stages of the shaders.
    name: String,
    shaders: Vec<Source<'a>>,
    shape: PipelineShape,
    /// By chip: the size of a wave, and the measures.
    chips: BTreeMap<String, (bool, [f64; MEASURES.len()])>,
}

/// Shaders of compute, ray tracing and those that RADV adds have none.
fn stage_of(name: &str) -> Option<Stage> {
    Some(match name {
        "vertex" => Stage::Vertex,
        "tess_ctrl" => Stage::TessControl,
        "tess_eval" => Stage::TessEval,
        "geometry" => Stage::Geometry,
        "fragment" => Stage::Fragment,
        _ => return None,
    })
}

/// The ratios of a job on a chip, or why there are none.
fn measure(
    job: &Job,
    chip: &str,
    wave64: bool,
    baseline: &[f64; MEASURES.len()],
) -> Result<[f64; MEASURES.len()], String> {
    let gpu = Gpu::new(chip).map_err(|error| error.to_string())?.with_wave64(wave64);
    let mut shaders = Vec::new();
    for (stage, entry, module) in &job.shaders {
        let mut shader = Shader::default();
        let read = ReadOptions { entry: Some(entry.clone()), stage: Some(*stage), ..ReadOptions::default() };
        let words = words(module).map_err(|error| error.to_string())?;
        Reader::default().read(&words, &read, &mut shader).map_err(|error| error.to_string())?;
        shaders.push(shader);
    }
    let mut options = Options::new(gpu);
    options.graphics.shape = job.shape;
    options.graphics.targets.fill(TargetFormat::Fp16);
    let compiled = match &mut shaders[..] {
        [first, second] => compile_merged(first, second, &options),
        [shader] => compile(shader, &options),
        shaders => return Err(format!("{} shaders", shaders.len())),
    };
    let compiled = compiled.map_err(|error| error.to_string())?;
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
        "hw_stage",
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
    for [chip, hardware, stages, wave, module, hash, entry, specialized, a, b, c] in columns(&rows, names) {
        let parts = |cell: &str| cell.split('+').map(str::to_owned).collect::<Vec<String>>();
        let (files, hashes, entries) = (parts(&module), parts(&hash), parts(&entry));
        let shader = |(number, stage): (usize, &str)| -> Option<Source<'_>> {
            let file = files.get(number)?;
            let name = if file.is_empty() { hashes.get(number)? } else { file.trim_end_matches(".spv") };
            Some((stage_of(stage)?, entries.get(number)?.clone(), &modules.get(name)?[..]))
        };
        let shaders: Option<Vec<Source<'_>>> = stages.split('+').enumerate().map(shader).collect();
        let Some(shaders) = shaders.filter(|_| specialized == "0") else { continue };
        let beside = match &hardware[..] {
            "LS" => Some(Stage::TessControl),
            "ES" => Some(Stage::Geometry),
            _ => None,
        };
        let all = shaders.iter().map(|(stage, ..)| *stage).chain(beside);
        let shape = all.fold(PipelineShape::Plain, PipelineShape::with);
        // The same code runs as NGG and as VS.
        let name = match &hardware[..] {
            "LS" | "ES" => format!("{stages} ({hardware})"),
            _ => stages,
        };
        let key = (name.clone(), format!("{module} {hash}"), entry);
        let job = jobs.entry(key).or_insert_with(|| Job { name, shaders, shape, chips: BTreeMap::new() });
        let measures = [a, b, c].map(|cell| cell.parse().expect("a number"));
        job.chips.entry(chip).or_insert((wave == "64", measures));
    }
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let jobs: Vec<Job> = jobs
        .into_values()
        .enumerate()
        .filter(|(number, job)| {
            all || number % SAMPLE == 0 || !matches!(&job.name[..], "vertex" | "fragment")
        })
        .map(|(_, job)| job)
        .collect();
    assert!(!jobs.is_empty(), "a module is measured");
    let measured = parallel::map(&jobs, |job| {
        let chips = job.chips.iter();
        chips
            .map(|(chip, (wave64, baseline))| {
                (job.name.clone(), chip.clone(), measure(job, chip, *wave64, baseline))
            })
            .collect::<Vec<_>>()
    });
    let mut logs: BTreeMap<(String, String), (usize, [f64; MEASURES.len()])> = BTreeMap::new();
    let mut refused: BTreeMap<(String, String), usize> = BTreeMap::new();
    let mut reasons = BTreeSet::new();
    for (stage, chip, result) in measured.into_iter().flatten() {
        match result {
            Ok(ratios) => {
                let (count, sums) = logs.entry((stage, chip)).or_default();
                *count += 1;
                sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
            }
            Err(what) => {
                *refused.entry((stage, chip)).or_default() += 1;
                reasons.insert(what);
            }
        }
    }
    println!(
        "{:18} {:10} {:>8} {:>8} {}",
        "stage",
        "chip",
        "modules",
        "refused",
        MEASURES.map(|name| format!("{name:>13}")).concat()
    );
    for ((stage, chip), (count, sums)) in &logs {
        let means = sums.map(|sum| format!("{:>13.3}", (sum / *count as f64).exp())).concat();
        let refused = refused.get(&(stage.clone(), chip.clone())).copied().unwrap_or_default();
        println!("{stage:18} {chip:10} {count:>8} {refused:>8} {means}");
    }
    println!("reasons: {reasons:#?}");
    for stage in ["vertex", "fragment", "tess_eval", "vertex+tess_ctrl", "vertex+geometry"] {
        assert!(logs.keys().any(|(name, _)| *name == stage), "a {stage} shader is compiled");
    }
}
