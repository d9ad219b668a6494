//! Error states of i915 and dumps of xe: what was put into a synthetic dump comes out, whatever the era; what is broken
//! costs no more than what is broken.

use unwedge_base::Severity;
use unwedge_capture::i915::ErrorState;
use unwedge_capture::intel::{
    AddressSpace, BlockEncoding, DumpEdits, DumpEngine, MemoryBlock, MemoryBlockKind, RegisterIndex,
    RingRegister, UnpackEnd,
};
use unwedge_capture::xe::XeDevcore;
use unwedge_testkit::i915::{self, ErrorStateBuilder};
use unwedge_testkit::intel::{EngineState, TestDevice};
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::xe::{self, DevcoreBuilder};

const ALL: usize = usize::MAX;

#[test]
fn every_error_state_says_the_same() {
    for (name, text) in i915::variety() {
        let state = ErrorState::read(&text).unwrap();
        assert_eq!(state.diagnostics, [], "{name}");
        let mut written = Vec::new();
        state.write(&mut written);
        assert!(written == text, "{name}");

        let hang = state.hang().unwrap();
        assert_eq!((hang.process, hang.pid), (Some("game"), Some(1234)), "{name}");
        assert_eq!(hang.code, 0x7b00_0005 ^ 0xffdf_fffe, "{name}");
        assert!(state.pci_id().is_some() && state.field("Kernel").is_some(), "{name}");
        let fault = [&state.registers, &state.engines[0].registers].map(|r| ErrorState::fault_tlb_data(r));
        assert_eq!(fault.into_iter().flatten().next(), Some((0x1_0010, 0)), "{name}");
        assert_eq!(state.indexed("GTIER", 0), Some(0x0100_0101), "{name}");
        assert_eq!(state.fences.len(), 4, "{name}");
        let who: Vec<_> =
            state.processes().map(|p| (p.engine.map(|e| e.to_string()), p.name, p.pid)).collect();
        assert_eq!(who, [(Some("rcs0".into()), "game", 1234), (Some("bcs0".into()), "Xorg", 577)], "{name}");

        let [render, copy] = &state.engines[..] else { panic!("{name}: {} engines", state.engines.len()) };
        assert_eq!(render.id().map(|e| e.to_string()).as_deref(), Some("rcs0"), "{name}");
        assert_eq!(copy.id().map(|e| e.to_string()).as_deref(), Some("bcs0"), "{name}");
        assert_eq!(render.ring(RingRegister::Acthd), Some(0x1_0010_003c), "{name}");
        assert_eq!(render.ring(RingRegister::BbAddr), Some(0x1_0010_003d), "{name}");
        assert_eq!(render.ring(RingRegister::Ipehr), Some(0x7b00_0005), "{name}");
        assert_eq!(render.ring(RingRegister::Start), Some(0x10_0000), "{name}");
        assert_eq!(render.ring(RingRegister::Head), Some(0x14), "{name}");
        assert_eq!(render.ring(RingRegister::Tail), Some(0x38), "{name}");
        assert_eq!(render.ring(RingRegister::Ctl), Some(1), "{name}");
        assert_eq!(render.ring(RingRegister::Instdone), Some(0xffdf_fffe), "{name}");
        // Kernels before 4.9 have them among the registers of the device.
        let (slice, row) = match state.register("INSTDONE_0") {
            Some(own) => {
                assert_eq!((own, state.register("INSTDONE_2")), (0xffdf_fffe, Some(0xffff_ffff)), "{name}");
                (state.register("INSTDONE_1"), state.register("INSTDONE_3"))
            }
            None => {
                let row = render.find("ROW_INSTDONE").unwrap();
                assert_eq!(row.index, RegisterIndex::Two(0, 0), "{name}");
                (render.register("SC_INSTDONE"), Some(row.value))
            }
        };
        assert_eq!((slice, row), (Some(0xffff_fffd), Some(0xffff_ffef)), "{name}");
        assert_eq!((state.hung(render), state.hung(copy)), (Some(true), Some(false)), "{name}");
        if let Some(context) = state.context(render) {
            assert_eq!((context.name, context.pid, context.guilty), ("game", 1234, Some(1)), "{name}");
        }
        if let Some(batch) = state.batch(render) {
            assert_eq!(batch, 0x1_0010_0000..0x1_0010_1000, "{name}");
        }
        for port in state.ports(render).chain(state.requests.iter().map(|r| r.1)) {
            assert_eq!((port.seqno, port.tail, port.pid), (5, Some(0x38), Some(1234)), "{name}");
        }

        let kinds: Vec<_> = state.blocks.iter().map(|b| b.kind).collect();
        for kind in [
            MemoryBlockKind::Ring,
            MemoryBlockKind::Batch,
            MemoryBlockKind::HwContext,
            MemoryBlockKind::StatusPage,
            MemoryBlockKind::WaContext,
        ] {
            assert!(kinds.contains(&kind), "{name}: no {kind:?}");
        }
        for block in &state.blocks {
            let decoded = block.data.as_ref().unwrap().decode(ALL);
            assert_eq!(decoded.end, UnpackEnd::Whole, "{name}, {}", block.name);
        }
        let (ggtt, ppgtt) = (state.ggtt(ALL), state.ppgtt(render, ALL));
        assert_eq!((ggtt.diagnostics, ppgtt.diagnostics), (vec![], vec![]), "{name}");
        assert_eq!(ppgtt.memory.read(0x1_0010_003c), Some(3), "{name}: what ACTHD points at");
        assert_eq!(ggtt.memory.read(0x10_0008), Some(0x1880_0101), "{name}: what the ring starts");
        assert_eq!(ggtt.memory.read(0x20_1004), Some(0x1100_001b), "{name}: the register state");
        assert_eq!(ppgtt.memory.read(0x10_0008), None, "{name}: the ring is not in the context's space");
    }
}

