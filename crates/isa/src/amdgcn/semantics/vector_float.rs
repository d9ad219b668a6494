//! Floating-point operations of the vector ALU and conversions.

use super::convert::{self, Whole};
use super::float::{self, Width};
use super::lane::{lanes, u1, u2, u3};
use super::mfma::Factor;
use super::soft;
use super::{Mode, Op, div, minmax, narrow, trans};
use crate::amdgcn::opcode::{ConvertOp, FloatOp, MinmaxOp, TranscendentalOp};

const F16: &Width = &Width::F16;
const F32: &Width = &Width::F32;
const F64: &Width = &Width::F64;

/// One source of 16 bits, in a function of wide values.
macro_rules! h1 {
    ($f:expr) => {
        u1!(mode | m, a | $f(F16, m, u64::from(a & 0xffff)) as u32)
    };
}

/// One source of 32 bits, in a function of wide values.
macro_rules! s1 {
    ($f:expr) => {
        u1!(mode | m, a | $f(F32, m, a.into()) as u32)
    };
}

/// One source of 64 bits.
macro_rules! d1 {
    ($f:expr) => {
        Op::Wide(|m, a, _, _| $f(F64, m, a))
    };
}

/// Two sources of 16 bits.
macro_rules! h2 {
    (|$m:ident, $a:ident, $b:ident| $e:expr) => {
        lanes!(All, $m, a, b, _c, {
            let ($a, $b) = (u64::from(a & 0xffff), u64::from(b & 0xffff));
            ($e) as u32
        })
    };
}

/// Three sources of 16 bits.
macro_rules! h3 {
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        lanes!(All, $m, a, b, c, {
            let ($a, $b, $c) = (u64::from(a & 0xffff), u64::from(b & 0xffff), u64::from(c & 0xffff));
            ($e) as u32
        })
    };
}

/// Three sources of 64 bits, of which a width's function takes some.
macro_rules! d3 {
    (|$m:ident, $a:ident, $b:ident, $c:ident| $e:expr) => {
        Op::Wide(|$m, $a, $b, $c| $e)
    };
}

fn int32(m: &Mode, bits: u32, whole: Whole) -> u32 {
    convert::to_integer(F32, m, bits.into(), whole, i32::MIN.into(), i32::MAX.into()) as u32
}

/// The face of a cube: x, -x, y, -y, z, -z, and whether its axis is negative.
fn face(x: u32, y: u32, z: u32) -> (u32, bool) {
    let [x, y, z] = [x, y, z].map(f32::from_bits);
    let (axis, value) = if z.abs() >= x.abs() && z.abs() >= y.abs() {
        (2, z)
    } else if y.abs() >= x.abs() {
        (1, y)
    } else {
        (0, x)
    };
    (axis, value < 0.0)
}

/// What is asked of a cube: the face, the coordinates in it, the major axis.
#[derive(Clone, Copy)]
enum CubePart {
    Face,
    S,
    T,
    Major,
}

fn cube(x: u32, y: u32, z: u32, part: CubePart) -> u32 {
    let (axis, negative) = face(x, y, z);
    let [x, y, z] = [x, y, z].map(f32::from_bits);
    let signed = |value: f32, minus: bool| if minus { -value } else { value };
    let value = match (part, axis) {
        (CubePart::Face, _) => (axis * 2 + u32::from(negative)) as f32,
        (CubePart::S, 2) => signed(x, negative),
        (CubePart::S, 1) => x,
        (CubePart::S, _) => signed(z, !negative),
        (CubePart::T, 1) => signed(z, negative),
        (CubePart::T, _) => -y,
        (_, 2) => 2.0 * z,
        (_, 1) => 2.0 * y,
        _ => 2.0 * x,
    };
    value.to_bits()
}

fn flush_pair(m: &Mode, a: u32, b: u32) -> u32 {
    let half = |bits: u32| F16.input(m, u64::from(bits & 0xffff)) as u32;
    half(a) | half(b) << 16
}

fn mad_legacy(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    let flushing = Mode { denorm_in_32: false, denorm_out_32: false, ..*m };
    float::add_f32(&flushing, float::mul_legacy_f32(&flushing, a, b), c)
}

fn fma_legacy(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    if float::zero_wins(m, a, b) { float::add_f32(m, 0, c) } else { float::fma_f32(m, a, b, c) }
}

