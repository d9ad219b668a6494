//! Shaders compiled in parts: the concatenated code does what that of the whole shader does.
//!
//! Random shaders, on the emulator. `UNWEDGE_SEEDS=N` makes so many.

mod rig;

use rig::build::{build, build_with_epilog, build_with_pixel_prolog, build_with_prolog};
use rig::group::judge::judge_group;
use rig::group::{GroupPrograms, expect_group, number_vertices, pass_patches, pass_triangles};
use rig::judge::{expect, expect_formats, expect_prolog, judge, pixel_exports};
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::abi::{Argument, PixelProlog};
use unwedge_aco::graphics::{HalfColour, TargetFormat, VertexInput};
use unwedge_aco::parts::compile_vertex_prolog;
use unwedge_aco::stages::PipelineMode;
use unwedge_aco::{Options, compile, compile_copy, compile_merged};
use unwedge_isa::amdgcn::texel::TexelFormat;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{
    Base, Builder, Builtin, FIRST_LOCATION_SLOT, Op, Payload, Shader, SlotAccess, SlotDir, Stage, Type,
};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;
use unwedge_testkit::shaders::random_stage;

/// What became of a shader in parts.
#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Agrees,
    /// Why it is not: the interpreter does not run it with what it is given, or it is not compiled as a whole either.
    NotCompared(String),
    Wrong(String),
}

/// A random shader that is compiled for a GPU: many have more colours than there are, or inputs that are not compiled yet.
fn random(stage: Stage, seed: u64) -> Shader {
    let mut rng = Rng::new(seed);
    let options = Options::new(Gpu::new("gfx900").expect("a GPU"));
    loop {
        let mut shader = random_stage(&mut rng);
        if shader.info.stage != stage {
            continue;
        }
        // Most colours have a second source of blending, which few pipelines can have.
        let vars: Vec<_> = shader.vars.keys().collect();
        for var in vars.into_iter().filter(|_| !seed.is_multiple_of(8)) {
            shader.vars[var].index = 0;
        }
        if compile(&mut shader.clone(), &options).is_ok() {
            return shader;
        }
    }
}

fn options(seed: u64) -> Options {
    let name = rig::GPUS[seed as usize % rig::GPUS.len()];
    let mut options = Options::new(Gpu::new(name).expect("a GPU").with_wave64((seed / 9).is_multiple_of(2)));
    rig::vary(&mut options, seed);
    options
}

fn seeds() -> Vec<u64> {
    rig::seeds(120).collect()
}

const UNDEFINED: &str = "undefined, or does not end";

fn require(verdicts: &[(u64, Verdict)]) {
    let mut reasons: BTreeMap<&str, usize> = BTreeMap::new();
    for (_, verdict) in verdicts {
        if let Verdict::NotCompared(reason) = verdict {
            *reasons.entry(reason).or_default() += 1;
        }
    }
    println!("not compared: {reasons:?}");
    let wrong: Vec<_> = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Wrong(_))).collect();
    let agree = verdicts.iter().filter(|(_, verdict)| *verdict == Verdict::Agrees).count();
    println!("{agree} of {} agree", verdicts.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(agree * 3 > verdicts.len() * 2, "{agree} agree");
}

/// `needs_exports`: exports in random formats have to be compared, which are not if some of what is stored is undefined.
fn with_epilog(
    shader: &Shader,
    options: &Options,
    seed: u64,
    needs_exports: bool,
) -> Result<Verdict, String> {
    let text = |(step, what): (&str, String)| format!("{} {step}: {what}", options.gpu.name());
    let lanes = options.gpu.lanes() as usize;
    let parts = match (build(shader, options), build_with_epilog(shader, options)) {
        (Err(("compile", whole)), Err(("compile", parts))) if whole == parts => {
            return Ok(Verdict::NotCompared(whole));
        }
        (whole, parts) => whole.and(parts).map_err(text)?,
    };
    let Some(expected) = expect(shader, lanes, seed) else {
        return Ok(Verdict::NotCompared(UNDEFINED.to_owned()));
    };
    judge(&expected, &parts, options, seed).map_err(text)?;
    // Other formats are compared with the code of the whole shader.
    let mut rng = Rng::new(seed);
    let mut options = options.clone();
    for format in &mut options.graphics.targets {
        *format = TargetFormat::NAMES[rng.below(TargetFormat::NAMES.len())].0;
    }
    let whole = build(shader, &options).map_err(text)?;
    let parts = build_with_epilog(shader, &options).map_err(text)?;
    let [whole, parts] =
        [whole, parts].map(|compiled| pixel_exports(&expected, &compiled, &options, seed).map_err(text));
    let (whole, parts) = (whole?, parts?);
    if whole != parts {
        return Err(format!("{}: {parts:x?}, not {whole:x?}", options.gpu.name()));
    }
    if needs_exports && whole.is_none() {
        return Ok(Verdict::NotCompared(UNDEFINED.to_owned()));
    }
    Ok(Verdict::Agrees)
}

