//! How fast code is checked, in bytes of code.

#[path = "../tests/data/mod.rs"]
mod data;

use divan::counter::BytesCount;
use unwedge_check::amdgcn::{Options, check};

fn main() {
    divan::main();
}

/// All shaders of the data, each by itself.
#[divan::bench(sample_count = 5)]
fn shaders(bencher: divan::Bencher<'_, '_>) {
    let all: Vec<_> = data::binaries().into_iter().map(|b| (data::bytes(&b.words), b.gpu)).collect();
    let bytes: usize = all.iter().map(|(code, _)| code.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        all.iter().map(|(code, gpu)| check(code, gpu, &Options::default()).findings.len()).sum::<usize>()
    });
}
