//! Random shaders: the whole, its functions and its results.
//!
//! They have all types, elementwise operations, variables, memory spaces, handles, subgroup operations, functions, and flow with breaks
//! and continues through several levels. Nothing in them is undefined: divisors, indices and bit fields are limited, variables are
//! stored before they are loaded, and invocations share memory only between barriers.

use crate::mutate::Rng;
use unwedge_shader::ir::{
    Base, Builder, FloatMode, Func, Function, Inst, Modes, Op, Payload, Region, Resource, ResourceClass,
    ResourceData, Round, Shader, Storage, SystemValue, Type, TypeNode, Value, Var, VarData,
};

/// What a random shader may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Everything.
    Full,
    /// What [`super::spirv::module`] writes.
    Spirv,
}

/// Invocations of a workgroup: two subgroups of four, one of eight, or part of a wider one.
pub(super) const INVOCATIONS: u32 = 8;

/// Bytes of a storage buffer that belong to one invocation.
pub(super) const OWN: u32 = 128;

/// Offset of the results, after the bytes that belong to the invocations of two workgroups.
const RESULTS: u32 = 2 * INVOCATIONS * OWN;

/// Bytes of an invocation's results.
const RESULT_BYTES: u32 = 64;

/// Offset of the words that atomics of all invocations change, after the results.
pub(super) const COMMON: u32 = RESULTS + 2 * INVOCATIONS * RESULT_BYTES;

/// Bytes of workgroup memory that belong to one invocation.
pub(super) const OWN_SHARED: u32 = 64;

/// Bytes of scratch memory and bytes of push constants.
pub(super) const SMALL: u32 = 64;

/// A step of a path to a leaf of a variable.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step {
    Member(u32),
    Element(u32),
}

/// A leaf of a variable.
#[derive(Debug, Clone)]
pub(super) struct Leaf {
    pub var: Var,
    pub steps: Vec<Step>,
    pub ty: Type,
}

/// What the shader has beside its functions.
pub(super) struct Plan {
    pub dialect: Dialect,
    /// Whether barriers and operations that need all invocations are used. Otherwise invocations may return early.
    pub together: bool,
    /// Buffers that are read and written.
    pub storage: [Resource; 2],
    /// An array of two uniform buffers.
    pub uniform: Resource,
    pub image: Resource,
    /// Functions that may be called, with parameters and results.
    pub callees: Vec<(Func, Vec<Type>, Vec<Type>)>,
}

/// A structured instruction that is open.
#[derive(Clone)]
pub(super) struct Target {
    pub inst: Inst,
    pub results: Vec<Type>,
    /// Of a loop: types of its parameters but for the last one, which is a counter that only grows.
    pub again: Option<(Vec<Type>, Value)>,
}

/// Values at the start of every function.
#[derive(Clone, Copy)]
pub(super) struct Start {
    /// Invocation of the workgroup.
    pub local: Value,
    /// Invocation of the dispatch.
    pub global: Value,
    /// First byte of what the invocation owns in a storage buffer.
    pub own: Value,
}

pub(super) struct Generator<'a> {
    pub rng: &'a mut Rng,
    pub func: &'a mut Function,
    pub plan: &'a Plan,
    pub start: Start,
    /// Values that are visible here.
    pub values: Vec<Value>,
    pub leaves: Vec<Leaf>,
    pub targets: Vec<Target>,
    /// The first target that may be left.
    pub floor: usize,
    /// Whether all invocations of the workgroup are active here.
    pub uniform: bool,
    /// What the function returns.
    pub results: Vec<Type>,
    /// Instructions that may still be made.
    pub left: usize,
}

pub(super) const BASES: [Base; 5] = [Base::B1, Base::B8, Base::B16, Base::B32, Base::B64];

/// A random type of bits.
pub(super) fn random_type(rng: &mut Rng, dialect: Dialect) -> Type {
    let lanes: &[u32] =
        if dialect == Dialect::Full { &[1, 1, 1, 1, 2, 3, 4, 8, 16] } else { &[1, 1, 1, 2, 3, 4] };
    let base = BASES[rng.below(BASES.len())];
    Type::new(base, lanes[rng.below(lanes.len())]).expect("a type")
}

