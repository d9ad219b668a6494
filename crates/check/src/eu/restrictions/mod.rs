//! What a single instruction must not be: a function for each family of rules.
//!
//! Codes come first: where one of them is reserved, nothing else is said. Never: looks at another instruction.

mod codes;
mod dpas;
mod message;
mod mixed;
mod opcodes;
mod regions;
mod types;
mod wide;

use super::facts::Rule;
use super::operands::Operation;
use unwedge_isa::eu::Instruction;

/// The rules that an instruction breaks.
#[derive(Debug, Default)]
pub(super) struct Broken(Vec<Rule>);

impl Broken {
    /// Notes a rule that is broken, once.
    pub fn add(&mut self, rule: Rule, broken: bool) {
        if broken && !self.0.contains(&rule) {
            self.0.push(rule);
        }
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The rules that an instruction breaks, in the order of the table.
pub(super) fn check(inst: &Instruction) -> Vec<Rule> {
    let mut broken = Broken::default();
    match Operation::read(inst) {
        None => broken.add(Rule::Opcode, true),
        Some(operation) => check_operation(&operation, &mut broken),
    }
    broken.0.sort_unstable();
    broken.0
}

fn check_operation(op: &Operation, broken: &mut Broken) {
    codes::check(op, broken);
    if !broken.is_empty() {
        return;
    }
    codes::null_sources(op, broken);
    message::check(op, broken);
    types::check(op, broken);
    regions::check(op, broken);
    mixed::check(op, broken);
    regions::spans(op, broken);
    types::vector_immediates(op, broken);
    wide::check(op, broken);
    opcodes::check(op, broken);
    dpas::check(op, broken);
    regions::routed(op, broken);
}
