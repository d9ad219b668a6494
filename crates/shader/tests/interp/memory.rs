//! Memory, variables, atomics, and the other stages.

use super::support::{run, shader, violations};
use unwedge_shader::interp::{Bindings, InvocationInput, NoImages, Options, Violation, run_stage};
use unwedge_shader::ir::{Base, Shader, Space, Stage, Storage, SystemValue, Type, TypeNode};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

#[test]
fn every_space_holds_what_was_stored() {
    let text = "%10: b32 = const<0x4>\n%11: b32 = const<0x8>\n%12: b16 = const<0xbeef>\n\
                store<scratch align 2> %12, %10\n%13: b16 = load<scratch align 2> %10\n%14: b32 = u2u %13\n\
                store<storage align 4> %14, %0, %900\nstore<shared align 4> %14, %11\n\
                %15: b8x2 = load<shared align 1> %11\n%16: b8 = extract<1> %15\n%17: b32 = u2u %16\n\
                store<storage align 4> %17, %0, %10\n%18: b32 = load<push align 4> %11\n\
                store<storage align 4> %18, %0, %11\n%19: b32 = buffer_size %0\n%20: b32 = const<0xc>\n\
                store<storage align 4> %19, %0, %20";
    let (words, findings) = run(&shader(1, text), &[0; 4]);
    assert_eq!(findings, []);
    assert_eq!(words, [0xbeef, 0xbe, 0x0b0a_0908, 16]);
}

#[test]
fn accesses_out_of_bounds_are_reported_lane_by_lane() {
    // Of two lanes at byte 4 the second one is past the end.
    let text = "%10: b32 = const<0x4>\n%11: b32 = const<0x7>\n%12: b32x2 = vec %11, %11\n\
                store<storage align 4> %12, %0, %10";
    let (words, findings) = run(&shader(1, text), &[1, 2]);
    assert_eq!((words, violations(&findings)), (vec![1, 7], vec![Violation::OutOfBounds(Space::Storage)]));
    let load = "%10: b32 = const<0x8>\n%11: b32 = load<storage align 4> %0, %10\nstore<storage align 4> %11, %0, %900";
    let (_, findings) = run(&shader(1, load), &[1, 2]);
    assert_eq!(violations(&findings), [Violation::OutOfBounds(Space::Storage), Violation::PoisonStore]);
    let unwritten = "%10: b32 = load<shared align 4> %900\nstore<storage align 4> %10, %0, %900";
    assert_eq!(violations(&run(&shader(1, unwritten), &[1]).1), [Violation::PoisonStore]);
    let odd = "%10: b32 = const<0x2>\n%11: b32 = load<storage align 4> %0, %10";
    assert_eq!(violations(&run(&shader(1, odd), &[1, 2]).1), [Violation::Misaligned]);
    let undefined = "%10: b32 = undef\nstore<storage align 4> %1, %0, %10";
    assert_eq!(violations(&run(&shader(1, undefined), &[1, 2]).1), [Violation::PoisonAddress]);
    let unbound =
        "%10: b32 = const<0x1>\n%11: handle = descriptor<r0> %10\nstore<storage align 4> %1, %11, %900";
    assert_eq!(violations(&run(&shader(1, unbound), &[1, 2]).1), [Violation::Unbound]);
}

#[test]
fn two_invocations_that_store_to_one_word_race() {
    let text = "store<storage align 4> %1, %0, %900";
    assert_eq!(violations(&run(&shader(2, text), &[0]).1), [Violation::Race(Space::Storage)]);
    // Bytes of one word are different bytes.
    let bytes = "%10: b8 = u2u %1\nstore<storage align 1> %10, %0, %1";
    let (words, findings) = run(&shader(4, bytes), &[0]);
    assert_eq!((words, findings), (vec![0x0302_0100], vec![]));
    // Reads do not race with each other.
    let reads = "%10: b32 = load<storage align 4> %0, %900";
    assert_eq!(run(&shader(8, reads), &[0]).1, []);
    let atomics = "%10: b32 = const<0x1>\n%11: b32 = atomic<add storage align 4> %10, %0, %900";
    assert_eq!(run(&shader(20, atomics), &[5]), (vec![25], vec![]));
}

#[test]
fn atomics_read_compute_and_write() {
    let cases: &[(&str, u32, u32, u32)] = &[
        ("add", 5, 7, 12),
        ("imin", 5, 0xffff_ffff, 0xffff_ffff),
        ("imax", 5, 0xffff_ffff, 5),
        ("umin", 5, 0xffff_ffff, 5),
        ("umax", 5, 0xffff_ffff, 0xffff_ffff),
        ("and", 0xc, 0xa, 8),
        ("or", 0xc, 0xa, 0xe),
        ("xor", 0xc, 0xa, 6),
        ("exchange", 5, 7, 7),
        ("fadd", 0x3f80_0000, 0x3f80_0000, 0x4000_0000),
        ("fmin", 0x3f80_0000, 0x4000_0000, 0x3f80_0000),
        ("fmax", 0x3f80_0000, 0x4000_0000, 0x4000_0000),
    ];
    for &(op, old, operand, new) in cases {
        let text = format!(
            "%10: b32 = const<{operand:#x}>\n%11: b32 = atomic<{op} storage align 4> %10, %0, %900\n\
             %12: b32 = const<0x4>\nstore<storage align 4> %11, %0, %12"
        );
        assert_eq!(run(&shader(1, &text), &[old, 0]), (vec![new, old], vec![]), "{op}");
    }
    for (compared, new) in [(5, 9), (6, 5)] {
        let text = format!(
            "%10: b32 = const<0x9>\n%11: b32 = const<{compared:#x}>\n\
             %12: b32 = atomic_compare<exchange storage align 4> %10, %11, %0, %900\n%13: b32 = const<0x4>\n\
             store<storage align 4> %12, %0, %13"
        );
        assert_eq!(run(&shader(1, &text), &[5, 0]), (vec![new, 5], vec![]));
    }
}

