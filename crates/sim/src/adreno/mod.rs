//! Adreno.

pub mod sqe;
