//! Hangs of gen4 to gen7.5, in the text of kernels from 2.6.31 to 3.18; threads of EUs that wait for a debugger.

use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::RingRegister;
use unwedge_postmortem::{
    Arg, Fact, Finding, FindingKind, GpuIdentity, Report, Rule, Subject, Trust, explain_i915,
};
use unwedge_testkit::i915_old::{BATCH, DEVICES, OldEra, OldErrorState, RING, pipe_control, primitive};
use unwedge_testkit::intel::{EngineState, MI_BATCH_BUFFER_END, TestDevice, stream};
use unwedge_testkit::intel_old_states::{OldWorkStates, SURFACE_MEMORY, at};
use unwedge_testkit::{i915, i915_old};

fn report(text: &[u8]) -> Report {
    explain_i915(&ErrorState::read(text).unwrap())
}

fn by_rule(report: &Report, rule: Rule) -> Option<&Finding> {
    report.findings.iter().find(|f| f.rule == rule)
}

#[test]
fn the_draw_of_every_generation_is_found() {
    for device in DEVICES {
        for era in OldEra::ALL {
            let what = format!("{} {era:?}", device.name);
            let report = report(&OldErrorState::complete(device, era).text());
            let first = report.findings.first().unwrap();
            if !era.has_pci_id() {
                assert!(by_rule(&report, Rule::IntelGenerationUnknown).is_some(), "{what}: {report:#?}");
                continue;
            }
            let GpuIdentity::Intel { platform, .. } = report.gpu else { panic!("{what}") };
            assert_eq!(platform, Some(device.name), "{what}");
            assert_eq!(first.kind, FindingKind::HangPoint, "{what}: {:#?}", report.findings);
            assert_eq!(first.subject, Subject::Engine("rcs0".into()), "{what}");
            assert_eq!(first.args.text("command"), Some("3DPRIMITIVE"), "{what}: {first:#?}");
            assert_eq!(first.trust, Trust::Certain, "{what}");
            let draw = BATCH + pipe_control(device, 0).len() as u64 * 4;
            assert_eq!(report.hang.as_ref().and_then(|h| h.iova), Some(draw), "{what}");
            for absent in [Rule::ContextMissing, Rule::RingAndBatchMissing, Rule::BatchMissing] {
                assert!(by_rule(&report, absent).is_none(), "{what}: {absent:?}");
            }
        }
    }
}

/// ACTHD has the offset of HEAD with its wraps; START is not printed before 4.1, HEAD not before 3.2.
#[test]
fn a_stop_in_the_ring_is_found_without_its_registers() {
    for device in DEVICES {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_memory()) {
            let ring = stream(&[&[0, 0], &pipe_control(device, 1 << 20), &[0x0200_0000, 0, 0, 0]]);
            let acthd = 8 + pipe_control(device, 0).len() as u32 * 4;
            let wraps = 0x0660_0000;
            let engine = EngineState::new("rcs0")
                .ring(RING, &ring, wraps | acthd, acthd + 16)
                .set(RingRegister::Acthd, (wraps | acthd).into())
                .set(RingRegister::Ipehr, 0x0200_0000)
                .hung(1);
            let report = report(&OldErrorState::new(device, era).engine(engine).text());
            let what = format!("{} {era:?}", device.name);
            let first = report.findings.first().unwrap();
            assert_eq!(first.args.text("command"), Some("MI_FLUSH"), "{what}: {first:#?}");
            assert_eq!(report.hang.and_then(|h| h.iova), Some(RING + u64::from(acthd)), "{what}");
        }
    }
}

/// Up to 3.1 the blitter is printed first, and HEAD and TAIL of none: the one with a batch has work.
#[test]
fn the_engine_with_a_batch_is_the_one_that_hangs() {
    let report = report(&OldErrorState::complete(DEVICES[3], OldEra::V2_6_38).text());
    assert_eq!(report.findings[0].subject, Subject::Engine("rcs0".into()));
}

#[test]
fn units_and_error_registers_of_gen4_to_gen6() {
    for (name, unit, bit) in [("i965gm", "VS", 1), ("gm45", "SF", 4), ("ilk", "WIZ", 6), ("snb", "VME", 5)] {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_pci_id()) {
            let device = DEVICES.into_iter().find(|d| d.name == name).unwrap();
            let batch = stream(&[&primitive(device, 3), &[MI_BATCH_BUFFER_END]]);
            let engine = EngineState::new("rcs0")
                .set(RingRegister::Acthd, BATCH)
                .set(RingRegister::Ipehr, batch[0].into())
                .set(RingRegister::Instdone, 0xffff_ffff)
                .register("INSTDONE1", !(1 << bit) & 0xffff_ffff)
                .batch(BATCH, &batch)
                .hung(1);
            let state = OldErrorState::new(device, era).register("EIR", 0x10).register("PGTBL_ER", 1 << 20);
            let report = report(&state.engine(engine).text());
            let what = format!("{name} {era:?}");
            let busy = report
                .findings
                .iter()
                .find(|f| f.kind == FindingKind::Busy)
                .unwrap_or_else(|| panic!("{what}: {report:#?}"));
            let units: Vec<_> = busy.args.list("units").iter().collect();
            assert!(matches!(units[..], [Arg::Text(only)] if only == unit), "{what}: {busy:#?}");
            assert!(busy.args.list("unknown_registers").is_empty(), "{what}: {busy:#?}");
            let errors: Vec<_> =
                report.findings.iter().filter(|f| f.rule == Rule::DeviceErrorRegister).collect();
            assert_eq!(errors.len(), 2, "{what}");
        }
    }
}

