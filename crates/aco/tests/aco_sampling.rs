//! Random accesses to images of all shapes, also with several samples: sampling with all its operands, gathers, queries, fetches, loads, stores and atomic operations, through descriptors that are
//! fixed, indexed or chosen, also where lanes choose differently. Handles of buffers are also compared. The emulator is compared with the interpreter of the shader IR.
//!
//! Coordinates and derivatives are such that rounding does not matter. `UNWEDGE_SEEDS=N` makes so many.

mod rig;

use rig::scene::{Backing, Outcome, Scene};
use std::collections::BTreeMap;
use unwedge_aco::CompileError;
use unwedge_isa::amdgcn::{Gfx, Gpu};
use unwedge_shader::interp::{DepthCompare, ImageShape, Sampler, Wrap};
use unwedge_shader::ir::{
    Access, AtomicOp, Base, Builder, Dim, ImageAccess, ImageFlags, MemAccess, Modes, Op, Payload, Resource,
    ResourceClass, ResourceData, Shader, Space, Stage, SystemValue, Type, Value,
};
use unwedge_shader::valid::validate;
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::parallel;

const INVOCATIONS: u32 = 64;
/// Words that an invocation stores.
const OWN: u32 = 32;
/// Texels of a side of level 0: a power of two.
const SIDE: u32 = 8;
const FLOATS: &str = "R32G32B32A32_SFLOAT";
const INTEGERS: &str = "R32G32B32A32_UINT";
const WORDS: &str = "R32_UINT";
const WORD_FLOATS: &str = "R32_SFLOAT";

/// Levels: none is in the middle of two, from which implementations may take either.
const LEVELS: [f32; 8] = [-1.0, 0.0, 0.25, 0.75, 1.0, 1.25, 1.75, 3.0];

/// How an access finds its descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Fixed,
    /// By an index that differs between lanes.
    Index,
    /// By a select between two bindings.
    Select,
    /// By a path between two bindings.
    Path,
    /// In a loop, of which each iteration has another.
    Loop,
}

const CHOICES: [Choice; 5] = [Choice::Fixed, Choice::Index, Choice::Select, Choice::Path, Choice::Loop];

/// A shader that is made.
struct Made {
    shader: Shader,
    backings: BTreeMap<(u32, u32), Backing>,
    next_word: u32,
    /// Gathers from a given level may have offsets.
    offset_gathers: bool,
}

struct Shape {
    dim: Dim,
    array: bool,
    samples: u32,
}

impl Shape {
    fn random(rng: &mut Rng, buffers: bool) -> Shape {
        let dims = [Dim::D1, Dim::D2, Dim::D2, Dim::D3, Dim::Cube, Dim::Cube, Dim::Buffer];
        let dim = dims[rng.below(if buffers { 7 } else { 6 })];
        Shape { dim, array: !matches!(dim, Dim::D3 | Dim::Buffer) && rng.below(2) == 0, samples: 1 }
    }

    /// Several samples for some of the shapes that can have them.
    fn with_samples(self, rng: &mut Rng) -> Shape {
        let several = self.dim == Dim::D2 && rng.below(2) == 0;
        Shape { samples: if several { 2 << rng.below(3) } else { 1 }, ..self }
    }

    fn image(&self, levels: u32) -> ImageShape {
        let size = match self.dim {
            Dim::D1 => [SIDE, 1, 1],
            Dim::Buffer => [64, 1, 1],
            Dim::D3 => [SIDE, SIDE, SIDE],
            _ => [SIDE, SIDE, 1],
        };
        let cubes = if self.dim == Dim::Cube { 6 } else { 1 };
        let levels = if self.dim == Dim::Buffer { 1 } else { levels };
        ImageShape {
            layers: if self.array { 2 * cubes } else { cubes },
            levels: if self.samples > 1 { 1 } else { levels },
            samples: self.samples,
            ..ImageShape::new(self.dim, size)
        }
    }

    fn flags(&self) -> ImageFlags {
        let array = if self.array { ImageFlags::ARRAY } else { ImageFlags::NONE };
        if self.samples > 1 { array.or(ImageFlags::MS) } else { array }
    }
}

