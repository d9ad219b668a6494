//! The measure over the conformance suite: what this compiler makes of the final NIR of its shaders, beside what ACO made of the same text.
//!
//! Registers that hold arguments are given in the order of their numbers. Ratios are geometric means over shaders, by stage and chip. Without
//! `UNWEDGE_ALL`, some shaders of each stage that has many are taken; `UNWEDGE_SHADER=LIST` takes those whose names contain one of these. `UNWEDGE_LISTINGS=DIR` writes the code of each to `DIR/CHIP/SHADER.s` and its ratios to
//! `DIR/CHIP.ratios`.

mod rig;

use rig::driver::{BUFFER_BYTES, DriverText, GroupShape, workgroup};
use rig::recorded::{MEASURES, columns, measures, write_listing};
use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_aco::abi::{ArgLocation, Argument};
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::nir;
use unwedge_shader::ir::Shader;
use unwedge_sim::amdgcn::{Dispatch, MessageKind, Program, Timing, WaveMessage, run};
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;
use unwedge_testkit::parallel;

/// The most that the geometric mean of a ratio may be, by stage and chip.
const MOST: [(&str, &str, [f64; MEASURES.len()]); 13] = [
    ("compute", "navi21", [1.05, 1.05, 1.00, 0.90, 0.90]),
    ("compute", "vega10", [1.05, 1.05, 1.05, 0.95, 0.90]),
    ("fragment", "navi21", [1.05, 1.03, 1.03, 1.05, 1.05]),
    ("fragment", "vega10", [1.05, 1.03, 1.00, 1.05, 1.05]),
    ("tess_eval", "navi21", [1.03, 1.03, 1.02, 1.03, 1.04]),
    ("tess_eval", "vega10", [1.00, 1.01, 0.95, 1.03, 1.04]),
    ("vertex", "navi21", [1.03, 1.03, 1.02, 1.03, 1.02]),
    ("vertex", "vega10", [1.02, 1.02, 1.02, 1.02, 1.00]),
    ("raygen", "navi21", [0.98, 1.01, 0.95, 0.85, 0.85]),
    ("vertex+geometry", "navi21", [1.02, 1.02, 0.75, 1.05, 0.85]),
    ("vertex+geometry", "vega10", [1.01, 1.02, 0.95, 1.08, 1.00]),
    ("vertex+tess_ctrl", "navi21", [1.00, 1.00, 0.80, 1.02, 0.97]),
    ("vertex+tess_ctrl", "vega10", [1.00, 1.00, 0.82, 1.02, 0.87]),
];
/// The least share of the texts of a stage whose code is compared with that of ACO.
const LEAST_COMPARED: [(&str, f64); 6] = [
    ("compute", 0.75),
    ("fragment", 0.40),
    ("tess_eval", 1.0),
    ("vertex", 1.0),
    ("vertex+geometry", 1.0),
    ("vertex+tess_ctrl", 1.0),
];
/// Of how many shaders of a stage with many one is taken without `UNWEDGE_ALL`.
const SAMPLE: usize = 16;
/// In how many orders of waves ACO's code runs to see whether its results depend on them.
const ORDERS: u64 = 16;
/// How much larger means of a sample may be.
const SAMPLE_SLACK: f64 = 1.25;
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

/// Products may be rounded with sums, as ACO does it.
fn options_of(job: &Job) -> Options {
    Options { contract: true, ..Options::new(job.gpu) }
}

fn build(job: &Job) -> Result<Compiled, String> {
    let arguments = nir::Arguments::registers(&job.text).map_err(|error| error.to_string())?;
    let options = nir::Options { arguments, file: job.shader.clone() };
    let mut shader = Shader::default();
    nir::read(&job.text, &options, &mut shader).map_err(|error| error.cause.to_string())?;
    compile(&mut shader, &options_of(job)).map_err(|error| error.to_string())
}

/// The measures as ratios to those of the baseline. Its cycles have 32 bits: those of code in deeply nested loops wrapped around.
fn measure(job: &Job) -> Result<Ratios, String> {
    let compiled = build(job)?;
    write_listing(job.chip, &job.shader, &compiled, &job.gpu);
    let invocations = (job.stage == "compute").then(|| workgroup(&job.text).into_iter().product());
    let own = measures(&compiled, &job.gpu, invocations);
    let wraps = MEASURES.iter().zip(own).any(|(name, own)| *name == "latency" && own > f64::from(u32::MAX));
    let mut ratios = [None; MEASURES.len()];
    for (((ratio, name), own), baseline) in ratios.iter_mut().zip(MEASURES).zip(own).zip(job.baseline) {
        let is_cycles = matches!(name, "latency" | "inverse_throughput");
        *ratio = (!(wraps && is_cycles)).then_some(own / baseline.max(1.0));
    }
    Ok(ratios)
}

