//! Lowers divisions and remainders of integers: takes any shader; afterwards none of the widths that the options name is left.
//!
//! By a constant: the upper half of a product with a rounded reciprocal, then a shift (Granlund and Montgomery, "Division by Invariant
//! Integers using Multiplication"). By another value in 32 bits: the reciprocal of a float, one step of Newton in integers, two
//! corrections. In 64 bits: a loop of 64 rounds, each of which gives a bit of the quotient. 8 and 16 bits are extended to 32.
//!
//! Why two corrections are enough, for a divisor y: the float estimate z is scaled by 1 - 2^-20, which outweighs the errors of conversion, division (2.5 units
//! in the last place) and product together, so z is not above 2^32/y, and after the step it is less than 1 + y/2^32 +
//! 2^-6·2^32/y·y/2^32 below it. So the quotient of any dividend is at most 2 too small.

use super::{divides, rewrite};
use crate::ir::{Base, Builder, Function, Inst, Op, Shader, Type, Value};

/// Which divisions the back end does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DivisionOptions {
    /// The widths to lower: a sum of any of 8, 16, 32 and 64.
    pub widths: u32,
    /// Whether only divisions by constants are lowered.
    pub constants_only: bool,
}

impl DivisionOptions {
    /// All divisions of all widths.
    pub const ALL: DivisionOptions = DivisionOptions { widths: 8 + 16 + 32 + 64, constants_only: false };
}

/// Lowers divisions and remainders.
pub fn lower_division(shader: &mut Shader, options: &DivisionOptions) -> bool {
    let options = *options;
    shader.functions_mut().iter_mut().fold(false, |changed, func| {
        let wants = |func: &Function, inst: Inst| {
            divides(func.op(inst))
                && options.widths & func.ty(func.result(inst)).base.bits() != 0
                && (!options.constants_only || func.const_lanes(func.args(inst)[1]).is_some())
        };
        rewrite(func, wants, |func, inst| Some(expand(func, inst))) | changed
    })
}

/// Writes the replacement of a division of scalars before it.
pub(super) fn expand(func: &mut Function, inst: Inst) -> Value {
    let op = func.op(inst);
    let (a, b) = (func.args(inst)[0], func.args(inst)[1]);
    let base = func.ty(a).base;
    let is_unsigned = matches!(op, Op::UDiv | Op::UMod);
    let mut builder = Builder::before(func, inst);
    if base.bits() < 32 {
        let extend = if is_unsigned { Op::U2U } else { Op::I2I };
        let constant = builder.func.const_bits(b);
        let wide = builder.convert(extend, Base::B32, a);
        let by = match constant {
            Some(bits) if is_unsigned => builder.constant(Base::B32, bits),
            Some(bits) => builder.constant(Base::B32, sign_extended(base, bits) as u64),
            None => builder.convert(extend, Base::B32, b),
        };
        let result = divide(&mut builder, op, wide, by);
        return builder.convert(Op::U2U, base, result);
    }
    divide(&mut builder, op, a, b)
}

fn sign_extended(base: Base, bits: u64) -> i64 {
    let unused = 64 - base.bits();
    (bits << unused) as i64 >> unused
}

/// A division in 32 or 64 bits.
fn divide(builder: &mut Builder, op: Op, a: Value, b: Value) -> Value {
    match op {
        Op::UDiv => unsigned(builder, a, b).0,
        Op::UMod => unsigned(builder, a, b).1,
        _ => signed(builder, op, a, b),
    }
}

/// A signed division by the unsigned one of magnitudes.
fn signed(builder: &mut Builder, op: Op, a: Value, b: Value) -> Value {
    let base = builder.func.ty(a).base;
    let zero = builder.constant(base, 0);
    let magnitude_a = builder.alu(Op::IAbs, &[a]);
    let magnitude_b = match builder.func.const_bits(b) {
        Some(bits) => builder.constant(base, sign_extended(base, bits).unsigned_abs()),
        None => builder.alu(Op::IAbs, &[b]),
    };
    let (quotient, rest) = unsigned(builder, magnitude_a, magnitude_b);
    let signs = builder.alu(Op::IXor, &[a, b]);
    let differ = builder.alu(Op::ILt, &[signs, zero]);
    if op == Op::IDiv {
        let negated = builder.alu(Op::INeg, &[quotient]);
        return builder.alu(Op::Select, &[differ, negated, quotient]);
    }
    let negative = builder.alu(Op::ILt, &[a, zero]);
    let negated = builder.alu(Op::INeg, &[rest]);
    let rest = builder.alu(Op::Select, &[negative, negated, rest]);
    if op == Op::IRem {
        return rest;
    }
    let not_zero = builder.alu(Op::INe, &[rest, zero]);
    let adjusts = builder.alu(Op::IAnd, &[not_zero, differ]);
    let adjusted = builder.alu(Op::IAdd, &[rest, b]);
    builder.alu(Op::Select, &[adjusts, adjusted, rest])
}

/// Quotient and remainder.
fn unsigned(builder: &mut Builder, a: Value, b: Value) -> (Value, Value) {
    let base = builder.func.ty(a).base;
    match builder.func.const_bits(b) {
        Some(divisor) => {
            let quotient = by_constant(builder, a, base, divisor);
            let product = builder.alu(Op::IMul, &[quotient, b]);
            (quotient, builder.alu(Op::ISub, &[a, product]))
        }
        None if base == Base::B64 => by_bits(builder, a, b),
        None => by_reciprocal(builder, a, b),
    }
}

