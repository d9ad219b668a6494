//! Complete synthetic dumps, broken by a seed. `cargo fuzz run devcore_mutated`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_testkit::{check, devcore, mutate};

fuzz_target!(|seed: u64| {
    let dumps = devcore::variety();
    let (_, text) = &dumps[(seed % dumps.len() as u64) as usize];
    check::devcore(&mutate::mutate(text, seed));
});
