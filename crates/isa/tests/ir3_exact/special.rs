//! Reciprocals, roots, exponentials, logarithms, sines: from integer arithmetic, with the bounds that it is sure of.

use super::{Fixed, Format, Number};
use Number::{Finite, Infinite, Nan};
use unwedge_isa::ir3::Opcode;
use unwedge_isa::ir3::semantics::Round;

/// Bits after the point of what is computed here.
const Q: u32 = 60;
const ONE: u128 = 1 << Q;
/// Pi with `Q` bits after the point.
const PI: i128 = 0x3243_f6a8_885a_308d;

/// A value: a sign, and a magnitude between two others.
struct Between {
    negative: bool,
    low: (u128, i32),
    high: (u128, i32),
}

/// What a function gives.
enum Value {
    Exactly(Number),
    Between(Between),
}

/// A magnitude that is off by at most so many units.
fn about(negative: bool, significand: u128, exponent: i32, off: u128) -> Value {
    let (low, high) = ((significand.saturating_sub(off), exponent), (significand + off, exponent));
    Value::Between(Between { negative, low, high })
}

/// The root of an integer, rounded down.
fn root(value: u128) -> u128 {
    let mut root = 0u128;
    for bit in (0..64).rev() {
        let more = root | 1 << bit;
        if more * more <= value {
            root = more;
        }
    }
    root
}

/// The significand and the exponent of a magnitude.
fn parts(magnitude: &Fixed) -> (u128, i32) {
    let low = magnitude.lowest();
    (magnitude.from(low), low - super::POINT)
}

/// The significand with exactly so many bits.
fn widened(magnitude: &Fixed, bits: u32) -> (u128, i32) {
    let (significand, exponent) = parts(magnitude);
    let shift = bits - (128 - significand.leading_zeros());
    (significand << shift, exponent - shift as i32)
}

fn reciprocal(negative: bool, magnitude: &Fixed) -> Value {
    let (significand, exponent) = parts(magnitude);
    about(negative, (1 << 100) / significand, -100 - exponent, 1)
}

fn square_root(magnitude: &Fixed) -> Value {
    let (significand, exponent) = widened(magnitude, 110);
    let (significand, exponent) =
        if exponent % 2 == 0 { (significand, exponent) } else { (significand << 1, exponent - 1) };
    let root = root(significand);
    if root * root == significand {
        return Value::Exactly(Finite { negative: false, magnitude: Fixed::new(root, exponent / 2) });
    }
    about(false, root, exponent / 2, 1)
}

fn reciprocal_root(magnitude: &Fixed) -> Value {
    let (significand, exponent) = widened(magnitude, 24);
    // 1 over significand · 2^exponent, with an even exponent.
    let quotient = (1u128 << 126) / significand;
    let (quotient, exponent) = match -126 - exponent {
        even if even % 2 == 0 => (quotient, even),
        odd => (quotient << 1, odd - 1),
    };
    about(false, root(quotient), exponent / 2, 2)
}

/// Digit by digit: the square of a number has twice its logarithm.
fn logarithm(magnitude: &Fixed) -> Value {
    let (mut value, exponent) = widened(magnitude, Q + 1);
    let mut digits = 0i128;
    for digit in 1..=Q {
        value = (value * value) >> Q;
        if value >= 2 * ONE {
            value >>= 1;
            digits |= 1 << (Q - digit);
        }
    }
    let log = (i128::from(exponent) + i128::from(Q)) * ONE as i128 + digits;
    // Each of the squares loses a unit, and the first of them counts most.
    if log == 0 {
        return Value::Exactly(Number::ZERO);
    }
    about(log < 0, log.unsigned_abs(), -(Q as i32), 1 << 7)
}

/// Bit by bit: a product of roots of two.
fn exponential(negative: bool, magnitude: &Fixed) -> Value {
    let whole = magnitude.from(super::POINT).min(1 << 12) as i32;
    let fraction = magnitude.from(super::POINT - Q as i32) & (ONE - 1);
    let exact = !magnitude.any_below(super::POINT - Q as i32);
    // 2^-(w + f) = 2^(-w - 1) · 2^(1 - f).
    let (whole, fraction) = match (negative, fraction) {
        (false, _) => (whole, fraction),
        (true, 0) => (-whole, 0),
        (true, _) => (-whole - 1, ONE - fraction),
    };
    if !(-200..=200).contains(&whole) {
        let infinite = Infinite { negative: false };
        return Value::Exactly(if whole > 0 { infinite } else { Number::ZERO });
    }
    if fraction == 0 && exact {
        return Value::Exactly(Finite { negative: false, magnitude: Fixed::new(1, whole) });
    }
    let (mut value, mut factor) = (ONE, 2 * ONE);
    for bit in (0..Q).rev() {
        factor = root(factor << Q);
        if fraction >> bit & 1 != 0 {
            value = (value * factor) >> Q;
        }
    }
    about(false, value, whole - Q as i32, 1 << 8)
}

