//! Layouts of images: where levels, layers and UBWC flags begin, and where in a level a texel lies.
//!
//! [`ImageLayout`] is what Mesa's drivers choose for an image, and hardware computes from a descriptor; [`Addresser`] is one level of
//! it resolved for a texel at a time. a5xx, a6xx and a7xx. Never: what the bytes of a texel mean, which is
//! [`crate::adreno::format`]'s; what UBWC's flags say, which is not public.
//!
//! Facts: Mesa's `src/freedreno/fdl`. `docs/layout.md` says what of it was compared with hardware.

mod address;
mod copy;
mod error;
mod gpu;
mod levels;
mod view;

pub use address::{Addresser, AddresserParts, TexelPlace, Tiling};
pub use copy::{CopyError, Rect};
pub use error::{Axis, LayoutError};
pub use gpu::{BankConfig, ImageGpu, MacrotileMode};
pub use levels::ubwc_block;
pub use view::{ViewLevel, ViewParts};

use crate::adreno::format::Format;
use unwedge_base::Generation;

/// Levels that an image can have at most.
pub const MAX_LEVELS: u32 = 15;
/// Width and height that a texture descriptor can hold.
pub const MAX_SIZE: u32 = (1 << 15) - 1;
/// Depth, or layers, that a texture descriptor can hold.
pub const MAX_LAYERS: u32 = (1 << 13) - 1;
/// An image that is less wide is linear and has no UBWC, a level of one mostly as well.
pub const MIN_TILED_WIDTH: u32 = 16;

/// How texels are ordered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TileMode {
    /// Row by row.
    #[default]
    Linear,
    /// `TILE5_2`, `TILE6_2`: in GMEM.
    Tile2,
    /// `TILE5_3`, `TILE6_3`: everywhere else.
    Tile3,
}

impl TileMode {
    /// That of a field of descriptors and registers; `None` for 1, which no GPU has.
    pub fn from_code(code: u32) -> Option<TileMode> {
        [Some(TileMode::Linear), None, Some(TileMode::Tile2), Some(TileMode::Tile3)]
            .get(code as usize)
            .copied()
            .flatten()
    }

    /// Its number in descriptors and registers.
    pub fn code(self) -> u32 {
        match self {
            TileMode::Linear => 0,
            TileMode::Tile2 => 2,
            TileMode::Tile3 => 3,
        }
    }

    /// Its name in the register tables.
    pub fn name(self, generation: Generation) -> &'static str {
        match (self, generation) {
            (TileMode::Linear, Generation::A5xx) => "TILE5_LINEAR",
            (TileMode::Tile2, Generation::A5xx) => "TILE5_2",
            (TileMode::Tile3, Generation::A5xx) => "TILE5_3",
            (TileMode::Linear, _) => "TILE6_LINEAR",
            (TileMode::Tile2, _) => "TILE6_2",
            (TileMode::Tile3, _) => "TILE6_3",
        }
    }
}

/// What an image is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageParams {
    /// The format of its texels.
    pub format: Format,
    /// In texels.
    pub width: u32,
    /// In texels.
    pub height: u32,
    /// In texels; 1 unless `is_3d`.
    pub depth: u32,
    /// Levels, the full size included.
    pub levels: u32,
    /// Layers of an array; six for each cube.
    pub layers: u32,
    /// Samples of a texel: 1, 2, 4 or 8.
    pub samples: u32,
    /// How its texels are to be ordered. Narrow images and levels are linear all the same.
    pub tile_mode: TileMode,
    /// Compressed, where its size and format allow it.
    pub ubwc: bool,
    /// It is three-dimensional, even if its depth is 1.
    pub is_3d: bool,
    /// Views of it may have other formats, which rules out the special order of two channels of 8 bits.
    pub is_mutable: bool,
    /// Where another program placed it.
    pub import: Option<ImportedLayout>,
}

impl ImageParams {
    /// A linear image of two dimensions with one level, layer and sample.
    pub fn new(format: Format, width: u32, height: u32) -> ImageParams {
        ImageParams {
            format,
            width,
            height,
            depth: 1,
            levels: 1,
            layers: 1,
            samples: 1,
            tile_mode: TileMode::Linear,
            ubwc: false,
            is_3d: false,
            is_mutable: false,
            import: None,
        }
    }

    /// Levels down to a size of one texel.
    pub fn full_levels(&self) -> u32 {
        let depth = if self.is_3d { self.depth } else { 1 };
        self.width.max(self.height).max(depth).max(1).ilog2() + 1
    }
}

/// Where another program placed an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportedLayout {
    /// Bytes before the image.
    pub offset: u64,
    /// Bytes from a row of texels or blocks to the next.
    pub pitch: u32,
}

/// Why an image that was to have UBWC has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UbwcRefusal {
    /// It is less than 16 texels wide.
    Narrow,
    /// It is three-dimensional and has several levels.
    VolumeLevels,
    /// Texels of so many bytes, with all samples, have no UBWC.
    TexelBytes(u32),
}

