//! Which samples of which layers draws cover: samples, masks, viewports, views, clipping, points, lines, conservative coverage.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{high, low};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;

/// Bytes of a layer.
const LAYER: u32 = SIZE * SIZE * 4;
const WHITE: [f32; 4] = [1.0; 4];
const WHITE8: u32 = 0xffff_ffff;
/// The standard places of samples in sixteenths of a pixel.
const TWO: [[u8; 2]; 2] = [[12, 12], [4, 4]];
const FOUR: [[u8; 2]; 4] = [[6, 2], [14, 6], [2, 10], [10, 14]];

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        scene.more(16 * LAYER as usize);
        test(scene);
    }
}

/// The target is in `MORE`, of so many samples a pixel.
fn target(scene: &mut Scene<'_>, samples: u32) {
    let code = samples.trailing_zeros();
    for register in ["GRAS_RAS_MSAA_CNTL", "GRAS_DEST_MSAA_CNTL", "RB_RAS_MSAA_CNTL", "RB_DEST_MSAA_CNTL"] {
        scene.set(register, &[code]);
    }
    let pitch = SIZE * samples / 16;
    scene.set("RB_MRT[0].PITCH", &[pitch, pitch * SIZE, low(MORE), high(MORE), 0]);
}

/// A sample of the target.
fn sample(scene: &Scene<'_>, x: u32, y: u32, samples: u32, n: u32) -> u32 {
    scene.read(MORE + u64::from(((y * SIZE + x) * samples + n) * 4))
}

/// A vertex at a place in 256ths of a pixel.
fn at([x, y]: [i64; 2], colour: [f32; 4]) -> Vertex {
    let normalized = |at: i64| at as f32 / (SIZE as f32 * 128.0) - 1.0;
    vertex(normalized(x), normalized(y), 0.0, colour)
}

fn cross([ax, ay]: [i64; 2], [bx, by]: [i64; 2], [x, y]: [i64; 2]) -> i64 {
    (bx - ax) * (y - ay) - (by - ay) * (x - ax)
}

/// The same triangle with its inside to the right of its edges as they go down.
fn turned(corners: [[i64; 2]; 3]) -> [[i64; 2]; 3] {
    match cross(corners[0], corners[1], corners[2]) > 0 {
        true => corners,
        false => [corners[0], corners[2], corners[1]],
    }
}

/// Whether a place is inside of a triangle, by the top-left rule.
fn inside(corners: [[i64; 2]; 3], place: [i64; 2]) -> bool {
    let corners = turned(corners);
    (0..3).all(|n| {
        let (a, b) = (corners[n], corners[(n + 1) % 3]);
        let side = cross(a, b, place);
        side > 0 || side == 0 && (b[1] < a[1] || b[1] == a[1] && b[0] > a[0])
    })
}

struct Random(u64);

impl Random {
    fn next(&mut self, below: i64) -> i64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as i64 % below
    }

    fn triangle(&mut self) -> [[i64; 2]; 3] {
        [0, 1, 2].map(|_| [0, 1].map(|_| self.next(i64::from(SIZE) * 256)))
    }
}

#[test]
fn samples_at_standard_and_other_places() {
    let other = [[3, 5], [12, 1], [7, 15], [0, 9]];
    let cases: [(u32, &[[u8; 2]], bool); 6] = [
        (1, &[[8, 8]], false),
        (2, &TWO, false),
        (4, &FOUR, false),
        (1, &other[..1], true),
        (2, &other[..2], true),
        (4, &other, true),
    ];
    each(|mut scene| {
        let mut random = Random(3);
        for (samples, places, custom) in cases {
            target(&mut scene, samples);
            let word = places.iter().rev().fold(0, |word, [x, y]| word << 8 | u32::from(x | y << 4));
            scene.set("GRAS_SAMPLE_CONFIG", &[u32::from(custom) << 1, word]);
            let corners = random.triangle();
            scene.vertices(&corners.map(|corner| at(corner, WHITE)));
            (0..u64::from(LAYER * samples)).step_by(4).for_each(|at| scene.write(MORE + at, 0));
            scene.draw(TRIANGLES, 3).done();
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                for (n, [sx, sy]) in (0..).zip(places) {
                    let place = [(x, sx), (y, sy)].map(|(at, s)| i64::from(at) * 256 + i64::from(*s) * 16);
                    let expected = if inside(corners, place) { WHITE8 } else { 0 };
                    assert_eq!(sample(&scene, x, y, samples, n), expected, "{samples} {custom} {x},{y} {n}");
                }
            }
        }
    });
}

