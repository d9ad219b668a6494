//! The fixed tessellator: from the levels of a patch to points of its domain and the primitives between them.
//!
//! Points are where Direct3D 11 has them, which all three spacings of Vulkan allow: points move continuously with a fractional
//! level, the same on both halves of an edge. Rings are joined from both ends to the middle. Never: shaders, memory.

use super::call::Domain;

/// The greatest level.
const MOST: f32 = 64.0;

/// How an edge is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spacing {
    Equal,
    FractionalOdd,
    FractionalEven,
}

/// What is made of a patch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Made {
    Points,
    Lines,
    /// Triangles, in the order of their corners as seen with the second coordinate upwards.
    Triangles {
        clockwise: bool,
    },
}

/// A patch, divided.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Tessellated {
    /// Places in the domain.
    pub(super) points: Vec<[f32; 2]>,
    /// Numbers of points: one, two or three for each primitive.
    pub(super) corners: Vec<u32>,
}

/// An edge that is divided into segments.
#[derive(Clone, Copy, Debug)]
struct Divided {
    segments: u32,
    level: f32,
    odd: bool,
}

impl Divided {
    /// By a level, which is that of a whole edge unless it is within a patch.
    fn new(level: f32, spacing: Spacing, inside: bool) -> Divided {
        let level = match spacing {
            Spacing::Equal => level.clamp(1.0, MOST).ceil(),
            Spacing::FractionalOdd => level.clamp(1.0, MOST - 1.0),
            Spacing::FractionalEven => level.clamp(2.0, MOST),
        };
        // Within a patch one segment is no division at all.
        let level = match (inside && level <= 1.0, spacing) {
            (true, Spacing::FractionalOdd) => 1.0 + 1.0 / 65536.0,
            (true, _) => 2.0,
            (false, _) => level,
        };
        let above = level.ceil() as u32;
        let segments = match spacing {
            Spacing::Equal => above,
            Spacing::FractionalOdd => above + u32::from(above.is_multiple_of(2)),
            Spacing::FractionalEven => above + above % 2,
        };
        Divided { segments, level, odd: segments % 2 == 1 }
    }

    /// Where a point is along the edge, from 0 to 1.
    fn place(&self, point: u32) -> f32 {
        if 2 * point > self.segments {
            return 1.0 - self.place(self.segments - point);
        }
        if 2 * point == self.segments {
            return 0.5;
        }
        // Half of the level, and the whole numbers around it: of an odd division half a segment more.
        let extra = if self.odd { 0.5 } else { 0.0 };
        let half = self.level / 2.0 + extra;
        let (below, above) = (half.floor(), half.ceil());
        let count = |half: f32| 2.0 * half - if self.odd { 1.0 } else { 0.0 };
        let at_above = point as f32 / count(above);
        if below == above {
            return at_above;
        }
        // The segment that grows from nothing.
        let without_highest = |n: u32| n & !(1 << n.checked_ilog2().unwrap_or(0));
        let below_count = below as u32;
        let split = match (self.odd, below_count) {
            (true, ..=1) => 0,
            (true, count) => 2 * without_highest(count - 1) + 1,
            (false, count) => 2 * without_highest(count) + 1,
        };
        let before = if point > split { point - 1 } else { point };
        let at_below = before as f32 / count(below);
        let part = half - below;
        at_below * (1.0 - part) + at_above * part
    }

    fn places(&self) -> impl Iterator<Item = f32> + '_ {
        (0..=self.segments).map(|point| self.place(point))
    }
}

