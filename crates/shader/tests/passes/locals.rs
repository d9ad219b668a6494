//! Local variables in scratch memory, and outputs that become local variables.

use unwedge_shader::interp::{
    BindingPoint, Bindings, Dispatch, InvocationInput, NoImages, Options, VertexOutput, run_compute,
    run_stage,
};
use unwedge_shader::ir::{Op, Shader, Stage, SystemValue};
use unwedge_shader::passes::{lower_locals, lower_outputs, pass};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

/// The types b32, b32x4, b1, arrays of three of each, b32x3, and a struct of a boolean and an array of two b32x3.
const TYPES: &str = "type t0 = b32\ntype t1 = b32x4\ntype t2 = b1\ntype t3 = [3 t0]\ntype t4 = [3 t1]\n\
                     type t5 = [3 t2]\ntype t6 = b32x3\ntype t7 = [2 t6]\ntype t8 = (t2, t7)\ntype t9 = [2 t8]\n";

fn shader(stage: Stage, vars: &str, body: &str) -> Shader {
    let mut head = Shader::default();
    head.info.stage = stage;
    head.info.workgroup_size = [4, 1, 1];
    head.info.scratch_size = 20;
    let text = format!("{}{TYPES}{vars}fn f0 \"main\" () -> () {{\n{body}\nreturn\n}}\n", print(&head));
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

fn count(shader: &Shader, ops: &[Op]) -> usize {
    let func = shader.entry();
    func.walk().filter(|&inst| ops.contains(&func.op(inst))).count()
}

/// The words that four invocations store, and whether something undefined happened. %0 is the buffer, %1 the invocation, and %99 what is
/// stored.
fn stored(shader: &Shader) -> (Vec<u32>, bool) {
    let mut bindings = Bindings::default();
    bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0xff; 16]);
    let options = Options { subgroup_size: 4, ..Options::default() };
    let report = run_compute(shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut NoImages, &options);
    let report = report.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    let words = bindings.memory[0].chunks_exact(4);
    let words = words.map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect();
    (words, !report.findings.is_empty())
}

/// Lowers the variables of a compute shader, and compares with the results before.
fn lowered(vars: &str, body: &str) -> (Shader, Vec<u32>) {
    let vars = format!("{vars}resource r0 \"\" storage_buffer set 0 binding 0 count 1 size 0 dim buffer\n");
    let body = format!(
        "%1: b32 = sysval<local_invocation_index>\n%2: b32 = const<0x0>\n%3: b32 = const<0x1>\n%4: b32 = const<0x2>\n\
         %0: handle = descriptor<r0> %2\n%5: b32 = ishl %1, %4\n{body}\nstore<storage align 4> %99, %0, %5"
    );
    let before = shader(Stage::Compute, &vars, &body);
    let mut after = before.clone();
    assert!(lower_locals(&mut after));
    validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
    assert_eq!(count(&after, &[Op::LoadVar, Op::StoreVar]), 0, "{}", print(&after));
    let (words, _) = stored(&before);
    assert_eq!((words.clone(), false), stored(&after), "{}", print(&after));
    (after, words)
}

#[test]
fn elements_that_a_value_chooses_are_in_scratch_memory() {
    // A store past the end does nothing: invocation 3 reads what the others do not overwrite.
    let body = "%6: b32 = const<0x64>\nstore_var<v0 mask 0x1> %6, %2\nstore_var<v0 mask 0x1> %6, %3\n\
                store_var<v0 mask 0x1> %6, %4\nstore_var<v0 mask 0x1> %1, %1\n%7: b32 = imin %1, %4\n\
                %99: b32 = load_var<v0 mask 0x0> %7";
    let (shader, words) = lowered("var v0 \"\" function t3\n", body);
    assert_eq!(words, [0, 1, 2, 100]);
    // After the 20 bytes that the shader has, at a multiple of 16.
    assert_eq!(shader.info.scratch_size, 32 + 12);
}

#[test]
fn booleans_structs_and_masks_keep_their_meaning() {
    let booleans = "%6: b1 = ieq %1, %3\n%7: b1 = ine %1, %3\nstore_var<v0 mask 0x1> %6, %2\nstore_var<v0 mask 0x1> %7, %3\n\
                    %8: b32 = iand %1, %3\n%9: b1 = load_var<v0 mask 0x0> %8\n%99: b32 = select %9, %4, %3";
    assert_eq!(lowered("var v0 \"\" private t5\n", booleans).1, [1, 1, 1, 2]);
    // Lanes 0 and 2 of a vector of three are stored a second time.
    let masks = "%6: b32x3 = vec %1, %1, %1\n%7: b32x3 = vec %4, %4, %4\n%8: b32 = iand %1, %3\n\
                 store_var<v0 mask 0x7> %6, %3, %3, %8\nstore_var<v0 mask 0x5> %7, %3, %3, %8\n\
                 %9: b32x3 = load_var<v0 mask 0x0> %3, %3, %8\n%10: b32 = extract<0> %9\n%11: b32 = extract<1> %9\n\
                 %12: b32 = extract<2> %9\n%13: b32 = imul %10, %12\n%14: b32 = ishl %13, %4\n%99: b32 = iadd %14, %11";
    let (shader, words) = lowered("var v0 \"\" private t9\n", masks);
    assert_eq!(words, [16, 17, 18, 19]);
    // A boolean and two vectors of three words, twice.
    assert_eq!(shader.info.scratch_size, 32 + 2 * 28);
}

