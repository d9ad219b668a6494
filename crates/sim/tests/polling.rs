//! Shaders that poll memory: they go on while anything else can change it, and are endless when nothing can.

mod assembled;
#[allow(dead_code, reason = "this test uses a part of it")]
mod cp_rig;

#[path = "cp_rig/scene.rs"]
#[allow(dead_code, reason = "this test uses a part of it")]
mod scene;

use assembled::assemble;
use cp_rig::{DATA, data, high, low};
use scene::{RESULTS, Scene, VERTEX_CODE};
use unwedge_base::Generation::{A6xx, A7xx};
use unwedge_hw::Db;
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Dispatch, Fault, FaultKind, Options, ShaderState, Stats, Timing, run};
use unwedge_sim::adreno::{CpStop, DispatchStop, RunEnd, ThreadId};

const GPU: u32 = 630;
const FLAGS: u64 = 0x10_0000;

/// The address of the flags in `r2`.
fn address() -> String {
    format!("mov.u32u32 r2.x, {FLAGS}\nmov.u32u32 r2.y, 0\n(rpt5)nop\n")
}

/// Polls the first flag until it is what `r3.x` is.
const POLL: &str = "ldg.u32 r4.x, g[r2.x], 1
    (sy)cmps.u.ne p0.x, r4.x, r3.x
    (rpt5)nop
    br p0.x, #-3\n";

fn go(source: &str, dispatch: &Dispatch, options: &Options) -> (Result<Stats, Fault>, SimMemory) {
    let mut memory = SimMemory::default();
    memory.map(FLAGS, vec![0; 0x1000]).expect("free");
    (run(&assemble(source, GPU), dispatch, &mut memory, options), memory)
}

fn timings() -> impl Iterator<Item = Timing> {
    std::iter::once(Timing::Plain).chain((1..4).map(|seed| Timing::Adversarial { seed }))
}

fn dispatch(groups: u32, size: u32) -> Dispatch {
    Dispatch {
        state: ShaderState { constants: vec![0; 4], ..ShaderState::default() },
        groups: [groups, 1, 1],
        local_size: [size, 1, 1],
        local_id: Some(0),
        group_id: Some(192),
        local_memory: 1024,
        ..Dispatch::default()
    }
}

/// Each workgroup waits for the one after it, and the last one for none: if each had to end before the next one begins, none would end.
/// The time goes with the square of their number.
#[test]
fn workgroups_wait_for_those_after_them() {
    const GROUPS: u32 = 6;
    // r3.x: how many are after this one; each adds one to the flag.
    let last = GROUPS - 1;
    let source = format!(
        "{}mov.u32u32 r3.y, r48.x\n(rpt5)nop\nsub.u r3.x, {last}, r3.y\n(rpt5)nop\n{POLL}(jp)nop
        (ss)add.u r4.x, r4.x, 1\n(rpt5)nop\nstg.u32 g[r2.x], r4.x, 1\nend",
        address()
    );
    for timing in timings() {
        let options = |threads| Options { timing, threads, ..Options::default() };
        let one = go(&source, &dispatch(GROUPS, 64), &options(1));
        assert_eq!(one.0.as_ref().map(|stats| stats.groups), Ok(GROUPS), "{timing:?}");
        assert_eq!(one.1.load(FLAGS, 4).known(), Some(GROUPS.into()));
        assert!(one == go(&source, &dispatch(GROUPS, 64), &options(3)));
    }
}

/// A wave polls what another one of its workgroup writes after a long while.
#[test]
fn waves_wait_for_others_of_their_workgroup() {
    // Fibers of the first wave poll; the others count to 3,000 and write the flag.
    let source = format!(
        "{}mov.u32u32 r3.x, 1\ncmps.u.lt p0.y, r0.x, 64\n(rpt5)nop\nbr p0.y, #9
        mov.u32u32 r5.x, 0\n(rpt5)nop\nadd.u r5.x, r5.x, 1\nmov.u32u32 r5.y, 3000\n(rpt5)nop
        cmps.u.lt p0.x, r5.x, r5.y\n(rpt5)nop\nbr p0.x, #-5\nstg.u32 g[r2.x], r3.x, 1\n(jp)nop
        {POLL}(jp)nop\nend",
        address()
    );
    for timing in timings() {
        let (result, memory) = go(&source, &dispatch(1, 128), &Options { timing, ..Options::default() });
        assert!(result.is_ok(), "{timing:?}: {result:?}");
        assert_eq!(memory.load(FLAGS, 4).known(), Some(1));
    }
}

