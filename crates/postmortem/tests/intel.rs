//! Hangs of Intel GPUs, made up: the findings of each, by their data.

mod common;

use common::{by_rule, rules, saw_register};
use unwedge_capture::intel::RingRegister;
use unwedge_capture::{i915::ErrorState, xe::XeDevcore};
use unwedge_postmortem::{
    AdviceId, Arg, Fact, Finding, FindingKind, GpuIdentity, Report, Rule, Subject, Trust, explain_i915,
    explain_xe,
};
use unwedge_testkit::intel::{
    EngineState, MI_BATCH_BUFFER_END, TestDevice, batch_buffer_start, pipe_control, primitive,
    semaphore_wait, store_data, stream,
};
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::{i915, xe};

const BATCH: u64 = 0x1_0010_0000;
const RING: u64 = 0x10_0000;

fn i915_report(builder: &i915::ErrorStateBuilder) -> Report {
    explain_i915(&ErrorState::read(&builder.text()).unwrap())
}

fn xe_report(builder: &xe::DevcoreBuilder) -> Report {
    explain_xe(&XeDevcore::read(&builder.text()).unwrap())
}

fn verdict(report: &Report) -> &Finding {
    let first = report.findings.first().unwrap();
    assert_eq!(first.kind, FindingKind::HangPoint, "{:#?}", report.findings);
    first
}

fn of(report: &Report, kind: FindingKind) -> Vec<&Finding> {
    report.findings.iter().filter(|f| f.kind == kind).collect()
}

/// Texts of a list.
fn texts<'f>(finding: &'f Finding, name: &str) -> Vec<&'f str> {
    let text = |arg: &'f Arg| match arg {
        Arg::Text(text) => Some(&**text),
        _ => None,
    };
    finding.args.list(name).iter().filter_map(text).collect()
}

fn rcs0() -> Subject {
    Subject::Engine("rcs0".to_owned())
}

/// An engine that stopped in a batch its ring started.
fn in_batch(name: &str, batch: &[u32], dword: usize, ahead: u64) -> EngineState {
    let ring = stream(&[&[0, 0], &batch_buffer_start(BATCH), &[0, 0, 0]]);
    EngineState::new(name)
        .ring(RING, &ring, 0x14, 0x20)
        .set(RingRegister::Acthd, BATCH + 4 * dword as u64 + ahead)
        .set(RingRegister::Ipehr, batch[dword].into())
        .set(RingRegister::Instdone, 0xffff_fffe)
        .batch(BATCH, batch)
        .process("game", 1234)
        .hung(1)
}

fn device(name: &str) -> TestDevice {
    TestDevice::named(name)
}

/// Generations that i915 drives.
fn old() -> impl Iterator<Item = TestDevice> {
    TestDevice::ALL.into_iter().filter(|d| d.version.0 < 20)
}

#[test]
fn a_semaphore_that_nobody_signals() {
    for device in old() {
        let flag = BATCH + 0x10_0000;
        let wait = semaphore_wait(flag, 5, device);
        let batch = stream(&[&pipe_control(1 << 20), &wait, &[MI_BATCH_BUFFER_END]]);
        let engine = in_batch("rcs0", &batch, 6, 4 * wait.len() as u64).user(flag, &[3]);
        let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(engine));
        let first = verdict(&report);
        assert_eq!((first.rule, &first.subject), (Rule::EngineAtCommand, &rcs0()), "{}", device.name);
        assert_eq!(first.args.text("command"), Some("MI_SEMAPHORE_WAIT"), "{}: {first:#?}", device.name);
        assert!(first.trust >= Trust::Likely, "{}: {first:#?}", device.name);
        let wait = by_rule(&report, Rule::SemaphoreNotSignaled);
        let (relation, reference) = (wait.args.text("relation"), wait.args.number("reference"));
        assert_eq!((relation, reference, wait.args.number("value")), (Some(">="), Some(5), Some(3)));
        assert_eq!(wait.args.number("address"), Some(flag), "{}", device.name);
        let held = |e: &unwedge_postmortem::Evidence| {
            e.iova == Some(flag) && matches!(&e.fact, Fact::Dwords { words, .. } if words == &[3])
        };
        assert!(wait.evidence.iter().any(held), "{}: {wait:#?}", device.name);
        assert_eq!(
            report.causes.first().map(|&i| report.findings[i].rule),
            Some(wait.rule),
            "{}",
            device.name
        );
        let point = report.hang.as_ref().unwrap();
        assert_eq!((point.ring_name.as_deref(), point.iova), (Some("rcs0"), Some(BATCH + 24)));
        assert!(matches!(report.gpu, GpuIdentity::Intel { .. }), "{:?}", report.gpu);
    }
}

