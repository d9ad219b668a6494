//! Descriptors of textures, storage images and samplers, decoded.

use super::fields::{FieldPlace, TABLES};
use crate::texture::sampler::{CompareFunc, MipFilter, Sampler, TexelFilter, WrapMode};
use unwedge_hw::adreno::format::ColorSwap;

/// What a descriptor describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextureKind {
    D1,
    D2,
    Cube,
    D3,
    Buffer,
}

/// A component of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Swizzle {
    Component(u8),
    Zero,
    One,
}

/// Where a descriptor has its flags of UBWC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FlagFields {
    pub(crate) base: u64,
    /// Bytes from a row of flags of the first level to the next.
    pub(crate) pitch: u64,
    /// Bytes from a layer to the next.
    pub(crate) layer_stride: u64,
    /// Rows of flags of the first level, as a power of two.
    pub(crate) log_height: u32,
}

/// A texture or storage image, 16 dwords.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TextureDescriptor {
    /// `None` for a number that no type has.
    pub(crate) kind: Option<TextureKind>,
    /// A number of `a6xx_tile_mode`.
    pub(crate) tile_mode: u32,
    pub(crate) srgb: bool,
    pub(crate) swizzle: [Swizzle; 4],
    /// 1 to 16.
    pub(crate) levels: u32,
    /// 1 to 8.
    pub(crate) samples: u32,
    /// A number of `a6xx_format`.
    pub(crate) format: u32,
    pub(crate) swap: ColorSwap,
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) is_mutable: bool,
    /// Elements before the first one of a buffer.
    pub(crate) start_offset: u32,
    /// Bytes that pitches are multiples of.
    pub(crate) pitch_align: u64,
    pub(crate) pitch: u64,
    pub(crate) array_pitch: u64,
    pub(crate) least_layer: u64,
    pub(crate) tile_all: bool,
    /// It has flags of UBWC.
    pub(crate) flag: bool,
    pub(crate) base: u64,
    pub(crate) flags: FlagFields,
    /// Layers, cubes or slices.
    pub(crate) depth: u32,
    pub(crate) least_lod: f32,
}

impl TextureDescriptor {
    pub(crate) fn decode(words: &[u32; 16]) -> TextureDescriptor {
        let fields = &TABLES.texture;
        let swizzle = [fields.swizzle_x, fields.swizzle_y, fields.swizzle_z, fields.swizzle_w];
        TextureDescriptor {
            kind: match fields.kind.get(words) {
                0 => Some(TextureKind::D1),
                1 => Some(TextureKind::D2),
                2 => Some(TextureKind::Cube),
                3 => Some(TextureKind::D3),
                4 => Some(TextureKind::Buffer),
                _ => None,
            },
            tile_mode: fields.tile_mode.get(words),
            srgb: fields.srgb.is_set(words),
            swizzle: swizzle.map(|field| match field.get(words) {
                component @ 0..=3 => Swizzle::Component(component as u8),
                5 => Swizzle::One,
                _ => Swizzle::Zero,
            }),
            levels: fields.levels.get(words) + 1,
            samples: 1 << fields.samples.get(words).min(3),
            format: fields.format.get(words),
            swap: ColorSwap::from_code(fields.swap.get(words)),
            width: fields.width.get(words),
            height: fields.height.get(words),
            is_mutable: fields.is_mutable.is_set(words),
            start_offset: fields.start_offset.get(words),
            pitch_align: 64 << fields.pitch_align.get(words).min(15),
            pitch: fields.pitch.of(words),
            array_pitch: fields.array_pitch.of(words),
            least_layer: fields.least_layer.of(words),
            tile_all: fields.tile_all.is_set(words),
            flag: fields.flag.is_set(words),
            base: fields.base_low.of(words) | fields.base_high.of(words) << 32,
            flags: FlagFields {
                base: fields.flag_low.of(words) | fields.flag_high.of(words) << 32,
                pitch: fields.flag_pitch.of(words),
                // It is in dwords.
                layer_stride: 4 * fields.flag_array_pitch.of(words),
                log_height: fields.flag_log_height.get(words),
            },
            depth: fields.depth.get(words),
            least_lod: fields.least_lod.unsigned_fixed(words),
        }
    }

    /// Elements of a buffer: width and height are the low and the high part of the number.
    pub(crate) fn elements(&self) -> u32 {
        self.width | self.height << 15
    }
}

/// What texels come to that a filter takes, as [`Sampler::combine`] numbers it.
pub(crate) const AVERAGE: u8 = 0;
pub(crate) const LEAST: u8 = 1;

/// A sampler, 4 dwords.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SamplerDescriptor {
    pub(crate) sampler: Sampler,
    /// Filters of magnification and minification that are cubic.
    cubic: [bool; 2],
    /// Most samples of an anisotropic filter.
    pub(crate) anisotropy: u32,
    /// The entry of the table of border colours.
    pub(crate) border: u32,
    /// Chroma between its texels is filtered.
    pub(crate) chroma_linear: bool,
}

/// A number of `a6xx_tex_filter`: nearest, linear, anisotropic, cubic.
fn filter(code: u32) -> TexelFilter {
    TexelFilter { linear: code != 0, anisotropic: code == 2 }
}

impl SamplerDescriptor {
    pub(crate) fn decode(words: &[u32; 4]) -> SamplerDescriptor {
        let fields = &TABLES.sampler;
        let (magnify, minify) = (fields.magnify.get(words), fields.minify.get(words));
        let anisotropy = fields.anisotropy.get(words).min(4);
        let wrap = |field: FieldPlace| match field.get(words) {
            0 => WrapMode::Repeat,
            2 => WrapMode::Mirror,
            3 => WrapMode::ClampToBorder,
            4 => WrapMode::MirrorOnceToEdge,
            // Numbers past the last mode clamp, too.
            _ => WrapMode::ClampToEdge,
        };
        use CompareFunc::*;
        let compare = [Never, Less, Equal, LessEqual, Greater, NotEqual, GreaterEqual, Always];
        let least_lod = fields.least_lod.unsigned_fixed(words);
        SamplerDescriptor {
            sampler: Sampler {
                wrap: [wrap(fields.wrap_s), wrap(fields.wrap_t), wrap(fields.wrap_r)],
                compare: compare[fields.compare.get(words) as usize & 7],
                unnormalized: fields.unnormalized.is_set(words),
                truncate: true,
                no_cube_wrap: fields.seamless_off.is_set(words),
                combine: fields.reduction.get(words).min(2) as u8,
                min_lod: least_lod,
                max_lod: fields.most_lod.unsigned_fixed(words).max(least_lod),
                bias: fields.bias.signed_fixed(words),
                magnify: filter(magnify),
                minify: filter(minify),
                depth: None,
                mip: if fields.mip_linear.is_set(words) { MipFilter::Linear } else { MipFilter::Nearest },
                // Borders are of the table.
                border: 3,
                anisotropy: anisotropy as u8,
            },
            cubic: [magnify, minify].map(|code| code == 3),
            anisotropy: 1 << anisotropy,
            border: fields.border.get(words),
            chroma_linear: fields.chroma_linear.is_set(words),
        }
    }

    /// Whether the filter at a level of detail is cubic.
    pub(crate) fn is_cubic(&self, lod: f32) -> bool {
        self.cubic[usize::from(lod > 0.0)]
    }
}
