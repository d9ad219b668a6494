//! Crash dumps and captures of GPUs: files in and out.
//!
//! A broken input is not an error: readers return what is there plus diagnostics. `Err` means the input is not of that
//! format at all. Never: what a packet or register means; I/O.

pub mod amdgpu;
pub mod ascii85;
pub mod code_object;
pub mod devcore;
pub mod i915;
pub mod intel;
pub mod rd;
pub mod xe;
