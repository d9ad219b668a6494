//! Elements of A and B taken apart: a sign, a significand and the exponent that the matrix core aligns by.
//!
//! Facts: AMD's CDNA 3 and CDNA 4 manuals (formats), LLVM for the FNUZ formats of gfx94x.

use super::super::soft::Finite;

/// What elements of A or B are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Factor {
    /// IEEE 754, 64 bits.
    F64,
    /// IEEE 754, 32 bits.
    F32,
    /// 32 bits of which the upper 19 count.
    Xf32,
    /// IEEE 754, 16 bits.
    F16,
    /// The upper half of 32 bits.
    Bf16,
    /// 8 bits, 4 of them exponent, biased by 8; negative zero is the only NaN.
    Fp8Fnuz,
    /// 8 bits, 5 of them exponent, biased by 16; negative zero is the only NaN.
    Bf8Fnuz,
    /// 8 bits, 4 of them exponent, no infinity.
    Fp8,
    /// 8 bits, 5 of them exponent.
    Bf8,
    /// 6 bits, 2 of them exponent, all of them finite.
    Fp6,
    /// 6 bits, 3 of them exponent, all of them finite.
    Bf6,
    /// 4 bits, 2 of them exponent, all of them finite.
    Fp4,
    /// Signed integers of 8 bits.
    I8,
}

/// Values that are not finite numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Special {
    /// Infinity below NaNs, as IEEE 754 has them.
    Ieee,
    /// The greatest magnitude is a NaN.
    OneNan,
    /// Negative zero is a NaN.
    NegativeZero,
    /// None.
    Finite,
}

/// The fields of a format.
#[derive(Debug, Clone, Copy)]
struct Fields {
    exponent: u32,
    fraction: u32,
    bias: i32,
    special: Special,
}

impl Factor {
    /// Width in bits.
    pub fn bits(self) -> u8 {
        match self {
            Factor::F64 => 64,
            Factor::F32 | Factor::Xf32 => 32,
            Factor::F16 | Factor::Bf16 => 16,
            Factor::Fp8Fnuz | Factor::Bf8Fnuz | Factor::Fp8 | Factor::Bf8 | Factor::I8 => 8,
            Factor::Fp6 | Factor::Bf6 => 6,
            Factor::Fp4 => 4,
        }
    }

    /// The format that a code of CBSZ or BLGP chooses.
    pub fn from_code(code: u8) -> Option<Factor> {
        [Factor::Fp8, Factor::Bf8, Factor::Fp6, Factor::Bf6, Factor::Fp4].get(usize::from(code)).copied()
    }

    fn fields(self) -> Fields {
        let of = |exponent, fraction, bias, special| Fields { exponent, fraction, bias, special };
        match self {
            Factor::F64 => of(11, 52, 1023, Special::Ieee),
            Factor::F32 => of(8, 23, 127, Special::Ieee),
            Factor::Xf32 => of(8, 10, 127, Special::Ieee),
            Factor::F16 => of(5, 10, 15, Special::Ieee),
            Factor::Bf16 => of(8, 7, 127, Special::Ieee),
            Factor::Fp8Fnuz => of(4, 3, 8, Special::NegativeZero),
            Factor::Bf8Fnuz => of(5, 2, 16, Special::NegativeZero),
            Factor::Fp8 => of(4, 3, 7, Special::OneNan),
            Factor::Bf8 => of(5, 2, 15, Special::Ieee),
            Factor::Fp6 => of(2, 3, 1, Special::Finite),
            Factor::Bf6 => of(3, 2, 3, Special::Finite),
            Factor::Fp4 => of(2, 1, 1, Special::Finite),
            // Integers are not taken apart.
            Factor::I8 => of(0, 7, 0, Special::Finite),
        }
    }

    /// Takes an element apart.
    pub fn unpack(self, bits: u64) -> Number {
        let Fields { exponent, fraction, bias, special } = self.fields();
        // What xf32 has below its fraction does not count.
        let bits = if self == Factor::Xf32 { bits >> 13 } else { bits };
        let sign = 1u64 << (exponent + fraction);
        let (negative, magnitude) = (bits & sign != 0, bits & (sign - 1));
        let infinity = ((1u64 << exponent) - 1) << fraction;
        let class = match special {
            Special::Ieee if magnitude > infinity => NumberClass::Nan,
            Special::Ieee if magnitude == infinity => NumberClass::Infinite,
            Special::OneNan if magnitude == sign - 1 => NumberClass::Nan,
            Special::NegativeZero if negative && magnitude == 0 => NumberClass::Nan,
            _ => NumberClass::Finite,
        };
        let biased = magnitude >> fraction;
        let low = magnitude & ((1 << fraction) - 1);
        let significand = low | u64::from(biased != 0) << fraction;
        Number { class, negative, significand, fraction, exponent: biased.max(1) as i32 - bias }
    }
}

