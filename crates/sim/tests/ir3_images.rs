//! Storage images, quads, loaded descriptors, and descriptors that are nonsense.

mod assembled;
#[allow(dead_code, reason = "shared with the test of recorded samples")]
mod texture;

use assembled::assemble;
use texture::*;
use unwedge_hw::adreno::layout::{ImageGpu, ImageParams, TileMode};
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{
    BindfulTable, BindfulTables, Dispatch, FaultKind, Options, ShaderState, Timing, run,
};

/// A bench over a storage image of 40 by 24 texels, four fibers with coordinates in `r4`.
fn storage_bench<'g>(gpu: &'g ImageGpu, name: &str, mode: TileMode) -> Bench<'g> {
    let mut params = ImageParams::new(format(name), 40, 24);
    (params.tile_mode, params.layers) = (mode, 3);
    let layout = layout(gpu, Kind::D2Array, params);
    Bench {
        gpu_id: 630,
        gpu,
        texture: storage(Kind::D2Array, &layout, 0),
        sampler: [0; 16],
        image: vec![0; layout.size as usize],
        inputs: (0..4u32)
            .map(|fiber| {
                let mut words = [0; INPUTS];
                // Column, row, layer; from r5 on what is stored.
                words[..3].copy_from_slice(&[fiber * 11, fiber * 7, fiber]);
                for (at, word) in words[4..8].iter_mut().enumerate() {
                    *word = (fiber as f32 * 0.25 - at as f32 * 0.125).to_bits();
                }
                words[8] = 5 + fiber;
                words
            })
            .collect(),
        timing: Timing::Plain,
    }
}

#[test]
fn what_is_stored_in_an_image_is_loaded() {
    let gpu = image_gpu("a630");
    for mode in [TileMode::Linear, TileMode::Tile3] {
        let bench = storage_bench(&gpu, "R16G16B16A16_FLOAT", mode);
        let (outputs, _) = bench
            .run(
                "stib.b.typed.3d.f32.4.imm.base0 r5.x, r4.x, 0
                (sy)(ss)nop
                ldib.b.typed.3d.f32.4.imm.base0 r8.x, r4.x, 0",
            )
            .expect("no fault");
        for (fiber, texel) in outputs.iter().enumerate() {
            // The fourth layer does not exist: stores are dropped, loads are zero.
            let value = |at: usize| if fiber < 3 { fiber as f32 * 0.25 - at as f32 * 0.125 } else { 0.0 };
            assert_eq!(texel.map(f32::from_bits), [0, 1, 2, 3].map(value), "{mode:?}, fiber {fiber}");
        }
    }
}

#[test]
fn an_atomic_operation_on_an_image() {
    let gpu = image_gpu("a630");
    let mut bench = storage_bench(&gpu, "R32_UINT", TileMode::Tile3);
    // All fibers add to one texel of the first layer.
    bench.inputs.iter_mut().for_each(|words| words[..3].copy_from_slice(&[3, 20, 0]));
    let (outputs, _) = bench
        .run(
            "mov.u32u32 r8.y, r6.x
            (rpt5)nop
            atomic.b.add.typed.3d.u32.1.imm.base0 r8.x, r4.x, 0
            (sy)(ss)nop
            ldib.b.typed.3d.u32.1.imm.base0 r8.y, r4.x, 0",
        )
        .expect("no fault");
    assert_eq!(outputs.iter().map(|words| words[0]).collect::<Vec<_>>(), [0, 5, 11, 18]);
    assert!(outputs.iter().all(|words| words[1] == 26), "{outputs:?}");
}

/// Two levels of a texture of 8 by 8 floats, four fibers.
fn float_texture<'g>(gpu: &'g ImageGpu, gpu_id: u32, texel: impl Fn(u32, u32, u32) -> f32) -> Bench<'g> {
    let mut params = ImageParams::new(format("R32_FLOAT"), 8, 8);
    params.levels = 2;
    let layout = layout(gpu, Kind::D2, params);
    let mut image = vec![0; layout.size as usize];
    for (level, size) in [(0, 8), (1, 4)] {
        for (x, y) in (0..size).flat_map(|y| (0..size).map(move |x| (x, y))) {
            put(&mut image, &layout, level, (x, y, 0), &texel(level, x, y).to_le_bytes());
        }
    }
    Bench {
        gpu_id,
        gpu,
        texture: texture(Kind::D2, &layout, [0, 4, 4, 5]),
        sampler: [0; 16],
        image,
        inputs: vec![[0; INPUTS]; 4],
        timing: Timing::Plain,
    }
}

