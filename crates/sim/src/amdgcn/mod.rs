//! Emulator of AMD's instruction set, gfx6 to gfx12.
//!
//! [`Program`] is machine code decoded once. [`run`] executes a grid of workgroups over a [`SimMemory`]; what an operation
//! computes is said by [`unwedge_isa::amdgcn::semantics`]. With a seed, timing is as unfavourable as hardware allows: see
//! [`Timing`].

mod access;
mod apply;
mod buffer;
mod common;
mod counters;
mod cross;
mod decoded;
mod dispatch;
mod ds;
mod export;
mod fault;
mod flat;
mod flow;
mod group;
mod hazard;
mod hwreg;
mod image;
mod interp;
mod issue;
mod lanes;
mod local;
mod machine;
mod matrix;
mod message;
mod mfma;
mod operand;
mod pending;
mod program;
mod rays;
mod run;
mod scalar;
mod scaled;
mod shadow;
mod smem;
mod texel;
mod typed;
mod vector;
mod watch;
mod wave;

pub use crate::memory::{MapError, SimMemory};
pub use common::OrderedState;
pub use counters::WaitCounter;
pub use dispatch::{Dispatch, Initial, MAX_GROUPS, Timing};
pub use fault::{FaultKind, Missing, SimFault};
pub use lanes::{PRIVATE_APERTURE, SCRATCH_BUFFER, SHARED_APERTURE};
pub use message::{MessageKind, WaveMessage};
pub use program::Program;
pub use run::{Outcome, run, watch};
pub use watch::{Control, GroupState, Trace, Watch, WaveStatus};
