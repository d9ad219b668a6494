//! Visibility streams by command streams that are put together here: the binning pass writes them, drawing passes obey them.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, PLAIN, data, high, low, register};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;

/// Where the streams are behind `DATA`, and bytes from a pipe's to the next.
const DRAWS: u64 = 0xa800;
const DRAW_PITCH: u32 = 0x100;
const SIZES: u64 = 0xac00;
const PRIMITIVES: u64 = 0xb000;
const PRIMITIVE_PITCH: u32 = 0x400;
/// A draw that asks for the streams.
const VISIBILITY: u32 = 1 << 8;

const BINNING: u32 = 2;
const RENDER_START: u32 = 4;
const RENDER_END: u32 = 7;

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    [A6xx, A7xx].into_iter().for_each(|generation| test(Scene::new(&db, generation)));
}

/// Bins of 32 by 16: both of one pipe, or each of its own.
fn begin_binning(scene: &mut Scene<'_>, pipes: &[u32], limits: [u32; 2]) {
    scene.stream.op("SET_MARKER", &[BINNING]);
    let address = |at: u64| [low(DATA + at), high(DATA + at)];
    let addresses = [address(DRAWS), address(SIZES), address(PRIMITIVES)];
    if scene.stream.gpu.generation() == A6xx {
        let names = ["VSC_DRAW_STRM_ADDRESS", "VSC_DRAW_STRM_SIZE_ADDRESS", "VSC_PRIM_STRM_ADDRESS"];
        for (name, address) in names.iter().zip(addresses) {
            scene.set(name, &address);
        }
    } else {
        let words = (8..).zip(addresses).flat_map(|(number, [low, high])| [number, low, high]);
        scene.stream.op("SET_PSEUDO_REG", &words.collect::<Vec<u32>>());
    }
    scene.set("VSC_BIN_SIZE", &[1 | 1 << 8]).set("VSC_BIN_COUNT", &[1 << 1 | 2 << 11]);
    let mut all = [0; 32];
    all[..pipes.len()].copy_from_slice(pipes);
    scene.set("VSC_PIPE_CONFIG[0].REG", &all);
    scene.set("VSC_DRAW_STRM_PITCH", &[DRAW_PITCH, limits[0]]);
    scene.set("VSC_PRIM_STRM_PITCH", &[PRIMITIVE_PITCH, limits[1]]);
    let last = (SIZE - 1) | (SIZE - 1) << 16;
    scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[0, last]);
    scene.stream.op("SET_VISIBILITY_OVERRIDE", &[1]);
}

const ONE_PIPE: [u32; 1] = [1 << 20 | 2 << 26];
const TWO_PIPES: [u32; 2] = [1 << 20 | 1 << 26, 1 << 10 | 1 << 20 | 1 << 26];
const LIMITS: [u32; 2] = [DRAW_PITCH - 0x40, PRIMITIVE_PITCH - 0x40];

/// Renders both bins in GMEM.
fn render(scene: &mut Scene<'_>, pipes: &[u32], mut draws: impl FnMut(&mut Scene<'_>)) {
    scene.gmem(1);
    for bin in 0..2 {
        scene.stream.op("SET_MARKER", &[RENDER_START | 1 << 4]);
        let (pipe, slot) = if pipes.len() == 1 { (0, bin) } else { (bin, 0) };
        let slots = if pipes.len() == 1 { 2 } else { 1 };
        let word = slots << 16 | slot << 22;
        scene.stream.op("SET_BIN_DATA5_OFFSET", &[word, pipe * DRAW_PITCH, pipe * 4, pipe * PRIMITIVE_PITCH]);
        scene.stream.op("SET_VISIBILITY_OVERRIDE", &[0]);
        let (first, last) = (bin << 20, (SIZE - 1) | (16 * bin + 15) << 16);
        scene.set("RB_WINDOW_OFFSET", &[first]).set("RB_WINDOW_OFFSET2", &[first]);
        scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
        scene.set("RB_BLIT_SCISSOR_TL", &[first, last]);
        let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
        scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, 0x30 << 7, base, top, SIZE / 16]);
        scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
        scene.event_of(["BLIT", "CCU_RESOLVE"]);
        draws(scene);
        scene.set("RB_BLIT_INFO", &[0]);
        scene.event_of(["BLIT", "CCU_RESOLVE"]);
        scene.stream.op("SET_MARKER", &[RENDER_END]);
    }
}