/// A mask of the state, one of the shader, and both together.
#[test]
fn masks_of_samples() {
    each(|mut scene| {
        target(&mut scene, 4);
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        // The shader's mask is in r2.x.
        let source = format!("{}\nmov.u32u32 r2.x, 0x6\nend", COLOUR.trim_end_matches("\nend"));
        scene.code(FRAGMENT_CODE, &source);
        for (state, shader) in [(0xf, None), (0x5, None), (0xf, Some(0x6)), (0x5, Some(0x6))] {
            (0..u64::from(4 * LAYER)).step_by(4).for_each(|at| scene.write(MORE + at, 0));
            let register = if shader.is_some() { 8 } else { 0xfc };
            scene.set("SP_FS_OUTPUT_CNTL0", &[0xfc00_fc00 | register << 16]);
            scene.set("RB_BLEND_CNTL", &[state << 16]).draw(STRIP, 4).done();
            for n in 0..4 {
                let written = (state & shader.unwrap_or(0xf)) >> n & 1 != 0;
                let expected = if written { WHITE8 } else { 0 };
                assert_eq!(sample(&scene, 9, 9, 4, n), expected, "{state:x} {shader:x?} {n}");
            }
        }
    });
}

/// What the shader sees of its samples: all that are covered, or in sample shading its own, with its number and its place.
#[test]
fn shaders_see_their_samples() {
    each(|mut scene| {
        target(&mut scene, 4);
        // The left half: the first and third sample of column 15 end before its middle.
        scene.vertices(&strip([-1.0, -1.0], [-1.0 / 32.0, 1.0], 0.0, WHITE));
        // Number of the sample in hr4.x, its mask in r3.x.
        let source = format!(
            "mov.u32u32 r5.x, 0x{:x}\ncov.u16u32 r4.w, hr4.x\nrgetpos (f32)(xy)r2.x, r4.w\ncov.u32f32 r0.z, r4.w\n\
             cov.u32f32 r0.w, r3.x\n(rpt1)mul.f r0.z, (r)r0.z, r5.x\nadd.f r1.x, r2.x, (0.5)\nadd.f r1.y, r2.y, (0.5)\nend",
            (1f32 / 255.0).to_bits(),
        );
        scene.code(FRAGMENT_CODE, &source);
        scene.set("HLSQ_CONTROL_2_REG", &[0xfc00_00fc | 16 << 8 | 12 << 16]);
        for per_sample in [false, true] {
            (0..u64::from(4 * LAYER)).step_by(4).for_each(|at| scene.write(MORE + at, 0));
            scene.set("RB_SAMPLE_CNTL", &[u32::from(per_sample)]).draw(STRIP, 4).done();
            // Of a pixel whose right half is not covered.
            let covered = [0, 2];
            for n in 0..4u32 {
                let found = sample(&scene, 15, 9, 4, n).to_le_bytes();
                let seen = if per_sample { n as u8 } else { 0 };
                let mask = if per_sample { 1 << n } else { 0b0101 };
                let place =
                    FOUR[usize::from(seen)].map(|at| (f32::from(at) * 255.0 / 16.0).round_ties_even() as u8);
                let expected = if covered.contains(&n) { [seen, mask, place[0], place[1]] } else { [0; 4] };
                assert_eq!(found, expected, "{per_sample} {n}");
            }
        }
    });
}

