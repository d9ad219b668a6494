//! Hangs of AMD GPUs that the tests make up: what they are has to be what the report has, by rules, subjects, arguments and
//! evidence.

mod common;

use common::has;
use unwedge_capture::amdgpu::{Devcoredump, Soc, VramState};
use unwedge_capture::radv::{RadvReport, ReportMember};
use unwedge_capture::umr::UmrText;
use unwedge_hw::Db;
use unwedge_postmortem::{
    AdviceId, Arg, Args, Fact, Finding, FindingKind, GpuIdentity, Report, Rule, Subject, Trust, Vendors,
    explain_amdgpu, explain_radv, explain_umr,
};
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, AmdgpuEra, Gfx, NOP, RadvBuilder, ShaderSpec, WaveSpec, ring_stream_text, texts,
};
use unwedge_testkit::mutate::{Rng, mutate};
use unwedge_testkit::pm4::pkt3;

const IB: u64 = 0x8001_0010_0000;
const SEMAPHORE: u64 = 0x8001_2000_0000;

fn call(iova: u64, dwords: usize) -> Vec<u32> {
    pkt3(0x3f, &[iova as u32, (iova >> 32) as u32, dwords as u32])
}

fn wait(iova: u64, value: u32) -> Vec<u32> {
    pkt3(0x3c, &[0x13, iova as u32, (iova >> 32) as u32, value, u32::MAX, 4])
}

fn draw(vertices: u32) -> Vec<u32> {
    pkt3(0x2d, &[vertices, 2])
}

fn dispatch(groups: u32) -> Vec<u32> {
    pkt3(0x15, &[groups, 1, 1, 1])
}

fn explain(builder: &AmdgpuBuilder) -> Report {
    explain_text(&builder.text())
}

fn explain_text(text: &[u8]) -> Report {
    let dump = Devcoredump::read(text).expect("the builder's text is a dump");
    explain_amdgpu(&dump, &Db::amd())
}

fn explain_folder(builder: &RadvBuilder) -> Report {
    let files = builder.members();
    let members: Vec<ReportMember<'_>> =
        files.iter().map(|(name, bytes)| ReportMember { name, bytes, offset: 0 }).collect();
    explain_radv(&RadvReport::read(&members).expect("a report"), &Db::amd())
}

fn find(report: &Report, rule: Rule) -> &Finding {
    let found = report.findings.iter().find(|f| f.rule == rule);
    found.unwrap_or_else(|| panic!("no {rule:?} in\n{}", listing(report)))
}

fn advises(report: &Report, id: AdviceId) -> bool {
    report.advice.iter().any(|advice| advice.id == id)
}

fn listing(report: &Report) -> String {
    let line = |f: &Finding| format!("{:?} {:?} {:?}: {:?}\n", f.rule, f.trust, f.subject, f.args);
    report.findings.iter().map(line).collect()
}

/// Whether a finding is one of those that explain the hang.
fn is_cause(report: &Report, rule: Rule) -> bool {
    report.causes.iter().any(|&i| report.findings[i].rule == rule)
}

fn record<'f>(found: &'f Finding, name: &str) -> &'f Args {
    found.args.record(name).unwrap_or_else(|| panic!("no {name} in {found:?}"))
}

/// A finding waits for the semaphore's memory to have a value.
fn assert_waits(found: &Finding, packet: &str, value: u64) {
    let condition = record(found, "condition");
    assert_eq!(condition.get("memory"), Some(&Arg::Address(SEMAPHORE)), "{found:?}");
    assert_eq!(condition.text("comparison"), Some("=="), "{found:?}");
    assert_eq!(condition.number("reference"), Some(value), "{found:?}");
    assert!(
        matches!(&found.subject, Subject::Packet { name: Some(name), .. } if name == packet),
        "{found:?}"
    );
}