/// The series of the sine or the cosine, whose first power is `first`.
fn series(x: i128, first: u32) -> Value {
    let square = (x * x) >> Q;
    let mut term = if first == 1 { x } else { ONE as i128 };
    let (mut sum, mut power) = (term, first);
    while term != 0 {
        term = -((term * square) >> Q) / i128::from((power + 1) * (power + 2));
        (sum, power) = (sum + term, power + 2);
    }
    about(sum < 0, sum.unsigned_abs(), -(Q as i32), 1 << 8)
}

fn trigonometric(opcode: Opcode, negative: bool, magnitude: &Fixed) -> Option<Value> {
    if opcode == Opcode::Sin && magnitude.top() < Some(super::POINT - 14) {
        // x less a part of it that is below 2^-30.
        let (significand, exponent) = widened(magnitude, Q);
        let low = (significand - (significand >> 29), exponent);
        return Some(Value::Between(Between { negative, low, high: (significand, exponent) }));
    }
    let x = magnitude.from(super::POINT - Q as i32) as i128;
    if magnitude.top() > Some(super::POINT + 2) || x > PI {
        return None;
    }
    let x = if negative { -x } else { x };
    Some(series(x, if opcode == Opcode::Sin { 1 } else { 0 }))
}

fn value(opcode: Opcode, source: &Number) -> Option<Value> {
    use Opcode::*;
    let negative = source.is_negative();
    let infinite = |negative| Some(Value::Exactly(Infinite { negative }));
    let zero = |negative| Some(Value::Exactly(Finite { negative, magnitude: Fixed::ZERO }));
    let Finite { magnitude, .. } = source else {
        return match (opcode, source) {
            (_, Nan) | (Sin | Cos, _) => Some(Value::Exactly(Nan)),
            (Rcp, _) => zero(negative),
            (Exp2 | Hexp2, _) if negative => zero(false),
            (Exp2 | Hexp2, _) => infinite(false),
            _ if negative => Some(Value::Exactly(Nan)),
            (Rsq | Hrsq, _) => zero(false),
            _ => infinite(false),
        };
    };
    if source.is_zero() {
        return match opcode {
            Rcp | Rsq | Hrsq => infinite(negative),
            Log2 | Hlog2 => infinite(true),
            Sin | Sqrt => zero(negative),
            _ => Some(Value::Exactly(Number::integer(1))),
        };
    }
    match opcode {
        Rcp => Some(reciprocal(negative, magnitude)),
        Exp2 | Hexp2 => Some(exponential(negative, magnitude)),
        Sin | Cos => trigonometric(opcode, negative, magnitude),
        Rsq | Hrsq | Log2 | Hlog2 | Sqrt if negative => Some(Value::Exactly(Nan)),
        Rsq | Hrsq => Some(reciprocal_root(magnitude)),
        Log2 | Hlog2 => Some(logarithm(magnitude)),
        Sqrt => Some(square_root(magnitude)),
        _ => None,
    }
}

/// The least and the greatest result that a function of one float can have; they are the same unless its value is too near to the middle
/// of two floats. `None` where the hardware promises nothing, and for what is not such a function.
pub fn bounds(opcode: Opcode, half: bool, source: u32) -> Option<[u32; 2]> {
    let format = Format::of(half);
    Some(match value(opcode, &format.read(source))? {
        Value::Exactly(number) => [format.round(&number, Round::Even); 2],
        Value::Between(Between { negative, low, high }) => {
            let mut ends = [low, high].map(|(significand, exponent)| {
                // A result of 16 bits is rounded from one of 32.
                let magnitude = Fixed::new(significand, exponent);
                let wide = super::F32.round(&Finite { negative, magnitude }, Round::Even);
                if half { format.round(&super::F32.read(wide), Round::Even) } else { wide }
            });
            ends.sort_by_key(|&bits| format.rank(bits));
            ends
        }
    })
}
