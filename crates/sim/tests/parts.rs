//! Instructions that take and write parts of registers, against a model of them: SDWA, halves chosen by `op_sel`, packed
//! and mixed operations, with their modifiers.
//!
//! The model is a second reading of AMD's ISA manuals (Volcanic Islands to RDNA 4); it shares nothing with the emulator. Its
//! arithmetic is that of the host's doubles, which hold sums and products of the values here before they are rounded once.

mod rig;

use rig::cases::{Bits, Case, GPUS, KEEP, Model, compare, random, report};
use std::rc::Rc;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Compares what `make` has to say for every GPU.
fn all(what: &str, mode: u32, mut make: impl FnMut(&str, &Gpu, &mut dyn FnMut(String, Model))) {
    let (mut compared, mut wrong) = (0, Vec::new());
    for name in GPUS {
        let mut cases = Vec::new();
        make(name, &rig::gpu(name), &mut |code, model| cases.push(Case { code, exec: u64::MAX, model }));
        compared += cases.len();
        wrong.extend(compare(name, mode, &cases));
    }
    report(what, compared, &wrong);
}

/// A half as a number.
fn half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits as i32 >> 10 & 31, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if fraction != 0.0 => f64::NAN,
        31 => f64::INFINITY,
        0 => fraction * 2f64.powi(-24),
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 & 1 == 0 { magnitude } else { -magnitude }
}

/// A number as a half, to nearest even.
fn to_half(number: f64) -> u32 {
    let sign = u32::from(number.is_sign_negative()) << 15;
    let magnitude = number.abs();
    if number.is_nan() {
        return 0x7e00;
    }
    // Steps between neighbours.
    let exponent = if magnitude < 2f64.powi(-14) { -14 } else { (magnitude.to_bits() >> 52) as i32 - 1023 };
    let steps = (magnitude / 2f64.powi(exponent - 10)).round_ties_even();
    if exponent > 15 || steps * 2f64.powi(exponent - 10) >= 65536.0 {
        return sign | 0x7c00;
    }
    // A carry into the exponent is right by itself.
    sign | ((exponent + 14) as u32 * 1024 + steps as u32)
}

fn single(bits: u32) -> f64 {
    f32::from_bits(bits).into()
}

/// A number as a float, with one NaN.
fn to_single(number: f64) -> u32 {
    if number.is_nan() { 0x7fc0_0000 } else { (number as f32).to_bits() }
}

#[test]
fn halves_are_numbers_and_back() {
    for bits in (0..0x7c01).chain(0x8000..0xfc01) {
        assert_eq!(to_half(half(bits)), bits);
    }
}

/// A number in 16 or 32 bits; of a NaN it is only told that it is a quiet one.
fn bits_of(number: f64, halves: bool) -> Bits {
    match (number.is_nan(), halves) {
        (true, true) => Bits { value: 0x7e00, told: !0x81ff },
        (true, false) => Bits { value: 0x7fc0_0000, told: 0x7fc0_0000 },
        (false, true) => to_half(number).into(),
        (false, false) => to_single(number).into(),
    }
}

fn clamped(number: f64, clamp: bool) -> f64 {
    match clamp {
        true if number.is_nan() || number <= 0.0 => 0.0,
        true => number.min(1.0),
        false => number,
    }
}

/// Modifiers of a floating-point source.
#[derive(Clone, Copy)]
struct Sign {
    neg: bool,
    abs: bool,
}

impl Sign {
    fn random(bits: u64) -> Sign {
        Sign { neg: bits & 1 != 0, abs: bits & 2 != 0 }
    }

    fn text(self, register: &str) -> String {
        let inner = if self.abs { format!("|{register}|") } else { register.to_owned() };
        if self.neg { format!("-{inner}") } else { inner }
    }

    fn of(self, number: f64) -> f64 {
        let number = if self.abs { number.abs() } else { number };
        if self.neg { -number } else { number }
    }
}

/// Selectors of SDWA, in the order of their codes.
const SELECT: [&str; 7] = ["BYTE_0", "BYTE_1", "BYTE_2", "BYTE_3", "WORD_0", "WORD_1", "DWORD"];

/// Place and width of what a selector names.
fn field(select: usize) -> (u32, u32) {
    match select {
        0..4 => (8 * select as u32, 8),
        4 | 5 => (16 * (select as u32 - 4), 16),
        _ => (0, 32),
    }
}

