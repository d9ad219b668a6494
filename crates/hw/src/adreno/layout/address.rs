//! Where in a level a texel lies, and which texel lies somewhere.
//!
//! In `TILE6_3` a tile of 256 bytes holds texels whose coordinates' bits alternate in the address. Two by four tiles are a macrotile of
//! 2 KiB, in which the number of a tile is mixed from the bits of both coordinates. Macrotiles follow one another row by row, but bits of
//! their row are mixed into those bits of the address that choose a bank, where the length of a row would keep columns in one bank. All
//! mixing is exclusive or: one part depends on x, another on y.

use super::{BankConfig, LayoutError, MacrotileMode};

/// Bytes of a tile, as a shift.
const TILE_SHIFT: u32 = 8;
/// Bytes between the first and the second channel of a texel whose tile keeps them apart.
const SECOND_CHANNEL: u32 = 64;
/// Largest texel with all samples that tiles are known of.
const MAX_TILED_TEXEL: u32 = 64;

/// What an [`Addresser`] is made from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddresserParts {
    /// Bytes from the start of the image to the level.
    pub base: u64,
    /// Bytes from a row of texels or blocks to the next.
    pub pitch: u64,
    /// Bytes from a layer or slice to the next.
    pub layer_stride: u64,
    /// Bytes of a texel or block with all its samples.
    pub texel_bytes: u32,
    /// Samples of a texel.
    pub samples: u32,
    /// Texels or blocks across.
    pub width: u32,
    /// Texels or blocks down.
    pub height: u32,
    /// Layers or slices.
    pub layers: u32,
    /// How texels are ordered.
    pub tiling: Tiling,
}

/// How texels of a level are ordered, with what that depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiling {
    /// Row by row.
    Linear,
    /// `TILE6_3`.
    Tile3 {
        /// How tiles are spread over banks.
        bank: BankConfig,
        /// Tiles keep the two channels of a texel apart.
        split_channels: bool,
    },
}

/// A level of an image, resolved for one texel at a time. Coordinates are of texels, or of blocks where the format has blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresser {
    base: u64,
    pitch: u64,
    layer_stride: u64,
    texel_bytes: u32,
    sample_bytes: u32,
    width: u32,
    height: u32,
    layers: u32,
    samples: u32,
    tiles: Option<Tiles>,
}

/// `TILE6_3` for texels of one size in rows of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tiles {
    /// Size of a tile in texels, as shifts.
    width_shift: u32,
    height_shift: u32,
    /// Bytes of a texel as a shift, or of one of its channels where these are apart.
    texel_shift: u32,
    /// Bits of a tile's x and y that are mixed into the number of its place in the macrotile as they are.
    x_mix: u32,
    y_mix: u32,
    /// Bits of a tile's y that are mixed into those that choose a bank.
    bank_mask: u32,
    bank_shift: u32,
    /// Bytes of a row of macrotiles.
    row_bytes: u64,
    split_channels: bool,
}

/// A texel of a level, or one sample or channel of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelPlace {
    /// Texel or block across.
    pub x: u32,
    /// Texel or block down.
    pub y: u32,
    /// Layer or slice.
    pub layer: u32,
    /// Sample.
    pub sample: u32,
    /// Byte of the sample.
    pub byte: u32,
}

impl Addresser {
    /// Resolves a level. Numbers of a descriptor may stand in for those of a layout.
    ///
    /// # Errors
    /// When texels of this size are not in tiles, the pitch is not a multiple of what tiles need, or the bank bit is out of range.
    pub fn new(parts: &AddresserParts) -> Result<Addresser, LayoutError> {
        let &AddresserParts { pitch, texel_bytes, samples, .. } = parts;
        if !matches!(samples, 1 | 2 | 4 | 8) || !texel_bytes.is_multiple_of(samples) || texel_bytes == 0 {
            return Err(LayoutError::Samples { samples });
        }
        let tiles = match parts.tiling {
            Tiling::Linear => None,
            Tiling::Tile3 { bank, split_channels } => {
                Some(Tiles::new(pitch, texel_bytes, &bank, split_channels && texel_bytes == 2)?)
            }
        };
        Ok(Addresser {
            base: parts.base,
            pitch,
            layer_stride: parts.layer_stride,
            texel_bytes,
            sample_bytes: texel_bytes / samples,
            width: parts.width,
            height: parts.height,
            layers: parts.layers,
            samples,
            tiles,
        })
    }

