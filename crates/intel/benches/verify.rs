//! Verification of a context, and what is said of one that something happened to.

use divan::{Bencher, black_box};
use unwedge_hw::intel::platform::{IntelDriver, Version};
use unwedge_intel::lrc::triage::{identify, triage};
use unwedge_intel::lrc::values::odd;
use unwedge_intel::lrc::{LrcImage, LrcLayout, LrcOwner};

fn main() {
    divan::main();
}

/// The longest table.
fn layout() -> LrcLayout {
    let engine = "rcs0".parse().expect("an engine");
    LrcLayout::of(LrcOwner { driver: IntelDriver::I915, version: Version::new(12, 0), engine })
        .expect("a layout")
}

fn poisoned(layout: &LrcLayout) -> Vec<u32> {
    let mut page = layout.expand();
    page[8..40].fill(0x6b6b_6b6b);
    page
}

#[divan::bench]
fn expand_a_table(bencher: Bencher<'_, '_>) {
    bencher.bench(layout);
}

#[divan::bench]
fn verify_a_clean_image(bencher: Bencher<'_, '_>) {
    let layout = layout();
    let page = layout.expand();
    bencher.bench(|| layout.verify(black_box(&page)).differences.len());
}

#[divan::bench]
fn verify_a_poisoned_image(bencher: Bencher<'_, '_>) {
    let layout = layout();
    let page = poisoned(&layout);
    bencher.bench(|| layout.verify(black_box(&page)).differences.len());
}

#[divan::bench]
fn odd_values(bencher: Bencher<'_, '_>) {
    let layout = layout();
    let page = layout.expand();
    bencher.bench(|| odd(black_box(&page), &layout).len());
}

#[divan::bench]
fn triage_of_a_poisoned_image(bencher: Bencher<'_, '_>) {
    let layout = layout();
    let page = poisoned(&layout);
    let verified = layout.verify(&page);
    bencher.bench(|| triage(&LrcImage::new(black_box(&page)), &layout, &verified).len());
}

#[divan::bench]
fn identify_an_image(bencher: Bencher<'_, '_>) {
    let page = layout().expand();
    bencher.bench(|| identify(black_box(&page)).len());
}
