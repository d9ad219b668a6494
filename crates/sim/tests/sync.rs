//! What waves of a workgroup share beside memory: GWS, ordered counts, registers of streamout, stacks of rays.

mod rig;

use unwedge_sim::amdgcn::{Dispatch, FaultKind, OrderedState, Outcome, Program, SimMemory, Timing, run};

const TIMINGS: [Timing; 4] = [
    Timing::Plain,
    Timing::Adversarial { seed: 1 },
    Timing::Adversarial { seed: 2 },
    Timing::Adversarial { seed: 33 },
];

/// Runs so many waves; `s20` holds a wave's number. Gives the words of the buffer.
fn go(name: &str, code: &str, waves: u32, groups: u32, timing: Timing) -> (Vec<u32>, Outcome) {
    let gpu = rig::gpu(name);
    let lanes = gpu.lanes();
    let shift = if gpu.wave64() { 6 } else { 5 };
    let text = format!("v_readfirstlane_b32 s20, v0\ns_lshr_b32 s20, s20, {shift}\n{code}\ns_endpgm\n");
    let program = Program::new(&rig::words(&text, &gpu), 0, gpu);
    let mut memory = SimMemory::default();
    memory.map(rig::BUFFER, vec![0; rig::SIZE]).expect("free");
    let dispatch = Dispatch {
        size: [waves * lanes, 1, 1],
        groups: [groups, 1, 1],
        steps: 20_000,
        ..rig::dispatch(&gpu, timing)
    };
    let outcome = run(&program, &mut memory, &dispatch, None);
    let bytes = memory.get(rig::BUFFER, rig::SIZE).expect("mapped");
    (bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(), outcome)
}

/// `v10` is stored at a dword of the buffer, by the first lane.
fn store(name: &str, index: &str) -> String {
    let (one, dword) = if name.starts_with("gfx11") {
        ("s_mov_b32 exec_lo, 1", "b32")
    } else {
        ("s_mov_b64 exec, 1", "dword")
    };
    let all = if name.starts_with("gfx11") { "s_mov_b32 exec_lo, -1" } else { "s_mov_b64 exec, -1" };
    format!(
        "{one}\ns_lshl_b32 s21, {index}, 2\nv_mov_b32 v20, s21\nglobal_store_{dword} v20, v10, s[4:5]\n{all}\n"
    )
}

fn clean(name: &str, code: &str, waves: u32) -> Vec<Vec<u32>> {
    TIMINGS
        .iter()
        .map(|timing| {
            let (words, outcome) = go(name, code, waves, 1, *timing);
            assert!(outcome.faults.is_empty(), "{name} {timing:?}: {:?}", outcome.faults);
            words
        })
        .collect()
}

const GPUS: [&str; 3] = ["gfx900", "gfx1030+wavefrontsize64", "gfx1100"];

fn init(count: u32) -> String {
    format!(
        "s_mov_b32 m0, 0x30000\ns_nop 0\ns_cmp_lg_u32 s20, 0\ns_cbranch_scc1 ready\nv_mov_b32 v9, {count}\n\
         ds_gws_init v9 gds\ns_waitcnt lgkmcnt(0) & expcnt(0)\nready:\ns_barrier\n"
    )
}

/// What each wave wrote before the barrier every wave reads behind it; twice, so that the barrier starts anew.
#[test]
fn barriers_wait_for_all_waves() {
    for name in GPUS {
        let wait = if name == "gfx900" { "s_waitcnt vmcnt(0)" } else { "s_waitcnt_vscnt null, 0x0" };
        let load = if name == "gfx1100" { "global_load_b128" } else { "global_load_dwordx4" };
        let add = if name == "gfx900" { "v_add_u32" } else { "v_add_nc_u32" };
        let round = |from: u32, to: u32| {
            format!(
                "s_add_u32 s22, s20, {from}\n{}{wait}\nv_mov_b32 v11, 3\nds_gws_barrier v11 gds\n\
                 s_waitcnt lgkmcnt(0) & expcnt(0)\nv_mov_b32 v20, {}\n{load} v[12:15], v20, s[4:5]\ns_waitcnt vmcnt(0)\n\
                 {add} v10, v12, v13\n{add} v10, v10, v14\n{add} v10, v10, v15\ns_add_u32 s22, s20, {to}\n{}",
                store(name, "s22"),
                from * 4,
                store(name, "s22"),
            )
        };
        let code = format!(
            "{}s_lshl_b32 s23, 1, s20\nv_mov_b32 v10, s23\n{}{}",
            init(3),
            round(0, 8),
            round(16, 32)
        );
        for words in clean(name, &code, 4) {
            assert_eq!(words[8..12], [15; 4], "{name}");
            assert_eq!(words[32..36], [60; 4], "{name}");
        }
    }
}

