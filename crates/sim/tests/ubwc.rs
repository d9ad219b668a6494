//! Surfaces with UBWC by command streams that are put together here: whoever reads what another unit has written, with its flags,
//! reads the same.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, data, high, low, machine_of};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::{GpuFaultKind, RunEnd};

/// Texels and flags of a surface of 32 by 32 behind `DATA`.
const TEXELS: u64 = 0x1000;
const FLAGS: u64 = 0x3000;
/// Flags of 2 by 8 blocks of 16 by 4 texels, 64 bytes a row.
const FLAG_ROWS: u64 = 8;
/// Bytes of a row of the surface, and of the image.
const PITCH: u32 = 256;
const IMAGE_PITCH: u32 = SIZE * 4;
const FORMAT: u32 = 0x30;
const TILE3: u32 = 3;
/// Codes of flags.
const STORED: u8 = 1;
const CLEARED: u8 = 2;

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    [A6xx, A7xx].into_iter().for_each(|generation| test(Scene::new(&db, generation)));
}

fn address(at: u64) -> [u32; 2] {
    [low(DATA + at), high(DATA + at)]
}

/// The target of draws: the surface, or the linear image.
fn target(scene: &mut Scene<'_>, compressed: bool) {
    let a6xx = scene.stream.gpu.generation() == A6xx;
    let [base, top] = address(if compressed { TEXELS } else { IMAGE });
    let in_register = if compressed && !a6xx { 1 << 11 } else { 0 };
    let info = FORMAT | if compressed { TILE3 << 8 } else { 0 } | in_register;
    let pitch = if compressed { PITCH } else { IMAGE_PITCH };
    scene.set("RB_MRT[0].BUF_INFO", &[info, pitch / 64, pitch * SIZE / 64, base, top]);
    if a6xx {
        scene.set("RB_RENDER_CNTL", &[u32::from(compressed) << 16]);
    }
    let [base, top] = address(FLAGS);
    scene.set("RB_MRT_FLAG_BUFFER[0].ADDR", &[base, top, 1]);
}

/// A side of a copy of the 2D engine.
#[derive(Clone, Copy)]
enum Side {
    Compressed,
    /// The texels of the surface, without its flags.
    Bare,
    Linear,
}

impl Side {
    fn info(self) -> u32 {
        match self {
            Side::Compressed => FORMAT | TILE3 << 8 | 1 << 12,
            Side::Bare => FORMAT | TILE3 << 8,
            Side::Linear => FORMAT,
        }
    }

    fn pitch(self) -> u32 {
        if matches!(self, Side::Linear) { IMAGE_PITCH } else { PITCH }
    }

    fn base(self) -> [u32; 2] {
        address(if matches!(self, Side::Linear) { IMAGE } else { TEXELS })
    }
}

fn destination(scene: &mut Scene<'_>, to: Side, [x, y, right, bottom]: [u32; 4]) {
    scene.set("GRAS_2D_DST_TL", &[x | y << 16, right | bottom << 16]);
    let [base, top] = to.base();
    scene.set("RB_2D_DST_INFO", &[to.info(), base, top, to.pitch() / 64]);
    let [base, top] = address(FLAGS);
    scene.set("RB_2D_DST_FLAGS", &[base, top, 1]);
}

/// Copies all of an image.
fn copy(scene: &mut Scene<'_>, from: Side, to: Side) {
    let last = SIZE - 1;
    destination(scene, to, [0, 0, last, last]);
    scene.set("RB_2D_BLIT_CNTL", &[FORMAT << 8 | 0xf << 20 | 0x10 << 24]);
    for (name, value) in [("TL_X", 0), ("BR_X", last << 8), ("TL_Y", 0), ("BR_Y", last << 8)] {
        scene.set(&format!("GRAS_2D_SRC_{name}"), &[value]);
    }
    let [base, top] = from.base();
    scene.set("SP_PS_2D_SRC_INFO", &[from.info(), SIZE | SIZE << 15, base, top, from.pitch() << 3]);
    let [base, top] = address(FLAGS);
    scene.set("SP_PS_2D_SRC_FLAGS", &[base, top, 1]);
    scene.stream.op("BLIT", &[3]);
}

/// Fills a rectangle with the 2D engine.
fn fill(scene: &mut Scene<'_>, to: Side, area: [u32; 4], colour: u32) {
    destination(scene, to, area);
    scene.set("RB_2D_BLIT_CNTL", &[1 << 7 | FORMAT << 8 | 0xf << 20 | 0x10 << 24]);
    scene.set("RB_2D_SRC_SOLID_C0", &colour.to_le_bytes().map(u32::from));
    scene.stream.op("BLIT", &[3]);
}

