//! Caches between units and memory: for each pair of a writer and a reader, the reader gets what was written only after the
//! events that its packets need, and a read without them is reported.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, data, high, low};
use scene::*;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::{CacheReport, CacheSizes, CacheUnit, RunEnd, StaleRead};

const FORMAT: u32 = 0x30;
const OLD: u32 = 0x1111_1111;
const NEW: u32 = 0x2222_2222;
/// A row of texels behind `DATA` that is copied to.
const COPY: u64 = 0x1000;
/// Where what the CP reads is put.
const READ: u64 = RESULTS;

fn each(mut test: impl FnMut(Scene<'_>)) {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = Scene::new(&db, generation);
        scene.machine.enable_caches();
        test(scene);
    }
}

fn address(at: u64) -> [u32; 2] {
    [low(DATA + at), high(DATA + at)]
}

/// What an event does, and to which cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flush {
    Clean(CacheUnit),
    Invalidate(CacheUnit),
}

use Flush::{Clean, Invalidate};

fn event(scene: &mut Scene<'_>, flush: Flush) {
    let generation = scene.stream.gpu.generation();
    let name = match flush {
        Clean(unit) => unit.clean_event(generation),
        Invalidate(unit) => unit.invalidate_event(generation),
    };
    let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
    let number = events.value_of(name.unwrap()).unwrap() as u32;
    scene.stream.op(if generation == A6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" }, &[number]);
}

/// The engine writes a row of 16 texels at an offset.
fn to_row(scene: &mut Scene<'_>, at: u64) {
    scene.set("GRAS_2D_DST_TL", &[0, 15]);
    let [base, top] = address(at);
    scene.set("RB_2D_DST_INFO", &[FORMAT, base, top, 1]);
}

fn fill(scene: &mut Scene<'_>, at: u64, colour: u32) {
    to_row(scene, at);
    scene.set("RB_2D_BLIT_CNTL", &[1 << 7 | FORMAT << 8 | 0xf << 20 | 0x10 << 24]);
    scene.set("RB_2D_SRC_SOLID_C0", &colour.to_le_bytes().map(u32::from));
    scene.stream.op("BLIT", &[3]);
}

/// Reads through texture units and UCHE.
fn copy(scene: &mut Scene<'_>, at: u64) {
    to_row(scene, COPY);
    scene.set("RB_2D_BLIT_CNTL", &[FORMAT << 8 | 0xf << 20 | 0x10 << 24]);
    for (name, value) in [("TL_X", 0), ("BR_X", 15 << 8), ("TL_Y", 0), ("BR_Y", 0)] {
        scene.set(&format!("GRAS_2D_SRC_{name}"), &[value]);
    }
    let [base, top] = address(at);
    scene.set("SP_PS_2D_SRC_INFO", &[FORMAT, 16 | 1 << 15, base, top, 64 << 3]);
    scene.stream.op("BLIT", &[3]);
}

fn cp_read(scene: &mut Scene<'_>, at: u64) {
    let ([to, to_top], [from, from_top]) = (address(READ), address(at));
    scene.stream.op("MEM_TO_MEM", &[0, to, to_top, from, from_top]);
}

/// A draw over all of the target.
fn draw(scene: &mut Scene<'_>) {
    scene.vertices(&strip([-1.0, -1.0], [1.0, 1.0], 0.5, RED)).draw(STRIP, 4);
}

/// Runs what was written; what was reported of it, as writer and reader and what is missing.
fn reads(scene: &mut Scene<'_>) -> Vec<(CacheUnit, CacheUnit, Vec<Flush>)> {
    assert_eq!(scene.run(), RunEnd::Done);
    let CacheReport { reads, lost, more } = scene.machine.space.cache_report();
    assert!(!more && lost.is_empty(), "{lost:?}");
    let missing = |read: &StaleRead| {
        let dirty = read.dirty_in.map(Clean);
        dirty.into_iter().chain(read.stale_in.map(Invalidate)).collect()
    };
    let mut found: Vec<_> =
        reads.iter().map(|read| (read.written_through, read.through, missing(read))).collect();
    found.dedup();
    found
}

use CacheUnit::{CcuColor, CcuDepth, Memory, Uche};

/// A writer and a reader, with every part of the events that they need.
fn pair(
    writer: CacheUnit,
    reader: CacheUnit,
    needs: &[Flush],
    prepare: &dyn Fn(&mut Scene<'_>),
    write: &dyn Fn(&mut Scene<'_>),
    read: &dyn Fn(&mut Scene<'_>),
    result: &dyn Fn(&Scene<'_>) -> u32,
) {
    // Events by bit: all of them, and each choice that lacks some.
    for chosen in 0..1usize << needs.len() {
        each(|mut scene| {
            prepare(&mut scene);
            write(&mut scene);
            (0..needs.len()).filter(|n| chosen >> n & 1 != 0).for_each(|n| event(&mut scene, needs[n]));
            read(&mut scene);
            let found = reads(&mut scene);
            let all = chosen == (1 << needs.len()) - 1;
            let value = result(&scene);
            assert_eq!(value == NEW, all, "{writer:?} {reader:?} {chosen:b}: {value:#x}");
            let missing: Vec<Flush> =
                (0..needs.len()).filter(|n| chosen >> n & 1 == 0).map(|n| needs[n]).collect();
            match all {
                true => assert_eq!(found, []),
                false => {
                    let of_pair = |read: &&(_, _, Vec<Flush>)| (read.0, read.1) == (writer, reader);
                    let mut named: Vec<Flush> =
                        found.iter().filter(of_pair).flat_map(|read| read.2.clone()).collect();
                    named.dedup();
                    // All that is missing is named, and nothing that was there or is not needed.
                    assert_eq!(named, missing, "{writer:?} {reader:?} {chosen:b}: {found:?}");
                }
            }
        });
    }
}

#[test]
fn the_2d_engine_and_the_cp() {
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
    };
    let write = |scene: &mut Scene<'_>| fill(scene, IMAGE, NEW);
    let read = |scene: &mut Scene<'_>| cp_read(scene, IMAGE);
    let result = |scene: &Scene<'_>| data(&scene.machine, READ);
    pair(CcuColor, Memory, &[Clean(CcuColor)], &prepare, &write, &read, &result);
}

/// The source of a copy was read before, so that it is in UCHE.
#[test]
fn the_2d_engine_and_textures() {
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
        copy(scene, IMAGE);
    };
    let read = |scene: &mut Scene<'_>| copy(scene, IMAGE);
    let result = |scene: &Scene<'_>| data(&scene.machine, COPY);
    let write = |scene: &mut Scene<'_>| fill(scene, IMAGE, NEW);
    pair(CcuColor, Uche, &[Clean(CcuColor), Invalidate(Uche)], &prepare, &write, &read, &result);
    let write = |scene: &mut Scene<'_>| {
        let [to, top] = address(IMAGE);
        scene.stream.op("MEM_WRITE", &[to, top, NEW]);
    };
    pair(Memory, Uche, &[Invalidate(Uche)], &prepare, &write, &read, &result);
}

/// A copy that is the first to read its source fetches what memory has, and reads the line many times: its own fetch is not
/// what it misses.
#[test]
fn the_first_read_of_a_line() {
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
    };
    let write = |scene: &mut Scene<'_>| fill(scene, IMAGE, NEW);
    let read = |scene: &mut Scene<'_>| copy(scene, IMAGE);
    let result = |scene: &Scene<'_>| data(&scene.machine, COPY);
    pair(CcuColor, Uche, &[Clean(CcuColor)], &prepare, &write, &read, &result);
}

/// Render targets: what is drawn is in the colour cache, and what is blended with comes from it.
#[test]
fn render_targets() {
    const BLENDED: u32 = 0xff00_00ff;
    let result = |scene: &Scene<'_>| match data(&scene.machine, READ) {
        BLENDED => NEW,
        other => other,
    };
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; (SIZE * SIZE) as usize]);
    };
    let read = |scene: &mut Scene<'_>| cp_read(scene, IMAGE);
    pair(CcuColor, Memory, &[Clean(CcuColor)], &prepare, &draw, &read, &result);
    // The CP writes what a target holds that was blended with before.
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
        draw(scene);
        event(scene, Clean(CcuColor));
    };
    let write = |scene: &mut Scene<'_>| {
        let [to, top] = address(IMAGE);
        scene.stream.op("MEM_WRITE", &[to, top, 0x0022_2200]);
    };
    let read = |scene: &mut Scene<'_>| {
        draw(scene);
        event(scene, Clean(CcuColor));
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == 0xff22_22ff { NEW } else { OLD };
    pair(Memory, CcuColor, &[Invalidate(CcuColor)], &prepare, &write, &read, &result);
}

