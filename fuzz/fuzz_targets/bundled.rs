//! Archives of `unwedge bundle`, whole and broken: the dump in them is read within bounds.

#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge::files::Input;

/// Bytes that an archive may hold.
const LIMIT: u64 = 1 << 20;

fuzz_target!(|data: &[u8]| {
    if let Ok(input) = Input::read(data, "archive".to_owned(), 0, LIMIT) {
        assert!(input.bytes.len() as u64 <= LIMIT);
    }
});
