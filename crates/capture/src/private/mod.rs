//! What is private in dumps, captures and kernel logs, and the same files without it.
//!
//! Names of processes, users and machines are replaced by pseudonyms. A name has the same pseudonym, such as `process-1`, wherever
//! it is found, and the same input gives the same output. A number does not confirm a guessed name, as a hash would. Contents of
//! buffers are cut on request, so that the file reads as one whose kernel did not capture them. Never: which contents a verdict needs.
//! Facts: the formats, as their readers here have them; messages of Linux 5.4 to 6.17.

mod capture;
mod dump;
mod lines;
mod names;

pub use capture::rewrite_capture;
pub use dump::{BufferContents, PrivateDump, joined};
pub use lines::{rewrite_log, rewrite_text};
pub use names::{PrivateKind, Pseudonym, Pseudonyms};
