//! One door for dumps of all drivers: what goes in is text that testkit makes, what comes out says whose it is, what it
//! holds and what it lacks.

use unwedge_base::{Generation, Span};
use unwedge_capture::dump::{DumpDriver, DumpPart, DumpSection, GpuClaim, SectionState};
use unwedge_capture::{Dump, FileKind, NotADump};
use unwedge_testkit::amdgpu::{AmdgpuBuilder, Gfx, RadvBuilder, WaveForm, WaveSpec, waves_text};
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_testkit::intel::TestDevice;
use unwedge_testkit::{i915, xe};

fn file(bytes: &[u8]) -> [DumpPart<'_>; 1] {
    [DumpPart { name: "", bytes }]
}

fn absent<'d>(sections: &'d [DumpSection<'_>]) -> Vec<&'d str> {
    let lacks = sections.iter().filter(|s| matches!(s.state, SectionState::Absent(_)));
    lacks.map(|s| s.name.as_ref()).collect()
}

#[test]
fn dumps_of_every_driver() {
    let umr = waves_text(Gfx::V10, &WaveSpec::some(Gfx::V10), WaveForm::Columns);
    for (text, driver, kind) in [
        (DevcoreBuilder::complete(Generation::A6xx).text(), DumpDriver::Msm, FileKind::MsmDevcore),
        (
            i915::ErrorStateBuilder::complete(TestDevice::named("tgl"), i915::I915Era::ALL[0]).text(),
            DumpDriver::I915,
            FileKind::I915ErrorState,
        ),
        (
            xe::DevcoreBuilder::complete(TestDevice::named("lnl"), xe::XeEra::ALL[0]).text(),
            DumpDriver::Xe,
            FileKind::XeDevcore,
        ),
        (AmdgpuBuilder::complete(Gfx::V10).text(), DumpDriver::Amdgpu, FileKind::AmdgpuDevcore),
        (RadvBuilder::complete(Gfx::V10).text(), DumpDriver::Radv, FileKind::RadvReport),
        (umr.into_bytes(), DumpDriver::Umr, FileKind::UmrText),
    ] {
        let dump = Dump::read(&file(&text)).unwrap();
        assert_eq!((dump.driver(), dump.kind()), (driver, kind));
        let origin = dump.origin();
        assert_eq!((origin.driver, origin.kind), (driver, kind));
        let spans = dump.sections().into_iter().filter_map(|section| match section.state {
            SectionState::Held { span, .. } => span,
            SectionState::Absent(_) => None,
        });
        for Span { start, end } in spans {
            assert!(start <= end && end <= text.len() as u64, "{driver:?}: {start}..{end}");
        }
        assert!(!dump.sections().is_empty(), "{driver:?}");
    }
}

#[test]
fn a_folder_is_several_parts() {
    let builder = RadvBuilder::complete(Gfx::V10);
    let members = builder.members();
    let parts: Vec<DumpPart<'_>> = members.iter().map(|(name, bytes)| DumpPart { name, bytes }).collect();
    let dump = Dump::read(&parts).unwrap();
    let held = dump.sections().into_iter().filter_map(|section| match section.state {
        SectionState::Held { part, span: Some(span), .. } => {
            Some((section.name.into_owned(), part, span.len()))
        }
        _ => None,
    });
    let given = members.iter().enumerate().map(|(at, (name, bytes))| (name.clone(), at, bytes.len() as u64));
    assert_eq!(held.collect::<Vec<_>>(), given.collect::<Vec<_>>());

    // A folder with one file is a folder still, and lacks the rest.
    let trace = parts.iter().find(|part| part.name == "trace.log").unwrap();
    let dump = Dump::read_folder(&[*trace]).unwrap();
    let sections = dump.sections();
    assert_eq!(
        absent(&sections),
        ["pipeline.log", "umr_waves.log", "umr_ring.log", "bo_history.log", "vm_fault.log"]
    );
}

#[test]
fn what_is_no_dump_says_what_it_is() {
    let capture = [13u32, 4, 630, 2].map(u32::to_le_bytes).concat();
    for (bytes, kind) in [
        (&capture[..], FileKind::RdCapture),
        (b"\x7fELF\x02", FileKind::Elf),
        (b"", FileKind::Empty),
        (b"No error state collected\n", FileKind::NoErrorState),
        (b"hello\n", FileKind::Text),
        (b"\0\xff\0\xfe", FileKind::Binary),
    ] {
        assert_eq!(Dump::read(&file(bytes)).err(), Some(NotADump { kind }));
    }
    let folder = [DumpPart { name: "notes.txt", bytes: b"hello" }, DumpPart { name: "b", bytes: b"" }];
    assert_eq!(Dump::read(&folder).err(), Some(NotADump { kind: FileKind::Folder }));
    assert_eq!(Dump::read(&[]).err(), Some(NotADump { kind: FileKind::Folder }));
}

#[test]
fn absence_is_said_of_what_the_gpu_has() {
    for (generation, lacks) in [
        (Generation::A3xx, &["fault-info", "pgtable-fault-info", "vm-log", "bos", "registers"][..]),
        (
            Generation::A5xx,
            &["fault-info", "pgtable-fault-info", "vm-log", "bos", "registers", "registers-hlsq"],
        ),
    ] {
        let text = DevcoreBuilder::of(generation).text();
        let dump = Dump::read(&file(&text)).unwrap();
        let sections = dump.sections();
        assert_eq!(absent(&sections), lacks, "{generation}");
    }
}

#[test]
fn gpus_as_dumps_name_them() {
    let a702 = DevcoreBuilder::a6xx().revision(702, [7, 0, 2, 0]).text();
    let dump = Dump::read(&file(&a702)).unwrap();
    let Some(GpuClaim::Adreno(revision)) = dump.origin().gpu else { panic!("an Adreno") };
    assert_eq!(Generation::of(revision.gpu_id, revision.chip_id), Some(Generation::A6xx));

    let text = AmdgpuBuilder::complete(Gfx::V10).text();
    let dump = Dump::read(&file(&text)).unwrap();
    let Some(GpuClaim::Amd(version)) = dump.origin().gpu else { panic!("an AMD GPU") };
    assert_eq!(version.to_string(), "10.3.0");

    let text = i915::ErrorStateBuilder::complete(TestDevice::named("tgl"), i915::I915Era::ALL[0]).text();
    let dump = Dump::read(&file(&text)).unwrap();
    assert!(matches!(dump.origin().gpu, Some(GpuClaim::Intel { pci_id: 0x9a49, .. })));
}
