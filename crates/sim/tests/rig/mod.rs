//! Runs lines of assembly and tells what they left and what went wrong.

#![allow(dead_code, reason = "not every test uses all of it")]

pub mod cases;

use std::collections::{BTreeSet, HashMap};
use unwedge_isa::amdgcn::{Gfx, Gpu, Reg, source::assemble};
use unwedge_sim::amdgcn::{
    Control, Dispatch, FaultKind, Initial, Program, SimFault, SimMemory, Timing, Watch, run, watch,
};

/// The buffer that `s[0:3]` describe, and whose address is in `s[4:5]`, `s[8:9]` and `v[2:3]`.
pub const BUFFER: u64 = 0x1_0000;
/// Its bytes.
pub const SIZE: usize = 0x1000;

/// What a program left.
pub struct Ran {
    registers: HashMap<Reg, Vec<u32>>,
    /// What went wrong.
    pub faults: Vec<SimFault>,
    /// The buffer.
    pub words: Vec<u32>,
}

impl Ran {
    /// What a scalar register was last written.
    pub fn s(&self, n: u16) -> u32 {
        self.registers[&Reg(n)][0]
    }

    /// What a vector register was last written, in the first lane.
    pub fn v(&self, n: u8) -> u32 {
        self.lanes(n)[0]
    }

    /// As [`Ran::v`], in all lanes.
    pub fn lanes(&self, n: u8) -> &[u32] {
        &self.registers[&Reg::vgpr(n)]
    }

    /// The condition code.
    pub fn scc(&self) -> bool {
        self.registers[&Reg::SCC][0] != 0
    }

    /// Hazards that were reported.
    pub fn hazards(&self) -> BTreeSet<&'static str> {
        let rule = |fault: &SimFault| match fault.kind {
            FaultKind::Hazard(rule, _) => Some(rule),
            _ => None,
        };
        self.faults.iter().filter_map(rule).collect()
    }

    /// Whether a fault of some kind was reported.
    pub fn has(&self, holds: impl Fn(&FaultKind) -> bool) -> bool {
        self.faults.iter().any(|fault| holds(&fault.kind))
    }

    /// No fault at all.
    pub fn clean(self) -> Ran {
        assert!(self.faults.is_empty(), "{:?}", self.faults);
        self
    }
}

/// A descriptor of plain bytes.
pub fn descriptor(generation: Gfx) -> [u32; 4] {
    let format = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => 20 << 12 | 1 << 24 | 3 << 28,
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => 20 << 12 | 3 << 28,
        _ => 7 << 12 | 4 << 15,
    };
    [BUFFER as u32, 0, SIZE as u32, format | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}

pub fn gpu(name: &str) -> Gpu {
    let (name, features) = name.split_once('+').unwrap_or((name, ""));
    Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("a GPU")
}

/// The words of a program.
pub fn words(code: &str, gpu: &Gpu) -> Vec<u32> {
    let made = assemble(code, gpu);
    assert!(made.errors.is_empty(), "{code}: {:?}", made.errors);
    let (dwords, _) = made.sections[0].bytes.as_chunks::<4>();
    dwords.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect()
}

/// How programs are launched: registers s0-s9 and v0-v9 are known. v0 is four times the lane's number, v1 zero.
pub fn dispatch(gpu: &Gpu, timing: Timing) -> Dispatch {
    let [a, b, c, d] = descriptor(gpu.generation());
    let scalars = [a, b, c, d, BUFFER as u32, 0, 7, 8, BUFFER as u32, 0];
    let value = |n, value| (n, Initial::Value(value));
    Dispatch {
        size: [gpu.lanes(), 1, 1],
        scalars: (0u16..)
            .zip(scalars)
            .chain([(106, 0), (107, 0), (124, u32::from(gpu.generation() < Gfx::Gfx9) * u32::MAX)])
            .collect(),
        vectors: [value(1, 0), value(2, BUFFER as u32), value(3, 0), value(4, 0), value(5, 5)]
            .into_iter()
            .chain([(0, Initial::LocalId(0)), (6, Initial::LocalId(0))])
            .collect(),
        lds: 0x400,
        gds: 0x100,
        scratch: 64,
        timing,
        ..Dispatch::default()
    }
}

/// Runs lines of code in some timing, in one wave; `s_endpgm` is added.
pub fn with(name: &str, code: &str, timing: Timing) -> Ran {
    let launch = dispatch(&gpu(name), timing);
    launched(name, code, &launch)
}

/// Runs lines of code in a workgroup of so many threads in some timing; `s_endpgm` is added.
pub fn group(name: &str, code: &str, threads: u32, timing: Timing) -> Ran {
    let launch = Dispatch { size: [threads, 1, 1], ..dispatch(&gpu(name), timing) };
    launched(name, code, &launch)
}

/// Runs lines of code in adversarial timing: what went wrong, and the most accesses that were under way.
pub fn pending(name: &str, code: &str) -> (Vec<SimFault>, usize) {
    let launch = dispatch(&gpu(name), Timing::Adversarial { seed: 1 });
    let (program, mut memory) = made(name, code);
    let mut most = 0;
    let outcome = watch(
        &program,
        &mut memory,
        &launch,
        Watch::Step(&mut |state| {
            most = most.max(state.now().pending);
            Control::Go
        }),
    );
    (outcome.faults, most)
}

/// A program that ends, and the buffer.
fn made(name: &str, code: &str) -> (Program, SimMemory) {
    let gpu = gpu(name);
    let program = Program::new(&words(&format!("{code}\ns_endpgm\n"), &gpu), 0, gpu);
    let mut memory = SimMemory::default();
    memory
        .map(BUFFER, (0..SIZE).map(|at| if at % 4 == 0 { (at / 4) as u8 } else { 0 }).collect())
        .expect("free");
    (program, memory)
}

fn launched(name: &str, code: &str, launch: &Dispatch) -> Ran {
    let (program, mut memory) = made(name, code);
    let mut registers = HashMap::new();
    let outcome =
        run(&program, &mut memory, launch, Some(&mut |trace| registers.extend(trace.writes.iter().cloned())));
    let bytes = memory.get(BUFFER, SIZE).expect("mapped");
    let (dwords, _) = bytes.as_chunks::<4>();
    Ran { registers, faults: outcome.faults, words: dwords.iter().map(|b| u32::from_le_bytes(*b)).collect() }
}

/// Runs lines of code in adversarial timing.
pub fn late(name: &str, code: &str) -> Ran {
    with(name, code, Timing::Adversarial { seed: 1 })
}

/// Runs lines of code in plain timing.
pub fn plain(name: &str, code: &str) -> Ran {
    with(name, code, Timing::Plain)
}
