//! `cargo xtask ir3-code GPU COUNT`: ir3 words for measurements, no two alike.
//!
//! Of every encoding in turn, all field bits random; or, with `--like FILE`, the words of a file in turn, with the
//! registers and constants of their operands random. The same arguments give the same words.

use std::collections::HashSet;
use std::io::Write;
use unwedge_isa::ir3;
use unwedge_isa::table::{DecodedWord, generate};
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

const USAGE: &str = "usage: cargo xtask ir3-code GPU COUNT [--like FILE]";
/// Bit sets whose bits are a number: registers and constants.
const NUMBERED: [&str; 2] = ["reg-gpr", "reg-const"];
/// A word that has so few different forms is left out.
const TRIES: usize = 8;

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let (gpu, count, like) = match args {
        [gpu, count] => (gpu, count, None),
        [gpu, count, flag, file] if flag == "--like" => (gpu, count, Some(file)),
        _ => return Err(USAGE.into()),
    };
    let gpu_id: u32 = gpu.parse().map_err(|_| USAGE)?;
    let count: usize = count.parse().map_err(|_| USAGE)?;
    let patterns = match like {
        Some(file) => words_of(file, gpu_id)?,
        None => encodings(gpu_id),
    };
    let mut random = Random(u64::from(gpu_id));
    let mut seen = HashSet::with_capacity(count);
    let mut code = Vec::with_capacity(8 * count);
    while seen.len() < count {
        let before = seen.len();
        for &Pattern { word, free } in &patterns {
            let new = (0..TRIES).map(|_| word & !free | random.next() & free).find(|new| !seen.contains(new));
            if let Some(new) = new.filter(|_| seen.len() < count) {
                seen.insert(new);
                code.extend_from_slice(&new.to_le_bytes());
            }
        }
        if seen.len() == before {
            return Err(format!("there are no more than {before} different words"));
        }
    }
    std::io::stdout().write_all(&code).map_err(|e| e.to_string())
}

/// A word, and the bits of it that may be anything.
struct Pattern {
    word: u64,
    free: u64,
}

fn encodings(gpu_id: u32) -> Vec<Pattern> {
    let exists = |&leaf: &_| {
        let (min, max) = IR3.generations(leaf);
        (min..=max).contains(&gpu_id)
    };
    let pattern = |leaf| {
        let word = IR3.pattern(leaf).1 as u64;
        let free = generate::words(IR3, leaf, 0, 0).fold(0, |free, other| free | other as u64 ^ word);
        Pattern { word, free }
    };
    IR3.leaves(IR3_INSTRUCTION).filter(exists).map(pattern).collect()
}

fn words_of(file: &str, gpu_id: u32) -> Result<Vec<Pattern>, String> {
    let bytes = std::fs::read(file).map_err(|e| format!("{file}: {e}"))?;
    let words = bytes.as_chunks().0.iter().map(|&word| u64::from_le_bytes(word));
    let pattern =
        |word| Pattern { word, free: ir3::decode(word, gpu_id).map_or(0, |decoded| numbers(&decoded)) };
    Ok(words.map(pattern).collect())
}

/// The bits of registers and constants of a word: not the highest ones, which make a register one of the special ones.
fn numbers(decoded: &DecodedWord<'_>) -> u64 {
    let mut bits = 0;
    for (name, place) in decoded.fields() {
        let (Some((low, width)), Some(nested)) = (place, decoded.nested(name)) else { continue };
        let root = IR3.root_of(nested.leaf());
        if NUMBERED.iter().any(|name| IR3.root(name) == Some(root)) {
            bits |= ((1 << (width - 2)) - 1) << low;
        } else {
            bits |= numbers(&nested);
        }
    }
    bits
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}
