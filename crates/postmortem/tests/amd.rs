//! Hangs of AMD GPUs that the tests make up: what they are has to be what is said of them.

use unwedge_capture::amdgpu::devcore::{Devcoredump, VramState};
use unwedge_capture::amdgpu::radv::{Member, RadvReport};
use unwedge_capture::amdgpu::umr::UmrText;
use unwedge_hw::Db;
use unwedge_postmortem::amd::Options;
use unwedge_postmortem::{
    Fact, Finding, FindingKind, Report, Trust, explain_amdgpu, explain_radv, explain_umr,
};
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, Era, Gfx, NOP, RadvBuilder, ShaderSpec, WaveSpec, ring_stream_text, texts,
};
use unwedge_testkit::mutate::{Rng, mutate};

const IB: u64 = 0x8001_0010_0000;
const SEMAPHORE: u64 = 0x8001_2000_0000;

/// A type 3 packet.
fn packet(opcode: u32, payload: &[u32]) -> Vec<u32> {
    let mut out = vec![3 << 30 | (payload.len() as u32 - 1) << 16 | opcode << 8];
    out.extend(payload);
    out
}

fn call(iova: u64, dwords: usize) -> Vec<u32> {
    packet(0x3f, &[iova as u32, (iova >> 32) as u32, dwords as u32])
}

fn wait(iova: u64, value: u32) -> Vec<u32> {
    packet(0x3c, &[0x13, iova as u32, (iova >> 32) as u32, value, u32::MAX, 4])
}

fn draw(vertices: u32) -> Vec<u32> {
    packet(0x2d, &[vertices, 2])
}

fn dispatch(groups: u32) -> Vec<u32> {
    packet(0x15, &[groups, 1, 1, 1])
}

fn explain(builder: &AmdgpuBuilder) -> Report {
    explain_text(&builder.text())
}

fn explain_text(text: &[u8]) -> Report {
    let dump = Devcoredump::read(text).expect("the builder's text is a dump");
    explain_amdgpu(&dump, &Db::amd(), Options::default())
}

fn explain_folder(builder: &RadvBuilder) -> Report {
    let files = builder.members();
    let members: Vec<Member<'_>> =
        files.iter().map(|(name, bytes)| Member { name, bytes, offset: 0 }).collect();
    explain_radv(&RadvReport::read(&members).expect("a report"), &Db::amd(), Options::default())
}

fn find<'r>(report: &'r Report, kind: FindingKind, words: &str) -> &'r Finding {
    let found = report.findings.iter().find(|f| f.kind == kind && f.title.contains(words));
    found.unwrap_or_else(|| panic!("no {kind:?} with {words:?} in\n{}", listing(report)))
}

fn listing(report: &Report) -> String {
    let line = |f: &Finding| format!("{:?} {:?}: {} -- {}\n", f.kind, f.trust, f.title, f.why);
    report.findings.iter().map(line).collect()
}

fn says(report: &Report, words: &str) -> bool {
    listing(report).contains(words)
}

