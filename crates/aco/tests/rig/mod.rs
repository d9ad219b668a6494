//! What tests that execute compiled code share: GPUs, descriptors, memory, and the registers that a dispatch sets.

#![allow(dead_code, reason = "each test file uses its own part")]

pub mod build;
pub mod captures;
pub mod cases;
pub mod culling;
pub mod driver;
pub mod feedback;
pub mod group;
pub mod images;
pub mod judge;
pub mod pipeline;
pub mod recorded;
pub mod rounding;
pub mod scene;
pub mod scripts;
pub mod straight;
pub mod texts;
pub mod textures;
pub mod translate;

use std::ops::Range;
use unwedge_aco::abi::Argument;
use unwedge_aco::{Code, Compiled, OPTIONS, Options};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_sim::amdgcn::{Dispatch, Initial, Program, SCRATCH_BUFFER, SimMemory, run};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// One GPU of each generation.
pub const GPUS: [&str; 9] =
    ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];
/// Options of a graphics stage.
pub fn options_of(gpu: Gpu, legacy: bool) -> Options {
    let mut options = Options::new(gpu);
    options.graphics.legacy = legacy;
    options
}

/// Every GPU in both sizes of the wave, and gfx10 in both ways to the rasterizer.
pub fn targets() -> Vec<(String, Options)> {
    let mut all = Vec::new();
    let only = std::env::var("UNWEDGE_GPU").unwrap_or_default();
    for name in GPUS.into_iter().filter(|name| only.is_empty() || only.contains(name)) {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            if gpu.wave64() != wave64 {
                continue;
            }
            let both = matches!(gpu.generation(), Gfx::Gfx10 | Gfx::Gfx10_3);
            for legacy in [false, true].into_iter().take(if both { 2 } else { 1 }) {
                let kind = if legacy { " legacy" } else { "" };
                all.push((
                    format!("{name} wave{}{kind}", if wave64 { 64 } else { 32 }),
                    options_of(gpu, legacy),
                ));
            }
        }
    }
    all
}

/// The low word of the address of descriptor set 0.
pub const TABLE: u64 = 0x0001_0000;
/// The buffer of binding 0.
pub const INPUT: u64 = 0x1000_0000;
/// The buffer of binding 1.
pub const OUTPUT: u64 = unwedge_testkit::shaders::lanes::OUTPUT;
const CODE: u64 = 0x0080_0000;

/// A descriptor of a buffer of plain bytes.
pub fn descriptor(base: u64, size: usize, generation: Gfx) -> [u32; 4] {
    let format = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => 20 << 12 | 1 << 24 | 3 << 28,
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => 20 << 12 | 3 << 28,
        _ => 7 << 12 | 4 << 15,
    };
    [base as u32, (base >> 32) as u32, size as u32, format | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}

/// Makes the descriptor of a ring that of one in which lanes take turns: elements of 4 bytes, the number of the lane is added.
pub fn swizzle_by_lane(words: &mut [u32; 4], index_stride: u32, generation: Gfx) {
    words[1] |= 1 << 31;
    words[3] |= index_stride << 21 | 1 << 23;
    match generation {
        // There a format is bits of the stride.
        Gfx::Gfx6 | Gfx::Gfx7 => {}
        Gfx::Gfx8 | Gfx::Gfx9 => words[3] &= !(15 << 15),
        _ => words[3] = words[3] & !(3 << 28) | 2 << 28,
    }
    if generation <= Gfx::Gfx8 {
        words[3] |= 1 << 19;
    }
}

/// The descriptor of scratch memory, as a driver makes it for code up to gfx10.
pub fn scratch_descriptor(gpu: &Gpu) -> [u32; 4] {
    let [low, high] = [SCRATCH_BUFFER as u32, (SCRATCH_BUFFER >> 32) as u32 | 1 << 31];
    let index_stride = if gpu.wave64() { 3 << 21 } else { 2 << 21 };
    let rest = match gpu.generation() {
        Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => 1 << 19,
        generation if generation >= Gfx::Gfx10 => 3 << 28,
        _ => 0,
    };
    [low, high, u32::MAX, index_stride | 1 << 23 | rest]
}

/// Memory with an input, a zeroed output and their descriptor set.
pub fn memory(options: &Options, input: Vec<u8>, output_bytes: usize) -> SimMemory {
    let generation = options.gpu.generation();
    let table = [descriptor(INPUT, input.len(), generation), descriptor(OUTPUT, output_bytes, generation)];
    let mut memory = SimMemory::default();
    memory.map(u64::from(options.address_high) << 32 | TABLE, bytes(&table.concat())).expect("free");
    memory.map(INPUT, input).expect("free");
    memory.map(OUTPUT, vec![0; output_bytes]).expect("free");
    memory
}

