//! Everything unwedge shows, as text and JSON, written to a [`std::io::Write`].
//!
//! Never: opens a file, reads arguments or the environment, knows a terminal.

pub mod asm;
pub mod report;
mod style;
pub mod words;

pub use style::Style;
