//! The errata and hazards of the ISA notes that concern the checker, entry by entry; and the rows of `hazards.csv`, each with its rule or
//! the reason why machine code alone cannot show it.

mod data;

use data::assemble;
use unwedge_check::amdgcn::facts::RULES;
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckOptions, EntryPreset, ProgramEntry, check};
use unwedge_isa::amdgcn::Gpu;

const GFX6: [&str; 1] = ["gfx600"];
const GFX6_7: [&str; 2] = ["gfx600", "gfx700"];
/// The generation that the notes call GFX10, and the one behind it that its hazards are gone in.
const GFX10: [&str; 1] = ["gfx1010"];
const BEHIND: [&str; 4] = ["gfx1030", "gfx1100", "gfx1150", "gfx1200"];

fn findings(name: &str, code: &str, preset: Option<EntryPreset>) -> Vec<(usize, CheckFinding)> {
    let gpu = Gpu::new(name).unwrap();
    let lines: Vec<String> =
        code.lines().map(|line| line.trim().to_owned()).filter(|l| !l.is_empty()).collect();
    let (bytes, starts) = assemble(&lines, &gpu).unwrap_or_else(|e| panic!("{name}: {e}"));
    let options = CheckOptions {
        entries: vec![ProgramEntry { at: 0, preset, called: false }],
        ..CheckOptions::default()
    };
    let labels = lines.iter().enumerate().filter(|(_, line)| !line.ends_with(':')).map(|(n, _)| n);
    let lines: Vec<usize> = labels.collect();
    let line = |at: u32| starts.binary_search(&at).map_or(usize::MAX, |n| lines[n]);
    check(&bytes, &gpu, &options).findings.into_iter().map(|f| (line(f.at), f)).collect()
}

/// A rule shows at a line, counted from 0, and nowhere else.
#[track_caller]
fn breaks(gpus: &[&str], rule: &str, line: usize, code: &str) {
    for name in gpus {
        let found = findings(name, code, None);
        let of: Vec<_> =
            found.iter().filter(|(_, f)| f.rule.info().name == rule).map(|(at, _)| *at).collect();
        assert_eq!(of, [line], "{rule} on {name}: {found:?}");
    }
}

/// A rule does not show, nor anything else that is certain.
#[track_caller]
fn keeps(gpus: &[&str], rule: &str, code: &str) {
    for name in gpus {
        let found = findings(name, code, None);
        let wrong = |f: &CheckFinding| f.rule.info().name == rule || f.level == Certainty::Error;
        assert!(!found.iter().any(|(_, f)| wrong(f)), "{rule} on {name}: {found:?}");
    }
}

/// "SMEM corrupts VCCZ on SI/CI"
#[test]
fn smem_corrupts_vccz() {
    let load = "s_load_dword s4, s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\n";
    breaks(&GFX6_7, "vccz_smem", 2, &format!("{load}s_cbranch_vccz B1\nB1:\ns_endpgm"));
    breaks(&GFX6_7, "vccz_smem", 2, &format!("{load}s_cbranch_vccnz B1\nB1:\ns_endpgm"));
    keeps(&GFX6_7, "vccz_smem", &format!("{load}s_mov_b64 vcc, vcc\ns_cbranch_vccz B1\nB1:\ns_endpgm"));
    // A write of vcc before the load is over does not help.
    let early = "s_load_dword s4, s[0:1], 0x0\ns_mov_b64 vcc, vcc\ns_waitcnt lgkmcnt(0)\n";
    breaks(&GFX6_7, "vccz_smem", 3, &format!("{early}s_cbranch_vccz B1\nB1:\ns_endpgm"));
    keeps(&["gfx803", "gfx900"], "vccz_smem", &format!("{load}s_cbranch_vccz B1\nB1:\ns_endpgm"));
    keeps(&GFX6_7, "vccz_smem", &format!("{load}s_cbranch_scc0 B1\nB1:\ns_endpgm"));
}

