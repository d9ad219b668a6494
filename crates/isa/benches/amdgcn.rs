//! How fast AMD's code is assembled and disassembled: shaders that a compiler made, from the data folder; the same with
//! operands and modifiers random; and code from the tables, all opcodes of a family as often, no two instructions alike.

#[path = "../tests/data/mod.rs"]
mod data;

use divan::counter::{BytesCount, ItemsCount};
use std::collections::HashSet;
use unwedge_isa::amdgcn::model::Format;
use unwedge_isa::amdgcn::{Gpu, Inst, codec, listing, source, tables, text};
use unwedge_testkit::pack::bytes;

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

/// Chips of which there are shaders, and the GPUs they are of.
const CHIPS: [(&str, &str, &str); 8] = [
    ("tahiti", "gfx600", ""),
    ("bonaire", "gfx700", ""),
    ("polaris10", "gfx803", ""),
    ("vega10", "gfx900", ""),
    ("navi10", "gfx1010", "+wavefrontsize64"),
    ("navi21", "gfx1030", "+wavefrontsize64"),
    ("navi31", "gfx1100", "+wavefrontsize64"),
    ("gfx1200", "gfx1200", "+wavefrontsize64"),
];

fn main() {
    divan::main();
}

fn gpu(name: &str) -> Gpu {
    Gpu::new(name).expect("a GPU")
}

fn chip(name: &str) -> (&'static str, &'static str, &'static str) {
    CHIPS.into_iter().find(|chip| chip.1 == name).expect("a chip")
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
    let (mut seen, mut words) = (HashSet::new(), Vec::new());
    // What is rare among random words is not waited for without end.
    for _ in 0..200 * COUNT {
        let (low, high) = (random.next(), random.next());
        let four = [low as u32, (low >> 32) as u32, high as u32, (high >> 32) as u32];
        let Some(decoded) = codec::decode(&four, gpu) else { continue };
        let format = decoded.inst.row().format;
        let Some(family) = MIX.iter().position(|(formats, _)| formats.contains(&format)) else { continue };
        let own = &four[..decoded.dwords.into()];
        if left[family] > 0 && assembles(own, &decoded.inst, gpu) && seen.insert(own.to_vec()) {
            left[family] -= 1;
            words.extend_from_slice(own);
        }
        if left.iter().all(|left| *left == 0) {
            break;
        }
    }
    words
}

fn listed(code: &[u8], gpu: &Gpu, out: &mut String) {
    listing::write(code, gpu, &listing::AmdListingOptions::default(), out, &mut |_, _| ());
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

/// The shaders of a chip, one after the other.
fn shaders((family, name, features): (&str, &str, &str)) -> (Gpu, Vec<u32>) {
    let gpu = gpu(name).with_features(features).expect("features");
    (gpu, data::amd_shaders(family).concat())
}

/// The same instructions with random operands, and with random modifiers every fourth time, as far as they are the same then.
fn varied(gpu: &Gpu, words: &[u32]) -> Vec<u32> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut out, mut at) = (Vec::new(), 0);
    while at < words.len() {
        let Some(decoded) = codec::decode(&words[at..], gpu) else {
            at += 1;
            continue;
        };
        let own = &words[at..][..decoded.dwords.into()];
        at += own.len();
        let variant = decoded.inst.variant();
        let layout = tables::layout(variant.encoding, gpu).expect("a layout");
        let modifiers = random.next().is_multiple_of(4);
        let slots = variant.slots.iter().map(|slot| slot.field);
        let fields = slots.chain(variant.mods.iter().map(|slot| slot.field).filter(|_| modifiers));
        let bits = fields.map(|field| layout.fields[field as usize]).fold(0u128, |bits, field| {
            bits | (u128::MAX.unbounded_shl(field.width.into()) ^ u128::MAX) << field.lsb
        });
        let made = (0..20).find_map(|_| {
            let mut made = own.to_vec();
            for (n, word) in made.iter_mut().take(layout.dwords.into()).enumerate() {
                let bits = (bits >> (32 * n)) as u32;
                *word = *word & !bits | random.next() as u32 & bits;
            }
            let again = codec::decode(&made, gpu)?;
            let same = again.inst.number() == decoded.inst.number() && again.dwords == decoded.dwords;
            (same && assembles(&made, &again.inst, gpu)).then_some(made)
        });
        out.extend(made.unwrap_or_else(|| own.to_vec()));
    }
    out
}

/// Whether the text of an instruction makes its words.
fn assembles(words: &[u32], inst: &Inst, gpu: &Gpu) -> bool {
    let mut line = String::new();
    text::write(inst, gpu, &mut line);
    let again = text::parse_line(&line, gpu, &()).ok().and_then(|inst| codec::encode(&inst, gpu).ok());
    again.is_some_and(|again| again.as_slice() == words)
}

fn disassembled(bencher: divan::Bencher<'_, '_>, gpu: &Gpu, words: &[u32]) {
    let code = bytes(words);
    let mut out = String::new();
    bencher.counter(BytesCount::of_slice(&code)).bench_local(|| {
        out.clear();
        listed(&code, gpu, &mut out);
        out.len()
    });
}

fn assembled(bencher: divan::Bencher<'_, '_>, gpu: &Gpu, words: &[u32]) {
    let mut lines = String::new();
    listed(&bytes(words), gpu, &mut lines);
    bencher.counter(ItemsCount::new(lines.lines().count())).bench_local(|| {
        let made = source::assemble(&lines, gpu);
        assert!(made.errors.is_empty(), "{:?}", made.errors.first());
        made
    });
}

/// Lines that assemble to the same words.
#[divan::bench(args = GPUS)]
fn disassemble(bencher: divan::Bencher<'_, '_>, name: &str) {
    let gpu = gpu(name);
    disassembled(bencher, &gpu, &code(&gpu));
}

#[divan::bench(args = CHIPS.map(|chip| chip.1))]
fn disassemble_shaders(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (gpu, words) = shaders(chip(name));
    disassembled(bencher, &gpu, &words);
}

#[divan::bench(args = CHIPS.map(|chip| chip.1))]
fn disassemble_varied(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (gpu, words) = shaders(chip(name));
    disassembled(bencher, &gpu, &varied(&gpu, &words));
}

/// Lines of a file to bytes.
#[divan::bench(args = GPUS)]
fn assemble(bencher: divan::Bencher<'_, '_>, name: &str) {
    let gpu = gpu(name);
    assembled(bencher, &gpu, &code(&gpu));
}

#[divan::bench(args = CHIPS.map(|chip| chip.1))]
fn assemble_shaders(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (gpu, words) = shaders(chip(name));
    assembled(bencher, &gpu, &words);
}

#[divan::bench(args = CHIPS.map(|chip| chip.1))]
fn assemble_varied(bencher: divan::Bencher<'_, '_>, name: &str) {
    let (gpu, words) = shaders(chip(name));
    assembled(bencher, &gpu, &varied(&gpu, &words));
}
