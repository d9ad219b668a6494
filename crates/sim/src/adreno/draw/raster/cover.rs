//! Which samples a convex polygon covers.

use super::{Area, Emit, Quad, RasterState, SUBPIXELS, Surface};
use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;

/// Pixels along a side of what is tested at once.
const BLOCK: u32 = 8;
/// Parts of a pixel.
const PIXEL: i64 = SUBPIXELS as i64;

/// An edge: its function is not negative on the side that is inside.
#[derive(Clone, Copy, Debug, Default)]
struct Edge {
    x: i64,
    y: i64,
    constant: i64,
}

impl Edge {
    /// From one corner to the next, with the inside on the right of it as rows go down; what is on it is inside of a top or left
    /// edge.
    fn new([ax, ay]: [i64; 2], [bx, by]: [i64; 2]) -> Edge {
        let (dx, dy) = (bx - ax, by - ay);
        let inclusive = dy < 0 || dy == 0 && dx > 0;
        let constant = dy * ax - dx * ay - i64::from(!inclusive);
        Edge { x: -dy, y: dx, constant }
    }

    fn at(&self, x: i64, y: i64) -> i64 {
        self.x * x + self.y * y + self.constant
    }

    /// The least and the greatest value in a rectangle.
    fn range(&self, x: i64, y: i64, [width, height]: [i64; 2]) -> [i64; 2] {
        let here = self.at(x, y);
        let (dx, dy) = (self.x * width, self.y * height);
        [here + dx.min(0) + dy.min(0), here + dx.max(0) + dy.max(0)]
    }
}

/// Where quads may be, and what their samples are.
pub(super) struct Coverage<'s> {
    pub(super) state: &'s RasterState,
    pub(super) area: Area,
    /// Blocks that were looked at.
    pub(super) blocks: Cell<u64>,
    /// Bins are asked for instead of quads.
    pub(super) bins: Option<&'s TouchedBins<'s>>,
}

/// Who takes down the bins of primitives.
pub(super) struct TouchedBins<'t> {
    /// Pixels across and down.
    pub(super) size: [u32; 2],
    pub(super) touch: RefCell<&'t mut dyn FnMut([u32; 2])>,
}

impl TouchedBins<'_> {
    fn touch(&self, bin: [u32; 2]) {
        (self.touch.borrow_mut())(bin);
    }

    /// The bins of an area that no edge leaves out whole.
    fn touch_within(&self, within: &Area, edges: &[Edge], looked: &Cell<u64>) {
        let [width, height] = self.size;
        let [columns, rows] =
            [0, 1].map(|axis| within.first[axis] / self.size[axis]..=within.last[axis] / self.size[axis]);
        for row in rows {
            for column in columns.clone() {
                looked.set(looked.get() + 1);
                let corner = [column * width, row * height].map(|at| i64::from(at) * PIXEL);
                let sides = [width, height].map(|pixels| i64::from(pixels) * PIXEL);
                if edges.iter().all(|edge| edge.range(corner[0], corner[1], sides)[1] >= 0) {
                    self.touch([column, row]);
                }
            }
        }
    }
}

