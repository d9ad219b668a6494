//! What a dump cannot tell is not told: contents that were not captured, sections that a kernel does not write, registers of
//! a device that does not answer. And streams that never end, and who could still end a wait.

mod common;

use common::*;
use std::collections::HashSet;
use unwedge_base::Generation;
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::intel::RingRegister;
use unwedge_capture::msm::Devcore;
use unwedge_capture::radv::{RadvReport, ReportMember};
use unwedge_capture::{i915::ErrorState, xe::XeDevcore};
use unwedge_hw::Db;
use unwedge_postmortem::{
    Arg, Args, Fact, Finding, FindingKind, Report, Rule, Trust, explain_amdgpu, explain_i915, explain_msm,
    explain_radv, explain_xe,
};
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP, RadvBuilder};
use unwedge_testkit::data;
use unwedge_testkit::devcore::{DevcoreBuilder, MsmEra, variety};
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, primitive, semaphore_wait, store_data,
    stream,
};
use unwedge_testkit::pm4::{
    CP_EVENT_WRITE, CP_INDIRECT_BUFFER_CHAIN, CP_MEM_WRITE, CP_NOP, CP_WAIT_FOR_IDLE, indirect_buffer, pkt3,
    pkt4, pkt7,
};
use unwedge_testkit::{i915, xe};

const BATCH: u64 = 0x1_0010_0000;
const ENGINE_RING: u64 = 0x10_0000;
const AMD_IB: u64 = 0x8001_0010_0000;
const AMD_FENCE: u64 = 0x8001_2000_0010;

fn explain_text(text: &[u8]) -> Option<Report> {
    Some(explain_msm(&Devcore::read(text).ok()?, &Db::builtin()))
}

// ---- Contents that were not captured ----

/// Dwords of the stream that a finding takes for evidence.
fn dwords(finding: &Finding) -> impl Iterator<Item = (u64, u32)> + '_ {
    finding.evidence.iter().filter_map(|e| match &e.fact {
        Fact::Dwords { words, .. } => Some((e.iova?, *words.first()?)),
        _ => None,
    })
}

/// Cuts a dump and asserts that what is said of its stream is what the whole dump has there.
fn assert_cut(name: &str, text: &[u8], at: usize) {
    let whole = Devcore::read(text).unwrap().memory();
    let Some(report) = explain_text(&text[..at.min(text.len())]) else { return };
    for finding in report.findings.iter().filter(|f| f.kind == FindingKind::CorruptStream) {
        for (iova, word) in dwords(finding) {
            assert_eq!(whole.read(iova), Some(word), "{name} cut at {at}: {finding:#?}");
        }
    }
    if let Some((iova, header)) = report.hang.as_ref().and_then(|hang| Some((hang.iova?, hang.header?))) {
        assert_eq!(whole.read(iova), Some(header), "{name} cut at {at}");
    }
}

#[test]
fn no_verdict_rests_on_a_dword_that_was_not_captured() {
    for (name, text) in variety() {
        for at in (0..text.len()).step_by(100) {
            assert_cut(&name, &text, at);
        }
    }
    let text = waiting().1.bo(FENCE, 4096, "fences", &[3]).text();
    (0..text.len()).for_each(|at| assert_cut("a wait", &text, at));
}

#[test]
fn real_dumps_cut_short() {
    for file in data::files("adreno/devcoredump", ".devcore.gz") {
        let text = data::read(&file);
        let name = file.display().to_string();
        for at in [1_500, 2_000, 2_500, 10_000].into_iter().chain((100..20_000).step_by(100)) {
            assert_cut(&name, &text, at);
        }
    }
}

/// A dump cut inside of its ring: 100 dwords of the ring are captured, the CP is at dword 300.
#[test]
fn a_dump_that_ends_inside_the_ring() {
    let ring: Vec<u32> = (0..100).flat_map(|i| pkt7(CP_NOP, &[i | 0x1234_0000, i + 1, 7, 8])).collect();
    let text = DevcoreBuilder::a6xx().ring(RING, &ring).with_ring(|r| r.rptr = Some(300)).text();
    let data = text.windows(9).position(|w| w == b"ascii85 |").unwrap() + 10;
    let start = data + text[data..].iter().position(|&c| !c.is_ascii_whitespace()).unwrap();
    let dump = &text[..start + 5 * 100];
    let report = explain_text(dump).unwrap();
    let cut = by_rule(&report, Rule::RingContentsCut);
    assert_eq!((cut.args.number("captured"), cut.args.number("stop")), (Some(100), Some(299)), "{cut:#?}");
    assert!(cut.args.flag("cut"));
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::CorruptStream), "{report:#?}");
    assert_eq!(report.hang.as_ref().and_then(|hang| hang.header), None);
    // The rest of a group is no dword.
    let report = explain_text(&text[..start + 5 * 100 + 3]).unwrap();
    assert_eq!(by_rule(&report, Rule::RingContentsCut).args.number("captured"), Some(100));
    // The ring that is complete is padded.
    assert!(!has(&explain_text(&text).unwrap(), Rule::RingContentsCut));
}

