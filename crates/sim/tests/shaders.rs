//! Machine code made by a compiler gives what another implementation of the same shaders gives, up to the sign of zeros where
//! the language leaves it open.

mod data;

#[test]
fn in_plain_timing() {
    data::check_all();
}

#[test]
fn in_adversarial_timing() {
    data::check_timings(1..=5);
}
