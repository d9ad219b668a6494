//! Random programs with products of matrices of CDNA, and what they give in whole numbers.
//!
//! Every element is small enough that no sum is rounded. Where elements lie in registers is from AMD's manuals, written down
//! here a second time: the emulator has no part in it.

use super::super::fold_vectors::Random;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Lanes of the one wave.
pub const LANES: usize = 64;
/// Words of a lane in both buffers.
const WORDS: usize = 12;
/// Words that a lane loads: the first ones. What all variables hold at last is stored after them.
const LOADED: usize = 4;
/// Where a lane stores elements on its way.
const STORED: usize = 8;
/// Variables that are integers.
const INTEGERS: usize = 6;
/// No element of floating point may come to this.
const MOST: i64 = 1 << 22;

/// What the elements of factors are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Factor {
    F32,
    Xf32,
    F16,
    Bf16,
    I8,
    F64,
}

/// A product: the end of its intrinsic's name, rows and columns, depth, blocks, factors and how many a lane has; first and last GPUs.
struct Shape {
    name: &'static str,
    size: usize,
    depth: usize,
    blocks: usize,
    factor: Factor,
    held: usize,
    gpus: (Gfx, Gfx),
}

const fn shape(
    name: &'static str,
    [size, depth, blocks]: [usize; 3],
    factor: Factor,
    held: usize,
    gpus: (Gfx, Gfx),
) -> Shape {
    Shape { name, size, depth, blocks, factor, held, gpus }
}

const ALL: (Gfx, Gfx) = (Gfx::Gfx908, Gfx::Gfx950);
const OLD: (Gfx, Gfx) = (Gfx::Gfx908, Gfx::Gfx90a);
const SINCE_90A: (Gfx, Gfx) = (Gfx::Gfx90a, Gfx::Gfx950);
const SINCE_940: (Gfx, Gfx) = (Gfx::Gfx940, Gfx::Gfx950);
const ONLY_940: (Gfx, Gfx) = (Gfx::Gfx940, Gfx::Gfx940);
const ONLY_950: (Gfx, Gfx) = (Gfx::Gfx950, Gfx::Gfx950);

const SHAPES: &[Shape] = &[
    shape("f32.32x32x1f32", [32, 1, 2], Factor::F32, 1, ALL),
    shape("f32.16x16x1f32", [16, 1, 4], Factor::F32, 1, ALL),
    shape("f32.4x4x1f32", [4, 1, 16], Factor::F32, 1, ALL),
    shape("f32.32x32x2f32", [32, 2, 1], Factor::F32, 1, ALL),
    shape("f32.16x16x4f32", [16, 4, 1], Factor::F32, 1, ALL),
    shape("f32.32x32x4f16", [32, 4, 2], Factor::F16, 4, ALL),
    shape("f32.16x16x4f16", [16, 4, 4], Factor::F16, 4, ALL),
    shape("f32.4x4x4f16", [4, 4, 16], Factor::F16, 4, ALL),
    shape("f32.32x32x8f16", [32, 8, 1], Factor::F16, 4, ALL),
    shape("f32.16x16x16f16", [16, 16, 1], Factor::F16, 4, ALL),
    shape("f32.16x16x2bf16", [16, 2, 4], Factor::Bf16, 2, OLD),
    shape("f32.32x32x4bf16", [32, 4, 1], Factor::Bf16, 2, OLD),
    shape("f32.16x16x8bf16", [16, 8, 1], Factor::Bf16, 2, OLD),
    shape("f32.4x4x4bf16.1k", [4, 4, 16], Factor::Bf16, 4, SINCE_90A),
    shape("f32.32x32x8bf16.1k", [32, 8, 1], Factor::Bf16, 4, SINCE_90A),
    shape("f32.16x16x16bf16.1k", [16, 16, 1], Factor::Bf16, 4, SINCE_90A),
    shape("i32.32x32x4i8", [32, 4, 2], Factor::I8, 4, ALL),
    shape("i32.16x16x4i8", [16, 4, 4], Factor::I8, 4, ALL),
    shape("i32.4x4x4i8", [4, 4, 16], Factor::I8, 4, ALL),
    shape("i32.32x32x8i8", [32, 8, 1], Factor::I8, 4, OLD),
    shape("i32.16x16x16i8", [16, 16, 1], Factor::I8, 4, OLD),
    shape("i32.32x32x16.i8", [32, 16, 1], Factor::I8, 8, SINCE_940),
    shape("i32.16x16x32.i8", [16, 32, 1], Factor::I8, 8, SINCE_940),
    shape("f32.16x16x8.xf32", [16, 8, 1], Factor::Xf32, 2, ONLY_940),
    shape("f32.32x32x4.xf32", [32, 4, 1], Factor::Xf32, 2, ONLY_940),
    shape("f64.16x16x4f64", [16, 4, 1], Factor::F64, 1, SINCE_90A),
    shape("f64.4x4x4f64", [4, 4, 4], Factor::F64, 1, SINCE_90A),
    shape("f32.16x16x32.f16", [16, 32, 1], Factor::F16, 8, ONLY_950),
    shape("f32.32x32x16.f16", [32, 16, 1], Factor::F16, 8, ONLY_950),
    shape("i32.16x16x64.i8", [16, 64, 1], Factor::I8, 16, ONLY_950),
    shape("i32.32x32x32.i8", [32, 32, 1], Factor::I8, 16, ONLY_950),
];

