//! Any words as a SPIR-V module: refused, or a valid shader that is printed, optimized and run. `cargo fuzz run spirv`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_shader::front::spirv::Reader;
use unwedge_shader::ir::Shader;
use unwedge_testkit::shaders::checks::broken_spirv;

fuzz_target!(|bytes: &[u8]| {
    let words: Vec<u32> = bytes.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    if let Err(e) = broken_spirv(&words, &mut Reader::default(), &mut Shader::default()) {
        panic!("{e}");
    }
});
