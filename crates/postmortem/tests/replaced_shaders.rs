//! A shader that is replaced by a longer one moves, what names it follows, and the capture replays to what the new shader means.
//!
//! The longer one begins with nops and lacks an instruction that the original has. What it means is known without it: the original with
//! a nop in the place of that instruction has the length that it had, and is written over it.

#[path = "edited/replay.rs"]
mod replay;

use replay::{Replayed, StreamPlaces, edited};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use unwedge_base::Generation;
use unwedge_edit::instrument::{Instrumentation, Instrumenter, ShaderReplacement};
use unwedge_edit::rewrite::{RewriteError, SetEdit, StreamEditor};
use unwedge_hw::{Db, Gpu};
use unwedge_isa::ir3::Faithful;
use unwedge_sim::adreno::{Loading, RunEnd};
use unwedge_stream::adreno::{AdrenoEvent, AdrenoState};
use unwedge_testkit::data;

const STEPS: u64 = 1 << 24;
/// More than any room behind a shader: its length is counted in units of 16.
const NOPS: usize = 40;
/// Instructions of a shader that are tried until one matters.
const TRIES: usize = 6;
/// Bytes of an instruction.
const SIZE: u64 = 8;
/// `end`, in its bits of the category and the opcode.
const END: u64 = 0x0300_0000_0000_0000;

/// Shaders of some stages by address, with how many instructions they have at most.
#[derive(Default)]
struct Shaders {
    generation: Option<Generation>,
    /// By stage: low and high half of the address, and units of its length.
    registers: BTreeMap<(&'static str, &'static str), u32>,
    found: BTreeMap<u64, (&'static str, u64)>,
    others: BTreeSet<u64>,
}

impl StreamEditor for Shaders {
    fn watch(&mut self, gpu: Gpu<'_>, _: u32, _: &AdrenoState, event: &AdrenoEvent<'_>) {
        self.generation = Some(gpu.generation());
        let AdrenoEvent::RegWrite(write) = event else { return };
        for stage in ["FS", "CS", "VS"] {
            for part in ["OBJ_START", "INSTRLEN"] {
                let Some(reg) = gpu.reg_offset(&format!("SP_{stage}_{part}")) else { continue };
                if write.reg == reg {
                    self.registers.insert((stage, part), write.value);
                } else if write.reg == reg + 1 && part == "OBJ_START" {
                    self.registers.insert((stage, "HIGH"), write.value);
                }
            }
            let part = |part| self.registers.get(&(stage, part)).copied().unwrap_or(0);
            let iova = u64::from(part("OBJ_START")) | u64::from(part("HIGH")) << 32;
            let units = part("INSTRLEN");
            if iova != 0 && units != 0 {
                match stage {
                    "VS" => drop(self.others.insert(iova)),
                    _ => drop(self.found.insert(iova, (stage, u64::from(units) * 16))),
                }
            }
        }
    }
}

/// Writes words over memory.
struct Over(u64, Vec<u32>);

impl StreamEditor for Over {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        // Not every set has the buffer.
        set.patch(self.0, &self.1);
        Ok(())
    }
}

/// Small captures of one kind each.
fn captures() -> Vec<PathBuf> {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let sample = |folder: &str, kind: &str| {
        let size = |path: &PathBuf| path.metadata().map_or(u64::MAX, |meta| meta.len());
        let mut files = data::files(folder, ".rd.gz");
        files.retain(|path| path.to_string_lossy().contains(kind));
        files.sort_by_key(size);
        files.truncate(if all { 40 } else { 1 });
        files
    };
    [
        sample("adreno/graphics/captures", "a630-sysmem"),
        sample("adreno/graphics/captures", "a740-gmem"),
        sample("adreno/compute", "a630"),
        sample("adreno/compute", "a740"),
    ]
    .concat()
}

/// The instructions of a shader up to its end; nothing where memory does not have them.
fn words(replayed: &Replayed<'_>, iova: u64, most: u64) -> Vec<u64> {
    let Some(replay) = &replayed.replay else { return Vec::new() };
    let word = |n: u64| replay.machine.space.memory.load(iova + SIZE * n, SIZE as usize).known();
    let mut words: Vec<u64> = (0..most).map_while(word).collect();
    let end = words.iter().rposition(|word| word & 0xff80_0000_ffff_ffff == END);
    words.truncate(end.map_or(0, |end| end + 1));
    words
}

