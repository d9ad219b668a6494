//! Files of AMD GPU hangs: every section and form that testkit makes, texts as kernels and tools print them, broken ones.

use unwedge_base::GcVersion;
use unwedge_base::{Diagnostic, Severity};
use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::amdgpu::{
    self as devcore, AmdgpuSection, BankOwner, NotDevcoredump, PowerState, RingType, VramState,
};
use unwedge_capture::radv::{self, RadvReport};
use unwedge_capture::radv::{BoAction, KernelEvent, MemberKind, ReportMember, TraceProgress};
use unwedge_capture::umr::UmrText;
use unwedge_capture::umr::{self, UmrWaveLocation};
use unwedge_testkit::amdgpu::{
    AmdgpuBuilder, AmdgpuEra, Gfx, Quirk, RadvBuilder, ShaderSpec, WaveForm, WaveSpec, registers_text,
    ring_stream_text, ring_text, texts, variety, waves_text,
};
use unwedge_testkit::check;
use unwedge_testkit::mutate::mutate;

fn losses(diagnostics: &[Diagnostic]) -> Vec<String> {
    diagnostics.iter().filter(|d| d.severity == Severity::Loss).map(ToString::to_string).collect()
}

fn written(dump: &Devcoredump<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    dump.write(&mut out);
    out
}

/// As amdgpu of Linux 6.12 prints it: by its format strings, not by this crate.
const KERNEL_TEXT: &str = "\
**** AMDGPU Device Coredump ****
version: 1
kernel: 6.12.4
module: amdgpu
time: 1733400000.123456789
process_name: game.exe PID: 4242

SOC Information
SOC Device id: 29631
SOC PCI Revision id: 193
SOC Family: 143
SOC Revision id: 1
SOC External Revision id: 41

SOC Memory Information
real vram size: 17163091968
visible vram size: 17163091968
gtt size: 16706195456

GDS Config
gds: total size: 0
gds: compute partition size: 0
gds: gws per compute partition: 64
gds: os per compute partition: 16

HW IP Version Information
HWIP: GC[1][0]: v10.3.0.0.0
HWIP: UVD/JPEG/VCN[15][1]: v3.0.0.0.0

IP Firmwares
VCE feature version: 0, fw version: 0x00000000
MEC2 feature version: 44, fw version: 0x00000074
TA HDCP feature version: 0x00000000, fw version: 0x1700003c
SMC feature version: 0, program: 0, fw version: 0x003a5b00 (58.91.0)
SDMA0 feature version: 52, firmware version: 0x00000053

VBIOS Information
vbios name       : NAVI21
vbios pn         : 113-D4120500-101
vbios version    : 0
vbios ver_str    : 020.001.000.049.000000
vbios date       : 2020/11/18 10:33

Ring timed out details
IP Type: 0 Ring Name: gfx_0.0.0

[gfxhub] Page fault observed
Faulty page starting at address: 0x0000800100001000
Protection fault status register: 0x301031

IP Dump
IP: gfx_v10_0
mmGRBM_STATUS                                      \t 0xa0003028
mmCP_ME_HEADER_DUMP                                \t 0xc0023f00
mmCP_ME_HEADER_DUMP                                \t 0x00000000

num_mec: 1 num_pipe: 1 num_queue: 2

mec 0, pipe 0, queue 0
mmCP_HQD_ACTIVE                                    \t 0x00000001

mec 0, pipe 0, queue 1
mmCP_HQD_ACTIVE                                    \t 0x00000000

num_me: 1 num_pipe: 1 num_queue: 1

me 0, pipe 0, queue 0
mmCP_GFX_HQD_ACTIVE                                \t 0x00000001

IP: sdma_v5_2
num_instances:2

Instance:0
mmSDMA0_STATUS_REG                                 \t 0x46dee557

Instance:1
mmSDMA0_STATUS_REG                                 \t 0x46dee557

IP: vcn_v3_0
num_instances:3

Active Instance:VCN0
mmUVD_POWER_STATUS                                 \t 0x00000900

Inactive Instance:VCN1

Harvested Instance:VCN2 Skipping dump

IP: jpeg_v3_0

