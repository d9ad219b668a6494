//! With any number of threads a grid gives the bytes and faults that one gives.

mod data;

use unwedge_isa::amdgcn::Gpu;
use unwedge_isa::amdgcn::source::assemble;
use unwedge_sim::amdgcn::{Dispatch, Initial, Outcome, Program, SimMemory, Timing, run};

#[test]
fn shaders_give_the_same() {
    let Some(shaders) = data::shaders() else { return };
    for shader in shaders.all.iter().step_by(41) {
        let program = shader.program();
        for timing in [Timing::Plain, Timing::Adversarial { seed: 9 }] {
            let go = |threads: usize| {
                let mut memory = shader.memory();
                let dispatch = Dispatch { threads, ..shader.dispatch(13, timing) };
                let outcome = run(&program, &mut memory, &dispatch, None);
                (memory, outcome)
            };
            assert!(go(1) == go(4), "{} {}", shader.family, shader.name);
        }
    }
}

/// Every workgroup takes numbers from one counter, writes where they say, and reads what the one before it wrote.
#[test]
fn workgroups_that_depend_on_each_other_give_the_same() {
    let gpu = Gpu::new("gfx900").expect("known");
    let code = "v_mov_b32 v1, 0\nv_mov_b32 v2, 1\nglobal_atomic_add v3, v1, v2, s[2:3] glc\n\
                s_waitcnt vmcnt(0)\nv_lshlrev_b32 v4, 2, v3\nglobal_load_dword v5, v4, s[2:3]\n\
                s_waitcnt vmcnt(0)\nv_lshl_add_u32 v5, s4, 16, v5\nv_add_u32 v5, v5, v0\n\
                global_store_dword v4, v5, s[2:3] offset:4\ns_endpgm\n";
    let made = assemble(code, &gpu);
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    let words: Vec<u32> = made.sections[0]
        .bytes
        .chunks_exact(4)
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect();
    let program = Program::new(&words, 0, gpu);
    let go = |threads: usize, timing: Timing| -> (SimMemory, Outcome) {
        let mut memory = SimMemory::default();
        memory.map(0x1_0000, vec![0; 1 << 16]).expect("free");
        let dispatch = Dispatch {
            groups: [40, 1, 1],
            size: [128, 1, 1],
            scalars: vec![(2, 0x1_0000), (3, 0)],
            group_id: [Some(4), None, None],
            vectors: vec![(0, Initial::LocalId(0))],
            timing,
            threads,
            ..Dispatch::default()
        };
        let outcome = run(&program, &mut memory, &dispatch, None);
        (memory, outcome)
    };
    for timing in [Timing::Plain, Timing::Adversarial { seed: 2 }] {
        let one = go(1, timing);
        assert!(one.1.faults.is_empty(), "{:?}", one.1.faults);
        assert_eq!(one.0.get(0x1_0000, 4), Some(&(40 * 128u32).to_le_bytes()[..]));
        for threads in [2, 4, 7] {
            assert!(one == go(threads, timing), "{threads}");
        }
    }
}
