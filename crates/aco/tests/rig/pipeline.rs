//! One wave of a graphics stage on the emulator, and the same invocations in the interpreter of the shader IR: what both leave is compared by [`super::judge`].
//!
//! Inputs are such that interpolation is exact: small whole numbers at vertices, coordinates in eighths. Denormals are kept in both.
use super::captures;
use super::textures::Textures;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::abi::{Argument, Interface, POINT_COORD_SLOT, PixelInput, descriptor_offset};
use unwedge_aco::graphics::{GraphicsOptions, MemorySlots, VertexInput};
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{Compiled, Options};
use unwedge_isa::amdgcn::Gfx;
use unwedge_isa::amdgcn::semantics::soft::{self, Env};
use unwedge_isa::amdgcn::texel::NumberFormat;
use unwedge_shader::interp::{
    self, BindingPoint, Bindings, InterfaceSlot, InvocationInput, InvocationOutput, Limits, run_stage,
};
use unwedge_shader::ir::{
    Base, FIRST_LOCATION_SLOT, InterpAt, Op, Payload, Primitive, ResourceClass, ResourceData, Shader,
    SlotDir, Stage, SystemValue, Traits,
};
use unwedge_shader::passes::lower_io;
use unwedge_sim::amdgcn::{Dispatch, SimMemory, Timing};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

pub(super) const CODE: u64 = 0x0080_0000;
pub(super) const TABLES: u64 = 0x0001_0000;
pub(super) const TABLE_STRIDE: u64 = 0x1000;
pub(super) const PUSH: u64 = 0x000f_0000;
pub(super) const VERTEX_TABLE: u64 = 0x000e_0000;
pub(super) const RINGS: u64 = 0x000d_0000;
const SAMPLE_POSITIONS: u64 = 0x000b_0000;
pub(super) const BUFFERS: u64 = 0x1000_0000;
pub(super) const BUFFER_STRIDE: u64 = 0x0010_0000;
pub(super) const VERTEX_BUFFERS: u64 = 0x2000_0000;
pub(super) const RING: u64 = 0x3000_0000;
/// The attribute ring: its bytes, where the workgroup's part begins, bytes of an element, and how many vertices are together.
pub(super) const RING_BYTES: usize = 1 << 18;
pub(super) const RING_PART: u64 = 3;
pub(super) const RING_ELEMENT: u64 = 16;
pub(super) const RING_TOGETHER: u64 = 32;
/// Elements of a vertex buffer.
pub(super) const ELEMENTS: u32 = 48;
/// Vertices that run: not a whole wave.
pub(super) const VERTICES: usize = 23;
/// How many of them transform feedback captures.
pub(super) const CAPTURED: usize = 17;
/// Bytes of a buffer without a size.
const OPEN_BUFFER: u32 = 1024;
const PUSH_BYTES: usize = 256;
/// Where parameters begin in LDS, and the quad that begins a second primitive.
const LDS_BASE: u32 = 64;
const SECOND_PRIMITIVE: usize = 3;
/// Patches that are evaluated, where they are in memory, the offset of the wave there, and the number of the first one.
pub(super) const PATCHES: usize = 5;
pub(super) const PATCH_MEMORY: u64 = 0x4000_0000;
pub(super) const PATCH_OFFSET: u32 = 0x120;
pub(super) const FIRST_PATCH: u32 = 100;
/// The number of the first primitive of a draw.
pub(super) const FIRST_PRIMITIVE: u32 = 3000;
const PAST_PATCHES: usize = 1 << 14;
/// Dwords of an attribute of a primitive.
const PARAMETERS: usize = 12;
pub(super) const STEPS: u64 = 20_000;
pub(super) const MACHINE_STEPS: u64 = 400_000;

/// How buffers are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fill {
    /// Floats and whole numbers.
    Mixed,
    /// Small whole numbers, so that loops end.
    Small,
    /// The floats 0 and 1 in turn: switches of tests, of which one is off and one is on.
    Switches,
    /// The float 256: the size of what is drawn.
    Sizes,
}

/// The bytes of each buffer.
pub(super) type BufferContents = BTreeMap<BindingPoint, Vec<u8>>;