/// "VINTRP followed by a read with v_readfirstlane or v_readlane"
#[test]
fn vintrp_followed_by_readlane() {
    let interp = "s_mov_b32 m0, s4\ns_nop 0\nv_interp_p1_f32 v0, v1, attr0.x\n";
    breaks(&GFX6, "vintrp_readlane", 3, &format!("{interp}v_readfirstlane_b32 s0, v0\ns_endpgm"));
    breaks(&GFX6, "vintrp_readlane", 3, &format!("{interp}v_readlane_b32 s0, v0, 3\ns_endpgm"));
    keeps(&GFX6, "vintrp_readlane", &format!("{interp}s_nop 0\nv_readfirstlane_b32 s0, v0\ns_endpgm"));
    keeps(&GFX6, "vintrp_readlane", &format!("{interp}v_readfirstlane_b32 s0, v1\ns_endpgm"));
    // "v_writelane_* is apparently not affected"
    keeps(&GFX6, "vintrp_readlane", &format!("{interp}v_writelane_b32 v0, s0, 3\ns_endpgm"));
    keeps(
        &["gfx700", "gfx803", "gfx900"],
        "vintrp_readlane",
        &format!("{interp}v_readfirstlane_b32 s0, v0\ns_endpgm"),
    );
}

/// "SMEM store followed by a load with the same address"
#[test]
fn smem_store_followed_by_a_load() {
    let store = "s_buffer_store_dword s8, s[4:7], 0x0\n";
    let load = "s_buffer_load_dword s9, s[4:7], 0x0\ns_waitcnt lgkmcnt(0)\ns_dcache_wb\ns_endpgm";
    breaks(&GFX10, "smem_store_load", 1, &format!("{store}{load}"));
    // "Inserting an s_nop between them does not mitigate the issue"
    breaks(&GFX10, "smem_store_load", 2, &format!("{store}s_nop 0\n{load}"));
    keeps(&GFX10, "smem_store_load", &format!("{store}s_waitcnt lgkmcnt(0)\n{load}"));
    keeps(&GFX10, "smem_store_load", &format!("{store}{}", load.replace("s[4:7]", "s[12:15]")));
}

/// "VMEMtoScalarWriteHazard"
#[test]
fn vmem_to_scalar_write_hazard() {
    let rule = "vmem_to_scalar_write";
    let end = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm";
    let firsts = [
        "buffer_load_dword v1, v0, s[0:3], 0 offen",
        "global_load_dword v1, v0, s[0:1]",
        "scratch_load_dword v1, off, s0",
    ];
    for first in firsts {
        breaks(&GFX10, rule, 1, &format!("{first}\ns_mov_b32 s0, 0\n{end}"));
        breaks(&GFX10, rule, 1, &format!("{first}\ns_mov_b32 exec_lo, s9\n{end}"));
        breaks(&GFX10, rule, 1, &format!("{first}\ns_load_dword s0, s[8:9], 0x0\n{end}"));
        keeps(&GFX10, rule, &format!("{first}\ns_mov_b32 s8, 0\n{end}"));
        // "Mitigated by: A VALU instruction or an s_waitcnt vmcnt(0)"
        keeps(&GFX10, rule, &format!("{first}\nv_mov_b32 v2, 0\ns_mov_b32 s0, 0\n{end}"));
        keeps(&GFX10, rule, &format!("{first}\ns_waitcnt vmcnt(0)\ns_mov_b32 s0, 0\n{end}"));
        breaks(&GFX10, rule, 2, &format!("{first}\ns_nop 3\ns_mov_b32 s0, 0\n{end}"));
        keeps(&["gfx1030"], rule, &format!("{first}\ns_mov_b32 s0, 0\n{end}"));
    }
    let flat = "flat_load_dword v1, v[2:3]";
    let lds = "ds_read_b32 v1, v0";
    for first in [flat, lds] {
        breaks(&GFX10, rule, 1, &format!("{first}\ns_mov_b32 exec_lo, s9\n{end}"));
        keeps(&GFX10, rule, &format!("{first}\nv_mov_b32 v4, 0\ns_mov_b32 exec_lo, s9\n{end}"));
    }
    breaks(&GFX10, rule, 1, &format!("ds_read_b32 v1, v0 gds\ns_mov_b32 m0, s9\n{end}"));
}