/// A fragment shader that stores every component of so many colours.
fn colours(count: u16) -> Shader {
    let mut shader = Shader::with_entry(Stage::Fragment, "main");
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let offset = b.u32(0);
    for location in 0..count {
        let input = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT + location);
        let ty = Type { lanes: 4, ..Type::B32 };
        let value = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], ty);
        let output = SlotAccess { dir: SlotDir::Output, ..input };
        b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
    }
    b.return_(&[]);
    shader
}

#[test]
fn epilogs_export_what_whole_shaders_export() {
    let verdicts = parallel::map(&seeds(), |seed| {
        let shader = random(Stage::Fragment, *seed);
        let verdict = with_epilog(&shader, &options(*seed), *seed, false);
        (*seed, verdict.unwrap_or_else(Verdict::Wrong))
    });
    require(&verdicts);
}

/// Colours are exported in every format.
#[test]
fn epilogs_convert_colours_as_whole_shaders_do() {
    let verdicts = parallel::map(&seeds(), |seed| {
        let shader = colours(1 + (seed / 9 % 8) as u16);
        let verdict = with_epilog(&shader, &options(*seed), *seed, true);
        (*seed, verdict.unwrap_or_else(Verdict::Wrong))
    });
    require(&verdicts);
}

/// A prolog gives a shader other coordinates; an epilog exports its colours.
#[test]
fn prologs_of_pixel_shaders_change_inputs() {
    let verdicts = parallel::map(&seeds(), |seed| {
        let shader = random(Stage::Fragment, *seed);
        let options = options(*seed);
        let state = PixelProlog { per_sample: seed % 5 < 2, centroid_at_center: seed % 4 < 2 };
        let text = |(step, what): (&str, String)| format!("{} {state:?} {step}: {what}", options.gpu.name());
        let verdict = || {
            let lanes = options.gpu.lanes() as usize;
            let parts = match build_with_pixel_prolog(&shader, &options, state) {
                Err(("compile", what)) => return Ok(Verdict::NotCompared(what)),
                parts => parts.map_err(text)?,
            };
            let Some(expected) = expect_prolog(&shader, lanes, *seed, state, seed % 2 == 0) else {
                return Ok(Verdict::NotCompared(UNDEFINED.to_owned()));
            };
            judge(&expected, &parts, &options, *seed).map_err(text)?;
            Ok(Verdict::Agrees)
        };
        (*seed, verdict().unwrap_or_else(Verdict::Wrong))
    });
    require(&verdicts);
}

/// Formats of attributes, with the bytes that Vulkan has elements of at least aligned to.
const FORMATS: [(&str, u32); 22] = [
    ("8_UNORM", 1),
    ("8_SINT", 1),
    ("8_8_SNORM", 1),
    ("8_8_8_UNORM", 1),
    ("8_8_8_SINT", 1),
    ("8_8_8_8_UNORM", 1),
    ("8_8_8_8_SSCALED", 1),
    ("8_8_8_8_UINT", 1),
    ("16_FLOAT", 2),
    ("16_16_SNORM", 2),
    ("16_16_16_FLOAT", 2),
    ("16_16_16_UINT", 2),
    ("16_16_16_16_UNORM", 2),
    ("16_16_16_16_FLOAT", 2),
    ("16_16_16_16_SINT", 2),
    ("32_FLOAT", 4),
    ("32_32_UINT", 4),
    ("32_32_32_FLOAT", 4),
    ("32_32_32_32_SINT", 4),
    ("10_11_11_FLOAT", 4),
    ("2_10_10_10_UNORM", 4),
    ("2_10_10_10_UINT", 4),
];