fn mullit(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    let least = (-f32::MAX).to_bits();
    let (y, z) = (f32::from_bits(b), f32::from_bits(c));
    if b == least || y == f32::NEG_INFINITY || y.is_nan() || z <= 0.0 || z.is_nan() {
        least
    } else {
        float::mul_legacy_f32(m, a, b)
    }
}

/// A number as a byte, towards zero and within bounds.
fn byte_of_f32(m: &Mode, bits: u32) -> u32 {
    convert::to_integer(F32, m, bits.into(), Whole::Truncate, 0, 255) as u32
}

/// Puts a byte into its place in another value.
fn insert_byte(into: u32, at: u32, byte: u32) -> u32 {
    let shift = (at & 3) * 8;
    into & !(0xff << shift) | byte << shift
}

/// Sums, products, divisions.
pub(super) fn float(op: FloatOp) -> Op {
    match op {
        FloatOp::v_add_f32 => u2!(mode | m, a, b | float::add_f32(m, a, b)),
        FloatOp::v_sub_f32 => u2!(mode | m, a, b | float::add_f32(m, a, b ^ 1 << 31)),
        FloatOp::v_subrev_f32 => u2!(mode | m, a, b | float::add_f32(m, b, a ^ 1 << 31)),
        FloatOp::v_mul_f32 => u2!(mode | m, a, b | float::mul_f32(m, a, b)),
        FloatOp::v_mul_legacy_f32 => u2!(mode | m, a, b | float::mul_legacy_f32(m, a, b)),
        FloatOp::v_fma_f32 | FloatOp::v_fmac_f32 | FloatOp::v_fmaak_f32 | FloatOp::v_fmamk_f32 => {
            u3!(mode | m, a, b, c | float::fma_f32(m, a, b, c))
        }
        FloatOp::v_mad_f32 | FloatOp::v_mac_f32 | FloatOp::v_madak_f32 | FloatOp::v_madmk_f32 => {
            u3!(mode | m, a, b, c | float::mad_f32(m, a, b, c))
        }
        FloatOp::v_mad_legacy_f32 | FloatOp::v_mac_legacy_f32 => {
            u3!(mode | m, a, b, c | mad_legacy(m, a, b, c))
        }
        FloatOp::v_fma_legacy_f32 | FloatOp::v_fmac_legacy_f32 => {
            u3!(mode | m, a, b, c | fma_legacy(m, a, b, c))
        }
        FloatOp::v_mullit_f32 => u3!(mode | m, a, b, c | mullit(m, a, b, c)),
        FloatOp::v_add_f16 => h2!(|m, a, b| F16.add(m, a, b)),
        FloatOp::v_sub_f16 => h2!(|m, a, b| F16.add(m, a, F16.neg(b))),
        FloatOp::v_subrev_f16 => h2!(|m, a, b| F16.add(m, b, F16.neg(a))),
        FloatOp::v_mul_f16 => h2!(|m, a, b| F16.mul(m, a, b)),
        FloatOp::v_fma_f16
        | FloatOp::v_fmac_f16
        | FloatOp::v_fmaak_f16
        | FloatOp::v_fmamk_f16
        | FloatOp::v_fma_legacy_f16 => {
            h3!(|m, a, b, c| F16.fma(m, a, b, c))
        }
        FloatOp::v_mad_f16
        | FloatOp::v_mac_f16
        | FloatOp::v_madak_f16
        | FloatOp::v_madmk_f16
        | FloatOp::v_mad_legacy_f16 => {
            h3!(|m, a, b, c| F16.mad(m, a, b, c))
        }
        FloatOp::v_add_f64 => d3!(|m, a, b, _c| F64.add(m, a, b)),
        FloatOp::v_mul_f64 => d3!(|m, a, b, _c| F64.mul(m, a, b)),
        FloatOp::v_fma_f64 | FloatOp::v_fmac_f64 => d3!(|m, a, b, c| F64.fma(m, a, b, c)),
        FloatOp::v_cubeid_f32 => u3!(|a, b, c| cube(a, b, c, CubePart::Face)),
        FloatOp::v_cubesc_f32 => u3!(|a, b, c| cube(a, b, c, CubePart::S)),
        FloatOp::v_cubetc_f32 => u3!(|a, b, c| cube(a, b, c, CubePart::T)),
        FloatOp::v_cubema_f32 => u3!(|a, b, c| cube(a, b, c, CubePart::Major)),
        FloatOp::v_div_scale_f32 => Op::WideCarry(div::scale_f32),
        FloatOp::v_div_scale_f64 => Op::WideCarry(div::scale_f64),
        FloatOp::v_div_fmas_f32 => Op::DivFmas(div::fmas_f32),
        FloatOp::v_div_fmas_f64 => Op::DivFmas(div::fmas_f64),
        FloatOp::v_div_fixup_f16 | FloatOp::v_div_fixup_legacy_f16 => {
            h3!(|m, a, b, c| div::fixup_f16(m, a, b, c))
        }
        FloatOp::v_div_fixup_f32 => {
            u3!(mode | m, a, b, c | div::fixup_f32(m, a.into(), b.into(), c.into()) as u32)
        }
        FloatOp::v_div_fixup_f64 => d3!(|m, a, b, c| div::fixup_f64(m, a, b, c)),
        FloatOp::v_ldexp_f16 => lanes!(
            All,
            m,
            a,
            b,
            _c,
            convert::ldexp(F16, m, u64::from(a & 0xffff), i32::from(b as i16)) as u32
        ),
        FloatOp::v_ldexp_f32 => u2!(mode | m, a, b | convert::ldexp(F32, m, a.into(), b as i32) as u32),
        FloatOp::v_ldexp_f64 => d3!(|m, a, b, _c| convert::ldexp(F64, m, a, b as i32)),
        FloatOp::v_pack_b32_f16 => u2!(mode | m, a, b | flush_pair(m, a, b)),
    }
}

