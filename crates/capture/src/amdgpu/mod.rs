//! AMD GPUs: devcoredumps of the amdgpu driver, hang reports of RADV, text that umr prints.
//!
//! Three formats that say some of the same things: [`Devcoredump`] is what the kernel writes after a reset,
//! [`RadvReport`] the folder (or single text) that RADV leaves when a queue hangs, [`UmrText`] what umr printed about
//! waves, rings and registers. What they share is here: [`Register`], [`Contents`], [`GfxVersion`].
//!
//! Never: what a packet or a register's bits mean. Facts: the sources named in each module.

mod contents;
pub mod devcore;
pub mod radv;
mod register;
mod text;
pub mod umr;

pub use contents::Contents;
pub use devcore::Devcoredump;
pub use radv::RadvReport;
pub use register::{GfxVersion, Register, plain_name};
pub use umr::UmrText;
