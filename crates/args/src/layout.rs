//! The options of `unwedge layout`.

use clap::Args;
use unwedge::hw::adreno::format::Format;
use unwedge::hw::adreno::layout::TileMode;
use unwedge_view::layout::{self, ImageSize, LayoutGpu, LevelCount, TexelRequest};

/// What the help ends with.
pub(super) const LAYOUT_EXAMPLES: &str = "Examples:
  unwedge layout --gpu a630 --format R8G8B8A8_UNORM --size 1024x1x1 --tile 3 --ubwc
  unwedge layout --gpu a740 --format D24_UNORM_S8_UINT --size 1920x1080 --samples 4 --ubwc
  unwedge layout --gpu a660 --format BC7_UNORM_BLOCK --size 512x512 --levels all --layers 6 --texel 100,7,2@1
  unwedge layout --gpu FD618 --format r16_float --size 64x64x16 --at 0x1234
  unwedge layout --formats | grep 10_10

Offsets count from the start of the image, whose flag buffer comes first. docs/layout.md says where the rules are from.";

/// `layout`
#[derive(Args, Debug)]
pub struct Layout {
    /// An Adreno GPU of a5xx, a6xx or a7xx: a630, FD740, 6.3.0.2, 0x43051401
    #[arg(long, value_name = "GPU", value_parser = layout::gpu, required_unless_present = "formats")]
    pub gpu: Option<LayoutGpu>,
    /// The format, by Gallium's or Vulkan's name
    #[arg(long, value_name = "FORMAT", value_parser = layout::format, required_unless_present = "formats")]
    pub format: Option<Format>,
    /// Size in texels: 1024, 1024x768, 64x64x16
    #[arg(long, value_name = "WxHxD", required_unless_present = "formats")]
    pub size: Option<ImageSize>,
    /// Tile mode: 0 or linear, 2 (TILE6_2, in GMEM), 3 (TILE6_3)
    #[arg(long, value_name = "MODE", default_value = "3", value_parser = layout::tile_mode)]
    pub tile: TileMode,
    /// With UBWC, where the image allows it
    #[arg(long)]
    pub ubwc: bool,
    /// Levels, or `all` down to one texel
    #[arg(long, value_name = "N", default_value = "1")]
    pub levels: LevelCount,
    /// Layers of an array; six for each cube
    #[arg(long, value_name = "N", default_value = "1")]
    pub layers: u32,
    /// Samples of a texel: 1, 2, 4 or 8
    #[arg(long, value_name = "N", default_value = "1")]
    pub samples: u32,
    /// Three-dimensional, even with one slice
    #[arg(long = "3d")]
    pub is_3d: bool,
    /// Views of the image may have other formats
    #[arg(long)]
    pub mutable: bool,
    /// Bytes from row to row, of an image that another program placed
    #[arg(long, value_name = "BYTES")]
    pub pitch: Option<u32>,
    /// Bytes before the image, of one that another program placed
    #[arg(long, value_name = "BYTES", default_value = "0", value_parser = layout::byte_number)]
    pub offset: u64,
    /// Where this texel is; Z is a slice or a layer. May be repeated
    #[arg(long, value_name = "X,Y[,Z[,SAMPLE]][@LEVEL]")]
    pub texel: Vec<TexelRequest>,
    /// What the byte at this offset belongs to. May be repeated
    #[arg(long, value_name = "OFFSET", value_parser = layout::byte_number)]
    pub at: Vec<u64>,
    /// List the formats with their numbers instead
    #[arg(long)]
    pub formats: bool,
    /// Print JSON instead of text
    #[arg(long)]
    pub json: bool,
}
