//! Tessellation: control shaders write levels and outputs to memory, the tessellator divides patches, evaluation shaders place
//! their points.
//!
//! Facts: how Mesa's ir3 compiler and Turnip lay out headers, levels and local memory. Never: divides a patch itself.

use super::call::{Domain, DrawCall};
use super::geometry::{GeometryInput, GeometryStage, LOCAL};
use super::link::Linkage;
use super::registers::{DrawRegisters, DrawStage, Reg, named};
use super::tessellator::{Made, Spacing, Tessellated, tessellate};
use super::vertices::{Assembled, ShadedVertices};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::fiber_trace::{FiberTrace, FiberWanted};
use crate::adreno::ir3::{FiberTap, Fibers, Options, Planes, StageCode, StartValue};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::Client;
use std::sync::Arc;

/// Fibers of a wave.
const WAVE: usize = 64;
/// Fibers of evaluation that run together.
const BATCH: usize = 256;
/// Primitives that go on to a geometry shader at once.
const CHAINED: usize = 1024;
/// Patches that are divided at once.
const PATCHES: usize = 16;
/// Bytes of the buffer of levels.
const LEVELS: usize = 8192;

/// The two shaders of tessellation and their state.
pub(super) struct TessStage {
    control: StageCode,
    evaluation: StageCode,
    domain: Domain,
    spacing: Spacing,
    made: Made,
    /// Vertices that control shaders put out for a patch.
    vertices: usize,
    levels: u64,
    /// Where the header of a control shader has the number of the patch.
    patch_shift: u32,
    control_values: [Option<u8>; 3],
    /// Patch, both coordinates, number of the primitive.
    evaluation_values: [Option<u8>; 4],
    linkage: Linkage,
}

/// What a control shader is given of some patches: their numbers, the first one's place among those of the buffers, and local
/// memory with their vertices.
pub(super) struct PatchInput {
    pub(super) numbers: Vec<u32>,
    pub(super) first: u32,
    pub(super) local: Vec<u8>,
}

/// A point of a patch.
#[derive(Clone, Copy)]
struct DomainPoint {
    patch: u32,
    number: u32,
    place: [f32; 2],
}

impl TessStage {
    pub(super) fn new(
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        call: &DrawCall,
        linkage: &Linkage,
    ) -> Result<TessStage, CpStop> {
        let control = machine.stage_code(id, DrawStage::Hull, LOCAL)?;
        let local = if call.geometry { LOCAL } else { 0 };
        let mut evaluation = machine.stage_code(id, DrawStage::Domain, local)?;
        if !call.geometry {
            evaluation.outputs = linkage.outputs.iter().map(|(register, _)| *register).collect();
        }
        let shares = machine.adreno.device.is_some_and(|device| device.flag("a6xx.tess_use_shared"));
        let registers = DrawRegisters { machine, thread: id };
        let state = registers.get(Reg::TessControl);
        let values = registers.get(Reg::HullValues);
        let domain = registers.get(Reg::DomainValues);
        Ok(TessStage {
            control,
            evaluation,
            domain: call.domain,
            spacing: match state & 3 {
                2 => Spacing::FractionalOdd,
                3 => Spacing::FractionalEven,
                _ => Spacing::Equal,
            },
            made: match state >> 2 & 3 {
                0 => Made::Points,
                1 => Made::Lines,
                code => Made::Triangles { clockwise: code == 2 },
            },
            vertices: registers.get(Reg::TessVertices).clamp(1, 32) as usize,
            levels: registers.address(Reg::TessFactors, 0),
            patch_shift: if shares { 16 } else { 0 },
            control_values: [
                named(values >> 8),
                named(values),
                named(registers.get(Reg::VertexValues) >> 16),
            ],
            evaluation_values: [named(domain >> 8), named(domain >> 16), named(domain >> 24), named(domain)],
            linkage: linkage.clone(),
        })
    }

    /// Registers of the header and of the place and number of the patch, which the vertex shader is given, too.
    pub(super) fn input_registers(&self) -> [Option<u8>; 3] {
        self.control_values
    }

    /// Patches of so many control points that run together.
    pub(super) fn patches_of_a_wave(&self, points: usize) -> usize {
        (WAVE / points.max(self.vertices).max(1)).max(1)
    }

    /// Patches that are divided before their primitives are rasterized: their levels fit into the buffer.
    pub(super) fn most_patches(&self) -> usize {
        (LEVELS / self.level_bytes()).min(PATCHES)
    }

    fn level_counts(&self) -> [usize; 2] {
        match self.domain {
            Domain::Quads => [4, 2],
            Domain::Triangles => [3, 1],
            Domain::Lines => [2, 0],
        }
    }

