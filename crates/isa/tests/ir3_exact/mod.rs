//! Floats as exact numbers: sums and products on a fixed point that holds every bit of them, and roundings that look at all bits.
//!
//! Never: the host's floating point.

pub mod special;

use std::cmp::Ordering;
use unwedge_isa::ir3::semantics::Round;

const LIMBS: usize = 20;
/// Bits after the point. The least product of two normal floats of 32 bits has its last bit at 2^-298.
const POINT: i32 = 320;
const BITS: i32 = 32 * LIMBS as i32;

/// A magnitude: an integer times 2^-[`POINT`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fixed([u32; LIMBS]);

impl Fixed {
    const ZERO: Fixed = Fixed([0; LIMBS]);

    /// `significand · 2^exponent`.
    pub fn new(significand: u128, exponent: i32) -> Fixed {
        let mut fixed = Fixed::ZERO;
        for bit in (0..128).filter(|bit| significand >> bit & 1 != 0) {
            let at = bit + exponent + POINT;
            assert!((0..BITS).contains(&at), "{significand:#x} · 2^{exponent} is out of range");
            fixed.0[at as usize / 32] |= 1 << (at % 32);
        }
        fixed
    }

    fn bit(&self, at: i32) -> bool {
        (0..BITS).contains(&at) && self.0[at as usize / 32] >> (at % 32) & 1 != 0
    }

    fn top(&self) -> Option<i32> {
        (0..BITS).rev().find(|&at| self.bit(at))
    }

    fn lowest(&self) -> i32 {
        (0..BITS).find(|&at| self.bit(at)).unwrap_or(0)
    }

    /// The bits from one on, which are at most 128.
    fn from(&self, low: i32) -> u128 {
        (0..128).filter(|bit| self.bit(low + bit)).map(|bit| 1 << bit).sum()
    }

    /// Whether a bit below this one is set.
    fn any_below(&self, at: i32) -> bool {
        self.top().is_some() && self.lowest() < at
    }

    fn order(&self, other: &Fixed) -> Ordering {
        self.0.iter().rev().cmp(other.0.iter().rev())
    }

    fn plus(&self, other: &Fixed) -> Fixed {
        let (mut sum, mut carry) = (Fixed::ZERO, 0);
        for limb in 0..LIMBS {
            let value = u64::from(self.0[limb]) + u64::from(other.0[limb]) + carry;
            (sum.0[limb], carry) = (value as u32, value >> 32);
        }
        assert_eq!(carry, 0);
        sum
    }

    /// The difference from a lesser one.
    fn minus(&self, other: &Fixed) -> Fixed {
        let (mut difference, mut borrow) = (Fixed::ZERO, 0);
        for limb in 0..LIMBS {
            let value = i64::from(self.0[limb]) - i64::from(other.0[limb]) - borrow;
            (difference.0[limb], borrow) = (value as u32, i64::from(value < 0));
        }
        assert_eq!(borrow, 0);
        difference
    }
}

/// What the bits of a float mean. Zeros have signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    Nan,
    Infinite { negative: bool },
    Finite { negative: bool, magnitude: Fixed },
}

use Number::{Finite, Infinite, Nan};

impl Number {
    pub const ZERO: Number = Finite { negative: false, magnitude: Fixed::ZERO };

    pub fn integer(value: i128) -> Number {
        Finite { negative: value < 0, magnitude: Fixed::new(value.unsigned_abs(), 0) }
    }

    pub fn is_zero(&self) -> bool {
        matches!(self, Finite { magnitude, .. } if magnitude.top().is_none())
    }

    pub fn is_negative(&self) -> bool {
        match *self {
            Nan => false,
            Infinite { negative } | Finite { negative, .. } => negative,
        }
    }

    /// Compares; zeros are equal, a NaN is nothing to anything.
    pub fn order(&self, other: &Number) -> Option<Ordering> {
        let rank = |number: &Number| match (number, number.is_negative()) {
            (Nan, _) => None,
            (Infinite { .. }, negative) => Some(if negative { -2 } else { 2 }),
            (number, _) if number.is_zero() => Some(0),
            (_, negative) => Some(if negative { -1 } else { 1 }),
        };
        let ranks = (rank(self)?, rank(other)?);
        Some(ranks.0.cmp(&ranks.1).then_with(|| match (self, other) {
            (Finite { magnitude: a, .. }, Finite { magnitude: b, .. }) if ranks.0 < 0 => b.order(a),
            (Finite { magnitude: a, .. }, Finite { magnitude: b, .. }) => a.order(b),
            _ => Ordering::Equal,
        }))
    }

