//! Transform feedback by vertex and evaluation shaders and by the shader that exports what a geometry shader has left: buffers on the emulator are compared with what the
//! interpreter of the shader IR says of the vertices. Geometry shaders have several streams.
//!
//! `UNWEDGE_SEEDS=N` takes so many shaders.

mod rig;

use rig::build::build;
use rig::captures::{CapturedOutput, capture_outputs};
use rig::culling::Draw;
use rig::group::judge::judge_group;
use rig::group::{build_group, expect_group, pass_through};
use rig::judge::{expect, judge};
use rig::recorded::Problem;
use unwedge_aco::captures::Captures;
use unwedge_aco::{Options, compile};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{
    Builder, FIRST_LOCATION_SLOT, Modes, Op, Payload, Primitive, Shader, SlotAccess, SlotDir, Stage, Storage,
    Type, TypeNode, VarData,
};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;
use unwedge_testkit::shaders::random_stage;

/// GPUs whose last stage before the rasterizer may be VS, in both sizes of the wave.
fn targets() -> Vec<Options> {
    let mut all = Vec::new();
    for name in rig::GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            if gpu.wave64() == wave64 && gpu.generation() < Gfx::Gfx11 {
                let mut options = Options::new(gpu);
                options.graphics.legacy = true;
                all.push(options);
            }
        }
    }
    all
}

/// One of the targets, with other options for other seeds.
fn varied(targets: &[Options], seed: u64) -> Options {
    let mut options = targets[seed as usize % targets.len()].clone();
    rig::vary(&mut options, seed);
    options
}

/// How many dwords of a vertex are captured of each stream. `None`: the shader is not compiled, or undefined.
fn run(shader: &Shader, options: &Options, seed: u64) -> Option<Result<Captures, Problem>> {
    let lanes = options.gpu.lanes() as usize;
    let mut options = options.clone();
    options.graphics.last_vertex_provokes = seed % 2 == 1;
    let options = &options;
    let (args, judged) = if shader.info.stage == Stage::Geometry {
        let before = pass_through(shader);
        let programs = match build_group(&before, shader, options) {
            Err(("compile", _)) => return None,
            Err(problem) => return Some(Err(problem)),
            Ok(programs) => programs,
        };
        let expected = expect_group(&before, shader, lanes, seed)?;
        let judged = judge_group(&expected, &programs, options, seed);
        (programs.into_list().pop()?.args, judged)
    } else {
        let compiled = match build(shader, options) {
            Err(("compile", _)) => return None,
            Err(problem) => return Some(Err(problem)),
            Ok(compiled) => compiled,
        };
        let expected = expect(shader, lanes, seed)?;
        let judged = judge(&expected, &compiled, options, seed);
        (compiled.args, judged)
    };
    Some(judged.map(|()| args.interface.captures))
}

/// Whether every dword of the outputs is captured where it has to be, and nothing else. Returns which of two streams have something.
fn placed(captures: &Captures, wanted: &[CapturedOutput]) -> Result<[bool; 2], Problem> {
    let mut own: Vec<(u8, u32)> = captures.words.iter().map(|word| (word.buffer, word.offset)).collect();
    let mut all: Vec<(u8, u32)> = wanted
        .iter()
        .flat_map(|output| (0..output.dwords).map(|dword| (output.buffer, output.offset + dword * 4)))
        .collect();
    own.sort_unstable();
    all.sort_unstable();
    if own != all {
        return Err(("capture", format!("dwords {own:?}, not {all:?}")));
    }
    for output in wanted {
        let first =
            captures.words.iter().find(|word| (word.buffer, word.offset) == (output.buffer, output.offset));
        let Some(first) = first else { continue };
        let slot = output.location.map_or(first.slot, |location| FIRST_LOCATION_SLOT + location as u16);
        let stride = captures.strides[usize::from(output.buffer)];
        if (first.slot, first.stream, stride) != (slot, output.stream, output.stride) {
            return Err(("capture", format!("{first:?} with the stride {stride}, not {output:?}")));
        }
    }
    Ok([0, 1].map(|stream| captures.words.iter().any(|word| word.stream == stream)))
}

#[test]
fn captured_outputs_are_in_their_buffers() {
    let jobs: Vec<u64> = rig::seeds(400).collect();
    let targets = targets();
    let results = parallel::map(&jobs, |seed| {
        let mut shader = random_stage(&mut Rng::new(*seed));
        let stage = shader.info.stage;
        if matches!(stage, Stage::Fragment | Stage::TessControl) {
            return None;
        }
        let wanted = capture_outputs(&mut shader, &mut Rng::new(*seed));
        if wanted.is_empty() {
            return None;
        }
        let options = &varied(&targets, *seed);
        let lanes = options.gpu.lanes() as usize;
        let result = run(&shader, options, *seed)?.and_then(|captures| placed(&captures, &wanted));
        Some((
            stage,
            result.map_err(|(step, what)| {
                format!("seed {seed}, {} wave{lanes}: {step} {what}", options.gpu.name())
            }),
        ))
    });
    let (mut counts, mut wrong) = ([0; 4], Vec::new());
    for (stage, result) in results.into_iter().flatten() {
        match result {
            Ok(words) => {
                let at = usize::from(stage == Stage::TessEval) + 2 * usize::from(stage == Stage::Geometry);
                counts[at] += usize::from(words[0]);
                counts[3] += usize::from(words[1]);
            }
            Err(what) => wrong.push(what),
        }
    }
    println!("vertex, evaluation, geometry shaders, and those with a second stream: {counts:?}");
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} are wrong: {wrong:#?}");
    assert!(counts.iter().all(|count| *count > 0), "every stage captures");
}

