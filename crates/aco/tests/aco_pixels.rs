//! What only fragment shaders have: interpolation at samples and at offsets, coordinates of points, shading rates. Each shader is compiled for every generation, run on the emulator, and
//! compared with the interpreter of the shader IR.

mod rig;

use rig::build::build;
use rig::judge::{expect, judge};
use rig::targets;
use rig::texts::{colour_shader, shader_of};
use unwedge_aco::Options;
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::ir::{Shader, Stage};

/// Compares the code of a shader on a target with what the interpreter makes of another one.
fn compare(shader: &Shader, reference: &Shader, target: &str, options: &Options) {
    let lanes = options.gpu.lanes() as usize;
    for seed in 3..5 {
        let run = expect(reference, lanes, seed).expect("the interpreter runs it");
        let compiled = build(shader, options).unwrap_or_else(|error| panic!("{target}: {error:?}"));
        assert_eq!(judge(&run, &compiled, options, seed), Ok(()), "{target}");
    }
}

fn agrees(shader: &Shader) {
    for (target, options) in targets() {
        compare(shader, shader, &target, &options);
    }
}

/// The coordinates `%at` at the offset `%offset` by hand, from values at the start of the shader: `at` and `start` are texts.
struct ByHand {
    start: &'static str,
    at: &'static str,
}

const PERSPECTIVE: ByHand = ByHand {
    start: "%model: b32x3 = sysval<pull_model>\n%dx: b32x3 = ddx_coarse %model\n%dy: b32x3 = ddy_coarse %model\n",
    at: "%ox: b32 = extract<0> %offset\n%oy: b32 = extract<1> %offset\n%xx: b32x3 = vec %ox, %ox, %ox\n%yy: b32x3 = vec %oy, %oy, %oy\n\
         %near: b32x3 = ffma %dx, %xx, %model\n%moved: b32x3 = ffma %dy, %yy, %near\n\
         %mi: b32 = extract<0> %moved\n%mj: b32 = extract<1> %moved\n%mw: b32 = extract<2> %moved\n\
         %i: b32 = fdiv %mi, %mw\n%j: b32 = fdiv %mj, %mw\n%at: b32x2 = vec %i, %j\n",
};
const LINEAR: ByHand = ByHand {
    start: "%model: b32x2 = barycentric<pixel linear>\n%dx: b32x2 = ddx_coarse %model\n%dy: b32x2 = ddy_coarse %model\n",
    at: "%ox: b32 = extract<0> %offset\n%oy: b32 = extract<1> %offset\n%xx: b32x2 = vec %ox, %ox\n%yy: b32x2 = vec %oy, %oy\n\
         %near: b32x2 = ffma %dx, %xx, %model\n%at: b32x2 = ffma %dy, %yy, %near\n",
};

/// The lanes of a quad differ in `%odd`. Some values are only used where it is false.
const ODD: &str = "%sample: b32 = sysval<sample_id>\n%fragment: b32x4 = sysval<frag_coord>\n%across: b32 = extract<0> %fragment\n\
                   %column: b32 = f2u %across\n%unit: b32 = const<0x1>\n%parity: b32 = iand %column, %unit\n%odd: b1 = ine %parity, %zero\n\
                   %seven: b32 = const<0x7>\n%nine: b32 = const<0x9>\n%kept: b32 = imul %column, %seven\n%left: b32 = imul %kept, %nine\n\
                   %rest: b32 = imul %left, %kept\n";

/// An input at coordinates that `place` makes of the values before it: after a divergent construct, and in one that odd columns enter.
fn interpolating(start: &str, before: &str, place: &str) -> [Shader; 2] {
    let load = "%in: b32x4 = load_interpolated<in slot 33 component 0 index 0> %at, %zero\n%r: b32 = extract<0> %in\n\
                %g: b32 = extract<1> %in\n%b: b32 = extract<2> %in\n";
    let after = format!(
        "{start}{ODD}%chosen: b32 = if<L0> %odd {{\nbreak<L0> %across\n}} else {{\nbreak<L0> %zero\n}}\n{before}{place}{load}\
         %all: b32x4 = vec %r, %g, %b, %chosen\n"
    );
    let within = format!(
        "{start}{ODD}%rr: b32, %gg: b32, %bb: b32, %ff: b32 = if<L0> %odd {{\n{before}{place}{load}break<L0> %r, %g, %b, %sample\n\
         }} else {{\nbreak<L0> %sample, %kept, %left, %rest\n}}\n%all: b32x4 = vec %rr, %gg, %bb, %ff\n"
    );
    [after, within].map(|body| colour_shader(&body))
}

