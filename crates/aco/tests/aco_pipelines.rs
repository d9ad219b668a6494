//! Pipelines: several shaders linked, compiled for every generation, each program run on the emulator and compared with the interpreter of the shader IR.
//!
//! Shaders read a part of what the one before stores, so the rest is dropped. `UNWEDGE_SEEDS=N` makes so many pipelines.

mod rig;

use rig::captures::capture_outputs;
use rig::culling::Draw;
use rig::group::judge::judge_group;
use rig::group::{GroupPrograms, expect_group, pass_patches, pass_triangles};
use rig::judge::{expect, judge, stored_by};
use std::collections::BTreeSet;
use unwedge_aco::abi::Argument;
use unwedge_aco::ir::PhysReg;
use unwedge_aco::pipeline::{PipelineError, attribute_links, compile_pipeline};
use unwedge_aco::stages::{HardwareStage, PipelineShape};
use unwedge_aco::{CompileError, Compiled, Options, compile};
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{
    Builder, FIRST_LOCATION_SLOT, Op, Payload, Shader, SlotAccess, SlotDir, Stage, SystemValue, Type,
};
use unwedge_shader::passes::lower_io;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;
use unwedge_testkit::shaders::random_stage;

/// Vertices of a patch, before and after its control shader.
const PATCH_VERTICES: u32 = 3;

/// A shader that reads some of what another one stores, and stores it.
fn reads_some(stage: Stage, before: &Shader, rng: &mut Rng) -> Shader {
    let mut before = before.clone();
    lower_io(&mut before);
    let mut shader = Shader::with_entry(stage, "main");
    shader.info.float_modes = before.info.float_modes;
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let offset = b.u32(0);
    let mut seen = BTreeSet::new();
    let mut stored = 0;
    for (key, component, _) in stored_by(&before) {
        let (slot, component) = (key.slot as u16, component as u8);
        let readable = stage != Stage::Fragment || slot >= FIRST_LOCATION_SLOT;
        if !readable || key.index > 0 || rng.below(3) > 0 || !seen.insert((slot, component, key.patch)) {
            continue;
        }
        let vertex = stage == Stage::TessEval && !key.patch;
        let access =
            SlotAccess { component, patch: key.patch, vertex, ..SlotAccess::of(SlotDir::Input, slot) };
        let value = if vertex {
            let vertex = b.u32(rng.below(PATCH_VERTICES as usize) as u32);
            b.value(Op::LoadSlot, Payload::Slot(access), &[vertex, offset], Type::B32)
        } else {
            b.value(Op::LoadSlot, Payload::Slot(access), &[offset], Type::B32)
        };
        let slot = FIRST_LOCATION_SLOT + stored / 4;
        let output = SlotAccess { component: (stored % 4) as u8, ..SlotAccess::of(SlotDir::Output, slot) };
        b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
        stored += 1;
        if stored == 32 {
            break;
        }
    }
    b.return_(&[]);
    shader
}

/// A random vertex shader that is compiled by itself: some have too many distances to planes.
fn vertex(rng: &mut Rng) -> Shader {
    let options = Options::new(Gpu::new("gfx900").expect("a GPU"));
    loop {
        let shader = random_stage(rng);
        if shader.info.stage == Stage::Vertex && compile(&mut shader.clone(), &options).is_ok() {
            return shader;
        }
    }
}

/// The shaders of a pipeline.
fn shaders(shape: PipelineShape, rng: &mut Rng) -> Vec<Shader> {
    let mut all = vec![vertex(rng)];
    if matches!(shape, PipelineShape::Tess | PipelineShape::Both) {
        all.push(pass_patches(&all[0], PATCH_VERTICES));
        all.push(reads_some(Stage::TessEval, &all[1], rng));
    }
    if matches!(shape, PipelineShape::Geometry | PipelineShape::Both) {
        all.push(pass_triangles(all.last().expect("a vertex shader")));
    }
    all.push(reads_some(Stage::Fragment, all.last().expect("a vertex shader"), rng));
    for shader in &mut all {
        shader.info.float_modes[1].flush = Some(false);
    }
    all
}

fn slots(shader: &Shader) -> BTreeSet<u16> {
    let func = shader.entry();
    func.walk()
        .filter_map(|inst| match func.payload(inst) {
            Payload::Slot(access) if access.dir == SlotDir::Input => Some(access.slot),
            _ => None,
        })
        .collect()
}

