//! Machine code made by a compiler gives, bit for bit, what IEEE arithmetic gives for the same shaders.

mod data;

#[test]
fn in_plain_timing() {
    data::check_all();
}

#[test]
fn in_adversarial_timing() {
    data::check_timings(1..=5);
}