/// Wave 0 waits for what wave 1 does first.
#[test]
fn semaphores_are_taken_when_they_were_given() {
    for (give, name) in
        [("ds_gws_sema_v gds", "gfx900"), ("v_mov_b32 v9, 1\nds_gws_sema_br v9 gds", "gfx1100")]
    {
        let wait = if name == "gfx900" { "s_waitcnt vmcnt(0)" } else { "s_waitcnt_vscnt null, 0x0" };
        let load = if name == "gfx1100" { "global_load_b32" } else { "global_load_dword" };
        let code = format!(
            "{}s_cmp_eq_u32 s20, 0\ns_cbranch_scc1 take\nv_mov_b32 v10, 7\n{}{wait}\n{give}\n\
             s_waitcnt lgkmcnt(0) & expcnt(0)\ns_endpgm\ntake:\nds_gws_sema_p gds\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v20, 4\n\
             {load} v10, v20, s[4:5]\ns_waitcnt vmcnt(0)\n{}",
            init(0),
            store(name, "1"),
            store(name, "2")
        );
        for words in clean(name, &code, 2) {
            assert_eq!(words[1..3], [7, 7], "{name}");
        }
    }
}

#[test]
fn all_that_wait_can_be_let_go() {
    let code = format!(
        "{}s_cmp_eq_u32 s20, 3\ns_cbranch_scc1 free\nds_gws_sema_p gds\ns_branch done\nfree:\ns_sleep 1\n\
         ds_gws_sema_release_all gds\ndone:\nv_mov_b32 v10, 1\n{}",
        init(0),
        store("gfx900", "s20")
    );
    // Plain timing has the others wait first; else some may come too late, and wait for ever.
    let (words, outcome) = go("gfx900", &code, 4, 1, Timing::Plain);
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    assert_eq!(words[..4], [1; 4]);
}

#[test]
fn a_wait_that_cannot_end_is_a_fault() {
    let stuck = |outcome: &Outcome| {
        outcome
            .faults
            .iter()
            .any(|fault| matches!(fault.kind, FaultKind::Undefined(what) if what.starts_with("waits")))
    };
    for name in GPUS {
        for timing in TIMINGS {
            let (_, outcome) = go(name, &format!("{}ds_gws_sema_p gds", init(0)), 3, 1, timing);
            assert!(stuck(&outcome) && outcome.steps < 200, "{name}: {:?}", outcome.faults);
            // Of two workgroups one runs after the other.
            let code = format!("{}v_mov_b32 v9, 3\nds_gws_barrier v9 gds", init(3));
            let (_, outcome) = go(name, &code, 2, 2, timing);
            assert!(stuck(&outcome) && outcome.groups == 0, "{name}: {:?}", outcome.faults);
        }
    }
}

/// Waves take their turns in the order of the numbers in `m0`, whichever arrives first.
#[test]
fn ordered_counts_go_by_the_waves_numbers() {
    let code = format!(
        "s_or_b32 m0, s20, 0x100000\ns_nop 0\ns_add_u32 s22, s20, 1\nv_mov_b32 v11, s22\n\
         ds_ordered_count v10, v11 offset:0x104 gds\ns_waitcnt lgkmcnt(0) & expcnt(0)\n{}\
         v_mov_b32 v11, 100\nv_mov_b32 v12, 20\ns_waitcnt expcnt(0)\nds_read_b32 v10, v12 gds\ns_waitcnt lgkmcnt(0) & expcnt(0)\n",
        store("gfx900", "s20")
    );
    for words in clean("gfx900", &code, 4) {
        assert_eq!(words[..4], [0, 1, 3, 6]);
    }
    // Four counters at once, one for each of the first lanes; then they are swapped.
    let code = "s_mov_b32 m0, 0\ns_nop 0\nv_add_nc_u32 v11, 1, v0\nds_ordered_count v10, v11 offset:0xc000 gds\n\
         s_waitcnt lgkmcnt(0)\nds_ordered_count v12, v11 offset:0xd100 gds\ns_waitcnt lgkmcnt(0)\n\
         s_mov_b64 exec, 15\nv_lshlrev_b32 v20, 2, v0\nglobal_store_dword v20, v12, s[4:5]\ns_mov_b64 exec, -1\n";
    for words in clean("gfx1030+wavefrontsize64", code, 1) {
        assert_eq!(words[..5], [1, 2, 3, 4, 0]);
    }
}

