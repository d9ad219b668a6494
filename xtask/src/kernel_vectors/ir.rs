//! Random programs in LLVM's intermediate language, for the host and for a GPU.
//!
//! A program is two functions of a lane: what the first gives is exchanged between lanes, and the second's result is stored.
//! Left out by construction is what the two sides may do differently: bits of NaNs (only made into numbers after all are made
//! the same), order of zeros in minima, and what LLVM 19 compiles wrongly (see [`KINDS`]).

use super::super::fold_vectors::Random;
use std::fmt::Write as _;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Words of a buffer that lanes have of their own; behind them are those that atomics access.
const OWN: u32 = 64;
/// Words of a buffer.
const WORDS: u32 = 128;

/// What programs of a kind do, and which GPUs run them.
#[derive(Clone, Copy)]
pub struct Kind {
    pub name: &'static str,
    /// Lanes: one workgroup.
    pub lanes: u32,
    /// Has values of 16-bit floats. LLVM 19 keeps excess precision in those of gfx6 and gfx7, which compute with 32 bits.
    half: bool,
    /// Has saturating sums. LLVM 19 loses their clamp on gfx8 where it makes an instruction shorter.
    saturates: bool,
    /// Has atomics, of which LLVM makes scans over the wave that give what one lane after the other would, with DPP: the
    /// workgroup is one wave.
    atomic: bool,
    /// Makes much of bytes and of words of 16 bits.
    small: bool,
}

const PLAIN: Kind =
    Kind { name: "plain", lanes: 64, half: false, saturates: false, atomic: false, small: false };

/// Kinds of programs, in turn.
pub const KINDS: [Kind; 7] = [
    PLAIN,
    Kind { name: "half", half: true, ..PLAIN },
    Kind { name: "small", half: true, small: true, ..PLAIN },
    Kind { name: "atomic", atomic: true, ..PLAIN },
    Kind { name: "saturating", half: true, saturates: true, small: true, ..PLAIN },
    Kind { name: "small", half: true, small: true, ..PLAIN },
    Kind { name: "atomic32", atomic: true, lanes: 32, ..PLAIN },
];

impl Kind {
    /// Whether a GPU runs programs of it.
    pub fn runs_on(&self, gpu: &Gpu) -> bool {
        let generation = gpu.generation();
        let wave = gpu.lanes();
        (!self.half || generation >= Gfx::Gfx8)
            && (!self.saturates || generation >= Gfx::Gfx9)
            && (!self.atomic || wave == self.lanes && generation >= Gfx::Gfx8)
    }
}

/// What buffers hold at first.
pub fn inputs(seed: u64) -> Vec<u32> {
    let mut random = Random::new(seed ^ 0x5eed);
    let edges = [0, 1, u32::MAX, 1 << 31, 0x7f80_0000, 0x3f80_0000, 0x7fc0_0000, 0x8000_7fff];
    let value = |_| match random.below(4) {
        0 => edges[random.below(8) as usize],
        1 => random.below(1 << 16) as u32,
        _ => random.below(1 << 32) as u32,
    };
    (0..WORDS).map(value).collect()
}

/// Types, and the integers of as many bits, how intrinsics call them, and the most a shift may be.
const TYPES: [(&str, &str, &str, &str); 10] = [
    ("i1", "i1", "i1", "0"),
    ("i8", "i8", "i8", "7"),
    ("i16", "i16", "i16", "15"),
    ("i32", "i32", "i32", "31"),
    ("i64", "i64", "i64", "63"),
    ("half", "i16", "f16", ""),
    ("float", "i32", "f32", ""),
    ("double", "i64", "f64", ""),
    ("<2 x half>", "<2 x i16>", "v2f16", ""),
    ("<2 x i16>", "<2 x i16>", "v2i16", "<i16 15, i16 15>"),
];
const I32: usize = 3;
const HALF: usize = 5;
const V2H: usize = 8;
const V2S: usize = 9;

