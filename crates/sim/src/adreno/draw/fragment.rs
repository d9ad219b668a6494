//! Fragments: quads of the rasterizer become fibers of the fragment shader, and what these leave is tested and merged.
//!
//! Quads are tested early where the state allows it, collected into waves, shaded, and merged in the order in which they were
//! rasterized; batches of waves are shaded at once, with the same result. Never: how samples are covered, what a test or a blend
//! computes.

use super::counters::Statistic;
use super::fragment_state::{FragmentState, ShadedFragments, WeightKind, WeightPlace, weight_kinds};
use super::gmem::{self, Bin};
use super::lrz::{LrzRun, LrzVerdict};
use super::merge::QuadBounds;
use super::primitives::AheadPrimitive;
use super::raster::{self, Primitive, Quad, Surface};
use super::registers::{DrawRegisters, DrawStage};
use super::samples::SampleFate;
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::draw_watch::{DrawWatch, FragmentEvent, FragmentId};
use crate::adreno::fiber_trace::{FiberTrace, FiberWanted};
use crate::adreno::ir3::{BatchMaker, FiberTap, Fibers, FibersDone, Planes, StageCode, StartValue};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{DirectSamples, NearSamples};
use std::collections::HashSet;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Quads that wait before they are shaded.
const PENDING: usize = 1 << 14;
/// Steps that a quad counts for, besides those of its samples.
const QUAD_STEPS: u32 = 4;
/// Blocks of pixels that are looked at for one step.
const BLOCKS: u64 = 8;
/// Waves of a batch.
const WAVES: usize = 8;

/// A quad that waits for its shader: of all its samples, or of one.
#[derive(Clone, Copy, Debug)]
pub(super) struct PendingQuad {
    pub(super) quad: Quad,
    /// What was covered before early tests.
    covered: [u8; 4],
    pub(super) surface: u32,
    planes: u32,
    pub(super) layer: u32,
    /// Of sample shading.
    sample: Option<u8>,
    /// Its primitive, among those of the draw.
    primitive: u64,
    /// The depth of its block of LRZ when it was rasterized, while LRZ is checked.
    pub(super) lrz_bound: Option<f32>,
}

/// The fragments of a draw.
pub(super) struct FragmentRun {
    id: ThreadId,
    pub(super) state: FragmentState,
    code: StageCode,
    surfaces: Vec<Surface>,
    planes: Planes,
    quads: Vec<PendingQuad>,
    /// Where those are, of ordered fragments.
    pending: HashSet<[u32; 3]>,
    /// Where attachments were accessed last.
    pub(super) near: NearSamples,
    /// Primitives that were rasterized.
    primitives: u64,
    /// What tests said of samples, while LRZ is checked.
    pub(super) lrz: Option<LrzRun>,
}

impl FragmentRun {
    /// After the last stage before the rasterizer.
    pub(super) fn new(
        machine: &mut AdrenoMachine<'_>,
        id: ThreadId,
        last: DrawStage,
    ) -> Result<FragmentRun, CpStop> {
        let mut code = machine.stage_code(id, DrawStage::Fragment, 0)?;
        let state = FragmentState::of(machine, id, last);
        if Bin::of(&DrawRegisters { machine, thread: id }).is_some() {
            gmem::map(&mut machine.space.memory, machine.tracks_undefined);
        }
        code.outputs = state.outputs();
        code.prefetches.clone_from(&state.prefetches);
        let planes = Planes::new(state.components);
        let lrz = machine.lrz_state(id, state.samples).map(LrzRun::new);
        Ok(FragmentRun {
            id,
            state,
            code,
            surfaces: Vec::new(),
            planes,
            quads: Vec::new(),
            pending: HashSet::new(),
            near: NearSamples::default(),
            primitives: 0,
            lrz,
        })
    }

