//! Sampling: filters, levels, edges, cubes, arrays, gathers and comparisons, against values that follow from the specification.

use super::support::shader;
use unwedge_shader::interp::{
    BindingPoint, Bindings, DepthCompare, Dispatch, ImageMemory, ImageShape, MemoryImages, Options,
    Reduction, Sampler, TexelFormat, Violation, Wrap, run_compute,
};
use unwedge_shader::ir::{Dim, Shader};
use unwedge_shader::passes::lower_nonuniform;
use unwedge_shader::valid::validate;

/// The combined image and sampler.
const POINT: BindingPoint = BindingPoint { set: 0, binding: 2, index: 0 };

/// An image of floats with these texels, level after level.
fn image(shape: ImageShape, texels: &[f32]) -> ImageMemory {
    let format = TexelFormat::parse("R32_SFLOAT").expect("a format");
    let mut image = ImageMemory::new(format, shape, 1 << 16).expect("an image");
    let bytes: Vec<u8> = texels.iter().flat_map(|texel| texel.to_le_bytes()).collect();
    assert!(image.set_bytes(&bytes), "the image does not have {} texels", texels.len());
    image
}

fn flat(width: u32, height: u32) -> ImageShape {
    ImageShape::new(Dim::D2, [width, height, 1])
}

/// A sampler that filters by four texels and two levels.
fn linear() -> Sampler {
    Sampler { mag_linear: true, min_linear: true, mip_linear: true, ..Sampler::default() }
}

/// The text of a body. Its lines may have floats as `{0.5}`.
fn with_floats(body: &str) -> String {
    let mut text = String::new();
    let mut next = 810;
    for line in body.lines() {
        let mut line = line.to_owned();
        while let Some((before, rest)) = line.split_once('{') {
            // Other braces are those of regions.
            let Some((number, after)) = rest.split_once('}') else { break };
            let Ok(number) = number.parse::<f32>() else { break };
            let bits = number.to_bits();
            text.push_str(&format!("%{next}: b32 = const<{bits:#x}>\n"));
            line = format!("{before}%{next}{after}");
            next += 1;
        }
        text.push_str(&line);
        text.push('\n');
    }
    text
}

/// A shader that stores the lanes of %700 after a body, in which %2 is the image.
fn sampling(body: &str) -> Shader {
    let start = "%2: handle = descriptor<r2> %900\n%800: b32 = const<0x10>\n%801: b32 = imul %1, %800\n";
    shader(4, &format!("{start}{}store<storage align 4> %700, %0, %801\n", with_floats(body)))
}

/// The first lanes of what the four invocations of a quad store, with images at the elements of the binding.
fn stored(shader: &Shader, elements: Vec<ImageMemory>, sampler: Sampler, lanes: usize) -> [Vec<f32>; 4] {
    let mut images = MemoryImages::default();
    for (index, image) in elements.into_iter().enumerate() {
        let point = BindingPoint { index: index as u32, ..POINT };
        images.images.push(image);
        images.views.insert(point, index);
        images.samplers.insert(point, sampler);
    }
    let mut bindings = Bindings::default();
    let memory = bindings.bind(BindingPoint { set: 0, binding: 0, index: 0 }, vec![0; 64]);
    let options = Options { subgroup_size: 4, ..Options::default() };
    let report = run_compute(shader, Dispatch::new([1, 1, 1]), &mut bindings, &mut images, &options);
    let undefined = |violation: Violation| violation == Violation::PoisonStore;
    let poison = report.expect("it runs").findings.iter().any(|finding| undefined(finding.violation));
    let words: Vec<f32> = bindings.memory[memory]
        .chunks_exact(4)
        .map(|word| if poison { f32::NAN } else { f32::from_le_bytes([word[0], word[1], word[2], word[3]]) })
        .collect();
    [0, 4, 8, 12].map(|at| words[at..at + lanes].to_vec())
}

/// The first lanes of %700 after a body, in the four invocations of a quad.
fn run(image: ImageMemory, sampler: Sampler, lanes: usize, body: &str) -> [Vec<f32>; 4] {
    stored(&sampling(body), vec![image], sampler, lanes)
}

/// The first lane of one invocation.
fn one(image: ImageMemory, sampler: Sampler, body: &str) -> f32 {
    run(image, sampler, 1, &format!("{body}\n%700: b32 = extract<0> %699"))[0][0]
}