/// What one shader is given.
pub(super) struct Case {
    pub(super) shader: Shader,
    /// The shader after it in the same program, which has the same buffers.
    pub(super) second: Option<Shader>,
    pub(super) inputs: Vec<InvocationInput>,
    pub(super) buffers: BufferContents,
    textures: Textures,
    pub(super) push: Vec<u8>,
    /// By location: words of all elements.
    pub(super) vertices: BTreeMap<u32, Vec<u32>>,
    /// Attributes whose elements are not four words.
    pub(super) formats: BTreeMap<u32, VertexInput>,
    /// Words of the slots of patches, by slot and whether it is that of the patch, patch and vertex.
    pub(super) patches: BTreeMap<(u16, bool), Vec<Vec<[u32; 4]>>>,
    /// Vertices of a patch.
    pub(super) patch_vertices: u32,
    /// Values of slots at the vertices of both primitives.
    primitives: [BTreeMap<u16, [[u32; 4]; 3]>; 2],
    /// The hardware does not compute coordinates at the centroid.
    pub(super) covered: bool,
    base_vertex: u32,
    first_instance: u32,
    pub(super) lanes: usize,
}

pub(super) fn float(rng: &mut Rng) -> u32 {
    (rng.below(17) as f32 - 8.0).to_bits()
}

pub(super) fn fill_bytes(rng: &mut Rng, count: usize, fill: Fill) -> Vec<u8> {
    let mut made = Vec::new();
    while made.len() < count {
        let word = match (fill, rng.below(2)) {
            (Fill::Mixed, 0) => float(rng),
            (Fill::Switches, _) => ((made.len() / 4 % 2) as f32).to_bits(),
            (Fill::Sizes, _) => 256f32.to_bits(),
            _ => rng.below(5) as u32,
        };
        made.extend(word.to_le_bytes());
    }
    made.truncate(count);
    made
}

/// Whether a result of the machine may be off by some units in the last place.
pub(super) fn is_inexact(op: Op) -> bool {
    matches!(op, Op::FDiv | Op::FSqrt | Op::FRsqrt | Op::FSin | Op::FCos | Op::FExp2 | Op::FLog2)
}

pub(super) fn close(a: u32, b: u32) -> bool {
    let [x, y] = [a, b].map(|bits| f64::from(f32::from_bits(bits)));
    a == b || x.is_nan() && y.is_nan() || (x - y).abs() <= 1e-4 * x.abs().max(y.abs()).max(1.0)
}

/// The words of an element with an attribute: bits of any value, of floats those of small numbers.
fn element(rng: &mut Rng, input: &VertexInput) -> [u32; 4] {
    let values = match input.format.number() {
        NumberFormat::Float => [0; 4].map(|_| float(rng)),
        _ => [0; 4].map(|_| rng.next_u64() as u32),
    };
    let bits = match input.format.number() {
        NumberFormat::Float => input.format.store(values),
        _ => values,
    };
    let bits = bits.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
    let filler = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
    let mask = u128::MAX >> (128 - 8 * u32::from(input.format.bytes()));
    let shift = 8 * input.offset;
    let bits = filler & !(mask << shift) | (bits & mask) << shift;
    [0, 32, 64, 96].map(|at| (bits >> at) as u32)
}

/// What a shader reads of an element.
fn components(words: [u32; 4], input: &VertexInput) -> [u32; 4] {
    let bits = words.iter().rev().fold(0u128, |all, word| all << 32 | u128::from(*word));
    let bits = bits >> (8 * input.offset);
    let mut values = input.format.load([0, 32, 64, 96].map(|at| (bits >> at) as u32));
    if input.swapped {
        values.swap(0, 2);
    }
    values
}

/// The float of 16 bits that is one of 32 bits.
fn half(bits: u32) -> u32 {
    soft::convert(soft::F32, soft::F16, bits.into(), Env::IEEE) as u32
}

/// The number in the lower half of a word.
pub(super) fn single(word: u32) -> f32 {
    f32::from_bits(soft::convert(soft::F16, soft::F32, (word & 0xffff).into(), Env::IEEE) as u32)
}

/// A component of an attribute.
fn attribute(rng: &mut Rng) -> u32 {
    if rng.below(4) == 0 { rng.below(7) as u32 } else { float(rng) }
}

