//! What umr prints: waves (`-O halt_waves -wa`, with and without `bits`), rings and IBs (`-RS`, `-R`, `-di`), registers (`-r`, `-O bits`),
//! the list of blocks (`-lb`), shaders (`-vd`), and memory (`--vm-read` through `xxd` or `hexdump -C`).
//!
//! The text has no heading of its own and comes alone, after a command line, or inside of a RADV report. Facts: umr's
//! documentation and its printing code up to 1.0.11.

mod model;
mod read;

pub use model::*;

/// Whether the start of a file looks like text of umr. Looks at the first 16 KiB only.
pub fn sniff(start: &[u8]) -> bool {
    read::read(start.get(..start.len().min(16 << 10)).unwrap_or_default()).1
}