Ring buffer information
ring name: gfx_0.0.0
Rptr: 0x100000002 Wptr: 0x100000003 RB mask: 3
Ring size in dwords: 4
Ring contents
Offset \t Value
0x0 \t 0xc0012800
0x4 \t 0x0
0x8 \t 0xffff1000
0xc \t 0xdeadbeef
VRAM is lost due to GPU reset!
AMDGPU register dumps:
Offset:     Value:
0x00002004: 0xa0003028
";

#[test]
fn a_dump_as_the_kernel_prints_it() {
    let dump = Devcoredump::read(KERNEL_TEXT.as_bytes()).unwrap();
    assert_eq!(losses(&dump.diagnostics), [""; 0]);
    assert_eq!(dump.kernel.as_deref(), Some("6.12.4"));
    let process = dump.process.as_ref().unwrap();
    assert_eq!((&*process.name, process.pid), ("game.exe", Some(4242)));
    assert_eq!(dump.soc.unwrap().device_id, Some(0x73bf));
    assert_eq!(dump.memory.unwrap().gtt, Some(16_706_195_456));
    assert_eq!(dump.gc_version(), Some(GcVersion { major: 10, minor: 3, revision: 0 }));
    let firmware = |name: &str| dump.firmware.iter().find(|f| f.name == name).unwrap();
    assert_eq!((firmware("MEC2").version, firmware("SMC").program), (0x74, Some(0)));
    assert_eq!(dump.vbios.as_ref().unwrap().name.as_deref(), Some("NAVI21"));
    let timeout = dump.timeout.as_ref().unwrap();
    assert_eq!(
        (timeout.ip_type.and_then(RingType::from_number), &*timeout.ring),
        (Some(RingType::Gfx), "gfx_0.0.0")
    );
    let fault = dump.fault.as_ref().unwrap();
    assert_eq!(
        (fault.address, fault.status, fault.is_recorded()),
        (Some(0x8001_0000_1000), Some(0x30_1031), Some(true))
    );

    let gfx = dump.ip("gfx").unwrap();
    assert_eq!(gfx.register("GRBM_STATUS"), Some(0xa000_3028));
    assert_eq!(gfx.main().unwrap().registers.len(), 3, "entries of a FIFO are kept");
    assert_eq!(gfx.count("num_queue"), Some(2));
    let places: Vec<&BankOwner<'_>> = gfx.banks.iter().map(|bank| &bank.place).collect();
    let compute = |queue| BankOwner::Compute { xcc: None, mec: 0, pipe: 0, queue };
    assert_eq!(
        places,
        [&BankOwner::Block, &compute(0), &compute(1), &BankOwner::Gfx { me: 0, pipe: 0, queue: 0 }]
    );
    assert_eq!(dump.ip("sdma").unwrap().banks[1].place, BankOwner::Instance(1));
    let vcn = dump.ip("vcn").unwrap();
    let power = |bank: &devcore::RegisterBank<'_>| match bank.place {
        BankOwner::Video { power, .. } => Some(power),
        _ => None,
    };
    let powers: Vec<Option<PowerState>> = vcn.banks.iter().map(power).collect();
    assert_eq!(powers, [Some(PowerState::Active), Some(PowerState::Inactive), Some(PowerState::Harvested)]);
    assert!(dump.ip("jpeg").unwrap().banks.is_empty());

    let ring = dump.hung_ring().unwrap();
    assert_eq!((ring.rptr, ring.wptr, ring.mask), (Some(0x1_0000_0002), Some(0x1_0000_0003), Some(3)));
    assert_eq!(ring.contents.whole(), Some(&[0xc001_2800, 0, 0xffff_1000, 0xdead_beef][..]));
    assert_eq!(dump.vram, Some(VramState::Lost));
    assert_eq!(dump.reset_registers[0].offset, 0x2004);

    assert_eq!(String::from_utf8(written(&dump)).unwrap(), KERNEL_TEXT);
    assert!(!dump.layout.has_exceptions(), "this crate writes what the kernel does");
    assert_eq!(
        String::from_utf8(written(&Devcoredump { layout: Default::default(), ..dump })).unwrap(),
        KERNEL_TEXT
    );
}