fn by_constant(builder: &mut Builder, a: Value, base: Base, divisor: u64) -> Value {
    let width = base.bits();
    if divisor == 0 {
        return builder.constant(base, 0);
    }
    if divisor.is_power_of_two() {
        let count = builder.u32(divisor.trailing_zeros());
        return builder.alu(Op::UShr, &[a, count]);
    }
    let ceiling = |shift: u32| (1u128 << (width + shift)).div_ceil(divisor.into());
    let bits = 64 - divisor.leading_zeros();
    // A reciprocal that is too large by less than 2^shift after scaling is exact for all dividends.
    for shift in 0..bits {
        let reciprocal = ceiling(shift);
        let excess = reciprocal * u128::from(divisor) - (1u128 << (width + shift));
        if reciprocal >> width == 0 && excess <= 1 << shift {
            let reciprocal = builder.constant(base, reciprocal as u64);
            let high = builder.alu(Op::UMulHigh, &[a, reciprocal]);
            let count = builder.u32(shift);
            return builder.alu(Op::UShr, &[high, count]);
        }
    }
    // The reciprocal has one bit more than the width. The highest bit becomes an addition, halved before it can wrap.
    let power = (1u128 << bits) - u128::from(divisor);
    let reciprocal = (power << width) / u128::from(divisor) + 1;
    let reciprocal = builder.constant(base, reciprocal as u64);
    let high = builder.alu(Op::UMulHigh, &[a, reciprocal]);
    let rest = builder.alu(Op::ISub, &[a, high]);
    let one = builder.u32(1);
    let half = builder.alu(Op::UShr, &[rest, one]);
    let sum = builder.alu(Op::IAdd, &[half, high]);
    let count = builder.u32(bits - 1);
    builder.alu(Op::UShr, &[sum, count])
}

/// 2^32·(1 - 2^-20) as a float.
const RECIPROCAL_SCALE: u64 = 0x4f7f_fff0;
/// 1.0.
const ONE: u64 = 0x3f80_0000;

fn by_reciprocal(builder: &mut Builder, a: Value, b: Value) -> (Value, Value) {
    builder.exact = true;
    let float = builder.convert(Op::U2F, Base::B32, b);
    let one = builder.constant(Base::B32, ONE);
    let reciprocal = builder.alu(Op::FDiv, &[one, float]);
    let scale = builder.constant(Base::B32, RECIPROCAL_SCALE);
    let scaled = builder.alu(Op::FMul, &[reciprocal, scale]);
    let estimate = builder.convert(Op::F2U, Base::B32, scaled);
    builder.exact = false;
    let negated = builder.alu(Op::INeg, &[b]);
    let error = builder.alu(Op::IMul, &[negated, estimate]);
    let step = builder.alu(Op::UMulHigh, &[estimate, error]);
    let estimate = builder.alu(Op::IAdd, &[estimate, step]);
    let mut quotient = builder.alu(Op::UMulHigh, &[a, estimate]);
    let product = builder.alu(Op::IMul, &[quotient, b]);
    let mut rest = builder.alu(Op::ISub, &[a, product]);
    let one = builder.u32(1);
    for _ in 0..2 {
        let more = builder.alu(Op::UGe, &[rest, b]);
        let next = builder.alu(Op::IAdd, &[quotient, one]);
        quotient = builder.alu(Op::Select, &[more, next, quotient]);
        let less = builder.alu(Op::ISub, &[rest, b]);
        rest = builder.alu(Op::Select, &[more, less, rest]);
    }
    (quotient, rest)
}

/// 64 rounds, in each of which the dividend is shifted into the remainder from the left, and the quotient into the dividend from the
/// right. No branch depends on the operands, because a branch on an undefined operand would be undefined.
fn by_bits(builder: &mut Builder, a: Value, b: Value) -> (Value, Value) {
    let (zero, first) = (builder.constant(Base::B64, 0), builder.u32(0));
    let (inst, body) = builder.loop_(&[first, a, zero], &[Type::B64, Type::B64]);
    let loc = builder.loc;
    let [round, dividend, rest] = *builder.func.params(body) else { return (a, b) };
    let mut inner = Builder::at_end(builder.func, body);
    inner.loc = loc;
    let rounds = inner.u32(64);
    let more = inner.alu(Op::ULt, &[round, rounds]);
    let (check, then, other) = inner.if_(more, &[]);
    Builder::at_end(inner.func, then).break_(check, &[]);
    Builder::at_end(inner.func, other).break_(inst, &[dividend, rest]);
    let one = inner.u32(1);
    let highest = inner.u32(63);
    let carried = inner.alu(Op::UShr, &[rest, highest]);
    let bit = inner.alu(Op::UShr, &[dividend, highest]);
    let shifted = inner.alu(Op::IShl, &[rest, one]);
    let shifted = inner.alu(Op::IOr, &[shifted, bit]);
    let zero = inner.constant(Base::B64, 0);
    let carried = inner.alu(Op::INe, &[carried, zero]);
    let reached = inner.alu(Op::UGe, &[shifted, b]);
    let subtracts = inner.alu(Op::IOr, &[carried, reached]);
    let less = inner.alu(Op::ISub, &[shifted, b]);
    let rest = inner.alu(Op::Select, &[subtracts, less, shifted]);
    let dividend = inner.alu(Op::IShl, &[dividend, one]);
    let set = inner.constant(Base::B64, 1);
    let with = inner.alu(Op::IOr, &[dividend, set]);
    let dividend = inner.alu(Op::Select, &[subtracts, with, dividend]);
    let round = inner.alu(Op::IAdd, &[round, one]);
    inner.continue_(inst, &[round, dividend, rest]);
    let results = builder.func.results(inst);
    (results[0], results[1])
}
