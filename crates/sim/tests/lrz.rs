//! LRZ by command streams that are put together here: what it would reject, and when that is seen.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, data, high, low};
use scene::{MORE as MORE_MEMORY, *};
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::RunEnd;

/// The LRZ buffer behind `DATA`: a row of blocks is 32 of 16 bits.
const LRZ: u64 = 0xb000;
const ENABLE: u32 = 1;
const WRITE: u32 = 1 << 1;
const GREATER: u32 = 1 << 2;
const TEST: u32 = 1 << 4;
const DIR_WRITE: u32 = 1 << 8;
/// Depth tests: less and greater, written and not.
const LESS: u32 = 1 | 1 << 2 | 1 << 6;
const MORE: u32 = 1 | 4 << 2 | 1 << 6;
const DEPTH_WRITE: u32 = 1 << 1;
const ALL: u64 = (SIZE * SIZE) as u64;

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        let a7xx = generation == A7xx;
        scene.machine.check_lrz();
        let [base, top] = [low(DATA + DEPTH), high(DATA + DEPTH)];
        scene.put(DEPTH, &[1f32.to_bits(); 0x800]).put(LRZ, &[u32::MAX; 0x80]);
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
        scene.set("GRAS_LRZ_BUFFER_BASE", &[low(DATA + LRZ), high(DATA + LRZ), 1]);
        test(scene);
    }
}

/// Draws all of the target at a depth.
fn draw(scene: &mut Scene<'_>, z: f32, lrz: u32, depth: u32) {
    scene.set("GRAS_LRZ_CNTL", &[lrz]).set("RB_DEPTH_CNTL", &[depth]);
    // Vertices of a draw stay until the stream is executed.
    let first = (z * 16.0) as u32 * 4;
    let at = VERTICES + 32 * u64::from(first);
    // One triangle: blocks that two share are changed by neither.
    let corners = [[-1.0, -1.0], [3.0, -1.0], [-1.0, 3.0]].map(|[x, y]| vertex(x, y, z, RED));
    let words: Vec<u32> = corners.iter().flatten().map(|value| value.to_bits()).collect();
    scene.put(at, &words).set("VFD_INDEX_OFFSET", &[first]).draw(TRIANGLES, 3);
}

/// Fragments that would be rejected, and those of them that are seen.
fn ends(scene: &mut Scene<'_>) -> (u64, u64) {
    // A marker ends the pass.
    scene.stream.op("SET_MARKER", &[1]);
    assert_eq!(scene.run(), RunEnd::Done);
    let found = scene.machine.lrz_findings().unwrap();
    assert_eq!((found.unchecked, found.misses.len() as u64), (0, found.missed));
    (found.rejected, found.missed)
}

/// What is behind is rejected, and fails the test of depth as well.
#[test]
fn what_is_behind_is_rejected() {
    each(|mut scene| {
        draw(&mut scene, 0.25, ENABLE | WRITE | TEST, LESS | DEPTH_WRITE);
        draw(&mut scene, 0.5, ENABLE | WRITE | TEST, LESS | DEPTH_WRITE);
        draw(&mut scene, 0.125, ENABLE | WRITE | TEST, LESS | DEPTH_WRITE);
        draw(&mut scene, 0.5, 0, LESS | DEPTH_WRITE);
        assert_eq!(ends(&mut scene), (ALL, 0));
        assert_eq!(data(&scene.machine, LRZ), 0x2000_2000, "the nearest of them, rounded up");
        assert_eq!(data(&scene.machine, LRZ + 8), u32::MAX, "no pixels");
    });
}

/// A draw that writes LRZ and not its depth hides what is drawn behind it.
#[test]
fn what_is_seen_must_not_be_rejected() {
    each(|mut scene| {
        draw(&mut scene, 0.25, ENABLE | WRITE | TEST, LESS);
        draw(&mut scene, 0.5, ENABLE | WRITE | TEST, LESS | DEPTH_WRITE);
        assert_eq!(ends(&mut scene), (ALL, ALL));
        let misses = scene.machine.lrz_findings().unwrap().misses;
        assert_eq!((misses[33].pixel, misses[33].draw, misses[33].depth), ((1, 1), 1, 0.5));
        assert!((misses[33].bound - 0.25).abs() < 1e-4);
    });
}

