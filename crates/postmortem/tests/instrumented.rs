//! Instrumented captures replay on the virtual Adreno to the memory of the originals, but for what was asked for.
//!
//! A sample of the recorded captures; all of them with `UNWEDGE_ALL=1`.

#[path = "edited/replay.rs"]
mod replay;

use replay::{Replayed, StreamPlaces, edited};
use std::num::NonZeroU32;
use std::path::PathBuf;
use unwedge_edit::instrument::{DumpAfter, Instrumentation, Instrumenter, Stomp, StompPoint};
use unwedge_edit::rewrite::{PacketChange, PacketEdit, StreamEditor, StreamPacket, nop};
use unwedge_hw::Db;
use unwedge_sim::adreno::{Loading, RunEnd};
use unwedge_stream::cut::Numbers;
use unwedge_testkit::data;

const STEPS: u64 = 1 << 32;

/// So many recorded captures of each folder; all of them if that is asked for.
fn captures(each: usize) -> Vec<PathBuf> {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let folders = ["adreno/renders", "adreno/compute", "adreno/graphics/captures"];
    let sample = |folder: &&str| {
        let files = data::files(folder, ".rd.gz");
        let step = if all { 1 } else { (files.len() / each).max(1) };
        files.into_iter().step_by(step).collect::<Vec<_>>()
    };
    folders.iter().flat_map(sample).collect()
}

/// CP_NOP around every packet of every stream.
struct NopsAround;

impl StreamEditor for NopsAround {
    fn edit(&mut self, packet: &StreamPacket<'_>) -> PacketEdit {
        let words = |dwords| nop(dwords, unwedge_base::Generation::A6xx).expect("CP_NOP");
        PacketEdit { before: words(2), packet: PacketChange::Keep, after: words(1 + packet.index % 3) }
    }
}

/// Replays what an editor makes of captures, and compares.
fn same_memory(each: usize, mut editor: impl FnMut(&Db) -> Box<dyn StreamEditor>) {
    let db = Db::builtin();
    let (mut wrong, mut seen, mut pages) = (Vec::new(), 0, 0);
    for file in captures(each) {
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = data::read(&file);
        let (out, result) = edited(&bytes, &mut *editor(&db), &db).expect("written");
        assert!(result.moved > 0 && out.len() > bytes.len(), "{name}: nothing was moved");
        let lost: Vec<String> = result.diagnostics.iter().map(ToString::to_string).collect();
        assert!(lost.is_empty(), "{name}: {lost:?}");
        let places = StreamPlaces::of(&bytes, &db);
        let before = Replayed::new(&bytes, Loading::Delta, STEPS, &db);
        let after = Replayed::new(&out, Loading::Delta, STEPS, &db);
        let (differ, compared) = before.differences(&after, &places);
        if before.ends != after.ends || !differ.is_empty() {
            wrong.push(format!(
                "{name}: {:?}, {:?}, {} dwords {:x?}",
                before.ends,
                after.ends,
                differ.len(),
                differ.first()
            ));
        }
        seen += 1;
        pages += compared;
    }
    println!("{seen} captures, {pages} pages that the GPU has written");
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen == 0 || pages > 0);
}

#[test]
fn nops_around_every_packet_change_nothing() {
    same_memory(3, |_| Box::new(NopsAround));
}

/// An instrumenter that lives as long as the test.
fn instrumenter(options: Instrumentation) -> Box<dyn StreamEditor> {
    let options: &'static Instrumentation = Box::leak(Box::new(options));
    Box::new(Instrumenter::new(options))
}

#[test]
fn flushes_and_waits_change_nothing() {
    same_memory(3, |_| {
        instrumenter(Instrumentation {
            flush_all: true,
            wait_every: NonZeroU32::new(3),
            ..Instrumentation::default()
        })
    });
}

