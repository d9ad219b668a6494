//! What becomes of a sample: tests of depth and stencil, blending, logic operations.
//!
//! Values in, values out: numbers of functions and factors are those of the registers. Never: where a sample is.

mod blend;
mod depth;

pub(crate) use blend::{BlendEquation, BlendState, merge};
pub(crate) use depth::{DepthFormat, DepthStencilState, StencilFace, StoredDepthStencil, test};

/// The samples that an alpha of a pixel of so many covers: the first ones.
pub(crate) fn alpha_to_coverage(alpha: f32, samples: u32) -> u8 {
    // Not a number covers none.
    let count = (alpha.clamp(0.0, 1.0) * samples as f32 + 0.5) as u32;
    ((1u16 << count.min(samples)) - 1) as u8
}
