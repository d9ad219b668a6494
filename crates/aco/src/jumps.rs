//! Jumps: removes branches that the order of the blocks makes unnecessary.
//!
//! Takes a machine program without waits. Guarantees that the same instructions are executed, except branches. A block that was only a branch is left
//! empty. Predecessors and successors include all possible ones, and sometimes more.

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
    // A block that becomes empty makes branches over it unnecessary.
    let mut before = usize::MAX;
    let count = |program: &MachineProgram| program.blocks.iter().map(|block| block.insts.len()).sum();
    while std::mem::replace(&mut before, count(program)) != before {
        // From the end, so that what follows a block is simple already.
        for block in (0..program.blocks.len()).rev() {
            thread(program, block);
            invert(program, block);
            drop_last(program, block);
        }
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

/// The target of a block that is only a branch.
fn only_branch(program: &MachineProgram, block: usize) -> Option<usize> {
    match &program.blocks.get(block)?.insts[..] {
        [only] if only.inst.row().role == Role::Branch => target(&only.inst),
        _ => None,
    }
}

/// A branch to a block that is only a branch goes to the target of that block.
fn thread(program: &mut MachineProgram, block: usize) {
    let Some(inst) = last(program, block) else { return };
    if !is_conditional(&inst) && inst.row().role != Role::Branch {
        return;
    }
    let Some(old) = target(&inst) else { return };
    let middle = following(program, old);
    // `drop_last` removes a branch to what follows.
    if old > block && middle == following(program, block + 1) {
        return;
    }
    let Some(goal) = only_branch(program, middle).filter(|goal| *goal != old && middle != block) else {
        return;
    };
    let Some(new) = plain(inst.opcode(), &[Operand::Imm(goal as i32)], &program.gpu) else { return };
    if let Some(place) = program.blocks[block].insts.last_mut() {
        place.inst = new.inst;
    }
    if !program.blocks[block].succs.contains(&goal) {
        program.blocks[block].succs.push(goal);
    }
    if !program.blocks[goal].preds.contains(&block) {
        program.blocks[goal].preds.push(block);
    }
    // A conditional branch before this one may go there, too.
    if !program.blocks[block].insts.iter().any(|own| target(&own.inst) == Some(old)) {
        unlink(program, block, old);
    }
}

/// Removes an edge, and blocks to which no edge is left.
fn unlink(program: &mut MachineProgram, from: usize, to: usize) {
    program.blocks[from].succs.retain(|succ| *succ != to);
    program.blocks[to].preds.retain(|pred| *pred != from);
    let mut open = vec![to];
    while let Some(block) = open.pop() {
        let skipped = only_branch(program, block).is_some() || program.blocks[block].insts.is_empty();
        if block == 0 || !skipped || !program.blocks[block].preds.is_empty() {
            continue;
        }
        program.blocks[block].insts.clear();
        for succ in std::mem::take(&mut program.blocks[block].succs) {
            program.blocks[succ].preds.retain(|pred| *pred != block);
            open.push(succ);
        }
    }
}

/// Whether the wave reaches a block only from another one before it, through empty blocks.
fn comes_only_from(program: &MachineProgram, block: usize, from: usize) -> bool {
    (from + 1..=block).all(|at| {
        let preds = &program.blocks[at].preds;
        preds.iter().all(|pred| (from..at).contains(pred))
    })
}

/// A conditional branch over a block that is only a branch becomes the opposite branch, to the target of that block.
fn invert(program: &mut MachineProgram, block: usize) {
    let Some(inst) = last(program, block).filter(is_conditional) else { return };
    let Some(over) = target(&inst) else { return };
    let middle = following(program, block + 1);
    if middle >= over || following(program, middle + 1) != following(program, over) {
        return;
    }
    let [only] = program.blocks[middle].insts[..] else { return };
    if only.inst.row().role != Role::Branch || !comes_only_from(program, middle, block) {
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
