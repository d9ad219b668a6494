//! The IR of the back end: its text and its validators.

use unwedge_aco::ir::shape::Variants;
use unwedge_aco::ir::{Op, RegClass, text};
use unwedge_aco::valid;
use unwedge_isa::amdgcn::Opcode;

const PROGRAM: &str = "\
program gfx1030 wave64 selected lds 16 scratch 0
c0 if divergent parent - head - merge B3
B0 branch c0 depth 0 0 0 top preds - - succs B1,B3 B1,B2
  %0:s2@s[0:1], %1:v1@v0 = p_startpgm
  p_logical_start
  %2:v1 = v_add_f32 %1, 0x3f800000:s1 neg=1
  %3:s2 = v_cmp_lt_f32 %1, %2
  p_logical_end
  p_cbranch_z %3
B1 plain depth 0 1 0 preds B0 B0 succs B3 B3
  %4:v1 = v_mul_f32! %2, %2
  p_branch
B2 invert depth 0 0 0 preds - B0 succs - B3
  p_branch
B3 merge c0 depth 0 0 0 top preds B1,B0 B1,B2 succs - -
  %5:v1 = p_phi %4, %2
  s_endpgm
";

#[test]
fn text_is_read_back() {
    let program = text::parse(PROGRAM).expect("reads");
    let mut printed = String::new();
    text::print(&program, &mut printed);
    assert_eq!(printed, PROGRAM);
}

#[test]
fn the_program_is_valid() {
    let program = text::parse(PROGRAM).expect("reads");
    let violations = valid::ir(&program, &Variants::of(&program.gpu)).err().unwrap_or_default();
    let texts: Vec<_> = violations.iter().map(|v| v.describe(&program)).collect();
    assert!(texts.is_empty(), "{texts:#?}");
}

#[test]
fn what_is_not_valid_is_found() {
    for (from, to, reason) in [
        ("%4:v1 = v_mul_f32! %2, %2", "%4:v1 = v_mul_f32! %2, %9", "not defined"),
        ("%4:v1 = v_mul_f32! %2, %2", "%2:v1 = v_mul_f32! %1, %1", "defined twice"),
        ("%5:v1 = p_phi %4, %2", "%5:v1 = p_phi %4", "operands for 2 predecessors"),
        ("%5:v1 = p_phi %4, %2", "%5:v1 = v_mul_f32 %4, %2", "not defined on every path"),
        ("v_add_f32 %1, 0x3f800000:s1", "v_add_f32 %1", "operands, and"),
        ("v_add_f32 %1, 0x3f800000:s1", "v_add_f32 %1, %0", "bytes"),
        ("v_add_f32 %1, 0x3f800000:s1", "v_add_f32 0x12345:s1, 0x54321:s1", "two literals"),
        ("p_cbranch_z %3", "p_branch", "another end"),
        ("preds B1,B0 B1,B2", "preds B1,B0 B1", "does not name it"),
    ] {
        assert!(PROGRAM.contains(from));
        let program = text::parse(&PROGRAM.replacen(from, to, 1)).expect("reads");
        let violations = valid::ir(&program, &Variants::of(&program.gpu)).expect_err(reason);
        let texts: Vec<_> = violations.iter().map(|v| v.describe(&program)).collect();
        assert!(texts.iter().any(|text| text.contains(reason)), "{reason}: {texts:#?}");
    }
}

#[test]
fn classes_have_names() {
    for name in ["s1", "s2", "s16", "v1", "v2", "v1b", "v2b", "v6b", "lv1"] {
        let class = RegClass::parse(name).expect(name);
        assert_eq!(class.to_string(), name);
    }
    for name in ["", "x1", "s", "s0", "s2b", "lv2b", "v33", "v999", "v-1"] {
        assert_eq!(RegClass::parse(name), None, "{name}");
    }
}

