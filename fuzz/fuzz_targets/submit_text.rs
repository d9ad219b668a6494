//! Any text as the text of a submit: refused, or assembled, and written as programs. `cargo fuzz run submit_text`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::texts::assemble;

fuzz_target!(|text: &str| {
    assemble(text, 1 << 20);
});
