//! The unofficial notes on AMD's instruction set, entry by entry: what vendors' manuals say otherwise, and what hardware gets
//! wrong. Each test is an entry.

mod rig;

use rig::{gpu, late, plain, words};
use unwedge_isa::amdgcn::source::assemble;
use unwedge_sim::amdgcn::FaultKind;

const ALL: [&str; 10] =
    ["gfx600", "gfx700", "gfx803", "gfx900", "gfx906", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

fn assembles(name: &str, line: &str) -> bool {
    assemble(line, &gpu(name)).errors.is_empty()
}

/// That a hazard is reported of code, and not of other codes.
fn hazard(name: &str, rule: &str, bad: &str, good: &[&str]) {
    let found = late(name, bad).hazards();
    assert!(found.contains(rule), "{rule} on {name}: {found:?}");
    for good in good {
        let found = late(name, good).hazards();
        assert!(!found.contains(rule), "{rule} on {name} in {good}");
    }
}

#[test]
fn v_sad_u32_takes_the_unsigned_distance() {
    for name in ALL {
        let ran = plain(name, "v_sad_u32 v7, -5, 0, 0");
        assert_eq!(ran.v(7), 4294967291, "{name}");
    }
}

#[test]
fn s_bfe_writes_scc() {
    for name in ALL {
        let some = plain(name, "s_cmp_eq_u32 0, 1\ns_bfe_u32 s10, s6, 0x30000");
        assert!(some.scc() && some.s(10) == 7, "{name}");
        let none = plain(name, "s_cmp_eq_u32 0, 0\ns_bfe_i32 s10, s6, 0x80008");
        assert!(!none.scc() && none.s(10) == 0, "{name}");
        let wide = plain(name, "s_cmp_eq_u32 0, 1\ns_bfe_u64 s[10:11], s[6:7], 0x40020");
        assert!(wide.scc() && wide.s(10) == 8, "{name}");
        let wide = plain(name, "s_cmp_eq_u32 0, 0\ns_bfe_i64 s[10:11], s[6:7], 0x40008");
        assert!(!wide.scc(), "{name}");
    }
}

#[test]
fn v_bcnt_u32_b32_adds_its_second_source() {
    for name in ALL {
        assert_eq!(plain(name, "v_bcnt_u32_b32 v7, 15, 0").v(7), 4, "{name}");
        assert_eq!(plain(name, "v_bcnt_u32_b32 v7, 15, v5").v(7), 9, "{name}");
    }
}

#[test]
fn offset_of_scalar_stores_is_in_m0() {
    for name in ["gfx803", "gfx900"] {
        let end = "\ns_waitcnt lgkmcnt(0)\ns_dcache_wb";
        let stored =
            late(name, &format!("s_mov_b32 m0, 16\ns_nop 0\ns_store_dword s6, s[4:5], m0{end}")).clean();
        assert_eq!(stored.words[4], 7, "{name}");
        let stored = late(name, &format!("s_store_dword s6, s[4:5], 0x20{end}")).clean();
        assert_eq!(stored.words[8], 7, "{name}");
        let other = format!("s_mov_b32 s10, 16\ns_store_dword s6, s[4:5], s10{end}");
        if assembles(name, "s_store_dword s6, s[4:5], s10") {
            assert!(late(name, &other).has(|kind| matches!(kind, FaultKind::Undefined(_))), "{name}");
        }
    }
}

#[test]
fn scalar_stores_and_atomics_are_there_on_gfx10_and_not_on_gfx10_3() {
    let code = "s_store_dword s6, s[4:5], 0x10\ns_waitcnt lgkmcnt(0)\ns_atomic_add s7, s[4:5], 0x10\n\
                s_waitcnt lgkmcnt(0)\ns_dcache_wb";
    assert_eq!(late("gfx1010", code).clean().words[4], 15);
    assert!(!assembles("gfx1030", "s_store_dword s6, s[4:5], 0x10"));
    assert!(!assembles("gfx1030", "s_atomic_add s6, s[4:5], 0x10"));
}

#[test]
fn data_of_vector_stores_is_read_late_only_on_gfx6() {
    let code = "buffer_store_dword v5, v1, s[0:3], 0 offen\n";
    let still = |kind: &FaultKind| matches!(kind, FaultKind::StillRead(..));
    for name in ["gfx600", "gfx803", "gfx900", "gfx906", "gfx1010", "gfx1030"] {
        let ran = late(name, &format!("{code}v_mov_b32 v5, 0"));
        assert_eq!(ran.has(still), name == "gfx600", "{name}: {:?}", ran.faults);
        assert!(name == "gfx600" || ran.words[0] == 5, "{name}");
    }
    let waited = late("gfx600", &format!("{code}s_waitcnt expcnt(0)\nv_mov_b32 v5, 0")).clean();
    assert_eq!(waited.words[0], 5);
}

#[test]
fn opcodes_of_image_atomics_on_gfx8_are_those_of_the_vega_guide() {
    for (name, opcode) in [("swap", 16), ("cmpswap", 17), ("add", 18), ("sub", 19)] {
        let data = if name == "cmpswap" { "v[4:5]" } else { "v4" };
        let mask = if name == "cmpswap" { 3 } else { 1 };
        let word =
            words(&format!("image_atomic_{name} {data}, v[0:1], s[0:7] dmask:{mask} unorm"), &gpu("gfx803"))
                [0];
        assert_eq!(word >> 18 & 0x7f, opcode, "{name}");
    }
}

#[test]
fn interpolation_on_gfx9_is_encoded_as_110101() {
    let word = words("v_interp_p1_f32 v0, v1, attr0.x", &gpu("gfx900"))[0];
    assert_eq!(word >> 26, 0b110101);
}

#[test]
fn opcodes_of_vop1_in_vop3_on_gfx10_have_0x180_added() {
    let short = words("v_not_b32_e32 v0, v1", &gpu("gfx1010"))[0] >> 9 & 0xff;
    let long = words("v_not_b32_e64 v0, v1", &gpu("gfx1010"))[0] >> 16 & 0x3ff;
    assert_eq!(long, short + 0x180);
}

#[test]
fn flat_instructions_of_gfx10_have_no_nv_and_name_no_scalar_address_by_null() {
    assert!(assembles("gfx900", "global_load_dword v0, v[2:3], off nv") || gpu("gfx900").name() == "gfx900");
    assert!(!assembles("gfx1010", "global_load_dword v0, v[2:3], off nv"));
    let saddr = |line: &str, name: &str| words(line, &gpu(name))[1] >> 16 & 0x7f;
    assert_eq!(saddr("global_load_dword v0, v[2:3], off", "gfx1010"), 0x7d);
    assert_eq!(saddr("scratch_load_dword v0, v1, off", "gfx1010"), 0x7d);
    assert_eq!(saddr("scratch_load_dword v0, off, off", "gfx1030"), 0x7f);
    assert_eq!(
        late("gfx1010", "global_load_dword v7, v[2:3], off offset:4\ns_waitcnt vmcnt(0)\nv_mov_b32 v7, v7")
            .clean()
            .v(7),
        1
    );
}

#[test]
fn zero_wins_in_legacy_products() {
    for name in ALL {
        let legacy = if assembles(name, "v_mul_legacy_f32 v7, 0, v1") {
            "v_mul_legacy_f32"
        } else {
            "v_mul_dx9_zero_f32"
        };
        let code = |mul: &str| format!("v_mov_b32 v8, 0x7f800000\n{mul} v7, 0, v8");
        assert_eq!(plain(name, &code(legacy)).v(7), 0, "{name}");
        assert_eq!(plain(name, &code("v_mul_f32")).v(7) & 0x7fff_ffff, 0x7fc0_0000, "{name}");
        let negative = format!("v_mov_b32 v8, 0x80000000\n{legacy} v7, 1.0, v8");
        assert_eq!(plain(name, &negative).v(7), 0, "{name}: zero has no sign");
    }
    assert!(!assembles("gfx900", "v_mac_legacy_f32 v0, v1, v2"));
    assert!(assembles("gfx600", "v_mac_legacy_f32 v0, v1, v2"));
}

#[test]
fn loads_that_bypass_both_caches_say_so_and_stores_need_not() {
    let load = "global_load_dword v7, v[2:3], off offset:8 glc dlc\ns_waitcnt vmcnt(0)\nv_mov_b32 v7, v7";
    assert_eq!(late("gfx1010", load).clean().v(7), 2);
    let word = words("global_store_dword v[2:3], v5, off glc", &gpu("gfx1010"))[0];
    assert_eq!((word >> 12 & 1, word >> 16 & 1), (0, 1), "only glc is set");
}

#[test]
fn scalar_stores_need_s_dcache_wb() {
    for name in ["gfx803", "gfx900", "gfx906", "gfx1010"] {
        let store = "s_store_dword s6, s[4:5], 0x10\ns_waitcnt lgkmcnt(0)";
        hazard(name, "dcache_wb", store, &[&format!("{store}\ns_dcache_wb")]);
    }
}

#[test]
fn subvector_loops_branch_relative_to_the_next_instruction() {
    // Both halves of the wave pass the loop's body once.
    let code = "s_mov_b64 s[10:11], exec\ns_mov_b32 s12, 0\ns_subvector_loop_begin s14, Lend\nLbody:\n\
                s_add_u32 s12, s12, 1\ns_subvector_loop_end s14, Lbody\nLend:\ns_mov_b32 s13, s12";
    assert_eq!(plain("gfx1010+wavefrontsize64", code).clean().s(13), 2);
}

#[test]
fn scalar_loads_corrupt_vccz_on_gfx6_and_gfx7() {
    let load = "s_load_dword s10, s[4:5], 0x0\ns_waitcnt lgkmcnt(0)\n";
    for name in ["gfx600", "gfx700"] {
        let good = format!("{load}s_mov_b64 vcc, vcc\ns_cbranch_vccz 0");
        hazard(name, "vccz_smem", &format!("{load}s_cbranch_vccz 0"), &[&good, "s_cbranch_vccnz 0"]);
    }
    assert!(late("gfx803", &format!("{load}s_cbranch_vccz 0")).hazards().is_empty());
}

#[test]
fn smem_store_followed_by_a_load() {
    let (store, load) = ("s_buffer_store_dword s6, s[0:3], 0x0\n", "s_buffer_load_dword s10, s[0:3], 0x0");
    let nop = format!("{store}s_nop 7\n{load}");
    hazard("gfx1010", "smem_store_load", &nop, &[&format!("{store}s_waitcnt lgkmcnt(0)\n{load}")]);
}

#[test]
fn vmem_to_scalar_write_hazard() {
    let load = "buffer_load_dword v7, v1, s[0:3], 0 offen\n";
    for write in ["s_mov_b32 s0, 0", "s_mov_b32 exec_lo, -1", "s_load_dword s0, s[4:5], 0x0"] {
        let good = ["v_mov_b32 v8, 0", "s_waitcnt vmcnt(0)"].map(|cure| format!("{load}{cure}\n{write}"));
        let good = good.each_ref().map(String::as_str);
        hazard("gfx1010", "vmem_to_scalar_write", &format!("{load}{write}"), &good);
    }
    let lds = "ds_read_b32 v7, v1\ns_mov_b32 exec_lo, -1";
    hazard("gfx1010", "vmem_to_scalar_write", lds, &["ds_read_b32 v7, v1\ns_mov_b32 s0, 0"]);
    assert!(late("gfx1030", &format!("{load}s_mov_b32 s0, 0")).hazards().is_empty());
}

#[test]
fn smem_to_vector_write_hazard() {
    let (load, write) = ("s_load_dword s10, s[4:5], 0x0\n", "v_readfirstlane_b32 s4, v5");
    let good = ["s_mov_b32 s11, 0", "s_waitcnt lgkmcnt(0)"].map(|cure| format!("{load}{cure}\n{write}"));
    let good = good.each_ref().map(String::as_str);
    hazard("gfx1010", "smem_to_vector_write", &format!("{load}{write}"), &good);
    hazard("gfx1010", "smem_to_vector_write", &format!("{load}s_nop 3\n{write}"), &[]);
    hazard("gfx1010", "smem_to_vector_write", &format!("{load}s_waitcnt vmcnt(0)\n{write}"), &[]);
}

#[test]
fn offset_3f_bug() {
    let code = |distance: u32| format!("s_cmp_eq_u32 0, 1\ns_cbranch_scc1 {distance}");
    hazard("gfx1010", "offset_3f", &code(0x3f), &[&code(0x3e), &code(0x40)]);
    assert!(late("gfx1030", &code(0x3f)).hazards().is_empty());
}

#[test]
fn inst_fwd_prefetch_bug() {
    hazard("gfx1010", "inst_prefetch", "s_inst_prefetch 0x1", &["s_nop 0"]);
}

#[test]
fn lds_misaligned_bug() {
    let code = |offset: u32, what: &str| {
        format!(
            "v_mov_b32 v8, {offset}\nv_mov_b32 v9, src_shared_base\nv_mov_b32 v10, v5\nv_mov_b32 v11, v5\nflat_store_{what} v[8:9], v[10:11]"
        )
    };
    let base = "s_mov_b64 s[10:11], src_shared_base\nv_mov_b32 v9, s11\n";
    let code = |offset: u32, what: &str| {
        code(offset, what)
            .replace("v_mov_b32 v9, src_shared_base\n", base)
            .replace("v[10:11]", if what == "dword" { "v10" } else { "v[10:11]" })
    };
    hazard("gfx1010", "lds_misaligned", &code(4, "dwordx2"), &[&code(8, "dwordx2"), &code(4, "dword")]);
    assert!(late("gfx1030", &code(4, "dwordx2")).hazards().is_empty());
}

#[test]
fn flat_segment_offset_bug() {
    let good = ["flat_load_dword v7, v[2:3]", "global_load_dword v7, v[2:3], off offset:4"];
    hazard("gfx1010", "flat_offset", "flat_load_dword v7, v[2:3] offset:4", &good);
}

#[test]
fn vcmpx_permlane_hazard() {
    let permlane = "v_permlane16_b32 v7, v5, s6, s7";
    let code = |compare: &str, between: &str| format!("{compare}\n{between}\n{permlane}");
    let x = "v_cmpx_ge_u32 v5, v1";
    hazard("gfx1010", "vcmpx_permlane_10", &code(x, "v_nop"), &[&code(x, "v_mov_b32 v8, v1")]);
    // Any comparison triggers it.
    let any = "v_cmp_ge_u32 vcc_lo, v5, v1";
    hazard("gfx1010", "vopc_permlane", &code(any, "v_nop"), &[&code(any, "v_mov_b32 v8, v1")]);
    for name in ["gfx1100", "gfx1150", "gfx1200"] {
        hazard(name, "vcmpx_permlane_11", &code(x, ""), &[&code(x, "v_nop")]);
    }
}

#[test]
fn vcmpx_exec_war_hazard() {
    let code = |between: &str| format!("s_mov_b32 s10, exec_lo\n{between}\nv_cmpx_ge_u32 v5, v1");
    let good = [code("v_readfirstlane_b32 s11, v5"), code("s_waitcnt_depctr 0xfffe")];
    let good = good.each_ref().map(String::as_str);
    hazard("gfx1010", "vcmpx_exec_war", &code("v_mov_b32 v8, v1"), &good);
}

#[test]
fn lds_branch_vmem_war_hazard() {
    let (load, store) = ("buffer_load_dword v7, v1, s[0:3], 0 offen", "ds_write_b32 v1, v5");
    for (first, second) in [(load, store), (store, load)] {
        let code = |between: &str| format!("{first}\n{between}\n{second}");
        let good = [code("s_branch 1\ns_nop 0\ns_waitcnt_vscnt null, 0"), code("s_nop 0")];
        let good = good.each_ref().map(String::as_str);
        hazard("gfx1010", "lds_branch_vmem_war", &code("s_branch 0"), &good);
        let waits = code("s_branch 0\ns_waitcnt vmcnt(0) lgkmcnt(0)");
        hazard("gfx1010", "lds_branch_vmem_war", &waits, &[]);
    }
}

#[test]
fn interpolation_before_reading_a_lane_on_gfx6() {
    let interpolated = "v_interp_p1_f32 v7, v1, attr0.x\n";
    for read in ["v_readlane_b32 s10, v7, 0", "v_readfirstlane_b32 s10, v7"] {
        let good =
            [format!("{interpolated}s_nop 0\n{read}"), format!("{interpolated}v_writelane_b32 v7, s6, 0")];
        let good = good.each_ref().map(String::as_str);
        hazard("gfx600", "vintrp_readlane", &format!("{interpolated}{read}"), &good);
        assert!(!late("gfx700", &format!("{interpolated}{read}")).hazards().contains("vintrp_readlane"));
    }
}
