//! Memory accesses by 64-bit addresses, atomic operations of every width, and descriptor indices that differ between lanes: on the emulator, compiled code leaves
//! the same in buffers as the interpreter of the shader IR.

mod rig;

use rig::{GPUS, TABLE};
use unwedge_aco::abi::{Argument, descriptor_offset};
use unwedge_aco::{Options, compile};
use unwedge_check::amdgcn::{CheckOptions, check_words};
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::interp::{self, BindingPoint, Bindings, MemoryImages, run_compute};
use unwedge_shader::ir::{Shader, Stage};
use unwedge_shader::text::parse;
use unwedge_shader::valid::validate;
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// The buffers of a shader: binding, index and address. The second one crosses a multiple of 4 GiB, so that sums of addresses carry.
const BUFFERS: [(u32, u32, u64); 6] = [
    (0, 0, 0x1_2345_6000),
    (1, 0, 0xffff_f000),
    (2, 0, 0x3_0000_0000),
    (2, 1, 0x3_0001_0000),
    (2, 2, 0x3_0002_0000),
    (2, 3, 0x3_0003_0000),
];
/// Bytes of a buffer.
const SIZE: usize = 0x2000;
const GROUPS: u32 = 2;
const INVOCATIONS: u32 = 64;

/// Registers of every shader: `%4` the invocation in its workgroup, `%6` the invocation, `%8` the offset of its 64 bytes in the output and `%11` their address,
/// `%12` the address of the input, `%15` a word of it, `%17` an index from 0 to 3.
const START: &str = "\
  %0: b32 = const<0x0>
  %1: handle = descriptor<r0> %0
  %2: handle = descriptor<r1> %0
  %3: b32x3 = sysval<local_invocation_id>
  %4: b32 = extract<0> %3
  %5: b32x3 = sysval<global_invocation_id>
  %6: b32 = extract<0> %5
  %7: b32 = const<0x40>
  %8: b32 = imul %6, %7
  %9: b64 = const<0xfffff000>
  %10: b64 = u2u %8
  %11: b64 = iadd %9, %10
  %12: b64 = const<0x123456000>
  %13: b32 = const<0x2>
  %14: b32 = ishl %4, %13
  %15: b32 = load<storage align 4 access readonly|restrict> %1, %14
  %16: b32 = const<0x3>
  %17: b32 = iand %15, %16
";

