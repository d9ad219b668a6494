//! Floats of 16, 32 and 64 bits.
//!
//! Sums, products and conversions are rounded once by the soft floats, in any mode; transcendental functions are computed in 64 bits by
//! the host and rounded. Of several NaN operands the first one, made quiet, is the result.

use super::Eval;
use super::integer::signed;
use crate::ir::{Base, FloatMode, Op, Round};
use unwedge_isa::amdgcn::semantics::soft::{self, Env, Finite, SoftFormat, SoftNumber};

fn format(base: Base) -> SoftFormat {
    match base {
        Base::B16 => soft::F16,
        Base::B64 => soft::F64,
        _ => soft::F32,
    }
}

fn environment(mode: FloatMode) -> Env {
    let flush = mode.flush == Some(true);
    Env { round: mode.round, flush_in: flush, flush_out: flush, saturate: false }
}

/// 1.0.
pub(super) fn one(base: Base) -> u64 {
    let format = format(base);
    ((1 << (format.exponent - 1)) - 1) << format.fraction
}

/// Positive infinity.
pub(super) fn infinity(base: Base) -> u64 {
    format(base).infinity()
}

/// A denormal made zero where the mode says so.
fn input(format: SoftFormat, env: Env, bits: u64) -> u64 {
    if env.flush_in && bits & format.infinity() == 0 { bits & format.sign() } else { bits }
}

/// The value in 64 bits: exact.
fn value(format: SoftFormat, bits: u64) -> f64 {
    f64::from_bits(soft::convert(format, soft::F64, bits, Env::IEEE))
}

/// A value rounded to a format.
fn rounded(format: SoftFormat, env: Env, value: f64) -> u64 {
    if value.is_nan() {
        return format.nan();
    }
    soft::convert(soft::F64, format, value.to_bits(), Env { flush_in: false, ..env })
}

pub(super) fn eval(op: Op, env: &Eval, args: &[u64]) -> Option<u64> {
    let format = format(env.t);
    let mode = environment(env.mode(env.t));
    let sign = format.sign();
    let arg = |at: usize| input(format, mode, args.get(at).copied().unwrap_or(0));
    Some(match op {
        Op::FNeg => args[0] ^ sign,
        Op::FAbs => args[0] & !sign,
        Op::FAdd => sum(format, mode, arg(0), arg(1)),
        Op::FSub => {
            let b = arg(1);
            sum(format, mode, arg(0), if format.is_nan(b) { b } else { b ^ sign })
        }
        Op::FMul => product(format, mode, arg(0), arg(1)),
        Op::FFma => format.fma(arg(0), arg(1), arg(2), mode),
        Op::FMin => least(format, arg(0), arg(1)),
        Op::FMax => {
            let (a, b) = (arg(0), arg(1));
            if format.is_nan(a) || format.is_nan(b) {
                least(format, a, b)
            } else {
                least(format, a ^ sign, b ^ sign) ^ sign
            }
        }
        Op::FEq => compare(format, arg(0), arg(1), |a, b| a == b),
        Op::FNeu => compare(format, arg(0), arg(1), |a, b| a != b),
        Op::FLt => compare(format, arg(0), arg(1), |a, b| a < b),
        Op::FGe => compare(format, arg(0), arg(1), |a, b| a >= b),
        Op::I2F => format.round(soft::integer(signed(env.source, args[0]).into()), mode),
        Op::U2F => format.round(soft::integer(args[0].into()), mode),
        Op::F2I | Op::F2U => to_integer(op == Op::F2I, env, args[0]),
        Op::F2F | Op::F2FRte | Op::F2FRtz => {
            let round = match op {
                Op::F2FRte => Round::NearestEven,
                Op::F2FRtz => Round::Zero,
                _ => mode.round,
            };
            let flush_in = environment(env.mode(env.source)).flush_in;
            quieted(
                format,
                soft::convert(self::format(env.source), format, args[0], Env { round, flush_in, ..mode }),
            )
        }
        Op::FQuantizeF16 => {
            let half = soft::convert(format, soft::F16, arg(0), Env { flush_out: true, ..Env::IEEE });
            soft::convert(soft::F16, format, half, Env::IEEE)
        }
        Op::FFrexpSig => frexp(format, arg(0)).0,
        Op::FFrexpExp => u64::from(frexp(format, arg(0)).1 as u32),
        Op::FLdexp => scale(format, mode, arg(0), args[1] as u32 as i32),
        _ => return unary_or_quotient(op, format, mode, arg(0), arg(1)),
    })
}

fn quieted(format: SoftFormat, bits: u64) -> u64 {
    if format.is_nan(bits) { bits | format.quiet() } else { bits }
}