#[test]
fn what_was_built_is_what_is_read_from_its_text() {
    for gfx in Gfx::ALL {
        for era in AmdgpuEra::ALL {
            let built = AmdgpuBuilder::complete(gfx).era(era).build();
            let text = written(&built);
            assert!(devcore::sniff(&text));
            let read = Devcoredump::read(&text).unwrap();
            assert_eq!(read, built, "{gfx:?} {era:?}");
            assert_eq!(losses(&read.diagnostics), [""; 0], "{gfx:?} {era:?}");
            assert!(!read.layout.has_exceptions(), "{gfx:?} {era:?}");
            let [major, minor, _] = gfx.version();
            if gfx != Gfx::V8 && era > AmdgpuEra::V5_19 {
                let version = read.gc_version().map(|v| [u32::from(v.major), u32::from(v.minor)]);
                assert_eq!(version, Some([major, minor]), "{gfx:?}");
                let unversioned = Devcoredump { hwips: Vec::new(), ..read.clone() };
                assert_eq!(unversioned.gc_version(), None, "{gfx:?}");
                assert_eq!(
                    unversioned.gfx_block_version().map(|v| u32::from(v.major)),
                    Some(major),
                    "by its blocks"
                );
                assert_eq!(read.ip("gfx").unwrap().register("CP_IB1_BASE_HI"), Some(0x8001), "{gfx:?}");
            }
        }
    }
}

#[test]
fn every_quirk_is_written_back_as_it_was() {
    for (what, text) in variety() {
        let dump = Devcoredump::read(&text).unwrap();
        assert_eq!(String::from_utf8_lossy(&written(&dump)), String::from_utf8_lossy(&text), "{what}");
    }
}

#[test]
fn quirks_do_not_change_what_is_said() {
    let plain = AmdgpuBuilder::complete(Gfx::V10).era(AmdgpuEra::V7_1);
    for quirk in [Quirk::CarriageReturns, Quirk::UnknownThings, Quirk::NoHeadings, Quirk::RingsFirst] {
        let text = plain.clone().quirk(quirk).text();
        let read = Devcoredump::read(&text).unwrap();
        assert_eq!(read, plain.build(), "{quirk:?}");
        let complains = matches!(quirk, Quirk::UnknownThings | Quirk::NoHeadings);
        assert_eq!(!losses(&read.diagnostics).is_empty(), complains, "{quirk:?}");
    }
}

#[test]
fn what_is_changed_is_written_and_nothing_else() {
    let text = AmdgpuBuilder::complete(Gfx::V11).era(AmdgpuEra::V7_1).quirk(Quirk::UnknownThings).text();
    let mut dump = Devcoredump::read(&text).unwrap();
    dump.ips[0].banks[0].registers[0].value = 0x1234_5678;
    dump.fault = None;
    dump.rings.push(devcore::AmdgpuRing { name: "added".into(), ..devcore::AmdgpuRing::default() });
    let out = String::from_utf8(written(&dump)).unwrap();
    assert!(out.contains("0x12345678") && out.contains("ring name: added") && out.contains("SOC Mood: 7"));
    let again = Devcoredump::read(out.as_bytes()).unwrap();
    assert_eq!((&again.ips, &again.rings), (&dump.ips, &dump.rings));
}

#[test]
fn a_fault_without_a_status_is_none() {
    let fault = |status| {
        let text = AmdgpuBuilder::new(Gfx::V10).fault("mmhub", 0, status).text();
        let dump = Devcoredump::read(&text).unwrap();
        dump.fault.and_then(|fault| fault.is_recorded())
    };
    assert_eq!(fault(0), Some(false));
    assert_eq!(fault(1), Some(true));
    let cut = b"**** AMDGPU Device Coredump ****\n\n[gfxhub] Page fault observed\nFaulty page starting at address: 0x1\n";
    let dump = Devcoredump::read(cut).unwrap();
    assert_eq!(dump.fault.as_ref().and_then(|fault| fault.is_recorded()), None, "absent is not 0");
    assert_eq!(losses(&dump.diagnostics).len(), 1);
}

