//! Jumps: removes branches that the order of the blocks makes unnecessary.
//!
//! Takes a machine program without waits. Guarantees that the same instructions are executed, except branches. Predecessors and successors are not
//! changed: a block that was only a branch is left empty.

use crate::assemble::target;
use crate::machine::{MachineProgram, plain};
use unwedge_isa::amdgcn::model::Role;
use unwedge_isa::amdgcn::{Inst, Opcode, Operand};

/// Conditional branches and their opposites.
const OPPOSITES: [(Opcode, Opcode); 3] = [
    (Opcode::s_cbranch_scc0, Opcode::s_cbranch_scc1),
    (Opcode::s_cbranch_vccz, Opcode::s_cbranch_vccnz),
    (Opcode::s_cbranch_execz, Opcode::s_cbranch_execnz),
];

/// Simplifies branches.
pub fn simplify(program: &mut MachineProgram) {
    // From the end, so that what follows a block is simple already.
    for block in (0..program.blocks.len()).rev() {
        invert(program, block);
        drop_last(program, block);
    }
}

/// The first block from one on that has instructions.
fn following(program: &MachineProgram, from: usize) -> usize {
    (from..program.blocks.len()).find(|block| !program.blocks[*block].insts.is_empty()).unwrap_or(usize::MAX)
}

fn last(program: &MachineProgram, block: usize) -> Option<Inst> {
    program.blocks[block].insts.last().map(|inst| inst.inst)
}

fn is_conditional(inst: &Inst) -> bool {
    matches!(inst.row().role, Role::CBranch | Role::CBranchVcc)
}

/// A conditional branch over a block that is only a branch becomes the opposite branch, to the target of that one.
fn invert(program: &mut MachineProgram, block: usize) {
    let Some(inst) = last(program, block).filter(is_conditional) else { return };
    let Some(over) = target(&inst) else { return };
    let middle = following(program, block + 1);
    if middle >= over || following(program, middle + 1) != following(program, over) {
        return;
    }
    let [only] = program.blocks[middle].insts[..] else { return };
    // Nothing comes to it but from this block, through empty ones.
    let inside = |from: &usize| (block..middle).contains(from);
    let alone = program.blocks[block + 1..=middle].iter().all(|between| between.preds.iter().all(inside));
    if only.inst.row().role != Role::Branch || !alone {
        return;
    }
    let opposite = OPPOSITES.iter().find_map(|(a, b)| match inst.opcode() {
        opcode if opcode == *a => Some(*b),
        opcode if opcode == *b => Some(*a),
        _ => None,
    });
    let (Some(opposite), Some(goal)) = (opposite, target(&only.inst)) else { return };
    if let Some(new) = plain(opposite, &[Operand::Imm(goal as i32)], &program.gpu)
        && let Some(place) = program.blocks[block].insts.last_mut()
    {
        place.inst = new.inst;
        program.blocks[middle].insts.clear();
    }
}

/// Removes a branch to the block that follows.
fn drop_last(program: &mut MachineProgram, block: usize) {
    let Some(inst) = last(program, block) else { return };
    if !is_conditional(&inst) && inst.row().role != Role::Branch {
        return;
    }
    let forward = target(&inst).filter(|target| *target > block);
    if forward.is_some_and(|target| following(program, block + 1) == following(program, target)) {
        program.blocks[block].insts.pop();
    }
}