fn at(u: f32, v: f32) -> String {
    format!(
        "%600: b32x2 = vec {{{u}}}, {{{v}}}\n%699: b32x4 = image_sample<2d flags lod> %2, %2, %600, {{0}}"
    )
}

#[test]
fn filters_and_edges() {
    let four = || image(flat(2, 2), &[1.0, 2.0, 3.0, 4.0]);
    let wrap = |wrap| Sampler { wrap: [wrap; 3], ..Sampler::default() };
    assert_eq!(one(four(), Sampler::default(), &at(0.25, 0.75)), 3.0);
    assert_eq!(one(four(), linear(), &at(0.5, 0.5)), 2.5);
    assert_eq!(one(four(), linear(), &at(0.375, 0.25)), 1.25);
    assert_eq!(one(four(), wrap(Wrap::ClampToEdge), &at(-3.0, 7.0)), 3.0);
    assert_eq!(one(four(), wrap(Wrap::Repeat), &at(1.25, -0.25)), 3.0);
    assert_eq!(one(four(), wrap(Wrap::MirroredRepeat), &at(1.25, 0.25)), 2.0);
    assert_eq!(one(four(), wrap(Wrap::MirroredRepeat), &at(-0.75, 0.25)), 2.0);
    assert_eq!(one(four(), wrap(Wrap::MirrorClampToEdge), &at(-0.25, 0.25)), 1.0);
    assert_eq!(one(four(), wrap(Wrap::MirrorClampToEdge), &at(5.0, 0.25)), 2.0);
    let border = Sampler { border: [u64::from(9f32.to_bits()); 4], ..wrap(Wrap::ClampToBorder) };
    assert_eq!(one(four(), border, &at(1.5, 0.25)), 9.0);
    let half = Sampler { mag_linear: true, ..border };
    assert_eq!(one(four(), half, &at(1.0, 0.25)), 5.5, "half of the texel 2, half of the border");
    let texels = Sampler { unnormalized: true, ..Sampler::default() };
    assert_eq!(one(four(), texels, &at(1.5, 1.5)), 4.0);
    for (reduction, expected) in [(Reduction::Min, 1.0), (Reduction::Max, 4.0)] {
        assert_eq!(one(four(), Sampler { reduction, ..linear() }, &at(0.5, 0.5)), expected);
    }
    let offset = "%600: b32x2 = vec {0.25}, {0.25}\n%601: b32 = const<0x1>\n%602: b32x2 = vec %601, %900\n\
                  %699: b32x4 = image_sample<2d flags lod|offset> %2, %2, %600, {0}, %602";
    assert_eq!(one(four(), Sampler::default(), offset), 2.0);
}

/// Levels of 4x4, 2x2 and 1x1 texels: 10, 20 and 30.
fn pyramid() -> ImageMemory {
    let texels: Vec<f32> = [(16, 10.0), (4, 20.0), (1, 30.0)].iter().flat_map(|&(n, v)| vec![v; n]).collect();
    image(ImageShape { levels: 3, ..flat(4, 4) }, &texels)
}

fn level(lod: f32) -> String {
    format!(
        "%600: b32x2 = vec {{0.5}}, {{0.5}}\n%699: b32x4 = image_sample<2d flags lod> %2, %2, %600, {{{lod}}}"
    )
}

#[test]
fn levels() {
    assert_eq!(one(pyramid(), linear(), &level(0.5)), 15.0);
    assert_eq!(one(pyramid(), linear(), &level(1.25)), 22.5);
    assert_eq!(one(pyramid(), linear(), &level(9.0)), 30.0);
    let nearest = Sampler { mip_linear: false, ..linear() };
    assert_eq!(one(pyramid(), nearest, &level(0.5)), 10.0, "a half rounds down");
    assert_eq!(one(pyramid(), nearest, &level(0.75)), 20.0);
    assert_eq!(one(pyramid(), Sampler { bias: 1.0, ..linear() }, &level(0.0)), 20.0);
    assert_eq!(one(pyramid(), Sampler { min_lod: 1.0, ..linear() }, &level(0.0)), 20.0);
    assert_eq!(one(pyramid(), Sampler { max_lod: 1.0, ..linear() }, &level(2.0)), 20.0);
}