#[test]
fn contents_that_are_damaged_are_unknown_from_there_on() {
    let text = String::from_utf8(waiting().1.bo(FENCE, 4096, "fences", &[3]).text()).unwrap();
    let whole = explain_text(text.as_bytes()).unwrap();
    assert!(!has(&whole, Rule::BufferContentsCut), "{whole:#?}");
    let data = unwedge_capture::ascii85::encode(&wait_for_fence());
    let data = String::from_utf8(data).unwrap();
    let damaged = text.replacen(&data[..10], "~~~~~~~~~~", 1);
    assert_ne!(damaged, text);
    let report = explain_text(damaged.as_bytes()).unwrap();
    let cut = by_rule(&report, Rule::BufferContentsCut);
    assert!(!cut.args.flag("cut") && cut.args.number("base") == Some(IB1), "{cut:#?}");
    assert!(!has(&report, Rule::NotAPacket), "{report:#?}");
}

// ---- Sections that are not there ----

/// Why a section is not there, and the kernel that is the first to write it.
fn absence<'r>(report: &'r Report, section: &str) -> Option<(&'r str, Option<&'r str>)> {
    let list = report.findings.iter().find(|f| f.rule == Rule::SectionsNotCaptured)?.args.list("sections");
    let records = list.iter().filter_map(|arg| match arg {
        Arg::Record(args) => Some(args),
        _ => None,
    });
    let found: &Args = records.into_iter().find(|args| args.text("section") == Some(section))?;
    Some((found.text("absence")?, found.text("since")))
}

#[test]
fn an_absent_fault_means_what_the_kernel_could_record() {
    let dump = |era| waiting().1.era(era).text();
    for era in [MsmEra::V4_19, MsmEra::V5_8] {
        let report = explain_text(&dump(era)).unwrap();
        assert_eq!(absence(&report, "fault-info"), Some(("kernel-too-old", Some("5.14"))), "{era:?}");
    }
    for era in [MsmEra::V5_19, MsmEra::V6_12] {
        let report = explain_text(&dump(era)).unwrap();
        assert_eq!(absence(&report, "fault-info"), Some(("nothing-recorded", None)), "{era:?}");
    }
    // Cut before `rbbm-status`, which comes after the place of fault-info.
    let text = dump(MsmEra::V6_12);
    let status = text.windows(11).position(|w| w == b"rbbm-status").unwrap();
    let report = explain_text(&text[..status]).unwrap();
    assert_eq!(absence(&report, "fault-info"), Some(("dump-cut", None)), "{report:#?}");
    // Cut after it: the kernel had none.
    let report = explain_text(&text[..text.len() - 9]).unwrap();
    assert_eq!(absence(&report, "fault-info"), Some(("nothing-recorded", None)));
    let bos = text.windows(5).position(|w| w == b"\nbos:").unwrap();
    let report = explain_text(&text[..bos - 3]).unwrap();
    assert_eq!(absence(&report, "bos"), Some(("dump-cut", None)), "{report:#?}");
}

#[test]
fn a_kernel_that_is_not_named_leaves_it_open() {
    let text = String::from_utf8(waiting().1.text()).unwrap();
    let text: String = text.split_inclusive('\n').filter(|line| !line.starts_with("kernel:")).collect();
    let report = explain_text(text.as_bytes()).unwrap();
    assert_eq!(absence(&report, "fault-info"), Some(("kernel-unknown", Some("5.14"))));
}

/// Why what a rule is about is not there, and the kernel that is the first to record it.
fn gap(report: &Report, rule: Rule) -> (Option<&str>, Option<&str>) {
    let args = &by_rule(report, rule).args;
    (args.text("absence"), args.text("since"))
}

fn amd_report(text: &[u8]) -> Report {
    explain_amdgpu(&Devcoredump::read(text).unwrap(), &Db::amd())
}

#[test]
fn what_kernels_of_amdgpu_cannot_record() {
    let text = |era| AmdgpuBuilder::complete(Gfx::V10).era(era).text();
    let old = amd_report(&text(AmdgpuEra::V5_19));
    for (rule, since) in
        [(Rule::RingNotNamed, "6.9"), (Rule::FaultsNotReported, "6.10"), (Rule::GpuRegistersMissing, "6.11")]
    {
        assert_eq!(gap(&old, rule), (Some("kernel-too-old"), Some(since)), "{rule:?}");
    }
    assert_eq!(by_rule(&old, Rule::FaultsNotReported).args.text("kernel"), Some("5.19.0"));
    let newer = amd_report(&text(AmdgpuEra::V6_12));
    assert_eq!(gap(&newer, Rule::CalledBuffersMissing), (Some("kernel-too-old"), Some("7.1")));
    // Cut before the page fault, whose place is before the registers.
    let text = text(AmdgpuEra::V7_1);
    let at = |what: &[u8]| text.windows(what.len()).position(|w| w == what).unwrap();
    let cut = amd_report(&text[..at(b"Page fault observed") - 10]);
    assert_eq!(gap(&cut, Rule::FaultsNotReported), (Some("dump-cut"), None), "{cut:#?}");
    assert_eq!(gap(&cut, Rule::GpuRegistersMissing), (Some("dump-cut"), None));
    let cut = amd_report(&text[..at(b"\nring name: ") + 1]);
    assert_eq!(gap(&cut, Rule::RingContentsMissing), (Some("dump-cut"), None), "{cut:#?}");
    assert!(!has(&cut, Rule::FaultsNotReported));
    // A reset that no job made has no ring that timed out.
    let none = amd_report(&AmdgpuBuilder::new(Gfx::V10).fault("gfxhub", 0, 0).text());
    assert_eq!(gap(&none, Rule::RingNotNamed), (Some("nothing-recorded"), None), "{none:#?}");
    let unnamed = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").register("GRBM_STATUS", 8).text();
    let unnamed = String::from_utf8(unnamed).unwrap();
    let unnamed: String = unnamed.split_inclusive('\n').filter(|line| !line.starts_with("kernel:")).collect();
    let report = amd_report(unnamed.as_bytes());
    assert_eq!(gap(&report, Rule::FaultsNotReported), (Some("kernel-unknown"), Some("6.10")), "{report:#?}");
}