    /// Rasterizes a primitive, if that was not done ahead, and takes its quads. Its planes are added when it has some.
    pub(super) fn rasterize(
        &mut self,
        machine: &mut AdrenoMachine<'_>,
        primitive: &Primitive,
        layer: u32,
        viewport: usize,
        ahead: Option<AheadPrimitive<'_>>,
        add_planes: &mut dyn FnMut(&mut Planes) -> u32,
    ) -> Result<(), CpStop> {
        let raster = std::mem::take(&mut self.state.raster);
        self.primitives += 1;
        if let Some(watch) = machine.draw_watch.get().filter(|watch| watch.wants_outlines()) {
            watch.outline(&raster::outline(&raster, viewport, primitive));
        }
        let mut planes = None;
        let mut stop = None;
        let mut emit = |surface: &Surface, quad: &Quad| {
            let overlaps = self.state.ordered && self.pending.contains(&[quad.x, quad.y, layer]);
            let finished = if overlaps { self.finish(machine) } else { Ok(()) };
            // They go with the quads that are shaded.
            if self.quads.is_empty() {
                planes = None;
            }
            let planes = *planes.get_or_insert_with(|| add_planes(&mut self.planes));
            match finished.and_then(|()| self.take(machine, surface, quad, layer, planes)) {
                Ok(()) => ControlFlow::Continue(()),
                Err(met) => {
                    stop = Some(met);
                    ControlFlow::Break(())
                }
            }
        };
        let blocks = match ahead {
            Some(ahead) => ahead.emit(&mut emit),
            None => raster::rasterize(&raster, viewport, primitive, &mut emit),
        };
        let lowered = match &self.lrz {
            Some(lrz) => machine.write_lrz(&lrz.state, &raster, viewport, layer, primitive),
            None => Ok(()),
        };
        self.state.raster = raster;
        stop.map_or(lowered, Err)?;
        machine.spend(1 + blocks / BLOCKS)
    }

    fn take(
        &mut self,
        machine: &mut AdrenoMachine<'_>,
        surface: &Surface,
        quad: &Quad,
        layer: u32,
        planes: u32,
    ) -> Result<(), CpStop> {
        machine.spend(u64::from(QUAD_STEPS + self.state.samples))?;
        let mut quad = *quad;
        if let Some(watch) = machine.draw_watch.get() {
            self.tell_covered(watch, surface, &quad, layer);
        }
        quad.coverage.iter_mut().for_each(|mask| *mask &= self.state.sample_mask);
        let covered = quad.coverage;
        let lrz_bound =
            self.lrz.as_ref().and_then(|lrz| machine.lrz_bound(&lrz.state, [quad.x, quad.y, layer]));
        if self.state.early {
            self.test(machine, surface, &mut quad, layer, lrz_bound)?;
        }
        if quad.coverage == [0; 4] {
            return Ok(());
        }
        if self.state.ordered {
            self.pending.insert([quad.x, quad.y, layer]);
        }
        let surface = self.surface(surface);
        let primitive = self.primitives.saturating_sub(1);
        let pending =
            PendingQuad { quad, covered, surface, planes, layer, sample: None, primitive, lrz_bound };
        match self.state.shades_samples() {
            false => self.quads.push(pending),
            true => {
                for sample in 0..self.state.samples {
                    let coverage = quad.coverage.map(|mask| mask & 1 << sample);
                    if coverage != [0; 4] {
                        let quad = Quad { coverage, ..quad };
                        self.quads.push(PendingQuad { quad, sample: Some(sample as u8), ..pending });
                    }
                }
            }
        }
        if self.quads.len() < PENDING { Ok(()) } else { self.finish(machine) }
    }

    /// Tells whoever watches a pixel that a primitive covers it.
    fn tell_covered(&self, watch: &mut dyn DrawWatch, surface: &Surface, quad: &Quad, layer: u32) {
        let primitive = self.primitives.saturating_sub(1);
        for (pixel, &coverage) in quad.coverage.iter().enumerate().filter(|(_, coverage)| **coverage != 0) {
            let (x, y) = place(quad, pixel);
            if watch.wants_pixel([x, y, layer]) {
                let (sample_mask, front) = (self.state.sample_mask, surface.front());
                let event = FragmentEvent::Covered { primitive, coverage, sample_mask, front };
                watch.fragment([x, y, layer], &event);
            }
        }
    }

