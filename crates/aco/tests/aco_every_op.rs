//! Every operation in every stage: each valid shader is compiled or refused by a typed error, and never breaks a phase.
//!
//! Operations come with random operands, types and payloads. Many of them belong to one stage only, such as derivatives, demotions or emitted vertices; no reader refuses them elsewhere.
//! What the code computes is not looked at. `UNWEDGE_ALL` makes many shaders of each operation, from the seed `UNWEDGE_FIRST_SEED` on.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use unwedge_aco::stages::PipelineShape;
use unwedge_aco::{CompileError, Options, compile, compile_copy, compile_merged};
use unwedge_base::entity::Entity;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::ir::{
    Access, AmdBuffer, AmdExport, AmdInput, AmdNumber, AmdRegisters, AmdTyped, AtomicOp, BarrierInfo, Base,
    Builder, Dim, ImageAccess, ImageFlags, InterpAt, MemAccess, MemoryKinds, Modes, Op, Order, Payload,
    PayloadForm, Primitive, QuadDir, Resource, ResourceClass, ResourceData, Rule, Scope, Shader, SlotAccess,
    SlotDir, Space, Stage, Storage, SystemValue, Traits, Type, TypeNode, Value, Var, VarData,
};
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;

const GPUS: [&str; 9] =
    ["gfx600", "gfx700", "gfx803", "gfx900", "gfx1010", "gfx1030", "gfx1100", "gfx1150", "gfx1200"];

/// Classes of bindings, by number.
const CLASSES: [ResourceClass; 9] = [
    ResourceClass::UniformBuffer,
    ResourceClass::StorageBuffer,
    ResourceClass::SampledImage,
    ResourceClass::StorageImage,
    ResourceClass::Sampler,
    ResourceClass::CombinedImageSampler,
    ResourceClass::UniformTexelBuffer,
    ResourceClass::StorageTexelBuffer,
    ResourceClass::InputAttachment,
];

/// Tries until an operation is valid with random types and payloads.
const TRIES: u64 = 300;

fn pick<T: Copy>(rng: &mut Rng, from: &[T]) -> T {
    from[rng.below(from.len())]
}

/// A shader of a stage that is not finished, and its variables.
fn begin(stage: Stage, rng: &mut Rng) -> (Shader, Vec<Var>) {
    let mut shader = Shader::with_entry(stage, "main");
    let info = &mut shader.info;
    info.workgroup_size = pick(rng, &[[64, 1, 1], [8, 8, 1], [1, 1, 1]]);
    (info.shared_size, info.scratch_size, info.push_size, info.constant_size) = (256, 64, 64, 16);
    info.input_primitive = Some(pick(rng, &[Primitive::Triangles, Primitive::Lines]));
    info.output_primitive = Some(Primitive::Triangles);
    (info.output_vertices, info.invocations) = (3, 1);
    if stage == Stage::Compute {
        info.modes = pick(rng, &[Modes::NONE, Modes::QUADS, Modes::LINEAR]);
    }
    for (binding, class) in (0..).zip(CLASSES) {
        let data = ResourceData::new(class, binding);
        shader.resources.push(ResourceData { size: 256, attachment: Some(0), ..data });
    }
    let mut vars = Vec::new();
    for storage in [Storage::Input, Storage::Output, Storage::Private] {
        let ty = Type { base: Base::B32, lanes: pick(rng, &[1, 4]) };
        let ty = shader.types.push(TypeNode::Leaf(ty));
        let mut var = VarData::new(String::new(), storage, ty);
        var.location = (storage != Storage::Private).then_some(1);
        vars.push(shader.vars.push(var));
    }
    (shader, vars)
}

/// A value of a type that is not a constant.
fn operand(b: &mut Builder<'_>, ty: Type, rng: &mut Rng) -> Value {
    let zero = b.u32(0);
    if ty.base == Base::Handle {
        let resource = Resource::new(rng.below(CLASSES.len()));
        return b.value(Op::Descriptor, Payload::Resource(resource, Access::NONE), &[zero], Type::HANDLE);
    }
    if rng.below(4) == 0 {
        let bits = rng.next_u64() & ty.base.mask();
        return b.splat_constant(ty, if rng.below(2) == 0 { bits & 3 } else { bits });
    }
    let buffer = Resource::new(1);
    let buffer = b.value(Op::Descriptor, Payload::Resource(buffer, Access::NONE), &[zero], Type::HANDLE);
    let lanes: Vec<Value> = (0..ty.lanes)
        .map(|lane| {
            let offset = b.u32(4 * u32::from(lane));
            let memory = MemAccess { space: Space::Storage, access: Access::NONE, align: 2 };
            let word = b.value(Op::Load, Payload::Mem(memory), &[buffer, offset], Type::B32);
            match ty.base {
                Base::B32 => word,
                Base::B1 => b.alu(Op::INe, &[word, zero]),
                base => b.convert(Op::U2U, base, word),
            }
        })
        .collect();
    if lanes.len() == 1 { lanes[0] } else { b.vec(&lanes) }
}

