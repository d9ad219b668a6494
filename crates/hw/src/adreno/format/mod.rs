//! Formats of texels: their names, the numbers that descriptors and registers have for them, and what their bits mean.
//!
//! [`Format`] is a row of the table; [`TexelCodec`] is one resolved for reading and writing texels. Never: where a texel
//! lies in an image, which is [`crate::adreno::layout`]'s, nor filtering and blending.
//!
//! Facts: `data/adreno/formats.txt`. Conversions are those that Vulkan and the Khronos data format specification define; what
//! they leave open is said at each function.

mod block;
mod codec;
mod convert;

pub use block::{BlockCodec, MAX_BLOCK_TEXELS};
pub use codec::{Channel, ChannelKind, Numeric, PackError, TexelCodec};
pub use convert::{f16_to_f32, f32_to_f16, linear_to_srgb8, srgb8_to_linear};

use crate::adreno::layout::ImageGpu;
use std::fmt;

include!(concat!(env!("OUT_DIR"), "/adreno_formats.rs"));

/// A format of texels.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Format(u16);

/// A line of the table.
struct FormatRow {
    name: &'static str,
    vulkan: Option<&'static str>,
    texel: TexelShape,
    swizzle: [Source; 4],
    space: ColorSpace,
    vertex: Option<HardwareFormat>,
    texture: Option<HardwareFormat>,
    render: Option<HardwareFormat>,
    swap: ColorSwap,
    depth: Option<u32>,
    blit: Option<u32>,
    ubwc: UbwcRule,
    cast: Option<(&'static str, CastClass)>,
}

/// How the bytes of a texel or block are divided.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TexelShape {
    /// Channels, from the lowest bit up.
    Channels(&'static [Channel]),
    /// Three mantissas of 9 bits and an exponent of 5 (R9G9B9E5).
    SharedExponent,
    /// A block of several texels.
    Block(BlockCodec),
}

/// A number of `a6xx_format`, as in fields of descriptors and registers of a6xx and a7xx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct HardwareFormat(pub u32);

/// The order of channels in memory, as `a3xx_color_swap` names it: from the last channel to the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ColorSwap {
    /// The first channel in the lowest bits: RGBA.
    #[default]
    Wzyx,
    /// BGRA.
    Wxyz,
    /// ARGB.
    Zyxw,
    /// ABGR.
    Xyzw,
}

impl ColorSwap {
    /// That of a field of two bits; higher bits are ignored.
    pub fn from_code(code: u32) -> ColorSwap {
        [ColorSwap::Wzyx, ColorSwap::Wxyz, ColorSwap::Zyxw, ColorSwap::Xyzw][code as usize & 3]
    }

    /// Its number in descriptors and registers.
    pub fn code(self) -> u32 {
        self as u32
    }

    /// Its name in the register tables.
    pub fn name(self) -> &'static str {
        ["WZYX", "WXYZ", "ZYXW", "XYZW"][self as usize]
    }

    /// Which channel is first in memory, second and so on.
    pub(crate) fn memory_order(self) -> [usize; 4] {
        match self {
            ColorSwap::Wzyx => [0, 1, 2, 3],
            ColorSwap::Wxyz => [2, 1, 0, 3],
            ColorSwap::Zyxw => [3, 0, 1, 2],
            ColorSwap::Xyzw => [3, 2, 1, 0],
        }
    }
}

/// Where a component of a texel comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The channel with this number, from the lowest bit.
    Channel(u8),
    /// 0.
    Zero,
    /// 1.
    One,
    /// The component does not exist; it reads as 0.
    Absent,
}

/// What colours of a format mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ColorSpace {
    /// Linear, or plain data.
    Linear,
    /// Red, green and blue are encoded by the sRGB curve.
    Srgb,
    /// Depth, stencil or both.
    DepthStencil,
    /// A plane of a YUV image.
    Yuv,
}

/// For which images of a format drivers enable UBWC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UbwcRule {
    Never,
    Always,
    /// Turnip does, freedreno does not.
    TurnipOnly,
    /// On GPUs with UBWC of one byte a texel.
    EightBit,
    /// On GPUs where formats of signed normalized numbers compress as unsigned ones do.
    Compatible,
    /// As a plane of a YUV image.
    Planar,
    /// Depth of 24 bits: with several samples only on GPUs with Z24_UINT_S8_UINT.
    DepthMultisampled,
    /// With stencil: sampled, or with several samples, only on GPUs with Z24_UINT_S8_UINT.
    Stencil,
}

/// Formats between which a compressed image may be viewed without being decompressed first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CastClass {
    Unorm,
    Snorm,
    Int,
}

/// Whether drivers enable UBWC for images of a format on a GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UbwcSupport {
    /// They do.
    Yes,
    /// Turnip does, freedreno does not.
    TurnipOnly,
    /// Only as a plane of a YUV image.
    Planar,
    /// Only if stencil is not sampled.
    UnsampledStencil,
    /// They do not.
    No,
}

