//! Views of what draws cover: how often each pixel is shaded, and the edges of what is rasterized.
//!
//! Pixels of all layers are one. Never: pictures of targets.

use super::png::{Pixels, encode};
use super::target::MOST_PIXELS;
use super::watches::is_draw;
use crate::plural::counted;
use serde::Serialize;
use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::ops::RangeInclusive;
use unwedge_sim::adreno::{AdrenoMachine, TargetName, WatchedWork, WindowPixel};

/// Pixels across and down a tile of counts.
const TILE: u32 = 64;
/// Tiles of counts.
const MOST_TILES: usize = 1 << 12;
/// Edges that are kept.
const MOST_EDGES: usize = 1 << 20;
/// Columns and rows of a picture, at most.
const MOST_SIZE: u32 = 1 << 14;
/// The colours of counts, from 0; greater counts have the last one.
const RAMP: [[u8; 3]; 9] = [
    [0, 0, 0],
    [0, 0, 128],
    [0, 96, 255],
    [0, 200, 200],
    [0, 200, 0],
    [200, 200, 0],
    [255, 128, 0],
    [255, 0, 0],
    [255, 255, 255],
];
/// The colours of edges, by draw.
const EDGES: [[u8; 3]; 6] =
    [[255, 255, 255], [255, 220, 0], [0, 220, 255], [255, 96, 200], [96, 255, 96], [255, 140, 64]];

/// An edge: two places in pixels, and its draw.
struct Edge {
    ends: [[f64; 2]; 2],
    draw: u64,
}

/// Counts and edges of some draws.
pub(super) struct Coverage {
    draws: RangeInclusive<u64>,
    /// The draw in work, if it is one of them.
    draw: Option<u64>,
    tiles: HashMap<(u32, u32), Box<[u32; (TILE * TILE) as usize]>>,
    edges: Vec<Edge>,
    primitives: u64,
    /// Columns and rows, as far as targets and fragments reach.
    size: [u32; 2],
    /// There was more than is kept.
    more: bool,
}

/// What was covered, in numbers.
#[derive(Serialize, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CoverageNumbers {
    width: u32,
    height: u32,
    /// Fragments that were shaded.
    fragments: u64,
    primitives: u64,
    /// Pixels by how often they were shaded.
    counts: Vec<PixelCount>,
    /// Not all of it is counted.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    more: bool,
}

#[derive(Serialize, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
struct PixelCount {
    count: u32,
    pixels: u64,
    colour: String,
}

impl Coverage {
    pub(super) fn new(draws: RangeInclusive<u64>) -> Coverage {
        Coverage {
            draws,
            draw: None,
            tiles: HashMap::new(),
            edges: Vec::new(),
            primitives: 0,
            size: [0; 2],
            more: false,
        }
    }

    pub(super) fn work(&mut self, machine: &AdrenoMachine<'_>, work: &WatchedWork) {
        self.draw = Some(work.number).filter(|draw| is_draw(work.op) && self.draws.contains(draw));
        if self.draw.is_none() {
            return;
        }
        // In GMEM the area is that of the bin, which reaches beyond the image.
        let image = [TargetName::Colour(0), TargetName::Depth]
            .into_iter()
            .find_map(|name| machine.rendered_image(work.thread, name));
        if let Some(image) = image.filter(|image| !image.in_gmem()) {
            self.reach(image.area()[1]);
        }
    }

    fn reach(&mut self, [x, y]: [u32; 2]) {
        for (size, last) in self.size.iter_mut().zip([x, y]) {
            *size = (*size).max(last.saturating_add(1)).min(MOST_SIZE);
        }
    }

    pub(super) fn shades(&mut self, [x, y, _]: WindowPixel) {
        if self.draw.is_none() {
            return;
        }
        self.reach([x, y]);
        let tile = (x / TILE, y / TILE);
        if self.tiles.len() >= MOST_TILES && !self.tiles.contains_key(&tile) {
            self.more = true;
            return;
        }
        let counts = self.tiles.entry(tile).or_insert_with(|| Box::new([0; (TILE * TILE) as usize]));
        if let Some(count) = counts.get_mut((y % TILE * TILE + x % TILE) as usize) {
            *count = count.saturating_add(1);
        }
    }

