//! The full text of a dump, as `decode` and `crashdec` print it. Synthetic dumps, and those of `UNWEDGE_DATA`.

use divan::Bencher;
use divan::counter::BytesCount;
use unwedge::base::Generation;
use unwedge::capture::msm::Devcore;
use unwedge::hw::Db;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;
use unwedge_view::crashdec;

fn main() {
    divan::main();
}

fn list(bencher: Bencher<'_, '_>, dumps: &[Vec<u8>], summary: bool) {
    let options = crashdec::CrashdecOptions { summary, ..crashdec::CrashdecOptions::default() };
    let db = Db::builtin();
    let bytes: usize = dumps.iter().map(Vec::len).sum();
    let mut out = Vec::with_capacity(8 << 20);
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        for dump in dumps {
            out.clear();
            let read = Devcore::read(dump).expect("a dump");
            crashdec::run((dump, &read), &options, &db, &mut out, &mut std::io::sink());
        }
        out.len()
    });
}

fn real() -> Vec<Vec<u8>> {
    data::dumps().into_iter().map(|(_, text)| text).collect()
}

#[divan::bench]
fn synthetic(bencher: Bencher<'_, '_>) {
    list(bencher, &[DevcoreBuilder::complete(Generation::A6xx).text()], false);
}

#[divan::bench]
fn every_real_dump(bencher: Bencher<'_, '_>) {
    list(bencher, &real(), false);
}

#[divan::bench]
fn every_real_dump_summary(bencher: Bencher<'_, '_>) {
    list(bencher, &real(), true);
}
