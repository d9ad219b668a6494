//! Stages around the rasterizer by draws: interpolation, stream-out, statistics, geometry shaders, tessellation, traces of their fibers.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, data, high, low, register};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::ir3::{FiberRun, SharedFiberLog, lock_log};
use unwedge_sim::adreno::{FiberTrace, FiberWanted};

const BYTES: usize = 0x20000;
/// Code of further stages.
const GEOMETRY_CODE: u64 = 0xe000;
const CONTROL_CODE: u64 = 0xe800;
const EVALUATION_CODE: u64 = 0xf000;
/// Where levels of tessellation are.
const LEVELS: u64 = MORE + 0x10000;
const COMPUTE_CODE: u64 = 0xf800;
const WHITE: [f32; 4] = [1.0; 4];
/// A fragment shader whose colour is white.
const WHITE_FRAGMENTS: &str = "mov.u32u32 r0.z, 0x3f800000
mov.u32u32 r0.w, 0x3f800000
mov.u32u32 r1.x, 0x3f800000
mov.u32u32 r1.y, 0x3f800000
end";

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        scene.more(BYTES);
        test(scene);
    }
}

/// A triangle over the whole target, whose vertices have these w.
fn covering(w: [f32; 3], colours: [[f32; 4]; 3]) -> [Vertex; 3] {
    let places = [[-1.0, -1.0], [3.0, -1.0], [-1.0, 3.0f32]];
    [0, 1, 2].map(|n| {
        let ([x, y], w, [r, g, b, a]) = (places[n], w[n], colours[n]);
        [x * w, y * w, 0.0, w, r, g, b, a]
    })
}

/// Weights of the second and third vertex at a place.
fn weights([x, y]: [f64; 2]) -> [f64; 2] {
    [x, y].map(|at| at / f64::from(2 * SIZE))
}

#[test]
fn smooth_linear_and_flat() {
    each(|mut scene| {
        let w = [1.0f32, 2.0, 4.0];
        scene.vertices(&covering(w, [RED, GREEN, BLUE]));
        // With perspective, then without: another pair of weights.
        for (registers, perspective) in [(0xfcfc_fc00, true), (0xfcfc_00fc, false)] {
            let image = scene.set("HLSQ_CONTROL_3_REG", &[registers]).draw(TRIANGLES, 3).image();
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                let [i, j] = weights([x, y].map(|at| f64::from(at) + 0.5));
                let linear = [1.0 - i - j, i, j];
                let divided = [0, 1, 2].map(|n| linear[n] / f64::from(w[n]));
                let sum: f64 = divided.iter().sum();
                let expected = if perspective { divided.map(|part| part / sum) } else { linear };
                let found = image[(y * SIZE + x) as usize].to_le_bytes();
                for (byte, expected) in found.into_iter().zip(expected) {
                    assert!((f64::from(byte) - expected * 255.0).abs() < 0.51, "{perspective} {x},{y}");
                }
            }
        }
        // The first or the last vertex gives what is flat.
        scene.set("VPC_VARYING_INTERP[0].MODE", &[0x55]).set("HLSQ_CONTROL_3_REG", &[0xfcfc_fc00]);
        for (control, expected) in [(0, RED8), (2, BLUE8)] {
            let image = scene.set("PC_PRIMITIVE_CNTL_0", &[control]).draw(TRIANGLES, 3).image();
            assert!(image.iter().all(|texel| *texel == expected), "{control}");
        }
        // Components that are constants.
        scene.set("VPC_VARYING_INTERP[0].MODE", &[2 | 3 << 2 | 2 << 4 | 3 << 6]);
        assert!(scene.draw(TRIANGLES, 3).image().iter().all(|texel| *texel == GREEN8));
    });
}

/// Outputs of the vertex shader are varyings by their locations, whatever registers they are in.
#[test]
fn outputs_are_linked_by_location() {
    each(|mut scene| {
        scene.vertices(&covering([1.0; 3], [[0.2, 0.4, 0.6, 0.8]; 3]));
        // Red and green go to components 2 and 3, blue and alpha to 0 and 1, the position to 4.
        scene.set("SP_VS_PRIMITIVE_CNTL", &[3]);
        scene.set("SP_VS_OUT[0].REG", &[4 | 3 << 8 | 0xf << 24, 6 | 3 << 8]);
        scene.set("SP_VS_VPC_DST[0].REG", &[2 | 4 << 8]);
        let image = scene.draw(TRIANGLES, 3).image();
        let expected = u32::from_le_bytes([153, 204, 51, 102]);
        assert!(image.iter().all(|texel| *texel == expected), "{:x}", image[0]);
    });
}

