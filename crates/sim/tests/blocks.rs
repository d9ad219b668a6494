//! Memory instructions of one generation or two: blocks of registers, transposed loads, stores from LDS, ordered adds, what
//! says whether memory was there; and forks and joins of scalar branches.

mod rig;

use unwedge_isa::amdgcn::Reg;
use unwedge_sim::amdgcn::{FaultKind, Missing, Program, SimMemory, Timing, WaitCounter, run};

/// Registers from one on in a lane, after code that ran over a buffer of counting dwords.
fn plain(name: &str, code: &str) -> rig::Ran {
    rig::plain(name, code).clean()
}

#[test]
fn blocks_move_the_registers_that_m0_names() {
    let fill: String = (32..64).map(|n| format!("v_mov_b32 v{n}, {}\n", n * 3)).collect();
    let mask = 0x8421_0f03u32;
    let code = format!(
        "{fill}s_mov_b32 m0, {mask:#x}\nglobal_load_block v[32:63], v1, s[4:5] offset:16\ns_wait_loadcnt 0\n\
         v_mov_b32 v100, v32\n"
    );
    let ran = plain("gfx1200", &code);
    for n in 0..32u8 {
        // Every dword of the buffer holds its number.
        let expected = if mask >> n & 1 != 0 { u32::from(n) + 4 } else { (u32::from(n) + 32) * 3 };
        assert_eq!(ran.v(32 + n), expected, "{n}");
    }
    // Scratch: 32 registers there and, of them some, back.
    let clear: String = (32..64).map(|n| format!("v_mov_b32 v{n}, 0\n")).collect();
    let code = format!(
        "{fill}s_mov_b32 m0, 0xffff\nscratch_store_block off, v[32:63], off\ns_wait_storecnt 0\n{clear}s_mov_b32 m0, 0xff05\n\
         scratch_load_block v[32:63], off, off\ns_wait_loadcnt 0\n"
    );
    let ran = plain("gfx1200", &code);
    for n in 0..32u8 {
        let expected = if 0xff05u32 >> n & 1 != 0 { (u32::from(n) + 32) * 3 } else { 0 };
        assert_eq!(ran.v(32 + n), expected, "{n}");
    }
    // Stores to memory leave what is between.
    let code =
        format!("{fill}s_mov_b32 m0, 5\ns_mov_b32 exec_lo, 1\nglobal_store_block v1, v[32:63], s[4:5]\n");
    assert_eq!(plain("gfx1200", &code).words[..4], [96, 1, 102, 3]);
}

fn missing(name: &str, code: &str) -> Option<Missing> {
    rig::late(name, code).faults.iter().find_map(|fault| match fault.kind {
        FaultKind::Stored(_, missing) => Some(missing),
        _ => None,
    })
}

#[test]
fn loads_of_blocks_and_turned_ones_are_late() {
    let end = |n: u32| format!("global_store_b32 v[2:3], v{n}, off offset:256");
    for (load, written) in [
        ("v_mov_b32 v33, 1\ns_mov_b32 m0, 0x5\nglobal_load_block v[32:63], v1, s[4:5]\n", 34),
        ("v_lshlrev_b32 v10, 4, v0\nglobal_load_tr_b128 v[32:35], v10, s[4:5]\n", 33),
    ] {
        let why = missing("gfx1200", &format!("{load}{}", end(written)));
        assert!(matches!(why, Some(Missing::Load { counter: WaitCounter::Load, .. })), "{load}: {why:?}");
        assert_eq!(missing("gfx1200", &format!("{load}s_wait_loadcnt 0\n{}", end(written))), None, "{load}");
    }
    // A register that the block leaves out is known at once.
    let block = "v_mov_b32 v33, 1\ns_mov_b32 m0, 0x5\nglobal_load_block v[32:63], v1, s[4:5]\n";
    assert_eq!(missing("gfx1200", &format!("{block}{}", end(33))), None);
}