/// "SMEMtoVectorWriteHazard"
#[test]
fn smem_to_vector_write_hazard() {
    let rule = "smem_to_vector_write";
    let load = "s_load_dword s4, s[0:1], 0x0\n";
    let (write, end) = ("v_readfirstlane_b32 s0, v0\n", "s_waitcnt lgkmcnt(0)\ns_endpgm");
    breaks(&GFX10, rule, 1, &format!("{load}{write}{end}"));
    for cure in ["s_mov_b32 s8, 0", "s_mov_b32 null, 0", "s_waitcnt lgkmcnt(0)"] {
        keeps(&GFX10, rule, &format!("{load}{cure}\n{write}{end}"));
    }
    // "Any non-SOPP SALU instruction (except … any non-lgkmcnt s_waitcnt)"
    for none in ["s_nop 0", "s_waitcnt vmcnt(0)", "s_waitcnt_vscnt null, 0x0", "v_mov_b32 v1, 0"] {
        breaks(&GFX10, rule, 2, &format!("{load}{none}\n{write}{end}"));
    }
    keeps(&["gfx1030", "gfx1100"], rule, &format!("{load}{write}{end}"));
}

/// "Offset3fBug"
#[test]
fn offset_3f_bug() {
    for (nops, wrong) in [(0x3e, false), (0x3f, true), (0x40, false)] {
        let code = format!("s_cbranch_scc0 B1\n{}B1:\ns_endpgm", "v_mov_b32 v0, 0\n".repeat(nops));
        if wrong {
            breaks(&GFX10, "offset_3f", 0, &code);
        } else {
            keeps(&GFX10, "offset_3f", &code);
        }
        keeps(&BEHIND, "offset_3f", &code);
    }
}

/// "InstFwdPrefetchBug"
#[test]
fn inst_fwd_prefetch_bug() {
    breaks(&GFX10, "inst_prefetch", 0, "s_inst_prefetch 0x3\ns_endpgm");
    keeps(&["gfx1030"], "inst_prefetch", "s_inst_prefetch 0x3\ns_endpgm");
}

/// "FlatSegmentOffsetBug"
#[test]
fn flat_segment_offset_bug() {
    let end = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm";
    breaks(&GFX10, "flat_offset", 0, &format!("flat_load_dword v1, v[2:3] offset:4\n{end}"));
    keeps(&GFX10, "flat_offset", &format!("flat_load_dword v1, v[2:3]\n{end}"));
    // "GLOBAL and SCRATCH are unaffected."
    keeps(&GFX10, "flat_offset", &format!("global_load_dword v1, v[2:3], off offset:4\n{end}"));
    keeps(&GFX10, "flat_offset", &format!("scratch_load_dword v1, v2, off offset:4\n{end}"));
    keeps(&["gfx1030"], "flat_offset", &format!("flat_load_dword v1, v[2:3] offset:4\n{end}"));
}

/// "VcmpxPermlaneHazard": with v_cmpx certain, with other comparisons as the notes alone have it.
#[test]
fn vcmpx_permlane_hazard() {
    let permlane = "v_permlane16_b32 v0, v1, s0, s1\ns_endpgm";
    let cmpx = "v_cmpx_eq_u32 v2, v3\n";
    breaks(&GFX10, "vcmpx_permlane_10", 1, &format!("{cmpx}{permlane}"));
    breaks(&GFX10, "vopc_permlane", 1, &format!("v_cmp_eq_u32 vcc_lo, v2, v3\n{permlane}"));
    // "any VALU instruction except v_nop"
    keeps(&GFX10, "vcmpx_permlane_10", &format!("{cmpx}v_mov_b32 v1, v1\n{permlane}"));
    breaks(&GFX10, "vcmpx_permlane_10", 2, &format!("{cmpx}v_nop\n{permlane}"));
    breaks(&GFX10, "vcmpx_permlane_10", 2, &format!("{cmpx}s_mov_b32 s4, 0\n{permlane}"));
    keeps(&["gfx1030"], "vcmpx_permlane_10", &format!("{cmpx}{permlane}"));
    keeps(&["gfx1030"], "vopc_permlane", &format!("v_cmp_eq_u32 vcc_lo, v2, v3\n{permlane}"));
}