/// At the centre of the pixel, at the first covered sample, at each sample.
#[test]
fn where_values_are_taken() {
    const FOUR: [[f64; 2]; 4] = [[6.0, 2.0], [14.0, 6.0], [2.0, 10.0], [10.0, 14.0]];
    each(|mut scene| {
        for name in ["GRAS_RAS_MSAA_CNTL", "GRAS_DEST_MSAA_CNTL", "RB_RAS_MSAA_CNTL", "RB_DEST_MSAA_CNTL"] {
            scene.set(name, &[2]);
        }
        scene.set("RB_MRT[0].PITCH", &[SIZE / 4, SIZE * SIZE / 4, low(MORE), high(MORE), 0]);
        // Up to the middle of column 20: its first and third sample are covered. Red goes from 0 to 1 across the target.
        let right = 41.0 / 32.0 - 1.0;
        let mut vertices = strip([-1.0, -1.0], [right, 1.0], 0.0, WHITE);
        vertices.iter_mut().for_each(|vertex| vertex[4] = (vertex[0] + 1.0) / 2.0);
        scene.vertices(&vertices);
        let cases = [
            ("pixel", [0xfcfc_fc00, NONE], false),
            ("centroid", [0xfc00_fcfc, NONE], false),
            ("sample", [NONE, 0xfcfc_fc00], true),
        ];
        for (name, registers, per_sample) in cases {
            (0..0x4000).step_by(4).for_each(|at| scene.write(MORE + at, 0));
            scene.set("HLSQ_CONTROL_3_REG", &registers).set("RB_SAMPLE_CNTL", &[per_sample.into()]);
            scene.draw(STRIP, 4).done();
            for (x, covered) in [(7u32, 0..4), (20, 0..4)] {
                for n in covered.filter(|n| x == 7 || [0, 2].contains(n)) {
                    let place = match name {
                        "sample" => FOUR[n as usize][0],
                        "centroid" if x == 20 => FOUR[0][0],
                        _ => 8.0,
                    };
                    let expected = (f64::from(x) + place / 16.0) / f64::from(SIZE) * 255.0;
                    let found = scene.read(MORE + u64::from(((9 * SIZE + x) * 4 + n) * 4)) & 0xff;
                    assert!((f64::from(found) - expected).abs() < 0.51, "{name} {x} {n}: {found}");
                }
            }
        }
    });
}

fn stream_word(first: u32, buffer: u32, second: bool) -> u32 {
    let half = |offset: u32| buffer | offset << 2 | 1 << 11;
    half(first) | if second { half(first + 1) << 12 } else { 0 }
}

/// Components go to two buffers; when one of them is full, nothing goes to the other either.
#[test]
fn stream_out_to_several_buffers() {
    each(|mut scene| {
        let vertices: Vec<Vertex> =
            (0..6).map(|n| vertex(n as f32, 0.5, 0.0, [10.0 + n as f32, 2.0, 0.0, 1.0])).collect();
        scene.vertices(&vertices).set("PC_RASTER_CNTL", &[4]).set("VPC_SO_DISABLE", &[0]);
        scene.set("VPC_SO_CNTL", &[1 << 16]);
        // Red and green to buffer 1, the position's x and y to buffer 0.
        for word in [stream_word(0, 1, true), 0, stream_word(0, 0, true)] {
            scene.set("VPC_SO_PROG", &[word]);
        }
        let second = MORE + 0x1000;
        // Room for six vertices, and for four of twelve bytes.
        scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), 48, 2, 0]);
        scene.set("VPC_SO[1].BUFFER_BASE", &[low(second), high(second), 48, 3, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 3 | 1 << 15]);
        let counts = DATA + RESULTS;
        scene.set("VPC_SO_STREAM_COUNTS", &[low(counts), high(counts)]);
        for n in 0..2u64 {
            let place = DATA + RESULTS + 0x100 + 4 * n;
            scene.set(&format!("VPC_SO[{n}].FLUSH_BASE"), &[low(place), high(place)]);
        }
        scene.draw(2, 6).event("WRITE_PRIMITIVE_COUNTS").event("FLUSH_SO_0").event("FLUSH_SO_1").done();
        let floats = |at: u64, count: u64| -> Vec<f32> {
            (0..count).map(|n| f32::from_bits(scene.read(at + 4 * n))).collect()
        };
        assert_eq!(floats(MORE, 12), [0.0, 0.5, 1.0, 0.5, 2.0, 0.5, 3.0, 0.5, 0.0, 0.0, 0.0, 0.0]);
        assert_eq!(floats(second, 12), [10.0, 2.0, 0.0, 11.0, 2.0, 0.0, 12.0, 2.0, 0.0, 13.0, 2.0, 0.0]);
        assert_eq!([0, 8].map(|at| data(&scene.machine, RESULTS + at)), [2, 3], "written and generated");
        let unit = if scene.stream.gpu.generation() == A6xx { 4 } else { 1 };
        assert_eq!([0, 4].map(|at| data(&scene.machine, RESULTS + 0x100 + at)), [32 / unit, 48 / unit]);
    });
}

/// Statistics are counted between their events.
#[test]
fn statistics_of_the_pipeline() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        scene.draw(STRIP, 4).event("START_PRIMITIVE_CTRS").event("START_FRAGMENT_CTRS").draw(STRIP, 4);
        scene.event("STOP_PRIMITIVE_CTRS").event("STOP_FRAGMENT_CTRS").draw(STRIP, 4).done();
        let first = scene.stream.gpu.reg_offset("RBBM_PRIMCTR_0_LO").unwrap();
        let counts: Vec<u32> = (0..10).map(|n| register(&scene.machine, first + 2 * n)).collect();
        // Vertices of primitives, primitives, vertex shaders, none of tessellation and geometry shaders, clipping, fragments.
        assert_eq!(counts, [6, 2, 4, 0, 0, 0, 0, 2, 2, SIZE * SIZE]);
    });
}

fn stage(scene: &mut Scene<'_>, name: &str, at: u64, lines: &[String]) {
    scene.code(at, &lines.join("\n"));
    scene.set(&format!("SP_{name}_OBJ_START"), &[low(DATA + at), high(DATA + at)]);
    scene.set(&format!("SP_{name}_INSTRLEN"), &[lines.len().div_ceil(16) as u32]);
    scene.set(&format!("SP_{name}_CONFIG"), &[1 << 8]);
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
}

/// A stage puts out its colour from `r2` and its position from `r1`.
fn outputs(scene: &mut Scene<'_>, name: &str, flags: u32) {
    scene.set(&format!("SP_{name}_PRIMITIVE_CNTL"), &[2 | flags << 6]);
    scene.set(&format!("SP_{name}_OUT[0].REG"), &[8 | 0xf << 8 | 4 << 16 | 0xf << 24]);
    scene.set(&format!("SP_{name}_VPC_DST[0].REG"), &[4 << 8]);
    scene.set(&format!("VPC_{name}_PACK"), &[8 | 4 << 8 | 0xff << 16]);
    scene.set(&format!("VPC_{name}_CLIP_CNTL"), &[0x00ff_ff00]);
    scene.set(&format!("VPC_{name}_LAYER_CNTL"), &[0xffff]);
}

