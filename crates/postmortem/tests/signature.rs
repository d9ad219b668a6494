//! Signatures: equal hangs have one, whatever their addresses and processes; different causes have different ones.

use std::collections::HashMap;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::{Member, RadvReport};
use unwedge_hw::Db;
use unwedge_postmortem::{Report, explain_amdgpu, explain_radv};
use unwedge_testkit::amdgpu::{AmdgpuBuilder, Era, Gfx, NOP, RadvBuilder, ShaderSpec, WaveSpec};

/// Where things are in one run, and whose they are.
#[derive(Clone, Copy)]
struct Run {
    ib: u64,
    fence: u64,
    process: &'static str,
    pid: u32,
}

const RUNS: [Run; 2] = [
    Run { ib: 0x1_0000_0000, fence: 0x1_0040_0000, process: "deqp-vk", pid: 4711 },
    Run { ib: 0x7_1234_0000, fence: 0x7_3000_1000, process: "vkcube", pid: 12 },
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

// ---- AMD ----

/// A type 3 packet.
fn packet(opcode: u32, payload: &[u32]) -> Vec<u32> {
    let mut out = vec![3 << 30 | (payload.len() as u32 - 1) << 16 | opcode << 8];
    out.extend(payload);
    out
}

fn amd_draw() -> Vec<u32> {
    packet(0x2d, &[3, 2])
}

fn amd_wait(run: Run) -> Vec<u32> {
    packet(0x3c, &[0x13, run.fence as u32, (run.fence >> 32) as u32, 7, u32::MAX, 4])
}

/// A graphics ring that calls an IB in which the ME is at the packet with this header.
fn amd(run: Run, ib: &[u32], header: u32, fault: u32) -> AmdgpuBuilder {
    let call = packet(0x3f, &[run.ib as u32, (run.ib >> 32) as u32, ib.len() as u32]);
    let ring = [packet(0x10, &[0, 0]), call].concat();
    let rptr = ring.len() as u64;
    let mut builder = AmdgpuBuilder::new(Gfx::V10)
        .era(Era::V6_19)
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
    let members: Vec<Member<'_>> =
        files.iter().map(|(name, bytes)| Member { name, bytes, offset: 0 }).collect();
    explain_radv(&RadvReport::read(&members).expect("a report"), &Db::amd())
}

#[test]
fn hangs_of_amd() {
    let waiting = |run: Run, before: Vec<u32>, after: Vec<u32>| {
        let wait = amd_wait(run);
        amd_report(&amd(run, &[before, wait.clone(), after].concat(), wait[0], 0))
    };
    let write = |run: Run| packet(0x37, &[0x100, run.fence as u32, (run.fence >> 32) as u32, 7]);
    let broken = [vec![0x7fff_ffff; 5], amd_draw()].concat();
    let shader = |run: Run| ShaderSpec::waiting("Pixel Shader", run.fence);
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
