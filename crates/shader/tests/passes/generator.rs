//! Random shaders: each pass keeps what they do, and so do their forms as text and as SPIR-V.

use unwedge_testkit::shaders::checks::{random_forms, random_shader};

/// Runs a check for seeds in a row. Most of the shaders must be comparable.
fn check(few: u64, many: u64, check: fn(u64) -> Result<bool, String>) {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { many } else { few };
    let first = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut compared = 0;
    for seed in first..first + rounds {
        match check(seed) {
            Ok(comparable) => compared += u64::from(comparable),
            Err(e) => panic!("seed {seed}: {e}"),
        }
    }
    println!("{compared} of {rounds} compared");
    assert!(compared * 10 >= rounds * 8, "only {compared} of {rounds} are defined");
}

#[test]
fn random_shaders_do_the_same_after_each_pass() {
    check(400, 20_000, random_shader);
}

#[test]
fn random_shaders_do_the_same_as_text_and_as_spirv() {
    check(300, 20_000, random_forms);
}