fn float(b: &mut Builder<'_>, value: f32) -> Value {
    b.u32(value.to_bits())
}

fn lane(b: &mut Builder<'_>) -> Value {
    let id = SystemValue::LocalInvocationId;
    let ids = b.value(Op::SysVal, Payload::SysVal(id), &[], id.ty());
    b.extract(ids, 0)
}

/// Some bits of the lane's number.
fn bits(b: &mut Builder<'_>, first: u32, mask: u32) -> Value {
    let lane = lane(b);
    let first = b.u32(first);
    let shifted = b.alu(Op::UShr, &[lane, first]);
    let mask = b.u32(mask);
    b.alu(Op::IAnd, &[shifted, mask])
}

/// A sample that texels of the shape have: the same in all lanes, or not.
fn sample(rng: &mut Rng, b: &mut Builder<'_>, shape: &Shape) -> Value {
    match rng.below(3) {
        0 => b.u32(rng.below(shape.samples as usize) as u32),
        _ => bits(b, rng.below(3) as u32, shape.samples - 1),
    }
}

impl Made {
    fn new(derivatives: bool, offset_gathers: bool) -> Made {
        let mut shader = Shader::with_entry(Stage::Compute, "main");
        shader.info.workgroup_size = [INVOCATIONS, 1, 1];
        if derivatives {
            shader.info.modes = Modes::LINEAR;
        }
        let mut made = Made { shader, backings: BTreeMap::new(), next_word: 0, offset_gathers };
        let bytes = (INVOCATIONS * OWN * 4) as usize;
        made.bind(ResourceClass::StorageBuffer, Dim::Buffer, 1, Backing::Buffer { bytes });
        made
    }

    fn bind(&mut self, class: ResourceClass, dim: Dim, count: u32, backing: Backing) -> Resource {
        let binding = self.shader.resources.len() as u32;
        self.backings.insert((0, binding), backing);
        let data = ResourceData { count, dim, ..ResourceData::new(class, binding) };
        self.shader.resources.push(data)
    }