/// Slots of outputs that are stored without an index. An index may never be that of an element, and that is known where the shader is optimized.
fn stored_alone(shader: &Shader) -> BTreeSet<u16> {
    let mut shader = shader.clone();
    lower_io(&mut shader);
    let func = shader.entry();
    func.walk()
        .filter_map(|inst| match func.payload(inst) {
            Payload::Slot(access) if func.op(inst) == Op::StoreSlot && access.count == 1 => Some(access.slot),
            _ => None,
        })
        .collect()
}

/// Compares each program of a pipeline with the shaders in it. Returns how many were compared.
fn compare(
    shaders: &[Shader],
    programs: Vec<Compiled>,
    options: &Options,
    seed: u64,
) -> Result<usize, String> {
    let lanes = options.gpu.lanes() as usize;
    let of = |stage| shaders.iter().find(|shader| shader.info.stage == stage);
    let text = |(step, what): (&str, String)| format!("{step}: {what}");
    let links = attribute_links(&programs.iter().collect::<Vec<_>>());
    let fragment = of(Stage::Fragment).expect("a fragment shader");
    let read: Vec<u16> = slots(fragment).into_iter().collect();
    let linked: Vec<u16> = links.iter().map(|(slot, _)| *slot).collect();
    let sure = stored_alone(shaders.iter().rev().nth(1).expect("a shader before fragments"));
    if linked != read || links.iter().any(|(slot, parameter)| parameter.is_none() && sure.contains(slot)) {
        return Err(format!("{links:?}: not a parameter for each of {read:?}"));
    }
    let read: Vec<u16> =
        links.iter().filter_map(|(slot, parameter)| parameter.is_some().then_some(*slot)).collect();
    let mut compared = 0;
    let mut programs = programs.into_iter().peekable();
    while let Some(program) = programs.next() {
        let interface = &program.args.interface;
        let stored: Vec<u16> = interface.parameters.clone();
        if !stored.is_empty() && stored != read {
            return Err(format!("{stored:?} are parameters, not {read:?}"));
        }
        let pair = |first, second| of(first).zip(of(second));
        let group = match interface.hardware {
            Some(HardwareStage::Ls | HardwareStage::LsHs) => pair(Stage::Vertex, Stage::TessControl),
            Some(HardwareStage::Es | HardwareStage::EsGs) => {
                pair(Stage::TessEval, Stage::Geometry).or(pair(Stage::Vertex, Stage::Geometry))
            }
            Some(HardwareStage::Ngg) if of(Stage::Geometry).is_some() => {
                pair(Stage::TessEval, Stage::Geometry).or(pair(Stage::Vertex, Stage::Geometry))
            }
            _ => None,
        };
        if let Some((first, second)) = group {
            let mut own = vec![program];
            if options.gpu.generation() <= Gfx::Gfx8 {
                own.extend(programs.next());
            }
            let copy = programs.next_if(|next| {
                second.info.stage == Stage::Geometry
                    && next.args.interface.hardware == Some(HardwareStage::Vs)
            });
            if let Some(expected) = expect_group(first, second, lanes, seed) {
                judge_group(&expected, &GroupPrograms::of(own, copy), options, seed).map_err(text)?;
                compared += 1;
            }
            continue;
        }
        let alone = match interface.hardware {
            Some(HardwareStage::Ps) => Some(fragment),
            _ => of(Stage::TessEval).or(of(Stage::Vertex)),
        };
        if let Some(expected) = alone.and_then(|shader| expect(shader, lanes, seed)) {
            judge(&expected, &program, options, seed).map_err(text)?;
            compared += 1;
        }
    }
    Ok(compared)
}