#[test]
fn memory_of_another_engine_is_not_in_the_space_of_this_one() {
    let text = ErrorStateBuilder::new(TestDevice::named("tgl"))
        .engine(EngineState::new("rcs0").batch(0x1000, &[1]))
        .engine(EngineState::new("vcs0").batch(0x1000, &[2]))
        .text();
    let state = ErrorState::read(&text).unwrap();
    let read = |i: usize| state.ppgtt(&state.engines[i], ALL).memory.read(0x1000);
    assert_eq!((read(0), read(1)), (Some(1), Some(2)));
}

#[test]
fn every_xe_dump_says_the_same() {
    for (name, text) in xe::variety() {
        let dump = XeDevcore::read(&text).unwrap();
        assert_eq!(dump.diagnostics, [], "{name}");
        let mut written = Vec::new();
        dump.write(&mut written);
        assert!(written == text, "{name}");

        assert!(dump.pci_id().is_some() && dump.pci_revision() == Some(4), "{name}");
        assert!(dump.field("kernel").is_some(), "{name}");
        assert_eq!(dump.gts.len(), 2, "{name}");
        assert!(dump.gts[0].ip_version().is_some_and(|v| v.2 == 4), "{name}");
        assert_eq!(dump.gts[1].field("Type"), Some("media"), "{name}");
        if let Some((process, pid)) = dump.process() {
            assert_eq!((process, pid.unwrap_or(1234)), ("game", 1234), "{name}");
        }
        let [queue] = &dump.queues[..] else { panic!("{name}: {} queues", dump.queues.len()) };
        assert_eq!((queue.guc_id, queue.field("Name")), (Some(8), Some("rcs8")), "{name}");
        assert_eq!(queue.contexts.len(), 1, "{name}");
        assert_eq!(queue.contexts[0].descriptor, Some(0x90_0000), "{name}");
        assert_eq!(queue.contexts[0].field("Seqno"), Some("(memory) -128"), "{name}");
        assert_eq!((queue.field("Schedule State"), queue.jobs.len()), (Some("0x441"), 1), "{name}");
        assert_eq!(dump.batches, [0x20_0000], "{name}");

        let [render] = &dump.engines[..] else { panic!("{name}: {} engines", dump.engines.len()) };
        assert_eq!(render.id().map(|e| e.to_string()).as_deref(), Some("rcs0"), "{name}");
        assert_eq!(render.ring(RingRegister::Acthd), Some(0x30_001c), "{name}");
        assert_eq!(render.ring(RingRegister::BbAddr), Some(0x30_001d), "{name}");
        assert_eq!(render.ring(RingRegister::Head), Some(0x1c0), "{name}");
        assert_eq!(render.ring(RingRegister::Start), Some(0x80_0000), "{name}");
        assert_eq!(render.field("logical instance"), Some("0"), "{name}");
        let sampler = render.find("SAMPLER_INSTDONE").unwrap();
        assert_eq!((sampler.index, sampler.value), (RegisterIndex::One(0), 0xffff_ffff), "{name}");

        for block in dump.blocks.iter().filter(|b| b.error.is_none()) {
            let decoded = block.data.as_ref().unwrap().decode(ALL);
            assert_eq!(decoded.end, UnpackEnd::Whole, "{name}, {}", block.name);
            let held = decoded.dwords.len() as u64 * 4;
            assert!(block.length.is_none_or(|claimed| claimed == held), "{name}, {}", block.name);
        }
        let (ggtt, ppgtt) = (dump.ggtt(ALL), dump.ppgtt(ALL));
        let of = |kind| dump.blocks.iter().find(|b| b.kind == kind);
        if let Some(log) = of(MemoryBlockKind::GucLog) {
            let log = log.dwords(ALL).unwrap();
            assert_eq!((log.len(), log[1999]), (2000, 1999u32.wrapping_mul(0x0101_0101)), "{name}");
        }
        if of(MemoryBlockKind::HwContext).is_some() {
            assert_eq!(ggtt.memory.read(0x90_1004), Some(0x1108_101b), "{name}");
        }
        if let Some(error) = dump.blocks.iter().find(|b| b.error == Some(-14)) {
            assert_eq!((error.address, error.length), (Some(0x50_0000), Some(0x1000)), "{name}");
            assert!(ppgtt.memory.find(0x50_0000).is_some(), "{name}: the buffer is known");
            assert_eq!(ppgtt.memory.read(0x50_0000), None, "{name}: its contents are not");
            assert_eq!(ppgtt.memory.read(0x40_0000), Some(1), "{name}");
            assert_eq!(dump.blocks.last().map(|b| b.space), Some(AddressSpace::Ppgtt), "{name}");
        }
    }
}

