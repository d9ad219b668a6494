//! Random code of several blocks after the insertion of waits and of what hazards need: the checker, which shares no code with either, finds nothing.
//!
//! Instructions are those of hazard rules, on few registers, so that most rules are met many times, also over branches and around loops.
//! Scalar stores are left out, because the compiler does not emit any. `UNWEDGE_SEEDS=N` takes the seeds up to N for each GPU.

mod rig;

use rig::cases::{CaseBlock, CaseLine, machine, text_line};
use unwedge_aco::assemble::assemble;
use unwedge_aco::machine::MachineProgram;
use unwedge_aco::{hazards, waits};
use unwedge_check::amdgcn::{Certainty, CheckFinding, CheckOptions, Rule, check_words};
use unwedge_isa::amdgcn::{Gpu, text};
use unwedge_testkit::mutate::Rng;

/// Instructions with places for registers: `$v` a vector register, `$v2` two of them, `$s4` four scalar ones. Each GPU takes those it has.
const LINES: &[&str] = &[
    "s_mov_b32 $s, $s",
    "s_mov_b32 m0, $s",
    "s_mov_b64 exec, $s2",
    "s_mov_b64 vcc, $s2",
    "s_and_b64 $s2, exec, $s2",
    "s_and_saveexec_b64 $s2, vcc",
    "s_add_u32 $s, $s, vcc_lo",
    "s_cselect_b32 $s, $s, 1",
    "s_mov_b32 exec_lo, $s",
    "s_nop 0",
    "s_setreg_b32 hwreg(HW_REG_MODE, 0, 2), $s",
    "s_getreg_b32 $s, hwreg(HW_REG_MODE)",
    "s_movrels_b32 $s, $s",
    "s_sendmsg sendmsg(MSG_INTERRUPT)",
    "s_load_dword $s, $s2, 0x4",
    "s_load_dwordx4 $s4, $s2, 0x10",
    "s_load_b32 $s, $s2, 0x4",
    "s_load_b128 $s4, $s2, 0x10",
    "s_buffer_load_dword $s, $s4, 0x4",
    "s_buffer_load_b32 $s, $s4, 0x4",
    "s_dcache_inv",
    "v_nop",
    "v_mov_b32 $v, $v",
    "v_mov_b32 $v, $s",
    "v_mov_b32_dpp $v, $v row_shr:1 row_mask:0xf bank_mask:0xf",
    "v_add_f32 $v, $v, $v",
    "v_add_f32 $v, $s, $v",
    "v_rcp_f32 $v, $v",
    "v_exp_f32 $v, $v",
    "v_fma_f32 $v, $v, $v, $v",
    "v_cmp_lt_u32 vcc, $v, $v",
    "v_cmp_lt_u32 vcc_lo, $v, $v",
    "v_cmp_lt_u32 $s2, $v, $v",
    "v_cmpx_lt_u32 $v, $v",
    "v_cmpx_lt_u32 vcc, $v, $v",
    "v_cndmask_b32 $v, $v, $v, vcc",
    "v_cndmask_b32 $v, $v, $v, vcc_lo",
    "v_cndmask_b32_e64 $v, $v, $v, $s2",
    "v_add_co_ci_u32 $v, vcc, $v, $v, vcc",
    "v_add_co_ci_u32 $v, vcc_lo, $v, $v, vcc_lo",
    "v_div_scale_f32 $v, vcc, $v, $v, $v",
    "v_div_fmas_f32 $v, $v, $v, $v",
    "v_mad_u64_u32 $v2, $s2, $v, $v, $v2",
    "v_readfirstlane_b32 $s, $v",
    "v_readlane_b32 $s, $v, $s",
    "v_writelane_b32 $v, $s, $s",
    "v_permlane16_b32 $v, $v, $s, $s",
    "v_permlanex16_b32 $v, $v, $s, 0",
    "v_interp_p1_f32 $v, $v, attr1.x",
    "v_interp_p2_f32 $v, $v, attr1.y",
    "v_interp_p10_f32 $v, $v, $v, $v",
    "v_interp_p2_f32 $v, $v, $v, $v",
    "lds_param_load $v, attr0.x",
    "lds_param_load $v, attr0.x wait_vdst:15",
    "lds_direct_load $v wait_vdst:15",
    "ds_param_load $v, attr0.x wait_va_vdst:15 wait_vm_vsrc:1",
    "ds_direct_load $v wait_va_vdst:15 wait_vm_vsrc:1",
    "ds_read_b32 $v, $v offset:4",
    "ds_load_b32 $v, $v offset:4",
    "ds_write_b32 $v, $v offset:8",
    "ds_store_b32 $v, $v offset:8",
    "ds_add_u32 $v, $v gds",
    "ds_add_rtn_u32 $v, $v, $v",
    "buffer_load_dword $v, $v, $s4, 0 offen",
    "buffer_load_dword $v, $v, $s4, $s offen",
    "buffer_load_b32 $v, $v, $s4, $s offen",
    "buffer_load_b32 $v, $v, $s4, null offen",
    "buffer_store_dwordx4 $v4, $v, $s4, 0 offen",
    "buffer_store_dwordx4 $v4, $v, $s4, $s offen",
    "buffer_store_b128 $v4, $v, $s4, $s offen",
    "buffer_store_b128 $v4, $v, $s4, null offen",
    "global_load_dword $v, $v2, off",
    "global_load_b32 $v, $v2, off",
    "global_load_b32 $v, $v, $s2",
    "global_store_dwordx4 $v2, $v4, off",
    "global_store_b128 $v, $v4, $s2",
    "scratch_load_dword $v, off, $s",
    "scratch_store_dword off, $v, $s",
    "scratch_store_b32 off, $v, $s",
    "flat_load_dword $v, $v2",
    "flat_load_b32 $v, $v2",
    "flat_store_dwordx4 $v2, $v4",
    "image_sample $v4, $v, $s8, $s4 dmask:0xf",
    "image_sample $v4, $v2, $s8, $s4 dmask:0xf dim:SQ_RSRC_IMG_2D",
    "image_sample $v4, [$v, $v], $s8, $s4 dmask:0xf dim:SQ_RSRC_IMG_2D",
    "exp mrt0 $v, $v, $v, $v",
    "exp pos0 $v, $v, $v, $v",
    "export mrt0 $v, $v, $v, $v",
];