/// Operations that are computed by the host in 64 bits.
fn unary_or_quotient(op: Op, format: SoftFormat, mode: Env, a: u64, b: u64) -> Option<u64> {
    if format.is_nan(a) {
        return Some(a | format.quiet());
    }
    let x = value(format, a);
    let integral = |value: f64| {
        // A zero keeps the sign of what it was rounded from.
        rounded(format, mode, value.copysign(x))
    };
    Some(match op {
        Op::FDiv if format.is_nan(b) => b | format.quiet(),
        Op::FDiv => rounded(format, mode, x / value(format, b)),
        Op::FFloor => integral(x.floor()),
        Op::FCeil => integral(x.ceil()),
        Op::FTrunc => integral(x.trunc()),
        Op::FRoundEven => integral(x.round_ties_even()),
        Op::FSqrt => rounded(format, mode, x.sqrt()),
        Op::FRsqrt => rounded(format, mode, 1.0 / x.sqrt()),
        Op::FSin => rounded(format, mode, x.sin()),
        Op::FCos => rounded(format, mode, x.cos()),
        Op::FExp2 => rounded(format, mode, x.exp2()),
        Op::FLog2 => rounded(format, mode, x.log2()),
        _ => return None,
    })
}

/// The host's sum where it is the same as the soft one: nearest even without flushing, and no NaN.
fn sum(format: SoftFormat, mode: Env, a: u64, b: u64) -> u64 {
    if mode == Env::IEEE && format == soft::F32 {
        let sum = f32::from_bits(a as u32) + f32::from_bits(b as u32);
        if !sum.is_nan() {
            return sum.to_bits().into();
        }
    }
    format.add(a, b, mode)
}

fn product(format: SoftFormat, mode: Env, a: u64, b: u64) -> u64 {
    if mode == Env::IEEE && format == soft::F32 {
        let product = f32::from_bits(a as u32) * f32::from_bits(b as u32);
        if !product.is_nan() {
            return product.to_bits().into();
        }
    }
    format.mul(a, b, mode)
}

fn compare(format: SoftFormat, a: u64, b: u64, holds: impl Fn(f64, f64) -> bool) -> u64 {
    let value = |bits| if format.is_nan(bits) { f64::NAN } else { value(format, bits) };
    holds(value(a), value(b)).into()
}

/// The minimum; a NaN loses, and two NaNs give the first one.
fn least(format: SoftFormat, a: u64, b: u64) -> u64 {
    match (format.is_nan(a), format.is_nan(b)) {
        (true, true) => return a | format.quiet(),
        (true, false) => return b,
        (false, true) => return a,
        _ => {}
    }
    // Bits of numbers in order: those of negative ones turned around.
    let key =
        |bits: u64| if bits & format.sign() != 0 { !bits & format.mask() } else { bits | format.sign() };
    if key(a) <= key(b) { a } else { b }
}

fn truncated(base: Base, mode: Env, bits: u64) -> Option<i128> {
    let format = format(base);
    let bits = input(format, mode, bits);
    match format.unpack(bits, false) {
        SoftNumber::Nan(_) => None,
        SoftNumber::Infinite(negative) => Some(if negative { i128::MIN } else { i128::MAX }),
        SoftNumber::Finite(Finite { negative, exponent, significand }) => {
            let magnitude = match exponent {
                64.. => i128::MAX,
                0.. => (significand << exponent) as i128,
                _ => significand.unbounded_shr(exponent.unsigned_abs()) as i128,
            };
            Some(if negative { -magnitude } else { magnitude })
        }
    }
}

fn range(is_signed: bool, base: Base) -> (i128, i128) {
    let bits = base.bits().max(1);
    if is_signed { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) }
}

fn to_integer(is_signed: bool, env: &Eval, bits: u64) -> u64 {
    let mode = environment(env.mode(env.source));
    let (least, most) = range(is_signed, env.t);
    let value = truncated(env.source, mode, bits).map_or(0, |value| value.clamp(least, most));
    value as u64 & env.t.mask()
}

/// Whether the integer part of a float is in the range of an integer.
pub(super) fn fits(is_signed: bool, env: &Eval, bits: u64) -> bool {
    let mode = environment(env.mode(env.source));
    let (least, most) = range(is_signed, env.t);
    truncated(env.source, mode, bits).is_some_and(|value| least <= value && value <= most)
}

/// Significand in [0.5, 1) and exponent.
fn frexp(format: SoftFormat, bits: u64) -> (u64, i32) {
    match format.unpack(bits, false) {
        SoftNumber::Finite(Finite { negative, exponent, significand }) if significand != 0 => {
            let top = 127 - significand.leading_zeros() as i32;
            let half = Finite { negative, exponent: -top - 1, significand };
            (format.round(half, Env::IEEE), exponent + top + 1)
        }
        SoftNumber::Nan(bits) => (bits, 0),
        _ => (bits, 0),
    }
}

fn scale(format: SoftFormat, mode: Env, bits: u64, by: i32) -> u64 {
    match format.unpack(bits, false) {
        SoftNumber::Finite(value) if value.significand != 0 => {
            // Past this, every format overflows or underflows.
            let exponent = value.exponent + by.clamp(-8192, 8192);
            format.round(Finite { exponent, ..value }, mode)
        }
        other => format.pack(other, mode),
    }
}
