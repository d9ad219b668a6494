//! Where instructions are in the code, and what is waited for: small programs, whose code is looked at.

mod rig;

use unwedge_aco::{Options, compile};
use unwedge_isa::amdgcn::model::{Class, Role};
use unwedge_isa::amdgcn::{Gpu, Operand, codec, text};
use unwedge_shader::front::nir;
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;

/// An instruction of code: its text, its role, its address, and that of its target.
struct Line {
    text: String,
    role: Role,
    at: usize,
    target: Option<usize>,
}

fn lines(shader: &mut Shader, gpu: Gpu) -> Vec<Line> {
    lines_with(shader, &Options::new(gpu))
}

fn lines_with(shader: &mut Shader, options: &Options) -> Vec<Line> {
    let gpu = options.gpu;
    let compiled = compile(shader, options).unwrap_or_else(|error| panic!("{error}"));
    let words = compiled.code.words;
    let mut lines = Vec::new();
    let mut at = 0;
    while let Some(sized) = words.get(at..).and_then(|words| codec::decode(words, &gpu)) {
        let next = at + usize::from(sized.dwords);
        let target = sized.inst.written().find_map(|(slot, operand)| match operand {
            Operand::Imm(offset) if slot.class == Class::Label => {
                usize::try_from(next as i64 + i64::from(offset)).ok()
            }
            _ => None,
        });
        let mut text = String::new();
        text::write(&sized.inst, &gpu, &mut text);
        lines.push(Line { text, role: sized.inst.row().role, at, target });
        at = next;
    }
    assert_eq!(at, words.len(), "all of the code is decoded");
    lines
}

/// The code of a shader of the IR, with these instructions.
fn code(invocations: u32, body: &str, gpu: &str) -> Vec<Line> {
    let text = rig::buffer_shader(invocations, invocations * 4, body);
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    lines(&mut shader, Gpu::new(gpu).expect("a GPU"))
}

/// The code of NIR.
fn code_of_nir(text: &str, gpu: &str) -> Vec<Line> {
    let arguments = nir::Arguments::registers(text).unwrap_or_else(|error| panic!("{error}"));
    let options = nir::Options { arguments, file: "nir".to_owned() };
    let mut shader = Shader::default();
    nir::read(text, &options, &mut shader).unwrap_or_else(|error| panic!("{}", error.cause));
    lines(&mut shader, Gpu::new(gpu).expect("a GPU"))
}

fn printed(lines: &[Line]) -> String {
    lines.iter().map(|line| format!("{:4x} {}\n", line.at, line.text)).collect()
}

/// Places of instructions with a name.
fn places(lines: &[Line], name: &str) -> Vec<usize> {
    (0..lines.len()).filter(|at| lines[*at].text.starts_with(name)).collect()
}

/// The number of a lane (`%6`), and where its word is in buffers (`%7`).
const LANES: &str = "\
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: handle = descriptor<r0> %0
  %4: handle = descriptor<r1> %0
  %5: b32x3 = sysval<local_invocation_id>
  %6: b32 = extract<0> %5
  %7: b32 = ishl %6, %2
";

/// Lanes leave the loop one by one, or all that are left at once.
const LOOP: &str = "\
  %8: b32 = load<storage align 4 access readonly|restrict> %3, %0
  %9: b32 = loop<L0> %0 (%10: b32) {
    %11: b1 = uge %10, %8
    if<L1> %11 {
      break<L0> %6
    } else {
      break<L1>
    }
    %12: b32 = imul %10, %10
    %13: b1 = ult %6, %12
    if<L2> %13 {
      break<L0> %12
    } else {
      break<L2>
    }
    %14: b32 = iadd %10, %1
    continue<L0> %14
  }
  store<storage align 4> %9, %4, %7
";

