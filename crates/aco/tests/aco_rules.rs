//! Instructions that become others in the optimizer: what they become, and that the results stay the same.

mod rig;

use rig::GPUS;
use rig::straight::{allowed, part_words, stored};
use rig::translate::{CaseArgument, PartResult};
use unwedge_aco::ir::{FloatFreedom, PhysReg, Program, text};
use unwedge_aco::{Passes, optimize};
use unwedge_isa::amdgcn::model::Type;
use unwedge_isa::amdgcn::{Gfx, Gpu};

/// Denormals of 32 bits are flushed, those of 16 bits are kept.
const MODE: u8 = 0xc0;

/// A program with the arguments `%2` to `%4` in vector registers, `%5` and `%6` in scalar ones, that stores the result `%99`.
fn program(gpu: &str, code: &str) -> Program {
    let lines: Vec<&str> = code.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let code = lines.join("\n  ");
    let text = format!(
        "\
program {gpu} wave64 selected lds 0 scratch 0
B0 plain depth 0 0 0 top preds - - succs - -
  %0:s4@s[0:3], %1:v1@v0, %2:v1@v1, %3:v1@v2, %4:v1@v3, %5:s1@s4, %6:s1@s5 = p_startpgm
  p_logical_start
  {code}
  buffer_store_dword %99, %1, %0, 0x0:s1 offen=1
  p_logical_end
  s_endpgm
"
    );
    text::parse(&text).unwrap_or_else(|error| panic!("{gpu}: {error}:\n{text}"))
}

fn arguments() -> Vec<CaseArgument> {
    let vectors = (1..=3).map(PhysReg::vgpr);
    let scalars = (4..=5).map(PhysReg::sgpr);
    vectors.chain(scalars).map(|reg| CaseArgument { reg, dwords: 1, most: u32::MAX, temp: None }).collect()
}

/// The instructions of a program after the optimizer, which has the same results as before.
#[track_caller]
fn optimized(gpu: &str, code: &str) -> Vec<String> {
    optimized_as(gpu, code, &PartResult { ty: Type::B32, freedom: FloatFreedom::default() })
}

/// The same, where the results are as good as before.
#[track_caller]
fn optimized_as(gpu: &str, code: &str, result: &PartResult) -> Vec<String> {
    let before = program(gpu, code);
    let mut after = before.clone();
    optimize(&mut after, MODE, Passes::default());
    let mut shown = String::new();
    text::print(&after, &mut shown);
    for seed in 0..6 {
        let run = |program: &Program| {
            let bytes = stored(program, MODE, &arguments(), seed);
            part_words(&bytes.unwrap_or_else(|why| panic!("{gpu}: {why}:\n{shown}")), 0)
        };
        for (got, wanted) in run(&after).into_iter().zip(run(&before)) {
            let right = allowed(result, got, wanted);
            assert!(right, "{gpu}, seed {seed}: {got:#x}, not {wanted:#x}:\n{code}\n{shown}");
        }
    }
    let code = shown.lines().skip_while(|line| !line.contains("p_logical_start")).skip(1);
    code.take_while(|line| !line.contains("buffer_store")).map(|line| line.trim().to_owned()).collect()
}

/// Checks that code becomes some instructions, in this order. A choice by the result, if there is one, is not counted.
#[track_caller]
fn check(gpu: &str, code: &str, wanted: &[&str]) {
    let found = optimized(gpu, code);
    let choice = |line: &&String| line.contains("v_cndmask_b32 0x0:s1, 0x1:s1");
    let found: Vec<&str> = found.iter().filter(|line| !choice(line)).map(String::as_str).collect();
    let fits =
        found.len() == wanted.len() && found.iter().zip(wanted).all(|(line, wanted)| line.contains(wanted));
    assert!(fits, "{gpu}: {found:#?}, not {wanted:?}");
}

/// GPUs from one generation on.
fn since(gfx: Gfx) -> impl Iterator<Item = &'static str> {
    GPUS.into_iter().filter(move |name| Gpu::new(name).expect("a GPU").generation() >= gfx)
}

const CHOICE: &str = "%99:v1 = v_cndmask_b32 0x0:s1, 0x1:s1, %90";

