//! How fast ir3 is disassembled. The words come from the table: fixed bits of every instruction, other bits random, no two
//! alike.

use divan::counter::BytesCount;
use std::collections::HashSet;
use unwedge_base::Dwords;
use unwedge_isa::ir3::{self, Faithful, Ir3Listing, Ir3ListingOptions};
use unwedge_isa::table::generate;
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

/// Words of each instruction.
const EACH: usize = 500;

fn main() {
    divan::main();
}

fn shader(gpu_id: u32) -> Vec<u64> {
    let leaves = IR3.leaves(IR3_INSTRUCTION).filter(|&leaf| {
        let (min, max) = IR3.generations(leaf);
        (min..=max).contains(&gpu_id) && !["end", "chsh"].contains(&IR3.name(leaf))
    });
    let mut seen = HashSet::new();
    let words = leaves.flat_map(|leaf| generate::words(IR3, leaf, 1, EACH)).map(|word| word as u64);
    words.filter(|&word| seen.insert(word)).collect()
}

fn lines(bencher: divan::Bencher<'_, '_>, gpu_id: u32, mut write: impl FnMut(u64, &mut Vec<u8>)) {
    let words = shader(gpu_id);
    let mut out = Vec::new();
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        let mut bytes = 0;
        for part in words.chunks(256) {
            out.clear();
            for &word in part {
                write(word, &mut out);
                out.push(b'\n');
            }
            bytes += out.len();
        }
        bytes
    });
}

#[divan::bench(args = [300, 630, 730])]
fn instructions(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    lines(bencher, gpu_id, |word, out| ir3::write(word, gpu_id, out));
}

/// Lines that assemble to the same words.
#[divan::bench(args = [300, 630, 730])]
fn faithful(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    let mut faithful = Faithful::new(gpu_id);
    lines(bencher, gpu_id, |word, out| {
        faithful.write(word, out);
    });
}

#[divan::bench(args = [300, 630, 730])]
fn listing(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    let words = shader(gpu_id);
    let dwords: Vec<u32> = words.iter().flat_map(|word| [*word as u32, (word >> 32) as u32]).collect();
    let options = Ir3ListingOptions { gpu_id, raw: true, level: 1 };
    let mut out = Vec::new();
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        out.clear();
        for part in dwords.chunks(128) {
            let mut listing = Ir3Listing::new(Dwords::from(part), options);
            while listing.instruction(&mut out) {}
        }
        out.len()
    });
}