/// "VcmpxExecWARHazard"
#[test]
fn vcmpx_exec_war_hazard() {
    let read = "s_mov_b32 s4, exec_lo\n";
    let write = "v_cmpx_eq_u32 v2, v3\ns_endpgm";
    breaks(&GFX10, "vcmpx_exec_war", 1, &format!("{read}{write}"));
    breaks(&GFX10, "vcmpx_exec_war", 2, &format!("{read}v_mov_b32 v4, 0\n{write}"));
    keeps(&GFX10, "vcmpx_exec_war", &format!("{read}v_readfirstlane_b32 s5, v0\n{write}"));
    keeps(&GFX10, "vcmpx_exec_war", &format!("{read}s_waitcnt_depctr 0xfffe\n{write}"));
    breaks(&GFX10, "vcmpx_exec_war", 2, &format!("{read}s_waitcnt_depctr 0xffe3\n{write}"));
    keeps(&["gfx1030"], "vcmpx_exec_war", &format!("{read}{write}"));
}

/// "LdsBranchVmemWARHazard"
#[test]
fn lds_branch_vmem_war_hazard() {
    let rule = "lds_branch_vmem_war";
    let end = "s_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm";
    let memory = ["buffer_load_dword v1, v0, s[0:3], 0 offen", "global_load_dword v1, v0, s[0:1]"];
    let lds = "ds_read_b32 v5, v4";
    for vmem in memory {
        for (first, second) in [(vmem, lds), (lds, vmem)] {
            breaks(&GFX10, rule, 3, &format!("{first}\ns_branch B1\nB1:\n{second}\n{end}"));
            keeps(&GFX10, rule, &format!("{first}\n{second}\n{end}"));
            // "Only s_waitcnt_vscnt null, 0. Needed even if the first instruction is a load."
            keeps(
                &GFX10,
                rule,
                &format!("{first}\ns_waitcnt_vscnt null, 0x0\ns_branch B1\nB1:\n{second}\n{end}"),
            );
            keeps(
                &GFX10,
                rule,
                &format!("{first}\ns_branch B1\nB1:\ns_waitcnt_vscnt null, 0x0\n{second}\n{end}"),
            );
            breaks(
                &GFX10,
                rule,
                4,
                &format!("{first}\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_branch B1\nB1:\n{second}\n{end}"),
            );
            keeps(&["gfx1030"], rule, &format!("{first}\ns_branch B1\nB1:\n{second}\n{end}"));
        }
    }
}

/// "VMEM stores": their data may be written right behind them on gfx8 and gfx9, but for what takes one NOP; gfx6 counts it in expcnt.
#[test]
fn vmem_stores() {
    let store = "buffer_store_dword v1, v0, s[0:3], 0 offen\n";
    let behind = "v_mov_b32 v1, 0\ns_endpgm";
    keeps(&["gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030"], "wait", &format!("{store}{behind}"));
    breaks(&GFX6, "wait", 1, &format!("{store}{behind}"));
    keeps(&GFX6, "wait", &format!("{store}s_waitcnt expcnt(0)\n{behind}"));
    let wide = "buffer_store_dwordx4 v[1:4], v0, s[0:3], 0 offen\n";
    breaks(&["gfx803", "gfx900"], "vmem_store_data", 1, &format!("{wide}{behind}"));
    keeps(&["gfx803", "gfx900"], "vmem_store_data", &format!("{wide}s_nop 0\n{behind}"));
}

