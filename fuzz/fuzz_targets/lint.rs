//! Any bytes as a rd capture, linted. `cargo fuzz run lint`
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::io;
use unwedge_campaigns::lints;
use unwedge_hw::Db;

fuzz_target!(|bytes: &[u8]| {
    lints::show(bytes, &Db::builtin(), 64 << 20, &mut io::sink());
});
