//! Integers: constants, bit-field extracts and inserts.

use super::combine::Combiner;
use crate::ir::{Inst, Op, Operand, OperandList, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Mods, Opcode};

/// The result of an operation of the vector ALU on two constants.
fn evaluate(opcode: Opcode, a: u32, b: u32) -> Option<u32> {
    use Opcode as O;
    Some(match opcode {
        O::v_and_b32 => a & b,
        O::v_or_b32 => a | b,
        O::v_xor_b32 => a ^ b,
        O::v_lshlrev_b32 => b << (a & 31),
        O::v_lshrrev_b32 => b >> (a & 31),
        O::v_ashrrev_i32 => ((b as i32) >> (a & 31)) as u32,
        O::v_add_u32 => a.wrapping_add(b),
        O::v_sub_u32 => a.wrapping_sub(b),
        _ => return None,
    })
}

/// The result of a scalar comparison of two constants.
fn scalar_compare(opcode: Opcode, a: Operand, b: Operand) -> Option<bool> {
    use Opcode as O;
    let (a, b) = (a.as_const()? as u32, b.as_const()? as u32);
    Some(match opcode {
        O::s_cmp_eq_u32 => a == b,
        O::s_cmp_lg_u32 => a != b,
        O::s_cmp_lt_u32 => a < b,
        O::s_cmp_ge_u32 => a >= b,
        O::s_cmp_lt_i32 => (a as i32) < b as i32,
        O::s_cmp_ge_i32 => a as i32 >= b as i32,
        _ => return None,
    })
}

/// The operand that is the result of an operation, if the other operand is this constant at this position.
fn is_neutral(opcode: Opcode, constant: u32, at: usize) -> bool {
    use Opcode as O;
    match opcode {
        O::v_or_b32 | O::v_xor_b32 | O::v_add_u32 => constant == 0,
        O::v_and_b32 => constant == u32::MAX,
        O::v_lshlrev_b32 | O::v_lshrrev_b32 | O::v_ashrrev_i32 => constant == 0 && at == 0,
        O::v_sub_u32 => constant == 0 && at == 1,
        _ => false,
    }
}

