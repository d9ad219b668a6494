//! `cargo xtask shaders SUBJECT [N] [--seed S] [FILE…]`: checks N random or broken shaders. SUBJECT is `passes` or `stages` (results of compute
//! shaders or of graphics stages before and after every pass), `forms` (as text and as SPIR-V), or what is broken: `spirv`, `nir` or `text`, of random shaders and of every FILE.
//! `cargo xtask shaders compile [N] [--seed S]`: compiles N random shaders for AMD GPUs of every generation, and compares what the code leaves on the emulator
//! with what the interpreter leaves.
//! `cargo xtask shaders seeds FOLDER`: writes what the fuzz targets start from, in a folder for each.
//!
//! Panics, failed checks, and inputs that take too much time or memory are printed with their seed, and make the command fail.

use crate::mutate::HEAP;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};
use unwedge_campaigns::compiler::{self, CompiledRun};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::campaign::{Campaign, Subject};
use unwedge_testkit::shaders::checks::{NIR, Outcome};
use unwedge_testkit::shaders::{Dialect, lanes, random, spirv};

const DEFAULT: u64 = 100_000;
/// The subject that compiles shaders.
const COMPILE: &str = "compile";
/// No input takes longer.
const SLOW: Duration = Duration::from_secs(5);
/// No input takes more bytes of the heap. Runs have a limit of their own.
const HEAP_LIMIT: usize = 256 << 20;

/// Random shaders that fuzzing starts from.
const SEEDS: u64 = 32;

/// Writes the corpora that the fuzz targets start from.
fn seeds(folder: &str) -> Result<(), String> {
    let write = |target: &str, name: u64, bytes: &[u8]| {
        let folder = format!("{folder}/{target}");
        let path = format!("{folder}/{name}");
        fs::create_dir_all(&folder).and_then(|()| fs::write(&path, bytes)).map_err(|e| format!("{path}: {e}"))
    };
    write("nir", 0, NIR.as_bytes())?;
    for seed in 0..SEEDS {
        let shader = random(&mut Rng::new(seed), Dialect::Spirv);
        let words = spirv::module(&shader);
        write("spirv", seed, &words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())?;
        let shader = random(&mut Rng::new(seed), Dialect::Full);
        write("shader_text", seed, unwedge_shader::text::print(&shader).as_bytes())?;
        write("shader_passes", seed, &seed.to_le_bytes())?;
        write("aco", seed, &seed.to_le_bytes())?;
    }
    Ok(())
}

/// Compiles a random shader for one of the GPUs. Whether it was compiled, or what differs.
fn compiled(seed: u64) -> Result<Outcome, String> {
    let mut rng = Rng::new(seed);
    let shader = lanes::random(&mut rng);
    let input = lanes::input(&mut rng);
    let gpu = compiler::gpu(seed).ok_or("an unknown GPU")?;
    let expected = lanes::interpreted(&shader, &input, gpu.wave64())?;
    let groups = [lanes::GROUPS, 1, 1];
    let run = CompiledRun {
        input: &input,
        output: lanes::OUTPUT_BYTES,
        output_address: lanes::OUTPUT,
        groups,
        gpu,
        seed,
    };
    let done = compiler::compare(&shader, &run, &expected)?;
    Ok(if done { Outcome::Valid } else { Outcome::Refused })
}

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    if let [command, folder] = args
        && command == "seeds"
    {
        return seeds(folder);
    }
    let names = || Subject::ALL.map(Subject::name).join(", ");
    let named = args.first().map_or("", String::as_str);
    let subject = Subject::ALL.into_iter().find(|subject| subject.name() == named);
    if subject.is_none() && named != COMPILE {
        return Err(format!("shaders takes one of {}, {COMPILE}", names()));
    }
    let (mut count, mut first, mut files) = (DEFAULT, 1_u64, Vec::new());
    let mut rest = args[1..].iter();
    while let Some(arg) = rest.next() {
        match (arg.as_str(), arg.parse()) {
            ("--seed", _) => {
                first = rest.next().and_then(|v| v.parse().ok()).ok_or("--seed takes a number")?;
            }
            (_, Ok(number)) => count = number,
            (path, _) => files.push(fs::read(path).map_err(|e| format!("{path}: {e}"))?),
        }
    }
    let mut campaign = subject.map(|subject| Campaign::new(subject, files));
    let mut check = |seed| match &mut campaign {
        Some(campaign) => campaign.check(seed),
        None => compiled(seed),
    };
    let (mut valid, mut failures) = (0_u64, 0_u64);
    let (mut slowest, mut largest) = ((Duration::ZERO, 0), (0, 0));
    for seed in first..first.saturating_add(count) {
        HEAP.reset_peak_usage();
        let (start, before) = (Instant::now(), HEAP.current_usage());
        let result = catch_unwind(AssertUnwindSafe(|| check(seed)));
        let time = start.elapsed();
        let heap = HEAP.peak_usage().saturating_sub(before);
        slowest = slowest.max((time, seed));
        largest = largest.max((heap, seed));
        let failure = match result {
            Ok(Ok(outcome)) => {
                valid += u64::from(outcome == Outcome::Valid);
                if time > SLOW {
                    format!("takes {time:?}")
                } else if heap > HEAP_LIMIT {
                    format!("takes {heap} bytes")
                } else {
                    continue;
                }
            }
            Ok(Err(e)) => e,
            Err(_) => "panics".to_owned(),
        };
        println!("seed {seed}: {failure}");
        failures += 1;
    }
    println!(
        "{}: {count} inputs, {valid} valid or compared, {failures} failures; slowest {:?} (seed {}), most memory {} bytes (seed {})",
        named, slowest.0, slowest.1, largest.0, largest.1
    );
    if failures == 0 { Ok(()) } else { Err(format!("{failures} of {count} fail")) }
}
