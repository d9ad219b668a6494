//! The measure over the conformance suite: what this compiler makes of the final NIR of its shaders, beside what ACO made of the same text.
//!
//! Registers that hold arguments are given in the order of their numbers. Ratios are geometric means over shaders, by stage and chip. Without
//! `UNWEDGE_ALL`, some shaders of each stage that has many are taken. `UNWEDGE_LISTINGS=DIR` writes the code of each to `DIR/CHIP/SHADER.s` and its ratios to
//! `DIR/CHIP.ratios`.

mod rig;

use rig::recorded::{MEASURES, columns, in_parallel, measures, write_listing};
use std::collections::BTreeMap;
use std::path::PathBuf;
use unwedge_aco::abi::Argument;
use unwedge_aco::{Compiled, Options, compile};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::front::nir;
use unwedge_shader::ir::{AmdRegisters, Shader};
use unwedge_sim::amdgcn::{Dispatch, Initial, MessageKind, Program, SimMemory, WaveMessage, run};
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// The most that the geometric mean of a ratio may be, by stage and chip.
const MOST: [(&str, &str, [f64; MEASURES.len()]); 12] = [
    ("compute", "navi21", [1.05, 1.05, 1.00, 0.90, 0.90]),
    ("compute", "vega10", [1.05, 1.05, 1.05, 0.95, 0.90]),
    ("fragment", "navi21", [1.05, 1.03, 1.03, 1.05, 1.05]),
    ("fragment", "vega10", [1.05, 1.03, 1.00, 1.05, 1.05]),
    ("tess_eval", "navi21", [1.05, 1.06, 1.05, 1.05, 1.10]),
    ("tess_eval", "vega10", [1.00, 1.15, 1.00, 1.05, 1.25]),
    ("vertex", "navi21", [1.05, 1.05, 1.02, 1.14, 1.10]),
    ("vertex", "vega10", [1.02, 1.02, 1.02, 1.02, 1.00]),
    ("vertex+geometry", "navi21", [1.15, 1.16, 0.70, 1.10, 0.90]),
    ("vertex+geometry", "vega10", [1.15, 1.13, 0.70, 1.25, 1.20]),
    ("vertex+tess_ctrl", "navi21", [1.10, 1.08, 0.70, 1.05, 1.00]),
    ("vertex+tess_ctrl", "vega10", [1.08, 1.06, 0.80, 1.05, 0.90]),
];
/// Of how many shaders of a stage with many one is taken without `UNWEDGE_ALL`.
const SAMPLE: usize = 16;
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
    let measured = in_parallel(&numbers, |&number| (number, measure(&jobs[number])));
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

/// What the code of one compiler leaves: exports and messages in order, and the bytes of buffers.
type Left = (Vec<WaveMessage>, Vec<u8>);

/// The words of an export that is not to null, by component.
type Exported<'a> = (u8, u64, [Option<&'a Vec<u32>>; 4]);

const CODE: u64 = 0x0080_0000;
/// Descriptors are at the low words that scalar arguments have.
const TABLE_BYTES: usize = 0x2000;
/// The low word of the address of descriptors of rings, in the same table.
const RINGS: u32 = 0x1000;
const BUFFERS: u64 = 0x1000_0000;
const BUFFER_BYTES: usize = 0x1000;
/// The target of exports that only say that a wave has ended its exports.
const NULL_TARGET: u8 = 9;
/// Vertices and primitives of a workgroup of primitive shaders.
const VERTICES: u32 = 40;
const PRIMITIVES: u32 = 38;
/// Vertices and points of patches of a wave: whole patches, whatever their size.
const POINTS: u32 = 36;

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

/// The numbers of arguments that a text loads.
fn loaded_arguments(text: &str, name: &str) -> Vec<u64> {
    let number =
        |line: &str| line.split_once(name)?.1.strip_prefix(" (base=")?.split(',').next()?.parse().ok();
    text.lines().filter_map(number).collect()
}

/// The texts of the one or two shaders of a program.
fn shaders_of(text: &str) -> (&str, &str) {
    let second = text.match_indices("\nshader: ").next();
    second.map_or((text, ""), |(at, _)| text.split_at(at))
}

/// The number of the first vector argument. All stages but two read it. Control shaders always read the second one, and vertices merged with a
/// geometry shader always have the number of the vertex, which is the sixth.
fn first_vector_argument(job: &Job) -> Option<u64> {
    let first_read = |text: &str| loaded_arguments(text, "@load_vector_arg_amd").into_iter().min();
    let (first, second) = shaders_of(&job.text);
    match &job.stage[..] {
        "vertex+tess_ctrl" => first_read(second)?.checked_sub(1),
        "vertex+geometry" => first_read(first)?.checked_sub(5),
        _ => first_read(first),
    }
}

