//! Tests of depth and stencil by draws: formats, both faces, bounds, what the shader gives, bias.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{high, low};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;

const WHITE: [f32; 4] = [1.0; 4];
/// Where a stencil image of its own is.
const STENCIL: u64 = MORE + 0x8000;
const BYTES: usize = 0x10000;
/// Bits of RB_DEPTH_CNTL.
const TEST: u32 = 1;
const WRITE: u32 = 2;
const BOUNDS: u32 = 1 << 7;
const ALWAYS: u32 = 7 << 2;
const LESS: u32 = 1 << 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DepthImage {
    Unorm16 = 1,
    Unorm24 = 2,
    Float32 = 4,
}

use DepthImage::{Float32, Unorm16, Unorm24};

impl DepthImage {
    fn stored(self, z: f32) -> u32 {
        match self {
            Unorm16 => (f64::from(z) * 65535.0).round_ties_even() as u32,
            Unorm24 => (f64::from(z) * 16_777_215.0).round_ties_even() as u32,
            Float32 => z.to_bits(),
        }
    }
}

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        scene.more(BYTES).vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, WHITE));
        test(scene);
    }
}

/// A depth image with one value everywhere.
fn depth_image(scene: &mut Scene<'_>, format: DepthImage, z: f32, stencil: u8) {
    let tiled = if scene.stream.gpu.generation() == A7xx { 3 } else { 0 };
    let state = [format as u32 | tiled << 5, 4, 4 * SIZE, low(MORE), high(MORE), 0];
    scene.set("RB_DEPTH_BUFFER_INFO", &state);
    let word = match format {
        Unorm16 => format.stored(z) * 0x1_0001,
        Unorm24 => format.stored(z) | u32::from(stencil) << 24,
        Float32 => format.stored(z),
    };
    (0..0x8000).step_by(4).for_each(|at| scene.write(MORE + at, word));
    let bytes = u32::from(stencil) * 0x0101_0101;
    (0..0x8000).step_by(4).for_each(|at| scene.write(STENCIL + at, bytes));
    let separate = u32::from(format == Float32);
    scene.set("RB_STENCIL_INFO", &[separate | tiled << 2, 4, 4 * SIZE, low(STENCIL), high(STENCIL), 0]);
}

/// Depth and stencil of the first sample.
fn stored(scene: &Scene<'_>, format: DepthImage) -> (u32, u8) {
    let (word, stencil) = (scene.read(MORE), scene.read(STENCIL) as u8);
    match format {
        Unorm16 => (word & 0xffff, stencil),
        Unorm24 => (word & 0xff_ffff, (word >> 24) as u8),
        Float32 => (word, stencil),
    }
}

fn at_depth(scene: &mut Scene<'_>, z: f32) {
    scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], z, WHITE));
}

/// Draws over everything: whether something is seen.
fn passes(scene: &mut Scene<'_>) -> bool {
    scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
    let image = scene.draw(STRIP, 4).image();
    let shown = image.iter().filter(|texel| **texel != 0).count();
    assert!([0, image.len()].contains(&shown), "{shown}");
    shown != 0
}

#[test]
fn depths_of_every_format() {
    each(|mut scene| {
        for format in [Unorm16, Unorm24, Float32] {
            for z in [0.0, 0.1, 0.3, 0.5, 0.75, 1.0] {
                depth_image(&mut scene, format, 0.25, 0xab);
                at_depth(&mut scene, z);
                scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | ALWAYS]);
                assert!(passes(&mut scene));
                assert_eq!(stored(&scene, format), (format.stored(z), 0xab), "{format:?} {z}");
            }
        }
    });
}