/// Coordinates of a quad: `step` to the right, and below.
fn quad(step: f32) -> String {
    format!(
        "%500: b32 = const<0x1>\n%501: b32 = iand %1, %500\n%502: b32 = ushr %1, %500\n%503: b32 = u2f %501\n\
         %504: b32 = u2f %502\n%505: b32 = fmul %503, {{{step}}}\n%506: b32 = fmul %504, {{{step}}}\n\
         %600: b32x2 = vec %505, %506\n"
    )
}

#[test]
fn derivatives_within_a_quad_choose_the_level() {
    let sampled = |step: f32, rest: &str| one(pyramid(), linear(), &format!("{}{rest}", quad(step)));
    let implicit = "%699: b32x4 = image_sample<2d> %2, %2, %600";
    assert_eq!(sampled(0.25, implicit), 10.0, "a texel for each invocation");
    assert_eq!(sampled(0.5, implicit), 20.0, "two texels");
    assert_eq!(sampled(1.0, implicit), 30.0, "four texels");
    assert_eq!(sampled(0.25, "%699: b32x4 = image_sample<2d flags bias> %2, %2, %600, {1}"), 20.0);
    assert_eq!(sampled(0.25, "%699: b32x4 = image_sample<2d flags min_lod> %2, %2, %600, {2}"), 30.0);
    let gradient = "%601: b32x2 = vec {0.5}, {0}\n%602: b32x2 = vec {0}, {0}\n\
                    %699: b32x4 = image_sample<2d flags grad> %2, %2, %600, %601, %602";
    assert_eq!(sampled(0.0, gradient), 20.0);
    let query = format!("{}%700: b32x2 = image_query_lod<2d> %2, %2, %600", quad(0.5));
    assert_eq!(run(pyramid(), linear(), 2, &query)[3], [1.0, 1.0]);
    // Invocations 1 and 3 are not active, so 0 and 2 have no derivatives in x, and sampling is undefined.
    let alone = format!(
        "{}%507: b1 = ieq %501, %900\n%699: b32x4 = if<L0> %507 {{\n\
         %691: b32x4 = image_sample<2d> %2, %2, %600\nbreak<L0> %691\n}} else {{\n\
         %690: b32x4 = vec %505, %505, %505, %505\nbreak<L0> %690\n}}",
        quad(0.5)
    );
    assert!(one(pyramid(), linear(), &alone).is_nan());
    assert_eq!(one(image(flat(1, 1), &[7.0]), linear(), &alone), 7.0, "the level does not matter");
}

/// Invocations of a quad sample two images. They are in different iterations of the loops that the lowering makes, but sample the level of detail of their quad.
#[test]
fn images_by_indices_that_differ_have_the_levels_of_the_quad() {
    let other =
        || image(ImageShape { levels: 3, ..flat(4, 4) }, &[&[1.0; 16][..], &[2.0; 4], &[3.0]].concat());
    let accesses = [
        ("%699: b32x4 = image_sample<2d> %3, %3, %600", 0.5, [20.0, 2.0]),
        ("%699: b32x4 = image_sample<2d flags bias> %3, %3, %600, {1}", 0.25, [20.0, 2.0]),
        ("%699: b32x4 = image_sample<2d flags min_lod> %3, %3, %600, {2}", 0.25, [30.0, 3.0]),
        ("%699: b32x4 = image_sample<2d flags lod> %3, %3, %600, {1}", 0.25, [20.0, 2.0]),
    ];
    for (access, step, [even, odd]) in accesses {
        let body = format!(
            "{}%3: handle = descriptor<r2 access nonuniform> %501\n{access}\n%700: b32 = extract<0> %699",
            quad(step)
        );
        let mut shader = sampling(&body);
        let image = shader.resources.keys().nth(2).expect("the image");
        shader.resources[image].count = 2;
        for lowered in [false, true] {
            if lowered {
                assert!(lower_nonuniform(&mut shader), "{access}");
                validate(&shader).unwrap_or_else(|error| panic!("{access}: {error}"));
            }
            let found = stored(&shader, vec![pyramid(), other()], linear(), 1);
            assert_eq!(found.map(|lanes| lanes[0]), [even, odd, even, odd], "{access}, lowered {lowered}");
        }
    }
}