/// The viewport and the layer are those that the first vertex gives.
#[test]
fn layers_and_viewports_of_primitives() {
    each(|mut scene| {
        target(&mut scene, 1);
        // Red is raw: the layer; green: the viewport. Shown is the fourth component.
        let number = |layer: u32, viewport: u32| [f32::from_bits(layer), f32::from_bits(viewport), 0.0, 1.0];
        let vertices: Vec<Vertex> = [[0, 0], [2, 1], [3, 15], [1, 3]]
            .into_iter()
            .flat_map(|[layer, viewport]| {
                let strip = strip([-1.0, -1.0], [1.0, 1.0], 0.0, number(layer, viewport));
                [strip[0], strip[1], strip[2], strip[2], strip[1], strip[3]]
            })
            .collect();
        scene.vertices(&vertices);
        scene.set("VPC_VS_LAYER_CNTL", &[1 << 8]);
        scene.code(FRAGMENT_CODE, "bary.f (ei)r0.z, 3, r0.x\nmov.u32u32 r0.w, r0.z\nmov.u32u32 r1.x, r0.z\nmov.u32u32 r1.y, r0.z\nend");
        let viewports = [(0, [0, 0]), (1, [16, 0]), (15, [16, 16]), (3, [0, 16])];
        for (viewport, [x, y]) in viewports {
            let quarter = (SIZE as f32 / 4.0).to_bits();
            let offset = |at: u32| (at as f32 + SIZE as f32 / 4.0).to_bits();
            let transform = [offset(x), quarter, offset(y), quarter, 0, 1f32.to_bits()];
            scene.set(&format!("GRAS_CL_VPORT[{viewport}].XOFFSET"), &transform);
            let last = (x + 15) | (y + 15) << 16;
            scene.set(&format!("GRAS_SC_VIEWPORT_SCISSOR[{viewport}].TL"), &[x | y << 16, last]);
            // Without the first column.
            scene.set(&format!("GRAS_SC_SCREEN_SCISSOR[{viewport}].TL"), &[(x + 1) | y << 16, last]);
        }
        scene.draw(TRIANGLES, 24).done();
        for ((layer, [left, top]), (_, place)) in
            [(0u32, [0, 0]), (2, [16, 0]), (3, [16, 16]), (1, [0, 16])].into_iter().zip(viewports)
        {
            assert_eq!([left, top], place);
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                let shown = (left + 1..left + 16).contains(&x) && (top..top + 16).contains(&y);
                let found = scene.read(MORE + u64::from(layer * LAYER + (y * SIZE + x) * 4));
                assert_eq!(found, if shown { WHITE8 } else { 0 }, "{layer} {x},{y}");
            }
        }
    });
}

/// Each view has its layer. Vertices are shaded for each, or once with a position for each.
#[test]
fn views() {
    each(|mut scene| {
        let counted = scene.stream.gpu.generation() == A6xx;
        target(&mut scene, 1);
        // A view moves its rectangle by a half to the right.
        scene.vertices(&strip([-1.0, -1.0], [-0.5, 1.0], 0.0, WHITE));
        scene.set("GRAS_SU_CNTL", &[2 << 3 | 1 << 13 | 1 << 18]);
        let mask = if counted { 0b111 } else { 0b101 };
        if !counted {
            scene.set("PC_MULTIVIEW_MASK", &[mask]);
        }
        let images = |scene: &mut Scene<'_>| {
            (0..u64::from(3 * LAYER)).step_by(4).for_each(|at| scene.write(MORE + at, 0));
            scene.draw(STRIP, 4).done();
            for layer in 0..3 {
                for x in 0..SIZE {
                    let shown = mask >> layer & 1 != 0 && (8 * layer..8 * layer + 8).contains(&x);
                    let found = scene.read(MORE + u64::from(layer * LAYER + (7 * SIZE + x) * 4));
                    assert_eq!(found, if shown { WHITE8 } else { 0 }, "{layer} {x}");
                }
            }
        };
        // The number of the view is in r2.x.
        scene
            .code(VERTEX_CODE, "cov.u32f32 r2.x, r2.x\nmul.f r2.x, r2.x, (0.5)\nadd.f r0.x, r0.x, r2.x\nend");
        scene.set("VFD_CONTROL_1", &[0x08fc_fcfc]).set("PC_MULTIVIEW_CNTL", &[3 | 3 << 2]);
        images(&mut scene);
        // Positions in r0, r2 and r3.
        let source = "add.f r2.x, r0.x, (0.5)\nadd.f r3.x, r0.x, (1.0)\n(rpt2)mov.u32u32 r2.y, (r)r0.y\n\
                      (rpt2)mov.u32u32 r3.y, (r)r0.y\nend";
        scene.code(VERTEX_CODE, source);
        scene.set("VFD_CONTROL_1", &[NONE]).set("PC_MULTIVIEW_CNTL", &[1 | 3 << 2]);
        scene.set("SP_VS_PRIMITIVE_CNTL", &[4]);
        scene.set("SP_VS_OUT[0].REG", &[4 | 0xf << 8 | 0xf << 24, 8 | 0xf << 8 | 12 << 16 | 0xf << 24]);
        scene.set("SP_VS_VPC_DST[0].REG", &[4 << 8 | 8 << 16 | 12 << 24]);
        scene.set("VPC_VS_PACK", &[16 | 4 << 8 | 0xff << 16 | 2 << 24]);
        images(&mut scene);
    });
}

