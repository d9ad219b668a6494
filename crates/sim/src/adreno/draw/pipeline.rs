//! A draw from its vertices to its primitives: vertex shaders run, what they put out is assembled and handed on.
//!
//! Never: rasterizes, or tests and blends samples.

use super::assembly::{Topology, assemble};
use super::call::{AssemblyState, DrawCall, Indices};
use super::counters::Statistic;
use super::fetch::{Attribute, FetchOffsets};
use super::fragment::FragmentRun;
use super::fragment_state::raster_state_of;
use super::geometry::{GeometryInput, GeometryStage, LOCAL, LOCAL_PRIMITIVES};
use super::link::{Linkage, VaryingState};
use super::primitives::{AssembledPrimitives, ClippingState};
use super::registers::{DrawRegisters, DrawStage, Reg, named};
use super::tess::{PatchInput, TessStage};
use super::vertices::{Assembled, ShadedVertices};
use super::visibility::BinningState;
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::fiber_trace::{FiberTrace, FiberWanted};
use crate::adreno::ir3::{Fibers, Planes, StageCode, StartValue};
use crate::adreno::machine::{AdrenoMachine, Note};
use crate::adreno::space::AddressSpace;
use crate::run::map_at_once;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Vertices that are shaded before their primitives are rasterized.
const CHUNK: usize = 1 << 13;
/// Vertices of a batch: four waves.
const BATCH: usize = 256;
/// Fragments that take as long as a vertex.
const VERTEX_WORK: usize = 8;
/// Vertices of a wave.
const VERTEX_WAVE: usize = 64;
/// The marker of the pass that finds out what is visible.
pub(super) const BINNING: u32 = 2;

/// Vertices of an instance that follow one another, and so do their places.
#[derive(Clone, Copy, Default)]
struct VertexRun {
    instance: u32,
    first: u32,
    count: u32,
    /// The place of the first one.
    slot: u32,
}

/// Vertices and primitives of a part of a draw.
#[derive(Default)]
struct Chunk {
    /// The first vertices, as long as they are in order: most draws have no others.
    run: VertexRun,
    /// The place in `vertices` of any other vertex of an instance.
    slots: HashMap<(u32, u32), u32>,
    /// Vertex and instance.
    vertices: Vec<(u32, u32)>,
    /// Slots of the vertices of all primitives, one after the other.
    corners: Vec<u32>,
    /// Numbers of the primitives in their instances.
    numbers: Vec<u32>,
}

impl Chunk {
    fn slot(&mut self, vertex: u32, instance: u32) -> u32 {
        let next = self.vertices.len() as u32;
        let VertexRun { instance: of, first, count, slot } = self.run;
        let along = vertex.wrapping_sub(first);
        if count > 0 && instance == of && along < count {
            return slot + along;
        }
        if let Some(slot) = self.slots.get(&(vertex, instance)) {
            return *slot;
        }
        if count == 0 {
            self.run = VertexRun { instance, first: vertex, count: 1, slot: next };
        } else if instance == of && along == count && slot + count == next {
            self.run.count += 1;
        } else {
            self.slots.insert((vertex, instance), next);
        }
        self.vertices.push((vertex, instance));
        next
    }

    /// A vertex that is shaded whether it was before or not.
    fn another(&mut self, vertex: u32, instance: u32) -> u32 {
        self.vertices.push((vertex, instance));
        self.vertices.len() as u32 - 1
    }

    fn clear(&mut self) {
        self.run = VertexRun::default();
        self.slots.clear();
        self.vertices.clear();
        self.corners.clear();
        self.numbers.clear();
    }
}

/// Adds what the fibers of a part begin with, whose primitives and vertices are given.
type AddStarts<'a> = &'a dyn Fn(usize, &mut Vec<StartValue>, &[(usize, usize)]);

/// The last stage before the rasterizer.
fn last_stage(call: &DrawCall) -> DrawStage {
    match (call.geometry, call.tessellation) {
        (true, _) => DrawStage::Geometry,
        (false, true) => DrawStage::Domain,
        (false, false) => DrawStage::Vertex,
    }
}

