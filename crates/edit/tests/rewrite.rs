//! Streams rewritten: what comes out of a capture whose packets are kept, changed, and have others around them.

use unwedge_capture::rd::{LiveMemory, LiveStep, RdReader, RdSectionKind};
use unwedge_edit::rewrite::{
    AddressSpace, PacketChange, PacketEdit, RewriteError, Rewritten, SetEdit, StreamEditor, StreamPacket,
    nop, rewrite,
};
use unwedge_hw::Db;
use unwedge_stream::adreno::AdrenoOp;
use unwedge_testkit::data;
use unwedge_testkit::pm4::{CP_NOP, indirect_buffer, pkt4, pkt7};
use unwedge_testkit::rd::{CaptureBuilder, capture};

const LIMIT: u64 = 1 << 30;

fn edited(bytes: &[u8], editor: &mut dyn StreamEditor) -> (Vec<u8>, Rewritten) {
    let mut out = Vec::new();
    let space = AddressSpace::scan(bytes);
    let result = rewrite(bytes, space, editor, &Db::builtin(), LIMIT, &mut out).expect("written");
    (out, result)
}

struct Unchanged;

impl StreamEditor for Unchanged {}

/// Inserts so many dwords of CP_NOP around packets that a function chooses.
struct Around<F>(F);

impl<F: FnMut(&StreamPacket<'_>) -> PacketEdit> StreamEditor for Around<F> {
    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        (self.0)(packet)
    }
}

fn edited_by(bytes: &[u8], edit: impl FnMut(&StreamPacket<'_>) -> PacketEdit) -> (Vec<u8>, Rewritten) {
    edited(bytes, &mut Around(edit))
}

/// The memory and the submits of each set.
fn sets(bytes: &[u8]) -> Vec<(LiveMemory, Vec<(u64, u32)>)> {
    let mut sets: Vec<(LiveMemory, Vec<(u64, u32)>)> = Vec::new();
    let mut reader = RdReader::new(bytes);
    let mut sections = Vec::new();
    while let Some(section) = reader.next() {
        sections.push((section.kind, section.payload.to_vec()));
    }
    let mut live = LiveMemory::new();
    let mut submits = Vec::new();
    for (kind, payload) in sections {
        let (span, claimed) = (Default::default(), payload.len() as u32);
        let section = unwedge_capture::rd::RdSection { kind, span, claimed, payload: &payload, zeros: 0 };
        if kind == RdSectionKind::GpuAddr && !submits.is_empty() {
            sets.push((std::mem::take(&mut live), std::mem::take(&mut submits)));
        }
        if let LiveStep::Submit(submit) = live.take(&section) {
            submits.push((submit.iova, submit.dwords));
        }
    }
    sets.push((live, submits));
    sets
}

#[test]
fn what_nothing_changes_comes_out_byte_for_byte() {
    for gpu_id in [220, 320, 430, 540, 630, 740] {
        let bytes = capture(gpu_id, 3);
        for (before, after) in [(0, 0), (2, 0), (0, 1), (1, 3)] {
            let filler = |count: usize| vec![0xff; 8 * count];
            let padded = [filler(before), bytes.clone(), filler(after)].concat();
            assert!(edited(&padded, &mut Unchanged).0 == padded, "{gpu_id}");
        }
        for cut in [1, 7, 9, 100, bytes.len() / 2, bytes.len() - 3] {
            let cut = &bytes[..bytes.len() - cut];
            assert!(edited(cut, &mut Unchanged).0 == cut, "{gpu_id}");
        }
        let claims = [&bytes[..], &12_u32.to_le_bytes(), &u32::MAX.to_le_bytes(), &[7; 3_000_000]].concat();
        assert!(edited(&claims, &mut Unchanged).0 == claims, "{gpu_id}");
    }
}

#[test]
fn recorded_captures_come_out_byte_for_byte() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    for folder in ["adreno/captures", "adreno/renders", "adreno/compute", "adreno/graphics/captures"] {
        let files = data::files(folder, ".rd.gz");
        for file in files.iter().step_by(if all { 1 } else { 1 + files.len() / 6 }) {
            let bytes = data::read(file);
            let (out, result) = edited(&bytes, &mut Unchanged);
            assert!(out == bytes, "{}", file.display());
            assert!(result.submits > 0, "{}", file.display());
        }
    }
}