    /// Bytes of the levels of a patch, behind its number.
    fn level_bytes(&self) -> usize {
        4 + 4 * self.level_counts().iter().sum::<usize>()
    }

    fn control_fibers(&self, input: &PatchInput, trace: Option<&FiberTrace>) -> Fibers {
        let places = (0..input.numbers.len() as u32)
            .flat_map(|patch| (0..self.vertices as u32).map(move |vertex| (patch, vertex)));
        let places: Vec<(u32, u32)> = places.collect();
        let header = |(patch, vertex): (u32, u32)| (patch & 0x3f) << self.patch_shift | (vertex & 0x1f) << 11;
        let number = |patch: u32| input.numbers.get(patch as usize).copied().unwrap_or(0);
        let [to_header, to_patch, to_number] = self.control_values;
        let mut starts = Vec::new();
        let mut start = |register: Option<u8>, value: &dyn Fn((u32, u32)) -> u32| {
            if let Some(register) = register {
                let values = places.iter().map(|place| value(*place)).collect();
                starts.push(StartValue { register, half: false, values });
            }
        };
        start(to_header, &header);
        start(to_patch, &|(patch, _)| input.first + patch);
        start(to_number, &|(patch, _)| number(patch));
        let wanted = |&(patch, vertex): &(u32, u32)| Some(FiberWanted::Hull { patch: number(patch), vertex });
        let taps = trace.map(|trace| trace.taps(DrawStage::Hull.name(), places.iter().map(wanted)));
        let (local, taps) = (input.local.clone(), taps.unwrap_or_default());
        Fibers { count: places.len(), starts, local, taps, ..Fibers::default() }
    }

    /// Runs control shaders, divides the patches, and runs evaluation shaders: what they put out.
    pub(super) fn run(
        &self,
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        inputs: &[PatchInput],
    ) -> Result<TessOutput, CpStop> {
        let trace = machine.trace_now();
        let batches: Vec<Fibers> = inputs.iter().map(|input| self.control_fibers(input, trace)).collect();
        let options = Options { steps: machine.allowance, ..machine.compute };
        let none = Arc::new(Planes::default());
        let run = self.control.run(&batches, &none, &mut machine.space.memory, &options, |_| ());
        let stats = run.map_err(|fault| machine.stage_stop(id, DrawStage::Hull, fault))?;
        machine.spend(stats.steps)?;
        let mut output =
            TessOutput { points: Vec::new(), corners: Vec::new(), size: self.size(), patches: 0 };
        for input in inputs {
            for (patch, number) in (input.first..).zip(&input.numbers) {
                let tessellated = self.divide(machine, patch)?;
                let first = output.points.len() as u32;
                let point = |place: &[f32; 2]| DomainPoint { patch, number: *number, place: *place };
                output.points.extend(tessellated.points.iter().map(point));
                for corners in tessellated.corners.chunks_exact(output.size) {
                    let mut all = [0; 3];
                    all.iter_mut().zip(corners).for_each(|(place, corner)| *place = first + corner);
                    output.corners.push((all, *number));
                }
                output.patches += 1;
            }
        }
        machine.spend(output.points.len() as u64)?;
        Ok(output)
    }

    fn size(&self) -> usize {
        match self.made {
            Made::Points => 1,
            Made::Lines => 2,
            Made::Triangles { .. } => 3,
        }
    }

    /// Divides a patch by the levels that its control shader wrote.
    fn divide(&self, machine: &AdrenoMachine<'_>, patch: u32) -> Result<Tessellated, CpStop> {
        let [outer, inner] = self.level_counts();
        let at = self.levels.wrapping_add(u64::from(patch) * self.level_bytes() as u64 + 4);
        let mut levels = [0f32; 6];
        for (n, level) in (0..).zip(levels.iter_mut().take(outer + inner)) {
            let bits = machine.space.read(at.wrapping_add(4 * n), 4, Client::Pc)?;
            *level = f32::from_bits(bits as u32);
        }
        let (outer, inner) = levels[..outer + inner].split_at(outer);
        Ok(tessellate(self.domain, self.spacing, self.made, outer, inner))
    }

    fn evaluation_starts(&self, points: &[DomainPoint]) -> Vec<StartValue> {
        let [patch, u, v, number] = self.evaluation_values;
        let mut starts = Vec::new();
        let mut start = |register: Option<u8>, value: &dyn Fn(&DomainPoint) -> u32| {
            if let Some(register) = register {
                starts.push(StartValue { register, half: false, values: points.iter().map(value).collect() });
            }
        };
        start(patch, &|point| point.patch);
        start(u, &|point| point.place[0].to_bits());
        start(v, &|point| point.place[1].to_bits());
        start(number, &|point| point.number);
        starts
    }

