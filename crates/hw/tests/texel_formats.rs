//! Formats of texels: the table, and texels unpacked and packed again.

use std::collections::HashMap;
use unwedge_hw::Db;
use unwedge_hw::adreno::format::{
    ColorSwap, Format, HardwareFormat, Numeric, PackError, Source, TexelCodec, UbwcSupport,
};
use unwedge_hw::adreno::layout::ImageGpu;
use unwedge_testkit::data;

fn format(name: &str) -> Format {
    Format::named(name).unwrap_or_else(|| panic!("{name}"))
}

fn gpu(name: &str) -> ImageGpu {
    ImageGpu::of(Db::builtin().identify_name(name).expect(name)).expect(name)
}

/// Bytes that look random.
fn bytes(seed: u64) -> [u8; 16] {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0;
    std::array::from_fn(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    })
}

/// Every row of the data's table has a row here that says the same.
#[test]
fn formats_of_the_data() {
    let Some(text) = data::text("adreno/facts/formats.csv") else { return };
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().expect("a header").split(',').collect();
    let mut rows = 0;
    for line in lines {
        let row: HashMap<&str, &str> = header.iter().copied().zip(line.split(',')).collect();
        let name = row["pipe_format"];
        // Images of several planes, each of which has a format of its own, and numbers that no format has.
        if name.starts_with('(') || name.contains("_420_") {
            continue;
        }
        rows += 1;
        let format = format(name);
        assert_eq!(format.name(), name);
        assert_eq!(format.vulkan_name().unwrap_or(""), row["vk_format"], "{name}");
        assert_eq!((format.block_bytes() * 8).to_string(), row["bits_per_block"], "{name}");
        let (width, height) = format.block_size();
        assert_eq!(
            (width.to_string().as_str(), height.to_string().as_str()),
            (row["block_w"], row["block_h"])
        );
        let number = |column: &str| {
            let number = row[column].split_once("=0x")?.1;
            Some(HardwareFormat(u32::from_str_radix(number, 16).unwrap_or_else(|e| panic!("{line}: {e}"))))
        };
        assert_eq!(format.vertex_format(), number("vertex_fmt6"), "{name}");
        assert_eq!(format.texture_format(), number("texture_fmt6"), "{name}");
        assert_eq!(format.render_format(), number("render_fmt6"), "{name}");
        assert_eq!(format.swap().name(), row["swap_linear"], "{name}");
        assert_eq!(format.is_srgb(), row["colorspace"] == "SRGB", "{name}");
        assert_eq!(format.is_depth_stencil(), row["colorspace"] == "ZS", "{name}");
        let swizzle: String = format
            .swizzle()
            .iter()
            .map(|source| match source {
                Source::Channel(channel) => ['X', 'Y', 'Z', 'W'][usize::from(*channel)],
                Source::Zero => '0',
                Source::One => '1',
                Source::Absent => '_',
            })
            .collect();
        assert_eq!(swizzle, row["swizzle"], "{name}");
    }
    assert!(rows > 0, "no rows");
}

#[test]
fn names() {
    assert_eq!(format("vk_format_d24_unorm_s8_uint").name(), "Z24_UNORM_S8_UINT");
    assert_eq!(format("PIPE_FORMAT_ASTC_6x5").block_size(), (6, 5));
    assert_eq!(format("BC1_RGB_UNORM_BLOCK").name(), "DXT1_RGB");
    assert_eq!(Format::named("R8G8B8A8"), None);
    for format in Format::all() {
        assert_eq!(Format::named(format.name()), Some(format));
        assert!(format.block_bytes() > 0 && format.channel_count() > 0, "{format}");
    }
}

#[test]
fn hardware_numbers() {
    let plain = |number, swap| Format::of_texture(HardwareFormat(number), swap, false).map(Format::name);
    assert_eq!(plain(0x30, ColorSwap::Wzyx), Some("R8G8B8A8_UNORM"));
    assert_eq!(plain(0x30, ColorSwap::Wxyz), Some("B8G8R8A8_UNORM"));
    assert_eq!(plain(0x03, ColorSwap::Wzyx), Some("R8_UNORM"));
    assert_eq!(plain(0xa0, ColorSwap::Wzyx), Some("Z24_UNORM_S8_UINT"));
    assert_eq!(plain(0xff, ColorSwap::Wzyx), None);
    let srgb = Format::of_render_target(HardwareFormat(0x30), ColorSwap::Wzyx, true);
    assert_eq!(srgb.map(Format::name), Some("R8G8B8A8_SRGB"));
    let scaled = Format::of_vertex(HardwareFormat(0x33), ColorSwap::Wzyx, true);
    assert_eq!(scaled.map(Format::name), Some("R8G8B8A8_USCALED"));
}