impl Case {
    pub(super) fn with_formats(
        shader: &Shader,
        lanes: usize,
        rng: &mut Rng,
        fill: Fill,
        formats: &BTreeMap<u32, VertexInput>,
    ) -> Case {
        let mut case = Case::without_inputs(shader, lanes, rng, fill);
        case.formats.clone_from(formats);
        match case.shader.info.stage {
            Stage::Fragment => case.pixels(rng),
            Stage::TessEval => case.evaluations(rng, VERTICES.min(lanes)),
            _ => case.vertices(rng, VERTICES.min(lanes)),
        }
        case
    }

    pub(super) fn without_inputs(shader: &Shader, lanes: usize, rng: &mut Rng, fill: Fill) -> Case {
        let mut shader = shader.clone();
        lower_io(&mut shader);
        let mut buffers = BTreeMap::new();
        for data in shader.resources.values() {
            if !matches!(data.class, ResourceClass::UniformBuffer | ResourceClass::StorageBuffer) {
                continue;
            }
            let point = BindingPoint { set: data.set, binding: data.binding, index: 0 };
            let size =
                data.size.max(if data.class == ResourceClass::StorageBuffer { OPEN_BUFFER } else { 64 });
            buffers.entry(point).or_insert_with(|| fill_bytes(rng, size.next_multiple_of(16) as usize, fill));
        }
        let push = fill_bytes(rng, PUSH_BYTES, fill);
        let textures = Textures::new(&shader, rng);
        Case {
            shader,
            second: None,
            inputs: Vec::new(),
            buffers,
            textures,
            push,
            vertices: BTreeMap::new(),
            formats: BTreeMap::new(),
            patches: BTreeMap::new(),
            patch_vertices: GraphicsOptions::default().patch_vertices,
            primitives: Default::default(),
            covered: false,
            base_vertex: rng.below(9) as u32,
            first_instance: rng.below(5) as u32,
            lanes,
        }
    }

    /// Slots that the shader loads.
    fn loaded(&self) -> Vec<u16> {
        let mut slots = Vec::new();
        for inst in self.shader.entry().walk() {
            match self.shader.entry().payload(inst) {
                Payload::Slot(access) if access.dir == SlotDir::Input => {
                    slots.extend(access.slot..access.slot.saturating_add(access.count));
                }
                Payload::SysVal(SystemValue::PointCoord) => slots.push(POINT_COORD_SLOT),
                Payload::SysVal(value) if self.shader.info.stage == Stage::Fragment => {
                    slots.extend(value.fragment_slot());
                }
                _ => {}
            }
        }
        slots.sort_unstable();
        slots.dedup();
        slots
    }

    /// Components that the shader loads as 16 bits, by slot.
    fn halves(&self) -> BTreeSet<(u16, usize)> {
        let func = self.shader.entry();
        let mut halves = BTreeSet::new();
        for inst in func.walk() {
            let Payload::Slot(access) = func.payload(inst) else { continue };
            let Some(result) = func.results(inst).first().map(|result| func.ty(*result)) else { continue };
            if access.dir == SlotDir::Input && result.base == Base::B16 {
                let first = usize::from(access.component);
                for slot in access.slot..access.slot.saturating_add(access.count) {
                    halves.extend((first..first + usize::from(result.lanes)).map(|at| (slot, at)));
                }
            }
        }
        halves
    }

    /// Whether invocations exchange values beyond their quads: then it matters which helpers run.
    fn has_subgroups(&self) -> bool {
        let func = self.shader.entry();
        func.walk().any(|inst| {
            let op = func.op(inst);
            op.has(Traits::CONVERGENT)
                && !op.is_derivative()
                && !matches!(op, Op::QuadSwap | Op::QuadBroadcast)
        })
    }

