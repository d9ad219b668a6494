//! How a matrix core adds: an element of C and the products of a row and a column.
//!
//! AMD's manuals say that results are rounded to the nearest even and which denormals are kept, not in which order or how exactly
//! products are added. Here it is as a public study measured it on MI100, MI200 and MI300 (Xie et al., "MMA-Sim", 2025, whose model
//! has the hardware's bits). Not measured, and assumed to be as on gfx94x: everything of gfx950, sparse products, NaNs' bits and the
//! sign of a zero that is the sum of negative ones.

use super::super::soft::{self, Env, Finite, Round, SoftFormat};
use super::number::{Number, NumberClass};

/// Bits after the binary point that a product keeps when it is aligned.
const KEPT: i32 = 24;
/// Bits after the binary point that a sum of products keeps when it is aligned.
const KEPT_SUM: i32 = 31;

/// The exponent of zeros where numbers are aligned.
const ZERO_EXPONENT: i32 = -126;

/// How products are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// One after the other by rising K, each fused with the sum and rounded to the nearest even.
    Fused,
    /// So many at a time, together with what there is so far: exact, rounded to the nearest even.
    Exact(u8),
    /// So many at a time: in pairs, pairs of pairs, then to what there is so far. Each sum is rounded to the nearest even;
    /// denormals are flushed.
    Flushed(u8),
    /// So many at a time, aligned to the greatest of them and cut, then aligned with what there is so far and rounded down; the
    /// sum is rounded to the nearest even.
    Aligned(u8),
    /// As `Aligned`, but products at even and at odd places are aligned separately first.
    AlignedPairs(u8),
}

/// The bits of MODE that a matrix instruction obeys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SumMode {
    /// Denormals of A and B count as zeros, of 32 bits only.
    pub flush_in: bool,
    /// What is too great becomes the greatest number.
    pub saturate: bool,
}

/// What infinities and NaNs among numbers make of their sum; `None`: all are finite.
fn special(numbers: impl Iterator<Item = (NumberClass, bool)>) -> Option<u64> {
    let mut infinite = None;
    for (class, negative) in numbers {
        match class {
            NumberClass::Finite => {}
            NumberClass::Nan => return Some(soft::F32.nan()),
            NumberClass::Infinite if infinite.is_some_and(|other| other != negative) => {
                return Some(soft::F32.nan());
            }
            NumberClass::Infinite => infinite = Some(negative),
        }
    }
    infinite.map(|negative| soft::F32.infinity() | if negative { soft::F32.sign() } else { 0 })
}

/// `value · 2^shift`, rounded down.
fn shifted(value: i128, shift: i32) -> i128 {
    match shift {
        0.. => value << shift.min(63),
        _ => value >> shift.unsigned_abs().min(127),
    }
}

/// A number of so many units to a power of two, rounded.
fn rounded(units: i128, exponent: i32, saturate: bool) -> u64 {
    let value = Finite { negative: units < 0, exponent, significand: units.unsigned_abs() };
    soft::F32.round(value, Env { saturate, ..Env::IEEE })
}

fn aligned_exponent(number: &Number) -> i32 {
    if number.significand == 0 { ZERO_EXPONENT } else { number.exponent }
}

/// The sum of products, each cut to [`KEPT`] bits after the binary point of the greatest, and the exponent of the greatest.
fn cut_sum<'a>(products: impl Iterator<Item = &'a Number> + Clone) -> (i128, i32) {
    let most = products.clone().map(aligned_exponent).max().unwrap_or(ZERO_EXPONENT);
    let sum = products
        .map(|number| {
            let shift = aligned_exponent(number) - most + KEPT - number.fraction as i32;
            let magnitude = shifted(number.significand.into(), shift);
            if number.negative { -magnitude } else { magnitude }
        })
        .sum();
    (sum, most)
}

/// Adds C to a sum of products in units of `2^(exponent - KEPT)`.
fn with_c(sum: i128, exponent: i32, c: &Number, forgets: bool, saturate: bool) -> u64 {
    let own = aligned_exponent(c);
    let most = exponent.max(own);
    let products = shifted(sum, exponent - most + KEPT_SUM - KEPT);
    let signed = i128::from(c.significand) * if c.negative { -1 } else { 1 };
    let mut kept = shifted(signed, own - most + KEPT - c.fraction as i32);
    // A C that is far too small is lost, where rounding down would give -1 unit.
    if forgets && own < most - KEPT - 1 {
        kept = 0;
    }
    rounded(products + (kept << (KEPT_SUM - KEPT)), most - KEPT_SUM, saturate)
}

/// A product that 32 bits cannot hold is infinite.
fn overflowed(product: Number) -> Number {
    let two = product.significand >> product.fraction >= 2;
    let infinite = product.class == NumberClass::Finite && product.exponent + i32::from(two) >= 128;
    if infinite { Number { class: NumberClass::Infinite, ..product } } else { product }
}

fn unpack_f32(bits: u64) -> Number {
    super::number::Factor::F32.unpack(bits)
}

