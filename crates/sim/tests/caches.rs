//! Caches between units and memory: for each pair of a writer and a reader, the reader gets what was written only after the
//! events that its packets need, and a read without them is reported.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use cp_rig::{DATA, STREAM, data, high, low};
use scene::*;
use unwedge_base::Buffer;
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::adreno::{
    CacheReport, CacheSizes, CacheUnit, CacheWait, Loading, Replay, RunEnd, StaleRead,
};

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
    Wait(CacheWait),
}

use Flush::{Clean, Invalidate, Wait};

fn event(scene: &mut Scene<'_>, flush: Flush) {
    let generation = scene.stream.gpu.generation();
    let name = match flush {
        Clean(unit) => unit.clean_event(generation).unwrap(),
        Invalidate(unit) => unit.invalidate_event(generation).unwrap(),
        Wait(wait) => wait.packet(),
    };
    match name.strip_prefix("CP_") {
        Some(packet) => scene.stream.op(packet, &[]),
        None => {
            let number = scene.value("vgt_event_type", name);
            scene.stream.op(if generation == A6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" }, &[number])
        }
    };
}

/// Writes a cache back, and waits for it.
fn flush(scene: &mut Scene<'_>, unit: CacheUnit) {
    event(scene, Clean(unit));
    event(scene, Wait(Idle));
}

/// The CP writes, and does not wait for it.
fn cp_write(scene: &mut Scene<'_>, at: u64, words: &[u32]) {
    scene.stream.op("MEM_WRITE", &[&address(at), words].concat());
}

/// The engine writes a row of 16 texels at an offset.
fn to_row(scene: &mut Scene<'_>, at: u64) {
    scene.set("GRAS_2D_DST_TL", &[0, 15]);
    let [base, top] = address(at);
    scene.set("RB_2D_DST_INFO", &[FORMAT, base, top, 1]);
}

fn fill(scene: &mut Scene<'_>, at: u64, colour: u32) {
    fill_as(scene, at, colour, FORMAT, 0xf);
}

/// [`fill`] in a format with 8 bits a channel. Channels that are not in the mask keep what is read of them.
fn fill_as(scene: &mut Scene<'_>, at: u64, colour: u32, format: u32, mask: u32) {
    to_row(scene, at);
    let [base, top] = address(at);
    scene.set("RB_2D_DST_INFO", &[format, base, top, 1]);
    let between = if format == FORMAT { 0x10 } else { 5 };
    scene.set("RB_2D_BLIT_CNTL", &[1 << 7 | format << 8 | mask << 20 | between << 24]);
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
        dirty.into_iter().chain(read.stale_in.map(Invalidate)).chain(read.wait.map(Wait)).collect()
    };
    let mut found: Vec<_> =
        reads.iter().map(|read| (read.written_through, read.through, missing(read))).collect();
    found.dedup();
    found
}

use CacheUnit::{Cche, CcuColor, CcuDepth, Memory, Uche};
use CacheWait::{Idle, MemWrites};

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
            let mut missing: Vec<Flush> =
                (0..needs.len()).filter(|n| chosen >> n & 1 == 0).map(|n| needs[n]).collect();
            // Without a wait the read may come too early; what caches keep from it, it never gets.
            if missing.iter().any(|flush| !matches!(flush, Wait(_))) {
                assert_ne!(value, NEW, "{writer:?} {reader:?} {chosen:b}");
                missing.retain(|flush| !matches!(flush, Wait(_)));
            } else {
                assert_eq!(value, NEW, "{writer:?} {reader:?} {chosen:b}");
            }
            match all {
                true => assert_eq!(found, []),
                false => {
                    let of_pair = |read: &&(_, _, Vec<Flush>)| (read.0, read.1) == (writer, reader);
                    let mut named: Vec<Flush> = Vec::new();
                    for flush in found.iter().filter(of_pair).flat_map(|read| read.2.clone()) {
                        if !named.contains(&flush) {
                            named.push(flush);
                        }
                    }
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
    pair(CcuColor, Memory, &[Clean(CcuColor), Wait(Idle)], &prepare, &write, &read, &result);
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
    pair(CcuColor, Uche, &[Clean(CcuColor), Invalidate(Uche), Wait(Idle)], &prepare, &write, &read, &result);
    let write = |scene: &mut Scene<'_>| {
        cp_write(scene, IMAGE, &[NEW]);
    };
    pair(Memory, Uche, &[Wait(MemWrites), Invalidate(Uche), Wait(Idle)], &prepare, &write, &read, &result);
}