#[test]
fn stomped_registers_change_nothing_where_no_state_is_stale() {
    let stomp = |points: &[StompPoint]| Stomp {
        range: 0xc00..=0xbe01,
        inverse: false,
        points: points.to_vec(),
        first: None,
    };
    for points in [&[StompPoint::CommandBuffer][..], &[StompPoint::RenderPass]] {
        let each = if points == [StompPoint::CommandBuffer] { 3 } else { 2 };
        let db = Db::builtin();
        let mut wrong = Vec::new();
        let mut moved = 0;
        for file in captures(each) {
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = data::read(&file);
            let mut editor =
                instrumenter(Instrumentation { stomp: Some(stomp(points)), ..Instrumentation::default() });
            let (out, result) = edited(&bytes, &mut *editor, &db).expect("written");
            moved += result.moved;
            let places = StreamPlaces::of(&bytes, &db);
            let before = Replayed::new(&bytes, Loading::Delta, STEPS, &db);
            let after = Replayed::new(&out, Loading::Delta, STEPS, &db);
            let (differ, _) = before.differences(&after, &places);
            if before.ends != after.ends || !differ.is_empty() {
                wrong.push(format!(
                    "{name}: {} streams moved, {:?}, {} dwords differ",
                    result.moved,
                    after.ends,
                    differ.len()
                ));
            }
        }
        assert!(wrong.is_empty(), "{points:?}:\n{}", wrong.join("\n"));
        assert!(captures(each).is_empty() || moved > 0, "{points:?}");
    }
}

/// What a draw leaves, taken by the capture itself, is what memory holds if nothing comes after it.
#[test]
fn a_dump_after_a_draw_is_what_the_draw_left() {
    let db = Db::builtin();
    let mut compared = 0;
    for file in captures(6).iter().filter(|file| file.to_string_lossy().contains("sysmem")) {
        let bytes = data::read(file);
        let nothing = Instrumentation::default();
        let mut counter = Instrumenter::new(&nothing);
        edited(&bytes, &mut counter, &db).expect("written");
        let works = counter.works();
        let Some(work) = works.checked_sub(1).map(|last| last / 2) else { continue };
        for work in work..works {
            let options = Instrumentation {
                dumps: vec![DumpAfter { work, range: None }],
                ..Instrumentation::default()
            };
            let mut editor = Instrumenter::new(&options);
            let (out, _) = edited(&bytes, &mut editor, &db).expect("written");
            let Some(copy) = editor.copies().first().cloned() else { continue };
            let rest = Instrumentation {
                nop: Some(Numbers::parse(&format!("{}..", work + 1)).expect("numbers")),
                ..Instrumentation::default()
            };
            let (cut, _) = edited(&bytes, &mut Instrumenter::new(&rest), &db).expect("written");
            let [dumped, ended] = [out, cut].map(|bytes| Replayed::new(&bytes, Loading::Delta, STEPS, &db));
            let memory = |replayed: &Replayed<'_>, at: u64| {
                let replay = replayed.replay.as_ref().expect("a machine");
                (at..at + copy.size)
                    .step_by(4)
                    .map(|at| replay.machine.space.memory.load(at, 4).known())
                    .collect::<Vec<_>>()
            };
            assert!(dumped.ends.iter().all(|end| *end == RunEnd::Done), "{:?}", dumped.ends);
            assert!(memory(&dumped, copy.to) == memory(&ended, copy.from), "{}: {copy:x?}", file.display());
            compared += 1;
            break;
        }
    }
    println!("{compared} dumps");
    assert!(captures(6).is_empty() || compared > 0, "no capture had a draw whose attachments are in memory");
}

#[test]
fn a_crash_stops_where_it_was_asked_for() {
    let (db, mut crashed) = (Db::builtin(), 0);
    for file in captures(2) {
        let bytes = data::read(&file);
        let nothing = Instrumentation::default();
        let mut counter = Instrumenter::new(&nothing);
        edited(&bytes, &mut counter, &db).expect("written");
        let Some(last) = counter.works().checked_sub(1) else { continue };
        let options = Instrumentation { crash_at: Some(last / 2), ..Instrumentation::default() };
        let (out, result) = edited(&bytes, &mut Instrumenter::new(&options), &db).expect("written");
        assert_eq!((result.moved, out.len()), (0, bytes.len()), "{}", file.display());
        let replayed = Replayed::new(&out, Loading::Delta, STEPS, &db);
        let stopped = replayed.ends.iter().filter(|end| **end != RunEnd::Done).count();
        assert!(stopped >= 1 && replayed.dump.is_some(), "{}: {:?}", file.display(), replayed.ends);
        crashed += 1;
    }
    assert!(captures(2).is_empty() || crashed > 0);
}