/// What makes values: types of the result, sources (`T`: the result's type), statements. In these `T` is the type, `I` the
/// integer of its size, `U` its name in intrinsics, `W` its greatest shift; `$0` a source, `%%` starts a local name, `?a|b?`
/// is one of several.
const OPS: &[(&str, &str, &str)] = &[
    ("i8 i16 i32 i64 <2xi16>", "T T", "?add|sub|mul|and|or|xor? T $0, $1"),
    ("i8 i16 i32 i64 <2xi16>", "T T", "%%s = and T $1, W; ?shl|lshr|ashr? T $0, %%s"),
    ("i16 i32 i64", "T", "call T @llvm.?ctpop|bswap|bitreverse?.U(T $0)"),
    ("i16 i32 i64", "T", "call T @llvm.?ctlz|cttz|abs?.U(T $0, i1 false)"),
    ("i16 i32 i64 <2xi16>", "T T", "call T @llvm.?umin|umax|smin|smax?.U(T $0, T $1)"),
    ("i16 i32", "T T T", "%%a = call T @llvm.smax.U(T $0, T $1); call T @llvm.smin.U(T %%a, T $2)"),
    ("i16 i32 i64", "T T T", "call T @llvm.?fshl|fshr?.U(T $0, T $1, T $2)"),
    ("i8 i16 i32 i64 half float double <2xhalf> <2xi16>", "i1 T T", "select i1 $0, T $1, T $2"),
    // Not of a sign-extended small number: LLVM 19 divides it as if it had 24 bits.
    ("i32", "T T", "%%a = or T $1, 1; %%b = xor T $0, 305419896; ?udiv|urem? T %%b, %%a"),
    ("i32 i64", "T T", "%%a = and T $1, 32767; %%b = or T %%a, 1; ?sdiv|srem? T $0, %%b"),
    (
        "i32",
        "i32 i32",
        "%%a = zext i32 $0 to i64; %%b = zext i32 $1 to i64; %%c = mul i64 %%a, %%b; %%d = lshr i64 %%c, 32; trunc i64 %%d to i32",
    ),
    (
        "i32",
        "i32 i32 i32",
        "%%a = and i32 $0, 16777215; %%b = and i32 $1, 16777215; %%c = mul i32 %%a, %%b; add i32 %%c, $2",
    ),
    (
        "i64",
        "i32 i32 i64",
        "%%a = zext i32 $0 to i64; %%b = zext i32 $1 to i64; %%c = mul i64 %%a, %%b; add i64 %%c, $2",
    ),
    ("i32", "i32 i32 i32", "%%a = ?and|or|xor|add|shl? i32 $0, ?3|7|12?; ?or|xor|add? i32 %%a, $2"),
    // Bytes and words of 16 bits.
    ("i8", "i32", "%%a = lshr i32 $0, ?0|8|16|24?; trunc i32 %%a to i8"),
    ("i16", "i32", "%%a = lshr i32 $0, ?0|8|16?; trunc i32 %%a to i16"),
    ("i32", "i8", "?zext|sext? i8 $0 to i32"),
    ("i32", "i16", "?zext|sext? i16 $0 to i32"),
    ("i16", "i8", "?zext|sext? i8 $0 to i16"),
    ("i32", "i32", "%%a = lshr i32 $0, ?0|8|16|24?; and i32 %%a, 255"),
    (
        "i32",
        "i8 i8 i16",
        "%%a = zext i8 $0 to i32; %%b = zext i8 $1 to i32; %%c = zext i16 $2 to i32; %%d = shl i32 %%b, 8; \
         %%e = shl i32 %%c, 16; %%f = or i32 %%a, %%d; or i32 %%e, %%f",
    ),
    ("float", "i32", "%%a = lshr i32 $0, ?0|8|16|24?; %%b = and i32 %%a, 255; uitofp i32 %%b to float"),
    // Between integers.
    ("i64", "i32", "?zext|sext? i32 $0 to i64"),
    ("i32", "i64", "trunc i64 $0 to i32"),
    ("i32", "<2xi16>", "bitcast <2 x i16> $0 to i32"),
    ("<2xi16>", "i32", "bitcast i32 $0 to <2 x i16>"),
    ("i16", "<2xi16>", "extractelement <2 x i16> $0, i32 ?0|1?"),
    ("<2xi16>", "T i16", "insertelement T $0, i16 $1, i32 ?0|1?"),
    ("<2xi16> <2xhalf>", "T T", "shufflevector T $0, T $1, <2 x i32> <i32 ?0|1|2|3?, i32 ?0|1|2|3?>"),
    // Comparisons.
    ("i1", "i16 i16", "icmp ?eq|ne|ult|ule|ugt|uge|slt|sle|sgt|sge? i16 $0, $1"),
    ("i1", "i32 i32", "icmp ?eq|ne|ult|ule|ugt|uge|slt|sle|sgt|sge? i32 $0, $1"),
    ("i1", "i64 i64", "icmp ?eq|ne|ult|ule|ugt|uge|slt|sle|sgt|sge? i64 $0, $1"),
    ("i1", "half half", "fcmp ?oeq|ogt|oge|olt|ole|one|ord|ueq|ugt|uge|ult|ule|une|uno? half $0, $1"),
    ("i1", "float float", "fcmp ?oeq|ogt|oge|olt|ole|one|ord|ueq|ugt|uge|ult|ule|une|uno? float $0, $1"),
    ("i1", "double double", "fcmp ?oeq|ogt|oge|olt|ole|one|ord|ueq|ugt|uge|ult|ule|une|uno? double $0, $1"),
    ("i1", "i1 i1", "?and|or|xor? i1 $0, $1"),
    // Floating point.
    ("half float double <2xhalf>", "T T", "?fadd|fsub|fmul? T $0, $1"),
    ("float double", "T T T", "call T @llvm.fma.U(T $0, T $1, T $2)"),
    ("float double", "T T", "fdiv T $0, $1"),
    ("float double", "T", "call T @llvm.sqrt.U(T $0)"),
    ("half float double <2xhalf>", "T", "fneg T $0"),
    ("half float double <2xhalf>", "T", "call T @llvm.fabs.U(T $0)"),
    ("half float double <2xhalf>", "T T", "%%a = fneg T $0; ?fadd|fsub|fmul? T %%a, $1"),
    ("half float double <2xhalf>", "T T", "%%a = call T @llvm.fabs.U(T $0); ?fadd|fsub|fmul? T $1, %%a"),
    ("half float double", "T", "call T @llvm.?floor|ceil|trunc|rint?.U(T $0)"),
    (
        "float double",
        "T i32",
        "%%a = and i32 $1, 63; %%b = sub i32 %%a, 32; call T @llvm.ldexp.U.i32(T $0, i32 %%b)",
    ),
    ("float double", "i32", "?sitofp|uitofp? i32 $0 to T"),
    ("float double", "i64", "?sitofp|uitofp? i64 $0 to T"),
    ("half", "i16", "?sitofp|uitofp? i16 $0 to half"),
    ("float", "half", "fpext half $0 to float"),
    ("float", "double", "fptrunc double $0 to float"),
    ("double", "float", "fpext float $0 to double"),
    // Of a zero without a sign: LLVM 19 makes a product that is rounded to a half one instruction that adds +0.
    ("half", "float", "%%a = fadd float $0, 1.0; fptrunc float %%a to half"),
    // Never of a sign-extended byte itself: LLVM 19 takes SDWA's `sext` for the `neg` of a floating-point source.
    ("half float double", "I", "%%a = xor I $0, 1; bitcast I %%a to T"),
    ("i32", "float", "call i32 @llvm.?fptosi|fptoui?.sat.i32.f32(float $0)"),
    ("i32", "double", "call i32 @llvm.?fptosi|fptoui?.sat.i32.f64(double $0)"),
    // Halves together, and with wider values.
    ("half", "<2xhalf>", "extractelement <2 x half> $0, i32 ?0|1?"),
    ("<2xhalf>", "T half", "insertelement T $0, half $1, i32 ?0|1?"),
    ("<2xhalf>", "i32", "bitcast i32 $0 to <2 x half>"),
    (
        "float",
        "half half float",
        "%%a = fpext half $0 to float; %%b = fpext half $1 to float; call float @llvm.fma.f32(float %%a, float %%b, float $2)",
    ),
    (
        "float",
        "<2xhalf> half float",
        "%%h = extractelement <2 x half> $0, i32 1; %%a = fpext half %%h to float; %%b = fpext half $1 to float; \
         %%n = fneg float %%b; call float @llvm.fma.f32(float %%a, float %%n, float $2)",
    ),
    // Saturating.
    ("i16 i32 <2xi16>", "T T", "call T @llvm.?sadd|uadd|ssub|usub?.sat.U(T $0, T $1)"),
];

