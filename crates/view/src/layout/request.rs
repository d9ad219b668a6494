//! What was asked for, as people write it: sizes, tile modes, texels.

use std::str::FromStr;
use unwedge_base::Generation;
use unwedge_hw::adreno::format::Format;
use unwedge_hw::adreno::layout::{ImageGpu, TileMode};
use unwedge_hw::{Db, near};

/// A size in texels: `1024`, `1024x768`, `64x64x16`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageSize {
    pub(super) width: u32,
    pub(super) height: u32,
    pub(super) depth: u32,
}

impl FromStr for ImageSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ImageSize, String> {
        let sides: Vec<u32> = text
            .split(['x', 'X'])
            .map(|side| side.trim().parse())
            .collect::<Result<_, _>>()
            .map_err(|_| format!("{text} is not a size: take 1024, 1024x768 or 64x64x16"))?;
        match sides[..] {
            [width] => Ok(ImageSize { width, height: 1, depth: 1 }),
            [width, height] => Ok(ImageSize { width, height, depth: 1 }),
            [width, height, depth] => Ok(ImageSize { width, height, depth }),
            _ => Err(format!("{text} has more than three sides: take 1024, 1024x768 or 64x64x16")),
        }
    }
}

/// How many levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelCount {
    /// So many.
    Number(u32),
    /// Down to one texel.
    All,
}

impl FromStr for LevelCount {
    type Err = String;

    fn from_str(text: &str) -> Result<LevelCount, String> {
        match text {
            "all" => Ok(LevelCount::All),
            _ => {
                text.parse().map(LevelCount::Number).map_err(|_| format!("{text} is not a number, nor `all`"))
            }
        }
    }
}

/// A texel: `X`, `X,Y`, `X,Y,Z`, `X,Y,Z,SAMPLE`, each with `@LEVEL`. Z is a slice of three dimensions, or a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TexelRequest {
    pub(super) x: u32,
    pub(super) y: u32,
    pub(super) layer: u32,
    pub(super) sample: u32,
    pub(super) level: u32,
}

impl FromStr for TexelRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<TexelRequest, String> {
        let wrong = || format!("{text} is not a texel: take X,Y or X,Y,Z or X,Y,Z,SAMPLE, and @LEVEL");
        let (place, level) = text.split_once('@').unwrap_or((text, "0"));
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let level = number(level)?;
        let place: Vec<u32> = place.split(',').map(number).collect::<Result<_, _>>()?;
        if place.len() > 4 {
            return Err(wrong());
        }
        let at = |axis: usize| place.get(axis).copied().unwrap_or(0);
        Ok(TexelRequest { x: at(0), y: at(1), layer: at(2), sample: at(3), level })
    }
}

/// A number of bytes, in decimal or with `0x` in hexadecimal.
///
/// # Errors
/// When it is neither.
pub fn byte_number(text: &str) -> Result<u64, String> {
    let number = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    };
    number.map_err(|_| format!("{text} is not a number of bytes: take 4096 or 0x1000"))
}

/// The tile mode that a number or a name means: `0`, `linear`, `3`, `TILE6_3`.
///
/// # Errors
/// When there is none.
pub fn tile_mode(text: &str) -> Result<TileMode, String> {
    let modes = [TileMode::Linear, TileMode::Tile2, TileMode::Tile3];
    let upper = text.to_ascii_uppercase();
    let names = |mode: &TileMode| {
        mode.code().to_string() == upper
            || mode.name(Generation::A5xx) == upper
            || mode.name(Generation::A6xx) == upper
    };
    match upper.as_str() {
        "LINEAR" => Ok(TileMode::Linear),
        _ => modes.into_iter().find(names).ok_or_else(|| {
            format!("{text} is not a tile mode: take 0 or linear, 2 (TILE6_2, in GMEM) or 3 (TILE6_3)")
        }),
    }
}

/// The format that a name means.
///
/// # Errors
/// When there is none; the message names those that look like it.
pub fn format(text: &str) -> Result<Format, String> {
    Format::named(text).ok_or_else(|| {
        let names = Format::all().flat_map(|format| [Some(format.name()), format.vulkan_name()]).flatten();
        match &near(names, text)[..] {
            [] => "not a known format; `unwedge layout --formats` lists all".to_owned(),
            near => format!("not a known format; near it: {}", near.join(", ")),
        }
    })
}

/// A GPU with image layouts, and what people call it.
#[derive(Clone, Debug)]
pub struct LayoutGpu {
    pub(super) name: String,
    pub(super) gpu: ImageGpu,
}

/// The GPU that a name means: `a630`, `FD740`, `6.3.0.2`, `0x43051401`.
///
/// # Errors
/// When there is none, or nothing is known of its layouts; the message says which there are.
pub fn gpu(text: &str) -> Result<LayoutGpu, String> {
    let db = Db::builtin();
    let known = || {
        let mut names: Vec<String> = Vec::new();
        for device in db.devices().filter(|device| device.generation() >= Generation::A5xx) {
            let name = device.name().to_ascii_lowercase().replacen("fd", "a", 1);
            let name = if device.number_in_name().is_some() { name } else { device.name().to_owned() };
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names.join(", ")
    };
    let adreno = db
        .identify_name(text)
        .ok_or_else(|| format!("not a known Adreno GPU; GPUs with image layouts are {}", known()))?;
    let gpu = ImageGpu::of(adreno).map_err(|e| format!("{e}: {}", known()))?;
    let name = adreno.name().unwrap_or(adreno.generation.name()).to_owned();
    Ok(LayoutGpu { name, gpu })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_texels() {
        let size = |text: &str| text.parse::<ImageSize>().map(|s| (s.width, s.height, s.depth));
        assert_eq!(size("1024x1x1"), Ok((1024, 1, 1)));
        assert_eq!(size("7"), Ok((7, 1, 1)));
        assert_eq!(size("64X32"), Ok((64, 32, 1)));
        assert!(size("1x2x3x4").is_err() && size("x").is_err() && size("-1").is_err());
        let texel = |text: &str| text.parse::<TexelRequest>().map(|t| (t.x, t.y, t.layer, t.sample, t.level));
        assert_eq!(texel("3,5"), Ok((3, 5, 0, 0, 0)));
        assert_eq!(texel("3,5,2,1@4"), Ok((3, 5, 2, 1, 4)));
        assert_eq!(texel("9@1"), Ok((9, 0, 0, 0, 1)));
        assert!(texel("1,2,3,4,5").is_err() && texel("").is_err() && texel("1,2@").is_err());
    }

    #[test]
    fn names() {
        assert_eq!(tile_mode("tile6_3"), Ok(TileMode::Tile3));
        assert_eq!(tile_mode("TILE5_2"), Ok(TileMode::Tile2));
        assert!(tile_mode("1").is_err_and(|e| e.contains("TILE6_3")));
        assert!(format("R8G8B8A8_UNROM").is_err_and(|e| e.contains("R8G8B8A8_UNORM")));
        assert!(gpu("a6xx").is_err_and(|e| e.contains("a630")));
        assert!(gpu("a330").is_err_and(|e| e.contains("a5xx")));
        assert!(gpu("navi21").is_err_and(|e| e.contains("a740")));
    }
}
