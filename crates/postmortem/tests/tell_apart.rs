//! Hangs that look alike at first, and must be told apart: what the CP waits for, who is stuck, rings that never ran or
//! are done, places that the registers contradict, dumps that lack a part.

mod common;

use common::*;
use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{AdviceId, Arg, Args, FindingKind, GpuIdentity, Rule, Subject, Trust, explain_msm};
use unwedge_testkit::devcore::{DevcoreBuilder, MsmEra};
use unwedge_testkit::pm4::{
    CP_BLIT, CP_DRAW_INDX_OFFSET, CP_EXEC_CS, CP_NOP, CP_WAIT_FOR_IDLE, CP_WAIT_REG_MEM, indirect_buffer,
    pkt0, pkt3, pkt4, pkt7,
};

const AHB: u32 = 1 << 0;
const VBIF: u32 = 1 << 4;
const CCU: u32 = 1 << 8;
const A2D: u32 = 1 << 9;
const UCHE: u32 = 1 << 17;
const SP: u32 = 1 << 18;
const HLSQ: u32 = 1 << 21;

fn wait_for_idle() -> Vec<u32> {
    pkt7(CP_WAIT_FOR_IDLE, &[])
}

/// IB1: what is given, then the wait the CP stands in, then one dword it has not read.
fn stopped_in(before: &[Vec<u32>], wait: &[u32]) -> (Generation, DevcoreBuilder) {
    let ib1 = [&before.concat(), wait, &wait_for_idle()].concat();
    let previous = before.last().map_or(0, |p| p[0]);
    stopped(At { ib1: (&ib1, 1), ib2: None, headers: [wait[0], previous, 0] })
}

#[test]
fn a_wait_for_a_register() {
    let scratch = offset(Generation::A6xx, "CP_SCRATCH[0].REG");
    let wait = pkt7(CP_WAIT_REG_MEM, &[3, scratch, 0, 7, u32::MAX, 16]);
    let report = explain(stopped_in(&[draw()], &wait).named("RBBM_STATUS", ONLY_CP).1.register(scratch, 3));
    let found = find(&report, FindingKind::CpWait);
    assert_eq!((found.rule, found.args.number("value")), (Rule::CpWaitsForValue, Some(3)));
    let awaited = found.args.record("waits_for").unwrap();
    assert_eq!((awaited.text("register"), awaited.number("reference")), (Some("CP_SCRATCH[0].REG"), Some(7)));
    assert_eq!(found.trust, Trust::Certain);
    let advice = advised(&report);
    assert!(
        !advice.contains(&AdviceId::CaptureEarlierSubmits),
        "no submit writes a register for another: {advice:?}"
    );

    let report = explain(stopped_in(&[draw()], &wait).named("RBBM_STATUS", ONLY_CP).1);
    let found = find(&report, FindingKind::CpWait);
    assert_eq!(found.rule, Rule::CpWaitsForUnknownValue);
    assert_eq!(found.trust, Trust::Likely);
}

#[test]
fn a_wait_for_memory_that_nobody_captured() {
    let dump = stopped_in(&[draw()], &wait_for_fence()).named("RBBM_STATUS", ONLY_CP).1;
    let report = explain(dump.bo_absent(FENCE, 4096, "fences"));
    let found = find(&report, FindingKind::CpWait);
    assert_eq!(found.rule, Rule::CpWaitsForUnknownValue);
    assert!(advised(&report).contains(&AdviceId::CaptureEarlierSubmits), "{report:#?}");
}

