//! What adversarial timing does with memory, counters, lanes, barriers and LDS: each rule with code that relies on too much,
//! and code that does not.

mod rig;

use rig::{Ran, group, late, with};
use unwedge_isa::amdgcn::Reg;
use unwedge_sim::amdgcn::{FaultKind, Missing, Timing, WaitCounter};

/// What an unknown value that is stored in the buffer is missing.
fn missing(name: &str, code: &str) -> Option<Missing> {
    late(name, code).faults.iter().find_map(|fault| match fault.kind {
        FaultKind::Stored(_, missing) => Some(missing),
        _ => None,
    })
}

#[test]
fn scalar_loads_return_in_any_order() {
    let loads = "s_load_dword s10, s[4:5], 0x0\ns_load_dword s11, s[4:5], 0x4\n";
    let end = "v_mov_b32 v7, s10\nglobal_store_dword v[2:3], v7, off";
    for name in ["gfx900", "gfx1010", "gfx1030"] {
        let waits = |n: u32| missing(name, &format!("{loads}s_waitcnt lgkmcnt({n})\n{end}"));
        assert_eq!(waits(1), Some(Missing::Load { at: 0, counter: WaitCounter::Lgkm }), "{name}");
        assert_eq!(waits(0), None, "{name}");
    }
}

#[test]
fn vector_loads_return_in_order() {
    let loads = "global_load_dword v7, v[2:3], off\nglobal_load_dword v8, v[2:3], off offset:4\n";
    let code = |n: u32| format!("{loads}s_waitcnt vmcnt({n})\nglobal_store_dword v[2:3], v7, off");
    assert_eq!(missing("gfx900", &code(1)), None);
    assert_eq!(missing("gfx900", &code(2)), Some(Missing::Load { at: 0, counter: WaitCounter::Vm }));
}

/// LLVM has a load write registers that an earlier one, of which they are not used, writes as well.
#[test]
fn loads_into_the_same_register_are_in_order() {
    let start = "global_load_dwordx2 v[10:11], v[2:3], off\n";
    let later = "global_load_dword v11, v[2:3], off offset:16\n";
    let stored = |reg: u8, n: u32| {
        let store = format!("global_store_dword v[2:3], v{reg}, off");
        missing("gfx942", &format!("{start}{later}s_waitcnt vmcnt({n})\n{store}"))
    };
    assert_eq!(stored(10, 1), None, "the first one is done");
    assert_eq!(stored(10, 2), Some(Missing::Load { at: 0, counter: WaitCounter::Vm }));
    let second = Some(Missing::Load { at: 8, counter: WaitCounter::Vm });
    assert_eq!((stored(11, 1), stored(11, 2)), (second, second));
    assert_eq!(stored(11, 0), None);
    let values = late("gfx942", &format!("{start}{later}s_waitcnt vmcnt(0)\nv_mov_b32 v8, v11")).clean();
    let alone = late("gfx942", &format!("{later}s_waitcnt vmcnt(0)\nv_mov_b32 v8, v11")).clean();
    assert_eq!(values.lanes(8), alone.lanes(8));
}

/// A load of other lanes into the same register changes nothing of the order of two loads, and not that a load was overwritten.
#[test]
fn loads_of_other_lanes_are_kept_apart() {
    let parted = |between: &str| {
        let code = format!(
            "s_mov_b32 exec_lo, 0xffff\nglobal_load_dwordx2 v[10:11], v[2:3], off\n{between}\n\
             s_mov_b32 exec_lo, 0xffff0000\nglobal_load_dword v11, v[2:3], off offset:20\n\
             s_mov_b32 exec_lo, -1\ns_waitcnt vmcnt(0)\nglobal_store_dword v[2:3], v11, off"
        );
        missing("gfx1030", &code)
    };
    assert_eq!(parted("global_load_dword v11, v[2:3], off offset:16"), None);
    assert_eq!(parted(""), None);
    assert!(parted("v_mov_b32 v11, 0").is_some());
}