/// The end of a stage before a geometry shader: it stores position and colour for it, where its header, in this register, says.
fn store_for_geometry(header: &str) -> Vec<String> {
    lines(&format!(
        "and.b r3.x, {header}, 63
         shl.b r3.x, r3.x, 3
         shr.b r3.y, {header}, 6
         and.b r3.y, r3.y, 31
         add.u r3.x, r3.x, r3.y
         shl.b r3.x, r3.x, 5
         stlw.u32 l[r3.x], r1.x, 4
         stlw.u32 l[r3.x+16], r2.x, 4
         chmask
         chsh
         end"
    ))
}

/// Primitives that a geometry shader makes something of, of at most eight vertices. Those that it puts out are numbered in `r3.y`,
/// position and colour of the first vertex are in `r1` and `r2`, flags are those of `r4.x`.
fn geometry(scene: &mut Scene<'_>, code: &str, vertices: u32, invocations: u32, output: u32) {
    stage(scene, "VS", VERTEX_CODE, &store_for_geometry("r0.x"));
    scene.set("VFD_DEST_CNTL[0].INSTR", &[0xf | 4 << 4, 0xf | 8 << 4]);
    let begin = "and.b r3.x, r0.x, 63
        shl.b r3.x, r3.x, 8
        ldlw.u32 r1.x, l[r3.x], 4
        ldlw.u32 r2.x, l[r3.x+16], 4
        shr.b r3.y, r0.x, 16
        shr.b r3.x, r0.x, 11
        and.b r3.x, r3.x, 31";
    stage(scene, "GS", GEOMETRY_CODE, &[lines(begin), lines(code), lines("end")].concat());
    scene.set("VFD_CONTROL_1", &[0xfc01_fcfc]).set("VFD_CONTROL_5", &[0xfc00]);
    scene.set("PC_PRIMITIVE_CNTL_5", &[(vertices - 1) | (invocations - 1) << 10 | output << 16]);
    outputs(scene, "GS", 16);
}

/// The initiator of a draw with a geometry shader.
const POINTS_TO_GEOMETRY: u32 = 1 | 1 << 16;

/// Each point becomes a square of a quarter of the target, by each invocation at another place.
#[test]
fn geometry_shaders_make_strips() {
    each(|mut scene| {
        scene.vertices(&[vertex(-1.0, -1.0, 0.0, RED), vertex(0.0, -1.0, 0.0, GREEN)]);
        let code = "and.b r3.z, r3.y, 1
            shr.b r3.w, r3.y, 1
            add.u r3.w, r3.w, r3.x
            (rpt1)cov.u32f32 r3.z, (r)r3.z
            add.f r1.x, r1.x, r3.z
            add.f r1.y, r1.y, r3.w
            cmps.u.eq r4.x, r3.y, 0
            shl.b r4.x, r4.x, 2";
        geometry(&mut scene, code, 4, 2, 2);
        scene.event("START_PRIMITIVE_CTRS");
        let image = scene.draw(POINTS_TO_GEOMETRY, 2).image();
        for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
            let expected = if x < SIZE / 2 { RED8 } else { GREEN8 };
            assert_eq!(image[(y * SIZE + x) as usize], expected, "{x},{y}");
        }
        let first = scene.stream.gpu.reg_offset("RBBM_PRIMCTR_0_LO").unwrap();
        let counts = [5, 6].map(|n| register(&scene.machine, first + 2 * n));
        assert_eq!(counts, [4, 8], "invocations and primitives");
    });
}

/// Vertices of two streams go to buffers of their own, and are counted apart.
#[test]
fn streams_of_a_geometry_shader() {
    each(|mut scene| {
        scene.vertices(&[vertex(5.0, 0.0, 0.0, RED), vertex(6.0, 0.0, 0.0, GREEN)]);
        // Even vertices go to stream 0, odd ones to stream 1; x is that of the point and a tenth of the number.
        let code = "and.b r4.x, r3.y, 1
            cov.u32f32 r3.y, r3.y
            mul.f r3.y, r3.y, (0.5)
            add.f r1.x, r1.x, r3.y";
        geometry(&mut scene, code, 3, 1, 0);
        scene.set("PC_RASTER_CNTL", &[4]).set("VPC_SO_DISABLE", &[0]);
        scene.set("VPC_SO_CNTL", &[1 << 16]);
        for word in [0, 0, stream_word(0, 0, false)] {
            scene.set("VPC_SO_PROG", &[word]);
        }
        scene.set("VPC_SO_CNTL", &[64]);
        for word in [0, 0, stream_word(0, 1, false)] {
            scene.set("VPC_SO_PROG", &[word]);
        }
        let second = MORE + 0x1000;
        scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), 64, 1, 0]);
        scene.set("VPC_SO[1].BUFFER_BASE", &[low(second), high(second), 64, 1, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 2 << 3 | 3 << 15]);
        let counts = DATA + RESULTS;
        scene.set("VPC_SO_STREAM_COUNTS", &[low(counts), high(counts)]);
        scene.draw(POINTS_TO_GEOMETRY, 2).event("WRITE_PRIMITIVE_COUNTS").done();
        let floats = |at: u64| [0, 1, 2, 3, 4].map(|n| f32::from_bits(scene.read(at + 4 * n)));
        assert_eq!(floats(MORE), [5.0, 6.0, 6.0, 7.0, 0.0]);
        assert_eq!(floats(second), [5.5, 6.5, 0.0, 0.0, 0.0]);
        let counted = [0, 8, 16, 24].map(|at| data(&scene.machine, RESULTS + at));
        assert_eq!(counted, [4, 4, 2, 2], "written and generated of each stream");
    });
}

