//! The measure over the conformance suite: what this compiler makes of the final NIR of its shaders, beside what ACO made of the same text.
//!
//! Registers that hold arguments are given in the order of their numbers. Ratios are geometric means over shaders, by stage and chip. Without
//! `UNWEDGE_ALL`, some shaders of each stage are taken. `UNWEDGE_LISTINGS=DIR` writes the code of each to `DIR/CHIP/SHADER.s` and its ratios to
//! `DIR/CHIP.ratios`.

mod rig;

use rig::recorded::{columns, in_parallel};
use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_aco::cost::estimate;
use unwedge_aco::occupancy::allocated_vgprs;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::{Gpu, listing};
use unwedge_shader::front::nir;
use unwedge_shader::ir::Shader;
use unwedge_testkit::data;
use unwedge_testkit::pack::bytes;

/// What is compared.
const MEASURES: [&str; 5] = ["instructions", "code_size", "vgprs", "latency", "inverse_throughput"];
/// Of how many shaders of a stage one is taken without `UNWEDGE_ALL`.
const SAMPLE: usize = 16;
const CHIPS: [&str; 2] = ["navi21", "vega10"];

/// A text and what is known of it.
struct Job {
    chip: &'static str,
    stage: String,
    shader: String,
    text: String,
    gpu: Gpu,
    baseline: [f64; MEASURES.len()],
}

fn build(job: &Job) -> Result<Compiled, String> {
    let arguments = nir::Arguments::registers(&job.text).map_err(|error| error.to_string())?;
    let options = nir::Options { arguments, file: job.shader.clone() };
    let mut shader = Shader::default();
    nir::read(&job.text, &options, &mut shader).map_err(|error| error.cause.to_string())?;
    compile(&mut shader, &Options::new(job.gpu)).map_err(|error| error.to_string())
}

/// The measures as ratios to those of the baseline.
fn measure(job: &Job) -> Result<[f64; MEASURES.len()], String> {
    let compiled = build(job)?;
    if let Some(folder) = std::env::var_os("UNWEDGE_LISTINGS") {
        let folder = PathBuf::from(folder).join(job.chip);
        let mut text = String::new();
        let options = listing::AmdListingOptions::default();
        let code = bytes(&compiled.code.words);
        listing::write(&code, &job.gpu, &options, &mut text, &mut |_, _| {});
        std::fs::create_dir_all(&folder)
            .and_then(|()| std::fs::write(folder.join(format!("{}.s", job.shader)), text))
            .expect("the folder of listings can be written");
    }
    let code = &compiled.code;
    let vgprs = allocated_vgprs(&job.gpu, code.registers);
    let cost = estimate(code, &job.gpu, None);
    let counts = [code.instructions, code.words.len() * 4, usize::from(vgprs)];
    let cycles = [cost.latency, cost.inverse_throughput];
    let own = counts.map(|count| count as f64).into_iter().chain(cycles.map(|cycles| cycles as f64));
    let mut ratios = [0.0; MEASURES.len()];
    for ((ratio, own), baseline) in ratios.iter_mut().zip(own).zip(job.baseline) {
        *ratio = own / baseline.max(1.0);
    }
    Ok(ratios)
}

/// The measures of all rows, with the size of a wave.
type Baseline = BTreeMap<(String, String, String), (String, [f64; MEASURES.len()])>;

fn baseline(rows: &str) -> Baseline {
    let keys = columns(rows, ["script", "order", "chip", "wave_size"]);
    keys.into_iter()
        .zip(columns(rows, MEASURES))
        .map(|([script, order, chip, wave], cells)| {
            let script = script.trim_end_matches(".amber").replace('/', ".");
            ((script, order, chip), (wave, cells.map(|cell| cell.parse().unwrap_or(0.0))))
        })
        .collect()
}

fn jobs(baseline: &Baseline) -> Vec<Job> {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let mut jobs = Vec::new();
    for chip in CHIPS {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (path, bytes) in data::archive(&format!("amd/cts/mesa_ir_{chip}.tar.gz")) {
            let file = path.rsplit('/').next().unwrap_or_default();
            let Some(shader) = file.strip_suffix(".nir") else { continue };
            let mut parts = shader.rsplitn(3, '.');
            let (Some(stage), Some(order), Some(script)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let key = (script.to_owned(), order.to_owned(), chip.to_owned());
            let Some((wave, measures)) = baseline.get(&key) else { continue };
            let number = seen.entry(stage.to_owned()).or_default();
            *number += 1;
            if !all && *number % SAMPLE != 1 {
                continue;
            }
            jobs.push(Job {
                chip,
                stage: stage.to_owned(),
                shader: shader.to_owned(),
                text: String::from_utf8(bytes).unwrap_or_default(),
                gpu: Gpu::new(chip).expect("a chip").with_wave64(wave == "64"),
                baseline: *measures,
            });
        }
    }
    jobs
}

#[test]
fn code_is_compared_with_that_of_aco_by_stage() {
    let Some(rows) = data::text("amd/cts/baseline.csv.gz") else {
        eprintln!("no baseline under {}", data::root().display());
        return;
    };
    let jobs = jobs(&baseline(&rows));
    assert!(!jobs.is_empty(), "a text is compiled");
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let measured = in_parallel(&numbers, |&number| (number, measure(&jobs[number])));
    let mut logs: BTreeMap<(&str, &str), (usize, usize, [f64; MEASURES.len()])> = BTreeMap::new();
    let mut reasons: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    let mut lists: BTreeMap<&str, String> = BTreeMap::new();
    for (number, result) in measured {
        let job = &jobs[number];
        let (count, refused, sums) = logs.entry((&job.stage, job.chip)).or_default();
        match result {
            Ok(ratios) => {
                *count += 1;
                sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
                let cells = ratios.map(|ratio| format!(" {ratio:.3}")).concat();
                *lists.entry(job.chip).or_default() += &format!("{}{cells}\n", job.shader);
            }
            Err(reason) => {
                *refused += 1;
                reasons.entry(reason).or_insert((0, &job.shader)).0 += 1;
            }
        }
    }
    if let Some(folder) = std::env::var_os("UNWEDGE_LISTINGS") {
        for (chip, list) in lists {
            let path = PathBuf::from(&folder).join(format!("{chip}.ratios"));
            std::fs::write(path, list).expect("the folder of listings can be written");
        }
    }
    println!(
        "{:18} {:8} {:>7} {:>7} {}",
        "stage",
        "chip",
        "shaders",
        "refused",
        MEASURES.map(|name| format!("{name:>19}")).concat()
    );
    for ((stage, chip), (count, refused, sums)) in &logs {
        let means = sums.map(|sum| format!("{:>19.3}", (sum / (*count).max(1) as f64).exp())).concat();
        println!("{stage:18} {chip:8} {count:>7} {refused:>7} {means}");
    }
    for (reason, (count, shader)) in &reasons {
        println!("{count:>5} {reason} ({shader})");
    }
}
