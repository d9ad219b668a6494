//! ir3: the shader instruction set of Adreno 3xx to 7xx.

pub mod asm;
mod disasm;
mod memo;
mod stats;

pub use disasm::{Listing, decode, disassemble, write};
pub use memo::Memo;
pub use stats::{Stats, WaveLimits};
