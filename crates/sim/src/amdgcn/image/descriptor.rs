//! Image descriptors: eight dwords, as each generation lays them out.
//!
//! Facts: the register descriptions of Mesa and ROCr. Never: addresses of texels ([`super::layout`]).

use super::super::texel::selected;
use crate::texture::sampler::{CompareFunc, MipFilter, Sampler, TexelFilter, WrapMode};
use unwedge_isa::amdgcn::texel::TexelFormat;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// What kind of image it is: the codes of `SQ_RSRC_IMG_TYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImageType {
    D1,
    D2,
    D3,
    Cube,
    D1Array,
    D2Array,
    Msaa,
    MsaaArray,
}

impl ImageType {
    fn of_code(code: u32) -> Option<ImageType> {
        use ImageType::*;
        let at = (code as usize).checked_sub(8)?;
        [D1, D2, D3, Cube, D1Array, D2Array, Msaa, MsaaArray].get(at).copied()
    }

    pub(super) fn is_array(self) -> bool {
        matches!(self, ImageType::Cube | ImageType::D1Array | ImageType::D2Array | ImageType::MsaaArray)
    }

    pub(super) fn is_multisampled(self) -> bool {
        matches!(self, ImageType::Msaa | ImageType::MsaaArray)
    }

    /// How many coordinates are filtered.
    pub(super) fn axes(self) -> usize {
        match self {
            ImageType::D1 | ImageType::D1Array => 1,
            ImageType::D3 => 3,
            _ => 2,
        }
    }
}

/// How texels lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tiling {
    Linear,
    /// Tiles of 8 by 8, of gfx6 to gfx8; for displays or not.
    Thin {
        display: bool,
    },
    /// Blocks of two to the power of so many bytes, in the standard order.
    Standard(u32),
    Other,
}

/// A descriptor, taken apart.
#[derive(Debug, Clone, Copy)]
pub(super) struct Image {
    pub(super) generation: Gfx,
    pub(super) kind: ImageType,
    /// Bytes.
    pub(super) base: u64,
    /// `None`: a format that is not emulated.
    pub(super) format: Option<TexelFormat>,
    pub(super) select: [u8; 4],
    /// Texels of the first level.
    pub(super) size: [u32; 3],
    /// Layers that can be accessed: the first, and how many.
    pub(super) first_layer: u32,
    pub(super) layers: u32,
    /// Levels that can be accessed.
    pub(super) base_level: u32,
    pub(super) last_level: u32,
    /// Levels there are, less one; up to gfx8 nothing says it.
    pub(super) most_level: u32,
    /// Samples of a texel.
    pub(super) samples: u32,
    /// The least level a sample may use, relative to the first of all.
    pub(super) min_lod: f32,
    pub(super) tiling: Tiling,
    /// Texels from row to row, where the descriptor says them.
    pub(super) pitch: Option<u32>,
}

/// What a descriptor is.
pub(super) enum DescriptorKind {
    /// All zeros: loads give zero, stores are dropped.
    Null,
    /// Not an image.
    Other,
    Image(Box<Image>),
}

/// Tile modes of gfx6 to gfx8, by the index that kernels give them.
fn tile_index(index: u32) -> Tiling {
    match index {
        8 => Tiling::Linear,
        9 => Tiling::Thin { display: true },
        13 => Tiling::Thin { display: false },
        _ => Tiling::Other,
    }
}

fn swizzle_mode(mode: u32, generation: Gfx) -> Tiling {
    match mode {
        0 => Tiling::Linear,
        1 if generation <= Gfx::Gfx10_3 => Tiling::Standard(8),
        5 if generation <= Gfx::Gfx10_3 => Tiling::Standard(12),
        9 if generation <= Gfx::Gfx10_3 => Tiling::Standard(16),
        _ => Tiling::Other,
    }
}