#[test]
fn gaps_of_a_ring_are_not_known() {
    let text = KERNEL_TEXT
        .replace("0x4 \t 0x0\n", "")
        .replace("0x8 \t 0xffff1000\n", "0x8 \t 0xffff1000\n0x8 \t 0x1\n");
    let dump = Devcoredump::read(text.as_bytes()).unwrap();
    let ring = dump.hung_ring().unwrap();
    assert_eq!(
        [0, 1, 2, 3].map(|at| ring.contents.get(at)),
        [Some(0xc001_2800), None, Some(0xffff_1000), Some(0xdead_beef)]
    );
    assert_eq!(losses(&dump.diagnostics).len(), 2);
}

#[test]
fn a_cut_number_is_not_taken() {
    for (end, rptr) in
        [("Rptr: 0x12 Wptr: 0x34 RB mask: 1", None), ("Rptr: 0x12 Wptr: 0x34 RB mask: 1\n", Some(0x12))]
    {
        let text = format!("**** AMDGPU Device Coredump ****\nring name: gfx\n{end}");
        let dump = Devcoredump::read(text.as_bytes()).unwrap();
        assert_eq!(dump.rings[0].rptr, rptr);
    }
}

#[test]
fn other_texts_are_no_dumps() {
    for text in [
        "",
        "\n",
        "version: 1\nkernel: 6\n",
        "ring name: x\n",
        "IP: 10.0.0.1\n",
        "---\nkernel: 6.6\nmodule: msm\n",
    ] {
        assert_eq!(Devcoredump::read(text.as_bytes()), Err(NotDevcoredump), "{text:?}");
    }
}

#[test]
fn a_second_dump_is_not_read() {
    let text = KERNEL_TEXT.repeat(2);
    let dump = Devcoredump::read(text.as_bytes()).unwrap();
    assert_eq!(dump.rings.len(), 1);
    assert_eq!(losses(&dump.diagnostics).len(), 1);
    assert_eq!(written(&dump), text.as_bytes());
    let sections: Vec<Option<AmdgpuSection>> = dump.sections().map(|info| info.section).collect();
    assert_eq!((sections[0], sections.last()), (Some(AmdgpuSection::Marker), Some(&None)));
}

#[test]
fn waves_in_every_form_say_the_same() {
    for gfx in Gfx::ALL {
        let waves = WaveSpec::some(gfx);
        for form in WaveForm::ALL {
            let text = waves_text(gfx, &waves, form);
            let umr = UmrText::read(text.as_bytes()).unwrap();
            assert_eq!(losses(&umr.diagnostics), [""; 0], "{gfx:?} {form:?}");
            assert_eq!(umr.waves.len(), waves.len(), "{gfx:?} {form:?}");
            for (read, spec) in umr.waves.iter().zip(&waves) {
                let [se, sa, cu, simd, wave] = spec.place.map(Some);
                assert_eq!(
                    read.place,
                    UmrWaveLocation { se, sa, cu, simd, wave, wgp: gfx >= Gfx::V10 },
                    "{form:?}"
                );
                assert_eq!((read.pc(), read.exec()), (Some(spec.pc), Some(spec.exec)), "{form:?}");
                assert_eq!(read.status(), Some(spec.status), "{form:?}");
                assert_eq!([read.inst_dw0(), read.inst_dw1()], spec.inst.map(Some), "{form:?}");
                assert_eq!(read.sgprs.whole(), Some(&spec.sgprs[..]), "{form:?}");
                let words: Vec<u32> = read.code.iter().map(|word| word.word).collect();
                assert_eq!(words, spec.code.iter().map(|(word, _)| *word).collect::<Vec<_>>(), "{form:?}");
                let at_pc: Vec<u64> = read.code.iter().filter(|w| w.at_pc).map(|w| w.address()).collect();
                assert_eq!(at_pc, [spec.pc], "{form:?}");
                if matches!(form, WaveForm::Bits | WaveForm::Coloured | WaveForm::OldBits) {
                    assert_eq!(read.field("STATUS", "HALT"), Some(1), "{form:?}");
                    assert_eq!(read.field("STATUS", "EXECZ"), Some(0), "{form:?}");
                }
                if matches!(form, WaveForm::Blocks | WaveForm::Bits | WaveForm::Coloured) {
                    assert_eq!(read.vgprs.len(), spec.vgprs.len());
                    assert_eq!(read.vgprs[1].lanes, spec.vgprs[1]);
                    assert_eq!(read.shader.map(|s| (s.vmid, s.address)), Some((spec.vmid, spec.shader)));
                }
            }
        }
    }
    assert!(UmrText::read(b"No active waves! (or GFXOFF was not disabled)\n").unwrap().no_waves);
    assert!(UmrText::read(b"hello: 1 | 2\n[1] = 2\n").is_err());
    assert!(!umr::sniff(b"key => 0x12\nfield == 3\n"));
}