#[test]
fn what_drivers_of_intel_cannot_record() {
    let tgl = TestDevice::named("tgl");
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch(&batch, 0);
    // xe has no fault registers; before 6.10 it has no contexts, and before 6.9 no memory.
    let xe = |era| {
        let text = xe::DevcoreBuilder::new(tgl).era(era).engine(engine.clone()).text();
        explain_xe(&XeDevcore::read(&text).unwrap())
    };
    let old = xe(xe::XeEra::V6_8);
    assert_eq!(gap(&old, Rule::ContextMissing), (Some("kernel-too-old"), Some("6.10")), "{old:#?}");
    assert_eq!(gap(&old, Rule::RingAndBatchMissing), (Some("kernel-too-old"), Some("6.9")));
    assert_eq!(gap(&old, Rule::PageFaultRegistersMissing), (Some("never-written"), None));
    let new = xe(xe::XeEra::V6_14);
    assert_eq!(gap(&new, Rule::ContextMissing), (Some("nothing-recorded"), None), "{new:#?}");
    // i915 records all of it.
    let text = i915::ErrorStateBuilder::new(tgl).engine(engine.set(RingRegister::Fault, 0)).text();
    let report = |text: &[u8]| explain_i915(&ErrorState::read(text).unwrap());
    let whole = report(&text);
    assert!(has(&whole, Rule::NoPageFaultRecorded) && !has(&whole, Rule::PageFaultRegistersMissing));
    assert_eq!(gap(&whole, Rule::ContextMissing), (Some("nothing-recorded"), None), "{whole:#?}");
    let at = |what: &[u8]| text.windows(what.len()).position(|w| w == what).unwrap();
    let cut = report(&text[..at(b"  FAULT_REG") - 4]);
    assert_eq!(gap(&cut, Rule::PageFaultRegistersMissing), (Some("dump-cut"), None), "{cut:#?}");
    assert_eq!(gap(&cut, Rule::RingAndBatchMissing), (Some("dump-cut"), None));
    assert_eq!(gap(&cut, Rule::ContextMissing), (Some("dump-cut"), None));
}

// ---- Devices that do not answer ----

/// Rules drawn from the values of registers.
fn from_registers(report: &Report) -> Vec<Rule> {
    let kinds = [FindingKind::Busy, FindingKind::ErrorInterrupt, FindingKind::CpWait, FindingKind::Fault];
    report.findings.iter().filter(|f| kinds.contains(&f.kind)).map(|f| f.rule).collect()
}

#[test]
fn an_adreno_whose_registers_are_all_ones() {
    let (generation, mut builder) = waiting();
    for name in ["RBBM_STATUS", "CP_RB_BASE", "CP_RB_RPTR", "CP_RB_WPTR", "CP_IB1_BASE"] {
        builder = builder.replace(offset(generation, name), u32::MAX);
    }
    let report = explain(builder.register(offset(generation, "CP_INTERRUPT_STATUS"), u32::MAX));
    let found = by_rule(&report, Rule::RegistersAllOnes);
    assert!(saw_register(found, "RBBM_STATUS", 0xffff_ffff), "{found:#?}");
    assert_eq!(from_registers(&report), [], "{report:#?}");
    assert!(!has(&report, Rule::RegistersNotCaptured));
    // One register that is all ones says nothing of the device.
    let one = waiting();
    let report = explain(one.1.replace(offset(one.0, "CP_RB_WPTR"), u32::MAX));
    assert!(!has(&report, Rule::RegistersAllOnes));
}

