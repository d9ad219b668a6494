//! Images that are asked for: those in memory, and those that draws write.
//!
//! Never: files; a picture is bytes of PNG for the caller.

use super::png::{Pixels, encode};
use super::target::{TargetDetail, TargetPng, parse_target};
use crate::layout::{byte_number, format, tile_mode};
use std::str::FromStr;
use unwedge_hw::adreno::format::{Format, Numeric, linear_to_srgb8};
use unwedge_hw::adreno::layout::{ImageGpu, ImageLayout, ImageParams, ImportedLayout, TileMode};
use unwedge_sim::adreno::{AdrenoMachine, Replay, TargetName};

/// How an image is asked for.
const FORM: &str = "write it as draw=N:mrt0, draw=N:depth or draw=N:stencil, then any of :stored :layer=N :sample=N :stretch (of depth); or as ADDRESS:FORMAT:WxH, then any of :tile=N :ubwc :pitch=BYTES :level=N :layer=N :levels=N \
                    :layers=N: 0x100080000:R8G8B8A8_UNORM:256x256:tile=3";

/// An image that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageWanted {
    /// In memory, at the end.
    Memory(MemoryImage),
    /// Of a draw.
    Target(TargetPicture),
}

/// What a draw writes, after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetPicture {
    /// Number of the draw, as the replay counts work.
    pub draw: u64,
    /// Which image.
    pub(super) name: TargetName,
    /// As it is in memory when the pass of the draw is over; else as the draw left it, in GMEM of one bin.
    pub(super) stored: bool,
    pub(super) detail: TargetDetail,
}

impl FromStr for ImageWanted {
    type Err = String;

    /// Reads `ADDRESS:FORMAT:WxH[:OPTION]…` or `draw=N:TARGET[:OPTION]…`.
    fn from_str(text: &str) -> Result<ImageWanted, String> {
        match text.strip_prefix("draw=") {
            Some(rest) => target_picture(rest).map(ImageWanted::Target),
            None => text.parse().map(ImageWanted::Memory),
        }
    }
}

/// Reads what follows `draw=`.
fn target_picture(text: &str) -> Result<TargetPicture, String> {
    let mut parts = text.split(':');
    let draw = parts.next().and_then(|n| n.parse().ok()).ok_or(FORM)?;
    let name = parts.next().and_then(parse_target).ok_or(FORM)?;
    let mut picture = TargetPicture { draw, name, stored: false, detail: TargetDetail::default() };
    let count = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number; {FORM}"));
    for part in parts {
        match part.split_once('=') {
            None if part == "stored" => picture.stored = true,
            None if part == "stretch" => picture.detail.stretch = true,
            Some(("layer", n)) => picture.detail.layer = count(n)?,
            Some(("sample", n)) => picture.detail.sample = count(n)?,
            _ => return Err(format!("`{part}` says nothing of a target; {FORM}")),
        }
    }
    if picture.detail.stretch && name != TargetName::Depth {
        return Err(format!("`stretch` is for depth; {FORM}"));
    }
    Ok(picture)
}

/// An image in memory: where it is, what it is, and which level and layer of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryImage {
    /// Where the image begins, with its flags if it has UBWC.
    pub iova: u64,
    /// What it is.
    pub params: ImageParams,
    /// Which level.
    pub level: u32,
    /// Which layer.
    pub layer: u32,
}

impl FromStr for MemoryImage {
    type Err = String;