    /// Points of patches that are evaluated.
    pub(super) fn evaluations(&mut self, rng: &mut Rng, count: usize) {
        for inst in self.shader.entry().walk() {
            let Payload::Slot(access) = self.shader.entry().payload(inst) else { continue };
            if access.dir != SlotDir::Input {
                continue;
            }
            let each = if access.patch { 1 } else { self.patch_vertices };
            for slot in access.slot..access.slot.saturating_add(access.count) {
                self.patches.entry((slot, access.patch)).or_insert_with(|| {
                    let words = |rng: &mut Rng| std::array::from_fn(|_| attribute(rng));
                    let vertices = |rng: &mut Rng| (0..each).map(|_| words(rng)).collect();
                    (0..PATCHES).map(|_| vertices(rng)).collect()
                });
            }
        }
        for _ in 0..count {
            let patch = rng.below(PATCHES);
            let mut input = InvocationInput::default();
            for (&(slot, patch_slot), patches) in &self.patches {
                for (vertex, words) in (0..).zip(&patches[patch]) {
                    let key = InterfaceSlot { slot: slot.into(), vertex, patch: patch_slot, index: 0 };
                    input.slots.insert(key, words.map(Some));
                }
            }
            let u = rng.below(9) as f32 / 8.0;
            let v = rng.below(9) as f32 / 8.0;
            let triangles = matches!(self.shader.info.input_primitive, None | Some(Primitive::Triangles));
            let w = if triangles { 1.0 - u - v } else { 0.0 };
            for (value, words) in [
                (SystemValue::TessCoord, [u.to_bits(), v.to_bits(), w.to_bits(), 0]),
                (SystemValue::PrimitiveId, [FIRST_PATCH + patch as u32, 0, 0, 0]),
                (SystemValue::PatchVertices, [self.patch_vertices, 0, 0, 0]),
                (SystemValue::ViewIndex, [2, 0, 0, 0]),
            ] {
                input.system_values.insert(value, words);
            }
            self.inputs.push(input);
        }
    }

    /// The memory with patches, as evaluation shaders read it.
    pub(super) fn patch_memory(&self, slots: &MemorySlots) -> Vec<u8> {
        let stride = slots.patch_bytes(self.patch_vertices);
        let mut words = vec![0xdead_0000u32; stride as usize / 4 * PATCHES];
        for (&(slot, patch_slot), patches) in &self.patches {
            let Some(at) = slots.offset(slot, patch_slot) else { continue };
            for (patch, vertices) in (0..).zip(patches) {
                for (vertex, own) in (0..).zip(vertices) {
                    let begin = if patch_slot { self.patch_vertices } else { vertex } * slots.vertex_bytes();
                    let first = (patch * stride + begin + at) as usize / 4;
                    words[first..first + 4].copy_from_slice(own);
                }
            }
        }
        bytes(&words)
    }

    pub(super) fn vertices(&mut self, rng: &mut Rng, count: usize) {
        let halves = self.halves();
        for slot in self.loaded() {
            let location = u32::from(slot - FIRST_LOCATION_SLOT.min(slot));
            let words = match self.formats.get(&location) {
                Some(input) => (0..ELEMENTS).flat_map(|_| element(rng, input)).collect(),
                None => (0..ELEMENTS * 4).map(|_| attribute(rng)).collect(),
            };
            self.vertices.insert(location, words);
        }
        for _ in 0..count {
            let (vertex, instance) = (rng.below(16) as u32, rng.below(12) as u32);
            let mut input = InvocationInput::default();
            let index = vertex + self.base_vertex;
            for (value, word) in [
                (SystemValue::VertexIndex, index),
                (SystemValue::InstanceIndex, instance + self.first_instance),
                (SystemValue::BaseVertex, self.base_vertex),
                (SystemValue::BaseInstance, self.first_instance),
                (SystemValue::DrawIndex, 1),
                (SystemValue::ViewIndex, 2),
                (SystemValue::PrimitiveId, FIRST_PRIMITIVE + index),
            ] {
                input.system_values.insert(value, [word, 0, 0, 0]);
            }
            for (location, words) in &self.vertices {
                let slot = *location + u32::from(FIRST_LOCATION_SLOT);
                let format = self.formats.get(location);
                let divided = |divisor| self.first_instance + instance.checked_div(divisor).unwrap_or(0);
                let at = format.and_then(|input| input.divisor).map_or(index, divided) as usize * 4;
                let words = [0, 1, 2, 3].map(|lane| words[at + lane]);
                let mut lanes = format.map_or(words, |input| components(words, input));
                let integers = format.is_some_and(|input| {
                    matches!(input.format.number(), NumberFormat::Uint | NumberFormat::Sint)
                });
                for (at, lane) in lanes.iter_mut().enumerate() {
                    if halves.contains(&(slot as u16, at)) && !integers {
                        *lane = half(*lane);
                    }
                }
                let lanes = lanes.map(Some);
                input.slots.insert(InterfaceSlot { slot, vertex: 0, patch: false, index: 0 }, lanes);
            }
            self.inputs.push(input);
        }
    }

