//! With any number of threads draws give the memory, counts, stops and steps that one gives.

#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "other tests use other parts of it")]
mod scene;

use cp_rig::{DATA, STREAM, data, high, low};
use scene::*;
use std::path::Path;
use unwedge_base::Generation::{self, A6xx, A7xx};
use unwedge_base::{ChipId, Memory};
use unwedge_capture::rd::{LiveStep, RdSection, RdSectionKind};
use unwedge_hw::{Db, Gpu};
use unwedge_sim::adreno::{AdrenoMachine, Loading, Replay, RunEnd, ThreadId};
use unwedge_sim::amdgcn::SimMemory;
use unwedge_stream::play::{Consumer, Identity, Player, Submission, SubmitChoice};
use unwedge_testkit::data as files;

/// Rectangles of the list that is drawn: each covers most of the image, so that every pixel is drawn many times.
const RECTANGLES: u32 = 14;
/// Instances of them: together more primitives and quads than one thread takes.
const INSTANCES: u32 = 10;
const MANY: u64 = 50_000_000;

/// A change to the scene that is drawn by different numbers of threads.
type Change = fn(&mut Scene<'_>);

/// What a run leaves.
#[derive(PartialEq)]
struct Left {
    end: RunEnd,
    memory: SimMemory,
    /// The statistics that the CP reads.
    counters: Vec<u32>,
}

fn address(at: u64) -> [u32; 2] {
    [low(DATA + at), high(DATA + at)]
}

/// A rectangle in six vertices.
fn rectangle(n: u32) -> [Vertex; 6] {
    let part = |m: u32| (n * m % 7) as f32 / 20.0;
    let ([left, top], [right, bottom]) = ([-1.0 + part(1), -1.0 + part(3)], [1.0 - part(5), 1.0 - part(2)]);
    let corner = |x: f32, y: f32, m: u32| vertex(x, y, part(m) + 0.1, [part(m), part(m + 1), 0.1, 0.4]);
    let [a, b, c, d] =
        [corner(left, top, 1), corner(right, top, 2), corner(left, bottom, 3), corner(right, bottom, 4)];
    [a, b, c, c, b, d]
}

fn run(generation: Generation, change: Change, threads: usize, steps: u64) -> Left {
    let db = Db::builtin();
    let mut scene = Scene::new(&db, generation);
    let all: Vec<Vertex> = (0..RECTANGLES).flat_map(rectangle).collect();
    scene.vertices(&all);
    let [base, top] = address(VERTICES);
    scene.set("VFD_FETCH[0].BASE", &[base, top, 0x1000, 32]);
    let events = scene.stream.gpu.enumeration("vgt_event_type").unwrap();
    let event = if generation == A6xx { "EVENT_WRITE" } else { "EVENT_WRITE7" };
    for start in ["START_PRIMITIVE_CTRS", "START_FRAGMENT_CTRS"] {
        scene.stream.op(event, &[events.value_of(start).unwrap() as u32]);
    }
    change(&mut scene);
    scene.draw_instances(TRIANGLES, INSTANCES, 6 * RECTANGLES);
    let zpass = events.value_of("ZPASS_DONE").unwrap() as u32;
    let [base, top] = address(RESULTS + 0x800);
    match generation {
        A6xx => scene.set("RB_SAMPLE_COUNT_ADDR", &[base, top]).stream.op(event, &[zpass]),
        _ => scene.stream.op(event, &[zpass | 1 << 12, base, top]),
    };
    let words = scene.load();
    scene.machine.compute.threads = threads;
    scene.machine.begin();
    scene.machine.submit(STREAM, words);
    let end = scene.machine.run(steps);
    let first = scene.stream.gpu.reg_offset("RBBM_PRIMCTR_0_LO").expect("known");
    let counters = (first..first + 20).map(|reg| scene.machine.read_register(ThreadId::Br, reg)).collect();
    Left { end, memory: std::mem::take(&mut scene.machine.space.memory), counters }
}

/// Draws with one thread and with several, with all steps and with fewer than it takes. What one thread leaves.
fn same(change: Change) -> Vec<Left> {
    let mut all = Vec::new();
    for generation in [A6xx, A7xx] {
        let one = run(generation, change, 1, MANY);
        for threads in [2, 3, 8] {
            assert!(run(generation, change, threads, MANY) == one, "{generation:?}, {threads} threads");
        }
        for steps in [200, 3_000, 40_000, 90_000, 150_000] {
            let one = run(generation, change, 1, steps);
            let several = run(generation, change, 4, steps);
            assert!(several == one, "{generation:?}, {steps} steps");
        }
        all.push(one);
    }
    all
}

/// Every scene ends, and is drawn: the parts of the image that are not zero.
fn drawn(change: Change) {
    for left in same(change) {
        assert_eq!(left.end, RunEnd::Done);
        let texels = (0..u64::from(SIZE * SIZE)).map(|at| left.memory.load(DATA + IMAGE + 4 * at, 4).known());
        assert!(texels.filter(|texel| *texel != Some(0)).count() > 300);
    }
}

fn depth(scene: &mut Scene<'_>) {
    let tiled = if scene.stream.gpu.generation() == A7xx { 3 << 5 } else { 0 };
    let [base, top] = address(DEPTH);
    scene.put(DEPTH, &[1f32.to_bits(); 0x1000]);
    scene.set("RB_DEPTH_BUFFER_INFO", &[4 | tiled, SIZE / 8, 0, base, top, 0]);
    scene.set("RB_DEPTH_CNTL", &[1 | 1 << 1 | 1 << 2 | 1 << 6]);
}

fn blend(scene: &mut Scene<'_>) {
    // Source and destination with a factor of one each.
    scene.set("RB_MRT[0].CONTROL", &[3 | 0xf << 7, 0x0101_0101]);
}

#[test]
fn blended() {
    drawn(blend);
}

#[test]
fn early_depth() {
    drawn(depth);
}

#[test]
fn late_depth_and_blended() {
    drawn(|scene| {
        depth(scene);
        blend(scene);
        scene.set("GRAS_SU_DEPTH_PLANE_CNTL", &[1]).set("RB_DEPTH_PLANE_CNTL", &[1]);
    });
}

/// The texels of a row are those of the row below, shifted: what one thread merges the others read.
#[test]
fn targets_that_overlap_themselves() {
    drawn(|scene| {
        blend(scene);
        scene.set("RB_MRT[0].PITCH", &[1]);
        let first: Vec<Vertex> = (0..RECTANGLES).flat_map(rectangle).collect();
        scene.vertices(&first);
    });
}

/// Every fiber takes a number from a counter, and shows it; what it stores depends on what an earlier one stored.
#[test]
fn atomics_of_fragments() {
    fn counted(scene: &mut Scene<'_>) {
        let [base, top] = address(RESULTS);
        scene.code(
            FRAGMENT_CODE,
            &format!(
                "mov.u32u32 r1.x, {base}\nmov.u32u32 r1.y, {top}\nmov.u32u32 r2.x, 1\n(rpt5)nop\n\
                 atomic.g.add.untyped.1d.u32.1.g r3.x, r1.x, r2.x\n(sy)and.b r3.y, r3.x, 127\n(rpt5)nop\n\
                 shl.b r3.z, r3.y, 2\n(rpt5)nop\nadd.u r1.x, r1.x, r3.z\n(rpt5)nop\n\
                 ldg.u32 r4.x, g[r1.x+4], 1\n(sy)add.u r4.x, r4.x, r3.x\n(rpt5)nop\n\
                 stg.u32 g[r1.x+4], r4.x, 1\nand.b r3.x, r3.x, 3\n(rpt5)nop\ncov.u32f32 r0.z, r3.x\n\
                 mov.f32f32 r0.w, (1.0)\nmov.f32f32 r1.x, (0.0)\nmov.f32f32 r1.y, (1.0)\nend"
            ),
        );
        // Units of sixteen instructions.
        scene.set("SP_FS_INSTRLEN", &[4]);
    }
    for left in same(counted) {
        assert_eq!(left.end, RunEnd::Done);
        let counter = left.memory.load(DATA + RESULTS, 4).known().unwrap();
        assert!(counter > 2000, "{counter}");
    }
}

#[test]
fn stream_out() {
    fn written(scene: &mut Scene<'_>) {
        let [base, top] = address(RESULTS);
        scene.set("VPC_SO_CNTL", &[1 << 16 | 2]);
        let word = |first: u32| first << 2 | 1 << 11 | (first + 1) << 14 | 1 << 23;
        scene.set("VPC_SO_PROG", &[word(0)]).set("VPC_SO_PROG", &[word(2)]);
        scene.set("VPC_SO[0].BUFFER_BASE", &[base, top, 600, 4, 0]);
        scene.set("VPC_SO_STREAM_CNTL", &[1 | 1 << 15]).set("VPC_SO_DISABLE", &[0]);
    }
    for left in same(written) {
        assert_eq!(left.end, RunEnd::Done);
        assert!((0..100).any(|at| left.memory.load(DATA + RESULTS + 4 * at, 4).known() != Some(0)));
    }
}

/// The last rows of the image are past the end of what is mapped.
#[test]
fn faults_of_targets() {
    fn beyond(scene: &mut Scene<'_>) {
        let [base, top] = address(0x1_0000 - u64::from(4 * SIZE * 20));
        scene.set("RB_MRT[0].BASE", &[base, top]);
    }
    for left in same(beyond) {
        assert!(matches!(left.end, RunEnd::Stopped { .. }), "{:?}", left.end);
    }
}

/// Vertices from a place on are not mapped; fragments of the first ones wait when that shows.
#[test]
fn faults_of_vertices_and_shaders() {
    fn vertices(scene: &mut Scene<'_>) {
        let [base, top] = address(0x1_0000 - 32 * 40);
        scene.set("VFD_FETCH[0].BASE", &[base, top, 0x1000, 32]);
    }
    fn fragments(scene: &mut Scene<'_>) {
        // The place that is read goes on with the row.
        let [base, top] = address(0x1_0000 - 4 * 16 * 20);
        scene.code(
            FRAGMENT_CODE,
            &format!(
                "(rpt3)bary.f (ei)r0.z, (r)0, r0.x\nmov.u32u32 r3.x, {base}\nmov.u32u32 r3.y, {top}\n\
                 shl.b r2.y, r2.y, 2\n(rpt5)nop\nadd.u r3.x, r3.x, r2.y\n(rpt5)nop\nldg.u32 r4.x, g[r3.x], 1\n(sy)nop\nend"
            ),
        );
        scene.set("HLSQ_CONTROL_4_REG", &[0xfc00_fcfc | 8 << 16]);
    }
    for change in [vertices as Change, fragments] {
        for left in same(change) {
            assert!(matches!(left.end, RunEnd::Stopped { .. }), "{:?}", left.end);
        }
    }
}

/// As many vertices and primitives as are fetched and rasterized by several threads.
#[test]
fn many_small_triangles() {
    fn small(scene: &mut Scene<'_>) {
        blend(scene);
        let [middle, scale] = [16f32, 1.5].map(f32::to_bits);
        scene.set("GRAS_CL_VPORT[0].XOFFSET", &[middle, scale, middle, scale, 0, 1f32.to_bits()]);
        scene.draw_instances(TRIANGLES, 60, 6 * RECTANGLES);
    }
    for left in same(small) {
        assert_eq!(left.end, RunEnd::Done);
        let middle = left.memory.load(DATA + IMAGE + u64::from(4 * (16 * SIZE + 16)), 4);
        assert!(middle.known().is_some_and(|texel| texel != 0));
        assert!(left.counters[4] > 5000, "{:?}", left.counters);
    }
}

/// The count of fragments is that of the covered pixels of all triangles, whoever shades them.
#[test]
fn statistics() {
    for left in same(|_| ()) {
        let fragments = left.counters[18];
        assert!((5000..u32::MAX / 2).contains(&fragments), "{:?}", left.counters);
    }
    let db = Db::builtin();
    let scene = Scene::new(&db, A6xx);
    assert_eq!(data(&scene.machine, RESULTS), 0, "nothing is counted before");
}

/// A capture that is replayed with so many threads.
struct Threaded<'d> {
    db: &'d Db,
    threads: usize,
    steps: u64,
    replay: Option<Replay<'d>>,
    ends: Vec<Option<RunEnd>>,
    fresh: bool,
}