/// A program.
pub struct Program {
    kind: Kind,
    first: String,
    second: String,
    exchange: Exchange,
}

/// How lanes get at each other's values.
#[derive(Clone, Copy)]
enum Exchange {
    /// Each takes that of a lane whose number differs in these bits.
    Xor(u32),
    /// Each takes that of the lane so many further.
    Rotate(u32),
    /// Each adds its value where it says, to what that lane had, and takes what it has then.
    Sum,
}

impl Program {
    pub fn new(kind: Kind, seed: u64) -> Program {
        let mut random = Random::new(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let exchange = match random.below(3) {
            0 => Exchange::Xor(1 + random.below(u64::from(kind.lanes) - 1) as u32),
            1 => Exchange::Rotate(1 + random.below(u64::from(kind.lanes) - 1) as u32),
            _ => Exchange::Sum,
        };
        let first = Body::new(&kind, &mut random, 0).function("f");
        let second = Body::new(&kind, &mut random, 16).function("g");
        Program { kind, first, second, exchange }
    }

    /// The text for the host, which prints the second buffer.
    pub fn host(&self, inputs: &[u32]) -> String {
        let lanes = self.kind.lanes;
        let words: Vec<String> = inputs.iter().map(|word| format!("i32 {word}")).collect();
        let functions = format!("{}{}", self.first, self.second)
            .replace(" addrspace(1)", "")
            .replace(", addrspace(5)", "");
        let functions = functions.replace(" addrspace(5)", "");
        let mut text = format!(
            "@in = constant [{WORDS} x i32] [{0}]\n@out = global [{WORDS} x i32] [{0}]\n@s = global [64 x i32] zeroinitializer\n\
             @fmt = constant [4 x i8] c\"%u\\0A\\00\"\ndeclare i32 @printf(ptr, ...)\n{functions}define i32 @main() {{\n",
            words.join(", ")
        );
        let place =
            |array: &str, at: &dyn std::fmt::Display| format!("getelementptr i32, ptr @{array}, i32 {at}");
        for (t, x) in inputs.iter().enumerate().take(lanes as usize) {
            _ = writeln!(text, "%v{t} = call i32 @f(i32 {t}, i32 {x}, i32 0, ptr @out)");
        }
        for (t, x) in inputs.iter().enumerate().take(lanes as usize) {
            _ = writeln!(text, "%s{t} = {}", place("s", &t));
            match self.exchange {
                Exchange::Sum => _ = writeln!(text, "store i32 {x}, ptr %s{t}"),
                _ => _ = writeln!(text, "store i32 %v{t}, ptr %s{t}"),
            }
        }
        for t in (0..lanes).filter(|_| matches!(self.exchange, Exchange::Sum)) {
            _ = writeln!(
                text,
                "%i{t} = and i32 %v{t}, {}\n%p{t} = {}\n%o{t} = load i32, ptr %p{t}\n%a{t} = add i32 %o{t}, %v{t}\nstore i32 %a{t}, ptr %p{t}",
                lanes - 1,
                place("s", &format!("%i{t}"))
            );
        }
        for (t, x) in (0..lanes).zip(inputs) {
            let other = match self.exchange {
                Exchange::Xor(bits) => t ^ bits,
                Exchange::Rotate(by) => (t + by) % lanes,
                Exchange::Sum => t,
            };
            _ = writeln!(text, "%y{t} = load i32, ptr %s{other}");
            _ = writeln!(text, "%r{t} = call i32 @g(i32 {t}, i32 {x}, i32 %y{t}, ptr @out)");
        }
        for t in 0..lanes {
            _ = writeln!(text, "%q{t} = {}\nstore i32 %r{t}, ptr %q{t}", place("out", &t));
        }
        for at in 0..WORDS {
            _ = writeln!(
                text,
                "%b{at} = {}\n%c{at} = load i32, ptr %b{at}\n%d{at} = call i32 (ptr, ...) @printf(ptr @fmt, i32 %c{at})",
                place("out", &at)
            );
        }
        text.push_str("ret i32 0\n}\n");
        text
    }

    /// The text of kernel `k`, whose arguments are the two buffers.
    pub fn device(&self) -> String {
        let lanes = self.kind.lanes;
        let barrier = "fence syncscope(\"workgroup\") release\ncall void @llvm.amdgcn.s.barrier()\nfence syncscope(\"workgroup\") acquire\n";
        let exchange = match self.exchange {
            Exchange::Xor(bits) => {
                format!("store i32 %v, ptr addrspace(3) %own\n{barrier}%u = xor i32 %t, {bits}\n")
            }
            Exchange::Rotate(by) => format!(
                "store i32 %v, ptr addrspace(3) %own\n{barrier}%ahead = add i32 %t, {by}\n%u = and i32 %ahead, {}\n",
                lanes - 1
            ),
            Exchange::Sum => format!(
                "store i32 %x, ptr addrspace(3) %own\n{barrier}%where = and i32 %v, {}\n\
                 %there = getelementptr i32, ptr addrspace(3) @s, i32 %where\n\
                 %old = atomicrmw add ptr addrspace(3) %there, i32 %v syncscope(\"workgroup\") monotonic\n{barrier}%u = add i32 %t, 0\n",
                lanes - 1
            ),
        };
        format!(
            "target triple = \"amdgcn-amd-amdhsa\"\n@s = internal addrspace(3) global [64 x i32] poison\n\
             declare i32 @llvm.amdgcn.workitem.id.x()\ndeclare void @llvm.amdgcn.s.barrier()\n{}{}\
             define amdgpu_kernel void @k(ptr addrspace(1) noalias %in, ptr addrspace(1) noalias %out) #0 {{\n\
             %t = call i32 @llvm.amdgcn.workitem.id.x()\n%t64 = zext i32 %t to i64\n\
             %pi = getelementptr i32, ptr addrspace(1) %in, i64 %t64\n%x = load i32, ptr addrspace(1) %pi\n\
             %v = call i32 @f(i32 %t, i32 %x, i32 0, ptr addrspace(1) %out)\n\
             %own = getelementptr i32, ptr addrspace(3) @s, i32 %t\n{exchange}\
             %his = getelementptr i32, ptr addrspace(3) @s, i32 %u\n%y = load i32, ptr addrspace(3) %his\n\
             %r = call i32 @g(i32 %t, i32 %x, i32 %y, ptr addrspace(1) %out)\n\
             %po = getelementptr i32, ptr addrspace(1) %out, i64 %t64\nstore i32 %r, ptr addrspace(1) %po\nret void\n}}\n\
             attributes #0 = {{ \"amdgpu-flat-work-group-size\"=\"{lanes},{lanes}\" \"denormal-fp-math-f32\"=\"ieee,ieee\" \"uniform-work-group-size\"=\"true\" }}\n\
             !llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !\"amdhsa_code_object_version\", i32 500}}\n",
            self.first, self.second
        )
    }
}

/// A function that is being made.
struct Body<'r> {
    kind: &'r Kind,
    random: &'r mut Random,
    text: String,
    values: [Vec<String>; TYPES.len()],
    next: usize,
    /// The block that the next statement is in.
    block: String,
    /// The next word for an atomic.
    slot: u32,
    array: bool,
    /// Loops around the next statement: what atomics give there depends on which lane comes first.
    loops: u32,
}

