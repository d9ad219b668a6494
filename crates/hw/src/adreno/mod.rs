//! Adreno GPUs: which exist, and which one a dump or a person means.
//!
//! Never: another vendor's GPU. Facts: `data/adreno/adreno.devices`; the rest of `data/adreno` is what [`crate::Db::gpu`]
//! shows of a generation.

mod device;
mod identify;

pub use device::AdrenoDevice;
pub use identify::Adreno;
