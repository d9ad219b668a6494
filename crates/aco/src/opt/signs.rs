//! Signs of floats: instructions of floating point negate what they read, or take its absolute value, by modifiers.

use super::combine::Combiner;
use super::makers::MakerKind;
use crate::ir::shape;
use crate::ir::{Inst, Op, Operand, OperandList};
use unwedge_isa::amdgcn::model::{Form, Format, Gfx, Mod, OperandSlot, Role, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// A value whose sign is changed: `-|value|` where both are set.
#[derive(Debug, Clone, Copy)]
pub(super) struct SignedValue {
    pub value: Operand,
    pub negated: bool,
    pub absolute: bool,
}

/// The bits of 1.0 and of the sign.
fn one_and_sign(ty: Type) -> Option<(u64, u64)> {
    match ty {
        Type::F32 => Some((0x3f80_0000, 1 << 31)),
        Type::F16 => Some((0x3c00, 1 << 15)),
        _ => None,
    }
}

/// Modifiers that only change signs of operands.
pub(crate) fn only_signs(mods: &Mods) -> bool {
    let mut rest = *mods;
    rest.set(Mod::Neg, 0);
    rest.set(Mod::Abs, 0);
    rest == Mods::default()
}

/// Swaps the sign and half modifiers of the first two operands.
pub(crate) fn swap_signs(mods: &mut Mods) {
    for id in [Mod::Neg, Mod::Abs, Mod::OpSel] {
        let bits = mods.get(id);
        mods.set(id, bits & !3 | (bits & 1) << 1 | bits >> 1 & 1);
    }
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
        let moves = self.program[inst].form == Form::Dpp;
        let long_form = matches!(self.program[inst].form, Form::Native | Form::E64);
        if !(floats || chooses) || !vector || !(moves || long_form) {
            return false;
        }
        let long = if moves {
            self.variants.variant(opcode, Form::Dpp)
        } else {
            self.variants.variant(opcode, Form::E64).or(self.variants.variant(opcode, Form::Native))
        };
        let Some(variant) = long else { return false };
        if !variant.has_mod(Mod::Neg) || !variant.has_mod(Mod::Abs) {
            return false;
        }
        let slots: Vec<&OperandSlot> = shape::operands(variant).collect();
        for (at, slot) in slots.into_iter().enumerate() {
            let Some(&operand) = self.program.operands(inst).get(at) else { break };
            let chosen = chooses && slot.ty == Type::B32 && self.only_source(operand).is_some();
            let ty = if chosen { Type::F32 } else { slot.ty };
            if slot.source == OperandSlot::NO_SOURCE || !matches!(ty, Type::F32 | Type::F16) {
                continue;
            }
            // Bit 31 is not the sign of the half that `op_sel` chooses.
            if self.program[inst].mods.get(Mod::OpSel) >> slot.source & 1 != 0 {
                continue;
            }
            let Some(signed) = self.signed(operand, ty, inst) else { continue };
            // A lane out of bounds reads zero, whose sign the modifier changes.
            if moves && at == 0 && signed.negated && !self.program[inst].freedom.zeros {
                continue;
            }
            let mut operands = OperandList::from(self.program.operands(inst));
            operands[at] = signed.value;
            let fits = if moves { signed.value.class.is_vgpr() } else { self.fits(opcode, &operands, true) };
            if !fits {
                continue;
            }
            let mut mods = self.program[inst].mods;
            apply(&mut mods, 1 << slot.source, signed);
            self.set_operands(inst, &operands);
            self.program[inst].mods = mods;
            if !moves && self.variants.variant(opcode, Form::E64).is_some() {
                self.program[inst].form = Form::E64;
            }
            return true;
        }
        false
    }

    /// The operand before its sign changes, for an instruction that reads it.
    pub(super) fn signed(&self, operand: Operand, ty: Type, reader: Inst) -> Option<SignedValue> {
        let inner = self.definition(operand.as_temp()?)?;
        let first = self.program.definitions(inner).first()?.temp == operand.as_temp();
        let flushed = !self.flushes_type(ty) || self.flushes_sources(reader);
        let free = self.program[reader].freedom.nans;
        self.sign_change(inner, ty, flushed && free).filter(|_| first)
    }

    /// The change of sign that an instruction makes. A product with 1.0 or -1.0 also makes NaNs quiet, and denormals zero where the float mode says so;
    /// it counts if that does not matter.
    fn sign_change(&self, inst: Inst, ty: Type, products: bool) -> Option<SignedValue> {
        let (one, sign) = one_and_sign(ty)?;
        let data = &self.program[inst];
        let [a, b] = *self.program.operands(inst) else { return None };
        let beside = |bits: u64| match (a.is_const(bits), b.is_const(bits)) {
            (true, _) => Some((b, 1)),
            (_, true) => Some((a, 0)),
            _ => None,
        };
        let Op::Hw(opcode) = data.op else { return None };
        let long = matches!(data.form, Form::Native | Form::E64);
        let plain = long && data.mods == Mods::default();
        let (value, negated, absolute) = match opcode {
            Opcode::v_xor_b32 | Opcode::s_xor_b32 if plain => (beside(sign)?.0, true, false),
            Opcode::v_and_b32 | Opcode::s_and_b32 if plain => (beside(sign - 1)?.0, false, true),
            Opcode::v_mul_f32 | Opcode::v_mul_f16 => {
                let own = if opcode == Opcode::v_mul_f32 { Type::F32 } else { Type::F16 };
                if own != ty || !long || !only_signs(&data.mods) || !data.freedom.nans || !products {
                    return None;
                }
                let (value, at) = beside(one).or(beside(one | sign))?;
                let bit = |id: Mod, at: usize| data.mods.get(id) >> at & 1 != 0;
                let minus = beside(one).is_none() && !bit(Mod::Abs, 1 - at);
                (value, minus ^ bit(Mod::Neg, 0) ^ bit(Mod::Neg, 1), bit(Mod::Abs, at))
            }
            _ => return None,
        };
        value.as_temp().map(|_| SignedValue { value, negated, absolute })
    }

    /// Whether denormals of a width are zeros.
    pub(super) fn flushes_type(&self, ty: Type) -> bool {
        if ty == Type::F32 { self.flushes } else { self.flushes_halves }
    }

    /// Whether an instruction treats denormals as the float mode says: minima and maxima do so from gfx9 on.
    fn flushes_sources(&self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        match opcode.row().role {
            Role::Minmax => self.variants.gpu().generation() >= Gfx::Gfx9,
            Role::Float | Role::Transcendental | Role::Compare => true,
            Role::Convert => matches!(opcode, Opcode::v_cvt_f16_f32 | Opcode::v_cvt_f32_f16),
            _ => false,
        }
    }

    /// Whether an instruction is a product that only changes a sign, which its readers can do instead.
    pub(super) fn is_sign_change(&self, inst: Inst) -> bool {
        [Type::F32, Type::F16].iter().any(|ty| self.sign_change(inst, *ty, true).is_some())
    }

    /// A change of the sign of a product that nothing else reads: the factors have it instead.
    pub(super) fn sign_of_product(&mut self, inst: Inst) -> bool {
        let may_change = MakerKind::of(self.program.op(inst)) & MakerKind::SIGN != 0;
        if !may_change {
            return false;
        }
        for (ty, product) in [(Type::F32, Opcode::v_mul_f32), (Type::F16, Opcode::v_mul_f16)] {
            // Denormals of a product are zeros before its sign changes.
            let Some(signed) = self.sign_change(inst, ty, true) else { continue };
            let Some(inner) = self.only_maker(signed.value) else { continue };
            let data = &self.program[inner];
            // The product is in a lower half.
            let low = only_halves_and_signs(&data.mods) && data.mods.get(Mod::OpSel) < 4;
            let long = matches!(data.form, Form::Native | Form::E64) && low;
            if data.op != Op::Hw(product) || !long || !data.freedom.nans {
                continue;
            }
            let (mut mods, freedom, exact) = (data.mods, data.freedom, data.exact);
            let operands = self.program.operands(inner).to_vec();
            if !self.fits(product, &operands, true) || self.sign_change(inner, ty, true).is_some() {
                continue;
            }
            if signed.absolute {
                mods.set(Mod::Neg, 0);
                mods.set(Mod::Abs, 3);
            }
            if signed.negated {
                mods.set(Mod::Neg, mods.get(Mod::Neg) ^ 2);
            }
            self.become_op(inst, product, &operands);
            let data = &mut self.program[inst];
            (data.mods, data.form, data.freedom, data.exact) = (mods, Form::E64, freedom, exact);
            return true;
        }
        false
    }

    /// A minimum or maximum of another one, whose sign may change in between, becomes an instruction of three operands.
    pub(super) fn extreme_of_three(&mut self, inst: Inst) -> bool {
        let Op::Hw(outer) = self.program.op(inst) else { return false };
        let data = &self.program[inst];
        if self.program.operands(inst).len() != 2
            || !matches!(outer, Opcode::v_min_f32 | Opcode::v_max_f32 | Opcode::v_min_f16 | Opcode::v_max_f16)
            || !matches!(data.form, Form::Native | Form::E64)
            || !only_halves_and_signs(&data.mods)
        {
            return false;
        }
        let (mods, freedom, exact) = (data.mods, data.freedom, data.exact);
        let operands = OperandList::from(self.program.operands(inst));
        for at in 0..2 {
            let bit = |mods: &Mods, id: Mod, at: usize| mods.get(id) >> at & 1;
            if bit(&mods, Mod::Abs, at) != 0 || bit(&mods, Mod::OpSel, at) != 0 {
                continue;
            }
            let Some(inner) = self.only_maker(operands[at]) else { continue };
            let data = &self.program[inner];
            let Op::Hw(opcode) = data.op else { continue };
            let long = matches!(data.form, Form::Native | Form::E64) && only_halves_and_signs(&data.mods);
            let negated = bit(&mods, Mod::Neg, at) != 0;
            let free = freedom.nans && data.freedom.nans;
            if !long || negated && !free {
                continue;
            }
            let Some(both) = three_of(outer, opcode, negated).filter(|both| self.variants.has(*both)) else {
                continue;
            };
            let (inner_mods, freedom, exact) = (data.mods, freedom.and(data.freedom), exact || data.exact);
            let parts = self.program.operands(inner).to_vec();
            let &[a, b] = &parts[..] else { continue };
            let new = [a, b, operands[1 - at]];
            let mut made = Mods::default();
            for id in [Mod::Neg, Mod::Abs, Mod::OpSel] {
                let flip = if negated && id == Mod::Neg { 3 } else { 0 };
                made.set(id, (inner_mods.get(id) ^ flip) & 3 | bit(&mods, id, 1 - at) << 2);
            }
            let variant = self.variants.widest(both);
            let selects = variant.is_some_and(|variant| variant.has_mod(Mod::OpSel));
            if made.has(Mod::OpSel) && !selects {
                continue;
            }
            let Some(new) = self.legalized(both, &new, true) else { continue };
            self.become_op(inst, both, &new);
            let data = &mut self.program[inst];
            (data.mods, data.freedom, data.exact) = (made, freedom, exact);
            return true;
        }
        false
    }
}

