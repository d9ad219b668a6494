//! Shaded fragments on their way into the attachments: late tests and merges, in the order of the quads.
//!
//! On several threads each takes pixels of its own, on a view of memory that is committed when all are through. Where one meets
//! a fault, or touches what another writes, nothing is committed and the quads are merged one after the other: so the result is
//! that of one thread. Never: what a test or a blend computes.

use super::fragment::{FragmentRun, PendingQuad, place};
use super::fragment_state::ShadedFragments;
use super::lrz::LrzVerdict;
use super::raster::Quad;
use super::samples::SampleFate;
use crate::adreno::cp::CpStop;
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::{AddressSpace, ApartSamples, DirectSamples, SampleMemory};
use crate::run::map_at_once;
use std::collections::HashMap;

/// Quads from which on a merge is worth starting threads, which may take longer than a millisecond where others use the cores, too.
const MANY_QUADS: usize = 1 << 13;
/// Threads that merge at most.
const MOST_SHARES: usize = 16;
/// Pages that each of them may touch.
const MOST_PAGES: usize = 1 << 12;
/// Size of a square of pixels that one thread merges, as shifts: so that no two write to a line of memory of any common image.
const SHARE_SHIFTS: [u32; 2] = [6, 3];

/// Part of the pixels.
#[derive(Clone, Copy)]
struct PixelShare {
    number: u32,
    of: u32,
}

impl PixelShare {
    fn has(self, quad: &Quad) -> bool {
        ((quad.x >> SHARE_SHIFTS[0]) + (quad.y >> SHARE_SHIFTS[1])) % self.of == self.number
    }
}

impl FragmentRun {
    /// Merges batches of quads with what their shaders put out.
    pub(super) fn merge_all(
        &mut self,
        machine: &mut AdrenoMachine<'_>,
        parts: &[&[PendingQuad]],
        shaded: &[ShadedFragments],
    ) -> Result<(), CpStop> {
        let shares = machine.compute.threads.min(MOST_SHARES);
        let quads: usize = parts.iter().map(|quads| quads.len()).sum();
        let space = &mut machine.space;
        // Whoever watches is told of one sample after the other.
        let watched = !machine.draw_watch.is_empty() || space.has_caches() || self.lrz.is_some();
        if self.merges_apart && !watched && shares > 1 && quads >= MANY_QUADS && !space.memory.logs_writes() {
            if let Some(samples) = self.merge_apart(space, parts, shaded, shares) {
                machine.counters.samples += samples;
                return Ok(());
            }
            self.merges_apart = false;
        }
        let mut near = std::mem::take(&mut self.near);
        let mut memory = DirectSamples::new(space, &mut near, &mut machine.draw_watch);
        let mut samples = 0;
        let merged = parts
            .iter()
            .zip(shaded)
            .try_for_each(|(quads, shaded)| self.merge(&mut memory, quads, shaded, None, &mut samples));
        self.near = near;
        machine.counters.samples += samples;
        self.judge(machine);
        merged
    }

    /// The samples that passed, if the shares of the pixels could be merged apart from each other.
    fn merge_apart(
        &self,
        space: &mut AddressSpace,
        parts: &[&[PendingQuad]],
        shaded: &[ShadedFragments],
        shares: usize,
    ) -> Option<u64> {
        let merge = |number: usize| {
            let share = Some(PixelShare { number: number as u32, of: shares as u32 });
            let mut memory = ApartSamples::new(space);
            let mut samples = 0;
            for (quads, shaded) in parts.iter().zip(shaded) {
                self.merge(&mut memory, quads, shaded, share, &mut samples).ok()?;
                if memory.is_full(MOST_PAGES) {
                    return None;
                }
            }
            Some((memory.accesses(), samples))
        };
        let merged: Vec<_> = map_at_once(shares, shares, merge).into_iter().collect::<Option<_>>()?;
        let mut lines = HashMap::new();
        let apart = merged.iter().all(|(accesses, _)| accesses.add_written(&mut lines))
            && !merged.iter().any(|(accesses, _)| accesses.read_of_others(&lines));
        let pages = merged.iter().map(|(accesses, _)| accesses.pages()).sum();
        if !apart || !space.memory.has_room(pages) {
            return None;
        }
        for (accesses, _) in &merged {
            space.memory.commit(accesses, &mut lines);
        }
        Some(merged.iter().map(|(_, samples)| samples).sum())
    }

    /// Merges a batch of quads, or those of them that are of a share.
    fn merge(
        &self,
        memory: &mut impl SampleMemory,
        quads: &[PendingQuad],
        shaded: &ShadedFragments,
        share: Option<PixelShare>,
        samples: &mut u64,
    ) -> Result<(), CpStop> {
        for (first, quad) in (0..).step_by(4).zip(quads) {
            if share.is_some_and(|share| !share.has(&quad.quad)) {
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
