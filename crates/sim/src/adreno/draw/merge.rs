//! Shaded fragments on their way into the attachments: late tests and merges, in the order of the quads.
//!
//! Pixels are in bands of rows whose samples have bytes of their own in all attachments. Several threads merge bands at once, each on its
//! bytes alone, so that the result is that of one thread. Where bands share bytes, or somebody watches, all quads are merged one after the
//! other. Never: what a test or a blend computes.

use super::attachment::Attachment;
use super::fragment::{FragmentRun, PendingQuad, place};
use super::fragment_state::ShadedFragments;
use super::lrz::LrzVerdict;
use super::samples::SampleFate;
use crate::adreno::cp::CpStop;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{AddressSpace, BandRange, BandSamples, DirectSamples, SampleMemory};
use crate::run::map_at_once;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

/// Rows of a band: no fewer, so that most batches of quads are of one band.
const BAND_ROWS: u32 = 8;
/// Bytes that a region of memory leaves out because they are zero, and that are stored for a merge, for each quad of it.
const ADDED_BYTES: usize = 512;

/// The first and the last column, row and layer of pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuadBounds {
    first: [u32; 3],
    last: [u32; 3],
}

impl Default for QuadBounds {
    fn default() -> QuadBounds {
        QuadBounds::NONE
    }
}

impl QuadBounds {
    /// The bounds of no quads.
    const NONE: QuadBounds = QuadBounds { first: [u32::MAX; 3], last: [0; 3] };

    /// The bounds of the covered pixels of some quads.
    pub(super) fn of(quads: &[PendingQuad]) -> QuadBounds {
        quads.iter().fold(QuadBounds::NONE, |bounds, PendingQuad { quad, layer, .. }| {
            let covered =
                |pixels: [usize; 2]| u32::from(pixels.iter().any(|pixel| quad.coverage[*pixel] != 0));
            let last =
                [quad.x.saturating_add(covered([1, 3])), quad.y.saturating_add(covered([2, 3])), *layer];
            bounds.and(&QuadBounds { first: [quad.x, quad.y, *layer], last })
        })
    }

    fn and(&self, other: &QuadBounds) -> QuadBounds {
        let pick =
            |of: fn(u32, u32) -> u32, a: [u32; 3], b: [u32; 3]| [0, 1, 2].map(|axis| of(a[axis], b[axis]));
        QuadBounds {
            first: pick(u32::min, self.first, other.first),
            last: pick(u32::max, self.last, other.last),
        }
    }
}

/// A batch of quads, and what their shaders put out.
struct MergeBatch<'b> {
    quads: &'b [PendingQuad],
    shaded: &'b ShadedFragments,
}

/// Bands of pixels that are merged apart from each other.
struct BandPlan {
    /// The row that they are counted from.
    origin: u32,
    /// Rows of a band.
    rows: u32,
    /// Their numbers.
    bands: Vec<Range<u32>>,
    ranges: Vec<Vec<BandRange>>,
}

impl BandPlan {
    /// The rows of the window that a band has.
    fn window_rows(&self, band: &Range<u32>) -> Range<u32> {
        let row = |band: u32| self.origin.saturating_add(band.saturating_mul(self.rows));
        row(band.start)..row(band.end)
    }
}

impl FragmentRun {
    /// Merges batches of quads with what their shaders put out, on so many threads at most.
    pub(super) fn merge_all(
        &mut self,
        machine: &mut AdrenoMachine<'_>,
        parts: &[&[PendingQuad]],
        shaded: &[ShadedFragments],
        threads: usize,
    ) -> Result<(), CpStop> {
        let batches: Vec<MergeBatch<'_>> =
            parts.iter().zip(shaded).map(|(quads, shaded)| MergeBatch { quads, shaded }).collect();
        // Whoever watches is told of one sample after the other.
        let watched = !machine.draw_watch.is_empty() || self.lrz.is_some();
        if !watched && let Some(merged) = self.merge_bands(&mut machine.space, &batches, threads) {
            machine.counters.samples += merged?;
            return Ok(());
        }
        let mut near = std::mem::take(&mut self.near);
        let mut memory = DirectSamples::new(&mut machine.space, &mut near, &mut machine.draw_watch);
        let mut samples = 0;
        let merged = batches.iter().try_for_each(|batch| self.merge(&mut memory, batch, None, &mut samples));
        self.near = near;
        machine.counters.samples += samples;
        self.judge(machine);
        merged
    }