/// Samples the surface into the linear image with a draw.
fn sample(scene: &mut Scene<'_>) {
    target(scene, false);
    scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.0, RED));
    let source = "shr.b r2.x, r2.x, 4\nshr.b r2.y, r2.y, 4\n(rpt5)nop\nisam (f32)(xyzw)r0.z, r2.x, s#0, t#0\n\
                  (sy)nop\nend";
    scene.code(FRAGMENT_CODE, source);
    scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
    let ([base, top], [flags, flags_top]) = (address(TEXELS), address(FLAGS));
    let texture = [
        TILE3 | 1 << 7 | 2 << 10 | 3 << 13 | FORMAT << 22,
        SIZE | SIZE << 15,
        PITCH << 7 | 1 << 29,
        2 | 1 << 27 | 1 << 28,
        base,
        top | 1 << 17,
        0,
        flags,
        flags_top,
        (0x1000 / 4) >> 4,
        1 | 1 << 8 | 3 << 12,
    ];
    let mut words = vec![1 << 14 | 4 << 18 | 1 << 22, 0, 0];
    words.extend(texture);
    words.resize(3 + 16, 0);
    scene.stream.op("LOAD_STATE6_FRAG", &words);
    words[0] = 4 << 18 | 1 << 22;
    words.truncate(3);
    words.resize(3 + 4, 0);
    scene.stream.op("LOAD_STATE6_FRAG", &words);
    scene.draw(STRIP, 4);
}

fn triangle() -> [Vertex; 3] {
    [vertex(-1.0, -0.9, 0.0, RED), vertex(0.8, 0.1, 0.0, GREEN), vertex(-0.3, 1.0, 0.0, BLUE)]
}

fn flags(scene: &Scene<'_>) -> Vec<u8> {
    let row = |n: u64| (data(&scene.machine, FLAGS + 64 * n) as u16).to_le_bytes();
    (0..FLAG_ROWS).flat_map(row).collect()
}

/// Every GPU of the table draws into tiles with UBWC, in memory and in GMEM, and reads them back: what it draws is the same on all.
#[test]
fn every_gpu_draws_into_tiles() {
    let db = Db::builtin();
    let devices = db.devices().filter(|device| device.generation() >= A6xx);
    let mut first: Option<Vec<u32>> = None;
    for device in devices {
        let name = device.name();
        let gpu = db.identify(device.gpu_id().unwrap_or(0), device.chip_id()).unwrap();
        for in_gmem in [false, true] {
            let mut scene = Scene::on(&db, machine_of(&db, gpu));
            scene.vertices(&triangle());
            fill(&mut scene, Side::Compressed, [0, 0, SIZE - 1, SIZE - 1], BLUE8);
            target(&mut scene, true);
            if in_gmem {
                bin_of_surface(&mut scene);
                scene.draw(TRIANGLES, 3).set("RB_BLIT_INFO", &[0]).event_of(["BLIT", "CCU_RESOLVE"]);
            } else {
                scene.draw(TRIANGLES, 3);
            }
            copy(&mut scene, Side::Compressed, Side::Linear);
            let image = scene.image();
            assert!(scene.machine.notes().next().is_none(), "{name}");
            assert_eq!(&image, first.get_or_insert(image.clone()), "{name}, in GMEM: {in_gmem}");
        }
    }
    let image = first.expect("the table has GPUs");
    assert!(image.contains(&BLUE8) && image.iter().any(|texel| *texel != BLUE8));
}

/// A bin of all of the surface, which is loaded.
fn bin_of_surface(scene: &mut Scene<'_>) {
    let [base, top] = address(TEXELS);
    scene.set("RB_BLIT_SCISSOR_TL", &[0, (SIZE - 1) | (SIZE - 1) << 16]);
    let info = TILE3 | 1 << 2 | FORMAT << 7;
    scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, info, base, top, PITCH / 64]);
    let [base, top] = address(FLAGS);
    scene.set("RB_BLIT_FLAG_DST", &[base, top, 1]);
    scene.gmem(2).set("RB_BLIT_INFO", &[3]).event_of(["BLIT", "CCU_RESOLVE"]);
}

/// What is drawn, and what was cleared before, is read back by the 2D engine and by a shader.
#[test]
fn what_is_written_is_read_back() {
    each(|mut scene| {
        scene.vertices(&triangle());
        fill(&mut scene, Side::Linear, [0, 0, SIZE - 1, SIZE - 1], BLUE8);
        let plain = scene.draw(TRIANGLES, 3).image();
        assert!(plain.contains(&BLUE8) && plain.iter().any(|texel| *texel != BLUE8));

        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        fill(&mut scene, Side::Compressed, [0, 0, SIZE - 1, SIZE - 1], BLUE8);
        target(&mut scene, true);
        scene.draw(TRIANGLES, 3);
        copy(&mut scene, Side::Compressed, Side::Linear);
        assert_eq!(scene.image(), plain);
        let written = flags(&scene);
        assert!(written.contains(&STORED) && written.contains(&CLEARED), "{written:?}");
        // Without the flags a cleared block is what was there before.
        copy(&mut scene, Side::Bare, Side::Linear);
        assert_ne!(scene.image(), plain);

        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        sample(&mut scene);
        assert_eq!(scene.image(), plain);
    });
}