impl<'d> Consumer<'d> for Threaded<'d> {
    fn section(&mut self, section: &RdSection<'_>, step: LiveStep) {
        self.fresh |= step == LiveStep::Forgotten;
        if section.kind == RdSectionKind::GpuAddr && std::mem::take(&mut self.fresh) {
            self.ends.push(self.replay.as_mut().and_then(Replay::end));
        }
    }

    fn identity(&mut self, identity: Identity, _: Option<Gpu<'d>>) {
        let (gpu_id, chip_id) = match identity {
            Identity::GpuId(gpu_id) => (gpu_id, ChipId(0)),
            Identity::ChipId(chip_id) => (0, chip_id),
        };
        let machine = self.db.identify(gpu_id, chip_id).and_then(|gpu| AdrenoMachine::new(self.db, gpu));
        self.replay = machine.map(|mut machine| {
            machine.compute.threads = self.threads;
            Replay::new(machine, Loading::Delta)
        });
    }

    fn submit(&mut self, submission: Submission<'_, 'd>) {
        let Some(replay) = &mut self.replay else { return };
        let (submit, alive): (_, &Memory) = (submission.submit, submission.live.memory());
        self.ends.push(Some(replay.submit(alive, submit.iova, submit.dwords, self.steps)));
    }
}

/// What a capture leaves in memory, and how its submits ended.
fn replayed(bytes: &[u8], threads: usize, steps: u64) -> (SimMemory, Vec<Option<RunEnd>>) {
    let db = Db::builtin();
    let mut run = Threaded { db: &db, threads, steps, replay: None, ends: Vec::new(), fresh: false };
    Player::new(SubmitChoice::default(), &db, 1 << 32).play(bytes, &mut run);
    let memory = run.replay.map(|replay| replay.machine.space.memory).unwrap_or_default();
    (memory, run.ends)
}

/// Captures of real programs: some of them, or all with `UNWEDGE_ALL=1`.
#[test]
fn captures() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let graphics = files::files("adreno/graphics/captures", ".rd.gz");
    let renders = files::files("adreno/renders", ".rd.gz");
    let some = |files: Vec<_>, step: usize| files.into_iter().step_by(if all { 1 } else { step });
    for path in some(graphics, 23).chain(some(renders, 5)) {
        let path: &Path = &path;
        let bytes = files::read(path);
        for steps in [1 << 28, 30_000] {
            let one = replayed(&bytes, 1, steps);
            assert!(!one.1.is_empty(), "{}", path.display());
            assert!(replayed(&bytes, 5, steps) == one, "{}, {steps} steps", path.display());
        }
    }
}
