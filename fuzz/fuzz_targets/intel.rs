//! Any text as an error state of i915 or a devcoredump of xe, in a view that the first byte says. `cargo fuzz run intel`
#![no_main]

mod shown;

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::View;

fuzz_target!(|bytes: &[u8]| {
    let Some((&view, text)) = bytes.split_first() else { return };
    shown::shown(text, &View::OF_INTEL, view);
});