/// What can be cut is not made up: every value of a cut dump is one of the whole dump.
/// Engines and memory of a cut dump are a part of those of the whole one.
fn nothing_new(
    cut: (&[DumpEngine<'_>], &[MemoryBlock<'_>]),
    whole: (&[DumpEngine<'_>], &[MemoryBlock<'_>]),
    what: &str,
) {
    for (cut, whole) in cut.0.iter().zip(whole.0) {
        assert_eq!(cut.registers, whole.registers[..cut.registers.len()], "{what}");
    }
    for (cut, whole) in cut.1.iter().zip(whole.1) {
        let (Some(cut), Some(whole)) = (cut.dwords(ALL), whole.dwords(ALL)) else { continue };
        assert_eq!(cut, whole[..cut.len()], "{what}");
    }
}

#[test]
fn cut_error_states_hold_nothing_new() {
    for era in i915::I915Era::ALL {
        let text = ErrorStateBuilder::complete(TestDevice::named("skl"), era).text();
        let whole = ErrorState::read(&text).unwrap();
        for at in cuts(&text) {
            let Ok(cut) = ErrorState::read(&text[..at]) else { continue };
            assert!(cut.registers.iter().all(|r| whole.registers.contains(r)), "{era:?} at {at}");
            let what = format!("{era:?} at {at}");
            nothing_new((&cut.engines, &cut.blocks), (&whole.engines, &whole.blocks), &what);
            let told = cut.diagnostics.iter().any(|d| d.severity == Severity::Loss);
            assert!(told || text[at - 1] == b'\n', "{what} is cut inside a line");
        }
    }
}

#[test]
fn cut_xe_dumps_hold_nothing_new() {
    for era in xe::XeEra::ALL {
        let text = DevcoreBuilder::complete(TestDevice::named("lnl"), era).text();
        let whole = XeDevcore::read(&text).unwrap();
        for at in cuts(&text) {
            let Ok(cut) = XeDevcore::read(&text[..at]) else { continue };
            assert!(cut.fields.iter().all(|f| whole.fields.contains(f)), "{era:?} at {at}");
            assert_eq!(cut.batches, whole.batches[..cut.batches.len()], "{era:?} at {at}");
            let what = format!("{era:?} at {at}");
            nothing_new((&cut.engines, &cut.blocks), (&whole.engines, &whole.blocks), &what);
            let told = cut.diagnostics.iter().any(|d| d.severity == Severity::Loss);
            assert!(told || text[at - 1] == b'\n', "{what} is cut inside a line");
        }
    }
}

