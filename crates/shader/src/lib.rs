//! An SSA intermediate representation of Vulkan shaders: what both compilers of this project start from.
//!
//! [`ir`] is the representation, and its doc comments are its meaning; [`semantics`] computes operations; [`front`] reads SPIR-V;
//! [`text`] prints and parses; [`valid`] checks; [`interp`] runs; [`passes`] rewrites; [`reduce`] makes shaders small. `docs/shader-ir.md` describes the whole.
//!
//! Never: a machine, I/O.

pub mod analysis;
pub mod front;
pub mod interp;
pub mod ir;
pub mod passes;
pub mod reduce;
pub mod semantics;
mod substitution;
pub mod text;
pub mod valid;
