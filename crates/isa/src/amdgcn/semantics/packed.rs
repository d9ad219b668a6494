//! Packed and mixed precision operations, and dot products.
//!
//! Packed sources come with the halves that `op_sel` and `op_sel_hi` chose, sources of mixed precision as 32 bits.

use super::convert;
use super::float::{self, Width};
use super::integer as int;
use super::lane::{lanes, u3};
use super::mfma::Factor;
use super::vector_float::dot2_f32;
use super::{Mode, Op, minmax, narrow};
use crate::amdgcn::model::Gfx;
use crate::amdgcn::opcode::PackedOp;

const F16: &Width = &Width::F16;
const F32: &Width = &Width::F32;

/// A function of unsigned halves, applied to both.
macro_rules! pk {
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(All, $m, a, b, c, {
            let half = |$a: u32, $b: u32, $c: u32| -> u32 { ($e) as u32 & 0xffff };
            half(a & 0xffff, b & 0xffff, c & 0xffff) | half(a >> 16, b >> 16, c >> 16) << 16
        })
    };
}

/// As `pk`, of signed halves.
macro_rules! pki {
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        pk!(|$m, a, b, c| {
            let ($a, $b, $c) = (i64::from(a as i16), i64::from(b as i16), i64::from(c as i16));
            $e
        })
    };
}

/// As `pk`, of wide values.
macro_rules! pkf {
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        pk!(|$m, a, b, c| {
            let ($a, $b, $c) = (u64::from(a), u64::from(b), u64::from(c));
            $e
        })
    };
}

/// A function of 32 bits, applied to both dwords.
fn pair_f32(a: u64, b: u64, c: u64, f: impl Fn(u32, u32, u32) -> u32) -> u64 {
    let high = f((a >> 32) as u32, (b >> 32) as u32, (c >> 32) as u32);
    u64::from(f(a as u32, b as u32, c as u32)) | u64::from(high) << 32
}

/// The sum of products of `count` parts of `bits` each, and a third source.
fn dot(bits: u32, signed: [bool; 2], sources: [u32; 3], result_signed: bool, clamp: bool) -> u32 {
    let [a, b, c] = sources;
    let part = |value: u32, at: u32, signed: bool| {
        let raw = value >> (at * bits);
        if signed { i64::from(int::sext(raw, bits)) } else { i64::from(raw & !(u32::MAX << bits)) }
    };
    let sum: i64 = (0..32 / bits).map(|at| part(a, at, signed[0]) * part(b, at, signed[1])).sum();
    if result_signed {
        int::signed(sum + i64::from(c as i32), 32, clamp)
    } else {
        int::unsigned(sum + i64::from(c), 32, clamp)
    }
}

/// Whether a mixed dot product takes its sources as signed.
fn signs(m: &Mode) -> [bool; 2] {
    [m.signs & 1 != 0, m.signs & 2 != 0]
}

fn dot4_small(m: &Mode, kinds: [Factor; 2], a: u32, b: u32, c: u32) -> u32 {
    (0..4).fold(c, |sum, at| {
        let wide = |factor, value: u32| narrow::to_f32(factor, value >> (8 * at) & 0xff);
        float::fma_f32(m, wide(kinds[0], a), wide(kinds[1], b), sum)
    })
}

fn dot2_small(m: &Mode, width: &Width, a: u32, b: u32, c: u32) -> u32 {
    let wide = Width::F32;
    let c = convert::width(width, &wide, m, u64::from(c & 0xffff)) as u32;
    convert::width(&wide, width, m, dot2_f32(m, width, a, b, c).into()) as u32
}

/// A result of 32 bits in 16. If that of finite sources was too great even for 32, it is still too great, not infinite.
fn to_half(m: &Mode, bits: u32, sources: [u32; 3]) -> u32 {
    let infinite = |bits: &u32| bits & 0x7fff_ffff == 0x7f80_0000;
    let over = m.saturate_16 && infinite(&bits) && !sources.iter().any(infinite);
    convert::width(F32, F16, m, u64::from(bits) - u64::from(over)) as u32
}

