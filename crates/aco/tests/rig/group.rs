//! Workgroups of two stages before the rasterizer: vertex and tessellation control shaders, or vertex or tessellation evaluation shaders and geometry shaders. The interpreter runs the first shader, then the second one with what the
//! first leaves. Where the GPU runs them merged, so does the emulator; else each is run alone, with what the interpreter says of the first one in memory.

pub mod judge;
mod run;

use super::judge::stored_by;
use super::pipeline::{BufferContents, Case, FIRST_PATCH, Fill, STEPS, is_inexact};
use super::recorded::Problem;
use std::collections::{BTreeMap, BTreeSet};
use unwedge_aco::graphics::MemorySlots;
use unwedge_aco::{Compiled, Options, compile, compile_copy, compile_merged};
use unwedge_check::amdgcn::{Certainty, CheckOptions, check_words};
use unwedge_isa::amdgcn::Gfx;
use unwedge_shader::interp::{
    self, Bindings, InterfaceSlot, InvocationInput, Limits, NoImages, VertexOutput, run_stage,
};
use unwedge_shader::ir::{
    Builder, FIRST_LOCATION_SLOT, Op, Payload, Primitive, Shader, SlotAccess, SlotDir, Stage, SystemValue,
    Type, Value,
};
use unwedge_shader::passes::lower_io;
use unwedge_testkit::mutate::Rng;

/// Vertices of geometry shaders, of tessellation patches; the most patches and primitives of a workgroup.
const VERTICES: usize = 45;
const PATCH_VERTICES: usize = 3;
const GROUP_PATCHES: usize = 30;
const GROUP_PRIMITIVES: usize = 37;
/// The lanes of a workgroup: the most waves that the word of merged stages counts, of 32 lanes.
const GROUP_LANES: usize = 15 * 32;
/// LDS of a workgroup, and what it has of that for other things than vertices: counts, and the state of transform feedback.
const GROUP_LDS: usize = 1 << 16;
const OTHER_LDS: usize = 1 << 10;
const SLOT_BYTES: usize = MemorySlots::SLOT_BYTES as usize;

/// A slot of a vertex or patch.
type Slots = BTreeMap<InterfaceSlot, [Option<u32>; 4]>;

/// What a geometry invocation left: vertices, and after how many of them of the first stream a strip ends.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
struct Strips {
    vertices: Vec<Slots>,
    cuts: Vec<usize>,
    /// Vertices of other streams.
    others: Vec<(u8, Slots)>,
    /// After how many of its vertices a strip of another stream ends.
    other_cuts: Vec<(u8, usize)>,
}

impl Strips {
    /// The vertices of a stream.
    fn stream(&self, stream: u8) -> Vec<&Slots> {
        match stream {
            0 => self.vertices.iter().collect(),
            _ => self.others.iter().filter(|(own, _)| *own == stream).map(|(_, slots)| slots).collect(),
        }
    }

