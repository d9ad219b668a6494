//! Products of matrices that are spread over the lanes of a wave: where an element stands, and what an element of the result
//! is.
//!
//! Never registers of a wave: [`MatrixLayout`] gives lane, register and bit. Facts: the tables of AMD's RDNA 3 and RDNA 4 manuals
//! (matrix elements in VGPRs), AMD's matrix instruction calculator for the sparse indices. The order in which
//! products are added is not documented: here one after the other by rising K, each fused and rounded to the nearest
//! even in 32 bits with denormals; a result of 16 bits is rounded once more at the end. Integers are exact, and
//! clamped at the end, of sparse products also half way, as a public emulator (GoC) has it that was compared with a gfx1201.

use super::mfma::Factor;
use super::{Mode, float, narrow, soft};
use crate::amdgcn::model::Gfx;
use crate::amdgcn::opcode::MatrixOp;

/// What elements are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// IEEE 754, 16 bits.
    F16,
    /// The upper half of 32 bits.
    Bf16,
    /// 8 bits, 4 of them exponent.
    Fp8,
    /// 8 bits, 5 of them exponent.
    Bf8,
    /// Integers of so many bits, whose sign an instruction chooses.
    Integer(u8),
    /// IEEE 754, 32 bits.
    F32,
    /// Signed, 32 bits.
    I32,
}

impl ElementType {
    /// Width in bits.
    pub fn bits(self) -> u8 {
        match self {
            ElementType::F16 | ElementType::Bf16 => 16,
            ElementType::Fp8 | ElementType::Bf8 => 8,
            ElementType::Integer(bits) => bits,
            ElementType::F32 | ElementType::I32 => 32,
        }
    }

    /// Whether it is a float of 16 bits, whose sources have modifiers for each half of a register.
    pub fn is_half(self) -> bool {
        matches!(self, ElementType::F16 | ElementType::Bf16)
    }

    /// The sign's bit of a float.
    pub fn sign(self) -> u32 {
        1 << (self.bits() - 1)
    }

    /// As a float of 32 bits, or an integer of 32 bits with the sign that `signed` gives it.
    pub fn widen(self, value: u32, signed: bool) -> u32 {
        match self {
            ElementType::F16 => {
                soft::convert(soft::F16, soft::F32, (value & 0xffff).into(), soft::Env::IEEE) as u32
            }
            ElementType::Bf16 => value << 16,
            ElementType::Fp8 => narrow::to_f32(Factor::Fp8, value & 0xff),
            ElementType::Bf8 => narrow::to_f32(Factor::Bf8, value & 0xff),
            ElementType::Integer(bits) => {
                let up = 32 - u32::from(bits);
                if signed { ((value << up) as i32 >> up) as u32 } else { value << up >> up }
            }
            ElementType::F32 | ElementType::I32 => value,
        }
    }

    /// A sum of 32 bits as an element of the result.
    pub fn narrow(self, sum: u32) -> u32 {
        let to = match self {
            ElementType::F16 => soft::F16,
            ElementType::Bf16 => soft::BF16,
            _ => return sum,
        };
        soft::convert(soft::F32, to, sum.into(), soft::Env::IEEE) as u32
    }
}

/// What a matrix instruction multiplies: 16 rows of A by 16 columns of B.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Matrix {
    /// Elements of A.
    pub a: ElementType,
    /// Elements of B.
    pub b: ElementType,
    /// Elements of C and the result.
    pub result: ElementType,
    /// How many elements a row of A has.
    pub depth: u8,
    /// Of each four elements of A two are there.
    pub sparse: bool,
}

