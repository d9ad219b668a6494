//! Any bytes as code of Intel's EUs are checked: the first two say which platform and options. `cargo fuzz run eu_check`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_check::eu::{CheckOptions, check};
use unwedge_isa::eu::Platform;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[platform, flags], code)) = bytes.split_first_chunk() else { return };
    let names: Vec<&str> = Platform::names().collect();
    let platform = Platform::by_name(names[usize::from(platform) % names.len()]).expect("it is in the table");
    let inputs = (flags & 2 != 0).then_some(u16::from(flags));
    let report = check(platform, code, CheckOptions { whole: flags & 1 != 0, inputs });
    assert!(report.instructions * 8 <= code.len());
    assert!(report.findings.iter().all(|f| f.at as usize <= code.len()));
});
