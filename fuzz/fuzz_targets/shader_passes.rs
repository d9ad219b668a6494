//! Random shaders: the same results before and after every pass, as text, and as SPIR-V. `cargo fuzz run shader_passes`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_testkit::shaders::checks::{random_forms, random_shader};

fuzz_target!(|seed: u64| {
    if let Err(e) = random_shader(seed).and_then(|_| random_forms(seed)) {
        panic!("seed {seed}: {e}");
    }
});
