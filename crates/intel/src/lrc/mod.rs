//! Logical ring contexts: the image in memory that an engine loads when it switches to a context, and saves when it leaves it.
//!
//! An image is a hardware status page, then a page of registers as MI_LOAD_REGISTER_IMM commands in an order that the
//! hardware defines, then the rest of the engine's state. Which registers these are, the kernel drivers have in compact
//! tables ([`encoding`]); [`LrcLayout`] expands one to the register page of an engine, [`LrcLayout::verify`] finds where an image
//! differs from it, [`triage`] what happened there, [`values`] what no engine would have saved. Facts are those of i915 and
//! xe; they stand in `data/intel/lrc.*`. Never: what a dump is.

pub mod commands;
pub mod diff;
pub mod encoding;
mod facts;
pub mod image;
pub mod layout;
pub mod registers;
pub mod tables;
pub mod text;
pub mod triage;
pub mod values;

pub use image::LrcImage;
pub use layout::{
    LayoutCheck, LayoutDifference, LayoutMismatch, LrcLayout, LrcLayoutError, LrcOwner, PageDword,
};

/// Dwords of a page.
pub const PAGE: usize = 1024;