/// Registers that are right, and each way to be wrong.
#[test]
fn registers_are_followed() {
    let allocated = "\
program gfx1030 wave64 allocated lds 0 scratch 0
B0 plain depth 0 0 0 top preds - - succs - -
  %0:s2@s[0:1], %1:v1@v0 = p_startpgm
  %2:v1@v1 = v_add_f32 %1@v0, 0x3f800000:s1
  %3:v1@v0 = v_add_f32 %1@v0, %2@v1
  %4:v1@v2 = v_add_f32 %3@v0, %2@v1
  s_endpgm
";
    let check = |text: &str| valid::ra(&text::parse(text).expect("reads"));
    assert_eq!(check(allocated), Ok(()));
    for (from, to) in [
        ("%4:v1@v2 = v_add_f32 %3@v0", "%4:v1@v2 = v_add_f32 %1@v0"),
        ("%2:v1@v1 =", "%2:v1@v0 ="),
        ("%2:v1@v1 =", "%2:v1 ="),
        ("%0:s2@s[0:1]", "%0:s2@v[0:1]"),
        ("%4:v1@v2 = v_add_f32 %3@v0", "%4:v1@v2 = v_add_f32 %3"),
    ] {
        assert!(allocated.contains(from));
        check(&allocated.replacen(from, to, 1)).expect_err(to);
    }
}

/// All bits of a spread lane mask choose between a word and zero; a part of it, which SDWA extends by zeros, keeps less of the word.
#[test]
fn a_part_of_a_spread_mask_is_not_all_of_it() {
    let program = |and: &str| {
        let text = format!(
            "\
program gfx900 wave64 selected lds 0 scratch 0
B0 plain depth 0 0 0 top preds - - succs - -
  %0:s2@s[0:1], %1:v1@v0 = p_startpgm
  p_logical_start
  %2:v1, %3:s2 = v_subbrev_co_u32 0x0:s1, 0x0:s1, %0
  %4:v1 = {and}
  ds_write_b32 %1, %4
  p_logical_end
  s_endpgm
"
        );
        let mut program = text::parse(&text).expect("reads");
        unwedge_aco::optimize(&mut program, 0, unwedge_aco::Passes::default());
        let mut printed = String::new();
        text::print(&program, &mut printed);
        printed
    };
    let whole = program("v_and_b32 %1, %2");
    assert!(whole.contains("v_cndmask_b32 0x0:s1, %1, %0"), "{whole}");
    let part = program("v_and_b32/sdwa %1, %2 src1_sel=5");
    assert!(part.contains("v_and_b32/sdwa %1, %2"), "{part}");
}

/// What becomes of the last instructions of a program that flushes denormals of 32 bits and keeps those of 16.
fn optimized(gpu: &str, code: &str) -> String {
    let text = format!(
        "\
program {gpu} wave64 selected lds 0 scratch 0
B0 plain depth 0 0 0 top preds - - succs - -
  %0:v1@v0, %1:v1@v1 = p_startpgm
  p_logical_start
{code}
  p_end_linear_vgpr %9
  p_logical_end
  s_endpgm
"
    );
    let mut program = text::parse(&text).expect("reads");
    unwedge_aco::optimize(&mut program, 0xc0, unwedge_aco::Passes::default());
    let mut printed = String::new();
    text::print(&program, &mut printed);
    printed
}

/// Zeros that are multiplied by an output modifier lose their sign, and changed signs of products change those of NaNs.
#[test]
fn floats_change_only_where_they_are_free_to() {
    let doubled = |free: &str| {
        optimized(
            "gfx1030",
            &format!("  %2:v1 = v_add_f32{free} %0, %1\n  %9:v1 = v_mul_f32{free} 0x40000000:s1, %2"),
        )
    };
    assert!(doubled("~z").contains("v_add_f32/e64~z %0, %1 omod=1"), "{}", doubled("~z"));
    assert!(doubled("~n").contains("v_mul_f32"), "{}", doubled("~n"));
    let negated = |free: &str| {
        optimized(
            "gfx1030",
            &format!("  %2:v1 = v_mul_f32{free} %0, %1\n  %9:v1 = v_xor_b32 0x80000000:s1, %2"),
        )
    };
    assert!(negated("~n").contains("v_mul_f32/e64~n %0, %1 neg=2"), "{}", negated("~n"));
    assert!(negated("~z").contains("v_xor_b32"), "{}", negated("~z"));
}

