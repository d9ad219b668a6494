//! The measure: what this compiler makes of the NIR that Mesa gave ACO, beside what ACO made of it.
//!
//! Every text is compiled for its chip, executed, and checked against recorded results. Ratios are geometric means over shaders, by chip. Without `UNWEDGE_ALL`,
//! some shaders of each chip are taken. `UNWEDGE_LISTINGS=DIR` writes the code of each to `DIR/CHIP/SHADER.s`,
//! `UNWEDGE_ACO_DEBUG` has names as `noopt`.

mod rig;

use rig::recorded::{MEASURES, Problem, Results, columns, expected, judge, measures, write_listing};
use std::collections::BTreeMap;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::nir;
use unwedge_shader::ir::Shader;
use unwedge_testkit::data;
use unwedge_testkit::parallel;

/// The most that the geometric mean of a ratio may be.
const MOST: [f64; MEASURES.len()] = [1.08, 1.08, 0.95, 1.08, 1.08];
/// Of how many shaders one is taken without `UNWEDGE_ALL`.
const SAMPLE: usize = 12;

/// A text and what is known of it.
struct Job<'a> {
    chip: &'a str,
    shader: &'a str,
    text: String,
    args: &'a str,
    gpu: Gpu,
    baseline: [f64; MEASURES.len()],
    results: &'a Results,
}

fn build(job: &Job) -> Result<Compiled, Problem> {
    let arguments = nir::Arguments::parse(job.args).map_err(|error| ("arguments", error.to_string()))?;
    let options = nir::Options { arguments, file: job.shader.to_owned() };
    let mut shader = Shader::default();
    nir::read(&job.text, &options, &mut shader).map_err(|error| ("load", error.to_string()))?;
    let names = std::env::var("UNWEDGE_ACO_DEBUG").unwrap_or_default();
    let passes = names.parse().expect("names of passes");
    compile(&mut shader, &Options { passes, ..Options::new(job.gpu) })
        .map_err(|error| ("compile", error.to_string()))
}

/// The measures as ratios to those of the baseline.
fn measure(job: &Job) -> Result<[f64; MEASURES.len()], Problem> {
    let compiled = build(job)?;
    write_listing(job.chip, job.shader, &compiled, &job.gpu);
    if std::env::var_os("UNWEDGE_UNCHECKED").is_none() {
        judge(&compiled, &Options::new(job.gpu), job.results)?;
    }
    let own = measures(&compiled, &job.gpu, None);
    let mut ratios = [0.0; MEASURES.len()];
    for ((ratio, own), baseline) in ratios.iter_mut().zip(own).zip(job.baseline) {
        *ratio = own / baseline;
    }
    Ok(ratios)
}

#[test]
fn code_is_compared_with_that_of_aco() {
    let (Some(expected), Some(rows), Some(binaries)) = (
        expected(),
        data::text("amd/shaders/baseline.csv.gz"),
        data::text("amd/shaders/aco_binaries.csv.gz"),
    ) else {
        eprintln!("no baseline under {}", data::root().display());
        return;
    };
    let baseline: BTreeMap<(String, String), [f64; MEASURES.len()]> =
        columns(&rows, ["family", "backend", "shader"])
            .into_iter()
            .zip(columns(&rows, MEASURES))
            .filter(|([_, backend, _], _)| backend == "aco")
            .map(|([family, _, shader], cells)| {
                ((family, shader), cells.map(|cell| cell.parse().expect("a number")))
            })
            .collect();
    let registers: BTreeMap<(String, String), (String, String)> =
        columns(&binaries, ["family", "shader", "wave", "args"])
            .into_iter()
            .map(|[family, shader, wave, args]| ((family, shader), (wave, args)))
            .collect();
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let archives = data::files("amd/shaders", ".tar.gz");
    let names = archives.iter().filter_map(|path| path.file_name()?.to_str());
    let chips: Vec<&str> =
        names.filter_map(|name| name.strip_prefix("mesa_ir_")?.strip_suffix(".tar.gz")).collect();
    let mut texts = Vec::new();
    for (turn, chip) in chips.iter().enumerate() {
        let archive = data::archive(&format!("amd/shaders/mesa_ir_{chip}.tar.gz"));
        let of_chip = archive.into_iter().filter_map(|(path, bytes)| {
            let file = path.rsplit('/').next()?.strip_suffix(".nir")?.to_owned();
            Some((file, String::from_utf8(bytes).ok()?))
        });
        let sample = of_chip.enumerate().filter(|(number, _)| all || number % SAMPLE == turn % SAMPLE);
        texts.extend(sample.map(|(_, (file, text))| ((*chip).to_owned(), file, text)));
    }
    let mut jobs = Vec::new();
    for key_and_text in &texts {
        let (chip, shader, text) = key_and_text;
        let key = (chip.clone(), shader.clone());
        let (Some(row), Some((wave, args)), Some(results)) =
            (baseline.get(&key), registers.get(&key), expected.get(shader))
        else {
            continue;
        };
        let gpu = Gpu::new(chip).expect("a chip").with_wave64(wave == "64");
        jobs.push(Job { chip, shader, text: text.clone(), args, gpu, baseline: *row, results });
    }
    assert!(!jobs.is_empty(), "a text is compiled");
    let measured = parallel::map(&jobs, |job| (job.chip, job.shader, measure(job)));
    let mut failures = Vec::new();
    let mut logs: BTreeMap<&str, (usize, [f64; MEASURES.len()])> = BTreeMap::new();
    for (chip, shader, result) in measured {
        match result {
            Ok(ratios) => {
                let (count, sums) = logs.entry(chip).or_default();
                *count += 1;
                sums.iter_mut().zip(ratios).for_each(|(sum, ratio)| *sum += ratio.ln());
            }
            Err((step, what)) => failures.push(format!("{chip} {shader}: {step}: {what}")),
        }
    }
    println!("{:10} {:>7} {}", "chip", "shaders", MEASURES.map(|name| format!("{name:>19}")).concat());
    for (chip, (count, sums)) in &logs {
        let means = sums.map(|sum| (sum / *count as f64).exp());
        println!("{chip:10} {count:>7} {}", means.map(|mean| format!("{mean:>19.3}")).concat());
        for ((name, mean), most) in MEASURES.iter().zip(means).zip(MOST) {
            if mean > most {
                failures.push(format!("{chip}: {name} are {mean:.3} of those of ACO, more than {most}"));
            }
        }
    }
    let shown: Vec<_> = failures.iter().take(40).collect();
    assert!(failures.is_empty(), "{} failures: {shown:#?}", failures.len());
}
