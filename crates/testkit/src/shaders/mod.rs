//! Shaders for tests: random ones that are valid and whose behaviour is defined, runs on made-up inputs, and broken forms.
//!
//! [`random`] makes a shader, [`spirv`] writes one as a SPIR-V module, [`run`] says what can be observed of a run, [`checks`] holds
//! readers and passes to what they promise. Everything follows from the seed. Never: a result that the interpreter did not compute.

pub mod campaign;
pub mod checks;
mod flow;
mod generator;
pub mod halves;
mod interface;
pub mod lanes;
mod memory;
pub mod run;
pub mod spirv;
mod stages;
mod values;

pub use generator::{Dialect, random};
pub use stages::random_stage;