fn random_types(rng: &mut Rng, dialect: Dialect, most: usize) -> Vec<Type> {
    (0..rng.below(most + 1)).map(|_| random_type(rng, dialect)).collect()
}

fn buffer(class: ResourceClass, binding: u32, count: u32) -> ResourceData {
    ResourceData { count, ..ResourceData::new(class, binding) }
}

/// A variable of a random shape, and its leaves.
fn variable(rng: &mut Rng, shader: &mut Shader, dialect: Dialect, storage: Storage) -> Vec<Leaf> {
    let ty = random_type(rng, dialect);
    let leaf = shader.types.push(TypeNode::Leaf(ty));
    let (root, paths) = match rng.below(4) {
        0 => (leaf, vec![vec![]]),
        1 | 2 => {
            let len = 2 + rng.below(2) as u32;
            (shader.types.push(TypeNode::Array { element: leaf, len }), vec![vec![Step::Element(len)]])
        }
        _ => {
            let inner = shader.types.push(TypeNode::Array { element: leaf, len: 2 });
            let members = shader.types.push(TypeNode::Struct(vec![leaf, inner]));
            let root = shader.types.push(TypeNode::Array { element: members, len: 2 });
            let member = vec![Step::Element(2), Step::Member(0)];
            (root, vec![member, vec![Step::Element(2), Step::Member(1), Step::Element(2)]])
        }
    };
    let var = shader.vars.push(VarData::new(String::new(), storage, root));
    paths.into_iter().map(|steps| Leaf { var, steps, ty }).collect()
}

fn variables(
    rng: &mut Rng,
    shader: &mut Shader,
    dialect: Dialect,
    storage: Storage,
    count: usize,
) -> Vec<Leaf> {
    (0..count).flat_map(|_| variable(rng, shader, dialect, storage)).collect()
}

/// A shader that is valid, ends, and does nothing undefined, but for results of floats that are not numbers.
pub fn random(rng: &mut Rng, dialect: Dialect) -> Shader {
    let mut shader = Shader::default();
    shader.info.workgroup_size = [INVOCATIONS, 1, 1];
    shader.info.shared_size = INVOCATIONS * OWN_SHARED;
    if dialect == Dialect::Full {
        shader.info.scratch_size = SMALL;
        shader.info.push_size = SMALL;
        shader.info.modes = Modes::LINEAR;
    }
    for mode in &mut shader.info.float_modes {
        let round = [Round::NearestEven, Round::Zero][rng.below(2)];
        *mode = FloatMode { round, flush: [None, Some(false), Some(true)][rng.below(3)], preserve: true };
    }
    let storage =
        [0, 1].map(|binding| shader.resources.push(buffer(ResourceClass::StorageBuffer, binding, 1)));
    let uniform = shader.resources.push(buffer(ResourceClass::UniformBuffer, 2, 2));
    let image = shader.resources.push(buffer(ResourceClass::StorageImage, 3, 1));
    let together = rng.below(2) == 0;
    let mut plan = Plan { dialect, together, storage, uniform, image, callees: Vec::new() };
    let private = variables(rng, &mut shader, dialect, Storage::Private, 2);
    let entry = shader.add_function();
    for _ in 0..rng.below(3) {
        let func = shader.add_function();
        let most = if dialect == Dialect::Full { 3 } else { 1 };
        let (params, results) = (random_types(rng, dialect, 3), random_types(rng, dialect, most));
        function(rng, &mut shader, &plan, func, &private, (&params, &results));
        plan.callees.push((func, params, results));
    }
    function(rng, &mut shader, &plan, entry, &private, (&[], &[]));
    shader
}

