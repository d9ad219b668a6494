//! The three steps of division: scale so that nothing overflows or is lost, refine, fix what is special.

use super::Mode;
use super::convert::ldexp;
use super::float::Width;
use super::soft::{Finite, Round, SoftNumber};

/// How far a width's division scales.
struct Scale {
    width: Width,
    /// Exponents of numerator and denominator this far apart give a result near the greatest.
    far: i32,
    /// Powers of two by which sources are scaled.
    by: i32,
    /// A numerator's biased exponent up to which the remainder is lost.
    small: i32,
    /// A difference of exponents below which the quotient is zero, if it is checked.
    least: Option<i32>,
}

const F16: Scale = Scale { width: Width::F16, far: 0, by: 0, small: 0, least: None };
const F32: Scale = Scale { width: Width::F32, far: 96, by: 64, small: 23, least: Some(-150) };
const F64: Scale = Scale { width: Width::F64, far: 768, by: 128, small: 53, least: Some(-1075) };

/// A denormal or a zero without its sign.
fn tiny(width: &Width, bits: u64) -> bool {
    bits & width.format.infinity() == 0
}

fn zero(width: &Width, bits: u64) -> bool {
    bits & !width.format.sign() == 0
}

fn biased(width: &Width, bits: u64) -> i32 {
    ((bits & width.format.infinity()) >> width.format.fraction) as i32
}

/// Whether a quotient is a denormal, not zero.
fn denormal(width: &Width, numerator: u64, denominator: u64) -> bool {
    let magnitude = |bits: u64| match width.format.unpack(bits & !width.format.sign(), false) {
        SoftNumber::Finite(value) if value.significand != 0 => Some(value),
        _ => None,
    };
    let (Some(n), Some(d)) = (magnitude(numerator), magnitude(denominator)) else { return false };
    // The quotient's exponent follows from those of both, and from which significand is greater.
    let top = |value: u128| 127 - value.leading_zeros() as i32;
    let (tn, td) = (top(n.significand), top(d.significand));
    let aligned = |value: u128, top: i32| value << (126 - top);
    let less = aligned(n.significand, tn) < aligned(d.significand, td);
    let exponent = n.exponent + tn - d.exponent - td - i32::from(less);
    let least = 2 - (1 << (width.format.exponent - 1));
    exponent < least
}

/// `v_div_scale`: the source to be scaled, the denominator, the numerator. The bit asks `v_div_fmas` to undo it.
fn scale(s: &Scale, m: &Mode, a: u64, denominator: u64, numerator: u64) -> (u64, bool) {
    let w = &s.width;
    let up = || ldexp(w, &kept(m), a, s.by);
    let down = || ldexp(w, &kept(m), a, -s.by);
    if zero(w, numerator) || zero(w, denominator) {
        // Manuals leave the bit clear; tests that were checked on hardware find it set.
        return (w.format.nan(), true);
    }
    if biased(w, numerator) - biased(w, denominator) >= s.far {
        return (if a == denominator { up() } else { a }, true);
    }
    if tiny(w, denominator) {
        return (up(), false);
    }
    let inverse = denormal(w, w.one(), denominator);
    let quotient = denormal(w, numerator, denominator);
    match (inverse, quotient) {
        // Manuals say that the denominator is scaled up here, by which it would leave the range.
        (true, true) => (if a == denominator { down() } else { a }, true),
        (true, false) => (down(), false),
        (false, true) => (if a == numerator { up() } else { a }, true),
        _ if biased(w, numerator) <= s.small => (up(), false),
        _ => (a, false),
    }
}

/// Denormals count.
fn kept(m: &Mode) -> Mode {
    Mode { denorm_in_32: true, denorm_out_32: true, denorm_in_16_64: true, denorm_out_16_64: true, ..*m }
}

/// `v_div_scale_f32`.
pub(super) fn scale_f32(m: &Mode, a: u64, b: u64, c: u64) -> (u64, bool) {
    scale(&F32, m, a, b, c)
}

/// `v_div_scale_f64`.
pub(super) fn scale_f64(m: &Mode, a: u64, b: u64, c: u64) -> (u64, bool) {
    scale(&F64, m, a, b, c)
}

fn fmas(s: &Scale, m: &Mode, a: u64, b: u64, c: u64, scaled: bool) -> u64 {
    let w = &s.width;
    if !scaled {
        return w.fma(m, a, b, c);
    }
    let env = w.env(m);
    let [x, y, z] = [a, b, c].map(|bits| w.format.unpack(bits, env.flush_in));
    let bias = (1 << (w.format.exponent - 1)) - 1;
    let by = if biased(w, c) > bias { s.by } else { -s.by };
    match w.format.fused(x, y, z, env.round) {
        SoftNumber::Finite(mut value) if value.significand != 0 => {
            value.exponent += by;
            w.format.round(value, env)
        }
        other => w.format.pack(other, env),
    }
}

