//! Quantization to floats of 16 bits: takes any shader; leaves conversions to 16 bits and back, and a choice of zero where the half is denormal.

use unwedge_shader::ir::{Base, Builder, Inst, Op, Round, Shader};

const SIGN: u64 = 0x8000_0000;
/// The least normal half, as a float of 32 bits.
const LEAST_NORMAL: u64 = 0x3880_0000;

/// Replaces quantizations; whether there was one.
pub(super) fn lower(shader: &mut Shader) -> bool {
    // Quantization always rounds to nearest.
    let nearest = shader.info.float_mode(16).round == Round::NearestEven;
    let conversion = if nearest { Op::F2F } else { Op::F2FRte };
    let func = shader.entry_mut();
    let is_quantization =
        |inst: &Inst| func.op(*inst) == Op::FQuantizeF16 && func.ty(func.result(*inst)).base == Base::B32;
    let insts: Vec<Inst> = func.walk().filter(is_quantization).collect();
    for &inst in &insts {
        let (value, result) = (func.args(inst)[0], func.result(inst));
        let ty = func.ty(result);
        let mut b = Builder::before(func, inst);
        b.exact = true;
        let half = b.convert(conversion, Base::B16, value);
        let float = b.convert(Op::F2F, Base::B32, half);
        let [sign, rest, least] = [SIGN, SIGN - 1, LEAST_NORMAL].map(|bits| b.splat_constant(ty, bits));
        let magnitude = b.alu(Op::IAnd, &[float, rest]);
        let is_denormal = b.alu(Op::ULt, &[magnitude, least]);
        let zero = b.alu(Op::IAnd, &[float, sign]);
        let quantized = b.alu(Op::Select, &[is_denormal, zero, float]);
        func.replace_values(|value| if value == result { quantized } else { value });
        func.unlink(inst);
    }
    !insts.is_empty()
}