    /// Reads `ADDRESS:FORMAT:WxH[:OPTION]…`. A level or layer that is asked for is one of those that the image has.
    fn from_str(text: &str) -> Result<MemoryImage, String> {
        let mut parts = text.split(':');
        let mut next = || parts.next().ok_or(FORM);
        let iova = byte_number(next()?)?;
        let format: Format = format(next()?)?;
        let (width, height) = next()?.split_once('x').ok_or(FORM)?;
        let count = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is not a number; {FORM}"));
        let mut params = ImageParams::new(format, count(width)?, count(height)?);
        let (mut level, mut layer, mut levels, mut layers, mut pitch) = (0, 0, None, None, None);
        let mut tiled = None;
        for part in parts {
            match part.split_once('=') {
                None if part == "ubwc" => params.ubwc = true,
                Some(("tile", mode)) => tiled = Some(tile_mode(mode)?),
                Some(("pitch", bytes)) => pitch = Some(count(bytes)?),
                Some(("level", n)) => level = count(n)?,
                Some(("layer", n)) => layer = count(n)?,
                Some(("levels", n)) => levels = Some(count(n)?),
                Some(("layers", n)) => layers = Some(count(n)?),
                _ => return Err(format!("`{part}` says nothing of an image; {FORM}")),
            }
        }
        // Without a number there are as many as are needed.
        let last = |of: &str, wanted: u32, all: Option<u32>| match all {
            Some(all) if wanted >= all => Err(format!("there is no {of} {wanted} where there are {all}")),
            _ => Ok(all.unwrap_or(wanted.saturating_add(1))),
        };
        (params.levels, params.layers) = (last("level", level, levels)?, last("layer", layer, layers)?);
        // Only tiles are compressed.
        params.tile_mode = match (tiled, params.ubwc) {
            (Some(TileMode::Linear), true) => return Err(format!("a linear image has no UBWC; {FORM}")),
            (Some(mode), _) => mode,
            (None, true) => TileMode::Tile3,
            (None, false) => TileMode::Linear,
        };
        params.import = pitch.map(|pitch| ImportedLayout { offset: 0, pitch });
        Ok(MemoryImage { iova, params, level, layer })
    }
}

/// The picture of an image, as PNG: 8 bits for each of red, green, blue and alpha. Texels that were stored from GMEM where nothing had
/// written it are transparent.
pub(super) fn picture(replay: &Replay<'_>, wanted: &MemoryImage) -> Result<TargetPng, String> {
    let MemoryImage { iova, params, level, layer } = wanted;
    let machine = &replay.machine;
    let said = |error: &dyn std::fmt::Display| format!("the image at {iova:#x}: {error}");
    let gpu = ImageGpu::of(machine.adreno()).map_err(|e| said(&e))?;
    let layout = ImageLayout::new(&gpu, params).map_err(|e| said(&e))?;
    let addresser = layout.addresser(*level).map_err(|e| said(&e))?;
    let size = layout.levels.get(*level as usize).ok_or_else(|| said(&"it has no such level"))?;
    let (codec, block) = (params.format.codec(), params.format.block_size());
    let (mut rows, mut unknown) = (Vec::new(), 0);
    let mut texel = Vec::new();
    for y in 0..size.height {
        for x in 0..size.width {
            let (column, line) = stored(&layout, *iova, (*level, *layer), (x, y), machine)
                .ok_or_else(|| said(&format_args!("what its flags say of texel {x},{y} is not known")))?;
            let offset = addresser.checked_offset(column / block.0, line / block.1, *layer, 0);
            let at = offset
                .and_then(|offset| iova.checked_add(offset))
                .ok_or_else(|| said(&"it has no such texel"))?;
            if machine.space.memory.is_undefined(at, codec.bytes() as usize) {
                unknown += 1;
                rows.extend([0; 4]);
                continue;
            }
            texel.clear();
            for n in (0..u64::from(codec.bytes())).step_by(8) {
                let count = (u64::from(codec.bytes()) - n).min(8) as usize;
                let loaded = at.checked_add(n).and_then(|at| machine.space.memory.load(at, count).known());
                let value = loaded.ok_or_else(|| {
                    said(&format_args!("its texel {x},{y} at {at:#x} is not mapped and known"))
                })?;
                texel.extend_from_slice(&value.to_le_bytes()[..count]);
            }
            let unpacked = codec.unpack(&texel, x % block.0, y % block.1);
            let unpacked = unpacked.ok_or_else(|| said(&"its format cannot be read"))?;
            rows.extend(colour(unpacked, codec.numeric(), params.format.is_srgb()));
        }
    }
    let png = encode(size.width, size.height, Pixels::Rgba8, &rows).map_err(|e| said(&e))?;
    Ok(TargetPng { png, unknown })
}

