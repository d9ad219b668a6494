//! Any bytes as code of Intel's EUs: the listing assembles to the same bytes. The first byte says which platform.
//! `cargo fuzz run eu`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_isa::eu::{Platform, program};

fuzz_target!(|bytes: &[u8]| {
    let Some((&platform, code)) = bytes.split_first() else { return };
    let names: Vec<&str> = Platform::names().collect();
    let platform = Platform::by_name(names[usize::from(platform) % names.len()]).expect("it is in the table");
    let listing = program::listing(platform, code);
    assert_eq!(program::assemble(platform, &listing).as_deref(), Ok(code), "{listing}");
    if let Ok(text) = std::str::from_utf8(code) {
        let _ = program::assemble(platform, text);
    }
});