#[test]
fn linked_programs_do_what_the_interpreter_does() {
    let seeds = rig::seeds(4);
    let mut targets = Vec::new();
    for name in rig::GPUS {
        for wave64 in [true, false] {
            let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
            if gpu.wave64() == wave64 {
                targets.push((gpu, false));
                if matches!(gpu.generation(), Gfx::Gfx10 | Gfx::Gfx10_3) {
                    targets.push((gpu, true));
                }
            }
        }
    }
    let mut jobs = Vec::new();
    for seed in seeds {
        for &shape in PipelineShape::ALL {
            jobs.extend(targets.iter().map(|target| (seed, shape, *target)));
        }
    }
    let results = parallel::map(&jobs, |(seed, shape, (gpu, legacy))| {
        let shaders = shaders(*shape, &mut Rng::new(*seed));
        let mut options = Options::new(*gpu);
        options.graphics.legacy = *legacy;
        rig::vary(&mut options, *seed);
        let made = compile_pipeline(shaders.iter().rev().cloned().collect(), &options);
        // Stages after the vertex shader may store more distances than it does.
        if let Err(PipelineError::Compile { error: CompileError::Interface(what), .. }) = &made
            && what.contains("distances")
        {
            return Ok(0);
        }
        let made = made.map_err(|error| error.to_string());
        let result = made.and_then(|programs| compare(&shaders, programs, &options, *seed));
        result.map_err(|error| format!("{} {shape} legacy {legacy} seed {seed}: {error}", gpu.name()))
    });
    let wrong: Vec<&String> = results.iter().filter_map(|result| result.as_ref().err()).collect();
    let compared: usize = results.iter().flatten().sum();
    println!("{} pipelines, {compared} programs compared, {} wrong", jobs.len(), wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(compared > jobs.len(), "{compared}");
}

#[test]
fn shaders_that_make_no_pipeline_are_refused() {
    let options = Options::new(Gpu::new("gfx1030").expect("a GPU"));
    let all = shaders(PipelineShape::Both, &mut Rng::new(1));
    let refused = |stages: &[usize]| {
        let own = stages.iter().map(|at| all[*at].clone()).collect();
        compile_pipeline(own, &options).expect_err("not a pipeline")
    };
    assert_eq!(refused(&[0, 0]), PipelineError::Twice(Stage::Vertex));
    assert_eq!(refused(&[4]), PipelineError::Missing(Stage::Vertex));
    assert_eq!(refused(&[0, 1, 4]), PipelineError::Missing(Stage::TessEval));
    assert_eq!(refused(&[0, 2]), PipelineError::Missing(Stage::TessControl));
    let mut compute = all[0].clone();
    compute.info.stage = Stage::Compute;
    let error = compile_pipeline(vec![compute], &options).expect_err("not a pipeline");
    assert_eq!(error, PipelineError::NotGraphics(Stage::Compute));
}

/// The end of a shader.
fn at_end(shader: &mut Shader) -> Builder<'_> {
    let func = shader.entry_mut();
    let last = func.last(func.body()).expect("a return");
    Builder::before(func, last)
}

/// The shader, which also stores the number of the primitive for fragments.
fn with_number(shader: &Shader) -> Shader {
    let (mut shader, value) = (shader.clone(), SystemValue::PrimitiveId);
    lower_io(&mut shader);
    let mut b = at_end(&mut shader);
    let number = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let offset = b.u32(0);
    let output = SlotAccess::of(SlotDir::Output, value.fragment_slot().expect("a slot"));
    b.inst(Op::StoreSlot, Payload::Slot(output), &[number, offset], &[]);
    shader
}

/// A fragment shader that stores the number of the primitive.
fn reads_number() -> Shader {
    let mut shader = Shader::with_entry(Stage::Fragment, "main");
    let func = shader.entry_mut();
    let body = func.body();
    Builder::at_end(func, body).return_(&[]);
    let value = SystemValue::PrimitiveId;
    let mut b = at_end(&mut shader);
    let number = b.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let offset = b.u32(0);
    let output = SlotAccess::of(SlotDir::Output, FIRST_LOCATION_SLOT);
    b.inst(Op::StoreSlot, Payload::Slot(output), &[number, offset], &[]);
    shader
}

/// A vertex shader that stores its position and a colour.
fn simple_vertex() -> Shader {
    let mut shader = Shader::with_entry(Stage::Vertex, "main");
    shader.info.float_modes[1].flush = Some(false);
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let offset = b.u32(0);
    for (from, to) in [(FIRST_LOCATION_SLOT, 0), (FIRST_LOCATION_SLOT + 1, FIRST_LOCATION_SLOT)] {
        let input = SlotAccess::of(SlotDir::Input, from);
        let words = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], Type { lanes: 4, ..Type::B32 });
        b.inst(Op::StoreSlot, Payload::Slot(SlotAccess::of(SlotDir::Output, to)), &[words, offset], &[]);
    }
    b.return_(&[]);
    shader
}