/// Triangles: one at the top, one at the bottom, one in both bins, one outside.
fn triangles() -> Vec<Vertex> {
    let triangle = |x: f32, y: [f32; 2], colour| {
        [vertex(x, y[0], 0.0, colour), vertex(x + 0.8, y[0], 0.0, colour), vertex(x, y[1], 0.0, colour)]
    };
    [
        triangle(-0.9, [-0.9, -0.1], RED),
        triangle(-0.9, [0.1, 0.9], GREEN),
        triangle(0.0, [-0.7, 0.8], RED),
        triangle(2.0, [-0.7, 0.8], GREEN),
    ]
    .concat()
}

/// Draws of one triangle each, then all four in one draw.
fn draw_all(scene: &mut Scene<'_>) {
    for n in 0..4 {
        scene.set("VFD_INDEX_OFFSET", &[3 * n]).draw(TRIANGLES | VISIBILITY, 3);
    }
    scene.set("VFD_INDEX_OFFSET", &[0]).draw_instances(TRIANGLES | VISIBILITY, 2, 12);
}

#[test]
fn drawing_passes_skip_what_their_bin_does_not_show() {
    for pipes in [&ONE_PIPE[..], &TWO_PIPES[..]] {
        each(|mut scene| {
            scene.vertices(&triangles());
            scene.put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
            draw_all(&mut scene);
            let plain = scene.image();
            let shaded = scene.machine.work_done();
            scene.put(IMAGE, &[0x1234_5678; (SIZE * SIZE) as usize]);
            begin_binning(&mut scene, pipes, LIMITS);
            draw_all(&mut scene);
            render(&mut scene, pipes, draw_all);
            assert_eq!(scene.image(), plain);
            // Five in the binning pass, three in each bin.
            assert_eq!(scene.machine.work_done() - shaded, 5 + 3 + 3);
            let slots: Vec<u32> = (0..5).map(|n| data(&scene.machine, DRAWS + 4 * n)).collect();
            let reg = |name: &str| register(&scene.machine, scene.stream.gpu.reg_offset(name).unwrap());
            if pipes.len() == 1 {
                assert_eq!(slots, [1, 2, 3, 0, 3]);
                let state = scene.stream.gpu.reg_offset("VSC_STATE[0].REG").unwrap();
                assert_eq!([0, 1].map(|n| register(&scene.machine, state + n)), [3, 0]);
                // The last draw: bits of the first and third triangle, of the second and third.
                let at = PRIMITIVES + 4 * (2 + 2 + 3);
                assert_eq!([0, 4, 8].map(|n| data(&scene.machine, at + n)), [32, 0b101, 0b110]);
            } else {
                assert_eq!(slots, [1, 0, 1, 0, 1]);
            }
            assert_eq!(data(&scene.machine, SIZES), 20);
            if scene.stream.gpu.generation() == A6xx {
                assert_eq!(reg("VSC_DRAW_STRM_SIZE[0].REG"), 20);
            }
        });
    }
}

/// Streams of zeros show nothing, of a draw and of its primitives; the override shows everything.
#[test]
fn nothing_visible_draws_nothing() {
    each(|mut scene| {
        scene.vertices(&triangles());
        let blue = vec![BLUE8; (SIZE * SIZE) as usize];
        for (draws, primitives, size) in [(0, 0, 20), (u32::MAX, 1, 20), (u32::MAX, 1, 0)] {
            begin_binning(&mut scene, &ONE_PIPE, LIMITS);
            scene.run();
            scene.put(DRAWS, &[draws; 5]).put(PRIMITIVES, &[0; 0x100]).put(SIZES, &[size]);
            // A dword of bits of no primitive for each of 32 slots.
            for n in 0..5 {
                scene.put(PRIMITIVES + 4 * 33 * n, &[primitives]);
            }
            render(&mut scene, &ONE_PIPE, draw_all);
            assert_eq!(scene.image(), blue, "{draws:#x} {size}");
        }
        scene.put(SIZES, &[0]);
        render(&mut scene, &ONE_PIPE, |scene| {
            scene.stream.op("SET_VISIBILITY_OVERRIDE", &[1]);
            draw_all(scene);
        });
        assert_ne!(scene.image(), blue);
        // Draws that do not ask are not left out.
        render(&mut scene, &ONE_PIPE, |scene| {
            scene.draw(TRIANGLES, 3);
        });
        assert_ne!(scene.image(), blue);
    });
}