/// The operation of a row.
pub fn of(op: MatrixOp) -> Matrix {
    let dense = |result, depth, a, b| Matrix { a, b, result, depth, sparse: false };
    let sparse = |result, depth, a, b| Matrix { a, b, result, depth, sparse: true };
    match op {
        MatrixOp::v_wmma_bf16_16x16x16_bf16 => {
            dense(ElementType::Bf16, 16, ElementType::Bf16, ElementType::Bf16)
        }
        MatrixOp::v_wmma_f16_16x16x16_f16 => dense(ElementType::F16, 16, ElementType::F16, ElementType::F16),
        MatrixOp::v_wmma_f32_16x16x16_bf16 => {
            dense(ElementType::F32, 16, ElementType::Bf16, ElementType::Bf16)
        }
        MatrixOp::v_wmma_f32_16x16x16_bf8_bf8 => {
            dense(ElementType::F32, 16, ElementType::Bf8, ElementType::Bf8)
        }
        MatrixOp::v_wmma_f32_16x16x16_bf8_fp8 => {
            dense(ElementType::F32, 16, ElementType::Bf8, ElementType::Fp8)
        }
        MatrixOp::v_wmma_f32_16x16x16_f16 => dense(ElementType::F32, 16, ElementType::F16, ElementType::F16),
        MatrixOp::v_wmma_f32_16x16x16_fp8_bf8 => {
            dense(ElementType::F32, 16, ElementType::Fp8, ElementType::Bf8)
        }
        MatrixOp::v_wmma_f32_16x16x16_fp8_fp8 => {
            dense(ElementType::F32, 16, ElementType::Fp8, ElementType::Fp8)
        }
        MatrixOp::v_wmma_i32_16x16x16_iu4 => {
            dense(ElementType::I32, 16, ElementType::Integer(4), ElementType::Integer(4))
        }
        MatrixOp::v_wmma_i32_16x16x16_iu8 => {
            dense(ElementType::I32, 16, ElementType::Integer(8), ElementType::Integer(8))
        }
        MatrixOp::v_wmma_i32_16x16x32_iu4 => {
            dense(ElementType::I32, 32, ElementType::Integer(4), ElementType::Integer(4))
        }
        MatrixOp::v_swmmac_bf16_16x16x32_bf16 => {
            sparse(ElementType::Bf16, 32, ElementType::Bf16, ElementType::Bf16)
        }
        MatrixOp::v_swmmac_f16_16x16x32_f16 => {
            sparse(ElementType::F16, 32, ElementType::F16, ElementType::F16)
        }
        MatrixOp::v_swmmac_f32_16x16x32_bf16 => {
            sparse(ElementType::F32, 32, ElementType::Bf16, ElementType::Bf16)
        }
        MatrixOp::v_swmmac_f32_16x16x32_bf8_bf8 => {
            sparse(ElementType::F32, 32, ElementType::Bf8, ElementType::Bf8)
        }
        MatrixOp::v_swmmac_f32_16x16x32_bf8_fp8 => {
            sparse(ElementType::F32, 32, ElementType::Bf8, ElementType::Fp8)
        }
        MatrixOp::v_swmmac_f32_16x16x32_f16 => {
            sparse(ElementType::F32, 32, ElementType::F16, ElementType::F16)
        }
        MatrixOp::v_swmmac_f32_16x16x32_fp8_bf8 => {
            sparse(ElementType::F32, 32, ElementType::Fp8, ElementType::Bf8)
        }
        MatrixOp::v_swmmac_f32_16x16x32_fp8_fp8 => {
            sparse(ElementType::F32, 32, ElementType::Fp8, ElementType::Fp8)
        }
        MatrixOp::v_swmmac_i32_16x16x32_iu4 => {
            sparse(ElementType::I32, 32, ElementType::Integer(4), ElementType::Integer(4))
        }
        MatrixOp::v_swmmac_i32_16x16x32_iu8 => {
            sparse(ElementType::I32, 32, ElementType::Integer(8), ElementType::Integer(8))
        }
        MatrixOp::v_swmmac_i32_16x16x64_iu4 => {
            sparse(ElementType::I32, 64, ElementType::Integer(4), ElementType::Integer(4))
        }
    }
}

/// Where elements of a matrix stand: which bits of the index along a lane's registers choose the group of 16 lanes, and which
/// the place in the lane. The other index is the lane in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatrixLayout {
    groups: &'static [u8],
    places: &'static [u8],
}

fn gather(value: u8, bits: &[u8]) -> u8 {
    bits.iter().enumerate().fold(0, |all, (to, from)| all | (value >> from & 1) << to)
}

impl MatrixLayout {
    /// Lane, and place in the lane, of an element.
    pub fn place(&self, along: u8, across: u8) -> (usize, usize) {
        (
            usize::from(across & 15) + 16 * usize::from(gather(along, self.groups)),
            gather(along, self.places).into(),
        )
    }

    /// How many elements a lane holds.
    pub fn count(&self) -> usize {
        1 << self.places.len()
    }