/// The splines of VK_EXT_filter_cubic over sixteen texels, clamped to the edge.
#[test]
fn a_cubic_filter_takes_sixteen_texels() {
    let gpu = image_gpu("a740");
    let value = |x: u32, y: u32| ((x * 37 + y * 101) % 64) as f32 / 64.0;
    let mut bench = float_texture(&gpu, 740, |_, x, y| value(x, y));
    // Cubic both ways, clamped.
    bench.sampler[0] = 3 << 1 | 3 << 3 | 1 << 5 | 1 << 8;
    let places = [(3.5, 4.5), (2.625, 5.25), (0.75, 7.875), (4.0, 0.0)];
    for (words, (x, y)) in bench.inputs.iter_mut().zip(places) {
        (words[0], words[1]) = ((x / 8.0f32).to_bits(), (y / 8.0f32).to_bits());
    }
    let sample = "saml.base0 (f32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0";
    let (outputs, _) = bench.run(sample).expect("no fault");
    let weights = |t: f32| {
        [
            -0.5 * t + t * t - 0.5 * t * t * t,
            1.0 - 2.5 * t * t + 1.5 * t * t * t,
            0.5 * t + 2.0 * t * t - 1.5 * t * t * t,
            -0.5 * t * t + 0.5 * t * t * t,
        ]
    };
    for (output, (x, y)) in outputs.iter().zip(places) {
        let (x, y) = (x - 0.5, y - 0.5);
        let (of_x, of_y) = (weights(x - x.floor()), weights(y - y.floor()));
        let texel = |at: f32, tap: usize| (at.floor() as i32 + tap as i32 - 1).clamp(0, 7) as u32;
        let sum: f32 = (0..16)
            .map(|tap| value(texel(x, tap % 4), texel(y, tap / 4)) * of_x[tap % 4] * of_y[tap / 4])
            .sum();
        let is = f32::from_bits(output[0]);
        assert!((is - sum).abs() < 0.02, "{x} {y}: {is} and {sum}");
        assert_eq!(output[3], 1f32.to_bits());
    }
    // In the middle of a texel there is nothing but it.
    assert_eq!(f32::from_bits(outputs[0][0]), value(3, 4));
    // The least of the sixteen, and GPUs without such a filter.
    bench.sampler[2] = 1;
    let (outputs, _) = bench.run(sample).expect("no fault");
    let least = (1..=4).flat_map(|x| (3..=6).map(move |y| value(x, y))).fold(1f32, f32::min);
    assert_eq!(f32::from_bits(outputs[1][0]), least);
    bench.gpu_id = 630;
    let why = bench.run(sample).expect_err("no cubic filters").kind;
    assert_eq!(why, FaultKind::NotEmulated("a cubic filter on a GPU that has none"));
}

