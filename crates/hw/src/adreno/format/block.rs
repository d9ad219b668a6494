//! Blocks of texels: which codecs there are, and their decoding.

/// Texels of the largest block, 12 by 12.
pub const MAX_BLOCK_TEXELS: usize = 144;

/// How a block of texels is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockCodec {
    /// Two texels with one pair of chroma: luma in the odd bytes.
    Gbgr422,
    /// Two texels with one pair of chroma: luma in the even bytes.
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

    /// Every texel of a block, row by row. `None` if there are fewer bytes than a block has, or if it cannot be decoded.
    pub(super) fn decode(
        self,
        bytes: &[u8],
        _srgb: bool,
        _out: &mut [[f32; 4]; MAX_BLOCK_TEXELS],
    ) -> Option<usize> {
        bytes.get(..self.bytes() as usize)?;
        None
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
