//! Elements of products of matrices against a second model: host arithmetic where one rounding is enough, floating point of
//! 64 bits for sums that are aligned and cut, integers of 128 bits for exact ones.

use unwedge_isa::amdgcn::Gfx;
use unwedge_isa::amdgcn::semantics::mfma::{Factor, Mfma, Number, SumMode, Total};

/// A small generator of numbers.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 24
    }

    /// Bits of a finite element whose exponent is near one, or anywhere.
    fn element(&mut self, factor: Factor) -> u64 {
        let near = !self.next().is_multiple_of(4);
        loop {
            let bits = self.next() & (u64::MAX >> (64 - u32::from(factor.bits().min(40))));
            let bits = if near {
                match factor {
                    Factor::F16 => bits & 0x83ff | (12 + bits % 7) << 10,
                    Factor::Bf16 => bits & 0x807f | (120 + bits % 14) << 7,
                    Factor::F32 | Factor::Xf32 => bits & 0x807f_ffff | (120 + bits % 14) << 23,
                    _ => bits,
                }
            } else {
                bits
            };
            if value(factor, bits).is_finite() {
                return bits;
            }
        }
    }
}

/// The number 1.
const BF16_ONE: u64 = 0x3f80;

/// An element as a number of the host.
fn value(factor: Factor, bits: u64) -> f64 {
    let small = |exponent: u32, fraction: u32, bias: i32| {
        let magnitude = bits & ((1 << (exponent + fraction)) - 1);
        let (biased, low) = ((magnitude >> fraction) as i32, (magnitude & ((1 << fraction) - 1)) as f64);
        let unit = 2f64.powi(-(fraction as i32));
        let magnitude = match biased {
            0 => low * unit * 2f64.powi(1 - bias),
            _ => (1.0 + low * unit) * 2f64.powi(biased - bias),
        };
        if bits >> (exponent + fraction) & 1 != 0 { -magnitude } else { magnitude }
    };
    match factor {
        Factor::F64 => f64::from_bits(bits),
        Factor::F32 => f32::from_bits(bits as u32).into(),
        Factor::Xf32 => f32::from_bits(bits as u32 & !0x1fff).into(),
        Factor::Bf16 => f32::from_bits((bits as u32) << 16).into(),
        Factor::F16 if bits >> 10 & 31 == 31 => f64::INFINITY,
        Factor::F16 => small(5, 10, 15),
        Factor::Fp8Fnuz | Factor::Bf8Fnuz if bits == 0x80 => f64::NAN,
        Factor::Fp8Fnuz => small(4, 3, 8),
        Factor::Bf8Fnuz => small(5, 2, 16),
        Factor::Fp8 if bits & 0x7f == 0x7f => f64::NAN,
        Factor::Fp8 => small(4, 3, 7),
        Factor::Bf8 if bits & 0x7c == 0x7c => f64::INFINITY,
        Factor::Bf8 => small(5, 2, 15),
        Factor::Fp6 => small(2, 3, 1),
        Factor::Bf6 => small(3, 2, 3),
        Factor::Fp4 => small(2, 1, 1),
        Factor::I8 => (bits as u8 as i8).into(),
    }
}

/// The exponent that a number has in a format whose least is given.
fn exponent(value: f64, least: i32) -> i32 {
    if value == 0.0 { least } else { (((value.to_bits() >> 52 & 0x7ff) as i32) - 1023).max(least) }
}

fn least(factor: Factor) -> i32 {
    match factor {
        Factor::F16 | Factor::Bf8 => -14,
        Factor::Fp8Fnuz => -7,
        Factor::Bf8Fnuz => -15,
        Factor::Fp8 => -6,
        Factor::Fp6 | Factor::Fp4 => 0,
        Factor::Bf6 => -2,
        _ => -126,
    }
}

fn pow2(exponent: i32) -> f64 {
    2f64.powi(exponent)
}

/// Products with their exponents, cut below 24 bits of the greatest: their sum, and that exponent.
fn cut(products: &[(f64, i32)]) -> (f64, i32) {
    let own = |(value, exponent): &(f64, i32)| if *value == 0.0 { -126 } else { *exponent };
    let most = products.iter().map(own).max().unwrap_or(-126);
    let unit = pow2(most - 24);
    (products.iter().map(|(value, _)| (value / unit).trunc() * unit).sum(), most)
}

