//! What is missing in a program shows under adversarial timing: with any wait left out the place is reported.

mod data;

use data::Shader;
use std::collections::{BTreeMap, HashMap, HashSet};
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckOptions, check};
use unwedge_isa::amdgcn::{Gfx, Gpu, codec, listing};
use unwedge_sim::amdgcn::{FaultKind, Missing, Program, Timing, WaitCounter, run};
use unwedge_testkit::protections::{LINE, is_padding, protections, weaker, without};

fn errors(words: &[u32], shader: &Shader) -> Vec<CheckFinding> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let report = check(&bytes, &shader.gpu, &CheckOptions::default());
    report.findings.into_iter().filter(|f| f.level == Certainty::Error).collect()
}

/// What the checker says of a shader: the first error at or behind a place, or else before it (a branch whose distance is another
/// now).
fn checked(words: &[u32], shader: &Shader, place: u32) -> Option<CheckFinding> {
    let errors = errors(words, shader);
    errors.iter().find(|f| f.at >= place).or_else(|| errors.first()).cloned()
}

/// Whether a rule is broken along a way that a wave takes: the checker reads what it executes as one line of code, in which every
/// branch goes to the next instruction.
fn broken_on_the_way(words: &[u32], shader: &Shader, rule: &str) -> bool {
    let program = Program::new(words, 0x0080_0000, shader.gpu);
    let mut lines: HashSet<Vec<u32>> = HashSet::new();
    for constant in [2, 13] {
        let mut ways: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        let mut tell = |trace: &unwedge_sim::amdgcn::Trace| {
            let at = trace.at as usize / 4;
            let decoded = codec::decode(&words[at..], &shader.gpu).expect("executed");
            let size = usize::from(decoded.dwords);
            let mut own = words[at..at + size].to_vec();
            if listing::target(&decoded.inst, at, size).is_some() {
                own[0] &= 0xffff_0000;
            }
            ways.entry((trace.workgroup, trace.wave)).or_default().extend(own);
        };
        run(&program, &mut shader.memory(), &shader.dispatch(constant, Timing::Plain), Some(&mut tell));
        lines.extend(ways.into_values());
    }
    lines.iter().any(|line| errors(line, shader).iter().any(|f| f.rule.info().name == rule))
}

/// Findings that only the checker has, as sources differ: the emulator reports what all ask for.
fn is_disputed(finding: &CheckFinding, words: &[u32], shader: &Shader) -> bool {
    let gpu = &shader.gpu;
    let is_vector = |at: u32| {
        let decoded = words.get(at as usize / 4..).and_then(|rest| codec::decode(rest, gpu));
        decoded.is_some_and(|decoded| decoded.inst.row().name.starts_with("v_"))
    };
    match finding.rule.info().name {
        "vmem_read_valu_sgpr" | "m0_gds_msg" | "setreg_setreg" => gpu.generation() <= Gfx::Gfx7,
        "vmem_store_data" => gpu.generation() == Gfx::Gfx6,
        "setreg_other" | "smem_clause_inv" => true,
        // Masks that the vector ALU writes, or reads again: Mesa alone.
        "valu_mask_write" => is_vector(finding.at) || finding.first.is_some_and(is_vector),
        _ => false,
    }
}

/// What becomes of a shader of which a protection is missing, with both constants.
fn consequence(shader: &Shader, words: &[u32], plain: &[Vec<u32>; 2]) -> (bool, bool) {
    let program = Program::new(words, 0x0080_0000, shader.gpu);
    let mut differs = false;
    for seed in 1..=4 {
        for (constant, plain) in [2, 13].into_iter().zip(plain) {
            let (result, faults) = shader.run(&program, constant, Timing::Adversarial { seed });
            let reported = faults.iter().any(|fault| {
                use FaultKind::{Address, Control, Hazard, StillRead, Stored};
                matches!(fault.kind, Stored(..) | Address(..) | Control(..) | StillRead(..) | Hazard(..))
            });
            if reported {
                return (true, true);
            }
            differs |= result != *plain;
        }
    }
    (false, differs)
}

/// One part of a shader's protections: what it is, where, whether it is a counter of `s_waitcnt` that may end something, the words.
type Edit = (String, usize, bool, Vec<u32>);

fn edits_of(shader: &Shader) -> Vec<Edit> {
    let mut all = Vec::new();
    for (opcode, at) in protections(&shader.words, &shader.gpu) {
        let name = opcode.name();
        if name == "s_nop" && is_padding(&shader.words, &shader.gpu, at, LINE) {
            continue;
        }
        let counts = name != "s_nop" && !name.contains("depctr");
        all.push((format!("{name} left out"), at, counts, without(&shader.words, &shader.gpu, at)));
        for weaker in weaker(&shader.words, &shader.gpu, opcode, at) {
            let mut words = shader.words.clone();
            words[at] = weaker.word;
            all.push((format!("{name} {}", weaker.what), at, counts, words));
        }
    }
    all
}