/// Coordinates at an offset are computed from those at the centre and their derivatives, also in and after a divergent construct.
#[test]
fn inputs_are_interpolated_at_offsets() {
    let offset = "%x: b32 = const<0x3f000000>\n%sf: b32 = u2f %sample\n%y: b32 = fneg %sf\n%offset: b32x2 = vec %x, %y\n";
    for (name, by_hand) in [("", PERSPECTIVE), (" linear", LINEAR)] {
        let at_offset = format!("%at: b32x2 = barycentric<at_offset{name}> %offset\n");
        let shaders = interpolating("", offset, &at_offset);
        let references = interpolating(by_hand.start, offset, by_hand.at);
        for (target, options) in targets() {
            for (shader, reference) in shaders.iter().zip(&references) {
                compare(shader, reference, &target, &options);
            }
        }
    }
}

/// Coordinates that are computed in a divergent construct, of inputs of 32 and 16 bits. Loads of inputs do not change values of lanes that are elsewhere.
#[test]
fn inputs_are_interpolated_in_divergent_constructs() {
    let shader = colour_shader(&format!(
        "%center: b32x2 = barycentric<pixel>\n{ODD}%rr: b32, %gg: b32, %bb: b32, %ff: b32 = if<L0> %odd {{\n%at: b32x2 = fadd %center, %center\n\
         %in: b32x2 = load_interpolated<in slot 33 component 0 index 0> %at, %zero\n%r: b32 = extract<0> %in\n%g: b32 = extract<1> %in\n\
         %half: b16x2 = load_interpolated<in slot 34 component 0 index 0> %at, %zero\n%wide: b32x2 = f2f %half\n%b: b32 = extract<0> %wide\n\
         %f: b32 = extract<1> %wide\nbreak<L0> %r, %g, %b, %f\n\
         }} else {{\nbreak<L0> %sample, %kept, %left, %rest\n}}\n%all: b32x4 = vec %rr, %gg, %bb, %ff\n"
    ));
    agrees(&shader);
}

/// Floats of 16 and 32 bits at one location are interpolated by the shader, at the start and in a divergent construct.
#[test]
fn inputs_of_two_widths_at_one_location_are_interpolated() {
    let load = "%word: b32x2 = load_interpolated<in slot 33 component 0 index 0> %at, %zero\n%r: b32 = extract<0> %word\n\
                %g: b32 = extract<1> %word\n%half: b16x2 = load_interpolated<in slot 33 component 2 index 0> %at, %zero\n\
                %wide: b32x2 = f2f %half\n%b: b32 = extract<0> %wide\n%f: b32 = extract<1> %wide\n";
    agrees(&colour_shader(&format!(
        "%at: b32x2 = barycentric<pixel>\n{load}%all: b32x4 = vec %r, %g, %b, %f\n"
    )));
    agrees(&colour_shader(&format!(
        "%center: b32x2 = barycentric<pixel>\n{ODD}%rr: b32, %gg: b32, %bb: b32, %ff: b32 = if<L0> %odd {{\n\
         %at: b32x2 = fadd %center, %center\n{load}break<L0> %r, %g, %b, %f\n\
         }} else {{\nbreak<L0> %sample, %kept, %left, %rest\n}}\n%all: b32x4 = vec %rr, %gg, %bb, %ff\n"
    )));
}