/// LLVM computes with pairs of which it uses one half, and leaves the other unwritten.
#[test]
fn halves_of_pairs_are_known_by_themselves() {
    let stored = |code: &str, reg: u8| {
        missing("gfx90a", &format!("{code}\nglobal_store_dword v[2:3], v{reg}, off")).is_some()
    };
    let add = "v_mov_b32 v11, 1.0\nv_pk_add_f32 v[12:13], v[10:11], v[10:11]";
    assert_eq!((stored(add, 12), stored(add, 13)), (true, false));
    let upper = "v_mov_b32 v11, 1.0\nv_pk_mul_f32 v[12:13], v[10:11], v[10:11] op_sel:[1,1] op_sel_hi:[0,1]";
    assert_eq!((stored(upper, 12), stored(upper, 13)), (false, true));
    // This one takes its upper half from the lower one of the second source.
    assert!(stored("v_mov_b32 v11, 1.0\nv_pk_mov_b32 v[12:13], v[10:11], v[10:11] op_sel:[0,0]", 13));
}

/// What was there before, which may be what is loaded, is not there while a load is under way; what it leaves is.
#[test]
fn loads_under_way_leave_nothing_of_the_old_value() {
    for (load, left) in [("global_load_dword", 0), ("global_load_short_d16", 0xffff_0000)] {
        let load = format!("{load} v7, v[2:3], off offset:16\n");
        let again = format!("{load}v_mov_b32 v8, v7\ns_waitcnt vmcnt(0)\nv_mov_b32 v9, v7");
        let ran =
            late("gfx900", &format!("v_mov_b32 v7, 0x12345678\n{load}s_waitcnt vmcnt(0)\n{again}")).clean();
        let pairs = || ran.lanes(8).iter().zip(ran.lanes(9));
        assert!(pairs().all(|(before, after)| (before ^ after) & left == 0), "{load}");
        assert!(pairs().filter(|(before, after)| (*before ^ *after) & !left != 0).count() > 60, "{load}");
    }
}

/// Two registers, one step of the counter.
#[test]
fn a_stack_of_rays_counts_once() {
    let stack = "v_mov_b32 v10, 0\nds_bvh_stack_rtn_b32 v11, v10, v5, v[2:5]\n";
    for reg in [10, 11] {
        let code = |n: u32, more: &str| {
            let store = format!("global_store_b32 v[2:3], v{reg}, off");
            missing("gfx1100", &format!("{stack}{more}s_waitcnt lgkmcnt({n})\n{store}"))
        };
        assert!(matches!(code(1, ""), Some(Missing::Load { at: 4, .. })), "v{reg}");
        assert_eq!(code(0, ""), None, "v{reg}");
        assert_eq!(code(1, "ds_load_b32 v12, v1\n"), None, "v{reg}");
    }
}

#[test]
fn lds_and_scalar_memory_share_a_counter_and_no_order() {
    let both = "s_mov_b32 m0, -1\nds_write_b32 v1, v5\nds_read_b32 v7, v1\ns_load_dword s10, s[4:5], 0x0\n";
    let code = |n: u32| format!("{both}s_waitcnt lgkmcnt({n})\nglobal_store_dword v[2:3], v7, off");
    assert!(matches!(missing("gfx900", &code(1)), Some(Missing::Load { counter: WaitCounter::Lgkm, .. })));
    assert_eq!(missing("gfx900", &code(0)), None);
}

