//! Kernels compiled by LLVM give what its interpreter on the host gives for the same programs.
//!
//! `kernels/vectors.txt` is made by `cargo xtask kernel-vectors`. With `UNWEDGE_KERNELS` a file made in the same way with
//! another seed is taken instead.

use std::collections::{BTreeMap, HashSet};
use unwedge_isa::amdgcn::model::{Form, Format, Gfx, Mod};
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, RegHalf, codec};
use unwedge_sim::amdgcn::{Dispatch, FaultKind, Initial, Program, SimFault, SimMemory, Timing, run};
use unwedge_testkit::pack::bytes;

const VECTORS: &str = include_str!("kernels/vectors.txt");
/// Where the buffers are, the arguments, and the scratch that is accessed by a buffer.
const IN: u64 = 0x1_0000;
const OUT: u64 = 0x2_0000;
const ARGUMENTS: u64 = 0x3_0000;
const SCRATCH: u64 = 0x10_0000;

/// What instructions are counted for, and how few would be too few.
const COVERED: [(&str, usize); 10] = [
    ("SDWA", 300),
    ("DPP", 3000),
    ("DPP8 or permlane", 300),
    ("packed", 150),
    ("packed with other halves", 8),
    ("packed or mixed with a negation", 30),
    ("mixed precision", 40),
    ("halves of registers", 20),
    ("scratch", 1000),
    ("atomics", 700),
];

/// What of [`COVERED`] an instruction is.
fn covers(inst: &Inst, gpu: &Gpu) -> Vec<&'static str> {
    let (row, mods) = (inst.row(), &inst.mods);
    let packed = row.format == Format::Vop3p;
    let sources = inst.written().filter(|(slot, _)| !slot.access.writes()).count();
    let halves =
        inst.operands.iter().any(|o| matches!(o, Operand::Reg { half: RegHalf::Low | RegHalf::High, .. }));
    let mixed = row.name.contains("_mix");
    let facts = [
        inst.form() == Form::Sdwa,
        matches!(inst.form(), Form::Dpp | Form::E64Dpp),
        matches!(inst.form(), Form::Dpp8 | Form::E64Dpp8) || row.name.starts_with("v_permlane"),
        packed,
        packed && !mixed && (mods.has(Mod::OpSel) || mods.get(Mod::OpSelHi) != (1 << sources) - 1),
        packed && (mods.has(Mod::NegLo) || mods.has(Mod::NegHi)),
        mixed,
        gpu.real_true16() && halves,
        row.format == Format::Scratch || row.format == Format::Mubuf,
        row.name.contains("_atomic_") || row.name.starts_with("ds_add"),
    ];
    COVERED.iter().zip(facts).filter(|(_, holds)| *holds).map(|(covered, _)| covered.0).collect()
}

fn words(text: &str) -> Vec<u32> {
    text.split_whitespace().map(|word| u32::from_str_radix(word, 16).expect("hexadecimal")).collect()
}

/// A kernel, ready to run.
struct Kernel {
    program: Program,
    code: Vec<u32>,
    dispatch: Dispatch,
    scratch: u32,
}

fn kernel(line: &str, lanes: u32) -> Kernel {
    let (head, code) = line.split_once(" : ").expect("code");
    let mut parts = head.split(' ');
    let (name, features) =
        parts.next().map(|name| name.split_once('+').unwrap_or((name, ""))).expect("a GPU");
    let gpu = Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("a GPU");
    let mut made = Dispatch { size: [lanes, 1, 1], ..Dispatch::default() };
    let (mut scratch, mut axes, mut packed) = (0, 1, false);
    for part in parts {
        let (key, value) = part.split_once('=').expect("a value");
        let number = || value.parse::<u32>().expect("a number");
        match key {
            "mode" => made.mode = u32::from_str_radix(value, 16).expect("hexadecimal"),
            "lds" => made.lds = number(),
            "scratch" => scratch = number(),
            "axes" => axes = number(),
            "packed" => packed = value == "1",
            "ttmp" => made.group_id_in_ttmp = value == "1",
            _ => {
                let (first, count) = key.split_once(':').expect("registers");
                let first: u16 = first.parse().expect("a number");
                let values: Vec<u32> = match value {
                    "arguments" => vec![ARGUMENTS as u32, (ARGUMENTS >> 32) as u32],
                    "scratch-buffer" => buffer(scratch, lanes).to_vec(),
                    "group" | "zero" => vec![0; count.parse().expect("a number")],
                    _ => Vec::new(),
                };
                made.scalars.extend((first..).zip(values));
            }
        }
    }
    made.scratch = scratch;
    if packed {
        made.vectors.push((0, Initial::PackedLocalIds));
    } else {
        made.vectors.extend((0..axes as u8).map(|axis| (axis, Initial::LocalId(axis))));
    }
    let code = words(code);
    Kernel { program: Program::new(&code, 0, gpu), code, dispatch: made, scratch: scratch * lanes }
}

/// A descriptor of scratch: lanes one after the other, in elements of four bytes.
fn buffer(scratch: u32, lanes: u32) -> [u32; 4] {
    [SCRATCH as u32, 1 << 31, scratch * lanes, 7 << 12 | 4 << 15 | 1 << 19 | 3 << 21 | 1 << 23]
}