/// The counter is the same for all lanes that are left, and the wave leaves with the last of them: no lane waits where the loop starts again.
#[test]
fn a_loop_that_lanes_leave_one_by_one_counts_in_scalar_registers() {
    for gpu in ["gfx900", "gfx1030", "gfx1100"] {
        let lines = code(64, &[LANES, LOOP].concat(), gpu);
        let back = lines.iter().find(|line| line.target.is_some_and(|target| target <= line.at));
        let back = back.unwrap_or_else(|| panic!("{gpu}: no loop\n{}", printed(&lines)));
        assert_eq!(
            back.role,
            Role::Branch,
            "{gpu}: the wave starts again with all its lanes\n{}",
            printed(&lines)
        );
        let start = back.target.unwrap_or_default();
        let body: Vec<&Line> = lines.iter().filter(|line| (start..back.at).contains(&line.at)).collect();
        let vector_sums = body.iter().filter(|line| line.text.starts_with("v_add")).count();
        assert_eq!(vector_sums, 0, "{gpu}: the counter is in scalar registers\n{}", printed(&lines));
    }
}

/// All lanes leave the loop at its end, after one of three arms.
const ARMS: &str = "\
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %3: handle = descriptor<r0> %0
  %4: handle = descriptor<r1> %0
  %5: b32 = const<0x4>
  %8: b32 = load<storage align 4 access readonly|restrict> %3, %0
  %9: b32 = load<storage align 4 access readonly|restrict> %3, %5
  loop<L0> %0 (%10: b32) {
    %11: b1 = uge %10, %8
    %12: b1 = uge %10, %9
    if<L1> %11 {
      if<L2> %12 {
        store<storage align 4> %0, %4, %0
        break<L2>
      } else {
        store<storage align 4> %1, %4, %0
        break<L2>
      }
      break<L1>
    } else {
      store<storage align 4> %5, %4, %0
      break<L1>
    }
    %14: b32 = iadd %10, %1
    %15: b1 = uge %14, %9
    if<L3> %15 {
      break<L0>
    } else {
      break<L3>
    }
    continue<L0> %14
  }
";

/// No branch goes to a branch, to the next instruction, or over nothing but a branch.
#[test]
fn branches_are_not_taken_to_branch_again() {
    let texts = [[LANES, LOOP].concat(), ARMS.to_owned()];
    for (text, gpu) in texts.iter().flat_map(|text| ["gfx900", "gfx1030"].map(|gpu| (text, gpu))) {
        let lines = code(64, text, gpu);
        assert!(lines.iter().any(|line| line.target.is_some()), "{gpu}: no branch");
        for (number, line) in lines.iter().enumerate() {
            let Some(target) = line.target else { continue };
            let next = |ahead: usize| lines.get(number + ahead);
            let goal = lines.iter().find(|line| line.at == target);
            let again = goal.is_some_and(|goal| goal.role == Role::Branch);
            let nothing = next(1).is_some_and(|next| next.at == target);
            let over = next(1).is_some_and(|next| next.role == Role::Branch)
                && next(2).is_some_and(|after| after.at == target);
            assert!(!again && !nothing && !over, "{gpu}: {:x}\n{}", line.at, printed(&lines));
        }
    }
}

/// Halves that lanes exchange may be in registers that short encodings do not have from gfx11 on.
#[test]
fn moves_of_many_halves_are_folded() {
    const HALVES: usize = 150;
    let mut body = String::from(
        "  %0: b32 = const<0x0>\n  %1: handle = descriptor<r0> %0\n  %2: handle = descriptor<r1> %0\n  %3: b32x3 = sysval<local_invocation_id>\n\
         \x20 %4: b32 = extract<0> %3\n  %5: b32 = const<0x2>\n  %6: b32 = ishl %4, %5\n",
    );
    let number = |at: usize| 10 + 4 * at;
    for at in 0..HALVES {
        let [offset, sum, word, half] = [0, 1, 2, 3].map(|place| number(at) + place);
        body += &format!(
            "  %{offset}: b32 = const<{:#x}>\n  %{sum}: b32 = iadd %6, %{offset}\n  %{word}: b32 = load<storage align 4> %1, %{sum}\n\
             \x20 %{half}: b16 = u2u %{word}\n",
            256 * at
        );
    }
    body += "  barrier<execution workgroup memory workgroup order acquire|release kinds buffers>\n";
    for at in 0..HALVES {
        let [moved, sum, word] = [0, 1, 2].map(|place| number(HALVES + at) + place);
        let [own, other] = [at, (7 * at + 3) % HALVES].map(|at| number(at) + 3);
        body += &format!(
            "  %{moved}: b16 = quad_swap<x> %{own}\n  %{sum}: b16 = fadd %{moved}, %{other}\n  %{word}: b32 = u2u %{sum}\n\
             \x20 store<storage align 4> %{word}, %2, %{}\n",
            number(at) + 1
        );
    }
    for gpu in ["gfx900", "gfx1030", "gfx1100", "gfx1200"] {
        let lines = code(64, &body, gpu);
        assert!(places(&lines, "v_add_f16").len() == HALVES, "{gpu}: {}", printed(&lines));
        assert!(places(&lines, "v_mov_b32_dpp").is_empty(), "{gpu}: {}", printed(&lines));
    }
}