/// All texels of up to 16 bits, and many of others, survive being unpacked and packed.
#[test]
fn texels_survive() {
    let mut checked = 0;
    for format in Format::all().filter(|format| !format.is_block()) {
        let codec = format.codec();
        let size = codec.bytes() as usize;
        assert_eq!(size, format.block_bytes() as usize);
        let count = if size <= 2 { 1 << (8 * size) } else { 2_000 };
        for number in 0..count {
            let raw = if size <= 2 { (number as u128).to_le_bytes() } else { bytes(number as u64) };
            let texel = codec.unpack(&raw, 0, 0).unwrap_or_else(|| panic!("{format}"));
            if codec.numeric() == Numeric::Float && texel.iter().any(|c| f32::from_bits(*c).is_nan()) {
                continue;
            }
            let mut packed = [0; 16];
            codec.pack(texel, &mut packed).unwrap_or_else(|e| panic!("{format}: {e}"));
            // Two codes may mean one number: -128 and -127 of signed normalized ones, shared exponents, and what wide integers read as.
            let again = codec.unpack(&packed, 0, 0).unwrap_or_else(|| panic!("{format}"));
            assert_eq!(again, texel, "{format}: {raw:x?} became {packed:x?}");
            checked += 1;
        }
    }
    assert!(checked > 1_000_000, "{checked}");
}

/// Channels that hold numbers in bits of their own pack to the bits they were unpacked from.
#[test]
fn texels_survive_bit_for_bit() {
    for name in [
        "R8_UNORM",
        "R8_SRGB",
        "R8G8_UINT",
        "R5G6B5_UNORM",
        "B5G5R5A1_UNORM",
        "A4B4G4R4_UNORM",
        "R8G8_SINT",
        "R16_FLOAT",
        "A8_UNORM",
        "S8_UINT",
        "Z16_UNORM",
        "R10G10B10A2_UINT",
        "B10G10R10A2_UNORM",
        "R8G8B8A8_SRGB",
        "A8R8G8B8_SRGB",
        "Z24_UNORM_S8_UINT",
        "R32G32_UINT",
        "R16G16B16A16_SINT",
    ] {
        let format = format(name);
        let codec = format.codec();
        let size = codec.bytes() as usize;
        for number in 0..65_536u64 {
            let raw = if size <= 2 { u128::from(number).to_le_bytes() } else { bytes(number) };
            let texel = codec.unpack(&raw, 0, 0).expect(name);
            if name == "R16_FLOAT" && f32::from_bits(texel[0]).is_nan() {
                continue;
            }
            let mut packed = [0; 16];
            codec.pack(texel, &mut packed).expect(name);
            assert_eq!(packed[..size], raw[..size], "{name}");
        }
    }
}

#[test]
fn components() {
    let f32s = |name: &str, raw: &[u8]| format(name).codec().unpack_f32(raw, 0, 0).expect(name);
    assert_eq!(f32s("R8G8B8A8_UNORM", &[255, 0, 51, 128]), [1.0, 0.0, 0.2, 128.0 / 255.0]);
    assert_eq!(f32s("B8G8R8A8_UNORM", &[51, 0, 255, 0]), [1.0, 0.0, 0.2, 0.0]);
    assert_eq!(f32s("B8G8R8X8_UNORM", &[51, 0, 255, 0]), [1.0, 0.0, 0.2, 1.0]);
    assert_eq!(f32s("L8_UNORM", &[255]), [1.0; 4]);
    assert_eq!(f32s("A8_UNORM", &[255]), [0.0, 0.0, 0.0, 1.0]);
    assert_eq!(f32s("L8A8_UNORM", &[255, 0]), [1.0, 1.0, 1.0, 0.0]);
    assert_eq!(f32s("R8_SNORM", &[0x80]), [-1.0, 0.0, 0.0, 1.0]);
    assert_eq!(f32s("R5G6B5_UNORM", &[0x1f, 0xf8]), [1.0, 0.0, 1.0, 1.0]);
    assert_eq!(f32s("R11G11B10_FLOAT", &(0x3c0u32 | 0x3c0 << 11 | 0x1e0 << 22).to_le_bytes()), [1.0; 4]);
    assert_eq!(f32s("R32_FIXED", &0xffff_8000u32.to_le_bytes()), [-0.5, 0.0, 0.0, 1.0]);
    assert_eq!(f32s("R8G8B8A8_SSCALED", &[0xff, 1, 0, 0x80]), [-1.0, 1.0, 0.0, -128.0]);
    assert_eq!(f32s("R8G8B8A8_SRGB", &[255, 0, 0, 128])[3], 128.0 / 255.0);
    let depth = format("Z24_UNORM_S8_UINT").codec().unpack(&[0xff, 0xff, 0xff, 7], 0, 0).expect("a texel");
    assert_eq!((f32::from_bits(depth[0]), depth[1]), (1.0, 7));
    let ints = format("R10G10B10A2_UINT").codec();
    assert_eq!(ints.unpack_u32(&[0xff, 0x03, 0, 0xc0], 0, 0), Some([1023, 0, 0, 3]));
    assert_eq!(format("R16_UINT").codec().unpack_u32(&[1, 2], 0, 0), Some([513, 0, 0, 1]));
    assert_eq!(format("R8_SINT").codec().unpack_i32(&[0xfe], 0, 0), Some([-2, 0, 0, 1]));
    // Out of range.
    let packed = |name: &str, texel: [u32; 4]| {
        let mut out = [0; 16];
        let codec = format(name).codec();
        codec.pack(texel, &mut out).expect(name);
        out[..codec.bytes() as usize].to_vec()
    };
    assert_eq!(packed("R8_UINT", [300, 0, 0, 0]), [255]);
    assert_eq!(packed("R8_SINT", [-300i32 as u32, 0, 0, 0]), [0x80]);
    assert_eq!(packed("R10G10B10A2_SINT", [-1i32 as u32, 511, -513i32 as u32, 5]), [0xff, 0xff, 0x07, 0x60]);
    let codec = format("R32G32_FLOAT").codec();
    assert_eq!(codec.pack([0; 4], &mut [0; 7]), Err(PackError::Bytes(8)));
    assert_eq!(codec.unpack(&[0; 7], 0, 0), None);
    assert_eq!(format("DXT1_RGB").codec().pack([0; 4], &mut [0; 16]), Err(PackError::Compressed));
}

