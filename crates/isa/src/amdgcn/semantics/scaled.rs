//! Conversions of CDNA 4 between numbers of 8 bits and less and wider ones, with a scale: up to 32 elements of a lane.
//!
//! A scale is the exponent of a float of 32 bits, its sign and fraction do not count; all ones are a NaN. Numbers become smaller
//! by it on their way to small formats, and greater on their way back. It never knows registers: elements are bits one after
//! the other. Facts: AMD's CDNA 4 manual; of single numbers see [`super::narrow`].

use super::mfma::Factor;
use super::narrow::{self, Scale};
use super::soft::{self, SoftFormat};
use super::{Mode, integer};
use crate::amdgcn::opcode::ScaledOp;

/// What an instruction converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scaled {
    /// Elements of the source.
    pub from: Factor,
    /// Elements of the result.
    pub to: Factor,
    /// How many there are.
    pub count: u8,
    /// They are rounded by random bits, which are a source of their own.
    pub stochastic: bool,
    /// Two sources have an element in turn.
    pub two_sources: bool,
}

const fn of(from: Factor, to: Factor, count: u8) -> Scaled {
    Scaled { from, to, count, stochastic: false, two_sources: false }
}

/// The wider formats.
fn wide(factor: Factor) -> Option<SoftFormat> {
    match factor {
        Factor::F32 => Some(soft::F32),
        Factor::F16 => Some(soft::F16),
        Factor::Bf16 => Some(soft::BF16),
        _ => None,
    }
}

impl Scaled {
    const fn stochastic(self) -> Scaled {
        Scaled { stochastic: true, ..self }
    }

    const fn of_two(self) -> Scaled {
        Scaled { two_sources: true, ..self }
    }