/// Divides a patch. Levels are those of its edges, then those inside; one that is not above zero leaves nothing of it.
pub(super) fn tessellate(
    domain: Domain,
    spacing: Spacing,
    made: Made,
    outer: &[f32],
    inner: &[f32],
) -> Tessellated {
    let count = match domain {
        Domain::Quads => 4,
        Domain::Triangles => 3,
        Domain::Lines => 2,
    };
    let level = |levels: &[f32], n: usize| levels.get(n).copied().unwrap_or(1.0);
    // Not a number is not above zero.
    if !(0..count).all(|n| level(outer, n) > 0.0) {
        return Tessellated::default();
    }
    let mut mesh = Mesh { made, tessellated: Tessellated::default() };
    match domain {
        Domain::Lines => lines(&mut mesh, spacing, level(outer, 0), level(outer, 1)),
        Domain::Triangles => {
            triangle(&mut mesh, spacing, [0, 1, 2].map(|n| level(outer, n)), level(inner, 0));
        }
        Domain::Quads => {
            let inner = [0, 1].map(|n| level(inner, n));
            quad(&mut mesh, spacing, [0, 1, 2, 3].map(|n| level(outer, n)), inner);
        }
    }
    let mut tessellated = mesh.tessellated;
    if made == Made::Points {
        tessellated.corners = (0..tessellated.points.len() as u32).collect();
    }
    tessellated
}

/// Points and triangles so far.
struct Mesh {
    made: Made,
    tessellated: Tessellated,
}

impl Mesh {
    fn point(&mut self, place: [f32; 2]) -> u32 {
        self.tessellated.points.push(place);
        self.tessellated.points.len() as u32 - 1
    }

    fn triangle(&mut self, corners: [u32; 3]) {
        let Made::Triangles { clockwise } = self.made else { return };
        let [a, b, c] = corners.map(|at| self.tessellated.points[at as usize]);
        let area = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
        let [first, second, third] = corners;
        let turned = if (area < 0.0) == clockwise { [first, second, third] } else { [first, third, second] };
        self.tessellated.corners.extend(turned);
    }

    /// Triangles between two rows of points that run the same way, joined from both ends to the middle.
    fn join(&mut self, outside: &[u32], inside: &[u32]) {
        let (Some(outer_last), Some(inner_last)) =
            (outside.len().checked_sub(1), inside.len().checked_sub(1))
        else {
            return;
        };
        let (mut a, mut b) = (0, 0);
        while a < outer_last || b < inner_last {
            // The row that is behind goes on; halves of both rows end together.
            let along = |at: usize, last: usize| (2 * at + 1) as f32 / (2 * last.max(1)) as f32;
            let outer = b == inner_last || a < outer_last && along(a, outer_last) <= along(b, inner_last);
            if outer {
                self.triangle([outside[a], outside[a + 1], inside[b]]);
                a += 1;
            } else {
                self.triangle([outside[a], inside[b + 1], inside[b]]);
                b += 1;
            }
        }
    }
}

fn lines(mesh: &mut Mesh, spacing: Spacing, count: f32, level: f32) {
    let count = Divided::new(count, Spacing::Equal, false).segments;
    let along = Divided::new(level, spacing, false);
    for line in 0..count {
        let v = line as f32 / count as f32;
        let row: Vec<u32> = along.places().map(|u| mesh.point([u, v])).collect();
        if mesh.made != Made::Points {
            mesh.tessellated.corners.extend(row.windows(2).flatten());
        }
    }
}

/// A place on a ring of a triangle: along one of its edges.
fn on_edge(edge: usize, across: f32, along: f32) -> [f32; 2] {
    match edge {
        0 => [across, along],
        1 => [1.0 - across - along, across],
        _ => [along, 1.0 - across - along],
    }
}

fn triangle(mesh: &mut Mesh, spacing: Spacing, outer: [f32; 3], inner: f32) {
    let edges = outer.map(|level| Divided::new(level, spacing, false));
    let divided = edges.iter().any(|edge| edge.segments > 1);
    let inside = Divided::new(inner, spacing, divided);
    // Edges in a circle: down along u = 0, then v = 0, then back. Each ends with the first point of the next.
    let mut ring: Vec<Vec<u32>> = Vec::new();
    for (edge, of) in edges.iter().enumerate() {
        let row = (0..of.segments).map(|n| mesh.point(on_edge(edge, 0.0, 1.0 - of.place(n)))).collect();
        ring.push(row);
    }
    close(&mut ring);
    if inside.segments == 1 {
        mesh.triangle([ring[0][0], ring[1][0], ring[2][0]]);
        return;
    }
    let mut start = 1;
    while 2 * start <= inside.segments {
        let across = inside.place(start) * 2.0 / 3.0;
        if 2 * start == inside.segments {
            let centre = mesh.point([1.0 / 3.0, 1.0 / 3.0]);
            ring.iter().for_each(|edge| mesh.join(edge, &[centre]));
            return;
        }
        let mut next = Vec::new();
        for edge in 0..3 {
            let points = start..inside.segments - start;
            let place = |n: u32| on_edge(edge, across, 1.0 - inside.place(n) - across / 2.0);
            next.push(points.map(|n| mesh.point(place(n))).collect());
        }
        close(&mut next);
        ring.iter().zip(&next).for_each(|(outside, inside)| mesh.join(outside, inside));
        ring = next;
        start += 1;
    }
    // What is left in the middle of an odd division.
    mesh.triangle([ring[0][0], ring[1][0], ring[2][0]]);
}

