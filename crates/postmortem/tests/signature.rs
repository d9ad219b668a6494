//! Signatures: equal hangs have one, whatever their addresses and processes; different causes have different ones.

mod common;

use common::{Named, ONLY_CP, draw, explain, offset};
use std::collections::HashMap;
use unwedge_base::Generation;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::RingRegister;
use unwedge_capture::radv::{RadvReport, ReportMember};
use unwedge_capture::xe::XeDevcore;
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain_amdgpu, explain_i915, explain_radv, explain_xe};
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP, RadvBuilder, ShaderSpec, WaveSpec};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, pipe_control, primitive,
    semaphore_wait, store_data, stream,
};
use unwedge_testkit::pm4::{CP_NOP, CP_WAIT_FOR_IDLE, CP_WAIT_REG_MEM, indirect_buffer, pkt3, pkt7};
use unwedge_testkit::{i915, xe};

/// Where things are in one run, and whose they are.
#[derive(Clone, Copy)]
struct Run {
    ib: u64,
    fence: u64,
    process: &'static str,
    pid: u32,
    fences: u32,
}

const RUNS: [Run; 2] = [
    Run { ib: 0x1_0000_0000, fence: 0x1_0040_0000, process: "deqp-vk", pid: 4711, fences: 3 },
    Run { ib: 0x7_1234_0000, fence: 0x7_3000_1000, process: "vkcube", pid: 12, fences: 900 },
];

/// Signatures of the causes of one run are all different, and those of two runs are the same.
fn assert_tells_apart(causes: &[(&str, &dyn Fn(Run) -> Report)]) {
    let mut seen: HashMap<String, &str> = HashMap::new();
    for (name, cause) in causes {
        let [first, second] = RUNS.map(|run| cause(run).signature());
        assert_eq!(first, second, "{name}: the same hang at other addresses, in another process");
        for run in RUNS {
            let hidden = [format!("{:x}", run.ib), format!("{:x}", run.fence), run.process.to_owned()];
            assert!(hidden.iter().all(|text| !first.contains(text.as_str())), "{name}: {first}");
        }
        if let Some(other) = seen.insert(first.clone(), name) {
            panic!("{name} and {other} have the same signature {first}");
        }
    }
}

// ---- Adreno ----

const RING: u64 = 0x0001_0000_0000_1000;

/// An a6xx whose CP is at a packet of IB1: `header` is what the SQE has, one dword of IB1 is unread.
fn adreno(run: Run, ib1: &[u32], header: u32, status: u32) -> (Generation, DevcoreBuilder) {
    let ring = [pkt7(CP_NOP, &[1]), indirect_buffer(run.ib, ib1.len() as u32), pkt7(CP_NOP, &[2])].concat();
    let mut sqe = vec![0u32; 51];
    (sqe[0], sqe[1], sqe[36]) = (0x123, header, header);
    let builder = DevcoreBuilder::a6xx()
        .process(run.process, run.process)
        .ring(RING, &ring)
        .with_ring(|r| {
            r.rptr = Some(6);
            (r.last_fence, r.retired_fence) = (Some(run.fences), Some(run.fences - 1));
        })
        .bo(run.ib, 4096, "ib1", ib1)
        .indexed("CP_SQE_STAT", &sqe);
    (Generation::A6xx, builder)
        .named64("CP_RB_BASE", RING)
        .named("CP_RB_RPTR", ring.len() as u32)
        .named("CP_RB_WPTR", ring.len() as u32)
        .named("CP_ROQ_AVAIL_RB", 3 << 16)
        .named64("CP_IB1_BASE", run.ib)
        .named("CP_IB1_REM_SIZE", 0)
        .named("CP_IB1_DWORDS", ib1.len() as u32)
        .named("CP_ROQ_AVAIL_IB1", 2 << 16)
        .named("RBBM_STATUS", status)
}

fn at_wait(run: Run) -> (Generation, DevcoreBuilder) {
    let fence = [run.fence as u32, (run.fence >> 32) as u32];
    let wait = pkt7(CP_WAIT_REG_MEM, &[3 | 1 << 4, fence[0], fence[1], 5, u32::MAX, 16]);
    adreno(run, &[draw(), wait.clone(), pkt7(CP_NOP, &[])].concat(), wait[0], ONLY_CP)
}

fn at_idle(run: Run, busy: u32) -> (Generation, DevcoreBuilder) {
    let wait = pkt7(CP_WAIT_FOR_IDLE, &[]);
    adreno(run, &[draw(), wait.clone(), pkt7(CP_NOP, &[])].concat(), wait[0], ONLY_CP | busy)
}

fn garbage(run: Run, dword: u32) -> Report {
    let nop = pkt7(CP_NOP, &[]);
    explain(adreno(run, &[nop.clone(), vec![dword], nop].concat(), dword, ONLY_CP).1)
}