    /// Tells whoever watches draws that a fragment was shaded.
    pub(super) fn tell_shaded(
        &self,
        watch: &mut dyn DrawWatch,
        quad: &PendingQuad,
        pixel: usize,
        shaded: &ShadedFragments,
        fiber: usize,
    ) {
        let covered = quad.quad.coverage[pixel];
        if covered == 0 {
            return;
        }
        let (x, y) = place(&quad.quad, pixel);
        let pixel = [x, y, quad.layer];
        watch.shades(pixel);
        if watch.wants_pixel(pixel) {
            let event = FragmentEvent::Shaded {
                fragment: FragmentId { primitive: quad.primitive, sample: quad.sample },
                outputs: &self.state.fragment_outputs(shaded, fiber),
                killed: shaded.is_dropped(fiber),
                coverage: covered & shaded.coverage(fiber),
                alpha_coverage: self.state.alpha_coverage(shaded, fiber),
            };
            watch.fragment(pixel, &event);
        }
    }

    /// The surface that a quad is of.
    pub(super) fn surface_of(&self, quad: &PendingQuad) -> &Surface {
        &self.surfaces[quad.surface as usize]
    }

    /// The number of a surface among those that quads wait of.
    fn surface(&mut self, surface: &Surface) -> u32 {
        if self.surfaces.last() != Some(surface) {
            self.surfaces.push(surface.clone());
        }
        self.surfaces.len() as u32 - 1
    }

    /// Depth and stencil tests before the shader.
    fn test(
        &mut self,
        machine: &mut AdrenoMachine<'_>,
        surface: &Surface,
        quad: &mut Quad,
        layer: u32,
        bound: Option<f32>,
    ) -> Result<(), CpStop> {
        let state = &self.state;
        if state.depth_stencil.is_enabled() {
            let mut memory = DirectSamples::new(&mut machine.space, &mut self.near, &mut machine.draw_watch);
            for pixel in 0..4 {
                let (x, y) = place(quad, pixel);
                let mut left = 0;
                for sample in (0..state.samples).filter(|n| quad.coverage[pixel] >> n & 1 != 0) {
                    let [sx, sy] = state.sample_place(sample);
                    let z = surface.z(x as f32 + sx, y as f32 + sy);
                    let fate = SampleFate { x, y, layer, sample, z, front: surface.front(), reference: None };
                    let passes = state.depth_stencil.test(&mut memory, &fate)?;
                    left |= u8::from(passes) << sample;
                    if let Some(lrz) = &self.lrz {
                        lrz.add(LrzVerdict { place: [x, y, layer, sample], z, passes, bound });
                    }
                }
                quad.coverage[pixel] = left;
            }
        }
        let counts = state.counts_samples;
        self.judge(machine);
        if counts {
            machine.counters.samples += u64::from(u32::from_le_bytes(quad.coverage).count_ones());
        }
        Ok(())
    }

    /// Holds LRZ to what tests have said.
    pub(super) fn judge(&self, machine: &mut AdrenoMachine<'_>) {
        if let Some(lrz) = &self.lrz {
            machine.judge_lrz(lrz, self.state.depth_stencil.writes_depth());
        }
    }

