//! Random shaders of the graphics stages: interfaces of all shapes, and loads and stores of their leaves.
//!
//! Locations do not overlap, indices are in bounds, and conditions are defined, so that nothing is undefined but outputs that were not
//! stored.

use crate::mutate::Rng;
use unwedge_shader::ir::{
    Base, Builder, Builtin, Function, InterpAt, Op, Payload, Region, Shader, Stage, Storage, SystemValue,
    Type, TypeId, TypeNode, Value, Var, VarData, VarFlags,
};

/// Vertices of a primitive, and of an output patch.
const VERTICES: u32 = 4;

/// Instructions of a shader, not counting those that compute indices.
const LENGTH: usize = 60;

const STAGES: [Stage; 5] =
    [Stage::Vertex, Stage::TessControl, Stage::TessEval, Stage::Geometry, Stage::Fragment];

/// A step of a path.
#[derive(Debug, Clone, Copy)]
enum Step {
    Member(u32),
    Element(u32),
}

/// A leaf of an input or output.
#[derive(Debug, Clone)]
struct Leaf {
    var: Var,
    steps: Vec<Step>,
    ty: Type,
    storage: Storage,
    interpolated: bool,
}

/// A random shader of a stage other than compute, which is valid and ends.
pub fn random_stage(rng: &mut Rng) -> Shader {
    let mut shader = Shader::default();
    shader.info.stage = STAGES[rng.below(STAGES.len())];
    shader.info.output_vertices = VERTICES;
    let mut leaves = Vec::new();
    for storage in [Storage::Input, Storage::Output] {
        Interface { rng, shader: &mut shader, leaves: &mut leaves, storage, next: [0; 2] }.variables();
    }
    let stage = shader.info.stage;
    let entry = shader.add_function();
    let func = shader.function_mut(entry);
    let region = func.body();
    let chosen = match stage {
        Stage::Vertex => SystemValue::VertexIndex,
        Stage::Fragment => SystemValue::SampleId,
        Stage::TessEval => SystemValue::PrimitiveId,
        _ => SystemValue::InvocationId,
    };
    let chosen = Builder::at_end(func, region).value(Op::SysVal, Payload::SysVal(chosen), &[], Type::B32);
    let mut body =
        Body { rng, func, leaves: &leaves, stage, chosen, values: vec![chosen], depth: 0, left: LENGTH };
    while body.left > 0 {
        body.step(region);
    }
    Builder::at_end(func, region).return_(&[]);
    shader
}

struct Interface<'a> {
    rng: &'a mut Rng,
    shader: &'a mut Shader,
    leaves: &'a mut Vec<Leaf>,
    storage: Storage,
    /// The next free location of vertices and of the patch.
    next: [u32; 2],
}