/// Work is counted up to the command that is named, which may be far before ACTHD; another one with its header, right after
/// ACTHD, is reported.
#[test]
fn work_before_a_stop_far_before_acthd() {
    let device = device("tgl");
    let flush = pipe_control(1 << 20);
    let stores =
        [store_data(BATCH + 0x800, 1), store_data(BATCH + 0x804, 2), store_data(BATCH + 0x808, 3)].concat();
    let batch = stream(&[&flush, &stores, &primitive(3), &flush, &[MI_BATCH_BUFFER_END]]);
    let draw = 6 + stores.len();
    let report = |acthd: usize| {
        let engine = in_batch("rcs0", &batch, 0, 4 * acthd as u64);
        i915_report(&i915::ErrorStateBuilder::new(device).engine(engine))
    };
    let far = report(draw + 2);
    let first = verdict(&far);
    assert_eq!((first.rule, first.trust), (Rule::EngineAtCommand, Trust::Possible), "{first:#?}");
    assert_eq!(first.args.text("command"), Some("PIPE_CONTROL"));
    assert_eq!((first.args.number("bytes_ahead"), first.args.number("between")), (Some(80), Some(3)));
    let next = (first.args.number("next_after"), first.args.number("next_address"));
    assert_eq!(next, (Some(20), Some(BATCH + 0x64)));
    assert_eq!(far.hang.as_ref().map(|h| (h.iova, h.draw)), Some((Some(BATCH), None)));
    assert_eq!(by_rule(&far, Rule::StallWithoutWork).trust, Trust::Possible);
    assert!(!rules(&far).contains(&Rule::WorkBeforeStop), "{:?}", rules(&far));
    // After the draw the nearest one is the one that counts, and nothing is doubtful.
    let near = report(draw + 7 + 6);
    let first = verdict(&near);
    assert_eq!((first.trust, first.args.number("draws")), (Trust::Likely, Some(1)), "{first:#?}");
    assert_eq!((first.args.get("next_after"), first.args.get("between")), (None, None));
    // INSTDONE of the test kit has nothing left to do.
    by_rule(&near, Rule::StallWithUnitsIdle);
    assert_eq!(by_rule(&near, Rule::WorkBeforeStop).args.number("work"), Some(1));
}

#[test]
fn a_wait_whose_memory_is_not_there_is_not_zero() {
    let device = device("tgl");
    let batch = stream(&[&semaphore_wait(0xdead_0000, 5, device), &[MI_BATCH_BUFFER_END]]);
    let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(in_batch("rcs0", &batch, 0, 8)));
    let wait = by_rule(&report, Rule::SemaphoreValueMissing);
    assert!(wait.args.get("value").is_none() && wait.trust <= Trust::Likely, "{wait:#?}");
}

#[test]
fn a_fault_past_the_end_of_a_buffer() {
    for device in old().filter(|d| d.version.0 >= 9) {
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let held = BATCH + 0x10_0000;
        let fault = held + 0x1000;
        let engine = in_batch("rcs0", &batch, 0, 0).user(held, &[1; 1024]).set(RingRegister::Fault, 1);
        let builder = i915::ErrorStateBuilder::new(device)
            .engine(engine)
            .fault((fault >> 12) as u32, (fault >> 44) as u32 & 0xf);
        let report = i915_report(&builder);
        let found = by_rule(&report, Rule::PageFaultOverrun);
        assert_eq!(found.args.number("address"), Some(fault), "{}", device.name);
        let near = found.args.record("near").unwrap();
        assert_eq!((near.number("base"), near.number("distance")), (Some(held), Some(0)), "{}", device.name);
    }
}