    pub(super) fn outline(&mut self, corners: &[[f64; 2]]) {
        let Some(draw) = self.draw.filter(|_| !corners.is_empty()) else { return };
        self.primitives += 1;
        let edges = match corners.len() {
            2 => 1,
            count => count,
        };
        for at in 0..edges {
            if self.edges.len() >= MOST_EDGES {
                self.more = true;
                return;
            }
            self.edges.push(Edge { ends: [corners[at], corners[(at + 1) % corners.len()]], draw });
        }
    }

    fn count(&self, x: u32, y: u32) -> u32 {
        let counts = self.tiles.get(&(x / TILE, y / TILE));
        counts.and_then(|counts| counts.get((y % TILE * TILE + x % TILE) as usize)).copied().unwrap_or(0)
    }

    /// Whether there is a picture.
    fn check_size(&self) -> Result<(), String> {
        match self.size {
            [0, _] | [_, 0] => Err("no draw rendered a pixel".to_owned()),
            [width, height] if u64::from(width) * u64::from(height) > MOST_PIXELS => {
                Err(format!("a picture of {width} by {height} is too large"))
            }
            _ => Ok(()),
        }
    }

    /// How often each pixel was shaded, as PNG.
    pub(super) fn overdraw(&self) -> Result<Vec<u8>, String> {
        self.check_size()?;
        let [width, height] = self.size;
        let mut rows = Vec::new();
        for y in 0..height {
            for x in 0..width {
                let [r, g, b] = ramp(self.count(x, y));
                rows.extend([r, g, b, 255]);
            }
        }
        encode(width, height, Pixels::Rgba8, &rows)
    }

    /// The edges, as PNG.
    pub(super) fn wireframe(&self) -> Result<Vec<u8>, String> {
        self.check_size()?;
        let [width, height] = self.size;
        let mut drawn = 0;
        let mut rows = [0, 0, 0, 255].repeat(width as usize * height as usize);
        for edge in &self.edges {
            let [r, g, b] = EDGES[(edge.draw % EDGES.len() as u64) as usize];
            let pixels = pixels_of(edge.ends, self.size);
            drawn += pixels.len() as u64;
            if drawn > MOST_PIXELS {
                return Err("the edges have too many pixels".to_owned());
            }
            for [x, y] in pixels {
                let at = 4 * (y as usize * width as usize + x as usize);
                if let Some(pixel) = rows.get_mut(at..at + 4) {
                    pixel.copy_from_slice(&[r, g, b, 255]);
                }
            }
        }
        encode(width, height, Pixels::Rgba8, &rows)
    }

    pub(super) fn numbers(&self) -> CoverageNumbers {
        let [width, height] = self.size;
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let (mut fragments, mut shaded) = (0, 0);
        for count in self.tiles.values().flat_map(|tile| tile.iter()).filter(|count| **count != 0) {
            *counts.entry(*count).or_default() += 1;
            fragments += u64::from(*count);
            shaded += 1;
        }
        let none = (u64::from(width) * u64::from(height)).saturating_sub(shaded);
        counts.insert(0, none);
        let count = |(count, pixels): (u32, u64)| {
            let [r, g, b] = ramp(count);
            PixelCount { count, pixels, colour: format!("#{r:02x}{g:02x}{b:02x}") }
        };
        CoverageNumbers {
            width,
            height,
            fragments,
            primitives: self.primitives,
            counts: counts.into_iter().map(count).collect(),
            more: self.more,
        }
    }
}

fn ramp(count: u32) -> [u8; 3] {
    RAMP[(count as usize).min(RAMP.len() - 1)]
}