/// A workgroup of a draw waits for its turn, adds to streamout registers, and passes the turn on.
#[test]
fn workgroups_take_turns() {
    let code = "s_mov_b32 m0, 5\ns_mov_b32 exec_lo, 1\nv_mov_b32 v11, 0\nds_ordered_count v10, v11 gds\ns_waitcnt lgkmcnt(0)\n\
                v_mov_b32 v12, 7\nds_add_gs_reg_rtn v[14:15], v12 offset:8 gds\ns_waitcnt lgkmcnt(0)\n\
                ds_ordered_count v13, v11 offset:0x300 gds\ns_waitcnt lgkmcnt(0)\ns_endpgm";
    let go = |turn| {
        let gpu = rig::gpu("gfx1100");
        let program = Program::new(&rig::words(code, &gpu), 0, gpu);
        let mut before = OrderedState { turn, ..OrderedState::default() };
        before.streamout[2] = 100;
        let dispatch =
            Dispatch { ordered: before, gds: 64, steps: 20_000, ..rig::dispatch(&gpu, Timing::Plain) };
        (before, run(&program, &mut SimMemory::default(), &dispatch, None))
    };
    let (mut before, outcome) = go(5);
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    (before.turn, before.streamout[2]) = (6, 107);
    assert_eq!(outcome.ordered, before);
    let (before, outcome) = go(4);
    assert_eq!((outcome.groups, outcome.ordered), (0, before), "it is not its turn");
    assert!(outcome.faults.iter().any(|fault| matches!(fault.kind, FaultKind::Undefined(_))));
}

#[test]
fn registers_of_streamout_count_lane_by_lane() {
    let code = "v_mov_b32 v12, 5\nds_add_gs_reg_rtn v[10:11], v12 offset:4 gds\ns_waitcnt lgkmcnt(0)\n\
                v_mov_b32 v13, -1\nds_add_gs_reg_rtn v[14:15], v13 offset:36 gds\ns_waitcnt lgkmcnt(0)\n\
                ds_sub_gs_reg_rtn v[16:17], v12 offset:4 gds\ns_waitcnt lgkmcnt(0)\n";
    let ran = rig::plain("gfx1100", code).clean();
    for lane in 0..32 {
        assert_eq!(ran.lanes(10)[lane], 5 * lane as u32);
        let sum = u64::from(u32::MAX) * lane as u64;
        assert_eq!((ran.lanes(14)[lane], ran.lanes(15)[lane]), (sum as u32, (sum >> 32) as u32));
        assert_eq!(ran.lanes(16)[lane], 5 * (32 - lane as u32));
    }
    // Without a wait the result is not there.
    let late = |wait: &str| {
        let code = format!(
            "v_mov_b32 v12, 5\nds_add_gs_reg_rtn v[10:11], v12 offset:4 gds\n{wait}\n{}",
            store("gfx1100", "0")
        );
        go("gfx1100", &code, 1, 1, Timing::Adversarial { seed: 4 }).1
    };
    assert!(late("").faults.iter().any(|fault| matches!(fault.kind, FaultKind::Stored(..))));
    assert!(late("s_waitcnt lgkmcnt(0)").faults.is_empty());
}

#[test]
fn halves_are_exchanged_if_they_say_so() {
    for name in ["gfx701", "gfx900", "gfx1030", "gfx1100", "gfx1200"] {
        let wait = if name == "gfx1200" { "s_wait_dscnt 0" } else { "s_waitcnt lgkmcnt(0)" };
        let (write, read) = if name < "gfx11" || name == "gfx900" || name == "gfx701" {
            ("ds_write_b64", "ds_read_b64")
        } else {
            ("ds_store_b64", "ds_load_b64")
        };
        let code = format!(
            "s_mov_b32 m0, -1\nv_lshlrev_b32 v10, 3, v0\nv_mov_b32 v11, 0x11\nv_mov_b32 v12, 0x22\n{write} v10, v[11:12]\n\
             v_mov_b32 v13, 0x80000033\nv_mov_b32 v14, 0x44\n{wait}\nds_condxchg32_rtn_b64 v[15:16], v10, v[13:14]\n\
             {wait}\n{read} v[17:18], v10\n{wait}\n"
        );
        let ran = rig::plain(name, &code).clean();
        assert_eq!([15, 16, 17, 18].map(|n| ran.v(n)), [0x11, 0x22, 0x33, 0x22], "{name}");
        assert!(rig::late(name, &code).faults.is_empty(), "{name}");
    }
}

