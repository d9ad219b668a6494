//! What every crate of unwedge shares: chip ids and generations of GPUs, GPU memory as a dump holds it, and
//! diagnostics that say where in the input something was lost.
//!
//! Never: a vendor's file format, a register name, I/O.

pub mod chip;
pub mod decimal;
pub mod diag;
pub mod dwords;
pub mod entity;
mod gfx;
pub mod hash;
pub mod inline;
pub mod memory;
pub mod mix;
pub mod plural;

pub use chip::{ChipId, Generation};
pub use diag::{Diagnostic, Severity, Span};
pub use dwords::Dwords;
pub use gfx::{GcVersion, Gfx, GfxTarget};
pub use memory::{Buffer, Memory};
