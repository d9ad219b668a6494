//! Matrix products: every instruction against a plain triple loop over matrices that are put into lanes as the manuals say.

mod rig;

use rig::gpu;
use unwedge_isa::amdgcn::Gpu;
use unwedge_sim::amdgcn::{Dispatch, FaultKind, Initial, Missing, Outcome, Program, SimMemory, Timing, run};

const BASE: u64 = 0x1_0000;
/// Registers of A, B, C and the result, and of the sparse indices.
const A: usize = 16;
const B: usize = 32;
const C: usize = 64;
const D: usize = 80;
const INDEX: usize = 96;

/// Registers of a wave, by lane.
struct Wave {
    lanes: usize,
    v: Vec<[u32; 64]>,
}

impl Wave {
    fn new(gpu: &Gpu) -> Wave {
        Wave { lanes: gpu.lanes() as usize, v: vec![[0; 64]; 100] }
    }

    /// Puts bits into a lane, counted from a register on.
    fn put(&mut self, first: usize, lane: usize, bit: usize, bits: usize, value: u32) {
        let mask = u32::MAX >> (32 - bits);
        self.v[first + bit / 32][lane] |= (value & mask) << (bit % 32);
    }
}

/// Runs one instruction on registers that memory holds; gives the registers of the result.
fn go(gpu: Gpu, code: &str, wave: &Wave, timing: Timing) -> (Vec<[u32; 64]>, Outcome) {
    let twelve = gpu.name().starts_with("gfx12");
    let wait = if twelve { "s_wait_loadcnt 0" } else { "s_waitcnt vmcnt(0)" };
    let mut text = String::from("v_lshlrev_b32 v1, 2, v0\n");
    let mut bytes = Vec::new();
    for n in 16..100 {
        if !(D..INDEX).contains(&n) {
            text += &format!("v_add_nc_u32 v2, {}, v1\nglobal_load_b32 v{n}, v2, s[4:5]\n", (n - 16) * 256);
        }
        bytes.extend(wave.v[n].iter().flat_map(|value| value.to_le_bytes()));
    }
    text += &format!("{wait}\n{code}\nv_nop\nv_nop\n");
    for n in 0..8 {
        text += &format!("v_add_nc_u32 v2, {}, v1\nglobal_store_b32 v2, v{}, s[6:7]\n", n * 256, D + n);
    }
    text += "s_endpgm\n";
    let program = Program::new(&rig::words(&text, &gpu), 0, gpu);
    let mut memory = SimMemory::default();
    memory.map(BASE, bytes).expect("free");
    memory.map(0x8_0000, vec![0; 8 * 256]).expect("free");
    let dispatch = Dispatch {
        size: [wave.lanes as u32, 1, 1],
        scalars: vec![(4, BASE as u32), (5, 0), (6, 0x8_0000), (7, 0)],
        vectors: vec![(0, Initial::LocalId(0))]
            .into_iter()
            .chain((0..8).map(|n| (D as u8 + n, Initial::Value(0xaaaa_5555))))
            .collect(),
        timing,
        ..Dispatch::default()
    };
    let outcome = run(&program, &mut memory, &dispatch, None);
    let out = memory.get(0x8_0000, 8 * 256).expect("mapped");
    let word = |at: usize| u32::from_le_bytes([out[at], out[at + 1], out[at + 2], out[at + 3]]);
    let registers = (0..8).map(|n| std::array::from_fn(|lane| word(n * 256 + lane * 4))).collect();
    (registers, outcome)
}

/// Small numbers that every format has, as their bits.
fn encode(kind: &str, value: i32) -> u32 {
    let small = |fraction: u32, bias: u32| {
        if value == 0 {
            return 0;
        }
        let magnitude = value.unsigned_abs();
        let top = 31 - magnitude.leading_zeros();
        let kept = (magnitude << fraction >> top) & ((1 << fraction) - 1);
        (top + bias) << fraction | kept
    };
    match kind {
        "f32" => (value as f32).to_bits(),
        "bf16" => (value as f32).to_bits() >> 16,
        "f16" => small(10, 15) | u32::from(value < 0) << 15,
        "fp8" => small(3, 7) | u32::from(value < 0) << 7,
        "bf8" => small(2, 15) | u32::from(value < 0) << 7,
        _ => value as u32,
    }
}

