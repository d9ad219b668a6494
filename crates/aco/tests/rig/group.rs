//! Workgroups of two stages before the rasterizer: vertex and tessellation control shaders, or vertex or tessellation evaluation shaders and geometry shaders. The interpreter runs the first shader, then the second one with what the
//! first leaves. Where the GPU runs them merged, so does the emulator; else each is run alone, with what the interpreter says of the first one in memory.

use super::pipeline::{
    BUFFER_STRIDE, BUFFERS, BufferContents, CODE, Case, FIRST_PATCH, Fill, MACHINE_STEPS, PATCH_OFFSET, RING,
    RING_ELEMENT, RING_PART, RING_TOGETHER, RINGS, STEPS, close, has_undefined, is_inexact, stored_by,
};
use super::recorded::Problem;
use std::collections::BTreeMap;
use unwedge_aco::abi::{Argument, Interface};
use unwedge_aco::stages::HardwareStage;
use unwedge_aco::{Compiled, Options, compile, compile_copy, compile_merged};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{
    self, Bindings, InterfaceSlot, InvocationInput, Limits, NoImages, VertexOutput, run_stage,
};
use unwedge_shader::ir::{
    Builder, FIRST_LOCATION_SLOT, Op, Payload, Primitive, Shader, SlotAccess, SlotDir, Stage, SystemValue,
    Type,
};
use unwedge_shader::passes::lower_io;
use unwedge_sim::amdgcn::{
    Control, Dispatch, FaultKind, MessageKind, Outcome, Program, SimMemory, Timing, Watch, WaveMessage, run,
    watch,
};
use unwedge_testkit::mutate::Rng;
use unwedge_testkit::pack::bytes;

/// Where patches are left, and the offset there; tessellation factors; the rings before and after geometry shaders.
const LEFT: u64 = 0x5000_0000;
const LEFT_BYTES: usize = 1 << 16;
const LEFT_OFFSET: u32 = 0x240;
const FACTORS: u64 = 0x5100_0000;
const FACTOR_OFFSET: u32 = 0x80;
const ES_RING: u64 = 0x5200_0000;
const ES_OFFSET: u32 = 0x100;
const GS_RING: u64 = 0x5300_0000;
const GS_RING_BYTES: usize = 1 << 22;
const GS_WAVE: u32 = 5;
const RING_BYTES: usize = 1 << 20;
/// What memory has that nobody wrote.
const NOTHING: u8 = 0xcd;
/// Vertices of geometry shaders, of tessellation patches; the patches and primitives of a workgroup.
const VERTICES: usize = 45;
const PATCH_VERTICES: usize = 3;
const GROUP_PATCHES: usize = 14;
const GROUP_PRIMITIVES: usize = 37;

/// A slot of a vertex or patch.
type Slots = BTreeMap<InterfaceSlot, [Option<u32>; 4]>;

/// What a geometry invocation left in the first stream: vertices, and after how many of them a strip ends.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Strips {
    vertices: Vec<Slots>,
    cuts: Vec<usize>,
}

/// What the interpreter makes of a workgroup.
pub struct GroupExpectation {
    first: Case,
    second: Shader,
    /// Of the first shader, by vertex.
    passed: Vec<Slots>,
    /// Of a geometry shader: the vertices of each primitive, and its invocation.
    primitives: Vec<(Vec<u32>, u32)>,
    /// Of a tessellation control shader, by patch.
    patches: Vec<Slots>,
    /// Of a geometry shader, by primitive.
    strips: Vec<Strips>,
    buffers: Option<BufferContents>,
    inexact: bool,
}