/// The buffer is not in LDS: the counter of LDS falls early, that of memory when the result is there.
#[test]
fn flat_loads_need_the_counter_of_where_they_go() {
    for (name, load, store, waits) in [
        ("gfx803", "flat_load_dword", "flat_store_dword", ["s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"]),
        ("gfx900", "flat_load_dword", "flat_store_dword", ["s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"]),
        ("gfx1030", "flat_load_dword", "flat_store_dword", ["s_waitcnt vmcnt(0)", "s_waitcnt lgkmcnt(0)"]),
        ("gfx1200", "flat_load_b32", "flat_store_b32", ["s_wait_loadcnt 0", "s_wait_dscnt 0"]),
    ] {
        let code = |wait: &str| format!("{load} v7, v[2:3]\n{wait}\n{store} v[2:3], v7");
        assert_eq!(missing(name, &code(waits[0])), None, "{name}");
        assert!(missing(name, &code(waits[1])).is_some(), "{name}");
    }
}

#[test]
fn gfx12_has_a_counter_for_each_kind() {
    let both = "ds_store_b32 v1, v5\nds_load_b32 v7, v1\nglobal_load_b32 v8, v[2:3], off\n";
    let store = |wait: &str, n: u32| format!("{both}{wait}\nglobal_store_b32 v[2:3], v{n}, off offset:64");
    assert_eq!(missing("gfx1200", &store("s_wait_dscnt 0", 7)), None);
    assert!(missing("gfx1200", &store("s_wait_loadcnt 0", 7)).is_some());
    assert_eq!(missing("gfx1200", &store("s_wait_loadcnt 0", 8)), None);
    assert!(missing("gfx1200", &store("s_wait_dscnt 0", 8)).is_some());
    assert!(missing("gfx1200", &store("s_wait_kmcnt 0", 8)).is_some());
}

#[test]
fn data_of_gds_is_read_late_until_gfx10() {
    let code = |wait: &str| {
        format!("s_mov_b32 m0, 0x100\ns_nop 0\nds_write_b32 v1, v5 gds\n{wait}\nv_mov_b32 v5, 0")
    };
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010"] {
        let late_read =
            |ran: &Ran| ran.has(|kind| matches!(kind, FaultKind::StillRead(_, _, WaitCounter::Exp)));
        assert!(late_read(&late(name, &code(""))), "{name}");
        assert!(!late_read(&late(name, &code("s_waitcnt expcnt(0)"))), "{name}");
    }
}

#[test]
fn registers_nobody_wrote_are_unknown() {
    assert_eq!(missing("gfx900", "global_store_dword v[2:3], v20, off"), Some(Missing::Uninitialised));
    assert_eq!(
        missing("gfx900", "v_mov_b32 v20, s40\nglobal_store_dword v[2:3], v20, off"),
        Some(Missing::Uninitialised)
    );
    let address = late("gfx900", "s_load_dword s10, s[40:41], 0x0");
    assert!(address.has(|kind| matches!(kind, FaultKind::Address(Reg(40 | 41), Missing::Uninitialised))));
    let branch = late("gfx900", "s_cmp_eq_u32 s40, 0\ns_cbranch_scc1 0");
    assert!(branch.has(|kind| matches!(kind, FaultKind::Control(..))));
}

/// What is unknown of the upper dword of a source does not reach the lower one of a sum or a shift to the left.
#[test]
fn unknown_bits_go_upwards() {
    let store = |code: &str, n: u32| format!("v_mov_b32 v8, 3\n{code}\nglobal_store_dword v[2:3], v{n}, off");
    for (name, carry) in [("gfx900", "s[20:21]"), ("gfx1030", "s20")] {
        let mad = format!("v_mad_u64_u32 v[10:11], {carry}, v8, v8, v[8:9]");
        for (code, low) in [
            (mad.as_str(), true),
            ("v_lshlrev_b64 v[10:11], 2, v[8:9]", true),
            ("v_lshlrev_b64 v[10:11], v9, v[8:9]", false),
            ("v_lshrrev_b64 v[10:11], 2, v[8:9]", false),
        ] {
            assert_eq!(missing(name, &store(code, 10)).is_none(), low, "{name} {code}");
            assert!(missing(name, &store(code, 11)).is_some(), "{name} {code}");
        }
    }
}

