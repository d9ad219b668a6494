//! The rasterizer: from positions of a primitive to the samples that it covers.
//!
//! Positions are snapped to 1/256 of a pixel; samples on an edge belong to one of the primitives that share it, by the top-left
//! rule. Never: registers, shaders, memory.

mod clip;
mod cover;
mod line;
mod surface;

pub(crate) use surface::Surface;

use clip::Polygon;
use cover::Coverage;
use std::ops::ControlFlow;

/// Parts of a pixel that positions are snapped to.
const SUBPIXELS: f64 = 256.0;
/// Pixels from the origin within which primitives are clipped, so that positions fit.
const GUARD_BAND: f64 = 32768.0;

/// A rectangle of pixels by its first and last ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) first: [u32; 2],
    /// Still inside.
    pub(crate) last: [u32; 2],
}

impl Area {
    /// What is in both.
    pub(crate) fn and(&self, other: &Area) -> Area {
        let pick = |of: fn(u32, u32) -> u32, a: [u32; 2], b: [u32; 2]| [of(a[0], b[0]), of(a[1], b[1])];
        Area { first: pick(u32::max, self.first, other.first), last: pick(u32::min, self.last, other.last) }
    }
}

/// From normalized coordinates to pixels, for one viewport.
#[derive(Clone, Debug, Default)]
pub(crate) struct Viewport {
    pub(crate) scale: [f32; 3],
    pub(crate) offset: [f32; 3],
    /// Least and greatest depth.
    pub(crate) z_clamp: [f32; 2],
    /// Pixels that may be written; where its last one is before its first, none.
    pub(crate) scissor: Area,
}

/// What primitives are clipped by.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClipState {
    pub(crate) disabled: bool,
    /// Positions are pixels already.
    pub(crate) no_transform: bool,
    /// Positions are not divided by their last component.
    pub(crate) no_division: bool,
    pub(crate) near: bool,
    pub(crate) far: bool,
    /// Depth is from 0 to w; else from -w.
    pub(crate) zero_to_one: bool,
    pub(crate) clamps_depth: bool,
    /// Distances that clip, and those that cull, by bit.
    pub(crate) distances: u8,
    pub(crate) culls: u8,
}

/// What is drawn of triangles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Fill {
    #[default]
    Triangles,
    /// Their edges.
    Lines,
    /// Their corners.
    Points,
}

/// Which pixels a line covers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum LineMode {
    /// One in each column or row.
    #[default]
    Bresenham,
    /// Those in the rectangle around it.
    Rectangular,
}

/// Lines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LineState {
    /// In pixels.
    pub(crate) half_width: f32,
    pub(crate) mode: LineMode,
}

/// Sizes of points, in pixels.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PointState {
    /// Of those that have none of their own.
    pub(crate) size: f32,
    pub(crate) min: f32,
    pub(crate) max: f32,
}

/// The least difference of depths that the depth buffer resolves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DepthUnit {
    Bits16,
    Bits24,
    /// That of the greatest depth of the primitive.
    Float,
}

/// What is added to depths.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DepthBias {
    /// Of the slope.
    pub(crate) scale: f32,
    /// In units.
    pub(crate) offset: f32,
    pub(crate) clamp: f32,
    pub(crate) unit: DepthUnit,
}

/// The state of a draw's rasterization.
#[derive(Clone, Debug, Default)]
pub(crate) struct RasterState {
    pub(crate) viewports: Vec<Viewport>,
    pub(crate) window: Area,
    pub(crate) clip: ClipState,
    pub(crate) cull_front: bool,
    pub(crate) cull_back: bool,
    pub(crate) front_is_clockwise: bool,
    pub(crate) fill: Fill,
    pub(crate) line: LineState,
    pub(crate) points: PointState,
    pub(crate) depth_bias: Option<DepthBias>,
    /// 1, 2 or 4.
    pub(crate) samples: u32,
    /// In sixteenths of a pixel.
    pub(crate) sample_places: [[u8; 2]; 4],
    /// Pixels by which what is covered is made larger, so that every pixel touched is.
    pub(crate) conservative: Option<f32>,
}

/// What is known of a vertex.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RasterVertex {
    /// In clip coordinates.
    pub(crate) position: [f32; 4],
    /// Clip and cull distances.
    pub(crate) distances: [f32; 8],
    pub(crate) point_size: Option<f32>,
}

/// A primitive.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Primitive {
    Point([RasterVertex; 1]),
    Line([RasterVertex; 2]),
    Triangle([RasterVertex; 3]),
    /// Opposite corners.
    Rectangle([RasterVertex; 2]),
}

/// Two by two pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quad {
    /// Both are even.
    pub(crate) x: u32,
    pub(crate) y: u32,
    /// A bit for each covered sample of the upper left, upper right, lower left and lower right pixel.
    pub(crate) coverage: [u8; 4],
}

/// What is done with a quad.
pub(crate) type Emit<'e> = &'e mut dyn FnMut(&Surface, &Quad) -> ControlFlow<()>;

/// A vertex in pixels, before the division: columns and rows times w, depth times w, w.
#[derive(Clone, Copy, Debug)]
struct WindowVertex {
    x: f64,
    y: f64,
    z: f64,
    w: f64,
}

