//! What `lint` says of a capture in memory, within a small number of steps. Never: files.

use std::io::Write;
use std::time::Duration;
use unwedge::hw::Db;
use unwedge::postmortem::lint::{LintOptions, lint};
use unwedge_view::Style;
use unwedge_view::lint::Linted;

/// Steps that a submit may take.
const STEPS: u64 = 1 << 18;
/// Steps that a packet may take.
const HANG_STEPS: u64 = 1 << 17;
/// What a capture may take, however small it is: it is executed with caches.
pub const TIME: Duration = Duration::from_secs(20);
/// Bytes that may be printed however small a capture is: as many findings as are kept, in three forms.
const FLOOR: u64 = 128 << 20;
/// Bytes that may be printed for each byte of a capture.
const PER_BYTE: u64 = 64;

/// Lints a capture, and prints all that is found as text, JSON and SARIF.
pub fn show(capture: &[u8], db: &Db, max_alive: u64, out: &mut dyn Write) {
    let options = LintOptions { hang_steps: HANG_STEPS, ..LintOptions::new(STEPS) };
    let (report, _) = lint(capture, &options, db, max_alive);
    let linted =
        Linted { name: "capture", report: &report, shown: unwedge::check::ir3::Level::Note, all: true };
    // A counter takes everything.
    let _ = linted.text(Style::default(), out);
    let _ = linted.json(db.identity(), out);
    let _ = linted.sarif(out);
    let _ = linted.html(db.identity(), out);
}

/// The most that is printed for a capture of so many bytes.
pub fn limit(bytes: u64) -> u64 {
    FLOOR + PER_BYTE.saturating_mul(bytes)
}
