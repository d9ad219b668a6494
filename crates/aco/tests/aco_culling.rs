//! Primitive shaders that cull: workgroups of several waves on the emulator, judged by a reference in exact arithmetic and by the interpreter of the shader IR.
//!
//! `UNWEDGE_SEEDS=N` takes so many workgroups.

mod rig;

use rig::build::build;
use rig::culling::{CullReference, Draw, Position};
use rig::group::judge::judge_culled;
use rig::group::{build_group, expect_group};
use unwedge_aco::Options;
use unwedge_aco::culling::CullState;
use unwedge_isa::amdgcn::Gpu;
use unwedge_shader::ir::{
    Base, Builder, FIRST_LOCATION_SLOT, Op, Payload, Primitive, Shader, SlotAccess, SlotDir, Stage,
    SystemValue, Type,
};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;
use unwedge_testkit::shaders::random_stage;

/// Elements of the buffer with positions.
const POSITIONS: usize = 48;

fn targets() -> Vec<Options> {
    let mut all = Vec::new();
    for name in ["gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"] {
        for wave64 in [true, false] {
            let mut options = Options::new(Gpu::new(name).expect("a GPU").with_wave64(wave64));
            options.graphics.culling = true;
            all.push(options);
        }
    }
    all
}

fn seeds(count: u64) -> Vec<u64> {
    rig::seeds(count).collect()
}

/// A vertex shader with the position in the first attribute, and other outputs that depend on the vertex, the instance and the second attribute.
fn vertex_shader() -> Shader {
    let mut shader = Shader::with_entry(Stage::Vertex, "main");
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let zero = b.u32(0);
    let access = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT);
    let four = Type { lanes: 4, ..Type::B32 };
    let position = b.value(Op::LoadSlot, Payload::Slot(access), &[zero], four);
    let second = SlotAccess { slot: FIRST_LOCATION_SLOT + 1, ..access };
    let color = b.value(Op::LoadSlot, Payload::Slot(second), &[zero], four);
    let doubled = b.alu(Op::FAdd, &[color, color]);
    let [vertex, instance] = [SystemValue::VertexIndex, SystemValue::InstanceIndex]
        .map(|value| b.value(Op::SysVal, Payload::SysVal(value), &[], Type::B32));
    let both = b.alu(Op::IMul, &[vertex, instance]);
    for (slot, value) in
        [(0, position), (1, vertex), (FIRST_LOCATION_SLOT, doubled), (FIRST_LOCATION_SLOT + 2, both)]
    {
        let access = SlotAccess { dir: SlotDir::Output, slot, ..access };
        b.inst(Op::StoreSlot, Payload::Slot(access), &[value, zero], &[]);
    }
    b.return_(&[]);
    shader
}

/// Positions of one sort.
fn positions(rng: &mut Rng, sort: u64) -> Vec<Position> {
    let whole = |rng: &mut Rng, most: usize| rng.below(2 * most + 1) as f32 - most as f32;
    let [dx, dy] = [0, 1].map(|_| whole(rng, 900) / 1024.0);
    (0..POSITIONS)
        .map(|_| match sort {
            // Small numbers, with w of both signs.
            0 => [whole(rng, 3), whole(rng, 3), 0.5, whole(rng, 2) + [0.0, 1.0, 2.0][rng.below(3)]],
            // Near a line, so that areas are small.
            1 => {
                let at = whole(rng, 1000);
                let [x, y] = [dx, dy].map(|slope| slope * at + whole(rng, 1) / 1024.0);
                let w = [1.0, 1.0, 1.0, 512.0][rng.below(4)];
                [x, y, 0.5, w]
            }
            // Small on the screen.
            2 => {
                let [x, y] = [dx, dy].map(|middle| middle + whole(rng, 40) / 65536.0);
                let w = [1.0, 1.0, 2.0, 0.5][rng.below(4)];
                [x * w, y * w, 0.5, w]
            }
            // What is not a number, is without end, or nearly nothing.
            _ => std::array::from_fn(|_| {
                [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, 1e38, -0.0, 1.0, -1.0, 2.0, 0.5]
                    [rng.below(10)]
            }),
        })
        .collect()
}

fn random_state(rng: &mut Rng) -> CullState {
    let mut on = || rng.below(2) == 0;
    CullState {
        counterclockwise: on(),
        clockwise: on(),
        degenerate: on(),
        outside: on(),
        small: on(),
        precision: -8,
    }
}

