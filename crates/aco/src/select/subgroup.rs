//! Subgroup operations that the lowering leaves: ballots, broadcasts and shuffles of words.

use super::{Selected, Selector};
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::{Base, Inst, Op};

impl Selector<'_> {
    /// Selects a subgroup operation.
    pub(super) fn subgroup(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let (result, args) = (func.result(inst), func.args(inst));
        let op = func.op(inst);
        let lanes = match op {
            Op::Ballot => {
                let mask = self.mask_of(args[0]);
                let class = self.program.lane_mask();
                let exec = self.exec();
                let opcode = self.sized(Opcode::s_and_b32, Opcode::s_and_b64);
                let active = self.salu(opcode, class, &[mask, exec]);
                let mut words = self.split(active, 1);
                words.resize(4, Operand::c32(0));
                words
            }
            // The mask of the lowest active lane.
            Op::Elect => {
                let (class, exec) = (self.program.lane_mask(), self.exec());
                let (find, shift) = match self.program.gpu.wave64() {
                    true => (Opcode::s_ff1_i32_b64, Opcode::s_lshl_b64),
                    false => (Opcode::s_ff1_i32_b32, Opcode::s_lshl_b32),
                };
                let lowest = self.salu(find, RegClass::S1, &[exec]);
                vec![self.salu(shift, class, &[Operand::constant(1, class), lowest])]
            }
            Op::ReadFirst if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let value = self.scalar(args[0]);
                match value.class.is_vgpr() {
                    true => vec![self.hw(Opcode::v_readfirstlane_b32, RegClass::S1, &[value])],
                    false => vec![value],
                }
            }
            Op::Broadcast if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let [value, lane] = [self.scalar(args[0]), self.scalar(args[1])];
                if !value.class.is_vgpr() {
                    vec![value]
                } else {
                    let lane = self.in_scalar(lane);
                    vec![self.hw(Opcode::v_readlane_b32, RegClass::S1, &[value, lane])]
                }
            }
            Op::Shuffle if func.ty(result).base == Base::B32 && func.ty(result).lanes == 1 => {
                let [value, lane] = [self.scalar(args[0]), self.scalar(args[1])];
                // On later GPUs the instruction moves values within 32 lanes only.
                let whole = matches!(self.gfx, Gfx::Gfx8 | Gfx::Gfx9 | Gfx::Gfx906);
                if !whole && (self.program.gpu.wave64() || !self.since(Gfx::Gfx10)) {
                    return Err(self.unsupported(inst, Some("on this GPU with this size of a wave")));
                }
                let address = self.valu(Opcode::v_lshlrev_b32, RegClass::V1, &[Operand::c32(2), lane]);
                let value = self.in_vgpr(value);
                vec![self.hw(Opcode::ds_bpermute_b32, RegClass::V1, &[address, value])]
            }
            _ => return Err(self.unsupported(inst, None)),
        };
        self.define(result, &lanes);
        Ok(())
    }
}
