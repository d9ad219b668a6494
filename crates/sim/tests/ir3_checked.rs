//! The checker of ir3 code on the shaders of all recorded captures: it is silent on them, and reports what is taken out of them.

mod ir3_data;

use ir3_data::{Capture, Submitted, capture, expected, folder, number, table};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use unwedge_check::ir3::{CheckFinding, CheckOptions, Level, Rule, WaitNeed, check};
use unwedge_hw::{Db, Gpu};
use unwedge_isa::ir3::asm::Assembler;
use unwedge_isa::ir3::{self, Instruction, Opcode};
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Options, ShaderProgram, Timing, run};
use unwedge_stream::Flow;
use unwedge_stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, StateType};
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};

/// Instructions of a shader, at most.
const LONGEST: u64 = 1 << 14;
const STAGES: [&str; 6] = ["VS", "HS", "DS", "GS", "FS", "CS"];

/// Shaders of a capture: their code, by GPU.
#[derive(Default)]
struct Shaders<'d> {
    gpu: Option<Gpu<'d>>,
    gpu_id: u32,
    /// Addresses that registers and packets name in this submit.
    starts: Vec<u64>,
    code: BTreeMap<(u32, Vec<u64>), String>,
}

impl AdrenoSink for Shaders<'_> {
    fn event(&mut self, state: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        match event {
            AdrenoEvent::LoadState(load) if load.ty == StateType::Shader => {
                self.starts.extend(load.iova);
                if let (None, Some(contents)) = (load.iova, load.contents) {
                    let dwords: Vec<u32> = contents.iter().collect();
                    let words =
                        dwords.chunks_exact(2).map(|pair| u64::from(pair[0]) | u64::from(pair[1]) << 32);
                    self.add(words.collect(), "in a packet");
                }
            }
            AdrenoEvent::Draw(_) => {
                let Some(gpu) = self.gpu else { return Flow::Continue };
                let regs = state.current_regs();
                for stage in STAGES {
                    let names = [format!("SP_{stage}_OBJ_START"), format!("SP_{stage}_OBJ_START_LO")];
                    let Some(at) = names.iter().find_map(|name| gpu.reg_offset(name)) else { continue };
                    let start = u64::from(regs.raw(at)) | u64::from(regs.raw(at + 1)) << 32;
                    self.starts.push(start);
                }
            }
            _ => {}
        }
        Flow::Continue
    }
}

impl Shaders<'_> {
    /// Adds code up to its end, if it is code at all: registers are stale where a stage is not used.
    fn add(&mut self, words: Vec<u64>, from: &str) {
        let decoded = |word: &u64| Instruction::decode(*word, self.gpu_id).is_some();
        let length = words.iter().take_while(|word| decoded(word)).count();
        let words = &words[..length];
        let ends = |word: &u64| {
            Instruction::decode(*word, self.gpu_id).is_some_and(|i| matches!(i.opcode.name(), "end" | "chsh"))
        };
        if words.iter().any(ends) {
            self.code.entry((self.gpu_id, words.to_vec())).or_insert_with(|| from.to_owned());
        }
    }
}

impl<'d> Consumer<'d> for Shaders<'d> {
    fn identity(&mut self, identity: Identity, gpu: Option<Gpu<'d>>) {
        self.gpu = gpu;
        let of_chip = |name: String| name.trim_start_matches(|c: char| !c.is_ascii_digit()).parse().ok();
        self.gpu_id = match identity {
            Identity::GpuId(id) => id,
            Identity::ChipId(_) => identity
                .name()
                .and_then(of_chip)
                .or(gpu.map(|gpu| 100 * gpu.generation().number()))
                .unwrap_or(0),
        };
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let memory = SimMemory::from(submission.live.memory());
        if let Ok(mut walk) = submission.open() {
            walk.run(self);
        }
        let mut starts = std::mem::take(&mut self.starts);
        starts.sort_unstable();
        starts.dedup();
        for start in starts.into_iter().filter(|start| *start != 0) {
            let word = |at: u64| memory.load(start + 8 * at, 8).known();
            let words = (0..LONGEST).map_while(word).collect();
            self.add(words, &format!("{start:#x}"));
        }
    }
}

/// Every capture of a tree.
fn captures(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            captures(&path, found);
        } else if path.to_string_lossy().ends_with(".rd.gz") {
            found.push(path);
        }
    }
}

/// Different shaders of all captures, with where each is.
fn all_shaders() -> BTreeMap<(u32, Vec<u64>), String> {
    let mut all = BTreeMap::new();
    let Some(root) = folder("compute").and_then(|folder| Some(folder.parent()?.to_owned())) else {
        return all;
    };
    let mut files = Vec::new();
    captures(&root, &mut files);
    let db = Db::builtin();
    for file in files {
        let mut shaders = Shaders::default();
        let mut player = Player::new(SubmitChoice::default(), &db, 1 << 30);
        player.play(&unwedge_testkit::data::read(&file)[..], &mut shaders);
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        all.extend(shaders.code.into_iter().map(|(code, from)| (code, format!("{name} {from}"))));
    }
    all
}