#[test]
fn protections_left_out_are_reported_where_the_input_makes_them_matter() {
    let Some(mut shaders) = data::shaders() else { return };
    if std::env::var_os("UNWEDGE_ALL").is_none() {
        let mut turn = 0;
        shaders.all.retain(|_| {
            turn += 1;
            turn % 17 == 1
        });
    }
    let told = data::of_all(&shaders, |shader| {
        let reached = shader.reached(&[2, 13]);
        let program = shader.program();
        let mut ends = shader.ends(&program, 2, 1);
        ends.extend(shader.ends(&program, 13, 2));
        let plain = [2, 13].map(|constant| shader.run(&program, constant, Timing::Plain).0);
        let mut told = Vec::new();
        for (what, at, counts, words) in edits_of(shader) {
            let place = 4 * at as u32;
            // What is not executed with this input is not seen by running.
            if !reached.contains(&place) {
                continue;
            }
            let finding = checked(&words, shader, place);
            let rule = finding.as_ref().map(|f| f.rule.info().name);
            let (reported, differs) = consequence(shader, &words, &plain);
            let how = match (&finding, reported) {
                (Some(_), true) => "both report it",
                (None, true) => "the emulator alone reports it",
                (None, false) => "neither reports it",
                (Some(_), false) if differs => "the result is another, and not reported",
                (Some(_), false) if counts && !ends.contains(&place) => {
                    "nothing is under way there with this input"
                }
                (Some(finding), false) if is_disputed(finding, &words, shader) => "sources differ",
                (Some(finding), false) if !broken_on_the_way(&words, shader, finding.rule.info().name) => {
                    "only on ways the input does not take"
                }
                (Some(_), false) if rule == Some("wait") => "what it is for does not matter to the result",
                (Some(_), false) => "a hazard that the emulator does not report",
            };
            told.push((how, format!("{what}: {}", rule.unwrap_or("nothing")), place));
        }
        told
    });
    let mut counts: BTreeMap<(&str, String), usize> = BTreeMap::new();
    let mut sums: BTreeMap<&str, usize> = BTreeMap::new();
    for (shader, told) in told {
        for (how, what, place) in told {
            *counts.entry((how, format!("{:?} {what}", shader.gpu.generation()))).or_default() += 1;
            *sums.entry(how).or_default() += 1;
            let silent =
                how == "both report it" || how.starts_with("nothing is under way") || how == "sources differ";
            if !silent {
                eprintln!("{how}: {} {} at {place:#x}: {what}", shader.family, shader.name);
            }
        }
    }
    for ((how, what), count) in &counts {
        eprintln!("{count:6} {how}: {what}");
    }
    eprintln!("{sums:#?}");
    let sum = |how: &str| sums.get(how).copied().unwrap_or(0);
    assert_eq!(sum("the emulator alone reports it"), 0);
    assert_eq!(sum("the result is another, and not reported"), 0);
    let both = sum("both report it");
    let silent = sum("what it is for does not matter to the result")
        + sum("a hazard that the emulator does not report");
    assert!(both * 100 >= (both + silent) * 98, "{both} of {}", both + silent);
}

#[test]
fn a_load_is_unknown_until_its_wait() {
    use unwedge_isa::amdgcn::source::assemble;
    use unwedge_sim::amdgcn::{Dispatch, Initial, SimMemory, run};
    let code = |wait: &str| {
        format!(
            "s_load_dword s4, s[2:3], 0x0\n{wait}\ns_add_u32 s5, s4, 1\nv_mov_b32 v1, s5\n\
                 v_lshlrev_b32 v0, 2, v0\nglobal_store_dword v0, v1, s[2:3]\ns_endpgm\n"
        )
    };
    for (wait, reports) in
        [("s_waitcnt lgkmcnt(0)", false), ("s_nop 0", true), ("s_waitcnt lgkmcnt(1)", true)]
    {
        let gpu = Gpu::new("gfx900").expect("known");
        let made = assemble(&code(wait), &gpu);
        assert!(made.errors.is_empty(), "{:?}", made.errors);
        let words: Vec<u32> = made.sections[0]
            .bytes
            .chunks_exact(4)
            .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
            .collect();
        let program = Program::new(&words, 0, gpu);
        let mut memory = SimMemory::default();
        memory.map(0x1000, vec![7; 256]).expect("free");
        let dispatch = Dispatch {
            scalars: vec![(2, 0x1000), (3, 0)],
            vectors: vec![(0, Initial::LocalId(0))],
            timing: Timing::Adversarial { seed: 1 },
            ..Dispatch::default()
        };
        let outcome = run(&program, &mut memory, &dispatch, None);
        let why = outcome.faults.iter().find_map(|fault| match fault.kind {
            FaultKind::Stored(_, missing) => Some(missing),
            _ => None,
        });
        let expected = reports.then_some(Missing::Load { at: 0, counter: WaitCounter::Lgkm });
        assert_eq!(why, expected, "{wait}: {:?}", outcome.faults);
    }
}