fn random_input(rng: &mut Rng, location: u32) -> VertexInput {
    let (name, unit) = FORMATS[rng.below(FORMATS.len())];
    let format = TexelFormat::of_name(name).expect("a format");
    let room = (16 - u32::from(format.bytes())) / unit;
    VertexInput {
        binding: location,
        offset: rng.below(room as usize + 1) as u32 * unit,
        format,
        swapped: rng.below(4) == 0,
        alignment: if rng.below(2) == 0 { unit } else { 4 },
        divisor: (rng.below(3) == 0).then(|| rng.below(5) as u32),
    }
}

/// Attributes of random formats, loaded by the shader itself or by its prolog.
#[test]
fn attributes_have_the_formats_of_the_pipeline() {
    let verdicts = parallel::map(&seeds(), |seed| {
        let shader = random(Stage::Vertex, *seed);
        let mut rng = Rng::new(*seed);
        let mut options = options(*seed);
        options.graphics.legacy = seed / 18 % 2 == 0;
        let formats: BTreeMap<u32, VertexInput> =
            (0..32).map(|location| (location, random_input(&mut rng, location))).collect();
        options.graphics.vertex_inputs.clone_from(&formats);
        let text = |(step, what): (&str, String)| format!("{} {step}: {what}", options.gpu.name());
        let verdict = || {
            let (whole, parts) = match (build(&shader, &options), build_with_prolog(&shader, &options)) {
                (Err(("compile", whole)), Err(("compile", parts))) if whole == parts => {
                    return Ok(Verdict::NotCompared(whole));
                }
                (whole, parts) => (whole.map_err(text)?, parts.map_err(text)?),
            };
            let lanes = options.gpu.lanes() as usize;
            let Some(expected) = expect_formats(&shader, lanes, *seed, &formats) else {
                return Ok(Verdict::NotCompared(UNDEFINED.to_owned()));
            };
            judge(&expected, &whole, &options, *seed).map_err(text)?;
            judge(&expected, &parts, &options, *seed)
                .map_err(|(step, what)| text((step, format!("with a prolog: {what}"))))?;
            Ok(Verdict::Agrees)
        };
        (*seed, verdict().unwrap_or_else(Verdict::Wrong))
    });
    require(&verdicts);
}

/// A fragment shader that stores the depth, the stencil reference and the sample mask, and a colour.
fn depth_and_colour() -> Shader {
    let mut shader = Shader::with_entry(Stage::Fragment, "main");
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let offset = b.u32(0);
    let input = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT);
    let value = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], Type { lanes: 4, ..Type::B32 });
    for (lane, builtin) in (0..).zip([Builtin::FragDepth, Builtin::FragStencilRef, Builtin::SampleMask]) {
        let part = b.extract(value, lane);
        let output = SlotAccess::of(SlotDir::Output, builtin.slots().start);
        b.inst(Op::StoreSlot, Payload::Slot(output), &[part, offset], &[]);
    }
    let output = SlotAccess { dir: SlotDir::Output, ..input };
    b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
    b.return_(&[]);
    shader
}

/// Where no attachment takes a colour, an epilog exports nothing beside the depth.
#[test]
fn epilogs_export_the_depth() {
    let shader = depth_and_colour();
    for (name, format) in rig::GPUS
        .into_iter()
        .flat_map(|name| [TargetFormat::Absent, TargetFormat::Abgr32].map(|format| (name, format)))
    {
        let mut options = Options::new(Gpu::new(name).expect("a GPU"));
        options.graphics.targets[0] = format;
        let lanes = options.gpu.lanes() as usize;
        let expected = expect(&shader, lanes, 1).expect("defined");
        let [whole, parts] =
            [build(&shader, &options), build_with_epilog(&shader, &options)].map(|compiled| {
                let exports = pixel_exports(&expected, &compiled.expect("compiled"), &options, 1);
                exports.expect("runs").expect("defined")
            });
        assert_eq!(whole, parts, "{name} {format:?}");
        let targets: Vec<u8> = parts.into_keys().collect();
        let wanted: &[u8] = if format == TargetFormat::Absent { &[8] } else { &[0, 8] };
        assert_eq!(targets, wanted, "{name} {format:?}");
    }
}