#[test]
fn lanes_that_did_not_write_are_unknown() {
    let write = "s_mov_b64 exec, 1\nv_mov_b32 v20, 1\n";
    let store = "v_lshl_add_u32 v8, v0, 2, v2\nv_mov_b32 v9, 0\nglobal_store_dword v[8:9], v20, off";
    assert_eq!(missing("gfx900", &format!("{write}{store}")), None);
    let all = format!("{write}s_mov_b64 exec, -1\n{store}");
    assert_eq!(missing("gfx900", &all), Some(Missing::Uninitialised));
}

#[test]
fn what_a_lane_reads_of_a_disabled_one_is_unknown() {
    let write = "s_mov_b64 exec, 1\nv_mov_b32 v20, 1\ns_mov_b64 exec, -1\n";
    let read = |lane: u32| {
        format!(
            "{write}v_readlane_b32 s10, v20, {lane}\nv_mov_b32 v7, s10\nglobal_store_dword v[2:3], v7, off"
        )
    };
    assert_eq!(missing("gfx900", &read(0)), None);
    assert_eq!(missing("gfx900", &read(1)), Some(Missing::Uninitialised));
}

#[test]
fn a_write_before_the_load_returns_is_lost() {
    let code = "global_load_dword v7, v[2:3], off\nv_mov_b32 v7, 1\ns_waitcnt vmcnt(0)\nglobal_store_dword v[2:3], v7, off";
    assert_eq!(missing("gfx900", code), Some(Missing::OverwrittenLoad { at: 0 }));
}

/// Branches of one condition load the same register in different lanes, or one of them writes it: nothing is lost. Loads return in order.
#[test]
fn lanes_that_a_load_does_not_write_are_written_meanwhile() {
    let load = "global_load_dword v7, v[2:3], off\n";
    for second in [load, "v_mov_b32 v7, 1\n"] {
        for (lanes, lost) in [("0xffffff00", false), ("0xfffffff0", second != load)] {
            let code = format!(
                "s_mov_b64 exec, 0xff\n{load}s_mov_b64 exec, {lanes}\n{second}s_mov_b64 exec, {lanes}\ns_waitcnt vmcnt(0)\n\
                 global_store_dword v[2:3], v7, off"
            );
            assert_eq!(
                missing("gfx900", &code) == Some(Missing::OverwrittenLoad { at: 8 }),
                lost,
                "{lanes} {second}"
            );
        }
    }
}

/// The last load into a lane is what it holds, though another load into other lanes of the register follows.
#[test]
fn a_load_into_other_lanes_replaces_no_load() {
    let code = "global_load_dword v7, v[2:3], off\ns_waitcnt vmcnt(0)\nv_add_u32 v8, 1, v7\nglobal_store_dword v[2:3], v8, off offset:4\n\
                s_waitcnt vmcnt(0)\ns_mov_b64 exec, 1\nglobal_load_dword v7, v[2:3], off\nglobal_load_dword v7, v[2:3], off offset:4\n\
                s_mov_b64 exec, 2\nglobal_load_dword v7, v[2:3], off\ns_waitcnt vmcnt(0)\ns_mov_b64 exec, 1\nv_sub_u32 v7, v7, v8";
    for seed in 1..64 {
        assert_eq!(with("gfx900", code, Timing::Adversarial { seed }).clean().v(7), 0, "seed {seed}");
    }
}

#[test]
fn lds_beyond_what_a_workgroup_has_reads_zero_and_is_not_written() {
    let code = "s_mov_b32 m0, -1\nv_mov_b32 v8, 0x400\nds_write_b32 v8, v5\nds_read_b32 v7, v8\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v7, v7";
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030"] {
        for timing in [Timing::Plain, Timing::Adversarial { seed: 2 }] {
            assert_eq!(with(name, code, timing).clean().v(7), 0, "{name}");
        }
    }
}