/// Geometry shaders get adjacent vertices, too, in the order of the API.
#[test]
fn adjacent_vertices_reach_geometry_shaders() {
    // Vertices of the triangles of a strip, each followed by the one across the edge to the next: first, middle and last ones, by
    // the table of the API.
    let strip = |triangles: u32| -> Vec<u32> {
        let of = |i: u32| {
            let before = if i == 0 { 1 } else { 2 * i - 2 };
            let after = if i + 1 == triangles { 2 * i + 5 } else { 2 * i + 6 };
            match i % 2 {
                0 => [2 * i, before, 2 * i + 2, after, 2 * i + 4, 2 * i + 3],
                _ => [2 * i + 2, before, 2 * i, 2 * i + 3, 2 * i + 4, after],
            }
        };
        (0..triangles).flat_map(of).collect()
    };
    let lines = |count: u32| -> Vec<u32> { (0..count).flat_map(|i| [i, i + 1, i + 2, i + 3]).collect() };
    let cases: [(u32, u32, u32, Vec<u32>); 7] = [
        (10, 12, 4, (0..12).collect()),
        (10, 11, 4, (0..8).collect()),
        (11, 7, 4, lines(4)),
        (12, 18, 6, (0..18).collect()),
        (13, 6, 6, strip(1)),
        (13, 8, 6, strip(2)),
        (13, 14, 6, strip(5)),
    ];
    each(|mut scene| {
        let vertices: Vec<Vertex> = (0..18).map(|n| vertex(n as f32, 0.0, 0.0, RED)).collect();
        scene.vertices(&vertices);
        // The vertex of this number of the primitive is put out as a point.
        let code = "and.b r4.y, r0.x, 63
            shl.b r4.y, r4.y, 3
            add.u r4.y, r4.y, r3.y
            shl.b r4.y, r4.y, 5
            ldlw.u32 r1.x, l[r4.y], 4
            mov.u32u32 r4.x, 0";
        for (primitive, count, size, expected) in &cases {
            geometry(&mut scene, code, *size, 1, 0);
            scene.set("PC_RASTER_CNTL", &[4]).set("VPC_SO_DISABLE", &[0]).set("VPC_SO_CNTL", &[1 << 16]);
            for word in [0, 0, stream_word(0, 0, false)] {
                scene.set("VPC_SO_PROG", &[word]);
            }
            (0..128).for_each(|at| scene.write(MORE + 4 * at, 0xbf80_0000));
            scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), 0x200, 1, 0]);
            scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]);
            scene.draw(*primitive | 1 << 16, *count).done();
            let found: Vec<f32> = (0..128).map(|at| f32::from_bits(scene.read(MORE + 4 * at))).collect();
            let found: Vec<u32> = found.into_iter().take_while(|x| *x >= 0.0).map(|x| x as u32).collect();
            assert_eq!(&found, expected, "{primitive} {count}");
        }
    });
}

/// The beginning of an evaluation shader: the position is the place in the domain, over the target; the colour is a quarter of white.
fn domain_over_target() -> Vec<String> {
    let (one, quarter) = (1f32.to_bits(), 0.25f32.to_bits());
    lines(&format!(
        "add.f r1.x, r0.y, r0.y
         add.f r1.y, r0.z, r0.z
         add.f r1.x, r1.x, (neg)(1.0)
         add.f r1.y, r1.y, (neg)(1.0)
         mov.u32u32 r1.z, 0
         mov.u32u32 r1.w, 0x{one:x}
         mov.u32u32 r2.x, 0x{quarter:x}
         mov.u32u32 r2.y, 0x{quarter:x}
         mov.u32u32 r2.z, 0x{quarter:x}
         mov.u32u32 r2.w, 0x{quarter:x}"
    ))
}

/// Patches of one point whose levels are given: the evaluation shader puts the domain over the target.
fn tessellation(scene: &mut Scene<'_>, levels: &[f32], spacing: u32, output: u32) {
    stage(scene, "VS", VERTEX_CODE, &lines("chmask\nchsh\nend"));
    let stride = 4 * (1 + levels.len());
    let mut control = vec![
        format!("mov.u32u32 r3.z, {stride}"),
        "mull.u r3.x, r0.y, r3.z".to_owned(),
        format!("mov.u32u32 r3.y, 0x{:x}", high(LEVELS)),
        format!("mov.u32u32 r3.z, 0x{:x}", low(LEVELS) + 4),
        "add.u r3.x, r3.x, r3.z".to_owned(),
    ];
    for (n, level) in levels.iter().enumerate() {
        control.push(format!("mov.u32u32 r2.x, 0x{:x}", level.to_bits()));
        control.push(format!("stg.u32 g[r3.x+{}], r2.x, 1", 4 * n));
    }
    control.push("end".to_owned());
    stage(scene, "HS", CONTROL_CODE, &control);
    stage(scene, "DS", EVALUATION_CODE, &[domain_over_target(), lines("end")].concat());
    scene.set("VFD_DEST_CNTL[0].INSTR", &[0xf | 4 << 4, 0xf | 8 << 4]);
    // Header, number of the patch in the buffers, number of the patch in the draw.
    scene.set("VFD_CONTROL_1", &[0xfc02_fcfc, 1, 0x0201_00fc, 0xfc]);
    scene.set("PC_TESS_CNTL", &[spacing | output << 2]).set("PC_TESS_NUM_VERTEX", &[1]);
    scene.set("PC_TESSFACTOR_ADDR", &[low(LEVELS), high(LEVELS)]);
    outputs(scene, "DS", 0xfc);
}

