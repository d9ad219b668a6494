//! Random shaders of structured flow: what the compiled code leaves in memory on the emulator is what the interpreter of the shader IR leaves.
//!
//! `UNWEDGE_SEEDS=N` tries seeds up to N.

mod rig;

use rig::recorded::assembly;
use rig::{GPUS, OUTPUT, TABLE, buffer_shader};
use unwedge_aco::abi::Argument;
use unwedge_aco::ir::Progress;
use unwedge_aco::ir::shape::Variants;
use unwedge_aco::{
    Compiled, FRONT_PHASES, Masked, Options, UNREPAIRED_PHASES, compile, finish_with, front, valid,
};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::Shader;
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::shaders::lanes::{
    GROUPS, INVOCATIONS, OUTPUT_BYTES, OWN, input as words, interpreted, random as random_shader, random_deep,
};

/// What the compiled shader leaves, or what is wrong with it.
fn executed(shader: &Shader, input: &[u8], gpu: Gpu, seed: u64) -> Result<Vec<u8>, String> {
    executed_with(shader, input, &Options::new(gpu), seed)
}

/// The same with these options.
fn executed_with(shader: &Shader, input: &[u8], options: &Options, seed: u64) -> Result<Vec<u8>, String> {
    let gpu = options.gpu;
    let variants = Variants::of(&gpu);
    let mut invalid = None;
    let mut watch = |phase: &'static str, program: &unwedge_aco::ir::Program| {
        if !FRONT_PHASES[..UNREPAIRED_PHASES].contains(&phase)
            && invalid.is_none()
            && let Err(violations) = valid::ir(program, &variants)
        {
            invalid = Some(format!("after {phase}: {}", violations[0].describe(program)));
        }
    };
    let mut shader = shader.clone();
    let result = front(&mut shader, options, &mut watch);
    if let Some(invalid) = invalid {
        return Err(invalid);
    }
    let Masked { mut program, args, float_mode } = result.map_err(|e| e.to_string())?;
    let mut invalid = None;
    let code = finish_with(&mut program, &options.limits, options.passes, &mut |phase, program| {
        let has_registers = matches!(program.progress, Progress::Allocated | Progress::Eliminated);
        let registers = if has_registers { valid::ra(program) } else { Ok(()) };
        if invalid.is_none()
            && let Err(violations) = valid::ir(program, &variants).and(registers)
        {
            invalid = Some(format!("after {}: {}", phase.name(), violations[0].describe(program)));
        }
    });
    if let Some(invalid) = invalid {
        return Err(invalid);
    }
    let code = code.map_err(|e| e.to_string())?;
    let report = check_words(&code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let compiled = Compiled { code, args, float_mode, combinations: program.combinations };
    let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
    let dispatch = Dispatch {
        groups: [GROUPS, 1, 1],
        size: [INVOCATIONS, 1, 1],
        timing: Timing::Adversarial { seed },
        ..rig::dispatch(&compiled, &gpu, set)
    };
    let mut memory = rig::memory(options, input.to_vec(), OUTPUT_BYTES);
    rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
    Ok(memory.get(OUTPUT, OUTPUT_BYTES).expect("mapped").to_vec())
}