/// Each lane brings eight bytes; a lane gets one of each of eight.
#[test]
fn transposed_loads_of_bytes() {
    let mut memory = SimMemory::default();
    memory.map(rig::BUFFER, (0..=255).collect()).expect("free");
    let gpu = rig::gpu("gfx1200");
    let code =
        "v_lshlrev_b32 v10, 3, v0\nglobal_load_tr_b64 v[32:33], v10, s[4:5]\ns_wait_loadcnt 0\ns_endpgm";
    let program = Program::new(&rig::words(code, &gpu), 0, gpu);
    let mut registers = std::collections::HashMap::new();
    let mut tell = |trace: &unwedge_sim::amdgcn::Trace| registers.extend(trace.writes.iter().cloned());
    let outcome = run(&program, &mut memory, &rig::dispatch(&gpu, Timing::Plain), Some(&mut tell));
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    for lane in 0..32u32 {
        for at in 0..8u32 {
            let register = &registers[&Reg::vgpr(32 + at as u8 / 4)];
            let found = register[lane as usize] >> (8 * (at % 4)) & 0xff;
            // Offsets as they were measured.
            let expected =
                (lane & 7) + (lane >> 3 & 1) * 32 + (lane >> 4) * 128 + (at & 3) * 8 + (at >> 2) * 64;
            assert_eq!(found, expected, "{lane} {at}");
        }
    }
}

/// Eight lanes bring eight halves each; afterwards each has one of every lane.
#[test]
fn transposed_loads() {
    let mut memory = SimMemory::default();
    let halves: Vec<u8> = (0..512u16).flat_map(|n| (n * 5).to_le_bytes()).collect();
    memory.map(rig::BUFFER, halves).expect("free");
    let gpu = rig::gpu("gfx1200");
    let code =
        "v_lshlrev_b32 v10, 4, v0\nglobal_load_tr_b128 v[32:35], v10, s[4:5]\ns_wait_loadcnt 0\ns_endpgm";
    let program = Program::new(&rig::words(code, &gpu), 0, gpu);
    let mut registers = std::collections::HashMap::new();
    let mut tell = |trace: &unwedge_sim::amdgcn::Trace| registers.extend(trace.writes.iter().cloned());
    let outcome = run(&program, &mut memory, &rig::dispatch(&gpu, Timing::Plain), Some(&mut tell));
    assert!(outcome.faults.is_empty(), "{:?}", outcome.faults);
    for lane in 0..32 {
        for at in 0..8 {
            let register = &registers[&Reg::vgpr(32 + at as u8 / 2)];
            let found = register[lane] >> (16 * (at % 2)) & 0xffff;
            let (source, element) = (lane / 8 * 8 + at, lane % 8);
            assert_eq!(found, (source * 8 + element) as u32 * 5, "{lane} {at}");
        }
    }
    let some = rig::plain(
        "gfx1200",
        "v_mov_b32 v10, 0\ns_mov_b32 exec_lo, 7\nglobal_load_tr_b128 v[32:35], v10, s[4:5]",
    );
    assert!(some.has(|kind| matches!(kind, FaultKind::Undefined(_))));
    let wide =
        rig::plain("gfx1200+wavefrontsize64", "v_mov_b32 v10, 0\nglobal_load_tr_b128 v[32:33], v10, s[4:5]");
    assert!(wide.has(|kind| matches!(kind, FaultKind::NotEmulated(_))));
}

/// Only whose turn it is adds, and gives the turn on.
#[test]
fn ordered_adds() {
    let add = |turn: u32, by: u32| {
        format!(
            "v_mov_b32 v12, {turn}\nv_mov_b32 v13, {by}\nglobal_atomic_ordered_add_b64 v[10:11], v1, v[12:13], s[4:5] \
             th:TH_ATOMIC_RETURN\ns_wait_loadcnt 0\n"
        )
    };
    // The buffer begins with 0 and 1.
    let one = "s_mov_b32 exec_lo, 1\n";
    let ran = plain("gfx1200", &format!("{one}{}", add(0, 10)));
    assert_eq!((ran.v(10), ran.v(11), ran.words[0], ran.words[1]), (0, 1, 1, 11));
    let ran = plain("gfx1200", &format!("{one}{}", add(3, 10)));
    assert_eq!((ran.v(10), ran.v(11), ran.words[0], ran.words[1]), (0, 1, 0, 1));
}