/// A copy that is the first to read its source fetches what memory has, and reads the line many times: the missing clean is
/// reported, and not an invalidate of what the copy itself fetched.
#[test]
fn the_first_read_of_a_line() {
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
    };
    let write = |scene: &mut Scene<'_>| fill(scene, IMAGE, NEW);
    let read = |scene: &mut Scene<'_>| copy(scene, IMAGE);
    let result = |scene: &Scene<'_>| data(&scene.machine, COPY);
    pair(CcuColor, Uche, &[Clean(CcuColor), Wait(Idle)], &prepare, &write, &read, &result);
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
    pair(CcuColor, Memory, &[Clean(CcuColor), Wait(Idle)], &prepare, &draw, &read, &result);
    // The CP writes what a target holds that was blended with before.
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
        draw(scene);
        event(scene, Clean(CcuColor));
    };
    let write = |scene: &mut Scene<'_>| {
        cp_write(scene, IMAGE, &[0x0022_2200]);
    };
    let read = |scene: &mut Scene<'_>| {
        draw(scene);
        flush(scene, CcuColor);
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == 0xff22_22ff { NEW } else { OLD };
    pair(Memory, CcuColor, &[Wait(MemWrites), Invalidate(CcuColor)], &prepare, &write, &read, &result);
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
    pair(CcuDepth, Memory, &[Clean(CcuDepth), Wait(Idle)], &prepare, &draw, &read, &result);
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
    pair(Uche, Memory, &[Clean(Uche), Wait(Idle)], &prepare, &draw, &read, &result);
    // The colour of the first draw's vertices is in UCHE.
    let prepare = |scene: &mut Scene<'_>| draw(scene);
    let write = |scene: &mut Scene<'_>| {
        for n in 0..4 {
            cp_write(scene, VERTICES + 32 * n + 16, &GREEN.map(f32::to_bits));
        }
    };
    let read = |scene: &mut Scene<'_>| {
        scene.draw(STRIP, 4);
        flush(scene, CcuColor);
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == GREEN8 { NEW } else { OLD };
    pair(Memory, Uche, &[Wait(MemWrites), Invalidate(Uche), Wait(Idle)], &prepare, &write, &read, &result);
}

/// Vertices that stream-out writes: they are in UCHE, where the fetch finds them, but it is at an earlier stage.
#[test]
fn vertices_that_were_streamed_out() {
    for waits in [true, false] {
        each(|mut scene| {
            let [base, top] = address(VERTICES);
            scene.set("VPC_SO_CNTL", &[1 << 16 | 2]);
            let word = |first: u32| first << 2 | 1 << 11 | (first + 1) << 14 | 1 << 23;
            scene.set("VPC_SO_PROG", &[word(0)]).set("VPC_SO_PROG", &[word(2)]);
            scene.set("VPC_SO[0].BUFFER_BASE", &[base, top, 0x100, 4, 0]);
            scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]).set("VPC_SO_DISABLE", &[0]);
            draw(&mut scene);
            scene.set("VPC_SO_DISABLE", &[1]);
            if waits {
                event(&mut scene, Wait(Idle));
            }
            scene.draw(STRIP, 4);
            let found = reads(&mut scene);
            assert_eq!(found, if waits { vec![] } else { vec![(Uche, Uche, vec![Wait(Idle)])] });
        });
    }
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
        let mut words = Vec::new();
        for line in lines.into_iter().chain(["end"]) {
            let word = assembler.instruction(line).unwrap_or_else(|e| panic!("{line}: {e}"));
            words.extend([word as u32, (word >> 32) as u32]);
        }
        cp_write(scene, FRAGMENT_CODE, &words);
    };
    let read = |scene: &mut Scene<'_>| {
        scene.draw(STRIP, 4);
        flush(scene, CcuColor);
        cp_read(scene, IMAGE);
    };
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == GREEN8 { NEW } else { OLD };
    pair(Memory, Uche, &[Wait(MemWrites), Invalidate(Uche), Wait(Idle)], &prepare, &write, &read, &result);
}