#[test]
fn hangs_of_adreno() {
    const BUSY: [u32; 5] = [1 << 18 | 1 << 21, 1 << 17 | 1 << 4, 1 << 9 | 1 << 8, 1 << 15, 1 << 7];
    let fault = |at: fn(Run) -> u64| {
        move |run: Run| explain(at_idle(run, 0).1.fault(at(run), "WRITE", "TRANSLATION", "CCU"))
    };
    let protect = offset(Generation::A6xx, "CP_PROTECT_STATUS");
    assert_tells_apart(&[
        ("a wait for memory", &|run| explain(at_wait(run).1.bo(run.fence, 4096, "fences", &[3]))),
        ("a poisoned stream", &|run| garbage(run, 0xdead_d00d)),
        ("a corrupt stream", &|run| garbage(run, 0x1234_5678)),
        ("stuck shaders", &|run| explain(at_idle(run, BUSY[0]).1)),
        ("memory that does not answer", &|run| explain(at_idle(run, BUSY[1]).1)),
        ("a blit", &|run| explain(at_idle(run, BUSY[2]).1)),
        ("the front end", &|run| explain(at_idle(run, BUSY[3]).1)),
        ("the back end", &|run| explain(at_idle(run, BUSY[4]).1)),
        ("a fault in a buffer", &fault(|run| run.ib + 16)),
        ("a fault in the null page", &fault(|_| 0x18)),
        ("a fault at garbage", &fault(|_| 0xdead_beef_0000_0000)),
        ("a protected register", &|run| explain(at_idle(run, 0).1.register(protect, 0x1234))),
        ("a GPU that never came up", &|run| explain(at_idle(run, 0).1.gpu_initialized(false))),
    ]);
}

// ---- AMD ----

fn amd_draw() -> Vec<u32> {
    pkt3(0x2d, &[3, 2])
}

fn amd_wait(run: Run) -> Vec<u32> {
    pkt3(0x3c, &[0x13, run.fence as u32, (run.fence >> 32) as u32, 7, u32::MAX, 4])
}

/// A graphics ring that calls an IB in which the ME is at the packet with this header.
fn amd(run: Run, ib: &[u32], header: u32, fault: u32) -> AmdgpuBuilder {
    let call = pkt3(0x3f, &[run.ib as u32, (run.ib >> 32) as u32, ib.len() as u32]);
    let ring = [pkt3(0x10, &[0, 0]), call].concat();
    let rptr = ring.len() as u64;
    let mut builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V6_19)
        .process(run.process, run.pid)
        .timeout("gfx_0.0.0")
        .fault("gfxhub", run.ib + 0x1000, fault)
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", run.ib as u32)
        .register("CP_IB1_BASE_HI", (run.ib >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", rptr, rptr + 2, &[ring, vec![NOP; 4]].concat())
        .ib(run.ib, ib);
    for _ in 0..8 {
        builder = builder.register("CP_ME_HEADER_DUMP", header);
    }
    builder
}

fn amd_report(builder: &AmdgpuBuilder) -> Report {
    let text = builder.text();
    explain_amdgpu(&Devcoredump::read(&text).expect("the builder's text is a dump"), &Db::amd())
}

fn radv(builder: &RadvBuilder) -> Report {
    let files = builder.members();
    let members: Vec<ReportMember<'_>> =
        files.iter().map(|(name, bytes)| ReportMember { name, bytes, offset: 0 }).collect();
    explain_radv(&RadvReport::read(&members).expect("a report"), &Db::amd())
}

#[test]
fn hangs_of_amd() {
    let waiting = |run: Run, before: Vec<u32>, after: Vec<u32>| {
        let wait = amd_wait(run);
        amd_report(&amd(run, &[before, wait.clone(), after].concat(), wait[0], 0))
    };
    let write = |run: Run| pkt3(0x37, &[0x100, run.fence as u32, (run.fence >> 32) as u32, 7]);
    let broken = [vec![0x7fff_ffff; 5], amd_draw()].concat();
    let shader = |run: Run| ShaderSpec::waiting(Gfx::V10, "Pixel Shader", run.fence);
    assert_tells_apart(&[
        ("a wait for another queue", &|run| waiting(run, amd_draw(), amd_draw())),
        ("a wait for a later write", &|run| waiting(run, amd_draw(), write(run))),
        ("a page fault", &|run| amd_report(&amd(run, &amd_draw(), amd_draw()[0], 0x0080_0831))),
        ("garbage", &|run| amd_report(&amd(run, &broken, amd_draw()[0], 0))),
        ("a stall", &|run| {
            amd_report(&amd(run, &amd_draw(), amd_draw()[0], 0).register("CP_STALLED_STAT3", 1 << 10))
        }),
        ("waves in a loop", &|run| {
            let report = RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 100, 102);
            radv(&report.shader(shader(run)).waves(&WaveSpec::some(Gfx::V10)))
        }),
        ("an exception", &|run| radv(&RadvBuilder::new(Gfx::V10).shader(shader(run)).trap(&shader(run), 8))),
        ("use after free", &|run| {
            let report = RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 1, 2);
            radv(&report.buffer(1000, run.ib, 0x10000, Some(2000)).fault(run.ib + 0x1000, 0x0080_0831))
        }),
    ]);
}

// ---- Intel ----

