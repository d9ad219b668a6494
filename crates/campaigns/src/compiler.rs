//! The compiler for AMD GPUs: what its code leaves in memory on the emulator.

use std::fmt::Write as _;
use unwedge_aco::abi::Argument;
use unwedge_aco::{Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::Shader;
use unwedge_sim::amdgcn::{Dispatch, Initial, Program, SimMemory, Timing, run};

/// One GPU of each generation.
pub const GPUS: [&str; 9] =
    ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

const TABLE: u64 = 0x0001_0000;
const INPUT: u64 = 0x1000_0000;
const CODE: u64 = 0x0080_0000;

/// A dispatch of a shader with an input at binding 0 of set 0, and an output at binding 1.
#[derive(Debug, Clone)]
pub struct CompiledRun<'a> {
    /// What is in the input.
    pub input: &'a [u8],
    /// Bytes of the output, which are zero at first.
    pub output: usize,
    /// The address of the output, which the shader may know.
    pub output_address: u64,
    /// Workgroups.
    pub groups: [u32; 3],
    /// What it is compiled for.
    pub gpu: Gpu,
    /// The seed of the order in which memory answers.
    pub seed: u64,
}

/// The GPU for a number: all generations in turn, in both sizes of the wave.
pub fn gpu(number: u64) -> Option<Gpu> {
    let count = GPUS.len() as u64;
    let name = GPUS.get((number % count) as usize)?;
    Some(Gpu::new(name).ok()?.with_wave64((number / count).is_multiple_of(2)))
}

/// The descriptor of a buffer.
fn descriptor(base: u64, size: usize, generation: Gfx) -> [u32; 4] {
    let format = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => 20 << 12 | 1 << 24 | 3 << 28,
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => 20 << 12 | 3 << 28,
        _ => 7 << 12 | 4 << 15,
    };
    [base as u32, (base >> 32) as u32, size as u32, format | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}

/// What the compiled code leaves in the output. A shader that is not compiled gives `None`.
///
/// # Errors
///
/// What the checker finds in the code, or a fault of the emulator.
pub fn executed(shader: &Shader, of: &CompiledRun) -> Result<Option<Vec<u8>>, String> {
    let gpu = of.gpu;
    let options = Options::new(gpu);
    let size = shader.info.workgroup_size;
    let Ok(compiled) = compile(&mut shader.clone(), &options) else { return Ok(None) };
    let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let mut dispatch = Dispatch {
        groups: of.groups,
        size,
        timing: Timing::Adversarial { seed: of.seed },
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
            Argument::DescriptorSet(0) => dispatch.scalars.push((reg.0, TABLE as u32)),
            _ => {}
        }
    }
    let generation = gpu.generation();
    let table =
        [descriptor(INPUT, of.input.len(), generation), descriptor(of.output_address, of.output, generation)];
    let table: Vec<u8> = table.concat().into_iter().flat_map(u32::to_le_bytes).collect();
    let mut memory = SimMemory::default();
    let contents = [
        (u64::from(options.address_high) << 32 | TABLE, table),
        (INPUT, of.input.to_vec()),
        (of.output_address, vec![0; of.output]),
    ];
    for (base, bytes) in contents {
        memory.map(base, bytes).map_err(|error| format!("{error:?}"))?;
    }
    let program = Program::new(&compiled.code.words, CODE, gpu);
    if let Some(fault) = run(&program, &mut memory, &dispatch, None).faults.first() {
        return Err(format!("{fault}: {}", program.text(fault.at).unwrap_or_default()));
    }
    Ok(memory.get(of.output_address, of.output).map(<[u8]>::to_vec))
}

/// Compares an output with what the interpreter left. A shader that is not compiled passes; `false` says so.
///
/// # Errors
///
/// The first word that differs, or why there is no output.
pub fn compare(shader: &Shader, of: &CompiledRun, expected: &[u8]) -> Result<bool, String> {
    let wave = of.gpu.lanes();
    let mut label = String::new();
    let _ = write!(label, "{} wave{wave}", of.gpu.name());
    let Some(found) = executed(shader, of).map_err(|what| format!("{label}: {what}"))? else {
        return Ok(false);
    };
    match found.iter().zip(expected).position(|(a, b)| a != b) {
        None => Ok(true),
        Some(at) => Err(format!("{label}: word {} of the output differs", at / 4)),
    }
}