/// Ends each edge with the first point of the next.
fn close(ring: &mut [Vec<u32>]) {
    let firsts: Vec<u32> = ring.iter().filter_map(|edge| edge.first().copied()).collect();
    let count = ring.len();
    for (at, edge) in ring.iter_mut().enumerate() {
        edge.extend(firsts.get((at + 1) % count));
    }
}

fn quad(mesh: &mut Mesh, spacing: Spacing, outer: [f32; 4], inner: [f32; 2]) {
    let edges = outer.map(|level| Divided::new(level, spacing, false));
    let plain = |level: f32| Divided::new(level, spacing, false).segments == 1;
    let divided = edges.iter().any(|edge| edge.segments > 1) || !inner.iter().all(|level| plain(*level));
    let inside = inner.map(|level| Divided::new(level, spacing, divided));
    // Edges in a circle: u = 0, v = 0, u = 1, v = 1.
    let place = |edge: usize, along: f32, [left, top]: [f32; 2]| match edge {
        0 => [left, 1.0 - along],
        1 => [along, top],
        2 => [1.0 - left, along],
        _ => [1.0 - along, 1.0 - top],
    };
    let mut ring: Vec<Vec<u32>> = Vec::new();
    for (edge, of) in edges.iter().enumerate() {
        ring.push((0..of.segments).map(|n| mesh.point(place(edge, of.place(n), [0.0; 2]))).collect());
    }
    close(&mut ring);
    if !divided {
        mesh.triangle([ring[0][0], ring[1][0], ring[2][0]]);
        mesh.triangle([ring[0][0], ring[2][0], ring[3][0]]);
        return;
    }
    let least = inside[0].segments.min(inside[1].segments);
    let mut start = 1;
    while 2 * start < least {
        let at = [inside[0].place(start), inside[1].place(start)];
        let mut next = Vec::new();
        for edge in 0..4 {
            // Edges 0 and 2 go along v.
            let along = inside[usize::from(edge % 2 == 0)];
            let points = start..along.segments - start;
            next.push(points.map(|n| mesh.point(place(edge, along.place(n), at))).collect());
        }
        close(&mut next);
        ring.iter().zip(&next).for_each(|(outside, inside)| mesh.join(outside, inside));
        ring = next;
        start += 1;
    }
    middle(mesh, inside, start, &ring);
}

