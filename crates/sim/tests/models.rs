//! Operations that LLVM's constant folder does not know, against models of them, and which have no second source at all.
//!
//! A model is a second reading of AMD's ISA manuals in arithmetic of the host. Compared are semantics, of vector operations
//! by name, and of scalar ones as instructions that the emulator runs.

#[path = "models/cdna.rs"]
mod cdna;
mod numbers;
mod rig;

use numbers::{BF8, BRAIN, FP8, HALF, Numbers, Small};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_isa::amdgcn::semantics::{Mode, Op, dual, of_opcode};
use unwedge_isa::amdgcn::{Gfx, Operation, codec, tables};

/// Operations in LLVM's folder, and kernels that it compiled: second sources of their own.
const FOLDED: &str = include_str!("../../isa/tests/amdgcn_folds/ops.txt");
const KERNELS: &str = include_str!("kernels/vectors.txt");

fn op(name: &str) -> Op {
    // The name of a row, or of what has the name in some generation.
    let row = tables::rows().iter().find(|row| row.name == name).or_else(|| {
        let (variant, _) = tables::name(name.as_bytes())?.variants.first()?;
        Some(&tables::rows()[usize::from(tables::variants()[usize::from(*variant)].row)])
    });
    row.and_then(|row| of_opcode(row.opcode)).unwrap_or_else(|| panic!("{name}"))
}

/// Denormals are kept, NaN is clamped to zero.
fn mode() -> Mode {
    Mode::from_bits(0x1f0, Gfx::Gfx10)
}

fn eval(name: &str, m: &Mode, [a, b, c]: [u64; 3]) -> u64 {
    match op(name) {
        Op::Lane(lane) => (lane.one)(m, a as u32, b as u32, c as u32).into(),
        Op::Wide(f) | Op::Shift { f, .. } => f(m, a, b, c),
        _ => panic!("{name}"),
    }
}

