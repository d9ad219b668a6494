//! ir2: the shaders of a2xx.
//!
//! A shader opens with control-flow words of 48 bits; they run vertex fetches, texture fetches and arithmetic, words
//! of 96 bits, by their address. [`listing`] shows both as Mesa's tools do; [`assemble`] reads that text. With
//! [`Ir2ListingOptions::complete`] the text names every bit, and assembles to the words it came from, whatever they are.

mod asm;
mod disasm;
mod table;

pub use asm::{Complaint, assemble};
pub use disasm::{Ir2ListingOptions, ShaderStage, listing};

/// The channels of a fetch: four of the source, two constants, one without meaning, and none.
const CHANNELS: &[u8; 8] = b"xyzw01?_";

/// Dwords that addresses of nine bits and the instructions after them reach.
const REACH: usize = 3 * (512 + 8);
