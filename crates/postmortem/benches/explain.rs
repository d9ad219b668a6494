//! A whole post-mortem. Synthetic dumps, and those of `UNWEDGE_DATA`.

use divan::Bencher;
use unwedge_base::Generation;
use unwedge_capture::msm::Devcore;
use unwedge_hw::Db;
use unwedge_testkit::data;
use unwedge_testkit::devcore::DevcoreBuilder;

fn main() {
    divan::main();
}

fn explain(bencher: Bencher<'_, '_>, texts: &[Vec<u8>]) {
    let db = Db::builtin();
    bencher.bench(|| {
        let explain =
            |text| unwedge_postmortem::explain_msm(&Devcore::read(text).expect("a dump"), &db).findings.len();
        texts.iter().map(|text| explain(text)).sum::<usize>()
    });
}

#[divan::bench]
fn synthetic_a6xx_and_a7xx(bencher: Bencher<'_, '_>) {
    explain(bencher, &[Generation::A6xx, Generation::A7xx].map(|g| DevcoreBuilder::complete(g).text()));
}

#[divan::bench]
fn every_real_dump(bencher: Bencher<'_, '_>) {
    let texts: Vec<Vec<u8>> = data::dumps().into_iter().map(|(_, text)| text).collect();
    explain(bencher, &texts);
}
