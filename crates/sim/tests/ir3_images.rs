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
