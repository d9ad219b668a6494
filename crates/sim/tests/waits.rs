//! What is missing in a program shows under adversarial timing: with any wait left out the place is reported.

mod data;

use unwedge_isa::amdgcn::codec;
use unwedge_sim::amdgcn::{Counter, Kind, Missing, Program, Timing};

#[test]
fn a_wait_left_out_is_reported() {
    let Some(shaders) = data::shaders() else { return };
    let (mut removed, mut reported, mut shown) = (0, 0, Vec::new());
    for shader in shaders.all.iter().step_by(17) {
        let reached = shader.reached(&[2, 13]);
        let mut at = 0;
        while let Some(decoded) = shader.words.get(at..).and_then(|rest| codec::decode(rest, &shader.gpu)) {
            let name = decoded.inst.row().name;
            let waits = name == "s_waitcnt" || name.starts_with("s_wait_") && name != "s_wait_idle";
            // What is not executed with this input is not seen by running.
            if waits && reached.contains(&(at as u32 * 4)) {
                let mut words = shader.words.clone();
                words[at] = codec::NOP;
                let program = Program::new(&words, 0x0080_0000, shader.gpu);
                // Both ways through the shaders.
                let found = [(2, 1), (13, 2)].into_iter().any(|(constant, seed)| {
                    let (_, faults) = shader.run(&program, constant, Timing::Adversarial { seed });
                    faults.iter().any(|fault| {
                        matches!(
                            fault.kind,
                            Kind::Stored(..) | Kind::Address(..) | Kind::Control(..) | Kind::StillRead(..)
                        )
                    })
                });
                removed += 1;
                reported += usize::from(found);
                if !found {
                    shown.push(format!("{} {} at {:#x}", shader.family, shader.name, at * 4));
                }
            }
            at += usize::from(decoded.dwords);
        }
    }
    eprintln!("{reported} of {removed} waits left out are reported; not: {shown:#?}");
    // A wait may be for a value that does not matter with this input, or be covered by a later one.
    assert!(reported * 100 >= removed * 95, "{reported} of {removed}");
}

#[test]
fn a_load_is_unknown_until_its_wait() {
    use unwedge_isa::amdgcn::{Gpu, source::assemble};
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
