//! Random shaders: each pass keeps what they do, and so do their forms as text and as SPIR-V. Broken forms are refused, or are valid
//! shaders that survive everything.
//!
//! `UNWEDGE_ALL` makes the long campaigns, from the seed `UNWEDGE_SEED` on.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};
use unwedge_shader::ir::Op;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::campaign::{Campaign, Subject};
use unwedge_testkit::shaders::checks::Outcome;
use unwedge_testkit::shaders::{Dialect, random};

/// No input of these takes longer, in a debug build on a busy machine.
const SLOW: Duration = Duration::from_secs(20);

/// Checks seeds in a row; how many are valid, and whether there are enough of them, in percent.
fn run(subject: Subject, files: Vec<Vec<u8>>, [few, many]: [u64; 2], percent: u64) {
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { many } else { few };
    let first = std::env::var("UNWEDGE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let mut campaign = Campaign::new(subject, files);
    let (mut valid, mut slowest) = (0, (Duration::ZERO, 0));
    for seed in first..first + rounds {
        let start = Instant::now();
        match campaign.check(seed) {
            Ok(outcome) => valid += u64::from(outcome == Outcome::Valid),
            Err(e) => panic!("seed {seed}: {e}"),
        }
        slowest = slowest.max((start.elapsed(), seed));
        if few < rounds && seed % 5000 == 0 {
            println!("{} {seed}: {valid} valid, slowest {slowest:?}", subject.name());
        }
    }
    println!("{}: {valid} of {rounds}, slowest {slowest:?}", subject.name());
    assert!(valid * 100 >= rounds * percent, "only {valid} of {rounds}");
    assert!(slowest.0 < SLOW, "seed {} takes {:?}", slowest.1, slowest.0);
}

/// Files of an archive of the test data, every so many.
fn files(archive: &str, ending: &str, step: usize) -> Vec<Vec<u8>> {
    let files = data::archive(archive).into_iter().filter(|(name, _)| name.ends_with(ending));
    files.map(|(_, bytes)| bytes).step_by(step).collect()
}

#[test]
fn random_shaders_do_the_same_after_each_pass() {
    run(Subject::Passes, Vec::new(), [300, 100_000], 80);
}

#[test]
fn random_shaders_of_graphics_stages_do_the_same_after_each_pass() {
    run(Subject::Stages, Vec::new(), [400, 100_000], 95);
}

#[test]
fn random_shaders_do_the_same_as_text_and_as_spirv() {
    run(Subject::Forms, Vec::new(), [300, 100_000], 80);
}

#[test]
fn broken_modules_are_refused_or_valid() {
    let mut modules = files("amd/shaders/shaders.tar.gz", ".spv", 8);
    modules.extend(files("cts-amber/spirv.tar.gz", ".spv", 8));
    run(Subject::Spirv, modules, [500, 200_000], 2);
}

#[test]
fn broken_texts_of_nir_are_refused_or_valid() {
    run(Subject::Nir, files("amd/shaders/mesa_ir_navi31.tar.gz", ".nir", 16), [500, 100_000], 1);
}

#[test]
fn broken_texts_are_refused_or_valid() {
    run(Subject::Text, Vec::new(), [300, 100_000], 2);
}

/// What random shaders do not have: what has no defined result, what other stages have, and images but for loads, stores and sizes.
const ABSENT: [Op; 43] = [
    Op::Undef,
    Op::InterpVar,
    Op::BufferSize,
    Op::LoadSlot,
    Op::StoreSlot,
    Op::Barycentric,
    Op::LoadInterpolated,
    Op::ImageSample,
    Op::ImageGather,
    Op::ImageQueryLod,
    Op::ImageFetch,
    Op::ImageAtomic,
    Op::ImageAtomicCompare,
    Op::ImageLevels,
    Op::ImageSamples,
    Op::Clock,
    Op::EmitVertex,
    Op::EndPrimitive,
    Op::Unreachable,
    Op::AmdRegister,
    Op::AmdDescriptor,
    Op::AmdLoadScalar,
    Op::AmdLoadBuffer,
    Op::AmdStoreBuffer,
    Op::AmdExport,
    Op::AmdSendMessage,
    Op::AmdLaneBelow,
    Op::AmdMaskedCount,
    Op::AmdPermuteLane16,
    Op::AmdDot4,
    Op::AmdCube,
    Op::AmdIntersectRay,
    Op::AmdPackHalf,
    Op::AmdPackUnorm,
    Op::AmdPackSnorm,
    Op::AmdMulZero,
    Op::AmdSin,
    Op::AmdCos,
    Op::AmdLoadTyped,
    Op::AmdConstants,
    Op::AmdAtomicAddGds,
    Op::AmdAppendShared,
    Op::AmdConsumeShared,
];

#[test]
fn random_shaders_have_every_operation_that_a_compute_shader_has() {
    let mut seen = BTreeSet::new();
    for seed in 1..600 {
        let shader = random(&mut Rng::new(seed), Dialect::Full);
        seen.extend(shader.functions().iter().flat_map(|func| func.walk().map(|inst| func.op(inst))));
    }
    let missing: Vec<Op> = Op::ALL.iter().copied().filter(|op| !seen.contains(op)).collect();
    let unexpected: Vec<&Op> = missing.iter().filter(|op| !ABSENT.contains(op)).collect();
    assert!(unexpected.is_empty(), "no random shader has {unexpected:?}");
    let present: Vec<&Op> = ABSENT.iter().filter(|op| !missing.contains(op)).collect();
    assert!(present.is_empty(), "{present:?} is in random shaders, and listed as absent");
}