/// Lines of the CCU are tagged: what is written in one format or as one attachment is not seen through another.
#[test]
fn tags_of_the_ccu() {
    const UINT: u32 = 0x33;
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
    };
    let write = |scene: &mut Scene<'_>| fill(scene, IMAGE, NEW);
    // All but the last channel are read.
    let read = |format: u32| {
        move |scene: &mut Scene<'_>| {
            fill_as(scene, IMAGE, NEW, format, 8);
            flush(scene, CcuColor);
            cp_read(scene, IMAGE);
        }
    };
    let result = |scene: &Scene<'_>| data(&scene.machine, READ);
    pair(CcuColor, CcuColor, &[Clean(CcuColor)], &prepare, &write, &read(UINT), &result);
    pair(CcuColor, CcuColor, &[], &prepare, &write, &read(FORMAT), &result);
    // A line that the other tag has read before is dropped as well.
    let prepare = |scene: &mut Scene<'_>| {
        scene.put(IMAGE, &[OLD; 16]);
        fill_as(scene, IMAGE, OLD, UINT, 8);
        flush(scene, CcuColor);
    };
    let needs = [Clean(CcuColor), Invalidate(CcuColor)];
    pair(CcuColor, CcuColor, &needs, &prepare, &write, &read(UINT), &result);
    // The report says which tags they are.
    each(|mut scene| {
        scene.put(IMAGE, &[OLD; 16]);
        fill(&mut scene, IMAGE, NEW);
        fill_as(&mut scene, IMAGE, NEW, UINT, 8);
        assert_eq!(scene.run(), RunEnd::Done);
        let read = &scene.machine.space.cache_report().reads[0];
        let formats = [read.tag, read.written_tag].map(|tag| tag.unwrap().format);
        assert_eq!(formats, [UINT as u8, FORMAT as u8]);
    });
}

/// The 2D engine fills depth through the colour cache, where depth tests do not see it.
#[test]
fn colour_and_depth() {
    let prepare = |scene: &mut Scene<'_>| {
        let a7xx = scene.stream.gpu.generation() == A7xx;
        scene.put(DEPTH, &[1f32.to_bits(); 0x800]).put(IMAGE, &[0; (SIZE * SIZE) as usize]);
        let [base, top] = address(DEPTH);
        scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
        scene.set("RB_DEPTH_CNTL", &[1 | 1 << 2 | 1 << 6]);
    };
    // Two lines: what is tiled differently is filled all the same.
    let write = |scene: &mut Scene<'_>| fill(scene, DEPTH, 0);
    let read = |scene: &mut Scene<'_>| {
        draw(scene);
        flush(scene, CcuColor);
        cp_read(scene, IMAGE);
    };
    // The first pixel is hidden by the new depth.
    let result = |scene: &Scene<'_>| if data(&scene.machine, READ) == 0 { NEW } else { OLD };
    pair(CcuColor, CcuDepth, &[Clean(CcuColor)], &prepare, &write, &read, &result);
}