impl Interface<'_> {
    fn variables(&mut self) {
        for _ in 0..2 + self.rng.below(4) {
            self.located();
        }
        let (stage, output) = (self.shader.info.stage, self.storage == Storage::Output);
        let builtins: &[Builtin] = match (stage, output) {
            (Stage::Vertex, false) => &[],
            (Stage::Fragment, false) => &[Builtin::ClipDistance, Builtin::CullDistance],
            (Stage::Fragment, true) => &[Builtin::FragDepth, Builtin::SampleMask],
            (Stage::TessControl, true) | (Stage::TessEval, false) => {
                &[Builtin::Position, Builtin::ClipDistance, Builtin::TessLevelOuter, Builtin::TessLevelInner]
            }
            _ => &[Builtin::Position, Builtin::PointSize, Builtin::ClipDistance, Builtin::CullDistance],
        };
        for &builtin in builtins {
            if self.rng.below(2) == 0 {
                self.builtin(builtin);
            }
        }
    }

    /// Whether the outermost index of a variable is the vertex.
    fn is_arrayed(&self, patch: bool) -> bool {
        let output = self.storage == Storage::Output;
        !patch
            && match self.shader.info.stage {
                Stage::TessControl => true,
                Stage::TessEval | Stage::Geometry => !output,
                _ => false,
            }
    }

    fn add(&mut self, mut data: VarData, steps: Vec<Vec<Step>>, leaf: Type) {
        let patch = data.flags.has(VarFlags::PATCH);
        let arrayed = self.is_arrayed(patch);
        if arrayed {
            data.flags = data.flags.or(VarFlags::ARRAYED);
            data.ty = self.shader.types.push(TypeNode::Array { element: data.ty, len: VERTICES });
        }
        let interpolated = self.shader.info.stage == Stage::Fragment && !data.flags.has(VarFlags::FLAT);
        let var = self.shader.vars.push(data);
        for path in steps {
            let vertex = arrayed.then_some(Step::Element(VERTICES));
            let steps = vertex.into_iter().chain(path).collect();
            self.leaves.push(Leaf { var, steps, ty: leaf, storage: self.storage, interpolated });
        }
    }

    fn data(&self, ty: TypeId) -> VarData {
        VarData::new(String::new(), self.storage, ty)
    }

    fn builtin(&mut self, builtin: Builtin) {
        let scalar = self.shader.types.push(TypeNode::Leaf(Type::B32));
        let (ty, steps, leaf) = match builtin {
            Builtin::Position => {
                let leaf = Type { base: Base::B32, lanes: 4 };
                (self.shader.types.push(TypeNode::Leaf(leaf)), vec![], leaf)
            }
            Builtin::PointSize | Builtin::FragDepth => (scalar, vec![], Type::B32),
            _ => {
                let len = match builtin {
                    Builtin::TessLevelOuter => 4,
                    Builtin::TessLevelInner => 2,
                    Builtin::SampleMask => 1,
                    _ => 1 + self.rng.below(8) as u32,
                };
                let array = self.shader.types.push(TypeNode::Array { element: scalar, len });
                (array, vec![Step::Element(len)], Type::B32)
            }
        };
        let mut data = self.data(ty);
        data.builtin = Some(builtin);
        if matches!(builtin, Builtin::TessLevelOuter | Builtin::TessLevelInner) {
            data.flags = VarFlags::PATCH;
        }
        self.add(data, vec![steps], leaf);
    }

    /// A variable with a location, or two that share it.
    fn located(&mut self) {
        let (stage, output) = (self.shader.info.stage, self.storage == Storage::Output);
        let base = [Base::B16, Base::B32, Base::B32, Base::B64][self.rng.below(4)];
        let width = if base == Base::B64 { 2 } else { 1 };
        let lanes = 1 + self.rng.below(4) as u32;
        let leaf = Type::new(base, lanes).expect("a type");
        let components = lanes * width;
        let room = 4u32.saturating_sub(components) / width;
        let component = self.rng.below(room as usize + 1) as u32 * width;
        let patch = (stage == Stage::TessControl && output || stage == Stage::TessEval && !output)
            && self.rng.below(3) == 0;
        let mut flags = if patch { VarFlags::PATCH } else { VarFlags::NONE };
        if stage == Stage::Fragment && !output {
            if base == Base::B64 || self.rng.below(3) == 0 {
                flags = flags.or(VarFlags::FLAT);
            } else {
                let more = [VarFlags::NONE, VarFlags::CENTROID, VarFlags::SAMPLE, VarFlags::LINEAR];
                flags = flags.or(more[self.rng.below(4)]).or(more[self.rng.below(2) * 3]);
            }
        }
        let index = match (stage, output) {
            (Stage::Fragment | Stage::Geometry, true) => self.rng.below(2) as u8,
            _ => 0,
        };
        let (ty, steps, elements) = self.shape(leaf);
        let next = &mut self.next[usize::from(patch)];
        let location = *next + self.rng.below(2) as u32;
        *next = location + elements * components.div_ceil(4);
        let mut data = self.data(ty);
        (data.location, data.component, data.flags, data.index) =
            (Some(location), component as u8, flags, index);
        self.add(data.clone(), steps, leaf);
        // A scalar before the first component of another variable.
        if component > 0 && elements == 1 {
            let ty = self.shader.types.push(TypeNode::Leaf(Type::B32));
            let other = VarData { ty, component: 0, ..data };
            self.add(other, vec![vec![]], Type::B32);
        }
    }

    /// A type with leaves of one type, the paths to them, and how many there are.
    fn shape(&mut self, leaf: Type) -> (TypeId, Vec<Vec<Step>>, u32) {
        let node = self.shader.types.push(TypeNode::Leaf(leaf));
        let len = 2 + self.rng.below(2) as u32;
        match self.rng.below(6) {
            0..=2 => (node, vec![vec![]], 1),
            3 => {
                let array = self.shader.types.push(TypeNode::Array { element: node, len });
                (array, vec![vec![Step::Element(len)]], len)
            }
            4 => {
                let inner = self.shader.types.push(TypeNode::Array { element: node, len });
                let outer = self.shader.types.push(TypeNode::Array { element: inner, len: 2 });
                (outer, vec![vec![Step::Element(2), Step::Element(len)]], 2 * len)
            }
            _ => {
                let inner = self.shader.types.push(TypeNode::Array { element: node, len });
                let members = self.shader.types.push(TypeNode::Struct(vec![inner, node]));
                let outer = self.shader.types.push(TypeNode::Array { element: members, len: 2 });
                let array = vec![Step::Element(2), Step::Member(0), Step::Element(len)];
                (outer, vec![array, vec![Step::Element(2), Step::Member(1)]], 2 * (len + 1))
            }
        }
    }
}

struct Body<'a> {
    rng: &'a mut Rng,
    func: &'a mut Function,
    leaves: &'a [Leaf],
    stage: Stage,
    /// A number that differs between invocations.
    chosen: Value,
    values: Vec<Value>,
    depth: usize,
    left: usize,
}

