//! Layouts of images: every row of `layout/vectors.csv` of `UNWEDGE_DATA`, addresses against the bit equations of tiles, and images that
//! cannot be.

use std::collections::HashMap;
use unwedge_base::Generation;
use unwedge_hw::Db;
use unwedge_hw::adreno::format::{Format, UbwcClasses};
use unwedge_hw::adreno::layout::{
    Addresser, AddresserParts, BankConfig, CopyError, ImageGpu, ImageLayout, ImageParams, ImportedLayout,
    LayoutError, MAX_LAYERS, MAX_SIZE, MacrotileMode, Rect, TileMode, Tiling, UbwcRefusal, ViewParts,
};
use unwedge_testkit::data;

fn gpu(name: &str) -> ImageGpu {
    ImageGpu::of(Db::builtin().identify_name(name).expect(name)).expect(name)
}

fn format(name: &str) -> Format {
    Format::named(name).unwrap_or_else(|| panic!("{name}"))
}

/// Numbers that look random.
struct Lcg(u64);

impl Lcg {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len() as u32) as usize]
    }
}

/// A row of the vectors.
struct Vector<'r> {
    text: &'r str,
    params: ImageParams,
    gpu: ImageGpu,
    /// Offset, pitch and size of a slice of each level.
    levels: Vec<[Option<u64>; 3]>,
    flags: Vec<[Option<u64>; 3]>,
}

fn vector<'r>(columns: &HashMap<&str, usize>, row: &'r str) -> Vector<'r> {
    let fields: Vec<&str> = row.split(',').collect();
    let field = |name: &str| fields[*columns.get(name).unwrap_or_else(|| panic!("no column {name}"))];
    let number = |name: &str| field(name).parse::<u32>().unwrap_or_else(|e| panic!("{row}: {name}: {e}"));
    let list = |text: &str| -> Vec<[Option<u64>; 3]> {
        let level = |level: &str| {
            let mut parts =
                level.split(':').map(|part| part.parse().unwrap_or_else(|e| panic!("{row}: {e}")));
            [parts.next(), parts.next(), parts.next()]
        };
        text.split(';').filter(|level| !level.is_empty()).map(level).collect()
    };
    let levels = list(field("levels_offset:pitch[:layer_size]"));
    let mut params = ImageParams::new(format(field("format")), number("width"), number("height"));
    params.depth = number("depth");
    params.layers = number("array_size");
    params.levels = levels.len() as u32;
    params.samples = number("samples");
    params.is_3d = field("is_3d") == "true";
    params.ubwc = field("ubwc") == "true";
    params.tile_mode = match field("tile_mode") {
        mode if mode.ends_with("LINEAR") => TileMode::Linear,
        mode if mode.ends_with("_2") => TileMode::Tile2,
        mode if mode.ends_with("_3") => TileMode::Tile3,
        mode => panic!("{row}: {mode}"),
    };
    let flags = list(field("ubwc_levels_offset:pitch"));
    Vector { text: row, params, gpu: gpu(field("device")), levels, flags }
}