/// The registers of arguments as the driver declares them: two words of rings, a register for each other scalar, then vector registers. `None` where
/// that is not known.
fn driver_arguments(job: &Job) -> Option<(nir::Arguments, u64)> {
    let last = loaded_arguments(&job.text, "@load_scalar_arg_amd").into_iter().max().unwrap_or(1);
    let most = loaded_arguments(&job.text, "@load_vector_arg_amd").into_iter().max().unwrap_or(0).max(last);
    let first = first_vector_argument(job).unwrap_or(last + 1);
    let argument = |number: u64| {
        let vector = number >= first;
        let register = match number {
            _ if vector => number - first,
            0 => 0,
            _ => number + 1,
        };
        nir::Argument::Register(AmdRegisters { vector, first: register as u16 })
    };
    (first > last).then(|| (nir::Arguments((0..=most).map(argument).collect()), first))
}

/// Whether the registers of a text are known, and so is all that it reads.
///
/// Left out are also texts whose result is not settled: ACO takes the lower half of the exponent of `ldexp` of 16 bits, parts of denormals are flushed or
/// kept, stores past the end of a buffer have an effect or not, and the waves of a workgroup, which are given the same number, race.
fn is_comparable(job: &Job) -> bool {
    let unknown = ["@bindless_image", "texture_handle", "scratch", "@load_interpolated_input", "@load_input"];
    let fragment = job.stage == "fragment" && job.text.contains("@load_vector_arg_amd");
    let denormals = job.text.contains(" = ffract ") || job.text.contains(" = frexp");
    let halves = job.text.lines().any(|line| {
        let ty = line.split_whitespace().nth(1).unwrap_or_default();
        line.contains(" = ldexp ") && ty.split('x').next() == Some("16")
    });
    let past_the_end = job.text.lines().any(|line| {
        let offset = line.split_once("align_mul=1073741824, align_offset=").map(|(_, rest)| rest);
        let offset = offset.and_then(|rest| rest.trim_end_matches(')').parse::<usize>().ok());
        offset.is_some_and(|offset| offset >= BUFFER_BYTES)
    });
    let size = workgroup(&job.text).into_iter().product::<u32>();
    let races = size > 64 && job.text.contains("@mbcnt_amd");
    !(fragment || denormals || halves || past_the_end || races)
        && unknown.iter().all(|name| !job.text.contains(name))
}

/// The size of the workgroup.
fn workgroup(text: &str) -> [u32; 3] {
    let sizes = text.lines().find_map(|line| line.strip_prefix("workgroup_size: ")).unwrap_or_default();
    let mut sizes = sizes.split(", ").map(|size| size.parse().unwrap_or(1));
    std::array::from_fn(|_| sizes.next().unwrap_or(1))
}

impl Job {
    /// Whether the program is a primitive shader.
    fn ngg(&self) -> bool {
        let stages = ["vertex", "tess_eval", "vertex+geometry"];
        self.chip == "navi21" && stages.contains(&&self.stage[..])
    }

    /// Whether triangles are culled, and how: numbers of the arguments that say so.
    fn culling(&self) -> Option<u64> {
        let last = loaded_arguments(&self.text, "@load_scalar_arg_amd").into_iter().max();
        match &self.stage[..] {
            "vertex" if self.ngg() => Some(9),
            // The last five scalars.
            "tess_eval" if self.ngg() => last?.checked_sub(4),
            _ => None,
        }
    }

    /// What a scalar argument holds.
    fn scalar(&self, number: u64) -> u32 {
        let culling = self.culling();
        match number {
            0 => RINGS,
            1 if self.ngg() => VERTICES << 12 | PRIMITIVES << 22,
            2 if self.ngg() => VERTICES | PRIMITIVES << 8 | 1 << 28,
            2 if self.stage == "vertex+tess_ctrl" => POINTS | POINTS << 8 | 1 << 28,
            2 if self.stage.contains('+') => VERTICES | VERTICES << 8 | 1 << 28,
            _ if Some(number) == culling => 0b1011,
            _ if culling.is_some_and(|first| (first + 1..first + 5).contains(&number)) => 2f32.to_bits(),
            _ => number as u32 * 0x100,
        }
    }

    /// A number that a line of the text gives.
    fn property(&self, name: &str) -> Option<u32> {
        let line = self.text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        line?.parse().ok()
    }