    /// Bytes from the start of the image to a texel's sample. Outside the level the result means nothing.
    #[inline]
    pub fn offset(&self, x: u32, y: u32, layer: u32, sample: u32) -> u64 {
        let start = self
            .base
            .wrapping_add(u64::from(layer).wrapping_mul(self.layer_stride))
            .wrapping_add(u64::from(sample) * u64::from(self.sample_bytes));
        let place = match &self.tiles {
            None => u64::from(y).wrapping_mul(self.pitch) + u64::from(x) * u64::from(self.texel_bytes),
            Some(tiles) => tiles.offset(x, y),
        };
        start.wrapping_add(place)
    }

    /// [`Addresser::offset`], or `None` outside the level.
    pub fn checked_offset(&self, x: u32, y: u32, layer: u32, sample: u32) -> Option<u64> {
        let inside = x < self.width && y < self.height && layer < self.layers && sample < self.samples;
        inside.then(|| self.offset(x, y, layer, sample))
    }

    /// The texel that a byte of the image belongs to. `None` if it belongs to none of this level.
    pub fn texel_at(&self, offset: u64) -> Option<TexelPlace> {
        let rest = offset.checked_sub(self.base)?;
        let (layer, rest) = match self.layers {
            1 => (0, rest),
            _ => (rest.checked_div(self.layer_stride)?, rest % self.layer_stride),
        };
        let (x, y, byte) = match &self.tiles {
            None => {
                let across = rest.checked_rem(self.pitch)?;
                let texel = u64::from(self.texel_bytes);
                (across / texel, rest / self.pitch, (across % texel) as u32)
            }
            Some(tiles) => tiles.texel_at(rest)?,
        };
        let place = TexelPlace {
            x: u32::try_from(x).ok()?,
            y: u32::try_from(y).ok()?,
            layer: u32::try_from(layer).ok()?,
            sample: byte / self.sample_bytes,
            byte: byte % self.sample_bytes,
        };
        self.checked_offset(place.x, place.y, place.layer, place.sample)?;
        Some(place)
    }

    /// Rows of a layer whose texels have bytes of their own, that follow one another: a row, or in tiles one of macrotiles. How many rows,
    /// and how many bytes from the first of them to the next ones.
    pub fn band(&self) -> (u32, u64) {
        match &self.tiles {
            None => (1, self.pitch),
            Some(tiles) => (4 << tiles.height_shift, tiles.row_bytes),
        }
    }

    /// Texels that a row has room for. Those beyond lie in other rows.
    pub fn row_texels(&self) -> u64 {
        self.pitch / u64::from(self.texel_bytes)
    }

    /// Bytes of a sample of a texel or block.
    pub fn sample_bytes(&self) -> u32 {
        self.sample_bytes
    }

    /// Bytes of a texel or block with all samples.
    pub fn texel_bytes(&self) -> u32 {
        self.texel_bytes
    }

    /// Bytes from a layer or slice to the next.
    pub fn layer_stride(&self) -> u64 {
        self.layer_stride
    }

    /// Texels or blocks across and down.
    pub fn size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    /// Layers or slices.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Samples of a texel.
    pub fn samples(&self) -> u32 {
        self.samples
    }

    /// How many bytes after the first byte of a texel the second is, where it is not the next one.
    pub fn second_byte(&self) -> Option<u32> {
        self.tiles.filter(|tiles| tiles.split_channels).map(|_| SECOND_CHANNEL)
    }
}

impl Tiles {
    fn new(
        pitch: u64,
        texel_bytes: u32,
        bank: &BankConfig,
        split_channels: bool,
    ) -> Result<Tiles, LayoutError> {
        if !texel_bytes.is_power_of_two() || texel_bytes > MAX_TILED_TEXEL {
            return Err(LayoutError::TiledTexelBytes { bytes: texel_bytes });
        }
        let (width, height) = match texel_bytes {
            1 => (32, 8),
            2 if split_channels => (16, 8),
            2 => (32, 4),
            4 => (16, 4),
            8 => (8, 4),
            16 => (4, 4),
            32 => (4, 2),
            _ => (2, 2),
        };
        // A macrotile is two tiles wide, and macrotiles are in pairs.
        let pair = 4 * width * u64::from(texel_bytes);
        if pitch == 0 || !pitch.is_multiple_of(pair) {
            return Err(LayoutError::Pitch { pitch, least: pair, align: pair });
        }
        let bit = bank.highest_bank_bit;
        if !(12..32).contains(&bit) {
            return Err(LayoutError::BankBit { bit });
        }
        let pairs = pitch / pair;
        let doubled = u32::from(texel_bytes == 1 || split_channels);
        // Which bits of the macrotile's row are mixed into the bank: those that a level of swizzling is for, where a row of macrotiles
        // is a multiple of what the level needs.
        let mut bank_mask = 0;
        for (level, bit_of_row, unit) in [(2, 0, bit - 12), (4, 1, bit - 11), (1, 2, bit - 10)] {
            if bank.swizzle_levels & level != 0 && pairs.is_multiple_of(1 << (unit + doubled)) {
                bank_mask |= 1 << (2 + bit_of_row);
            }
        }
        let small = texel_bytes < 16;
        let eight = bank.macrotile == MacrotileMode::EightChannel;
        Ok(Tiles {
            width_shift: u64::trailing_zeros(width),
            height_shift: u32::trailing_zeros(height),
            texel_shift: if split_channels { 0 } else { texel_bytes.trailing_zeros() },
            x_mix: if small { if eight { 6 } else { 2 } } else { 0 },
            y_mix: if small && eight { 4 } else { 0 },
            bank_mask,
            bank_shift: bit - 3,
            row_bytes: pairs * 4096,
            split_channels,
        })
    }

