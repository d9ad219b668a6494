//! Passes on memory: loads and stores that are not needed, and those that can be one.

mod redundant;
mod vectorize;

pub use redundant::{RedundantOptions, redundant};
pub use vectorize::{VectorizeOptions, vectorize};