impl Shape {
    /// Elements of the result that a lane has.
    fn results(&self) -> usize {
        self.size * self.size * self.blocks / LANES
    }

    /// Block, row and column of an element of the result.
    fn place(&self, lane: usize, element: usize) -> [usize; 3] {
        let column = lane % self.size;
        match (self.size, self.factor) {
            (16, Factor::F64) => [0, 4 * element + lane / 16, column],
            (_, Factor::F64) => [lane / 4 % 4, lane / 16, column],
            (32, _) => [element / 16, element % 16 / 4 * 8 + lane / 32 * 4 + element % 4, column],
            (16, _) => [element / 4, lane / 16 * 4 + element % 4, column],
            _ => [lane / 4, element, column],
        }
    }

    /// The element of a factor at a row (of the second factor: a column) and depth of a block.
    fn factor(&self, words: &[u32; LANES], block: usize, row: usize, depth: usize) -> i64 {
        let lane = row + self.size * (block + self.blocks * (depth / self.held));
        self.element(words[lane], depth % self.held)
    }

    /// The element that a lane's integer makes.
    fn element(&self, word: u32, number: usize) -> i64 {
        match self.factor {
            Factor::I8 => i64::from(word >> WORD_SHIFTS[number / 4] >> (8 * (number % 4)) & 7),
            _ => i64::from(word >> (3 * number) & 7),
        }
    }

    /// The type of the results in LLVM's language: of one element, and of all.
    fn types(&self) -> (&'static str, String) {
        let one = match self.factor {
            Factor::I8 => "i32",
            Factor::F64 => "double",
            _ => "float",
        };
        let all = if self.results() == 1 { one.to_owned() } else { format!("<{} x {one}>", self.results()) };
        (one, all)
    }

    /// The type of a factor.
    fn operand(&self) -> String {
        match (self.factor, self.held) {
            (Factor::F32, _) => "float".into(),
            (Factor::F64, _) => "double".into(),
            (Factor::Xf32, n) => format!("<{n} x float>"),
            (Factor::F16, n) => format!("<{n} x half>"),
            (Factor::Bf16, n) => format!("<{n} x i16>"),
            (Factor::I8, 4) => "i32".into(),
            (Factor::I8, 8) => "i64".into(),
            (Factor::I8, n) => format!("<{} x i32>", n / 4),
        }
    }
}

/// How far an integer is shifted for each four bytes that it makes.
const WORD_SHIFTS: [usize; 4] = [0, 3, 1, 4];

/// What an accumulator starts from in a product.
#[derive(Clone, Copy)]
enum Addend {
    Own,
    Other(usize),
    Constant(i64),
}

/// A statement; integers and accumulators by number.
enum Statement {
    /// An operation of [`OPERATIONS`] on three integers, with a constant.
    Compute {
        to: usize,
        operation: usize,
        from: [usize; 3],
        constant: u32,
    },
    /// Of a lane whose number differs in these bits, through LDS.
    Exchange {
        to: usize,
        from: usize,
        bits: usize,
    },
    /// Of the lane that another integer says.
    Permute {
        to: usize,
        from: usize,
        lane: usize,
    },
    /// Of the first lane.
    First {
        to: usize,
        from: usize,
    },
    Load {
        to: usize,
        word: usize,
    },
    Product {
        to: usize,
        factors: [usize; 2],
        addend: Addend,
    },
    /// One element as an integer.
    Take {
        to: usize,
        accumulator: usize,
        element: usize,
    },
    /// One element from the low bits of an integer.
    Put {
        accumulator: usize,
        element: usize,
        from: usize,
    },
    Sum {
        to: usize,
        other: usize,
    },
    /// Four words of an accumulator, as they are.
    Store {
        accumulator: usize,
        first: usize,
    },
    /// As often as the low bits of a word that all lanes load say, and once more.
    Repeat {
        word: usize,
        body: Vec<Statement>,
    },
}

