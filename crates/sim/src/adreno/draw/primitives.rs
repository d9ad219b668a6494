//! Primitives on their way to the rasterizer: in the order of the draw, many of them rasterized ahead on other threads.
//!
//! What is rasterized ahead is only which samples a primitive covers; tests, steps and waves of fragments come in order, so that
//! they are those of one thread. Never: covers samples itself, shades.

use super::fragment::FragmentRun;
use super::link::{Linkage, Shape, VaryingState};
use super::raster::{self, Emit, Primitive, Quad, RasterState, Surface};
use super::vertices::{Assembled, AssembledPrimitive};
use super::visibility::BinningState;
use crate::adreno::cp::CpStop;
use crate::adreno::ir3::Planes;
use crate::adreno::machine::AdrenoMachine;
use crate::run::map_at_once;
use std::ops::ControlFlow;

/// Primitives that one thread rasterizes ahead.
const AHEAD: usize = 64;
/// Quads that it keeps of them: larger primitives are rasterized in their turn.
const MOST_QUADS: usize = 1 << 11;
/// Primitives from which on that is worth several threads.
const MANY_PRIMITIVES: usize = 256;

/// What the last stage before the rasterizer left.
pub(super) struct AssembledPrimitives<'p> {
    pub(super) assembled: &'p Assembled,
    pub(super) linkage: &'p Linkage,
    pub(super) varyings: &'p VaryingState,
    pub(super) last_provokes: bool,
    pub(super) rectangles: bool,
    pub(super) view: u32,
}

/// What primitives are clipped by, for the count of those that leave clipping.
pub(super) struct ClippingState {
    pub(super) raster: RasterState,
    pub(super) viewport_is_view: bool,
}

/// A primitive, and where it goes.
struct RasterInput<'p> {
    primitive: Primitive,
    shape: Shape,
    layer: u32,
    viewport: u32,
    vertices: [&'p [u32]; 3],
    count: usize,
    /// Which vertex gives what is flat, layer and viewport.
    provoking: usize,
    number: u32,
}

impl<'p> AssembledPrimitives<'p> {
    /// Those that are rasterized, in order.
    fn iter(&self) -> impl Iterator<Item = (&'p [u32], &'p AssembledPrimitive)> {
        self.assembled.iter().filter(|(_, primitive)| primitive.rasterized)
    }

    /// How many of them have something left after clipping.
    pub(super) fn clipped(&self, clipping: &ClippingState) -> u64 {
        let passes = |(corners, primitive): &(&[u32], &AssembledPrimitive)| {
            let input = self.input(corners, primitive.number);
            input.is_some_and(|input| {
                let viewport = if clipping.viewport_is_view { self.view } else { input.viewport };
                raster::passes_clipping(&clipping.raster, viewport as usize, &input.primitive)
            })
        };
        self.iter().filter(passes).count() as u64
    }

    fn input(&self, corners: &[u32], number: u32) -> Option<RasterInput<'p>> {
        let mut vertices: [&[u32]; 3] = [&[]; 3];
        let count = corners.len().min(vertices.len());
        for (vertex, corner) in vertices.iter_mut().zip(corners) {
            *vertex = self.assembled.vertices.vertex(*corner);
        }
        let vertex = |at: usize| self.linkage.raster_vertex(vertices[at], self.view as usize);
        let (primitive, shape) = match (count, self.rectangles) {
            (1, _) => (Primitive::Point([vertex(0)]), Shape::Point),
            (2, true) => (Primitive::Rectangle([vertex(0), vertex(1)]), Shape::Rectangle),
            (2, false) => (Primitive::Line([vertex(0), vertex(1)]), Shape::Line),
            (3, _) => (Primitive::Triangle([vertex(0), vertex(1), vertex(2)]), Shape::Triangle),
            _ => return None,
        };
        let provoking = if self.last_provokes { count - 1 } else { 0 };
        let of = |at: Option<usize>| at.and_then(|at| vertices[provoking].get(at)).copied().unwrap_or(0);
        let (layer, viewport) = (of(self.linkage.layer), of(self.linkage.viewport));
        Some(RasterInput { primitive, shape, layer, viewport, vertices, count, provoking, number })
    }
}

/// Quads of primitives that were rasterized ahead of their turn.
#[derive(Default)]
struct AheadQuads {
    surfaces: Vec<Surface>,
    /// Each with the number of its surface.
    quads: Vec<(u32, Quad)>,
    /// By primitive: where its quads end, and the blocks of pixels that were looked at. Those that are not here were too large.
    primitives: Vec<(usize, u64)>,
}

