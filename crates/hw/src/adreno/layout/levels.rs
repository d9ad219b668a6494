//! Where levels begin: the rules of a5xx, and those of a6xx and a7xx.
//!
//! Numbers are 64 bits wide: the largest image that [`super::error::check`] lets through has less than 2^62 bytes.

use super::{
    FlagLayout, FlagLevel, ImageGpu, ImageLayout, ImageParams, LayoutError, LevelLayout, MIN_TILED_WIDTH,
    TileMode, UbwcRefusal,
};

/// What pitches of flags are multiples of.
pub(super) const FLAG_PITCH_ALIGN: u32 = 64;
/// What levels with UBWC, their flags, layers, and slices of the full size are multiples of.
pub(super) const PAGE: u64 = 4096;

/// A size of a level.
pub(super) fn minify(size: u32, level: u32) -> u32 {
    (size >> level).max(1)
}

/// The format has two channels of 8 bits that tiles of a6xx keep apart.
pub(super) fn is_channel_pair(params: &ImageParams) -> bool {
    params.format.block_bytes() * params.samples == 2
        && params.format.channel_count() == 2
        && !params.is_mutable
}

/// Width and height in texels of a block with one flag; `None` where texels of that size have no UBWC.
fn flag_block(params: &ImageParams) -> Option<(u32, u32)> {
    if params.format.name() == "Y8_UNORM" {
        return Some((32, 8));
    }
    ubwc_block(params.format.block_bytes(), params.samples, is_channel_pair(params))
}

/// Width and height in texels of a block with one flag of UBWC, by bytes and number of the samples of a texel, and whether
/// tiles keep its two channels of 8 bits apart; `None` where such texels have no UBWC.
pub fn ubwc_block(sample_bytes: u32, samples: u32, channel_pair: bool) -> Option<(u32, u32)> {
    if channel_pair {
        return Some((16, 8));
    }
    if sample_bytes <= 2 && samples > 1 {
        return Some(match samples {
            2 => (8, 4),
            4 => (4, 4),
            _ => (4, 2),
        });
    }
    match sample_bytes.saturating_mul(samples) {
        1 | 2 | 4 => Some((16, 4)),
        8 => Some((8, 4)),
        16 => Some((4, 4)),
        32 => Some((4, 2)),
        _ => None,
    }
}

/// The pitch of the full size.
fn first_pitch(params: &ImageParams, texel_bytes: u32, align: u32) -> Result<u64, LayoutError> {
    let (block_width, _) = params.format.block_size();
    let align = u64::from(align);
    let least = u64::from(params.width.div_ceil(block_width)) * u64::from(texel_bytes);
    let Some(import) = params.import else { return Ok(least.next_multiple_of(align)) };
    let pitch = u64::from(import.pitch);
    if pitch < least || !pitch.is_multiple_of(align) {
        return Err(LayoutError::Pitch { pitch, least, align });
    }
    Ok(pitch)
}

/// Rows of texels or blocks in a level, without alignment.
fn block_rows(params: &ImageParams, level: u32) -> u32 {
    minify(params.height, level).div_ceil(params.format.block_size().1)
}

/// An image without levels yet.
fn empty(gpu: &ImageGpu, params: &ImageParams, texel_bytes: u32) -> ImageLayout {
    ImageLayout {
        gpu: *gpu,
        params: *params,
        tile_mode: params.tile_mode,
        tile_all: false,
        levels: Vec::with_capacity(params.levels as usize),
        texel_bytes,
        pitch_align: 0,
        base_align: None,
        layer_size: 0,
        size: 0,
        flags: None,
        ubwc_refusal: None,
    }
}

impl ImageLayout {
    fn level_tile_mode(&self, level: u32) -> TileMode {
        let narrow = minify(self.params.width, level) < MIN_TILED_WIDTH;
        if narrow && !self.tile_all { TileMode::Linear } else { self.tile_mode }
    }

    fn level_pitch(&self, first: u64, level: u32) -> u64 {
        (first >> level).max(1).next_multiple_of(u64::from(self.pitch_align))
    }