/// Minima, maxima, medians.
pub(super) fn minmax(op: MinmaxOp) -> Op {
    use minmax::{legacy_f32, median, median_f32, number, number_f32, propagating};
    match op {
        MinmaxOp::v_min_f32 => u2!(mode | m, a, b | number_f32(m, a, b, false)),
        MinmaxOp::v_max_f32 => u2!(mode | m, a, b | number_f32(m, a, b, true)),
        MinmaxOp::v_min_legacy_f32 => u2!(|a, b| legacy_f32(a, b, false)),
        MinmaxOp::v_max_legacy_f32 => u2!(|a, b| legacy_f32(a, b, true)),
        MinmaxOp::v_min3_f32 => u3!(mode | m, a, b, c | number_f32(m, number_f32(m, a, b, false), c, false)),
        MinmaxOp::v_max3_f32 => u3!(mode | m, a, b, c | number_f32(m, number_f32(m, a, b, true), c, true)),
        MinmaxOp::v_maxmin_f32 => u3!(mode | m, a, b, c | number_f32(m, number_f32(m, a, b, true), c, false)),
        MinmaxOp::v_minmax_f32 => u3!(mode | m, a, b, c | number_f32(m, number_f32(m, a, b, false), c, true)),
        MinmaxOp::v_med3_f32 => u3!(mode | m, a, b, c | median_f32(m, a, b, c)),
        MinmaxOp::v_min_f16 => h2!(|m, a, b| number(F16, m, a, b, false)),
        MinmaxOp::v_max_f16 => h2!(|m, a, b| number(F16, m, a, b, true)),
        MinmaxOp::v_min3_f16 => h3!(|m, a, b, c| number(F16, m, number(F16, m, a, b, false), c, false)),
        MinmaxOp::v_max3_f16 => h3!(|m, a, b, c| number(F16, m, number(F16, m, a, b, true), c, true)),
        MinmaxOp::v_maxmin_f16 => h3!(|m, a, b, c| number(F16, m, number(F16, m, a, b, true), c, false)),
        MinmaxOp::v_minmax_f16 => h3!(|m, a, b, c| number(F16, m, number(F16, m, a, b, false), c, true)),
        MinmaxOp::v_med3_f16 => h3!(|m, a, b, c| median(F16, m, a, b, c)),
        MinmaxOp::v_min_f64 => d3!(|m, a, b, _c| number(F64, m, a, b, false)),
        MinmaxOp::v_max_f64 => d3!(|m, a, b, _c| number(F64, m, a, b, true)),
        MinmaxOp::v_minimum_f32 => {
            u2!(mode | m, a, b | propagating(F32, m, a.into(), b.into(), false) as u32)
        }
        MinmaxOp::v_maximum_f32 => u2!(mode | m, a, b | propagating(F32, m, a.into(), b.into(), true) as u32),
        MinmaxOp::v_minimum_f16 => h2!(|m, a, b| propagating(F16, m, a, b, false)),
        MinmaxOp::v_maximum_f16 => h2!(|m, a, b| propagating(F16, m, a, b, true)),
        MinmaxOp::v_minimum_f64 => d3!(|m, a, b, _c| propagating(F64, m, a, b, false)),
        MinmaxOp::v_maximum_f64 => d3!(|m, a, b, _c| propagating(F64, m, a, b, true)),
        MinmaxOp::v_minimum3_f32 => u3!(mode | m, a, b, c | propagating3(F32, m, [a, b, c], false, false)),
        MinmaxOp::v_maximum3_f32 => u3!(mode | m, a, b, c | propagating3(F32, m, [a, b, c], true, true)),
        MinmaxOp::v_minimummaximum_f32 => {
            u3!(mode | m, a, b, c | propagating3(F32, m, [a, b, c], false, true))
        }
        MinmaxOp::v_maximumminimum_f32 => {
            u3!(mode | m, a, b, c | propagating3(F32, m, [a, b, c], true, false))
        }
        MinmaxOp::v_minimum3_f16 => u3!(mode | m, a, b, c | propagating3(F16, m, [a, b, c], false, false)),
        MinmaxOp::v_maximum3_f16 => u3!(mode | m, a, b, c | propagating3(F16, m, [a, b, c], true, true)),
        MinmaxOp::v_minimummaximum_f16 => {
            u3!(mode | m, a, b, c | propagating3(F16, m, [a, b, c], false, true))
        }
        MinmaxOp::v_maximumminimum_f16 => {
            u3!(mode | m, a, b, c | propagating3(F16, m, [a, b, c], true, false))
        }
    }
}

