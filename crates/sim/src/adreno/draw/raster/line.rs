//! Lines: rectangles around them, or one pixel in each column or row.

use super::cover::Coverage;
use super::{Emit, LineMode, RasterState, RasterVertex, Surface, Viewport, WindowVertex, clip, snap};
use std::ops::ControlFlow;

pub(super) fn rasterize(
    state: &RasterState,
    viewport: &Viewport,
    ends: &[RasterVertex; 2],
    coverage: &Coverage<'_>,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    let windows = ends.map(|vertex| WindowVertex::of(state, viewport, &vertex));
    if !windows.iter().all(WindowVertex::is_finite) {
        return ControlFlow::Continue(());
    }
    let Some(clipped) = clip::clipped_line(state, ends, &windows) else { return ControlFlow::Continue(()) };
    if clipped.iter().any(|end| end.w <= 0.0) {
        return ControlFlow::Continue(());
    }
    // Weights are those of the whole line, where both of its ends have a place.
    let whole = windows.iter().all(|end| end.w > 0.0);
    let surface = Surface::line(state, viewport, if whole { &windows } else { &clipped });
    cover(state, clipped.map(|end| end.place()), coverage, &surface, emit)
}

/// Covers a line between two places in pixels.
pub(super) fn cover(
    state: &RasterState,
    ends: [[f64; 2]; 2],
    coverage: &Coverage<'_>,
    surface: &Surface,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    match state.line.mode {
        LineMode::Rectangular => {
            let [[x0, y0], [x1, y1]] = ends;
            let (dx, dy) = (x1 - x0, y1 - y0);
            let length = dx.hypot(dy);
            if length == 0.0 {
                return ControlFlow::Continue(());
            }
            let half = f64::from(state.line.half_width) / length;
            let (nx, ny) = (-dy * half, dx * half);
            let corners = [[x0 + nx, y0 + ny], [x1 + nx, y1 + ny], [x1 - nx, y1 - ny], [x0 - nx, y0 - ny]];
            coverage.polygon(&corners.map(snap), surface, emit)
        }
        LineMode::Bresenham => coverage.pixels(diamonds(state, ends, coverage), surface, emit),
    }
}

/// The pixels whose diamond a line leaves: one in each column, or in each row of a steep line, and others beside it where it is
/// wide.
fn diamonds(state: &RasterState, ends: [[f64; 2]; 2], coverage: &Coverage<'_>) -> Vec<[u32; 2]> {
    let [[x0, y0], [x1, y1]] = ends.map(snap).map(|place| place.map(|at| at as f64 / super::SUBPIXELS));
    let steep = (y1 - y0).abs() > (x1 - x0).abs();
    // Along the line, and across it.
    let (a0, b0, a1, b1) = if steep { (y0, x0, y1, x1) } else { (x0, y0, x1, y1) };
    let axis = usize::from(steep);
    if a0 == a1 {
        return Vec::new();
    }
    let slope = (b1 - b0) / (a1 - a0);
    // The centres from the first end on, up to the last one without it.
    let (first, last) = match a0 < a1 {
        true => ((a0 - 0.5).ceil(), (a1 - 0.5).ceil() - 1.0),
        false => ((a1 - 0.5).floor() + 1.0, (a0 - 0.5).floor()),
    };
    let area = &coverage.area;
    let (first, last) = (first.max(area.first[axis].into()), last.min(area.last[axis].into()));
    let width = (f64::from(state.line.half_width) * 2.0).round().clamp(1.0, 4096.0);
    let mut pixels = Vec::new();
    let mut along = first;
    while along <= last {
        let across = b0 + (along + 0.5 - a0) * slope - (width - 1.0) / 2.0;
        // A line between two rows is of the upper one.
        let start = (across - 1.0 / 512.0).floor();
        for n in 0..width as u32 {
            let beside = start + f64::from(n);
            if beside >= 0.0 && beside <= f64::from(area.last[1 - axis]) {
                let (along, beside) = (along as u32, beside as u32);
                pixels.push(if steep { [beside, along] } else { [along, beside] });
            }
        }
        along += 1.0;
    }
    pixels
}
