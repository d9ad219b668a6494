//! Adreno.

pub mod ir3;
pub mod sqe;