/// Operations by name, type of the result, of the sources, and what they give.
type Model = (&'static str, &'static str, &'static str, fn([u64; 3]) -> u64);

fn s(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn h(bits: u64) -> f64 {
    HALF.number(bits as u32 & 0xffff)
}

fn to_h(number: f64) -> u64 {
    let infinity = 0x7c00 | u32::from(number.is_sign_negative()) << 15;
    // Halfway to what the next number would be is infinity.
    let over = number.abs() >= 65520.0;
    let bits = match HALF.nearest(number.clamp(-65504.0, 65504.0)) {
        _ if over => infinity,
        Some(bits) => bits,
        None => 0x7e00,
    };
    bits.into()
}

fn i16_of(bits: u64) -> i64 {
    i64::from(bits as u16 as i16)
}

fn middle<T: Ord + Copy>(mut values: [T; 3]) -> T {
    values.sort_unstable();
    values[1]
}

fn norm(number: f64, low: f64, most: f64) -> u64 {
    if number.is_nan() {
        0
    } else {
        u64::from((number.clamp(low, 1.0) * most).round_ties_even() as i32 as u16)
    }
}

/// A product that is zero if a factor is.
fn legacy_product(a: u64, b: u64) -> f32 {
    if s(a) == 0.0 || s(b) == 0.0 { 0.0 } else { s(a) * s(b) }
}

fn f(number: f32) -> u64 {
    number.to_bits().into()
}

/// The sum of distances of four bytes; `masked`: only of those whose reference is not zero.
fn distances(a: u64, b: u64, masked: bool) -> u64 {
    let byte = |value: u64, at: u32| i64::from(value.to_le_bytes()[at as usize]);
    let all = (0..4).filter(|at| !masked || byte(b, *at) != 0);
    all.map(|at| byte(a, at).abs_diff(byte(b, at))).sum()
}

/// Sums of distances at four offsets, added to words of 16 bits.
fn four(a: u64, b: u64, c: u64, masked: bool) -> u64 {
    (0..4).fold(0, |all, at| {
        let sum = (c >> (16 * at) & 0xffff) + distances(a >> (8 * at), b, masked);
        all | (sum & 0xffff) << (16 * at)
    })
}

fn two(low: u64, high: u64) -> u64 {
    low & 0xffff | high << 16
}

fn put_byte(into: u64, at: u64, byte: f32) -> u64 {
    let shift = 8 * (at & 3);
    into & !(0xff << shift) | (byte.clamp(0.0, 255.0) as u64) << shift
}

const MODELS: &[Model] = &[
    // Integers.
    ("v_mov_b32", "i32", "i32", |[a, ..]| a),
    ("v_mov_b16", "i16", "i16", |[a, ..]| a),
    ("v_not_b16", "i16", "i16", |[a, ..]| !a & 0xffff),
    ("v_and_b16", "i16", "i16 i16", |[a, b, _]| a & b),
    ("v_or_b16", "i16", "i16 i16", |[a, b, _]| a | b),
    ("v_xor_b16", "i16", "i16 i16", |[a, b, _]| a ^ b),
    ("v_sub_i16", "i16", "i16 i16", |[a, b, _]| a.wrapping_sub(b)),
    ("v_subrev_u16", "i16", "i16 i16", |[a, b, _]| b.wrapping_sub(a)),
    ("v_mul_lo_i32", "i32", "i32 i32", |[a, b, _]| a.wrapping_mul(b)),
    ("v_mad_i16 v_mad_legacy_i16 v_mad_legacy_u16", "i16", "i16 i16 i16", |[a, b, c]| {
        a.wrapping_mul(b).wrapping_add(c)
    }),
    ("v_pk_mad_i16", "i32", "i32 i32 i32", |[a, b, c]| {
        two(a.wrapping_mul(b).wrapping_add(c), (a >> 16).wrapping_mul(b >> 16).wrapping_add(c >> 16))
    }),
    ("v_lshl_b64", "i64", "i64 i32", |[a, b, _]| a.wrapping_shl(b as u32)),
    ("v_lshr_b64", "i64", "i64 i32", |[a, b, _]| a.wrapping_shr(b as u32)),
    ("v_ashr_i64", "i64", "i64 i32", |[a, b, _]| (a as i64).wrapping_shr(b as u32) as u64),
    ("v_min3_i16", "i16", "i16 i16 i16", |v| v.map(i16_of).into_iter().min().unwrap_or(0) as u64),
    ("v_max3_i16", "i16", "i16 i16 i16", |v| v.map(i16_of).into_iter().max().unwrap_or(0) as u64),
    ("v_med3_i16", "i16", "i16 i16 i16", |v| middle(v.map(i16_of)) as u64),
    ("v_min3_u16", "i16", "i16 i16 i16", |v| v.into_iter().min().unwrap_or(0)),
    ("v_max3_u16", "i16", "i16 i16 i16", |v| v.into_iter().max().unwrap_or(0)),
    ("v_med3_u16", "i16", "i16 i16 i16", middle),
    ("v_qsad_pk_u16_u8", "i64", "i64 i32 i64", |[a, b, c]| four(a, b, c, false)),
    ("v_mqsad_pk_u16_u8", "i64", "i64 i32 i64", |[a, b, c]| four(a, b, c, true)),
    // Products and sums, rounded once or twice.
    ("v_fmac_f32 v_fmaak_f32 v_fmamk_f32", "f32", "f32 f32 f32", |[a, b, c]| f(s(a).mul_add(s(b), s(c)))),
    ("v_mac_f32 v_madak_f32 v_madmk_f32", "f32", "f32m f32m f32m", |[a, b, c]| f(s(a) * s(b) + s(c))),
    ("v_mac_legacy_f32", "f32", "f32m f32m f32m", |[a, b, c]| f(legacy_product(a, b) + s(c))),
    ("v_fmac_legacy_f32", "f32", "f32 f32 f32", |[a, b, c]| {
        let zero = s(a) == 0.0 || s(b) == 0.0;
        f(if zero { 0.0 + s(c) } else { s(a).mul_add(s(b), s(c)) })
    }),
    ("v_fmac_f16 v_fmaak_f16 v_fmamk_f16 v_fma_legacy_f16", "f16", "f16m f16m f16m", |[a, b, c]| {
        to_h(h(a) * h(b) + h(c))
    }),
    ("v_mac_f16 v_madak_f16 v_madmk_f16 v_mad_legacy_f16", "f16", "f16m f16m f16m", |[a, b, c]| {
        to_h(h(to_h(h(a) * h(b))) + h(c))
    }),
    ("v_pk_fmac_f16", "i32", "f16m f16m f16m", |[a, b, c]| to_h(h(a) * h(b) + h(c))),
    // Minima of old: what a comparison that is false chooses.
    ("v_min_legacy_f32", "f32", "f32 f32", |[a, b, _]| if s(a) < s(b) { a } else { b }),
    ("v_max_legacy_f32", "f32", "f32 f32", |[a, b, _]| if s(a) >= s(b) { a } else { b }),
    // Conversions.
    ("v_cvt_f16_f32", "f16", "f32", |[a, ..]| to_h(s(a).into())),
    ("v_cvt_rpi_i32_f32", "i32", "f32", |[a, ..]| (f64::from(s(a)) + 0.5).floor() as i32 as u64),
    ("v_cvt_flr_i32_f32", "i32", "f32", |[a, ..]| f64::from(s(a)).floor() as i32 as u64),
    ("v_cvt_off_f32_i4", "f32", "i32", |[a, ..]| {
        let low = (a & 15) as i32;
        f((if low >= 8 { low - 16 } else { low }) as f32 / 16.0)
    }),
    ("v_cvt_norm_i16_f16", "i16", "f16", |[a, ..]| norm(h(a), -1.0, 32767.0)),
    ("v_cvt_norm_u16_f16", "i16", "f16", |[a, ..]| norm(h(a), 0.0, 65535.0)),
    ("v_cvt_pknorm_i16_f16", "i32", "f16 f16", |[a, b, _]| {
        two(norm(h(a), -1.0, 32767.0), norm(h(b), -1.0, 32767.0))
    }),
    ("v_cvt_pknorm_u16_f16", "i32", "f16 f16", |[a, b, _]| {
        two(norm(h(a), 0.0, 65535.0), norm(h(b), 0.0, 65535.0))
    }),
    ("v_cvt_pknorm_i16_f32", "i32", "f32 f32", |[a, b, _]| {
        two(norm(s(a).into(), -1.0, 32767.0), norm(s(b).into(), -1.0, 32767.0))
    }),
    ("v_cvt_pknorm_u16_f32", "i32", "f32 f32", |[a, b, _]| {
        two(norm(s(a).into(), 0.0, 65535.0), norm(s(b).into(), 0.0, 65535.0))
    }),
    // Of whole numbers: how others are rounded is not told.
    ("v_cvt_pk_u8_f32 v_cvt_pkaccum_u8_f32", "i32", "f32w 4 i32", |[a, b, c]| put_byte(c, b, s(a))),
    ("v_cvt_f32_fp8", "f32", "i32", |[a, ..]| f(FP8.number(a as u32 & 0xff) as f32)),
    ("v_cvt_f32_bf8", "f32", "i32", |[a, ..]| f(BF8.number(a as u32 & 0xff) as f32)),
    ("v_cvt_pk_f32_fp8", "f32x2", "i32", |[a, ..]| pair(FP8, a)),
    ("v_cvt_pk_f32_bf8", "f32x2", "i32", |[a, ..]| pair(BF8, a)),
];

fn pair(small: Small, bytes: u64) -> u64 {
    let [low, high] = [0, 8].map(|at| f(small.number((bytes >> at) as u32 & 0xff) as f32));
    low | high << 32
}

/// Bits with every NaN the same.
fn comparable(ty: &str, bits: u64) -> u64 {
    match ty {
        "f16" if bits & 0x7fff > 0x7c00 => 0x7e00,
        "f32" if bits & 0x7fff_ffff > 0x7f80_0000 => 0x7fc0_0000,
        "f64" if bits & (u64::MAX >> 1) > 0x7ff0 << 48 => 0x7ff8 << 48,
        "f16x2" => comparable("f16", bits & 0xffff) | comparable("f16", bits >> 16 & 0xffff) << 16,
        "bf16" if bits & 0x7fff > 0x7f80 => 0x7fc0,
        "bf16x2" => comparable("bf16", bits & 0xffff) | comparable("bf16", bits >> 16 & 0xffff) << 16,
        "f32x2" => comparable("f32", bits & 0xffff_ffff) | comparable("f32", bits >> 32) << 32,
        "i16" | "f16" => bits & 0xffff,
        "i32" | "f32" => bits & 0xffff_ffff,
        _ => bits,
    }
}

#[test]
fn operations_give_what_their_models_say() {
    let mut wrong = BTreeMap::new();
    let mut compared = 0;
    for (names, result, sources, model) in MODELS.iter().chain(cdna::MODELS) {
        for name in names.split(' ') {
            let mut numbers = Numbers(name.len() as u64 * 77);
            for _ in 0..600 {
                let mut values = [0; 3];
                sources.split(' ').zip(&mut values).for_each(|(ty, place)| *place = numbers.value(ty));
                let ours = comparable(result, eval(name, &mode(), values));
                let theirs = comparable(result, model(values));
                compared += 1;
                if ours != theirs {
                    wrong.insert(name, format!("{values:x?} gives {ours:x}, not {theirs:x}"));
                }
            }
        }
    }
    eprintln!("{compared} results compared");
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn carries() {
    let mut numbers = Numbers(5);
    for _ in 0..2000 {
        let [a, b] = [0; 2].map(|_| numbers.value("i32"));
        let carry = numbers.below(2);
        for (name, wide) in [
            ("v_addc_co_u32", a + b + carry),
            ("v_subb_co_u32", a.wrapping_sub(b).wrapping_sub(carry)),
            ("v_subbrev_co_u32", b.wrapping_sub(a).wrapping_sub(carry)),
            ("v_subrev_co_u32", b.wrapping_sub(a)),
        ] {
            let Op::Carry(f) = op(name) else { panic!("{name}") };
            let got = f(&mode(), a as u32, b as u32, carry != 0);
            assert_eq!(got, (wide as u32, wide >> 32 != 0), "{name} {a:x} {b:x} {carry}");
        }
    }
}

#[test]
fn sums_of_distances_in_four_dwords() {
    let Op::Quad(f) = op("v_mqsad_u32_u8") else { panic!() };
    let mut numbers = Numbers(6);
    for _ in 0..2000 {
        let (a, b) = (numbers.value("i64"), numbers.value("i32"));
        let c = [0; 4].map(|_| numbers.below(1 << 31) as u32);
        let expected = [0, 1, 2, 3].map(|at| c[at] + distances(a >> (8 * at), b, true) as u32);
        assert_eq!(f(&mode(), a, b as u32, c), expected, "{a:x} {b:x} {c:x?}");
    }
}

/// Every number of 8 bits, those in the middle between two, and beside.
#[test]
fn numbers_of_eight_bits_are_rounded_to_nearest() {
    for (small, nearest, random) in
        [(FP8, "v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32"), (BF8, "v_cvt_pk_bf8_f32", "v_cvt_sr_bf8_f32")]
    {
        let m = Mode::from_bits(0x1f0, Gfx::Gfx12);
        for bits in 0..small.greatest() {
            let [low, high] = [bits, bits + 1].map(|bits| small.number(bits) as f32);
            let middle = (low + high) / 2.0;
            let near = [low, middle.next_down(), middle, middle.next_up()];
            for value in near.into_iter().flat_map(|value| [value, -value]) {
                let expected = small.nearest(value.into()).expect("in range");
                let got = eval(nearest, &m, [f(value), f(-value), 0]) as u32 & 0xffff;
                assert_eq!(got, expected | (expected ^ 0x80) << 8, "{nearest} {value}");
                // With nothing added it is cut off, with all nearly the next one; an exact value stays.
                let low = small.below(value.into()).expect("in range");
                let exact = small.number(low) == f64::from(value);
                let cut = eval(random, &m, [f(value), 0, 0]) as u32 & 0xff;
                let up = eval(random, &m, [f(value), 0xffff_ffff, 0]) as u32 & 0xff;
                let next = if exact { low } else { low + 1 };
                assert_eq!((cut, up), (low, next), "{random} {value}");
            }
        }
        let nan = eval(nearest, &m, [f(f32::NAN), 0, 0]) as u32 & 0xff;
        assert!(small.number(nan).is_nan(), "{nearest}");
        // Too great: no number, or infinity; with FP16_OVFL the greatest number. Infinity is what it is.
        let most = Mode::from_bits(0x80_01f0, Gfx::Gfx12);
        let greatest = small.number(small.greatest()) as f32;
        for (name, random) in [(nearest, 0), (random, u64::from(u32::MAX))] {
            for value in [2.0 * greatest, 1e38, f32::MAX] {
                assert_eq!(
                    eval(name, &m, [f(value), random, 0]) as u32 & 0xff,
                    small.greatest() + 1,
                    "{name}"
                );
                assert_eq!(eval(name, &most, [f(-value), random, 0]) as u32 & 0xff, small.greatest() | 0x80);
            }
            let infinite =
                [&m, &most].map(|mode| eval(name, mode, [f(f32::INFINITY), random, 0]) as u32 & 0xff);
            assert_eq!(infinite, [small.greatest() + 1; 2], "{name}");
        }
    }
}

/// With FP16_OVFL what is too great is the greatest number, and infinite only what comes of infinity.
#[test]
fn results_of_sixteen_bits_that_are_too_great() {
    const MOST: u64 = 0x7bff;
    const INFINITE: u64 = 0x7c00;
    let wide = |value: f32| u64::from(value.to_bits());
    let both = |half: u64| half << 16 | half;
    for (name, sources, infinite) in [
        ("v_add_f16", [MOST, MOST, 0], [INFINITE, 1, 0]),
        ("v_mul_f16", [MOST, 0x4000, 0], [INFINITE, 0x4000, 0]),
        ("v_fma_f16", [MOST, 0x4000, 0x3c00], [0x3c00, 0x3c00, INFINITE]),
        ("v_ldexp_f16", [MOST, 1, 0], [INFINITE, 1, 0]),
        ("v_cvt_f16_f32", [wide(1e6), 0, 0], [wide(f32::INFINITY), 0, 0]),
        ("v_cvt_f16_u16", [0xffff, 0, 0], [0, 0, 0]),
        ("v_rcp_f16", [0, 0, 0], [0, 0, 0]),
        ("v_rcp_f16", [1, 0, 0], [0, 0, 0]),
        ("v_rsq_f16", [0, 0, 0], [0, 0, 0]),
        ("v_exp_f16", [0x5000, 0, 0], [INFINITE, 0, 0]),
        ("v_fma_mixlo_f16", [wide(3e38), wide(3e38), 0], [wide(f32::INFINITY), wide(1.0), 0]),
        ("v_pk_add_f16", [both(MOST), both(MOST), 0], [both(INFINITE), 0, 0]),
        ("v_pk_mul_f16", [both(MOST), both(0x4000), 0], [both(INFINITE), both(0x4000), 0]),
        ("v_pk_fma_f16", [both(MOST), both(0x4000), 0], [both(INFINITE), both(0x4000), 0]),
    ] {
        // Denormals count, and every way of rounding.
        for round in 0..4 {
            let mode = |bits: u32, generation| Mode::from_bits(bits | round << 2 | 0x1f0, generation);
            for generation in [Gfx::Gfx9, Gfx::Gfx12] {
                let pair = |half: u64| if name.starts_with("v_pk") { both(half) } else { half };
                let got = eval(name, &mode(1 << 23, generation), sources);
                assert_eq!(got, pair(MOST), "{name} {round}");
                if infinite != [0; 3] {
                    let got = eval(name, &mode(1 << 23, generation), infinite);
                    assert_eq!(got, pair(INFINITE), "{name} {round}");
                }
                if round == 0 {
                    assert_eq!(eval(name, &mode(0, generation), sources), pair(INFINITE), "{name}");
                }
            }
            // gfx8 has no such bit.
            if round == 0 {
                assert_eq!(eval(name, &mode(1 << 23, Gfx::Gfx8), sources) & 0xffff, INFINITE, "{name}");
            }
        }
    }
    assert_eq!(eval("v_log_f16", &Mode::from_bits(0x80_01c0, Gfx::Gfx12), [0; 3]), 0x8000 | MOST);
}

/// Dot products of small whole numbers, whose sums are exact in any order.
#[test]
fn dot_products() {
    let mut numbers = Numbers(8);
    for _ in 0..1000 {
        let mut whole = |most: i64| numbers.below(2 * most as u64 + 1) as i64 - most;
        let (a, b) = ([0; 4].map(|_| whole(3)), [0; 4].map(|_| whole(3)));
        let c = whole(20);
        let pack = |small: Small, values: &[i64]| {
            values.iter().enumerate().fold(0, |all, (at, value)| {
                let bits = small.nearest(*value as f64).expect("in range");
                all | u64::from(bits) << (small.bits() * at as u32)
            })
        };
        let dot = |n: usize| (0..n).map(|at| a[at] * b[at]).sum::<i64>() + c;
        let wide = f(c as f32);
        for (name, left, right, into, expected) in [
            ("v_dot2c_f32_f16", pack(HALF, &a[..2]), pack(HALF, &b[..2]), wide, f(dot(2) as f32)),
            ("v_dot2_f32_bf16", pack(BRAIN, &a[..2]), pack(BRAIN, &b[..2]), wide, f(dot(2) as f32)),
            ("v_dot2c_f32_bf16", pack(BRAIN, &a[..2]), pack(BRAIN, &b[..2]), wide, f(dot(2) as f32)),
            (
                "v_dot2_f16_f16",
                pack(HALF, &a[..2]),
                pack(HALF, &b[..2]),
                pack(HALF, &[c]),
                pack(HALF, &[dot(2)]),
            ),
            (
                "v_dot2_bf16_bf16",
                pack(BRAIN, &a[..2]),
                pack(BRAIN, &b[..2]),
                pack(BRAIN, &[c]),
                pack(BRAIN, &[dot(2)]),
            ),
            ("v_dot4_f32_fp8_fp8", pack(FP8, &a), pack(FP8, &b), wide, f(dot(4) as f32)),
            ("v_dot4_f32_fp8_bf8", pack(FP8, &a), pack(BF8, &b), wide, f(dot(4) as f32)),
            ("v_dot4_f32_bf8_fp8", pack(BF8, &a), pack(FP8, &b), wide, f(dot(4) as f32)),
            ("v_dot4_f32_bf8_bf8", pack(BF8, &a), pack(BF8, &b), wide, f(dot(4) as f32)),
        ] {
            let got = eval(name, &mode(), [left, right, into]);
            // A sum of zero has a sign that its order decides.
            let same =
                got == expected || dot(4) == 0 && got & 0x7fff_ffff == 0 || dot(2) == 0 && got & 0x7fff == 0;
            assert!(same, "{name} {a:?} {b:?} {c}: {got:x} not {expected:x}");
        }
        let (left, right) = (numbers.value("i32"), numbers.value("i32"));
        for signs in 0..4 {
            let m = Mode { signs, ..mode() };
            for (name, bits) in [("v_dot4_i32_iu8", 8), ("v_dot8_i32_iu4", 4)] {
                let part = |value: u64, at: u32, signed: bool| {
                    let raw = (value >> (bits * at)) as i64 & ((1 << bits) - 1);
                    if signed && raw >> (bits - 1) != 0 { raw - (1 << bits) } else { raw }
                };
                let term = |at| part(left, at, signs & 1 != 0) * part(right, at, signs & 2 != 0);
                let sum: i64 = (0..32 / bits).map(term).sum::<i64>() + c;
                assert_eq!(
                    eval(name, &m, [left, right, c as u32 as u64]) as u32,
                    sum as u32,
                    "{name} {signs}"
                );
            }
        }
        let sum: i64 =
            (0..4).map(|at| i64::from((left >> (8 * at)) as i8) * i64::from((right >> (8 * at)) as i8)).sum();
        assert_eq!(eval("v_dot4c_i32_i8", &mode(), [left, right, c as u32 as u64]) as u32, (sum + c) as u32);
    }
}

/// The sequence that compilers divide by gives the quotient that the host's division gives.
#[test]
fn divisions() {
    let (Op::WideCarry(scale), Op::DivFmas(fmas)) = (op("v_div_scale_f32"), op("v_div_fmas_f32")) else {
        panic!()
    };
    let m = mode();
    let fma = |a: u64, b: u64, c: u64| eval("v_fma_f32", &m, [a, b, c]);
    let neg = |a: u64| a ^ 1 << 31;
    let mut numbers = Numbers(9);
    for _ in 0..20_000 {
        let (a, b) = (numbers.value("f32"), numbers.value("f32"));
        let (den, _) = scale(&m, b, b, a);
        let (num, flag) = scale(&m, a, b, a);
        let r = eval("v_rcp_f32", &m, [den, 0, 0]);
        let e = fma(fma(neg(den), r, f(1.0)), r, r);
        let q = eval("v_mul_f32", &m, [num, e, 0]);
        let q = fma(fma(neg(den), q, num), e, q);
        let rest = fma(neg(den), q, num);
        let q = fmas(&m, rest, e, q, flag);
        let got = eval("v_div_fixup_f32", &m, [q, b, a]);
        let expected = f(s(a) / s(b));
        assert_eq!(comparable("f32", got), comparable("f32", expected), "{a:x} / {b:x}");
    }
}

/// Of zeros `v_div_scale` gives NaN and sets its bit, as on hardware; the quotient is right in any case.
#[test]
fn scales_of_zeros() {
    for (name, one) in [("v_div_scale_f32", f(1.0)), ("v_div_scale_f64", 1f64.to_bits())] {
        let Op::WideCarry(scale) = op(name) else { panic!() };
        let nan = |bits: u64| match name {
            "v_div_scale_f32" => f32::from_bits(bits as u32).is_nan(),
            _ => f64::from_bits(bits).is_nan(),
        };
        for (scaled, denominator, numerator) in
            [(one, one, 0), (0, one, 0), (0, 0, one), (one, 0, one), (0, 0, 0)]
        {
            let (value, flag) = scale(&mode(), scaled, denominator, numerator);
            assert!(nan(value) && flag, "{name} {scaled:x} {denominator:x} {numerator:x}");
        }
        assert_eq!(scale(&mode(), one, one, one), (one, false), "{name}");
    }
}

#[test]
fn divisions_in_64_bits() {
    let (Op::WideCarry(scale), Op::DivFmas(fmas)) = (op("v_div_scale_f64"), op("v_div_fmas_f64")) else {
        panic!()
    };
    let m = mode();
    let fma = |a: u64, b: u64, c: u64| eval("v_fma_f64", &m, [a, b, c]);
    let neg = |a: u64| a ^ 1 << 63;
    let one = 1f64.to_bits();
    let mut numbers = Numbers(10);
    for _ in 0..20_000 {
        let (a, b) = (numbers.value("f64"), numbers.value("f64"));
        let (den, _) = scale(&m, b, b, a);
        let (num, flag) = scale(&m, a, b, a);
        let r = eval("v_rcp_f64", &m, [den, 0, 0]);
        let r = fma(r, fma(neg(den), r, one), r);
        let r = fma(r, fma(neg(den), r, one), r);
        let q = eval("v_mul_f64", &m, [num, r, 0]);
        let q = fmas(&m, fma(neg(den), q, num), r, q, flag);
        let got = eval("v_div_fixup_f64", &m, [q, b, a]);
        let expected = (f64::from_bits(a) / f64::from_bits(b)).to_bits();
        assert_eq!(comparable("f64", got), comparable("f64", expected), "{a:x} / {b:x}");
    }
}

/// A quotient of halves: by a reciprocal of 32 bits, then put right.
#[test]
fn divisions_in_16_bits() {
    let m = mode();
    let mut numbers = Numbers(11);
    for _ in 0..20_000 {
        let (a, b) = (numbers.value("f16"), numbers.value("f16"));
        let wide = |bits| eval("v_cvt_f32_f16", &m, [bits, 0, 0]);
        let quotient = eval("v_mul_f32", &m, [wide(a), eval("v_rcp_f32", &m, [wide(b), 0, 0]), 0]);
        let quotient = eval("v_cvt_f16_f32", &m, [quotient, 0, 0]);
        for name in ["v_div_fixup_f16", "v_div_fixup_legacy_f16"] {
            let got = comparable("f16", eval(name, &m, [quotient, b, a]));
            let expected = comparable("f16", to_h(h(a) / h(b)));
            // Half a unit more is what such a division may be wrong by.
            assert!(got.abs_diff(expected) <= 1, "{name} {a:x} / {b:x}: {got:x} not {expected:x}");
        }
    }
}

/// Operations of one source, its bits, and the function.
type Function = (&'static str, u32, fn(f64) -> f64);

const FUNCTIONS: &[Function] = &[
    ("v_rcp_f32 v_rcp_iflag_f32 v_s_rcp_f32", 32, |x| 1.0 / x),
    ("v_rsq_f32 v_s_rsq_f32", 32, |x| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }),
    ("v_sqrt_f32 v_s_sqrt_f32", 32, f64::sqrt),
    ("v_exp_f32 v_exp_legacy_f32 v_s_exp_f32", 32, f64::exp2),
    ("v_log_f32 v_log_legacy_f32 v_s_log_f32", 32, f64::log2),
    ("v_rcp_f16 v_s_rcp_f16", 16, |x| 1.0 / x),
    ("v_rsq_f16 v_s_rsq_f16", 16, |x| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }),
    ("v_sqrt_f16 v_s_sqrt_f16", 16, f64::sqrt),
    ("v_exp_f16 v_s_exp_f16", 16, f64::exp2),
    ("v_log_f16 v_s_log_f16", 16, f64::log2),
    ("v_rcp_f64", 64, |x| 1.0 / x),
    ("v_rsq_f64", 64, |x| if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }),
    ("v_sqrt_f64", 64, f64::sqrt),
    // Without infinities: the greatest number, or zero.
    ("v_rcp_clamp_f32", 32, |x| bounded(1.0 / x, f32::MAX.into())),
    ("v_rsq_clamp_f32", 32, |x| bounded(if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }, f32::MAX.into())),
    ("v_log_clamp_f32", 32, |x| if x == 0.0 { f64::from(-f32::MAX) } else { x.log2() }),
    ("v_rcp_clamp_f64", 64, |x| bounded(1.0 / x, f64::MAX)),
    ("v_rsq_clamp_f64", 64, |x| bounded(if x == 0.0 { 1.0 / x } else { 1.0 / x.sqrt() }, f64::MAX)),
    ("v_rcp_legacy_f32", 32, |x| {
        if (1.0 / x) as f32 == f32::INFINITY || (1.0 / x) as f32 == f32::NEG_INFINITY {
            0f64.copysign(x)
        } else {
            1.0 / x
        }
    }),
    ("v_rsq_legacy_f32", 32, |x| if x == 0.0 { 0f64.copysign(x) } else { 1.0 / x.sqrt() }),
];