/// Operations on integers: what they are in LLVM's language (`$a`, `$b`, `$c`, `$k`; `%%` starts a local name), and their value.
type Operation = (&'static str, fn(u32, u32, u32, u32) -> u32);
const OPERATIONS: &[Operation] = &[
    ("add i32 $a, $b", |a, b, _, _| a.wrapping_add(b)),
    ("sub i32 $a, $b", |a, b, _, _| a.wrapping_sub(b)),
    ("mul i32 $a, $b", |a, b, _, _| a.wrapping_mul(b)),
    ("xor i32 $a, $b", |a, b, _, _| a ^ b),
    ("and i32 $a, $b", |a, b, _, _| a & b),
    ("or i32 $a, $b", |a, b, _, _| a | b),
    ("%%m = mul i32 $a, $k; add i32 %%m, $b", |a, b, _, k| a.wrapping_mul(k).wrapping_add(b)),
    ("%%s = and i32 $k, 31; lshr i32 $a, %%s", |a, _, _, k| a >> (k & 31)),
    ("%%s = and i32 $b, 31; shl i32 $a, %%s", |a, b, _, _| a << (b & 31)),
    ("%%x = icmp ult i32 $a, $b; select i1 %%x, i32 $c, i32 $a", |a, b, c, _| if a < b { c } else { a }),
    (
        "%%x = icmp slt i32 $a, $k; %%y = icmp eq i32 $b, $c; %%z = xor i1 %%x, %%y; select i1 %%z, i32 $b, i32 $a",
        |a, b, c, k| if ((a as i32) < k as i32) != (b == c) { b } else { a },
    ),
    (
        "%%a = zext i32 $a to i64; %%b = zext i32 $b to i64; %%c = zext i32 $c to i64; %%h = shl i64 %%c, 32; \
         %%l = or i64 %%h, %%b; %%g = shl i64 %%a, 32; %%k = or i64 %%g, $k; %%s = add i64 %%l, %%k; \
         %%t = lshr i64 %%s, 32; trunc i64 %%t to i32",
        |a, b, c, k| {
            let sum = (u64::from(c) << 32 | u64::from(b)).wrapping_add(u64::from(a) << 32 | u64::from(k));
            (sum >> 32) as u32
        },
    ),
    ("call i32 @llvm.umin.i32(i32 $a, i32 $b)", |a, b, _, _| a.min(b)),
    ("call i32 @llvm.ctpop.i32(i32 $a)", |a, _, _, _| a.count_ones()),
    ("call i32 @llvm.fshl.i32(i32 $a, i32 $b, i32 $k)", |a, b, _, k| {
        ((u64::from(a) << 32 | u64::from(b)) << (k & 31) >> 32) as u32
    }),
    (
        "%%p = and i32 $a, 65535; %%f = uitofp i32 %%p to float; %%g = fmul float %%f, 0.25; %%h = fadd float %%g, 3.0; \
         bitcast float %%h to i32",
        |a, _, _, _| ((a & 0xffff) as f32).mul_add(0.25, 3.0).to_bits(),
    ),
];

/// A program.
pub struct Program {
    shapes: Vec<&'static Shape>,
    statements: Vec<Statement>,
}

/// What variables hold, lane by lane.
struct State {
    integers: [[u32; LANES]; INTEGERS],
    accumulators: Vec<Vec<[i64; LANES]>>,
    /// The buffer that is written.
    out: Vec<u32>,
}

/// What buffers hold at first.
pub fn inputs(seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed ^ 0x3a7);
    (0..LANES * WORDS).map(|_| random.below(1 << 32) as u32).collect()
}

impl Program {
    /// A program for a GPU, and the words that the second buffer must hold at last.
    pub fn new(gpu: &Gpu, seed: u64, inputs: &[u32]) -> (Program, Vec<u32>) {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        loop {
            let program = Program::random(gpu, &mut random);
            if let Some(words) = program.result(inputs) {
                return (program, words);
            }
        }
    }