/// Registers of values that the vertex shader is given.
struct VertexValues {
    vertex: Option<u8>,
    instance: Option<u8>,
    primitive: Option<u8>,
    view: Option<u8>,
}

/// Everything that a draw has to know about its vertices.
struct Geometry {
    topology: Topology,
    assembly: AssemblyState,
    attributes: Vec<Attribute>,
    offsets: FetchOffsets,
    values: VertexValues,
    code: StageCode,
    linkage: Linkage,
    varyings: VaryingState,
    tess: Option<TessStage>,
    shader: Option<GeometryStage>,
    /// In a binning pass that records what is visible.
    binning: Option<BinningState>,
    /// What primitives are clipped by; `None` unless the primitives that leave clipping are counted.
    clipping: Option<ClippingState>,
}

impl Geometry {
    /// Whether vertices go on in local memory.
    fn is_chained(&self) -> bool {
        self.tess.is_some() || self.shader.is_some()
    }
}

impl AdrenoMachine<'_> {
    /// Executes a draw with the state that is loaded.
    pub(super) fn draw(&mut self, id: ThreadId, call: &DrawCall) -> Result<(), CpStop> {
        if call.count == 0 || call.instances == 0 {
            return Ok(());
        }
        let Some(topology) = Topology::of(call.primitive) else {
            self.note(Note::NotRendered);
            return Ok(());
        };
        // Without a vertex shader there is nothing that could be drawn.
        if !(DrawRegisters { machine: self, thread: id }).has_stage(DrawStage::Vertex) {
            return Ok(());
        }
        let geometry = self.geometry(id, call, topology)?;
        let mut fragments = match self.rasterizes(id) {
            true => Some(FragmentRun::new(self, id, last_stage(call))?),
            false => None,
        };
        let mut primitives = 0;
        for views in self.views(id) {
            primitives = self.draw_views(id, call, &geometry, &views, &mut fragments)?;
        }
        self.count_primitives(primitives);
        if let Some(fragments) = fragments {
            fragments.end(self)?;
        }
        self.show_counters(id);
        Ok(())
    }

    /// Whether primitives go on to the rasterizer.
    fn rasterizes(&self, id: ThreadId) -> bool {
        let registers = DrawRegisters { machine: self, thread: id };
        let discards = registers.get(Reg::RasterControl) & 4 != 0;
        let shades = registers.has_stage(DrawStage::Fragment);
        !discards && shades && self.thread(id).marker != Some(BINNING)
    }

    /// The views that a draw is for, those together whose vertices are shaded once; without multiview one.
    fn views(&self, id: ThreadId) -> Vec<Vec<u32>> {
        let registers = DrawRegisters { machine: self, thread: id };
        let control = registers.get(Reg::Multiview);
        if control & 1 == 0 {
            return vec![vec![0]];
        }
        let has_mask = self.adreno.device.is_none_or(|device| device.flag("a6xx.supports_multiview_mask"));
        // Without a mask of views they are counted.
        let mask = match has_mask {
            true => registers.get(Reg::MultiviewMask),
            false => (1 << (control >> 2 & 0x1f)) - 1,
        };
        let views = (0..32).filter(|view| mask >> view & 1 != 0);
        match control & 2 != 0 {
            true => views.map(|view| vec![view]).collect(),
            false => vec![views.collect()],
        }
    }

    fn geometry(&mut self, id: ThreadId, call: &DrawCall, topology: Topology) -> Result<Geometry, CpStop> {
        let chained = call.geometry || call.tessellation;
        let mut code = self.stage_code(id, DrawStage::Vertex, if chained { LOCAL } else { 0 })?;
        let linkage = Linkage::of(&DrawRegisters { machine: self, thread: id }, last_stage(call));
        let tess = match call.tessellation {
            true => Some(TessStage::new(self, id, call, &linkage)?),
            false => None,
        };
        let shader = match call.geometry {
            true => Some(GeometryStage::new(self, id, &linkage)?),
            false => None,
        };
        if !chained {
            code.outputs = linkage.outputs.iter().map(|(register, _)| *register).collect();
        }
        let binning = self.binning_state(id, last_stage(call));
        let registers = DrawRegisters { machine: self, thread: id };
        let clipping = self.counters.geometry_runs.then(|| ClippingState {
            raster: raster_state_of(&registers, last_stage(call)),
            viewport_is_view: registers.get(Reg::Setup) >> 19 & 1 != 0,
        });
        let values = registers.get(Reg::VertexValues);
        let attributes = Attribute::all(&registers);
        let geometry = Geometry {
            topology,
            assembly: AssemblyState::of(&registers, call),
            offsets: FetchOffsets {
                vertex: registers.get(Reg::IndexOffset),
                instance: registers.get(Reg::InstanceOffset),
            },
            values: VertexValues {
                vertex: named(values),
                instance: named(values >> 8),
                primitive: named(values >> 16),
                view: named(values >> 24),
            },
            varyings: VaryingState::of(&registers, &linkage),
            attributes,
            code,
            linkage,
            tess,
            shader,
            binning,
            clipping,
        };
        if !geometry.attributes.iter().all(Attribute::is_known) {
            self.note(Note::NotRendered);
        }
        Ok(geometry)
    }

    /// Shades vertices as those of the first of some views, and draws their primitives in all.
    fn draw_views(
        &mut self,
        id: ThreadId,
        call: &DrawCall,
        geometry: &Geometry,
        views: &[u32],
        fragments: &mut Option<FragmentRun>,
    ) -> Result<u32, CpStop> {
        let mut chunk = Chunk::default();
        let mut primitives = 0;
        for instance in 0..call.instances {
            self.spend(1)?;
            let mut number = 0;
            let mut first = 0;
            let mut at = 0;
            while at < call.count {
                // A run of vertices up to the next restart.
                let end = self.run_end(call, &geometry.assembly, at)?;
                let mut stop = None;
                let mut emit = |corners: &[u32]| {
                    let hidden = self.hides_primitive(number);
                    match hidden
                        .and_then(|hidden| if hidden { self.spend(1).map(|()| true) } else { Ok(false) })
                    {
                        Ok(false) => {}
                        Ok(true) => {
                            number += 1;
                            return ControlFlow::Continue(());
                        }
                        Err(met) => {
                            stop = Some(met);
                            return ControlFlow::Break(());
                        }
                    }
                    let all = corners.iter().try_for_each(|&corner| {
                        let index = self.spend(1).and_then(|()| self.index_at(call, corner))?;
                        let vertex = index.wrapping_add(geometry.offsets.vertex);
                        let slot = match geometry.is_chained() {
                            // Every vertex of a primitive has a place of its own in local memory.
                            true => chunk.another(vertex, instance),
                            false => chunk.slot(vertex, instance),
                        };
                        chunk.corners.push(slot);
                        Ok(())
                    });
                    chunk.numbers.push(number);
                    number += 1;
                    let full = match &geometry.tess {
                        Some(tess) => chunk.numbers.len() >= tess.most_patches(),
                        None => chunk.vertices.len() + 32 > CHUNK,
                    };
                    let all = all.and_then(|()| match full {
                        true => self.finish_chunk(id, geometry, &mut chunk, views, fragments),
                        false => Ok(()),
                    });
                    match all {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(met) => {
                            stop = Some(met);
                            ControlFlow::Break(())
                        }
                    }
                };
                let _ = assemble(geometry.topology, first..end, geometry.assembly.last_provokes, &mut emit);
                if let Some(stop) = stop {
                    return Err(stop);
                }
                at = end.saturating_add(1);
                first = at;
            }
            primitives = number;
        }
        self.finish_chunk(id, geometry, &mut chunk, views, fragments)?;
        Ok(primitives)
    }

    /// Where the next restart is, or the end of the draw.
    fn run_end(&mut self, call: &DrawCall, assembly: &AssemblyState, from: u32) -> Result<u32, CpStop> {
        let Some(restart) = assembly.restart.filter(|_| call.indices != Indices::Auto) else {
            return Ok(call.count);
        };
        for at in from..call.count {
            self.spend(1)?;
            if self.index_at(call, at)? == restart {
                return Ok(at);
            }
        }
        Ok(call.count)
    }

    /// Shades the vertices of a chunk and rasterizes its primitives.
    fn finish_chunk(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        chunk: &mut Chunk,
        views: &[u32],
        fragments: &mut Option<FragmentRun>,
    ) -> Result<(), CpStop> {
        if let Some(&view) = views.first().filter(|_| !chunk.vertices.is_empty()) {
            let assembled = match (&geometry.tess, &geometry.shader) {
                (Some(tess), _) => self.run_tessellation(id, geometry, tess, chunk, view)?,
                (None, Some(shader)) => self.run_geometry(id, geometry, shader, chunk, view)?,
                (None, None) => self.assembled_chunk(id, geometry, chunk, view)?,
            };
            self.count_chunk(geometry, chunk, &assembled);
            self.stream_out(id, &assembled)?;
            for (n, view) in views.iter().enumerate() {
                let primitives = AssembledPrimitives {
                    assembled: &assembled,
                    linkage: &geometry.linkage,
                    varyings: &geometry.varyings,
                    last_provokes: geometry.assembly.last_provokes,
                    rectangles: geometry.topology == Topology::Rectangles,
                    view: *view,
                };
                // Once for all views, as the primitives that enter clipping are counted.
                if let Some(clipping) = geometry.clipping.as_ref().filter(|_| n == 0) {
                    self.counters.add(Statistic::ClipOut, primitives.clipped(clipping));
                }
                if let Some(binning) = &geometry.binning {
                    self.bin_all(&primitives, binning)?;
                }
                if let Some(fragments) = fragments {
                    self.rasterize_all(&primitives, fragments)?;
                }
            }
        }
        chunk.clear();
        Ok(())
    }

    /// Primitives as they are drawn without a geometry shader.
    fn assembled_chunk(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        chunk: &Chunk,
        view: u32,
    ) -> Result<Assembled, CpStop> {
        let vertices = self.shade_vertices(id, geometry, chunk, view)?;
        let drawn = geometry.topology.drawn();
        let mut assembled = Assembled::new(vertices, drawn.len());
        let mut corners = Vec::new();
        for (all, number) in chunk.corners.chunks_exact(geometry.topology.vertices()).zip(&chunk.numbers) {
            corners.clear();
            corners.extend(drawn.iter().filter_map(|at| all.get(*at)));
            assembled.push(&corners, *number, 0, true);
        }
        Ok(assembled)
    }

    /// Shades vertices that go on in local memory, some primitives at a time: that of each part. Each fiber is given the header
    /// and the numbers that the next stage has for its primitive and vertex.
    fn shade_chained(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        chunk: &Chunk,
        view: u32,
        primitives: usize,
        extra: AddStarts<'_>,
    ) -> Result<Vec<Vec<u8>>, CpStop> {
        let size = geometry.topology.vertices().max(1);
        let mut batches = Vec::new();
        for (part, corners) in chunk.corners.chunks(primitives * size).enumerate() {
            let vertices: Vec<(u32, u32)> = corners
                .iter()
                .map(|slot| chunk.vertices.get(*slot as usize).copied().unwrap_or_default())
                .collect();
            let mut fibers = vertex_fibers(&self.space, geometry, &vertices, view, self.trace_now())?;
            let places: Vec<(usize, usize)> = (0..vertices.len()).map(|at| (at / size, at % size)).collect();
            extra(part, &mut fibers.starts, &places);
            batches.push(fibers);
        }
        let options = self.batch_options(VERTEX_WORK * chunk.vertices.len());
        let none = Arc::new(Planes::default());
        let mut local = Vec::with_capacity(batches.len());
        let run = geometry.code.run(&batches, &none, &mut self.space.memory, &options, |done| {
            local.push(done.local);
        });
        let stats = run.map_err(|fault| self.stage_stop(id, DrawStage::Vertex, fault))?;
        self.spend(stats.steps)?;
        Ok(local)
    }

    /// The primitives that a geometry shader puts out.
    fn run_geometry(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        shader: &GeometryStage,
        chunk: &Chunk,
        view: u32,
    ) -> Result<Assembled, CpStop> {
        let size = geometry.topology.vertices().max(1);
        // Primitives whose vertices are shaded together, as many as one wave of them has.
        let primitives = (VERTEX_WAVE / size).clamp(1, LOCAL_PRIMITIVES);
        let (header, number) = (shader.header(), geometry.values.primitive);
        let extra = |part: usize, starts: &mut Vec<StartValue>, places: &[(usize, usize)]| {
            let numbers = chunk.numbers.chunks(primitives).nth(part).unwrap_or_default();
            let mut start = |register: Option<u8>, value: &dyn Fn((usize, usize)) -> u32| {
                if let Some(register) = register {
                    let values = places.iter().map(|place| value(*place)).collect();
                    starts.push(StartValue { register, half: false, values });
                }
            };
            start(header, &|(primitive, vertex)| {
                GeometryStage::input_header(primitive as u32, vertex as u32)
            });
            start(number, &|(primitive, _)| numbers.get(primitive).copied().unwrap_or(0));
        };
        let local = self.shade_chained(id, geometry, chunk, view, primitives, &extra)?;
        let inputs: Vec<GeometryInput> = local
            .into_iter()
            .zip(chunk.numbers.chunks(primitives))
            .map(|(local, numbers)| GeometryInput { numbers: numbers.to_vec(), local })
            .collect();
        shader.run(self, id, &inputs, geometry.assembly.last_provokes)
    }

    /// The primitives that tessellation makes of patches, and a geometry shader of those.
    fn run_tessellation(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        tess: &TessStage,
        chunk: &Chunk,
        view: u32,
    ) -> Result<Assembled, CpStop> {
        let patches = tess.patches_of_a_wave(geometry.topology.vertices());
        let registers = tess.input_registers();
        let extra = |part: usize, starts: &mut Vec<StartValue>, places: &[(usize, usize)]| {
            let numbers = chunk.numbers.chunks(patches).nth(part).unwrap_or_default();
            let first = (part * patches) as u32;
            let values: [&dyn Fn((usize, usize)) -> u32; 3] = [
                &|(patch, vertex)| GeometryStage::input_header(patch as u32, vertex as u32),
                &|(patch, _)| first + patch as u32,
                &|(patch, _)| numbers.get(patch).copied().unwrap_or(0),
            ];
            for (register, value) in registers.into_iter().zip(values) {
                if let Some(register) = register {
                    let values = places.iter().map(|place| value(*place)).collect();
                    starts.push(StartValue { register, half: false, values });
                }
            }
        };
        let local = self.shade_chained(id, geometry, chunk, view, patches, &extra)?;
        let inputs: Vec<PatchInput> = (0..)
            .step_by(patches)
            .zip(local.into_iter().zip(chunk.numbers.chunks(patches)))
            .map(|(first, (local, numbers))| PatchInput { numbers: numbers.to_vec(), first, local })
            .collect();
        let output = tess.run(self, id, &inputs)?;
        self.counters.add(Statistic::HullPatches, output.patches);
        self.counters.add(Statistic::DomainShaders, output.points());
        match &geometry.shader {
            Some(shader) => {
                let mut assembled = Assembled::default();
                for corners in output.parts() {
                    let invocations = corners.len() as u64 * u64::from(shader.invocations());
                    self.counters.add(Statistic::GeometryShaders, invocations);
                    let inputs = tess.evaluate_for(self, id, &output, corners, shader)?;
                    assembled.append(shader.run(self, id, &inputs, geometry.assembly.last_provokes)?);
                }
                Ok(assembled)
            }
            None => tess.evaluate(self, id, &output),
        }
    }

    fn count_chunk(&mut self, geometry: &Geometry, chunk: &Chunk, assembled: &Assembled) {
        let (vertices, primitives) = (chunk.vertices.len() as u64, chunk.numbers.len() as u64);
        let drawn = assembled.iter().filter(|(_, primitive)| primitive.rasterized).count() as u64;
        if let Some(shader) = &geometry.shader {
            // With tessellation, those of its primitives are counted where these are made.
            if geometry.tess.is_none() {
                let invocations = primitives * u64::from(shader.invocations());
                self.counters.add(Statistic::GeometryShaders, invocations);
            }
            self.counters.add(Statistic::GeometryPrimitives, assembled.len() as u64);
        }
        self.counters.add(Statistic::Vertices, chunk.corners.len() as u64);
        self.counters.add(Statistic::Primitives, primitives);
        self.counters.add(Statistic::VertexShaders, vertices);
        self.counters.add(Statistic::ClipIn, drawn);
    }

    fn shade_vertices(
        &mut self,
        id: ThreadId,
        geometry: &Geometry,
        chunk: &Chunk,
        view: u32,
    ) -> Result<ShadedVertices, CpStop> {
        let parts: Vec<&[(u32, u32)]> = chunk.vertices.chunks(BATCH).collect();
        let options = self.batch_options(VERTEX_WORK * chunk.vertices.len());
        let (space, trace) = (&self.space, self.trace_now());
        let fetch = |at: usize| vertex_fibers(space, geometry, parts[at], view, trace);
        let batches: Vec<Fibers> =
            map_at_once(parts.len(), options.threads, fetch).into_iter().collect::<Result<_, CpStop>>()?;
        let mut vertices = ShadedVertices::new(geometry.linkage.components);
        let none = Arc::new(Planes::default());
        let run = geometry.code.run(&batches, &none, &mut self.space.memory, &options, |done| {
            vertices.take(&done, &geometry.linkage.outputs);
        });
        let stats = run.map_err(|fault| self.stage_stop(id, DrawStage::Vertex, fault))?;
        self.spend(stats.steps)?;
        Ok(vertices)
    }
}