/// Halves that a fragment shader stores as its colour.
const HALVES: [u64; 4] = [0x3c00, 0xb800, 0x7bff, 0x0001];

/// A fragment shader that stores [`HALVES`]. The upper halves of registers are not zero.
fn half_colour() -> Shader {
    let mut shader = Shader::with_entry(Stage::Fragment, "main");
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let input = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT);
    let offset = b.u32(0);
    let loaded = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], Type { lanes: 4, ..Type::B32 });
    let lanes: Vec<_> = (0..4)
        .map(|lane| {
            let word = b.extract(loaded, lane);
            let (mask, half) = (b.u32(0xffff_0000), b.u32(HALVES[usize::from(lane)] as u32));
            let word = b.alu(Op::IAnd, &[word, mask]);
            let word = b.alu(Op::IOr, &[word, half]);
            b.convert(Op::U2U, Base::B16, word)
        })
        .collect();
    let colour = b.vec(&lanes);
    let output = SlotAccess { dir: SlotDir::Output, ..input };
    b.inst(Op::StoreSlot, Payload::Slot(output), &[colour, offset], &[]);
    b.return_(&[]);
    shader
}

/// Formats of 32 bits have colours of 16 bits as floats or integers of 32 bits.
#[test]
fn colours_of_16_bits_are_widened() {
    let shader = half_colour();
    for name in rig::GPUS {
        let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
        for (numbers, wanted) in [
            (HalfColour::Float, [1.0f32, -0.5, 65504.0, 5.960_464_5e-8].map(f32::to_bits)),
            (HalfColour::Uint, [0x3c00, 0xb800, 0x7bff, 1]),
            (HalfColour::Sint, [0x3c00, 0xffff_b800, 0x7bff, 1]),
        ] {
            for (format, places) in [
                (TargetFormat::Abgr32, vec![(0, 0), (1, 1), (2, 2), (3, 3)]),
                (TargetFormat::R32, vec![(0, 0)]),
                (TargetFormat::Gr32, vec![(0, 0), (1, 1)]),
                (TargetFormat::Ar32, vec![(0, 0), (if gpu.generation() < Gfx::Gfx10 { 3 } else { 1 }, 3)]),
            ] {
                let mut options = Options::new(gpu);
                options.graphics.targets[0] = format;
                options.graphics.half_colours[0] = numbers;
                let expected = expect(&shader, 64, 1).expect("defined");
                for compiled in [build(&shader, &options), build_with_epilog(&shader, &options)] {
                    let exports = pixel_exports(&expected, &compiled.expect("compiled"), &options, 1);
                    let exports = exports.expect("runs").expect("defined");
                    let (_, values) = &exports[&0];
                    for (component, words) in values.iter().enumerate() {
                        let place = places.iter().find(|(at, _)| *at == component);
                        let own =
                            words.as_ref().map(|words| words.iter().copied().collect::<BTreeSet<u32>>());
                        let wanted = place.map(|(_, from)| BTreeSet::from([wanted[*from]]));
                        assert_eq!(own, wanted, "{name} {format:?} {numbers:?}, component {component}");
                    }
                }
            }
        }
    }
}