/// A fused operation is not one that rounds a product, and denormals of 16 bits that conversions flush are not read.
#[test]
fn conversions_are_part_of_mixed_operations() {
    let product = "  %2:v1 = v_cvt_f32_f16 %0\n  %9:v1 = v_mul_f32 %2, %1";
    let fused = "  %2:v1 = v_cvt_f32_f16 %0\n  %9:v1 = v_fma_f32 %2, %1, %1";
    assert!(optimized("gfx1030", product).contains("v_fma_mix_f32 %0, %1, 0x0:s1 neg=4 op_sel_hi=1"));
    assert!(optimized("gfx900", product).contains("v_mad_mix_f32 %0, %1, 0x0:s1 neg=4 op_sel_hi=1"));
    assert!(optimized("gfx1030", fused).contains("v_fma_mix_f32 %0, %1, %1 op_sel_hi=1"));
    assert!(optimized("gfx900", fused).contains("v_fma_f32"));
    assert!(optimized("gfx803", product).contains("v_mul_f32"));
}

/// A median does not tell zeros of both signs apart, as a minimum does.
#[test]
fn clamps_to_zero_are_medians_where_signs_of_zeros_are_free() {
    let clamped = |free: &str, high: &str| {
        let code =
            format!("  %2:v1 = v_max_f32{free} 0xbf800000:s1, %0\n  %9:v1 = v_min_f32{free} {high}:s1, %2");
        optimized("gfx900", &code)
    };
    for zero in ["0x0", "0x80000000"] {
        assert!(!clamped("", zero).contains("v_med3_f32"), "{}", clamped("", zero));
        assert!(!clamped("~n", zero).contains("v_med3_f32"), "{}", clamped("~n", zero));
    }
    assert!(clamped("~z", "0x0").contains("v_med3_f32~z %0"), "{}", clamped("~z", "0x0"));
    assert!(clamped("", "0x40000000").contains("v_med3_f32 %0"), "{}", clamped("", "0x40000000"));
}

/// A half of a word is what a shift leaves in a register, not what it leaves in `scc`.
#[test]
fn halves_are_first_results() {
    let packed = |half: &str| {
        let code = format!(
            "  %2:s1 = v_readfirstlane_b32 %0\n  %3:s1, %4:s1 = s_lshr_b32 %2, 0x10:s1\n  \
             %5:s1 = s_pack_ll_b32_b16 %2, {half}\n  %9:v1 = v_add_f32 %5, %1"
        );
        optimized("gfx1030", &code)
    };
    assert!(packed("%3").contains("s_pack_lh_b32_b16 %2, %2"), "{}", packed("%3"));
    assert!(packed("%4").contains("s_pack_ll_b32_b16 %2, %4"), "{}", packed("%4"));
}

/// Two instructions may have one name; a GPU has one of them.
#[test]
fn names_are_of_the_instructions_that_the_gpu_has() {
    for (gpu, name, opcode) in [
        ("gfx1030", "v_interp_p2_f32", Opcode::v_interp_p2_f32),
        ("gfx1100", "v_interp_p2_f32", Opcode::v_interp_p2_f32_vinterp),
        ("gfx900", "v_add_u32", Opcode::v_add_u32),
        ("gfx803", "v_add_co_u32", Opcode::v_add_co_u32),
    ] {
        let text = format!(
            "\
program {gpu} wave64 selected lds 0 scratch 0
B0 plain depth 0 0 0 top preds - - succs - -
  %0:v1@v0 = p_startpgm
  %1:v1 = {name} %0, %0
"
        );
        let program = text::parse(&text).expect("reads");
        let (_, block) = program.blocks.iter().next().expect("a block");
        assert_eq!(program.op(block.insts[1]), Op::Hw(opcode), "{gpu} {name}");
    }
}
