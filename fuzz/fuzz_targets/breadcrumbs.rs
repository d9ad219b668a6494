//! Any bytes as datagrams that a listener receives. `cargo fuzz run breadcrumbs`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_campaigns::breadcrumbs::{limit, listen};

fuzz_target!(|bytes: &[u8]| {
    let mut out = Vec::new();
    let datagrams = listen(bytes, None, &mut out);
    assert!(out.len() as u64 <= limit(datagrams));
});
