//! Blocks of texels: which codecs there are, and their decoding.
//!
//! Never: encodes. Facts: the Khronos data format specification, Direct3D's functional specification for BC.

mod astc;
mod bc;
mod bc6h;
mod bc7;
mod bits;
mod etc;
mod shapes;

use super::convert;
use etc::EtcKind;

/// Texels of the largest block, 12 by 12.
pub const MAX_BLOCK_TEXELS: usize = 144;

/// How a block of texels is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCodec {
    /// Two texels with one pair of chroma: luma (green), blue, luma, red.
    Gbgr422,
    /// Two texels with one pair of chroma: blue, luma (green), red, luma.
    Bgrg422,
    /// BC1 (DXT1): two colours, alpha of one bit.
    Bc1,
    /// BC2 (DXT3): two colours, explicit alpha.
    Bc2,
    /// BC3 (DXT5): two colours, interpolated alpha.
    Bc3,
    /// BC4 (RGTC1): one channel.
    Bc4 {
        /// From -1 to 1.
        signed: bool,
    },
    /// BC5 (RGTC2): two channels.
    Bc5 {
        /// From -1 to 1.
        signed: bool,
    },
    /// BC6H (BPTC): three half floats.
    Bc6h {
        /// With sign.
        signed: bool,
    },
    /// BC7 (BPTC): four channels of 8 bits.
    Bc7,
    /// ETC1.
    Etc1,
    /// ETC2 without alpha.
    Etc2Rgb,
    /// ETC2 with alpha of one bit.
    Etc2Rgba1,
    /// ETC2 with EAC alpha.
    Etc2Rgba,
    /// EAC, one channel of 11 bits.
    EacR {
        /// From -1 to 1.
        signed: bool,
    },
    /// EAC, two channels of 11 bits.
    EacRg {
        /// From -1 to 1.
        signed: bool,
    },
    /// ASTC.
    Astc {
        /// Texels across.
        width: u8,
        /// Texels down.
        height: u8,
    },
}

impl BlockCodec {
    /// Bytes of a block.
    pub fn bytes(self) -> u32 {
        match self {
            BlockCodec::Gbgr422 | BlockCodec::Bgrg422 => 4,
            BlockCodec::Bc1
            | BlockCodec::Bc4 { .. }
            | BlockCodec::Etc1
            | BlockCodec::Etc2Rgb
            | BlockCodec::Etc2Rgba1
            | BlockCodec::EacR { .. } => 8,
            _ => 16,
        }
    }

    /// Width and height of a block in texels.
    pub fn size(self) -> (u32, u32) {
        match self {
            BlockCodec::Gbgr422 | BlockCodec::Bgrg422 => (2, 1),
            BlockCodec::Astc { width, height } => (width.into(), height.into()),
            _ => (4, 4),
        }
    }

    /// Every texel of a block, row by row. `None` if there are fewer bytes than a block has.
    pub(super) fn decode(
        self,
        bytes: &[u8],
        srgb: bool,
        out: &mut [[f32; 4]; MAX_BLOCK_TEXELS],
    ) -> Option<usize> {
        let bytes = bytes.get(..self.bytes() as usize)?;
        if let BlockCodec::Gbgr422 | BlockCodec::Bgrg422 = self {
            out[..2].copy_from_slice(&self.pair(bytes.try_into().ok()?));
            return Some(2);
        }
        if let BlockCodec::Astc { .. } = self {
            return Some(astc::decode(bytes.try_into().ok()?, self.size(), srgb, out));
        }
        let texels = self.four_by_four(bytes, srgb)?;
        out[..16].copy_from_slice(&texels);
        Some(16)
    }

    /// Two texels with one pair of chroma.
    fn pair(self, bytes: [u8; 4]) -> [[f32; 4]; 2] {
        let [a, b, c, d] = bytes.map(|code| f32::from(code) / 255.0);
        match self {
            BlockCodec::Gbgr422 => [[d, a, b, 1.0], [d, c, b, 1.0]],
            _ => [[c, b, a, 1.0], [c, d, a, 1.0]],
        }
    }