/// What a shader does, one instruction a line.
fn text(words: &[u64], generation: Generation) -> String {
    let mut faithful = Faithful::new(100 * generation as u32);
    let mut lines = Vec::new();
    for &word in words {
        faithful.write(word, &mut lines);
        lines.push(b'\n');
    }
    String::from_utf8_lossy(&lines).into_owned()
}

fn halves(words: &[u64]) -> Vec<u32> {
    words.iter().flat_map(|&word| [word as u32, (word >> 32) as u32]).collect()
}

/// Replaces a shader of a capture. Whether it has an instruction without which something else is left.
fn replaced(bytes: &[u8], generation: Generation, (iova, most): (u64, u64), name: &str, db: &Db) -> bool {
    let places = StreamPlaces::of(bytes, db);
    let before = Replayed::new(bytes, Loading::Delta, STEPS, db);
    let original = words(&before, iova, most);
    if original.len() < 2 || before.ends.iter().any(|end| *end != RunEnd::Done) {
        return false;
    }
    for at in (0..original.len() - 1).rev().filter(|at| original[*at] != 0).take(TRIES) {
        let mut shader = original.clone();
        shader[at] = 0;
        let (over, _) = edited(bytes, &mut Over(iova, halves(&shader)), db).expect("written");
        let expected = Replayed::new(&over, Loading::Delta, STEPS, db);
        let code = |at: &u64| (iova..iova + SIZE * most).contains(at);
        let (mut differ, _) = before.differences(&expected, &places);
        differ.retain(|at| !code(at));
        if differ.is_empty() || expected.ends != before.ends {
            continue;
        }
        shader.splice(0..0, [0; NOPS]);
        let replacement =
            ShaderReplacement { iova, name: name.to_owned(), source: text(&shader, generation) };
        let options = Instrumentation { shaders: vec![replacement], ..Instrumentation::default() };
        let mut instrumenter = Instrumenter::new(&options);
        let (out, _) = edited(bytes, &mut instrumenter, db).expect("written");
        let after = Replayed::new(&out, Loading::Delta, STEPS, db);
        // The original stays where it was, and streams name the new one.
        let (mut wrong, compared) = expected.differences(&after, &places);
        wrong.retain(|at| !code(at));
        assert_eq!(expected.ends, after.ends, "{name}");
        assert!(
            compared > 0 && wrong.is_empty(),
            "{name}: {} dwords, {:x?}, without instruction {at}",
            wrong.len(),
            wrong.first()
        );
        return true;
    }
    false
}

#[test]
fn a_longer_shader_does_what_it_means() {
    let captures = captures();
    if captures.is_empty() {
        return println!("skipped: no captures");
    }
    let db = Db::builtin();
    let mut done: BTreeMap<(Generation, &str), usize> = BTreeMap::new();
    for path in &captures {
        let bytes = data::read(path);
        let mut shaders = Shaders::default();
        edited(&bytes, &mut shaders, &db).expect("written");
        let Some(generation) = shaders.generation else { continue };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The first that matters. A shader that another one follows at once has the length of both.
        for (&iova, &(stage, most)) in shaders.found.iter().take(TRIES) {
            let starts = shaders.found.keys().chain(&shaders.others);
            let next = starts.copied().filter(|start| *start > iova).min();
            let most = next.map_or(most, |next| most.min((next - iova) / SIZE));
            if replaced(&bytes, generation, (iova, most), &format!("{name}, {stage} at {iova:#x}"), &db) {
                *done.entry((generation, stage)).or_default() += 1;
                break;
            }
        }
    }
    println!("{} captures, replaced {done:?}", captures.len());
    for generation in [Generation::A6xx, Generation::A7xx] {
        for stage in ["FS", "CS"] {
            assert!(done.contains_key(&(generation, stage)), "{generation} {stage}");
        }
    }
}