/// An evaluation shader that stores the position of the first vertex of its patch.
fn passing_evaluation() -> Shader {
    let mut shader = Shader::with_entry(Stage::TessEval, "main");
    shader.info.float_modes[1].flush = Some(false);
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let zero = b.u32(0);
    let input = SlotAccess { vertex: true, ..SlotAccess::of(SlotDir::Input, 0) };
    let words = b.value(Op::LoadSlot, Payload::Slot(input), &[zero, zero], Type { lanes: 4, ..Type::B32 });
    b.inst(Op::StoreSlot, Payload::Slot(SlotAccess::of(SlotDir::Output, 0)), &[words, zero], &[]);
    b.return_(&[]);
    shader
}

/// Without a geometry shader, fragments read the number of the primitive that the hardware gives its provoking vertex, the first or the last one, or of the patch.
#[test]
fn fragments_read_the_number_of_the_primitive() {
    let slot = SystemValue::PrimitiveId.fragment_slot().expect("a slot");
    let (fragment, vertex) = (reads_number(), simple_vertex());
    let control = pass_patches(&vertex, PATCH_VERTICES);
    let evaluation = passing_evaluation();
    let mut draws = 0;
    for (target, mut options) in rig::targets() {
        let lanes = options.gpu.lanes() as usize;
        for (culling, last_provokes) in [(false, false), (true, false), (false, true), (true, true)] {
            options.graphics.culling = culling;
            options.graphics.last_vertex_provokes = last_provokes;
            for shaders in [vec![vertex.clone()], vec![vertex.clone(), control.clone(), evaluation.clone()]] {
                let last = shaders.last().expect("a shader").clone();
                let all = shaders.into_iter().chain([fragment.clone()]).collect();
                let programs =
                    compile_pipeline(all, &options).unwrap_or_else(|error| panic!("{target}: {error}"));
                let [.., before, pixels] = &programs[..] else { panic!("{target}: two programs") };
                let links = attribute_links(&[before, pixels]);
                assert_eq!(links, [(slot, Some(0))], "{target}");
                let numbered = with_number(&last);
                let ngg = before.args.interface.hardware == Some(HardwareStage::Ngg);
                if !ngg && last.info.stage == Stage::Vertex {
                    let given = before.args.find(Argument::VertexPrimitive).expect("the number is given");
                    assert_eq!(given.reg, PhysReg::vgpr(2), "{target}");
                }
                for seed in 1..4 {
                    let judged = if ngg {
                        let size = [23, 64, 100, 200][seed as usize % 4];
                        let draw = Draw::new(&numbered, lanes, [size, size], None, &mut Rng::new(seed));
                        let mut draw = draw.expect("it is defined");
                        if before.args.interface.culls {
                            draw.state.clockwise = true;
                        }
                        draw.cover_vertices();
                        // Patches are triangles, and so is what is culled.
                        if last.info.stage == Stage::Vertex && !before.args.interface.culls {
                            draw.corners = 1 + seed as usize % 3;
                        }
                        if last_provokes {
                            draw.provoke_last();
                        }
                        draws += 1;
                        draw.judge(before, &options, seed).map(|_| ())
                    } else {
                        let expected = expect(&numbered, lanes, seed).expect("it is defined");
                        judge(&expected, before, &options, seed)
                    };
                    assert_eq!(judged, Ok(()), "{target}, seed {seed}");
                    let expected = expect(&fragment, lanes, seed).expect("it is defined");
                    assert_eq!(judge(&expected, pixels, &options, seed), Ok(()), "{target}, seed {seed}");
                }
            }
        }
    }
    assert!(draws > 0, "primitive shaders run");
}

/// A vertex shader that is compiled alone stores the number of the primitive if it is told that fragments read it.
#[test]
fn shaders_that_are_not_linked_store_the_number_of_the_primitive() {
    let slot = SystemValue::PrimitiveId.fragment_slot().expect("a slot");
    let mut options = Options::new(Gpu::new("gfx900").expect("a GPU"));
    let parameters = |options: &Options| {
        let compiled = compile(&mut simple_vertex(), options).expect("compiled");
        compiled.args.interface.parameters
    };
    assert_eq!(parameters(&options), [FIRST_LOCATION_SLOT]);
    options.graphics.parameters = Some(vec![slot]);
    assert_eq!(parameters(&options), [slot]);
    // Another shader follows.
    options.graphics.shape = PipelineShape::Geometry;
    assert!(compile(&mut simple_vertex(), &options).is_err());
}

