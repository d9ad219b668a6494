//! Shaders of `UNWEDGE_DATA` with what they must give, as they are launched.

#![allow(dead_code, reason = "not every test uses all of it")]

use std::collections::{BTreeMap, HashMap, HashSet};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_sim::amdgcn::{
    Control, Dispatch, GroupState, Initial, Program, SimFault, SimMemory, Timing, Watch, run, watch,
};
use unwedge_testkit::data::{compute_input, root, text};
use unwedge_testkit::pack::bytes;
use unwedge_testkit::parallel;

const FOLDER: &str = "amd/shaders";

/// What the same shaders give by IEEE arithmetic on any GPU: the reference of all.
const RESULTS: &str = "adreno/compute/expected.csv.gz";

fn ieee_results() -> Option<Vec<HashMap<String, String>>> {
    rows(RESULTS)
}

fn table(name: &str) -> Option<Vec<HashMap<String, String>>> {
    rows(&format!("{FOLDER}/{name}"))
}

fn rows(path: &str) -> Option<Vec<HashMap<String, String>>> {
    let text = text(path)?;
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let row = |line: &str| {
        header.iter().zip(line.split(',')).map(|(key, value)| (key.to_string(), value.to_string())).collect()
    };
    Some(lines.map(row).collect())
}

/// A row of the binaries.
pub struct Shader {
    pub name: String,
    pub family: String,
    pub gpu: Gpu,
    pub words: Vec<u32>,
    args: HashMap<String, String>,
    lds: u32,
    scratch: u32,
}

/// Every binary, and what each shader must give for each push constant.
pub struct Shaders {
    pub all: Vec<Shader>,
    expected: HashMap<String, Vec<(u32, Vec<u32>)>>,
}

fn dwords(hex: &str) -> Vec<u32> {
    (0..hex.len() / 8)
        .map(|at| u32::from_str_radix(&hex[at * 8..at * 8 + 8], 16).expect("hexadecimal"))
        .collect()
}

/// The shaders, or nothing if the data is not there.
pub fn shaders() -> Option<Shaders> {
    let (Some(binaries), Some(results)) = (table("aco_binaries.csv.gz"), ieee_results()) else {
        eprintln!("no shaders under {}", root().join(FOLDER).display());
        return None;
    };
    let mut expected: HashMap<String, Vec<(u32, Vec<u32>)>> = HashMap::new();
    for row in results {
        let words = row.iter().find(|(key, _)| key.starts_with("dst_words_hex")).expect("words").1;
        let key = format!("{} {}", row["set"], row["shader"]);
        expected
            .entry(key)
            .or_default()
            .push((row["push_constant"].parse().expect("a number"), dwords(words)));
    }
    let all = binaries.iter().map(|row| {
        let number = |name: &str| row[name].parse::<u32>().expect("a number");
        let wave = if number("wave") == 64 { "+wavefrontsize64" } else { "+wavefrontsize32" };
        let gpu = Gpu::new(&row["family"]).and_then(|gpu| gpu.with_features(wave)).expect("a GPU");
        let granule = if gpu.generation() == Gfx::Gfx6 { 256 } else { 512 };
        let mut words = dwords(&row["code_dwords_hex"]);
        words.truncate(number("exec_bytes") as usize / 4);
        Shader {
            name: format!("{} {}", row["set"], row["shader"]),
            family: row["family"].clone(),
            gpu,
            words,
            args: row["args"]
                .split(' ')
                .filter_map(|a| a.split_once('='))
                .map(|(k, v)| (k.into(), v.into()))
                .collect(),
            lds: number("lds_units") * granule,
            scratch: number("scratch"),
        }
    });
    Some(Shaders { all: all.collect(), expected })
}

const TABLE: u64 = 0x0001_0000;
const INPUT: u64 = 0x1000_0000;
const OUTPUT: u64 = 0x2000_0000;
const WORDS: usize = 256;

