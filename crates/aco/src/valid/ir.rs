//! The rules that a program obeys between phases.

use super::flow::Dominators;
use super::operands;
use super::{Violation, Violations};
use crate::ir::shape::Variants;
use crate::ir::{Block, Inst, Op, Program, Progress, Pseudo, RegClass, Temp};
use std::collections::HashMap;
use unwedge_base::entity::Entity;

/// Checks a program.
///
/// - Neighbours name each other. The first block has no predecessors, every block is reached in the linear flow, and logical
///   neighbours are reached by linear flow.
/// - A block ends with a branch that fits its linear successors, or with the end of the program. Phis come first, with an
///   operand for each predecessor.
/// - A temporary is defined once, with its class, before its uses: along the linear flow those of linear classes, along the logical
///   flow others.
/// - Operands and definitions of an instruction of the hardware are those of its row, in registers and constants that it takes.
/// - No lane-mask phi after [`Progress::Selected`], no phi after [`Progress::Allocated`], no pseudo instruction in [`Progress::Lowered`].
///
/// # Errors
///
/// What does not hold.
pub fn ir(program: &Program, variants: &Variants) -> Result<(), Vec<Violation>> {
    let mut violations = Violations::default();
    flow(program, &mut violations);
    if !violations.list.is_empty() {
        return violations.result();
    }
    let ssa = program.progress < Progress::Eliminated;
    let definitions = definitions(program, ssa, &mut violations);
    let logical = Dominators::of(program, |data| &data.logical_preds);
    let linear = Dominators::of(program, |data| &data.linear_preds);
    for (block, data) in program.blocks.iter() {
        violations.block = Some(block);
        violations.require(linear.reaches(block), || "no linear path leads here".to_owned());
        for (place, &inst) in data.insts.iter().enumerate() {
            violations.inst = Some(inst);
            order(program, block, place, &mut violations);
            operands::check(program, variants, inst, &mut violations);
            if ssa {
                let uses = Uses { program, definitions: &definitions, logical: &logical, linear: &linear };
                uses.check(block, place, inst, &mut violations);
            }
        }
        violations.inst = None;
    }
    violations.result()
}

fn flow(program: &Program, violations: &mut Violations) {
    violations.require(!program.blocks.is_empty(), || "the program does not have a block".to_owned());
    for (block, data) in program.blocks.iter() {
        violations.block = Some(block);
        let lists = [
            (&data.linear_preds, "linear predecessor"),
            (&data.linear_succs, "linear successor"),
            (&data.logical_preds, "logical predecessor"),
            (&data.logical_succs, "logical successor"),
        ];
        for (number, (list, name)) in lists.iter().enumerate() {
            for other in list.iter() {
                let Some(neighbour) = program.blocks.get(*other) else {
                    violations.add(format!("{name} {other} does not exist"));
                    continue;
                };
                let back = match number {
                    0 => &neighbour.linear_succs,
                    1 => &neighbour.linear_preds,
                    2 => &neighbour.logical_succs,
                    _ => &neighbour.logical_preds,
                };
                violations.require(back.contains(&block), || format!("{name} {other} does not name it"));
            }
        }
        let first = block.index() == 0;
        violations.require(!first || data.linear_preds.is_empty(), || {
            "something leads to the first block".to_owned()
        });
        violations.require(data.linear_succs.len() <= 2, || "more than two linear successors".to_owned());
        end(program, block, violations);
    }
    violations.block = None;
}

/// Checks what a block ends with.
fn end(program: &Program, block: Block, violations: &mut Violations) {
    let data = &program.blocks[block];
    let last = data.insts.last().map(|inst| program.op(*inst));
    if program.progress >= Progress::Lowered {
        return;
    }
    match (data.linear_succs.len(), last) {
        (0, Some(Op::Pseudo(Pseudo::EndWithRegs))) => {}
        (0, Some(Op::Hw(opcode))) => {
            let ends = opcode.row().role == unwedge_isa::amdgcn::model::Role::End;
            violations
                .require(ends, || "ends without successor, and not with the end of the program".to_owned());
        }
        (1, Some(Op::Pseudo(Pseudo::Branch))) | (2, Some(Op::Pseudo(Pseudo::BranchZ | Pseudo::BranchNz))) => {
        }
        (count, _) => violations.add(format!("has {count} linear successors, and another end")),
    }
}