/// The greater or smaller of the first two, then of that and the third.
fn propagating3(width: &Width, m: &Mode, sources: [u32; 3], first: bool, second: bool) -> u32 {
    let mask = width.format.mask();
    let [a, b, c] = sources.map(|bits| u64::from(bits) & mask);
    minmax::propagating(width, m, minmax::propagating(width, m, a, b, first), c, second) as u32
}

/// Two numbers of 32 bits as a pair of 16, to the nearest even in every mode.
fn nearest_pair(width: &Width, m: &Mode, a: u32, b: u32) -> u32 {
    let nearest = Mode { round_32: soft::Round::NearestEven, round_16_64: soft::Round::NearestEven, ..*m };
    let half = |bits: u32| convert::width(F32, width, &nearest, bits.into()) as u32;
    half(a) | half(b) << 16
}

/// Conversions and roundings.
pub(super) fn convert(op: ConvertOp) -> Op {
    use convert::{fract, frexp_exponent, frexp_mantissa, from_integer, integral, integral_f32, to_integer};
    match op {
        ConvertOp::v_ceil_f16 => h1!(|w, m, a| integral(w, m, a, f64::ceil)),
        ConvertOp::v_floor_f16 => h1!(|w, m, a| integral(w, m, a, f64::floor)),
        ConvertOp::v_trunc_f16 => h1!(|w, m, a| integral(w, m, a, f64::trunc)),
        ConvertOp::v_rndne_f16 => h1!(|w, m, a| integral(w, m, a, f64::round_ties_even)),
        ConvertOp::v_ceil_f32 => u1!(mode | m, a | integral_f32(m, a, f32::ceil)),
        ConvertOp::v_floor_f32 => u1!(mode | m, a | integral_f32(m, a, f32::floor)),
        ConvertOp::v_trunc_f32 => u1!(mode | m, a | integral_f32(m, a, f32::trunc)),
        ConvertOp::v_rndne_f32 => u1!(mode | m, a | integral_f32(m, a, f32::round_ties_even)),
        ConvertOp::v_ceil_f64 => d1!(|w, m, a| integral(w, m, a, f64::ceil)),
        ConvertOp::v_floor_f64 => d1!(|w, m, a| integral(w, m, a, f64::floor)),
        ConvertOp::v_trunc_f64 => d1!(|w, m, a| integral(w, m, a, f64::trunc)),
        ConvertOp::v_rndne_f64 => d1!(|w, m, a| integral(w, m, a, f64::round_ties_even)),
        ConvertOp::v_fract_f16 => h1!(fract),
        ConvertOp::v_fract_f32 => s1!(fract),
        ConvertOp::v_fract_f64 => d1!(fract),
        ConvertOp::v_frexp_exp_i16_f16 => h1!(|w, m, a| frexp_exponent(w, m, a) & 0xffff),
        ConvertOp::v_frexp_exp_i32_f32 => s1!(frexp_exponent),
        ConvertOp::v_frexp_exp_i32_f64 => d1!(|w, m, a| u64::from(frexp_exponent(w, m, a) as u32)),
        ConvertOp::v_frexp_mant_f16 => h1!(frexp_mantissa),
        ConvertOp::v_frexp_mant_f32 => s1!(frexp_mantissa),
        ConvertOp::v_frexp_mant_f64 => d1!(frexp_mantissa),

        ConvertOp::v_cvt_f16_f32 => u1!(mode | m, a | convert::width(F32, F16, m, a.into()) as u32),
        ConvertOp::v_cvt_f32_f16 => {
            u1!(mode | m, a | convert::width(F16, F32, m, u64::from(a & 0xffff)) as u32)
        }
        // The bits as they are.
        ConvertOp::v_cvt_f32_bf16 => u1!(bits | a | a << 16),
        ConvertOp::v_cvt_pk_f16_f32 => u2!(mode | m, a, b | nearest_pair(F16, m, a, b)),
        ConvertOp::v_cvt_pk_bf16_f32 => u2!(mode | m, a, b | nearest_pair(&Width::BF16, m, a, b)),
        ConvertOp::v_cvt_f32_f64 => d3!(|m, a, _b, _c| convert::width(F64, F32, m, a)),
        ConvertOp::v_cvt_f64_f32 => d3!(|m, a, _b, _c| convert::width(F32, F64, m, a)),
        ConvertOp::v_cvt_f32_i32 => u1!(mode | m, a | convert::f32_of_i32(m, a as i32)),
        ConvertOp::v_cvt_f32_u32 => u1!(mode | m, a | convert::f32_of_u32(m, a)),
        ConvertOp::v_cvt_f64_i32 => d3!(|m, a, _b, _c| from_integer(F64, m, i128::from(a as i32))),
        ConvertOp::v_cvt_f64_u32 => d3!(|m, a, _b, _c| from_integer(F64, m, i128::from(a as u32))),
        ConvertOp::v_cvt_f16_i16 => u1!(mode | m, a | from_integer(F16, m, i128::from(a as i16)) as u32),
        ConvertOp::v_cvt_f16_u16 => u1!(mode | m, a | from_integer(F16, m, i128::from(a as u16)) as u32),
        ConvertOp::v_cvt_i32_f32 => u1!(|a| convert::i32_of_f32(a) as u32),
        ConvertOp::v_cvt_u32_f32 => u1!(|a| convert::u32_of_f32(a)),
        ConvertOp::v_cvt_i32_f64 => d3!(|m, a, _b, _c| {
            u64::from(to_integer(F64, m, a, Whole::Truncate, i32::MIN.into(), i32::MAX.into()) as u32)
        }),
        ConvertOp::v_cvt_u32_f64 => {
            d3!(|m, a, _b, _c| to_integer(F64, m, a, Whole::Truncate, 0, u32::MAX.into()) as u64)
        }
        ConvertOp::v_cvt_i16_f16 => {
            h1!(|w, m, a| to_integer(w, m, a, Whole::Truncate, -0x8000, 0x7fff) & 0xffff)
        }
        ConvertOp::v_cvt_u16_f16 => h1!(|w, m, a| to_integer(w, m, a, Whole::Truncate, 0, 0xffff)),
        ConvertOp::v_cvt_flr_i32_f32 => u1!(mode | m, a | int32(m, a, Whole::Floor)),
        ConvertOp::v_cvt_rpi_i32_f32 => u1!(mode | m, a | int32(m, a, Whole::HalfUp)),
        ConvertOp::v_cvt_f32_ubyte0 => u1!(|a| ((a & 0xff) as f32).to_bits()),
        ConvertOp::v_cvt_f32_ubyte1 => u1!(|a| ((a >> 8 & 0xff) as f32).to_bits()),
        ConvertOp::v_cvt_f32_ubyte2 => u1!(|a| ((a >> 16 & 0xff) as f32).to_bits()),
        ConvertOp::v_cvt_f32_ubyte3 => u1!(|a| ((a >> 24) as f32).to_bits()),
        ConvertOp::v_cvt_off_f32_i4 => u1!(|a| (super::integer::sext(a, 4) as f32 / 16.0).to_bits()),
        ConvertOp::v_cvt_norm_i16_f16 => h1!(|w, m, a| convert::normalized(w, m, a, -1.0, 0x7fff)),
        ConvertOp::v_cvt_norm_u16_f16 => h1!(|w, m, a| convert::normalized(w, m, a, 0.0, 0xffff)),
        ConvertOp::v_cvt_pknorm_i16_f32 => u2!(
            mode | m,
            a,
            b | {
                let half = |bits: u32| convert::normalized(F32, m, bits.into(), -1.0, 0x7fff);
                half(a) | half(b) << 16
            }
        ),
        ConvertOp::v_cvt_pknorm_u16_f32 => u2!(
            mode | m,
            a,
            b | {
                let half = |bits: u32| convert::normalized(F32, m, bits.into(), 0.0, 0xffff);
                half(a) | half(b) << 16
            }
        ),
        ConvertOp::v_cvt_pknorm_i16_f16 => h2!(|m, a, b| {
            let half = |bits: u64| convert::normalized(F16, m, bits, -1.0, 0x7fff);
            half(a) | half(b) << 16
        }),
        ConvertOp::v_cvt_pknorm_u16_f16 => h2!(|m, a, b| {
            let half = |bits: u64| convert::normalized(F16, m, bits, 0.0, 0xffff);
            half(a) | half(b) << 16
        }),
        ConvertOp::v_cvt_pkrtz_f16_f32 => u2!(
            mode | m,
            a,
            b | {
                let half = |bits: u32| convert::f16_towards_zero(F32.input(m, bits.into()) as u32);
                half(a) | half(b) << 16
            }
        ),
        ConvertOp::v_cvt_pk_i16_f32 => u2!(
            mode | m,
            a,
            b | {
                let half = |bits: u32| {
                    to_integer(F32, m, bits.into(), Whole::Truncate, -0x8000, 0x7fff) as u32 & 0xffff
                };
                half(a) | half(b) << 16
            }
        ),
        ConvertOp::v_cvt_pk_u16_f32 => u2!(
            mode | m,
            a,
            b | {
                let half = |bits: u32| to_integer(F32, m, bits.into(), Whole::Truncate, 0, 0xffff) as u32;
                half(a) | half(b) << 16
            }
        ),
        ConvertOp::v_cvt_pk_u8_f32 | ConvertOp::v_cvt_pkaccum_u8_f32 => {
            u3!(mode | m, a, b, c | insert_byte(c, b, byte_of_f32(m, a)))
        }
        ConvertOp::v_cvt_f32_fp8 => u1!(mode | m, a | narrow::to_f32(narrow::fp8(m), a & 0xff)),
        ConvertOp::v_cvt_f32_bf8 => u1!(mode | m, a | narrow::to_f32(narrow::bf8(m), a & 0xff)),
        ConvertOp::v_cvt_pk_f32_fp8 => Op::Wide(|m, a, _, _| narrow::pair_to_f32(narrow::fp8(m), a as u32)),
        ConvertOp::v_cvt_pk_f32_bf8 => Op::Wide(|m, a, _, _| narrow::pair_to_f32(narrow::bf8(m), a as u32)),
        ConvertOp::v_cvt_pk_fp8_f32 => u2!(mode | m, a, b | narrow::pair(m, narrow::fp8(m), a, b)),
        ConvertOp::v_cvt_pk_bf8_f32 => u2!(mode | m, a, b | narrow::pair(m, narrow::bf8(m), a, b)),
        ConvertOp::v_cvt_sr_fp8_f32 => u2!(mode | m, a, b | narrow::stochastic(m, narrow::fp8(m), a, b)),
        ConvertOp::v_cvt_sr_f16_f32 => u2!(mode | m, a, b | narrow::stochastic(m, Factor::F16, a, b)),
        ConvertOp::v_cvt_sr_bf16_f32 => u2!(mode | m, a, b | narrow::stochastic(m, Factor::Bf16, a, b)),
        ConvertOp::v_cvt_sr_bf8_f32 => u2!(mode | m, a, b | narrow::stochastic(m, narrow::bf8(m), a, b)),
    }
}