/// What kind of number it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NumberClass {
    /// Zeros among them.
    Finite,
    /// Infinity.
    Infinite,
    /// Not a number.
    Nan,
}

/// A number taken apart: `significand · 2^(exponent - fraction)`. The exponent is that of the format's field; what is less than the
/// least normal number has the same as that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Number {
    /// What it is.
    pub class: NumberClass,
    /// Its sign.
    pub negative: bool,
    /// Zero for zeros.
    pub significand: u64,
    /// How many bits of the significand are fraction.
    pub fraction: u32,
    /// The exponent.
    pub exponent: i32,
}

impl Number {
    /// Zero.
    pub const ZERO: Number =
        Number { class: NumberClass::Finite, negative: false, significand: 0, fraction: 0, exponent: 0 };

    /// Whether it is less than the least normal number of its format.
    pub fn is_denormal(&self) -> bool {
        self.class == NumberClass::Finite && self.significand >> self.fraction == 0
    }

    /// `self · other · 2^scale`.
    pub fn times(&self, other: &Number, scale: i32) -> Number {
        let zero = |number: &Number| number.class == NumberClass::Finite && number.significand == 0;
        let class = match (self.class, other.class) {
            (NumberClass::Nan, _) | (_, NumberClass::Nan) => NumberClass::Nan,
            (NumberClass::Finite, NumberClass::Finite) => NumberClass::Finite,
            _ if zero(self) || zero(other) => NumberClass::Nan,
            _ => NumberClass::Infinite,
        };
        Number {
            class,
            negative: self.negative != other.negative,
            significand: self.significand.wrapping_mul(other.significand),
            fraction: self.fraction + other.fraction,
            exponent: self.exponent + other.exponent + scale,
        }
    }

    /// The same as it is rounded elsewhere.
    pub fn finite(&self) -> Finite {
        Finite {
            negative: self.negative,
            exponent: self.exponent - self.fraction as i32,
            significand: self.significand.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(factor: Factor, bits: u64) -> f64 {
        let number = factor.unpack(bits);
        match number.class {
            NumberClass::Nan => f64::NAN,
            NumberClass::Infinite => f64::INFINITY,
            NumberClass::Finite => {
                let sign = if number.negative { -1.0 } else { 1.0 };
                sign * number.significand as f64 * 2f64.powi(number.exponent - number.fraction as i32)
            }
        }
    }

    #[test]
    fn formats() {
        assert_eq!(value(Factor::Fp8, 0x7e), 448.0);
        assert!(value(Factor::Fp8, 0x7f).is_nan() && value(Factor::Fp8, 0xff).is_nan());
        assert_eq!(value(Factor::Fp8, 1), 2f64.powi(-9));
        assert_eq!(value(Factor::Bf8, 0x7b), 57344.0);
        assert_eq!(value(Factor::Bf8, 0x7c), f64::INFINITY);
        assert_eq!(value(Factor::Fp8Fnuz, 0x7f), 240.0);
        assert_eq!(value(Factor::Bf8Fnuz, 0x7f), 57344.0);
        assert!(value(Factor::Bf8Fnuz, 0x80).is_nan() && value(Factor::Fp8Fnuz, 0x80).is_nan());
        assert_eq!(value(Factor::Fp6, 0x1f), 7.5);
        assert_eq!(value(Factor::Fp6, 0x21), -0.125);
        assert_eq!(value(Factor::Bf6, 0x1f), 28.0);
        let fp4 = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0];
        for (code, expected) in (0..).zip(fp4) {
            assert_eq!(value(Factor::Fp4, code), expected);
            assert_eq!(value(Factor::Fp4, code | 8), -expected);
        }
        assert_eq!(value(Factor::Xf32, 0x3f80_1fff), 1.0);
        assert_eq!(value(Factor::Bf16, 0xc040), -3.0);
        assert_eq!(value(Factor::F16, 0x3e00), 1.5);
        assert_eq!(value(Factor::F32, 1.25f32.to_bits().into()), 1.25);
        assert_eq!(value(Factor::F64, (-1.25f64).to_bits()), -1.25);
        assert_eq!(Factor::from_code(4), Some(Factor::Fp4));
        assert_eq!(Factor::from_code(5), None);
    }
}
