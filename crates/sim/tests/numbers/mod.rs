//! Values of all kinds, and numbers of 8 and 16 bits by their definitions, for models of operations.

#![allow(dead_code, reason = "not every test uses all of it")]

/// Numbers that are the same in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mixed = (self.0 ^ self.0 >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        mixed ^ mixed >> 29
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 8) % n
    }

    /// A value of a type: floats and integers near the edges too; with `m` floats of moderate size, with `w` whole and small
    /// ones.
    pub fn value(&mut self, ty: &str) -> u64 {
        match ty {
            "i16" | "i32" | "i64" => {
                let bits: u32 = ty[1..].parse().expect("bits");
                let edge = [0, 1, 2, u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1, 0x00ff_8000, 0x7f];
                let value = if self.below(3) == 0 { edge[self.below(8) as usize] } else { self.next() };
                value & (u64::MAX >> (64 - bits))
            }
            "f16" => self.float(5, 10),
            "f32" => self.float(8, 23),
            "f64" => self.float(11, 52),
            "f16m" => self.below(2) << 15 | (13 + self.below(5)) << 10 | self.below(1 << 10),
            "f32x2m" => self.value("f32m") | self.value("f32m") << 32,
            "f16x2" => self.value("f16") | self.value("f16") << 16,
            "f32m" => self.below(2) << 31 | (120 + self.below(14)) << 23 | self.below(1 << 23),
            "f32w" => u64::from((self.below(400) as f32 - 60.0).to_bits()),
            "4" => self.below(4),
            _ => panic!("{ty}"),
        }
    }

    fn float(&mut self, exponent: u32, fraction: u32) -> u64 {
        let most = (1u64 << exponent) - 1;
        let ones = (1u64 << fraction) - 1;
        let sign = self.below(2) << (exponent + fraction);
        let mantissa = [0, ones, 1, 1 << (fraction - 1), self.next() & ones][self.below(5) as usize];
        let biased = match self.below(10) {
            0 => 0,
            1 => 1,
            2 => most - 1,
            3 => most,
            4 => self.below(most),
            _ => (most >> 1) - 3 + self.below(8),
        };
        sign | biased << fraction | mantissa
    }
}

/// A binary format of up to 16 bits, by its definition.
#[derive(Clone, Copy)]
pub struct Small {
    pub exponent: u32,
    pub fraction: u32,
    /// Only all ones are no number, and there is no infinity.
    pub finite: bool,
}

pub const HALF: Small = Small { exponent: 5, fraction: 10, finite: false };
pub const BRAIN: Small = Small { exponent: 8, fraction: 7, finite: false };
pub const FP8: Small = Small { exponent: 4, fraction: 3, finite: true };
pub const BF8: Small = Small { exponent: 5, fraction: 2, finite: false };

impl Small {
    pub fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    /// The number that bits are.
    pub fn number(self, bits: u32) -> f64 {
        let most = (1 << self.exponent) - 1;
        let exponent = bits >> self.fraction & most;
        let fraction = bits & ((1 << self.fraction) - 1);
        let bias = (most >> 1) as i32;
        let steps = f64::from(fraction) * 2f64.powi(-(self.fraction as i32));
        let magnitude = match (exponent == most, self.finite, fraction) {
            (true, false, 0) => f64::INFINITY,
            (true, false, _) => f64::NAN,
            (true, true, ones) if ones == (1 << self.fraction) - 1 => f64::NAN,
            _ if exponent == 0 => steps * 2f64.powi(1 - bias),
            _ => (1.0 + steps) * 2f64.powi(exponent as i32 - bias),
        };
        if bits >> (self.bits() - 1) & 1 == 0 { magnitude } else { -magnitude }
    }

    /// Bits of the greatest number.
    pub fn greatest(self) -> u32 {
        let infinity = ((1 << self.exponent) - 1) << self.fraction;
        if self.finite { infinity + (1 << self.fraction) - 2 } else { infinity - 1 }
    }

    /// Bits of the greatest magnitude that is not over a number's, with its sign; `None`: it is no number, or over all.
    pub fn below(self, number: f64) -> Option<u32> {
        if number.is_nan() || number.abs() > self.number(self.greatest()) {
            return None;
        }
        let (mut low, mut high) = (0, self.greatest());
        while low < high {
            let middle = (low + high).div_ceil(2);
            if self.number(middle) <= number.abs() { low = middle } else { high = middle - 1 }
        }
        Some(low | u32::from(number.is_sign_negative()) << (self.bits() - 1))
    }

    /// Bits of the nearest number, of two the even one; `None` as [`Small::below`].
    pub fn nearest(self, number: f64) -> Option<u32> {
        let low = self.below(number)?;
        let [distance, other] = [low, low + 1].map(|bits| (number.abs() - self.number(bits).abs()).abs());
        let up = low & ((1 << (self.bits() - 1)) - 1) < self.greatest()
            && (other < distance || other == distance && low & 1 != 0);
        Some(low + u32::from(up))
    }
}
