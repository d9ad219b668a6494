//! The shaders and surfaces of the work that an Intel engine stopped in, made up for each platform and stage, in dumps of both
//! drivers.

use unwedge_capture::{i915::ErrorState, xe::XeDevcore};
use unwedge_isa::eu::Generation;
use unwedge_postmortem::{
    Arg, Args, Fact, Finding, FindingKind, Report, Rule, Trust, explain_i915, explain_xe,
};
use unwedge_testkit::intel::{EngineState, TestDevice};
use unwedge_testkit::intel_states::{
    TestStage, WorkStates, eu_platform, kernel, kernel_that_jumps_out, kernel_without_wait,
};
use unwedge_testkit::{i915, xe};

const BATCH: u64 = 0x10_0010_0000;
const STATES: u64 = 0x20_0000_0000;

/// What both drivers' dumps of an engine say.
fn reports(device: TestDevice, engine: &EngineState) -> [Report; 2] {
    let error = i915::ErrorStateBuilder::new(device).engine(engine.clone()).text();
    let devcore = xe::DevcoreBuilder::new(device).engine(engine.clone()).text();
    [explain_i915(&ErrorState::read(&error).unwrap()), explain_xe(&XeDevcore::read(&devcore).unwrap())]
}

fn cases() -> impl Iterator<Item = (TestDevice, TestStage)> {
    let stages = |device| TestStage::ALL.into_iter().map(move |stage| (device, stage));
    TestDevice::ALL.into_iter().flat_map(stages).filter(|(device, stage)| stage.is_of(*device))
}

fn found(report: &Report, rule: Rule) -> Option<&Finding> {
    report.findings.iter().find(|finding| finding.rule == rule)
}

fn shaders(report: &Report) -> Vec<&Args> {
    let work = found(report, Rule::WorkBeforeStop).unwrap();
    let mut found = Vec::new();
    for shader in work.args.list("shaders") {
        if let Arg::Record(args) = shader {
            found.push(args);
        }
    }
    found
}

#[test]
fn every_stage_of_every_platform_has_its_shader() {
    let mut widths = Vec::new();
    for (device, stage) in cases() {
        let work = WorkStates::new(device, stage, STATES, 0x1000);
        for report in reports(device, &work.engine(BATCH)) {
            let name = format!("{} {stage:?}", device.name);
            let of = shaders(&report);
            assert_eq!(of.len(), 1, "{name}: {:?}", found(&report, Rule::WorkBeforeStop));
            assert_eq!(of[0].number("address"), Some(work.at.kernel), "{name}");
            assert!(
                report.findings.iter().all(|f| f.kind != FindingKind::CodeFault),
                "{name}: {:?}",
                report.findings
            );
            widths.push(of[0].number("simd"));
        }
    }
    for width in [8, 16] {
        assert!(widths.contains(&Some(width)), "{widths:?}");
    }
}

#[test]
fn code_that_cannot_end_is_a_cause() {
    for (device, stage) in cases().filter(|(device, _)| eu_platform(*device).is_some()) {
        let work = WorkStates::new(device, stage, STATES, 0x1000);
        let zeros = vec![0; 64];
        let open = [kernel(device, 3, false), vec![0; 64]].concat();
        for (code, rule) in [(zeros, Rule::EuCodeZero), (open, Rule::EuCodeIllegal)] {
            for report in reports(device, &work.clone().kernel(code.clone()).engine(BATCH)) {
                let fault = found(&report, rule);
                assert!(fault.is_some(), "{} {stage:?} {rule:?}: {:#?}", device.name, report.findings);
                assert_eq!(fault.unwrap().args.number("address"), Some(work.at.kernel));
            }
        }
    }
}

