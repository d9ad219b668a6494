//! Storage images, quads, loaded descriptors, and descriptors that are nonsense.

#[allow(dead_code, reason = "shared with the test of recorded samples")]
mod texture;

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