    /// Shades and merges what waits.
    pub(super) fn finish(&mut self, machine: &mut AdrenoMachine<'_>) -> Result<(), CpStop> {
        let mut quads = std::mem::take(&mut self.quads);
        let planes = Arc::new(std::mem::replace(&mut self.planes, Planes::new(self.state.components)));
        let waves = WAVES * self.code.dispatch.state.wave_size as usize / 4;
        let parts: Vec<&[PendingQuad]> = quads.chunks(waves.max(1)).collect();
        let mut shaded = Vec::with_capacity(parts.len());
        let options = machine.batch_options(4 * quads.len());
        let trace = machine.trace_now().cloned();
        let batches = FragmentBatches { run: self, parts: &parts, trace: trace.as_ref() };
        let run = self.code.run_made(batches, &planes, &mut machine.space.memory, &options, |fragments| {
            shaded.push(fragments);
        });
        self.merge_all(machine, &parts, &shaded, options.threads)?;
        let stats = run.map_err(|fault| machine.stage_stop(self.id, DrawStage::Fragment, fault))?;
        machine.spend(stats.steps)?;
        machine.counters.add(Statistic::FragmentShaders, quads.iter().map(|quad| live(&quad.quad)).sum());
        self.surfaces.clear();
        self.pending.clear();
        quads.clear();
        self.quads = quads;
        Ok(())
    }

    pub(super) fn end(mut self, machine: &mut AdrenoMachine<'_>) -> Result<(), CpStop> {
        self.finish(machine)
    }

    /// The fibers of quads: four in a row each.
    fn fibers(&self, quads: &[PendingQuad]) -> Fibers {
        let values = &self.state.values;
        let count = 4 * quads.len();
        let each = |value: &dyn Fn(&PendingQuad, usize) -> u32| -> Vec<u32> {
            let mut values = Vec::with_capacity(count);
            for quad in quads {
                values.extend([0, 1, 2, 3].map(|pixel| value(quad, pixel)));
            }
            values
        };
        let mut starts = Vec::new();
        let mut start = |register: Option<u8>, half: bool, value: &dyn Fn(&PendingQuad, usize) -> u32| {
            if let Some(register) = register {
                starts.push(StartValue { register, half, values: each(value) });
            }
        };
        start(values.face, true, &|quad, _| {
            if self.surfaces[quad.surface as usize].front() { 0 } else { 0xffff }
        });
        start(values.sample_id, true, &|quad, _| quad.sample.unwrap_or(0).into());
        start(values.sample_mask, false, &|quad, pixel| {
            let mask = if values.mask_after_tests { quad.quad.coverage } else { quad.covered };
            let sample = quad.sample.map_or(0xff, |sample| 1 << sample);
            (mask[pixel] & sample).into()
        });
        let surface = |quad: &PendingQuad| &self.surfaces[quad.surface as usize];
        let centre = |quad: &PendingQuad, pixel: usize| {
            let (x, y) = place(&quad.quad, pixel);
            (x as f32 + 0.5, y as f32 + 0.5)
        };
        start(values.centre_rhw, false, &|quad, pixel| {
            let (x, y) = centre(quad, pixel);
            surface(quad).rhw(x, y).to_bits()
        });
        let coordinate = |quad: &PendingQuad, pixel: usize| {
            let (x, y) = place(&quad.quad, pixel);
            let [sx, sy] = match quad.sample.filter(|_| values.coordinate_of_sample) {
                Some(sample) => self.state.sample_place(sample.into()),
                None => [0.5; 2],
            };
            (x as f32 + sx, y as f32 + sy)
        };
        // Coordinates are in sixteenths of pixels.
        start(values.xy, false, &|quad, pixel| (coordinate(quad, pixel).0 * 16.0) as u32);
        start(values.xy.map(|r| r + 1), false, &|quad, pixel| (coordinate(quad, pixel).1 * 16.0) as u32);
        start(values.zw, false, &|quad, pixel| {
            let (x, y) = coordinate(quad, pixel);
            surface(quad).z(x, y).to_bits()
        });
        start(values.zw.map(|r| r + 1), false, &|quad, pixel| {
            let (x, y) = coordinate(quad, pixel);
            surface(quad).rhw(x, y).to_bits()
        });
        for (kind, register) in weight_kinds().zip(values.weights) {
            let Some(register) = register else { continue };
            let [mut first, mut second] = [0; 2].map(|_| Vec::with_capacity(count));
            for quad in quads {
                for pixel in 0..4 {
                    let [i, j] = self.weights(quad, pixel, kind);
                    first.push(i.to_bits());
                    second.push(j.to_bits());
                }
            }
            starts.push(StartValue { register, half: false, values: first });
            starts.push(StartValue { register: register.saturating_add(1), half: false, values: second });
        }
        let lanes = self.code.dispatch.state.wave_size as usize;
        let helpers = quads.chunks(lanes / 4).map(|quads| {
            let pixels = quads.iter().flat_map(|quad| quad.quad.coverage);
            pixels.enumerate().fold(0u128, |mask, (at, covered)| mask | u128::from(covered == 0) << at)
        });
        let pixel = WeightKind { linear: false, place: WeightPlace::Pixel };
        let prefetches = !self.state.prefetches.is_empty();
        Fibers {
            count,
            helpers: helpers.collect(),
            primitives: quads.iter().flat_map(|quad| [quad.planes; 4]).collect(),
            weights: match prefetches {
                true => quads
                    .iter()
                    .flat_map(|quad| (0..4).map(move |at| self.weights(quad, at, pixel)))
                    .collect(),
                false => Vec::new(),
            },
            starts,
            ..Fibers::default()
        }
    }

