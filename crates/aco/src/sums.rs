//! Products and sums with a literal: takes a machine instruction of three sources, and makes it the shorter one whose factor or summand is always a
//! literal (`v_fmamk_f32`, `v_fmaak_f32`). Never: changes what is computed.

use crate::ir::shape::Variants;
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Inst, Mods, Opcode, Operand, codec};

/// An instruction of three sources, and its short ones.
struct Sum {
    long: Opcode,
    /// A literal is added.
    add_literal: Opcode,
    /// A literal is the second factor.
    multiply_literal: Opcode,
}

const SUMS: [Sum; 3] = [
    Sum { long: Opcode::v_fma_f32, add_literal: Opcode::v_fmaak_f32, multiply_literal: Opcode::v_fmamk_f32 },
    Sum { long: Opcode::v_mad_f32, add_literal: Opcode::v_madak_f32, multiply_literal: Opcode::v_madmk_f32 },
    Sum { long: Opcode::v_fma_f16, add_literal: Opcode::v_fmaak_f16, multiply_literal: Opcode::v_fmamk_f16 },
];

/// An instruction in a short encoding, if it has one with these operands.
pub(crate) fn shortened(inst: &Inst, variants: &Variants) -> Option<Inst> {
    let sum = SUMS.iter().find(|sum| sum.long == inst.opcode())?;
    if inst.mods != Mods::default() {
        return None;
    }
    let [to, a, b, c, ..] = inst.operands;
    let vector = |operand: Operand| matches!(operand, Operand::Reg { reg, .. } if reg.is_vgpr());
    let literal = |operand: Operand| matches!(operand, Operand::Literal(_));
    [(a, b), (b, a)].into_iter().find_map(|(factor, other)| {
        let opcode = if literal(c) && vector(other) {
            sum.add_literal
        } else if literal(other) && vector(c) {
            sum.multiply_literal
        } else {
            return None;
        };
        let mut short = Inst::new(variants.number(opcode, Form::E32)?)?;
        short.operands[..4].copy_from_slice(&[to, factor, other, c]);
        codec::encode(&short, variants.gpu()).is_ok().then_some(short)
    })
}