fn sized(rng: &mut Rng) -> [usize; 2] {
    [[23, 7], [100, 90], [64, 64], [130, 200], [256, 130], [3, 1]][rng.below(6)]
}

/// The results of workgroups: how many primitives had to stay and to go.
fn sums(results: Vec<Option<Result<[usize; 2], String>>>) -> (usize, [usize; 2]) {
    let (mut runs, mut sure, mut wrong) = (0, [0; 2], Vec::new());
    for result in results.into_iter().flatten() {
        match result {
            Ok(own) => {
                runs += 1;
                (0..2).for_each(|at| sure[at] += own[at]);
            }
            Err(what) => wrong.push(what),
        }
    }
    println!("{runs} workgroups, {} primitives had to stay, {} to go", sure[0], sure[1]);
    let count = wrong.len();
    wrong.truncate(20);
    assert!(wrong.is_empty(), "{count} are wrong: {wrong:#?}");
    (runs, sure)
}

fn one(
    shader: &Shader,
    options: &Options,
    positions: Option<&[Position]>,
    seed: u64,
) -> Option<Result<[usize; 2], String>> {
    let mut rng = Rng::new(seed ^ 0x5eed);
    let lanes = options.gpu.lanes() as usize;
    let counts = sized(&mut rng);
    let Some(mut draw) = Draw::new(shader, lanes, counts, positions, &mut rng).filter(Draw::is_placed) else {
        println!("seed {seed}: undefined");
        return None;
    };
    draw.state = random_state(&mut rng);
    draw.viewport = [[16.0, -16.0, 16.0, 16.0], [960.0, 540.0, 960.0, 540.0]][rng.below(2)];
    let compiled = match build(shader, options) {
        Ok(compiled) => compiled,
        Err(("compile", what)) => {
            println!("seed {seed}: {what}");
            return None;
        }
        Err((step, what)) => return Some(Err(format!("seed {seed} {step}: {what}"))),
    };
    if !compiled.args.interface.culls {
        println!("seed {seed}: does not cull");
        return None;
    }
    let judged = draw.judge(&compiled, options, seed);
    let target = format!("{} wave{lanes}", options.gpu.name());
    Some(judged.map_err(|(step, what)| format!("seed {seed}, {target}, {:?}: {step} {what}", draw.state)))
}

#[test]
fn only_what_cannot_be_seen_is_culled() {
    let (targets, shader) = (targets(), vertex_shader());
    for sort in 0..4 {
        let results = parallel::map(&seeds(60), |seed| {
            let mut rng = Rng::new(*seed);
            let positions = positions(&mut rng, sort);
            one(&shader, &targets[*seed as usize % targets.len()], Some(&positions), *seed)
        });
        let (runs, sure) = sums(results);
        // Of numbers without end nothing is known, unless they are beyond a side.
        let least = if sort < 3 { 1 } else { 0 };
        assert!(
            runs * 10 > seeds(60).len() * 9 && sure[0] >= least && sure[1] > 0,
            "sort {sort} says something"
        );
    }
}

#[test]
fn random_shaders_cull() {
    let targets = targets();
    let results = parallel::map(&seeds(600), |seed| {
        let shader = random_stage(&mut Rng::new(*seed));
        matches!(shader.info.stage, Stage::Vertex | Stage::TessEval)
            .then(|| one(&shader, &targets[*seed as usize % targets.len()], None, *seed))
            .flatten()
    });
    let (runs, sure) = sums(results);
    assert!(runs > 0 && sure[1] > 0, "shaders cull");
}

/// A vertex shader whose position consists of small integers from the bits of an attribute.
fn small_positions() -> Shader {
    let mut shader = Shader::with_entry(Stage::Vertex, "main");
    let func = shader.entry_mut();
    let body = func.body();
    let mut b = Builder::at_end(func, body);
    let zero = b.u32(0);
    let access = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT);
    let vertex = b.value(Op::SysVal, Payload::SysVal(SystemValue::VertexIndex), &[], Type::B32);
    let bits = b.value(Op::LoadSlot, Payload::Slot(access), &[zero], Type::B32);
    let factor = b.u32(0x9e37_79b1);
    let mixed = b.alu(Op::IAdd, &[bits, vertex]);
    let mixed = b.alu(Op::IMul, &[mixed, factor]);
    let lanes = [(20, 7, 3), (24, 7, 3), (16, 1, 0), (28, 3, 1)].map(|(shift, mask, less)| {
        let [shift, mask, less] = [shift, mask, less].map(|bits| b.u32(bits));
        let part = b.alu(Op::UShr, &[mixed, shift]);
        let part = b.alu(Op::IAnd, &[part, mask]);
        let part = b.alu(Op::ISub, &[part, less]);
        b.convert(Op::I2F, Base::B32, part)
    });
    let position = b.vec(&lanes);
    for (slot, value) in [(0, position), (FIRST_LOCATION_SLOT, vertex)] {
        let access = SlotAccess { dir: SlotDir::Output, slot, ..access };
        b.inst(Op::StoreSlot, Payload::Slot(access), &[value, zero], &[]);
    }
    b.return_(&[]);
    shader
}

