//! Reports as text, compared with files that one switch writes anew: `UNWEDGE_BLESS=1 cargo test -p unwedge-view`.
//!
//! The dumps are made here, by the test kit.

use std::path::Path;
use unwedge_base::Generation;
use unwedge_capture::intel::RingRegister;
use unwedge_capture::{Dump, DumpPart};
use unwedge_hw::Db;
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, AmdgpuEra, Gfx, NOP, RadvBuilder, ShaderSpec, WaveForm, WaveSpec, waves_text,
};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::i915::{self, ErrorStateBuilder};
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, pipe_control, primitive,
    semaphore_wait, store_data, stream,
};
use unwedge_testkit::pm4::pkt3;
use unwedge_view::report::ReportOptions;

/// Compares text with the snapshot of this name, or writes it if the switch is on.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots").join(format!("{name}.txt"));
    if std::env::var_os("UNWEDGE_BLESS").is_some() {
        std::fs::write(&path, text).expect("the snapshot is written");
        return;
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == expected,
        "{name} is not as its snapshot: UNWEDGE_BLESS=1 accepts it\n--- expected\n{expected}\n--- found\n{text}"
    );
}

/// The report of a dump, with its packets.
fn check_report(name: &str, dump: &Dump<'_>) {
    let (mut out, db) = (Vec::new(), Db::builtin());
    let report = unwedge_view::around::explained(dump, &db, 1 << 30);
    unwedge_view::report::text(&report, None, ReportOptions::default(), &mut out).expect("memory takes it");
    check(name, &String::from_utf8(out).expect("text"));
}

fn check_file(name: &str, bytes: &[u8]) {
    check_report(name, &Dump::read(&[DumpPart { name, bytes }]).expect("a dump"));
}

const IB: u64 = 0x8001_0010_0000;
const SEMAPHORE: u64 = 0x8001_2000_0000;

fn draw() -> Vec<u32> {
    pkt3(0x2d, &[3, 2])
}

fn wait() -> Vec<u32> {
    pkt3(0x3c, &[0x13, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 7, u32::MAX, 4])
}

/// A graphics ring that calls an IB in which the ME is at the packet with this header.
fn stuck(ib: &[u32], header: u32) -> AmdgpuBuilder {
    let call = pkt3(0x3f, &[IB as u32, (IB >> 32) as u32, ib.len() as u32]);
    let ring = [pkt3(0x10, &[0, 0]), call].concat();
    let rptr = ring.len() as u64;
    let mut builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V7_1)
        .process("vkcube", 4711)
        .timeout("gfx_0.0.0")
        .fault("gfxhub", 0, 0)
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", IB as u32)
        .register("CP_IB1_BASE_HI", (IB >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", rptr, rptr + 2, &[ring, vec![NOP; 4]].concat())
        .ib(IB, ib);
    for _ in 0..8 {
        builder = builder.register("CP_ME_HEADER_DUMP", header);
    }
    builder
}

fn check_dump(name: &str, builder: &AmdgpuBuilder) {
    let text = builder.text();
    check_file(name, &text);
}

fn check_radv(name: &str, builder: &RadvBuilder) {
    let files = builder.members();
    let parts: Vec<DumpPart<'_>> = files.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    check_report(name, &Dump::read(&parts).expect("a report"));
}

#[test]
fn amdgpu_waits() {
    let release = pkt3(0x49, &[0x14, 1 << 29, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 7, 0, 0]);
    check_dump("amdgpu-wait-for-other-queue", &stuck(&[draw(), wait(), draw()].concat(), wait()[0]));
    check_dump("amdgpu-wait-written-after", &stuck(&[wait(), release.clone()].concat(), wait()[0]));
    check_dump("amdgpu-wait-written-before", &stuck(&[release, wait()].concat(), wait()[0]));
    let poll = [8 | 3 << 28 | 1 << 31, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 1, u32::MAX, 0x0fff_000a];
    let ring = [&poll[..], &[0; 10]].concat();
    let builder = AmdgpuBuilder::new(Gfx::V10).timeout("sdma0").ring("sdma0", 6, 8, &ring);
    check_dump("amdgpu-sdma-poll", &builder.fault("mmhub0", 0, 0));
}

#[test]
fn amdgpu_faults_and_broken_streams() {
    let status = 0x0030_0000 | 1 << 18 | 8 << 9 | 0x30;
    let builder = stuck(&[draw(), draw()].concat(), draw()[0]);
    check_dump("amdgpu-page-fault", &builder.clone().fault("gfxhub", 0x8001_3000_0000, status));
    check_dump("amdgpu-stalls", &builder.register("CP_STALLED_STAT3", u32::MAX >> 1));
    check_dump("amdgpu-garbage", &stuck(&[draw(), vec![0x5234_5678; 5], draw()].concat(), draw()[0]));
    check_dump("amdgpu-nothing", &AmdgpuBuilder::new(Gfx::V8).era(AmdgpuEra::V5_19).timeout("gfx"));
    check_dump("amdgpu-complete", &AmdgpuBuilder::complete(Gfx::V11));
}

#[test]
fn radv_reports() {
    let shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", SEMAPHORE);
    let builder = RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 100, 102);
    let waves = builder.clone().shader(shader.clone()).waves(&WaveSpec::some(Gfx::V10));
    check_radv("radv-waves-in-loop", &waves);
    let mut broken = shader.clone();
    broken.code = [
        (vec![0xf400_0100, 0xfa00_0000], "s_load_dword s4, s[0:1], null"),
        (vec![0x8005_0404], "s_add_u32 s5, s4, s4"),
        (vec![0xbf81_0000], "s_endpgm"),
    ]
    .map(|(words, text)| (words, text.to_owned()))
    .to_vec();
    check_radv("radv-missing-wait", &builder.clone().shader(broken));
    check_radv("radv-exception", &builder.clone().shader(shader.clone()).trap(&shader, 8));
    let freed = builder.clone().buffer(1000, 0x8001_0000_0000, 0x10000, Some(2000));
    check_radv("radv-use-after-free", &freed.fault(0x8001_0000_1000, 0x0080_0831));
    let stream = [draw(), pkt3(0x10, &[0xcafe_0001]), draw(), pkt3(0x10, &[0xcafe_0002])].concat();
    check_radv("radv-trace-points", &RadvBuilder::new(Gfx::V10).trace(1, &[("Main IB", &stream)]));
    check_radv("radv-complete", &RadvBuilder::complete(Gfx::V12));
}

