//! Reading msm devcoredumps: ascii85, the whole dump, its memory. Synthetic dumps, and those of `UNWEDGE_DATA`.

#[path = "../tests/data/mod.rs"]
mod data;

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use unwedge_base::Generation;
use unwedge_capture::ascii85;
use unwedge_capture::devcore::Devcore;
use unwedge_testkit::devcore::DevcoreBuilder;

fn main() {
    divan::main();
}

#[divan::bench]
fn ascii85_decode(bencher: Bencher<'_, '_>) {
    let dwords: Vec<u32> = (0..1 << 18).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let text = ascii85::encode(&dwords);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| ascii85::decode(black_box(&text)));
}

/// A synthetic dump with a large buffer, then every real one.
fn dumps() -> Vec<(String, Vec<u8>)> {
    let contents: Vec<u32> = (0..1 << 16).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let synthetic =
        DevcoreBuilder::complete(Generation::A6xx).bo(0x2_0000_0000, 1 << 18, "large", &contents).text();
    let mut all = vec![("synthetic".to_owned(), synthetic)];
    all.extend(data::dumps());
    all
}

#[divan::bench]
fn read(bencher: Bencher<'_, '_>) {
    let dumps = dumps();
    let bytes: usize = dumps.iter().map(|(_, text)| text.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        dumps.iter().map(|(_, text)| Devcore::read(text).expect("a dump").registers.len()).sum::<usize>()
    });
}

#[divan::bench]
fn read_and_decode_memory(bencher: Bencher<'_, '_>) {
    let dumps = dumps();
    let bytes: usize = dumps.iter().map(|(_, text)| text.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench(|| {
        dumps
            .iter()
            .map(|(_, text)| Devcore::read(text).expect("a dump").memory().buffers().len())
            .sum::<usize>()
    });
}
