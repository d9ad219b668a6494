//! Draws by command streams that are put together here, with small shaders: what is in memory afterwards.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "a benchmark uses other parts of it")]
mod scene;

use cp_rig::{DATA, data, high, low};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::RunEnd;

fn at(image: &[u32], x: u32, y: u32) -> u32 {
    image[(y * SIZE + x) as usize]
}

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    [A6xx, A7xx].into_iter().for_each(|generation| test(Scene::new(&db, generation)));
}

#[test]
fn colours_are_interpolated() {
    each(|mut scene| {
        scene.vertices(&[
            vertex(-1.0, -1.0, 0.0, RED),
            vertex(3.0, -1.0, 0.0, GREEN),
            vertex(-1.0, 3.0, 0.0, BLUE),
        ]);
        let image = scene.draw(TRIANGLES, 3).image();
        for y in 0..SIZE {
            for x in 0..SIZE {
                let along = |at: u32| (f64::from(at) + 0.5) / f64::from(2 * SIZE);
                let (i, j) = (along(x), along(y));
                let expected = [1.0 - i - j, i, j].map(|value| value * 255.0);
                let bytes = at(&image, x, y).to_le_bytes();
                for (byte, expected) in bytes.into_iter().zip(expected) {
                    assert!((f64::from(byte) - expected).abs() < 0.51, "{x},{y}: {bytes:?}");
                }
                assert_eq!(bytes[3], 255);
            }
        }
    });
}

/// The nearer of two rectangles is seen whichever is drawn first; samples that pass are counted.
#[test]
fn depth_and_occlusion() {
    each(|mut scene| {
        let a7xx = scene.stream.gpu.generation() == A7xx;
        let near = strip([-1.0, -1.0], [0.0, 1.0], 0.25, GREEN);
        let far = strip([-0.5, -1.0], [1.0, 1.0], 0.5, BLUE);
        scene.vertices(&[near, far].concat());
        let [base, top] = [low(DATA + DEPTH), high(DATA + DEPTH)];
        // Ones: less than every depth that is drawn is not.
        scene.put(DEPTH, &[1f32.to_bits(); 0x1000]);
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
        // Less, and written.
        scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
        let [base, top] = [low(DATA + RESULTS), high(DATA + RESULTS)];
        scene.set("RB_SAMPLE_COUNT_ADDR", &[base, top]);
        let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
        let zpass = events.value_of("ZPASS_DONE").unwrap() as u32;
        let count = |scene: &mut Scene<'_>, at: u64| match a7xx {
            true => {
                let slot = DATA + RESULTS + at;
                scene.stream.op("EVENT_WRITE7", &[zpass | 1 << 12, low(slot), high(slot)]);
            }
            false => {
                let slot = DATA + RESULTS + at;
                scene.set("RB_SAMPLE_COUNT_ADDR", &[low(slot), high(slot)]);
                scene.stream.op("EVENT_WRITE", &[zpass]);
            }
        };
        scene.draw(STRIP, 4);
        count(&mut scene, 0);
        scene.set("VFD_INDEX_OFFSET", &[4]).draw(STRIP, 4);
        count(&mut scene, 8);
        let image = scene.image();
        assert_eq!([0, 15, 16, 31].map(|x| at(&image, x, 9)), [GREEN8, GREEN8, BLUE8, BLUE8]);
        let counted = [0, 8].map(|at| data(&scene.machine, RESULTS + at));
        assert_eq!(counted, [SIZE * SIZE / 2, SIZE * SIZE]);
    });
}

/// What is rendered in GMEM and stored is what is rendered in memory, also of a bin that does not begin at the corner.
#[test]
fn bins_give_the_same_image() {
    each(|mut scene| {
        let a6xx = scene.stream.gpu.generation() == A6xx;
        scene.vertices(&[
            vertex(-1.0, -0.9, 0.0, RED),
            vertex(0.8, 0.1, 0.0, GREEN),
            vertex(-0.3, 1.0, 0.0, BLUE),
        ]);
        scene.put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
        let plain = scene.draw(TRIANGLES, 3).image();
        scene.put(IMAGE, &[0x1234_5678; (SIZE * SIZE) as usize]);
        let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
        let blit = events.value_of("BLIT").or(events.value_of("CCU_RESOLVE")).unwrap() as u32;
        let event = if a6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
        scene.gmem(1);
        for bin in 0..2 {
            let (first, last) = (bin << 20, (SIZE - 1) | (16 * bin + 15) << 16);
            scene.set("RB_WINDOW_OFFSET", &[first]).set("RB_WINDOW_OFFSET2", &[first]);
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
            scene.set("RB_BLIT_SCISSOR_TL", &[first, last]);
            let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
            scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, 0x30 << 7, base, top, SIZE / 16]);
            scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
            scene.stream.op(event, &[blit]);
            scene.draw(TRIANGLES, 3);
            scene.set("RB_BLIT_INFO", &[0]);
            scene.stream.op(event, &[blit]);
        }
        assert_eq!(scene.image(), plain);
        assert!(plain.iter().any(|texel| *texel != BLUE8) && plain.contains(&BLUE8));
    });
}

