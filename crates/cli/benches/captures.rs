//! Captures: as text, as `cffdump` prints it, and the bare walk that a query stands on. Synthetic captures, and those of
//! `UNWEDGE_DATA`.

use divan::Bencher;
use divan::counter::BytesCount;
use std::fs;
use std::io;
use unwedge::hw::Db;
use unwedge::stream::adreno::{AdrenoEvent, AdrenoSink, AdrenoState, Flow};
use unwedge::stream::play::{Consumer, Player, Submission, SubmitChoice};
use unwedge_testkit::data;
use unwedge_testkit::rd;
use unwedge_view::cffdump::{CffdumpOptions, Listing};

/// Buffers that may be alive at once.
const MAX_ALIVE: u64 = 1 << 30;

fn main() {
    divan::main();
}

/// Every capture of the index, decompressed; none when there is no data.
fn real() -> Vec<Vec<u8>> {
    let folder = data::root().join("adreno/captures");
    let index = fs::read_to_string(folder.join("index.csv")).unwrap_or_default();
    let mut names: Vec<&str> = index.lines().skip(1).filter_map(|row| row.split(',').next()).collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().map(|name| data::read(&folder.join(name))).collect()
}

fn list(bencher: Bencher<'_, '_>, captures: &[Vec<u8>]) {
    let db = Db::builtin();
    let bytes: usize = captures.iter().map(Vec::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        for capture in captures {
            let mut listing = Listing::new(CffdumpOptions::default(), false, &db, MAX_ALIVE);
            listing.run("capture", &capture[..], false, &mut io::sink());
        }
    });
}

/// Counts register writes, the least that a query looks at.
struct Writes(u64);

impl AdrenoSink for Writes {
    fn event(&mut self, _: &AdrenoState, event: &AdrenoEvent<'_>) -> Flow {
        self.0 += u64::from(matches!(event, AdrenoEvent::RegWrite(_)));
        Flow::Continue
    }
}

impl<'d> Consumer<'d> for Writes {
    fn submit(&mut self, submission: Submission<'_, 'd>) {
        if let Ok(mut walk) = submission.open() {
            walk.run(self);
        }
    }
}

fn walk(bencher: Bencher<'_, '_>, captures: &[Vec<u8>]) {
    let db = Db::builtin();
    let bytes: usize = captures.iter().map(Vec::len).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        let mut writes = Writes(0);
        for capture in captures {
            Player::new(SubmitChoice::default(), &db, MAX_ALIVE).play(&capture[..], &mut writes);
        }
        writes.0
    });
}

#[divan::bench]
fn text_synthetic(bencher: Bencher<'_, '_>) {
    list(bencher, &[rd::capture(430, 64)]);
}

#[divan::bench]
fn text_of_every_real_capture(bencher: Bencher<'_, '_>) {
    list(bencher, &real());
}

#[divan::bench]
fn walk_synthetic(bencher: Bencher<'_, '_>) {
    walk(bencher, &[rd::capture(430, 64)]);
}

#[divan::bench]
fn walk_of_every_real_capture(bencher: Bencher<'_, '_>) {
    walk(bencher, &real());
}
