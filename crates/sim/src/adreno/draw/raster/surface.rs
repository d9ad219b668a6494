//! What is rasterized as functions of the place in the window: weights of vertices, depth, 1/w.

use super::{DepthBias, DepthUnit, RasterState, Viewport, WindowVertex};

/// A function that is linear across the window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Plane {
    x: f64,
    y: f64,
    constant: f64,
}

impl Plane {
    fn constant(constant: f64) -> Plane {
        Plane { x: 0.0, y: 0.0, constant }
    }

    fn at(&self, x: f64, y: f64) -> f64 {
        self.x * x + self.y * y + self.constant
    }

    fn scaled(&self, by: f64) -> Plane {
        Plane { x: self.x * by, y: self.y * by, constant: self.constant * by }
    }

    fn plus(&self, other: &Plane) -> Plane {
        Plane { x: self.x + other.x, y: self.y + other.y, constant: self.constant + other.constant }
    }
}

/// The primitive that quads are of.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Surface {
    front: bool,
    /// Weights of the second and third vertex, each divided by its w.
    perspective: [Plane; 2],
    linear: [Plane; 2],
    rhw: Plane,
    z: Plane,
    z_clamp: Option<[f32; 2]>,
    /// Across and down a point.
    point: [Plane; 2],
}

impl Surface {
    /// Of a triangle; `None` where it has no area.
    pub(super) fn triangle(
        state: &RasterState,
        viewport: &Viewport,
        v: &[WindowVertex; 3],
    ) -> Option<Surface> {
        // The inverse of the matrix of positions: each vertex's weight divided by its w.
        let weight = |a: usize, b: usize| Plane {
            x: v[a].y * v[b].w - v[b].y * v[a].w,
            y: v[b].x * v[a].w - v[a].x * v[b].w,
            constant: v[a].x * v[b].y - v[b].x * v[a].y,
        };
        let planes = [weight(1, 2), weight(2, 0), weight(0, 1)];
        let area: f64 = planes[0].x * v[0].x + planes[0].y * v[0].y + planes[0].constant * v[0].w;
        if area == 0.0 || !area.is_finite() {
            return None;
        }
        let planes = planes.map(|plane| plane.scaled(1.0 / area));
        let sum = |of: &dyn Fn(usize) -> f64| {
            (0..3).fold(Plane::default(), |sum, n| sum.plus(&planes[n].scaled(of(n))))
        };
        let clockwise = area > 0.0;
        let mut surface = Surface {
            front: clockwise == state.front_is_clockwise,
            perspective: [planes[1], planes[2]],
            linear: [planes[1].scaled(v[1].w), planes[2].scaled(v[2].w)],
            rhw: sum(&|_| 1.0),
            z: sum(&|n| v[n].z),
            z_clamp: state.clip.clamps_depth.then_some(viewport.z_clamp),
            point: [Plane::default(); 2],
        };
        if let Some(bias) = &state.depth_bias {
            let depths = v.map(|vertex| vertex.z / vertex.w);
            surface.z.constant += bias.of(&surface.z, &depths);
        }
        Some(surface)
    }

    pub(super) fn line(state: &RasterState, viewport: &Viewport, ends: &[WindowVertex; 2]) -> Surface {
        let [from, to] = ends.map(|end| end.place());
        let along = line_weight(from, to);
        let [first, second] = ends.map(|end| 1.0 / end.w);
        let depths = ends.map(|end| end.z / end.w);
        let mixed = |from: f64, to: f64| Plane::constant(from).plus(&along.scaled(to - from));
        let mut surface = Surface {
            front: true,
            perspective: [along.scaled(second), Plane::default()],
            linear: [along, Plane::default()],
            rhw: mixed(first, second),
            z: mixed(depths[0], depths[1]),
            z_clamp: state.clip.clamps_depth.then_some(viewport.z_clamp),
            point: [Plane::default(); 2],
        };
        if let Some(bias) = &state.depth_bias {
            surface.z.constant += bias.of(&surface.z, &depths);
        }
        surface
    }

    pub(super) fn point(
        state: &RasterState,
        viewport: &Viewport,
        vertex: &WindowVertex,
        size: f64,
    ) -> Surface {
        let [x, y] = vertex.place();
        let size = if size > 0.0 { size } else { 1.0 };
        let across = |axis: usize| {
            let (at, [dx, dy]) = if axis == 0 { (x, [1.0, 0.0]) } else { (y, [0.0, 1.0]) };
            Plane { x: dx / size, y: dy / size, constant: 0.5 - at / size }
        };
        Surface {
            front: true,
            perspective: [Plane::default(); 2],
            linear: [Plane::default(); 2],
            rhw: Plane::constant(1.0 / vertex.w),
            z: Plane::constant(vertex.z / vertex.w),
            z_clamp: state.clip.clamps_depth.then_some(viewport.z_clamp),
            point: [across(0), across(1)],
        }
    }