/// Formats with the same class may be viewed as each other while compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct UbwcClass(ClassKey);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum ClassKey {
    Size(u32),
    Unorm(&'static str),
    Int(&'static str),
}

impl fmt::Display for UbwcClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ClassKey::Size(bytes) => write!(f, "{bytes} bytes"),
            ClassKey::Unorm(base) => write!(f, "{base}_UNORM"),
            ClassKey::Int(base) => write!(f, "{base}_INT"),
        }
    }
}

impl fmt::Debug for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Format {
    /// Every format, in the order of the table.
    pub fn all() -> impl ExactSizeIterator<Item = Format> {
        (0..ROWS.len() as u16).map(Format)
    }

    /// The format that a person means: `R8G8B8A8_UNORM`, `VK_FORMAT_D24_UNORM_S8_UINT`, `pipe_format_dxt1_rgb`. Gallium's names come
    /// before Vulkan's.
    pub fn named(text: &str) -> Option<Format> {
        let upper = text.trim().to_ascii_uppercase();
        let plain = ["PIPE_FORMAT_", "VK_FORMAT_"].iter().find_map(|prefix| upper.strip_prefix(prefix));
        let plain = plain.unwrap_or(&upper);
        let is_plain = |name: &str| name.eq_ignore_ascii_case(plain);
        Format::all()
            .find(|format| is_plain(format.name()))
            .or_else(|| Format::all().find(|format| format.vulkan_name().is_some_and(is_plain)))
    }

    /// The plain reading of a texture descriptor's format. Other formats with the same number differ in what their channels are
    /// called: luminance, depth.
    pub fn of_texture(number: HardwareFormat, swap: ColorSwap, srgb: bool) -> Option<Format> {
        Format::all().find(|f| f.texture_format() == Some(number) && f.swap() == swap && f.is_srgb() == srgb)
    }

    /// The plain reading of a render target's format.
    pub fn of_render_target(number: HardwareFormat, swap: ColorSwap, srgb: bool) -> Option<Format> {
        Format::all().find(|f| f.render_format() == Some(number) && f.swap() == swap && f.is_srgb() == srgb)
    }

    /// The plain reading of a vertex attribute's format. `scaled` has integers read as floats, as the fetch instruction says.
    pub fn of_vertex(number: HardwareFormat, swap: ColorSwap, scaled: bool) -> Option<Format> {
        Format::all()
            .find(|f| f.vertex_format() == Some(number) && f.swap() == swap && f.is_scaled() == scaled)
    }