#[test]
fn an_adreno_whose_registers_are_all_zero() {
    let (generation, mut builder) = waiting();
    for name in [
        "RBBM_STATUS",
        "CP_RB_BASE",
        "CP_RB_RPTR",
        "CP_RB_WPTR",
        "CP_IB1_BASE",
        "CP_IB1_REM_SIZE",
        "CP_IB1_DWORDS",
    ] {
        builder = builder.replace(offset(generation, name), 0);
    }
    for name in ["CP_ROQ_AVAIL_RB", "CP_ROQ_AVAIL_IB1"] {
        builder = builder.replace(offset(generation, name), 0);
    }
    let high = |name| offset(generation, name) + 1;
    let report = explain(builder.replace(high("CP_RB_BASE"), 0).replace(high("CP_IB1_BASE"), 0));
    assert!(by_rule(&report, Rule::RegistersAllZero).args.number("registers") > Some(7), "{report:#?}");
    assert_eq!(from_registers(&report), []);
}

fn engine(value: u64, instdone: u64) -> EngineState {
    let mut state = EngineState::new("rcs0").hung(1);
    let registers = [
        RingRegister::Start,
        RingRegister::Head,
        RingRegister::Tail,
        RingRegister::Ctl,
        RingRegister::Acthd,
        RingRegister::Ipehr,
        RingRegister::Fault,
        RingRegister::Eir,
        RingRegister::Ipeir,
    ];
    for register in registers {
        state = state.set(register, value);
    }
    state.set(RingRegister::Instdone, instdone).batch(BATCH, &[MI_BATCH_BUFFER_END])
}

fn i915_report(device: TestDevice, engine: EngineState) -> Report {
    explain_i915(&ErrorState::read(&i915::ErrorStateBuilder::new(device).engine(engine).text()).unwrap())
}

fn xe_report(device: TestDevice, engine: EngineState) -> Report {
    explain_xe(&XeDevcore::read(&xe::DevcoreBuilder::new(device).engine(engine).text()).unwrap())
}

#[test]
fn an_intel_engine_that_does_not_answer() {
    for (name, reports) in [("tgl", i915_report as fn(TestDevice, EngineState) -> Report), ("lnl", xe_report)]
    {
        let device = TestDevice::named(name);
        let report = reports(device, engine(0xffff_ffff, 0xffff_ffff));
        assert_eq!(report.findings[0].rule, Rule::EngineNotResponding, "{name}: {report:#?}");
        assert!(saw_register(&report.findings[0], "ACTHD", 0xffff_ffff));
        assert_eq!(from_registers(&report), [], "{name}: {report:#?}");
        assert!(report.hang.is_none() && !has(&report, Rule::HeaderNotCommand), "{name}");
        let report = reports(device, engine(0, 0));
        assert_eq!(report.findings[0].rule, Rule::EngineRegistersZero, "{name}: {report:#?}");
        assert_eq!(from_registers(&report), [], "{name}: {report:#?}");
        assert!(!report.causes.contains(&0), "registers that were not read are no cause");
    }
}

#[test]
fn an_amd_gpu_that_does_not_answer() {
    let report = |status2: u32| {
        let builder = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0");
        let builder = builder.register("GRBM_STATUS", u32::MAX).register("GRBM_STATUS2", status2);
        let text = builder.register("CP_STALLED_STAT3", u32::MAX).text();
        explain_amdgpu(&Devcoredump::read(&text).unwrap(), &Db::amd())
    };
    let silent = report(u32::MAX);
    assert!(saw_register(by_rule(&silent, Rule::GpuNotResponding), "GRBM_STATUS", 0xffff_ffff));
    assert_eq!(from_registers(&silent), [], "{silent:#?}");
    assert!(!has(&report(8), Rule::GpuNotResponding));
}

/// What registers of a GPU that does not answer say of packets and buffers is nothing.
#[test]
fn an_amd_gpu_whose_registers_are_all_the_same() {
    let names = [
        "GRBM_STATUS",
        "GRBM_STATUS2",
        "CP_STALLED_STAT3",
        "CP_IB1_BASE_LO",
        "CP_IB1_BASE_HI",
        "CP_IB1_BUFSZ",
        "CP_ME_HEADER_DUMP",
        "CP_PFP_HEADER_DUMP",
    ];
    let report = |value: u32| {
        let builder = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").fault("gfxhub", 0, 0);
        let builder = names.into_iter().fold(builder, |builder, name| builder.register(name, value));
        amd_report(&builder.ring("gfx_0.0.0", 3, 5, &[0xc001_2d00, 3, 2, NOP, NOP, NOP, NOP, NOP]).text())
    };
    for (value, rule) in [(u32::MAX, Rule::GpuNotResponding), (0, Rule::GpuRegistersAllZero)] {
        let found = report(value);
        by_rule(&found, rule);
        assert_eq!(from_registers(&found), [], "{value:#x}: {found:#?}");
        let remembered = [Rule::EngineLastRead, Rule::EngineRemembers, Rule::GpuRegistersMissing];
        assert!(remembered.iter().all(|&rule| !has(&found, rule)), "{value:#x}: {found:#?}");
        let levels = &found.hang.as_ref().unwrap().levels;
        assert!(levels.iter().all(|level| level.level == 0), "{value:#x}: {levels:?}");
    }
    // The status of a fault that could not be read says nothing of the client.
    let fault = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").fault("gfxhub", 0x8000_0000_1000, u32::MAX);
    let report = amd_report(&fault.text());
    let fault = by_rule(&report, Rule::GpuvmFault);
    assert!(fault.args.get("client").is_none() && fault.args.get("vmid").is_none(), "{fault:#?}");
}

