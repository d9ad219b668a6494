//! How fast code is checked, in bytes of code.

#[path = "../tests/data/mod.rs"]
mod data;

use divan::counter::BytesCount;
use unwedge_check::amdgcn::{CheckOptions, check};
use unwedge_isa::amdgcn::{Gpu, codec};

fn main() {
    divan::main();
}

fn checked(bencher: divan::Bencher<'_, '_>, all: &[(Vec<u8>, Gpu)]) {
    let bytes: usize = all.iter().map(|(code, _)| code.len()).sum();
    bencher.counter(BytesCount::new(bytes)).bench_local(|| {
        all.iter().map(|(code, gpu)| check(code, gpu, &CheckOptions::default()).findings.len()).sum::<usize>()
    });
}

/// All shaders of the data, each by itself.
#[divan::bench(sample_count = 20)]
fn shaders(bencher: divan::Bencher<'_, '_>) {
    let all: Vec<_> = data::binaries().into_iter().map(|b| (data::bytes(&b.words), b.gpu)).collect();
    checked(bencher, &all);
}

/// What is there without data: words that are instructions by chance, as many as in a large shader, on every kind of GPU. Nearly every one
/// breaks a rule.
#[divan::bench(sample_count = 20)]
fn generated(bencher: divan::Bencher<'_, '_>) {
    let mut state = 0x9e37_79b9u32;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state
    };
    let names = ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1200"];
    let all = names.map(|name| {
        let gpu = Gpu::new(name).expect("it is in the table");
        let mut words = Vec::new();
        while words.len() < 4000 {
            let tried = [next(), next(), next(), next()];
            let Some(made) = codec::decode(&tried, &gpu) else { continue };
            // Few branches, and short ones, as in shaders.
            let sopp = tried[0] >> 23 == 0x17f;
            let waits = matches!(made.inst.row().name, "s_nop" | "s_waitcnt");
            if !sopp || waits {
                words.extend_from_slice(&tried[..made.dwords.into()]);
            } else if next() % 4 == 0 {
                words.push(0xbf84_0000 + next() % 64);
            }
        }
        words.push(if gpu.generation() >= unwedge_isa::amdgcn::Gfx::Gfx11 {
            0xbfb0_0000
        } else {
            0xbf81_0000
        });
        (data::bytes(&words), gpu)
    });
    checked(bencher, &all);
}
