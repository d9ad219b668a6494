//! Lines of AMD GPU hangs as people post them: variants of kernels and of Mesa that testkit does not write.

use unwedge_capture::amdgpu::Devcoredump;
use unwedge_capture::radv::RadvReport;
use unwedge_capture::radv::{KernelEvent, ReportMember};

fn report<'a>(name: &'a str, text: &'a str) -> RadvReport<'a> {
    RadvReport::read(&[ReportMember { name, bytes: text.as_bytes(), offset: 0 }]).expect("a report")
}

#[test]
fn a_page_fault_before_6_10() {
    // amd-staging-drm-next of early 2024: no colons behind the names, and the family of the GPU.
    let text = "**** AMDGPU Device Coredump ****\nversion: 1\nkernel: 6.7.0-amd-staging-drm-next\nmodule: amdgpu\n\
                time: 29.725011811\nprocess_name: soft_recovery_p PID: 1720\n\nRing timed out details\n\
                IP Type: 0 Ring Name: gfx_0.0.0\n\n[gfxhub] Page fault observed for GPU family:143\n\
                Faulty page starting at address 0x0000000000000000\nProtection fault status register:0x301031\n\n\
                VRAM is lost due to GPU reset!\n";
    let dump = Devcoredump::read(text.as_bytes()).expect("a dump");
    assert_eq!(dump.diagnostics, []);
    let fault = dump.fault.expect("a fault");
    assert_eq!((fault.address, fault.status, fault.is_recorded()), (Some(0), Some(0x30_1031), Some(true)));
    assert_eq!(dump.timeout.expect("a ring").ring, "gfx_0.0.0");
}

#[test]
fn what_people_leave_of_a_dump() {
    // Headings and most lines cut out by hand.
    let text = "**** AMDGPU Device Coredump ****\nversion: 1\nkernel: 6.19.8-zen1-1-zen\nmodule: amdgpu\n\
                time: 3054.167340782\n\nSOC Device id: 30096\nSOC Family: 152\nSOC External Revision id: 65\n\n\
                HWIP: GC[1][0]: v12.0.0.0.0\nHWIP: SDMA0[3][0]: v7.0.0.0.0\n\nRing timed out details\n\
                IP Type: 2 Ring Name: sdma0\n\n[gfxhub] Page fault observed\n\
                Faulty page starting at address: 0x0000000000000000\nProtection fault status register: 0x0\n";
    let dump = Devcoredump::read(text.as_bytes()).expect("a dump");
    assert_eq!(dump.gc_version().map(|v| v.to_string()), Some("12.0.0".to_owned()));
    assert_eq!(dump.soc.and_then(|soc| soc.device_id), Some(30096));
    assert_eq!(dump.fault.and_then(|fault| fault.is_recorded()), Some(false));
    let missing: Vec<&str> = dump.diagnostics.iter().map(|d| d.message.as_str()).collect();
    let [rest @ .., end] = &missing[..] else { panic!("nothing is said of what they left out") };
    assert!(rest.iter().all(|message| message.contains("the heading of section")), "{missing:?}");
    assert_eq!(*end, "the dump ends before its rings");
}

#[test]
fn kernels_logs_of_all_times() {
    let log = "\
Jun  9 19:25:15 host kernel: drmn0: [gfxhub0] retry page fault (src_id:0 ring:0 vmid:3 pasid:32770, for process game pid 7 thread game:cs0 pid 8)
Jun  9 19:25:15 host kernel: drmn0:   in page starting at address 0x000080011e074000 from client 27
Jun  9 19:25:15 host kernel: drmn0: VM_L2_PROTECTION_FAULT_STATUS:0x00341051
[   87.8] [drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring gfx timeout, but soft recovered
[   88.0] amdgpu 0000:03:00.0: amdgpu: [gfxhub] page fault (src_id:0 ring:24 vmid:5 pasid:522)
[   88.0] amdgpu 0000:03:00.0: amdgpu:  Process alacritty pid 2931230 thread alacritty:cs0 pid 2931240
[   88.0] amdgpu 0000:03:00.0: amdgpu:   in page starting at address 0x0000800100000000 from client 0x1b (UTCL2)
[   88.0] amdgpu 0000:03:00.0: amdgpu: GCVM_L2_PROTECTION_FAULT_STATUS:0x00501031
[   98.0] amdgpu 0000:03:00.0: ring gfx_0.1.0 timeout, signaled seq=2372840, emitted seq=2372842
";
    let report = report("dmesg.log", log);
    let [first, soft, second, timeout] = &report.kernel[..] else { panic!("{:?}", report.kernel) };
    let KernelEvent::Fault { hub, vmid, address, status, process } = first else { panic!("{first:?}") };
    assert_eq!((&**hub, *vmid, *address), ("gfxhub0", Some(3), Some(0x8001_1e07_4000)));
    assert_eq!((*status, process.as_deref()), (Some(0x34_1051), Some("game pid 7 thread game:cs0 pid 8")));
    let KernelEvent::Timeout { ring, signaled: None, .. } = soft else { panic!("{soft:?}") };
    assert_eq!(ring, "gfx");
    let KernelEvent::Fault { vmid, status, process, .. } = second else { panic!("{second:?}") };
    assert_eq!((*vmid, *status), (Some(5), Some(0x50_1031)));
    assert_eq!(process.as_deref(), Some("alacritty pid 2931230 thread alacritty:cs0 pid 2931240"));
    let KernelEvent::Timeout { ring, signaled, emitted } = timeout else { panic!("{timeout:?}") };
    assert_eq!((&**ring, *signaled, *emitted), ("gfx_0.1.0", Some(2_372_840), Some(2_372_842)));
}

/// Mesa counts long instructions as two dwords, and leaves repetitions out.
#[test]
fn places_in_annotated_listings() {
    let text = "\
AMD_IP_GFX:
Compute Shader:

DISASM:
BB0:
\tv_nop                                ; 7e000000
\t(then repeated 2 times)
\timage_sample v[0:3], [v0, v1, v2], s[0:7], s[8:11] ; f0800f0a 00400000 00000201
\ts_waitcnt vmcnt(0)                   ; bf8c3f70
\ts_endpgm                             ; bf810000

*** SHADER STATS ***
The number of active waves = 1

Compute Shader - annotated disassembly:
\tv_nop                                ; 7e000000 [PC=0x1000, off=0, size=4]
\timage_sample v[0:3], [v0, v1, v2], s[0:7], s[8:11] ; f0800f0a 00400000 00000201 [PC=0x1004, off=4, size=8]
\ts_waitcnt vmcnt(0)                   ; bf8c3f70 [PC=0x100c, off=12, size=4]
          ^ SE0 SH0 CU1 SIMD0 WAVE2  EXEC=00000000ffffffff  INST32=F0800F0A
\ts_endpgm                             ; bf810000 [PC=0x1010, off=16, size=4]
";
    let report = report("pipeline.log", text);
    let state = report.pipeline.expect("a pipeline");
    let [shader] = &state.shaders[..] else { panic!("{:?}", state.shaders) };
    let places: Vec<(u64, Option<u64>)> = shader.code.iter().map(|i| (i.offset, i.pc)).collect();
    let place = |offset: u64| (offset, Some(0x1000 + offset));
    assert_eq!(places, [place(0), place(4), place(8), place(12), place(24), place(28)]);
    // Where it stands is the third instruction that is listed, and in truth the image instruction.
    assert_eq!(shader.waves[0].pc, Some(0x100c));
    assert_eq!(shader.at(0x100c), Some(3));
}
