//! Any text as NIR: refused, or a valid shader that is printed, optimized and run. `cargo fuzz run nir`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_shader::ir::Shader;
use unwedge_testkit::shaders::checks::{broken_nir, nir_options};

fuzz_target!(|text: &str| {
    if let Err(e) = broken_nir(text, &nir_options(), &mut Shader::default()) {
        panic!("{e}");
    }
});