#[test]
fn lds_beyond_m0_is_out_of_range_until_gfx8() {
    let code = "s_mov_b32 m0, 0x10\nv_mov_b32 v8, 0x20\nds_write_b32 v8, v5\nds_read_b32 v7, v8\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v7, v7";
    assert_eq!(late("gfx600", code).clean().v(7), 0);
    assert_eq!(late("gfx803", code).clean().v(7), 0);
    assert_eq!(late("gfx900", code).clean().v(7), 5);
}

#[test]
fn lds_nobody_wrote_is_unknown() {
    let code =
        "s_mov_b32 m0, -1\nds_read_b32 v7, v1\ns_waitcnt lgkmcnt(0)\nglobal_store_dword v[2:3], v7, off";
    assert_eq!(missing("gfx900", code), Some(Missing::UnwrittenMemory));
}

#[test]
fn stores_of_one_wave_reach_memory_in_order() {
    let code = "global_store_dword v[2:3], v5, off\nv_mov_b32 v8, 9\nglobal_store_dword v[2:3], v8, off\n\
                global_load_dword v7, v[2:3], off\ns_waitcnt vmcnt(0)\nv_mov_b32 v7, v7";
    for seed in 1..8 {
        assert_eq!(with("gfx900", code, Timing::Adversarial { seed }).clean().v(7), 9);
    }
}

#[test]
fn buffers_end_where_their_descriptor_says() {
    let code = "v_mov_b32 v8, 0x1000\nbuffer_store_dword v5, v8, s[0:3], 0 offen\n\
                buffer_load_dword v7, v8, s[0:3], 0 offen\ns_waitcnt vmcnt(0)\nv_mov_b32 v7, v7";
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030"] {
        assert_eq!(late(name, code).clean().v(7), 0, "{name}");
    }
}

/// Each thread writes its number to LDS and reads that of a thread of another wave.
fn exchanged(name: &str, barrier: &str, seed: u64) -> Ran {
    let (write, read, store, wait) = if name == "gfx1200" {
        ("ds_store_b32", "ds_load_b32", "buffer_store_b32 v7, v8, s[0:3], null offen", "s_wait_dscnt 0")
    } else {
        ("ds_write_b32", "ds_read_b32", "buffer_store_dword v7, v8, s[0:3], 0 offen", "s_waitcnt lgkmcnt(0)")
    };
    let code = format!(
        "s_mov_b32 m0, -1\nv_lshlrev_b32 v8, 2, v0\n{write} v8, v0\n{wait}\n{barrier}\nv_xor_b32 v9, 0x100, v8\n\
         {read} v7, v9\n{wait}\n{store}"
    );
    group(name, &code, 128, Timing::Adversarial { seed })
}

#[test]
fn a_barrier_holds_waves_until_all_have_come() {
    for (name, barrier) in [
        ("gfx600", "s_barrier"),
        ("gfx803", "s_barrier"),
        ("gfx900", "s_barrier"),
        ("gfx1010", "s_barrier"),
        ("gfx1030", "s_barrier"),
        ("gfx1200", "s_barrier_signal -1\ns_barrier_wait -1"),
    ] {
        for seed in 1..8 {
            let words = exchanged(name, barrier, seed).clean().words;
            assert!((0..128).all(|thread| words[thread] == thread as u32 ^ 64), "{name} {seed}");
        }
        let unknown =
            |seed| exchanged(name, "s_nop 0", seed).has(|kind| matches!(kind, FaultKind::Stored(..)));
        assert!((1..32).any(unknown), "{name}: without it some wave reads what is not written yet");
    }
}

#[test]
fn a_wave_that_has_ended_holds_back_nobody() {
    let code = "v_readfirstlane_b32 s10, v0\ns_nop 4\ns_cmp_lg_u32 s10, 0\ns_cbranch_scc1 2\ns_barrier\ns_mov_b32 s11, 1";
    assert_eq!(group("gfx900", code, 128, Timing::Adversarial { seed: 1 }).clean().s(11), 1);
}

