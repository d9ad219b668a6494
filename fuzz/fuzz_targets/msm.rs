//! Any text as a devcoredump of msm, in a view that the first byte says: listings, reports, packets around a place.
//! `cargo fuzz run msm`
#![no_main]

mod shown;

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::View;

fuzz_target!(|bytes: &[u8]| {
    let Some((&view, text)) = bytes.split_first() else { return };
    shown::shown(text, &View::all(), view);
});