/// Relations of floats, and those that hold in the same cases or for a NaN.
const RELATIONS: [[&str; 2]; 6] =
    [["lt", "nge"], ["le", "ngt"], ["gt", "nle"], ["ge", "nlt"], ["eq", "nlg"], ["lg", "neq"]];

#[test]
fn a_comparison_includes_tests_for_nans() {
    for gpu in GPUS {
        for [ordered, unordered] in RELATIONS {
            let both = |test: &str, relation: &str, operation: &str| {
                format!(
                    "%10:s2 = v_cmp_{test}_f32 %2, %2
                    %11:s2 = v_cmp_{relation}_f32 0x40800000:s1, %2
                    %90:s2, %12:s1@scc = {operation} %10, %11
                    {CHOICE}"
                )
            };
            check(
                gpu,
                &both("neq", ordered, "s_or_b64"),
                &[&format!("v_cmp_{unordered}_f32 0x40800000:s1, %2")],
            );
            check(
                gpu,
                &both("eq", unordered, "s_and_b64"),
                &[&format!("v_cmp_{ordered}_f32 0x40800000:s1, %2")],
            );
            // Of these, each says something of its own.
            for code in [
                both("neq", unordered, "s_or_b64"),
                both("eq", ordered, "s_and_b64"),
                both("neq", ordered, "s_and_b64"),
            ] {
                let found = optimized(gpu, &code);
                assert!(found.iter().any(|line| line.contains(" s_")), "{gpu}: {found:#?}");
            }
        }
    }
}

#[test]
fn a_comparison_of_two_values_includes_a_test_of_both() {
    for gpu in GPUS {
        for [ordered, unordered] in RELATIONS {
            let both = |tests: [&str; 2], inner: &str, relation: &str| {
                let [a, b] = tests;
                format!(
                    "%10:s2 = v_cmp_{a}_f32 %2, %2
                    %11:s2 = v_cmp_{b}_f32 %3, %3
                    %12:s2, %13:s1@scc = {inner} %10, %11
                    %14:s2 = v_cmp_{relation}_f32 %3, %2
                    %90:s2, %15:s1@scc = {inner} %14, %12
                    {CHOICE}"
                )
            };
            check(gpu, &both(["neq"; 2], "s_or_b64", ordered), &[&format!("v_cmp_{unordered}_f32 %3, %2")]);
            check(gpu, &both(["eq"; 2], "s_and_b64", unordered), &[&format!("v_cmp_{ordered}_f32 %3, %2")]);
        }
        // A test of one value says less than the comparison.
        let one = format!(
            "%10:s2 = v_cmp_neq_f32 %2, %2
            %11:s2 = v_cmp_lt_f32 %3, %2
            %90:s2, %12:s1@scc = s_or_b64 %10, %11
            {CHOICE}"
        );
        check(gpu, &one, &["v_cmp_neq_f32", "v_cmp_lt_f32", "s_or_b64"]);
        // A constant that is a NaN makes a comparison false, not a test of the other value.
        for operands in ["0xffffffff:s1, %2", "%2, 0xffffffff:s1"] {
            let nan = format!(
                "%10:s2 = v_cmp_neq_f32 %2, %2
                %11:s2 = v_cmp_lt_f32 {operands}
                %90:s2, %12:s1@scc = s_or_b64 %10, %11
                {CHOICE}"
            );
            assert_eq!(optimized(gpu, &nan).len(), 4, "{gpu}");
        }
    }
}

#[test]
fn counts_are_added_where_bits_are_counted() {
    for gpu in GPUS {
        let sum = if Gpu::new(gpu).expect("a GPU").generation() >= Gfx::Gfx9 {
            "%99:v1 = v_add_u32"
        } else {
            "%99:v1, %30:s2 = v_add_co_u32"
        };
        let count = "%10:v1 = v_bcnt_u32_b32 %2, 0x0:s1";
        for operands in ["%3, %10", "%5, %10"] {
            let other = &operands[..2];
            check(gpu, &format!("{count}\n{sum} {operands}"), &[&format!("v_bcnt_u32_b32 %2, {other}")]);
        }
        let lanes = "%10:v1 = v_mbcnt_lo_u32_b32 %5, 0x0:s1\n%11:v1 = v_mbcnt_hi_u32_b32 %6, %10";
        check(
            gpu,
            &format!("{lanes}\n{sum} %3, %11"),
            &["v_mbcnt_lo_u32_b32 %5, %3", "v_mbcnt_hi_u32_b32 %6, "],
        );
        // A count that starts with something has no place for more.
        let started = "%10:v1 = v_bcnt_u32_b32 %2, %4";
        assert_eq!(optimized(gpu, &format!("{started}\n{sum} %3, %10")).len(), 2, "{gpu}");
    }
}

