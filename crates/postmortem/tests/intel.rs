//! Hangs of Intel GPUs, made up: what is said of each.

use unwedge_capture::intel::RingRegister;
use unwedge_capture::{i915::ErrorState, xe::XeDevcore};
use unwedge_postmortem::{Finding, FindingKind, GpuIdentity, Report, Trust, explain_i915, explain_xe};
use unwedge_testkit::intel::{
    Device, EngineState, MI_BATCH_BUFFER_END, batch_buffer_start, pipe_control, primitive, semaphore_wait,
    store_data, stream,
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

fn titles(report: &Report) -> String {
    report.findings.iter().map(|f| format!("{:?} {:?} {} | {}\n", f.kind, f.trust, f.title, f.why)).collect()
}

/// An engine that stands in a batch its ring started.
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

fn device(name: &str) -> Device {
    Device::named(name)
}

/// Generations that i915 drives.
fn old() -> impl Iterator<Item = Device> {
    Device::ALL.into_iter().filter(|d| d.version.0 < 20)
}

#[test]
fn a_semaphore_that_nobody_signals() {
    for device in old() {
        let flag = BATCH + 0x10_0000;
        let wait = semaphore_wait(flag, 5, device);
        let batch = stream(&[&pipe_control(1 << 20), &wait, &[MI_BATCH_BUFFER_END]]);
        let engine = in_batch("rcs0", &batch, 6, 4 * wait.len() as u64).user(flag, &[3]);
        let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(engine));
        let said = titles(&report);
        let first = verdict(&report);
        assert!(first.title.contains("MI_SEMAPHORE_WAIT"), "{}: {said}", device.name);
        assert!(first.trust >= Trust::Likely, "{}: {said}", device.name);
        let wait = of(&report, FindingKind::CpWait)[0];
        assert!(wait.title.contains(">= 0x5") && wait.title.contains("holds 0x3"), "{}: {said}", device.name);
        let point = report.hang.as_ref().unwrap();
        assert_eq!((point.ring_name.as_deref(), point.iova), (Some("rcs0"), Some(BATCH + 24)), "{said}");
        assert!(matches!(report.gpu, GpuIdentity::Intel { .. }), "{:?}", report.gpu);
    }
}

/// What is counted is counted up to the command that is named, which may stand far in front of ACTHD; another one with its
/// header, right behind ACTHD, is told.
#[test]
fn what_comes_before_a_stop_far_in_front_of_acthd() {
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
    let said = titles(&far);
    let first = verdict(&far);
    assert!(
        first.title.ends_with("batch 0x100100000+0x0: PIPE_CONTROL") && first.trust == Trust::Possible,
        "{said}"
    );
    assert!(first.why.contains("80 bytes before ACTHD with 3 commands between them"), "{said}");
    assert!(first.why.contains("20 bytes behind ACTHD, at 0x100100064"), "{said}");
    assert_eq!(far.hang.as_ref().map(|h| (h.iova, h.draw)), Some((Some(BATCH), None)), "{said}");
    let wait = of(&far, FindingKind::CpWait)[0];
    assert!(
        wait.trust == Trust::Possible && wait.why.contains("no draw or dispatch stands before it"),
        "{said}"
    );
    assert!(!far.findings.iter().any(|f| f.title.contains("on the way to the stop")), "{said}");
    // Behind the draw the nearest one is the one that counts, and nothing is doubtful.
    let near = report(draw + 7 + 6);
    let first = verdict(&near);
    assert!(first.trust == Trust::Likely && first.title.contains(", 1 draws"), "{}", titles(&near));
    assert!(!first.why.contains("behind ACTHD"), "{}", titles(&near));
    assert!(
        of(&near, FindingKind::CpWait)[0].why.contains("the draw or dispatch before it"),
        "{}",
        titles(&near)
    );
}

#[test]
fn a_wait_whose_memory_is_not_there_is_not_zero() {
    let device = device("tgl");
    let batch = stream(&[&semaphore_wait(0xdead_0000, 5, device), &[MI_BATCH_BUFFER_END]]);
    let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(in_batch("rcs0", &batch, 0, 8)));
    let wait = of(&report, FindingKind::CpWait)[0];
    assert!(wait.title.contains("does not hold it") && wait.trust <= Trust::Likely, "{}", titles(&report));
}