/// Luma of 8 by 4 and chroma of 4 by 2, in two planes and in three: Y, Cb, Cr of a texel.
#[test]
fn planes_of_luma_and_chroma_are_one_image() {
    let gpu = image_gpu("a650");
    let luma = |x: u32, y: u32| (10 + x * 20 + y * 3) as u8;
    let cb = |x: u32, y: u32| (40 + 16 * x + 80 * y) as u8;
    let cr = |x: u32, y: u32| (200 - 8 * x - 60 * y) as u8;
    let (second, third) = (IMAGE + 0x1000, IMAGE + 0x2000);
    for planes in [2, 3] {
        let mut bench = float_texture(&gpu, 650, |_, _, _| 0.0);
        bench.image = vec![0xee; 0x3000];
        let mut put = |at: u64, value: u8| bench.image[(at - IMAGE) as usize] = value;
        for (x, y) in (0..4).flat_map(|y| (0..8).map(move |x| (x, y))) {
            put(IMAGE + u64::from(64 * y + x), luma(x, y));
        }
        for (x, y) in (0..2).flat_map(|y| (0..4).map(move |x| (x, y))) {
            let at = u64::from(128 * y + if planes == 2 { 2 * x } else { x });
            put(second + at, cb(x, y));
            put(if planes == 2 { second + at + 1 } else { third + at }, cr(x, y));
        }
        let format = if planes == 2 { 0x8e } else { 0x90 };
        let mut words = [0; 16];
        // x, y, z, 1; chroma between two texels across; 8 by 4, rows of 64 and of 128 bytes.
        (words[0], words[1]) = (1 << 7 | 2 << 10 | 5 << 13 | 1 << 16 | format << 22, 8 | 4 << 15);
        (words[2], words[6]) = (64 << 7 | 1 << 29, 128 << 8);
        (words[4], words[5]) = (IMAGE as u32, 1 << 17);
        (words[7], words[9]) = (second as u32, third as u32);
        bench.texture = words;
        let places = [(0u32, 0u32), (5, 2), (4, 3), (7, 1)];
        for (words, (x, y)) in bench.inputs.iter_mut().zip(places) {
            (words[0], words[1]) = (((x as f32 + 0.5) / 8.0).to_bits(), ((y as f32 + 0.5) / 4.0).to_bits());
        }
        // Clamped to the edge; then with chroma between its texels.
        let sample = "saml.base0 (f32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0";
        for (linear, sampler) in [(false, 0), (true, 1 << 5)] {
            (bench.sampler[0], bench.sampler[2]) = (1 << 5 | 1 << 8, sampler);
            let (outputs, _) = bench.run(sample).expect("no fault");
            for (output, (x, y)) in outputs.iter().zip(places) {
                let chroma = |of: &dyn Fn(u32, u32) -> u8| {
                    if !linear {
                        return f32::from(of(x / 2, y / 2)) / 255.0;
                    }
                    // A quarter of a texel before across, at the first one down.
                    let (u, v) = (x as f32 / 2.0 - 0.25, y as f32 / 2.0);
                    let at =
                        |u: f32, v: f32| f32::from(of(u.clamp(0.0, 3.0) as u32, v.clamp(0.0, 1.0) as u32));
                    let row = |v: f32| {
                        let rest = u - u.floor();
                        at(u.floor(), v) * (1.0 - rest) + at(u.floor() + 1.0, v) * rest
                    };
                    let rest = v - v.floor();
                    (row(v.floor()) * (1.0 - rest) + row(v.floor() + 1.0) * rest) / 255.0
                };
                let expected = [f32::from(luma(x, y)) / 255.0, chroma(&cb), chroma(&cr), 1.0];
                for (is, expected) in output.map(f32::from_bits).into_iter().zip(expected) {
                    assert!((is - expected).abs() < 1e-6, "{planes} {linear} {x} {y}: {is} and {expected}");
                }
            }
        }
        bench.texture[3] |= 1 << 28;
        let why = bench.run(sample).expect_err("flags").kind;
        assert_eq!(why, FaultKind::NotEmulated("a YUV image with UBWC"));
    }
}

/// Two texels of luma with one of chroma in four bytes.
#[test]
fn pairs_of_luma_have_one_chroma() {
    let gpu = image_gpu("a630");
    let layout = layout(&gpu, Kind::D2, ImageParams::new(format("G8B8_G8R8_UNORM"), 4, 1));
    let mut bench = float_texture(&gpu, 630, |_, _, _| 0.0);
    bench.image = vec![0; layout.size as usize];
    put(&mut bench.image, &layout, 0, (0, 0, 0), &[255, 51, 0, 102]);
    // What a driver makes of it: Cr, Y, Cb.
    bench.texture = texture(Kind::D2, &layout, [2, 0, 1, 5]);
    bench.inputs[1][0] = 1;
    let (outputs, _) = bench.run("isaml.base0 (f32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0").expect("no fault");
    assert_eq!(outputs[0].map(f32::from_bits), [0.4, 1.0, 0.2, 1.0]);
    assert_eq!(outputs[1].map(f32::from_bits), [0.4, 0.0, 0.2, 1.0]);
}

