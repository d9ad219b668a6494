//! Dumps of AMD and Intel GPUs that end early: nothing beyond the last captured dword is reported as if it had been read, and
//! what is missing is.

mod common;

use common::{by_rule, has};
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::RingRegister;
use unwedge_capture::umr::UmrText;
use unwedge_capture::xe::XeDevcore;
use unwedge_hw::Db;
use unwedge_postmortem::{
    Fact, FindingKind, Report, Rule, explain_amdgpu, explain_i915, explain_umr, explain_xe,
};
use unwedge_testkit::amdgpu::{AmdgpuBuilder, AmdgpuEra, Gfx, NOP, ring_stream_text, texts};
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, primitive, store_data, stream,
};
use unwedge_testkit::pm4::pkt3;
use unwedge_testkit::{i915, i915_old, xe};

const IB: u64 = 0x8001_0010_0000;
const BATCH: u64 = 0x1_0010_0000;

fn amdgpu(text: &[u8]) -> Option<Report> {
    Some(explain_amdgpu(&Devcoredump::read(text).ok()?, &Db::amd()))
}

fn umr(text: &[u8]) -> Option<Report> {
    Some(explain_umr(&UmrText::read(text).ok()?, &Db::amd()))
}

fn i915(text: &[u8]) -> Option<Report> {
    Some(explain_i915(&ErrorState::read(text).ok()?))
}

fn xe(text: &[u8]) -> Option<Report> {
    Some(explain_xe(&XeDevcore::read(text).ok()?))
}

/// Findings on broken streams and contexts: the rule, and the address it is about.
fn broken(report: &Report) -> Vec<(Rule, Option<u64>)> {
    let corrupt = report.findings.iter().filter(|f| f.kind == FindingKind::CorruptStream);
    corrupt.map(|f| (f.rule, f.evidence.iter().find_map(|e| e.iova))).collect()
}

/// A dump that ends early has no broken stream that the whole one does not have.
fn assert_cut(name: &str, text: &[u8], step: usize, explain: fn(&[u8]) -> Option<Report>) {
    let whole = broken(&explain(text).expect("the whole text is a dump"));
    for at in (0..text.len()).step_by(step) {
        let Some(report) = explain(&text[..at]) else { continue };
        for found in broken(&report) {
            assert!(whole.contains(&found), "{name} cut at {at}: {found:?}\n{report:#?}");
        }
    }
}

#[test]
fn amd_dumps_and_text_of_umr() {
    for (name, text) in texts() {
        let explain = if Devcoredump::read(&text).is_ok() {
            amdgpu
        } else if UmrText::read(&text).is_ok() {
            umr
        } else {
            continue;
        };
        assert_cut(&name, &text, text.len() / 60 + 1, explain);
    }
    let draw = pkt3(0x2d, &[3, 2]);
    let ib: Vec<u32> = (0..40).flat_map(|_| draw.clone()).collect();
    assert_cut("an IB", &in_ib(&ib).text(), 7, amdgpu);
    let call = pkt3(0x3f, &[IB as u32, (IB >> 32) as u32, ib.len() as u32]);
    let text = ring_stream_text(&[(0, 0, &call), (1, IB, &ib)]);
    assert_cut("umr", text.as_bytes(), 7, umr);
}

#[test]
fn intel_dumps() {
    for (name, text) in i915::variety().into_iter().chain(i915_old::variety()) {
        assert_cut(&name, &text, text.len() / 40 + 1, i915);
    }
    for (name, text) in xe::variety() {
        assert_cut(&name, &text, text.len() / 40 + 1, xe);
    }
    let draws: Vec<u32> = (0..60).flat_map(primitive).chain([MI_BATCH_BUFFER_END]).collect();
    for packed in [true, false] {
        let builder = i915::ErrorStateBuilder::new(tgl()).engine(in_batch(&draws, 7));
        let builder = if packed { builder } else { builder.unpacked() };
        assert_cut("a batch of i915", &builder.text(), 1, i915);
    }
    let builder = xe::DevcoreBuilder::new(tgl()).engine(in_batch(&draws, 7));
    assert_cut("a batch of xe", &builder.text(), 7, xe);
}

fn tgl() -> TestDevice {
    TestDevice::named("tgl")
}

/// A graphics ring that calls an IB, with the ME in the IB.
fn in_ib(ib: &[u32]) -> AmdgpuBuilder {
    let call = pkt3(0x3f, &[IB as u32, (IB >> 32) as u32, ib.len() as u32]);
    let rptr = call.len() as u64;
    let builder = AmdgpuBuilder::new(Gfx::V10)
        .era(AmdgpuEra::V7_1)
        .timeout("gfx_0.0.0")
        .register("GRBM_STATUS", 0xa000_0000)
        .register("CP_IB1_BASE_LO", IB as u32)
        .register("CP_IB1_BASE_HI", (IB >> 32) as u32)
        .register("CP_IB1_BUFSZ", ib.len() as u32)
        .ring("gfx_0.0.0", rptr, rptr + 2, &[call, vec![NOP; 4]].concat());
    builder.ib(IB, ib)
}