#[test]
fn vectors_of_the_data() {
    let Some(text) = data::text("adreno/layout/vectors.csv") else { return };
    let mut lines = text.lines();
    let header = lines.next().expect("a header");
    let columns: HashMap<&str, usize> = header.split(',').enumerate().map(|(at, name)| (name, at)).collect();
    let mut rows = 0;
    for vector in lines.map(|row| vector(&columns, row)) {
        rows += 1;
        let row = vector.text;
        let layout = ImageLayout::new(&vector.gpu, &vector.params).unwrap_or_else(|e| panic!("{row}: {e}"));
        assert_eq!(layout.flags.is_some(), !vector.flags.is_empty(), "{row}");
        // Where a pitch does not even hold the texels of a row, the numbers are products of which only the first factors were kept: of the
        // offset, which is the size of the flags, their pitch times their rows; of the pitch, the texels of a row times their bytes.
        let texels = u64::from(vector.params.width) * u64::from(layout.texel_bytes);
        let product = vector.levels[0][1].is_some_and(|pitch| pitch < texels);
        let flags_before = layout.flags.map_or(0, |flags| flags.size);
        for (level, (is, wanted)) in layout.levels.iter().zip(&vector.levels).enumerate() {
            if product {
                let flags = is.flags.expect("flags before the texels");
                assert_eq!(wanted[0], Some(flags.pitch.into()), "{row}: level {level}");
                assert_eq!(is.offset, u64::from(flags.pitch) * u64::from(flags.rows), "{row}: level {level}");
                assert_eq!(wanted[1], Some(is.width.into()), "{row}: level {level}");
                assert_eq!(
                    is.pitch,
                    u64::from(is.width) * u64::from(layout.texel_bytes),
                    "{row}: level {level}"
                );
                continue;
            }
            // Offsets of the vectors leave the flag buffer out.
            let numbers = [Some(is.offset - flags_before), Some(is.pitch), Some(is.slice_size)];
            for (is, wanted) in numbers.iter().zip(wanted).filter(|(_, wanted)| wanted.is_some()) {
                assert_eq!(is, wanted, "{row}: level {level}");
            }
        }
        for (level, wanted) in vector.flags.iter().enumerate() {
            let offset = layout.levels[level].flags.map_or(0, |flags| flags.offset);
            let pitch = layout.flags.map(|flags| u64::from(flags.pitch(level as u32)));
            assert_eq!([Some(offset), pitch], [wanted[0], wanted[1]], "{row}: flags of level {level}");
        }
    }
    assert!(rows > 0, "no rows");
}

/// The row of the vectors that keeps the first factors of two products: 1024 · 48, and 16384 · 4 in Mesa's own test.
#[test]
fn an_image_that_is_shared_by_its_media_alignment() {
    let mut params = ImageParams::new(format("R8G8B8A8_UNORM"), 16384, 129);
    (params.tile_mode, params.ubwc) = (TileMode::Tile3, true);
    let layout = ImageLayout::new(&gpu("a630"), &params).expect("a layout");
    assert_eq!((layout.levels[0].offset, layout.levels[0].pitch), (1024 * 48, 16384 * 4));
    let flags = layout.levels[0].flags.expect("flags");
    assert_eq!((flags.offset, flags.pitch), (0, 1024));
}

