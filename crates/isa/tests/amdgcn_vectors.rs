//! AMD's instructions against LLVM's: texts and their bytes, texts and LLVM's verdict, from the data folder.
//!
//! Of gfx6 and gfx7 LLVM has no disassembler: there what is disassembled must assemble to the same bytes.

mod amdgcn;
mod data;

use amdgcn::{assemble, disassemble, gpu};
use data::{amd_vectors, cell};
use std::collections::BTreeMap;
use unwedge_isa::amdgcn::Gen;

/// Of a thousand rows at most one may differ. What does is printed, whether or not it is too much.
const PER_THOUSAND: usize = 1;

/// Of a hundred verdicts at most one may differ: LLVM takes offsets that it cannot encode, and cuts them.
const VERDICTS_PER_HUNDRED: usize = 1;

/// How many rows that differ are printed.
const SHOWN: usize = 200;

/// Rows of one kind, and what was wrong with them.
#[derive(Default)]
struct Told {
    rows: usize,
    wrong: Vec<String>,
}

impl Told {
    fn add(&mut self, wrong: Option<String>) {
        self.rows += 1;
        self.wrong.extend(wrong);
    }
}

/// Prints what differs and whether that is few enough.
fn few_enough(told: &BTreeMap<(String, &str), Told>, part: usize, of: usize) {
    let mut all: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for ((name, kind), Told { rows, wrong }) in told {
        println!("{name}, {kind}: {} of {rows} as they should be", rows - wrong.len());
        let sum = all.entry(kind).or_default();
        *sum = (sum.0 + rows, sum.1 + wrong.len());
    }
    for line in told.values().flat_map(|told| &told.wrong).take(SHOWN) {
        println!("    {line}");
    }
    for (kind, (rows, wrong)) in all {
        println!("{kind}: {} of {rows}", rows - wrong);
        assert!(wrong * of <= rows * part, "{kind}: {wrong} of {rows} differ");
    }
}

fn hex(words: &[u32]) -> String {
    words.iter().flat_map(|word| word.to_le_bytes()).map(|byte| format!("{byte:02x}")).collect()
}

fn words(hex: &str) -> Vec<u32> {
    let digits = |at: usize| u32::from_str_radix(&hex[at..at + 2], 16).expect("hexadecimal");
    (0..hex.len() / 8)
        .map(|word| (0..4).fold(0, |sum, byte| sum | digits(8 * word + 2 * byte) << (8 * byte)))
        .collect()
}

#[test]
fn texts_are_bytes_and_bytes_are_texts() {
    let mut told: BTreeMap<(String, &str), Told> = BTreeMap::new();
    for (file, rows) in amd_vectors() {
        if !rows[0].iter().any(|column| column == "bytes") {
            continue;
        }
        let [mcpu, features, asm, bytes] = ["mcpu", "features", "asm", "bytes"].map(|name| cell(&rows, name));
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        for row in &rows[1..] {
            let gpu = gpu(&row[mcpu], &row[features]);
            let (text, bytes) = (&row[asm], words(&row[bytes]));
            let mut tell = |kind, wrong| told.entry((name.clone(), kind)).or_default().add(wrong);
            let got = assemble(text, &gpu);
            tell(
                "assembled",
                (got.as_ref() != Ok(&bytes))
                    .then(|| format!("{name}: {text}: {got:x?}, not {}", hex(&bytes))),
            );
            let shown = disassemble(&bytes, &gpu);
            if gpu.generation() > Gen::Gfx7 {
                let same = shown.as_ref() == Some(text);
                tell(
                    "disassembled",
                    (!same).then(|| format!("{name}: {}: {shown:?}, not {text}", hex(&bytes))),
                );
            } else {
                let again = shown.as_ref().map(|shown| assemble(shown, &gpu));
                let same = again == Some(Ok(bytes.clone()));
                tell(
                    "disassembled and assembled",
                    (!same).then(|| format!("{name}: {text}: {shown:?}: {again:x?}")),
                );
            }
        }
    }
    few_enough(&told, PER_THOUSAND, 1000);
}

#[test]
fn what_llvm_takes_is_taken() {
    let mut told: BTreeMap<(String, &str), Told> = BTreeMap::new();
    for (_, rows) in amd_vectors() {
        if !rows[0].iter().any(|column| column == "verdict") {
            continue;
        }
        let columns = ["mcpu", "mutation", "verdict", "llvm_error", "asm"];
        let [mcpu, mutation, verdict, llvm, asm] = columns.map(|name| cell(&rows, name));
        for row in &rows[1..] {
            let gpu = gpu(&row[mcpu], "");
            let got = assemble(&row[asm], &gpu);
            let same = got.is_ok() == (row[verdict] == "accepted");
            let wrong =
                || format!("{}: {}: {got:x?}, LLVM: {} {}", row[mcpu], row[asm], row[verdict], row[llvm]);
            told.entry((row[mutation].clone(), "verdicts")).or_default().add((!same).then(wrong));
        }
    }
    few_enough(&told, VERDICTS_PER_HUNDRED, 100);
}
