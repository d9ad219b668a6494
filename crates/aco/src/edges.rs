//! Edges: makes blocks for the copies that will replace phis.
//!
//! Takes a program that is `Masked`. Guarantees: a block with several linear predecessors is the only linear successor of each; a phi has
//! several operands; a phi of scalar registers is a `p_linear_phi`. A critical edge that only lanes take cannot be split, and is an error where a
//! phi would need it.

use crate::error::FinishError;
use crate::ir::{Block, BlockData, Inst, NewInst, Op, Program, Pseudo};
use unwedge_base::entity::{Entity, PrimaryMap};
use unwedge_base::inline::InlineList;

/// Splits critical edges, and replaces phis with one operand.
///
/// # Errors
///
/// [`FinishError::Invalid`] for a critical logical edge, and for a scalar phi whose logical and linear predecessors differ.
pub fn prepare(program: &mut Program) -> Result<(), FinishError> {
    scalar_phis(program)?;
    split(program);
    single_phis(program);
    logical_edges(program)
}

/// A logical phi of scalar registers becomes a linear one.
fn scalar_phis(program: &mut Program) -> Result<(), FinishError> {
    for block in program.blocks.keys() {
        for at in 0..program.blocks[block].insts.len() {
            let inst = program.blocks[block].insts[at];
            let scalar = program.definitions(inst).iter().all(|definition| definition.class.is_sgpr());
            if !program.op(inst).is(Pseudo::Phi) || !scalar {
                continue;
            }
            let data = &program.blocks[block];
            if data.logical_preds != data.linear_preds {
                return Err(FinishError::Invalid {
                    block,
                    reason: "a scalar phi where logical and linear predecessors differ",
                });
            }
            program[inst].op = Op::Pseudo(Pseudo::LinearPhi);
        }
    }
    Ok(())
}

/// Puts a block on each critical linear edge, directly after the block that the edge leaves.
fn split(program: &mut Program) {
    let mut old = std::mem::take(&mut program.blocks);
    let critical =
        |from: &BlockData, to: Block| from.linear_succs.len() > 1 && old[to].linear_preds.len() > 1;
    if !old.values().any(|data| data.linear_succs.iter().any(|to| critical(data, *to))) {
        program.blocks = old;
        return;
    }
    // The new number of each block, and for each edge of it that is split that of the new block.
    let (mut numbers, mut edges, mut next) = (Vec::new(), Vec::new(), 0);
    for data in old.values() {
        numbers.push(Block::new(next));
        next += 1;
        let mut own = InlineList::<Option<Block>, 2>::new();
        for to in &data.linear_succs {
            own.push(critical(data, *to).then(|| {
                next += 1;
                Block::new(next - 1)
            }));
        }
        edges.push(own);
    }
    let mut new: PrimaryMap<Block, BlockData> = PrimaryMap::default();
    for (data, own_edges) in old.values_mut().zip(&edges) {
        let mut own = std::mem::take(data);
        let lists =
            [&mut own.logical_preds, &mut own.logical_succs, &mut own.linear_preds, &mut own.linear_succs];
        for block in lists.into_iter().flatten() {
            *block = numbers[block.index()];
        }
        let BlockData { loop_depth, divergent_depth, uniform_depth, .. } = own;
        new.push(own);
        for middle in own_edges.iter().flatten() {
            let pushed =
                new.push(BlockData { loop_depth, divergent_depth, uniform_depth, ..BlockData::default() });
            debug_assert_eq!(pushed, *middle);
        }
    }
    for (&from, own_edges) in numbers.iter().zip(&edges) {
        for (at, middle) in own_edges.iter().enumerate() {
            let Some(middle) = *middle else { continue };
            let to = new[from].linear_succs[at];
            new[from].linear_succs[at] = middle;
            replace(&mut new[to].linear_preds, from, middle);
            (new[middle].linear_preds, new[middle].linear_succs) = (vec![from], vec![to]);
            if replace(&mut new[from].logical_succs, to, middle) {
                replace(&mut new[to].logical_preds, from, middle);
                (new[middle].logical_preds, new[middle].logical_succs) = (vec![from], vec![to]);
            }
        }
    }
    program.blocks = new;
    for construct in program.constructs.values_mut() {
        for block in construct.merge.iter_mut().chain(&mut construct.head) {
            *block = numbers[block.index()];
        }
    }
    for &middle in edges.iter().flat_map(|own| own.iter()).flatten() {
        let logical = !program.blocks[middle].logical_preds.is_empty();
        for pseudo in [Pseudo::LogicalStart, Pseudo::LogicalEnd].into_iter().filter(|_| logical) {
            program.append(middle, &NewInst::pseudo(pseudo, &[], &[]));
        }
        program.append(middle, &NewInst::pseudo(Pseudo::Branch, &[], &[]));
    }
    fall_through(program);
}

fn replace(list: &mut [Block], from: Block, to: Block) -> bool {
    match list.iter_mut().find(|block| **block == from) {
        Some(place) => {
            *place = to;
            true
        }
        None => false,
    }
}

/// A branch whose target follows it is inverted, so that it falls through to that.
fn fall_through(program: &mut Program) {
    for block in program.blocks.keys() {
        let following = Block::new(block.index() + 1);
        let [first, second] = program.blocks[block].linear_succs[..] else { continue };
        let Some(&last) = program.blocks[block].insts.last() else { continue };
        let inverted = match program.op(last) {
            Op::Pseudo(Pseudo::BranchZ) => Pseudo::BranchNz,
            Op::Pseudo(Pseudo::BranchNz) => Pseudo::BranchZ,
            _ => continue,
        };
        if second == following && first != following {
            program[last].op = Op::Pseudo(inverted);
            program.blocks[block].linear_succs.swap(0, 1);
        }
    }
}

/// Replaces phis of one operand by copies: a linear one in its place, a logical one at the end of the logical part of its predecessor, as a scalar
/// operand is alive there and may not be on other paths to the phi.
fn single_phis(program: &mut Program) {
    let is_single =
        |program: &Program, inst: Inst| program.op(inst).is_phi() && program.operands(inst).len() == 1;
    for block in program.blocks.keys() {
        if !program.blocks[block].insts.iter().any(|inst| is_single(program, *inst)) {
            continue;
        }
        let insts = std::mem::take(&mut program.blocks[block].insts);
        let (mut rest, mut copies, mut early) = (Vec::new(), Vec::new(), Vec::new());
        for inst in insts {
            if !is_single(program, inst) {
                rest.push(inst);
                continue;
            }
            let logical = program.op(inst).is(Pseudo::Phi);
            program[inst].op = Op::Pseudo(Pseudo::ParallelCopy);
            if logical { early.push(inst) } else { copies.push(inst) }
        }
        program.blocks[block].insts = rest;
        let phis = program.phi_count(block);
        program.blocks[block].insts.splice(phis..phis, copies);
        let Some(&pred) = program.blocks[block].logical_preds.first() else { continue };
        let at = program.logical_end(pred);
        program.blocks[pred].insts.splice(at..at, early);
    }
}

fn logical_edges(program: &Program) -> Result<(), FinishError> {
    for (block, data) in program.blocks.iter() {
        let critical = |pred: &Block| program.blocks[*pred].logical_succs.len() > 1;
        if data.logical_preds.len() > 1 && data.logical_preds.iter().any(critical) {
            return Err(FinishError::Invalid { block, reason: "a critical logical edge" });
        }
    }
    Ok(())
}
