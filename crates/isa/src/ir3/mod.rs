//! ir3: the shader instruction set of Adreno 3xx to 7xx.

pub mod asm;
mod disasm;
mod faithful;
mod stats;

pub use disasm::{Ir3Listing, Ir3ListingOptions, decode, write};
pub use faithful::Faithful;
pub use stats::{Stats, WaveLimits};
