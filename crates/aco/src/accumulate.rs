//! Sums onto a register: takes a machine instruction that adds a product to its result's register, and makes it the short one that can do nothing
//! else (`v_fmac_f32`). Never: changes what is computed.

use crate::ir::shape::Variants;
use crate::ir::{Inst, Op, Program};
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{self, Mods, Opcode, Operand, codec};

/// Instructions of three sources, and the short ones.
const SHORT: [(Opcode, Opcode); 3] = [
    (Opcode::v_fma_f32, Opcode::v_fmac_f32),
    (Opcode::v_mad_f32, Opcode::v_mac_f32),
    (Opcode::v_fma_f16, Opcode::v_fmac_f16),
];

/// Which operand is the summand.
pub(crate) const SUMMAND: usize = 2;

fn short_number(variants: &Variants, opcode: Opcode) -> Option<u16> {
    let (_, short) = SHORT.iter().find(|(long, _)| *long == opcode)?;
    variants.number(*short, Form::E32)
}

/// Whether an instruction is short if its result is in the register of the summand.
pub(crate) fn may_accumulate(program: &Program, variants: &Variants, inst: Inst) -> bool {
    let data = &program[inst];
    let plain = data.mods == Mods::default() && matches!(data.form, Form::Native | Form::E64);
    matches!(data.op, Op::Hw(opcode) if plain && short_number(variants, opcode).is_some())
}

/// An instruction in the short encoding, if the result is in the register of the summand.
pub(crate) fn shortened(inst: &amdgcn::Inst, variants: &Variants) -> Option<amdgcn::Inst> {
    let number = short_number(variants, inst.opcode()).filter(|_| inst.mods == Mods::default())?;
    let [sum, a, b, summand, ..] = inst.operands;
    let vector = |operand: Operand| matches!(operand, Operand::Reg { reg, .. } if reg.is_vgpr());
    let (other, factor) = if vector(b) { (a, b) } else { (b, a) };
    if sum != summand || !vector(factor) {
        return None;
    }
    let mut short = amdgcn::Inst::new(number)?;
    short.operands[..3].copy_from_slice(&[sum, other, factor]);
    codec::encode(&short, variants.gpu()).is_ok().then_some(short)
}
