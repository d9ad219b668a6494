//! Random shaders, compiled for AMD GPUs: code on the emulator leaves what the interpreter leaves. `cargo fuzz run aco`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::compiler::{CompiledRun, compare, gpu};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::lanes::{self, GROUPS, OUTPUT_BYTES};

fuzz_target!(|seed: u64| {
    let mut rng = Rng::new(seed);
    let shader = lanes::random(&mut rng);
    let input = lanes::input(&mut rng);
    let gpu = gpu(seed).expect("a GPU");
    let expected =
        lanes::interpreted(&shader, &input, gpu.wave64()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    let run = CompiledRun {
        input: &input,
        output: OUTPUT_BYTES,
        output_address: lanes::OUTPUT,
        groups: [GROUPS, 1, 1],
        gpu,
        seed,
    };
    if let Err(e) = compare(&shader, &run, &expected) {
        panic!("seed {seed}: {e}");
    }
});