#[test]
fn depth() {
    let prepare = |scene: &mut Scene<'_>| {
        let a7xx = scene.stream.gpu.generation() == A7xx;
        scene.put(DEPTH, &[1f32.to_bits(); 0x800]);
        let [base, top] = address(DEPTH);
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
        scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
    };
    let read = |scene: &mut Scene<'_>| cp_read(scene, DEPTH);
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == 0.5f32.to_bits() { NEW } else { OLD };
    pair(CcuDepth, Memory, &[Clean(CcuDepth)], &prepare, &draw, &read, &result);
}

/// Stream-out writes through UCHE; a vertex that the CP writes is fetched through it.
#[test]
fn vertices_and_stream_out() {
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(RESULTS + 0x100, &[OLD]);
        let [base, top] = address(RESULTS + 0x100);
        scene.set("VPC_SO_CNTL", &[1 << 16 | 2]);
        let word = |first: u32| first << 2 | 1 << 11 | (first + 1) << 14 | 1 << 23;
        scene.set("VPC_SO_PROG", &[word(0)]).set("VPC_SO_PROG", &[word(2)]);
        scene.set("VPC_SO[0].BUFFER_BASE", &[base, top, 0x100, 4, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]).set("VPC_SO_DISABLE", &[0]);
        scene.set("PC_RASTER_CNTL", &[4]);
    };
    let read = |scene: &mut Scene<'_>| cp_read(scene, RESULTS + 0x100);
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == (-1f32).to_bits() { NEW } else { OLD };
    pair(Uche, Memory, &[Clean(Uche)], &prepare, &draw, &read, &result);
    // The colour of the first draw's vertices is in UCHE.
    let prepare = |scene: &mut Scene<'_>| draw(scene);
    let write = |scene: &mut Scene<'_>| {
        for n in 0..4 {
            let [to, top] = address(VERTICES + 32 * n + 16);
            let colour = GREEN.map(f32::to_bits);
            scene.stream.op("MEM_WRITE", &[&[to, top], &colour[..]].concat());
        }
    };
    let read = |scene: &mut Scene<'_>| {
        scene.draw(STRIP, 4);
        event(scene, Clean(CcuColor));
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == GREEN8 { NEW } else { OLD };
    pair(Memory, Uche, &[Invalidate(Uche)], &prepare, &write, &read, &result);
}