#[test]
fn kernels_give_what_the_host_gives() {
    let other =
        std::env::var_os("UNWEDGE_KERNELS").map(|path| std::fs::read_to_string(path).expect("a file"));
    let text = other.as_deref().unwrap_or(VECTORS);
    let (mut inputs, mut expected, mut lanes, mut head) = (Vec::new(), Vec::new(), 64, "");
    let mut covered: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut kernels, mut wrong, mut left) = (BTreeMap::<&str, usize>::new(), Vec::new(), 0);
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        match line.split_once(' ').expect("words") {
            ("x", rest) => inputs = bytes(&words(rest)),
            (">", rest) => {
                head = rest;
                lanes = rest.rsplit(' ').next().and_then(|n| n.parse().ok()).expect("lanes");
            }
            ("=", rest) => expected = bytes(&words(rest)),
            (name, _) => {
                *kernels.entry(name).or_default() += 1;
                let kernel = kernel(line, lanes);
                for timing in [
                    Timing::Plain,
                    Timing::Adversarial { seed: 1 },
                    Timing::Adversarial { seed: 0xdead_beef },
                ] {
                    let mut memory = SimMemory::default();
                    let arguments: Vec<u8> = [IN, OUT].iter().flat_map(|at| at.to_le_bytes()).collect();
                    for (at, content) in [
                        (IN, inputs.clone()),
                        (OUT, inputs.clone()),
                        (ARGUMENTS, [arguments, vec![0; 512]].concat()),
                        (SCRATCH, vec![0; kernel.scratch as usize + 4]),
                    ] {
                        memory.map(at, content).expect("free");
                    }
                    let dispatch = Dispatch { timing, ..kernel.dispatch.clone() };
                    let mut seen = HashSet::new();
                    let mut trace = |trace: &unwedge_sim::amdgcn::Trace| _ = seen.insert(trace.at);
                    let first = (timing == Timing::Plain).then_some(&mut trace as &mut dyn FnMut(&_));
                    let outcome = run(&kernel.program, &mut memory, &dispatch, first);
                    let gpu = kernel.program.gpu();
                    let faults: Vec<&SimFault> =
                        outcome.faults.iter().filter(|f| !is_llvms(f, &kernel.program)).collect();
                    left += outcome.faults.len() - faults.len();
                    let got = memory.get(OUT, expected.len()).expect("mapped");
                    let differ: Vec<usize> = (0..expected.len() / 4)
                        .filter(|at| got[4 * at..4 * at + 4] != expected[4 * at..4 * at + 4])
                        .collect();
                    if !faults.is_empty() || !differ.is_empty() {
                        let text = |at: u32| kernel.program.text(at).unwrap_or_default();
                        let fault = faults.first().map(|f| match f.kind {
                            FaultKind::Hazard(rule, first) => {
                                format!("at {:#x}: {rule}: {}, then {}", f.at, text(first), text(f.at))
                            }
                            _ => format!("at {:#x}: {:?}: {}", f.at, f.kind, text(f.at)),
                        });
                        let (count, first) = (differ.len(), differ.first());
                        wrong.push(format!(
                            "{name} {head} {timing:?}: {count} words from {first:?}, {fault:?}"
                        ));
                    }
                    for at in seen {
                        let here = kernel.code.get(at as usize / 4..).unwrap_or_default();
                        let Some(decoded) = codec::decode_executed(here, gpu) else { continue };
                        covers(&decoded.inst, gpu)
                            .iter()
                            .for_each(|what| *covered.entry(what).or_default() += 1);
                    }
                }
            }
        }
    }
    eprintln!("kernels: {kernels:?}\ninstructions that were executed: {covered:?}");
    eprintln!("{left} faults are LLVM 19's");
    wrong.iter().for_each(|line| eprintln!("{line}"));
    assert!(wrong.is_empty(), "{} of {kernels:?}", wrong.len());
    for (what, least) in COVERED.iter().filter(|_| other.is_none()) {
        assert!(covered.get(what).is_some_and(|count| count >= least), "{what}: {covered:?}");
    }
}

/// Hazards that LLVM 19 does not know, or not in all cases.
fn is_llvms(fault: &SimFault, program: &Program) -> bool {
    let FaultKind::Hazard(rule, _) = fault.kind else { return false };
    let text = program.text(fault.at).unwrap_or_default();
    match (program.gpu().generation(), rule) {
        // Nothing is done about it.
        (Gfx::Gfx12, "valu_read_sgpr") => true,
        // Of what a scalar instruction writes it looks at the destination that is written out, and not at exec.
        (Gfx::Gfx10, "vmem_to_scalar_write") => text.contains("saveexec"),
        // The registers of one operand count as one; of three that are read it takes the latest write behind exec for the second
        // one, though an earlier one, nearer to the first, is near enough to the read.
        (Gfx::Gfx11, "valu_partial_forwarding") => text.contains("v[") || text.matches(", v").count() > 2,
        // Of comparisons only those that write exec are looked at.
        (Gfx::Gfx10, "vopc_permlane") => true,
        _ => false,
    }
}

/// LLVM writes the sign of a literal of 16 bits into its upper half, which hardware does not read.
#[test]
fn literals_of_16_bits_may_have_an_upper_half() {
    let gpu = Gpu::new("gfx1030").expect("known");
    let words = [0xd703_0013, 0x0001_ff12, 0xffff_ff01];
    assert!(codec::decode(&words, &gpu).is_none());
    let decoded = codec::decode_executed(&words, &gpu).expect("v_add_nc_u16 v19, v18, 0xff01");
    assert_eq!((decoded.inst.row().name, decoded.dwords), ("v_add_u16", 3));
    assert!(decoded.inst.operands.contains(&Operand::Literal(0xff01)));
}