#[test]
fn clip_and_cull_distances() {
    each(|mut scene| {
        // Red is the distance: from 1 on the left to -1 on the right.
        let mut vertices = strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE);
        vertices.iter_mut().for_each(|vertex| vertex[4] = -vertex[0]);
        scene.vertices(&vertices);
        scene.set("VPC_VS_CLIP_CNTL", &[0xff << 16 | 1]);
        scene.set("GRAS_VS_CL_CNTL", &[1]);
        let image = scene.draw(STRIP, 4).image();
        let shown =
            |image: &[u32]| -> Vec<bool> { (0..SIZE).map(|x| image[(5 * SIZE + x) as usize] != 0).collect() };
        let clipped = shown(&image);
        assert_eq!(clipped, (0..SIZE).map(|x| x < SIZE / 2).collect::<Vec<_>>());
        // A distance that culls leaves what is partly inside whole, and drops what is outside.
        scene.set("GRAS_VS_CL_CNTL", &[1 << 8]);
        (0..u64::from(LAYER)).step_by(4).for_each(|at| {
            scene.put(IMAGE + at, &[0]);
        });
        assert!(shown(&scene.draw(STRIP, 4).image()).into_iter().all(|shown| shown));
        vertices.iter_mut().for_each(|vertex| vertex[4] = -0.5);
        scene.vertices(&vertices);
        (0..u64::from(LAYER)).step_by(4).for_each(|at| {
            scene.put(IMAGE + at, &[0]);
        });
        assert!(shown(&scene.draw(STRIP, 4).image()).into_iter().all(|shown| !shown));
    });
}

/// Depth outside of the view volume is clipped, or clamped where it is not.
#[test]
fn near_and_far() {
    each(|mut scene| {
        let mut vertices = strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE);
        // Depth goes from -0.5 on the left to 1.5 on the right.
        vertices.iter_mut().for_each(|vertex| vertex[2] = 0.5 + vertex[0]);
        scene.vertices(&vertices);
        for (control, range) in
            [(1 << 6, 8..24), (1 << 6 | 1 << 1, 0..24), (1 << 6 | 1 << 2, 8..32), (1 << 6 | 3 << 1, 0..32)]
        {
            (0..u64::from(LAYER)).step_by(4).for_each(|at| {
                scene.put(IMAGE + at, &[0]);
            });
            let image = scene.set("GRAS_CL_CNTL", &[control]).draw(STRIP, 4).image();
            for x in 0..SIZE {
                let found = image[(5 * SIZE + x) as usize] != 0;
                assert_eq!(found, range.contains(&x), "{control:x} {x}");
            }
        }
    });
}

#[test]
fn faces_that_are_culled() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        // A strip in this order goes clockwise in the window.
        for (cull, shown) in
            [(0b00, true), (0b01, true), (0b10, false), (0b11, false), (0b101, false), (0b110, true)]
        {
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            scene.set("GRAS_SU_CNTL", &[cull | 2 << 3 | 1 << 13]);
            let image = scene.draw(STRIP, 4).image();
            assert!(image.iter().all(|texel| (*texel != 0) == shown), "{cull:b}");
        }
    });
}

