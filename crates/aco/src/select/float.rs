//! Elementwise operations on floats. All are done by the vector ALU.

use super::{Selected, Selector};
use crate::ir::{Operand, RegClass};
use unwedge_isa::amdgcn::model::{Gfx, Mod};
use unwedge_isa::amdgcn::{Mods, Opcode};
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

/// The instruction for an operation on floats of 16 bits that one instruction does, on GPUs that have it.
fn direct16(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FAdd => O::v_add_f16,
        Op::FSub => O::v_sub_f16,
        Op::FMul => O::v_mul_f16,
        Op::FFma => O::v_fma_f16,
        Op::FMin => O::v_min_f16,
        Op::FMax => O::v_max_f16,
        Op::FFloor => O::v_floor_f16,
        Op::FCeil => O::v_ceil_f16,
        Op::FTrunc => O::v_trunc_f16,
        Op::FRoundEven => O::v_rndne_f16,
        Op::FSqrt => O::v_sqrt_f16,
        Op::FRsqrt => O::v_rsq_f16,
        Op::FExp2 => O::v_exp_f16,
        Op::FLog2 => O::v_log_f16,
        Op::FFrexpSig => O::v_frexp_mant_f16,
        _ => return None,
    })
}

/// The instruction for an operation on floats of 64 bits that one instruction does, on GPUs that have it.
fn direct64(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FAdd => O::v_add_f64,
        Op::FMul => O::v_mul_f64,
        Op::FFma => O::v_fma_f64,
        Op::FMin => O::v_min_f64,
        Op::FMax => O::v_max_f64,
        Op::FFloor => O::v_floor_f64,
        Op::FCeil => O::v_ceil_f64,
        Op::FTrunc => O::v_trunc_f64,
        Op::FRoundEven => O::v_rndne_f64,
        Op::FLdexp => O::v_ldexp_f64,
        Op::FFrexpSig => O::v_frexp_mant_f64,
        Op::FFrexpExp => O::v_frexp_exp_i32_f64,
        _ => return None,
    })
}

/// The instruction for a conversion between widths, or from and to integers of 32 bits.
fn convert(op: Op, from: Base, to: Base) -> Option<Opcode> {
    use Opcode as O;
    Some(match (op, from, to) {
        (Op::I2F, Base::B32, Base::B32) => O::v_cvt_f32_i32,
        (Op::U2F, Base::B32, Base::B32) => O::v_cvt_f32_u32,
        (Op::F2I, Base::B32, Base::B32) => O::v_cvt_i32_f32,
        (Op::F2U, Base::B32, Base::B32) => O::v_cvt_u32_f32,
        (Op::I2F, Base::B32, Base::B64) => O::v_cvt_f64_i32,
        (Op::U2F, Base::B32, Base::B64) => O::v_cvt_f64_u32,
        (Op::F2I, Base::B64, Base::B32) => O::v_cvt_i32_f64,
        (Op::F2U, Base::B64, Base::B32) => O::v_cvt_u32_f64,
        (Op::F2F, Base::B16, Base::B32) => O::v_cvt_f32_f16,
        (Op::F2F, Base::B32, Base::B16) => O::v_cvt_f16_f32,
        (Op::F2F, Base::B32, Base::B64) => O::v_cvt_f64_f32,
        (Op::F2F, Base::B64, Base::B32) => O::v_cvt_f32_f64,
        _ => return None,
    })
}

fn compare16(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FEq => O::v_cmp_eq_f16,
        Op::FNeu => O::v_cmp_neq_f16,
        Op::FLt => O::v_cmp_lt_f16,
        Op::FGe => O::v_cmp_ge_f16,
        _ => return None,
    })
}

