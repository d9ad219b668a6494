//! Conversions of gfx950 with a scale, and transposing loads of LDS, against models.
//!
//! The models are a second reading of AMD's CDNA 4 manual in arithmetic of the host: every number of a small format is written
//! down by its definition, and what is nearest, or next below, is looked for among all of them.

mod numbers;
mod rig;

use numbers::{BRAIN, HALF, Numbers};

/// A small format: bits of exponent and fraction, the bias, and how many magnitudes are numbers.
#[derive(Clone, Copy)]
struct Format {
    exponent: u32,
    fraction: u32,
    bias: i32,
    count: u32,
}

const FORMATS: [(&str, Format); 5] = [
    ("fp8", Format { exponent: 4, fraction: 3, bias: 7, count: 127 }),
    ("bf8", Format { exponent: 5, fraction: 2, bias: 15, count: 124 }),
    ("fp6", Format { exponent: 2, fraction: 3, bias: 1, count: 32 }),
    ("bf6", Format { exponent: 3, fraction: 2, bias: 3, count: 32 }),
    ("fp4", Format { exponent: 2, fraction: 1, bias: 1, count: 8 }),
];

fn format(name: &str) -> Format {
    FORMATS.iter().find(|(known, _)| *known == name).expect("a format").1
}

impl Format {
    fn bits(self) -> u32 {
        1 + self.exponent + self.fraction
    }

    fn sign(self) -> u32 {
        1 << (self.bits() - 1)
    }

    fn magnitude(self, code: u32) -> f64 {
        let (biased, fraction) = ((code >> self.fraction) as i32, code & ((1 << self.fraction) - 1));
        let part = f64::from(fraction) / f64::from(1 << self.fraction);
        if biased == 0 {
            part * 2f64.powi(1 - self.bias)
        } else {
            (1.0 + part) * 2f64.powi(biased - self.bias)
        }
    }

    fn number(self, code: u32) -> f64 {
        let magnitude = self.magnitude(code & (self.sign() - 1));
        if code & self.sign() != 0 { -magnitude } else { magnitude }
    }

    /// A number in range as its bits: by random bits of which so many count, or to the nearest.
    fn rounded(self, number: f64, random: Option<(u32, u32)>) -> u32 {
        let sign = if number.is_sign_negative() { self.sign() } else { 0 };
        let size = number.abs();
        let below = (0..self.count).rev().find(|code| self.magnitude(*code) <= size).expect("zero is");
        if below + 1 == self.count {
            return sign | below;
        }
        let (low, high) = (self.magnitude(below), self.magnitude(below + 1));
        let part = (size - low) / (high - low);
        let up = match random {
            // Bits of the part that have no place are lost.
            Some((random, counted)) => {
                let steps = 2f64.powi(counted as i32);
                (part * steps).floor() + f64::from(random >> (32 - counted)) >= steps
            }
            None => part > 0.5 || part == 0.5 && below & 1 == 1,
        };
        sign | (below + u32::from(up))
    }
}

/// Wide formats: their bits, how many of them are fraction, and a number of moderate size.
fn wide_bits(name: &str) -> (u32, u32) {
    match name {
        "f32" => (32, 23),
        "f16" => (16, 10),
        _ => (16, 7),
    }
}

fn wide_number(name: &str, bits: u32) -> f64 {
    match name {
        "f32" => f32::from_bits(bits).into(),
        "f16" => HALF.number(bits),
        _ => BRAIN.number(bits),
    }
}

/// A number as bits of a wide format: what is too great is infinite.
fn wide_of(name: &str, number: f64) -> u32 {
    let small = if name == "f16" { HALF } else { BRAIN };
    let infinity = |small: numbers::Small| small.greatest() + 1;
    match name {
        "f32" => (number as f32).to_bits(),
        _ => small.nearest(number).unwrap_or_else(|| infinity(small) | if number < 0.0 { 0x8000 } else { 0 }),
    }
}