/// A stream that calls another twice, which has a condition over two packets.
fn nested() -> Vec<u8> {
    let inner = [
        pkt4(0x8010, &[1]),
        pkt7(0x47, &[1 << 28, 4]),
        pkt4(0x8011, &[2]),
        pkt4(0x8012, &[3]),
        pkt4(0x8013, &[4]),
    ]
    .concat();
    let group = pkt4(0x8014, &[5]);
    let [count, dwords] = [group.len() as u32, inner.len() as u32];
    let draw = pkt7(0x38, &[0x8004, 1, 3]);
    let set = pkt7(0x43, &[count | 7 << 20 | 3 << 24, 0x3000_0000, 1]);
    let outer =
        [indirect_buffer(0x1_2000_0000, dwords), set, draw, indirect_buffer(0x1_2000_0000, dwords)].concat();
    CaptureBuilder::new(630, "nested\0")
        .buffer(0x1_1000_0000, &outer)
        .buffer(0x1_2000_0000, &inner)
        .buffer(0x1_3000_0000, &group)
        .submit(0x1_1000_0000, outer.len() as u32)
        .bytes()
}

/// All register writes in the order of a walk as hardware does it, with what they are executed under.
fn writes(bytes: &[u8]) -> Vec<(u32, u32)> {
    use unwedge_stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, AdrenoWalker, Flow, WalkerOptions};
    struct Writes(Vec<(u32, u32)>, Vec<String>);
    impl AdrenoSink for Writes {
        fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
            match event {
                AdrenoEvent::RegWrite(write) => self.0.push((write.reg, write.value)),
                AdrenoEvent::Trouble(trouble) => self.1.push(format!("{trouble:?}")),
                AdrenoEvent::Missing(stream) => self.1.push(format!("{stream:?}")),
                _ => {}
            }
            Flow::Continue
        }
    }
    let db = Db::builtin();
    let gpu = db.gpu(unwedge_base::Generation::A6xx);
    let mut out = Writes(Vec::new(), Vec::new());
    for (live, submits) in sets(bytes) {
        let mut walker = AdrenoWalker::new(gpu, live.memory(), WalkerOptions::default());
        for (iova, dwords) in submits {
            let stream = live.memory().dwords(iova).expect("the stream").take(dwords as usize);
            walker.walk(stream, Some(iova), &mut out);
        }
    }
    assert_eq!(out.1, Vec::<String>::new());
    out.0
}

#[test]
fn streams_that_grow_are_moved_and_everything_follows() {
    let bytes = nested();
    let before = writes(&bytes);
    let twice = before.iter().filter(|(reg, _)| *reg == 0x8012).count();
    assert_eq!((twice, before.iter().filter(|(reg, _)| *reg == 0x8014).count()), (2, 1));
    // A register write around every packet of every stream.
    let mark = |value| pkt4(0x8100, &[value]);
    let (out, result) = edited_by(&bytes, |packet| PacketEdit {
        before: mark(packet.index as u32),
        packet: PacketChange::Keep,
        after: mark(1000 + packet.index as u32),
    });
    assert_eq!((result.moved, result.added, result.edited), (3, 1, 4 + 5 + 1));
    let after = writes(&out);
    let others: Vec<(u32, u32)> = after.iter().copied().filter(|(reg, _)| *reg != 0x8100).collect();
    assert_eq!(others, before);
    // Both visits of the stream that is called twice, the group, and the stream of the submit.
    assert_eq!(after.len() - before.len(), 2 * (4 + 2 * 5 + 1));
}

#[test]
fn packets_come_once_with_the_draws_that_they_are() {
    let bytes = capture(630, 2);
    let (mut seen, mut draws) = (std::collections::BTreeSet::new(), Vec::new());
    let (out, _) = edited_by(&bytes, |packet| {
        assert!(seen.insert((packet.submit, packet.iova)), "{:#x} comes twice", packet.iova);
        draws.extend(packet.works.iter().copied().map(|work| (packet.submit, work)));
        PacketEdit::default()
    });
    assert!(out == bytes);
    draws.sort_unstable_by_key(|&(_, work)| work);
    let numbers: Vec<u32> = draws.iter().map(|&(_, work)| work).collect();
    assert_eq!(numbers, (0..numbers.len() as u32).collect::<Vec<_>>());
    assert!(numbers.len() > 200);
}