/// A graphics ring that calls an IB in which the ME stands at the packet with this header.
fn stuck(gfx: Gfx, ib: &[u32], header: u32) -> AmdgpuBuilder {
    let mut ring = pkt3(0x10, &[0, 0]);
    ring.extend(call(IB, ib.len()));
    let rptr = ring.len() as u64;
    let mut builder = AmdgpuBuilder::new(gfx)
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
        let found = find(&report, Rule::PacketWaitsForOtherQueue);
        assert_waits(found, "WAIT_REG_MEM", 7);
        assert_eq!(found.evidence[0].iova, Some(IB + 4 * 3), "{found:?}");
        let Fact::Dwords { level: Some(1), first: Some(3), packet: Some(packet), .. } =
            &found.evidence[0].fact
        else {
            panic!("{found:?}");
        };
        assert_eq!(packet, "WAIT_REG_MEM");
        assert!(is_cause(&report, Rule::PacketWaitsForOtherQueue), "{}", listing(&report));
        assert!(advises(&report, AdviceId::RadvNoAsyncCompute));
        assert!(matches!(report.gpu, GpuIdentity::Amd { gfx: Some(_), .. }), "{:?}", report.gpu);
        assert_eq!((report.process.name.as_deref(), report.process.pid), (Some("vkcube"), Some(4711)));
        assert_eq!(report.findings[0].rule, Rule::JobTimedOut);
        assert_eq!(report.findings[0].args.text("packet"), Some("WAIT_REG_MEM"));
        assert!(advises(&report, AdviceId::DecodeStreams) && advises(&report, AdviceId::RadvHangReport));
    }
}

#[test]
fn who_ends_a_wait_is_told() {
    // RELEASE_MEM of gfx10 writes what is waited for, behind the wait: it deadlocks.
    let release = pkt3(0x49, &[0x14, 1 << 29, SEMAPHORE as u32, (SEMAPHORE >> 32) as u32, 7, 0, 0]);
    let wait = wait(SEMAPHORE, 7);
    let after = [draw(3), wait.clone(), release.clone()].concat();
    let report = explain(&stuck(Gfx::V10, &after, wait[0]));
    let found = find(&report, Rule::PacketWaitsForLaterWrite);
    assert_waits(found, "WAIT_REG_MEM", 7);
    assert_eq!(record(found, "writer").text("packet"), Some("RELEASE_MEM"));
    assert_eq!(record(found, "writer").number("dword"), Some(3 + 7));
    assert!(!advises(&report, AdviceId::RadvNoAsyncCompute));
    let before = [release, draw(3), wait.clone()].concat();
    let report = explain(&stuck(Gfx::V10, &before, wait[0]));
    let found = find(&report, Rule::PacketWaitsForEarlierWrite);
    assert_waits(found, "WAIT_REG_MEM", 7);
    assert_eq!(record(found, "writer").number("dword"), Some(0));
}

#[test]
fn a_draw_that_faults() {
    for gfx in GRAPHICS {
        let ib = [draw(3), dispatch(64), draw(6)].concat();
        // Not valid, a write of client 8, VMID 3; SPI and TA busy, the ME waits for shaders.
        // The fields are elsewhere on gfx12.
        let status = match gfx {
            Gfx::V12 => 3 << 22 | 1 << 20 | 8 << 11 | 3 << 5,
            _ => 3 << 20 | 1 << 18 | 8 << 9 | 3 << 4,
        };
        let report = explain(
            &stuck(gfx, &ib, dispatch(1)[0])
                .fault("gfxhub", 0x8001_3000_0000, status)
                .register("GRBM_STATUS2", 0)
                .register("CP_STALLED_STAT1", 0),
        );
        let hang = report.hang.as_ref().expect("a place");
        assert_eq!(hang.packet.as_deref(), Some("DISPATCH_DIRECT"), "{gfx:?}");
        assert_eq!(hang.draw, Some(1), "{gfx:?}");
        assert_eq!(report.findings[0].args.text("work"), Some("dispatch"), "{gfx:?}");
        assert_eq!(report.findings[0].args.number("number"), Some(1), "{gfx:?}");
        let rule = Rule::GpuvmPageNotMapped;
        let fault = find(&report, rule);
        assert_eq!(fault.subject, Subject::Memory(0x8001_3000_0000), "{gfx:?}");
        assert_eq!(fault.args.text("hub"), Some("gfxhub"), "{gfx:?}");
        assert_eq!(fault.args.number("permission_faults"), Some(3), "{gfx:?}: {fault:?}");
        assert_eq!(fault.args.list("pte"), ["NOT_VALID", "NOT_READABLE"].map(Arg::name), "{gfx:?}");
        assert_eq!(fault.args.get("write"), Some(&Arg::Flag(true)), "{gfx:?}: {fault:?}");
        assert!(fault.trust >= Trust::Likely, "{gfx:?}: {fault:?}");
        let register = |fact: &Fact| match fact {
            Fact::Register { name, value, .. } => Some((name.clone().into_owned(), *value)),
            _ => None,
        };
        let (name, value) = fault.evidence.iter().find_map(|e| register(&e.fact)).expect("the register");
        assert!(name.ends_with("VM_L2_PROTECTION_FAULT_STATUS"), "{name}");
        assert_eq!(value, u64::from(status), "{gfx:?}");
        assert!(is_cause(&report, rule), "{gfx:?}\n{}", listing(&report));
    }
}