/// Four samples of a texel, side by side in memory.
#[test]
fn samples_of_a_texel_are_fetched_one_by_one() {
    let gpu = image_gpu("a630");
    for mode in [TileMode::Linear, TileMode::Tile3] {
        let mut params = ImageParams::new(format("R32_UINT"), 24, 8);
        (params.samples, params.tile_mode) = (4, mode);
        let layout = layout(&gpu, Kind::D2, params);
        let mut bench = float_texture(&gpu, 630, |_, _, _| 0.0);
        bench.texture = texture(Kind::D2, &layout, [0, 1, 2, 3]);
        bench.image = vec![0; layout.size as usize];
        let addresser = layout.addresser(0).expect("a level");
        let value = |x: u32, y: u32, sample: u32| 1000 * x + 10 * y + sample;
        for (x, y) in (0..8).flat_map(|y| (0..24).map(move |x| (x, y))) {
            let first = addresser.checked_offset(x, y, 0, 0).expect("inside") as usize;
            for sample in 0..4 {
                let at = first + 4 * sample as usize;
                bench.image[at..at + 4].copy_from_slice(&value(x, y, sample).to_le_bytes());
            }
        }
        let places = [(0, 0, 0), (23, 7, 3), (9, 5, 2), (3, 3, 4)];
        for (words, (x, y, sample)) in bench.inputs.iter_mut().zip(places) {
            words[..3].copy_from_slice(&[x, y, sample]);
        }
        let (outputs, _) = bench.run("isamm.base0 (u32)(x)r8.x, r4.x, s#1, t#0").expect("no fault");
        for (output, (x, y, sample)) in outputs.iter().zip(places) {
            // There is no fifth sample.
            let expected = if sample < 4 { value(x, y, sample) } else { 0 };
            assert_eq!(output[0], expected, "{mode:?} {x} {y} {sample}");
        }
    }
}

/// Vulkan's formula: as many samples along the longer axis as the footprint is longer than wide, each filtered.
#[test]
fn an_anisotropic_filter_is_a_mean_along_the_longer_axis() {
    let gpu = image_gpu("a630");
    let value = |x: u32, y: u32| ((x * 37 + y * 101) % 64) as f32 / 64.0;
    let mut bench = float_texture(&gpu, 630, |level, x, y| if level == 0 { value(x, y) } else { 9.0 });
    // Anisotropic both ways, clamped, up to four samples.
    bench.sampler[0] = 2 << 1 | 2 << 3 | 1 << 5 | 1 << 8 | 2 << 14;
    bench.sampler[1] = 0xfff << 8;
    let (u, v) = (0.53f32, 0.41f32);
    for words in &mut bench.inputs {
        // A place, padding, then how it changes across (x) and down (y): 4 texels and 1.
        words[..8].copy_from_slice(&[u, v, 0.0, 0.0, 4.0 / 8.0, 0.0, 0.0, 1.0 / 8.0].map(f32::to_bits));
    }
    let (outputs, _) = bench.run("samgq.base0 (f32)(x)r8.x, r4.x, s#1, t#0").expect("no fault");
    let linear = |u: f32, v: f32| {
        let fixed = |place: f32| ((place * 8.0 - 0.5) * 256.0).round() / 256.0;
        let (x, y) = (fixed(u), fixed(v));
        let at = |x: f32, y: f32| value(x.clamp(0.0, 7.0) as u32, y.clamp(0.0, 7.0) as u32);
        let row = |y: f32| {
            let rest = x - x.floor();
            at(x.floor(), y) * (1.0 - rest) + at(x.floor() + 1.0, y) * rest
        };
        let rest = y - y.floor();
        row(y.floor()) * (1.0 - rest) + row(y.floor() + 1.0) * rest
    };
    let mean = (1..=4).map(|step| linear(u + 0.5 * (step as f32 / 5.0 - 0.5), v)).sum::<f32>() / 4.0;
    let is = f32::from_bits(outputs[0][0]);
    assert!((is - mean).abs() < 1e-5, "{is} and {mean}");
    // Without the filter the level is that of the longer axis.
    bench.sampler[0] = 1 << 1 | 1 << 3 | 1 << 5 | 1 << 8;
    let (outputs, _) = bench.run("samgq.base0 (f32)(x)r8.x, r4.x, s#1, t#0").expect("no fault");
    assert_eq!(f32::from_bits(outputs[0][0]), 9.0);
}