impl AheadQuads {
    fn new(inputs: &[Option<RasterInput<'_>>], fragments: &FragmentRun, view: u32) -> AheadQuads {
        let mut ahead = AheadQuads::default();
        for input in inputs {
            let (kept, mut whole, mut blocks) = (ahead.quads.len(), true, 0);
            if let Some(input) = input {
                let AheadQuads { surfaces, quads, .. } = &mut ahead;
                let mut emit = |surface: &Surface, quad: &Quad| {
                    if surfaces.last() != Some(surface) {
                        surfaces.push(surface.clone());
                    }
                    quads.push((surfaces.len() as u32 - 1, *quad));
                    whole = quads.len() < MOST_QUADS;
                    if whole { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
                };
                let viewport = fragments.state.viewport(input.viewport, view);
                blocks = raster::rasterize(&fragments.state.raster, viewport, &input.primitive, &mut emit);
            }
            if !whole {
                ahead.quads.truncate(kept);
                break;
            }
            ahead.primitives.push((ahead.quads.len(), blocks));
        }
        ahead
    }

    /// A primitive by its place among those that were given.
    fn primitive(&self, at: usize) -> Option<AheadPrimitive<'_>> {
        let &(end, blocks) = self.primitives.get(at)?;
        let from = at.checked_sub(1).and_then(|at| self.primitives.get(at)).map_or(0, |(end, _)| *end);
        Some(AheadPrimitive { surfaces: &self.surfaces, quads: self.quads.get(from..end)?, blocks })
    }
}

/// The quads of a primitive that was rasterized ahead of its turn.
pub(super) struct AheadPrimitive<'a> {
    surfaces: &'a [Surface],
    quads: &'a [(u32, Quad)],
    blocks: u64,
}

impl AheadPrimitive<'_> {
    /// Does what [`raster::rasterize`] does.
    pub(super) fn emit(&self, emit: Emit<'_>) -> u64 {
        // Whoever breaks off knows why.
        let _ =
            self.quads.iter().try_for_each(|(surface, quad)| emit(&self.surfaces[*surface as usize], quad));
        self.blocks
    }
}

impl AdrenoMachine<'_> {
    /// Takes down the bins that primitives may touch.
    pub(super) fn bin_all(
        &mut self,
        primitives: &AssembledPrimitives<'_>,
        binning: &BinningState,
    ) -> Result<(), CpStop> {
        for (corners, primitive) in primitives.iter() {
            if let Some(input) = primitives.input(corners, primitive.number) {
                let place = [input.layer, input.viewport];
                self.bin_primitive(&input.primitive, place, primitive.number, primitives.view, binning)?;
            }
        }
        Ok(())
    }

    /// Rasterizes primitives, and shades and merges their fragments.
    pub(super) fn rasterize_all(
        &mut self,
        primitives: &AssembledPrimitives<'_>,
        fragments: &mut FragmentRun,
    ) -> Result<(), CpStop> {
        let threads = self.compute.threads;
        if threads <= 1 || primitives.assembled.len() < MANY_PRIMITIVES {
            for (corners, primitive) in primitives.iter() {
                if let Some(input) = primitives.input(corners, primitive.number) {
                    self.rasterize_primitive(primitives, &input, None, fragments)?;
                }
            }
            return fragments.finish(self);
        }
        self.shares_work = true;
        let inputs: Vec<Option<RasterInput<'_>>> = primitives
            .iter()
            .map(|(corners, primitive)| primitives.input(corners, primitive.number))
            .collect();
        let parts: Vec<&[Option<RasterInput<'_>>]> = inputs.chunks(AHEAD).collect();
        let run: &FragmentRun = fragments;
        let ahead = map_at_once(parts.len(), threads, |at| AheadQuads::new(parts[at], run, primitives.view));
        for (part, ahead) in parts.iter().zip(&ahead) {
            for (at, input) in part.iter().enumerate() {
                if let Some(input) = input {
                    self.rasterize_primitive(primitives, input, ahead.primitive(at), fragments)?;
                }
            }
        }
        fragments.finish(self)
    }

    fn rasterize_primitive(
        &mut self,
        primitives: &AssembledPrimitives<'_>,
        input: &RasterInput<'_>,
        ahead: Option<AheadPrimitive<'_>>,
        fragments: &mut FragmentRun,
    ) -> Result<(), CpStop> {
        let (vertices, view) = (&input.vertices[..input.count], primitives.view);
        let planes =
            || primitives.varyings.planes(vertices, input.provoking, input.shape, input.number, view);
        let (layer, viewport) =
            (fragments.state.layer(input.layer, view), fragments.state.viewport(input.viewport, view));
        fragments.state.points = input.shape == Shape::Point;
        let mut add_planes = |all: &mut Planes| all.push(planes());
        fragments.rasterize(self, &input.primitive, layer, viewport, ahead, &mut add_planes)
    }
}