#[test]
fn code_that_the_hardware_does_not_define() {
    type Spoiled = fn(TestDevice) -> Option<Vec<u32>>;
    let spoiled: [(Spoiled, Rule, &str, u64); 2] = [
        (kernel_that_jumps_out, Rule::EuCodeBreaksRule, "jump-outside", 0),
        (kernel_without_wait, Rule::EuCodeMissesWait, "token-read", 16),
    ];
    for (device, stage) in cases() {
        for (code, rule, check, offset) in &spoiled {
            let Some(code) = code(device) else { continue };
            let work = WorkStates::new(device, stage, STATES, 0x1000).kernel(code);
            for report in reports(device, &work.engine(BATCH)) {
                let name = format!("{} {stage:?} {check}", device.name);
                // No rules are known of Xe3.
                if eu_platform(device).is_some_and(|platform| platform.generation() > Generation::Xe2) {
                    assert!(found(&report, *rule).is_none(), "{name}");
                    continue;
                }
                let fault = found(&report, *rule).unwrap_or_else(|| panic!("{name}: {:#?}", report.findings));
                assert_eq!(fault.args.text("check"), Some(*check), "{name}");
                assert_eq!(fault.args.number("offset"), Some(*offset), "{name}");
                assert_eq!(fault.args.number("address"), Some(work.at.kernel), "{name}");
                let marked = fault.evidence.iter().filter_map(|evidence| match &evidence.fact {
                    Fact::Code { place, text, .. } if place.get("marked") == Some(&Arg::Flag(true)) => {
                        Some((place.number("offset")?, text.as_deref() == fault.args.text("instruction")))
                    }
                    _ => None,
                });
                assert!(
                    marked.clone().any(|found| found == (*offset, true)),
                    "{name}: {:#?}",
                    fault.evidence
                );
                let causes = report.causes.iter().map(|&cause| report.findings[cause].rule);
                assert!(!causes.into_iter().any(|cause| cause == *rule), "{name}: only possible");
            }
        }
    }
}

#[test]
fn code_that_is_not_captured_is_not_a_cause() {
    let device = TestDevice::named("tgl");
    let mut work = WorkStates::new(device, TestStage::Pixel, STATES, 0x1000);
    work.at.kernel += 0x1_0000_0000;
    for report in reports(device, &work.engine(BATCH)) {
        assert_eq!(shaders(&report).len(), 1);
        assert!(report.findings.iter().all(|f| f.kind != FindingKind::CodeFault), "{:#?}", report.findings);
    }
}

#[test]
fn a_surface_that_goes_past_its_buffer() {
    for (device, stage) in cases() {
        let has_table = !matches!(stage, TestStage::Task | TestStage::Mesh);
        for (bytes, past) in [(0x1000, None), (0x3000, Some(0x2000))] {
            let work = WorkStates::new(device, stage, STATES, bytes);
            let engine = work.engine(BATCH).user(work.at.memory, &[1; 1024]);
            for report in reports(device, &engine) {
                let surface = found(&report, Rule::SurfacePastBuffer);
                let found = surface.and_then(|surface| surface.args.number("past"));
                assert_eq!(found, past.filter(|_| has_table), "{} {stage:?}: {surface:?}", device.name);
            }
        }
    }
}

/// Kernels before 5.6 list the buffers in use; the states are captured, the buffer of the surface is not.
#[test]
fn a_surface_whose_buffer_is_not_in_use() {
    let mut tables = 0;
    for (device, stage) in cases() {
        let work = WorkStates::new(device, stage, STATES, 0x1000);
        for era in [i915::I915Era::V4_4, i915::I915Era::V4_10, i915::I915Era::V4_19, i915::I915Era::V6_12] {
            let dump = || {
                let dump = i915::ErrorStateBuilder::new(device).era(era).engine(work.engine(BATCH));
                dump.listed(BATCH, 0x1000)
            };
            let freed = |dump: i915::ErrorStateBuilder| {
                let text = dump.listed(STATES, 0x100).text();
                let report = explain_i915(&ErrorState::read(&text).unwrap());
                found(&report, Rule::SurfaceNotBound).cloned()
            };
            let name = format!("{} {stage:?} {era:?}", device.name);
            let has_table = !matches!(stage, TestStage::Task | TestStage::Mesh);
            let lists = era <= i915::I915Era::V4_19;
            let missing = freed(dump());
            let address = missing.as_ref().and_then(|finding| finding.args.number("address"));
            assert_eq!(address, Some(work.at.memory).filter(|_| has_table && lists), "{name}: {missing:#?}");
            assert!(missing.iter().all(|finding| finding.trust == Trust::Possible), "{name}");
            assert!(missing.iter().all(|finding| finding.args.number("buffers") == Some(2)), "{name}");
            tables += u32::from(missing.is_some());
            for (from, bytes) in [(work.at.memory, 0x1000), (work.at.memory - 0x1000, 0x1001)] {
                assert_eq!(freed(dump().listed(from, bytes)), None, "{name}: in use");
            }
            let before = dump().listed(work.at.memory - 0x1000, 0x1000);
            assert_eq!(freed(before).is_some(), missing.is_some(), "{name}: ends before it");
        }
    }
    assert!(tables > 0);
}