/// A graphics ring that calls an IB in which the ME stands at the packet with this header.
fn stuck(gfx: Gfx, ib: &[u32], header: u32) -> AmdgpuBuilder {
    let mut ring = packet(0x10, &[0, 0]);
    ring.extend(call(IB, ib.len()));
    let rptr = ring.len() as u64;
    let mut builder = AmdgpuBuilder::new(gfx)
        .era(Era::V6_19)
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

const GRAPHICS: [Gfx; 4] = [Gfx::V9, Gfx::V10, Gfx::V11, Gfx::V12];

#[test]
fn a_wait_that_nobody_ends() {
    for gfx in GRAPHICS {
        let wait = wait(SEMAPHORE, 7);
        let ib = [draw(3), wait.clone(), draw(6)].concat();
        let report = explain(&stuck(gfx, &ib, wait[0]));
        let hang = report.hang.as_ref().expect("a place");
        assert_eq!(hang.ring_name.as_deref(), Some("gfx_0.0.0"), "{gfx:?}");
        assert_eq!(hang.iova, Some(IB + 4 * 3), "{gfx:?}\n{}", listing(&report));
        assert_eq!(hang.packet.as_deref(), Some("WAIT_REG_MEM"), "{gfx:?}");
        assert_eq!(hang.trust, Trust::Likely, "{gfx:?}");
        let level = hang.levels.last().expect("a buffer");
        assert_eq!((level.level, level.base, level.range), (1, IB, (3, 3)), "{gfx:?}");
        let found = find(&report, FindingKind::CpWait, "waits until memory 0x800120000000 == 0x7");
        assert!(found.why.contains("another queue or the CPU"), "{}", found.why);
        assert!(report.gpu.starts_with("AMD gfx"), "{}", report.gpu);
        assert_eq!(report.process, "vkcube (PID 4711)");
        assert_eq!(report.findings[0].kind, FindingKind::HangPoint);
        assert!(!report.advice.is_empty());
    }
}

#[test]
fn who_ends_a_wait_is_told() {
    // RELEASE_MEM of gfx10 writes what is waited for, behind the wait: it deadlocks.
    let release = packet(0x49, &[0x14, 1 << 29, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 7, 0, 0]);
    let wait = wait(SEMAPHORE, 7);
    let after = [draw(3), wait.clone(), release.clone()].concat();
    let report = explain(&stuck(Gfx::V10, &after, wait[0]));
    let found = find(&report, FindingKind::CpWait, "waits until memory");
    assert!(found.why.contains("behind the wait"), "{}", found.why);
    let before = [release, draw(3), wait.clone()].concat();
    let report = explain(&stuck(Gfx::V10, &before, wait[0]));
    let found = find(&report, FindingKind::CpWait, "waits until memory");
    assert!(found.why.contains("in front of the wait"), "{}", found.why);
}

#[test]
fn a_draw_that_faults() {
    for gfx in GRAPHICS {
        let ib = [draw(3), dispatch(64), draw(6)].concat();
        // Not writable, a client by its number, VMID 3; SPI and TA busy, the ME waits for shaders.
        let status = 0x0030_0000 | 1 << 18 | 8 << 9 | 0x30;
        let report = explain(
            &stuck(gfx, &ib, dispatch(1)[0])
                .fault("gfxhub", 0x8001_3000_0000, status)
                .register("GRBM_STATUS2", 0)
                .register("CP_STALLED_STAT1", 0),
        );
        let hang = report.hang.as_ref().expect("a place");
        assert_eq!(hang.packet.as_deref(), Some("DISPATCH_DIRECT (dispatch 1)"), "{gfx:?}");
        assert_eq!(hang.draw, Some(1), "{gfx:?}");
        let fault = find(&report, FindingKind::Fault, "0x800130000000");
        assert!(fault.trust >= Trust::Likely, "{gfx:?}: {fault:?}");
        assert!(report.findings[0].why.contains("0x800130000000"), "{gfx:?}\n{}", listing(&report));
    }
}

#[test]
fn a_status_of_zero_is_no_fault() {
    let report = explain(&stuck(Gfx::V10, &draw(3), draw(3)[0]));
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::Fault), "{}", listing(&report));
}

#[test]
fn a_dispatch_on_a_compute_queue() {
    for gfx in [Gfx::V9, Gfx::V9_4_3, Gfx::V10, Gfx::V11, Gfx::V12] {
        let ib = [packet(0x10, &[1, 2]), dispatch(5), packet(0x10, &[3, 4])].concat();
        let ring = [call(IB, ib.len()), vec![NOP; 12]].concat();
        let mut builder = AmdgpuBuilder::new(gfx)
            .era(Era::V6_19)
            .timeout("comp_1.2.3")
            .ring("comp_1.2.3", 4, 8, &ring)
            .ib(IB, &ib)
            .compute_register(0, 0, 0, "CP_HQD_IB_BASE_ADDR", 0x1000)
            .compute_register(0, 0, 0, "CP_HQD_IB_BASE_ADDR_HI", 0)
            .compute_register(0, 2, 3, "CP_HQD_IB_BASE_ADDR", IB as u32)
            .compute_register(0, 2, 3, "CP_HQD_IB_BASE_ADDR_HI", (IB >> 32) as u32)
            .compute_register(0, 2, 3, "CP_HQD_IB_RPTR", 8);
        for _ in 0..8 {
            builder = builder.register("CP_MEC_ME1_HEADER_DUMP", dispatch(1)[0]);
        }
        let report = explain(&builder);
        let hang = report.hang.as_ref().expect("a place");
        assert_eq!(
            hang.packet.as_deref(),
            Some("DISPATCH_DIRECT (dispatch 0)"),
            "{gfx:?}\n{}",
            listing(&report)
        );
        assert_eq!(hang.iova, Some(IB + 12), "{gfx:?}");
        assert_eq!(hang.ring_name.as_deref(), Some("comp_1.2.3"));
    }
}