    /// Adds a level after the others. Offsets are from the start of the texels.
    fn push(&mut self, level: u32, rows: u32, pitch: u64, slice_size: u64) {
        let depth = if self.params.is_3d { minify(self.params.depth, level) } else { 1 };
        self.levels.push(LevelLayout {
            offset: self.size,
            pitch,
            rows,
            slice_size,
            width: minify(self.params.width, level),
            height: minify(self.params.height, level),
            depth,
            tile_mode: self.level_tile_mode(level),
            flags: None,
        });
        self.size += slice_size * u64::from(depth);
    }

    /// Sizes of layers, flags before the texels, and an imported offset before both.
    fn finish(mut self) -> ImageLayout {
        if !self.params.is_3d {
            self.layer_size = self.size.next_multiple_of(PAGE);
            self.size = self.layer_size * u64::from(self.params.layers);
        }
        let import = self.params.import.map_or(0, |import| import.offset);
        let before = import + self.flags.map_or(0, |flags| flags.size);
        for level in &mut self.levels {
            level.offset += before;
        }
        self.size += before;
        self
    }
}

pub(super) fn a5xx(gpu: &ImageGpu, params: &ImageParams) -> Result<ImageLayout, LayoutError> {
    /// A slice of three dimensions that is not larger than this is the smallest.
    const SMALL_SLICE: u64 = 0xf000;
    /// Rows that copies between GMEM and memory work on.
    const COPY_ROWS: u32 = 32;
    let texel_bytes = params.format.block_bytes() * params.samples;
    if !texel_bytes.is_power_of_two() {
        return Err(LayoutError::A5xxTexelBytes { bytes: texel_bytes });
    }
    let mut image = empty(gpu, params, texel_bytes);
    let small_texels = texel_bytes < 4 && params.tile_mode != TileMode::Linear;
    image.pitch_align = texel_bytes * if small_texels { 128 } else { 64 };
    let row_align = if texel_bytes == 1 { 32 } else { 16 };
    let first = first_pitch(params, texel_bytes, image.pitch_align)?;
    for level in 0..params.levels {
        let pitch = image.level_pitch(first, level);
        let mut rows = block_rows(params, level);
        if image.level_tile_mode(level) != TileMode::Linear {
            rows = rows.next_multiple_of(row_align);
        } else if level == params.levels - 1 {
            rows = rows.next_multiple_of(COPY_ROWS);
        }
        let whole = u64::from(rows) * pitch;
        let slice = match image.levels.last() {
            _ if !params.is_3d => whole,
            Some(before) if level > 1 && before.slice_size <= SMALL_SLICE => before.slice_size,
            _ => whole.next_multiple_of(PAGE),
        };
        image.push(level, rows, pitch, slice);
    }
    Ok(image.finish())
}

pub(super) fn a6xx(gpu: &ImageGpu, params: &ImageParams) -> Result<ImageLayout, LayoutError> {
    /// Rows that copies between GMEM and memory work on.
    const COPY_ROWS: u32 = 4;
    let texel_bytes = params.format.block_bytes() * params.samples;
    let mut image = empty(gpu, params, texel_bytes);
    let depth_stencil = params.format.is_depth_stencil();
    if params.width < MIN_TILED_WIDTH && !depth_stencil {
        image.tile_mode = TileMode::Linear;
    }
    let block = flag_block(params).filter(|_| texel_bytes.is_power_of_two());
    if params.ubwc {
        image.ubwc_refusal = match block {
            None => Some(UbwcRefusal::TexelBytes(texel_bytes)),
            Some(_) if params.depth > 1 && params.levels > 1 => Some(UbwcRefusal::VolumeLevels),
            Some(_) if params.width < MIN_TILED_WIDTH => Some(UbwcRefusal::Narrow),
            Some(_) => None,
        };
    }
    let block = block.filter(|_| params.ubwc && image.ubwc_refusal.is_none());
    let row_align = a6xx_alignment(&mut image, block.is_some())?;
    image.tile_all = depth_stencil || (block.is_some() && !gpu.linear_mip_fallback);
    let first = first_pitch(params, texel_bytes, image.pitch_align)?;
    let mut flags = block.map(|block| FlagRules::of(params, block));
    let mut least_slice = None;
    for level in 0..params.levels {
        let pitch = image.level_pitch(first, level);
        let tiled = image.level_tile_mode(level) != TileMode::Linear;
        let mut rows = block_rows(params, level);
        if tiled {
            rows = rows.next_multiple_of(row_align);
        }
        if level == params.levels - 1 {
            rows = rows.next_multiple_of(COPY_ROWS);
        }
        let whole = u64::from(rows) * pitch;
        let slice =
            if params.is_3d { image.volume_slice(level, pitch, whole, &mut least_slice) } else { whole };
        image.push(level, rows, pitch, slice);
        if let Some(flags) = flags.as_mut().filter(|_| tiled) {
            image.size = image.size.next_multiple_of(PAGE);
            let level_flags = flags.level(level);
            if let Some(last) = image.levels.last_mut() {
                last.flags = Some(level_flags);
            }
        }
    }
    image.flags = flags.map(|flags| flags.layout(params));
    Ok(image.finish())
}