/// Stores a value, so that it is needed.
fn keep(b: &mut Builder<'_>, value: Value, ty: Type) {
    if ty.base == Base::Handle {
        return;
    }
    let (zero, one) = (b.u32(0), b.u32(1));
    let buffer = Resource::new(1);
    let buffer = b.value(Op::Descriptor, Payload::Resource(buffer, Access::NONE), &[zero], Type::HANDLE);
    for lane in 0..ty.lanes {
        let lane = if ty.lanes == 1 { value } else { b.extract(value, lane) };
        let word = match ty.base {
            Base::B32 => lane,
            Base::B1 => b.alu(Op::Select, &[lane, one, zero]),
            _ => b.convert(Op::U2U, Base::B32, lane),
        };
        let memory = MemAccess { space: Space::Storage, access: Access::NONE, align: 2 };
        b.inst(Op::Store, Payload::Mem(memory), &[word, buffer, zero], &[]);
    }
}

/// A payload of an operation, and the types of operands that it adds.
fn payload(op: Op, vars: &[Var], coordinates: u8, rng: &mut Rng) -> Option<(Payload, Vec<Type>)> {
    let access = pick(rng, &[Access::NONE, Access::COHERENT, Access::NONUNIFORM]);
    let space = pick(rng, Space::ALL);
    let memory = MemAccess { space, access, align: pick(rng, &[0, 1, 2, 3, 4]) };
    let address = match space {
        Space::Uniform | Space::Storage => vec![Type::HANDLE, Type::B32],
        Space::Global => vec![Type::B64],
        _ => vec![Type::B32],
    };
    let mut flags = ImageFlags::NONE;
    for (flag, _) in ImageFlags::ALL {
        if rng.below(6) == 0 {
            flags = flags.or(*flag);
        }
    }
    let image = ImageAccess {
        dim: pick(rng, Dim::ALL),
        flags,
        access,
        component: rng.below(4) as u8,
        format: pick(rng, &[0, 1, 33]),
    };
    let mut texel = Vec::new();
    for flag in [
        ImageFlags::DREF,
        ImageFlags::BIAS,
        ImageFlags::LOD,
        ImageFlags::GRAD,
        ImageFlags::OFFSET,
        ImageFlags::SAMPLE,
        ImageFlags::MIN_LOD,
    ] {
        let ty = match flag {
            ImageFlags::GRAD | ImageFlags::OFFSET => Type { base: Base::B32, lanes: coordinates },
            _ => Type::B32,
        };
        let count = usize::from(flags.has(flag)) + usize::from(flags.has(flag) && flag == ImageFlags::GRAD);
        texel.extend(vec![ty; count]);
    }
    let at = pick(rng, InterpAt::ALL);
    let interpolated = match at {
        InterpAt::AtSample => vec![Type::B32],
        InterpAt::AtOffset => vec![Type { base: Base::B32, lanes: 2 }],
        _ => Vec::new(),
    };
    let registers = AmdRegisters { vector: rng.below(2) == 0, first: rng.below(20) as u16 };
    let buffer = AmdBuffer { offset: pick(rng, &[0, 16, 5000]), access };
    Some(match PayloadForm::of_op(op) {
        PayloadForm::None => (Payload::None, vec![]),
        PayloadForm::Lane => (Payload::Lane(rng.below(4) as u8), vec![]),
        PayloadForm::SysVal => (Payload::SysVal(pick(rng, SystemValue::ALL)), vec![]),
        PayloadForm::Resource => {
            let resource = Resource::new(rng.below(CLASSES.len()));
            (Payload::Resource(resource, access), vec![])
        }
        PayloadForm::Var => (Payload::Var(pick(rng, vars), if op == Op::StoreVar { 1 } else { 0 }), vec![]),
        PayloadForm::Interp => (Payload::Interp(pick(rng, vars), at), interpolated),
        PayloadForm::Mem => (Payload::Mem(memory), address),
        PayloadForm::Atomic => (Payload::Atomic(pick(rng, AtomicOp::ALL), memory), address),
        PayloadForm::Slot => {
            let slot = SlotAccess {
                vertex: rng.below(3) == 0,
                patch: rng.below(4) == 0,
                component: rng.below(3) as u8,
                count: pick(rng, &[1, 2]),
                index: rng.below(2) as u8,
                ..SlotAccess::of(pick(rng, SlotDir::ALL), rng.below(66) as u16)
            };
            let count = 1 + usize::from(slot.vertex);
            (Payload::Slot(slot), if op == Op::LoadInterpolated { vec![] } else { vec![Type::B32; count] })
        }
        PayloadForm::Bary => (Payload::Bary(at, rng.below(2) == 0), interpolated),
        PayloadForm::Image => (Payload::Image(image), texel),
        PayloadForm::ImageAtomic => (Payload::ImageAtomic(pick(rng, AtomicOp::ALL), image), texel),
        PayloadForm::Barrier => {
            let barrier = BarrierInfo {
                execution: pick(rng, Scope::ALL),
                memory: pick(rng, Scope::ALL),
                order: pick(rng, &[Order::NONE, Order::ACQUIRE, Order::RELEASE.or(Order::ACQUIRE)]),
                kinds: pick(rng, &[MemoryKinds::NONE, MemoryKinds::SHARED, MemoryKinds::OUTPUTS]),
            };
            (Payload::Barrier(barrier), vec![])
        }
        PayloadForm::Quad => (Payload::Quad(pick(rng, QuadDir::ALL)), vec![]),
        PayloadForm::Reduce => {
            let cluster = pick(rng, &[0, 1, 2, 4, 8, 16, 32, 64]);
            (Payload::Reduce(pick(rng, Op::ALL), cluster), vec![])
        }
        PayloadForm::Scope => (Payload::Scope(pick(rng, Scope::ALL)), vec![]),
        PayloadForm::Stream => (Payload::Stream(pick(rng, &[0, 1, 3, 200])), vec![]),
        PayloadForm::Register => (Payload::Register(AmdInput::of(registers)), vec![]),
        PayloadForm::Export => {
            let export = AmdExport {
                target: pick(rng, &[0, 8, 9, 12, 20, 32]),
                enabled: rng.below(16) as u8,
                compressed: rng.below(3) == 0,
                done: rng.below(2) == 0,
                valid: rng.below(2) == 0,
            };
            (Payload::Export(export), vec![])
        }
        PayloadForm::Buffer => (Payload::Buffer(buffer), vec![]),
        PayloadForm::Typed => {
            let typed = AmdTyped {
                buffer,
                lanes: 1 + rng.below(4) as u8,
                bits: pick(rng, &[8, 16, 32]),
                number: pick(rng, AmdNumber::ALL),
                align: rng.below(5) as u8,
            };
            (Payload::Typed(typed), vec![])
        }
        PayloadForm::Number => (Payload::Number(pick(rng, &[0, 2, 3, 9, 31, 200])), vec![]),
        // Constants are operands of the others, and structured flow is not an operation of a stage.
        PayloadForm::Const
        | PayloadForm::Body
        | PayloadForm::Arms
        | PayloadForm::Target
        | PayloadForm::Callee => return None,
    })
}

