//! How fast ir3 is disassembled. The words come from the table: fixed bits of every instruction, other bits random.

use divan::counter::BytesCount;
use unwedge_isa::ir3::{self, Listing, Memo};
use unwedge_isa::table::generate;
use unwedge_isa::tables::{IR3, IR3_INSTRUCTION};

fn main() {
    divan::main();
}

fn shader(gpu_id: u32) -> Vec<u64> {
    let leaves = IR3.leaves(IR3_INSTRUCTION).filter(|&leaf| {
        let (min, max) = IR3.generations(leaf);
        (min..=max).contains(&gpu_id) && !["end", "chsh"].contains(&IR3.name(leaf))
    });
    leaves.flat_map(|leaf| generate::words(IR3, leaf, 1, 64)).map(|word| word as u64).collect()
}

#[divan::bench(args = [300, 630, 730])]
fn instructions(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    let words = shader(gpu_id);
    let mut out = Vec::new();
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        out.clear();
        for &word in &words {
            ir3::write(word, gpu_id, &mut out);
            out.push(b'\n');
        }
        out.len()
    });
}

#[divan::bench(args = [300, 630, 730])]
fn listing(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    let words = shader(gpu_id);
    let mut out = Vec::new();
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        out.clear();
        for part in words.chunks(64) {
            ir3::disassemble(part, &Listing { gpu_id, raw: true, level: 1 }, &mut out);
        }
        out.len()
    });
}

/// The words again and again, as in a program whose shaders resemble each other.
#[divan::bench(args = [300, 630, 730])]
fn remembered(bencher: divan::Bencher<'_, '_>, gpu_id: u32) {
    let words = shader(gpu_id);
    let (mut memo, mut out) = (Memo::default(), Vec::new());
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        out.clear();
        for &word in &words {
            memo.append(word, &mut out, |out| {
                ir3::write(word, gpu_id, out);
                out.push(b'\n');
            });
        }
        out.len()
    });
}