/// By measure; `None` if the baseline does not have it.
type Ratios = [Option<f64>; MEASURES.len()];

/// Shaders of a stage.
#[derive(Default)]
struct StageRatios {
    shaders: usize,
    refused: usize,
    /// By measure: how many ratios there are, and the sum of their logarithms.
    sums: [(usize, f64); MEASURES.len()],
}

impl StageRatios {
    fn add(&mut self, ratios: Ratios) {
        self.shaders += 1;
        for ((count, sum), ratio) in self.sums.iter_mut().zip(ratios) {
            *count += usize::from(ratio.is_some());
            *sum += ratio.map_or(0.0, f64::ln);
        }
    }

    fn means(&self) -> [f64; MEASURES.len()] {
        self.sums.map(|(count, sum)| (sum / count.max(1) as f64).exp())
    }
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
    let named = std::env::var("UNWEDGE_SHADER").ok();
    let all = std::env::var_os("UNWEDGE_ALL").is_some() || named.is_some();
    let mut jobs = Vec::new();
    for chip in CHIPS {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (path, bytes) in data::archive(&format!("amd/cts/mesa_ir_{chip}.tar.gz")) {
            let file = path.rsplit('/').next().unwrap_or_default();
            let Some(shader) = file.strip_suffix(".nir") else { continue };
            if named.as_ref().is_some_and(|names| !names.split(',').any(|name| shader.contains(name))) {
                continue;
            }
            let mut parts = shader.rsplitn(3, '.');
            let (Some(stage), Some(order), Some(script)) = (parts.next(), parts.next(), parts.next()) else {
                continue;
            };
            let key = (script.to_owned(), order.to_owned(), chip.to_owned());
            let Some((wave, measures)) = baseline.get(&key) else { continue };
            let number = seen.entry(stage.to_owned()).or_default();
            *number += 1;
            let many = matches!(stage, "vertex" | "fragment" | "compute");
            if !all && many && *number % SAMPLE != 1 {
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
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let jobs = jobs(&baseline(&rows));
    assert!(!jobs.is_empty(), "a text is compiled");
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let measured = parallel::map(&numbers, |&number| (number, measure(&jobs[number])));
    let mut stages: BTreeMap<(&str, &str), StageRatios> = BTreeMap::new();
    let mut reasons: BTreeMap<String, (usize, &str)> = BTreeMap::new();
    let mut lists: BTreeMap<&str, String> = BTreeMap::new();
    for (number, result) in measured {
        let job = &jobs[number];
        let stage = stages.entry((&job.stage, job.chip)).or_default();
        match result {
            Ok(ratios) => {
                stage.add(ratios);
                let cells = ratios.map(|ratio| format!(" {:.3}", ratio.unwrap_or(f64::NAN))).concat();
                *lists.entry(job.chip).or_default() += &format!("{}{cells}\n", job.shader);
            }
            Err(reason) => {
                stage.refused += 1;
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
    for ((stage, chip), ratios) in &stages {
        let means = ratios.means().map(|mean| format!("{mean:>19.3}")).concat();
        println!("{stage:18} {chip:8} {:>7} {:>7} {means}", ratios.shaders, ratios.refused);
    }
    for (reason, (count, shader)) in &reasons {
        println!("{count:>5} {reason} ({shader})");
    }
    for (stage, chip, most) in MOST {
        let Some(ratios) = stages.get(&(stage, chip)) else { continue };
        assert!(ratios.shaders > 0, "a {stage} shader is measured on {chip}");
        assert!(ratios.refused * 4 <= ratios.shaders, "{stage} on {chip}: {} refused", ratios.refused);
        for ((name, mean), most) in MEASURES.iter().zip(ratios.means()).zip(most) {
            let bound = if all { most } else { most * SAMPLE_SLACK };
            assert!(mean <= bound, "{stage} on {chip}: {name} are {mean:.3} of those of ACO");
        }
    }
}

/// What the code of one compiler leaves: exports and messages in order, and the bytes of memory.
type Left = (Vec<WaveMessage>, Vec<u8>);

/// The words of an export that is not to null, by component.
type Exported<'a> = (u32, u8, u64, [Option<&'a Vec<u32>>; 4]);

const CODE: u64 = 0x0080_0000;
/// The target of exports that only say that a wave has ended its exports.
const NULL_TARGET: u8 = 9;

/// The words of code that ACO printed.
fn printed_words(text: &str) -> Vec<u32> {
    let mut words: Vec<u32> = Vec::new();
    let mut last = Vec::new();
    for line in text.lines() {
        if let Some(count) = line.trim().strip_prefix("(then repeated ") {
            let count = count.split(' ').next().and_then(|count| count.parse().ok()).unwrap_or(0);
            (0..count).for_each(|_| words.extend(&last));
        } else if let Some((_, code)) = line.split_once("; ") {
            last = code.split_whitespace().filter_map(|word| u32::from_str_radix(word, 16).ok()).collect();
            words.extend(&last);
        }
    }
    words
}

/// Why a text is not compared, if what it reads is not known, or its result is not settled: ACO takes the lower half of the exponent of `ldexp` of 16
/// bits, and stores past the end of a buffer have an effect or not.
fn not_comparable(job: &Job) -> Option<&'static str> {
    let has = |name: &str| job.text.contains(name);
    let halves = job.text.lines().any(|line| {
        let ty = line.split_whitespace().nth(1).unwrap_or_default();
        line.contains(" = ldexp ") && ty.split('x').next() == Some("16")
    });
    let past_the_end = job.text.lines().any(|line| {
        let offset = line.split_once("align_mul=1073741824, align_offset=").map(|(_, rest)| rest);
        let offset = offset.and_then(|rest| rest.trim_end_matches(')').parse::<usize>().ok());
        offset.is_some_and(|offset| offset >= BUFFER_BYTES)
    });
    let reasons = [
        ("ray tracing", job.stage == "raygen"),
        ("images", has("@bindless_image") || has("texture_handle")),
        ("scratch", has("scratch")),
        ("inputs of fragments", has("@load_interpolated_input") || has("@load_input")),
        ("registers of fragments", job.stage == "fragment" && has("@load_vector_arg_amd")),
        ("exponents of 16 bits", halves),
        ("stores past the end", past_the_end),
    ];
    reasons.into_iter().find_map(|(reason, is_so)| is_so.then_some(reason))
}

/// Bytes that ACO leaves between its code and constants.
const PADDING: u64 = 20;

/// Bytes of constants after the code.
fn constant_bytes(text: &str) -> u64 {
    let size = text.lines().find_map(|line| line.strip_prefix("constants: "));
    size.and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// Code and what the driver tells the GPU with it.
struct Binary<'a> {
    words: &'a [u32],
    /// Bytes from its end to its constants.
    padding: u64,
    /// Scalar registers with the number of the workgroup.
    group_id: [Option<u16>; 3],
    float_mode: u8,
}

/// Runs code as a workgroup. The seed of the timing, and so the order of waves, depends on `order`.
fn run_code(
    job: &Job,
    driver: &DriverText<'_>,
    shape: &GroupShape,
    binary: &Binary<'_>,
    order: u64,
) -> Result<Left, String> {
    let Binary { words, padding, group_id, float_mode } = *binary;
    let mut rng = Rng::new(job.shader.len() as u64 + 1);
    // Parts of denormals are flushed or kept.
    let denormals = !job.text.contains(" = ffract ") && !job.text.contains(" = frexp");
    let mut memory = driver.memory(denormals);
    let constants: Vec<u32> = (0..constant_bytes(&job.text) / 4).map(|_| rng.below(9) as u32).collect();
    if !constants.is_empty() {
        let at = CODE + words.len() as u64 * 4 + padding;
        memory.map(at, bytes(&constants)).map_err(|_| "memory".to_owned())?;
    }
    let mode = 0x100 | u32::from(float_mode);
    let timing = Timing::Adversarial { seed: job.shader.len() as u64 + order };
    let dispatch = Dispatch { mode, timing, ..driver.dispatch(shape, group_id) };
    let program = Program::new(words, CODE, job.gpu);
    let outcome = run(&program, &mut memory, &dispatch, None);
    if let Some(fault) = outcome.faults.first() {
        return Err(format!("{fault}: {}", program.text(fault.at).unwrap_or_default()));
    }
    Ok((outcome.messages, DriverText::left(&memory)))
}

/// Whether two words are the same number, up to what is rounded in another way.
fn is_close(a: u32, b: u32) -> bool {
    let near = |x: f64, y: f64, by: f64| {
        x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= by * x.abs().max(y.abs())
    };
    let float = |bits: u32| f64::from(f32::from_bits(bits));
    let half = |bits: u32| {
        let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(-24),
            31 if fraction == 0.0 => f64::INFINITY,
            31 => f64::NAN,
            _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent as i32 - 15),
        };
        if bits >> 15 & 1 != 0 { -magnitude } else { magnitude }
    };
    a == b
        || near(float(a), float(b), 1e-4)
        || near(half(a), half(b), 4e-3) && near(half(a >> 16), half(b >> 16), 4e-3)
}

/// Exports by wave and target. One without lanes has no effect.
fn exports(messages: &[WaveMessage]) -> Vec<Exported<'_>> {
    let mut all = Vec::new();
    for message in messages.iter().filter(|message| message.lanes != 0) {
        if let MessageKind::Export { target, values, .. } = &message.kind
            && *target != NULL_TARGET
        {
            let values = std::array::from_fn(|at| values[at].as_ref());
            all.push((message.wave, *target, message.lanes, values));
        }
    }
    all.sort_by_key(|(wave, target, ..)| (*wave, *target));
    all
}