#[test]
fn gathers_and_comparisons() {
    let four = || image(flat(2, 2), &[0.1, 0.2, 0.3, 0.4]);
    let gather = "%600: b32x2 = vec {0.5}, {0.5}\n%700: b32x4 = image_gather<2d> %2, %2, %600";
    assert_eq!(run(four(), Sampler::default(), 4, gather)[0], [0.3, 0.4, 0.2, 0.1]);
    let compare = Sampler { compare: Some(DepthCompare::LessEqual), ..linear() };
    let gather =
        "%600: b32x2 = vec {0.5}, {0.5}\n%700: b32x4 = image_gather<2d flags dref> %2, %2, %600, {0.25}";
    assert_eq!(run(four(), compare, 4, gather)[0], [1.0, 1.0, 0.0, 0.0]);
    let shadow = "%600: b32x2 = vec {0.5}, {0.5}\n%700: b32 = image_sample<2d flags dref|lod> %2, %2, %600, {0.15}, {0}";
    assert_eq!(run(four(), compare, 1, shadow)[0], [0.75], "comparisons come before the filter");
}

#[test]
fn other_shapes() {
    let volume = image(ImageShape::new(Dim::D3, [2, 2, 2]), &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    let middle =
        "%600: b32x3 = vec {0.5}, {0.5}, {0.5}\n%699: b32x4 = image_sample<3d flags lod> %2, %2, %600, {0}";
    assert_eq!(one(volume, linear(), middle), 3.5);
    let line = image(ImageShape::new(Dim::D1, [4, 1, 1]), &[1.0, 2.0, 3.0, 4.0]);
    assert_eq!(
        one(line, Sampler::default(), "%699: b32x4 = image_sample<1d flags lod> %2, %2, {0.6}, {0}"),
        3.0
    );
    let layers = || image(ImageShape { layers: 3, ..flat(1, 1) }, &[1.0, 2.0, 3.0]);
    for (layer, expected) in [(0.4, 1.0), (0.5, 1.0), (1.5, 3.0), (-4.0, 1.0), (9.0, 3.0)] {
        let body = format!(
            "%600: b32x3 = vec {{0.5}}, {{0.5}}, {{{layer}}}\n%699: b32x4 = image_sample<2d flags lod|array> %2, %2, %600, {{0}}"
        );
        assert_eq!(one(layers(), linear(), &body), expected, "layer {layer}");
    }
}

/// A cube of 2x2 texels: face f has the texels 10·f + 0, 1, 2, 3.
fn cube() -> ImageMemory {
    let texels: Vec<f32> = (0..24).map(|n| (n / 4 * 10 + n % 4) as f32).collect();
    image(ImageShape::new(Dim::Cube, [2, 2, 1]), &texels)
}

fn direction(x: f32, y: f32, z: f32) -> String {
    format!(
        "%600: b32x3 = vec {{{x}}}, {{{y}}}, {{{z}}}\n%699: b32x4 = image_sample<cube flags lod> %2, %2, %600, {{0}}"
    )
}

#[test]
fn cubes() {
    // Each face at the centre of its first texel. The directions of s and t follow from the table of the specification.
    let corners = [
        (1.0, 0.5, 0.5),
        (-1.0, 0.5, -0.5),
        (-0.5, 1.0, -0.5),
        (-0.5, -1.0, 0.5),
        (-0.5, 0.5, 1.0),
        (0.5, 0.5, -1.0),
    ];
    for (face, (x, y, z)) in corners.into_iter().enumerate() {
        assert_eq!(one(cube(), Sampler::default(), &direction(x, y, z)), face as f32 * 10.0, "face {face}");
    }
    let middle = |face: f32| face * 10.0 + 1.5;
    assert_eq!(one(cube(), linear(), &direction(0.0, 0.0, 3.0)), middle(4.0));
    // The edge of +X and +Y in the middle: half of both texels of either face that touch it.
    let edge = one(cube(), linear(), &direction(1.0, 1.0, 0.0));
    assert_eq!(edge, (0.0 + 1.0 + 21.0 + 23.0) / 4.0);
    // The corner of +X, +Y and +Z: one texel of each face, and their average for the missing one.
    let corner = one(cube(), linear(), &direction(1.0, 1.0, 1.0));
    let average: f32 = (0.0 + 23.0 + 41.0) / 3.0;
    assert!((corner - average).abs() < 1e-5, "{corner} against {average}");
}
