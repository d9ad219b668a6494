//! Random keys over broken files of every kind: nothing panics. `cargo xtask mutate --only browser` does it for longer, with bounds on
//! time and memory.

use unwedge_campaigns::browser::browse;
use unwedge_testkit::mutate::mutate;
use unwedge_testkit::{amdgpu, bundle, captures, devcore, hostile, i915, xe};

/// So many times as much for `UNWEDGE_ALL`.
fn rounds(few: u64) -> u64 {
    if std::env::var_os("UNWEDGE_ALL").is_some() { 80 * few } else { few }
}

#[test]
fn dumps() {
    let texts = [devcore::variety(), i915::variety(), xe::variety(), amdgpu::texts()].concat();
    let step = if rounds(1) == 1 { 24 } else { 1 };
    for (number, (name, text)) in (0_u64..).zip(&texts).step_by(step) {
        for round in 0..rounds(1) {
            let seed = number << 16 | round;
            browse(name, &if number.is_multiple_of(8) { text.clone() } else { mutate(text, seed) }, seed, 60);
        }
    }
    for seed in 0..rounds(6) {
        browse("hostile dump", &hostile::hostile(seed), seed, 60);
    }
}

#[test]
fn captures_whole_and_broken() {
    let variety = captures::variety();
    for seed in 0..rounds(10) {
        let whole = &variety[seed as usize % variety.len()];
        browse("capture", &captures::mutate(whole, seed), seed, 60);
        browse("hostile capture", &captures::hostile(seed), seed, 60);
    }
}

#[test]
fn code_and_bytes() {
    let object = bundle::code_object("gfx1030");
    let bundled = bundle::bundle(&[("hipv4-amdgcn-amd-amdhsa--gfx1030", &object)]);
    for seed in 0..rounds(20) {
        for bytes in [&object, &bundled] {
            browse("code", &captures::mutate_bytes(bytes, seed), seed, 60);
        }
        browse("bytes", &seed.to_le_bytes().repeat(seed as usize % 700), seed, 60);
    }
}
