//! Carries: a carry or another lane mask that is added to a sum, or a borrow that is subtracted, becomes the third operand of one instruction.

use super::combine::Combiner;
use crate::ir::shape::Variants;
use crate::ir::{Definition, Inst, Op, Operand, PhysReg, Program, RegClass};
use unwedge_isa::amdgcn::model::Form;
use unwedge_isa::amdgcn::{Mods, Opcode};

/// Sums and differences with a carry or borrow beside the result, and those without.
const CARRIES: [(Opcode, Opcode); 3] = [
    (Opcode::v_add_co_u32, Opcode::v_add_u32),
    (Opcode::v_sub_co_u32, Opcode::v_sub_u32),
    (Opcode::v_subrev_co_u32, Opcode::v_subrev_u32),
];

/// The instruction with the same result and without a carry, which older GPUs do not have.
pub(super) fn without_carry(opcode: Opcode) -> Option<Opcode> {
    Some(CARRIES.iter().find(|(carries, _)| *carries == opcode)?.1)
}

/// Whether an instruction may leave out its carry, or only not read it.
pub(super) fn is_sum(opcode: Opcode) -> bool {
    matches!(opcode, Opcode::s_add_u32 | Opcode::s_sub_u32) || without_carry(opcode).is_some()
}

/// Replaces an instruction whose carry nothing reads, if the GPU has one without.
pub(super) fn drop_carry(program: &mut Program, variants: &Variants, inst: Inst) {
    if let Op::Hw(opcode) = program.op(inst)
        && let Some(plain) = without_carry(opcode).filter(|plain| variants.has(*plain))
    {
        let result = program.definitions(inst)[0];
        program[inst].op = Op::Hw(plain);
        program.set_definitions(inst, &[result]);
    }
}

/// A sum or difference in vector registers: what is added or what is subtracted from, and the other operand.
fn sum(opcode: Opcode, operands: &[Operand]) -> Option<(bool, [Operand; 2])> {
    use Opcode as O;
    let &[a, b] = operands else { return None };
    Some(match opcode {
        O::v_add_u32 | O::v_add_co_u32 => (true, [a, b]),
        O::v_sub_u32 | O::v_sub_co_u32 => (false, [a, b]),
        O::v_subrev_u32 | O::v_subrev_co_u32 => (false, [b, a]),
        _ => return None,
    })
}

