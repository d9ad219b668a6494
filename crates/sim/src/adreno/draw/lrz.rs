//! LRZ: the coarse depth buffer that rejects fragments early, kept beside the draws to check that it never changes a result.
//!
//! Nothing is rejected: a fragment that LRZ would reject is shaded all the same. It must fail the depth test, or be replaced
//! by a nearer one of the same pass, because the binning pass has put the depths of all draws into the buffer before the
//! first one is rendered. What is neither is a miss: the driver has let LRZ reject what is seen.
//!
//! Facts: GRAS_LRZ registers and the LRZ chapter of the freedreno documents. A block of 8 by 8 pixels has the farthest depth
//! that it may hold, of 16 bits, in memory, where clears of the 2D engine change it. Fast clears are kept beside memory; their
//! value is known from a7xx on, and blocks of a6xx that are fast cleared reject nothing. A primitive changes the blocks that it
//! covers whole. A buffer has one direction and one view of depth (GRAS_LRZ_DEPTH_VIEW); a driver turns LRZ of an image off with
//! a clear under a view that no draw has.

use super::raster::{self, Primitive, Quad, RasterState};
use super::registers::{DrawRegisters, Reg};
use crate::adreno::cp::{CpStop, ThreadId};
use crate::adreno::machine::AdrenoMachine;
use crate::adreno::space::AddressSpace;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::{Mutex, PoisonError};
use unwedge_base::Generation;

/// Pixels along a side of a block.
const BLOCK: u32 = 8;
/// The greatest depth of a block.
const GREATEST: f64 = 65535.0;
/// Misses that are kept, and samples that are followed until their pass ends.
const MOST: usize = 1 << 16;
/// LRZ_DIR_INVALID: LRZ of the buffer is off until it is cleared.
const DIR_INVALID: u32 = 3;

/// A fragment that LRZ would have rejected though it is seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LrzMiss {
    /// Draws, dispatches and blits before its draw.
    pub draw: u64,
    /// Address of the draw packet.
    pub packet: u64,
    /// Column and row of its pixel.
    pub pixel: (u32, u32),
    /// Its layer.
    pub layer: u32,
    /// Its sample.
    pub sample: u32,
    /// Its depth.
    pub depth: f32,
    /// The depth that its block has.
    pub bound: f32,
}

/// The results of the check of LRZ so far.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LrzFindings<'m> {
    /// Fragments that LRZ would have rejected. The count does not depend on how fragments are batched for shading.
    pub rejected: u64,
    /// How many of them are seen in the end.
    pub missed: u64,
    /// Those of them that are kept: the first ones.
    pub misses: &'m [LrzMiss],
    /// Fragments that would have been rejected, passed, and were not followed to the end of their pass because too many were
    /// followed at once: whether they are seen is not known.
    pub unchecked: u64,
}

/// What is kept of a buffer beside memory.
#[derive(Debug, Default)]
struct LrzBuffer {
    /// A fast clear, whose value may not be known, and the blocks that were written since.
    cleared: Option<Option<f32>>,
    written: HashSet<[u32; 3]>,
    /// Larger depths are nearer, as the first draw that wrote had it.
    greater: Option<bool>,
    /// GRAS_LRZ_DEPTH_VIEW of the clear that reset the direction.
    view: Option<u32>,
    disabled: bool,
}

/// LRZ of a machine whose draws are checked.
#[derive(Debug, Default)]
pub(crate) struct LrzCheck {
    buffers: BTreeMap<u64, LrzBuffer>,
    /// Samples that would have been rejected and passed, until they are replaced.
    pending: BTreeMap<(u32, u32, u32, u32), LrzMiss>,
    misses: Vec<LrzMiss>,
    missed: u64,
    rejected: u64,
    unchecked: u64,
    draw: u64,
    packet: u64,
}

