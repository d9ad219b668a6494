//! Adreno GPUs: which exist, which one a dump or a person means, and layouts of memory inside of them.
//!
//! Never: another vendor's GPU. Facts: `data/adreno/adreno.devices`; the rest of `data/adreno` is what [`crate::Db::gpu`]
//! shows of a generation.

mod device;
pub mod hfi;
mod identify;
pub mod mempool;

pub use device::AdrenoDevice;
pub use identify::Adreno;