/// The place of a tile as the bits of its coordinates say, written bit by bit: the naive form of what `Addresser` does with masks.
fn naive_offset(
    parts: &AddresserParts,
    bank: &BankConfig,
    split: bool,
    (x, y): (u32, u32),
    sample: u32,
) -> u64 {
    let cpp = parts.texel_bytes;
    let (width, height) = match (cpp, split) {
        (1, _) => (32, 8),
        (2, true) => (16, 8),
        (2, false) => (32, 4),
        (4, _) => (16, 4),
        (8, _) => (8, 4),
        (16, _) => (4, 4),
        (32, _) => (4, 2),
        _ => (2, 2),
    };
    let bit = |value: u32, bit: u32| u64::from(value >> bit & 1);
    let (tx, ty) = (x / width, y / height);
    let mut b = [bit(tx, 0) ^ bit(ty, 1), bit(tx, 0) ^ bit(ty, 1) ^ bit(ty, 0), bit(tx, 0) ^ bit(ty, 0)];
    if cpp < 16 {
        b[1] ^= bit(tx, 1);
        if bank.macrotile == MacrotileMode::EightChannel {
            b[2] ^= bit(tx, 2) ^ bit(ty, 2);
        }
    }
    let stride = parts.pitch / u64::from(4 * width * cpp);
    let extra = u32::from(cpp == 1 || split);
    let hbb = bank.highest_bank_bit;
    let mut column = u64::from(tx / 2) * 2048 + (b[0] + 2 * b[1] + 4 * b[2]) * 256;
    for (level, row_bit, unit) in [(1u32, 0u32, hbb), (2, 1, hbb + 1), (0, 2, hbb + 2)] {
        let bytes_aligned = stride.is_multiple_of(1 << (unit - 12 + extra));
        if bank.swizzle_levels >> level & 1 == 1 && bytes_aligned {
            column ^= bit(ty / 4, row_bit) << (hbb - 1 + row_bit);
        }
    }
    let order = [(0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (0, 3), (0, 4), (1, 2)];
    let (px, py) = (x % width, y % height);
    let index: u64 = order
        .iter()
        .enumerate()
        .map(|(at, &(axis, of))| bit(if axis == 0 { px } else { py }, of) << at)
        .sum();
    let texel = if split { 1 } else { u64::from(cpp) };
    u64::from(ty / 4) * stride * 4096 + column + index * texel + u64::from(sample * cpp / parts.samples)
}

#[test]
fn every_texel_has_a_place_of_its_own() {
    for texel_bytes in [1u32, 2, 4, 8, 16, 32, 64] {
        for (highest_bank_bit, swizzle_levels, macrotile) in [
            (13, 7, MacrotileMode::FourChannel),
            (14, 6, MacrotileMode::EightChannel),
            (15, 6, MacrotileMode::FourChannel),
            (16, 6, MacrotileMode::EightChannel),
        ] {
            let bank = BankConfig { highest_bank_bit, swizzle_levels, macrotile };
            let split = texel_bytes == 2 && highest_bank_bit == 15;
            // Rows that are a multiple of what bank swizzling needs, and rows that are not.
            for pitch in [0x3000u64, 0x8000] {
                let parts = AddresserParts {
                    base: 0x3000,
                    pitch,
                    layer_stride: 0,
                    texel_bytes,
                    samples: 1,
                    width: (pitch / u64::from(texel_bytes)) as u32,
                    height: 64,
                    layers: 1,
                    tiling: Tiling::Tile3 { bank, split_channels: split },
                };
                let level = Addresser::new(&parts).expect("a level");
                let mut taken = vec![false; (pitch * 64) as usize];
                let (band_rows, band_bytes) = level.band();
                assert_eq!(band_bytes, u64::from(band_rows) * pitch);
                assert_eq!(level.row_texels(), parts.width.into());
                for y in 0..parts.height {
                    for x in 0..parts.width {
                        let offset = level.offset(x, y, 0, 0);
                        assert_eq!(offset - 0x3000, naive_offset(&parts, &bank, split, (x, y), 0), "{x},{y}");
                        let bytes: Vec<u64> = match level.second_byte() {
                            Some(second) => vec![offset, offset + u64::from(second)],
                            None => (offset..offset + u64::from(texel_bytes)).collect(),
                        };
                        for (number, &byte) in bytes.iter().enumerate() {
                            let band = u64::from(y / band_rows);
                            assert_eq!(
                                (byte - 0x3000) / band_bytes,
                                band,
                                "{texel_bytes}: {x},{y} at {byte:#x}"
                            );
                            let taken = taken.get_mut((byte - 0x3000) as usize);
                            let taken = taken.unwrap_or_else(|| panic!("{x},{y} is outside: {byte:#x}"));
                            assert!(!std::mem::replace(taken, true), "{texel_bytes}: {x},{y} at {byte:#x}");
                            let place = level.texel_at(byte).expect("a texel");
                            assert_eq!((place.x, place.y, place.byte as usize), (x, y, number));
                        }
                    }
                }
                assert!(taken.iter().all(|taken| *taken));
            }
        }
    }
}

/// Layers and samples of whole images: apart, inside, and found again.
#[test]
fn texels_of_levels_layers_and_samples_are_apart() {
    let mut seen_levels = 0;
    for (name, layers, depth, samples, ubwc) in [
        ("R8_UNORM", 3, 1, 1, false),
        ("R8G8_UNORM", 6, 1, 1, true),
        ("R8G8B8A8_UNORM", 2, 1, 1, true),
        ("R16G16B16A16_FLOAT", 1, 5, 1, false),
        ("R32G32B32A32_UINT", 1, 1, 4, false),
        ("R8G8B8A8_UNORM", 2, 1, 8, true),
        ("Z24_UNORM_S8_UINT", 1, 1, 2, true),
        ("DXT1_RGB", 2, 1, 1, false),
        ("ASTC_6x5", 1, 1, 1, false),
        ("R32G32B32_FLOAT", 2, 1, 1, false),
    ] {
        for gpu in [gpu("a618"), gpu("a650"), gpu("a660"), gpu("a740")] {
            let mut params = ImageParams::new(format(name), 45, 39);
            (params.layers, params.depth, params.is_3d) = (layers, depth, depth > 1);
            (params.samples, params.ubwc) = (samples, ubwc);
            params.levels = if samples > 1 { 1 } else { params.full_levels() };
            let linear = !params.format.block_bytes().is_power_of_two();
            params.tile_mode = if linear { TileMode::Linear } else { TileMode::Tile3 };
            let layout = ImageLayout::new(&gpu, &params).expect(name);
            let mut taken = vec![false; layout.size as usize];
            if let Some(flags) = layout.flags {
                taken[..flags.size as usize].fill(true);
            }
            for level in 0..params.levels {
                seen_levels += 1;
                let at = layout.addresser(level).expect(name);
                let (width, height) = at.size();
                let each = (0..at.layers()).flat_map(|l| (0..height).map(move |y| (l, y)));
                for (layer, y, x, sample) in each
                    .flat_map(|(l, y)| (0..width).map(move |x| (l, y, x)))
                    .flat_map(|(l, y, x)| (0..samples).map(move |s| (l, y, x, s)))
                {
                    let offset = at.checked_offset(x, y, layer, sample).expect("inside");
                    let second = u64::from(at.second_byte().unwrap_or(1));
                    for byte in 0..u64::from(at.sample_bytes()) {
                        let place = (offset + byte * second) as usize;
                        assert!(
                            !std::mem::replace(&mut taken[place], true),
                            "{name} {x},{y},{layer} {place:#x}"
                        );
                        let back = at.texel_at(place as u64).expect("a texel");
                        assert_eq!(
                            (back.x, back.y, back.layer, back.sample, u64::from(back.byte)),
                            (x, y, layer, sample, byte)
                        );
                    }
                }
                assert_eq!(at.checked_offset(width, 0, 0, 0), None);
                assert_eq!(at.checked_offset(0, 0, at.layers(), 0), None);
                assert_eq!(at.checked_offset(0, 0, 0, samples), None);
            }
        }
    }
    assert!(seen_levels > 100);
}

#[test]
fn levels_of_a5xx() {
    let gpu = gpu("a540");
    let mut params = ImageParams::new(format("R9G9B9E5_FLOAT"), 32, 32);
    (params.tile_mode, params.levels) = (TileMode::Tile3, 5);
    let offsets = |params: &ImageParams| -> Vec<(u64, u64)> {
        let layout = ImageLayout::new(&gpu, params).expect("a layout");
        layout.levels.iter().map(|level| (level.offset, level.pitch)).collect()
    };
    assert_eq!(offsets(&params), [(0, 256), (8192, 256), (12288, 256), (14336, 256), (15360, 256)]);
    // Slices of three dimensions stop to shrink at 0xf000 bytes.
    (params.width, params.height, params.depth, params.is_3d) = (59, 37, 11, true);
    assert_eq!(offsets(&params), [(0, 256), (135168, 256), (176128, 256), (192512, 256), (200704, 256)]);
    assert_eq!(
        ImageLayout::new(&gpu, &params).expect("a layout").addresser(0),
        Err(LayoutError::UnknownTiling { name: "TILE5_3" })
    );
    params.ubwc = true;
    assert_eq!(ImageLayout::new(&gpu, &params), Err(LayoutError::A5xxUbwc));
}

#[test]
fn ubwc_is_refused_where_it_cannot_be() {
    let refused = |params: &ImageParams| {
        let layout = ImageLayout::new(&gpu("a630"), params).expect("a layout");
        assert_eq!(layout.flags, None);
        layout.ubwc_refusal
    };
    let mut params = ImageParams::new(format("R8G8B8A8_UNORM"), 15, 64);
    (params.tile_mode, params.ubwc) = (TileMode::Tile3, true);
    assert_eq!(refused(&params), Some(UbwcRefusal::Narrow));
    params.width = 64;
    (params.is_3d, params.depth, params.levels) = (true, 4, 2);
    assert_eq!(refused(&params), Some(UbwcRefusal::VolumeLevels));
    params = ImageParams { samples: 8, format: format("R16G16B16A16_FLOAT"), ..params };
    (params.is_3d, params.depth, params.levels) = (false, 1, 1);
    assert_eq!(refused(&params), Some(UbwcRefusal::TexelBytes(64)));
}

#[test]
fn images_that_cannot_be() {
    let a630 = gpu("a630");
    let good = ImageParams::new(format("R8G8B8A8_UNORM"), 64, 64);
    let refused = |change: fn(&mut ImageParams)| {
        let mut params = good;
        change(&mut params);
        ImageLayout::new(&a630, &params).map(|_| ()).map_err(|e| e.to_string())
    };
    let err = |text: &str| Err(text.to_owned());
    assert_eq!(refused(|_| ()), Ok(()));
    assert_eq!(refused(|p| p.width = 0), err("width is 0; it can be 1 to 32767"));
    assert_eq!(refused(|p| p.layers = u32::MAX), err("layers is 4294967295; it can be 1 to 8191"));
    assert_eq!(refused(|p| p.levels = 8), err("8 levels; an image of this size has 1 to 7"));
    assert_eq!(refused(|p| p.samples = 3), err("3 samples; a texel has 1, 2, 4 or 8"));
    assert_eq!(refused(|p| p.depth = 2), err("only an image of three dimensions has a depth"));
    assert_eq!(refused(|p| p.ubwc = true), err("an image with UBWC is tiled"));
    assert_eq!(
        refused(|p| (p.format, p.tile_mode) = (Format::named("R8G8B8_UNORM").expect("it"), TileMode::Tile3)),
        err("texels of 3 bytes are in linear images only")
    );
    assert_eq!(
        refused(|p| p.import = Some(ImportedLayout { offset: 0, pitch: 100 })),
        err("the pitch is 100; it must be at least 256 and a multiple of 64")
    );
    let db = Db::builtin();
    let of = |name: &str| ImageGpu::of(db.identify_name(name).expect(name)).map_err(|e| e.to_string());
    assert_eq!(of("a6xx").map(|_| ()), err("layouts differ between GPUs of a6xx; name one of them"));
    assert_eq!(
        of("a330").map(|_| ()),
        err("image layouts of a3xx are not known; those of a5xx, a6xx and a7xx are")
    );
}

/// Any numbers: an error, or a layout whose parts are in order; never a panic, nor memory by a number that was asked for.
#[test]
fn any_numbers() {
    let db = Db::builtin();
    let mut gpus: Vec<ImageGpu> = db
        .devices()
        .filter_map(|device| {
            ImageGpu::of(unwedge_hw::Adreno { generation: device.generation(), device: Some(device) }).ok()
        })
        .collect();
    gpus.push(ImageGpu {
        generation: Generation::A7xx,
        bank: Some(BankConfig {
            highest_bank_bit: u32::MAX,
            swizzle_levels: 7,
            macrotile: MacrotileMode::FourChannel,
        }),
        linear_mip_fallback: false,
        eight_bit_ubwc: true,
        z24_uint_s8_uint: true,
        ubwc_classes: UbwcClasses::BySize,
    });
    let formats: Vec<Format> = Format::all().collect();
    let mut random = Lcg(5);
    let mut made = 0;
    for _ in 0..30_000 {
        let size = |random: &mut Lcg, most: u32| match random.below(16) {
            0 => random.next(),
            1 => most,
            2 => 0,
            _ => 1 + random.below(300),
        };
        let params = ImageParams {
            format: random.pick(&formats),
            width: size(&mut random, MAX_SIZE),
            height: size(&mut random, MAX_SIZE),
            depth: random.pick(&[1, 1, 1, 1, 1, 7, MAX_LAYERS, u32::MAX]),
            levels: random.pick(&[1, 1, 2, 5, 15, u32::MAX]),
            layers: random.pick(&[1, 1, 6, MAX_LAYERS, 0]),
            samples: random.pick(&[1, 1, 1, 2, 4, 8, 16, u32::MAX]),
            tile_mode: random.pick(&[TileMode::Linear, TileMode::Tile2, TileMode::Tile3]),
            ubwc: random.below(3) == 0,
            is_3d: random.below(3) == 0,
            is_mutable: random.below(4) == 0,
            import: (random.below(8) == 0).then(|| ImportedLayout {
                offset: u64::from(random.next()) << random.below(34),
                pitch: random.next() & !255,
            }),
        };
        let Ok(layout) = ImageLayout::new(&random.pick(&gpus), &params) else { continue };
        made += 1;
        let mut end = 0;
        for (number, level) in layout.levels.iter().enumerate() {
            assert!(level.offset >= end, "{params:?}");
            end = level.offset + level.slice_size * u64::from(level.depth);
            assert!(end <= layout.size, "{params:?}");
            if let Ok(at) = layout.addresser(number as u32) {
                let (width, height) = at.size();
                let last = at.checked_offset(width - 1, height - 1, at.layers() - 1, at.samples() - 1);
                assert!(
                    last.is_some_and(|last| last + u64::from(at.sample_bytes()) <= layout.size),
                    "{params:?}"
                );
                let _ = (at.texel_at(u64::MAX), at.texel_at(u64::from(random.next())));
                let _ = at.offset(u32::MAX, u32::MAX, u32::MAX, u32::MAX);
            }
            let _ = layout.flag_offset(number as u32, params.layers - 1);
        }
    }
    assert!(made > 2_000, "{made}");
}

#[test]
fn copies_go_both_ways() {
    for (name, tile_mode) in [
        ("R8G8_UNORM", TileMode::Tile3),
        ("R16_UINT", TileMode::Tile3),
        ("R32G32B32_FLOAT", TileMode::Linear),
    ] {
        let mut params = ImageParams::new(format(name), 70, 50);
        (params.tile_mode, params.layers) = (tile_mode, 2);
        let layout = ImageLayout::new(&gpu("a650"), &params).expect(name);
        let level = layout.addresser(0).expect(name);
        let texel = level.texel_bytes() as usize;
        let part = Rect { x: 3, y: 5, width: 61, height: 40 };
        let pitch = 61 * texel + 7;
        let rows: Vec<u8> = (0..pitch * 40).map(|at| ((at * 31) >> 3) as u8 | 1).collect();
        let mut image = vec![0; layout.size as usize];
        level.write_rows(&mut image, 1, part, &rows, pitch).expect("written");
        let written = image.iter().filter(|byte| **byte != 0).count();
        assert_eq!(written, 61 * 40 * texel, "{name}");
        let mut back = vec![0; pitch * 40];
        level.read_rows(&image, 1, part, &mut back, pitch).expect("read");
        for row in 0..40 {
            let start = row * pitch;
            assert_eq!(back[start..start + 61 * texel], rows[start..start + 61 * texel]);
        }
        let outside = Rect { x: u32::MAX, y: 0, width: 2, height: 1 };
        assert_eq!(level.read_rows(&image, 0, outside, &mut back, pitch), Err(CopyError::Outside));
        assert_eq!(level.read_rows(&image, 2, part, &mut back, pitch), Err(CopyError::Outside));
        let few = level.read_rows(&image, 0, part, &mut back[..pitch], pitch);
        assert!(matches!(few, Err(CopyError::Rows { .. })), "{few:?}");
        let close = level.read_rows(&image, 0, part, &mut back, texel);
        assert!(matches!(close, Err(CopyError::Pitch { .. })), "{close:?}");
        let short = level.read_rows(&image[..100], 0, part, &mut back, pitch);
        assert!(matches!(short, Err(CopyError::Image { .. })), "{short:?}");
    }
}

#[test]
fn a_descriptor_leads_to_the_levels_of_the_layout() {
    let mut random = Lcg(71);
    let formats = [
        "R8_UNORM",
        "R8G8_UNORM",
        "R8G8B8A8_UNORM",
        "R32G32B32A32_FLOAT",
        "DXT1_RGB",
        "Z32_FLOAT",
        "R16_UINT",
    ];
    let mut compared = 0;
    for round in 0..4000 {
        let gpu = gpu(random.pick(&["a630", "a660", "a740"]));
        let format = format(random.pick(&formats));
        let mut params = ImageParams::new(format, 1 + random.below(600), 1 + random.below(300));
        params.is_3d = round % 3 == 0;
        params.depth = if params.is_3d { 1 + random.below(40) } else { 1 };
        params.layers = if params.is_3d { 1 } else { 1 + random.below(7) };
        params.levels = 1 + random.below(params.full_levels());
        params.tile_mode = random.pick(&[TileMode::Linear, TileMode::Tile3]);
        params.ubwc = params.tile_mode == TileMode::Tile3 && random.below(2) == 0;
        let Ok(layout) = ImageLayout::new(&gpu, &params) else { continue };
        let (first, last) = (layout.levels[0], layout.levels[layout.levels.len() - 1]);
        let view = ViewParts {
            width: params.width,
            height: params.height,
            depth: params.depth,
            layers: params.layers,
            levels: params.levels,
            is_3d: params.is_3d,
            samples: 1,
            texel_bytes: layout.texel_bytes,
            block: format.block_size(),
            channel_pair: layout.splits_channels(),
            tile_mode: layout.tile_mode,
            tile_all: layout.tile_all,
            ubwc: layout.flags.is_some(),
            pitch: first.pitch,
            pitch_align: layout.pitch_align.into(),
            layer_size: layout.layer_stride(&first),
            least_slice: if params.is_3d { last.slice_size } else { 0 },
            bank: gpu.bank,
        };
        for (at, (is, wanted)) in view.levels().zip(&layout.levels).enumerate() {
            let wanted_offset = wanted.offset - first.offset;
            assert_eq!((is.offset, is.pitch), (wanted_offset, wanted.pitch), "{params:?}: level {at}");
            assert_eq!(is.layer_stride, layout.layer_stride(wanted), "{params:?}: level {at}");
            assert_eq!((is.width, is.height, is.depth), (wanted.width, wanted.height, wanted.depth));
            let place = (random.below(is.width), random.below(is.height), random.below(is.depth));
            let block = format.block_size();
            let (x, y) = (place.0 / block.0, place.1 / block.1);
            let texel = |addresser: Result<Addresser, LayoutError>| {
                addresser.map(|a| a.checked_offset(x, y, place.2, 0))
            };
            let of_layout = texel(layout.addresser(at as u32)).map(|offset| offset.map(|o| o - first.offset));
            assert_eq!(texel(view.addresser(&is)), of_layout, "{params:?}: level {at}");
            compared += 1;
        }
    }
    assert!(compared > 5000, "{compared} levels");
}