/// A descriptor of plain bytes.
fn descriptor(base: u64, size: u32, generation: Gfx) -> [u32; 4] {
    let format = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => 20 << 12 | 1 << 24 | 3 << 28,
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => 20 << 12 | 3 << 28,
        _ => 7 << 12 | 4 << 15,
    };
    [base as u32, (base >> 32) as u32, size, format | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}

/// A register of an argument: `s4:1` is number 4.
fn register(arg: &str) -> u16 {
    arg.trim_start_matches(['s', 'v']).split(':').next().and_then(|n| n.parse().ok()).expect("a register")
}

impl Shader {
    pub fn program(&self) -> Program {
        Program::new(&self.words, 0x0080_0000, self.gpu)
    }

    /// How it is launched with a push constant.
    pub fn dispatch(&self, constant: u32, timing: Timing) -> Dispatch {
        let mut dispatch = Dispatch {
            groups: [4, 1, 1],
            lds: self.lds,
            scratch: self.scratch,
            timing,
            group_id_in_ttmp: self.gpu.generation() >= Gfx::Gfx12,
            steps: 5_000_000,
            ..Dispatch::default()
        };
        for (name, place) in &self.args {
            let reg = register(place);
            match name.as_str() {
                "arg1" => dispatch.scalars.push((reg, TABLE as u32)),
                "push0" => dispatch.scalars.push((reg, constant)),
                "workgroup_id_x" if !dispatch.group_id_in_ttmp => dispatch.group_id[0] = Some(reg),
                "local_id_x" => dispatch.vectors.push((reg as u8, Initial::LocalId(0))),
                "local_id_y" => dispatch.vectors.push((reg as u8, Initial::LocalId(1))),
                "local_id_z" => dispatch.vectors.push((reg as u8, Initial::LocalId(2))),
                "local_ids_packed" => dispatch.vectors.push((reg as u8, Initial::PackedLocalIds)),
                _ => {}
            }
        }
        dispatch
    }

    /// The memory it finds.
    pub fn memory(&self) -> SimMemory {
        let high = if self.gpu.generation() >= Gfx::Gfx9 { 0xffff_8000_0000_0000 } else { 0 };
        let input = compute_input();
        let mut table = Vec::new();
        table.extend(descriptor(INPUT, input.len() as u32 * 4, self.gpu.generation()));
        table.extend(descriptor(OUTPUT, WORDS as u32 * 4, self.gpu.generation()));
        let mut memory = SimMemory::default();
        memory.map(high | TABLE, bytes(&table)).expect("free");
        memory.map(INPUT, bytes(&input)).expect("free");
        memory.map(OUTPUT, vec![0; WORDS * 4]).expect("free");
        memory
    }

    /// Offsets of the instructions that are executed with some push constants.
    pub fn reached(&self, constants: &[u32]) -> HashSet<u32> {
        let program = self.program();
        let mut reached = HashSet::new();
        for constant in constants {
            let dispatch = self.dispatch(*constant, Timing::Plain);
            run(&program, &mut self.memory(), &dispatch, Some(&mut |trace| _ = reached.insert(trace.at)));
        }
        reached
    }

    /// Offsets of the instructions by which an access that was under way is over, with a push constant.
    pub fn ends(&self, program: &Program, constant: u32, seed: u64) -> HashSet<u32> {
        let (mut ended, mut before) = (HashSet::new(), HashMap::new());
        let dispatch = self.dispatch(constant, Timing::Adversarial { seed });
        let mut step = |state: &mut GroupState<'_, '_>| {
            let now = state.now();
            let wave = (state.workgroup(), now.wave);
            if let Some((at, pending)) = before.insert(wave, (now.at, now.pending))
                && now.pending < pending
            {
                ended.insert(at);
            }
            Control::Go
        };
        watch(program, &mut self.memory(), &dispatch, Watch::Step(&mut step));
        ended
    }