/// What the GuC captures has the registers of a fault with each engine, under other names.
#[test]
fn a_fault_that_the_guc_captured() {
    for device in old().filter(|d| d.version.0 >= 12) {
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let engine = in_batch("rcs0", &batch, 0, 0).set(RingRegister::Fault, 1);
        let builder =
            i915::ErrorStateBuilder::new(device).engine(engine).fault(0xfff1_2345, 0x17).guc_capture();
        let report = i915_report(&builder);
        let faults = of(&report, FindingKind::Fault);
        let [fault] = faults[..] else { panic!("{}: {report:#?}", device.name) };
        let place = (fault.args.number("address"), fault.args.text("space"));
        assert_eq!(place, (Some(0x7fff_1234_5000), Some("GGTT")), "{}", device.name);
        assert_eq!((&fault.subject, fault.trust), (&Subject::Memory(0x7fff_1234_5000), Trust::Certain));
        assert!(saw_register(fault, "GEN12_FAULT_TLB_DATA1", 0x17), "{:?}", fault.evidence);
    }
}

/// One register for all engines: each engine has the same value, and the bits in it say whose fault it is. Its bit 11 is none
/// of those that say the space of the address.
#[test]
fn one_fault_register_is_one_fault() {
    const OTHER: u64 = 0x7fff_0000;
    for (device, id, who) in
        [("skl", 4, Some("bcs0")), ("icl", 4, Some("bcs0")), ("skl", 0, Some("rcs0")), ("tgl", 2, None)]
    {
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let value = 1 | 0x20 << 3 | 1 << 11 | id << 12;
        let render = in_batch("rcs0", &batch, 0, 0).set(RingRegister::Fault, value);
        let copy = EngineState::new("bcs0").batch(OTHER, &batch).set(RingRegister::Fault, value);
        let fault = OTHER + 0x3000;
        let builder = i915::ErrorStateBuilder::new(self::device(device)).engine(render).engine(copy);
        let report = i915_report(&builder.clone().fault((fault >> 12) as u32, 0));
        let faults = of(&report, FindingKind::Fault);
        let [found] = faults[..] else { panic!("{device}: {report:#?}") };
        let engine = who.map(|name| Subject::Engine(name.to_owned()));
        assert_eq!(found.subject, engine.clone().unwrap_or(Subject::Memory(fault)), "{device}");
        let place = (found.args.number("address"), found.args.text("space"));
        assert_eq!(place, (Some(fault), Some("PPGTT")), "{device}");
        let near = found.args.record("near").and_then(|near| near.number("base"));
        let expected = match who {
            Some("rcs0") => (Rule::PageFaultOutside, None),
            _ => (Rule::PageFaultOverrun, Some(OTHER)),
        };
        assert_eq!((found.rule, near), expected, "{device}");
        assert_eq!(found.args.number("engine_id"), Some(id), "{device}");
        let report = i915_report(&builder);
        let without = of(&report, FindingKind::Fault)[0];
        assert_eq!(without.rule, Rule::PageFaultWithoutAddress, "{device}");
        assert_eq!(without.subject, engine.unwrap_or(Subject::Gpu), "{device}");
    }
}

#[test]
fn a_batch_without_an_end() {
    let batch = stream(&[&store_data(BATCH, 1), &[0; 200]]);
    let report =
        i915_report(&i915::ErrorStateBuilder::new(device("skl")).engine(in_batch("rcs0", &batch, 100, 0)));
    let zeros = by_rule(&report, Rule::ZerosInStream);
    assert!(zeros.args.number("dwords") >= Some(16), "{zeros:#?}");
}

