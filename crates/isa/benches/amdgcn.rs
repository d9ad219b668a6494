//! How fast AMD's code is assembled and disassembled. The code comes from the tables: words with the fixed bits of an
//! instruction, other bits random, of families as compilers mix them; no two alike.

use divan::counter::{BytesCount, ItemsCount};
use std::collections::HashSet;
use unwedge_isa::amdgcn::model::Format;
use unwedge_isa::amdgcn::{Gpu, codec, listing, source, text};

/// A GPU of each of four generations.
const GPUS: [&str; 4] = ["gfx900", "gfx1030", "gfx1100", "gfx1200"];

/// Families with how many of a hundred instructions are of them.
const MIX: [(&[Format], usize); 6] = [
    (&[Format::Sop1, Format::Sop2, Format::Sopc, Format::Sopk, Format::Sopp], 30),
    (&[Format::Vop1, Format::Vop2, Format::Vopc], 40),
    (&[Format::Vop3, Format::Vop3p, Format::Vopd], 15),
    (&[Format::Smem], 5),
    (&[Format::Mubuf, Format::Vbuffer, Format::Global], 6),
    (&[Format::Ds], 4),
];

/// Instructions of a bench.
const COUNT: usize = 20_000;

fn main() {
    divan::main();
}

fn gpu(name: &str) -> Gpu {
    Gpu::new(name).expect("a GPU")
}

/// Numbers that look random, the same ones every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }
}

/// Words that are instructions of the mix and assemble from their text.
fn code(gpu: &Gpu) -> Vec<u32> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let mut left: Vec<usize> = MIX.iter().map(|(_, share)| share * COUNT / 100).collect();
    let (mut seen, mut words, mut line) = (HashSet::new(), Vec::new(), String::new());
    // What is rare among random words is not waited for without end.
    for _ in 0..200 * COUNT {
        let (low, high) = (random.next(), random.next());
        let four = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
        let Some(decoded) = codec::decode(&four, gpu) else { continue };
        let format = decoded.inst.row().format;
        let Some(family) = MIX.iter().position(|(formats, _)| formats.contains(&format)) else { continue };
        let own = &four[..decoded.dwords.into()];
        line.clear();
        text::write(&decoded.inst, gpu, &mut line);
        let again = text::parse_line(&line, gpu, &()).ok().and_then(|inst| codec::encode(&inst, gpu).ok());
        if left[family] > 0 && again.is_some_and(|again| again.as_slice() == own) && seen.insert(own.to_vec())
        {
            left[family] -= 1;
            words.extend_from_slice(own);
        }
        if left.iter().all(|left| *left == 0) {
            break;
        }
    }
    words
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn listed(code: &[u8], gpu: &Gpu, out: &mut String) {
    listing::write(code, gpu, &listing::Options::default(), out, &mut |_, _| ());
}

#[divan::bench(args = GPUS)]
fn decode(bencher: divan::Bencher<'_, '_>, name: &str) {
    let gpu = gpu(name);
    let words = code(&gpu);
    bencher.counter(BytesCount::of_slice(&words)).bench_local(|| {
        let (mut at, mut count) = (0, 0usize);
        while at < words.len() {
            at += codec::decode(&words[at..], &gpu).map_or(1, |decoded| decoded.dwords.into());
            count += 1;
        }
        count
    });
}

/// Lines that assemble to the same words.
#[divan::bench(args = GPUS)]
fn disassemble(bencher: divan::Bencher<'_, '_>, name: &str) {
    let gpu = gpu(name);
    let code = bytes(&code(&gpu));
    let mut out = String::new();
    bencher.counter(BytesCount::of_slice(&code)).bench_local(|| {
        out.clear();
        listed(&code, &gpu, &mut out);
        out.len()
    });
}

/// Lines of a file to bytes.
#[divan::bench(args = GPUS)]
fn assemble(bencher: divan::Bencher<'_, '_>, name: &str) {
    let gpu = gpu(name);
    let mut lines = String::new();
    listed(&bytes(&code(&gpu)), &gpu, &mut lines);
    bencher.counter(ItemsCount::new(lines.lines().count())).bench_local(|| {
        let made = source::assemble(&lines, &gpu);
        assert!(made.errors.is_empty(), "{:?}", made.errors.first());
        made
    });
}