/// A copy into a surface, and clears of parts of blocks.
#[test]
fn the_2d_engine_writes_and_clears_blocks() {
    each(|mut scene| {
        let image: Vec<u32> = (0..SIZE * SIZE).map(|n| n.wrapping_mul(0x0101_0307)).collect();
        scene.put(IMAGE, &image);
        copy(&mut scene, Side::Linear, Side::Compressed);
        // Columns 8 to 31 of rows 0 to 9: half of the blocks at the left, and half of the last row.
        fill(&mut scene, Side::Compressed, [8, 0, 31, 9], GREEN8);
        scene.stream.op("WAIT_FOR_IDLE", &[]);
        copy(&mut scene, Side::Compressed, Side::Linear);
        let expected: Vec<u32> = (0..SIZE * SIZE)
            .map(|n| if n % SIZE >= 8 && n / SIZE < 10 { GREEN8 } else { image[n as usize] })
            .collect();
        assert_eq!(scene.image(), expected);
        let (stored, cleared) = (STORED, CLEARED);
        assert_eq!(flags(&scene)[..8], [stored, cleared, stored, cleared, stored, stored, stored, stored]);
        // The clear of a part of a cleared block keeps the rest.
        fill(&mut scene, Side::Compressed, [16, 0, 16, 0], RED8);
        copy(&mut scene, Side::Compressed, Side::Linear);
        let again = scene.image();
        assert_eq!((again[16], again[17], again[31]), (RED8, GREEN8, GREEN8));
    });
}

/// Bins are loaded from and stored to surfaces, and BLIT clears of a7xx are clears of blocks.
#[test]
fn resolves_keep_flags() {
    each(|mut scene| {
        let a6xx = scene.stream.gpu.generation() == A6xx;
        scene.vertices(&triangle());
        fill(&mut scene, Side::Linear, [0, 0, SIZE - 1, SIZE - 1], BLUE8);
        let plain = scene.draw(TRIANGLES, 3).image();
        let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
        let blit = events.value_of("BLIT").or(events.value_of("CCU_RESOLVE")).unwrap() as u32;
        let event = if a6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        let [base, top] = address(TEXELS);
        let last = (SIZE - 1) | (SIZE - 1) << 16;
        scene.set("RB_BLIT_SCISSOR_TL", &[0, last]);
        let info = TILE3 | 1 << 2 | FORMAT << 7;
        scene.set("RB_BLIT_GMEM_MSAA_CNTL", &[0, 0, info, base, top, PITCH / 64]);
        let [base, top] = address(FLAGS);
        scene.set("RB_BLIT_FLAG_DST", &[base, top, 1]);
        scene.set("RB_BLIT_CLEAR_COLOR_DW0", &[BLUE8, 0, 0, 0, 2 | 0xf << 4]);
        // Memory is cleared.
        scene.stream.op(event, &[blit]);
        scene.run();
        assert_eq!(flags(&scene), [CLEARED; 2 * FLAG_ROWS as usize]);
        // It is loaded, drawn to, and stored.
        scene.gmem(2).set("RB_BLIT_INFO", &[3]);
        scene.stream.op(event, &[blit]);
        target(&mut scene, true);
        scene.draw(TRIANGLES, 3).set("RB_BLIT_INFO", &[0]);
        scene.stream.op(event, &[blit]);
        copy(&mut scene, Side::Compressed, Side::Linear);
        assert_eq!(scene.image(), plain);
        assert_eq!(flags(&scene), [STORED; 2 * FLAG_ROWS as usize]);
    });
}

/// Flags that this machine has not written say nothing of their blocks, until these are written.
#[test]
fn flags_of_another_origin_are_not_known() {
    each(|mut scene| {
        scene.put(FLAGS, &[0x5555_5555; 128]);
        copy(&mut scene, Side::Compressed, Side::Linear);
        let RunEnd::Stopped { stop, .. } = scene.run() else { panic!("a read of what is not known") };
        let fault = stop.gpu_fault().expect("memory");
        assert_eq!((fault.kind, fault.iova), (GpuFaultKind::Unknown, DATA + FLAGS));
        if scene.stream.gpu.generation() == A7xx {
            scene.stream.op("THREAD_CONTROL", &[1]);
        }
        let image: Vec<u32> = (0..SIZE * SIZE).collect();
        scene.put(IMAGE, &image);
        copy(&mut scene, Side::Linear, Side::Compressed);
        copy(&mut scene, Side::Compressed, Side::Linear);
        assert_eq!(scene.image(), image);
    });
}