#[test]
fn rings_and_registers_of_umr() {
    let dwords: Vec<u32> = (0..64).map(|i| 0x100 + i).collect();
    let text = ring_text("navi10.gfx_0.0.0", 20, 4, &dwords);
    let umr = UmrText::read(text.as_bytes()).unwrap();
    let ring = &umr.rings[0];
    assert_eq!(ring.name.as_deref(), Some("gfx_0.0.0"));
    assert_eq!((ring.rptr, ring.wptr, ring.driver_wptr), (Some(20), Some(4), Some(4)));
    assert_eq!(ring.contents.get(53), Some(0x135), "begins 31 in front of the read pointer");
    assert_eq!((ring.contents.get(4), ring.contents.get(5)), (Some(0x104), None), "and wraps");
    assert_eq!(losses(&umr.diagnostics), [""; 0]);

    let text = ring_stream_text(&[(0, 0x1800, &dwords), (3, 0x8001_0000_0000, &dwords[..4])]);
    let umr = UmrText::read(text.as_bytes()).unwrap();
    let ibs = &umr.rings[0].ibs;
    assert_eq!((ibs[0].vmid, ibs[0].iova, ibs[0].size), (0, 0x1800, Some(64)));
    assert_eq!((ibs[1].vmid, ibs[1].contents.whole()), (3, Some(&dwords[..4])));

    let text = registers_text(
        "navi21.gfx1030",
        &[("mmGRBM_STATUS", 0xa000_3028, &[("GUI_ACTIVE", 31, 31), ("AVAIL", 0, 3)])],
    );
    let umr = UmrText::read(text.as_bytes()).unwrap();
    let register = &umr.registers[0];
    assert_eq!((&*register.name, register.path.as_deref()), ("mmGRBM_STATUS", Some("navi21.gfx1030")));
    assert_eq!(register.value, Some(0xa000_3028));
    let fields: Vec<(&str, Option<u32>)> = register.fields.iter().map(|f| (&*f.name, f.value)).collect();
    assert_eq!(fields, [("GUI_ACTIVE", Some(1)), ("AVAIL", Some(8))]);
}

fn members(files: &[(String, Vec<u8>)]) -> Vec<ReportMember<'_>> {
    files.iter().map(|(name, bytes)| ReportMember { name, bytes, offset: 0 }).collect()
}