/// A full cache writes lines back and drops them: what is read then is right, and reported all the same.
#[test]
fn evictions() {
    const LINES: u64 = 8;
    let run = |capacity: Option<u64>| {
        let db = Db::builtin();
        let mut scene = Scene::new(&db, A6xx);
        scene.machine.space.enable_caches(CacheSizes { ccu_color: capacity, ..CacheSizes::default() });
        scene.put(IMAGE, &[OLD; 16 * LINES as usize]);
        (0..LINES).for_each(|line| fill(&mut scene, IMAGE + 64 * line, NEW));
        for line in 0..LINES {
            let [to, to_top] = address(READ + 4 * line);
            let [from, from_top] = address(IMAGE + 64 * line);
            scene.stream.op("MEM_TO_MEM", &[0, to, to_top, from, from_top]);
        }
        assert_eq!(scene.run(), RunEnd::Done);
        let values: Vec<u32> = (0..LINES).map(|line| data(&scene.machine, READ + 4 * line)).collect();
        (values, scene.machine.space.cache_report().reads)
    };
    let (values, endless) = run(None);
    assert_eq!((values, endless.len()), (vec![OLD; LINES as usize], LINES as usize));
    assert!(endless.iter().all(|read| read.evicted == 0));
    let (values, reads) = run(Some(4 * 64));
    assert_eq!(values, [[NEW; 4], [OLD; 4]].concat());
    assert_eq!(reads.iter().map(|read| read.evicted).collect::<Vec<_>>(), [4, 4, 4, 4, 0, 0, 0, 0]);
    let without: Vec<StaleRead> = reads.into_iter().map(|read| StaleRead { evicted: 0, ..read }).collect();
    assert_eq!(without, endless, "what is reported does not depend on the size");
}

/// Where the capture lacks what memory held before, a read that misses a flush gets nothing.
#[test]
fn old_contents_that_are_not_known() {
    const LACKING: u64 = 0x4_0000_0000;
    let db = Db::builtin();
    for (flushes, texture) in [(false, false), (false, true), (true, false), (true, true)] {
        let mut scene = Scene::new(&db, A6xx);
        scene.machine.enable_caches();
        scene.machine.space.memory.map_unknown(LACKING, 0x1000).unwrap();
        fill(&mut scene, LACKING - DATA, NEW);
        if flushes {
            flush(&mut scene, CcuColor);
        }
        match texture {
            true => copy(&mut scene, LACKING - DATA),
            false => cp_read(&mut scene, LACKING - DATA),
        }
        let end = scene.run();
        let reads = scene.machine.space.cache_report().reads;
        let result = data(&scene.machine, if texture { COPY } else { READ });
        if flushes {
            assert_eq!((end, reads.len(), result), (RunEnd::Done, 0, NEW));
            continue;
        }
        let RunEnd::Stopped { stop, .. } = end else { panic!("{end:?}") };
        assert!(stop.to_string().contains("type=UNKNOWN"), "{stop}");
        assert_eq!((reads.len(), reads[0].unknown, result), (1, 4, 0));
        assert_eq!(reads[0].dirty_in, Some(CcuColor));
    }
}

/// Older bytes that are written back after newer ones were written undo these.
#[test]
fn writes_that_are_lost() {
    for cleaned in [true, false] {
        each(|mut scene| {
            scene.put(IMAGE, &[OLD; 16]);
            fill(&mut scene, IMAGE, 0x3333_3333);
            if cleaned {
                flush(&mut scene, CcuColor);
            }
            cp_write(&mut scene, IMAGE + 4, &[NEW]);
            event(&mut scene, Wait(MemWrites));
            flush(&mut scene, CcuColor);
            assert_eq!(scene.run(), RunEnd::Done);
            let words = [0, 4, 8].map(|at| data(&scene.machine, IMAGE + at));
            let CacheReport { reads, lost, .. } = scene.machine.space.cache_report();
            assert_eq!(reads, []);
            let second = if cleaned { NEW } else { 0x3333_3333 };
            assert_eq!(words, [0x3333_3333, second, 0x3333_3333]);
            assert_eq!(lost.len(), usize::from(!cleaned));
            for loss in lost {
                assert_eq!((loss.iova, loss.bytes), (DATA + IMAGE + 4, 4));
                assert_eq!((loss.written_through, loss.dirty_in), (Memory, CcuColor));
                assert!(loss.cleaner.is_some());
            }
        });
    }
}

/// Loads a constant and stores it.
const CONSTANT: &str = "ldc.offset0.1.imm r1.x, 0, 1
(sy)(ss)nop
(rpt5)nop
stib.b.untyped.1d.u32.1.imm r1.x, r0.x, 0
end";
const UNIFORMS: u64 = 0x4000;
const STORED: u64 = 0x5000;
const DESCRIPTOR: u64 = 0x6000;
const COMPUTE_CODE: u64 = 0xe000;

