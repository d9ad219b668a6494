//! Primitive assembly: which vertices of a draw make up each of its primitives.
//!
//! Numbers in, numbers out. Never: positions, memory.

use std::ops::{ControlFlow, Range};

/// A kind of primitive, as the draw initiator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topology {
    Points,
    Lines,
    LineStrip,
    LineLoop,
    Triangles,
    TriangleStrip,
    TriangleFan,
    Rectangles,
    LinesAdjacent,
    LineStripAdjacent,
    TrianglesAdjacent,
    TriangleStripAdjacent,
    /// Patches of so many control points.
    Patches(u8),
}

impl Topology {
    /// By its number in pc_di_primtype.
    pub(super) fn of(code: u32) -> Option<Topology> {
        use Topology::*;
        Some(match code {
            1 | 9 => Points,
            2 => Lines,
            3 => LineStrip,
            4 => Triangles,
            5 => TriangleFan,
            6 => TriangleStrip,
            7 => LineLoop,
            8 => Rectangles,
            10 => LinesAdjacent,
            11 => LineStripAdjacent,
            12 => TrianglesAdjacent,
            13 => TriangleStripAdjacent,
            0x20..=0x3f => Patches((code - 0x1f) as u8),
            _ => return None,
        })
    }

    /// Vertices of a primitive, with those that are adjacent.
    pub(super) fn vertices(self) -> usize {
        use Topology::*;
        match self {
            Points => 1,
            Lines | LineStrip | LineLoop | Rectangles => 2,
            Triangles | TriangleStrip | TriangleFan => 3,
            LinesAdjacent | LineStripAdjacent => 4,
            TrianglesAdjacent | TriangleStripAdjacent => 6,
            Patches(points) => points.into(),
        }
    }

    /// The vertices of a primitive that are drawn, of all it has.
    pub(super) fn drawn(self) -> &'static [usize] {
        use Topology::*;
        match self {
            Points | Patches(_) => &[0],
            Lines | LineStrip | LineLoop | Rectangles => &[0, 1],
            Triangles | TriangleStrip | TriangleFan => &[0, 1, 2],
            LinesAdjacent | LineStripAdjacent => &[1, 2],
            TrianglesAdjacent | TriangleStripAdjacent => &[0, 2, 4],
        }
    }
}

/// What is done with the vertices of a primitive.
type Emit<'e> = &'e mut dyn FnMut(&[u32]) -> ControlFlow<()>;

/// Calls with the vertices of every primitive of a run of vertices without a restart, which are numbered from the start of
/// the draw. Of triangles the order keeps their winding, and the vertex that provokes is the first or the last.
pub(super) fn assemble(
    topology: Topology,
    run: Range<u32>,
    last_provokes: bool,
    emit: Emit<'_>,
) -> ControlFlow<()> {
    use Topology::*;
    let (start, count) = (run.start, run.end - run.start);
    match topology {
        Points | Lines | Rectangles | Triangles | LinesAdjacent | TrianglesAdjacent | Patches(_) => {
            let size = topology.vertices().clamp(1, 32);
            let mut vertices = [0; 32];
            let vertices = &mut vertices[..size];
            for n in 0..count / size as u32 {
                let first = start + n * size as u32;
                vertices.iter_mut().zip(first..).for_each(|(place, vertex)| *place = vertex);
                emit(vertices)?;
            }
        }
        LineStrip | LineLoop => {
            for n in 1..count {
                emit(&[start + n - 1, start + n])?;
            }
            if topology == LineLoop && count > 1 {
                emit(&[start + count - 1, start])?;
            }
        }
        LineStripAdjacent => {
            for first in (0..count.saturating_sub(3)).map(|n| start + n) {
                emit(&[first, first + 1, first + 2, first + 3])?;
            }
        }
        TriangleStrip => {
            for n in 0..count.saturating_sub(2) {
                let first = start + n;
                emit(&match (n % 2, last_provokes) {
                    (0, _) => [first, first + 1, first + 2],
                    (_, false) => [first, first + 2, first + 1],
                    (_, true) => [first + 1, first, first + 2],
                })?;
            }
        }
        TriangleFan => {
            for second in (1..count.saturating_sub(1)).map(|n| start + n) {
                emit(&match last_provokes {
                    false => [second, second + 1, start],
                    true => [start, second, second + 1],
                })?;
            }
        }
        TriangleStripAdjacent => {
            let triangles = count.saturating_sub(4) / 2;
            for n in 0..triangles {
                emit(&strip_adjacency(n, triangles).map(|vertex| start + vertex))?;
            }
        }
    }
    ControlFlow::Continue(())
}

/// A triangle of a strip with adjacency: its vertices, each followed by the one across the edge to the next.
fn strip_adjacency(n: u32, triangles: u32) -> [u32; 6] {
    let first = 2 * n;
    let last = n + 1 == triangles;
    let before = if n == 0 { 1 } else { first.wrapping_sub(2) };
    let ahead = if last { first + 5 } else { first + 6 };
    match n % 2 {
        0 => [first, before, first + 2, ahead, first + 4, first + 3],
        _ => [first + 2, before, first, first + 3, first + 4, ahead],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(topology: Topology, count: u32, last: bool) -> Vec<Vec<u32>> {
        let mut found = Vec::new();
        let end = assemble(topology, 10..10 + count, last, &mut |vertices| {
            found.push(vertices.iter().map(|v| v - 10).collect());
            ControlFlow::Continue(())
        });
        assert!(end.is_continue());
        found
    }

    #[test]
    fn strips_keep_their_winding() {
        assert_eq!(
            all(Topology::TriangleStrip, 5, false),
            [[0, 1, 2], [1, 3, 2], [2, 3, 4]],
            "the first vertex provokes"
        );
        assert_eq!(all(Topology::TriangleStrip, 4, true), [[0, 1, 2], [2, 1, 3]]);
        assert_eq!(all(Topology::TriangleFan, 4, false), [[1, 2, 0], [2, 3, 0]]);
        assert_eq!(all(Topology::TriangleFan, 4, true), [[0, 1, 2], [0, 2, 3]]);
        assert_eq!(all(Topology::LineLoop, 3, false), [[0, 1], [1, 2], [2, 0]]);
    }

    #[test]
    fn what_is_incomplete_is_left_out() {
        let none: [Vec<u32>; 0] = [];
        for (topology, count) in [
            (Topology::Triangles, 2),
            (Topology::TriangleStrip, 2),
            (Topology::TriangleFan, 1),
            (Topology::LineStrip, 1),
            (Topology::LineLoop, 1),
            (Topology::LineStripAdjacent, 3),
            (Topology::TriangleStripAdjacent, 5),
            (Topology::Patches(32), 31),
        ] {
            assert_eq!(all(topology, count, false), none, "{topology:?}");
        }
        assert_eq!(all(Topology::Patches(3), 7, false), [[0, 1, 2], [3, 4, 5]]);
    }

    /// The table of the API: only, first, middle and last triangles.
    #[test]
    fn adjacency_of_strips() {
        assert_eq!(all(Topology::TriangleStripAdjacent, 6, false), [[0, 1, 2, 5, 4, 3]]);
        assert_eq!(
            all(Topology::TriangleStripAdjacent, 12, false),
            [[0, 1, 2, 6, 4, 3], [4, 0, 2, 5, 6, 8], [4, 2, 6, 10, 8, 7], [8, 4, 6, 9, 10, 11]]
        );
    }
}