/// A vertex shader that passes on what another shader loads of vertices.
pub fn pass_through(second: &Shader) -> Shader {
    let mut second = second.clone();
    lower_io(&mut second);
    let mut slots: Vec<u16> = Vec::new();
    for inst in second.entry().walk() {
        if let Payload::Slot(access) = second.entry().payload(inst)
            && access.dir == SlotDir::Input
            && !access.patch
        {
            slots.extend(access.slot..access.slot.saturating_add(access.count));
        }
    }
    slots.sort_unstable();
    slots.dedup();
    let mut shader = Shader::default();
    shader.info.stage = Stage::Vertex;
    shader.info.name = "main".to_owned();
    shader.info.float_modes = second.info.float_modes;
    shader.add_function();
    let func = shader.entry_mut();
    let body = func.body();
    let access = SlotAccess {
        dir: SlotDir::Input,
        vertex: false,
        patch: false,
        component: 0,
        slot: 0,
        count: 1,
        index: 0,
    };
    for (number, slot) in (0..).zip(slots) {
        let mut b = Builder::at_end(func, body);
        let offset = b.u32(0);
        let input = SlotAccess { slot: FIRST_LOCATION_SLOT + number, ..access };
        let ty = Type { lanes: 4, ..Type::B32 };
        let value = b.value(Op::LoadSlot, Payload::Slot(input), &[offset], ty);
        let output = SlotAccess { dir: SlotDir::Output, slot, ..access };
        b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// A geometry shader that passes on triangles, with what another shader stores of their vertices.
pub fn pass_triangles(first: &Shader) -> Shader {
    let mut first = first.clone();
    lower_io(&mut first);
    let mut stored: Vec<(u32, u8)> =
        stored_by(&first).into_iter().map(|(key, component, _)| (key.slot, component as u8)).collect();
    stored.sort_unstable();
    stored.dedup();
    let mut shader = Shader::default();
    shader.info.stage = Stage::Geometry;
    shader.info.name = "main".to_owned();
    shader.info.float_modes = first.info.float_modes;
    shader.info.input_primitive = Some(Primitive::Triangles);
    shader.info.output_primitive = Some(Primitive::Triangles);
    shader.info.output_vertices = 3;
    shader.add_function();
    let func = shader.entry_mut();
    let body = func.body();
    for vertex in 0..3 {
        for &(slot, component) in &stored {
            let mut b = Builder::at_end(func, body);
            let (vertex, offset) = (b.u32(vertex), b.u32(0));
            let output = SlotAccess {
                dir: SlotDir::Output,
                vertex: false,
                patch: false,
                component,
                slot: slot as u16,
                count: 1,
                index: 0,
            };
            let input = SlotAccess { dir: SlotDir::Input, vertex: true, ..output };
            let value = b.value(Op::LoadSlot, Payload::Slot(input), &[vertex, offset], Type::B32);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
        }
        Builder::at_end(func, body).inst(Op::EmitVertex, Payload::Stream(0), &[], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

fn primitive_vertices(primitive: Option<Primitive>) -> usize {
    match primitive {
        Some(Primitive::Points) => 1,
        Some(Primitive::Lines) => 2,
        Some(Primitive::LinesAdjacency) => 4,
        Some(Primitive::TrianglesAdjacency) => 6,
        _ => 3,
    }
}

/// The slots of one vertex, as those of a vertex of a primitive.
fn as_vertex(slots: &Slots, vertex: u32) -> impl Iterator<Item = (InterfaceSlot, [Option<u32>; 4])> {
    slots.iter().map(move |(key, words)| (InterfaceSlot { vertex, ..*key }, *words))
}

/// Interprets two shaders. `None`: they do not end, or are undefined, with what they were given.
pub fn expect_group(first: &Shader, second: &Shader, lanes: usize, seed: u64) -> Option<GroupExpectation> {
    let [first, second] = [first, second].map(|shader| {
        let mut shader = shader.clone();
        shader.info.float_modes[1].flush = Some(false);
        lower_io(&mut shader);
        shader
    });
    let inexact = [&first, &second]
        .iter()
        .any(|shader| shader.entry().walk().any(|inst| is_inexact(shader.entry().op(inst))));
    [Fill::Mixed, Fill::Small].into_iter().find_map(|fill| {
        let mut rng = Rng::new(seed);
        let mut case = Case::without_inputs(&first, lanes, &mut rng, fill);
        // Both shaders have the same buffers and push constants.
        let other = Case::without_inputs(&second, lanes, &mut rng, fill);
        for (point, content) in other.buffers {
            let own = case.buffers.entry(point).or_default();
            if own.len() < content.len() {
                *own = content;
            }
        }
        let count = match second.info.stage {
            Stage::TessControl => GROUP_PATCHES * PATCH_VERTICES,
            _ => VERTICES,
        };
        match first.info.stage {
            Stage::TessEval => case.evaluations(&mut rng, count),
            _ => case.vertices(&mut rng, count),
        }
        case.second = Some(second.clone());
        let mut made = GroupExpectation {
            first: case,
            second: second.clone(),
            passed: Vec::new(),
            primitives: Vec::new(),
            patches: Vec::new(),
            strips: Vec::new(),
            buffers: None,
            inexact,
        };
        made.interpret(&mut rng).ok()?;
        Some(made)
    })
}

impl GroupExpectation {
    fn interpret(&mut self, rng: &mut Rng) -> Result<(), String> {
        let case = &self.first;
        let mut bindings = Bindings { push: case.push.clone(), ..Bindings::default() };
        let places: Vec<_> = case
            .buffers
            .iter()
            .map(|(point, bytes)| (*point, bindings.bind(*point, bytes.clone())))
            .collect();
        let limits = Limits { steps: STEPS, ..Limits::default() };
        let options =
            interp::Options { robust: true, races: false, subgroup_size: case.lanes as u32, limits };
        let one = |shader: &Shader, inputs: &[InvocationInput], bindings: &mut Bindings| {
            let run = run_stage(shader, inputs.to_vec(), bindings, &mut NoImages, &options);
            let (outputs, report) = run.map_err(|error| error.to_string())?;
            match report.findings.first() {
                Some(finding) => Err(format!("undefined: {finding:?}")),
                None => Ok(outputs),
            }
        };
        for chunk in case.inputs.chunks(case.lanes) {
            let outputs = one(&case.shader, chunk, &mut bindings)?;
            self.passed.extend(outputs.into_iter().map(|output| output.slots));
        }
        let view = [2, 0, 0, 0];
        if self.second.info.stage == Stage::TessControl {
            for (patch, vertices) in (0..).zip(self.passed.chunks(PATCH_VERTICES)) {
                let slots: Slots = (0..).zip(vertices).flat_map(|(at, slots)| as_vertex(slots, at)).collect();
                let inputs: Vec<InvocationInput> = (0..self.second.info.output_vertices)
                    .map(|invocation| {
                        let mut input = InvocationInput { slots: slots.clone(), ..Default::default() };
                        for (value, words) in [
                            (SystemValue::InvocationId, [invocation, 0, 0, 0]),
                            (SystemValue::PrimitiveId, [FIRST_PATCH + patch, 0, 0, 0]),
                            (SystemValue::PatchVertices, [PATCH_VERTICES as u32, 0, 0, 0]),
                            (SystemValue::ViewIndex, view),
                        ] {
                            input.system_values.insert(value, words);
                        }
                        input
                    })
                    .collect();
                let outputs = one(&self.second, &inputs, &mut bindings)?;
                // What several invocations store, or load without a barrier, depends on their order.
                let backwards: Vec<InvocationInput> = inputs.iter().rev().cloned().collect();
                let other = one(&self.second, &backwards, &mut bindings)?;
                if outputs.first().map(|output| &output.slots) != other.first().map(|output| &output.slots) {
                    return Err("it depends on the order of invocations".to_owned());
                }
                self.patches.push(outputs.into_iter().next().map(|output| output.slots).unwrap_or_default());
            }
        } else {
            let count = primitive_vertices(self.second.info.input_primitive);
            let room = self.passed.len();
            self.primitives = (0..self.group_primitives())
                .map(|_| {
                    let vertices = (0..count).map(|_| rng.below(room) as u32).collect();
                    (vertices, rng.below(self.second.info.invocations.max(1) as usize) as u32)
                })
                .collect();
            let inputs: Vec<InvocationInput> = (0..)
                .zip(&self.primitives)
                .map(|(primitive, (vertices, invocation))| {
                    let slots = (0..)
                        .zip(vertices)
                        .flat_map(|(at, vertex)| as_vertex(&self.passed[*vertex as usize], at))
                        .collect();
                    let mut input = InvocationInput { slots, ..Default::default() };
                    for (value, words) in [
                        (SystemValue::InvocationId, [*invocation, 0, 0, 0]),
                        (SystemValue::PrimitiveId, [FIRST_PATCH + primitive, 0, 0, 0]),
                        (SystemValue::ViewIndex, view),
                    ] {
                        input.system_values.insert(value, words);
                    }
                    input
                })
                .collect();
            for chunk in inputs.chunks(case.lanes) {
                for output in one(&self.second, chunk, &mut bindings)? {
                    self.strips.push(strips(output.vertices));
                }
            }
        }
        let buffers = places.into_iter().map(|(point, at)| (point, bindings.memory[at].clone())).collect();
        // Waves run in any order; what they share is compared only if one writes nothing that another may see.
        self.buffers = Some(buffers).filter(|_| !self.inexact);
        Ok(())
    }

    /// How many primitives a workgroup has. Of primitive shaders it has a lane for each vertex that may be emitted.
    fn group_primitives(&self) -> usize {
        let most = self.second.info.output_vertices.max(1) as usize;
        (250 / most).clamp(1, GROUP_PRIMITIVES)
    }
}

fn strips(outputs: Vec<VertexOutput>) -> Strips {
    let mut strips = Strips::default();
    for output in outputs {
        match output {
            VertexOutput::Vertex { stream: 0, slots, .. } => strips.vertices.push(slots),
            VertexOutput::EndPrimitive { stream: 0 } => strips.cuts.push(strips.vertices.len()),
            _ => {}
        }
    }
    strips
}

/// The programs of a workgroup on a GPU: one, or the first, the second, and after a geometry shader that which exports.
pub struct GroupPrograms {
    programs: Vec<Compiled>,
    copy: Option<Compiled>,
}

impl GroupPrograms {
    /// All of them, in their order.
    pub fn into_list(self) -> Vec<Compiled> {
        self.programs.into_iter().chain(self.copy).collect()
    }
}

fn checked(
    compiled: Result<Compiled, unwedge_aco::CompileError>,
    options: &Options,
) -> Result<Compiled, Problem> {
    let compiled = compiled.map_err(|error| ("compile", error.to_string()))?;
    let check = CheckOptions { exports: true, ..CheckOptions::default() };
    let report = check_words(&compiled.code.words, &options.gpu, &check);
    match report.findings.iter().find(|finding| finding.level != Certainty::Speed) {
        Some(finding) => Err(("check", format!("{finding:?}"))),
        None if report.complete => Ok(compiled),
        None => Err(("check", "the check is not complete".to_owned())),
    }
}

/// Compiles two shaders, merged or each alone.
pub fn build_group(first: &Shader, second: &Shader, options: &Options) -> Result<GroupPrograms, Problem> {
    let [mut first, mut second] = [first, second].map(|shader| {
        let mut shader = shader.clone();
        shader.info.float_modes[1].flush = Some(false);
        shader
    });
    let mut options = options.clone();
    let graphics = &mut options.graphics;
    graphics.patch_vertices = PATCH_VERTICES as u32;
    graphics.shape = [first.info.stage, second.info.stage]
        .into_iter()
        .fold(graphics.shape, |shape, stage| shape.with(stage));
    let generation = options.gpu.generation();
    let geometry = second.info.stage == Stage::Geometry;
    let primitives = options.graphics.mode(generation) == unwedge_aco::stages::PipelineMode::Ngg;
    let copy = if geometry && !primitives {
        Some(checked(compile_copy(&second, &options), &options)?)
    } else {
        None
    };
    let programs = if generation >= Gfx::Gfx9 {
        vec![checked(compile_merged(&mut first, &mut second, &options), &options)?]
    } else {
        let second = checked(compile(&mut second, &options), &options)?;
        let mut before = options.clone();
        before.graphics.outputs = Some(second.args.interface.inputs.clone());
        vec![checked(compile(&mut first, &before), &options)?, second]
    };
    Ok(GroupPrograms { programs, copy })
}

fn ring_descriptor(base: u64, swizzle: Option<u32>, options: &Options) -> [u32; 4] {
    let generation = options.gpu.generation();
    let mut words = super::descriptor(base, GS_RING_BYTES, generation);
    let Some(index_stride) = swizzle else { return words };
    words[1] |= 1 << 31;
    words[3] |= index_stride << 21 | 1 << 23;
    match generation {
        // Elements of 4 bytes; the number of lanes; there a format is bits of the stride.
        Gfx::Gfx6 | Gfx::Gfx7 => {}
        Gfx::Gfx8 | Gfx::Gfx9 => words[3] &= !(15 << 15),
        _ => words[3] = words[3] & !(3 << 28) | 2 << 28,
    }
    if generation <= Gfx::Gfx8 {
        words[3] |= 1 << 19;
    }
    if generation != Gfx::Gfx8 {
        // Indices are compared with their number where there is a stride.
        words[2] = if base == GS_RING { 64 } else { u32::MAX };
    }
    words
}

/// What a dispatch of a workgroup is given.
struct GroupRun<'e> {
    expected: &'e GroupExpectation,
    options: &'e Options,
    interface: &'e Interface,
    lanes: usize,
    /// Lanes of both parts, waves.
    counts: [usize; 2],
    waves: usize,
    /// Where emitted vertices and their numbers are in LDS.
    emitted: [u32; 2],
    lds: u32,
}

impl<'e> GroupRun<'e> {
    fn new(expected: &'e GroupExpectation, options: &'e Options, compiled: &'e Compiled) -> GroupRun<'e> {
        let interface = &compiled.args.interface;
        let lanes = if options.gpu.wave64() { 64 } else { 32 };
        let second = &expected.second.info;
        let invocations = match second.stage {
            Stage::TessControl => expected.patches.len() * second.output_vertices as usize,
            _ => expected.primitives.len(),
        };
        let counts = [expected.passed.len(), invocations];
        let hardware = interface.hardware;
        let primitives = hardware == Some(HardwareStage::Ngg);
        let emitted = if primitives { invocations * second.output_vertices as usize } else { 0 };
        let threads = match hardware {
            Some(HardwareStage::Ls | HardwareStage::Es) => counts[0],
            Some(HardwareStage::Hs | HardwareStage::Gs) => counts[1],
            _ => counts[0].max(counts[1]).max(emitted),
        };
        let passed = match hardware {
            Some(HardwareStage::Ls) => &interface.outputs,
            Some(HardwareStage::Hs) => &interface.inputs,
            _ => &interface.passed,
        };
        let begin = counts[0] as u32 * passed.vertex_bytes();
        let shared = expected.patches.len() as u32 * interface.shared.patch_bytes(second.output_vertices);
        let numbers = begin + emitted as u32 * interface.outputs.vertex_bytes();
        let after = if primitives { numbers + 64 + emitted as u32 * 4 } else { begin + shared };
        GroupRun {
            expected,
            options,
            interface,
            lanes,
            counts,
            waves: threads.div_ceil(lanes),
            emitted: [begin, numbers],
            lds: after.max(compiled.code.lds_bytes).max(4),
        }
    }

    /// Bytes of the ring after geometry shaders that a wave has.
    fn wave_bytes(&self) -> u32 {
        self.interface.outputs.vertex_bytes() * self.expected.second.info.output_vertices * 64
    }

    fn memory(&self) -> SimMemory {
        let mut rings = vec![
            (1, ring_descriptor(ES_RING, Some(3), self.options)),
            (2, ring_descriptor(ES_RING, None, self.options)),
            (3, ring_descriptor(GS_RING, None, self.options)),
            (4, ring_descriptor(GS_RING, Some(1), self.options)),
            (5, ring_descriptor(FACTORS, None, self.options)),
        ];
        if self.expected.first.shader.info.stage != Stage::TessEval {
            rings.push((6, ring_descriptor(LEFT, None, self.options)));
        }
        let mut memory = self.expected.first.memory(self.options, self.interface, &rings);
        memory.map(LEFT, vec![NOTHING; LEFT_BYTES]).expect("free");
        memory.map(FACTORS, vec![NOTHING; RING_BYTES]).expect("free");
        memory.map(ES_RING, self.vertex_ring()).expect("free");
        memory.map(GS_RING, vec![NOTHING; GS_RING_BYTES]).expect("free");
        memory
    }

    /// The ring before geometry shaders, as the first shader leaves it.
    fn vertex_ring(&self) -> Vec<u8> {
        let mut made = vec![NOTHING; RING_BYTES];
        if self.interface.hardware != Some(HardwareStage::Gs) {
            return made;
        }
        for (vertex, slots) in (0..).zip(&self.expected.passed) {
            for (key, words) in slots {
                let Some(at) = self.interface.inputs.offset(key.slot as u16, false) else { continue };
                for (component, word) in (0..).zip(words) {
                    let place = es_place(vertex, at + component * 4) as usize;
                    made[place..place + 4].copy_from_slice(&word.unwrap_or(0).to_le_bytes());
                }
            }
        }
        made
    }

    /// LDS, as the first shader leaves it.
    fn local(&self) -> Vec<u8> {
        let slots = &self.interface.inputs;
        if self.interface.hardware != Some(HardwareStage::Hs) {
            return Vec::new();
        }
        let mut words = vec![0u32; self.expected.passed.len() * slots.vertex_bytes() as usize / 4];
        for (vertex, own) in self.expected.passed.iter().enumerate() {
            for (key, values) in own {
                let Some(at) = slots.offset(key.slot as u16, false) else { continue };
                let place = (vertex * slots.vertex_bytes() as usize + at as usize) / 4;
                (0..4).for_each(|component| words[place + component] = values[component].unwrap_or(0));
            }
        }
        bytes(&words)
    }

    fn lanes_of(&self, part: usize, wave: usize) -> u32 {
        self.counts[part].saturating_sub(wave * self.lanes).min(self.lanes) as u32
    }

    fn by_wave(&self, argument: Argument) -> Option<Vec<u32>> {
        let each = |word: &dyn Fn(usize) -> u32| Some((0..self.waves).map(word).collect());
        match argument {
            Argument::MergedWaveInfo => each(&|wave| {
                let geometry = (GS_WAVE + wave as u32) << 16;
                let place = (wave as u32) << 24 | (self.waves as u32) << 28;
                self.lanes_of(0, wave) | self.lanes_of(1, wave) << 8 | geometry | place
            }),
            Argument::GsToVs => each(&|wave| self.wave_bytes() * wave as u32),
            Argument::GsWaveId => each(&|wave| GS_WAVE + wave as u32),
            _ => None,
        }
    }

    fn word(&self, argument: Argument) -> Option<u32> {
        Some(match argument {
            Argument::OffchipOffset if self.expected.first.shader.info.stage == Stage::TessEval => {
                PATCH_OFFSET
            }
            Argument::OffchipOffset => LEFT_OFFSET,
            Argument::FactorOffset => FACTOR_OFFSET,
            Argument::PatchCount => self.expected.patches.len() as u32,
            Argument::EsToGs => ES_OFFSET,
            Argument::EmittedLds => self.emitted[0] | self.emitted[1] << 16,
            Argument::GroupInfo => (self.counts[0] as u32) << 12 | (self.counts[1] as u32) << 22,
            _ => return self.expected.first.word(argument),
        })
    }

    fn threads(&self, argument: Argument) -> Option<Vec<u32>> {
        let vertices = self.expected.second.info.output_vertices.max(1);
        let invocations = self.counts[1] as u32;
        Some(match argument {
            Argument::PatchId if !self.expected.patches.is_empty() => {
                (0..invocations).map(|at| FIRST_PATCH + at / vertices).collect()
            }
            Argument::RelativeIds => {
                (0..invocations).map(|at| (at / vertices) | ((at % vertices) << 8) | (0xff << 16)).collect()
            }
            Argument::RelativeVertex => (0..self.counts[0] as u32).collect(),
            Argument::VertexOffset(number) => {
                self.expected.primitives.iter().map(|primitive| self.offset(number, primitive)).collect()
            }
            Argument::GeometryPrimitive => (0..invocations).map(|at| FIRST_PATCH + at).collect(),
            Argument::GeometryInvocation => {
                self.expected.primitives.iter().map(|(_, invocation)| *invocation).collect()
            }
            _ => return self.expected.first.threads(argument).and_then(|all| all.into_iter().next()),
        })
    }

    /// The word of the hardware that says where vertices are.
    fn offset(&self, number: u8, (vertices, invocation): &(Vec<u32>, u32)) -> u32 {
        let number = usize::from(number);
        let vertex = |at: usize| vertices.get(at).copied().unwrap_or(0);
        match self.options.gpu.generation() {
            Gfx::Gfx6 | Gfx::Gfx7 | Gfx::Gfx8 => es_place(vertex(number), 0) / 4,
            Gfx::Gfx12 => {
                let all = (0..3).fold(0, |all, at| all | vertex(number * 3 + at) << (9 * at));
                all | if number == 0 { invocation << 27 } else { 0 }
            }
            _ => {
                let dwords = self.interface.passed.vertex_bytes() / 4;
                (vertex(number * 2) * dwords) | ((vertex(number * 2 + 1) * dwords) << 16)
            }
        }
    }

    fn dispatch(&self, compiled: &Compiled, timing: Timing) -> Dispatch {
        let gpu = &self.options.gpu;
        let mut dispatch = Dispatch {
            size: [(self.waves * self.lanes) as u32, 1, 1],
            lds: self.lds,
            lds_content: self.local(),
            scratch: compiled.code.scratch_bytes,
            mode: 0x100 | u32::from(compiled.float_mode),
            timing,
            steps: MACHINE_STEPS,
            ..Dispatch::default()
        };
        if !self.interface.hardware.is_some_and(HardwareStage::is_merged) {
            let part = matches!(self.interface.hardware, Some(HardwareStage::Hs | HardwareStage::Gs));
            dispatch.size[0] = self.counts[usize::from(part)] as u32;
        }
        for location in compiled.args.iter() {
            let reg = location.reg.reg();
            if let Some(words) = self.by_wave(location.argument) {
                dispatch.waves_hold.push((reg.0, words));
            } else if let Some(word) = self.word(location.argument) {
                dispatch.scalars.push((reg.0, word));
            } else if let Some(words) = self.threads(location.argument) {
                dispatch.threads_hold.push((reg.index() as u8, words));
            } else if location.argument == Argument::ScratchOffset {
                dispatch.scalars.push((reg.0, 0));
            } else if location.argument == Argument::RingOffsets {
                let words = match gpu.generation() >= Gfx::Gfx11 {
                    true => [RINGS as u32, self.options.address_high, 0, 0],
                    false => super::scratch_descriptor(gpu),
                };
                dispatch.scalars.extend((reg.0..).zip(words).take(location.dwords.into()));
            }
        }
        dispatch
    }
}

/// Where a dword of a vertex is in the ring before geometry shaders.
fn es_place(vertex: u32, offset: u32) -> u32 {
    ES_OFFSET + vertex / 64 * 64 * 1024 + offset / 4 * 256 + vertex % 64 * 4
}

/// The slots of a patch and of one of its vertices.
fn vertex_of(slots: &Slots, vertex: u32) -> Slots {
    let own = slots.iter().filter(|(key, _)| key.patch || key.vertex == vertex);
    own.map(|(key, words)| (InterfaceSlot { vertex: 0, ..*key }, *words)).collect()
}

fn run_group(
    run_of: &GroupRun<'_>,
    compiled: &Compiled,
    seed: u64,
    memory: &mut SimMemory,
) -> Result<Outcome, Problem> {
    let program = Program::new(&compiled.code.words, CODE, run_of.options.gpu);
    let outcome = run(&program, memory, &run_of.dispatch(compiled, Timing::Adversarial { seed }), None);
    let undefined = run_of.expected.has_undefined();
    let allowed = |kind: &FaultKind| undefined && matches!(kind, FaultKind::Stored(..));
    match outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
        Some(fault) => Err(("run", format!("{fault}: {}", program.text(fault.at).unwrap_or_default()))),
        None => Ok(outcome),
    }
}

fn word(memory: &SimMemory, at: u64) -> Option<u32> {
    memory.get(at, 4).and_then(|bytes| bytes.try_into().ok()).map(u32::from_le_bytes)
}

impl GroupExpectation {
    fn same(&self, found: Option<u32>, wanted: u32, mask: u32) -> bool {
        found.is_some_and(|found| {
            if self.inexact { close(found & mask, wanted & mask) } else { found & mask == wanted & mask }
        })
    }

    /// Compares slots with what is found; `mask` has the bits of a component that count.
    fn compare(
        &self,
        what: &str,
        slots: &Slots,
        find: impl Fn(&InterfaceSlot, usize) -> Option<Option<u32>>,
    ) -> Result<(), Problem> {
        let masks = self.masks();
        for (key, words) in slots {
            for (component, wanted) in words.iter().enumerate() {
                let Some(wanted) = wanted else { continue };
                let Some(found) = find(key, component) else { continue };
                let mask = masks.get(&(key.slot, component)).copied().unwrap_or(u32::MAX);
                if !self.same(found, *wanted, mask) {
                    return Err((
                        "output",
                        format!(
                            "{what}, slot {} vertex {}.{component}: {found:x?}, not {wanted:#x}",
                            key.slot, key.vertex
                        ),
                    ));
                }
            }
        }
        Ok(())
    }

    /// The bits of components that count: others than of 32 bits have undefined ones.
    fn masks(&self) -> BTreeMap<(u32, usize), u32> {
        let mut all = BTreeMap::new();
        for shader in [&self.first.shader, &self.second] {
            for (key, component, mask) in stored_by(shader) {
                *all.entry((key.slot, component)).or_insert(u32::MAX) &= mask;
            }
        }
        all
    }

    /// Whether something that a shader may store is undefined: then it may be stored.
    fn has_undefined(&self) -> bool {
        let [first, mut second] = [&self.first.shader, &self.second].map(stored_by);
        second.retain(|(key, ..)| key.index == 0);
        let mut left = self.strips.iter().flat_map(|strips| &strips.vertices);
        let vertices = self.second.info.output_vertices;
        let mut patches =
            self.patches.iter().flat_map(|slots| (0..vertices).map(move |at| vertex_of(slots, at)));
        self.passed.iter().any(|slots| has_undefined(&first, slots))
            || left.any(|slots| has_undefined(&second, slots))
            || patches.any(|slots| has_undefined(&second, &slots))
    }

    fn patches(&self, memory: &SimMemory, interface: &Interface, options: &Options) -> Result<(), Problem> {
        let vertices = self.second.info.output_vertices;
        let slots = &interface.outputs;
        for (patch, own) in (0u32..).zip(&self.patches) {
            let begin = LEFT_OFFSET + patch * slots.patch_bytes(vertices);
            self.compare(&format!("patch {patch}"), own, |key, component| {
                let at = slots.offset(key.slot as u16, key.patch)?;
                let inside = if key.patch { vertices } else { key.vertex } * slots.vertex_bytes();
                Some(word(memory, LEFT + u64::from(begin + inside + at) + component as u64 * 4))
            })?;
            let order: &[(u32, usize)] = match self.second.info.input_primitive {
                Some(Primitive::Quads) => &[(10, 0), (10, 1), (10, 2), (10, 3), (11, 0), (11, 1)],
                Some(Primitive::Isolines) => &[(10, 1), (10, 0)],
                _ => &[(10, 0), (10, 1), (10, 2), (11, 0)],
            };
            let control = options.gpu.generation() <= Gfx::Gfx8;
            let first = FACTOR_OFFSET + if control { 4 } else { 0 } + patch * order.len() as u32 * 4;
            if control && word(memory, FACTORS + u64::from(FACTOR_OFFSET)) != Some(0x8000_0000) {
                return Err(("output", "factors do not begin with the control word".to_owned()));
            }
            for (number, (slot, component)) in (0..).zip(order) {
                let key = InterfaceSlot { slot: *slot, vertex: 0, patch: true, index: 0 };
                let wanted = own.get(&key).and_then(|words| words[*component]);
                let found = word(memory, FACTORS + u64::from(first + number * 4));
                if let Some(wanted) = wanted
                    && !self.same(found, wanted, u32::MAX)
                {
                    return Err((
                        "output",
                        format!("patch {patch}, factor {number}: {found:x?}, not {wanted:#x}"),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What waves of geometry shaders told of their vertices.
    fn told(&self, messages: &[WaveMessage], lanes: usize) -> Result<(), Problem> {
        let wrong = |what: String| Err(("output", what));
        let mut counts = vec![(0usize, Vec::new()); self.primitives.len()];
        let mut done: Vec<u32> = Vec::new();
        for message in messages {
            let MessageKind::Message { code, m0 } = message.kind else { continue };
            if m0 != GS_WAVE + message.wave {
                return wrong(format!("message {code:#x} of wave {} with {m0:#x}", message.wave));
            }
            if done.contains(&message.wave) {
                return wrong(format!("wave {} goes on after its end", message.wave));
            }
            if code == 3 {
                done.push(message.wave);
                continue;
            }
            if message.lanes == 0 {
                return wrong(format!("message {code:#x} without a lane"));
            }
            if code >> 8 != 0 {
                continue;
            }
            for lane in (0..64).filter(|lane| message.lanes >> lane & 1 != 0) {
                let Some((count, cuts)) = counts.get_mut(message.wave as usize * lanes + lane) else {
                    return wrong(format!("lane {lane} of wave {} has no primitive", message.wave));
                };
                match code {
                    0x22 => *count += 1,
                    _ => cuts.push(*count),
                }
            }
        }
        if done.is_empty() {
            return wrong("no wave ends".to_owned());
        }
        for (primitive, (strips, (count, cuts))) in self.strips.iter().zip(counts).enumerate() {
            if strips.vertices.len() != count || strips.cuts != cuts {
                let (wanted, ends) = (strips.vertices.len(), &strips.cuts);
                return wrong(format!(
                    "primitive {primitive}: {count} vertices cut at {cuts:?}, not {wanted} at {ends:?}"
                ));
            }
        }
        Ok(())
    }

    fn emitted(&self, memory: &SimMemory, of: &GroupRun<'_>) -> Result<(), Problem> {
        let most = self.second.info.output_vertices;
        for (primitive, strips) in self.strips.iter().enumerate() {
            for (vertex, slots) in (0..).zip(&strips.vertices) {
                self.compare(&format!("primitive {primitive}, vertex {vertex}"), slots, |key, component| {
                    let at = of.interface.outputs.offset(key.slot as u16, false)?;
                    let place = gs_place(of, primitive, vertex, most);
                    Some(word(memory, GS_RING + u64::from(place + (at + component as u32 * 4) * most * 16)))
                })?;
            }
        }
        Ok(())
    }
}

/// Where the first dword of a vertex is in the ring after geometry shaders.
fn gs_place(of: &GroupRun<'_>, primitive: usize, vertex: u32, most: u32) -> u32 {
    let (wave, lane) = ((primitive / of.lanes) as u32, (primitive % of.lanes) as u32);
    let stride = of.interface.outputs.vertex_bytes() * most;
    of.wave_bytes() * wave + lane / 16 * stride * 16 + vertex * 64 + lane % 16 * 4
}

/// Compares compiled programs with what the interpreter makes of the shaders.
pub fn judge_group(
    expected: &GroupExpectation,
    programs: &GroupPrograms,
    options: &Options,
    seed: u64,
) -> Result<(), Problem> {
    let first_stage = &programs.programs[0];
    if programs.programs.len() > 1 {
        judge_first(expected, first_stage, options, seed)?;
    }
    let Some(compiled) = programs.programs.last() else { return Ok(()) };
    let of = GroupRun::new(expected, options, compiled);
    let mut memory = of.memory();
    let outcome = run_group(&of, compiled, seed, &mut memory)?;
    if programs.programs.len() == 1
        && let Some(buffers) = &expected.buffers
    {
        for (number, (point, content)) in buffers.iter().enumerate() {
            let base = BUFFERS + number as u64 * BUFFER_STRIDE;
            if memory.get(base, content.len()).unwrap_or_default() != content {
                return Err(("buffer", format!("{point:?} differs")));
            }
        }
    }
    match compiled.args.interface.hardware {
        Some(HardwareStage::Hs | HardwareStage::LsHs) => expected.patches(&memory, of.interface, options),
        Some(HardwareStage::Ngg) => exported(expected, &of, &outcome.messages, &memory),
        _ => {
            expected.told(&outcome.messages, of.lanes)?;
            expected.emitted(&memory, &of)?;
            match &programs.copy {
                Some(copy) => judge_copy(expected, &of, copy, seed, memory),
                None => Ok(()),
            }
        }
    }
}

/// A first stage alone leaves vertices in LDS or in the ring.
fn judge_first(
    expected: &GroupExpectation,
    compiled: &Compiled,
    options: &Options,
    seed: u64,
) -> Result<(), Problem> {
    let of = GroupRun::new(expected, options, compiled);
    let mut memory = of.memory();
    let slots = &of.interface.outputs;
    if of.interface.hardware == Some(HardwareStage::Es) {
        run_group(&of, compiled, seed, &mut memory)?;
        for (vertex, own) in (0..).zip(&expected.passed) {
            expected.compare(&format!("vertex {vertex}"), own, |key, component| {
                let at = slots.offset(key.slot as u16, false)?;
                Some(word(&memory, ES_RING + u64::from(es_place(vertex, at + component as u32 * 4))))
            })?;
        }
        return Ok(());
    }
    run_group(&of, compiled, seed, &mut of.memory())?;
    // The contents of LDS are seen at the end of the last wave, in a run in which every access ends at once.
    let program = Program::new(&compiled.code.words, CODE, options.gpu);
    let mut local = Vec::new();
    let mut look = |state: &mut unwedge_sim::amdgcn::GroupState<'_, '_>| {
        local = (0..of.lds / 4).map(|at| state.lds(at * 4)).collect();
        Control::Go
    };
    let dispatch = of.dispatch(compiled, Timing::Plain);
    watch(&program, &mut memory, &dispatch, Watch::Step(&mut look));
    for (vertex, own) in (0..).zip(&expected.passed) {
        expected.compare(&format!("vertex {vertex}"), own, |key, component| {
            let at = slots.offset(key.slot as u16, false)?;
            let place = vertex * slots.vertex_bytes() + at;
            Some(local.get(place as usize / 4 + component).copied().flatten())
        })?;
    }
    Ok(())
}

/// The vertices that primitive shaders export: by number.
fn exported(
    expected: &GroupExpectation,
    of: &GroupRun<'_>,
    messages: &[WaveMessage],
    memory: &SimMemory,
) -> Result<(), Problem> {
    let wrong = |what: String| Err(("output", what));
    let all: Vec<(usize, &Slots)> = expected
        .strips
        .iter()
        .enumerate()
        .flat_map(|(primitive, strips)| strips.vertices.iter().map(move |slots| (primitive, slots)))
        .collect();
    let mut values: BTreeMap<(u8, usize), [Option<u32>; 4]> = BTreeMap::new();
    let mut room = Vec::new();
    for message in messages {
        match &message.kind {
            MessageKind::Message { m0, .. } => room.push(*m0),
            MessageKind::Export { target, values: words, .. } => {
                for lane in (0..64).filter(|lane| message.lanes >> lane & 1 != 0) {
                    let number = message.wave as usize * of.lanes + lane;
                    let own = std::array::from_fn(|at| words[at].as_ref().map(|words| words[lane]));
                    values.insert((*target, number), own);
                }
            }
        }
    }
    let count = all.len() as u32;
    let none = count == 0 && of.options.gpu.generation() == Gfx::Gfx10;
    let asked = if none { 1 | 1 << 12 } else { count | count << 12 };
    if room != [asked] {
        return wrong(format!("asked for {room:x?}, not for {count} vertices"));
    }
    let wanted = primitives(expected, of);
    for (number, primitive) in wanted.iter().enumerate() {
        let found = values.get(&(20, number)).and_then(|words| words[0]);
        if found != Some(*primitive) {
            return wrong(format!("primitive {number}: {found:x?}, not {primitive:#x}"));
        }
    }
    if !none && values.keys().filter(|(target, _)| *target == 20).count() != wanted.len() {
        return wrong("more primitives than vertices".to_owned());
    }
    let interface = of.interface;
    let stride = interface.parameters.len() as u64 * 16;
    for (number, (primitive, slots)) in all.iter().enumerate() {
        expected.compare(&format!("vertex {number} of primitive {primitive}"), slots, |key, component| {
            let target = match (key.slot, interface.parameter(key.slot as u16)) {
                (0, _) => 12,
                (1, _) => 13,
                (_, Some(parameter)) if of.options.gpu.generation() >= Gfx::Gfx11 => {
                    let vertex = number as u64;
                    let at = RING
                        + (RING_PART << 9)
                        + vertex / RING_TOGETHER * stride * RING_TOGETHER
                        + u64::from(parameter) * RING_ELEMENT * RING_TOGETHER
                        + vertex % RING_TOGETHER * RING_ELEMENT;
                    return Some(word(memory, at + component as u64 * 4));
                }
                (_, Some(parameter)) => 32 + parameter as u8,
                _ => return None,
            };
            Some(
                values
                    .get(&(target, number))
                    .and_then(|words| words[if target == 13 { 0 } else { component }]),
            )
        })?;
    }
    Ok(())
}

/// The words of primitives, one for each vertex.
fn primitives(expected: &GroupExpectation, of: &GroupRun<'_>) -> Vec<u32> {
    let distance = if of.options.gpu.generation() >= Gfx::Gfx12 { 9 } else { 10 };
    let size = match expected.second.info.output_primitive {
        Some(Primitive::Points) => 1,
        Some(Primitive::Lines) => 2,
        _ => 3,
    };
    let mut words = Vec::new();
    for strips in &expected.strips {
        let mut strip = 0;
        for vertex in 0..strips.vertices.len() {
            if strips.cuts.contains(&vertex) {
                strip = 0;
            }
            strip += 1;
            let last = words.len() as u32;
            let corners: Vec<u32> = if strip < size {
                words.push(0x8000_0000);
                continue;
            } else if size == 3 && (strip - size) % 2 == 1 {
                vec![last - 2, last, last - 1]
            } else {
                (0..size).rev().map(|back| last - back).collect()
            };
            words.push((0..).zip(corners).fold(0, |all, (at, corner)| all | corner << (at * distance)));
        }
    }
    words
}

/// The shader that exports vertices of the ring.
fn judge_copy(
    expected: &GroupExpectation,
    of: &GroupRun<'_>,
    copy: &Compiled,
    seed: u64,
    mut memory: SimMemory,
) -> Result<(), Problem> {
    let most = expected.second.info.output_vertices;
    let all: Vec<(u32, &Slots)> = expected
        .strips
        .iter()
        .enumerate()
        .flat_map(|(primitive, strips)| {
            (0..)
                .zip(&strips.vertices)
                .map(move |(vertex, slots)| (gs_place(of, primitive, vertex, most), slots))
        })
        .collect();
    let program = Program::new(&copy.code.words, CODE, of.options.gpu);
    for chunk in all.chunks(of.lanes) {
        let mut dispatch = of.dispatch(copy, Timing::Adversarial { seed });
        dispatch.size[0] = chunk.len() as u32;
        dispatch.threads_hold.clear();
        for location in copy.args.iter().filter(|location| location.argument == Argument::VertexId) {
            let held = chunk.iter().map(|(place, _)| place / 4).collect();
            dispatch.threads_hold.push((location.reg.reg().index() as u8, held));
        }
        let outcome = run(&program, &mut memory, &dispatch, None);
        let undefined = expected.has_undefined();
        let allowed = |kind: &FaultKind| undefined && matches!(kind, FaultKind::Stored(..));
        if let Some(fault) = outcome.faults.iter().find(|fault| !allowed(&fault.kind)) {
            return Err(("copy", format!("{fault}: {}", program.text(fault.at).unwrap_or_default())));
        }
        let mut found = BTreeMap::new();
        for message in &outcome.messages {
            if let MessageKind::Export { target, values, .. } = &message.kind {
                found.insert(*target, values.clone());
            }
        }
        for (lane, (_, slots)) in chunk.iter().enumerate() {
            expected.compare(&format!("copied vertex {lane}"), slots, |key, component| {
                let (target, at) = match (key.slot, copy.args.interface.parameter(key.slot as u16)) {
                    (0, _) => (12, component),
                    (1, _) => (13, 0),
                    (_, Some(parameter)) => (32 + parameter as u8, component),
                    _ => return None,
                };
                Some(found.get(&target).and_then(|values| values[at].as_ref()).map(|values| values[lane]))
            })?;
        }
    }
    Ok(())
}