    /// For each vertex of a stream, the vertices of the primitive that ends with it, if there is one. In a triangle with reversed winding, the two vertices change
    /// places that do not provoke, which either the first or the last one does.
    fn primitives(
        &self,
        stream: u8,
        primitive: Option<Primitive>,
        last_provokes: bool,
    ) -> Vec<Option<Vec<usize>>> {
        let size = match primitive {
            Some(Primitive::Points) => 1,
            Some(Primitive::Lines) => 2,
            _ => 3,
        };
        let ends = |vertex: usize| match stream {
            0 => self.cuts.contains(&vertex),
            _ => self.other_cuts.contains(&(stream, vertex)),
        };
        let mut strip = 0;
        (0..self.stream(stream).len())
            .map(|last| {
                strip = if ends(last) { 1 } else { strip + 1 };
                if strip < size {
                    None
                } else if size == 3 && (strip - size) % 2 == 1 {
                    Some(if last_provokes {
                        vec![last - 1, last - 2, last]
                    } else {
                        vec![last - 2, last, last - 1]
                    })
                } else {
                    Some((0..size).rev().map(|back| last - back).collect())
                }
            })
            .collect()
    }
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

/// A shader without instructions, in which floats behave as in another one.
fn empty(stage: Stage, other: &Shader) -> Shader {
    let mut shader = Shader::with_entry(stage, "main");
    shader.info.float_modes = other.info.float_modes;
    shader
}

/// Slots and components that a shader stores, of vertices, with the bits that all stores of a component have.
fn stored_components(shader: &Shader) -> Vec<(u16, u8, u32)> {
    let mut shader = shader.clone();
    lower_io(&mut shader);
    let mut stored: BTreeMap<(u16, u8), u32> = BTreeMap::new();
    for (key, component, mask) in stored_by(&shader) {
        *stored.entry((key.slot as u16, component as u8)).or_insert(u32::MAX) &= mask;
    }
    stored.into_iter().map(|((slot, component), mask)| (slot, component, mask)).collect()
}

/// Loads a component that another shader stores. The bits above a narrow one are any.
fn load_stored(b: &mut Builder<'_>, input: SlotAccess, operands: &[Value], mask: u32) -> Value {
    let value = b.value(Op::LoadSlot, Payload::Slot(input), operands, Type::B32);
    if mask == u32::MAX {
        return value;
    }
    let mask = b.u32(mask);
    b.alu(Op::IAnd, &[value, mask])
}

/// A vertex shader that stores the numbers of its vertex and instance, and an attribute.
pub fn number_vertices() -> Shader {
    let mut shader = empty(Stage::Vertex, &Shader::default());
    let func = shader.entry_mut();
    let body = func.body();
    let access = SlotAccess::of(SlotDir::Input, FIRST_LOCATION_SLOT);
    let mut b = Builder::at_end(func, body);
    let offset = b.u32(0);
    let numbers = [SystemValue::VertexIndex, SystemValue::InstanceIndex];
    let [vertex, instance] = numbers.map(|value| b.value(Op::SysVal, Payload::SysVal(value), &[], Type::B32));
    let attribute = b.value(Op::LoadSlot, Payload::Slot(access), &[offset], Type::B32);
    for (component, value) in (0..).zip([vertex, instance, attribute]) {
        let output = SlotAccess { dir: SlotDir::Output, component, ..access };
        b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
    }
    b.return_(&[]);
    shader
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
    let mut shader = empty(Stage::Vertex, &second);
    let func = shader.entry_mut();
    let body = func.body();
    let access = SlotAccess::of(SlotDir::Input, 0);
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

/// A tessellation control shader that leaves what another shader stores of the vertices of a patch in slots of the patch; and that of its own vertex in its output, if
/// there are several.
pub fn pass_patches(first: &Shader, vertices: u32) -> Shader {
    let (stored, mut shader) = (stored_components(first), empty(Stage::TessControl, first));
    shader.info.output_vertices = vertices;
    let func = shader.entry_mut();
    let body = func.body();
    for vertex in 0..PATCH_VERTICES as u32 {
        for (number, &(slot, component, mask)) in (0..).zip(&stored) {
            let mut b = Builder::at_end(func, body);
            let (chosen, offset) = (b.u32(vertex), b.u32(0));
            let input = SlotAccess { vertex: true, component, ..SlotAccess::of(SlotDir::Input, slot) };
            let output = SlotAccess {
                dir: SlotDir::Output,
                vertex: false,
                patch: true,
                slot: FIRST_LOCATION_SLOT + number,
                component: vertex as u8,
                ..input
            };
            let value = load_stored(&mut b, input, &[chosen, offset], mask);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
        }
    }
    let mut b = Builder::at_end(func, body);
    let invocation = b.value(Op::SysVal, Payload::SysVal(SystemValue::InvocationId), &[], Type::B32);
    for &(slot, component, mask) in stored.iter().filter(|_| vertices > 1) {
        let offset = b.u32(0);
        let input = SlotAccess { vertex: true, component, ..SlotAccess::of(SlotDir::Input, slot) };
        let output = SlotAccess { dir: SlotDir::Output, ..input };
        let value = load_stored(&mut b, input, &[invocation, offset], mask);
        b.inst(Op::StoreSlot, Payload::Slot(output), &[value, invocation, offset], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// A geometry shader that passes on triangles, with what another shader stores of their vertices.
pub fn pass_triangles(first: &Shader) -> Shader {
    let (stored, mut shader) = (stored_components(first), empty(Stage::Geometry, first));
    shader.info.input_primitive = Some(Primitive::Triangles);
    shader.info.output_primitive = Some(Primitive::Triangles);
    shader.info.output_vertices = 3;
    let func = shader.entry_mut();
    let body = func.body();
    for vertex in 0..3 {
        for &(slot, component, mask) in &stored {
            let mut b = Builder::at_end(func, body);
            let (vertex, offset) = (b.u32(vertex), b.u32(0));
            let output = SlotAccess { component, ..SlotAccess::of(SlotDir::Output, slot) };
            let input = SlotAccess { dir: SlotDir::Input, vertex: true, ..output };
            let value = load_stored(&mut b, input, &[vertex, offset], mask);
            b.inst(Op::StoreSlot, Payload::Slot(output), &[value, offset], &[]);
        }
        Builder::at_end(func, body).inst(Op::EmitVertex, Payload::Stream(0), &[], &[]);
    }
    Builder::at_end(func, body).return_(&[]);
    shader
}

/// How many patches a workgroup has.
fn group_patches(control: &Shader) -> usize {
    let lanes = PATCH_VERTICES.max(control.info.output_vertices as usize);
    (GROUP_LANES / lanes).clamp(1, GROUP_PATCHES)
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
    [Fill::Mixed, Fill::Small, Fill::Switches, Fill::Sizes].into_iter().find_map(|fill| {
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
            Stage::TessControl => group_patches(&second) * PATCH_VERTICES,
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
        let options = interp::Options {
            robust: true,
            races: false,
            subgroup_size: case.lanes as u32,
            limits,
            ..interp::Options::default()
        };
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

    /// How many primitives a workgroup has. Of primitive shaders it has a lane for each vertex that may be emitted, and LDS has all of these vertices.
    fn group_primitives(&self) -> usize {
        let most = self.second.info.output_vertices.max(1) as usize;
        let func = self.second.entry();
        let streams = func.walk().filter_map(|inst| match (func.op(inst), func.payload(inst)) {
            (Op::EmitVertex, Payload::Stream(stream)) => Some(stream),
            _ => None,
        });
        let streams = streams.collect::<BTreeSet<_>>().len().max(1);
        // The flags of a vertex are a slot, too; its number is a dword.
        let emitted = (slot_count(&self.second) + 1) * streams * SLOT_BYTES + 4;
        let passed = self.passed.len() * slot_count(&self.first.shader) * SLOT_BYTES;
        let room = GROUP_LDS.saturating_sub(OTHER_LDS + passed);
        (250 / most).min(room / (emitted * most)).clamp(1, GROUP_PRIMITIVES)
    }
}

/// How many output slots a shader stores.
fn slot_count(shader: &Shader) -> usize {
    stored_by(shader).into_iter().map(|(key, ..)| key.slot).collect::<BTreeSet<_>>().len()
}

fn strips(outputs: Vec<VertexOutput>) -> Strips {
    let mut strips = Strips::default();
    for output in outputs {
        match output {
            VertexOutput::Vertex { stream: 0, slots, .. } => strips.vertices.push(slots),
            VertexOutput::Vertex { stream, slots, .. } => strips.others.push((stream, slots)),
            VertexOutput::EndPrimitive { stream: 0 } => strips.cuts.push(strips.vertices.len()),
            VertexOutput::EndPrimitive { stream } => {
                let end = strips.stream(stream).len();
                strips.other_cuts.push((stream, end));
            }
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
    /// Those of two stages of a pipeline, in their order; the one after a geometry shader is last.
    pub fn of(programs: Vec<Compiled>, copy: Option<Compiled>) -> GroupPrograms {
        GroupPrograms { programs, copy }
    }

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
