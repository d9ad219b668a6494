//! Which bytes accesses touch, and which may touch the same ones.

use super::text::shader;
use unwedge_shader::analysis::alias::{Aliases, MemoryRange, Overlap};
use unwedge_shader::ir::{Access, Inst, Op, Shader};

/// The ranges of the loads and stores of a body, in its order.
fn ranges(shader: &Shader) -> Vec<MemoryRange> {
    let func = shader.entry();
    let accesses = func.walk().filter(|&inst| matches!(func.op(inst), Op::Load | Op::Store | Op::Atomic));
    accesses.map(|inst: Inst| MemoryRange::of(func, inst).expect("an access to memory")).collect()
}

/// Whether the two accesses of a body may overlap. `%0` is a buffer, `%1` a value of which nothing is known, `%9` is zero.
fn overlap(body: &str, restrict: bool) -> Overlap {
    let mut shader = shader(body);
    if restrict {
        for resource in shader.resources.values_mut() {
            resource.access = resource.access.or(Access::RESTRICT);
        }
    }
    let ranges = ranges(&shader);
    let [a, b] = ranges[..] else { panic!("{} accesses", ranges.len()) };
    let aliases = Aliases { func: shader.entry(), resources: &shader.resources };
    let found = aliases.overlap(&a, &b);
    assert_eq!(found, aliases.overlap(&b, &a), "the order does not matter");
    found
}

/// Two loads of words at these offsets after some lines.
fn words(lines: &str, first: &str, second: &str) -> Overlap {
    let load = |result: u32, offset: &str| format!("%{result}: b32 = load<storage align 4> %0, {offset}\n");
    overlap(&format!("{lines}\n{}{}", load(40, first), load(41, second)), false)
}

#[test]
fn constant_offsets_are_compared() {
    let lines = "%10: b32 = const<0x4>\n%11: b32 = const<0x2>\n%12: b32 = const<0xfffffffe>";
    assert_eq!(words(lines, "%9", "%10"), Overlap::Disjoint);
    assert_eq!(words(lines, "%9", "%9"), Overlap::Unknown);
    assert_eq!(words(lines, "%9", "%11"), Overlap::Unknown);
    // Offsets are numbers modulo 2^32.
    assert_eq!(words(lines, "%9", "%12"), Overlap::Unknown);
}

#[test]
fn a_value_plus_constants_is_compared_with_itself() {
    let lines =
        "%10: b32 = const<0x4>\n%11: b32 = iadd %1, %10\n%12: b32 = iadd %11, %10\n%13: b32 = imul %1, %10";
    assert_eq!(words(lines, "%11", "%1"), Overlap::Disjoint);
    assert_eq!(words(lines, "%12", "%11"), Overlap::Disjoint);
    assert_eq!(words(lines, "%12", "%12"), Overlap::Unknown);
    // Another value may be anything.
    assert_eq!(words(lines, "%13", "%11"), Overlap::Unknown);
}

#[test]
fn multiples_of_a_power_of_two_are_compared_modulo_it() {
    let lines = "%10: b32 = const<0x3>\n%11: b32 = ishl %1, %10\n%12: b32 = const<0x10>\n%13: b32 = imul %1, %12\n\
                 %14: b32 = const<0x4>\n%15: b32 = iadd %13, %14\n%16: b32 = ior %11, %14";
    // 8·a against 16·b + 4, and against 8·a + 4.
    assert_eq!(words(lines, "%11", "%15"), Overlap::Disjoint);
    assert_eq!(words(lines, "%11", "%16"), Overlap::Disjoint);
    assert_eq!(words(lines, "%11", "%13"), Overlap::Unknown);
    // A pair of words reaches from 8·a to 8·a + 8.
    let wide = format!(
        "{lines}\n%40: b32x2 = load<storage align 4> %0, %11\n%41: b32 = load<storage align 4> %0, %15"
    );
    assert_eq!(overlap(&wide, false), Overlap::Unknown);
}

#[test]
fn spaces_are_apart_and_addresses_may_point_into_buffers() {
    let shared = "%40: b32 = load<storage align 4> %0, %9\n%41: b32 = load<shared align 4> %9";
    assert_eq!(overlap(shared, false), Overlap::Disjoint);
    let scratch = "%40: b32 = load<scratch align 4> %9\n%41: b32 = load<shared align 4> %9";
    assert_eq!(overlap(scratch, false), Overlap::Disjoint);
    let global =
        "%10: b64 = u2u %1\n%40: b32 = load<storage align 4> %0, %9\n%41: b32 = load<global align 4> %10";
    assert_eq!(overlap(global, false), Overlap::Unknown);
}

#[test]
fn descriptors_of_a_binding_may_be_one_buffer() {
    let lines = "%10: b32 = const<0x1>\n%11: handle = descriptor<r0> %10\n%12: b32 = const<0x8>\n\
                 %40: b32 = load<storage align 4> %0, %9\n%41: b32 = load<storage align 4> %11, %12";
    // Elements of an array of descriptors may be the same buffer at other offsets, restricted or not.
    assert_eq!(overlap(lines, false), Overlap::Unknown);
    assert_eq!(overlap(lines, true), Overlap::Unknown);
    // A descriptor that is made twice is one buffer.
    assert_eq!(overlap(&lines.replace("descriptor<r0> %10", "descriptor<r0> %9"), false), Overlap::Disjoint);
}

#[test]
fn restricted_bindings_are_other_buffers() {
    let body = "%40: b32 = load<storage align 4> %0, %9\n%41: b32 = load<storage align 4> %0, %9";
    let mut shader = shader(body);
    let mut other = shader.resources.values().next().expect("a binding").clone();
    other.binding = 1;
    let other = shader.resources.push(other);
    let func = shader.entry_mut();
    let second = func.walk().filter(|&inst| func.op(inst) == Op::Load).nth(1).expect("a load");
    let mut b = unwedge_shader::ir::Builder::before(func, second);
    let zero = b.u32(0);
    let payload = unwedge_shader::ir::Payload::Resource(other, Access::NONE);
    let handle = b.value(Op::Descriptor, payload, &[zero], unwedge_shader::ir::Type::HANDLE);
    func.args_mut(second)[0] = handle;
    let found = |shader: &Shader| {
        let ranges = ranges(shader);
        Aliases { func: shader.entry(), resources: &shader.resources }.overlap(&ranges[0], &ranges[1])
    };
    assert_eq!(found(&shader), Overlap::Unknown);
    shader.resources[other].access = Access::RESTRICT;
    assert_eq!(found(&shader), Overlap::Disjoint);
}
