//! Scalar conditions: results that operations on booleans leave in `scc`, and tests of single bits.

use super::combine::Combiner;
use crate::ir::{Inst, Op, Operand, PhysReg, Pseudo, RegClass};
use unwedge_isa::amdgcn::model::{Format, Gfx};
use unwedge_isa::amdgcn::{Mods, Opcode};

impl Combiner<'_> {
    /// Reads from `scc` what an operation left there, where a branch or a select needs a condition.
    pub(super) fn condition(&mut self, inst: Inst) -> bool {
        use Opcode as O;
        let branches = [Pseudo::BranchZ, Pseudo::BranchNz];
        let at = match self.program.op(inst) {
            Op::Pseudo(pseudo) if branches.contains(&pseudo) => 0,
            Op::Hw(O::s_cselect_b32 | O::s_cselect_b64) => 2,
            _ => return false,
        };
        let Some(&operand) = self.program.operands(inst).get(at) else { return false };
        if operand.class != RegClass::S1 || operand.reg.is_some_and(|reg| reg != PhysReg::SCC) {
            return false;
        }
        let Some(inner) = self.source(operand) else { return false };
        let mut operands = self.program.operands(inst).to_vec();
        let alone = self.only_source(operand).is_some();
        if let Some(bit) = self.opposite_before(inner).filter(|_| alone) {
            operands[at].source = bit.source;
            self.otherwise(inst, &mut operands);
            self.set_operands(inst, &operands);
            return true;
        }
        match self.program.op(inner) {
            // The other one of 0 and 1.
            Op::Hw(O::s_xor_b32) if self.program.operands(inner).iter().any(|other| other.is_const(1)) => {
                let other = self.program.operands(inner).iter().find(|other| other.as_temp().is_some());
                let Some(bit) = other.copied() else { return false };
                operands[at].source = bit.source;
                self.otherwise(inst, &mut operands);
            }
            // A boolean is 0 or 1.
            Op::Hw(O::s_and_b32 | O::s_or_b32 | O::s_xor_b32 | O::s_andn2_b32) => {
                let Some(bit) = self.scc_since(inner) else { return false };
                operands[at].source = bit.source;
            }
            // What an operation left is whether its result is not zero.
            Op::Hw(O::s_cmp_eq_u32) => {
                let &[a, b] = self.program.operands(inner) else { return false };
                let value = match (a.as_const(), b.as_const()) {
                    (None, Some(0)) => a,
                    (Some(0), None) => b,
                    _ => return false,
                };
                let Some(made) = self.source(value) else { return false };
                let leaves =
                    matches!(self.program.op(made), Op::Hw(O::s_and_b32 | O::s_or_b32 | O::s_xor_b32));
                if !leaves || !alone {
                    return false;
                }
                let Some(bit) = self.scc_since_but(made, inner) else { return false };
                operands[at].source = bit.source;
                self.otherwise(inst, &mut operands);
            }
            _ => return false,
        }
        self.set_operands(inst, &operands);
        true
    }

    /// The result of an earlier comparison with the opposite condition, if `scc` still holds it at this one.
    fn opposite_before(&self, inst: Inst) -> Option<Operand> {
        let opposite = match self.program.op(inst) {
            Op::Hw(Opcode::s_cmp_eq_u32) => Opcode::s_cmp_lg_u32,
            Op::Hw(Opcode::s_cmp_lg_u32) => Opcode::s_cmp_eq_u32,
            _ => return None,
        };
        let place = self.out.iter().rposition(|own| *own == inst)?;
        let mut before = self.out[..place].iter().rev();
        let &last = before.find(|own| super::combine::writes_scc(self.program, **own))?;
        let same = self.program.operands(last) == self.program.operands(inst);
        let definition = self.program.definitions(last).first().filter(|_| same)?;
        (self.program.op(last) == Op::Hw(opposite))
            .then_some(Operand::temp(definition.temp?, definition.class))
    }

    /// Inverts the condition of a branch or a select.
    fn otherwise(&mut self, inst: Inst, operands: &mut [Operand]) {
        match self.program.op(inst) {
            Op::Pseudo(Pseudo::BranchZ) => self.program[inst].op = Op::Pseudo(Pseudo::BranchNz),
            Op::Pseudo(_) => self.program[inst].op = Op::Pseudo(Pseudo::BranchZ),
            Op::Hw(_) => operands.swap(0, 1),
        }
    }

    /// Branches by a comparison of the vector ALU, which has no bits of inactive lanes, where its active lanes were asked for. `vccz` of older GPUs may
    /// be wrong.
    pub(super) fn branch_by_mask(&mut self, inst: Inst) -> bool {
        if !matches!(self.program.op(inst), Op::Pseudo(Pseudo::BranchZ | Pseudo::BranchNz))
            || self.program.gpu.generation() < Gfx::Gfx8
        {
            return false;
        }
        let &[operand] = self.program.operands(inst) else { return false };
        let Some(bit) = operand.as_temp().filter(|_| operand.reg.is_none()) else { return false };
        let Some(inner) = self.definition(bit) else { return false };
        let &[all, any] = self.program.definitions(inner) else { return false };
        let unread = all.temp.is_none_or(|all| self.uses.count(all) == 0);
        let ands = matches!(self.program.op(inner), Op::Hw(Opcode::s_and_b32 | Opcode::s_and_b64));
        if !ands || any.temp != Some(bit) || !unread || self.uses.count(bit) != 1 {
            return false;
        }
        let class = self.program.lane_mask();
        let exec = Operand::reg(PhysReg::EXEC, class);
        let mask = match self.program.operands(inner) {
            &[mask, other] | &[other, mask] if other == exec => mask,
            _ => return false,
        };
        let Some(compare) = mask.as_temp().and_then(|temp| self.definition(temp)) else { return false };
        let compares =
            matches!(self.program.op(compare), Op::Hw(opcode) if opcode.row().format == Format::Vopc);
        let Some(place) = self.out.iter().rposition(|own| *own == compare).filter(|_| compares) else {
            return false;
        };
        let keeps_exec = |inst: &Inst| match self.program.op(*inst) {
            Op::Hw(_) => self.program.definitions(*inst).iter().all(|d| d.reg != Some(PhysReg::EXEC)),
            Op::Pseudo(pseudo) => matches!(
                pseudo,
                Pseudo::ParallelCopy
                    | Pseudo::CreateVector
                    | Pseudo::SplitVector
                    | Pseudo::ExtractVector
                    | Pseudo::AsUniform
                    | Pseudo::LogicalEnd
            ),
        };
        if !self.out[place + 1..].iter().all(keeps_exec) {
            return false;
        }
        self.set_operands(inst, &[Operand { reg: Some(PhysReg::VCC), ..mask }]);
        true
    }

    /// Tests a bit of a scalar.
    pub(super) fn bit_test(&mut self, inst: Inst) -> bool {
        let Op::Hw(opcode) = self.program.op(inst) else { return false };
        let test = match opcode {
            Opcode::s_cmp_eq_u32 => Opcode::s_bitcmp0_b32,
            Opcode::s_cmp_lg_u32 => Opcode::s_bitcmp1_b32,
            _ => return false,
        };
        let &[a, b] = self.program.operands(inst) else { return false };
        let masked = match (a.as_const(), b.as_const()) {
            (None, Some(0)) => a,
            (Some(0), None) => b,
            _ => return false,
        };
        let Some(inner) = self.only_source(masked) else { return false };
        let (Op::Hw(Opcode::s_and_b32), &[a, b]) = (self.program.op(inner), self.program.operands(inner))
        else {
            return false;
        };
        let (value, mask) = if a.as_const().is_some() { (b, a) } else { (a, b) };
        let mask = mask.as_const().map(|mask| mask as u32).filter(|mask| mask.is_power_of_two());
        let Some(mask) = mask.filter(|_| value.as_temp().is_some() && self.variants.has(test)) else {
            return false;
        };
        if self.program[inst].mods != Mods::default() {
            return false;
        }
        self.become_op(inst, test, &[value, Operand::c32(mask.trailing_zeros())]);
        true
    }

    /// A vector that consists of all parts of another one in order is replaced with that vector, unless other instructions read the parts.
    pub(super) fn whole(&mut self, inst: Inst) -> bool {
        if !self.program.op(inst).is(Pseudo::CreateVector) {
            return false;
        }
        let parts = self.program.operands(inst).to_vec();
        let class = self.program.definitions(inst)[0].class;
        for first in 0..parts.len() {
            let split = parts[first].as_temp().and_then(|temp| self.definition(temp));
            let Some(split) = split.filter(|inst| self.program.op(*inst).is(Pseudo::SplitVector)) else {
                continue;
            };
            let made = self.program.definitions(split);
            let same = parts.len() - first >= made.len()
                && made
                    .iter()
                    .zip(&parts[first..])
                    .all(|(made, part)| made.temp.is_some() && made.temp == part.as_temp());
            let vector = self.program.operands(split)[0];
            let Some(whole) = vector.as_temp().filter(|_| same && made.len() >= 2 && vector.reg.is_none())
            else {
                continue;
            };
            // A vector that is still alive is not split in place, so parts that other instructions read would be copied.
            let others_read = made.iter().any(|made| made.temp.is_some_and(|temp| self.uses.count(temp) > 1));
            if others_read && self.uses.count(whole) == 1 {
                continue;
            }
            if made.len() == parts.len() && vector.class == class {
                self.become_copy(inst, vector);
                return true;
            }
            if vector.class.bank() != class.bank() || vector.class.is_linear() != class.is_linear() {
                continue;
            }
            let mut new = parts.clone();
            new.splice(first..first + made.len(), [vector]);
            self.set_operands(inst, &new);
            return true;
        }
        false
    }
}