#[test]
fn an_overwritten_batch() {
    let batch = stream(&[&store_data(BATCH, 1), &[0xffff_ffff; 20]]);
    let engine = in_batch("rcs0", &batch, 4, 0);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("icl")).engine(engine));
    let header = by_rule(&report, Rule::HeaderNotCommand);
    assert_eq!(header.args.number("header"), Some(0xffff_ffff));
    assert!(saw_register(header, "IPEHR", 0xffff_ffff), "{header:#?}");
    assert_eq!(by_rule(&report, Rule::FillInStream).args.text("fill"), Some("ones"));
}

#[test]
fn threads_that_do_not_end() {
    let batch = stream(&[&primitive(3), &pipe_control(1 << 20), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch("rcs0", &batch, 7, 16).register("ROW_INSTDONE[0][1]", 0xffff_ffef);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("tgl")).engine(engine));
    assert_eq!(verdict(&report).args.text("command"), Some("PIPE_CONTROL"));
    let busy = of(&report, FindingKind::Busy);
    assert!(busy.iter().any(|f| texts(f, "units").iter().any(|unit| unit.ends_with("[0][1]"))), "{busy:#?}");
    assert_eq!(by_rule(&report, Rule::StallWaitsForWork).args.number("flags"), Some(1 << 20));
}

#[test]
fn a_ring_that_was_read_to_its_end() {
    let report = |acthd| {
        let engine =
            EngineState::new("bcs0").ring(RING, &[0; 16], 0x20, 0x20).set(RingRegister::Acthd, acthd).hung(1);
        i915_report(&i915::ErrorStateBuilder::new(device("kbl")).engine(engine))
    };
    for (acthd, rule) in [(RING + 0x20, Rule::EngineAtCommand), (RING + 0x10_0000, Rule::EngineRingDrained)] {
        let report = report(acthd);
        let first = verdict(&report);
        assert_eq!((first.rule, &first.subject), (rule, &Subject::Engine("bcs0".to_owned())), "{first:#?}");
    }
}

#[test]
fn a_batch_that_was_not_captured() {
    let engine = EngineState::new("rcs0")
        .set(RingRegister::Acthd, 0x7777_0000)
        .set(RingRegister::Ipehr, 0x7a00_0004)
        .hung(1);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("adlp")).engine(engine));
    let first = verdict(&report);
    assert_eq!((first.rule, first.args.number("acthd")), (Rule::EngineInMissingMemory, Some(0x7777_0000)));
    assert_eq!(by_rule(&report, Rule::RingAndBatchMissing).subject, rcs0());
    assert!(report.advice.iter().any(|a| a.id == AdviceId::IntelDebugCaptureAll), "{:?}", report.advice);
}

/// The context image that a layout expands to is fine; one that was overwritten is named with its place.
#[test]
fn a_context_that_was_overwritten() {
    use unwedge_hw::intel::platform::{IntelDriver, Platform};
    use unwedge_intel::lrc::{LrcLayout, LrcOwner};
    for device in old() {
        let Some(platform) = Platform::by_pci_id(device.pci_id) else {
            panic!("{} has no platform", device.name)
        };
        let target = LrcOwner {
            driver: IntelDriver::I915,
            version: platform.version(),
            engine: "rcs0".parse().unwrap(),
        };
        let Ok(layout) = LrcLayout::of(target) else { continue };
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let mut image = vec![0; 1024];
        image.extend(layout.expand());
        let whole = in_batch("rcs0", &batch, 0, 0).context(0x20_0000, &image);
        let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(whole));
        assert!(!rules(&report).contains(&Rule::ContextCorrupted), "{}: {:?}", device.name, rules(&report));
        image[1024 + 8..1024 + 24].fill(0x6b6b_6b6b);
        let broken = in_batch("rcs0", &batch, 0, 0).context(0x20_0000, &image);
        let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(broken));
        let corrupted = by_rule(&report, Rule::ContextCorrupted);
        assert_eq!(corrupted.subject, rcs0());
        let filled = |damage: &Arg| matches!(damage, Arg::Record(range) if range.number("value") == Some(0x6b6b_6b6b) && range.text("damage") == Some("fill"));
        assert!(corrupted.args.list("damage").iter().any(filled), "{}: {corrupted:#?}", device.name);
    }
}