impl Combiner<'_> {
    /// A scalar pack reads the halves of its source registers in place.
    pub(super) fn pack(&mut self, inst: Inst) -> bool {
        use Opcode as O;
        const PACKS: [(Opcode, [u64; 2]); 4] = [
            (O::s_pack_ll_b32_b16, [0, 0]),
            (O::s_pack_lh_b32_b16, [0, 1]),
            (O::s_pack_hl_b32_b16, [1, 0]),
            (O::s_pack_hh_b32_b16, [1, 1]),
        ];
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let Some((_, halves)) = PACKS.iter().find(|(own, _)| *own == opcode) else { return false };
        let operands = self.program.operands(inst).to_vec();
        for at in (0..2).filter(|at| halves[*at] == 0) {
            let Some((word, half)) = self.half_of(operands[at]) else { continue };
            let (mut new, mut read) = (operands.clone(), *halves);
            (new[at], read[at]) = (word, half);
            let packed = PACKS.iter().find(|(own, halves)| *halves == read && self.variants.has(*own));
            if let Some((packed, _)) = packed {
                self.set_operands(inst, &new);
                self.program[inst].op = Op::Hw(*packed);
                return true;
            }
        }
        false
    }

    /// The scalar register of which the low bits of an operand are a half, and which half.
    fn half_of(&self, operand: Operand) -> Option<(Operand, u64)> {
        let temp = operand.as_temp()?;
        let inner = self.definition(temp)?;
        // Not what a shift leaves in `scc`.
        if self.program.definitions(inner).first()?.temp != Some(temp) {
            return None;
        }
        let (word, half) = match (self.program.op(inner), self.program.operands(inner)) {
            (Op::Pseudo(Pseudo::Extract), [word, number, bits, ..]) if bits.is_const(16) => {
                (*word, number.as_const()?)
            }
            (Op::Hw(Opcode::s_lshr_b32), [word, shift]) if shift.is_const(16) => (*word, 1),
            (Op::Hw(Opcode::s_and_b32), [word, mask]) if mask.is_const(0xffff) => (*word, 0),
            _ => return None,
        };
        (word.as_temp().is_some() && word.class == RegClass::S1).then_some((word, half))
    }

    /// The lane mask of which all bits of an operand are copies.
    fn spread_mask(&self, operand: Operand) -> Option<Operand> {
        let inner = self.source(operand)?;
        match (self.program.op(inner), self.program.operands(inner)) {
            (Op::Hw(Opcode::v_subbrev_co_u32), [a, b, mask]) => {
                (a.is_const(0) && b.is_const(0)).then_some(*mask)
            }
            (Op::Hw(Opcode::v_sub_u32), [zero, one]) if zero.is_const(0) => {
                let chosen = self.source(*one)?;
                match (self.program.op(chosen), self.program.operands(chosen)) {
                    (Op::Hw(Opcode::v_cndmask_b32), [no, yes, mask]) => {
                        (no.is_const(0) && yes.is_const(1)).then_some(*mask)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Bits that are kept where a lane mask is set.
    pub(super) fn choose_by_mask(&mut self, inst: Inst) -> bool {
        let data = &self.program[inst];
        // With SDWA a part of an operand is read, which need not have the bits of the whole.
        let whole = data.form == Form::Native && data.mods == Mods::default();
        if self.program.op(inst) != Op::Hw(Opcode::v_and_b32) || !whole {
            return false;
        }
        let operands = OperandList::from(self.program.operands(inst));
        for at in 0..2 {
            let Some(mask) = self.spread_mask(operands[at]) else { continue };
            let new = [Operand::c32(0), operands[1 - at], mask];
            if let Some(new) = self.legalized(Opcode::v_cndmask_b32, &new, true) {
                self.become_op(inst, Opcode::v_cndmask_b32, &new);
                return true;
            }
        }
        false
    }

    /// Operations on constants, and those that leave an operand as it is.
    pub(super) fn fold_constants(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        if self.fold_choice(inst, opcode) || self.zero_compare(inst, opcode) {
            return true;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        if self.program[inst].mods != Mods::default() || self.program.definitions(inst).len() != 1 {
            return false;
        }
        if let Some(holds) = scalar_compare(opcode, a, b) {
            self.become_copy(inst, Operand::c32(holds.into()));
            return true;
        }
        if let (Some(a), Some(b)) = (a.as_const(), b.as_const()) {
            let Some(value) = evaluate(opcode, a as u32, b as u32) else { return false };
            self.become_copy(inst, Operand::c32(value));
            return true;
        }
        for (at, operand, other) in [(0, a, b), (1, b, a)] {
            let Some(bits) = operand.as_const() else { continue };
            if is_neutral(opcode, bits as u32, at) && !other.is_undef() {
                self.become_copy(inst, other);
                return true;
            }
        }
        false
    }

    /// A scalar choice whose condition is known.
    fn fold_choice(&mut self, inst: Inst, opcode: Opcode) -> bool {
        if !matches!(opcode, Opcode::s_cselect_b32 | Opcode::s_cselect_b64) {
            return false;
        }
        let &[yes, no, condition] = self.program.operands(inst) else { return false };
        let chosen = match condition.as_const() {
            Some(0) => no,
            Some(_) => yes,
            None if yes.source == no.source => yes,
            // A boolean is 0 or 1.
            None if opcode == Opcode::s_cselect_b32 && yes.is_const(1) && no.is_const(0) => condition,
            None => return false,
        };
        if chosen.is_undef() {
            return false;
        }
        self.become_copy(inst, chosen);
        true
    }

    /// Whether a result is not zero, which the instruction that made it left in `scc`.
    fn zero_compare(&mut self, inst: Inst, opcode: Opcode) -> bool {
        if opcode != Opcode::s_cmp_lg_u32 {
            return false;
        }
        let &[a, b] = self.program.operands(inst) else { return false };
        let value = match (a.is_const(0), b.is_const(0)) {
            (true, false) => b,
            (false, true) => a,
            _ => return false,
        };
        let Some(inner) = self.source(value) else { return false };
        use Opcode as O;
        let leaves = matches!(
            self.program.op(inner),
            Op::Hw(
                O::s_and_b32
                    | O::s_or_b32
                    | O::s_xor_b32
                    | O::s_andn2_b32
                    | O::s_orn2_b32
                    | O::s_lshl_b32
                    | O::s_lshr_b32
                    | O::s_ashr_i32
                    | O::s_bfe_u32
                    | O::s_bcnt1_i32_b32
            )
        );
        if !leaves {
            return false;
        }
        let Some(bit) = self.scc_since(inner) else { return false };
        self.become_copy(inst, bit);
        true
    }

    /// Bits that are extracted from a word, or inserted into one.
    pub(super) fn fields(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        if self.program[inst].mods != Mods::default() {
            return false;
        }
        match opcode {
            Opcode::v_and_b32 => self.extract(inst) || self.and_complement(inst),
            Opcode::v_or_b32 => self.insert(inst) || self.align(inst),
            Opcode::v_lshlrev_b32 => self.shift_out(inst),
            Opcode::v_lshrrev_b32 => self.shift_back(inst, Opcode::v_bfe_u32),
            Opcode::v_ashrrev_i32 => self.shift_back(inst, Opcode::v_bfe_i32),
            _ => false,
        }
    }

    /// The lower bits of one word above the upper ones of another, by shifts.
    fn align(&mut self, inst: Inst) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        let shifted = |operand: Operand, vector: Opcode, scalar: Opcode| {
            let inner = self.only_source(operand)?;
            let (count, word) = match (self.program.op(inner), self.program.operands(inner)) {
                (Op::Hw(opcode), [count, word]) if opcode == vector => (count, word),
                (Op::Hw(opcode), [word, count]) if opcode == scalar => (count, word),
                _ => return None,
            };
            Some((count.as_const()? as u32 & 31, *word))
        };
        for (high, low) in [(a, b), (b, a)] {
            let high = shifted(high, Opcode::v_lshlrev_b32, Opcode::s_lshl_b32);
            let low = shifted(low, Opcode::v_lshrrev_b32, Opcode::s_lshr_b32);
            let (Some((left, high)), Some((right, low))) = (high, low) else { continue };
            let new = [high, low, Operand::c32(right)];
            if left + right == 32 && self.fits(Opcode::v_alignbit_b32, &new, true) {
                self.become_op(inst, Opcode::v_alignbit_b32, &new);
                return true;
            }
        }
        false
    }

    /// The low bits of a word that is shifted right.
    fn extract(&mut self, inst: Inst) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        for (mask, word) in [(a, b), (b, a)] {
            let Some(bits) = mask.as_const().map(|bits| bits as u32) else { continue };
            let count = bits.trailing_ones();
            let Some(inner) = self.source(word) else { continue };
            if count == 0
                || bits.leading_zeros() + count != 32
                || self.program.op(inner) != Op::Hw(Opcode::v_lshrrev_b32)
            {
                continue;
            }
            let &[shift, from] = self.program.operands(inner) else { continue };
            let Some(shift) = shift.as_const().map(|shift| shift as u32 & 31) else { continue };
            if shift + count >= 32 {
                self.become_copy(inst, word);
                return true;
            }
            let new = [from, Operand::c32(shift), Operand::c32(count)];
            if self.fits(Opcode::v_bfe_u32, &new, true) {
                self.become_op(inst, Opcode::v_bfe_u32, &new);
                return true;
            }
        }
        false
    }

    /// The low bits of a word, which are the only ones that a shift to the left keeps.
    fn shift_out(&mut self, inst: Inst) -> bool {
        let &[shift, word] = self.program.operands(inst) else { return false };
        let Some(left) = shift.as_const().map(|shift| 32 - (shift & 31)) else { return false };
        let Some(inner) = self.source(word) else { return false };
        let (value, bits) = match (self.program.op(inner), self.program.operands(inner)) {
            (Op::Hw(Opcode::v_bfe_u32 | Opcode::v_bfe_i32), [value, first, bits]) if first.is_const(0) => {
                (*value, bits.as_const())
            }
            (Op::Hw(Opcode::v_and_b32), [a, b]) => {
                let (mask, value) = if a.as_const().is_some() { (a, b) } else { (b, a) };
                (*value, mask.as_const().map(|mask| u64::from((mask as u32).trailing_ones())))
            }
            _ => return false,
        };
        let new = [shift, value];
        let kept = bits.is_some_and(|bits| bits >= left) && value.as_temp().is_some();
        if !kept || !self.fits(Opcode::v_lshlrev_b32, &new, false) {
            return false;
        }
        self.set_operands(inst, &new);
        true
    }

    /// A word that is shifted left, then at least as far right.
    fn shift_back(&mut self, inst: Inst, field: Opcode) -> bool {
        let &[right, word] = self.program.operands(inst) else { return false };
        let Some(inner) = self.source(word) else { return false };
        if self.program.op(inner) != Op::Hw(Opcode::v_lshlrev_b32) {
            return false;
        }
        let &[left, from] = self.program.operands(inner) else { return false };
        let (Some(right), Some(left)) = (right.as_const(), left.as_const()) else { return false };
        let (right, left) = (right as u32 & 31, left as u32 & 31);
        if right < left || right == 0 {
            return false;
        }
        let new = [from, Operand::c32(right - left), Operand::c32(32 - right)];
        let fits = self.fits(field, &new, true);
        if fits {
            self.become_op(inst, field, &new);
        }
        fits
    }

    /// The bits of a word that are clear in another one.
    fn and_complement(&mut self, inst: Inst) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        for (complement, word) in [(a, b), (b, a)] {
            let Some(inner) = self.only_source(complement) else { continue };
            if !matches!(self.program.op(inner), Op::Hw(Opcode::v_not_b32 | Opcode::s_not_b32)) {
                continue;
            }
            let new = [self.program.operands(inner)[0], Operand::c32(0), word];
            if let Some(new) = self.legalized(Opcode::v_bfi_b32, &new, true) {
                self.become_op(inst, Opcode::v_bfi_b32, &new);
                return true;
            }
        }
        false
    }

    /// Bits of one word by a mask, and of another by its complement.
    fn insert(&mut self, inst: Inst) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        let (Some(first), Some(second)) = (self.only_source(a), self.only_source(b)) else { return false };
        let and = |inst| matches!(self.program.op(inst), Op::Hw(Opcode::v_and_b32 | Opcode::s_and_b32));
        // The bits of a word without those of a mask.
        let without = |inst| self.program.op(inst) == Op::Hw(Opcode::v_bfi_b32);
        let pairs = |inst: Inst| -> [[Operand; 2]; 2] {
            let operands = self.program.operands(inst);
            [[operands[0], operands[1]], [operands[1], operands[0]]]
        };
        let mut found = None;
        if and(first) && and(second) {
            for [mask, own] in pairs(first) {
                for [other_mask, other] in pairs(second) {
                    let complements = matches!((mask.as_const(), other_mask.as_const()),
                        (Some(a), Some(b)) if a as u32 == !(b as u32));
                    if complements {
                        found = found.or(Some([mask, own, other]));
                    }
                }
            }
        }
        for (chosen, rest) in [(first, second), (second, first)] {
            if and(chosen) && without(rest) && self.program.operands(rest)[1].is_const(0) {
                let of = self.program.operands(rest);
                for [mask, own] in pairs(chosen) {
                    if mask.source == of[0].source {
                        found = found.or(Some([mask, own, of[2]]));
                    }
                }
            }
        }
        let Some(new) = found else { return false };
        let Some(new) = self.legalized(Opcode::v_bfi_b32, &new, true) else { return false };
        self.become_op(inst, Opcode::v_bfi_b32, &new);
        true
    }
}