#[test]
fn a_dma_engine_that_polls() {
    let poll = [8 | 3 << 28 | 1 << 31, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 1, u32::MAX, 0x0fff_000a];
    for gfx in [Gfx::V9, Gfx::V9_4_3, Gfx::V10, Gfx::V11, Gfx::V12] {
        let ring = [&poll[..], &[0; 10]].concat();
        let report = explain(
            &AmdgpuBuilder::new(gfx).timeout("sdma0").ring("sdma0", 6, 8, &ring).fault("mmhub0", 0, 0),
        );
        let hang = report.hang.as_ref().expect("a place");
        assert_eq!(hang.packet.as_deref(), Some("SDMA_POLL_REGMEM"), "{gfx:?}\n{}", listing(&report));
        find(&report, FindingKind::CpWait, "waits until memory 0x800120000000 == 0x1");
    }
}

#[test]
fn what_the_engine_remembers_is_told_without_the_buffer() {
    // Linux before 6.19 dumps no IBs.
    let wait = wait(SEMAPHORE, 7);
    let report = explain(&stuck(Gfx::V10, &wait, wait[0]).era(Era::V6_12));
    find(&report, FindingKind::Progress, "the ME last read WAIT_REG_MEM");
    let level = report.hang.as_ref().and_then(|hang| hang.levels.last()).expect("the buffer is named");
    assert_eq!((level.level, level.base), (1, IB));
    find(&report, FindingKind::NotCaptured, "the buffers that the ring calls");
}

#[test]
fn garbage_in_what_is_executed() {
    let ib = [draw(3), vec![0x1234_5678 & 0x3fff_ffff | 1 << 30; 5], draw(6)].concat();
    let report = explain(&stuck(Gfx::V10, &ib, draw(3)[0]));
    let found = find(&report, FindingKind::CorruptStream, "5 dwords");
    assert!(found.title.contains(&format!("{:#x}", IB + 12)), "{}", found.title);
}

#[test]
fn headers_in_a_row_tell_draws_apart() {
    // The same draw three times: only what stands around it tells which one.
    let ib = [draw(1), draw(2), dispatch(1), draw(3), draw(4)].concat();
    let (d, c) = (draw(1)[0], dispatch(1)[0]);
    let mut builder = stuck(Gfx::V11, &ib, 0);
    builder = builder.with(|dump| {
        let registers = dump.ips.iter_mut().flat_map(|ip| &mut ip.banks).flat_map(|bank| &mut bank.registers);
        let headers = registers.filter(|r| r.name.ends_with("CP_ME_HEADER_DUMP"));
        // Oldest first: draw, draw, dispatch, draw.
        for (register, header) in headers.zip([0, 0, 0, 0, d, d, c, d]) {
            register.value = header;
        }
    });
    let report = explain(&builder);
    let hang = report.hang.as_ref().expect("a place");
    assert_eq!(hang.draw, Some(3), "{}", listing(&report));
}

#[test]
fn a_dump_with_next_to_nothing_says_so() {
    for gfx in Gfx::ALL {
        for era in [Era::V5_19, Era::V6_12, Era::V6_19] {
            let report = explain(&AmdgpuBuilder::new(gfx).era(era).timeout("gfx_0.0.0"));
            assert!(
                report.findings.iter().any(|f| f.kind == FindingKind::NotCaptured),
                "{gfx:?} {era:?}\n{}",
                listing(&report)
            );
            assert!(report.hang.as_ref().is_none_or(|hang| hang.packet.is_none()), "nothing tells a packet");
        }
    }
}

