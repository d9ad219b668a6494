//! What the formats of AMD GPUs share: [`AmdRegister`], [`DwordContents`] and lines of text.
//!
//! The formats are [`crate::amdgpu`] (what the kernel writes after a reset), [`crate::radv`] (the folder, or single text,
//! that RADV leaves when a queue hangs) and [`crate::umr`] (what umr printed about waves, rings and registers).
//!
//! Never: what a packet or a register's bits mean. Facts: the sources named in each module.

mod contents;
mod hub;
pub(crate) mod register;
pub(crate) mod text;

pub use contents::DwordContents;
pub use hub::VmHub;
pub use register::{AmdRegister, plain_name};