/// The initiator of patches of one point: 0 quads, 1 triangles, 2 lines.
fn patches(domain: u32) -> u32 {
    0x20 | domain << 12 | 1 << 17
}

/// Primitives cover the domain once, whatever its levels are.
#[test]
fn domains_are_covered_once() {
    each(|mut scene| {
        scene.vertices(&[vertex(0.0, 0.0, 0.0, WHITE)]);
        let uneven = [
            [1.0, 1.0, 1.0, 1.0, 1.0, 1.0],
            [2.5, 3.0, 5.2, 1.0, 4.0, 3.3],
            [7.0, 2.0, 3.5, 6.0, 2.0, 9.0f32],
        ];
        for (domain, outer, inner) in [(0, 4, 2), (1, 3, 1)] {
            for levels in uneven {
                let levels: Vec<f32> = levels[..outer].iter().chain(&levels[4..4 + inner]).copied().collect();
                for spacing in [0, 2, 3] {
                    for output in [2, 3] {
                        tessellation(&mut scene, &levels, spacing, output);
                        // Source and destination are added.
                        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
                        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
                        let image = scene.draw(patches(domain), 1).image();
                        for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                            let texel = image[(y * SIZE + x) as usize];
                            // The diagonal is an edge.
                            let expected = match domain {
                                0 => Some(true),
                                _ if x + y + 1 == SIZE => None,
                                _ => Some(x + y + 1 < SIZE),
                            };
                            let Some(covered) = expected else { continue };
                            let expected = if covered { 0x4040_4040 } else { 0 };
                            assert_eq!(texel, expected, "{domain} {levels:?} {spacing} {output} {x},{y}");
                        }
                    }
                }
            }
        }
    });
}

/// How many primitives levels give, by domain, spacing and output; a level of zero drops the patch.
#[test]
fn numbers_of_primitives() {
    each(|mut scene| {
        scene.vertices(&[vertex(0.0, 0.0, 0.0, WHITE), vertex(0.0, 0.0, 0.0, WHITE)]);
        scene.set("PC_RASTER_CNTL", &[4]).set("VPC_SO_DISABLE", &[0]).set("VPC_SO_CNTL", &[1 << 16]);
        scene.set("VPC_SO_PROG", &[stream_word(0, 0, false)]);
        scene.set("VPC_SO[0].BUFFER_BASE", &[low(MORE), high(MORE), 0x8000, 1, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]);
        let counts = DATA + RESULTS;
        scene.set("VPC_SO_STREAM_COUNTS", &[low(counts), high(counts)]);
        let cases: [(u32, &[f32], u32, u32, u32); 9] = [
            // Four segments along each side: two triangles of each square, or their corners.
            (0, &[4.0; 6], 0, 2, 32),
            (0, &[4.0; 6], 0, 0, 25),
            // 2.5 are three segments of odd spacing, four of even, and three of equal.
            (0, &[2.5; 6], 2, 2, 18),
            (0, &[2.5; 6], 3, 2, 32),
            (0, &[2.5; 6], 0, 2, 18),
            (1, &[1.0; 4], 0, 3, 1),
            (1, &[2.0; 4], 0, 3, 6),
            // Three lines of four segments.
            (2, &[3.0, 4.0], 0, 1, 12),
            (0, &[4.0, 0.0, 4.0, 4.0, 4.0, 4.0], 0, 2, 0),
        ];
        let mut before = 0;
        for (domain, levels, spacing, output, expected) in cases {
            tessellation(&mut scene, levels, spacing, output);
            scene.set("VPC_SO[0].BUFFER_OFFSET", &[0]);
            scene.draw(patches(domain), 2).event("WRITE_PRIMITIVE_COUNTS").done();
            let generated = data(&scene.machine, RESULTS + 8);
            assert_eq!(generated - before, 2 * expected, "{domain} {levels:?} {spacing} {output}");
            before = generated;
        }
    });
}

/// [`tessellation`] into a geometry shader, which doubles the colour of each vertex of each triangle.
fn tessellation_into_geometry(scene: &mut Scene<'_>, levels: &[f32], spacing: u32, output: u32) {
    tessellation(scene, levels, spacing, output);
    // The header is in r0.w, the place in the domain in r0.y and r0.z.
    stage(scene, "DS", EVALUATION_CODE, &[domain_over_target(), store_for_geometry("r0.w")].concat());
    let code = "and.b r3.x, r0.w, 63
        shl.b r3.x, r3.x, 3
        shr.b r3.y, r0.w, 16
        add.u r3.x, r3.x, r3.y
        shl.b r3.x, r3.x, 5
        ldlw.u32 r1.x, l[r3.x], 4
        ldlw.u32 r2.x, l[r3.x+16], 4
        add.f r2.x, r2.x, r2.x
        add.f r2.y, r2.y, r2.y
        add.f r2.z, r2.z, r2.z
        add.f r2.w, r2.w, r2.w
        cmps.u.eq r4.x, r3.y, 0
        shl.b r4.x, r4.x, 2
        end";
    stage(scene, "GS", GEOMETRY_CODE, &lines(code));
    scene.set("VFD_CONTROL_5", &[0xfc03]).set("PC_PRIMITIVE_CNTL_5", &[2 | 2 << 16]);
    outputs(scene, "GS", 16);
}

