//! Which fibers of a draw or dispatch are traced.
//!
//! Never: what they execute; the shader processor logs that.

use super::ir3::{FiberRun, FiberTap, SharedFiberLog};
use super::machine::AdrenoMachine;
use std::sync::Arc;

/// A fiber of a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FiberWanted {
    /// Of a vertex shader.
    Vertex {
        /// The number that the shader sees, with the base vertex.
        vertex: u32,
        /// The instance, from 0.
        instance: u32,
    },
    /// Of a hull shader (tessellation control).
    Hull {
        /// Number of the patch in its instance.
        patch: u32,
        /// The control point that it puts out.
        vertex: u32,
    },
    /// Of a domain shader (tessellation evaluation).
    Domain {
        /// Number of the patch in its instance.
        patch: u32,
        /// The point, in the order in which the tessellator makes them.
        point: u32,
    },
    /// Of a geometry shader: each has a fiber for every vertex that it may put out.
    Geometry {
        /// Number of the primitive in its instance.
        primitive: u32,
        /// The invocation.
        invocation: u32,
        /// The vertex that it puts out.
        vertex: u32,
    },
    /// Of a fragment shader.
    Fragment {
        /// Column, row and layer.
        pixel: [u32; 3],
        /// The sample, when samples are shaded one by one; without, each.
        sample: Option<u32>,
    },
    /// Of a compute shader.
    Compute {
        /// The workgroup.
        group: [u32; 3],
        /// The place in it.
        local: [u32; 3],
    },
}

/// Fibers that are traced, and where.
#[derive(Clone, Debug)]
pub struct FiberTrace {
    /// Of this draw or dispatch, as [`AdrenoMachine::work_done`] counts.
    pub work: u64,
    /// Which.
    pub wanted: FiberWanted,
    /// What they execute.
    pub log: SharedFiberLog,
}

impl FiberTrace {
    /// The tap for a fiber of a batch.
    pub(crate) fn tap(&self, stage: &'static str, fiber: usize) -> FiberTap {
        let run = FiberRun { stage, ..FiberRun::default() };
        FiberTap { fiber, run, log: Arc::clone(&self.log) }
    }

    /// Taps for the fibers of a batch that are wanted.
    pub(crate) fn taps(
        &self,
        stage: &'static str,
        fibers: impl Iterator<Item = Option<FiberWanted>>,
    ) -> Vec<FiberTap> {
        let wanted = fibers.enumerate().filter(|(_, fiber)| *fiber == Some(self.wanted));
        wanted.map(|(fiber, _)| self.tap(stage, fiber)).collect()
    }
}

impl AdrenoMachine<'_> {
    /// The trace of the draw or dispatch in work, if it has one.
    pub(crate) fn trace_now(&self) -> Option<&FiberTrace> {
        self.fiber_trace.as_ref().filter(|trace| trace.work == self.work_done)
    }
}