    /// One weight goes along x from the first corner to the second, the other along y.
    pub(super) fn rectangle(
        state: &RasterState,
        viewport: &Viewport,
        corners: &[WindowVertex; 2],
    ) -> Surface {
        let [[x0, y0], [x1, y1]] = corners.map(|corner| corner.place());
        let along = |from: f64, to: f64| if to == from { 0.0 } else { 1.0 / (to - from) };
        let (dx, dy) = (along(x0, x1), along(y0, y1));
        let weights =
            [Plane { x: dx, y: 0.0, constant: -x0 * dx }, Plane { x: 0.0, y: dy, constant: -y0 * dy }];
        Surface {
            front: true,
            perspective: weights,
            linear: weights,
            rhw: Plane::constant(1.0),
            z: Plane::constant(corners[0].z / corners[0].w),
            z_clamp: state.clip.clamps_depth.then_some(viewport.z_clamp),
            point: [Plane::default(); 2],
        }
    }

    /// Whether the front of the primitive is seen.
    pub(crate) fn front(&self) -> bool {
        self.front
    }

    /// The weights of the second and third vertex at a place of the window, in pixels: with perspective.
    pub(crate) fn perspective(&self, x: f32, y: f32) -> [f32; 2] {
        let (x, y) = (f64::from(x), f64::from(y));
        let rhw = self.rhw.at(x, y);
        self.perspective.map(|plane| (plane.at(x, y) / rhw) as f32)
    }

    /// The same without perspective.
    pub(crate) fn linear(&self, x: f32, y: f32) -> [f32; 2] {
        self.linear.map(|plane| plane.at(x.into(), y.into()) as f32)
    }

    /// 1/w at a place.
    pub(crate) fn rhw(&self, x: f32, y: f32) -> f32 {
        self.rhw.at(x.into(), y.into()) as f32
    }

    /// The way across and down a point, from 0 to 1.
    pub(crate) fn point_place(&self, x: f32, y: f32) -> [f32; 2] {
        self.point.map(|plane| plane.at(x.into(), y.into()) as f32)
    }

    /// The same along a line between two of its places, or at one place.
    pub(super) fn along(&self, [from, to]: [[f64; 2]; 2]) -> Surface {
        let along = line_weight(from, to);
        let mixed = |plane: &Plane| {
            let [first, second] = [from, to].map(|[x, y]| plane.at(x, y));
            Plane::constant(first).plus(&along.scaled(second - first))
        };
        Surface {
            perspective: self.perspective.each_ref().map(mixed),
            linear: self.linear.each_ref().map(mixed),
            rhw: mixed(&self.rhw),
            z: mixed(&self.z),
            ..self.clone()
        }
    }

    /// Depth at a place, with its bias, clamped.
    pub(crate) fn z(&self, x: f32, y: f32) -> f32 {
        let z = self.z.at(x.into(), y.into()) as f32;
        match self.z_clamp {
            Some([least, greatest]) => z.max(least).min(greatest),
            None => z,
        }
    }
}

/// From 0 to 1 along a line.
fn line_weight([x0, y0]: [f64; 2], [x1, y1]: [f64; 2]) -> Plane {
    let (dx, dy) = (x1 - x0, y1 - y0);
    let length = dx * dx + dy * dy;
    match length > 0.0 {
        true => Plane { x: dx / length, y: dy / length, constant: -(x0 * dx + y0 * dy) / length },
        false => Plane::default(),
    }
}

impl DepthBias {
    /// What is added to the depths of a primitive.
    fn of(&self, z: &Plane, depths: &[f64]) -> f64 {
        let slope = z.x.abs().max(z.y.abs());
        let unit = match self.unit {
            DepthUnit::Bits16 => 2f64.powi(-16),
            DepthUnit::Bits24 => 2f64.powi(-24),
            DepthUnit::Float => {
                let greatest = depths.iter().fold(0f64, |most, z| most.max(z.abs())) as f32;
                let exponent = (greatest.to_bits() >> 23 & 0xff) as i32 - 127;
                2f64.powi(exponent - 23)
            }
        };
        let bias = slope * f64::from(self.scale) + f64::from(self.offset) * unit;
        let clamp = f64::from(self.clamp);
        match () {
            () if clamp > 0.0 => bias.min(clamp),
            () if clamp < 0.0 => bias.max(clamp),
            () => bias,
        }
    }
}