/// A load of a buffer is pending at a barrier of the workgroup that orders KINDS.
const BARRIER: &str = "\
  %0: b32 = const<0x0>
  %2: b32 = const<0x2>
  %3: handle = descriptor<r0> %0
  %4: handle = descriptor<r1> %0
  %5: b32x3 = sysval<local_invocation_id>
  %6: b32 = extract<0> %5
  %7: b32 = ishl %6, %2
  %8: b32 = load<storage align 4 access readonly|restrict> %3, %7
  store<shared align 4> %6, %0, %7
  barrier<execution workgroup memory workgroup order acquire|release kinds KINDS>
  %9: b32 = load<shared align 4> %0, %0
  %10: b32 = iadd %8, %9
  store<storage align 4> %10, %4, %7
";

/// Whether the load is waited for before the barrier.
fn waits_for_the_load(kinds: &str) -> bool {
    let lines = code(128, &BARRIER.replace("KINDS", kinds), "gfx1030");
    let barrier = places(&lines, "s_barrier")[0];
    let load = places(&lines, "buffer_load")[0];
    assert!(load < barrier, "{}", printed(&lines));
    lines[load..barrier].iter().any(|line| line.text.contains("vmcnt"))
}

#[test]
fn a_barrier_waits_for_the_memory_that_it_orders() {
    assert!(!waits_for_the_load("shared"));
    assert!(waits_for_the_load("buffers"));
    assert!(waits_for_the_load("shared|buffers"));
}

/// Three outputs, each from an attribute of its own.
const EXPORTS: &str = "shader: MESA_SHADER_FRAGMENT
subgroup_size: 0
decl_function main () (entrypoint)