/// Some two hundred places, spread over the lines and the text.
fn cuts(text: &[u8]) -> Vec<usize> {
    let step = text.len() / 150 + 1;
    let lines = (1..text.len()).filter(|&i| text[i - 1] == b'\n').step_by(3).flat_map(|i| [i, i + 1]);
    (1..text.len()).step_by(step).chain(lines.take(100)).filter(|&i| i < text.len()).collect()
}

#[test]
fn broken_dumps_are_read_and_written_back() {
    let states = i915::variety().into_iter().step_by(5);
    for (i, (name, text)) in states.chain(xe::variety().into_iter().step_by(5)).enumerate() {
        for seed in 0..25 {
            let broken = mutate(&text, seed * 1000 + i as u64);
            let mut written = Vec::new();
            if let Ok(state) = ErrorState::read(&broken) {
                state.write(&mut written);
                assert!(written == broken, "{name}, seed {seed}");
                let _ = (state.hang(), state.ggtt(1 << 20), state.processes().count());
                for engine in &state.engines {
                    let _ = (state.ppgtt(engine, 1 << 20), state.context(engine), state.batch(engine));
                    let _ = (state.hung(engine), state.ports(engine).count());
                }
            }
            if let Ok(dump) = XeDevcore::read(&broken) {
                written.clear();
                dump.write(&mut written);
                assert!(written == broken, "{name}, seed {seed}");
                let _ = (dump.process(), dump.this_gt(), dump.ggtt(1 << 20), dump.ppgtt(1 << 20));
            }
        }
    }
}

#[test]
fn a_limit_holds_over_all_blocks() {
    let dump = DevcoreBuilder::complete(TestDevice::named("bmg"), xe::XeEra::V6_14).text();
    let dump = XeDevcore::read(&dump).unwrap();
    let image = dump.ppgtt(5000);
    assert_eq!(image.memory.stored(), 1250);
    assert!(image.diagnostics.iter().all(|d| d.severity == Severity::Loss) && !image.diagnostics.is_empty());
}

#[test]
fn edits_change_what_they_name_and_nothing_else() {
    for era in i915::I915Era::ALL {
        let text = ErrorStateBuilder::complete(TestDevice::named("tgl"), era).text();
        let state = ErrorState::read(&text).unwrap();
        let mut edits = state.edits();
        let acthd = state.engines[0].find("ACTHD").unwrap();
        let ipehr = state.engines[0].find("IPEHR").unwrap();
        let ring = state.blocks.iter().find(|b| b.kind == MemoryBlockKind::Ring).unwrap();
        edits
            .register(acthd, 0x12_3456_7890)
            .register(ipehr, 7)
            .data(ring.data.as_ref().unwrap(), &[1, 2, 3]);
        let edited = write(&edits);
        let changed = ErrorState::read(&edited).unwrap();
        assert_eq!(changed.diagnostics, [], "{era:?}");
        assert_eq!(changed.engines[0].ring(RingRegister::Acthd), Some(0x12_3456_7890), "{era:?}");
        assert_eq!(changed.engines[0].ring(RingRegister::Ipehr), Some(7), "{era:?}");
        let new = changed.blocks.iter().find(|b| b.kind == MemoryBlockKind::Ring).unwrap();
        assert_eq!(new.dwords(ALL), Some(vec![1, 2, 3]), "{era:?}");
        let others = |state: &ErrorState<'_>| -> Vec<Option<Vec<u32>>> {
            state.blocks.iter().filter(|b| b.name != ring.name).map(|b| b.dwords(ALL)).collect()
        };
        assert_eq!(others(&changed), others(&state), "{era:?}");
        assert!(write(&state.edits()) == text, "{era:?}");
    }
}

fn write(edits: &DumpEdits<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    edits.write(&mut out);
    out
}

