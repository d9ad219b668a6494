//! Ranges, and the transfer functions of operations.

use crate::ir::Op;

/// Bounds of an integer of a width; 1 bit for booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// Width in bits.
    pub width: u32,
    /// The least value, unsigned.
    pub umin: u64,
    /// The greatest value, unsigned.
    pub umax: u64,
    /// The least value, signed.
    pub smin: i64,
    /// The greatest value, signed.
    pub smax: i64,
    /// Bits that are zero.
    pub zeros: u64,
    /// Bits that are one.
    pub ones: u64,
}

fn mask(width: u32) -> u64 {
    if width >= 64 { u64::MAX } else { (1 << width) - 1 }
}

fn signed(width: u32, bits: u64) -> i64 {
    (bits << (64 - width)) as i64 >> (64 - width)
}

impl Range {
    /// The range of every number.
    pub fn full(width: u32) -> Range {
        let width = width.clamp(1, 64);
        let mask = mask(width);
        Range {
            width,
            umin: 0,
            umax: mask,
            smin: signed(width, 1 << (width - 1)),
            smax: (mask >> 1) as i64,
            zeros: 0,
            ones: 0,
        }
    }

    /// The range of one number.
    pub fn constant(width: u32, bits: u64) -> Range {
        let mut range = Range::full(width);
        let bits = bits & mask(range.width);
        (range.umin, range.umax) = (bits, bits);
        range.normalized()
    }

    /// The range within unsigned bounds.
    pub fn unsigned(width: u32, umin: u64, umax: u64) -> Range {
        let mut range = Range::full(width);
        (range.umin, range.umax) = (umin.min(range.umax), umax.min(range.umax));
        range.normalized()
    }

    /// The range within signed bounds.
    pub fn signed(width: u32, smin: i64, smax: i64) -> Range {
        let mut range = Range::full(width);
        (range.smin, range.smax) = (smin.max(range.smin), smax.min(range.smax));
        range.normalized()
    }

    /// The range of the numbers with these known bits.
    pub fn bits(width: u32, zeros: u64, ones: u64) -> Range {
        let mut range = Range::full(width);
        (range.zeros, range.ones) = (zeros & mask(range.width), ones & mask(range.width));
        range.normalized()
    }

    /// The number, if there is only one.
    pub fn number(&self) -> Option<u64> {
        (self.umin == self.umax).then_some(self.umin)
    }

    /// Whether the sign is clear in all numbers.
    pub fn is_non_negative(&self) -> bool {
        self.smin >= 0
    }

    /// Whether a number is in the range.
    pub fn contains(&self, bits: u64) -> bool {
        let number = signed(self.width, bits);
        (self.umin..=self.umax).contains(&bits)
            && (self.smin..=self.smax).contains(&number)
            && bits & self.zeros == 0
            && bits & self.ones == self.ones
    }

    /// A range that contains both.
    #[must_use]
    pub fn union(self, other: Range) -> Range {
        Range {
            width: self.width,
            umin: self.umin.min(other.umin),
            umax: self.umax.max(other.umax),
            smin: self.smin.min(other.smin),
            smax: self.smax.max(other.smax),
            zeros: self.zeros & other.zeros,
            ones: self.ones & other.ones,
        }
    }

    /// The numbers that both ranges contain. This range if there are none, which is so in code that is never executed.
    #[must_use]
    pub fn intersection(self, other: Range) -> Range {
        let both = Range {
            width: self.width,
            umin: self.umin.max(other.umin),
            umax: self.umax.min(other.umax),
            smin: self.smin.max(other.smin),
            smax: self.smax.min(other.smax),
            zeros: self.zeros | other.zeros,
            ones: self.ones | other.ones,
        };
        both.tightened().unwrap_or(self)
    }

    fn normalized(self) -> Range {
        self.tightened().unwrap_or(Range::full(self.width))
    }

