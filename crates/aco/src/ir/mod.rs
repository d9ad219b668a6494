//! The IR of the back end: what all phases share.

mod bound;
mod class;
mod entities;
mod inst;
mod operand;
mod program;
mod reg;
pub mod shape;
pub mod text;

pub use bound::{Bound, variant_of};
pub use class::{Bank, RegClass};
pub use entities::{Block, Construct, Inst, Temp};
pub use inst::{InstData, Memory, NewInst, Op, Payload, Pseudo};
pub use operand::{Definition, Operand, Source};
pub use program::{
    BlockData, ConstructData, ConstructKind, Jump, Neighbours, Program, Progress, RegCounts, Role,
    ScratchArgs,
};
pub use reg::{PhysReg, RegRun};
