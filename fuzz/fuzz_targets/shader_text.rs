//! Any text as a shader of the IR: refused, or printed, optimized and run. `cargo fuzz run shader_text`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_shader::ir::Shader;
use unwedge_testkit::shaders::checks::broken_text;

fuzz_target!(|text: &str| {
    if let Err(e) = broken_text(text, &mut Shader::default()) {
        panic!("{e}");
    }
});
