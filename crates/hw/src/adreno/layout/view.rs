//! The levels of a view: what hardware computes from a texture descriptor of a6xx and a7xx.
//!
//! A descriptor has the address of its first level and layer, the pitch of that level, and what pitches are multiples of; everything
//! else follows. The rules are those of [`super::levels`], from the other end: a test holds each to the other. Never: which
//! bits of a descriptor are what.

use super::levels::{PAGE, minify};
use super::{Addresser, AddresserParts, BankConfig, Tiling};
use super::{LayoutError, MIN_TILED_WIDTH, TileMode};

/// What a descriptor says of where texels are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewParts {
    /// In texels, of the first level.
    pub width: u32,
    /// In texels, of the first level.
    pub height: u32,
    /// Slices of the first level; 1 unless `is_3d`.
    pub depth: u32,
    /// Layers; 1 if `is_3d`.
    pub layers: u32,
    /// Levels.
    pub levels: u32,
    /// It is three-dimensional.
    pub is_3d: bool,
    /// Samples of a texel.
    pub samples: u32,
    /// Bytes of a texel or block with all its samples.
    pub texel_bytes: u32,
    /// Width and height of a block.
    pub block: (u32, u32),
    /// Two channels of 8 bits that tiles keep apart.
    pub channel_pair: bool,
    /// How levels are ordered that are not too narrow.
    pub tile_mode: TileMode,
    /// Narrow levels are tiled, too.
    pub tile_all: bool,
    /// It has flags of UBWC.
    pub ubwc: bool,
    /// Bytes from a row of the first level to the next.
    pub pitch: u64,
    /// What pitches are multiples of.
    pub pitch_align: u64,
    /// Bytes from a layer to the next; of three dimensions from a slice of the first level to the next.
    pub layer_size: u64,
    /// Bytes that slices of higher levels have at least.
    pub least_slice: u64,
    /// How tiles are spread over banks, where it is known.
    pub bank: Option<BankConfig>,
}

/// A level of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ViewLevel {
    /// In texels.
    pub width: u32,
    /// In texels.
    pub height: u32,
    /// Slices.
    pub depth: u32,
    /// Bytes from the first level to this one.
    pub offset: u64,
    /// Bytes from a row to the next.
    pub pitch: u64,
    /// Bytes from a layer or slice to the next.
    pub layer_stride: u64,
    /// How its texels are ordered.
    pub tile_mode: TileMode,
}

impl ViewParts {
    /// The levels of the view, from the first one on. Nothing overflows, whatever the numbers.
    pub fn levels(&self) -> impl Iterator<Item = ViewLevel> {
        let (mut offset, mut pitch_before, mut slice, mut fixed) = (0u64, 0, 0u64, false);
        let parts = *self;
        let row_align = if parts.texel_bytes == 1 || parts.channel_pair { 32 } else { 16 };
        (0..parts.levels).map(move |level| {
            let width = minify(parts.width, level.min(31));
            let height = minify(parts.height, level.min(31));
            let depth = if parts.is_3d { minify(parts.depth, level.min(31)) } else { 1 };
            let narrow = width < MIN_TILED_WIDTH && !parts.tile_all;
            let tile_mode = if narrow { TileMode::Linear } else { parts.tile_mode };
            let pitch = (parts.pitch >> level.min(63)).max(1).next_multiple_of(parts.pitch_align.max(1));
            let mut rows = u64::from(height.div_ceil(parts.block.1.max(1)));
            if tile_mode != TileMode::Linear {
                rows = rows.next_multiple_of(row_align);
            }
            let whole = rows.saturating_mul(pitch);
            if level == 0 {
                slice = parts.layer_size;
            } else if parts.is_3d && !fixed {
                // A quarter of the level before, until something would not be aligned or would be too small.
                let quarter = (parts.layer_size >> (2 * level).min(63)).max(1);
                let shrinks = pitch == pitch_before / 2 && quarter >= whole;
                slice = if shrinks { quarter } else { whole };
                fixed = !shrinks || !slice.is_multiple_of(PAGE);
                slice = slice.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX).max(parts.least_slice);
            }
            pitch_before = pitch;
            let layer_stride = if parts.is_3d { slice } else { parts.layer_size };
            let placed = ViewLevel { width, height, depth, offset, pitch, layer_stride, tile_mode };
            let size = if parts.is_3d { slice.saturating_mul(depth.into()) } else { whole };
            offset = offset.saturating_add(size);
            if parts.ubwc && tile_mode != TileMode::Linear {
                offset = offset.checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
            }
            placed
        })
    }

    /// A level resolved for one texel at a time; offsets are from the first texel of the view.
    ///
    /// # Errors
    /// When the order of its tiles is not known, or its pitch does not fit them.
    pub fn addresser(&self, level: &ViewLevel) -> Result<Addresser, LayoutError> {
        let unknown = LayoutError::UnknownTiling { name: "TILE6_2" };
        let tiling = match level.tile_mode {
            TileMode::Linear => Tiling::Linear,
            TileMode::Tile2 => return Err(unknown),
            TileMode::Tile3 => {
                let name = TileMode::Tile3.name(unwedge_base::Generation::A6xx);
                let bank = self.bank.ok_or(LayoutError::UnknownTiling { name })?;
                Tiling::Tile3 { bank, split_channels: self.channel_pair }
            }
        };
        Addresser::new(&AddresserParts {
            base: level.offset,
            pitch: level.pitch,
            layer_stride: level.layer_stride,
            texel_bytes: self.texel_bytes,
            samples: self.samples,
            width: level.width.div_ceil(self.block.0.max(1)),
            height: level.height.div_ceil(self.block.1.max(1)),
            layers: if self.is_3d { level.depth } else { self.layers },
            tiling,
        })
    }
}