/// Sets what pitches and the address are multiples of; returns what rows of tiled levels are multiples of.
fn a6xx_alignment(image: &mut ImageLayout, ubwc: bool) -> Result<u32, LayoutError> {
    let texel_bytes = image.texel_bytes;
    let params = &image.params;
    if image.tile_mode == TileMode::Linear {
        image.base_align = Some(64);
        // Texels that are not a power of two are aligned as the next one.
        let unit = texel_bytes.next_power_of_two();
        let loose = params.import.is_some() && texel_bytes.is_power_of_two();
        image.pitch_align = 64 * if loose { (unit / 4).max(1) } else { unit };
        return Ok(1);
    }
    if !texel_bytes.is_power_of_two() {
        return Err(LayoutError::TiledTexelBytes { bytes: texel_bytes });
    }
    let pair = is_channel_pair(params);
    let narrow = texel_bytes == 1 || pair;
    image.pitch_align = match texel_bytes {
        _ if narrow => 128,
        2 => 256,
        _ => 64 * texel_bytes,
    };
    image.base_align = Some(match texel_bytes {
        _ if ubwc || pair || params.format.is_depth_stencil() => 4096,
        1 => 64,
        2 => 128,
        _ => 256,
    });
    Ok(if narrow { 32 } else { 16 })
}

impl ImageLayout {
    /// Bytes of a slice of three dimensions. They are a quarter of the level before until something would not be aligned; from there on
    /// they stay the same.
    fn volume_slice(&self, level: u32, pitch: u64, whole: u64, least: &mut Option<u64>) -> u64 {
        let Some((first, before)) = self.levels.first().zip(self.levels.last()) else {
            return whole.next_multiple_of(PAGE);
        };
        if let Some(least) = *least {
            return least;
        }
        let mut slice = (first.slice_size >> (2 * level)).max(1);
        if pitch != before.pitch / 2 || slice < whole {
            slice = whole;
            *least = Some(slice);
        }
        if !slice.is_multiple_of(PAGE) {
            slice = slice.next_multiple_of(PAGE);
            *least = Some(slice);
        }
        slice
    }
}

/// How flags are placed, and how many there are so far.
struct FlagRules {
    block: (u32, u32),
    width: u32,
    height: u32,
    row_align: u32,
    size: u64,
}

impl FlagRules {
    fn of(params: &ImageParams, block: (u32, u32)) -> FlagRules {
        let (mut width, mut height, mut row_align) = (params.width, params.height, 16);
        if params.levels > 1 {
            // Descriptors have the logarithms of the size then.
            (width, height, row_align) = (width.next_power_of_two(), height.next_power_of_two(), 64);
        }
        FlagRules {
            block,
            width: width.div_ceil(block.0).next_multiple_of(FLAG_PITCH_ALIGN),
            height: height.div_ceil(block.1).next_multiple_of(row_align),
            row_align,
            size: 0,
        }
    }

    fn level(&mut self, level: u32) -> FlagLevel {
        let pitch = minify(self.width, level).next_multiple_of(FLAG_PITCH_ALIGN);
        let rows = minify(self.height, level).next_multiple_of(self.row_align);
        let size = (u64::from(pitch) * u64::from(rows)).next_multiple_of(PAGE);
        let offset = self.size;
        self.size += size;
        FlagLevel { offset, pitch, rows, size }
    }

    fn layout(&self, params: &ImageParams) -> FlagLayout {
        FlagLayout {
            block: self.block,
            layer_size: self.size,
            size: self.size * u64::from(params.layers) * u64::from(params.depth),
            width: self.width,
        }
    }
}