/// "SMEM stores": where there is no immediate the offset is m0, which is read.
#[test]
fn smem_stores() {
    let code = "s_buffer_store_dword s8, s[4:7], m0\ns_waitcnt lgkmcnt(0)\ns_dcache_wb\ns_endpgm";
    for name in ["gfx803", "gfx900"] {
        let found = findings(name, code, None);
        assert!(found.is_empty(), "{name}: {found:?}");
    }
}

/// "RDNA s_dcache_wb", and the same before: behind stores, in front of the end. A doubt, as only some need what is written.
#[test]
fn rdna_s_dcache_wb() {
    let store = "s_buffer_store_dword s8, s[4:7], 0x0\n";
    breaks(&["gfx803", "gfx900", "gfx1010"], "dcache_wb", 1, &format!("{store}s_endpgm"));
    let written = format!("{store}s_waitcnt lgkmcnt(0)\ns_dcache_wb\ns_endpgm");
    keeps(&["gfx803", "gfx900", "gfx1010"], "dcache_wb", &written);
}

/// "RDNA subvector mode": the ends of such a loop are branches.
#[test]
fn rdna_subvector_mode() {
    let around = |inside: &str| {
        format!(
            "s_subvector_loop_begin s0, B2\nB1:\n{inside}\ns_subvector_loop_end s0, B1\nB2:\nv_mov_b32 v3, v1\ns_endpgm"
        )
    };
    let load = "global_load_dword v1, v0, s[4:5]";
    for name in ["gfx1010", "gfx1030"] {
        let found = findings(name, &around(load), None);
        assert!(
            found.iter().any(|(line, f)| *line == 5 && f.rule.info().name == "wait"),
            "{name}: {found:?}"
        );
    }
    keeps(&["gfx1010", "gfx1030"], "wait", &around(&format!("{load}\ns_waitcnt vmcnt(0)")));
}

/// "s_bfe_*": they write SCC, so that it may be read behind them.
#[test]
fn s_bfe_writes_scc() {
    let preset = Some(EntryPreset { sgprs: 2, vgprs: 0 });
    for name in ["gfx600", "gfx803", "gfx900", "gfx1010", "gfx1100", "gfx1200"] {
        let read = "s_cselect_b32 s2, s0, s1\ns_endpgm";
        let unwritten =
            |code: &str| findings(name, code, preset).iter().any(|(_, f)| f.rule.info().name == "unwritten");
        assert!(unwritten(&format!("s_mov_b32 s3, s0\n{read}")), "{name}");
        assert!(!unwritten(&format!("s_bfe_u32 s3, s0, s1\n{read}")), "{name}");
    }
}

/// What machine code does not tell.
const NOT_IN_CODE: [(&str, &str); 6] = [
    ("LdsMisaligned", "addresses are not known"),
    ("Shift64HighReg", "of CDNA, and about how many registers are allocated"),
    ("MADIntraFwd", "which operands may overlap is not said"),
    ("MSAALoadDstSel", "in a descriptor"),
    ("UserSGPRInit16", "in registers that a driver sets"),
    ("SGPRInitBug", "in what a driver allocates"),
];

/// Rules by rows of the table of hazards, where they are named otherwise.
const NAMED: [(&str, &str); 31] = [
    ("VMEMtoScalarWrite", "vmem_to_scalar_write"),
    ("SMEMtoVectorWrite", "smem_to_vector_write"),
    ("VcmpxPermlane_gfx10", "vcmpx_permlane_10"),
    ("VcmpxExecWAR", "vcmpx_exec_war"),
    ("LdsBranchVmemWAR", "lds_branch_vmem_war"),
    ("NSAToVMEM", "nsa_to_vmem"),
    ("WritelaneToNSA", "writelane_to_nsa"),
    ("NSAClause", "nsa_clause"),
    ("Offset3f", "offset_3f"),
    ("InstFwdPrefetch", "inst_prefetch"),
    ("FlatSegmentOffset", "flat_offset"),
    ("SmemStoreLoad", "smem_store_load"),
    ("FPAtomicToDenormMode", "fp_atomic_denorm"),
    ("NegativeUnalignedScratchOffset", "scratch_offset_unaligned"),
    ("NegativeScratchOffset", "scratch_offset_negative"),
    ("VcmpxPermlane_gfx11", "vcmpx_permlane_11"),
    ("LdsDirectVALU", "lds_direct_valu"),
    ("LdsDirectVMEM", "lds_direct_vmem"),
    ("VALUTransUse", "valu_trans_use"),
    ("VALUPartialForwarding", "valu_partial_forwarding"),
    ("VALUMaskWrite", "valu_mask_write"),
    ("WMMA", "wmma"),
    ("VALUReadSGPR", "valu_read_sgpr"),
    ("DeallocVgprsNop", "dealloc_vgprs_nop"),
    ("RequiredExportPriority", "export_priority"),
    ("CacheLineClause", "long_clause"),
    ("DcacheWbEnd", "dcache_wb"),
    ("FlatGfx6to9Unordered", "wait"),
    ("setreg_setreg", "setreg_setreg"),
    ("smem_clause_xnack", "smem_clause_xnack"),
    ("smem_clause_store", "smem_clause_store"),
];

