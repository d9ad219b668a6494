//! Compiles the facts of `data/intel` into the tables that `unwedge_hw::intel` reads.

pub mod compile;
#[path = "../../src/intel/layout.rs"]
mod layout;
pub mod model;
pub mod text;