/// Components of 16 bits are exported to formats of 16 bits as they are, in pairs; normalized formats convert them.
#[test]
fn colours_of_16_bits_are_packed() {
    let shader = half_colour();
    for name in rig::GPUS {
        let gpu = Gpu::new(name).expect("a GPU").with_wave64(true);
        for (format, wanted) in [
            (TargetFormat::Fp16, [0xb800_3c00u32, 0x0001_7bff]),
            (TargetFormat::Uint16, [0xb800_3c00, 0x0001_7bff]),
            (TargetFormat::Sint16, [0xb800_3c00, 0x0001_7bff]),
            (TargetFormat::Unorm16, [0x0000_ffff, 0x0000_ffff]),
            (TargetFormat::Snorm16, [0xc000_7fff, 0x0000_7fff]),
        ] {
            let mut options = Options::new(gpu);
            options.graphics.targets[0] = format;
            let expected = expect(&shader, 64, 1).expect("defined");
            for compiled in [build(&shader, &options), build_with_epilog(&shader, &options)] {
                let exports = pixel_exports(&expected, &compiled.expect("compiled"), &options, 1);
                let exports = exports.expect("runs").expect("defined");
                let (_, values) = &exports[&0];
                let words: BTreeSet<u32> = values.iter().flatten().flatten().copied().collect();
                // -0.5 is between two normalized numbers.
                let near = |word: u32, wanted: u32| word == wanted || word == wanted.wrapping_add(1 << 16);
                assert!(
                    words.iter().all(|word| wanted.iter().any(|wanted| near(*word, *wanted)))
                        && wanted.iter().all(|wanted| words.iter().any(|word| near(*word, *wanted))),
                    "{name} {format:?}: {words:x?}"
                );
            }
        }
    }
}

/// Loads of GPUs up to gfx8, except Stoney, ignore signs of components of two bits. The code restores them.
#[test]
fn components_of_two_bits_have_signs() {
    let loads = |shader: &Shader| {
        build(shader, &options(0)).is_ok_and(|made| made.args.find(Argument::VertexBuffers).is_some())
    };
    let shaders = (0..).map(|seed| (seed, random(Stage::Vertex, seed))).filter(|(_, shader)| loads(shader));
    let mut compared = 0;
    for (seed, shader) in shaders.take(6) {
        for name in ["2_10_10_10_SNORM", "2_10_10_10_SSCALED", "2_10_10_10_SINT"] {
            let format = TexelFormat::of_name(name).expect("a format");
            let input = |location| VertexInput { format, ..VertexInput::floats(location) };
            let formats: BTreeMap<u32, VertexInput> = (0..32).map(|at| (at, input(at))).collect();
            for gpu in ["gfx600", "gfx700", "gfx803", "gfx810", "gfx900"] {
                let mut options = Options::new(Gpu::new(gpu).expect("a GPU"));
                options.graphics.vertex_inputs.clone_from(&formats);
                let compiled = build(&shader, &options).unwrap_or_else(|error| panic!("{gpu}: {error:?}"));
                let Some(expected) = expect_formats(&shader, 64, seed, &formats) else { continue };
                judge(&expected, &compiled, &options, seed)
                    .unwrap_or_else(|error| panic!("{gpu} {name} {seed}: {error:?}"));
                compared += 1;
            }
        }
    }
    assert!(compared > 40, "{compared} were compared");
}

/// The prolog of a merged stage runs in the lanes of vertices, and leaves the registers of the second shader as they are.
#[test]
fn prologs_come_before_merged_shaders() {
    let mut first = number_vertices();
    first.info.float_modes[1].flush = Some(false);
    let mut wrong = Vec::new();
    for second in [pass_patches(&first, 1), pass_triangles(&first)] {
        for name in &rig::GPUS[3..] {
            for wave64 in [true, false] {
                let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
                let mut options = Options::new(gpu);
                options.graphics.shape = options.graphics.shape.with(second.info.stage);
                let geometry = second.info.stage == Stage::Geometry;
                let legacy = options.graphics.mode(gpu.generation()) == PipelineMode::Legacy;
                let copy = (geometry && legacy).then(|| compile_copy(&second, &options).expect("a copy"));
                let mut main = options.clone();
                main.graphics.prolog = true;
                let mut compiled =
                    compile_merged(&mut first.clone(), &mut second.clone(), &main).expect("compiled");
                let prolog = compile_vertex_prolog(&compiled.args, compiled.float_mode, &options);
                compiled.code.words.splice(0..0, prolog.expect("compiled").code.words);
                let lanes = gpu.lanes() as usize;
                let expected = expect_group(&first, &second, lanes, 1).expect("defined");
                let programs = GroupPrograms::of(vec![compiled], copy);
                if let Err(error) = judge_group(&expected, &programs, &options, 1) {
                    wrong.push(format!("{name} {lanes}: {error:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