#[test]
fn waves_of_umr() {
    let text = waves_text(Gfx::V11, &WaveSpec::some(Gfx::V11), WaveForm::ALL[0]);
    check_file("umr-waves", text.as_bytes());
}

#[test]
fn msm_dumps() {
    for generation in Generation::ALL {
        let text = DevcoreBuilder::complete(generation).text();
        check_file(&format!("msm-{}", generation.name()), &text);
    }
}

// ---- Intel ----

const BATCH: u64 = 0x1_0010_0000;

/// The render engine in a batch that its ring started, `acthd` dwords into it; `header` is what IPEHR holds.
fn in_batch(batch: &[u32], acthd: usize, header: u32) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(BATCH), &[0, 0, 0]]);
    EngineState::new("rcs0")
        .ring(0x10_0000, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, BATCH + 4 * acthd as u64)
        .set(RingRegister::Ipehr, header.into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(BATCH, batch)
        .process("glxgears", 2345)
        .hung(1)
}

fn tgl() -> TestDevice {
    TestDevice::named("tgl")
}

fn check_state(name: &str, builder: &ErrorStateBuilder) {
    check_file(name, &builder.text());
}

fn check_engine(name: &str, engine: EngineState) {
    check_state(name, &ErrorStateBuilder::new(tgl()).engine(engine));
}

#[test]
fn i915_waits_and_work() {
    let wait = semaphore_wait(BATCH + 0x10_0000, 5, tgl());
    let waits = stream(&[&pipe_control(1 << 20), &wait, &[MI_BATCH_BUFFER_END]]);
    let waiting = in_batch(&waits, 6 + wait.len(), wait[0]);
    check_engine("i915-semaphore", waiting.clone().user(BATCH + 0x10_0000, &[3]));
    check_engine("i915-semaphore-unknown", waiting);
    let flush = pipe_control(1 << 20);
    let draws = stream(&[&primitive(3), &flush, &[MI_BATCH_BUFFER_END]]);
    let threads = 0xfffe_ffff;
    check_engine("i915-threads", in_batch(&draws, 11, flush[0]).register("ROW_INSTDONE[0][1]", threads));
    let copy = EngineState::new("bcs0").ring(0x20_0000, &[0; 16], 0x20, 0x20);
    check_engine("i915-ring-read", copy.set(RingRegister::Acthd, 0x30_0000).hung(1));
    let elsewhere = EngineState::new("rcs0").set(RingRegister::Acthd, 0x7777_0000).hung(1);
    check_engine("i915-batch-missing", elsewhere.set(RingRegister::Ipehr, 0x7a00_0004));
}

#[test]
fn i915_faults_and_broken_streams() {
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let held = BATCH + 0x10_0000;
    let engine = in_batch(&batch, 0, batch[0]).user(held, &[1; 1024]).set(RingRegister::Fault, 1);
    let faulting = |address: u64| {
        let builder = ErrorStateBuilder::new(tgl()).engine(engine.clone());
        builder.fault((address >> 12) as u32, (address >> 44) as u32)
    };
    check_state("i915-fault-past-end", &faulting(held + 0x1000));
    check_state("i915-fault-before", &faulting(held - 0x1000));
    let broken = stream(&[&store_data(BATCH, 1), &[0x6b6b_6b6b; 20]]);
    check_engine("i915-freed-batch", in_batch(&broken, 4, broken[4]));
    let zeros = stream(&[&store_data(BATCH, 1), &[0; 200]]);
    check_engine("i915-zeros", in_batch(&zeros, 100, 0));
}

#[test]
fn complete_dumps_of_intel() {
    check_state("i915-complete", &ErrorStateBuilder::complete(tgl(), i915::I915Era::V6_12));
    let builder = unwedge_testkit::xe::DevcoreBuilder::complete(
        TestDevice::named("bmg"),
        unwedge_testkit::xe::XeEra::V6_14,
    );
    check_file("xe-complete", &builder.text());
}
