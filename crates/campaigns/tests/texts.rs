//! Broken texts of submits: refused with a position, or assembled within bounds to what has a text again.

use std::time::{Duration, Instant};
use unwedge::edit::text::{self, TextOptions};
use unwedge::hw::Db;
use unwedge_campaigns::texts::assemble;
use unwedge_testkit::captures::variety;
use unwedge_testkit::mutate::{Rng, mutate};

/// Above what a slow machine under load takes without optimization, below what a hang takes.
const PATIENCE: Duration = Duration::from_secs(60);
const LIMIT: u64 = 1 << 20;

/// Lines that claim much, contradict themselves, or end early.
const HOSTILE: [&str; 10] = [
    "zeros 0xffffffffffffffff",
    "fill 0x3fffffffffffffff 1",
    "buffer x at 0xffffffffffffffff size 0xffffffff contents 0xffffffffffffffff {",
    "stream y at 0 {",
    "shader z {",
    "pkt7 CP_NOP {",
    "}",
    "submit &y+0xffffffffffffffff size(y)",
    "room 0xffffffffffffffff size 0xffffffffffffffff",
    "string \"\\x",
];

/// Texts of captures of every generation.
fn samples() -> Vec<String> {
    let db = Db::builtin();
    let captures = variety();
    let cut = captures.iter().filter_map(|capture| text::cut(&capture[..], 0, &db, 1 << 26).ok());
    cut.map(|(cut, _)| text::decompile(&cut, &db, TextOptions::default()).text).collect()
}

fn assembles(text: &str) -> bool {
    let started = Instant::now();
    let made = assemble(text, LIMIT).is_some();
    assert!(started.elapsed() < PATIENCE, "{:?} for\n{text}", started.elapsed());
    made
}

#[test]
fn texts_of_every_generation_assemble() {
    let samples = samples();
    assert!(samples.len() > 5);
    for text in &samples {
        assert!(assembles(text), "{text}");
    }
}

#[test]
fn broken_texts() {
    let samples = samples();
    let count = if std::env::var_os("UNWEDGE_ALL").is_some() { 20_000 } else { 150 };
    let mut made = 0;
    for seed in 0..count {
        let whole = &samples[seed as usize % samples.len()];
        let mut rng = Rng::new(seed);
        let broken = if seed % 3 == 0 {
            let mut lines: Vec<&str> = whole.lines().collect();
            for _ in 0..=rng.below(3) {
                let at = rng.below(lines.len());
                match rng.below(3) {
                    0 => lines.insert(at, rng.pick(&HOSTILE).copied().expect("a line")),
                    1 => drop(lines.remove(at)),
                    _ => lines.swap(0, at),
                }
            }
            lines.join("\n")
        } else {
            String::from_utf8_lossy(&mutate(whole.as_bytes(), seed)).into_owned()
        };
        made += u32::from(assembles(&broken));
    }
    println!("{made} of {count} broken texts assemble");
    assert!((1..count as u32).contains(&made), "{made} of {count}");
}