    /// The conversion of a row.
    #[rustfmt::skip]
    pub fn of_row(op: ScaledOp) -> Scaled {
        match op {
            ScaledOp::v_cvt_scalef32_pk_fp8_f32 => of(Factor::F32, Factor::Fp8, 2).of_two(),
            ScaledOp::v_cvt_scalef32_pk_bf8_f32 => of(Factor::F32, Factor::Bf8, 2).of_two(),
            ScaledOp::v_cvt_scalef32_pk_fp4_f32 => of(Factor::F32, Factor::Fp4, 2).of_two(),
            ScaledOp::v_cvt_scalef32_sr_fp8_f32 => of(Factor::F32, Factor::Fp8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_bf8_f32 => of(Factor::F32, Factor::Bf8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_pk_f32_fp8 => of(Factor::Fp8, Factor::F32, 2),
            ScaledOp::v_cvt_scalef32_pk_f32_bf8 => of(Factor::Bf8, Factor::F32, 2),
            ScaledOp::v_cvt_scalef32_pk_f32_fp4 => of(Factor::Fp4, Factor::F32, 2),
            ScaledOp::v_cvt_scalef32_f32_fp8 => of(Factor::Fp8, Factor::F32, 1),
            ScaledOp::v_cvt_scalef32_f32_bf8 => of(Factor::Bf8, Factor::F32, 1),
            ScaledOp::v_cvt_scalef32_pk_f16_fp8 => of(Factor::Fp8, Factor::F16, 2),
            ScaledOp::v_cvt_scalef32_pk_f16_bf8 => of(Factor::Bf8, Factor::F16, 2),
            ScaledOp::v_cvt_scalef32_f16_fp8 => of(Factor::Fp8, Factor::F16, 1),
            ScaledOp::v_cvt_scalef32_f16_bf8 => of(Factor::Bf8, Factor::F16, 1),
            ScaledOp::v_cvt_scalef32_pk_f16_fp4 => of(Factor::Fp4, Factor::F16, 2),
            ScaledOp::v_cvt_scalef32_pk_bf16_fp4 => of(Factor::Fp4, Factor::Bf16, 2),
            ScaledOp::v_cvt_scalef32_pk_bf16_fp8 => of(Factor::Fp8, Factor::Bf16, 2),
            ScaledOp::v_cvt_scalef32_pk_bf16_bf8 => of(Factor::Bf8, Factor::Bf16, 2),
            ScaledOp::v_cvt_scalef32_sr_pk_fp4_f32 => of(Factor::F32, Factor::Fp4, 2).stochastic(),
            ScaledOp::v_cvt_scalef32_pk_fp8_f16 => of(Factor::F16, Factor::Fp8, 2),
            ScaledOp::v_cvt_scalef32_pk_bf8_f16 => of(Factor::F16, Factor::Bf8, 2),
            ScaledOp::v_cvt_scalef32_pk_fp8_bf16 => of(Factor::Bf16, Factor::Fp8, 2),
            ScaledOp::v_cvt_scalef32_pk_bf8_bf16 => of(Factor::Bf16, Factor::Bf8, 2),
            ScaledOp::v_cvt_scalef32_sr_fp8_f16 => of(Factor::F16, Factor::Fp8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_bf8_f16 => of(Factor::F16, Factor::Bf8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_fp8_bf16 => of(Factor::Bf16, Factor::Fp8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_bf8_bf16 => of(Factor::Bf16, Factor::Bf8, 1).stochastic(),
            ScaledOp::v_cvt_scalef32_pk_fp4_f16 => of(Factor::F16, Factor::Fp4, 2),
            ScaledOp::v_cvt_scalef32_pk_fp4_bf16 => of(Factor::Bf16, Factor::Fp4, 2),
            ScaledOp::v_cvt_scalef32_sr_pk_fp4_f16 => of(Factor::F16, Factor::Fp4, 2).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_pk_fp4_bf16 => of(Factor::Bf16, Factor::Fp4, 2).stochastic(),
            ScaledOp::v_cvt_scalef32_2xpk16_fp6_f32 => of(Factor::F32, Factor::Fp6, 32).of_two(),
            ScaledOp::v_cvt_scalef32_2xpk16_bf6_f32 => of(Factor::F32, Factor::Bf6, 32).of_two(),
            ScaledOp::v_cvt_scalef32_sr_pk32_fp6_f32 => of(Factor::F32, Factor::Fp6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_pk32_bf6_f32 => of(Factor::F32, Factor::Bf6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_pk32_f32_fp6 => of(Factor::Fp6, Factor::F32, 32),
            ScaledOp::v_cvt_scalef32_pk32_f32_bf6 => of(Factor::Bf6, Factor::F32, 32),
            ScaledOp::v_cvt_scalef32_pk32_fp6_f16 => of(Factor::F16, Factor::Fp6, 32),
            ScaledOp::v_cvt_scalef32_pk32_fp6_bf16 => of(Factor::Bf16, Factor::Fp6, 32),
            ScaledOp::v_cvt_scalef32_pk32_bf6_f16 => of(Factor::F16, Factor::Bf6, 32),
            ScaledOp::v_cvt_scalef32_pk32_bf6_bf16 => of(Factor::Bf16, Factor::Bf6, 32),
            ScaledOp::v_cvt_scalef32_sr_pk32_fp6_f16 => of(Factor::F16, Factor::Fp6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_pk32_fp6_bf16 => of(Factor::Bf16, Factor::Fp6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_pk32_bf6_f16 => of(Factor::F16, Factor::Bf6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_sr_pk32_bf6_bf16 => of(Factor::Bf16, Factor::Bf6, 32).stochastic(),
            ScaledOp::v_cvt_scalef32_pk32_f16_fp6 => of(Factor::Fp6, Factor::F16, 32),
            ScaledOp::v_cvt_scalef32_pk32_bf16_fp6 => of(Factor::Fp6, Factor::Bf16, 32),
            ScaledOp::v_cvt_scalef32_pk32_f16_bf6 => of(Factor::Bf6, Factor::F16, 32),
            ScaledOp::v_cvt_scalef32_pk32_bf16_bf6 => of(Factor::Bf6, Factor::Bf16, 32),
        }
    }

    /// Bits of the result.
    pub fn result_bits(&self) -> u16 {
        u16::from(self.count) * u16::from(self.to.bits())
    }

    /// Bits of the elements of each source.
    pub fn source_bits(&self) -> u16 {
        u16::from(self.count) * u16::from(self.from.bits()) / if self.two_sources { 2 } else { 1 }
    }

    /// Converts elements one after the other: each from its number, the next random bits from those before.
    pub fn convert(
        &self,
        mode: &Mode,
        scale: u32,
        random: u32,
        element: impl Fn(u8) -> u64,
        mut put: impl FnMut(u8, u64),
    ) {
        let scale = scale_of(scale);
        let mut random = random;
        for number in 0..self.count {
            let bits = element(number);
            let made = match (wide(self.from), wide(self.to)) {
                (Some(from), _) => {
                    let random = self.stochastic.then_some(random);
                    narrow::narrow(mode, from, bits, self.to, scale, random).into()
                }
                (None, Some(to)) => narrow::widen(self.from, bits, to, scale),
                // No row has two small formats.
                (None, None) => bits,
            };
            put(number, made);
            random = integer::prng(random);
        }
    }
}

/// The power of two of a scale.
fn scale_of(bits: u32) -> Scale {
    let exponent = (bits >> 23 & 0xff) as i32;
    (exponent != 0xff).then_some(exponent - 127)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;

    fn run(op: ScaledOp, scale: f32, random: u32, elements: &[u64]) -> Vec<u64> {
        let m = Mode::graphics(Gfx::Gfx950);
        let mut made = Vec::new();
        let element = |n: u8| elements[usize::from(n) % elements.len()];
        Scaled::of_row(op).convert(&m, scale.to_bits(), random, element, |_, bits| made.push(bits));
        made
    }

    #[test]
    fn scales() {
        let f = |value: f32| u64::from(value.to_bits());
        assert_eq!(run(ScaledOp::v_cvt_scalef32_pk_fp4_f32, 2.0, 0, &[f(6.0), f(-1.0)]), [5, 9]);
        // Only the exponent counts.
        assert_eq!(run(ScaledOp::v_cvt_scalef32_pk_fp4_f32, -3.9, 0, &[f(6.0), f(-1.0)]), [5, 9]);
        assert_eq!(run(ScaledOp::v_cvt_scalef32_pk_f32_fp8, 0.25, 0, &[0x38, 0xb8]), [f(0.25), f(-0.25)]);
        // Too great for 16 bits, and no number.
        assert_eq!(run(ScaledOp::v_cvt_scalef32_pk_f16_fp4, 65536.0, 0, &[2, 15]), [0x7c00, 0xfc00]);
        assert_eq!(run(ScaledOp::v_cvt_scalef32_f32_bf8, f32::NAN, 0, &[0x3c]), [0x7fc0_0000]);
        assert_eq!(run(ScaledOp::v_cvt_scalef32_pk32_bf6_f16, 1.0, 0, &[0x3c00]).len(), 32);
    }

    #[test]
    fn random_bits_go_on() {
        // A quarter of the way up: rounded up by three quarters of the random bits or more.
        let value = u64::from(1.125f32.to_bits());
        let made = run(ScaledOp::v_cvt_scalef32_sr_pk_fp4_f32, 1.0, 0xc000_0000, &[value]);
        // The next random bits are 0x800000c5, which are not enough.
        assert_eq!(made, [3, 2]);
    }
}