#[test]
fn nop_and_replacement_stay_in_place() {
    let bytes = capture(630, 1);
    let (out, result) = edited_by(&bytes, |packet| match packet.works.is_empty() {
        true => PacketEdit::default(),
        false => PacketEdit::change(PacketChange::Nop),
    });
    assert_eq!((result.moved, result.added, out.len()), (0, 0, bytes.len()));
    assert_eq!(result.edited, 32);
    let (_, again) = edited_by(&out, |packet| {
        assert_ne!(packet.op, AdrenoOp::DrawIndxOffset);
        PacketEdit::default()
    });
    assert_eq!(again.edited, 0);
    let (shorter, result) = edited_by(&bytes, |packet| match packet.works.is_empty() {
        true => PacketEdit::default(),
        false => PacketEdit::change(PacketChange::Replace(pkt7(CP_NOP, &[]))),
    });
    assert_eq!((result.moved, shorter.len()), (0, bytes.len()));
}

/// CP_START_BIN with three prefixes of equal size, and a body.
#[test]
fn the_rows_of_a_table_keep_one_size() {
    let db = Db::builtin();
    let gpu = db.gpu(unwedge_base::Generation::A7xx);
    let opcode =
        |name: &str| u32::from((0..0x7f).find(|&op| gpu.packet_name(op) == Some(name)).expect("a packet"));
    let rows: Vec<u32> = (0..3).flat_map(|n| pkt4(0x8010, &[n])).collect();
    let outer = [
        pkt7(opcode("CP_START_BIN"), &[3, 0x2000_0000, 1, 2]),
        pkt4(0x8011, &[9]),
        pkt7(opcode("CP_END_BIN"), &[]),
    ]
    .concat();
    let bytes = CaptureBuilder::new(740, "bins\0")
        .buffer(0x1_1000_0000, &outer)
        .buffer(0x1_2000_0000, &rows)
        .submit(0x1_1000_0000, outer.len() as u32)
        .bytes();
    let (out, result) = edited_by(&bytes, |packet| match packet.words.get(1) {
        Some(1) if packet.stream.iova != 0x1_1000_0000 => PacketEdit::insert_after(pkt4(0x8012, &[7])),
        _ => PacketEdit::default(),
    });
    assert_eq!((result.edited, result.added, result.diagnostics.len()), (1, 1, 0));
    assert_eq!(
        writes(&out),
        [(0x8010, 0), (0x8011, 9), (0x8010, 1), (0x8012, 7), (0x8011, 9), (0x8010, 2), (0x8011, 9)]
    );
}

/// Adds a buffer that packets write to, at one address in all sets.
#[derive(Default)]
struct Adds {
    kept: Option<u64>,
    given: Vec<u64>,
}

impl StreamEditor for Adds {
    fn begin_set(&mut self, set: &mut SetEdit<'_>) -> Result<(), RewriteError> {
        let kept = match self.kept {
            Some(kept) => kept,
            None => *self.kept.insert(set.reserve(64)?),
        };
        set.add_buffer_at(kept, vec![1, 2, 3], 64)?;
        self.given.push(set.add_buffer(vec![4], 4)?);
        Ok(())
    }
}

#[test]
fn buffers_are_added_where_nothing_else_is() {
    let bytes = nested().repeat(2);
    let mut editor = Adds::default();
    let (out, result) = edited(&bytes, &mut editor);
    assert_eq!(result.added, 4);
    let kept = editor.kept.expect("an address");
    for ((live, _), given) in sets(&out).iter().zip(&editor.given) {
        let memory = live.memory();
        assert_eq!([kept, kept + 8, kept + 60].map(|at| memory.read(at)), [Some(1), Some(3), Some(0)]);
        assert_eq!((memory.read(*given), memory.read(kept + 64)), (Some(4), None));
    }
    assert_eq!(writes(&out), writes(&bytes));
}

#[test]
fn a_stream_that_is_not_whole_stays_where_it_is() {
    let inner = [pkt4(0x8010, &[1]), pkt4(0x8011, &[2])].concat();
    let outer = indirect_buffer(0x1_2000_0000, 100);
    let bytes = CaptureBuilder::new(630, "cut\0")
        .buffer(0x1_1000_0000, &outer)
        .buffer(0x1_2000_0000, &inner)
        .submit(0x1_1000_0000, outer.len() as u32)
        .bytes();
    let (out, result) = edited_by(&bytes, |packet| match packet.stream.level {
        0 => PacketEdit::default(),
        _ => PacketEdit::insert_before(nop(4, unwedge_base::Generation::A6xx).expect("words")),
    });
    assert!(out == bytes);
    assert_eq!((result.moved, result.diagnostics.is_empty()), (0, false));
}