/// The render engine in a batch that its ring started.
fn in_batch(batch: &[u32], dword: usize) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(BATCH), &[0, 0, 0]]);
    EngineState::new("rcs0")
        .ring(0x10_0000, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, BATCH + 4 * dword as u64)
        .set(RingRegister::Ipehr, batch[dword].into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(BATCH, batch)
        .hung(1)
}

fn offset_of(text: &[u8], what: &str) -> usize {
    text.windows(what.len()).position(|w| w == what.as_bytes()).unwrap_or_else(|| panic!("no {what}"))
}

#[test]
fn what_is_missing_of_an_ib() {
    let ib: Vec<u32> = (0..40).flat_map(|i| pkt3(0x2d, &[3 + i, 2])).collect();
    let text = in_ib(&ib).text();
    assert!(!has(&amdgpu(&text).unwrap(), Rule::IbContentsCut));
    let start = offset_of(&text, "IB #0");
    let first = start + text[start..].iter().position(|&c| c == b'\n').unwrap() + 1;
    // A line has a dword, `0x` and eight digits; half a line has none.
    let report = amdgpu(&text[..first + 50 * 11 + 5]).unwrap();
    let cut = by_rule(&report, Rule::IbContentsCut);
    assert_eq!((cut.args.number("captured"), cut.args.number("dwords")), (Some(50), Some(120)), "{cut:#?}");
    assert_eq!(cut.args.number("base"), Some(IB));
}

#[test]
fn what_is_missing_of_a_ring() {
    let ring: Vec<u32> = (0..256).flat_map(|i| pkt3(0x2d, &[3 + i, 2])).take(512).collect();
    let text = AmdgpuBuilder::new(Gfx::V10).timeout("gfx_0.0.0").ring("gfx_0.0.0", 300, 303, &ring).text();
    let row = offset_of(&text, "0x190 \t"); // dword 100
    let report = amdgpu(&text[..row]).unwrap();
    let cut = by_rule(&report, Rule::AmdRingContentsCut);
    assert_eq!((cut.args.number("captured"), cut.args.number("dwords")), (Some(100), Some(512)), "{cut:#?}");
    assert_eq!(cut.args.number("stop"), Some(300), "{cut:#?}");
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.packet.as_deref(), hang.header), (None, None), "the packet there was not captured");
}

#[test]
fn what_is_missing_of_a_batch() {
    let batch: Vec<u32> = (0..60).flat_map(primitive).chain([MI_BATCH_BUFFER_END]).collect();
    let builder = i915::ErrorStateBuilder::new(tgl()).engine(in_batch(&batch, 210)).unpacked();
    let text = builder.text();
    assert!(!has(&i915(&text).unwrap(), Rule::MemoryContentsCut));
    let start = offset_of(&text, "rcs0 --- batch");
    let first = start + text[start..].iter().position(|&c| c == b'~').unwrap() + 1;
    let report = i915(&text[..first + 300]).unwrap();
    let cut = by_rule(&report, Rule::MemoryContentsCut);
    assert_eq!(cut.args.number("base"), Some(BATCH), "{cut:#?}");
    assert!(cut.args.flag("acthd") && cut.args.number("captured").unwrap() < 210, "{cut:#?}");
}

/// A fault in what a cut dump has lost of a buffer is not one past its end.
#[test]
fn a_fault_beyond_what_was_captured() {
    let buffer = BATCH + 0x10_0000;
    let batch = stream(&[&store_data(BATCH, 1), &primitive(3), &[MI_BATCH_BUFFER_END]]);
    let words: Vec<u32> = (0..4096).map(|i: u32| i.wrapping_mul(0x9e37_79b9)).collect();
    let engine = in_batch(&batch, 4).set(RingRegister::Fault, 1).user(buffer, &words);
    let address = buffer + 0x2000;
    let builder = i915::ErrorStateBuilder::new(tgl()).engine(engine).unpacked();
    let text = builder.fault((address >> 12) as u32, (address >> 44) as u32).text();
    let whole = i915(&text).unwrap();
    assert!(has(&whole, Rule::PageFaultInBuffer), "{whole:#?}");
    let start = offset_of(&text, "rcs0 --- user");
    let report = i915(&text[..start + 6000]).unwrap();
    assert!(!has(&report, Rule::PageFaultOverrun), "{report:#?}");
    let fault = by_rule(&report, Rule::PageFaultBeyondCapture);
    assert_eq!(fault.args.record("near").and_then(|near| near.number("base")), Some(buffer), "{fault:#?}");
    assert!(
        fault.evidence.iter().any(|e| matches!(&e.fact, Fact::Register { name, .. } if name == "FAULT_REG"))
    );
}