/// A dispatch of a compiled shader. `scalar` gives the words of arguments that the driver loads; those without a word are not set.
pub fn dispatch(compiled: &Compiled, gpu: &Gpu, scalar: impl Fn(Argument) -> Option<u32>) -> Dispatch {
    let mut dispatch = Dispatch {
        lds: compiled.code.lds_bytes,
        scratch: compiled.code.scratch_bytes,
        mode: 0x100 | u32::from(compiled.float_mode),
        group_id_in_ttmp: gpu.generation() >= Gfx::Gfx12,
        ..Dispatch::default()
    };
    for location in compiled.args.iter() {
        let reg = location.reg.reg();
        let vector = reg.index() as u8;
        match location.argument {
            Argument::WorkgroupId(axis) => dispatch.group_id[usize::from(axis)] = Some(reg.0),
            Argument::LocalId(axis) => dispatch.vectors.push((vector, Initial::LocalId(axis))),
            Argument::LocalIdsPacked => dispatch.vectors.push((vector, Initial::PackedLocalIds)),
            Argument::RingOffsets => {
                dispatch.scalars.extend((reg.0..).zip(scratch_descriptor(gpu)).take(location.dwords.into()));
            }
            Argument::ScratchOffset => dispatch.scalars.push((reg.0, 0)),
            argument => dispatch.scalars.extend(scalar(argument).map(|word| (reg.0, word))),
        }
    }
    dispatch
}

/// Runs code; the first fault, with the instruction that it is at.
pub fn execute(code: &Code, gpu: Gpu, memory: &mut SimMemory, dispatch: &Dispatch) -> Result<(), String> {
    let program = Program::new(&code.words, CODE, gpu);
    match run(&program, memory, dispatch, None).faults.first() {
        Some(fault) => Err(format!("{fault}: {}", program.text(fault.at).unwrap_or_default())),
        None => Ok(()),
    }
}

/// The words of the output.
pub fn output(memory: &SimMemory, words: usize) -> Vec<u32> {
    let bytes = memory.get(OUTPUT, words * 4).expect("mapped");
    bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect()
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// The seeds of the random inputs that a test takes: as many as `UNWEDGE_SEEDS` says, else so many, from `UNWEDGE_FIRST_SEED` on, else from 0.
pub fn seeds(otherwise: u64) -> Range<u64> {
    let first = number("UNWEDGE_FIRST_SEED").unwrap_or(0);
    first..first.saturating_add(seed_count(otherwise))
}

/// How many random inputs a test takes: `UNWEDGE_SEEDS`, else so many.
pub fn seed_count(otherwise: u64) -> u64 {
    number("UNWEDGE_SEEDS").unwrap_or(otherwise)
}

/// Leaves out random phases and limits registers, for about half of the seeds. Limits are such that every instruction fits. With `UNWEDGE_PLAIN=1`
/// nothing changes.
pub fn vary(options: &mut Options, seed: u64) {
    let mut rng = Rng::new(seed ^ 0x0b7a_11ed);
    if rng.below(2) == 0 || std::env::var_os("UNWEDGE_PLAIN").is_some() {
        return;
    }
    // Options after these add checks, or wait for everything.
    let optional = OPTIONS.iter().take_while(|option| option.name != "validateir");
    for option in optional {
        if rng.below(3) == 0 {
            options.passes = options.passes.with(option.name).expect("an option");
        }
    }
    if rng.below(2) == 0 {
        let [sgprs, vgprs] = [56, 48].map(|least| least + 4 * rng.below(8) as u16);
        // Before gfx9, full registers are exchanged by exclusive ors, and the emulator takes a value for undefined that was combined with an undefined one.
        let exchanges = options.gpu.generation() >= Gfx::Gfx9;
        options.limits = options.limits.within(&options.gpu, Some(sgprs), exchanges.then_some(vgprs), None);
    }
}

/// The text of a compute shader with a buffer that it reads (`r0`) and one that it writes (`r1`).
pub fn buffer_shader(invocations: u32, shared: u32, body: &str) -> String {
    let resource = |number: u32, access: &str| {
        format!(
            "resource r{number} \"\" storage_buffer set 0 binding {number} count 1 size 0 dim buffer access {access}\n"
        )
    };
    format!(
        "shader compute \"main\"\nworkgroup_size {invocations} 1 1\nsizes shared {shared} scratch 0 push 0\n{}{}\
         fn f0 \"main\" () -> () {{\n{body}  return\n}}\n",
        resource(0, "readonly|restrict"),
        resource(1, "restrict")
    )
}