/// What goes past a limit is visible, and the sizes say so.
#[test]
fn streams_past_their_limit_show_everything() {
    for limits in [[8, LIMITS[1]], [LIMITS[0], 20], [LIMITS[0], 4], [0, 0]] {
        each(|mut scene| {
            scene.vertices(&triangles());
            scene.put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
            draw_all(&mut scene);
            let plain = scene.image();
            scene.put(DRAWS, &[0x5555_5555; 0x40]).put(PRIMITIVES, &[0x5555_5555; 0x100]);
            begin_binning(&mut scene, &ONE_PIPE, limits);
            draw_all(&mut scene);
            render(&mut scene, &ONE_PIPE, draw_all);
            assert_eq!(scene.image(), plain, "{limits:?}");
            let state = scene.stream.gpu.reg_offset("VSC_STATE[0].REG").unwrap();
            let sizes = [0x40, 0x20].map(|at| register(&scene.machine, state + at));
            assert!(sizes[0] >= limits[0] || sizes[1] >= limits[1]);
            let untouched = |at: u64, limit: u32| data(&scene.machine, at + u64::from(limit)) == 0x5555_5555;
            assert!(untouched(DRAWS, limits[0].min(0xf0)) && untouched(PRIMITIVES, limits[1]), "{limits:?}");
        });
    }
}

/// Groups of a draw that is left out wait for one that is visible. They are executed for the passes they are for.
#[test]
fn groups_wait_for_a_visible_draw() {
    each(|mut scene| {
        scene.vertices(&triangles());
        let group = DATA + RESULTS + 0x100;
        let mut counted = cp_rig::Stream { gpu: scene.stream.gpu, words: Vec::new() };
        counted.write(PLAIN, &[7]);
        scene.put(RESULTS + 0x100, &counted.words);
        let set = |scene: &mut Scene<'_>| {
            let entry = [counted.words.len() as u32 | 1 << 21 | 3 << 24, low(group), high(group)];
            scene.stream.write(PLAIN, &[1]).op("SET_DRAW_STATE", &entry);
        };
        begin_binning(&mut scene, &ONE_PIPE, LIMITS);
        set(&mut scene);
        scene.set("VFD_INDEX_OFFSET", &[9]).draw(TRIANGLES | VISIBILITY, 3);
        scene.set("VFD_INDEX_OFFSET", &[0]).draw(TRIANGLES | VISIBILITY, 3);
        let mut at = 0;
        render(&mut scene, &ONE_PIPE, |scene| {
            set(scene);
            for first in [9, 0] {
                scene.set("VFD_INDEX_OFFSET", &[first]).draw(TRIANGLES | VISIBILITY, 3);
                let place = DATA + RESULTS + at;
                scene.stream.op("REG_TO_MEM", &[PLAIN, low(place), high(place)]);
                at += 4;
            }
        });
        scene.image();
        let seen: Vec<u32> = (0..4).map(|n| data(&scene.machine, RESULTS + 4 * n)).collect();
        assert_eq!(seen, [1, 7, 1, 1], "only in the first bin is something visible");
    });
}

/// On a7xx BV can write the streams while BR does something else.
#[test]
fn the_binning_pass_of_bv_is_obeyed_by_br() {
    let db = Db::builtin();
    let mut scene = Scene::new(&db, A7xx);
    scene.vertices(&triangles());
    let pass = std::mem::take(&mut scene.stream.words);
    scene.stream.op("THREAD_CONTROL", &[3]);
    scene.stream.words.extend(&pass[2..]);
    scene.stream.op("THREAD_CONTROL", &[2]);
    begin_binning(&mut scene, &ONE_PIPE, LIMITS);
    draw_all(&mut scene);
    scene.stream.op("THREAD_CONTROL", &[1 | 1 << 31]);
    let words = [(8, DRAWS), (9, SIZES), (10, PRIMITIVES)];
    let words = words.map(|(number, at)| [number, low(DATA + at), high(DATA + at)]);
    scene.stream.op("SET_PSEUDO_REG", words.as_flattened());
    scene.set("VSC_DRAW_STRM_PITCH", &[DRAW_PITCH, LIMITS[0]]);
    scene.set("VSC_PRIM_STRM_PITCH", &[PRIMITIVE_PITCH, LIMITS[1]]);
    render(&mut scene, &ONE_PIPE, draw_all);
    let binned = scene.image();
    assert_eq!(scene.machine.work_done(), 5 + 3 + 3);
    let mut plain = Scene::new(&db, A7xx);
    plain.vertices(&triangles()).put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
    draw_all(&mut plain);
    assert_eq!(binned, plain.image());
}

/// Clears an area of the image by an event, in a format with an order of channels.
fn clear(scene: &mut Scene<'_>, value: u32, [format, swap]: [u32; 2], info: u32) {
    const AREA: [u32; 2] = [4 | 8 << 16, 11 | 23 << 16];
    let [base, top] = [low(DATA + IMAGE), high(DATA + IMAGE)];
    scene.set("RB_BLIT_SCISSOR_TL", &AREA);
    scene.set("RB_BLIT_DST_INFO", &[format << 7 | swap << 5, base, top, SIZE / 16]);
    scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[value, 0, 0, 0, 2 | info]);
    scene.event_of(["BLIT", "CCU_RESOLVE"]);
}