#[test]
fn what_stands_in_between_is_told_or_left_alone() {
    let text = ErrorStateBuilder::complete(TestDevice::named("tgl"), i915::I915Era::V6_12).text();
    let text = String::from_utf8(text).unwrap();
    // Two engines of the same name, memory twice, a line of garbage in an engine.
    let twice = text
        .replace("bcs0 command stream", "rcs0 command stream")
        .replace("  CTL:   ", "\u{1}garbage\n  CTL:   ");
    let state = ErrorState::read(twice.as_bytes()).unwrap();
    assert_eq!(state.engines.iter().filter(|e| e.name == "rcs0").count(), 2);
    // Garbage without indentation ends the engine; what follows is of the device, and nothing is lost silently.
    assert!(state.diagnostics.iter().any(|d| d.message.contains("garbage")));

    let lost = text.replacen("rcs0 --- ring = ", "rcs0 +++ ring = ", 1);
    let state = ErrorState::read(lost.as_bytes()).unwrap();
    assert!(
        state.diagnostics.iter().any(|d| d.message.contains("without a heading")),
        "{:?}",
        state.diagnostics
    );
    assert_eq!(state.blocks.iter().filter(|b| b.kind == MemoryBlockKind::Ring).count(), 1);
}

#[test]
fn an_engine_without_its_heading_is_another_engine() {
    for era in i915::I915Era::ALL {
        let text = ErrorStateBuilder::complete(TestDevice::named("tgl"), era).text();
        let text = String::from_utf8(text).unwrap();
        for lost in ["rcs0 command stream:\n", "bcs0 command stream:\n"] {
            let broken = text.replace(lost, "");
            if broken == text {
                continue;
            }
            let state = ErrorState::read(broken.as_bytes()).unwrap();
            let told = state.diagnostics.iter().any(|d| d.message.contains("whose name is lost"));
            // Without a line in between, two engines are one with every register twice.
            let twice = |e: &DumpEngine<'_>| e.registers.iter().filter(|r| r.name == "START").count() > 1;
            assert!(told || state.engines.iter().any(twice), "{era:?} without {lost}");
            assert_eq!(state.register("START"), None, "{era:?}: not of the device");
        }
    }
    let text = DevcoreBuilder::complete(TestDevice::named("lnl"), xe::XeEra::V6_14).text();
    let text = String::from_utf8(text).unwrap().replace("rcs0 (physical), logical instance=0\n", "");
    let dump = XeDevcore::read(text.as_bytes()).unwrap();
    assert!(dump.diagnostics.iter().any(|d| d.message.contains("whose name is lost")));
    assert_eq!(dump.engines[0].ring(RingRegister::Head), Some(0x1c0));
}

#[test]
fn a_process_may_have_any_name() {
    let name = "a --- b = 0x1 [7]";
    for era in i915::I915Era::ALL {
        let engine = EngineState::new("rcs0").batch(0x1_0000_0000, &[5]).process(name, 12).hung(1);
        let text = ErrorStateBuilder::new(TestDevice::named("skl")).era(era).engine(engine).text();
        let state = ErrorState::read(&text).unwrap();
        assert_eq!(state.hang().and_then(|h| h.process), Some(name), "{era:?}");
        assert_eq!(state.processes().map(|p| p.name).collect::<Vec<_>>(), [name], "{era:?}");
        let batch = state.blocks.iter().find(|b| b.kind == MemoryBlockKind::Batch).unwrap();
        assert_eq!((batch.address, batch.dwords(4)), (Some(0x1_0000_0000), Some(vec![5])), "{era:?}");
        assert_eq!(batch.engine(), state.engines[0].id(), "{era:?}");
    }
}

#[test]
fn rows_and_ascii85_are_told_apart() {
    let encodings = |era| {
        let text = ErrorStateBuilder::complete(TestDevice::named("bdw"), era).text();
        let state = ErrorState::read(&text).unwrap();
        state.blocks.iter().map(|b| b.data.as_ref().unwrap().encoding).collect::<Vec<_>>()
    };
    assert!(encodings(i915::I915Era::V4_4).iter().all(|&e| e == BlockEncoding::Rows));
    assert!(encodings(i915::I915Era::V4_10).iter().all(|&e| e == BlockEncoding::Ascii85Zlib));
}

#[test]
fn other_texts_are_neither() {
    for text in ["", "\n", "No error state collected\n", "---\nkernel: 6.8\nmodule: msm\n", "hello: 0x1234\n"]
    {
        assert!(ErrorState::read(text.as_bytes()).is_err(), "{text:?}");
        assert!(XeDevcore::read(text.as_bytes()).is_err(), "{text:?}");
    }
}
