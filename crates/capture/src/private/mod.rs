//! What is private in dumps, captures and kernel logs, and the same files without it.
//!
//! Names of processes, users and machines become pseudonyms: `process-1` stands for the same process wherever it is named. A
//! number cannot be looked up, as a hash of a known name could, and the same input gives the same output. Contents of buffers are
//! cut on request, so that the file reads as one whose kernel did not capture them. Never: which contents a verdict needs.
//! Facts: the formats, as their readers here have them; messages of Linux 5.4 to 6.17.

mod capture;
mod dump;
mod lines;
mod names;

pub use capture::rewrite_capture;
pub use dump::{BufferContents, PrivateDump, joined};
pub use lines::{rewrite_log, rewrite_text};
pub use names::{PrivateKind, Pseudonym, Pseudonyms};
