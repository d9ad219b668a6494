//! Any bytes as machine code of an AMD GPU, emulated. `cargo fuzz run amdgcn_run`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_isa::amdgcn::Gpu;
use unwedge_sim::amdgcn::{Dispatch, Initial, Program, SimMemory, Timing, run};

/// Steps of a workgroup.
const STEPS: u64 = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[gpu, seed], code)) = bytes.split_first_chunk::<2>() else { return };
    let names: Vec<&str> = Gpu::names().map(|(name, _)| name).collect();
    let Ok(gpu) = Gpu::new(names[usize::from(gpu) % names.len()]) else { return };
    let words: Vec<u32> = code.as_chunks::<4>().0.iter().map(|word| u32::from_le_bytes(*word)).collect();
    let program = Program::new(&words, 0x1000, gpu);
    let mut memory = SimMemory::default();
    if memory.map(0, vec![0x5a; 1 << 16]).is_err() {
        return;
    }
    let timing = if seed == 0 { Timing::Plain } else { Timing::Adversarial { seed: seed.into() } };
    let dispatch = Dispatch {
        size: [96, 1, 1],
        lds: 4096,
        gds: 64,
        scratch: 64,
        steps: STEPS,
        timing,
        scalars: (0..100).map(|n| (n, u32::from(n) * 64)).collect(),
        vectors: (0..8).map(|n| (n, Initial::LocalId(n % 3))).collect(),
        ..Dispatch::default()
    };
    assert!(run(&program, &mut memory, &dispatch, None).steps <= STEPS);
});