    /// Of A or B as it is stored, `depth` elements of so many bits deep; `sparse`: B of a product whose A is sparse.
    pub fn factor(bits: u8, depth: u8, sparse: bool, generation: Gfx, wave64: bool) -> Option<MatrixLayout> {
        if generation < Gfx::Gfx12 {
            // Every group of 16 lanes holds all of it.
            return Some(MatrixLayout { groups: &[], places: &[0, 1, 2, 3] });
        }
        let (groups, places): (&[u8], &[u8]) = match (bits, depth, sparse, wave64) {
            (16, 16, _, false) => (&[2], &[0, 1, 3]),
            (16, 16, _, true) => (&[2, 3], &[0, 1]),
            (8, 16, _, false) => (&[3], &[0, 1, 2]),
            (8, 16, _, true) => (&[3, 2], &[0, 1]),
            // In waves of 64 lanes the upper ones hold nothing.
            (4, 16, ..) => (&[3], &[0, 1, 2]),
            (4, 32, _, false) | (8, 32, true, false) => (&[4], &[0, 1, 2, 3]),
            (4, 32, _, true) | (8, 32, true, true) => (&[4, 3], &[0, 1, 2]),
            // What follows from where A's elements stand: those of a lane meet those of the same lane.
            (16, 32, true, false) => (&[3], &[0, 1, 2, 4]),
            (16, 32, true, true) => (&[3, 4], &[0, 1, 2]),
            (4, 64, true, false) => (&[5], &[0, 1, 2, 3, 4]),
            (4, 64, true, true) => (&[5, 4], &[0, 1, 2, 3]),
            _ => return None,
        };
        Some(MatrixLayout { groups, places })
    }

    /// Of C and the result.
    pub fn result(generation: Gfx, wave64: bool) -> MatrixLayout {
        let (groups, places): (&[u8], &[u8]) = match (generation < Gfx::Gfx12, wave64) {
            (true, false) => (&[0], &[1, 2, 3]),
            (true, true) => (&[0, 1], &[2, 3]),
            (false, false) => (&[3], &[0, 1, 2]),
            (false, true) => (&[3, 2], &[0, 1]),
        };
        MatrixLayout { groups, places }
    }
}

/// An element of the result before it is narrowed: C, and the products of pairs of widened elements in their order.
pub fn element(
    matrix: &Matrix,
    generation: Gfx,
    c: u32,
    products: impl Iterator<Item = (u32, u32)>,
    clamp: bool,
) -> u32 {
    if matrix.result == ElementType::I32 {
        // What hardware adds at once, which matters where it clamps: of a sparse A first what stands before every eighth
        // place, then what stands behind it.
        let mut stages = [0i64; 2];
        for (at, (a, b)) in products.enumerate() {
            stages[usize::from(matrix.sparse) & at >> 3] += i64::from(a as i32) * i64::from(b as i32);
        }
        let limit = |sum: i64| if clamp { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
        return limit(limit(i64::from(c as i32) + stages[0]) + stages[1]) as u32;
    }
    // Nearest even, denormals everywhere.
    let mode = Mode::from_bits(0xf0, generation);
    products.fold(c, |sum, (a, b)| float::fma_f32(&mode, a, b, sum))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let matrix = of(MatrixOp::v_swmmac_f32_16x16x32_fp8_bf8);
        assert_eq!(
            (matrix.a, matrix.b, matrix.result),
            (ElementType::Fp8, ElementType::Bf8, ElementType::F32)
        );
        assert_eq!((matrix.depth, matrix.sparse), (32, true));
        assert_eq!(of(MatrixOp::v_wmma_i32_16x16x16_iu4).b, ElementType::Integer(4));
    }

    /// Every place is taken once, but for copies.
    #[test]
    fn layouts_are_one_to_one() {
        for generation in [Gfx::Gfx11, Gfx::Gfx12] {
            for wave64 in [false, true] {
                for (bits, depth, sparse) in [
                    (16, 16, false),
                    (8, 16, false),
                    (4, 16, false),
                    (4, 32, false),
                    (16, 32, true),
                    (8, 32, true),
                    (4, 32, true),
                    (4, 64, true),
                ] {
                    if generation < Gfx::Gfx12 && depth > 16 {
                        continue;
                    }
                    let layout =
                        MatrixLayout::factor(bits, depth, sparse, generation, wave64).expect("known");
                    let mut seen = std::collections::HashSet::new();
                    for along in 0..depth {
                        for across in 0..16 {
                            let (lane, place) = layout.place(along, across);
                            assert!(lane < if wave64 { 64 } else { 32 } && place < layout.count());
                            assert!(seen.insert((lane, place)), "{bits} {depth} {along} {across}");
                        }
                    }
                }
                let layout = MatrixLayout::result(generation, wave64);
                let mut seen: Vec<_> = (0..=255u8).map(|n| layout.place(n >> 4, n & 15)).collect();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), 256);
            }
        }
    }

    #[test]
    fn halves_round_once_more() {
        let matrix = of(MatrixOp::v_wmma_f16_16x16x16_f16);
        let one = ElementType::F16.widen(0x3c00, false);
        assert_eq!(one, 1f32.to_bits());
        let sum = element(&matrix, Gfx::Gfx11, 2f32.to_bits(), [(one, one); 3].into_iter(), false);
        assert_eq!(matrix.result.narrow(sum), 0x4500);
        assert_eq!(ElementType::Integer(4).widen(0xf, true), u32::MAX);
    }
}