    /// How far vertices are from each other that a legacy geometry shader reads, in dwords: what the first shader multiplies the number of its lane with.
    fn vertex_distance(&self) -> u32 {
        let (first, _) = shaders_of(&self.text);
        let lane = first
            .lines()
            .find_map(|line| Some(line.split_once(" = @mbcnt_amd")?.0.split_whitespace().last()?));
        let product =
            lane.and_then(|lane| first.lines().find(|line| line.contains(&format!(" = imul {lane}, "))));
        let bytes = product
            .and_then(|line| u32::from_str_radix(line.split_once("(0x")?.1.split(')').next()?, 16).ok());
        bytes.map_or(1, |bytes| bytes / 4)
    }

    /// What vector registers hold, from the first one on, by the thread.
    fn vectors(&self) -> Vec<(u8, Vec<u32>)> {
        let each = |value: &dyn Fn(u32) -> u32| (0..64).map(value).collect::<Vec<u32>>();
        let lanes = each(&|lane| lane);
        let place = |lane: u32| (lane as f32 / 64.0).to_bits();
        let distance = if self.ngg() { 1 } else { self.vertex_distance() };
        let vertex = |lane: u32, corner: u32| (lane + corner) % VERTICES * distance;
        let pair = |corner: u32| each(&|lane| vertex(lane, corner) | vertex(lane, corner + 1) << 16);
        let mut all = match &self.stage[..] {
            "vertex+tess_ctrl" => {
                let corners = self.property("tcs_vertices_out").unwrap_or(3);
                vec![lanes.clone(), each(&|lane| lane / corners | lane % corners << 8)]
            }
            "vertex+geometry" => vec![pair(0), pair(2), lanes.clone(), each(&|_| 0), pair(4)],
            _ if self.ngg() => vec![pair(0), each(&|lane| vertex(lane, 2))],
            _ => Vec::new(),
        };
        if self.stage == "tess_eval" {
            if self.ngg() {
                all.resize(5, lanes.clone());
            }
            all.extend([each(&place), each(&|lane| place(63 - lane)), each(&|lane| lane / 8)]);
        }
        all.resize(all.len().max(9), lanes);
        (0..).zip(all).collect()
    }
}

/// Bytes that ACO leaves between its code and constants.
const PADDING: u64 = 20;

/// Bytes of constants after the code.
fn constant_bytes(text: &str) -> u64 {
    let size = text.lines().find_map(|line| line.strip_prefix("constants: "));
    size.and_then(|size| size.parse().ok()).unwrap_or(0)
}

/// Runs code, with registers as the arguments of the text say. Constants are so many bytes after it.
fn run_code(
    job: &Job,
    words: &[u32],
    padding: u64,
    compiled: &Compiled,
    first_vector: u64,
) -> Result<Left, String> {
    let mut memory = SimMemory::default();
    let vertex = job.stage.starts_with("vertex");
    let table: Vec<u32> = (0..TABLE_BYTES as u64 / 16)
        .flat_map(|slot| {
            let vertex = vertex && slot < u64::from(RINGS) / 16;
            let size = if vertex { 4 * BUFFER_BYTES } else { BUFFER_BYTES };
            let base = BUFFERS + slot * BUFFER_BYTES as u64;
            let mut words = rig::descriptor(base, size, job.gpu.generation());
            words[1] |= if vertex { 4 << 16 } else { 0 };
            words
        })
        .collect();
    memory.map(0xffff_8000_0000_0000, bytes(&table)).map_err(|_| "memory".to_owned())?;
    let mut rng = Rng::new(job.shader.len() as u64 + 1);
    let content: Vec<u32> = (0..(TABLE_BYTES / 16 + 4) * BUFFER_BYTES / 4)
        .map(|_| match rng.below(2) {
            0 => (rng.below(17) as f32 - 8.0).to_bits(),
            _ => rng.below(5) as u32,
        })
        .collect();
    memory.map(BUFFERS, bytes(&content)).map_err(|_| "memory".to_owned())?;
    let constants: Vec<u32> = (0..constant_bytes(&job.text) / 4).map(|_| rng.below(9) as u32).collect();
    if !constants.is_empty() {
        let at = CODE + words.len() as u64 * 4 + padding;
        memory.map(at, bytes(&constants)).map_err(|_| "memory".to_owned())?;
    }
    let mut dispatch = Dispatch {
        lds: compiled.code.lds_bytes.max(0x2000),
        mode: 0x100 | u32::from(compiled.float_mode),
        steps: 2_000_000,
        ..Dispatch::default()
    };
    dispatch.scalars =
        (1..first_vector.min(40)).map(|number| (number as u16 + 1, job.scalar(number))).collect();
    if job.stage != "compute" {
        dispatch.scalars.extend([(0, job.scalar(0)), (1, 0xffff_8000)]);
    }
    if job.stage == "compute" {
        dispatch.size = workgroup(&job.text);
        dispatch.vectors = (0..3).map(|axis| (axis, Initial::LocalId(axis))).collect();
        for location in compiled.args.iter() {
            if let Argument::WorkgroupId(axis) = location.argument {
                dispatch.group_id[usize::from(axis)] = Some(location.reg.reg().0);
            }
        }
    } else {
        dispatch.threads_hold = job.vectors();
    }
    let program = Program::new(words, CODE, job.gpu);
    let outcome = run(&program, &mut memory, &dispatch, None);
    if let Some(fault) = outcome.faults.first() {
        return Err(format!("{fault}: {}", program.text(fault.at).unwrap_or_default()));
    }
    let left = memory.get(BUFFERS, content.len() * 4).map(<[u8]>::to_vec);
    Ok((outcome.messages, left.unwrap_or_default()))
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

/// Exports by target. One without lanes has no effect.
fn exports(messages: &[WaveMessage]) -> Vec<Exported<'_>> {
    let mut all = Vec::new();
    for message in messages.iter().filter(|message| message.lanes != 0) {
        if let MessageKind::Export { target, values, .. } = &message.kind
            && *target != NULL_TARGET
        {
            all.push((*target, message.lanes, std::array::from_fn(|at| values[at].as_ref())));
        }
    }
    all.sort_by_key(|(target, ..)| *target);
    all
}

