//! Checks code of ir3, the instruction set of Adreno's shader processors, whoever compiled it.
//!
//! [`check`] reads a program as a graph of both ways of every branch and follows over it which results are pending, which sources are
//! still to be read, how long ago the ALU wrote a register, and what has been written at all. Rules are in [`facts`]. Never: runs code,
//! rewrites it, guesses what registers hold, shares code with the virtual shader processor.

mod access;
mod divergence;
pub mod facts;
mod finding;
mod inputs;
mod nops;
mod pending;
mod program;
mod sync;

pub use crate::Level;
pub use facts::Rule;
pub use finding::{CheckFinding, CheckReport, Register, WaitNeed};

use facts::GpuFacts;
use program::ShaderFlow;

/// What is known of code beyond its words.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckOptions {
    /// Registers that the program starts with; `None` where that is not known.
    pub inputs: Option<Vec<Register>>,
    /// Constants that are loaded, in vectors of four components; `None`: as many as there are.
    pub constants: Option<u16>,
}

/// The last constants of a6xx are those that all stages share, by component.
const SHARED_CONSTANTS: u16 = 504 * 4;

/// Checks a program that starts at the first word, for a GPU (330, 540, 630, 740).
#[must_use]
pub fn check(words: &[u64], gpu_id: u32, options: &CheckOptions) -> CheckReport {
    let facts = GpuFacts::new(gpu_id);
    let program = ShaderFlow::read(words, gpu_id, &facts);
    let mut findings = program.problems.clone();
    let unreached = program.unreached.iter();
    findings.extend(unreached.map(|at| CheckFinding::at(Rule::NotReached, *at)));
    limits(&program, &facts, gpu_id, options, &mut findings);
    let complete = sync::SyncCheck::new(&program, facts).check(&mut findings);
    let inputs = inputs::check(&program, options.inputs.as_deref(), &facts, &mut findings);
    divergence::check(&program, &inputs, &facts, &mut findings);
    findings.sort_by_key(|f| (f.at, f.rule, f.first, f.register));
    findings.dedup_by_key(|f| (f.at, f.rule, f.first));
    let instructions = program.steps.iter().flatten().count();
    CheckReport { findings, instructions, inputs, complete }
}

/// What the GPU does not have.
fn limits(
    program: &ShaderFlow,
    facts: &GpuFacts,
    gpu_id: u32,
    options: &CheckOptions,
    findings: &mut Vec<CheckFinding>,
) {
    for (at, step) in program.steps.iter().enumerate() {
        let Some(step) = step else { continue };
        if let Some(register) = step.access.beyond {
            let register = Some(register);
            findings.push(CheckFinding { register, ..CheckFinding::at(Rule::RegisterLimit, at) });
        }
        let shared = step.instruction.dsts.iter().any(|dst| dst.is_shared());
        if shared && !facts.scalar_alu && matches!(step.instruction.opcode.category(), 2..=4) {
            findings.push(CheckFinding::at(Rule::Unsupported, at));
        }
        let common = (600..700).contains(&gpu_id);
        let beyond = |number: u16, count: u16| {
            number >= count.saturating_mul(4) && !(common && number >= SHARED_CONSTANTS)
        };
        if options.constants.zip(step.access.constant).is_some_and(|(count, number)| beyond(number, count)) {
            findings.push(CheckFinding::at(Rule::ConstantLimit, at));
        }
    }
}