/// What is inside of the last ring of a quad: a row of points of an even division, or a row of quads.
fn middle(mesh: &mut Mesh, inside: [Divided; 2], start: u32, ring: &[Vec<u32>]) {
    let [across, down] = inside;
    if across.segments.min(down.segments) % 2 == 1 {
        // Two sides have one segment: opposite points of the others are joined.
        let (first, second) = match across.segments <= down.segments {
            true => (&ring[0], &ring[2]),
            false => (&ring[1], &ring[3]),
        };
        let second: Vec<u32> = second.iter().rev().copied().collect();
        mesh.join(first, &second);
        return;
    }
    let wide = across.segments > down.segments;
    let (long, short) = if wide { (across, down) } else { (down, across) };
    let fixed = short.place(start);
    let row: Vec<u32> = (start..=long.segments - start)
        .map(|n| {
            let at = long.place(n);
            mesh.point(if wide { [at, fixed] } else { [fixed, at] })
        })
        .collect();
    let back: Vec<u32> = row.iter().rev().copied().collect();
    let ends = [&row[..1], &row[row.len() - 1..]];
    match wide {
        true => {
            mesh.join(&ring[0], ends[0]);
            mesh.join(&ring[1], &row);
            mesh.join(&ring[2], ends[1]);
            mesh.join(&ring[3], &back);
        }
        false => {
            mesh.join(&ring[0], &back);
            mesh.join(&ring[1], ends[0]);
            mesh.join(&ring[2], &row);
            mesh.join(&ring[3], ends[1]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPACINGS: [Spacing; 3] = [Spacing::Equal, Spacing::FractionalOdd, Spacing::FractionalEven];

    fn area(mesh: &Tessellated) -> f64 {
        let corner = |at: u32| mesh.points[at as usize].map(f64::from);
        let all = mesh.corners.chunks_exact(3).map(|corners| {
            let [a, b, c] = [corners[0], corners[1], corners[2]].map(corner);
            let twice = (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]);
            assert!(twice >= -1e-6, "a triangle is turned around: {a:?} {b:?} {c:?}");
            twice / 2.0
        });
        all.sum()
    }

    /// Triangles fill the domain, turned one way, without gaps or overlaps.
    #[test]
    fn triangles_fill_the_domain() {
        let made = Made::Triangles { clockwise: false };
        let levels = [0.5f32, 1.0, 1.5, 2.0, 2.75, 3.0, 4.0, 5.5, 7.0, 16.25, 63.0, 64.0, 100.0];
        for spacing in SPACINGS {
            for (at, &inner) in levels.iter().enumerate() {
                for (n, &outer) in levels.iter().enumerate() {
                    let other = levels[(at + 2 * n) % levels.len()];
                    let found =
                        tessellate(Domain::Triangles, spacing, made, &[outer, other, inner], &[inner]);
                    assert!((area(&found) - 0.5).abs() < 1e-4, "{spacing:?} {outer} {other} {inner}");
                    let outers = [outer, other, inner, outer];
                    let found = tessellate(Domain::Quads, spacing, made, &outers, &[inner, other]);
                    assert!((area(&found) - 1.0).abs() < 1e-4, "{spacing:?} {outers:?} {inner} {other}");
                }
            }
        }
    }

    /// An edge is divided in the same way from both of its ends, so that two patches that share it meet.
    #[test]
    fn edges_are_the_same_from_both_ends() {
        for spacing in SPACINGS {
            for n in 4..=260 {
                let edge = Divided::new(n as f32 / 4.0, spacing, false);
                let places: Vec<f32> = edge.places().collect();
                assert!(places.windows(2).all(|pair| pair[0] <= pair[1]), "{edge:?} {places:?}");
                for (place, other) in places.iter().zip(places.iter().rev()) {
                    assert!((place + other - 1.0).abs() < 1e-6, "{edge:?}");
                }
                let odd = match spacing {
                    Spacing::Equal => edge.segments % 2,
                    Spacing::FractionalOdd => 1,
                    Spacing::FractionalEven => 0,
                };
                assert_eq!(edge.segments % 2, odd);
            }
        }
        let whole: Vec<f32> = Divided::new(5.0, Spacing::FractionalOdd, false).places().collect();
        whole.iter().enumerate().for_each(|(n, place)| assert!((place - n as f32 / 5.0).abs() < 1e-6));
    }

    #[test]
    fn patches_without_a_level_are_dropped() {
        let made = Made::Triangles { clockwise: true };
        for level in [0.0, -1.0, f32::NAN] {
            let found = tessellate(Domain::Triangles, Spacing::Equal, made, &[1.0, level, 1.0], &[4.0]);
            assert_eq!(found, Tessellated::default());
        }
        let one = tessellate(Domain::Triangles, Spacing::Equal, made, &[1.0; 3], &[1.0]);
        assert_eq!((one.points.len(), one.corners.len()), (3, 3));
        let lines = tessellate(Domain::Lines, Spacing::Equal, Made::Lines, &[2.0, 3.0], &[]);
        assert_eq!((lines.points.len(), lines.corners.len()), (8, 12));
        let points = tessellate(Domain::Quads, Spacing::Equal, Made::Points, &[2.0; 4], &[2.0; 2]);
        assert_eq!((points.points.len(), points.corners.len()), (9, 9));
    }
}