/// The fibers of vertices, which begin with their attributes.
fn vertex_fibers(
    space: &AddressSpace,
    geometry: &Geometry,
    vertices: &[(u32, u32)],
    view: u32,
    trace: Option<&FiberTrace>,
) -> Result<Fibers, CpStop> {
    let mut starts = Vec::new();
    let mut start = |register: Option<u8>, value: &dyn Fn(&(u32, u32)) -> u32| {
        if let Some(register) = register {
            let values = vertices.iter().map(value).collect();
            starts.push(StartValue { register, half: false, values });
        }
    };
    start(geometry.values.vertex, &|(vertex, _)| *vertex);
    start(geometry.values.instance, &|(_, instance)| *instance);
    start(geometry.values.view, &|_| view);
    for attribute in &geometry.attributes {
        let mut components: [Vec<u32>; 4] = [0; 4].map(|_| Vec::with_capacity(vertices.len()));
        let buffer = attribute.buffer(space);
        for &(vertex, instance) in vertices {
            let value = attribute.fetch(space, buffer, [vertex, instance], geometry.offsets)?;
            components.iter_mut().zip(value).for_each(|(values, value)| values.push(value));
        }
        for (component, values) in (0u8..).zip(components) {
            if attribute.mask >> component & 1 != 0 {
                let register = attribute.register.saturating_add(component);
                starts.push(StartValue { register, half: false, values });
            }
        }
    }
    let wanted =
        |(vertex, instance): &(u32, u32)| Some(FiberWanted::Vertex { vertex: *vertex, instance: *instance });
    let taps = trace.map(|trace| trace.taps(DrawStage::Vertex.name(), vertices.iter().map(wanted)));
    Ok(Fibers { count: vertices.len(), starts, taps: taps.unwrap_or_default(), ..Fibers::default() })
}