    /// The texels of a codec whose blocks are 4 by 4.
    fn four_by_four(self, bytes: &[u8], srgb: bool) -> Option<[[f32; 4]; 16]> {
        let low: [u8; 8] = bytes.first_chunk().copied()?;
        let high = || bytes.get(8..)?.first_chunk::<8>().copied();
        let whole = || bytes.first_chunk::<16>().copied();
        let coded = |texels: [[u8; 4]; 16]| texels.map(|texel| bytes_to_floats(texel, srgb));
        let linear = |texels: [[f32; 4]; 16]| if srgb { texels.map(decoded) } else { texels };
        let with_alpha = |mut texels: [[f32; 4]; 16], alpha: [f32; 16]| {
            texels.iter_mut().zip(alpha).for_each(|(texel, alpha)| texel[3] = alpha);
            texels
        };
        let one = |values: [f32; 16]| values.map(|value| [value, 0.0, 0.0, 1.0]);
        let two = |x: [f32; 16], y: [f32; 16]| std::array::from_fn(|at| [x[at], y[at], 0.0, 1.0]);
        let bc = |signed: bool, block| {
            if signed { bc::signed_channel(block) } else { bc::unsigned_channel(block) }
        };
        Some(match self {
            BlockCodec::Bc1 => linear(bc::colors(low, false)),
            BlockCodec::Bc2 => with_alpha(linear(bc::colors(high()?, true)), bc::explicit_alpha(low)),
            BlockCodec::Bc3 => with_alpha(linear(bc::colors(high()?, true)), bc::unsigned_channel(low)),
            BlockCodec::Bc4 { signed } => one(bc(signed, low)),
            BlockCodec::Bc5 { signed } => two(bc(signed, low), bc(signed, high()?)),
            BlockCodec::Bc6h { signed } => bc6h::decode(whole()?, signed),
            BlockCodec::Bc7 => coded(bc7::decode(whole()?)),
            BlockCodec::Etc1 => coded(etc::colors(low, EtcKind::Etc1)),
            BlockCodec::Etc2Rgb => coded(etc::colors(low, EtcKind::Etc2)),
            BlockCodec::Etc2Rgba1 => coded(etc::colors(low, EtcKind::PunchThrough)),
            BlockCodec::Etc2Rgba => {
                let alpha = etc::alpha(low).map(|code| f32::from(code) / 255.0);
                with_alpha(coded(etc::colors(high()?, EtcKind::Etc2)), alpha)
            }
            BlockCodec::EacR { signed } => one(etc::eac(low, signed)),
            BlockCodec::EacRg { signed } => two(etc::eac(low, signed), etc::eac(high()?, signed)),
            BlockCodec::Gbgr422 | BlockCodec::Bgrg422 | BlockCodec::Astc { .. } => return None,
        })
    }

    /// One texel of a block.
    pub(super) fn texel(self, bytes: &[u8], x: u32, y: u32, srgb: bool) -> Option<[f32; 4]> {
        let (width, height) = self.size();
        if x >= width || y >= height {
            return None;
        }
        let mut out = [[0.0; 4]; MAX_BLOCK_TEXELS];
        let count = self.decode(bytes, srgb, &mut out)?;
        out[..count].get((y * width + x) as usize).copied()
    }
}

/// Channels of 8 bits as floats; red, green and blue may be on the sRGB curve.
fn bytes_to_floats(texel: [u8; 4], srgb: bool) -> [f32; 4] {
    let color = |code: u8| if srgb { convert::srgb8_to_linear(code) } else { f32::from(code) / 255.0 };
    let [r, g, b, a] = texel;
    [color(r), color(g), color(b), f32::from(a) / 255.0]
}

/// A texel whose red, green and blue are on the sRGB curve.
fn decoded([r, g, b, a]: [f32; 4]) -> [f32; 4] {
    [convert::srgb_to_linear(r), convert::srgb_to_linear(g), convert::srgb_to_linear(b), a]
}