/// The instruction of three operands for a minimum or maximum of another one, which is `negated` or not: the least of negated values is the negated
/// greatest value.
fn three_of(outer: Opcode, inner: Opcode, negated: bool) -> Option<Opcode> {
    use Opcode as O;
    let greatest = |opcode| matches!(opcode, O::v_max_f32 | O::v_max_f16);
    let half = |opcode| matches!(opcode, O::v_min_f16 | O::v_max_f16);
    let float = |opcode| matches!(opcode, O::v_min_f32 | O::v_max_f32) || half(opcode);
    if !float(inner) || half(outer) != half(inner) {
        return None;
    }
    Some(match (greatest(outer), greatest(inner) != negated, half(outer)) {
        (false, false, false) => O::v_min3_f32,
        (true, true, false) => O::v_max3_f32,
        (false, true, false) => O::v_maxmin_f32,
        (true, false, false) => O::v_minmax_f32,
        (false, false, true) => O::v_min3_f16,
        (true, true, true) => O::v_max3_f16,
        (false, true, true) => O::v_maxmin_f16,
        (true, false, true) => O::v_minmax_f16,
    })
}

/// Modifiers that change signs of operands or choose halves of them.
pub(super) fn only_halves_and_signs(mods: &Mods) -> bool {
    let mut rest = *mods;
    rest.set(Mod::OpSel, 0);
    only_signs(&rest) && mods.get(Mod::OpSel) < 4
}

/// Puts a change of sign below those that modifiers make.
pub(super) fn apply(mods: &mut Mods, bit: i32, signed: SignedValue) {
    if mods.get(Mod::Abs) & bit != 0 {
        return;
    }
    if signed.negated {
        mods.set(Mod::Neg, mods.get(Mod::Neg) ^ bit);
    }
    if signed.absolute {
        mods.set(Mod::Abs, mods.get(Mod::Abs) | bit);
    }
}
