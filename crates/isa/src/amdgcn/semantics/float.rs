//! Addition, multiplication and their kin under a [`Mode`], for the widths that registers hold.
//!
//! Rounded to the nearest even the host's arithmetic is used, else [`super::soft`]'s. Of several NaNs the first source's is
//! the result, made quiet.

use super::Mode;
use super::soft::{self, Env, Round, SoftFormat};
use crate::amdgcn::model::Gfx;

/// A width, and which part of the mode is for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Width {
    /// Its format.
    pub format: SoftFormat,
    single: bool,
}

impl Width {
    /// 16 bits.
    pub const F16: Width = Width { format: soft::F16, single: false };
    /// 32 bits.
    pub const F32: Width = Width { format: soft::F32, single: true };
    /// 64 bits.
    pub const F64: Width = Width { format: soft::F64, single: false };
    /// The upper half of 32 bits.
    pub const BF16: Width = Width { format: soft::BF16, single: true };

    /// What the mode says of it.
    pub fn env(&self, mode: &Mode) -> Env {
        if self.single {
            Env {
                round: mode.round_32,
                flush_in: !mode.denorm_in_32,
                flush_out: !mode.denorm_out_32,
                saturate: false,
            }
        } else {
            Env {
                round: mode.round_16_64,
                flush_in: !mode.denorm_in_16_64,
                flush_out: !mode.denorm_out_16_64,
                saturate: mode.saturate_16 && self.format == soft::F16,
            }
        }
    }

    /// `1.0`.
    pub const fn one(&self) -> u64 {
        let bias = (1 << (self.format.exponent - 1)) - 1;
        bias << self.format.fraction
    }

    /// A denormal made zero, if denormal sources do not count.
    pub fn input(&self, mode: &Mode, bits: u64) -> u64 {
        if self.env(mode).flush_in { self.flush(bits) } else { bits }
    }

    /// A denormal made zero.
    pub const fn flush(&self, bits: u64) -> u64 {
        if bits & self.format.infinity() == 0 { bits & self.format.sign() } else { bits }
    }

    /// `a + b`.
    pub fn add(&self, mode: &Mode, a: u64, b: u64) -> u64 {
        self.format.add(a, b, self.env(mode))
    }

    /// `a · b`.
    pub fn mul(&self, mode: &Mode, a: u64, b: u64) -> u64 {
        self.format.mul(a, b, self.env(mode))
    }

    /// `a · b + c`, rounded once.
    pub fn fma(&self, mode: &Mode, a: u64, b: u64, c: u64) -> u64 {
        self.format.fma(a, b, c, self.env(mode))
    }

    /// `a · b + c`, rounded twice, without denormals.
    pub fn mad(&self, mode: &Mode, a: u64, b: u64, c: u64) -> u64 {
        let env = Env { flush_in: true, flush_out: true, ..self.env(mode) };
        // A NaN that is added is no more than one that is multiplied, and comes later.
        self.format.add(self.format.mul(a, b, env), c, env)
    }

    /// The other sign.
    pub const fn neg(&self, bits: u64) -> u64 {
        bits ^ self.format.sign()
    }

    /// The value in 64 bits, exactly. Not for NaNs, whose payload is not kept in order.
    pub fn value(&self, bits: u64) -> f64 {
        f64::from_bits(soft::convert(self.format, soft::F64, bits, Env::IEEE))
    }

    /// Rounds a value; NaN becomes the default one.
    pub fn of(&self, mode: &Mode, value: f64) -> u64 {
        if value.is_nan() {
            return self.format.nan();
        }
        soft::convert(soft::F64, self.format, value.to_bits(), Env { flush_in: false, ..self.env(mode) })
    }
}

