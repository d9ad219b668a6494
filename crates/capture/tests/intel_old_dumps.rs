//! Error states of i915 before gen8, in the text of kernels from 2.6.31 to 3.18: what was put into them comes out, and what
//! is cut off holds nothing new.

use unwedge_base::Severity;
use unwedge_capture::FileKind;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{AddressSpace, MemoryBlockKind, RingRegister, UnpackEnd};
use unwedge_testkit::i915_old::{BATCH, DEVICES, HEAD, OldEra, OldErrorState, RING};

const ALL: usize = usize::MAX;

#[test]
fn every_old_error_state_says_the_same() {
    for device in DEVICES {
        for era in OldEra::ALL {
            let text = OldErrorState::complete(device, era).text();
            let what = format!("{} {era:?}", device.name);
            assert_eq!(unwedge_capture::sniff(&text), FileKind::I915ErrorState, "{what}");
            let state = ErrorState::read(&text).unwrap();
            assert_eq!(state.diagnostics, [], "{what}");
            let mut written = Vec::new();
            state.write(&mut written);
            assert!(written == text, "{what}");

            let render = state.engines.iter().find(|e| e.id().is_some_and(|id| id.to_string() == "rcs0"));
            let render = render.unwrap_or_else(|| panic!("{what}: {:?}", state.engines));
            let draw = if device.version.0 >= 6 { 20 } else { 16 };
            assert_eq!(render.ring(RingRegister::Acthd), Some(BATCH + draw + 8), "{what}");
            assert!(render.ring(RingRegister::Ipehr).is_some_and(|v| v >> 16 == 0x7b00), "{what}");
            let head = (era >= OldEra::V3_4).then_some(u64::from(HEAD));
            assert_eq!(render.ring(RingRegister::Head), head, "{what}");
            assert!(state.register("EIR").is_some() && state.register("PGTBL_ER").is_some(), "{what}");
            assert!(state.engines.iter().all(|e| e.id().is_some()), "{what}");

            assert_eq!(state.pci_id().is_some(), era.has_pci_id(), "{what}");
            if era.has_pci_id() {
                let version = state.version().map(|v| (u32::from(v.major), u32::from(v.release)));
                assert_eq!(version, Some(device.version), "{what}");
                assert_eq!(state.platform().map(|p| p.name()), Some(device.name), "{what}");
            }
            if era >= OldEra::V3_16 {
                let hang = state.hang().unwrap();
                assert_eq!((hang.generation, hang.process), (None, Some("game")), "{what}");
                assert_eq!(state.hung(render), Some(true), "{what}");
            }
            assert_eq!(state.fences.len(), usize::from(era >= OldEra::V2_6_38), "{what}");
            assert_eq!(state.requests.len(), if era >= OldEra::V3_4 { 1 } else { 0 }, "{what}");
            if !era.has_memory() {
                assert_eq!(state.blocks, [], "{what}");
                continue;
            }
            let [listed, ..] = &state.buffers[..] else { panic!("{what}: no buffers") };
            assert_eq!((listed.address, listed.size), (BATCH, 4096), "{what}");
            assert!(listed.more.contains("(name: 2) (fence: 0)"), "{what}: {listed:?}");
            let kinds: Vec<_> = state.blocks.iter().map(|b| (b.kind, b.address, b.space)).collect();
            let of = |kind, at| (kind, Some(at), AddressSpace::Shared);
            assert_eq!(
                kinds[..2],
                [of(MemoryBlockKind::Batch, BATCH), of(MemoryBlockKind::Ring, RING)],
                "{what}"
            );
            for block in &state.blocks {
                assert_eq!(block.engine(), render.id(), "{what}");
                assert_eq!(block.data.as_ref().unwrap().decode(ALL).end, UnpackEnd::Whole, "{what}");
            }
            for image in [state.ggtt(ALL), state.ppgtt(render, ALL)] {
                assert_eq!(image.diagnostics, [], "{what}");
                assert_eq!(image.memory.read(RING + 8), Some(0x1880_0100), "{what}");
                assert_eq!(image.memory.read(RING + 12), Some(BATCH as u32), "{what}");
            }
        }
    }
}

#[test]
fn cut_old_error_states_hold_nothing_new() {
    for device in [DEVICES[0], DEVICES[3]] {
        for era in OldEra::ALL {
            let text = OldErrorState::complete(device, era).text();
            let whole = ErrorState::read(&text).unwrap();
            for at in (0..text.len()).filter(|at| *at < 2000 || at % 97 == 0) {
                let Ok(cut) = ErrorState::read(&text[..at]) else { continue };
                let what = format!("{} {era:?} at {at}", device.name);
                assert!(cut.registers.iter().all(|r| whole.registers.contains(r)), "{what}");
                assert!(cut.buffers.iter().all(|b| whole.buffers.contains(b)), "{what}");
                assert!(cut.fences.iter().all(|f| whole.fences.contains(f)), "{what}");
                for (cut, whole) in cut.engines.iter().zip(&whole.engines) {
                    assert_eq!(cut.registers, whole.registers[..cut.registers.len()], "{what}");
                }
                for (cut, whole) in cut.blocks.iter().zip(&whole.blocks) {
                    let (Some(cut), Some(whole)) = (cut.dwords(ALL), whole.dwords(ALL)) else { continue };
                    assert_eq!(cut, whole[..cut.len()], "{what}");
                }
                let lost = cut.diagnostics.iter().any(|d| d.severity == Severity::Loss);
                assert!(lost || text.get(at.wrapping_sub(1)) == Some(&b'\n'), "{what} is cut inside a line");
            }
        }
    }
}

/// Contexts of gen7 may have tables of their own from Linux 4.20 on.
#[test]
fn the_kernel_decides_whether_gen7_has_one_table() {
    let text = |kernel: &str, id: &str| {
        format!(
            "GPU HANG: ecode 7:1:0x0\nKernel: {kernel}\nPCI ID: {id}\nrcs0 --- batch = 0x00000000 00001000\n:\n"
        )
    };
    for (kernel, id, space) in [
        ("4.19.0", "0x0166", AddressSpace::Shared),
        ("4.20.0", "0x0166", AddressSpace::Ppgtt),
        ("5.10.0", "0x0126", AddressSpace::Shared),
        ("4.4.0", "0x1916", AddressSpace::Ppgtt),
    ] {
        let text = text(kernel, id);
        let state = ErrorState::read(text.as_bytes()).unwrap();
        assert_eq!(state.blocks[0].space, space, "{kernel} {id}");
    }
}

/// Of gen2 and gen3 nothing is known: no table is taken for theirs.
#[test]
fn before_gen4_there_is_no_version() {
    let text = b"GPU HANG: ecode 3:0:0x01000000\nPCI ID: 0x27a2\nrender command stream:\n  ACTHD: 0x1\n";
    let state = ErrorState::read(text).unwrap();
    assert_eq!((state.version(), state.platform().map(|p| p.name())), (None, None));
}
