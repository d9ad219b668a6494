//! The interpreter: runs shaders as the doc comments of [`crate::ir::Op`] say, and reports what Vulkan leaves undefined.
//!
//! A workgroup is split into subgroups. Each runs its active invocations together, and they meet again where the structured
//! instruction that they diverged in ends. Subgroups of a workgroup take turns, workgroups run one after the other. All arithmetic is
//! [`crate::semantics`]. What is undefined is poison: it spreads through values and variables, and its use as a condition, as an
//! address or as stored data is reported. So are accesses out of bounds, data races and barriers that not all invocations reach.
//!
//! Races are found between invocations that no barrier separates. Order that comes from atomics alone is not followed, so that
//! accesses which a flag orders are reported too.
//!
//! Images are behind [`Images`]; [`MemoryImages`] has them in memory. Sampling follows the Vulkan specification, without the limited
//! precision of hardware.
//!
//! Never: a panic for a shader that [`crate::valid::validate`] accepts, more steps or memory than [`Limits`] gives, interpolation of
//! input variables, which the caller gives interpolated.

mod flow;
mod group;
mod image;
mod layout;
mod memory;
mod registers;
mod report;
mod slots;
mod stage;
mod subgroup;
mod wave;

pub use group::{Dispatch, run_compute};
pub use image::{
    DepthCompare, ImageCoordinates, ImageMemory, ImageShape, Images, MemoryImages, NoImages, Reduction,
    Sampler, TexelClass, TexelFormat, TexelRead, Wrap,
};
pub use memory::{BindingPoint, Bindings, BufferView};
pub use report::{Finding, Report, RunError, Violation};
pub use slots::{InterfaceSlot, Slots};
pub use stage::{InvocationInput, InvocationOutput, VariableLanes, VertexOutput, run_stage};

/// What a run may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Instructions, each counted once for a subgroup.
    pub steps: u64,
    /// Bytes of values, variables, workgroup memory and emitted vertices.
    pub memory: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { steps: 50_000_000, memory: 1 << 30 }
    }
}

/// How shaders run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Invocations of a subgroup: a power of two up to 128.
    pub subgroup_size: u32,
    /// What loads out of bounds give: zero (robust buffer access) or poison. They are reported in either case.
    pub robust: bool,
    /// Whether races are looked for.
    pub races: bool,
    /// Of floats of 16, 32 and 64 bits, whether minima and maxima, atomic ones too, keep denormals even if the shader flushes them, as machines may
    /// where the mode is theirs to choose.
    pub extremes_keep_denormals: [bool; 3],
    /// What the run may use.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            subgroup_size: 32,
            robust: false,
            races: true,
            extremes_keep_denormals: [false; 3],
            limits: Limits::default(),
        }
    }
}