/// Points have the size of the state or of the vertex, clamped, and a coordinate across them.
#[test]
fn points() {
    each(|mut scene| {
        scene.vertices(&[at([8 * 256, 8 * 256], [6.0, 0.0, 0.0, 1.0])]);
        // Coordinates across and down take the place of the first two components.
        scene.set("VPC_VARYING_PS_REPL[0].MODE", &[1 | 2 << 2]);
        for (place, size, expected) in [(0xff, 4, 4), (0, 4, 6), (0xff, 200, 4), (0xff, 1, 1)] {
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            scene.set("VPC_VS_PACK", &[8 | 4 << 8 | place << 16]);
            // At most 4 for those of the state.
            let most = if place == 0 { 64 } else { 4 };
            scene.set("GRAS_SU_POINT_MINMAX", &[16 | (16 * most) << 16, 16 * size]);
            let image = scene.draw(1, 1).image();
            let half = expected / 2;
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                let covered = |at: u32| match expected {
                    1 => at == 7,
                    _ => (8 - half..8 + half).contains(&at),
                };
                let found = image[(y * SIZE + x) as usize].to_le_bytes();
                if !(covered(x) && covered(y)) {
                    assert_eq!(found, [0; 4], "{expected} {x},{y}");
                    continue;
                }
                let across = |at: u32| {
                    let from = 8.0 - f64::from(expected) / 2.0;
                    (f64::from(at) + 0.5 - from) / f64::from(expected) * 255.0
                };
                for (byte, at) in found.into_iter().zip([x, y]) {
                    assert!((f64::from(byte) - across(at)).abs() < 0.51, "{expected} {x},{y} {found:?}");
                }
            }
        }
    });
}

/// A line covers the samples of the rectangle around it, or one pixel in each column.
#[test]
fn both_kinds_of_lines() {
    each(|mut scene| {
        let mut random = Random(9);
        for _ in 0..8 {
            let [a, b, _] = random.triangle();
            scene.vertices(&[at(a, WHITE), at(b, WHITE)]);
            let [x0, y0, x1, y1] = [a[0], a[1], b[0], b[1]].map(|at| at as f64 / 256.0);
            let length = (x1 - x0).hypot(y1 - y0);
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            // Three pixels wide.
            let image = scene.set("GRAS_SU_CNTL", &[6 << 3 | 1 << 13]).draw(2, 2).image();
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                let (px, py) = (f64::from(x) + 0.5 - x0, f64::from(y) + 0.5 - y0);
                let along = (px * (x1 - x0) + py * (y1 - y0)) / length;
                let across = (py * (x1 - x0) - px * (y1 - y0)) / length;
                let edge = [along, length - along, 1.5 - across, 1.5 + across]
                    .into_iter()
                    .fold(f64::INFINITY, f64::min);
                // Corners are snapped.
                if edge.abs() > 1.0 / 128.0 {
                    let found = image[(y * SIZE + x) as usize] != 0;
                    assert_eq!(found, edge > 0.0, "{a:?} {b:?} {x},{y} {edge}");
                }
            }
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            let image = scene.set("GRAS_SU_CNTL", &[2 << 3]).draw(2, 2).image();
            let steep = (y1 - y0).abs() > (x1 - x0).abs();
            let (from, to, other, slope) = match steep {
                false => (x0.min(x1), x0.max(x1), (x0, y0), (y1 - y0) / (x1 - x0)),
                true => (y0.min(y1), y0.max(y1), (y0, x0), (x1 - x0) / (y1 - y0)),
            };
            for major in 0..SIZE {
                let centre = f64::from(major) + 0.5;
                let covered: Vec<u32> = (0..SIZE)
                    .filter(|minor| {
                        let (x, y) = if steep { (*minor, major) } else { (major, *minor) };
                        image[(y * SIZE + x) as usize] != 0
                    })
                    .collect();
                if centre < from - 0.01 || centre > to + 0.01 {
                    assert!(covered.is_empty(), "{a:?} {b:?} {major}");
                } else if centre > from + 0.01 && centre < to - 0.01 {
                    let minor = other.1 + (centre - other.0) * slope;
                    assert_eq!(covered.len(), 1, "{a:?} {b:?} {major}");
                    assert!((f64::from(covered[0]) + 0.5 - minor).abs() < 0.51, "{a:?} {b:?} {major}");
                }
            }
        }
    });
}