/// Where the value of a texel is stored, which flags of UBWC say; `None` where they are not known.
fn stored(
    layout: &ImageLayout,
    iova: u64,
    (level, layer): (u32, u32),
    (x, y): (u32, u32),
    machine: &AdrenoMachine<'_>,
) -> Option<(u32, u32)> {
    let (Some(flags), Some(first)) = (layout.flags, layout.flag_offset(level, layer)) else {
        return Some((x, y));
    };
    let row = u64::from(y / flags.block.1) * u64::from(flags.pitch(level));
    let flag = iova.checked_add(first)?.checked_add(row)?.checked_add(u64::from(x / flags.block.0))?;
    machine.stored_texel(flag, flags.block, (x, y))
}

/// The codes of a texel: 0 to 1 in 8 bits, as an sRGB format holds it; integers as far as 8 bits hold them.
pub(super) fn colour(texel: [u32; 4], numeric: Numeric, srgb: bool) -> [u8; 4] {
    std::array::from_fn(|channel| {
        let value = texel[channel];
        match numeric {
            Numeric::Float if srgb && channel < 3 => linear_to_srgb8(f32::from_bits(value)),
            Numeric::Float => (f32::from_bits(value).clamp(0.0, 1.0) * 255.0).round_ties_even() as u8,
            // A channel that is not there is 1: opaque.
            Numeric::Uint | Numeric::Sint if channel == 3 && value == 1 => u8::MAX,
            Numeric::Uint => value.min(255) as u8,
            Numeric::Sint => (value as i32).clamp(0, 255) as u8,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_is_asked_for_by_what_it_is() {
        let wanted: MemoryImage =
            "0x1000:r8g8b8a8_unorm:64x32:tile=3:ubwc:level=2:layer=1".parse().expect("well formed");
        assert_eq!((wanted.iova, wanted.level, wanted.layer), (0x1000, 2, 1));
        let params = wanted.params;
        assert_eq!((params.width, params.height, params.levels, params.layers), (64, 32, 3, 2));
        assert!(params.ubwc && params.tile_mode == TileMode::Tile3);
        for wrong in [
            "",
            "0x1000",
            "0x1000:R8_UNORM",
            "0x1000:R8_UNORM:4",
            "0:R8_UNORM:4x4:tile=9",
            "0:R8_UNORM:4x4:x",
            "0:R8_UNORM:4x4:tile=0:ubwc",
            "0:R8_UNORM:4x4:levels=2:level=2",
            "0:R8_UNORM:4x4:layers=0",
        ] {
            assert!(wrong.parse::<ImageWanted>().is_err(), "{wrong}");
        }
        let wanted = "draw=12:depth:stored:layer=3:stretch".parse();
        let detail = TargetDetail { layer: 3, sample: 0, stretch: true };
        let picture = TargetPicture { draw: 12, name: TargetName::Depth, stored: true, detail };
        assert_eq!(wanted, Ok(ImageWanted::Target(picture)));
        for wrong in [
            "draw=",
            "draw=x:mrt0",
            "draw=1",
            "draw=1:mrt9",
            "draw=1:mrt0:layer",
            "draw=1:mrt0:tile=3",
            "draw=1:mrt0:stretch",
            "draw=1:stencil:stretch",
        ] {
            assert!(wrong.parse::<ImageWanted>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn colours_are_what_the_texels_hold() {
        let floats = [0.5f32, 2.0, f32::NAN, -1.0].map(f32::to_bits);
        assert_eq!(colour(floats, Numeric::Float, false), [128, 255, 0, 0]);
        assert_eq!(colour([7, 300, 0, 1], Numeric::Uint, false), [7, 255, 0, 255]);
        assert_eq!(colour([-3i32 as u32, 9, 0, 2], Numeric::Sint, false), [0, 9, 0, 2]);
    }
}