/// What a block may end with, before the number of another block.
const BRANCHES: &[&str] = &[
    "s_branch",
    "s_cbranch_scc0",
    "s_cbranch_vccz",
    "s_cbranch_vccnz",
    "s_cbranch_execz",
    "s_cbranch_execnz",
];

/// A line with random registers at its places.
fn filled(line: &str, rng: &mut Rng) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some(at) = rest.find('$') {
        out += &rest[..at];
        let kind = &rest[at + 1..=at + 1];
        let digits = rest[at + 2..].bytes().take_while(u8::is_ascii_digit).count();
        let count: usize = rest[at + 2..at + 2 + digits].parse().unwrap_or(1);
        // Groups of scalar registers begin at multiples of their size.
        let step = if kind == "s" { count.min(4) } else { 1 };
        let first = rng.below(8 / step) * step;
        out += &match count {
            1 => format!("{kind}{first}"),
            _ => format!("{kind}[{first}:{}]", first + count - 1),
        };
        rest = &rest[at + 2 + digits..];
    }
    out + rest
}

/// Random blocks, the last of which ends the program.
fn blocks(gpu: &Gpu, pool: &[&str], rng: &mut Rng) -> Vec<CaseBlock> {
    let count = 1 + rng.below(5);
    let mut preds = vec![Vec::new(); count];
    let mut codes = Vec::new();
    for block in 0..count {
        let mut code = Vec::new();
        for _ in 0..rng.below(9) {
            let line = pool[rng.below(pool.len())];
            code.extend(text_line(&filled(line, rng), gpu));
        }
        if block + 1 == count {
            code.extend(text_line("s_endpgm", gpu));
        } else {
            let branch = BRANCHES[rng.below(BRANCHES.len())];
            let target = rng.below(count);
            let goes_on = branch != "s_branch";
            if goes_on || target != block + 1 {
                code.extend(text_line(&format!("{branch} B{target}"), gpu));
                preds[target].push(block);
            }
            if (goes_on || target == block + 1) && !preds[block + 1].contains(&block) {
                preds[block + 1].push(block);
            }
        }
        codes.push(code);
    }
    let block = |(code, preds): (Vec<CaseLine>, Vec<usize>)| CaseBlock {
        kinds: Vec::new(),
        loop_depth: 0,
        linear_preds: preds.clone(),
        logical_preds: preds,
        code,
    };
    codes.into_iter().zip(preds).map(block).collect()
}

fn count(program: &MachineProgram) -> usize {
    program.blocks.iter().map(|block| block.insts.len()).sum()
}

/// Its code, a blank line between blocks.
fn listing(program: &MachineProgram) -> String {
    let mut lines = String::new();
    for block in &program.blocks {
        for inst in &block.insts {
            text::write(&inst.inst, &program.gpu, &mut lines);
            lines.push('\n');
        }
        lines.push('\n');
    }
    lines
}

/// The lines that a GPU has.
fn pool(gpu: &Gpu) -> Vec<&'static str> {
    let has = |line: &&&str| {
        let sample = filled(line, &mut Rng::new(1));
        matches!(text_line(&sample, gpu)[..], [CaseLine::Inst(_)])
    };
    LINES.iter().filter(has).copied().collect()
}

#[test]
fn every_gpu_has_most_kinds_of_lines_and_every_line_is_of_a_gpu() {
    let mut unused = LINES.to_vec();
    for name in rig::GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            let own = pool(&gpu);
            assert!(own.len() * 2 > LINES.len(), "{name} has {} of {} lines", own.len(), LINES.len());
            unused.retain(|line| !own.contains(line));
        }
    }
    assert!(unused.is_empty(), "{unused:#?}");
}

#[test]
fn random_blocks_have_what_hazards_need() {
    let seeds = rig::seeds(400);
    let mut inserted = 0;
    for name in rig::GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            if gpu.wave64() != wave64 {
                continue;
            }
            let pool = pool(&gpu);
            for seed in seeds.clone() {
                let own = blocks(&gpu, &pool, &mut Rng::new(seed));
                let (mut program, _) = machine(&gpu, &own).unwrap_or_else(|error| panic!("{error}"));
                waits::insert(&mut program);
                let before = count(&program);
                hazards::insert(&mut program);
                inserted += count(&program) - before;
                let words = assemble(&mut program).unwrap_or_else(|error| panic!("{error}")).words;
                let options = CheckOptions { continues: true, ..CheckOptions::default() };
                let report = check_words(&words, &gpu, &options);
                // Random branches may leave no way to the end.
                let is_wrong = |finding: &&CheckFinding| {
                    finding.level == Certainty::Error && finding.rule != Rule::NoEnd
                };
                let wrong = report.findings.iter().find(is_wrong);
                assert!(
                    wrong.is_none(),
                    "{name}, wave64: {wave64}, seed {seed}: {wrong:?}\n{}",
                    listing(&program)
                );
            }
        }
    }
    assert!(inserted > 0, "hazards are met");
}