impl Body<'_> {
    fn step(&mut self, region: Region) {
        self.left = self.left.saturating_sub(1);
        match self.rng.below(20) {
            0..=7 => self.load(region),
            8..=13 => self.store(region),
            14 | 15 => self.sum(region),
            16 | 17 if self.depth < 3 => self.branch(region),
            18 if self.stage == Stage::Geometry => {
                let op = if self.rng.below(3) == 0 { Op::EndPrimitive } else { Op::EmitVertex };
                let stream = Payload::Stream(self.rng.below(2) as u8);
                Builder::at_end(self.func, region).inst(op, stream, &[], &[]);
            }
            19 if self.stage == Stage::Fragment && self.rng.below(4) == 0 => {
                Builder::at_end(self.func, region).inst(Op::Demote, Payload::None, &[], &[]);
            }
            _ => {}
        }
    }

    /// The path to a random element.
    fn path(&mut self, region: Region, leaf: &Leaf) -> Vec<Value> {
        let mut path = Vec::new();
        for step in &leaf.steps {
            let mut b = Builder::at_end(self.func, region);
            path.push(match *step {
                Step::Member(number) => b.u32(number),
                Step::Element(len) if self.rng.below(2) == 0 => b.u32(self.rng.below(len as usize) as u32),
                Step::Element(VERTICES) if self.stage == Stage::TessControl && self.rng.below(2) == 0 => {
                    self.chosen
                }
                Step::Element(len) => {
                    let plus = b.u32(self.rng.below(8) as u32);
                    let sum = b.alu(Op::IAdd, &[self.chosen, plus]);
                    let len = b.u32(len);
                    b.alu(Op::UMod, &[sum, len])
                }
            });
        }
        path
    }

    fn load(&mut self, region: Region) {
        let Some(leaf) = self.rng.pick(self.leaves).cloned() else { return };
        let path = self.path(region, &leaf);
        let mut b = Builder::at_end(self.func, region);
        let places = [InterpAt::Pixel, InterpAt::Centroid, InterpAt::Sample];
        let elsewhere = leaf.storage == Storage::Input && leaf.interpolated && self.rng.below(3) == 0;
        let (op, payload) = if elsewhere {
            (Op::InterpVar, Payload::Interp(leaf.var, places[self.rng.below(3)]))
        } else {
            (Op::LoadVar, Payload::Var(leaf.var, 0))
        };
        self.values.push(b.value(op, payload, &path, leaf.ty));
    }

    /// A visible value of a type, or a constant.
    fn value(&mut self, region: Region, ty: Type) -> Value {
        let fitting: Vec<Value> = self.values.iter().copied().filter(|v| self.func.ty(*v) == ty).collect();
        match self.rng.pick(&fitting) {
            Some(value) if self.rng.below(4) != 0 => *value,
            _ => {
                let mut b = Builder::at_end(self.func, region);
                let lanes: Vec<Value> =
                    (0..ty.lanes).map(|_| b.constant(ty.base, self.rng.next_u64())).collect();
                b.vec(&lanes)
            }
        }
    }

    fn store(&mut self, region: Region) {
        let outputs: Vec<Leaf> =
            self.leaves.iter().filter(|leaf| leaf.storage == Storage::Output).cloned().collect();
        let Some(leaf) = self.rng.pick(&outputs) else { return };
        let mut args = vec![self.value(region, leaf.ty)];
        args.extend(self.path(region, leaf));
        let all = (1 << leaf.ty.lanes) - 1;
        let mask = if self.rng.below(2) == 0 { all } else { all & self.rng.next_u64() as u16 };
        Builder::at_end(self.func, region).inst(Op::StoreVar, Payload::Var(leaf.var, mask), &args, &[]);
    }

    fn sum(&mut self, region: Region) {
        let Some(&a) = self.rng.pick(&self.values) else { return };
        let b = self.value(region, self.func.ty(a));
        let sum = Builder::at_end(self.func, region).alu(Op::IAdd, &[a, b]);
        self.values.push(sum);
    }

    fn branch(&mut self, region: Region) {
        let mut b = Builder::at_end(self.func, region);
        let bit = b.u32(1 << self.rng.below(3));
        let bits = b.alu(Op::IAnd, &[self.chosen, bit]);
        let zero = b.u32(0);
        let condition = b.alu(Op::INe, &[bits, zero]);
        let (inst, then, other) = b.if_(condition, &[]);
        let visible = self.values.len();
        self.depth += 1;
        for arm in [then, other] {
            for _ in 0..1 + self.rng.below(5) {
                self.step(arm);
            }
            self.values.truncate(visible);
            Builder::at_end(self.func, arm).break_(inst, &[]);
        }
        self.depth -= 1;
    }
}