fn with_c(sum: f64, most: i32, c: f64, forgets: bool) -> f32 {
    let own = exponent(c, -126);
    let all = most.max(own);
    let floor = |value: f64, unit: f64| (value / unit).floor() * unit;
    let c = if forgets && own < all - 25 { 0.0 } else { floor(c, pow2(all - 24)) };
    (floor(sum, pow2(all - 31)) + c) as f32
}

fn flush(value: f32) -> f32 {
    if value.abs() < f32::MIN_POSITIVE { 0.0f32.copysign(value) } else { value }
}

/// What an element is, by generation and format.
fn model(generation: Gfx, factor: Factor, items: usize, c: f32, pairs: &[(f64, f64)]) -> f32 {
    let low = least(factor);
    let products: Vec<(f64, i32)> =
        pairs.iter().map(|(a, b)| (a * b, exponent(*a, low) + exponent(*b, low))).collect();
    match (factor, generation) {
        (Factor::F32, _) => pairs.iter().fold(c, |sum, (a, b)| (*a as f32).mul_add(*b as f32, sum)),
        (Factor::F16 | Factor::Bf16, Gfx::Gfx908) => {
            let size = if factor == Factor::F16 { 4 } else { 2 };
            products.chunks(size).fold(c, |sum, group| {
                // Whole units of 2^-64, of which one rounding makes 32 bits.
                let units = |value: f64| (value * pow2(64)) as i128;
                let total: i128 =
                    group.iter().map(|(value, _)| units(*value)).sum::<i128>() + units(sum.into());
                (total as f32) * pow2(-64) as f32
            })
        }
        (Factor::F16 | Factor::Bf16, Gfx::Gfx90a) => {
            let size = if factor == Factor::Bf16 && items == 2 { 2 } else { 4 };
            let start = if c.abs() < f32::MIN_POSITIVE { 0.0 } else { c };
            let normal = |value: f64| if value.abs() < pow2(low) { 0.0 } else { value as f32 };
            pairs.chunks(size).fold(start, |sum, group| {
                let p: Vec<f32> = group.iter().map(|(a, b)| flush(normal(*a) * normal(*b))).collect();
                let first = flush(p[0] + p[1]);
                let all = if size == 4 { flush(first + flush(p[2] + p[3])) } else { first };
                flush(sum + all)
            })
        }
        (Factor::F16 | Factor::Bf16 | Factor::Xf32, _) => {
            let size = if factor == Factor::Xf32 { 4 } else { 8 };
            products.chunks(size).fold(c, |sum, group| {
                let (products, most) = cut(group);
                with_c(products, most, sum.into(), false)
            })
        }
        _ => products.chunks(16).fold(c, |sum, group| {
            let every = |from: usize| group.iter().skip(from).step_by(2).copied().collect::<Vec<_>>();
            let ((even, first), (odd, second)) = (cut(&every(0)), cut(&every(1)));
            let most = first.max(second);
            let unit = pow2(most - 24);
            let both = ((even / unit).floor() + (odd / unit).floor()) * unit;
            with_c(both, most, sum.into(), true)
        }),
    }
}