/// As Vulkan has it: the sampler's limits, then the image's.
#[test]
fn the_least_level_of_an_image_comes_after_the_limits_of_a_sampler() {
    let gpu = image_gpu("a630");
    let mut bench = float_texture(&gpu, 630, |level, _, _| level as f32);
    let sample = "saml.base0 (f32)(x)r8.x, r4.x, r7.x, s#1, t#0";
    let first = |bench: &Bench<'_>| f32::from_bits(bench.run(sample).expect("no fault").0[0][0]);
    // The greatest level that the sampler allows is 0.
    assert_eq!(first(&bench), 0.0);
    bench.texture[6] = 256;
    assert_eq!(first(&bench), 1.0);
    // Half of each.
    (bench.texture[6], bench.sampler[0]) = (128, 1);
    assert_eq!(first(&bench), 0.5);
}

#[test]
fn what_a_shader_asks_of_textures_and_samples() {
    let gpu = image_gpu("a630");
    let info = "getinfo.base0 (u32)(xyzw)r8.x, t#0";
    for (name, channel_type, order) in [
        ("R8G8B8A8_UNORM", 2, 8),
        ("B8G8R8A8_UNORM", 2, 10),
        ("R8G8B8A8_SRGB", 2, 17),
        ("R16G16_SNORM", 1, 3),
        ("R32_SINT", 9, 1),
        ("R16G16B16A16_FLOAT", 13, 8),
        ("B5G6R5_UNORM", 4, 21),
        ("R11G11B10_FLOAT", 15, 6),
        ("R9G9B9E5_FLOAT", 15, 6),
        ("R10G10B10A2_UINT", 16, 8),
    ] {
        let layout = layout(&gpu, Kind::D2, ImageParams::new(format(name), 16, 16));
        let mut bench = storage_bench(&gpu, "R32_UINT", TileMode::Linear);
        bench.texture = texture(Kind::D2, &layout, [0, 1, 2, 3]);
        let (outputs, _) = bench.run(info).unwrap_or_else(|why| panic!("{name}: {why}"));
        assert_eq!(outputs[0], [channel_type, order, 1, 1], "{name}");
    }
    // The order with another swizzle is not known; what was not asked for does not matter.
    let mut bench = storage_bench(&gpu, "R32_UINT", TileMode::Linear);
    let layout = layout(&gpu, Kind::D2, ImageParams::new(format("R8_UNORM"), 16, 16));
    bench.texture = texture(Kind::D2, &layout, [0, 0, 0, 5]);
    let why = bench.run(info).expect_err("an order").kind;
    assert_eq!(why, FaultKind::NotEmulated("the channel order of getinfo with a swizzle"));
    assert_eq!(bench.run("getinfo.base0 (u32)(x)r8.x, t#0").expect("a type").0[0][0], 2);
    // Tiles as in GMEM have an order that nobody else knows.
    bench.texture[0] |= 2;
    let why = bench.run("isaml.base0 (f32)(x)r8.x, r4.x, r7.x, s#1, t#0").expect_err("tiles").kind;
    assert_eq!(why, FaultKind::NotEmulated("an image in TILE6_2 that is not in GMEM"));

    // The four places of four samples, in sixteenths: 6,2 14,6 2,10 10,14; then one that there is not.
    for (fiber, words) in bench.inputs.iter_mut().enumerate() {
        words[0] = [0, 1, 3, 9][fiber];
    }
    let (outputs, _) = bench.run("rgetpos (f32)(xy)r8.x, r4.x").expect("positions");
    let places: Vec<_> = outputs.iter().map(|words| [0, 1].map(|at| f32::from_bits(words[at]))).collect();
    assert_eq!(places, [[-0.125, -0.375], [0.375, -0.125], [0.125, 0.375], [0.0, 0.0]]);
}

