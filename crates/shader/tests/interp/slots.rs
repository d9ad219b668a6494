//! Interface slots: what the caller gives, what shaders store, interpolation by coordinates of the caller.

use unwedge_shader::interp::{
    Bindings, InterfaceSlot, InvocationInput, InvocationOutput, NoImages, Options, RunError, VertexOutput,
    run_stage,
};
use unwedge_shader::ir::{InterpAt, Shader, Stage};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

fn run(stage: Stage, body: &str, inputs: Vec<InvocationInput>) -> Result<Vec<InvocationOutput>, RunError> {
    let mut head = Shader::default();
    head.info.stage = stage;
    let text = format!("{}fn f0 \"main\" () -> () {{\n{body}\nreturn\n}}\n", print(&head));
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    run_stage(&shader, inputs, &mut Bindings::default(), &mut NoImages, &Options::default()).map(|run| run.0)
}

fn slot(slot: u32) -> InterfaceSlot {
    InterfaceSlot { slot, ..InterfaceSlot::default() }
}

fn given(slots: &[(InterfaceSlot, [u32; 4])]) -> InvocationInput {
    let slots = slots.iter().map(|(slot, lanes)| (*slot, lanes.map(Some)));
    InvocationInput { slots: slots.collect(), ..InvocationInput::default() }
}

#[test]
fn slots_are_loaded_and_stored_by_component() {
    let body = "%0: b32 = const<0x1>\n%1: b32x2 = load_slot<in slot 3 count 2 component 1 index 0> %0\n\
                store_slot<out slot 5 count 2 component 2 index 0> %1, %0";
    let out = run(Stage::Vertex, body, vec![given(&[(slot(4), [1, 2, 3, 4])])]).expect("it runs");
    assert_eq!(out[0].slots.get(&slot(6)), Some(&[None, None, Some(2), Some(3)]));
    let out = run(Stage::Vertex, body, vec![InvocationInput::default()]).expect("it runs");
    assert_eq!(out[0].slots.get(&slot(6)), Some(&[None; 4]), "an absent slot is undefined");
}

#[test]
fn the_invocations_of_a_patch_share_outputs_and_vertices_take_theirs() {
    let body = "%0: b32 = const<0x0>\n%1: b32 = sysval<invocation_id>\nstore_slot<out slot 0 component 0 index 0 vertex> %1, %1, %0";
    let control = |id: u32| InvocationInput {
        system_values: [(unwedge_shader::ir::SystemValue::InvocationId, [id, 0, 0, 0])].into(),
        ..InvocationInput::default()
    };
    let out = run(Stage::TessControl, body, vec![control(0), control(1)]).expect("it runs");
    let vertex = |vertex| out[0].slots.get(&InterfaceSlot { vertex, ..slot(0) }).map(|lanes| lanes[0]);
    assert_eq!((vertex(0), vertex(1)), (Some(Some(0)), Some(Some(1))));
    let body = "%0: b32 = const<0x0>\n%1: b32 = const<0x7>\nstore_slot<out slot 1 component 0 index 0> %1, %0\n\
                emit_vertex<0>\nemit_vertex<0>";
    let out = run(Stage::Geometry, body, vec![InvocationInput::default()]).expect("it runs");
    let stored: Vec<bool> = out[0]
        .vertices
        .iter()
        .map(|vertex| matches!(vertex, VertexOutput::Vertex { slots, .. } if slots.contains_key(&slot(1))))
        .collect();
    assert_eq!(stored, [true, false]);
}

#[test]
fn attributes_are_interpolated_by_the_coordinates_of_the_caller() {
    let body = "%0: b32 = const<0x0>\n%1: b32x2 = barycentric<pixel>\n\
                %2: b32 = load_interpolated<in slot 0 component 0 index 0> %1, %0\nstore_slot<out slot 0 component 0 index 0> %2, %0";
    let vertex = |vertex, value: f32| (InterfaceSlot { vertex, ..slot(0) }, [value.to_bits(), 0, 0, 0]);
    let mut input = given(&[vertex(0, 1.0), vertex(1, 3.0), vertex(2, 9.0)]);
    input.barycentrics.insert((InterpAt::Pixel, false), [0.5f32.to_bits(), 0.25f32.to_bits()]);
    let out = run(Stage::Fragment, body, vec![input]).expect("it runs");
    assert_eq!(out[0].slots[&slot(0)][0], Some(4f32.to_bits()));
    let missing = run(Stage::Fragment, body, vec![InvocationInput::default()]);
    assert_eq!(missing, Err(RunError::Interpolation(InterpAt::Pixel)));
}
