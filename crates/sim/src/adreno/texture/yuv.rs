//! Images with luma and chroma: two or three planes with a chroma texel for each four of luma, and blocks of two texels with one chroma.
//!
//! Texels are Y, Cb, Cr; a driver's swizzle makes RGB of them, its shader converts. Facts: planes of a descriptor as Mesa's `fd6_view.c` writes
//! them; chroma between its texels as Vulkan reconstructs it, texel by texel before the filter. Never: the matrices of colour models.

use super::TextureFault;
use super::descriptor::TextureDescriptor;
use super::fields::TABLES;
use super::image::{Image, ImageUse, Texel};
use crate::adreno::texture::TexelMemory;
use unwedge_hw::adreno::format::Format;
use unwedge_hw::adreno::layout::BankConfig;

/// The chroma of an image with planes.
#[derive(Debug, Clone)]
pub(super) struct Chroma {
    /// Cb and Cr, together or apart.
    planes: Vec<Image>,
    /// Chroma is between two texels of luma, on each axis; else at the first.
    midpoint: [bool; 2],
}

/// Two texels of an axis with the weight of each.
type Pair = [(u32, f64); 2];

impl Chroma {
    /// The number of planes of chroma that a format has; `None` for other formats, or what is known of it is not enough.
    pub(super) fn planes(format: u32) -> Result<Option<usize>, TextureFault> {
        match () {
            () if format == TABLES.two_planes => Ok(Some(1)),
            () if format == TABLES.three_planes => Ok(Some(2)),
            () if TABLES.is_video(format) => Err(TextureFault::NotEmulated("a YUV format of video decoders")),
            () => Ok(None),
        }
    }

    /// The luma of a descriptor as an image, with its chroma.
    pub(super) fn image(
        words: &[u32; 16],
        descriptor: &TextureDescriptor,
        planes: usize,
        bank: Option<BankConfig>,
    ) -> Result<Option<Image>, TextureFault> {
        if descriptor.flag {
            return Err(TextureFault::NotEmulated("a YUV image with UBWC"));
        }
        if descriptor.depth > 1 {
            return Err(TextureFault::NotEmulated("layers of a YUV image with several planes"));
        }
        let fields = &TABLES.texture;
        let plane = |name: &str, width: u32, height: u32, pitch: u64, base: u64| {
            let number = Format::named(name).and_then(Format::texture_format);
            let number = number.ok_or(TextureFault::NotEmulated("a plane of this format"))?;
            let mut words = *words;
            for (field, value) in [
                (fields.format, number.0.into()),
                (fields.swap, 0),
                (fields.srgb, 0),
                (fields.levels, 0),
                (fields.width, width.into()),
                (fields.height, height.into()),
                (fields.pitch, pitch),
                (fields.base_low, base & 0xffff_ffff),
                (fields.base_high, base >> 32),
                (fields.least_lod, 0),
            ] {
                field.set(&mut words, value);
            }
            Image::new(&words, ImageUse::Texture, bank, [0; 2])
        };
        let TextureDescriptor { width, height, pitch, base, .. } = *descriptor;
        let Some(mut luma) = plane("R8_UNORM", width, height, pitch, base)? else { return Ok(None) };
        let name = if planes == 1 { "R8G8_UNORM" } else { "R8_UNORM" };
        let chroma = (0..planes).map(|number| {
            let at = u64::from(words[7 + 2 * number]) | u64::from(words[8 + 2 * number]) << 32;
            let pitch = fields.plane_pitch.of(words);
            plane(name, width.div_ceil(2), height.div_ceil(2), pitch, at)
        });
        let chroma: Vec<Image> = chroma.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
        if chroma.len() != planes {
            return Err(TextureFault::NotEmulated("a YUV image without its chroma"));
        }
        let midpoint = [fields.chroma_x, fields.chroma_y].map(|field| field.is_set(words));
        luma.chroma = Some(Box::new(Chroma { planes: chroma, midpoint }));
        Ok(Some(luma))
    }

    /// Cb and Cr at a texel of luma.
    pub(super) fn at(
        &self,
        memory: &mut dyn TexelMemory,
        place: [u32; 2],
        linear: bool,
    ) -> Result<[f32; 2], TextureFault> {
        let size = self.planes.first().and_then(|plane| plane.level(0)).map(|level| level.size);
        let [width, height] = size.map_or([1; 2], |size| [size.width, size.height]);
        let pair = |axis: usize, size: u32| chroma_pair(place[axis], size, self.midpoint[axis], linear);
        let (columns, rows) = (pair(0, width), pair(1, height));
        let mut sum = [0.0; 2];
        for (y, of_row) in rows {
            for (x, of_column) in columns {
                let weight = of_row * of_column;
                if weight == 0.0 {
                    continue;
                }
                let mut channels = [0.0; 2];
                for (number, plane) in self.planes.iter().enumerate() {
                    let texel = plane.texel(memory, 0, (x, y, 0), 0)?.unwrap_or_default();
                    let [first, second] = [texel[0], texel[1]].map(f32::from_bits);
                    channels[number] = first;
                    if self.planes.len() == 1 {
                        channels[1] = second;
                    }
                }
                sum.iter_mut().zip(channels).for_each(|(sum, value)| *sum += f64::from(value) * weight);
            }
        }
        Ok(sum.map(|value| value as f32))
    }
}

/// The chroma texels that a texel of luma lies between.
fn chroma_pair(luma: u32, size: u32, midpoint: bool, linear: bool) -> Pair {
    if !linear {
        return [((luma / 2).min(size.saturating_sub(1)), 1.0), (0, 0.0)];
    }
    // In quarters of a chroma texel.
    let quarters = 2 * i64::from(luma) - i64::from(midpoint);
    let weight = quarters.rem_euclid(4) as f64 / 4.0;
    let first = quarters.div_euclid(4);
    let inside = |at: i64| at.clamp(0, i64::from(size.max(1)) - 1) as u32;
    [(inside(first), 1.0 - weight), (inside(first + 1), weight)]
}

/// A texel of a block with one chroma for two of luma, as the texture unit orders it.
pub(super) fn of_pair([r, g, b, a]: Texel) -> Texel {
    [g, b, r, a]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Vulkan's formulas: at the first texel i / 2, between two i / 2 - 1/4.
    #[test]
    fn chroma_lies_where_vulkan_has_it() {
        assert_eq!(chroma_pair(5, 8, false, false)[0], (2, 1.0));
        assert_eq!(chroma_pair(4, 8, false, true), [(2, 1.0), (3, 0.0)]);
        assert_eq!(chroma_pair(5, 8, false, true), [(2, 0.5), (3, 0.5)]);
        assert_eq!(chroma_pair(4, 8, true, true), [(1, 0.25), (2, 0.75)]);
        assert_eq!(chroma_pair(5, 8, true, true), [(2, 0.75), (3, 0.25)]);
        assert_eq!(chroma_pair(0, 8, true, true), [(0, 0.25), (0, 0.75)]);
        assert_eq!(chroma_pair(15, 8, true, true), [(7, 0.75), (7, 0.25)]);
    }
}