/// Adds a private variable `[3 b32x2]` to a shader of the text form that was made without variables.
fn with_variable(body: &str, storage: &str) -> Shader {
    let base = print(&shader(4, ""));
    let (head, function) = base.split_once("resource").expect("a resource");
    let (resource, _) = function.split_once("fn f0").expect("a function");
    let start =
        "%900: b32 = const<0x0>\n%0: handle = descriptor<r0> %900\n%1: b32 = sysval<local_invocation_index>";
    let text = format!(
        "{head}type t0 = b32x2\ntype t1 = [3 t0]\nvar v0 \"a\" {storage} t1\nresource{resource}fn f0 \"main\" () -> () {{\n\
         {start}\n{body}\nreturn\n}}\n"
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

#[test]
fn variables_keep_lanes_and_know_their_ends() {
    // Lane 1 of element `index & 1` is stored; the lane that is not stays undefined.
    let text = "%10: b32 = const<0x1>\n%11: b32 = iand %1, %10\n%12: b32x2 = vec %1, %1\n\
                store_var<v0 mask 0x2> %12, %11\n%13: b32x2 = load_var<v0 mask 0x0> %11\n%14: b32 = extract<1> %13\n\
                %15: b32 = const<0x4>\n%16: b32 = imul %1, %15\nstore<storage align 4> %14, %0, %16";
    let (words, findings) = run(&with_variable(text, "private"), &[9; 4]);
    assert_eq!((words, findings), (vec![0, 1, 2, 3], vec![]));
    let other = text.replace("extract<1> %13", "extract<0> %13");
    assert_eq!(violations(&run(&with_variable(&other, "private"), &[9; 4]).1), [Violation::PoisonStore]);
    let past = "%11: b32x2 = load_var<v0 mask 0x0> %1";
    assert_eq!(violations(&run(&with_variable(past, "private"), &[9; 4]).1), [Violation::IndexOutOfBounds]);
}

#[test]
fn a_stage_takes_inputs_and_returns_outputs() {
    let mut shader = Shader::default();
    let text = "shader fragment \"main\"\nworkgroup_size 1 1 1\nsizes shared 0 scratch 0 push 0\nfloats 16 nearest any\n\
                floats 32 nearest any\nfloats 64 nearest any\ntype t0 = b32\nvar v0 \"in\" input t0 location 0\n\
                var v1 \"out\" output t0 location 0\nfn f0 \"main\" () -> () {\n%0: b32 = load_var<v0 mask 0x0>\n\
                %1: b32 = ddx %0\n%2: b32x4 = sysval<frag_coord>\n%3: b32 = extract<0> %2\n%4: b32 = fadd %1, %3\n\
                store_var<v1 mask 0x1> %4\n%5: b32 = const<0x3f800000>\n%6: b1 = feq %0, %5\nif<L0> %6 {\ndemote\n\
                break<L0>\n} else {\nbreak<L0>\n}\nreturn\n}\n";
    parse(text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).expect("a valid shader");
    assert_eq!(shader.info.stage, Stage::Fragment);
    let (mut vars, one) = (shader.vars.keys(), 1f32.to_bits());
    let (input, output) = (vars.next().expect("an input"), vars.next().expect("an output"));
    assert_eq!(shader.vars[output].storage, Storage::Output);
    let quad: Vec<InvocationInput> = (0..4u8)
        .map(|number| InvocationInput {
            system_values: [(SystemValue::FragCoord, [one, 0, 0, 0])].into(),
            variables: [(input, vec![Some(f32::from(number).to_bits().into())])].into(),
            ..InvocationInput::default()
        })
        .collect();
    let run = run_stage(&shader, quad, &mut Bindings::default(), &mut NoImages, &Options::default());
    let (outputs, report) = run.expect("it runs to its end");
    assert_eq!(report.findings, []);
    let helpers: Vec<bool> = outputs.iter().map(|output| output.helper).collect();
    assert_eq!(helpers, [false, true, false, false]);
    for invocation in outputs {
        assert_eq!(invocation.variables[&output], [Some(2f32.to_bits().into())]);
    }
    assert_eq!(shader.types.values().next(), Some(&TypeNode::Leaf(Type::scalar(Base::B32))));
}