/// One group of products and C.
fn group(order: Order, products: &[Number], c: u64, mode: SumMode) -> u64 {
    let number = unpack_f32(c);
    let products: Vec<Number> = match order {
        Order::Aligned(_) => products.iter().map(|product| overflowed(*product)).collect(),
        _ => products.to_vec(),
    };
    let classes = products.iter().chain([&number]).map(|number| (number.class, number.negative));
    if let Some(bits) = special(classes) {
        return bits;
    }
    match order {
        Order::Exact(_) => {
            let mut exact = Exact::default();
            products.iter().chain([&number]).for_each(|number| exact.add(&number.finite()));
            soft::F32.round(exact.finite(), Env { saturate: mode.saturate, ..Env::IEEE })
        }
        Order::AlignedPairs(_) => {
            let (even, first) = cut_sum(products.iter().step_by(2));
            let (odd, second) = cut_sum(products.iter().skip(1).step_by(2));
            let most = first.max(second);
            let sum = shifted(even, first - most) + shifted(odd, second - most);
            with_c(sum, most, &number, true, mode.saturate)
        }
        _ => {
            let (sum, most) = cut_sum(products.iter());
            with_c(sum, most, &number, false, mode.saturate)
        }
    }
}

/// Products of 16-bit numbers added in pairs with flushed denormals.
fn flushed(size: usize, pairs: &[(Number, Number)], c: u64) -> u64 {
    const ENV: Env = Env { round: Round::NearestEven, flush_in: false, flush_out: true, saturate: false };
    let zero = |number: &Number| if number.is_denormal() { Number::ZERO } else { *number };
    let products: Vec<u64> = pairs
        .iter()
        .map(|(a, b)| {
            let product = zero(a).times(&zero(b), 0);
            match special([(product.class, product.negative)].into_iter()) {
                Some(bits) => bits,
                None => soft::F32.round(product.finite(), ENV),
            }
        })
        .collect();
    let add = |a: u64, b: u64| soft::F32.add(a, b, ENV);
    let start = if unpack_f32(c).is_denormal() { 0 } else { c };
    products.chunks(size.max(1)).fold(start, |sum, group| {
        let pairs: Vec<u64> =
            group.chunks(2).map(|pair| pair.iter().copied().reduce(add).unwrap_or(0)).collect();
        pairs.into_iter().reduce(add).map_or(sum, |all| add(sum, all))
    })
}

/// An element of a result of 32 bits: C, and pairs of elements of A and B in their order, each scaled by a power of two.
pub fn add(order: Order, c: u32, pairs: &[(Number, Number)], scales: &[i32], mode: SumMode) -> u32 {
    let scale = |at: usize| scales.get(at / SCALED).copied().unwrap_or(0);
    let products =
        || -> Vec<Number> { pairs.iter().enumerate().map(|(at, (a, b))| a.times(b, scale(at))).collect() };
    let sum = match order {
        Order::Fused => return fused(soft::F32, c.into(), pairs, mode) as u32,
        Order::Flushed(size) => flushed(size.into(), pairs, c.into()),
        Order::Exact(size) | Order::Aligned(size) | Order::AlignedPairs(size) => products()
            .chunks(usize::from(size.max(1)))
            .fold(c.into(), |sum, products| group(order, products, sum, mode)),
    };
    sum as u32
}

/// How many elements along K have one scale.
pub const SCALED: usize = 32;

/// One after the other, fused.
pub fn fused(format: SoftFormat, c: u64, pairs: &[(Number, Number)], mode: SumMode) -> u64 {
    let env = Env { saturate: mode.saturate, ..Env::IEEE };
    pairs.iter().fold(c, |sum, (a, b)| {
        let [a, b] = [a, b].map(|number| {
            let number = if mode.flush_in && number.is_denormal() { &Number::ZERO } else { number };
            let bits = match number.class {
                NumberClass::Nan => format.nan(),
                NumberClass::Infinite => format.infinity(),
                NumberClass::Finite => {
                    return format.unpack(format.round(number.finite(), Env::IEEE), false);
                }
            };
            format.unpack(bits | if number.negative { format.sign() } else { 0 }, false)
        });
        format.pack(format.fused(a, b, format.unpack(sum, false), Round::NearestEven), env)
    })
}

/// Bits of an exact sum after its binary point: enough for the product of the two smallest numbers.
const BELOW: i32 = 320;

/// A sum that loses nothing: a number of two's complement with its point after [`BELOW`] bits.
#[derive(Debug, Clone, Copy, Default)]
struct Exact([u64; 10]);

impl Exact {
    fn add(&mut self, value: &Finite) {
        let at = value.exponent + BELOW;
        debug_assert!(at >= 0 && value.significand >> 64 == 0);
        let (word, bit) = (at.max(0) as usize / 64, at.max(0) as usize % 64);
        let spread = (value.significand & u128::from(u64::MAX)) << bit;
        let mut carry = u128::from(value.negative);
        for (n, place) in self.0.iter_mut().enumerate() {
            let own = match n.checked_sub(word) {
                Some(0) => spread as u64,
                Some(1) => (spread >> 64) as u64,
                _ => 0,
            };
            let own = if value.negative { !own } else { own };
            carry += u128::from(*place) + u128::from(own);
            *place = carry as u64;
            carry >>= 64;
        }
    }