/// A value chooses among components of one slot, as among distances to planes; the number of the slot is not a constant of the text.
#[test]
fn components_of_one_slot_are_chosen() {
    agrees(&colour_shader(
        "%at: b32x2 = barycentric<pixel>\n%sample: b32 = sysval<sample_id>\n%two: b32 = const<0x2>\n%slot: b32 = ushr %sample, %two\n\
         %in: b32x4 = load_interpolated<in slot 2 component 0 index 0> %at, %slot\n%value: b32 = extract_dyn %in, %sample\n\
         %flat: b32x4 = load_slot<in slot 33 component 0 index 0> %slot\n%other: b32 = extract_dyn %flat, %sample\n\
         %all: b32x4 = vec %value, %other, %zero, %zero\n",
    ));
}

/// Coordinates at a sample are those at its offset from the centre. A number that no sample has is the last one of the table.
#[test]
fn inputs_are_interpolated_at_samples() {
    let divergent = "%number: b32 = iadd %sample, %sample\n";
    let constant = "%number: b32 = const<0x3>\n";
    let high = "%number: b32 = const<0x80000001>\n";
    let offset = "%last: b32 = const<0xf>\n%least: b32 = umin %number, %last\n%five: b32 = const<0x5>\n%three: b32 = const<0x3>\n\
         %x5: b32 = imul %least, %five\n%x3: b32 = imul %least, %three\n%xm: b32 = iand %x5, %last\n%ym: b32 = iand %x3, %last\n\
         %xf: b32 = u2f %xm\n%yf: b32 = u2f %ym\n%part: b32 = const<0x3d800000>\n%half: b32 = const<0x3f000000>\n\
         %px: b32 = fmul %xf, %part\n%py: b32 = fmul %yf, %part\n%hx: b32 = fsub %px, %half\n%hy: b32 = fsub %py, %half\n\
         %offset: b32x2 = vec %hx, %hy\n";
    for number in [divergent, constant, high] {
        for (name, by_hand) in [("", PERSPECTIVE), (" linear", LINEAR)] {
            let at_sample = format!("%at: b32x2 = barycentric<at_sample{name}> %number\n");
            let shaders = interpolating("", number, &at_sample);
            let references = interpolating(by_hand.start, &format!("{number}{offset}"), by_hand.at);
            for (target, options) in targets() {
                for (shader, reference) in shaders.iter().zip(&references) {
                    compare(shader, reference, &target, &options);
                }
            }
        }
    }
}

/// The position of a sample in its pixel is the fraction of the fragment position.
#[test]
fn sample_positions_agree() {
    agrees(&colour_shader(
        "%place: b32x2 = sysval<sample_position>\n%x: b32 = extract<0> %place\n%y: b32 = extract<1> %place\n\
         %all: b32x4 = vec %x, %y, %x, %zero\n",
    ));
}

/// Where a fragment is in its point is interpolated from an attribute.
#[test]
fn coordinates_of_points_agree() {
    let shader = colour_shader(
        "%place: b32x2 = sysval<point_coord>\n%x: b32 = extract<0> %place\n%y: b32 = extract<1> %place\n\
         %all: b32x4 = vec %x, %y, %y, %zero\n",
    );
    agrees(&shader);
}

/// Fragments read the rate at which they are shaded, and vertices export it, on GPUs that have it.
#[test]
fn shading_rates_agree() {
    let reads =
        colour_shader("%rate: b32 = sysval<shading_rate>\n%all: b32x4 = vec %rate, %rate, %zero, %rate\n");
    let stores = shader_of(
        Stage::Vertex,
        "%index: b32 = sysval<vertex_index>\n%fifteen: b32 = const<0xf>\n%rate: b32 = iand %index, %fifteen\n\
         store_slot<out slot 9 component 0 index 0> %rate, %zero\n",
    );
    for (target, options) in targets() {
        for shader in [&reads, &stores] {
            if options.gpu.generation() >= Gfx::Gfx10_3 {
                compare(shader, shader, &target, &options);
            } else {
                let refused = build(shader, &options).expect_err("a rate before gfx10.3");
                assert!(refused.0 == "compile" && refused.1.contains("shading"), "{target}: {refused:?}");
            }
        }
    }
}
