//! What `getinfo` says of a texture: numbers for the type of its channels and for their order, as OpenCL tells them apart.
//!
//! Facts: the description of `getinfo` in Mesa's `ir3-cat5.xml`. The types were found on a420; that a6xx has the same is assumed. Which order a
//! descriptor with a swizzle has is not known.

use super::TextureFault;
use super::descriptor::Swizzle;
use super::image::Image;
use unwedge_hw::adreno::format::{ChannelKind, ColorSpace, ColorSwap, Numeric};

impl Image {
    /// The number of the type of channels.
    pub(crate) fn channel_type(&self) -> Result<u32, TextureFault> {
        use ChannelKind::*;
        const UNKNOWN: TextureFault =
            TextureFault::NotEmulated("the channel type of getinfo for this format");
        let channels = self.format.channels();
        if channels.is_empty() && !self.format.is_block() && self.numeric() == Numeric::Float {
            // A shared exponent.
            return Ok(15);
        }
        let used: Vec<_> = channels.iter().filter(|channel| channel.kind != Unused).collect();
        let bits: Vec<u32> = used.iter().map(|channel| u32::from(channel.bits)).collect();
        let Some(kind) = used.first().map(|channel| channel.kind) else { return Err(UNKNOWN) };
        if used.iter().any(|channel| channel.kind != kind) {
            return Err(UNKNOWN);
        }
        let uniform = bits.iter().all(|width| *width == bits[0]);
        let mut sorted = bits.clone();
        sorted.sort_unstable();
        Ok(match (kind, uniform.then_some(bits[0]), &sorted[..]) {
            (Snorm, Some(8), _) => 0,
            (Snorm, Some(16), _) => 1,
            (Unorm, Some(8), _) => 2,
            (Unorm, Some(16), _) => 3,
            (Unorm, _, [5, 5, 6]) => 4,
            (Unorm, _, [1, 5, 5, 5]) => 5,
            (Unorm, _, [2, 10, 10, 10]) => 6,
            (Sint, Some(8), _) => 7,
            (Sint, Some(16), _) => 8,
            (Sint, Some(32), _) => 9,
            (Uint, Some(8), _) => 10,
            (Uint, Some(16), _) => 11,
            (Uint, Some(32), _) => 12,
            (Float, Some(16), _) => 13,
            (Float, Some(32), _) => 14,
            (Float, _, [10, 11, 11]) => 15,
            (Uint, _, [2, 10, 10, 10]) => 16,
            (Unorm, Some(4), _) => 17,
            (Unorm, Some(24), _) => 18,
            _ => return Err(UNKNOWN),
        })
    }

    /// The number of the order of channels.
    pub(crate) fn channel_order(&self) -> Result<u32, TextureFault> {
        const UNKNOWN: TextureFault =
            TextureFault::NotEmulated("the channel order of getinfo for this format");
        let plain = [0, 1, 2, 3].map(Swizzle::Component);
        if self.descriptor.swizzle != plain {
            return Err(TextureFault::NotEmulated("the channel order of getinfo with a swizzle"));
        }
        let order = (self.format.color_space(), self.format.channel_count(), self.descriptor.swap);
        Ok(match order {
            (ColorSpace::Linear, 1, ColorSwap::Wzyx) => 1,
            (ColorSpace::Linear, 2, ColorSwap::Wzyx) => 3,
            (ColorSpace::Linear, 3, ColorSwap::Wzyx) => 6,
            (ColorSpace::Linear, 4, ColorSwap::Wzyx) => 8,
            (ColorSpace::Linear, 4, ColorSwap::Zyxw) => 9,
            (ColorSpace::Linear, 4, ColorSwap::Wxyz) => 10,
            (ColorSpace::Linear, 4, ColorSwap::Xyzw) => 13,
            (ColorSpace::Linear, 3, ColorSwap::Wxyz) => 21,
            (ColorSpace::DepthStencil, ..) => 14,
            (ColorSpace::Srgb, 3, ColorSwap::Wzyx) => 15,
            (ColorSpace::Srgb, 4, ColorSwap::Wzyx) => 17,
            (ColorSpace::Srgb, 4, ColorSwap::Wxyz) => 18,
            (ColorSpace::Srgb, 4, ColorSwap::Zyxw) => 19,
            (ColorSpace::Srgb, 4, ColorSwap::Xyzw) => 20,
            _ => return Err(UNKNOWN),
        })
    }
}