fn shader_of(resources: &str, body: &str) -> Shader {
    let buffer = |number: u32, count: u32, access: &str| {
        format!(
            "resource r{number} \"\" storage_buffer set 0 binding {number} count {count} size 0 dim buffer{access}\n"
        )
    };
    let text = format!(
        "shader compute \"main\"\nworkgroup_size {INVOCATIONS} 1 1\nsizes shared 4096 scratch 0 push 0\n{}{}{}{resources}\
         fn f0 \"main\" () -> () {{\n{START}{body}  return\n}}\n",
        buffer(0, 1, " access readonly|restrict"),
        buffer(1, 1, ""),
        buffer(2, 4, "")
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    validate(&shader).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(shader.info.stage, Stage::Compute);
    shader
}

/// Small numbers in every buffer, which are exact floats if `floats`.
fn contents(floats: bool) -> Vec<Vec<u8>> {
    let mut rng = Rng::new(7);
    let mut word = || {
        let number = rng.below(200) as u32;
        if floats { ((number as f32 - 100.0) / 4.0).to_bits() } else { number }
    };
    BUFFERS.iter().map(|_| bytes(&(0..SIZE / 4).map(|_| word()).collect::<Vec<u32>>())).collect()
}

fn interpreted(shader: &Shader, contents: &[Vec<u8>], wave64: bool) -> Vec<Vec<u8>> {
    let mut bindings = Bindings::default();
    for (&(binding, index, address), bytes) in BUFFERS.iter().zip(contents) {
        let memory = bindings.bind(BindingPoint { set: 0, binding, index }, bytes.clone());
        bindings.addresses.insert(address, memory);
    }
    let subgroup_size = if wave64 { 64 } else { 32 };
    let options = interp::Options { subgroup_size, races: false, ..interp::Options::default() };
    let dispatch = interp::Dispatch::new([GROUPS, 1, 1]);
    let report = run_compute(shader, dispatch, &mut bindings, &mut MemoryImages::default(), &options)
        .unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(report.findings.first(), None);
    bindings.memory
}

fn executed(shader: &Shader, contents: &[Vec<u8>], gpu: Gpu, seed: u64) -> Result<Vec<Vec<u8>>, String> {
    let options = Options::new(gpu);
    let compiled = compile(&mut shader.clone(), &options).map_err(|error| error.to_string())?;
    let report = check_words(&compiled.code.words, &gpu, &CheckOptions::default());
    if let Some(fault) = report.faults().next() {
        return Err(format!("checker: {fault:?}"));
    }
    let mut table = vec![0u32; 64];
    let mut memory = SimMemory::default();
    for (&(binding, index, address), bytes) in BUFFERS.iter().zip(contents) {
        let first = descriptor_offset(shader, 0, binding).expect("a binding") / 4 + index * 4;
        table[first as usize..first as usize + 4].copy_from_slice(&rig::descriptor(
            address,
            SIZE,
            gpu.generation(),
        ));
        memory.map(address, bytes.clone()).expect("free");
    }
    memory.map(u64::from(options.address_high) << 32 | TABLE, bytes(&table)).expect("free");
    let set = |argument: Argument| matches!(argument, Argument::DescriptorSet(_)).then_some(TABLE as u32);
    let dispatch = Dispatch {
        groups: [GROUPS, 1, 1],
        size: [INVOCATIONS, 1, 1],
        timing: Timing::Adversarial { seed },
        ..rig::dispatch(&compiled, &gpu, set)
    };
    rig::execute(&compiled.code, gpu, &mut memory, &dispatch)?;
    Ok(BUFFERS.iter().map(|&(_, _, address)| memory.get(address, SIZE).expect("mapped").to_vec()).collect())
}

/// Compares a shader with the interpreter on every GPU, in both sizes of the wave.
fn compare(body: &str, floats: bool) {
    let (shader, contents) = (shader_of("", body), contents(floats));
    for name in GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            let expected = interpreted(&shader, &contents, gpu.wave64());
            let found = executed(&shader, &contents, gpu, 5)
                .unwrap_or_else(|error| panic!("{name}, wave64 {}: {error}\n{body}", gpu.wave64()));
            for (at, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let place = found.iter().zip(expected).position(|(a, b)| a != b);
                assert_eq!(place, None, "{name}, wave64 {}: buffer {at}\n{body}", gpu.wave64());
            }
        }
    }
}

/// The text of the assembly of a shader for a GPU.
fn assembly(body: &str, gpu: &str) -> String {
    let options = Options::new(Gpu::new(gpu).expect("a GPU"));
    let compiled =
        compile(&mut shader_of("", body), &options).unwrap_or_else(|error| panic!("{gpu}: {error}\n{body}"));
    rig::recorded::assembly(&compiled, &options.gpu)
}

/// Copies values of every type from one address to another, at constant offsets from a uniform base, and from a base that differs between lanes.
#[test]
fn values_are_loaded_and_stored_by_addresses() {
    let types = [
        ("b8", 1),
        ("b8x3", 1),
        ("b16", 2),
        ("b16x4", 2),
        ("b32", 4),
        ("b32x2", 4),
        ("b32x3", 4),
        ("b32x4", 4),
        ("b32x8", 4),
        ("b64", 8),
        ("b64x2", 8),
        ("b64x3", 8),
    ];
    for (ty, align) in types {
        for access in ["", " access readonly", " access coherent", " access volatile"] {
            let stored = if access.contains("readonly") { "" } else { access };
            compare(
                &format!(
                    "  %30: b32 = const<0x3>\n  %31: b32 = ishl %17, %30\n  %32: b64 = u2u %31\n  %33: b64 = iadd %12, %32\n\
                     \x20 %34: b64 = const<0x58>\n  %35: b64 = iadd %33, %34\n  %36: {ty} = load<global align {align}{access}> %35\n\
                     \x20 store<global align {align}{stored}> %36, %11\n"
                ),
                false,
            );
        }
    }
}

