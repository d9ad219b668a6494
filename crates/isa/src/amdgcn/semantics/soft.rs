//! Binary floating point on integers: any format, rounding mode and treatment of denormals.
//!
//! Exact until the one rounding at the end. Used where the host's own arithmetic does not do what the mode asks, and by
//! tests as the second opinion on it.

/// How a result that has no exact representation is rounded: the codes of the MODE register.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Round {
    /// To the nearest, ties to even.
    NearestEven,
    /// Towards positive infinity.
    Up,
    /// Towards negative infinity.
    Down,
    /// Towards zero.
    Zero,
}

impl Round {
    /// From the low two bits.
    pub const fn from_code(code: u32) -> Round {
        match code & 3 {
            0 => Round::NearestEven,
            1 => Round::Up,
            2 => Round::Down,
            _ => Round::Zero,
        }
    }
}

/// A binary format with infinities and NaNs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SoftFormat {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the fraction.
    pub fraction: u32,
}

/// What a result is rounded to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Env {
    /// How.
    pub round: Round,
    /// Denormal sources count as zeros of their sign.
    pub flush_in: bool,
    /// Denormal results become zeros of their sign.
    pub flush_out: bool,
    /// What is too great becomes the greatest number, in every rounding.
    pub saturate: bool,
}

impl Env {
    /// Nearest even, with denormals.
    pub const IEEE: Env =
        Env { round: Round::NearestEven, flush_in: false, flush_out: false, saturate: false };
}

/// A finite number: `(-1)^negative · significand · 2^exponent`. A significand that is not exact has its lowest bit set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finite {
    /// Its sign.
    pub negative: bool,
    /// The exponent of the significand's lowest bit.
    pub exponent: i32,
    /// Zero for zeros.
    pub significand: u128,
}

impl Finite {
    /// Rounded to a significand of `fraction` bits behind its first one, or of fewer below the exponent `least`: the exponent of
    /// its lowest bit, and the significand. The number is not zero.
    pub(super) fn rounded(&self, least: i32, fraction: u32, round: Round) -> (i32, u64) {
        let top = 127 - self.significand.leading_zeros() as i32;
        let unit = (self.exponent + top).max(least) - fraction as i32;
        let shift = unit - self.exponent;
        if shift <= 0 {
            return (unit, (self.significand << -shift) as u64);
        }
        let shift = shift as u32;
        let whole = self.significand.unbounded_shr(shift) as u64;
        let rest = self.significand & !u128::MAX.unbounded_shl(shift);
        let half = 1u128.unbounded_shl(shift - 1);
        let up = match round {
            // Beyond the width of a significand everything is less than half.
            Round::NearestEven => half != 0 && (rest > half || rest == half && whole & 1 == 1),
            Round::Up => rest != 0 && !self.negative,
            Round::Down => rest != 0 && self.negative,
            Round::Zero => false,
        };
        (unit, whole + u64::from(up))
    }
}

/// A number taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SoftNumber {
    /// Zeros among them.
    Finite(Finite),
    /// Infinity, and whether it is negative.
    Infinite(bool),
    /// Not a number: its bits, made quiet.
    Nan(u64),
}

/// The 16-bit format of IEEE 754.
pub const F16: SoftFormat = SoftFormat { exponent: 5, fraction: 10 };
/// The upper half of [`F32`].
pub const BF16: SoftFormat = SoftFormat { exponent: 8, fraction: 7 };
/// The 32-bit format of IEEE 754.
pub const F32: SoftFormat = SoftFormat { exponent: 8, fraction: 23 };
/// The 64-bit format of IEEE 754.
pub const F64: SoftFormat = SoftFormat { exponent: 11, fraction: 52 };

/// The bit that significands are moved up to before they are added: room for a carry above, many zeros below.
const TOP: u32 = 125;

