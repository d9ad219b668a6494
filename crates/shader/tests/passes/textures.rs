//! Forms of image accesses, before and after they are lowered: the results are the same, and the form is gone.

use unwedge_shader::interp::{
    BindingPoint, Bindings, DepthCompare, ImageMemory, ImageShape, InvocationInput, MemoryImages, Options,
    Sampler, TexelFormat, run_stage,
};
use unwedge_shader::ir::{Dim, ImageFlags, Op, Payload, Shader, Stage, SystemValue};
use unwedge_shader::passes::{TextureOptions, lower_textures};
use unwedge_shader::text::{parse, print};
use unwedge_shader::valid::validate;

/// A stage whose output is %9, four lanes, and that has an image with its sampler as %0, a zero %1, and an attachment %2.
fn shader(stage: Stage, body: &str) -> Shader {
    let mut head = Shader::default();
    head.info.stage = stage;
    let text = format!(
        "{}type t0 = b32x4\nvar v0 \"\" output t0 location 0\n\
         resource r0 \"\" combined_image_sampler set 0 binding 0 count 1 size 0 dim 2d\n\
         resource r1 \"\" input_attachment set 0 binding 1 count 1 size 0 dim subpass\n\
         fn f0 \"main\" () -> () {{\n%1: b32 = const<0x0>\n%0: handle = descriptor<r0> %1\n\
         %2: handle = descriptor<r1> %1\n{body}\nstore_var<v0 mask 0xf> %9\nreturn\n}}\n",
        print(&head)
    );
    let mut shader = Shader::default();
    parse(&text, &mut shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    validate(&shader).unwrap_or_else(|e| panic!("{e}\n{text}"));
    shader
}

/// An image of floats, whose texels count from 0 in the order of memory.
fn image(shape: ImageShape) -> ImageMemory {
    let format = TexelFormat::parse("R32_SFLOAT").expect("a format");
    let mut image = ImageMemory::new(format, shape, 1 << 16).expect("an image");
    let count = image.bytes().len() / 4;
    let bytes: Vec<u8> = (0..count).flat_map(|texel| (texel as f32).to_le_bytes()).collect();
    assert!(image.set_bytes(&bytes));
    image
}

/// The output of the first invocation of a quad at (2.5, 1.5). References are greater or equal where they pass.
fn run(shader: &Shader, shape: ImageShape) -> Vec<Option<u64>> {
    let mut images = MemoryImages::default();
    images.images.push(image(shape));
    images.images.push(image(ImageShape::new(Dim::D2, [8, 4, 1])));
    for binding in 0..2 {
        images.views.insert(BindingPoint { set: 0, binding, index: 0 }, binding as usize);
    }
    let compare = Some(DepthCompare::GreaterEqual);
    let sampler =
        Sampler { mag_linear: true, min_linear: true, mip_linear: true, compare, ..Sampler::default() };
    images.samplers.insert(BindingPoint { set: 0, binding: 0, index: 0 }, sampler);
    let mut input = InvocationInput::default();
    let at = [2.5f32.to_bits(), 1.5f32.to_bits(), 0, 0];
    input.system_values.insert(SystemValue::FragCoord, at);
    input.system_values.insert(SystemValue::VertexIndex, [2, 0, 0, 0]);
    let run = run_stage(
        shader,
        vec![input; 4],
        &mut Bindings::default(),
        &mut images,
        &Options { subgroup_size: 4, ..Options::default() },
    );
    let (mut outputs, report) = run.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    assert!(report.findings.is_empty(), "{:?}\n{}", report.findings, print(shader));
    std::mem::take(&mut outputs[0].variables).into_values().next().expect("an output")
}

/// Lowers, and compares with the results before. Some access must match `is_lowered` then, and lowering again changes nothing.
fn check(stage: Stage, shape: ImageShape, body: &str, is_lowered: impl Fn(Op, Payload) -> bool) -> Vec<f32> {
    let before = shader(stage, body);
    let mut after = before.clone();
    assert!(lower_textures(&mut after, &TextureOptions::ALL), "nothing is lowered\n{body}");
    validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
    let func = after.entry();
    let lowered = func.walk().any(|inst| is_lowered(func.op(inst), func.payload(inst)));
    assert!(lowered, "{}", print(&after));
    let mut again = after.clone();
    assert!(
        !lower_textures(&mut again, &TextureOptions::ALL),
        "{}\nagain:\n{}",
        print(&after),
        print(&again)
    );
    let outputs = run(&before, shape);
    assert_eq!(outputs, run(&after, shape), "{}", print(&after));
    outputs.into_iter().map(|bits| f32::from_bits(bits.expect("a defined lane") as u32)).collect()
}

fn has(payload: Payload, flag: ImageFlags) -> bool {
    matches!(payload, Payload::Image(image) if image.flags.has(flag))
}

fn levels(width: u32, height: u32, levels: u32) -> ImageShape {
    ImageShape { levels, ..ImageShape::new(Dim::D2, [width, height, 1]) }
}

const COORDINATES: &str = "%10: b32 = const<0x3f000000>\n%11: b32x2 = vec %10, %10\n";

#[test]
fn sampling_without_derivatives_gets_its_level() {
    let explicit = |op, payload| op == Op::ImageSample && has(payload, ImageFlags::LOD);
    let plain = format!("{COORDINATES}%9: b32x4 = image_sample<2d> %0, %0, %11");
    // The mean of the four texels of level 0, and the texel of level 1.
    assert_eq!(check(Stage::Vertex, levels(2, 2, 2), &plain, explicit)[0], 1.5);
    let biased = format!(
        "{COORDINATES}%12: b32 = const<0x3f800000>\n%9: b32x4 = image_sample<2d flags bias> %0, %0, %11, %12"
    );
    assert_eq!(check(Stage::Vertex, levels(2, 2, 2), &biased, explicit)[0], 4.0);
    // The derivatives of a fragment shader stay.
    let mut fragment = shader(Stage::Fragment, &plain);
    let options = TextureOptions { subpasses: false, ..TextureOptions::ALL };
    assert!(!lower_textures(&mut fragment, &options), "{}", print(&fragment));
}

#[test]
fn a_level_is_given_in_one_way() {
    let cases = [
        (Stage::Fragment, "bias|lod", 2, "exclude each other"),
        (Stage::Fragment, "lod|min_lod", 2, "no least level"),
        (Stage::Vertex, "min_lod", 1, "a least level needs derivatives"),
    ];
    for (stage, flags, operands, reason) in cases {
        let text = |flags: &str, operands: usize| {
            let plain = shader(stage, &format!("{COORDINATES}%9: b32x4 = image_sample<2d> %0, %0, %11"));
            let access = format!("image_sample<2d flags {flags}>");
            let text = print(&plain).replace("image_sample<2d>", &access);
            let line = text.lines().find(|line| line.contains("image_sample<")).expect("an access");
            let constant = text.lines().find(|line| line.contains("const<0x3f000000>")).expect("a constant");
            let word = constant.trim().split(':').next().expect("a name");
            text.replace(line, &format!("{line}{}", format!(", {word}").repeat(operands)))
        };
        let mut parsed = Shader::default();
        parse(&text(flags, operands), &mut parsed)
            .unwrap_or_else(|e| panic!("{e}\n{}", text(flags, operands)));
        let error = validate(&parsed).expect_err(flags).to_string();
        assert!(error.contains(reason), "{flags}: {error}");
        parse(&text("lod", 1), &mut parsed).expect("a text");
        validate(&parsed).expect("a valid shader");
    }
}

#[test]
fn layers_are_rounded_to_even() {
    let shape = ImageShape { layers: 4, ..ImageShape::new(Dim::D2, [1, 1, 1]) };
    // 0.5 is layer 0, 1.5 and 2.5 are layer 2. Layers outside are clamped after they are rounded.
    for (layer, texel) in [(0.5f32, 0.0), (1.5, 2.0), (2.5, 2.0), (-0.5, 0.0), (-0.7, 0.0), (3.5, 3.0)] {
        let bits = layer.to_bits();
        let body = format!(
            "%10: b32 = const<0x3f000000>\n%11: b32 = const<{bits:#x}>\n%12: b32x3 = vec %10, %10, %11\n\
             %9: b32x4 = image_sample<2d flags lod|array> %0, %0, %12, %1"
        );
        let lowered = |op, _| op == Op::FRoundEven;
        assert_eq!(check(Stage::Fragment, shape, &body, lowered)[0], texel, "layer {layer}");
    }
}

/// Bits of a constant with a number.
fn float(number: u32, value: f32) -> String {
    format!("%{number}: b32 = const<{:#x}>\n", value.to_bits())
}

#[test]
fn comparisons_keep_their_reference() {
    let rounded = |op, _| op == Op::FRoundEven;
    let shape = ImageShape { layers: 3, ..ImageShape::new(Dim::D2, [2, 2, 1]) };
    let at = |layer: f32| format!("{}{}{}", float(10, 0.5), float(11, layer), float(12, 6.0));
    let sample = |layer: f32| {
        format!(
            "{}%13: b32x3 = vec %10, %10, %11\n%14: b32 = image_sample<2d flags dref|lod|array> %0, %0, %13, %12, %1\n\
             %9: b32x4 = vec %14, %14, %14, %14",
            at(layer)
        )
    };
    // Layer 1 has the texels 4 to 7, of which three are not greater than 6; layer 2 has the texels 8 to 11.
    assert_eq!(check(Stage::Fragment, shape, &sample(0.9), rounded)[0], 0.75);
    assert_eq!(check(Stage::Fragment, shape, &sample(1.5), rounded)[0], 0.0);
    let gather = format!(
        "{}%13: b32x3 = vec %10, %10, %11\n%9: b32x4 = image_gather<2d flags dref|array> %0, %0, %13, %12",
        at(0.6)
    );
    // The order is that of a gather: lower left, lower right, upper right, upper left.
    assert_eq!(check(Stage::Fragment, shape, &gather, rounded), [1.0, 0.0, 1.0, 1.0]);
    // Without derivatives the level comes after the reference.
    let level = format!(
        "{}%13: b32x2 = vec %10, %10\n%14: b32 = image_sample<2d flags dref> %0, %0, %13, %15\n%9: b32x4 = vec %14, %14, %14, %14",
        float(10, 0.5) + &float(15, 1.0)
    );
    let explicit = |op, payload| op == Op::ImageSample && has(payload, ImageFlags::DREF.or(ImageFlags::LOD));
    assert_eq!(check(Stage::Vertex, levels(2, 2, 1), &level, explicit)[0], 0.5);
}

#[test]
fn gathers_round_their_layer_and_get_no_level() {
    let shape = ImageShape { layers: 3, ..ImageShape::new(Dim::D2, [2, 2, 1]) };
    for (stage, layer, first) in [(Stage::Fragment, 1.5, 8.0), (Stage::Vertex, 0.4, 0.0)] {
        let body = format!(
            "{}%13: b32x3 = vec %10, %10, %11\n%9: b32x4 = image_gather<2d flags array component 0> %0, %0, %13",
            float(10, 0.5) + &float(11, layer)
        );
        let lowered = |op, payload| op == Op::ImageGather && !has(payload, ImageFlags::LOD);
        let texels = [2.0, 3.0, 1.0, 0.0].map(|texel| first + texel);
        assert_eq!(check(stage, shape, &body, lowered), texels, "layer {layer}");
    }
}

#[test]
fn arrays_of_cubes_have_their_layer_after_the_direction() {
    let shape = ImageShape { layers: 18, ..ImageShape::new(Dim::Cube, [1, 1, 1]) };
    let sample = |layer: f32, flags: &str, level: &str| {
        format!(
            "{}%13: b32x4 = vec %1, %1, %10, %11\n%9: b32x4 = image_sample<cube flags {flags}> %0, %0, %13{level}",
            float(10, 1.0) + &float(11, layer)
        )
    };
    let rounded = |op, _| op == Op::FRoundEven;
    // Face +Z is the fourth after the first one of its cube.
    for (layer, texel) in [(0.5, 4.0), (0.6, 10.0), (1.5, 16.0), (9.0, 16.0)] {
        let body = sample(layer, "lod|array", ", %1");
        assert_eq!(check(Stage::Fragment, shape, &body, rounded)[0], texel, "cube {layer}");
        assert_eq!(
            check(Stage::Vertex, shape, &sample(layer, "array", ""), rounded)[0],
            texel,
            "cube {layer}"
        );
    }
    let gather = format!(
        "{}%13: b32x4 = vec %1, %1, %10, %11\n%9: b32x4 = image_gather<cube flags array> %0, %0, %13",
        float(10, 1.0) + &float(11, 1.2)
    );
    // Face +Z of cube 1.
    let shape = ImageShape { size: [2, 2, 1], ..shape };
    assert_eq!(check(Stage::Fragment, shape, &gather, rounded), [42.0, 43.0, 41.0, 40.0]);
}

#[test]
fn sizes_of_cubes_halve_their_width_alone() {
    let body = "%10: b32 = sysval<vertex_index>\n%11: b32x3 = image_size<cube flags array> %0, %10\n\
                %12: b32 = extract<0> %11\n%14: b32 = extract<2> %11\n%15: b32 = u2f %12\n%17: b32 = u2f %14\n\
                %9: b32x4 = vec %15, %15, %17, %17";
    let shape = ImageShape { layers: 12, levels: 4, ..ImageShape::new(Dim::Cube, [8, 8, 1]) };
    assert_eq!(check(Stage::Vertex, shape, body, |op, _| op == Op::UMax)[..3], [2.0, 2.0, 2.0]);
}

/// The output of the first invocation of a fragment at (2.5, 1.5) that has a layer and a view. The attachment has two layers of 8x4.
fn attachment(shader: &Shader, layer: u32, view: u32) -> Option<u64> {
    let mut images = MemoryImages::default();
    images.images.push(image(ImageShape { layers: 2, ..ImageShape::new(Dim::D2, [8, 4, 1]) }));
    images.views.insert(BindingPoint { set: 0, binding: 1, index: 0 }, 0);
    let mut input = InvocationInput::default();
    let at = [2.5f32.to_bits(), 1.5f32.to_bits(), 0, 0];
    let given =
        [(SystemValue::FragCoord, at), (SystemValue::Layer, [layer; 4]), (SystemValue::ViewIndex, [view; 4])];
    input.system_values.extend(given);
    let (mut bindings, options) = (Bindings::default(), Options::default());
    let run = run_stage(shader, vec![input], &mut bindings, &mut images, &options);
    let (mut outputs, report) = run.unwrap_or_else(|e| panic!("{e}\n{}", print(shader)));
    assert!(report.findings.is_empty(), "{:?}\n{}", report.findings, print(shader));
    std::mem::take(&mut outputs[0].variables).into_values().next().expect("an output")[0]
}

#[test]
fn attachments_are_fetched_at_the_fragment() {
    let body = "%10: b32 = const<0x1>\n%11: b32x2 = vec %10, %10\n%9: b32x4 = image_fetch<subpass> %2, %11";
    let before = shader(Stage::Fragment, body);
    // Layer and view: with multiview all fragments are of layer 0, without it of view 0.
    for (multiview, layer, view) in [(false, 0, 0), (false, 1, 0), (true, 0, 1)] {
        let mut after = before.clone();
        assert!(lower_textures(&mut after, &TextureOptions { multiview, ..TextureOptions::ALL }));
        validate(&after).unwrap_or_else(|e| panic!("{e}\n{}", print(&after)));
        let func = after.entry();
        let wanted = ImageFlags::LOD.or(ImageFlags::ARRAY);
        let fetched =
            func.walk().filter(|&inst| func.op(inst) == Op::ImageFetch).map(|inst| func.payload(inst));
        let forms: Vec<bool> = fetched
            .map(|payload| matches!(payload, Payload::Image(image) if image.dim == Dim::D2 && image.flags.has(wanted)))
            .collect();
        assert_eq!(forms, [true]);
        assert!(!lower_textures(&mut after.clone(), &TextureOptions::ALL), "lowered twice");
        // Texel (2 + 1, 1 + 1) of 8x4.
        let texel = (19 + 32 * (layer + view)) as f32;
        for shader in [&before, &after] {
            assert_eq!(attachment(shader, layer, view), Some(texel.to_bits().into()), "{}", print(shader));
        }
    }
}

#[test]
fn sizes_are_those_of_level_0() {
    let body = "%10: b32 = sysval<vertex_index>\n%11: b32x3 = image_size<2d flags array> %0, %10\n\
                %12: b32 = extract<0> %11\n%13: b32 = extract<1> %11\n%14: b32 = extract<2> %11\n\
                %15: b32 = u2f %12\n%16: b32 = u2f %13\n%17: b32 = u2f %14\n%9: b32x4 = vec %15, %16, %17, %17";
    let shape = ImageShape { layers: 3, ..levels(9, 2, 4) };
    let lowered = |op, _| op == Op::UMax;
    assert_eq!(check(Stage::Vertex, shape, body, lowered)[..3], [2.0, 1.0, 3.0]);
}