#[test]
fn every_comparison() {
    each(|mut scene| {
        for format in [Unorm16, Unorm24, Float32] {
            for function in 0..8u32 {
                for z in [0.25f32, 0.5, 0.75] {
                    depth_image(&mut scene, format, 0.5, 0);
                    at_depth(&mut scene, z);
                    scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | function << 2]);
                    let expected = [false, z < 0.5, z == 0.5, z <= 0.5, z > 0.5, z != 0.5, z >= 0.5, true];
                    let expected = expected[function as usize];
                    assert_eq!(passes(&mut scene), expected, "{format:?} {function} {z}");
                    let left = if expected { z } else { 0.5 };
                    assert_eq!(stored(&scene, format).0, format.stored(left), "{format:?} {function} {z}");
                }
            }
        }
    });
}

/// What is stored has to be within the bounds, whatever is drawn.
#[test]
fn depth_bounds() {
    each(|mut scene| {
        for format in [Unorm16, Unorm24, Float32] {
            for (bounds, expected) in [([0.25f32, 0.75], true), ([0.6, 0.9], false), ([0.0, 0.4], false)] {
                depth_image(&mut scene, format, 0.5, 0);
                at_depth(&mut scene, 0.125);
                scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | ALWAYS | BOUNDS]);
                scene.set("RB_Z_BOUNDS_MIN", &bounds.map(f32::to_bits));
                assert_eq!(passes(&mut scene), expected, "{format:?} {bounds:?}");
                let left = if expected { 0.125 } else { 0.5 };
                assert_eq!(stored(&scene, format).0, format.stored(left));
            }
        }
    });
}

/// Operations of the face that is seen, on each way out of the tests, with its own reference and masks.
#[test]
fn stencil_of_both_faces() {
    let apply = |operation: u32, value: u8, reference: u8| match operation {
        0 => value,
        1 => 0,
        2 => reference,
        3 => value.saturating_add(1),
        4 => value.saturating_sub(1),
        5 => !value,
        6 => value.wrapping_add(1),
        _ => value.wrapping_sub(1),
    };
    each(|mut scene| {
        for format in [Unorm24, Float32] {
            for front in [true, false] {
                // A strip in this order goes clockwise in the window.
                scene.set("GRAS_SU_CNTL", &[2 << 3 | 1 << 13 | u32::from(front) << 2]);
                for operation in 0..8u32 {
                    for (way, value) in [(0, 0xffu8), (1, 0x00), (2, 0x7e)] {
                        depth_image(&mut scene, format, 0.5, value);
                        at_depth(&mut scene, if way == 1 { 0.75 } else { 0.25 });
                        scene.set("RB_DEPTH_CNTL", &[TEST | LESS]);
                        // The test itself fails on the first way only.
                        let function = if way == 0 { 0 } else { 7 };
                        let place = [3, 9, 6][way];
                        let own = function | operation << place;
                        // The other face would replace.
                        let other = 7 | 2 << 3 | 2 << 6 | 2 << 9;
                        let (first, second) = if front { (own, other) } else { (other, own) };
                        scene.set("RB_STENCIL_CONTROL", &[3 | first << 8 | second << 20]);
                        let side = |front_value: u32, back: u32| front_value | back << 8;
                        scene.set("RB_STENCILREF", &[side(0x35, 0xc6)]);
                        scene.set("RB_STENCILMASK", &[side(0xff, 0xff)]);
                        scene.set("RB_STENCILWRMASK", &[side(0x3c, 0xf0)]);
                        let (reference, mask) = if front { (0x35, 0x3c) } else { (0xc6, 0xf0) };
                        let new = apply(operation, value, reference);
                        let expected = value & !mask | new & mask;
                        assert_eq!(passes(&mut scene), way == 2, "{format:?} {front} {operation} {way}");
                        assert_eq!(
                            stored(&scene, format).1,
                            expected,
                            "{format:?} {front} {operation} {way}"
                        );
                    }
                }
            }
        }
    });
}