/// Every row of the data's table of hazards has a rule, or a reason why it has none.
#[test]
fn every_row_of_the_hazards_has_a_rule() {
    let Some(folder) = unwedge_testkit::data::path("amd/facts") else { return };
    let table = std::fs::read_to_string(folder.join("hazards.csv")).unwrap();
    let mut missing = Vec::new();
    for id in table.lines().skip(1).filter_map(|line| line.split(',').next()) {
        let name = NAMED.iter().find(|(row, _)| *row == id).map_or(id, |(_, rule)| rule);
        let known =
            RULES.iter().any(|info| info.name == name) || NOT_IN_CODE.iter().any(|(row, _)| *row == id);
        if !known {
            missing.push(id);
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}

/// FLAT loads of gfx7 to gfx9 count twice and end in no order: only 0 waits for them, and of one counter only where it is the one
/// that counts, on which sources differ.
#[test]
fn flat_loads_end_in_no_order() {
    let loads = "flat_load_dword v1, v[2:3]\nflat_load_dword v4, v[2:3]\n";
    let used = "v_mov_b32 v5, v1\ns_waitcnt vmcnt(0) lgkmcnt(0)\ns_endpgm";
    for (wait, rules) in [
        ("vmcnt(2) lgkmcnt(1)", &["wait", "wait"][..]),
        // Enough, if none of them accesses LDS.
        ("vmcnt(1) lgkmcnt(1)", &["flat_wait", "flat_wait"]),
        ("vmcnt(0)", &["flat_wait"]),
        ("lgkmcnt(0)", &["flat_wait"]),
        ("vmcnt(0) lgkmcnt(0)", &[]),
    ] {
        let code = format!("{loads}s_waitcnt {wait}\n{used}");
        for name in ["gfx700", "gfx803", "gfx900"] {
            let found = findings(name, &code, None);
            let at_use = found.iter().filter(|(line, _)| *line == 3).map(|(_, f)| f.rule.info().name);
            assert_eq!(at_use.collect::<Vec<_>>(), rules, "{name} {wait}");
        }
    }
}

/// The table of the notes names the tests that there are, each once.
#[test]
fn the_table_of_the_notes_names_its_tests() {
    let table = include_str!("../../../docs/amd-isa-notes.md");
    let places =
        [("check::", include_str!("amdgcn_notes.rs")), ("sim::", include_str!("../../sim/tests/notes.rs"))];
    let mut named = Vec::new();
    for row in table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| entry")) {
        let tests: Vec<&str> =
            row.split('`').filter(|part| places.iter().any(|(file, _)| part.starts_with(file))).collect();
        assert!(!tests.is_empty(), "{row}");
        named.extend(tests);
    }
    for test in &named {
        let (file, source) = places.iter().find(|(file, _)| test.starts_with(file)).unwrap();
        let name = test.trim_start_matches(file);
        assert!(source.contains(&format!("#[test]\nfn {name}()")), "{test}");
        assert_eq!(named.iter().filter(|other| *other == test).count(), 1, "{test}");
    }
}