    fn row(self) -> &'static FormatRow {
        &ROWS[usize::from(self.0)]
    }

    /// Its name in Gallium: `R8G8B8A8_UNORM`.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its name in Vulkan without `VK_FORMAT_`, where Vulkan has the format.
    pub fn vulkan_name(self) -> Option<&'static str> {
        self.row().vulkan
    }

    /// Bytes of a texel, or of a block of texels.
    pub fn block_bytes(self) -> u32 {
        match self.row().texel {
            TexelShape::Channels(list) => list.iter().map(|channel| u32::from(channel.bits)).sum::<u32>() / 8,
            TexelShape::SharedExponent => 4,
            TexelShape::Block(codec) => codec.bytes(),
        }
    }

    /// Width and height of a block in texels; 1 and 1 where a texel stands for itself.
    pub fn block_size(self) -> (u32, u32) {
        match self.row().texel {
            TexelShape::Block(codec) => codec.size(),
            TexelShape::Channels(_) | TexelShape::SharedExponent => (1, 1),
        }
    }

    /// Its texels are in blocks.
    pub fn is_block(self) -> bool {
        matches!(self.row().texel, TexelShape::Block(_))
    }

    /// Its channels from the lowest bit up, those without a use among them. Blocks and shared exponents have none.
    pub fn channels(self) -> &'static [Channel] {
        match self.row().texel {
            TexelShape::Channels(list) => list,
            TexelShape::SharedExponent | TexelShape::Block(_) => &[],
        }
    }

    /// How its blocks are encoded, where its texels are in blocks.
    pub fn block_codec(self) -> Option<BlockCodec> {
        match self.row().texel {
            TexelShape::Block(codec) => Some(codec),
            TexelShape::Channels(_) | TexelShape::SharedExponent => None,
        }
    }

    /// Channels that hold something.
    pub fn channel_count(self) -> usize {
        match self.row().texel {
            TexelShape::Channels(list) => list.iter().filter(|c| c.kind != ChannelKind::Unused).count(),
            TexelShape::SharedExponent => 3,
            TexelShape::Block(_) => {
                self.row().swizzle.iter().filter(|source| matches!(source, Source::Channel(_))).count()
            }
        }
    }

    /// Red, green and blue are encoded by the sRGB curve.
    pub fn is_srgb(self) -> bool {
        self.row().space == ColorSpace::Srgb
    }

    /// Depth, stencil or both.
    pub fn is_depth_stencil(self) -> bool {
        self.row().space == ColorSpace::DepthStencil
    }

    /// What its colours mean.
    pub fn color_space(self) -> ColorSpace {
        self.row().space
    }

    fn is_scaled(self) -> bool {
        let scaled = |c: &Channel| matches!(c.kind, ChannelKind::Uscaled | ChannelKind::Sscaled);
        matches!(self.row().texel, TexelShape::Channels(list) if list.iter().any(scaled))
    }

    /// Its number for vertex attributes, where it can be one.
    pub fn vertex_format(self) -> Option<HardwareFormat> {
        self.row().vertex
    }

    /// Its number in texture and image descriptors, where it can be sampled.
    pub fn texture_format(self) -> Option<HardwareFormat> {
        self.row().texture
    }

    /// Its number for render targets, where it can be one.
    pub fn render_format(self) -> Option<HardwareFormat> {
        self.row().render
    }

    /// Its number in `a6xx_depth_format`.
    pub fn depth_format(self) -> Option<u32> {
        self.row().depth
    }

    /// The format in between of the 2D engine, a number of `a6xx_2d_ifmt`.
    pub fn blit_format(self) -> Option<u32> {
        self.row().blit
    }

    /// The order of its channels in linear images, and in those with a mutable format on a7xx.
    pub fn swap(self) -> ColorSwap {
        self.row().swap
    }

    /// Which channels are r, g, b and a.
    pub fn swizzle(self) -> [Source; 4] {
        self.row().swizzle
    }

    /// What reads and writes its texels as linear images have them.
    pub fn codec(self) -> TexelCodec {
        TexelCodec::of(self.row().texel, self.row().swizzle, self.is_srgb())
    }

    /// What reads and writes its texels as tiled images have them: the first channel is first, whichever order the format's name says.
    pub fn tiled_codec(self) -> TexelCodec {
        if self.swap() == ColorSwap::Wzyx {
            return self.codec();
        }
        let plain =
            self.texture_format().and_then(|n| Format::of_texture(n, ColorSwap::Wzyx, self.is_srgb()));
        // Alpha of X formats is 1 in every order.
        plain.map_or_else(
            || self.codec(),
            |plain| {
                let mut swizzle = plain.row().swizzle;
                if self.swizzle()[3] == Source::One {
                    swizzle[3] = Source::One;
                }
                TexelCodec::of(plain.row().texel, swizzle, self.is_srgb())
            },
        )
    }

    /// Whether drivers enable UBWC for it.
    pub fn ubwc_support(self, gpu: &ImageGpu, samples: u32) -> UbwcSupport {
        let when = |holds: bool| if holds { UbwcSupport::Yes } else { UbwcSupport::No };
        match self.row().ubwc {
            UbwcRule::Never => UbwcSupport::No,
            UbwcRule::Always => UbwcSupport::Yes,
            UbwcRule::TurnipOnly => UbwcSupport::TurnipOnly,
            UbwcRule::EightBit => when(gpu.eight_bit_ubwc),
            UbwcRule::Compatible => when(gpu.ubwc_classes != UbwcClasses::Separate),
            UbwcRule::Planar => UbwcSupport::Planar,
            UbwcRule::DepthMultisampled => when(samples == 1 || gpu.z24_uint_s8_uint),
            UbwcRule::Stencil if gpu.z24_uint_s8_uint => UbwcSupport::Yes,
            UbwcRule::Stencil if samples > 1 => UbwcSupport::No,
            UbwcRule::Stencil => UbwcSupport::UnsampledStencil,
        }
    }

    /// The formats it may be viewed as while compressed; `None` if no other.
    pub fn ubwc_class(self, gpu: &ImageGpu) -> Option<UbwcClass> {
        if gpu.ubwc_classes == UbwcClasses::BySize {
            let compresses = self.row().ubwc != UbwcRule::Never;
            return compresses.then(|| UbwcClass(ClassKey::Size(self.block_bytes())));
        }
        let shared = gpu.ubwc_classes == UbwcClasses::UnormSnormInt;
        let (base, class) = self.row().cast?;
        // Channels in another order are a class of their own on every GPU.
        let shared = shared && self.swap() == ColorSwap::Wzyx;
        Some(UbwcClass(match class {
            CastClass::Int => ClassKey::Int(base),
            _ if shared => ClassKey::Int(base),
            CastClass::Unorm => ClassKey::Unorm(base),
            CastClass::Snorm => return None,
        }))
    }
}

/// Which formats compress alike on a GPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UbwcClasses {
    /// Normalized and integer formats of a layout differ, signed normalized ones are compatible with none.
    #[default]
    Separate,
    /// All formats of a channel layout but floats.
    UnormSnormInt,
    /// All formats of a size.
    BySize,
}