/// LRZ as the registers of a draw have it.
#[derive(Clone, Copy, Debug)]
pub(super) struct LrzState {
    base: u64,
    /// Blocks from a row to the next, and bytes from a layer to the next.
    pitch: u64,
    layer_stride: u64,
    tests: bool,
    writes: bool,
    greater: bool,
    /// Blocks may be fast cleared (FC_ENABLE).
    fast: bool,
    samples: u32,
}

/// What GRAS_LRZ_CNTL of a draw has to do with the direction that the buffer keeps.
#[derive(Clone, Copy, Debug)]
struct LrzDirection {
    greater: bool,
    /// DIR_WRITE: the buffer takes over the direction, or is off from here on.
    writes: bool,
    /// DISABLE_ON_WRONG_DIR: LRZ is off where the buffer has another direction, or another view of depth.
    checks: bool,
    view: u32,
}

/// What the test of depth and stencil said of a sample: column, row, layer, sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct LrzVerdict {
    pub(super) place: [u32; 4],
    pub(super) z: f32,
    pub(super) passes: bool,
    /// The depth of its block when it was rasterized; `None` where LRZ does not test.
    pub(super) bound: Option<f32>,
}

/// LRZ of a draw, and what tests have said since it was judged last.
pub(super) struct LrzRun {
    pub(super) state: LrzState,
    verdicts: Mutex<Vec<LrzVerdict>>,
}

impl LrzRun {
    pub(super) fn new(state: LrzState) -> LrzRun {
        LrzRun { state, verdicts: Mutex::default() }
    }

