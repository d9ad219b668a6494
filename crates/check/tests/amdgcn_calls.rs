//! Calls: what is called waits for what its caller left pending, and what is behind the call starts with nothing of it.

mod data;

use data::assemble;
use unwedge_check::amdgcn::{CheckFinding, CheckOptions, EntryPreset, ProgramEntry, check};
use unwedge_isa::amdgcn::Gpu;

/// What is told of code, by rule and line.
fn told(gpu: &str, lines: &[&str], preset: Option<EntryPreset>) -> Vec<(&'static str, usize)> {
    let gpu = Gpu::new(gpu).unwrap();
    let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
    let (code, starts) = assemble(&lines, &gpu).unwrap();
    let options = CheckOptions {
        entries: vec![ProgramEntry { at: 0, preset, called: false }],
        ..CheckOptions::default()
    };
    let report = check(&code, &gpu, &options);
    assert!(report.complete);
    let line = |f: &CheckFinding| starts.iter().position(|start| *start == f.at).unwrap();
    report.findings.iter().map(|f| (f.rule.info().name, line(f))).collect()
}

/// A caller that uses a load behind a call, and what it calls: at line 7, from the second line on.
fn called(wait: &str) -> Vec<&str> {
    vec![
        "global_load_dword v5, v4, s[16:17]",
        "s_getpc_b64 s[6:7]",
        "s_add_u32 s6, s6, 0x14",
        "s_addc_u32 s7, s7, 0",
        "s_swappc_b64 s[30:31], s[6:7]",
        "v_add_u32_e32 v0, v0, v5",
        "s_endpgm",
        wait,
        "v_mov_b32 v5, 1",
        "s_setpc_b64 s[30:31]",
    ]
}

#[test]
fn what_is_called_waits() {
    let waits = called("s_waitcnt vmcnt(0) expcnt(0) lgkmcnt(0)");
    assert_eq!(told("gfx900", &waits, None), []);
    // What does not wait is wrong, at its place, not behind the call.
    assert_eq!(told("gfx900", &called("s_waitcnt lgkmcnt(0)"), None), [("spare_wait", 7), ("wait", 8)]);
}

#[test]
fn what_is_called_may_write_anything_and_leave_anything() {
    let preset = Some(EntryPreset { sgprs: 18, vgprs: 5 });
    // v0 and v1 of the caller, and a wait for what is called; v6 is not written at the call.
    let mut lines = called("s_waitcnt vmcnt(0) lgkmcnt(0)");
    lines[5] = "s_waitcnt vmcnt(0)";
    lines[6] = "v_mov_b32 v1, v6";
    lines.insert(7, "s_endpgm");
    lines[2] = "s_add_u32 s6, s6, 0x18";
    assert_eq!(told("gfx900", &lines, preset), []);
    // Where it begins it is as at the call.
    lines[9] = "v_mov_b32 v1, v6";
    assert_eq!(told("gfx900", &lines, preset), [("unwritten", 9)]);
    // Waited for once, it is over.
    lines[6] = "s_waitcnt vmcnt(0)";
    lines[9] = "v_mov_b32 v1, v4";
    assert_eq!(told("gfx900", &lines, preset), [("spare_wait", 6)]);
}

#[test]
fn a_call_of_what_is_behind_it_is_no_way_round() {
    let lines = ["global_load_dword v1, v[2:3], off", "s_call_b64 s[0:1], 0", "v_mov_b32 v0, v1", "s_endpgm"];
    assert_eq!(told("gfx900", &lines, None), [("wait", 2)]);
}

#[test]
fn hazards_do_not_go_past_a_call() {
    let mut lines = vec![
        "v_readfirstlane_b32 s8, v0",
        "s_call_b64 s[30:31], 3",
        "buffer_load_dword v1, v0, s[8:11], 0 offen",
    ];
    lines.extend(["s_endpgm", "s_nop 0", "s_setpc_b64 s[30:31]"]);
    assert_eq!(told("gfx900", &lines, None), []);
    lines[4] = "buffer_load_dword v1, v0, s[8:11], 0 offen";
    assert!(told("gfx900", &lines, None).contains(&("vmem_read_valu_sgpr", 4)));
}

/// The program counter of gfx12 has 48 bits, whose sign LLVM extends.
#[test]
fn a_call_of_gfx12() {
    let mut lines = vec![
        "global_load_b32 v5, v4, s[16:17]",
        "s_getpc_b64 s[6:7]",
        "s_sext_i32_i16 s7, s7",
        "s_add_co_u32 s6, s6, 0x14",
        "s_add_co_ci_u32 s7, s7, 0",
        "s_swappc_b64 s[30:31], s[6:7]",
        "s_endpgm",
        "v_mov_b32 v5, 1",
        "s_setpc_b64 s[30:31]",
    ];
    assert_eq!(told("gfx1200", &lines, None), [("wait", 7)]);
    lines.insert(7, "s_wait_loadcnt_dscnt 0");
    assert_eq!(told("gfx1200", &lines, None), []);
}

/// Constants and branches that a linker fills in are not known: control goes on elsewhere.
#[test]
fn what_a_linker_fills_in_is_not_known() {
    let gpu = Gpu::new("gfx900").unwrap();
    let lines =
        ["s_getpc_b64 s[6:7]", "s_add_u32 s6, s6, 0x12345", "s_addc_u32 s7, s7, 0", "s_setpc_b64 s[6:7]"];
    let found = |lines: &[&str], relocated: Vec<u32>| {
        let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        let (code, _) = assemble(&lines, &gpu).unwrap();
        let options = CheckOptions { relocated, ..CheckOptions::default() };
        check(&code, &gpu, &options).findings.iter().map(|f| f.rule.info().name).collect::<Vec<_>>()
    };
    assert_eq!(found(&lines, vec![8]), [""; 0]);
    // To itself, and to what is not known.
    assert_eq!(found(&["s_branch -1"], vec![]), ["no_end"]);
    assert_eq!(found(&["s_branch -1"], vec![0]), [""; 0]);
    let near =
        ["s_getpc_b64 s[6:7]", "s_add_u32 s6, s6, 0xfffffffc", "s_addc_u32 s7, s7, -1", "s_setpc_b64 s[6:7]"];
    assert_eq!(found(&near, vec![]), ["no_end"]);
    assert_eq!(found(&near, vec![8]), [""; 0]);
}

/// What may be called may have to wait for anything.
#[test]
fn waits_of_what_may_be_called_are_not_spare() {
    let gpu = Gpu::new("gfx900").unwrap();
    let (code, _) =
        assemble(&["s_waitcnt vmcnt(0)".to_owned(), "s_setpc_b64 s[30:31]".to_owned()], &gpu).unwrap();
    for (called, count) in [(false, 1), (true, 0)] {
        let options = CheckOptions {
            entries: vec![ProgramEntry { at: 0, preset: None, called }],
            ..CheckOptions::default()
        };
        assert_eq!(check(&code, &gpu, &options).findings.len(), count);
    }
}