impl Combiner<'_> {
    /// Folds a carry or borrow into the sum or difference that reads it.
    pub(super) fn carry_in(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        // Other forms read parts or other lanes of operands.
        let data = &self.program[inst];
        if !matches!(data.form, Form::Native | Form::E64) || data.mods != Mods::default() {
            return false;
        }
        match opcode {
            Opcode::s_add_u32 | Opcode::s_sub_u32 => self.scalar_carry_in(inst, opcode),
            Opcode::v_addc_co_u32 | Opcode::v_subbrev_co_u32 => self.sum_with_carry(inst, opcode),
            _ => self.mask_in_sum(inst, opcode),
        }
    }

    /// Whether something reads a result of an instruction after the first one: a carry, or `scc`.
    pub(super) fn more_is_read(&self, inst: Inst) -> bool {
        let mut carries = self.program.definitions(inst).iter().skip(1).filter_map(|carry| carry.temp);
        carries.any(|carry| self.uses.count(carry) > 0)
    }

    /// The lane mask of an operand that is 1 where the mask is set, and 0 elsewhere.
    fn mask_as_number(&self, operand: Operand) -> Option<Operand> {
        let inner = self.only_source(operand)?;
        match (self.program.op(inner), self.program.operands(inner)) {
            (Op::Hw(Opcode::v_cndmask_b32), [no, yes, mask]) => {
                (no.is_const(0) && yes.is_const(1) && mask.as_temp().is_some()).then_some(*mask)
            }
            _ => None,
        }
    }

    /// A number of 0 or 1 that is added or subtracted.
    fn mask_in_sum(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let Some((adds, [a, b])) = sum(opcode, self.program.operands(inst)) else { return false };
        let pairs = [(a, b), (b, a)];
        for (other, number) in pairs.into_iter().take(if adds { 2 } else { 1 }) {
            // The short encoding reads a vector register last.
            let vector = other.class == RegClass::V1 && other.as_temp().is_some();
            let Some(mask) = self.mask_as_number(number).filter(|_| vector) else { continue };
            let both = if adds { Opcode::v_addc_co_u32 } else { Opcode::v_subbrev_co_u32 };
            return self.become_carry_in(inst, both, &[Operand::c32(0), other, mask]);
        }
        false
    }

    /// A sum or difference of which only a carry or borrow has been added or subtracted yet.
    fn sum_with_carry(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let &[zero, value, mask] = self.program.operands(inst) else { return false };
        if !zero.is_const(0) || self.more_is_read(inst) {
            return false;
        }
        let Some(inner) = self.only_source(value) else { return false };
        let Op::Hw(inner_opcode) = self.program.op(inner) else { return false };
        let Some((adds, [a, b])) = sum(inner_opcode, self.program.operands(inner)) else { return false };
        let vector = |operand: Operand| operand.class.is_vgpr() && operand.as_temp().is_some();
        if adds != (opcode == Opcode::v_addc_co_u32) {
            return false;
        }
        let (both, operands) = match (adds, vector(b)) {
            (true, true) => (opcode, [a, b, mask]),
            (true, false) => (opcode, [b, a, mask]),
            (false, true) => (Opcode::v_subb_co_u32, [a, b, mask]),
            (false, false) => (opcode, [b, a, mask]),
        };
        self.become_carry_in(inst, both, &operands)
    }

    fn become_carry_in(&mut self, inst: Inst, opcode: Opcode, operands: &[Operand]) -> bool {
        if !self.fits(opcode, operands, true) {
            return false;
        }
        let mut definitions = self.program.definitions(inst).to_vec();
        if definitions.len() < 2 {
            let class = self.program.lane_mask();
            definitions.push(Definition::temp(self.program.make_temp(class), class));
        }
        self.set_operands(inst, operands);
        self.program[inst].op = Op::Hw(opcode);
        self.program.set_definitions(inst, &definitions);
        self.uses.define(self.program, self.block, inst);
        true
    }

    /// The carry of another scalar sum, added to a sum while it is still in `scc`; and the same for borrows and differences.
    fn scalar_carry_in(&mut self, inst: Inst, opcode: Opcode) -> bool {
        let &[a, b] = self.program.operands(inst) else { return false };
        let adds = opcode == Opcode::s_add_u32;
        let both = if adds { Opcode::s_addc_u32 } else { Opcode::s_subb_u32 };
        for (sum, bit) in [(a, b), (b, a)].into_iter().take(if adds { 2 } else { 1 }) {
            let Some(inner) = self.only_source(sum).filter(|inner| self.program.op(*inner) == Op::Hw(opcode))
            else {
                continue;
            };
            let Some(carry) = bit.as_temp().and_then(|bit| self.definition(bit)) else { continue };
            let carries = matches!(self.program.op(carry), Op::Hw(Opcode::s_add_u32 | Opcode::s_sub_u32))
                && self.program.definitions(carry).get(1).is_some_and(|second| second.temp == bit.as_temp());
            if !carries || self.more_is_read(inst) || self.scc_since_but(carry, inner).is_none() {
                continue;
            }
            let &[x, y] = self.program.operands(inner) else { continue };
            if self.fits(both, &[x, y], false) {
                let second = self.program.definitions(inst).get(1).copied();
                let second = second.unwrap_or(Definition::reg(PhysReg::SCC, RegClass::S1));
                let result = self.program.definitions(inst)[0];
                self.set_operands(inst, &[x, y, bit]);
                self.program[inst].op = Op::Hw(both);
                self.program.set_definitions(inst, &[result, second]);
                return true;
            }
        }
        false
    }
}