// ---- Streams that lead back to themselves ----

#[test]
fn a_chain_of_indirect_buffers_that_never_ends() {
    let chain = |to: u64| pkt7(CP_INDIRECT_BUFFER_CHAIN, &[to as u32, (to >> 32) as u32, 6]);
    let nop = pkt7(CP_NOP, &[1]);
    let chained = [nop.clone(), chain(IB1)].concat();
    let report =
        explain(stopped(At { ib1: (&chained, 4), ib2: None, headers: [nop[0], chained[2], nop[0]] }).1);
    let found = by_rule(&report, Rule::StreamLoops);
    assert_eq!((found.args.number("target"), found.args.number("from")), (Some(IB1), Some(IB1 + 8)));
    assert!(found.args.flag("chained") && found.trust == Trust::Likely, "{found:#?}");
    assert_eq!(report.findings[report.causes[0]].rule, Rule::StreamLoops);
    // A chain that goes on elsewhere is none.
    let there = [nop.clone(), chain(IB2)].concat();
    let dump = stopped(At { ib1: (&there, 4), ib2: None, headers: [nop[0], there[2], nop[0]] });
    let report = explain(dump.1.bo(IB2, 4096, "", &[nop.clone(), nop.clone(), nop].concat()));
    assert!(!has(&report, Rule::StreamLoops), "{report:#?}");
}

#[test]
fn a_buffer_that_calls_itself() {
    let nop = pkt7(CP_NOP, &[1]);
    let ib1 = [nop.clone(), indirect_buffer(IB1, 6)].concat();
    let report = explain(stopped(At { ib1: (&ib1, 4), ib2: None, headers: [nop[0], ib1[2], nop[0]] }).1);
    let found = by_rule(&report, Rule::StreamLoops);
    assert!(!found.args.flag("chained") && found.args.number("target") == Some(IB1), "{found:#?}");
}

/// An engine that stopped in a batch its ring started.
fn in_batch(batch: &[u32], dword: usize) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(BATCH), &[0, 0, 0]]);
    EngineState::new("rcs0")
        .ring(ENGINE_RING, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, BATCH + 4 * dword as u64)
        .set(RingRegister::Ipehr, batch[dword].into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(BATCH, batch)
        .hung(1)
}

#[test]
fn an_intel_batch_that_jumps_back() {
    let device = TestDevice::named("tgl");
    let draw = primitive(3);
    for target in [BATCH, BATCH + 4] {
        let batch = stream(&[&[0x0280_0000], &draw, &batch_buffer_start(target)]);
        for dword in [1, 8] {
            let report = i915_report(device, in_batch(&batch, dword));
            let found = by_rule(&report, Rule::BatchLoops);
            assert_eq!(found.args.number("target"), Some(target), "{found:#?}");
            assert_eq!(found.args.number("from"), Some(BATCH + 32));
            assert_eq!((found.trust, found.args.flag("conditional")), (Trust::Likely, false));
            assert_eq!(report.findings[report.causes[0]].rule, Rule::BatchLoops, "{report:#?}");
        }
    }
    // One that a conditional end can leave is only possible.
    let end = [0x1b << 24 | 2 | 1 << 21, 5, BATCH as u32 + 0x800, 1];
    let batch = stream(&[&draw, &end, &batch_buffer_start(BATCH)]);
    let report = i915_report(device, in_batch(&batch, 0));
    let found = by_rule(&report, Rule::BatchLoops);
    assert!(found.args.flag("conditional") && found.trust == Trust::Possible, "{found:#?}");
    // A chain that ends is no loop.
    let batch = stream(&[&draw, &batch_buffer_start(BATCH + 0x28), &[MI_BATCH_BUFFER_END; 2]]);
    assert!(!has(&i915_report(device, in_batch(&batch, 0)), Rule::BatchLoops));
}