    fn finite(&self) -> Finite {
        let negative = self.0[9] >> 63 != 0;
        let mut magnitude = self.0;
        if negative {
            let mut carry = true;
            for word in &mut magnitude {
                (*word, carry) = (!*word).overflowing_add(carry.into());
            }
        }
        let Some(top) = (0..magnitude.len()).rev().find(|n| magnitude[*n] != 0) else {
            return Finite { negative: false, exponent: 0, significand: 0 };
        };
        let below = top.saturating_sub(1);
        let mut significand = u128::from(magnitude[top]);
        if top > 0 {
            significand = significand << 64 | u128::from(magnitude[below]);
        }
        // The lowest bit is set if lower words are not zero.
        let lost = magnitude[..below].iter().any(|word| *word != 0);
        let exponent = 64 * below as i32 - BELOW;
        Finite { negative, exponent, significand: significand | u128::from(lost) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::number::Factor;
    use super::*;

    fn pairs(factor: Factor, values: &[(u64, u64)]) -> Vec<(Number, Number)> {
        values.iter().map(|(a, b)| (factor.unpack(*a), factor.unpack(*b))).collect()
    }

    /// Each half is lost in 2^24 alone; together they are one, which rounding to even loses, too.
    #[test]
    fn exact_sums_round_once() {
        let one = 0x3c00;
        let values = pairs(Factor::F16, &[(one, 0x3800), (one, 0x3800), (0, 0), (0, 0)]);
        let c = 16_777_216f32;
        assert_eq!(f32::from_bits(add(Order::Fused, c.to_bits(), &values, &[], SumMode::default())), c);
        assert_eq!(f32::from_bits(add(Order::Exact(4), c.to_bits(), &values, &[], SumMode::default())), c);
        let more = pairs(Factor::F16, &[(one, one), (one, 0x3800), (0, 0), (0, 0)]);
        let sum = |order| f32::from_bits(add(order, c.to_bits(), &more, &[], SumMode::default()));
        assert_eq!([sum(Order::Exact(4)), sum(Order::Flushed(4))], [c + 2.0; 2]);
        let negative = pairs(Factor::F16, &[(one, 0x4000), (one, 0xc000)]);
        assert_eq!(add(Order::Exact(4), 0, &negative, &[], SumMode::default()), 0);
    }

    #[test]
    fn denormals_are_flushed_on_mi200_only() {
        let values = pairs(Factor::F16, &[(1, 0x7800), (0, 0)]);
        assert_eq!(add(Order::Flushed(2), 0, &values, &[], SumMode::default()), 0);
        assert_ne!(add(Order::Exact(2), 0, &values, &[], SumMode::default()), 0);
        assert_eq!(add(Order::Flushed(2), 5, &[], &[], SumMode::default()), 0);
    }

    /// A small negative number is rounded down to a whole unit.
    #[test]
    fn aligned_sums_round_down() {
        let tiny = pairs(Factor::Bf16, &[(0xbf80, 0x2f80)]);
        let sum = add(Order::Aligned(8), 1f32.to_bits(), &tiny, &[], SumMode::default());
        // 1 - 2^-31 is 1 to the nearest.
        assert_eq!(sum, 1f32.to_bits());
        let c = -(2f32.powi(-40));
        let one = pairs(Factor::Bf16, &[(0x3f80, 0x3f80)]);
        let sum = add(Order::Aligned(8), c.to_bits(), &one, &[], SumMode::default());
        assert_eq!(sum, (1.0 - 2f32.powi(-24)).to_bits());
    }

    #[test]
    fn infinities_and_overflow() {
        let big = pairs(Factor::Bf16, &[(0x7f00, 0x7f00)]);
        for order in [Order::Aligned(8), Order::Exact(2), Order::Flushed(2), Order::Fused] {
            assert_eq!(add(order, 0, &big, &[], SumMode::default()), f32::INFINITY.to_bits(), "{order:?}");
        }
        let nan = pairs(Factor::Bf16, &[(0x7f80, 0)]);
        assert!(f32::from_bits(add(Order::Aligned(8), 0, &nan, &[], SumMode::default())).is_nan());
        let saturate = SumMode { saturate: true, ..SumMode::default() };
        let large = pairs(Factor::Bf16, &[(0x7f00, 0x3f80)]);
        for order in [Order::Aligned(8), Order::Exact(2), Order::Fused] {
            let sum = |mode| add(order, f32::MAX.to_bits(), &large, &[], mode);
            assert_eq!(sum(saturate), f32::MAX.to_bits(), "{order:?}");
            assert_eq!(sum(SumMode::default()), f32::INFINITY.to_bits());
        }
    }
}