fn width(kind: &str) -> usize {
    match kind {
        "f16" | "bf16" => 16,
        "fp8" | "bf8" | "iu8" => 8,
        "iu4" => 4,
        _ => 32,
    }
}

/// Lane and bit of an element of A: row, column; B has them the other way round. From the tables of AMD's manuals.
fn factor(
    gpu: &Gpu,
    bits: usize,
    depth: usize,
    k: usize,
    other: usize,
    sparse_b: bool,
) -> Vec<(usize, usize)> {
    let bit = |n: usize| k >> n & 1;
    if !gpu.name().starts_with("gfx12") {
        // As often as there are groups of 16 lanes.
        let groups = if gpu.wave64() { 4 } else { 2 };
        return (0..groups).map(|group| (group * 16 + other, k * bits)).collect();
    }
    let (lane, place) = match (bits, depth, gpu.wave64()) {
        (16, 16, false) => (bit(2), bit(3) * 4 + (k & 3)),
        (16, 16, true) => (k >> 2, k & 3),
        (8, 16, false) => (bit(3), k & 7),
        (8, 16, true) => (bit(2) * 2 + bit(3), k & 3),
        (4, 16, _) => (bit(3), k & 7),
        (4, 32, false) => (bit(4), k & 15),
        (4, 32, true) => (bit(3) * 2 + bit(4), k & 7),
        // Expanded: twice as deep as A's, what meets in one lane of both.
        (16, 32, false) if sparse_b => (bit(3), bit(4) * 8 + (k & 7)),
        (16, 32, true) if sparse_b => (k >> 3, k & 7),
        (8, 32, false) if sparse_b => (bit(4), k & 15),
        (8, 32, true) if sparse_b => (bit(3) * 2 + bit(4), k & 7),
        (4, 64, false) if sparse_b => (bit(5), k & 31),
        (4, 64, true) if sparse_b => (bit(4) * 2 + bit(5), k & 15),
        other => panic!("{other:?}"),
    };
    vec![(lane * 16 + other, place * bits)]
}

/// Lane and register, or half, of an element of C and D.
fn result(gpu: &Gpu, row: usize, column: usize) -> (usize, usize) {
    match (gpu.name().starts_with("gfx12"), gpu.wave64()) {
        (false, false) => (row % 2 * 16 + column, row / 2),
        (false, true) => (row % 4 * 16 + column, row / 4),
        (true, false) => (row / 8 * 16 + column, row % 8),
        (true, true) => (row / 4 % 2 * 32 + row / 8 * 16 + column, row % 4),
    }
}

struct Product {
    a: Vec<Vec<i32>>,
    b: Vec<Vec<i32>>,
    c: Vec<Vec<i32>>,
    /// For each row where the stored elements of A belong.
    chosen: Vec<Vec<usize>>,
}

fn numbers(kind: [&str; 2], depth: usize, sparse: bool, signed: [bool; 2]) -> Product {
    let value = |kind: &str, n: usize, signed: bool| {
        let n = (n * 7 + n / 5) as i32;
        match (kind, signed) {
            ("iu4", false) => n % 16,
            ("iu4", true) => n % 16 - 8,
            ("iu8", false) => n % 256,
            ("iu8", true) => n % 256 - 128,
            ("fp8" | "bf8", _) => n % 7 - 3,
            _ => n % 9 - 4,
        }
    };
    let stored = if sparse { depth / 2 } else { depth };
    let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)];
    let matrix = |rows: usize, columns: usize, f: &dyn Fn(usize, usize) -> i32| -> Vec<Vec<i32>> {
        (0..rows).map(|row| (0..columns).map(|column| f(row, column)).collect()).collect()
    };
    Product {
        a: matrix(16, stored, &|row, k| value(kind[0], row * 31 + k * 3, signed[0])),
        b: matrix(depth, 16, &|k, column| value(kind[1], k * 17 + column * 5 + 1, signed[1])),
        c: matrix(16, 16, &|row, column| (row * 3 + column * 2) as i32 % 23 - 11),
        chosen: (0..16)
            .map(|row| {
                (0..stored)
                    .map(|at| {
                        let (low, high) = pairs[(row + at / 2 * 5) % 6];
                        if !sparse { at } else { at / 2 * 4 + if at % 2 == 0 { low } else { high } }
                    })
                    .collect()
            })
            .collect(),
    }
}

