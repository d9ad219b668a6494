//! Multiply-add instructions after allocation: takes a machine instruction with three sources, and replaces it with an equivalent short one, if the result is in
//! the register of the addend (`v_fmac_f32`), or a factor or the addend is a literal (`v_fmamk_f32`, `v_fmaak_f32`). Never: changes what is computed.

use crate::ir::shape::Variants;
use crate::ir::{Inst, Op, Program};
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{self, Mods, Opcode, Operand, codec};

/// An instruction with three sources, and its short forms.
struct MultiplyAdd {
    long: Opcode,
    /// The form that adds the product to the register of the result.
    accumulate: Opcode,
    /// The form that adds a literal.
    add_literal: Opcode,
    /// The form whose second factor is a literal.
    multiply_literal: Opcode,
}

const MULTIPLY_ADDS: [MultiplyAdd; 3] = [
    MultiplyAdd {
        long: Opcode::v_fma_f32,
        accumulate: Opcode::v_fmac_f32,
        add_literal: Opcode::v_fmaak_f32,
        multiply_literal: Opcode::v_fmamk_f32,
    },
    MultiplyAdd {
        long: Opcode::v_mad_f32,
        accumulate: Opcode::v_mac_f32,
        add_literal: Opcode::v_madak_f32,
        multiply_literal: Opcode::v_madmk_f32,
    },
    MultiplyAdd {
        long: Opcode::v_fma_f16,
        accumulate: Opcode::v_fmac_f16,
        add_literal: Opcode::v_fmaak_f16,
        multiply_literal: Opcode::v_fmamk_f16,
    },
];

/// The index of the addend among the operands.
pub(crate) const SUMMAND: usize = 2;

fn multiply_add(opcode: Opcode) -> Option<&'static MultiplyAdd> {
    MULTIPLY_ADDS.iter().find(|sum| sum.long == opcode)
}

/// Whether an instruction has a short form if its result is in the register of the addend.
pub(crate) fn may_accumulate(program: &Program, variants: &Variants, inst: Inst) -> bool {
    let data = &program[inst];
    let plain = data.mods == Mods::default() && matches!(data.form, Form::Native | Form::E64);
    let Op::Hw(opcode) = data.op else { return false };
    let short = |sum: &MultiplyAdd| variants.number(sum.accumulate, Form::E32).is_some();
    plain && multiply_add(opcode).is_some_and(short)
}

/// An instruction in a short encoding, if it has one with these operands.
pub(crate) fn shortened(inst: &amdgcn::Inst, variants: &Variants) -> Option<amdgcn::Inst> {
    let sum = multiply_add(inst.opcode()).filter(|_| inst.mods == Mods::default())?;
    let [to, a, b, summand, ..] = inst.operands;
    let vector = |operand: Operand| matches!(operand, Operand::Reg { reg, .. } if reg.is_vgpr());
    let literal = |operand: Operand| matches!(operand, Operand::Literal(_));
    let short = |opcode: Opcode, operands: &[Operand]| {
        let mut short = amdgcn::Inst::new(variants.number(opcode, Form::E32)?)?;
        short.operands[..operands.len()].copy_from_slice(operands);
        codec::encode(&short, variants.gpu()).is_ok().then_some(short)
    };
    let (other, factor) = if vector(b) { (a, b) } else { (b, a) };
    let sum_in_place =
        || (to == summand && vector(factor)).then(|| short(sum.accumulate, &[to, other, factor]))?;
    sum_in_place().or_else(|| {
        [(a, b), (b, a)].into_iter().find_map(|(factor, other)| {
            let opcode = if literal(summand) && vector(other) {
                sum.add_literal
            } else if literal(other) && vector(summand) {
                sum.multiply_literal
            } else {
                return None;
            };
            short(opcode, &[to, factor, other, summand])
        })
    })
}
