//! The back half of the compiler: from a program with exec masks to words.

use crate::allocate::AllocationTables;
use crate::assemble;
use crate::cost::BlockDepth;
use crate::error::FinishError;
use crate::ir::shape::Variants;
use crate::ir::{Program, RegCounts};
use crate::lines::CodeLines;
use crate::machine::MachineBlock;
use crate::passes::Passes;
use crate::spill::Spilled;
use crate::{
    allocate, clauses, delay, dual, edges, eliminate, forward, hardware, hazards, live, machine, occupancy,
    priority, scalar_copies, skips, spill, waits,
};
use unwedge_isa::amdgcn::Gpu;

/// How many registers a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Registers of each bank.
    pub registers: RegCounts,
}

impl Limits {
    /// All registers that instructions of a GPU can name.
    pub fn of(gpu: &Gpu) -> Limits {
        Limits { registers: RegCounts { sgprs: gpu.sgprs(), vgprs: 256 } }
    }

    /// These limits reduced to other ones, and to the registers with which a SIMD holds `waves` waves, if the GPU can.
    #[must_use]
    pub fn within(self, gpu: &Gpu, sgprs: Option<u16>, vgprs: Option<u16>, waves: Option<u16>) -> Limits {
        let RegCounts { sgprs: all, vgprs: most } = self.registers;
        let registers =
            RegCounts { sgprs: sgprs.unwrap_or(all).min(all), vgprs: vgprs.unwrap_or(most).min(most) };
        let registers = waves.map_or(registers, |waves| occupancy::limits(gpu, registers, waves));
        Limits { registers }
    }
}

/// A program that can be executed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Code {
    /// Its words; it starts at the first.
    pub words: Vec<u32>,
    /// By block: its first word.
    pub starts: Vec<usize>,
    /// Source lines, if they were requested.
    pub lines: CodeLines,
    /// By block: the loops and branches around it.
    pub depths: Vec<BlockDepth>,
    /// How many instructions there are.
    pub instructions: usize,
    /// How many of them are copies of values between registers.
    pub copies: usize,
    /// Registers that it uses; scalar ones without `vcc`.
    pub registers: RegCounts,
    /// Bytes of LDS of a workgroup.
    pub lds_bytes: u32,
    /// Bytes of scratch of a lane.
    pub scratch_bytes: u32,
    /// Registers of the values that were spilled.
    pub spills: Spilled,
}

/// A phase of the back half, after which a program can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum BackPhase {
    /// Critical edges are split.
    Edges,
    /// Register demand is within the limits.
    Spill,
    /// Every temporary has its register.
    Allocate,
    /// Phis are replaced by copies.
    Eliminate,
    /// All instructions are hardware instructions.
    Hardware,
}

impl BackPhase {
    /// All, in their order.
    pub const ALL: [BackPhase; 5] =
        [BackPhase::Edges, BackPhase::Spill, BackPhase::Allocate, BackPhase::Eliminate, BackPhase::Hardware];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            BackPhase::Edges => "edges",
            BackPhase::Spill => "spill",
            BackPhase::Allocate => "allocate",
            BackPhase::Eliminate => "eliminate",
            BackPhase::Hardware => "hardware",
        }
    }
}

/// Compiles a program that is `Masked` to code.
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
    finish_with(program, limits, Passes::default(), watch)
}

/// The same with a choice of the optional phases.
///
/// # Errors
///
/// What keeps the program from being compiled.
pub fn finish_with(
    program: &mut Program,
    limits: &Limits,
    passes: Passes,
    watch: &mut dyn FnMut(BackPhase, &Program),
) -> Result<Code, FinishError> {
    finish_in(program, limits, passes, watch, &mut BackMemory::default())
}

/// Memory of the back half, kept for the next program.
#[derive(Debug, Default)]
pub(crate) struct BackMemory {
    allocation: AllocationTables,
    /// The program before allocation.
    before: Option<Program>,
    /// Blocks of the last machine program.
    machine: Vec<MachineBlock>,
}

