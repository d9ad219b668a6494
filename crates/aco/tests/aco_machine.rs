//! Operations of the shader IR that stand for instructions of the hardware, which the interpreter does not run: each is compiled, run on the emulator, and compared with what its
//! description says.

mod rig;

use unwedge_aco::abi::Argument;
use unwedge_aco::{CompileError, Options, compile};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::Shader;
use unwedge_shader::text::parse;
use unwedge_sim::amdgcn::{Dispatch, Timing};
use unwedge_testkit::pack::bytes;

/// Invocations, which are in one wave of any size.
const INVOCATIONS: u32 = 32;

/// Runs a body on a target. It finds the words of its invocation in `%20` and `%21`, and leaves a word in `%60`.
fn run(body: &str, options: &Options, input: &[[u32; 2]]) -> Result<Vec<u32>, CompileError> {
    let text = rig::buffer_shader(
        INVOCATIONS,
        64,
        &format!(
            "%0: b32 = const<0x0>\n%1: b32 = const<0x2>\n%2: b32 = const<0x3>\n%3: handle = descriptor<r0> %0\n%4: handle = descriptor<r1> %0\n\
             %5: b32x3 = sysval<local_invocation_id>\n%6: b32 = extract<0> %5\n%7: b32 = ishl %6, %1\n%8: b32 = ishl %6, %2\n\
             %9: b32x2 = load<storage align 8 access readonly|restrict> %3, %8\n%20: b32 = extract<0> %9\n%21: b32 = extract<1> %9\n\
             {body}store<storage align 4> %60, %4, %7\n"
        ),
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    shader.info.float_modes[1].flush = Some(false);
    let compiled = compile(&mut shader, options)?;
    let mut memory = rig::memory(options, bytes(input.as_flattened()), INVOCATIONS as usize * 4);
    let set =
        |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(rig::TABLE as u32);
    let dispatch = Dispatch {
        size: [INVOCATIONS, 1, 1],
        timing: Timing::Adversarial { seed: 1 },
        ..rig::dispatch(&compiled, &options.gpu, set)
    };
    let done = rig::execute(&compiled.code, options.gpu, &mut memory, &dispatch);
    assert_eq!(done, Ok(()), "{}", options.gpu.name());
    Ok(rig::output(&memory, INVOCATIONS as usize))
}

/// Pairs of floats of all sorts.
fn floats() -> Vec<[u32; 2]> {
    let some =
        [0.0, -0.0, 1.0, -1.0, 0.25, -0.75, 3.5, -2.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN, 0.1];
    (0..INVOCATIONS as usize)
        .map(|at| [some[at % some.len()], some[(at / 3 + 5) % some.len()]].map(f32::to_bits))
        .collect()
}

#[test]
fn products_with_zero_are_zero() {
    let input = floats();
    for (target, options) in rig::targets() {
        let found = run("%60: b32 = amd_mul_zero %20, %21\n", &options, &input).expect("compiled");
        for (pair, word) in input.iter().zip(found) {
            let [a, b] = pair.map(f32::from_bits);
            let product = if a == 0.0 || b == 0.0 { 0.0 } else { a * b };
            let same = product.is_nan() && f32::from_bits(word).is_nan() || product.to_bits() == word;
            assert!(same, "{target}: {a} times {b} is {word:#x}");
        }
    }
}

#[test]
fn pairs_are_packed_as_normalized_numbers() {
    let input: Vec<[u32; 2]> = (0..INVOCATIONS)
        .map(|at| [(at as f32 - 13.0) / 8.0, (17.0 - at as f32) / 16.0].map(f32::to_bits))
        .collect();
    for (op, least, scale) in [("unorm", 0.0f32, 65535.0f32), ("snorm", -1.0, 32767.0)] {
        for (target, options) in rig::targets() {
            let found =
                run(&format!("%60: b32 = amd_pack_{op} %20, %21\n"), &options, &input).expect("compiled");
            for (pair, word) in input.iter().zip(found) {
                for (at, bits) in pair.iter().enumerate() {
                    let exact = f32::from_bits(*bits).clamp(least, 1.0) * scale;
                    let part = (word >> (16 * at)) as u16;
                    let part = if least < 0.0 { f32::from(part as i16) } else { f32::from(part) };
                    assert!((part - exact).abs() <= 0.5, "{target}: {op} of {pair:x?} is {word:#x}");
                }
            }
        }
    }
}

/// Lanes whose number is not a multiple of three, which are 21, add themselves to a counter; the others take themselves away.
#[test]
fn counters_in_shared_memory_count_lanes() {
    let barrier = "barrier<execution workgroup memory workgroup order acquire|release kinds shared>\n";
    let body = format!(
        "%30: b32 = const<0x8>\n%31: b32 = const<0x64>\nstore<shared align 4> %31, %30\n{barrier}\
         %32: b32 = umod %6, %2\n%33: b1 = ine %32, %0\n\
         %34: b32 = if<L0> %33 {{\n%35: b32 = amd_append_shared %30\nbreak<L0> %35\n\
         }} else {{\n%36: b32 = amd_consume_shared %30\nbreak<L0> %36\n}}\n{barrier}\
         %37: b32 = load<shared align 4> %30\n%38: b32 = const<0x10>\n%39: b32 = ishl %37, %38\n%60: b32 = ior %34, %39\n"
    );
    let input = vec![[0; 2]; INVOCATIONS as usize];
    let (added, taken) = (21, 11);
    let last = 100 + added - taken;
    for (target, options) in rig::targets() {
        let found = run(&body, &options, &input);
        if options.gpu.generation() < Gfx::Gfx9 {
            assert!(matches!(found, Err(CompileError::Operation { .. })), "{target}: {found:?}");
            continue;
        }
        for (lane, word) in found.expect("compiled").into_iter().enumerate() {
            // Either arm may run first.
            let before = if lane % 3 != 0 { [100, 100 - taken] } else { [100 + added, 100] };
            assert!(
                before.iter().any(|before| before | last << 16 == word),
                "{target}, lane {lane}: {word:#x}"
            );
        }
    }
}

/// Each reading of a clock is later than the one before, also in a divergent construct. Clocks are not compared with the interpreter's.
#[test]
fn clocks_grow() {
    let body = |scope: &str| {
        format!(
            "%30: b1 = ieq %20, %0\n%31: b32x2 = clock<{scope}>\n%32: b32 = extract<0> %31\n\
             %33: b32 = if<L0> %30 {{\n%34: b32x2 = clock<{scope}>\n%35: b32 = extract<0> %34\nbreak<L0> %35\n\
             }} else {{\n%36: b32x2 = clock<{scope}>\n%37: b32 = extract<0> %36\nbreak<L0> %37\n}}\n\
             %38: b32x2 = clock<{scope}>\n%39: b32 = extract<0> %38\n%40: b32 = extract<1> %38\n\
             %41: b1 = ult %32, %33\n%42: b1 = ult %33, %39\n%43: b1 = ieq %40, %0\n%44: b1 = iand %41, %42\n%45: b1 = iand %44, %43\n\
             %46: b32 = const<0x1>\n%60: b32 = select %45, %46, %0\n"
        )
    };
    let input: Vec<[u32; 2]> = (0..INVOCATIONS).map(|at| [at % 3, 0]).collect();
    for scope in ["subgroup", "device"] {
        for (target, options) in rig::targets() {
            let found = run(&body(scope), &options, &input);
            if scope == "device" && options.gpu.generation() < Gfx::Gfx8 {
                assert!(matches!(found, Err(CompileError::Operation { .. })), "{target}: {found:?}");
                continue;
            }
            assert_eq!(found.expect("compiled"), [1; INVOCATIONS as usize], "{target} {scope}");
        }
    }
}
