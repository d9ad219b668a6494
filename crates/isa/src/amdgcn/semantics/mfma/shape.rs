//! What each matrix instruction of CDNA multiplies, by its row of the table, and how long it takes.

use super::{Factor, Mfma, Total};
use crate::amdgcn::Inst;
use crate::amdgcn::model::{Gfx, Mod};
use crate::amdgcn::opcode::{MfmaOp, Operation};

impl Mfma {
    /// The operation of a row in a generation.
    pub fn of(op: MfmaOp, generation: Gfx) -> Mfma {
        let mut made = shape(op);
        // gfx94x has other formats of 8 bits than every later GPU.
        if generation <= Gfx::Gfx940 {
            for factor in [&mut made.a, &mut made.b] {
                *factor = match *factor {
                    Factor::Fp8 => Factor::Fp8Fnuz,
                    Factor::Bf8 => Factor::Bf8Fnuz,
                    other => other,
                };
            }
        }
        made
    }

    /// The operation of an instruction; `None` if it is not a matrix instruction of CDNA, or its formats are reserved.
    pub fn of_inst(inst: &Inst, generation: Gfx) -> Option<Mfma> {
        let Operation::Mfma(op) = inst.row().operation else { return None };
        let mut made = Mfma::of(op, generation);
        if made.chooses_formats() {
            made.a = Factor::from_code(inst.mods.get(Mod::Cbsz) as u8)?;
            made.b = Factor::from_code(inst.mods.get(Mod::Blgp) as u8)?;
        }
        Some(made)
    }

    /// Whether CBSZ and BLGP choose the formats of elements, of up to 8 bits.
    pub fn chooses_formats(&self) -> bool {
        !self.sparse && self.b_items() == 32
    }

    /// Whether it multiplies numbers of 64 bits.
    pub fn is_dgemm(&self) -> bool {
        self.total == Total::F64
    }

    /// Whether it runs on the hardware for products of small elements. From gfx94x on, products of 32 bits have hardware of their own.
    pub fn is_xdl(&self, generation: Gfx) -> bool {
        !self.is_dgemm() && (generation < Gfx::Gfx940 || self.a != Factor::F32)
    }

    /// Passes of four cycles that it takes: 2, 4, 8 or 16. Facts: LLVM's schedule, tables of cycles in AMD's manuals.
    pub fn passes(&self, generation: Gfx) -> u8 {
        let wide = self.size == 32;
        if self.is_dgemm() {
            return match self.size {
                4 => 4,
                _ if generation >= Gfx::Gfx950 => 16,
                _ => 8,
            };
        }
        if self.size == 4 {
            return 2;
        }
        let mixed = self.a.bits() == 8 || self.b.bits() == 8;
        let quick = generation >= Gfx::Gfx940
            && (self.sparse || self.blocks == 1 && self.a != Factor::F32)
            && !(self.b_items() == 32 && mixed && !self.sparse);
        if quick {
            if wide { 8 } else { 4 }
        } else if wide {
            16
        } else {
            8
        }
    }
}

const F64: Factor = Factor::F64;
const F32: Factor = Factor::F32;
const XF32: Factor = Factor::Xf32;
const F16: Factor = Factor::F16;
const BF16: Factor = Factor::Bf16;
const FP8: Factor = Factor::Fp8;
const BF8: Factor = Factor::Bf8;
const I8: Factor = Factor::I8;

const fn dense(total: Total, size: u8, depth: u8, blocks: u8, a: Factor, b: Factor) -> Mfma {
    Mfma { size, depth, blocks, a, b, total, sparse: false }
}

const fn sparse(total: Total, size: u8, depth: u8, a: Factor, b: Factor) -> Mfma {
    Mfma { size, depth, blocks: 1, a, b, total, sparse: true }
}