/// A shader that executes an operation, perhaps where lanes are missing, if types and payload that a seed chooses fit it.
fn shader(op: Op, stage: Stage, seed: u64) -> Option<Shader> {
    let rng = &mut Rng::new(seed);
    let (mut shader, vars) = begin(stage, rng);
    let coordinates = 1 + rng.below(4) as u8;
    let (payload, extra) = payload(op, &vars, coordinates, rng)?;
    let row = op.row();
    let bases = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B32, Base::B64];
    let t = Type::new(pick(rng, &bases), pick(rng, &[1, 1, 2, 3, 4]))?;
    let of = |rule: Rule, place: usize, rng: &mut Rng| match rule {
        Rule::T(_) => t,
        Rule::Lanes(base) => t.with_base(base),
        Rule::LanesOf(_) => t.with_base(pick(rng, &bases)),
        Rule::Scalar(base) => Type::scalar(base),
        Rule::Quad => Type { base: Base::B32, lanes: 4 },
        Rule::Pair => Type { base: Base::B32, lanes: 2 },
        Rule::LaneOfT => t.lane(),
        Rule::Any if PayloadForm::of(&payload) == PayloadForm::Image && place < 3 => match place {
            _ if rng.below(2) == 0 => Type::HANDLE,
            _ => Type { base: Base::B32, lanes: coordinates },
        },
        Rule::Any => pick(rng, &[t, Type { base: Base::B32, lanes: coordinates }, Type::HANDLE]),
    };
    let mut types: Vec<Type> = Vec::new();
    for (place, rule) in row.operands.iter().enumerate() {
        types.push(of(*rule, place, rng));
    }
    types.extend(extra);
    if op == Op::Vec {
        types = vec![t.lane(); t.lanes.into()];
    }
    let result = match payload {
        Payload::SysVal(value) => Some(value.ty()),
        Payload::Resource(..) => Some(Type::HANDLE),
        _ => row.result.map(|rule| of(rule, 3, rng)),
    };
    let func = shader.entry_mut();
    let body = func.body();
    let region = if rng.below(3) == 0 {
        let mut b = Builder::at_end(func, body);
        let condition = operand(&mut b, Type::BOOL, rng);
        let (inst, then, other) = b.if_(condition, &[]);
        Builder::at_end(func, other).break_(inst, &[]);
        Some((inst, then))
    } else {
        None
    };
    let inner = region.map_or(body, |(_, then)| then);
    let mut b = Builder::at_end(func, inner);
    let args: Vec<Value> = types.iter().map(|ty| operand(&mut b, *ty, rng)).collect();
    let results: Vec<Type> = result.into_iter().collect();
    let inst = b.inst(op, payload, &args, &results);
    if !op.has(Traits::TERMINATOR) {
        if let Some(ty) = result {
            let value = func.result(inst);
            keep(&mut Builder::at_end(func, inner), value, ty);
        }
        if let Some((inst, _)) = region {
            Builder::at_end(func, inner).break_(inst, &[]);
        }
    }
    if region.is_some() || !op.has(Traits::TERMINATOR) {
        Builder::at_end(func, body).return_(&[]);
    }
    validate(&shader).is_ok().then_some(shader)
}