    /// The same numbers with bounds and known bits derived from each other; `None` if there are none.
    fn tightened(mut self) -> Option<Range> {
        for _ in 0..2 {
            self.umin = self.umin.max(self.ones);
            self.umax = self.umax.min(mask(self.width) & !self.zeros);
            let sign = 1 << (self.width - 1);
            if self.umin & sign == self.umax & sign {
                self.smin = self.smin.max(signed(self.width, self.umin));
                self.smax = self.smax.min(signed(self.width, self.umax));
            }
            if (self.smin < 0) == (self.smax < 0) {
                self.umin = self.umin.max(self.smin as u64 & mask(self.width));
                self.umax = self.umax.min(self.smax as u64 & mask(self.width));
            }
            if self.umin > self.umax || self.smin > self.smax || self.zeros & self.ones != 0 {
                return None;
            }
            // Bits above the highest one in which the bounds differ are known.
            let equal = !u64::MAX.checked_shr((self.umin ^ self.umax).leading_zeros()).unwrap_or(0)
                & mask(self.width);
            self.zeros |= !self.umin & equal;
            self.ones |= self.umin & equal;
        }
        (self.zeros & self.ones == 0).then_some(self)
    }

    /// Low bits that are zero in all numbers.
    fn low_zeros(&self) -> u32 {
        self.zeros.trailing_ones()
    }

    fn multiple_of(self, low_zeros: u32) -> Range {
        let zeros = mask(low_zeros.min(self.width));
        self.intersection(Range { zeros, ..Range::full(self.width) })
    }
}

/// The result of a comparison, if the ranges decide it.
pub fn decide(op: Op, a: &Range, b: &Range) -> Option<bool> {
    let less = |amin: i128, amax: i128, bmin: i128, bmax: i128| {
        if amax < bmin {
            Some(true)
        } else if amin >= bmax {
            Some(false)
        } else {
            None
        }
    };
    let unsigned = || less(a.umin.into(), a.umax.into(), b.umin.into(), b.umax.into());
    let signed = || less(a.smin.into(), a.smax.into(), b.smin.into(), b.smax.into());
    let differ = || {
        let apart = a.umax < b.umin || b.umax < a.umin || a.smax < b.smin || b.smax < a.smin;
        if apart || a.zeros & b.ones != 0 || a.ones & b.zeros != 0 {
            return Some(true);
        }
        (a.number()? == b.number()?).then_some(false)
    };
    match op {
        Op::ULt => unsigned(),
        Op::UGe => unsigned().map(|less| !less),
        Op::ILt => signed(),
        Op::IGe => signed().map(|less| !less),
        Op::INe => differ(),
        Op::IEq => differ().map(|differ| !differ),
        _ => None,
    }
}