#[test]
fn fibers_of_a_quad_see_one_another() {
    let gpu = image_gpu("a740");
    let bench = |operation: &str| {
        let mut bench = storage_bench(&gpu, "R32_UINT", TileMode::Linear);
        bench.gpu_id = 740;
        for (words, value) in bench.inputs.iter_mut().zip([1f32, 4.0, 9.0, 16.0]) {
            words[0] = value.to_bits();
        }
        let (outputs, _) = bench.run(operation).unwrap_or_else(|why| panic!("{operation}: {why}"));
        outputs.into_iter().map(|words| f32::from_bits(words[0])).collect::<Vec<f32>>()
    };
    assert_eq!(bench("dsx (f32)(x)r8.x, r4.x"), [3.0, 3.0, 7.0, 7.0]);
    assert_eq!(bench("dsy (f32)(x)r8.x, r4.x"), [8.0, 12.0, 8.0, 12.0]);
    assert_eq!(bench("dsxpp.1 (x)r8.x, r4.x"), [3.0, 3.0, 7.0, 7.0]);
    assert_eq!(bench("dsypp.1 (x)r8.x, r4.x"), [8.0, 12.0, 8.0, 12.0]);
    assert_eq!(bench("quad_shuffle.horiz (u32)(x)r8.x, r4.x"), [4.0, 1.0, 16.0, 9.0]);
    assert_eq!(bench("quad_shuffle.vert (u32)(x)r8.x, r4.x"), [9.0, 16.0, 1.0, 4.0]);
    assert_eq!(bench("quad_shuffle.diag (u32)(x)r8.x, r4.x"), [16.0, 9.0, 4.0, 1.0]);
}

#[test]
fn a_loaded_uniform_buffer_comes_before_memory() {
    let program = assemble(
        "ldc.offset0.1.imm r1.x, 0, 1
        (sy)(ss)nop
        (rpt5)nop
        stib.b.untyped.1d.u32.1.imm r1.x, r0.x, 0
        end",
        740,
    );
    let mut memory = SimMemory::default();
    memory.map(INPUT, 77u32.to_le_bytes().repeat(4)).expect("free");
    memory.map(OUTPUT, vec![0; 16]).expect("free");
    let buffer = [None, None, Some(INPUT as u32), Some(1 << 17)];
    let loaded = |words: &[Option<u32>]| BindfulTable { address: 0, loaded: words.to_vec() };
    let dispatch = Dispatch {
        state: ShaderState {
            tables: BindfulTables {
                images: loaded(&words_buffer(OUTPUT, 4).map(Some)),
                uniforms: loaded(&buffer),
                ..BindfulTables::default()
            },
            ..ShaderState::default()
        },
        local_size: [4, 1, 1],
        local_id: Some(0),
        ..Dispatch::default()
    };
    run(&program, &dispatch, &mut memory, &Options::default()).expect("no fault");
    assert_eq!(memory.load(OUTPUT, 4).known(), Some(77));
}

#[test]
fn any_descriptor_ends() {
    let gpu = image_gpu("a630");
    let mut random = Lcg(9);
    let operations = [
        "saml.base0 (f32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0",
        "saml.3d.a.base0 (f32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0",
        "samgq.3d.base0 (f32)(xyzw)r8.x, r4.x, s#1, t#0",
        "gather4r.base0 (f32)(xyzw)r8.x, r4.x, s#1, t#0",
        "isaml.3d.base0 (u32)(xyzw)r8.x, r4.x, r7.x, s#1, t#0",
        "getlod.base0 (s32)(xy)r8.x, r4.x, s#1, t#0",
        "ldib.b.typed.3d.f32.4.imm.base0 r8.x, r4.x, 0",
        "stib.b.typed.3d.f32.4.imm.base0 r5.x, r4.x, 0",
    ];
    let (mut ended, mut refused) = (0, 0);
    for round in 0..4000 {
        let mut bench = storage_bench(&gpu, "R8G8B8A8_UNORM", TileMode::Tile3);
        for _ in 0..1 + random.below(6) {
            let at = random.below(16) as usize;
            bench.texture[at] = random.next() << 1 ^ random.next();
        }
        if round % 2 == 0 {
            // A texture that is there, with sizes of any kind.
            (bench.texture[4], bench.texture[5]) = (IMAGE as u32, random.next() & 0x3ffe_0000);
        }
        bench.sampler.iter_mut().take(3).for_each(|word| *word = random.next() << 1 ^ random.next());
        for words in &mut bench.inputs {
            words.iter_mut().for_each(|word| *word = random.next() << 1 ^ random.next());
        }
        match bench.run(operations[round % operations.len()]) {
            Ok(_) => ended += 1,
            Err(fault) => {
                let expected = matches!(fault.kind, FaultKind::NotEmulated(_) | FaultKind::Memory(..));
                assert!(expected, "{fault}");
                refused += 1;
            }
        }
    }
    assert!(ended > 100 && refused > 100, "{ended} ended, {refused} refused");
}