/// What `v_prng_b32` makes of a number.
fn next_random(value: u32) -> u32 {
    let shifted = u64::from(value) << 1;
    (shifted as u32) ^ (if shifted >> 32 != 0 { 0xc5 } else { 0 })
}

/// Elements one after the other as dwords.
fn packed(elements: &[u32], bits: u32) -> Vec<u32> {
    let mut dwords = vec![0u32; (elements.len() as u32 * bits).div_ceil(32) as usize];
    for (number, element) in (0..).zip(elements) {
        for bit in 0..bits {
            let at = number * bits + bit;
            dwords[(at / 32) as usize] |= (element >> bit & 1) << (at % 32);
        }
    }
    dwords
}

fn moved(first: usize, dwords: &[u32]) -> String {
    dwords.iter().enumerate().map(|(n, value)| format!("v_mov_b32 v{}, {value:#x}\n", first + n)).collect()
}

fn registers(first: usize, count: usize) -> String {
    if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
}

/// What the registers of a result held before.
const OLD: u32 = 0x5a96_c3e1;

/// Runs a conversion with its sources in registers: what the registers of the result hold.
fn converted(name: &str, sources: &[Vec<u32>], dwords: usize, select: &str) -> Vec<u32> {
    const RESULT: usize = 8;
    let (mut code, mut text, mut at) = (moved(RESULT, &vec![OLD; dwords]), registers(RESULT, dwords), 40);
    for source in sources {
        code += &moved(at, source);
        text += &format!(", {}", registers(at, source.len()));
        at += source.len().next_multiple_of(2);
    }
    code += &format!("{name} {text}{select}\n");
    let ran = rig::plain("gfx950", &code).clean();
    (0..dwords).map(|n| ran.v((RESULT + n) as u8)).collect()
}

/// What the name of an instruction means: how many elements, of which formats.
struct Parsed<'n> {
    stochastic: bool,
    count: usize,
    two: bool,
    to: &'n str,
    from: &'n str,
}

fn parsed(name: &str) -> Parsed<'_> {
    let words: Vec<&str> = name.trim_start_matches("v_cvt_scalef32_").split('_').collect();
    let (to, from) = (words[words.len() - 2], words[words.len() - 1]);
    let stochastic = words.contains(&"sr");
    let count = match words.iter().find(|word| word.contains("pk")) {
        Some(&"pk") => 2,
        Some(_) => 32,
        None => 1,
    };
    let two = words.contains(&"2xpk16") || count == 2 && from == "f32" && !stochastic;
    Parsed { stochastic, count, two, to, from }
}

/// Puts a result that is less than a register into a part of it.
fn placed(result: &[u32], bits: u32, first: u32) -> Vec<u32> {
    if bits >= 32 {
        return result.to_vec();
    }
    let mask = ((1 << bits) - 1) << first;
    vec![OLD & !mask | result[0] << first]
}

/// `op_sel` of its four bits, as the text of an instruction with so many sources has it.
fn selection(bits: u32, sources: usize) -> String {
    let mut all: Vec<u32> = (0..sources).map(|n| bits >> n & 1).collect();
    all.push(bits >> 3 & 1);
    let text: Vec<String> = all.iter().map(u32::to_string).collect();
    format!(" op_sel:[{}]", text.join(","))
}