    /// Merges bands of pixels apart from each other, where they can be: the samples that passed.
    fn merge_bands(
        &self,
        space: &mut AddressSpace,
        batches: &[MergeBatch<'_>],
        threads: usize,
    ) -> Option<Result<u64, CpStop>> {
        let plan = self.plan_bands(batches, threads)?;
        let quads: usize = batches.iter().map(|batch| batch.quads.len()).sum();
        let bands = space.bands(&plan.ranges, quads.saturating_mul(ADDED_BYTES))?;
        let bands: Vec<Mutex<BandSamples<'_>>> = bands.into_iter().map(Mutex::new).collect();
        let merge = |number: usize| {
            let (band, memory) = (plan.bands.get(number), bands.get(number));
            let (Some(band), Some(memory)) = (band, memory) else { return Ok(0) };
            let rows = plan.window_rows(band);
            // Nobody else has it.
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            let mut samples = 0;
            for batch in batches {
                let QuadBounds { first, last } = batch.shaded.bounds;
                if first[1] >= rows.end || last[1] < rows.start {
                    continue;
                }
                let all = rows.contains(&first[1]) && rows.contains(&last[1]);
                let rows = (!all).then(|| rows.clone());
                self.merge(&mut *memory, batch, rows, &mut samples)?;
            }
            Ok(samples)
        };
        Some(map_at_once(bands.len(), threads, merge).into_iter().sum())
    }

    /// The bands of what is merged: one for one thread.
    fn plan_bands(&self, batches: &[MergeBatch<'_>], threads: usize) -> Option<BandPlan> {
        let bounds = batches.iter().fold(QuadBounds::NONE, |bounds, batch| bounds.and(&batch.shaded.bounds));
        let QuadBounds { first: [left, top, layer], last: [right, bottom, last_layer] } = bounds;
        let origin = self.state.merged_attachments().next().map_or([0; 2], Attachment::origin);
        let same = self.state.merged_attachments().all(|attachment| attachment.origin() == origin);
        // Both rows of a quad are in one band.
        let is_even = origin[1].is_multiple_of(2);
        if layer != last_layer || !same || !is_even || left < origin[0] || top < origin[1] {
            return None;
        }
        let rows = self.state.merged_attachments().map(Attachment::band_rows).fold(BAND_ROWS, u32::max);
        let (first, end) = ((top - origin[1]) / rows, (bottom - origin[1]) / rows + 1);
        let bands: Vec<Range<u32>> = match threads {
            0 | 1 => std::iter::once(first..end).collect(),
            _ => (first..end).map(|band| band..band + 1).collect(),
        };
        let ranges = bands.iter().map(|band| {
            let attachments = self.state.merged_attachments();
            let last = [right, bottom, layer];
            let ranges = attachments.map(|a| a.bands(band.clone(), rows, last, self.state.samples));
            Some(ranges.collect::<Option<Vec<_>>>()?.concat())
        });
        let ranges = ranges.collect::<Option<_>>()?;
        Some(BandPlan { origin: origin[1], rows, bands, ranges })
    }

    /// Merges a batch of quads, or those of them that are in some rows.
    fn merge(
        &self,
        memory: &mut impl SampleMemory,
        &MergeBatch { quads, shaded }: &MergeBatch<'_>,
        rows: Option<Range<u32>>,
        samples: &mut u64,
    ) -> Result<(), CpStop> {
        for (first, quad) in (0..).step_by(4).zip(quads) {
            if rows.as_ref().is_some_and(|rows| !rows.contains(&quad.quad.y)) {
                continue;
            }
            for pixel in 0..4 {
                let fiber = first + pixel;
                if let Some(watch) = memory.watch() {
                    self.tell_shaded(watch, quad, pixel, shaded, fiber);
                }
                let coverage = quad.quad.coverage[pixel] & shaded.coverage(fiber);
                for sample in (0..self.state.samples).filter(|sample| coverage >> sample & 1 != 0) {
                    let (x, y) = place(&quad.quad, pixel);
                    let at = [x, y, quad.layer, sample];
                    if !self.state.early {
                        if !self.passes(memory, at, quad, shaded, fiber)? {
                            continue;
                        }
                        *samples += u64::from(self.state.counts_samples);
                    }
                    self.state.merge(memory, at, shaded, fiber)?;
                }
            }
        }
        Ok(())
    }

    /// Tests depth and stencil of a sample after its shader, at a column, row and layer.
    fn passes(
        &self,
        memory: &mut impl SampleMemory,
        [x, y, layer, sample]: [u32; 4],
        quad: &PendingQuad,
        shaded: &ShadedFragments,
        fiber: usize,
    ) -> Result<bool, CpStop> {
        let surface = self.surface_of(quad);
        let [sx, sy] = self.state.sample_place(sample);
        let z = shaded.depth(fiber).unwrap_or_else(|| surface.z(x as f32 + sx, y as f32 + sy));
        let (front, reference) = (surface.front(), shaded.stencil(fiber));
        let fate = SampleFate { x, y, layer, sample, z, front, reference };
        let passes = self.state.depth_stencil.test(memory, &fate)?;
        if let Some(lrz) = &self.lrz {
            let bound = quad.lrz_bound;
            lrz.add(LrzVerdict { place: [x, y, layer, sample], z, passes, bound });
        }
        Ok(passes)
    }
}
