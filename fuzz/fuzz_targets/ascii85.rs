//! Any bytes. `cargo fuzz run ascii85`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_testkit::check;

fuzz_target!(|bytes: &[u8]| check::ascii85(bytes));
