//! Which levels a sample takes, and over which part of a level it goes.
//!
//! Facts: Vulkan's equations; Turnip says that places between levels have 8 bits.

use super::cube::FacePlace;
use super::descriptor::SamplerDescriptor;
use super::image::Image;

/// How the coordinates change from a pixel to the next, across and down. Those of cubes are directions.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Derivatives {
    pub(crate) across: [f32; 3],
    pub(crate) down: [f32; 3],
}

/// How the level is chosen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum LevelOfDetail {
    /// This one.
    Level(f32),
    /// By how coordinates change, with something added.
    Changing { derivatives: Derivatives, bias: f32 },
}

/// What a sample covers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Footprint {
    /// What the sampler allows, which chooses the filter; 8 bits after the point.
    pub(super) lambda: f32,
    /// Between levels: the same, but not before the first level that the image allows.
    pub(super) level: f32,
    /// The same without limits.
    pub(super) raw: f32,
    /// Samples along the axis.
    pub(super) samples: u32,
    /// The longer axis of the footprint in coordinates.
    pub(super) axis: [f64; 3],
}

fn fixed(level: f32) -> f32 {
    let rounded = (f64::from(level) * 256.0).round() / 256.0;
    rounded.clamp(-4096.0, 4096.0) as f32
}

/// The footprint of a sample.
pub(super) fn footprint(
    image: &Image,
    descriptor: &SamplerDescriptor,
    direction: [f64; 3],
    face: Option<&FacePlace>,
    detail: &LevelOfDetail,
) -> Footprint {
    let sampler = &descriptor.sampler;
    let (mut samples, mut axis) = (1, [0.0; 3]);
    let raw = match detail {
        LevelOfDetail::Level(level) => level + sampler.bias,
        LevelOfDetail::Changing { derivatives, bias } => {
            let [across, down] = [derivatives.across, derivatives.down].map(|change| {
                let change = change.map(f64::from);
                match face {
                    Some(face) => {
                        let [s, t] = face.derivative(direction, change);
                        [s, t, 0.0]
                    }
                    None => change,
                }
            });
            let size = image.levels.first().map_or([1.0; 3], |level| {
                [level.size.width, level.size.height, level.size.depth].map(f64::from)
            });
            let scale = if sampler.unnormalized { [1.0; 3] } else { size };
            let length = |change: [f64; 3]| {
                change.iter().zip(scale).map(|(change, size)| (change * size).powi(2)).sum::<f64>().sqrt()
            };
            let (length_across, length_down) = (length(across), length(down));
            let (long, short) = (length_across.max(length_down), length_across.min(length_down));
            if sampler.minify.anisotropic || sampler.magnify.anisotropic {
                let most = f64::from(descriptor.anisotropy);
                let ratio = if short > 0.0 { (long / short).ceil() } else { most };
                // Both may be infinite.
                samples = if ratio.is_nan() { 1 } else { ratio.clamp(1.0, most) as u32 };
                axis = if length_across >= length_down { across } else { down };
            }
            let level = (long / f64::from(samples)).log2();
            let level = if level.is_nan() { 0.0 } else { level.clamp(-128.0, 128.0) };
            level as f32 + bias + sampler.bias
        }
    };
    let raw = if raw.is_nan() { 0.0 } else { raw };
    // The sampler's limits come first: an image may be limited to levels after them.
    let lambda = sampler.limited(raw, 0.0);
    let level = lambda.max(image.descriptor.least_lod);
    Footprint { lambda: fixed(lambda), level: fixed(level), raw: fixed(raw), samples, axis }
}