    fn pixels(&mut self, rng: &mut Rng) {
        let (slots, helpers, halves) = (self.loaded(), !self.has_subgroups(), self.halves());
        for primitive in &mut self.primitives {
            for &slot in &slots {
                let word = |at: usize, rng: &mut Rng| match halves.contains(&(slot, at)) {
                    true => half(float(rng)) | (rng.next_u64() as u32) << 16,
                    false => float(rng),
                };
                let corners = std::array::from_fn(|_| std::array::from_fn(|at| word(at, rng)));
                primitive.insert(slot, corners);
            }
        }
        for lane in 0..self.lanes {
            let (quad, at) = (lane / 4, lane % 4);
            let primitive = &self.primitives[usize::from(quad >= SECOND_PRIMITIVE)];
            let mut input = InvocationInput {
                helper: helpers && at != quad % 4 && rng.below(3) == 0,
                ..Default::default()
            };
            for (&slot, corners) in primitive {
                for (vertex, lanes) in (0..).zip(corners) {
                    let key = InterfaceSlot { slot: slot.into(), vertex, patch: false, index: 0 };
                    input.slots.insert(key, lanes.map(Some));
                }
                for value in [SystemValue::PrimitiveId, SystemValue::Layer, SystemValue::ViewportIndex] {
                    if value.fragment_slot() == Some(slot) {
                        input.system_values.insert(value, [corners[0][0], 0, 0, 0]);
                    }
                }
            }
            let x = (quad % 4 * 2 + at % 2) as f32 + 0.5;
            let y = (quad / 4 * 2 + at / 2) as f32 + 0.5;
            let w = [0.25f32, 0.5, 1.0, 2.0][rng.below(4)];
            let depth = rng.below(9) as f32 / 8.0;
            for (value, words) in [
                (SystemValue::FragCoord, [x, y, depth, 1.0 / w].map(f32::to_bits)),
                (SystemValue::FrontFacing, [u32::from(quad < SECOND_PRIMITIVE), 0, 0, 0]),
                (SystemValue::SampleId, [quad as u32 % 4, 0, 0, 0]),
                (SystemValue::SamplePosition, [x - x.floor(), y - y.floor(), 0.0, 0.0].map(f32::to_bits)),
                (SystemValue::SampleMaskIn, [1 << (quad % 4), 0, 0, 0]),
                (SystemValue::ViewIndex, [2, 0, 0, 0]),
            ] {
                input.system_values.insert(value, words);
            }
            let [i, j] = [0, 1].map(|_| rng.below(9) as f32 / 8.0);
            let inverse = [0.5f32, 1.0, 2.0][rng.below(3)];
            let model = [i * inverse, j * inverse, inverse, 0.0].map(f32::to_bits);
            input.system_values.insert(SystemValue::PullModel, model);
            // Rates of the hardware are signed, of two bits in each direction. The interpreter reads the first word.
            let rates = [0, 1].map(|_| rng.below(4) as u32);
            let [in_x, in_y] = rates.map(|rate| u32::from(rate == 1));
            let words = [in_x << 2 | in_y, rates[0] << 2 | rates[1] << 4, 0, 0];
            input.system_values.insert(SystemValue::ShadingRate, words);
            for at in [InterpAt::Pixel, InterpAt::Centroid, InterpAt::Sample] {
                for linear in [false, true] {
                    let pair = [0, 1].map(|_| (rng.below(9) as f32 / 8.0).to_bits());
                    input.barycentrics.insert((at, linear), pair);
                }
            }
            if let Some(corners) = primitive.get(&POINT_COORD_SLOT) {
                let [i, j] = input.barycentrics[&(InterpAt::Pixel, false)].map(f32::from_bits);
                let place = |lane: usize| {
                    let [a, b, c] = corners.map(|corner| f32::from_bits(corner[lane]));
                    (a + i * (b - a) + j * (c - a)).to_bits()
                };
                input.system_values.insert(SystemValue::PointCoord, [place(0), place(1), 0, 0]);
            }
            self.inputs.push(input);
        }
    }