/// Reciprocals, roots, exponentials, sines.
pub(super) fn transcendental(op: TranscendentalOp) -> Op {
    use trans::{cos, exp, finite, log, rcp, rsq, sin, sqrt, trig_preop, zero_if_infinite};
    match op {
        TranscendentalOp::v_rcp_f32 | TranscendentalOp::v_rcp_iflag_f32 | TranscendentalOp::v_s_rcp_f32 => {
            s1!(rcp)
        }
        TranscendentalOp::v_rsq_f32 | TranscendentalOp::v_s_rsq_f32 => s1!(rsq),
        TranscendentalOp::v_sqrt_f32 | TranscendentalOp::v_s_sqrt_f32 => s1!(sqrt),
        TranscendentalOp::v_exp_f32 | TranscendentalOp::v_exp_legacy_f32 | TranscendentalOp::v_s_exp_f32 => {
            s1!(exp)
        }
        TranscendentalOp::v_log_f32 | TranscendentalOp::v_log_legacy_f32 | TranscendentalOp::v_s_log_f32 => {
            s1!(log)
        }
        TranscendentalOp::v_sin_f32 => s1!(sin),
        TranscendentalOp::v_cos_f32 => s1!(cos),
        TranscendentalOp::v_rcp_f16 | TranscendentalOp::v_s_rcp_f16 => h1!(rcp),
        TranscendentalOp::v_rsq_f16 | TranscendentalOp::v_s_rsq_f16 => h1!(rsq),
        TranscendentalOp::v_sqrt_f16 | TranscendentalOp::v_s_sqrt_f16 => h1!(sqrt),
        TranscendentalOp::v_exp_f16 | TranscendentalOp::v_s_exp_f16 => h1!(exp),
        TranscendentalOp::v_log_f16 | TranscendentalOp::v_s_log_f16 => h1!(log),
        TranscendentalOp::v_sin_f16 => h1!(sin),
        TranscendentalOp::v_cos_f16 => h1!(cos),
        TranscendentalOp::v_rcp_f64 => d1!(rcp),
        TranscendentalOp::v_rsq_f64 => d1!(rsq),
        TranscendentalOp::v_sqrt_f64 => d1!(sqrt),
        TranscendentalOp::v_rcp_clamp_f32 => s1!(|w, m, a| finite(w, rcp(w, m, a))),
        TranscendentalOp::v_rsq_clamp_f32 => s1!(|w, m, a| finite(w, rsq(w, m, a))),
        TranscendentalOp::v_log_clamp_f32 => s1!(|w, m, a| finite(w, log(w, m, a))),
        TranscendentalOp::v_rcp_legacy_f32 => s1!(|w, m, a| zero_if_infinite(w, rcp(w, m, a))),
        TranscendentalOp::v_rsq_legacy_f32 => s1!(|w, m, a| zero_if_infinite(w, rsq(w, m, a))),
        TranscendentalOp::v_rcp_clamp_f64 => d1!(|w, m, a| finite(w, rcp(w, m, a))),
        TranscendentalOp::v_rsq_clamp_f64 => d1!(|w, m, a| finite(w, rsq(w, m, a))),
        TranscendentalOp::v_trig_preop_f64 => Op::Wide(|_, a, b, _| trig_preop(a, b)),
    }
}

/// Rounds a sum of products of 16-bit numbers to 32 bits: each product is exact, each sum is rounded.
pub(super) fn dot2_f32(m: &Mode, width: &Width, a: u32, b: u32, c: u32) -> u32 {
    let wide =
        |bits: u32| soft::convert(width.format, soft::F32, u64::from(bits & 0xffff), soft::Env::IEEE) as u32;
    let sum = float::fma_f32(m, wide(a), wide(b), c);
    float::fma_f32(m, wide(a >> 16), wide(b >> 16), sum)
}