    fn random(gpu: &Gpu, random: &mut Random) -> Program {
        let generation = gpu.generation();
        let known: Vec<&Shape> =
            SHAPES.iter().filter(|s| (s.gpus.0..=s.gpus.1).contains(&generation)).collect();
        let shapes: Vec<&Shape> =
            (0..1 + random.below(3)).map(|_| known[random.below(known.len() as u64) as usize]).collect();
        let count = 6 + random.below(14);
        let mut statements: Vec<Statement> = Vec::new();
        for _ in 0..count {
            if random.below(8) == 0 {
                let body = (0..2 + random.below(4)).map(|_| statement(&shapes, random, true)).collect();
                statements.push(Statement::Repeat { word: random.below(64) as usize, body });
            } else {
                statements.push(statement(&shapes, random, false));
            }
        }
        Program { shapes, statements }
    }

    /// The words of the second buffer; none if a number becomes too great.
    fn result(&self, inputs: &[u32]) -> Option<Vec<u32>> {
        let mut state = State {
            integers: std::array::from_fn(|n| std::array::from_fn(|lane| start(inputs, lane, n))),
            accumulators: self.shapes.iter().map(|shape| vec![[0; LANES]; shape.results()]).collect(),
            out: inputs.to_vec(),
        };
        self.execute(&self.statements, &mut state, inputs)?;
        for lane in 0..LANES {
            let mut mixed = [0u32; LOADED];
            for (n, integer) in state.integers.iter().enumerate() {
                mixed[n % LOADED] = mixed[n % LOADED].wrapping_mul(31) ^ integer[lane];
            }
            for accumulator in &state.accumulators {
                for (n, element) in accumulator.iter().enumerate() {
                    mixed[n % LOADED] = mixed[n % LOADED].wrapping_mul(31) ^ element[lane] as u32;
                }
            }
            state.out[lane * WORDS + LOADED..][..LOADED].copy_from_slice(&mixed);
        }
        Some(state.out)
    }

    fn execute(&self, statements: &[Statement], state: &mut State, inputs: &[u32]) -> Option<()> {
        for statement in statements {
            match *statement {
                Statement::Compute { to, operation, from, constant } => {
                    let [a, b, c] = from.map(|n| state.integers[n]);
                    state.integers[to] =
                        std::array::from_fn(|l| OPERATIONS[operation].1(a[l], b[l], c[l], constant));
                }
                Statement::Exchange { to, from, bits } => {
                    let from = state.integers[from];
                    state.integers[to] = std::array::from_fn(|lane| from[lane ^ bits]);
                }
                Statement::Permute { to, from, lane } => {
                    let (from, which) = (state.integers[from], state.integers[lane]);
                    state.integers[to] = std::array::from_fn(|lane| from[which[lane] as usize % LANES]);
                }
                Statement::First { to, from } => state.integers[to] = [state.integers[from][0]; LANES],
                Statement::Load { to, word } => {
                    state.integers[to] = std::array::from_fn(|lane| inputs[lane * WORDS + word]);
                }
                Statement::Product { to, factors: [a, b], addend } => {
                    let shape = self.shapes[to];
                    let (a, b) = (state.integers[a], state.integers[b]);
                    let addend = match addend {
                        Addend::Own => state.accumulators[to].clone(),
                        Addend::Other(other) => state.accumulators[other].clone(),
                        Addend::Constant(value) => vec![[value; LANES]; shape.results()],
                    };
                    for (element, addends) in addend.iter().enumerate() {
                        for (lane, before) in addends.iter().enumerate() {
                            let [block, row, column] = shape.place(lane, element);
                            let terms = (0..shape.depth).map(|k| {
                                shape.factor(&a, block, row, k) * shape.factor(&b, block, column, k)
                            });
                            state.accumulators[to][element][lane] = before + terms.sum::<i64>();
                        }
                    }
                }
                Statement::Take { to, accumulator, element } => {
                    state.integers[to] = state.accumulators[accumulator][element].map(|x| x as u32);
                }
                Statement::Put { accumulator, element, from } => {
                    state.accumulators[accumulator][element] = state.integers[from].map(|x| i64::from(x & 7));
                }
                Statement::Sum { to, other } => {
                    let other = state.accumulators[other].clone();
                    let all = state.accumulators[to].iter_mut().flatten();
                    all.zip(other.iter().flatten()).for_each(|(sum, term)| *sum += term);
                }
                Statement::Store { accumulator, first } => {
                    let shape = self.shapes[accumulator];
                    for lane in 0..LANES {
                        let elements = state.accumulators[accumulator].iter().skip(first);
                        let words = elements.flat_map(|element| as_words(shape, element[lane]));
                        let at = lane * WORDS + STORED;
                        state.out[at..].iter_mut().zip(words.take(4)).for_each(|(to, word)| *to = word);
                    }
                }
                Statement::Repeat { word, ref body } => {
                    for _ in 0..=inputs[word] & 3 {
                        self.execute(body, state, inputs)?;
                    }
                }
            }
            for (shape, accumulator) in self.shapes.iter().zip(&mut state.accumulators) {
                let all = accumulator.iter_mut().flatten();
                match shape.factor {
                    Factor::I8 => all.for_each(|element| *element = i64::from(*element as i32)),
                    _ => all.map(|element| (element.abs() < MOST).then_some(())).collect::<Option<()>>()?,
                }
            }
        }
        Some(())
    }

