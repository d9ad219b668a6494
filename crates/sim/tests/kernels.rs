//! Kernels compiled by LLVM give what its interpreter on the host gives for the same programs, and those with products of
//! matrices what the host computes in whole numbers.

mod compiled;

use std::collections::{BTreeMap, HashSet};
use unwedge_isa::amdgcn::model::{Form, Format, Gfx, Mod};
use unwedge_isa::amdgcn::{Gpu, Inst, Operand, RegHalf, codec};
use unwedge_sim::amdgcn::{FaultKind, Program, SimFault, Timing, Trace};

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

#[test]
fn kernels_give_what_the_host_gives() {
    let (text, own) = compiled::lines();
    let mut covered: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut count, mut wrong, mut left) = (BTreeMap::<String, usize>::new(), Vec::new(), 0);
    compiled::each(&text, |kernel| {
        *count.entry(kernel.name.clone()).or_default() += 1;
        let program = kernel.program(&kernel.code);
        for timing in
            [Timing::Plain, Timing::Adversarial { seed: 1 }, Timing::Adversarial { seed: 0xdead_beef }]
        {
            let mut seen = HashSet::new();
            let mut trace = |trace: &Trace| _ = seen.insert(trace.at);
            let first = (timing == Timing::Plain).then_some(&mut trace as &mut dyn FnMut(&_));
            let (outcome, differ) = kernel.run(&program, timing, first);
            let faults: Vec<&SimFault> = outcome.faults.iter().filter(|f| !is_llvms(f, &program)).collect();
            left += outcome.faults.len() - faults.len();
            if !faults.is_empty() || !differ.is_empty() {
                let text = |at: u32| program.text(at).unwrap_or_default();
                let fault = faults.first().map(|f| match f.kind {
                    FaultKind::Hazard(rule, first) => {
                        format!("at {:#x}: {rule}: {}, then {}", f.at, text(first), text(f.at))
                    }
                    _ => format!("at {:#x}: {:?}: {}", f.at, f.kind, text(f.at)),
                });
                let (differ, first) = (differ.len(), differ.first());
                let head = format!("{} {}", kernel.name, kernel.source);
                wrong.push(format!("{head} {timing:?}: {differ} words from {first:?}, {fault:?}"));
            }
            for at in seen {
                let here = kernel.code.get(at as usize / 4..).unwrap_or_default();
                let Some(decoded) = codec::decode_executed(here, &kernel.gpu) else { continue };
                covers(&decoded.inst, &kernel.gpu)
                    .iter()
                    .for_each(|what| *covered.entry(what).or_default() += 1);
            }
        }
    });
    eprintln!("kernels: {count:?}\ninstructions that were executed: {covered:?}");
    eprintln!("{left} faults are LLVM 19's");
    wrong.iter().for_each(|line| eprintln!("{line}"));
    assert!(wrong.is_empty(), "{} of {count:?}", wrong.len());
    for (what, least) in COVERED.iter().filter(|_| own) {
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