/// Addresses that are the same in all lanes: those of memory that does not change are loaded by scalar instructions.
#[test]
fn uniform_addresses_are_scalar() {
    for (ty, access) in [
        ("b32x3", " access readonly"),
        ("b32x8", " access readonly"),
        ("b64", " access readonly"),
        ("b32x2", ""),
    ] {
        let body = format!(
            "  %30: b64 = const<0x28>\n  %31: b64 = iadd %12, %30\n  %32: {ty} = load<global align 8{access}> %31\n\
             \x20 store<global align 8> %32, %11\n"
        );
        compare(&body, false);
        let scalar = assembly(&body, "gfx1030").contains("s_load_");
        assert_eq!(scalar, access.contains("readonly"), "{ty}{access}");
    }
}

/// An access to the sum of a uniform base, a 32-bit number and a constant is one instruction.
#[test]
fn sums_of_addresses_are_operands() {
    let body = "  %30: b64 = load<storage align 8 access readonly> %1, %0\n  %31: b64 = iadd %30, %10\n  %32: b64 = const<0x18>\n\
                \x20 %33: b64 = iadd %31, %32\n  store<global align 4> %15, %33\n";
    for gpu in ["gfx900", "gfx1030", "gfx1100", "gfx1200"] {
        let text = assembly(body, gpu);
        let store = text.lines().find(|line| line.contains("global_store")).expect("a store");
        assert!(store.contains("s[") && store.contains("offset:24"), "{gpu}: {store}");
        assert!(!text.contains("addc"), "{gpu}: {text}");
    }
}

/// The base differs between lanes, and the sum carries.
#[test]
fn bases_that_differ_are_added() {
    compare(
        "  %30: b32 = const<0x1>\n  %31: b1 = ult %17, %30\n  %32: b64 = const<0x300000000>\n  %33: b64 = select %31, %12, %32\n\
         \x20 %34: b64 = u2u %14\n  %35: b64 = iadd %33, %34\n  %36: b32x2 = load<global align 4> %35\n\
         \x20 %37: b64 = const<0x1000>\n  %38: b64 = iadd %11, %37\n  %39: b64 = isub %38, %37\n  store<global align 4> %36, %39\n",
        false,
    );
}

/// The operands of an atomic operation in an address space, and the instructions before it.
fn place(space: &str, wide: bool) -> (&'static str, String) {
    match space {
        "storage" => ("%2, %8", String::new()),
        "global" => ("%11", String::new()),
        _ => {
            let (ty, align) = if wide { ("b64", 8) } else { ("b32", 4) };
            let start = format!(
                "  %20: b32 = const<0x10>\n  %21: b32 = imul %4, %20\n  %22: {ty} = load<global align {align}> %11\n\
                 \x20 store<shared align {align}> %22, %21\n"
            );
            ("%21", start)
        }
    }
}

const OPS: [&str; 9] = ["add", "imin", "imax", "umin", "umax", "and", "or", "xor", "exchange"];

/// Every lane changes a value of its own, and stores the old value or does not read it.
#[test]
fn atomic_operations_of_every_width() {
    for space in ["storage", "global", "shared"] {
        for (ty, align) in [("b32", 4), ("b64", 8)] {
            let (at, start) = place(space, align == 8);
            let operand = if align == 8 { "%23: b64 = u2u %15" } else { "%23: b32 = ior %15, %0" };
            let finish = format!(
                "  %40: b64 = const<0x8>\n  %41: b64 = iadd %11, %40\n  store<global align {align}> %30, %41\n"
            );
            let last = match space {
                "shared" => format!(
                    "  %42: {ty} = load<shared align {align}> %21\n  %43: b64 = const<0x10>\n  %44: b64 = iadd %11, %43\n\
                     \x20 store<global align {align}> %42, %44\n"
                ),
                _ => String::new(),
            };
            for op in OPS {
                let atomic =
                    format!("  {operand}\n  %30: {ty} = atomic<{op} {space} align {align}> %23, {at}\n");
                compare(&format!("{start}{atomic}{finish}{last}"), false);
                compare(&format!("{start}{atomic}{last}"), false);
            }
            let compared = format!(
                "  {operand}\n  %24: {ty} = load<{space} align {align}> {at}\n  %25: {ty} = umin %24, %23\n\
                 \x20 %30: {ty} = atomic_compare<exchange {space} align {align}> %23, %25, {at}\n"
            );
            compare(&format!("{start}{compared}{finish}{last}"), false);
        }
    }
}