    pub fn product(&self, other: &Number) -> Number {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Finite { magnitude: a, .. }, Finite { magnitude: b, .. }) => {
                let (low_a, low_b) = (a.lowest(), b.lowest());
                let significand = a.from(low_a) * b.from(low_b);
                let exponent = if significand == 0 { 0 } else { low_a + low_b - 2 * POINT };
                Finite { negative, magnitude: Fixed::new(significand, exponent) }
            }
            _ if self.is_zero() || other.is_zero() => Nan,
            _ => Infinite { negative },
        }
    }

    /// The sum; of opposite numbers +0, as rounding to the nearest has it.
    pub fn sum(&self, other: &Number) -> Number {
        match (self, other) {
            (Nan, _) | (_, Nan) => Nan,
            (Infinite { negative: a }, Infinite { negative: b }) if a != b => Nan,
            (infinite @ Infinite { .. }, _) | (_, infinite @ Infinite { .. }) => *infinite,
            (Finite { negative: of_a, magnitude: a }, Finite { negative: of_b, magnitude: b })
                if of_a == of_b =>
            {
                Finite { negative: *of_a, magnitude: a.plus(b) }
            }
            (Finite { negative: of_a, magnitude: a }, Finite { negative: of_b, magnitude: b }) => {
                match a.order(b) {
                    Ordering::Equal => Number::ZERO,
                    Ordering::Greater => Finite { negative: *of_a, magnitude: a.minus(b) },
                    Ordering::Less => Finite { negative: *of_b, magnitude: b.minus(a) },
                }
            }
        }
    }

    /// The integer next to it, `up` from the greatest that is not above it where `up` says so of: whether the number is negative, whether
    /// the integer below its magnitude is odd, and how what is left compares with a half.
    pub fn integral(&self, up: impl Fn(bool, bool, Option<Ordering>) -> bool) -> Number {
        let Finite { negative, magnitude } = *self else { return *self };
        let mut whole = magnitude;
        whole.0[..POINT as usize / 32].fill(0);
        let rest = magnitude.minus(&whole);
        let half = (rest != Fixed::ZERO).then(|| rest.order(&Fixed::new(1, -1)));
        if up(negative, whole.bit(POINT), half) {
            whole = whole.plus(&Fixed::new(1, 0));
        }
        Finite { negative, magnitude: whole }
    }

    /// As an integer towards zero, the nearest one of a range; of a NaN 0.
    pub fn to_integer(self, least: i128, most: i128) -> i128 {
        let whole = match self {
            Nan => 0,
            Infinite { negative: true } => i128::MIN,
            Infinite { negative: false } => i128::MAX,
            Finite { magnitude, .. } if magnitude.top() > Some(POINT + 100) => {
                if self.is_negative() {
                    i128::MIN
                } else {
                    i128::MAX
                }
            }
            Finite { negative, magnitude } => {
                let whole = magnitude.from(POINT) as i128;
                if negative { -whole } else { whole }
            }
        };
        whole.clamp(least, most)
    }
}

/// A binary format.
#[derive(Clone, Copy, Debug)]
pub struct Format {
    exponent: u32,
    fraction: u32,
}

pub const F32: Format = Format { exponent: 8, fraction: 23 };
pub const F16: Format = Format { exponent: 5, fraction: 10 };

impl Format {
    pub fn of(half: bool) -> Format {
        if half { F16 } else { F32 }
    }

    fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    pub fn sign(self) -> u32 {
        1 << (self.exponent + self.fraction)
    }

    fn infinity(self) -> u32 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The NaN that operations make.
    pub fn nan(self) -> u32 {
        self.infinity() | 1 << (self.fraction - 1)
    }

    pub fn is_nan(self, bits: u32) -> bool {
        bits & !self.sign() > self.infinity()
    }

    /// What bits mean; denormals are zeros.
    pub fn read(self, bits: u32) -> Number {
        let (negative, magnitude) = (bits & self.sign() != 0, bits & (self.sign() - 1));
        match magnitude >> self.fraction {
            0 => Finite { negative, magnitude: Fixed::ZERO },
            _ if magnitude == self.infinity() => Infinite { negative },
            _ if magnitude > self.infinity() => Nan,
            exponent => {
                let significand = magnitude & ((1 << self.fraction) - 1) | 1 << self.fraction;
                let exponent = exponent as i32 - self.bias() - self.fraction as i32;
                Finite { negative, magnitude: Fixed::new(significand.into(), exponent) }
            }
        }
    }

    /// A number rounded as IEEE 754 does it; denormal results are then zeros.
    pub fn round(self, number: &Number, round: Round) -> u32 {
        let (negative, magnitude) = match number {
            Nan => return self.nan(),
            Infinite { negative } => return self.infinity() | if *negative { self.sign() } else { 0 },
            Finite { negative, magnitude } => (*negative, magnitude),
        };
        let sign = if negative { self.sign() } else { 0 };
        let Some(top) = magnitude.top() else { return sign };
        let least = 1 - self.bias();
        // Where the last bit is that is kept.
        let unit = (top - POINT).max(least) - self.fraction as i32;
        let mut whole = magnitude.from(unit + POINT) as u64;
        let half = magnitude.bit(unit + POINT - 1);
        let sticky = magnitude.any_below(unit + POINT - 1);
        let away = match round {
            Round::Zero => false,
            Round::Up => !negative && (half || sticky),
            Round::Down => negative && (half || sticky),
            Round::Even => half && (sticky || whole & 1 != 0),
        };
        whole += u64::from(away);
        let mut exponent = unit + self.fraction as i32;
        if whole >> (self.fraction + 1) != 0 {
            (whole, exponent) = (whole >> 1, exponent + 1);
        }
        if whole >> self.fraction == 0 {
            return sign;
        }
        if exponent > self.bias() {
            let to_infinity = match round {
                Round::Even => true,
                Round::Zero => false,
                Round::Up => !negative,
                Round::Down => negative,
            };
            return sign | (self.infinity() - u32::from(!to_infinity));
        }
        let fraction = whole as u32 & ((1 << self.fraction) - 1);
        sign | ((exponent + self.bias()) as u32) << self.fraction | fraction
    }

    /// The place of a float among all, from the least to the greatest.
    pub fn rank(self, bits: u32) -> i64 {
        let magnitude = i64::from(bits & (self.sign() - 1));
        if bits & self.sign() != 0 { -magnitude } else { magnitude }
    }
}
