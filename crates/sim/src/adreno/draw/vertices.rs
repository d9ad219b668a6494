//! Vertices after the last shader before the rasterizer, and the primitives that they form.

use crate::adreno::ir3::{FibersDone, OutputRegister};

/// Vertices of so many components each.
#[derive(Clone, Debug, Default)]
pub(super) struct ShadedVertices {
    components: usize,
    values: Vec<u32>,
}

impl ShadedVertices {
    pub(super) fn new(components: usize) -> ShadedVertices {
        ShadedVertices { components: components.max(1), values: Vec::new() }
    }

    /// A vertex more, of zeros.
    pub(super) fn add(&mut self) -> &mut [u32] {
        let from = self.values.len();
        self.values.resize(from + self.components, 0);
        &mut self.values[from..]
    }

    /// The vertices that fibers left in registers.
    pub(super) fn take(&mut self, done: &FibersDone, outputs: &[(OutputRegister, usize)]) {
        for fiber in 0..done.dropped.len() {
            let vertex = self.add();
            for (values, (_, at)) in done.outputs.iter().zip(outputs) {
                if let (Some(place), Some(value)) = (vertex.get_mut(*at), values.get(fiber)) {
                    *place = *value;
                }
            }
        }
    }

    pub(super) fn len(&self) -> u32 {
        self.values.len().checked_div(self.components).unwrap_or(0) as u32
    }

    pub(super) fn vertex(&self, at: u32) -> &[u32] {
        let from = at as usize * self.components;
        self.values.get(from..from + self.components).unwrap_or_default()
    }
}

/// A primitive of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct AssembledPrimitive {
    /// Its number in the draw.
    pub(super) number: u32,
    /// The stream that it is of.
    pub(super) stream: u32,
    pub(super) rasterized: bool,
}

/// Primitives of so many vertices each.
#[derive(Clone, Debug, Default)]
pub(super) struct Assembled {
    pub(super) vertices: ShadedVertices,
    /// Vertices of a primitive: one to three.
    pub(super) size: usize,
    corners: Vec<u32>,
    primitives: Vec<AssembledPrimitive>,
}

impl Assembled {
    pub(super) fn new(vertices: ShadedVertices, size: usize) -> Assembled {
        Assembled { vertices, size, corners: Vec::new(), primitives: Vec::new() }
    }

    pub(super) fn push(&mut self, corners: &[u32], number: u32, stream: u32, rasterized: bool) {
        self.corners.extend(corners.iter().take(self.size));
        self.primitives.push(AssembledPrimitive { number, stream, rasterized });
    }

    /// Adds the primitives of another one, with their vertices.
    pub(super) fn append(&mut self, other: Assembled) {
        if self.primitives.is_empty() {
            *self = other;
            return;
        }
        let first = self.vertices.len();
        self.vertices.values.extend(other.vertices.values);
        self.corners.extend(other.corners.into_iter().map(|corner| first + corner));
        self.primitives.extend(other.primitives);
    }

    pub(super) fn len(&self) -> usize {
        self.primitives.len()
    }

    /// Primitives with their vertices, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&[u32], &AssembledPrimitive)> {
        self.corners.chunks_exact(self.size.max(1)).zip(&self.primitives)
    }
}