/// Each lane's dword of LDS goes to its place in the buffer.
#[test]
fn stores_from_lds() {
    for name in ["gfx803", "gfx900"] {
        let write = |value: &str| {
            format!(
                "v_lshlrev_b32 v10, 2, v0\nv_add_u32 v11, {} 100, v0\nds_write_b32 v10, {value} offset:64\ns_waitcnt lgkmcnt(0)\n",
                if name == "gfx803" { "vcc," } else { "" }
            )
        };
        // A stride of four bytes, the lane's number added to the index.
        let code = |value: &str| {
            format!(
                "s_mov_b32 m0, -1\n{}s_mov_b32 s1, 0x40000\ns_mov_b32 s3, 0x800000\ns_mov_b32 s2, 0x1000\ns_mov_b32 m0, 64\ns_nop 0\n\
                 buffer_store_lds_dword s[0:3], 0 lds\ns_waitcnt vmcnt(0)\n",
                write(value)
            )
        };
        let ran = plain(name, &code("v11"));
        let expected: Vec<u32> = (0..64).map(|lane| lane + 100).collect();
        assert_eq!(ran.words[..64], expected[..], "{name}");
        assert!(rig::late(name, &code("v11")).faults.is_empty(), "{name}");
        // What LDS does not hold for certain is reported.
        assert!(rig::late(name, &code("v99")).has(|kind| matches!(kind, FaultKind::Stored(..))), "{name}");
    }
}

/// A register behind the data, which says zero: nothing is missing.
#[test]
fn status_of_untyped_loads() {
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100"] {
        let (one, two) = if name == "gfx1100" { ("b32", "b64") } else { ("dword", "dwordx2") };
        let code = format!(
            "v_mov_b32 v11, 9\nv_mov_b32 v14, 9\nbuffer_load_{one} v[10:11], v1, s[0:3], 0 offen offset:8 tfe\n\
             buffer_load_{two} v[12:14], v1, s[0:3], 0 offen offset:12 tfe\ns_waitcnt vmcnt(0)\n"
        );
        let ran = plain(name, &code);
        assert_eq!([10, 11, 12, 13, 14].map(|n| ran.v(n)), [2, 0, 3, 4, 0], "{name}");
    }
    let code = "v_mov_b32 v10, 0x77770000\nv_mov_b32 v11, 9\nbuffer_load_short_d16 v[10:11], v1, s[0:3], 0 offen offset:8 tfe\n\
                s_waitcnt vmcnt(0)\n";
    let ran = plain("gfx900", code);
    assert_eq!((ran.v(10), ran.v(11)), (0x7777_0002, 0));
    let store = "global_store_dword v[2:3], v11, off";
    let load = "buffer_load_dword v[10:11], v1, s[0:3], 0 offen tfe\n";
    assert!(matches!(missing("gfx900", &format!("{load}{store}")), Some(Missing::Load { .. })));
    assert_eq!(missing("gfx900", &format!("{load}s_waitcnt vmcnt(0)\n{store}")), None);
}