    /// The text of kernel `k`, whose arguments are the two buffers.
    pub fn device(&self) -> String {
        let mut text = Text {
            code: String::new(),
            integers: Default::default(),
            accumulators: self.shapes.iter().map(|_| "zeroinitializer".to_owned()).collect(),
            next: 0,
            shared: 0,
            block: "entry".into(),
        };
        for (number, shape) in self.shapes.iter().enumerate() {
            if shape.results() == 1 {
                text.accumulators[number] = "0.0".into();
            }
        }
        for n in 0..INTEGERS {
            text.integers[n] = match n {
                0 => "%t".into(),
                _ => text.load(&format!("%w{}", (n - 1) % LOADED)),
            };
        }
        for statement in &self.statements {
            text.statement(&self.shapes, statement);
        }
        text.end(&self.shapes);
        let arrays: String = (0..text.shared)
            .map(|n| format!("@s{n} = internal addrspace(3) global [{LANES} x i32] poison\n"))
            .collect();
        let mut places = String::new();
        for n in 0..WORDS {
            _ = writeln!(places, "%o{n} = getelementptr i32, ptr addrspace(1) %own, i64 {n}");
        }
        for n in 0..LOADED {
            _ = writeln!(places, "%w{n} = getelementptr i32, ptr addrspace(1) %given, i64 {n}");
        }
        format!(
            "target triple = \"amdgcn-amd-amdhsa\"\n{arrays}\
             define amdgpu_kernel void @k(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) #0 {{\nentry:\n\
             %t = call i32 @llvm.amdgcn.workitem.id.x()\n%t64 = zext i32 %t to i64\n%first = mul i64 %t64, {WORDS}\n\
             %given = getelementptr i32, ptr addrspace(1) %in, i64 %first\n%own = getelementptr i32, ptr addrspace(1) %out, i64 %first\n\
             {places}{}ret void\n}}\n\
             attributes #0 = {{ \"amdgpu-flat-work-group-size\"=\"{LANES},{LANES}\" \"denormal-fp-math-f32\"=\"ieee,ieee\" \"uniform-work-group-size\"=\"true\" }}\n\
             !llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !\"amdhsa_code_object_version\", i32 500}}\n",
            text.code
        )
    }
}

/// What an integer is at first.
fn start(inputs: &[u32], lane: usize, number: usize) -> u32 {
    if number == 0 { lane as u32 } else { inputs[lane * WORDS + (number - 1) % LOADED] }
}

/// The bits of an element.
fn as_words(shape: &Shape, element: i64) -> Vec<u32> {
    match shape.factor {
        Factor::I8 => vec![element as u32],
        Factor::F64 => {
            let bits = (element as f64).to_bits();
            vec![bits as u32, (bits >> 32) as u32]
        }
        _ => vec![(element as f32).to_bits()],
    }
}

