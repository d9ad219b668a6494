//! What instructions do with their results: the instruction that computes a value clamps it to 0 to 1 or multiplies it by 2, 4 or 0.5 (output modifiers), or leaves a
//! part of it (SDWA).
//!
//! Clamping makes NaNs zero, as the median does (`DX10_CLAMP`). A zero that `omod` multiplies loses its sign, and the hardware multiplies only where denormals are
//! flushed.

use super::combine::Combiner;
use super::parts::{WORD, part};
use crate::ir::shape;
use crate::ir::{Definition, Inst, Op, Operand};
use unwedge_isa::amdgcn::model::{Class, Form, Format, Gfx, Mod, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// What happens to a result.
#[derive(Debug, Clone, Copy)]
struct OutputChange {
    value: Operand,
    ty: Type,
    id: Mod,
    modifier: i32,
}

impl Combiner<'_> {
    /// The instruction that alone makes an operand which nothing else reads, whatever its modifiers. It can be executed where the operand is read.
    pub(super) fn only_maker(&self, operand: Operand) -> Option<Inst> {
        let temp = operand.as_temp().filter(|temp| self.uses.count(*temp) == 1)?;
        let inst = self.definition(temp)?;
        let [definition] = *self.program.definitions(inst) else { return None };
        let Op::Hw(opcode) = self.program.op(inst) else { return None };
        let row = opcode.row();
        let vector = matches!(
            row.format,
            Format::Vop1 | Format::Vop2 | Format::Vopc | Format::Vop3 | Format::Vop3p | Format::Vinterp
        );
        // Where lanes move it matters which are active.
        let stays = matches!(self.program[inst].form, Form::Native | Form::E32 | Form::E64 | Form::Sdwa)
            && row.role != Role::Lanes
            && (row.format != Format::Vinterp || self.uses.block(temp) == Some(self.block));
        let free = self.program.operands(inst).iter().all(|operand| operand.reg.is_none());
        let own = definition.temp == Some(temp) && definition.reg.is_none();
        let pure = super::dead::is_pure(self.program, inst);
        (vector && stays && free && own && pure).then_some(inst)
    }

    /// The clamp or multiplication of an instruction that the maker of its operand could do instead.
    fn output_change(&self, inst: Inst) -> Option<OutputChange> {
        use Opcode as O;
        let data = &self.program[inst];
        if data.mods != Mods::default() || !matches!(data.form, Form::Native | Form::E64) {
            return None;
        }
        let operands = self.program.operands(inst);
        let Op::Hw(opcode) = data.op else { return None };
        let (ty, one) = match opcode {
            O::v_med3_f32 | O::v_mul_f32 => (Type::F32, 0x3f80_0000),
            O::v_med3_f16 | O::v_mul_f16 => (Type::F16, 0x3c00),
            _ => return None,
        };
        if matches!(opcode, O::v_med3_f32 | O::v_med3_f16) {
            let bounds = [0, one].iter().all(|bound| operands.iter().any(|operand| operand.is_const(*bound)));
            let value = operands.iter().find(|operand| operand.as_temp().is_some()).filter(|_| bounds)?;
            return Some(OutputChange { value: *value, ty, id: Mod::Clamp, modifier: 1 });
        }
        if !data.freedom.zeros || !self.flushes_type(ty) {
            return None;
        }
        let &[a, b] = operands else { return None };
        let (factor, value) = if a.as_const().is_some() { (a, b) } else { (b, a) };
        let modifier = match (ty, factor.as_const()?) {
            (Type::F32, 0x4000_0000) | (Type::F16, 0x4000) => 1,
            (Type::F32, 0x4080_0000) | (Type::F16, 0x4400) => 2,
            (Type::F32, 0x3f00_0000) | (Type::F16, 0x3800) => 3,
            _ => return None,
        };
        Some(OutputChange { value, ty, id: Mod::Omod, modifier })
    }

    /// The maker of a value clamps or multiplies it.
    pub(super) fn modify_output(&mut self, inst: Inst) -> bool {
        let Some(OutputChange { value, ty, id, modifier }) = self.output_change(inst) else { return false };
        let Some(inner) = self.only_maker(value) else { return false };
        let data = &self.program[inner];
        let Op::Hw(opcode) = data.op else { return false };
        // A clamp comes after the product.
        if data.mods.has(Mod::Clamp)
            || id == Mod::Omod && data.mods.has(Mod::Omod)
            || !data.freedom.zeros && id == Mod::Omod
        {
            return false;
        }
        let whole = data.form != Form::Sdwa || data.mods.get(Mod::DstSel) == WORD;
        let long = match data.form {
            Form::Sdwa => Form::Sdwa,
            _ if self.variants.variant(opcode, Form::E64).is_some() => Form::E64,
            _ => Form::Native,
        };
        let Some(variant) = self.variants.variant(opcode, long).filter(|_| whole) else { return false };
        let makes = shape::definitions(variant).next().is_some_and(|slot| slot.ty == ty);
        let packed = matches!(opcode.row().format, Format::Vop3p | Format::Vinterp);
        let operands = self.program.operands(inner).to_vec();
        let fits = packed || long == Form::Sdwa || self.fits(opcode, &operands, true);
        if !makes || !variant.has_mod(id) || !fits {
            return false;
        }
        let mut mods = data.mods;
        mods.set(id, modifier);
        self.become_maker(inst, inner, long, mods);
        true
    }

    /// Replaces an instruction with the maker of its operand, which nothing else reads.
    fn become_maker(&mut self, inst: Inst, inner: Inst, form: Form, mods: Mods) {
        let [outer, maker] = [inst, inner].map(|inst| self.program[inst]);
        let operands = self.program.operands(inner).to_vec();
        let definition: Definition = self.program.definitions(inst)[0];
        self.set_operands(inst, &operands);
        self.program.set_definitions(inst, &[definition]);
        let data = &mut self.program[inst];
        (data.op, data.form, data.mods) = (maker.op, form, mods);
        (data.freedom, data.exact) = (outer.freedom.and(maker.freedom), outer.exact || maker.exact);
    }

    /// The part of a value that an instruction keeps or moves, as a destination of SDWA.
    fn kept_part(&self, inst: Inst) -> Option<(Operand, i32)> {
        use Opcode as O;
        let data = &self.program[inst];
        if data.mods != Mods::default() || data.form != Form::Native {
            return None;
        }
        match (data.op, self.program.operands(inst)) {
            (Op::Hw(O::v_bfe_u32), [value, first, bits]) if first.is_const(0) => {
                Some((*value, part(0, bits.as_const()?)?))
            }
            (Op::Hw(O::v_and_b32), [a, b]) => {
                let (mask, value) = if a.as_const().is_some() { (a, b) } else { (b, a) };
                let bits = match mask.as_const()? {
                    0xff => 8,
                    0xffff => 16,
                    _ => return None,
                };
                Some((*value, part(0, bits)?))
            }
            (Op::Hw(O::v_lshlrev_b32), [shift, value]) => {
                let first = shift.as_const().filter(|first| matches!(first, 16 | 24))?;
                Some((*value, part(first, 32 - first)?))
            }
            (Op::Pseudo(crate::ir::Pseudo::Insert), [value, number, bits]) => {
                let (number, bits) = (number.as_const()?, bits.as_const()?);
                let whole = self.program.definitions(inst)[0].class.bytes() == 4 && value.class.bytes() == 4;
                Some((*value, part(number.checked_mul(bits)?, bits)?)).filter(|_| whole)
            }
            _ => None,
        }
    }

    /// The maker of a value writes the part that is kept of it.
    pub(super) fn write_part(&mut self, inst: Inst) -> bool {
        let Some((value, code)) = self.kept_part(inst) else { return false };
        let Some(inner) = self.only_maker(value) else { return false };
        let data = &self.program[inner];
        let Op::Hw(opcode) = data.op else { return false };
        let Some(variant) = self.variants.variant(opcode, Form::Sdwa) else { return false };
        let known = |id: Mod| variant.has_mod(id);
        let row = opcode.row();
        let computes = matches!(
            row.role,
            Role::Integer | Role::Convert | Role::Float | Role::Minmax | Role::Transcendental
        );
        let wide = shape::definitions(variant).all(|slot| matches!(slot.ty.bits(), 32))
            && shape::definitions(variant).count() == 1
            && shape::operands(variant).count() == self.program.operands(inner).len()
            && shape::operands(variant).all(|slot| slot.source < 2);
        if !computes || !wide || !known(Mod::DstSel) || !matches!(row.format, Format::Vop1 | Format::Vop2) {
            return false;
        }
        let mut mods = data.mods;
        if data.form == Form::Sdwa {
            if mods.get(Mod::DstSel) != WORD {
                return false;
            }
        } else {
            for id in [Mod::Neg, Mod::Abs, Mod::Clamp, Mod::Omod] {
                if mods.has(id) && !known(id) {
                    return false;
                }
            }
            let fits = shape::operands(variant).zip(self.program.operands(inner)).all(|(slot, operand)| {
                operand.class.is_vgpr() && operand.as_temp().is_some() || self.sdwa_reads(slot, operand)
            });
            let limit = if self.variants.gpu().generation() >= Gfx::Gfx10 { 2 } else { 1 };
            let mut scalars: Vec<_> = self
                .program
                .operands(inner)
                .iter()
                .filter(|o| o.as_temp().is_some() && o.class.is_sgpr())
                .map(|o| o.source)
                .collect();
            scalars.dedup();
            if !fits || scalars.len() > limit {
                return false;
            }
            for id in [Mod::Src0Sel, Mod::Src1Sel] {
                if known(id) {
                    mods.set(id, WORD);
                }
            }
        }
        mods.set(Mod::DstSel, code);
        mods.set(Mod::DstUnused, 0);
        // Without a modifier it would be taken for the plain instruction.
        if mods == Mods::default() {
            return false;
        }
        self.become_maker(inst, inner, Form::Sdwa, mods);
        true
    }

    /// Whether a place of an instruction with SDWA takes an operand that is not in a vector register: on gfx9 and later.
    pub(super) fn sdwa_reads(
        &self,
        slot: &unwedge_isa::amdgcn::model::OperandSlot,
        operand: &Operand,
    ) -> bool {
        let scalar = operand.class.is_sgpr() && operand.as_temp().is_some();
        let inline =
            operand.as_const().is_some() && super::fits::literal(self.variants, slot, operand).is_none();
        slot.class == Class::SrcSdwa && (scalar || inline)
    }
}