/// Unknown bits behind the one that is looked for do not matter, as above a half with a sentinel.
#[test]
fn the_first_bit_of_a_register_of_which_a_half_is_unknown() {
    for (first, known) in [("v_ffbl_b32", true), ("v_ffbh_u32", false)] {
        // The upper half of `v20` is what nobody wrote.
        let code = format!("v_add_nc_u16 v20, 0, 8\n{first} v7, v20\nglobal_store_dword v[2:3], v7, off");
        assert_eq!(missing("gfx1030", &code).is_none(), known, "{first}");
    }
}

/// However many accesses nobody waits for: a full counter has the oldest done.
#[test]
fn accesses_nobody_waits_for_stay_few() {
    let lds = "s_mov_b32 m0, -1\n";
    for (name, code, most) in [
        ("gfx803", "flat_store_dword v[2:3], v5", 15 + 15),
        ("gfx900", "global_store_dword v[2:3], v5, off", 63),
        ("gfx900", "global_load_dword v7, v[2:3], off", 63 + 1),
        ("gfx900", "global_load_dword v7, v[2:3], off\nglobal_load_dword v8, v[2:3], off", 63 + 2),
        ("gfx900", "ds_write_b32 v1, v5", 15),
        ("gfx900", "s_load_dword s20, s[4:5], 0x0", 15 + 1),
        ("gfx900", "ds_read_b32 v7, v1\ns_load_dword s20, s[4:5], 0x0", 15 + 2),
        ("gfx600", "buffer_store_dword v5, off, s[0:3], 0", 15 + 1),
        ("gfx1030", "global_store_dword v[2:3], v5, off", 63),
        ("gfx1100", "ds_store_b32 v1, v5", 63),
        ("gfx1200", "s_load_b32 s20, s[4:5], 0x0", 31 + 1),
        ("gfx1200", "global_load_b32 v7, v[2:3], off\nglobal_store_b32 v[2:3], v5, off", 63 + 63 + 1),
    ] {
        let lds = if code.starts_with("ds_") && name < "gfx9" { lds } else { "" };
        let add = if name == "gfx1200" { "s_add_co_u32" } else { "s_add_u32" };
        let code = format!(
            "{lds}s_mov_b32 s40, 0\nloop:\n{code}\n{add} s40, s40, 1\n\
             s_cmp_lt_u32 s40, 100000\ns_cbranch_scc1 loop"
        );
        let (faults, pending) = rig::pending(name, &code);
        assert!(faults.is_empty(), "{name} {code}: {faults:?}");
        assert!(pending <= most, "{name} {code}: {pending}");
    }
}

/// What a full counter has done is done, but only a wait tells so of a result.
#[test]
fn a_full_counter_is_no_wait() {
    for (name, load, store, full, wait) in [
        ("gfx900", "global_load_dword", "global_store_dword", 63, "s_waitcnt vmcnt(0)"),
        ("gfx900", "global_load_dword", "global_store_dword", 63, "s_waitcnt vmcnt(63)"),
        ("gfx1030", "global_load_dword", "global_load_dword", 63, "s_waitcnt vmcnt(63)"),
        ("gfx1200", "global_load_b32", "global_load_b32", 63, "s_wait_loadcnt 63"),
    ] {
        let more = if store.contains("store") {
            format!("{store} v[2:3], v5, off offset:64\n").repeat(full)
        } else {
            (0..full).map(|n| format!("{load} v{}, v[2:3], off\n", 100 + n)).collect()
        };
        let end = if name == "gfx1200" { "global_store_b32" } else { "global_store_dword" };
        let code = |wait: &str| format!("{load} v7, v[2:3], off\n{more}{wait}\n{end} v[2:3], v7, off");
        assert!(matches!(missing(name, &code("")), Some(Missing::Load { at: 0, .. })), "{name}");
        assert_eq!(missing(name, &code(wait)), None, "{name} {wait}");
    }
}
