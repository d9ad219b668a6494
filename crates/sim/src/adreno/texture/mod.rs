//! The texture unit of a6xx and a7xx: descriptors, images, samplers and filters.
//!
//! It takes descriptors, coordinates and derivatives, and gives texels. Never: knows which stage asks, what a register is, or where the
//! descriptors are from. What a sampler makes of coordinates is [`crate::texture::sampler`]'s, for every vendor.

mod border;
mod cube;
mod cubic;
mod descriptor;
mod fields;
mod filter;
mod image;
mod info;
mod lod;
mod yuv;

pub(crate) use cubic::CubicWeights;
pub(crate) use descriptor::{SamplerDescriptor, TextureKind};
pub(crate) use filter::{Sample, Sampled};
pub(crate) use image::{Image, ImageUse, MOST_TEXEL, Texel};
pub(crate) use lod::{Derivatives, LevelOfDetail};

use crate::fault::MemoryFault;

/// Why a texel cannot be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextureFault {
    /// Memory that cannot be accessed.
    Memory(MemoryFault),
    /// What is not emulated.
    NotEmulated(&'static str),
}

/// Memory as the texture unit reads it.
pub(crate) trait TexelMemory {
    /// Reads the bytes at an address, at most 16.
    fn read_texel(&mut self, address: u64, bytes: &mut [u8]) -> Result<(), TextureFault>;
}
