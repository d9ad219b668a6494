//! What stages hand on: outputs of the last stage before the rasterizer, and where position, layer and the rest are in them.
//!
//! Facts: SP_xS_OUT, SP_xS_VPC_DST and VPC registers as Mesa's Turnip sets them. Never: clips or interpolates.

use super::raster::RasterVertex;
use super::registers::{DrawRegisters, DrawStage, Reg, StageReg, named};
use crate::adreno::ir3::OutputRegister;

/// Components of a vertex at most.
const COMPONENTS: usize = 256;

/// Where things are in the outputs of a stage.
#[derive(Clone, Debug)]
pub(super) struct Linkage {
    /// Registers that are read, and the component of the vertex that each becomes.
    pub(super) outputs: Vec<(OutputRegister, usize)>,
    /// Components of a vertex.
    pub(super) components: usize,
    position: Option<usize>,
    /// Positions behind the first one, one for each further view.
    extra_positions: usize,
    point_size: Option<usize>,
    pub(super) layer: Option<usize>,
    pub(super) viewport: Option<usize>,
    /// Components of the distances, four and four.
    distances: [Option<usize>; 2],
    /// Register of the flags of a geometry shader's vertices.
    pub(super) flags: Option<u8>,
}

fn place(word: u32, low: u32) -> Option<usize> {
    Some((word >> low & 0xff) as usize).filter(|at| *at != 0xff)
}

impl Linkage {
    pub(super) fn of(registers: &DrawRegisters<'_, '_>, stage: DrawStage) -> Linkage {
        let read = |reg| registers.stage(stage, reg);
        let control = read(StageReg::OutputCount);
        let mut outputs = Vec::new();
        for n in 0..control & 0x3f {
            let output = registers.stage_at(stage, StageReg::Output, n / 2) >> (16 * (n % 2));
            let first =
                (registers.stage_at(stage, StageReg::OutputPlace, n / 4) >> (8 * (n % 4)) & 0xff) as usize;
            for component in (0..4).filter(|component| output >> (8 + component) & 1 != 0) {
                let register = (output & 0xff) as u8;
                let of = OutputRegister {
                    register: register.saturating_add(component as u8),
                    half: false,
                    target: None,
                };
                outputs.push((of, (first + component as usize).min(COMPONENTS - 1)));
            }
        }
        let (pack, clip, layers) =
            (read(StageReg::Pack), read(StageReg::ClipPlaces), read(StageReg::LayerPlaces));
        let highest = outputs.iter().map(|(_, at)| at + 1).max().unwrap_or(0);
        Linkage {
            outputs,
            components: highest.max((pack & 0xff) as usize),
            position: place(pack, 8),
            extra_positions: (pack >> 24 & 0xf) as usize,
            point_size: place(pack, 16),
            layer: place(layers, 0),
            viewport: place(layers, 8),
            distances: [place(clip, 8), place(clip, 16)],
            flags: named(control >> 6),
        }
    }

    /// What the rasterizer takes of a vertex, for a view.
    pub(super) fn raster_vertex(&self, vertex: &[u32], view: usize) -> RasterVertex {
        let float = |at: usize| vertex.get(at).map_or(0.0, |bits| f32::from_bits(*bits));
        let first = self.position.map(|at| at + 4 * view.min(self.extra_positions));
        let position = match first {
            Some(at) => [0, 1, 2, 3].map(|n| float(at + n)),
            None => [0.0; 4],
        };
        let mut distances = [0.0; 8];
        for (half, at) in self.distances.iter().enumerate() {
            if let Some(at) = at {
                (0..4).for_each(|n| distances[4 * half + n] = float(at + n));
            }
        }
        RasterVertex { position, distances, point_size: self.point_size.map(float) }
    }
}

/// How components of varyings are interpolated.
#[derive(Clone, Debug)]
pub(super) struct VaryingState {
    /// Components that fragments may read.
    pub(super) components: usize,
    modes: Vec<VaryingMode>,
    primitive: Option<usize>,
    view: Option<usize>,
}

