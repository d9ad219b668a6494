//! Checks of finished GPU machine code, without running it.
//!
//! Each module is one instruction set. It takes words, and says what in them a GPU does not do as it is written: missing
//! waits, unmet hazards, branches to nowhere. Never: prints, runs code, knows a file format.

pub mod amdgcn;
pub mod eu;
pub mod ir3;
mod level;

pub use level::Level;
