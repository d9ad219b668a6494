//! Pictures of what draws write: render targets, depth and stencil.
//!
//! Never: says which draw.

use super::image::colour;
use super::png::{Pixels, encode};
use crate::plural::counted;
use std::str::FromStr;
use unwedge_hw::adreno::format::Numeric;
use unwedge_sim::adreno::{AdrenoMachine, TargetImage, TargetName, TargetValue};

/// Pixels that a picture may have.
pub(super) const MOST_PIXELS: u64 = 1 << 26;

/// How a target is called.
pub(super) fn target_name(name: TargetName) -> String {
    match name {
        TargetName::Colour(number) => format!("mrt{number}"),
        TargetName::Depth => "depth".to_owned(),
        TargetName::Stencil => "stencil".to_owned(),
    }
}

/// The target of a name.
pub(super) fn parse_target(text: &str) -> Option<TargetName> {
    match text {
        "depth" => Some(TargetName::Depth),
        "stencil" => Some(TargetName::Stencil),
        _ => text.strip_prefix("mrt")?.parse().ok().filter(|n| *n < 8).map(TargetName::Colour),
    }
}

/// A target by its name: `mrt0` to `mrt7`, `depth`, `stencil`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetChoice(pub TargetName);

impl FromStr for TargetChoice {
    type Err = String;

    fn from_str(text: &str) -> Result<TargetChoice, String> {
        parse_target(text)
            .map(TargetChoice)
            .ok_or_else(|| format!("`{text}` is not mrt0 to mrt7, depth or stencil"))
    }
}

/// Which texels of an image a picture shows, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TargetDetail {
    pub(super) layer: u32,
    pub(super) sample: u32,
    /// Depths are stretched to the range from the least to the greatest one.
    pub(super) stretch: bool,
}

/// A picture of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetPng {
    pub(super) png: Vec<u8>,
    /// Pixels of GMEM that nothing has written; they are transparent.
    pub(super) unknown: u64,
}

/// The picture of an area of an image, as PNG.
pub(super) fn picture(
    machine: &AdrenoMachine<'_>,
    image: &TargetImage,
    [first, last]: [[u32; 2]; 2],
    detail: TargetDetail,
) -> Result<TargetPng, String> {
    let TargetDetail { layer, sample, stretch } = detail;
    if sample >= image.samples() {
        let samples = counted(image.samples().into(), "sample", "samples");
        return Err(format!("it has no sample {sample}: it has {samples}, counted from 0"));
    }
    let [width, height] = [0, 1].map(|axis| (last[axis] + 1).saturating_sub(first[axis]));
    if width == 0 || height == 0 {
        return Err("none of its pixels is rendered".to_owned());
    }
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!("a picture of {width} by {height} is too large"));
    }
    let mut values = Vec::new();
    for y in first[1]..=last[1] {
        for x in first[0]..=last[0] {
            let place = [x, y, layer, sample];
            values.push(match image.is_undefined(machine, place) {
                true => None,
                false => {
                    Some(image.value(machine, place).map_err(|fault| format!("pixel {x},{y}: {fault}"))?)
                }
            });
        }
    }
    let unknown = values.iter().filter(|value| value.is_none()).count() as u64;
    let (pixels, samples) = match image.name() {
        TargetName::Colour(_) => (Pixels::Rgba8, colours(&values, image.numeric(), image.is_srgb())),
        TargetName::Depth => depths(&values, stretch, unknown != 0),
        TargetName::Stencil => stencils(&values, unknown != 0),
    };
    Ok(TargetPng { png: encode(width, height, pixels, &samples)?, unknown })
}

/// Unknown colours are transparent black.
fn colours(values: &[Option<TargetValue>], numeric: Numeric, srgb: bool) -> Vec<u8> {
    let one = |value: &Option<TargetValue>| match value {
        Some(TargetValue::Colour(texel)) => colour(*texel, numeric, srgb),
        _ => [0; 4],
    };
    values.iter().flat_map(one).collect()
}