impl SoftFormat {
    /// How many bits.
    pub const fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The sign's bit.
    pub const fn sign(self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// All of its bits.
    pub const fn mask(self) -> u64 {
        self.sign() | (self.sign() - 1)
    }

    /// Positive infinity.
    pub const fn infinity(self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// The bit that makes a NaN quiet.
    pub const fn quiet(self) -> u64 {
        1 << (self.fraction - 1)
    }

    /// The NaN of operations that have no result.
    pub const fn nan(self) -> u64 {
        self.infinity() | self.quiet()
    }

    const fn bias(self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Whether bits are a NaN.
    pub const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign() - 1) > self.infinity()
    }

    /// Whether bits are a NaN that signals.
    pub const fn is_signalling(self, bits: u64) -> bool {
        self.is_nan(bits) && bits & self.quiet() == 0
    }

    /// Takes bits apart.
    pub fn unpack(self, bits: u64, flush: bool) -> SoftNumber {
        let negative = bits & self.sign() != 0;
        let magnitude = bits & (self.sign() - 1);
        let (biased, fraction) = (magnitude >> self.fraction, magnitude & ((1 << self.fraction) - 1));
        if magnitude > self.infinity() {
            return SoftNumber::Nan(bits & self.mask() | self.quiet());
        }
        if magnitude == self.infinity() {
            return SoftNumber::Infinite(negative);
        }
        let lowest = 1 - self.bias() - self.fraction as i32;
        let (significand, exponent) = match biased {
            0 if flush => (0, lowest),
            0 => (fraction, lowest),
            _ => (fraction | 1 << self.fraction, lowest + biased as i32 - 1),
        };
        SoftNumber::Finite(Finite { negative, exponent, significand: significand.into() })
    }

    /// Rounds a number to this format.
    pub fn round(self, value: Finite, env: Env) -> u64 {
        let sign = if value.negative { self.sign() } else { 0 };
        if value.significand == 0 {
            return sign;
        }
        let least = 1 - self.bias();
        let (unit, kept) = value.rounded(least, self.fraction, env.round);
        let biased = (unit - (least - self.fraction as i32)) as u64;
        let magnitude = (biased << self.fraction).saturating_add(kept);
        if biased >= 1 << self.exponent || magnitude >= self.infinity() {
            let away = match env.round {
                _ if env.saturate => false,
                Round::NearestEven => true,
                Round::Up => !value.negative,
                Round::Down => value.negative,
                Round::Zero => false,
            };
            return sign | if away { self.infinity() } else { self.infinity() - 1 };
        }
        if env.flush_out && magnitude >> self.fraction == 0 {
            return sign;
        }
        sign | magnitude
    }

    /// Puts a number together.
    pub fn pack(self, value: SoftNumber, env: Env) -> u64 {
        match value {
            SoftNumber::Finite(value) => self.round(value, env),
            SoftNumber::Infinite(negative) => self.infinity() | if negative { self.sign() } else { 0 },
            SoftNumber::Nan(bits) => bits,
        }
    }

    /// `a + b`.
    pub fn add(self, a: u64, b: u64, env: Env) -> u64 {
        let (x, y) = (self.unpack(a, env.flush_in), self.unpack(b, env.flush_in));
        self.pack(self.sum(x, y, env.round), env)
    }

    /// `a · b`.
    pub fn mul(self, a: u64, b: u64, env: Env) -> u64 {
        let (x, y) = (self.unpack(a, env.flush_in), self.unpack(b, env.flush_in));
        self.pack(self.product(x, y), env)
    }

    /// `a · b + c`, rounded once.
    pub fn fma(self, a: u64, b: u64, c: u64, env: Env) -> u64 {
        let [x, y, z] = [a, b, c].map(|bits| self.unpack(bits, env.flush_in));
        self.pack(self.fused(x, y, z, env.round), env)
    }

    /// `a · b + c`, not rounded.
    pub fn fused(self, a: SoftNumber, b: SoftNumber, c: SoftNumber, round: Round) -> SoftNumber {
        match (a, b, c) {
            (SoftNumber::Nan(_), ..) => a,
            (_, SoftNumber::Nan(_), _) => b,
            (.., SoftNumber::Nan(_)) => c,
            _ => self.sum(self.product(a, b), c, round),
        }
    }

    /// `a · b`, exact.
    pub fn product(self, a: SoftNumber, b: SoftNumber) -> SoftNumber {
        match (a, b) {
            (SoftNumber::Nan(_), _) => a,
            (_, SoftNumber::Nan(_)) => b,
            (SoftNumber::Infinite(n), SoftNumber::Infinite(m)) => SoftNumber::Infinite(n != m),
            (SoftNumber::Infinite(n), SoftNumber::Finite(other))
            | (SoftNumber::Finite(other), SoftNumber::Infinite(n)) => {
                if other.significand == 0 {
                    SoftNumber::Nan(self.nan())
                } else {
                    SoftNumber::Infinite(n != other.negative)
                }
            }
            (SoftNumber::Finite(x), SoftNumber::Finite(y)) => SoftNumber::Finite(Finite {
                negative: x.negative != y.negative,
                exponent: x.exponent + y.exponent,
                significand: x.significand * y.significand,
            }),
        }
    }

    /// `a + b` as exact as a rounding needs it; which zero the sum of opposites is depends on the rounding.
    pub fn sum(self, a: SoftNumber, b: SoftNumber, round: Round) -> SoftNumber {
        match (a, b) {
            (SoftNumber::Nan(_), _) => a,
            (_, SoftNumber::Nan(_)) => b,
            (SoftNumber::Infinite(n), SoftNumber::Infinite(m)) if n != m => SoftNumber::Nan(self.nan()),
            (SoftNumber::Infinite(_), _) => a,
            (_, SoftNumber::Infinite(_)) => b,
            (SoftNumber::Finite(x), SoftNumber::Finite(y)) => SoftNumber::Finite(add(x, y, round)),
        }
    }
}

/// The sum of two numbers, its lowest bit set if it is not exact.
pub fn add(x: Finite, y: Finite, round: Round) -> Finite {
    let zero = |negative| Finite { negative, exponent: 0, significand: 0 };
    match (x.significand, y.significand) {
        (0, 0) if x.negative == y.negative => return x,
        (0, 0) => return zero(round == Round::Down),
        (0, _) => return y,
        (_, 0) => return x,
        _ => {}
    }
    let (x, y) = (raise(x), raise(y));
    let (large, small) =
        if (x.exponent, x.significand) >= (y.exponent, y.significand) { (x, y) } else { (y, x) };
    let shift = large.exponent.abs_diff(small.exponent);
    let lost = small.significand & !u128::MAX.unbounded_shl(shift) != 0;
    let moved = small.significand.unbounded_shr(shift) | u128::from(lost);
    if large.negative == small.negative {
        return Finite { significand: large.significand + moved, ..large };
    }
    match large.significand - moved {
        0 => zero(round == Round::Down),
        significand => Finite { significand, ..large },
    }
}

/// The same number with its highest bit at [`TOP`].
fn raise(value: Finite) -> Finite {
    let top = 127 - value.significand.leading_zeros();
    match TOP.checked_sub(top) {
        Some(up) => {
            Finite { exponent: value.exponent - up as i32, significand: value.significand << up, ..value }
        }
        None => {
            let down = top - TOP;
            let lost = value.significand & ((1 << down) - 1) != 0;
            let significand = value.significand >> down | u128::from(lost);
            Finite { exponent: value.exponent + down as i32, significand, ..value }
        }
    }
}

/// Bits of one format as the number they are in another.
pub fn convert(from: SoftFormat, to: SoftFormat, bits: u64, env: Env) -> u64 {
    match from.unpack(bits, env.flush_in) {
        SoftNumber::Nan(bits) => {
            let sign = if bits & from.sign() != 0 { to.sign() } else { 0 };
            let payload = bits & ((1 << from.fraction) - 1);
            let payload = if to.fraction >= from.fraction {
                payload << (to.fraction - from.fraction)
            } else {
                payload >> (from.fraction - to.fraction)
            };
            sign | to.infinity() | payload
        }
        other => to.pack(other, env),
    }
}

/// An integer as a number.
pub fn integer(value: i128) -> Finite {
    Finite { negative: value < 0, exponent: 0, significand: value.unsigned_abs() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bits that are worth trying, and pseudo-random ones.
    fn samples(format: SoftFormat, count: usize) -> Vec<u64> {
        let mask = format.mask();
        let mut state = 0x9e37_79b9_7f4a_7c15u64;
        let mut all = vec![
            0,
            1,
            format.sign(),
            format.sign() | 1,
            format.infinity(),
            format.infinity() - 1,
            format.infinity() | 1,
            format.nan(),
            1 << format.fraction,
            (1 << format.fraction) - 1,
        ];
        for at in 0..count {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let mut bits = state.rotate_left(23) & mask;
            if at % 3 == 0 {
                // Exponents near each other, where sums cancel.
                let around = (1u64 << (format.exponent - 1)) - 2 + (state >> 61);
                bits = bits & !format.infinity() | around << format.fraction;
            }
            all.push(bits);
        }
        all
    }

    fn same32(ours: u64, host: f32) -> bool {
        if host.is_nan() { F32.is_nan(ours) } else { ours == u64::from(host.to_bits()) }
    }

    fn same64(ours: u64, host: f64) -> bool {
        if host.is_nan() { F64.is_nan(ours) } else { ours == host.to_bits() }
    }

    #[test]
    fn agrees_with_the_host_in_32_bits() {
        let all = samples(F32, 400);
        for &a in &all {
            for &b in &all {
                let (x, y) = (f32::from_bits(a as u32), f32::from_bits(b as u32));
                assert!(same32(F32.add(a, b, Env::IEEE), x + y), "{x:e} + {y:e}");
                assert!(same32(F32.mul(a, b, Env::IEEE), x * y), "{x:e} * {y:e}");
                let c = all[(a ^ b) as usize % all.len()];
                let z = f32::from_bits(c as u32);
                assert!(same32(F32.fma(a, b, c, Env::IEEE), x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
            }
        }
    }

    #[test]
    fn agrees_with_the_host_in_64_bits() {
        let all = samples(F64, 300);
        for &a in &all {
            for &b in &all {
                let (x, y) = (f64::from_bits(a), f64::from_bits(b));
                assert!(same64(F64.add(a, b, Env::IEEE), x + y), "{x:e} + {y:e}");
                assert!(same64(F64.mul(a, b, Env::IEEE), x * y), "{x:e} * {y:e}");
                let c = all[(a ^ b) as usize % all.len()];
                let z = f64::from_bits(c);
                assert!(same64(F64.fma(a, b, c, Env::IEEE), x.mul_add(y, z)), "{x:e} * {y:e} + {z:e}");
                assert!(same32(convert(F64, F32, a, Env::IEEE), x as f32), "{x:e}");
            }
        }
    }

    #[test]
    fn directed_rounding_encloses() {
        let all = samples(F32, 300);
        let env = |round| Env { round, ..Env::IEEE };
        let value = |bits: u64| f64::from(f32::from_bits(bits as u32));
        for &a in &all {
            for &b in &all {
                // Both are exact in 64 bits, or nearly so.
                let exact = value(a) * value(b);
                let [up, down, zero] =
                    [Round::Up, Round::Down, Round::Zero].map(|round| value(F32.mul(a, b, env(round))));
                if exact.is_nan() {
                    continue;
                }
                assert!(down <= exact && exact <= up, "{exact:e}: {down:e} {up:e}");
                assert!(zero.abs() <= exact.abs());
                assert!(zero == up || zero == down);
            }
        }
    }
}
