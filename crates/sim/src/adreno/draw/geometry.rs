//! Geometry shaders: a fiber for every vertex that a primitive may put out, and what strips their vertices form.
//!
//! Facts: how Mesa's ir3 compiler splits a geometry shader over fibers, and hands vertices on in local memory. Never: fetches
//! vertices, rasterizes.

use super::assembly::{Topology, assemble};
use super::link::Linkage;
use super::registers::{DrawRegisters, DrawStage, Reg, named};
use super::vertices::{Assembled, ShadedVertices};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::fiber_trace::{FiberTrace, FiberWanted};
use crate::adreno::ir3::{Fibers, FibersDone, Options, OutputRegister, Planes, StageCode, StartValue};
use crate::adreno::machine::AdrenoMachine;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Bytes of local memory.
pub(super) const LOCAL: u32 = 1 << 16;
/// Primitives that the header of a fiber can number.
pub(super) const LOCAL_PRIMITIVES: usize = 64;
/// Fibers that run together.
const BATCH: usize = 1024;
/// Batches that are run before their vertices are taken.
const BATCHES: usize = 32;
/// Of a vertex: it begins a strip.
const RESTARTS: u32 = 4;

/// A geometry shader and its state.
pub(super) struct GeometryStage {
    code: StageCode,
    /// Registers of the header and of the primitive's number.
    header: Option<u8>,
    primitive: Option<u8>,
    vertices: u32,
    invocations: u32,
    topology: Topology,
    linkage: Linkage,
    /// The stream that is rasterized.
    stream: u32,
}

/// What a geometry shader is given of some primitives: their numbers, and local memory with their vertices.
pub(super) struct GeometryInput {
    pub(super) numbers: Vec<u32>,
    pub(super) local: Vec<u8>,
}

/// A fiber: the primitive among those of local memory, the invocation, the vertex.
#[derive(Clone, Copy)]
struct Place {
    primitive: u32,
    invocation: u32,
    vertex: u32,
}

impl GeometryStage {
    pub(super) fn new(
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        linkage: &Linkage,
    ) -> Result<GeometryStage, CpStop> {
        let mut code = machine.stage_code(id, DrawStage::Geometry, LOCAL)?;
        code.outputs = linkage.outputs.iter().map(|(register, _)| *register).collect();
        let flags = linkage.flags.unwrap_or(252);
        code.outputs.push(OutputRegister { register: flags, half: false, target: None });
        let registers = DrawRegisters { machine, thread: id };
        let control = registers.get(Reg::GeometryControl);
        Ok(GeometryStage {
            code,
            header: named(registers.get(Reg::GeometryValues)),
            primitive: named(registers.get(Reg::VertexValues) >> 16)
                .or(named(registers.get(Reg::DomainValues))),
            vertices: (control & 0xff) + 1,
            invocations: (control >> 10 & 0x1f) + 1,
            topology: match control >> 16 & 3 {
                0 => Topology::Points,
                1 => Topology::LineStrip,
                _ => Topology::TriangleStrip,
            },
            linkage: linkage.clone(),
            stream: registers.get(Reg::RasterControl) & 3,
        })
    }

    pub(super) fn header(&self) -> Option<u8> {
        self.header
    }

    pub(super) fn invocations(&self) -> u32 {
        self.invocations
    }

    /// The header of a vertex of a primitive, as the stage before is given it.
    pub(super) fn input_header(primitive: u32, vertex: u32) -> u32 {
        primitive & 0x3f | (vertex & 0x1f) << 6
    }

    fn fibers(&self, input: &GeometryInput, places: &[Place], trace: Option<&FiberTrace>) -> Fibers {
        let header = |place: &Place| {
            place.primitive & 0x3f | (place.invocation & 0x1f) << 11 | (place.vertex & 0x3ff) << 16
        };
        let number = |place: &Place| input.numbers.get(place.primitive as usize).copied().unwrap_or(0);
        let wanted = |place: &Place| {
            let Place { invocation, vertex, .. } = *place;
            Some(FiberWanted::Geometry { primitive: number(place), invocation, vertex })
        };
        let start = |register: Option<u8>, value: &dyn Fn(&Place) -> u32| {
            register.map(|register| StartValue {
                register,
                half: false,
                values: places.iter().map(value).collect(),
            })
        };
        Fibers {
            count: places.len(),
            starts: [start(self.header, &header), start(self.primitive, &number)]
                .into_iter()
                .flatten()
                .collect(),
            local: input.local.clone(),
            taps: trace
                .map(|trace| trace.taps(DrawStage::Geometry.name(), places.iter().map(wanted)))
                .unwrap_or_default(),
            ..Fibers::default()
        }
    }