fn compare(job: &Job, asm: &str) -> Result<(), String> {
    let (arguments, first) = driver_arguments(job).ok_or("arguments")?;
    let options = nir::Options { arguments, file: job.shader.clone() };
    let mut shader = Shader::default();
    nir::read(&job.text, &options, &mut shader).map_err(|_| "refused")?;
    let compiled = compile(&mut shader, &options_of(job)).map_err(|_| "refused")?;
    let theirs = run_code(job, &printed_words(asm), PADDING, &compiled, first).map_err(|_| "refused")?;
    let own = run_code(job, &compiled.code.words, 0, &compiled, first)?;
    let differing = theirs.1.chunks(4).zip(own.1.chunks(4)).position(|(a, b)| {
        let word = |bytes: &[u8]| bytes.iter().rev().fold(0, |word, byte| word << 8 | u32::from(*byte));
        !is_close(word(a), word(b))
    });
    if let Some(at) = differing {
        return Err(format!("word {at} of memory differs"));
    }
    let messages = |messages: &[WaveMessage]| -> Vec<(u32, u32)> {
        let message = |message: &WaveMessage| match message.kind {
            MessageKind::Message { code, m0 } => Some((code, m0)),
            MessageKind::Export { .. } => None,
        };
        messages.iter().filter_map(message).collect()
    };
    if messages(&theirs.0) != messages(&own.0) {
        return Err(format!("messages {:x?}, not {:x?}", messages(&own.0), messages(&theirs.0)));
    }
    let (theirs, own) = (exports(&theirs.0), exports(&own.0));
    if theirs.len() != own.len() {
        return Err(format!("{} exports, not {}", own.len(), theirs.len()));
    }
    for ((target, lanes, a), (other, own_lanes, b)) in theirs.iter().zip(&own) {
        if (target, lanes) != (other, own_lanes) {
            return Err(format!(
                "an export to {other} of lanes {own_lanes:#x}, not to {target} of {lanes:#x}"
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
    let (jobs, unknown): (Vec<Job>, Vec<Job>) = jobs(&baseline(&rows)).into_iter().partition(is_comparable);
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
    let compared = in_parallel(&numbers, |&number| {
        let job = &jobs[number];
        (number, texts.get(&(job.chip, job.shader.clone())).map(|asm| compare(job, asm)))
    });
    let mut failures = Vec::new();
    // By stage: how many do the same, end with an error, and are not run.
    let mut counts: BTreeMap<&str, [usize; 3]> = BTreeMap::new();
    for job in &unknown {
        counts.entry(&job.stage).or_default()[2] += 1;
    }
    for (number, result) in compared {
        let job = &jobs[number];
        match result {
            Some(Ok(())) => counts.entry(&job.stage).or_default()[0] += 1,
            Some(Err(what)) if what != "refused" && what != "arguments" => {
                failures.push(format!("{} {}: {what}", job.chip, job.shader));
            }
            _ => counts.entry(&job.stage).or_default()[1] += 1,
        }
    }
    for (stage, [same, refused, unknown]) in counts {
        println!("{stage}: {same} the same, {refused} refused, {unknown} not comparable");
        let measured = MOST.iter().any(|(measured, ..)| *measured == stage);
        assert!(!measured || same > refused, "{stage}: {same} are compared, and {refused} refused");
    }
    assert!(failures.is_empty(), "{} differ: {failures:#?}", failures.len());
}
