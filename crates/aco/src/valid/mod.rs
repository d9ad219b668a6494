//! Checks of programs between phases. They share no code with the phases.
//!
//! [`ir`] checks what holds of a program by its [`Progress`]: flow, SSA, operands. [`ra`] checks that every operand finds its temporary
//! in its register.

mod flow;
mod ir;
mod operands;
mod ra;

pub use ir::ir;
pub use ra::ra;

use crate::compile::{FRONT_PHASES, UNREPAIRED_PHASES};
use crate::ir::shape::Variants;
use crate::ir::text::InstText;
use crate::ir::{Block, Inst, Program, Progress};
use crate::passes::Passes;

/// A rule of the IR that a program breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The block.
    pub block: Option<Block>,
    /// The instruction.
    pub inst: Option<Inst>,
    /// What is wrong.
    pub message: String,
}

impl Violation {
    /// The violation as text, with its block and instruction.
    pub fn describe(&self, program: &Program) -> String {
        let place = self.block.map_or_else(String::new, |block| format!("{block}: "));
        let inst = self.inst.map_or_else(String::new, |inst| format!(": {}", InstText(program, inst)));
        format!("{place}{}{inst}", self.message)
    }
}

/// Checks after the phases of one program: `validateir`, `validatera`. Keeps the first violation.
#[derive(Debug)]
pub struct PhaseChecks {
    passes: Passes,
    /// The phase, and what is wrong after it.
    pub first: Option<(&'static str, String)>,
}

impl PhaseChecks {
    /// The checks that the options ask for.
    pub fn new(passes: Passes) -> PhaseChecks {
        PhaseChecks { passes, first: None }
    }

    /// Checks a program after the phase of a name.
    pub fn after(&mut self, phase: &'static str, program: &Program) {
        let Passes { validate_ir, validate_registers, .. } = self.passes;
        if self.first.is_some() || !(validate_ir || validate_registers) {
            return;
        }
        let mut violations = Vec::new();
        if validate_ir && !FRONT_PHASES[..UNREPAIRED_PHASES].contains(&phase) {
            violations.extend(ir(program, &Variants::of(&program.gpu)).err().unwrap_or_default());
        }
        let allocated = matches!(program.progress, Progress::Allocated | Progress::Eliminated);
        if validate_registers && allocated {
            violations.extend(ra(program).err().unwrap_or_default());
        }
        self.first = violations.first().map(|violation| (phase, violation.describe(program)));
    }
}

/// Violations as they are found.
#[derive(Debug, Default)]
struct Violations {
    list: Vec<Violation>,
    block: Option<Block>,
    inst: Option<Inst>,
}

impl Violations {
    fn add(&mut self, message: impl Into<String>) {
        self.list.push(Violation { block: self.block, inst: self.inst, message: message.into() });
    }

    fn require(&mut self, holds: bool, message: impl FnOnce() -> String) {
        if !holds {
            self.add(message());
        }
    }

    fn result(self) -> Result<(), Vec<Violation>> {
        if self.list.is_empty() { Ok(()) } else { Err(self.list) }
    }
}
