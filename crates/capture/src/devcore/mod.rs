//! msm devcoredumps: `/sys/class/devcoredump/devcd*/data`, as kernels from 4.19 on write them.
//!
//! The format looks like YAML and is not. Two layers: [`lines`] reads the text line by line with a tolerant grammar and
//! forgets nothing; [`Devcore`] is the dump as a whole, built from those lines and written back from itself.

pub mod lines;
mod model;

pub use model::*;