fn narrowing(name: &str, numbers: &mut Numbers) {
    let Parsed { stochastic, count, two, to, from } = parsed(name);
    let (target, (wide, fraction)) = (format(to), wide_bits(from));
    let scale = numbers.below(9) as i32 - 4;
    let random = numbers.next() as u32;
    // Some beyond the greatest number where that is all there is; else within it.
    let beyond = if target.bits() < 8 { 2.0 } else { 0.99 };
    let most = target.magnitude(target.count - 1) * beyond;
    let elements: Vec<u32> = (0..count)
        .map(|_| {
            let part =
                2f64.powi(-(numbers.below(12) as i32)) * (numbers.below(1 << 20) as f64 / 2f64.powi(20));
            let sign = if numbers.below(2) == 0 { 1.0 } else { -1.0 };
            let number = most * part * 2f64.powi(scale);
            wide_of(from, sign * if from == "f16" { number.min(65504.0) } else { number })
        })
        .collect();
    let mut seed = random;
    let expected: Vec<u32> = elements
        .iter()
        .map(|bits| {
            let number = wide_number(from, *bits) / 2f64.powi(scale);
            let made = target.rounded(number, stochastic.then_some((seed, fraction - target.fraction)));
            seed = next_random(seed);
            made
        })
        .collect();
    let mut sources = if two {
        let of = |which: usize| elements.iter().copied().skip(which).step_by(2).collect::<Vec<u32>>();
        vec![packed(&of(0), wide), packed(&of(1), wide)]
    } else {
        vec![packed(&elements, wide)]
    };
    if stochastic {
        sources.push(vec![random]);
    }
    // Sign and fraction of a scale do not count.
    sources.push(vec![((scale + 127) as u32) << 23 | numbers.next() as u32 & 0x807f_ffff]);
    let bits = count as u32 * target.bits();
    let (place, select) = match bits {
        8 => (numbers.below(4) as u32, 2),
        16 => (numbers.below(2) as u32, 3),
        _ => (0, 3),
    };
    let told = if bits < 32 && place != 0 {
        // Of two sources the text has three places for four bits, and the third is the first of the destination.
        let sources = if sources.len() == 2 && bits == 8 { 3 } else { sources.len() };
        selection(place << select, sources)
    } else {
        String::new()
    };
    let got = converted(name, &sources, bits.div_ceil(32) as usize, &told);
    let expected = placed(&packed(&expected, target.bits()), bits, place * bits);
    assert_eq!(got, expected, "{name} {scale} {random:#x}{told} {elements:x?}");
}

fn widening(name: &str, numbers: &mut Numbers) {
    let Parsed { count, to, from, .. } = parsed(name);
    let (source, (wide, _)) = (format(from), wide_bits(to));
    let scale = numbers.below(9) as i32 - 4;
    let elements: Vec<u32> = (0..count)
        .map(|_| {
            let sign = if numbers.below(2) == 0 { 0 } else { source.sign() };
            sign | numbers.below(source.count.into()) as u32
        })
        .collect();
    let bits = count as u32 * source.bits();
    let choice = match bits {
        8 => numbers.below(4) as u32,
        16 => numbers.below(2) as u32,
        _ => 0,
    };
    let mut words = packed(&elements, source.bits());
    if bits < 32 {
        words[0] = words[0] << (choice * bits) | OLD & !(((1 << bits) - 1) << (choice * bits));
    }
    let half = if count as u32 * wide == 16 { numbers.below(2) as u32 } else { 0 };
    let told = if choice | half != 0 { selection(choice | half << 3, 2) } else { String::new() };
    let sources = vec![words, vec![((scale + 127) as u32) << 23 | numbers.next() as u32 & 0x807f_ffff]];
    let expected: Vec<u32> =
        elements.iter().map(|code| wide_of(to, source.number(*code) * 2f64.powi(scale))).collect();
    let all = count as u32 * wide;
    let got = converted(name, &sources, all.div_ceil(32) as usize, &told);
    let expected = placed(&packed(&expected, wide), all, half * 16);
    assert_eq!(got, expected, "{name} {scale}{told} {elements:x?}");
}

#[test]
fn conversions_with_a_scale() {
    let mut numbers = Numbers(950);
    let mut known = 0;
    for row in unwedge_isa::amdgcn::tables::rows() {
        let name = row.name;
        if !name.starts_with("v_cvt_scalef32_") {
            continue;
        }
        known += 1;
        let small = |name: &str| FORMATS.iter().any(|(known, _)| *known == name);
        for _ in 0..40 {
            if small(parsed(name).to) { narrowing(name, &mut numbers) } else { widening(name, &mut numbers) }
        }
    }
    assert!(known > 40, "{known}");
}

