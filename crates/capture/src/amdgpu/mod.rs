//! amdgpu devcoredumps: `/sys/class/drm/card*/device/devcoredump/data`, written by the kernel when it resets a GPU.
//!
//! # Folklore
//! - The format grew: Linux 5.19 has five lines and the registers that debugfs asked for, 6.9 the SoC, versions and
//!   firmware, 6.10 and 6.11 the registers of IP blocks and the rings, 7.1 discovery data and IBs.
//! - `Page fault observed` is always there; a status of 0 says that there was none ([`PageFault::is_recorded`]).
//! - Before 7.1 rings and their pointers are read when somebody reads the dump, after the reset, not when the GPU hung.
//! - Header dump registers are FIFOs: kernels list them eight times in a row, and each line is the next entry.
//! - IP blocks without registers are listed all the same.

mod layout;
mod model;
mod read;
mod render;

pub use layout::{AmdgpuLayout, AmdgpuSection, AmdgpuSectionInfo};
pub use model::*;

/// Whether the start of a file looks like an amdgpu devcoredump. Looks at the first 16 KiB only.
pub fn sniff(start: &[u8]) -> bool {
    let start = start.get(..start.len().min(16 << 10)).unwrap_or_default();
    let marker = b"AMDGPU Device Coredump";
    start.windows(marker.len()).any(|w| w == marker)
}