/// Floats of 32 and 64 bits, on GPUs that have the operation and on those where a loop replaces it.
#[test]
fn atomic_operations_on_floats() {
    for space in ["storage", "global", "shared"] {
        for (ty, align) in [("b32", 4), ("b64", 8)] {
            let (at, start) = place(space, align == 8);
            for op in ["fadd", "fmin", "fmax"] {
                // 64-bit floats are converted from 32-bit ones, because the buffers hold those.
                let (before, operand) = match ty {
                    "b64" => (
                        "  %25: b64 = f2f %15\n  %26: b32 = load<global align 4> %11\n  %27: b64 = f2f %26\n  store<global align 8> %27, %11\n",
                        "%25",
                    ),
                    _ => ("", "%15"),
                };
                let finish = match space {
                    "shared" => format!("  %31: {ty} = load<shared align {align}> %21\n"),
                    _ => format!("  %31: {ty} = load<global align {align}> %11\n"),
                };
                compare(
                    &format!(
                        "{before}{start}  %30: {ty} = atomic<{op} {space} align {align}> {operand}, {at}\n{finish}\
                         \x20 %32: b64 = const<0x10>\n  %33: b64 = iadd %11, %32\n  store<global align {align}> %30, %33\n\
                         \x20 %34: b64 = iadd %33, %32\n  store<global align {align}> %31, %34\n"
                    ),
                    true,
                );
            }
        }
    }
}

/// All lanes add to one float; sums of the numbers are exact, so their order does not matter.
#[test]
fn lanes_add_floats_to_one_place() {
    for (space, at) in [("storage", "%2, %0"), ("global", "%9"), ("shared", "%0")] {
        let (before, after) = match space {
            "shared" => (
                "  store<shared align 4> %0, %0\n  barrier<execution workgroup memory workgroup order acquire|release kinds shared>\n",
                "  barrier<execution workgroup memory workgroup order acquire|release kinds shared>\n  %31: b32 = load<shared align 4> %0\n  store<global align 4> %31, %11\n",
            ),
            _ => ("", ""),
        };
        let body = format!("{before}  %30: b32 = atomic<fadd {space} align 4> %15, {at}\n{after}");
        compare(&body, true);
    }
}

/// Descriptors by indices that differ between lanes: loads, stores, sizes and atomic operations go to the buffer of each lane.
#[test]
fn descriptors_differ_between_lanes() {
    let handle = "  %20: handle = descriptor<r2 access nonuniform> %17\n";
    for body in [
        format!("{handle}  %30: b32x2 = load<storage align 4> %20, %14\n  store<global align 4> %30, %11\n"),
        format!(
            "{handle}  %30: b32 = load<storage align 4 access readonly> %20, %7\n  store<global align 4> %30, %11\n"
        ),
        format!("{handle}  store<storage align 4> %15, %20, %8\n"),
        format!("{handle}  %30: b32 = buffer_size %20\n  store<global align 4> %30, %11\n"),
        format!("{handle}  %30: b32 = atomic<add storage align 4> %15, %20, %0\n"),
        format!(
            "{handle}  %30: b32 = atomic<umax storage align 4> %15, %20, %8\n  store<global align 4> %30, %11\n"
        ),
        format!(
            "{handle}  %21: b1 = ult %17, %13\n  %22: b32 = if<L0> %21 {{\n    %23: b32 = load<storage align 4> %20, %14\n    break<L0> %23\n\
             \x20 }} else {{\n    break<L0> %15\n  }}\n  store<global align 4> %22, %11\n"
        ),
    ] {
        compare(&body, false);
    }
}

/// An index that is not marked is the same in all lanes of a correct shader, so no loop is needed.
#[test]
fn indices_that_are_not_marked_are_read_once() {
    let handle = "  %18: b32 = load<storage align 4> %1, %0\n  %19: b32 = iand %18, %16\n  %21: b32 = iand %4, %0\n  %22: b32 = iadd %19, %21\n";
    let body = format!(
        "{handle}  %20: handle = descriptor<r2> %22\n  %30: b32 = load<storage align 4> %20, %14\n  store<global align 4> %30, %11\n"
    );
    compare(&body, false);
    for (mark, loops) in [(" access nonuniform", true), ("", false)] {
        let body = format!(
            "  %20: handle = descriptor<r2{mark}> %17\n  %30: b32 = load<storage align 4> %20, %14\n  store<global align 4> %30, %11\n"
        );
        assert_eq!(assembly(&body, "gfx1030").contains("s_cbranch"), loops, "{mark}");
    }
}