/// The pixels along an edge that are inside of a picture.
fn pixels_of([from, to]: [[f64; 2]; 2], size: [u32; 2]) -> Vec<[u32; 2]> {
    let Some([from, to]) = clipped(from, to, size.map(f64::from)) else { return Vec::new() };
    let [dx, dy] = [to[0] - from[0], to[1] - from[1]];
    let steps = (dx.abs().max(dy.abs()).ceil() as u32).clamp(1, 2 * MOST_SIZE);
    let mut pixels: Vec<[u32; 2]> = Vec::new();
    for step in 0..=steps {
        let t = f64::from(step) / f64::from(steps);
        let place = [from[0] + t * dx, from[1] + t * dy];
        // An edge along the last column or row is drawn there.
        let pixel = [0, 1].map(|n| (place[n].floor().max(0.0) as u32).min(size[n] - 1));
        if pixels.last() != Some(&pixel) {
            pixels.push(pixel);
        }
    }
    pixels
}

/// The part of a line from 0 to the size.
fn clipped(from: [f64; 2], to: [f64; 2], size: [f64; 2]) -> Option<[[f64; 2]; 2]> {
    let (mut start, mut end) = (0f64, 1f64);
    for axis in 0..2 {
        let along = to[axis] - from[axis];
        for (distance, change) in [(from[axis], along), (size[axis] - from[axis], -along)] {
            if change == 0.0 {
                if distance < 0.0 {
                    return None;
                }
            } else if change > 0.0 {
                start = start.max(-distance / change);
            } else {
                end = end.min(-distance / change);
            }
        }
    }
    let at = |t: f64| [from[0] + t * (to[0] - from[0]), from[1] + t * (to[1] - from[1])];
    (start <= end).then(|| [at(start), at(end)])
}

impl CoverageNumbers {
    /// As text.
    pub(super) fn text(&self, out: &mut dyn Write) -> io::Result<()> {
        let CoverageNumbers { width, height, fragments, primitives, counts, more } = self;
        let fragments = counted(*fragments, "fragment", "fragments");
        let primitives = counted(*primitives, "primitive", "primitives");
        writeln!(out, "\n  {width}x{height}: {fragments} shaded of {primitives}")?;
        writeln!(out, "  {:>8} {:>10}  colour in --overdraw", "shaded", "pixels")?;
        for PixelCount { count, pixels, colour } in counts {
            writeln!(out, "  {count:>8} {pixels:>10}  {colour}")?;
        }
        if *more {
            writeln!(out, "  not everything is counted: there is too much of it")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_are_clipped_to_the_picture() {
        assert_eq!(pixels_of([[0.5, 0.5], [3.5, 0.5]], [4, 4]), [[0, 0], [1, 0], [2, 0], [3, 0]]);
        assert_eq!(pixels_of([[-10.0, -10.0], [10.0, 10.0]], [2, 2]), [[0, 0], [1, 1]]);
        assert_eq!(pixels_of([[-10.0, 1.0], [-1.0, 1.0]], [4, 4]), [[0u32; 2]; 0]);
        assert_eq!(pixels_of([[4.0, 0.0], [4.0, 1.0]], [4, 4]), [[3, 0], [3, 1]]);
    }

    #[test]
    fn counts_have_colours() {
        let mut coverage = Coverage::new(0..=9);
        coverage.draw = Some(3);
        for pixel in [[1, 0, 0], [1, 0, 2], [70, 1, 0]] {
            coverage.shades(pixel);
        }
        coverage.outline(&[[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]]);
        let numbers = coverage.numbers();
        assert_eq!((numbers.width, numbers.height, numbers.fragments, numbers.primitives), (71, 2, 3, 1));
        let counts: Vec<(u32, u64)> =
            numbers.counts.iter().map(|count| (count.count, count.pixels)).collect();
        assert_eq!(counts, [(0, 140), (1, 1), (2, 1)]);
        assert!(coverage.overdraw().is_ok() && coverage.wireframe().is_ok());
        assert!(Coverage::new(0..=0).overdraw().is_err());
    }
}
