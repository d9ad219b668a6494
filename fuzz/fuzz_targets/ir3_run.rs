//! Any bytes as a shader of Adreno, run. `cargo fuzz run ir3_run`
#![no_main]

use libfuzzer_sys::fuzz_target;
use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{Dispatch, Options, PrivateMemory, ShaderProgram, ShaderState, Timing, run};

/// Steps of all waves.
const STEPS: u64 = 2_000;

fuzz_target!(|bytes: &[u8]| {
    let Some((&[gpu, seed], code)) = bytes.split_first_chunk::<2>() else { return };
    let words = code.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
    let program = ShaderProgram::new(words, [630, 660, 730, 740][usize::from(gpu) % 4]);
    let mut memory = SimMemory::default();
    if memory.map(0x1000, vec![0x5a; 1 << 16]).is_err() {
        return;
    }
    let timing = if seed == 0 { Timing::Plain } else { Timing::Adversarial { seed: seed.into() } };
    let dispatch = Dispatch {
        state: ShaderState {
            wave_size: if gpu & 0x80 != 0 { 128 } else { 64 },
            constants: (0..64).map(|n| n * 64).collect(),
            bindless: vec![0x1003; 5],
            private: PrivateMemory { base: 0x1000, per_fiber: 512 },
            ..ShaderState::default()
        },
        local_size: [96, 1, 1],
        local_memory: 4096,
        local_id: Some(0),
        group_id: Some(192),
        ..Dispatch::default()
    };
    let options = Options { steps: STEPS, timing, threads: 1 };
    if let Ok(stats) = run(&program, &dispatch, &mut memory, &options) {
        assert!(stats.steps <= STEPS);
    }
});