/// A geometry shader that emits so many vertices with a captured output, and with `other` a vertex without outputs in the second stream.
fn captured_vertices(primitive: Primitive, count: u32, other: bool) -> Shader {
    let mut shader = Shader::with_entry(Stage::Geometry, "main");
    shader.info.input_primitive = Some(Primitive::Points);
    shader.info.output_primitive = Some(primitive);
    shader.info.output_vertices = count;
    let four = Type { lanes: 4, ..Type::B32 };
    let ty = shader.types.push(TypeNode::Leaf(four));
    let mut output = VarData::new("output".to_owned(), Storage::Output, ty);
    output.location = Some(0);
    shader.vars.push(output);
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let zero = b.u32(0);
    let input = SlotAccess { vertex: true, ..SlotAccess::of(SlotDir::Input, 0) };
    let position = b.value(Op::LoadSlot, Payload::Slot(input), &[zero, zero], four);
    for vertex in 0..count {
        let lanes = [0, 1, 2, 3].map(|lane| b.u32(vertex << 8 | lane));
        let captured = b.vec(&lanes);
        for (slot, value) in [(0, position), (FIRST_LOCATION_SLOT, captured)] {
            let output = SlotAccess::of(SlotDir::Output, slot);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, zero], &[]);
        }
        b.inst(Op::EmitVertex, Payload::Stream(0), &[], &[]);
    }
    if other {
        b.inst(Op::EmitVertex, Payload::Stream(1), &[], &[]);
    }
    b.return_(&[]);
    capture_outputs(&mut shader, &mut Rng::new(0));
    shader
}

/// The triangles of a strip are exported and captured with the provoking vertex first, or last.
#[test]
fn captured_strips_keep_the_provoking_vertex() {
    let shader = captured_vertices(Primitive::Triangles, 5, false);
    for options in primitive_targets() {
        for seed in [0, 1] {
            let result = run(&shader, &options, seed).expect("it is compiled");
            result.unwrap_or_else(|what| panic!("{}, seed {seed}: {what:?}", options.gpu.name()));
        }
    }
}

/// Waves with vertices of a stream of which nothing is captured neither export them nor capture them as those of the first stream.
#[test]
fn vertices_of_other_streams_are_not_exported() {
    let shader = captured_vertices(Primitive::Points, 1, true);
    for options in targets() {
        let name = options.gpu.name();
        let captures = run(&shader, &options, 1).expect("it is compiled");
        let captures = captures.unwrap_or_else(|what| panic!("{name}: {what:?}"));
        assert!(captures.has_stream(0) && !captures.has_stream(1), "{name}: {captures:?}");
    }
}

/// GPUs whose vertices are always processed by primitive shaders, in wave32 and wave64.
fn primitive_targets() -> Vec<Options> {
    let mut all = Vec::new();
    for name in ["gfx1100", "gfx1150", "gfx1200"] {
        for wave64 in [true, false] {
            all.push(Options::new(Gpu::new(name).expect("a GPU").with_wave64(wave64)));
        }
    }
    all
}

/// Checks the captured primitives of a vertex or evaluation shader. Returns how many were written, and how many did not fit.
fn run_primitives(shader: &Shader, options: &Options, seed: u64) -> Option<Result<[u64; 2], Problem>> {
    let lanes = options.gpu.lanes() as usize;
    let compiled = match build(shader, options) {
        Err(("compile", _)) => return None,
        Err(problem) => return Some(Err(problem)),
        Ok(compiled) => compiled,
    };
    let mut rng = Rng::new(seed);
    let counts = [[23, 7], [100, 90], [64, 64], [130, 200], [3, 1]][rng.below(5)];
    let mut draw = Draw::new(shader, lanes, counts, None, &mut rng)?;
    let primitive = shader.info.input_primitive.unwrap_or(options.graphics.tessellation);
    draw.corners = match shader.info.stage {
        Stage::Vertex => 1 + rng.below(3),
        _ if shader.info.modes.any(Modes::POINT_MODE) => 1,
        _ if primitive == Primitive::Isolines => 2,
        _ => 3,
    };
    Some(draw.capture(&compiled, options, seed))
}