/// What a component is within a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VaryingMode {
    Smooth,
    Flat,
    Zero,
    One,
    /// Across points and rectangles.
    S,
    /// Down them.
    T,
    OneMinusT,
}

impl VaryingState {
    /// After the last stage before the rasterizer.
    pub(super) fn of(registers: &DrawRegisters<'_, '_>, last: &Linkage) -> VaryingState {
        let varyings = registers.get(Reg::Varyings);
        let inverted = registers.get(Reg::PointCoordInvert) & 1 != 0;
        let count = ((varyings & 0xff) as usize).min(128);
        let (primitive, view) = (place(varyings, 8), place(varyings, 24));
        let components =
            [primitive, view].iter().flatten().map(|at| at + 1).max().unwrap_or(0).max(count).min(COMPONENTS);
        let mode = |at: usize| {
            if at >= 128 {
                return VaryingMode::Flat;
            }
            let bits = |reg| registers.at(reg, at as u32 / 16) >> (2 * (at % 16)) & 3;
            match (bits(Reg::PointReplacement), bits(Reg::Interpolation)) {
                (1, _) => VaryingMode::S,
                (2, _) if inverted => VaryingMode::OneMinusT,
                (3, _) if inverted => VaryingMode::T,
                (2, _) => VaryingMode::T,
                (3, _) => VaryingMode::OneMinusT,
                (_, 0) => VaryingMode::Smooth,
                (_, 1) => VaryingMode::Flat,
                (_, 2) => VaryingMode::Zero,
                _ => VaryingMode::One,
            }
        };
        // A shader may write the number of the primitive itself.
        let primitive = primitive.filter(|at| !last.outputs.iter().any(|(_, of)| of == at));
        VaryingState { components, modes: (0..components).map(mode).collect(), primitive, view }
    }

    /// The planes of a primitive of so many vertices, of which one provokes.
    pub(super) fn planes<'p>(
        &'p self,
        vertices: &'p [&'p [u32]],
        provoking: usize,
        shape: Shape,
        primitive: u32,
        view: u32,
    ) -> impl Iterator<Item = [u32; 3]> + 'p {
        (0..self.components).map(move |at| {
            if Some(at) == self.primitive {
                return [primitive, 0, 0];
            }
            if Some(at) == self.view {
                return [view, 0, 0];
            }
            let value = |vertex: usize| {
                let vertex = vertices.get(vertex).or(vertices.first());
                vertex.and_then(|vertex| vertex.get(at)).copied().unwrap_or(0)
            };
            let mode = self.modes.get(at).copied().unwrap_or(VaryingMode::Flat);
            let (one, minus_one) = (1f32.to_bits(), (-1f32).to_bits());
            match (mode, shape) {
                (VaryingMode::Zero, _) => [0; 3],
                (VaryingMode::One, _) => [one, 0, 0],
                (VaryingMode::Flat, _) => [value(provoking), 0, 0],
                (VaryingMode::S, Shape::Point) => [0, one, 0],
                (VaryingMode::T, Shape::Point) => [0, 0, one],
                (VaryingMode::OneMinusT, Shape::Point) => [one, 0, minus_one],
                // Of two corners, one component goes along each side.
                (VaryingMode::S, Shape::Rectangle) => [value(0), difference(value(1), value(0)), 0],
                (VaryingMode::T | VaryingMode::OneMinusT, Shape::Rectangle) => {
                    [value(0), 0, difference(value(1), value(0))]
                }
                (_, Shape::Point) => [value(0), 0, 0],
                (_, Shape::Line | Shape::Rectangle) => [value(0), difference(value(1), value(0)), 0],
                (_, Shape::Triangle) => {
                    [value(0), difference(value(1), value(0)), difference(value(2), value(0))]
                }
            }
        })
    }
}

fn difference(to: u32, from: u32) -> u32 {
    (f32::from_bits(to) - f32::from_bits(from)).to_bits()
}

/// What is rasterized of a primitive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Point,
    Line,
    Triangle,
    Rectangle,
}