/// A dispatch stores the constant at an offset at another one.
fn dispatch(scene: &mut Scene<'_>, from: u64, to: u64) {
    let descriptor = DESCRIPTOR + (to & 0xfff);
    let [base, top] = address(to);
    // Four dwords of FMT6_32_UINT as a buffer.
    scene.put(descriptor, &[0x4b << 22, 4, 4 << 29, 0, base, top]).code(COMPUTE_CODE, CONSTANT);
    scene.set("SP_CS_OBJ_START", &address(COMPUTE_CODE)).set("SP_CS_INSTRLEN", &[1]);
    let a6xx = scene.stream.gpu.generation() == A6xx;
    scene.set(if a6xx { "HLSQ_CS_CNTL_0" } else { "SP_CS_CNTL_0" }, &[0xfc]);
    scene.set("HLSQ_CS_NDRANGE_0", &[3 << 2]);
    let header = |dst: u32, ty: u32, source: u32| dst | ty << 14 | source << 16 | 13 << 18 | 1 << 22;
    let [low, high] = address(from);
    scene.stream.op("LOAD_STATE6_FRAG", &[header(1, 2, 0), 0, 0, low, high | 1 << 17]);
    let [low, high] = address(descriptor);
    scene.stream.op("LOAD_STATE6_FRAG", &[header(0, 3, 2), low, high]);
    scene.stream.op("EXEC_CS", &[0, 1, 1, 1]);
}

/// What a shader stores another one loads as a constant only after CCHE, where there is one, has dropped it.
#[test]
fn constants() {
    for drops in [None, Some(Cche), Some(Uche)] {
        each(|mut scene| {
            let has_cche = scene.stream.gpu.generation() == A7xx;
            scene.put(UNIFORMS, &[OLD; 4]).put(UNIFORMS + 0x100, &[NEW; 4]);
            dispatch(&mut scene, UNIFORMS, STORED + 0x40);
            dispatch(&mut scene, UNIFORMS + 0x100, UNIFORMS);
            if let Some(unit) = drops.filter(|_| has_cche) {
                event(&mut scene, Invalidate(unit));
                event(&mut scene, Wait(Idle));
            }
            dispatch(&mut scene, UNIFORMS, STORED + 0x80);
            flush(&mut scene, Uche);
            let found = reads(&mut scene);
            let stored = [0x40, 0x80].map(|at| data(&scene.machine, STORED + at));
            match has_cche && drops.is_none() {
                true => {
                    assert_eq!(stored, [OLD, OLD]);
                    assert_eq!(found, [(Uche, Cche, vec![Invalidate(Cche)])]);
                }
                false => {
                    assert_eq!(stored, [OLD, NEW]);
                    assert_eq!(found, []);
                }
            }
        });
    }
}

/// A submit leaves many dirty lines, which the kernel's events at its end write back.
#[test]
fn submits_that_leave_many_dirty_lines() {
    const ROWS: u32 = 4096;
    const BYTES: u64 = 64 * ROWS as u64;
    each(|mut scene| {
        fill(&mut scene, 0, NEW);
        scene.set("GRAS_2D_DST_TL", &[0, 15 | (ROWS - 1) << 16]);
        scene.set("RB_2D_DST_INFO", &[FORMAT, low(MORE), high(MORE), 1]).stream.op("BLIT", &[3]);
        let words = std::mem::take(&mut scene.stream.words);
        let buffer = |iova, size, contents| Buffer { iova, size, contents, name: String::new() };
        let mut alive = unwedge_base::Memory::default();
        alive.add(buffer(DATA, 0x1_0000, Some(Vec::new())));
        alive.add(buffer(MORE, BYTES, Some(Vec::new())));
        alive.add(buffer(STREAM, 4 * words.len() as u64, Some(words.clone())));
        let mut replay = Replay::new(scene.machine, Loading::Snapshot);
        assert_eq!(replay.submit(&alive, STREAM, words.len() as u32, 1 << 20), RunEnd::Done);
        assert_eq!(replay.end(), Some(RunEnd::Done));
        let last = replay.machine.space.memory.load(MORE + BYTES - 4, 4).known();
        assert_eq!((last, replay.machine.space.cache_report()), (Some(NEW.into()), CacheReport::default()));
    });
}