    /// What the interpreter leaves.
    pub(super) fn interpret(&self) -> Result<(Vec<InvocationOutput>, BufferContents), String> {
        let mut bindings = Bindings { push: self.push.clone(), ..Bindings::default() };
        let places: Vec<(BindingPoint, usize)> = self
            .buffers
            .iter()
            .map(|(point, bytes)| (*point, bindings.bind(*point, bytes.clone())))
            .collect();
        let limits = Limits { steps: STEPS, ..Limits::default() };
        let options = interp::Options {
            robust: true,
            races: false,
            subgroup_size: self.lanes as u32,
            limits,
            ..interp::Options::default()
        };
        let mut images = self.textures.images();
        let mut outputs = Vec::new();
        for wave in self.inputs.chunks(self.lanes) {
            let run = run_stage(&self.shader, wave.to_vec(), &mut bindings, &mut images, &options);
            let (own, report) = run.map_err(|error| error.to_string())?;
            if let Some(finding) = report.findings.first() {
                return Err(format!("undefined: {finding:?}"));
            }
            outputs.extend(own);
        }
        let buffers = places.into_iter().map(|(point, at)| (point, bindings.memory[at].clone())).collect();
        Ok((outputs, buffers))
    }

    pub(super) fn memory(
        &self,
        options: &Options,
        interface: &Interface,
        others: &[(usize, [u32; 4])],
    ) -> SimMemory {
        let generation = options.gpu.generation();
        let high = u64::from(options.address_high) << 32;
        let mut memory = SimMemory::default();
        let mut tables: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (number, (point, content)) in self.buffers.iter().enumerate() {
            let base = BUFFERS + number as u64 * BUFFER_STRIDE;
            let table = tables.entry(point.set).or_insert_with(|| vec![0; TABLE_STRIDE as usize / 4]);
            for shader in [Some(&self.shader), self.second.as_ref()].into_iter().flatten() {
                let own = |data: &ResourceData| data.set == point.set && data.binding == point.binding;
                let Some(at) = descriptor_offset(shader, point.set, point.binding) else { continue };
                let at = at as usize / 4;
                if shader.resources.values().any(own)
                    && let Some(place) = table.get_mut(at..at.saturating_add(4))
                {
                    place.copy_from_slice(&super::descriptor(base, content.len(), generation));
                }
            }
            memory.map(base, content.clone()).expect("free");
        }
        for shader in [Some(&self.shader), self.second.as_ref()].into_iter().flatten() {
            for data in shader.resources.values() {
                let Some(at) = descriptor_offset(shader, data.set, data.binding) else { continue };
                let table = tables.entry(data.set).or_insert_with(|| vec![0; TABLE_STRIDE as usize / 4]);
                self.textures.describe(data, at as usize / 4, table, generation);
            }
        }
        self.textures.map(&mut memory);
        for (set, table) in tables {
            memory.map(high | (TABLES + u64::from(set) * TABLE_STRIDE), bytes(&table)).expect("free");
        }
        memory.map(high | PUSH, self.push.clone()).expect("free");
        let mut table = vec![0; TABLE_STRIDE as usize / 4];
        for (location, words) in &self.vertices {
            let base = VERTEX_BUFFERS + u64::from(*location) * BUFFER_STRIDE;
            let at = *location as usize * 4;
            if let Some(place) = table.get_mut(at..at + 4) {
                place.copy_from_slice(&elements(base, ELEMENTS, 16, generation));
            }
            memory.map(base, bytes(words)).expect("free");
        }
        memory.map(high | VERTEX_TABLE, bytes(&table)).expect("free");
        memory.map(high | SAMPLE_POSITIONS, bytes(&sample_positions())).expect("free");
        let content = self.patch_memory(&interface.inputs);
        // What a shader reads past the end of a patch is undefined.
        let patches = [vec![0; PATCH_OFFSET as usize], content, vec![0; PAST_PATCHES]].concat();
        let mut rings = vec![0; 64];
        rings[24..28].copy_from_slice(&super::descriptor(PATCH_MEMORY, patches.len(), generation));
        rings[28..32].copy_from_slice(&ring());
        for (number, words) in others {
            rings[number * 4..number * 4 + 4].copy_from_slice(words);
        }
        memory.map(high | RINGS, bytes(&rings)).expect("free");
        memory.map(PATCH_MEMORY, patches).expect("free");
        memory.map(RING, vec![0xcd; RING_BYTES]).expect("free");
        captures::map(&mut memory, options);
        memory
    }