/// Polling memory that nothing changes is found before the steps run out, also where other waves of the grid have ended, wait at a
/// barrier, or poll by an atomic operation that leaves the value as it is.
#[test]
fn what_nothing_changes_is_endless() {
    let lock = "mov.u32u32 r3.x, 1\n(rpt5)nop\natomic.g.xchg.untyped.1d.u32.1.g r4.x, r2.x, r3.x
        (sy)cmps.u.ne p0.x, r4.x, 0\n(rpt5)nop\nbr p0.x, #-3\nend";
    let first_polls = format!(
        "mov.u32u32 r3.x, 7\ncmps.u.ge p0.y, r0.x, 64\n(rpt5)nop\nbr p0.y, #5\n{POLL}(jp)nop\n(ss)bar.g\nend"
    );
    for (name, source, groups, size) in [
        ("a value that nobody writes", format!("mov.u32u32 r3.x, 7\n(rpt5)nop\n{POLL}end"), 3, 64),
        ("a lock that nobody opens", lock.to_owned(), 4, 64),
        ("a wave at a barrier", first_polls, 2, 128),
    ] {
        for timing in timings() {
            let source = format!("{}{source}", address());
            let options = Options { timing, steps: 1 << 24, threads: 1 };
            let fault = go(&source, &dispatch(groups, size), &options).0.expect_err(name);
            assert_eq!(fault.kind, FaultKind::Polls, "{name}, {timing:?}: {fault}");
        }
    }
}

/// A dispatch that polls memory, and what is after it in the stream.
fn polling_scene<'d>(db: &'d Db, generation: unwedge_base::Generation) -> Scene<'d> {
    let mut scene = Scene::new(db, generation);
    let flag = [low(DATA + RESULTS), high(DATA + RESULTS)];
    let source = format!(
        "mov.u32u32 r2.x, {}\nmov.u32u32 r2.y, {}\nmov.u32u32 r3.x, 5\n(rpt5)nop\n{}end",
        flag[0],
        flag[1],
        POLL.replace("\n    ", "\n")
    );
    scene.code(VERTEX_CODE, &source);
    scene.set("SP_CS_OBJ_START", &[low(DATA + VERTEX_CODE), high(DATA + VERTEX_CODE)]);
    scene.set("SP_CS_INSTRLEN", &[1]);
    scene.set("HLSQ_CS_NDRANGE_0", &[3 | 63 << 2, 64, 0, 1, 0, 1, 0]);
    scene.stream.op("EXEC_CS", &[0, 1, 1, 1]).store(RESULTS + 8, 9);
    scene
}

/// BR dispatches a shader that polls what BV writes. BV executes its packets while the shader polls.
#[test]
fn a_shader_waits_for_the_other_thread() {
    let db = Db::builtin();
    let mut scene = polling_scene(&db, A7xx);
    scene.stream.op("THREAD_CONTROL", &[2]);
    for _ in 0..10 {
        scene.stream.op("NOP", &[0]);
    }
    scene.stream.store(RESULTS, 5);
    assert_eq!(scene.run(), RunEnd::Done);
    assert_eq!(data(&scene.machine, RESULTS + 8), 9);
    assert_eq!(scene.machine.work_done(), 1);
}

/// When no other thread writes what it polls, the GPU hangs in the shader.
#[test]
fn a_shader_that_waits_for_nothing_hangs() {
    let db = Db::builtin();
    for generation in [A6xx, A7xx] {
        let mut scene = polling_scene(&db, generation);
        let end = scene.run();
        let RunEnd::Stopped { thread: ThreadId::Br, stop: CpStop::Dispatch(stop) } = end else {
            panic!("{end:?}")
        };
        let DispatchStop::Shader { fault, .. } = stop;
        assert_eq!(fault.kind, FaultKind::Polls, "{fault}");
        assert_eq!(data(&scene.machine, RESULTS + 8), 0);
    }
}
