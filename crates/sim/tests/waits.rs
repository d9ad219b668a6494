//! What is missing in a program shows under adversarial timing: with any wait left out the place is reported.

mod data;
#[allow(dead_code, reason = "the checker's tests use all of it")]
#[path = "../../check/tests/edits/mod.rs"]
mod edits;

use data::Shader;
use edits::{is_padding, protections, weaker, without};
use std::collections::BTreeMap;
use unwedge_check::amdgcn::{Level, Options, check};
use unwedge_isa::amdgcn::{Gen, Gpu};
use unwedge_sim::amdgcn::{Counter, Kind, Missing, Program, Timing};

/// What the checker says of a shader: the first rule that is broken at or behind a place, or else before it (a branch whose distance is
/// another now).
fn checked(words: &[u32], shader: &Shader, place: u32) -> Option<&'static str> {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let report = check(&bytes, &shader.gpu, &Options::default());
    let errors = || report.findings.iter().filter(|f| f.level == Level::Error);
    let found = errors().find(|f| f.at >= place).or_else(|| errors().next());
    found.map(|f| f.rule.info().name)
}

/// Rules that only the checker has, as sources differ: the emulator reports what all ask for.
fn is_weaker(rule: &str, gpu: &Gpu) -> bool {
    match rule {
        "vmem_read_valu_sgpr" | "m0_gds_msg" | "setreg_setreg" => gpu.generation() <= Gen::Gfx7,
        "vmem_store_data" => gpu.generation() == Gen::Gfx6,
        "setreg_other" | "smem_clause_inv" => true,
        // Results of the vector ALU in a mask: Mesa alone.
        "valu_mask_write" => true,
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
                use Kind::{Address, Control, Hazard, StillRead, Stored};
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
    for (name, at) in protections(&shader.words, &shader.gpu) {
        if name == "s_nop" && is_padding(&shader.words, &shader.gpu, at) {
            continue;
        }
        let counts = name != "s_nop" && !name.contains("depctr");
        all.push((format!("{name} left out"), at, counts, without(&shader.words, &shader.gpu, at)));
        for weaker in weaker(&shader.words, &shader.gpu, name, at) {
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
            let rule = checked(&words, shader, place);
            let (reported, differs) = consequence(shader, &words, &plain);
            let how = match (rule, reported) {
                (Some(_), true) => "both report it",
                (None, true) => "the emulator alone reports it",
                (None, false) => "neither reports it",
                (Some(_), false) if differs => "the result is another, and not reported",
                (Some(_), false) if counts && !ends.contains(&place) => {
                    "nothing is under way there with this input"
                }
                (Some(rule), false) if is_weaker(rule, &shader.gpu) => "sources differ",
                (Some("wait"), false) => "what it is for does not matter to the result",
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
    use unwedge_sim::amdgcn::{Dispatch, Initial, Memory, run};
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
        let mut memory = Memory::default();
        memory.map(0x1000, vec![7; 256]).expect("free");
        let dispatch = Dispatch {
            scalars: vec![(2, 0x1000), (3, 0)],
            vectors: vec![(0, Initial::LocalId(0))],
            timing: Timing::Adversarial { seed: 1 },
            ..Dispatch::default()
        };
        let outcome = run(&program, &mut memory, &dispatch, None);
        let why = outcome.faults.iter().find_map(|fault| match fault.kind {
            Kind::Stored(_, missing) => Some(missing),
            _ => None,
        });
        let expected = reports.then_some(Missing::Load { at: 0, counter: Counter::Lgkm });
        assert_eq!(why, expected, "{wait}: {:?}", outcome.faults);
    }
}