    /// Runs evaluation shaders for all points: vertices and primitives.
    pub(super) fn evaluate(
        &self,
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        output: &TessOutput,
    ) -> Result<Assembled, CpStop> {
        let trace = machine.trace_now();
        let fibers = |(part, points): (usize, &[DomainPoint])| Fibers {
            count: points.len(),
            starts: self.evaluation_starts(points),
            taps: output.taps(trace, part * BATCH..part * BATCH + points.len()),
            ..Fibers::default()
        };
        let batches: Vec<Fibers> = output.points.chunks(BATCH).enumerate().map(fibers).collect();
        let mut vertices = ShadedVertices::new(self.linkage.components);
        let options = Options { steps: machine.allowance, ..machine.compute };
        let none = Arc::new(Planes::default());
        let run = self.evaluation.run(&batches, &none, &mut machine.space.memory, &options, |done| {
            vertices.take(&done, &self.linkage.outputs);
        });
        let stats = run.map_err(|fault| machine.stage_stop(id, DrawStage::Domain, fault))?;
        machine.spend(stats.steps)?;
        let mut assembled = Assembled::new(vertices, output.size);
        for (corners, number) in &output.corners {
            assembled.push(corners, *number, 0, true);
        }
        Ok(assembled)
    }

    /// Runs evaluation shaders for a geometry shader, some primitives of the output: their vertices in local memory.
    pub(super) fn evaluate_for(
        &self,
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        output: &TessOutput,
        corners: &[([u32; 3], u32)],
        geometry: &GeometryStage,
    ) -> Result<Vec<GeometryInput>, CpStop> {
        let primitives = (WAVE / output.size).max(1);
        let parts: Vec<&[([u32; 3], u32)]> = corners.chunks(primitives).collect();
        let trace = machine.trace_now();
        let batches: Vec<Fibers> = parts
            .iter()
            .map(|part| {
                let corners = part.iter().flat_map(|(corners, _)| &corners[..output.size]);
                let corners: Vec<usize> =
                    corners.map(|at| *at as usize).filter(|at| *at < output.points.len()).collect();
                let points: Vec<DomainPoint> =
                    corners.iter().filter_map(|at| output.points.get(*at)).copied().collect();
                let mut starts = self.evaluation_starts(&points);
                if let Some(register) = geometry.header() {
                    let size = output.size as u32;
                    let header = |at: u32| GeometryStage::input_header(at / size, at % size);
                    let values = (0..points.len() as u32).map(header).collect();
                    starts.push(StartValue { register, half: false, values });
                }
                let taps = output.taps(trace, corners.iter().copied());
                Fibers { count: points.len(), starts, taps, ..Fibers::default() }
            })
            .collect();
        let mut inputs = Vec::with_capacity(parts.len());
        let mut numbers = parts.iter().map(|part| part.iter().map(|(_, number)| *number).collect());
        let options = Options { steps: machine.allowance, ..machine.compute };
        let none = Arc::new(Planes::default());
        let run = self.evaluation.run(&batches, &none, &mut machine.space.memory, &options, |done| {
            inputs.push(GeometryInput { numbers: numbers.next().unwrap_or_default(), local: done.local });
        });
        let stats = run.map_err(|fault| machine.stage_stop(id, DrawStage::Domain, fault))?;
        machine.spend(stats.steps)?;
        Ok(inputs)
    }
}

/// Patches, divided.
pub(super) struct TessOutput {
    points: Vec<DomainPoint>,
    /// Numbers of points of each primitive, and the number of its patch.
    corners: Vec<([u32; 3], u32)>,
    size: usize,
    pub(super) patches: u64,
}

impl TessOutput {
    /// Primitives of all patches, so many at a time.
    pub(super) fn parts(&self) -> impl Iterator<Item = &[([u32; 3], u32)]> {
        self.corners.chunks(CHAINED)
    }

    /// Taps for those of some points that are traced.
    fn taps(&self, trace: Option<&FiberTrace>, points: impl Iterator<Item = usize>) -> Vec<FiberTap> {
        let Some(trace) = trace else { return Vec::new() };
        let wanted = |at: usize| {
            let point = self.points.get(at)?;
            let first = self.points.partition_point(|other| other.patch < point.patch);
            Some(FiberWanted::Domain { patch: point.number, point: at.checked_sub(first)? as u32 })
        };
        trace.taps(DrawStage::Domain.name(), points.map(wanted))
    }

    /// Points of all patches.
    pub(super) fn points(&self) -> u64 {
        self.points.len() as u64
    }
}
