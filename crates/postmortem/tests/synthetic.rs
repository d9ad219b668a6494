//! Dumps built in code, one per way to hang: what goes in, what the post-mortem must say, with which trust and evidence.

mod common;

use common::*;
use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_postmortem::{
    AdviceId, Arg, Evidence, Fact, Finding, FindingKind, Report, Rule, Subject, Trust, explain_msm,
};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::pm4::{
    CP_INDIRECT_BUFFER_PFE, CP_NOP, CP_SET_MARKER, CP_WAIT_FOR_IDLE, CP_WAIT_REG_MEM, indirect_buffer, pkt3,
    pkt4, pkt7,
};

#[test]
fn a_cp_stalled_in_wait_reg_mem_inside_ib1() {
    let report = explain(waiting().1.bo(FENCE, 4096, "fences", &[3]));
    let hang = report.hang.as_ref().unwrap();
    assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"));
    assert_eq!((hang.iova, hang.trust), (Some(IB1 + 6 * 4), Trust::Certain));
    assert_eq!(hang.levels.iter().map(|l| (l.level, l.base)).collect::<Vec<_>>(), [(0, RING), (1, IB1)]);
    assert_eq!(hang.innermost().unwrap().range, (6, 12));
    assert_eq!(hang.draw, Some(0));
    assert_eq!(hang.ring, Some(0));

    let wait = find(&report, FindingKind::CpWait);
    assert_eq!(wait.trust, Trust::Likely, "nothing in the dump writes it, but others could");
    assert!(wait.args.flag("no_writer") && wait.args.record("writer").is_none(), "{wait:?}");
    assert_eq!(wait.rule, Rule::CpWaitsForValue);
    let awaited = wait.args.record("waits_for").unwrap();
    assert_eq!((awaited.number("iova"), awaited.number("reference")), (Some(FENCE), Some(5)));
    assert_eq!((awaited.text("relation"), wait.args.number("value")), (Some("=="), Some(3)));
    let read = wait.evidence.iter().find(|e| e.iova == Some(FENCE)).unwrap();
    assert!(matches!(&read.fact, Fact::Dwords { words, .. } if words == &[3]), "{read:?}");
    assert!(wait.args.flag("idle_downstream"), "{wait:?}");

    let busy = find(&report, FindingKind::Busy);
    assert_eq!(busy.rule, Rule::OnlyCpBusy);
    assert_eq!(report.findings[0].rule, Rule::CpStopped);
    let pass = report.findings[0].args.record("pass").unwrap();
    assert_eq!(pass.text("name"), Some("sysmem"));
    assert_eq!(report.findings[report.causes[0]].rule, Rule::CpWaitsForValue);
    assert!(!advised(&report).contains(&AdviceId::SerializeWork), "the work before it is done");
}

#[test]
fn memory_that_the_dump_lacks_is_unknown_not_zero() {
    let wait_for_zero =
        pkt7(CP_WAIT_REG_MEM, &[3 | 1 << 4, FENCE as u32, (FENCE >> 32) as u32, 0, u32::MAX, 16]);
    let report = explain(
        stopped(At { ib1: (&wait_for_zero, 0), ib2: None, headers: [wait_for_zero[0], 0, 0] })
            .1
            .bo_absent(FENCE, 4096, ""),
    );
    let wait = find(&report, FindingKind::CpWait);
    assert_eq!(wait.rule, Rule::CpWaitsForUnknownValue);
    assert_eq!(wait.trust, Trust::Likely);
}

#[test]
fn a_wait_whose_value_is_there_is_not_the_certain_cause() {
    let report = explain(waiting().1.bo(FENCE, 4096, "fences", &[5]));
    assert_eq!(find(&report, FindingKind::CpWait).trust, Trust::Possible);
}