/// What the kernel's documentation says of PERMISSION_FAULTS: bit 0 is that nothing is mapped, whatever the others are.
#[test]
fn a_fault_is_by_what_the_page_table_entry_lacks() {
    let fault = |gfx, status: u32| {
        let report = explain(&stuck(gfx, &draw(3), draw(3)[0]).fault("gfxhub", 0x8001_0234_5000, status));
        let found = report.findings.into_iter().find(|f| f.kind == FindingKind::Fault).expect("a fault");
        let pte: Vec<String> = found.args.list("pte").iter().map(|arg| format!("{arg:?}")).collect();
        (found.rule, found.args.text("client").map(str::to_owned), found.args.number("vmid"), pte.len())
    };
    let sqc = Some("SQC (data)".to_owned());
    // A read by SQC in VMID 5.
    let status = |permissions: u32| 5 << 20 | 10 << 9 | permissions << 4;
    assert_eq!(fault(Gfx::V10, status(3)), (Rule::GpuvmPageNotMapped, sqc.clone(), Some(5), 2));
    assert_eq!(fault(Gfx::V10, status(1)), (Rule::GpuvmPageNotMapped, sqc.clone(), Some(5), 1));
    assert_eq!(fault(Gfx::V9, status(4)), (Rule::GpuvmAccessNotPermitted, sqc.clone(), Some(5), 1));
    assert_eq!(fault(Gfx::V11, status(8)), (Rule::GpuvmAccessNotPermitted, sqc.clone(), Some(5), 1));
    assert_eq!(fault(Gfx::V10, status(0)), (Rule::GpuvmFault, sqc.clone(), Some(5), 0));
    // VMID 0 is the kernel's.
    assert_eq!(fault(Gfx::V10, 10 << 9 | 3 << 4), (Rule::GpuvmKernelFault, sqc, Some(0), 2));
    // gfx12 has one bit more in front, and clients that the kernel has no names for.
    let gfx12 = |permissions: u32| 5 << 22 | 10 << 11 | permissions << 5;
    assert_eq!(fault(Gfx::V12, gfx12(3)), (Rule::GpuvmPageNotMapped, None, Some(5), 2));
    assert_eq!(fault(Gfx::V12, gfx12(4)), (Rule::GpuvmAccessNotPermitted, None, Some(5), 1));
}

/// A kernel without versions of IPs: the PCI id names the chip. gfx8 has other bits: 1 is a page directory, 2 a page table entry, 3
/// and 4 permissions.
#[test]
fn a_fault_of_a_chip_that_only_its_pci_id_names() {
    let fault = |permissions: u32| {
        let builder = stuck(Gfx::V8, &draw(3), draw(3)[0]);
        let mut dump = builder.fault("gfxhub", 0x1_0234_5000, 5 << 25 | 1 << 24 | permissions).build();
        dump.soc = Some(Soc { device_id: Some(0x67df), pci_revision: Some(0xe7), ..Soc::default() });
        let report = explain_amdgpu(&dump, &Db::amd());
        let GpuIdentity::Amd { name, chip, target, gfx, gc, .. } = report.gpu else { panic!("an AMD GPU") };
        assert_eq!((chip.as_deref(), gc), (Some("Polaris 10"), None));
        assert_eq!(target.map(|target| target.to_string()).as_deref(), Some("gfx803"));
        assert_eq!(gfx.map(|gfx| gfx.name()), Some("gfx8"));
        assert_eq!(name.as_deref(), Some("AMD Radeon RX 580 Series"));
        let found = report.findings.into_iter().find(|f| f.kind == FindingKind::Fault).expect("a fault");
        assert_eq!(found.args.number("vmid"), Some(5));
        found.rule
    };
    assert_eq!(fault(2), Rule::GpuvmPageNotMapped);
    assert_eq!(fault(4), Rule::GpuvmPageNotMapped);
    assert_eq!(fault(0x10), Rule::GpuvmAccessNotPermitted);
}