    /// Runs the shader over primitives: what it puts out, assembled.
    pub(super) fn run(
        &self,
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        inputs: &[GeometryInput],
        last_provokes: bool,
    ) -> Result<Assembled, CpStop> {
        let mut collector = Collector::new(self, last_provokes);
        let mut batches = Vec::new();
        let mut parts = Vec::new();
        for input in inputs {
            let all = (0..input.numbers.len() as u32).flat_map(|primitive| {
                (0..self.invocations).flat_map(move |invocation| {
                    (0..self.vertices).map(move |vertex| Place { primitive, invocation, vertex })
                })
            });
            let places: Vec<Place> = all.collect();
            machine.spend(places.len() as u64)?;
            for part in places.chunks(BATCH) {
                batches.push(self.fibers(input, part, machine.trace_now()));
                parts.push((input, part.to_vec()));
                if batches.len() >= BATCHES {
                    self.run_batches(machine, id, &mut batches, &mut parts, &mut collector)?;
                }
            }
        }
        self.run_batches(machine, id, &mut batches, &mut parts, &mut collector)?;
        collector.end_strip();
        Ok(collector.assembled)
    }

    /// Runs batches and takes their vertices.
    fn run_batches(
        &self,
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        batches: &mut Vec<Fibers>,
        parts: &mut Vec<(&GeometryInput, Vec<Place>)>,
        collector: &mut Collector<'_>,
    ) -> Result<(), CpStop> {
        let mut done: Vec<FibersDone> = Vec::with_capacity(batches.len());
        let options = Options { steps: machine.allowance, ..machine.compute };
        let none = Arc::new(Planes::default());
        let run =
            self.code.run(batches, &none, &mut machine.space.memory, &options, |fibers| done.push(fibers));
        let stats = run.map_err(|fault| machine.stage_stop(id, DrawStage::Geometry, fault))?;
        machine.spend(stats.steps)?;
        for ((input, places), done) in parts.iter().zip(&done) {
            for (fiber, place) in places.iter().enumerate() {
                if place.vertex == 0 {
                    collector.end_strip();
                    collector.number = input.numbers.get(place.primitive as usize).copied().unwrap_or(0);
                }
                if !done.dropped.get(fiber).copied().unwrap_or(true) {
                    collector.vertex(done, fiber);
                }
            }
        }
        batches.clear();
        parts.clear();
        Ok(())
    }
}

/// Vertices on their way to primitives.
struct Collector<'g> {
    stage: &'g GeometryStage,
    last_provokes: bool,
    /// Number of the input primitive.
    number: u32,
    /// Where the strip begins.
    first: u32,
    stream: u32,
    assembled: Assembled,
}

impl<'g> Collector<'g> {
    fn new(stage: &'g GeometryStage, last_provokes: bool) -> Collector<'g> {
        let vertices = ShadedVertices::new(stage.linkage.components.max(1));
        let size = stage.topology.vertices();
        let assembled = Assembled::new(vertices, size);
        Collector { stage, last_provokes, number: 0, first: 0, stream: 0, assembled }
    }

    fn vertex(&mut self, done: &FibersDone, fiber: usize) {
        let value =
            |at: usize| done.outputs.get(at).and_then(|values| values.get(fiber)).copied().unwrap_or(0);
        let flags = value(self.stage.linkage.outputs.len());
        if flags & RESTARTS != 0 || flags & 3 != self.stream {
            self.end_strip();
        }
        self.stream = flags & 3;
        let vertex = self.assembled.vertices.add();
        for (at, (_, component)) in self.stage.linkage.outputs.iter().enumerate() {
            if let Some(place) = vertex.get_mut(*component) {
                *place = value(at);
            }
        }
    }

    fn end_strip(&mut self) {
        let end = self.assembled.vertices.len();
        let (number, stream) = (self.number, self.stream);
        let Collector { stage, assembled, first, last_provokes, .. } = self;
        let mut emit = |corners: &[u32]| {
            assembled.push(corners, number, stream, stream == stage.stream);
            ControlFlow::Continue(())
        };
        // Every primitive is taken.
        let _ = assemble(stage.topology, *first..end, *last_provokes, &mut emit);
        self.first = end;
    }
}