/// `omod` and `clamp` of a result.
pub(super) fn output(width: &Width, mode: &Mode, bits: u64) -> u64 {
    let mut bits = bits;
    let format = width.format;
    if mode.omod != 0 && !mode.ieee && width.env(mode).flush_out {
        let factor = match mode.omod {
            1 => width.one() + (1 << format.fraction),
            2 => width.one() + (2 << format.fraction),
            _ => width.one() - (1 << format.fraction),
        };
        // Zero loses its sign; what only becomes zero here keeps it.
        bits = if bits & !format.sign() == 0 { 0 } else { width.mul(mode, bits, factor) };
    }
    if mode.clamp {
        if format.is_nan(bits) {
            if mode.clamp_nan {
                bits = 0;
            }
        } else if bits & format.sign() != 0 {
            bits = 0;
        } else if bits > width.one() {
            bits = width.one();
        }
    }
    bits
}

/// As [`output`], in 32 bits.
pub(super) fn output_f32(mode: &Mode, bits: u32) -> u32 {
    if mode.omod == 0 && !mode.clamp { bits } else { output(&Width::F32, mode, bits.into()) as u32 }
}

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const QUIET: u32 = 1 << 22;
const NAN: u32 = INFINITY | QUIET;

#[inline(always)]
fn flush(bits: u32, on: bool) -> u32 {
    if on && bits & INFINITY == 0 { bits & SIGN } else { bits }
}

#[inline(always)]
fn nan(bits: u32) -> bool {
    bits & !SIGN > INFINITY
}

/// The NaN that results from two sources, if one is.
#[inline(always)]
fn nan_of(a: u32, b: u32) -> u32 {
    if nan(a) {
        a | QUIET
    } else if nan(b) {
        b | QUIET
    } else {
        NAN
    }
}

/// `a + b` in 32 bits.
#[inline(always)]
pub(super) fn add_f32(m: &Mode, a: u32, b: u32) -> u32 {
    if m.round_32 != Round::NearestEven {
        return Width::F32.add(m, a.into(), b.into()) as u32;
    }
    let (a, b) = (flush(a, !m.denorm_in_32), flush(b, !m.denorm_in_32));
    let sum = (f32::from_bits(a) + f32::from_bits(b)).to_bits();
    if nan(sum) { nan_of(a, b) } else { flush(sum, !m.denorm_out_32) }
}

/// `a · b` in 32 bits.
#[inline(always)]
pub(super) fn mul_f32(m: &Mode, a: u32, b: u32) -> u32 {
    if m.round_32 != Round::NearestEven {
        return Width::F32.mul(m, a.into(), b.into()) as u32;
    }
    let (a, b) = (flush(a, !m.denorm_in_32), flush(b, !m.denorm_in_32));
    let product = (f32::from_bits(a) * f32::from_bits(b)).to_bits();
    if nan(product) { nan_of(a, b) } else { flush(product, !m.denorm_out_32) }
}

/// `a · b + c` in 32 bits, rounded once.
#[inline(always)]
pub(super) fn fma_f32(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    if m.round_32 != Round::NearestEven {
        return Width::F32.fma(m, a.into(), b.into(), c.into()) as u32;
    }
    let [a, b, c] = [a, b, c].map(|bits| flush(bits, !m.denorm_in_32));
    // Products are exact in 64 bits; the sum is rounded to odd there, so that the second rounding is the only one.
    let product = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
    let addend = f64::from(f32::from_bits(c));
    let sum = product + addend;
    let back = sum - product;
    let lost = (product - (sum - back)) + (addend - back);
    let bits = sum.to_bits();
    let odd = if lost == 0.0 || bits & 1 == 1 || !lost.is_finite() || !sum.is_finite() {
        bits
    } else if (lost > 0.0) == (sum > 0.0) {
        bits + 1
    } else {
        bits - 1
    };
    let result = (f64::from_bits(odd) as f32).to_bits();
    if nan(result) {
        if nan(a) || nan(b) { nan_of(a, b) } else { nan_of(c, c) }
    } else {
        flush(result, !m.denorm_out_32)
    }
}