#[test]
fn variables_that_do_not_fit_stay() {
    let vars = "type t10 = [16385 t0]\nvar v0 \"\" private t10\n";
    let body = "%1: b32 = sysval<local_invocation_index>\nstore_var<v0 mask 0x1> %1, %1";
    let mut large = shader(Stage::Compute, vars, body);
    assert!(!lower_locals(&mut large));
    assert_eq!((large.info.scratch_size, count(&large, &[Op::StoreVar])), (20, 1));
}

/// The lanes of the first output of each invocation, and of each vertex.
fn outputs(shader: &Shader) -> (Vec<Vec<Option<u64>>>, Vec<Vec<Option<u64>>>) {
    let input = |number: u32| {
        let mut input = InvocationInput::default();
        for value in [SystemValue::VertexIndex, SystemValue::InvocationId, SystemValue::SampleId] {
            input.system_values.insert(value, [number, 0, 0, 0]);
        }
        input
    };
    let inputs = (0..2).map(input).collect();
    let options = Options { subgroup_size: 4, ..Options::default() };
    let run = run_stage(shader, inputs, &mut Bindings::default(), &mut NoImages, &options);
    let (outputs, report) = run.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    assert!(report.findings.is_empty(), "{:?}\n{}", report.findings, print(shader));
    let first = |variables: &std::collections::BTreeMap<_, Vec<Option<u64>>>| {
        variables.values().next().cloned().unwrap_or_default()
    };
    let vertices = outputs.iter().flat_map(|output| &output.vertices).filter_map(|vertex| match vertex {
        VertexOutput::Vertex { variables, .. } => Some(first(variables)),
        VertexOutput::EndPrimitive { .. } => None,
    });
    let vertices = vertices.collect();
    (outputs.iter().map(|output| first(&output.variables)).collect(), vertices)
}

#[test]
fn outputs_that_are_loaded_or_indexed_are_stored_at_the_end() {
    let vars = "var v0 \"\" output t3 location 0\nvar v1 \"\" output t0 location 4\n";
    let body = "%1: b32 = sysval<vertex_index>\n%2: b32 = const<0x7>\n%3: b32 = const<0x2>\n\
                store_var<v0 mask 0x1> %2, %1\n%4: b32 = load_var<v0 mask 0x0> %1\n%5: b32 = iadd %4, %2\n\
                store_var<v0 mask 0x1> %5, %3\nstore_var<v1 mask 0x1> %1";
    let before = shader(Stage::Vertex, vars, body);
    let mut after = before.clone();
    assert!(lower_outputs(&mut after));
    validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
    assert!(!lower_outputs(&mut after.clone()), "lowered twice");
    assert_eq!(outputs(&before), outputs(&after), "{}", print(&after));
    assert_eq!(outputs(&after).0, [[Some(7), None, Some(14)], [None, Some(7), Some(14)]]);
    // Three elements, and the output that was stored already.
    let stores = |text: &str| {
        text.lines().filter(|line| line.contains("store_var<v0") || line.contains("store_var<v1")).count()
    };
    assert_eq!(stores(&print(&after)), 4, "{}", print(&after));
    // What is left as a variable is indexed by values, and moves to scratch memory.
    assert!((pass("variables").expect("a pass").run)(&mut after) | lower_locals(&mut after));
    validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
    assert_eq!(outputs(&before), outputs(&after), "{}", print(&after));
    assert_eq!(after.info.scratch_size, 32 + 12);
}

#[test]
fn only_lanes_that_are_stored_are_written() {
    let vars = "var v0 \"\" output t4 location 0\n";
    let body = "%1: b32 = sysval<vertex_index>\n%2: b32x4 = vec %1, %1, %1, %1\n%3: b32 = const<0x1>\n\
                store_var<v0 mask 0x6> %2, %3\n%4: b32x4 = load_var<v0 mask 0x0> %3\nstore_var<v0 mask 0x1> %4, %3";
    let mut shader = shader(Stage::Vertex, vars, body);
    assert!(lower_outputs(&mut shader));
    let text = print(&shader);
    let stores: Vec<&str> = text.lines().filter(|line| line.contains("store_var<v0")).collect();
    assert!(matches!(stores[..], [store] if store.contains("mask 0x7")), "{text}");
}

#[test]
fn outputs_of_a_geometry_shader_are_stored_before_each_vertex() {
    let vars = "var v0 \"\" output t3 location 0\n";
    let body = "%1: b32 = sysval<invocation_id>\n%2: b32 = const<0x7>\nstore_var<v0 mask 0x1> %2, %1\nemit_vertex<0>\n\
                store_var<v0 mask 0x1> %1, %1\nemit_vertex<0>\nend_primitive<0>";
    let before = shader(Stage::Geometry, vars, body);
    let mut after = before.clone();
    assert!(lower_outputs(&mut after));
    validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
    let wanted = [[Some(7), None, None], [Some(0), None, None], [None, Some(7), None], [None, Some(1), None]];
    assert_eq!(outputs(&before).1, wanted);
    assert_eq!(outputs(&after).1, wanted, "{}", print(&after));
}

#[test]
fn shared_and_large_outputs_stay() {
    let body =
        "%1: b32 = sysval<invocation_id>\n%2: b32 = load_var<v0 mask 0x0> %1\nstore_var<v0 mask 0x1> %2, %1";
    let stays = |stage: Stage, vars: &str| {
        let mut shader = shader(stage, vars, body);
        let text = print(&shader);
        assert!(!lower_outputs(&mut shader), "{text}");
        assert_eq!(print(&shader), text);
    };
    stays(Stage::TessControl, "var v0 \"\" output t3 location 0 flags patch\n");
    stays(Stage::Vertex, "type t10 = [257 t0]\nvar v0 \"\" output t10 location 0\n");
}