/// Each triangle of the tessellator goes through a geometry shader: the domain is still covered once, in the colour that the geometry
/// shader gives.
#[test]
fn tessellation_goes_on_to_geometry_shaders() {
    each(|mut scene| {
        scene.vertices(&[vertex(0.0, 0.0, 0.0, WHITE)]);
        // The last one makes more primitives than a wave has.
        let cases: [(u32, &[f32], u32, u64); 4] = [
            (0, &[1.0; 6], 0, 2),
            (0, &[2.5, 3.0, 5.2, 1.0, 4.0, 3.3], 2, 0),
            (1, &[7.0, 2.0, 3.5, 9.0], 3, 0),
            (0, &[16.0; 6], 0, 512),
        ];
        for (domain, levels, spacing, triangles) in cases {
            tessellation_into_geometry(&mut scene, levels, spacing, 2);
            // Source and destination are added.
            scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            let first = scene.stream.gpu.reg_offset("RBBM_PRIMCTR_0_LO").unwrap();
            let counts = |scene: &Scene<'_>| {
                [3, 5, 6, 7, 8].map(|n| u64::from(register(&scene.machine, first + 2 * n)))
            };
            let before = counts(&scene);
            scene
                .event("START_PRIMITIVE_CTRS")
                .draw(patches(domain) | 1 << 16, 1)
                .event("STOP_PRIMITIVE_CTRS");
            let image = scene.image();
            let after = counts(&scene);
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                // The diagonal is an edge.
                let covered = match domain {
                    0 => true,
                    _ if x + y + 1 == SIZE => continue,
                    _ => x + y + 1 < SIZE,
                };
                let expected = if covered { 0x8080_8080 } else { 0 };
                assert_eq!(image[(y * SIZE + x) as usize], expected, "{domain} {levels:?} {x},{y}");
            }
            let [patches, invocations, made, clip_in, clip_out] =
                [0, 1, 2, 3, 4].map(|n| after[n] - before[n]);
            assert_eq!((patches, made), (1, clip_in), "{levels:?}");
            assert_eq!(clip_in, clip_out, "{levels:?}");
            if triangles != 0 {
                assert_eq!((invocations, made), (triangles, triangles), "{levels:?}");
            }
        }
    });
}

/// A primitive that is clipped away, or culled by its distances, does not leave clipping. One that is partly outside does, and so does
/// one whose face is culled: that comes after clipping.
#[test]
fn primitives_that_leave_clipping() {
    each(|mut scene| {
        let first = scene.stream.gpu.reg_offset("RBBM_PRIMCTR_0_LO").unwrap();
        let covering = covering([1.0; 3], [WHITE; 3]);
        let moved = |by: [f32; 3]| {
            covering.map(|mut vertex| {
                (0..3).for_each(|axis| vertex[axis] += by[axis]);
                vertex
            })
        };
        // The distance is red.
        let far_away = covering.map(|[x, y, z, w, r, g, b, a]| [x * 1e6, y * 1e6, z, w, r, g, b, a]);
        let distance = |of: [f32; 3]| {
            let mut vertices = covering;
            vertices.iter_mut().zip(of).for_each(|(vertex, of)| vertex[4] = of);
            vertices
        };
        let (clips, culls) = (1, 1 << 8);
        // Vertices, distances that count, faces that are culled; whether it leaves clipping, whether it is seen.
        let cases = [
            ("inside", covering, 0, 0, true, true),
            ("beyond the guard band", far_away, 0, 0, true, true),
            ("beside", moved([2.5, 0.0, 0.0]), 0, 0, false, false),
            ("above", moved([0.0, -5.0, 0.0]), 0, 0, false, false),
            ("before the near plane", moved([0.0, 0.0, -0.5]), 0, 0, false, false),
            ("behind the far plane", moved([0.0, 0.0, 1.5]), 0, 0, false, false),
            ("some distances clip", distance([1.0, -1.0, -1.0]), clips, 0, true, true),
            ("all distances clip", distance([-1.0, -2.0, -3.0]), clips, 0, false, false),
            ("some distances cull", distance([1.0, -1.0, -1.0]), culls, 0, true, true),
            ("all distances cull", distance([-1.0, -2.0, -3.0]), culls, 0, false, false),
            ("distances do not count", distance([-1.0, -2.0, -3.0]), 0, 0, true, true),
            ("both faces are culled", covering, 0, 3, true, false),
        ];
        scene.set("VPC_VS_CLIP_CNTL", &[0xff << 16 | 1]);
        scene.code(FRAGMENT_CODE, WHITE_FRAGMENTS);
        for (name, vertices, distances, faces, leaves, seen) in cases {
            scene.vertices(&vertices).set("GRAS_VS_CL_CNTL", &[distances]);
            scene.set("GRAS_SU_CNTL", &[2 << 3 | 1 << 13 | faces]).put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            let counts = |scene: &Scene<'_>| [7, 8].map(|n| register(&scene.machine, first + 2 * n));
            let before = counts(&scene);
            scene.event("START_PRIMITIVE_CTRS").draw(TRIANGLES, 3).event("STOP_PRIMITIVE_CTRS");
            let image = scene.image();
            let after = counts(&scene);
            assert_eq!([after[0] - before[0], after[1] - before[1]], [1, u32::from(leaves)], "{name}");
            assert_eq!(image.iter().any(|texel| *texel != 0), seen, "{name}");
        }
    });
}