impl Coverage<'_> {
    /// Emits the quads of a convex polygon.
    pub(super) fn polygon(&self, corners: &[[i64; 2]], surface: &Surface, emit: Emit<'_>) -> ControlFlow<()> {
        let next = |at: usize| corners.get(at + 1).copied().unwrap_or(corners[0]);
        if corners.len() < 3 {
            return ControlFlow::Continue(());
        }
        let area: i64 = corners.iter().enumerate().map(|(n, [x, y])| x * next(n)[1] - next(n)[0] * y).sum();
        if area == 0 {
            return ControlFlow::Continue(());
        }
        let all = (0..corners.len())
            .filter(|n| corners[*n] != next(*n))
            .map(|n| if area > 0 { Edge::new(corners[n], next(n)) } else { Edge::new(next(n), corners[n]) });
        // Most polygons are triangles that nothing was clipped of.
        let (mut few, mut many) = ([Edge::default(); 4], Vec::new());
        let edges = if corners.len() <= few.len() {
            let count = few.iter_mut().zip(all).map(|(place, edge)| *place = edge).count();
            &mut few[..count]
        } else {
            many.extend(all);
            &mut many[..]
        };
        // What is covered grows by some parts of a pixel; a pixel is covered when any of its square is, not its centre.
        let extra = self.state.conservative.map_or(0, |pixels| (pixels * 256.0) as i64);
        let grown = extra + PIXEL / 2;
        if self.state.conservative.is_some() {
            edges.iter_mut().for_each(|edge| edge.constant += (edge.x.abs() + edge.y.abs()) * grown);
        }
        let range = |axis: usize| {
            let values = corners.iter().map(|corner| corner[axis]);
            let (least, greatest) = (values.clone().min().unwrap_or(0), values.max().unwrap_or(0));
            let first = (least - extra).div_euclid(PIXEL).max(self.area.first[axis].into());
            let last = (greatest + extra).div_euclid(PIXEL).min(self.area.last[axis].into());
            first..=last
        };
        let (columns, rows) = (range(0), range(1));
        if columns.is_empty() || rows.is_empty() {
            return ControlFlow::Continue(());
        }
        let within = Area {
            first: [*columns.start() as u32, *rows.start() as u32],
            last: [*columns.end() as u32, *rows.end() as u32],
        };
        if let Some(bins) = self.bins {
            bins.touch_within(&within, edges, &self.blocks);
            return ControlFlow::Continue(());
        }
        let block = |value: u32| value / BLOCK * BLOCK;
        for y in (block(within.first[1])..=within.last[1]).step_by(BLOCK as usize) {
            for x in (block(within.first[0])..=within.last[0]).step_by(BLOCK as usize) {
                self.block([x, y], &within, edges, surface, emit)?;
            }
        }
        ControlFlow::Continue(())
    }

    fn block(
        &self,
        [x, y]: [u32; 2],
        within: &Area,
        edges: &[Edge],
        surface: &Surface,
        emit: Emit<'_>,
    ) -> ControlFlow<()> {
        self.blocks.set(self.blocks.get() + 1);
        let side = i64::from(BLOCK) * PIXEL;
        let mut all = true;
        for edge in edges {
            let [least, greatest] = edge.range(i64::from(x) * PIXEL, i64::from(y) * PIXEL, [side; 2]);
            if greatest < 0 {
                return ControlFlow::Continue(());
            }
            all &= least >= 0;
        }
        let full = ((1u16 << self.state.samples) - 1) as u8;
        let part = |from: u32, axis: usize| {
            from.max(within.first[axis] & !1)..(from + BLOCK).min(within.last[axis] + 1)
        };
        for quad_y in part(y, 1).step_by(2) {
            for quad_x in part(x, 0).step_by(2) {
                if all && within.has_quad(quad_x, quad_y) {
                    emit(surface, &Quad { x: quad_x, y: quad_y, coverage: [full; 4] })?;
                    continue;
                }
                let mut coverage = [0; 4];
                for (pixel, mask) in (0..).zip(&mut coverage) {
                    let (px, py) = (quad_x + (pixel & 1), quad_y + (pixel >> 1));
                    let inside = (within.first[0]..=within.last[0]).contains(&px)
                        && (within.first[1]..=within.last[1]).contains(&py);
                    if inside {
                        *mask = if all { full } else { self.samples(px, py, edges) };
                    }
                }
                if coverage != [0; 4] {
                    emit(surface, &Quad { x: quad_x, y: quad_y, coverage })?;
                }
            }
        }
        ControlFlow::Continue(())
    }

    /// The samples of a pixel that are inside of all edges.
    fn samples(&self, x: u32, y: u32, edges: &[Edge]) -> u8 {
        let (x, y) = (i64::from(x) * PIXEL, i64::from(y) * PIXEL);
        if self.state.conservative.is_some() {
            let centre = PIXEL / 2;
            let touched = edges.iter().all(|edge| edge.at(x + centre, y + centre) >= 0);
            return if touched { ((1u16 << self.state.samples) - 1) as u8 } else { 0 };
        }
        (0..self.state.samples).fold(0, |mask, sample| {
            let [sx, sy] = self.state.sample_places[sample as usize % 4].map(|at| i64::from(at) * PIXEL / 16);
            let inside = edges.iter().all(|edge| edge.at(x + sx, y + sy) >= 0);
            mask | u8::from(inside) << sample
        })
    }

    /// Emits pixels in the order of their quads, with all their samples.
    pub(super) fn pixels(
        &self,
        mut pixels: Vec<[u32; 2]>,
        surface: &Surface,
        emit: Emit<'_>,
    ) -> ControlFlow<()> {
        let full = ((1u16 << self.state.samples) - 1) as u8;
        pixels.retain(|[x, y]| {
            (self.area.first[0]..=self.area.last[0]).contains(x)
                && (self.area.first[1]..=self.area.last[1]).contains(y)
        });
        self.blocks.set(self.blocks.get() + pixels.len() as u64 / u64::from(BLOCK));
        if let Some(bins) = self.bins {
            pixels.iter().for_each(|[x, y]| bins.touch([x / bins.size[0], y / bins.size[1]]));
            return ControlFlow::Continue(());
        }
        pixels.sort_by_key(|[x, y]| (y / 2, x / 2));
        for quad in pixels.chunk_by(|a, b| a.map(|at| at / 2) == b.map(|at| at / 2)) {
            let [x, y] = quad[0].map(|at| at / 2 * 2);
            let mut coverage = [0; 4];
            for pixel in quad {
                coverage[((pixel[0] & 1) | (pixel[1] & 1) << 1) as usize] = full;
            }
            emit(surface, &Quad { x, y, coverage })?;
        }
        ControlFlow::Continue(())
    }
}