/// The range of the result of an operation that has `width` bits.
pub fn transfer(op: Op, width: u32, args: &[Range]) -> Range {
    let full = Range::full(width);
    match (op, args) {
        (Op::ULt | Op::UGe | Op::ILt | Op::IGe | Op::IEq | Op::INe, [a, b]) => match decide(op, a, b) {
            Some(holds) => Range::constant(1, holds.into()),
            None => full,
        },
        (Op::Select, [condition, a, b]) => match condition.number() {
            Some(0) => *b,
            Some(_) => *a,
            None => a.union(*b),
        },
        (Op::U2U, [a]) => {
            let cut = Range::bits(width, a.zeros | !mask(a.width), a.ones);
            if a.umax <= full.umax { cut.intersection(Range::unsigned(width, a.umin, a.umax)) } else { cut }
        }
        (Op::I2I, [a]) if a.smin >= full.smin && a.smax <= full.smax => Range::signed(width, a.smin, a.smax),
        (Op::I2I, [a]) => Range::bits(width, a.zeros, a.ones),
        (Op::BitCount, [a]) => {
            let most = a.width - (a.zeros & mask(a.width)).count_ones();
            Range::unsigned(width, a.ones.count_ones().into(), most.into())
        }
        (Op::FindUMsb, [a]) if a.umin > 0 => {
            let highest = |bits: u64| 63 - u64::from(bits.leading_zeros());
            Range::unsigned(width, highest(a.umin), highest(a.umax))
        }
        (Op::FindLsb, [a]) if a.umin > 0 => {
            Range::unsigned(width, a.low_zeros().into(), u64::from(a.width) - 1)
        }
        (Op::FindLsb | Op::FindUMsb | Op::FindIMsb, [a]) => Range::signed(width, -1, i64::from(a.width) - 1),
        (Op::UBitfieldExtract, [_, _, count]) if count.umax < width.into() => {
            Range::unsigned(width, 0, mask(count.umax as u32))
        }
        (Op::IShl | Op::IShr | Op::UShr, [a, count]) => shift(op, a, count),
        (_, [a]) => unary(op, a),
        (Op::IAdd | Op::ISub | Op::IMul | Op::UMulHigh | Op::UAddCarry | Op::USubBorrow, [a, b]) => {
            sum(op, a, b)
        }
        (Op::UDiv | Op::UMod | Op::IDiv | Op::IRem | Op::IMod, [a, b]) => quotient(op, a, b),
        (_, [a, b]) => minimum_or_bits(op, a, b),
        _ => full,
    }
}

fn unary(op: Op, a: &Range) -> Range {
    let full = Range::full(a.width);
    match op {
        Op::INot => Range::bits(a.width, a.ones, a.zeros & mask(a.width)).intersection(Range::unsigned(
            a.width,
            !a.umax & full.umax,
            !a.umin & full.umax,
        )),
        Op::INeg if a.smin > full.smin => Range::signed(a.width, -a.smax, -a.smin).multiple_of(a.low_zeros()),
        Op::IAbs if a.smin > full.smin => {
            let least = if a.smin >= 0 {
                a.smin
            } else if a.smax < 0 {
                -a.smax
            } else {
                0
            };
            Range::signed(a.width, least, a.smax.max(-a.smin))
        }
        _ => full,
    }
}

fn shift(op: Op, a: &Range, count: &Range) -> Range {
    let full = Range::full(a.width);
    match (op, count.number()) {
        (Op::IShl, Some(count)) => {
            let count = count as u32 & (a.width - 1);
            let bits = Range::bits(a.width, a.zeros << count | mask(count), a.ones << count);
            let fits = u128::from(a.umax) << count <= full.umax.into();
            if fits {
                bits.intersection(Range::unsigned(a.width, a.umin << count, a.umax << count))
            } else {
                bits
            }
        }
        (Op::IShl, None) => full.multiple_of(a.low_zeros()),
        (Op::UShr, Some(count)) => {
            let count = count as u32 & (a.width - 1);
            let bits = Range::bits(
                a.width,
                (a.zeros | !mask(a.width)) >> count | !(mask(a.width) >> count),
                a.ones >> count,
            );
            bits.intersection(Range::unsigned(a.width, a.umin >> count, a.umax >> count))
        }
        (Op::UShr, None) => Range::unsigned(a.width, 0, a.umax),
        (_, Some(count)) => {
            let count = count as u32 & (a.width - 1);
            Range::signed(a.width, a.smin >> count, a.smax >> count)
        }
        (_, None) => Range::signed(a.width, a.smin.min(0), a.smax.max(-1)),
    }
}