#[test]
fn nothing_is_wrong_with_recorded_shaders() {
    let shaders = all_shaders();
    let mut by_gpu: BTreeMap<u32, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for ((gpu_id, words), from) in &shaders {
        *by_gpu.entry(*gpu_id).or_default() += 1;
        let report = check(words, *gpu_id, &CheckOptions::default());
        if !report.complete {
            wrong.push(format!("{from}: not followed to its end"));
        }
        for f in report.of_level(Level::Warning) {
            let shown = |at: u32| words.get(at as usize).map(|word| text(*word, *gpu_id));
            let (first, at) = (f.first.and_then(shown), shown(f.at));
            wrong.push(format!("a{gpu_id} {from}: {f:?}: {first:?}, {at:?}"));
        }
    }
    println!("shaders by GPU: {by_gpu:?}");
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong[..wrong.len().min(60)].join("\n"));
}

/// What is taken out of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Removal {
    Ss,
    Sy,
    Cycle,
}

/// A program that lacks something at a place.
struct Mutation {
    removal: Removal,
    at: usize,
    words: Vec<u64>,
}

fn text(word: u64, gpu_id: u32) -> String {
    let mut out = Vec::new();
    ir3::write(word, gpu_id, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

/// The word with another text for a part of its own.
fn edited(assembler: &mut Assembler, word: u64, gpu_id: u32, part: &str, by: &str) -> Option<u64> {
    let new = assembler.instruction(&text(word, gpu_id).replacen(part, by, 1)).ok()?;
    (new != word).then_some(new)
}

/// The program without an instruction: branches lead where they led.
fn without(assembler: &mut Assembler, words: &[u64], gpu_id: u32, gone: usize) -> Option<Vec<u64>> {
    let moved = |at: usize| (if at > gone { at - 1 } else { at }) as i64;
    let mut out = Vec::new();
    for (at, &word) in words.iter().enumerate().filter(|(at, _)| *at != gone) {
        let target = Instruction::decode(word, gpu_id).and_then(|instruction| instruction.target(at));
        let old = target.map(|target| target as i64 - at as i64);
        let new = target.map(|target| moved(target) - moved(at));
        out.push(match (old, new) {
            (Some(old), Some(new)) if old != new => {
                edited(assembler, word, gpu_id, &format!("#{old}"), &format!("#{new}"))?
            }
            _ => word,
        });
    }
    Some(out)
}

/// Everything that can be taken out, one at a time.
fn mutations(words: &[u64], gpu_id: u32) -> Vec<Mutation> {
    let mut assembler = Assembler::new(gpu_id);
    let decode = |word: &u64| Instruction::decode(*word, gpu_id);
    let is_end = |word: &u64| decode(word).is_some_and(|i| i.opcode == Opcode::End);
    let end = words.iter().rposition(is_end).unwrap_or(0);
    let mut out = Vec::new();
    for (at, &word) in words.iter().enumerate().take(end + 1) {
        let Some(instruction) = Instruction::decode(word, gpu_id) else { continue };
        let flags = instruction.flags;
        let mut changes = Vec::new();
        let (repeat, nops) = (instruction.repeat, instruction.nops);
        if flags.ss {
            changes.push((Removal::Ss, "(ss)".to_owned(), String::new()));
        }
        if flags.sy {
            changes.push((Removal::Sy, "(sy)".to_owned(), String::new()));
        }
        let less = |name: &str, count: u8| match count {
            1 => (format!("({name}1)"), String::new()),
            _ => (format!("({name}{count})"), format!("({name}{})", count - 1)),
        };
        let is_nop = instruction.opcode == Opcode::Nop;
        if is_nop && repeat > 0 {
            let (old, new) = less("rpt", repeat);
            changes.push((Removal::Cycle, old, new));
        } else if nops > 0 {
            let (old, new) = less("nop", nops);
            changes.push((Removal::Cycle, old, new));
        } else if is_nop && !(flags.ss || flags.sy || flags.jp || flags.eq) {
            let shorter = without(&mut assembler, words, gpu_id, at);
            out.extend(shorter.map(|words| Mutation { removal: Removal::Cycle, at, words }));
        }
        for (removal, old, new) in changes {
            if let Some(changed) = edited(&mut assembler, word, gpu_id, &old, &new) {
                let mut words = words.to_vec();
                words[at] = changed;
                out.push(Mutation { removal, at, words });
            }
        }
    }
    out
}

/// Whether a finding is about what was taken out.
fn names(finding: &CheckFinding, mutation: &Mutation) -> bool {
    let (at, first) = (finding.at as usize, finding.first.map_or(0, |first| first as usize));
    let covers = match first <= at {
        true => (first..=at).contains(&mutation.at),
        false => mutation.at >= first || mutation.at <= at,
    };
    let fits = match (mutation.removal, finding.need) {
        (Removal::Ss, Some(WaitNeed::Ss | WaitNeed::SsOrSy)) => true,
        (Removal::Sy, Some(WaitNeed::Sy | WaitNeed::SsOrSy)) => true,
        (Removal::Cycle, Some(WaitNeed::Nops(_))) => finding.rule == Rule::Delay,
        _ => false,
    };
    finding.level == Level::Error && covers && fits
}

/// A dispatch with what it must give.
struct Recorded<'c> {
    submitted: &'c Submitted,
    output: u64,
    words: &'c [u32],
    steps: u64,
}

impl Recorded<'_> {
    /// Whether a program gives something else in bad timing, under some seed.
    fn differs(&self, words: &[u64], gpu_id: u32, memory: &SimMemory, work: &mut SimMemory) -> bool {
        let program = ShaderProgram::new(words.iter().copied(), gpu_id);
        for seed in 1..=4 {
            let options =
                Options { timing: Timing::Adversarial { seed }, steps: 4 * self.steps + 10_000, threads: 1 };
            let ended = run(&program, &self.submitted.dispatch, work, &options).is_ok();
            let word = |at: usize| work.load(self.output + 4 * at as u64, 4).known();
            if !ended || (0..self.words.len()).any(|at| word(at) != Some(self.words[at].into())) {
                *work = memory.clone();
                return true;
            }
        }
        false
    }
}

