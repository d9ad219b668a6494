//! `cargo xtask fold-vectors OPS OUT [--seed S] [--count N] [--opt PROGRAM]`: what operations give, by LLVM's constant folder.
//!
//! OPS says each operation in LLVM's intermediate language. For random sources, many of them at the edges of their types,
//! `opt` folds each to a constant; OUT gets a line for each. What LLVM does not fold is told and left out.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const USAGE: &str = "usage: cargo xtask fold-vectors OPS OUT [--seed S] [--count N] [--opt PROGRAM]";
/// Rounding modes in the order of their codes.
const ROUNDINGS: [&str; 4] = ["tonearest", "upward", "downward", "towardzero"];
/// Bits of the MODE register that keep denormals.
const KEEP: u32 = 0xf0;

/// An operation.
struct Op<'a> {
    name: &'a str,
    types: Vec<&'a str>,
    flags: Vec<&'a str>,
    code: &'a str,
}

/// An operation in a mode.
struct Block<'a> {
    op: &'a Op<'a>,
    mode: u32,
    rounding: &'static str,
    flush: bool,
}

/// Runs the command.
pub fn run(args: &[String]) -> Result<(), String> {
    let (mut files, mut seed, mut count, mut opt) = (Vec::new(), 1u64, 24usize, "opt-19".to_owned());
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(USAGE);
        match arg.as_str() {
            "--seed" => seed = value()?.parse().map_err(|_| USAGE)?,
            "--count" => count = value()?.parse().map_err(|_| USAGE)?,
            "--opt" => opt = value()?.clone(),
            file => files.push(file),
        }
    }
    let [source, out] = files.as_slice() else { return Err(USAGE.into()) };
    let text = std::fs::read_to_string(source).map_err(|e| format!("{source}: {e}"))?;
    let ops: Vec<Op> = text
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| parse(line).ok_or_else(|| format!("not an operation: {line}")))
        .collect::<Result<_, _>>()?;
    let blocks: Vec<Block> = ops.iter().flat_map(blocks_of).collect();
    let mut module = String::from("target triple = \"amdgcn-amd-amdhsa\"\n");
    let mut sources = Vec::new();
    for (number, block) in blocks.iter().enumerate() {
        let name =
            block.op.name.bytes().fold(number as u64, |hash, byte| hash.rotate_left(7) ^ u64::from(byte));
        let mut random = Random(seed ^ name.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for at in 0..count {
            let values: Vec<u64> = block.op.types[1..].iter().map(|ty| random.value(ty)).collect();
            function(&mut module, block, &format!("f{number}_{at}"), &values);
            sources.push((number, values));
        }
    }
    module.push_str(
        "attributes #0 = { strictfp \"target-cpu\"=\"gfx900\" }\nattributes #1 = { strictfp \"target-cpu\"=\"gfx900\" \
         \"denormal-fp-math\"=\"preserve-sign,preserve-sign\" \"denormal-fp-math-f32\"=\"preserve-sign,preserve-sign\" }\n",
    );
    let folded = fold(&opt, module)?;
    let results = returned(&folded);
    let version = Command::new(&opt).arg("--version").output().map_err(|e| format!("{opt}: {e}"))?;
    let version = String::from_utf8_lossy(&version.stdout);
    let version = version.lines().find(|line| line.contains("LLVM version")).unwrap_or("LLVM").trim();
    let mut made = format!(
        "# What operations give by {version}, made by `cargo xtask fold-vectors` with seed {seed}.\n#\n\
         #   > NAME RESULT SOURCE… mode=BITS [FLAG…], then lines of SOURCE… = RESULT\n"
    );
    let mut next = sources.iter();
    let mut missing = 0;
    for (number, block) in blocks.iter().enumerate() {
        let mut lines = String::new();
        for at in 0..count {
            let Some((_, values)) = next.next() else { break };
            match results.get(format!("f{number}_{at}").as_str()) {
                Some(result) => {
                    values.iter().for_each(|value| _ = write!(lines, "{value:x} "));
                    _ = writeln!(lines, "= {:x}", result & mask(block.op.types[0]));
                }
                None => missing += 1,
            }
        }
        if lines.is_empty() {
            eprintln!("not folded: {}", block.op.name);
            continue;
        }
        let kept = block.op.flags.iter().filter(|flag| !matches!(**flag, "rounds" | "flush" | "flushed"));
        let flags: String = kept.map(|flag| format!(" {flag}")).collect();
        _ = writeln!(made, "> {} {} mode={:x}{flags}", block.op.name, block.op.types.join(" "), block.mode);
        made.push_str(&lines);
    }
    eprintln!("{} blocks, {missing} of {} not folded", blocks.len(), sources.len());
    std::fs::write(out, made).map_err(|e| format!("{out}: {e}"))
}

