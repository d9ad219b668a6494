//! Moves of lanes (DPP): the only instruction that reads the result of a move moves the lanes itself.

use super::combine::Combiner;
use super::rules::swapped;
use super::signs::{only_halves_and_signs, swap_signs};
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand, OperandList};
use unwedge_isa::amdgcn::model::{Form, Format, Mod, Role};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// Modifiers that say which lanes are read.
pub(crate) const LANE_MODS: [Mod; 6] =
    [Mod::DppCtrl, Mod::RowMask, Mod::BankMask, Mod::BoundCtrl, Mod::Fi, Mod::Dpp8];

/// Whether modifiers of a form move lanes of all rows and banks, so that every active lane is written.
pub(crate) fn moves_all(form: Form, mods: &Mods) -> bool {
    match form {
        Form::Dpp => {
            mods.get(Mod::RowMask) == 15 && mods.get(Mod::BankMask) == 15 && mods.has(Mod::BoundCtrl)
        }
        Form::Dpp8 => true,
        _ => false,
    }
}

impl Combiner<'_> {
    /// The move that makes an operand with no other reader, in this block: elsewhere other lanes may be active.
    fn lane_move(&self, operand: Operand) -> Option<Inst> {
        let temp = operand.as_temp().filter(|temp| self.uses.count(*temp) == 1)?;
        let inst = self.definition(temp).filter(|_| self.uses.block(temp) == Some(self.block))?;
        let data = &self.program[inst];
        let mut rest = data.mods;
        LANE_MODS.iter().for_each(|id| rest.set(*id, 0));
        let source = self.program.operands(inst).first()?;
        let plain = data.op == Op::Hw(Opcode::v_mov_b32) && rest == Mods::default();
        let register = source.as_temp().is_some() && source.class.is_vgpr() && source.reg.is_none();
        (plain && register && moves_all(data.form, &data.mods)).then_some(inst)
    }

    /// Moves the lanes of the first source.
    pub(super) fn move_lanes(&mut self, inst: Inst) -> bool {
        let data = &self.program[inst];
        let Op::Hw(opcode) = data.op else { return false };
        let row = opcode.row();
        let computes = matches!(
            row.role,
            Role::Float | Role::Minmax | Role::Integer | Role::Convert | Role::Transcendental
        );
        let short = matches!(row.format, Format::Vop1 | Format::Vop2) && opcode != Opcode::v_mov_b32;
        let long = matches!(data.form, Form::Native | Form::E64);
        if !computes || !short || !long || !only_halves_and_signs(&data.mods) {
            return false;
        }
        let (mods, operands) = (data.mods, OperandList::from(self.program.operands(inst)));
        for at in 0..operands.len().min(2) {
            let Some(inner) = self.lane_move(operands[at]) else { continue };
            let lanes = self.program[inner];
            let (mut new, mut made) = (operands.clone(), mods);
            let Some(opcode) = (if at == 0 { Some(opcode) } else { swapped(opcode) }) else { continue };
            new[at] = self.program.operands(inner)[0];
            if at == 1 {
                new.swap(0, 1);
                swap_signs(&mut made);
            }
            LANE_MODS.iter().for_each(|id| made.set(*id, lanes.mods.get(*id)));
            // Only the long encoding can select halves.
            let form = match lanes.form {
                Form::Dpp if made.has(Mod::OpSel) => Form::E64Dpp,
                Form::Dpp8 if made.has(Mod::OpSel) => Form::E64Dpp8,
                form => form,
            };
            let Some(variant) = self.variants.variant(opcode, form) else { continue };
            let vector = |operand: &Operand| operand.as_temp().is_some() && operand.class.is_vgpr();
            let fits = shape::operands(variant).count() == new.len()
                && shape::operands(variant).all(|slot| matches!(slot.ty.bits(), 16 | 32) && slot.source < 2)
                && shape::definitions(variant).count() == self.program.definitions(inst).len()
                && new.iter().all(vector)
                && Mod::ALL.iter().all(|id| !made.has(*id) || variant.has_mod(*id) || *id == Mod::OpSel)
                && (0..2).all(|source| {
                    made.get(Mod::OpSel) >> source & 1 == 0 || self.variants.reads_upper(opcode, form, source)
                });
            if !fits {
                continue;
            }
            self.set_operands(inst, &new);
            let data = &mut self.program[inst];
            (data.op, data.form, data.mods) = (Op::Hw(opcode), form, made);
            return true;
        }
        false
    }
}