/// Where each temporary is defined.
fn definitions(program: &Program, ssa: bool, violations: &mut Violations) -> HashMap<Temp, (Block, usize)> {
    let mut places = HashMap::new();
    for (block, data) in program.blocks.iter() {
        violations.block = Some(block);
        for (place, &inst) in data.insts.iter().enumerate() {
            violations.inst = Some(inst);
            for definition in program.definitions(inst) {
                let Some(temp) = definition.temp else {
                    violations.require(definition.reg.is_some(), || "defines nothing".to_owned());
                    continue;
                };
                let class = program.class_of(temp);
                violations.require(class == Some(definition.class), || {
                    format!("{temp} is of class {}, and is defined as {}", name(class), definition.class)
                });
                let again = places.insert(temp, (block, place)).is_some();
                violations.require(!again || !ssa, || format!("{temp} is defined twice"));
            }
        }
    }
    (violations.block, violations.inst) = (None, None);
    places
}

fn name(class: Option<RegClass>) -> String {
    class.map_or_else(|| "none".to_owned(), |class| class.to_string())
}

/// Whether an instruction may be where it is.
fn order(program: &Program, block: Block, place: usize, violations: &mut Violations) {
    let insts = &program.blocks[block].insts;
    let op = program.op(insts[place]);
    let first = place == 0 || program.op(insts[place - 1]).is_phi();
    violations.require(!op.is_phi() || first, || "a phi after other instructions".to_owned());
    violations.require(!op.is_branch() || place + 1 == insts.len(), || "a branch before the end".to_owned());
    let starts = op.is(Pseudo::StartProgram);
    let at_start = block.index() == 0 && place == 0;
    violations.require(!starts || at_start, || "the program starts elsewhere".to_owned());
    let progress = program.progress;
    match op {
        Op::Pseudo(Pseudo::MaskPhi) if progress > Progress::Selected => {
            violations.add("a phi of lane masks is left")
        }
        Op::Pseudo(_) if op.is_phi() && progress > Progress::Allocated => violations.add("a phi is left"),
        Op::Pseudo(_) if progress == Progress::Lowered => violations.add("a pseudo instruction is left"),
        _ => {}
    }
}

struct Uses<'a> {
    program: &'a Program,
    definitions: &'a HashMap<Temp, (Block, usize)>,
    logical: &'a Dominators,
    linear: &'a Dominators,
}

impl Uses<'_> {
    fn check(&self, block: Block, place: usize, inst: Inst, violations: &mut Violations) {
        let data = &self.program.blocks[block];
        let op = self.program.op(inst);
        let preds = match op {
            Op::Pseudo(Pseudo::LinearPhi) => Some(&data.linear_preds),
            Op::Pseudo(Pseudo::Phi | Pseudo::MaskPhi) => Some(&data.logical_preds),
            _ => None,
        };
        let operands = self.program.operands(inst);
        if let Some(preds) = preds {
            violations.require(preds.len() == operands.len(), || {
                format!("{} operands for {} predecessors", operands.len(), preds.len())
            });
        }
        for (number, operand) in operands.iter().enumerate() {
            let Some(temp) = operand.as_temp() else { continue };
            let class = self.program.class_of(temp);
            violations.require(class == Some(operand.class), || {
                format!("{temp} is of class {}, and is read as {}", name(class), operand.class)
            });
            let Some(&(defined_in, defined_at)) = self.definitions.get(&temp) else {
                violations.add(format!("{temp} is not defined"));
                continue;
            };
            // An operand of a phi is read at the end of its predecessor.
            let (used_in, used_at) = match preds.map(|preds| preds.get(number)) {
                Some(Some(pred)) => (*pred, usize::MAX),
                Some(None) => continue,
                None => (block, place),
            };
            let linear = operand.class.is_linear() && !op.is(Pseudo::MaskPhi);
            let dominators = if linear { self.linear } else { self.logical };
            let before = if defined_in == used_in {
                defined_at < used_at
            } else {
                dominators.dominates(defined_in, used_in)
            };
            violations.require(before, || format!("{temp} is not defined on every path"));
        }
    }
}