/// Both ways of two forks, one in the other, by lane. The first fork's fewer lanes go first, and are done at the second.
#[test]
fn forks_go_both_ways_and_join() {
    for name in ["gfx600", "gfx701", "gfx803", "gfx900"] {
        for target in ["i", "g"] {
            let fork = |mask: &str, label: &str| {
                if target == "i" {
                    return format!("s_cbranch_i_fork {mask}, {label}\n");
                }
                format!(
                    "s_movk_i32 s32, {label}-base_{label}\ns_getpc_b64 s[30:31]\nbase_{label}:\ns_add_u32 s30, s30, s32\n\
                     s_addc_u32 s31, s31, 0\ns_cbranch_g_fork {mask}, s[30:31]\n"
                )
            };
            let code = format!(
                "s_mov_b32 s50, 0\ns_mov_b32 s51, 0\ns_mov_b32 s40, 0xff\ns_mov_b32 s41, 0\ns_mov_b32 s42, 0x33333333\n\
                 s_mov_b32 s43, 0x33333333\nv_mov_b32 v10, 0\n{}v_or_b32 v10, 1, v10\n{}v_or_b32 v10, 4, v10\n\
                 s_branch inner\nupper:\nv_or_b32 v10, 8, v10\ninner:\ns_cbranch_join s51\ns_mov_b64 exec, 0xffffff00\n\
                 s_mov_b32 exec_hi, -1\nv_or_b32 v10, 16, v10\ns_branch outer\npass:\nv_or_b32 v10, 2, v10\nouter:\n\
                 s_cbranch_join s50\ns_mov_b64 exec, -1\nv_or_b32 v10, 32, v10\n",
                fork("s[40:41]", "pass"),
                fork("s[42:43]", "upper"),
            );
            let ran = plain(name, &code);
            for (lane, value) in ran.lanes(10).iter().enumerate() {
                let expected = if lane < 8 {
                    2 | 32
                } else {
                    1 | if 0x3333_3333_3333_3333u64 >> lane & 1 != 0 { 8 } else { 4 } | 16 | 32
                };
                assert_eq!(*value, expected, "{name} {target} {lane}");
            }
        }
    }
}

/// Three exclusive ors swap registers, whatever is known of them, unless one is written in between.
#[test]
fn exclusive_ors_swap_what_is_not_known() {
    let swaps = |between: &str, reads: &str| {
        let code = format!(
            "s_mov_b64 s[40:41], 1\ns_mov_b64 s[44:45], 1\ns_xor_b64 s[60:61], s[40:41], s[60:61]\n{between}\
             s_xor_b64 s[40:41], s[60:61], s[40:41]\ns_xor_b64 s[60:61], s[40:41], s[60:61]\n\
             s_and_saveexec_b64 s[50:51], s[{reads}]"
        );
        rig::late("gfx900", &code).has(|kind| matches!(kind, FaultKind::Control(..)))
    };
    assert!(!swaps("", "60:61"), "the known value");
    assert!(swaps("", "40:41"), "the unknown value");
    assert!(!swaps("s_mov_b64 s[44:45], 3\n", "60:61"), "another register is written");
    assert!(swaps("s_mov_b64 s[40:41], s[46:47]\n", "60:61"), "another unknown value");
}

/// All lanes one way: no stack. A join without a fork, and a stack that is full, are reported.
#[test]
fn forks_of_one_way() {
    let one = |mask: &str| {
        format!(
            "s_mov_b32 s50, 0\ns_mov_b64 s[40:41], {mask}\nv_mov_b32 v10, 0\ns_cbranch_i_fork s[40:41], pass\n\
             v_or_b32 v10, 1, v10\ns_branch outer\npass:\nv_or_b32 v10, 2, v10\nouter:\ns_cbranch_join s50\n\
             v_or_b32 v10, 4, v10\n"
        )
    };
    assert_eq!(plain("gfx900", &one("-1")).v(10), 6);
    assert_eq!(plain("gfx900", &one("0")).v(10), 5);
    let empty = rig::plain("gfx900", "s_mov_b32 s50, 3\ns_cbranch_join s50");
    assert!(empty.has(|kind| matches!(kind, FaultKind::Undefined(_))));
    let unknown = rig::late("gfx900", "s_cbranch_i_fork s[60:61], end\nend:\ns_nop 0");
    assert!(unknown.has(|kind| matches!(kind, FaultKind::Control(..))));
}