fn compare64(op: Op) -> Option<Opcode> {
    use Opcode as O;
    Some(match op {
        Op::FEq => O::v_cmp_eq_f64,
        Op::FNeu => O::v_cmp_neq_f64,
        Op::FLt => O::v_cmp_lt_f64,
        Op::FGe => O::v_cmp_ge_f64,
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
/// 1.0.
const ONE: u64 = 0x3f80_0000;
/// 1.0 in 16 and in 64 bits.
const HALF_ONE: u32 = 0x3c00;
const DOUBLE_ONE: u64 = 0x3ff0_0000_0000_0000;
/// One over two pi, because the instructions for sine and cosine take angles in turns.
const TURNS: u32 = 0x3e22_f983;

impl Selector<'_> {
    /// Selects an operation on floats.
    pub(super) fn float(&mut self, inst: Inst) -> Selected<()> {
        let func = self.func;
        let op = func.op(inst);
        let result = func.result(inst);
        let (to, from) = (func.ty(result).base, func.ty(func.args(inst)[0]).base);
        let compare = match from {
            Base::B16 => compare16(op),
            Base::B32 => compare32(op),
            Base::B64 => compare64(op),
            _ => None,
        };
        let direct = match from {
            // gfx8 has it as the instruction that later GPUs call legacy.
            Base::B16 if op == Op::FFma && !self.has(Opcode::v_fma_f16) => Some(Opcode::v_fma_legacy_f16),
            Base::B16 => direct16(op),
            Base::B64 => direct64(op),
            _ => None,
        };
        let class = self.class(result);
        let value = if let Some(opcode) = compare {
            let operands: [Operand; 2] = self.scalars(inst);
            self.required(inst, opcode)?;
            self.valu_compare(opcode, &operands)
        } else if let Some(opcode) = convert(op, from, to).or(direct) {
            let operands: Vec<Operand> = func.args(inst).iter().map(|arg| self.scalar(*arg)).collect();
            self.required(inst, opcode)?;
            let value = self.valu(opcode, RegClass::vgpr(class.dwords()), &operands);
            if class.is_sgpr() { self.in_scalar(value) } else { value }
        } else {
            match (op, from, to) {
                (Op::FNeg | Op::FAbs, _, _) => self.sign(inst)?,
                (_, Base::B32, Base::B32) => self.float32(inst)?,
                (Op::FSub, Base::B64, Base::B64) => {
                    let operands: [Operand; 2] = self.scalars(inst);
                    let mut mods = Mods::default();
                    mods.set(Mod::Neg, 2);
                    // A constant has no sign to change.
                    let operands = operands.map(|operand| self.in_vgpr(operand));
                    self.valu_with(Opcode::v_add_f64, class, &operands, mods)
                }
                (Op::FDiv, Base::B64, Base::B64) => {
                    let [a, b] = self.scalars(inst);
                    self.quotient64(a, b)
                }
                (Op::FSqrt, Base::B64, Base::B64) => {
                    let [value] = self.scalars(inst);
                    self.root64(value)
                }
                (Op::FRsqrt, Base::B64, Base::B64) => {
                    let [value] = self.scalars(inst);
                    self.inverse_root64(value)
                }
                (Op::F2FRtz, Base::B32, Base::B16) => {
                    let [single] = self.scalars(inst);
                    let half =
                        self.valu(Opcode::v_cvt_pkrtz_f16_f32, RegClass::V1, &[single, Operand::c32(0)]);
                    self.flushed_half(half)
                }
                (Op::FDiv, Base::B16, Base::B16) => {
                    let v1 = RegClass::V1;
                    let operands: [Operand; 2] = self.scalars(inst);
                    let [a, b] = operands.map(|operand| self.valu(Opcode::v_cvt_f32_f16, v1, &[operand]));
                    let inverse = self.valu(Opcode::v_rcp_f32, v1, &[b]);
                    let quotient = self.valu(Opcode::v_mul_f32, v1, &[a, inverse]);
                    self.valu(Opcode::v_cvt_f16_f32, class, &[quotient])
                }
                // An integer that a 32-bit float would round is infinite as a 16-bit float.
                (Op::I2F | Op::U2F, Base::B32, Base::B16) => {
                    let [integer] = self.scalars(inst);
                    let opcode = if op == Op::I2F { Opcode::v_cvt_f32_i32 } else { Opcode::v_cvt_f32_u32 };
                    let float = self.valu(opcode, RegClass::V1, &[integer]);
                    self.valu(Opcode::v_cvt_f16_f32, RegClass::vgpr(class.dwords()), &[float])
                }
                (Op::F2I | Op::F2U, Base::B16, Base::B32) => {
                    let [half] = self.scalars(inst);
                    let opcode = if op == Op::F2I { Opcode::v_cvt_i32_f32 } else { Opcode::v_cvt_u32_f32 };
                    let float = self.valu(Opcode::v_cvt_f32_f16, RegClass::V1, &[half]);
                    let integer = self.valu(opcode, RegClass::V1, &[float]);
                    if class.is_sgpr() { self.in_scalar(integer) } else { integer }
                }
                (Op::F2F, Base::B16, Base::B64) => {
                    let [half] = self.scalars(inst);
                    let float = self.valu(Opcode::v_cvt_f32_f16, RegClass::V1, &[half]);
                    self.valu(Opcode::v_cvt_f64_f32, class, &[float])
                }
                (Op::FLdexp, Base::B16, Base::B16) => {
                    let [value, exponent] = self.scalars(inst);
                    self.required(inst, Opcode::v_ldexp_f16)?;
                    // The instruction takes 16 bits of the exponent.
                    let v1 = RegClass::V1;
                    let most = self.valu(Opcode::v_min_i32, v1, &[Operand::c32(64), exponent]);
                    let exponent = self.valu(Opcode::v_max_i32, v1, &[Operand::c32(-64i32 as u32), most]);
                    self.valu(Opcode::v_ldexp_f16, class, &[value, exponent])
                }
                _ => return Err(self.unsupported(inst, None)),
            }
        };
        let value = if matches!(op, Op::FMin | Op::FMax) { self.flushed(inst, value) } else { value };
        self.define(result, &[value]);
        Ok(())
    }

    /// A minimum or maximum without denormals, where the shader asks for that: before gfx9 the instructions keep them in every mode, and a product with
    /// one does not.
    fn flushed(&mut self, inst: Inst, value: Operand) -> Operand {
        let base = self.func.ty(self.func.result(inst)).base;
        if self.since(Gfx::Gfx9) || self.shader.info.float_mode(base.bits()).flush != Some(true) {
            return value;
        }
        let (multiply, one) = match base {
            Base::B16 => (Opcode::v_mul_f16, Operand::c32(HALF_ONE)),
            Base::B64 => (Opcode::v_mul_f64, Operand::c64(DOUBLE_ONE)),
            _ => (Opcode::v_mul_f32, Operand::c32(ONE as u32)),
        };
        let product = self.valu(multiply, RegClass::vgpr(value.class.dwords()), &[one, value]);
        if value.class.is_sgpr() { self.in_scalar(product) } else { product }
    }

    /// A 16-bit float without denormals, where the shader asks for that, from an instruction that keeps them in every mode.
    fn flushed_half(&mut self, half: Operand) -> Operand {
        if self.shader.info.float_mode(16).flush != Some(true) {
            return half;
        }
        let single = self.valu(Opcode::v_cvt_f32_f16, RegClass::V1, &[half]);
        self.valu(Opcode::v_cvt_f16_f32, RegClass::V1, &[single])
    }

    /// An instruction that not all GPUs have.
    fn required(&self, inst: Inst, opcode: Opcode) -> Selected<()> {
        if self.has(opcode) { Ok(()) } else { Err(self.unsupported(inst, Some("on this GPU"))) }
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
            (Op::FDiv, [one, b]) if one.is_const(ONE) => self.valu(O::v_rcp_f32, v1, &[*b]),
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