/// Each of four clip distances clips, those of vertex shaders and those of geometry shaders.
#[test]
fn distances_are_those_of_the_last_stage() {
    each(|mut scene| {
        let shown = |image: &[u32]| -> Vec<u32> {
            (0..SIZE).filter(|x| image[(5 * SIZE + x) as usize] != 0).collect()
        };
        let left: Vec<u32> = (0..SIZE / 2).collect();
        scene.code(FRAGMENT_CODE, WHITE_FRAGMENTS);
        for bit in 0..4 {
            let mut vertices = strip([-1.0, -1.0], [1.0, 1.0], 0.0, [2.0; 4]);
            vertices.iter_mut().for_each(|vertex| vertex[4 + bit] = -vertex[0]);
            scene.vertices(&vertices).put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            scene.set("VPC_VS_CLIP_CNTL", &[0xff << 16 | 0xf]).set("GRAS_VS_CL_CNTL", &[0xf]);
            assert_eq!(shown(&scene.draw(STRIP, 4).image()), left, "{bit}");
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]).set("GRAS_VS_CL_CNTL", &[0xf & !(1 << bit)]);
            assert_eq!(shown(&scene.draw(STRIP, 4).image()).len(), SIZE as usize, "without {bit}");
        }
        // A square over the target from the point in its corner, whose third distance goes from 1 to -1.
        scene.vertices(&[vertex(-1.0, -1.0, 0.0, [2.0; 4])]);
        let code = "and.b r3.z, r3.y, 1
            shr.b r3.w, r3.y, 1
            (rpt1)cov.u32f32 r3.z, (r)r3.z
            (rpt1)add.f r3.z, (r)r3.z, (r)r3.z
            add.f r1.x, r1.x, r3.z
            add.f r1.y, r1.y, r3.w
            add.f r2.z, (neg)r3.z, (1.0)
            cmps.u.eq r4.x, r3.y, 0
            shl.b r4.x, r4.x, 2";
        geometry(&mut scene, code, 4, 1, 2);
        scene.set("VPC_GS_CLIP_CNTL", &[0xff << 16 | 0xf]);
        for (control, expected) in [(4, SIZE / 2), (4 << 8, SIZE), (0, SIZE)] {
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            // Those of the vertex shader do not count.
            scene.set("GRAS_VS_CL_CNTL", &[0xf]).set("GRAS_GS_CL_CNTL", &[control]);
            let image = scene.draw(POINTS_TO_GEOMETRY, 1).image();
            assert_eq!(shown(&image), (0..expected).collect::<Vec<u32>>(), "{control:x}");
        }
    });
}

/// The fibers that are wanted of the next draw or dispatch, as they are logged.
fn traced(scene: &mut Scene<'_>, wanted: FiberWanted, go: impl FnOnce(&mut Scene<'_>)) -> Vec<FiberRun> {
    let log = SharedFiberLog::default();
    let work = scene.machine.work_done();
    scene.machine.fiber_trace = Some(FiberTrace { work, wanted, log: SharedFiberLog::clone(&log) });
    go(scene);
    scene.done();
    scene.machine.fiber_trace = None;
    std::mem::take(&mut lock_log(&log).runs)
}

/// The value that a run begins with, or has after its last write.
fn value_of(run: &FiberRun, name: &str) -> Option<u32> {
    let values = run.starts.iter().chain(run.steps.iter().flat_map(|step| &step.writes));
    values.filter(|(register, _)| register.to_string() == name).map(|(_, value)| *value).next_back()
}

/// Fibers of the stages between vertex and fragment shader, with the registers that they begin with and write.
#[test]
fn fibers_of_every_stage_are_traced() {
    each(|mut scene| {
        scene.vertices(&[vertex(0.0, 0.0, 0.0, WHITE), vertex(0.0, 0.0, 0.0, WHITE)]);
        tessellation_into_geometry(&mut scene, &[1.0; 6], 0, 2);
        // Two patches in one draw; the second one's fibers.
        let trace = |scene: &mut Scene<'_>, wanted| {
            traced(scene, wanted, |scene| {
                scene.draw(patches(0) | 1 << 16, 2);
            })
        };
        let runs = trace(&mut scene, FiberWanted::Hull { patch: 1, vertex: 0 });
        let [run] = &runs[..] else { panic!("{runs:?}") };
        // Five instructions for the address, two for each of six levels, end.
        assert_eq!((run.stage, run.steps.len()), ("tessellation control", 5 + 12 + 1));
        let place = |run: &FiberRun| value_of(run, "r0.y");
        assert_eq!(place(run), Some(1), "the place of the patch");
        assert_eq!(value_of(run, "r3.x"), Some(low(LEVELS) + 4 + 28), "the address of its levels");
        let address = &run.steps[1].reads;
        assert!(address.iter().any(|(register, value)| register.to_string() == "r3.z" && *value == 28));
        assert_eq!(trace(&mut scene, FiberWanted::Hull { patch: 2, vertex: 0 }), []);
        let mut corners = Vec::new();
        for point in 0..4 {
            let runs = trace(&mut scene, FiberWanted::Domain { patch: 1, point });
            assert!(!runs.is_empty(), "{point}");
            for run in &runs {
                assert_eq!(run.stage, "tessellation evaluation");
                let float = |name| f32::from_bits(value_of(run, name).expect(name));
                assert_eq!(
                    [float("r1.x"), float("r1.y")],
                    [float("r0.y"), float("r0.z")].map(|at| 2.0 * at - 1.0)
                );
            }
            corners.push(["r0.y", "r0.z"].map(|name| value_of(&runs[0], name).expect(name)));
        }
        corners.sort_unstable();
        let one = 1f32.to_bits();
        assert_eq!(corners, [[0, 0], [0, one], [one, 0], [one, one]]);
        let runs = trace(&mut scene, FiberWanted::Geometry { primitive: 1, invocation: 0, vertex: 2 });
        assert_eq!(runs.len(), 2, "both triangles of the patch");
        for run in &runs {
            assert_eq!((run.stage, run.steps.len()), ("geometry", 14));
            assert_eq!(value_of(run, "r3.y"), Some(2), "the vertex");
            assert_eq!(value_of(run, "r2.w"), Some(0.5f32.to_bits()), "twice the colour");
            assert_eq!(value_of(run, "r4.x"), Some(0), "no restart");
        }
        let runs = trace(&mut scene, FiberWanted::Vertex { vertex: 1, instance: 0 });
        assert_eq!(runs.iter().map(|run| run.stage).collect::<Vec<_>>(), ["vertex"]);
    });
}