#[test]
fn garbage_in_the_stream_and_in_the_sqe() {
    let nop = pkt7(CP_NOP, &[]);
    let ib1 = [nop.clone(), nop.clone(), vec![0xdead_d00d], nop.clone(), nop.clone()].concat();
    let report = explain(stopped(At { ib1: (&ib1, 2), ib2: None, headers: [0xdead_d00d, nop[0], nop[0]] }).1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.iova, hang.trust), (Some(IB1 + 8), Trust::Certain));
    let corrupt = find(&report, FindingKind::CorruptStream);
    assert_eq!(corrupt.trust, Trust::Certain);
    assert_eq!(corrupt.rule, Rule::PoisonInStream);
    assert!(saw_register(corrupt, "$01", 0xdead_d00d));
    assert_eq!(corrupt.evidence[0].iova, Some(IB1 + 8));

    let other = [nop.clone(), vec![0x1234_5678], nop.clone()].concat();
    let report = explain(stopped(At { ib1: (&other, 1), ib2: None, headers: [0x1234_5678, nop[0], 0] }).1);
    assert_eq!(find(&report, FindingKind::CorruptStream).rule, Rule::NotAPacket);
}

#[test]
fn a_stop_in_a_buffer_that_is_behind_the_one_fetched() {
    // IB2 at IB2 (stopped in), then another IB2 fetched ahead of it.
    let ahead = IB2 + 0x1000;
    let first = [pkt7(CP_NOP, &[7]), draw()].concat();
    let second = pkt7(CP_NOP, &[1, 2, 3]);
    let ib1 = [
        indirect_buffer(IB2, first.len() as u32),
        indirect_buffer(ahead, second.len() as u32),
        pkt7(CP_NOP, &[]),
    ]
    .concat();
    let headers = [draw()[0], pkt7(CP_NOP, &[7])[0], 0];
    let (generation, builder) = stopped(At { ib1: (&ib1, 1), ib2: None, headers });
    let builder = builder.bo(IB2, 4096, "", &first).bo(ahead, 4096, "", &second);
    // Two payload dwords of the draw and the whole second buffer are unread.
    let unread = 2 + second.len() as u32;
    let dump = (generation, builder)
        .named64("CP_IB2_BASE", ahead)
        .named("CP_IB2_REM_SIZE", 0)
        .named("CP_IB2_DWORDS", second.len() as u32)
        .named("CP_ROQ_AVAIL_IB2", (unread + 1) << 16);
    let report = explain(dump.1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.iova, hang.trust), (Some(IB2 + 8), Trust::Certain));
    assert_eq!(hang.levels.len(), 3);
    assert_eq!(hang.levels[1].range, (0, ib1.len() as u64 - 2), "IB1 is read ahead of its call");
    assert_eq!(hang.draw, Some(0));
    let args = &report.findings[0].args;
    assert_eq!(args.text("packet"), Some("CP_DRAW_INDX_OFFSET"));
    assert_eq!(args.record("work").and_then(|work| work.number("number")), Some(0));
}

#[test]
fn the_same_buffer_called_for_every_bin() {
    let body = [pkt7(CP_NOP, &[7]), draw()].concat();
    let tile = |i: u32| {
        [
            pkt7(CP_SET_MARKER, &[4]),
            pkt4(offset(Generation::A6xx, "GRAS_SC_WINDOW_SCISSOR_TL"), &[64 * i, (64 * i + 63) | 31 << 16]),
            indirect_buffer(IB2, body.len() as u32),
            pkt7(CP_WAIT_FOR_IDLE, &[]),
        ]
        .concat()
    };
    let ib1 = [tile(0), tile(1), tile(2), tile(3)].concat();
    // In the third bin: IB1 is consumed up to and including the third call.
    let unread = ib1.len() - (2 * tile(0).len() + 9);
    let headers = [draw()[0], pkt7(CP_NOP, &[7])[0], 0];
    let report = explain(stopped(At { ib1: (&ib1, unread), ib2: Some((&body, 1)), headers }).1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!(hang.iova, Some(IB2 + 8));
    assert_eq!(hang.levels[1].range.0, 2 * tile(0).len() as u64 + 5, "the third of four calls");
    assert_eq!(hang.draw, Some(2));
    let pass = report.findings[0].args.record("pass").unwrap();
    assert_eq!((pass.text("name"), pass.number("bin")), (Some("gmem"), Some(2)));
    assert_eq!(pass.list("scissor"), [128, 0, 191, 31].map(Arg::Number));
}

#[test]
fn without_the_sqe_the_place_is_less_sure() {
    let (_, mut dump) = (0, waiting().1.bo(FENCE, 4096, "", &[3]).build());
    dump.indexed.clear();
    let report = explain_msm(&dump, &Db::builtin());
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.packet.as_deref(), hang.trust), (Some("CP_WAIT_REG_MEM"), Trust::Likely));
    let absent: Vec<_> = report.findings.iter().filter(|f| f.kind == FindingKind::NotCaptured).collect();
    let lacks = |f: &&Finding| {
        let fact = |e: &Evidence| matches!(&e.fact, Fact::Absent { name, .. } if name == "CP_SQE_STAT");
        f.evidence.iter().any(fact)
    };
    assert!(absent.iter().any(lacks), "{absent:?}");
}

