//! What registers hold when a program of a stage before the rasterizer starts.
//!
//! Programs of two merged stages have eight words of the hardware before those of the driver; others have the hardware's after them. Vector registers of
//! a merged second stage come before those of the first.

use super::graphics::Reads;
use super::{ArgLocation, Args, Argument, Interface, Uses};
use crate::captures::Captures;
use crate::compile::{CompileError, Options};
use crate::culling::{may_cull, may_cull_emitted};
use crate::graphics::{GraphicsOptions, MemorySlots};
use crate::ir::PhysReg;
use crate::lower::geometry::{OTHER_STREAMS, stored_components};
use crate::stages::HardwareStage;
use std::collections::BTreeSet;
use unwedge_isa::amdgcn::{Gfx, Reg};
use unwedge_shader::ir::{Builtin, FIRST_LOCATION_SLOT, Op, Payload, Shader, SlotAccess, Stage, SystemValue};

/// Registers that the hardware gives merged stages before those of the driver.
const MERGED_SGPRS: usize = 8;
/// The vector register of the primitive on the stage VS.
const VERTEX_PRIMITIVE: u8 = 2;
/// The most vertices of a primitive that a geometry shader takes.
const PRIMITIVE_VERTICES: u8 = 6;

impl Args {
    /// The arguments of the shaders that run in a stage of the hardware before the rasterizer, in their order.
    pub(super) fn before_rasterizer(
        parts: &[&Shader],
        options: &Options,
        hardware: HardwareStage,
    ) -> Result<Args, CompileError> {
        let generation = options.gpu.generation();
        let has = |stage| parts.iter().any(|part| part.info.stage == stage);
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, 2);
        let evaluates = has(Stage::TessEval);
        if hardware.is_merged() {
            args.system_words(hardware, generation, evaluates);
            next = MERGED_SGPRS;
        }
        let first = next;
        args.common(&Uses::of_all(parts), &mut next);
        if let Some(vertex) = parts.iter().find(|part| part.info.stage == Stage::Vertex) {
            args.vertex_words(&Reads::of(vertex), &mut next);
        } else if parts.iter().any(|part| Reads::of(part).has(SystemValue::ViewIndex)) {
            args.add(Argument::ViewIndex, &mut next, 1);
        }
        let exports = matches!(hardware, HardwareStage::Vs | HardwareStage::Ngg);
        let rings = evaluates || !(exports || hardware == HardwareStage::Ls);
        if rings && generation < Gfx::Gfx11 {
            args.add(Argument::Rings, &mut next, 1);
        }
        if has(Stage::TessControl) {
            args.add(Argument::PatchCount, &mut next, 1);
        }
        if hardware == HardwareStage::Ngg && has(Stage::Geometry) {
            args.add(Argument::EmittedLds, &mut next, 1);
        }
        let graphics = &options.graphics;
        let may = hardware == HardwareStage::Ngg && graphics.culling;
        // Attributes that a prolog has loaded would have to move with their vertices.
        let culls =
            may && matches!(parts, [shader] if !graphics.prolog && may_cull(shader, graphics.tessellation));
        let culls_emitted = may && parts.last().is_some_and(|shader| may_cull_emitted(shader));
        if culls || culls_emitted {
            args.add(Argument::CullState, &mut next, 1);
            (0..4).for_each(|number| args.add(Argument::ViewportTransform(number), &mut next, 1));
        }
        let last = parts.last().copied();
        let captures = match last.filter(|_| exports) {
            Some(shader) => Captures::of(shader)?,
            None => Captures::default(),
        };
        args.capture_buffers(&captures, &mut next);
        // Without a geometry shader, vertices are given the number of the primitive for fragments.
        let numbers = exports
            && matches!(parts, [shader] if shader.info.stage == Stage::Vertex && Reads::of(shader).has(SystemValue::PrimitiveId));
        let captured = hardware == HardwareStage::Ngg && !captures.words.is_empty();
        if captured {
            captures.check_primitives()?;
            if generation >= Gfx::Gfx12 {
                args.add(Argument::CaptureState, &mut next, 1);
            }
        }
        // Primitives are triangles where they are culled.
        let provoked = hardware == HardwareStage::Ngg && numbers && graphics.last_vertex_provokes && !culls;
        if provoked || captured && last.is_some_and(|shader| shader.info.stage == Stage::Vertex) {
            args.add(Argument::PrimitiveVertices, &mut next, 1);
        }
        Args::check_user(next - if hardware.is_merged() { first } else { 0 }, generation)?;
        if !hardware.is_merged() {
            args.own_words(hardware, evaluates, &captures, &mut next);
        }
        let begin = args.second_vectors(hardware, generation, culls || numbers || has(Stage::Geometry));
        args.first_vectors(parts[0].info.stage, hardware, generation, begin);
        if numbers && hardware == HardwareStage::Vs {
            args.vector(Argument::VertexPrimitive, VERTEX_PRIMITIVE, 1);
        }
        if options.graphics.prolog && parts[0].info.stage == Stage::Vertex {
            args.attribute_vectors(&Reads::of(parts[0]), begin);
        }
        args.interface =
            Interface { culls, culls_emitted, captures, ..Interface::between(parts, options, hardware) };
        if let Some(shader) = last.filter(|shader| shader.info.stage == Stage::Geometry) {
            args.interface.streams = captured_streams(shader, &Captures::of(shader)?);
        }
        Ok(args)
    }

    /// The arguments of the shader that exports what a geometry shader has left in memory.
    pub(crate) fn copy(
        geometry: &Shader,
        shader: &Shader,
        options: &Options,
        slots: MemorySlots,
    ) -> Result<Args, CompileError> {
        let captures = Captures::of(geometry)?;
        let mut args = Args::default();
        let mut next = 0;
        args.add(Argument::RingOffsets, &mut next, 2);
        args.add(Argument::Rings, &mut next, 1);
        args.capture_buffers(&captures, &mut next);
        args.own_words(HardwareStage::Vs, false, &captures, &mut next);
        args.vector(Argument::VertexId, 0, 1);
        args.interface = Interface::between(&[shader], options, HardwareStage::Vs);
        args.interface.inputs = slots;
        args.interface.streams = captured_streams(geometry, &captures);
        // Without transform feedback, the hardware drops the vertices of other streams.
        args.interface.other_streams = !captures.words.is_empty() && emits_to_other_streams(geometry);
        args.interface.captures = captures;
        Ok(args)
    }

    fn capture_buffers(&mut self, captures: &Captures, next: &mut usize) {
        if !captures.words.is_empty() {
            self.add(Argument::CaptureBuffers, next, 1);
        }
    }

    fn at(&mut self, argument: Argument, number: u16) {
        self.list.push(ArgLocation { argument, reg: PhysReg::of(Reg(number)), dwords: 1 });
    }

    /// The hardware's words of merged stages.
    fn system_words(&mut self, hardware: HardwareStage, generation: Gfx, evaluates: bool) {
        self.at(
            match hardware {
                HardwareStage::LsHs => Argument::OffchipOffset,
                HardwareStage::EsGs => Argument::GsToVs,
                _ => Argument::GroupInfo,
            },
            2,
        );
        self.at(Argument::MergedWaveInfo, 3);
        if hardware == HardwareStage::LsHs {
            self.at(Argument::FactorOffset, 4);
        } else if evaluates {
            self.at(Argument::OffchipOffset, 4);
        }
        if generation < Gfx::Gfx11 {
            self.at(Argument::ScratchOffset, 5);
        } else if hardware == HardwareStage::Ngg {
            self.at(Argument::AttributeRing, 5);
        }
    }

    /// The hardware's words of a stage that is not merged.
    fn own_words(&mut self, hardware: HardwareStage, evaluates: bool, captures: &Captures, next: &mut usize) {
        // Evaluation shaders have a register for transform feedback beside the offset of patches, whether they use it or not: the stage VS before it, the stage ES after it.
        let unused = usize::from(evaluates);
        if !captures.words.is_empty() {
            self.add(Argument::CaptureConfig, next, 1);
            self.add(Argument::CaptureIndex, next, 1);
        } else if hardware == HardwareStage::Vs {
            *next += unused;
        }
        for (buffer, _) in (0..).zip(&captures.strides).filter(|(_, stride)| **stride > 0) {
            self.add(Argument::CaptureOffset(buffer), next, 1);
        }
        if evaluates || hardware == HardwareStage::Hs {
            self.add(Argument::OffchipOffset, next, 1);
        }
        if hardware == HardwareStage::Es {
            *next += unused;
        }
        match hardware {
            HardwareStage::Hs => self.add(Argument::FactorOffset, next, 1),
            HardwareStage::Es => self.add(Argument::EsToGs, next, 1),
            HardwareStage::Gs => {
                self.add(Argument::GsToVs, next, 1);
                self.add(Argument::GsWaveId, next, 1);
            }
            _ => {}
        }
        self.add(Argument::ScratchOffset, next, 1);
    }

    /// What a vertex shader has of the driver.
    fn vertex_words(&mut self, reads: &Reads, next: &mut usize) {
        let located = reads.inputs.iter().any(|slot| *slot >= FIRST_LOCATION_SLOT);
        let instances =
            reads.has(SystemValue::InstanceIndex) || reads.has(SystemValue::BaseInstance) || located;
        let vertices = reads.has(SystemValue::VertexIndex) || reads.has(SystemValue::BaseVertex) || located;
        for (wanted, argument) in [
            (located, Argument::VertexBuffers),
            (vertices, Argument::BaseVertex),
            (instances, Argument::FirstInstance),
            (reads.has(SystemValue::DrawIndex), Argument::DrawIndex),
            (reads.has(SystemValue::ViewIndex), Argument::ViewIndex),
        ] {
            if wanted {
                self.add(argument, next, 1);
            }
        }
    }

    /// Vector registers of a tessellation control or geometry shader, or of primitives, whose vertices may be in separate registers. Returns the number of the first one after them.
    fn second_vectors(&mut self, hardware: HardwareStage, generation: Gfx, apart: bool) -> u8 {
        let gfx12 = generation >= Gfx::Gfx12;
        match hardware {
            HardwareStage::Hs | HardwareStage::LsHs => {
                self.vector(Argument::PatchId, 0, 1);
                self.vector(Argument::RelativeIds, 1, 1);
                2
            }
            HardwareStage::Gs => {
                for vertex in 0..PRIMITIVE_VERTICES {
                    // The primitive is between those of the first two vertices and the others.
                    self.vector(Argument::VertexOffset(vertex), vertex + u8::from(vertex >= 2), 1);
                }
                self.vector(Argument::GeometryPrimitive, 2, 1);
                self.vector(Argument::GeometryInvocation, 7, 1);
                8
            }
            HardwareStage::EsGs | HardwareStage::Ngg if apart => {
                let offsets: &[u8] = if gfx12 { &[0, 2] } else { &[0, 1, 4] };
                for (number, register) in (0..).zip(offsets) {
                    self.vector(Argument::VertexOffset(number), *register, 1);
                }
                self.vector(Argument::GeometryPrimitive, if gfx12 { 1 } else { 2 }, 1);
                if !gfx12 {
                    self.vector(Argument::GeometryInvocation, 3, 1);
                }
                if gfx12 { 3 } else { 5 }
            }
            HardwareStage::Ngg => {
                self.vector(Argument::Connectivity, 0, 1);
                if gfx12 { 3 } else { 5 }
            }
            _ => 0,
        }
    }

    /// Vector registers of a vertex or tessellation evaluation shader.
    fn first_vectors(&mut self, stage: Stage, hardware: HardwareStage, generation: Gfx, begin: u8) {
        match stage {
            Stage::Vertex => {
                let local = matches!(hardware, HardwareStage::Ls | HardwareStage::LsHs);
                self.vector(Argument::VertexId, begin, 1);
                if local && generation < Gfx::Gfx11 {
                    self.vector(Argument::RelativeVertex, begin + 1, 1);
                }
                let instance = match generation {
                    Gfx::Gfx12 => 1,
                    generation if generation >= Gfx::Gfx10 => 3,
                    _ if local => 2,
                    _ => 1,
                };
                self.vector(Argument::InstanceId, begin + instance, 1);
            }
            Stage::TessEval => {
                for (number, argument) in
                    [Argument::TessU, Argument::TessV, Argument::RelativePatch, Argument::PatchId]
                        .into_iter()
                        .enumerate()
                {
                    self.vector(argument, begin + number as u8, 1);
                }
            }
            _ => {}
        }
    }
}