/// Gen6 has fault registers; before it there are none to be missed.
#[test]
fn page_faults_where_there_are_registers_for_them() {
    for device in DEVICES {
        let report = report(&OldErrorState::complete(device, OldEra::V3_10).text());
        let said = report
            .findings
            .iter()
            .any(|f| matches!(f.rule, Rule::NoPageFaultRecorded | Rule::PageFaultRegistersMissing));
        assert_eq!(said, device.version.0 >= 6, "{}", device.name);
    }
    let fault = (BATCH as u32 + 0x1000) | 1;
    let device = DEVICES[3];
    let engine = EngineState::new("rcs0")
        .set(RingRegister::Acthd, BATCH)
        .set(RingRegister::Fault, fault.into())
        .batch(BATCH, &[MI_BATCH_BUFFER_END])
        .hung(1);
    let report = report(&OldErrorState::new(device, OldEra::V3_10).engine(engine).text());
    let found = report.findings.iter().find(|f| f.kind == FindingKind::Fault).unwrap();
    assert_eq!(found.args.number("address"), Some(BATCH + 0x1000), "{found:#?}");
}

#[test]
fn threads_that_wait_for_a_debugger() {
    let pvc = TestDevice::named("pvc");
    let complete = || i915::ErrorStateBuilder::complete(pvc, i915::I915Era::V6_1);
    let of = |builder: i915::ErrorStateBuilder| report(&builder.text());
    let found = of(complete().attention(0x80, &[0, 0, 0x0000_0100, 0], &[0, 0, 0xffff_ffff, 0]));
    let found = by_rule(&found, Rule::EuThreadsNeedAttention).unwrap().clone();
    assert_eq!((found.trust, found.args.number("count")), (Trust::Certain, Some(1)));
    let [Arg::Record(thread)] = found.args.list("threads") else { panic!("{found:#?}") };
    let place = ["subslice", "eu", "thread"].map(|name| thread.number(name));
    assert_eq!(place, [Some(1), Some(1), Some(0)]);
    let halted = of(complete().attention(0x80, &[0; 4], &[0, 0, 0, 1 << 31]));
    let halted = by_rule(&halted, Rule::EuThreadsNeedAttention).unwrap();
    assert_eq!((halted.trust, halted.args.text("when")), (Trust::Possible, Some("after")));
    assert!(
        by_rule(&of(complete().attention(0x80, &[0; 4], &[0; 4])), Rule::EuThreadsNeedAttention).is_none()
    );
    assert!(by_rule(&of(complete()), Rule::EuThreadsNeedAttention).is_none());
}

#[test]
fn any_old_error_state_ends() {
    for (name, text) in i915_old::variety() {
        for seed in 0..40 {
            let broken = unwedge_testkit::mutate::mutate(&text, seed);
            if let Ok(state) = ErrorState::read(&broken) {
                let report = explain_i915(&state);
                assert!(!report.findings.is_empty(), "{name}, seed {seed}");
            }
        }
    }
}

/// The shaders, surfaces and buffers of a draw, with the states in the buffer of the batch.
#[test]
fn the_shaders_and_surfaces_of_a_draw() {
    for device in DEVICES {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_memory()) {
            let what = format!("{} {era:?}", device.name);
            let report = report(&OldWorkStates::draw(device).error_state(era).text());
            let work =
                by_rule(&report, Rule::WorkBeforeStop).unwrap_or_else(|| panic!("{what}: {report:#?}"));
            let shaders: Vec<(&str, u64)> = work
                .args
                .list("shaders")
                .iter()
                .filter_map(|shader| match shader {
                    Arg::Record(args) => Some((args.text("stage")?, args.number("address")?)),
                    _ => None,
                })
                .collect();
            let mut expected = vec![
                ("vertex shader", at::VERTEX),
                ("fragment shader", at::PIXEL_8),
                ("fragment shader", at::PIXEL_16),
                ("clip thread", at::CLIP),
                ("strips and fans thread", at::STRIPS_FANS),
            ];
            expected.retain(|&(_, offset)| match offset {
                at::PIXEL_16 => device.version.0 >= 5,
                at::CLIP | at::STRIPS_FANS => device.version.0 < 6,
                _ => true,
            });
            assert_eq!(shaders.len(), expected.len(), "{what}: {shaders:?}");
            for (stage, offset) in expected {
                assert!(
                    shaders.contains(&(stage, BATCH + at::KERNELS + offset)),
                    "{what}: {stage} {shaders:?}"
                );
            }
            let used = |name: &str, address: u64, bytes: u64| {
                let found = report.findings.iter().flat_map(|f| &f.evidence).any(|e| match &e.fact {
                    Fact::Record(args) => {
                        args.text("use").is_some_and(|text| text.starts_with(name))
                            && args.number("address") == Some(address)
                            && args.number("bytes") == Some(bytes)
                    }
                    _ => false,
                });
                assert!(found, "{what}: {name}: {:#?}", report.findings);
            };
            used("surface 0 of the", SURFACE_MEMORY, 31 * 256 + 1);
            used("vertex buffer", BATCH + at::VERTICES, 48);
            used("index buffer", BATCH + at::INDICES, 12);
            used("push constants", BATCH + at::CONSTANTS, 128);
            assert!(report.findings.iter().all(|f| f.kind != FindingKind::CodeFault), "{what}");
        }
    }
}

