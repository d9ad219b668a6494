//! Any bytes in the browser, with keys that the first of them choose. `cargo fuzz run browser`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::browser::browse;

fuzz_target!(|bytes: &[u8]| {
    if let Some((seed, file)) = bytes.split_first_chunk() {
        browse("file", file, u64::from_le_bytes(*seed), 40);
    }
});