impl Image {
    /// Reads eight dwords.
    pub(super) fn read(w: [u32; 8], gpu: &Gpu) -> DescriptorKind {
        let field = |word: usize, lsb: u32, width: u32| w[word] >> lsb & (u32::MAX >> (32 - width));
        if w == [0; 8] {
            return DescriptorKind::Null;
        }
        let Some(kind) = ImageType::of_code(field(3, 28, 4)) else { return DescriptorKind::Other };
        let generation = gpu.generation();
        let ten = generation >= Gfx::Gfx10;
        let twelve = generation >= Gfx::Gfx12;
        let eleven = generation >= Gfx::Gfx11 && !twelve;
        let (width, height) = match generation {
            _ if twelve => (field(1, 30, 2) | field(2, 0, 14) << 2, field(2, 14, 16)),
            _ if ten => (field(1, 30, 2) | field(2, 0, 12) << 2, field(2, 14, 14)),
            _ => (field(2, 0, 14), field(2, 14, 14)),
        };
        let code = match generation {
            _ if twelve => field(1, 17, 8),
            _ if eleven => field(1, 20, 8),
            _ if ten => field(1, 20, 9),
            _ => field(1, 20, 6) | field(1, 26, 4) << 6,
        };
        let depth = if twelve { field(4, 0, 14) } else { field(4, 0, 13) };
        let (base_level, last_level) =
            if twelve { (field(1, 25, 5), field(3, 15, 5)) } else { (field(3, 12, 4), field(3, 16, 4)) };
        let most_level = match generation {
            _ if twelve => field(1, 12, 5),
            _ if eleven => field(1, 16, 4),
            _ if ten => field(5, 4, 4),
            gfx if gfx.is_gfx9() => field(5, 28, 4),
            _ => last_level,
        };
        let lod = match generation {
            _ if twelve => field(5, 26, 6) | field(6, 0, 7) << 6,
            _ if eleven => field(5, 27, 5) | field(6, 0, 7) << 5,
            _ => field(1, 8, 12),
        };
        let (first, last) = match generation {
            _ if twelve => (field(4, 16, 14), depth),
            _ if ten => (field(4, 16, 13), depth),
            gfx if gfx.is_gfx9() => (field(5, 0, 13), depth),
            _ => (field(5, 0, 13), field(5, 13, 13)),
        };
        let flat = matches!(kind, ImageType::D1 | ImageType::D2 | ImageType::Msaa);
        let pitch = match generation {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => Some(field(4, 13, 14) + 1),
            gfx if gfx.is_gfx9() => Some(field(4, 13, 16) + 1),
            Gfx::Gfx10 => None,
            // Where depth means nothing it is the pitch, if it can be.
            _ if flat => Some(if twelve { field(4, 0, 16) } else { field(4, 0, 14) } + 1),
            _ => None,
        };
        let mode = field(3, 20, 5);
        // Where there are samples, the last level is the logarithm of their number.
        let (base_level, last_level, most_level, samples) = match kind.is_multisampled() {
            true => (0, 0, 0, 1 << last_level),
            false => (base_level, last_level, most_level, 1),
        };
        let one_dimensional = matches!(kind, ImageType::D1 | ImageType::D1Array);
        DescriptorKind::Image(Box::new(Image {
            generation,
            kind,
            base: (u64::from(w[0]) | u64::from(field(1, 0, 8)) << 32) << 8,
            format: TexelFormat::image(code, gpu),
            select: selected(w[3]),
            size: [
                width + 1,
                if one_dimensional { 1 } else { height + 1 },
                if kind == ImageType::D3 { depth + 1 } else { 1 },
            ],
            first_layer: if kind.is_array() { first } else { 0 },
            layers: if kind.is_array() { last.saturating_sub(first) + 1 } else { 1 },
            base_level,
            last_level,
            most_level,
            samples,
            min_lod: lod as f32 / 256.0,
            tiling: if generation <= Gfx::Gfx8 { tile_index(mode) } else { swizzle_mode(mode, generation) },
            pitch: pitch.filter(|pitch| !ten || *pitch > width),
        }))
    }

    /// The image of a descriptor of which only the first half is there: one slice, with all levels that it names.
    pub(super) fn of_half(mut self) -> Result<Image, &'static str> {
        if self.kind.is_array() || self.kind == ImageType::D3 {
            return Err("a descriptor of four dwords of an image with several slices");
        }
        if self.generation < Gfx::Gfx10 {
            return Err("the pitch of an image whose descriptor has four dwords");
        }
        self.most_level = self.last_level;
        Ok(self)
    }

    /// The texels of a level along an axis.
    pub(super) fn extent(&self, axis: usize, level: u32) -> u32 {
        self.size.get(axis).map_or(1, |size| (size >> level.min(31)).max(1))
    }
}

/// A sampler descriptor of four dwords.
pub(super) fn sampler(w: [u32; 4], gpu: &Gpu) -> Sampler {
    let field = |word: usize, lsb: u32, width: u32| w[word] >> lsb & (u32::MAX >> (32 - width));
    let byte = |word: usize, lsb: u32, width: u32| field(word, lsb, width) as u8;
    let filter =
        |lsb: u32| TexelFilter { linear: field(2, lsb, 1) != 0, anisotropic: field(2, lsb + 1, 1) != 0 };
    let lod_bits = if gpu.generation() >= Gfx::Gfx12 { 13 } else { 12 };
    let bias = (field(2, 0, 14) << 18) as i32 >> 18;
    Sampler {
        wrap: [0, 3, 6].map(|lsb| wrap(field(0, lsb, 3))),
        anisotropy: byte(0, 9, 3),
        compare: compare(field(0, 12, 3)),
        unnormalized: field(0, 15, 1) != 0,
        truncate: field(0, 27, 1) != 0,
        no_cube_wrap: field(0, 28, 1) != 0,
        combine: byte(0, 29, 2),
        min_lod: field(1, 0, lod_bits) as f32 / 256.0,
        max_lod: field(1, lod_bits, lod_bits) as f32 / 256.0,
        bias: bias as f32 / 256.0,
        magnify: filter(20),
        minify: filter(22),
        depth: match field(2, 24, 2) {
            1 => Some(false),
            2 => Some(true),
            _ => None,
        },
        mip: match field(2, 26, 2) {
            0 => MipFilter::None,
            2 => MipFilter::Linear,
            _ => MipFilter::Nearest,
        },
        border: byte(3, 30, 2),
    }
}

fn wrap(code: u32) -> WrapMode {
    match code {
        0 => WrapMode::Repeat,
        1 => WrapMode::Mirror,
        2 => WrapMode::ClampToEdge,
        3 => WrapMode::MirrorOnceToEdge,
        4 => WrapMode::ClampHalfBorder,
        5 => WrapMode::MirrorOnceHalfBorder,
        6 => WrapMode::ClampToBorder,
        _ => WrapMode::MirrorOnceToBorder,
    }
}

fn compare(code: u32) -> CompareFunc {
    match code {
        0 => CompareFunc::Never,
        1 => CompareFunc::Less,
        2 => CompareFunc::Equal,
        3 => CompareFunc::LessEqual,
        4 => CompareFunc::Greater,
        5 => CompareFunc::NotEqual,
        6 => CompareFunc::GreaterEqual,
        _ => CompareFunc::Always,
    }
}
