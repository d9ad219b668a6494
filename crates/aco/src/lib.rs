//! A compiler from the shader IR to machine code of AMD GPUs, gfx6 to gfx12.
//!
//! [`ir`] is what all phases share: instructions of the hardware and pseudo instructions, on temporaries with register classes, in
//! blocks with a logical and a linear flow. Each phase has a file or folder of its own, which says what it takes and what it
//! guarantees. [`valid`] checks those guarantees between phases, and shares no code with them.
//!
//! Never: files, terminals, other vendors.

pub mod abi;
mod compile;
mod exec;
pub mod ir;
mod linear_ssa;
mod lower;
mod mask_phis;
mod select;
pub mod valid;

pub use compile::{CompileError, FRONT_PHASES, Masked, Options, front};