    fn builder(&mut self) -> Builder<'_> {
        let func = self.shader.entry_mut();
        let body = func.body();
        Builder::at_end(func, body)
    }

    /// A handle of one of two bindings, each of two descriptors.
    fn handle(&mut self, rng: &mut Rng, choice: Choice, pair: [Resource; 2]) -> Value {
        let mut b = self.builder();
        let descriptor = |b: &mut Builder<'_>, of: usize, index: Value, access: Access| {
            b.value(Op::Descriptor, Payload::Resource(pair[of], access), &[index], Type::HANDLE)
        };
        let fixed = b.u32(rng.below(2) as u32);
        let (first, mask) = (rng.below(4) as u32, 1);
        match choice {
            Choice::Fixed => descriptor(&mut b, 0, fixed, Access::NONE),
            Choice::Index => {
                let index = bits(&mut b, first, mask);
                descriptor(&mut b, 0, index, Access::NONUNIFORM)
            }
            Choice::Select | Choice::Path => {
                let bit = if rng.below(4) == 0 { fixed } else { bits(&mut b, first, mask) };
                let zero = b.u32(0);
                let condition = b.alu(Op::IEq, &[bit, zero]);
                let other = if rng.below(2) == 0 { fixed } else { bits(&mut b, first + 1, 1) };
                let access = Access::NONUNIFORM;
                if choice == Choice::Select {
                    let yes = descriptor(&mut b, 0, fixed, Access::NONE);
                    let no = descriptor(&mut b, rng.below(2), other, access);
                    return b.alu(Op::Select, &[condition, yes, no]);
                }
                let (check, then, otherwise) = b.if_(condition, &[Type::HANDLE]);
                let mut arm = Builder::at_end(b.func, then);
                let yes = descriptor(&mut arm, 0, other, access);
                arm.break_(check, &[yes]);
                let mut arm = Builder::at_end(b.func, otherwise);
                let no = descriptor(&mut arm, 1, fixed, Access::NONE);
                arm.break_(check, &[no]);
                b.func.result(check)
            }
            Choice::Loop => {
                // Lanes leave after one or two iterations, with the handle of the last one.
                let zero = b.u32(0);
                let start = descriptor(&mut b, 0, fixed, Access::NONE);
                let (whole, body) = b.loop_(&[zero, start], &[Type::HANDLE]);
                let (count, handle) = (b.func.params(body)[0], b.func.params(body)[1]);
                let mut inner = Builder::at_end(b.func, body);
                let limit = bits(&mut inner, first, mask);
                let done = inner.alu(Op::UGe, &[count, limit]);
                let (check, then, other) = inner.if_(done, &[]);
                Builder::at_end(inner.func, then).break_(whole, &[handle]);
                Builder::at_end(inner.func, other).break_(check, &[]);
                let mut inner = Builder::at_end(b.func, body);
                let one = inner.u32(1);
                let next = inner.alu(Op::IAdd, &[count, one]);
                let handle = descriptor(&mut inner, 1, one, Access::NONE);
                inner.continue_(whole, &[next, handle]);
                b.func.result(whole)
            }
        }
    }

    /// Stores lanes in the output.
    fn store(&mut self, value: Value) {
        let ty = self.shader.entry().ty(value);
        let words = u32::from(ty.lanes) * ty.base.bits().div_ceil(32);
        let first = self.next_word.min(OWN - words) * 4;
        self.next_word += words;
        let output = self.shader.resources.keys().next().expect("the output");
        let mut b = self.builder();
        let zero = b.u32(0);
        let handle = b.value(Op::Descriptor, Payload::Resource(output, Access::NONE), &[zero], Type::HANDLE);
        let lane = lane(&mut b);
        let (own, first) = (b.u32(OWN * 4), b.u32(first));
        let start = b.alu(Op::IMul, &[lane, own]);
        let at = b.alu(Op::IAdd, &[start, first]);
        let mem = MemAccess { space: Space::Storage, align: 2, access: Access::NONE };
        let align = if ty.base == Base::B64 { 3 } else { 2 };
        b.inst(Op::Store, Payload::Mem(MemAccess { align, ..mem }), &[value, handle, at], &[]);
    }

    /// Coordinates in the middle of a texel, or a quarter of one from there: affine in the quad, with steps that are powers of two.
    fn coordinates(&mut self, rng: &mut Rng, shape: &Shape) -> Value {
        let cube = shape.dim == Dim::Cube;
        let mut lanes = Vec::new();
        let major = rng.below(3);
        let negative = rng.below(2) == 0;
        let steps: [f32; 2] = [0; 2].map(|_| 1.0 / (1u32 << (2 + rng.below(4))) as f32);
        for axis in 0..usize::from(shape.dim.coordinates()) {
            let first = rng.below(3) as u32 + 2;
            let mut b = self.builder();
            let scale = 1.0 / (SIDE * 4) as f32;
            if cube && axis == major {
                lanes.push(float(&mut b, if negative { -1.0 } else { 1.0 }));
                continue;
            }
            // Quads share the rest.
            let number = bits(&mut b, first, 3);
            let number = b.convert(Op::U2F, Base::B32, number);
            let (scale, start) = (float(&mut b, scale), float(&mut b, (rng.below(8) as f32 + 0.5) * scale));
            let mut at = b.alu(Op::FMul, &[number, scale]);
            at = b.alu(Op::FAdd, &[at, start]);
            if axis == 2 && !cube {
                lanes.push(at);
                continue;
            }
            let bit = if cube { axis != (major + 1) % 3 } else { axis % 2 == 1 };
            let step = bits(&mut b, u32::from(bit), 1);
            let step = b.convert(Op::U2F, Base::B32, step);
            let length = float(&mut b, steps[usize::from(bit)]);
            let step = b.alu(Op::FMul, &[step, length]);
            at = b.alu(Op::FAdd, &[at, step]);
            if cube {
                // From -1 to 1.
                let half = float(&mut b, 0.5);
                at = b.alu(Op::FSub, &[at, half]);
            }
            lanes.push(at);
        }
        if shape.array {
            let mut b = self.builder();
            let layer = bits(&mut b, 4, 1);
            lanes.push(b.convert(Op::U2F, Base::B32, layer));
        }
        self.builder().vec(&lanes)
    }

    fn texel(&mut self, rng: &mut Rng, shape: &Shape) -> Value {
        let mut lanes = Vec::new();
        let mut b = self.builder();
        for axis in 0..shape.dim.coordinates() {
            lanes.push(match (shape.dim, axis) {
                (Dim::Cube, 2) => {
                    let (number, five) = (bits(&mut b, 3, 7), b.u32(5));
                    b.alu(Op::UMin, &[number, five])
                }
                (Dim::Buffer, _) => lane(&mut b),
                (_, 2) => bits(&mut b, 1 + rng.below(4) as u32, 7),
                (Dim::D2 | Dim::D3 | Dim::Cube, axis) => bits(&mut b, 3 * u32::from(axis), 7),
                _ => bits(&mut b, 0, 7),
            });
        }
        if shape.array {
            lanes.push(bits(&mut b, 5, 1));
        }
        b.vec(&lanes)
    }

    fn sample(&mut self, rng: &mut Rng, derivatives: bool, choice: Choice) {
        use ImageFlags as F;
        let shape = Shape::random(rng, false);
        let integers = rng.below(5) == 0;
        let op = [Op::ImageSample, Op::ImageSample, Op::ImageSample, Op::ImageGather, Op::ImageQueryLod]
            [rng.below(5)];
        let op = if op == Op::ImageQueryLod && !derivatives { Op::ImageSample } else { op };
        let op = if op == Op::ImageGather && matches!(shape.dim, Dim::D1 | Dim::D3) {
            Op::ImageSample
        } else {
            op
        };
        let compares = !integers && op != Op::ImageQueryLod && shape.dim != Dim::D3 && rng.below(3) == 0;
        let level = match op {
            Op::ImageGather => [F::LOD, F::NONE][rng.below(2)],
            _ => [F::NONE, F::BIAS, F::LOD, F::GRAD][rng.below(4)],
        };
        let level = if level == F::BIAS && !derivatives { F::NONE } else { level };
        let linear = !integers && rng.below(2) == 0;
        // Edges of cubes are not compared in filters: corners differ.
        let linear = linear && shape.dim != Dim::Cube;
        // Derivatives along the axis of a face make levels that are not exact.
        let exact = shape.dim != Dim::Cube || level != F::GRAD;
        let wraps = [Wrap::Repeat, Wrap::MirroredRepeat, Wrap::ClampToEdge, Wrap::ClampToBorder];
        let sampler = Sampler {
            mag_linear: linear,
            min_linear: linear,
            // Whether a query rounds the level is not defined.
            mip_linear: op == Op::ImageQueryLod || !integers && exact && rng.below(2) == 0,
            wrap: [0; 3].map(|_| wraps[rng.below(4)]),
            compare: compares.then_some(DepthCompare::LessEqual),
            max_lod: 15.0,
            ..Sampler::default()
        };
        let format = if integers { INTEGERS } else { FLOATS };
        let backing = Backing::Image { format, shape: shape.image(3), sampler };
        let pair = [0; 2].map(|_| self.bind(ResourceClass::CombinedImageSampler, shape.dim, 2, backing));
        let handle = self.handle(rng, choice, pair);
        let coordinates = self.coordinates(rng, &shape);
        let mut flags = F::NONE;
        let mut args = vec![handle, handle];
        if op == Op::ImageQueryLod {
            let mut b = self.builder();
            let lanes: Vec<Value> =
                (0..shape.dim.coordinates()).map(|at| b.extract(coordinates, at)).collect();
            let coordinates = b.vec(&lanes);
            args.push(coordinates);
        } else {
            args.push(coordinates);
            flags = shape.flags();
            if compares {
                flags = flags.or(F::DREF);
                let mut b = self.builder();
                args.push(float(&mut b, rng.below(16) as f32 - 7.5));
            }
            flags = flags.or(level);
            // From gfx11 on a gather from a given level has no offset.
            let offset = op != Op::ImageGather || level == F::NONE || self.offset_gathers;
            let mut b = self.builder();
            match level {
                F::BIAS => args.push(float(&mut b, rng.below(4) as f32)),
                F::LOD => args.push(float(&mut b, LEVELS[rng.below(LEVELS.len())])),
                F::GRAD => {
                    let lanes = shape.dim.coordinates();
                    for along in 0..2 {
                        let power = 1.0 / (1u32 << (1 + rng.below(4))) as f32;
                        // One axis, so that the length is exact.
                        let axis = rng.below(lanes.into()) as u8;
                        let part = |at: u8| {
                            if at == axis { power * if along == 0 { 1.0 } else { -0.5 } } else { 0.0 }
                        };
                        let parts: Vec<Value> = (0..lanes).map(|at| float(&mut b, part(at))).collect();
                        args.push(b.vec(&parts));
                    }
                }
                _ => {}
            }
            if shape.dim != Dim::Cube && offset && rng.below(3) == 0 {
                flags = flags.or(F::OFFSET);
                let lanes: Vec<Value> = (0..shape.dim.coordinates())
                    .map(|_| b.u32((rng.below(16) as u32).wrapping_sub(8)))
                    .collect();
                args.push(b.vec(&lanes));
            }
            let quad = derivatives && level != F::LOD;
            if op == Op::ImageSample && (quad || level == F::GRAD) && rng.below(4) == 0 {
                flags = flags.or(F::MIN_LOD);
                args.push(float(&mut b, 1.0));
            }
        }
        let component = if op == Op::ImageGather && !compares { rng.below(4) as u8 } else { 0 };
        let access = ImageAccess { dim: shape.dim, flags, access: Access::READONLY, component, format: 0 };
        let lanes = match op {
            Op::ImageQueryLod => 2,
            Op::ImageSample if compares => 1,
            _ => 4,
        };
        let ty = Type { base: Base::B32, lanes };
        let value = self.builder().value(op, Payload::Image(access), &args, ty);
        self.store(value);
    }

    /// Fetches and queries.
    fn fetch(&mut self, rng: &mut Rng, choice: Choice) {
        let shape = Shape::random(rng, true);
        let buffer = shape.dim == Dim::Buffer;
        // Cubes are not fetched.
        let cube = shape.dim == Dim::Cube;
        let shape = if cube { Shape { dim: Dim::D2, array: true, samples: 1 } } else { shape };
        let shape = shape.with_samples(rng);
        let sampler = Sampler::default();
        let backing = Backing::Image { format: INTEGERS, shape: shape.image(2), sampler };
        let class = if buffer { ResourceClass::UniformTexelBuffer } else { ResourceClass::SampledImage };
        let pair = [0; 2].map(|_| self.bind(class, shape.dim, 2, backing));
        let handle = self.handle(rng, choice, pair);
        let own = match (buffer, shape.samples) {
            (true, _) => ImageFlags::NONE,
            (false, 1) => ImageFlags::LOD,
            _ => ImageFlags::SAMPLE,
        };
        let flags = shape.flags().or(own);
        let access = ImageAccess { dim: shape.dim, flags, access: Access::READONLY, component: 0, format: 0 };
        let at = self.texel(rng, &shape);
        let mut b = self.builder();
        let level = b.u32(0);
        let last = if shape.samples > 1 { sample(rng, &mut b, &shape) } else { level };
        let args: Vec<Value> = [handle, at].into_iter().chain((!buffer).then_some(last)).collect();
        let quad = Type { base: Base::B32, lanes: 4 };
        let texel = b.value(Op::ImageFetch, Payload::Image(access), &args, quad);
        self.store(texel);
        let plain = ImageAccess { flags: flags.without(ImageFlags::OPERANDS), ..access };
        let lanes = shape.dim.coordinates() + u8::from(shape.array);
        let mut b = self.builder();
        let level = b.u32(0);
        let size =
            b.value(Op::ImageSize, Payload::Image(plain), &[handle, level], Type { base: Base::B32, lanes });
        self.store(size);
        let count = if shape.samples > 1 || rng.below(4) == 0 { Op::ImageSamples } else { Op::ImageLevels };
        let count = self.builder().value(count, Payload::Image(plain), &[handle], Type::B32);
        self.store(count);
    }

    /// A load, store or atomic operation.
    fn storage(&mut self, rng: &mut Rng, choice: Choice) {
        let shape = Shape::random(rng, true).with_samples(rng);
        let atomic = rng.below(2) == 0;
        let ops =
            [AtomicOp::Add, AtomicOp::UMax, AtomicOp::IMin, AtomicOp::Or, AtomicOp::Xor, AtomicOp::FAdd];
        let op = ops[rng.below(ops.len())];
        let format = match (atomic, op) {
            (true, AtomicOp::FAdd) => WORD_FLOATS,
            (true, _) => WORDS,
            _ => INTEGERS,
        };
        let backing = Backing::Image { format, shape: shape.image(1), sampler: Sampler::default() };
        let buffer = shape.dim == Dim::Buffer;
        let class = if buffer { ResourceClass::StorageTexelBuffer } else { ResourceClass::StorageImage };
        let pair = [0; 2].map(|_| self.bind(class, shape.dim, 2, backing));
        let handle = self.handle(rng, choice, pair);
        let at = self.texel(rng, &shape);
        let access = ImageAccess {
            dim: shape.dim,
            flags: shape.flags(),
            access: Access::NONE,
            component: 0,
            format: 0,
        };
        let mut b = self.builder();
        let own = lane(&mut b);
        let mut place = vec![handle, at];
        let access = if shape.samples > 1 {
            place.push(sample(rng, &mut b, &shape));
            ImageAccess { flags: access.flags.or(ImageFlags::SAMPLE), ..access }
        } else {
            access
        };
        let with = |value: Value| [&[value][..], &place].concat();
        if atomic {
            let value = if op == AtomicOp::FAdd { b.convert(Op::U2F, Base::B32, own) } else { own };
            b.value(Op::ImageAtomic, Payload::ImageAtomic(op, access), &with(value), Type::B32);
            return;
        }
        let quad = Type { base: Base::B32, lanes: 4 };
        let texel = b.value(Op::ImageLoad, Payload::Image(access), &place, quad);
        // Each lane has a texel of its own, whose descriptor all lanes have.
        if shape.dim == Dim::D2 && choice == Choice::Fixed {
            let changed = b.alu(Op::INot, &[texel]);
            b.inst(Op::ImageStore, Payload::Image(access), &with(changed), &[]);
        }
        self.store(texel);
    }

    /// Buffers that are chosen.
    fn buffer(&mut self, rng: &mut Rng, choice: Choice) {
        let backing = Backing::Buffer { bytes: 256 };
        let pair = [0; 2].map(|_| self.bind(ResourceClass::StorageBuffer, Dim::Buffer, 2, backing));
        let handle = self.handle(rng, choice, pair);
        if rng.below(3) == 0 {
            let choice = CHOICES[rng.below(CHOICES.len())];
            let other = self.handle(rng, choice, pair);
            let op = if rng.below(2) == 0 { Op::IEq } else { Op::INe };
            let mut b = self.builder();
            let same = b.alu(op, &[handle, other]);
            let [yes, no] = [1, 2].map(|number| b.u32(number));
            let chosen = b.alu(Op::Select, &[same, yes, no]);
            self.store(chosen);
        }
        let mut b = self.builder();
        let at = lane(&mut b);
        let four = b.u32(4);
        let at = b.alu(Op::IMul, &[at, four]);
        let mem = MemAccess { space: Space::Storage, align: 2, access: Access::NONE };
        let value = if rng.below(2) == 0 {
            b.value(Op::Load, Payload::Mem(mem), &[handle, at], Type::B32)
        } else {
            let one = b.u32(1);
            b.value(Op::Atomic, Payload::Atomic(AtomicOp::Add, mem), &[one, handle, at], Type::B32)
        };
        self.store(value);
        let size = self.builder().value(Op::BufferSize, Payload::None, &[handle], Type::B32);
        self.store(size);
    }

    fn finish(mut self) -> Scene {
        self.builder().return_(&[]);
        Scene { shader: self.shader, backings: self.backings, push: Vec::new(), groups: [1; 3], seed: 1 }
    }
}