#[test]
fn what_is_stuck_behind_a_wait_for_idle() {
    let shader = pkt4(offset(Generation::A6xx, "SP_CS_OBJ_START"), &[0x8000, 1]);
    let target = pkt4(offset(Generation::A6xx, "RB_2D_DST_INFO"), &[0x30, 0x1000, 1]);
    let dispatch = vec![shader, pkt7(CP_EXEC_CS, &[0, 1, 2, 3])];
    let blit = vec![target, pkt7(CP_BLIT, &[3])];
    let cases: [(Vec<Vec<u32>>, u32, Rule, &str); 4] = [
        (vec![draw()], SP | HLSQ, Rule::ShaderProcessorsStuck, "draw"),
        (vec![draw()], UCHE | VBIF, Rule::CacheWaitsForMemory, "draw"),
        (dispatch, SP | HLSQ, Rule::ShaderProcessorsStuck, "dispatch"),
        (blit, A2D | CCU, Rule::BlitEngineBusy, "blit"),
    ];
    for (work, busy, rule, kind) in cases {
        let report = explain(stopped_in(&work, &wait_for_idle()).named("RBBM_STATUS", ONLY_CP | busy).1);
        assert_eq!(report.hang.as_ref().unwrap().packet.as_deref(), Some("CP_WAIT_FOR_IDLE"));
        assert_eq!(find(&report, FindingKind::Busy).rule, rule);
        assert_eq!(find(&report, FindingKind::Suspect).subject, Subject::Work { kind, number: 0 });
        assert_eq!(find(&report, FindingKind::CpWait).rule, Rule::CpWaitsForWork);
        assert!(
            report.findings.iter().all(|f| f.kind != FindingKind::InFlight),
            "the suspect is not reported a second time: {:?}",
            rules(&report)
        );
        let advice = advised(&report);
        assert!(!advice.contains(&AdviceId::CaptureEarlierSubmits), "no value is awaited: {advice:?}");
    }
    let report = explain(
        stopped_in(
            &[pkt4(offset(Generation::A6xx, "RB_2D_DST_INFO"), &[0x30, 0x1000, 1]), pkt7(CP_BLIT, &[3])],
            &wait_for_idle(),
        )
        .named("RBBM_STATUS", ONLY_CP | A2D)
        .1,
    );
    let suspect = find(&report, FindingKind::Suspect);
    let state: Vec<&Args> = suspect
        .args
        .list("state")
        .iter()
        .filter_map(|arg| match arg {
            Arg::Record(args) => Some(args),
            _ => None,
        })
        .collect();
    assert_eq!(state[0].text("register"), Some("RB_2D_DST_INFO"));
    assert_eq!(state[0].text("format"), Some("FMT6_8_8_8_8_UNORM"));
    assert_eq!(state[1].text("register"), Some("RB_2D_DST"));
    assert_eq!(state[1].number("address"), Some(0x1_0000_1000));
}

/// A dump whose ring is read to its end; nothing is busy.
fn read_to_end() -> DevcoreBuilder {
    let ib1 = [draw(), wait_for_idle()].concat();
    let headers = [pkt7(CP_NOP, &[2])[0], wait_for_idle()[0], 0];
    let (generation, dump) = stopped(At { ib1: (&ib1, 0), ib2: None, headers }).named("RBBM_STATUS", AHB);
    dump.with_ring(|r| r.rptr = r.wptr).replace(offset(generation, "CP_ROQ_AVAIL_RB"), 0)
}

#[test]
fn a_gpu_that_is_done_does_not_hang() {
    let report = explain(read_to_end().with_ring(|r| r.retired_fence = r.last_fence));
    assert_eq!(report.hang, None, "{report:#?}");
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::HangPoint));
    assert_eq!(find(&report, FindingKind::Progress).rule, Rule::SubmitsComplete);
    assert_eq!(advised(&report), [AdviceId::LongerHangcheck]);
}

#[test]
fn a_fence_that_did_not_arrive() {
    let report = explain(read_to_end());
    let progress = find(&report, FindingKind::Progress);
    assert_eq!(progress.rule, Rule::FenceNotRetired);
    assert_eq!(progress.args.number("oldest_fence"), Some(1));
    assert!(report.hang.is_some(), "the last packet of the ring is where it is");
}

#[test]
fn a_ring_that_never_started() {
    let ring = [pkt7(CP_NOP, &[1]), indirect_buffer(IB1, 4)].concat();
    let dump = (Generation::A6xx, DevcoreBuilder::a6xx().ring(RING, &ring).bo(IB1, 4096, "ib1", &draw()))
        .named64("CP_RB_BASE", RING)
        .named("CP_RB_RPTR", 0)
        .named("CP_RB_WPTR", 0)
        .named("RBBM_STATUS", AHB);
    let report = explain(dump.1);
    let head = &report.findings[0].args;
    assert!(
        head.get("started") == Some(&Arg::Flag(false)) && head.text("packet") == Some("CP_NOP"),
        "{head:?}"
    );
    assert!(report.findings[0].trust <= Trust::Possible);
    let pointers = &by_rule(&report, Rule::WritePointerNotSeen).args;
    assert_eq!((pointers.number("given"), pointers.number("written")), (Some(0), Some(6)));
}