/// An empty shader before one of a stage that is merged with it.
fn empty() -> Shader {
    let mut shader = Shader::with_entry(Stage::Vertex, "main");
    let func = shader.entry_mut();
    let body = func.body();
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// Compiles a shader in every way in which its stage runs.
fn check(shader: &Shader, options: &Options) -> Vec<Result<(), CompileError>> {
    let stage = shader.info.stage;
    let mut options = options.clone();
    let mut results = Vec::new();
    if matches!(stage, Stage::TessControl | Stage::Geometry) {
        options.graphics.shape = PipelineShape::default().with(Stage::Vertex).with(stage);
        results.push(compile_merged(&mut empty(), &mut shader.clone(), &options).map(|_| ()));
    }
    if stage == Stage::Geometry {
        results.push(compile_copy(shader, &options).map(|_| ()));
    }
    results.push(compile(&mut shader.clone(), &options).map(|_| ()));
    results
}

#[test]
fn every_operation_is_compiled_or_refused_in_every_stage() {
    let all = std::env::var_os("UNWEDGE_ALL").is_some();
    let first = std::env::var("UNWEDGE_FIRST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let wanted = if all { 60 } else { 2 };
    let mut bad = BTreeSet::new();
    let mut absent = BTreeSet::new();
    let (mut shaders, mut compiled, mut refused) = (0, 0, 0);
    for (number, &op) in Op::ALL.iter().enumerate() {
        for &stage in Stage::ALL {
            let mut found = 0;
            for seed in first..first + TRIES * wanted {
                let Some(shader) = shader(op, stage, seed * 1009 + number as u64) else { continue };
                found += 1;
                shaders += 1;
                let name = GPUS[(found as usize + shaders) % GPUS.len()];
                for wave64 in [true, false] {
                    let gpu = Gpu::new(name).expect("a GPU").with_wave64(wave64);
                    if gpu.wave64() != wave64 {
                        continue;
                    }
                    let mut options = Options::new(gpu);
                    options.passes.validate_ir = true;
                    options.passes.validate_registers = true;
                    options.graphics.legacy = shaders % 2 == 0 && gpu.generation() < Gfx::Gfx11;
                    let results = catch_unwind(AssertUnwindSafe(|| check(&shader, &options)));
                    let what = match results {
                        Err(_) => "it panics".to_owned(),
                        Ok(results) => {
                            compiled += results.iter().filter(|result| result.is_ok()).count();
                            refused += results.iter().filter(|result| result.is_err()).count();
                            let broken = results.into_iter().find_map(|result| match result {
                                Err(error @ CompileError::Invalid { .. }) => Some(error.to_string()),
                                _ => None,
                            });
                            let Some(broken) = broken else { continue };
                            broken
                        }
                    };
                    bad.insert(format!("{} in {} on {name}, seed {seed}: {what}", op.name(), stage.name()));
                }
                if found == wanted {
                    break;
                }
            }
            if found == 0 {
                absent.insert(op.name());
            }
        }
    }
    println!("{shaders} shaders; {compiled} compiled, {refused} refused; absent: {absent:?}");
    let bad: Vec<String> = bad.into_iter().collect();
    assert!(bad.is_empty(), "{}", bad.join("\n"));
    let expected = BTreeSet::from(["block", "break", "call", "const", "continue", "if", "loop"]);
    assert_eq!(absent, expected, "operations that are not tried in a stage");
    assert!(compiled > refused, "{compiled} compiled, {refused} refused");
}