/// Compares random shaders with the interpreter, with the options that `vary` makes for a seed.
fn compare_random(seeds: u64, random: fn(&mut Rng) -> Shader, vary: impl Fn(&mut Options, u64)) {
    let seeds = rig::seeds(seeds);
    let mut failures = Vec::new();
    for seed in seeds.clone() {
        let mut rng = Rng::new(seed);
        let shader = random(&mut rng);
        validate(&shader).unwrap_or_else(|e| panic!("seed {seed}: {e}\n{}", print(&shader)));
        let input = words(&mut rng);
        let wave64 = (seed as usize / GPUS.len()).is_multiple_of(2);
        let gpu = Gpu::new(GPUS[seed as usize % GPUS.len()]).expect("a GPU").with_wave64(wave64);
        let expected =
            interpreted(&shader, &input, gpu.wave64()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let label = format!("seed {seed} {} wave{}", gpu.name(), gpu.lanes());
        let mut options = Options::new(gpu);
        vary(&mut options, seed);
        match executed_with(&shader, &input, &options, seed) {
            Ok(found) if found == expected => {}
            Ok(found) => {
                let at = found.iter().zip(&expected).position(|(a, b)| a != b).unwrap_or_default() / 4;
                failures.push(format!(
                    "{label}: word {} of invocation {} differs",
                    at as u32 % OWN,
                    at as u32 / OWN
                ));
            }
            Err(what) => failures.push(format!("{label}: {what}")),
        }
    }
    let count = failures.len();
    failures.truncate(20);
    assert!(failures.is_empty(), "{count} of {seeds:?} fail:\n{}", failures.join("\n"));
}

#[test]
fn random_flow_does_what_the_interpreter_does() {
    compare_random(150, random_shader, rig::vary);
}

/// Masks of constructs around each other are spilled to lanes of linear vectors, which stay where they are.
#[test]
fn deep_random_flow_with_few_scalar_registers_does_what_the_interpreter_does() {
    compare_random(80, random_deep, |options, seed| {
        options.limits.registers.sgprs = 24 + (seed / 9 % 9 * 2) as u16;
    });
}

/// Every lane has a word of the input (`%14`), its number (`%10`), a place in the output (`%15`), and a number of iterations (`%16`) that
/// is not that of its neighbours.
const LANES: &str = "\
  %0: b32 = const<0x0>
  %1: b32 = const<0x1>
  %2: b32 = const<0x2>
  %3: b32 = const<0x3>
  %6: b32 = const<0x6>
  %7: handle = descriptor<r0> %0
  %8: handle = descriptor<r1> %0
  %9: b32x3 = sysval<local_invocation_id>
  %10: b32 = extract<0> %9
  %11: b32x3 = sysval<global_invocation_id>
  %12: b32 = extract<0> %11
  %13: b32 = ishl %10, %2
  %14: b32 = load<storage align 4 access readonly|restrict> %7, %13
  %15: b32 = ishl %12, %6
  %16: b32 = iand %10, %3
  %17: b32 = u2f %10
";

/// A loop that lanes leave in different iterations.
const LANES_LEAVE: &str = "\
  %20: b32 = loop<L0> %0 (%21: b32) {
    IN_THE_LOOP
    %22: b1 = ult %21, %16
    if<L1> %22 {
      break<L1>
    } else {
      WHERE_IT_IS_LEFT
      break<L0> %23
    }
    %24: b32 = iadd %21, %1
    continue<L0> %24
  }
  AFTER_IT
  %50: b32 = iadd %15, %1
  %51: b32 = iadd %50, %3
  store<storage align 4> %40, %8, %51
";

/// A shader with these instructions in the loop, where a lane leaves it, and after it, which makes `%40`.
fn lanes_leave(within: &str, left: &str, after: &str) -> String {
    let body = LANES_LEAVE
        .replace("IN_THE_LOOP", within)
        .replace("WHERE_IT_IS_LEFT", left)
        .replace("AFTER_IT", after);
    buffer_shader(64, 0, &[LANES, &body].concat())
}

/// A shader that stores a value that these instructions make.
fn stores(body: &str, value: &str) -> String {
    buffer_shader(64, 0, &format!("{LANES}{body}store<storage align 4> {value}, %8, %15\n"))
}