/// What waves send, by wave.
fn sent(messages: &[WaveMessage]) -> Vec<(u32, u32, u32)> {
    let message = |message: &WaveMessage| match message.kind {
        MessageKind::Message { code, m0 } => Some((message.wave, code, m0)),
        MessageKind::Export { .. } => None,
    };
    let mut all: Vec<_> = messages.iter().filter_map(message).collect();
    all.sort_by_key(|(wave, ..)| *wave);
    all
}

/// Why the code of both compilers is not compared, with details, or what differs.
enum Difference {
    NotCompared(&'static str, String),
    Differs(String),
}

fn compare(job: &Job, asm: &str) -> Result<(), Difference> {
    let skipped = |reason| Difference::NotCompared(reason, String::new());
    let driver = DriverText::new(&job.text, &job.stage, job.chip, job.gpu);
    let driver = driver.ok_or_else(|| skipped("arguments are elsewhere"))?;
    let options = nir::Options { arguments: driver.arguments(), file: job.shader.clone() };
    let mut shader = Shader::default();
    nir::read(&job.text, &options, &mut shader).map_err(|_| skipped("the text is refused"))?;
    let compiled = compile(&mut shader, &options_of(job)).map_err(|_| skipped("the text is refused"))?;
    let own_ids = [0, 1, 2].map(|axis| {
        let id = |location: &&ArgLocation| location.argument == Argument::WorkgroupId(axis);
        compiled.args.iter().find(id).map(|location| location.reg.reg().0)
    });
    let ids = driver.group_id(own_ids.map(|id| id.is_some()));
    let (theirs, float_mode) = (printed_words(asm), compiled.float_mode);
    let binaries = [
        Binary { words: &theirs, padding: PADDING, group_id: ids, float_mode },
        Binary { words: &compiled.code.words, padding: 0, group_id: own_ids, float_mode },
    ];
    for shape in driver.shapes() {
        let theirs = |order| {
            run_code(job, &driver, &shape, &binaries[0], order)
                .map_err(|fault| Difference::NotCompared("ACO's code ends with an error", fault))
        };
        let first = theirs(0)?;
        let own = run_code(job, &driver, &shape, &binaries[1], 0)
            .map_err(|fault| Difference::Differs(format!("{fault} {shape:?}")))?;
        let Err(what) = compare_left(&first, &own) else { continue };
        // Waves that exchange a word leave that of the last one.
        for order in 1..ORDERS {
            if compare_left(&first, &theirs(order)?).is_err() {
                return Err(Difference::NotCompared("ACO's code depends on the order of waves", what));
            }
        }
        return Err(Difference::Differs(format!("{what} {shape:?}")));
    }
    Ok(())
}

fn compare_left(theirs: &Left, own: &Left) -> Result<(), String> {
    let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
    let mut pairs = theirs.1.chunks(4).zip(own.1.chunks(4)).enumerate();
    let differing =
        (theirs.1 != own.1).then(|| pairs.find(|(_, (a, b))| a != b && !is_close(word(a), word(b))));
    if let Some((at, (a, b))) = differing.flatten() {
        return Err(format!("word {at:#x} of memory is {:#x}, not {:#x}", word(b), word(a)));
    }
    if sent(&theirs.0) != sent(&own.0) {
        return Err(format!("messages {:x?}, not {:x?}", sent(&own.0), sent(&theirs.0)));
    }
    let (theirs, own) = (exports(&theirs.0), exports(&own.0));
    if theirs.len() != own.len() {
        return Err(format!("{} exports, not {}", own.len(), theirs.len()));
    }
    for ((wave, target, lanes, a), (own_wave, other, own_lanes, b)) in theirs.iter().zip(&own) {
        if (wave, target, lanes) != (own_wave, other, own_lanes) {
            return Err(format!(
                "an export of wave {own_wave} to {other} of lanes {own_lanes:#x}, not of wave {wave} to {target} of {lanes:#x}"
            ));
        }
        for (component, (a, b)) in a.iter().zip(b).enumerate() {
            let (Some(a), Some(b)) = (a, b) else { continue };
            let differs = |lane: &usize| lanes >> lane & 1 != 0 && !is_close(a[*lane], b[*lane]);
            if let Some(lane) = (0..a.len().min(b.len())).find(differs) {
                return Err(format!(
                    "export to {target}, component {component}, lane {lane}: {:#x}, not {:#x}",
                    b[lane], a[lane]
                ));
            }
        }
    }
    Ok(())
}

#[test]
fn code_does_what_that_of_aco_does() {
    let Some(rows) = data::text("amd/cts/baseline.csv.gz") else { return };
    let jobs: Vec<Job> = jobs(&baseline(&rows));
    let mut texts: BTreeMap<(&str, String), String> = BTreeMap::new();
    for chip in CHIPS {
        for (path, bytes) in data::archive(&format!("amd/cts/mesa_ir_{chip}.tar.gz")) {
            let file = path.rsplit('/').next().unwrap_or_default();
            if let (Some(shader), Ok(text)) = (file.strip_suffix(".asm"), String::from_utf8(bytes)) {
                texts.insert((chip, shader.to_owned()), text);
            }
        }
    }
    let numbers: Vec<usize> = (0..jobs.len()).collect();
    let compared = parallel::map(&numbers, |&number| {
        let job = &jobs[number];
        let result = match (not_comparable(job), texts.get(&(job.chip, job.shader.clone()))) {
            (Some(reason), _) => Err(Difference::NotCompared(reason, String::new())),
            (None, None) => Err(Difference::NotCompared("no code", String::new())),
            (None, Some(asm)) => compare(job, asm),
        };
        (number, result)
    });
    let mut failures = Vec::new();
    // By stage and chip: texts that do the same, and all; others by the reason, with the first one.
    let mut counts: BTreeMap<(&str, &str), [usize; 2]> = BTreeMap::new();
    let mut skipped: BTreeMap<(&str, &str, &str), (usize, &str, String)> = BTreeMap::new();
    for (number, result) in compared {
        let job = &jobs[number];
        let [same, all] = counts.entry((&job.stage, job.chip)).or_default();
        *all += 1;
        match result {
            Ok(()) => *same += 1,
            Err(Difference::Differs(what)) => failures.push(format!("{} {}: {what}", job.chip, job.shader)),
            Err(Difference::NotCompared(reason, detail)) => {
                let first = || (0, &job.shader[..], detail);
                skipped.entry((&job.stage, job.chip, reason)).or_insert_with(first).0 += 1;
            }
        }
    }
    for ((stage, chip), [same, all]) in &counts {
        println!("{stage:18} {chip:8} {same:>4} of {all} the same");
    }
    for ((stage, chip, reason), (count, shader, detail)) in &skipped {
        println!("{stage:18} {chip:8} {count:>4} not compared: {reason} ({shader} {detail})");
    }
    assert!(failures.is_empty(), "{} differ: {failures:#?}", failures.len());
    for ((stage, chip), [same, all]) in counts {
        let Some((_, share)) = LEAST_COMPARED.iter().find(|(measured, _)| *measured == stage) else {
            continue;
        };
        assert!(same as f64 >= share * all as f64, "{stage} on {chip}: {same} of {all} are compared");
    }
}