/// With alpha where some are unknown, which are transparent.
fn stencils(values: &[Option<TargetValue>], alpha: bool) -> (Pixels, Vec<u8>) {
    let one = |value: &Option<TargetValue>| match value {
        Some(TargetValue::Stencil(value)) => [*value, u8::MAX],
        _ => [0; 2],
    };
    let kept = if alpha { 2 } else { 1 };
    let samples = values.iter().flat_map(|value| one(value).into_iter().take(kept)).collect();
    (if alpha { Pixels::GreyAlpha8 } else { Pixels::Grey8 }, samples)
}

/// With alpha where some are unknown, as for stencils.
fn depths(values: &[Option<TargetValue>], stretch: bool, alpha: bool) -> (Pixels, Vec<u8>) {
    let depth = |value: &Option<TargetValue>| match value {
        Some(TargetValue::Depth(z)) => *z,
        // NaN is neither the least nor the greatest depth.
        _ => f32::NAN,
    };
    let all: Vec<f32> = values.iter().map(depth).collect();
    let codes = depth_codes(&all, stretch);
    if !alpha {
        return (Pixels::Grey16, codes);
    }
    let opacity = |value: &Option<TargetValue>| if value.is_some() { [u8::MAX; 2] } else { [0; 2] };
    let pixels = codes.chunks_exact(2).zip(values);
    let samples = pixels.flat_map(|(code, value)| code.iter().copied().chain(opacity(value))).collect();
    (Pixels::GreyAlpha16, samples)
}

/// Depths from 0 to 1 as 16 bits, or those of the range that there is.
fn depth_codes(depths: &[f32], stretch: bool) -> Vec<u8> {
    let depths = || depths.iter().map(|z| f64::from(*z));
    let finite = || depths().filter(|z| z.is_finite());
    let [least, greatest] = match stretch {
        true => [finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max)],
        false => [0.0, 1.0],
    };
    let range = if greatest > least { greatest - least } else { 1.0 };
    let code = |z: f64| (((z - least) / range).clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16;
    depths().flat_map(|z| code(z).to_be_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_are_written_whole_or_stretched() {
        let values = [0.5f32, 0.75, 2.0, f32::NAN];
        let codes = |stretch| -> Vec<u16> {
            depth_codes(&values, stretch)
                .chunks_exact(2)
                .map(|two| u16::from_be_bytes([two[0], two[1]]))
                .collect()
        };
        assert_eq!(codes(false), [32768, 49151, 65535, 0]);
        assert_eq!(codes(true), [0, 10922, 65535, 0]);
    }

    #[test]
    fn unknown_pixels_are_transparent() {
        let half = Some(TargetValue::Depth(0.5));
        assert_eq!(
            depths(&[half, None], false, true),
            (Pixels::GreyAlpha16, vec![0x80, 0, 255, 255, 0, 0, 0, 0])
        );
        assert_eq!(depths(&[half], false, false), (Pixels::Grey16, vec![0x80, 0]));
        let seven = Some(TargetValue::Stencil(7));
        assert_eq!(stencils(&[None, seven], true), (Pixels::GreyAlpha8, vec![0, 0, 7, 255]));
        assert_eq!(stencils(&[seven], false), (Pixels::Grey8, vec![7]));
        let white = Some(TargetValue::Colour([1f32.to_bits(); 4]));
        assert_eq!(colours(&[white, None], Numeric::Float, false), [255, 255, 255, 255, 0, 0, 0, 0]);
    }

    #[test]
    fn targets_have_names() {
        for name in [TargetName::Colour(0), TargetName::Colour(7), TargetName::Depth, TargetName::Stencil] {
            assert_eq!(parse_target(&target_name(name)), Some(name));
        }
        assert_eq!(parse_target("mrt8"), None);
    }
}