/// A statement. `repeated`: of a loop.
fn statement(shapes: &[&'static Shape], random: &mut Random, repeated: bool) -> Statement {
    let mut below = |n: usize| random.below(n as u64) as usize;
    let (to, from) = (below(INTEGERS), below(INTEGERS));
    let accumulator = below(shapes.len());
    let shape = shapes[accumulator];
    let alike = |other: &usize| shapes[*other].types() == shape.types();
    let element = below(shape.results());
    match below(16) {
        0..5 => {
            let addend = match below(8) {
                0 => Addend::Constant(0),
                1 => Addend::Constant([1, 2, 5, 17][below(4)]),
                2 => Addend::Other((0..shapes.len()).rev().find(alike).unwrap_or(accumulator)),
                _ => Addend::Own,
            };
            Statement::Product { to: accumulator, factors: [from, below(INTEGERS)], addend }
        }
        5 | 6 => Statement::Take { to, accumulator, element },
        7 => Statement::Put { accumulator, element, from },
        8 if !repeated => {
            Statement::Sum { to: accumulator, other: (0..shapes.len()).find(alike).unwrap_or(accumulator) }
        }
        9 => Statement::Exchange { to, from, bits: 1 + below(LANES - 1) },
        10 => match below(3) {
            0 => Statement::First { to, from },
            1 => Statement::Permute { to, from, lane: below(INTEGERS) },
            _ => Statement::Load { to, word: below(LOADED) },
        },
        11 if shape.results() > 1 => {
            let words = if shape.factor == Factor::F64 { 2 } else { 4 };
            let first = below(shape.results() / words) * words;
            Statement::Store { accumulator, first }
        }
        _ => Statement::Compute {
            to,
            operation: below(OPERATIONS.len()),
            from: [from, below(INTEGERS), below(INTEGERS)],
            constant: below(1 << 31) as u32,
        },
    }
}

/// Variables that statements set: integers, accumulators.
fn set_by(statements: &[Statement]) -> [BTreeSet<usize>; 2] {
    let mut set: [BTreeSet<usize>; 2] = Default::default();
    for statement in statements {
        match *statement {
            Statement::Compute { to, .. }
            | Statement::Exchange { to, .. }
            | Statement::Permute { to, .. }
            | Statement::First { to, .. }
            | Statement::Load { to, .. }
            | Statement::Take { to, .. } => _ = set[0].insert(to),
            Statement::Product { to, .. } | Statement::Sum { to, .. } => _ = set[1].insert(to),
            Statement::Put { accumulator, .. } => _ = set[1].insert(accumulator),
            Statement::Store { .. } => {}
            Statement::Repeat { ref body, .. } => {
                set.iter_mut().zip(set_by(body)).for_each(|(all, more)| all.extend(more));
            }
        }
    }
    set
}

/// A function that is being written.
struct Text {
    code: String,
    /// The names of what variables hold.
    integers: [String; INTEGERS],
    accumulators: Vec<String>,
    next: usize,
    /// Arrays in LDS.
    shared: usize,
    /// The block that is being written.
    block: String,
}

impl Text {
    /// Adds a value and gives its name.
    fn value(&mut self, code: &str) -> String {
        self.next += 1;
        let name = format!("%n{}", self.next);
        _ = writeln!(self.code, "{name} = {code}");
        name
    }

    fn line(&mut self, line: &str) {
        _ = writeln!(self.code, "{line}");
    }

    fn load(&mut self, place: &str) -> String {
        self.value(&format!("load i32, ptr addrspace(1) {place}"))
    }

    fn barrier(&mut self) {
        self.line("fence syncscope(\"workgroup\") release");
        self.line("call void @llvm.amdgcn.s.barrier()");
        self.line("fence syncscope(\"workgroup\") acquire");
    }

    fn statement(&mut self, shapes: &[&Shape], statement: &Statement) {
        match *statement {
            Statement::Compute { to, operation, from, constant } => {
                self.next += 1;
                let mut code = OPERATIONS[operation].0.replace("%%", &format!("%m{}.", self.next));
                for (name, from) in ["$a", "$b", "$c"].iter().zip(from) {
                    code = code.replace(name, &self.integers[from]);
                }
                code = code.replace("$k", &constant.to_string());
                let mut statements: Vec<&str> = code.split("; ").collect();
                let last = statements.pop().unwrap_or_default();
                statements.iter().for_each(|statement| self.line(statement));
                self.integers[to] = self.value(last);
            }
            Statement::Exchange { to, from, bits } => {
                let array = self.shared;
                self.shared += 1;
                let place = |lane: &str| {
                    format!("getelementptr [{LANES} x i32], ptr addrspace(3) @s{array}, i32 0, i32 {lane}")
                };
                let own = self.value(&place("%t"));
                self.barrier();
                self.line(&format!("store i32 {}, ptr addrspace(3) {own}", self.integers[from]));
                self.barrier();
                let other = self.value(&format!("xor i32 %t, {bits}"));
                let other = self.value(&place(&other));
                self.integers[to] = self.value(&format!("load i32, ptr addrspace(3) {other}"));
            }
            Statement::Permute { to, from, lane } => {
                let lane = self.value(&format!("shl i32 {}, 2", self.integers[lane]));
                let call =
                    format!("call i32 @llvm.amdgcn.ds.bpermute(i32 {lane}, i32 {})", self.integers[from]);
                self.integers[to] = self.value(&call);
            }
            Statement::First { to, from } => {
                let call = format!("call i32 @llvm.amdgcn.readfirstlane.i32(i32 {})", self.integers[from]);
                self.integers[to] = self.value(&call);
            }
            Statement::Load { to, word } => self.integers[to] = self.load(&format!("%w{word}")),
            Statement::Product { to, factors, addend } => {
                let shape = shapes[to];
                let [a, b] = factors.map(|n| self.integers[n].clone()).map(|word| self.operand(shape, &word));
                let (operand, (one, all)) = (shape.operand(), shape.types());
                let addend = match addend {
                    Addend::Own => self.accumulators[to].clone(),
                    Addend::Other(other) => self.accumulators[other].clone(),
                    Addend::Constant(value) => {
                        let value = if one == "i32" { value.to_string() } else { format!("{value}.0") };
                        let values = vec![format!("{one} {value}"); shape.results()];
                        if shape.results() == 1 { value } else { format!("<{}>", values.join(", ")) }
                    }
                };
                self.accumulators[to] = self.value(&format!(
                    "call {all} @llvm.amdgcn.mfma.{}({operand} {a}, {operand} {b}, {all} {addend}, i32 0, i32 0, i32 0)",
                    shape.name
                ));
            }
            Statement::Take { to, accumulator, element } => {
                self.integers[to] = self.integer(shapes[accumulator], accumulator, element);
            }
            Statement::Put { accumulator, element, from } => {
                let (one, all) = shapes[accumulator].types();
                let small = self.value(&format!("and i32 {}, 7", self.integers[from]));
                let small =
                    if one == "i32" { small } else { self.value(&format!("uitofp i32 {small} to {one}")) };
                let old = self.accumulators[accumulator].clone();
                self.accumulators[accumulator] = if shapes[accumulator].results() == 1 {
                    small
                } else {
                    self.value(&format!("insertelement {all} {old}, {one} {small}, i32 {element}"))
                };
            }
            Statement::Sum { to, other } => {
                let (one, all) = shapes[to].types();
                let add = if one == "i32" { "add" } else { "fadd" };
                let [a, b] = [to, other].map(|n| self.accumulators[n].clone());
                self.accumulators[to] = self.value(&format!("{add} {all} {a}, {b}"));
            }
            Statement::Store { accumulator, first } => {
                let shape = shapes[accumulator];
                let (one, all) = shape.types();
                let words = if one == "double" { 2 } else { 4 };
                let numbers: Vec<String> =
                    (first..first + words).map(|element| format!("i32 {element}")).collect();
                let some = self.value(&format!(
                    "shufflevector {all} {}, {all} poison, <{words} x i32> <{}>",
                    self.accumulators[accumulator],
                    numbers.join(", ")
                ));
                self.line(&format!("store <{words} x {one}> {some}, ptr addrspace(1) %o{STORED}, align 16"));
            }
            Statement::Repeat { word, ref body } => self.repeat(shapes, word, body),
        }
    }

    fn repeat(&mut self, shapes: &[&Shape], word: usize, body: &[Statement]) {
        self.next += 1;
        let n = self.next;
        self.line(&format!("%count{n} = getelementptr i32, ptr addrspace(1) %in, i64 {word}"));
        let count = self.load(&format!("%count{n}"));
        self.line(&format!("%last{n} = and i32 {count}, 3\nbr label %loop{n}\nloop{n}:"));
        let before = std::mem::replace(&mut self.block, format!("loop{n}"));
        let [integers, accumulators] = set_by(body);
        let mut heads: Vec<(String, String, String)> = Vec::new();
        for &at in &integers {
            let name = format!("%i{n}.{at}");
            heads.push(("i32".into(), name.clone(), std::mem::replace(&mut self.integers[at], name)));
        }
        for &at in &accumulators {
            let name = format!("%a{n}.{at}");
            let old = std::mem::replace(&mut self.accumulators[at], name.clone());
            heads.push((shapes[at].types().1, name, old));
        }
        // The end of the loop is not known yet.
        let place = self.code.len();
        body.iter().for_each(|statement| self.statement(shapes, statement));
        let ends = integers.iter().map(|at| &self.integers[*at]);
        let ends = ends.chain(accumulators.iter().map(|at| &self.accumulators[*at]));
        let mut phis = format!("%j{n} = phi i32 [ 0, %{before} ], [ %k{n}, %{} ]\n", self.block);
        for ((ty, name, old), end) in heads.iter().zip(ends) {
            _ = writeln!(phis, "{name} = phi {ty} [ {old}, %{before} ], [ {end}, %{} ]", self.block);
        }
        self.code.insert_str(place, &phis);
        self.line(&format!(
            "%k{n} = add i32 %j{n}, 1\n%again{n} = icmp ult i32 %j{n}, %last{n}\nbr i1 %again{n}, label %loop{n}, label %done{n}\ndone{n}:"
        ));
        self.block = format!("done{n}");
    }

    /// The factor that an integer makes.
    fn operand(&mut self, shape: &Shape, word: &str) -> String {
        if shape.factor == Factor::I8 {
            let words: Vec<String> = WORD_SHIFTS[..shape.held / 4]
                .iter()
                .map(|shift| {
                    let shifted = self.value(&format!("lshr i32 {word}, {shift}"));
                    self.value(&format!("and i32 {shifted}, {}", 0x0707_0707))
                })
                .collect();
            return match &words[..] {
                [one] => one.clone(),
                [low, high] => {
                    let [low, high] = [low, high].map(|word| self.value(&format!("zext i32 {word} to i64")));
                    let high = self.value(&format!("shl i64 {high}, 32"));
                    self.value(&format!("or i64 {low}, {high}"))
                }
                _ => self.vector("i32", &words),
            };
        }
        let elements: Vec<String> = (0..shape.held)
            .map(|n| {
                let shifted = self.value(&format!("lshr i32 {word}, {}", 3 * n));
                let small = self.value(&format!("and i32 {shifted}, 7"));
                match shape.factor {
                    Factor::F16 => self.value(&format!("uitofp i32 {small} to half")),
                    Factor::F64 => self.value(&format!("uitofp i32 {small} to double")),
                    _ => self.value(&format!("uitofp i32 {small} to float")),
                }
            })
            .collect();
        match shape.factor {
            Factor::F16 => self.vector("half", &elements),
            Factor::Xf32 => self.vector("float", &elements),
            Factor::Bf16 => {
                let upper = |text: &mut Text, element: &String| {
                    let bits = text.value(&format!("bitcast float {element} to i32"));
                    let high = text.value(&format!("lshr i32 {bits}, 16"));
                    text.value(&format!("trunc i32 {high} to i16"))
                };
                let elements: Vec<String> = elements.iter().map(|element| upper(self, element)).collect();
                self.vector("i16", &elements)
            }
            _ => elements.into_iter().next().unwrap_or_default(),
        }
    }

    fn vector(&mut self, ty: &str, elements: &[String]) -> String {
        let all = format!("<{} x {ty}>", elements.len());
        elements.iter().enumerate().fold("poison".to_owned(), |made, (at, element)| {
            self.value(&format!("insertelement {all} {made}, {ty} {element}, i32 {at}"))
        })
    }

    /// An element as an integer.
    fn integer(&mut self, shape: &Shape, accumulator: usize, element: usize) -> String {
        let (one, all) = shape.types();
        let accumulator = self.accumulators[accumulator].clone();
        let element = match shape.results() {
            1 => accumulator,
            _ => self.value(&format!("extractelement {all} {accumulator}, i32 {element}")),
        };
        if one == "i32" { element } else { self.value(&format!("fptosi {one} {element} to i32")) }
    }

    /// Stores everything that variables hold, mixed into four words.
    fn end(&mut self, shapes: &[&Shape]) {
        let mut mixed: [String; LOADED] = std::array::from_fn(|_| "0".to_owned());
        let mut mix = |text: &mut Text, n: usize, word: &str| {
            let product = text.value(&format!("mul i32 {}, 31", mixed[n % LOADED]));
            mixed[n % LOADED] = text.value(&format!("xor i32 {product}, {word}"));
        };
        for n in 0..INTEGERS {
            let word = self.integers[n].clone();
            mix(self, n, &word);
        }
        for (number, shape) in shapes.iter().enumerate() {
            for element in 0..shape.results() {
                let word = self.integer(shape, number, element);
                mix(self, element, &word);
            }
        }
        let all = self.vector("i32", &mixed);
        self.line(&format!("store <4 x i32> {all}, ptr addrspace(1) %o{LOADED}, align 16"));
    }
}