/// Compares a shader with the interpreter on every GPU, in both sizes of the wave.
fn compare(text: &str) {
    let mut shader = Shader::default();
    parse(text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    validate(&shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let input = words(&mut Rng::new(1));
    for name in GPUS {
        for wave64 in [true, false] {
            // Not all GPUs have both sizes.
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            let expected = interpreted(&shader, &input, gpu.wave64()).unwrap_or_else(|e| panic!("{e}"));
            let found =
                executed(&shader, &input, gpu, 1).unwrap_or_else(|error| panic!("{name}: {error}\n{text}"));
            assert!(
                found == expected,
                "{name}, wave64 {}: another result than the interpreter's\n{text}",
                gpu.wave64()
            );
        }
    }
}

/// A uniform value of the loop, and what floats are needed.
const FLOATS: &str = "%30: b32 = read_first %21\n%31: b32 = u2f %30\n%32: b32 = u2f %14\n";

/// A uniform value that a lane took along in its last iteration is not read again after the loop: its register has the value of a later iteration.
#[test]
fn lanes_leave_a_loop_with_the_uniform_values_of_their_iteration() {
    let pairs = [
        ("iand %30, %14", "ior %23, %10"),
        ("ixor %30, %14", "ixor %23, %10"),
        ("iadd %30, %14", "iadd %23, %10"),
        ("ishl %14, %30", "iadd %23, %10"),
        ("iadd %30, %14", "ishl %23, %2"),
        ("umin %30, %14", "umin %23, %10"),
        ("imax %30, %14", "imin %23, %10"),
        ("fmul %31, %32", "fadd %23, %17"),
    ];
    for (within, after) in pairs {
        let text = lanes_leave(
            &format!("{FLOATS}%23: b32 = {within}"),
            "",
            &format!("%40: b32 = {}", after.replace("%23", "%20")),
        );
        compare(&text);
    }
}

/// A variable that the loop sets before anything reads it is undefined on entry to the loop, but still has a register there.
#[test]
fn a_value_that_is_undefined_before_a_loop_has_its_register() {
    let body = "%0: b32 = const<0x0>\n%1: b32 = const<0x1>\n%2: b32 = const<0x2>\n%3: b32 = const<0x5>\n\
        %7: handle = descriptor<r0> %0\n%8: handle = descriptor<r1> %0\n%11: b32x3 = sysval<global_invocation_id>\n\
        %12: b32 = extract<0> %11\n%13: b32 = ishl %12, %2\n%18: b32 = const<0xfc>\n%19: b32 = iand %13, %18\n\
        %14: b32 = load<storage align 4 access readonly|restrict> %7, %19\n%6: b32 = const<0x6>\n%15: b32 = ishl %12, %6\n\
        %16: b32 = undef\n%17: b32 = undef\n\
        %20: b32 = loop<L0> %0, %16, %17 (%21: b32, %22: b32, %23: b32) {\n\
        %24: b1 = ieq %21, %0\n%25: b32 = select %24, %14, %22\n%26: b32 = iadd %25, %12\n\
        %27: b1 = ieq %21, %1\n%28: b32 = select %27, %26, %23\n%29: b1 = ult %21, %3\n\
        if<L1> %29 {\nbreak<L1>\n} else {\n%30: b32 = iadd %26, %28\nbreak<L0> %30\n}\n\
        %31: b32 = iadd %21, %1\ncontinue<L0> %31, %26, %28\n}\n\
        store<storage align 4> %20, %8, %15\n";
    compare(&buffer_shader(64, 0, body));
}

/// A comparison in a loop has the bits of the lanes of one iteration, so the same comparison after the loop is made again.
#[test]
fn a_comparison_after_a_loop_is_of_all_lanes() {
    let text = lanes_leave(
        "",
        "%30: b1 = ult %14, %2\n%23: b32 = select %30, %21, %14\nstore<storage align 4> %23, %8, %15",
        "%41: b1 = ult %14, %2\n%42: b32 = select %41, %10, %16\n%40: b32 = iadd %42, %20",
    );
    compare(&text);
}

/// Lanes of every width, chosen by a value that differs between invocations, and by one that does not.
#[test]
fn a_value_chooses_a_lane() {
    for index in ["%16", "%59"] {
        let mut body = String::from(
            "%5: b32 = load<storage align 4 access readonly|restrict> %7, %0\n%59: b32 = iand %5, %3\n",
        );
        let mut number = 60;
        let mut next = |text: &str| {
            number += 1;
            body += &format!("%{number}: {text}\n");
            format!("%{number}")
        };
        let mut sum = "%14".to_owned();
        for bits in [1, 8, 16, 64] {
            let lane = |word: &str| match bits {
                1 => format!("b1 = ult {word}, %14"),
                _ => format!("b{bits} = i2i {word}"),
            };
            let lanes = ["%10", "%14", "%15", "%12"].map(|word| next(&lane(word)));
            let vector = next(&format!("b{bits}x4 = vec {}", lanes.join(", ")));
            let vector = next(&format!("b{bits}x4 = insert_dyn {vector}, {}, {index}", lanes[2]));
            let other = next(&format!("b32 = ixor {index}, %1"));
            let lane = next(&format!("b{bits} = extract_dyn {vector}, {other}"));
            let word = match bits {
                1 => next(&format!("b32 = select {lane}, %10, %16")),
                _ => next(&format!("b32 = i2i {lane}")),
            };
            let product = next(&format!("b32 = imul {sum}, %3"));
            sum = next(&format!("b32 = iadd {product}, {word}"));
        }
        compare(&lanes_leave("", "%23: b32 = iadd %21, %1", &format!("{body}%40: b32 = iadd %20, {sum}")));
    }
}

/// Only so many accesses to arrays become choices between their elements. Lanes of vectors are chosen all the same.
#[test]
fn a_value_chooses_a_lane_beside_many_accesses_to_arrays() {
    let mut body = String::from(
        "%60: b32x4 = vec %10, %14, %15, %12\n%61: b32x4 = insert_dyn %60, %20, %16\n%62: b32 = extract<1> %61\n\
         %63: b32 = const<0x1f>\n%64: b32 = iand %62, %63\n",
    );
    for element in 0..32 {
        let index = 701 + element;
        body += &format!("%{index}: b32 = const<{element:#x}>\nstore_var<v0 mask 0x1> %14, %{index}\n");
    }
    for number in (65..700).step_by(3) {
        let (loaded, sum, index) = (number, number + 1, number + 2);
        body += &format!(
            "%{loaded}: b32 = load_var<v0 mask 0x0> %{before}\nstore_var<v0 mask 0x1> %{before}, %{before}\n\
             %{sum}: b32 = iadd %{loaded}, %{before}\n%{index}: b32 = iand %{sum}, %63\n",
            before = number - 1
        );
    }
    let text = lanes_leave("", "%23: b32 = iadd %21, %1", &format!("{body}%40: b32 = iadd %20, %700"));
    compare(&text.replace("fn f0", "type t0 = b32\ntype t1 = [32 t0]\nvar v0 \"array\" private t1\nfn f0"));
}

/// Halves around the least normal one, and words of any bits.
#[test]
fn floats_are_quantized_to_halves() {
    let body = "%41: b32 = const<0x8000>\n%42: b32 = const<0x7fff>\n%43: b32 = const<0x38700000>\n%44: b32 = const<0x80000000>\n\
        %45: b32 = imul %10, %41\n%46: b32 = iand %14, %42\n%47: b32 = ior %45, %46\n%48: b32 = iadd %47, %43\n\
        %49: b32 = iand %14, %44\n%52: b32 = ixor %48, %49\n%53: b32 = fquantize_f16 %52\n%54: b32 = fquantize_f16 %14\n\
        store<storage align 4> %54, %8, %15\n%40: b32 = iadd %20, %53\n";
    compare(&lanes_leave("", "%23: b32 = iadd %21, %1", body));
}

/// The mnemonics of the code of a shader for gfx1030.
fn mnemonics(text: &str, contract: bool) -> Vec<String> {
    let mut shader = Shader::default();
    parse(text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let options = Options { contract, ..Options::new(Gpu::new("gfx1030").expect("a GPU")) };
    let compiled = compile(&mut shader, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assembly(&compiled, &options.gpu)
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn has(mnemonics: &[String], name: &str) -> bool {
    mnemonics.iter().any(|own| own.starts_with(name))
}

/// All lanes that are still in a loop have the same count of iterations, though others have left it.
#[test]
fn counters_of_loops_that_lanes_leave_are_scalar() {
    let text = lanes_leave("", "%23: b32 = iadd %21, %14", "%40: b32 = iadd %20, %10");
    compare(&text);
    let code = mnemonics(&text, false);
    assert!(has(&code, "s_add_u32"), "the counter is scalar: {code:?}");
}

/// What the arms of a uniform `if` leave is in scalar registers.
#[test]
fn results_of_uniform_ifs_are_scalar() {
    let arms = "%31: b1 = ult %30, %2\n%32: b32 = if<L5> %31 {\nstore<storage align 4> %14, %8, %15\nbreak<L5> %30\n} else {\nbreak<L5> %3\n}\n";
    let text = lanes_leave(
        "",
        "%23: b32 = iadd %21, %14",
        &format!("%30: b32 = read_first %14\n{arms}%33: b32 = ixor %32, %6\n%40: b32 = iadd %33, %20"),
    );
    compare(&text);
    let code = mnemonics(&text, false);
    assert!(has(&code, "s_xor_b32"), "the result is scalar: {code:?}");
}

/// A reduction of a value that all lanes share only counts them.
#[test]
fn reductions_of_uniform_values_count_lanes() {
    for op in ["iadd", "ixor", "iand", "ior", "umin", "imax"] {
        for value in ["%30", "%1"] {
            let text = lanes_leave(
                &format!("%30: b32 = read_first %14\n%31: b32 = reduce<{op} 0> {value}"),
                "%23: b32 = iadd %31, %14",
                "%40: b32 = iadd %20, %10",
            );
            compare(&text);
            let counts = matches!(op, "iadd" | "ixor");
            let code = mnemonics(&text, false);
            assert_eq!(has(&code, "s_bcnt1_i32_b"), counts, "{op} of {value}: {code:?}");
        }
    }
}

/// Values of lanes are combined by a tree; what lanes without a partner keep is written right before they are moved.
#[test]
fn values_of_lanes_are_combined() {
    for op in ["iadd", "imul", "ixor", "umin", "imax"] {
        for over in ["reduce", "inclusive_scan", "exclusive_scan"] {
            let text = lanes_leave(
                "%30: b32 = iadd %14, %21",
                "%23: b32 = iadd %30, %14",
                &format!("%39: b32 = ior %20, %1\n%40: b32 = {over}<{op} 0> %39"),
            );
            compare(&text);
        }
    }
}

/// Floats are combined in another order than in the interpreter. The results are the same because they are exact.
#[test]
fn floats_of_lanes_are_combined() {
    for op in ["fadd", "fmul", "fmin", "fmax"] {
        for over in ["reduce", "inclusive_scan", "exclusive_scan"] {
            for cluster in [0, 4, 32] {
                if over != "reduce" && cluster != 0 {
                    continue;
                }
                // Powers of two for products: 1 and 2.
                let number =
                    if op == "fmul" { "%38: b32 = iand %14, %1" } else { "%38: b32 = iadd %14, %20" };
                let text = lanes_leave(
                    "%30: b32 = u2f %14\n%31: b32 = reduce<fmax 0> %30\n%32: b32 = f2u %31",
                    "%23: b32 = iadd %32, %14",
                    &format!(
                        "{number}\n%39: b32 = iadd %38, %1\n%41: b32 = u2f %39\n%40: b32 = {over}<{op} {cluster}> %41"
                    ),
                );
                compare(&text);
            }
        }
    }
}

/// Floats of 16 bits are combined by the trees of 32 bits. The results are the same because they are exact.
#[test]
fn halves_of_lanes_are_combined() {
    for op in ["fadd", "fmul", "fmin", "fmax"] {
        for (over, cluster) in [("reduce", 0), ("reduce", 4), ("inclusive_scan", 0), ("exclusive_scan", 0)] {
            // Small numbers whose sum is less than 2048, and 1 or 2 for products of four lanes. Products of all lanes are powers of two, or infinite.
            let text = lanes_leave(
                "",
                "%23: b32 = iadd %21, %14",
                &format!(
                    "%37: b32 = iand %14, %3\n%38: b32 = umax %37, %1\n%36: b32 = umin %38, %2\n%39: b16 = u2f %36\n\
                     %41: b16 = {over}<{op} {cluster}> %39\n%42: b32 = f2f %41\n%40: b32 = iadd %42, %20"
                ),
            );
            compare(&text);
            let code = mnemonics(&text, false);
            let [wide, narrow] = ["f32", "f16"].map(|ty| has(&code, &format!("v_{}_{ty}", &op[1..])));
            assert!(wide && !narrow, "{over} {op}: {code:?}");
        }
    }
}

/// A float sum over lanes with the same value is not that value.
#[test]
fn uniform_floats_are_added() {
    for op in ["fadd", "fmul", "fmin"] {
        let text = lanes_leave(
            "",
            "%23: b32 = iadd %21, %14",
            &format!("%39: b32 = const<0x40000000>\n%40: b32 = reduce<{op} 0> %39"),
        );
        compare(&text);
    }
}

/// Numbers of 64 bits are compared in one instruction.
#[test]
fn numbers_of_64_bits_are_compared_at_once() {
    for (op, vector) in [("ieq", "v_cmp_eq_u64"), ("ult", "v_cmp_"), ("ige", "v_cmp_"), ("ine", "v_cmp_")] {
        let pairs = "%30: b32x2 = vec %14, %10\n%31: b64 = bitcast %30\n%32: b32x2 = vec %10, %14\n%33: b64 = bitcast %32\n";
        let text = lanes_leave(
            "",
            "%23: b32 = iadd %21, %14",
            &format!("{pairs}%34: b1 = {op} %31, %33\n%40: b32 = select %34, %20, %10"),
        );
        compare(&text);
        let code = mnemonics(&text, false);
        assert!(
            code.iter().any(|own| own.starts_with(vector) && (own.contains("_u64") || own.contains("_i64"))),
            "{op}: {code:?}"
        );
    }
}

/// A product and a sum are rounded once only if the options allow it.
#[test]
fn products_are_added_at_once_where_options_allow_it() {
    let text =
        lanes_leave("", "%23: b32 = iadd %21, %14", "%30: b32 = fmul %17, %14\n%40: b32 = fadd %30, %20");
    for contract in [false, true] {
        let code = mnemonics(&text, contract);
        let fused = has(&code, "v_fma_f32") || has(&code, "v_fmac_f32");
        assert_eq!((fused, has(&code, "v_mul_f32")), (contract, !contract), "{code:?}");
    }
}

/// The branch of an `if` inverts a condition that is a complement: here that of a test of a bit, whose instruction has the other sense.
#[test]
fn branches_invert_conditions() {
    for bit in ["%1", "%2"] {
        for other in [
            "break<L5> %21",
            "%35: b32 = load<storage align 4 access readonly|restrict> %7, %13\nbreak<L5> %35",
        ] {
            let arms = format!(
                "%36: b32 = ixor %14, %21\n%30: b32 = iand %36, {bit}\n%31: b1 = ieq %30, %0\n%32: b32 = if<L5> %31 {{\n\
                 %33: b32 = load<storage align 4 access readonly|restrict> %7, %0\n%34: b32 = iadd %33, %21\n\
                 break<L5> %34\n}} else {{\n{other}\n}}\n"
            );
            let text = lanes_leave(&arms, "%23: b32 = ixor %32, %14", "%40: b32 = iadd %20, %10");
            compare(&text);
            let code = mnemonics(&text, false);
            assert!(has(&code, "v_cmp_class_f32") && has(&code, "s_andn1_saveexec_b"), "{code:?}");
            assert!(!has(&code, "s_not_b"), "{code:?}");
        }
    }
}

/// A uniform carry that an instruction reads from `scc`, which it overwrites, has more readers.
#[test]
fn a_carry_that_is_added_is_read_again() {
    for (carry, sum) in [("uadd_carry", "iadd"), ("usub_borrow", "isub")] {
        for last in [
            "%34: b32 = select %33, %1, %2",
            "%34: b32 = if<L5> %33 {\nbreak<L5> %14\n} else {\nbreak<L5> %2\n}",
        ] {
            let body = format!(
                "%19: b32 = const<0x4>\n%20: b32 = load<storage align 4 access readonly|restrict> %7, %0\n\
                 %21: b32 = load<storage align 4 access readonly|restrict> %7, %19\n%29: b32 = {carry} %20, %21\n\
                 %30: b32 = {sum} %21, %20\n%31: b32 = {sum} %30, %29\n%33: b1 = ieq %29, %0\n{last}\n\
                 %35: b32 = iadd %31, %34\n"
            );
            compare(&stores(&body, "%35"));
        }
    }
}

/// A ballot of which only some lanes are set, known before.
#[test]
fn constant_ballots_are_lane_masks() {
    for bits in ["0x80", "0x41", "0xfffffff0", "0x3", "0xffffffff"] {
        let body = format!(
            "%20: b32 = const<{bits}>\n%21: b32x4 = vec %20, %0, %0, %0\n%22: b1 = inverse_ballot %21\n%23: b32 = select %22, %14, %2\n"
        );
        compare(&stores(&body, "%23"));
    }
}

/// A boolean that an arm leaves as a number, with which lanes meet those of the other arm.
#[test]
fn an_arm_ends_with_a_comparison() {
    let body = "%20: b32 = load<storage align 4 access readonly|restrict> %7, %0\n%21: b1 = ine %20, %0\n\
        %22: b32 = if<L0> %21 {\nloop<L1> %0 (%23: b32) {\n%24: b1 = ieq %23, %0\n\
        if<L2> %24 {\ncontinue<L1> %1\n} else {\nbreak<L2>\n}\nbreak<L1>\n}\n\
        %25: b1 = ieq %20, %1\n%26: b32 = select %25, %1, %0\nbreak<L0> %26\n} else {\nbreak<L0> %12\n}\n\
        %27: b1 = ine %22, %0\n%28: b32 = select %27, %14, %2\n";
    compare(&stores(body, "%28"));
}

/// Values in scalar registers that a block finds in other registers than the only block before it leaves them in.
const LEFT_BY_A_BRANCH: &str = "
    %0: b32 = const<0x0>
    %1: b32 = const<0x1>
    %2: b32 = const<0x2>
    %3: b64 = const<0x1>
    %4: b1 = const<0x0>
    %5: b64 = const<0x0>
    %6: handle = descriptor<r1> %0
    %40: b32x3 = sysval<global_invocation_id>
    %7: b32 = extract<0> %40
    %41: b32 = const<0x6>
    %42: b32 = ishl %7, %41
    %43: b32 = const<0x4>
    %44: b32 = iadd %42, %43
    %45: b32 = iadd %44, %43
    %46: b32 = iadd %45, %43
    %47: handle = descriptor<r0> %0
    %8: b32 = load<storage align 4 access readonly|restrict> %47, %0
    %9: b1 = ine %7, %0
    %10: b32 = select %9, %1, %0
    %11: b1 = ieq %8, %1
    %12: b1 = ine %10, %0
    %13: b32 = select %12, %0, %10
    %14: b32 = select %12, %0, %8
    %15: b32 = select %12, %8, %0
    %16: b32 = select %12, %2, %0
    %17: b64 = select %12, %5, %3
    %18: b1 = select %12, %11, %4
    %19: b1 = ine %16, %0
    %20: b32, %21: b64 = block<L0> {
    %22: b32 = select %18, %1, %0
    %23: b1 = ine %22, %0
    if<L1> %23 {
    %24: b32 = u2u %17
    %25: b32x2 = vec %0, %8
    %26: b64 = bitcast %25
    %27: b1 = ine %26, %5
    if<L2> %27 {
    break<L0> %24, %3
    } else {
    break<L2>
    }
    break<L1>
    } else {
    break<L0> %15, %5
    }
    unreachable
    }
    %28: b32 = select %18, %1, %0
    %29: b1 = ine %28, %2
    %30: b32, %31: b32 = if<L3> %29 {
    %32: b64 = loop<L4> %5, %0 (%33: b64, %34: b32) {
    %35: b1 = ieq %34, %0
    if<L5> %35 {
    %36: b64 = u2u %16
    %37: b64 = isub %21, %36
    continue<L4> %37, %1
    } else {
    break<L4> %33
    }
    unreachable
    }
    %38: b32 = u2u %32
    break<L3> %38, %0
    } else {
    break<L3> %13, %20
    }
    store<storage align 4> %30, %6, %42
    store<storage align 4> %14, %6, %44
    store<storage align 4> %31, %6, %45
    %39: b32 = select %19, %1, %0
    store<storage align 4> %39, %6, %46
";

#[test]
fn scalars_change_registers_where_a_branch_leads() {
    compare(&buffer_shader(64, 0, LEFT_BY_A_BRANCH));
}