/// References and what is stored are compared through the mask.
#[test]
fn stencil_comparisons() {
    each(|mut scene| {
        for function in 0..8u32 {
            for (reference, value) in [(0x11u8, 0x22u8), (0x22, 0x11), (0xf1, 0x01)] {
                depth_image(&mut scene, Unorm24, 0.5, value);
                scene.set("RB_DEPTH_CNTL", &[0]);
                scene.set("RB_STENCIL_CONTROL", &[1 | function << 8]);
                scene.set("RB_STENCILREF", &[reference.into()]);
                scene.set("RB_STENCILMASK", &[0x0f]).set("RB_STENCILWRMASK", &[0xff]);
                let (r, v) = (reference & 0xf, value & 0xf);
                let expected = [false, r < v, r == v, r <= v, r > v, r != v, r >= v, true];
                assert_eq!(passes(&mut scene), expected[function as usize], "{function} {reference:x}");
            }
        }
    });
}

/// Depth and stencil reference of the shader count when the tests are late; early tests take the primitive's depth.
#[test]
fn what_the_shader_gives() {
    each(|mut scene| {
        // Depth in r2.x, the reference in r2.y.
        let source = format!(
            "(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nmov.u32u32 r2.x, 0x{:x}\nmov.u32u32 r2.y, 0x5a\nend",
            0.125f32.to_bits()
        );
        scene.code(FRAGMENT_CODE, &source);
        for format in [Unorm16, Unorm24, Float32] {
            for (mode, expected) in [(0, 0.5), (1, 0.125), (2, 0.125)] {
                depth_image(&mut scene, format, 0.75, 0x11);
                scene.set("SP_FS_OUTPUT_CNTL0", &[0x09fc_0800]);
                scene.set("RB_DEPTH_PLANE_CNTL", &[mode]).set("GRAS_SU_DEPTH_PLANE_CNTL", &[mode]);
                scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | LESS]);
                // Replaced where it passes, by the shader's reference.
                scene.set("RB_STENCIL_CONTROL", &[1 | 7 << 8 | 2 << 14]);
                scene.set("RB_STENCILREF", &[0x77]);
                scene.set("RB_STENCILMASK", &[0xff]).set("RB_STENCILWRMASK", &[0xff]);
                assert!(passes(&mut scene), "{format:?} {mode}");
                let (depth, stencil) = stored(&scene, format);
                assert_eq!(depth, format.stored(expected), "{format:?} {mode}");
                if format != Unorm16 {
                    assert_eq!(stencil, if mode == 0 { 0x77 } else { 0x5a }, "{format:?} {mode}");
                }
            }
        }
    });
}

/// A shader may promise that its depth is never less, or never greater, than the primitive's. LRZ then tests the primitive's depth;
/// the depth test is late and takes the shader's.
#[test]
fn conservative_depth() {
    each(|mut scene| {
        for (mode, primitive, shader, seen) in [
            (2, 0.5, 0.875f32, false),
            (2, 0.5, 0.625, true),
            (2, 0.875, 0.625, true),
            (2, 0.875, 0.8125, false),
            (1, 0.5, 0.875, false),
            (0, 0.5, 0.875, true),
        ] {
            depth_image(&mut scene, Float32, 0.75, 0);
            at_depth(&mut scene, primitive);
            let source =
                format!("(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nmov.u32u32 r2.x, 0x{:x}\nend", shader.to_bits());
            scene.code(FRAGMENT_CODE, &source).set("SP_FS_OUTPUT_CNTL0", &[0xfcfc_0800]);
            scene.set("RB_DEPTH_PLANE_CNTL", &[mode]).set("GRAS_SU_DEPTH_PLANE_CNTL", &[mode]);
            scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | LESS]);
            assert_eq!(passes(&mut scene), seen, "{mode} {primitive} {shader}");
            // An early test takes the primitive's.
            let written = if mode == 0 { primitive } else { shader };
            let left = if seen { written } else { 0.75 };
            assert_eq!(stored(&scene, Float32).0, Float32.stored(left), "{mode} {primitive} {shader}");
        }
    });
}