#[test]
fn xe_waits_in_a_second_batch() {
    for device in TestDevice::ALL.into_iter().filter(|d| d.version >= (12, 0)) {
        for era in xe::XeEra::ALL {
            let builder = xe::DevcoreBuilder::complete(device, era);
            let report = xe_report(&builder);
            assert_eq!(verdict(&report).subject, rcs0(), "{} {era:?}", device.name);
            let wedged = report.advice.iter().any(|advice| advice.id == AdviceId::XeWedgedMode);
            assert_eq!(wedged, era >= xe::XeEra::V6_11, "wedged_mode came with 6.11");
            let named = String::from_utf8_lossy(&builder.text()).contains("game");
            let process = report.process.name.as_deref().unwrap_or_default();
            assert_eq!(process.contains("game"), named, "{} {era:?}: {process}", device.name);
        }
    }
}

#[test]
fn complete_error_states_of_every_era() {
    for device in old() {
        for era in i915::I915Era::ALL {
            let report = i915_report(&i915::ErrorStateBuilder::complete(device, era));
            let first = verdict(&report);
            assert_eq!(first.subject, rcs0(), "{} {era:?}", device.name);
            assert_eq!(
                first.args.text("command"),
                Some("3DPRIMITIVE"),
                "{} {era:?}: {first:#?}",
                device.name
            );
            for finding in &report.findings {
                assert!(
                    !finding.evidence.is_empty()
                        || finding.trust == Trust::Certain
                        || finding.kind == FindingKind::Suspect,
                    "{finding:?}"
                );
            }
        }
    }
}

/// INSTDONE registers under the names of every way to print them: their units are reported, and those of a register that nobody
/// knows are not taken for done.
#[test]
fn units_of_registers_under_all_their_names() {
    let names = [
        ("tgl", "SC_INSTDONE", "SC_INSTDONE"),
        ("tgl", "GEN7_SC_INSTDONE", "SC_INSTDONE"),
        ("dg2", "GEN12_SC_INSTDONE_EXTRA", "SC_INSTDONE_EXTRA"),
        ("dg2", "GEN12_SC_INSTDONE_EXTRA2", "SC_INSTDONE_EXTRA2"),
        ("dg2", "GEOM_SVGUNIT_INSTDONE[0][1]", "INSTDONE_GEOM"),
        ("dg2", "XEHPG_INSTDONE_GEOM_SVG[0][1]", "INSTDONE_GEOM"),
        ("dg2", "INSTDONE_GEOM_SVGUNIT[1]", "INSTDONE_GEOM"),
        ("adlp", "GEN8_SAMPLER_INSTDONE[0][1]", "SAMPLER_INSTDONE"),
        ("adlp", "GEN8_ROW_INSTDONE[0][1]", "ROW_INSTDONE"),
    ];
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let busy = |device, name: &str, value: u32, own: u64| {
        let engine =
            in_batch("rcs0", &batch, 0, 0).register(name, value.into()).set(RingRegister::Instdone, own);
        let report = i915_report(&i915::ErrorStateBuilder::new(self::device(device)).engine(engine));
        let found = of(&report, FindingKind::Busy);
        let [found] = found[..] else { panic!("{device} {name}: {report:#?}") };
        found.clone()
    };
    for (device, name, of) in names {
        let (major, release) = self::device(device).version;
        let register = unwedge_hw::intel::IntelGpu::of(major, release).register_named(of).unwrap();
        let unit = unwedge_stream::intel::instdone::busy(register, 0).next().unwrap();
        let index = name.find('[').map_or("", |at| &name[at..]);
        let found = busy(device, name, !(1 << unit.bit), 0xffff_ffff);
        assert_eq!(texts(&found, "units"), [format!("{}{index}", unit.unit())], "{device} {name}");
    }
    let found = busy("tgl", "NEW_INSTDONE", 0xffff_fffe, 0xffff_ffff);
    assert_eq!(
        (found.rule, texts(&found, "unknown_registers")),
        (Rule::UnknownUnitsNotDone, vec!["NEW_INSTDONE"])
    );
    let (major, release) = device("skl").version;
    let own = unwedge_hw::intel::IntelGpu::of(major, release).register_named("INSTDONE_1").unwrap();
    let streamer = unwedge_stream::intel::instdone::busy(own, 0).find(|unit| unit.unit() == "CS").unwrap();
    let found = busy("skl", "NEW_INSTDONE[0][0]", 0xffff_fffe, !(1 << streamer.bit));
    assert_eq!(found.rule, Rule::UnitsNotDone, "not that it is only the streamer: {found:?}");
    assert_eq!(texts(&found, "unknown_registers"), ["NEW_INSTDONE[0][0]"]);
    assert!(saw_register(&found, "NEW_INSTDONE[0][0]", 0xffff_fffe), "{found:?}");
    assert_eq!(busy("tgl", "NEW_INSTDONE", u32::MAX, 0xffff_ffff).rule, Rule::AllUnitsDone);
}