/// Versions of the graphics core are not targets: a Steam Deck is GC 10.3.1 and gfx1033. What no table has gets no target.
#[test]
fn gpus_by_core_version_have_their_own_name() {
    let identity = |version: [u32; 3]| {
        let mut dump = stuck(Gfx::V10, &draw(3), draw(3)[0]).build();
        dump.hwips[0].version = version.to_vec();
        let GpuIdentity::Amd { chip, target, gfx, gc, .. } = explain_amdgpu(&dump, &Db::amd()).gpu else {
            panic!("an AMD GPU")
        };
        let target = target.map(|target| target.to_string()).unwrap_or_default();
        (chip.unwrap_or_default(), target, gfx.map(|gfx| gfx.name()), gc.map(|gc| gc.to_string()))
    };
    let known = |chip: &str, target: &str, gfx, gc: &str| {
        (chip.to_owned(), target.to_owned(), Some(gfx), Some(gc.to_owned()))
    };
    assert_eq!(identity([10, 3, 1]), known("Van Gogh", "gfx1033", "gfx10.3", "10.3.1"));
    assert_eq!(identity([9, 4, 0]), known("Vega 20", "gfx906", "gfx906", "9.4.0"));
    assert_eq!(identity([10, 1, 10]), known("Navi 10", "gfx1010", "gfx10", "10.1.10"));
    assert_eq!(identity([10, 3, 99]), known("", "", "gfx10.3", "10.3.99"));
    assert_eq!(identity([14, 0, 0]), (String::new(), String::new(), None, Some("14.0.0".to_owned())));
}

#[test]
fn stall_registers_are_read() {
    let stalled = |register: &str, value: u32| {
        explain(&stuck(Gfx::V10, &draw(3), draw(3)[0]).register(register, value)).findings
    };
    for (register, bit, rule) in [
        ("CP_STALLED_STAT1", 13, Rule::MeWaitsForAtomic),
        ("CP_STALLED_STAT2", 22, Rule::FenceWriteNotConfirmed),
        ("CP_STALLED_STAT1", 24, Rule::RegisterWritesBlocked),
        ("CP_CPC_STALLED_STAT1", 10, Rule::MecWaitsForRegister),
        ("CP_STALLED_STAT2", 15, Rule::MeWaitsForShaders),
    ] {
        let findings = stalled(register, 1 << bit);
        let found =
            findings.iter().find(|f| f.rule == rule).unwrap_or_else(|| panic!("{rule:?}: {findings:?}"));
        assert!(matches!(&found.evidence[0].fact, Fact::Register { name, .. } if name == register));
        assert!(findings.iter().all(|f| f.rule != Rule::CpStallFlags), "{rule:?} says it");
    }
    // What no rule reads is listed.
    let findings = stalled("CP_STALLED_STAT1", 0x400);
    let flags = findings.iter().find(|f| f.rule == Rule::CpStallFlags).expect("the flags");
    assert_eq!(flags.args.list("flags"), [Arg::name("ME_HAS_ACTIVE_CE_BUFFER_FLAG")]);
    assert!(stalled("CP_STALLED_STAT1", 0).iter().all(|f| f.rule != Rule::CpStallFlags));
}