/// Vector registers of a vertex shader before those of attributes.
const VERTEX_VECTORS: u8 = 4;
/// Locations for whose attributes there are registers.
const ATTRIBUTES: u16 = 32;

impl Args {
    /// Vector registers of attributes that a prolog has loaded.
    fn attribute_vectors(&mut self, reads: &Reads, begin: u8) {
        let locations = reads.inputs.iter().filter_map(|slot| slot.checked_sub(FIRST_LOCATION_SLOT));
        let mut next = begin + VERTEX_VECTORS;
        for location in locations.filter(|location| *location < ATTRIBUTES) {
            self.vector(Argument::Attribute(location.into()), next, 4);
            next += 4;
        }
    }
}

/// What a vertex or tessellation evaluation shader reads of what is in vector registers.
pub(crate) fn vertex_reads(shader: &Shader, options: &GraphicsOptions) -> Vec<Argument> {
    use SystemValue as V;
    let reads = Reads::of(shader);
    let any = |values: &[V]| values.iter().any(|value| reads.has(*value));
    let located = || reads.inputs.iter().filter_map(|slot| slot.checked_sub(FIRST_LOCATION_SLOT));
    let instanced = |location: u16| {
        options.vertex_inputs.get(&location.into()).is_some_and(|input| input.divisor.is_some())
    };
    let slots = !reads.inputs.is_empty() || !reads.patch_inputs.is_empty();
    let wanted: [(Stage, bool, &[Argument]); 6] = [
        (Stage::Vertex, any(&[V::VertexIndex]) || located().any(|at| !instanced(at)), &[Argument::VertexId]),
        (Stage::Vertex, any(&[V::InstanceIndex]) || located().any(instanced), &[Argument::InstanceId]),
        (Stage::Vertex, any(&[V::PrimitiveId]), &[Argument::VertexPrimitive]),
        (Stage::TessEval, any(&[V::TessCoord]), &[Argument::TessU, Argument::TessV]),
        (Stage::TessEval, slots, &[Argument::RelativePatch]),
        (Stage::TessEval, any(&[V::PrimitiveId]), &[Argument::PatchId]),
    ];
    let stage = shader.info.stage;
    let own = wanted.iter().filter(|(of, read, _)| *of == stage && *read);
    own.flat_map(|(.., arguments)| arguments.iter().copied()).collect()
}

