//! The back half of the compiler: from a program with exec masks to words.

use crate::assemble;
use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{Program, RegCounts};
use crate::{allocate, edges, eliminate, hardware, hazards, live, machine, skips, waits};
use unwedge_isa::amdgcn::Gpu;

/// How many registers a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Registers of each bank.
    pub registers: RegCounts,
}

impl Limits {
    /// All that instructions of a GPU can name.
    pub fn of(gpu: &Gpu) -> Limits {
        Limits { registers: RegCounts { sgprs: gpu.sgprs(), vgprs: 256 } }
    }
}

/// A program that can be executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Its words; it starts at the first.
    pub words: Vec<u32>,
    /// By block: its first word.
    pub starts: Vec<usize>,
    /// How many instructions there are.
    pub instructions: usize,
    /// Registers that it uses; scalar ones without `vcc`.
    pub registers: RegCounts,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Bytes of scratch of a lane.
    pub scratch_bytes: u32,
}

/// A phase of the back half, after which a program can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackPhase {
    /// Critical edges are split.
    Edges,
    /// Every temporary has its register.
    Allocate,
    /// Phis are replaced by copies.
    Eliminate,
    /// All instructions are those of the hardware.
    Hardware,
}

impl BackPhase {
    /// All, in their order.
    pub const ALL: [BackPhase; 4] =
        [BackPhase::Edges, BackPhase::Allocate, BackPhase::Eliminate, BackPhase::Hardware];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            BackPhase::Edges => "edges",
            BackPhase::Allocate => "allocate",
            BackPhase::Eliminate => "eliminate",
            BackPhase::Hardware => "hardware",
        }
    }
}

/// Makes code of a program that is `Masked`.
///
/// # Errors
///
/// What keeps the program from being compiled.
pub fn finish(program: &mut Program, limits: &Limits) -> Result<Code, FinishError> {
    finish_watched(program, limits, &mut |_, _| {})
}

/// The same, and calls `watch` with the program after each phase.
///
/// # Errors
///
/// What keeps the program from being compiled.
pub fn finish_watched(
    program: &mut Program,
    limits: &Limits,
    watch: &mut dyn FnMut(BackPhase, &Program),
) -> Result<Code, FinishError> {
    if program.gpu.has_agprs() {
        return Err(FinishError::Gpu(program.gpu.name()));
    }
    let variants = Variants::of(&program.gpu);
    edges::prepare(program)?;
    let live = live::analyze(program);
    watch(BackPhase::Edges, program);
    let registers = allocate::allocate(program, &live, &variants, limits.registers)?;
    watch(BackPhase::Allocate, program);
    eliminate::eliminate(program)?;
    watch(BackPhase::Eliminate, program);
    hardware::lower(program, &variants)?;
    watch(BackPhase::Hardware, program);
    let mut machine = machine::from_program(program, &variants)?;
    skips::simplify(&mut machine);
    waits::insert(&mut machine);
    hazards::insert(&mut machine);
    let assembly = assemble::assemble(&mut machine)?;
    Ok(Code {
        words: assembly.words,
        starts: assembly.starts,
        instructions: assembly.instructions,
        registers,
        lds_bytes: program.lds_bytes,
        scratch_bytes: program.scratch_bytes,
    })
}