/// Of one source, within a unit in the last place of the host's result; specials as they are.
#[test]
fn transcendentals() {
    let mut wrong = BTreeMap::new();
    for (names, bits, function) in FUNCTIONS {
        for name in names.split(' ') {
            let mut numbers = Numbers(12);
            for _ in 0..4000 {
                let ty = format!("f{bits}");
                let source = numbers.value(&ty);
                let got = comparable(&ty, eval(name, &mode(), [source, 0, 0]));
                let expected = match bits {
                    16 => to_h(function(h(source))),
                    32 => f(function(s(source).into()) as f32),
                    _ => function(f64::from_bits(source)).to_bits(),
                };
                let expected = comparable(&ty, expected);
                // Of 64 bits about half are right, and sequences of instructions give the rest; denormals may be zero.
                let unit = if *bits == 64 { 1 << 30 } else { 1 };
                let least = [0x400, 0x80_0000, 1u64 << 52][*bits as usize / 32];
                let small = |value: u64| value & ((1u64 << (bits - 1)) - 1) <= least;
                let near = got.abs_diff(expected) <= unit;
                if !(near || small(source) || small(got) && small(expected)) {
                    wrong.insert(name, format!("{source:x} gives {got:x}, not {expected:x}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn bounded(number: f64, most: f64) -> f64 {
    number.clamp(-most, most)
}

/// Of two neighbours around a number the one that a rounding mode takes: nearest even, up, down, towards zero.
fn directed(mode: u32, negative: bool, near: u64, zero: u64, away: u64) -> u64 {
    match mode {
        0 => near,
        1 if !negative => away,
        2 if negative => away,
        _ => zero,
    }
}

/// A finite number in 32 bits.
fn to_single(number: f64, mode: u32) -> u64 {
    let near = number as f32;
    let (negative, over) = (number.is_sign_negative(), f64::from(near).abs() > number.abs());
    if f64::from(near) == number {
        return f(near);
    }
    let magnitude = near.abs();
    let (zero, away) =
        if over { (magnitude.next_down(), magnitude) } else { (magnitude, magnitude.next_up()) };
    let signed = |number: f32| f(if negative { -number } else { number });
    directed(mode, negative, f(near), signed(zero), signed(away))
}

/// A finite number in 16 bits.
fn to_half(number: f64, mode: u32) -> u64 {
    let negative = number.is_sign_negative();
    let sign = u64::from(negative) << 15;
    let (zero, away) = match HALF.below(number) {
        Some(bits) if HALF.number(bits) == number => return bits.into(),
        Some(bits) => (u64::from(bits), u64::from(bits) + 1),
        None => (0x7bff | sign, 0x7c00 | sign),
    };
    directed(mode, negative, to_h(number), zero, away)
}

#[test]
fn conversions_in_all_rounding_modes() {
    let mut numbers = Numbers(14);
    let mut compared = 0;
    for rounding in 0..4 {
        let m = Mode::from_bits(0x1f0 | rounding | rounding << 2, Gfx::Gfx10);
        for _ in 0..4000 {
            let (whole, short) = (numbers.value("i32"), numbers.value("i16"));
            let single = numbers.value("f32");
            // Near numbers of 32 bits, and everywhere.
            let near = f64::from(s(single)) * (1.0 + (numbers.below(9) as f64 - 4.0) * 2f64.powi(-26));
            let double = if numbers.below(2) == 0 { near.to_bits() } else { numbers.value("f64") };
            let mut all = vec![
                ("v_cvt_f32_i32", whole, to_single((whole as i32).into(), rounding)),
                ("v_cvt_f32_u32", whole, to_single((whole as u32).into(), rounding)),
                ("v_cvt_f64_i32", whole, f64::from(whole as i32).to_bits()),
                ("v_cvt_f64_u32", whole, f64::from(whole as u32).to_bits()),
                ("v_cvt_f16_i16", short, to_half((short as i16).into(), rounding)),
                ("v_cvt_f16_u16", short, to_half((short as u16).into(), rounding)),
            ];
            if s(single).is_finite() {
                all.push(("v_cvt_f16_f32", single, to_half(s(single).into(), rounding)));
            }
            if f64::from_bits(double).is_finite() {
                all.push(("v_cvt_f32_f64", double, to_single(f64::from_bits(double), rounding)));
            }
            for (name, source, expected) in all {
                let ty = if name.contains("cvt_f64") { "f64" } else { "f32" };
                let got = comparable(ty, eval(name, &m, [source, 0, 0]));
                assert_eq!(
                    got, expected,
                    "{name} of {source:x} in mode {rounding}: {got:x} not {expected:x}"
                );
                compared += 1;
            }
        }
    }
    // Where denormals are not kept a result that is one is zero.
    let m = Mode::from_bits(0x100, Gfx::Gfx10);
    for _ in 0..4000 {
        let small = numbers.value("f32m") - (40 << 23) + (numbers.below(32) << 23);
        let half = to_half(s(small).into(), 0);
        let expected = if half & 0x7c00 == 0 { half & 0x8000 } else { half };
        // What is rounded up to the least normal number is not told.
        if half & 0x7fff != 0x400 {
            assert_eq!(eval("v_cvt_f16_f32", &m, [small, 0, 0]), expected, "{small:x}");
        }
    }
    eprintln!("{compared} conversions");
}

/// Comparisons of every relation and type, as the relation's name says.
#[test]
fn comparisons() {
    let mut numbers = Numbers(13);
    let mut compared = 0;
    for ty in ["i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"] {
        let wide = if ty.starts_with('f') { ty.to_owned() } else { ty.replace('u', "i") };
        let number = |bits: u64| -> f64 {
            match ty {
                "f16" => h(bits),
                "f32" => s(bits).into(),
                _ => f64::from_bits(bits),
            }
        };
        let whole = |bits: u64| -> i128 {
            match ty {
                "i16" => (bits as i16).into(),
                "i32" => (bits as i32).into(),
                "i64" => (bits as i64).into(),
                _ => bits.into(),
            }
        };
        for _ in 0..300 {
            let a = numbers.value(&wide);
            let b = if numbers.below(4) == 0 { a } else { numbers.value(&wide) };
            let order = if ty.starts_with('f') {
                number(a).partial_cmp(&number(b))
            } else {
                Some(whole(a).cmp(&whole(b)))
            };
            let (less, equal, more, none) = (
                order.is_some_and(|o| o.is_lt()),
                order.is_some_and(|o| o.is_eq()),
                order.is_some_and(|o| o.is_gt()),
                order.is_none(),
            );
            let relations: &[(&str, bool)] = if ty.starts_with('f') {
                &[
                    ("f", false),
                    ("lt", less),
                    ("eq", equal),
                    ("le", less || equal),
                    ("gt", more),
                    ("lg", less || more),
                    ("ge", more || equal),
                    ("o", !none),
                    ("u", none),
                    ("nge", less || none),
                    ("nlg", equal || none),
                    ("ngt", less || equal || none),
                    ("nle", more || none),
                    ("neq", less || more || none),
                    ("nlt", more || equal || none),
                    ("tru", true),
                ]
            } else {
                &[
                    ("f", false),
                    ("lt", less),
                    ("eq", equal),
                    ("le", less || equal),
                    ("gt", more),
                    ("ne", !equal),
                    ("ge", more || equal),
                    ("tru", true),
                ]
            };
            for (relation, holds) in relations {
                for prefix in ["v_cmp", "v_cmpx"] {
                    let name = format!("{prefix}_{relation}_{ty}");
                    let Op::Compare(f) = op(&name) else { panic!("{name}") };
                    assert_eq!(f(&mode(), a, b), *holds, "{name} {a:x} {b:x}");
                    compared += 1;
                }
            }
        }
    }
    eprintln!("{compared} comparisons");
}

/// Operations that models of this file compute otherwise than by [`MODELS`].
const HERE: &str = "v_addc_co_u32 v_subb_co_u32 v_subbrev_co_u32 v_subrev_co_u32 v_mqsad_u32_u8 v_cvt_pk_fp8_f32 \
    v_cvt_pk_bf8_f32 v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32 v_cvt_sr_f16_f32 v_cvt_sr_bf16_f32 v_dot2c_f32_f16 v_dot2_f32_bf16 v_dot2_f16_f16 v_dot2_bf16_bf16 \
    v_dot4_f32_fp8_fp8 v_dot4_f32_fp8_bf8 v_dot4_f32_bf8_fp8 v_dot4_f32_bf8_bf8 v_dot4_i32_iu8 v_dot8_i32_iu4 \
    v_dot4c_i32_i8 v_dot2c_f32_bf16 v_div_scale_f32 v_div_fmas_f32 v_div_fixup_f32 v_div_scale_f64 v_div_fmas_f64 v_div_fixup_f64 \
    v_div_fixup_f16 v_div_fixup_legacy_f16";
/// Operations that the models of parts of registers, and of gfx950, compute.
const PARTS: &str = "v_bitop3_b16 v_bitop3_b32 v_fma_mix_f32 v_fma_mixlo_f16 v_fma_mixhi_f16 v_mad_mix_f32 v_mad_mixlo_f16 v_mad_mixhi_f16 v_pack_b32_f16 \
    v_cndmask_b16";

/// Operations of the table that no second source computes, and why; what begins with one of these.
const REST: &[(&str, &str)] =
    &[("v_mullit_f32", "nothing but one manual's remark on special values says what it does")];

/// The names of an instruction's operation: of a row, and of both halves of a dual one.
fn covered() -> BTreeSet<String> {
    let mut all: BTreeSet<String> = BTreeSet::new();
    all.extend(
        FOLDED.lines().filter(|l| !l.starts_with('#')).filter_map(|l| Some(l.split(' ').next()?.into())),
    );
    all.extend(MODELS.iter().chain(cdna::MODELS).flat_map(|model| model.0.split(' ')).map(str::to_owned));
    all.extend([HERE, PARTS].iter().flat_map(|names| names.split_whitespace()).map(str::to_owned));
    all.extend(FUNCTIONS.iter().flat_map(|function| function.0.split(' ')).map(str::to_owned));
    // Comparisons of vectors are all compared above.
    all.extend(
        tables::rows().iter().map(|row| row.name).filter(|n| n.starts_with("v_cmp")).map(str::to_owned),
    );
    let scalars = include_str!("scalars.rs").split('"').filter_map(|text| text.split(' ').next());
    all.extend(scalars.filter(|name| name.starts_with("s_")).map(str::to_owned));
    for line in KERNELS.lines().filter(|line| line.starts_with("gfx")) {
        let (head, code) = line.split_once(" : ").expect("code");
        let name = head.split(' ').next().expect("a GPU");
        let gpu = rig::gpu(name);
        let words: Vec<u32> =
            code.split(' ').map(|word| u32::from_str_radix(word, 16).expect("hexadecimal")).collect();
        let mut at = 0;
        while let Some(decoded) = words.get(at..).and_then(|rest| codec::decode_executed(rest, &gpu)) {
            let inst = decoded.inst;
            all.insert(inst.row().name.into());
            all.extend(inst.variant().second.map(|(_, name, _)| name.to_owned()));
            at += usize::from(decoded.dwords);
        }
    }
    all
}

#[test]
fn what_no_second_source_computes_is_known() {
    let covered = covered();
    let mut rest = BTreeSet::new();
    let mut all = BTreeSet::new();
    for row in tables::rows() {
        if of_opcode(row.opcode).is_none() {
            continue;
        }
        all.insert(row.name);
        let plain = match row.operation {
            Operation::Dual(op) => dual(op).name(),
            _ => row.name,
        };
        if !covered.contains(plain) && !covered.contains(row.name) {
            rest.insert(row.name);
        }
    }
    eprintln!("{} of {} operations have no second source:", rest.len(), all.len());
    for name in &rest {
        let why = REST.iter().find(|(start, _)| name.starts_with(start)).map_or("?", |(_, why)| why);
        eprintln!("  {name}: {why}");
    }
    let strange: Vec<&&str> =
        rest.iter().filter(|name| !REST.iter().any(|(start, _)| name.starts_with(start))).collect();
    assert!(strange.is_empty(), "{strange:?}");
}