impl Product {
    fn element(&self, row: usize, column: usize) -> i32 {
        let mut sum = self.c[row][column];
        for (value, k) in self.a[row].iter().zip(&self.chosen[row]) {
            sum = sum.wrapping_add(value.wrapping_mul(self.b[*k][column]));
        }
        sum
    }

    fn wave(&self, gpu: &Gpu, kinds: [&str; 3], depth: usize, sparse: bool, high: bool, key: usize) -> Wave {
        let mut wave = Wave::new(gpu);
        let (a, b) = (width(kinds[0]), width(kinds[1]));
        let stored = self.a[0].len();
        let mut per_lane = 0;
        for row in 0..16 {
            for k in 0..stored {
                for (lane, bit) in factor(gpu, a, stored, k, row, false) {
                    wave.put(A, lane, bit, a, encode(kinds[0], self.a[row][k]));
                    per_lane = per_lane.max(bit / a + 1);
                }
            }
        }
        if sparse {
            for row in 0..16 {
                for k in 0..stored {
                    for (lane, bit) in factor(gpu, a, stored, k, row, false) {
                        let at = 2 * (bit / a + key * per_lane);
                        wave.put(INDEX, lane, at, 2, self.chosen[row][k] as u32 % 4);
                    }
                }
            }
        }
        for k in 0..depth {
            for column in 0..16 {
                for (lane, bit) in factor(gpu, b, depth, k, column, sparse) {
                    wave.put(B, lane, bit, b, encode(kinds[1], self.b[k][column]));
                }
            }
        }
        for row in 0..16 {
            for column in 0..16 {
                let (lane, at) = result(gpu, row, column);
                let bit = place(gpu, kinds[2], at, high);
                wave.put(C, lane, bit, width(kinds[2]), encode(kinds[2], self.c[row][column]));
            }
        }
        wave
    }
}

/// The first bit of an element of the result.
fn place(gpu: &Gpu, kind: &str, at: usize, high: bool) -> usize {
    if width(kind) == 16 && !gpu.name().starts_with("gfx12") {
        at * 32 + 16 * usize::from(high)
    } else {
        at * width(kind)
    }
}

fn range(first: usize, bits: usize) -> String {
    let count = bits.div_ceil(32);
    if count == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + count - 1) }
}

/// The text of an instruction, and the registers of its operands.
fn text(gpu: &Gpu, name: &str, kinds: [&str; 3], depth: usize, sparse: bool, mods: &str) -> String {
    let lanes = gpu.lanes() as usize;
    let stored = if sparse { depth / 2 } else { depth };
    let twelve = gpu.name().starts_with("gfx12");
    // Before gfx12 every lane holds a whole row.
    let of = |kind: &str, depth: usize| {
        if twelve { (depth * 16 * width(kind)).div_ceil(lanes) } else { depth * width(kind) }
    };
    let result = 256 / lanes * if twelve { width(kinds[2]) } else { 32 };
    let (a, b) = (range(A, of(kinds[0], stored)), range(B, of(kinds[1], depth)));
    if sparse {
        // The sum is in the destination.
        let moves: String =
            (0..result.div_ceil(32)).map(|n| format!("v_mov_b32 v{}, v{}\n", D + n, C + n)).collect();
        format!("{moves}{name} {}, {a}, {b}, v{INDEX} {mods}", range(D, result))
    } else {
        format!("{name} {}, {a}, {b}, {} {mods}", range(D, result), range(C, result))
    }
}

