//! Any bytes: no panic, no end beyond the steps that were allowed.

mod data;

use unwedge_isa::amdgcn::Gpu;
use unwedge_sim::amdgcn::{Dispatch, Initial, Program, SimMemory, Timing, run};

/// GPUs of every generation, in both wave sizes where there are two.
const GPUS: [(&str, &str); 13] = [
    ("gfx600", ""),
    ("gfx701", ""),
    ("gfx803", ""),
    ("gfx900", ""),
    ("gfx906", ""),
    ("gfx1010", ""),
    ("gfx1010", "+wavefrontsize64"),
    ("gfx1030", ""),
    ("gfx1100", ""),
    ("gfx1100", "+real-true16"),
    ("gfx1150", "+wavefrontsize64"),
    ("gfx1200", ""),
    ("gfx1201", "+real-true16"),
];

fn gpu(name: &str, features: &str) -> Gpu {
    Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("known")
}

fn try_out(words: &[u32], gpu: Gpu, seed: u64) {
    let program = Program::new(words, 0x1000, gpu);
    for timing in [Timing::Plain, Timing::Adversarial { seed }] {
        let mut memory = SimMemory::default();
        memory.map(0, vec![0x5a; 1 << 16]).expect("free");
        let dispatch = Dispatch {
            size: [96, 1, 1],
            lds: 4096,
            gds: 64,
            scratch: 64,
            steps: 300,
            timing,
            scalars: (0..100).map(|n| (n, n as u32 * 64)).collect(),
            vectors: (0..8).map(|n| (n, Initial::LocalId(n % 3))).collect(),
            ..Dispatch::default()
        };
        let outcome = run(&program, &mut memory, &dispatch, None);
        assert!(outcome.steps <= 300);
    }
}

/// A workgroup for which hardware has no room does not run in part.
#[test]
fn workgroups_of_too_many_threads_are_a_fault() {
    let gpu = gpu("gfx1030", "");
    // s_endpgm
    let program = Program::new(&[0xbf81_0000], 0x1000, gpu);
    for (size, fits) in [([1024, 1, 1], true), ([1025, 1, 1], false), ([u32::MAX; 3], false)] {
        let dispatch = Dispatch { size, ..Dispatch::default() };
        let outcome = run(&program, &mut SimMemory::default(), &dispatch, None);
        assert_eq!((outcome.faults.is_empty(), outcome.groups), (fits, u32::from(fits)), "{size:?}");
    }
}

/// Deterministic noise.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 32) as u32 ^ (self.0 >> 13) as u32
    }
}

#[test]
fn random_words() {
    let mut noise = Noise(7);
    for round in 0..400u64 {
        for (name, features) in GPUS {
            let words: Vec<u32> = (0..48).map(|_| noise.next()).collect();
            try_out(&words, gpu(name, features), round);
        }
    }
}

/// Each instruction of the table alone, with registers and modifiers as they come.
#[test]
fn every_opcode() {
    let mut noise = Noise(11);
    for (name, features) in GPUS {
        let gpu = gpu(name, features);
        // The upper bits say the encoding and the opcode.
        for top in 0..=0xffffu32 {
            let words = [top << 16 | noise.next() & 0xffff, noise.next(), noise.next() & 0xff, 0];
            if unwedge_isa::amdgcn::codec::decode(&words, &gpu).is_some() && top % 5 == 0 {
                try_out(&words, gpu, top.into());
            }
        }
    }
}

#[test]
fn mutated_shaders() {
    let Some(shaders) = data::shaders() else { return };
    let mut noise = Noise(3);
    for shader in shaders.all.iter().step_by(23) {
        let mut words = shader.words.clone();
        for _ in 0..4 {
            let at = noise.next() as usize % words.len();
            words[at] ^= 1 << (noise.next() % 32);
        }
        let program = Program::new(&words, 0x0080_0000, shader.gpu);
        for timing in [Timing::Plain, Timing::Adversarial { seed: 5 }] {
            let dispatch = Dispatch { steps: 20_000, ..shader.dispatch(2, timing) };
            run(&program, &mut shader.memory(), &dispatch, None);
        }
    }
}