    pub(super) fn add(&self, verdict: LrzVerdict) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(verdict);
    }

    fn take(&self) -> Vec<LrzVerdict> {
        std::mem::take(&mut self.verdicts.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// DISABLE_ON_WRONG_DIR.
fn checks_direction(registers: &DrawRegisters<'_, '_>) -> bool {
    match registers.machine.generation {
        Generation::A6xx => registers.get(Reg::LrzControl) >> 9 & 1 != 0,
        _ => registers.get(Reg::LrzControl2) & 1 != 0,
    }
}

/// FC_ENABLE.
fn has_fast_clear(registers: &DrawRegisters<'_, '_>) -> bool {
    match registers.machine.generation {
        Generation::A6xx => registers.get(Reg::LrzControl) >> 3 & 1 != 0,
        _ => registers.get(Reg::LrzControl2) >> 1 & 1 != 0,
    }
}

impl LrzState {
    fn address(&self, [x, y, layer]: [u32; 3]) -> u64 {
        let row = u64::from(y).wrapping_mul(self.pitch).wrapping_add(x.into());
        self.base.wrapping_add(u64::from(layer).wrapping_mul(self.layer_stride)).wrapping_add(2 * row)
    }
}

impl LrzBuffer {
    /// Whether a draw has LRZ, by its direction and its view of depth.
    fn allows(&mut self, direction: LrzDirection, writes: bool) -> bool {
        let LrzDirection { greater, writes: direction_writes, checks, view } = direction;
        let turned =
            self.greater.is_some_and(|was| was != greater) || self.view.is_some_and(|was| was != view);
        let off = checks && turned;
        self.disabled |= off && direction_writes;
        if direction_writes && writes && !off {
            self.greater.get_or_insert(greater);
        }
        !self.disabled && !off
    }

    /// The depth of a block.
    fn bound(&self, space: &AddressSpace, state: &LrzState, block: [u32; 3]) -> Option<f32> {
        if let Some(value) = self.cleared.filter(|_| state.fast && !self.written.contains(&block)) {
            return value;
        }
        let code = space.memory.load(state.address(block), 2).known()?;
        Some((code as f64 / GREATEST) as f32)
    }
}

impl LrzCheck {
    fn judge(&mut self, state: &LrzState, verdict: LrzVerdict, writes: bool) {
        let LrzVerdict { place: [x, y, layer, sample], z, passes, bound } = verdict;
        let unit = (1.0 / GREATEST) as f32;
        // A unit farther, as depths are rounded.
        let rejects = |bound: f32| if state.greater { z < bound - unit } else { z > bound + unit };
        let key = (x, y, layer, sample);
        match bound.filter(|bound| rejects(*bound)) {
            Some(bound) => {
                self.rejected += 1;
                if passes && self.pending.len() >= MOST && !self.pending.contains_key(&key) {
                    self.unchecked += 1;
                } else if passes {
                    let (draw, packet) = (self.draw, self.packet);
                    let miss = LrzMiss { draw, packet, pixel: (x, y), layer, sample, depth: z, bound };
                    self.pending.entry(key).or_insert(miss);
                }
            }
            None if passes && writes => {
                self.pending.remove(&key);
            }
            None => {}
        }
    }
}

impl AdrenoMachine<'_> {
    /// Checks from here on that LRZ would not have changed what draws leave. Work is done on one thread, so that what is
    /// reported is always the same.
    pub fn check_lrz(&mut self) {
        self.compute.threads = 1;
        self.lrz = Some(Box::default());
    }

    /// What would have been rejected, and what of it is seen; `None` where LRZ is not checked.
    pub fn lrz_findings(&self) -> Option<LrzFindings<'_>> {
        let LrzCheck { misses, missed, rejected, unchecked, .. } = self.lrz.as_deref()?;
        Some(LrzFindings { rejected: *rejected, missed: *missed, misses, unchecked: *unchecked })
    }

    /// Passes end here: what was not replaced is seen.
    pub(crate) fn end_lrz_pass(&mut self) {
        if let Some(lrz) = &mut self.lrz {
            let seen = std::mem::take(&mut lrz.pending);
            lrz.missed += seen.len() as u64;
            let room = MOST.saturating_sub(lrz.misses.len());
            lrz.misses.extend(seen.into_values().take(room));
        }
    }

    /// LRZ_CLEAR.
    pub(crate) fn clear_lrz(&mut self, id: ThreadId) {
        self.end_lrz_pass();
        let registers = DrawRegisters { machine: self, thread: id };
        let control = registers.get(Reg::LrzControl);
        let a7xx = self.generation >= Generation::A7xx;
        let fast = has_fast_clear(&registers);
        let value = a7xx.then(|| registers.float(Reg::LrzClearDepth));
        let view = checks_direction(&registers).then(|| registers.get(Reg::LrzDepthView));
        let base = registers.address(Reg::LrzBase, 0);
        if let Some(lrz) = &mut self.lrz {
            let disabled = control >> 6 & 3 == DIR_INVALID;
            let old = lrz.buffers.remove(&base).unwrap_or_default();
            let cleared = if fast { Some(value) } else { old.cleared };
            let written = if fast { HashSet::new() } else { old.written };
            lrz.buffers.insert(base, LrzBuffer { cleared, written, greater: None, view, disabled });
        }
    }

    /// A draw packet begins.
    pub(crate) fn begin_lrz_draw(&mut self, packet: u64) {
        let draw = self.work_done;
        if let Some(lrz) = &mut self.lrz {
            (lrz.draw, lrz.packet) = (draw, packet);
        }
    }

    /// LRZ of a draw; `None` where it is not checked, or off.
    pub(super) fn lrz_state(&mut self, id: ThreadId, samples: u32) -> Option<LrzState> {
        self.lrz.as_ref()?;
        let registers = DrawRegisters { machine: self, thread: id };
        let control = registers.get(Reg::LrzControl);
        let bit = |at: u32| control >> at & 1 != 0;
        let late = registers.get(Reg::DepthPlane) & 3 == 1;
        // Rendering passes may leave the buffer as the binning pass made it.
        let keeps = registers.get(Reg::RasterBins) >> 21 & 1 != 0;
        let pitch = registers.get(Reg::LrzPitch);
        let state = LrzState {
            base: registers.address(Reg::LrzBase, 0),
            pitch: u64::from(pitch & 0xff) << 5,
            layer_stride: u64::from(pitch >> 10 & 0x7_ffff) << 8,
            tests: bit(4) && !late,
            writes: bit(1) && !keeps,
            greater: bit(2),
            fast: has_fast_clear(&registers),
            samples,
        };
        let direction = LrzDirection {
            greater: state.greater,
            writes: bit(8),
            checks: checks_direction(&registers),
            view: registers.get(Reg::LrzDepthView),
        };
        if !bit(0) || state.base == 0 {
            return None;
        }
        let buffer = self.lrz.as_mut()?.buffers.entry(state.base).or_default();
        buffer.allows(direction, state.writes).then_some(state)
    }

    /// The depth of the block that a pixel of a layer is in, as LRZ has it now; `None` where it does not test.
    pub(super) fn lrz_bound(&self, state: &LrzState, [x, y, layer]: [u32; 3]) -> Option<f32> {
        let buffer = self.lrz.as_ref()?.buffers.get(&state.base).filter(|_| state.tests)?;
        buffer.bound(&self.space, state, [x / BLOCK, y / BLOCK, layer])
    }

    /// Samples were tested: those that LRZ would have rejected are taken down.
    pub(super) fn judge_lrz(&mut self, run: &LrzRun, writes: bool) {
        let Some(mut lrz) = self.lrz.take() else { return };
        for verdict in run.take() {
            lrz.judge(&run.state, verdict, writes);
        }
        self.lrz = Some(lrz);
    }

    /// A primitive changes the blocks that it covers whole. Each of its quads is a step.
    pub(super) fn write_lrz(
        &mut self,
        state: &LrzState,
        raster: &RasterState,
        viewport: usize,
        layer: u32,
        primitive: &Primitive,
    ) -> Result<(), CpStop> {
        if !state.writes {
            return Ok(());
        }
        let mut spent = Ok(());
        // Samples that are covered of a block, and the depth of the farthest.
        let mut blocks: BTreeMap<(u32, u32), (u32, f32)> = BTreeMap::new();
        let mut emit = |surface: &raster::Surface, quad: &Quad| {
            spent = self.spend(1);
            if spent.is_err() {
                return ControlFlow::Break(());
            }
            for (pixel, mask) in (0u32..).zip(quad.coverage) {
                let (x, y) = (quad.x + (pixel & 1), quad.y + (pixel >> 1));
                for sample in (0..raster.samples).filter(|n| mask >> n & 1 != 0) {
                    let [sx, sy] = raster.sample_places[sample as usize % 4].map(|at| f32::from(at) / 16.0);
                    let z = surface.z(x as f32 + sx, y as f32 + sy);
                    let (count, farthest) = blocks.entry((x / BLOCK, y / BLOCK)).or_insert((0, z));
                    *count += 1;
                    *farthest = if state.greater { farthest.min(z) } else { farthest.max(z) };
                }
            }
            ControlFlow::Continue(())
        };
        raster::rasterize(raster, viewport, primitive, &mut emit);
        spent?;
        let whole = BLOCK * BLOCK * state.samples;
        for ((x, y), (_, z)) in blocks.into_iter().filter(|(_, (count, z))| *count == whole && z.is_finite())
        {
            self.lower_lrz(state, [x, y, layer], z);
        }
        Ok(())
    }

    fn lower_lrz(&mut self, state: &LrzState, block: [u32; 3], z: f32) {
        let Some(mut lrz) = self.lrz.take() else { return };
        let buffer = lrz.buffers.entry(state.base).or_default();
        let exact = f64::from(z).clamp(0.0, 1.0) * GREATEST;
        let code = if state.greater { exact.floor() } else { exact.ceil() };
        if let Some(old) = buffer.bound(&self.space, state, block) {
            let old = (f64::from(old) * GREATEST).round();
            let new = if state.greater { code.max(old) } else { code.min(old) };
            // A buffer that is not mapped has no depths.
            if self.space.memory.store(state.address(block), 2, new as u64) {
                buffer.written.insert(block);
            }
        }
        self.lrz = Some(lrz);
    }
}