#[test]
fn vram_that_was_lost() {
    let report = explain(&AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").vram(VramState::Lost));
    find(&report, FindingKind::Progress, "VRAM were lost");
}

#[test]
fn complete_dumps_are_explained() {
    for gfx in Gfx::ALL {
        let report = explain(&AmdgpuBuilder::complete(gfx));
        let hang = report.hang.as_ref().expect("the ring that timed out is named");
        assert_eq!(hang.ring_name.as_deref(), Some(gfx.ring()));
        find(&report, FindingKind::HangPoint, gfx.ring());
    }
}

#[test]
fn waves_in_a_loop() {
    let shader = ShaderSpec::waiting("Pixel Shader", SEMAPHORE);
    let report = explain_folder(
        &RadvBuilder::new(Gfx::V10)
            .timeout("gfx_0.0.0", 100, 102)
            .shader(shader)
            .waves(&WaveSpec::some(Gfx::V10)),
    );
    let loops = find(&report, FindingKind::Suspect, "Pixel Shader+0x8: s_waitcnt lgkmcnt(0)");
    assert!(loops.why.contains("the loop from"), "{}", loops.why);
    assert!(says(&report, "2 jobs are open"), "{}", listing(&report));
}

#[test]
fn trace_points_tell_the_command() {
    let stream = [
        draw(3),
        packet(0x10, &[0xcafe_0001]),
        dispatch(4),
        packet(0x10, &[0xcafe_0002]),
        draw(6),
        packet(0x10, &[0xcafe_0003]),
    ]
    .concat();
    let report = explain_folder(&RadvBuilder::new(Gfx::V10).trace(1, &[("Main IB", &stream)]));
    find(&report, FindingKind::Progress, "past trace point 1 and not to 2");
}

#[test]
fn a_buffer_that_was_freed() {
    let report = explain_folder(
        &RadvBuilder::new(Gfx::V10)
            .timeout("gfx_0.0.0", 1, 2)
            .buffer(1000, 0x8001_0000_0000, 0x10000, Some(2000))
            .fault(0x8001_0000_1000, 0x0080_0831),
    );
    let fault = find(&report, FindingKind::Fault, "0x800100001000");
    assert!(format!("{} {}", fault.title, fault.why).contains("free"), "{fault:?}");
}

#[test]
fn an_exception_in_a_shader() {
    let shader = ShaderSpec::waiting("Pixel Shader", SEMAPHORE);
    let report = explain_folder(&RadvBuilder::new(Gfx::V10).shader(shader.clone()).trap(&shader, 8));
    find(&report, FindingKind::Suspect, "+0x8: s_waitcnt lgkmcnt(0)");
}

#[test]
fn complete_reports_are_explained() {
    for gfx in Gfx::ALL {
        let report = explain_folder(&RadvBuilder::complete(gfx));
        assert_eq!(report.process, "vkcube");
        find(&report, FindingKind::HangPoint, gfx.ring());
    }
}

#[test]
fn umr_alone_tells_waves_and_rings() {
    let text = ring_stream_text(&[(0, 0x1800, &wait(SEMAPHORE, 7)), (3, IB, &draw(3))]);
    let report =
        explain_umr(&UmrText::read(text.as_bytes()).expect("text of umr"), &Db::amd(), Options::default());
    assert!(!report.findings.is_empty());
}

/// Whatever is broken in a dump, it is explained within its bounds.
#[test]
fn broken_dumps_are_explained() {
    let db = Db::amd();
    let mut rng = Rng::new(7);
    for (name, text) in texts() {
        for seed in 0..12 {
            let broken = match seed {
                0..8 => mutate(&text, seed),
                _ => text[..rng.below(text.len() + 1)].to_vec(),
            };
            let mut reports = Vec::new();
            reports
                .extend(Devcoredump::read(&broken).ok().map(|d| explain_amdgpu(&d, &db, Options::default())));
            let radv = RadvReport::read_text(&broken);
            reports.extend(radv.ok().map(|r| explain_radv(&r, &db, Options::default())));
            reports.extend(UmrText::read(&broken).ok().map(|u| explain_umr(&u, &db, Options::default())));
            for report in reports {
                assert!(!report.database.is_empty(), "{name}");
                for finding in &report.findings {
                    assert!(!finding.title.is_empty(), "{name}: {finding:?}");
                }
            }
        }
    }
}

/// `umr --waves` of a Navi 31, as posted: no instruction words, and nothing names the GPU.
#[test]
fn waves_alone_tell_the_generation() {
    let text = "\
------------------------------------------------------
se0.sa0.wgp3.simd1.wave0


Main Registers:
            ixSQ_WAVE_STATUS: 00010c20 |      ixSQ_WAVE_PC_LO: 13e5674c |      ixSQ_WAVE_PC_HI: 00007616 |    ixSQ_WAVE_EXEC_LO: ffffffff |
           ixSQ_WAVE_EXEC_HI: 00000000 |     ixSQ_WAVE_HW_ID1: 20000d00 |     ixSQ_WAVE_HW_ID2: 091f0102 |  ixSQ_WAVE_GPR_ALLOC: 00027000 |
         ixSQ_WAVE_LDS_ALLOC: 000001fc |    ixSQ_WAVE_TRAPSTS: 00000000 |     ixSQ_WAVE_IB_STS: 00000c00 |    ixSQ_WAVE_IB_STS2: 00000203 |
           ixSQ_WAVE_IB_DBG1: 00000000 |         ixSQ_WAVE_M0: a36013fb |       ixSQ_WAVE_MODE: 000003f0 |
";
    let text = UmrText::read(text.as_bytes()).expect("text of umr");
    let report = explain_umr(&text, &Db::amd(), Options::default());
    assert!(report.gpu.starts_with("AMD gfx11 or one like it"), "{}", report.gpu);
    let found = find(&report, FindingKind::Suspect, "1 wave stands at 0x761613e5674c");
    assert_eq!(
        match &found.evidence[0].fact {
            Fact::Prose(what) => what,
            _ => "",
        },
        "SE0 SA0 WGP3 SIMD1 wave 0: PC 0x761613e5674c, EXEC 0xffffffff, PRIV, vmcnt 3"
    );
}