/// What a binning pass put into the buffer rejects what is replaced later; fills of a driver count as well.
#[test]
fn what_is_replaced_may_be_rejected() {
    for replaced in [true, false] {
        each(|mut scene| {
            // 0.3 in all blocks.
            scene.put(LRZ, &[0x4ccc_4ccc; 0x80]);
            draw(&mut scene, 0.5, ENABLE | TEST, LESS | DEPTH_WRITE);
            if replaced {
                draw(&mut scene, 0.25, ENABLE | TEST, LESS | DEPTH_WRITE);
            }
            assert_eq!(ends(&mut scene), (ALL, if replaced { 0 } else { ALL }));
        });
    }
}

/// Another direction than that of the buffer turns LRZ off: for the draw, or with DIR_WRITE until the next clear.
#[test]
fn directions() {
    for writes_direction in [true, false] {
        each(|mut scene| {
            scene.put(LRZ, &[0; 0x80]).put(DEPTH, &[0; 0x800]);
            draw(&mut scene, 0.5, ENABLE | WRITE | TEST | GREATER | DIR_WRITE, MORE | DEPTH_WRITE);
            draw(&mut scene, 0.25, ENABLE | WRITE | TEST | GREATER | DIR_WRITE, MORE | DEPTH_WRITE);
            assert_eq!(ends(&mut scene), (ALL, 0));
            let checks = checks_direction(&mut scene, 0);
            let direction = if writes_direction { DIR_WRITE } else { 0 };
            // Both fail the test of depth, and are rejected where LRZ is on.
            draw(&mut scene, 0.75, ENABLE | WRITE | TEST | direction | checks, LESS);
            assert_eq!(ends(&mut scene), (ALL, 0), "LRZ is off");
            draw(&mut scene, 0.125, ENABLE | TEST | GREATER | checks, MORE);
            let after = if writes_direction { ALL } else { 2 * ALL };
            assert_eq!(ends(&mut scene), (after, 0), "DIR_WRITE: {writes_direction}");
        });
    }
}

/// Sets DISABLE_ON_WRONG_DIR with other bits of GRAS_LRZ_CNTL2; its bit of GRAS_LRZ_CNTL where it is there.
fn checks_direction(scene: &mut Scene<'_>, control2: u32) -> u32 {
    if scene.stream.gpu.generation() == A6xx {
        return 1 << 9;
    }
    scene.set("GRAS_LRZ_CNTL2", &[1 | control2]);
    0
}

/// A clear under one view of depth turns LRZ off for draws under another one, as drivers turn it off for an image.
#[test]
fn views_of_depth() {
    const NO_VIEW: u32 = 0xf7ff_07ff;
    const FIRST_LAYER: u32 = 1 << 16;
    for (cleared, rejected) in [(NO_VIEW, 0), (FIRST_LAYER, ALL)] {
        each(|mut scene| {
            scene.put(LRZ, &[0x4ccc_4ccc; 0x80]);
            let checks = checks_direction(&mut scene, 0);
            scene.set("GRAS_LRZ_DEPTH_VIEW", &[cleared]).set("GRAS_LRZ_CNTL", &[ENABLE | checks]);
            scene.event("LRZ_CLEAR").set("GRAS_LRZ_DEPTH_VIEW", &[FIRST_LAYER]);
            draw(&mut scene, 0.5, ENABLE | TEST | checks, LESS | DEPTH_WRITE);
            assert_eq!(ends(&mut scene), (rejected, rejected));
        });
    }
}

/// A fast clear has its value from a7xx on; before, its blocks reject nothing.
#[test]
fn fast_clears() {
    each(|mut scene| {
        let a6xx = scene.stream.gpu.generation() == A6xx;
        let fast = if a6xx { 1 << 3 } else { 0 };
        scene.set("GRAS_LRZ_CNTL", &[ENABLE | fast]);
        if !a6xx {
            scene.set("GRAS_LRZ_CNTL2", &[2]).set("GRAS_LRZ_CLEAR_DEPTH_F32", &[0.25f32.to_bits()]);
        }
        scene.event("LRZ_CLEAR");
        draw(&mut scene, 0.5, ENABLE | TEST | fast, LESS | DEPTH_WRITE);
        let all = if a6xx { 0 } else { ALL };
        assert_eq!(ends(&mut scene), (all, all));
    });
}