#[test]
fn products_of_24_bits_are_added_where_they_are_made() {
    for gpu in GPUS {
        for (product, both) in [("v_mul_u32_u24", "v_mad_u32_u24"), ("v_mul_i32_i24", "v_mad_i32_i24")] {
            let code = format!("%10:v1 = {product} %2, %3\n%99:v1, %30:s2 = v_add_co_u32 %4, %10");
            check(gpu, &code, &[&format!("{both} %2, %3, %4")]);
            // Whoever reads the carry needs the sum that makes it.
            let carried = format!(
                "%10:v1 = {product} %2, %3
                %11:v1, %30:s2 = v_add_co_u32 %4, %10
                %99:v1, %31:s2 = v_addc_co_u32 %11, %2, %30"
            );
            assert_eq!(optimized(gpu, &carried).len(), 3, "{gpu}");
        }
    }
}

#[test]
fn values_of_16_bits_are_clamped_by_medians() {
    for gpu in since(Gfx::Gfx9) {
        let clamped = |ty: &str, first: &str, low: &str, second: &str, high: &str| {
            format!(
                "%10:v2b = p_extract_vector %2, 0x0:s1
                %11:v2b = {first}_{ty} {low}:v2b, %10
                %12:v2b = {second}_{ty} {high}:v2b, %11
                %99:v1 = p_extract %12, 0x0:s1, 0x10:s1, 0x0:s1"
            )
        };
        let has = |ty: &str, median: bool, code: &str| {
            let found = optimized(gpu, code);
            let found = found.iter().any(|line| line.contains(&format!("v_med3_{ty}")));
            assert_eq!(found, median, "{gpu}: {code}");
        };
        has("f16", true, &clamped("f16", "v_max", "0xc000", "v_min", "0x4000"));
        has("f16", true, &clamped("f16", "v_max", "0x8000", "v_min", "0x3c00"));
        has("i16", true, &clamped("i16", "v_max", "0xfffe", "v_min", "0x3"));
        has("i16", true, &clamped("i16", "v_min", "0x3", "v_max", "0xfffe"));
        has("u16", true, &clamped("u16", "v_max", "0x3", "v_min", "0xfffe"));
        has("u16", true, &clamped("u16", "v_min", "0xfffe", "v_max", "0x3"));
        // The upper bound is the lower one, a zero or what may be flushed to one, or a NaN.
        has("f16", false, &clamped("f16", "v_max", "0x4000", "v_min", "0xc000"));
        has("f16", false, &clamped("f16", "v_max", "0xc000", "v_min", "0x8000"));
        has("f16", false, &clamped("f16", "v_max", "0xc000", "v_min", "0x1"));
        has("f16", false, &clamped("f16", "v_max", "0x0", "v_min", "0x7e00"));
        has("u16", false, &clamped("u16", "v_max", "0xfffe", "v_min", "0x3"));
        // The minimum of a NaN is the upper bound, the median the lower one.
        has("f16", false, &clamped("f16", "v_min", "0x4000", "v_max", "0xc000"));
    }
}

#[test]
fn factors_in_halves_take_the_sign_of_their_product() {
    for gpu in since(Gfx::Gfx11) {
        let code = "%10:v2b = p_extract_vector %2, 0x1:s1
            %11:v2b = p_extract_vector %3, 0x0:s1
            %12:v2b = v_mul_f16~nz %11, %10
            %13:v2b = v_mul_f16~nz 0xbc00:v2b, %12
            %99:v1 = p_extract %13, 0x0:s1, 0x10:s1, 0x0:s1";
        let result = PartResult { ty: Type::F16, freedom: FloatFreedom { nans: true, zeros: false } };
        let found = optimized_as(gpu, code, &result);
        let products = found.iter().filter(|line| line.contains("v_mul_f16")).count();
        assert_eq!(products, 1, "{gpu}: {found:#?}");
    }
}