    pub(super) fn word(&self, argument: Argument) -> Option<u32> {
        Some(match argument {
            Argument::DescriptorSet(set) => (TABLES + u64::from(set) * TABLE_STRIDE) as u32,
            Argument::PushConstant(word) => {
                let at = word as usize * 4;
                u32::from_le_bytes(self.push.get(at..at + 4)?.try_into().ok()?)
            }
            Argument::PushConstants => PUSH as u32,
            Argument::VertexBuffers => VERTEX_TABLE as u32,
            Argument::BaseVertex => self.base_vertex,
            Argument::FirstInstance => self.first_instance,
            Argument::DrawIndex => 1,
            Argument::ViewIndex => 2,
            Argument::Rings => RINGS as u32,
            Argument::SamplePositions => SAMPLE_POSITIONS as u32,
            Argument::OffchipOffset => PATCH_OFFSET,
            Argument::GroupInfo => (VERTICES as u32) << 12 | 7 << 22,
            Argument::MergedWaveInfo => VERTICES as u32 | 7 << 8 | 1 << 28,
            Argument::AttributeRing => RING_PART as u32 | 0x8000,
            Argument::PrimitiveMask => {
                LDS_BASE | 1 << (16 + SECOND_PRIMITIVE - 1) | u32::from(self.covered) << 31
            }
            _ => return captures::word(argument, CAPTURED, 0, 0),
        })
    }

    pub(super) fn threads(&self, argument: Argument) -> Option<Vec<Vec<u32>>> {
        let each =
            |word: &dyn Fn(&InvocationInput) -> u32| vec![self.inputs.iter().map(word).collect::<Vec<u32>>()];
        let value = |input: &InvocationInput, value: SystemValue, lane: usize| {
            input.system_values.get(&value).map_or(0, |words| words[lane])
        };
        Some(match argument {
            Argument::VertexId => {
                each(&|input| value(input, SystemValue::VertexIndex, 0).wrapping_sub(self.base_vertex))
            }
            Argument::InstanceId => {
                each(&|input| value(input, SystemValue::InstanceIndex, 0).wrapping_sub(self.first_instance))
            }
            Argument::TessU => each(&|input| value(input, SystemValue::TessCoord, 0)),
            Argument::TessV => each(&|input| value(input, SystemValue::TessCoord, 1)),
            Argument::PatchId | Argument::VertexPrimitive => {
                each(&|input| value(input, SystemValue::PrimitiveId, 0))
            }
            Argument::RelativePatch => {
                each(&|input| value(input, SystemValue::PrimitiveId, 0).wrapping_sub(FIRST_PATCH))
            }
            Argument::Connectivity => vec![(0..7).map(|number| number * 0x0040_0401).collect()],
            Argument::Pixel(pixel) => match pixel {
                PixelInput::PositionX => each(&|input| value(input, SystemValue::FragCoord, 0)),
                PixelInput::PositionY => each(&|input| value(input, SystemValue::FragCoord, 1)),
                PixelInput::PositionZ => each(&|input| value(input, SystemValue::FragCoord, 2)),
                PixelInput::PositionW => {
                    each(&|input| (1.0 / f32::from_bits(value(input, SystemValue::FragCoord, 3))).to_bits())
                }
                PixelInput::FrontFace => {
                    each(&|input| value(input, SystemValue::FrontFacing, 0) * 0x3f80_0000)
                }
                PixelInput::Ancillary => each(&|input| {
                    value(input, SystemValue::SampleId, 0) << 8
                        | value(input, SystemValue::ShadingRate, 1)
                        | 1
                }),
                PixelInput::PullModel => (0..3)
                    .flat_map(|lane| each(&|input| value(input, SystemValue::PullModel, lane)))
                    .collect(),
                PixelInput::SampleCoverage => {
                    each(&|input| value(input, SystemValue::SampleMaskIn, 0) | 0x100)
                }
                _ => {
                    let (at, linear) = [InterpAt::Pixel, InterpAt::Centroid, InterpAt::Sample]
                        .into_iter()
                        .flat_map(|at| [(at, false), (at, true)])
                        .find(|(at, linear)| PixelInput::barycentric(*at, *linear) == Some(pixel))?;
                    (0..2).flat_map(|lane| each(&|input| input.barycentrics[&(at, linear)][lane])).collect()
                }
            },
            _ => return None,
        })
    }

