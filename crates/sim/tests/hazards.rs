//! Hazards that nothing mitigates are reported, and those that something mitigates are not: over the programs by which the
//! rules of the checker are tested, each of which breaks one rule or does not.

use std::collections::BTreeSet;
use unwedge_isa::amdgcn::{Gfx, Gpu, source::assemble};
use unwedge_sim::amdgcn::{Dispatch, FaultKind, Initial, Program, SimMemory, Timing, run};
use unwedge_sim::{MemoryFault, MemoryFaultCause};

const CASES: &str = include_str!("../../../data/amd/check/cases/rules.txt");

/// Rules that are no hazards of a program that runs: its shape, advice, and what it does behind its end.
const STATIC: [&str; 10] = [
    "not_instruction",
    "into_middle",
    "outside",
    "runs_off",
    "no_end",
    "not_reached",
    "no_lane",
    "spare_wait",
    "spare_nop",
    "open_end",
];
/// Rules that are faults of their own.
const FAULTS: [&str; 2] = ["wait", "unwritten"];
/// Rules of one source that another contradicts: not certain enough to be reported.
const DISPUTED: [&str; 18] = [
    "unwritten_part",
    "flat_wait",
    "setreg_other",
    "vskip_wide",
    "smem_clause_inv",
    "vcmpx_exec_implicit",
    "fp_atomic_denorm",
    "valu_carry_sgpr",
    "memory_sgpr",
    "half_wait",
    "valu_sgpr_mask",
    "lds_barrier",
    "dpp_old_vgpr",
    "vmem_rewritten_sgpr",
    "valu_rewritten_sgpr",
    "mfma_last_state",
    "long_clause",
    "export_priority",
];

/// Whether a rule that is reported only where all sources have it is, for a generation.
fn weaker(rule: &str, generation: Gfx) -> bool {
    match rule {
        "vmem_read_valu_sgpr" | "m0_gds_msg" | "setreg_setreg" => generation <= Gfx::Gfx7,
        "vmem_store_data" => generation == Gfx::Gfx6,
        _ => false,
    }
}

/// A descriptor of plain bytes at a low address.
fn descriptor(generation: Gfx) -> [u32; 4] {
    let format = match generation {
        Gfx::Gfx10 | Gfx::Gfx10_3 => 20 << 12 | 1 << 24 | 3 << 28,
        Gfx::Gfx11 | Gfx::Gfx11_5 | Gfx::Gfx12 => 20 << 12 | 3 << 28,
        _ => 7 << 12 | 4 << 15,
    };
    [0x1_0000, 0, 0x1_0000, format | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}

/// The hazards that are reported of a program, and whether it came to its end.
fn reported(lines: &[&str], gpu: &Gpu) -> (BTreeSet<&'static str>, bool) {
    let made = assemble(&lines.join("\n"), gpu);
    assert!(made.errors.is_empty(), "{lines:?}: {:?}", made.errors);
    let (dwords, _) = made.sections[0].bytes.as_chunks::<4>();
    let words: Vec<u32> = dwords.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    let program = Program::new(&words, 0, *gpu);
    let descriptor = descriptor(gpu.generation());
    let pointer = u64::from(descriptor[2]) | u64::from(descriptor[3]) << 32;
    let mut memory = SimMemory::default();
    memory.map(0x1_0000, vec![0; 0x2_0000]).expect("free");
    memory.map(pointer & 0x0000_ffff_ffff_ffff | 0x2_0000, vec![0; 0x1000]).ok();
    let mut scalars: Vec<(u16, u32)> = (0..32).map(|n| (n, descriptor[usize::from(n) % 4])).collect();
    // Pointers are in the second half of a descriptor, whose upper word is then part of an address.
    scalars.extend([(3, descriptor[3]), (106, 0), (107, 0), (124, 0)]);
    let dispatch = Dispatch {
        scalars,
        vectors: (0..32).map(|n| (n, Initial::Value(if n % 2 == 0 { 0x1_0000 } else { 0 }))).collect(),
        lds: 0x2_0000,
        gds: 0x1000,
        scratch: 64,
        timing: Timing::Adversarial { seed: 1 },
        ..Dispatch::default()
    };
    let outcome = run(&program, &mut memory, &dispatch, None);
    let hazards = outcome.faults.iter().filter_map(|fault| match fault.kind {
        FaultKind::Hazard(rule, _) => Some(rule),
        _ => None,
    });
    let ends = !outcome.faults.iter().any(|fault| {
        matches!(
            fault.kind,
            FaultKind::NoSemantics
                | FaultKind::NotEmulated(_)
                | FaultKind::Memory(MemoryFault { cause: MemoryFaultCause::Unmapped, .. })
                | FaultKind::NotAnInstruction
        )
    });
    (hazards.collect(), ends)
}

fn lines<'a>(part: &[&'a str]) -> Vec<&'a str> {
    part.iter().map(|line| line.trim_start_matches('>').trim()).filter(|line| !line.is_empty()).collect()
}