    /// The weights of a pixel of a quad in one of the six forms.
    fn weights(&self, quad: &PendingQuad, pixel: usize, kind: WeightKind) -> [f32; 2] {
        let (x, y) = place(&quad.quad, pixel);
        let [sx, sy] = self.state.weight_place(kind.place, quad.quad.coverage[pixel], quad.sample);
        let (surface, x, y) = (&self.surfaces[quad.surface as usize], x as f32 + sx, y as f32 + sy);
        match (self.state.points, kind.linear) {
            (true, _) => surface.point_place(x, y),
            (_, false) => surface.perspective(x, y),
            (_, true) => surface.linear(x, y),
        }
    }
}

/// The batches of quads that are shaded together.
struct FragmentBatches<'r> {
    run: &'r FragmentRun,
    parts: &'r [&'r [PendingQuad]],
    trace: Option<&'r FiberTrace>,
}

impl BatchMaker<ShadedFragments> for FragmentBatches<'_> {
    fn count(&self) -> usize {
        self.parts.len()
    }

    fn fibers(&self, number: usize) -> Fibers {
        let quads = self.parts.get(number).copied().unwrap_or_default();
        Fibers { taps: taps(self.trace, quads), ..self.run.fibers(quads) }
    }

    fn result(&self, number: usize, done: FibersDone) -> ShadedFragments {
        let quads = self.parts.get(number).copied().unwrap_or_default();
        let mut shaded = self.run.state.shaded(done);
        shaded.bounds = QuadBounds::of(quads);
        shaded
    }
}

/// Taps for the fragments of quads that are traced.
fn taps(trace: Option<&FiberTrace>, quads: &[PendingQuad]) -> Vec<FiberTap> {
    let Some(trace) = trace else { return Vec::new() };
    let FiberWanted::Fragment { pixel, sample: wanted } = trace.wanted else { return Vec::new() };
    let all = quads.iter().flat_map(|quad| (0..4).map(move |at| (quad, at))).enumerate();
    let named = all.filter(|(_, (quad, at))| {
        let (x, y) = place(&quad.quad, *at);
        let of_sample = wanted.is_none() || quad.sample.map(u32::from) == wanted;
        [x, y, quad.layer] == pixel && of_sample
    });
    let tap = |(fiber, (quad, _)): (usize, (&PendingQuad, usize))| {
        let mut tap = trace.tap(DrawStage::Fragment.name(), fiber);
        (tap.run.primitive, tap.run.sample) = (Some(quad.primitive), quad.sample);
        tap
    };
    named.map(tap).collect()
}

/// A pixel of a quad.
pub(super) fn place(quad: &Quad, pixel: usize) -> (u32, u32) {
    (quad.x + (pixel as u32 & 1), quad.y + (pixel as u32 >> 1))
}

/// Pixels of a quad that are covered.
fn live(quad: &Quad) -> u64 {
    quad.coverage.iter().filter(|mask| **mask != 0).count() as u64
}