/// Kernels list the FIFO of packet headers eight times; it is one piece of evidence.
#[test]
fn repeated_packet_headers_are_one_piece_of_evidence() {
    let ib = [draw(3), dispatch(64), draw(6)].concat();
    let report = explain(&stuck(Gfx::V10, &ib, dispatch(1)[0]));
    let headers: Vec<&Fact> = report.findings[0]
        .evidence
        .iter()
        .map(|e| &e.fact)
        .filter(|fact| matches!(fact, Fact::PacketHeader { .. }))
        .collect();
    let [Fact::PacketHeader { register, packet, times, .. }] = headers[..] else { panic!("{headers:?}") };
    assert_eq!((&**register, packet.as_deref(), *times), ("CP_ME_HEADER_DUMP", Some("DISPATCH_DIRECT"), 8));
}

#[test]
fn a_status_of_zero_is_no_fault() {
    let report = explain(&stuck(Gfx::V10, &draw(3), draw(3)[0]));
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::Fault), "{}", listing(&report));
}

#[test]
fn a_dispatch_on_a_compute_queue() {
    for gfx in [Gfx::V9, Gfx::V9_4_3, Gfx::V10, Gfx::V11, Gfx::V12] {
        let ib = [pkt3(0x10, &[1, 2]), dispatch(5), pkt3(0x10, &[3, 4])].concat();
        let ring = [call(IB, ib.len()), vec![NOP; 12]].concat();
        let mut builder = AmdgpuBuilder::new(gfx)
            .era(AmdgpuEra::V7_1)
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
        assert_eq!(hang.packet.as_deref(), Some("DISPATCH_DIRECT"), "{gfx:?}\n{}", listing(&report));
        assert_eq!((hang.iova, hang.draw), (Some(IB + 12), Some(0)), "{gfx:?}");
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
        assert_waits(find(&report, Rule::PacketWaitsForOtherQueue), "SDMA_POLL_REGMEM", 1);
    }
}

#[test]
fn what_the_engine_remembers_is_told_without_the_buffer() {
    // Linux before 7.1 dumps no IBs.
    let wait = wait(SEMAPHORE, 7);
    let report = explain(&stuck(Gfx::V10, &wait, wait[0]).era(AmdgpuEra::V6_12));
    let found = find(&report, Rule::EngineLastRead);
    assert_eq!(found.subject, Subject::Block("ME".into()));
    assert_eq!(found.args.list("packets"), [Arg::name("WAIT_REG_MEM")]);
    assert!(!found.args.flag("in_dump"));
    let level = report.hang.as_ref().and_then(|hang| hang.levels.last()).expect("the buffer is named");
    assert_eq!((level.level, level.base), (1, IB));
    find(&report, Rule::CalledBuffersMissing);
}