impl<'r> Body<'r> {
    fn new(kind: &'r Kind, random: &'r mut Random, slot: u32) -> Body<'r> {
        let mut values: [Vec<String>; TYPES.len()] = Default::default();
        values[I32] = ["%y", "%t", "%x"].map(str::to_owned).to_vec();
        let mut body = Body {
            kind,
            random,
            text: String::new(),
            values,
            next: 0,
            block: "entry".into(),
            slot: OWN + slot,
            array: false,
            loops: 0,
        };
        body.array = body.random.below(4) == 0;
        body
    }

    fn function(mut self, name: &str) -> String {
        if self.array {
            self.line("%array = alloca [8 x i32], align 4, addrspace(5)");
            for at in 0..8 {
                let value = self.value("i32", &format!("xor i32 %x, {}", at * 0x0101_0101));
                let place = self.element(&at.to_string());
                self.line(&format!("store i32 {value}, ptr addrspace(5) {place}"));
            }
        }
        let count = 10 + self.random.below(22);
        self.statements(count, 0);
        let result = self.mixed();
        format!(
            "define internal i32 @{name}(i32 %t, i32 %x, i32 %y, ptr addrspace(1) %out) alwaysinline {{\nentry:\n{}ret i32 {result}\n}}\n",
            self.text
        )
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn fresh(&mut self) -> usize {
        self.next += 1;
        self.next
    }

    /// Adds a value and gives its name.
    fn value(&mut self, ty: &str, code: &str) -> String {
        let name = format!("%n{}", self.fresh());
        self.line(&format!("{name} = {code}"));
        if let Some(at) = TYPES.iter().position(|known| known.0 == ty) {
            self.values[at].push(name.clone());
        }
        name
    }

    fn element(&mut self, index: &str) -> String {
        let name = format!("%n{}", self.fresh());
        self.line(&format!("{name} = getelementptr i32, ptr addrspace(5) %array, i32 {index}"));
        name
    }

    fn statements(&mut self, count: u64, depth: u32) {
        for _ in 0..count {
            match self.random.below(24) {
                0 if depth < 2 => self.branch(depth),
                1 if depth < 2 => self.repeat(depth),
                2 | 3 if self.array => self.access(),
                2..8 if self.kind.atomic && self.loops == 0 => self.atomic(),
                _ => self.operation(),
            }
        }
    }

    fn operation(&mut self) {
        let small = self.kind.small && self.random.below(2) == 0;
        for _ in 0..64 {
            let at = self.random.below(OPS.len() as u64) as usize;
            let (types, _, code) = OPS[at];
            let choices: Vec<usize> = types.split(' ').map(number_of).collect();
            let ty = choices[self.random.below(choices.len() as u64) as usize];
            let is_small =
                code.contains("i8") || code.contains("i16") || ty == HALF || !(I32..V2H).contains(&ty);
            if self.allows(at) && self.has(ty) && (!small || is_small) {
                self.make(at, ty);
                return;
            }
        }
    }

    /// Whether programs of the kind have the values that a row is about.
    fn allows(&self, at: usize) -> bool {
        let (_, sources, code) = OPS[at];
        (self.kind.saturates || !code.contains("?.sat.U"))
            && (self.kind.half
                || !(sources.contains("half") || sources.contains("<2x") || code.contains("half")))
    }

    fn has(&self, ty: usize) -> bool {
        self.kind.half || !matches!(ty, HALF | V2H | V2S)
    }

    fn make(&mut self, at: usize, ty: usize) -> String {
        let (_, sources, code) = OPS[at];
        let (name, integer, suffix, most) = TYPES[ty];
        let values: Vec<String> = sources
            .split(' ')
            .map(|source| match source {
                "T" => self.pick(ty),
                "I" => self.pick(number_of(integer)),
                other => self.pick(number_of(other)),
            })
            .collect();
        let mut code = self.choose(code);
        code = code.replace("%%", &format!("%n{}.", self.fresh()));
        code = code.replace(" T ", &format!(" {name} ")).replace("(T ", &format!("({name} "));
        if let Some(rest) = code.strip_suffix(" T") {
            code = format!("{rest} {name}");
        }
        code = code.replace(".U(", &format!(".{suffix}(")).replace(".U.", &format!(".{suffix}."));
        code = code.replace(", W;", &format!(", {most};")).replace(" I ", &format!(" {integer} "));
        for (number, value) in values.iter().enumerate() {
            code = code.replace(&format!("${number}"), value);
        }
        let mut statements: Vec<&str> = code.split("; ").collect();
        let last = statements.pop().unwrap_or_default();
        statements.iter().for_each(|statement| self.line(statement));
        self.value(name, last)
    }

    /// Chooses one of several where a text has them.
    fn choose(&mut self, text: &str) -> String {
        let mut parts = text.split('?');
        let mut made = parts.next().unwrap_or_default().to_owned();
        while let (Some(choices), rest) = (parts.next(), parts.next().unwrap_or_default()) {
            let all: Vec<&str> = choices.split('|').collect();
            made.push_str(all[self.random.below(all.len() as u64) as usize]);
            made.push_str(rest);
        }
        made
    }

    /// A value of a type, recent ones first; made of others if there is none.
    fn pick(&mut self, ty: usize) -> String {
        if (1..5).contains(&ty) && self.random.below(6) == 0 {
            let bits = [0, 7, 15, 31, 31][ty];
            let constant = [0, 1, -1, 2, 31, 255, self.random.below(1 << bits) as i64];
            return constant[self.random.below(7) as usize].clamp(-128, (1 << bits) - 1).to_string();
        }
        let known = &self.values[ty];
        let recent = known.len().min(6);
        if recent > 0 {
            return known[known.len() - 1 - self.random.below(recent as u64) as usize].clone();
        }
        let makes = |row: &(&str, &str, &str)| {
            row.0.split(' ').any(|result| number_of(result) == ty) && matches!(row.1, "i32" | "i32 i32")
                || row.1 == "I" && matches!(ty, HALF)
        };
        match OPS.iter().position(makes) {
            Some(at) => self.make(at, ty),
            None => "0".into(),
        }
    }

    /// Runs statements whose values are seen nowhere else, and gives an integer that came of them.
    fn inside(&mut self, depth: u32) -> String {
        let before = self.values.each_ref().map(Vec::len);
        let count = 2 + self.random.below(5);
        self.statements(count, depth + 1);
        let made = if self.values[I32].len() > before[I32] { self.values[I32].last().cloned() } else { None };
        let made = made.unwrap_or_else(|| self.value("i32", "add i32 %x, 77"));
        self.values.iter_mut().zip(before).for_each(|(values, count)| values.truncate(count));
        made
    }

    fn start(&mut self, block: &str) {
        self.line(&format!("{block}:"));
        self.block = block.into();
    }

    fn branch(&mut self, depth: u32) {
        let n = self.fresh();
        let condition = self.pick(0);
        self.line(&format!("br i1 {condition}, label %then{n}, label %else{n}"));
        let mut ends = Vec::new();
        for arm in ["then", "else"] {
            self.start(&format!("{arm}{n}"));
            let value = self.inside(depth);
            self.line(&format!("br label %end{n}"));
            ends.push((value, self.block.clone()));
        }
        self.start(&format!("end{n}"));
        let [(a, a_block), (b, b_block)] = &ends[..] else { return };
        self.value("i32", &format!("phi i32 [ {a}, %{a_block} ], [ {b}, %{b_block} ]"));
    }

    fn repeat(&mut self, depth: u32) {
        let n = self.fresh();
        let (count, start) = (self.pick(I32), self.pick(I32));
        let before = self.block.clone();
        self.line(&format!("%last{n} = and i32 {count}, 3\nbr label %loop{n}"));
        self.start(&format!("loop{n}"));
        let lengths = self.values.each_ref().map(Vec::len);
        // The end of the loop is not known yet.
        let at = self.text.len();
        self.values[I32].extend([format!("%sum{n}"), format!("%i{n}")]);
        self.loops += 1;
        let value = self.inside(depth);
        self.loops -= 1;
        self.values.iter_mut().zip(lengths).for_each(|(values, count)| values.truncate(count));
        let end = self.block.clone();
        let heads = format!(
            "%i{n} = phi i32 [ 0, %{before} ], [ %j{n}, %{end} ]\n%sum{n} = phi i32 [ {start}, %{before} ], [ %new{n}, %{end} ]\n"
        );
        self.text.insert_str(at, &heads);
        self.line(&format!(
            "%m{n} = mul i32 %sum{n}, 5\n%new{n} = add i32 %m{n}, {value}\n%j{n} = add i32 %i{n}, 1\n\
             %again{n} = icmp ult i32 %i{n}, %last{n}\nbr i1 %again{n}, label %loop{n}, label %done{n}"
        ));
        self.start(&format!("done{n}"));
        self.values[I32].push(format!("%new{n}"));
    }

    /// Writes an element of the private array and reads another.
    fn access(&mut self) {
        let (value, at, other) = (self.pick(I32), self.pick(I32), self.pick(I32));
        for (index, store) in [(at, true), (other, false)] {
            let n = self.fresh();
            self.line(&format!("%index{n} = and i32 {index}, 7"));
            let place = self.element(&format!("%index{n}"));
            if store {
                self.line(&format!("store i32 {value}, ptr addrspace(5) {place}"));
            } else {
                self.value("i32", &format!("load i32, ptr addrspace(5) {place}"));
            }
        }
    }

    /// An atomic on a word that only it accesses: what it gives a lane is what one lane after the other would get.
    fn atomic(&mut self) {
        if self.slot % 16 == 15 {
            return self.operation();
        }
        let n = self.fresh();
        let wide = self.slot.is_multiple_of(2) && self.random.below(4) == 0;
        let ty = if wide { "i64" } else { "i32" };
        let value = self.pick(number_of(ty));
        let operation = self.choose("?add|sub|and|or|xor|umin|umax|min|max?");
        self.line(&format!("%word{n} = getelementptr i32, ptr addrspace(1) %out, i64 {}", self.slot));
        self.slot += if wide { 2 } else { 1 };
        self.value(
            ty,
            &format!(
                "atomicrmw {operation} ptr addrspace(1) %word{n}, {ty} {value} syncscope(\"agent\") monotonic"
            ),
        );
    }

    /// All that was computed last, in one integer.
    fn mixed(&mut self) -> String {
        let mut sum = "%x".to_owned();
        for (ty, (name, integer, _, _)) in TYPES.iter().enumerate() {
            let last: Vec<String> = self.values[ty].iter().rev().take(4).cloned().collect();
            for value in last.into_iter().filter(|value| !matches!(value.as_str(), "%t" | "%x" | "%y")) {
                let word = match *name {
                    "<2 x half>" => {
                        let halves = [0, 1].map(|at| {
                            let half =
                                self.value("half", &format!("extractelement <2 x half> {value}, i32 {at}"));
                            let bits = self.bits("half", "i16", &half);
                            self.value("", &format!("zext i16 {bits} to i32"))
                        });
                        let high = self.value("", &format!("shl i32 {}, 16", halves[1]));
                        self.value("", &format!("or i32 {high}, {}", halves[0]))
                    }
                    "<2 x i16>" => self.value("", &format!("bitcast <2 x i16> {value} to i32")),
                    "half" | "float" | "double" => {
                        let bits = self.bits(name, integer, &value);
                        self.word(integer, &bits)
                    }
                    _ => self.word(integer, &value),
                };
                let product = self.value("", &format!("mul i32 {sum}, 31"));
                sum = self.value("", &format!("add i32 {product}, {word}"));
            }
        }
        sum
    }

    /// An integer in 32 bits.
    fn word(&mut self, ty: &str, value: &str) -> String {
        match ty {
            "i32" => value.to_owned(),
            "i64" => {
                let high = self.value("", &format!("lshr i64 {value}, 32"));
                let both = self.value("", &format!("xor i64 {high}, {value}"));
                self.value("", &format!("trunc i64 {both} to i32"))
            }
            _ => self.value("", &format!("zext {ty} {value} to i32")),
        }
    }

    /// The bits of a number, with all NaNs the same.
    fn bits(&mut self, ty: &str, integer: &str, value: &str) -> String {
        let number = self.value("", &format!("fcmp ord {ty} {value}, {value}"));
        let bits = self.value("", &format!("bitcast {ty} {value} to {integer}"));
        self.value("", &format!("select i1 {number}, {integer} {bits}, {integer} 77"))
    }
}

/// The number of a type as rows write it, without spaces.
fn number_of(name: &str) -> usize {
    TYPES.iter().position(|ty| ty.0.replace(' ', "") == name.replace(' ', "")).unwrap_or(I32)
}
