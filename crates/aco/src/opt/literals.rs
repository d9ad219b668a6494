//! Literals of multiply-add instructions: takes SSA; before gfx10, replaces a `v_mad_f32` that reads a constant from a register of its own by the instruction of
//! the same size with the constant in its encoding. Guarantees the same bits. The long encoding of later GPUs can have literals itself.

use super::uses::Uses;
use crate::ir::shape::Variants;
use crate::ir::{Inst, Op, Operand, Program, Pseudo};
use crate::machine;
use unwedge_isa::amdgcn::model::{Form, Gfx, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The most readers of a constant that becomes a literal in each of them. With more readers, sharing a register makes the code shorter.
const MAX_READERS: u32 = 2;

/// The literal that could replace an operand.
fn literal(program: &Program, variants: &Variants, uses: &Uses, operand: Operand) -> Option<Operand> {
    let temp = operand.as_temp().filter(|temp| uses.count(*temp) <= MAX_READERS)?;
    let inst = uses.definition(temp).filter(|inst| program.op(*inst).is(Pseudo::ParallelCopy))?;
    let &[source] = program.operands(inst) else { return None };
    let bits = source.as_const()?;
    machine::inline(variants.gpu(), Type::F32, bits).is_none().then_some(Operand::c32(bits as u32))
}

/// The instruction with a literal that is equivalent to one with three registers, and its operands.
fn folded(program: &Program, variants: &Variants, uses: &Uses, inst: Inst) -> Option<(Opcode, [Operand; 3])> {
    let data = &program[inst];
    let &[a, b, c] = program.operands(inst) else { return None };
    let plain = data.mods == Mods::default() && matches!(data.form, Form::Native | Form::E64);
    if data.op != Op::Hw(Opcode::v_mad_f32) || !plain {
        return None;
    }
    let vector = |operand: Operand| operand.as_temp().is_some() && operand.class.is_vgpr();
    // A literal counts as the one scalar value that an instruction may read.
    let factors = [(a, b), (b, a)];
    let literal = |operand| literal(program, variants, uses, operand);
    factors.into_iter().find_map(|(first, second)| match (literal(second), literal(c)) {
        _ if !vector(first) && first.as_const().is_none() => None,
        (_, Some(bits)) if vector(second) => Some((Opcode::v_madak_f32, [first, second, bits])),
        (Some(bits), _) if vector(c) => Some((Opcode::v_madmk_f32, [first, bits, c])),
        _ => None,
    })
}

/// Puts literals into the instructions.
pub(super) fn fold(program: &mut Program, variants: &Variants) {
    if variants.gpu().generation() >= Gfx::Gfx10 {
        return;
    }
    let uses = Uses::of(program);
    let insts: Vec<Inst> = program.blocks.values().flat_map(|data| data.insts.iter().copied()).collect();
    for inst in insts {
        let Some((opcode, operands)) = folded(program, variants, &uses, inst) else { continue };
        program.set_operands(inst, &operands);
        program[inst].op = Op::Hw(opcode);
        program[inst].form = Form::Native;
    }
}