#[rustfmt::skip]
fn shape(op: MfmaOp) -> Mfma {
    match op {
        MfmaOp::v_mfma_f32_16x16x16_bf16 => dense(Total::F32, 16, 16, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_16x16x2bf16 => dense(Total::F32, 16, 2, 4, BF16, BF16),
        MfmaOp::v_mfma_f32_16x16x32_bf16 => dense(Total::F32, 16, 32, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_16x16x4_4b_bf16 => dense(Total::F32, 16, 4, 4, BF16, BF16),
        MfmaOp::v_mfma_f32_16x16x8bf16 => dense(Total::F32, 16, 8, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_32x32x16_bf16 => dense(Total::F32, 32, 16, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_32x32x2bf16 => dense(Total::F32, 32, 2, 2, BF16, BF16),
        MfmaOp::v_mfma_f32_32x32x4bf16 => dense(Total::F32, 32, 4, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_32x32x4_2b_bf16 => dense(Total::F32, 32, 4, 2, BF16, BF16),
        MfmaOp::v_mfma_f32_32x32x8_bf16 => dense(Total::F32, 32, 8, 1, BF16, BF16),
        MfmaOp::v_mfma_f32_4x4x2bf16 => dense(Total::F32, 4, 2, 16, BF16, BF16),
        MfmaOp::v_mfma_f32_4x4x4_16b_bf16 => dense(Total::F32, 4, 4, 16, BF16, BF16),
        MfmaOp::v_mfma_f32_16x16x32_bf8_bf8 => dense(Total::F32, 16, 32, 1, BF8, BF8),
        MfmaOp::v_mfma_f32_32x32x16_bf8_bf8 => dense(Total::F32, 32, 16, 1, BF8, BF8),
        MfmaOp::v_mfma_f32_16x16x32_bf8_fp8 => dense(Total::F32, 16, 32, 1, BF8, FP8),
        MfmaOp::v_mfma_f32_32x32x16_bf8_fp8 => dense(Total::F32, 32, 16, 1, BF8, FP8),
        MfmaOp::v_mfma_f32_16x16x16_f16 => dense(Total::F32, 16, 16, 1, F16, F16),
        MfmaOp::v_mfma_f32_16x16x32_f16 => dense(Total::F32, 16, 32, 1, F16, F16),
        MfmaOp::v_mfma_f32_16x16x4_4b_f16 => dense(Total::F32, 16, 4, 4, F16, F16),
        MfmaOp::v_mfma_f32_32x32x16_f16 => dense(Total::F32, 32, 16, 1, F16, F16),
        MfmaOp::v_mfma_f32_32x32x4_2b_f16 => dense(Total::F32, 32, 4, 2, F16, F16),
        MfmaOp::v_mfma_f32_32x32x8_f16 => dense(Total::F32, 32, 8, 1, F16, F16),
        MfmaOp::v_mfma_f32_4x4x4_16b_f16 => dense(Total::F32, 4, 4, 16, F16, F16),
        MfmaOp::v_mfma_f32_16x16x1_4b_f32 => dense(Total::F32, 16, 1, 4, F32, F32),
        MfmaOp::v_mfma_f32_16x16x4_f32 => dense(Total::F32, 16, 4, 1, F32, F32),
        MfmaOp::v_mfma_f32_32x32x1_2b_f32 => dense(Total::F32, 32, 1, 2, F32, F32),
        MfmaOp::v_mfma_f32_32x32x2_f32 => dense(Total::F32, 32, 2, 1, F32, F32),
        MfmaOp::v_mfma_f32_4x4x1_16b_f32 => dense(Total::F32, 4, 1, 16, F32, F32),
        MfmaOp::v_mfma_f32_16x16x32_fp8_bf8 => dense(Total::F32, 16, 32, 1, FP8, BF8),
        MfmaOp::v_mfma_f32_32x32x16_fp8_bf8 => dense(Total::F32, 32, 16, 1, FP8, BF8),
        MfmaOp::v_mfma_f32_16x16x32_fp8_fp8 => dense(Total::F32, 16, 32, 1, FP8, FP8),
        MfmaOp::v_mfma_f32_32x32x16_fp8_fp8 => dense(Total::F32, 32, 16, 1, FP8, FP8),
        MfmaOp::v_mfma_f32_16x16x8_xf32 => dense(Total::F32, 16, 8, 1, XF32, XF32),
        MfmaOp::v_mfma_f32_32x32x4_xf32 => dense(Total::F32, 32, 4, 1, XF32, XF32),
        MfmaOp::v_mfma_f64_16x16x4_f64 => dense(Total::F64, 16, 4, 1, F64, F64),
        MfmaOp::v_mfma_f64_4x4x4_4b_f64 => dense(Total::F64, 4, 4, 4, F64, F64),
        MfmaOp::v_mfma_i32_16x16x16i8 => dense(Total::I32, 16, 16, 1, I8, I8),
        MfmaOp::v_mfma_i32_16x16x32_i8 => dense(Total::I32, 16, 32, 1, I8, I8),
        MfmaOp::v_mfma_i32_16x16x4_4b_i8 => dense(Total::I32, 16, 4, 4, I8, I8),
        MfmaOp::v_mfma_i32_16x16x64_i8 => dense(Total::I32, 16, 64, 1, I8, I8),
        MfmaOp::v_mfma_i32_32x32x16_i8 => dense(Total::I32, 32, 16, 1, I8, I8),
        MfmaOp::v_mfma_i32_32x32x32_i8 => dense(Total::I32, 32, 32, 1, I8, I8),
        MfmaOp::v_mfma_i32_32x32x4_2b_i8 => dense(Total::I32, 32, 4, 2, I8, I8),
        MfmaOp::v_mfma_i32_32x32x8i8 => dense(Total::I32, 32, 8, 1, I8, I8),
        MfmaOp::v_mfma_i32_4x4x4_16b_i8 => dense(Total::I32, 4, 4, 16, I8, I8),
        MfmaOp::v_smfmac_f32_16x16x32_bf16 => sparse(Total::F32, 16, 32, BF16, BF16),
        MfmaOp::v_smfmac_f32_16x16x64_bf16 => sparse(Total::F32, 16, 64, BF16, BF16),
        MfmaOp::v_smfmac_f32_32x32x16_bf16 => sparse(Total::F32, 32, 16, BF16, BF16),
        MfmaOp::v_smfmac_f32_32x32x32_bf16 => sparse(Total::F32, 32, 32, BF16, BF16),
        MfmaOp::v_smfmac_f32_16x16x128_bf8_bf8 => sparse(Total::F32, 16, 128, BF8, BF8),
        MfmaOp::v_smfmac_f32_16x16x64_bf8_bf8 => sparse(Total::F32, 16, 64, BF8, BF8),
        MfmaOp::v_smfmac_f32_32x32x32_bf8_bf8 => sparse(Total::F32, 32, 32, BF8, BF8),
        MfmaOp::v_smfmac_f32_32x32x64_bf8_bf8 => sparse(Total::F32, 32, 64, BF8, BF8),
        MfmaOp::v_smfmac_f32_16x16x128_bf8_fp8 => sparse(Total::F32, 16, 128, BF8, FP8),
        MfmaOp::v_smfmac_f32_16x16x64_bf8_fp8 => sparse(Total::F32, 16, 64, BF8, FP8),
        MfmaOp::v_smfmac_f32_32x32x32_bf8_fp8 => sparse(Total::F32, 32, 32, BF8, FP8),
        MfmaOp::v_smfmac_f32_32x32x64_bf8_fp8 => sparse(Total::F32, 32, 64, BF8, FP8),
        MfmaOp::v_smfmac_f32_16x16x32_f16 => sparse(Total::F32, 16, 32, F16, F16),
        MfmaOp::v_smfmac_f32_16x16x64_f16 => sparse(Total::F32, 16, 64, F16, F16),
        MfmaOp::v_smfmac_f32_32x32x16_f16 => sparse(Total::F32, 32, 16, F16, F16),
        MfmaOp::v_smfmac_f32_32x32x32_f16 => sparse(Total::F32, 32, 32, F16, F16),
        MfmaOp::v_smfmac_f32_16x16x128_fp8_bf8 => sparse(Total::F32, 16, 128, FP8, BF8),
        MfmaOp::v_smfmac_f32_16x16x64_fp8_bf8 => sparse(Total::F32, 16, 64, FP8, BF8),
        MfmaOp::v_smfmac_f32_32x32x32_fp8_bf8 => sparse(Total::F32, 32, 32, FP8, BF8),
        MfmaOp::v_smfmac_f32_32x32x64_fp8_bf8 => sparse(Total::F32, 32, 64, FP8, BF8),
        MfmaOp::v_smfmac_f32_16x16x128_fp8_fp8 => sparse(Total::F32, 16, 128, FP8, FP8),
        MfmaOp::v_smfmac_f32_16x16x64_fp8_fp8 => sparse(Total::F32, 16, 64, FP8, FP8),
        MfmaOp::v_smfmac_f32_32x32x32_fp8_fp8 => sparse(Total::F32, 32, 32, FP8, FP8),
        MfmaOp::v_smfmac_f32_32x32x64_fp8_fp8 => sparse(Total::F32, 32, 64, FP8, FP8),
        MfmaOp::v_smfmac_i32_16x16x128_i8 => sparse(Total::I32, 16, 128, I8, I8),
        MfmaOp::v_smfmac_i32_16x16x64_i8 => sparse(Total::I32, 16, 64, I8, I8),
        MfmaOp::v_smfmac_i32_32x32x32_i8 => sparse(Total::I32, 32, 32, I8, I8),
        MfmaOp::v_smfmac_i32_32x32x64_i8 => sparse(Total::I32, 32, 64, I8, I8),
        // The format is in the modifiers; this is the widest.
        MfmaOp::v_mfma_f32_16x16x128_f8f6f4 | MfmaOp::v_mfma_scale_f32_16x16x128_f8f6f4 => dense(Total::F32, 16, 128, 1, FP8, FP8),
        MfmaOp::v_mfma_f32_32x32x64_f8f6f4 | MfmaOp::v_mfma_scale_f32_32x32x64_f8f6f4 => dense(Total::F32, 32, 64, 1, FP8, FP8),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes() {
        let made = Mfma::of(MfmaOp::v_mfma_f32_32x32x2bf16, Gfx::Gfx908);
        assert_eq!((made.size, made.depth, made.blocks, made.a), (32, 2, 2, Factor::Bf16));
        let eight = MfmaOp::v_smfmac_f32_16x16x64_fp8_bf8;
        assert_eq!(Mfma::of(eight, Gfx::Gfx940).a, Factor::Fp8Fnuz);
        assert_eq!(Mfma::of(eight, Gfx::Gfx950).b, Factor::Bf8);
    }

    /// As LLVM counts them.
    #[test]
    fn passes() {
        for (op, generation, passes) in [
            (MfmaOp::v_mfma_f32_32x32x8_f16, Gfx::Gfx90a, 16),
            (MfmaOp::v_mfma_f32_32x32x8_f16, Gfx::Gfx940, 8),
            (MfmaOp::v_mfma_f32_16x16x4_4b_f16, Gfx::Gfx940, 8),
            (MfmaOp::v_mfma_f32_16x16x4_f32, Gfx::Gfx940, 8),
            (MfmaOp::v_mfma_f32_16x16x8_xf32, Gfx::Gfx940, 4),
            (MfmaOp::v_mfma_f32_32x32x1_2b_f32, Gfx::Gfx940, 16),
            (MfmaOp::v_mfma_f32_4x4x4_16b_f16, Gfx::Gfx908, 2),
            (MfmaOp::v_mfma_f64_16x16x4_f64, Gfx::Gfx90a, 8),
            (MfmaOp::v_mfma_f64_16x16x4_f64, Gfx::Gfx950, 16),
            (MfmaOp::v_smfmac_i32_32x32x64_i8, Gfx::Gfx950, 8),
            (MfmaOp::v_mfma_i32_16x16x64_i8, Gfx::Gfx950, 4),
        ] {
            assert_eq!(Mfma::of(op, generation).passes(generation), passes, "{op:?} {generation}");
        }
    }
}
