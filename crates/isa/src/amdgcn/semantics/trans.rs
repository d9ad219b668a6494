//! Reciprocals, roots, exponentials, logarithms, sines.
//!
//! Not exact on hardware, which documents an error of one unit in the last place or more; here the value computed in 64
//! bits is rounded once (in 64 bits, what the host computes). In 32 bits denormals never count, whatever the mode; in 16
//! bits they do as it says.

use super::Mode;
use super::float::Width;
use crate::amdgcn::model::Gfx;

/// Rounds to nearest even, in 32 bits without denormals.
fn mode(width: &Width, m: &Mode) -> Mode {
    use super::soft::Round::NearestEven;
    let denormals = *width != Width::F32;
    Mode {
        round_32: NearestEven,
        round_16_64: NearestEven,
        denorm_in_32: m.denorm_in_32 && denormals,
        denorm_out_32: m.denorm_out_32 && denormals,
        ..*m
    }
}

/// Applies a function of real numbers.
fn apply(width: &Width, m: &Mode, bits: u64, function: fn(f64) -> f64) -> u64 {
    let m = mode(width, m);
    let bits = width.input(&m, bits);
    if width.format.is_nan(bits) {
        return bits | width.format.quiet();
    }
    let result = width.of(&m, function(width.value(bits)));
    let infinite = |bits: u64| bits & !width.format.sign() == width.format.infinity();
    if width.env(&m).saturate && infinite(result) && !infinite(bits) { finite(width, result) } else { result }
}

/// `1 / x`.
pub(super) fn rcp(width: &Width, m: &Mode, bits: u64) -> u64 {
    apply(width, m, bits, f64::recip)
}

/// `1 / sqrt(x)`; of zeros infinity of their sign.
pub(super) fn rsq(width: &Width, m: &Mode, bits: u64) -> u64 {
    apply(width, m, bits, |x| x.sqrt().recip())
}

/// `sqrt(x)`.
pub(super) fn sqrt(width: &Width, m: &Mode, bits: u64) -> u64 {
    apply(width, m, bits, f64::sqrt)
}

/// `2^x`.
pub(super) fn exp(width: &Width, m: &Mode, bits: u64) -> u64 {
    apply(width, m, bits, f64::exp2)
}

/// `log2(x)`.
pub(super) fn log(width: &Width, m: &Mode, bits: u64) -> u64 {
    apply(width, m, bits, f64::log2)
}

/// The largest argument of sines until gfx10, in revolutions.
const DOMAIN: f64 = 256.0;

/// The fraction of a revolution, exactly: sines of multiples of a quarter are exact.
fn turn(x: f64) -> f64 {
    x - x.floor()
}

/// `sin(2π·x)`.
pub(super) fn sin(width: &Width, m: &Mode, bits: u64) -> u64 {
    if *width == Width::F32 && m.generation < Gfx::Gfx11 {
        return apply(width, m, bits, |x| if x.abs() > DOMAIN { 0.0 } else { sine(x) });
    }
    apply(width, m, bits, sine)
}

/// `cos(2π·x)`.
pub(super) fn cos(width: &Width, m: &Mode, bits: u64) -> u64 {
    if *width == Width::F32 && m.generation < Gfx::Gfx11 {
        return apply(width, m, bits, |x| if x.abs() > DOMAIN { 1.0 } else { cosine(x) });
    }
    apply(width, m, bits, cosine)
}

fn sine(x: f64) -> f64 {
    if x == 0.0 {
        return x;
    }
    match turn(x) {
        t if t == 0.0 || t == 0.5 => 0.0,
        t => (t * std::f64::consts::TAU).sin(),
    }
}

fn cosine(x: f64) -> f64 {
    match turn(x) {
        t if t == 0.25 || t == 0.75 => 0.0,
        t => (t * std::f64::consts::TAU).cos(),
    }
}

/// Infinities made the greatest finite number of their sign.
pub(super) fn finite(width: &Width, bits: u64) -> u64 {
    if bits & !width.format.sign() == width.format.infinity() { bits - 1 } else { bits }
}

/// Infinities made zeros of their sign.
pub(super) fn zero_if_infinite(width: &Width, bits: u64) -> u64 {
    if bits & !width.format.sign() == width.format.infinity() { bits & width.format.sign() } else { bits }
}

/// 2/π in binary, the point before the first bit.
const TWO_BY_PI: [u64; 19] = [
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
];

/// 53 bits of 2/π for reducing the argument of a sine: segment `b` for the exponent of `a`; of NaN it, made quiet.
pub(super) fn trig_preop(a: u64, b: u64) -> u64 {
    let format = super::soft::F64;
    if format.is_nan(a) {
        return a | format.quiet();
    }
    let exponent = (a >> 52 & 0x7ff) as i32;
    let shift = (b as i32 & 31) * 53 + (exponent - 1077).max(0);
    let word = |at: i32| TWO_BY_PI.get(at as usize).copied().unwrap_or(0);
    let (at, bit) = (shift >> 6, shift as u32 & 63);
    // Segments that end behind the table are zero.
    if (shift >> 5) + 2 >= 2 * TWO_BY_PI.len() as i32 {
        return 0;
    }
    let window = ((u128::from(word(at)) << 64 | u128::from(word(at + 1))) << bit >> 64) as u64 >> 11;
    let scale = -53 - shift + if exponent >= 1968 { 128 } else { 0 };
    let value = super::soft::Finite { negative: false, exponent: scale, significand: window.into() };
    let env = super::soft::Env { round: super::soft::Round::Zero, ..super::soft::Env::IEEE };
    format.round(value, env)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_where_it_can_be() {
        let m = Mode::graphics(Gfx::Gfx10);
        let bits = |value: f32| u64::from(value.to_bits());
        assert_eq!(rcp(&Width::F32, &m, bits(4.0)), bits(0.25));
        assert_eq!(rcp(&Width::F32, &m, bits(-0.0)), bits(f32::NEG_INFINITY));
        // A denormal counts as zero, and a denormal result becomes zero.
        assert_eq!(rcp(&Width::F32, &m, 1), bits(f32::INFINITY));
        assert_eq!(rcp(&Width::F32, &m, bits(3e38)), 0);
        assert_eq!(exp(&Width::F32, &m, bits(-3.0)), bits(0.125));
        assert_eq!(log(&Width::F32, &m, bits(8.0)), bits(3.0));
        assert_eq!(log(&Width::F32, &m, bits(0.0)), bits(f32::NEG_INFINITY));
        assert_eq!(sin(&Width::F32, &m, bits(0.25)), bits(1.0));
        assert_eq!(sin(&Width::F32, &m, bits(257.25)), 0);
        assert_eq!(cos(&Width::F32, &m, bits(257.25)), bits(1.0));
        assert_eq!(sqrt(&Width::F32, &m, bits(2.0)), bits(2f32.sqrt()));
        assert!(Width::F32.format.is_nan(rsq(&Width::F32, &m, bits(-1.0))));
    }

    #[test]
    fn segments_of_two_by_pi() {
        // The first segment is 2/π itself, towards zero.
        let first = f64::from_bits(trig_preop(1f64.to_bits(), 0));
        assert!(std::f64::consts::FRAC_2_PI >= first);
        assert!(std::f64::consts::FRAC_2_PI - first < 1e-15);
        assert_eq!(trig_preop(1f64.to_bits(), 30), 0);
    }
}