/// Whether a geometry shader emits vertices to streams after the first, with or without outputs.
fn emits_to_other_streams(shader: &Shader) -> bool {
    let func = shader.entry();
    let other = |inst| matches!(func.payload(inst), Payload::Stream(stream) if stream > 0);
    func.walk().any(|inst| func.op(inst) == Op::EmitVertex && other(inst))
}

/// The slots of the streams after the first that a lowered geometry shader stores because they are captured.
fn captured_streams(shader: &Shader, captures: &Captures) -> [MemorySlots; OTHER_STREAMS] {
    std::array::from_fn(|at| {
        let stream = at as u8 + 1;
        let stored = stored_components(shader.entry(), stream);
        let vertex = if captures.has_stream(stream) { stored.into_keys().collect() } else { Vec::new() };
        MemorySlots { vertex, patch: Vec::new() }
    })
}

/// Adds the outputs of a tessellation control shader that are in LDS: those that it loads and the levels. Slots that one store chooses from are there together.
pub(crate) fn add_shared(shader: &Shader, reads: Reads, [vertex, patch]: [&mut BTreeSet<u16>; 2]) {
    vertex.extend(reads.loaded);
    patch.extend(reads.loaded_patch);
    patch.extend([Builtin::TessLevelOuter, Builtin::TessLevelInner].map(|level| level.slots().start));
    chosen_together(shader, [vertex, patch]);
}

