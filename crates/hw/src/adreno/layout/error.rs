//! What is wrong with an image that was asked for.

use super::{ImageGpu, ImageParams, MAX_LAYERS, MAX_LEVELS, MAX_SIZE, TileMode};
use std::fmt;
use thiserror::Error;
use unwedge_base::Generation;

/// A dimension of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Texels across.
    Width,
    /// Texels down.
    Height,
    /// Slices.
    Depth,
    /// Layers of an array.
    Layers,
}

impl fmt::Display for Axis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Axis::Width => "width",
            Axis::Height => "height",
            Axis::Depth => "depth",
            Axis::Layers => "layers",
        })
    }
}

/// Why there is no layout, or no address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LayoutError {
    /// Nothing is known of the generation's layouts.
    #[error("image layouts of {generation} are not known; those of a5xx, a6xx and a7xx are")]
    Generation {
        /// It.
        generation: Generation,
    },
    /// The layout depends on which GPU it is.
    #[error("layouts differ between GPUs of {generation}; name one of them")]
    WholeGeneration {
        /// It.
        generation: Generation,
    },
    /// A dimension is 0 or too large.
    #[error("{axis} is {value}; it can be 1 to {most}")]
    Extent {
        /// Which.
        axis: Axis,
        /// What it is.
        value: u32,
        /// What it can be.
        most: u32,
    },
    /// There are no or too many levels.
    #[error("{levels} levels; an image of this size has 1 to {most}")]
    Levels {
        /// How many.
        levels: u32,
        /// How many there can be.
        most: u32,
    },
    /// The number of samples does not exist.
    #[error("{samples} samples; a texel has 1, 2, 4 or 8")]
    Samples {
        /// How many.
        samples: u32,
    },
    /// Several samples with something that excludes them.
    #[error(
        "an image of several samples cannot be three-dimensional, have several levels or a compressed format"
    )]
    Multisampled,
    /// A depth without three dimensions.
    #[error("only an image of three dimensions has a depth")]
    Depth,
    /// Layers in three dimensions.
    #[error("an image of three dimensions has one layer")]
    VolumeLayers,
    /// UBWC of a linear image.
    #[error("an image with UBWC is tiled")]
    LinearUbwc,
    /// UBWC on a generation whose flags are not known.
    #[error("where a5xx has the flags of UBWC is not known")]
    A5xxUbwc,
    /// Texels whose size is not a power of two are not tiled.
    #[error("texels of {bytes} bytes are in linear images only")]
    TiledTexelBytes {
        /// Bytes of a texel with all samples.
        bytes: u32,
    },
    /// On a5xx, pitches of such texels are not known.
    #[error("how a5xx aligns texels of {bytes} bytes is not known")]
    A5xxTexelBytes {
        /// Bytes of a texel with all samples.
        bytes: u32,
    },
    /// An imported pitch is too small or not aligned.
    #[error("the pitch is {pitch}; it must be at least {least} and a multiple of {align}")]
    Pitch {
        /// What it is.
        pitch: u64,
        /// Bytes of a row.
        least: u64,
        /// What it is a multiple of.
        align: u64,
    },
    /// An imported image begins too far into its memory.
    #[error("an imported image begins at {offset:#x}; at most {most:#x} is possible")]
    ImportOffset {
        /// Where it begins.
        offset: u64,
        /// Where it can begin.
        most: u64,
    },
    /// There is no such level.
    #[error("there is no level {level}; the image has {levels}")]
    NoLevel {
        /// It.
        level: u32,
        /// How many there are.
        levels: u32,
    },
    /// The order of texels in a tile mode is not known.
    #[error("where {name} has its texels is not known")]
    UnknownTiling {
        /// The tile mode.
        name: &'static str,
    },
    /// The bank bit is out of range.
    #[error("the highest bank bit is {bit}; it can be 12 to 31")]
    BankBit {
        /// It.
        bit: u32,
    },
}

/// No GPU has as much address space.
const MAX_IMPORT_OFFSET: u64 = 1 << 56;

/// Whether there can be such an image.
pub(super) fn check(gpu: &ImageGpu, params: &ImageParams) -> Result<(), LayoutError> {
    let generation = gpu.generation;
    if !matches!(generation, Generation::A5xx | Generation::A6xx | Generation::A7xx) {
        return Err(LayoutError::Generation { generation });
    }
    let ImageParams { width, height, depth, levels, layers, samples, .. } = *params;
    for (axis, value, most) in [
        (Axis::Width, width, MAX_SIZE),
        (Axis::Height, height, MAX_SIZE),
        (Axis::Depth, depth, MAX_LAYERS),
        (Axis::Layers, layers, MAX_LAYERS),
    ] {
        if value == 0 || value > most {
            return Err(LayoutError::Extent { axis, value, most });
        }
    }
    if depth > 1 && !params.is_3d {
        return Err(LayoutError::Depth);
    }
    if layers > 1 && params.is_3d {
        return Err(LayoutError::VolumeLayers);
    }
    let most = params.full_levels().min(MAX_LEVELS);
    if levels == 0 || levels > most {
        return Err(LayoutError::Levels { levels, most });
    }
    if !matches!(samples, 1 | 2 | 4 | 8) {
        return Err(LayoutError::Samples { samples });
    }
    if samples > 1 && (params.is_3d || levels > 1 || params.format.is_block()) {
        return Err(LayoutError::Multisampled);
    }
    if params.ubwc && params.tile_mode == TileMode::Linear {
        return Err(LayoutError::LinearUbwc);
    }
    if params.ubwc && generation == Generation::A5xx {
        return Err(LayoutError::A5xxUbwc);
    }
    match params.import {
        Some(import) if import.offset > MAX_IMPORT_OFFSET => {
            Err(LayoutError::ImportOffset { offset: import.offset, most: MAX_IMPORT_OFFSET })
        }
        _ => Ok(()),
    }
}