/// A graphics ring that calls an IB of `ib` dwords, with the ME in it.
fn amd_ib(ib: &[u32], other: Option<&[u32]>) -> AmdgpuBuilder {
    let call = pkt3(0x3f, &[AMD_IB as u32, (AMD_IB >> 32) as u32, ib.len() as u32]);
    let rptr = call.len() as u64;
    let builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V7_1)
        .timeout("gfx_0.0.0")
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", AMD_IB as u32)
        .register("CP_IB1_BASE_HI", (AMD_IB >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", rptr, rptr + 2, &[call, vec![NOP; 4]].concat());
    let builder = (0..8).fold(builder, |builder, _| builder.register("CP_ME_HEADER_DUMP", ib[0]));
    let builder = other.map_or(builder.clone(), |ring| {
        let end = ring.len() as u64;
        builder.ring("comp_1.0.0", 0, end, &[ring, &[NOP; 8]].concat())
    });
    builder.ib(AMD_IB, ib)
}

#[test]
fn an_amd_ib_that_chains_back() {
    let draw = pkt3(0x2d, &[3, 2]);
    let chain =
        |to: u64, dwords: u32| pkt3(0x3f, &[to as u32, (to >> 32) as u32, dwords | 1 << 20 | 1 << 23]);
    let looping = [draw.clone(), chain(AMD_IB, 7)].concat();
    let report = amd_report(&amd_ib(&looping, None).text());
    let found = by_rule(&report, Rule::IbLoops);
    assert_eq!((found.args.number("from"), found.args.number("target")), (Some(AMD_IB + 12), Some(AMD_IB)));
    assert_eq!((found.trust, found.args.flag("conditional")), (Trust::Likely, false), "{found:#?}");
    assert_eq!(report.findings[report.causes[0]].rule, Rule::IbLoops, "{report:#?}");
    // Through a second buffer, and back to the first.
    let second = AMD_IB + 0x1000;
    let builder = amd_ib(&[draw.clone(), chain(second, 7)].concat(), None);
    let report = amd_report(&builder.clone().ib(second, &looping).text());
    let found = by_rule(&report, Rule::IbLoops);
    assert_eq!((found.args.number("from"), found.args.number("buffers")), (Some(second + 12), Some(2)));
    // One that ends is none.
    let report = amd_report(&builder.ib(second, &[draw.clone(), draw].concat()).text());
    assert!(!has(&report, Rule::IbLoops), "{report:#?}");
}

// ---- Who could still end a wait ----

#[test]
fn who_could_still_write_what_an_amd_packet_waits_for() {
    let fence = [AMD_FENCE as u32, (AMD_FENCE >> 32) as u32];
    let wait = pkt3(0x3c, &[0x13, fence[0], fence[1], 7, u32::MAX, 4]);
    // Two dwords, of which the second is the awaited one.
    let write = pkt3(0x37, &[5 << 8, fence[0] - 4, fence[1], 0, 7]);
    let found = |other: Option<&[u32]>| {
        by_rule(&amd_report(&amd_ib(&wait, other).text()), Rule::PacketWaitsForOtherQueue).clone()
    };
    let nobody = found(None);
    assert!(nobody.args.record("writer").is_none() && nobody.trust <= Trust::Likely, "{nobody:#?}");
    let other = found(Some(&write));
    let writer = other.args.record("writer").unwrap();
    assert_eq!((writer.text("packet"), writer.text("ring")), (Some("WRITE_DATA"), Some("comp_1.0.0")));
    let after = amd_report(&amd_ib(&[wait, write].concat(), None).text());
    assert!(has(&after, Rule::PacketWaitsForLaterWrite), "{after:#?}");
}

fn write_fence() -> Vec<u32> {
    pkt7(CP_MEM_WRITE, &[FENCE as u32, (FENCE >> 32) as u32, 5])
}

/// IB1: a wait for the fence among other packets; the finding.
fn wait_among(before: &[u32], after: &[u32], other: Option<&[u32]>, rule: Rule) -> Finding {
    let nop = pkt7(CP_NOP, &[0]);
    let ib1 = [nop.clone(), before.to_vec(), wait_for_fence(), after.to_vec(), nop.clone()].concat();
    let last = if before.is_empty() { nop[0] } else { before[0] };
    let headers = [wait_for_fence()[0], last, if before.is_empty() { 0 } else { nop[0] }];
    let dump = stopped(At { ib1: (&ib1, after.len() + nop.len()), ib2: None, headers });
    let mut builder = dump.named("RBBM_STATUS", ONLY_CP).1.bo(FENCE, 4096, "fences", &[3]);
    if let Some(other) = other {
        builder = builder.ring(RING + 0x10_0000, other);
    }
    by_rule(&explain(builder), rule).clone()
}

#[test]
fn who_could_still_write_what_the_cp_waits_for() {
    let order = |f: &Finding| f.args.record("writer").and_then(|w| w.text("order")).map(str::to_owned);
    let nobody = wait_among(&[], &[], None, Rule::CpWaitsForValue);
    assert!(nobody.args.flag("no_writer") && order(&nobody).is_none(), "{nobody:#?}");
    assert_eq!(nobody.trust, Trust::Likely, "the CPU or another queue may write it");
    let later = wait_among(&[], &write_fence(), None, Rule::CpWaitsForItself);
    assert_eq!((order(&later).as_deref(), later.trust), (Some("later"), Trust::Certain), "{later:#?}");
    assert!(!later.args.flag("no_writer"));
    let earlier = wait_among(&write_fence(), &[], None, Rule::CpWaitsForValue);
    assert_eq!((order(&earlier).as_deref(), earlier.trust), (Some("earlier"), Trust::Likely), "{earlier:#?}");
    let other = wait_among(&[], &[], Some(&write_fence()), Rule::CpWaitsForValue);
    assert_eq!((order(&other).as_deref(), other.trust), (Some("other-ring"), Trust::Likely), "{other:#?}");
}

#[test]
fn who_could_still_signal_a_semaphore() {
    let device = TestDevice::named("tgl");
    let flag = BATCH + 0x10_0000;
    let wait = semaphore_wait(flag, 5, device);
    let report = |before: &[u32], after: &[u32], rule: Rule| {
        let batch = stream(&[before, &wait, after, &[MI_BATCH_BUFFER_END]]);
        let engine = in_batch(&batch, before.len()).user(flag, &[3]);
        by_rule(&i915_report(device, engine), rule).clone()
    };
    let order = |f: &Finding| f.args.record("writer").and_then(|w| w.text("order")).map(str::to_owned);
    let nobody = report(&[], &[], Rule::SemaphoreNotSignaled);
    assert!(nobody.args.flag("no_writer") && nobody.trust == Trust::Likely, "{nobody:#?}");
    let store = store_data(flag, 5);
    assert_eq!(order(&report(&[], &store, Rule::SemaphoreWaitsForItself)).as_deref(), Some("later"));
    assert_eq!(order(&report(&store, &[], Rule::SemaphoreNotSignaled)).as_deref(), Some("earlier"));
}

// ---- Which of the pending submits hangs ----

/// A ring with one submit after another, each ended by the event that writes its fence.
#[test]
fn the_submit_that_the_cp_is_in() {
    let fence = |seqno: u32| pkt7(CP_EVENT_WRITE, &[4 | 1 << 30, FENCE as u32, (FENCE >> 32) as u32, seqno]);
    let ib = |nth: u32| IB1 + 0x1000 * u64::from(nth);
    let ib1 = [pkt7(CP_NOP, &[1]), wait_for_fence()].concat();
    let submit = |nth: u32| [indirect_buffer(ib(nth), ib1.len() as u32), fence(5419 + nth)].concat();
    let ring: Vec<u32> = (1..=8).flat_map(submit).collect();
    for nth in [1, 6, 8] {
        let read = (nth - 1) * submit(nth).len() as u32 + 4;
        let builder = DevcoreBuilder::a6xx().ring(RING, &ring).with_ring(|r| {
            (r.last_fence, r.retired_fence) = (Some(5427), Some(5419));
            r.rptr = Some(read);
        });
        let builder = (1..=8).fold(builder, |builder, nth| builder.bo(ib(nth), 4096, "", &ib1));
        let mut sqe = vec![0u32; 51];
        (sqe[1], sqe[36], sqe[37]) = (wait_for_fence()[0], wait_for_fence()[0], ib1[0]);
        let builder = (Generation::A6xx, builder.indexed("CP_SQE_STAT", &sqe))
            .named64("CP_RB_BASE", RING)
            .named("CP_RB_RPTR", read)
            .named("CP_RB_WPTR", ring.len() as u32)
            .named64("CP_IB1_BASE", ib(nth))
            .named("CP_IB1_REM_SIZE", 0)
            .named("CP_IB1_DWORDS", ib1.len() as u32)
            .named("CP_ROQ_AVAIL_IB1", 1 << 16)
            .named("RBBM_STATUS", ONLY_CP);
        let report = explain(builder.1);
        let open = by_rule(&report, Rule::SubmitsOpen);
        assert_eq!(open.args.number("open"), Some(8), "{open:#?}");
        assert_eq!(open.args.number("hung_fence"), Some(u64::from(5419 + nth)), "{open:#?}");
        assert_eq!(open.args.number("nth"), Some(nth.into()));
    }
    // A ring that writes no fence that is pending leaves it open.
    assert!(by_rule(&explain(waiting().1), Rule::SubmitsOpen).args.get("hung_fence").is_none());
}

#[test]
fn the_job_that_a_ring_of_amd_is_in() {
    let release = |value: u32| pkt3(0x49, &[0x14, 1 << 29, AMD_FENCE as u32, 0, value, 0, 0]);
    let ring: Vec<u32> =
        [100, 101, 102].into_iter().flat_map(|n| [pkt3(0x2d, &[n, 2]), release(n)].concat()).collect();
    let builder = RadvBuilder::new(Gfx::V10).timeout("gfx_0.0.0", 100, 102).ring(&ring);
    let files = builder.members();
    let members: Vec<ReportMember<'_>> =
        files.iter().map(|(name, bytes)| ReportMember { name, bytes, offset: 0 }).collect();
    let report = explain_radv(&RadvReport::read(&members).unwrap(), &Db::amd());
    let jobs = by_rule(&report, Rule::JobsOpen);
    assert_eq!(
        (jobs.args.number("open"), jobs.args.number("oldest_fence")),
        (Some(2), Some(101)),
        "{jobs:#?}"
    );
}

#[test]
fn the_request_that_an_engine_of_intel_is_in() {
    let device = TestDevice::named("tgl");
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch(&batch, 0).port(4, 0, 0x40).port(5, 0x40, 0x80);
    let report = i915_report(device, engine.clone());
    let pending = by_rule(&report, Rule::RequestsPending);
    let number = |name| pending.args.number(name);
    assert_eq!((number("context"), number("seqno"), number("open")), (Some(0x1a), Some(4), Some(2)));
    let report = xe_report(device, engine);
    let queue = by_rule(&report, Rule::QueueTimedOut);
    let number = |name| queue.args.number(name);
    assert_eq!((number("hung_job"), number("nth"), number("open")), (Some(0xffff_ff81), Some(1), Some(1)));
}

// ---- What points at a faulting address ----

#[test]
fn what_of_an_adreno_stream_is_at_a_faulting_address() {
    let (start, size) = (0x1_0010_0000u64, 0x1000);
    let target = pkt4(offset(Generation::A6xx, "RB_2D_DST_INFO"), &[0x30, start as u32 + 0x800, 1]);
    let blit = [target, pkt7(0x2c, &[3])].concat();
    let wait = pkt7(CP_WAIT_FOR_IDLE, &[]);
    let past = start + size + 0x10;
    let write = pkt7(CP_MEM_WRITE, &[past as u32, 1, 7]);
    let ib1 = [blit, write.clone(), wait.clone(), wait.clone()].concat();
    let report = |iova: u64| {
        let dump = stopped(At { ib1: (&ib1, 1), ib2: None, headers: [wait[0], write[0], 0] });
        let builder = dump.named("RBBM_STATUS", ONLY_CP).1;
        let builder = builder.bo(start, size, "target", &[1]).bo(start + 0x10_0000, 0x2000, "next", &[1]);
        explain(builder.fault(iova, "WRITE", "TRANSLATION", "CCU"))
    };
    let found = report(past);
    let fault = by_rule(&found, Rule::IommuFaultOverrun);
    let record = |name| fault.args.record(name).unwrap_or_else(|| panic!("no {name} in {fault:#?}"));
    assert_eq!(record("writer").text("packet"), Some("CP_MEM_WRITE"));
    let (before, after) = (record("before"), record("after"));
    assert_eq!((before.number("size"), before.number("gap")), (Some(size), Some(0x10)));
    assert_eq!((after.text("name"), after.number("gap")), (Some("next"), Some(0x10_0000 - size - 0x10)));
    let target = record("target");
    assert_eq!(
        (target.text("kind"), target.text("register")),
        (Some("blit"), Some("RB_2D_DST")),
        "{fault:#?}"
    );
    assert_eq!(target.number("distance"), Some(0x810));
    // A target that starts after the address is not one that reaches it.
    let found = report(start + 0x20);
    let fault = by_rule(&found, Rule::IommuFaultListedBuffer);
    assert!(fault.args.get("target").is_none() && fault.args.get("writer").is_none(), "{fault:#?}");
}

#[test]
fn what_of_streams_of_amd_and_intel_is_at_a_faulting_address() {
    let page = AMD_FENCE & !0xfff;
    let write = pkt3(0x37, &[5 << 8, AMD_FENCE as u32, (AMD_FENCE >> 32) as u32, 7]);
    let report = amd_report(&amd_ib(&write, None).fault("gfxhub", page, 0x0084_0831).text());
    let fault = by_rule(&report, Rule::GpuvmPageNotMapped);
    assert_eq!(fault.args.record("writer").and_then(|w| w.text("packet")), Some("WRITE_DATA"), "{fault:#?}");
    let device = TestDevice::named("tgl");
    let page = BATCH + 0x50_0000;
    let batch = stream(&[&store_data(page + 8, 1), &primitive(3), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch(&batch, 4).set(RingRegister::Fault, 1);
    let builder = i915::ErrorStateBuilder::new(device).engine(engine);
    let text = builder.fault((page >> 12) as u32, (page >> 44) as u32).text();
    let report = explain_i915(&ErrorState::read(&text).unwrap());
    let fault = report.findings.iter().find(|f| f.kind == FindingKind::Fault).unwrap();
    let writer = fault.args.record("writer").and_then(|w| w.text("command"));
    assert_eq!(writer, Some("MI_STORE_DATA_IMM"), "{fault:#?}");
}

// ---- Signatures ----

#[test]
fn signatures_of_these_causes_differ() {
    let device = TestDevice::named("tgl");
    let (generation, mut silent) = waiting();
    for name in ["RBBM_STATUS", "CP_RB_BASE", "CP_RB_RPTR", "CP_RB_WPTR", "CP_IB1_BASE"] {
        silent = silent.replace(offset(generation, name), u32::MAX);
    }
    let nop = pkt7(CP_NOP, &[1]);
    let calls_itself = [nop.clone(), indirect_buffer(IB1, 6)].concat();
    let calls =
        stopped(At { ib1: (&calls_itself, 4), ib2: None, headers: [nop[0], calls_itself[2], nop[0]] });
    let back = stream(&[&primitive(3), &batch_buffer_start(BATCH)]);
    let reports = [
        explain(silent),
        explain(calls.1),
        i915_report(device, engine(0xffff_ffff, 0xffff_ffff)),
        i915_report(device, engine(0, 0)),
        i915_report(device, in_batch(&back, 0)),
    ];
    let signatures: HashSet<String> = reports.iter().map(Report::signature).collect();
    assert_eq!(signatures.len(), reports.len(), "{signatures:?}");
    assert_eq!(reports[0].gpu.family().as_deref(), Some("a6xx"));
    assert_eq!(generation, Generation::A6xx);
}