fn parse(line: &str) -> Option<Op<'_>> {
    let (head, code) = line.split_once(" : ")?;
    let mut words = head.split(' ');
    let name = words.next()?;
    let is_flag = |word: &&str| {
        matches!(*word, "rounds" | "flush" | "flushed" | "clamp" | "scc" | "carry")
            || word.starts_with("omod=")
    };
    let (flags, types): (Vec<&str>, Vec<&str>) = words.partition(is_flag);
    Some(Op { name, types, flags, code })
}

/// The modes in which an operation is folded.
fn blocks_of<'a>(op: &'a Op<'a>) -> Vec<Block<'a>> {
    let block = |mode, rounding, flush| Block { op, mode, rounding, flush };
    let has = |flag| op.flags.contains(&flag);
    if has("rounds") {
        let codes = ROUNDINGS.iter().zip(0u32..);
        return codes.map(|(rounding, code)| block(KEEP | code | code << 2, *rounding, false)).collect();
    }
    let kept = (!has("flushed")).then(|| block(KEEP, ROUNDINGS[0], false));
    let flushed = (has("flush") || has("flushed")).then(|| block(0, ROUNDINGS[0], true));
    kept.into_iter().chain(flushed).collect()
}

/// The type that LLVM calls so, and the integer of as many bits.
fn types(ty: &str) -> (&str, &'static str) {
    match ty.trim_end_matches(['n', 'o', 'x', 's']).trim_start_matches("turn") {
        "f16" => ("half", "i16"),
        "f32" => ("float", "i32"),
        "f64" => ("double", "i64"),
        "h2" => ("<2 x half>", "i32"),
        "s2" => ("<2 x i16>", "i32"),
        "i1" => ("i1", "i1"),
        "i16" => ("i16", "i16"),
        "i64" => ("i64", "i64"),
        _ => ("i32", "i32"),
    }
}

/// The bits of a type.
fn mask(ty: &str) -> u64 {
    match types(ty).1 {
        "i1" => 1,
        "i16" => 0xffff,
        "i32" => 0xffff_ffff,
        _ => u64::MAX,
    }
}

/// Appends a function that computes an operation of constants.
fn function(module: &mut String, block: &Block, name: &str, values: &[u64]) {
    let (ty, result) = types(block.op.types[0]);
    let attribute = u8::from(block.flush);
    _ = writeln!(module, "define {result} @{name}() #{attribute} {{");
    for (at, (value, ty)) in values.iter().zip(&block.op.types[1..]).enumerate() {
        let (ty, bits) = types(ty);
        _ = writeln!(module, "%s{at} = bitcast {bits} {value} to {ty}");
    }
    let code = block.op.code.replace('$', "%s").replace("%sR", block.rounding);
    let mut statements: Vec<&str> = code.split("; ").collect();
    let last = statements.pop().unwrap_or_default();
    statements.iter().for_each(|statement| _ = writeln!(module, "{statement}"));
    _ = writeln!(
        module,
        "%result = {last}\n%bits = bitcast {ty} %result to {result}\nret {result} %bits\n}}"
    );
}