#[test]
fn the_ring_that_the_cp_reads_is_the_hung_one() {
    let ib1 = [draw(), wait_for_fence(), wait_for_idle()].concat();
    let hung = [pkt7(CP_NOP, &[1]), indirect_buffer(IB1, ib1.len() as u32), pkt7(CP_NOP, &[2])].concat();
    let mut sqe = vec![0u32; 51];
    sqe[1] = wait_for_fence()[0];
    sqe[36..38].copy_from_slice(&[wait_for_fence()[0], draw()[0]]);
    let mut dump = DevcoreBuilder::a6xx().indexed("CP_SQE_STAT", &sqe).bo(IB1, 4096, "ib1", &ib1);
    for id in 0..4u64 {
        dump = dump.ring(RING + id * 0x8000, if id == 2 { &hung } else { &[] }).with_ring(|r| {
            r.rptr = if id == 2 { Some(6) } else { r.wptr };
            r.retired_fence = r.last_fence.map(|f| f - u32::from(id == 2));
        });
    }
    let dump = (Generation::A6xx, dump)
        .named64("CP_RB_BASE", RING + 2 * 0x8000)
        .named("CP_RB_RPTR", 8)
        .named("CP_RB_WPTR", 8)
        .named("CP_ROQ_AVAIL_RB", 3 << 16)
        .named64("CP_IB1_BASE", IB1)
        .named("CP_IB1_REM_SIZE", 0)
        .named("CP_ROQ_AVAIL_IB1", 2 << 16);
    let report = explain(dump.1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.ring, hang.packet.as_deref()), (Some(2), Some("CP_WAIT_REG_MEM")));
    assert_eq!(hang.trust, Trust::Certain);
    let progress: Vec<_> = report.findings.iter().filter(|f| f.kind == FindingKind::Progress).collect();
    assert_eq!(progress.len(), 1, "idle rings are not worth a word: {progress:?}");
}

#[test]
fn a_place_that_cp_ib1_base_contradicts_is_not_certain() {
    let ib1 = [draw(), wait_for_fence(), wait_for_idle()].concat();
    let call = indirect_buffer(0, 0)[0];
    let (generation, dump) =
        stopped(At { ib1: (&ib1, 1), ib2: None, headers: [call, pkt7(CP_NOP, &[1])[0], 0] });
    let base = offset(generation, "CP_IB1_BASE");
    let report = explain(dump.replace(base, 0x7_7000).replace(base + 1, 2));
    assert!(report.hang.as_ref().unwrap().trust <= Trust::Possible, "{report:#?}");
    let stray = report.findings[0].args.record("stray").unwrap();
    assert_eq!((stray.text("register"), stray.number("iova")), (Some("CP_IB1_BASE"), Some(0x2_0007_7000)));
}

#[test]
fn a_ring_without_contents_is_unknown_not_zero() {
    let (_, dump) = stopped_in(&[draw()], &wait_for_fence());
    let report = explain(dump.with_ring(|r| r.data = None));
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::CorruptStream), "{:?}", rules(&report));
    assert!(rules(&report).contains(&Rule::RingDwordsNotCaptured), "{:?}", rules(&report));
}

#[test]
fn dumps_that_lack_a_part_say_so_and_explain_the_rest() {
    let full = stopped_in(&[draw()], &wait_for_fence()).1.build();
    let db = Db::builtin();
    let without = |change: fn(&mut Devcore<'static>)| {
        let mut dump = full.clone();
        change(&mut dump);
        explain_msm(&dump, &db)
    };
    let registers = without(|d| {
        d.registers.clear();
        d.indexed.clear();
    });
    assert!(rules(&registers).contains(&Rule::RegistersNotCaptured));
    assert!(registers.hang.as_ref().unwrap().trust <= Trust::Possible);
    let rings = without(|d| d.rings.clear());
    assert_eq!(rings.hang, None);
    assert!(rules(&rings).contains(&Rule::RingNotCaptured));
    let bos = without(|d| d.bos.clear());
    assert_eq!(by_rule(&bos, Rule::IbNotCaptured).args.number("base"), Some(IB1));
    assert!(bos.hang.as_ref().unwrap().trust <= Trust::Possible);
}

#[test]
fn a_gpu_that_was_not_initialized() {
    let dump =
        DevcoreBuilder::a6xx().era(MsmEra::V6_6).gpu_initialized(false).ring(RING, &pkt7(CP_NOP, &[1]));
    let report = explain(dump);
    assert_eq!(report.findings[0].args.get("started"), Some(&Arg::Flag(false)), "{report:#?}");
    assert_eq!(report.findings[report.causes[0]].rule, Rule::GpuNotInitialized, "{report:#?}");
    assert!(rules(&report).contains(&Rule::RegistersNotCaptured));
}