#[test]
fn a_complete_report() {
    for gfx in Gfx::ALL {
        let built = RadvBuilder::complete(gfx);
        let files = built.members();
        let report = RadvReport::read(&members(&files)).unwrap();
        assert_eq!(losses(&report.diagnostics), [""; 0], "{gfx:?}");
        assert_eq!(report.members.len(), files.len());
        assert!(report.members.iter().all(|member| member.kind.is_some()));

        let trace = report.trace.as_ref().unwrap();
        assert_eq!(trace.id, Some(2));
        let names: Vec<&str> = trace.streams.iter().map(|s| &*s.name).collect();
        assert_eq!(names, ["Preamble IB", "Main IB", "Postamble IB"]);
        let main = &trace.streams[1];
        assert_eq!((main.ip.as_deref(), main.depth, main.cut), (Some("GFX"), 0, false));
        assert_eq!(
            main.contents.whole(),
            Some(&[0xc000_1000, 0xcafe_0001, 0xc000_1000, 0xcafe_0002, 0xc000_1000, 0xcafe_0003][..])
        );
        let points: Vec<_> = main.packets.iter().filter_map(|p| Some((p.dword?, p.trace_point?))).collect();
        let points: Vec<_> = points.into_iter().map(|(at, point)| (at, point.id, point.reached)).collect();
        assert_eq!(
            points,
            [(0, 1, TraceProgress::Yes), (2, 2, TraceProgress::Last), (4, 3, TraceProgress::No)]
        );
        assert_eq!(trace.streams[2].packets[0].name, "DRAW_INDEX_AUTO");

        let pipeline = report.pipeline.as_ref().unwrap();
        assert_eq!((pipeline.ip.as_deref(), pipeline.active_waves), (Some("GFX"), Some(2)));
        let names: Vec<&str> = pipeline.shaders.iter().map(|s| &*s.name).collect();
        assert_eq!(
            names,
            ["Vertex Shader as NGG", "Pixel Shader"],
            "an annotated listing is no shader of its own"
        );
        let [vertex, pixel] = &pipeline.shaders[..] else { panic!() };
        assert_eq!((vertex.address(), vertex.size(), vertex.code.len()), (None, 20, 4));
        assert_eq!(pixel.address(), Some(0x8001_2000_0000));
        assert_eq!(pixel.at(0x8001_2000_0008), Some(1));
        assert_eq!(pixel.at(0x8001_2000_0004), None, "inside of an instruction");
        let code = ShaderSpec::waiting(gfx, "Pixel Shader", 0).code;
        let (wait, branch) = (&code[1], &code[2]);
        assert_eq!(&*pixel.code[1].text, wait.1);
        let waves: Vec<_> = pixel.waves.iter().map(|wave| (wave.place.se, wave.pc, wave.inst)).collect();
        assert_eq!(
            waves,
            [
                (Some(0), Some(0x8001_2000_0008), [Some(wait.0[0]), None]),
                (Some(1), Some(0x8001_2000_000c), [Some(branch.0[0]), None])
            ]
        );
        assert_eq!(pipeline.vertex_buffers[0].iova, Some(0x8002_0000_0000));
        assert_eq!(pipeline.vertex_buffers[0].records, Some(64));
        let descriptor = &pipeline.descriptors[0];
        assert_eq!((descriptor.binding, descriptor.kind.as_deref()), (1, Some("Buffer")));
        assert_eq!(descriptor.words[0].fields.len(), 1);

        assert_eq!(report.waves().len(), 2);
        assert_eq!(report.umr_ring.as_ref().unwrap().rings[0].ibs[0].contents.get(2), Some(0x8001));
        assert_eq!(report.registers[0].value, Some(0xa000_3028));
        assert_eq!(report.registers[0].fields.len(), 2);
        let actions: Vec<BoAction> = report.bo_history.iter().map(|event| event.action).collect();
        let mapped = BoAction::Mapped(0x8002_0000_0000);
        assert_eq!(actions, [BoAction::Created, BoAction::Destroyed, BoAction::Created, mapped]);
        assert_eq!((report.bo_ranges.len(), report.bo_ranges[0].handle), (1, Some(7)));
        assert_eq!(report.bindings.iter().map(|b| b.bound).collect::<Vec<_>>(), [true, false, true]);

        let fault = report.vm_fault.as_ref().unwrap();
        assert_eq!((fault.address, fault.status), (Some(0x8001_0000_1000), Some(0x80_0831)));
        assert!(fault.not_found && !fault.use_after_free);
        let name = if gfx >= Gfx::V10 {
            "GCVM_L2_PROTECTION_FAULT_STATUS"
        } else {
            "VM_CONTEXT1_PROTECTION_FAULT_STATUS"
        };
        assert_eq!(fault.status_name.as_deref(), Some(name));
        let [KernelEvent::Fault { address, status, process, vmid, .. }, KernelEvent::Timeout { emitted, .. }] =
            &report.kernel[..]
        else {
            panic!("{:?}", report.kernel)
        };
        assert_eq!((*address, *status, *vmid, *emitted), (fault.address, fault.status, Some(3), Some(102)));
        assert!(process.as_ref().unwrap().starts_with("vkcube pid 4711"));

        let trap = report.trap.as_ref().unwrap();
        assert_eq!((trap.pc, trap.trap_id, trap.exec), (Some(0x8001_2000_0008), Some(0), Some(0xffff_ffff)));
        assert_eq!((trap.sgprs.get(2), trap.lds.get(0), trap.vgprs[0].lanes[1]), (Some(3), Some(7), 6));
        assert_eq!(trap.shader.as_ref().unwrap().at(trap.pc.unwrap()), Some(1));
        let app = |name: &str| report.app.iter().find(|entry| entry.name == name).map(|entry| &*entry.value);
        assert_eq!(app("Application name"), Some("vkcube"));
        assert!(report.gpu.iter().any(|entry| entry.name == "num_se" && entry.value == "4"));
    }
}