/// A shader's loads and stores: code that the CP replaces is fetched again only after UCHE was invalidated.
#[test]
fn code_of_shaders() {
    let prepare = |scene: &mut Scene<'_>| draw(scene);
    let write = |scene: &mut Scene<'_>| {
        // The fragment shader puts out what its registers hold: the weights of the pixel are not colours.
        let gpu = if scene.stream.gpu.generation() == A6xx { 630 } else { 740 };
        let mut assembler = unwedge_isa::ir3::asm::Assembler::new(gpu);
        let lines = [
            "mov.f32f32 r0.z, (0.0)",
            "mov.f32f32 r0.w, (1.0)",
            "mov.f32f32 r1.x, (0.0)",
            "mov.f32f32 r1.y, (1.0)",
        ];
        let [to, top] = address(FRAGMENT_CODE);
        let mut words = vec![to, top];
        for line in lines.into_iter().chain(["end"]) {
            let word = assembler.instruction(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            words.extend([word as u32, (word >> 32) as u32]);
        }
        scene.stream.op("MEM_WRITE", &words);
    };
    let read = |scene: &mut Scene<'_>| {
        scene.draw(STRIP, 4);
        event(scene, Clean(CcuColor));
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == GREEN8 { NEW } else { OLD };
    pair(Memory, Uche, &[Invalidate(Uche)], &prepare, &write, &read, &result);
}
