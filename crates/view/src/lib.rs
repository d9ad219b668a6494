//! Everything unwedge shows, as text and JSON, written to a [`std::io::Write`].
//!
//! Never: opens a file, reads arguments or the environment, knows a terminal.

pub mod amd;
pub mod asm;
pub mod device;
pub mod info;
pub mod intel;
pub mod json;
pub mod lines;
pub mod lrc;
pub mod regs;
pub mod report;
mod style;
pub mod words;

pub use style::Style;
