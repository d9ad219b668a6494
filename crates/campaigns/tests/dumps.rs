//! Broken and hostile dumps through everything that prints: no panic, no end of the world, and output in proportion.

use std::time::{Duration, Instant};
use unwedge::base::Generation;
use unwedge::files::Input;
use unwedge::hw::Db;
use unwedge_campaigns::{View, show};
use unwedge_cli::dump::DumpFiles;
use unwedge_testkit::count::ByteCounter;
use unwedge_testkit::data;
use unwedge_testkit::devcore::{DevcoreBuilder, variety};
use unwedge_testkit::hostile::{hostile, repetitive};
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::pm4;

/// Above what a slow machine under load takes without optimization, below what a hang takes.
const PATIENCE: Duration = Duration::from_secs(60);

fn input(text: &[u8]) -> DumpFiles {
    let input = Input::read(text, "dump".to_owned(), text.len() as u64, 1 << 30);
    DumpFiles::of(input.expect("bytes in memory"))
}

/// Shows an input in these ways; what it prints and how long it takes are bounded.
fn views(text: &[u8], views: impl IntoIterator<Item = View>, db: &Db) {
    let input = input(text);
    for view in views {
        let started = Instant::now();
        let counter = ByteCounter::default();
        // An input that cannot be used is said to be so.
        let _ = show(view, &input, db, &mut counter.clone());
        let limit = view.limit(text.len() as u64);
        assert!(counter.bytes() <= limit, "{view:?}: {} bytes from {}", counter.bytes(), text.len());
        assert!(started.elapsed() < PATIENCE, "{view:?} took {:?}", started.elapsed());
    }
}

fn some(seed: u64, of: usize) -> impl Iterator<Item = View> {
    View::all().into_iter().skip(seed as usize % of).step_by(of)
}

#[test]
fn mutated_synthetic_dumps() {
    let (dumps, db) = (variety(), Db::builtin());
    for seed in 0..400 {
        let (_, text) = &dumps[seed as usize % dumps.len()];
        views(&mutate(text, seed), some(seed, 3), &db);
    }
}

#[test]
fn mutated_real_dumps() {
    let db = Db::builtin();
    for (_, text) in data::dumps() {
        for seed in 0..4 {
            views(&mutate(&text, seed), some(seed, 8), &db);
        }
    }
}

#[test]
fn command_streams_that_cost_much() {
    let db = Db::builtin();
    for seed in 0..40 {
        views(&hostile(seed), some(seed, 5), &db);
    }
}

#[test]
fn a_loop_over_every_bin_there_can_be() {
    // A bin loop of four billion, whose prefix calls itself; nothing else in the dump is large.
    let prefix = pm4::indirect_buffer(0x10_0000, 4);
    let start_bin = pm4::pkt7(0x50, &[u32::MAX, 0x10_0000, 0, 4]);
    let ib = [start_bin, pm4::pkt7(pm4::CP_NOP, &[1]), pm4::pkt7(0x51, &[])].concat();
    let text = DevcoreBuilder::a6xx()
        .ring(0x1000, &pm4::indirect_buffer(0x20_0000, ib.len() as u32))
        .bo(0x10_0000, u64::from(u32::MAX), "", &prefix)
        .bo(0x20_0000, 4096, "", &ib)
        .register64(0x800, 0x1000)
        .text();
    views(&text, View::all(), &Db::builtin());
}

#[test]
fn indices_of_a_draw_that_claims_all_of_memory() {
    for size in 0..4 {
        let initiator = (size & 1) << 11 | (size & 2) << 12;
        let draw = pm4::pkt3(0x22, &[0, initiator, u32::MAX, 0x10_0000, u32::MAX]);
        let text = DevcoreBuilder::a3xx()
            .ring(0x1000, &draw)
            .bo(0x10_0000, u64::from(u32::MAX), "", &[1])
            .register(0x1c0, 0x1000)
            .text();
        views(&text, some(size.into(), 2), &Db::builtin());
    }
}

#[test]
fn many_of_anything_takes_linear_time() {
    let db = Db::builtin();
    for (i, text) in repetitive(60_000).iter().enumerate() {
        views(text, some(i as u64, 2), &db);
    }
}

#[test]
fn a_truncated_dump_still_explains_what_is_there() {
    let whole = DevcoreBuilder::complete(Generation::A6xx).text();
    let cut = &whole[..whole.len() / 2];
    let mut out = Vec::new();
    show(View::Explain { json: false }, &input(cut), &Db::builtin(), &mut out).expect("a dump");
    let said = String::from_utf8_lossy(&out);
    assert!(said.starts_with("Adreno 630"), "{said}");
    assert!(said.contains("\nCAUSE ") && said.contains("\nWHERE "), "{said}");
}

#[test]
fn dumps_on_several_threads_give_what_each_gives_alone() {
    let db = Db::builtin();
    let mut dumps: Vec<Vec<u8>> = [Generation::A3xx, Generation::A5xx, Generation::A6xx, Generation::A7xx]
        .map(|generation| DevcoreBuilder::complete(generation).text())
        .into();
    dumps.extend((1..4).map(hostile));
    dumps.extend(data::dumps().into_iter().map(|(_, text)| text));
    let print = |text: &[u8]| {
        let input = input(text);
        View::all()
            .into_iter()
            .skip(1)
            .map(|view| {
                let mut out = Vec::new();
                let result = show(view, &input, &db, &mut out);
                (result, out)
            })
            .collect::<Vec<_>>()
    };
    let alone: Vec<_> = dumps.iter().map(|dump| print(dump)).collect();
    std::thread::scope(|scope| {
        let threads: Vec<_> = dumps.iter().map(|dump| scope.spawn(|| print(dump))).collect();
        for (i, (thread, alone)) in threads.into_iter().zip(&alone).enumerate() {
            assert!(thread.join().expect("no panic") == *alone, "dump {i}");
        }
    });
}