/// `a · b + c` in 32 bits, rounded twice, without denormals.
#[inline(always)]
pub(super) fn mad_f32(m: &Mode, a: u32, b: u32, c: u32) -> u32 {
    let flushing = Mode { denorm_in_32: false, denorm_out_32: false, ..*m };
    add_f32(&flushing, mul_f32(&flushing, a, b), c)
}

/// Whether a product is zero by the rules of DirectX 9: one source is, whatever the other.
#[inline(always)]
pub(super) fn zero_wins(m: &Mode, a: u32, b: u32) -> bool {
    let zero = |bits: u32| flush(bits, !m.denorm_in_32) & !SIGN == 0;
    zero(a) || zero(b)
}

/// `a · b` in 32 bits, where zero wins.
#[inline(always)]
pub(super) fn mul_legacy_f32(m: &Mode, a: u32, b: u32) -> u32 {
    if zero_wins(m, a, b) { 0 } else { mul_f32(m, a, b) }
}

/// Whether minimum, maximum and median make denormals zero: not before gfx9.
pub(super) fn compares_flushed(m: &Mode) -> bool {
    m.generation >= Gfx::Gfx9
}

/// A source of minimum and maximum.
#[inline(always)]
pub(super) fn compared_f32(m: &Mode, bits: u32) -> u32 {
    flush(bits, compares_flushed(m) && !m.denorm_in_32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fused_is_rounded_once() {
        let m = Mode::from_bits(0xf0, Gfx::Gfx10);
        let mut s = 0x1234_5678u32;
        let mut next = || {
            s = s.wrapping_mul(1664525).wrapping_add(1013904223);
            s ^ s >> 15
        };
        for at in 0..400_000 {
            let (mut a, mut b, mut c) = (next(), next(), next());
            if at % 2 == 0 {
                let near = |bits: u32| bits & 0x807f_ffff | (0x3f80_0000 + (bits >> 3 & 0xf << 23));
                (a, b, c) = (near(a), near(b), near(c));
            }
            let soft = Width::F32.fma(&m, a.into(), b.into(), c.into()) as u32;
            assert_eq!(fma_f32(&m, a, b, c), soft, "{a:#x} {b:#x} {c:#x}");
            let host = f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c));
            assert!(host.is_nan() || host.to_bits() == soft);
        }
    }

    #[test]
    fn denormals_are_flushed_as_the_mode_says() {
        let keep = Mode::from_bits(0x30, Gfx::Gfx9);
        let flush = Mode::from_bits(0, Gfx::Gfx9);
        assert_eq!(add_f32(&keep, 1, 1), 2);
        assert_eq!(add_f32(&flush, 1, 0x8000_0001), 0);
        assert_eq!(mul_f32(&flush, 0x8080_0000, 0x3f00_0000), 0x8000_0000);
        assert_eq!(mul_f32(&keep, 0x8080_0000, 0x3f00_0000), 0x8040_0000);
        assert_eq!(mad_f32(&keep, 0x0080_0000, 0x3f00_0000, 0), 0);
    }

    #[test]
    fn clamp_and_omod() {
        let mode = Mode { clamp: true, omod: 1, ..Mode::graphics(Gfx::Gfx10) };
        assert_eq!(output_f32(&mode, 0.25f32.to_bits()), 0.5f32.to_bits());
        assert_eq!(output_f32(&mode, 0.75f32.to_bits()), 1.0f32.to_bits());
        assert_eq!(output_f32(&mode, NAN), 0);
        let omod = Mode { clamp: false, ..mode };
        assert_eq!(output_f32(&omod, SIGN), 0);
        assert_eq!(output_f32(&Mode { omod: 3, ..omod }, SIGN | 0x0080_0000), SIGN);
        assert_eq!(output(&Width::F16, &Mode { denorm_out_16_64: false, ..omod }, 0x8000), 0);
        // With denormals kept, or in IEEE mode, omod does nothing.
        let kept = Mode { denorm_out_32: true, clamp: false, ..mode };
        assert_eq!(output_f32(&kept, 0.25f32.to_bits()), 0.25f32.to_bits());
    }
}