#[test]
fn garbage_in_what_is_executed() {
    let ib = [draw(3), vec![0x1234_5678 & 0x3fff_ffff | 1 << 30; 5], draw(6)].concat();
    let report = explain(&stuck(Gfx::V10, &ib, draw(3)[0]));
    let found = find(&report, Rule::DwordsNotPackets);
    assert_eq!(found.args.number("dwords"), Some(5));
    assert_eq!(found.args.number("address"), Some(IB + 12));
    assert_eq!(found.subject, Subject::Packet { name: None, iova: Some(IB + 12) });
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
        for era in [AmdgpuEra::V5_19, AmdgpuEra::V6_12, AmdgpuEra::V7_1] {
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
    find(&report, Rule::VramLost);
}

#[test]
fn complete_dumps_are_explained() {
    for gfx in Gfx::ALL {
        let report = explain(&AmdgpuBuilder::complete(gfx));
        let hang = report.hang.as_ref().expect("the ring that timed out is named");
        assert_eq!(hang.ring_name.as_deref(), Some(gfx.ring()));
        assert_eq!(find(&report, Rule::JobTimedOut).subject, Subject::Engine(gfx.ring().to_owned()));
    }
}

#[test]
fn waves_in_a_loop() {
    let shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", SEMAPHORE);
    let report = explain_folder(
        &RadvBuilder::new(Gfx::V10)
            .timeout("gfx_0.0.0", 100, 102)
            .shader(shader)
            .waves(&WaveSpec::some(Gfx::V10)),
    );
    let at_wait = |f: &&Finding| f.args.text("instruction") == Some("s_waitcnt lgkmcnt(0)");
    let mut loops = report.findings.iter().filter(|f| f.rule == Rule::WavesInLoop);
    let found = loops.find(at_wait).unwrap_or_else(|| panic!("{}", listing(&report)));
    assert!(matches!(&found.subject, Subject::Shader { name: Some(name), .. } if name == "Pixel Shader"));
    assert_eq!(record(found, "place").number("offset"), Some(8));
    assert_eq!(found.args.text("mnemonic"), Some("s_waitcnt"));
    assert!(found.args.number("loop_start") <= Some(8) && found.args.number("loop_end") >= Some(8));
    assert_eq!(find(&report, Rule::JobsOpen).args.number("open"), Some(2));
    assert!(advises(&report, AdviceId::AcoNoOptimizations));
}

#[test]
fn trace_points_tell_the_command() {
    let stream = [
        draw(3),
        pkt3(0x10, &[0xcafe_0001]),
        dispatch(4),
        pkt3(0x10, &[0xcafe_0002]),
        draw(6),
        pkt3(0x10, &[0xcafe_0003]),
    ]
    .concat();
    let report = explain_folder(&RadvBuilder::new(Gfx::V10).trace(1, &[("Main IB", &stream)]));
    let found = find(&report, Rule::StoppedBetweenTracePoints);
    assert_eq!(found.args.number("trace_point"), Some(1));
    assert_eq!(found.args.number("next_trace_point"), Some(2));
    let Fact::Field { name, value: Arg::Value(1) } = &found.evidence[0].fact else { panic!("{found:?}") };
    assert_eq!(name, "Trace ID");
}

#[test]
fn a_buffer_that_was_freed() {
    let report = explain_folder(
        &RadvBuilder::new(Gfx::V10)
            .timeout("gfx_0.0.0", 1, 2)
            .buffer(1000, 0x8001_0000_0000, 0x10000, Some(2000))
            .fault(0x8001_0000_1000, 0x0080_0831),
    );
    let fault = find(&report, Rule::GpuvmUseAfterFree);
    assert_eq!(fault.args.number("address"), Some(0x8001_0000_1000));
    assert!(fault.evidence.iter().any(|e| e.section == "bo_history.log"), "{fault:?}");
    assert!(advises(&report, AdviceId::VulkanValidation), "{:?}", report.advice);
}

#[test]
fn an_exception_in_a_shader() {
    let shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", SEMAPHORE);
    let report = explain_folder(&RadvBuilder::new(Gfx::V10).shader(shader.clone()).trap(&shader, 8));
    let found = find(&report, Rule::ShaderException);
    assert_eq!(record(found, "place").number("offset"), Some(8));
    assert_eq!(found.args.text("instruction"), Some("s_waitcnt lgkmcnt(0)"));
}

#[test]
fn complete_reports_are_explained() {
    for gfx in Gfx::ALL {
        let report = explain_folder(&RadvBuilder::complete(gfx));
        assert_eq!((report.process.name.as_deref(), report.process.pid), (Some("vkcube"), None));
        assert_eq!(find(&report, Rule::JobTimedOut).subject, Subject::Engine(gfx.ring().to_owned()));
    }
}

#[test]
fn umr_alone_tells_waves_and_rings() {
    let text = ring_stream_text(&[(0, 0x1800, &wait(SEMAPHORE, 7)), (3, IB, &draw(3))]);
    let report = explain_umr(&UmrText::read(text.as_bytes()).expect("text of umr"), &Db::amd());
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
            reports.extend(Devcoredump::read(&broken).ok().map(|d| explain_amdgpu(&d, &db)));
            let radv = RadvReport::read_text(&broken);
            reports.extend(radv.ok().map(|r| explain_radv(&r, &db)));
            reports.extend(UmrText::read(&broken).ok().map(|u| explain_umr(&u, &db)));
            for report in reports {
                assert!(!report.database.hash.is_empty(), "{name}");
                for finding in &report.findings {
                    assert!(finding.rule.row().vendors.contains(Vendors::AMD), "{name}: {finding:?}");
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
    let report = explain_umr(&text, &Db::amd());
    assert!(matches!(report.gpu, GpuIdentity::Amd { by_registers: true, .. }), "{:?}", report.gpu);
    assert_eq!(report.gpu.family().as_deref(), Some("gfx11"));
    let found = find(&report, Rule::WavesInUnlistedCode);
    assert_eq!(found.args.number("waves"), Some(1));
    assert_eq!(record(found, "place").number("pc"), Some(0x7616_13e5_674c));
    let Fact::Wave(wave) = &found.evidence[0].fact else { panic!("{found:?}") };
    let units = ["se", "sa", "wgp", "simd", "wave"].map(|unit| wave.number(unit));
    assert_eq!(units, [0, 0, 3, 1, 0].map(Some));
    assert_eq!(wave.number("exec"), Some(0xffff_ffff));
    assert_eq!(wave.list("bits"), [Arg::name("PRIV")]);
    let vmcnt = Args::new().with("counter", Arg::name("vmcnt")).with("value", Arg::Number(3));
    assert_eq!(wave.list("counters"), [Arg::Record(vmcnt)]);
}

/// Code that uses what it loads without a wait, in a shader that a report lists.
#[test]
fn a_wait_that_is_missing() {
    let code = [
        (vec![0xf400_0100, 0xfa00_0000], "s_load_dword s4, s[0:1], null"),
        (vec![0x8005_0404], "s_add_u32 s5, s4, s4"),
        (vec![0xbf81_0000], "s_endpgm"),
    ];
    let mut shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", SEMAPHORE);
    shader.code = code.map(|(words, text)| (words, text.to_owned())).to_vec();
    let report = explain_folder(&RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 1, 2).shader(shader));
    let found = find(&report, Rule::CodeMissesWait);
    assert_eq!(found.args.text("registers"), Some("s4"));
    assert_eq!((found.args.text("counter"), found.args.number("until")), (Some("lgkmcnt"), Some(0)));
    assert_eq!(record(found, "place").number("offset"), Some(8));
    assert_eq!(record(found, "first").number("offset"), Some(0));
    let Fact::Code { words, text, .. } = &found.evidence[0].fact else { panic!("{found:?}") };
    assert_eq!((words.as_slice(), text.as_deref()), (&[0x8005_0404][..], Some("s_add_u32 s5, s4, s4")));
}

/// What stalls the command processor is one finding for each reason, whichever of its fields are set.
#[test]
fn a_stall_is_reported_once() {
    let report = explain(&stuck(Gfx::V10, &draw(3), 0).register("CP_STALLED_STAT3", u32::MAX >> 1));
    let stalls = report.findings.iter().filter(|f| f.kind == FindingKind::CpWait);
    let mut rules: Vec<Rule> = stalls.map(|f| f.rule).collect();
    let count = rules.len();
    rules.sort();
    rules.dedup();
    assert!(count > 0 && rules.len() == count, "{}", listing(&report));
    assert!(!has(&report, Rule::GrbmIdle), "{}", listing(&report));
}

/// An endless loop is reported once, by the name that the pipeline has for its shader.
#[test]
fn one_shader_that_two_files_list() {
    let shader = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", 0x8001_2000_0000);
    let builder = RadvBuilder::new(Gfx::V10).shader(shader.clone()).trap(&shader, 8);
    let report = explain_folder(&builder);
    let loops: Vec<&Finding> = report.findings.iter().filter(|f| f.rule == Rule::CodeBreaksRule).collect();
    assert_eq!(loops.len(), 1, "{}", listing(&report));
    assert_eq!(record(loops[0], "place").text("shader"), Some("Pixel Shader"));
    let origin = record(loops[0], "origin");
    assert_eq!(origin.text("pipeline"), Some("123456789abcdef0"));
    assert!(origin.text("spirv").is_some_and(|file| file.ends_with(".spv")), "{origin:?}");
    let exception = find(&report, Rule::ShaderException);
    assert_eq!(record(exception, "place").text("shader"), Some("Pixel Shader"));
    // A file that is not in the folder is not named.
    let mut files = builder.members();
    files.retain(|(name, _)| !name.ends_with(".spv"));
    let members: Vec<ReportMember<'_>> =
        files.iter().map(|(name, bytes)| ReportMember { name, bytes, offset: 0 }).collect();
    let report = explain_radv(&RadvReport::read(&members).unwrap(), &Db::amd());
    assert!(record(find(&report, Rule::CodeBreaksRule), "origin").text("spirv").is_none());
}