fn fold(opt: &str, module: String) -> Result<String, String> {
    let mut child = Command::new(opt)
        .args(["-S", "-passes=instsimplify,instcombine,instsimplify", "-o", "-", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|e| format!("{opt}: {e}"))?;
    let mut input = child.stdin.take().ok_or("no pipe")?;
    let writer = std::thread::spawn(move || input.write_all(module.as_bytes()));
    let output = child.wait_with_output().map_err(|e| format!("{opt}: {e}"))?;
    if !output.status.success() {
        return Err(format!("{opt} failed"));
    }
    writer.join().map_err(|_| "the writer failed")?.map_err(|e| format!("{opt}: {e}"))?;
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Functions that do nothing but return a constant.
fn returned(module: &str) -> std::collections::HashMap<&str, u64> {
    let mut found = std::collections::HashMap::new();
    let mut lines = module.lines();
    while let Some(line) = lines.next() {
        let name = line.strip_prefix("define ").and_then(|rest| rest.split_once('@')?.1.split_once('('));
        let Some((name, _)) = name else { continue };
        let Some(body) = lines.next().and_then(|line| line.trim().strip_prefix("ret ")) else { continue };
        let constant = match body.split_once(' ').map(|(_, constant)| constant) {
            Some("true") => Some(1),
            Some("false") => Some(0),
            Some(number) => number.parse::<i64>().ok().map(|number| number as u64),
            None => None,
        };
        found.extend(constant.map(|constant| (name, constant)));
    }
    found
}

/// Numbers that are the same in every run.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let x = self.0 ^ self.0 >> 31;
        x.wrapping_mul(0xd6e8_feb8_6659_fd93) ^ x >> 29
    }

    /// A number below a bound of up to 48 bits.
    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }

    /// A value for a source.
    fn value(&mut self, ty: &str) -> u64 {
        match ty {
            "f16" => self.number(5, 10, false),
            "f32" => self.number(8, 23, false),
            "f64" => self.number(11, 52, false),
            "f16n" => self.number(5, 10, true),
            "f32n" => self.number(8, 23, true),
            "f64n" => self.number(11, 52, true),
            "f16o" => self.ordered("f16", 0x7c00, 0x8000),
            "f32o" => self.ordered("f32", 0x7f80_0000, 0x8000_0000),
            // Quarters, and other fractions of a turn.
            "turnf32" => {
                let quarters = self.below(64) as f32 / 4.0 - 8.0;
                u64::from((quarters + if self.below(2) == 0 { 0.0 } else { 0.03125 }).to_bits())
            }
            "turnf16" => [0, 0x4000, 0x3400, 0x3800, 0x3c00, 0xbc00, 0x3a00, 0xb400][self.below(8) as usize],
            "h2" => self.number(5, 10, false) | self.number(5, 10, false) << 16,
            "s2" => self.integer(16) | self.integer(16) << 16,
            "i16" => self.integer(16),
            "i32" => self.integer(32),
            "i64" => self.integer(64),
            "i16x" => (self.below(64) as i16 - 32) as u16 as u64,
            "i32x" => (self.below(640) as i32 - 320) as u32 as u64,
            "i32s" => self.below(3),
            "class" => self.below(1024),
            "field" => self.below(64) | self.below(72) << 16,
            "perm" => (0..4).fold(0, |all, at| all | self.below(14) << (8 * at)),
            _ => 0,
        }
    }

    /// A number that is no NaN.
    fn ordered(&mut self, ty: &str, infinity: u64, sign: u64) -> u64 {
        let bits = self.value(ty);
        if bits & (sign - 1) > infinity { bits & sign | infinity } else { bits }
    }

    /// An integer, often near an end.
    fn integer(&mut self, bits: u32) -> u64 {
        let mask = u64::MAX >> (64 - bits);
        let value = match self.below(8) {
            0 => self.below(4),
            1 => 0u64.wrapping_sub(self.below(4)),
            2 => (1 << (bits - 1)) - self.below(3),
            3 => 1 << self.below(u64::from(bits)),
            4 => self.below(64),
            _ => self.next(),
        };
        value & mask
    }

    /// A binary number; `plain`: no denormal, infinity or NaN.
    fn number(&mut self, exponent: u32, fraction: u32, plain: bool) -> u64 {
        let (most, ones) = ((1u64 << exponent) - 1, (1u64 << fraction) - 1);
        let sign = self.below(2) << (exponent + fraction);
        let bias = most >> 1;
        let mantissa = match self.below(4) {
            0 => 0,
            1 => ones - self.below(3),
            2 => self.below(3) << (fraction - 2),
            _ => self.next() & ones,
        };
        let biased = match self.below(if plain { 8 } else { 13 }) {
            0..5 => bias - 2 + self.below(6),
            5 => bias + self.below(u64::from(fraction) + 2),
            6 => bias - self.below(u64::from(fraction) + 2).min(bias - 1),
            7 => 1 + self.below(most - 1),
            8 => 0,
            9 => 1 + self.below(2),
            10 => most - 1,
            11 => return sign,
            _ => most,
        };
        sign | biased << fraction | mantissa
    }
}