/// The GPU that a scene runs on.
fn gpu(seed: u64) -> Gpu {
    let name = rig::GPUS[seed as usize % rig::GPUS.len()];
    Gpu::new(name).expect("a GPU").with_wave64((seed / 9).is_multiple_of(2))
}

fn random(seed: u64) -> Scene {
    let mut rng = Rng::new(seed);
    let derivatives = rng.below(3) != 0;
    let mut made = Made::new(derivatives, gpu(seed).generation() < Gfx::Gfx11);
    for _ in 0..1 + rng.below(3) {
        let choice = CHOICES[rng.below(CHOICES.len())];
        match rng.below(6) {
            0 => made.fetch(&mut rng, choice),
            1 => made.storage(&mut rng, choice),
            2 => made.buffer(&mut rng, choice),
            _ => made.sample(&mut rng, derivatives, choice),
        }
    }
    Scene { seed, ..made.finish() }
}

fn print(shader: &Shader) -> String {
    unwedge_shader::text::print(shader)
}

/// Whether a scene gathers with an offset from a given level, on a GPU without an instruction for that.
fn lacks_gather(seed: u64, name: &str) -> bool {
    let shader = random(seed).shader;
    let func = shader.entry();
    let mut flags = func.walk().filter_map(|inst| match func.payload(inst) {
        Payload::Image(image) if func.op(inst) == Op::ImageGather => Some(image.flags),
        _ => None,
    });
    let gpu = Gpu::new(name).expect("a GPU");
    gpu.generation() >= Gfx::Gfx11
        && flags.any(|flags| flags.has(ImageFlags::LOD) && flags.has(ImageFlags::OFFSET))
}