fn in_area(at: usize) -> bool {
    let (x, y) = (at as u32 % SIZE, at as u32 / SIZE);
    (4..12).contains(&x) && (8..24).contains(&y)
}

/// On a7xx a register says whether an event clears GMEM or memory, whatever draws go to. Values are red first; memory has its
/// own order of channels.
#[test]
fn clears_of_memory_beside_bins() {
    const RGBA8: u32 = 0x30;
    const ALL: u32 = 0xf << 4;
    let db = Db::builtin();
    for (of_gmem, swap, cleared) in [(false, 0, RED8), (false, 1, BLUE8), (true, 0, GREEN8)] {
        let mut scene = Scene::new(&db, A7xx);
        scene.put(IMAGE, &[GREEN8; (SIZE * SIZE) as usize]);
        scene.gmem(1).set("RB_WINDOW_OFFSET", &[16 << 16]).set("RB_WINDOW_OFFSET2", &[16 << 16]);
        scene.set("RB_BLIT_CLEAR_MODE", &[of_gmem.into()]);
        clear(&mut scene, RED8, [RGBA8, swap], ALL);
        for (at, found) in scene.image().into_iter().enumerate() {
            let expected = if in_area(at) { cleared } else { GREEN8 };
            assert_eq!(found, expected, "texel {at} of order {swap}, of GMEM: {of_gmem}");
        }
    }
}

/// Of depth and stencil together, a clear of a7xx names the one or the other.
#[test]
fn clears_of_depth_or_stencil() {
    const DEPTH_24_STENCIL: u32 = 0xa0;
    let db = Db::builtin();
    for (mask, cleared) in [(1, 0x11bb_ccdd), (2, 0xaa22_3344), (0xf, 0xaabb_ccdd)] {
        let mut scene = Scene::new(&db, A7xx);
        scene.put(IMAGE, &[0x1122_3344; (SIZE * SIZE) as usize]);
        clear(&mut scene, 0xaabb_ccdd, [DEPTH_24_STENCIL, 0], mask << 4 | 8 << 12 | 1 << 3);
        for (at, found) in scene.image().into_iter().enumerate() {
            assert_eq!(found, if in_area(at) { cleared } else { 0x1122_3344 }, "mask {mask}, texel {at}");
        }
    }
}

/// A binning pass executes the streams of draws, and no clear that is in them.
#[test]
fn binning_passes_clear_nothing() {
    let db = Db::builtin();
    let mut scene = Scene::new(&db, A7xx);
    scene.put(IMAGE, &[GREEN8; (SIZE * SIZE) as usize]);
    begin_binning(&mut scene, &ONE_PIPE, LIMITS);
    clear(&mut scene, RED8, [0x30, 0], 0xf << 4);
    scene.stream.op("SET_MARKER", &[RENDER_START]);
    assert_eq!(scene.image(), [GREEN8; (SIZE * SIZE) as usize]);
}

/// A draw that blends with GMEM is reported where nothing has written its tile: what the tile before has left there is not of its pixels.
#[test]
fn blending_with_what_a_tile_has_not_written() {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        for (cleared, unwritten) in [(2, 0), (1, 1), (0, 2)] {
            let mut scene = Scene::new(&db, generation);
            scene.machine.enable_caches();
            scene.machine.enable_audit();
            scene.put(IMAGE, &[BLUE8; (SIZE * SIZE) as usize]);
            scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, RED));
            scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
            scene.gmem(1);
            for bin in 0..2 {
                scene.stream.op("SET_MARKER", &[RENDER_START | 1 << 4]);
                let (first, last) = (bin << 20, (SIZE - 1) | (16 * bin + 15) << 16);
                scene.set("RB_WINDOW_OFFSET", &[first]).set("RB_WINDOW_OFFSET2", &[first]);
                scene.set("GRAS_SC_WINDOW_SCISSOR_TL", &[first, last]);
                scene.set("RB_BLIT_SCISSOR_TL", &[first, last]);
                scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, 0x30 << 7]);
                scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
                if bin < cleared {
                    scene.event_of(["BLIT", "CCU_RESOLVE"]);
                }
                scene.draw(STRIP, 4);
                scene.stream.op("SET_MARKER", &[RENDER_END]);
            }
            scene.done();
            let reads = scene.machine.space.take_audit().unwritten;
            let of_gmem = reads.iter().filter(|read| read.in_gmem).count();
            assert_eq!(of_gmem, unwritten, "{generation:?}, {cleared} tiles are cleared: {reads:#x?}");
        }
    }
}