/// A command of gen6 that changes one table leaves the others: the first one's count at the stop.
#[test]
fn a_surface_of_each_stage_is_found_on_gen6() {
    let device = DEVICES[3];
    let mut work = OldWorkStates::draw(device);
    // The vertex shader has a table, and a surface, of its own.
    let (table, surface) = (at::END / 2 + 0x800, at::END / 2 + 0x840);
    let word = |offset: u64| offset as usize / 4;
    let tables = work.batch.iter().position(|&word| word == 0x7801_0002 | 1 << 8).unwrap();
    work.batch[tables + 1] = table as u32;
    work.batch[word(table)] = surface as u32;
    let own = work.batch[word(at::SURFACE)..word(at::SURFACE) + 6].to_vec();
    work.batch[word(surface)..word(surface) + 6].copy_from_slice(&own);
    work.batch[word(surface) + 1] += 0x1_0000;
    let report = report(&work.error_state(OldEra::V3_16).text());
    for (stage, address) in [("vertex", SURFACE_MEMORY + 0x1_0000), ("fragment", SURFACE_MEMORY)] {
        let name = format!("surface 0 of the {stage} shader");
        let found = report.findings.iter().flat_map(|f| &f.evidence).any(|e| match &e.fact {
            Fact::Record(args) => args.text("use") == Some(&name) && args.number("address") == Some(address),
            _ => false,
        });
        assert!(found, "{name}: {:#?}", report.findings);
    }
}

#[test]
fn the_shader_of_a_dispatch() {
    for device in DEVICES {
        let report = report(&OldWorkStates::dispatch(device).error_state(OldEra::V3_16).text());
        let found = by_rule(&report, Rule::WorkBeforeStop).unwrap();
        let Some(Arg::Record(shader)) = found.args.list("shaders").first() else {
            panic!("{}: {found:#?}", device.name)
        };
        assert_eq!(shader.text("stage"), Some("compute shader"));
        assert_eq!(shader.number("address"), Some(BATCH + at::KERNELS + at::COMPUTE));
    }
}

/// Memory of zeros where a kernel is to be cannot run, on any generation.
#[test]
fn a_shader_of_zeros_is_a_cause() {
    for device in DEVICES {
        let mut work = OldWorkStates::draw(device);
        let first = (at::KERNELS + at::PIXEL_8) as usize / 4;
        work.batch[first..first + 64].fill(0);
        let report = report(&work.error_state(OldEra::V3_16).text());
        let fault = by_rule(&report, Rule::EuCodeZero);
        let fault = fault.unwrap_or_else(|| panic!("{}: {:#?}", device.name, report.findings));
        assert_eq!(fault.args.number("address"), Some(BATCH + at::KERNELS + at::PIXEL_8));
    }
}

/// All kernels that old dumps are of list the buffers in use.
#[test]
fn a_surface_whose_buffer_is_not_in_use() {
    for device in DEVICES {
        for era in OldEra::ALL.into_iter().filter(|era| era.has_memory() && era.has_pci_id()) {
            let name = format!("{} {era:?}", device.name);
            let work = OldWorkStates::draw(device);
            let whole = report(&work.error_state(era).text());
            let listed = by_rule(&whole, Rule::SurfaceNotBound);
            assert!(listed.is_none(), "{name}: {listed:#?}");
            let missing = report(&work.error_state_without_surface(era).text());
            let freed = by_rule(&missing, Rule::SurfaceNotBound);
            let freed = freed.unwrap_or_else(|| panic!("{name}: {:#?}", missing.findings));
            assert!(freed.args.number("address") >= Some(SURFACE_MEMORY), "{name}: {freed:#?}");
            assert_eq!(freed.trust, Trust::Possible, "{name}");
        }
    }
}