/// How often each thing that was taken out matters, and is reported.
#[derive(Debug, Default)]
struct Tally {
    taken: usize,
    reported: usize,
    needed: usize,
    missed: usize,
}

/// Takes out so many things of each shader of a capture.
fn take_out(
    (name, capture): (&str, &Capture),
    rows: &[&std::collections::HashMap<String, String>],
    words: &BTreeMap<(String, String), Vec<u32>>,
    each: usize,
    tallies: &mut BTreeMap<Removal, Tally>,
    missed: &mut Vec<String>,
) {
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    let mut work = capture.memory.clone();
    for row in rows {
        let submitted = &capture.dispatches[number(&row["dispatch"]) as usize];
        let word = |at: u32| capture.memory.load(submitted.code + 8 * u64::from(at), 8).known().unwrap_or(0);
        let code: Vec<u64> = (0..submitted.instructions).map(word).collect();
        let mut recorded = Recorded {
            submitted,
            output: number(&row["output_iova"]),
            words: &words[&(row["shader"].clone(), row["push_constant"].clone())],
            steps: 0,
        };
        let program = ShaderProgram::new(code.iter().copied(), capture.gpu_id);
        let plain = run(&program, &submitted.dispatch, &mut work, &Options::default());
        recorded.steps = plain.expect("a recorded dispatch runs").steps;
        let mut all = mutations(&code, capture.gpu_id);
        for _ in 0..each.min(all.len()) {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mutation = all.swap_remove((random >> 33) as usize % all.len());
            let report = check(&mutation.words, capture.gpu_id, &CheckOptions::default());
            let reported = report.findings.iter().any(|finding| names(finding, &mutation));
            let needed = recorded.differs(&mutation.words, capture.gpu_id, &capture.memory, &mut work);
            let tally = tallies.entry(mutation.removal).or_default();
            tally.taken += 1;
            tally.reported += usize::from(reported);
            tally.needed += usize::from(needed);
            if needed && !reported {
                tally.missed += 1;
                let line = text(code[mutation.at], capture.gpu_id);
                missed.push(format!(
                    "{name} {} {:?} at {}: {line}",
                    row["shader"], mutation.removal, mutation.at
                ));
            }
        }
    }
}

/// A flag or cycle that is taken out of a recorded shader is reported where the words that the shader gives change for it.
#[test]
fn what_is_taken_out_is_reported() {
    let Some(folder) = folder("compute") else { return };
    let each = std::env::var("UNWEDGE_IR3_MUTATIONS").ok().and_then(|count| count.parse().ok()).unwrap_or(3);
    let words = expected(&folder.join("expected.csv.gz"));
    let rows = table(&folder.join("index.csv"));
    let mut captures: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for row in &rows {
        let of_capture = captures.entry(&row["capture"]).or_default();
        // One dispatch of each shader.
        if of_capture
            .last()
            .is_none_or(|last: &&std::collections::HashMap<String, String>| last["shader"] != row["shader"])
        {
            of_capture.push(row);
        }
    }
    let (mut tallies, mut missed) = (BTreeMap::new(), Vec::new());
    for (name, rows) in captures {
        let capture = capture(&folder.join(name));
        take_out((name, &capture), &rows, &words, each, &mut tallies, &mut missed);
    }
    println!("{tallies:?}");
    println!("not reported:\n{}", missed.join("\n"));
    for (removal, tally) in &tallies {
        assert!(tally.needed > 0, "{removal:?}: nothing that was taken out matters");
        assert!(
            50 * tally.missed <= tally.needed,
            "{removal:?}: {} of {} are missed",
            tally.missed,
            tally.needed
        );
    }
}