/// Triangles over all of the target at these depths, in so many draws, tested late.
fn late(scene: &mut Scene<'_>, depths: &[f32], draws: usize) {
    scene.set("GRAS_SU_DEPTH_PLANE_CNTL", &[2]).set("RB_DEPTH_PLANE_CNTL", &[2]);
    scene.set("GRAS_LRZ_CNTL", &[ENABLE | WRITE | TEST]).set("RB_DEPTH_CNTL", &[LESS | DEPTH_WRITE]);
    let corners = |z: f32| [[-1.0, -1.0], [3.0, -1.0], [-1.0, 3.0]].map(|[x, y]| vertex(x, y, z, RED));
    let vertices: Vec<Vertex> = depths.iter().flat_map(|&z| corners(z)).collect();
    scene.vertices(&vertices);
    let each = depths.len() / draws;
    for first in (0..depths.len()).step_by(each) {
        scene.set("VFD_INDEX_OFFSET", &[3 * first as u32]).draw(TRIANGLES, 3 * each as u32);
    }
}

/// What late tests find does not depend on how many fragments wait to be shaded at once: LRZ tests a fragment when it is
/// rasterized, before later primitives of the same batch have changed the block.
#[test]
fn counts_do_not_depend_on_batches() {
    const DEPTHS: [f32; 8] = [0.5, 0.75, 0.25, 0.375, 0.625, 0.125, 0.1875, 0.25];
    // Farther than the nearest before them: 0.75, 0.375, 0.625, 0.1875, 0.25.
    for draws in [1, 2, 4, 8] {
        each(|mut scene| {
            late(&mut scene, &DEPTHS, draws);
            assert_eq!(ends(&mut scene), (5 * ALL, 0), "{draws} draws");
        });
    }
}

/// A triangle over all of the target that LRZ rejects and that passes every test.
fn all_missed(scene: &mut Scene<'_>) {
    scene.set("GRAS_LRZ_CNTL", &[ENABLE | TEST]).set("RB_DEPTH_CNTL", &[1 | 7 << 2 | 1 << 6]);
    scene.vertices(&[[-1.0, -1.0], [3.0, -1.0], [-1.0, 3.0]].map(|[x, y]| vertex(x, y, 0.5, RED)));
}

/// Misses beyond those that are listed are counted.
#[test]
fn misses_that_are_not_listed() {
    each(|mut scene| {
        scene.put(LRZ, &[0; 0x80]);
        all_missed(&mut scene);
        let passes = 65;
        for _ in 0..passes {
            scene.draw(TRIANGLES, 3).stream.op("SET_MARKER", &[1]);
        }
        assert_eq!(scene.run(), RunEnd::Done);
        let found = scene.machine.lrz_findings().unwrap();
        assert_eq!((found.rejected, found.missed, found.unchecked), (passes * ALL, passes * ALL, 0));
        assert_eq!(found.misses.len(), 1 << 16);
    });
}

/// Fragments of a pass beyond those that are followed are counted.
#[test]
fn fragments_that_are_not_followed() {
    const DEPTHS: u64 = MORE_MEMORY + (1 << 20);
    const BLOCKS: u64 = MORE_MEMORY + (2 << 20);
    let db = Db::builtin();
    let mut scene = Scene::new(&db, A6xx);
    scene.more(3 << 20).machine.check_lrz();
    // 512 by 256 pixels.
    let [middle, half] = [256f32, 128.0].map(f32::to_bits);
    scene.set("GRAS_CL_VPORT[0].XOFFSET", &[middle, middle, half, half, 0, 1f32.to_bits()]);
    for name in ["VIEWPORT_SCISSOR[0].TL", "SCREEN_SCISSOR[0].TL", "WINDOW_SCISSOR_TL"] {
        scene.set(&format!("GRAS_SC_{name}"), &[0, 511 | 255 << 16]);
    }
    let [base, top] = [low(MORE_MEMORY), high(MORE_MEMORY)];
    scene.set("RB_MRT[0].CONTROL", &[0xf << 7, 0, 0x30, 32, 32 * 256, base, top, 0]);
    scene.set("RB_DEPTH_BUFFER_INFO", &[4, 32, 0, low(DEPTHS), high(DEPTHS), 0]);
    scene.set("GRAS_LRZ_BUFFER_BASE", &[low(BLOCKS), high(BLOCKS), 2]);
    all_missed(&mut scene);
    scene.draw(TRIANGLES, 3).stream.op("SET_MARKER", &[1]);
    assert_eq!(scene.run(), RunEnd::Done);
    let found = scene.machine.lrz_findings().unwrap();
    assert_eq!((found.rejected, found.missed, found.unchecked), (512 * 256, 1 << 16, 1 << 16));
    assert_eq!(found.misses.len(), 1 << 16);
}
