//! SSA elimination: phis become parallel copies at the ends of predecessors.
//!
//! Takes `Allocated`, leaves `Eliminated`. Copies of a linear phi come before the branch, where `scc` holds nothing, or at the start of a block that the wave enters from one
//! block only; those of a logical phi at the end of the logical part, where the lanes are those that take the edge.

use crate::error::FinishError;
use crate::ir::{Block, Definition, NewInst, Operand, Payload, Program, Progress, Pseudo};
use crate::live::phi_preds;
use unwedge_base::entity::Entity;

#[derive(Default)]
struct EdgeCopies {
    to: Vec<Definition>,
    from: Vec<Operand>,
}

/// Replaces phis.
///
/// # Errors
///
/// [`FinishError::Invalid`] for an edge that has no place for copies.
pub fn eliminate(program: &mut Program) -> Result<(), FinishError> {
    let count = program.blocks.len();
    let mut linear: Vec<EdgeCopies> = (0..count).map(|_| EdgeCopies::default()).collect();
    let mut logical: Vec<EdgeCopies> = (0..count).map(|_| EdgeCopies::default()).collect();
    for block in program.blocks.keys() {
        let mut insts = std::mem::take(&mut program.blocks[block].insts);
        let mut entry = EdgeCopies::default();
        let is_entered_by_branch = match program.blocks[block].linear_preds[..] {
            [pred] => program.blocks[pred].linear_succs.len() > 1,
            _ => false,
        };
        for &inst in &insts {
            let op = program.op(inst);
            let Some(preds) = phi_preds(program, block, op) else { break };
            let of_edges = if op.is(Pseudo::LinearPhi) { &mut linear } else { &mut logical };
            let definition = program.definitions(inst)[0];
            for (pred, operand) in preds.iter().zip(program.operands(inst)) {
                // Scalar registers are read on every path of the wave, so they are written on every path. For these lanes a vector register may hold anything:
                // its copy emits no instruction, but determines the register.
                let from = match operand.is_undef() {
                    true if definition.class.is_linear() => Operand::constant(0, definition.class),
                    true if program.blocks[*pred].logical_succs.len() > 1 => continue,
                    true => *operand,
                    false => Operand { kill: false, first_kill: false, ..*operand },
                };
                let copies = match op.is(Pseudo::LinearPhi) && is_entered_by_branch {
                    true => &mut entry,
                    false => &mut of_edges[pred.index()],
                };
                copies.to.push(definition);
                copies.from.push(from);
            }
        }
        insts.retain(|inst| !program.op(*inst).is_phi());
        program.blocks[block].insts = insts;
        insert(program, block, 0, &entry);
    }
    for block in program.blocks.keys() {
        let data = &program.blocks[block];
        let critical = data.linear_succs.len() > 1 && !linear[block.index()].to.is_empty()
            || data.logical_succs.len() > 1 && !logical[block.index()].to.is_empty();
        if critical {
            return Err(FinishError::Invalid { block, reason: "copies on a critical edge" });
        }
        let last = data.insts.len().saturating_sub(1);
        let end = program.logical_end(block);
        insert(program, block, last, &linear[block.index()]);
        insert(program, block, end, &logical[block.index()]);
    }
    program.progress = Progress::Eliminated;
    Ok(())
}

fn insert(program: &mut Program, block: Block, at: usize, copies: &EdgeCopies) {
    if copies.to.is_empty() {
        return;
    }
    let new = NewInst {
        payload: Payload::Copy(None, false),
        ..NewInst::pseudo(Pseudo::ParallelCopy, &copies.to, &copies.from)
    };
    program.insert(block, at, &new);
}