/// All scenes agree on a GPU of each generation.
#[test]
fn images_and_chosen_descriptors() {
    let seeds: Vec<u64> = rig::seeds(180).collect();
    let outcomes = parallel::map(&seeds, |&seed| {
        let scene = random(seed);
        validate(&scene.shader).unwrap_or_else(|error| panic!("{seed}: {error}\n{}", print(&scene.shader)));
        let gpu = gpu(seed);
        (seed, gpu.name(), scene.judge(gpu))
    });
    let mut wrong = Vec::new();
    let (mut agree, mut refused) = (0, 0);
    for (seed, name, outcome) in &outcomes {
        if matches!(outcome, Outcome::Refused(_) | Outcome::Wrong(_)) {
            let scene = random(*seed);
            println!("{seed}: {:#?}\n{}", scene.backings, print(&scene.shader));
        }
        match outcome {
            Outcome::Agrees => agree += 1,
            Outcome::Refused(CompileError::Operation { op: Op::ImageGather, .. })
                if lacks_gather(*seed, name) =>
            {
                refused += 1;
            }
            Outcome::Undefined(reason) => println!("{seed} {name}: undefined: {reason}"),
            Outcome::Refused(reason) => wrong.push(format!("{seed} {name}: refused: {reason}")),
            Outcome::Wrong(reason) => wrong.push(format!("{seed} {name}: {reason}")),
        }
    }
    println!("{agree} of {} agree, {refused} are refused", outcomes.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!((agree + refused) * 10 > outcomes.len() * 9, "{agree} agree");
}

/// An offset is in texels of the level that is gathered from, not of level 0.
#[test]
fn gathers_from_a_level_have_offsets_in_its_texels() {
    const SEED: u64 = 910_231;
    for name in rig::GPUS {
        match random(SEED).judge(Gpu::new(name).expect("a GPU")) {
            Outcome::Agrees => assert!(!lacks_gather(SEED, name), "{name}"),
            Outcome::Refused(error) => assert!(lacks_gather(SEED, name), "{name}: {error}"),
            outcome => panic!("{name}: {outcome:?}"),
        }
    }
}
