//! Lane masks: comparisons of values that a mask selected, and complements.

use super::combine::Combiner;
use crate::compares;
use crate::ir::{Inst, Op, Operand, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::{Format, Relation, Type};
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The relation with its sides exchanged.
fn mirrored(relation: Relation) -> Option<Relation> {
    use Relation as R;
    Some(match relation {
        R::Lt => R::Gt,
        R::Gt => R::Lt,
        R::Le => R::Ge,
        R::Ge => R::Le,
        R::Nge => R::Nle,
        R::Nle => R::Nge,
        R::Ngt => R::Nlt,
        R::Nlt => R::Ngt,
        R::Eq | R::Ne | R::Lg | R::O | R::U | R::Nlg | R::Neq => relation,
        R::F | R::Tru | R::Class => return None,
    })
}

/// The relation that holds where one does not.
fn opposite(relation: Relation, ty: Type) -> Option<Relation> {
    use Relation as R;
    Some(match (relation, ty.is_float()) {
        (R::Lt, false) => R::Ge,
        (R::Ge, false) => R::Lt,
        (R::Le, false) => R::Gt,
        (R::Gt, false) => R::Le,
        (R::Eq, false) => R::Lg,
        (R::Lg | R::Ne, false) => R::Eq,
        (R::Lt, true) => R::Nlt,
        (R::Nlt, true) => R::Lt,
        (R::Le, true) => R::Nle,
        (R::Nle, true) => R::Le,
        (R::Gt, true) => R::Ngt,
        (R::Ngt, true) => R::Gt,
        (R::Ge, true) => R::Nge,
        (R::Nge, true) => R::Ge,
        (R::Eq, true) => R::Neq,
        (R::Neq, true) => R::Eq,
        (R::Lg, true) => R::Nlg,
        (R::Nlg, true) => R::Lg,
        (R::O, true) => R::U,
        (R::U, true) => R::O,
        _ => return None,
    })
}

/// The operation whose result is the complement of that of another one.
fn complement_of_both(opcode: Opcode) -> Option<Opcode> {
    use Opcode as O;
    Some(match opcode {
        O::s_and_b32 => O::s_nand_b32,
        O::s_and_b64 => O::s_nand_b64,
        O::s_or_b32 => O::s_nor_b32,
        O::s_or_b64 => O::s_nor_b64,
        O::s_xor_b32 => O::s_xnor_b32,
        O::s_xor_b64 => O::s_xnor_b64,
        _ => return None,
    })
}

/// Whether a relation holds between integers of 32 bits.
fn holds(relation: Relation, ty: Type, a: u32, b: u32) -> Option<bool> {
    let order = match ty {
        Type::I32 => (a as i32).cmp(&(b as i32)),
        Type::U32 => a.cmp(&b),
        _ => return None,
    };
    Some(match relation {
        Relation::Eq => order.is_eq(),
        Relation::Lg | Relation::Ne => order.is_ne(),
        Relation::Lt => order.is_lt(),
        Relation::Le => order.is_le(),
        Relation::Gt => order.is_gt(),
        Relation::Ge => order.is_ge(),
        _ => return None,
    })
}

impl Combiner<'_> {
    fn compare_opcode(&self, relation: Relation, ty: Type) -> Option<Opcode> {
        compares::opcode(relation, ty).filter(|opcode| self.variants.has(*opcode))
    }

    /// The comparison with its operands exchanged.
    pub(super) fn swapped_compare(&self, opcode: Opcode) -> Option<Opcode> {
        if opcode.row().format != Format::Vopc {
            return None;
        }
        let (relation, ty) = compares::relation(opcode)?;
        self.compare_opcode(mirrored(relation)?, ty)
    }

    /// Folds operations on masks.
    pub(super) fn fold_masks(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        use Opcode as O;
        match opcode {
            O::s_not_b32 | O::s_not_b64 => self.complement(inst),
            O::v_cndmask_b32 => self.choose_otherwise(inst),
            O::s_and_b32 => self.and_not(inst, O::s_not_b32, O::s_andn2_b32),
            O::s_and_b64 => self.and_not(inst, O::s_not_b64, O::s_andn2_b64),
            O::s_or_b32 => self.and_not(inst, O::s_not_b32, O::s_orn2_b32),
            O::s_or_b64 => self.and_not(inst, O::s_not_b64, O::s_orn2_b64),
            O::s_add_u32 => self.count_both(inst),
            _ if opcode.row().format == Format::Vopc => {
                self.compare_chosen(inst, opcode) || self.compare_bit(inst, opcode)
            }
            _ => false,
        }
    }

    /// The complement of a comparison, which is a lane mask.
    fn complement(&mut self, inst: Inst) -> bool {
        let operand = self.program.operands(inst)[0];
        let Some(temp) =
            operand.as_temp().filter(|temp| self.uses.count(*temp) == 1 && !self.more_is_read(inst))
        else {
            return false;
        };
        let Some(inner) = self.definition(temp) else { return false };
        let Op::Hw(compare) = self.program.op(inner) else { return false };
        if let Some(both) = complement_of_both(compare) {
            let operands = self.program.operands(inner).to_vec();
            if self.only_source(operand) != Some(inner) || !self.fits(both, &operands, false) {
                return false;
            }
            self.become_op(inst, both, &operands);
            return true;
        }
        if compare.row().format != Format::Vopc {
            return false;
        }
        let new = compares::relation(compare)
            .and_then(|(relation, ty)| self.compare_opcode(opposite(relation, ty)?, ty));
        let Some(new) = new else { return false };
        let (mods, form) = (self.program[inner].mods, self.program[inner].form);
        let operands = self.program.operands(inner).to_vec();
        self.become_op(inst, new, &operands);
        (self.program[inst].mods, self.program[inst].form) = (mods, form);
        true
    }

    /// The bits of both words of a mask are counted together.
    fn count_both(&mut self, inst: Inst) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        let counted = |operand: Operand| {
            let count = self.only_source(operand)?;
            let counts = self.program.op(count) == Op::Hw(Opcode::s_bcnt1_i32_b32);
            self.program.operands(count).first()?.as_temp().filter(|_| counts)
        };
        let (Some(a), Some(b)) = (counted(a), counted(b)) else { return false };
        let Some(split) = self.definition(a).filter(|split| self.program.op(*split).is(Pseudo::SplitVector))
        else {
            return false;
        };
        let parts: Vec<_> = self.program.definitions(split).iter().map(|part| part.temp).collect();
        let vector = self.program.operands(split)[0];
        let both = parts == [Some(a), Some(b)] || parts == [Some(b), Some(a)];
        if !both || self.more_is_read(inst) || vector.class != RegClass::S2 || vector.as_temp().is_none() {
            return false;
        }
        self.become_op(inst, Opcode::s_bcnt1_i32_b64, &[vector]);
        true
    }

    /// A select by a complement.
    fn choose_otherwise(&mut self, inst: Inst) -> bool {
        if self.program[inst].mods != Mods::default() {
            return false;
        }
        let &[no, yes, mask] = self.program.operands(inst) else { return false };
        let Some(inner) = self.source(mask) else { return false };
        if !matches!(self.program.op(inner), Op::Hw(Opcode::s_not_b32 | Opcode::s_not_b64)) {
            return false;
        }
        let new = [yes, no, self.program.operands(inner)[0]];
        if new[2].as_temp().is_none() || !self.fits(Opcode::v_cndmask_b32, &new, false) {
            return false;
        }
        self.set_operands(inst, &new);
        true
    }

    /// The second operand is a complement.
    fn and_not(&mut self, inst: Inst, not: Opcode, both: Opcode) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        for (operand, other) in [(b, a), (a, b)] {
            let Some(inner) = self.only_source(operand) else { continue };
            if self.program.op(inner) != Op::Hw(not) {
                continue;
            }
            let new = [other, self.program.operands(inner)[0]];
            if self.fits(both, &new, false) {
                self.set_operands(inst, &new);
                self.program[inst].op = Op::Hw(both);
                return true;
            }
        }
        false
    }

    /// A comparison of one of two constants, which a mask selected, with a constant.
    fn compare_chosen(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let Some((relation, ty)) = compares::relation(opcode) else { return false };
        if self.program[inst].mods != Mods::default() {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        let (chosen, constant, reversed) = match (a.as_const(), b.as_const()) {
            (Some(bits), None) => (b, bits as u32, true),
            (None, Some(bits)) => (a, bits as u32, false),
            _ => return false,
        };
        let Some(inner) = self.source(chosen) else { return false };
        if self.program.op(inner) != Op::Hw(Opcode::v_cndmask_b32) {
            return false;
        }
        let &[no, yes, mask] = self.program.operands(inner) else { return false };
        let judge = |value: Operand| {
            let value = value.as_const()? as u32;
            let (a, b) = if reversed { (constant, value) } else { (value, constant) };
            holds(relation, ty, a, b)
        };
        let class = self.program.lane_mask();
        match (judge(no), judge(yes)) {
            (Some(false), Some(true)) => self.become_copy(inst, mask),
            (Some(true), Some(false)) => {
                let opcode = if class.bytes() == 8 { Opcode::s_not_b64 } else { Opcode::s_not_b32 };
                self.become_op(inst, opcode, &[mask]);
            }
            _ => return false,
        }
        true
    }

    /// Tests a bit: the sign by a comparison with zero, and some of the lowest ones as the class of a number that is in this class.
    fn compare_bit(&mut self, inst: Inst, opcode: Opcode) -> bool {
        use Relation as R;
        let Some((relation, Type::I32 | Type::U32)) = compares::relation(opcode) else { return false };
        let (R::Eq | R::Lg | R::Ne, true) = (relation, self.program[inst].mods == Mods::default()) else {
            return false;
        };
        let &[a, b] = self.program.operands(inst) else { return false };
        let (masked, constant) = match (self.constant_of(a), self.constant_of(b)) {
            (Some(bits), None) => (b, bits as u32),
            (None, Some(bits)) => (a, bits as u32),
            _ => return false,
        };
        let Some(inner) = self.only_source(masked) else { return false };
        let (Op::Hw(Opcode::v_and_b32), &[a, b]) = (self.program.op(inner), self.program.operands(inner))
        else {
            return false;
        };
        let (bit, value) = match (self.constant_of(a), self.constant_of(b)) {
            (Some(bits), None) => (bits as u32, b),
            (None, Some(bits)) => (bits as u32, a),
            _ => return false,
        };
        if !bit.is_power_of_two() || constant != 0 && constant != bit {
            return false;
        }
        let set = (relation == R::Eq) == (constant == bit);
        let new = match (bit.trailing_zeros(), set) {
            (31, true) => Some((Opcode::v_cmp_gt_i32, 0)),
            (31, false) => Some((Opcode::v_cmp_le_i32, 0)),
            (bit, _) => number_of_class(bit).map(|number| (Opcode::v_cmp_class_f32, number)),
        };
        let Some((opcode, number)) = new else { return false };
        let operands = [Operand::c32(number), value];
        if !self.fits(opcode, &operands, false) {
            return false;
        }
        if set || opcode != Opcode::v_cmp_class_f32 {
            self.become_op(inst, opcode, &operands);
            return true;
        }
        // Most readers of a mask can read its complement instead.
        let class = self.program.lane_mask();
        let mask = self.before(inst, opcode, class, &operands);
        let not = if class.bytes() == 8 { Opcode::s_not_b64 } else { Opcode::s_not_b32 };
        self.become_op(inst, not, &[mask]);
        true
    }
}

/// A float of the class that has a bit in the mask of `v_cmp_class_f32`. Those of denormals are left out, because they might be flushed.
fn number_of_class(bit: u32) -> Option<u32> {
    Some(match bit {
        // A signalling NaN.
        0 => 0x7f80_0001,
        // A quiet NaN, which is an inline constant.
        1 => u32::MAX,
        2 => f32::NEG_INFINITY.to_bits(),
        3 => (-1f32).to_bits(),
        5 => (-0f32).to_bits(),
        6 => 0,
        8 => 1f32.to_bits(),
        9 => f32::INFINITY.to_bits(),
        _ => return None,
    })
}
