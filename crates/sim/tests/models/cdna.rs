//! Models of operations that only CDNA has.

use super::{Model, f, h, s};

/// Two singles, each by a function.
fn singles([a, b, c]: [u64; 3], of: impl Fn(f32, f32, f32) -> f32) -> u64 {
    f(of(s(a), s(b), s(c))) | f(of(s(a >> 32), s(b >> 32), s(c >> 32))) << 32
}

/// Two halves, each by a function.
fn halves(values: [u64; 3], of: impl Fn([u64; 3]) -> u64) -> u64 {
    of(values.map(|value| value & 0xffff)) | of(values.map(|value| value >> 16 & 0xffff)) << 16
}

/// The greatest or least of numbers of 16 bits, NaN if one is none. Of zeros the positive one is greater.
fn extreme(values: [u64; 3], greatest: bool) -> u64 {
    if values.iter().any(|bits| h(*bits).is_nan()) {
        return 0x7e00;
    }
    let order = |bits: &u64| (h(*bits) * 2f64.powi(24)) as i64 * 2 + i64::from(bits >> 15 == 0);
    let infinite =
        |bits: &u64| if h(*bits).is_infinite() { h(*bits).signum() as i64 * (1 << 62) } else { order(bits) };
    let chosen = if greatest {
        values.into_iter().max_by_key(infinite)
    } else {
        values.into_iter().min_by_key(infinite)
    };
    chosen.unwrap_or(0)
}

/// To the nearest number that is the upper half of one of 32 bits.
fn brain(bits: u64) -> u64 {
    let bits = bits as u32;
    if f32::from_bits(bits).is_nan() {
        return 0x7fc0;
    }
    u64::from((u64::from(bits) + 0x7fff + u64::from(bits >> 16 & 1)) as u32 >> 16)
}

fn byte(value: u64, by: u64, low: i32, high: i32) -> u64 {
    u64::from(((value as i32) >> (by & 31)).clamp(low, high) as u8)
}

fn part(value: u64, bits: u32, at: u32) -> i64 {
    ((value << (64 - bits * (at + 1))) as i64) >> (64 - bits)
}

fn dot([a, b, c]: [u64; 3], bits: u32) -> u64 {
    let sum: i64 = (0..32 / bits).map(|at| part(a, bits, at) * part(b, bits, at)).sum();
    (sum + i64::from(c as i32)) as u64
}

pub const MODELS: &[Model] = &[
    ("v_accvgpr_mov_b32", "i32", "i32", |[a, ..]| a),
    ("v_mov_b64", "i64", "i64", |[a, ..]| a),
    ("v_lshl_add_u64", "i64", "i64 i32 i64", |[a, b, c]| (a << (b & 7)).wrapping_add(c)),
    ("v_prng_b32", "i32", "i32", |[a, ..]| (a << 1) ^ ((a >> 31 & 1) * 0xc5)),
    ("v_ashr_pk_i8_i32", "i32", "i32 i32 i32", |[a, b, c]| {
        byte(a, c, -128, 127) | byte(b, c, -128, 127) << 8
    }),
    ("v_ashr_pk_u8_i32", "i32", "i32 i32 i32", |[a, b, c]| byte(a, c, 0, 255) | byte(b, c, 0, 255) << 8),
    ("v_dot2c_i32_i16", "i32", "i32 i32 i32", |v| dot(v, 16)),
    ("v_dot8c_i32_i4", "i32", "i32 i32 i32", |v| dot(v, 4)),
    ("v_fmac_f64", "f64", "f64 f64 f64", |v| {
        let [a, b, c] = v.map(f64::from_bits);
        a.mul_add(b, c).to_bits()
    }),
    ("v_pk_add_f32", "f32x2", "f32x2m f32x2m", |v| singles(v, |a, b, _| a + b)),
    ("v_pk_mul_f32", "f32x2", "f32x2m f32x2m", |v| singles(v, |a, b, _| a * b)),
    ("v_pk_fma_f32", "f32x2", "f32x2m f32x2m f32x2m", |v| singles(v, f32::mul_add)),
    ("v_pk_mov_b32", "i64", "i64 i64", |[a, b, _]| a & 0xffff_ffff | b << 32),
    ("v_pk_maximum3_f16", "f16x2", "f16x2 f16x2 f16x2", |v| halves(v, |v| extreme(v, true))),
    ("v_pk_minimum3_f16", "f16x2", "f16x2 f16x2 f16x2", |v| halves(v, |v| extreme(v, false))),
    ("v_cvt_f32_bf16", "f32", "i16", |[a, ..]| a << 16),
    ("v_cvt_pk_bf16_f32", "bf16x2", "f32 f32", |[a, b, _]| brain(a) | brain(b) << 16),
    ("v_cvt_pk_f16_f32", "f16x2", "f32 f32", |[a, b, _]| {
        super::to_h(s(a).into()) | super::to_h(s(b).into()) << 16
    }),
];
