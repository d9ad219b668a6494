//! Machine code made by a compiler gives what another implementation of the same shaders gives.

mod data;

use unwedge_sim::amdgcn::Timing;

#[test]
fn in_plain_timing() {
    data::check_all(&[Timing::Plain]);
}

#[test]
fn in_adversarial_timing() {
    data::check_all(&[1, 2, 3].map(|seed| Timing::Adversarial { seed }));
}
