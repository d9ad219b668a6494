//! Adreno GPUs: which exist, which one a dump or a person means, layouts of memory inside of them, formats of texels and layouts of
//! images.
//!
//! Never: another vendor's GPU. Facts: `data/adreno/adreno.devices`; the rest of `data/adreno` is what [`crate::Db::gpu`]
//! shows of a generation.

mod device;
pub mod format;
pub mod hfi;
mod identify;
pub mod layout;
pub mod mempool;
pub mod snapshot;
pub mod state_use;

pub use device::AdrenoDevice;
pub use identify::Adreno;
