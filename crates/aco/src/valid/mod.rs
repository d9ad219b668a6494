//! Checks of programs between phases. They share no code with the phases.
//!
//! [`ir`] checks what holds of a program by its [`Progress`](crate::ir::Progress): flow, SSA, operands. [`ra`] checks that every operand finds its temporary
//! in its register.

mod flow;
mod ir;
mod operands;
mod ra;

pub use ir::ir;
pub use ra::ra;

use crate::ir::text::InstText;
use crate::ir::{Block, Inst, Program};

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