/// [`finish_with`] in memory that there is.
pub(crate) fn finish_in(
    program: &mut Program,
    limits: &Limits,
    passes: Passes,
    watch: &mut dyn FnMut(BackPhase, &Program),
    memory: &mut BackMemory,
) -> Result<Code, FinishError> {
    if program.gpu.has_agprs() {
        return Err(FinishError::Gpu(program.gpu.name()));
    }
    let variants = Variants::of(&program.gpu);
    edges::prepare(program)?;
    watch(BackPhase::Edges, program);
    let (registers, spills) = registers(program, limits.registers, &variants, watch, memory)?;
    watch(BackPhase::Allocate, program);
    eliminate::eliminate(program)?;
    watch(BackPhase::Eliminate, program);
    let copies = hardware::lower(program, &variants)?;
    watch(BackPhase::Hardware, program);
    let mut machine = machine::from_program_in(program, &variants, std::mem::take(&mut memory.machine))?;
    if passes.forwarding {
        forward::simplify(&mut machine);
        scalar_copies::forward(&mut machine);
    }
    if passes.skips {
        skips::simplify(&mut machine);
    }
    if passes.dual {
        dual::pair(&mut machine);
    }
    if passes.all_waits {
        waits::insert_all(&mut machine);
    } else {
        waits::insert(&mut machine);
    }
    hazards::insert(&mut machine);
    if passes.clauses {
        clauses::form(&mut machine);
    }
    if passes.delays {
        delay::insert(&mut machine);
    }
    priority::insert(&mut machine);
    let assembly = assemble::assemble(&mut machine)?;
    let lines = match &program.positions {
        Some(positions) => CodeLines::of(positions, program, &machine, &assembly),
        None => CodeLines::default(),
    };
    let depths = machine.blocks.iter().map(|block| block.depth).collect();
    memory.machine = machine.blocks;
    Ok(Code {
        lines,
        words: assembly.words,
        starts: assembly.starts,
        depths,
        instructions: assembly.instructions,
        copies,
        registers,
        lds_bytes: program.lds_bytes,
        scratch_bytes: program.scratch_bytes,
        spills,
    })
}

/// By how many registers the limit is reduced at most: what vectors may waste, and copies need.
const MOST_SLACK: u16 = 24;

/// Spills and allocates. If what is left after spilling does not fit, because vectors need consecutive registers, more is spilled.
/// Returns the registers that are used, and those of spilled values.
fn registers(
    program: &mut Program,
    limits: RegCounts,
    variants: &Variants,
    watch: &mut dyn FnMut(BackPhase, &Program),
    memory: &mut BackMemory,
) -> Result<(RegCounts, Spilled), FinishError> {
    let BackMemory { allocation, before, .. } = memory;
    let live = live::analyze(program);
    let fits = |demand: RegCounts| demand.sgprs <= limits.sgprs && demand.vgprs <= limits.vgprs;
    let before: &Program = match before {
        Some(before) => {
            before.clone_from(program);
            before
        }
        None => before.insert(program.clone()),
    };
    if fits(live.demand) {
        match allocate::allocate(program, before, &live, variants, limits, allocation) {
            Err(FinishError::Registers { .. }) => {}
            done => {
                watch(BackPhase::Spill, before);
                return Ok((done?, Spilled::default()));
            }
        }
    }
    let mut slack = RegCounts::default();
    loop {
        let mut attempt = before.clone();
        let live = live::analyze(&mut attempt);
        let targets = RegCounts {
            sgprs: limits.sgprs.saturating_sub(slack.sgprs),
            vgprs: limits.vgprs.saturating_sub(slack.vgprs),
        };
        let (spilled, live) = spill::spill(&mut attempt, live, variants, targets)?;
        let spilled_program = attempt.clone();
        match allocate::allocate(&mut attempt, &spilled_program, &live, variants, limits, allocation) {
            Err(FinishError::Registers { block, bank, limit }) => {
                let more = if bank == "scalar" { &mut slack.sgprs } else { &mut slack.vgprs };
                *more += 1 + *more / 4;
                if *more > MOST_SLACK {
                    return Err(FinishError::Registers { block, bank, limit });
                }
            }
            done => {
                watch(BackPhase::Spill, &spilled_program);
                *program = attempt;
                return Ok((done?, spilled));
            }
        }
    }
}