#[test]
fn a_report_as_one_text_says_the_same() {
    let built = RadvBuilder::complete(Gfx::V11);
    let text = built.text();
    assert!(radv::sniff(&text));
    let one = RadvReport::read_text(&text).unwrap();
    assert_eq!(losses(&one.diagnostics), [""; 0]);
    let files = built.members();
    let folder = RadvReport::read(&members(&files)).unwrap();
    assert_eq!(one.bo_history, folder.bo_history);
    assert_eq!(one.kernel, folder.kernel);
    assert_eq!(one.trace.as_ref().unwrap().id, folder.trace.as_ref().unwrap().id);
    assert_eq!(one.waves().len(), folder.waves().len());
    assert_eq!(one.pipeline.unwrap().shaders[1].code, folder.pipeline.unwrap().shaders[1].code);

    let old = format!(
        "radv: GPU hang detected...\n\nVM fault report.\n\nFailing VM page: 0x00001000\n{}",
        "Trace ID: 7\n"
    );
    let report = RadvReport::read_text(old.as_bytes()).unwrap();
    assert_eq!(report.vm_fault.unwrap().address, Some(0x1000));
    assert_eq!(report.trace.unwrap().id, Some(7));
    assert!(RadvReport::read_text(b"Trace ID: 7\n").is_err());
    assert!(RadvReport::read(&[]).is_err());
}

#[test]
fn a_broken_file_harms_no_other() {
    let mut files = RadvBuilder::complete(Gfx::V10).members();
    for (name, bytes) in &mut files {
        if name == "bo_history.log" {
            *bytes = b"timestamp=x\n\xff\xff\n".to_vec();
        }
        if name == "trace.log" {
            let half = bytes.len() / 2;
            bytes.truncate(half);
        }
    }
    let report = RadvReport::read(&members(&files)).unwrap();
    assert!(report.bo_history.is_empty());
    assert!(report.trace.unwrap().streams.last().unwrap().cut);
    assert_eq!(report.registers.len(), 2);
    let told = losses(&report.diagnostics);
    assert!(told.iter().any(|loss| loss.contains("bo_history.log: ")), "{told:?}");
    assert!(told.iter().any(|loss| loss.contains("trace.log: ")), "{told:?}");
}

#[test]
fn nested_streams_and_bad_addresses() {
    let text = "Trace ID: 1\n------------------ main IB begin - GFX ------------------\n\
        c0023f00 INDIRECT_BUFFER:\n00100000         IB_BASE_LO <- 0x00100000\n\
        00000000         ADDR <- 0x800100000000 used after free\n\
        \x20        ------------------ nested begin ------------------\n\
        \x20   c0012d00 DRAW_INDEX_AUTO:\n    ???????? \n\
        \x20        ------------------- nested end -------------------\n\
        deadbeef Unknown packet type 3\n------------------- main IB end - GFX -------------------\n";
    let report =
        RadvReport::read(&[ReportMember { name: "trace.log", bytes: text.as_bytes(), offset: 0 }]).unwrap();
    let streams = report.trace.unwrap().streams;
    assert_eq!(streams[0].contents.whole(), Some(&[0xc002_3f00, 0x10_0000, 0, 0xdead_beef][..]));
    assert_eq!((streams[1].depth, streams[1].contents.whole()), (1, Some(&[0xc001_2d00][..])));
    let bad = &streams[0].packets[0].bad_addresses[0];
    assert_eq!((bad.address, &*bad.problem), (0x8001_0000_0000, "used after free"));
}