/// A fiber of a dispatch, chosen by its workgroup and its place in it.
#[test]
fn fibers_of_dispatches_are_traced() {
    each(|mut scene| {
        scene.code(COMPUTE_CODE, "shl.b r1.x, r0.x, 4\nadd.u r1.x, r1.x, r48.x\nend");
        let code = DATA + COMPUTE_CODE;
        scene.set("SP_CS_OBJ_START", &[low(code), high(code)]).set("SP_CS_INSTRLEN", &[1]);
        // The local id in r0.x, the number of the workgroup in r48.x; eight fibers.
        let values = if scene.stream.gpu.generation() == A6xx { "HLSQ_CS_CNTL_0" } else { "SP_CS_CNTL_0" };
        scene.set(values, &[192 | 0xfc << 8 | 0xfc << 16]).set("HLSQ_CS_NDRANGE_0", &[3 | 7 << 2]);
        let trace = |scene: &mut Scene<'_>, group, local| {
            traced(scene, FiberWanted::Compute { group, local }, |scene| {
                scene.stream.op("EXEC_CS", &[0, 3, 2, 1]);
            })
        };
        let runs = trace(&mut scene, [2, 1, 0], [5, 0, 0]);
        let [run] = &runs[..] else { panic!("{runs:?}") };
        assert_eq!((run.stage, run.steps.len()), ("compute", 3));
        assert_eq!(value_of(run, "r0.x"), Some(5));
        assert_eq!(value_of(run, "r1.x"), Some(5 * 16 + 2));
        for (group, local) in [([3, 0, 0], [0; 3]), ([0; 3], [8, 0, 0])] {
            assert_eq!(trace(&mut scene, group, local), [], "{group:?} {local:?}");
        }
    });
}

/// Fibers that were killed go on as helpers: derivatives of those beside them are as before.
#[test]
fn killed_fibers_help() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        // Columns are in sixteenths: odd ones are killed, then the difference of a column and the next is taken.
        let source = format!(
            "and.b r2.z, r2.x, 16\ncmps.u.eq p0.x, r2.z, 16\nkill p0.x\ncov.u32f32 r3.x, r2.x\ncov.u32f32 r3.y, r2.y\n\
             dsx (f32)(x)r0.z, r3.x\ndsy (f32)(x)r0.w, r3.y\nmov.u32u32 r2.z, 0x{:x}\n(sy)(rpt1)mul.f r0.z, (r)r0.z, r2.z\n\
             mov.u32u32 r1.x, 0\nmov.u32u32 r1.y, 0x3f800000\nend",
            (1f32 / 32.0).to_bits()
        );
        scene.code(FRAGMENT_CODE, &source).set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
        let image = scene.draw(STRIP, 4).image();
        for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
            let expected = if x % 2 == 1 { 0 } else { 0xff00_8080 };
            assert_eq!(image[(y * SIZE + x) as usize], expected, "{x},{y}");
        }
    });
}

/// What a draw left in GMEM is the input of the next one, in bins that do not begin at the corner as well.
#[test]
fn input_attachments_in_gmem() {
    each(|mut scene| {
        scene.vertices(&covering([1.0; 3], [RED, GREEN, BLUE]));
        let plain = scene.draw(TRIANGLES, 3).image();
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        // A texture at the start of GMEM: its tile mode, four bytes, the size, the pitch of a bin.
        let swizzle = 1 << 7 | 2 << 10 | 3 << 13;
        let texture =
            [2 | swizzle | 0x30 << 22, SIZE | SIZE << 15, (SIZE * 4) << 7 | 1 << 29, 0, 0x10_0000, 1 << 17];
        scene.put(RESULTS, &texture);
        let table = DATA + RESULTS;
        scene.set("SP_FS_TEX_CONST", &[low(table), high(table)]);
        scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
        let rotated = DATA + GEOMETRY_CODE;
        scene.code(
            GEOMETRY_CODE,
            "shr.b r2.x, r2.x, 4\nshr.b r2.y, r2.y, 4\nisam (f32)(xyzw)r3.x, r2.x, s#0, t#0\n(sy)mov.u32u32 r0.z, r3.y\n\
             mov.u32u32 r0.w, r3.z\nmov.u32u32 r1.x, r3.x\nmov.u32u32 r1.y, r3.w\nend",
        );
        scene.gmem(1);
        let store = if scene.stream.gpu.generation() == A6xx { "BLIT" } else { "CCU_RESOLVE" };
        for bin in 0..2 {
            let (first, last) = (bin << 20, (SIZE - 1) | (16 * bin + 15) << 16);
            for offset in ["RB_WINDOW_OFFSET", "RB_WINDOW_OFFSET2", "SP_WINDOW_OFFSET", "SP_TP_WINDOW_OFFSET"]
            {
                scene.set(offset, &[first]);
            }
            scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
            scene.set("SP_FS_OBJ_START", &[low(DATA + FRAGMENT_CODE), high(DATA + FRAGMENT_CODE)]);
            scene.set("RB_MRT[0].BASE_GMEM", &[0]).draw(TRIANGLES, 3);
            scene.set("SP_FS_OBJ_START", &[low(rotated), high(rotated)]);
            scene.set("RB_MRT[0].BASE_GMEM", &[0x4000]).draw(TRIANGLES, 3);
            scene.set("RB_BLIT_SCISSOR_TL", &[first, last]).set("RB_BLIT_BASE_GMEM", &[0x4000]);
            let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
            scene
                .set("RB_BLIT_GMEM_MSAA_CNTL", &[0])
                .set("RB_BLIT_DST_INFO", &[0x30 << 7, base, top, SIZE / 16]);
            scene.set("RB_BLIT_INFO", &[0]).event(store);
        }
        let image = scene.image();
        for (found, plain) in image.iter().zip(&plain) {
            let [r, g, b, a] = plain.to_le_bytes();
            assert_eq!(found.to_le_bytes(), [g, b, r, a]);
        }
    });
}