/// The render engine in a batch that its ring started, `acthd` dwords into it.
fn intel(run: Run, batch: &[u32], acthd: usize, header: u32) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(run.ib), &[0, 0, 0]]);
    EngineState::new("rcs0")
        .ring((run.ib >> 12 & 0xff) << 16 | 0x10_0000, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, run.ib + 4 * acthd as u64)
        .set(RingRegister::Ipehr, header.into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(run.ib, batch)
        .process(run.process, run.pid as i32)
        .hung(1)
}

fn tgl() -> TestDevice {
    TestDevice::named("tgl")
}

fn i915_report(engine: EngineState) -> Report {
    i915_of(&i915::ErrorStateBuilder::new(tgl()).engine(engine))
}

fn i915_of(builder: &i915::ErrorStateBuilder) -> Report {
    explain_i915(&ErrorState::read(&builder.text()).expect("the builder's text is an error state"))
}

fn xe_report(engine: EngineState) -> Report {
    let text = xe::DevcoreBuilder::new(tgl()).engine(engine).text();
    explain_xe(&XeDevcore::read(&text).expect("the builder's text is a dump"))
}

#[test]
fn hangs_of_intel() {
    let end = [MI_BATCH_BUFFER_END];
    let waiting = move |run: Run, flag: Option<u32>| {
        let wait = semaphore_wait(run.fence, 5, tgl());
        let batch = stream(&[&pipe_control(1 << 20), &wait, &end]);
        let engine = intel(run, &batch, 6 + wait.len(), wait[0]);
        flag.map_or(engine.clone(), |value| engine.user(run.fence, &[value]))
    };
    let drawing = move |run: Run| {
        let batch = stream(&[&primitive(3), &end]);
        intel(run, &batch, 0, batch[0])
    };
    let faulting = move |run: Run, address: u64| {
        let engine = drawing(run).user(run.fence, &[1; 1024]).set(RingRegister::Fault, 1);
        let builder = i915::ErrorStateBuilder::new(tgl()).engine(engine);
        i915_of(&builder.fault((address >> 12) as u32, (address >> 44) as u32 & 0xf))
    };
    let overwritten = move |run: Run, with: &[u32]| {
        let batch = stream(&[&store_data(run.ib, 1), with]);
        i915_report(intel(run, &batch, 4, batch[4]))
    };
    let stalled = move |run: Run, before: &[u32]| {
        let flush = pipe_control(1 << 20);
        let batch = stream(&[before, &flush, &end]);
        i915_report(intel(run, &batch, before.len() + 4, flush[0]))
    };
    let running = |run: Run, register: &str, value: u64| i915_report(drawing(run).register(register, value));
    assert_tells_apart(&[
        ("a semaphore nobody signals", &|run| i915_report(waiting(run, Some(3)))),
        ("a semaphore whose value is there", &|run| i915_report(waiting(run, Some(7)))),
        ("a semaphore whose memory is not in the dump", &|run| i915_report(waiting(run, None))),
        ("a wait for the display", &|run| {
            let batch = stream(&[&[0x03 << 23 | 1], &end]);
            i915_report(intel(run, &batch, 0, batch[0]))
        }),
        ("a stall after a draw", &|run| stalled(run, &primitive(3))),
        ("a stall without work", &|run| stalled(run, &store_data(run.ib, 1))),
        ("a page fault past a buffer's end", &|run| faulting(run, run.fence + 0x1000)),
        ("a page fault before a buffer", &|run| faulting(run, run.fence - 0x1000)),
        ("a page fault inside a buffer", &|run| faulting(run, run.fence)),
        ("a page fault at zero", &|run| faulting(run, 0x2000)),
        ("a page fault elsewhere", &|run| faulting(run, 0x7fff_1234_5000)),
        ("ones in the batch", &|run| overwritten(run, &[u32::MAX; 20])),
        ("freed memory in the batch", &|run| overwritten(run, &[0x6b6b_6b6b; 20])),
        ("zeros in the batch", &|run| {
            let batch = stream(&[&store_data(run.ib, 1), &[0; 200]]);
            i915_report(intel(run, &batch, 100, 0))
        }),
        ("a batch that is not in the dump", &|run| {
            let engine = EngineState::new("rcs0").set(RingRegister::Acthd, run.fence).hung(1);
            i915_report(engine.set(RingRegister::Ipehr, 0x7a00_0004).process(run.process, run.pid as i32))
        }),
        ("a buffer that no command leads to", &|run| {
            let engine = EngineState::new("rcs0").set(RingRegister::Acthd, run.fence + 0x10).hung(1);
            i915_report(engine.user(run.fence, &[1; 64]).set(RingRegister::Ipehr, 0x7a00_0004))
        }),
        ("an error of the engine", &|run| i915_report(drawing(run).set(RingRegister::Eir, 1))),
        ("shader threads that run", &|run| running(run, "ROW_INSTDONE[0][1]", !(1 << 16) & 0xffff_ffff)),
        ("a sampler that is not done", &|run| {
            running(run, "SAMPLER_INSTDONE[0][1]", !(1 << 6) & 0xffff_ffff)
        }),
        ("a semaphore of xe", &|run| xe_report(waiting(run, Some(3)).set(RingRegister::Acthd, run.ib))),
    ]);
}
