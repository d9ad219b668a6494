//! NIR text: what flow and operations mean, what is refused and where, and texts that are broken.

use unwedge_shader::front::nir::{Argument, Arguments, NirCause, NirError, Options, read};
use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, NoImages, Options as RunOptions, run_compute,
};
use unwedge_shader::ir::Shader;
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_testkit::data;
use unwedge_testkit::mutate::Rng;

/// Before every body: %1 is the input, %2 the output, %3 the invocation's index, %4 its offset in bytes.
const START: &str = "\
shader: MESA_SHADER_COMPUTE
workgroup_size: 8, 1, 1
shared_size: 64
decl_var ssbo INTERP_MODE_NONE restrict readonly In #0 (~0, 0, 0)
decl_var ssbo INTERP_MODE_NONE restrict Out #1 (~0, 0, 1)
decl_function main () (entrypoint)

impl main {
    con block b0:  // preds:
    con 32    %90 = @load_scalar_arg_amd (base=1, arg_upper_bound_u32_amd=0)
    con 32    %91 = load_const (0xffff8000 = -32768 = 4294934528)
    con 64    %92 = pack_64_2x32_split %90, %91 (0xffff8000)
    con 32    %93 = load_const (0x00000000 = 0.000000)
    con 32    %94 = load_const (0x00000010 = 16)
    con 32x4   %1 = @load_smem_amd (%92, %93 (0x0)) (align_mul=16, align_offset=0)
    con 32x4   %2 = @load_smem_amd (%92, %94 (0x10)) (align_mul=16, align_offset=0)
    div 32     %3 = @load_vector_arg_amd (base=3, arg_upper_bound_u32_amd=7)
    con 32    %95 = load_const (0x00000002)
    div 32     %4 = ishl %3, %95 (0x2)
";

const END: &str = "\n    // succs: b99\n    block b99:\n}\n\n";

fn options() -> Options {
    let arguments =
        vec![Argument::Other, Argument::DescriptorSet(0), Argument::Push(0), Argument::LocalId(0)];
    Options { arguments: Arguments(arguments), file: "test.nir".to_owned() }
}

fn try_read(body: &str) -> Result<Shader, NirError> {
    let mut shader = Shader::default();
    read(&format!("{START}{body}{END}"), &options(), &mut shader)?;
    Ok(shader)
}

/// The output of eight invocations.
fn run(body: &str, input: &[u32]) -> Vec<u32> {
    let shader = try_read(body).unwrap_or_else(|e| panic!("{e}\n{START}{body}"));
    let printed = print(&shader);
    let mut parsed = Shader::default();
    parse(&printed, &mut parsed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    validate(&parsed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
    let mut bindings = Bindings { push: 5u32.to_le_bytes().to_vec(), ..Bindings::default() };
    let bytes = input.iter().flat_map(|word| word.to_le_bytes()).collect();
    bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, bytes);
    let out = bindings.bind(BindingPoint { set: 0, binding: 1, index: 0 }, vec![0; 32]);
    let run_options = RunOptions { subgroup_size: 8, ..RunOptions::default() };
    let report = run_compute(&parsed, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &run_options);
    let report = report.unwrap_or_else(|e| panic!("{e}\n{printed}"));
    assert!(report.findings.is_empty(), "{:?}\n{printed}", report.findings);
    let words = bindings.memory[out].chunks_exact(4);
    words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

const STORE: &str = "    @store_ssbo (%50, %2, %4) (wrmask=x, access=none, align_mul=4, align_offset=0)";

#[test]
fn values_leave_ifs_and_loops_in_which_they_are_defined() {
    // Doubles 1 until it is past the invocation's index: %12 and %13 are used after the loop, %13 after an `if` whose other arm leaves.
    let body = format!(
        "    con 32 %10 = load_const (0x00000001)
    div loop {{
        con block b1:  // preds: b0 b4
        con 32 %11 = phi b0: %10 (0x1), b4: %12
        con 32 %12 = iadd! %11, %11
        div 1 %20 = ult %3, %11
        if %20 {{
            div block b2:  // preds: b1
            break
            // succs: b5
        }} else {{
            div block b3:  // preds: b1
            div 32 %13 = iadd %12, %94 (0x10)
        }}
        div block b4:
        div 32 %14 = iadd.nuw %13, %10 (0x1)
    }}
    con block b5:  // preds: b2
    div 32 %30 = phi b2: %11
    div 32 %50 = ior %30, %12
{STORE}"
    );
    let expected: Vec<u32> =
        (0..8u32).map(|index| (index + 1).next_power_of_two()).map(|power| power | (power * 2)).collect();
    assert_eq!(run(&body, &[]), expected);
}

#[test]
fn phis_of_ifs_continue_and_shared_memory() {
    // 3 where the index is odd, else 5, and what the next invocation has of it; odd ones come round a loop again.
    let body = format!(
        "    con 32 %10 = load_const (0x00000001)
    con 32 %11 = load_const (0x00000003)
    con 32 %12 = @load_scalar_arg_amd (base=2, arg_upper_bound_u32_amd=0)
    div 32 %13 = iand %3, %10 (0x1)
    div 1 %14 = ine %13, %93 (0x0)
    if %14 {{
        div block b1:  // preds: b0, succs: b3
    }} else {{
        div block b2:  // preds: b0, succs: b3
    }}
    con block b3:  // preds: b1 b2
    div 32 %15 = phi b1: %11 (0x3), b2: %12
    div loop {{
        con block b4:
        con 1 %16 = phi b3: %14, b5: %40
        con 32 %17 = phi b3: %93 (0x0), b5: %94 (0x10)
        con 1 %40 = load_const (false)
        if %16 {{
            div block b5:
            continue
        }} else {{
            div block b6:
        }}
        div block b7:
        break
    }}
    con block b8:
    div 32 %18 = ior %15, %17
    @store_shared (%18, %4) (base=4, wrmask=x, align_mul=4, align_offset=0)
    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)
    con 32 %19 = load_const (0x00000004)
    div 32 %20 = ixor %4, %19 (0x4)
    div 32 %21 = @load_shared (%20) (base=4, align_mul=4, align_offset=0)
    con 32 %22 = load_const (0x00000008)
    div 32 %23 = ishl %21, %22 (0x8)
    div 32 %50 = ior %23, %18
{STORE}"
    );
    assert_eq!(run(&body, &[]), [0x1305, 0x0513].repeat(4));
}

/// The low bits of a word with their sign.
fn signed(word: u32, bits: u32) -> i64 {
    i64::from((word << (32 - bits)) as i32 >> (32 - bits))
}

/// The sum of the products of the parts of two words, of which some are signed.
fn dot(a: u32, b: u32, bits: u32, signs: [bool; 2]) -> i64 {
    let part = |word: u32, at: u32, sign| {
        let own = word >> (at * bits) & ((1 << bits) - 1);
        if sign { signed(own, bits) } else { own.into() }
    };
    (0..32 / bits).map(|at| part(a, at, signs[0]) * part(b, at, signs[1])).sum()
}

fn clamp_signed(value: i64) -> u32 {
    value.clamp(i32::MIN.into(), i32::MAX.into()) as u32
}

fn clamp_unsigned(value: i64) -> u32 {
    value.min(u32::MAX.into()) as u32
}

/// Four sums of masked differences, of bytes further and further on; whole constants and sums of two 16-bit numbers.
#[test]
fn operations_on_vectors_compute_what_they_say() {
    let body = format!(
        "    con 32x2 %10 = load_const (0x04030201, 0x08070605)
    con 32 %11 = load_const (0x01000105)
    con 32x4 %12 = load_const (0x00000001, 0x00000002, 0x00000003, 0x00000004)
    con 32x4 %13 = mqsad_4x8 %11, %10, %12
    con 32 %14 = iadd %13.x, %13.y
    con 32 %15 = iadd %13.z, %13.w
    con 32 %16 = load_const (0x00000010)
    con 32 %17 = ishl %15, %16
    con 32 %18 = ior %14, %17
    con 16x2 %20 = unpack_32_2x16 %11
    con 16x2 %21 = load_const (0x7fff, 0x8000)
    con 16x2 %22 = iadd_sat %20, %21
    con 32 %23 = pack_32_2x16 %22
    con 32x2 %24 = load_const (0x00009000, 0xffff0000)
    con 32 %25 = pack_sint_2x16 %24
    con 32 %26 = ixor %23, %25
    con 32 %50 = iadd %18, %26
{STORE}"
    );
    // Bytes 5, 1 and 1 of the reference at places 0, 1 and 3.
    let bytes = [1u32, 2, 3, 4, 5, 6, 7, 8];
    let sums: Vec<u32> = (0..4u32)
        .map(|at| {
            let byte = |place: usize| bytes[at as usize + place];
            at + 1 + byte(0).abs_diff(5) + byte(1).abs_diff(1) + byte(3).abs_diff(1)
        })
        .collect();
    let joined = (sums[0] + sums[1]) | ((sums[2] + sums[3]) << 16);
    // 0x0105 + 0x7fff and 0x0100 + 0x8000; 0x9000 and -0x10000 as signed halves.
    let expected = joined.wrapping_add(((0x8100 << 16) | 0x7fff) ^ ((0x8000 << 16) | 0x7fff));
    assert_eq!(run(&body, &[]), [expected; 8]);
}

/// Lanes read those of a pattern; eight lanes form the subgroup.
#[test]
fn lanes_read_by_patterns() {
    type Case = (&'static str, fn(u32) -> u32);
    let cases: &[Case] = &[
        ("@quad_swizzle_amd (%3) (swizzle_mask=177, fetch_inactive=1)", |lane| lane ^ 1),
        ("@quad_swizzle_amd (%3) (swizzle_mask=170)", |lane| lane & !3 | 2),
        ("@quad_swizzle_amd (%3) (swizzle_mask=57)", |lane| lane & !3 | (lane + 1) & 3),
        ("@masked_swizzle_amd (%3) (swizzle_mask=4191)", |lane| lane ^ 4 | 2),
        ("@rotate (%3, %95) (cluster_size=0)", |lane| (lane + 2) & 7),
        ("@rotate (%3, %95) (cluster_size=4)", |lane| lane & !3 | (lane + 2) & 3),
        ("@write_invocation_amd (%3, %94, %95)", |lane| if lane == 2 { 16 } else { lane }),
        ("@last_invocation", |_| 7),
        ("@as_uniform (%3)", |_| 0),
        ("@optimization_barrier_vgpr_amd (%3)", |lane| lane),
    ];
    for (text, expected) in cases {
        let body = format!("    div 32 %50 = {text}\n{STORE}");
        let wanted: Vec<u32> = (0..8).map(expected).collect();
        assert_eq!(run(&body, &[]), wanted, "{text}");
    }
    for (name, wanted) in [("any", [1, 1, 1, 1, 0, 0, 0, 0]), ("all", [0; 8])] {
        let body = format!(
            "    div 1 %10 = ieq %3, %95\n    div 1 %11 = @quad_vote_{name} (%10)\n    div 32 %50 = b2i32 %11\n{STORE}"
        );
        assert_eq!(run(&body, &[]), wanted, "{name}");
    }
}

/// Pairs of words in the memory of the workgroup, near and 64 elements apart.
#[test]
fn pairs_of_words_of_the_workgroup() {
    let body = format!(
        "    div 32x2 %10 = vec2 %3, %4
    @store_shared2_amd (%10, %4) (offset0=0, offset1=8, st64=0)
    @barrier (execution_scope=WORKGROUP, memory_scope=WORKGROUP, mem_semantics=ACQ|REL, mem_modes=shared)
    con 32 %12 = load_const (0x00000004)
    div 32 %13 = ixor %4, %12
    div 32x2 %14 = @load_shared2_amd (%13) (offset0=8, offset1=0, st64=0)
    con 32 %15 = load_const (0x00000008)
    div 32 %16 = ishl %14.x, %15
    div 32 %50 = ior %16, %14.y
{STORE}"
    );
    let wanted: Vec<u32> = (0..8u32).map(|lane| lane ^ 1).map(|other| other << 10 | other).collect();
    assert_eq!(run(&body, &[]), wanted);
}

#[test]
fn operations_of_machines_compute_what_they_say() {
    type Case = (&'static str, fn(u32, u32, u32) -> u32);
    let cases: &[Case] = &[
        ("bitfield_select %5, %6, %7", |a, b, c| a & b | !a & c),
        ("ubfe %5, %6, %7", |a, b, c| (u64::from(a) >> (b & 31)) as u32 & ((1 << (c & 31)) - 1)),
        ("ibfe %5, %6, %7", |a, b, c| {
            let (offset, count) = (b & 31, c & 31);
            let count = count.min(32 - offset);
            if count == 0 { 0 } else { ((a << (32 - offset - count)) as i32 >> (32 - count)) as u32 }
        }),
        ("ufind_msb_rev %5", |a, _, _| if a == 0 { u32::MAX } else { a.leading_zeros() }),
        ("ifind_msb_rev %5", |a, _, _| {
            let differs = if (a as i32) < 0 { !a } else { a };
            if differs == 0 { u32::MAX } else { differs.leading_zeros() }
        }),
        ("iadd_sat %5, %6", |a, b, _| (a as i32).saturating_add(b as i32) as u32),
        ("isub_sat %5, %6", |a, b, _| (a as i32).saturating_sub(b as i32) as u32),
        ("udot_4x8_uadd %5, %6, %7", |a, b, c| dot(a, b, 8, [false; 2]).wrapping_add(c.into()) as u32),
        ("udot_4x8_uadd_sat %5, %6, %7", |a, b, c| clamp_unsigned(dot(a, b, 8, [false; 2]) + i64::from(c))),
        ("sdot_4x8_iadd %5, %6, %7", |a, b, c| dot(a, b, 8, [true; 2]).wrapping_add(c.into()) as u32),
        ("sdot_4x8_iadd_sat %5, %6, %7", |a, b, c| clamp_signed(dot(a, b, 8, [true; 2]) + signed(c, 32))),
        ("sudot_4x8_iadd %5, %6, %7", |a, b, c| dot(a, b, 8, [true, false]).wrapping_add(c.into()) as u32),
        ("sudot_4x8_iadd_sat %5, %6, %7", |a, b, c| {
            clamp_signed(dot(a, b, 8, [true, false]) + signed(c, 32))
        }),
        ("udot_2x16_uadd %5, %6, %7", |a, b, c| dot(a, b, 16, [false; 2]).wrapping_add(c.into()) as u32),
        ("udot_2x16_uadd_sat %5, %6, %7", |a, b, c| clamp_unsigned(dot(a, b, 16, [false; 2]) + i64::from(c))),
        ("sdot_2x16_iadd %5, %6, %7", |a, b, c| dot(a, b, 16, [true; 2]).wrapping_add(c.into()) as u32),
        ("sdot_2x16_iadd_sat %5, %6, %7", |a, b, c| clamp_signed(dot(a, b, 16, [true; 2]) + signed(c, 32))),
        ("msad_4x8 %5, %6, %7", |a, b, c| {
            let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
            let differences = pairs.filter(|(a, _)| *a != 0).map(|(a, b)| u32::from(a.abs_diff(b)));
            c.wrapping_add(differences.sum())
        }),
        ("umin3 %5, %6, %7", |a, b, c| a.min(b).min(c)),
        ("imax3 %5, %6, %7", |a, b, c| (a as i32).max(b as i32).max(c as i32) as u32),
        ("umed3 %5, %6, %7", |a, b, c| {
            let mut all = [a, b, c];
            all.sort_unstable();
            all[1]
        }),
        ("uabs_usub %5, %6", |a, b, _| a.abs_diff(b)),
        ("uabs_isub %5, %6", |a, b, _| (a as i32).abs_diff(b as i32)),
        ("umad24 %5, %6, %7", |a, b, c| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff).wrapping_add(c)),
        ("shfr %5, %6, %7", |a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (c & 31)) as u32),
        ("alignbyte_amd %5, %6, %7", |a, b, c| ((u64::from(a) << 32 | u64::from(b)) >> (8 * (c & 3))) as u32),
        ("isign %5", |a, _, _| (a as i32).signum() as u32),
        ("uadd_sat %5, %6", |a, b, _| a.saturating_add(b)),
        ("usub_sat %5, %6", |a, b, _| a.saturating_sub(b)),
        ("umul24 %5, %6", |a, b, _| (a & 0xff_ffff).wrapping_mul(b & 0xff_ffff)),
        ("imul24 %5, %6", |a, b, _| {
            let low = |x: u32| (x << 8) as i32 >> 8;
            low(a).wrapping_mul(low(b)) as u32
        }),
        ("bfm %5, %6", |a, b, _| ((1u32 << (a & 31)) - 1) << (b & 31)),
        ("insert_u16 %5, %95 (0x2)", |a, _, _| a & 0xffff),
        ("extract_u8 %5, %95 (0x2)", |a, _, _| a >> 16 & 0xff),
        ("extract_i8 %5, %95 (0x2)", |a, _, _| (a >> 16) as u8 as i8 as u32),
        ("extract_i16 %5, %93 (0x0)", |a, _, _| a as u16 as i16 as u32),
        ("fsat %5", |a, _, _| {
            let a = f32::from_bits(a);
            (if a > 0.0 { a.min(1.0) } else { 0.0 }).to_bits()
        }),
    ];
    let edges = [0, 1, 31, 32, 0xff, 0x7fff_ffff, 0x8000_0000, u32::MAX, 0x1234_5678, 0x3f00_0000];
    let mut rng = Rng::new(7);
    let mut word =
        || if rng.below(2) == 0 { edges[rng.below(edges.len())] } else { rng.below(1 << 32) as u32 };
    for (text, expected) in cases {
        for _ in 0..20 {
            let input: Vec<u32> = (0..24).map(|_| word()).collect();
            let body = format!(
                "    con 32 %8 = load_const (0x00000020 = 32)
    con 32 %9 = load_const (0x00000040 = 64)
    div 32 %10 = iadd %4, %8 (0x20)
    div 32 %11 = iadd %4, %9 (0x40)
    div 32 %5 = @load_ssbo (%1, %4) (access=readonly|reorderable, align_mul=4, align_offset=0)
    div 32 %6 = @load_ssbo (%1, %10) (access=readonly|reorderable, align_mul=4, align_offset=0)
    div 32 %7 = @load_ssbo (%1, %11) (access=readonly|reorderable, align_mul=4, align_offset=0)
    div 32 %50 = {text}
{STORE}"
            );
            let wanted: Vec<u32> = (0..8).map(|i| expected(input[i], input[i + 8], input[i + 16])).collect();
            assert_eq!(run(&body, &input), wanted, "{text} {input:x?}");
        }
    }
}

#[test]
fn components_and_masks() {
    let body = "    con 32 %10 = load_const (0x00000001)
    con 32x3 %11 = vec3 %10 (0x1), %94 (0x10), %95 (0x2)
    con 32x4 %12 = vec4 %11.z, %11.y, %11.x, %10 (0x1)
    con 32x2 %13 = iadd %12.xy, %11.yy
    con 32 %14 = iadd %13.x, %13.y
    con 32x2 %16 = iadd %10 (0x1).xx, %13
    con 32x4 %15 = vec4 %14, %10, %14, %16.y
    @store_ssbo (%15, %2, %93 (0x0)) (wrmask=xzw, access=none, align_mul=16, align_offset=0)";
    // Only one invocation, so that nothing races.
    let body = format!(
        "    div 1 %9 = ieq %3, %93 (0x0)
    if %9 {{
        div block b1:
{body}
    }} else {{
        con block b2:
    }}
    con block b3:"
    );
    assert_eq!(run(&body, &[]), [50, 0, 50, 33, 0, 0, 0, 0]);
}

#[test]
fn what_is_refused_is_named_with_its_line() {
    let first = START.lines().count() + 1;
    let cases = [
        ("    con 32 %5 = fddx %3", "not supported: fddx with 1 operands"),
        ("    con 32 %5 = @load_ring_offsets_amd", "not supported: @load_ring_offsets_amd"),
        ("    con 32 %5 = iadd %3, %77", "%77 is not defined here"),
        ("    con 32 %3 = iadd %4, %4", "%3 is defined twice"),
        ("    con 32 %5 = iadd %3", "iadd has 1 operands instead of 2"),
        ("    con 64 %5 = iadd %3, %3", "the result has the type b32, not b64"),
        ("    con 32 %5 = iadd %3, %90", "not supported: the address of a descriptor set as a number"),
        ("    con 32 %5 = iadd %3, %1.x", "not supported: a descriptor as a number"),
        ("    con 32 %5 = iadd %3, %3.y", "%3 has no component y"),
        ("    con 32 %5 = ishl %3, %92", "not supported: the address of a descriptor set as a number"),
        (
            "    con 32x4 %5 = @load_smem_amd (%92, %3)",
            "not supported: a descriptor at an offset that is not constant",
        ),
        ("    con 32x5 %5 = undefined", "not supported: values of the type 32x5"),
        (
            "    con 32 %5 = @load_scalar_arg_amd (base=7)",
            "not supported: argument 7, whose meaning is not known",
        ),
        ("    con 32 %5 = phi b0: %3", "a phi is not at the start of its block"),
        ("    break", "a break or continue is in no loop"),
        ("    con 1 %5 = ieq %3, %92.x", "not supported: the address of a descriptor set as a number"),
        ("    con 16 %5 = u2u8 %3", "the result has the type b8, not b16"),
        ("    con 8 %5 = f2u8 %3\n    con 8 %6 = fadd %5, %5", "fadd: the type b8 is wrong"),
        (
            "    @store_ssbo (%3, %3, %4) (wrmask=x)",
            "not supported: a descriptor that is not loaded from a descriptor set",
        ),
        (
            "    con 32 %5 = @ssbo_atomic (%2, %4, %3) (atomic_op=inc_wrap)",
            "not supported: atomic_op=inc_wrap",
        ),
        (
            "    @store_buffer_amd (%3, %2, %4, %93, %93) (base=0, wrmask=, memory_modes=ssbo)",
            "a store of no component",
        ),
        ("    call f", "expected a type, an intrinsic, or flow"),
    ];
    for (line, message) in cases {
        let error = try_read(line).expect_err(line);
        assert_eq!(error.cause.to_string(), message, "{line}");
        assert_eq!(error.line as usize, first + line.matches('\n').count(), "{line}");
    }
    let mesh = START.replace("COMPUTE", "MESH");
    let error = read(&mesh, &options(), &mut Shader::default()).expect_err("a mesh shader");
    assert_eq!(error.to_string(), "line 1: not supported: the stage MESA_SHADER_MESH");
}

/// A shader of a stage of graphics pipelines, with arguments in registers.
fn stage_text(stage: &str, body: &str) -> String {
    format!("shader: MESA_SHADER_{stage}\nimpl main {{\n    con block b0:  // preds:\n{body}{END}")
}

fn read_stages(text: &str) -> Result<String, NirError> {
    let arguments = Arguments::registers(text)?;
    let mut shader = Shader::default();
    read(text, &Options { arguments, file: String::new() }, &mut shader)?;
    Ok(print(&shader))
}

/// Both shaders run in lanes that the argument of the wave counts. Without memory between them, one branch is around both.
#[test]
fn two_shaders_of_a_text_run_merged() {
    let address = "32 %1 = @load_scalar_arg_amd (base=3, arg_upper_bound_u32_amd=0)\n";
    let stores = format!(
        "{address}32 %2 = load_const (0x00000000)\n@store_output (%1, %2 (0x0)) (base=0, range=0, wrmask=x, component=1, \
         src_type=float32, io location=VARYING_SLOT_VAR0 slots=1, xfb(), xfb2())\n"
    );
    let loads = "32 %1 = load_const (0x00000000)\n32 %2 = @load_per_vertex_input (%1, %1 (0x0)) (base=0, range=0, component=1, \
                 dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)\n@store_shared (%2, %1) (base=0, wrmask=x, align_mul=4, align_offset=0)\n";
    let merged = stage_text("VERTEX", &stores) + &stage_text("TESS_CTRL", loads);
    let printed = read_stages(&merged).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(printed.matches("amd_lane_below").count(), 1, "{printed}");
    assert!(printed.contains("shader tess_control") && printed.contains("load_var<v1"), "{printed}");
    let store = "32 %2 = load_const (0x00000000)\n@store_shared (%2, %2) (base=0, wrmask=x, align_mul=4, align_offset=0)\n";
    let apart = stage_text("VERTEX", store) + &stage_text("GEOMETRY", store);
    let printed = read_stages(&apart).unwrap_or_else(|error| panic!("{error}"));
    assert!(printed.contains("amd_lane_below<0>") && printed.contains("amd_lane_below<8>"), "{printed}");
    // Without a text that says so, the waves of the second shader wait for those of the first.
    assert_eq!(printed.matches("barrier<execution workgroup").count(), 1, "{printed}");
    let own = format!("{address}1 %3 = @is_subgroup_invocation_lt_amd (%1) (base=8)\n{store}");
    let printed = read_stages(&(stage_text("VERTEX", store) + &stage_text("GEOMETRY", &own)));
    let printed = printed.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(printed.matches("amd_lane_below<8>").count(), 1, "{printed}");
    assert_eq!(printed.matches("barrier<").count(), 0, "{printed}");
    let third = apart + &stage_text("FRAGMENT", store);
    assert!(read_stages(&third).is_err_and(|error| error.to_string().contains("a third shader")));
}

#[test]
fn arms_that_are_always_taken_are_read() {
    for (comment, hint) in [("// divergent always taken {", "if+<"), ("{ // divergent", "if<")] {
        let body = format!(
            "1 %1 = load_const (true)\nif %1 {comment}\nblock b1:  // preds: b0, succs: b3\n}} else {{\n\
             block b2:  // preds: b0, succs: b3\n}}\nblock b3:  // preds: b1 b2\n"
        );
        let printed = read_stages(&stage_text("TESS_CTRL", &body)).unwrap_or_else(|error| panic!("{error}"));
        assert!(printed.contains(hint), "{comment}: {printed}");
    }
}

#[test]
fn formats_of_vertices_and_constants_are_those_of_the_text() {
    let load = |format: &str| {
        stage_text(
            "VERTEX",
            &format!(
                "32x4 %1 = @load_scalar_arg_amd (base=4, arg_upper_bound_u32_amd=0)\n32 %2 = load_const (0x00000000)\n\
                 32x2 %3 = @load_typed_buffer_amd (%1, %2, %2, %2) (base=6, access=none, format={format}, align_mul=2, align_offset=0)\n\
                 32 %4 = @load_constant (%2) (base=4, range=16, access=none, align_mul=4, align_offset=0)\n\
                 32 %5 = fsin_amd %4\n"
            ),
        )
    };
    let printed = read_stages(&load("r16g16_float")).unwrap_or_else(|error| panic!("{error}"));
    assert!(printed.contains("amd_load_typed<2 16 float align 1 offset 6>"), "{printed}");
    assert!(printed.contains("amd_constants") && printed.contains("amd_sin"), "{printed}");
    let mut parsed = Shader::default();
    parse(&printed, &mut parsed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(print(&parsed), printed);
    for format in ["r11g11b10_float", "r16g8_unorm", "r16_what", "16_unorm"] {
        assert!(read_stages(&load(format)).is_err(), "{format}");
    }
}

/// A texture is read in a branch with derivatives from where coordinates were the quad's.
#[test]
fn coordinates_in_whole_quad_mode_bring_their_derivatives() {
    let text = |base: u32, access: &str| {
        let body = format!(
            "32x2 %1 = @load_vector_arg_amd (base=3, arg_upper_bound_u32_amd=0)\n32x2 %2 = @strict_wqm_coord_amd (%1) (base={base})\n\
             32 %3 = load_const (0x00000000)\n32 %4 = @load_scalar_arg_amd (base=4, arg_upper_bound_u32_amd=0)\n\
             64 %5 = pack_64_2x32_split %4, %3 (0x0)\n32x8 %6 = @load_smem_amd (%5, %3 (0x0)) (align_mul=32, align_offset=0)\n\
             32x4 %7 = @load_smem_amd (%5, %3 (0x0)) (align_mul=16, align_offset=0)\n1 %8 = flt %1.x, %1.y\n\
             if %8 {{\nblock b1:  // preds: b0, succs: b3\n\
             32x4 %9 = (float32){access} %6 (texture_handle), %7 (sampler_handle), %2 (backend1), 0 (texture), 0 (sampler)\n\
             @export_amd (%9) (base=0, wrmask=xyzw, flags=0)\n}} else {{\nblock b2:  // preds: b0, succs: b3\n}}\n\
             block b3:  // preds: b1 b2\n"
        );
        read_stages(&stage_text("FRAGMENT", &body))
    };
    let printed = text(0, "tex").unwrap_or_else(|error| panic!("{error}"));
    let place = |what: &str| printed.find(what).unwrap_or_else(|| panic!("{what}: {printed}"));
    let (dx, dy, branch, sample) = (place("ddx"), place("ddy"), place("if<"), place("image_sample<"));
    assert!(dx < dy && dy < branch && branch < sample, "{printed}");
    let line = printed[sample..].lines().next().unwrap_or_default();
    // Its position follows.
    let line = line.split(" @").next().unwrap_or_default();
    let result = |at: usize| printed[..at].rsplit('\n').next().and_then(|line| line.trim().split(':').next());
    let [dx, dy] = [dx, dy].map(|at| result(at).expect("a result"));
    assert!(line.contains("grad") && line.ends_with(&format!("{dx}, {dy}")), "{printed}");
    let mut parsed = Shader::default();
    parse(&printed, &mut parsed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    validate(&parsed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    // The coordinates would not be the first words of the vector.
    assert!(text(4, "tex").is_err());
    assert!(text(0, "txb").is_err());
}

/// Coordinates and levels of 16 bits, which GPUs from gfx9 on take, are words in the IR.
#[test]
fn coordinates_of_16_bits_become_words() {
    let text = |access: &str, conversion: &str| {
        let body = format!(
            "32x2 %1 = @load_vector_arg_amd (base=3, arg_upper_bound_u32_amd=0)\n16x2 %2 = {conversion} %1\n\
             32 %3 = load_const (0x00000000)\n32 %4 = @load_scalar_arg_amd (base=4, arg_upper_bound_u32_amd=0)\n\
             64 %5 = pack_64_2x32_split %4, %3 (0x0)\n32x8 %6 = @load_smem_amd (%5, %3 (0x0)) (align_mul=32, align_offset=0)\n\
             32x4 %7 = @load_smem_amd (%5, %3 (0x0)) (align_mul=16, align_offset=0)\n16 %8 = load_const (0x3c00)\n\
             32x4 %9 = (float32){access}\n@export_amd (%9) (base=0, wrmask=xyzw, flags=0)\n"
        );
        read_stages(&stage_text("FRAGMENT", &body)).unwrap_or_else(|error| panic!("{error}"))
    };
    let sampled = "txl %6 (texture_handle), %7 (sampler_handle), %2 (coord), %8 (0x3c00) (lod), 0 (texture), 0 (sampler)";
    let fetched = "txf %6 (texture_handle), %2 (coord), %8 (0x3c00) (lod), 0 (texture)";
    for (access, narrow, wide) in [(sampled, "f2f16", "f2f"), (fetched, "u2u16", "i2i")] {
        let printed = text(access, narrow);
        let of = |width: &str| printed.matches(&format!(": {width} = {wide} ")).count();
        assert_eq!((of("b32x2"), of("b32")), (1, 1), "{printed}");
    }
}

#[test]
fn large_texts_end_in_an_error_or_a_shader() {
    let mut names = 1000;
    let mut nested = |depth: usize| {
        let (mut text, mut tail) = (String::new(), String::new());
        text.push_str("    con 1 %9 = ieq %3, %93\n");
        for _ in 0..depth {
            text.push_str(&format!("if %9 {{\nblock b{names}:\n"));
            tail.push_str(&format!("}} else {{\nblock b{}:\n}}\nblock b{}:\n", names + 1, names + 2));
            names += 3;
        }
        text + &tail
    };
    // The numbers of the tail are in any order: no phi needs them.
    assert!(try_read(&nested(400)).is_ok());
    let error = try_read(&nested(600)).expect_err("too deep");
    assert!(error.cause.to_string().starts_with("too large"), "{error}");

    // Each of many breaks passes each of many values.
    let mut text = String::from("    con 1 %9 = ieq %3, %93\nloop {\nblock b1:\n");
    for id in 1000..5000 {
        text.push_str(&format!("con 32 %{id} = iadd %3, %4\n"));
    }
    for block in 0..4000 {
        text.push_str(&format!(
            "if %9 {{\nblock b{}:\nbreak\n}} else {{\nblock b{}:\n}}\nblock b{}:\n",
            1000 + 3 * block,
            1001 + 3 * block,
            1002 + 3 * block
        ));
    }
    text.push_str("}\nblock b2:\n");
    for id in 1000..5000 {
        text.push_str(&format!("con 32 %{} = iadd %{id}, %4\n", id + 10_000));
    }
    let error = try_read(&text).expect_err("too many");
    assert!(error.cause.to_string().starts_with("too large"), "{error}");
}

/// A text with a few changes: bytes, tokens of other places, lines that move or go.
fn mutated(text: &str, rng: &mut Rng) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for _ in 0..1 + rng.below(3) {
        let (at, other) = (rng.below(lines.len()), rng.below(lines.len()));
        match rng.below(5) {
            0 => drop(lines.remove(at)),
            1 => lines.swap(at, other),
            2 => lines[at] = lines[other].clone(),
            3 => {
                let word = |line: &str, n: usize| line.split(' ').nth(n).unwrap_or("").to_owned();
                let words = lines[at].split(' ').count();
                let (from, to) = (word(&lines[other], rng.below(8)), word(&lines[at], rng.below(words)));
                lines[at] = lines[at].replacen(&to, &from, 1);
            }
            _ => {
                let mut bytes = lines[at].clone().into_bytes();
                if !bytes.is_empty() {
                    let byte = rng.below(bytes.len());
                    bytes[byte] = rng.below(256) as u8;
                }
                lines[at] = String::from_utf8_lossy(&bytes).into_owned();
            }
        }
        if lines.is_empty() {
            break;
        }
    }
    lines.join("\n")
}

#[test]
fn broken_texts_give_an_error_or_a_valid_shader() {
    let mut texts = vec![format!(
        "{START}    con 32 %50 = ubfe %3, %4, %95\n    loop {{\nblock b1:\ncon 1 %9 = ieq %3, %4\nif %9 {{\nblock b2:\nbreak\n}} else {{\nblock b3:\ncon 32 %8 = iadd %3, %4\n}}\nblock b4:\n}}\nblock b5:\n{STORE}{END}"
    )];
    for archive in data::files("amd/shaders", ".tar.gz").iter().take(3) {
        let name = format!("amd/shaders/{}", archive.file_name().unwrap_or_default().to_string_lossy());
        let files = data::archive(&name).into_iter().filter(|(name, _)| name.ends_with(".nir")).step_by(9);
        texts.extend(files.map(|(_, bytes)| String::from_utf8_lossy(&bytes).into_owned()));
    }
    let rounds = if std::env::var_os("UNWEDGE_ALL").is_some() { 100_000 } else { 2_000 };
    let (mut rng, mut shader, mut valid) = (Rng::new(3), Shader::default(), 0);
    for round in 0..rounds {
        let source = if round % 2 == 0 { 0 } else { rng.below(texts.len()) };
        let text = mutated(&texts[source], &mut rng);
        if read(&text, &options(), &mut shader).is_ok() {
            valid += 1;
            validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
            let printed = print(&shader);
            let mut parsed = Shader::default();
            parse(&printed, &mut parsed).unwrap_or_else(|e| panic!("{e}\n{printed}"));
            assert_eq!(print(&parsed), printed);
        }
    }
    println!("{valid} of {rounds} are valid");
    assert!(valid > 0, "none is valid");
}

#[test]
fn arguments_are_named_by_their_registers() {
    let list = "ring_offsets=s0:2 push0=s3:1 local_id_x=v0:1 local_ids_packed=v1:1 arg0=s0:2 arg1=s2:1 arg2=s3:1 arg3=v0:1 arg4=v1:1 arg5=s9:1";
    let wanted = [
        Argument::Other,
        Argument::DescriptorSet(0),
        Argument::Push(0),
        Argument::LocalId(0),
        Argument::LocalIdsPacked,
        Argument::DescriptorSet(1),
    ];
    assert_eq!(Arguments::parse(list).expect("a list").0, wanted);
    assert!(Arguments::parse("arg1=s0:1").is_err());
    assert!(Arguments::parse("push0").is_err());
}

/// Texts of Mesa for many shaders: what is not read is not supported, never unexpected. Nothing says what their arguments are; here all but
/// the first descriptor set count as push constants, so that everything else is looked at.
#[test]
fn texts_of_mesa_are_read_or_named() {
    let mut arguments = vec![Argument::Other, Argument::DescriptorSet(0)];
    arguments.extend((0..16).map(|word| Argument::Push(4 * word)));
    let options = Options { arguments: Arguments(arguments), file: String::new() };
    let mut shader = Shader::default();
    let (mut count, mut refused) = (0, std::collections::BTreeMap::<String, u32>::new());
    for archive in data::files("amd/cts", ".tar.gz") {
        let name = format!("amd/cts/{}", archive.file_name().unwrap_or_default().to_string_lossy());
        for (path, bytes) in data::archive(&name) {
            let text = String::from_utf8_lossy(&bytes);
            if !path.ends_with(".nir") || !text.starts_with("shader: MESA_SHADER_COMPUTE") {
                continue;
            }
            count += 1;
            match read(&text, &options, &mut shader) {
                Ok(()) => validate(&shader).unwrap_or_else(|e| panic!("{path}: {e}")),
                Err(NirError { cause: NirCause::Unsupported(reason), .. }) => {
                    *refused.entry(reason).or_default() += 1;
                }
                Err(e) => panic!("{path}: {e}"),
            }
        }
    }
    println!("{count} texts, {} refused: {refused:#?}", refused.values().sum::<u32>());
}