/// Where the bytes of an image are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageLayout {
    gpu: ImageGpu,
    params: ImageParams,
    /// How its levels are ordered that are not too narrow.
    pub tile_mode: TileMode,
    /// Levels are tiled however narrow they are (`TILE_ALL` of descriptors).
    pub tile_all: bool,
    /// From the full size down.
    pub levels: Vec<LevelLayout>,
    /// Bytes of a texel or block with all its samples.
    pub texel_bytes: u32,
    /// What pitches are multiples of, in bytes.
    pub pitch_align: u32,
    /// What the address of the image must be a multiple of, where it is known.
    pub base_align: Option<u32>,
    /// Bytes from a layer to the next; 0 for an image of three dimensions, where it differs by level.
    pub layer_size: u64,
    /// Bytes of everything, flags and an imported offset included.
    pub size: u64,
    /// Its flag buffer, if it has UBWC.
    pub flags: Option<FlagLayout>,
    /// Why it has none though it was to.
    pub ubwc_refusal: Option<UbwcRefusal>,
}

/// A level of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelLayout {
    /// Bytes from the start of the image, flags included, to its first layer.
    pub offset: u64,
    /// Bytes from a row of texels or blocks to the next.
    pub pitch: u64,
    /// Rows of texels or blocks that have room.
    pub rows: u32,
    /// Bytes of a layer, or of a slice of three dimensions, in this level.
    pub slice_size: u64,
    /// In texels.
    pub width: u32,
    /// In texels.
    pub height: u32,
    /// In texels.
    pub depth: u32,
    /// How its texels are ordered.
    pub tile_mode: TileMode,
    /// Its part of the flag buffer.
    pub flags: Option<FlagLevel>,
}

/// The flag buffer of an image with UBWC: a byte for each block of texels. It is at the start of the image, its layers one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagLayout {
    /// Width and height in texels of what one byte is for.
    pub block: (u32, u32),
    /// Bytes of one layer with all levels.
    pub layer_size: u64,
    /// Bytes of all layers.
    pub size: u64,
    /// Flags of a row of the full size.
    pub width: u32,
}

impl FlagLayout {
    /// Bytes from a row of flags to the next in a level.
    pub fn pitch(&self, level: u32) -> u32 {
        self.width.checked_shr(level).unwrap_or(0).max(1).next_multiple_of(levels::FLAG_PITCH_ALIGN)
    }
}

/// The flags of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlagLevel {
    /// Bytes from the start of the layer's flags.
    pub offset: u64,
    /// Bytes from a row of flags to the next.
    pub pitch: u32,
    /// Rows that have room.
    pub rows: u32,
    /// Bytes, in one layer.
    pub size: u64,
}

impl ImageLayout {
    /// The layout that a GPU has for an image.
    ///
    /// # Errors
    /// When there is no such image, or nothing is known of its layout.
    pub fn new(gpu: &ImageGpu, params: &ImageParams) -> Result<ImageLayout, LayoutError> {
        error::check(gpu, params)?;
        if gpu.generation == Generation::A5xx { levels::a5xx(gpu, params) } else { levels::a6xx(gpu, params) }
    }

    /// The GPU whose layout it is.
    pub fn gpu(&self) -> &ImageGpu {
        &self.gpu
    }

    /// The image.
    pub fn params(&self) -> &ImageParams {
        &self.params
    }

    /// Two channels of 8 bits that tiles keep apart: the first channel of all texels of a tile, then the second.
    pub fn splits_channels(&self) -> bool {
        self.gpu.generation != Generation::A5xx && levels::is_channel_pair(&self.params)
    }

    /// Bytes from a layer or slice to the next in a level.
    pub fn layer_stride(&self, level: &LevelLayout) -> u64 {
        if self.params.is_3d { level.slice_size } else { self.layer_size }
    }

    /// Bytes from the start of the image to the flags of a level and layer. `None` if it has no flags.
    pub fn flag_offset(&self, level: u32, layer: u32) -> Option<u64> {
        let flags = self.levels.get(level as usize)?.flags?;
        let import = self.params.import.map_or(0, |import| import.offset);
        Some(import + flags.offset + u64::from(layer) * self.flags?.layer_size)
    }

    /// A level resolved for one texel at a time.
    ///
    /// # Errors
    /// When the image has no such level, or the order of its tiles is not known.
    pub fn addresser(&self, level: u32) -> Result<Addresser, LayoutError> {
        let count = self.levels.len() as u32;
        let level = self.levels.get(level as usize).ok_or(LayoutError::NoLevel { level, levels: count })?;
        let unknown = LayoutError::UnknownTiling { name: level.tile_mode.name(self.gpu.generation) };
        let tiling = match level.tile_mode {
            TileMode::Linear => Tiling::Linear,
            TileMode::Tile2 => return Err(unknown),
            TileMode::Tile3 => {
                let bank =
                    self.gpu.bank.filter(|_| self.gpu.generation != Generation::A5xx).ok_or(unknown)?;
                Tiling::Tile3 { bank, split_channels: self.splits_channels() }
            }
        };
        let (block_width, block_height) = self.params.format.block_size();
        Addresser::new(&AddresserParts {
            base: level.offset,
            pitch: level.pitch,
            layer_stride: self.layer_stride(level),
            texel_bytes: self.texel_bytes,
            samples: self.params.samples,
            width: level.width.div_ceil(block_width),
            height: level.height.div_ceil(block_height),
            layers: if self.params.is_3d { level.depth } else { self.params.layers },
            tiling,
        })
    }
}
