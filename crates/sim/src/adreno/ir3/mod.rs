//! The shader processor of Adreno 6xx and 7xx: whole waves of ir3 over memory.
//!
//! A [`ShaderProgram`] is decoded once; a [`Dispatch`] says with which state its waves begin; [`run`] runs them. What the
//! arithmetic computes is in [`unwedge_isa::ir3::semantics`]. Registers are rows of all fibers of a wave, so that an
//! instruction is one loop.
//!
//! Never: packets or registers of the command processor; those who read them fill the [`Dispatch`].

mod access;
mod alu;
mod cross;
mod descriptor;
mod dispatch;
mod fault;
mod fibers;
mod flow;
mod grid;
mod group;
mod image;
mod late;
mod memory;
mod program;
mod quad;
mod results;
mod run;
mod tap;
mod texture;
mod wave;

pub use crate::run::Timing;
pub use dispatch::{BindfulTable, BindfulTables, Dispatch, Options, PrivateMemory, ShaderState};
pub use fault::{Fault, FaultKind, MemoryUnit};
pub(crate) use fibers::{
    BatchMaker, Fibers, FibersDone, OutputRegister, Planes, Prefetch, StageCode, StartValue,
};
pub(crate) use grid::{Grid, GridEnd};
pub use program::ShaderProgram;
pub use run::{Stats, run};
pub(crate) use tap::FiberTap;
pub use tap::{FiberLog, FiberRegister, FiberRun, FiberStep, RegisterValue, SharedFiberLog, lock_log};