/// Writes a function. The entry point stores what it has computed.
fn function(
    rng: &mut Rng,
    shader: &mut Shader,
    plan: &Plan,
    func: Func,
    private: &[Leaf],
    (params, results): (&[Type], &[Type]),
) {
    let is_entry = std::ptr::eq(shader.function(func), shader.entry());
    let local = variables(rng, shader, plan.dialect, Storage::Function, 2);
    let func = shader.function_mut(func);
    func.results = results.to_vec();
    let region = func.body();
    let mut values: Vec<Value> = params.iter().map(|&ty| func.add_param(region, ty)).collect();
    let start = start(func, region);
    values.extend([start.local, start.global]);
    let mut generator = Generator {
        rng,
        func,
        plan,
        start,
        values,
        leaves: Vec::new(),
        targets: Vec::new(),
        floor: 0,
        uniform: is_entry && plan.together,
        results: results.to_vec(),
        left: if is_entry { 110 } else { 30 },
    };
    generator.store_all(region, &local);
    if is_entry {
        generator.store_all(region, private);
        generator.start_memory(region);
    }
    generator.leaves = [local.as_slice(), private].concat();
    while generator.left > 0 {
        generator.body(region);
    }
    if is_entry {
        generator.store_results(region);
    }
    let returned = generator.operands(region, results);
    Builder::at_end(generator.func, region).return_(&returned);
}

fn start(func: &mut Function, region: Region) -> Start {
    let mut builder = Builder::at_end(func, region);
    let mut value = |value: SystemValue| builder.value(Op::SysVal, Payload::SysVal(value), &[], value.ty());
    let local = value(SystemValue::LocalInvocationIndex);
    let group = value(SystemValue::WorkgroupId);
    let group = builder.extract(group, 0);
    let (count, own) = (builder.u32(INVOCATIONS), builder.u32(OWN));
    let first = builder.alu(Op::IMul, &[group, count]);
    let global = builder.alu(Op::IAdd, &[first, local]);
    let own = builder.alu(Op::IMul, &[global, own]);
    Start { local, global, own }
}

impl Generator<'_> {
    /// Stores every element of variables.
    fn store_all(&mut self, region: Region, leaves: &[Leaf]) {
        for leaf in leaves {
            let mut paths = vec![Vec::new()];
            for step in &leaf.steps {
                let numbers = match *step {
                    Step::Member(number) => number..number + 1,
                    Step::Element(len) => 0..len,
                };
                let longer = |path: &Vec<u32>| {
                    let path = path.clone();
                    numbers.clone().map(move |number| [path.as_slice(), &[number]].concat())
                };
                paths = paths.iter().flat_map(longer).collect();
            }
            for path in paths {
                let mut args = vec![self.value(region, leaf.ty)];
                let mut builder = Builder::at_end(self.func, region);
                args.extend(path.into_iter().map(|number| builder.u32(number)));
                let all = ((1u32 << leaf.ty.lanes) - 1) as u16;
                builder.inst(Op::StoreVar, Payload::Var(leaf.var, all), &args, &[]);
            }
        }
    }

    /// Stores the latest values, folded into words.
    fn store_results(&mut self, region: Region) {
        let bits = |value: &&Value| self.func.ty(**value).base != Base::Handle;
        let words = (RESULT_BYTES / 4) as usize;
        let values: Vec<Value> = self.values.iter().rev().filter(bits).take(words).copied().collect();
        let buffer = self.descriptor(region, 0);
        let global = self.start.global;
        let mut builder = Builder::at_end(self.func, region);
        let (stride, first) = (builder.u32(RESULT_BYTES), builder.u32(RESULTS));
        let start = builder.alu(Op::IMul, &[global, stride]);
        let start = builder.alu(Op::IAdd, &[start, first]);
        for (number, value) in values.into_iter().enumerate() {
            let ty = builder.func.ty(value);
            let lane = builder.extract(value, ty.lanes - 1);
            let word = match ty.base {
                Base::B1 => {
                    let (one, zero) = (builder.u32(1), builder.u32(0));
                    builder.alu(Op::Select, &[lane, one, zero])
                }
                Base::B32 => lane,
                _ => builder.convert(Op::U2U, Base::B32, lane),
            };
            let offset = builder.u32(number as u32 * 4);
            let at = builder.alu(Op::IAdd, &[start, offset]);
            builder.inst(Op::Store, super::memory::words_of_storage(), &[word, buffer, at], &[]);
        }
    }
}