#[test]
fn a_fault_behind_a_buffer() {
    for device in old().filter(|d| d.version.0 >= 9) {
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let held = BATCH + 0x10_0000;
        let fault = held + 0x1000;
        let engine = in_batch("rcs0", &batch, 0, 0).user(held, &[1; 1024]).set(RingRegister::Fault, 1);
        let builder = i915::ErrorStateBuilder::new(device)
            .engine(engine)
            .fault((fault >> 12) as u32, (fault >> 44) as u32 & 0xf);
        let report = i915_report(&builder);
        let said = titles(&report);
        let faults = of(&report, FindingKind::Fault);
        assert!(faults.iter().any(|f| f.title.contains(&format!("{fault:#x}"))), "{}: {said}", device.name);
        assert!(faults.iter().any(|f| f.why.contains("behind the end of")), "{}: {said}", device.name);
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
        let [fault] = faults[..] else { panic!("{}: {}", device.name, titles(&report)) };
        assert_eq!(fault.title, "page fault at 0x7fff12345000 in the global table (GGTT)", "{}", device.name);
        assert_eq!(fault.trust, Trust::Certain);
        let data1 = "GEN12_FAULT_TLB_DATA1 = 0x00000017";
        assert!(fault.evidence.iter().any(|e| prose(e) == data1), "{:?}", fault.evidence);
    }
}

/// One register for all engines: each engine has the same value, and the bits in it say whose fault it is. Its bit 11 is none
/// of those that say the space of the address.
#[test]
fn one_fault_register_is_one_fault() {
    const OTHER: u64 = 0x7fff_0000;
    for (device, id, who) in
        [("skl", 4, " of bcs0"), ("icl", 4, " of bcs0"), ("skl", 0, " of rcs0"), ("tgl", 2, "")]
    {
        let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
        let value = 1 | 0x20 << 3 | 1 << 11 | id << 12;
        let render = in_batch("rcs0", &batch, 0, 0).set(RingRegister::Fault, value);
        let copy = EngineState::new("bcs0").batch(OTHER, &batch).set(RingRegister::Fault, value);
        let fault = OTHER + 0x3000;
        let builder = i915::ErrorStateBuilder::new(self::device(device)).engine(render).engine(copy);
        let report = i915_report(&builder.clone().fault((fault >> 12) as u32, 0));
        let said = titles(&report);
        let faults = of(&report, FindingKind::Fault);
        let [found] = faults[..] else { panic!("{device}: {said}") };
        let title = format!("page fault{who} at {fault:#x} in the context's address space (PPGTT)");
        assert_eq!(found.title, title, "{device}: {said}");
        let near =
            if who == " of rcs0" { "in none of the buffers" } else { "behind the end of batch 0x7fff0000" };
        assert!(found.why.contains(near), "{device}: {said}");
        assert!(found.why.contains(&format!("engine id {id}")), "{device}: {said}");
        let report = i915_report(&builder);
        assert_eq!(of(&report, FindingKind::Fault)[0].title, format!("page fault{who}"), "{device}");
    }
}

#[test]
fn a_batch_without_an_end() {
    let batch = stream(&[&store_data(BATCH, 1), &[0; 200]]);
    let report =
        i915_report(&i915::ErrorStateBuilder::new(device("skl")).engine(in_batch("rcs0", &batch, 100, 0)));
    let said = titles(&report);
    assert!(of(&report, FindingKind::CorruptStream).iter().any(|f| f.title.contains("MI_NOOP")), "{said}");
}

#[test]
fn an_overwritten_batch() {
    let batch = stream(&[&store_data(BATCH, 1), &[0xffff_ffff; 20]]);
    let engine = in_batch("rcs0", &batch, 4, 0);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("icl")).engine(engine));
    let corrupt = of(&report, FindingKind::CorruptStream);
    assert!(corrupt.iter().any(|f| f.title.contains("is no command")), "{}", titles(&report));
    assert!(corrupt.iter().any(|f| f.title.contains("all ones")), "{}", titles(&report));
}

#[test]
fn threads_that_do_not_end() {
    let batch = stream(&[&primitive(3), &pipe_control(1 << 20), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch("rcs0", &batch, 7, 16).register("ROW_INSTDONE[0][1]", 0xffff_ffef);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("tgl")).engine(engine));
    let said = titles(&report);
    assert!(verdict(&report).title.contains("PIPE_CONTROL"), "{said}");
    assert!(of(&report, FindingKind::Busy).iter().any(|f| f.title.contains("[0][1]")), "{said}");
    assert!(of(&report, FindingKind::CpWait).iter().any(|f| f.title.contains("CS stall")), "{said}");
}

#[test]
fn a_ring_that_was_read_to_its_end() {
    let engine = EngineState::new("bcs0")
        .ring(RING, &[0; 16], 0x20, 0x20)
        .set(RingRegister::Acthd, RING + 0x20)
        .hung(1);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("kbl")).engine(engine));
    assert!(verdict(&report).title.starts_with("bcs0"), "{}", titles(&report));
}