fn selected(value: u32, select: usize, signed: bool) -> u32 {
    let (lsb, width) = field(select);
    let top = value << (32 - width - lsb);
    if signed { (top as i32 >> (32 - width)) as u32 } else { top >> (32 - width) }
}

/// What is written where a selector says so.
fn placed(old: u32, result: u32, select: usize, unused: usize) -> u32 {
    let (lsb, width) = field(select);
    if width == 32 {
        return result;
    }
    let mask = ((1u32 << width) - 1) << lsb;
    let part = result << lsb & mask;
    match unused {
        0 => part,
        // The sign goes upwards, below there is zero.
        1 => ((result << (32 - width)) as i32 >> (32 - width - lsb).min(31)) as u32 & !((1u32 << lsb) - 1),
        _ => old & !mask | part,
    }
}

const UNUSED: [&str; 3] = ["UNUSED_PAD", "UNUSED_SEXT", "UNUSED_PRESERVE"];

type Integer = (&'static str, fn(u32, u32) -> u32);

/// Operations on integers that SDWA is tried with.
const INTEGERS: [Integer; 6] = [
    ("v_or_b32", |a, b| a | b),
    ("v_and_b32", |a, b| a & b),
    ("v_max_i32", |a, b| (a as i32).max(b as i32) as u32),
    ("v_min_u32", u32::min),
    ("v_lshlrev_b32", |a, b| b << (a & 31)),
    ("v_mul_u32_u24", |a, b| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
];

fn has_sdwa(gpu: &Gpu) -> bool {
    (Gfx::Gfx8..Gfx::Gfx11).contains(&gpu.generation())
}

#[test]
fn sdwa_of_integers() {
    all("SDWA of integers", KEEP, |name, gpu, add| {
        if !has_sdwa(gpu) {
            return;
        }
        let mut random = random(name);
        for (op, f) in INTEGERS {
            for (dst, dst_name) in SELECT.iter().enumerate() {
                for (a, a_name) in SELECT.iter().enumerate() {
                    let bits = random();
                    let b = (bits & 0xff) as usize % 7;
                    let unused = (bits >> 8) as usize % 3;
                    let (sext_a, sext_b) = (bits >> 12 & 1 != 0, bits >> 13 & 1 != 0);
                    let source = |register: &str, sext: bool| {
                        if sext { format!("sext({register})") } else { register.to_owned() }
                    };
                    add(
                        format!(
                            "{op}_sdwa v20, {}, {} dst_sel:{} dst_unused:{} src0_sel:{} src1_sel:{}",
                            source("v10", sext_a),
                            source("v11", sext_b),
                            dst_name,
                            UNUSED[unused],
                            a_name,
                            SELECT[b]
                        ),
                        Rc::new(move |lane, v| {
                            let result = f(selected(v[0][lane], a, sext_a), selected(v[1][lane], b, sext_b));
                            Some(placed(v[3][lane], result, dst, unused).into())
                        }),
                    );
                }
            }
        }
    });
}

#[test]
fn sdwa_of_floats() {
    all("SDWA of floats", KEEP, |name, gpu, add| {
        if !has_sdwa(gpu) {
            return;
        }
        let mut random = random(name);
        for round in 0..240 {
            let bits = random();
            let halves = round % 2 == 0;
            let (a, b) = ((bits & 0xff) as usize % 7, (bits >> 8 & 0xff) as usize % 7);
            let (dst, unused) = ((bits >> 16 & 0xff) as usize % 7, (bits >> 24) as usize % 3);
            let signs = [Sign::random(bits >> 32), Sign::random(bits >> 34)];
            let clamp = bits >> 36 & 3 == 0;
            let number = move |value: u32, select: usize| {
                let raw = selected(value, select, false);
                if halves { half(raw & 0xffff) } else { single(raw) }
            };
            add(
                format!(
                    "{}_sdwa v20, {}, {}{} dst_sel:{} dst_unused:{} src0_sel:{} src1_sel:{}",
                    if halves { "v_mul_f16" } else { "v_mul_f32" },
                    signs[0].text("v10"),
                    signs[1].text("v11"),
                    if clamp { " clamp" } else { "" },
                    SELECT[dst],
                    UNUSED[unused],
                    SELECT[a],
                    SELECT[b]
                ),
                Rc::new(move |lane, v| {
                    let (x, y) = (signs[0].of(number(v[0][lane], a)), signs[1].of(number(v[1][lane], b)));
                    let Bits { value, told } = bits_of(clamped(x * y, clamp), halves);
                    // Which bits are told of what stands beside: all, but of copies of a sign not if that is not told.
                    let told = match placed(u32::MAX, told, dst, 2) {
                        told if unused == 1 && told != u32::MAX => told & placed(0, u32::MAX, dst, 0),
                        told => told,
                    };
                    Some(Bits { value: placed(v[3][lane], value, dst, unused), told })
                }),
            );
        }
    });
}

/// Conversions, of one source.
#[test]
fn sdwa_of_one_source() {
    all("SDWA of one source", KEEP, |name, gpu, add| {
        if !has_sdwa(gpu) {
            return;
        }
        let mut random = random(name);
        for round in 0..98 {
            let bits = random();
            let (a, dst) = (round % 7, round / 7 % 7);
            let unused = (bits >> 24) as usize % 3;
            let sign = Sign::random(bits);
            let sext = bits >> 2 & 1 != 0;
            let tail =
                format!("dst_sel:{} dst_unused:{} src0_sel:{}", SELECT[dst], UNUSED[unused], SELECT[a]);
            let source = if sext { "sext(v10)" } else { "v10" };
            add(
                format!("v_mov_b32_sdwa v20, {source} {tail}"),
                Rc::new(move |lane, v| {
                    Some(placed(v[3][lane], selected(v[0][lane], a, sext), dst, unused).into())
                }),
            );
            add(
                format!(
                    "v_cvt_f32_i32_sdwa v20, {source} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{}",
                    SELECT[a]
                ),
                Rc::new(move |lane, v| Some((selected(v[0][lane], a, sext) as i32 as f32).to_bits().into())),
            );
            add(
                format!(
                    "v_cvt_f32_f16_sdwa v20, {} dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel:{}",
                    sign.text("v10"),
                    SELECT[a]
                ),
                Rc::new(move |lane, v| {
                    Some(bits_of(sign.of(half(selected(v[0][lane], a, false) & 0xffff)), false))
                }),
            );
        }
    });
}

fn vcc(gpu: &Gpu) -> &'static str {
    if gpu.wave64() { "vcc" } else { "vcc_lo" }
}

#[test]
fn sdwa_of_comparisons() {
    type Compare = (&'static str, bool, fn(f64, f64) -> bool);
    const COMPARE: [Compare; 6] = [
        ("v_cmp_lt_f16", true, |a, b| a < b),
        ("v_cmp_ge_f32", false, |a, b| a >= b),
        ("v_cmp_u_f16", true, |a, b| a.is_nan() || b.is_nan()),
        ("v_cmp_nlt_f32", false, |a, b| a.is_nan() || b.is_nan() || a >= b),
        ("v_cmp_eq_f16", true, |a, b| a == b),
        ("v_cmp_lg_f32", false, |a, b| a.partial_cmp(&b).is_some_and(std::cmp::Ordering::is_ne)),
    ];
    all("SDWA of comparisons", KEEP, |name, gpu, add| {
        if !has_sdwa(gpu) {
            return;
        }
        let mut random = random(name);
        let vcc = vcc(gpu);
        let select = format!("v_cndmask_b32_e32 v20, v14, v15, {vcc}");
        for round in 0..120 {
            let bits = random();
            let (op, halves, f) = COMPARE[round % 6];
            let (a, b) = ((bits & 0xff) as usize % 7, (bits >> 8 & 0xff) as usize % 7);
            let signs = [Sign::random(bits >> 32), Sign::random(bits >> 34)];
            let number = move |value: u32, select: usize| {
                let raw = selected(value, select, false);
                if halves { half(raw & 0xffff) } else { single(raw) }
            };
            add(
                format!(
                    "{op}_sdwa {vcc}, {}, {} src0_sel:{} src1_sel:{}\n{select}",
                    signs[0].text("v10"),
                    signs[1].text("v11"),
                    SELECT[a],
                    SELECT[b]
                ),
                Rc::new(move |lane, v| {
                    let (x, y) = (signs[0].of(number(v[0][lane], a)), signs[1].of(number(v[1][lane], b)));
                    Some(u32::from(f(x, y)).into())
                }),
            );
            let (sext, unsigned) = (bits >> 40 & 1 != 0, bits >> 41 & 1 != 0);
            add(
                format!(
                    "v_cmp_gt_{}_sdwa {vcc}, {}, v11 src0_sel:{} src1_sel:{}\n{select}",
                    if unsigned { "u32" } else { "i32" },
                    if sext { "sext(v10)" } else { "v10" },
                    SELECT[a],
                    SELECT[b]
                ),
                Rc::new(move |lane, v| {
                    let (x, y) = (selected(v[0][lane], a, sext), selected(v[1][lane], b, false));
                    Some(u32::from(if unsigned { x > y } else { x as i32 > y as i32 }).into())
                }),
            );
        }
    });
}

/// `omod` doubles, quadruples or halves where denormals are not kept: sources and results that are one are zero.
#[test]
fn output_modifiers() {
    const OMOD: [(&str, f64); 4] = [("", 1.0), (" mul:2", 2.0), (" mul:4", 4.0), (" div:2", 0.5)];
    all("omod and clamp", 0x100, |name, gpu, add| {
        let mut random = random(name);
        let sdwa = (Gfx::Gfx9..Gfx::Gfx11).contains(&gpu.generation());
        for round in 0..64 {
            let bits = random();
            let (omod, factor) = OMOD[round % 4];
            let clamp = bits & 3 == 0;
            let halves = gpu.generation() >= Gfx::Gfx8 && bits >> 2 & 1 != 0;
            let signs = [Sign::random(bits >> 32), Sign::random(bits >> 34)];
            let form = if sdwa && bits >> 3 & 1 != 0 { "sdwa" } else { "e64" };
            let tail = if form == "sdwa" { " dst_sel:DWORD src0_sel:DWORD src1_sel:DWORD" } else { "" };
            let clamps = if clamp { " clamp" } else { "" };
            let least = if halves { 2f64.powi(-14) } else { 2f64.powi(-126) };
            let flush = move |number: f64| if number.abs() < least { 0f64.copysign(number) } else { number };
            // A result of 16 bits may leave the upper half: that is not compared here.
            let width = if halves { 0xffff } else { u32::MAX };
            let number = move |bits: u32| flush(if halves { half(bits & 0xffff) } else { single(bits) });
            let op = if halves { "v_mul_f16" } else { "v_mul_f32" };
            add(
                format!(
                    "{op}_{form} v20, {}, {}{clamps}{omod}{tail}",
                    signs[0].text("v10"),
                    signs[1].text("v11")
                ),
                Rc::new(move |lane, v| {
                    let product = signs[0].of(number(v[0][lane])) * signs[1].of(number(v[1][lane]));
                    // Rounded once, then scaled; what is a denormal before or after is zero, and a zero that is scaled has no
                    // sign.
                    let rounded = if halves { half(to_half(product)) } else { f64::from(product as f32) };
                    let unsigned = flush(rounded) == 0.0 && !omod.is_empty();
                    let scaled = if unsigned { 0.0 } else { flush(rounded * factor) };
                    let scaled = clamped(scaled, clamp);
                    let Bits { value, told } = bits_of(scaled, halves);
                    let between = rounded.abs() < least && rounded != 0.0;
                    Some(Bits { value, told: if between { 0 } else { told & width } })
                }),
            );
        }
    });
}

/// One half of a register.
fn pick(value: u32, high: bool) -> u32 {
    value >> (16 * u32::from(high)) & 0xffff
}

fn list(bits: &[bool]) -> String {
    bits.iter().map(|bit| u8::from(*bit).to_string()).collect::<Vec<_>>().join(",")
}

fn bools<const N: usize>(bits: u64) -> [bool; N] {
    std::array::from_fn(|at| bits >> at & 1 != 0)
}

/// `op_sel` of operations on 16 bits: a half of each source, and of the destination, whose other half stays.
#[test]
fn halves_by_op_sel() {
    type Halves = (&'static str, usize, fn([u32; 3]) -> u32, Gfx);
    const OPS: [Halves; 6] = [
        ("v_mad_u16", 3, |[a, b, c]| a.wrapping_mul(b).wrapping_add(c), Gfx::Gfx9),
        ("v_max3_u16", 3, |[a, b, c]| a.max(b).max(c), Gfx::Gfx9),
        ("v_min3_i16", 3, |v| v.into_iter().min_by_key(|n| *n as u16 as i16).unwrap_or(0), Gfx::Gfx9),
        (
            "v_med3_u16",
            3,
            |mut v| {
                v.sort_unstable();
                v[1]
            },
            Gfx::Gfx9,
        ),
        ("v_add_nc_u16", 2, |[a, b, _]| a.wrapping_add(b), Gfx::Gfx10),
        ("v_sub_nc_i16", 2, |[a, b, _]| a.wrapping_sub(b), Gfx::Gfx10),
    ];
    all("op_sel", KEEP, |name, gpu, add| {
        let mut random = random(name);
        for (op, count, f, since) in OPS {
            if gpu.generation() < since {
                continue;
            }
            for choice in 0..16 {
                let chosen: [bool; 4] = bools(choice);
                let mut bits: Vec<bool> = chosen[..count].to_vec();
                bits.push(chosen[3]);
                let registers = ["v10", "v11", "v12"][..count].join(", ");
                let code = if bits.contains(&true) {
                    format!("{op} v20, {registers} op_sel:[{}]", list(&bits))
                } else {
                    format!("{op} v20, {registers}")
                };
                add(
                    code,
                    Rc::new(move |lane, v| {
                        let result = f([0, 1, 2].map(|at| pick(v[at][lane], chosen[at]))) & 0xffff;
                        let old = v[3][lane];
                        Some(
                            if chosen[3] { old & 0xffff | result << 16 } else { old & 0xffff_0000 | result }
                                .into(),
                        )
                    }),
                );
            }
        }
        // Floating point with signs, both halves written.
        for _ in 0..if gpu.generation() >= Gfx::Gfx9 { 32 } else { 0 } {
            let bits = random();
            let chosen: [bool; 2] = bools(bits);
            let signs = [Sign::random(bits >> 8), Sign::random(bits >> 10)];
            let (a, b) = (signs[0].text("v10"), signs[1].text("v11"));
            let tail =
                if chosen.contains(&true) { format!(" op_sel:[{},0]", list(&chosen)) } else { String::new() };
            add(
                format!("v_pack_b32_f16 v20, {a}, {b}{tail}"),
                Rc::new(move |lane, v| {
                    // Nothing is computed: whether a NaN becomes a quiet one is not told.
                    let half = |at: usize| {
                        let number = signs[at].of(half(pick(v[at][lane], chosen[at])));
                        let bits = bits_of(number, true);
                        if number.is_nan() { Bits { told: 0x7c00, ..bits } } else { bits }
                    };
                    let (low, high) = (half(0), half(1));
                    Some(Bits {
                        value: low.value | high.value << 16,
                        told: low.told & 0xffff | high.told << 16,
                    })
                }),
            );
        }
    });
}

/// Operands that are halves of registers, where the GPU is in that mode.
#[test]
fn halves_by_name() {
    type Halves = (&'static str, fn(f64, f64) -> f64);
    const OPS: [Halves; 3] =
        [("v_mul_f16", |a, b| a * b), ("v_add_f16", |a, b| a + b), ("v_sub_f16", |a, b| a - b)];
    let name = |register: &str, high: bool| format!("{register}.{}", if high { "h" } else { "l" });
    let place = |high: bool, old: u32, half: Bits| {
        let (by, kept) = if high { (16, 0xffff) } else { (0, 0xffff_0000) };
        Bits { value: (half.value & 0xffff) << by | old & kept, told: (half.told & 0xffff) << by | kept }
    };
    let mut cases = Vec::new();
    let mut random = random("halves by name");
    for choice in 0..64 {
        let bits = random();
        let chosen: [bool; 3] = bools(choice);
        let destination = name("v20", chosen[2]);
        let (op, f) = OPS[choice as usize / 8 % 3];
        let signs = [Sign::random(bits), Sign::random(bits >> 2)];
        let [a, b] = [0, 1].map(|at| signs[at].text(&name(["v10", "v11"][at], chosen[at])));
        let model: Model = Rc::new(move |lane, v| {
            let [x, y] = [0, 1].map(|at| signs[at].of(half(pick(v[at][lane], chosen[at]))));
            Some(place(chosen[2], v[3][lane], bits_of(f(x, y), true)))
        });
        cases.push(Case { code: format!("{op} {destination}, {a}, {b}"), exec: u64::MAX, model });
        let model: Model =
            Rc::new(move |lane, v| Some(place(chosen[2], v[3][lane], pick(v[0][lane], chosen[0]).into())));
        let code = format!("v_mov_b16 {destination}, {}", name("v10", chosen[0]));
        cases.push(Case { code, exec: u64::MAX, model });
    }
    let names = ["gfx1100+real-true16", "gfx1200+real-true16"];
    let wrong: Vec<String> = names.iter().flat_map(|name| compare(name, KEEP, &cases)).collect();
    report("halves by name", names.len() * cases.len(), &wrong);
}

/// Lanes choose between halves; the upper half of the register stays.
#[test]
fn selected_halves() {
    let names = ["gfx1100", "gfx1200"];
    let model: Model = Rc::new(|lane, v| {
        let half = pick(v[usize::from(0x5531_aaf0u32 >> lane & 1 != 0)][lane], false);
        Some((half | v[3][lane] & 0xffff_0000).into())
    });
    let code = "s_mov_b32 vcc_lo, 0x5531aaf0\nv_cndmask_b16 v20, v10, v11, vcc_lo";
    let cases = [Case { code: code.into(), exec: u64::MAX, model }];
    let wrong: Vec<String> = names.iter().flat_map(|name| compare(name, KEEP, &cases)).collect();
    report("selected halves", names.len(), &wrong);
}

/// Packed operations: each half of the result of a half of each source.
#[test]
fn packed() {
    type Packed = (&'static str, usize, fn([u32; 3]) -> u32);
    const INTEGERS: [Packed; 6] = [
        ("v_pk_add_u16", 2, |[a, b, _]| a.wrapping_add(b)),
        ("v_pk_sub_i16", 2, |[a, b, _]| a.wrapping_sub(b)),
        ("v_pk_mad_u16", 3, |[a, b, c]| a.wrapping_mul(b).wrapping_add(c)),
        ("v_pk_lshlrev_b16", 2, |[a, b, _]| b << (a & 15)),
        ("v_pk_min_u16", 2, |[a, b, _]| a.min(b)),
        ("v_pk_ashrrev_i16", 2, |[a, b, _]| (b as u16 as i16 >> (a & 15)) as u32),
    ];
    all("packed", KEEP, |name, gpu, add| {
        if gpu.generation() < Gfx::Gfx9 {
            return;
        }
        let mut random = random(name);
        for round in 0..120 {
            let bits = random();
            let (low, high): ([bool; 3], [bool; 3]) = (bools(bits), bools(bits >> 3));
            let selects = |count: usize| {
                format!(" op_sel:[{}] op_sel_hi:[{}]", list(&low[..count]), list(&high[..count]))
            };
            let (op, count, f) = INTEGERS[round % 6];
            let registers = ["v10", "v11", "v12"][..count].join(", ");
            add(
                format!("{op} v20, {registers}{}", selects(count)),
                Rc::new(move |lane, v| {
                    let of =
                        |halves: [bool; 3]| f([0, 1, 2].map(|at| pick(v[at][lane], halves[at]))) & 0xffff;
                    Some((of(low) | of(high) << 16).into())
                }),
            );
            let (neg_low, neg_high): ([bool; 2], [bool; 2]) = (bools(bits >> 8), bools(bits >> 10));
            let clamp = bits >> 12 & 3 == 0;
            let adds = bits >> 14 & 1 != 0;
            add(
                format!(
                    "{} v20, v10, v11{} neg_lo:[{}] neg_hi:[{}]{}",
                    if adds { "v_pk_add_f16" } else { "v_pk_mul_f16" },
                    selects(2),
                    list(&neg_low),
                    list(&neg_high),
                    if clamp { " clamp" } else { "" }
                ),
                Rc::new(move |lane, v| {
                    let of = |halves: [bool; 3], neg: [bool; 2]| {
                        let [x, y] = [0, 1].map(|at| {
                            Sign { neg: neg[at], abs: false }.of(half(pick(v[at][lane], halves[at])))
                        });
                        bits_of(clamped(if adds { x + y } else { x * y }, clamp), true)
                    };
                    let (a, b) = (of(low, neg_low), of(high, neg_high));
                    Some(Bits { value: a.value | b.value << 16, told: a.told & 0xffff | b.told << 16 })
                }),
            );
        }
    });
}

/// Mixed precision: sources of 32 bits, or halves of registers.
#[test]
fn mixed() {
    all("mixed precision", KEEP, |name, gpu, add| {
        let generation = gpu.generation();
        if generation < Gfx::Gfx9 {
            return;
        }
        // gfx900 rounds the product, and has no denormals.
        let fused = generation != Gfx::Gfx9;
        let mut random = random(name);
        for round in 0..96 {
            let bits = random();
            let (is_half, high): ([bool; 3], [bool; 3]) = (bools(bits), bools(bits >> 3));
            let signs = [8, 10, 12].map(|at| Sign::random(bits >> at));
            let clamp = bits >> 14 & 3 == 0;
            let op = format!(
                "v_{}_mix{}",
                if fused { "fma" } else { "mad" },
                ["_f32", "lo_f16", "hi_f16"][round % 3]
            );
            let [a, b, c] = [0, 1, 2].map(|at| signs[at].text(["v10", "v11", "v12"][at]));
            add(
                format!(
                    "{op} v20, {a}, {b}, {c} op_sel:[{}] op_sel_hi:[{}]{}",
                    list(&high),
                    list(&is_half),
                    if clamp { " clamp" } else { "" }
                ),
                Rc::new(move |lane, v| {
                    let [x, y, z] = [0, 1, 2].map(|at| {
                        let bits = v[at][lane];
                        signs[at].of(if is_half[at] { half(pick(bits, high[at])) } else { single(bits) })
                            as f32
                    });
                    let sum = if fused { x.mul_add(y, z) } else { x * y + z };
                    let tiny = [x, y, z, x * y, sum].iter().any(|n| n.is_subnormal());
                    let unsure = !fused && tiny;
                    let old = v[3][lane];
                    let (value, told, place) = match round % 3 {
                        0 => {
                            let Bits { value, told } = bits_of(clamped(sum.into(), clamp), false);
                            (value, told, u32::MAX)
                        }
                        part => {
                            let Bits { value, told } =
                                bits_of(clamped(half(to_half(sum.into())), clamp), true);
                            let by = 16 * (part as u32 - 1);
                            (value << by, told << by, 0xffff << by)
                        }
                    };
                    Some(Bits {
                        value: value & place | old & !place,
                        told: if unsure { !place } else { told & place | !place },
                    })
                }),
            );
        }
    });
}

/// Halves change places: of two registers, and of one.
#[test]
fn halves_change_places() {
    for (operands, first, second) in [
        ("v1.l, v2.h", 0x1111_3333, 0x2222_4444),
        ("v1.h, v2.l", 0x4444_2222, 0x3333_1111),
        ("v1.l, v2.l", 0x1111_4444, 0x3333_2222),
        ("v1.l, v1.h", 0x2222_1111, 0x3333_4444),
        ("v1.h, v1.h", 0x1111_2222, 0x3333_4444),
    ] {
        let code = format!("v_mov_b32 v1, 0x11112222\nv_mov_b32 v2, 0x33334444\nv_swap_b16 {operands}\n");
        for gpu in ["gfx1100", "gfx1201"] {
            let ran = rig::plain(gpu, &code).clean();
            assert_eq!((ran.v(1), ran.v(2)), (first, second), "{gpu} {operands}");
        }
    }
}

/// An inline constant in `v_pk_fmac_f16` is the low half only before gfx11, and both from it on.
#[test]
fn constants_of_packed_sums() {
    for (gpu, expected) in [("gfx1030", 0x4000), ("gfx1100", 0x4400_4000), ("gfx1201", 0x4400_4000)] {
        let code = "v_mov_b32 v0, 0x40003c00\nv_mov_b32 v1, 0\nv_pk_fmac_f16 v1, 2.0, v0\n";
        assert_eq!(rig::plain(gpu, code).clean().v(1), expected, "{gpu}");
        let literal = code.replace("2.0", "0x40004000");
        assert_eq!(rig::plain(gpu, &literal).clean().v(1), 0x4400_4000, "{gpu}");
        let low = code.replace("2.0", "0x4000");
        assert_eq!(rig::plain(gpu, &low).clean().v(1), 0x4000, "{gpu}");
    }
}