/// A restart ends a strip; instances have attributes of their own.
#[test]
fn indices_restart_and_instances_step() {
    each(|mut scene| {
        let left = strip([-1.0, -1.0], [-0.5, 1.0], 0.0, RED);
        let right = strip([0.5, -1.0], [1.0, 1.0], 0.0, RED);
        scene.vertices(&[left, right].concat());
        let indices: Vec<u16> = vec![0, 1, 2, 3, 0xffff, 4, 5, 6, 7, 0xffff];
        let words: Vec<u32> =
            indices.chunks(2).map(|pair| u32::from(pair[0]) | u32::from(pair[1]) << 16).collect();
        scene.put(INDICES, &words);
        scene.set("PC_PRIMITIVE_CNTL_0", &[1]).set("PC_RESTART_INDEX", &[0xffff]);
        let [base, top] = [low(DATA + INDICES), high(DATA + INDICES)];
        scene.stream.op("DRAW_INDX_OFFSET", &[STRIP | 1 << 10, 1, 9, 0, base, top, 10]);
        let image = scene.image();
        assert_eq!([0, 7, 8, 23, 24, 31].map(|x| at(&image, x, 3)), [RED8, RED8, 0, 0, RED8, RED8]);

        // The colour is the instance's: the second one writes over the first.
        scene.vertices(&[left, right].concat());
        scene.put(VERTICES + 16, &RED.map(f32::to_bits)).put(VERTICES + 32 + 16, &GREEN.map(f32::to_bits));
        scene.set(
            "VFD_DECODE[0].INSTR",
            &[1 << 31 | 0x82 << 20, 1, 1 << 31 | 0x82 << 20 | 1 << 17 | 16 << 5, 1],
        );
        let image = scene.draw_instances(STRIP, 2, 4).image();
        assert_eq!([0, 7, 8].map(|x| at(&image, x, 3)), [GREEN8, GREEN8, 0]);
    });
}

/// Fibers that are killed write nothing; what is blended is added.
#[test]
fn killed_fibers_and_blending() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, [0.25, 0.5, 0.0, 1.0]));
        // One half of the pixels, by the lowest bit of the column: coordinates are sixteenths of pixels.
        let source = "(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nshr.b r2.x, r2.x, 4\n(rpt5)nop\nand.b r2.x, r2.x, 1\n(rpt5)nop\n\
                      cmps.u.eq p0.x, r2.x, 0\n(rpt5)nop\nkill p0.x\nend";
        scene.code(FRAGMENT_CODE, source);
        scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
        scene.put(IMAGE, &[0x4040_4040; (SIZE * SIZE) as usize]);
        // Source and destination with a factor of one each.
        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
        let image = scene.draw(STRIP, 4).image();
        for y in 0..SIZE {
            for x in 0..SIZE {
                let expected = if x % 2 == 1 { 0xff40_c080 } else { 0x4040_4040 };
                assert_eq!(at(&image, x, y), expected, "{x},{y}");
            }
        }
    });
}

/// Positions of a strip are written as a list of triangles, as far as they fit.
#[test]
fn stream_out_writes_whole_primitives() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, RED));
        let [base, top] = [low(DATA + RESULTS), high(DATA + RESULTS)];
        // Components 4 to 7 to buffer 0; room for one triangle and a half.
        scene.set("VPC_SO_CNTL", &[1 << 16 | 2]);
        let word = |first: u32| first << 2 | 1 << 11 | (first + 1) << 14 | 1 << 23;
        scene.set("VPC_SO_PROG", &[word(0)]).set("VPC_SO_PROG", &[word(2)]);
        scene.set("VPC_SO[0].BUFFER_BASE", &[base, top, 72, 4, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]).set("VPC_SO_DISABLE", &[0]);
        scene.set("VPC_SO_STREAM_COUNTS", &[low(DATA + RESULTS + 128), high(DATA + RESULTS + 128)]);
        scene.set("PC_RASTER_CNTL", &[4]);
        let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
        let counts = events.value_of("WRITE_PRIMITIVE_COUNTS").unwrap() as u32;
        let event = if scene.stream.gpu.generation() == A6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
        scene.draw(STRIP, 4).stream.op(event, &[counts]);
        let image = scene.image();
        assert!(image.iter().all(|texel| *texel == 0), "nothing is rasterized");
        let written: Vec<f32> =
            (0..18).map(|n| f32::from_bits(data(&scene.machine, RESULTS + 4 * n))).collect();
        let triangle = [-1.0, -1.0, 0.5, 1.0, 1.0, -1.0, 0.5, 1.0, -1.0, 1.0, 0.5, 1.0];
        assert_eq!(written[..12], triangle);
        assert_eq!(written[12..], [0.0; 6]);
        let counted = [0, 8].map(|at| data(&scene.machine, RESULTS + 128 + at));
        assert_eq!(counted, [1, 2], "written and generated");
    });
}

