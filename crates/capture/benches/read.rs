//! Reading dumps: ascii85, the whole dump, its memory. Synthetic dumps, and for msm those of `UNWEDGE_DATA`.

use divan::counter::BytesCount;
use divan::{Bencher, black_box};
use unwedge_base::Generation;
use unwedge_capture::ascii85;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::msm::Devcore;
use unwedge_capture::xe;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::i915::{ErrorStateBuilder, I915Era};
use unwedge_testkit::intel::{EngineState, TestDevice};
use unwedge_testkit::xe::DevcoreBuilder as XeBuilder;

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

/// An engine with so many MiB of noise that an application had captured.
fn noisy_engine(mebibytes: u32) -> EngineState {
    let noise: Vec<u32> = (0..mebibytes << 18).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    EngineState::new("rcs0").user(0x1_0000_0000, &noise)
}

/// Some 50 MB of text, as kernels from 4.10 on write it.
fn error_state(era: I915Era) -> Vec<u8> {
    let mebibytes = if era == I915Era::V4_4 { 10 } else { 40 };
    ErrorStateBuilder::complete(TestDevice::named("tgl"), era)
        .unpacked()
        .engine(noisy_engine(mebibytes))
        .text()
}

#[divan::bench(args = [I915Era::V4_4, I915Era::V6_12])]
fn read_i915_50_mb(bencher: Bencher<'_, '_>, era: I915Era) {
    let text = error_state(era);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| ErrorState::read(&text).map(|s| s.blocks.len()));
}

#[divan::bench]
fn read_i915_50_mb_and_unpack(bencher: Bencher<'_, '_>) {
    let text = error_state(I915Era::V6_12);
    bencher.counter(BytesCount::of_slice(&text)).bench(|| {
        let state = ErrorState::read(&text).expect("an error state");
        let engine = state.engines.last().expect("an engine");
        state.ppgtt(engine, usize::MAX).memory.stored()
    });
}

#[divan::bench]
fn unpack_zlib(bencher: Bencher<'_, '_>) {
    let text = ErrorStateBuilder::new(TestDevice::named("tgl")).engine(noisy_engine(8)).text();
    let state = ErrorState::read(&text).expect("an error state");
    let data = state.blocks.iter().find_map(|b| b.data.as_ref()).expect("memory");
    bencher.counter(BytesCount::new(8u32 << 20)).bench(|| data.decode(usize::MAX).dwords.len());
}

#[divan::bench]
fn read_xe_50_mb(bencher: Bencher<'_, '_>) {
    let text = XeBuilder::new(TestDevice::named("lnl")).engine(noisy_engine(40)).text();
    bencher.counter(BytesCount::of_slice(&text)).bench(|| xe::XeDevcore::read(&text).map(|d| d.blocks.len()));
}