#[test]
fn elements_agree_with_the_model() {
    let many = std::env::var_os("UNWEDGE_ALL").is_some();
    let rounds = if many { 200_000 } else { 2_000 };
    let mut random = Random(7);
    /// A format of factors, rows, and how many products are summed.
    type Products = (Factor, u8, u8);
    let cases: &[(Gfx, &[Products])] = &[
        (Gfx::Gfx908, &[(Factor::F32, 32, 2), (Factor::F16, 16, 16), (Factor::Bf16, 16, 8)]),
        (
            Gfx::Gfx90a,
            &[(Factor::F32, 16, 4), (Factor::F16, 16, 16), (Factor::Bf16, 16, 16), (Factor::Bf16, 16, 8)],
        ),
        (
            Gfx::Gfx940,
            &[
                (Factor::F32, 16, 4),
                (Factor::Xf32, 16, 8),
                (Factor::F16, 16, 16),
                (Factor::Bf16, 32, 8),
                (Factor::Fp8Fnuz, 16, 32),
                (Factor::Bf8Fnuz, 32, 16),
            ],
        ),
        (
            Gfx::Gfx950,
            &[
                (Factor::F16, 16, 32),
                (Factor::Fp8, 16, 128),
                (Factor::Bf8, 32, 64),
                (Factor::Fp6, 32, 64),
                (Factor::Bf6, 16, 128),
                (Factor::Fp4, 16, 128),
            ],
        ),
    ];
    for (generation, formats) in cases {
        for (factor, size, depth) in *formats {
            let mfma = Mfma {
                size: *size,
                depth: *depth,
                blocks: 1,
                a: *factor,
                b: *factor,
                total: Total::F32,
                sparse: false,
            };
            // The units of the model of exact sums do not hold every number.
            let exact = *generation == Gfx::Gfx908 && *factor == Factor::Bf16;
            let within = |value: f64| value == 0.0 || value.abs() < 1e8 && value.abs() > 1e-4;
            let held = |bits: u64| if exact && !within(value(*factor, bits)) { BF16_ONE } else { bits };
            let mut compared = 0;
            for round in 0..rounds / usize::from(*depth) {
                let bits: Vec<(u64, u64)> = (0..*depth)
                    .map(|_| (held(random.element(*factor)), held(random.element(*factor))))
                    .collect();
                let c = loop {
                    let c = f32::from_bits(random.element(Factor::F32) as u32);
                    if *generation != Gfx::Gfx908 || c.abs() < 1e9 && c.abs() > 1e-9 {
                        break c;
                    }
                };
                let numbers: Vec<(Number, Number)> =
                    bits.iter().map(|(a, b)| (factor.unpack(*a), factor.unpack(*b))).collect();
                let values: Vec<(f64, f64)> =
                    bits.iter().map(|(a, b)| (value(*factor, *a), value(*factor, *b))).collect();
                let expected = model(*generation, *factor, mfma.a_items().into(), c, &values);
                let found =
                    f32::from_bits(mfma.element(*generation, c.to_bits(), &numbers, &[], SumMode::default()));
                // The model does not know where products that overflow 32 bits become infinite.
                let overflows = values.iter().any(|(a, b)| (a * b).abs() >= pow2(127));
                if overflows || expected.is_nan() {
                    continue;
                }
                compared += 1;
                assert_eq!(
                    (found + 0.0).to_bits(),
                    (expected + 0.0).to_bits(),
                    "{generation} {factor:?} round {round}: {found:e}, not {expected:e}; c {c:e}, {values:?}"
                );
            }
            assert!(compared >= 10, "{generation} {factor:?}: only {compared} elements compared");
        }
    }
}

/// Scales of 32 elements each: powers of two.
#[test]
fn scales_multiply() {
    let mfma = Mfma {
        size: 32,
        depth: 64,
        blocks: 1,
        a: Factor::Fp4,
        b: Factor::Fp8,
        total: Total::F32,
        sparse: false,
    };
    let mut random = Random(9);
    for _ in 0..200 {
        let pairs: Vec<(Number, Number)> = (0..64)
            .map(|_| (Factor::Fp4.unpack(random.next() & 15), Factor::Fp8.unpack(random.next() & 0x77)))
            .collect();
        let scales = [3 - (random.next() % 7) as i32; 2];
        let plain = f32::from_bits(mfma.element(Gfx::Gfx950, 0, &pairs, &[], SumMode::default()));
        let scaled = f32::from_bits(mfma.element(Gfx::Gfx950, 0, &pairs, &scales, SumMode::default()));
        assert_eq!(scaled, plain * 2f32.powi(scales[0]));
    }
}

#[test]
fn doubles_are_fused() {
    let mfma = Mfma {
        size: 16,
        depth: 4,
        blocks: 1,
        a: Factor::F64,
        b: Factor::F64,
        total: Total::F64,
        sparse: false,
    };
    let mut random = Random(11);
    let mut double =
        || f64::from_bits((random.next() << 24 | random.next() & 0xff_ffff) & !(3 << 61) | 1 << 61 | 3 << 60);
    for _ in 0..500 {
        let values: Vec<(f64, f64)> = (0..4).map(|_| (double(), double())).collect();
        let c = double();
        if !values.iter().all(|(a, b)| a.is_finite() && b.is_finite()) {
            continue;
        }
        let expected = values.iter().fold(c, |sum, (a, b)| a.mul_add(*b, sum));
        let numbers: Vec<(Number, Number)> = values
            .iter()
            .map(|(a, b)| (Factor::F64.unpack(a.to_bits()), Factor::F64.unpack(b.to_bits())))
            .collect();
        assert_eq!(mfma.element_f64(c.to_bits(), &numbers), expected.to_bits());
    }
}