#[test]
fn sources_of_faults_as_kernels_name_them() {
    let cases = [
        ("CP", &["CP"][..]),
        ("TP|VFD", &["TP", "VFD"]),
        ("BR_SP", &["SP"]),
        ("BV_VFD", &["VFD"]),
        ("CDP Prefetch", &["CDP"]),
        ("UNKNOWN", &["UNKNOWN"]),
        ("TP|XYZ", &["TP", "XYZ"]),
    ];
    for (source, units) in cases {
        let dump = stopped_in(&[draw()], &wait_for_fence()).1;
        let report = explain(dump.fault(0x5_0000_0000, "READ", "TRANSLATION", source));
        let fault = find(&report, FindingKind::Fault);
        assert_eq!(fault.args.text("source"), Some(source));
        let expected: Vec<Arg> = units.iter().map(|&unit| Arg::name(unit)).collect();
        assert_eq!(fault.args.list("units"), expected, "{source}");
    }
    let dump = stopped_in(&[draw()], &wait_for_fence()).1;
    let report = explain(dump.fault(IB1 + 8, "READ", "EXTERNAL", "CP"));
    assert_eq!(find(&report, FindingKind::Fault).rule, Rule::IommuFaultExternal);
}

#[test]
fn old_generations_have_no_turnip() {
    for (generation, status) in
        [(Generation::A3xx, 1 << 24), (Generation::A4xx, 1 << 24), (Generation::A5xx, 1 << 26)]
    {
        let (draw, wait) = if generation.is_64bit() {
            (pkt7(CP_DRAW_INDX_OFFSET, &[0x84, 1, 6]), pkt7(CP_WAIT_FOR_IDLE, &[]))
        } else {
            (pkt3(0x22, &[0, 4, 3, 3]), pkt3(CP_WAIT_FOR_IDLE, &[0]))
        };
        let state = if generation.is_64bit() { pkt4(0xe140, &[0]) } else { pkt0(0x2040, &[0]) };
        let ring = [state, draw, wait].concat();
        let end = ring.len() as u32;
        let dump = DevcoreBuilder::of(generation).ring(0x1000, &ring).with_ring(|r| r.rptr = Some(end));
        let report = explain((generation, dump).named("CP_RB_RPTR", end).named("RBBM_STATUS", status).1);
        let options = |name: &str| report.advice.iter().filter_map(|a| a.args.text(name)).collect::<Vec<_>>();
        assert!(options("freedreno").contains(&"flush"), "{generation}: {:?}", report.advice);
        assert!(options("turnip").is_empty(), "{generation}: {:?}", report.advice);
    }
}

#[test]
fn an_unknown_gpu_is_not_read_as_another() {
    let dump = DevcoreBuilder::a7xx().revision(0, [0x44, 5, 0, 1]).ring(RING, &pkt7(CP_NOP, &[1]));
    let dump = dump.bo_absent(IB1, 4096, "target").fault(IB1 + 16, "WRITE", "PERMISSION", "CCU");
    let report = explain(dump);
    assert!(matches!(report.gpu, GpuIdentity::Adreno { generation: None, .. }), "{:?}", report.gpu);
    assert_eq!(report.hang, None);
    // What needs no register is still explained, and what is lost is said.
    let fault = find(&report, FindingKind::Fault);
    assert_eq!((fault.rule, fault.args.number("distance")), (Rule::IommuFaultPermission, Some(0x10)));
    let progress = by_rule(&report, Rule::SubmitsOpen);
    assert_eq!((progress.args.number("open"), progress.args.number("oldest_fence")), (Some(1), Some(1)));
    assert!(report.diagnostics.iter().any(|d| d.message.contains("the GPU is not known")));
}

#[test]
fn every_line_of_a_truncated_dump_can_be_its_last() {
    let dump = stopped_in(&[draw()], &wait_for_fence()).named("RBBM_STATUS", ONLY_CP).1;
    let text = dump.bo(FENCE, 4096, "fences", &[3]).cluster("CLUSTER_GRAS", 0, &[(0x8000, 1)]).text();
    let db = Db::builtin();
    let registers = text.windows(12).position(|w| w == b"\nregisters:\n").unwrap() + 12;
    let clusters = text.windows(10).position(|w| w == b"\nclusters:").unwrap();
    for end in (1..text.len()).filter(|&end| text[end - 1] == b'\n') {
        let Ok(dump) = Devcore::read(&text[..end]) else { continue };
        let report = explain_msm(&dump, &db);
        assert!(report.findings.iter().all(|f| f.kind != FindingKind::CorruptStream), "{end}: {report:#?}");
        if end < registers {
            let trust = report.hang.as_ref().map(|h| h.trust);
            assert!(trust.is_none_or(|t| t <= Trust::Possible), "{end}: {report:#?}");
        }
        if end > clusters {
            assert_eq!(report.hang.unwrap().packet.as_deref(), Some("CP_WAIT_REG_MEM"), "{end}");
        }
    }
}