/// Runs a stream with every kind of dependency, without one of its flushes or with all. Returns the number of flushes, and of reports.
fn chain(generation: unwedge_base::Generation, left_out: Option<usize>) -> (usize, usize) {
    let db = Db::builtin();
    let mut scene = Scene::new(&db, generation);
    scene.machine.enable_caches();
    let a7xx = generation == A7xx;
    let mut flushes = 0;
    let mut needs = |scene: &mut Scene<'_>, list: &[Flush]| {
        for flush in list {
            if left_out != Some(flushes) {
                event(scene, *flush);
            }
            flushes += 1;
        }
    };
    let rows = IMAGE + 0x1800;
    scene.put(IMAGE, &[0; (SIZE * SIZE) as usize]).put(rows, &[OLD; 64]);
    scene.put(DEPTH, &[1f32.to_bits(); 0x800]);
    copy(&mut scene, rows);
    // The 2D engine, then textures and the CP.
    fill(&mut scene, rows, NEW);
    needs(&mut scene, &[Clean(CcuColor), Invalidate(Uche), Wait(Idle)]);
    copy(&mut scene, rows);
    cp_read(&mut scene, rows);
    // The CP, then textures.
    cp_write(&mut scene, rows, &[OLD; 16]);
    needs(&mut scene, &[Wait(MemWrites), Invalidate(Uche), Wait(Idle)]);
    copy(&mut scene, rows);
    // The CP, then vertices.
    draw(&mut scene);
    cp_write(&mut scene, VERTICES + 16, &GREEN.map(f32::to_bits));
    needs(&mut scene, &[Wait(MemWrites), Invalidate(Uche), Wait(Idle)]);
    scene.draw(STRIP, 4);
    // A render target, then the 2D engine in another format, and its copy.
    needs(&mut scene, &[Clean(CcuColor)]);
    fill_as(&mut scene, IMAGE, NEW, 0x33, 8);
    needs(&mut scene, &[Clean(CcuColor), Wait(Idle)]);
    copy(&mut scene, IMAGE);
    // Depth that the 2D engine clears, and that the CP reads.
    fill(&mut scene, DEPTH, 0x3f40_0000);
    needs(&mut scene, &[Clean(CcuColor)]);
    let [base, top] = address(DEPTH);
    scene.set("RB_DEPTH_BUFFER_INFO", &[4 | if a7xx { 3 << 5 } else { 0 }, SIZE / 8, 0, base, top, 0]);
    scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
    draw(&mut scene);
    needs(&mut scene, &[Clean(CcuDepth), Wait(Idle)]);
    cp_read(&mut scene, DEPTH);
    // Constants that a shader stores.
    if a7xx {
        scene.put(UNIFORMS, &[OLD; 4]).put(UNIFORMS + 0x100, &[NEW; 4]);
        dispatch(&mut scene, UNIFORMS, STORED + 0x40);
        dispatch(&mut scene, UNIFORMS + 0x100, UNIFORMS);
        needs(&mut scene, &[Invalidate(Cche)]);
        dispatch(&mut scene, UNIFORMS, STORED + 0x80);
    }
    assert_eq!(scene.run(), RunEnd::Done);
    let CacheReport { reads, lost, .. } = scene.machine.space.cache_report();
    (flushes, reads.len() + lost.len())
}

/// A stream that is synchronized exactly as far as it must be is clean; without any one of its flushes, invalidates and waits, in at
/// least nine cases of ten, something is reported.
#[test]
fn each_flush_that_is_left_out_is_shown() {
    for generation in [A6xx, A7xx] {
        let (flushes, reported) = chain(generation, None);
        assert_eq!(reported, 0, "{generation}");
        let hidden: Vec<usize> = (0..flushes).filter(|&n| chain(generation, Some(n)).1 == 0).collect();
        assert!(flushes >= 12 && hidden.len() * 10 <= flushes, "{generation}: {hidden:?} of {flushes}");
    }
}