fn sum(op: Op, a: &Range, b: &Range) -> Range {
    let width = a.width;
    let full = Range::full(width);
    let [amin, amax, bmin, bmax] = [a.umin, a.umax, b.umin, b.umax].map(i128::from);
    let [asmin, asmax, bsmin, bsmax] = [a.smin, a.smax, b.smin, b.smax].map(i128::from);
    let most = i128::from(full.umax);
    // The bounds apply only if they fit without wrapping.
    let within = |(umin, umax): (i128, i128), (smin, smax): (i128, i128)| {
        let mut range = full;
        if umin >= 0 && umax <= most {
            range = range.intersection(Range::unsigned(width, umin as u64, umax as u64));
        }
        if smin >= full.smin.into() && smax <= full.smax.into() {
            range = range.intersection(Range::signed(width, smin as i64, smax as i64));
        }
        range
    };
    match op {
        Op::IAdd => within((amin + bmin, amax + bmax), (asmin + bsmin, asmax + bsmax))
            .multiple_of(a.low_zeros().min(b.low_zeros())),
        Op::ISub => within((amin - bmax, amax - bmin), (asmin - bsmax, asmax - bsmin))
            .multiple_of(a.low_zeros().min(b.low_zeros())),
        Op::IMul => {
            let umax = u128::from(a.umax) * u128::from(b.umax);
            let unsigned = if umax <= full.umax.into() { (amin * bmin, umax as i128) } else { (-1, 0) };
            let corners = [asmin * bsmin, asmin * bsmax, asmax * bsmin, asmax * bsmax];
            let (least, greatest) =
                corners.iter().fold((corners[0], corners[0]), |(least, greatest), &corner| {
                    (least.min(corner), greatest.max(corner))
                });
            within(unsigned, (least, greatest)).multiple_of(a.low_zeros() + b.low_zeros())
        }
        Op::UMulHigh => {
            let high = |a: u64, b: u64| ((u128::from(a) * u128::from(b)) >> width) as u64;
            Range::unsigned(width, high(a.umin, b.umin), high(a.umax, b.umax))
        }
        Op::UAddCarry if amax + bmax <= most => Range::constant(width, 0),
        Op::UAddCarry if amin + bmin > most => Range::constant(width, 1),
        Op::USubBorrow if a.umin >= b.umax => Range::constant(width, 0),
        Op::USubBorrow if a.umax < b.umin => Range::constant(width, 1),
        _ => Range::unsigned(width, 0, 1),
    }
}

fn quotient(op: Op, a: &Range, b: &Range) -> Range {
    let width = a.width;
    let is_unsigned = matches!(op, Op::UDiv | Op::UMod);
    if !(is_unsigned || a.is_non_negative() && b.is_non_negative()) {
        return Range::full(width);
    }
    if matches!(op, Op::UDiv | Op::IDiv) {
        // The quotient of a division by zero is zero.
        let least = if b.umin > 0 { a.umin / b.umax } else { 0 };
        return Range::unsigned(width, least, a.umax / b.umin.max(1));
    }
    if a.umax < b.umin {
        return *a;
    }
    Range::unsigned(width, 0, a.umax.min(b.umax.saturating_sub(1)))
}

fn minimum_or_bits(op: Op, a: &Range, b: &Range) -> Range {
    let width = a.width;
    let either = a.union(*b);
    match op {
        Op::UMin => either.intersection(Range::unsigned(width, 0, a.umax.min(b.umax))),
        Op::UMax => either.intersection(Range::unsigned(width, a.umin.max(b.umin), u64::MAX)),
        Op::IMin => either.intersection(Range::signed(width, i64::MIN, a.smax.min(b.smax))),
        Op::IMax => either.intersection(Range::signed(width, a.smin.max(b.smin), i64::MAX)),
        Op::IAnd => Range::bits(width, a.zeros | b.zeros, a.ones & b.ones).intersection(Range::unsigned(
            width,
            0,
            a.umax.min(b.umax),
        )),
        Op::IOr => Range::bits(width, a.zeros & b.zeros, a.ones | b.ones).intersection(Range::unsigned(
            width,
            a.umin.max(b.umin),
            u64::MAX,
        )),
        Op::IXor => {
            Range::bits(width, a.zeros & b.zeros | a.ones & b.ones, a.zeros & b.ones | a.ones & b.zeros)
        }
        _ => Range::full(width),
    }
}