/// Before 4.9 the render engine's were among the registers of the device.
#[test]
fn units_of_registers_listed_with_the_device() {
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch("rcs0", &batch, 0, 0).register("ROW_INSTDONE[0][0]", 0xfffe_ffff);
    let builder = i915::ErrorStateBuilder::new(device("skl")).era(i915::I915Era::V4_4).engine(engine);
    let state = ErrorState::read(&builder.text()).map(|s| s.diagnostics).unwrap();
    assert!(state.is_empty(), "{state:?}");
    let report = i915_report(&builder);
    let busy = of(&report, FindingKind::Busy)[0];
    let has_units = |e: &unwedge_postmortem::Evidence| matches!(&e.fact, Fact::Register { name, value: 0xfffe_ffff, fields } if name == "INSTDONE_3" && !fields.is_empty());
    assert!(busy.evidence.iter().any(has_units), "{busy:?}");
}

/// Cut anywhere, broken anyhow: there is a report, and nothing panics.
#[test]
fn cut_and_broken_dumps() {
    let i915 = i915::ErrorStateBuilder::complete(device("tgl"), i915::I915Era::V6_12).text();
    let xe = xe::DevcoreBuilder::complete(device("bmg"), xe::XeEra::V6_14).text();
    for sixteenth in 0..16 {
        if let Ok(dump) = ErrorState::read(&i915[..i915.len() * sixteenth / 16]) {
            explain_i915(&dump);
        }
        if let Ok(dump) = XeDevcore::read(&xe[..xe.len() * sixteenth / 16]) {
            explain_xe(&dump);
        }
    }
    for seed in 0..150 {
        if let Ok(dump) = ErrorState::read(&mutate(&i915, seed)) {
            assert_ne!(explain_i915(&dump).gpu, GpuIdentity::Unknown);
        }
        if let Ok(dump) = XeDevcore::read(&mutate(&xe, seed)) {
            assert_ne!(explain_xe(&dump).gpu, GpuIdentity::Unknown);
        }
    }
}

/// Options of the driver are no use where the device does not answer, or where somebody else has to end a wait.
#[test]
fn options_of_mesa_are_advised_where_mesa_can_help() {
    let of_mesa = [
        AdviceId::IntelDebugCaptureAll,
        AdviceId::IntelDebugSync,
        AdviceId::IntelDebugBatches,
        AdviceId::IntelDebugShaders,
    ];
    for hang in unwedge_testkit::hangs::hangs(unwedge_testkit::hangs::HangRun::BOTH[0]) {
        if !hang.name.starts_with("i915") {
            continue;
        }
        let state = ErrorState::read(&hang.files[0].1).unwrap();
        let report = explain_i915(&state);
        let mesa = report.advice.iter().any(|advice| of_mesa.contains(&advice.id));
        let useless = ["semaphore", "does not answer", "not read", "display"];
        if useless.iter().any(|what| hang.name.contains(what)) {
            assert!(!mesa, "{}: {:?}", hang.name, report.advice);
        }
        assert!(
            report.advice.iter().any(|advice| advice.id == AdviceId::I915NextErrorState),
            "{}",
            hang.name
        );
    }
}