impl WindowVertex {
    fn of(state: &RasterState, viewport: &Viewport, vertex: &RasterVertex) -> WindowVertex {
        let [x, y, z, w] = vertex.position.map(f64::from);
        let w = if state.clip.no_division { 1.0 } else { w };
        if state.clip.no_transform {
            return WindowVertex { x: x * w, y: y * w, z: z * w, w };
        }
        let place = |value: f64, axis: usize| {
            value * f64::from(viewport.scale[axis]) + w * f64::from(viewport.offset[axis])
        };
        WindowVertex { x: place(x, 0), y: place(y, 1), z: place(z, 2), w }
    }

    /// Column and row.
    fn place(&self) -> [f64; 2] {
        [self.x / self.w, self.y / self.w]
    }

    fn is_finite(&self) -> bool {
        [self.x, self.y, self.z, self.w].iter().all(|value| value.is_finite())
    }
}

/// A position in parts of pixels.
fn snap([x, y]: [f64; 2]) -> [i64; 2] {
    let limit = GUARD_BAND * SUBPIXELS * 2.0;
    [x, y].map(|value| (value * SUBPIXELS).round_ties_even().clamp(-limit, limit) as i64)
}

/// Calls with every quad that has a covered sample, from top to bottom, in an order that only the input decides.
pub(crate) fn rasterize(
    state: &RasterState,
    viewport: usize,
    primitive: &Primitive,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let Some(viewport) = state.viewports.get(viewport) else { return ControlFlow::Continue(()) };
    let vertices: &[RasterVertex] = match primitive {
        Primitive::Point(vertices) => vertices,
        Primitive::Line(vertices) | Primitive::Rectangle(vertices) => vertices,
        Primitive::Triangle(vertices) => vertices,
    };
    let culled = |bit: usize| {
        let outside = |vertex: &RasterVertex| vertex.distances[bit] < 0.0 || vertex.distances[bit].is_nan();
        state.clip.culls >> bit & 1 != 0 && vertices.iter().all(outside)
    };
    if (0..8).any(culled) {
        return ControlFlow::Continue(());
    }
    let area = viewport.scissor.and(&state.window);
    let coverage = Coverage { state, area };
    match primitive {
        Primitive::Point([vertex]) => point(state, viewport, vertex, &coverage, emit),
        Primitive::Line(ends) => line::rasterize(state, viewport, ends, &coverage, emit),
        Primitive::Rectangle(corners) => rectangle(state, viewport, corners, &coverage, emit),
        Primitive::Triangle(corners) => triangle(state, viewport, corners, &coverage, emit),
    }
}

fn point(
    state: &RasterState,
    viewport: &Viewport,
    vertex: &RasterVertex,
    coverage: &Coverage<'_>,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let window = WindowVertex::of(state, viewport, vertex);
    if !window.is_finite() || window.w <= 0.0 || clip::outside(state, vertex) {
        return ControlFlow::Continue(());
    }
    let size = vertex.point_size.unwrap_or(state.points.size);
    let size = f64::from(size.max(state.points.min).min(state.points.max));
    let [x, y] = window.place();
    let surface = Surface::point(state, viewport, &window, size);
    square(coverage, [x, y], size, &surface, emit)
}

/// The square around a place.
fn square(
    coverage: &Coverage<'_>,
    [x, y]: [f64; 2],
    size: f64,
    surface: &Surface,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let half = size / 2.0;
    let corners = [[x - half, y - half], [x + half, y - half], [x + half, y + half], [x - half, y + half]];
    coverage.polygon(&corners.map(snap), surface, emit)
}

fn rectangle(
    state: &RasterState,
    viewport: &Viewport,
    corners: &[RasterVertex; 2],
    coverage: &Coverage<'_>,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let windows = corners.map(|vertex| WindowVertex::of(state, viewport, &vertex));
    if !windows.iter().all(|vertex| vertex.is_finite() && vertex.w > 0.0) {
        return ControlFlow::Continue(());
    }
    let [[x0, y0], [x1, y1]] = windows.map(|vertex| vertex.place());
    let surface = Surface::rectangle(state, viewport, &windows);
    let ([left, right], [top, bottom]) = ([x0.min(x1), x0.max(x1)], [y0.min(y1), y0.max(y1)]);
    let corners = [[left, top], [right, top], [right, bottom], [left, bottom]];
    coverage.polygon(&corners.map(snap), &surface, emit)
}

fn triangle(
    state: &RasterState,
    viewport: &Viewport,
    corners: &[RasterVertex; 3],
    coverage: &Coverage<'_>,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let windows = corners.map(|vertex| WindowVertex::of(state, viewport, &vertex));
    if !windows.iter().all(WindowVertex::is_finite) {
        return ControlFlow::Continue(());
    }
    let Some(surface) = Surface::triangle(state, viewport, &windows) else {
        return ControlFlow::Continue(());
    };
    if if surface.front() { state.cull_front } else { state.cull_back } {
        return ControlFlow::Continue(());
    }
    let polygon = Polygon::clipped(state, corners, &windows);
    let places: Vec<[f64; 2]> = polygon.places().collect();
    match state.fill {
        Fill::Triangles => {
            let snapped: Vec<[i64; 2]> = places.iter().map(|place| snap(*place)).collect();
            coverage.polygon(&snapped, &surface, emit)
        }
        Fill::Lines => {
            for (at, from) in places.iter().enumerate() {
                let to = places[(at + 1) % places.len()];
                let edge = [*from, to];
                line::cover(state, edge, coverage, &surface.along(edge), emit)?;
            }
            ControlFlow::Continue(())
        }
        Fill::Points => {
            let size = f64::from(state.points.size.max(state.points.min).min(state.points.max));
            places
                .iter()
                .try_for_each(|place| square(coverage, *place, size, &surface.along([*place; 2]), emit))
        }
    }
}