impl main {
    con block b0:        // preds:
    div 32x2  %1 = @load_vector_arg_amd (base=4, arg_upper_bound_u32_amd=0)
    con 32    %2 = load_const (0x00000000)
    con 32    %3 = undefined
    div 32    %4 = @load_interpolated_input (%1, %2 (0x0)) (base=0, component=0, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    div 32x4  %5 = vec4 %4, %3, %3, %3
                   @export_amd (%5) (base=0, wrmask=x, flags=0)
    div 32    %6 = @load_interpolated_input (%1, %2 (0x0)) (base=0, component=1, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    div 32x4  %7 = vec4 %6, %3, %3, %3
                   @export_amd (%7) (base=1, wrmask=x, flags=0)
    div 32    %8 = @load_interpolated_input (%1, %2 (0x0)) (base=0, component=2, dest_type=float32, io location=VARYING_SLOT_VAR0 slots=1)
    div 32x4  %9 = vec4 %8, %3, %3, %3
                   @export_amd (%9) (base=2, wrmask=x, flags=6)
                   // succs: b1
    block b1:
}
";

/// Registers of exports are not written again, and the halves of an interpolation do not wait for each other.
#[test]
fn exports_come_last_and_interpolations_side_by_side() {
    let lines = code_of_nir(EXPORTS, "gfx1030");
    let exports = places(&lines, "exp ");
    assert_eq!(exports.len(), 3, "{}", printed(&lines));
    assert_eq!(exports[2] - exports[0], 2, "{}", printed(&lines));
    let (first, second) = (places(&lines, "v_interp_p1"), places(&lines, "v_interp_p2"));
    assert_eq!((first.len(), second.len()), (3, 3), "{}", printed(&lines));
    assert!(first[1] < second[0], "{}", printed(&lines));
}

/// A pixel shader that exports three values, which it computes from the first three arguments.
fn exported(body: &str, bound: u32) -> String {
    format!(
        "shader: MESA_SHADER_FRAGMENT
subgroup_size: 0
decl_function main () (entrypoint)

impl main {{
    con block b0:        // preds:
    div 32    %1 = @load_vector_arg_amd (base=4, arg_upper_bound_u32_amd={bound})
    div 32    %2 = @load_vector_arg_amd (base=5, arg_upper_bound_u32_amd=0)
    div 32    %3 = @load_vector_arg_amd (base=6, arg_upper_bound_u32_amd=0)
    con 32    %4 = load_const (0x00000030)
    con 32    %5 = undefined
    con 32    %9 = load_const (0x00000000)
{body}
    div 32x4  %13 = vec4 %10, %11, %12, %5
                   @export_amd (%13) (base=0, wrmask=xyz, flags=6)
                   // succs: b1
    block b1:
}}
"
    )
}

const SUMS: &str = "\
    div 32    %20 = ffma %1, %2, %3
    div 32    %10 = ffma %1, %1, %20
    div 32    %11 = ffma %10, %2, %1
    div 32    %12 = mov %1";

/// The result takes the register of an addend that is not read again, and the instruction is short.
#[test]
fn a_sum_takes_the_register_of_an_addend_that_is_not_read_again() {
    for (gpu, short) in [("gfx1030", 2), ("gfx1100", 2), ("gfx900", 0)] {
        let lines = code_of_nir(&exported(SUMS, 0), gpu);
        assert_eq!(places(&lines, "v_fma").len(), 3, "{gpu}\n{}", printed(&lines));
        assert_eq!(places(&lines, "v_fmac_f32_e32").len(), short, "{gpu}\n{}", printed(&lines));
    }
}

/// A product of 24-bit numbers is a fast instruction.
#[test]
fn a_bounded_argument_has_a_24_bit_product() {
    let body = "\
    div 32    %10 = imul %1, %4
    div 32    %11 = mov %2
    div 32    %12 = mov %3";
    for (bound, name) in [
        (682, "v_mul_u32_u24"),
        (0xff_ffff, "v_mul_u32_u24"),
        (0x100_0000, "v_mul_lo_u32"),
        (0, "v_mul_lo_u32"),
    ] {
        let lines = code_of_nir(&exported(body, bound), "gfx900");
        assert_eq!(places(&lines, name).len(), 1, "{bound}\n{}", printed(&lines));
    }
}

/// Loads return in order, so the first product does not wait for the factor of the second one.
#[test]
fn the_later_product_is_added_to_the_earlier_one() {
    let body = "\
    con 32x2   %6 = @load_scalar_arg_amd (base=0, arg_upper_bound_u32_amd=0)
    con 64     %7 = pack_64_2x32_split %6.x, %6.y
    con 32x4   %8 = @load_smem_amd (%7, %9) (align_mul=4, align_offset=0)
    div 32    %20 = @load_buffer_amd (%8, %1, %9, %9) (base=0, mem_modes=0, access=none)
    div 32    %21 = @load_buffer_amd (%8, %2, %9, %9) (base=0, mem_modes=0, access=none)
    div 32    %22 = fmul %20, %3
    div 32    %23 = fmul %21, %1
    div 32    %10 = fadd %22, %23
    div 32    %11 = mov %2
    div 32    %12 = mov %3";
    let text = exported(body, 0);
    let arguments = nir::Arguments::registers(&text).expect("arguments");
    let options = nir::Options { arguments, file: "nir".to_owned() };
    let mut shader = Shader::default();
    nir::read(&text, &options, &mut shader).unwrap_or_else(|error| panic!("{}", error.cause));
    let gpu = Gpu::new("gfx1030").expect("a GPU");
    let lines = lines_with(&mut shader, &Options { contract: true, ..Options::new(gpu) });
    let product = places(&lines, "v_mul_f32")[0];
    let waits = places(&lines, "s_waitcnt");
    let last = waits.into_iter().find(|at| lines[*at].text.contains("vmcnt(0)")).expect("a wait for both");
    assert!(product < last && last < places(&lines, "v_fma")[0], "{}", printed(&lines));
}

/// A vertex shader that leaves four words in LDS, and a geometry shader that sends messages. The LDS offset, a comment of the `if`, and the memory semantics of the
/// last barrier are inserted.
const MERGED: &str = "shader: MESA_SHADER_VERTEX
subgroup_size: 0
decl_function main () (entrypoint)

impl main {
    block b0:        // preds:
    div 32    %1 = @load_vector_arg_amd (base=4, arg_upper_bound_u32_amd=0)
    div 32x4  %2 = vec4 %1, %1, %1, %1
                   @store_shared (%2, %1) (base=BASE, wrmask=xyzw, align_mul=4, align_offset=0)
                   // succs: b1
    block b1:
}

shader: MESA_SHADER_GEOMETRY
subgroup_size: 0
decl_function main () (entrypoint)

impl main {
    block b0:        // preds:
    con 32    %1 = @load_scalar_arg_amd (base=5, arg_upper_bound_u32_amd=0)
    con 32    %2 = load_const (0x00000008)
    con 32    %3 = ushr %1, %2 (0x8)
    div 32    %4 = @load_vector_arg_amd (base=6, arg_upper_bound_u32_amd=0)
    con 32    %5 = load_const (0x00000000)
    div 1     %6 = ieq %4, %5 (0x0)
                   // succs: b1 b2
    if %6 {COMMENT
        block b1:        // preds: b0
                         @store_shared (%4, %4) (base=0, wrmask=x, align_mul=4, align_offset=0)
                         // succs: b3
    } else {
        block b2:        // preds: b0, succs: b3
    }
    block b3:        // preds: b1 b2
                   @sendmsg_amd (%3) (base=34)
                   @sendmsg_amd (%3) (base=34)
                   @barrier (execution_scope=INVOCATION, memory_scope=DEVICE, mem_semantics=ORDER, mem_modes=shader_out|ssbo)
                   @sendmsg_amd (%3) (base=3)
                   // succs: b4
    block b4:
}
";

fn merged(base: u32, comment: &str, order: &str) -> Vec<Line> {
    let text = MERGED.replace("BASE", &base.to_string()).replace("COMMENT", comment);
    code_of_nir(&text.replace("ORDER", order), "gfx900")
}

/// The number of instructions with a name in the code.
fn count(lines: &[Line], name: &str) -> usize {
    places(lines, name).len()
}

/// The lane mask of each stage is computed directly in `exec`, and the second stage waits for all waves of the first.
#[test]
fn merged_stages_share_a_barrier_and_compute_their_masks_in_exec() {
    let lines = merged(0, "", "REL");
    assert_eq!(count(&lines, "s_bfe_u64 exec"), 2, "{}", printed(&lines));
    assert_eq!(count(&lines, "s_mov_b64 exec, s"), 1, "after the if\n{}", printed(&lines));
    assert_eq!(count(&lines, "s_barrier"), 1, "{}", printed(&lines));
}

/// Words beyond the reach of the short offsets of pairs get their own address.
#[test]
fn words_of_lds_are_stored_in_pairs_at_any_offset() {
    for (base, sums) in [(0, 0), (1000, 0), (1012, 1), (1020, 1), (2560, 1)] {
        let lines = merged(base, "", "REL");
        assert_eq!(count(&lines, "ds_write2_b32"), 2, "{base}\n{}", printed(&lines));
        assert_eq!(count(&lines, "v_add_u32"), sums, "{base}\n{}", printed(&lines));
    }
}

/// Messages have the same word, which stays in `m0`. A release does not invalidate caches.
#[test]
fn messages_share_their_word_and_a_release_keeps_caches() {
    for (order, invalidated) in [("REL", 0), ("ACQ|REL", 1)] {
        let lines = merged(0, "", order);
        let written = lines.iter().filter(|line| line.text.contains(" m0,")).count();
        assert_eq!((count(&lines, "s_sendmsg"), written), (3, 1), "{}", printed(&lines));
        assert_eq!(count(&lines, "buffer_wbinvl1"), invalidated, "{}", printed(&lines));
    }
}

/// An arm that the driver knows to be taken has no branch around it.
#[test]
fn arms_that_are_always_taken_are_not_branched_over() {
    let known = merged(0, " // divergent always taken", "REL");
    let unknown = merged(0, " // divergent", "REL");
    assert_eq!(
        count(&unknown, "s_cbranch_execz"),
        count(&known, "s_cbranch_execz") + 1,
        "{}{}",
        printed(&known),
        printed(&unknown)
    );
}

/// Two divergent `if`s after each other, in another one.
const CONDITIONS: &str = "\
  %20: b32 = const<0x7>
  %8: b32 = load<storage align 4 access readonly|restrict> %3, %7
  %9: b1 = ult %20, %8
  if<L0> %9 {
    %10: b1 = ult %2, %8
    if<L1> %10 {
      store<storage align 4> %20, %4, %7
      break<L1>
    } else {
      break<L1>
    }
    %11: b1 = ult %6, %8
    if<L2> %11 {
      store<storage align 4> %2, %4, %7
      break<L2>
    } else {
      break<L2>
    }
    break<L0>
  } else {
    break<L0>
  }
";

/// The block of a branch may be another one than that of the comparison.
#[test]
fn conditions_of_branches_are_in_vcc() {
    for gpu in ["gfx803", "gfx900", "gfx1030", "gfx1100"] {
        let lines = code(64, &[LANES, CONDITIONS].concat(), gpu);
        let compares = places(&lines, "v_cmp");
        assert!(compares.len() >= 3, "{gpu}: {}", printed(&lines));
        for at in compares {
            assert_eq!(lines[at + 1].at - lines[at].at, 1, "{gpu}: {}\n{}", lines[at].text, printed(&lines));
        }
    }
}

/// Two variables of a loop that start with one value; the second one changes before the first one.
const VARIABLES: &str = "\
  %8: b32 = load<storage align 4 access readonly|restrict> %3, %7
  %9: b32 = loop<L0> %8, %8 (%10: b32, %11: b32) {
    %12: b32 = load<storage align 4 access readonly|restrict> %3, %10
    %13: b32 = iadd %11, %12
    %14: b32 = imul %13, %6
    %15: b1 = ult %13, %7
    if<L1> %15 {
      break<L0> %13
    } else {
      break<L1>
    }
    continue<L0> %14, %13
  }
  store<storage align 4> %9, %4, %7
";

/// The variables do not count as one value because of their first one, so each keeps its register.
#[test]
fn variables_of_a_loop_keep_their_registers() {
    for gpu in ["gfx803", "gfx900", "gfx1030", "gfx1100"] {
        let lines = code(64, &[LANES, VARIABLES].concat(), gpu);
        let back = lines.iter().find(|line| line.target.is_some_and(|target| target <= line.at));
        let back = back.unwrap_or_else(|| panic!("{gpu}: no loop\n{}", printed(&lines)));
        let start = back.target.unwrap_or_default();
        let body = lines.iter().filter(|line| (start..back.at).contains(&line.at));
        let moves = ["v_mov", "v_swap", "v_xor", "v_dual_mov"];
        let moved = body.filter(|line| moves.iter().any(|name| line.text.starts_with(name))).count();
        assert_eq!(moved, 0, "{gpu}: {}", printed(&lines));
    }
}