/// `v_div_fmas_f32`.
pub(super) fn fmas_f32(m: &Mode, a: u64, b: u64, c: u64, scaled: bool) -> u64 {
    fmas(&F32, m, a, b, c, scaled)
}

/// `v_div_fmas_f64`.
pub(super) fn fmas_f64(m: &Mode, a: u64, b: u64, c: u64, scaled: bool) -> u64 {
    fmas(&F64, m, a, b, c, scaled)
}

/// `v_div_fixup`: the quotient, the denominator, the numerator.
fn fixup(s: &Scale, m: &Mode, quotient: u64, denominator: u64, numerator: u64) -> u64 {
    let w = &s.width;
    let f = w.format;
    let (d, n) = (w.input(m, denominator), w.input(m, numerator));
    let sign = (d ^ n) & f.sign();
    let infinite = |bits: u64| bits & !f.sign() == f.infinity();
    if f.is_nan(n) {
        n | f.quiet()
    } else if f.is_nan(d) {
        d | f.quiet()
    } else if zero(w, d) && zero(w, n) || infinite(d) && infinite(n) {
        f.sign() | f.nan()
    } else if zero(w, d) || infinite(n) {
        sign | f.infinity()
    } else if infinite(d) || zero(w, n) {
        sign
    } else if s.least.is_some_and(|least| biased(w, n) - biased(w, d) < least) {
        // Less than the least denormal.
        let value = Finite { negative: sign != 0, exponent: -4000, significand: 1 };
        let env = w.env(m);
        match env.round {
            Round::NearestEven | Round::Zero => sign,
            _ => f.round(value, env),
        }
    } else if f.is_nan(quotient) {
        // Sources are finite: the steps before left the range.
        sign | (f.infinity() - u64::from(w.env(m).saturate))
    } else {
        sign | quotient & !f.sign()
    }
}

/// `v_div_fixup_f16`.
pub(super) fn fixup_f16(m: &Mode, a: u64, b: u64, c: u64) -> u64 {
    fixup(&F16, m, a, b, c)
}

/// `v_div_fixup_f32`.
pub(super) fn fixup_f32(m: &Mode, a: u64, b: u64, c: u64) -> u64 {
    fixup(&F32, m, a, b, c)
}

/// `v_div_fixup_f64`.
pub(super) fn fixup_f64(m: &Mode, a: u64, b: u64, c: u64) -> u64 {
    fixup(&F64, m, a, b, c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amdgcn::model::Gfx;
    use crate::amdgcn::semantics::trans;

    /// The sequence compilers emit for a correctly rounded quotient.
    fn divide(m: &Mode, n: f32, d: f32) -> f32 {
        let w = Width::F32;
        let bits = |value: f32| u64::from(value.to_bits());
        let one = bits(1.0);
        let (den, _) = scale_f32(m, bits(d), bits(d), bits(n));
        let (num, undo) = scale_f32(m, bits(n), bits(d), bits(n));
        let neg = w.neg(den);
        let mut r = trans::rcp(&w, m, den);
        let e = w.fma(m, neg, r, one);
        r = w.fma(m, e, r, r);
        let q = w.mul(m, num, r);
        let e = w.fma(m, neg, q, num);
        let q = w.fma(m, e, r, q);
        let e = w.fma(m, neg, q, num);
        let q = fmas_f32(m, e, r, q, undo);
        f32::from_bits(fixup_f32(m, q, bits(d), bits(n)) as u32)
    }

    #[test]
    fn quotients_are_correctly_rounded() {
        let m = Mode::from_bits(0xf0, Gfx::Gfx10);
        let mut s = 7u32;
        let mut next = || {
            s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            f32::from_bits(s ^ s >> 16)
        };
        let special = [0.0, -0.0, f32::INFINITY, f32::MAX, f32::MIN_POSITIVE, 1e-45, -3.0, 1.0, 1e30, 1e-30];
        for n in special {
            for d in special {
                let (ours, host) = (divide(&m, n, d), n / d);
                assert!(
                    ours.to_bits() == host.to_bits() || host.is_nan() && ours.is_nan(),
                    "{n:e}/{d:e}: {ours:e}"
                );
            }
        }
        for _ in 0..100_000 {
            let (n, d) = (next(), next());
            let (ours, host) = (divide(&m, n, d), n / d);
            assert!(
                ours.to_bits() == host.to_bits() || host.is_nan() && ours.is_nan(),
                "{n:e}/{d:e}: {ours:e}"
            );
        }
    }
}