#[test]
fn lists_that_do_not_have_all_buffers_prove_nothing() {
    let device = TestDevice::named("skl");
    let work = WorkStates::new(device, TestStage::Pixel, STATES, 0x1000);
    let dump = || i915::ErrorStateBuilder::new(device).era(i915::I915Era::V4_19).engine(work.engine(BATCH));
    let freed = |text: &str| {
        let report = explain_i915(&ErrorState::read(text.as_bytes()).unwrap());
        found(&report, Rule::SurfaceNotBound).is_some()
    };
    let whole = String::from_utf8(dump().listed(BATCH, 0x1000).text()).unwrap();
    assert!(freed(&whole));
    assert!(whole.contains("Active (rcs0) [1]:"));
    assert!(!freed(&whole.replace("Active (rcs0) [1]:", "Active (rcs0) [2]:")), "a line is missing");
    let of_others = String::from_utf8(dump().listed(0x1000, 0x1000).text()).unwrap();
    assert!(!freed(&of_others), "not of this address space: the batch is not in it");
}

#[test]
fn a_fault_names_the_surface_that_ends_before_it() {
    let device = TestDevice::named("tgl");
    let work = WorkStates::new(device, TestStage::Compute, STATES, 0x1000);
    for (address, distance) in [(work.at.memory, None), (work.at.memory + 0x2000, Some(0x1000))] {
        let engine = work.engine(BATCH).set(unwedge_capture::intel::RingRegister::Fault, 1);
        let builder = i915::ErrorStateBuilder::new(device).engine(engine);
        let text = builder.fault((address >> 12) as u32, (address >> 44) as u32 & 0xf).text();
        let report = explain_i915(&ErrorState::read(&text).unwrap());
        let fault = report.findings.iter().find(|f| f.kind == FindingKind::Fault).unwrap();
        let surface = fault.args.record("surface").unwrap();
        assert_eq!(surface.number("address"), Some(work.at.memory));
        assert_eq!(surface.number("distance"), distance);
    }
}

/// Every error state of the test data: compilers made its kernels.
#[test]
fn kernels_of_recorded_dumps_are_right() {
    fn visit(folder: &std::path::Path, found: &mut Vec<std::path::PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                visit(&path, found);
            } else if path.extension().is_some_and(|extension| extension == "i915") {
                found.push(path);
            }
        }
    }
    let root = std::env::var("UNWEDGE_DATA").unwrap_or_else(|_| "../../../shared/data".to_owned());
    let mut dumps = Vec::new();
    visit(&std::path::Path::new(&root).join("intel"), &mut dumps);
    if dumps.is_empty() {
        println!("skipped: no error states under UNWEDGE_DATA");
    }
    for dump in dumps {
        let text = std::fs::read(&dump).unwrap();
        let report = explain_i915(&ErrorState::read(&text).unwrap());
        let wrong = [Rule::EuCodeMissesWait, Rule::EuCodeBreaksRule];
        assert!(wrong.iter().all(|rule| found(&report, *rule).is_none()), "{}", dump.display());
    }
}