/// What formats make of a scale that is NaN.
#[test]
fn scales_that_are_nan() {
    let nan = vec![f32::NAN.to_bits()];
    let one = vec![1f32.to_bits()];
    let got =
        converted("v_cvt_scalef32_pk_fp4_f32", &[one.clone(), vec![(-1f32).to_bits()], nan.clone()], 1, "");
    assert_eq!(got, [OLD & !0xff | 0xf7]);
    let got = converted("v_cvt_scalef32_pk_fp8_f32", &[one.clone(), one, nan.clone()], 1, "");
    assert_eq!(got, [OLD & !0xffff | 0x7f7f]);
    let got = converted("v_cvt_scalef32_pk_f32_fp4", &[vec![0x21], nan], 2, "");
    assert!(got.iter().all(|bits| f32::from_bits(*bits).is_nan()));
}

/// Truth tables: every one, of sources that have every combination of bits.
#[test]
fn truth_tables() {
    let (a, b, c) = (0xf0f0_f0f0u32, 0xcccc_cccc, 0xaaaa_aaaa);
    for table in 0..256u32 {
        let sources = moved(10, &[a, b, c]);
        let code = format!(
            "{sources}v_bitop3_b32 v13, v10, v11, v12 bitop3:{table}\n\
             v_mov_b32 v14, {OLD}\nv_bitop3_b16 v14, v10, v11, v12 bitop3:{table} op_sel:[0,0,0,1]\n"
        );
        let ran = rig::plain("gfx950", &code).clean();
        let expected = table << 24 | table << 16 | table << 8 | table;
        assert_eq!((ran.v(13), ran.v(14)), (expected, expected & 0xffff_0000 | OLD & 0xffff), "{table:#x}");
    }
}

/// Which byte a small number goes to and comes from: by `op_sel`, and by SDWA.
#[test]
fn bytes_of_gfx94x() {
    for (gpu, half) in [("gfx942", 0x38), ("gfx950", 0x30)] {
        for byte in 0..4u32 {
            let code = format!(
                "v_mov_b32 v10, {OLD}\nv_mov_b32 v11, 0.5\nv_mov_b32 v12, 0\nv_mov_b32 v13, {:#x}\n\
                 v_cvt_sr_fp8_f32 v10, v11, v12{}\nv_cvt_f32_fp8_sdwa v14, v13 src0_sel:BYTE_{byte}\n\
                 v_cvt_pk_f32_fp8_sdwa v[16:17], v13 src0_sel:WORD_{}\n",
                half << (8 * byte),
                selection(byte << 2, 3),
                byte / 2,
            );
            let ran = rig::plain(gpu, &code).clean();
            assert_eq!(ran.v(10), OLD & !(0xff << (8 * byte)) | half << (8 * byte), "{gpu} {byte}");
            assert_eq!(ran.v(14), 0.5f32.to_bits(), "{gpu} {byte} {:x} {:x}", ran.v(13), ran.v(10));
            let pair = [0, 1].map(|n| if n == byte % 2 { 0.5f32.to_bits() } else { 0 });
            assert_eq!([ran.v(16), ran.v(17)], pair, "{gpu} {byte}");
        }
    }
}