    /// Parameters as the hardware prepares them.
    fn parameters(&self, interface: &Interface) -> Vec<u8> {
        let mut words = vec![0u32; LDS_BASE as usize / 4];
        for slot in &interface.attributes {
            let halves = interface.half_attributes.contains(slot);
            let by_vertex = interface.vertex_attributes.contains(slot);
            for primitive in &self.primitives {
                let corners = primitive.get(slot).copied().unwrap_or_default();
                let mut own = [0; PARAMETERS];
                for channel in 0..4 {
                    let corner = |vertex: usize| corners[vertex][channel];
                    let [p0, p1, p2] = [0, 1, 2].map(|vertex| match halves {
                        true => single(corner(vertex)),
                        false => f32::from_bits(corner(vertex)),
                    });
                    // What is above a half is not used.
                    let parameter = |value: f32| match halves {
                        true => half(value.to_bits()) | 0xdead_0000,
                        false => value.to_bits(),
                    };
                    own[channel] = corner(0);
                    if by_vertex {
                        (own[4 + channel], own[8 + channel]) = (corner(1), corner(2));
                        continue;
                    }
                    own[4 + channel] = parameter(p1 - p0);
                    own[8 + channel] = parameter(p2 - p0);
                }
                words.extend(own);
            }
        }
        bytes(&words)
    }

    pub(super) fn dispatch(&self, compiled: &Compiled, options: &Options, seed: u64) -> Dispatch {
        let (gpu, options_high) = (&options.gpu, options.address_high);
        let interface = &compiled.args.interface;
        let content = self.parameters(interface);
        let pixels = interface.hardware == Some(HardwareStage::Ps);
        let primitives = interface.hardware == Some(HardwareStage::Ngg);
        let helpers = self.inputs.iter().enumerate().filter(|(_, input)| input.helper);
        let helpers = helpers.fold(0u64, |mask, (lane, _)| mask | 1 << lane);
        let size = if primitives { self.lanes } else { self.inputs.len() };
        let mut dispatch = Dispatch {
            size: [size as u32, 1, 1],
            lds: if pixels { content.len() as u32 } else { compiled.code.lds_bytes },
            lds_content: content,
            scratch: compiled.code.scratch_bytes,
            mode: 0x100 | u32::from(compiled.float_mode),
            exec: pixels.then_some(!helpers),
            timing: Timing::Adversarial { seed },
            group_id_in_ttmp: gpu.generation() >= Gfx::Gfx12,
            steps: MACHINE_STEPS,
            ..Dispatch::default()
        };
        for location in compiled.args.iter() {
            let reg = location.reg.reg();
            if let Some(words) = self.word(location.argument) {
                dispatch.scalars.push((reg.0, words));
            } else if let Some(held) = self.threads(location.argument) {
                for (number, words) in (reg.index() as u8..).zip(held) {
                    dispatch.threads_hold.push((number, words));
                }
            } else if location.argument == Argument::ScratchOffset {
                dispatch.scalars.push((reg.0, 0));
            } else if location.argument == Argument::RingOffsets {
                // Later GPUs have scratch without a descriptor, and descriptors of rings in memory.
                let words = match gpu.generation() >= Gfx::Gfx11 {
                    true => [RINGS as u32, options_high, 0, 0],
                    false => super::scratch_descriptor(gpu),
                };
                dispatch.scalars.extend((reg.0..).zip(words).take(location.dwords.into()));
            }
        }
        dispatch
    }
}

/// The positions of 16 samples: with the number s, the fractions of 5s/16 and 3s/16.
fn sample_positions() -> Vec<u32> {
    let fraction = |product: u32| (f32::from(product as u8 % 16) / 16.0).to_bits();
    (0..16).flat_map(|sample| [fraction(sample * 5), fraction(sample * 3)]).collect()
}

/// A descriptor of elements that an index chooses.
pub(super) fn elements(base: u64, count: u32, stride: u32, generation: Gfx) -> [u32; 4] {
    let mut words = super::descriptor(base, 0, generation);
    words[1] |= stride << 16;
    words[2] = if generation == Gfx::Gfx8 { count * stride } else { count };
    // Indices are compared with their number.
    if generation >= Gfx::Gfx10 {
        words[3] = words[3] & !(3 << 28) | 1 << 28;
    }
    words
}

/// The descriptor of the attribute ring, whose stride the shader adds.
pub(super) fn ring() -> [u32; 4] {
    let swizzle = 3 << 30;
    let [base, rest] = [RING as u32, (RING >> 32) as u32 | swizzle];
    [base, rest, RING_BYTES as u32, 2 << 21 | 20 << 12 | 2 << 28 | 4 | 5 << 3 | 6 << 6 | 7 << 9]
}