#[test]
fn a_batch_that_was_not_captured() {
    let engine = EngineState::new("rcs0")
        .set(RingRegister::Acthd, 0x7777_0000)
        .set(RingRegister::Ipehr, 0x7a00_0004)
        .hung(1);
    let report = i915_report(&i915::ErrorStateBuilder::new(device("adlp")).engine(engine));
    assert!(verdict(&report).title.contains("does not hold"), "{}", titles(&report));
    let absent = of(&report, FindingKind::NotCaptured);
    assert!(absent.iter().any(|f| f.title.contains("ring and batch of rcs0")), "{}", titles(&report));
    assert!(report.advice.iter().any(|a| a.action.contains("capture-all")));
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
        let corrupted =
            |r: &Report| r.findings.iter().any(|f| f.title.contains("context of rcs0 is corrupted"));
        assert!(!corrupted(&report), "{}: {}", device.name, titles(&report));
        image[1024 + 8..1024 + 24].fill(0x6b6b_6b6b);
        let broken = in_batch("rcs0", &batch, 0, 0).context(0x20_0000, &image);
        let report = i915_report(&i915::ErrorStateBuilder::new(device).engine(broken));
        assert!(corrupted(&report), "{}: {}", device.name, titles(&report));
        let told = report.findings.iter().find(|f| f.title.contains("is corrupted")).unwrap();
        assert!(told.why.contains("0x6b6b6b6b"), "{}: {}", device.name, told.why);
    }
}

#[test]
fn xe_waits_in_a_second_batch() {
    for device in Device::ALL.into_iter().filter(|d| d.version >= (12, 0)) {
        for era in xe::Era::ALL {
            let builder = xe::DevcoreBuilder::complete(device, era);
            let report = xe_report(&builder);
            let said = titles(&report);
            assert!(verdict(&report).title.contains("rcs0"), "{} {era:?}: {said}", device.name);
            assert!(!report.advice.is_empty());
            let named = String::from_utf8_lossy(&builder.text()).contains("game");
            let process = report.process.name.as_deref().unwrap_or_default();
            assert_eq!(process.contains("game"), named, "{} {era:?}: {process}", device.name);
        }
    }
}

#[test]
fn complete_error_states_of_every_era() {
    for device in old() {
        for era in i915::Era::ALL {
            let report = i915_report(&i915::ErrorStateBuilder::complete(device, era));
            let said = titles(&report);
            let first = verdict(&report);
            assert!(first.title.starts_with("rcs0"), "{} {era:?}: {said}", device.name);
            assert!(first.title.contains("3DPRIMITIVE"), "{} {era:?}: {said}", device.name);
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

/// INSTDONE registers under the names of every way to print them: their units are told, and those of a register that nobody
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
        let [found] = found[..] else { panic!("{device} {name}: {}", titles(&report)) };
        found.clone()
    };
    for (device, name, of) in names {
        let (major, release) = self::device(device).version;
        let register = unwedge_hw::intel::IntelGpu::of(major, release).register_named(of).unwrap();
        let unit = unwedge_stream::intel::instdone::busy(register, 0).next().unwrap();
        let index = name.find('[').map_or("", |at| &name[at..]);
        let found = busy(device, name, !(1 << unit.bit), 0xffff_ffff);
        assert_eq!(found.title, format!("rcs0: {}{index} not done", unit.unit()), "{device} {name}");
    }
    let found = busy("tgl", "NEW_INSTDONE", 0xffff_fffe, 0xffff_ffff);
    assert!(found.title.contains("not known (NEW_INSTDONE)"), "{found:?}");
    let found = busy("skl", "NEW_INSTDONE[0][0]", 0xffff_fffe, 0xffff_fffb);
    assert!(!found.why.contains("Only") && found.title.contains("not done"), "{found:?}");
    assert!(found.evidence.iter().any(|e| prose(e).contains("not known")), "{found:?}");
    assert_eq!(busy("tgl", "NEW_INSTDONE", u32::MAX, 0xffff_ffff).title, "all units of rcs0 are done");
}

/// Before 4.9 the render engine's were among the registers of the device.
#[test]
fn units_of_registers_that_stand_with_the_device() {
    let batch = stream(&[&primitive(3), &[MI_BATCH_BUFFER_END]]);
    let engine = in_batch("rcs0", &batch, 0, 0).register("ROW_INSTDONE[0][0]", 0xfffe_ffff);
    let builder = i915::ErrorStateBuilder::new(device("skl")).era(i915::Era::V4_4).engine(engine);
    let state = ErrorState::read(&builder.text()).map(|s| s.diagnostics).unwrap();
    assert!(state.is_empty(), "{state:?}");
    let report = i915_report(&builder);
    let busy = of(&report, FindingKind::Busy)[0];
    assert!(busy.evidence.iter().any(|e| prose(e).starts_with("INSTDONE_3 = 0xfffeffff: ")), "{busy:?}");
}

/// Cut anywhere, broken anyhow: there is a report, and nothing panics.
#[test]
fn cut_and_broken_dumps() {
    let i915 = i915::ErrorStateBuilder::complete(device("tgl"), i915::Era::V6_12).text();
    let xe = xe::DevcoreBuilder::complete(device("bmg"), xe::Era::V6_14).text();
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

/// The words of evidence that still carries them.
fn prose(e: &unwedge_postmortem::Evidence) -> &str {
    match &e.fact {
        unwedge_postmortem::Fact::Prose(what) => what,
        _ => "",
    }
}