#[derive(Clone, Copy)]
struct Case {
    name: &'static str,
    kinds: [&'static str; 3],
    depth: usize,
    sparse: bool,
    eleven: bool,
}

const fn case(
    name: &'static str,
    kinds: [&'static str; 3],
    depth: usize,
    sparse: bool,
    eleven: bool,
) -> Case {
    Case { name, kinds, depth, sparse, eleven }
}

const CASES: [Case; 22] = [
    case("v_wmma_f32_16x16x16_f16", ["f16", "f16", "f32"], 16, false, true),
    case("v_wmma_f32_16x16x16_bf16", ["bf16", "bf16", "f32"], 16, false, true),
    case("v_wmma_f16_16x16x16_f16", ["f16", "f16", "f16"], 16, false, true),
    case("v_wmma_bf16_16x16x16_bf16", ["bf16", "bf16", "bf16"], 16, false, true),
    case("v_wmma_i32_16x16x16_iu8", ["iu8", "iu8", "i32"], 16, false, true),
    case("v_wmma_i32_16x16x16_iu4", ["iu4", "iu4", "i32"], 16, false, true),
    case("v_wmma_i32_16x16x32_iu4", ["iu4", "iu4", "i32"], 32, false, false),
    case("v_wmma_f32_16x16x16_fp8_fp8", ["fp8", "fp8", "f32"], 16, false, false),
    case("v_wmma_f32_16x16x16_fp8_bf8", ["fp8", "bf8", "f32"], 16, false, false),
    case("v_wmma_f32_16x16x16_bf8_fp8", ["bf8", "fp8", "f32"], 16, false, false),
    case("v_wmma_f32_16x16x16_bf8_bf8", ["bf8", "bf8", "f32"], 16, false, false),
    case("v_swmmac_f32_16x16x32_f16", ["f16", "f16", "f32"], 32, true, false),
    case("v_swmmac_f32_16x16x32_bf16", ["bf16", "bf16", "f32"], 32, true, false),
    case("v_swmmac_f16_16x16x32_f16", ["f16", "f16", "f16"], 32, true, false),
    case("v_swmmac_bf16_16x16x32_bf16", ["bf16", "bf16", "bf16"], 32, true, false),
    case("v_swmmac_i32_16x16x32_iu8", ["iu8", "iu8", "i32"], 32, true, false),
    case("v_swmmac_i32_16x16x32_iu4", ["iu4", "iu4", "i32"], 32, true, false),
    case("v_swmmac_i32_16x16x64_iu4", ["iu4", "iu4", "i32"], 64, true, false),
    case("v_swmmac_f32_16x16x32_fp8_fp8", ["fp8", "fp8", "f32"], 32, true, false),
    case("v_swmmac_f32_16x16x32_fp8_bf8", ["fp8", "bf8", "f32"], 32, true, false),
    case("v_swmmac_f32_16x16x32_bf8_fp8", ["bf8", "fp8", "f32"], 32, true, false),
    case("v_swmmac_f32_16x16x32_bf8_bf8", ["bf8", "bf8", "f32"], 32, true, false),
];

const GPUS: [&str; 4] = ["gfx1100", "gfx1100+wavefrontsize64", "gfx1200", "gfx1200+wavefrontsize64"];

/// Sums are small integers: whatever the order and rounding, they are exact (but in bf16, which keeps eight bits).
fn check(name: &str, case: &Case, signed: [bool; 2], high: bool, key: usize, timing: Timing) {
    let gpu = gpu(name);
    let integer = case.kinds[2] == "i32";
    let mut mods = String::new();
    if key != 0 {
        mods += &format!(" index_key:{key}");
    }
    if integer {
        mods += &format!(" neg_lo:[{},{},0]", u8::from(signed[0]), u8::from(signed[1]));
    }
    if high {
        mods += " op_sel:[0,0,1]";
    }
    let product = numbers([case.kinds[0], case.kinds[1]], case.depth, case.sparse, signed);
    let wave = product.wave(&gpu, case.kinds, case.depth, case.sparse, high, key);
    let code = text(&gpu, case.name, case.kinds, case.depth, case.sparse, &mods);
    let (registers, outcome) = go(gpu, &code, &wave, timing);
    assert!(outcome.faults.is_empty(), "{name} {code}: {:?}", outcome.faults);
    for row in 0..16 {
        for column in 0..16 {
            let (lane, at) = result(&gpu, row, column);
            let bit = place(&gpu, case.kinds[2], at, high);
            let bits = width(case.kinds[2]);
            let found = registers[bit / 32][lane] >> (bit % 32) & (u32::MAX >> (32 - bits));
            let sum = product.element(row, column);
            let expected = if case.kinds[2] == "bf16" { rounded(sum) } else { encode(case.kinds[2], sum) };
            assert_eq!(found, expected, "{name} {} {row} {column}: {sum}", case.name);
        }
    }
    if width(case.kinds[2]) == 16 && !name.starts_with("gfx12") {
        // The other halves are as they were.
        let other = if high { registers[0][0] & 0xffff } else { registers[0][0] >> 16 };
        assert_eq!(other, if high { 0x5555 } else { 0xaaaa });
    }
}

/// An integer as bf16, to the nearest even.
fn rounded(value: i32) -> u32 {
    let bits = (value as f32).to_bits();
    (bits + 0x7fff + (bits >> 16 & 1)) >> 16
}

#[test]
fn products_are_those_of_a_plain_loop() {
    for name in GPUS {
        for case in CASES.iter().filter(|case| case.eleven || name.starts_with("gfx12")) {
            let integer = case.kinds[2] == "i32";
            let signs: &[[bool; 2]] = if integer {
                &[[false, false], [true, false], [false, true], [true, true]]
            } else {
                &[[true, true]]
            };
            for signed in signs {
                check(name, case, *signed, false, 0, Timing::Plain);
            }
        }
    }
}

#[test]
fn halves_and_sets_of_indices_are_chosen() {
    for name in ["gfx1100", "gfx1100+wavefrontsize64"] {
        for case in CASES.iter().filter(|case| case.eleven && width(case.kinds[2]) == 16) {
            check(name, case, [true; 2], true, 0, Timing::Plain);
        }
    }
    for (name, keys) in [("gfx1200", 2), ("gfx1200+wavefrontsize64", 4)] {
        for key in 1..keys {
            check(name, &CASES[11], [true; 2], false, key, Timing::Plain);
            check(name, &CASES[15], [true; 2], false, key, Timing::Adversarial { seed: 3 });
        }
    }
}

#[test]
fn late_timing_gives_the_same() {
    for name in GPUS {
        for at in [0, 4, 11, 15] {
            if CASES[at].eleven || name.starts_with("gfx12") {
                check(name, &CASES[at], [true; 2], false, 0, Timing::Adversarial { seed: 1 });
            }
        }
    }
}

fn floats(values: &[[u32; 64]]) -> f32 {
    f32::from_bits(values[0][0])
}

/// Of halves each has its own sign; C its magnitude and sign.
#[test]
fn modifiers_of_floats() {
    for name in GPUS {
        let gpu = gpu(name);
        let kinds = ["f16", "f16", "f32"];
        let mut product = numbers(["f16", "f16"], 16, false, [true; 2]);
        product.a = vec![(0..16).map(|k| if k % 2 == 0 { 1 } else { 2 }).collect(); 16];
        product.b = vec![vec![1; 16]; 16];
        product.c = vec![vec![-5; 16]; 16];
        let wave = product.wave(&gpu, kinds, 16, false, false, 0);
        for (mods, expected) in [
            ("", 8 + 16 - 5),
            ("neg_lo:[1,0,0]", 16 - 8 - 5),
            ("neg_hi:[1,0,0]", 8 - 16 - 5),
            ("neg_lo:[0,1,0]", 16 - 8 - 5),
            ("neg_lo:[1,1,0] neg_hi:[0,1,0]", 8 - 16 - 5),
            ("neg_lo:[0,0,1]", 8 + 16 + 5),
            ("neg_hi:[0,0,1]", 8 + 16 + 5),
            ("neg_lo:[0,0,1] neg_hi:[0,0,1]", 8 + 16 - 5),
        ] {
            let code = text(&gpu, "v_wmma_f32_16x16x16_f16", kinds, 16, false, mods);
            let (registers, outcome) = go(gpu, &code, &wave, Timing::Plain);
            assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
            assert_eq!(floats(&registers), expected as f32, "{name} {mods}");
        }
    }
}

#[test]
fn constants_stand_for_every_element_of_c() {
    for name in GPUS {
        let gpu = gpu(name);
        let product = numbers(["f16", "f16"], 16, false, [true; 2]);
        let kinds = ["f16", "f16", "f16"];
        let wave = product.wave(&gpu, kinds, 16, false, false, 0);
        let full = text(&gpu, "v_wmma_f16_16x16x16_f16", kinds, 16, false, "");
        let code = format!("{} 1.0", full.rsplit_once("v[64").expect("C").0);
        let (registers, _) = go(gpu, &code, &wave, Timing::Plain);
        let expected = product.element(0, 0) - product.c[0][0] + 1;
        assert_eq!(registers[0][0] & 0xffff, encode("f16", expected), "{name}");
    }
}

#[test]
fn clamped_integers_stay_at_the_end_of_their_range() {
    for name in GPUS {
        let gpu = gpu(name);
        let kinds = ["iu8", "iu8", "i32"];
        let mut product = numbers(["iu8", "iu8"], 16, false, [false; 2]);
        product.a = vec![vec![255; 16]; 16];
        product.b = vec![vec![255; 16]; 16];
        product.c = vec![vec![i32::MAX - 3; 16]; 16];
        let wave = product.wave(&gpu, kinds, 16, false, false, 0);
        for (mods, expected) in [("clamp", i32::MAX), ("", (i32::MAX - 3).wrapping_add(255 * 255 * 16))] {
            let code = text(&gpu, "v_wmma_i32_16x16x16_iu8", kinds, 16, false, mods);
            let (registers, _) = go(gpu, &code, &wave, Timing::Plain);
            assert_eq!(registers[0][0] as i32, expected, "{name} {mods}");
        }
    }
}

/// A sparse product is clamped when half of it has been added, too.
#[test]
fn sparse_integers_are_clamped_twice() {
    for name in ["gfx1200", "gfx1200+wavefrontsize64"] {
        let gpu = gpu(name);
        let kinds = ["iu8", "iu8", "i32"];
        let mut product = numbers(["iu8", "iu8"], 32, true, [true; 2]);
        // The first eight of A's elements in a row go beyond the end, the others come back.
        product.a = vec![(0..16).map(|at| if at < 8 { 100 } else { -50 }).collect(); 16];
        product.b = vec![vec![100; 16]; 32];
        product.c = vec![vec![i32::MAX; 16]; 16];
        let wave = product.wave(&gpu, kinds, 32, true, false, 0);
        for (mods, expected) in [
            ("neg_lo:[1,1,0] clamp", i32::MAX - 8 * 50 * 100),
            ("neg_lo:[1,1,0]", i32::MAX.wrapping_add(8 * 50 * 100)),
        ] {
            let code = text(&gpu, "v_swmmac_i32_16x16x32_iu8", kinds, 32, true, mods);
            let (registers, _) = go(gpu, &code, &wave, Timing::Plain);
            assert_eq!(registers[0][0] as i32, expected, "{name} {mods}");
        }
    }
}

/// What is not known of a row of A or a column of B is not known of that row or column of the result, and of no other.
#[test]
fn unknown_elements_spread_along_rows_and_columns() {
    let gpu = gpu("gfx1200");
    let product = numbers(["f16", "f16"], 16, false, [true; 2]);
    let kinds = ["f16", "f16", "f32"];
    let wave = product.wave(&gpu, kinds, 16, false, false, 0);
    let code = text(&gpu, "v_wmma_f32_16x16x16_f16", kinds, 16, false, "");
    // Lane 3 of A is row 3: register 3 of lanes 0 to 15.
    let unknown =
        |which: usize| format!("s_mov_b32 exec_lo, 8\nv_mov_b32 v{which}, v120\ns_mov_b32 exec_lo, -1\n");
    let stored = |prefix: &str, exec: &str, n: usize| {
        let tail = format!("\ns_mov_b32 exec_lo, {exec}\nglobal_store_b32 v1, v{}, s[6:7]\ns_endpgm", D + n);
        let code = format!("{}{code}{tail}", prefix);
        go(gpu, &code, &wave, Timing::Adversarial { seed: 5 }).1
    };
    let missing = |outcome: &Outcome| {
        outcome.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Stored(_, Missing::Uninitialised)))
    };
    assert!(!missing(&stored("", "-1", 3)));
    let row = unknown(A);
    assert!(missing(&stored(&row, "1", 3)), "row 3");
    assert!(!missing(&stored(&row, "-1", 2)), "row 2");
    assert!(!missing(&stored(&row, "0x10000", 3)), "row 11");
    let column = unknown(B);
    assert!(missing(&stored(&column, "8", 0)) && missing(&stored(&column, "0x80000", 7)), "column 3");
    assert!(!missing(&stored(&column, "4", 0)), "column 2");
}

