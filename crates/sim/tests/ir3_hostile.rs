//! Any words as a shader: an end, a fault or the limit of steps, and nothing else.

use unwedge_sim::SimMemory;
use unwedge_sim::adreno::ir3::{
    Dispatch, FaultKind, Options, PrivateMemory, ShaderProgram, ShaderState, Timing, run,
};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 ^ self.0 >> 29
    }
}

/// Words of which most are instructions: the category and what selects the operation are chosen, the rest is random.
fn words(random: &mut Random) -> Vec<u64> {
    let count = 4 + random.next() % 40;
    (0..count)
        .map(|_| {
            let word = random.next();
            match random.next() % 4 {
                // Near branches.
                0 => word & 0x1fff_ffff_0000_0000 | (word & 7),
                // Few registers, no odd bits.
                1 => word & 0xfff0_020f_000f_000f,
                2 => word & !(1 << 42) & 0xffff_ffff_00ff_00ff,
                _ => word,
            }
        })
        .collect()
}

#[test]
fn any_words_end() {
    let mut random = Random(42);
    let mut ended = 0;
    for round in 0..6000u64 {
        let gpu_id = if round % 2 == 0 { 630 } else { 740 };
        let program = ShaderProgram::new(words(&mut random), gpu_id);
        let mut memory = SimMemory::default();
        memory.map(0x1000, (0..4096).map(|_| random.next() as u8).collect()).expect("free");
        let dispatch = Dispatch {
            state: ShaderState {
                wave_size: if round % 3 == 0 { 128 } else { 64 },
                constants: (0..64).map(|_| random.next() as u32 & 0x1fff).collect(),
                bindless: vec![0x1003; 5],
                private: PrivateMemory { base: 0x1000, per_fiber: 512 },
                ..ShaderState::default()
            },
            groups: [2, 1, 1],
            local_size: [random.next() as u32 % 150 + 1, 1, 1],
            local_memory: 1024,
            local_id: Some(0),
            group_id: Some(192),
            ..Dispatch::default()
        };
        let timing = if round % 5 == 0 { Timing::Adversarial { seed: round } } else { Timing::Plain };
        let options = Options { steps: 2000, timing, threads: 1 };
        ended += usize::from(run(&program, &dispatch, &mut memory, &options).is_ok());
    }
    assert!(ended > 0, "no program came to its end");
}

#[test]
fn an_endless_loop_is_stopped() {
    // A jump to itself.
    let program = ShaderProgram::new([0x0100_0000_0000_0000], 630);
    let mut memory = SimMemory::default();
    let options = Options { steps: 1000, ..Options::default() };
    let fault = run(&program, &Dispatch::default(), &mut memory, &options).expect_err("never ends");
    assert_eq!((fault.kind, fault.at), (FaultKind::Steps, 0));
}

#[test]
fn what_a_dispatch_claims_is_not_allocated() {
    let program = ShaderProgram::new([], 630);
    let mut memory = SimMemory::default();
    let dispatch = Dispatch {
        groups: [u32::MAX; 3],
        local_size: [u32::MAX; 3],
        local_memory: u32::MAX,
        ..Dispatch::default()
    };
    assert!(run(&program, &dispatch, &mut memory, &Options::default()).is_err());
}