/// The operation of a row.
pub(super) fn of(op: PackedOp) -> Op {
    match op {
        PackedOp::v_pk_add_u16 => pk!(|m, a, b, _c| int::unsigned(i64::from(a) + i64::from(b), 16, m.clamp)),
        PackedOp::v_pk_sub_u16 => pk!(|m, a, b, _c| int::unsigned(i64::from(a) - i64::from(b), 16, m.clamp)),
        PackedOp::v_pk_mul_lo_u16 => pk!(|_m, a, b, _c| a.wrapping_mul(b)),
        PackedOp::v_pk_mad_u16 => {
            pk!(|m, a, b, c| int::unsigned(i64::from(a) * i64::from(b) + i64::from(c), 16, m.clamp))
        }
        PackedOp::v_pk_min_u16 => pk!(|_m, a, b, _c| a.min(b)),
        PackedOp::v_pk_max_u16 => pk!(|_m, a, b, _c| a.max(b)),
        PackedOp::v_pk_lshlrev_b16 => pk!(|_m, a, b, _c| b << (a & 15)),
        PackedOp::v_pk_lshrrev_b16 => pk!(|_m, a, b, _c| b >> (a & 15)),
        PackedOp::v_pk_ashrrev_i16 => pki!(|_m, a, b, _c| b >> (a & 15)),
        PackedOp::v_pk_add_i16 => pki!(|m, a, b, _c| int::signed(a + b, 16, m.clamp)),
        PackedOp::v_pk_sub_i16 => pki!(|m, a, b, _c| int::signed(a - b, 16, m.clamp)),
        PackedOp::v_pk_mad_i16 => pki!(|m, a, b, c| int::signed(a * b + c, 16, m.clamp)),
        PackedOp::v_pk_min_i16 => pki!(|_m, a, b, _c| a.min(b)),
        PackedOp::v_pk_max_i16 => pki!(|_m, a, b, _c| a.max(b)),
        PackedOp::v_pk_add_f32 => Op::Wide(|m, a, b, _| pair_f32(a, b, 0, |a, b, _| float::add_f32(m, a, b))),
        PackedOp::v_pk_mul_f32 => Op::Wide(|m, a, b, _| pair_f32(a, b, 0, |a, b, _| float::mul_f32(m, a, b))),
        PackedOp::v_pk_fma_f32 => {
            Op::Wide(|m, a, b, c| pair_f32(a, b, c, |a, b, c| float::fma_f32(m, a, b, c)))
        }
        // `op_sel` has chosen a dword of each source: the lower result is of the first, the upper one of the second.
        PackedOp::v_pk_mov_b32 => Op::Wide(|_, a, b, _| a & 0xffff_ffff | b << 32),
        PackedOp::v_pk_add_f16 => pkf!(|m, a, b, _c| F16.add(m, a, b)),
        PackedOp::v_pk_mul_f16 => pkf!(|m, a, b, _c| F16.mul(m, a, b)),
        PackedOp::v_pk_fma_f16 | PackedOp::v_pk_fmac_f16 => pkf!(|m, a, b, c| F16.fma(m, a, b, c)),
        PackedOp::v_pk_min_f16 => pkf!(|m, a, b, _c| minmax::number(F16, m, a, b, false)),
        PackedOp::v_pk_max_f16 => pkf!(|m, a, b, _c| minmax::number(F16, m, a, b, true)),
        PackedOp::v_pk_minimum_f16 => pkf!(|m, a, b, _c| minmax::propagating(F16, m, a, b, false)),
        PackedOp::v_pk_minimum3_f16 => {
            pkf!(|m, a, b, c| {
                minmax::propagating(F16, m, minmax::propagating(F16, m, a, b, false), c, false)
            })
        }
        PackedOp::v_pk_maximum3_f16 => {
            pkf!(|m, a, b, c| minmax::propagating(F16, m, minmax::propagating(F16, m, a, b, true), c, true))
        }
        PackedOp::v_pk_maximum_f16 => pkf!(|m, a, b, _c| minmax::propagating(F16, m, a, b, true)),

        PackedOp::v_fma_mix_f32 => u3!(mode | m, a, b, c | float::fma_f32(m, a, b, c)),
        PackedOp::v_fma_mixlo_f16 | PackedOp::v_fma_mixhi_f16 => {
            u3!(mode | m, a, b, c | to_half(m, float::fma_f32(m, a, b, c), [a, b, c]))
        }
        PackedOp::v_mad_mix_f32 => u3!(mode | m, a, b, c | float::mad_f32(m, a, b, c)),
        PackedOp::v_mad_mixlo_f16 | PackedOp::v_mad_mixhi_f16 => {
            u3!(mode | m, a, b, c | to_half(m, float::mad_f32(m, a, b, c), [a, b, c]))
        }

        PackedOp::v_dot2_f32_f16 | PackedOp::v_dot2c_f32_f16 => {
            u3!(mode | m, a, b, c | dot2_f32(m, F16, a, b, c))
        }
        PackedOp::v_dot2c_f32_bf16 => u3!(mode | m, a, b, c | dot2_f32(m, &Width::BF16, a, b, c)),
        PackedOp::v_dot2_f32_bf16 => u3!(
            mode | m,
            a,
            b,
            c | {
                // CDNA 4 adds the third source last.
                if m.generation == Gfx::Gfx950 {
                    float::add_f32(m, dot2_f32(m, &Width::BF16, a, b, 0), c)
                } else {
                    dot2_f32(m, &Width::BF16, a, b, c)
                }
            }
        ),
        PackedOp::v_dot2_f16_f16 => u3!(mode | m, a, b, c | dot2_small(m, F16, a, b, c)),
        PackedOp::v_dot2_bf16_bf16 => u3!(mode | m, a, b, c | dot2_small(m, &Width::BF16, a, b, c)),
        PackedOp::v_dot2_i32_i16 | PackedOp::v_dot2c_i32_i16 => {
            u3!(mode | m, a, b, c | dot(16, [true; 2], [a, b, c], true, m.clamp))
        }
        PackedOp::v_dot2_u32_u16 => u3!(mode | m, a, b, c | dot(16, [false; 2], [a, b, c], false, m.clamp)),
        PackedOp::v_dot4_i32_i8 => u3!(mode | m, a, b, c | dot(8, [true; 2], [a, b, c], true, m.clamp)),
        PackedOp::v_dot4c_i32_i8 => u3!(mode | m, a, b, c | dot(8, [true; 2], [a, b, c], true, m.clamp)),
        PackedOp::v_dot4_u32_u8 => u3!(mode | m, a, b, c | dot(8, [false; 2], [a, b, c], false, m.clamp)),
        PackedOp::v_dot4_i32_iu8 => u3!(mode | m, a, b, c | dot(8, signs(m), [a, b, c], true, m.clamp)),
        PackedOp::v_dot8_i32_i4 | PackedOp::v_dot8c_i32_i4 => {
            u3!(mode | m, a, b, c | dot(4, [true; 2], [a, b, c], true, m.clamp))
        }
        PackedOp::v_dot8_u32_u4 => u3!(mode | m, a, b, c | dot(4, [false; 2], [a, b, c], false, m.clamp)),
        PackedOp::v_dot8_i32_iu4 => u3!(mode | m, a, b, c | dot(4, signs(m), [a, b, c], true, m.clamp)),
        PackedOp::v_dot4_f32_fp8_fp8 => {
            u3!(mode | m, a, b, c | dot4_small(m, [Factor::Fp8, Factor::Fp8], a, b, c))
        }
        PackedOp::v_dot4_f32_fp8_bf8 => {
            u3!(mode | m, a, b, c | dot4_small(m, [Factor::Fp8, Factor::Bf8], a, b, c))
        }
        PackedOp::v_dot4_f32_bf8_fp8 => {
            u3!(mode | m, a, b, c | dot4_small(m, [Factor::Bf8, Factor::Fp8], a, b, c))
        }
        PackedOp::v_dot4_f32_bf8_bf8 => {
            u3!(mode | m, a, b, c | dot4_small(m, [Factor::Bf8, Factor::Bf8], a, b, c))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(op: PackedOp, m: &Mode, a: u32, b: u32, c: u32) -> u32 {
        let Op::Lane(lane) = of(op) else { panic!("{op:?}") };
        (lane.one)(m, a, b, c)
    }

    #[test]
    fn halves_apart() {
        let m = Mode::graphics(Gfx::Gfx9);
        assert_eq!(eval(PackedOp::v_pk_add_u16, &m, 0xffff_0001, 0x0001_0001, 0), 2);
        assert_eq!(
            eval(PackedOp::v_pk_add_u16, &Mode { clamp: true, ..m }, 0xffff_0001, 0x0001_0001, 0),
            0xffff_0002
        );
        assert_eq!(eval(PackedOp::v_pk_ashrrev_i16, &m, 0x0001_000f, 0x8000_8000, 0), 0xc000_ffff);
        assert_eq!(eval(PackedOp::v_pk_fma_f16, &m, 0x3c00_4000, 0x4000_4000, 0x3c00_0000), 0x4200_4400);
    }

    #[test]
    fn dot_products() {
        let m = Mode::graphics(Gfx::Gfx10_3);
        assert_eq!(eval(PackedOp::v_dot4_i32_i8, &m, 0xff01_02ff, 0x0101_0101, 10), 11);
        assert_eq!(eval(PackedOp::v_dot4_u32_u8, &m, 0xff01_02ff, 0x0101_0101, 10), 523);
        assert_eq!(eval(PackedOp::v_dot8_i32_i4, &m, 0xffff_ffff, 0x1111_1111, 0), -8i32 as u32);
        assert_eq!(
            eval(PackedOp::v_dot2_f32_f16, &m, 0x4000_3c00, 0x4000_3c00, 1f32.to_bits()),
            6f32.to_bits()
        );
        let one = Mode { signs: 1, ..m };
        assert_eq!(eval(PackedOp::v_dot4_i32_iu8, &one, 0x0000_00ff, 0x0000_00ff, 0), -255i32 as u32);
    }
}