/// Every pixel that a triangle touches is covered, and no other; with more, what is that far away, too.
#[test]
fn conservative_coverage() {
    each(|mut scene| {
        let mut random = Random(5);
        for (control, grown) in [(1, 0i64), (1 | 1 << 1, 128), (1 | 2 << 1, 256), (1, 0), (1, 0), (1, 0)] {
            scene.set("GRAS_SU_CONSERVATIVE_RAS_CNTL", &[control]);
            let corners = random.triangle();
            scene.vertices(&corners.map(|corner| at(corner, WHITE)));
            scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
            let image = scene.draw(TRIANGLES, 3).image();
            let ordered = turned(corners);
            for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
                let (left, top) = (i64::from(x) * 256 - grown, i64::from(y) * 256 - grown);
                let square = 256 + 2 * grown;
                let places =
                    [[left, top], [left + square, top], [left, top + square], [left + square, top + square]];
                // Two convex shapes are apart when an edge of one is between them.
                let apart = |far: bool| {
                    let edges = (0..3).any(|n| {
                        let side = |place| cross(ordered[n], ordered[(n + 1) % 3], place);
                        places.iter().all(|place| if far { side(*place) < 0 } else { side(*place) <= 0 })
                    });
                    let axis = |axis: usize, first: i64| {
                        let least = corners.iter().map(|corner| corner[axis]).min().unwrap();
                        let most = corners.iter().map(|corner| corner[axis]).max().unwrap();
                        if far {
                            least > first + square || most < first
                        } else {
                            least >= first + square || most <= first
                        }
                    };
                    edges || axis(0, left) || axis(1, top)
                };
                let found = image[(y * SIZE + x) as usize] != 0;
                if !apart(false) {
                    assert!(found, "{corners:?} {x},{y} is touched");
                }
                if apart(true) {
                    assert!(!found, "{corners:?} {x},{y} is not touched");
                }
            }
        }
    });
}

/// A pixel has to be in all three: the window's, the screen's and the viewport's.
#[test]
fn scissors() {
    each(|mut scene| {
        scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, WHITE));
        let corner = |x: u32, y: u32| x | y << 16;
        scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[corner(3, 0), corner(31, 31)]);
        scene.set("GRAS_SC_SCREEN_SCISSOR[0].TL", &[corner(0, 4), corner(20, 31)]);
        scene.set("GRAS_SC_VIEWPORT_SCISSOR[0].TL", &[corner(0, 0), corner(31, 25)]);
        let image = scene.draw(STRIP, 4).image();
        for (x, y) in (0..SIZE).flat_map(|y| (0..SIZE).map(move |x| (x, y))) {
            let expected = (3..=20).contains(&x) && (4..=25).contains(&y);
            assert_eq!(image[(y * SIZE + x) as usize] != 0, expected, "{x},{y}");
        }
        // An empty one.
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        scene.set("GRAS_SC_SCREEN_SCISSOR[0].TL", &[corner(1, 1), corner(0, 0)]);
        assert!(scene.draw(STRIP, 4).image().iter().all(|texel| *texel == 0));
    });
}

/// Edges and corners instead of the inside.
#[test]
fn polygon_modes() {
    each(|mut scene| {
        let corners = [
            [4 * 256 + 128, 4 * 256 + 128],
            [24 * 256 + 128, 4 * 256 + 128],
            [4 * 256 + 128, 24 * 256 + 128],
        ];
        scene.vertices(&corners.map(|corner| at(corner, WHITE)));
        scene.set("GRAS_SU_POINT_MINMAX", &[16 | 64 << 16, 16]);
        let shown = |image: &[u32], x: u32, y: u32| image[(y * SIZE + x) as usize] != 0;
        let image = scene.set("VPC_POLYGON_MODE", &[2]).draw(TRIANGLES, 3).image();
        assert_eq!(
            [(10, 4), (4, 10), (14, 14), (10, 10), (2, 4)].map(|(x, y)| shown(&image, x, y)),
            [true, true, true, false, false]
        );
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        let image = scene.set("VPC_POLYGON_MODE", &[1]).draw(TRIANGLES, 3).image();
        let all: Vec<(u32, u32)> = (0..SIZE)
            .flat_map(|y| (0..SIZE).map(move |x| (x, y)))
            .filter(|(x, y)| shown(&image, *x, *y))
            .collect();
        assert_eq!(all, [(4, 4), (24, 4), (4, 24)]);
        // Each corner has the size that its vertex gives: red.
        let sizes = [1.0, 3.0, 1.0];
        let vertices = [0, 1, 2].map(|n| at(corners[n], [sizes[n], 0.0, 0.0, 1.0]));
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]).vertices(&vertices);
        let image = scene.set("VPC_VS_PACK", &[8 | 4 << 8]).draw(TRIANGLES, 3).image();
        let count = image.iter().filter(|texel| **texel != 0).count();
        assert_eq!(count, 1 + 9 + 1);
        assert!([(23, 3), (25, 5), (4, 4), (4, 24)].into_iter().all(|(x, y)| shown(&image, x, y)));
    });
}