#[test]
fn primitive_shaders_capture_in_order() {
    let seeds: Vec<u64> = rig::seeds(600).collect();
    let targets = primitive_targets();
    let results = parallel::map(&seeds, |seed| {
        let mut shader = random_stage(&mut Rng::new(*seed));
        if matches!(shader.info.stage, Stage::Fragment | Stage::TessControl) {
            return None;
        }
        if capture_outputs(&mut shader, &mut Rng::new(*seed)).is_empty() {
            return None;
        }
        let options = &varied(&targets, *seed);
        let stage = shader.info.stage;
        let result = match stage {
            Stage::Geometry => run(&shader, options, *seed)?
                .map(|captures| [0, 1].map(|stream| u64::from(captures.has_stream(stream)))),
            _ => run_primitives(&shader, options, *seed)?,
        };
        let lanes = options.gpu.lanes() as usize;
        let name = options.gpu.name();
        Some((
            stage,
            result.map_err(|(step, what)| format!("seed {seed}, {name} wave{lanes}: {step} {what}")),
        ))
    });
    let (mut sums, mut shaders, mut wrong) = ([[0; 2]; 3], [0; 3], Vec::new());
    for (stage, result) in results.into_iter().flatten() {
        let at = usize::from(stage == Stage::TessEval) + 2 * usize::from(stage == Stage::Geometry);
        shaders[at] += 1;
        match result {
            Ok(own) => (0..2).for_each(|part| sums[at][part] += own[part]),
            Err(what) => wrong.push(what),
        }
    }
    println!(
        "{shaders:?} vertex, evaluation and geometry shaders; primitives that were written, and that did not fit: {:?}; \
         geometry shaders with the first and another stream: {:?}",
        &sums[..2],
        sums[2]
    );
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} are wrong: {wrong:#?}");
    assert!(sums.iter().flatten().all(|count| *count > 0), "every stage captures");
}

/// A geometry shader that emits points with many outputs.
fn wide_points() -> Shader {
    const SLOTS: u16 = 28;
    let mut shader = Shader::with_entry(Stage::Geometry, "main");
    shader.info.input_primitive = Some(Primitive::Points);
    shader.info.output_primitive = Some(Primitive::Points);
    shader.info.output_vertices = 4;
    let func = shader.entry_mut();
    let body = func.body();
    for vertex in 0..4 {
        let mut b = Builder::at_end(func, body);
        let zero = b.u32(0);
        let input = SlotAccess { vertex: true, ..SlotAccess::of(SlotDir::Input, 0) };
        let four = Type { lanes: 4, ..Type::B32 };
        let position = b.value(Op::LoadSlot, Payload::Slot(input), &[zero, zero], four);
        b.inst(Op::StoreSlot, Payload::Slot(SlotAccess::of(SlotDir::Output, 0)), &[position, zero], &[]);
        for slot in 0..SLOTS {
            let lanes = [0, 1, 2, 3].map(|lane| b.u32(vertex << 16 | u32::from(slot) << 8 | lane));
            let value = b.vec(&lanes);
            let output = SlotAccess::of(SlotDir::Output, FIRST_LOCATION_SLOT + slot);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, zero], &[]);
        }
        Builder::at_end(func, body).inst(Op::EmitVertex, Payload::Stream(0), &[], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// A workgroup has no more primitives than LDS has room for their vertices.
#[test]
fn vertices_with_many_outputs_fit_into_lds() {
    let shader = wide_points();
    for options in primitive_targets() {
        let name = options.gpu.name();
        run(&shader, &options, 1).expect("it is compiled").unwrap_or_else(|what| panic!("{name}: {what:?}"));
    }
}

/// A workgroup whose turn has not come waits until the emulator stops it.
#[test]
fn workgroups_wait_for_their_turn() {
    let mut waited = 0;
    for options in primitive_targets() {
        let shaders = (0..200).filter_map(|seed| {
            let mut shader = random_stage(&mut Rng::new(seed));
            let captures = shader.info.stage == Stage::Vertex
                && !capture_outputs(&mut shader, &mut Rng::new(seed)).is_empty();
            captures.then_some((seed, shader))
        });
        for (seed, shader) in shaders.take(3) {
            let lanes = options.gpu.lanes() as usize;
            let Ok(compiled) = build(&shader, &options) else { continue };
            let Some(draw) = Draw::new(&shader, lanes, [23, 7], None, &mut Rng::new(seed)) else { continue };
            match draw.capture_early(&compiled, &options, seed) {
                Ok(bound) => waited += usize::from(bound),
                Err((step, what)) => panic!("seed {seed}, {}: {step} {what}", options.gpu.name()),
            }
        }
    }
    assert!(waited > 6, "{waited} workgroups waited");
}

/// On gfx10 other stages capture, and primitive shaders do not. The error says so.
#[test]
fn primitive_shaders_of_gfx10_refuse_transform_feedback() {
    let mut shader = (0..)
        .map(|seed| random_stage(&mut Rng::new(seed)))
        .find(|shader| shader.info.stage == Stage::Vertex)
        .expect("one is a vertex shader");
    capture_outputs(&mut shader, &mut Rng::new(0));
    let error =
        compile(&mut shader, &Options::new(Gpu::new("gfx1030").expect("a GPU"))).expect_err("it is refused");
    assert!(error.to_string().contains("transform feedback by primitive shaders of gfx10"), "{error}");
}