#[test]
fn what_no_manual_defines_is_reported() {
    let undefined = |outcome: &Outcome| -> Vec<&'static str> {
        outcome
            .faults
            .iter()
            .filter_map(|fault| if let FaultKind::Undefined(what) = fault.kind { Some(what) } else { None })
            .collect()
    };
    // Lanes disabled.
    for name in ["gfx1100", "gfx1200"] {
        let gpu = gpu(name);
        let product = numbers(["f16", "f16"], 16, false, [true; 2]);
        let kinds = ["f16", "f16", "f32"];
        let wave = product.wave(&gpu, kinds, 16, false, false, 0);
        let plain = text(&gpu, "v_wmma_f32_16x16x16_f16", kinds, 16, false, "");
        let code = format!("s_mov_b32 exec_lo, 0xffff\n{plain}\ns_mov_b32 exec_lo, -1");
        let (_, outcome) = go(gpu, &code, &wave, Timing::Plain);
        assert_eq!(undefined(&outcome).len(), 1, "{name}");
    }
    // Copies that differ.
    let eleven = gpu("gfx1100");
    let kinds = ["f16", "f16", "f32"];
    let product = numbers(["f16", "f16"], 16, false, [true; 2]);
    let mut wave = product.wave(&eleven, kinds, 16, false, false, 0);
    wave.v[A][17] ^= 1;
    let code = text(&eleven, "v_wmma_f32_16x16x16_f16", kinds, 16, false, "");
    assert_eq!(undefined(&go(eleven, &code, &wave, Timing::Plain).1).len(), 1);
    // Indices that do not rise.
    let twelve = gpu("gfx1200");
    let product = numbers(["f16", "f16"], 32, true, [true; 2]);
    let mut wave = product.wave(&twelve, kinds, 32, true, false, 0);
    wave.v[INDEX][0] = 0;
    let code = text(&twelve, "v_swmmac_f32_16x16x32_f16", kinds, 32, true, "");
    assert_eq!(undefined(&go(twelve, &code, &wave, Timing::Plain).1).len(), 1);
}