#[test]
fn hazards_are_reported_where_the_checker_sees_them() {
    let (mut wrong, mut compared, mut unseen) = (Vec::new(), 0, BTreeSet::new());
    let mut rules = BTreeSet::new();
    for case in CASES.split("\n== ").skip(1) {
        let all: Vec<&str> = case.lines().filter(|line| !line.trim().is_empty()).collect();
        let mut head = all[0].split_whitespace();
        let rule = head.next().expect("a rule");
        if STATIC.contains(&rule) || FAULTS.contains(&rule) {
            continue;
        }
        let middle = all.iter().position(|line| *line == "--").expect("two parts");
        let (bad, good) = (lines(&all[1..middle]), lines(&all[middle + 1..]));
        for word in head.filter(|word| word.starts_with("gfx")) {
            let (name, features) = word.split_once('+').unwrap_or((word, ""));
            let gpu = Gpu::new(name).and_then(|gpu| gpu.with_features(features)).expect("a GPU");
            let expected = !DISPUTED.contains(&rule) && !weaker(rule, gpu.generation());
            let (found, ends) = reported(&bad, &gpu);
            compared += 1;
            if found.contains(rule) != expected {
                if ends || !expected {
                    wrong.push(format!("{rule} on {word}: {found:?} in code that breaks it"));
                } else {
                    unseen.insert(format!("{rule} on {word}"));
                }
            }
            if expected {
                rules.insert(rule);
            }
            let there = good.iter().all(|line| assemble(line, &gpu).errors.is_empty());
            if there && reported(&good, &gpu).0.contains(rule) {
                wrong.push(format!("{rule} on {word}: in code that does not break it"));
            }
        }
    }
    eprintln!("{} rules, {compared} cases; not reached by the emulator: {unseen:?}", rules.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    // It has a test of its own.
    assert_eq!(unseen, BTreeSet::from(["nsa_to_vmem on gfx1010".to_owned()]));
}

/// Where sources differ in how much is needed, the least is reported.
#[test]
fn the_weaker_form_of_a_rule_holds() {
    let set = [
        "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s0",
        "s_setreg_b32 hwreg(HW_REG_MODE, 4, 4), s0",
        "s_endpgm",
    ];
    let apart = [set[0], "s_nop 0", set[1], "s_endpgm"];
    for (name, reported_apart) in [("gfx600", false), ("gfx700", false), ("gfx803", true), ("gfx906", true)] {
        let gpu = Gpu::new(name).expect("known");
        assert!(reported(&set, &gpu).0.contains("setreg_setreg"), "{name}");
        assert_eq!(reported(&apart, &gpu).0.contains("setreg_setreg"), reported_apart, "{name}");
    }
}

/// A descriptor of zeros is an image of which nothing is there.
#[test]
fn a_long_image_before_a_buffer() {
    let gpu = Gpu::new("gfx1010").expect("known");
    let image =
        "image_sample_d v[0:3], [v4, v6, v8, v10, v12, v14], s[16:23], s[8:11] dmask:0xf dim:SQ_RSRC_IMG_2D";
    let buffer = |offset: u32| format!("buffer_load_dword v9, v10, s[0:3], 0 offen offset:{offset}");
    let code = |between: &[&str], offset: u32| {
        let buffer = buffer(offset);
        let zero = [
            "s_mov_b64 s[16:17], 0",
            "s_mov_b64 s[18:19], 0",
            "s_mov_b64 s[20:21], 0",
            "s_mov_b64 s[22:23], 0",
        ];
        let lines = [&zero[..], &["s_mov_b32 exec_lo, 0", image], between, &[&buffer, "s_endpgm"]].concat();
        reported(&lines, &gpu)
    };
    let (found, ends) = code(&[], 2);
    assert!(ends && found.contains("nsa_to_vmem"), "{found:?}");
    assert!(!code(&["s_nop 0"], 2).0.contains("nsa_to_vmem"));
    assert!(!code(&[], 8).0.contains("nsa_to_vmem"));
}

/// Any two of the registers that are read count, whatever is written between and behind them; `exec` may be written again.
#[test]
fn partial_forwarding_of_one_of_three_registers() {
    let gpu = Gpu::new("gfx1100").and_then(|gpu| gpu.with_features("+wavefrontsize64")).expect("known");
    let first = ["v_mov_b32 v9, v7", "s_mov_b64 exec, -1", "v_mov_b32 v10, v1", "v_mov_b32 v11, v1"];
    let second = ["v_mov_b32 v17, v2", "v_mov_b32 v8, v3", "v_mov_b32 v12, v1"];
    let last = ["v_add3_u32 v8, v17, v9, v8", "s_endpgm"];
    let found = |parts: &[&[&str]]| reported(&parts.concat(), &gpu).0.contains("valu_partial_forwarding");
    assert!(found(&[&first, &second, &last]));
    assert!(found(&[&first, &second, &["s_mov_b64 exec, -1"], &last]));
    // Three between the writes are too many, as are five behind them.
    assert!(!found(&[&first, &["v_mov_b32 v13, v1"], &second, &last]));
    assert!(!found(&[&first, &second, &["v_mov_b32 v13, v1"; 3], &last]));
    assert!(!found(&[&first, &second, &["s_waitcnt_depctr 0xfff"], &last]));
}

/// A mask is the third source, or vcc; what both sources know is a write and a read by the scalar ALU.
#[test]
fn masks_that_are_written() {
    let gpu = Gpu::new("gfx1100").and_then(|gpu| gpu.with_features("+wavefrontsize64")).expect("known");
    let found = |lines: &[&str]| {
        let all: Vec<&str> = [&["s_mov_b64 vcc, 0"], lines, &["s_endpgm"]].concat();
        reported(&all, &gpu).0.contains("valu_mask_write")
    };
    let (select, write, read) =
        ("v_cndmask_b32 v0, v1, s3, vcc", "s_mov_b64 vcc, -1", "s_mov_b64 s[4:5], vcc");
    assert!(found(&[select, write, read]));
    assert!(found(&[select, write, "v_mov_b32 v4, s8", read]));
    assert!(!found(&[select, "s_mov_b32 s3, 1", "s_mov_b32 s4, s3"]));
    assert!(!found(&[select, "v_mov_b32 v4, s8", write, read]));
    assert!(!found(&[select, "v_cmp_gt_u32 vcc, v4, v5", read]));
    assert!(!found(&[select, write, "v_cndmask_b32 v0, v1, v3, vcc"]));
    for wait in 0..2 {
        let mut lines = vec![select, write, read];
        lines.insert(wait + 1, "s_waitcnt_depctr 0xfffe");
        assert!(!found(&lines));
    }
}