/// Fibers that are killed leave depth and counts alone where the tests are late.
#[test]
fn killed_fibers_leave_depth() {
    each(|mut scene| {
        scene.code(FRAGMENT_CODE, "cmps.u.eq p0.x, r0.x, r0.x\nkill p0.x\nend");
        for (mode, left) in [(0, 0.5), (1, 0.75), (2, 0.75)] {
            depth_image(&mut scene, Float32, 0.75, 0);
            scene.set("RB_DEPTH_PLANE_CNTL", &[mode]).set("RB_DEPTH_CNTL", &[TEST | WRITE | LESS]);
            assert!(!passes(&mut scene));
            assert_eq!(stored(&scene, Float32).0, Float32.stored(left), "{mode}");
        }
    });
}

/// A bias in units of the format, one of the slope, and what clamps it.
#[test]
fn depth_bias() {
    each(|mut scene| {
        let bias = |scene: &mut Scene<'_>, format: DepthImage, scale: f32, offset: f32, clamp: f32| {
            scene.set("GRAS_SU_CNTL", &[2 << 3 | 1 << 13 | 1 << 11]);
            scene.set("GRAS_SU_POLY_OFFSET_SCALE", &[scale, offset, clamp].map(f32::to_bits));
            scene.set("GRAS_SU_DEPTH_BUFFER_INFO", &[format as u32]);
        };
        let units = [(Unorm16, 2f32.powi(-16)), (Unorm24, 2f32.powi(-24)), (Float32, 2f32.powi(-24))];
        for (format, unit) in units {
            for offset in [16.0f32, -8.0] {
                depth_image(&mut scene, format, 0.0, 0);
                at_depth(&mut scene, 0.5);
                bias(&mut scene, format, 0.0, offset, 0.0);
                scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | ALWAYS]);
                assert!(passes(&mut scene));
                assert_eq!(
                    stored(&scene, format).0,
                    format.stored(0.5 + offset * unit),
                    "{format:?} {offset}"
                );
            }
        }
        // Depth rises by 1/64 a column; what is drawn without a bias has to meet it exactly.
        for (scale, clamp, expected) in
            [(2.0, 0.0, 1.0 / 32.0), (2.0, 1.0 / 64.0, 1.0 / 64.0), (-2.0, -1.0 / 64.0, -1.0 / 64.0)]
        {
            depth_image(&mut scene, Float32, 0.0, 0);
            let sloped = |from: f32| {
                let mut vertices = strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE);
                vertices.iter_mut().for_each(|vertex| vertex[2] = from + 0.25 * (vertex[0] + 1.0));
                vertices
            };
            scene.vertices(&sloped(0.25));
            bias(&mut scene, Float32, scale, 0.0, clamp);
            scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | ALWAYS]);
            assert!(passes(&mut scene));
            scene.vertices(&sloped(0.25 + expected));
            bias(&mut scene, Float32, 0.0, 0.0, 0.0);
            scene.set("RB_DEPTH_CNTL", &[TEST | 2 << 2]);
            assert!(passes(&mut scene), "{scale} {clamp}");
        }
    });
}

/// Where primitives are not clipped in depth they are clamped to the viewport's range.
#[test]
fn clamped_depths() {
    each(|mut scene| {
        for (z, expected) in [(-0.5, 0.25), (0.5, 0.5), (1.5, 0.75)] {
            depth_image(&mut scene, Float32, 0.0, 0);
            at_depth(&mut scene, z);
            scene.set("GRAS_CL_CNTL", &[1 << 6 | 3 << 1 | 1 << 5]);
            scene.set("GRAS_CL_Z_CLAMP[0].MIN", &[0.25f32, 0.75].map(f32::to_bits));
            scene.set("RB_DEPTH_CNTL", &[TEST | WRITE | ALWAYS]);
            assert!(passes(&mut scene));
            assert_eq!(stored(&scene, Float32).0, Float32.stored(expected), "{z}");
        }
    });
}