/// Garbage in the registers of draws is no panic and no endless run.
#[test]
fn any_state() {
    let mut seed = 5u64;
    let mut random = || {
        seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (seed >> 33) as u32
    };
    each(|mut scene| {
        let db = Db::builtin();
        let generation = scene.stream.gpu.generation();
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, RED));
        drop(scene);
        let mut done = 0;
        for _ in 0..150 {
            let mut scene = Scene::new(&db, generation);
            scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, RED));
            let names = [
                "VFD_CONTROL_0",
                "VFD_CONTROL_1",
                "VFD_DECODE[0].INSTR",
                "VFD_DEST_CNTL[0].INSTR",
                "VFD_FETCH[0].SIZE",
                "SP_VS_PRIMITIVE_CNTL",
                "SP_VS_OUT[0].REG",
                "SP_VS_VPC_DST[0].REG",
                "VPC_VS_PACK",
                "VPC_VS_CLIP_CNTL",
                "VPC_CNTL_0",
                "GRAS_CL_CNTL",
                "GRAS_CL_VPORT[0].XSCALE",
                "GRAS_SU_CNTL",
                "GRAS_RAS_MSAA_CNTL",
                "RB_DEST_MSAA_CNTL",
                "HLSQ_CONTROL_2_REG",
                "HLSQ_CONTROL_3_REG",
                "HLSQ_CONTROL_4_REG",
                "SP_FS_OUTPUT_CNTL0",
                "SP_FS_OUTPUT_CNTL1",
                "SP_FS_OUTPUT[0].REG",
                "RB_MRT[0].BUF_INFO",
                "RB_MRT[0].PITCH",
                "RB_MRT[0].CONTROL",
                "RB_MRT[0].BLEND_CONTROL",
                "RB_BLEND_CNTL",
                "RB_DEPTH_BUFFER_INFO",
                "RB_DEPTH_CNTL",
                "RB_STENCIL_CONTROL",
                "RB_STENCIL_INFO",
                "RB_BIN_CONTROL",
                "RB_WINDOW_OFFSET",
                "SP_FS_PREFETCH_CNTL",
                "SP_FS_PREFETCH[0].CMD",
                "PC_PRIMITIVE_CNTL_0",
                "PC_PRIMITIVE_CNTL_5",
                "PC_TESS_CNTL",
                "PC_MULTIVIEW_CNTL",
                "VPC_SO_STREAM_CNTL",
                "SP_FS_CTRL_REG0",
                "RB_BLIT_INFO",
                "RB_BLIT_DST_INFO",
                "SP_HS_CONFIG",
                "GRAS_SC_CNTL",
                "GRAS_SU_CONSERVATIVE_RAS_CNTL",
                "GRAS_SAMPLE_CONFIG",
                "RB_RENDER_CONTROL1",
                "RB_SAMPLE_CNTL",
                "PC_MULTIVIEW_MASK",
                "SP_GS_PRIMITIVE_CNTL",
            ];
            for _ in 0..1 + random() % 4 {
                let name = names[random() as usize % names.len()];
                let value =
                    [random(), 1 << (random() % 32), random() & 0xff, u32::MAX][random() as usize % 4];
                scene.set(name, &[value]);
            }
            let primitive = [4, 6, 1, 2, 8, 13, 0x22][random() as usize % 7] | (random() & 3) << 16;
            scene.draw(primitive, 4 + random() % 60);
            match scene.run() {
                RunEnd::Done => done += 1,
                RunEnd::Stopped { .. } | RunEnd::Budget => {}
                other => panic!("{other:?}"),
            }
        }
        assert!(done > 20, "{done}");
    });
}
