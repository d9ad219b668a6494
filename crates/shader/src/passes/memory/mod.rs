//! Passes on memory: removal of redundant loads and dead stores, and combining of loads and stores.

mod redundant;
mod vectorize;

pub use redundant::{RedundantOptions, redundant};
pub use vectorize::{VectorizeOptions, vectorize};
