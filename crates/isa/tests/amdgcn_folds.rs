//! What operations compute, against LLVM's constant folder.
//!
//! `amdgcn_folds/vectors.txt` is made from `ops.txt` beside it by `cargo xtask fold-vectors`. With `UNWEDGE_FOLDS` a file made
//! in the same way with another seed is taken instead.

use std::collections::BTreeMap;
use unwedge_isa::amdgcn::model::Type;
use unwedge_isa::amdgcn::semantics::{Mode, Op, ScalarIn, of_opcode};
use unwedge_isa::amdgcn::{Gfx, tables};

const VECTORS: &str = include_str!("amdgcn_folds/vectors.txt");
/// An operation in a mode, and which part of what it gives is compared.
struct Block<'a> {
    name: &'a str,
    result: &'a str,
    mode: Mode,
    bit: bool,
}

fn block(line: &str) -> Block<'_> {
    let mut words = line.split(' ');
    let (name, result) = (words.next().expect("a name"), words.next().expect("a type"));
    let mut block = Block { name, result, mode: Mode::graphics(Gfx::Gfx10), bit: false };
    for word in words {
        match word.split_once('=').unwrap_or((word, "")) {
            ("mode", bits) => {
                let bits = u32::from_str_radix(bits, 16).expect("hexadecimal");
                // Segments of the old modes: a clamped NaN is zero.
                block.mode = Mode::from_bits(bits | 0x100, Gfx::Gfx10);
            }
            ("clamp", _) => block.mode.clamp = true,
            ("omod", n) => block.mode.omod = n.parse().expect("a number"),
            ("scc" | "carry", _) => block.bit = true,
            _ => {}
        }
    }
    block
}

/// The operation of a row, or of what has the name in some generation.
fn op(name: &str) -> Option<Op> {
    let row = tables::rows().iter().find(|row| row.name == name).or_else(|| {
        let (variant, _) = tables::name(name.as_bytes())?.variants.first()?;
        Some(&tables::rows()[usize::from(tables::variants()[usize::from(*variant)].row)])
    });
    of_opcode(row?.opcode)
}

/// The result of a block's operation, without its modifiers.
fn eval(block: &Block, op: Op, [a, b, c]: [u64; 3]) -> u64 {
    let m = &block.mode;
    let (value, bit) = match op {
        Op::Lane(lane) => ((lane.one)(m, a as u32, b as u32, c as u32).into(), false),
        Op::Wide(f) | Op::Shift { f, .. } => (f(m, a, b, c), false),
        Op::Carry(f) => {
            let (value, bit) = f(m, a as u32, b as u32, false);
            (value.into(), bit)
        }
        Op::WideCarry(f) => f(m, a, b, c),
        Op::Compare(f) => return f(m, a, b).into(),
        Op::Scalar(f) => f(m, ScalarIn { a, b, d: c, scc: false }),
        _ => panic!("{}", block.name),
    };
    if block.bit { bit.into() } else { value }
}

fn float(ty: &str) -> Type {
    match ty {
        "f16" => Type::F16,
        "f32" => Type::F32,
        "f64" => Type::F64,
        "h2" => Type::PkF16,
        _ => Type::None,
    }
}

/// Bits with every NaN made the same one: LLVM does not say which one an operation gives.
fn comparable(ty: &str, bits: u64) -> u64 {
    let nan = |bits: u64, infinity: u64, sign: u64| {
        if bits & (sign - 1) > infinity { infinity + 1 } else { bits & (sign | (sign - 1)) }
    };
    match ty {
        "f16" => nan(bits, 0x7c00, 0x8000),
        "f32" => nan(bits, 0x7f80_0000, 0x8000_0000),
        "f64" => nan(bits, 0x7ff0_0000_0000_0000, 1 << 63),
        "h2" => nan(bits & 0xffff, 0x7c00, 0x8000) | nan(bits >> 16 & 0xffff, 0x7c00, 0x8000) << 16,
        "i1" => bits & 1,
        "i16" => bits & 0xffff,
        "i64" => bits,
        _ => bits & 0xffff_ffff,
    }
}

#[test]
fn operations_give_what_llvm_folds() {
    let other = std::env::var_os("UNWEDGE_FOLDS").map(|path| std::fs::read_to_string(path).expect("a file"));
    let text = other.as_deref().unwrap_or(VECTORS);
    let (mut compared, mut names) = (0, std::collections::BTreeSet::new());
    let mut wrong: BTreeMap<&str, (usize, String)> = BTreeMap::new();
    let mut current = None;
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(head) = line.strip_prefix("> ") {
            let block = block(head);
            let op = op(block.name).unwrap_or_else(|| panic!("{} has no semantics", block.name));
            names.insert(block.name);
            current = Some((head, block, op));
            continue;
        }
        let (head, block, op) = current.as_ref().expect("a block");
        let (sources, result) = line.split_once("= ").expect("a result");
        let number = |text: &str| u64::from_str_radix(text, 16).expect("hexadecimal");
        let mut values = [0; 3];
        sources.split_whitespace().zip(&mut values).for_each(|(text, place)| *place = number(text));
        let ours = block.mode.output(float(block.result), eval(block, *op, values));
        let ours = comparable(block.result, ours);
        let theirs = comparable(block.result, number(result));
        compared += 1;
        if ours != theirs {
            let entry = wrong.entry(*head).or_default();
            entry.0 += 1;
            entry.1 = format!("{line}, not {ours:x}");
        }
    }
    eprintln!("{compared} results of {} operations", names.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(names.len() > 380, "only {} operations", names.len());
}