#[test]
fn shaders_without_their_pipeline() {
    let repeated = "Compute Shader:\n\nDISASM:\nBB0:\n\ts_nop 0 ; bf800000\n\t(then repeated 3 times)\n\ts_endpgm ; bf810000\n";
    let report =
        RadvReport::read(&[ReportMember { name: "shader_dump.log", bytes: repeated.as_bytes(), offset: 0 }])
            .unwrap();
    let shader = &report.pipeline.unwrap().shaders[0];
    assert_eq!(shader.code.iter().map(|i| i.offset).collect::<Vec<_>>(), [0, 4, 8, 12, 16]);
    let stranger = ShaderSpec::waiting(Gfx::V10, "Pixel Shader", 0x1000);
    let mut wave = WaveSpec::some(Gfx::V10).remove(0);
    wave.pc = 0x9999_0000;
    let files = RadvBuilder::new(Gfx::V10).shader(stranger).waves(&[wave]).members();
    let pipeline = RadvReport::read(&members(&files)).unwrap().pipeline.unwrap();
    assert_eq!(pipeline.strangers[0].pc, Some(0x9999_0000));
}

#[test]
fn names_of_files() {
    for name in MemberKind::file_names() {
        assert!(MemberKind::from_name(&name).is_some(), "{name}");
    }
    assert_eq!(MemberKind::from_name("abc.spv"), Some(MemberKind::Spirv));
    assert_eq!(MemberKind::from_name("notes.txt"), None);
}

#[test]
fn every_cut_of_a_dump() {
    let text = AmdgpuBuilder::complete(Gfx::V9_4_3).era(AmdgpuEra::V7_1).text();
    for end in (0..text.len()).step_by(3) {
        check::amdgpu_devcoredump(&text[..end]);
    }
}

#[test]
fn mutated_texts() {
    let texts = texts();
    for seed in 0..1500 {
        let (_, text) = &texts[seed as usize % texts.len()];
        let broken = mutate(text, seed);
        check::amdgpu_devcoredump(&broken);
        if seed % 4 == 0 {
            check::amdgpu_texts(&broken);
        }
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let repeated: [&[u8]; 24] = [
        b"\n",
        b"version: 1\n",
        b"SOC Information\n",
        b"IP: x\n",
        b"IP: gfx\nInstance:0\n",
        b"mec 0, pipe 0, queue 0\n",
        b"a 0x1\n",
        b"ring name: r\n",
        b"0x0 \t 0x1\n",
        b"0xfffffffffffffffc \t 0x1\n",
        b"HWIP: A[0][0]: v1\n",
        b"\nIB #0 0x0 4294967295 dw\n0x00000000\n",
        b"se0.sh0.cu0.simd0.wave0\n",
        b"Main Registers:\nab: 00000000|\n",
        b"[0] = { 00000000 }\n",
        b"pgm[0@0x0 + 0x0] = 0x0\n",
        b"a.b.ring[0] == 0x0\n",
        b"Decoding IB at 0@0x0 from 0@0x0 of 0 words (type 0)\n",
        b"gfx.mmA => 0x0\n",
        b"------ nested begin ------\n",
        b"c0001000 NOP:\n",
        b"Pixel Shader:\nDISASM:\na;00000000\n",
        b"Pixel Shader - annotated disassembly:\na;00000000 [PC=0x0, off=0, size=4]\n",
        b"(then repeated 4294967295 times)\n",
    ];
    let heads: [&[u8]; 3] = [
        b"**** AMDGPU Device Coredump ****\n",
        b"radv: GPU hang detected\nse0.sh0.cu0.simd0.wave0\n",
        b"Pixel Shader:\nDISASM:\na;00000000\n",
    ];
    for (i, text) in repeated.iter().enumerate() {
        let head = heads[i % 3];
        for head in [heads[0], head] {
            let text = [head, &text.repeat(100_000 / text.len())].concat();
            check::amdgpu_devcoredump(&text);
            check::amdgpu_texts(&text);
        }
    }
}