/// A geometry shader that emits vertices of its triangle in the given order, with cuts between strips.
fn strips(order: &[Option<u32>]) -> Shader {
    let mut shader = Shader::with_entry(Stage::Geometry, "main");
    shader.info.input_primitive = Some(Primitive::Triangles);
    shader.info.output_primitive = Some(Primitive::Triangles);
    shader.info.output_vertices = order.iter().flatten().count() as u32;
    let func = shader.entry_mut();
    let body = func.body();
    for vertex in order {
        let Some(vertex) = vertex else {
            Builder::at_end(func, body).inst(Op::EndPrimitive, Payload::Stream(0), &[], &[]);
            continue;
        };
        for (slot, lanes) in [(0, 4), (FIRST_LOCATION_SLOT, 1)] {
            let mut b = Builder::at_end(func, body);
            let (vertex, offset) = (b.u32(*vertex), b.u32(0));
            let output = SlotAccess::of(SlotDir::Output, slot);
            let input = SlotAccess { dir: SlotDir::Input, vertex: true, ..output };
            let ty = Type { lanes, ..Type::B32 };
            let value = b.value(Op::LoadSlot, Payload::Slot(input), &[vertex, offset], ty);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
        }
        Builder::at_end(func, body).inst(Op::EmitVertex, Payload::Stream(0), &[], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

#[test]
fn emitted_triangles_are_culled() {
    let (targets, first) = (targets(), small_positions());
    let results = parallel::map(&seeds(200), |seed| {
        let mut rng = Rng::new(*seed);
        let order: Vec<Option<u32>> =
            (0..3 + rng.below(7)).map(|_| (rng.below(6) > 0).then(|| rng.below(3) as u32)).collect();
        let shader = strips(&order);
        if shader.info.output_vertices == 0 {
            return None;
        }
        let mut options = targets[*seed as usize % targets.len()].clone();
        options.graphics.last_vertex_provokes = rng.below(2) == 1;
        let options = &options;
        let lanes = options.gpu.lanes() as usize;
        let target = format!("seed {seed}, {} wave{lanes}", options.gpu.name());
        let wrong = |(step, what): (&str, String)| format!("{target}: {step} {what}");
        let programs = match build_group(&first, &shader, options) {
            Ok(programs) => programs,
            Err(problem) => return Some(Err(wrong(problem))),
        };
        let expected = expect_group(&first, &shader, lanes, *seed)?;
        let state = CullState { small: false, ..random_state(&mut rng) };
        let culls = CullReference { state, viewport: [16.0, -16.0, 16.0, 16.0], inexact: false };
        match judge_culled(&expected, &programs, options, *seed, culls) {
            Ok(sure) => sure.map(Ok),
            Err(problem) => Some(Err(wrong(problem))),
        }
    });
    let (runs, sure) = sums(results);
    assert!(runs * 2 > seeds(200).len() && sure[0] > 0 && sure[1] > 0, "shaders cull");
}

/// A shader that writes memory, or depends on the lanes, is compiled as it is.
#[test]
fn shaders_that_depend_on_lanes_do_not_cull() {
    let options = &targets()[0];
    let culls = |shader: &Shader| build(shader, options).expect("it is compiled").args.interface.culls;
    assert!(culls(&vertex_shader()));
    let mut shader = vertex_shader();
    let func = shader.entry_mut();
    let last = func.last(func.body()).expect("the end");
    let mut b = Builder::before(func, last);
    let lane = b.value(Op::SysVal, Payload::SysVal(SystemValue::SubgroupInvocation), &[], Type::B32);
    let zero = b.u32(0);
    let access = SlotAccess::of(SlotDir::Output, FIRST_LOCATION_SLOT + 3);
    b.inst(Op::StoreSlot, Payload::Slot(access), &[lane, zero], &[]);
    assert!(!culls(&shader));
}