#[test]
fn an_a5xx_counts_only_what_is_not_fetched() {
    let generation = Generation::A5xx;
    let ib1 = [pkt7(CP_NOP, &[7]), wait_for_fence(), pkt7(CP_NOP, &[0; 20])].concat();
    let ring = [pkt7(CP_NOP, &[1]), indirect_buffer(IB1, ib1.len() as u32), pkt7(CP_NOP, &[2])].concat();
    let builder = DevcoreBuilder::a5xx()
        .ring(RING, &ring)
        .with_ring(|r| r.rptr = Some(6))
        .bo(IB1, 4096, "", &ib1)
        .bo(FENCE, 4096, "", &[3]);
    let dump = (generation, builder)
        .named("CP_RB_RPTR", 8)
        .named64("CP_RB_BASE", RING)
        .named64("CP_IB1_BASE", IB1)
        .named("CP_IB1_BUFSZ", 3);
    let report = explain(dump.1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"), "it waits for a value that is not there");
    assert!(hang.trust < Trust::Certain);
    assert_eq!(find(&report, FindingKind::CpWait).evidence[1].iova, Some(FENCE));
}

#[test]
fn an_a3xx_with_type_3_packets() {
    let generation = Generation::A3xx;
    let (ring_at, ib1_at, fence) = (0x1000_0000u64, 0x2000_0000u64, 0x3000_0000u32);
    let ib1 = [
        pkt3(CP_NOP, &[7]),
        pkt3(CP_WAIT_REG_MEM, &[3 | 1 << 4, fence, 5, u32::MAX, 16]),
        pkt3(CP_NOP, &[0; 8]),
    ]
    .concat();
    let ring = [
        pkt3(CP_NOP, &[1]),
        pkt3(CP_INDIRECT_BUFFER_PFE, &[ib1_at as u32, ib1.len() as u32]),
        pkt3(CP_NOP, &[2]),
    ]
    .concat();
    let builder = DevcoreBuilder::a3xx()
        .ring(ring_at, &ring)
        .with_ring(|r| r.rptr = Some(5))
        .bo(ib1_at, 4096, "", &ib1)
        .bo(u64::from(fence), 4096, "", &[1]);
    let dump = (generation, builder)
        .named("CP_RB_BASE", ring_at as u32)
        .named("CP_RB_RPTR", 7)
        .named("CP_IB1_BASE", ib1_at as u32)
        .named("CP_IB1_BUFSZ", 2);
    let report = explain(dump.1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!(hang.levels.last().map(|l| l.base), Some(ib1_at));
    assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"), "{report:#?}");
}

/// A draw with a render target at 0x100100000, stopped at, with a fault.
fn faulting(iova: u64) -> Report {
    let target = 0x1_0010_0000u64;
    let base = offset(Generation::A6xx, "RB_MRT[0].BASE");
    let ib1 = [pkt4(base, &[target as u32, (target >> 32) as u32]), draw()].concat();
    let dump = stopped(At { ib1: (&ib1, 1), ib2: None, headers: [draw()[0], 0, 0] });
    explain(dump.1.bo_absent(target, 0x1_0000, "target").bo_absent(0x1_0100_0000, 0x1000, "far").fault(
        iova,
        "WRITE",
        "TRANSLATION",
        "CCU",
    ))
}

#[test]
fn faults_inside_behind_below_and_far_from_buffers() {
    let cases: &[(u64, Rule, Option<u64>, Trust)] = &[
        (0x1_0010_0040, Rule::IommuFaultListedBuffer, Some(0x40), Trust::Likely),
        (0x1_0011_0010, Rule::IommuFaultOverrun, Some(0x10), Trust::Possible),
        (0x1_000f_fff0, Rule::IommuFaultUnderrun, Some(0x10), Trust::Possible),
        (0x1_0080_0000, Rule::IommuFaultBetweenBuffers, None, Trust::Possible),
        (0x8_0000_0000, Rule::IommuFaultOutside, None, Trust::Possible),
        (0x18, Rule::IommuFaultNullPage, None, Trust::Likely),
        (0xdead_beef_0000_0000, Rule::IommuFaultNotAnAddress, None, Trust::Likely),
    ];
    for &(iova, rule, distance, trust) in cases {
        let report = faulting(iova);
        let fault = find(&report, FindingKind::Fault);
        assert_eq!((fault.rule, fault.args.number("distance")), (rule, distance), "{iova:#x}");
        assert_eq!(fault.args.record("buffer").is_some(), distance.is_some());
        assert_eq!((fault.args.text("direction"), fault.args.text("source")), (Some("write"), Some("CCU")));
        assert_eq!(fault.trust, trust, "{iova:#x}");
        assert_eq!(fault.evidence[0].section, "fault-info");
        assert_eq!(fault.evidence[0].iova, Some(iova));
    }
    let inside = faulting(0x1_0010_0040);
    let fault = find(&inside, FindingKind::Fault);
    let buffer = fault.args.record("buffer").unwrap();
    assert_eq!(buffer.text("name"), Some("target"));
    assert_eq!((buffer.number("start"), buffer.number("end")), (Some(0x1_0010_0000), Some(0x1_0011_0000)));
    assert_eq!(fault.args.text("holder"), Some("RB_MRT[0].BASE"));
    assert_eq!(fault.args.number("holder_distance"), Some(0x40));
    assert!(advised(&inside).contains(&AdviceId::CaptureAllBuffers), "{:?}", inside.advice);
}

#[test]
fn a_freed_buffer_by_the_vm_log() {
    let (generation, builder) = stopped(At { ib1: (&draw(), 1), ib2: None, headers: [draw()[0], 0, 0] });
    assert_eq!(generation, Generation::A6xx);
    let builder = builder
        .era(unwedge_testkit::devcore::MsmEra::V6_17)
        .bo_absent(0x1_0010_0000, 0x1_0000, "")
        .vm_log("map:1: 0x0000000200000000-0x0000000200010000")
        .vm_log("unmap:1: 0x0000000200000000-0x0000000200010000")
        .fault(0x2_0000_0100, "READ", "TRANSLATION", "TP|VFD");
    let report = explain(builder);
    let fault = find(&report, FindingKind::Fault);
    assert_eq!(fault.rule, Rule::IommuFaultUseAfterFree);
    assert_eq!(fault.trust, Trust::Likely);
    assert!(all_evidence(fault).contains("vm-log: "));
}

#[test]
fn a_fault_that_says_nothing_is_no_fault() {
    let (_, mut dump) = (0, waiting().1.build());
    dump.fault = Some(unwedge_capture::msm::Fault { iova: Some(0), ..Default::default() });
    let report = explain_msm(&dump, &Db::builtin());
    assert!(report.findings.iter().all(|f| f.kind != FindingKind::Fault));
    assert!(report.findings.iter().any(|f| f.rule == Rule::FaultInfoEmpty));
}

#[test]
fn busy_blocks_and_their_meaning() {
    let bit = |name: &str| match name {
        "CP" => 1 << 2,
        "SP" => 1 << 18,
        "TP" => 1 << 19,
        "UCHE" => 1 << 17,
        "VBIF" => 1 << 4,
        "VFD" => 1 << 15,
        "PC" => 1 << 12,
        "RB" => 1 << 7,
        "CCU" => 1 << 8,
        "HLSQ" => 1 << 21,
        "AHB" => 1 << 1,
        _ => 0,
    };
    let cases: &[(&[&str], Rule, Trust)] = &[
        (&["CP", "SP", "HLSQ", "PC"], Rule::ShaderProcessorsStuck, Trust::Likely),
        (&["CP", "SP", "TP", "UCHE"], Rule::ShadersWaitForTextures, Trust::Possible),
        (&["CP", "SP", "UCHE", "VBIF"], Rule::ShadersWaitForMemory, Trust::Possible),
        (&["CP", "PC", "VFD"], Rule::FrontEndStuck, Trust::Likely),
        (&["CP", "PC", "VFD", "UCHE"], Rule::FrontEndWaitsForMemory, Trust::Likely),
        (&["CP", "PC", "RB", "CCU", "UCHE"], Rule::BackEndNotDraining, Trust::Likely),
        (&["CP", "RB", "CCU"], Rule::RenderBackendsStuck, Trust::Likely),
        (&["CP", "UCHE"], Rule::CacheWaitsForMemory, Trust::Likely),
        (&["CP", "VBIF"], Rule::CpWaitsForMemory, Trust::Likely),
        (&["CP", "AHB"], Rule::CpWaitsOnAhb, Trust::Likely),
        (&["CP"], Rule::OnlyCpBusy, Trust::Certain),
        (&[], Rule::NoBlockBusy, Trust::Likely),
    ];
    for &(blocks, rule, trust) in cases {
        let status = blocks.iter().map(|b| bit(b)).fold(0, |a, b| a | b);
        let dump = stopped(At { ib1: (&draw(), 1), ib2: None, headers: [draw()[0], 0, 0] });
        let report = explain(dump.named("RBBM_STATUS", status).1);
        let busy = find(&report, FindingKind::Busy);
        assert_eq!(busy.rule, rule, "{blocks:?}");
        assert_eq!(busy.trust, trust, "{blocks:?}");
        assert!(saw_register(busy, "RBBM_STATUS", u64::from(status)));
    }
}

#[test]
fn old_generations_name_their_blocks_differently() {
    for (generation, status) in
        [(Generation::A3xx, 1 << 24 | 1 << 31), (Generation::A4xx, 1 << 24), (Generation::A5xx, 1 << 26)]
    {
        let builder = DevcoreBuilder::of(generation).ring(0x1000_0000, &[]);
        let report = explain((generation, builder).named("RBBM_STATUS", status).1);
        assert_eq!(find(&report, FindingKind::Busy).rule, Rule::ShaderProcessorsStuck, "{generation}");
    }
}

#[test]
fn other_rings_wait_too() {
    let dump = waiting().1.ring(RING + 0x1_0000, &pkt7(CP_NOP, &[1])).with_ring(|r| {
        (r.last_fence, r.retired_fence) = (Some(9), Some(6));
    });
    let report = explain(dump);
    let own = by_rule(&report, Rule::SubmitsOpen);
    assert_eq!(own.subject, Subject::Ring(0));
    assert_eq!((own.args.number("open"), own.args.number("oldest_fence")), (Some(1), Some(1)));
    let other = by_rule(&report, Rule::OtherRingWaits);
    assert_eq!((&other.subject, other.args.number("open")), (&Subject::Ring(1), Some(3)));
}

#[test]
fn fences_wrap_around() {
    let dump = waiting().1.with_ring(|r| (r.last_fence, r.retired_fence) = (Some(1), Some(u32::MAX)));
    let report = explain(dump);
    let progress = by_rule(&report, Rule::SubmitsOpen);
    assert_eq!((progress.args.number("open"), progress.args.number("oldest_fence")), (Some(2), Some(0)));
}

#[test]
fn the_gmu_and_a_gpu_that_never_came_up() {
    let gpu = Db::builtin();
    let space = gpu.gpu(Generation::A6xx).space(unwedge_hw::RegSpace::Gmu);
    let status = space.offset_of("GMU_AO_HOST_INTERRUPT_STATUS").unwrap();
    let report =
        explain(DevcoreBuilder::a6xx().gpu_initialized(false).ring(RING, &[]).gmu_register(status, 1));
    assert_eq!(by_rule(&report, Rule::GpuNotInitialized).trust, Trust::Certain);
    let watchdog = by_rule(&report, Rule::GmuWatchdog);
    assert!(saw_register(watchdog, "GMU_AO_HOST_INTERRUPT_STATUS", 1));
    assert_eq!(watchdog.evidence[0].section, "registers-gmu");
}

#[test]
fn an_error_among_the_hfi_messages() {
    // Queue 1: one acknowledgement of message 3 with error 2.
    let mut hfi = vec![0u32; 0x900];
    let queue = 6 + 12;
    hfi[queue + 1] = 0x6000_5000 + 0x400;
    hfi[queue + 3] = 64;
    hfi[0x100] = 126 | 4 << 8;
    hfi[0x101..0x104].copy_from_slice(&[3, 2, 0]);
    let history = [[-1; 8], [-1, -1, -1, -1, -1, -1, -1, 0]];
    let report = explain(waiting().1.gmu_hfi(&hfi, &history));
    let gmu = find(&report, FindingKind::Gmu);
    assert_eq!(gmu.rule, Rule::GmuRefusedMessage);
    assert_eq!((gmu.args.number("message"), gmu.args.number("error")), (Some(3), Some(2)));
    assert_eq!(gmu.evidence[0].section, "gmu-hfi");
}

#[test]
fn writes_stuck_in_the_mempool() {
    let gpu = Db::builtin();
    let end_2d = gpu.gpu(Generation::A6xx).reg_offset("CP_2D_EVENT_END").unwrap();
    let mut pool = vec![0u32; 0x2060];
    // PS (queue 5): chunk 0 of block 1 holds one write.
    pool[0x1800 + 40 + 5] = 1 << 3;
    pool[0x1800 + 56 + 5] = 1;
    pool[0x1800 + 8 + 5] = 1 << 3 | 1;
    pool[0x1800 + 24 + 5] = 1;
    pool[0x2018 + 5] = 1;
    let chunk = 1u128 | 0x24 << 2 | u128::from(end_2d) << 66;
    for i in 0..4 {
        pool[32 + i] = (chunk >> (32 * i)) as u32;
    }
    let blit = pkt7(0x2c, &[3]);
    let ib1 = [blit.clone(), draw()].concat();
    let dump = stopped(At { ib1: (&ib1, 1), ib2: None, headers: [draw()[0], blit[0], 0] });
    let report = explain(dump.1.indexed("CP_MEMPOOL", &pool));
    let queued = find(&report, FindingKind::QueuedWrites);
    let longest = queued.args.record("longest").unwrap();
    assert_eq!((longest.text("cluster"), longest.number("queued")), (Some("PS"), Some(1)));
    assert!(longest.text("next").is_some_and(|next| next.starts_with("CP_2D_EVENT_END")), "{longest:?}");
    assert_eq!(queued.trust, Trust::Likely);
    assert!(all_evidence(queued).contains("indexed-registers CP_MEMPOOL"));
    let suspect = find(&report, FindingKind::Suspect);
    assert_eq!(suspect.rule, Rule::BlitNotFinished);
    assert_eq!(suspect.subject, Subject::Work { kind: "blit", number: 0 });
}

#[test]
fn advice_names_the_driver_s_own_variable() {
    let gles = explain(waiting().1.process("deqp-gles31", "./deqp-gles31"));
    assert!(gles.advice.iter().all(|a| a.args.text("turnip").is_none()), "{:?}", gles.advice);
    let dump = stopped(At { ib1: (&draw(), 1), ib2: None, headers: [draw()[0], 0, 0] });
    let vulkan = explain(dump.1.process("deqp-vk", "./deqp-vk"));
    let serialize = vulkan.advice.iter().find(|a| a.id == AdviceId::SerializeWork).unwrap();
    assert_eq!(serialize.args.text("turnip"), Some("flushall,syncdraw"), "{:?}", vulkan.advice);
    assert_eq!(serialize.args.text("freedreno"), None);
}

#[test]
fn every_generation_s_complete_dump_is_explained() {
    for generation in Generation::ALL {
        let report = explain(DevcoreBuilder::complete(generation));
        assert!(report.hang.is_some(), "{generation}: {report:#?}");
        assert_eq!(report.gpu.family().as_deref(), Some(generation.name()));
    }
}

#[test]
fn broken_dumps_get_a_report_in_bounded_time() {
    let seeds: Vec<Vec<u8>> = Generation::ALL
        .iter()
        .map(|&g| DevcoreBuilder::complete(g).text())
        .chain([waiting().1.text()])
        .collect();
    let db = Db::builtin();
    let start = std::time::Instant::now();
    let mut explained = 0u32;
    for seed in 0..2000u64 {
        let text = mutate(&seeds[(seed % seeds.len() as u64) as usize], seed);
        let one = std::time::Instant::now();
        if let Ok(dump) = Devcore::read(&text) {
            explain_msm(&dump, &db);
            explained += 1;
        }
        assert!(one.elapsed().as_secs() < 5, "mutation {seed}");
        if start.elapsed().as_secs() > 20 {
            break;
        }
    }
    assert!(explained > 100);
}

#[test]
fn a_truncated_dump_explains_what_is_there() {
    let text = waiting().1.bo(FENCE, 4096, "", &[3]).text();
    let cut = text.windows(18).position(|w| w == b"indexed-registers:").unwrap();
    let dump = Devcore::read(&text[..cut]).unwrap();
    let report = explain_msm(&dump, &Db::builtin());
    assert_eq!(report.hang.unwrap().packet.as_deref(), Some("CP_WAIT_REG_MEM"));
    for end in (0..text.len()).step_by(97) {
        if let Ok(dump) = Devcore::read(&text[..end]) {
            explain_msm(&dump, &Db::builtin());
        }
    }
}

#[test]
fn buffers_that_call_each_other_without_end_are_bounded() {
    let call = indirect_buffer(IB2, 0x3_ffff);
    let calls: Vec<u32> = call.iter().copied().cycle().take(0x1_0000).collect();
    let dump = stopped(At { ib1: (&calls, 1), ib2: None, headers: [call[0]; 3] });
    let dump = (dump.0, dump.1.bo(IB2, 0x10_0000, "", &calls))
        .named64("CP_IB2_BASE", IB2)
        .named("CP_IB2_REM_SIZE", 0xffff)
        .named("CP_ROQ_AVAIL_IB2", 0xffff << 16);
    let start = std::time::Instant::now();
    let report = explain(dump.1);
    assert!(report.hang.is_some());
    assert!(start.elapsed().as_secs() < 30, "{:?}", start.elapsed());
}

#[test]
fn an_ib_whose_contents_are_not_in_the_dump() {
    let (_, mut dump) = (0, waiting().1.build());
    dump.bos.clear();
    let report = explain_msm(&dump, &Db::builtin());
    let hang = report.hang.as_ref().unwrap();
    assert_eq!(
        hang.levels.last().map(|l| (l.level, l.base)),
        Some((1, IB1)),
        "the registers still tell the place"
    );
    assert_eq!(hang.packet.as_deref(), Some("CP_WAIT_REG_MEM"), "from the SQE");
    assert_eq!((hang.iova, hang.trust, hang.draw), (None, Trust::Possible, None));
    assert_eq!(by_rule(&report, Rule::IbNotCaptured).args.number("base"), Some(IB1));
}

#[test]
fn both_threads_of_an_a7xx() {
    let mut sqe = [0u32; 51];
    sqe[1] = pkt7(CP_WAIT_FOR_IDLE, &[])[0];
    let builder = DevcoreBuilder::a7xx().ring(RING, &pkt7(CP_NOP, &[])).indexed("CP_BV_SQE_STAT_ADDR", &sqe);
    let report = explain(builder);
    let bv = find(&report, FindingKind::InFlight);
    assert_eq!((bv.rule, bv.args.text("packet")), (Rule::BvThreadAt, Some("CP_WAIT_FOR_IDLE")));
    assert!(bv.evidence[0].section.contains("CP_BV_SQE_STAT"));
}

#[test]
fn a_stop_inside_a_draw_state() {
    let state_at = IB2 + 0x800;
    let group = [pkt4(0x8600, &[1]), pkt7(CP_NOP, &[9])].concat();
    let set = pkt7(0x43, &[group.len() as u32 | 7 << 20, state_at as u32, (state_at >> 32) as u32]);
    let ib1 = [set.clone(), draw()].concat();
    let headers = [pkt7(CP_NOP, &[9])[0], draw()[0], set[0]];
    let (generation, builder) = stopped(At { ib1: (&ib1, 0), ib2: None, headers });
    let dump = (generation, builder.bo(state_at, 64, "", &group))
        .named64("CP_SDS_BASE", state_at)
        .named("CP_SDS_REM_SIZE", 0)
        .named("CP_SDS_DWORDS", group.len() as u32)
        .named("CP_ROQ_AVAIL_SDS", 2 << 16);
    let report = explain(dump.1);
    let hang = report.hang.as_ref().unwrap();
    let last = hang.innermost().unwrap();
    assert_eq!((last.level, last.base, last.range.0), (3, state_at, 2));
    assert_eq!((hang.packet.as_deref(), hang.iova), (Some("CP_NOP"), Some(state_at + 8)));
    assert_eq!(hang.trust, Trust::Certain);
    assert_eq!(hang.draw, Some(0));
}

#[test]
fn a_queue_that_is_a_few_dwords_ahead_of_the_sqe() {
    let ib1 = [pkt7(CP_NOP, &[1]), draw(), pkt7(CP_SET_MARKER, &[1])].concat();
    // The marker's header has left the queue, and the SQE is still in the draw.
    let headers = [draw()[0], pkt7(CP_NOP, &[1])[0], 0];
    let report = explain(stopped(At { ib1: (&ib1, 1), ib2: None, headers }).1);
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.iova, hang.trust, hang.draw), (Some(IB1 + 8), Trust::Certain, Some(0)));
}

#[test]
fn a_stop_in_the_ring_behind_a_finished_ib() {
    let ib1 = pkt7(CP_NOP, &[1]);
    let wait = wait_for_fence();
    let ring = [pkt7(CP_NOP, &[2]), indirect_buffer(IB1, ib1.len() as u32), wait.clone(), pkt7(CP_NOP, &[3])]
        .concat();
    let mut dump =
        stopped(At { ib1: (&ib1, 0), ib2: None, headers: [wait[0], indirect_buffer(0, 0)[0], 0] }).1.build();
    dump.rings[0].data = Some(unwedge_capture::msm::Blob::encode(&ring));
    dump.rings[0].wptr = Some(ring.len() as u32);
    dump.rings[0].rptr = Some(13);
    for register in &mut dump.registers {
        let rptr = offset(Generation::A6xx, "CP_RB_RPTR");
        if register.reg == rptr {
            register.value = 15;
        }
    }
    // Two of the 15 dwords are still in the queue.
    let report = explain_msm(&dump, &Db::builtin());
    let hang = report.hang.as_ref().unwrap();
    assert_eq!((hang.levels.len(), hang.packet.as_deref()), (1, Some("CP_WAIT_REG_MEM")));
    assert_eq!((hang.iova, hang.trust), (Some(RING + 6 * 4), Trust::Certain));
}

#[test]
fn an_unconfirmed_sqe_register_is_weak_evidence_of_corruption() {
    let mut dump = stopped(At { ib1: (&draw(), 1), ib2: None, headers: [draw()[0], 0, 0] }).1.build();
    let mut sqe = [0u32; 51];
    sqe[1] = 0x1234_5678;
    dump.indexed[0].data = Some(unwedge_capture::msm::Blob::encode(&sqe));
    let report = explain_msm(&dump, &Db::builtin());
    assert_eq!(find(&report, FindingKind::CorruptStream).trust, Trust::Possible);
    assert_eq!(report.hang.as_ref().unwrap().trust, Trust::Possible);
}