/// The last of four nodes comes next, the others wait on the stack, the newest on top.
#[test]
fn stacks_of_rays() {
    let call = "ds_bvh_stack_rtn_b32 v30, v10, v11, v[12:15] offset:0x1000\ns_waitcnt lgkmcnt(0)\n";
    let nodes = |n: [i32; 4], last: i32| {
        let moves: String =
            n.iter().zip(12..).map(|(node, reg)| format!("v_mov_b32 v{reg}, {node}\n")).collect();
        format!("{moves}v_mov_b32 v11, {last}\n{call}")
    };
    // A stack of 16 entries for each of 32 lanes, from lane times four on.
    let start = "v_lshlrev_b32 v10, 18, v0\n";
    let after = |steps: &[([i32; 4], i32)]| {
        let code: String = steps.iter().map(|(n, last)| nodes(*n, *last)).collect();
        let text = format!("{start}{code}");
        let with = |timing| {
            let gpu = rig::gpu("gfx1100");
            let program = Program::new(&rig::words(&format!("{text}s_endpgm"), &gpu), 0, gpu);
            let mut seen = (0, 0);
            let dispatch = Dispatch { lds: 0x2000, ..rig::dispatch(&gpu, timing) };
            let outcome = run(
                &program,
                &mut SimMemory::default(),
                &dispatch,
                Some(&mut |trace| {
                    for (reg, values) in &trace.writes {
                        if reg.is_vgpr() && reg.index() == 30 {
                            seen.0 = values[3];
                        }
                        if reg.is_vgpr() && reg.index() == 10 {
                            seen.1 = values[3];
                        }
                    }
                }),
            );
            assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
            seen
        };
        with(Timing::Adversarial { seed: 7 });
        with(Timing::Plain)
    };
    let base = 3 << 18;
    let four = ([40, 41, 42, 43], -1);
    assert_eq!(after(&[four]), (43, base + 3));
    let none = ([-1; 4], -1);
    assert_eq!(after(&[four, none]), (42, base + 2));
    assert_eq!(after(&[four, none, none, none]), (40, base));
    // Empty: the search ends.
    assert_eq!(after(&[none]), (u32::MAX - 1, base));
    // What comes from the last node visited on was seen before.
    assert_eq!(after(&[([50, 51, 52, 53], 52)]), (51, base + 1));
}

/// The operand of GWS is read late.
#[test]
fn operands_of_gws_are_held() {
    let held = |wait: &str| {
        let code =
            format!("s_mov_b32 m0, 0\ns_nop 0\nv_mov_b32 v9, 1\nds_gws_init v9 gds\n{wait}\nv_mov_b32 v9, 0");
        rig::late("gfx900", &code).has(|kind| matches!(kind, FaultKind::StillRead(..)))
    };
    assert!(held("") && !held("s_waitcnt expcnt(0)"));
}

/// Ordered counts hold their operand and return late, out of order with LDS.
#[test]
fn ordered_counts_are_late() {
    let go = |between: &str, end: &str| {
        let code = format!(
            "s_mov_b64 exec, 1\ns_mov_b32 m0, 0\ns_nop 0\nv_mov_b32 v9, 1\nds_ordered_count v10, v9 offset:0x100 gds\n{between}\n{end}"
        );
        rig::late("gfx900", &code)
    };
    let store = "global_store_dword v[2:3], v10, off";
    let missing = |ran: &rig::Ran| ran.has(|kind| matches!(kind, FaultKind::Stored(..)));
    assert!(missing(&go("", store)));
    assert!(!missing(&go("s_waitcnt lgkmcnt(0)", store)));
    let lds = "s_mov_b32 m0, -1\nds_write_b32 v1, v5\ns_waitcnt lgkmcnt(1)";
    assert!(missing(&go(lds, store)));
    let held = |wait: &str| go(wait, "v_mov_b32 v9, 0").has(|kind| matches!(kind, FaultKind::StillRead(..)));
    assert!(held("") && !held("s_waitcnt expcnt(0)"));
}