/// A descriptor has a format in its own order, and a swap. Together they are the format whose name has the channels in that order.
#[test]
fn a_swap_is_another_order() {
    let mut swapped = 0;
    for format in Format::all().filter(|format| format.swap() != ColorSwap::Wzyx) {
        let Some(number) = format.texture_format().or(format.vertex_format()) else { continue };
        let plain = Format::all().find(|f| {
            [f.texture_format(), f.vertex_format()].contains(&Some(number))
                && f.swap() == ColorSwap::Wzyx
                && f.is_srgb() == format.is_srgb()
                && f.channel_count() == format.channel_count()
                && f.codec().numeric() == format.codec().numeric()
                && f.vertex_format().is_some() == format.vertex_format().is_some()
                && f.texture_format().is_some() == format.texture_format().is_some()
        });
        let Some(plain) = plain else { continue };
        if format.name().contains("SCALED") != plain.name().contains("SCALED") {
            continue;
        }
        let codec: TexelCodec = plain.codec().with_swap(format.swap());
        for seed in 0..100 {
            let raw = bytes(seed);
            assert_eq!(codec.unpack(&raw, 0, 0), format.codec().unpack(&raw, 0, 0), "{format} from {plain}");
        }
        swapped += 1;
    }
    assert!(swapped > 20, "{swapped}");
    // A tile has the first channel first.
    let raw = [1, 2, 3, 4];
    let (bgra, rgba) = (format("B8G8R8A8_UNORM"), format("R8G8B8A8_UNORM"));
    assert_eq!(bgra.tiled_codec().unpack(&raw, 0, 0), rgba.codec().unpack(&raw, 0, 0));
    let alpha = format("B8G8R8X8_UNORM").tiled_codec().unpack_f32(&raw, 0, 0);
    assert_eq!(alpha.map(|texel| texel[3]), Some(1.0));
}

#[test]
fn which_formats_compress() {
    let (a630, a660, a740, a750) = (gpu("a630"), gpu("a660"), gpu("a740"), gpu("0x43051401"));
    assert_eq!(format("R8_UNORM").ubwc_support(&a630, 1), UbwcSupport::Yes);
    assert_eq!(format("R8_UNORM").ubwc_support(&a660, 1), UbwcSupport::No);
    assert_eq!(format("R8_SNORM").ubwc_support(&a740, 1), UbwcSupport::Yes);
    assert_eq!(format("R9G9B9E5_FLOAT").ubwc_support(&a740, 1), UbwcSupport::No);
    assert_eq!(format("Z24_UNORM_S8_UINT").ubwc_support(&a630, 1), UbwcSupport::UnsampledStencil);
    assert_eq!(format("Z24_UNORM_S8_UINT").ubwc_support(&a660, 4), UbwcSupport::Yes);
    let class = |gpu: &ImageGpu, name: &str| format(name).ubwc_class(gpu).map(|class| class.to_string());
    assert_eq!(class(&a630, "R8G8B8A8_SRGB").as_deref(), Some("R8G8B8A8_UNORM"));
    assert_eq!(class(&a630, "R8G8B8A8_SINT").as_deref(), Some("R8G8B8A8_INT"));
    assert_eq!(class(&a630, "R8G8B8A8_SNORM"), None);
    assert_eq!(class(&a740, "R8G8B8A8_SNORM"), class(&a740, "R8G8B8A8_UINT"));
    assert_eq!(class(&a740, "B8G8R8A8_SRGB").as_deref(), Some("B8G8R8A8_UNORM"));
    assert_eq!(class(&a750, "R32_FLOAT"), class(&a750, "R8G8B8A8_UNORM"));
}
