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
use cover::{Coverage, TouchedBins};
use std::cell::{Cell, RefCell};
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
    /// Whether all four pixels of a quad are inside.
    fn has_quad(&self, x: u32, y: u32) -> bool {
        let inside = |at: u32, axis: usize| at >= self.first[axis] && at < self.last[axis];
        inside(x, 0) && inside(y, 1)
    }

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

impl PointState {
    /// The size of a vertex's point.
    fn of(&self, vertex: &RasterVertex) -> f64 {
        f64::from(vertex.point_size.unwrap_or(self.size).max(self.min).min(self.max))
    }
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

/// Calls with every quad that has a covered sample, from top to bottom, in an order that only the input decides, until the
/// call breaks off. How many blocks of pixels were looked at.
pub(crate) fn rasterize(state: &RasterState, viewport: usize, primitive: &Primitive, emit: Emit<'_>) -> u64 {
    let Some(viewport) = state.viewports.get(viewport) else { return 0 };
    let area = viewport.scissor.and(&state.window);
    let coverage = Coverage { state, area, blocks: Cell::new(0), bins: None };
    // Whoever breaks off knows why.
    let _ = rasterize_within(state, viewport, primitive, &coverage, emit);
    coverage.blocks.get()
}

/// The corners in pixels of what is left of a primitive after clipping; none where it is culled.
pub(crate) fn outline(state: &RasterState, viewport: usize, primitive: &Primitive) -> Vec<[f64; 2]> {
    let Some(viewport) = state.viewports.get(viewport) else { return Vec::new() };
    if let Primitive::Triangle(corners) = primitive {
        let windows = corners.each_ref().map(|vertex| WindowVertex::of(state, viewport, vertex));
        let all = windows.iter().all(WindowVertex::is_finite);
        let surface = Surface::triangle(state, viewport, &windows).filter(|_| all);
        let culled = |surface: &Surface| if surface.front() { state.cull_front } else { state.cull_back };
        if surface.is_none_or(|surface| culled(&surface)) {
            return Vec::new();
        }
    }
    clipped_places(state, viewport, primitive)
}

/// The corners in pixels of what clipping leaves of a primitive. Faces are not culled.
fn clipped_places(state: &RasterState, viewport: &Viewport, primitive: &Primitive) -> Vec<[f64; 2]> {
    let window = |vertex: &RasterVertex| WindowVertex::of(state, viewport, vertex);
    let shown =
        |vertices: &[WindowVertex]| vertices.iter().all(|vertex| vertex.is_finite() && vertex.w > 0.0);
    match primitive {
        Primitive::Point([vertex]) => match window(vertex) {
            at if shown(&[at]) && !clip::outside(state, vertex) => vec![at.place()],
            _ => Vec::new(),
        },
        Primitive::Line(ends) => {
            let windows = ends.each_ref().map(window);
            clip::clipped_line(state, ends, &windows)
                .filter(|ends| shown(ends))
                .map_or_else(Vec::new, |ends| ends.iter().map(WindowVertex::place).collect())
        }
        Primitive::Rectangle(corners) => {
            let windows = corners.each_ref().map(window);
            if !shown(&windows) {
                return Vec::new();
            }
            let [[x0, y0], [x1, y1]] = windows.map(|vertex| vertex.place());
            vec![[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
        }
        Primitive::Triangle(corners) => {
            let windows = corners.each_ref().map(window);
            match windows.iter().all(WindowVertex::is_finite) {
                true => Polygon::clipped(state, corners, &windows).places().collect(),
                false => Vec::new(),
            }
        }
    }
}

/// Whether something of a primitive is left after clipping: it is not culled by its distances, and not all of it is clipped. A triangle
/// that is entirely beyond one side of the view volume is dropped, too, though only the guard band clips there.
pub(crate) fn passes_clipping(state: &RasterState, viewport: usize, primitive: &Primitive) -> bool {
    let Some(viewport) = state.viewports.get(viewport) else { return false };
    let beside = |vertices: &[RasterVertex]| {
        [0, 1].into_iter().any(|axis| {
            let beyond = |sign: f32| vertices.iter().all(|v| v.position[axis] * sign > v.position[3]);
            beyond(1.0) || beyond(-1.0)
        })
    };
    let clips = !state.clip.disabled && !state.clip.no_transform;
    let outside = match primitive {
        Primitive::Triangle(corners) => clips && beside(corners),
        _ => false,
    };
    !outside
        && !is_culled_by_distance(state, primitive)
        && !clipped_places(state, viewport, primitive).is_empty()
}

/// Whether a distance that culls is negative at all vertices.
fn is_culled_by_distance(state: &RasterState, primitive: &Primitive) -> bool {
    let vertices: &[RasterVertex] = match primitive {
        Primitive::Point(vertices) => vertices,
        Primitive::Line(vertices) | Primitive::Rectangle(vertices) => vertices,
        Primitive::Triangle(vertices) => vertices,
    };
    let culled = |bit: usize| {
        let outside = |vertex: &RasterVertex| vertex.distances[bit] < 0.0 || vertex.distances[bit].is_nan();
        state.clip.culls >> bit & 1 != 0 && vertices.iter().all(outside)
    };
    (0..8).any(culled)
}

/// Calls with every bin that a covered sample may be in, some of them more than once; bins are counted from the origin. How
/// many bins were looked at.
pub(crate) fn bins(
    state: &RasterState,
    viewport: usize,
    primitive: &Primitive,
    size: [u32; 2],
    touch: &mut dyn FnMut([u32; 2]),
) -> u64 {
    let Some(viewport) = state.viewports.get(viewport) else { return 0 };
    let area = viewport.scissor.and(&state.window);
    let touched = TouchedBins { size: size.map(|pixels| pixels.max(1)), touch: RefCell::new(touch) };
    let coverage = Coverage { state, area, blocks: Cell::new(0), bins: Some(&touched) };
    let mut emit = |_: &Surface, _: &Quad| ControlFlow::Continue(());
    let _ = rasterize_within(state, viewport, primitive, &coverage, &mut emit);
    coverage.blocks.get()
}

fn rasterize_within(
    state: &RasterState,
    viewport: &Viewport,
    primitive: &Primitive,
    coverage: &Coverage<'_>,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    if is_culled_by_distance(state, primitive) {
        return ControlFlow::Continue(());
    }
    match primitive {
        Primitive::Point([vertex]) => point(state, viewport, vertex, coverage, emit),
        Primitive::Line(ends) => line::rasterize(state, viewport, ends, coverage, emit),
        Primitive::Rectangle(corners) => rectangle(state, viewport, corners, coverage, emit),
        Primitive::Triangle(corners) => triangle(state, viewport, corners, coverage, emit),
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
    let size = state.points.of(vertex);
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
    if state.fill == Fill::Triangles && clip::is_whole(state, corners, &windows) {
        return coverage.polygon(&windows.map(|window| snap(window.place())), &surface, emit);
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
            places.iter().try_for_each(|place| {
                // A corner that clipping made has the size of the first vertex.
                let corner = windows.iter().position(|window| window.place() == *place).unwrap_or(0);
                let size = state.points.of(&corners[corner]);
                square(coverage, *place, size, &surface.along([*place; 2]), emit)
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    const SIZE: u32 = 64;

    fn state(samples: u32) -> RasterState {
        let area = Area { first: [0, 0], last: [SIZE - 1, SIZE - 1] };
        let half = SIZE as f32 / 2.0;
        let viewport = Viewport {
            scale: [half, half, 1.0],
            offset: [half, half, 0.0],
            z_clamp: [0.0, 1.0],
            scissor: area,
        };
        RasterState {
            viewports: vec![viewport],
            window: area,
            clip: ClipState { near: true, far: true, zero_to_one: true, ..ClipState::default() },
            samples,
            sample_places: match samples {
                1 => [[8, 8]; 4],
                2 => [[12, 12], [4, 4], [8, 8], [8, 8]],
                _ => [[6, 2], [14, 6], [2, 10], [10, 14]],
            },
            line: LineState { half_width: 0.5, mode: LineMode::Rectangular },
            points: PointState { size: 1.0, min: 1.0, max: 64.0 },
            ..RasterState::default()
        }
    }

    /// A vertex at a place of the window in 256ths of a pixel, which normalized coordinates have exactly.
    fn vertex([x, y]: [i64; 2], w: f32) -> RasterVertex {
        let normalized = |at: i64| (at as f32 / 256.0 - SIZE as f32 / 2.0) / (SIZE as f32 / 2.0);
        RasterVertex {
            position: [normalized(x) * w, normalized(y) * w, 0.5 * w, w],
            ..RasterVertex::default()
        }
    }

    /// How often each sample is covered.
    fn covered(state: &RasterState, primitive: &Primitive) -> HashMap<(u32, u32, u32), u32> {
        let mut samples = HashMap::new();
        let mut emit = |_: &Surface, quad: &Quad| {
            for (pixel, mask) in (0..).zip(quad.coverage) {
                for sample in (0..4).filter(|n| mask >> n & 1 != 0) {
                    let place = (quad.x + (pixel & 1), quad.y + (pixel >> 1), sample);
                    *samples.entry(place).or_insert(0) += 1;
                }
            }
            ControlFlow::Continue(())
        };
        assert!(rasterize(state, 0, primitive, &mut emit) <= 16 * u64::from(SIZE * SIZE));
        samples
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self, below: i64) -> i64 {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as i64 % below
        }

        fn place(&mut self) -> [i64; 2] {
            [0, 1].map(|_| self.next(i64::from(SIZE) * 256 + 8192) - 4096)
        }
    }

    /// Whether a sample is inside by the top-left rule, in whole numbers of a width that holds every product.
    fn inside(corners: &[[i64; 2]; 3], x: i64, y: i64) -> bool {
        let cross = |a: [i64; 2], b: [i64; 2], [x, y]: [i64; 2]| {
            i128::from(b[0] - a[0]) * i128::from(y - a[1]) - i128::from(b[1] - a[1]) * i128::from(x - a[0])
        };
        let area = cross(corners[0], corners[1], corners[2]);
        let turned = [corners[0], corners[2], corners[1]];
        let corners = if area > 0 { corners } else { &turned };
        area != 0
            && (0..3).all(|n| {
                let (a, b) = (corners[n], corners[(n + 1) % 3]);
                let side = cross(a, b, [x, y]);
                // On an edge that goes up, or along the top.
                side > 0 || side == 0 && (b[1] < a[1] || b[1] == a[1] && b[0] > a[0])
            })
    }

    #[test]
    fn triangles_cover_what_they_contain() {
        let mut random = Random(1);
        let mut found = 0;
        for round in 0..600 {
            let samples = [1, 2, 4][round % 3];
            let state = state(samples);
            // Some corners on samples, so that edges and ties are met.
            let corners = [0, 1, 2].map(|_| match round % 2 {
                0 => random.place(),
                _ => random.place().map(|at| at / 128 * 128),
            });
            let w = if round % 5 == 0 { 2.0 } else { 1.0 };
            let vertices = corners.map(|place| vertex(place, w));
            let covered = covered(&state, &Primitive::Triangle(vertices));
            for y in 0..SIZE {
                for x in 0..SIZE {
                    for sample in 0..samples {
                        let [sx, sy] = state.sample_places[sample as usize].map(|at| i64::from(at) * 16);
                        let expected = inside(&corners, i64::from(x) * 256 + sx, i64::from(y) * 256 + sy);
                        let count = covered.get(&(x, y, sample)).copied().unwrap_or(0);
                        assert_eq!(count, u32::from(expected), "{corners:?} {x},{y} {sample}");
                        found += count;
                    }
                }
            }
        }
        assert!(found > 100_000, "{found}");
    }

    /// A fan around a point covers every sample of its outline once.
    #[test]
    fn triangles_that_share_edges_leave_no_gap() {
        let mut random = Random(2);
        let size = i64::from(SIZE) * 256;
        let outline = [[0, 0], [size / 2, 0], [size, 0], [size, size], [size / 3, size], [0, size]];
        for round in 0..60 {
            let state = state([1, 2, 4][round % 3]);
            let middle = [0, 1].map(|_| 512 + random.next(size - 1024));
            let mut counts: HashMap<(u32, u32, u32), u32> = HashMap::new();
            for n in 0..outline.len() {
                let corners = [middle, outline[n], outline[(n + 1) % outline.len()]];
                let triangle = Primitive::Triangle(corners.map(|place| vertex(place, 1.0)));
                covered(&state, &triangle)
                    .into_iter()
                    .for_each(|(place, count)| *counts.entry(place).or_insert(0) += count);
            }
            assert_eq!(counts.len() as u32, SIZE * SIZE * state.samples);
            assert!(counts.values().all(|count| *count == 1));
        }
    }

    /// Weights against the arithmetic of the definition: barycentric coordinates in the window, divided by w.
    #[test]
    fn weights_are_those_of_the_vertices() {
        let mut random = Random(3);
        let mut checked = 0;
        for _ in 0..300 {
            let corners = [0, 1, 2].map(|_| random.place());
            let w = [0, 1, 2].map(|_| 1.0 + random.next(64) as f32 / 16.0);
            let vertices = [0, 1, 2].map(|n| vertex(corners[n], w[n]));
            let place = corners.map(|corner| corner.map(|at| at as f64 / 256.0));
            let cross = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| {
                (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
            };
            let area = cross(place[0], place[1], place[2]);
            if area.abs() < 16.0 {
                continue;
            }
            let mut emit = |surface: &Surface, quad: &Quad| {
                let at = [f64::from(quad.x) + 0.5, f64::from(quad.y) + 0.5];
                let (x, y) = (at[0] as f32, at[1] as f32);
                let linear = [cross(place[2], place[0], at) / area, cross(place[0], place[1], at) / area];
                let first = 1.0 - linear[0] - linear[1];
                let rhw = first / f64::from(w[0]) + linear[0] / f64::from(w[1]) + linear[1] / f64::from(w[2]);
                let close = |here: f32, there: f64| {
                    assert!((f64::from(here) - there).abs() < 1e-4 * there.abs().max(1.0), "{here} {there}");
                };
                (0..2).for_each(|n| close(surface.linear(x, y)[n], linear[n]));
                close(surface.rhw(x, y), rhw);
                close(surface.z(x, y), 0.5);
                // Outside of the primitive 1/w may come near to zero.
                if rhw > 0.05 {
                    (0..2).for_each(|n| {
                        close(surface.perspective(x, y)[n], linear[n] / f64::from(w[n + 1]) / rhw)
                    });
                }
                checked += 1;
                ControlFlow::Continue(())
            };
            rasterize(&state(1), 0, &Primitive::Triangle(vertices), &mut emit);
        }
        assert!(checked > 1000, "{checked}");
    }

    /// What is in front of and behind the near plane is what clipping in space gives.
    #[test]
    fn what_is_behind_is_clipped() {
        let mut position = [[-0.5, 0.5, 0.5, 1.0], [0.5, 0.5, 0.5, 1.0], [0.0, -2.0, -4.0, -3.0]];
        let vertices = position.map(|position| RasterVertex { position, ..RasterVertex::default() });
        let some = covered(&state(1), &Primitive::Triangle(vertices));
        assert!(!some.is_empty());
        assert!(some.keys().all(|(_, y, _)| *y <= 48), "only above the edge that is seen");
        position.iter_mut().for_each(|position| position[3] = -1.0);
        let vertices = position.map(|position| RasterVertex { position, ..RasterVertex::default() });
        assert!(covered(&state(1), &Primitive::Triangle(vertices)).is_empty());
    }

    #[test]
    fn lines_and_points() {
        let row = [[4 * 256 + 128, 10 * 256 + 128], [20 * 256 + 128, 10 * 256 + 128]];
        let ends = row.map(|place| vertex(place, 1.0));
        for mode in [LineMode::Bresenham, LineMode::Rectangular] {
            let state = RasterState { line: LineState { half_width: 0.5, mode }, ..state(1) };
            let mut pixels: Vec<_> = covered(&state, &Primitive::Line(ends)).into_keys().collect();
            pixels.sort_unstable();
            let expected: Vec<_> = (4..20).map(|x| (x, 10, 0)).collect();
            assert_eq!(pixels, expected, "{mode:?}: the last pixel is that of the next line");
        }
        let point = RasterVertex { point_size: Some(3.0), ..vertex([10 * 256 + 128, 20 * 256 + 128], 1.0) };
        let mut pixels: Vec<_> = covered(&state(1), &Primitive::Point([point])).into_keys().collect();
        pixels.sort_unstable();
        let expected: Vec<_> = (9..12).flat_map(|x| (19..22).map(move |y| (x, y, 0))).collect();
        assert_eq!(pixels, expected);
    }

    /// Whatever the positions are, no panic and no more quads than the window has, for each edge of the polygon.
    #[test]
    fn any_positions() {
        let odd =
            [0.0, -0.0, 1.0, -1.0, 1e-40, 1e30, -1e30, 3.4e38, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let mut random = Random(4);
        for round in 0..20_000 {
            let mut any = || RasterVertex {
                position: [0, 1, 2, 3].map(|_| odd[random.next(odd.len() as i64) as usize]),
                distances: [odd[random.next(odd.len() as i64) as usize]; 8],
                point_size: Some(odd[random.next(odd.len() as i64) as usize]),
            };
            let primitive = match round % 4 {
                0 => Primitive::Point([any()]),
                1 => Primitive::Line([any(), any()]),
                2 => Primitive::Rectangle([any(), any()]),
                _ => Primitive::Triangle([any(), any(), any()]),
            };
            let mut state = state(4);
            state.clip.distances = (round % 3) as u8;
            state.clip.no_division = round % 7 == 0;
            state.clip.disabled = round % 5 == 0;
            state.fill = [Fill::Triangles, Fill::Lines, Fill::Points][round % 3];
            state.line.mode = [LineMode::Bresenham, LineMode::Rectangular][round % 2];
            let mut quads = 0;
            rasterize(&state, 0, &primitive, &mut |surface, quad| {
                surface.perspective(quad.x as f32, quad.y as f32);
                quads += 1;
                ControlFlow::Continue(())
            });
            assert!(quads <= 16 * SIZE * SIZE, "{quads}");
        }
    }
}
