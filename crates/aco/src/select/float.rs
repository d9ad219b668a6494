//! Elementwise operations on floats. All are done by the vector ALU.

use super::{Selected, Selector};
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::Opcode;
use unwedge_isa::amdgcn::model::Gfx;
use unwedge_shader::ir::{Base, Inst, Op};

/// The instruction for an operation on floats of 32 bits that one instruction does.
fn direct32(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FAdd => O::v_add_f32,
        Op::FSub => O::v_sub_f32,
        Op::FMul => O::v_mul_f32,
        Op::FFma => O::v_fma_f32,
        Op::FMin => O::v_min_f32,
        Op::FMax => O::v_max_f32,
        Op::FFloor => O::v_floor_f32,
        Op::FCeil => O::v_ceil_f32,
        Op::FTrunc => O::v_trunc_f32,
        Op::FRoundEven => O::v_rndne_f32,
        Op::FSqrt => O::v_sqrt_f32,
        Op::FRsqrt => O::v_rsq_f32,
        Op::FExp2 => O::v_exp_f32,
        Op::FLog2 => O::v_log_f32,
        Op::FLdexp => O::v_ldexp_f32,
        Op::FFrexpSig => O::v_frexp_mant_f32,
        Op::FFrexpExp => O::v_frexp_exp_i32_f32,
        _ => return None,
    })
}

fn compare32(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FEq => O::v_cmp_eq_f32,
        Op::FNeu => O::v_cmp_neq_f32,
        Op::FLt => O::v_cmp_lt_f32,
        Op::FGe => O::v_cmp_ge_f32,
        _ => return None,
    })
}

const SIGN: u32 = 1 << 31;
/// One over two pi, as the instructions for sine and cosine count angles.
const TURNS: u32 = 0x3e22_f983;

impl Selector<'_> {
    /// Selects an operation on floats.
    pub(super) fn float(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let op = func.op(inst);
        let result = func.result(inst);
        let (to, from) = (func.ty(result).base, func.ty(func.args(inst)[0]).base);
        let value = match (op, from, to) {
            (Op::FNeg | Op::FAbs, _, _) => self.sign(inst)?,
            (Op::I2F, Base::B32, Base::B32) => self.one(Opcode::v_cvt_f32_i32, inst),
            (Op::U2F, Base::B32, Base::B32) => self.one(Opcode::v_cvt_f32_u32, inst),
            (Op::F2I, Base::B32, Base::B32) => self.one(Opcode::v_cvt_i32_f32, inst),
            (Op::F2U, Base::B32, Base::B32) => self.one(Opcode::v_cvt_u32_f32, inst),
            (_, Base::B32, _) if compare32(op).is_some() => {
                let operands: [Operand; 2] = self.scalars(inst);
                let Some(opcode) = compare32(op) else { return Err(self.unsupported(inst, None)) };
                self.compared(inst, opcode, &operands)
            }
            (_, Base::B32, Base::B32) => self.float32(inst)?,
            _ => return Err(self.unsupported(inst, None)),
        };
        self.define(result, &[value]);
        Ok(())
    }

    fn one(&mut self, opcode: Opcode, inst: Inst) -> Operand {
        let [operand] = self.scalars(inst);
        self.valu(opcode, RegClass::V1, &[operand])
    }

    /// Changes the sign bit.
    fn sign(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let func = self.func;
        let result = func.result(inst);
        let negates = func.op(inst) == Op::FNeg;
        let bits = func.ty(result).base.bits();
        let [operand] = self.scalars(inst);
        let word = if bits == 64 { self.words(operand)[1] } else { operand };
        let sign = if bits == 16 { 1 << 15 } else { SIGN };
        let value = match (self.banks.is_vector(result), negates) {
            (true, true) => self.valu(O::v_xor_b32, RegClass::V1, &[Operand::c32(sign), word]),
            (true, false) => self.valu(O::v_and_b32, RegClass::V1, &[Operand::c32(sign - 1), word]),
            (false, true) => self.salu(O::s_xor_b32, RegClass::S1, &[word, Operand::c32(sign)]),
            (false, false) => self.salu(O::s_and_b32, RegClass::S1, &[word, Operand::c32(sign - 1)]),
        };
        if bits != 64 {
            return Ok(value);
        }
        let low = self.words(operand)[0];
        Ok(self.create(self.class(result), &[low, value]))
    }

    fn float32(&mut self, inst: Inst) -> Selected<Operand> {
        use Opcode as O;
        let v1 = RegClass::V1;
        let op = self.func.op(inst);
        let mut args: Vec<Operand> = self.func.args(inst).iter().map(|arg| self.scalar(*arg)).collect();
        if let Some(opcode) = direct32(op) {
            if matches!(op, Op::FAdd | Op::FMul | Op::FMin | Op::FMax) {
                self.order(&mut args);
            }
            return Ok(self.valu(opcode, v1, &args));
        }
        Ok(match (op, &args[..]) {
            (Op::FDiv, [a, b]) => {
                let inverse = self.valu(O::v_rcp_f32, v1, &[*b]);
                self.valu(O::v_mul_f32, v1, &[*a, inverse])
            }
            (Op::FSin | Op::FCos, [a]) => {
                let mut turns = self.valu(O::v_mul_f32, v1, &[Operand::c32(TURNS), *a]);
                // Older GPUs take 256 turns at most.
                if !self.since(Gfx::Gfx9) {
                    turns = self.valu(O::v_fract_f32, v1, &[turns]);
                }
                let opcode = if op == Op::FSin { O::v_sin_f32 } else { O::v_cos_f32 };
                self.valu(opcode, v1, &[turns])
            }
            _ => return Err(self.unsupported(inst, None)),
        })
    }
}