    #[inline]
    fn offset(&self, x: u32, y: u32) -> u64 {
        let (tile_x, tile_y) = (x >> self.width_shift, y >> self.height_shift);
        let in_tile = interleave(x & ((1 << self.width_shift) - 1), y & ((1 << self.height_shift) - 1));
        let mixed = x_part(tile_x, self.x_mix) ^ self.y_part(tile_y);
        u64::from(tile_y >> 2).wrapping_mul(self.row_bytes) + mixed + u64::from(in_tile << self.texel_shift)
    }

    /// What a tile's y adds to its place in the row of macrotiles.
    #[inline]
    fn y_part(&self, tile_y: u32) -> u64 {
        let place = ((tile_y & 1) * 6) ^ ((tile_y >> 1 & 1) * 3) ^ (tile_y & self.y_mix);
        u64::from(place) << TILE_SHIFT ^ u64::from(tile_y & self.bank_mask) << self.bank_shift
    }

    /// Coordinates of the texel at an offset in a layer, and the byte of it.
    fn texel_at(&self, offset: u64) -> Option<(u64, u64, u32)> {
        let row = offset / self.row_bytes;
        let rest = offset % self.row_bytes;
        let in_tile = (rest & 0xff) as u32;
        // The bits of y above the macrotile are known.
        let high_y = u32::try_from(row).ok().filter(|row| row >> 30 == 0)? << 2;
        let place = (rest ^ self.y_part(high_y)) >> TILE_SHIFT;
        let high_x = place >> 3 << 1;
        let place = place as u32 ^ high_x as u32 & self.x_mix;
        // The place is x0^y1, x0^y0^y1, x0^y0.
        let (p0, p1, p2) = (place & 1, place >> 1 & 1, place >> 2 & 1);
        let y0 = p0 ^ p1;
        let x0 = p2 ^ y0;
        let y1 = p0 ^ x0;
        let tile_x = high_x | u64::from(x0);
        let tile_y = high_y | y1 << 1 | y0;
        let (mut inner_x, inner_y) = separate(in_tile >> self.texel_shift);
        let mut byte = in_tile & ((1 << self.texel_shift) - 1);
        if self.split_channels {
            byte = inner_x >> 4;
            inner_x &= 15;
        }
        let x = (tile_x << self.width_shift) + u64::from(inner_x);
        let y = (u64::from(tile_y) << self.height_shift) + u64::from(inner_y);
        Some((x, y, byte))
    }
}

/// What a tile's x adds to its place in the row of macrotiles.
#[inline]
fn x_part(tile_x: u32, mix: u32) -> u64 {
    let place = ((tile_x & 1) * 7) ^ (tile_x & mix);
    (u64::from(place) ^ u64::from(tile_x >> 1) << 3) << TILE_SHIFT
}

/// The number of a texel in its tile: x0 y0 x1 y1 x2 x3 x4 y2 from the lowest bit.
#[inline]
fn interleave(x: u32, y: u32) -> u32 {
    x & 1 | (y & 1) << 1 | (x & 2) << 1 | (y & 2) << 2 | (x & 0x1c) << 2 | (y & 4) << 5
}

/// [`interleave`] the other way.
fn separate(number: u32) -> (u32, u32) {
    let x = number & 1 | number >> 1 & 2 | number >> 2 & 0x1c;
    let y = number >> 1 & 1 | number >> 2 & 2 | number >> 5 & 4;
    (x, y)
}
