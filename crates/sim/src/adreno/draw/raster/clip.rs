//! Clipping: of a triangle what is inside of the view volume, the guard band and the clip distances.

use super::{GUARD_BAND, RasterState, RasterVertex, WindowVertex};

/// The least w of what is drawn.
const LEAST_W: f64 = 1e-30;

/// A convex polygon in pixels, before the division.
pub(super) struct Polygon {
    vertices: Vec<WindowVertex>,
}

/// Distances of a vertex to what clips: inside they are not negative.
fn distances(
    state: &RasterState,
    vertex: &RasterVertex,
    window: &WindowVertex,
) -> impl Iterator<Item = f64> + use<> {
    let WindowVertex { x, y, w, .. } = *window;
    let z = f64::from(vertex.position[2]);
    let clips = !state.clip.disabled;
    let near = if state.clip.zero_to_one { z } else { z + w };
    let planes = [(clips && state.clip.near, near), (clips && state.clip.far, w - z)];
    let band = [w - LEAST_W, GUARD_BAND * w - x, GUARD_BAND * w + x, GUARD_BAND * w - y, GUARD_BAND * w + y];
    let mask = if clips { state.clip.distances } else { 0 };
    let own = vertex.distances;
    let own = (0..8).filter(move |bit| mask >> bit & 1 != 0).map(move |bit| f64::from(own[bit]));
    let planes = planes.into_iter().filter(|(clips, _)| *clips).map(|(_, distance)| distance);
    band.into_iter().chain(planes).chain(own)
}

/// Whether a point is outside of depths or clip distances.
pub(super) fn outside(state: &RasterState, vertex: &RasterVertex) -> bool {
    let window = WindowVertex {
        x: 0.0,
        y: 0.0,
        z: 0.0,
        w: if state.clip.no_division { 1.0 } else { vertex.position[3].into() },
    };
    distances(state, vertex, &window).any(|distance| distance.is_nan() || distance < 0.0)
}

/// Whether nothing of a triangle is clipped.
pub(super) fn is_whole(
    state: &RasterState,
    corners: &[RasterVertex; 3],
    windows: &[WindowVertex; 3],
) -> bool {
    corners.iter().zip(windows).all(|(corner, window)| distances(state, corner, window).all(|d| d >= 0.0))
}

fn between(a: &WindowVertex, b: &WindowVertex, t: f64) -> WindowVertex {
    let mix = |a: f64, b: f64| a + t * (b - a);
    WindowVertex { x: mix(a.x, b.x), y: mix(a.y, b.y), z: mix(a.z, b.z), w: mix(a.w, b.w) }
}

impl Polygon {
    /// What is left of a triangle.
    pub(super) fn clipped(
        state: &RasterState,
        corners: &[RasterVertex; 3],
        windows: &[WindowVertex; 3],
    ) -> Polygon {
        let of: Vec<Vec<f64>> =
            (0..3).map(|n| distances(state, &corners[n], &windows[n]).collect()).collect();
        let whole = of.iter().flatten().all(|distance| *distance >= 0.0);
        if whole {
            return Polygon { vertices: windows.to_vec() };
        }
        let mut vertices: Vec<(WindowVertex, Vec<f64>)> = windows.iter().copied().zip(of).collect();
        let count = vertices.first().map_or(0, |(_, distances)| distances.len());
        for plane in 0..count {
            let mut left = Vec::with_capacity(vertices.len() + 1);
            for (at, (vertex, own)) in vertices.iter().enumerate() {
                let (next, other) = &vertices[(at + 1) % vertices.len()];
                let (here, there) = (own[plane], other[plane]);
                let (inside, goes_on) = (here >= 0.0, there >= 0.0);
                if inside {
                    left.push((*vertex, own.clone()));
                }
                if inside != goes_on {
                    let t = here / (here - there);
                    let distances = own.iter().zip(other).map(|(a, b)| a + t * (b - a)).collect();
                    left.push((between(vertex, next, t), distances));
                }
            }
            vertices = left;
        }
        Polygon { vertices: vertices.into_iter().map(|(vertex, _)| vertex).collect() }
    }

    /// Its corners in pixels.
    pub(super) fn places(&self) -> impl Iterator<Item = [f64; 2]> + '_ {
        self.vertices.iter().filter(|vertex| vertex.w > 0.0).map(WindowVertex::place)
    }
}

/// The part of a line that is left, as two places along it from 0 to 1.
pub(super) fn clipped_line(
    state: &RasterState,
    ends: &[RasterVertex; 2],
    windows: &[WindowVertex; 2],
) -> Option<[WindowVertex; 2]> {
    let (mut from, mut to) = (0f64, 1f64);
    let [first, second] = [0, 1].map(|n| distances(state, &ends[n], &windows[n]));
    for (here, there) in first.zip(second) {
        match (here >= 0.0, there >= 0.0) {
            (true, true) => {}
            (true, false) => to = to.min(here / (here - there)),
            (false, true) => from = from.max(here / (here - there)),
            (false, false) => return None,
        }
    }
    (from < to || from == 0.0 && to == 0.0).then(|| {
        let at = |t: f64| match t {
            0.0 => windows[0],
            1.0 => windows[1],
            t => between(&windows[0], &windows[1], t),
        };
        [at(from), at(to)]
    })
}