fn shared_slots(shader: &Shader, reads: Reads) -> MemorySlots {
    let (mut vertex, mut patch) = (BTreeSet::new(), BTreeSet::new());
    add_shared(shader, reads, [&mut vertex, &mut patch]);
    MemorySlots::of(&vertex, &patch)
}

/// Adds to slots of vertices and of patches those that one store chooses from, if one of them is there: they have to follow each other in memory.
pub(crate) fn chosen_together(shader: &Shader, slots: [&mut BTreeSet<u16>; 2]) {
    let func = shader.entry();
    let stores: Vec<SlotAccess> = func
        .walk()
        .filter_map(|inst| match (func.op(inst), func.payload(inst)) {
            (Op::StoreSlot, Payload::Slot(access)) if access.count > 1 => Some(access),
            _ => None,
        })
        .collect();
    loop {
        let before = [slots[0].len(), slots[1].len()];
        for access in &stores {
            let own = &mut *slots[usize::from(access.patch)];
            let mut range = access.slot..access.slot.saturating_add(access.count);
            if range.clone().any(|slot| own.contains(&slot)) {
                own.extend(&mut range);
            }
        }
        if before == [slots[0].len(), slots[1].len()] {
            break;
        }
    }
}

impl Interface {
    fn between(parts: &[&Shader], options: &Options, hardware: HardwareStage) -> Interface {
        let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return Interface::default() };
        let (reads, stores) = (Reads::of(first), Reads::of(last));
        let graphics = &options.graphics;
        let mut interface = Interface { hardware: Some(hardware), ..Interface::default() };
        if first.info.stage != Stage::Vertex {
            interface.inputs = graphics
                .inputs
                .clone()
                .unwrap_or_else(|| MemorySlots::of(&reads.inputs, &reads.patch_inputs));
        }
        if parts.len() > 1 {
            let second = Reads::of(last);
            interface.passed = MemorySlots::of(&second.inputs, &BTreeSet::new());
        }
        let exports = matches!(hardware, HardwareStage::Vs | HardwareStage::Ngg);
        if exports {
            let parameters = stores.outputs.iter().copied();
            let read = |slot: &u16| graphics.parameters.as_ref().is_none_or(|read| read.contains(slot));
            let parameters = parameters.filter(|slot| super::graphics::is_parameter(*slot) && read(slot));
            interface.parameters = parameters.collect();
        }
        if !exports || last.info.stage == Stage::Geometry {
            interface.outputs = graphics
                .outputs
                .clone()
                .unwrap_or_else(|| MemorySlots::of(&stores.outputs, &stores.patch_outputs));
        }
        if last.info.stage == Stage::TessControl {
            interface.shared = shared_slots(last, stores);
        }
        interface
    }
}
