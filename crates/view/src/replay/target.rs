//! Pictures of what draws write: render targets, depth and stencil.
//!
//! Never: says which draw.

use super::image::colour;
use super::png::{Pixels, encode};
use std::str::FromStr;
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

/// The picture of an area of an image, as PNG.
pub(super) fn picture(
    machine: &AdrenoMachine<'_>,
    image: &TargetImage,
    [first, last]: [[u32; 2]; 2],
    detail: TargetDetail,
) -> Result<Vec<u8>, String> {
    let TargetDetail { layer, sample, stretch } = detail;
    if sample >= image.samples() {
        return Err(format!("it has no sample {sample}, but {}", image.samples()));
    }
    let [width, height] = [0, 1].map(|axis| (last[axis] + 1).saturating_sub(first[axis]));
    if width == 0 || height == 0 {
        return Err("none of its pixels is rendered".to_owned());
    }
    if u64::from(width) * u64::from(height) > MOST_PIXELS {
        return Err(format!("a picture of {width} by {height} is too large"));
    }
    let (numeric, srgb) = (image.numeric(), image.is_srgb());
    let (mut samples, mut depths) = (Vec::new(), Vec::new());
    for y in first[1]..=last[1] {
        for x in first[0]..=last[0] {
            let value = image.value(machine, [x, y, layer, sample]);
            match value.map_err(|fault| format!("pixel {x},{y}: {fault}"))? {
                TargetValue::Colour(texel) => samples.extend(colour(texel, numeric, srgb)),
                TargetValue::Depth(z) => depths.push(z),
                TargetValue::Stencil(value) => samples.push(value),
            }
        }
    }
    let (pixels, samples) = match image.name() {
        TargetName::Colour(_) => (Pixels::Rgba8, samples),
        TargetName::Depth => (Pixels::Grey16, depth_codes(&depths, stretch)),
        TargetName::Stencil => (Pixels::Grey8, samples),
    };
    encode(width, height, pixels, &samples)
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
    fn targets_have_names() {
        for name in [TargetName::Colour(0), TargetName::Colour(7), TargetName::Depth, TargetName::Stencil] {
            assert_eq!(parse_target(&target_name(name)), Some(name));
        }
        assert_eq!(parse_target("mrt8"), None);
    }
}