/// The number of the primitive and captured outputs are in LDS together.
#[test]
fn captured_vertices_have_the_number_of_the_primitive() {
    for (target, options) in rig::targets() {
        if options.gpu.generation() < Gfx::Gfx11 {
            continue;
        }
        let lanes = options.gpu.lanes() as usize;
        for seed in 0..4 {
            let mut shader = vertex(&mut Rng::new(seed));
            if capture_outputs(&mut shader, &mut Rng::new(seed)).is_empty() {
                continue;
            }
            let programs =
                compile_pipeline(vec![shader.clone(), reads_number()], &options).expect("compiled");
            let numbered = with_number(&shader);
            let draw = Draw::new(&numbered, lanes, [100, 100], None, &mut Rng::new(seed));
            let Some(draw) = draw else { continue };
            let judged = draw.capture(&programs[0], &options, seed).map(|_| ());
            assert_eq!(judged, Ok(()), "{target}, seed {seed}");
        }
    }
}

/// What a geometry shader does not store has no parameter.
#[test]
fn a_geometry_shader_that_does_not_store_the_number_leaves_it_undefined() {
    let slot = SystemValue::PrimitiveId.fragment_slot().expect("a slot");
    for (target, options) in rig::targets() {
        let vertex = simple_vertex();
        let all = vec![vertex.clone(), pass_triangles(&vertex), reads_number()];
        let programs = compile_pipeline(all, &options).unwrap_or_else(|error| panic!("{target}: {error}"));
        assert_eq!(attribute_links(&programs.iter().collect::<Vec<_>>()), [(slot, None)], "{target}");
    }
}

/// What transform feedback captures stays, though the fragment shader reads nothing of it.
#[test]
fn captured_outputs_stay_in_a_pipeline() {
    let mut captured = [0; 2];
    for (number, name) in (0..).zip(rig::GPUS) {
        let mut options = Options::new(Gpu::new(name).expect("a GPU"));
        let primitives = options.gpu.generation() >= Gfx::Gfx11;
        options.graphics.legacy = !primitives;
        let lanes = options.gpu.lanes() as usize;
        for seed in number * 8..number * 8 + 8 {
            let mut shader = vertex(&mut Rng::new(seed));
            if capture_outputs(&mut shader, &mut Rng::new(seed)).is_empty() {
                continue;
            }
            let mut fragment = Shader::with_entry(Stage::Fragment, "main");
            let func = fragment.entry_mut();
            let body = func.body();
            Builder::at_end(func, body).return_(&[]);
            let Ok(programs) = compile_pipeline(vec![shader.clone(), fragment], &options) else { continue };
            let compiled = &programs[0];
            assert!(compiled.args.interface.parameters.is_empty(), "{name}: nothing is read");
            let judged = if primitives {
                let draw = Draw::new(&shader, lanes, [23, 7], None, &mut Rng::new(seed));
                draw.map(|draw| draw.capture(compiled, &options, seed).map(|_| ()))
            } else {
                expect(&shader, lanes, seed).map(|expected| judge(&expected, compiled, &options, seed))
            };
            let Some(judged) = judged else { continue };
            judged.unwrap_or_else(|what| panic!("seed {seed}, {name}: {what:?}"));
            captured[usize::from(primitives)] += 1;
        }
    }
    assert!(captured.iter().all(|count| *count > 3), "{captured:?} pipelines capture");
}

/// A pipeline without a fragment shader has no parameters.
#[test]
fn pipelines_without_a_fragment_shader_export_positions_only() {
    for name in rig::GPUS {
        let options = Options::new(Gpu::new(name).expect("a GPU"));
        let programs = compile_pipeline(vec![vertex(&mut Rng::new(3))], &options).expect("compiled");
        assert_eq!(programs.len(), 1, "{name}");
        assert!(programs[0].args.interface.parameters.is_empty(), "{name}");
        assert!(attribute_links(&programs.iter().collect::<Vec<_>>()).is_empty(), "{name}");
    }
}
