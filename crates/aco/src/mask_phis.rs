//! Lowers phis of lane masks, and makes uniform values SSA along the linear flow: takes a program that is
//! [`Progress::Selected`](crate::ir::Progress::Selected); leaves it without `p_mask_phi`, and with scalar registers defined on every path of the wave to where they are read.
//!
//! A lane has the bit of the predecessor that it came from. So each predecessor, in the order of the wave, writes the bits of its lanes over those of the
//! ones before it.

use crate::dominators::Dominators;
use crate::ir::{Block, Definition, Inst, NewInst, Operand, PhysReg, Program, Pseudo, Source, Temp};
use crate::linear_ssa::LinearVar;
use crate::live::phi_preds;
use unwedge_base::entity::{Entity, SecondaryMap};
use unwedge_isa::amdgcn::Opcode;

/// Lowers a program's mask phis and repairs its scalar values.
pub(crate) fn lower_mask_phis(program: &mut Program) {
    let blocks: Vec<Block> = program.blocks.keys().collect();
    for block in blocks {
        let phis: Vec<Inst> = program.blocks[block]
            .insts
            .iter()
            .copied()
            .filter(|inst| program.op(*inst).is(Pseudo::MaskPhi))
            .collect();
        for phi in phis {
            lower(program, block, phi);
        }
    }
    repair(program);
}

fn lower(program: &mut Program, block: Block, phi: Inst) {
    let class = program.lane_mask();
    let Some(result) = program.definitions(phi)[0].temp else { return };
    let preds = program.blocks[block].logical_preds.clone();
    let operands = program.operands(phi).to_vec();
    program.blocks[block].insts.retain(|inst| *inst != phi);
    let mut var = LinearVar::new(class);
    let mut writes = Vec::new();
    for (pred, operand) in preds.into_iter().zip(operands) {
        if operand.is_undef() {
            continue;
        }
        let temp = program.make_temp(class);
        var.write(pred, Operand::temp(temp, class));
        writes.push((pred, operand, temp));
    }
    for (pred, operand, temp) in writes {
        let before = var.at_start(program, pred);
        write_bits(program, pred, before, operand, temp);
    }
    let value = var.at_start(program, block);
    let definitions = [Definition::temp(result, class)];
    let at = program.phi_count(block);
    program.insert(block, at, &NewInst::pseudo(Pseudo::ParallelCopy, &definitions, &[value]));
}

/// The bits of active lanes from `operand`, the others as they were.
fn write_bits(program: &mut Program, block: Block, before: Operand, operand: Operand, temp: Temp) {
    let class = program.lane_mask();
    let wave64 = program.gpu.wave64();
    let pick = |small, large| if wave64 { large } else { small };
    let exec = Operand::reg(PhysReg::EXEC, class);
    let scc = Definition::reg(PhysReg::SCC, crate::ir::RegClass::S1);
    let result = Definition::temp(temp, class);
    let mut at = program.logical_end(block);
    if before.is_undef() {
        program.insert(block, at, &NewInst::pseudo(Pseudo::ParallelCopy, &[result], &[operand]));
        return;
    }
    let mut add = |program: &mut Program, opcode, definition, operands: [Operand; 2]| {
        program.insert(block, at, &NewInst::hw(opcode, &[definition, scc], &operands));
        at += 1;
    };
    let kept = pick(Opcode::s_andn2_b32, Opcode::s_andn2_b64);
    let joined = pick(Opcode::s_or_b32, Opcode::s_or_b64);
    let all = u64::MAX >> (64 - u32::from(class.bytes()) * 8);
    match operand.source {
        Source::Const(0) => add(program, kept, result, [before, exec]),
        Source::Const(bits) if bits == all => add(program, joined, result, [before, exec]),
        _ => {
            let (old, new) = (program.make_temp(class), program.make_temp(class));
            let own = pick(Opcode::s_and_b32, Opcode::s_and_b64);
            add(program, kept, Definition::temp(old, class), [before, exec]);
            add(program, own, Definition::temp(new, class), [operand, exec]);
            add(program, joined, result, [Operand::temp(old, class), Operand::temp(new, class)]);
        }
    }
}

/// Where temporaries of linear classes are defined.
fn definitions(program: &Program) -> SecondaryMap<Temp, Option<Block>> {
    let mut places = SecondaryMap::default();
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            for definition in
                program.definitions(inst).iter().filter(|definition| definition.class.is_linear())
            {
                if let Some(temp) = definition.temp {
                    places[temp] = Some(block);
                }
            }
        }
    }
    places
}

/// A read that a definition may not reach.
struct StrayUse {
    temp: Temp,
    block: Block,
    inst: Inst,
    operand: usize,
    /// It is read at the end of the block: by a phi of a successor.
    at_end: bool,
}

/// Inserts linear phis for scalar values that are read where the wave may come without passing their definition.
fn repair(program: &mut Program) {
    let places = definitions(program);
    let dominators = Dominators::linear(program);
    let mut strays = Vec::new();
    for (block, data) in program.blocks.iter() {
        for &inst in &data.insts {
            let op = program.op(inst);
            for (number, operand) in program.operands(inst).iter().enumerate() {
                let Some(temp) = operand.as_temp().filter(|_| operand.class.is_linear()) else { continue };
                let from = match phi_preds(program, block, op) {
                    Some(preds) => preds.get(number).copied(),
                    None => Some(block),
                };
                let (Some(from), Some(defined)) = (from, places[temp]) else { continue };
                if defined != from && !dominators.dominates(defined, from) {
                    strays.push(StrayUse { temp, block: from, inst, operand: number, at_end: op.is_phi() });
                }
            }
        }
    }
    strays.sort_by_key(|stray| stray.temp.index());
    let mut var: Option<(Temp, LinearVar)> = None;
    for stray in strays {
        let class = program.class(stray.temp);
        if var.as_ref().is_none_or(|(temp, _)| *temp != stray.temp) {
            let mut new = LinearVar::new(class);
            if let Some(block) = places[stray.temp] {
                new.write(block, Operand::temp(stray.temp, class));
            }
            var = Some((stray.temp, new));
        }
        let Some((_, var)) = &mut var else { continue };
        let value =
            if stray.at_end { var.at_end(program, stray.block) } else { var.at_start(program, stray.block) };
        program.operands_mut(stray.inst)[stray.operand] = value;
    }
}
