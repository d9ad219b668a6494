//! Compiles the facts of `data/intel` into the tables that `unwedge_hw::intel` reads.

pub mod compile;
#[allow(dead_code, reason = "what only the library needs")]
#[path = "../../src/intel/engine_class.rs"]
mod engine_class;
#[path = "../../src/intel/layout.rs"]
mod layout;
pub mod model;
pub mod platforms;
pub mod text;
