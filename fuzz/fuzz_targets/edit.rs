//! Any bytes as a rd capture, instrumented. `cargo fuzz run edit`
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use unwedge_campaigns::captures;
use unwedge_cli::output::SharedOutput;
use unwedge_hw::Db;

fuzz_target!(|bytes: &[u8]| {
    let capture = Arc::from(bytes);
    let out: SharedOutput = Rc::new(RefCell::new(io::sink()));
    let db = Rc::new(Db::builtin());
    for words in captures::ALL.iter().filter(|words| words.first() == Some(&"edit")) {
        let _ = captures::show(words, &capture, &capture, &db, 64 << 20, &out);
    }
});
