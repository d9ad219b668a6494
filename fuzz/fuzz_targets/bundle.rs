//! Any bytes as a file that holds code objects. `cargo fuzz run bundle`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_testkit::check;

fuzz_target!(|bytes: &[u8]| check::bundle(bytes));