/// Elements of 16 lanes one after the other, as rows of 16: each lane gets a column.
#[test]
fn transposed_loads_of_lds() {
    for (name, dwords, bits) in [
        ("ds_read_b64_tr_b16", 2usize, 16u32),
        ("ds_read_b64_tr_b8", 2, 8),
        ("ds_read_b64_tr_b4", 2, 4),
        ("ds_read_b96_tr_b6", 3, 6),
    ] {
        let stride = dwords.next_power_of_two() * 4;
        let mut code = format!("s_mov_b32 s10, 0x9e3779b1\nv_mul_u32_u24 v20, {stride}, v6\n");
        for n in 0..dwords {
            code += &format!("v_add_u32 v21, {}, v6\nv_mul_lo_u32 v{}, v21, s10\n", n * 64 + 1, 10 + n);
        }
        let (data, result) = (registers(10, dwords), registers(14, dwords));
        let size = dwords * 32;
        let full = format!(
            "{code}ds_write_b{size} v20, {data}\ns_waitcnt lgkmcnt(0)\n{name} {result}, v20\ns_waitcnt lgkmcnt(0)\n"
        );
        let copies: String = (0..dwords).map(|n| format!("v_mov_b32 v{}, v{}\n", 22 + n, 14 + n)).collect();
        let ran = rig::late("gfx950", &format!("{full}{copies}")).clean();
        let words: Vec<Vec<u32>> = (0..64u32)
            .map(|lane| (0..dwords as u32).map(|n| (lane + n * 64 + 1).wrapping_mul(0x9e37_79b1)).collect())
            .collect();
        let each = dwords as u32 * 32 / bits;
        for lane in 0..64usize {
            let column: Vec<u32> = (0..each)
                .map(|row| {
                    let number = row * 16 + lane as u32 % 16;
                    let words = &words[lane / 16 * 16 + (number / each) as usize];
                    (0..bits).fold(0, |value, bit| {
                        let at = number % each * bits + bit;
                        value | (words[(at / 32) as usize] >> (at % 32) & 1) << bit
                    })
                })
                .collect();
            let got: Vec<u32> = (0..dwords).map(|n| ran.lanes((22 + n) as u8)[lane]).collect();
            assert_eq!(got, packed(&column, bits), "{name} lane {lane}");
        }
        // It asks for every lane, and for addresses that are aligned.
        let some = full.replace(&format!("{name} "), &format!("s_mov_b64 exec, 0xff\n{name} "));
        assert!(!rig::plain("gfx950", &some).faults.is_empty(), "{name}");
        let odd = full.replace(", v20\ns_waitcnt lgkmcnt(0)\n", ", v20 offset:4\ns_waitcnt lgkmcnt(0)\n");
        assert!(odd != full && !rig::plain("gfx950", &odd).faults.is_empty(), "{name}");
    }
}

/// Singles as numbers of 16 bits by random bits, of which the upper 13 or 16 count: `op_sel` chooses the half that is written.
#[test]
fn singles_to_sixteen_bits_by_random_bits() {
    for (name, format, counted) in [
        ("v_cvt_sr_f16_f32", Format { exponent: 5, fraction: 10, bias: 15, count: 0x7c00 }, 13),
        ("v_cvt_sr_bf16_f32", Format { exponent: 8, fraction: 7, bias: 127, count: 0x7f80 }, 16),
    ] {
        let infinity = format.count;
        let mut cases = vec![
            (f32::NAN, 0, 0x7fff),
            (-f32::NAN, 0, 0xffff),
            (f32::INFINITY, u32::MAX, infinity),
            (f32::NEG_INFINITY, 0, infinity | 0x8000),
            (f32::MAX, u32::MAX, infinity),
            (0.0, u32::MAX, 0),
            (-0.0, u32::MAX, 0x8000),
        ];
        let mut numbers = Numbers(7);
        for round in 0..100 {
            let small = if round % 4 == 0 { 2f32.powi(-17) } else { 1.0 };
            let value = f32::from_bits(numbers.value("f32m") as u32) * small;
            let random = numbers.next() as u32;
            cases.push((value, random, format.rounded(value.into(), Some((random, counted)))));
        }
        for (value, random, expected) in cases {
            for (select, kept, shift) in [("", 0xffff_0000u32, 0), (" op_sel:[0,0,1]", 0xffff, 16)] {
                let got = converted(name, &[vec![value.to_bits()], vec![random]], 1, select);
                assert_eq!(got, [OLD & kept | expected << shift], "{name} {value:e} {random:#x}{select}");
            }
        }
    }
}