    /// The words it gives, and what went wrong.
    pub fn run(&self, program: &Program, constant: u32, timing: Timing) -> (Vec<u32>, Vec<SimFault>) {
        let mut memory = self.memory();
        let outcome = run(program, &mut memory, &self.dispatch(constant, timing), None);
        let bytes = memory.get(OUTPUT, WORDS * 4).expect("mapped");
        let words = bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        (words.collect(), outcome.faults)
    }
}

/// How a shader's result compares with the reference's.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Verdict {
    /// The same words.
    Same,
    /// Other words.
    Different,
}

/// What a shader gives for each push constant.
type Results = Vec<(u32, Vec<u32>)>;

/// The words a program gives for each push constant that the reference has; what goes wrong.
fn results(shaders: &Shaders, shader: &Shader, program: &Program, timing: Timing) -> Result<Results, String> {
    let constants = shaders.expected[&shader.name].iter().map(|(constant, _)| *constant);
    let one = |constant| {
        let (words, faults) = shader.run(program, constant, timing);
        match faults.first() {
            Some(fault) => Err(format!("{fault}: {}", program.text(fault.at).unwrap_or_default())),
            None => Ok((constant, words)),
        }
    };
    constants.map(one).collect()
}

/// The first word in which results differ.
fn difference(found: &Results, expected: &Results) -> Option<String> {
    found.iter().zip(expected).find_map(|((constant, found), (_, expected))| {
        let at = (0..expected.len()).find(|at| found[*at] != expected[*at])?;
        Some(format!("with {constant} word {at} is {:#x}, not {:#x}", found[at], expected[at]))
    })
}

/// Compares what a shader gives in plain timing with the reference.
fn check(shaders: &Shaders, shader: &Shader) -> Result<Verdict, String> {
    let expected = &shaders.expected[&shader.name];
    let found = results(shaders, shader, &shader.program(), Timing::Plain)?;
    let Some(what) = difference(&found, expected) else { return Ok(Verdict::Same) };
    eprintln!("{} {}: {what}", shader.family, shader.name);
    Ok(Verdict::Different)
}

/// What a function says of every shader, on all cores.
pub fn of_all<'s, T: Send>(
    shaders: &'s Shaders,
    each: impl Fn(&'s Shader) -> T + Sync,
) -> Vec<(&'s Shader, T)> {
    shaders.all.iter().zip(parallel::map(&shaders.all, each)).collect()
}

/// Checks every shader in plain timing; tells how many of each GPU are right.
pub fn check_all() {
    let Some(shaders) = shaders() else { return };
    let (mut counts, mut faults) = (BTreeMap::<(&str, Verdict), usize>::new(), Vec::new());
    for (shader, verdict) in of_all(&shaders, |shader| check(&shaders, shader)) {
        match verdict {
            Ok(verdict) => *counts.entry((&shader.family, verdict)).or_default() += 1,
            Err(what) => faults.push(format!("{} {}: {what}", shader.family, shader.name)),
        }
    }
    for ((family, verdict), count) in &counts {
        let how = match verdict {
            Verdict::Same => "give the reference's words",
            Verdict::Different => "give other words",
        };
        eprintln!("{family}: {count} {how}");
    }
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(counts.keys().all(|(_, verdict)| *verdict != Verdict::Different), "some differ");
}

/// Checks that every shader gives without a fault, whatever the timing, what it gives in plain timing.
pub fn check_timings(seeds: std::ops::RangeInclusive<u64>) {
    let Some(shaders) = shaders() else { return };
    let wrong = of_all(&shaders, |shader| {
        let program = shader.program();
        let plain = results(&shaders, shader, &program, Timing::Plain)?;
        seeds.clone().try_for_each(|seed| {
            let found = results(&shaders, shader, &program, Timing::Adversarial { seed })?;
            difference(&found, &plain).map_or(Ok(()), Err)
        })
    });
    let wrong: Vec<String> = wrong
        .into_iter()
        .filter_map(|(shader, result)| Some(format!("{} {}: {}", shader.family, shader.name, result.err()?)))
        .collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
    eprintln!("{} shaders are the same with {} seeds", shaders.all.len(), seeds.count());
}
