//! A compiler from the shader IR to machine code of AMD GPUs, gfx6 to gfx12 except gfx908 to gfx950.
//!
//! [`ir`] is what all phases share: instructions of the hardware and pseudo instructions, on temporaries with register classes, in
//! blocks with a logical and a linear flow. Each phase has a file or folder of its own, which says what it takes and what it
//! guarantees. [`valid`] checks those guarantees between phases, and shares no code with them.
//!
//! Never: files, terminals, other vendors.

pub mod abi;
pub mod allocate;
pub mod assemble;
pub mod captures;
pub mod clauses;
mod compares;
mod compile;
pub mod cost;
pub mod culling;
pub mod delay;
mod dominators;
pub mod dual;
pub mod edges;
pub mod eliminate;
mod error;
mod exec;
mod finish;
pub mod forward;
pub mod graphics;
pub mod hardware;
pub mod hazards;
mod helpers;
pub mod ir;
pub mod jumps;
mod linear_ssa;
pub mod lines;
pub mod live;
mod lower;
pub mod machine;
mod mask_phis;
pub mod object;
pub mod occupancy;
mod opt;
pub mod parts;
mod passes;
pub mod pipeline;
pub mod priority;
pub mod scalar_copies;
mod schedule;
mod select;
pub mod skips;
mod spill;
pub mod stages;
mod sums;
pub mod valid;
pub mod waits;

pub use compile::{
    CompileError, Compiled, Compiler, FRONT_PHASES, Lowered, Masked, Options, UNREPAIRED_PHASES, compile,
    compile_copy, compile_merged, front, front_merged, lower_shader,
};
pub use error::FinishError;
pub use finish::{BackPhase, Code, Limits, finish, finish_watched, finish_with};
pub use opt::optimize;
pub use passes::{OPTIONS, PassOption, Passes, UnknownOption};
pub use spill::Spilled;
