//! Signs of floats: instructions of floating point negate what they read, or take its absolute value, by modifiers.

use super::combine::Combiner;
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand};
use unwedge_isa::amdgcn::model::{Form, Format, Mod, OperandSlot, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// What an instruction does to a sign.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SignChange {
    Negate,
    Clear,
}

impl Combiner<'_> {
    /// Replaces an operand whose sign is changed before by a modifier.
    pub(super) fn fold_signs(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let row = opcode.row();
        let floats = matches!(
            row.role,
            Role::Float | Role::Minmax | Role::Convert | Role::Transcendental | Role::Compare
        );
        // A choice only changes the bit.
        let chooses = opcode == Opcode::v_cndmask_b32;
        let vector = matches!(row.format, Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3);
        if !(floats || chooses) || !vector || !matches!(self.program[inst].form, Form::Native | Form::E64) {
            return false;
        }
        let long = self.variants.variant(opcode, Form::E64).or(self.variants.variant(opcode, Form::Native));
        let Some(variant) = long else { return false };
        if variant.mod_set >> Mod::Neg as u8 & 1 == 0 || variant.mod_set >> Mod::Abs as u8 & 1 == 0 {
            return false;
        }
        let slots: Vec<&OperandSlot> = shape::operands(variant).collect();
        for (at, slot) in slots.into_iter().enumerate() {
            let Some(&operand) = self.program.operands(inst).get(at) else { break };
            let chosen = chooses && slot.ty == Type::B32 && self.only_source(operand).is_some();
            let modifiable =
                slot.source != OperandSlot::NO_SOURCE && (chosen || matches!(slot.ty, Type::F32 | Type::F16));
            let Some((change, value)) = self.sign_change(operand, slot.ty).filter(|_| modifiable) else {
                continue;
            };
            let mut operands = self.program.operands(inst).to_vec();
            operands[at] = value;
            if !self.fits(opcode, &operands, true) {
                continue;
            }
            let bit = 1 << slot.source;
            let mut mods = self.program[inst].mods;
            apply(&mut mods, bit, change);
            self.set_operands(inst, &operands);
            self.program[inst].mods = mods;
            if self.variants.variant(opcode, Form::E64).is_some() {
                self.program[inst].form = Form::E64;
            }
            return true;
        }
        false
    }

    /// What a value is before its sign changes.
    fn sign_change(&self, operand: Operand, ty: Type) -> Option<(SignChange, Operand)> {
        let inner = self.source(operand)?;
        let sign = if ty == Type::F16 { 1u64 << 15 } else { 1 << 31 };
        let [a, b] = *self.program.operands(inner) else { return None };
        let with = |bits: u64| {
            let constant = |operand: &Operand| operand.as_const() == Some(bits);
            if constant(&a) {
                Some(b)
            } else if constant(&b) {
                Some(a)
            } else {
                None
            }
        };
        let found = match self.program.op(inner) {
            Op::Hw(Opcode::v_xor_b32 | Opcode::s_xor_b32) => (SignChange::Negate, with(sign)?),
            Op::Hw(Opcode::v_and_b32 | Opcode::s_and_b32) => (SignChange::Clear, with(sign - 1)?),
            _ => return None,
        };
        found.1.as_temp().map(|_| found)
    }
}

/// Puts a change of sign below those that modifiers make.
fn apply(mods: &mut Mods, bit: i32, change: SignChange) {
    if mods.get(Mod::Abs) & bit != 0 {
        return;
    }
    match change {
        SignChange::Negate => mods.set(Mod::Neg, mods.get(Mod::Neg) ^ bit),
        SignChange::Clear => mods.set(Mod::Abs, mods.get(Mod::Abs) | bit),
    }
}
